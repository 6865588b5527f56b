"""From a run's evidence to the series and curves of its charts: numpy in, plain tuples out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from enum import IntEnum
from typing import Final

import numpy as np

from iolab.analysis.metrics import is_supported
from iolab.analysis.window import Window
from iolab.core.histogram import Histogram
from iolab.core.run import RunRecord
from iolab.core.samples import BinTable, Direction, Floats, IntervalTable
from iolab.report.series import (
    Curve,
    Grid,
    HeatMap,
    Panel,
    Timeline,
    counts_by_cell,
    heat_map,
    percentile_by_cell,
    trace_on_grid,
)
from iolab.report.telemetry import NO_KERNELS, HostSeries, telemetry_panels

CURVE_POINTS: Final = 96
"""Percentiles at which a curve is sampled, evenly over the decades of its tail."""

NAMED_PERCENTS: Final = (50.0, 90.0, 99.0, 99.5, 99.9, 99.99, 99.999, 99.9999)
"""Percentiles that every curve holds exactly as far as its I/Os support them."""

LARGE_BLOCK_BYTES: Final = 64 * 1024
"""From this block on a run is told in bandwidth too; below, that is the load times a constant."""


def curve_of(name: str, histogram: Histogram) -> Curve:
    """The histogram as latency by percentile, up to the last that its I/Os support.

    It has at most CURVE_POINTS points, and the named percentiles exactly.
    """
    total = histogram.total
    named = [percent for percent in NAMED_PERCENTS if is_supported(total, percent)]
    if not named:
        return Curve(name, total, (), ())
    decades = math.log10(tail_of(named[-1]))
    evenly = [100.0 - 100.0 / 10.0 ** (decades * i / CURVE_POINTS) for i in range(CURVE_POINTS)]
    percents = sorted({*evenly, *named})
    values = [histogram.percentile_ns(percent) for percent in percents]
    return Curve(
        name,
        total,
        tuple(tail_of(percent) for percent in percents),
        tuple(0.0 if value is None else value for value in values),
    )


def tail_of(percent: float) -> float:
    """One I/O in how many is beyond the percentile."""
    return 100.0 / (100.0 - percent)


def load_panels(record: RunRecord, grid: Grid) -> list[Panel]:
    """Throughput and latency of all hosts together."""
    table = record.intervals
    directions = [d for d in Direction if np.any(table.direction == d)]
    seconds = grid.covered_s
    ios = {d: spread_over(record, grid, table.ios.astype(np.float64), d) for d in directions}
    moved = {d: spread_over(record, grid, table.bytes.astype(np.float64), d) for d in directions}
    waited = sum(spread_over(record, grid, table.lat_sum_ns, d) for d in directions)
    total = sum(ios.values(), np.zeros(grid.size))
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(total > 0, waited / total, np.nan)
    tail = tail_by_cell(record, grid, 99.0)
    load = Panel("Load", "1/s", tuple(trace_on_grid(_way(d), ios[d] / seconds) for d in directions))
    flow = Panel(
        "Bandwidth",
        "bytes/s",
        tuple(trace_on_grid(_way(d), moved[d] / seconds) for d in directions),
    )
    latency = Panel(
        "Latency", "ns", (trace_on_grid("mean", mean), trace_on_grid("p99", tail)), log=True
    )
    large = table.bytes.sum() >= LARGE_BLOCK_BYTES * max(table.ios.sum(), 1)
    # Disks and ports of storage nodes are told in bytes: so is the load then.
    return [load, flow, latency] if large or record.bystanders else [load, latency]


PanelMaker = Callable[[RunRecord, Grid], list[Panel]]
"""Draws a run's load on a grid of times."""


def timeline_of(
    record: RunRecord,
    telemetry: Sequence[HostSeries],
    window: Window | None,
    kernels: Mapping[str, str] = NO_KERNELS,
    load: PanelMaker = load_panels,
) -> Timeline:
    """The run's load and telemetry on one grid; `window` is what all hosts shared, if they did.

    `kernels` are hosts' boots, to count a disk that several hosts see once; `load` draws the run's
    load where that is not I/O.
    """
    grid = Grid.over(record)
    begin_s, end_s = _counted_s(record, grid, window)
    panels = [*load(record, grid), *telemetry_panels(record, telemetry, grid, kernels)]
    return Timeline(
        at_s=tuple(float(f"{at:.4f}") for at in grid.middles_s),
        cell_s=grid.cell_s,
        warmup_s=begin_s,
        end_s=end_s,
        panels=tuple(panel for panel in panels if panel.traces),
    )


def heat_of(record: RunRecord, window: Window | None) -> HeatMap | None:
    """The latency of the run's I/Os over time, of all hosts together; `window` is as above."""
    grid = Grid.over(record)
    begin_s, end_s = _counted_s(record, grid, window)
    return heat_map(counts_by_cell(record, grid), grid, begin_s, end_s)


def _counted_s(record: RunRecord, grid: Grid, window: Window | None) -> tuple[float, float]:
    """From when to when the result is of the run, in seconds since the first I/O."""
    if window is None:
        return round(record.warmup_s, 3), round(grid.span_ns / 1e9, 3)
    begin, end = window.start_ns - grid.start_ns, window.end_ns - grid.start_ns
    return round(begin / 1e9, 3), round(end / 1e9, 3)


def only_operation(record: RunRecord, operation: IntEnum) -> RunRecord:
    """The record with the intervals and bins of one operation."""
    rows = record.intervals.direction == int(operation)
    bins = record.bins.direction == int(operation)
    return replace(
        record,
        intervals=IntervalTable(*(getattr(record.intervals, name)[rows] for name in _INTERVALS)),
        bins=BinTable(*(getattr(record.bins, name)[bins] for name in _BINS)),
    )


_INTERVALS: Final = tuple(field.name for field in fields(IntervalTable))
_BINS: Final = tuple(field.name for field in fields(BinTable))


def _way(direction: Direction) -> str:
    return direction.name.lower()


def spread_over(record: RunRecord, grid: Grid, amounts: Floats, direction: IntEnum) -> Floats:
    """The amounts of all hosts' intervals shared out over the grid's cells; sums are kept."""
    table = record.intervals
    total = np.zeros(grid.size)
    for host in range(len(record.hosts)):
        rows = np.flatnonzero((table.host == host) & (table.direction == direction))
        if rows.size == 0:
            continue
        rows = rows[np.argsort(table.end_real_ns[rows])]
        ends = grid.since_start_ns(table.end_real_ns[rows], host)
        first = ends[0] - table.span_ns[rows[0]]
        times = np.concatenate(([first], ends))
        sums = np.concatenate(([0.0], np.cumsum(amounts[rows])))
        total += np.diff(np.interp(grid.edges_ns, times, sums))
    return total


def tail_by_cell(record: RunRecord, grid: Grid, percent: float) -> Floats:
    """The percentile of all I/Os of all hosts that completed in each cell's intervals."""
    return percentile_by_cell(counts_by_cell(record, grid), percent)
