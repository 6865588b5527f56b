"""Tables of best figures: over all places, of one client and of a fleet, and over size and cost.

Measured and published figures stand in the same tables: those of others have no verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from iolab.analysis.value import (
    MONEY,
    Maximum,
    Over,
    Quotient,
    Scaled,
    capacities,
    over,
    per_host,
    quotients,
)
from iolab.core.configuration import Configuration
from iolab.core.metric import Metric
from iolab.report.numbers import NOTHING, TOO_FEW, axis_label, show, show_value
from iolab.report.peaks import Peak
from iolab.report.series import DetailKey
from iolab.report.table import Cell, Table, columns, filled, row

Anchors = Mapping[DetailKey, str]

TIMES: Final = "Times"
"""How the heading of factors over the first configuration begins."""

_SMALL: Final = 1.0
"""Quotients below this keep three digits: rounded to hundredths they would be 0."""


def maxima_table(
    configurations: Sequence[Configuration], peaks: Sequence[Peak], anchors: Anchors
) -> Table:
    """The best of each workload and configuration, its place, and the factor over the first."""
    titles = {one.id: one.title for one in configurations}
    several = len(titles) > 1
    base = configurations[0].id if configurations else ""
    bases = {one.best.workload: one.best for one in peaks if one.best.configuration == base}
    numbers = ("Best", "Interval", "Of points")
    heads = (
        *columns(("Workload", "Configuration", "At")),
        *columns((), (*numbers, *((f"{TIMES} {titles[base]}",) if several else ()))),
        *columns(("Verdict",)),
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
    peaks: Sequence[Peak],
    found: Sequence[Scaled],
    anchors: Anchors,
) -> Table | None:
    """Rates of fleets: total, mean, slowest and fastest host, beside one client where there is one.

    `found` are the fleets that have one. None where no rate was made by several hosts.
    """
    beside = {(one.fleet.configuration, one.fleet.workload): one for one in found}
    titles = {one.id: one.title for one in configurations}
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
                NOTHING if one is None else show_value(one, unit)
                for one in (peak.slowest, peak.fastest)
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
    heads = (
        *columns(("Workload", "Configuration"), (*numbers, *alone)),
        *columns(("Verdict",)),
    )
    name = "One client and the fleet" if beside else "The mean of each host"
    return filled(Table(name, heads, tuple(rows))) if rows else None


def normalised_table(
    configurations: Sequence[Configuration], peaks: Sequence[Peak], anchors: Anchors
) -> Table | None:
    """Every best rate over every size and cost that its configuration tells; None for none."""
    found = quotients(configurations, [one.best for one in peaks])
    pers = list(dict.fromkeys(one.size.per for one in sorted(found, key=_order)))
    if not pers:
        return None
    titles = {one.id: one.title for one in configurations}
    values = {(one.of, one.size.per): one.value for one in found}
    heads = (
        *columns(("Workload", "Configuration"), ("Best", *(f"For each {per}" for per in pers))),
        *columns(("Verdict",)),
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
    per: str, found: Sequence[Quotient], titles: Mapping[str, str], verdicts: Mapping[Maximum, Cell]
) -> Table:
    """The quotients of one measure with their intervals, behind a chart of them."""
    heads = (
        *columns(("Workload", "Configuration"), ("Best", f"For each {per}", "Interval")),
        *columns(("Verdict",)),
    )
    rows = tuple(
        (
            *row(
                one.of.title or one.of.workload,
                titles.get(one.of.configuration, one.of.configuration),
                show(one.of.value),
                value_text(one.value),
                interval_text(one.value),
            ),
            verdicts.get(one.of, Cell(NOTHING)),
        )
        for one in found
    )
    return Table(f"For each {per}", heads, rows)


def purchase_table(configurations: Sequence[Configuration]) -> Table:
    """What was bought: nodes, capacity, cost by part, and capacity for a node and for money.

    What a configuration does not tell is a dash.
    """
    ratios = capacities(configurations, (Over.NODE, Over.COST))
    known = {(one.of.configuration, one.of.metric, one.size.over): one.value for one in ratios}
    numbers = ("Nodes", "Raw", "Usable", "Raw for each node")
    money = ("Servers", "Network", "Storage", "Cost", "Raw for money", "Usable for money")
    paid = any(one.cost is not None for one in configurations)
    rows = []
    for one in configurations:
        cost, size = one.cost, one.capacity
        texts = [
            one.title,
            str(one.nodes or NOTHING),
            _terabytes(size.raw_tb),
            _terabytes(size.usable_tb),
            value_text(known.get((one.id, "raw_tb", Over.NODE))),
        ]
        if paid:
            parts = () if cost is None else (cost.servers, cost.network, cost.storage, cost.total)
            currency = "" if cost is None else cost.currency
            texts += [f"{part:,.0f} {currency}" for part in parts] or [NOTHING] * 4
            texts += [
                _for_money(known.get((one.id, name, Over.COST)), currency)
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
        return f"{TOO_FEW},{runs}" if metric.lacks_repeats else runs.strip() or NOTHING
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


def _order(one: Quotient) -> int:
    return list(Over).index(one.size.over)


def _terabytes(size: float | None) -> str:
    return NOTHING if not size else f"{size:,.6g} TB"


def _for_money(metric: Metric | None, currency: str) -> str:
    return NOTHING if metric is None else f"{value_text(metric)} for {MONEY:g} {currency}"
