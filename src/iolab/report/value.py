"""What configurations give for their size and cost, where the study tells these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from iolab.analysis.points import PointSummary
from iolab.analysis.value import (
    Maximum,
    Over,
    Quotient,
    capacities,
    currencies,
    lacking,
    quotients,
    sizes,
    whole_ones,
)
from iolab.core.configuration import Configuration
from iolab.report.brief import Brief
from iolab.report.charts.chart import Figure
from iolab.report.charts.choose import Look
from iolab.report.charts.cost import Bought, cost_figure
from iolab.report.charts.series import DetailKey
from iolab.report.charts.value import Bar, BarGroup, lying_bars
from iolab.report.numbers import listing
from iolab.report.page_parts import ChartGroup, Section
from iolab.report.peaks import (
    Peak,
    normalised_table,
    peaks_of,
    purchase_table,
    quotient_table,
    sentence,
    value_text,
)
from iolab.report.table import Cell, Table

_LEDE: Final = (
    "The best figures over capacity, nodes and cost, as the study tells these of each "
    "configuration. They divide what was measured: nobody measured one terabyte or one node alone."
)

_UNITS: Final = {
    "1/s": "IOPS",
    "bytes/s": "Bandwidth",
    "ops/s": "Operations a second",
    "TB": "Capacity",
}
_CAPACITIES: Final = {"raw_tb": "Raw capacity", "usable_tb": "Usable capacity"}
_MEASURES: Final = {
    Over.RAW: "raw capacity",
    Over.USABLE: "usable capacity",
    Over.NODE: "nodes",
    Over.COST: "cost",
}

_DECIDING: Final = (Over.COST, Over.USABLE, Over.RAW, Over.NODE)
"""The first of these that is known stands in the brief, the others in its appendix."""

NAMED_MOST: Final = 6
"""Workloads, configurations or currencies in a sentence; more are counted."""


def value(
    brief: Brief,
    points: Sequence[PointSummary],
    looks: Mapping[str, Look],
    anchors: Mapping[DetailKey, str],
) -> Section | None:
    """None where no configuration tells its capacity, nodes or cost."""
    owners = whole_ones(brief.study.configurations)
    if not any(sizes(one) for one in owners):
        return None
    kept = {one.id for one in owners}
    every = peaks_of(brief.kinds, brief.study, points)
    peaks = [one for one in every if one.best.configuration in kept]
    left_out = [one.title for one in brief.study.configurations if one.id not in kept]
    first = _bought(owners, peaks, looks, anchors)
    if left_out:
        first = replace(first, note=f"{first.note} {_fewer(left_out)}")
    groups = (first, *_each(owners, peaks, looks, anchors))
    title = "Price/performance" if currencies(owners) else "Capacity and size"
    return Section("value", title, _LEDE, groups, in_appendix=False)


def _bought(
    owners: Sequence[Configuration],
    peaks: Sequence[Peak],
    looks: Mapping[str, Look],
    anchors: Mapping[DetailKey, str],
) -> ChartGroup:
    """Cost and capacity of all, with what is not told of some."""
    table = purchase_table(owners)
    bought = [Bought(one, looks[one.id].token) for one in owners]
    figures = [cost_figure("Cost", money, bought, table) for money in currencies(owners)]
    every = normalised_table(owners, peaks, anchors)
    return ChartGroup(
        "Cost and capacity",
        tuple(one for one in figures if one is not None),
        table,
        _note(owners),
        () if every is None else ((every, ""),),
    )


def _fewer(titles: Sequence[str]) -> str:
    return (
        f"Left out, since only some hosts of another configuration load the same storage there: "
        f"{listing(list(titles), NAMED_MOST)}."
    )


def _note(owners: Sequence[Configuration]) -> str:
    """What is missing, and why some amounts do not stand side by side."""
    titles = {one.id: one.title for one in owners}
    notes = [
        f"Not told, and so not divided by: {_MEASURES[over]} of "
        f"{listing([titles[name] for name in names], NAMED_MOST)}."
        for over, names in lacking(owners)
    ]
    money = currencies(owners)
    if len(money) > 1:
        notes.append(
            f"Costs are in {listing(list(money), NAMED_MOST)}: each currency has charts of its "
            "own, and no amount is compared with one in another."
        )
    return " ".join(notes) or "As the study tells it; nothing of this was measured."


def _each(
    owners: Sequence[Configuration],
    peaks: Sequence[Peak],
    looks: Mapping[str, Look],
    anchors: Mapping[DetailKey, str],
) -> Iterator[ChartGroup]:
    """A group of charts for each measure; the one that decides is for the brief."""
    found = [*quotients(owners, [one.best for one in peaks]), *capacities(owners)]
    verdicts = {one.best: one.verdict(anchors) for one in peaks}
    order = sorted(found, key=lambda one: list(Over).index(one.size.over))
    known = {one.size.over for one in found if one.of.workload}
    shown = next((one for one in _DECIDING if one in known), None)
    for per in dict.fromkeys(one.size.per for one in order):
        mine = [one for one in found if one.size.per == per]
        figures = tuple(_figures(per, mine, looks, verdicts))
        first = mine[0].size.over is shown
        if figures and first:
            yield ChartGroup(f"For each {per}", figures)
        elif figures:
            yield ChartGroup(f"For each {per}", (), further=figures)


def _figures(
    per: str,
    found: Sequence[Quotient],
    looks: Mapping[str, Look],
    verdicts: Mapping[Maximum, Cell],
) -> Iterator[Figure]:
    """One chart for each unit."""
    titles = {name: look.title for name, look in looks.items()}
    for unit in dict.fromkeys(one.value.unit for one in found):
        mine = [one for one in found if one.value.unit == unit]
        table = quotient_table(per, mine, titles, verdicts)
        figure = _figure(per, unit, mine, looks, table)
        if figure is not None:
            yield figure


def _figure(
    per: str, unit: str, found: Sequence[Quotient], looks: Mapping[str, Look], table: Table
) -> Figure | None:
    groups: dict[tuple[str, str], list[Quotient]] = {}
    for one in found:
        groups.setdefault((one.of.workload, one.of.metric), []).append(one)
    name = f"{_UNITS.get(unit, 'Figures')} for each {per}"
    return lying_bars(
        "Price/performance",
        name,
        [BarGroup(_title(of[0]), tuple(_bar(one, looks) for one in of)) for of in groups.values()],
        finding=_finding(list(groups.values()), looks),
        table=table,
        per=per,
        named=len(looks) > 1,
    )


def _title(one: Quotient) -> str:
    return one.of.title or _CAPACITIES.get(one.of.metric, one.of.workload)


def _bar(one: Quotient, looks: Mapping[str, Look]) -> Bar:
    look = looks[one.of.configuration]
    return Bar(look.name, look.token, one.value, one.of.level, title=look.title)


def _finding(groups: Sequence[Sequence[Quotient]], looks: Mapping[str, Look]) -> str:
    """Of each group the largest, and of whom."""
    said = []
    for of in groups:
        sound = [one for one in of if one.of.is_sound] or of
        best = max(sound, key=lambda one: one.value.value or 0.0)
        name = looks[best.of.configuration].title
        who = f"{name} has the most, " if len(of) > 1 and best.of.is_sound else ""
        doubt = "" if best.of.is_sound else f" ({name}), invalid"
        if who and any(_meet(best, other) for other in sound if other is not best):
            doubt = ", with low confidence"
        said.append(f"{_title(best)}: {who}{value_text(best.value)}{doubt}")
    return sentence(said)


def _meet(best: Quotient, other: Quotient) -> bool:
    """Whether what both may be meets, as far as that is known."""
    low, high = best.value.low, other.value.high
    return low is not None and high is not None and low <= high
