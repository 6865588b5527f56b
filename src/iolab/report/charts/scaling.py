"""A rate against the hosts that make the load, and what each host gives of it.

Dotted lines are the ideal: each host gives what each of the fewest gave. A faint line is the
Universal Scalability Law, where it describes every point.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from iolab.analysis.scaling import HostScaling, ScalingStep
from iolab.core.metric import Metric
from iolab.core.metric_spec import metric_spec
from iolab.core.workload import HOSTS_AXIS
from iolab.record import Record
from iolab.report.charts.chart import (
    Chart,
    LineEndLabel,
    LineSegments,
    Mark,
    MarkTooltip,
    Plot,
    notes_on_error_bars,
)
from iolab.report.charts.chart import Line as LineMark
from iolab.report.charts.lines import (
    HEIGHT,
    LINES_MAX,
    ChartLine,
    ChartQuantity,
    drawn_values_and_interval_ends,
    line_and_point_marks,
    line_end_labels,
    quantity_chart,
    rate_quantity,
    shared_or_worst_verdict_text,
)
from iolab.report.charts.palette import MUTED, ColorToken
from iolab.report.charts.scale import Scale, linear_scale, parameter_axis
from iolab.report.numbers import interval_and_runs_text, metric_value_text, value_text
from iolab.report.table import Cell, Table, row_of_cells, text_and_number_columns
from iolab.text import capitalised, counted_noun, escape_invisible, list_text, percent_text

EFFICIENCY: Final = ChartQuantity("host_efficiency", "Efficiency per host", unit="share")
_NAMED: Final = 3
"""Of more lines the ideals are named by the note alone, for room."""
_LAW_SAMPLES: Final = 32
"""Loads at which the law is drawn: a smooth line at this width."""

_USL_TERM_SHOWN: Final = 0.005
"""Less contention rounds to nothing."""

_EXTRAPOLATION_FACTOR: Final = 2
"""Beyond so many times what was measured is no place to foretell."""


class ScalingLine(Record):
    """One curve over hosts with its name and look."""

    name: str
    color: ColorToken
    dash: tuple[int, ...]
    scaling: HostScaling

    @property
    def chart_line_with_efficiency(self) -> ChartLine:
        """Its points as charts over an axis take them, each with its efficiency."""
        points = tuple(
            replace(
                step.point,
                key=replace(step.point.key, axis_values=((HOSTS_AXIS, step.host_count),)),
                metrics={**step.point.metrics, EFFICIENCY.key: step.efficiency},
            )
            for step in self.scaling.steps
        )
        return ChartLine(self.name, self.color, self.dash, points)


def host_scaling_chart(subject: str, scaling_lines: Sequence[ScalingLine]) -> Chart:
    """The rate against hosts with the ideal; all curves have one metric."""
    quantity = rate_quantity(scaling_lines[0].scaling.metric)
    unit = metric_spec(quantity.key).unit
    drawn = scaling_lines[:LINES_MAX]
    ideals = [_ideal_rates_at_first_and_last_step(curve.scaling) for curve in drawn]
    values = [
        v
        for curve in drawn
        for v in drawn_values_and_interval_ends(curve.chart_line_with_efficiency, quantity.key)
    ]
    scale = linear_scale(unit, [*values, *(end for _, end in ideals)])
    x = parameter_axis(
        HOSTS_AXIS, (float(step.host_count) for curve in drawn for step in curve.scaling.steps)
    )
    marks: list[Mark] = []
    ends: list[LineEndLabel] = []
    for curve, (_, end) in zip(drawn, ideals, strict=True):
        name = curve.name if len(drawn) > 1 else ""
        marks += [
            *_ideal_and_usl_lines(curve, scale),
            *line_and_point_marks(
                curve.chart_line_with_efficiency, HOSTS_AXIS, quantity.key, scale, name
            ),
        ]
        ends += line_end_labels(
            curve.chart_line_with_efficiency, HOSTS_AXIS, quantity.key, scale, curve.name
        )
        ends += (
            [LineEndLabel("ideal", scale.to_scale_unit(end), MUTED)] if len(drawn) <= _NAMED else []
        )
    metrics = [step.point.metrics[quantity.key] for curve in drawn for step in curve.scaling.steps]
    notes = [
        "Dotted: the ideal, where each gives what each of the fewest does.",
        *notes_on_error_bars(metrics),
    ]
    if any(curve.scaling.usl_fit for curve in drawn):
        notes.append("Faint: the Universal Scalability Law, which describes every point.")
    notes += _notes_on_hidden_lines(scaling_lines)
    return Chart(
        subject=subject,
        title=f"{quantity.name} against hosts",
        finding=" ".join(_scaling_sentence(curve, with_name=len(drawn) > 1) for curve in drawn),
        note=" ".join(notes),
        plots=(Plot(HEIGHT, marks, x, scale, ends),),
        table=scaling_table(subject, scaling_lines),
        has_configuration_colors=True,
    )


def host_efficiency_chart(subject: str, scaling_lines: Sequence[ScalingLine]) -> Chart:
    """What each host gives beside each of the fewest, in percent."""
    lines = [curve.chart_line_with_efficiency for curve in scaling_lines]
    figure = quantity_chart(subject, HOSTS_AXIS, lines, EFFICIENCY)
    steps = [step for curve in scaling_lines[:LINES_MAX] for step in curve.scaling.steps]
    full = LineSegments(color=MUTED, segments=[(None, 100.0, None, 100.0)], dash=(2, 3), width=1)
    (plot,) = figure.plots
    notes = ["Dotted: 100 %, what each of the fewest gives."]
    notes += notes_on_error_bars(
        [step.efficiency for step in steps], "Bars: 95 % interval of the ratio."
    )
    return replace(
        figure,
        title="Efficiency per host",
        finding=" ".join(
            _efficiency_sentence(curve, with_name=len(lines) > 1)
            for curve in scaling_lines[:LINES_MAX]
        ),
        note=" ".join([*notes, *_notes_on_hidden_lines(scaling_lines)]),
        plots=(replace(plot, marks=[full, *plot.marks]),),
        table=scaling_table(subject, scaling_lines),
    )


def scaling_table(subject: str, scaling_lines: Sequence[ScalingLine]) -> Table:
    """Each step: its rate, that of each host, the ideal, the efficiency, and the verdict."""
    metric = scaling_lines[0].scaling.metric
    name = rate_quantity(metric).name
    heads = text_and_number_columns(
        ("Configuration", "Hosts"),
        (name, "95 % interval", "Of each host", "Ideal", "Efficiency", "Interval"),
        ("Verdict",),
    )
    rows = tuple(
        _scaling_step_row(curve, step) for curve in scaling_lines for step in curve.scaling.steps
    )
    return Table(f"{subject} against hosts", heads, rows)


def _scaling_step_row(line: ScalingLine, step: ScalingStep) -> tuple[Cell, ...]:
    rate = step.point.metrics[line.scaling.metric]
    per_host = (rate.value or 0.0) / step.host_count
    first = step is line.scaling.first_step
    return row_of_cells(
        line.name,
        str(step.host_count),
        metric_value_text(rate),
        interval_and_runs_text(rate, is_rate_unit_omitted=True),
        value_text(per_host, rate.unit),
        value_text(line.scaling.ideal_rate(step.host_count), rate.unit),
        metric_value_text(step.efficiency),
        "by definition" if first else interval_and_runs_text(step.efficiency),
        step.point.verdict_level,
    )


def _ideal_rates_at_first_and_last_step(scaling: HostScaling) -> tuple[float, float]:
    return scaling.ideal_rate(scaling.first_step.host_count), scaling.ideal_rate(
        scaling.steps[-1].host_count
    )


def _ideal_and_usl_lines(line: ScalingLine, scale: Scale) -> list[Mark]:
    """The ideal, and the law where it is known."""
    low, high = line.scaling.first_step.host_count, line.scaling.steps[-1].host_count
    ideal = LineMark(
        color=MUTED,
        places=[
            (at, scale.to_scale_unit(v))
            for at, v in zip(
                (low, high), _ideal_rates_at_first_and_last_step(line.scaling), strict=True
            )
        ],
        width=1.1,
        dash=(1.5, 3),
        tip=MarkTooltip("ideal"),
    )
    if line.scaling.usl_fit is None:
        return [ideal]
    loads = [low + (high - low) * index / _LAW_SAMPLES for index in range(_LAW_SAMPLES + 1)]
    law = [(at, scale.to_scale_unit(line.scaling.usl_fit.predicted_rate(at))) for at in loads]
    return [ideal, LineMark(color=line.color, places=law, width=5, opacity=0.25)]


def _scaling_sentence(line: ScalingLine, *, with_name: bool) -> str:
    """How often the fewest hosts' rate the most give, and what the law says."""
    scaling = line.scaling
    first, last = scaling.first_step, scaling.steps[-1]
    values = [step.point.metrics[scaling.metric] for step in (first, last)]
    times = (values[1].value or 0.0) / (values[0].value or 1.0)
    trust = shared_or_worst_verdict_text([step.point.verdict_level for step in scaling.steps])
    name = _line_name_prefix(line) if with_name else ""
    text = (
        f"{name}from {metric_value_text(values[0])} of {counted_noun(first.host_count, 'host')} to "
        f"{metric_value_text(values[1])} of {last.host_count}, {times:.3g} times as much where the "
        "ideal is "
        f"{last.host_count / first.host_count:.3g}; {trust}."
    )
    text = text if with_name else capitalised(text)
    law = scaling.usl_fit
    if law is None:
        return text
    parts = [f"{percent_text(law.sigma)} contention"] if law.sigma >= _USL_TERM_SHOWN else []
    parts += (
        [f"the most at {law.best_load:.0f} hosts"]
        if law.best_load <= _EXTRAPOLATION_FACTOR * last.host_count
        else []
    )
    return f"{text} By the law: {list_text(parts)}." if parts else text


def _efficiency_sentence(line: ScalingLine, *, with_name: bool) -> str:
    """What each of the most hosts gives beside each of the fewest."""
    last = line.scaling.steps[-1]
    interval = _percent_interval_suffix(last.efficiency)
    fewest = line.scaling.first_step.host_count
    beside = "one alone gives" if fewest == 1 else f"each of {fewest} gives"
    text = (
        f"each of {last.host_count} hosts gives {metric_value_text(last.efficiency)}{interval} "
        "of what "
        f"{beside}."
    )
    return f"{_line_name_prefix(line)}{text}" if with_name else capitalised(text)


def _percent_interval_suffix(metric: Metric) -> str:
    if metric.low is None or metric.high is None:
        return ""
    return f" ({percent_text(metric.low)} to {percent_text(metric.high)})"


def _line_name_prefix(line: ScalingLine) -> str:
    return f"{escape_invisible(line.name)}: "


def _notes_on_hidden_lines(scaling_lines: Sequence[ScalingLine]) -> list[str]:
    hidden = len(scaling_lines) - LINES_MAX
    return [f"{counted_noun(hidden, 'line')} more in the table."] if hidden > 0 else []
