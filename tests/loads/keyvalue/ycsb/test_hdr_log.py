"""Latency logs of YCSB against the oracle, whole, damaged and cut short."""

from __future__ import annotations

import base64
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
from hypothesis import given
from hypothesis import strategies as st

from iolab.core.histogram import MIDDLE_NS, bin_index_of_ns
from iolab.core.limits import ERROR_LINES_MAX, HISTOGRAM_BYTES_MAX
from iolab.loads.keyvalue.workload import KeyOperation
from iolab.loads.keyvalue.ycsb.hdr_log import (
    DecodedHistogram,
    HdrLog,
    HdrLogError,
    decode_compressed_histogram,
    parse_hdr_log,
)
from tests.loads.keyvalue.ycsb.fixtures import log
from tests.recorded import recorded, recordings

LOGS = [name for name in recordings("ycsb", ".hdr") if "javax" not in name]
HIGHEST_US = 2**31 - 1
HEAD = (
    b"#[Logging for: READ]\n"
    b"#[Histogram log format version 1.3]\n"
    b"#[StartTime: 1795226905.628 (seconds since epoch), Sat Nov 21 02:08:25 UTC 2026]\n"
    b'"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n'
)


def packed(values_us: list[int], *, digits: int = 3, lowest: int = 1) -> bytes:
    """What HdrHistogram itself makes of these values, compressed."""
    histogram = HdrHistogram(lowest, max(HIGHEST_US, 2 * lowest), digits)
    for value in values_us:
        assert histogram.record_value(value)
    return base64.b64decode(histogram.encode())


def line(values_us: list[int], start_s: float = 0.022, span_s: float = 1.0) -> bytes:
    text = base64.b64encode(packed(values_us))
    return f"{start_s:.3f},{span_s:.3f},0.042,".encode() + text + b"\n"


def repacked(head: bytes, payload: bytes) -> bytes:
    content = zlib.compress(head + payload)
    return struct.pack(">II", 0x1C849314, len(content)) + content


def head(payload: int, *, cookie: int = 0x1C849313, offset: int = 0, digits: int = 3) -> bytes:
    return struct.pack(">IIIIQQd", cookie, payload, offset, digits, 1, HIGHEST_US, 1.0)


@pytest.mark.parametrize("name", LOGS)
def test_real_logs_hold_what_the_oracle_finds(tmp_path: Path, name: str) -> None:
    path = tmp_path / "log.hdr"
    path.write_bytes(recorded(name))
    read = parse_hdr_log(recorded(name))
    assert read.faults == ()
    reader = HistogramLogReader(str(path), HdrHistogram(1, HIGHEST_US, 3))
    for interval in read.intervals:
        theirs = reader.get_next_interval_histogram()
        assert interval.start_real_ns == round(theirs.start_time_stamp_msec) * 1_000_000
        assert interval.end_real_ns == pytest.approx(theirs.end_time_stamp_msec * 1e6, abs=1.1e6)
        assert interval.total == theirs.total_count
        counted = [
            (one.value_iterated_to, one.count_at_value_iterated_to)
            for one in theirs.get_recorded_iterator()
        ]
        assert list(zip(interval.highest_ns // 1000, interval.counts, strict=True)) == counted
        if counted:
            mean_us = float((interval.values_ns * interval.counts).sum()) / interval.total / 1000
            assert mean_us == pytest.approx(theirs.get_mean_value())
    assert reader.get_next_interval_histogram() is None


@given(
    st.lists(st.integers(0, HIGHEST_US), max_size=60),
    st.integers(1, 5),
    st.sampled_from([1, 2, 5, 1000]),
)
def test_whatever_is_recorded_is_found_again(
    values_us: list[int], digits: int, lowest: int
) -> None:
    middles, highest, counts = decode_compressed_histogram(
        packed(values_us, digits=digits, lowest=lowest)
    )
    assert int(counts.sum()) == len(values_us)
    oracle = HdrHistogram(lowest, max(HIGHEST_US, 2 * lowest), digits)
    expected: dict[int, int] = {}
    for value in values_us:
        top = oracle.get_highest_equivalent_value(value)
        expected[top] = expected.get(top, 0) + 1
    assert dict(zip(highest.tolist(), counts.tolist(), strict=True)) == expected
    lowest_of = [oracle.get_lowest_equivalent_value(top) for top in sorted(expected)]
    # As HdrHistogram's own medianEquivalentValue: half of the width above the lowest.
    widths = [top - low + 1 for low, top in zip(lowest_of, sorted(expected), strict=True)]
    assert middles.tolist() == [
        low + width // 2 for low, width in zip(lowest_of, widths, strict=True)
    ]


@given(
    st.lists(st.integers(0, 10_000_000), min_size=1, max_size=60),
    st.lists(st.integers(0, 10_000_000), min_size=1, max_size=60),
    st.sampled_from([50.0, 90.0, 99.0, 99.9]),
)
def test_two_clients_merge_as_if_they_were_one(
    first: list[int], second: list[int], percent: float
) -> None:
    """Bins of the parts add up to the bins of the whole, so every percentile is the same."""
    both = decode_compressed_histogram(packed(first + second))
    apart = [
        decode_compressed_histogram(packed(first)),
        decode_compressed_histogram(packed(second)),
    ]

    def quantile(parts: list[DecodedHistogram]) -> float:
        bins = np.concatenate([bin_index_of_ns(middles * 1000) for middles, _, _ in parts])
        counts = np.concatenate([counts for _, _, counts in parts])
        order = np.argsort(bins, kind="stable")
        reached = np.cumsum(counts[order]) >= counts.sum() * percent / 100
        return float(MIDDLE_NS[bins[order][np.argmax(reached)]])

    assert quantile(apart) == quantile([both])


def test_stamps_are_relative_to_the_start_or_absolute() -> None:
    relative = parse_hdr_log(HEAD + line([5]))
    absolute = parse_hdr_log(HEAD + line([5], start_s=1795226905.650))
    based = parse_hdr_log(b"#[BaseTime: 1000.500 (seconds since epoch)]\n" + HEAD + line([5]))
    assert relative.intervals[0].start_real_ns == 1_795_226_905_650_000_000
    assert absolute.intervals[0].start_real_ns == 1_795_226_905_650_000_000
    assert based.intervals[0].start_real_ns == 1_000_522_000_000
    assert relative.intervals[0].span_ns == 1_000_000_000


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("f-rate_Intended-READ-MODIFY-WRITE", KeyOperation.INTENDED_READ_MODIFY_WRITE),
        ("f-rate_UPDATE", KeyOperation.UPDATE),
        ("not-found_READ-FAILED", None),
        ("jvm-sections_GCS", None),
    ],
)
def test_a_log_says_of_which_operation_it_is(name: str, operation: KeyOperation | None) -> None:
    assert log(name).name == name.partition("_")[2]
    assert log(name).operation is operation


def test_a_log_without_intervals_is_at_fault() -> None:
    """So HdrHistogram 2.1.4 leaves it on Java 11 and later."""
    assert ["no interval" in fault for fault in log("javax_READ").faults] == [True]


@pytest.mark.parametrize("missing", [1, 2, 40, 400])
def test_a_log_that_was_cut_short_says_so_and_keeps_what_is_whole(missing: int) -> None:
    content = recorded("ycsb/a_READ.hdr")
    whole, cut = parse_hdr_log(content), parse_hdr_log(content[:-missing])
    assert cut.faults
    assert cut.intervals == () or _starts(cut) == _starts(whole)[: len(cut.intervals)]
    assert len(cut.intervals) < len(whole.intervals)


@given(st.integers(0, 10_000), st.integers(0, 255))
def test_a_damaged_log_never_raises(place: int, byte: int) -> None:
    content = bytearray(recorded("ycsb/f-rate_READ.hdr"))
    content[place % len(content)] = byte
    read = parse_hdr_log(bytes(content))
    assert all("\n" not in fault for fault in read.faults)


@given(st.binary(max_size=300))
def test_nonsense_is_refused_with_a_reason(content: bytes) -> None:
    with pytest.raises(HdrLogError):
        decode_compressed_histogram(content)
    assert parse_hdr_log(content).faults


def test_a_damaged_histogram_is_told_with_its_line() -> None:
    damaged = HEAD + line([5]) + b"1.022,1.000,0.042,HISTFAAAAGV42p\n" + line([6], start_s=2.022)
    read = parse_hdr_log(damaged)
    assert read.total == 2
    assert ["line 6 is not in base64" in fault for fault in read.faults] == [True]


@pytest.mark.parametrize(
    ("histogram", "reason"),
    [
        (repacked(head(0)[:20], b""), "does not hold a histogram"),
        (repacked(head(0, cookie=0x1C849301), b""), "does not hold a histogram"),
        (repacked(head(1), b""), "holds 0 of 1 bytes"),
        (repacked(head(1), b"\x80"), "ends in the middle of a count"),
        (repacked(head(9), b"\xff" * 8 + b"\x01"), "a count that is no count"),
        (repacked(head(8), b"\xff" * 7 + b"\x7f"), "holds more than"),
        (repacked(head(0, digits=6), b""), "is of 6 digits"),
        (repacked(head(0, offset=3), b""), "shifted by 3"),
        (repacked(head(4), b"\xff\xff\x05\x02"), "holds a latency above"),
        (repacked(head(0), bytes(HISTOGRAM_BYTES_MAX)), "unpacks to more than"),
        (packed([5])[:-1], "of 3"),
        (struct.pack(">II", 0x1C849314, 4) + b"nope", "does not unpack"),
        (struct.pack(">II", 0x1C849382, 0), "is not a compressed histogram"),
    ],
)
def test_histograms_that_cannot_be(histogram: bytes, reason: str) -> None:
    with pytest.raises(HdrLogError, match=reason):
        decode_compressed_histogram(histogram)


def test_faults_are_told_up_to_a_limit() -> None:
    wrong = parse_hdr_log(HEAD + b"no interval\n" * 100)
    assert len(wrong.faults) == ERROR_LINES_MAX
    backwards = parse_hdr_log(HEAD + line([1], span_s=-1.0))
    assert backwards.faults[0].endswith("interval of -1 s")


def _starts(read: HdrLog) -> list[int]:
    return [interval.start_real_ns for interval in read.intervals]
