"""Published sets through the functions that reports of sessions use: their figures come back."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.analysis.quotients import (
    BestValue,
    fleets_with_single_client,
    improvement_factor,
    mean_rate_per_host,
    rate_quotients,
)
from iolab.published.audit.document import PublishedSet, parse_published_set
from iolab.published.recomputed import (
    CLIENTS_MAX,
    PrintedClaim,
    printed_best_values,
    published_configurations,
    recomputed_claims,
)

SETS = Path(__file__).parents[3] / "studies" / "published"
GIB = 1024.0**3


def text_of(name: str) -> str:
    return (SETS / f"{name}.toml").read_text(encoding="utf-8")


def published(name: str) -> PublishedSet:
    return parse_published_set(text_of(name))


def computed(name: str) -> list[PrintedClaim]:
    return [one for one in recomputed_claims(published(name)) if one.computed_metric is not None]


def best(name: str, configuration: str, workload: str) -> BestValue:
    """The one maximum of a workload in a configuration."""
    (found,) = (
        one
        for one in printed_best_values(published(name))
        if (one.configuration, one.workload) == (configuration, workload)
    )
    return found


@pytest.mark.parametrize(
    ("name", "figures"),
    [("cassandra", 1), ("cluster-kpi", 0), ("rocksdb", 0), ("ssd-cluster", 12), ("vm-fleet", 1)],
)
def test_what_is_computed_is_what_was_printed_to_its_last_digit(name: str, figures: int) -> None:
    found = computed(name)
    assert len(found) == figures
    for one in found:
        assert one.computed_metric is not None
        assert one.computed_metric.value is not None
        assert one.stated_range.low <= one.computed_metric.value <= one.stated_range.high
        assert one.can_both_be_true


def test_figures_per_terabyte_of_the_cluster_come_back() -> None:
    found = [one for one in computed("ssd-cluster") if "for each" in one.quantity]
    assert [(one.subject, one.quantity, one.printed) for one in found[:3]] == [
        ("high-capacity", "TB for each node", "245.76"),
        ("high-capacity", "read GB/s for each TB raw", "0.1"),
        ("high-capacity", "read IOPS for each TB raw", "3526"),
    ]
    rates = [
        one.computed_metric.value or 0
        for one in found
        if one.computed_metric and "IOPS" in one.quantity
    ]
    assert [round(one) for one in rates] == [3526, 11068, 14323]
    assert rates[0] == pytest.approx(5.2e6 / (6 * 8 * 30.72))


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("read_iops_per_tb = 14323", "read_iops_per_tb = 15323"),
        ("read_gb_s_per_tb = 0.5", "read_gb_s_per_tb = 0.4"),
        ("tb_per_node = 245.76", "tb_per_node = 246.76"),
        ("raw_tb = 1475", "raw_tb = 1477"),
        ("rand-read-4k = 6.6e6", "rand-read-4k = 6.8e6"),
    ],
)
def test_one_figure_made_wrong_does_not_come_back(right: str, wrong: str) -> None:
    text = text_of("ssd-cluster")
    assert text.count(right) == 1
    found = recomputed_claims(parse_published_set(text.replace(right, wrong)))
    assert sum(1 for one in found if not one.can_both_be_true) == 1


def test_a_gain_whose_other_figure_was_not_printed_is_not_computed() -> None:
    found = recomputed_claims(published("cassandra"))
    assert [one.quantity for one in found if one.computed_metric is not None] == ["gain in ops"]
    assert sum(1 for one in found if one.computed_metric is None) == 7
    (gain,) = computed("cassandra")
    assert gain.computed_metric is not None
    assert gain.computed_metric.value == pytest.approx(154_815 / 101_593)
    assert all(one.computed_metric is None for one in recomputed_claims(published("rocksdb")))
    assert len(recomputed_claims(published("rocksdb"))) == 12


def test_a_percentage_is_computed_where_both_rates_are_told() -> None:
    text = """
[[result]]
workload = "w"
ops_s = { measured = 1250, competitor = 1000 }
max_gain_ops_pct = 25
"""
    (gain,) = recomputed_claims(parse_published_set(text))
    assert gain.computed_metric is not None
    assert gain.computed_metric.value == pytest.approx(25)


def test_maxima_stand_at_the_depth_that_was_printed() -> None:
    peak = best("ssd-cluster", "performance", "rand-read-4k")
    assert peak.value.value == pytest.approx(6.6e6)
    assert (peak.axis_values, peak.host_count, peak.verdict_level) == ((("iodepth", 16),), 12, None)
    assert best("vm-fleet", "measured", "write-100").axis_values == (("vms", 96),)
    assert best("rocksdb", "measured", "readrandom 4k").value.value == 840_097
    assert best("cassandra", "competitor", "A").axis_values == (("threads", 128),)


def test_factors_and_shares_are_those_of_the_printed_maxima() -> None:
    base = best("ssd-cluster", "mainstream", "rand-write-4k")
    times = improvement_factor(
        best("ssd-cluster", "performance", "rand-write-4k").value, base.value
    )
    assert times is not None
    assert times.value == pytest.approx(2.4 / 1.1)
    share = mean_rate_per_host(best("ssd-cluster", "performance", "seq-read-1m"))
    assert share is not None
    assert share.value == pytest.approx(227e9 / 12)
    fleet = published("vm-fleet")
    found = rate_quotients(published_configurations(fleet), printed_best_values(fleet))
    node = [one.value.value for one in found if one.divisor.unit_text == "node"]
    assert node == pytest.approx([1.9e6 / 4, 531e3 / 4, 1.5e6 / 4, 1.1e6 / 4])


def test_the_mean_of_each_host_of_the_sample_is_its_total_over_sixteen() -> None:
    share = mean_rate_per_host(best("cluster-kpi", "sample-output", "read-bandwidth"))
    assert share is not None
    assert share.value == pytest.approx(434.52 / 16 * GIB)
    assert mean_rate_per_host(best("cluster-kpi", "sample-output", "read-latency")) is None


def test_clusters_stand_beside_the_single_client_of_the_same_system() -> None:
    kpi = published("cluster-kpi")
    found = fleets_with_single_client(published_configurations(kpi), printed_best_values(kpi))
    told = {(one.fleet.configuration, one.fleet.workload): one.speedup.value for one in found}
    assert {name for name, _ in told} == {"aws-cluster", "supermicro-cluster"}
    assert len(told) == 8
    assert told["aws-cluster", "read-bandwidth"] == pytest.approx(36.2 / 8.9)
    assert told["supermicro-cluster", "write-iops"] == pytest.approx(1_317_000 / 378_667)
    assert all(
        one.scaling_efficiency is not None and (one.scaling_efficiency.value or 0) < 1
        for one in found
    )


def test_a_number_of_clients_that_cannot_be_is_none() -> None:
    text = f"[[example]]\nid = 'x'\nhosts = {CLIENTS_MAX + 1}\nread_iops = 5"
    (owner,) = published_configurations(parse_published_set(text))
    assert owner.hosts == ()
