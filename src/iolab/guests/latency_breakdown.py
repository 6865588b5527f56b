"""A breakdown of latency: of what a guest waits for, which part each layer down to the device took.

A bar is a whole latency, whatever its length: of 1.4 ms and of 90 µs the parts can be compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from iolab.core.metric import LatencyLayer, VerdictLevel
from iolab.record import Record
from iolab.report.charts.chart import Chart
from iolab.report.charts.palette import ColorToken, series_color_token
from iolab.report.charts.rows import StackedBar, StackedBarPart, legend_and_stacked_bar_plots
from iolab.report.numbers import DASH, value_text
from iolab.report.table import Table, row_of_cells, text_and_number_columns
from iolab.text import capitalised, counted_noun

RUNS_MAX: Final = 6
"""Runs drawn; the others stand in the table alone."""

_PART_NAMES: Final[dict[tuple[LatencyLayer | None, LatencyLayer], str]] = {
    (None, LatencyLayer.DEVICE): "device",
    (None, LatencyLayer.HYPERVISOR): "hypervisor",
    (None, LatencyLayer.GUEST): "below guest",
    (None, LatencyLayer.ENGINE): "not known",
    (LatencyLayer.HYPERVISOR, LatencyLayer.DEVICE): "host, network",
    (LatencyLayer.GUEST, LatencyLayer.DEVICE): "hypervisor, network",
    (LatencyLayer.ENGINE, LatencyLayer.DEVICE): "guest, host",
    (LatencyLayer.GUEST, LatencyLayer.HYPERVISOR): "virtual disk",
    (LatencyLayer.ENGINE, LatencyLayer.HYPERVISOR): "guest, virtual disk",
    (LatencyLayer.ENGINE, LatencyLayer.GUEST): "in the guest",
}

_LAYER_NAMES: Final = {
    LatencyLayer.ENGINE: "Generator",
    LatencyLayer.GUEST: "Guest",
    LatencyLayer.HYPERVISOR: "Hypervisor",
    LatencyLayer.DEVICE: "Devices",
}


class LatencyPart(Record):
    """A part of a latency, from `lower_latency_ns` to `upper_latency_ns` from the device up.

    It is between two layers, or within the `lower_layer` one, the lowest that is known:
    `upper_layer` is None.
    """

    upper_layer: LatencyLayer | None
    lower_layer: LatencyLayer
    lower_latency_ns: float
    upper_latency_ns: float

    @property
    def name(self) -> str:
        """What stands in the legend."""
        return _PART_NAMES[self.upper_layer, self.lower_layer]

    @property
    def duration_ns(self) -> float:
        """How long it was."""
        return self.upper_latency_ns - self.lower_latency_ns


class LatencyBreakdown(Record):
    """One direction of one run: `total_ns` as the guests saw it, and its parts from below.

    `layers` is the mean of each layer that is known. `clipped_layers` are layers whose I/Os took
    longer than those of the layer above, since they had others too: no part can be longer than the
    whole.
    """

    run_name: str
    direction: str
    total_ns: float
    parts: tuple[LatencyPart, ...]
    layers: tuple[tuple[LatencyLayer, float], ...]
    clipped_layers: tuple[LatencyLayer, ...]
    verdict_level: VerdictLevel


class _PartStyle(Record):
    """How a part is drawn, what it is, and where it is said to have been spent."""

    color: ColorToken
    long_name: str
    layer_description: str = ""


_PART_STYLES: Final = {
    "device": _PartStyle(series_color_token(0), "the devices themselves", "in the devices"),
    "hypervisor": _PartStyle(
        series_color_token(3), "the hypervisor and all below it", "in the hypervisor or below it"
    ),
    "below guest": _PartStyle(
        series_color_token(3), "all below the guest’s block device", "below the guest"
    ),
    "not known": _PartStyle(series_color_token(6), "not told apart"),
    "host, network": _PartStyle(
        series_color_token(4),
        "between hypervisor and device (host storage, replication, network, limits)",
    ),
    "hypervisor, network": _PartStyle(
        series_color_token(4),
        "between the guest’s block device and the devices (virtualisation, host storage, "
        "replication, network, limits)",
    ),
    "guest, host": _PartStyle(series_color_token(6), "between generator and device"),
    "virtual disk": _PartStyle(
        series_color_token(2), "between the guest’s block device and its hypervisor"
    ),
    "guest, virtual disk": _PartStyle(series_color_token(5), "between generator and hypervisor"),
    "in the guest": _PartStyle(series_color_token(5), "in the guest, above its block device"),
}
"""From the device up. Parts that never stand in one bar may share a colour."""


def latency_parts_and_clipped_layers(
    layers: Sequence[tuple[LatencyLayer, float]],
) -> tuple[tuple[LatencyPart, ...], tuple[LatencyLayer, ...]]:
    """The parts between layers given from the generator down, and the layers that were clipped."""
    edges: list[tuple[LatencyLayer, float]] = []
    clipped = []
    for layer, mean in layers:
        above = edges[-1][1] if edges else mean
        if mean > above:
            clipped.append(layer)
        edges.append((layer, min(mean, above)))
    parts: list[LatencyPart] = []
    below: tuple[LatencyLayer, float] | None = None
    for layer, edge in reversed(edges):
        if below is None:
            parts.append(LatencyPart(None, layer, 0.0, edge))
        else:
            parts.append(LatencyPart(layer, below[0], below[1], edge))
        below = (layer, edge)
    return tuple(parts), tuple(clipped)


def latency_breakdown_chart(
    subject: str, breakdowns: Sequence[LatencyBreakdown], caveat: str = ""
) -> Chart | None:
    """A bar for each direction of each run, whole latencies all of one length; None for none."""
    drawable = [
        breakdown for breakdown in breakdowns if len(breakdown.parts) > 1 and breakdown.total_ns > 0
    ]
    if not drawable:
        return None
    runs = list(dict.fromkeys(breakdown.run_name for breakdown in drawable))
    drawn = [
        [breakdown for breakdown in drawable if breakdown.run_name == run]
        for run in runs[:RUNS_MAX]
    ]
    rows = [
        _breakdown_bar(breakdown, with_run=breakdown is group[0])
        for group in drawn
        for breakdown in group
    ]
    legend = [
        (name, StackedBarPart(0.0, _PART_STYLES[name].color))
        for name in latency_part_names(drawable)
    ]
    return Chart(
        subject=subject,
        title="Where the latency arises",
        finding=caveat + _largest_parts_of_last_run_text(drawn),
        note=_breakdown_chart_note(drawable, len(runs) - len(drawn)),
        plots=legend_and_stacked_bar_plots(rows, legend),
        table=latency_layers_table(breakdowns),
    )


def latency_part_names(breakdowns: Iterable[LatencyBreakdown]) -> list[str]:
    """The names of all their parts, from the device up."""
    used = {part.name for breakdown in breakdowns for part in breakdown.parts}
    return [name for name in _PART_STYLES if name in used]


def _breakdown_bar(breakdown: LatencyBreakdown, *, with_run: bool) -> StackedBar:
    """The parts with their times as shares of the whole, so that all bars are equally long."""
    pieces = (
        StackedBarPart(
            part.duration_ns / breakdown.total_ns,
            _PART_STYLES[part.name].color,
            value_text(part.duration_ns, "ns"),
        )
        for part in breakdown.parts
    )
    total = value_text(breakdown.total_ns, "ns")
    return StackedBar(
        tuple(pieces), breakdown.run_name if with_run else "", breakdown.direction, total
    )


def _largest_parts_of_last_run_text(drawn_breakdowns: Sequence[Sequence[LatencyBreakdown]]) -> str:
    """Of the last run drawn, which has the most guests: each direction with its largest part."""
    sentences = []
    for breakdown in drawn_breakdowns[-1]:
        largest = max(breakdown.parts, key=lambda part: part.duration_ns)
        lowest, look = breakdown.parts[0], _PART_STYLES[largest.name]
        start = f"{breakdown.run_name}: a" if breakdown is drawn_breakdowns[-1][0] else "A"
        where = look.layer_description or look.long_name
        text = (
            f"{start} {breakdown.direction} takes {value_text(breakdown.total_ns, 'ns')}, most of "
            f"it ({_part_share_text(largest, breakdown)}) {where}"
        )
        if lowest is not largest and lowest.name == "device":
            took = value_text(lowest.duration_ns, "ns")
            text += f"; the devices take {took} ({_part_share_text(lowest, breakdown)})"
        sentences.append(f"{text}.")
    return " ".join(sentences)


def _part_share_text(part: LatencyPart, breakdown: LatencyBreakdown) -> str:
    return value_text(part.duration_ns / breakdown.total_ns, "share")


def _breakdown_chart_note(breakdowns: Sequence[LatencyBreakdown], left_out_run_count: int) -> str:
    names = "; ".join(
        f"{name}: {_PART_STYLES[name].long_name}" for name in latency_part_names(breakdowns)
    )
    notes = [f"Means over all I/Os of all nodes; each bar is a whole. {names}."]
    layers = {layer.value for breakdown in breakdowns for layer in breakdown.clipped_layers}
    if layers:
        notes.append(
            f"Where the {' and the '.join(sorted(layers))} took longer a piece than the layer "
            "above, which has other I/Os too, its part ends with the whole; the table has its own."
        )
    notes += (
        [f"{counted_noun(left_out_run_count, 'run')} more in the table."]
        if left_out_run_count > 0
        else []
    )
    return " ".join(notes)


def latency_layers_table(breakdowns: Sequence[LatencyBreakdown]) -> Table:
    """What each layer saw, and the share of each part."""
    names = latency_part_names(breakdowns)
    layers = [
        layer
        for layer in LatencyLayer
        if any(layer in dict(breakdown.layers) for breakdown in breakdowns)
    ]
    parts = (capitalised(name) for name in names)
    saw = (f"{_LAYER_NAMES[layer]} saw" for layer in layers)
    heads = text_and_number_columns(("Run", "Direction"), (*saw, *parts), ("Verdict",))
    rows = []
    for breakdown in breakdowns:
        means = dict(breakdown.layers)
        shares = {part.name: _part_share_text(part, breakdown) for part in breakdown.parts}
        texts = (
            breakdown.run_name,
            breakdown.direction,
            *(value_text(means[layer], "ns") if layer in means else DASH for layer in layers),
            *(shares.get(name, DASH) for name in names),
        )
        rows.append(row_of_cells(*texts, breakdown.verdict_level))
    return Table("Where the latency arises", heads, tuple(rows))
