"""One chart of each kind, small enough that every mark can be told by its values."""

from __future__ import annotations

from functools import cache
from typing import Final

from msgspec.structs import replace

from iolab.analysis.points import PointSummary
from iolab.core.metric import Metric, VerdictLevel
from iolab.guests.latency_breakdown import latency_breakdown_chart
from iolab.guests.node_chart import node_timeline_chart
from iolab.report.charts.chart import Chart
from iolab.report.charts.distribution import StyledLatencyCurve, build_latency_distribution_chart
from iolab.report.charts.lines import (
    MEAN,
    TAIL,
    ChartLine,
    ChartQuantity,
    latency_chart,
    quantity_chart,
    rate_and_latency_chart,
    rate_quantity,
)
from iolab.report.charts.palette import SERIES
from iolab.report.charts.rows import Dot, DotRow, dot_chart
from iolab.report.charts.run import heat_map_chart, timeline_chart
from iolab.report.charts.scaling import host_scaling_chart
from iolab.report.charts.series import HeatMap, LatencyCurve, Panel, PanelLine, Timeline
from iolab.report.charts.tradeoff import latency_tradeoff_chart
from iolab.report.table import Table
from tests.report.charts.fleets import accounts, node
from tests.report.charts.outcomes import WORKLOAD, points, rate_chart, result
from tests.report.charts.values import value_figures
from tests.report.growing import RATES, drawn

CURVE: Final = LatencyCurve(
    "read", 100_000, (1.0, 2.0, 10.0, 100.0, 1000.0), (5e4, 8e4, 1e5, 3e5, 2e6)
)


def lines() -> list[ChartLine]:
    """Two configurations; one has every verdict, and a point without a value, one an interval."""
    first = (
        result(1, 20_000.0),
        result(4, 70_000.0, VerdictLevel.INDICATIVE),
        result(8, 95_000.0, VerdictLevel.INVALID),
        result(16, None, VerdictLevel.INVALID),
    )
    again = result(8, 154_000.0, VerdictLevel.INDICATIVE, repeat=2)
    second = (result(1, 25_000.0), result(8, 150_000.0), again, result(8, 151_000.0, repeat=3))
    return [
        ChartLine("Mainstream", SERIES[0], (), points(first)),
        ChartLine("Performance", SERIES[1], (), points(second)),
    ]


def timeline() -> Timeline:
    """Six seconds of load and two panels of telemetry, with a gap."""
    return Timeline(
        at_s=(0.5, 1.5, 2.5, 3.5, 4.5, 5.5),
        cell_s=1.0,
        window_begin_s=2.0,
        window_end_s=5.0,
        panels=(
            Panel("Load", "1/s", (PanelLine("read", (1e4, 2e4, 3e4, 3e4, 3.1e4, 3e4)),)),
            Panel(
                "Latency",
                "ns",
                (
                    PanelLine("mean", (3e5, 2e5, None, 1e5, 1e5, 1e5)),
                    PanelLine("p99", (3e6, 2e6, None, 1e6, 1e6, 1e6)),
                ),
                is_logarithmic=True,
            ),
            Panel(
                "Processors busy",
                "share",
                (PanelLine("all cores", (0.1, 0.5, 0.6, 0.9, 1.0, 0.4)),),
            ),
        ),
    )


def heat() -> HeatMap:
    """Four seconds, the first of them warm-up and the third without any I/O, in three bands."""
    return HeatMap(
        moment_edges_s=(0.0, 1.0, 2.0, 3.0, 4.0),
        latency_edges_ns=(1e5, 2e5, 4e5, 8e5),
        counts=((900, 50, 50), (9900, 100, 0), (0, 0, 0), (97_000, 2990, 10)),
        p50_ns=(1.4e5, 1.3e5, None, 1.2e5),
        p99_ns=(None, 2e5, None, 3e5),
        window_begin_s=1.0,
        window_end_s=4.0,
        interquartile_ns=(1.1e5, 1.3e5),
    )


def ratios(*values: Metric) -> Chart:
    """How many times as much as was published, a row each with a verdict in turn."""
    rows = [
        DotRow(f"figure-{place}", (Dot("ours", SERIES[0], value, list(VerdictLevel)[place % 3]),))
        for place, value in enumerate(values)
    ]
    made = dot_chart("sample", "Times sample", rows, finding="F.", table=Table("", (), ()))
    assert made is not None
    return made


@cache
def figures() -> dict[str, Chart]:
    """Each figure by the name of its kind."""
    return {
        "throughput": rate_chart(WORKLOAD, "iodepth", lines()),
        "latency": latency_chart(WORKLOAD.title, "iodepth", lines()[:1]),
        "distribution": build_latency_distribution_chart(
            "Random read", "Latency by percentile", [StyledLatencyCurve(CURVE, "read", SERIES[0])]
        ),
        "load": rate_and_latency_chart("Random read", "iodepth", lines(), rate_quantity("iops")),
        "tradeoff": latency_tradeoff_chart(
            "Random read", "iodepth", lines(), rate_quantity("iops"), (MEAN, TAIL)
        ),
        "timeline": timeline_chart("A run", timeline(), SERIES[2]),
        "beside": ratios(Metric(0.5, "", 0.4, 0.6, 3), Metric(2.0, "", n=1)),
        "heat": heat_map_chart("A run", heat(), SERIES[0]),
        "inside": node_timeline_chart("node-1", "node-1 from inside", node()),
        "scaling": host_scaling_chart("Random read", drawn(RATES)),
        **fleet_figures(),
        **value_figures(),
    }


def fleet_figures() -> dict[str, Chart]:
    """IOPS over guests on two nodes, and where their latency arises."""
    guests = [
        replace(line, points=tuple(_per_node(point) for point in line.points), node_count=2)
        for line in lines()
    ]
    account = latency_breakdown_chart("Random read", accounts(), "Guests emulated. ")
    assert account is not None
    iops = ChartQuantity("iops", "IOPS")
    return {
        "guests": quantity_chart("Random read", "vms_per_node", guests, iops),
        "account": account,
    }


def _per_node(point: PointSummary) -> PointSummary:
    """The same point with as many guests a node as its depth was."""
    axis = tuple(("vms_per_node", value) for _, value in point.key.axis_values)
    return replace(point, key=replace(point.key, axis_values=axis))
