"""Metadata load for the terminal: mdtest's summary with latencies and a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from msgspec.structs import replace

from iolab.analysis.stored_results import REPEATS_CHECK_CODE
from iolab.core.metric import RunResult, VerdictLevel
from iolab.core.study import Study
from iolab.loads.metadata.iterations import PointStatistics, statistics_of_points
from iolab.loads.metadata.tables import (
    ITERATIONS_HEADING,
    OPERATION_NAMES,
    POINT_HEADING,
    iteration_and_left_out_counts_text,
    iteration_summary_table,
    point_label,
)
from iolab.report.table import Table, select_columns, table_without_empty_columns
from iolab.report.terminal import QUIET_STYLE, grouped_report_table, literal_text

if TYPE_CHECKING:
    from rich.console import RenderableType


def operation_renderables(study: Study, results: Sequence[RunResult]) -> Iterator[RenderableType]:
    """Each operation over the iterations of each point, under a line for the point."""
    points = [point for point in statistics_of_points(results) if point.operations]
    if not points:
        return
    table = _without_empty_and_repeated_columns(iteration_summary_table(points, study, {}))
    starts = accumulate([0, *(len(point.operations) for point in points)])
    titles = (_point_heading_with_iteration_counts(study, point) for point in points)
    yield grouped_report_table(replace(table, groups=tuple(zip(starts, titles, strict=False))))
    for point in points:
        yield from _disagreeing_repeats_line(point)
    yield literal_text(
        "mean: arithmetic, as mdtest has it; figures above are geometric means of the repeats. "
        "rate over: the window in which all ranks worked, or the whole phase as mdtest counts; "
        "latencies are of the median iteration",
        QUIET_STYLE,
    )


def _without_empty_and_repeated_columns(table: Table) -> Table:
    """The table without empty columns, and without what the line of a point already says."""
    repeated = {POINT_HEADING, ITERATIONS_HEADING}
    kept = [place for place, column in enumerate(table.columns) if column.title not in repeated]
    return table_without_empty_columns(select_columns(table, kept))


def _disagreeing_repeats_line(point: PointStatistics) -> Iterator[RenderableType]:
    """One line for all operations whose repeats are too unlike for a mean."""
    unlike = [
        f"{OPERATION_NAMES[operation.operation].lower()} "
        f"{max(operation.usable_rates) / min(operation.usable_rates):.3g} times"
        for operation in point.operations
        if operation.repeats_disagree_check
        and operation.repeats_disagree_check.level is VerdictLevel.INVALID
    ]
    if unlike:
        yield literal_text(
            f"{REPEATS_CHECK_CODE}: the highest repeat over the lowest: {', '.join(unlike)}. "
            "No mean stands for all of them."
        )


def _point_heading_with_iteration_counts(study: Study, point: PointStatistics) -> str:
    titles = study.workload_titles
    parts = [titles.get(point.workload, point.workload), point_label(point, study)]
    return (
        f"{': '.join(part for part in parts if part)}, {iteration_and_left_out_counts_text(point)}"
    )
