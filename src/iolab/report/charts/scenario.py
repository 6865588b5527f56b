"""Charts of runs with phases: rate and p99 of each second, repeats laid over each other.

Phases are shaded in turns, under their names; an upright is an event. A line at the foot of the
rate is the time in which the witness did not say that all is well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Final

from iolab.core.metric import ScenarioFigures
from iolab.report.charts.chart import (
    Chart,
    Line,
    LineSegments,
    Mark,
    Markers,
    MarkerStyle,
    MarkTooltip,
    Plot,
    Rectangles,
    TextMark,
    timeline_marks,
)
from iolab.report.charts.palette import INK, INVALID, MUTED, RAISED, ColorToken
from iolab.report.charts.run import TABLE_ROWS
from iolab.report.charts.scale import Scale, linear_scale, log_scale, seconds_axis
from iolab.report.numbers import DASH, value_text
from iolab.report.table import Table, row_of_cells, text_and_number_columns
from iolab.text import counted_noun, list_text
from iolab.units import format_duration_s

RATES_AND_LATENCIES_TITLE: Final = "Rate and latency of each second"
HEIGHT: Final = 150
P99_HEIGHT: Final = 90
TOP: Final = 62
GAP: Final = 40
NAME_ROWS: Final = 2
"""Rows of names over the plot: adjacent phases have different ones."""
NAME_HEIGHT: Final = 14
OTHER_REPEATS: Final = 0.45
"""Opacity of the repeats behind the first."""
FOOT: Final = 4.0


def scenario_chart(
    subject: str, scenarios: Sequence[ScenarioFigures], color: ColorToken, finding: str
) -> Chart:
    """Every run of a point; phases and events are those of the first."""
    first = scenarios[0]
    end = float(max(len(scenario.rates) for scenario in scenarios))
    rates = linear_scale("1/s", [rate for scenario in scenarios for rate in scenario.rates])
    p99s = [p99 for scenario in scenarios for p99 in scenario.p99s_ns if p99]
    titled = seconds_axis(end, "seconds since the first phase began")
    bands = _every_second_phase_shading(first)
    plots = [
        Plot(
            HEIGHT,
            [
                *bands,
                *_phase_labels(first, rates),
                *_unhealthy_span_marks(first),
                *_event_line_marks(first),
                *_run_line_marks(scenarios, lambda scenario: scenario.rates, rates, color),
                *_event_markers(first, rates),
            ],
            titled if not p99s else seconds_axis(end),
            rates,
            unit=rates.unit,
            top=TOP,
        )
    ]
    if p99s:
        p50s = [p50 for p50 in first.p50s_ns if p50] if first.neighbours else []
        scale = log_scale("ns", [*p99s, *p50s], max_ticks=4)
        marks = [
            *bands,
            *_event_line_marks(first),
            *_run_line_marks(scenarios, lambda scenario: scenario.p99s_ns, scale, color),
        ]
        if p50s:
            marks += _run_line_marks(scenarios[:1], lambda scenario: scenario.p50s_ns, scale, MUTED)
        title = "p99, and p50 (grey)" if p50s else "p99"
        plots.append(Plot(P99_HEIGHT, marks, titled, scale, title=title, top=TOP + HEIGHT + GAP))
    return Chart(
        subject=subject,
        title=RATES_AND_LATENCIES_TITLE,
        finding=finding,
        note=" ".join(_scenario_chart_notes(scenarios)),
        plots=tuple(plots),
        table=_equal_span_values_table(scenarios),
        page_columns=12,
    )


def _run_line_marks(
    scenarios: Sequence[ScenarioFigures],
    values_of: Callable[[ScenarioFigures], Sequence[float | None]],
    scale: Scale,
    color: ColorToken,
) -> list[Mark]:
    """The first run over the others."""
    marks: list[Mark] = []
    for number, scenario in reversed(list(enumerate(scenarios, 1))):
        values = values_of(scenario)
        name = f"repeat {number}" if len(scenarios) > 1 else ""
        look = Line(
            color=color,
            places=(),
            opacity=1.0 if number == 1 else OTHER_REPEATS,
            tip=MarkTooltip(name),
        )
        marks += timeline_marks([at + 0.5 for at in range(len(values))], values, scale, look)
    return marks


def _every_second_phase_shading(scenario: ScenarioFigures) -> list[Mark]:
    """Every second phase, so that adjacent ones differ."""
    boxes = [
        (phase.start_s, None, phase.start_s + phase.seconds, None)
        for phase in scenario.phases[1::2]
    ]
    return [Rectangles(color=RAISED, boxes=boxes)] if boxes else []


def _phase_labels(scenario: ScenarioFigures, scale: Scale) -> list[Mark]:
    return [
        TextMark(
            color=MUTED,
            places=[
                (phase.start_s, scale.high, phase.id) for phase in scenario.phases[row::NAME_ROWS]
            ],
            dy=-6.0 - NAME_HEIGHT * row,
            dx=2.0,
        )
        for row in range(NAME_ROWS)
        if scenario.phases[row::NAME_ROWS]
    ]


def _unhealthy_span_marks(scenario: ScenarioFigures) -> list[Mark]:
    pieces = [(begin, 0.0, end, 0.0) for begin, end in scenario.unhealthy_spans_s]
    return [LineSegments(color=INVALID, segments=pieces, width=FOOT)] if pieces else []


def _start_times_and_titles_of_events(scenario: ScenarioFigures) -> list[tuple[float, str]]:
    end_s = scenario.phases[-1].start_s + scenario.phases[-1].seconds
    moments = ((event.start_s, event.title) for event in scenario.events)
    return [(at, title) for at, title in moments if at is not None and at <= end_s]


def _event_line_marks(scenario: ScenarioFigures) -> list[Mark]:
    pieces = [(at, None, at, None) for at, _ in _start_times_and_titles_of_events(scenario)]
    return [LineSegments(color=INK, segments=pieces, width=1, dash=(2, 3))] if pieces else []


def _event_markers(scenario: ScenarioFigures, scale: Scale) -> list[Mark]:
    """What a pointer is told of an event."""
    started = _start_times_and_titles_of_events(scenario)
    if not started:
        return []
    return [
        Markers(
            color=INK,
            places=[(at, scale.high) for at, _ in started],
            marker_style=MarkerStyle.PLAIN,
            tip=MarkTooltip(texts=[title for _, title in started]),
        )
    ]


def _scenario_chart_notes(scenarios: Sequence[ScenarioFigures]) -> list[str]:
    first = scenarios[0]
    notes = ["Each I/O stands in the second in which it was due or, without arrivals, submitted."]
    if len(scenarios) > 1:
        others = counted_noun(len(scenarios) - 1, "other repeat")
        notes.append(f"Paler: {others}; phases and events are those of the first run.")
    if started := _start_times_and_titles_of_events(first):
        texts = [f"{title} ({at:.0f} s)" for at, title in started]
        notes.append(f"Dotted uprights: {list_text(texts)}.")
    if first.unhealthy_spans_s:
        notes.append("Thick line at the foot: the witness did not say that all is well.")
    return notes


def _equal_span_values_table(scenarios: Sequence[ScenarioFigures]) -> Table:
    """Equal spans: the mean rate, and the highest p99 of a second."""
    size = max(1, math.ceil(max(len(scenario.rates) for scenario in scenarios) / TABLE_ROWS))
    heads = [
        f"{name}{f', repeat {number}' if len(scenarios) > 1 else ''}"
        for number in range(1, len(scenarios) + 1)
        for name in ("IOPS", "p99 (highest)" if size > 1 else "p99")
    ]
    spans = zip_longest(
        *(_rate_and_p99_texts_per_span(scenario, size) for scenario in scenarios),
        fillvalue=(DASH, DASH),
    )
    rows = tuple(
        row_of_cells(
            format_duration_s(float(number * size)), *(text for pair in pairs for text in pair)
        )
        for number, pairs in enumerate(spans)
    )
    return Table(RATES_AND_LATENCIES_TITLE, text_and_number_columns((), ("From", *heads)), rows)


def _rate_and_p99_texts_per_span(
    scenario: ScenarioFigures, span_seconds: int
) -> list[tuple[str, str]]:
    texts = []
    for start in range(0, len(scenario.rates), span_seconds):
        rates = scenario.rates[start : start + span_seconds]
        p99s = [p99 for p99 in scenario.p99s_ns[start : start + span_seconds] if p99 is not None]
        rate = value_text(math.fsum(rates) / len(rates), "1/s", is_rate_unit_omitted=True)
        texts.append((rate, value_text(max(p99s), "ns") if p99s else DASH))
    return texts
