"""Price/performance: best figures over capacity, nodes and cost, and what was bought."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from iolab.analysis.value import (
    MONEY,
    TERABYTES,
    Maximum,
    Over,
    Quotient,
    capacities,
    currencies,
    full_configurations,
    lacking,
    quotients,
    sizes,
)
from iolab.core.configuration import Configuration
from iolab.core.metric import Metric
from iolab.core.metric_spec import shared_label
from iolab.report.charts.bars import Bar, BarGroup, charts_by_unit, group_by, horizontal_bars
from iolab.report.charts.chart import ChartGroup, ReportSection
from iolab.report.charts.cost import Bought, cost_figure
from iolab.report.charts.series import Anchors
from iolab.report.maxima import PeakFigure, peaks_of, sentence, titles_of
from iolab.report.numbers import NOTHING, listing, show, show_quotient, show_quotient_interval
from iolab.report.table import Cell, Table, columns, row
from iolab.study.wording import capitalised

if TYPE_CHECKING:
    from iolab.report.brief import Brief
    from iolab.report.charts.chart import Figure, Looks


_LEDE: Final = (
    "The best figures over capacity, nodes and cost, as the study tells these of each "
    "configuration. They divide what was measured: nobody measured one terabyte or one node alone."
)

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


def price_performance(brief: Brief) -> ReportSection | None:
    """Best figures over capacity, nodes and cost; None where no configuration tells any."""
    owners = full_configurations(brief.study.configurations)
    if not any(sizes(owner) for owner in owners):
        return None
    kept = {owner.id for owner in owners}
    every = peaks_of(brief)
    peaks = [peak for peak in every if peak.best.configuration in kept]
    left_out = [
        configuration.title
        for configuration in brief.study.configurations
        if configuration.id not in kept
    ]
    first = _bought(owners, peaks, brief.looks, brief.anchors)
    if left_out:
        first = replace(first, note=f"{first.note} {_fewer(left_out)}")
    groups = (first, *_each(owners, peaks, brief.looks, brief.anchors))
    title = "Price/performance" if currencies(owners) else "Capacity and size"
    return ReportSection("value", title, _LEDE, groups, in_appendix=False)


def _bought(
    owners: Sequence[Configuration],
    peaks: Sequence[PeakFigure],
    looks: Looks,
    anchors: Anchors,
) -> ChartGroup:
    """Cost and capacity of all, with what is not told of some."""
    table = purchase_table(owners)
    bought = [Bought(owner, looks[owner.id].token) for owner in owners]
    figures = [cost_figure(money, bought, table) for money in currencies(owners)]
    every = normalised_table(owners, peaks, anchors)
    return ChartGroup(
        "Cost and capacity",
        tuple(figure for figure in figures if figure is not None),
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
    titles = titles_of(owners)
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
    peaks: Sequence[PeakFigure],
    looks: Looks,
    anchors: Anchors,
) -> Iterator[ChartGroup]:
    """A group of charts for each measure; the one that decides is for the brief."""
    every = [*quotients(owners, [peak.best for peak in peaks]), *capacities(owners)]
    verdicts = {peak.best: peak.verdict(anchors) for peak in peaks}
    order = sorted(every, key=_order)
    measured = {quotient.size.over for quotient in every if quotient.of.workload}
    shown = next((size for size in _DECIDING if size in measured), None)
    for per in dict.fromkeys(quotient.size.per for quotient in order):
        own = [quotient for quotient in every if quotient.size.per == per]
        draw = partial(_figure, per, looks, verdicts)
        figures = charts_by_unit(own, lambda quotient: quotient.value.unit, draw)
        first = own[0].size.over is shown
        if figures and first:
            yield ChartGroup(f"For each {per}", figures)
        elif figures:
            yield ChartGroup(f"For each {per}", (), further=figures)


def _figure(
    per: str, looks: Looks, verdicts: Mapping[Maximum, Cell], every: Sequence[Quotient]
) -> Figure | None:
    """Quotients of one unit by one measure, a group of bars for each workload."""
    titles = {name: look.title for name, look in looks.items()}
    by_workload = group_by(every, lambda quotient: (quotient.of.workload, quotient.of.metric))
    groups = list(by_workload.values())
    is_capacity = every[0].value.unit == TERABYTES
    of = "capacity" if is_capacity else shared_label(quotient.of.metric for quotient in every)
    return horizontal_bars(
        "Price/performance",
        f"{capitalised(of)} for each {per}" if of else f"Figures for each {per}",
        [
            BarGroup(_title(own[0]), tuple(_bar(quotient, looks) for quotient in own))
            for own in groups
        ],
        finding=_finding(groups, looks),
        table=quotient_table(per, every, titles, verdicts),
        per=per,
        named=len(looks) > 1,
    )


def _title(quotient: Quotient) -> str:
    return quotient.of.title or _CAPACITIES.get(quotient.of.metric, quotient.of.workload)


def _bar(quotient: Quotient, looks: Looks) -> Bar:
    look = looks[quotient.of.configuration]
    return Bar(look.name, look.token, quotient.value, quotient.of.level, title=look.title)


def _finding(groups: Sequence[Sequence[Quotient]], looks: Looks) -> str:
    """Of each group the largest, and of whom."""
    sentences = []
    for of in groups:
        sound = [quotient for quotient in of if quotient.of.is_sound] or of
        best = max(sound, key=lambda quotient: quotient.value.value or 0.0)
        name = looks[best.of.configuration].title
        who = f"{name} has the most, " if len(of) > 1 and best.of.is_sound else ""
        doubt = "" if best.of.is_sound else f" ({name}), invalid"
        if who and any(_overlap(best, other) for other in sound if other is not best):
            doubt = ", with low confidence"
        sentences.append(f"{_title(best)}: {who}{show_quotient(best.value)}{doubt}")
    return sentence(sentences)


def _overlap(best: Quotient, other: Quotient) -> bool:
    """Whether what both may be meets, as far as that is known."""
    low, high = best.value.low, other.value.high
    return low is not None and high is not None and low <= high


def normalised_table(
    configurations: Sequence[Configuration], peaks: Sequence[PeakFigure], anchors: Anchors
) -> Table | None:
    """Every best rate over every size and cost that its configuration tells; None for none."""
    every = quotients(configurations, [peak.best for peak in peaks])
    pers = list(dict.fromkeys(quotient.size.per for quotient in sorted(every, key=_order)))
    if not pers:
        return None
    titles = titles_of(configurations)
    values = {(quotient.of, quotient.size.per): quotient.value for quotient in every}
    heads = columns(
        ("Workload", "Configuration"), ("Best", *(f"For each {per}" for per in pers)), ("Verdict",)
    )
    rows = [
        (
            *row(
                peak.best.title or peak.best.workload,
                titles.get(peak.best.configuration, peak.best.configuration),
                show(peak.best.value),
                *(show_quotient(values.get((peak.best, per))) for per in pers),
            ),
            peak.verdict(anchors),
        )
        for peak in peaks
        if peak.best.is_rate
    ]
    return Table("Best figures over size and cost", heads, tuple(rows))


def quotient_table(
    per: str, own: Sequence[Quotient], titles: Mapping[str, str], verdicts: Mapping[Maximum, Cell]
) -> Table:
    """The quotients of one measure with their intervals, behind a chart of them."""
    heads = columns(
        ("Workload", "Configuration"), ("Best", f"For each {per}", "Interval"), ("Verdict",)
    )
    rows = tuple(
        (
            *row(
                quotient.of.title or quotient.of.workload,
                titles.get(quotient.of.configuration, quotient.of.configuration),
                show(quotient.of.value),
                show_quotient(quotient.value),
                show_quotient_interval(quotient.value),
            ),
            verdicts.get(quotient.of, Cell(NOTHING)),
        )
        for quotient in own
    )
    return Table(f"For each {per}", heads, rows)


def purchase_table(configurations: Sequence[Configuration]) -> Table:
    """What was bought: nodes, capacity, cost by part, and capacity for a node and for money.

    What a configuration does not tell is a dash.
    """
    ratios = capacities(configurations, (Over.NODE, Over.COST))
    values = {
        (ratio.of.configuration, ratio.of.metric, ratio.size.over): ratio.value for ratio in ratios
    }
    numbers = ("Nodes", "Raw", "Usable", "Raw for each node")
    money = ("Servers", "Network", "Storage", "Cost", "Raw for money", "Usable for money")
    paid = any(configuration.cost is not None for configuration in configurations)
    rows = []
    for configuration in configurations:
        cost, size = configuration.cost, configuration.capacity
        texts = [
            configuration.title,
            str(configuration.nodes or NOTHING),
            _terabytes(size.raw_tb),
            _terabytes(size.usable_tb),
            show_quotient(values.get((configuration.id, "raw_tb", Over.NODE))),
        ]
        if paid:
            parts = () if cost is None else (cost.servers, cost.network, cost.storage, cost.total)
            currency = "" if cost is None else cost.currency
            texts += [f"{part:,.0f} {currency}" for part in parts] or [NOTHING] * 4
            texts += [
                _for_money(values.get((configuration.id, name, Over.COST)), currency)
                for name in ("raw_tb", "usable_tb")
            ]
        rows.append(row(*texts))
    heads = columns(("Configuration",), (*numbers, *(money if paid else ())))
    return Table("What was bought", heads, tuple(rows))


def _order(quotient: Quotient) -> int:
    return list(Over).index(quotient.size.over)


def _terabytes(size: float | None) -> str:
    return NOTHING if not size else f"{size:,.6g} TB"


def _for_money(metric: Metric | None, currency: str) -> str:
    return NOTHING if metric is None else f"{show_quotient(metric)} for {MONEY:g} {currency}"
