from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.core.metric import Metric
from iolab.report.numbers import DASH, axis_value_as_number, metric_value_text
from iolab.text import (
    counted_noun,
    distinct_parts_and_common_part,
    escape_invisible,
    excerpt,
    list_text,
    percent_text,
    quote_value,
)


@given(st.text())
def test_clean_text_has_nothing_unseen_and_is_clean_already(text: str) -> None:
    shown = escape_invisible(text)
    unseen = [c for c in shown if unicodedata.category(c) in {"Cc", "Cs"} and c not in "\n\t"]
    assert unseen == []
    assert not any(unicodedata.bidirectional(c) in {"RLO", "LRO", "RLI", "PDF"} for c in shown)
    assert escape_invisible(shown) == shown


def test_unseen_characters_are_written_out() -> None:
    assert escape_invisible("disk\u202egpj.\x1b[31m") == r"disk\u202egpj.\x1b[31m"


@given(st.text(), st.integers(min_value=2, max_value=40))
def test_short_text_is_one_line_within_the_limit(text: str, limit: int) -> None:
    assert len(excerpt(text, limit)) <= limit
    assert "\n" not in excerpt(text, limit)


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (156_300.0, "1/s", "156 k IOPS"),
        (1.25e9, "bytes/s", "1.25 GB/s"),
        (142_900.0, "ns", "143 µs"),
        (0.934, "share", "93 %"),
        (12.84, "depth", "12.8 I/Os"),
        (None, "ns", DASH),
    ],
)
def test_a_number_is_shown_with_its_unit(value: float | None, unit: str, shown: str) -> None:
    assert metric_value_text(Metric(value, unit)) == shown


def test_an_axis_value_is_a_number_where_it_can_be() -> None:
    assert axis_value_as_number("bs", "4k") == 4096
    assert axis_value_as_number("iodepth", 8) == 8
    assert axis_value_as_number("iodepth", "deep") is None


def test_names_beyond_the_limit_are_counted() -> None:
    assert list_text(["a", "b", "c", "d"], 2) == "a, b and 2 more"
    assert list_text(["a, 1", "a, 8", "b"], 3) == "a, 1; a, 8 and b"
    assert (counted_noun(1, "run"), counted_noun(2, "run")) == ("1 run", "2 runs")


def test_names_are_parted_at_words() -> None:
    names = ["8B model, tensors / 64", "8B model, tensors / 64, by half"]
    assert distinct_parts_and_common_part(names) == (
        ["tensors / 64", "tensors / 64, by half"],
        "8B model",
    )
    assert distinct_parts_and_common_part(["Random reads", "Random writes"]) == (
        ["reads", "writes"],
        "Random",
    )


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (0.0, "0 %"),
        (0.00036, "0.036 %"),
        (-0.032, "-3.2 %"),
        (0.04, "4 %"),
        (0.934, "93 %"),
        (0.9996, "99.96 %"),
        (0.99651, "99.7 %"),
        (1.0, "100 %"),
    ],
)
def test_a_share_is_never_rounded_to_nothing_or_to_all(share: float, shown: str) -> None:
    assert percent_text(share) == shown


def test_a_sign_is_shown_where_it_is_wanted() -> None:
    assert (percent_text(0.25, is_signed=True), percent_text(-0.1, is_signed=True)) == (
        "+25 %",
        "-10 %",
    )


def test_what_was_read_is_shown_harmless_whatever_it_is() -> None:
    assert excerpt(b"\xff\x1b[31m\nred") == "\ufffd\\x1b[31m red"
    assert quote_value("a\x1b") == "'a\\x1b'"
    assert quote_value([True, 3, {"a": 1}]) == "[true, 3, a table]"
