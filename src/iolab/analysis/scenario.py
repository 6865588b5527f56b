"""Figures of each phase of a run, from the seconds that it keeps.

An engine counts an I/O when it ends, and its bin says how long it took: here it is counted in the
second in which it was due (or submitted, where nothing is ever due), known to one interval. So a
stall is seen where it began. Seconds of all hosts are added up by the controller's clock.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from iolab.analysis.rebuild import rebuild_rate
from iolab.analysis.view import RunView
from iolab.analysis.window import EDGE_SLACK_NS, Window, interval_ends_ns, to_controller_clock_ns
from iolab.core.bins import BIN_COUNT
from iolab.core.histogram import LOWER_NS, MIDDLE_NS, UPPER_NS, bin_index_of_ns
from iolab.core.metric import (
    EventFigures,
    Metric,
    NeighbourFigures,
    NeighbourLimitFigures,
    NeighbourPhaseFigures,
    PhaseFigures,
    ScenarioFigures,
    SeriesChange,
)
from iolab.core.metric_spec import phase_metric_key, scenario_metric_key
from iolab.core.run import RunRecord
from iolab.core.samples import BinTable, Floats, IntervalTable, Ints, unique_io_mask
from iolab.core.scenario import READBACK_PHASE, EventOutcome, PhaseSpan, ScenarioOutcome
from iolab.core.workload import Direction
from iolab.record import Record, field_names
from iolab.stats.change_points import ChangePoint, find_change_points, level_noise_sd
from iolab.stats.special import student_quantile
from iolab.stats.steady_state import MAD_TO_SD
from iolab.text import percent_text
from iolab.units import NS_PER_S

BLOCK_S: Final = 3
"""Seconds whose mean counts as one value: those next to each other depend on each other."""

BLOCKS_MIN: Final = 3
"""Fewer have no interval."""

IOS_MIN: Final = 20
"""A second with fewer I/Os is joined to the next before it has a p99."""

STALLED_RATE_SHARE: Final = 0.1
"""A second with less of a stream's rate in the baseline counts as one without the storage."""

STREAM_IOPS_MIN: Final = 20.0
"""A stream with fewer I/Os a second in the baseline has seconds with a tenth of them by chance: of
Poisson's with a mean of 20 it is one in 10^7, with one of 5 one in 150."""

SILENT_S: Final = 3.0
"""A host without any I/O for so long before the end stands still, or makes no load any more."""

HELD_S: Final = 0.001
"""The least time within which I/Os are due that an event holds up."""

BAND_MIN: Final = 0.05
BAND_SIGMAS: Final = 4.0
HOLD_S: Final = 5
"""So many seconds in a row within the baseline's band mean that it is back."""

NOISE_MIN: Final = 0.01
"""The least scatter (of logarithms) of a series whose changes are looked for."""

EVENT_DISTANCE_MAX_S: Final = 3.0
"""A change so near to an event, or to what a witness saw, is its effect."""

EQUAL_LOAD: Final = 0.05
"""Rates of two phases further apart are not the same offered load."""

BIN_WIDTH: Final = 0.02
"""Latencies are known to a bin of at most 1 % each."""

_CONFIDENCE: Final = 0.975


class PerSecondHistograms:
    """I/Os by the second in which they were due, from the beginning of the first phase on.

    `streams` has the I/Os of each second by host and direction. A last second that the phases do
    not fill is left out.
    """

    def __init__(self, record: RunRecord, scenario: ScenarioOutcome) -> None:
        self._record = record
        self.start_ns = scenario.phases[0].start_real_ns
        self._end_ns = scenario.phases[-1].end_real_ns
        self.seconds = max(math.floor((self._end_ns - self.start_ns) / NS_PER_S + 0.05), 1)
        self.streams: dict[tuple[int, int], Floats] = {}
        self._lat_ns = _latency_of_each_histogram_bin_ns(record)
        moments = (m for e in scenario.events for m in (e.start_real_ns, e.undone_real_ns) if m)
        moments_s = sorted(map(self.seconds_since_first_phase, moments))
        self._spread_ios_over_seconds(record, moments_s)

    def _spread_ios_over_seconds(self, record: RunRecord, moments_s: Sequence[float]) -> None:
        """Keep second, bin and number of I/Os: most bins of most seconds have none."""
        table, bins = record.intervals, record.bins
        ends = interval_ends_ns(record) - self.start_ns
        stride = int(table.seq.max(initial=0)) + 1
        keys = table.host.astype(np.int64) * stride + table.seq
        order = np.argsort(keys, kind="stable")
        once = unique_io_mask(bins.direction)
        host, seq = bins.host[once].astype(np.int64), bins.seq[once].astype(np.int64)
        bin_index, count = bins.bin[once].astype(np.int64), bins.count[once].astype(np.float64)
        rows = order[np.searchsorted(keys[order], host * stride + seq)]
        last = (ends[rows] - self._lat_ns[bin_index]) / NS_PER_S
        first = last - np.maximum(table.span_ns[rows], 1) / NS_PER_S
        ended = ends[rows] / NS_PER_S
        latest = ended - LOWER_NS[bin_index] / NS_PER_S
        if record.run.point.job.is_paced:
            # What waited for a stall was due one after the other: the last bin has it all.
            last = np.where(bin_index == BIN_COUNT - 1, latest, last)
        begin_s = 0.0
        for moment_s in moments_s:
            before = (ended > begin_s) & (ended <= moment_s)
            if not before.any():
                continue
            # Longer than all that ended before an event, an I/O is one that the event held up: it
            # was due then at the earliest, or a moment before, and not an interval before.
            held = (bin_index > bin_index[before].max()) & (first < moment_s) & (moment_s < latest)
            first = np.where(held, moment_s, first)
            last = np.where(held, np.maximum(last, moment_s + HELD_S), last)
            begin_s = moment_s
        span_s, direction = last - first, bins.direction[once].astype(np.int64)
        pairs = np.unique(np.stack((host, direction), axis=1), axis=0).tolist()
        self.streams = {(a, b): np.zeros(self.seconds) for a, b in pairs}
        parts = [(np.zeros(0, np.int32), np.zeros(0, np.int16), np.zeros(0))]
        seconds_at = np.floor(first)
        left = np.arange(len(first))
        while left.size:
            low = np.maximum(first[left], seconds_at[left])
            high = np.minimum(last[left], seconds_at[left] + 1)
            share = np.clip((high - low) / span_s[left], 0.0, 1.0)
            at = seconds_at[left].astype(np.int64)
            inside = (at >= 0) & (at < self.seconds) & (share > 0)
            rows_inside, at, ios = left[inside], at[inside], (count[left] * share)[inside]
            bins_inside = bin_index[rows_inside].astype(np.int16)
            parts.append((at.astype(np.int32), bins_inside, ios))
            for pair, series in self.streams.items():
                own = (host[rows_inside] == pair[0]) & (direction[rows_inside] == pair[1])
                np.add.at(series, at[own], ios[own])
            seconds_at += 1
            left = left[seconds_at[left] < last[left]]
        at, bin_index, ios = (np.concatenate(column) for column in zip(*parts, strict=True))
        by_second = np.argsort(at, kind="stable")
        self._bins, self._ios = bin_index[by_second], ios[by_second]
        self._edges = np.searchsorted(at[by_second], np.arange(self.seconds + 1))

    def bin_counts(self, seconds_slice: slice) -> Floats:
        """I/Os of a stretch of seconds by the bin of their latency."""
        start, stop, _ = seconds_slice.indices(self.seconds)
        own = slice(self._edges[start], self._edges[max(stop, start)])
        counts = np.bincount(self._bins[own], self._ios[own], BIN_COUNT)
        return np.asarray(counts, dtype=np.float64)

    def percentile_ns(self, counts: Floats, quantile: float) -> float:
        """That of I/Os by the bin of their latency."""
        total = np.cumsum(counts)
        return float(self._lat_ns[int(np.searchsorted(total, quantile * total[-1]))])

    def mean_ns(self, counts: Floats) -> float:
        """Their mean latency."""
        return float((counts * self._lat_ns).sum() / counts.sum())

    @cached_property
    def ios_by_second(self) -> Floats:
        """I/Os of each second."""
        return np.asarray(sum(self.streams.values(), start=np.zeros(self.seconds)))

    @cached_property
    def p99s_ns(self) -> Floats:
        """The p99 of each second, not a number where it has too few I/Os."""
        return self.percentiles_ns(0.99)

    def percentiles_ns(self, quantile: float) -> Floats:
        """A percentile of each second, not a number where it has too few I/Os."""
        values = np.full(self.seconds, math.nan)
        for second in np.flatnonzero(self.ios_by_second >= IOS_MIN).tolist():
            values[second] = self.percentile_ns(
                self.bin_counts(slice(second, second + 1)), quantile
            )
        return values

    def seconds_since_first_phase(self, real_ns: int) -> float:
        """Seconds since the first phase began."""
        return (real_ns - self.start_ns) / NS_PER_S

    def phase_seconds_slice(self, span: PhaseSpan) -> slice:
        """The whole seconds of a phase."""
        first = math.ceil(self.seconds_since_first_phase(span.start_real_ns) - 0.05)
        last = math.floor(self.seconds_since_first_phase(span.end_real_ns) + 0.05)
        return slice(first, max(last, first))

    def p99s_with_sparse_seconds_joined_ns(self, span: PhaseSpan) -> list[float]:
        """The p99 of each second, one with few I/Os joined to the next."""
        start, stop, _ = self.phase_seconds_slice(span).indices(self.seconds)
        values, first = [], start
        for second in range(start, stop):
            if self.ios_by_second[first : second + 1].sum() >= IOS_MIN:
                counts = self.bin_counts(slice(first, second + 1))
                values.append(self.percentile_ns(counts, 0.99))
                first = second + 1
        return values

    def stalled_flags_by_second(self, baseline: slice) -> Floats:
        """1 for each second in which any stream did next to nothing of its rate in the baseline."""
        stalled = np.zeros(self.seconds)
        for series in self.streams.values():
            usual = float(np.median(series[baseline])) if series[baseline].size else 0.0
            if usual >= STREAM_IOPS_MIN:
                stalled[series < STALLED_RATE_SHARE * usual] = 1.0
        return stalled

    @cached_property
    def silences(self) -> tuple[Silence, ...]:
        """When streams returned nothing, the last ones until the end of the phases."""
        return tuple(_find_silences(self._record, self.start_ns, self._end_ns, self._lat_ns))

    def longest_io_low_middle_high_s(self, counts: Floats) -> tuple[float, float, float]:
        """Lower edge, middle and upper edge of the longest bin of these; zeros of none.

        It is the engine's own longest I/O where that is in the bin: the last bin has all that took
        longer than 17 s.
        """
        used = np.flatnonzero(counts >= 0.5)
        if not used.size:
            return 0.0, 0.0, 0.0
        longest = int(used[-1])
        edges = (LOWER_NS[longest], MIDDLE_NS[longest], UPPER_NS[longest])
        longest_ns = _longest_io_ns(self._record)
        if bin_index_of_ns(longest_ns) == longest:
            edges = (longest_ns,) * 3
        low, middle, high = (float(edge) / NS_PER_S for edge in edges)
        return low, middle, high


class Silence(Record):
    """A time in which a host and direction returned nothing, and how long it seems to have been.

    `stall_s` tells more than its intervals: when those that waited, which ended it, were submitted.
    """

    begin_ns: int
    end_ns: int
    stall_s: float
    is_ended: bool

    @property
    def seconds(self) -> float:
        """Its length, in whole intervals."""
        return (self.end_ns - self.begin_ns) / NS_PER_S

    def is_in(self, span: PhaseSpan) -> bool:
        """Whether it touches a phase."""
        return self.begin_ns < span.end_real_ns and self.end_ns > span.start_real_ns

    def seconds_counted_in(self, span: PhaseSpan) -> float:
        """All of it in the phase in which it began, in a later one what it has of that."""
        if self.begin_ns >= span.start_real_ns:
            return math.inf
        return (min(self.end_ns, span.end_real_ns) - span.start_real_ns) / NS_PER_S


def _latency_of_each_histogram_bin_ns(record: RunRecord) -> Floats:
    """What the I/Os of each bin took: of the last, which has all longer ones, the longest."""
    lat_ns = MIDDLE_NS.astype(np.float64)
    lat_ns[-1] = max(lat_ns[-1], _longest_io_ns(record))
    return lat_ns


def _longest_io_ns(record: RunRecord) -> int:
    """The longest of all, as engines tell it; 0 where they do not."""
    totals = [host.totals for host in record.hosts if host.totals]
    all_ways = [way for total in totals for way in (total.read, total.write) if way]
    return max((way.lat_max_ns for way in all_ways), default=0)


def _find_silences(
    record: RunRecord, start_ns: int, end_ns: int, lat_ns: Floats
) -> Iterator[Silence]:
    """Those of each host and direction.

    One began in the interval before those without I/Os and ended in the one after, which has those
    that waited. In a closed loop most were submitted just before or after its beginning; of a load
    that goes on submitting, only the longest waited for all of it.
    """
    table, bins = record.intervals, record.bins
    typical = np.max if record.run.point.job.is_paced else np.median
    for host, direction, rows in _rows_with_io_by_stream(record):
        offset_ns = record.hosts[host].clock_offset_ns
        ends = to_controller_clock_ns(table.end_real_ns[rows], offset_ns)
        spans = table.span_ns[rows]
        starts = np.asarray(ends - spans)
        for place in np.flatnonzero(starts[1:] - ends[:-1] > spans[1:] // 2).tolist():
            begin, end = int(ends[place]), int(starts[place + 1])
            own = (bins.host == host) & (bins.seq == table.seq[rows[place + 1]]) & (bins.count > 0)
            own &= (bins.direction == direction) & (lat_ns[bins.bin] >= end - begin)
            waited = np.repeat(lat_ns[bins.bin[own]], bins.count[own])
            stall_ns = float(typical(waited)) if waited.size else 0.0
            most_ns = end - begin + int(spans[place]) + int(spans[place + 1])
            stall_s = min(max(stall_ns, end - begin), most_ns) / NS_PER_S
            yield Silence(begin, end, stall_s, is_ended=True)
        last_ns = int(ends[-1]) if ends.size else start_ns
        if end_ns - last_ns > SILENT_S * NS_PER_S:
            yield Silence(last_ns, end_ns, (end_ns - last_ns) / NS_PER_S, is_ended=False)


def _rows_with_io_by_stream(record: RunRecord) -> Iterator[tuple[int, int, Ints]]:
    """Hosts and directions with the rows of the intervals in which they did I/O."""
    table = record.intervals
    for host in range(len(record.hosts)):
        for direction in np.unique(table.direction[unique_io_mask(table.direction)]).tolist():
            own = (table.host == host) & (table.direction == direction) & (table.ios > 0)
            yield host, direction, np.flatnonzero(own)


def scenario_figures(view: RunView) -> ScenarioFigures | None:
    """The figures of a run with phases; None of others."""
    record, scenario = view.record, view.record.scenario
    if scenario is None or not scenario.phases or not len(record.intervals):
        return None
    seconds = PerSecondHistograms(record, scenario)
    fault = fault_event(scenario)
    is_paced = record.run.point.job.is_paced
    stalled = seconds.stalled_flags_by_second(seconds.phase_seconds_slice(scenario.phases[0]))
    levels = _change_detection_series(seconds, scenario, is_paced=is_paced)
    phases = tuple(
        _phase_figures(seconds, record, span, scenario, stalled) for span in scenario.phases
    )
    checked_blocks, lost_blocks = _checked_and_lost_blocks(scenario)
    return ScenarioFigures(
        phases=phases,
        rates=tuple(round(float(rate), 2) for rate in seconds.ios_by_second),
        start_real_ns=seconds.start_ns,
        detection_s=_seconds_after_fault(fault, fault.unseen_real_ns, fault.seen_real_ns)
        if fault
        else None,
        redundancy_s=_seconds_to_redundancy(scenario, fault) if fault else None,
        baseline_s=_seconds_to_baseline(seconds, levels, fault, phases) if fault else None,
        failed_ios=sum(
            host.totals.generator.failed_ios
            for host in record.hosts
            if host.totals and host.totals.generator
        ),
        checked_blocks=checked_blocks,
        lost_blocks=lost_blocks,
        is_new_mount=_is_read_through_new_mount(scenario),
        p99s_ns=_values_with_none_for_nan(seconds.p99s_ns),
        p50s_ns=_values_with_none_for_nan(seconds.percentiles_ns(0.5)),
        events=tuple(_event_figures(seconds, event) for event in scenario.events),
        unhealthy_spans_s=tuple(_unhealthy_spans_s(seconds, scenario)),
        changed_metric="lat_ns_p99" if is_paced else "iops",
        changes=tuple(_series_change(seconds, scenario, change) for change in levels[0].changes),
        rebuild_bytes_per_s=_rebuild_rate_metric(view, scenario, fault) if fault else None,
        stalled_at_s=tuple(np.flatnonzero(stalled).tolist()),
        neighbours=figures_of_neighbour_loads(view, scenario),
        fault=fault.id if fault else "",
    )


def _is_read_through_new_mount(scenario: ScenarioOutcome) -> bool | None:
    """Whether every host read its blocks through a new mount; None where one has no mount."""
    mounts = [readback.is_new_mount for readback in scenario.readbacks]
    return None if not mounts or None in mounts else all(mounts)


def _checked_and_lost_blocks(scenario: ScenarioOutcome) -> tuple[int | None, int | None]:
    """Blocks that were read after the last phase, and lost ones; None where that is not known."""
    readbacks = scenario.readbacks
    if not readbacks or scenario.first_readback_damaged_before_events is not None:
        return None, None
    lost = [scenario.newly_lost_blocks(readback) for readback in readbacks]
    known = sum(count or 0 for count in lost)
    is_known = known > 0 or None not in lost
    is_complete = not any(readback.incomplete_reason for readback in readbacks)
    checked = sum(readback.checked_blocks for readback in readbacks)
    return checked if is_complete or known else None, known if is_known else None


def _values_with_none_for_nan(series: Floats) -> tuple[float | None, ...]:
    return tuple(None if math.isnan(value) else value for value in series.tolist())


def scenario_metrics(figures: ScenarioFigures | None) -> dict[str, Metric]:
    """The figures as metrics of the result, so that repeats and sessions are compared by them."""
    if figures is None:
        return {}
    found = {
        phase_metric_key(phase.id, name): metric
        for phase in figures.phases
        for name, metric in _metric_fields_by_name(phase).items()
    }
    return found | {
        scenario_metric_key(name): metric
        for name, metric in _metric_fields_by_name(figures).items()
    }


def _metric_fields_by_name(figures: PhaseFigures | ScenarioFigures) -> Mapping[str, Metric]:
    values = ((name, getattr(figures, name)) for name in field_names(type(figures)))
    return {name: value for name, value in values if isinstance(value, Metric)}


def baseline_window(record: RunRecord) -> Window | None:
    """The first phase, by which a run with phases is judged; None of others."""
    if record.scenario is None or not record.scenario.phases:
        return None
    first = record.scenario.phases[0]
    return Window(first.start_real_ns, first.end_real_ns)


def record_cut_to_window(record: RunRecord, window: Window) -> RunRecord:
    """The record with the intervals alone that end in a window."""
    table = record.intervals
    ends = interval_ends_ns(record)
    inside = (ends > window.start_ns) & (ends <= window.end_ns + EDGE_SLACK_NS)
    columns = {name: getattr(table, name)[inside] for name in field_names(IntervalTable)}
    return replace(record, intervals=IntervalTable(**columns))


def fault_event(scenario: ScenarioOutcome) -> EventOutcome | None:
    """The event whose cost a run shows: the first action that a witness is to see, else the first.

    None where no action began before the end of the last phase.
    """
    actions = [
        event
        for event in scenario.events
        if event.is_action and event.start_real_ns is not None and event.phase != READBACK_PHASE
    ]
    return min(actions, key=lambda e: (e.expected is None, e.start_real_ns), default=None)


def first_witnessed_event(scenario: ScenarioOutcome) -> EventOutcome | None:
    """The first action that a witness is to see, also one that did not begin."""
    actions = [
        event
        for event in scenario.events
        if event.is_action and event.expected is not None and event.phase != READBACK_PHASE
    ]
    return min(actions, key=lambda e: e.start_real_ns or e.due_real_ns, default=None)


def _phase_figures(
    second_histograms: PerSecondHistograms,
    record: RunRecord,
    span: PhaseSpan,
    scenario: ScenarioOutcome,
    stalled_flags: Floats,
) -> PhaseFigures:
    own, first = (
        second_histograms.phase_seconds_slice(span),
        second_histograms.phase_seconds_slice(scenario.phases[0]),
    )
    rates, counts = second_histograms.ios_by_second[own], second_histograms.bin_counts(own)
    ratios, unequal = _p50_p99_and_mean_ratios_or_reason(
        second_histograms, own, first, is_paced=record.run.point.job.is_paced
    )
    has_any = bool((counts >= 0.5).any())
    p99s = second_histograms.p99s_with_sparse_seconds_joined_ns(span)
    longest_io_s = second_histograms.longest_io_low_middle_high_s(counts)[1]
    return PhaseFigures(
        id=span.id,
        start_s=second_histograms.seconds_since_first_phase(span.start_real_ns),
        seconds=span.seconds,
        ended_by=span.ended_by.value,
        iops=Metric(float(np.median(rates)) if rates.size else None, "1/s"),
        baseline_share=_rate_ratio_to_baseline(
            rates, second_histograms.ios_by_second[first], np.median
        ),
        lat_ns_p50=Metric(second_histograms.percentile_ns(counts, 0.5) if has_any else None, "ns"),
        lat_ns_p99=Metric(second_histograms.percentile_ns(counts, 0.99) if has_any else None, "ns"),
        worst_second_ns_p99=Metric(max(p99s, default=None), "ns"),
        longest_io_ns=Metric(longest_io_s * NS_PER_S if has_any else None, "ns"),
        stalled_s=int(stalled_flags[own].sum()),
        longest_stall_s=_longest_stall(second_histograms, record, span),
        lat_ns_mean=Metric(second_histograms.mean_ns(counts) if has_any else None, "ns"),
        p50_ratio=ratios[0],
        p99_ratio=ratios[1],
        mean_ratio=ratios[2],
        unequal_load=unequal,
        served_share=_rate_ratio_to_baseline(
            rates, second_histograms.ios_by_second[first], np.mean
        ),
    )


def _p50_p99_and_mean_ratios_or_reason(
    second_histograms: PerSecondHistograms,
    phase_seconds: slice,
    baseline_seconds: slice,
    *,
    is_paced: bool,
) -> tuple[tuple[Metric, Metric, Metric], str]:
    """p50, p99 and mean of a phase over those of the first, or why they are not to be compared.

    A load that waits for its own I/Os offers less where these take longer, and one that falls
    behind its rate was not served as much: then latencies are those of different loads.
    """
    none = (Metric(None, "x"),) * 3
    if phase_seconds == baseline_seconds:
        return none, ""
    if not is_paced:
        return none, "the load has no fixed rate: it offers less where its I/Os take longer"
    rates = [second_histograms.ios_by_second[part] for part in (phase_seconds, baseline_seconds)]
    if not all(rate.size for rate in rates) or not rates[1].mean():
        return none, "nothing was measured"
    share = float(rates[0].mean() / rates[1].mean())
    if abs(share - 1) > EQUAL_LOAD:
        return none, f"the load came to {percent_text(share)} of the first phase's"
    statistics = (
        lambda counts: second_histograms.percentile_ns(counts, 0.5),
        lambda counts: second_histograms.percentile_ns(counts, 0.99),
        second_histograms.mean_ns,
    )
    p50, p99, mean = (
        _latency_ratio(second_histograms, phase_seconds, baseline_seconds, value)
        for value in statistics
    )
    return (p50, p99, mean), ""


def _latency_ratio(
    second_histograms: PerSecondHistograms,
    phase_seconds: slice,
    baseline_seconds: slice,
    statistic: Callable[[Floats], float],
) -> Metric:
    """A latency of a phase over that of the first, with the interval of the values of blocks.

    It is no narrower than the bins of the two latencies.
    """
    value = statistic(second_histograms.bin_counts(phase_seconds)) / statistic(
        second_histograms.bin_counts(baseline_seconds)
    )
    blocks = [
        np.array(
            [
                statistic(counts)
                for start in range(part.start, part.stop - BLOCK_S + 1, BLOCK_S)
                if (counts := second_histograms.bin_counts(slice(start, start + BLOCK_S))).sum()
                >= 1
            ]
        )
        for part in (phase_seconds, baseline_seconds)
    ]
    half = _log_ratio_half_width(*blocks)
    if half is None:
        return Metric(value, "x")
    half = max(half, BIN_WIDTH)
    low, high = value * math.exp(-half), value * math.exp(half)
    return Metric(value, "x", low, high, int(blocks[0].size))


def _log_ratio_half_width(values: Floats, baseline_values: Floats) -> float | None:
    """Half of the 95 % interval of the logarithm of a ratio of means, Welch's; None of too few."""
    blocks = (values, baseline_values)
    if min(block.size for block in blocks) < BLOCKS_MIN or min(b.min() for b in blocks) <= 0:
        return None
    variances = [float(np.log(block).var(ddof=1)) / block.size for block in blocks]
    spread = sum(variances)
    if not spread:
        return 0.0
    df = spread**2 / sum(v**2 / (b.size - 1) for v, b in zip(variances, blocks, strict=True))
    return student_quantile(_CONFIDENCE, df) * math.sqrt(spread)


def figures_of_neighbour_loads(
    view: RunView, scenario: ScenarioOutcome
) -> tuple[NeighbourFigures, ...]:
    """What each load that an event began was like."""
    events = {event.id: event for event in scenario.events}
    names = dict.fromkeys(neighbour.event for neighbour in view.record.neighbours)
    return tuple(
        _figures_of_neighbour(view, scenario, events[name]) for name in names if name in events
    )


def _figures_of_neighbour(
    view: RunView, scenario: ScenarioOutcome, event: EventOutcome
) -> NeighbourFigures:
    record = _cut_neighbour_run_record(view.record, event.id)
    seconds = PerSecondHistograms(record, scenario)
    active = _whole_seconds_slice(seconds, event.start_real_ns, event.undone_real_ns)
    phases = []
    for span in scenario.phases:
        phase = seconds.phase_seconds_slice(span)
        part = slice(max(phase.start, active.start), min(phase.stop, active.stop))
        if part.stop > part.start:
            phases.append(_neighbour_phase_figures(seconds, record, span.id, part))
    hosts = [host.totals for host in record.hosts]
    return NeighbourFigures(
        event=event.id,
        workload=record.run.point.workload,
        hosts=tuple(host.host for host in record.hosts),
        phases=tuple(phases),
        rates=tuple(round(float(rate), 2) for rate in seconds.ios_by_second),
        silent_s=int((seconds.ios_by_second[active] <= 0).sum()),
        failed_ios=sum(t.generator.failed_ios for t in hosts if t and t.generator),
        limit_figures=tuple(_neighbour_limit_figures(view, scenario, record, event.id)),
    )


def _cut_neighbour_run_record(record: RunRecord, event: str) -> RunRecord:
    """What one neighbour did, as the record of a run of its own."""
    places = [place for place, item in enumerate(record.neighbours) if item.event == event]
    runs = [record.neighbours[place] for place in places]
    intervals, bins = record.neighbour_intervals, record.neighbour_bins
    if intervals is None or bins is None:
        raise ValueError("a record with neighbours has their tables")
    rows, bin_rows = np.isin(intervals.host, places), np.isin(bins.host, places)
    cut_intervals = {name: getattr(intervals, name)[rows] for name in field_names(IntervalTable)}
    cut_bins = {name: getattr(bins, name)[bin_rows] for name in field_names(BinTable)}
    for columns in (cut_intervals, cut_bins):
        columns["host"] = np.searchsorted(places, columns["host"])
    return replace(
        record,
        run=replace(record.run, point=runs[0].point),
        hosts=tuple(run.host for run in runs),
        intervals=IntervalTable(**cut_intervals),
        bins=BinTable(**cut_bins),
    )


def _whole_seconds_slice(
    second_histograms: PerSecondHistograms, start_ns: int | None, end_ns: int | None
) -> slice:
    """The whole seconds between two moments, of which None is never and the end of the phases."""
    if start_ns is None:
        return slice(0, 0)
    first = max(math.ceil(second_histograms.seconds_since_first_phase(start_ns) - 0.05), 0)
    last = (
        second_histograms.seconds
        if end_ns is None
        else math.floor(second_histograms.seconds_since_first_phase(end_ns) + 0.05)
    )
    return slice(first, max(min(last, second_histograms.seconds), first))


def _neighbour_phase_figures(
    second_histograms: PerSecondHistograms, record: RunRecord, phase: str, phase_seconds: slice
) -> NeighbourPhaseFigures:
    rates, counts = (
        second_histograms.ios_by_second[phase_seconds],
        second_histograms.bin_counts(phase_seconds),
    )
    has_any = bool(counts.sum() >= 1)
    iops = float(rates.mean())
    return NeighbourPhaseFigures(
        id=phase,
        seconds=float(phase_seconds.stop - phase_seconds.start),
        iops=Metric(iops, "1/s"),
        bw_bytes_per_s=Metric(iops * _mean_io_bytes(record), "bytes/s"),
        lat_ns_p50=Metric(second_histograms.percentile_ns(counts, 0.5) if has_any else None, "ns"),
        lat_ns_p99=Metric(second_histograms.percentile_ns(counts, 0.99) if has_any else None, "ns"),
    )


def _mean_io_bytes(record: RunRecord) -> float:
    table = record.intervals
    once = unique_io_mask(table.direction)
    ios = float(table.ios[once].sum())
    return float(table.bytes[once].sum()) / ios if ios else 0.0


def _neighbour_limit_figures(
    view: RunView, scenario: ScenarioOutcome, record: RunRecord, neighbour: str
) -> Iterator[NeighbourLimitFigures]:
    """What a neighbour did while events limited it, as it was counted when it was completed."""
    ended_ns = next(event.undone_real_ns for event in scenario.events if event.id == neighbour)
    disks = [run.limited_disks for run in view.record.neighbours if run.event == neighbour]
    if not all(disks):
        return
    disk_count = sum(map(len, disks))
    table = record.intervals
    ends = interval_ends_ns(record)
    # The load's own limit is the oldest; of each rate the newest holds.
    limits = sorted(
        (event.start_real_ns, event.id != neighbour, place)
        for place, event in enumerate(scenario.events)
        if neighbour in {event.load_event, event.id}
        and event.io_limit is not None
        and event.start_real_ns is not None
    )
    events = [scenario.events[place] for *_, place in limits]
    for place, event in enumerate(events):
        # What was in flight when it was limited ends in the second after that.
        first_ns = max(event.start_real_ns or 0, event.end_real_ns or 0) + NS_PER_S
        for rate, direction, what, count in (
            ("read_iops", Direction.READ, "read IOPS", table.ios),
            ("write_iops", Direction.WRITE, "write IOPS", table.ios),
            ("read_bytes_per_s", Direction.READ, "bytes read a second", table.bytes),
            ("write_bytes_per_s", Direction.WRITE, "bytes written a second", table.bytes),
        ):
            limit_per_disk = getattr(event.io_limit, rate)
            if limit_per_disk is None:
                continue
            newer = (e for e in events[place + 1 :] if getattr(e.io_limit, rate) is not None)
            replaced_ns = next((e.start_real_ns for e in newer), None)
            known = [ns for ns in (event.undone_real_ns, ended_ns, replaced_ns) if ns is not None]
            last_ns = min(known, default=scenario.phases[-1].end_real_ns)
            # Intervals that lie in that time as a whole: one at its edge has I/Os of before.
            inside = (ends - table.span_ns >= first_ns) & (ends <= last_ns)
            if inside.any():
                own_rates = (
                    float(count[rows & (table.direction == direction)].sum())
                    / float((ends[rows].max() - (ends - table.span_ns)[rows].min()) / NS_PER_S)
                    for host in np.unique(table.host[inside])
                    for rows in (inside & (table.host == host),)
                )
                yield NeighbourLimitFigures(
                    event.id, what, sum(own_rates), float(limit_per_disk * disk_count)
                )


def _longest_stall(
    second_histograms: PerSecondHistograms, record: RunRecord, span: PhaseSpan
) -> Metric:
    """The longest time in which a stream returned nothing, of I/Os that waited in a phase.

    A job with one I/O at a time stands still for as long as that takes. Of deeper queues silences
    are known, and the longest I/O up to then, which none outlasts but one until the end; a stall of
    which no interval tells is not longer than two of them.
    """
    own = second_histograms.phase_seconds_slice(span)
    most_s = second_histograms.longest_io_low_middle_high_s(
        second_histograms.bin_counts(slice(0, own.stop))
    )[-1]
    found = [silence for silence in second_histograms.silences if silence.is_in(span)]
    bounds = [
        min(silence.seconds_counted_in(span), most_s if silence.is_ended else math.inf)
        for silence in found
    ]
    pairs = list(zip(found, bounds, strict=True))
    silent_s = max((min(silence.seconds, bound) for silence, bound in pairs), default=0.0)
    stall_s = max((min(silence.stall_s, bound) for silence, bound in pairs), default=0.0)
    low, middle, high = second_histograms.longest_io_low_middle_high_s(
        second_histograms.bin_counts(own)
    )
    job = record.run.point.job
    if job.iodepth_per_client <= job.jobs_per_client:
        value, low, high = (max(edge, silent_s) for edge in (middle, low, high))
    else:
        interval_s = float(record.intervals.span_ns.max(initial=0)) / NS_PER_S
        value = stall_s or min(middle, 2 * interval_s)
        low, high = silent_s, max(high, value)
    return Metric(value, "s", low, high) if value else Metric(None, "s")


def _event_figures(second_histograms: PerSecondHistograms, event: EventOutcome) -> EventFigures:
    moments = (event.start_real_ns, event.end_real_ns, event.seen_real_ns, event.undone_real_ns)
    at = (
        None if moment is None else second_histograms.seconds_since_first_phase(moment)
        for moment in moments
    )
    return EventFigures(event.id, event.title or event.id, event.host, event.phase, *at)


def _unhealthy_spans_s(
    second_histograms: PerSecondHistograms, scenario: ScenarioOutcome
) -> Iterator[tuple[float, float]]:
    """From the question of a first answer that does not say that all is well to one that does.

    A witness that hangs with the storage says nothing, and that long after it was asked.
    """
    event = first_witnessed_event(scenario)
    expected = event.expected if event else None
    begin, end_s = None, float(second_histograms.seconds)
    answers = [a for a in scenario.answers if expected and a.witness == expected.witness]
    for answer in answers:
        asked_s = second_histograms.seconds_since_first_phase(answer.asked_real_ns)
        at = second_histograms.seconds_since_first_phase(answer.real_ns)
        is_well = (
            expected is not None and answer.state is not None and answer.state is not expected.state
        )
        if not is_well and begin is None and at >= 0 and asked_s < end_s:
            begin = max(asked_s, 0.0)
        elif is_well and begin is not None:
            yield begin, min(at, end_s)
            begin = None
    if begin is not None:
        yield begin, end_s


def _rate_ratio_to_baseline(
    rates: Floats, baseline_rates: Floats, average: Callable[[Floats], Any]
) -> Metric:
    """The rate as a share of the baseline's, with the interval of means of blocks."""
    if not rates.size or not baseline_rates.size or not average(baseline_rates):
        return Metric(None, "share")
    value = float(average(rates) / average(baseline_rates))
    blocks = [_block_means(series) for series in (rates, baseline_rates)]
    half = _log_ratio_half_width(*blocks)
    if half is None:
        return Metric(value, "share")
    low, high = value * math.exp(-half), value * math.exp(half)
    return Metric(value, "share", low, high, int(blocks[0].size))


def _block_means(series: Floats) -> Floats:
    count = series.size // BLOCK_S
    return np.asarray(series[: count * BLOCK_S].reshape(count, BLOCK_S).mean(axis=1))


def _seconds_after_fault(
    fault: EventOutcome, previous_answer_ns: int | None, answer_ns: int | None
) -> Metric | None:
    """From a fault to a moment that lies between two answers of a witness."""
    if answer_ns is None or fault.start_real_ns is None:
        return None
    low = max((previous_answer_ns or fault.start_real_ns) - fault.start_real_ns, 0) / NS_PER_S
    value = (answer_ns - fault.start_real_ns) / NS_PER_S
    return Metric(value, "s", low, value)


def _seconds_to_redundancy(scenario: ScenarioOutcome, fault: EventOutcome) -> Metric | None:
    """From the fault to the first of two answers in a row that all is as it was before it.

    Of a run that ended before that it is more than until the last answer that says otherwise.
    """
    if fault.seen_real_ns is None or fault.expected is None or fault.start_real_ns is None:
        return None
    answers = [
        answer
        for answer in scenario.answers
        if answer.witness == fault.expected.witness and answer.real_ns >= fault.seen_real_ns
    ]
    healthy = not fault.expected.state
    unhealthy_ns = fault.start_real_ns
    for first, second in pairwise(answers):
        if first.state is fault.expected.state:
            unhealthy_ns = first.asked_real_ns
        elif first.state is healthy and second.state is healthy:
            return _seconds_after_fault(fault, unhealthy_ns, first.real_ns)
    last_ns = max(
        (a.asked_real_ns for a in answers if a.state is fault.expected.state),
        default=fault.seen_real_ns,
    )
    return Metric(None, "s", low=(last_ns - fault.start_real_ns) / NS_PER_S)


def _log_rates(second_histograms: PerSecondHistograms) -> Floats:
    """The logarithm of the rate of each second."""
    floor = max(STALLED_RATE_SHARE * float(np.median(second_histograms.ios_by_second)) / 10, 1e-9)
    return np.asarray(np.log(np.maximum(second_histograms.ios_by_second, floor)))


def _log_p99s(second_histograms: PerSecondHistograms) -> Floats:
    """That of the p99, also between seconds that have one."""
    p99s = second_histograms.p99s_ns
    known = np.flatnonzero(~np.isnan(p99s))
    if not known.size:
        return np.zeros(0)
    return np.asarray(np.log(np.interp(np.arange(p99s.size), known, p99s[known])))


class _SeriesWithChangePoints(Record):
    """Values of each second, those of the first phase, and where the level changes."""

    values: Floats
    baseline: Floats
    changes: tuple[ChangePoint, ...]

    @classmethod
    def of_values(cls, values: Floats, first_phase: slice) -> _SeriesWithChangePoints:
        """The series with its changes."""
        baseline = values[first_phase]
        noise = max(NOISE_MIN, level_noise_sd(values, baseline))
        return cls(values, baseline, find_change_points(values, noise))


def _change_detection_series(
    second_histograms: PerSecondHistograms, scenario: ScenarioOutcome, *, is_paced: bool
) -> tuple[_SeriesWithChangePoints, ...]:
    """What is at the baseline's level when all is as before; the first tells of changes.

    A fixed rate is flat but for what a stall takes from it, so that its p99 tells most.
    """
    all_values = (
        (_log_p99s(second_histograms), _log_rates(second_histograms))
        if is_paced
        else (_log_rates(second_histograms),)
    )
    first_phase = second_histograms.phase_seconds_slice(scenario.phases[0])
    return tuple(_SeriesWithChangePoints.of_values(values, first_phase) for values in all_values)


def _series_change(
    second_histograms: PerSecondHistograms, scenario: ScenarioOutcome, change: ChangePoint
) -> SeriesChange:
    at_s = Metric(float(change.index), "s", max(change.low - 1.0, 0.0), change.high + 1.0)
    ratio = math.exp(change.after - change.before)
    return SeriesChange(at_s, ratio, _nearest_event_text(second_histograms, scenario, at_s))


def _nearest_event_text(
    second_histograms: PerSecondHistograms, scenario: ScenarioOutcome, at_s: Metric
) -> str:
    """What may have made a change: the nearest event, else phase or witness; "" for none.

    A phase whose events were all left out changes nothing.
    """
    named = [
        (False, f"{word} {event.title or event.id}", moment)
        for event in scenario.events
        for word, moment in (
            ("event", event.start_real_ns),
            ("end of event", event.end_real_ns),
            ("undo of event", event.undone_real_ns),
        )
        if moment is not None
    ]
    begun = {event.phase for event in scenario.events if event.start_real_ns is not None}
    unchanged = {event.phase for event in scenario.events} - begun
    named += [
        (True, f"phase {span.id}", span.start_real_ns)
        for span in scenario.phases[1:]
        if span.id not in unchanged
    ]
    low, high = (
        (at_s.low or 0.0) - EVENT_DISTANCE_MAX_S + 1,
        (at_s.high or 0.0) + EVENT_DISTANCE_MAX_S - 1,
    )
    near = [
        (
            is_phase,
            abs(second_histograms.seconds_since_first_phase(moment) - (at_s.value or 0.0)),
            name,
        )
        for is_phase, name, moment in named
        if low <= second_histograms.seconds_since_first_phase(moment) <= high
    ]
    if near:
        return min(near)[-1]
    fault = fault_event(scenario)
    if fault and fault.start_real_ns is not None and fault.seen_real_ns is not None:
        begin = second_histograms.seconds_since_first_phase(fault.start_real_ns)
        end = second_histograms.seconds_since_first_phase(fault.seen_real_ns)
        if begin <= (at_s.value or 0.0) <= end:
            return f"event {fault.title or fault.id}, which its witness had not seen yet"
    witnessed = first_witnessed_event(scenario)
    for begin, end in _unhealthy_spans_s(second_histograms, scenario):
        if begin - EVENT_DISTANCE_MAX_S <= (at_s.value or 0.0) <= end + EVENT_DISTANCE_MAX_S:
            return f"while {witnessed.expected if witnessed else ''}"
    return ""


def _seconds_to_baseline(
    second_histograms: PerSecondHistograms,
    levels: Sequence[_SeriesWithChangePoints],
    fault: EventOutcome,
    phases: Sequence[PhaseFigures],
) -> Metric | None:
    """From the fault until each series is back in the baseline's band; None where one has none.

    A later phase that surely differs as a whole contradicts that, as where seconds scatter too much
    for a change to be seen: of the last one it is longer than until its end, else it is not known.
    """
    if fault.start_real_ns is None:
        return None
    at = second_histograms.seconds_since_first_phase(fault.start_real_ns)
    dates = [
        _seconds_until_back_in_baseline_band(level, at) for level in levels if level.baseline.size
    ]
    bounds = [date for date in dates if date.value is None]
    if bounds:
        return max(bounds, key=lambda date: date.low or 0.0)
    date = max(dates, key=lambda date: date.value or 0.0, default=None)
    if date is None:
        return None
    back_s = at + (date.value or 0.0)
    if any(map(_is_surely_worse_than_baseline, (p for p in phases[1:-1] if p.start_s >= back_s))):
        return None
    if (
        len(phases) > 1
        and phases[-1].start_s >= back_s
        and _is_surely_worse_than_baseline(phases[-1])
    ):
        return Metric(None, "s", low=max(second_histograms.seconds - at, 0.0))
    return date


def _is_surely_worse_than_baseline(phase: PhaseFigures) -> bool:
    """Whether a phase has fewer I/Os or longer latencies than the first, as intervals tell."""
    ratios = (phase.p50_ratio, phase.mean_ratio)
    is_slower = any(ratio.low is not None and ratio.low > 1 + BAND_MIN for ratio in ratios)
    share = phase.baseline_share
    return is_slower or (share.high is not None and share.high < 1 - BAND_MIN)


def _seconds_until_back_in_baseline_band(
    level_series: _SeriesWithChangePoints, from_s: float
) -> Metric:
    """From then to the change after which the series stays in the baseline's band.

    Of a run that ended before that it is more than until its end, or until that change where it
    came too late.
    """
    series, baseline = level_series.values, level_series.baseline
    middle = float(np.median(baseline))
    spread = MAD_TO_SD * float(np.median(np.abs(baseline - middle)))
    band = max(math.log1p(BAND_MIN), BAND_SIGMAS * spread)
    later = [change for change in level_series.changes if change.high + 1 >= from_s]
    outside = [i for i, change in enumerate(later) if abs(change.after - middle) > band]
    if not outside:
        return Metric(0.0, "s", 0.0, 1.0)
    if outside[-1] + 1 == len(later):
        return Metric(None, "s", low=max(series.size - from_s, 0.0))
    back = later[outside[-1] + 1]
    if series.size - back.index < HOLD_S:
        return Metric(None, "s", low=max(back.low - from_s, 0.0))
    low, high = back.low - 1.0 - from_s, back.high + 1.0 - from_s
    return Metric(max(back.index - from_s, 0.0), "s", max(low, 0.0), max(high, 0.0))


def rebuild_window(scenario: ScenarioOutcome) -> Window | None:
    """From the last action, or undo of one, to when redundancy was back; None where it never was.

    Where a fault is over when it is undone the rebuild begins then.
    """
    fault = fault_event(scenario)
    redundancy = _seconds_to_redundancy(scenario, fault) if fault else None
    if fault is None or redundancy is None or redundancy.value is None:
        return None
    end_ns = (fault.start_real_ns or 0) + round(redundancy.value * NS_PER_S)
    actions = [event for event in scenario.events if event.is_action]
    begins = (ns for event in actions for ns in (event.start_real_ns, event.undone_real_ns))
    return Window(max(b for b in begins if b is not None and b < end_ns), end_ns)


def _rebuild_rate_metric(
    view: RunView, scenario: ScenarioOutcome, fault: EventOutcome
) -> Metric | None:
    """The rate of what was copied to make the system redundant again."""
    window = rebuild_window(scenario)
    if window is None or fault.expected is None:
        return None
    first = scenario.phases[0]
    before = Window(first.start_real_ns, first.end_real_ns)
    return rebuild_rate(view, before, window, fault.expected.witness)
