"""What the real engine printed, read as a session reads it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.core.workload import DataSet
from iolab.hosts.engine import OutputReader, ParsedEngineOutput
from iolab.hosts.intervals import SERVICE_TIMES
from iolab.loads.fileio.engine_facts import NATIVE_ENGINE
from iolab.loads.fileio.engines.native import NativeEngine
from iolab.loads.fileio.workload import AccessPattern, IoArrivals, Job
from tests.recorded import recorded

NATIVE = NativeEngine()
FILES = DataSet("s8m", "default", 2, 1, 8 << 20)
READS = Job(NATIVE_ENGINE, AccessPattern.RANDREAD, 4096, 4, 2, 8 << 20, ioengine="auto")


def reader_of(what: str) -> OutputReader:
    match what:
        case "layout":
            return NATIVE.create_layout_reader(FILES)
        case "fill":
            return NATIVE.create_overwrite_reader(FILES, 2)
        case "null":
            return NATIVE.create_null_target_reader(READS)
        case "randrw":
            return NATIVE.create_measurement_reader(
                replace(READS, access=AccessPattern.RANDRW, read_percent=70)
            )
        case "poisson":
            return NATIVE.create_measurement_reader(
                replace(READS, rate_iops=200, arrivals=IoArrivals.POISSON)
            )
    return NATIVE.create_measurement_reader(READS)


def read(what: str) -> ParsedEngineOutput:
    reader = reader_of(what)
    output = recorded(f"native/{what}-0.1.0.txt")
    for start in range(0, len(output), 1000):
        reader.feed(output[start : start + 1000])
    return reader.finish()


@pytest.mark.parametrize("what", ["layout", "fill", "randread", "randrw", "poisson", "null"])
def test_seconds_add_up_to_the_end(what: str) -> None:
    reading = read(what)
    assert reading.faults == ()
    assert reading.totals is not None
    assert reading.start_real_ns is not None
    assert reading.end_real_ns is not None
    assert reading.version.startswith("native-0.1.0 (")
    ways = [way for way in (reading.totals.read, reading.totals.write) if way]
    assert sum(one.ios for one in reading.intervals) == sum(way.ios for way in ways) > 0
    assert sum(one.bytes for one in reading.intervals) == sum(way.bytes for way in ways)
    for way in ways:
        assert 0 < way.lat_min_ns <= way.lat_mean_ns <= way.lat_max_ns
    # The intervals follow each other from the start to the last I/O.
    spans = sum(one.span_ns for one in reading.intervals)
    assert abs(reading.end_real_ns - reading.start_real_ns - spans) < 50_000_000


def test_a_layout_and_a_fill_are_whole() -> None:
    for what, times in (("layout", 1), ("fill", 2)):
        totals = read(what).totals
        assert totals is not None
        assert totals.write is not None
        assert totals.write.bytes == times * FILES.bytes_per_host


def test_an_open_loop_tells_every_io_twice() -> None:
    counts = {False: 0, True: 0}
    waited = {False: 0.0, True: 0.0}
    for interval in read("poisson").intervals:
        for part in interval.directions:
            is_service = part.direction in SERVICE_TIMES
            counts[is_service] += int(part.counts.sum())
            waited[is_service] += part.lat_sum_ns
    assert counts[True] == counts[False] > 0
    assert waited[True] <= waited[False]


def test_what_was_verified_is_told() -> None:
    totals = read("randrw").totals
    assert totals is not None
    assert totals.read is not None
    assert totals.generator is not None
    assert totals.generator.verify is not None
    assert totals.generator.verify.checked == totals.read.ios
    assert totals.generator.verify.mismatched_blocks == 0


def test_a_missing_file_is_told_in_the_engine_s_words() -> None:
    reading = read("missing-file")
    assert reading.totals is None
    assert reading.faults[0].startswith("nope.0.0 cannot be opened")
    assert len(reading.faults) == 2
