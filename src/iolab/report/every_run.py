"""The table that has one row a run, of each kind of load with metrics of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from iolab.model.metric import Level, Result
from iolab.model.study import Study
from iolab.report.detail import RunKey
from iolab.report.objections import names_among_several
from iolab.report.table import Cell, Table, columns, verdict_cell
from iolab.report.wording import NOTHING, count, show, show_steadiness
from iolab.units import format_duration_s

ROWS_MOST: Final = 2000
"""Runs with a row of their own: each takes half a KiB, and nobody reads more. The last row says how
many more there are, and what lists them."""


def axis_names(results: Sequence[Result]) -> tuple[str, ...]:
    """The names of all axes, in the order in which they first appear."""
    return tuple(dict.fromkeys(name for result in results for name, _ in result.axis))


def every_run(
    heading: str,
    study: Study,
    results: Sequence[Result],
    shown: Sequence[tuple[str, str]],
    anchors: Mapping[RunKey, str],
) -> Table:
    """Verdict, place and metrics of each run; `shown` are the metrics' keys and headings.

    `anchors` lead to what the report tells of a run. Of more than `ROWS_MOST` runs those that are
    not valid come before others, and the last row tells of what is left out.
    """
    axes = axis_names(results)
    titles = names_among_several(study)
    steady = any(result.steadiness is not None for result in results)
    names = ("Workload", *(("Configuration",) if titles else ()))
    heads = (
        *columns((*names, "Verdict", *(("Steady",) if steady else ()))),
        *columns((), (*axes, "Repeat", *(name for _, name in shown), "Window")),
    )
    rows = tuple(
        (
            Cell(result.workload),
            *((Cell(titles.get(result.configuration, NOTHING)),) if titles else ()),
            verdict_cell(result.verdict.level, anchors.get((result.digest, result.repeat))),
            *((Cell(show_steadiness(result) or NOTHING),) if steady else ()),
            *(Cell(str(dict(result.axis).get(axis, NOTHING))) for axis in axes),
            Cell(str(result.repeat)),
            *(Cell(show(result.metrics.get(key), bare_rate=True)) for key, _ in shown),
            Cell(format_duration_s(result.window_s) if result.window_s else NOTHING),
        )
        for result in _listed(results)
    )
    hidden = len(results) - len(rows)
    if hidden:
        told = f"{count(hidden, 'more run')}: iolab export lists them all"
        rows = (*rows, (Cell(told), *[Cell("")] * (len(heads) - 1)))
    return Table(heading, heads, rows)


def _listed(results: Sequence[Result]) -> list[Result]:
    """As many as get a row, in their order; what is not valid is never left out for what is."""
    if len(results) <= ROWS_MOST:
        return list(results)
    ranked = sorted(results, key=lambda one: one.verdict.level is Level.VALID)[:ROWS_MOST]
    kept = {(one.digest, one.repeat) for one in ranked}
    return [one for one in results if (one.digest, one.repeat) in kept]
