"""Latency over time from a run's bins: the I/Os of each moment by latency, and its percentiles."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from iolab.analyse.percentiles import is_supported
from iolab.model.histogram import BIN_COUNT, LOWER_NS, MIDDLE_NS, UPPER_NS, Counts
from iolab.model.run import RunRecord
from iolab.model.sample import Floats, counted_once
from iolab.report.detail import HeatMap
from iolab.report.grid import Grid

MAX_MOMENTS: Final = 120
"""Columns of a heat map: each is then still two pixels wide on a phone."""

MAX_BANDS: Final = 40
"""Rows of a heat map: each is four pixels high."""

MIN_MOMENTS: Final = 3
"""With fewer columns there is no course of time to see: the percentile plot says as much."""

_NARROWEST: Final = 1.04
"""The least ratio of a band's ends: two bins of 1.6 %, so that no band is empty between bins."""


def counts_by_cell(record: RunRecord, grid: Grid) -> Counts:
    """The I/Os of all hosts by cell of the grid and latency bin: shape (grid.size, BIN_COUNT).

    An interval belongs to the cell in which its middle lies. Latencies are response times where
    service times stand beside them.
    """
    table, bins = record.intervals, record.bins
    counts = np.zeros((grid.size, BIN_COUNT), dtype=np.int64)
    if not len(bins):
        return counts
    middles = grid.since_start_ns(table.end_real_ns, table.host) - table.span_ns / 2
    cells = grid.cell_of(middles)
    stride = int(max(table.seq.max(), bins.seq.max())) + 1
    cell_by_interval = np.full(len(record.hosts) * stride, -1, dtype=np.int64)
    cell_by_interval[table.host * stride + table.seq] = cells
    for part in bins.chunks():
        where = cell_by_interval[part.host * stride + part.seq]
        known = (where >= 0) & counted_once(part.direction)
        np.add.at(counts, (where[known], part.bin[known]), part.count[known])
    return counts


def percentile_by_cell(counts: Counts, percent: float) -> Floats:
    """The percentile (ns) of each row of bins, not a number where a row has no I/O."""
    sums = np.cumsum(counts, axis=1)
    totals = sums[:, -1]
    ranks = np.maximum(totals * percent / 100.0, 1.0)
    index = np.argmax(sums >= ranks[:, None], axis=1)
    return np.where(totals > 0, MIDDLE_NS[index].astype(np.float64), np.nan)


def heat_map(counts: Counts, grid: Grid, begin_s: float, end_s: float) -> HeatMap | None:
    """The run's I/Os by moment and band of latency; None for a run of too few moments.

    `counts` are those of `counts_by_cell` on `grid`; `begin_s` and `end_s` bound what the result is
    of, in seconds since the first I/O.
    """
    size = math.ceil(grid.size / MAX_MOMENTS)
    starts = np.arange(0, grid.size, size)
    moments = np.add.reduceat(counts, starts, axis=0) if grid.size else counts
    found = np.flatnonzero(moments.any(axis=0))
    if len(starts) < MIN_MOMENTS or not found.size:
        return None
    edges_ns = _bands(float(max(LOWER_NS[found[0]], 1)), float(UPPER_NS[found[-1]]) + 1.0)
    band_of = np.clip(np.searchsorted(edges_ns, MIDDLE_NS, side="right") - 1, 0, len(edges_ns) - 2)
    cells = np.zeros((len(starts), len(edges_ns) - 1), dtype=np.int64)
    np.add.at(cells.T, band_of, moments.T)
    edges_s = np.minimum(np.append(grid.edges_ns[starts], grid.edges_ns[-1]), grid.span_ns) / 1e9
    middles = (edges_s[:-1] + edges_s[1:]) / 2
    inside = moments[(middles >= begin_s) & (middles <= end_s)].sum(axis=0, keepdims=True)
    quartiles = [percentile_by_cell(inside, percent)[0] for percent in (25.0, 75.0)]
    return HeatMap(
        edges_s=tuple(round(float(edge), 4) for edge in edges_s),
        edges_ns=tuple(edges_ns.tolist()),
        counts=tuple(tuple(row) for row in cells.tolist()),
        p50_ns=_supported(moments, 50.0),
        p99_ns=_supported(moments, 99.0),
        begin_s=begin_s,
        end_s=end_s,
        middle_ns=None if np.isnan(quartiles[0]) else (float(quartiles[0]), float(quartiles[1])),
    )


def _bands(low: float, high: float) -> Floats:
    """The edges of bands of one ratio from the shortest latency to the longest."""
    count = int(np.clip(math.log(high / low) / math.log(_NARROWEST), 1, MAX_BANDS))
    return np.geomspace(low, high, count + 1)


def _supported(moments: Counts, percent: float) -> tuple[float | None, ...]:
    """The percentile of each moment whose I/Os are enough for it."""
    values = percentile_by_cell(moments, percent).tolist()
    totals = moments.sum(axis=1).tolist()
    return tuple(
        value if is_supported(total, percent) else None
        for value, total in zip(values, totals, strict=True)
    )
