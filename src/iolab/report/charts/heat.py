"""Latency of a run over time as a heat map: the stronger, the more of a moment's I/Os took so long.

Cells of one shade are the segments of one thick line: as rectangles they would cost five times the
bytes. Shades are shares of the run's own colour, so that they rise in light, dark and print alike
and can be told apart without seeing hues.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from iolab.report.charts.chart import (
    BOTTOM,
    LEFT,
    PLOT_WIDTH,
    WIDTH,
    Figure,
    Scale,
    Spec,
    Stroke,
    broken_line,
    end_labels,
    last_known,
    log_scale,
    seconds_axis,
    shades,
    top_level,
    unit_mark,
)
from iolab.report.numbers import NOTHING
from iolab.report.palette import INK, MUTED, PAPER, Token
from iolab.report.series import HeatMap
from iolab.report.table import Cell, Table, columns
from iolab.units import format_duration_s, format_ns

HEIGHT: Final = 160
HEAD: Final = 50
TABLE_ROWS: Final = 24
"""The table under the chart shows this many equal spans at most."""

STEPS: Final = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3)
"""The least share of a moment's I/Os of each shade; the first is for any I/O at all."""

_OPACITY: Final = (0.13, 0.26, 0.42, 0.6, 0.8, 1.0)
_KEYS: Final = ("any", "0.3", "1", "3", "10", "30 % of the I/Os, or more")
_KEY_WIDTH: Final = 42
_KEY_Y: Final = -34
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
    lines: list[Spec] = []
    for _, values, dash in named:
        lines += broken_line(at_s, values, scale, x, Stroke(PAPER.stand_in, 3.6, (), 0.75))
        lines += broken_line(at_s, values, scale, x, Stroke(INK.stand_in, 1.5, dash))
    ends = [
        (name, scale.of(last), INK.stand_in)
        for name, values, _ in named
        if (last := last_known(values)) is not None
    ]
    return Figure(
        subject=subject,
        title=title,
        finding=_finding(heat),
        note=(
            f"Each column is {format_duration_s(heat.edges_s[1] - heat.edges_s[0])}; the stronger "
            "a cell, the more of that column’s I/Os took so long (key above, from that share on). "
            "Lines: p50, and p99 dashed. Beyond a dotted upright: not part of the result."
        ),
        spec={
            **top_level(PLOT_WIDTH, HEIGHT, top=HEAD),
            "layer": [
                *shades(heat.begin_s, heat.end_s, heat.edges_s[-1], x),
                *_cells(heat, scale, x, token),
                *_edges(heat, x),
                *lines,
                *end_labels(ends, scale, HEIGHT, PLOT_WIDTH + 8),
                unit_mark(scale.unit),
                *_key(token),
            ],
        },
        width=WIDTH,
        height=HEAD + HEIGHT + BOTTOM,
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


def _cells(heat: HeatMap, scale: Scale, x: Spec, token: Token) -> Iterator[Spec]:
    """One layer a shade: a line as thick as a band, broken between its segments."""
    edges = [scale.of(edge) for edge in heat.edges_ns]
    band_height = HEIGHT / (len(edges) - 1)
    y = {"field": "y", "type": "quantitative", "scale": scale.spec(), "axis": scale.axis()}
    for shade, found in segments(heat).items():
        rows: list[dict[str, float | None]] = []
        for band, start, after in found:
            middle = float(f"{math.sqrt(edges[band] * edges[band + 1]):.5g}")
            for moment in (start, after):
                rows.append({"n": len(rows), "x": round(heat.edges_s[moment], 3), "y": middle})
            rows.append({"n": len(rows), "x": round(heat.edges_s[after], 3), "y": None})
        if not rows:
            continue
        yield {
            "data": {"values": rows},
            "mark": {
                "type": "line",
                "stroke": token.stand_in,
                "strokeWidth": round(band_height + _OVERLAP, 2),
                "strokeCap": "butt",
                "strokeJoin": "bevel",
                "opacity": _OPACITY[shade],
                "invalid": "break-paths-show-path-domains",
            },
            "encoding": {"x": x, "y": y, "order": {"field": "n", "type": "quantitative"}},
        }


def _edges(heat: HeatMap, x: Spec) -> list[Spec]:
    """Uprights where the measured window begins and ends: cells hide the shade beside it."""
    edges = [at for at in (heat.begin_s, heat.end_s) if 0 < at < heat.edges_s[-1] - _NEAR_S]
    if not edges:
        return []
    mark = {"type": "rule", "stroke": INK.stand_in, "strokeDash": [1, 3]}
    return [
        {"data": {"values": [{"x": at} for at in edges]}, "mark": mark, "encoding": {"x": x}},
    ]


def _key(token: Token) -> Iterator[Spec]:
    """The shades and from which share on they stand, over the plot."""
    y = {"value": _KEY_Y}
    for index, (text, opacity) in enumerate(zip(_KEYS, _OPACITY, strict=True)):
        left = -LEFT + 4 + index * _KEY_WIDTH
        yield {
            "data": {"values": [{}]},
            "mark": {
                "type": "rect",
                "fill": token.stand_in,
                "opacity": opacity,
                "width": 11,
                "height": 11,
            },
            "encoding": {"x": {"value": left + 6}, "y": y},
        }
        yield {
            "data": {"values": [{"text": text}]},
            "mark": {
                "type": "text",
                "align": "left",
                "baseline": "middle",
                "fill": MUTED.stand_in,
            },
            "encoding": {
                "x": {"value": left + 15},
                "y": y,
                "text": {"field": "text", "type": "nominal"},
            },
        }


def _finding(heat: HeatMap) -> str:
    """Where half of the I/Os lie, and the moment with the highest p99 beside the usual one."""
    if heat.middle_ns is None:
        return "No I/O completed in the measured window."
    low, high = (format_ns(value) for value in heat.middle_ns)
    middle = f"between {low} and {high}" if low != high else low
    told = f"Half of the I/Os took {middle}."
    tails = _tails(heat)
    if not tails:
        return f"{told} No moment has enough of them for a p99."
    worst, at_s = max(tails)
    usual = sorted(value for value, _ in tails)[len(tails) // 2]
    return (
        f"{told} The slowest moment, from second {at_s:.3g}, had a p99 of {format_ns(worst)}; "
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
            (
                Cell(format_duration_s(heat.edges_s[start])),
                Cell(f"{total:,}"),
                Cell(_highest(heat.p50_ns[start : start + size])),
                Cell(_highest(heat.p99_ns[start : start + size])),
                Cell(f"{low} to {high}" if total else NOTHING),
                Cell(f"{100 * most / total:.0f} %" if total else NOTHING),
            )
        )
    return Table(title, heads, tuple(rows))


def _highest(values: Sequence[float | None]) -> str:
    """Percentiles are never averaged."""
    known = [value for value in values if value is not None]
    return format_ns(max(known)) if known else NOTHING
