"""Latency by percentile: the tail stretched out, so that p99.9 has as much room as p90.

The axis is logarithmic in 1/(1-q): each step to the right is one more nine. Every curve ends at the
highest percentile that its number of I/Os supports.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from iolab.record import Record
from iolab.report.charts.chart import Chart, Line, LineEndLabel, Mark, Markers, MarkTooltip, Plot
from iolab.report.charts.palette import ColorToken
from iolab.report.charts.scale import ChartAxis, Scale, log_scale
from iolab.report.charts.series import LatencyCurve
from iolab.report.numbers import DASH
from iolab.report.table import Table, row_of_cells, text_and_number_columns
from iolab.text import capitalised, counted_noun, escape_invisible
from iolab.units import format_ns

HEIGHT: Final = 210
CURVES_MAX: Final = 8
"""More curves than this cannot be told apart; the others stand in the table alone."""

SENTENCES_MAX: Final = 2

MARKS: Final = (50.0, 90.0, 99.0, 99.5, 99.9, 99.99, 99.999)
"""The percentiles that the table names."""

_TICKS: Final[tuple[tuple[float, str], ...]] = (
    (2, "50 %"),
    (10, "90 %"),
    (100, "99 %"),
    (1000, "99.9 %"),
    (1e4, "99.99 %"),
    (1e5, "99.999 %"),
    (1e6, "99.9999 %"),
)
"""Tails with the names of their percentiles."""
_SLACK: Final = 1e-6
"""Percentiles and their tails are inverse to each other only up to rounding."""


class StyledLatencyCurve(Record):
    """A curve with its look; `opacity` tells the axis's steps of one configuration apart.

    `title` is its whole name, where `label` is a short one.
    """

    curve: LatencyCurve
    label: str
    color: ColorToken
    opacity: float = 1.0
    dash: tuple[int, ...] = ()
    title: str = ""


def build_latency_distribution_chart(
    subject: str,
    title: str,
    styled_curves: Sequence[StyledLatencyCurve],
    operation_noun: str = "I/Os",
    *,
    has_configuration_colors: bool = False,
) -> Chart:
    """The curves of one run (read, write) or of one workload (its axis values).

    `operation_noun` is what has the latency.
    """
    shown = [line for line in styled_curves[:CURVES_MAX] if line.curve.inverse_tail_fractions]
    scale = log_scale("ns", [v for line in shown for v in line.curve.lat_ns])
    reach = max((line.curve.inverse_tail_fractions[-1] for line in shown), default=10.0) * (
        1 + _SLACK
    )
    marks = [mark for line in shown for mark in _curve_marks(line, scale, reach)]
    ends = [
        LineEndLabel(line.label, scale.to_scale_unit(line.curve.lat_ns[-1]), line.color)
        for line in shown
    ]
    left_out = len(styled_curves) - len(shown)
    note = "To the right, each step is one more nine. A curve ends where its " + operation_noun
    note += " become too few."
    if left_out > 0:
        note += f" {counted_noun(left_out, 'curve')} more in the table."
    return Chart(
        subject=subject,
        title=title,
        finding=_distribution_sentences_text([line.curve for line in shown], operation_noun),
        note=note,
        plots=(Plot(HEIGHT, marks, _percentile_axis(reach, operation_noun), scale, ends),),
        table=_percentile_table(title, [line.curve for line in styled_curves], operation_noun),
        has_configuration_colors=has_configuration_colors,
    )


def latency_ns_at_percentile(curve: LatencyCurve, percent: float) -> float | None:
    """The curve's latency (ns) at a percentile, None beyond what its I/Os support."""
    tail = 100.0 / (100.0 - percent)
    if not curve.inverse_tail_fractions or tail > curve.inverse_tail_fractions[-1] * (1 + _SLACK):
        return None
    index = next(i for i, t in enumerate(curve.inverse_tail_fractions) if t >= tail * (1 - _SLACK))
    return curve.lat_ns[index]


def _curve_marks(
    styled_curve: StyledLatencyCurve, scale: Scale, max_inverse_tail_fraction: float
) -> list[Mark]:
    """The curve, and a dot at each percentile that the axis names."""
    places = [
        (math.log10(tail), scale.to_scale_unit(lat))
        for tail, lat in zip(
            styled_curve.curve.inverse_tail_fractions, styled_curve.curve.lat_ns, strict=True
        )
    ]
    dots = [
        (math.log10(tick), scale.to_scale_unit(lat))
        for tick, _ in _percentile_ticks(max_inverse_tail_fraction)
        if (lat := latency_ns_at_percentile(styled_curve.curve, 100.0 - 100.0 / tick)) is not None
    ]
    curve = Line(
        color=styled_curve.color,
        places=places,
        dash=styled_curve.dash,
        opacity=styled_curve.opacity,
        tip=MarkTooltip(styled_curve.title or styled_curve.label),
    )
    return [curve, Markers(color=styled_curve.color, places=dots, size=26)] if dots else [curve]


def _percentile_ticks(max_inverse_tail_fraction: float) -> list[tuple[float, str]]:
    """The named percentiles within reach."""
    return [(tail, text) for tail, text in _TICKS if tail <= max_inverse_tail_fraction]


def _percentile_axis(max_inverse_tail_fraction: float, operation_noun: str) -> ChartAxis:
    """The percentile axis, in decades of 1/(1-q)."""
    ticks = tuple(
        (math.log10(tail), text) for tail, text in _percentile_ticks(max_inverse_tail_fraction)
    )
    scale = Scale(1.0, "", 0.0, math.log10(max_inverse_tail_fraction), ())
    return ChartAxis(scale, ticks, f"percentile of the {operation_noun}", "nines", has_grid=True)


def _distribution_sentences_text(curves: Sequence[LatencyCurve], operation_noun: str) -> str:
    """Each curve in a sentence; of many only the first and the last."""
    if len(curves) > SENTENCES_MAX:
        curves = (curves[0], curves[-1])
    return " ".join(_latency_curve_sentence(curve, operation_noun) for curve in curves)


def _latency_curve_sentence(curve: LatencyCurve, operation_noun: str) -> str:
    """What a curve says: its median and its last supported percentile."""
    median = latency_ns_at_percentile(curve, 50.0)
    last = next(
        (p for p in reversed(MARKS) if latency_ns_at_percentile(curve, p) is not None), None
    )
    if median is None or last is None:
        return f"{escape_invisible(curve.name)}: too few {operation_noun} for a percentile."
    tail = latency_ns_at_percentile(curve, last)
    return (
        f"{escape_invisible(curve.name)}: half of the {operation_noun} within {format_ns(median)}, "
        f"{last:g} % within {format_ns(tail or 0.0)}."
    )


def _percentile_table(title: str, curves: Sequence[LatencyCurve], operation_noun: str) -> Table:
    heads = text_and_number_columns(
        ("Curve",), (capitalised(operation_noun), *(f"p{percent:g}" for percent in MARKS))
    )
    rows = tuple(
        row_of_cells(
            curve.name,
            f"{curve.operation_count:,}",
            *(
                DASH if (v := latency_ns_at_percentile(curve, percent)) is None else format_ns(v)
                for percent in MARKS
            ),
        )
        for curve in curves
    )
    return Table(title, heads, rows)
