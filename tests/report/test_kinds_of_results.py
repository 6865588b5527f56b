"""Which kind of load a result is of, and what a workload's headline is."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.core.workload import BY_LATENCY, Indicator
from iolab.registry import report_kinds
from tests.report.charts.outcomes import WORKLOAD, result


@pytest.mark.parametrize(
    ("load", "kind"),
    [
        ("io", "FileReport"),
        ("metadata", "MetadataReport"),
        ("db_bench", "KeyValueReport"),
        ("ycsb", "KeyValueReport"),
    ],
)
def test_a_run_that_measured_nothing_is_of_its_jobs_kind(load: str, kind: str) -> None:
    failed = replace(result(1, 100.0), metrics={}, load=load)
    assert type(report_kinds().report_of_result(failed)).__name__ == kind


@pytest.mark.parametrize(
    ("indicator", "metric", "rate"),
    [
        (BY_LATENCY, "lat_ns_mean", "iops"),
        (Indicator("append_ops_per_s"), "append_ops_per_s", "append_ops_per_s"),
        (Indicator("append_lat_ns_p99"), "append_lat_ns_p99", "iops"),
    ],
)
def test_any_metric_may_be_the_headline(
    indicator: Indicator, metric: str | None, rate: str
) -> None:
    workload = replace(WORKLOAD, indicator=indicator)
    assert (workload.headline_metric, workload.rate_metric) == (metric, rate)
