"""The best of every workload over all places of its axes, and one client beside the fleet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from iolab.analysis.points import PointSummary
from iolab.analysis.value import Scaled, per_host, scaled
from iolab.core.study import Study
from iolab.report.brief import Brief
from iolab.report.charts.chart import Figure
from iolab.report.charts.choose import Look
from iolab.report.charts.value import Bar, BarGroup, lying_bars
from iolab.report.numbers import axis_label, axis_word, show
from iolab.report.page_parts import ChartGroup, Section
from iolab.report.peaks import Peak, peaks_of, sentence, singles_of, worst
from iolab.report.series import DetailKey
from iolab.report.table import Table
from iolab.report.value_tables import TIMES, clients_table, maxima_table

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

_TITLES: Final = {
    "1/s": "Best IOPS",
    "bytes/s": "Best bandwidth",
    "ops/s": "Best operations a second",
    "ns": "Lowest mean latency",
}


def maxima(
    brief: Brief,
    points: Sequence[PointSummary],
    looks: Mapping[str, Look],
    anchors: Mapping[DetailKey, str],
) -> Section | None:
    """None where no workload has a figure."""
    peaks = peaks_of(brief.kinds, brief.study, points)
    if not peaks:
        return None
    owners = brief.study.configurations
    table = maxima_table(owners, peaks, anchors)
    figures = tuple(_figures(brief.study, peaks, looks, anchors))
    groups = [ChartGroup("", figures, table, _note(table))]
    alone = singles_of(brief.kinds, brief.study, points)
    found = scaled(owners, [one.best for one in peaks], alone)
    clients = clients_table(owners, peaks, found, anchors)
    if clients is not None:
        drawn = tuple(_shares(found, looks, clients))
        groups.append(ChartGroup(clients.title, drawn, clients, _CLIENTS))
    return Section(ANCHOR, "Best figures", _LEDE, tuple(groups))


def _note(table: Table) -> str:
    note = "An interval is of 95 %, over the runs at that place."
    return note + _FACTORS if any(one.title.startswith(TIMES) for one in table.columns) else note


def _figures(
    study: Study, peaks: Sequence[Peak], looks: Mapping[str, Look], anchors: Mapping[DetailKey, str]
) -> Iterator[Figure]:
    """One chart for each unit, a group of bars for each workload."""
    for unit in dict.fromkeys(one.best.value.unit for one in peaks):
        mine = [one for one in peaks if one.best.value.unit == unit]
        workloads = list(dict.fromkeys(one.best.workload for one in mine))
        groups = [
            BarGroup(
                next(one.best.title for one in mine if one.best.workload == workload),
                tuple(_bar(one, looks) for one in mine if one.best.workload == workload),
            )
            for workload in workloads
        ]
        title = _TITLES.get(unit, "Best figures")
        figure = lying_bars(
            "Best figures",
            f"{title}, and where it was reached",
            groups,
            finding=_finding(mine, looks),
            table=maxima_table(study.configurations, mine, anchors),
            named=len(looks) > 1,
        )
        if figure is not None:
            yield figure


def _bar(peak: Peak, looks: Mapping[str, Look]) -> Bar:
    look, best = looks[peak.best.configuration], peak.best
    at = axis_label(tuple((axis_word(name), value) for name, value in best.axis))
    told = f"at {at}" if best.axis else ""
    return Bar(look.name, look.token, best.value, best.level, told, look.title)


def _finding(peaks: Sequence[Peak], looks: Mapping[str, Look]) -> str:
    """Of each workload the best configuration."""
    several = len(looks) > 1
    said = []
    for workload in dict.fromkeys(one.best.workload for one in peaks):
        mine = [one.best for one in peaks if one.best.workload == workload]
        pick = max if mine[0].is_rate else min
        sound = [one for one in mine if one.is_sound] or mine
        best = pick(sound, key=lambda one: one.value.value or 0.0)
        who = f" by {looks[best.configuration].title}" if several and len(mine) > 1 else ""
        at = f" at {axis_label(best.axis)}" if best.axis else ""
        doubt = "" if best.is_sound else ", invalid"
        said.append(f"{best.title}: {show(best.value)}{who}{at}{doubt}")
    return f"{sentence(said)} {_trust(peaks)}"


def _trust(peaks: Sequence[Peak]) -> str:
    levels = {one.best.level for one in peaks}
    found = worst([one.best.level for one in peaks])
    if found is None:
        return ""
    return f"All are {found.value}." if len(levels) == 1 else f"At worst {found.value}."


def _shares(
    found: Sequence[Scaled],
    looks: Mapping[str, Look],
    table: Table,
) -> Iterator[Figure]:
    """One client alone beside the mean of a host in the fleet, a chart for each unit."""
    for unit in dict.fromkeys(one.fleet.value.unit for one in found):
        groups, said = [], []
        for one in found:
            share = per_host(one.fleet)
            if one.fleet.value.unit != unit or share is None or one.kept is None:
                continue
            alone, whole = looks[one.single.configuration], looks[one.fleet.configuration]
            told = f"each of {one.fleet.hosts}"
            bars = (
                Bar(alone.name, alone.token, one.single.value, one.single.level, "alone"),
                Bar(whole.name, whole.token, share, one.fleet.level, told),
            )
            groups.append(BarGroup(one.fleet.title, bars))
            kept = 100 * (one.kept.value or 0.0)
            who = f"{told} hosts of {whole.title}" if len(looks) > 1 else told
            said.append(f"{one.fleet.title}: {who} does {kept:.0f} % of what one does alone")
        if not groups:
            continue
        figure = lying_bars(
            "One client and the fleet",
            "One client alone, and the mean of a host in the fleet",
            groups,
            finding=sentence(said),
            table=table,
        )
        if figure is not None:
            yield figure
