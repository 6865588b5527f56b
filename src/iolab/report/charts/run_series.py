"""From a run's evidence to the series and curves of its charts: numpy in, plain tuples out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Final

import numpy as np
from msgspec.structs import replace

from iolab.analysis.metrics import is_percentile_supported
from iolab.analysis.window import Window
from iolab.core.histogram import Histogram
from iolab.core.host import HostRole
from iolab.core.power import NAME_SEPARATOR, REPORTED_BOUNDARIES, meters_to_sum_for_machine
from iolab.core.run import RunRecord
from iolab.core.samples import BinTable, Floats, IntervalTable
from iolab.core.workload import Direction
from iolab.hosts.counter_names import METERS, OF_SERVERS
from iolab.hosts.rates import CounterSeries
from iolab.record import field_names
from iolab.report.charts.series import (
    HeatMap,
    LatencyCurve,
    Panel,
    PanelLine,
    TimeGrid,
    Timeline,
    heat_map_from_counts,
    latency_counts_by_cell,
    panel_line_from_array,
    percentile_ns_by_cell,
)

QUIET_PORT_BYTES_PER_S: Final = 1e6
"""Ports that never moved this much have no part in the load and get no panel."""

STEP_SLACK: Final = 1.5
"""How much longer than asked a step between two samples may be before it counts as a gap."""

LOOPBACK: Final = "lo"

NO_BOOT_IDS: Final[Mapping[str, str]] = {}
"""Where nothing is known of them, each host has one of its own."""

_ROLE_TITLES: Final = {HostRole.STORAGE: "Storage", HostRole.HYPERVISOR: "Node"}
"""What panels of watched hosts begin with."""

CURVE_POINTS: Final = 96
"""Percentiles at which a curve is sampled, evenly over the decades of its tail."""

NAMED_PERCENTS: Final = (50.0, 90.0, 99.0, 99.5, 99.9, 99.99, 99.999, 99.9999)
"""Percentiles that every curve holds exactly as far as its I/Os support them."""

LARGE_BLOCK_BYTES: Final = 64 * 1024
"""From this block on a run is told in bandwidth too; below, that is the load times a constant."""

_INTERVALS: Final = field_names(IntervalTable)
_BINS: Final = field_names(BinTable)


def telemetry_panels(
    record: RunRecord,
    series: Sequence[CounterSeries],
    grid: TimeGrid,
    boot_id_by_host: Mapping[str, str] = NO_BOOT_IDS,
) -> tuple[Panel, ...]:
    """The panels under the load, those without any value left out.

    Hosts that share a boot see the same disks, and each of those counts once.
    """
    beside = {host.host for host in record.monitored_hosts}
    storage = (
        *_monitored_host_panels(record, HostRole.STORAGE, series, grid, boot_id_by_host),
        *_monitored_host_panels(record, HostRole.HYPERVISOR, series, grid, boot_id_by_host),
    )
    of_clients = [s for s in series if s.host not in beside]
    targets = {(host.host, host.devices[0].device) for host in record.hosts if host.devices}
    numbers = {name: index for index, name in enumerate(record.host_names)}
    disks = _distinct_disk_series(
        [s for s in of_clients if s.scope == "disk" and (s.host, s.name) in targets],
        boot_id_by_host,
    )
    cores = [s for s in of_clients if s.scope == "cpu" and "@" in s.name]
    every = [s for s in of_clients if s.scope == "cpu" and s.name == "all"]
    ports = [s for s in of_clients if s.scope == "nic" and s.name != LOOPBACK]
    step_ns = record.telemetry_interval_ms * 1e6
    pressure = [s for s in of_clients if s.scope == "pressure"]

    def metric_series_on_grid(
        counter_series: Iterable[CounterSeries], metric_key: str
    ) -> list[Floats]:
        return [
            average_on_grid(s, grid, numbers[s.host], step_ns)
            for s in counter_series
            if s.metric == metric_key
        ]

    received, sent = (
        metric_series_on_grid(ports, "rx_bytes_per_s"),
        metric_series_on_grid(ports, "tx_bytes_per_s"),
    )
    busy_ports = any(_largest_value(rows) > QUIET_PORT_BYTES_PER_S for rows in (received, sent))
    read, write = (
        metric_series_on_grid(disks, "read_bytes_per_s"),
        metric_series_on_grid(disks, "write_bytes_per_s"),
    )
    server = [s for s in series if s.scope in OF_SERVERS]
    panels = (
        *storage,
        *_server_panels(server, metric_series_on_grid),
        Panel(
            "Device throughput",
            "bytes/s",
            _nonzero_panel_lines(
                ("read", _sum_over_hosts(read)), ("write", _sum_over_hosts(write))
            ),
        ),
        Panel(
            "Device queue",
            "depth",
            _one_host_or_mean_and_highest_lines(
                metric_series_on_grid(disks, "queue_depth"), "depth"
            ),
        ),
        Panel(
            "Device busy",
            "share",
            _one_host_or_mean_and_highest_lines(metric_series_on_grid(disks, "busy_share"), "busy"),
        ),
        Panel(
            "Processors busy", "share", _processor_panel_lines(every, cores, metric_series_on_grid)
        ),
        Panel(
            "Network",
            "bytes/s",
            _nonzero_panel_lines(("in", _sum_over_ports(received)), ("out", _sum_over_ports(sent)))
            if busy_ports
            else (),
        ),
        Panel(
            "I/O pressure",
            "share",
            _one_host_or_mean_and_highest_lines(
                metric_series_on_grid(pressure, "io_some_share"), "waiting"
            ),
        ),
        Panel(
            "Device temperature",
            "celsius",
            _one_host_or_mean_and_highest_lines(
                metric_series_on_grid(disks, "temperature_c"), "device"
            ),
        ),
        Panel("Power", "W", _power_lines_by_boundary(record, series, grid)),
    )
    return tuple(panel for panel in panels if panel.lines)


def _monitored_host_panels(
    record: RunRecord,
    role: HostRole,
    series: Sequence[CounterSeries],
    grid: TimeGrid,
    boot_id_by_host: Mapping[str, str],
) -> tuple[Panel, ...]:
    """What watched hosts of a role did meanwhile: named disks and ports added up, processors."""
    nodes = tuple(host for host in record.monitored_hosts if host.role is role)
    names = {host.host for host in nodes}
    disks = {(host.host, delta.device) for host in nodes for delta in host.devices}
    numbers = {name: index for index, name in enumerate(record.host_names)}
    step_ns = record.telemetry_interval_ms * 1e6
    own = [counter for counter in series if counter.host in names]
    of_disks = [s for s in own if s.scope == "disk" and (s.host, s.name) in disks]
    others = [
        counter
        for counter in own
        if (counter.scope == "nic" and counter.name != LOOPBACK)
        or (counter.scope, counter.name) == ("cpu", "all")
    ]
    by_metric: dict[tuple[str, str], list[Floats]] = {}
    for counter in (*_distinct_disk_series(of_disks, boot_id_by_host), *others):
        values = average_on_grid(counter, grid, numbers[counter.host], step_ns)
        by_metric.setdefault((counter.scope, counter.metric), []).append(values)

    def counter_rows_of_metric(scope: str, metric_key: str) -> list[Floats]:
        return by_metric.get((scope, metric_key), [])

    read, write = (
        counter_rows_of_metric("disk", "read_bytes_per_s"),
        counter_rows_of_metric("disk", "write_bytes_per_s"),
    )
    into, out = (
        counter_rows_of_metric("nic", "rx_bytes_per_s"),
        counter_rows_of_metric("nic", "tx_bytes_per_s"),
    )
    busy_ports = any(_largest_value(rates) > QUIET_PORT_BYTES_PER_S for rates in (into, out))
    ports = (
        _nonzero_panel_lines(("in", _sum_over_ports(into)), ("out", _sum_over_ports(out)))
        if busy_ports
        else ()
    )
    word = _ROLE_TITLES[role]
    return (
        Panel(
            f"{word} disks",
            "bytes/s",
            _nonzero_panel_lines(
                ("read", _sum_over_hosts(read)), ("write", _sum_over_hosts(write))
            ),
        ),
        Panel(f"{word} ports", "bytes/s", ports),
        Panel(
            f"{word} processors",
            "share",
            _one_host_or_mean_and_highest_lines(
                counter_rows_of_metric("cpu", "busy_share"), "busy"
            ),
        ),
    )


def _distinct_disk_series(
    series: Sequence[CounterSeries], boot_id_by_host: Mapping[str, str]
) -> list[CounterSeries]:
    """The series of disks, each of a kernel once: of the first host that tells it."""
    unique: dict[tuple[str, str, str], CounterSeries] = {}
    for counter in series:
        kernel = boot_id_by_host.get(counter.host) or counter.host
        unique.setdefault((kernel, counter.name, counter.metric), counter)
    return list(unique.values())


def _server_panels(
    server_series: Sequence[CounterSeries],
    metric_series_on_grid: Callable[[Iterable[CounterSeries], str], list[Floats]],
) -> tuple[Panel, ...]:
    """What a store's own server counted of itself, on whichever host it ran."""

    def server_panel_lines(*pairs: tuple[str, str]) -> tuple[PanelLine, ...]:
        return _nonzero_panel_lines(
            *(
                (name, _sum_over_hosts(metric_series_on_grid(server_series, metric)))
                for name, metric in pairs
            )
        )

    return (
        Panel(
            "Server requests",
            "ops/s",
            server_panel_lines(("read", "client_reads_per_s"), ("write", "client_writes_per_s")),
        ),
        Panel(
            "Server latency",
            "ns",
            server_panel_lines(("read", "client_read_lat_ns"), ("write", "client_write_lat_ns")),
            is_logarithmic=True,
        ),
        Panel(
            "Server flush and compaction",
            "bytes/s",
            server_panel_lines(
                ("compacted", "compacted_bytes_per_s"), ("flushed", "flushed_bytes_per_s")
            ),
        ),
        Panel(
            "Server queues",
            "waiting",
            server_panel_lines(
                ("reads", "reads_waiting"),
                ("writes", "writes_waiting"),
                ("compactions", "compactions_pending"),
            ),
        ),
        Panel(
            "Server garbage collection", "share", server_panel_lines(("share", "collection_share"))
        ),
    )


def _power_lines_by_boundary(
    record: RunRecord, series: Sequence[CounterSeries], grid: TimeGrid
) -> tuple[PanelLine, ...]:
    """Watts of each boundary: the meters that count of each machine that the figures are of."""
    numbers = {name: index for index, name in enumerate(record.host_names)}
    monitored = {host.host for host in record.monitored_hosts}
    lines = []
    for boundary in REPORTED_BOUNDARIES:
        begin = f"{boundary.value}{NAME_SEPARATOR}"
        own = [s for s in series if s.scope == METERS and s.name.startswith(begin)]
        meters: dict[str, dict[str, CounterSeries]] = {}
        for meter in own:
            meters.setdefault(meter.host, {})[meter.name.removeprefix(begin)] = meter
        rows = [
            average_on_grid(meter, grid, numbers[host], _meter_reading_interval_ns(record, meter))
            for host in [name for name in meters if name in monitored] or list(meters)
            for meter in map(
                meters[host].__getitem__, meters_to_sum_for_machine(boundary, [*meters[host]])
            )
        ]
        lines.append((boundary.value, _sum_over_hosts(rows)))
    return _known_panel_lines(*lines)


def _meter_reading_interval_ns(record: RunRecord, meter: CounterSeries) -> float:
    """Between two readings: meters beside a host have a pace of their own."""
    usual_ns = float(np.median(np.diff(meter.real_ns))) if meter.real_ns.size > 1 else 0.0
    return max(usual_ns, record.telemetry_interval_ms * 1e6)


def _processor_panel_lines(
    processor_series: Sequence[CounterSeries],
    cores: Sequence[CounterSeries],
    average_metric_on_grid: Callable[[Iterable[CounterSeries], str], list[Floats]],
) -> tuple[PanelLine, ...]:
    """All cores together, and the busiest core, which is what limits a single job."""
    together = average_metric_on_grid(processor_series, "busy_share") or average_metric_on_grid(
        cores, "busy_share"
    )
    return _known_panel_lines(
        ("all cores", _mean_over_hosts(together)),
        ("busiest", _maximum_over_hosts(average_metric_on_grid(cores, "busy_share"))),
    )


def average_on_grid(
    series: CounterSeries, grid: TimeGrid, host_index: int | None, step_ns: float
) -> Floats:
    """The mean of the values in each cell; without `host_index` on the controller's clock.

    A derived value covers the time since the sample before it. So a cell without a sample takes the
    next one's, but only if that step can have begun before the cell: a gap stays a gap.
    """
    if series.real_ns.size == 0:
        return np.full(grid.cell_count, np.nan)
    if host_index is None:
        times = np.asarray(series.real_ns - grid.start_ns, dtype=np.float64)
    else:
        times = grid.since_start_ns(series.real_ns, host_index)
    cells = grid.cell_indexes(times - 1)
    known = (cells >= 0) & np.isfinite(series.value)
    sums = np.bincount(cells[known], weights=series.value[known], minlength=grid.cell_count)
    counts = np.bincount(cells[known], minlength=grid.cell_count)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.where(counts > 0, sums / counts, np.nan)
    following = np.minimum(np.searchsorted(times, grid.edges_ns[1:]), times.size - 1)
    wait_ns = times[following] - grid.edges_ns[:-1]
    covered = (counts == 0) & (wait_ns > 0) & (wait_ns <= STEP_SLACK * step_ns)
    means[covered] = series.value[following[covered]]
    return np.asarray(means, dtype=np.float64)


def _known_panel_lines(*pairs: tuple[str, Floats | None]) -> tuple[PanelLine, ...]:
    return tuple(
        panel_line_from_array(name, values) for name, values in pairs if values is not None
    )


def _nonzero_panel_lines(*pairs: tuple[str, Floats | None]) -> tuple[PanelLine, ...]:
    """The pairs without those that were zero throughout; the first if all were."""
    used = [(name, v) for name, v in pairs if v is not None and np.nan_to_num(v).max() > 0]
    return _known_panel_lines(*(used or pairs[:1]))


def _one_host_or_mean_and_highest_lines(rows: list[Floats], name: str) -> tuple[PanelLine, ...]:
    """One host by its name; several as mean and highest."""
    if len(rows) <= 1:
        return _known_panel_lines((name, _mean_over_hosts(rows)))
    return _known_panel_lines(
        ("mean", _mean_over_hosts(rows)), ("highest", _maximum_over_hosts(rows))
    )


def _matrix_if_known(rows: list[Floats]) -> Floats | None:
    """The rows as a matrix, None when nothing in them is known."""
    if not rows:
        return None
    matrix = np.vstack(rows)
    return matrix if np.isfinite(matrix).any() else None


def _sum_over_hosts(rows: list[Floats]) -> Floats | None:
    """The sum over hosts, unknown where any of them is: a missing host is not a dip."""
    matrix = _matrix_if_known(rows)
    total = None if matrix is None else matrix.sum(axis=0)
    return None if total is None or not np.isfinite(total).any() else total


def _sum_over_ports(rows: list[Floats]) -> Floats | None:
    """The sum over ports that are there; ports of containers come and go."""
    matrix = _matrix_if_known(rows)
    return None if matrix is None else _nan_if_all_unknown(matrix, np.nansum(matrix, axis=0))


def _mean_over_hosts(rows: list[Floats]) -> Floats | None:
    matrix = _matrix_if_known(rows)
    if matrix is None:
        return None
    counts = np.isfinite(matrix).sum(axis=0)
    return _nan_if_all_unknown(matrix, np.nansum(matrix, axis=0) / np.maximum(counts, 1))


def _maximum_over_hosts(rows: list[Floats]) -> Floats | None:
    matrix = _matrix_if_known(rows)
    if matrix is None:
        return None
    return _nan_if_all_unknown(matrix, np.where(np.isfinite(matrix), matrix, -np.inf).max(axis=0))


def _nan_if_all_unknown(matrix: Floats, values: Floats) -> Floats:
    """The values, nan in the columns where no row knows anything."""
    return np.where(np.isfinite(matrix).any(axis=0), values, np.nan)


def _largest_value(rows: list[Floats]) -> float:
    matrix = _matrix_if_known(rows)
    return 0.0 if matrix is None else float(np.nanmax(matrix))


def latency_curve(name: str, histogram: Histogram) -> LatencyCurve:
    """The histogram as latency by percentile, up to the last that its I/Os support.

    It has at most CURVE_POINTS points, and the named percentiles exactly.
    """
    total = histogram.total
    named = [percent for percent in NAMED_PERCENTS if is_percentile_supported(total, percent)]
    if not named:
        return LatencyCurve(name, total, (), ())
    decades = math.log10(inverse_tail_fraction(named[-1]))
    evenly = [100.0 - 100.0 / 10.0 ** (decades * i / CURVE_POINTS) for i in range(CURVE_POINTS)]
    percents = sorted({*evenly, *named})
    values = histogram.percentiles_ns(percents)
    return LatencyCurve(
        name,
        total,
        tuple(inverse_tail_fraction(percent) for percent in percents),
        tuple(0.0 if value is None else value for value in values),
    )


def inverse_tail_fraction(percent: float) -> float:
    """One I/O in how many is beyond the percentile."""
    return 100.0 / (100.0 - percent)


def throughput_and_latency_panels(record: RunRecord, grid: TimeGrid) -> list[Panel]:
    """Throughput and latency of all hosts together."""
    table = record.intervals
    directions = [d for d in Direction if np.any(table.direction == d)]
    seconds = grid.cell_lengths_s
    ios = {
        d: distribute_over_cells(record, grid, table.ios.astype(np.float64), d) for d in directions
    }
    moved = {
        d: distribute_over_cells(record, grid, table.bytes.astype(np.float64), d)
        for d in directions
    }
    waited = sum(distribute_over_cells(record, grid, table.lat_sum_ns, d) for d in directions)
    total = sum(ios.values(), np.zeros(grid.cell_count))
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(total > 0, waited / total, np.nan)
    tail = p99_ns_by_cell(record, grid)
    load = Panel(
        "Load", "1/s", tuple(panel_line_from_array(d.key, ios[d] / seconds) for d in directions)
    )
    flow = Panel(
        "Bandwidth",
        "bytes/s",
        tuple(panel_line_from_array(d.key, moved[d] / seconds) for d in directions),
    )
    latency = Panel(
        "Latency",
        "ns",
        (panel_line_from_array("mean", mean), panel_line_from_array("p99", tail)),
        is_logarithmic=True,
    )
    large = table.bytes.sum() >= LARGE_BLOCK_BYTES * max(table.ios.sum(), 1)
    # Disks and ports of storage nodes are told in bytes: so is the load then.
    return [load, flow, latency] if large or record.monitored_hosts else [load, latency]


PanelMaker = Callable[[RunRecord, TimeGrid], list[Panel]]
"""Draws a run's load on a grid of times."""


def build_timeline(
    record: RunRecord,
    telemetry: Sequence[CounterSeries],
    window: Window | None,
    boot_id_by_host: Mapping[str, str] = NO_BOOT_IDS,
    panel_maker: PanelMaker = throughput_and_latency_panels,
) -> Timeline:
    """The run's load and telemetry on one grid; `window` is what all hosts shared, if they did.

    By `boot_id_by_host` a disk that several hosts see counts once; `panel_maker` draws the run's
    load where that is not I/O.
    """
    grid = TimeGrid.for_run(record)
    window_begin_s, window_end_s = _measured_begin_and_end_s(record, grid, window)
    panels = [
        *panel_maker(record, grid),
        *telemetry_panels(record, telemetry, grid, boot_id_by_host),
    ]
    return Timeline(
        at_s=tuple(float(f"{at:.4f}") for at in grid.cell_middles_s),
        cell_s=grid.cell_s,
        window_begin_s=window_begin_s,
        window_end_s=window_end_s,
        panels=tuple(panel for panel in panels if panel.lines),
    )


def build_heat_map(record: RunRecord, window: Window | None) -> HeatMap | None:
    """The latency of the run's I/Os over time, of all hosts together; `window` is as above."""
    grid = TimeGrid.for_run(record)
    window_begin_s, window_end_s = _measured_begin_and_end_s(record, grid, window)
    return heat_map_from_counts(
        latency_counts_by_cell(record, grid), grid, window_begin_s, window_end_s
    )


def _measured_begin_and_end_s(
    record: RunRecord, grid: TimeGrid, window: Window | None
) -> tuple[float, float]:
    """From when to when the result is of the run, in seconds since the first I/O."""
    if window is None:
        return round(record.warmup_s, 3), round(grid.span_ns / 1e9, 3)
    begin, end = window.start_ns - grid.start_ns, window.end_ns - grid.start_ns
    return round(begin / 1e9, 3), round(end / 1e9, 3)


def operation_record(record: RunRecord, operation: IntEnum) -> RunRecord:
    """The record with the intervals and bins of one operation."""
    rows = record.intervals.direction == int(operation)
    bins = record.bins.direction == int(operation)
    return replace(
        record,
        intervals=IntervalTable(*(getattr(record.intervals, name)[rows] for name in _INTERVALS)),
        bins=BinTable(*(getattr(record.bins, name)[bins] for name in _BINS)),
    )


def distribute_over_cells(
    record: RunRecord, grid: TimeGrid, amounts: Floats, direction: IntEnum
) -> Floats:
    """The amounts of all hosts' intervals shared out over the grid's cells; sums are kept."""
    table = record.intervals
    total = np.zeros(grid.cell_count)
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


def p99_ns_by_cell(record: RunRecord, grid: TimeGrid) -> Floats:
    """The p99 of all I/Os of all hosts that completed in each cell's intervals."""
    return percentile_ns_by_cell(latency_counts_by_cell(record, grid), 99.0)
