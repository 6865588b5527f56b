"""Rates over a window: threads apart, the writer apart, and nothing where nobody was heard."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.analyse.key_value.rates import WindowRate, job_threads, report_rate, window_rate
from iolab.model.key_value import KeyValueJob, KeyValueSet, ThreadProgress
from iolab.run.engines.db_bench_output import parse
from iolab.run.engines.db_bench_progress import report_rows

GOLDEN: Final = Path(__file__).parents[2] / "golden" / "db_bench"
LOADED: Final = KeyValueSet(keys=60000, key_bytes=16, value_bytes=1024, block_bytes=4096)
JOB: Final = KeyValueJob("readrandom", LOADED, threads=4, cache_bytes=8388608)
WRITING: Final = KeyValueJob("readwhilewriting", LOADED, 4, 8388608, write_bytes_per_s=4194304)


def steady(thread: int, per_s: float, seconds: int) -> list[ThreadProgress]:
    """A thread that does so many operations a second, and says so each second."""
    return [
        ThreadProgress(thread, float(at), round(per_s * at), 1000 + at)
        for at in range(1, seconds + 1)
    ]


def test_the_writer_is_not_among_the_readers() -> None:
    output = parse(b"", (GOLDEN / "readwhilewriting.err").read_bytes())
    readers, writer = job_threads(WRITING)
    assert (list(readers), list(writer)) == ([1, 2, 3, 4], [0])
    reading = window_rate(output.progress, readers, 0.5, 2.0)
    writing = window_rate(output.progress, writer, 0.5, 2.0)
    assert reading.unheard == writing.unheard == ()
    assert reading.ops_per_s is not None
    assert writing.ops_per_s is not None
    assert 100_000 < reading.ops_per_s < 200_000
    # 4 MiB/s of entries of 1040 bytes.
    assert writing.ops_per_s == pytest.approx(4194304 / 1040, rel=0.05)
    rows = report_rows((GOLDEN / "readwhilewriting.csv").read_bytes())
    assert rows is not None
    beside = window_rate(output.progress, writer, 1, 2)
    told = report_rate(rows, WRITING, beside, 1, 2)
    apart = window_rate(output.progress, readers, 1, 2).ops_per_s
    assert told == pytest.approx(apart, rel=0.1)
    assert told is not None
    assert told < dict(rows)[2]
    assert report_rate(rows, WRITING, None, 1, 2) is None
    assert report_rate(rows, WRITING, writing, 1, 2) is None
    assert report_rate(rows, JOB, None, 1, 2) == dict(rows)[2]


def test_all_threads_of_other_workloads_count() -> None:
    readers, writer = job_threads(JOB)
    assert (list(readers), list(writer)) == ([0, 1, 2, 3], [])


@given(
    st.lists(st.integers(1, 5000), min_size=1, max_size=5),
    st.floats(0, 7.9),
    st.floats(0.1, 2.0),
)
def test_steady_threads_have_their_rate_in_every_window(
    rates: list[int], start: float, length: float
) -> None:
    progress = [one for thread, rate in enumerate(rates) for one in steady(thread, rate, 10)]
    rate = window_rate(progress, range(len(rates)), start, start + length)
    assert rate.ops_per_s == pytest.approx(sum(rates))


def test_a_thread_that_fell_silent_leaves_no_rate() -> None:
    progress = [*steady(0, 100, 10), *steady(1, 100, 4)]
    rate = window_rate(progress, [0, 1, 2], 2, 6)
    assert rate.unheard == (1, 2)
    assert rate.operations is rate.ops_per_s is None
    assert window_rate(progress, [0, 1], 2, 4).ops_per_s == pytest.approx(200)
    assert window_rate(progress, [], 2, 4).ops_per_s is None


def test_lines_that_go_back_count_as_never_said() -> None:
    back = [ThreadProgress(0, 1.0, 50, 1), ThreadProgress(0, 2.0, 40, 2)]
    assert window_rate(back, [0], 0.5, 1.5).unheard == (0,)
    twice = [ThreadProgress(0, 1.0, 50, 1), ThreadProgress(0, 1.0, 60, 2)]
    assert window_rate(twice, [0], 0.2, 0.5).unheard == (0,)


def test_a_silent_edge_is_told_of() -> None:
    slow = [ThreadProgress(0, 1.0, 50, 1), ThreadProgress(0, 6.0, 300, 6)]
    (one,) = window_rate(slow, [0], 2, 5).threads
    assert (one.operations, one.widest_s) == (150, 5.0)


@pytest.mark.parametrize(("start", "end"), [(2.0, 2.0), (3.0, 1.0), (-1.0, 1.0)])
def test_a_window_has_length(start: float, end: float) -> None:
    with pytest.raises(ValueError, match="is not a window"):
        window_rate([], [0], start, end)


@pytest.mark.parametrize("rows", [[(1, 5), (3, 5)], [(1, 5), (1, 5), (2, 5), (3, 5)], []])
def test_seconds_that_are_missing_or_told_twice_leave_no_rate(rows: list[tuple[int, int]]) -> None:
    assert report_rate(rows, JOB, None, 0, 3) is None


def test_more_writes_than_were_counted_leave_nothing_to_read() -> None:
    writer = WindowRate(0, 2, window_rate(steady(0, 100, 3), [0], 0, 2).threads, ())
    assert report_rate([(1, 5), (2, 5)], WRITING, writer, 0, 2) == 0
