"""Load and telemetry of a run, panel over panel on one time axis.

What is outside the measured window (warm-up, and seconds when not every host ran) is shaded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from iolab.report.charts.chart import (
    End,
    Figure,
    Line,
    Mark,
    MarkTip,
    Plot,
    last_known,
    shades,
    time_line,
)
from iolab.report.charts.palette import INK, MUTED, Token
from iolab.report.charts.scale import log_scale, panel_scale, seconds_axis
from iolab.report.charts.series import Panel, PanelTrace, Timeline
from iolab.report.numbers import NOTHING, show_value
from iolab.report.table import Cell, Table, columns
from iolab.units import format_duration_s

PANEL_HEIGHT: Final = 54
GAP: Final = 30
HEAD: Final = 26
MAX_PANELS: Final = 16
MAX_LINES: Final = 4
"""Labels that fit beside a panel."""
TABLE_ROWS: Final = 24
"""The table under the chart shows this many equal spans at most."""

_DASHES: Final = ((), (4, 3), (1.5, 2.5))


def timeline_figure(
    subject: str, title: str, timeline: Timeline, token: Token, noun: str = "I/O"
) -> Figure:
    """The panels stacked; the run's own colour for the first line, ink and grey for the others.

    `noun` is what the load consists of.
    """
    panels = timeline.panels[:MAX_PANELS]
    plots = tuple(
        _panel(panel, timeline, token, HEAD + number * (PANEL_HEIGHT + GAP))
        for number, panel in enumerate(panels)
    )
    last = replace(plots[-1], x=seconds_axis(_end_of(timeline), f"seconds since the first {noun}"))
    return Figure(
        subject=subject,
        title=title,
        finding=" ".join(_sentence(panel, timeline) for panel in panels[:2]),
        note=(
            f"Means over {format_duration_s(timeline.cell_s)} (p99: of all {noun}s in it). "
            "Shaded: not part of the result (warm-up, or not every host ran)."
        ),
        plots=(*plots[:-1], last),
        table=_table(title, timeline, panels),
    )


def _end_of(timeline: Timeline) -> float:
    return timeline.at_s[-1] + timeline.cell_s / 2


def _panel(panel: Panel, timeline: Timeline, token: Token, top: float) -> Plot:
    values = [v for one in panel.traces for v in one.values if v is not None]
    scale = log_scale(panel.unit, values, most=3) if panel.log else panel_scale(panel, values, 2)
    end = _end_of(timeline)
    marks: list[Mark] = shades(timeline.warmup_s, timeline.end_s, end)
    ends = []
    for index, one in enumerate(panel.traces[:MAX_LINES]):
        colour, dash = _look(one, index, token)
        width = 1.2 if dash else 1.5
        line = Line(token=colour, places=(), width=width, dash=dash, tip=MarkTip(one.name))
        marks += time_line(timeline.at_s, one.values, scale, line)
        last = last_known(one.values)
        ends += [] if last is None else [End(one.name, scale.of(last), colour)]
    return Plot(PANEL_HEIGHT, marks, seconds_axis(end), scale, ends, title=panel.title, top=top)


def _look(trace: PanelTrace, index: int, token: Token) -> tuple[Token, tuple[float, ...]]:
    """Colour and dash: a line with a colour of its own is solid."""
    if trace.token is not None:
        return trace.token, ()
    place = min(index, len(_DASHES) - 1)
    return (token, INK, MUTED)[place], _DASHES[place]


def _in_window(trace: PanelTrace, timeline: Timeline) -> list[float]:
    """The trace's known values within the measured window."""
    return [
        v
        for at, v in zip(timeline.at_s, trace.values, strict=True)
        if v is not None and timeline.warmup_s <= at <= timeline.end_s
    ]


def _sentence(panel: Panel, timeline: Timeline) -> str:
    """How a panel's first line behaves within the window."""
    values = _in_window(panel.traces[0], timeline)
    if not values:
        return f"{panel.title}: nothing known in the measured window."
    name = f"{panel.title} ({panel.traces[0].name})"
    low, high = show_value(min(values), panel.unit), show_value(max(values), panel.unit)
    if panel.unit == "ns":  # a mean of means over unequal numbers of I/Os is not their mean
        return f"{name}: between {low} and {high}."
    mean = show_value(math.fsum(values) / len(values), panel.unit)
    return f"{name}: {mean} on average, between {low} and {high}."


def _table(title: str, timeline: Timeline, panels: Sequence[Panel]) -> Table:
    """Every trace over equal spans of the run: its mean, of latencies the highest cell."""
    named = [(panel, trace) for panel in panels for trace in panel.traces]
    size = max(1, math.ceil(len(timeline.at_s) / TABLE_ROWS))
    highest = " (highest)" if size > 1 else ""
    heads = columns(
        (),
        (
            "From",
            *(
                f"{panel.title}, {trace.name}{highest if panel.unit == 'ns' else ''}"
                for panel, trace in named
            ),
        ),
    )
    rows = []
    for start in range(0, len(timeline.at_s), size):
        cells = [Cell(format_duration_s(timeline.at_s[start] - timeline.cell_s / 2))]
        for panel, trace in named:
            known = [v for v in trace.values[start : start + size] if v is not None]
            cells.append(Cell(show_value(_over(known, panel), panel.unit) if known else NOTHING))
        rows.append(tuple(cells))
    return Table(title, heads, tuple(rows))


def _over(values: Sequence[float], panel: Panel) -> float:
    """The cells of a span as one: percentiles are never averaged."""
    return max(values) if panel.unit == "ns" else math.fsum(values) / len(values)
