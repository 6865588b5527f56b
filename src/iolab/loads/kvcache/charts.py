"""Charts of KV-cache load: how long prefixes take, and how fast they come, beside recomputing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from iolab.analysis.points import PointSummary
from iolab.core.workload import Workload
from iolab.loads.kvcache.answer import read_beats_recompute_sentence
from iolab.loads.kvcache.metric_specs import (
    BREAK_EVEN_RATE,
    PREFIX_RATE,
    RECOMPUTE,
    SLOW_PREFIX_RATE,
)
from iolab.loads.kvcache.workload import KvCacheOperation
from iolab.report.charts.chart import Chart, SeriesStyles
from iolab.report.charts.choose import chart_lines_over_axis, horizontal_axis_name
from iolab.report.charts.lines import ChartQuantity, line_chart

LATENCIES: Final = (
    ChartQuantity(KvCacheOperation.PREFIX_LOAD.latency_key("mean"), "mean prefix latency", "mean"),
    *(
        ChartQuantity(KvCacheOperation.PREFIX_LOAD.latency_key(name), name, name)
        for name in ("p99", "p95")
    ),
    ChartQuantity(
        RECOMPUTE.key, "the time to recompute the mean prefix", "recompute", is_reference=True
    ),
)
RATES: Final = (
    ChartQuantity(PREFIX_RATE.key, "rate of the median prefix", "median"),
    ChartQuantity(SLOW_PREFIX_RATE.key, "of the slowest twentieth", "slowest 5 %"),
    ChartQuantity(
        BREAK_EVEN_RATE.key, "the rate that recomputing comes to", "break-even", is_reference=True
    ),
)


def prefix_latency_and_rate_charts(
    workload: Workload, points: Sequence[PointSummary], styles: SeriesStyles
) -> tuple[Chart, ...]:
    """Latency and rate of prefixes over what is varied, with break-even; none of one point."""
    axis = horizontal_axis_name([point.key.axis_values for point in points])
    if axis is None:
        return ()
    lines = chart_lines_over_axis(points, axis, styles)
    latencies, rates = (
        line_chart(workload.title, axis, lines, (_quantities_to_draw(points, panel),))
        for panel in (LATENCIES, RATES)
    )
    if len(lines) == 1:
        finding = f"{latencies.finding} {read_beats_recompute_sentence(points, axis)}".strip()
        latencies = replace(latencies, finding=finding)
    return latencies, rates


def _quantities_to_draw(
    points: Sequence[PointSummary], panel: Sequence[ChartQuantity]
) -> tuple[ChartQuantity, ...]:
    """Those that any point has: a break-even only beside instances of known speed, and one tail."""
    known = [
        quantity for quantity in panel if any(point.metric_value(quantity.key) for point in points)
    ]
    own = [quantity for quantity in known if not quantity.is_reference]
    return (*(own[:2] or panel[:1]), *(quantity for quantity in known if quantity.is_reference))
