"""Two channels: results on standard output, talk on standard error; foreign text made harmless.

Nothing else in the command line writes to either, so a pipe gets results alone, and a reader that
has seen enough (`iolab show S | head`) ends nothing but the output.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from rich.console import Console

from iolab.errors import IolabError, ReportError, UsageError

if TYPE_CHECKING:
    from rich.console import RenderableType

PIPE_WIDTH: Final = 1000
"""Off a terminal nothing is wrapped: a program, a pager or a file has its own idea of width."""


def result(text: str) -> None:
    """Print a result; text of hosts and files in it must have been cleaned."""
    _write(sys.stdout, text + "\n")


def result_json(document: object) -> None:
    """Print a document as JSON, in ASCII, so that no terminal is moved by what it holds."""
    _write(sys.stdout, json.dumps(document, indent=2, allow_nan=False) + "\n")


def raw_result(text: str) -> None:
    """Print a result exactly as it is: a file that goes through a pipe."""
    _write(sys.stdout, text)


def result_screen(*parts: RenderableType) -> None:
    """Print tables and text as wide as the terminal, or unwrapped into a pipe."""
    from io import StringIO

    drawn = StringIO()
    screen = console(sys.stdout, drawn)
    for part in parts:
        screen.print(part, crop=False)
    lines = (line.rstrip() for line in drawn.getvalue().splitlines())
    _write(sys.stdout, "".join(f"{line}\n" for line in lines))


def say(text: str) -> None:
    """Tell the user something, on standard error."""
    _write(sys.stderr, text + "\n")


def console(stream: TextIO, canvas: TextIO | None = None) -> Console:
    """A console that takes nothing in a text for markup, a link or a smiley.

    It draws for `stream`, and on `canvas` instead where one is given.
    """
    on_terminal = stream.isatty()
    return Console(
        file=canvas or stream,
        force_terminal=on_terminal,
        markup=False,
        emoji=False,
        highlight=False,
        width=None if on_terminal or os.environ.get("COLUMNS") else PIPE_WIDTH,
    )


def settle_streams() -> None:
    """Let no stream that is closed, no width of nothing and no character end the program."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, _nowhere(number))
    for name in ("COLUMNS", "LINES"):
        if os.environ.get(name, "").strip("0") == "":
            os.environ.pop(name, None)  # rich would draw nothing
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _write(stream: TextIO, text: str) -> None:
    """Write at once; when the reader has gone, the rest of the output goes nowhere.

    ReportError when results cannot be written for another reason; talk is then lost in silence,
    for there is no place left to complain.
    """
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        _write_nowhere(stream)
        if stream is sys.stdout and not isinstance(error, BrokenPipeError):
            raise ReportError(
                f"Standard output cannot be written: {error.strerror}.",
                "Give it a place that has room.",
            ) from error


def check_output() -> None:
    """ReportError when standard output still holds what it could not get rid of."""
    _write(sys.stdout, "")


def _nowhere(number: int) -> TextIO:
    """A stream in place of one that was closed, so that no file gets its number and our output."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, number)
    if nowhere != number:
        os.close(nowhere)
    return open(number, "w" if number else "r", encoding="utf-8", closefd=False)


def _write_nowhere(stream: TextIO) -> None:
    """Let what is still in the stream's buffer, and all that comes, be dropped."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def refuse_output(path: Path) -> None:
    """UsageError where a path leads to a session's own files, or into a target's scratch folder."""
    from iolab.core.host import SCRATCH_PREFIX
    from iolab.store.layout import session_of_file
    from iolab.study.wording import shown

    real = Path(os.path.realpath(path))
    session = session_of_file(real)
    if session is not None:
        raise UsageError(
            f"{shown(str(path))} is a file of the session '{session.name}'.",
            "Give another path: what a session measured is never written over.",
        )
    for folder in (real, path):
        inside = next((part for part in folder.parts if part.startswith(SCRATCH_PREFIX)), None)
        if inside is not None:
            raise UsageError(
                f"{shown(str(path))} lies in the scratch folder '{inside}' of a target.",
                "Give a path outside of it: sessions remove what is theirs there, and do not start "
                "where there is anything else.",
            )


def refuse_no_directory(path: Path) -> None:
    """UsageError where something else than a directory is there, before anything is done."""
    from iolab.core.toml import kind_of
    from iolab.study.wording import shown

    if path.exists() and not path.is_dir():
        raise UsageError(
            f"{shown(str(path))} is {kind_of(path.stat().st_mode)}, and no directory.",
            "Give a directory that is new or empty.",
        )


def make_directory(path: Path) -> None:
    """The directory, also where it is there; ReportError when it cannot be made."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(ReportError, path, error) from error


def write_new(path: Path, text: str) -> None:
    """Write a file that is not there yet; UsageError when it is, or cannot be written."""
    from iolab.study.wording import shown

    refuse_output(path)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise UsageError(
            f"{shown(str(path))} is already there.", "Give another name; nothing was changed."
        ) from error
    except OSError as error:
        raise _unwritable(UsageError, path, error) from error


def replace_whole(path: Path, content: str | bytes) -> None:
    """Put `content` where `path` names, at once; ReportError when that cannot be done."""
    from iolab.store.durable import in_place_of

    try:
        with in_place_of(path) as draft:
            draft.write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise _unwritable(ReportError, path, error) from error


def _unwritable(kind: type[IolabError], path: Path, error: OSError) -> IolabError:
    from iolab.study.wording import shown

    return kind(
        f"{shown(str(path))} cannot be written: {error.strerror}.",
        "Give a place that may be written to and has room.",
    )
