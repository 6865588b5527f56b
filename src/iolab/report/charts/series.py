"""What the charts of one run are drawn from: its time series on one grid, its latency curves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np
from msgspec.structs import replace

from iolab.analysis.metrics import is_percentile_supported
from iolab.analysis.slow_ios import SlowIoContext
from iolab.analysis.storage_bytes import ByteBalance
from iolab.analysis.window import to_controller_clock_ns
from iolab.core.bins import BIN_COUNT
from iolab.core.histogram import LOWER_NS, MIDDLE_NS, UPPER_NS, Counts
from iolab.core.metric import Outlier, RunResult
from iolab.core.run import RunKey, RunRecord
from iolab.core.samples import Floats, Ints, unique_io_mask
from iolab.record import Record
from iolab.report.charts.palette import ColorToken

RunAnchors = Mapping[RunKey, str]
"""Where a page tells of each run."""

CELLS_MAX: Final = 180
"""Cells of a timeline: more than its width in pixels on a phone can show is only bytes."""

MOMENTS_MAX: Final = 120
"""Columns of a heat map: each is then still two pixels wide on a phone."""

BANDS_MAX: Final = 40
"""Rows of a heat map: each is four pixels high."""

MOMENTS_MIN: Final = 3
"""With fewer columns there is no scenario of time to see: the percentile plot says as much."""

_NARROWEST: Final = 1.04
"""The least ratio of a band's ends: two bins of 1.6 %, so that no band is empty between bins."""


class PanelLine(Record):
    """One line of a panel, one value for each time of the detail's grid; None where unknown.

    `color` is its colour where it has one of its own, as an operation has.
    """

    name: str
    values: tuple[float | None, ...]
    color: ColorToken | None = None


class Panel(Record):
    """Lines of one unit over time: as `value_text` shows it."""

    title: str
    unit: str
    lines: tuple[PanelLine, ...]
    is_logarithmic: bool = False


class LatencyCurve(Record):
    """Latency by percentile: one I/O in `inverse_tail_fractions[i]` (1/(1-q)) exceeds `lat_ns[i]`.

    It ends at the highest percentile that `operation_count` I/Os support.
    """

    name: str
    operation_count: int
    inverse_tail_fractions: tuple[float, ...]
    lat_ns: tuple[float, ...]

    def truncated_at_one_in(self, inverse_tail_fraction: float) -> LatencyCurve:
        """The curve to where no more than one I/O in `inverse_tail_fraction` exceeds it."""
        kept = sum(
            reached <= inverse_tail_fraction * (1 + 1e-9) for reached in self.inverse_tail_fractions
        )
        return replace(
            self,
            inverse_tail_fractions=self.inverse_tail_fractions[:kept],
            lat_ns=self.lat_ns[:kept],
        )


class Timeline(Record):
    """A run's series on one grid of times, seconds since the first I/O; the middle of each cell.

    Seconds before `window_begin_s` and after `window_end_s` are not part of the result.
    """

    at_s: tuple[float, ...]
    cell_s: float
    window_begin_s: float
    window_end_s: float
    panels: tuple[Panel, ...]


class HeatMap(Record):
    """A run's I/Os by moment and latency: `counts[i][j]` completed in moment i within band j.

    Moment i lasts from `moment_edges_s[i]` to `moment_edges_s[i + 1]`, seconds since the first I/O;
    band j holds latencies from `latency_edges_ns[j]` to `latency_edges_ns[j + 1]`, and all bands
    have one ratio. The percentiles are those of each moment's I/Os, None where these are too few.
    What is before `window_begin_s` and after `window_end_s` is not part of the result;
    `interquartile_ns` is where half of the I/Os in between lie.
    """

    moment_edges_s: tuple[float, ...]
    latency_edges_ns: tuple[float, ...]
    counts: tuple[tuple[int, ...], ...]
    p50_ns: tuple[float | None, ...]
    p99_ns: tuple[float | None, ...]
    window_begin_s: float
    window_end_s: float
    interquartile_ns: tuple[float, float] | None


class RunChartData(Record):
    """The charts' side of a run.

    `all_operations` is the latency of all its I/Os, `per_operation` that of each direction; of
    metadata load there is no whole, and a curve for each operation. `timeline` is None for runs
    shown by their distribution alone. `byte_balance` is the balance of bytes where storage nodes
    were watched, `heat_map` the latency over time of some runs of I/O on files, `slow_ios` the
    slowest I/Os where they were requested.
    """

    result: RunResult
    all_operations: LatencyCurve
    per_operation: tuple[LatencyCurve, ...]
    timeline: Timeline | None
    byte_balance: ByteBalance | None = None
    heat_map: HeatMap | None = None
    slow_ios: tuple[SlowIoContext, ...] = ()

    @property
    def key(self) -> RunKey:
        """The run that this is the detail of."""
        return self.result.key


class NodePanel(Record):
    """One quantity of all devices of a kind; `scope` and `metrics` are those of its outliers.

    `link_use_by_trace` is, by trace, which share of its link a port used on average within the
    window.
    """

    panel: Panel
    scope: str
    metrics: tuple[str, ...]
    link_use_by_trace: tuple[tuple[str, float], ...] = ()


class NodeTimeline(Record):
    """A node in one run: its panels, those without any value left out.

    Times are seconds since the run's first I/O; what is before `window_begin_s` or after
    `window_end_s` is no part of the result. `outliers` are what analysis named.
    `nodes_sharing_disks` are watched nodes of the same kernel, whose guests' work is in the
    processors' figures, too; with `shares_disks` also in those of disks.
    """

    result: RunResult
    node: str
    guest_count: int
    at_s: tuple[float, ...]
    cell_s: float
    window_begin_s: float
    window_end_s: float
    panels: tuple[NodePanel, ...]
    outliers: tuple[Outlier, ...]
    nodes_sharing_disks: tuple[str, ...] = ()
    shares_disks: bool = False


class TimeGrid(Record):
    """Equal cells over the run, counted from its first I/O on the controller's clock.

    `edges_ns` are relative to `start_ns` (ns since the epoch), so that they keep every nanosecond;
    `clock_offsets_ns` is how far each host's clock is ahead of the controller's, in the order of
    the record's `host_names`.
    """

    start_ns: int
    span_ns: int
    edges_ns: Floats
    cell_s: float
    clock_offsets_ns: Ints

    @property
    def cell_middles_s(self) -> Floats:
        """The middle of each cell in seconds."""
        return np.asarray((self.edges_ns[:-1] + self.edges_ns[1:]) / 2e9, dtype=np.float64)

    @property
    def cell_lengths_s(self) -> Floats:
        """The part of each cell that the run covers: all of it but for the last."""
        edges = np.minimum(self.edges_ns, float(self.span_ns))
        return np.asarray(np.diff(edges) / 1e9, dtype=np.float64)

    @property
    def cell_count(self) -> int:
        """How many cells there are."""
        return int(self.edges_ns.size - 1)

    @staticmethod
    def for_run(record: RunRecord) -> TimeGrid:
        """Cells as long as the run's intervals, or longer where that would be too many."""
        table = record.intervals
        ahead = [host.clock_offset_ns for host in record.hosts]
        ahead += [host.clock_offset_ns for host in record.monitored_hosts]
        offsets = np.array(ahead, dtype=np.int64)
        ends = to_controller_clock_ns(table.end_real_ns, offsets[table.host])
        start = int((ends - table.span_ns).min())
        span = int(ends.max()) - start
        step = max(float(np.median(table.span_ns)), 1.0)
        cells = max(1, min(CELLS_MAX, round(span / step)))
        width = step * math.ceil(span / step / cells) if cells == CELLS_MAX else span / cells
        count = math.ceil(span / width - 1e-6)
        edges = width * np.arange(count + 1, dtype=np.float64)
        return TimeGrid(start, span, edges, round(width / 1e9, 3), offsets)

    def since_start_ns(self, host_ns: Ints, host_indexes: Ints | int) -> Floats:
        """Times of hosts' own clocks, in ns since the first I/O."""
        times = to_controller_clock_ns(host_ns, self.clock_offsets_ns[host_indexes]) - self.start_ns
        return np.asarray(times, dtype=np.float64)

    def cell_indexes(self, times_ns: Floats) -> Ints:
        """The cell that each time since the start falls into, -1 outside."""
        index = np.searchsorted(self.edges_ns, times_ns, side="right") - 1
        return np.where((index >= 0) & (index < self.cell_count), index, -1).astype(np.int64)


def panel_line_from_array(name: str, values: Floats) -> PanelLine:
    """The values with four digits; what is not a number is unknown."""
    return PanelLine(
        name, tuple(float(f"{v:.4g}") if math.isfinite(v) else None for v in values.tolist())
    )


def latency_counts_by_cell(record: RunRecord, grid: TimeGrid) -> Counts:
    """The I/Os of all hosts by cell of the grid and latency bin: shape (grid.size, BIN_COUNT).

    An interval belongs to the cell in which its middle lies. Latencies are response times where
    service times stand beside them.
    """
    table, parts = record.intervals, record.bins.bin_groups()
    counts = np.zeros((grid.cell_count, BIN_COUNT), dtype=np.int64)
    if not len(parts):
        return counts
    middles = grid.since_start_ns(table.end_real_ns, table.host) - table.span_ns / 2
    stride = int(max(table.seq.max(), parts.seq.max())) + 1
    cell_by_interval = np.full(len(record.hosts) * stride, -1, dtype=np.int64)
    cell_by_interval[table.host * stride + table.seq] = grid.cell_indexes(middles)
    cells = cell_by_interval[parts.host * stride + parts.seq]
    known = (cells >= 0) & unique_io_mask(parts.direction)
    record.bins.add_counts_to(counts, parts.select_groups(known), cells[known])
    return counts


def percentile_ns_by_cell(counts: Counts, percent: float) -> Floats:
    """The percentile (ns) of each row of bins, not a number where a row has no I/O."""
    sums = np.cumsum(counts, axis=1)
    totals = sums[:, -1]
    ranks = np.maximum(totals * percent / 100.0, 1.0)
    index = np.argmax(sums >= ranks[:, None], axis=1)
    return np.where(totals > 0, MIDDLE_NS[index].astype(np.float64), np.nan)


def heat_map_from_counts(
    counts: Counts, grid: TimeGrid, window_begin_s: float, window_end_s: float
) -> HeatMap | None:
    """The run's I/Os by moment and band of latency; None for a run of too few moments.

    `counts` are those of `latency_counts_by_cell` on `grid`; `window_begin_s` and `window_end_s`
    bound what the result is of, in seconds since the first I/O.
    """
    size = math.ceil(grid.cell_count / MOMENTS_MAX)
    starts = np.arange(0, grid.cell_count, size)
    moments = np.add.reduceat(counts, starts, axis=0) if grid.cell_count else counts
    occupied = np.flatnonzero(moments.any(axis=0))
    if len(starts) < MOMENTS_MIN or not occupied.size:
        return None
    edges_ns = _latency_band_edges(
        float(max(LOWER_NS[occupied[0]], 1)), float(UPPER_NS[occupied[-1]]) + 1.0
    )
    band_of = np.clip(np.searchsorted(edges_ns, MIDDLE_NS, side="right") - 1, 0, len(edges_ns) - 2)
    cells = np.zeros((len(starts), len(edges_ns) - 1), dtype=np.int64)
    np.add.at(cells.T, band_of, moments.T)
    edges_s = np.minimum(np.append(grid.edges_ns[starts], grid.edges_ns[-1]), grid.span_ns) / 1e9
    middles = (edges_s[:-1] + edges_s[1:]) / 2
    inside = moments[(middles >= window_begin_s) & (middles <= window_end_s)].sum(
        axis=0, keepdims=True
    )
    quartiles = [percentile_ns_by_cell(inside, percent)[0] for percent in (25.0, 75.0)]
    return HeatMap(
        moment_edges_s=tuple(round(float(edge), 4) for edge in edges_s),
        latency_edges_ns=tuple(edges_ns.tolist()),
        counts=tuple(tuple(row) for row in cells.tolist()),
        p50_ns=_supported_percentile_ns_by_moment(moments, 50.0),
        p99_ns=_supported_percentile_ns_by_moment(moments, 99.0),
        window_begin_s=window_begin_s,
        window_end_s=window_end_s,
        interquartile_ns=None
        if np.isnan(quartiles[0])
        else (float(quartiles[0]), float(quartiles[1])),
    )


def _latency_band_edges(low_ns: float, high_ns: float) -> Floats:
    """The edges of bands of one ratio from the shortest latency to the longest."""
    count = int(np.clip(math.log(high_ns / low_ns) / math.log(_NARROWEST), 1, BANDS_MAX))
    return np.geomspace(low_ns, high_ns, count + 1)


def _supported_percentile_ns_by_moment(moments: Counts, percent: float) -> tuple[float | None, ...]:
    """The percentile of each moment whose I/Os are enough for it."""
    values = percentile_ns_by_cell(moments, percent).tolist()
    totals = moments.sum(axis=1).tolist()
    return tuple(
        value if is_percentile_supported(total, percent) else None
        for value, total in zip(values, totals, strict=True)
    )
