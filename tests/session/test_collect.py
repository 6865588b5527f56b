"""Intervals become rows, ordered, without loss."""

from __future__ import annotations

import numpy as np

from iolab.core.workload import Direction
from iolab.hosts.intervals import DirectionInterval, Interval, IntervalCollector
from tests.loads.fileio.fixtures import reading


def part(direction: Direction, ios: int, *bins: int) -> DirectionInterval:
    counts = np.ones(len(bins), dtype=np.int64)
    return DirectionInterval(direction, ios, ios * 10, ios * 2.5, np.array(bins, np.int64), counts)


def test_rows_are_ordered_by_host_interval_and_direction() -> None:
    collector = IntervalCollector()
    both = (part(Direction.WRITE, 1, 7), part(Direction.READ, 2, 8, 9))
    collector.add(1, [Interval(0, 50, 10, both)])
    collector.add(0, [Interval(0, 40, 10, both[1:])])
    collector.add(0, [Interval(1, 45, 5, (part(Direction.READ, 0),))])
    table = collector.build_interval_table()
    assert table.host.tolist() == [0, 0, 1, 1]
    assert table.seq.tolist() == [0, 1, 0, 0]
    assert table.direction.tolist() == [0, 0, 0, 1]
    assert table.end_real_ns.tolist() == [40, 45, 50, 50]
    assert table.span_ns.tolist() == [10, 5, 10, 10]
    assert table.ios.tolist() == [2, 0, 2, 1]
    assert table.bytes.tolist() == [20, 0, 20, 10]
    assert table.lat_sum_ns.tolist() == [5.0, 0.0, 5.0, 2.5]
    bins = collector.pop_bin_table()
    assert list(zip(bins.host, bins.seq, bins.direction, bins.bin, bins.count, strict=True)) == [
        (0, 0, 0, 8, 1),
        (0, 0, 0, 9, 1),
        (1, 0, 0, 8, 1),
        (1, 0, 0, 9, 1),
        (1, 0, 1, 7, 1),
    ]


def test_no_interval_gives_empty_tables() -> None:
    collector = IntervalCollector()
    assert len(collector.build_interval_table()) == 0
    assert len(collector.pop_bin_table()) == 0
    collector.add(0, [Interval(0, 40, 10, (part(Direction.READ, 0),))])
    assert len(collector.build_interval_table()) == 1
    assert len(collector.pop_bin_table()) == 0


def test_real_runs_keep_their_totals() -> None:
    names = ("randrw-3.16", "randrw-3.42")
    results = [reading(name) for name in names]
    collector = IntervalCollector()
    for host, result in enumerate(results):
        collector.add(host, result.intervals)
    table, bins = collector.build_interval_table(), collector.pop_bin_table()
    for host, result in enumerate(results):
        assert result.totals is not None
        for direction, totals in ((0, result.totals.read), (1, result.totals.write)):
            assert totals is not None
            rows = (table.host == host) & (table.direction == direction)
            assert table.ios[rows].sum() == totals.ios
            assert table.bytes[rows].sum() == totals.bytes
            cells = (bins.host == host) & (bins.direction == direction)
            assert bins.count[cells].sum() == totals.ios


def test_rates_of_an_interval() -> None:
    one = Interval(0, 0, 500_000_000, (part(Direction.READ, 100), part(Direction.WRITE, 300)))
    assert (one.ios, one.bytes, one.iops, one.bw_bytes_per_s) == (400, 4000, 800.0, 8000.0)
    assert one.lat_ns_mean == 2.5
    none = Interval(0, 0, 0, ())
    assert (none.iops, none.bw_bytes_per_s, none.lat_ns_mean) == (0.0, 0.0, None)
