"""The charts of every workload over its points, of whatever load it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from iolab.analysis.points import PointSummary, alarms, positive_values, sentinel_of
from iolab.core.run import RunStatus
from iolab.core.study import Study
from iolab.core.target_state import RoundsSeries
from iolab.report.bottleneck import limits
from iolab.report.brief import Brief, SectionMaker
from iolab.report.charts.chart import Figure
from iolab.report.charts.choose import Look
from iolab.report.charts.stability import SentinelRuns, rounds_figure, sentinel_figure
from iolab.report.kinds import Anchors, Looks
from iolab.report.maxima import maxima
from iolab.report.numbers import NOTHING, count, show_value
from iolab.report.page_parts import ChartGroup, Section
from iolab.report.scaling import scaling
from iolab.report.series import DetailKey
from iolab.report.table import Cell, Table, columns
from iolab.report.value import value


def workload_charts(brief: Brief, looks: Looks, anchors: Anchors) -> tuple[ChartGroup, ...]:
    """The charts of every workload; fleets of guests end with one of their nodes from inside."""
    found = [kind.charts(brief, looks, anchors) for kind in brief.kinds.within(brief.study)]
    charts = (
        group
        for workload in brief.study.workloads
        for one in found
        for group in one.get(workload.id, ())
    )
    return (*charts, *brief.kinds.hosts.inside_charts(brief))


SERIES_MOST: Final = 8
"""Series of rounds with a chart; the others stand in the table."""

_LEDE: Final = (
    "What is measured depends on what was written before. Rounds tell when a target had come to "
    "its steady state, a point that is measured again and again whether it stayed there."
)


def ground(
    brief: Brief,
    _points: Sequence[PointSummary],
    looks: Mapping[str, Look],
    _anchors: Mapping[DetailKey, str],
) -> Section | None:
    """None where neither rounds nor a sentinel was run."""
    groups = (*_rounds(brief, looks), *_sentinel(brief, looks))
    return Section("ground", "Stability", _LEDE, groups) if groups else None


def _rounds(brief: Brief, looks: Mapping[str, Look]) -> Iterator[ChartGroup]:
    found = [series for series in brief.rounds if series.configuration in looks]
    if not found:
        return
    figures = tuple(
        rounds_figure(_subject(brief.study, one), one, looks[one.configuration].token)
        for one in found[:SERIES_MOST]
    )
    hidden = len(found) - len(figures)
    note = f"{count(hidden, 'series', 'series')} without a chart." if hidden > 0 else ""
    yield ChartGroup("Rounds", figures, _table(found, looks), note)


def _subject(study: Study, series: RoundsSeries) -> str:
    """What the rounds were of."""
    if len(study.configurations) == 1:
        return series.label
    title = next(one.title for one in study.configurations if one.id == series.configuration)
    return f"{series.label}, {title}"


def _table(found: Sequence[RoundsSeries], looks: Mapping[str, Look]) -> Table:
    heads = (
        *columns(("Workload", "Configuration")),
        *columns((), ("Rounds", "Average", "Excursion (20 % may)", "Slope (10 % may)")),
        *columns(("Steady",)),
    )
    rows = tuple(
        (
            Cell(one.label),
            Cell(looks[one.configuration].title),
            Cell(str(len(one.iops))),
            *_judged(one),
            Cell("yes" if one.achieved else "no"),
        )
        for one in found
    )
    return Table("Rounds until the steady state", heads, rows)


def _judged(series: RoundsSeries) -> tuple[Cell, ...]:
    seen = series.verdict
    if seen is None:
        return (Cell(NOTHING), Cell(NOTHING), Cell(NOTHING))
    return (
        Cell(show_value(seen.average, "1/s")),
        Cell(f"{100 * seen.data_excursion:.1f} %"),
        Cell(f"{100 * seen.slope_excursion:.1f} %"),
    )


def _sentinel(brief: Brief, looks: Mapping[str, Look]) -> Iterator[ChartGroup]:
    """The runs of the point that is measured again and again, where there are two or more."""
    point = sentinel_of(brief.study)
    if point is None or point.configuration not in looks:
        return
    workload = next(one for one in brief.study.workloads if one.id == point.workload)
    metric = workload.figure
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
    figure: Figure = sentinel_figure(point.label, watched, looks[point.configuration].token)
    yield ChartGroup("The sentinel", (figure,))


MAKERS: Final[tuple[SectionMaker, ...]] = (maxima, scaling, value, limits, ground)


def sections(
    brief: Brief,
    points: Sequence[PointSummary],
    looks: Mapping[str, Look],
    anchors: Mapping[DetailKey, str],
) -> tuple[Section, ...]:
    """Those that the results have something for."""
    made = (maker(brief, points, looks, anchors) for maker in (*MAKERS, *brief.sections))
    return tuple(section for section in made if section is not None)
