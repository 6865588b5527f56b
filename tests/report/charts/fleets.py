"""What the charts of a fleet of guests are drawn from, small enough to be read."""

from __future__ import annotations

from iolab.analysis.findings import LoadCurve
from iolab.core.metric import LatencyLayer, Outlier, VerdictLevel
from iolab.core.run import Point
from iolab.guests.latency_breakdown import LatencyBreakdown, latency_parts_and_clipped_layers
from iolab.report.charts.series import NodePanel, NodeTimeline, Panel, PanelLine
from iolab.stats.curve import CurvePoint, LoadEstimate
from iolab.study.schedule import SearchSpace
from tests.guests.guest_session import GuestSource
from tests.report.charts.outcomes import result


def timeline_of(panels: tuple[NodePanel, ...], *outliers: Outlier) -> NodeTimeline:
    """A node over four seconds, the first of which is warm-up."""
    return NodeTimeline(
        result=result(8, 1.0),
        node="node-1",
        guest_count=1,
        at_s=(0.5, 1.5, 2.5, 3.5),
        cell_s=1.0,
        window_begin_s=1.0,
        window_end_s=4.0,
        panels=panels,
        outliers=outliers,
    )


def node() -> NodeTimeline:
    """Two disks, one of them slow for a while; two ports, a gap in one of them."""
    return timeline_of(
        (
            NodePanel(
                Panel(
                    "Write latency of each disk",
                    "ns",
                    (
                        PanelLine("nvme0n1", (9e4, 9e4, 8.8e4, 9e4)),
                        PanelLine("nvme1n1", (9e4, 4e5, 4.2e5, 4.1e5)),
                    ),
                ),
                "disk",
                ("write_lat_ns",),
            ),
            NodePanel(
                Panel(
                    "Sent by each port",
                    "bytes/s",
                    (
                        PanelLine("eth0", (1e8, 1.86e8, None, 1.86e8)),
                        PanelLine("eth1", (1e8,) * 4),
                    ),
                ),
                "nic",
                ("tx_bytes_per_s",),
                (("eth0", 0.06), ("eth1", 0.032)),
            ),
        ),
        Outlier("disk", "nvme1n1", "write_lat_ns", 4.1e5, 9e4),
    )


def wide_node(disks: int = 24) -> NodeTimeline:
    """More disks than can be told apart by colour; the fifth stands out."""
    traces = tuple(PanelLine(f"nvme{i}n1", (5e4 + i,) * 4) for i in range(disks))
    panel = Panel("I/O of each disk", "1/s", traces)
    out = Outlier("disk", "nvme5n1", "read_iops", 5e4, 5e4)
    return timeline_of((NodePanel(panel, "disk", ("read_iops", "write_iops")),), out)


def accounts() -> list[LatencyBreakdown]:
    """Two runs; in the second a write whose devices took longer than the hypervisor."""
    seen = {
        ("4 VMs", "read"): (1e5, 8e4, 7e4, 6e4),
        ("96 VMs", "read"): (1e6, 9e5, 4e5, 9e4),
        ("96 VMs", "write"): (3e6, 2.5e6, 2e6, 2.2e6),
    }
    found = []
    for (run, direction), means in seen.items():
        layers = tuple(zip(LatencyLayer, means, strict=True))
        parts, capped = latency_parts_and_clipped_layers(layers)
        level = VerdictLevel.VALID if run == "4 VMs" else VerdictLevel.INDICATIVE
        found.append(LatencyBreakdown(run, direction, means[0], parts, layers, capped, level))
    return found


def curve_of(source: GuestSource, workload: str, depth: int) -> LoadCurve:
    """A curve over guests a node with a predicted point between measured ones."""
    points: dict[tuple[int, ...], Point] = {
        (int(dict(run.point.axis_values)["vms_per_node"]),): run.point
        for run in source.plan.runs
        if run.point.workload == workload and dict(run.point.axis_values)["iodepth"] == depth
    }
    (made,) = (one for one in source.study.workloads if one.id == workload)
    loads = tuple(sorted(load for (load,) in points))
    search = SearchSpace(made, "default", ("vms_per_node",), (loads,), points)
    return LoadCurve(
        search=search,
        metric="iops",
        points=(
            CurvePoint(1, 8e4, 7.9e4, 8.1e4, is_measured=True),
            CurvePoint(2, 1.5e5, 1.3e5, 1.7e5, is_measured=False),
            CurvePoint(3, 2.2e5, 2.1e5, 2.3e5, is_measured=True),
        ),
        saturation=None,
        knee=LoadEstimate(2, 2, 3),
        bounds_crossing_load=None,
        usl_fit=None,
    )
