"""The sections of a report: growth over hosts and stability, which are here, and all others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from iolab.analysis.points import alarms, positive_values, sentinel_of
from iolab.analysis.scaling import Scaling, scalings
from iolab.core.run import RunStatus
from iolab.core.study import Study
from iolab.core.target_state import RoundsSeries
from iolab.report.bottleneck import bottlenecks
from iolab.report.brief import Brief, SectionMaker
from iolab.report.charts.chart import ChartGroup, Looks, ReportSection
from iolab.report.charts.choose import DASHES
from iolab.report.charts.scaling import ScalingLine, efficiency_figure, growth_figure
from iolab.report.charts.stability import SentinelRuns, rounds_figure, sentinel_figure
from iolab.report.maxima import maxima
from iolab.report.numbers import NOTHING, axis_label, count, show_value
from iolab.report.price_performance import price_performance
from iolab.report.table import Cell, Table, columns, row

if TYPE_CHECKING:
    from iolab.report.charts.chart import Figure

_SCALING_LEDE: Final = (
    "The same load, made by more of the hosts of a configuration. Where the rate stays below the "
    "ideal, hosts share something that is used up: the target, or what lies between."
)


def scaling(brief: Brief) -> ReportSection | None:
    """Rates over the number of hosts; None where no workload was made by several of them."""
    curves = scalings(brief.study, brief.points)
    if not curves:
        return None
    groups = []
    for workload in brief.study.workloads:
        own = [curve for curve in curves if curve.workload is workload]
        if own:
            drawn = _drawn(own, brief.looks)
            figures = (
                growth_figure(workload.title, drawn),
                efficiency_figure(workload.title, drawn),
            )
            groups.append(ChartGroup(workload.title, figures))
    return ReportSection("scaling", "Scaling with hosts", _SCALING_LEDE, tuple(groups))


def _drawn(curves: Sequence[Scaling], looks: Looks) -> list[ScalingLine]:
    """Each curve in its configuration's colour; other axes tell them apart by name and dash."""
    fixed = list(dict.fromkeys(curve.fixed for curve in curves))
    several = len({curve.configuration for curve in curves}) > 1
    drawn = []
    for curve in curves:
        look = looks[curve.configuration]
        dash = DASHES[fixed.index(curve.fixed) % len(DASHES)]
        parts = [look.name] if several or not curve.fixed else []
        parts += [axis_label(curve.fixed)] if curve.fixed else []
        drawn.append(ScalingLine(" ".join(parts), look.token, dash, curve))
    return drawn


def workload_charts(brief: Brief) -> tuple[ChartGroup, ...]:
    """The charts of every workload; fleets of guests end with one of their nodes from inside."""
    by_kind = [kind.charts(brief) for kind in brief.kinds.within(brief.study)]
    charts = (
        group
        for workload in brief.study.workloads
        for of_kind in by_kind
        for group in of_kind.get(workload.id, ())
    )
    return (*charts, *brief.kinds.hosts.inside_charts(brief))


SERIES_MOST: Final = 8
"""Series of rounds with a chart; the others stand in the table."""

_STABILITY_LEDE: Final = (
    "What is measured depends on what was written before. Rounds tell when a target had come to "
    "its steady state, a point that is measured again and again whether it stayed there."
)


def stability(brief: Brief) -> ReportSection | None:
    """Rounds until the steady state, and the sentinel's runs; None where neither was run."""
    groups = (*_rounds(brief), *_sentinel(brief))
    return ReportSection("ground", "Stability", _STABILITY_LEDE, groups) if groups else None


def _rounds(brief: Brief) -> Iterator[ChartGroup]:
    looks = brief.looks
    drawn = [series for series in brief.rounds if series.configuration in looks]
    if not drawn:
        return
    figures = tuple(
        rounds_figure(_subject(brief.study, series), series, looks[series.configuration].token)
        for series in drawn[:SERIES_MOST]
    )
    hidden = len(drawn) - len(figures)
    note = f"{count(hidden, 'series', 'series')} without a chart." if hidden > 0 else ""
    yield ChartGroup("Rounds", figures, _table(drawn, looks), note)


def _subject(study: Study, series: RoundsSeries) -> str:
    """What the rounds were of."""
    if len(study.configurations) == 1:
        return series.label
    return f"{series.label}, {study.configuration(series.configuration).title}"


def _table(every: Sequence[RoundsSeries], looks: Looks) -> Table:
    heads = columns(
        ("Workload", "Configuration"),
        ("Rounds", "Average", "Excursion (20 % may)", "Slope (10 % may)"),
        ("Steady",),
    )
    rows = tuple(
        (
            Cell(series.label),
            Cell(looks[series.configuration].title),
            Cell(str(len(series.iops))),
            *_judged(series),
            Cell("yes" if series.achieved else "no"),
        )
        for series in every
    )
    return Table("Rounds until the steady state", heads, rows)


def _judged(series: RoundsSeries) -> tuple[Cell, ...]:
    verdict = series.verdict
    if verdict is None:
        return row(NOTHING, NOTHING, NOTHING)
    return row(
        show_value(verdict.average, "1/s"),
        f"{100 * verdict.data_excursion:.1f} %",
        f"{100 * verdict.slope_excursion:.1f} %",
    )


def _sentinel(brief: Brief) -> Iterator[ChartGroup]:
    """The runs of the point that is measured again and again, where there are two or more."""
    point = sentinel_of(brief.study)
    if point is None or point.configuration not in brief.looks:
        return
    metric = brief.study.workload(point.workload).figure
    own = [
        result
        for result in brief.results
        if result.digest == point.digest
        and result.order
        and result.status is RunStatus.DONE
        and positive_values([result], metric)
    ]
    if len(own) < 2:
        return
    watched = SentinelRuns(
        metric=metric,
        runs=tuple(sorted(own, key=lambda result: result.order)),
        alarms=alarms(brief.results, brief.study),
        last=max(result.order for result in brief.results),
    )
    figure: Figure = sentinel_figure(point.label, watched, brief.looks[point.configuration].token)
    yield ChartGroup("The sentinel", (figure,))


MAKERS: Final[tuple[SectionMaker, ...]] = (
    maxima,
    scaling,
    price_performance,
    bottlenecks,
    stability,
)


def sections(brief: Brief) -> tuple[ReportSection, ...]:
    """Those that the results have something for."""
    parts = (maker(brief) for maker in (*MAKERS, *brief.sections))
    return tuple(section for section in parts if section is not None)
