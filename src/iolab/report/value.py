"""The best of every workload and configuration, and what that is for their size and cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from iolab.analysis.value import (
    MONEY,
    TERABYTES,
    Maximum,
    Over,
    Quotient,
    Scaled,
    capacities,
    currencies,
    lacking,
    over,
    per_host,
    quotients,
    sizes,
    whole_ones,
)
from iolab.core.configuration import Configuration
from iolab.core.metric import Level, Metric
from iolab.core.metric_spec import shared_label
from iolab.core.run import RunKey
from iolab.core.workload import HOSTS
from iolab.report.best import Headline
from iolab.report.charts.bars import Bar, BarGroup, lying_bars
from iolab.report.charts.chart import ChartGroup, ReportSection
from iolab.report.charts.cost import Bought, cost_figure
from iolab.report.charts.run import host_values
from iolab.report.charts.series import Anchors
from iolab.report.numbers import (
    NOTHING,
    axis_label,
    count,
    listing,
    show,
    show_value,
    why_no_interval,
)
from iolab.report.table import Cell, Table, columns, filled, row, verdict_cell

if TYPE_CHECKING:
    from iolab.report.brief import Brief
    from iolab.report.charts.chart import Figure, Looks

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


def worst(levels: Sequence[Level | None]) -> Level | None:
    """The worst verdict of several, None where nobody judged any."""
    judged = [level for level in levels if level is not None]
    return max(judged, key=lambda level: level.rank, default=None)


TIMES: Final = "Times"
"""How the heading of factors over the first configuration begins."""

_SMALL: Final = 1.0
"""Quotients below this keep three digits: rounded to hundredths they would be 0."""


def maxima_table(
    configurations: Sequence[Configuration], peaks: Sequence[PeakFigure], anchors: Anchors
) -> Table:
    """The best of each workload and configuration, its place, and the factor over the first."""
    titles = _titles(configurations)
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
            interval_text(best.value),
            f"{best.places}" if best.level is not None else NOTHING,
        ]
        texts += [factor_text(over(best, bases.get(best.workload)))] if several else []
        rows.append((*row(*texts), peak.verdict(anchors)))
    return filled(Table("Best figures", heads, tuple(rows)))


def clients_table(
    configurations: Sequence[Configuration],
    peaks: Sequence[PeakFigure],
    pairs: Sequence[Scaled],
    anchors: Anchors,
) -> Table | None:
    """Rates of fleets: total, mean, slowest and fastest host, beside one client where there is one.

    `found` are the fleets that have one. None where no rate was made by several hosts.
    """
    beside = {(pair.fleet.configuration, pair.fleet.workload): pair for pair in pairs}
    titles = _titles(configurations)
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
                factor_text(pair.times if pair else None),
                factor_text(pair.kept if pair else None),
            ]
        rows.append((*row(*texts), peak.verdict(anchors)))
    numbers = ("Hosts", "Total", "Mean per host", "Slowest host", "Fastest host")
    alone = ("One client alone", "Total over one", "Mean over one") if beside else ()
    heads = columns(("Workload", "Configuration"), (*numbers, *alone), ("Verdict",))
    name = "One client and the fleet" if beside else "The mean of each host"
    return filled(Table(name, heads, tuple(rows))) if rows else None


def normalised_table(
    configurations: Sequence[Configuration], peaks: Sequence[PeakFigure], anchors: Anchors
) -> Table | None:
    """Every best rate over every size and cost that its configuration tells; None for none."""
    every = quotients(configurations, [peak.best for peak in peaks])
    pers = list(dict.fromkeys(quotient.size.per for quotient in sorted(every, key=_order)))
    if not pers:
        return None
    titles = _titles(configurations)
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
                *(value_text(values.get((peak.best, per))) for per in pers),
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
                value_text(quotient.value),
                interval_text(quotient.value),
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
            value_text(values.get((configuration.id, "raw_tb", Over.NODE))),
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


def value_text(metric: Metric | None, *, bare_rate: bool = False) -> str:
    """A quotient with its unit; small ones keep their digits."""
    if metric is None or metric.value is None:
        return NOTHING
    if abs(metric.value) < _SMALL and metric.unit != "bytes/s":
        word = show_value(0.0, metric.unit, bare_rate=bare_rate).partition(" ")[2]
        return f"{metric.value:.3g} {word}".strip()
    return show_value(metric.value, metric.unit, bare_rate=bare_rate)


def interval_text(metric: Metric) -> str:
    """From where to where it may be, and over how many runs; what rounding leaves has no runs."""
    runs = f" n={metric.n}" if metric.n is not None else ""
    if metric.interval is None:
        why = f"{why_no_interval(metric)}," if metric.lacks_repeats else ""
        return f"{why}{runs}".strip() or NOTHING
    ends = [value_text(Metric(end, metric.unit), bare_rate=True) for end in metric.interval]
    return f"[{', '.join(ends)}]{runs}"


def factor_text(times: Metric | None) -> str:
    """A factor with its interval: `1.29 (1.27 to 1.32)`."""
    if times is None or times.value is None:
        return NOTHING
    if times.interval is None:
        return f"{times.value:.3g}"
    low, high = times.interval
    return f"{times.value:.3g} ({low:.3g} to {high:.3g})"


def _titles(configurations: Sequence[Configuration]) -> dict[str, str]:
    return {configuration.id: configuration.title for configuration in configurations}


def _order(quotient: Quotient) -> int:
    return list(Over).index(quotient.size.over)


def _terabytes(size: float | None) -> str:
    return NOTHING if not size else f"{size:,.6g} TB"


def _for_money(metric: Metric | None, currency: str) -> str:
    return NOTHING if metric is None else f"{value_text(metric)} for {MONEY:g} {currency}"


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


def value(brief: Brief) -> ReportSection | None:
    """None where no configuration tells its capacity, nodes or cost."""
    owners = whole_ones(brief.study.configurations)
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
    figures = [cost_figure("Cost", money, bought, table) for money in currencies(owners)]
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
    titles = {owner.id: owner.title for owner in owners}
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
        figures = tuple(_figures(per, own, looks, verdicts))
        first = own[0].size.over is shown
        if figures and first:
            yield ChartGroup(f"For each {per}", figures)
        elif figures:
            yield ChartGroup(f"For each {per}", (), further=figures)


def _figures(
    per: str,
    every: Sequence[Quotient],
    looks: Looks,
    verdicts: Mapping[Maximum, Cell],
) -> Iterator[Figure]:
    """One chart for each unit."""
    titles = {name: look.title for name, look in looks.items()}
    for unit in dict.fromkeys(quotient.value.unit for quotient in every):
        own = [quotient for quotient in every if quotient.value.unit == unit]
        table = quotient_table(per, own, titles, verdicts)
        figure = _figure(per, unit, own, looks, table)
        if figure is not None:
            yield figure


def _figure(
    per: str,
    unit: str,
    every: Sequence[Quotient],
    looks: Looks,
    table: Table,
) -> Figure | None:
    groups: dict[tuple[str, str], list[Quotient]] = {}
    for quotient in every:
        groups.setdefault((quotient.of.workload, quotient.of.metric), []).append(quotient)
    of = shared_label(quotient.of.metric for quotient in every) if unit != TERABYTES else "capacity"
    return lying_bars(
        "Price/performance",
        f"{of[:1].upper()}{of[1:]} for each {per}" if of else f"Figures for each {per}",
        [
            BarGroup(_title(of[0]), tuple(_bar(quotient, looks) for quotient in of))
            for of in groups.values()
        ],
        finding=_finding(list(groups.values()), looks),
        table=table,
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
        if who and any(_meet(best, other) for other in sound if other is not best):
            doubt = ", with low confidence"
        sentences.append(f"{_title(best)}: {who}{value_text(best.value)}{doubt}")
    return sentence(sentences)


def _meet(best: Quotient, other: Quotient) -> bool:
    """Whether what both may be meets, as far as that is known."""
    low, high = best.value.low, other.value.high
    return low is not None and high is not None and low <= high
