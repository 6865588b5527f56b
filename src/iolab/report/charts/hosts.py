"""Each host's rate in one strip: the hosts in a row from the slowest to the fastest.

A fleet whose hosts are alike gives a level row; what hangs at its left end is what to look for. A
dot a host, or one line where dots would touch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from iolab.core.metric import Result
from iolab.report.charts.chart import (
    BOTTOM,
    NUMBER_FORMAT,
    PLOT_WIDTH,
    WIDTH,
    Figure,
    Scale,
    Spec,
    end_labels,
    linear_scale,
    top_level,
    unit_mark,
)
from iolab.report.numbers import short, show_value
from iolab.report.palette import INK, MUTED, PAPER, Token
from iolab.report.table import Table

HEIGHT: Final = 120
HEAD: Final = 32

DOTS_MAX: Final = 90
"""More dots than this touch each other on a plot of this width."""

NAME_CHARACTERS: Final = 40


def strip_figure(
    subject: str, result: Result, key: str, token: Token, table: Table
) -> Figure | None:
    """The hosts' values of the metric `key`; None where fewer than two have one.

    `table` is what the chart's readers without eyes get.
    """
    rates = sorted(host_values(result, key).items(), key=lambda pair: pair[1])
    if len(rates) < 2:
        return None
    unit = next(host.metrics[key].unit for host in result.hosts if key in host.metrics)
    values = [value for _, value in rates]
    scale = linear_scale(unit, values, ticks=3)
    mean = sum(values) / len(values)
    (slow, least), (fast, most) = rates[0], rates[-1]
    ends = [
        (slow, scale.of(least), INK.stand_in),
        (fast, scale.of(most), token.stand_in),
        ("mean", scale.of(mean), MUTED.stand_in),
    ]
    return Figure(
        subject=subject,
        title="Each host's rate, from the slowest to the fastest",
        finding=(
            f"Slowest: {short(slow, NAME_CHARACTERS)} with {show_value(least, unit)}. "
            f"Fastest: {short(fast, NAME_CHARACTERS)} with {show_value(most, unit)}. "
            f"Mean of {len(rates)} hosts: {show_value(mean, unit)}."
        ),
        note="Rates over the window that all hosts share.",
        spec={
            **top_level(PLOT_WIDTH, HEIGHT, top=HEAD),
            "layer": [
                _mean(scale, mean, len(rates)),
                _marks(scale, values, token),
                *end_labels(ends, scale, HEIGHT, PLOT_WIDTH + 10),
                unit_mark(scale.unit),
            ],
        },
        width=WIDTH,
        height=HEAD + HEIGHT + BOTTOM,
        table=table,
    )


def host_values(result: Result, key: str) -> Mapping[str, float]:
    """The hosts' values of a metric, without those that have none."""
    return {
        host.name: metric.value
        for host in result.hosts
        if (metric := host.metrics.get(key)) is not None and metric.value is not None
    }


def _x(count: int) -> Spec:
    marks = sorted({1, count, *(round(count * part) for part in (0.25, 0.5, 0.75))} - {0})
    return {
        "field": "x",
        "type": "quantitative",
        "scale": {"domain": [0, count + 1], "nice": False, "zero": False},
        "axis": {
            "values": [float(mark) for mark in marks],
            "format": NUMBER_FORMAT,
            "grid": False,
            "ticks": False,
            "domain": False,
            "labelPadding": 6,
            "title": "hosts, slowest first",
        },
    }


def _y(scale: Scale) -> Spec:
    return {"field": "y", "type": "quantitative", "scale": scale.spec(), "axis": scale.axis()}


def _mean(scale: Scale, mean: float, count: int) -> Spec:
    level = float(f"{scale.of(mean):.5g}")
    return {
        "data": {"values": [{"x": 0, "y": level}, {"x": count + 1, "y": level}]},
        "mark": {"type": "line", "stroke": MUTED.stand_in, "strokeWidth": 1, "strokeDash": [4, 3]},
        "encoding": {"x": _x(count), "y": _y(scale)},
    }


def _marks(scale: Scale, values: list[float], token: Token) -> Spec:
    rows = [
        {"x": rank, "y": float(f"{scale.of(value):.5g}")} for rank, value in enumerate(values, 1)
    ]
    mark: Spec = (
        {
            "type": "point",
            "shape": "circle",
            "filled": True,
            "size": 40,
            "fill": token.stand_in,
            "stroke": PAPER.stand_in,
            "strokeWidth": 0.8,
            "opacity": 1,
        }
        if len(values) <= DOTS_MAX
        else {"type": "line", "stroke": token.stand_in, "strokeWidth": 2}
    )
    return {
        "data": {"values": rows},
        "mark": mark,
        "encoding": {"x": _x(len(values)), "y": _y(scale)},
    }
