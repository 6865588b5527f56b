"""The guests of a session in its test configuration: what each was given, where each lived."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from iolab.analysis.points import PointKey, PointSummary
from iolab.core.metric import (
    BytesWrittenByLayer,
    HypervisorResult,
    LatencyLayer,
    LayerLatency,
    Metric,
    RunResult,
)
from iolab.core.study import Study
from iolab.core.workload import Direction
from iolab.guests.guest import (
    GuestCpuTime,
    GuestDiskKind,
    GuestFleet,
    GuestRun,
    GuestSettings,
    Pinning,
    booted_guest_settings,
    guest_fleet_of_run,
)
from iolab.guests.latency_breakdown import LatencyBreakdown, latency_parts_and_clipped_layers
from iolab.guests.metrics import points_by_hypervisor
from iolab.report.brief import NodeMetrics
from iolab.report.numbers import DASH, metric_value_text, value_text
from iolab.report.table import Table, row_of_cells, text_and_number_columns
from iolab.text import counted_noun, list_text, percent_text
from iolab.units import format_bytes, format_count

if TYPE_CHECKING:
    from iolab.core.run import RunKey
    from iolab.report.brief import Brief

GUESTS_SHOWN: Final = 24
"""Guests told one by one, those that waited longest for a processor first."""

NAMES_SHOWN: Final = 3
"""Guests named in a row of their node; the others are counted."""

BYTES_CHECK: Final = "guest-bytes"
"""The check that counts every device of the nodes once."""

_METRICS: Final = (
    ("iops", "IOPS"),
    ("bw_bytes_per_s", "Bandwidth"),
    ("lat_ns_mean", "Mean"),
    ("lat_ns_p99", "p99"),
    ("lat_ns_p99_99", "p99.99"),
)

_NODE: Final = ("Run", "Node")

SCOPES: Final = {"disk": "disk", "cpu": "processor", "nic": "port"}
"""Kinds of outliers for people."""

_ENDINGS: Final = (
    ("_bytes_per_s", "bytes/s", " bytes/s"),
    ("_frames_per_s", "frames/s", " frames/s"),
    ("_iops", "1/s", " IOPS"),
    ("_lat_ns", "ns", " latency"),
    ("_share", "share", ""),
    ("_depth", "depth", " depth"),
    ("_c", "celsius", " c"),
    ("", "", ""),
)
"""Of names of metrics: their unit, and what stands for them in words."""

_ACCELERATORS: Final = {"kvm": "KVM", "tcg": "emulation (TCG)", "auto": "not known"}
_REPLICAS: Final = {1: "on its own node alone"}

_PINNED: Final = {
    Pinning.NONE: "no",
    Pinning.CORES: "to processors of its own",
    Pinning.NUMA: "to one NUMA node, with its memory",
}


def layer_latencies_of_fleet(nodes: Iterable[HypervisorResult]) -> tuple[LayerLatency, ...]:
    """The layers of all nodes together: every I/O weighs the same; from the generator down.

    A layer that a node with guests does not tell of is left out: it would be another fleet's.
    """
    by_node = [node.layers for node in nodes if node.layers]
    merged = []
    for layer in LatencyLayer:
        for direction in Direction:
            own = [
                latency
                for layers in by_node
                for latency in layers
                if latency.layer is layer and latency.direction is direction and latency.ios > 0
            ]
            ios = sum(latency.ios for latency in own)
            if ios and len(own) == _node_count_with_engine_ios(by_node, direction):
                mean = sum(latency.mean_ns * latency.ios for latency in own) / ios
                merged.append(LayerLatency(layer, direction, mean, ios))
    return tuple(merged)


def _node_count_with_engine_ios(
    by_node: list[tuple[LayerLatency, ...]], direction: Direction
) -> int:
    """How many nodes have I/Os in a direction at all, as their generators saw it."""
    return sum(
        any(
            layer.layer is LatencyLayer.ENGINE and layer.direction is direction and layer.ios
            for layer in layers
        )
        for layers in by_node
    )


def latency_breakdowns(result: RunResult, run_name: str) -> Iterator[LatencyBreakdown]:
    """A breakdown for each direction of a run that has any layer."""
    layers = layer_latencies_of_fleet(result.nodes)
    for direction in (Direction.READ, Direction.WRITE):
        means = tuple(
            (layer.layer, layer.mean_ns) for layer in layers if layer.direction is direction
        )
        if not means or means[0][0] is not LatencyLayer.ENGINE:
            continue
        parts, clipped = latency_parts_and_clipped_layers(means)
        yield LatencyBreakdown(
            run_name=run_name,
            direction=direction.key,
            total_ns=means[0][1],
            parts=parts,
            layers=means,
            clipped_layers=clipped,
            verdict_level=result.verdict.level,
        )


Named = tuple[str, RunResult]
"""What a run is called in a table, and the run."""


def hypervisors_table(named_results: Sequence[Named]) -> Table | None:
    """What the guests of each node did together; percentiles are of all their I/Os."""
    rows = [
        row_of_cells(
            name,
            node.name,
            f"{len(node.guests):,}",
            *(
                metric_value_text(node.metrics.get(key), is_rate_unit_omitted=True)
                for key, _ in _METRICS
            ),
            run.verdict.level,
        )
        for name, run in named_results
        for node in run.nodes
    ]
    numbers = ("Guests", *(title for _, title in _METRICS))
    return _table_without_run_column_if_single(
        named_results,
        Table("Each node", text_and_number_columns(_NODE, numbers, ("Verdict",)), tuple(rows)),
    )


def _table_without_run_column_if_single(
    named_results: Sequence[Named], table: Table
) -> Table | None:
    """The table, whose first column names the run where there are several; None without a row."""
    if not table.rows:
        return None
    first = 0 if len(named_results) > 1 else 1
    return Table(table.title, table.columns[first:], tuple(cells[first:] for cells in table.rows))


def written_bytes_table(named_results: Sequence[Named]) -> Table | None:
    """Bytes written on their way down, node by node; None where nothing was written."""
    rows = []
    for name, run in named_results:
        by_node = ((node.name, node_written_bytes_cells(node)) for node in run.nodes)
        rows += [
            row_of_cells(name, node, *texts, run.verdict.level) for node, texts in by_node if texts
        ]
        if (total := written_bytes_of_fleet_by_layer(run)) is not None and len(run.nodes) > 1:
            rows.append(
                row_of_cells(name, "all nodes", *_written_bytes_cells(total), run.verdict.level)
            )
    numbers = ("Guests", "Hypervisor", "Devices", "Devices / guests", "Declared factor")
    heads = text_and_number_columns(_NODE, numbers, ("Verdict",))
    return _table_without_run_column_if_single(
        named_results, Table("Bytes written on their way down", heads, tuple(rows))
    )


def node_written_bytes_cells(node: HypervisorResult) -> tuple[str, ...]:
    """Written by guests, hypervisor and devices, their ratio, and the declared factor."""
    written = node.bytes_written
    return (
        ()
        if written is None or not (written.guests or written.hypervisor)
        else _written_bytes_cells(written)
    )


def written_bytes_of_fleet_by_layer(result: RunResult) -> BytesWrittenByLayer | None:
    """The same of all nodes together; None where nothing was written or not every node tells.

    Nodes that share a kernel share its devices, so that theirs are no sum of what nodes tell: they
    are what the check of bytes counted, each device once.
    """
    written = [node.bytes_written for node in result.nodes if node.bytes_written is not None]
    if len(written) < len(result.nodes) or not sum(node.guests for node in written):
        return None
    through = [node.hypervisor for node in written]
    counted = [moved for moved in through if moved is not None]
    factors = {node.factor for node in written}
    return BytesWrittenByLayer(
        guests=sum(node.guests for node in written),
        hypervisor=sum(counted) if len(counted) == len(through) else None,
        devices=_bytes_written_by_devices_in_check(result),
        factor=factors.pop() if len(factors) == 1 else None,
    )


def _bytes_written_by_devices_in_check(result: RunResult) -> int | None:
    for check in result.verdict.checks:
        if check.code == BYTES_CHECK:
            moved = check.evidence.get("devices_write_bytes")
            return moved if isinstance(moved, int) else None
    return None


def _written_bytes_cells(written: BytesWrittenByLayer) -> tuple[str, ...]:
    ratio = (
        written.devices / written.guests if written.devices is not None and written.guests else None
    )
    return (
        format_bytes(written.guests),
        _bytes_or_dash_text(written.hypervisor),
        _bytes_or_dash_text(written.devices),
        DASH if ratio is None else f"{ratio:.3f}",
        DASH if written.factor is None else f"{written.factor:g}",
    )


def _bytes_or_dash_text(byte_count: int | None) -> str:
    return DASH if byte_count is None else format_bytes(byte_count)


def outliers_table(named_results: Sequence[Named]) -> Table | None:
    """What stands out among its like on a node, named; None where nothing does."""
    rows = [
        row_of_cells(
            name,
            node.name,
            SCOPES.get(outlier.scope, outlier.scope),
            outlier.name,
            *outlier_texts(outlier.metric, outlier.value, outlier.median_value),
        )
        for name, run in named_results
        for node in run.nodes
        for outlier in node.outliers
    ]
    texts = (*_NODE, "What", "Which", "Measured")
    heads = text_and_number_columns(texts, ("Value", "Median of all", "Times as much"))
    return _table_without_run_column_if_single(
        named_results, Table("What stands out among its like", heads, tuple(rows))
    )


class OutlierTexts(NamedTuple):
    """An outlier for people: both values have their unit, `ratio` is of its value to the median."""

    metric: str
    value: str
    median: str
    ratio: str


def outlier_texts(metric_key: str, value: float, median_value: float) -> OutlierTexts:
    """What an outlier is of, its value, and how far that is from the median."""
    words, unit = _metric_title_and_unit(metric_key)
    times = f"{value / median_value:.2f}" if median_value > 0 else DASH
    return OutlierTexts(words, value_text(value, unit), value_text(median_value, unit), times)


def _metric_title_and_unit(metric_name: str) -> tuple[str, str]:
    ending, unit, words = next(row for row in _ENDINGS if metric_name.endswith(row[0]))
    name = metric_name.removesuffix(ending).replace("tx", "sent").replace("rx", "received")
    return name.replace("_", " ") + words, unit


def guests_by_node_table(fleet: GuestFleet) -> Table:
    """The guests of each node together: who, run by what, how long they booted and waited."""
    rows = []
    for node in fleet.nodes:
        guests = fleet.guest_runs_on_node(node)
        booted = [guest.booted_s for guest in guests if guest.booted_s is not None]
        waits = {
            g.guest: w for g in guests if (w := vcpu_wait_share(g, fleet.settings)) is not None
        }
        most = max(waits, key=waits.__getitem__, default="")
        rows.append(
            row_of_cells(
                node,
                list_text([guest.guest for guest in guests], NAMES_SHOWN),
                _accelerators_text(guests),
                f"{len(guests):,}",
                _seconds_range_text(booted),
                percent_text(sum(waits.values()) / len(waits)) if waits else DASH,
                f"{percent_text(waits[most])} ({most})" if waits else DASH,
            )
        )
    heads = text_and_number_columns(
        ("Node", "Guests", "Run by"), ("How many", "Booted within", "vCPUs waited", "At most")
    )
    return Table("Guests by node", heads, tuple(rows))


def _seconds_range_text(seconds: Sequence[float]) -> str:
    if not seconds:
        return DASH
    least, most = f"{min(seconds):.1f}", f"{max(seconds):.1f}"
    return f"{most} s" if least == most else f"{least} to {most} s"


def _accelerators_text(guests: Iterable[GuestRun]) -> str:
    words = dict.fromkeys(
        "a hypervisor not ours"
        if guest.accelerator is None
        else _ACCELERATORS[guest.accelerator.value]
        for guest in guests
    )
    return ", ".join(words)


def guests_table(fleet: GuestFleet) -> Table | None:
    """The guests one by one, at most GUESTS_SHOWN, the longest waits first; None without figures.

    vCPU times are shares of the time that all vCPUs of a guest had.
    """
    measured = [
        guest for guest in fleet.guests if guest.use is not None or guest.booted_s is not None
    ]
    if not measured:
        return None
    ordered = sorted(measured, key=lambda guest: -(vcpu_wait_share(guest, fleet.settings) or 0.0))
    rows = [
        row_of_cells(
            guest.guest,
            guest.node,
            _accelerators_text([guest]),
            DASH if guest.booted_s is None else f"{guest.booted_s:.1f} s",
            _vcpu_share_text(guest.use, fleet.settings, "vcpu_run_s"),
            _vcpu_share_text(guest.use, fleet.settings, "vcpu_wait_s"),
            DASH if guest.use is None else f"{guest.use.cpu_s:.2f} s",
        )
        for guest in ordered[:GUESTS_SHOWN]
    ]
    hidden = len(ordered) - GUESTS_SHOWN
    if hidden > 0:
        rows.append(row_of_cells(f"{counted_noun(hidden, 'guest')} that waited less", *([""] * 6)))
    heads = text_and_number_columns(
        ("Guest", "Node", "Run by"), ("Booted in", "vCPUs ran", "vCPUs waited", "CPU, all of it")
    )
    return Table("Each guest", heads, tuple(rows))


def vcpu_wait_share(guest: GuestRun, settings: GuestSettings | None) -> float | None:
    """For which share of their time a guest's vCPUs were ready and on no processor."""
    return None if guest.use is None else _vcpu_time_share(guest.use, settings, "vcpu_wait_s")


def _vcpu_share_text(
    cpu_use: GuestCpuTime | None, guest_settings: GuestSettings | None, time_field: str
) -> str:
    share = None if cpu_use is None else _vcpu_time_share(cpu_use, guest_settings, time_field)
    return DASH if share is None else percent_text(share)


def _vcpu_time_share(
    cpu_use: GuestCpuTime, settings: GuestSettings | None, time_field: str
) -> float | None:
    total_s = cpu_use.wall_s * (settings.vcpus if settings else 1)
    return float(getattr(cpu_use, time_field)) / total_s if total_s > 0 else None


def guest_settings_table(settings: GuestSettings | None) -> Table | None:
    """What every guest was given, one row a choice; None for guests that were there."""
    if settings is None:
        return None
    modelled = settings.disk is GuestDiskKind.MODELLED
    disk = f"{format_bytes(settings.disk_bytes)}, "
    disk += (
        "modelled, no storage behind it" if modelled else "an image on its node, laid out in full"
    )
    return Table(
        "Guests",
        text_and_number_columns(("What", "Each guest")),
        tuple(row_of_cells(*pair) for pair in _setting_rows(settings, disk)),
    )


def _setting_rows(settings: GuestSettings, disk_text: str) -> Iterator[tuple[str, str]]:
    yield "Processors", counted_noun(settings.vcpus, "vCPU")
    yield "Memory", format_bytes(settings.memory_bytes)
    yield "Disk", disk_text
    if settings.latency_ns is not None:
        yield "Latency of the model", value_text(settings.latency_ns, "ns")
    limit = settings.iops_limit
    yield "Limit", "none" if limit is None else f"{format_count(limit)} IOPS"
    yield "Replicas", _REPLICAS.get(settings.replicas, f"on {settings.replicas} nodes")
    yield "Accelerator asked for", settings.accelerator.value
    yield "Pinned", _PINNED[settings.pinning]
    yield "Boots at once", str(settings.boots_at_once or "one for each processor of its node")
    yield "A boot may take", f"{settings.boot_limit_s:g} s"
    yield "Kernel", settings.kernel or "the distribution’s, for clouds"


def guest_fleets_by_run(brief: Brief) -> dict[RunKey, GuestFleet]:
    """The guests of runs, as their nodes told."""
    return {
        key: fleet
        for key, manifest in brief.manifests.items()
        if (fleet := guest_fleet_of_run(manifest)) is not None
    }


def guest_tables(brief: Brief) -> tuple[Table, ...]:
    """The settings of the guests and, of the run with the most of them, where each lived."""
    fleet = fleet_with_most_guests(guest_fleets_by_run(brief).values())
    if fleet is None:
        return ()
    settings = fleet.settings or booted_guest_settings(brief.study)
    tables = (guest_settings_table(settings), guests_by_node_table(fleet))
    return tuple(table for table in tables if table is not None)


def fleet_with_most_guests(fleets: Iterable[GuestFleet]) -> GuestFleet | None:
    """The fleet with the most guests, the first of several."""
    return max(fleets, key=lambda fleet: len(fleet.guests), default=None)


def metrics_by_point_and_node(points: Sequence[PointSummary], study: Study) -> NodeMetrics:
    """The published values of the nodes of those points."""
    runs = [run for point in points for run in point.runs]
    by_point: dict[PointKey, dict[str, Mapping[str, Metric]]] = {}
    for name, summaries in points_by_hypervisor(runs, study).items():
        for summary in summaries:
            by_point.setdefault(summary.key, {})[name] = summary.metrics
    return by_point
