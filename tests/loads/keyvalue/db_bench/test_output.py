"""db_bench's output: real files of version 7.8.3, lines of older and newer ones, broken files."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolab.core.limits import ERROR_LINES_MAX, RESULTS_MAX
from iolab.loads.keyvalue.db_bench.output import (
    BuildKind,
    DbBenchOutput,
    FirstThreadCounts,
    StatisticHistogram,
    parse_build_kind,
    parse_compaction_row,
    parse_db_bench_output,
    parse_level_row,
    parse_stall_causes_and_counts,
    parse_stall_seconds_and_percent,
    parse_ticker_or_histogram,
)
from iolab.loads.keyvalue.db_bench.run import (
    parse_progress,
    parse_report_rows,
    thread_start_bounds_s,
)
from iolab.loads.keyvalue.workload import KeyOperation, LevelShape
from tests.recorded import recorded

CELLS: Final = ("readrandom-4096", "readrandom-16384", "readrandomwriterandom", "readwhilewriting")
READ, WRITE = KeyOperation.READ, KeyOperation.WRITE


def golden(name: str) -> DbBenchOutput:
    return parse_db_bench_output(stdout(name), recorded(f"db_bench/{name}.err"))


def stdout(name: str) -> bytes:
    return recorded(f"db_bench/{name}.txt")


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_tells_what_it_was_and_what_it_did(name: str) -> None:
    output = golden(name)
    assert output.version == "7.8.3"
    assert output.messages == output.faults == ()
    header = output.header
    assert (header.keys, header.key_bytes, header.value_bytes) == (60000, 16, 1024)
    assert (header.compression, header.build) == ("NoCompression", BuildKind.ASSERTIONS)
    (result,) = output.results
    assert result.benchmark == name.split("-")[0]
    assert result.seconds == pytest.approx(3, abs=0.1)
    assert result.operations == sum(one.count for one in result.latencies)
    assert result.operations is not None
    assert result.seconds is not None
    assert result.ops_per_s == pytest.approx(result.operations / result.seconds, rel=0.001)
    assert (len(output.tickers), len(output.statistic_histograms)) == (193, 58)
    assert output.stalls is not None
    assert output.stalls.total == 0
    assert (output.stalls.seconds, output.stalls.percent) == (0, 0)


@pytest.mark.parametrize("name", [*CELLS, "missing", "half-loaded", "load-4096"])
def test_percentiles_are_those_that_were_printed_for_the_operation(name: str) -> None:
    """Those of the levels of the tree, which look the same and come last, are not taken."""
    printed = [
        [float(word) for word in line.split()[2::2]]
        for line in stdout(name).decode().splitlines()
        if line.startswith("Percentiles: ")
    ]
    (result, *_) = golden(name).results
    assert len(result.latencies) <= len(printed)
    for latency, numbers in zip(result.latencies, printed, strict=False):
        told = [
            latency.interpolated_quantile_ns(q) / 1000 for q in (0.5, 0.75, 0.99, 0.999, 0.9999)
        ]
        assert told == pytest.approx(numbers, abs=0.006)
        for quantile in (0.5, 0.9, 0.99, 0.9999):
            low, high = latency.quantile_bounds_ns(quantile)
            assert latency.min_ns <= low <= latency.interpolated_quantile_ns(quantile) <= high
            assert high <= latency.max_ns


def test_the_last_percentiles_of_an_output_are_of_a_level_of_the_tree() -> None:
    lines = [x for x in stdout("readrandom-4096").splitlines() if x.startswith(b"Percentiles")]
    assert len(lines) > 1
    latency = golden("readrandom-4096").results[0].latency(READ)
    assert latency is not None
    assert f"P99.99: {latency.interpolated_quantile_ns(0.9999) / 1000:.2f}".encode() in lines[0]
    assert (
        f"P99.99: {latency.interpolated_quantile_ns(0.9999) / 1000:.2f}".encode() not in lines[-1]
    )


def test_bins_are_kept_as_they_are_with_their_width() -> None:
    latency = golden("readrandom-4096").results[0].latency(READ)
    assert latency is not None
    assert latency.resolution_ns == 1000
    assert sum(one.count for one in latency.bins) == latency.count == 664513
    wide = [one for one in latency.bins if one.low_ns >= 10_000]
    assert wide
    assert all(one.high_ns <= 1.6 * one.low_ns for one in wide)
    assert 0 < latency.relative_bin_width(0.99) <= 0.6
    fastest = golden("missing").results[0].latency(READ)
    assert fastest is not None
    assert fastest.relative_bin_width(0.5) == float("inf")


def test_reads_and_writes_are_told_apart() -> None:
    (result,) = golden("readrandomwriterandom").results
    assert [one.operation for one in result.latencies] == [READ, WRITE]
    assert result.first_thread == FirstThreadCounts(reads=81040, found_count=81040)
    # The rate and the count of readwhilewriting are of its readers alone.
    output = golden("readwhilewriting")
    assert [one.operation for one in output.results[0].latencies] == [READ]
    writes = output.statistic_histograms["rocksdb.db.write.micros"]
    assert writes.count > 10_000
    assert [percent for percent, _ in writes.percentiles] == [50, 95, 99, 100]
    assert writes.sum / writes.count <= writes.percentiles[-1][1]
    assert output.header.write_bytes_per_s == 4194304


def test_a_load_leaves_a_tree() -> None:
    output = golden("load-4096")
    assert [one.benchmark for one in output.results] == ["filluniquerandom", "compact"]
    assert output.levels[:2] == (LevelShape(0, 0, 0), LevelShape(1, 1, 60 << 20))
    assert len(output.levels) == 7
    assert [row.name for row in output.compaction_rows] == ["L0", "L1", "Sum", "Int"]
    total = output.compaction_rows[2]
    assert (total.files, total.compactions, total.write_amplification) == (1, 2, 2.0)
    assert total.bytes == pytest.approx(60.44 * (1 << 20), abs=1)


V2: Final = b" ops/sec 3.001 seconds 664513 operations;"


def test_versions_before_7_3_tell_neither_seconds_nor_operations() -> None:
    """The form of 6.29 and before (tools/db_bench_tool.cc of that tag); the rest is the same."""
    raw = stdout("readrandom-4096")
    assert V2 in raw
    (result,) = parse_db_bench_output(raw.replace(V2, b" ops/sec;"), b"").results
    assert (result.seconds, result.operations) == (None, None)
    assert result.mib_per_s == 219.6
    assert result.first_thread == FirstThreadCounts(reads=166160, found_count=166160)
    assert result.latencies[0].count == 664513


@pytest.mark.parametrize(
    ("line", "mib", "first"),
    [
        # From tools/benchmark.sh of RocksDB, where its author lists what he met.
        (
            "readrandom   :      10.218 micros/op 3131616 ops/sec; 1254.3 MB/s "
            "(176144999 of 176144999 found)",
            1254.3,
            FirstThreadCounts(176144999, 176144999),
        ),
        (
            "multireadrandom :      10.164 micros/op 3148272 ops/sec; "
            "(177099990 of 177099990 found)",
            None,
            FirstThreadCounts(177099990, 177099990),
        ),
        ("overwrite    :       7.939 micros/op 125963 ops/sec;   50.5 MB/s", 50.5, None),
    ],
)
def test_result_lines_of_older_versions(
    line: str, mib: float | None, first: FirstThreadCounts | None
) -> None:
    (result,) = parse_db_bench_output(line.encode() + b"\n", b"").results
    assert (result.mib_per_s, result.first_thread, result.operations) == (mib, first, None)


def test_sections_of_newer_versions_are_passed_over() -> None:
    new = (
        b"** Time Travel Stats [default] **\nCount: 3 Average: 1.0  StdDev: 1.0\n"
        b"Percentiles: P50: 1.00 P99: 2.00\nMicroseconds per multiscan:\n"
        b"Count: 5 Average: 1.0  StdDev: 1.0\nMin: 1  Median: 1.0  Max: 1\n"
    )
    raw = stdout("readrandom-4096")
    at = raw.index(b"** Compaction Stats")
    assert parse_db_bench_output(raw[:at] + new + raw[at:], b"") == parse_db_bench_output(raw, b"")


def test_stalls_of_both_wordings_are_counted_once() -> None:
    old = parse_stall_causes_and_counts(
        "Stalls(count): 5 level0_slowdown, 3 level0_slowdown_with_compaction, 2 level0_numfiles, "
        "1 level0_numfiles_with_compaction, 0 stop for pending_compaction_bytes, "
        "4 slowdown for pending_compaction_bytes, 0 memtable_compaction, 7 memtable_slowdown, "
        "interval 9 total count"
    )
    new = parse_stall_causes_and_counts(
        "Write Stall (count): cf-l0-file-count-limit-delays-with-ongoing-compaction: 1, "
        "l0-file-count-limit-delays: 2, memtable-limit-stops: 3, total-delays: 2, total-stops: 3, "
        "interval: 5 total count"
    )
    output = golden("readrandom-4096")
    assert old is not None
    assert new is not None
    assert output.stalls is not None
    assert [type(output.stalls)(counts, 0, 0).total for counts in (old, new)] == [18, 5]
    assert parse_stall_causes_and_counts("Cumulative stall: none") is None
    assert parse_stall_seconds_and_percent("Cumulative stall: 01:02:3.500 H:M:S, 12.3 percent") == (
        3723.5,
        12.3,
    )
    assert (
        parse_stall_seconds_and_percent("Interval stall: 01:02:3.500 H:M:S, 12.3 percent") is None
    )


def test_lines_that_are_no_rows_are_none() -> None:
    columns = ("Level", "Files", "Size", "Score", "W-Amp", "Comp(cnt)", "Comp(sec)")
    row = parse_compaction_row(columns, "  L12    3/1   1.50 GB   nan 1.0 2 3.0")
    assert row is None
    row = parse_compaction_row(columns, "  L12    3/1   1.50 GB   1.2 1.0 2 3.0")
    assert row is not None
    assert (row.bytes, row.files, row.score) == (3 << 29, 3, 1.2)
    assert parse_compaction_row(columns, "High 3/1 1.50 GB 1.2 1.0 2 3.0") is None
    assert parse_level_row("  1  x  2") is None
    assert parse_ticker_or_histogram("rocksdb.x COUNT : 5") == ("rocksdb.x", 5)
    assert parse_ticker_or_histogram("rocksdb.x P50 : 1.0 P95 : 2.0 COUNT : 5 SUM : 9") == (
        "rocksdb.x",
        StatisticHistogram(5, 9, ((50, 1.0), (95, 2.0))),
    )
    assert parse_ticker_or_histogram("rocksdb.x COUNT : many") is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("unknown-benchmark", "unknown benchmark 'readrandm'"),
        ("unknown-flag", "ERROR: unknown command line flag 'nosuchflag'"),
        ("disk-full", "put error: IO error: No space left on device"),
    ],
)
def test_what_db_bench_says_of_an_error_is_kept(name: str, message: str) -> None:
    output = golden(name)
    assert output.messages[0].startswith(message)
    assert output.results == ()


def test_a_killed_one_leaves_only_how_far_it_was() -> None:
    output = golden("killed")
    assert output.results == ()
    assert output.header.build is None
    assert len(output.progress) == 4
    assert {one.thread for one in output.progress} == {0, 1, 2, 3}


def test_a_build_is_known_by_its_warnings() -> None:
    assert parse_build_kind("Perf Level: 1\n") is BuildKind.RELEASE
    text = "WARNING: Optimization is disabled: benchmarks unnecessarily slow\nWARNING: Assertions"
    assert parse_build_kind(text) is BuildKind.NOT_OPTIMISED
    raw = stdout("readrandom-4096")
    warning = b"WARNING: Assertions are enabled; benchmarks unnecessarily slow\n"
    assert parse_db_bench_output(raw.replace(warning, b""), b"").header.build is BuildKind.RELEASE


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"Count: 664513 Average", b"Count: 664514 Average", "its header has 664514"),
        (b"Min: 1  Median", b"Min: x  Median", "cut short"),
        (b"(       1,       2 ]", b"(       2,       1 ]", "a bin of read reads (2, 1]"),
    ],
)
def test_a_histogram_that_cannot_be_is_a_fault(old: bytes, new: bytes, message: str) -> None:
    raw = stdout("readrandom-4096")
    assert old in raw
    output = parse_db_bench_output(raw.replace(old, new, 1), b"")
    assert message in output.faults[0]
    assert output.results[0].latencies == ()


@pytest.mark.parametrize("name", ["readrandomwriterandom", "load-4096"])
@pytest.mark.parametrize("end", [0.01, 0.04, 0.1, 0.3, 0.6, 0.95])
def test_an_output_cut_anywhere_is_a_part_of_the_whole(name: str, end: float) -> None:
    raw = stdout(name)
    whole, part = (
        parse_db_bench_output(raw, b""),
        parse_db_bench_output(raw[: int(len(raw) * end)], b""),
    )
    for mine, theirs in zip(part.results, whole.results, strict=False):
        assert mine.benchmark == theirs.benchmark
        assert set(mine.latencies) <= set(theirs.latencies)
    # The last line may be cut within its number.
    assert set(list(part.tickers.items())[:-1]) <= set(whole.tickers.items())


@settings(max_examples=30)
@given(st.binary(max_size=300), st.integers(0, 40_000))
def test_nothing_makes_it_raise(junk: bytes, at: int) -> None:
    raw = stdout("readrandomwriterandom") + recorded("db_bench/readwhilewriting.err")
    parse_db_bench_output(raw[:at] + junk + raw[at:], raw[:at] + junk)
    parse_report_rows(junk)


def test_limits_hold() -> None:
    line = b"x : 1.0 micros/op 5 ops/sec;\n"
    output = parse_db_bench_output(
        line.replace(b"x ", b"xx ") * (RESULTS_MAX + 1), b"ERROR: a\nERROR: b\n" * 99
    )
    assert len(output.results) == RESULTS_MAX
    assert any("more than" in fault for fault in output.faults)
    assert len(output.messages) <= ERROR_LINES_MAX


def test_threads_tell_when_they_began() -> None:
    progress = golden("readwhilewriting").progress
    assert {one.thread for one in progress} == {0, 1, 2, 3, 4}
    bounds = thread_start_bounds_s(progress)
    assert bounds is not None
    # `Date:` of the same run says 08:27:31; the database is open at once.
    assert bounds[0] <= 1795249651.2
    assert bounds[1] >= 1795249651
    assert 0 <= bounds[1] - bounds[0] < 0.8
    assert thread_start_bounds_s([]) is None
    tail = "8:27:{} ... thread 1: (1,1) ops and (1,1) ops/second in (1.0,{}) seconds"
    again = parse_progress(
        [
            "2026/11/21-0" + tail.format(32, 1.0),
            "2026/11/21-0" + tail.format(30, 2.0),
            "2026/13/41-0" + tail.format(30, 2.0),
        ]
    )
    assert len(again) == 2
    assert thread_start_bounds_s(again) is None
    # Threads that began some ms apart are no contradiction.
    late = parse_progress(["2026/11/21-0" + tail.format(32, end) for end in (1.99, 1.02, 0.95)])
    apart = thread_start_bounds_s(late)
    assert apart is not None
    assert apart[1] - apart[0] == pytest.approx(0.04)


def test_a_report_file_counts_the_writer_too() -> None:
    rows = parse_report_rows(recorded("db_bench/readwhilewriting.csv"))
    output = golden("readwhilewriting")
    assert rows is not None
    assert [second for second, _ in rows] == [1, 2, 3]
    readers = output.results[0].operations
    assert readers is not None
    writes = output.statistic_histograms["rocksdb.db.write.micros"].count
    counted = sum(count for _, count in rows)
    assert readers < counted <= readers + writes
    assert parse_report_rows(b"secs_elapsed,interval_qps\n1,5\n2,7") == ((1, 5),)
    assert parse_report_rows(b"secs_elapsed,interval_qps\n1,x\n") is None
    assert parse_report_rows(b"anything") is None


def test_a_row_of_compaction_with_a_number_of_thousands_of_digits_is_none() -> None:
    columns = ("Level", "Files", "Size", "Score", "W-Amp", "Comp(cnt)", "Comp(sec)")
    for files, is_row in (("1/0", True), ("9" * 5000 + "/0", False)):
        row = parse_compaction_row(columns, f"L0 {files} 1.00 MB 0.5 1.0 1 1.0")
        assert (row is not None) == is_row


def test_faults_of_an_endless_output_are_few() -> None:
    lines = "".join(f"x{number} : -1.0 micros/op 5 ops/sec;\n" for number in range(1000))
    assert len(parse_db_bench_output(lines.encode(), b"").faults) < 50
