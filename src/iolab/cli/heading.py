"""What a session is and how it stands, in two lines above its results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from rich.text import Text

from iolab.cli.screen import QUIET_STYLE, VERDICT_STYLES, Unbroken, one_line, plain
from iolab.model.event import SessionStatus
from iolab.model.metric import Level, Result
from iolab.report.guests.caveats import caveats_of
from iolab.report.wording import count

if TYPE_CHECKING:
    from rich.console import RenderableType

    from iolab.model.run import Plan
    from iolab.store.reader import SessionReader

STATUS_STYLES: Final = {
    SessionStatus.RUNNING: "cyan",
    SessionStatus.DONE: "",
    SessionStatus.INTERRUPTED: "yellow",
    SessionStatus.FAILED: "bold red",
}


def session_heading(
    reader: SessionReader, results: Sequence[Result], *, advise: bool
) -> Iterator[RenderableType]:
    """The study, the session's status, its runs by verdict; with `advise` how to continue it.

    What makes figures of guests no figures of storage comes before all of them.
    """
    session = reader.session
    yield plain(session.title, "bold")
    line = Text(f"{one_line(session.study)}, scale {one_line(session.scale)}, ")
    line.append(f"{_time(session.created_real_ns)}, ")
    line.append(session.status.value, style=STATUS_STYLES[session.status])
    line.append(f" — {_runs(results, reader.plan)}")
    line.append_text(_levels(results))
    yield line
    yield from _sittings(reader, results)
    if session.reason:
        yield plain(session.reason, STATUS_STYLES[session.status])
    if advise and session.status in (SessionStatus.INTERRUPTED, SessionStatus.FAILED):
        advice = f"Continue it: {resume_line(str(reader.directory))}"
        yield Unbroken(plain(advice, QUIET_STYLE))
    for damage in reader.damaged():
        yield plain(f"Damaged, not shown: {damage.path}: {damage.says}", "bold red")
    for text in caveats_of(reader.study.guests, results):
        yield plain(text, VERDICT_STYLES[Level.INDICATIVE])
    yield ""


def resume_line(directory: str) -> str:
    """The command that continues a session."""
    import shlex

    return f"iolab resume {shlex.quote(directory)}"


def _time(real_ns: int) -> str:
    return datetime.fromtimestamp(real_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _sittings(reader: SessionReader, results: Sequence[Result]) -> Iterator[RenderableType]:
    """Which of the results were measured after a resume."""
    counts = Counter(result.sitting for result in results)
    if len(counts) < 2:
        return
    begun = reader.begun()
    parts = [
        f"{count(number, 'run')} {'since the start on' if sitting == 1 else 'after a resume on'} "
        f"{_time(begun[sitting - 1])}"
        for sitting, number in sorted(counts.items())
        if sitting <= len(begun)
    ]
    yield plain(f"Measured in {len(counts)} sittings: {', '.join(parts)}.")


def _runs(results: Sequence[Result], plan: Plan) -> str:
    planned = len(plan.runs)
    if len(results) == planned or plan.runs_more:
        return count(len(results), "run")
    return f"{len(results)} of {count(planned, 'run')}"


def _levels(results: Sequence[Result]) -> Text:
    """How many results have which verdict."""
    text = Text()
    levels = [result.verdict.level for result in results]
    for level in Level:
        if level in levels:
            text.append(": " if not text else ", ")
            text.append(f"{levels.count(level)} {level.value}", style=VERDICT_STYLES[level])
    return text
