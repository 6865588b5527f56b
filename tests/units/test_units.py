"""Sizes and durations are read exactly; numbers are shown short and with their unit."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.units import (
    format_bytes,
    format_count,
    format_duration_s,
    format_ns,
    format_rate_bytes,
    parse_duration_s,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("4k", 4096),
        ("4K", 4096),
        ("4kib", 4096),
        ("4KiB", 4096),
        ("4kb", 4000),
        ("1GB", 10**9),
        ("2g", 2 << 30),
        ("1.5m", 3 << 19),
        ("1p", 1 << 50),
        (" 128 k ", 128 << 10),
        ("512", 512),
        ("512b", 512),
        (4096, 4096),
        # Exact where a float has lost the last bytes.
        ("9007199254740993", 9007199254740993),
        ("0.1kb", 100),
    ],
)
def test_a_size_is_read_as_fio_means_it(text: str | int, count: int) -> None:
    assert parse_size(text) == count


@pytest.mark.parametrize(
    "text",
    [
        "",
        "k",
        "4 parsecs",
        "4x",
        "-4k",
        "1e3",
        "4k8",
        "0x10",
        "4,5k",
        "1.5",
        "0.3k",
        "9" * 400,
        "٤k",
    ],
)
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a"):
        parse_size(text)


def test_true_is_no_size_and_no_duration() -> None:
    with pytest.raises(ValueError, match="True is not a size"):
        parse_size(text=True)
    with pytest.raises(ValueError, match="True is not a duration"):
        parse_duration_s(text=True)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30.0),
        ("30", 30.0),
        (30, 30.0),
        (0.5, 0.5),
        ("500ms", 0.5),
        ("100us", 1e-4),
        ("10ns", 1e-8),
        ("10min", 600.0),
        ("10m", 600.0),
        ("2h", 7200.0),
        ("1d", 86400.0),
        ("0.1s", 0.1),
        (" 5 S ", 5.0),
    ],
)
def test_a_duration_is_seconds_unless_it_says_otherwise(text: str | float, seconds: float) -> None:
    assert parse_duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "-1s", "5 lightyears", "1e3", "1:30", "inf", "nan"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration_s(text)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1023.6, "1 KiB"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (9.999 * 1024, "10 KiB"),
        (1000 << 10, "1000 KiB"),
        ((1 << 20) - 1, "1 MiB"),
        (2 << 30, "2 GiB"),
        (3 << 60, "3072 PiB"),
        (-1536, "-1.5 KiB"),
        (math.nan, "n/a"),
        (math.inf, "n/a"),
    ],
)
def test_bytes_are_shown_in_binary_units(count: float, text: str) -> None:
    assert format_bytes(count) == text


def test_rates_are_shown_in_decimal_units() -> None:
    assert format_rate_bytes(1.25e9) == "1.25 GB/s"
    assert format_rate_bytes(999.9e6) == "1 GB/s"
    assert format_rate_bytes(512) == "512 B/s"


def test_counts_are_shown_with_a_suffix_and_carry_over() -> None:
    assert format_count(5.2e6) == "5.2 M"
    assert format_count(393_333) == "393 k"
    assert format_count(87) == "87"
    assert format_count(999_999) == "1 M"
    assert format_count(-0.001) == "0"


def test_latencies_are_shown_in_the_unit_that_reads_best() -> None:
    assert format_ns(143_200) == "143 µs"
    assert format_ns(1.4e6) == "1.4 ms"
    assert format_ns(2.5e9) == "2.5 s"
    assert format_ns(999.9) == "1 µs"
    assert format_ns(87) == "87 ns"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.5, "0.5 s"),
        (4, "4 s"),
        (45.4, "45 s"),
        (119.4, "119 s"),
        (119.6, "2 min"),
        (720, "12 min"),
        (7500, "2 h 5 min"),
        (7200, "2 h"),
    ],
)
def test_durations_are_shown_for_people(seconds: float, text: str) -> None:
    assert format_duration_s(seconds) == text


@given(st.integers(min_value=0, max_value=1 << 60), st.sampled_from(["", "k", "m", "g"]))
def test_every_binary_size_is_read_exactly(number: int, prefix: str) -> None:
    power = ["", "k", "m", "g"].index(prefix)
    assert parse_size(f"{number}{prefix}") == number * 1024**power


@given(st.floats(min_value=1, max_value=1e18))
def test_a_shown_count_is_within_half_a_percent(count: float) -> None:
    number, _, unit = format_bytes(count).partition(" ")
    shown = float(number) * 1024 ** ["B", "KiB", "MiB", "GiB", "TiB", "PiB"].index(unit)
    assert abs(shown - count) <= 0.0051 * count or count < 10


@given(st.floats(min_value=0, max_value=1e17))
def test_a_shown_number_has_no_exponent_and_few_digits(count: float) -> None:
    assert re.fullmatch(r"\d{1,4}(\.\d{1,2})?( [kMG])?", format_count(min(count, 9e12)))
