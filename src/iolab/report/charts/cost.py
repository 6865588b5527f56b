"""What configurations cost, part upon part, and what is got for that: capacity and performance.

All amounts of a chart are in one currency.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from iolab.analysis.quotients import Quotient
from iolab.core.configuration import Configuration, ProcurementCost
from iolab.report.charts.chart import (
    HEAD,
    Chart,
    ConfigurationStyle,
    SeriesStyles,
    notes_on_error_bars,
)
from iolab.report.charts.palette import MUTED
from iolab.report.charts.rows import (
    BARS_TOP,
    POINTS_HEIGHT,
    LabelledPoint,
    StackedBar,
    StackedBarPart,
    labelled_points_plot,
    legend_and_stacked_bar_plots,
)
from iolab.report.numbers import quotient_value_text
from iolab.report.phrases import terabytes_text
from iolab.report.table import Table
from iolab.text import counted_noun, escape_invisible, excerpt, list_text, percent_text
from iolab.units import format_count

CONFIGURATIONS_MAX: Final = 12
"""Configurations drawn; the others stand in the table alone."""

SHADES: Final = (1.0, 0.65, 0.42)
"""Opacity of servers, network and storage: three shades that are told apart on either paper."""

PARTS: Final = ("servers", "network", "storage")
_NAMED: Final = 4
_CURRENCY_CHARACTERS: Final = 16
_LONG_AMOUNT: Final = 100_000


def server_network_storage_costs(cost: ProcurementCost) -> tuple[float, float, float]:
    """The amounts in the order in which they are stacked."""
    return cost.servers, cost.network, cost.storage


def procurement_cost_chart(
    currency: str, configurations: Sequence[Configuration], styles: SeriesStyles, table: Table
) -> Chart | None:
    """Those whose cost is in `currency`, in the study's order; None for none."""
    priced = [
        (styles[configuration.id], configuration.cost, _capacity_text(configuration))
        for configuration in configurations
        if configuration.cost is not None
        and configuration.cost.currency == currency
        and configuration.cost.total > 0
    ]
    if not priced:
        return None
    drawn = priced[:CONFIGURATIONS_MAX]
    amounts = zip(*(server_network_storage_costs(cost) for _, cost, _ in drawn), strict=True)
    legend = [
        (_cost_part_legend_text(part, own), StackedBarPart(0.0, MUTED, opacity=shade))
        for part, own, shade in zip(PARTS, amounts, SHADES, strict=True)
    ]
    left_out = len(priced) - len(drawn)
    return Chart(
        subject="Cost",
        title=f"Procurement cost in {excerpt(currency, _CURRENCY_CHARACTERS)}",
        finding=_procurement_cost_sentence([(style, cost) for style, cost, _ in drawn]),
        note=f"{counted_noun(left_out, 'configuration')} more in the table." if left_out else "",
        plots=legend_and_stacked_bar_plots(
            [_cost_bar(*each) for each in drawn], legend, HEAD + POINTS_HEIGHT - BARS_TOP
        ),
        table=table,
        has_configuration_colors=True,
    )


def _cost_part_legend_text(part_name: str, amounts: Sequence[float]) -> str:
    """`network 100` where all have the same: a narrow part has no room for its amount."""
    first = amounts[0]
    return f"{part_name} {_amount_text(first)}" if first and {*amounts} == {first} else part_name


def _capacity_text(configuration: Configuration) -> str:
    """`973 TB usable`, of one that tells only the raw capacity that."""
    sizes = (
        (configuration.capacity.usable_tb, "usable"),
        (configuration.capacity.raw_tb, "raw"),
    )
    return next((f"{terabytes_text(size)} {kind}" for size, kind in sizes if size), "")


def _cost_bar(style: ConfigurationStyle, cost: ProcurementCost, capacity_text: str) -> StackedBar:
    pieces = (
        StackedBarPart(amount, style.color, _amount_text(amount), shade)
        for amount, shade in zip(server_network_storage_costs(cost), SHADES, strict=True)
    )
    heading = ": ".join(filter(None, (escape_invisible(style.label), capacity_text)))
    return StackedBar(tuple(pieces), heading, total=_amount_text(cost.total))


def _amount_text(amount: float) -> str:
    """As tables write it, unless that is longer than there is room for."""
    return f"{amount:,.0f}" if amount < _LONG_AMOUNT else format_count(amount)


def _procurement_cost_sentence(
    styles_and_costs: Sequence[tuple[ConfigurationStyle, ProcurementCost]],
) -> str:
    """Each configuration's sum, and what the largest part of it is."""
    parts = []
    for style, cost in styles_and_costs:
        amount, part = max(zip(server_network_storage_costs(cost), PARTS, strict=True))
        share = f"{percent_text(amount / cost.total)} of it {part}"
        money = f"{format_count(cost.total)} {excerpt(cost.currency, _CURRENCY_CHARACTERS)}"
        parts.append(f"{escape_invisible(style.title)} {money}, {share}")
    return f"{list_text(parts, _NAMED)}."


def value_for_money_chart(
    capacity_quotients: Sequence[Quotient],
    rate_quotients: Sequence[Quotient],
    styles: SeriesStyles,
    table: Table,
) -> Chart | None:
    """Capacity against one workload's rate, both for the same money; None for under two.

    Up and to the right is more of both.
    """
    by_configuration = {
        quotient.dividend.configuration: quotient for quotient in capacity_quotients
    }
    pairs = [
        (by_configuration[rate.dividend.configuration], rate)
        for rate in rate_quotients
        if rate.dividend.configuration in by_configuration
    ]
    if len(pairs) < 2:
        return None
    money = excerpt(rate_quotients[0].divisor.unit_text, _CURRENCY_CHARACTERS)
    plot = labelled_points_plot(
        [
            LabelledPoint(
                styles[rate.dividend.configuration].label,
                styles[rate.dividend.configuration].color,
                capacity.value,
                rate.value,
                rate.dividend.verdict_level,
            )
            for capacity, rate in pairs
        ],
        f"per {money}",
    )
    what = pairs[0][0].dividend.metric.removesuffix("_tb")
    title = rate_quotients[0].dividend.title or rate_quotients[0].dividend.workload
    sentences = (
        f"{escape_invisible(styles[rate.dividend.configuration].title)} "
        f"{quotient_value_text(rate.value)} and {quotient_value_text(capacity.value)}"
        for capacity, rate in pairs
    )
    return Chart(
        subject="Value for money",
        title=f"{title} against {what} capacity",
        finding=f"Per {money}: {list_text(sentences, _NAMED)}.",
        note=" ".join(
            (
                "Up and to the right is more of both for the money.",
                # What was bought has no interval.
                *notes_on_error_bars(rate.value for _, rate in pairs),
            )
        ),
        plots=(plot,),
        table=table,
        has_configuration_colors=True,
    )
