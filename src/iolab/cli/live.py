"""The live view of a session: a panel on a terminal, lines elsewhere, nothing when quiet.

Everything here goes to standard error, and a view that can no longer be written never ends a
session.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from iolab.analyse.iterations import is_metadata
from iolab.analyse.key_value.summary import is_key_value
from iolab.cli.panel import panel
from iolab.cli.progress import Load, Progress
from iolab.cli.screen import one_line, run_name
from iolab.cli.talk import console, say
from iolab.model.event import (
    Event,
    GuestUp,
    IntervalSeen,
    Notice,
    Phase,
    PhaseStarted,
    RuleLooked,
    RunFinished,
)
from iolab.model.metric import Result
from iolab.model.run import PlannedRun
from iolab.report.key_value.measures import brief_operations
from iolab.report.operations import brief_rates
from iolab.report.wording import show, show_steadiness
from iolab.units import format_count, format_duration_s, format_ns, format_rate_bytes

if TYPE_CHECKING:
    from rich.live import Live

Clock = Callable[[], float]
"""Seconds of a clock that never goes back."""

REFRESHES_PER_S = 4
"""Often enough for a moving clock, rarely enough to cost nothing beside a load."""


class View(Protocol):
    """Someone who watches a session."""

    def open(self) -> None:
        """Begin to watch."""

    def see(self, event: Event) -> None:
        """Take one event of the session."""

    def judged(self, result: Result) -> None:
        """Take the result of the run that just finished."""

    def note(self, text: str) -> None:
        """Tell the user something now."""

    def close(self) -> None:
        """Leave the screen as it was; a second call does nothing."""


class QuietView:
    """Silence."""

    def open(self) -> None:
        """Nothing."""

    def see(self, event: Event) -> None:
        """Nothing."""

    def judged(self, result: Result) -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


class PanelView:
    """A panel that is redrawn in place on a terminal and gone when the session is over."""

    def __init__(self, progress: Progress, clock: Clock = time.monotonic) -> None:
        self._progress = progress
        self._clock = clock
        self._live: Live | None = None

    def open(self) -> None:
        """Take the bottom of the screen."""
        from rich.live import Live

        screen = console(sys.stderr)
        self._live = Live(
            get_renderable=lambda: panel(self._progress.at(self._clock()), screen.options),
            console=screen,
            refresh_per_second=REFRESHES_PER_S,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        with suppress(OSError):
            self._live.start()

    def see(self, event: Event) -> None:
        """Move the state on; the panel is redrawn by its own clock."""
        self._progress = self._progress.after(event, self._clock())
        if isinstance(event, Notice):
            self.note(event.text)

    def judged(self, result: Result) -> None:
        """Add the result to the last ones."""
        self._progress = self._progress.with_result(result)

    def note(self, text: str) -> None:
        """Print a line above the panel."""
        if self._live is None:
            say(one_line(text))
            return
        with suppress(OSError):
            self._live.console.print(one_line(text))

    def close(self) -> None:
        """Wipe the panel."""
        if self._live is not None:
            with suppress(OSError):
                self._live.stop()
            self._live = None


class LinesView:
    """One line a phase, a second and a result, for files and for terminals that are none."""

    def __init__(self, progress: Progress, clock: Clock = time.monotonic) -> None:
        self._progress = progress
        self._clock = clock
        self._told: float = -1.0

    def open(self) -> None:
        """Nothing to prepare."""

    def see(self, event: Event) -> None:
        """Tell what a person would want to read later."""
        before = self._progress
        self._progress = before.after(event, self._clock())
        match event:
            case Notice():
                self.note(event.text)
            case PhaseStarted():
                self._told = -1.0
                say(self._phase(event))
            case GuestUp(guest, _, booted_s):
                took = format_duration_s(round(booted_s, 1))
                say(f"{one_line(guest)} is up after {took}: {self._progress.boots}")
            case RuleLooked():
                say(f"{self._run(event.run)}: {one_line(event.says)}")
            case IntervalSeen():
                self._tell_load(event.run)
            case RunFinished(record) if record.failure:
                run = self._run(record.run)
                say(f"{run}: {record.status.value}: {one_line(record.failure)}")
            case _:
                return

    def judged(self, result: Result) -> None:
        """Tell a result with its verdict."""
        figures = _figures(result)
        name = run_name(result.workload, result.axis, result.repeat)
        steady = show_steadiness(result)
        level = result.verdict.level.value
        say(f"result {name}: {figures}: {level}{f', {steady}' if steady else ''}")

    def note(self, text: str) -> None:
        """One more line."""
        say(one_line(text))

    def close(self) -> None:
        """Nothing to put back."""

    def _tell_load(self, run: PlannedRun) -> None:
        """The newest second that all hosts have told of, once."""
        loads = self._progress.loads
        if not loads or loads[-1].elapsed_s <= self._told:
            return
        self._told = loads[-1].elapsed_s
        say(f"{self._run(run)}: {_load_line(loads[-1], self._progress)}")

    def _phase(self, event: PhaseStarted) -> str:
        named = event.run is not None and event.detail == event.run.point.label
        plain = not event.detail or named
        name = one_line(event.phase if plain else f"{event.phase.value}: {event.detail}")
        expected = ""
        if event.expected_s is not None and event.expected_s >= 1:
            expected = f" (about {format_duration_s(event.expected_s)})"
        if event.run is None or event.phase is Phase.LAY_OUT:
            return name + expected
        makers = self._progress.load_words if event.phase is Phase.MEASURE else ""
        return f"{self._run(event.run)}: {name}{f', {makers}' if makers else ''}{expected}"

    def _run(self, run: PlannedRun) -> str:
        name = run_name(run.point.workload, run.point.axis, run.repeat)
        return f"run {run.order}/{self._progress.run_count} {name}"


def choose_view(progress: Progress, *, quiet: bool) -> View:
    """The view that fits standard error."""
    if quiet:
        return QuietView()
    return PanelView(progress) if sys.stderr.isatty() else LinesView(progress)


def _figures(result: Result) -> str:
    """A run in a line."""
    if is_metadata(result):
        return brief_rates(result)
    if is_key_value(result):
        return brief_operations(result)
    metrics = result.metrics
    figures = (
        show(metrics.get("iops")),
        show(metrics.get("bw_bytes_per_s")),
        f"mean {show(metrics.get('lat_ns_mean'))}",
        f"p99 {show(metrics.get('lat_ns_p99'))}",
    )
    return ", ".join(figures)


def _load_line(load: Load, progress: Progress) -> str:
    latency = "–" if load.lat_ns_mean is None else format_ns(load.lat_ns_mean)
    rates = [f"{format_count(load.iops)} IOPS", format_rate_bytes(load.bw_bytes_per_s)]
    if progress.of_operations:
        rates = [f"{format_count(load.iops)} ops/s"]
    means = [f"mean {latency}"] if progress.tells_latency else []
    parts = [f"{load.elapsed_s:.0f} s", *rates, *means]
    if progress.cpu_busy:
        busiest = max(progress.cpu_busy.values())
        parts.append(f"CPU {100 * busiest:.0f} %")
    parts.append(f"ETA {format_duration_s(round(progress.remaining_s))}")
    return ", ".join(parts)
