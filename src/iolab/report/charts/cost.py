"""What configurations cost, part upon part, beside the capacity that was bought for it.

Parts are shades of the configuration's own colour, each named under its bar. All amounts of a chart
are in one currency.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Final

from iolab.core.configuration import Configuration, ProcurementCost
from iolab.record import Record
from iolab.report.charts.chart import (
    ABOVE,
    KEY_CHARACTERS,
    LINE_GAP,
    Boxes,
    Figure,
    Mark,
    Plot,
    TextMark,
)
from iolab.report.charts.palette import INK, MUTED, Token
from iolab.report.charts.scale import LEFT
from iolab.report.table import Table
from iolab.text import counted_noun, escape_invisible, excerpt, list_text, percent_text
from iolab.units import format_count

HEAD: Final = 4
ROW: Final = 66
BAR: Final = 14
THIN: Final = 8

COST_END: Final = 185
"""Where the highest cost ends, in pixels from the plot's left edge, which is `LEFT` to its left."""

CAPACITY_START: Final = 215
CAPACITY_END: Final = 275
"""Capacities stand right of the costs, on a scale of their own."""

ROWS_MAX: Final = 12
"""Configurations drawn; the others stand in the table alone."""

SHADES: Final = (1.0, 0.6, 0.28)
"""Opacity of servers, network and storage: three shades that are told apart on either paper."""

PARTS: Final = ("servers", "network", "storage")
_CHARACTER: Final = 6.3
_TITLE_CHARACTERS: Final = 38
"""What has room left of the capacity."""

_NAMED: Final = 4


class PurchasedConfiguration(Record):
    """A configuration with its colour."""

    configuration: Configuration
    token: Token


def server_network_storage_costs(cost: ProcurementCost) -> tuple[float, float, float]:
    """The amounts in the order in which they are stacked."""
    return cost.servers, cost.network, cost.storage


def procurement_cost_chart(
    currency: str, purchases: Sequence[PurchasedConfiguration], table: Table
) -> Figure | None:
    """Those whose cost is in `currency`, most first as the study has them; None for none."""
    priced = [
        (purchase, cost)
        for purchase in purchases
        if (cost := _cost_in_currency(purchase, currency)) is not None
    ]
    if not priced:
        return None
    drawn = priced[:ROWS_MAX]
    dearest = max(cost.total for _, cost in drawn)
    sizes = [
        size
        for purchase, _ in drawn
        for _, size in _raw_and_usable_capacity(purchase.configuration)
    ]
    largest = max(sizes, default=0.0)
    marks: list[Mark] = []
    height = 0.0
    for purchase, cost in drawn:
        *over, name = _name_and_cost_lines(purchase, cost)
        marks += [
            _text_mark(line, -LEFT + 4, height + 15 + LINE_GAP * n, INK)
            for n, line in enumerate(over)
        ]
        height += LINE_GAP * len(over)
        marks += [
            *_cost_bar_marks(name, purchase, cost, dearest, height),
            *_capacity_bar_marks(purchase, largest, height),
        ]
        height += ROW
    left_out = len(priced) - len(drawn)
    return Figure(
        subject="Cost",
        title=f"Procurement cost in {excerpt(currency, 16)}, and capacity",
        finding=_cost_sentence(drawn),
        note="Servers, network and storage are shades of one colour, in this order. Capacity is on "
        "a scale of its own."
        + (f" {counted_noun(left_out, 'configuration')} more in the table." if left_out else ""),
        plots=(Plot(height, marks, top=HEAD),),
        table=table,
        by_configuration=True,
    )


def _cost_in_currency(purchase: PurchasedConfiguration, currency: str) -> ProcurementCost | None:
    cost = purchase.configuration.cost
    return cost if cost is not None and cost.currency == currency and cost.total > 0 else None


def _raw_and_usable_capacity(configuration: Configuration) -> list[tuple[str, float]]:
    sizes = (("raw", configuration.capacity.raw_tb), ("usable", configuration.capacity.usable_tb))
    return [(name, size) for name, size in sizes if size]


def _name_and_cost_lines(purchase: PurchasedConfiguration, cost: ProcurementCost) -> list[str]:
    """The name with the sum: what has no room beside the capacity stands in lines above it."""
    title, total = escape_invisible(purchase.configuration.title), format_count(cost.total)
    line = f"{title}: {total}"
    if len(line) <= _TITLE_CHARACTERS:
        return [line]
    return [*wrap(title, KEY_CHARACTERS), total]


def _cost_bar_marks(
    name: str,
    purchase: PurchasedConfiguration,
    cost: ProcurementCost,
    highest_cost: float,
    top: float,
) -> list[Mark]:
    """The name with the sum, the stacked bar, and under it each part with its shade."""
    marks = [_text_mark(name, -LEFT + 4, top + 15, INK)]
    start, x = -LEFT + 4.0, -LEFT + 4.0
    for amount, shade in zip(server_network_storage_costs(cost), SHADES, strict=True):
        end = start + (COST_END + LEFT - 4) * amount / highest_cost
        if end - start >= 0.1:
            marks.append(
                _rimmed_rectangle(start, end, top + 21, top + 21 + BAR, purchase.token, shade)
            )
        start = end
    for part, amount, shade in zip(PARTS, server_network_storage_costs(cost), SHADES, strict=True):
        text = f"{part} {format_count(amount)}"
        marks.append(_rimmed_rectangle(x, x + 8, top + 42, top + 50, purchase.token, shade))
        marks.append(_text_mark(text, x + 11, top + 51, MUTED))
        x += 11 + _CHARACTER * len(text) + 6
    return marks


def _capacity_bar_marks(purchase: PurchasedConfiguration, largest: float, top: float) -> list[Mark]:
    """Thin bars of raw and usable capacity, each with its size behind it."""
    marks = []
    for place, (name, size) in enumerate(_raw_and_usable_capacity(purchase.configuration)):
        y = top + 13 + place * 13
        end = CAPACITY_START + (CAPACITY_END - CAPACITY_START) * size / largest
        shade = SHADES[1] if name == "raw" else SHADES[0]
        marks.append(_rimmed_rectangle(CAPACITY_START, end, y, y + THIN, purchase.token, shade))
        marks.append(_text_mark(f"{size:,.5g} TB {name}", end + 5, y + THIN, INK))
    return marks


def _rimmed_rectangle(x: float, x2: float, y: float, y2: float, token: Token, shade: float) -> Mark:
    """A piece of a bar with a rim, so that pieces are told apart by more than their shade."""
    return Boxes(token=token, boxes=[(x, y, x2, y2)], opacity=shade, has_rim=True)


def _text_mark(text: str, x: float, y: float, token: Token) -> Mark:
    return TextMark(token=token, places=[(x, y, text)], dy=ABOVE)


def _cost_sentence(
    purchases_with_cost: Sequence[tuple[PurchasedConfiguration, ProcurementCost]],
) -> str:
    """Each configuration's sum, and what the largest part of it is."""
    parts = []
    for purchase, cost in purchases_with_cost:
        amount, part = max(zip(server_network_storage_costs(cost), PARTS, strict=True))
        share = f"{percent_text(amount / cost.total)} of it {part}"
        name = escape_invisible(purchase.configuration.title)
        parts.append(f"{name} {format_count(cost.total)} {excerpt(cost.currency, 16)}, {share}")
    return f"{list_text(parts, _NAMED)}."
