"""Latency of a run over time as a heat map: the stronger, the more of a moment's I/Os took so long.

Cells of one shade are the segments of one thick line: as rectangles they would cost five times the
bytes. Shades are shares of the run's own colour, so that they rise in light, dark and print alike
and can be told apart without seeing hues.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from iolab.report.charts.chart import (
    MIDDLE,
    Boxes,
    End,
    Figure,
    Line,
    Mark,
    MarkTip,
    Plot,
    Rules,
    TextMark,
    last_known,
    shades,
    time_line,
)
from iolab.report.charts.palette import INK, MUTED, PAPER, Token
from iolab.report.charts.scale import LEFT, Scale, log_scale, seconds_axis
from iolab.report.charts.series import HeatMap
from iolab.report.numbers import NOTHING
from iolab.report.table import Table, columns, row
from iolab.units import format_duration_s, format_ns

HEIGHT: Final = 160
HEAD: Final = 50
TABLE_ROWS: Final = 24
"""The table under the chart shows this many equal spans at most."""

STEPS: Final = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3)
"""The least share of a moment's I/Os of each shade; the first is for any I/O at all."""

_OPACITY: Final = (0.13, 0.26, 0.42, 0.6, 0.8, 1.0)
_KEYS: Final = ("any", "0.3", "1", "3", "10", "30 % of the I/Os, or more")
_KEY: Final = 11.0
_KEY_WIDTH: Final = 42
_KEY_UP: Final = 40
_OVERLAP: Final = 0.4
"""Units by which bands reach into each other, so that no seam shows between them."""
_NEAR_S: Final = 0.05
"""What ends so shortly before the run does ends with it."""


def heat_figure(subject: str, title: str, heat: HeatMap, token: Token) -> Figure:
    """The map in shades of the run's colour, with p50 and p99 over it."""
    scale = _scale(heat)
    x = seconds_axis(heat.edges_s[-1], "seconds since the first I/O")
    at_s = [(a + b) / 2 for a, b in zip(heat.edges_s, heat.edges_s[1:], strict=False)]
    named = (("p50", heat.p50_ns, ()), ("p99", heat.p99_ns, (4, 3)))
    marks = [
        *shades(heat.begin_s, heat.end_s, heat.edges_s[-1]),
        *_cells(heat, scale, token),
        *_edges(heat),
    ]
    ends = []
    for name, values, dash in named:
        rim = Line(token=PAPER, places=(), width=3.6, opacity=0.75)
        line = Line(token=INK, places=(), width=1.5, dash=dash, tip=MarkTip(name))
        marks += [*time_line(at_s, values, scale, rim), *time_line(at_s, values, scale, line)]
        last = last_known(values)
        ends += [] if last is None else [End(name, scale.of(last), INK)]
    return Figure(
        subject=subject,
        title=title,
        finding=_finding(heat),
        note=(
            f"Each column is {format_duration_s(heat.edges_s[1] - heat.edges_s[0])}; the stronger "
            "a cell, the more of that column’s I/Os took so long (key above, from that share on). "
            "Lines: p50, and p99 dashed. Beyond a dotted upright: not part of the result."
        ),
        plots=(Plot(HEIGHT, marks, x, scale, ends, top=HEAD), _key(token)),
        table=_table(title, heat),
    )


def _scale(heat: HeatMap) -> Scale:
    """From the first band's lower end to the last one's upper: all bands are equally high."""
    found = log_scale("ns", [heat.edges_ns[0], heat.edges_ns[-1]])
    low, high = (found.of(end) for end in (heat.edges_ns[0], heat.edges_ns[-1]))
    ticks = [tick for tick in found.ticks if low <= tick <= high]
    middle = float(f"{math.sqrt(low * high):.3g}")
    return replace(found, low=low, high=high, ticks=tuple(ticks) or (middle,))


def shade_of(count: int, total: int) -> int | None:
    """Which of `STEPS` a cell of so many of its moment's I/Os has; None for an empty one."""
    if not count:
        return None
    return max(i for i, least in enumerate(STEPS) if count >= least * total)


def segments(heat: HeatMap) -> dict[int, list[tuple[int, int, int]]]:
    """For each shade its (band, first moment, moment after the last), equal neighbours as one."""
    totals = [sum(row) for row in heat.counts]
    found: dict[int, list[tuple[int, int, int]]] = {step: [] for step in range(len(STEPS))}
    for band in range(len(heat.edges_ns) - 1):
        row = [shade_of(heat.counts[i][band], total) for i, total in enumerate(totals)]
        start = 0
        for moment in range(1, len(row) + 1):
            if moment < len(row) and row[moment] == row[start]:
                continue
            shade = row[start]
            if shade is not None:
                found[shade].append((band, start, moment))
            start = moment
    return found


def _cells(heat: HeatMap, scale: Scale, token: Token) -> Iterator[Mark]:
    """One mark a shade: lines as thick as a band."""
    edges = [scale.of(edge) for edge in heat.edges_ns]
    middles = [math.sqrt(low * high) for low, high in pairwise(edges)]
    thick = HEIGHT / len(middles) + _OVERLAP
    for shade, found in segments(heat).items():
        pieces = [
            (heat.edges_s[start], middles[band], heat.edges_s[after], middles[band])
            for band, start, after in found
        ]
        if pieces:
            yield Rules(token=token, pieces=pieces, width=thick, opacity=_OPACITY[shade])


def _edges(heat: HeatMap) -> list[Mark]:
    """Uprights where the measured window begins and ends: cells hide the shade beside it."""
    edges = [at for at in (heat.begin_s, heat.end_s) if 0 < at < heat.edges_s[-1] - _NEAR_S]
    pieces = [(at, None, at, None) for at in edges]
    return [Rules(token=INK, pieces=pieces, width=1, dash=(1, 3))] if edges else []


def _key(token: Token) -> Plot:
    """The shades and from which share on they stand, over the plot."""
    marks: list[Mark] = []
    for index, (text, opacity) in enumerate(zip(_KEYS, _OPACITY, strict=True)):
        left = 4.0 - LEFT + index * _KEY_WIDTH
        box = (left, 0.0, left + _KEY, _KEY)
        marks.append(Boxes(token=token, boxes=[box], opacity=opacity))
        marks.append(TextMark(token=MUTED, places=[(left + 15, _KEY / 2, text)], dy=MIDDLE))
    return Plot(_KEY, marks, top=HEAD - _KEY_UP)


def _finding(heat: HeatMap) -> str:
    """Where half of the I/Os lie, and the moment with the highest p99 beside the usual one."""
    if heat.middle_ns is None:
        return "No I/O completed in the measured window."
    low, high = (format_ns(value) for value in heat.middle_ns)
    middle = f"between {low} and {high}" if low != high else low
    text = f"Half of the I/Os took {middle}."
    tails = _tails(heat)
    if not tails:
        return f"{text} No moment has enough of them for a p99."
    worst, at_s = max(tails)
    usual = sorted(value for value, _ in tails)[len(tails) // 2]
    return (
        f"{text} The slowest moment, from second {at_s:.3g}, had a p99 of {format_ns(worst)}; "
        f"the middle one {format_ns(usual)}."
    )


def _tails(heat: HeatMap) -> list[tuple[float, float]]:
    """(p99, begin) of each moment within the measured window."""
    return [
        (value, start)
        for value, start, end in zip(heat.p99_ns, heat.edges_s, heat.edges_s[1:], strict=False)
        if value is not None and heat.begin_s <= (start + end) / 2 <= heat.end_s
    ]


def _table(title: str, heat: HeatMap) -> Table:
    """Equal spans of the run: I/Os, highest percentiles, and the band that most of them took."""
    moments = len(heat.counts)
    size = max(1, math.ceil(moments / TABLE_ROWS))
    highest = " (highest)" if size > 1 else ""
    heads = columns((), ("From", "I/Os", f"p50{highest}", f"p99{highest}", "Most took", "Share"))
    rows = []
    for start in range(0, moments, size):
        bands = [sum(column) for column in zip(*heat.counts[start : start + size], strict=True)]
        total, most = sum(bands), max(bands)
        band = bands.index(most)
        low, high = (format_ns(edge) for edge in heat.edges_ns[band : band + 2])
        rows.append(
            row(
                format_duration_s(heat.edges_s[start]),
                f"{total:,}",
                _highest(heat.p50_ns[start : start + size]),
                _highest(heat.p99_ns[start : start + size]),
                f"{low} to {high}" if total else NOTHING,
                f"{100 * most / total:.0f} %" if total else NOTHING,
            )
        )
    return Table(title, heads, tuple(rows))


def _highest(values: Sequence[float | None]) -> str:
    """Percentiles are never averaged."""
    known = [value for value in values if value is not None]
    return format_ns(max(known)) if known else NOTHING
