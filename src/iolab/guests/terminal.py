"""Nodes of guests for the terminal: what each did, where latency arose, and what stands out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from rich.text import Text

from iolab.analysis.points import PointSummary
from iolab.core.metric import HypervisorResult, RunResult
from iolab.core.study import Study
from iolab.guests.groups import (
    guest_count,
    guest_count_and_axis_values_text,
    guest_scaling_groups,
    points_by_configuration_and_depth,
    points_with_fewest_and_most_guests,
    run_with_median_rate,
)
from iolab.guests.latency_breakdown import LatencyBreakdown, latency_part_names
from iolab.guests.metrics import points_by_hypervisor
from iolab.guests.tables import SCOPES, latency_breakdowns, outlier_texts, written_bytes_table
from iolab.report.best import UNKNOWN_METRIC
from iolab.report.numbers import DASH, metric_value_text, value_text
from iolab.report.table import Column
from iolab.report.terminal import (
    QUIET_STYLE,
    GroupedTable,
    literal_text,
    report_table_for_terminal,
    section_title,
    styled_verdict,
    terminal_table,
)
from iolab.text import counted_noun

if TYPE_CHECKING:
    from rich.console import RenderableType

POINTS_MAX: Final = 16
"""Points whose nodes are told without being asked for; --details tells of every run's."""

NODES_MAX: Final = 8
"""Nodes of a point; of more the slowest and the fastest are told."""

OUTLIERS_MAX: Final = 3
"""Told without being asked for; more are no exception."""

_METRICS: Final = ("iops", "lat_ns_mean", "lat_ns_p99", "lat_ns_p99_99")
_HEADINGS: Final = (
    Column("node", can_wrap=True),
    Column("guests", is_number=True),
    Column("IOPS", is_number=True),
    Column("mean", is_number=True),
    Column("p99", is_number=True, is_optional=True),
    Column("p99.99", is_number=True, is_optional=True),
    Column("verdict"),
)
ShownPoint = tuple[str, PointSummary, RunResult]
"""What a point is called, the point, and the run that stands for it."""


def guest_node_lines(study: Study, points: Sequence[PointSummary]) -> Iterator[RenderableType]:
    """The nodes at the points with the most guests; nothing where hosts are no guests."""
    shown = _points_with_most_guests(study, points)
    if not shown:
        return
    runs = [run for _, point, _ in shown for run in point.runs]
    published = points_by_hypervisor(runs, study)
    by_node = {
        (name, summary.key): summary
        for name, summaries in published.items()
        for summary in summaries
    }
    yield ""
    yield section_title("Nodes, with the most guests")
    groups = []
    for name, point, run in shown[:POINTS_MAX]:
        nodes = _nodes_sorted_by_rate_if_many(run)
        rows = [
            _node_cells(node, by_node.get((node.name, point.key)), run)
            for node in _drop_middle_nodes_if_too_many(nodes)
        ]
        if len(nodes) > NODES_MAX:
            hidden = counted_noun(len(nodes) - NODES_MAX, "node")
            rows.insert(
                NODES_MAX // 2, [literal_text(f"    {hidden} between", QUIET_STYLE), *[""] * 6]
            )
        groups.append((literal_text(f"  {name}"), rows))
    yield GroupedTable(_HEADINGS, groups)
    if len(shown) > POINTS_MAX:
        yield literal_text(
            f"  and {counted_noun(len(shown) - POINTS_MAX, 'point')} more", QUIET_STYLE
        )
    yield from _latency_breakdown_tables(shown[:POINTS_MAX])
    yield from _outlier_section_lines(shown)


def node_detail_lines(result: RunResult) -> Iterator[RenderableType]:
    """The nodes of one run in full: figures, layers, bytes, and what stands out."""
    if not result.nodes:
        return
    yield terminal_table(_HEADINGS, [_node_cells(node, None, result) for node in result.nodes])
    breakdowns = [
        breakdown for breakdown in latency_breakdowns(result, "") if len(breakdown.parts) > 1
    ]
    if breakdowns:
        yield _latency_breakdown_table([("where latency arises", breakdowns)])
    written = written_bytes_table([("", result)])
    if written is not None:
        heads = [replace(column, title=column.title.lower()) for column in written.columns[:-1]]
        heads[0] = replace(heads[0], title=f"{heads[0].title} wrote")
        rows = tuple(cells[:-1] for cells in written.rows)
        yield report_table_for_terminal(replace(written, columns=tuple(heads), rows=rows))
    for node in result.nodes:
        for text in node_outlier_sentences(node):
            yield literal_text(f"  {text}")


def node_outlier_sentences(node: HypervisorResult) -> Iterator[str]:
    """`node-1: disk nvme1n1, write latency 412 µs, 4.68 times the median of 88 µs`."""
    for outlier in node.outliers:
        texts = outlier_texts(outlier.metric, outlier.value, outlier.median_value)
        device = f"{SCOPES.get(outlier.scope, outlier.scope)} {outlier.name}"
        yield (
            f"{node.name}: {device}, {texts.metric} {texts.value}, {texts.ratio} times the median "
            f"of {texts.median}"
        )


def _points_with_most_guests(study: Study, points: Sequence[PointSummary]) -> list[ShownPoint]:
    """Of each mix and line the point with the most guests; of plain guests every point."""
    titles = study.configuration_titles
    several = len(titles) > 1
    shown: list[ShownPoint] = []
    swept = set()
    for group in guest_scaling_groups(study, points):
        swept.add(group.workload.id)
        for line in points_by_configuration_and_depth(group.points).values():
            for point in points_with_fewest_and_most_guests(line)[-1:]:
                run = run_with_median_rate(point)
                if run is not None and run.nodes:
                    prefix = f"{titles[point.key.configuration]}: " if several else ""
                    name = (
                        f"{prefix}{group.title}: "
                        f"{guest_count_and_axis_values_text(run, group.other_axis_values)}"
                    )
                    shown.append((name, point, run))
    names = study.workload_titles
    for point in points:
        run = run_with_median_rate(point)
        if point.key.workload not in swept and run is not None and run.nodes:
            shown.append(
                (
                    f"{names[point.key.workload]}: {guest_count_and_axis_values_text(run)}",
                    point,
                    run,
                )
            )
    return shown


def _nodes_sorted_by_rate_if_many(result: RunResult) -> list[HypervisorResult]:
    if len(result.nodes) <= NODES_MAX:
        return list(result.nodes)
    return sorted(
        result.nodes, key=lambda node: node.metrics.get("iops", UNKNOWN_METRIC).value or 0.0
    )


def _drop_middle_nodes_if_too_many(nodes_by_rate: list[HypervisorResult]) -> list[HypervisorResult]:
    half = NODES_MAX // 2
    return (
        nodes_by_rate
        if len(nodes_by_rate) <= NODES_MAX
        else [*nodes_by_rate[:half], *nodes_by_rate[-half:]]
    )


def _node_cells(
    node: HypervisorResult, point: PointSummary | None, result: RunResult
) -> list[Text | str]:
    """A node's cells: its published values where a point is given, else those of the run."""
    metrics = node.metrics if point is None else point.metrics
    return [
        literal_text(node.name if point is None else f"    {node.name}"),
        f"{len(node.guests):,}",
        *(metric_value_text(metrics.get(key), is_rate_unit_omitted=True) for key in _METRICS),
        styled_verdict(result.verdict.level if point is None else point.verdict_level),
    ]


def _latency_breakdown_tables(shown_points: Sequence[ShownPoint]) -> Iterator[RenderableType]:
    """A row for each direction of each point, a column for each part."""
    named = [
        (
            name,
            [breakdown for breakdown in latency_breakdowns(run, name) if len(breakdown.parts) > 1],
        )
        for name, _, run in shown_points
    ]
    named = [(name, breakdowns) for name, breakdowns in named if breakdowns]
    if not named:
        return
    yield ""
    yield section_title("Where latency arises")
    yield _latency_breakdown_table(named)


def _latency_breakdown_table(
    named_breakdowns: Sequence[tuple[str, Sequence[LatencyBreakdown]]],
) -> RenderableType:
    names = latency_part_names(
        breakdown for _, breakdowns in named_breakdowns for breakdown in breakdowns
    )
    headings = [Column("", can_wrap=True), Column("latency", is_number=True)]
    headings += [Column(name, is_number=True) for name in reversed(names)]
    groups = [
        (
            literal_text(f"  {name}"),
            [_latency_part_cells(breakdown, names) for breakdown in members],
        )
        for name, members in named_breakdowns
    ]
    return GroupedTable(headings, groups)


def _latency_part_cells(breakdown: LatencyBreakdown, part_names: Sequence[str]) -> list[Text | str]:
    shares = {
        part.name: value_text(part.duration_ns / breakdown.total_ns, "share")
        for part in breakdown.parts
    }
    cells: list[Text | str] = [f"    {breakdown.direction}", value_text(breakdown.total_ns, "ns")]
    return [*cells, *(shares.get(name, DASH) for name in reversed(part_names))]


def _outlier_section_lines(shown_points: Sequence[ShownPoint]) -> Iterator[RenderableType]:
    """Each device, core or port once, by what it did at the point with the most guests."""
    by_device: dict[tuple[str, str, str, str], list[str]] = {}
    for _, _, run in sorted(shown_points, key=lambda point: -guest_count(point[2])):
        for node in run.nodes:
            for outlier, text in zip(node.outliers, node_outlier_sentences(node), strict=True):
                key = (node.name, outlier.scope, outlier.name, outlier.metric)
                by_device.setdefault(key, []).append(text)
    if not by_device:
        return
    yield ""
    yield section_title("What stands out among its like")
    for texts in list(by_device.values())[:OUTLIERS_MAX]:
        at = (
            f" (in {len(texts)} of these {len(shown_points)} points)"
            if len(shown_points) > 1
            else ""
        )
        yield literal_text(f"  {texts[0]}{at}")
    if len(by_device) > OUTLIERS_MAX:
        yield literal_text(
            f"  and {len(by_device) - OUTLIERS_MAX} more; --details tells all", QUIET_STYLE
        )
