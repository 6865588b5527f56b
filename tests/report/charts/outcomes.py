"""Results of one host by depth, as charts over an axis take them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from iolab.analysis.points import PointSummary, summarise_points
from iolab.core.metric import HostResult, Metric, RunResult, Verdict, VerdictLevel
from iolab.core.run import RunStatus
from iolab.core.workload import BY_IOPS, Workload
from iolab.loads.fileio.workload import AccessPattern
from iolab.report.charts.chart import Chart
from iolab.report.charts.lines import ChartLine, quantity_chart, rate_quantity
from tests.report.studies import one_configuration
from tests.report.synthetic import job, study_of, workload

WORKLOAD: Final = workload(
    "rand-read-4k", "Random read", job(AccessPattern.RANDREAD, 4096), (1, 8), BY_IOPS
)


def result(
    depth: int, iops: float | None, level: VerdictLevel = VerdictLevel.VALID, repeat: int = 1
) -> RunResult:
    """A run of one host at a depth."""
    lat = None if iops is None else depth / iops * 1e9
    metrics = {
        "iops": Metric(iops, "1/s"),
        "bw_bytes_per_s": Metric(None if iops is None else iops * 4096, "bytes/s"),
        "lat_ns_mean": Metric(lat, "ns"),
        "lat_ns_p99": Metric(None if lat is None else 3 * lat, "ns"),
    }
    return RunResult(
        configuration="default",
        workload=WORKLOAD.id,
        axis_values=(("iodepth", depth),),
        repeat=repeat,
        digest=f"{depth:016x}",
        status=RunStatus.DONE,
        failure=None,
        window_s=30.0,
        metrics=metrics,
        hosts=(HostResult("a", metrics),),
        verdict=Verdict(level, ()),
    )


def points(results: Sequence[RunResult]) -> tuple[PointSummary, ...]:
    """The results of the workload, those of one depth together."""
    return summarise_points(results, study_of("s", "S", "", one_configuration("a"), (WORKLOAD,)))


def rate_chart(workload: Workload, axis: str, lines: Sequence[ChartLine]) -> Chart:
    """What a workload is run for against an axis."""
    rate = rate_quantity(workload.rate_metric)
    return quantity_chart(workload.title, axis, lines, rate)
