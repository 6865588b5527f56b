"""The charts of a mix over the guests, and of one node from inside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from iolab.analysis.findings import LoadCurve
from iolab.analysis.metrics import ios_needed_for_percentile
from iolab.analysis.points import AxisValues, PointSummary
from iolab.core.bins import PERCENTILES
from iolab.core.metric import Metric, RunResult, VerdictLevel
from iolab.guests.groups import (
    AXIS,
    GuestScalingGroup,
    guest_count_and_axis_values_text,
    guest_count_per_node_or_zero,
    points_by_configuration_and_depth,
    points_with_fewest_and_most_guests,
    run_with_median_rate,
)
from iolab.guests.latency_breakdown import latency_breakdown_chart
from iolab.guests.node_chart import DISK_IO_METRICS, PROCESSOR_METRICS, node_timeline_chart
from iolab.guests.tables import (
    hypervisors_table,
    latency_breakdowns,
    outliers_table,
    written_bytes_table,
)
from iolab.report.best import UNKNOWN_METRIC
from iolab.report.charts.chart import ChartGroup, SeriesStyles
from iolab.report.charts.choose import DASHES
from iolab.report.charts.lines import MEAN, ChartLine, ChartQuantity, rate_and_latency_chart
from iolab.report.charts.palette import series_color_token
from iolab.report.check_pages import check_phrase
from iolab.report.numbers import metric_value_text
from iolab.report.table import Table
from iolab.text import counted_noun, list_text, percent_text

if TYPE_CHECKING:
    from iolab.report.charts.chart import Chart
    from iolab.report.charts.series import NodeTimeline


WANTED: Final = "p99_99"
"""The percentile that published briefs of fleets show."""

TAILS: Final = tuple(name for name, _ in PERCENTILES if name != "p50")
"""Beside a mean the median says nothing of the tail."""

OTHER_IO_FACTOR: Final = 4.0
"""From so many times the I/O of its guests on a node's disks do that of others."""

FULL_PROCESSORS_SHARE: Final = 0.9
"""From so much of its time on a node's processors have nothing left to give."""

NEIGHBOURS_SHOWN: Final = 3
"""Nodes of the same machine that are named; the others are counted."""

_WORDS: Final = {name: name.replace("_", ".") for name, _ in PERCENTILES}
_NODES_NOTE: Final = (
    "All I/Os of a node’s guests together, percentiles from merged latencies; the runs with the "
    "fewest and the most guests."
)
_WRITTEN_NOTE: Final = (
    "Over whole runs, warm-up included. Devices of one node also write what it holds for others, "
    "and nodes that share a kernel share its devices: the factor is the fleet’s."
)


def guest_count_chart_group(
    scaling_group: GuestScalingGroup,
    styles: SeriesStyles,
    curves: Sequence[LoadCurve],
    caveat: str,
) -> ChartGroup | None:
    """IOPS, mean latency and the tail against guests a node, a line a depth; the breakdown."""
    if not any(run_with_median_rate(point) for point in scaling_group.points):
        return None
    named = list(named_runs_with_fewest_and_most_guests(scaling_group, styles))
    figures = (
        [*_guest_scaling_curve_figures(scaling_group, styles, curves)]
        if _has_several_guest_counts(scaling_group)
        else []
    )
    breakdowns = [breakdown for name, run in named for breakdown in latency_breakdowns(run, name)]
    breakdown = latency_breakdown_chart(scaling_group.title, breakdowns)
    further = (replace(breakdown, finding=f"{caveat}{breakdown.finding}"),) if breakdown else ()
    tables = (
        (hypervisors_table(named), _NODES_NOTE),
        (written_bytes_table(named), _WRITTEN_NOTE),
        (outliers_table(named), ""),
    )
    more: tuple[tuple[Table, str], ...] = tuple((t, note) for t, note in tables if t is not None)
    with_caveat = tuple(replace(figure, finding=f"{caveat}{figure.finding}") for figure in figures)
    return ChartGroup(
        scaling_group.title, with_caveat, detail_tables_with_notes=more, appendix_charts=further
    )


def _has_several_guest_counts(scaling_group: GuestScalingGroup) -> bool:
    return (
        len({guest_count_per_node_or_zero(point.key.axis_values) for point in scaling_group.points})
        > 1
    )


def scaling_group_chart_lines(
    scaling_group: GuestScalingGroup, styles: SeriesStyles, curves: Iterable[LoadCurve] = ()
) -> list[ChartLine]:
    """A line for each configuration and depth; of one configuration each has its own colour."""
    own = {
        (curve.search.configuration, curve.search.fixed_axis_values): curve
        for curve in curves
        if curve.search.workload.id == scaling_group.workload.id and curve.axis_name == AXIS
    }
    points_by_curve = points_by_configuration_and_depth(scaling_group.points)
    several = len({configuration for configuration, _ in points_by_curve}) > 1
    depths = list(dict.fromkeys(depth for _, depth in points_by_curve))
    lines = []
    for (configuration, depth), points in points_by_curve.items():
        number = depths.index(depth)
        style = styles[configuration]
        words = [style.label] if several or depth is None else []
        words += [] if depth is None else [str(depth) if several else f"iodepth {depth}"]
        fixed: AxisValues = tuple(pair for pair in points[0].key.axis_values if pair[0] != AXIS)
        lines.append(
            ChartLine(
                name=" ".join(words),
                color=style.color if several else series_color_token(number),
                dash=DASHES[number % len(DASHES)],
                points=tuple(
                    sorted(
                        points,
                        key=lambda point: guest_count_per_node_or_zero(point.key.axis_values),
                    )
                ),
                curve=own.get((configuration, fixed)),
                node_count=scaling_group.node_count,
                title=" ".join([style.title, *words[1:]]) if several else "",
            )
        )
    return lines


def _guest_scaling_curve_figures(
    scaling_group: GuestScalingGroup, styles: SeriesStyles, curves: Sequence[LoadCurve]
) -> Iterator[Chart]:
    lines = scaling_group_chart_lines(scaling_group, styles, curves)
    name, note = highest_common_percentile_name_and_note(scaling_group.points)
    tail = (
        ChartQuantity(f"lat_ns_{name}", f"tail latency ({_WORDS[name]})", _WORDS[name])
        if name
        else None
    )
    figure = rate_and_latency_chart(
        scaling_group.title, AXIS, lines, ChartQuantity("iops", "IOPS"), MEAN, tail
    )
    several = len({point.key.configuration for point in scaling_group.points}) > 1
    notes = " ".join(part for part in (note, figure.note) if part)
    yield replace(figure, note=notes, has_configuration_colors=several)


def highest_common_percentile_name_and_note(points: Sequence[PointSummary]) -> tuple[str, str]:
    """The highest percentile that all points with a latency have, and why it is none higher.

    Empty where they have none of a tail.
    """
    measured = [point for point in points if _has_latency_statistic(point, "mean")]
    drawn = next(
        (n for n in reversed(TAILS) if all(_has_latency_statistic(point, n) for point in measured)),
        "",
    )
    if not drawn:
        needed = ios_needed_for_percentile(dict(PERCENTILES)[TAILS[0]])
        return "", f"No {_WORDS[TAILS[0]]}, which takes {needed:,} I/Os: not every point has them."
    if drawn == WANTED:
        return drawn, ""
    having = sum(_has_latency_statistic(point, WANTED) for point in measured)
    needed = ios_needed_for_percentile(dict(PERCENTILES)[WANTED])
    return drawn, (
        f"{_WORDS[drawn]} is the highest percentile that every point supports: {_WORDS[WANTED]}, "
        f"which takes {needed:,} I/Os, is known of {having} of "
        f"{counted_noun(len(measured), 'point')}."
    )


def _has_latency_statistic(point: PointSummary, statistic: str) -> bool:
    metric = point.metrics.get(f"lat_ns_{statistic}", UNKNOWN_METRIC)
    return metric.value is not None or metric.low is not None


def named_runs_with_fewest_and_most_guests(
    scaling_group: GuestScalingGroup, styles: SeriesStyles
) -> Iterator[tuple[str, RunResult]]:
    """Of each line the runs with the fewest and the most guests, those with the most last."""
    ends = [
        points_with_fewest_and_most_guests(points)
        for points in points_by_configuration_and_depth(scaling_group.points).values()
    ]
    several = len({point.key.configuration for point in scaling_group.points}) > 1
    fewest = [points[0] for points in ends if len(points) > 1]
    for point in [*fewest, *(points[-1] for points in ends if points)]:
        run = run_with_median_rate(point)
        if run is not None and run.nodes:
            title = styles[point.key.configuration].title if several else ""
            yield (
                ", ".join(
                    part
                    for part in (
                        title,
                        guest_count_and_axis_values_text(run, scaling_group.other_axis_values),
                    )
                    if part
                ),
                run,
            )


def node_timeline_charts(
    timeline: NodeTimeline | None, caveat: str, run_name: str
) -> ChartGroup | None:
    """One node over the time of one run; `run_name` is the run's."""
    if timeline is None:
        return None
    figure = node_timeline_chart(
        f"{timeline.node}, {run_name}", f"{timeline.node} from inside over time", timeline, caveat
    )
    objection = next(iter(timeline.result.verdict.objections), None)
    is_invalid = timeline.result.verdict.level is VerdictLevel.INVALID and objection is not None
    doubt = (
        f" (this run is invalid: {check_phrase(objection.code)})"
        if is_invalid and objection
        else ""
    )
    note = (
        f"{counted_noun(timeline.guest_count, 'guest')} on this node: "
        f"{run_name}{doubt}.{_shared_machine_note(timeline)}"
    )
    if others := node_other_load_text(timeline):
        note = f"{note} {others}"
    return ChartGroup("One node from inside", (replace(figure, note=f"{note} {figure.note}"),))


def node_other_load_text(timeline: NodeTimeline) -> str:
    """What a node did beyond its guests' load; empty where that may be its own.

    File systems and layers of the node add to what guests ask for, but not many times that. Its
    processors run the guests too: what is told of them is that they were full.
    """
    asked = timeline.result.metrics.get("iops", UNKNOWN_METRIC).value
    parts = []
    disks, mean = _panel_line_names_and_mean_sum(timeline, DISK_IO_METRICS)
    if asked and mean >= OTHER_IO_FACTOR * asked:
        done, load = (metric_value_text(Metric(value, "1/s")) for value in (mean, asked))
        names = list_text(disks, NEIGHBOURS_SHOWN)
        parts.append(f"{names} did {done} in the mean, where the guests did {load}")
    cores, busy = _panel_line_names_and_mean_sum(timeline, PROCESSOR_METRICS)
    busy /= max(len(cores), 1)
    if busy >= FULL_PROCESSORS_SHARE:
        parts.append(f"its processors were {percent_text(busy)} busy, with its guests and all else")
    return f"Other load on {timeline.node}: {list_text(parts)}." if parts else ""


def _panel_line_names_and_mean_sum(
    timeline: NodeTimeline, metrics: tuple[str, ...]
) -> tuple[list[str], float]:
    """The lines of a panel, and the mean of their sum in the measured window; of none 0."""
    lines = next((own.panel.lines for own in timeline.panels if own.metrics == metrics), ())
    measured = [
        sum(line.values[place] or 0.0 for line in lines)
        for place, at_s in enumerate(timeline.at_s)
        if timeline.window_begin_s <= at_s <= timeline.window_end_s
    ]
    return [line.name for line in lines], sum(measured) / max(len(measured), 1)


def _shared_machine_note(timeline: NodeTimeline) -> str:
    """What else the figures of a node hold that is one machine with others."""
    if not timeline.nodes_sharing_disks:
        return ""
    shared = "disks and processors" if timeline.shares_disks else "processors"
    names = list_text(timeline.nodes_sharing_disks, NEIGHBOURS_SHOWN)
    return f" One machine with {names}: its {shared} serve the guests of all."
