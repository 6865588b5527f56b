"""Metrics of a kind's own are what was declared; those of operations are known by their keys."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.core.metric_spec import (
    BetterDirection,
    CombineRule,
    MetricSpec,
    column_metric_keys_and_labels,
    declare_metrics,
    is_metric_declared_by_load_kind,
    mean_latency_keys,
    metric_spec,
)

OWN = MetricSpec(
    "queue_lat_ns_p99_share", "queue share", "share", BetterDirection.LOWER, CombineRule.MEAN
)


def test_a_declared_metric_is_what_its_kind_says() -> None:
    with pytest.raises(KeyError):
        metric_spec(OWN.key)
    declare_metrics([OWN])
    declare_metrics([OWN])
    assert metric_spec(OWN.key) is OWN
    assert column_metric_keys_and_labels([["iops", OWN.key], [OWN.key]]) == [(OWN.key, OWN.label)]
    assert mean_latency_keys(["read_lat_ns_mean", OWN.key]) == ("read_lat_ns_mean",)
    with pytest.raises(ValueError, match=OWN.key):
        declare_metrics([replace(OWN, better=BetterDirection.HIGHER)])


@pytest.mark.parametrize(
    ("key", "label", "unit", "better", "combine"),
    [
        ("iops", "IOPS", "1/s", BetterDirection.HIGHER, CombineRule.RATE),
        (
            "read_lat_ns_p99_9",
            "read p99.9 latency",
            "ns",
            BetterDirection.LOWER,
            CombineRule.QUANTILE,
        ),
        (
            "file_create_ops_per_s",
            "file create ops",
            "ops/s",
            BetterDirection.HIGHER,
            CombineRule.RATE,
        ),
        (
            "file_stat_ops_per_s_whole",
            "file stat ops",
            "ops/s",
            BetterDirection.HIGHER,
            CombineRule.RATE,
        ),
        ("lat_ns_max", "max latency", "ns", BetterDirection.LOWER, CombineRule.EXTREME),
    ],
)
def test_metrics_of_operations_are_known_by_their_keys(
    key: str, label: str, unit: str, better: BetterDirection, combine: CombineRule
) -> None:
    spec = metric_spec(key)
    assert (spec.label, spec.unit) == (label, unit)
    assert (spec.better, spec.combine) == (better, combine)
    assert not is_metric_declared_by_load_kind(key)
