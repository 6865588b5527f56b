"""Service times stand in the table of runs where any run has them, and nowhere else."""

from __future__ import annotations

from msgspec.structs import replace

from iolab.core.metric import Metric
from iolab.report.runs import io_metric_keys_and_headings
from tests.cli.command_line import RESULTS


def headings(*, open_loop: bool) -> list[str]:
    results = list(RESULTS)
    if open_loop:
        told = {"service_lat_ns_mean": Metric(1000.0, "ns")}
        results[0] = replace(results[0], metrics={**results[0].metrics, **told})
    return [heading for _, heading in io_metric_keys_and_headings([one.metrics for one in results])]


def test_closed_loops_have_no_such_columns() -> None:
    assert not [one for one in headings(open_loop=False) if one.startswith("Service")]


def test_one_open_loop_is_enough() -> None:
    assert [one for one in headings(open_loop=True) if one.startswith("Service")] == [
        "Service mean",
        "Service p50",
        "Service p99",
    ]
