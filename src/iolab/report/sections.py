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
from iolab.report.bottleneck import bottlenecks
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
    pairs = scaled(owners, [peak.best for peak in peaks], alone)
    clients = clients_table(owners, peaks, pairs, anchors)
    if clients is not None:
        drawn = tuple(_shares(pairs, looks, clients))
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
        own = [peak for peak in peaks if peak.best.value.unit == unit]
        workloads = list(dict.fromkeys(peak.best.workload for peak in own))
        groups = [
            BarGroup(
                next(peak.best.title for peak in own if peak.best.workload == workload),
                tuple(_bar(peak, looks) for peak in own if peak.best.workload == workload),
            )
            for workload in workloads
        ]
        best = "Lowest" if own[0].best.better is Better.LOWER else "Best"
        title = f"{best} {shared_label(peak.best.metric for peak in own) or 'figures'}"
        figure = lying_bars(
            "Best figures",
            f"{title}, and where it was reached",
            groups,
            finding=_finding(own, looks),
            table=maxima_table(brief.study.configurations, own, brief.anchors),
            named=len(looks) > 1,
            better=own[0].best.better,
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
        own = [peak.best for peak in peaks if peak.best.workload == workload]
        pick = min if own[0].better is Better.LOWER else max
        sound = [figure for figure in own if figure.is_sound] or own
        best = pick(sound, key=lambda figure: figure.value.value or 0.0)
        who = f" by {looks[best.configuration].title}" if several and len(own) > 1 else ""
        at = f" at {axis_label(best.axis)}" if best.axis else ""
        doubt = "" if best.is_sound else ", invalid"
        sentences.append(f"{best.title}: {show(best.value)}{who}{at}{doubt}")
    return f"{sentence(sentences)} {_trust(peaks)}"


def _trust(peaks: Sequence[PeakFigure]) -> str:
    levels = {peak.best.level for peak in peaks}
    level = worst([peak.best.level for peak in peaks])
    if level is None:
        return ""
    return f"All are {level.value}." if len(levels) == 1 else f"At worst {level.value}."


def _shares(
    pairs: Sequence[Scaled],
    looks: Looks,
    table: Table,
) -> Iterator[Figure]:
    """One client alone beside the mean of a host in the fleet, a chart for each unit."""
    for unit in dict.fromkeys(pair.fleet.value.unit for pair in pairs):
        groups, sentences = [], []
        for pair in pairs:
            share = per_host(pair.fleet)
            if pair.fleet.value.unit != unit or share is None or pair.kept is None:
                continue
            alone, fleet = looks[pair.single.configuration], looks[pair.fleet.configuration]
            note = f"each of {pair.fleet.hosts}"
            bars = (
                Bar(alone.name, alone.token, pair.single.value, pair.single.level, "alone"),
                Bar(fleet.name, fleet.token, share, pair.fleet.level, note),
            )
            groups.append(BarGroup(pair.fleet.title, bars))
            kept = 100 * (pair.kept.value or 0.0)
            who = f"{note} hosts of {fleet.title}" if len(looks) > 1 else note
            sentences.append(f"{pair.fleet.title}: {who} does {kept:.0f} % of what one does alone")
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


MAKERS: Final[tuple[SectionMaker, ...]] = (maxima, scaling, value, bottlenecks, ground)


def sections(brief: Brief) -> tuple[ReportSection, ...]:
    """Those that the results have something for."""
    parts = (maker(brief) for maker in (*MAKERS, *brief.sections))
    return tuple(section for section in parts if section is not None)


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
    for asked_load in asked:
        outcomes = asked_load.of(brief, look)
        if outcomes:
            title = f"{axis_word(asked_load.axis)} {asked_load.load}"
            table = _basis(title, asked_load, outcomes, brief)
            figures = tuple(_predicted_figures(title, outcomes, brief))
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
    def first_run(key: tuple[str, int]) -> RunResources | None:
        try:
            record = record_of(source, key, source.manifest(*key), with_counters=True)
        except StoreError:
            return None
        return watch(view_of(record, source.facts, analyses))

    return lambda point: first_run((point.results[0].digest, point.results[0].repeat))


def resource_name(use: ResourceUse) -> str:
    """A resource as the limit of a prediction: what it is, its name, and whose."""
    return " ".join(filter(None, (use.resource.value, use.name, "of", use.host)))


def caveat(outcome: Predicted, load: int) -> str:
    """What limits a prediction, how far it goes beyond what was measured, or why there is none."""
    prediction = outcome.prediction
    if prediction is None:
        return f"{outcome.reason}."
    parts = []
    if (
        prediction.limit is not None
        and outcome.limited_by is not None
        and prediction.high >= prediction.limit
    ):
        limit = show_value(prediction.limit, outcome.unit)
        parts.append(f"at most {limit} by {resource_name(outcome.limited_by)}")
    if load > (last := outcome.measured[-1].load):
        parts.append(
            f"{load / last:.2g} times the largest measured load: a bend or fall there is not seen"
        )
    return "; ".join(parts)


def _basis(
    title: str,
    asked: AskedLoad,
    outcomes: Sequence[Predicted],
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
            Cell(_title(outcome, brief)),
            Cell(brief.looks[outcome.configuration].title),
            Cell(
                f"{outcome.measured[0].load:g} to {outcome.measured[-1].load:g}"
                if outcome.measured
                else NOTHING
            ),
            *_rate(outcome),
            Cell(str(outcome.runs) if outcome.runs else NOTHING),
            Cell(outcome.prediction.law.value if outcome.prediction else NOTHING),
            Cell(caveat(outcome, asked.load)),
        )
        for outcome in outcomes
    )
    return Table(f"What is predicted from, at {title}", heads, rows)


def _rate(outcome: Predicted) -> tuple[Cell, ...]:
    prediction = outcome.prediction
    if prediction is None:
        return row(NOTHING, NOTHING)
    ends = (
        f"[{show_value(prediction.low, outcome.unit)}, {show_value(prediction.high, outcome.unit)}]"
    )
    return row(show_value(prediction.rate, outcome.unit), ends)


def _rates(title: str, outcomes: Sequence[Predicted], brief: Brief) -> Table:
    """The figures behind a chart's bars."""
    heads = columns(("Workload", "Configuration"), ("Predicted", "90 % interval"))
    rows = tuple(
        (
            Cell(_title(outcome, brief)),
            Cell(brief.looks[outcome.configuration].title),
            *_rate(outcome),
        )
        for outcome in outcomes
    )
    return Table(f"Predicted at {title}", heads, rows)


def _title(outcome: Predicted, brief: Brief) -> str:
    title = brief.study.workload(outcome.workload).title
    return ", ".join(filter(None, (title, axis_label(outcome.fixed))))


def _predicted_figures(
    title: str,
    outcomes: Sequence[Predicted],
    brief: Brief,
) -> Iterator[Figure]:
    """A chart for each unit; bars are hatched as those of points that are not valid."""
    looks = brief.looks
    drawn = [
        outcome
        for outcome in outcomes
        if outcome.prediction is not None and outcome.configuration in looks
    ]
    for unit in dict.fromkeys(outcome.unit for outcome in drawn):
        own = [outcome for outcome in drawn if outcome.unit == unit]
        titles = list(dict.fromkeys(_title(outcome, brief) for outcome in own))
        groups = [
            BarGroup(
                name,
                tuple(
                    _predicted_bar(outcome, looks)
                    for outcome in own
                    if _title(outcome, brief) == name
                ),
            )
            for name in titles
        ]
        figure = lying_bars(
            "Predicted",
            f"Predicted at {title}",
            groups,
            finding=sentence([_sentence(outcome, brief) for outcome in own]),
            table=_rates(title, own, brief),
            named=len(looks) > 1,
        )
        if figure is not None:
            yield replace(figure, note=_NOTE)


def _sentence(outcome: Predicted, brief: Brief) -> str:
    looks = brief.looks
    prediction = outcome.prediction
    if prediction is None:
        return ""
    who = f" by {looks[outcome.configuration].title}" if len(looks) > 1 else ""
    rate, low, high = (
        show_value(value, outcome.unit)
        for value in (prediction.rate, prediction.low, prediction.high)
    )
    return f"{_title(outcome, brief)}: {rate}{who}, 90 % interval {low} to {high}"


def _predicted_bar(outcome: Predicted, looks: Looks) -> Bar:
    look, prediction = looks[outcome.configuration], outcome.prediction
    value = (
        Metric(None, outcome.unit)
        if prediction is None
        else Metric(prediction.rate, outcome.unit, prediction.low, prediction.high, outcome.runs)
    )
    level = worst_level((outcome.level, Level.INDICATIVE))
    return Bar(look.name, look.token, value, level, "predicted", look.title)
