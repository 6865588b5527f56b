"""The chart of training reads: what the time of accelerators consists of, by how many there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from iolab.analysis.points import PointSummary
from iolab.core.metric import VerdictLevel
from iolab.core.workload import Workload
from iolab.loads.training.answer import AXIS, accelerator_count_of_point
from iolab.loads.training.metric_specs import BARRIER_WAIT, LATENESS, STORAGE_WAIT, UTILISATION
from iolab.loads.training.workload import TrainingJob
from iolab.report.charts.chart import Chart, LineSegments, SeriesStyles
from iolab.report.charts.palette import INK, MUTED, ColorToken
from iolab.report.charts.rows import StackedBar, StackedBarPart, legend_and_stacked_bar_plots
from iolab.report.numbers import axis_values_text, metric_value_text
from iolab.report.table import Cell, Table, row_of_cells, text_and_number_columns
from iolab.text import escape_invisible, percent_text

PARTS: Final = (
    (UTILISATION, "computing"),
    (STORAGE_WAIT, "storage wait"),
    (BARRIER_WAIT, "barrier wait"),
    (LATENESS, "emulator late"),
)
"""In the order in which they are stacked."""

SHADES: Final = (1.0, 0.6, 0.35, 0.18)
ROWS_MAX: Final = 24
"""Bars that have room; the table has all."""


def step_parts_chart(
    workload: Workload, points: Sequence[PointSummary], styles: SeriesStyles
) -> Chart | None:
    """A bar for each number of accelerators with the parts of its time; None without a point."""
    job = TrainingJob.require_type(workload.job)
    known = [point for point in points if point.metric_value(UTILISATION.key) is not None]
    if not known:
        return None
    order = list(styles)
    known.sort(
        key=lambda point: (
            order.index(point.key.configuration),
            _other_axis_values_text(point),
            accelerator_count_of_point(workload, point),
        )
    )
    drawn = known[:ROWS_MAX]
    rows = tuple(_step_time_bars(workload, drawn, styles))
    legend = [
        (name, StackedBarPart(0.0, MUTED, opacity=shade))
        for (_, name), shade in zip(PARTS, SHADES, strict=True)
    ]
    keys, bars = legend_and_stacked_bar_plots(rows, legend)
    upright = LineSegments(
        color=INK, segments=[(job.threshold, None, job.threshold, None)], dash=(2, 3), width=1.2
    )
    left_out = len(known) - len(drawn)
    notes = [
        f"Dotted upright: well fed from {percent_text(job.threshold)} on.",
        *([f"{left_out} more in the table."] if left_out else []),
    ]
    return Chart(
        subject=workload.title,
        title="What the time of accelerators consists of",
        finding=_accelerators_above_threshold_sentence(workload, job, drawn),
        note=" ".join(notes),
        plots=(keys, replace(bars, marks=[*bars.marks, upright])),
        table=_step_parts_table(workload, known, styles),
        has_configuration_colors=len({point.key.configuration for point in drawn}) > 1,
        page_columns=6,
    )


def _other_axis_values_text(point: PointSummary) -> str:
    return axis_values_text(tuple(pair for pair in point.key.axis_values if pair[0] != AXIS))


def _step_time_bars(
    workload: Workload, points: Sequence[PointSummary], styles: SeriesStyles
) -> Iterator[StackedBar]:
    """One a point; the first of a configuration and of other axes has these as its heading."""
    several = len({point.key.configuration for point in points}) > 1
    before = ""
    for point in points:
        style = styles[point.key.configuration]
        name = escape_invisible(style.label) if several else ""
        heading = ": ".join(filter(None, (name, _other_axis_values_text(point))))
        doubt = "" if point.verdict_level is VerdictLevel.VALID else f" {point.verdict_level.value}"
        yield StackedBar(
            tuple(_step_time_parts(point, style.color)),
            heading if heading != before else "",
            name=str(accelerator_count_of_point(workload, point)),
            total=doubt.strip(),
        )
        before = heading


def _step_time_parts(point: PointSummary, color: ColorToken) -> Iterator[StackedBarPart]:
    for (spec, _), shade in zip(PARTS, SHADES, strict=True):
        share = point.metric_value(spec.key) or 0.0
        yield StackedBarPart(share, color, percent_text(share), shade)


def _accelerators_above_threshold_sentence(
    workload: Workload, job: TrainingJob, points: Sequence[PointSummary]
) -> str:
    """The most accelerators above the threshold, and what the others wait for."""
    fed = [
        accelerator_count_of_point(workload, point)
        for point in points
        if point.verdict_level is not VerdictLevel.INVALID
        and (point.metric_value(UTILISATION.key) or 0.0) >= job.threshold
    ]
    best = f"Up to {max(fed)} accelerators are" if fed else "No number of accelerators is"
    last = points[-1]
    waits = metric_value_text(last.metrics.get(STORAGE_WAIT.key))
    return (
        f"{best} at {percent_text(job.threshold)} or more; "
        f"{accelerator_count_of_point(workload, last)} wait for storage {waits} of the time."
    )


def _step_parts_table(
    workload: Workload, points: Sequence[PointSummary], styles: SeriesStyles
) -> Table:
    heads = text_and_number_columns(
        ("Configuration", "Other axes"),
        ("Accelerators", *(name.capitalize() for _, name in PARTS)),
        ("Verdict",),
    )
    rows: list[tuple[Cell, ...]] = [
        row_of_cells(
            styles[point.key.configuration].title,
            _other_axis_values_text(point),
            str(accelerator_count_of_point(workload, point)),
            *(metric_value_text(point.metrics.get(spec.key)) for spec, _ in PARTS),
            point.verdict_level.value,
        )
        for point in points
    ]
    return Table(f"{workload.title}: parts of steps", heads, tuple(rows))
