"""Intervals are exact, totals are fio's own, and what went wrong is said."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from iolab.core.bins import BIN_COUNT
from iolab.core.histogram import Counts, Histogram, dense_counts
from iolab.core.run import DirectionTotals
from iolab.core.workload import Direction
from iolab.hosts.engine import ParsedEngineOutput
from iolab.hosts.intervals import Interval
from iolab.loads.fileio.engines.fio_output import (
    JsonDocumentSplitter,
    direction_totals,
    engine_totals,
)
from iolab.loads.fileio.engines.fio_reader import FioOutputReader
from tests.loads.fileio.fixtures import BOTH, CLEAN, directions, output, read, reading


def documents(name: str) -> list[dict[str, Any]]:
    return [json.loads(text) for text in JsonDocumentSplitter().feed(output(name))]


def as_output(*parts: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(part, indent=2).encode() + b"\n" for part in parts)


def as_odd_output(*parts: dict[str, Any]) -> bytes:
    """The same with a time that is no whole number, by which it is read part for part."""
    return as_output(*({**part, "timestamp_ms": float(part["timestamp_ms"])} for part in parts))


def everything(result: ParsedEngineOutput) -> tuple[object, ...]:
    """All that a reading tells, to be compared."""
    parts = [part for interval in result.intervals for part in interval.directions]
    return (
        result.totals,
        result.faults,
        [(interval.end_real_ns, interval.span_ns) for interval in result.intervals],
        [(part.direction, part.ios, part.bytes, part.lat_sum_ns) for part in parts],
        [(part.bins.tolist(), part.counts.tolist()) for part in parts],
    )


@pytest.mark.parametrize("name", CLEAN)
def test_an_odd_report_is_read_as_a_usual_one(name: str) -> None:
    parts = documents(name)
    asked = directions(name)
    assert everything(reading(name)) == everything(read(as_output(*parts), asked))
    assert everything(reading(name)) == everything(read(as_odd_output(*parts), asked))


@pytest.mark.parametrize(
    "bins",
    [
        {},
        0,
        -1,
        {"129": 1},
        {"128": 1},
        {"0128": 1},
        {"x": 1},
        {"129": -1},
        {"129": 1.5},
        {"129": 2**63},
        {"129": "1"},
        {"129": None},
        {"129": [1]},
        {"129": {"129": 1}},
        {"1,2": 3, "4,5": 6},
        {"1, 2": 3},
        {"-1": 1},
        {str(2**63): 1},
        {"1 : 2, 3": 4},
        {" 129": 1},
        {"129 ": 1},
    ],
)
def test_odd_bins_are_read_alike_in_both_ways(bins: object) -> None:
    parts = documents("randread-3.33")
    for at in (0, 1):
        changed_parts = json.loads(json.dumps(parts))
        changed_parts[at]["jobs"][0]["read"]["lat_ns"]["bins"] = bins
        quick, whole = read(as_output(*changed_parts)), read(as_odd_output(*changed_parts))
        assert everything(quick) == everything(whole)


def test_a_bin_that_stands_twice_counts_once_in_bins_and_in_their_sum() -> None:
    raw, asked = output("randread-3.33"), directions("randread-3.33")
    once = raw.replace(b'"bins" : {', b'"bins" : {"129" : 1, ')
    twice = raw.replace(b'"bins" : {', b'"bins" : {"129" : 7, "129" : 1, ')
    assert everything(read(twice, asked)) == everything(read(once, asked))


def test_counts_below_zero_are_a_fault_also_where_others_make_up_for_them() -> None:
    def change(document: dict[str, Any]) -> None:
        document["jobs"][0]["read"]["lat_ns"]["bins"] = {"5": -5, "6": 5}

    assert changed("randread-3.33", 0, change).faults


def pooled(result: ParsedEngineOutput, direction: Direction) -> Counts:
    counts = np.zeros(BIN_COUNT, dtype=np.int64)
    for interval in result.intervals:
        for part in interval.directions:
            if part.direction == direction:
                counts += dense_counts(part.bins, part.counts)
    return counts


def each_direction(result: ParsedEngineOutput) -> list[tuple[Direction, DirectionTotals]]:
    assert result.totals is not None
    pairs = ((Direction.READ, result.totals.read), (Direction.WRITE, result.totals.write))
    return [(direction, totals) for direction, totals in pairs if totals is not None]


@pytest.mark.parametrize("name", CLEAN)
def test_the_sum_of_intervals_is_fios_own_total(name: str) -> None:
    result = reading(name)
    assert result.faults == ()
    assert [direction for direction, _ in each_direction(result)] == list(directions(name))
    for direction, totals in each_direction(result):
        parts = [part for i in result.intervals for part in i.directions]
        mine = [part for part in parts if part.direction == direction]
        assert sum(part.ios for part in mine) == totals.ios == int(pooled(result, direction).sum())
        assert sum(part.bytes for part in mine) == totals.bytes
        assert sum(part.lat_sum_ns for part in mine) == pytest.approx(
            totals.lat_mean_ns * totals.ios, rel=1e-9
        )


@pytest.mark.parametrize("name", CLEAN)
def test_the_bytes_of_an_interval_are_those_of_its_ios(name: str) -> None:
    result = reading(name)
    for direction, totals in each_direction(result):
        block = totals.bytes // totals.ios
        assert block * totals.ios == totals.bytes
        parts = [part for i in result.intervals for part in i.directions]
        mine = [part for part in parts if part.direction == direction]
        assert [part.bytes for part in mine] == [part.ios * block for part in mine]


@pytest.mark.parametrize("name", CLEAN)
def test_percentiles_of_our_bins_are_fios_own(name: str) -> None:
    result = reading(name)
    for direction, totals in each_direction(result):
        assert len(totals.percentiles) == 17
        kept_in = Histogram(pooled(result, direction), totals.lat_min_ns, totals.lat_max_ns)
        for percent, value in totals.percentiles:
            clamped = min(max(value, totals.lat_min_ns), totals.lat_max_ns)
            assert kept_in.percentile_ns(percent) == clamped


@pytest.mark.parametrize("name", CLEAN)
def test_intervals_follow_each_other_from_start_to_end(name: str) -> None:
    result = reading(name)
    assert result.start_real_ns is not None
    edge = result.start_real_ns
    for seq, interval in enumerate(result.intervals):
        assert interval.seq == seq
        assert interval.span_ns > 0
        assert interval.end_real_ns == edge + interval.span_ns
        edge = interval.end_real_ns
    assert edge == result.end_real_ns


@pytest.mark.parametrize("name", ["randrw-3.16", "randrw-3.42", "interrupted-3.33", "text-3.33"])
@pytest.mark.parametrize("piece", [1, 100, 4096])
def test_pieces_of_any_size_give_the_same(name: str, piece: int) -> None:
    raw = output(name)
    reader = FioOutputReader(directions(name), 2)
    live: list[Interval] = []
    for start in range(0, len(raw), piece):
        live += reader.feed(raw[start : start + piece])
    result, whole = reader.finish(), reading(name)
    assert len(live) == len(result.intervals)
    assert [i.ios for i in live] == [i.ios for i in whole.intervals]
    assert result.totals == whole.totals


def test_a_rate_limited_run_shows_its_rate_in_every_second() -> None:
    whole = [i for i in reading("rate-3.33").intervals if i.span_ns > 900_000_000]
    assert len(whole) == 2
    assert [i.iops for i in whole] == [pytest.approx(200, rel=0.01)] * 2
    mixed = reading("mixed-rate-3.42")
    assert mixed.totals is not None
    assert mixed.totals.read is not None
    assert mixed.totals.write is not None
    assert mixed.totals.read.ios / (mixed.totals.read.ios + mixed.totals.write.ios) == 0.7


def test_fios_own_figures_are_taken_as_printed() -> None:
    own = documents("randread-3.33")[-1]["jobs"][0]
    result = reading("randread-3.33")
    assert result.totals is not None
    totals = result.totals.read
    assert totals is not None
    assert result.totals.write is None
    assert totals.iops == own["read"]["iops"]
    assert totals.bw_bytes_per_s == own["read"]["bw_bytes"]
    assert totals.slat_mean_ns == own["read"]["slat_ns"]["mean"]
    assert totals.clat_mean_ns == own["read"]["clat_ns"]["mean"]
    assert totals.runtime_ms == own["read"]["runtime"]
    assert dict(result.totals.depth_percent)["4"] == own["iodepth_level"]["4"]
    assert result.totals.user_cpu_percent == own["usr_cpu"]
    assert result.totals.jobs == 2


def test_an_early_stop_keeps_what_was_measured() -> None:
    for name in ("interrupted-3.16", "interrupted-3.33", "interrupted-3.42"):
        result = reading(name)
        assert result.totals is not None
        assert result.totals.error == 0
        assert sum(interval.ios for interval in result.intervals) > 1000


@pytest.mark.parametrize("version", ["3.16", "3.33", "3.42"])
def test_a_disk_that_fills_is_named_with_its_errno(version: str) -> None:
    for name in (f"run-full-{version}", f"layout-full-{version}"):
        result = reading(name)
        assert result.totals is not None
        assert result.totals.error == 28
        assert result.faults[0].startswith("fio stopped with error 28 (ENOSPC")
        assert "func=io_u error" in result.faults[-1]


def test_a_missing_file_is_a_run_without_io() -> None:
    result = reading("missing-file-3.33")
    assert result.intervals == ()
    assert result.faults == ("fio completed no I/O",)
    assert (result.start_real_ns, result.end_real_ns) == (None, None)


@pytest.mark.parametrize("version", ["3.33", "3.42"])
def test_groups_that_ran_apart_are_never_added(version: str) -> None:
    result = reading(f"groups-{version}")
    assert result.intervals == ()
    assert result.totals is None
    assert ["2 groups" in fault for fault in result.faults] == [True]


def test_jobs_of_one_group_are_added_and_their_bins_pooled() -> None:
    jobs = documents("ungrouped-3.33")[-1]["jobs"]
    assert len(jobs) == 2
    result = reading("ungrouped-3.33")
    assert result.totals is not None
    totals = result.totals.read
    assert totals is not None
    assert totals.ios == sum(job["read"]["total_ios"] for job in jobs)
    assert totals.lat_max_ns == max(job["read"]["lat_ns"]["max"] for job in jobs)
    printed = [job["read"]["lat_ns"]["percentile"]["99.000000"] for job in jobs]
    pool = Histogram(pooled(result, Direction.READ)).percentile_ns(99)
    assert dict(totals.percentiles)[99.0] == min(pool or 0.0, totals.lat_max_ns)
    assert min(printed) <= dict(totals.percentiles)[99.0] <= max(printed)


def _cut_in_the_last(raw: bytes) -> bytes:
    return raw[: raw.rfind(b'"write"')]


def test_a_truncated_last_report_is_a_fault_and_the_others_stay() -> None:
    result = read(_cut_in_the_last(output("randrw-3.33")))
    assert len(result.intervals) == 2
    assert "broke off 1 of its" in result.faults[0]


def test_nothing_and_nonsense_are_faults() -> None:
    assert read(b"").faults == ("fio printed no report",)
    result = read(b"\xff\xfe Segmentation fault \x1b[31m\n" * 5)
    assert result.faults[0] == "fio printed no report"
    assert "Segmentation fault" in result.faults[1]
    assert read(b"{\nnot json\n  either\n}\n").faults[0].startswith("fio printed a report")


def changed(
    name: str, number: int, change: Callable[[dict[str, Any]], object]
) -> ParsedEngineOutput:
    """The reading of an output in which one document was changed."""
    parts = documents(name)
    change(parts[number])
    return read(as_output(*parts), directions(name))


def test_counts_that_go_back_are_a_fault_and_never_negative() -> None:
    def back(document: dict[str, Any]) -> None:
        document["jobs"][0]["read"]["io_bytes"] = 1

    result = changed("randread-3.33", 2, back)
    assert result.faults == ("fio's counts of 'read' went back",)
    assert all(interval.bytes >= 0 for interval in result.intervals)
    assert len(result.intervals) == 3
    whole = reading("randread-3.33")
    assert sum(i.ios for i in result.intervals) == sum(i.ios for i in whole.intervals)


def test_no_io_is_lost_where_the_clock_goes_back() -> None:
    def back(document: dict[str, Any]) -> None:
        document["timestamp_ms"] -= 3_600_000

    result = changed("randread-3.33", 1, back)
    assert result.faults == ()
    assert all(interval.span_ns >= 0 for interval in result.intervals)
    whole = reading("randread-3.33")
    assert sum(i.ios for i in result.intervals) == sum(i.ios for i in whole.intervals)


def test_jobs_that_flush_for_long_at_their_end_are_no_fault() -> None:
    """While they do, fio reports every second, and its count of their runtime stands still."""
    parts = documents("randread-3.33")
    for part in parts[1:]:
        part["timestamp_ms"] += 5_000
    result = read(as_output(*parts), directions("randread-3.33"))
    assert result.faults == ()
    whole = reading("randread-3.33")
    assert sum(i.ios for i in result.intervals) == sum(i.ios for i in whole.intervals)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("jobs"), "without jobs"),
        (lambda d: d.update(jobs=[]), "without jobs"),
        (lambda d: d.update(jobs=["x"]), "without jobs"),
        (lambda d: d.update(timestamp_ms="now"), "'timestamp_ms' is 'now'"),
        (lambda d: d.update(timestamp_ms=2**60), "'timestamp_ms' is"),
        (lambda d: d["jobs"][0].pop("read"), "without 'read'"),
        (lambda d: d["jobs"][0].pop("error"), "'error' is None"),
        (lambda d: d["jobs"][0]["read"].pop("lat_ns"), "no latencies for 'read'"),
        (lambda d: d["jobs"][0]["read"]["lat_ns"].pop("bins"), "and printed no bins"),
        (lambda d: d["jobs"][0]["read"]["lat_ns"].update(bins=[1]), "no latency bins"),
        (
            lambda d: d["jobs"][0]["read"]["lat_ns"].update(bins={"128": 1}),
            "in bins that no fio has",
        ),
        (lambda d: d["jobs"][0]["read"]["lat_ns"].update(bins={"x": 1}), "in bins that no fio has"),
        (
            lambda d: d["jobs"][0]["read"]["lat_ns"].update(bins={"5": True}),
            "in bins that no fio has",
        ),
        (lambda d: d["jobs"][0]["read"].update(io_bytes=-1), "'io_bytes' is -1"),
        (lambda d: d["jobs"][0]["read"].update(io_bytes=2**64), "'io_bytes' is 1844"),
    ],
)
def test_a_report_that_is_not_fios_is_passed_over(
    change: Callable[[dict[str, Any]], object], message: str
) -> None:
    result = changed("randread-3.33", 1, change)
    assert message in result.faults[0]
    whole = reading("randread-3.33")
    assert sum(i.ios for i in result.intervals) == sum(i.ios for i in whole.intervals)
    assert len(result.intervals) == len(whole.intervals) - 1


def test_numbers_that_json_does_not_know_are_no_fault() -> None:
    raw = output("randread-3.33").replace(b'"bw_agg" : 100.000000', b'"bw_agg" : -nan')
    assert b"-nan" in raw
    assert read(raw, (Direction.READ,)).faults == ()


def test_a_report_that_raced_with_the_last_one_adds_no_interval_without_length() -> None:
    parts = documents("randread-3.33")
    result = read(as_output(*parts, parts[-1]), (Direction.READ,))
    assert result.faults == ()
    assert len(result.intervals) == len(parts)
    assert result.totals == reading("randread-3.33").totals


def test_an_interval_that_stalls_is_there_with_nothing_in_it() -> None:
    parts = documents("rate-3.33")
    stalled = json.loads(json.dumps(parts[1]))
    stalled["timestamp_ms"] += 500
    result = read(as_output(*parts[:2], stalled, *parts[2:]), (Direction.READ,))
    assert [i.ios for i in result.intervals] == [180, 200, 0, 200, 80]
    assert result.intervals[2].lat_ns_mean is None
    assert result.intervals[2].iops == 0.0


def test_the_start_is_the_last_reports_when_the_first_counts_runtime_twice() -> None:
    """A report made while jobs end adds their runtime again; only the last one is right."""
    parts = documents("rate-3.33")[-2:]
    parts[0]["jobs"][0]["read"]["runtime"] *= 2
    result = read(as_output(*parts), (Direction.READ,))
    whole = reading("rate-3.33")
    assert result.start_real_ns == pytest.approx(whole.start_real_ns, abs=100_000_000)


def test_a_first_report_without_runtime_leaves_the_start_to_the_second() -> None:
    # As fio 3.33 has it in an emulated guest: eight I/Os, and nobody's runtime is counted yet.
    whole = reading("randrw-3.33")

    def unmeasured(document: dict[str, Any]) -> None:
        for way in ("read", "write"):
            document["jobs"][0][way]["runtime"] = 0

    result = changed("randrw-3.33", 0, unmeasured)
    assert result.faults == ()
    assert result.start_real_ns is not None
    assert whole.start_real_ns is not None
    assert abs(result.start_real_ns - whole.start_real_ns) < 50_000_000
    assert all(interval.span_ns > 0 for interval in result.intervals)
    assert [i.ios for i in result.intervals] == [i.ios for i in whole.intervals]


def test_what_was_not_asked_for_is_a_fault() -> None:
    result = read(output("randrw-3.33"), (Direction.READ,))
    assert [fault[-7:] for fault in result.faults] == [": write"]


def test_a_direction_without_io_is_there_with_nothing_in_it() -> None:
    result = read(output("randread-3.33"), BOTH)
    assert {len(interval.directions) for interval in result.intervals} == {2}
    assert result.totals is not None
    assert result.totals.write is not None
    assert result.totals.write.ios == 0


def test_means_over_jobs_weigh_by_their_ios() -> None:
    def job(ios: int, mean_ns: float, deep: float) -> dict[str, Any]:
        times = {name: {"mean": mean_ns} for name in ("lat_ns", "slat_ns", "clat_ns")}
        depths = {"8": deep, "1": 100 - deep}
        return {"read": {"total_ios": ios, **times}, "iodepth_level": depths}

    jobs = [job(100, 1000.0, 0.0), job(300, 2000.0, 100.0)]
    read = direction_totals([one["read"] for one in jobs], np.zeros(BIN_COUNT, dtype=np.int64))
    assert (read.lat_mean_ns, read.slat_mean_ns, read.clat_mean_ns) == (1750, 1750, 1750)
    whole = engine_totals(jobs, {Direction.READ: read}, error=0, job_count=2)
    assert dict(whole.depth_percent)["8"] == 75
