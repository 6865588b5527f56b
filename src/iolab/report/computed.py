"""What our own functions make of a published set, beside what was printed of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from iolab.analyse.against.given import Given, configurations_of, given_back, maxima_of
from iolab.analyse.audit.document import Published
from iolab.analyse.audit.relation import shown
from iolab.analyse.value import Quotient, factor, quotients, scaled
from iolab.model.metric import Metric
from iolab.report.peaks import Peak
from iolab.report.table import Table, columns, row
from iolab.report.value_tables import clients_table, maxima_table, normalised_table
from iolab.report.wording import NOTHING

_NOT_PRINTED: Final = "its other figure was not printed"


def computed_tables(published: Published) -> Iterator[Table]:
    """The tables that a report makes of a session, of the printed maxima; then figures as printed.

    Intervals are what rounding leaves open.
    """
    owners, maxima = configurations_of(published), maxima_of(published)
    workloads = list(dict.fromkeys(one.workload for one in maxima))
    peaks = [Peak(one) for one in sorted(maxima, key=lambda one: workloads.index(one.workload))]
    if peaks:
        yield maxima_table(owners, peaks, {})
    for table in (
        clients_table(owners, peaks, scaled(owners, maxima), {}),
        normalised_table(owners, peaks, {}),
        given_table(given_back(published)),
    ):
        if table is not None:
            yield table


def given_table(found: tuple[Given, ...]) -> Table | None:
    """Each printed figure that follows from others, and what these make of it; None for none."""
    if not found:
        return None
    heads = (
        *columns(("Of", "Figure"), ("Printed", "Computed", "Rounding leaves open")),
        *columns(("So",)),
    )
    rows = tuple(
        row(
            one.subject,
            one.what,
            f"{one.said} {one.unit}",
            NOTHING if one.computed is None else f"{_digits(one.computed)} {one.unit}",
            NOTHING if one.computed is None else shown(one.bounds, one.unit),
            _so(one),
        )
        for one in found
    )
    return Table("Printed figures, computed again", heads, rows)


def computed_document(published: Published) -> dict[str, Any]:
    """The same for programs: values in metrics' units, with the bounds that rounding leaves."""
    owners, maxima = configurations_of(published), maxima_of(published)
    return {
        "quotients": [_quotient(one) for one in quotients(owners, maxima)],
        "clients": [
            {
                "workload": one.fleet.workload,
                "fleet": one.fleet.configuration,
                "single": one.single.configuration,
                "times": _document(one.times),
            }
            for one in scaled(owners, maxima)
        ],
        "factors": [
            {
                "workload": one.workload,
                "configuration": one.configuration,
                "over": owners[0].id,
                "times": _document(times),
            }
            for base in maxima
            if base.configuration == owners[0].id
            for one in maxima
            if one.workload == base.workload and one.configuration != base.configuration
            if (times := factor(one.value, base.value)) is not None
        ],
        "printed": [
            {
                "of": one.subject,
                "figure": one.what,
                "unit": one.unit,
                "printed": one.said,
                "computed": None if one.computed is None else _document(one.computed),
                "agrees": one.agrees if one.computed is not None else None,
            }
            for one in given_back(published)
        ],
    }


def _quotient(one: Quotient) -> dict[str, Any]:
    return {
        "workload": one.of.workload,
        "configuration": one.of.configuration,
        "metric": one.of.metric,
        "per": one.size.per,
        **_document(one.value),
    }


def _document(metric: Metric) -> dict[str, Any]:
    return {"value": metric.value, "unit": metric.unit, "low": metric.low, "high": metric.high}


def _so(one: Given) -> str:
    if one.computed is None:
        return _NOT_PRINTED
    return "as printed" if one.agrees else "not what was printed"


def _digits(metric: Metric) -> str:
    value = metric.value or 0.0
    return f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.4g}"
