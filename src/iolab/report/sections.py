"""Sections made of all workloads: their charts over the load, growth over hosts, the best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Final

from iolab.analysis.bottleneck.decision import ResourceUse, RunResources
from iolab.analysis.bottleneck.watch import view_of, watch
from iolab.analysis.points import alarms, positive_values, sentinel_of
from iolab.analysis.prediction import Predicted, Watch, predictions
from iolab.analysis.scaling import Scaling, scalings
from iolab.analysis.value import Scaled, per_host, scaled
from iolab.core.metric import Level, Metric, worst_level
from iolab.core.metric_spec import Better, shared_label
from iolab.core.run import RunStatus
from iolab.core.study import Study
from iolab.core.target_state import RoundsSeries
from iolab.errors import StoreError
from iolab.report.bottleneck import limits
from iolab.report.brief import Brief, SectionMaker
from iolab.report.charts.bars import Bar, BarGroup, lying_bars
from iolab.report.charts.chart import ChartGroup, Looks, ReportSection
from iolab.report.charts.choose import DASHES
from iolab.report.charts.scaling import ScalingLine, efficiency_figure, growth_figure
from iolab.report.charts.stability import SentinelRuns, rounds_figure, sentinel_figure
from iolab.report.gather import SessionSource, record_of
from iolab.report.numbers import NOTHING, axis_label, axis_word, count, show, show_value
from iolab.report.table import Cell, Table, columns, row
from iolab.report.value import (
    TIMES,
    PeakFigure,
    clients_table,
    maxima_table,
    peaks_of,
    sentence,
    singles_of,
    value,
    worst,
)

if TYPE_CHECKING:
    from iolab.analysis.kinds import Analyses
    from iolab.report.charts.chart import Figure

_SCALING_LEDE: Final = (
    "The same load, made by more of the hosts of a configuration. Where the rate stays below the "
    "ideal, hosts share something that is used up: the target, or what lies between."
)


def scaling(brief: Brief) -> ReportSection | None:
    """None where no workload was made by several numbers of hosts."""
    found = scalings(brief.study, brief.points)
    if not found:
        return None
    groups = []
    for workload in brief.study.workloads:
        own = [one for one in found if one.workload is workload]
        if own:
            drawn = _drawn(own, brief.looks)
            figures = (
                growth_figure(workload.title, drawn),
                efficiency_figure(workload.title, drawn),
            )
            groups.append(ChartGroup(workload.title, figures))
    return ReportSection("scaling", "Scaling with hosts", _SCALING_LEDE, tuple(groups))


def _drawn(found: Sequence[Scaling], looks: Looks) -> list[ScalingLine]:
    """Each curve in its configuration's colour; other axes tell them apart by name and dash."""
    fixed = list(dict.fromkeys(one.fixed for one in found))
    several = len({one.configuration for one in found}) > 1
    drawn = []
    for one in found:
        look = looks[one.configuration]
        dash = DASHES[fixed.index(one.fixed) % len(DASHES)]
        parts = [look.name] if several or not one.fixed else []
        parts += [axis_label(one.fixed)] if one.fixed else []
        drawn.append(ScalingLine(" ".join(parts), look.token, dash, one))
    return drawn


ANCHOR: Final = "maxima"

_MAXIMA_LEDE: Final = (
    "Each figure is the best of all points of its workload that are not invalid, with the place "
    "where it was reached; an invalid one stands only where there is no other."
)
_FACTORS: Final = (
    " Factors compare bests, wherever each was reached; their intervals reach as far as both "
    "intervals allow. The best of many points is a little better than it would be again."
)
_CLIENTS: Final = (
    "A mean of hosts is the total over their number; the slowest and the fastest are those of the "
    "median run. One client alone is the best of all points with one host, or else a configuration "
    "that differs in its hosts alone."
)


def maxima(brief: Brief) -> ReportSection | None:
    """None where no workload has a figure."""
    peaks = peaks_of(brief)
    if not peaks:
        return None
    anchors, looks = brief.anchors, brief.looks
    owners = brief.study.configurations
    table = maxima_table(owners, peaks, anchors)
    figures = tuple(_figures(brief, peaks))
    groups = [ChartGroup("", figures, table, _note(table))]
    alone = singles_of(brief)
    found = scaled(owners, [peak.best for peak in peaks], alone)
    clients = clients_table(owners, peaks, found, anchors)
    if clients is not None:
        drawn = tuple(_shares(found, looks, clients))
        groups.append(ChartGroup(clients.title, drawn, clients, _CLIENTS))
    return ReportSection(ANCHOR, "Best figures", _MAXIMA_LEDE, tuple(groups))


def _note(table: Table) -> str:
    note = "An interval is of 95 %, over the runs at that place."
    return (
        note + _FACTORS if any(column.title.startswith(TIMES) for column in table.columns) else note
    )


def _figures(brief: Brief, peaks: Sequence[PeakFigure]) -> Iterator[Figure]:
    """One chart for each unit, a group of bars for each workload."""
    looks = brief.looks
    for unit in dict.fromkeys(peak.best.value.unit for peak in peaks):
        mine = [peak for peak in peaks if peak.best.value.unit == unit]
        workloads = list(dict.fromkeys(one.best.workload for one in mine))
        groups = [
            BarGroup(
                next(one.best.title for one in mine if one.best.workload == workload),
                tuple(_bar(one, looks) for one in mine if one.best.workload == workload),
            )
            for workload in workloads
        ]
        best = "Lowest" if mine[0].best.better is Better.LOWER else "Best"
        title = f"{best} {shared_label(one.best.metric for one in mine) or 'figures'}"
        figure = lying_bars(
            "Best figures",
            f"{title}, and where it was reached",
            groups,
            finding=_finding(mine, looks),
            table=maxima_table(brief.study.configurations, mine, brief.anchors),
            named=len(looks) > 1,
            better=mine[0].best.better,
        )
        if figure is not None:
            yield figure


def _bar(peak: PeakFigure, looks: Looks) -> Bar:
    look, best = looks[peak.best.configuration], peak.best
    at = axis_label(tuple((axis_word(name), value) for name, value in best.axis))
    place = f"at {at}" if best.axis else ""
    return Bar(look.name, look.token, best.value, best.level, place, look.title)


def _finding(peaks: Sequence[PeakFigure], looks: Looks) -> str:
    """Of each workload the best configuration."""
    several = len(looks) > 1
    sentences = []
    for workload in dict.fromkeys(peak.best.workload for peak in peaks):
        mine = [peak.best for peak in peaks if peak.best.workload == workload]
        pick = min if mine[0].better is Better.LOWER else max
        sound = [one for one in mine if one.is_sound] or mine
        best = pick(sound, key=lambda one: one.value.value or 0.0)
        who = f" by {looks[best.configuration].title}" if several and len(mine) > 1 else ""
        at = f" at {axis_label(best.axis)}" if best.axis else ""
        doubt = "" if best.is_sound else ", invalid"
        sentences.append(f"{best.title}: {show(best.value)}{who}{at}{doubt}")
    return f"{sentence(sentences)} {_trust(peaks)}"


def _trust(peaks: Sequence[PeakFigure]) -> str:
    levels = {peak.best.level for peak in peaks}
    found = worst([peak.best.level for peak in peaks])
    if found is None:
        return ""
    return f"All are {found.value}." if len(levels) == 1 else f"At worst {found.value}."


def _shares(
    found: Sequence[Scaled],
    looks: Looks,
    table: Table,
) -> Iterator[Figure]:
    """One client alone beside the mean of a host in the fleet, a chart for each unit."""
    for unit in dict.fromkeys(one.fleet.value.unit for one in found):
        groups, sentences = [], []
        for one in found:
            share = per_host(one.fleet)
            if one.fleet.value.unit != unit or share is None or one.kept is None:
                continue
            alone, whole = looks[one.single.configuration], looks[one.fleet.configuration]
            note = f"each of {one.fleet.hosts}"
            bars = (
                Bar(alone.name, alone.token, one.single.value, one.single.level, "alone"),
                Bar(whole.name, whole.token, share, one.fleet.level, note),
            )
            groups.append(BarGroup(one.fleet.title, bars))
            kept = 100 * (one.kept.value or 0.0)
            who = f"{note} hosts of {whole.title}" if len(looks) > 1 else note
            sentences.append(f"{one.fleet.title}: {who} does {kept:.0f} % of what one does alone")
        if not groups:
            continue
        figure = lying_bars(
            "One client and the fleet",
            "One client alone, and the mean of a host in the fleet",
            groups,
            finding=sentence(sentences),
            table=table,
        )
        if figure is not None:
            yield figure


def workload_charts(brief: Brief) -> tuple[ChartGroup, ...]:
    """The charts of every workload; fleets of guests end with one of their nodes from inside."""
    found = [kind.charts(brief) for kind in brief.kinds.within(brief.study)]
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


def ground(brief: Brief) -> ReportSection | None:
    """None where neither rounds nor a sentinel was run."""
    groups = (*_rounds(brief), *_sentinel(brief))
    return ReportSection("ground", "Stability", _LEDE, groups) if groups else None


def _rounds(brief: Brief) -> Iterator[ChartGroup]:
    looks = brief.looks
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
    return f"{series.label}, {study.configuration(series.configuration).title}"


def _table(found: Sequence[RoundsSeries], looks: Looks) -> Table:
    heads = columns(
        ("Workload", "Configuration"),
        ("Rounds", "Average", "Excursion (20 % may)", "Slope (10 % may)"),
        ("Steady",),
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
        return row(NOTHING, NOTHING, NOTHING)
    return row(
        show_value(seen.average, "1/s"),
        f"{100 * seen.data_excursion:.1f} %",
        f"{100 * seen.slope_excursion:.1f} %",
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


MAKERS: Final[tuple[SectionMaker, ...]] = (maxima, scaling, value, limits, ground)


def sections(brief: Brief) -> tuple[ReportSection, ...]:
    """Those that the results have something for."""
    made = (maker(brief) for maker in (*MAKERS, *brief.sections))
    return tuple(section for section in made if section is not None)


PREDICTED: Final = "predicted"

_PREDICTED_LEDE: Final = (
    "Computed from measured points of the same workload and configuration, each curve by itself; "
    "measure before you rely on it. The interval holds nine of ten loads that were held out."
)
_NOTE: Final = "Hatched: predicted, not measured. Lines: the 90 % interval."


@dataclass(frozen=True, slots=True)
class AskedLoad:
    """A load to predict, on an axis by its name in studies; `extrapolate` allows any distance."""

    axis: str
    load: int
    extrapolate: bool

    def of(self, brief: Brief, look: Watch) -> tuple[Predicted, ...]:
        """What every curve over that axis says of it."""
        return predictions(
            brief.study, brief.points, self.axis, self.load, look, extrapolate=self.extrapolate
        )


def predicted(
    asked: Sequence[AskedLoad],
    look: Watch,
    brief: Brief,
) -> ReportSection | None:
    """None where no workload varies any of the axes."""
    groups = []
    for one in asked:
        found = one.of(brief, look)
        if found:
            title = f"{axis_word(one.axis)} {one.load}"
            table = _basis(title, one, found, brief)
            figures = tuple(_predicted_figures(title, found, brief))
            groups.append(ChartGroup(title, figures, table))
    if not groups:
        return None
    return ReportSection(
        PREDICTED, "Predicted, not measured", _PREDICTED_LEDE, tuple(groups), in_appendix=False
    )


def watch_of(source: SessionSource, analyses: Analyses) -> Watch:
    """What the first run of a point tells of its resources; None where it is damaged.

    Each record is read once, of however many loads a prediction is asked.
    """

    @cache
    def seen(key: tuple[str, int]) -> RunResources | None:
        try:
            record = record_of(source, key, source.manifest(*key), with_counters=True)
        except StoreError:
            return None
        return watch(view_of(record, source.facts, analyses))

    return lambda point: seen((point.results[0].digest, point.results[0].repeat))


def resource_name(use: ResourceUse) -> str:
    """A resource as the limit of a prediction: what it is, its name, and whose."""
    return " ".join(filter(None, (use.resource.value, use.name, "of", use.host)))


def caveat(one: Predicted, load: int) -> str:
    """What limits a prediction, how far it goes beyond what was measured, or why there is none."""
    prediction = one.prediction
    if prediction is None:
        return f"{one.reason}."
    parts = []
    if (
        prediction.limit is not None
        and one.limited_by is not None
        and prediction.high >= prediction.limit
    ):
        parts.append(
            f"at most {show_value(prediction.limit, one.unit)} by {resource_name(one.limited_by)}"
        )
    if load > (last := one.measured[-1].load):
        parts.append(
            f"{load / last:.2g} times the largest measured load: a bend or fall there is not seen"
        )
    return "; ".join(parts)


def _basis(
    title: str,
    asked: AskedLoad,
    found: Sequence[Predicted],
    brief: Brief,
) -> Table:
    """What each prediction is made of, and what to know of it."""
    heads = columns(
        ("Workload", "Configuration", "Measured"),
        ("Predicted", "90 % interval", "Runs a load"),
        ("Law", "To know"),
    )
    rows = tuple(
        (
            Cell(_title(one, brief)),
            Cell(brief.looks[one.configuration].title),
            Cell(
                f"{one.measured[0].load:g} to {one.measured[-1].load:g}"
                if one.measured
                else NOTHING
            ),
            *_rate(one),
            Cell(str(one.runs) if one.runs else NOTHING),
            Cell(one.prediction.law.value if one.prediction else NOTHING),
            Cell(caveat(one, asked.load)),
        )
        for one in found
    )
    return Table(f"What is predicted from, at {title}", heads, rows)


def _rate(one: Predicted) -> tuple[Cell, ...]:
    prediction = one.prediction
    if prediction is None:
        return row(NOTHING, NOTHING)
    ends = f"[{show_value(prediction.low, one.unit)}, {show_value(prediction.high, one.unit)}]"
    return row(show_value(prediction.rate, one.unit), ends)


def _rates(title: str, found: Sequence[Predicted], brief: Brief) -> Table:
    """The figures behind a chart's bars."""
    heads = columns(("Workload", "Configuration"), ("Predicted", "90 % interval"))
    rows = tuple(
        (Cell(_title(one, brief)), Cell(brief.looks[one.configuration].title), *_rate(one))
        for one in found
    )
    return Table(f"Predicted at {title}", heads, rows)


def _title(one: Predicted, brief: Brief) -> str:
    title = brief.study.workload(one.workload).title
    return ", ".join(filter(None, (title, axis_label(one.fixed))))


def _predicted_figures(
    title: str,
    found: Sequence[Predicted],
    brief: Brief,
) -> Iterator[Figure]:
    """A chart for each unit; bars are hatched as those of points that are not valid."""
    looks = brief.looks
    known = [one for one in found if one.prediction is not None and one.configuration in looks]
    for unit in dict.fromkeys(one.unit for one in known):
        mine = [one for one in known if one.unit == unit]
        titles = list(dict.fromkeys(_title(one, brief) for one in mine))
        groups = [
            BarGroup(
                name,
                tuple(_predicted_bar(one, looks) for one in mine if _title(one, brief) == name),
            )
            for name in titles
        ]
        figure = lying_bars(
            "Predicted",
            f"Predicted at {title}",
            groups,
            finding=sentence([_sentence(one, brief) for one in mine]),
            table=_rates(title, mine, brief),
            named=len(looks) > 1,
        )
        if figure is not None:
            yield replace(figure, note=_NOTE)


def _sentence(one: Predicted, brief: Brief) -> str:
    looks = brief.looks
    prediction = one.prediction
    if prediction is None:
        return ""
    who = f" by {looks[one.configuration].title}" if len(looks) > 1 else ""
    ends = f"{show_value(prediction.low, one.unit)} to {show_value(prediction.high, one.unit)}"
    return (
        f"{_title(one, brief)}: {show_value(prediction.rate, one.unit)}{who}, 90 % interval {ends}"
    )


def _predicted_bar(one: Predicted, looks: Looks) -> Bar:
    look, prediction = looks[one.configuration], one.prediction
    value = (
        Metric(None, one.unit)
        if prediction is None
        else Metric(prediction.rate, one.unit, prediction.low, prediction.high, one.runs)
    )
    level = worst_level((one.level, Level.INDICATIVE))
    return Bar(look.name, look.token, value, level, "predicted", look.title)
