"""The best of every workload and configuration, and one client beside its fleet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from iolab.analysis.value import Maximum, Scaled, over, per_host, scaled
from iolab.core.configuration import Configuration
from iolab.core.metric import worst_level
from iolab.core.metric_spec import Better, shared_label
from iolab.core.run import RunKey
from iolab.core.workload import HOSTS
from iolab.dataclass import dataclass
from iolab.report.best import Headline
from iolab.report.charts.bars import Bar, BarGroup, charts_by_unit, group_by, horizontal_bars
from iolab.report.charts.chart import ChartGroup, ReportSection
from iolab.report.charts.run import host_values
from iolab.report.charts.series import Anchors
from iolab.report.numbers import (
    NOTHING,
    axis_label,
    axis_word,
    count,
    show,
    show_factor,
    show_quotient_interval,
    show_value,
)
from iolab.report.table import Cell, Table, columns, filled, row, verdict_cell

if TYPE_CHECKING:
    from iolab.report.brief import Brief
    from iolab.report.charts.chart import Figure, Looks

ANCHOR: Final = "maxima"

_LEDE: Final = (
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
    """The best figures of every workload; None where none has one."""
    peaks = peaks_of(brief)
    if not peaks:
        return None
    anchors, looks = brief.anchors, brief.looks
    owners = brief.study.configurations
    table = maxima_table(owners, peaks, anchors)
    figures = charts_by_unit(peaks, lambda peak: peak.best.value.unit, partial(_figure, brief))
    groups = [ChartGroup("", figures, table, _note(table))]
    alone = singles_of(brief)
    pairs = scaled(owners, [peak.best for peak in peaks], alone)
    clients = clients_table(owners, peaks, pairs, anchors)
    if clients is not None:
        draw = partial(_shares, looks, clients)
        drawn = charts_by_unit(pairs, lambda pair: pair.fleet.value.unit, draw)
        groups.append(ChartGroup(clients.title, drawn, clients, _CLIENTS))
    return ReportSection(ANCHOR, "Best figures", _LEDE, tuple(groups))


def _note(table: Table) -> str:
    note = "An interval is of 95 %, over the runs at that place."
    return (
        note + _FACTORS if any(column.title.startswith(TIMES) for column in table.columns) else note
    )


def _figure(brief: Brief, peaks: Sequence[PeakFigure]) -> Figure | None:
    """A group of bars for each workload, of figures of one unit."""
    looks = brief.looks
    groups = group_by(peaks, lambda peak: peak.best.workload).values()
    better = peaks[0].best.better
    best = "Lowest" if better is Better.LOWER else "Best"
    title = f"{best} {shared_label(peak.best.metric for peak in peaks) or 'figures'}"
    return horizontal_bars(
        "Best figures",
        f"{title}, and where it was reached",
        [BarGroup(own[0].best.title, tuple(_bar(peak, looks) for peak in own)) for own in groups],
        finding=_finding(peaks, looks),
        table=maxima_table(brief.study.configurations, peaks, brief.anchors),
        named=len(looks) > 1,
        better=better,
    )


def _bar(peak: PeakFigure, looks: Looks) -> Bar:
    look, best = looks[peak.best.configuration], peak.best
    at = axis_label(tuple((axis_word(name), value) for name, value in best.axis))
    place = f"at {at}" if best.axis else ""
    return Bar(look.name, look.token, best.value, best.level, place, look.title)


def _finding(peaks: Sequence[PeakFigure], looks: Looks) -> str:
    """Of each workload the best configuration."""
    several = len(looks) > 1
    sentences = []
    for own in group_by((peak.best for peak in peaks), lambda best: best.workload).values():
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
    judged = [level for level in levels if level is not None]
    if not judged:
        return ""
    worst = worst_level(judged).value
    return f"All are {worst}." if len(levels) == 1 else f"At worst {worst}."


def _shares(looks: Looks, table: Table, pairs: Sequence[Scaled]) -> Figure | None:
    """One client alone beside the mean of a host in the fleet."""
    groups, sentences = [], []
    for pair in pairs:
        share = per_host(pair.fleet)
        if share is None or pair.kept is None:
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
    return horizontal_bars(
        "One client and the fleet",
        "One client alone, and the mean of a host in the fleet",
        groups,
        finding=sentence(sentences),
        table=table,
    )


PRINTED: Final = "printed"
"""What stands in place of a verdict where others published a figure."""


@dataclass(frozen=True, slots=True)
class PeakFigure:
    """A maximum; `slowest` and `fastest` are its hosts' values in the run that stands for it.

    They are None where one host made the load, or none is known; `shown` is that run's key.
    """

    best: Maximum
    shown: RunKey | None = None
    slowest: float | None = None
    fastest: float | None = None

    def verdict(self, anchors: Anchors) -> Cell:
        """The cell of its verdict, which leads to the run."""
        if self.best.level is None:
            return Cell(PRINTED)
        return verdict_cell(self.best.level, anchors.get(self.shown) if self.shown else None)


def peaks_of(brief: Brief) -> tuple[PeakFigure, ...]:
    """Of I/O each workload and each mix of guests; of load on keys each group of operations.

    Invalid points are taken only where there is no other, and their level says so.
    """
    return _peaks(brief.kinds.headlines(brief.study, brief.points))


def singles_of(brief: Brief) -> tuple[Maximum, ...]:
    """The best of each workload with one host, where a study varies how many make its load."""
    alone = [point for point in brief.points if dict(point.key.axis).get(HOSTS) == 1]
    return tuple(peak.best for peak in _peaks(brief.kinds.plain_headlines(brief.study, alone)))


def _peaks(headlines: Iterable[Headline]) -> tuple[PeakFigure, ...]:
    return tuple(peak for headline in headlines if (peak := _peak(headline)) is not None)


def _peak(headline: Headline) -> PeakFigure | None:
    best = headline.best
    if best is None:
        return None
    key = headline.workload.figure
    run = best.shown
    values = host_values(run, key).values() if len(run.hosts) > 1 else ()
    return PeakFigure(
        best=Maximum(
            configuration=headline.configuration.id,
            workload=headline.workload.id,
            metric=key,
            value=best.figure,
            axis=run.axis,
            level=best.level,
            runs=tuple(result.key for result in best.results),
            title=headline.workload.title,
            places=headline.compared,
            hosts=0 if run.nodes else best.host_count,
        ),
        shown=run.key,
        slowest=min(values, default=None),
        fastest=max(values, default=None),
    )


SAID_MOST: Final = 6
"""Statements in a chart's sentence; the others stand in its table."""


def sentence(statements: Sequence[str]) -> str:
    """Statements as one sentence of a chart, the first of many."""
    hidden = len(statements) - SAID_MOST
    more = (f"{count(hidden, 'more workload')} in the table",) if hidden > 0 else ()
    return f"{'; '.join((*statements[:SAID_MOST], *more))}."


TIMES: Final = "Times"
"""How the heading of factors over the first configuration begins."""


def maxima_table(
    configurations: Sequence[Configuration], peaks: Sequence[PeakFigure], anchors: Anchors
) -> Table:
    """The best of each workload and configuration, its place, and the factor over the first."""
    titles = titles_of(configurations)
    several = len(titles) > 1
    base = configurations[0].id if configurations else ""
    bases = {peak.best.workload: peak.best for peak in peaks if peak.best.configuration == base}
    numbers = ("Best", "Interval", "Of points")
    heads = columns(
        ("Workload", "Configuration", "At"),
        (*numbers, *((f"{TIMES} {titles[base]}",) if several else ())),
        ("Verdict",),
    )
    rows = []
    for peak in peaks:
        best = peak.best
        texts = [
            best.title or best.workload,
            titles.get(best.configuration, best.configuration),
            axis_label(best.axis) or NOTHING,
            show(best.value),
            show_quotient_interval(best.value),
            f"{best.places}" if best.level is not None else NOTHING,
        ]
        texts += [show_factor(over(best, bases.get(best.workload)))] if several else []
        rows.append((*row(*texts), peak.verdict(anchors)))
    return filled(Table("Best figures", heads, tuple(rows)))


def clients_table(
    configurations: Sequence[Configuration],
    peaks: Sequence[PeakFigure],
    pairs: Sequence[Scaled],
    anchors: Anchors,
) -> Table | None:
    """Rates of fleets: total, mean, slowest and fastest host, beside one client where there is one.

    `pairs` are the fleets that have one. None where no rate was made by several hosts.
    """
    beside = {(pair.fleet.configuration, pair.fleet.workload): pair for pair in pairs}
    titles = titles_of(configurations)
    rows = []
    for peak in peaks:
        best = peak.best
        pair = beside.get((best.configuration, best.workload))
        if not best.is_rate or best.hosts == 1 or not (best.hosts or pair):
            continue
        unit = best.value.unit
        texts = [
            best.title or best.workload,
            titles.get(best.configuration, best.configuration),
            str(best.hosts or NOTHING),
            show(best.value),
            show(per_host(best)),
            *(
                NOTHING if rate is None else show_value(rate, unit)
                for rate in (peak.slowest, peak.fastest)
            ),
        ]
        if beside:
            texts += [
                show(pair.single.value) if pair else NOTHING,
                show_factor(pair.times if pair else None),
                show_factor(pair.kept if pair else None),
            ]
        rows.append((*row(*texts), peak.verdict(anchors)))
    numbers = ("Hosts", "Total", "Mean per host", "Slowest host", "Fastest host")
    alone = ("One client alone", "Total over one", "Mean over one") if beside else ()
    heads = columns(("Workload", "Configuration"), (*numbers, *alone), ("Verdict",))
    name = "One client and the fleet" if beside else "The mean of each host"
    return filled(Table(name, heads, tuple(rows))) if rows else None


def titles_of(configurations: Sequence[Configuration]) -> dict[str, str]:
    """Titles by id."""
    return {configuration.id: configuration.title for configuration in configurations}
