"""The sections of a report: growth over hosts and stability, which are here, and all others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from iolab.analysis.points import positive_metric_values, sentinel_alarms, sentinel_point
from iolab.analysis.scaling import HostScaling, host_scalings
from iolab.core.run import RunStatus
from iolab.core.study import Study
from iolab.core.target_state import PreconditioningRounds
from iolab.report.bottleneck import bottlenecks_section
from iolab.report.brief import Brief, SectionMaker
from iolab.report.charts.chart import (
    ChartGroup,
    ReportSection,
    SeriesStyles,
    charts_filling_page_width,
)
from iolab.report.charts.choose import DASHES
from iolab.report.charts.lines import joined_point_tables
from iolab.report.charts.scaling import ScalingLine, host_efficiency_chart, host_scaling_chart
from iolab.report.charts.stability import SentinelRuns, sentinel_chart, steady_state_rounds_chart
from iolab.report.maxima import maxima_section
from iolab.report.numbers import DASH, axis_values_text, value_text
from iolab.report.power_section import bytes_by_layer_section, power_section
from iolab.report.quotients import figures_per_size_and_cost_section
from iolab.report.scenario import scenario_section
from iolab.report.table import Cell, Table, row_of_cells, text_and_number_columns
from iolab.text import counted_noun, percent_text

if TYPE_CHECKING:
    from iolab.report.charts.chart import Chart

_SCALING_INTRODUCTION: Final = (
    "The same load, made by more of the hosts of a configuration. Where the rate stays below the "
    "ideal, hosts share something that is used up: the target, or what lies between."
)

PANELS_AS_TABLE_LEAST: Final = 3
"""So many charts of two points each say less than one table."""

ROUND_CHARTS_MAX: Final = 8
"""Series of rounds with a chart; the others stand in the table."""

_STABILITY_INTRODUCTION: Final = (
    "What is measured depends on what was written before. Rounds tell when a target had come to "
    "its steady state, a point that is measured again and again whether it stayed there."
)


def host_scaling_section(brief: Brief) -> ReportSection | None:
    """Rates over the number of hosts; None where no workload was made by several of them."""
    curves = host_scalings(brief.study, brief.points)
    if not curves:
        return None
    groups = []
    for workload in brief.study.workloads:
        own = [curve for curve in curves if curve.workload is workload]
        if own:
            drawn = _scaling_lines(own, brief.series_styles)
            figures = (
                host_scaling_chart(workload.title, drawn),
                host_efficiency_chart(workload.title, drawn),
            )
            groups.append(ChartGroup(workload.title, figures))
    return ReportSection("scaling", "Scaling with hosts", _SCALING_INTRODUCTION, tuple(groups))


def _scaling_lines(curves: Sequence[HostScaling], styles: SeriesStyles) -> list[ScalingLine]:
    """Each curve in its configuration's colour; other axes tell them apart by name and dash."""
    fixed = list(dict.fromkeys(curve.fixed_axis_values for curve in curves))
    several = len({curve.configuration for curve in curves}) > 1
    drawn = []
    for curve in curves:
        style = styles[curve.configuration]
        dash = DASHES[fixed.index(curve.fixed_axis_values) % len(DASHES)]
        parts = [style.label] if several or not curve.fixed_axis_values else []
        parts += [axis_values_text(curve.fixed_axis_values)] if curve.fixed_axis_values else []
        drawn.append(ScalingLine(" ".join(parts), style.color, dash, curve))
    return drawn


def all_workload_charts(brief: Brief) -> tuple[ChartGroup, ...]:
    """The charts of every workload; fleets of guests end with one of their nodes from inside."""
    by_kind = [kind.charts_by_workload(brief) for kind in brief.kinds.reports_of_study(brief.study)]
    charts = (
        group
        for workload in brief.study.workloads
        for of_kind in by_kind
        for group in of_kind.get(workload.id, ())
    )
    groups = _groups_with_few_points_as_table(tuple(charts))
    groups = (*groups, *brief.kinds.booted_hosts.node_timeline_charts(brief))
    wide = iter(charts_filling_page_width([figure for group in groups for figure in group.charts]))
    return tuple(replace(group, charts=tuple(islice(wide, len(group.charts)))) for group in groups)


def _groups_with_few_points_as_table(groups: tuple[ChartGroup, ...]) -> tuple[ChartGroup, ...]:
    """The groups, where each chart would have two points of one line alone: a table of them all.

    The charts go to the appendix.
    """
    figures = [figure for group in groups for figure in group.charts]
    sizes = [len(figure.points_table.rows) if figure.points_table else 0 for figure in figures]
    if len(figures) < PANELS_AS_TABLE_LEAST or not all(0 < size <= 2 for size in sizes):
        return groups
    table, *others = joined_point_tables(figures)
    if others:
        return groups
    backing = tuple(
        replace(group, charts=(), appendix_charts=(*group.charts, *group.appendix_charts))
        for group in groups
    )
    return (ChartGroup("", (), table), *backing)


def stability_section(brief: Brief) -> ReportSection | None:
    """Rounds until the steady state, and the sentinel's runs; None where neither was run."""
    groups = (*_preconditioning_chart_groups(brief), *_sentinel_chart_groups(brief))
    return ReportSection("ground", "Stability", _STABILITY_INTRODUCTION, groups) if groups else None


def _preconditioning_chart_groups(brief: Brief) -> Iterator[ChartGroup]:
    styles = brief.series_styles
    drawn = [series for series in brief.preconditioning_rounds if series.configuration in styles]
    if not drawn:
        return
    figures = tuple(
        steady_state_rounds_chart(
            _preconditioning_title(brief.study, series), series, styles[series.configuration].color
        )
        for series in drawn[:ROUND_CHARTS_MAX]
    )
    hidden = len(drawn) - len(figures)
    note = f"{counted_noun(hidden, 'series', 'series')} without a chart." if hidden > 0 else ""
    yield ChartGroup("Rounds", figures, _preconditioning_rounds_table(drawn, styles), note)


def _preconditioning_title(study: Study, series: PreconditioningRounds) -> str:
    """What the rounds were of."""
    if len(study.configurations) == 1:
        return series.label
    return f"{series.label}, {study.configuration(series.configuration).title}"


def _preconditioning_rounds_table(
    all_series: Sequence[PreconditioningRounds], styles: SeriesStyles
) -> Table:
    heads = text_and_number_columns(
        ("Workload", "Configuration"),
        ("Rounds", "Average", "Excursion (20 % may)", "Slope (10 % may)"),
        ("Steady",),
    )
    rows = tuple(
        (
            Cell(series.label),
            Cell(styles[series.configuration].title),
            Cell(str(len(series.iops))),
            *_steady_state_cells(series),
            Cell("yes" if series.is_steady else "no"),
        )
        for series in all_series
    )
    return Table("Rounds until the steady state", heads, rows)


def _steady_state_cells(series: PreconditioningRounds) -> tuple[Cell, ...]:
    verdict = series.verdict
    if verdict is None:
        return row_of_cells(DASH, DASH, DASH)
    return row_of_cells(
        value_text(verdict.average, "1/s"),
        percent_text(verdict.data_excursion),
        percent_text(verdict.slope_excursion),
    )


def _sentinel_chart_groups(brief: Brief) -> Iterator[ChartGroup]:
    """The runs of the point that is measured again and again, where there are two or more."""
    point = sentinel_point(brief.study)
    if point is None or point.configuration not in brief.series_styles:
        return
    metric = brief.study.workload(point.workload).headline_or_rate_metric
    own = [
        result
        for result in brief.results
        if result.digest == point.digest
        and result.order
        and result.status is RunStatus.DONE
        and positive_metric_values([result], metric)
    ]
    if len(own) < 2:
        return
    watched = SentinelRuns(
        metric=metric,
        runs=tuple(sorted(own, key=lambda result: result.order)),
        alarms=sentinel_alarms(brief.results, brief.study),
        last_run_order=max(result.order for result in brief.results),
    )
    figure: Chart = sentinel_chart(
        point.title_text, watched, brief.series_styles[point.configuration].color
    )
    yield ChartGroup("The sentinel", (figure,))


SECTION_MAKERS: Final[tuple[SectionMaker, ...]] = (
    scenario_section,
    maxima_section,
    host_scaling_section,
    figures_per_size_and_cost_section,
    power_section,
    bytes_by_layer_section,
    bottlenecks_section,
    stability_section,
)


def report_sections(brief: Brief) -> tuple[ReportSection, ...]:
    """Those that the results have something for."""
    parts = (maker(brief) for maker in (*SECTION_MAKERS, *brief.sections))
    return tuple(section for section in parts if section is not None)
