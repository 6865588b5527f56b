"""Each host's rate in one strip: the hosts in a row from the slowest to the fastest.

A fleet whose hosts are alike gives a level row; what hangs at its left end is what to look for. A
dot a host, or one line where dots would touch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from iolab.core.metric import Result
from iolab.report.charts.chart import End, Figure, Line, Mark, MarkTip, Plot, Points, Rules
from iolab.report.charts.palette import INK, MUTED, Token
from iolab.report.charts.scale import counted_axis, linear_scale
from iolab.report.numbers import short, show_value
from iolab.report.table import Table

HEIGHT: Final = 120

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
        End(slow, scale.of(least), INK),
        End(fast, scale.of(most), token),
        End("mean", scale.of(mean), MUTED),
    ]
    places = [(float(rank), scale.of(value)) for rank, value in enumerate(values, 1)]
    tip = MarkTip(texts=[name for name, _ in rates])
    level = scale.of(mean)
    marks: list[Mark] = [
        Rules(token=MUTED, pieces=[(None, level, None, level)], width=1, dash=(4, 3)),
        Points(token=token, places=places, size=40, tip=tip)
        if len(values) <= DOTS_MAX
        else Line(token=token, places=places, width=2, tip=tip),
    ]
    count = len(values)
    named = sorted({1, count, *(round(count * part) for part in (0.25, 0.5, 0.75))} - {0})
    x = replace(counted_axis(count + 1, "hosts, slowest first", named, low=0), line=False)
    return Figure(
        subject=subject,
        title="Each host's rate, from the slowest to the fastest",
        finding=(
            f"Slowest: {short(slow, NAME_CHARACTERS)} with {show_value(least, unit)}. "
            f"Fastest: {short(fast, NAME_CHARACTERS)} with {show_value(most, unit)}. "
            f"Mean of {len(rates)} hosts: {show_value(mean, unit)}."
        ),
        note="Rates over the window that all hosts share.",
        plots=(Plot(HEIGHT, marks, x, scale, ends),),
        table=table,
    )


def host_values(result: Result, key: str) -> Mapping[str, float]:
    """The hosts' values of a metric, without those that have none."""
    return {
        host.name: metric.value
        for host in result.hosts
        if (metric := host.metrics.get(key)) is not None and metric.value is not None
    }
