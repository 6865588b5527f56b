"""Figures of each phase of a run, from the seconds that it keeps.

An engine counts an I/O when it ends, and its bin says how long it took: here it is counted in the
second in which it was due (or submitted, where nothing is ever due), known to one interval. So a
stall is seen where it began. Seconds of all hosts are added up by the controller's clock.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec.structs import replace

from iolab.analysis.window import EDGE_SLACK_NS, Window, to_controller_clock_ns
from iolab.core.bins import BIN_COUNT
from iolab.core.course import Course, EventOutcome, PhaseSpan
from iolab.core.histogram import MIDDLE_NS
from iolab.core.metric import CourseFigures, Metric, PhaseFigures
from iolab.core.run import RunRecord
from iolab.core.samples import Floats, IntervalTable, unique_io_mask
from iolab.record import field_names
from iolab.stats.special import student_quantile
from iolab.units import NS_PER_S

BLOCK_S: Final = 3
"""Seconds whose mean counts as one value: those next to each other depend on each other."""

BLOCKS_MIN: Final = 3
"""Fewer have no interval."""

IOS_MIN: Final = 20
"""A second with fewer I/Os is joined to the next before it has a p99."""

STANDSTILL_SHARE: Final = 0.1
"""A second with less of the baseline's rate counts as one without the storage."""

BAND_MIN: Final = 0.05
BAND_SIGMAS: Final = 4.0
HOLD_S: Final = 5
"""So many seconds in a row within the baseline's band mean that the rate is back."""

_MAD_TO_SIGMA: Final = 1.4826
_CONFIDENCE: Final = 0.975


class PerSecondHistograms:
    """I/Os by the second in which they were due, from the beginning of the first phase on.

    `counts` has a row a second and a column a bin, `offset_s` is where the first row lies.
    """

    def __init__(self, record: RunRecord, course: Course) -> None:
        self.start_ns = course.phases[0].start_real_ns
        end_ns = course.phases[-1].end_real_ns
        self.seconds = max(math.ceil((end_ns - self.start_ns) / NS_PER_S), 1)
        self.counts = np.zeros((self.seconds, BIN_COUNT), dtype=np.float64)
        self._spread_ios_over_seconds(record)

    def _spread_ios_over_seconds(self, record: RunRecord) -> None:
        table, bins = record.intervals, record.bins
        offsets = np.array([host.clock_offset_ns for host in record.hosts], dtype=np.int64)
        ends = to_controller_clock_ns(table.end_real_ns, offsets[table.host]) - self.start_ns
        stride = int(table.seq.max(initial=0)) + 1
        keys = table.host.astype(np.int64) * stride + table.seq
        order = np.argsort(keys, kind="stable")
        once = unique_io_mask(bins.direction)
        host, seq = bins.host[once].astype(np.int64), bins.seq[once].astype(np.int64)
        which, count = bins.bin[once].astype(np.int64), bins.count[once].astype(np.float64)
        rows = order[np.searchsorted(keys[order], host * stride + seq)]
        lat_ns = MIDDLE_NS.astype(np.float64)
        last = (ends[rows] - lat_ns[which]) / NS_PER_S
        first = last - np.maximum(table.span_ns[rows], 1) / NS_PER_S
        whole = last - first
        for second in range(math.ceil(float(whole.max(initial=0.0))) + 1):
            low = np.maximum(first, np.floor(first) + second)
            high = np.minimum(last, np.floor(first) + second + 1)
            share = np.clip((high - low) / whole, 0.0, 1.0)
            at = (np.floor(first) + second).astype(np.int64)
            inside = (at >= 0) & (at < self.seconds) & (share > 0)
            np.add.at(self.counts, (at[inside], which[inside]), (count * share)[inside])

    @property
    def rates(self) -> Floats:
        """I/Os of each second."""
        return np.asarray(self.counts.sum(axis=1), dtype=np.float64)

    def phase_seconds_slice(self, span: PhaseSpan) -> slice:
        """The whole seconds of a phase."""
        first = math.ceil((span.start_real_ns - self.start_ns) / NS_PER_S - 0.05)
        last = math.floor((span.end_real_ns - self.start_ns) / NS_PER_S + 0.05)
        return slice(first, max(last, first))

    def p99s_ns(self, span: PhaseSpan) -> list[float]:
        """The p99 of each second, one with few I/Os joined to the next."""
        values, pending = [], np.zeros(BIN_COUNT)
        for row in self.counts[self.phase_seconds_slice(span)]:
            pending = pending + row
            if pending.sum() >= IOS_MIN:
                values.append(_percentile_ns(pending, 0.99))
                pending = np.zeros(BIN_COUNT)
        return values


def _percentile_ns(counts: Floats, share: float) -> float:
    total = np.cumsum(counts)
    return float(MIDDLE_NS[int(np.searchsorted(total, share * total[-1]))])


def course_figures(record: RunRecord) -> CourseFigures | None:
    """The figures of a run with phases; None of others."""
    course = record.course
    if course is None or not course.phases or not len(record.intervals):
        return None
    seconds = PerSecondHistograms(record, course)
    baseline = seconds.rates[seconds.phase_seconds_slice(course.phases[0])]
    phases = tuple(_phase_figures(seconds, span, baseline) for span in course.phases)
    fault = first_expected_event(course)
    readbacks = course.readbacks
    read = bool(readbacks) and not any(readback.fault for readback in readbacks)
    return CourseFigures(
        phases=phases,
        rates=tuple(round(float(rate), 2) for rate in seconds.rates),
        start_real_ns=seconds.start_ns,
        detection_s=_seconds_after_fault(fault, fault.unseen_real_ns, fault.seen_real_ns)
        if fault
        else None,
        redundancy_s=_seconds_to_redundancy(course, fault) if fault else None,
        baseline_s=_seconds_to_baseline(seconds, baseline, fault) if fault else None,
        failed_ios=sum(
            host.totals.generator.failed_ios
            for host in record.hosts
            if host.totals and host.totals.generator
        ),
        checked_blocks=sum(r.checked_blocks for r in readbacks) if read else None,
        lost_blocks=sum(r.lost_blocks for r in readbacks) if read else None,
    )


def baseline_window(record: RunRecord) -> Window | None:
    """The first phase, by which a run with phases is judged; None of others."""
    if record.course is None or not record.course.phases:
        return None
    first = record.course.phases[0]
    return Window(first.start_real_ns, first.end_real_ns)


def record_cut_to_window(record: RunRecord, window: Window) -> RunRecord:
    """The record with the intervals alone that end in a window."""
    table = record.intervals
    offsets = np.array([host.clock_offset_ns for host in record.hosts], dtype=np.int64)
    ends = to_controller_clock_ns(table.end_real_ns, offsets[table.host])
    inside = (ends > window.start_ns) & (ends <= window.end_ns + EDGE_SLACK_NS)
    columns = {name: getattr(table, name)[inside] for name in field_names(IntervalTable)}
    return replace(record, intervals=IntervalTable(**columns))


def first_expected_event(course: Course) -> EventOutcome | None:
    """The first event that a witness is to see."""
    faults = [e for e in course.events if e.expected is not None and e.start_real_ns is not None]
    return min(faults, key=lambda event: event.start_real_ns or 0, default=None)


def _phase_figures(seconds: PerSecondHistograms, span: PhaseSpan, baseline: Floats) -> PhaseFigures:
    rates = seconds.rates[seconds.phase_seconds_slice(span)]
    counts = seconds.counts[seconds.phase_seconds_slice(span)].sum(axis=0)
    p99s = seconds.p99s_ns(span)
    used = np.flatnonzero(counts >= 0.5)
    healthy = float(np.median(baseline)) if baseline.size else 0.0
    return PhaseFigures(
        id=span.id,
        start_s=(span.start_real_ns - seconds.start_ns) / NS_PER_S,
        seconds=span.seconds,
        ended_by=span.ended_by.value,
        iops=Metric(float(np.median(rates)) if rates.size else None, "1/s"),
        baseline_share=_baseline_rate_share(rates, baseline),
        lat_ns_p50=Metric(_percentile_ns(counts, 0.5) if used.size else None, "ns"),
        lat_ns_p99=Metric(_percentile_ns(counts, 0.99) if used.size else None, "ns"),
        worst_second_ns_p99=Metric(max(p99s, default=None), "ns"),
        longest_io_ns=Metric(float(MIDDLE_NS[int(used[-1])]) if used.size else None, "ns"),
        unavailable_s=int((rates < STANDSTILL_SHARE * healthy).sum()),
    )


def _baseline_rate_share(rates: Floats, baseline: Floats) -> Metric:
    """The rate as a share of the baseline's, with the interval of means of blocks."""
    if not rates.size or not baseline.size or not np.median(baseline):
        return Metric(None, "share")
    value = float(np.median(rates) / np.median(baseline))
    blocks = [_block_means(series) for series in (rates, baseline)]
    if min(block.size for block in blocks) < BLOCKS_MIN or min(b.min() for b in blocks) <= 0:
        return Metric(value, "share")
    variances = [float(np.log(block).var(ddof=1)) / block.size for block in blocks]
    spread = sum(variances)
    if not spread:
        return Metric(value, "share", value, value, int(blocks[0].size))
    df = spread**2 / sum(v**2 / (b.size - 1) for v, b in zip(variances, blocks, strict=True))
    half = student_quantile(_CONFIDENCE, df) * math.sqrt(spread)
    low, high = value * math.exp(-half), value * math.exp(half)
    return Metric(value, "share", low, high, int(blocks[0].size))


def _block_means(series: Floats) -> Floats:
    count = series.size // BLOCK_S
    return np.asarray(series[: count * BLOCK_S].reshape(count, BLOCK_S).mean(axis=1))


def _seconds_after_fault(
    fault: EventOutcome, before_ns: int | None, at_ns: int | None
) -> Metric | None:
    """From a fault to a moment that lies between two answers of a witness."""
    if at_ns is None or fault.start_real_ns is None:
        return None
    low = max((before_ns or fault.start_real_ns) - fault.start_real_ns, 0) / NS_PER_S
    value = (at_ns - fault.start_real_ns) / NS_PER_S
    return Metric(value, "s", low, value)


def _seconds_to_redundancy(course: Course, fault: EventOutcome) -> Metric | None:
    """From the fault to the first of two answers in a row that all is as it was before it."""
    if fault.seen_real_ns is None or fault.expected is None:
        return None
    answers = [
        answer
        for answer in course.answers
        if answer.witness == fault.expected.witness and answer.real_ns >= fault.seen_real_ns
    ]
    healthy = not fault.expected.state
    for before, first, second in zip(answers, answers[1:], answers[2:], strict=False):
        if first.state is healthy and second.state is healthy:
            return _seconds_after_fault(fault, before.asked_real_ns, first.real_ns)
    return None


def _seconds_to_baseline(
    seconds: PerSecondHistograms, baseline: Floats, fault: EventOutcome
) -> Metric | None:
    """From the fault to the first of some seconds in a row at the baseline's rate, after a dip."""
    if not baseline.size or fault.start_real_ns is None:
        return None
    middle = float(np.median(baseline))
    spread = _MAD_TO_SIGMA * float(np.median(np.abs(baseline - middle)))
    band = max(BAND_MIN * middle, BAND_SIGMAS * spread)
    begin = math.floor((fault.start_real_ns - seconds.start_ns) / NS_PER_S)
    inside: Sequence[bool] = (np.abs(seconds.rates[begin:-1] - middle) <= band).tolist()
    dips = [place for place, fits in enumerate(inside) if not fits]
    if not dips:
        return Metric(0.0, "s", 0.0, 1.0)
    after = dips[-1] + 1
    if len(inside) - after < HOLD_S:
        return None
    value = begin + after - (fault.start_real_ns - seconds.start_ns) / NS_PER_S
    return Metric(value, "s", value - 1.0, value + 1.0)
