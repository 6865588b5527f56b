"""Metadata load for the terminal: mdtest's summary with latencies and a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from rich.text import Text

from iolab.analysis.resume_marks import CODE
from iolab.core.metric import Level, Result
from iolab.core.study import Study
from iolab.loads.metadata.iterations import OperationStatistics, PointStatistics, point_statistics
from iolab.loads.metadata.tables import NAMES, iterations_text, point_text, rate_texts
from iolab.report.numbers import metric_text
from iolab.report.terminal import (
    QUIET_STYLE,
    GroupedTable,
    Heading,
    literal_text,
    section_title,
    styled_verdict,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

_HEADINGS: Final = (
    Heading("operations/s", can_wrap=True),
    Heading("max", is_number=True),
    Heading("min", is_number=True),
    Heading("mean", is_number=True),
    Heading("std dev", is_number=True),
    Heading("p50", is_number=True, is_optional=True),
    Heading("p99", is_number=True),
    Heading("p99.9", is_number=True, is_optional=True),
    Heading("over"),
    Heading("verdict", can_wrap=True),
)


def operation_lines(study: Study, results: Sequence[Result]) -> Iterator[RenderableType]:
    """Each operation over the iterations of each point, under a line for the point."""
    points = [point for point in point_statistics(results) if point.operations]
    if not points:
        return
    yield GroupedTable(
        _HEADINGS,
        [
            (
                section_title(_point_line(study, point)),
                [_statistics_cells(operation) for operation in point.operations],
            )
            for point in points
        ],
    )
    for point in points:
        yield from _disagreement_lines(point)
    yield literal_text(
        "mean: arithmetic, as mdtest has it; figures above are geometric means of the repeats. "
        "over: the window in which all ranks worked, or the whole phase as mdtest counts; "
        "latencies are of the median iteration",
        QUIET_STYLE,
    )


def _disagreement_lines(point: PointStatistics) -> Iterator[RenderableType]:
    """One line for all operations whose repeats are too unlike for a mean."""
    unlike = [
        f"{NAMES[operation.operation].lower()} "
        f"{max(operation.compared) / min(operation.compared):.3g} times"
        for operation in point.operations
        if operation.disagreement and operation.disagreement.level is Level.INVALID
    ]
    if unlike:
        yield literal_text(
            f"{CODE}: the highest repeat over the lowest: {', '.join(unlike)}. "
            "No mean stands for all of them."
        )


def _point_line(study: Study, point: PointStatistics) -> str:
    titles = study.workload_titles
    parts = [titles.get(point.workload, point.workload), point_text(point, study)]
    return f"{': '.join(part for part in parts if part)}, {iterations_text(point)}"


def _statistics_cells(statistics: OperationStatistics) -> list[Text | str]:
    maximum, minimum, mean, std_dev = rate_texts(statistics)
    return [
        literal_text(f"  {NAMES[statistics.operation]}"),
        maximum,
        minimum,
        Text(mean, style="bold"),
        std_dev,
        *(metric_text(statistics.latencies.get(name)) for name in ("p50", "p99", "p99_9")),
        "window" if statistics.over_window else "whole",
        styled_verdict(statistics.level),
    ]
