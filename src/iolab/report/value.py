"""What configurations cost and give for it, in rows for the matrix of a report.

Costs and capacities are those of the study file. Amounts in two currencies are not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from iolab.analysis.energy_cost import yearly_energy_cost
from iolab.analysis.quotients import (
    MONEY,
    configurations_without_host_subsets,
    cost_currencies,
)
from iolab.analysis.ranked_findings import ValueForMoney, value_for_money
from iolab.core.metric_spec import BetterDirection
from iolab.record import Record
from iolab.report.choice import kind_weights_text
from iolab.report.numbers import DASH, ratio_text, value_text
from iolab.report.phrases import terabytes_text
from iolab.text import counted_noun, list_text
from iolab.units import significant_digits_text

if TYPE_CHECKING:
    from iolab.analysis.points import PointSummary
    from iolab.core.configuration import Configuration
    from iolab.report.best import BestFigure
    from iolab.report.brief import Brief

TITLE: Final = "Cost and capacity"

COST: Final = "Cost"
"""How the title begins that says what all costs contain."""

STORAGE_ALONE: Final = ", storage alone"
"""How the title ends of what leaves out servers and network."""

ENERGY: Final = "Energy per year at the most watts measured"
"""How the title of the row of energy begins."""

RATES_PER_TERABYTE_SHOWN: Final = ("1/s", "ops/s", "bytes/s")
"""Units of which the first workload has a row for each TB."""


class ConfigurationFigure(Record):
    """A configuration's figure; `amount` is None where it cannot be compared.

    `amount_note` is what is known of the amount, `note` what else is known beside it. `tie_text`
    says why the best of the row is not surely better than it, where the row tells that of each.
    """

    configuration: str
    text: str
    amount: float | None = None
    note: str = ""
    tie_text: str = ""
    amount_note: str = ""


class ConfigurationFiguresRow(Record, dict=True):
    """A figure of each configuration; `is_undecided` where intervals do not tell the best.

    `better` is None where none is the best of the row. `scope` says of what the figures are.
    Rows of one `group` stand together under it. Costs are of servers and network too, unless it
    `is_of_storage_alone`. `depends_on_weighing` is whether another is the best where each workload
    counts once, and `lead_interval` that of the lead of the value for money, if it is known.
    """

    title: str
    figures: tuple[ConfigurationFigure, ...]
    better: BetterDirection | None = None
    is_undecided: bool = False
    scope: str = ""
    group: str = TITLE
    is_value_for_money: bool = False
    is_of_storage_alone: bool = False
    depends_on_weighing: bool = False
    lead_interval: tuple[float, float] | None = None

    @cached_property
    def figures_best_first(self) -> list[ConfigurationFigure]:
        """Those that can be compared, the best first."""
        own = [figure for figure in self.figures if figure.amount]
        is_reversed = self.better is not BetterDirection.LOWER
        return sorted(own, key=lambda figure: figure.amount or 0.0, reverse=is_reversed)

    @property
    def lead_ratio(self) -> float | None:
        """The best as so many times the next best; None where there is no best."""
        if self.better is None or len(self.figures_best_first) < 2:
            return None
        best, second = (figure.amount or 1.0 for figure in self.figures_best_first[:2])
        return None if best == second else best / second

    def figure_of_configuration(self, configuration_id: str) -> ConfigurationFigure:
        """The figure of that configuration."""
        own = (figure for figure in self.figures if figure.configuration == configuration_id)
        return next(own, ConfigurationFigure(configuration_id, DASH))


def cost_row(configurations: Sequence[Configuration]) -> ConfigurationFiguresRow | None:
    """What each costs."""
    return _build_figures_row(
        f"{COST} of {_cost_parts_text(configurations)}",
        configurations,
        lambda configuration: _amount_with_currency_text_and_amount(
            configuration, _total_cost(configuration)
        ),
        None,
    )


def cost_per_terabyte_row(
    configurations: Sequence[Configuration],
) -> ConfigurationFiguresRow | None:
    """What a usable TB costs, or of configurations that do not tell those a raw one."""
    for kind in ("usable", "raw"):
        size_tb_by_id = {
            configuration.id: _capacity_tb(configuration, kind) for configuration in configurations
        }
        if any(size_tb_by_id.values()):

            def cost_per_terabyte_text_and_amount(
                configuration: Configuration,
                size_tb_by_id: Mapping[str, float | None] = size_tb_by_id,
            ) -> tuple[str, float] | None:
                return _amount_with_currency_text_and_amount(
                    configuration,
                    _quotient_if_known(_total_cost(configuration), size_tb_by_id[configuration.id]),
                )

            return _build_figures_row(
                f"Cost per {kind} TB",
                configurations,
                cost_per_terabyte_text_and_amount,
                BetterDirection.LOWER,
            )
    return None


def energy_cost_row(
    configurations: Sequence[Configuration], points: Sequence[PointSummary]
) -> ConfigurationFiguresRow | None:
    """What a year of energy costs, at the watts of the point that takes most."""
    costs = {each.id: yearly_energy_cost(each, points) for each in configurations}

    def yearly_energy_cost_text_and_amount(
        configuration: Configuration,
    ) -> tuple[str, float] | None:
        found = costs[configuration.id]
        return _amount_with_currency_text_and_amount(
            configuration, found.cost_per_year if found else None
        )

    of_clients = {cost.covers_only_clients for cost in costs.values() if cost is not None}
    if of_clients == {True, False}:
        title, better = f"{ENERGY} (of some the machines that made the load)", None
    else:
        title = f"{ENERGY} of the machines that made the load" if True in of_clients else ENERGY
        better = BetterDirection.LOWER
    return _build_figures_row(title, configurations, yearly_energy_cost_text_and_amount, better)


def value_for_money_row(
    configurations: Sequence[Configuration], value_for_money: ValueForMoney
) -> ConfigurationFiguresRow | None:
    """Best rates for money of all workloads together, as times the best."""
    scores = value_for_money.scores_by_configuration
    if not scores:
        return None
    top = max(scores.values())
    currency = next(iter(cost_currencies(configurations)), "")
    figures = tuple(
        ConfigurationFigure(
            configuration.id,
            ratio_text(scores[configuration.id] / top),
            scores[configuration.id],
        )
        for configuration in configurations
        if configuration.id in scores
    )
    title = f"Performance per {MONEY:g} {currency}"
    scope = f"over {counted_noun(value_for_money.workload_count, 'workload')}"
    if len(value_for_money.performance_kinds) > 1:
        scope += f", {kind_weights_text(value_for_money.performance_kinds)}"
    return ConfigurationFiguresRow(
        title,
        figures,
        BetterDirection.HIGHER,
        not value_for_money.is_certain or value_for_money.depends_on_weighing,
        scope,
        is_value_for_money=True,
        depends_on_weighing=value_for_money.depends_on_weighing,
        lead_interval=value_for_money.lead_interval,
    )


def cost_capacity_rows(
    brief: Brief, best_figures: Sequence[BestFigure]
) -> tuple[ConfigurationFiguresRow, ...]:
    """The rows that the configurations of a brief with these best figures have."""
    configurations = configurations_without_host_subsets(brief.study.configurations)
    rows = (
        cost_row(configurations),
        cost_per_terabyte_row(configurations),
        energy_cost_row(configurations, brief.points),
        value_for_money_row(configurations, value_for_money(configurations, brief.best_points)),
        *_cost_rows_of_storage_alone(configurations, brief),
        _build_figures_row(
            "Raw capacity per node", configurations, _raw_capacity_per_node_text_and_tb, None
        ),
        *_rate_per_terabyte_rows(configurations, best_figures),
    )
    return tuple(row for row in rows if row is not None)


def merge_storage_alone_rows_into_notes(
    rows: Sequence[ConfigurationFiguresRow],
) -> list[ConfigurationFiguresRow]:
    """The rows of the matrix: those of storage alone are notes of those of the whole."""
    alone = {row.title.removesuffix(STORAGE_ALONE): row for row in rows if row.is_of_storage_alone}
    return [
        replace(
            row,
            figures=tuple(
                replace(figure, note=f"storage alone {own.text}")
                if (own := alone[row.title].figure_of_configuration(figure.configuration)).amount
                else figure
                for figure in row.figures
            ),
        )
        if row.title in alone
        else row
        for row in rows
        if not row.is_of_storage_alone
    ]


def _cost_rows_of_storage_alone(
    configurations: Sequence[Configuration], brief: Brief
) -> Iterator[ConfigurationFiguresRow]:
    """What the money for storage alone buys: who has servers already may choose otherwise."""
    costs = [configuration.cost for configuration in configurations]
    are_known = all(cost is not None and cost.storage > 0 for cost in costs)
    if not are_known or not any(cost and cost.total > cost.storage for cost in costs):
        return
    alone = [
        replace(configuration, cost=replace(configuration.cost, servers=0.0, network=0.0))
        for configuration in configurations
        if configuration.cost is not None
    ]
    rows = (
        cost_per_terabyte_row(alone),
        value_for_money_row(alone, value_for_money(alone, brief.best_points)),
    )
    for row in rows:
        if row is not None:
            yield replace(row, title=f"{row.title}{STORAGE_ALONE}", is_of_storage_alone=True)


def _rate_per_terabyte_rows(
    configurations: Sequence[Configuration], best_figures: Sequence[BestFigure]
) -> Iterator[ConfigurationFiguresRow]:
    """The first workload of each unit for each usable TB."""
    for unit in RATES_PER_TERABYTE_SHOWN:
        first = next((figure for figure in best_figures if figure.value.unit == unit), None)
        if first is None:
            continue
        own = {
            figure.configuration: figure.value
            for figure in best_figures
            if figure.workload == first.workload and figure.is_quotable
        }

        rates = {
            configuration.id: (own[configuration.id].value or 0.0)
            / configuration.capacity.usable_tb
            for configuration in configurations
            if configuration.capacity.usable_tb and configuration.id in own
        }

        def rate_per_terabyte_text_and_amount(
            configuration: Configuration,
            rates: Mapping[str, float] = rates,
            unit: str = unit,
        ) -> tuple[str, float] | None:
            share = rates.get(configuration.id)
            return (value_text(share, unit), share) if share else None

        row = _build_figures_row(
            f"{first.title} per usable TB", configurations, rate_per_terabyte_text_and_amount, None
        )
        if row is not None:
            yield row


def _build_figures_row(
    title: str,
    configurations: Sequence[Configuration],
    text_and_amount_of: Callable[[Configuration], tuple[str, float] | None],
    better: BetterDirection | None,
) -> ConfigurationFiguresRow | None:
    """A row; None where no configuration has a figure."""
    figures_by_owner = {
        configuration.id: text_and_amount_of(configuration) for configuration in configurations
    }
    comparable = len(cost_currencies(configurations)) < 2
    figures = tuple(
        ConfigurationFigure(name, own[0], own[1] if comparable else None)
        for name, own in figures_by_owner.items()
        if own is not None
    )
    return ConfigurationFiguresRow(title, figures, better) if figures else None


def _cost_parts_text(configurations: Sequence[Configuration]) -> str:
    """What costs contain: `servers, network and storage`."""
    costs = [
        configuration.cost for configuration in configurations if configuration.cost is not None
    ]
    amounts = {
        "servers": [cost.servers for cost in costs],
        "network": [cost.network for cost in costs],
        "storage": [cost.storage for cost in costs],
    }
    return list_text([name for name, own in amounts.items() if any(own)])


def _capacity_tb(configuration: Configuration, usable_or_raw: str) -> float | None:
    return (
        configuration.capacity.usable_tb
        if usable_or_raw == "usable"
        else configuration.capacity.raw_tb
    )


def _total_cost(configuration: Configuration) -> float | None:
    return None if configuration.cost is None else configuration.cost.total


def _amount_with_currency_text_and_amount(
    configuration: Configuration, amount: float | None
) -> tuple[str, float] | None:
    if not amount or configuration.cost is None:
        return None
    text = f"{amount:,.0f}" if amount >= MONEY else significant_digits_text(amount)
    return f"{text} {configuration.cost.currency}", amount


def _raw_capacity_per_node_text_and_tb(configuration: Configuration) -> tuple[str, float] | None:
    size = _quotient_if_known(configuration.capacity.raw_tb, configuration.nodes)
    return None if size is None else (terabytes_text(size), size)


def _quotient_if_known(amount: float | None, divisor: float | None) -> float | None:
    return amount / divisor if amount and divisor else None
