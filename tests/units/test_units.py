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

SIZES = (
    "4k=4096 4K=4096 4kib=4096 4KiB=4096 4kb=4000 1GB=1000000000 2g=2147483648 1.5m=1572864 "
    "1p=1125899906842624 512=512 512b=512 0.1kb=100 9007199254740993=9007199254740993"
)
"""As fio means them; the last is exact where a float has lost the last bytes."""


def test_a_size_is_read_as_fio_means_it() -> None:
    for text, _, count in (one.partition("=") for one in SIZES.split()):
        assert parse_size(text) == int(count), text
    assert (parse_size(" 128 k "), parse_size(4096)) == (128 << 10, 4096)


@pytest.mark.parametrize(
    "text",
    [
        *["k", "4x", "-4k", "1e3", "4k8", "0x10", "4,5k", "1.5", "0.3k", "٤k"],
        "",
        "4 parsecs",
        "9" * 400,
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


DURATIONS = (
    "30s=30 30=30 500ms=0.5 100us=1e-4 10ns=1e-8 10min=600 10m=600 2h=7200 1d=86400 0.1s=0.1"
)


def test_a_duration_is_seconds_unless_it_says_otherwise() -> None:
    for text, _, seconds in (one.partition("=") for one in DURATIONS.split()):
        assert parse_duration_s(text) == float(seconds), text
    assert (parse_duration_s(" 5 S "), parse_duration_s(30), parse_duration_s(0.5)) == (5, 30, 0.5)


@pytest.mark.parametrize("text", ["", "s", "-1s", "5 lightyears", "1e3", "1:30", "inf", "nan"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration_s(text)


def test_bytes_are_shown_in_binary_units() -> None:
    counts = (0, 999, 1023.6, 1024, 1536, 9.999 * 1024, 1000 << 10, (1 << 20) - 1, 2 << 30)
    shown = "0 B, 999 B, 1 KiB, 1 KiB, 1.5 KiB, 10 KiB, 1000 KiB, 1 MiB, 2 GiB"
    assert ", ".join(map(format_bytes, counts)) == shown
    assert (format_bytes(3 << 60), format_bytes(-1536)) == ("3072 PiB", "-1.5 KiB")
    assert format_bytes(math.nan) == format_bytes(math.inf) == "n/a"


def test_rates_are_shown_in_decimal_units() -> None:
    assert format_rate_bytes(1.25e9) == "1.25 GB/s"
    assert format_rate_bytes(999.9e6) == "1.00 GB/s"
    assert format_rate_bytes(512) == "512 B/s"


def test_counts_are_shown_with_a_suffix_and_carry_over() -> None:
    assert format_count(5.2e6) == "5.20 M"
    assert format_count(393_333) == "393 k"
    assert format_count(87) == "87"
    assert format_count(999_999) == "1.00 M"
    assert format_count(-0.001) == "0"


def test_latencies_are_shown_in_the_unit_that_reads_best() -> None:
    assert format_ns(143_200) == "143 µs"
    assert format_ns(1.4e6) == "1.40 ms"
    assert format_ns(2.5e9) == "2.50 s"
    assert format_ns(999.9) == "1.00 µs"
    assert format_ns(87) == "87 ns"


def test_durations_are_shown_for_people() -> None:
    seconds = (0, 0.5, 4, 45.4, 119.4, 119.6, 720, 7500, 7200)
    shown = "0 s, 0.5 s, 4 s, 45 s, 119 s, 2 min, 12 min, 2 h 5 min, 2 h"
    assert ", ".join(map(format_duration_s, seconds)) == shown


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
