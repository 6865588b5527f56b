"""Bins are fio's, percentiles follow fio's rank rule, and merging is addition."""

from __future__ import annotations

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram

from iolab.core.bins import BIN_COUNT
from iolab.core.histogram import (
    LOWER_NS,
    MIDDLE_NS,
    UPPER_NS,
    Histogram,
    bin_index_of_midpoint,
    bin_index_of_ns,
    dense_counts,
)
from tests.histograms import empty, of_latencies

PERCENTS = (1.0, 5.0, 25.0, 50.0, 90.0, 99.0, 99.5, 99.9, 99.99, 100.0)


def index_by_bits(latency_ns: int) -> int:
    """The bin as fio's stat.c describes it: octave by the top bit, then the next six bits."""
    top = latency_ns.bit_length() - 1
    if top <= 6:
        return latency_ns
    dropped = top - 6
    return min(((dropped + 1) << 6) + ((latency_ns >> dropped) & 63), BIN_COUNT - 1)


def test_the_bins_cover_all_nanoseconds_without_gap_or_overlap() -> None:
    assert LOWER_NS[0] == 0
    assert np.array_equal(LOWER_NS[1:], UPPER_NS[:-1] + 1)
    assert BIN_COUNT == 1856


def test_bins_are_those_that_fios_bit_rule_gives() -> None:
    edges = np.concatenate([LOWER_NS, UPPER_NS, MIDDLE_NS])
    assert bin_index_of_ns(edges).tolist() == [index_by_bits(int(value)) for value in edges]


def test_each_nanosecond_below_128_has_a_bin_of_its_own() -> None:
    assert bin_index_of_ns(np.arange(128)).tolist() == list(range(128))
    assert bin_index_of_ns([128, 129, 130]).tolist() == [128, 128, 129]


def test_a_midpoint_names_its_bin_and_nothing_else_does() -> None:
    assert [bin_index_of_midpoint(int(value)) for value in MIDDLE_NS] == list(range(BIN_COUNT))
    with pytest.raises(KeyError):
        bin_index_of_midpoint(128)


@pytest.mark.parametrize("latency_ns", [2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**70])
def test_what_is_longer_than_all_bins_stands_in_the_last(latency_ns: int) -> None:
    assert bin_index_of_ns([latency_ns]).tolist() == [BIN_COUNT - 1]
    histogram = of_latencies([latency_ns])
    assert histogram.max_ns == latency_ns
    assert histogram.percentile_ns(50) == float(latency_ns)


def test_a_latency_of_zero_is_a_latency() -> None:
    histogram = of_latencies([0, 0, 0])
    assert histogram.total == 3
    assert histogram.percentile_ns(99.9) == 0.0


def test_a_negative_latency_is_refused() -> None:
    with pytest.raises(ValueError, match="-1 ns is not a latency"):
        of_latencies([5, -1])


def test_nothing_has_no_percentile() -> None:
    assert empty().percentile_ns(50) is None
    assert of_latencies([]).total == 0


def test_percentile_is_the_first_bin_that_reaches_the_rank() -> None:
    histogram = Histogram(dense_counts([10, 20, 30], [50, 49, 1]))
    assert [histogram.percentile_ns(p) for p in (0, 50, 50.1, 99, 99.1, 100)] == [
        10.0,
        10.0,
        20.0,
        20.0,
        30.0,
        30.0,
    ]


def test_a_rank_that_is_whole_on_paper_is_whole() -> None:
    """In binary fractions 0.3 x 660 exceeds 198 by 1e-17; fio says bin 5, and so do we."""
    histogram = Histogram(dense_counts([5, 6], [198, 462]))
    assert histogram.percentile_ns(30) == 5.0


def test_percentile_stays_within_the_extremes() -> None:
    lone = of_latencies([1_000_003])
    assert lone.percentile_ns(99) == 1_000_003.0
    wide = Histogram(dense_counts([bin_index_of_ns([1_000_003])[0]], [1]))
    assert wide.percentile_ns(99) == float(MIDDLE_NS[bin_index_of_ns([1_000_003])[0]])


def test_sparse_bins_that_repeat_add_up() -> None:
    assert dense_counts([3, 3, 5], [1, 2, 4])[[3, 4, 5]].tolist() == [3, 0, 4]


def test_an_extreme_is_known_only_when_both_sides_know_it() -> None:
    known = of_latencies([10, 20])
    unknown = Histogram(dense_counts([5], [1]))
    assert (known.merged_with(unknown).min_ns, known.merged_with(unknown).max_ns) == (None, None)
    assert known.merged_with(of_latencies([5])).min_ns == 5
    assert known.merged_with(empty()) is known
    assert empty().merged_with(known) is known


def test_percentiles_agree_with_hdrhistogram_within_the_bins_of_both() -> None:
    rng = np.random.default_rng(7)
    latencies = rng.lognormal(mean=11.5, sigma=1.1, size=50_000).astype(np.int64) + 1
    oracle = HdrHistogram(1, 60_000_000_000, 4)
    for latency in latencies.tolist():
        oracle.record_value(latency)
    ours = of_latencies(latencies)
    for percent in PERCENTS:
        value = ours.percentile_ns(percent)
        assert value == pytest.approx(oracle.get_value_at_percentile(percent), rel=1 / 128 + 1e-4)


def test_the_percentile_of_a_fleet_is_not_the_mean_of_percentiles() -> None:
    """Two clients, one with a slow tail: the fault that pooling bins avoids."""
    quick = of_latencies(np.full(9_000, 100_000))
    slow = of_latencies(np.concatenate([np.full(980, 200_000), np.full(20, 20_000_000)]))
    pooled = quick.merged_with(slow).percentile_ns(99.9)
    each = (quick.percentile_ns(99.9), slow.percentile_ns(99.9))
    assert None not in each
    mean = sum(value for value in each if value is not None) / 2
    brute = np.sort(np.repeat([100_000, 200_000, 20_000_000], [9_000, 980, 20]))[9_989]
    assert pooled == pytest.approx(brute, rel=1 / 128)
    assert mean == pytest.approx(brute / 2, rel=0.02)
