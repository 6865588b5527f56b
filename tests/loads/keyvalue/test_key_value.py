"""Latencies in an engine's own wide bins: what is known of a quantile, and nothing finer."""

from __future__ import annotations

import math
from collections import Counter
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.loads.keyvalue.workload import (
    BinnedLatency,
    DatabaseSpec,
    DbBenchJob,
    KeyOperation,
    LatencyBin,
)

EDGES: Final = (0, 1, 2, 3, 4, 6, 10, 15, 22, 34, 51, 76, 110, 170, 250)


def binned(latencies: list[int]) -> BinnedLatency:
    """Latencies of 1 to 250 ns in bins of such edges."""
    held = Counter(next(k for k, edge in enumerate(EDGES) if one <= edge) for one in latencies)
    bins = tuple(LatencyBin(EDGES[k - 1], EDGES[k], held[k]) for k in sorted(held))
    low, high = min(latencies, default=0), max(latencies, default=0)
    return BinnedLatency(KeyOperation.READ, len(latencies), 0.0, 0.0, low, high, 1, bins)


@given(st.lists(st.integers(1, 250), min_size=1, max_size=200), st.floats(0, 1))
def test_a_quantile_lies_between_its_bounds(latencies: list[int], quantile: float) -> None:
    told = binned(latencies)
    rank = max(math.ceil(told.count * quantile), 1)
    true = sorted(latencies)[rank - 1]
    low, high = told.quantile_bounds_ns(quantile)
    assert low <= true <= high
    assert low <= told.interpolated_quantile_ns(quantile) <= high
    assert told.relative_bin_width(quantile) == (
        pytest.approx((high - low) / low) if low else math.inf
    )


def test_what_is_no_quantile_is_refused() -> None:
    for wrong in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="is not a quantile"):
            binned([5]).quantile_bounds_ns(wrong)
    with pytest.raises(ValueError, match="no latency"):
        binned([]).interpolated_quantile_ns(0.5)


def test_the_writer_beside_the_readers_has_a_stream_of_its_own() -> None:
    loaded = DatabaseSpec(keys=9, key_bytes=16, value_bytes=1024, block_bytes=4096)
    assert loaded.entry_bytes == 1040
    assert DbBenchJob("readrandom", loaded, threads=4, cache_bytes=0).seed_stream_count == 4
    assert DbBenchJob("readwhilewriting", loaded, threads=4, cache_bytes=0).seed_stream_count == 5
