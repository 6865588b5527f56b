"""Seconds of a cell: from the report file, without the writer; and live, from the threads."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from iolab.loads.keyvalue.db_bench.output import parse_db_bench_output
from iolab.loads.keyvalue.db_bench.run import (
    BenchSecond,
    BenchTotals,
    LiveProgressReader,
    bench_intervals,
    bench_seconds,
    parse_report_rows,
)
from iolab.loads.keyvalue.workload import DatabaseSpec, DbBenchJob, KeyOperation, ThreadProgress
from tests.recorded import recorded

LOADED: Final = DatabaseSpec(keys=60000, key_bytes=16, value_bytes=1024, block_bytes=4096)
JOB: Final = DbBenchJob("readrandom", LOADED, threads=4, cache_bytes=8388608)
WRITING: Final = replace(JOB, workload="readwhilewriting", write_bytes_per_s=4194304)
UNKNOWN: Final = BenchTotals(None, None, None)
S: Final = 1_000_000_000


def lines(thread: int, *points: tuple[float, int]) -> list[ThreadProgress]:
    return [ThreadProgress(thread, at_s, done, 1000 + int(at_s)) for at_s, done in points]


def test_rows_are_seconds_and_the_totals_tell_what_came_after_the_last() -> None:
    rows = [(1, 100), (2, 110)]
    assert bench_seconds(rows, (), JOB, BenchTotals(3.004, 330, None)) == (
        BenchSecond(1.0, 1.0, 100, None),
        BenchSecond(2.0, 1.0, 110, None),
        BenchSecond(3.004, 1.004, 120, None),
    )


@pytest.mark.parametrize(
    "totals",
    [
        BenchTotals(2.4, 220, None),
        UNKNOWN,
        BenchTotals(3.0, 200, None),
        BenchTotals(1.5, 400, None),
    ],
)
def test_a_short_rest_and_one_that_cannot_be_are_left_out(totals: BenchTotals) -> None:
    assert [one.completed for one in bench_seconds([(1, 100), (2, 110)], (), JOB, totals)] == [
        100,
        110,
    ]


def test_a_late_row_stands_for_two_seconds_and_two_of_one_second_for_one() -> None:
    found = bench_seconds([(1, 100), (3, 220), (3, 5), (2, 4)], (), JOB, UNKNOWN)
    assert found == (BenchSecond(1.0, 1.0, 100, None), BenchSecond(3.0, 2.0, 229, None))


def test_no_report_has_no_seconds() -> None:
    assert bench_seconds((), (), JOB, UNKNOWN) == ()
    assert bench_seconds((), (), WRITING, UNKNOWN) == ()


def test_the_writer_is_taken_off_by_what_it_told() -> None:
    progress = [*lines(0, (1.25, 50), (2.5, 100)), *lines(1, (1.0, 1000), (2.0, 2000))]
    found = bench_seconds(
        [(1, 1040), (2, 1040), (3, 1040)], progress, WRITING, BenchTotals(3.0, 3000, 120)
    )
    assert [(one.completed, one.writer_operations) for one in found] == [
        (1000, 40),
        (1000, 40),
        (1000, 40),
    ]


def test_a_writer_that_was_never_heard_is_known_by_its_total() -> None:
    found = bench_seconds([(1, 1010), (2, 1010)], (), WRITING, BenchTotals(2.1, 2100, 21))
    assert [(one.completed, one.writer_operations) for one in found] == [(1000, 10), (1000, 10)]


def test_seconds_up_to_which_the_writer_was_not_heard_are_left_out() -> None:
    progress = lines(0, (1.0, 40), (2.1, 84))
    found = bench_seconds([(1, 140), (2, 140), (3, 140)], progress, WRITING, UNKNOWN)
    assert [(one.completed, one.writer_operations) for one in found] == [(100, 40), (100, 40)]


def test_a_writer_that_goes_back_is_not_heard() -> None:
    progress = lines(0, (1.0, 40), (0.5, 60), (2.0, 30), (3.0, 120))
    found = bench_seconds([(1, 140), (2, 140), (3, 140)], progress, WRITING, UNKNOWN)
    assert [one.writer_operations for one in found] == [40, 40, 40]


@given(
    st.lists(st.integers(0, 10**6), min_size=1, max_size=8),
    st.floats(0, 0.9),
    st.integers(0, 10**6),
    st.integers(0, 10**5),
)
def test_nothing_is_counted_twice_or_lost(
    counts: list[int], rest_s: float, rest: int, writes: int
) -> None:
    rows = [(second, count + writes) for second, count in enumerate(counts, start=1)]
    seconds = len(counts) + rest_s
    total = sum(counts) + rest
    plain = bench_seconds([*enumerate(counts, start=1)], (), JOB, BenchTotals(seconds, total, None))
    assert sum(one.completed for one in plain) == total - (rest if rest_s < 0.5 else 0)
    written = writes * len(counts)
    both = bench_seconds(rows, (), WRITING, BenchTotals(seconds, total, written))
    done = sum(one.completed + (one.writer_operations or 0) for one in both)
    assert done <= total + written + len(counts) * writes
    assert all(one.completed >= 0 and (one.writer_operations or 0) >= 0 for one in both)


def test_real_seconds_add_up_to_what_was_counted() -> None:
    for name, job in (("readrandom-4096", JOB), ("readwhilewriting", WRITING)):
        output = parse_db_bench_output(
            recorded(f"db_bench/{name}.txt"), recorded(f"db_bench/{name}.err")
        )
        rows = parse_report_rows(recorded(f"db_bench/{name}.csv"))
        result = output.result(job.workload)
        assert rows is not None
        assert result is not None
        assert result.operations is not None
        writes = output.statistic_histograms.get("rocksdb.db.write.micros")
        totals = BenchTotals(result.seconds, result.operations, writes.count if writes else None)
        found = bench_seconds(rows, output.progress, job, totals)
        assert sum(one.completed for one in found) == pytest.approx(result.operations, rel=0.002)


def test_intervals_stand_on_the_hosts_clock() -> None:
    first, second = bench_intervals(
        [BenchSecond(1.0, 1.0, 9, None), BenchSecond(2.5, 1.5, 8, 3)], 5 * S
    )
    assert (first.seq, first.end_real_ns, first.span_ns) == (0, 6 * S, S)
    assert (second.seq, second.end_real_ns, second.span_ns) == (1, 7_500_000_000, 1_500_000_000)
    assert [(one.direction, one.ios) for one in first.directions] == [(KeyOperation.ALL, 9)]
    assert [(one.direction, one.ios, one.bytes) for one in second.directions] == [
        (KeyOperation.ALL, 8, 0),
        (KeyOperation.WRITE, 3, 0),
    ]


LINE: Final = (
    b"2026/11/21-08:27:3%d  ... thread %d: (1000,%d) ops and (1.0,1.0) ops/second "
    b"in (1.000000,%.6f) seconds\n"
)


def test_a_second_is_shown_when_the_next_begins() -> None:
    live = LiveProgressReader(replace(JOB, threads=2))
    assert live.feed(b"RocksDB:    version 7.8.3\n" + LINE % (1, 0, 1000, 1.0), 11 * S) == []
    half = LINE % (1, 1, 3000, 1.5)
    assert live.feed(half[:50], 11 * S) == []
    assert live.feed(half[50:], 11 * S + S // 2) == []
    assert live.feed(LINE % (2, 0, 3000, 2.0), 12 * S) == [(1, 3000.0)]
    assert live.feed(LINE % (5, 1, 3000, 5.0), 15 * S) == [(4, 4000.0)]


def test_the_writer_is_not_shown_but_tells_of_the_start() -> None:
    live = LiveProgressReader(WRITING)
    assert live.start_real_ns is None
    assert live.feed(LINE % (1, 0, 1000, 1.0) + LINE % (2, 0, 2000, 2.0), 12 * S + 700) == []
    assert live.start_real_ns == 10 * S + 700
    live.feed(LINE % (3, 1, 2000, 3.0), 13 * S + 90)
    assert live.start_real_ns == 10 * S + 90
    live.feed(LINE % (4, 1, 2000, 4.0), 14 * S + 900)
    assert live.start_real_ns == 10 * S + 90


@given(st.binary(max_size=300))
def test_nothing_that_is_said_breaks_the_live_view(junk: bytes) -> None:
    live = LiveProgressReader(JOB)
    live.feed(junk, S)
    live.feed(junk + b"\n" + b"x" * 10_000, 2 * S)
