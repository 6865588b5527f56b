"""A log of intervals gives back what it was given, whatever the width."""

from __future__ import annotations

import numpy as np

from iolab.core.workload import Direction
from iolab.hosts.intervals import DirectionInterval, Interval, IntervalLog
from iolab.loads.keyvalue.workload import KeyOperation
from iolab.loads.metadata.workload import MetadataOperation


def part(
    direction: Direction | MetadataOperation | KeyOperation,
    bins: dict[int, int],
    lat_sum_ns: float = 1.5,
) -> DirectionInterval:
    counts = np.array(list(bins.values()), dtype=np.int64)
    ios = int(counts.sum())
    return DirectionInterval(direction, ios, ios, lat_sum_ns, np.array([*bins]), counts)


def told_part(one: DirectionInterval) -> object:
    return (
        one.direction,
        one.ios,
        one.bytes,
        one.lat_sum_ns,
        one.bins.tolist(),
        one.counts.tolist(),
    )


def told(log: IntervalLog) -> list[object]:
    return [(one.seq, one.end_real_ns, one.span_ns, *map(told_part, one.directions)) for one in log]


def test_intervals_come_back_as_they_were() -> None:
    read, write = part(Direction.READ, {3: 1, 70: 9}), part(Direction.WRITE, {}, 0.0)
    log = IntervalLog([Interval(0, 50, 10, (read, write)), Interval(1, 1 << 60, 7, (write,))])
    none: object = (Direction.WRITE, 0, 0, 0.0, [], [])
    assert len(log) == 2
    assert told(log) == [
        (0, 50, 10, (Direction.READ, 10, 10, 1.5, [3, 70], [1, 9]), none),
        (1, 1 << 60, 7, none),
    ]
    assert log[-1].end_real_ns == 1 << 60
    assert [one.seq for one in log[:1]] == [0]


def test_parts_are_ordered_by_direction() -> None:
    parts = (
        part(KeyOperation.SCAN, {3: 3}),
        part(MetadataOperation.FILE_STAT, {1: 1}),
        part(Direction.READ, {2: 2}),
    )
    log = IntervalLog([Interval(0, 1, 1, parts)])
    ways = [p.direction for p in log[0].directions]
    assert ways == [Direction.READ, MetadataOperation.FILE_STAT, KeyOperation.SCAN]
    assert log.bins.tolist() == [2, 1, 3]


def test_counts_of_any_size_are_kept_beside_small_ones() -> None:
    log = IntervalLog()
    for seq, count in enumerate((1, 32_767, 32_768, 2, 1 << 31, 1 << 62)):
        log.append(Interval(seq, seq, 1, (part(Direction.READ, {7: count}),)))
    assert log.counts.tolist() == [1, 32_767, 32_768, 2, 1 << 31, 1 << 62]
    assert log.bins.tolist() == [7] * 6
