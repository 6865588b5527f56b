"""The rate of a run second by second, and what its seconds say: rule D, live decision or not.

With a rule the record is played to it as the run was, and the result is of the seconds between the
cut and the decision. A run of fixed length is judged for information: its numbers are those of the
time that was requested, and this says whether that time was steady. Log-structured stores, which
stall about once a minute, are judged by settings of their own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec.structs import replace

from iolab.analysis.window import EDGE_SLACK_NS, Window, last_submission_ns, to_controller_clock_ns
from iolab.core.run import HostRun, RunRecord
from iolab.core.samples import Floats, Ints, row_indexes_by_host, unique_io_mask
from iolab.core.stopping import (
    BLOCKS_MIN,
    RAW_BLOCK,
    Steadiness,
    SteadinessStatus,
    StoppingRuleSettings,
)
from iolab.record import Record
from iolab.stats.batches import EFFECTIVE_MIN
from iolab.stats.stopping import (
    LiveStoppingRule,
    StoppingDecision,
    StoppingStatus,
    judge_series,
    replay_stopping_rule,
)
from iolab.text import percent_text
from iolab.units import NS_PER_S

OperationWeights = Mapping[int, int]
"""How often a row of each operation counts as a whole one; 0 for those that are not named."""

NO_OPERATION_WEIGHTS: Final[OperationWeights] = {}
"""Where the rows of an interval are of one operation, each counts once."""

_Points = tuple[Ints, Floats]
"""Moments on the controller's clock (ns), and what was done until each."""

EXCESS_TOLERABLE: Final = 0.02
"""How far a result of fixed length may lie from its own steady part: the precision of a run."""

_REMAINING: Final = 3
"""Of a run of fixed length a third must remain after the cut, as rule D leaves it at the least; no
more than it wants of a long one."""


class FleetRateSeries(Record):
    """I/Os of each second, shape (seconds,), and when the first began (controller's clock, ns)."""

    start_ns: int
    counts: Floats

    def second_start_ns(self, second: float) -> int:
        """The moment so many seconds after the start."""
        return self.start_ns + round(second * NS_PER_S)


def fleet_rate_series(
    record: RunRecord, operation_weights: OperationWeights = NO_OPERATION_WEIGHTS
) -> FleetRateSeries | None:
    """The series of a record; None where its hosts shared no whole second."""
    each_host = row_indexes_by_host(record.intervals.host, len(record.hosts))
    hosts = [
        _cumulative_ios_of_host(record, index, rows, operation_weights)
        for index, rows in enumerate(each_host)
    ]
    if not hosts or not all(hosts):
        return None
    start_ns = max(min(int(times[0]) for times, _ in lines) for lines in hosts)
    end_ns = min(_host_end_ns(host, lines) for host, lines in zip(record.hosts, hosts, strict=True))
    seconds = (end_ns - start_ns) // NS_PER_S
    if seconds < 1:
        return None
    edges = np.arange(seconds + 1, dtype=np.float64) * NS_PER_S
    # Subtracted first: nanoseconds since the epoch have no exact floats.
    each = [line for lines in hosts for line in lines]
    done = sum(np.interp(edges, times - start_ns, counts) for times, counts in each)
    return FleetRateSeries(start_ns, np.asarray(np.diff(done), dtype=np.float64))


def _host_end_ns(host: HostRun, cumulative_ios_lines: list[_Points]) -> int:
    """A host's last second may end by the slack of edges after its last submission."""
    last_ns = max(int(times[-1]) for times, _ in cumulative_ios_lines)
    return min(last_ns, last_submission_ns(host, last_ns) + EDGE_SLACK_NS)


def _cumulative_ios_of_host(
    record: RunRecord, host_index: int, rows: Ints, operation_weights: OperationWeights
) -> list[_Points]:
    """What a host did over time, by its rows; empty for nothing.

    I/Os of both directions come in one interval. Operations with weights may have intervals of
    their own, so that each has a line, with what makes a whole operation of it.
    """
    table = record.intervals
    own_rows = rows[unique_io_mask(table.direction[rows])]
    if own_rows.size == 0:
        return []
    if not operation_weights:
        return [_cumulative_ios_over_time(record, host_index, own_rows)]
    parts = (
        (own_rows[table.direction[own_rows] == way], weight)
        for way, weight in operation_weights.items()
    )
    lines = (
        (_cumulative_ios_over_time(record, host_index, rows), weight)
        for rows, weight in parts
        if rows.size
    )
    return [(times, until * weight) for (times, until), weight in lines]


def _cumulative_ios_over_time(record: RunRecord, host_index: int, rows: Ints) -> _Points:
    """What those rows of a host's intervals add up to over time."""
    table = record.intervals
    _, first, each = np.unique(table.seq[rows], return_index=True, return_inverse=True)
    ios = np.bincount(each, weights=table.ios[rows].astype(np.float64))
    ends = to_controller_clock_ns(
        table.end_real_ns[rows][first], record.hosts[host_index].clock_offset_ns
    )
    starts = ends - table.span_ns[rows][first]
    # Both ends of each interval: where one is missing, nothing is known to have completed.
    times = np.maximum.accumulate(np.column_stack([starts, ends]).reshape(-1))
    until = np.cumsum(ios)
    counts = np.column_stack([until - ios, until]).reshape(-1)
    return times, counts


class SteadinessView(Record):
    """What rule D says of a run, and what a check needs beside it.

    `window` is what the rule counts, on the controller's clock. `relative_halves_difference`
    is that of its two halves, `stall_count` how often it stalled.
    `planned_window_relative_mean_excess` is how far the mean over the time that the result
    is of lies from the mean of the steady part, as a share of this.
    """

    steadiness: Steadiness
    window: Window
    relative_halves_difference: float
    stall_count: int
    planned_window_relative_mean_excess: float


def judge_steadiness(
    record: RunRecord,
    default_rule_settings: StoppingRuleSettings = RAW_BLOCK,
    operation_weights: OperationWeights = NO_OPERATION_WEIGHTS,
) -> SteadinessView | None:
    """What the run's seconds are worth; None where they are too few to say.

    By `default_rule_settings` is judged what has no rule of its own.
    """
    series = fleet_rate_series(record, operation_weights)
    if series is None:
        return None
    settings = record.rule or _rule_for_fixed_length(len(series.counts), default_rule_settings)
    if settings is None or len(series.counts) < BLOCKS_MIN * settings.block_s:
        return None
    decision = (
        _replay_stopping_rule(series, settings)
        if record.rule
        else judge_series(series.counts, settings)
    )
    window = Window(
        series.second_start_ns(decision.cut_s), series.second_start_ns(decision.seconds)
    )
    excess = 0.0 if record.rule else _planned_window_relative_mean_excess(record, series, decision)
    return SteadinessView(
        _steadiness_record(decision, settings),
        window,
        decision.relative_halves_difference,
        decision.stall_count,
        excess,
    )


def rule_measured_window(record: RunRecord) -> Window | None:
    """What a run that its rule ended is measured over; None where warm-up and runtime say it."""
    steady = judge_steadiness(record) if record.rule else None
    return steady.window if steady else None


def _replay_stopping_rule(
    series: FleetRateSeries, settings: StoppingRuleSettings
) -> StoppingDecision:
    """The live decision again; of a run that ended before there was one, what it is worth."""
    decision = replay_stopping_rule(series.counts, settings)
    if decision.status is StoppingStatus.RUNNING:
        return judge_series(series.counts[: settings.longest_s], settings)
    return decision


def _rule_for_fixed_length(
    seconds: int, default_rule_settings: StoppingRuleSettings
) -> StoppingRuleSettings | None:
    """The settings for a run of that length; None for one too short to be judged."""
    retained_s = min(default_rule_settings.retained_s, seconds // _REMAINING)
    retained_s = max(retained_s, 2 * default_rule_settings.batches_min)
    if seconds < default_rule_settings.cut_least_s + retained_s:
        return None
    return replace(
        default_rule_settings, shortest_s=seconds, longest_s=seconds, retained_s=retained_s
    )


def _planned_window_relative_mean_excess(
    record: RunRecord, series: FleetRateSeries, decision: StoppingDecision
) -> float:
    counted = series.counts[round(record.warmup_s) :]
    if decision.mean <= 0 or len(counted) == 0:
        return 0.0
    return float(counted.mean()) / decision.mean - 1


def _steadiness_record(decision: StoppingDecision, settings: StoppingRuleSettings) -> Steadiness:
    return Steadiness(
        status=SteadinessStatus(decision.status.value),
        cut_s=decision.cut_s,
        seconds=decision.seconds,
        mean=decision.mean,
        half_width=decision.relative_half_width,
        df=decision.df,
        period_s=decision.period_s,
        cycles=decision.cycles,
        tau_s=decision.tau_s,
        reasons=tuple(_unsteady_reasons(decision, settings)),
    )


def _unsteady_reasons(decision: StoppingDecision, settings: StoppingRuleSettings) -> Iterator[str]:
    """Sentences on why the status is not ok."""
    match decision.status:
        case StoppingStatus.TRANSIENT if not decision.is_steady:
            fitted = (
                f"; it fades with a time constant of {decision.tau_s:.0f} s"
                if decision.tau_s
                else ""
            )
            yield f"Its start still showed after {decision.seconds} s{fitted}."
        case StoppingStatus.TRANSIENT:
            yield (
                "The second half's rate differs by "
                f"{percent_text(decision.relative_halves_difference, is_signed=True)} from the "
                f"first's, ±{percent_text(settings.equivalence * settings.precision)} may."
            )
        case StoppingStatus.CYCLE:
            yield (
                f"It swings with a period of {decision.period_s} s, of which "
                f"{decision.cycles} whole ones were seen; {settings.cycles_min} must."
            )
        case StoppingStatus.IMPRECISE:
            stalls = f" It stalled {decision.stall_count} times." if decision.stall_count else ""
            yield (
                f"Its mean is known to ±{percent_text(decision.relative_half_width)}, "
                f"±{percent_text(settings.precision)} was asked.{stalls}"
            )
        case StoppingStatus.CORRELATED:
            yield (
                f"Too correlated for one run: {decision.seconds - decision.cut_s} s are worth "
                f"{decision.effective_count:.0f} independent measurements, {EFFECTIVE_MIN:.0f} "
                "must be. "
                "Take repeats."
            )
        case _:
            return


class FleetStoppingRule:
    """See `StoppingRule`. The seconds are those of `fleet_rate_series`.

    A second counts when every host has told of all of it, however late.
    """

    def __init__(self, hosts: Sequence[str], settings: StoppingRuleSettings) -> None:
        self._settings = settings
        self._live = LiveStoppingRule(settings)
        self._lines = {host: _CumulativeIos() for host in hosts}
        self._edge_ns: int | None = None
        self._done = 0.0
        self._waiting = len(self._lines)

    def add_interval(self, host_name: str, end_real_ns: int, span_ns: int, io_count: int) -> None:
        """Take a host's next interval, on the controller's clock."""
        line = self._lines[host_name]
        first, before_ns = line.end_ns is None, line.end_ns or 0
        line.add_interval(end_real_ns, span_ns, io_count)
        now_ns = line.end_ns or 0
        edge_ns = self._edge_ns
        if first if edge_ns is None else before_ns < edge_ns <= now_ns:
            self._waiting -= 1
        while self._waiting == 0 and not self._live.may_end_run:
            self._judge_complete_seconds()

    @property
    def is_satisfied(self) -> bool:
        """Whether the rule is satisfied; a run at its longest ends by itself."""
        decision = self._live.decision
        satisfied = decision is not None and decision.status is StoppingStatus.OK
        return satisfied and self._live.second_count < self._settings.longest_s

    @property
    def status_text(self) -> str:
        """How the run stands, for people: `steady, 1 of 2 looks`."""
        decision = self._live.last_judgement
        if decision is None:
            return f"first look at {self._settings.shortest_s} s"
        if decision.status is StoppingStatus.OK:
            satisfied = self._live.satisfied_judgement_count
            return f"steady, {satisfied} of {self._settings.consecutive} looks"
        if decision.status is StoppingStatus.IMPRECISE:
            return f"imprecise, ±{percent_text(min(decision.relative_half_width, 9.99))}"
        if decision.status is StoppingStatus.CORRELATED:
            return (
                f"too correlated, {decision.effective_count:.0f} of {EFFECTIVE_MIN:.0f} independent"
            )
        return decision.status.value

    def _judge_complete_seconds(self) -> None:
        """One more edge between seconds: hand the second before it to the rule."""
        lines = self._lines.values()
        if self._edge_ns is None:
            self._edge_ns = max(line.start_ns for line in lines)
            self._done = sum(line.advance_and_count_ios(self._edge_ns) for line in lines)
        else:
            done = sum(line.advance_and_count_ios(self._edge_ns) for line in lines)
            self._live.add_second(max(done - self._done, 0.0))
            self._done = done
        self._edge_ns += NS_PER_S
        edge_ns = self._edge_ns
        self._waiting = sum(line.end_ns is None or line.end_ns < edge_ns for line in lines)


class _CumulativeIos:
    """One host's I/Os over time, as far as they are still asked for."""

    def __init__(self) -> None:
        self.start_ns = 0
        self.end_ns: int | None = None
        self._ios = 0
        self._open: deque[tuple[int, int, int, int]] = deque()

    def add_interval(self, end_ns: int, span_ns: int, io_count: int) -> None:
        """The next interval; its start is put right where the host's clock stepped back."""
        start_ns = end_ns - span_ns
        if self.end_ns is None:
            self.start_ns = start_ns
        else:
            start_ns = max(start_ns, self.end_ns)
        end_ns = max(end_ns, start_ns)
        self._open.append((start_ns, end_ns, self._ios, io_count))
        self._ios += io_count
        self.end_ns = end_ns

    def advance_and_count_ios(self, at_ns: int) -> float:
        """I/Os until a moment, which may not come before one that was requested earlier."""
        while len(self._open) > 1 and self._open[1][0] <= at_ns:
            self._open.popleft()
        start_ns, end_ns, before, ios = self._open[0]
        if at_ns <= start_ns:
            return float(before)
        if at_ns >= end_ns:
            return float(before + ios)
        return before + ios * (at_ns - start_ns) / (end_ns - start_ns)
