"""What holds for every histogram."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from iolab.core.histogram import UPPER_NS, Histogram
from tests.histograms import empty, of_latencies

IN_BINS = st.integers(min_value=0, max_value=int(UPPER_NS[-1]))
ANY = st.integers(min_value=0, max_value=2**63 - 1)
PERCENT = st.floats(min_value=0.0, max_value=100.0)


def same(one: Histogram, other: Histogram) -> bool:
    extremes = (one.min_ns, one.max_ns) == (other.min_ns, other.max_ns)
    return extremes and np.array_equal(one.counts, other.counts)


@given(st.lists(ANY), st.lists(ANY), st.lists(ANY))
def test_merging_is_commutative_and_associative(a: list[int], b: list[int], c: list[int]) -> None:
    one, two, three = of_latencies(a), of_latencies(b), of_latencies(c)
    assert same(one.merged_with(two), two.merged_with(one))
    assert same(one.merged_with(two).merged_with(three), one.merged_with(two.merged_with(three)))


@given(st.lists(st.lists(ANY), max_size=5))
def test_merged_parts_are_the_histogram_of_the_whole(parts: list[list[int]]) -> None:
    merged = reduce(Histogram.merged_with, (of_latencies(part) for part in parts), empty())
    assert same(merged, of_latencies([value for part in parts for value in part]))


@given(st.lists(ANY, min_size=1), PERCENT)
def test_a_percentile_lies_between_the_extremes(latencies: list[int], percent: float) -> None:
    value = of_latencies(latencies).percentile_ns(percent)
    assert value is not None
    assert float(min(latencies)) <= value <= float(max(latencies))


@given(st.lists(ANY, min_size=1), PERCENT, PERCENT)
def test_a_higher_percentile_is_not_lower(latencies: list[int], one: float, other: float) -> None:
    histogram = of_latencies(latencies)
    low, high = histogram.percentile_ns(min(one, other)), histogram.percentile_ns(max(one, other))
    assert low is not None
    assert high is not None
    assert low <= high


@given(st.lists(IN_BINS, min_size=1), st.integers(min_value=1, max_value=100))
def test_a_percentile_is_within_one_in_128_of_the_true_one(
    latencies: list[int], percent: int
) -> None:
    rank = max(math.ceil(percent * len(latencies) / 100), 1)
    true = sorted(latencies)[rank - 1]
    value = of_latencies(latencies).percentile_ns(percent)
    assert value is not None
    assert abs(value - true) <= true / 128
