"""Results that others published of the same study: named as such, and never mixed with measured.

They come as TOML of a loose form: tables of `[[result]]` with whatever was printed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from iolab.analysis.quotients import (
    Quotient,
    fleets_with_single_client,
    improvement_factor,
    rate_quotients,
)
from iolab.core.metric import Metric
from iolab.core.metric_spec import metric_spec
from iolab.published.audit.document import PublishedSet, flatten_table, key_text
from iolab.published.audit.relations import range_text
from iolab.published.meaning import MEANING_KEY
from iolab.published.recomputed import (
    PrintedClaim,
    printed_best_values,
    published_configurations,
    recomputed_claims,
)
from iolab.record import Record
from iolab.report.brief import PublishedResultTables
from iolab.report.maxima import BestFigureWithHosts, fleet_and_client_table, maxima_table
from iolab.report.numbers import DASH
from iolab.report.quotients import best_figures_per_divisor_table
from iolab.report.table import Cell, Column, Table, row_of_cells, text_and_number_columns

ROWS_MAX: Final = 64
"""Published tables are short; more rows would bury what was measured."""

_NOTES: Final = frozenset({"engine", "server", "reported", "placement", "node"})
"""Texts on how and on what was measured."""

_WHOLE_FROM: Final = 1000
"""Printed rates like 1.9e6 are read as the others are."""

_NOT_PRINTED: Final = "its other figure was not printed"


def published_tables(published: PublishedSet) -> PublishedResultTables:
    """What is shown of a published set beside the results of its study."""
    rows = [dict(flatten_table(table)) for table in published.tables_of_array("result")]
    headings = dict(flatten_table(published.meaning.headings))
    names = _ordered_columns(rows, list(headings))
    notes = [
        (name, str(part))
        for section in ("method", "hardware")
        for name, part in published.table_at(section).items()
        if name in _NOTES and isinstance(part, str)
    ]
    heads = tuple(
        Column(
            headings.get(name, _dotted_key_text(name)),
            is_number=not any(isinstance(values.get(name), str) for values in rows),
        )
        for name in names
    )
    cells: tuple[tuple[Cell, ...], ...] = tuple(
        row_of_cells(*(_printed_value_text(values.get(name)) for name in names))
        for values in rows[:ROWS_MAX]
    )
    results = Table("Published elsewhere", heads, cells)
    inside = _single_node_table(published.table_at("single_node"), headings)
    return PublishedResultTables(published.source or DASH, tuple(notes), results, inside)


def _single_node_table(node: Mapping[str, Any], headings: Mapping[str, str]) -> Table | None:
    """What was published of one node, one row a figure."""
    if not node:
        return None
    rows = tuple(
        row_of_cells(headings.get(name, _dotted_key_text(name)), _printed_value_text(value))
        for name, value in flatten_table(node)
    )
    heads = (Column("One node"), Column("Published", is_number=True))
    return Table("One node from inside", heads, rows[:ROWS_MAX])


def _ordered_columns(rows: Sequence[Mapping[str, Any]], headings: list[str]) -> list[str]:
    """Names as they appear, those of one table side by side in the order of their headings."""
    every = list(dict.fromkeys(name for values in rows for name in values))
    tables = list(dict.fromkeys(name.partition(".")[0] for name in every))
    places = {name: place for place, name in enumerate(headings)}
    return sorted(
        every,
        key=lambda name: (tables.index(name.partition(".")[0]), places.get(name, len(places))),
    )


def _printed_value_text(value: object) -> str:
    if value is None:
        return DASH
    if isinstance(value, list) and len(value) == 2:
        return f"{_printed_value_text(value[0])} to {_printed_value_text(value[1])}"
    if isinstance(value, Decimal) and value >= _WHOLE_FROM:
        return f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


class PublishedFileSection(Record):
    """A part of the file under its title: pairs of names and texts, or else a table."""

    title: str
    pairs: tuple[tuple[str, str], ...] = ()
    table: Table | None = None


def published_file_sections(published: PublishedSet) -> Iterator[PublishedFileSection]:
    """The tables of the file in their order, with all that they hold."""
    for name, value in published.tree.items():
        if name == MEANING_KEY:
            continue
        title = key_text(name).capitalize()
        if isinstance(value, dict):
            yield PublishedFileSection(
                title,
                tuple((_dotted_key_text(key), text) for key, text in _flat_keys_and_texts(value)),
            )
        elif isinstance(value, list):
            rows = [dict(_flat_keys_and_texts(table)) for table in value if isinstance(table, dict)]
            yield PublishedFileSection(title, table=_file_rows_table(title, rows))


def _flat_keys_and_texts(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield from ((name, _value_text(value)) for name, value in flatten_table(table))


def _file_rows_table(title: str, rows: list[dict[str, str]]) -> Table:
    names = list(dict.fromkeys(name for values in rows for name in values))
    numeric = {name for name in names if all(_is_numeric_text(values.get(name)) for values in rows)}
    heads = tuple(Column(_dotted_key_text(name), is_number=name in numeric) for name in names)
    cells = tuple(row_of_cells(*(values.get(name, DASH) for name in names)) for values in rows)
    return Table(title, heads, cells)


def _dotted_key_text(name: str) -> str:
    return ", ".join(key_text(part) for part in name.split("."))


def _value_text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(_value_text(part) for part in value)
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    if isinstance(value, Decimal):
        # 5.2e6 is what was printed; people read 5,200,000.
        return f"{value:,f}" if abs(value) >= 1 else f"{value}"
    return str(value)


def _is_numeric_text(text: str | None) -> bool:
    return text is None or text.replace(",", "").replace(".", "", 1).isdecimal()


def tables_from_printed_figures(published: PublishedSet) -> Iterator[Table]:
    """The tables that a report makes of a session, of the printed maxima; then figures as printed.

    Intervals are what rounding leaves open.
    """
    owners, maxima = published_configurations(published), printed_best_values(published)
    workloads = list(dict.fromkeys(maximum.workload for maximum in maxima))
    peaks = [
        BestFigureWithHosts(maximum)
        for maximum in sorted(maxima, key=lambda maximum: workloads.index(maximum.workload))
    ]
    if peaks:
        yield maxima_table(owners, peaks, {})
    for table in (
        fleet_and_client_table(owners, peaks, fleets_with_single_client(owners, maxima), {}),
        best_figures_per_divisor_table(owners, peaks, {}),
        recomputed_table(recomputed_claims(published)),
    ):
        if table is not None:
            yield table


def recomputed_table(figures: tuple[PrintedClaim, ...]) -> Table | None:
    """Each printed figure that follows from others, and what these make of it; None for none."""
    if not figures:
        return None
    heads = text_and_number_columns(
        ("Of", "Figure"), ("Printed", "Computed", "Rounding leaves open"), ("So",)
    )
    rows = tuple(
        row_of_cells(
            figure.subject,
            figure.quantity,
            f"{figure.printed} {figure.unit}",
            DASH
            if figure.computed_metric is None
            else f"{_rounded_text(figure.computed_metric)} {figure.unit}",
            DASH
            if figure.computed_metric is None
            else range_text(figure.computed_bounds, figure.unit),
            _recomputed_agreement_text(figure),
        )
        for figure in figures
    )
    return Table("Printed figures, computed again", heads, rows)


def document_from_printed_figures(published: PublishedSet) -> dict[str, Any]:
    """The same for programs: values in metrics' units, with the bounds that rounding leaves."""
    owners, maxima = published_configurations(published), printed_best_values(published)
    return {
        "quotients": [_quotient_document(quotient) for quotient in rate_quotients(owners, maxima)],
        "clients": [
            {
                "workload": pair.fleet.workload,
                "fleet": pair.fleet.configuration,
                "single": pair.single_client.configuration,
                "times": _metric_document(pair.speedup),
            }
            for pair in fleets_with_single_client(owners, maxima)
        ],
        "factors": [
            {
                "workload": maximum.workload,
                "configuration": maximum.configuration,
                "over": owners[0].id,
                "times": _metric_document(times),
            }
            for base in maxima
            if base.configuration == owners[0].id
            for maximum in maxima
            if maximum.workload == base.workload and maximum.configuration != base.configuration
            if (
                times := improvement_factor(
                    maximum.value, base.value, metric_spec(maximum.metric).better
                )
            )
            is not None
        ],
        "printed": [
            {
                "of": figure.subject,
                "figure": figure.quantity,
                "unit": figure.unit,
                "printed": figure.printed,
                "computed": None
                if figure.computed_metric is None
                else _metric_document(figure.computed_metric),
                "agrees": figure.can_both_be_true if figure.computed_metric is not None else None,
            }
            for figure in recomputed_claims(published)
        ],
    }


def _quotient_document(quotient: Quotient) -> dict[str, Any]:
    return {
        "workload": quotient.dividend.workload,
        "configuration": quotient.dividend.configuration,
        "metric": quotient.dividend.metric,
        "per": quotient.divisor.unit_text,
        **_metric_document(quotient.value),
    }


def _metric_document(metric: Metric) -> dict[str, Any]:
    return {"value": metric.value, "unit": metric.unit, "low": metric.low, "high": metric.high}


def _recomputed_agreement_text(figure: PrintedClaim) -> str:
    if figure.computed_metric is None:
        return _NOT_PRINTED
    return "as printed" if figure.can_both_be_true else "not what was printed"


def _rounded_text(metric: Metric) -> str:
    value = metric.value or 0.0
    return f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.4g}"
