"""What is needed, as it is written."""

from __future__ import annotations

import re

import pytest

import iolab.registry  # noqa: F401 - declares the metrics of all kinds
from iolab.published.choose import (
    MaximumMetric,
    MinimumRate,
    Requirements,
    maximum_metric_name,
    parse_requirement,
)


@pytest.mark.parametrize(
    ("text", "need"),
    [
        ("w >= 1M", MinimumRate("w", "1/s", 1e6)),
        ("w>=250k", MinimumRate("w", "1/s", 250e3)),
        ("w >= 1.5e6 IOPS", MinimumRate("w", "1/s", 1.5e6)),
        ("w >= 20 ops/s", MinimumRate("w", "1/s", 20.0)),
        ("w >= 50GB/s", MinimumRate("w", "bytes/s", 50e9)),
        ("w >= 50 GiB/s", MinimumRate("w", "bytes/s", 50 * 2.0**30)),
        ("w >= 900MB/s", MinimumRate("w", "bytes/s", 900e6)),
        ("w p99 <= 2ms", MaximumMetric("w", "lat_ns_p99", 2e6)),
        ("w read p99.9 <= 500us", MaximumMetric("w", "read_lat_ns_p99_9", 500e3)),
        ("w mean <= 1s", MaximumMetric("w", "lat_ns_mean", 1e9)),
        ("w save-time <= 40s", MaximumMetric("w", "save_ns", 40e9)),
        ("w write-amplification <= 3", MaximumMetric("w", "write_amplification", 3.0)),
        ("w node-power <= 160", MaximumMetric("w", "node_power_w", 160.0)),
        ("w drive-power <= 9.5 W", MaximumMetric("w", "drive_power_w", 9.5)),
        ("w node-j-per-gb <= 40 J/GB", MaximumMetric("w", "node_j_per_gb", 40.0)),
        ("w node-ops-per-j >= 2k", MinimumRate("w", "ops/J", 2e3, "node_ops_per_j")),
        (
            "w drive-net-ops-per-j >= 50 ops/J",
            MinimumRate("w", "ops/J", 50.0, "drive_net_ops_per_j"),
        ),
        ("w prefix-load p99 <= 500ms", MaximumMetric("w", "prefix_load_lat_ns_p99", 500e6)),
        ("w requests >= 50", MinimumRate("w", "requests/s", 50.0, "requests_per_s")),
        ("w requests >= 2k requests/s", MinimumRate("w", "requests/s", 2e3, "requests_per_s")),
        ("w utilisation >= 90%", MinimumRate("w", "share", 0.9, "accelerator_utilisation")),
        (
            "w loaded-tokens >= 5000 tokens/s",
            MinimumRate("w", "tokens/s", 5e3, "loaded_tokens_per_s"),
        ),
        ("w restore-rate >= 2GB/s", MinimumRate("w", "bytes/s", 2e9, "restore_bytes_per_s")),
    ],
)
def test_needs_are_read(text: str, need: MinimumRate | MaximumMetric) -> None:
    assert parse_requirement(text) == need


@pytest.mark.parametrize(
    "text", ["", "w", "w >= ", "w >= x", "w >= 0", "w <= 5", "w p98 <= 2ms", "w >= 5 GB", "w > 5"]
)
def test_what_is_no_need_is_told_with_its_words(text: str) -> None:
    with pytest.raises(ValueError, match="is no need; write"):
        parse_requirement(text)


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("w hats >= 5", ("hats", "requests")),
        ("w requests >= 5 GB/s", ("b/s", "requests/s")),
        ("w >= 50 requests/s", ("requests/s", "metric")),
        ("w save-time <= 5 parsecs", ("save-time",)),
        ("w write-amplification <= 3 ms", ("write-amplification",)),
        ("w node-power <= 160 x", ("node-power",)),
        ("w node-ops-per-j >= 5 ops/s", ("ops/J",)),
        ("w utilisation >= 90", ("per cent", "90 %")),
    ],
)
def test_a_metric_that_does_not_fit_is_told(text: str, facts: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=re.escape(text)) as refused:
        parse_requirement(text)
    assert all(fact in str(refused.value) for fact in facts)


def test_a_latency_is_named_as_it_is_written() -> None:
    need = parse_requirement("w read p99.99 <= 2ms")
    assert isinstance(need, MaximumMetric)
    assert maximum_metric_name(need) == "read p99.99"
    assert Requirements(maximum_metrics=(need,)).latency_limits_of_workload("w") == (need,)
    assert Requirements(maximum_metrics=(need,)).latency_limits_of_workload("v") == ()
