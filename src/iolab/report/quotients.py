"""Price/performance: best figures over capacity, nodes and cost, and what was bought."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from iolab.analysis.quotients import (
    MONEY,
    TERABYTES,
    BestValue,
    DivisorKind,
    Quotient,
    capacity_quotients,
    configuration_divisors,
    configuration_ids_without_divisor,
    configurations_without_host_subsets,
    cost_currencies,
    rate_quotients,
)
from iolab.core.configuration import Configuration
from iolab.core.metric import Metric
from iolab.core.metric_spec import common_metric_label
from iolab.report.charts.chart import ChartGroup, ReportSection, charts_filling_page_width
from iolab.report.charts.cost import procurement_cost_chart, value_for_money_chart
from iolab.report.charts.rows import Dot, DotRow, charts_by_unit, dot_chart, rows_by_key
from iolab.report.charts.series import RunAnchors
from iolab.report.maxima import (
    BestFigureWithHosts,
    best_figures_with_hosts,
    configuration_titles_by_id,
    first_statements_sentence,
)
from iolab.report.numbers import (
    DASH,
    metric_value_text,
    money_text,
    quotient_interval_text,
    quotient_value_text,
)
from iolab.report.table import Cell, Table, row_of_cells, text_and_number_columns
from iolab.text import capitalised, list_text

if TYPE_CHECKING:
    from iolab.report.brief import Brief
    from iolab.report.charts.chart import Chart, SeriesStyles


_CAPACITY_TITLES: Final = {"raw_tb": "Raw capacity", "usable_tb": "Usable capacity"}
_DIVISOR_NAMES: Final = {
    DivisorKind.RAW: "raw capacity",
    DivisorKind.USABLE: "usable capacity",
    DivisorKind.NODE: "nodes",
    DivisorKind.COST: "cost",
}

_DIVISORS_BY_PRIORITY: Final = (
    DivisorKind.COST,
    DivisorKind.USABLE,
    DivisorKind.RAW,
    DivisorKind.NODE,
)
"""The first of these that is known stands in the brief, the others in its appendix."""

ANCHOR: Final = "value"

NAMES_SHOWN: Final = 6
"""Workloads, configurations or currencies in a sentence; more are counted."""


def figures_per_size_and_cost_section(brief: Brief) -> ReportSection | None:
    """Best figures over capacity, nodes and cost; None where no configuration tells any."""
    owners = configurations_without_host_subsets(brief.study.configurations)
    if not any(configuration_divisors(owner) for owner in owners):
        return None
    kept = {owner.id for owner in owners}
    every = best_figures_with_hosts(brief)
    figures_with_hosts = [figure for figure in every if figure.best_value.configuration in kept]
    left_out = [
        configuration.title
        for configuration in brief.study.configurations
        if configuration.id not in kept
    ]
    first = _purchase_chart_group(
        owners, figures_with_hosts, brief.series_styles, brief.run_anchors
    )
    if left_out:
        first = replace(first, note=f"{first.note} {_left_out_configurations_note(left_out)}")
    groups = (
        first,
        *_quotient_chart_groups(owners, figures_with_hosts, brief.series_styles, brief.run_anchors),
    )
    title = "Price/performance" if cost_currencies(owners) else "Capacity and size"
    return ReportSection(ANCHOR, title, "", groups, in_appendix=False)


def _purchase_chart_group(
    configurations: Sequence[Configuration],
    best_figures: Sequence[BestFigureWithHosts],
    styles: SeriesStyles,
    anchors: RunAnchors,
) -> ChartGroup:
    """Cost and capacity of all, with what is not told of some."""
    table = purchase_table(configurations)
    figures = [
        figure
        for currency in cost_currencies(configurations)
        for figure in _cost_and_value_for_money_charts(
            currency, configurations, best_figures, styles, anchors, table
        )
    ]
    every = best_figures_per_divisor_table(configurations, best_figures, anchors)
    return ChartGroup(
        "",  # the section says it
        charts_filling_page_width(figures),
        None,
        _missing_divisors_and_currencies_note(configurations),
        (*(() if every is None else ((every, ""),)), (table, "")),
    )


def _cost_and_value_for_money_charts(
    currency: str,
    configurations: Sequence[Configuration],
    best_figures: Sequence[BestFigureWithHosts],
    styles: SeriesStyles,
    anchors: RunAnchors,
    table: Table,
) -> Iterator[Chart]:
    """The cost of all, and what they give for it: capacity, and one rate of each unit.

    That is of the study's first workload that has the unit.
    """
    cost = procurement_cost_chart(currency, configurations, styles, table)
    if cost is not None:
        yield cost
    priced = [
        configuration
        for configuration in configurations
        if configuration.cost is not None and configuration.cost.currency == currency
    ]
    capacities = rows_by_key(capacity_quotients(priced), lambda quotient: quotient.dividend.metric)
    capacity = capacities.get("usable_tb") or capacities.get("raw_tb") or []
    rates = [
        quotient
        for quotient in rate_quotients(priced, [figure.best_value for figure in best_figures])
        if quotient.divisor.divisor_kind is DivisorKind.COST and quotient.dividend.is_not_invalid
    ]
    verdicts = {figure.best_value: figure.verdict_cell(anchors) for figure in best_figures}
    titles = {name: style.title for name, style in styles.items()}
    for own in rows_by_key(rates, lambda quotient: quotient.value.unit).values():
        alike = [quotient for quotient in own if quotient.ranking_group == own[0].ranking_group]
        numbers = quotient_table(own[0].divisor.unit_text, alike, titles, verdicts)
        figure = value_for_money_chart(capacity, alike, styles, numbers)
        if figure is not None:
            yield figure


def _left_out_configurations_note(titles: Sequence[str]) -> str:
    return (
        f"Left out, since only some hosts of another configuration load the same storage there: "
        f"{list_text(titles, NAMES_SHOWN)}."
    )


def _missing_divisors_and_currencies_note(configurations: Sequence[Configuration]) -> str:
    """What is missing, and why some amounts do not stand side by side."""
    titles = configuration_titles_by_id(configurations)
    notes = [
        f"Not told, and so not divided by: {_DIVISOR_NAMES[over]} of "
        f"{list_text([titles[name] for name in names], NAMES_SHOWN)}."
        for over, names in configuration_ids_without_divisor(configurations)
    ]
    money = cost_currencies(configurations)
    if len(money) > 1:
        notes.append(
            f"Costs are in {list_text(money, NAMES_SHOWN)}: each currency has "
            "charts of its "
            "own, and no amount is compared with one in another."
        )
    return " ".join(notes) or "Costs and capacities are of the study file: they were not measured."


def _quotient_chart_groups(
    configurations: Sequence[Configuration],
    best_figures: Sequence[BestFigureWithHosts],
    styles: SeriesStyles,
    anchors: RunAnchors,
) -> Iterator[ChartGroup]:
    """A group of charts for each measure; the one that decides is for the brief, but of money.

    Of money the brief has charts of cost.
    """
    every = [
        *rate_quotients(configurations, [figure.best_value for figure in best_figures]),
        *capacity_quotients(configurations),
    ]
    verdicts = {figure.best_value: figure.verdict_cell(anchors) for figure in best_figures}
    order = sorted(every, key=_divisor_sort_key)
    measured = {quotient.divisor.divisor_kind for quotient in every if quotient.dividend.workload}
    shown = next((size for size in _DIVISORS_BY_PRIORITY if size in measured), None)
    for per in dict.fromkeys(quotient.divisor.unit_text for quotient in order):
        own = [quotient for quotient in every if quotient.divisor.unit_text == per]
        draw = partial(_quotient_chart, per, styles, verdicts)
        figures = charts_by_unit(own, lambda quotient: quotient.value.unit, draw)
        first = own[0].divisor.divisor_kind is shown is not DivisorKind.COST
        if figures and first:
            yield ChartGroup(f"For each {per}", figures)
        elif figures:
            yield ChartGroup(f"For each {per}", (), appendix_charts=figures)


def _quotient_chart(
    divisor_unit: str,
    styles: SeriesStyles,
    verdict_cells: Mapping[BestValue, Cell],
    quotients: Sequence[Quotient],
) -> Chart | None:
    """Quotients of one unit by one measure, a row for each workload."""
    titles = {name: style.title for name, style in styles.items()}
    by_workload = rows_by_key(
        quotients, lambda quotient: (quotient.dividend.workload, quotient.dividend.metric)
    )
    groups = list(by_workload.values())
    is_capacity = quotients[0].value.unit == TERABYTES
    of = (
        "capacity"
        if is_capacity
        else common_metric_label(quotient.dividend.metric for quotient in quotients)
    )
    return dot_chart(
        "Price/performance",
        f"{capitalised(of)} for each {divisor_unit}" if of else f"Figures for each {divisor_unit}",
        [
            DotRow(
                _quotient_title(own[0]), tuple(_quotient_dot(quotient, styles) for quotient in own)
            )
            for own in groups
        ],
        finding=_largest_quotients_sentence(groups, styles),
        table=quotient_table(divisor_unit, quotients, titles, verdict_cells),
        divisor_unit=divisor_unit,
    )


def _quotient_title(quotient: Quotient) -> str:
    return quotient.dividend.title or _CAPACITY_TITLES.get(
        quotient.dividend.metric, quotient.dividend.workload
    )


def _quotient_dot(quotient: Quotient, styles: SeriesStyles) -> Dot:
    style = styles[quotient.dividend.configuration]
    return Dot(
        style.label, style.color, quotient.value, quotient.dividend.verdict_level, title=style.title
    )


def _largest_quotients_sentence(groups: Sequence[Sequence[Quotient]], styles: SeriesStyles) -> str:
    """Of each group the largest, and of whom."""
    sentences = []
    for of in groups:
        sound = [quotient for quotient in of if quotient.dividend.is_not_invalid] or of
        best = max(sound, key=lambda quotient: quotient.value.value or 0.0)
        name = styles[best.dividend.configuration].title
        who = f"{name} has the most, " if len(of) > 1 and best.dividend.is_not_invalid else ""
        doubt = "" if best.dividend.is_not_invalid else f" ({name}), invalid"
        if who and any(_do_intervals_overlap(best, other) for other in sound if other is not best):
            doubt = ", with low confidence"
        sentences.append(f"{_quotient_title(best)}: {who}{quotient_value_text(best.value)}{doubt}")
    return first_statements_sentence(sentences)


def _do_intervals_overlap(best: Quotient, next_best: Quotient) -> bool:
    """Whether what both may be meets, as far as that is known."""
    low, high = best.value.low, next_best.value.high
    return low is not None and high is not None and low <= high


def best_figures_per_divisor_table(
    configurations: Sequence[Configuration],
    best_figures: Sequence[BestFigureWithHosts],
    anchors: RunAnchors,
) -> Table | None:
    """Every best rate over every size and cost that its configuration tells; None for none."""
    every = rate_quotients(configurations, [figure.best_value for figure in best_figures])
    pers = list(
        dict.fromkeys(
            quotient.divisor.unit_text for quotient in sorted(every, key=_divisor_sort_key)
        )
    )
    if not pers:
        return None
    titles = configuration_titles_by_id(configurations)
    values = {(quotient.dividend, quotient.divisor.unit_text): quotient.value for quotient in every}
    heads = text_and_number_columns(
        ("Workload", "Configuration"), ("Best", *(f"For each {per}" for per in pers)), ("Verdict",)
    )
    rows = [
        (
            *row_of_cells(
                figure.best_value.title or figure.best_value.workload,
                titles.get(figure.best_value.configuration, figure.best_value.configuration),
                metric_value_text(figure.best_value.value),
                *(quotient_value_text(values.get((figure.best_value, per))) for per in pers),
            ),
            figure.verdict_cell(anchors),
        )
        for figure in best_figures
        if figure.best_value.is_rate
    ]
    return Table("Best figures over size and cost", heads, tuple(rows))


def quotient_table(
    divisor_unit: str,
    quotients: Sequence[Quotient],
    configuration_titles: Mapping[str, str],
    verdict_cells: Mapping[BestValue, Cell],
) -> Table:
    """The quotients of one measure with their intervals, behind a chart of them."""
    heads = text_and_number_columns(
        ("Workload", "Configuration"),
        ("Best", f"For each {divisor_unit}", "Interval"),
        ("Verdict",),
    )
    rows = tuple(
        (
            *row_of_cells(
                quotient.dividend.title or quotient.dividend.workload,
                configuration_titles.get(
                    quotient.dividend.configuration, quotient.dividend.configuration
                ),
                metric_value_text(quotient.dividend.value),
                quotient_value_text(quotient.value),
                quotient_interval_text(quotient.value),
            ),
            verdict_cells.get(quotient.dividend, Cell(DASH)),
        )
        for quotient in quotients
    )
    return Table(f"For each {divisor_unit}", heads, rows)


def purchase_table(configurations: Sequence[Configuration]) -> Table:
    """What was bought: nodes, capacity, cost by part, and capacity for a node and for money.

    What a configuration does not tell is a dash.
    """
    ratios = capacity_quotients(configurations, (DivisorKind.NODE, DivisorKind.COST))
    values = {
        (
            ratio.dividend.configuration,
            ratio.dividend.metric,
            ratio.divisor.divisor_kind,
        ): ratio.value
        for ratio in ratios
    }
    numbers = ("Nodes", "Raw", "Usable", "Raw for each node")
    money = ("Servers", "Network", "Storage", "Cost", "Raw per cost", "Usable per cost")
    paid = any(configuration.cost is not None for configuration in configurations)
    rows = []
    for configuration in configurations:
        cost, size = configuration.cost, configuration.capacity
        texts = [
            configuration.title,
            str(configuration.nodes or DASH),
            _terabytes_or_dash(size.raw_tb),
            _terabytes_or_dash(size.usable_tb),
            quotient_value_text(values.get((configuration.id, "raw_tb", DivisorKind.NODE))),
        ]
        if paid:
            parts = () if cost is None else (cost.servers, cost.network, cost.storage, cost.total)
            currency = "" if cost is None else cost.currency
            texts += [f"{money_text(part)} {currency}" for part in parts] or [DASH] * 4
            texts += [
                _per_money_text(values.get((configuration.id, name, DivisorKind.COST)), currency)
                for name in ("raw_tb", "usable_tb")
            ]
        rows.append(row_of_cells(*texts))
    heads = text_and_number_columns(("Configuration",), (*numbers, *(money if paid else ())))
    return Table("What was bought", heads, tuple(rows))


def _divisor_sort_key(quotient: Quotient) -> int:
    return list(DivisorKind).index(quotient.divisor.divisor_kind)


def _terabytes_or_dash(size_tb: float | None) -> str:
    return DASH if not size_tb else f"{size_tb:,.6g} TB"


def _per_money_text(metric: Metric | None, currency: str) -> str:
    return DASH if metric is None else f"{quotient_value_text(metric)} for {MONEY:g} {currency}"
