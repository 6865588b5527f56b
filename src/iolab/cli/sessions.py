"""`iolab ls` and `rm`: the sessions below a directory, and how one of them is removed."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from iolab.cli.options import (
    LAST_SESSION,
    OutputFormat,
    SkipQuestion,
    path_or_newest_session,
    session_completions,
    with_output_format,
)
from iolab.cli.output import (
    ask_for_removal,
    output_width,
    print_document,
    print_message,
    print_renderables,
    print_result,
)
from iolab.errors import StoreError, UsageError
from iolab.text import quote_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from iolab.serve.sessions import SessionLine, SessionListing

READ_TIMEOUT_S: Final = 20.0
"""Sessions that are not read within this time are listed without an answer."""

SHOWN_MAX: Final = 20
"""Sessions that are listed without --all: one screen."""

ANSWER_WIDTH_MIN: Final = 20
"""Columns of an answer however long the names are."""

DATE_ALONE_BELOW_WIDTH: Final = 100
"""Columns of a screen from which on there is room for the time at which a session began."""


@with_output_format
def ls(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Where to look, four levels deep.")
    ] = Path(),
    *,
    every: Annotated[
        bool, typer.Option("--all", "-a", help=f"List all, not only the newest {SHOWN_MAX}.")
    ] = False,
    output_format: OutputFormat,
) -> None:
    """List the sessions below a directory, each with its answer."""
    from iolab.registry import report_kinds
    from iolab.serve.sessions import SessionLibrary

    if not directory.is_dir():
        raise UsageError(f"There is no directory {quote_value(str(directory))}.", "Give another.")
    listing = SessionLibrary(directory.resolve(), time.monotonic, report_kinds()).list_sessions(
        READ_TIMEOUT_S
    )
    if output_format is not OutputFormat.TABLE:
        document = _listing_document(listing, directory)
        print_document(output_format, document, document["sessions"])
        return
    if not listing.lines:
        print_result(f"There is no session below {quote_value(str(directory))}.")
    else:
        print_renderables(*session_list_renderables(listing, directory, show_all=every))
    for note in listing.notes:
        print_message(note)


def session_list_renderables(
    listing: SessionListing, directory: Path, *, show_all: bool
) -> Iterator[RenderableType]:
    """A line a session: its name, when it began, its runs, and as much of its answer as fits.

    Names are below `directory`. A status that is not `done` stands before the answer, and `demo`
    for a demonstration, which the answer then does not repeat.
    """
    from rich.text import Text

    from iolab.cli.results import STATUS_STYLES
    from iolab.core.events import SessionStatus
    from iolab.report.numbers import utc_minute_text
    from iolab.report.table import Column
    from iolab.report.terminal import GAP, QUIET_STYLE, literal_text, terminal_table

    lines = listing.lines if show_all else listing.lines[:SHOWN_MAX]
    rows: list[list[Text | str]] = []
    for line in lines:
        # Below the directory given: the answer beside it needs the room.
        paths = (
            _session_path_argument(line, directory),
            os.path.relpath(line.folder.path),
            os.path.relpath(line.folder.path, directory),
        )
        is_itself = line.folder.path == directory.resolve()
        name = literal_text(min(paths[:2] if is_itself else paths, key=len), "bold")
        if line.summary is None:
            rows.append([name, "", "", "", literal_text(line.fault or "Not read in time.")])
            continue
        session = line.summary.session
        answer = Text()
        if session.status is not SessionStatus.DONE:
            answer.append(f"{session.status.value}: ", STATUS_STYLES[session.status])
        prefix = line.summary.demonstration_prefix
        is_demonstration = bool(prefix) and line.summary.answer.startswith(prefix)
        answer.append_text(literal_text(line.summary.answer.removeprefix(prefix)))
        began = utc_minute_text(session.created_real_ns)
        if output_width() < DATE_ALONE_BELOW_WIDTH:
            began = began.partition(" ")[0]
        demonstration = literal_text("demo" if is_demonstration else "", QUIET_STYLE)
        runs = f"{line.summary.run_counts.total:,}"
        rows.append([name, began, runs, demonstration, answer])
    heads = [Column("session"), Column("began (UTC)"), Column("runs", is_number=True), Column("")]
    widths = [
        max([len(head.title), *(len(row[at]) for row in rows)]) for at, head in enumerate(heads)
    ]
    room = max(output_width() - sum(widths) - GAP * len(heads), ANSWER_WIDTH_MIN)
    for *_, last in rows:
        if isinstance(last, Text):
            last.truncate(room, overflow="ellipsis")
    if directory.resolve() != Path.cwd():
        yield literal_text(f"below {directory}:", QUIET_STYLE)
    yield terminal_table([*heads, Column("answer", can_wrap=True)], rows)
    if len(listing.lines) > len(lines):
        yield Text(f"{len(listing.lines) - len(lines)} more: --all", QUIET_STYLE)


def _session_path_argument(line: SessionLine, directory: Path) -> str:
    """The session's path as an argument of another command."""
    return str(directory / line.folder.path.relative_to(directory.resolve()))


def _listing_document(listing: SessionListing, directory: Path) -> dict[str, Any]:
    return {
        "format": 1,
        "sessions": [_session_line_document(line, directory) for line in listing.lines],
        "notes": list(listing.notes),
    }


def _session_line_document(line: SessionLine, directory: Path) -> dict[str, Any]:
    if line.summary is None:
        return {
            "path": _session_path_argument(line, directory),
            "fault": line.fault or "not read in time",
        }
    session, counts = line.summary.session, line.summary.run_counts
    return {
        "path": _session_path_argument(line, directory),
        "id": session.id,
        "study": session.study,
        "title": session.title,
        "scale": session.scale,
        "status": session.status.value,
        "created_real_ns": session.created_real_ns,
        "runs": counts.total,
        "planned_runs": line.summary.planned_count,
        "valid": counts.valid,
        "indicative": counts.indicative,
        "invalid": counts.invalid,
        "damaged": line.summary.damage_count,
        "answer": line.summary.answer,
    }


def rm(
    sessions: Annotated[
        list[Path],
        typer.Argument(
            metavar="SESSION",
            help=f"Their directories, none of them running; {LAST_SESSION!r} is the newest one "
            "below the current directory.",
            parser=path_or_newest_session,
            autocompletion=session_completions,
        ),
    ],
    *,
    yes: SkipQuestion = False,
) -> None:
    """Remove sessions: all that was measured in them."""
    from iolab.store.removal import remove_session, require_removable

    for session in sessions:
        require_removable(session)
    if not yes:
        for session in sessions:
            print_message(f"  {session}")
        if not ask_for_removal():
            raise UsageError("Nothing was removed.", "--yes removes without a question.")
    for session in sessions:
        try:
            remove_session(session)
        except OSError as error:
            raise StoreError(
                f"{quote_value(str(session))} cannot be removed: {error.strerror}.",
                "Remove the rest by hand.",
            ) from error
        print_result(f"Removed {session}.")
