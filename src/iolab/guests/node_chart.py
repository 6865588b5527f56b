"""A node from inside: a panel for each quantity, a line for each device, all on one time axis.

Lines of devices that stand out have a colour of their own and their name; where there are too many
to be told apart, the others are grey.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from statistics import median
from typing import Final

import numpy as np
import numpy.typing as npt

from iolab.analysis.storage_bytes import deltas_of_devices_on_no_other
from iolab.analysis.window import Window
from iolab.core.host import HostFacts
from iolab.core.metric import Outlier, RunResult
from iolab.core.run import MonitoredHost, RunRecord
from iolab.core.samples import Floats
from iolab.core.workload import Direction
from iolab.guests.nodes import HypervisorCounters, hypervisor_counters, kernel_key_of_host
from iolab.hosts.rates import ALL_CORES, CounterSeries
from iolab.report.charts.chart import (
    LINE_GAP,
    Chart,
    Line,
    LineEndLabel,
    MarkTooltip,
    Plot,
    last_known_value,
    outside_window_shading,
    timeline_marks,
)
from iolab.report.charts.palette import MUTED, SERIES, ColorToken, series_color_token
from iolab.report.charts.run_series import average_on_grid
from iolab.report.charts.scale import panel_scale, seconds_axis
from iolab.report.charts.series import (
    NodePanel,
    NodeTimeline,
    Panel,
    PanelLine,
    TimeGrid,
    panel_line_from_array,
)
from iolab.report.numbers import DASH, value_text
from iolab.report.table import Cell, Table, text_and_number_columns
from iolab.text import capitalised, counted_noun, escape_invisible, list_text, percent_text
from iolab.units import format_duration_s

DISK_IO_METRICS: Final = ("read_iops", "write_iops")
"""What the panel of a node's disks is of."""

PROCESSOR_METRICS: Final = ("busy_share",)
"""What the panel of its processors is of."""

PANEL_HEIGHT: Final = 66
GAP: Final = 30
HEAD: Final = 26
NAMED_MAX: Final = len(SERIES)
"""Devices that have a colour each; of more only the least, the most and outliers have."""

_DASHES: Final = ((), (5, 3), (2, 2))

IDLE_SHARE: Final = 1e-3
"""A port that never moved this share of what the busiest did has no part in the load."""


def node_timeline_chart(
    subject: str, title: str, timeline: NodeTimeline, caveat: str = ""
) -> Chart:
    """The panels stacked, the time under the last."""
    panels = list(timeline.panels)
    plots: list[Plot] = []
    top = float(HEAD)
    for panel in panels:
        plots.append(_panel_plot(panel, timeline, top, is_last=panel is panels[-1]))
        top += plots[-1].height + GAP
    return Chart(
        subject=subject,
        title=title,
        finding=caveat + " ".join(_panel_sentence(panel, timeline) for panel in panels),
        note=_timeline_note(timeline),
        plots=tuple(plots),
        table=_device_statistics_table(title, timeline),
    )


def _panel_height(panel: Panel) -> int:
    """Room for a label a line, as far as lines are named."""
    named = min(len(panel.lines), NAMED_MAX)
    return max(PANEL_HEIGHT, math.ceil(LINE_GAP * named))


def _panel_plot(panel: NodePanel, timeline: NodeTimeline, top: float, *, is_last: bool) -> Plot:
    traces = panel.panel.lines
    values = [v for trace in traces for v in trace.values if v is not None]
    scale = panel_scale(panel.panel, values, 3)
    end = timeline.at_s[-1] + timeline.cell_s / 2
    styles = _style_by_device(panel, timeline)
    marks = outside_window_shading(timeline.window_begin_s, timeline.window_end_s, end)
    for trace in sorted(traces, key=lambda other: styles[other.name][2]):
        marks += timeline_marks(
            timeline.at_s, trace.values, scale, _styled_line(trace.name, styles[trace.name])
        )
    ends = [
        LineEndLabel(trace.name, scale.to_scale_unit(last), styles[trace.name][0])
        for trace in traces
        if styles[trace.name][2] and (last := last_known_value(trace.values)) is not None
    ]
    return Plot(
        _panel_height(panel.panel),
        marks,
        seconds_axis(end, "seconds since the first I/O" if is_last else ""),
        scale,
        ends,
        title=panel.panel.title,
        unit=f"{scale.unit}{_link_use_suffix(panel)}",
        top=top,
    )


Look = tuple[ColorToken, tuple[int, ...], bool]
"""Colour, dash, and whether the line has its name beside it."""


def _styled_line(name: str, style: Look) -> Line:
    color, dash, is_named = style
    width, opacity = (1.4, 1.0) if is_named else (0.8, 0.5)
    tip = MarkTooltip(name)
    return Line(color=color, places=(), width=width, dash=dash, opacity=opacity, tip=tip)


def _style_by_device(panel: NodePanel, timeline: NodeTimeline) -> dict[str, Look]:
    """Each device has a colour, the same in all panels; of many only those that matter have one."""
    traces = panel.panel.lines
    if len(traces) <= NAMED_MAX:
        return {
            trace.name: (series_color_token(i), _DASHES[i % len(_DASHES)], True)
            for i, trace in enumerate(traces)
        }
    alike = [other for other in timeline.panels if other.scope == panel.scope]
    outliers = [
        _outlier_label(outlier) for other in alike for outlier in _panel_outliers(other, timeline)
    ]
    ends = [name for other in alike for name in _highest_and_lowest_devices(other, timeline)]
    named = list(dict.fromkeys([*outliers, *ends]))[:NAMED_MAX]
    own = {*outliers, *_highest_and_lowest_devices(panel, timeline)} & {
        trace.name for trace in traces
    }
    plain: Look = (MUTED, (), False)
    return dict.fromkeys((trace.name for trace in traces), plain) | {
        name: (series_color_token(i), (), True) for i, name in enumerate(named) if name in own
    }


def _highest_and_lowest_devices(panel: NodePanel, timeline: NodeTimeline) -> list[str]:
    """The device with the most, and the one with the least."""
    means = {
        trace.name: mean
        for trace in panel.panel.lines
        if (
            mean := _mean_or_latency_median(
                _values_in_measured_window(trace, timeline), panel.panel.unit
            )
        )
        is not None
    }
    ordered = sorted(means, key=means.__getitem__)
    return [*ordered[-1:], *ordered[:1]]


def _panel_outliers(panel: NodePanel, timeline: NodeTimeline) -> list[Outlier]:
    return [o for o in timeline.outliers if o.scope == panel.scope and o.metric in panel.metrics]


def _outlier_label(outlier: Outlier) -> str:
    """An outlier as a reader calls it: of processors it is a core, of which no line is drawn."""
    core, at, numa = outlier.name.partition("@")
    return f"core {core} of NUMA {numa}" if outlier.scope == "cpu" and at else outlier.name


def _link_use_suffix(panel: NodePanel) -> str:
    """The share of their links that the ports used: one figure, or the least and the most."""
    shares = [share for _, share in panel.link_use_by_trace]
    if not shares:
        return ""
    least, most = percent_text(min(shares)), percent_text(max(shares))
    return f" ({most if least == most else f'{least} to {most}'} of the link)"


def _panel_sentence(node_panel: NodePanel, timeline: NodeTimeline) -> str:
    """The least and the most of the devices by their means, and what stands out."""
    panel = node_panel.panel
    means = {
        trace.name: _mean_or_latency_median(
            _values_in_measured_window(trace, timeline), node_panel.panel.unit
        )
        for trace in panel.lines
    }
    measured = {name: mean for name, mean in means.items() if mean is not None}
    if not measured:
        return f"{panel.title}: nothing known in the measured window."
    low, high = min(measured, key=measured.__getitem__), max(measured, key=measured.__getitem__)
    least, most = (value_text(measured[name], panel.unit) for name in (low, high))
    text = f"{most} ({escape_invisible(high)})" if low == high or least == most else ""
    text = text or f"{least} ({escape_invisible(low)}) to {most} ({escape_invisible(high)})"
    links = _link_use_suffix(node_panel).strip(" ()")
    outliers = list(
        dict.fromkeys(
            escape_invisible(_outlier_label(outlier))
            for outlier in _panel_outliers(node_panel, timeline)
        )
    )
    links_text = f", {links}" if links else ""
    return (
        f"{panel.title}: {text}{links_text}"
        f"{f'; {_outlier_names_text(outliers)}' if outliers else ''}."
    )


def _outlier_names_text(names: Sequence[str]) -> str:
    return f"{list_text(names)} {'stands' if len(names) == 1 else 'stand'} out"


def _timeline_note(timeline: NodeTimeline) -> str:
    lines = max(len(panel.panel.lines) for panel in timeline.panels)
    grey = (
        f" Of more than {NAMED_MAX} devices the least, the most and those that stand out have a "
        "colour; grey are the others."
        if lines > NAMED_MAX
        else ""
    )
    return (
        f"Means over {format_duration_s(timeline.cell_s)}, counted by the node’s own kernel. "
        f"Shaded: not part of the result.{grey}"
    )


def _values_in_measured_window(trace: PanelLine, timeline: NodeTimeline) -> list[float]:
    """The trace's known values within the measured window."""
    return [
        v
        for at, v in zip(timeline.at_s, trace.values, strict=True)
        if v is not None and timeline.window_begin_s <= at <= timeline.window_end_s
    ]


def _mean_or_latency_median(values: Sequence[float], unit: str) -> float | None:
    """The mean; of latencies the median, since cells have unequal numbers of I/Os."""
    if not values:
        return None
    return median(values) if unit == "ns" else math.fsum(values) / len(values)


def _device_statistics_table(title: str, timeline: NodeTimeline) -> Table:
    """Each device's mean, least and most in the measured window."""
    rows = []
    for panel in timeline.panels:
        shares = dict(panel.link_use_by_trace)
        for trace in panel.panel.lines:
            values, unit = _values_in_measured_window(trace, timeline), panel.panel.unit
            mean = _mean_or_latency_median(values, unit)
            numbers = (
                [DASH] * 3
                if mean is None
                else [value_text(v, unit) for v in (mean, min(values), max(values))]
            )
            link = percent_text(shares[trace.name]) if trace.name in shares else DASH
            outliers = map(_outlier_label, _panel_outliers(panel, timeline))
            note = "stands out" if trace.name in outliers else ""
            texts = (panel.panel.title, trace.name, *numbers, link, note)
            rows.append(tuple(map(Cell, texts)))
    heads = text_and_number_columns(
        ("Quantity", "Device"),
        ("Mean (of latencies median)", "Least", "Most", "Of its link"),
        ("",),
    )
    return Table(f"{title}, {counted_noun(len(rows), 'series', 'series')}", heads, tuple(rows))


def build_node_timeline(
    record: RunRecord,
    result: RunResult,
    telemetry: Sequence[CounterSeries],
    facts_by_host: Mapping[str, HostFacts],
    window: Window | None,
) -> NodeTimeline | None:
    """The node with the most outliers, else the first that was watched; None where none was."""
    nodes = {node.name: node for node in result.nodes}
    watched = [host for host in record.monitored_hosts if host.error is None and host.host in nodes]
    if not watched:
        return None
    name = max((host.host for host in watched), key=lambda host: len(nodes[host].outliers))
    counters = hypervisor_counters(record, telemetry, facts_by_host.get(name), name)
    if counters is None:
        return None
    grid = TimeGrid.for_run(record)
    begin_ns = grid.start_ns + round(record.warmup_s * 1e9)
    end_ns = grid.start_ns + grid.span_ns
    if window is not None:
        begin_ns, end_ns = window.start_ns, window.end_ns
    window_begin_s, window_end_s = ((at - grid.start_ns) / 1e9 for at in (begin_ns, end_ns))
    within = (grid.cell_middles_s >= window_begin_s) & (grid.cell_middles_s <= window_end_s)
    step_ns = record.telemetry_interval_ms * 1e6
    panels = _node_panels(counters, record.run.point.job.data_directions, grid, step_ns, within)
    if not panels:
        return None
    (node,) = (host for host in watched if host.host == name)
    kernel = kernel_key_of_host(name, facts_by_host)
    beside = [
        host
        for host in watched
        if host is not node and kernel_key_of_host(host.host, facts_by_host) == kernel
    ]
    return NodeTimeline(
        result=result,
        node=name,
        guest_count=len(nodes[name].guests),
        at_s=tuple(float(f"{at:.4f}") for at in grid.cell_middles_s),
        cell_s=grid.cell_s,
        window_begin_s=round(window_begin_s, 3),
        window_end_s=round(window_end_s, 3),
        panels=panels,
        outliers=nodes[name].outliers,
        nodes_sharing_disks=tuple(host.host for host in beside),
        shares_disks=any(
            _names_of_devices_on_no_other(host, facts_by_host)
            & _names_of_devices_on_no_other(node, facts_by_host)
            for host in beside
        ),
    )


def _names_of_devices_on_no_other(
    node: MonitoredHost, facts_by_host: Mapping[str, HostFacts]
) -> set[str]:
    return {
        delta.device for delta in deltas_of_devices_on_no_other(node, facts_by_host.get(node.host))
    }


def _node_panels(
    counters: HypervisorCounters,
    load_directions: Collection[Direction],
    grid: TimeGrid,
    step_ns: float,
    measured_window: npt.NDArray[np.bool_],
) -> tuple[NodePanel, ...]:
    def series_averaged_on_grid(series_by_name: Mapping[str, CounterSeries]) -> dict[str, Floats]:
        return {
            name: average_on_grid(series, grid, None, step_ns)
            for name, series in series_by_name.items()
        }

    sent = series_averaged_on_grid(counters.tx_bytes_per_s)
    busy = _busy_ports(sent)
    shares = {
        name: float(finite.mean())
        for name, row in series_averaged_on_grid(counters.tx_share).items()
        if name in busy and (finite := row[measured_window & np.isfinite(row)]).size
    }
    frames = {
        name: row
        for name, row in series_averaged_on_grid(counters.tx_frames_per_s).items()
        if name in busy
    }
    numa = {
        _numa_line_name(name): row
        for name, row in series_averaged_on_grid(counters.cpu_busy_by_numa_node).items()
    }
    insides = (
        NodePanel(
            _panel_of_rows("I/O of each disk", "1/s", series_averaged_on_grid(counters.iops)),
            "disk",
            DISK_IO_METRICS,
        ),
        *(
            NodePanel(
                _panel_of_rows(
                    f"{capitalised(direction.display_name)} latency of each disk",
                    "ns",
                    series_averaged_on_grid(series),
                ),
                "disk",
                (f"{direction.key}_lat_ns",),
            )
            for direction, series in counters.lat_ns.items()
            if direction in load_directions
        ),
        NodePanel(_panel_of_rows(_processors_title(numa), "share", numa), "cpu", PROCESSOR_METRICS),
        NodePanel(
            _panel_of_rows("Sent by each port", "bytes/s", {name: sent[name] for name in busy}),
            "nic",
            ("tx_bytes_per_s",),
            tuple(shares.items()),
        ),
        NodePanel(
            _panel_of_rows("Frames sent by each port", "frames/s", frames),
            "nic",
            ("tx_frames_per_s",),
        ),
    )
    return tuple(inside for inside in insides if inside.panel.lines)


def _panel_of_rows(title: str, unit: str, values_by_line_name: Mapping[str, Floats]) -> Panel:
    drawn = {name: row for name, row in values_by_line_name.items() if np.isfinite(row).any()}
    traces: tuple[PanelLine, ...] = tuple(
        panel_line_from_array(name, row) for name, row in drawn.items()
    )
    return Panel(title, unit, traces)


def _processors_title(busy_by_numa_node: Mapping[str, Floats]) -> str:
    return "Processors busy by NUMA node" if len(busy_by_numa_node) > 1 else "Processors busy"


def _numa_line_name(name: str) -> str:
    """A NUMA node's line: a hypervisor is a node too."""
    return "all cores" if name == ALL_CORES else f"NUMA {name.removeprefix('node')}"


def _busy_ports(sent_by_port: Mapping[str, Floats]) -> list[str]:
    """The ports that had a part in the load; none where no port moved anything."""
    peaks = {
        name: float(np.nanmax(row)) for name, row in sent_by_port.items() if np.isfinite(row).any()
    }
    most = max(peaks.values(), default=0.0)
    return [name for name, peak in peaks.items() if most > 0 and peak > IDLE_SHARE * most]
