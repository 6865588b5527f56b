"""What the live panel shows: pure functions from a session's progress to lines of text."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from rich.console import Group
from rich.text import Text

from iolab.cli.output import create_console, print_message
from iolab.cli.progress import LoadSecond, SessionProgress
from iolab.core.configuration import DEFAULT_CONFIGURATION
from iolab.core.events import (
    Event,
    GuestBooted,
    IntervalReported,
    Notice,
    RunFinished,
    SessionPhase,
    SessionPhaseStarted,
    StoppingRuleStatus,
)
from iolab.core.metric import RunResult
from iolab.core.run import PlannedRun, Point
from iolab.registry import report_kinds
from iolab.report.numbers import DASH, metric_value_text, steadiness_text
from iolab.report.terminal import QUIET_STYLE, run_label, sparkline, styled_verdict
from iolab.text import one_line, percent_text
from iolab.units import format_count, format_duration_s, format_ns, format_rate_bytes

if TYPE_CHECKING:
    from rich.console import ConsoleOptions
    from rich.live import Live

_LABEL: Final = 12
_VALUE: Final = 10
"""Widths of the name and the value of a figure, so that they do not jump as numbers change."""

_SHORT_PHASE_NAMES: Final = {SessionPhase.GENERATOR_LIMIT: "null target"}
"""What the panel calls phases whose names would push their bars out of the column."""

_GAP: Final = 2
_BAR_LEAST: Final = 16
"""Blanks between parts of a line; a bar keeps so many characters beside a long name."""

_RESULT_COLUMNS: Final = (("IOPS", 8), ("bandwidth", 10), ("mean", 9))
"""Headings of the last results, each with the width of its column."""

WIDTH_MAX: Final = 120
"""A wider terminal does not make a better picture."""

REFRESHES_PER_S = 4
"""Often enough for a moving clock, rarely enough to cost nothing beside a load."""


def live_panel_lines(progress: SessionProgress, options: ConsoleOptions) -> Group:
    """The lines of the panel, none wider than the terminal.

    Within a run their number does not depend on the phase, so the panel does not jump.
    """
    width = min(options.max_width, WIDTH_MAX)
    lines = [_session_line(progress, width, ascii_only=options.ascii_only)]
    if progress.run is not None:
        lines.append(_run_line(progress, progress.run))
    lines.append(_phase_line(progress, width, ascii_only=options.ascii_only))
    if progress.run is not None and progress.max_phase_s_by_id:
        lines.append(_scenario_line(progress, ascii_only=options.ascii_only))
    if progress.run is not None:
        lines += _live_load_lines(progress, width, ascii_only=options.ascii_only)
    lines += _result_lines(progress.results, width)
    return Group(*(_truncate_line(line, width) for line in lines))


def progress_bar(share: float, width: int, *, ascii_only: bool = False) -> str:
    """How much of something is over, between 0 and 1."""
    full, empty = ("#", ".") if ascii_only else ("━", "─")
    filled = round(min(max(share, 0.0), 1.0) * width)
    return full * filled + empty * (width - filled)


def _run_name(run: Point | RunResult, repeat: int) -> str:
    """A run's name, with its configuration where the study names any."""
    name = run_label(run.workload, run.axis_values, repeat)
    if run.configuration == DEFAULT_CONFIGURATION:
        return name
    return f"{one_line(run.configuration)}: {name}"


def _session_line(progress: SessionProgress, width: int, *, ascii_only: bool) -> Text:
    """The study, how much of its plan is over, and the time left."""
    left = f"{progress.remaining_text} left"
    share = f"{100 * progress.completed_share_of_runs:3.0f} %"
    room = width - len(share) - len(left) - 2 * _GAP
    text = Text(one_line(progress.study), style="bold")
    text.truncate(max(room - _BAR_LEAST - _GAP, room // 3, 0), overflow="ellipsis")
    bar = max(room - text.cell_len - _GAP, 0)
    text.append(" " * _GAP)
    text.append(
        progress_bar(progress.completed_share_of_runs, bar, ascii_only=ascii_only), style="not bold"
    )
    text.append(f"{' ' * _GAP}{share}{' ' * _GAP}{left}", style="not bold")
    return text


def _run_line(progress: SessionProgress, run: PlannedRun) -> Text:
    more = f" to {progress.runs_most}" if progress.runs_most > progress.run_count else ""
    text = Text(f"{f'run {run.order}/{progress.run_count}{more}':<{_LABEL}} ", style=QUIET_STYLE)
    return text.append(_run_name(run.point, run.repeat), style="not dim bold")


def _phase_line(progress: SessionProgress, width: int, *, ascii_only: bool) -> Text:
    if progress.phase is None:
        return Text("getting ready", style=QUIET_STYLE)
    name = _SHORT_PHASE_NAMES.get(progress.phase, progress.phase.value)
    warming = (
        progress.phase is SessionPhase.MEASURE
        and progress.phase_elapsed_s < progress.warmup_s
        and progress.has_warmup
    )
    text = Text(f"{name:<{_LABEL}} ", style="cyan")
    elapsed, expected = progress.phase_elapsed_s, progress.phase_expected_s
    if expected is not None and expected >= 1:
        text.append(progress_bar(elapsed / expected, max(width // 3, 10), ascii_only=ascii_only))
        planned = format_duration_s(expected)
        is_late = round(elapsed) > round(expected)
        text.append(
            f" {elapsed:.0f} s ({planned} planned)" if is_late else f" {elapsed:.0f} of {planned}"
        )
    else:
        text.append(f"{elapsed:.0f} s")
    if progress.phase is SessionPhase.MEASURE and progress.current_guest_count_text:
        text.append(f"  {progress.current_guest_count_text}", style=QUIET_STYLE)
    if progress.phase is SessionPhase.MEASURE and progress.message:
        text.append(f"  {one_line(progress.message)}", style=QUIET_STYLE)
    elif warming:
        text.append("  warm-up, not counted", style=QUIET_STYLE)
    elif progress.boot_progress_text:
        text.append(f"  {progress.boot_progress_text}", style=QUIET_STYLE)
    elif progress.phase_detail and not _does_detail_repeat_run_name(progress):
        text.append(f"  {one_line(progress.phase_detail)}", style=QUIET_STYLE)
    return text


def _scenario_line(progress: SessionProgress, *, ascii_only: bool) -> Text:
    """`phases      before > degraded 12 s > after   Event 'lose' begins.`, the current one bold."""
    text = Text(f"{'phases':<{_LABEL}} ", style="cyan")
    for place, phase in enumerate(progress.max_phase_s_by_id):
        if place:
            text.append(" > " if ascii_only else " › ", style=QUIET_STYLE)
        if phase == progress.scenario_phase:
            since_s = max(progress.now_s - progress.scenario_phase_since_s, 0.0)
            text.append(f"{one_line(phase)} {since_s:.0f} s", style="not dim bold")
        else:
            text.append(one_line(phase), style=QUIET_STYLE)
    if progress.scenario_event_text:
        text.append(f"  {one_line(progress.scenario_event_text)}", style=QUIET_STYLE)
    return text


def _does_detail_repeat_run_name(progress: SessionProgress) -> bool:
    """Whether the phase's detail is only the point that stands in the head already."""
    return progress.run is not None and progress.phase_detail == progress.run.point.title_text


def _live_load_lines(progress: SessionProgress, width: int, *, ascii_only: bool) -> Iterator[Text]:
    loads = progress.completed_load_seconds
    room = width - _LABEL - _VALUE - 2
    newest = loads[-1] if loads else None
    rate = "ops/s" if progress.has_operation_rates else "IOPS"
    rows: tuple[tuple[str, str, list[float | None]], ...] = (
        (rate, format_count(newest.iops) if newest else DASH, [load.iops for load in loads]),
        (
            "bandwidth",
            format_rate_bytes(newest.bw_bytes_per_s) if newest else DASH,
            [load.bw_bytes_per_s for load in loads],
        ),
        (
            "latency",
            format_ns(newest.lat_ns_mean) if newest and newest.lat_ns_mean else DASH,
            [load.lat_ns_mean for load in loads],
        ),
        (
            "p99",
            format_ns(newest.lat_ns_p99) if newest and newest.lat_ns_p99 else DASH,
            [load.lat_ns_p99 for load in loads],
        ),
    )
    for name, value, series in rows:
        # Files without contents move nothing, and a row of zeros would read like a fault.
        if name == "bandwidth" and progress.has_operation_rates and not any(series):
            continue
        if name in ("latency", "p99") and not progress.is_latency_reported_live:
            continue
        text = Text(f"{name:<{_LABEL}}", style=QUIET_STYLE)
        text.append(f"{value:>{_VALUE}}", style="bold")
        text.append("  " + sparkline(series, room, ascii_only=ascii_only), style="cyan")
        yield text
    yield _cpu_line(progress)


def _cpu_line(progress: SessionProgress) -> Text:
    text = Text(f"{'CPU busy':<{_LABEL}}", style=QUIET_STYLE)
    if not progress.cpu_busy_share_by_host:
        return text.append(f"{DASH:>{_VALUE}}", style="bold")
    busiest = max(
        progress.cpu_busy_share_by_host, key=lambda host: progress.cpu_busy_share_by_host[host]
    )
    text.append(f"{percent_text(progress.cpu_busy_share_by_host[busiest]):>{_VALUE}}", style="bold")
    if len(progress.cpu_busy_share_by_host) > 1:
        text.append(f"  on {one_line(busiest)}, the busiest host")
    return text


def _result_lines(results: Sequence[RunResult], width: int) -> Iterator[Text]:
    if not results:
        return
    names = [run_label(result.workload, result.axis_values, result.repeat) for result in results]
    texts = [report_kinds().report_of_result(r).run_figures_text_if_not_iops(r) for r in results]
    room = min(max(len("last results") - 2, *map(len, names)), max(width - 44, 16))
    heading = f"{'last results':<{room + 2}}"
    if not all(texts):
        heading += "".join(f"{name:>{columns}}" for name, columns in _RESULT_COLUMNS)
    yield Text(heading, style=QUIET_STYLE)
    configuration = DEFAULT_CONFIGURATION
    for name, result, rates in zip(names, results, texts, strict=True):
        if result.configuration != configuration:  # beside the name there is no room for it
            configuration = result.configuration
            yield Text(f"  {one_line(configuration)}:", style=QUIET_STYLE)
        text = Text(f"  {name:<{room}.{room}}")
        if rates is not None:
            text.append(f"  {rates}")
        else:
            cells = (
                metric_value_text(result.metrics.get("iops"), is_rate_unit_omitted=True),
                metric_value_text(result.metrics.get("bw_bytes_per_s")),
                metric_value_text(result.metrics.get("lat_ns_mean")),
            )
            for cell, (_, columns) in zip(cells, _RESULT_COLUMNS, strict=True):
                text.append(f"{cell:>{columns}}")
        yield text.append("  ").append_text(styled_verdict(result.verdict.level))


def _truncate_line(line: Text, width: int) -> Text:
    """One line stays one line: a panel that wraps would jump."""
    line.truncate(width, overflow="ellipsis")
    return line


ControllerClock = Callable[[], float]
"""Seconds of a clock that never goes back."""


class LiveView:
    """Someone who watches a session; this one in silence."""

    def open(self) -> None:
        """Begin to watch."""

    def on_event(self, event: Event) -> None:
        """Take one event of the session."""

    def on_result(self, result: RunResult) -> None:
        """Take the result of the run that just finished."""

    def show_message(self, text: str) -> None:
        """Tell the user something now."""

    def close(self) -> None:
        """Leave the screen as it was; a second call does nothing."""


class LivePanelView(LiveView):
    """A panel that is redrawn in place on a terminal and gone when the session is over."""

    def __init__(self, progress: SessionProgress, clock: ControllerClock = time.monotonic) -> None:
        self._progress = progress
        self._clock = clock
        self._live: Live | None = None

    def open(self) -> None:
        """Take the bottom of the screen."""
        from rich.live import Live

        screen = create_console(sys.stderr)
        self._live = Live(
            get_renderable=lambda: live_panel_lines(
                self._progress.at_time(self._clock()), screen.options
            ),
            console=screen,
            refresh_per_second=REFRESHES_PER_S,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        with suppress(OSError):
            self._live.start()

    def on_event(self, event: Event) -> None:
        """Move the state on; the panel is redrawn by its own clock."""
        self._progress = self._progress.after_event(event, self._clock())
        if isinstance(event, Notice):
            self.show_message(event.text)

    def on_result(self, result: RunResult) -> None:
        """Add the result to the last ones."""
        self._progress = self._progress.with_result(result)

    def show_message(self, text: str) -> None:
        """Print a line above the panel."""
        if self._live is None:
            print_message(one_line(text))
            return
        with suppress(OSError):
            self._live.console.print(one_line(text))

    def close(self) -> None:
        """Wipe the panel."""
        if self._live is not None:
            with suppress(OSError):
                self._live.stop()
            self._live = None


class LinesView(LiveView):
    """One line a phase, a second and a result, for files and for terminals that are none."""

    def __init__(self, progress: SessionProgress, clock: ControllerClock = time.monotonic) -> None:
        self._progress = progress
        self._clock = clock
        self._printed_s: float = -1.0

    def on_event(self, event: Event) -> None:
        """Tell what a person would want to read later."""
        before = self._progress
        self._progress = before.after_event(event, self._clock())
        match event:
            case Notice():
                self.show_message(event.text)
            case SessionPhaseStarted():
                self._printed_s = -1.0
                print_message(self._run_phase_and_duration_text(event))
            case GuestBooted(guest, _, booted_s):
                took = format_duration_s(round(booted_s, 1))
                print_message(
                    f"{one_line(guest)} is up after {took}: {self._progress.boot_progress_text}"
                )
            case StoppingRuleStatus():
                print_message(
                    f"{self._run_order_and_name_text(event.run)}: {one_line(event.message)}"
                )
            case IntervalReported():
                self._print_newest_second(event.run)
            case RunFinished(record) if record.failure:
                run = self._run_order_and_name_text(record.run)
                why = one_line(f"{record.failure} {record.failure_hint or ''}".strip())
                print_message(f"{run}: {record.status.value}: {why}")
            case _:
                return

    def on_result(self, result: RunResult) -> None:
        """Tell a result with its verdict."""
        figures = _run_metrics_text(result)
        name = _run_name(result, result.repeat)
        steady = steadiness_text(result)
        level = result.verdict.level.value
        print_message(f"result {name}: {figures}: {level}{f', {steady}' if steady else ''}")

    def show_message(self, text: str) -> None:
        """One more line."""
        print_message(one_line(text))

    def _print_newest_second(self, run: PlannedRun) -> None:
        """The newest second that all hosts have told of, once."""
        loads = self._progress.completed_load_seconds
        if not loads or loads[-1].elapsed_s <= self._printed_s:
            return
        self._printed_s = loads[-1].elapsed_s
        print_message(
            f"{self._run_order_and_name_text(run)}: "
            f"{_load_of_second_and_eta_text(loads[-1], self._progress)}"
        )

    def _run_phase_and_duration_text(self, event: SessionPhaseStarted) -> str:
        named = event.run is not None and event.detail == event.run.point.title_text
        plain = not event.detail or named
        name = one_line(event.phase if plain else f"{event.phase.value}: {event.detail}")
        expected = ""
        if event.expected_s is not None and event.expected_s >= 1:
            is_limit = event.phase is SessionPhase.MEASURE and self._progress.can_end_early
            bound = "at most" if is_limit else "about"
            expected = f" ({bound} {format_duration_s(event.expected_s)})"
        if event.run is None or event.phase is SessionPhase.LAY_OUT:
            return name + expected
        makers = (
            self._progress.current_guest_count_text if event.phase is SessionPhase.MEASURE else ""
        )
        return (
            f"{self._run_order_and_name_text(event.run)}: "
            f"{name}{f', {makers}' if makers else ''}{expected}"
        )

    def _run_order_and_name_text(self, run: PlannedRun) -> str:
        return f"run {run.order}/{self._progress.run_count} {_run_name(run.point, run.repeat)}"


def choose_live_view(initial_progress: SessionProgress, *, is_quiet: bool) -> LiveView:
    """The view that fits standard error."""
    if is_quiet:
        return LiveView()
    return LivePanelView(initial_progress) if sys.stderr.isatty() else LinesView(initial_progress)


def _run_metrics_text(result: RunResult) -> str:
    """A run in a line."""
    if (
        rates := report_kinds().report_of_result(result).run_figures_text_if_not_iops(result)
    ) is not None:
        return rates
    metrics = result.metrics
    figures = (
        metric_value_text(metrics.get("iops")),
        metric_value_text(metrics.get("bw_bytes_per_s")),
        f"mean {metric_value_text(metrics.get('lat_ns_mean'))}",
        f"p99 {metric_value_text(metrics.get('lat_ns_p99'))}",
    )
    return ", ".join(figures)


def _load_of_second_and_eta_text(load: LoadSecond, progress: SessionProgress) -> str:
    latency = "–" if load.lat_ns_mean is None else format_ns(load.lat_ns_mean)
    rates = [f"{format_count(load.iops)} IOPS", format_rate_bytes(load.bw_bytes_per_s)]
    if progress.has_operation_rates:
        rates = [f"{format_count(load.iops)} ops/s"]
    means = [f"mean {latency}"] if progress.is_latency_reported_live else []
    means += [f"p99 {format_ns(load.lat_ns_p99)}"] if load.lat_ns_p99 else []
    parts = [f"{load.elapsed_s:.0f} s", *rates, *means]
    if progress.cpu_busy_share_by_host:
        busiest = max(progress.cpu_busy_share_by_host.values())
        parts.append(f"CPU {percent_text(busiest)}")
    parts.append(f"ETA {progress.remaining_text}")
    return ", ".join(parts)
