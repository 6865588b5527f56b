"""Runs on key-value stores for the terminal: operations a second, latencies, and the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from rich.text import Text

from iolab.analysis.points import PointSummary
from iolab.core.metric import Metric
from iolab.core.study import Study
from iolab.loads.keyvalue.charts import (
    GroupLargestGain,
    compare_configurations_in_groups,
    largest_gains,
    percent_interval_text,
)
from iolab.loads.keyvalue.metrics import WHOLE_OPERATIONS_RATE_KEY
from iolab.loads.keyvalue.tables import (
    PERCENTILES,
    PointGroupOfAllConfigurations,
    headline_latency_operation,
    highest_common_percentile,
    key_value_point_groups,
    metric_value,
    operations_with_latency,
    published_percentile_name,
)
from iolab.loads.keyvalue.workload import KeyOperation
from iolab.record import Record
from iolab.report.numbers import axis_values_text, metric_value_text
from iolab.report.table import Column
from iolab.report.terminal import (
    QUIET_STYLE,
    GroupedTable,
    literal_text,
    section_title,
    styled_verdict,
)
from iolab.text import percent_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from iolab.report.terminal import PointRow

_WRITER_RATE: Final = KeyOperation.WRITE.rate_key
"""Writes of db_bench have a rate of their own; of a mix it follows from the whole."""

_TAILS: Final = ("p99", "p99_9", "p99_99")
"""Percentiles that are told where any point has them."""


class _MetricColumn(Record):
    """A column of numbers by its metric."""

    key: str
    heading: Column


def key_value_renderables(
    study: Study,
    points: Sequence[PointSummary],
    rows_of_point: Callable[[PointSummary], Iterator[PointRow]],
) -> Iterator[RenderableType]:
    """A row a point, and one for each of its runs, under a line for what makes them alike.

    `rows_of_point` gives a point's rows.
    """
    point_groups = key_value_point_groups(study, points)
    if not point_groups:
        return
    repeated = any(len(p.runs) > 1 for group in point_groups for p in group.points)
    shown = _metric_columns(point_groups)
    headings = [Column("point", can_wrap=True), Column("ops/s", is_number=True)]
    headings += [Column("95 %", is_number=True)] if repeated else []
    headings += [column.heading for column in shown]
    several = len(study.configurations) > 1
    groups = []
    for group in point_groups:
        for configuration in dict.fromkeys(point.key.configuration for point in group.points):
            name = f"{configuration}: {group.title}" if several else group.title
            rows = [
                _point_cells(group, point, row, shown, has_repeats_column=repeated)
                for point in group.points
                if point.key.configuration == configuration
                for row in rows_of_point(point)
            ]
            groups.append((section_title(name), rows))
    yield GroupedTable([*headings, Column("verdict", can_wrap=True)], groups)
    if any(column.key.startswith("intended_") for column in shown):
        yield literal_text(
            "due: since the rate wanted the operation sent, not since it was", QUIET_STYLE
        )
    yield from _largest_gain_renderables(study, point_groups)


def _largest_gain_renderables(
    study: Study, groups: Sequence[PointGroupOfAllConfigurations]
) -> Iterator[RenderableType]:
    """The largest gain of each group and metric over the first configuration."""
    gained = compare_configurations_in_groups(study, groups)
    if not gained:
        return
    titles = study.configuration_titles
    headings = [Column("largest gain", can_wrap=True), Column("", is_number=True)]
    headings += [Column("95 % interval"), Column("at"), Column("message")]
    rows_by_name: dict[str, list[list[Text | str]]] = {}
    for largest in largest_gains(groups, gained):
        name = (
            f"{titles[largest.candidate]}: {largest.point_group.title}"
            if len(gained) > 1
            else largest.point_group.title
        )
        rows_by_name.setdefault(name, []).append(_gain_cells(largest))
    yield ""
    baseline = titles[gained[0].baseline]
    one_of_two = f"{titles[gained[0].candidate]} against {baseline}"
    yield section_title(one_of_two if len(gained) == 1 else f"Against {baseline}")
    gain_groups = [(literal_text(name), rows) for name, rows in rows_by_name.items()]
    yield GroupedTable([*headings, Column("verdict", can_wrap=True)], gain_groups)
    yield literal_text(
        "each interval holds for all cells of its group; less latency is a gain", QUIET_STYLE
    )


def _gain_cells(group_largest_gain: GroupLargestGain) -> list[Text | str]:
    if group_largest_gain.largest_gain is None:
        return [literal_text(f"  {group_largest_gain.metric_name}"), "none", *[""] * 4]
    gain = group_largest_gain.largest_gain.cell
    return [
        literal_text(f"  {group_largest_gain.metric_name}"),
        Text(percent_text(gain.relative_gain, is_signed=True), style="bold"),
        percent_interval_text(
            group_largest_gain.largest_gain.low, group_largest_gain.largest_gain.high
        ),
        literal_text(group_largest_gain.point_label),
        gain.comparison.verdict.value,
        styled_verdict(gain.verdict_level),
    ]


def _metric_columns(groups: Sequence[PointGroupOfAllConfigurations]) -> list[_MetricColumn]:
    """Mean and published percentile of the main operation; more where there is room."""
    metrics: list[Mapping[str, Metric]] = [p.metrics for group in groups for p in group.points]
    published = {published_percentile_name(group.workload.job) for group in groups}
    main = headline_latency_operation(metrics)
    shown = [
        _MetricColumn(main.latency_key("mean"), Column(f"{main.display_name} mean", is_number=True))
    ]
    named = {name for name in _TAILS if _has_value(metrics, main.latency_key(name))}
    named |= published if named else {*published, highest_common_percentile(metrics, main)}
    shown += [
        _MetricColumn(
            main.latency_key(name), Column(word, is_number=True, is_optional=name not in published)
        )
        for name, word in PERCENTILES
        if name in named
    ]
    if _has_value(metrics, _WRITER_RATE):
        shown.append(
            _MetricColumn(_WRITER_RATE, Column("writes/s", is_number=True, is_optional=True))
        )
    for operation in operations_with_latency(metrics):
        is_due = operation is main.intended_variant
        word = "due" if is_due else operation.display_name
        names = ("mean", "p99") if is_due else ("p99",)
        if operation is main or (operation.is_intended and not is_due):
            continue
        shown += [
            _MetricColumn(
                operation.latency_key(name),
                Column(f"{word} {name}", is_number=True, is_optional=not is_due),
            )
            for name in names
            if _has_value(metrics, operation.latency_key(name))
        ]
    return shown


def _has_value(metrics_of_points: Sequence[Mapping[str, Metric]], metric_key: str) -> bool:
    return any(metric_value(metric, metric_key) is not None for metric in metrics_of_points)


def _point_cells(
    point_group: PointGroupOfAllConfigurations,
    point: PointSummary,
    row: PointRow,
    columns: Sequence[_MetricColumn],
    *,
    has_repeats_column: bool,
) -> list[Text | str]:
    own = tuple(pair for pair in point.key.axis_values if pair not in point_group.fixed_axis_values)
    name = axis_values_text(own) or "all"
    return [
        literal_text(
            f"   {row.run_suffix}" if row.is_single_run else f"  {name}{row.run_suffix}", row.style
        ),
        Text(
            metric_value_text(
                row.metrics.get(WHOLE_OPERATIONS_RATE_KEY), is_rate_unit_omitted=True
            ),
            style="" if row.is_single_run else "bold",
        ),
        *(
            [row.half_width_or_run_count_text(WHOLE_OPERATIONS_RATE_KEY)]
            if has_repeats_column
            else []
        ),
        *(
            metric_value_text(row.metrics.get(column.key), is_rate_unit_omitted=True)
            for column in columns
        ),
        row.verdict,
    ]
