"""The measured window: the time that all hosts share, on one clock, after the warm-up.

A host's clock differs from the controller's by `clock_offset_ns` (host minus controller), so
controller time = host time - offset; that sign is applied in `to_controller_clock_ns` and nowhere
else.

The common window runs from the latest start plus the warm-up (but for its last moment) to the
earliest end, which is where the first host submits nothing more: the I/Os that were under way then
end in no time that could be divided by. Only intervals that lie wholly inside it count: an interval
holds no finer time than its own ends, and sharing its I/Os out would invent when they were done.
Hosts whose intervals never shared a window have no fleet rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from iolab.core.run import HostRun, RunRecord
from iolab.core.samples import BinGroups, Ints
from iolab.record import Record

EDGE_SLACK_NS: Final = 50_000_000
"""How far an interval may stick out of the window and still count: engines print times in whole
milliseconds and clocks of hosts are known to a few; 50 ms is 5 % of the usual interval, and without
it a host that began 2 ms early would lose a whole second."""

WARMUP_SLACK_SHARE: Final = 0.1
WARMUP_SLACK_NS: Final = 250_000_000
"""How far before the end of the warm-up an interval may begin and still count: a tenth of the
warm-up, at most 250 ms. The warm-up's length is a choice, not a moment of the load: engines' ticks
come about 0.1 s before its end, and a strict cut would throw a second of every run away."""

Mask = npt.NDArray[np.bool_]


def to_controller_clock_ns(host_ns: Ints, offset_ns: Ints | int) -> Ints:
    """Times of a host's clock on the controller's clock; `offset_ns` is host minus controller."""
    return np.asarray(host_ns - offset_ns, dtype=np.int64)


def last_submission_ns(host: HostRun, last_interval_end_ns: int) -> int:
    """When a host submitted nothing more, on the controller's clock.

    As its engine tells it; else `last_interval_end_ns`, when its last interval ended.
    """
    generator = host.totals.generator if host.totals else None
    if generator is None or host.start_real_ns is None:
        return last_interval_end_ns
    return min(
        last_interval_end_ns, host.start_real_ns + generator.measured_ns - host.clock_offset_ns
    )


class Window(Record):
    """A span of the controller's clock, in ns since the epoch."""

    start_ns: int
    end_ns: int

    @property
    def seconds(self) -> float:
        """Its length."""
        return (self.end_ns - self.start_ns) / 1e9


class MeasuredPart(Record):
    """What of a record is measured.

    `whole_run_windows` holds each host's whole run from first to last I/O (None: no interval).
    `common_window` is the window that all hosts share, None when there is none. `interval_mask`
    marks the rows that count, and `bin_group_mask` the `bin_groups` of the bins: those inside the
    common window, or where there is none, inside each host's own.
    """

    whole_run_windows: tuple[Window | None, ...]
    common_window: Window | None
    interval_mask: Mask
    bin_groups: BinGroups
    bin_group_mask: Mask


def interval_ends_ns(record: RunRecord) -> Ints:
    """When each interval of a record ended, by the controller's clock."""
    table = record.intervals
    return to_controller_clock_ns(table.end_real_ns, _clock_offsets_ns(record.hosts)[table.host])


def find_measured_part(record: RunRecord, rule_window: Window | None = None) -> MeasuredPart:
    """The measured part of the record: after its warm-up, or what a rule `rule_window` instead."""
    table = record.intervals
    ends = interval_ends_ns(record)
    starts = ends - table.span_ns
    hosts = _host_spans(record, starts, ends)
    warmup_ns = round(record.warmup_s * 1e9)
    early_ns = min(round(warmup_ns * WARMUP_SLACK_SHARE), WARMUP_SLACK_NS)
    early_ns = max(early_ns, EDGE_SLACK_NS)
    ends_ns = _measured_ends_ns(record.hosts, hosts)
    common = _common_window(hosts, ends_ns, warmup_ns)
    if common is not None and rule_window is not None:
        common = rule_window
        early_ns = WARMUP_SLACK_NS
    if common is not None:
        first = np.full(len(table), common.start_ns - early_ns)
        inside = _inside_window_mask(starts, ends, first, common.end_ns)
        if len(np.unique(table.host[inside])) < len(hosts):
            common = None
    if common is None:
        own = np.array([0 if w is None else w.start_ns + warmup_ns for w in hosts], dtype=np.int64)
        inside = _inside_window_mask(starts, ends, own[table.host] - early_ns, ends_ns[table.host])
    parts = record.bins.bin_groups()
    return MeasuredPart(
        hosts, common, inside, parts, _bin_groups_in_intervals_mask(record, parts, inside)
    )


def _clock_offsets_ns(hosts: tuple[HostRun, ...]) -> Ints:
    return np.array([host.clock_offset_ns for host in hosts], dtype=np.int64)


def _host_spans(
    record: RunRecord, interval_starts_ns: Ints, interval_ends_ns: Ints
) -> tuple[Window | None, ...]:
    """Each host's first start and last end."""
    count = len(record.hosts)
    first = np.full(count, np.iinfo(np.int64).max)
    last = np.full(count, np.iinfo(np.int64).min)
    np.minimum.at(first, record.intervals.host, interval_starts_ns)
    np.maximum.at(last, record.intervals.host, interval_ends_ns)
    return tuple(
        Window(int(start), int(end)) if start <= end else None
        for start, end in zip(first, last, strict=True)
    )


def _measured_ends_ns(hosts: tuple[HostRun, ...], windows: tuple[Window | None, ...]) -> Ints:
    """When each host submitted nothing more: as its engine says, else its last end."""
    last = np.array([0 if window is None else window.end_ns for window in windows], dtype=np.int64)
    ends = [last_submission_ns(host, int(last[index])) for index, host in enumerate(hosts)]
    return np.array(ends, dtype=np.int64)


def _common_window(
    hosts: tuple[Window | None, ...], ends_ns: Ints, warmup_ns: int
) -> Window | None:
    """From the latest start plus the warm-up to the earliest end, None when that is empty."""
    return intersect_windows(
        [
            window and Window(window.start_ns + warmup_ns, int(end))
            for window, end in zip(hosts, ends_ns, strict=True)
        ]
    )


def intersect_windows(windows: Sequence[Window | None]) -> Window | None:
    """What all windows share, None when that is nothing or one is not known."""
    present = [window for window in windows if window is not None]
    if not present or len(present) < len(windows):
        return None
    start = max(window.start_ns for window in present)
    end = min(window.end_ns for window in present)
    return Window(start, end) if end > start else None


def _inside_window_mask(
    starts: Ints, ends: Ints, window_start_ns: Ints, window_end_ns: Ints | int
) -> Mask:
    """Within the slack, and mostly within: what comes after the end may be shorter than that."""
    middles = starts + (ends - starts) // 2
    return np.asarray(
        (starts >= window_start_ns)
        & (ends <= window_end_ns + EDGE_SLACK_NS)
        & (middles <= window_end_ns)
    )


def _bin_groups_in_intervals_mask(
    record: RunRecord, bin_groups: BinGroups, interval_mask: Mask
) -> Mask:
    """Which parts of the bins belong to a marked interval."""
    table = record.intervals
    stride = max(int(table.seq.max(initial=0)), int(bin_groups.seq.max(initial=0))) + 1
    counted = np.zeros(len(record.hosts) * stride, dtype=bool)
    counted[(table.host * stride + table.seq)[interval_mask]] = True
    return np.asarray(counted[bin_groups.host * stride + bin_groups.seq])
