"""The table that has one row a run, of each kind of load with metrics of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iolab.model.metric import Result
from iolab.model.study import Study
from iolab.report.detail import RunKey
from iolab.report.table import Cell, Table, columns, verdict_cell
from iolab.report.wording import NOTHING, show, show_steadiness
from iolab.units import format_duration_s


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

    `anchors` lead to what the report tells of a run.
    """
    axes = axis_names(results)
    several = len(study.configurations) > 1
    steady = any(result.steadiness is not None for result in results)
    names = ("Workload", *(("Configuration",) if several else ()))
    heads = (
        *columns((*names, "Verdict", *(("Steady",) if steady else ()))),
        *columns((), (*axes, "Repeat", *(name for _, name in shown), "Window")),
    )
    rows = tuple(
        (
            Cell(result.workload),
            *((Cell(result.configuration),) if several else ()),
            verdict_cell(result.verdict.level, anchors.get((result.digest, result.repeat))),
            *((Cell(show_steadiness(result) or NOTHING),) if steady else ()),
            *(Cell(str(dict(result.axis).get(axis, NOTHING))) for axis in axes),
            Cell(str(result.repeat)),
            *(Cell(show(result.metrics.get(key), bare_rate=True)) for key, _ in shown),
            Cell(format_duration_s(result.window_s) if result.window_s else NOTHING),
        )
        for result in results
    )
    return Table(heading, heads, rows)
