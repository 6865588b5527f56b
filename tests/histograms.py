"""Histograms of latencies that a test knows one by one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from iolab.core.bins import BIN_COUNT
from iolab.core.histogram import Histogram, bin_index_of_ns


def empty() -> Histogram:
    """A histogram of nothing."""
    return Histogram(np.zeros(BIN_COUNT, dtype=np.int64))


def of_latencies(latency_ns: npt.ArrayLike) -> Histogram:
    """The histogram of raw latencies (ns), with their exact extremes."""
    values = np.asarray(latency_ns)
    if values.size == 0:
        return empty()
    counts = np.bincount(bin_index_of_ns(values), minlength=BIN_COUNT).astype(np.int64)
    return Histogram(counts, int(values.min()), int(values.max()))
