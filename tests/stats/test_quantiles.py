"""Quantiles of latency and their intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

from iolab.core.histogram import MIDDLE_NS, Counts, Histogram
from iolab.core.samples import Ints
from iolab.stats.quantiles import (
    QuantileEstimate,
    _quantile_errors,
    bootstrap_block_count,
    has_few_stalls,
    latency_quantile_estimates,
)
from iolab.stats.repeats import BIN_ERROR
from tests.histograms import of_latencies


def seconds_of(latencies: np.typing.NDArray[np.float64]) -> Counts:
    """A histogram for each row of latencies (ns)."""
    return np.stack([of_latencies(row.astype(np.int64)).counts for row in latencies])


def slowed(seconds: int, seed: int, ios: int = 400) -> Counts:
    """Log-normal latencies whose scale wanders from second to second."""
    rng = np.random.default_rng(seed)
    shocks = np.convolve(rng.standard_normal(seconds + 50) * 0.06, 0.8 ** np.arange(50), "valid")
    scale = np.exp(shocks[:seconds])
    return seconds_of(1e6 * scale[:, None] * np.exp(0.5 * rng.standard_normal((seconds, ios))))


def of_run(counts: Ints, middle_ns: Ints, q: float, rng: np.random.Generator) -> QuantileEstimate:
    (found,) = latency_quantile_estimates(counts, middle_ns, [q], rng)
    return found


@given(st.integers(min_value=0, max_value=1000), st.sampled_from([0.5, 0.9, 0.99, 0.999]))
@settings(max_examples=6)
def test_the_value_is_that_of_hdrhistogram(seed: int, q: float) -> None:
    rng = np.random.default_rng(seed)
    latencies = (1e5 * np.exp(rng.standard_normal((20, 300)))).astype(np.int64)
    oracle = HdrHistogram(1, 10_000_000_000, 4)
    for value in latencies.ravel():
        oracle.record_value(int(value))
    found = of_run(seconds_of(latencies.astype(np.float64)), MIDDLE_NS, q, rng)
    assert found.value_ns == pytest.approx(
        oracle.get_value_at_percentile(100 * q), rel=BIN_ERROR + 1e-4
    )


def test_the_value_is_that_of_the_merged_histogram() -> None:
    counts = slowed(300, 1)
    found = of_run(counts, MIDDLE_NS, 0.99, np.random.default_rng(1))
    assert found.value_ns == Histogram(counts.sum(axis=0)).percentile_ns(99)
    assert found.low_ns is not None
    assert found.high_ns is not None
    assert found.low_ns < found.value_ns < found.high_ns


def test_the_interval_covers_under_correlation() -> None:
    true = np.quantile(
        np.exp(np.random.default_rng(0).standard_normal(2_000_000) * np.hypot(0.5, 0.1)), 0.99
    )
    hits = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        found = of_run(slowed(600, seed + 100, 100), MIDDLE_NS, 0.99, rng)
        if found.low_ns is not None and found.high_ns is not None:
            hits.append(found.low_ns <= 1e6 * true <= found.high_ns)
    assert len(hits) >= 20
    assert sum(hits) >= 0.88 * len(hits)


def test_seconds_merge_in_any_grouping() -> None:
    counts = slowed(120, 2)
    halves = np.stack([counts[:60].sum(axis=0), counts[60:].sum(axis=0)])
    rng = np.random.default_rng(1)
    whole, joined = of_run(counts, MIDDLE_NS, 0.9, rng), of_run(halves, MIDDLE_NS, 0.9, rng)
    assert joined.value_ns == whole.value_ns
    assert joined.low_ns is None


def test_a_longer_run_is_more_certain() -> None:
    def width(seconds: int) -> float:
        found = of_run(slowed(seconds, 9), MIDDLE_NS, 0.99, np.random.default_rng(1))
        assert found.low_ns is not None
        assert found.high_ns is not None
        return found.high_ns / found.low_ns

    assert width(1600) < width(600)


def test_fewer_than_ten_stalls_decide_far_quantiles() -> None:
    assert [has_few_stalls(stalls) for stalls in (0, 1, 9, 10)] == [False, True, True, False]


def test_the_interval_of_few_blocks_is_stretched_by_students_law() -> None:
    drawn = np.exp(np.linspace(math.log(900), math.log(1100), 1001))  # evenly, between those
    nothing_beyond, edges = np.zeros(100), np.arange(0, 100, 10)
    found = _quantile_errors(1000.0, drawn, nothing_beyond, edges).to_estimate(
        1000.0, correlated_error_bound=0.0
    )
    assert found.low_ns is not None
    assert found.high_ns is not None
    # Student's t at 9 degrees is 2.262157, the normal's 1.96; ten blocks lack one degree.
    stretch = 2.262157 / 1.96 * math.sqrt(10 / 9)
    half = 0.475 * math.log(1100 / 900)
    middle = math.log(1100 * 900) / 2 - math.log(1000)
    up, down = (half + middle) * stretch + BIN_ERROR, (half - middle) * stretch + BIN_ERROR
    assert math.log(found.high_ns / 1000) == pytest.approx(up, rel=1e-5)
    assert math.log(1000 / found.low_ns) == pytest.approx(down, rel=1e-5)


def test_a_run_is_cut_into_ten_blocks_and_more_of_ten_to_thirty_seconds() -> None:
    assert [bootstrap_block_count(s) for s in (99, 100, 200, 300, 600)] == [0, 10, 10, 10, 20]
