"""Figures over size and cost, with numbers computed by hand."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.analysis.quotients import (
    BestValue,
    DivisorKind,
    capacity_quotients,
    configuration_divisors,
    configuration_ids_without_divisor,
    configurations_without_host_subsets,
    cost_currencies,
    fleets_with_single_client,
    improvement_factor,
    improvement_over,
    mean_rate_per_host,
    rate_quotients,
)
from iolab.core.configuration import Capacity, Configuration, ProcurementCost
from iolab.core.metric import Metric, VerdictLevel
from iolab.core.metric_spec import BetterDirection

EUR = ProcurementCost("EUR", 90_000.0, 20_000.0, 90_000.0)
WHOLE = Configuration("a", "A", ("c1", "c2"), "/t", 4, Capacity(400.0, 250.0), EUR)


def rate(value: float, low: float | None = None, high: float | None = None) -> Metric:
    return Metric(value, "1/s", low, high, 3 if low is not None else None)


def best(value: Metric, configuration: str = "a", hosts: int = 0) -> BestValue:
    return BestValue(configuration, "w", "iops", value, host_count=hosts)


def test_a_rate_is_divided_by_every_size_that_is_told_and_so_is_its_interval() -> None:
    found = rate_quotients([WHOLE], [best(rate(1e6, 9e5, 1.2e6))])
    assert [(one.divisor.unit_text, one.value) for one in found] == [
        ("TB raw", rate(2500.0, 2250.0, 3000.0)),
        ("TB usable", rate(4000.0, 3600.0, 4800.0)),
        ("node", rate(250_000.0, 225_000.0, 300_000.0)),
        ("1000 EUR", rate(5000.0, 4500.0, 6000.0)),
    ]


def test_a_latency_is_nobodys_share() -> None:
    slow = BestValue("a", "w", "lat_ns_mean", Metric(1e5, "ns"), host_count=2)
    assert rate_quotients([WHOLE], [slow]) == ()
    assert mean_rate_per_host(slow) is None


@pytest.mark.parametrize(
    "bare",
    [
        Configuration("a", "A", (), "/t"),
        Configuration(
            "a", "A", (), "/t", 0, Capacity(0.0, 0.0), ProcurementCost("EUR", 0.0, 0.0, 0.0)
        ),
    ],
)
def test_what_is_not_told_or_nothing_divides_nothing(bare: Configuration) -> None:
    assert configuration_divisors(bare) == ()
    assert rate_quotients([bare], [best(rate(1.0))]) == ()


def test_capacity_for_money_and_for_a_node_is_exact() -> None:
    found = capacity_quotients([WHOLE], (DivisorKind.COST, DivisorKind.NODE))
    assert [(one.dividend.metric, one.divisor.unit_text, one.value.value) for one in found] == [
        ("raw_tb", "node", 100.0),
        ("usable_tb", "node", 62.5),
        ("raw_tb", "1000 EUR", 2.0),
        ("usable_tb", "1000 EUR", 1.25),
    ]
    assert all(one.value.low == one.value.value == one.value.high for one in found)


def test_currencies_are_kinds_of_their_own() -> None:
    other = Configuration("b", "B", (), "/t", cost=ProcurementCost("USD", 1000.0, 0.0, 0.0))
    found = rate_quotients([WHOLE, other], [best(rate(10.0)), best(rate(10.0), "b")])
    money = {one.ranking_group for one in found if one.divisor.divisor_kind is DivisorKind.COST}
    assert money == {("w", "iops", "1000 EUR"), ("w", "iops", "1000 USD")}
    assert cost_currencies([WHOLE, other]) == ("EUR", "USD")


def test_a_factor_reaches_as_far_as_both_intervals_allow() -> None:
    assert improvement_factor(rate(300.0, 280.0, 320.0), rate(100.0, 80.0, 125.0)) == Metric(
        3.0, "", 2.24, 4.0, 3
    )
    # Ends that are too far apart to be shown decide nothing.
    assert improvement_factor(rate(300.0, 280.0, 320.0), rate(100.0, 60.0, 140.0)) == Metric(
        3.0, ""
    )
    assert improvement_factor(rate(300.0), rate(100.0, 80.0, 140.0)) == Metric(3.0, "")
    assert improvement_factor(
        Metric(50.0, "ns"), Metric(100.0, "ns"), BetterDirection.LOWER
    ) == Metric(2.0, "")
    assert improvement_factor(rate(0.0), rate(1.0)) is None
    assert improvement_factor(Metric(None, "1/s"), rate(1.0)) is None
    assert improvement_factor(rate(3.0, 2.0, 4.0), rate(1.0, 0.0, 2.0)) == Metric(3.0, "")


def test_a_fleet_stands_beside_the_client_that_differs_in_hosts_alone() -> None:
    one = Configuration("one", "One", ("c1",), "/t", 4)
    four = Configuration("four", "Four", ("c1", "c2", "c3", "c4"), "/t", 4)
    elsewhere = Configuration("else", "Else", ("c1",), "/u", 4)
    other = Configuration("other", "Other", ("d1",), "/t", 4)
    maxima = [
        best(rate(100.0), "one", 1),
        best(rate(300.0), "four", 4),
        best(rate(9.0), "else", 1),
        best(rate(9.0), "other", 1),
    ]
    owners = [one, four, elsewhere, other]
    (found,) = fleets_with_single_client(owners, maxima)
    assert configurations_without_host_subsets(owners) == (four, elsewhere, other)
    assert (found.single_client.configuration, found.fleet.configuration) == ("one", "four")
    assert found.speedup.value == 3.0
    assert found.scaling_efficiency is not None
    assert found.scaling_efficiency.value == 0.75


def test_a_fleet_of_unknown_size_has_a_factor_and_no_share() -> None:
    pair = [Configuration("one", "One", ("c",), ""), Configuration("many", "Many", (), "")]
    (found,) = fleets_with_single_client(
        pair, [best(rate(100.0), "one", 1), best(rate(400.0), "many")]
    )
    assert (found.speedup.value, found.scaling_efficiency) == (4.0, None)


def test_what_only_some_configurations_tell_is_named() -> None:
    bare = Configuration("b", "B", (), "/t", 4)
    assert configuration_ids_without_divisor([WHOLE, bare]) == (
        (DivisorKind.RAW, ("b",)),
        (DivisorKind.USABLE, ("b",)),
        (DivisorKind.COST, ("b",)),
    )
    assert configuration_ids_without_divisor([bare]) == ()


def test_nothing_is_claimed_of_what_is_invalid() -> None:
    good = BestValue("a", "w", "iops", rate(300.0), verdict_level=VerdictLevel.VALID)
    bad = replace(good, configuration="b", value=rate(100.0), verdict_level=VerdictLevel.INVALID)
    assert improvement_over(good, bad) is None
    assert improvement_over(bad, good) is None
    assert improvement_over(good, good) is None
    assert improvement_over(good, replace(bad, verdict_level=VerdictLevel.INDICATIVE)) == Metric(
        3.0, ""
    )
    owners = [Configuration("a", "A", ("c", "d"), "/t"), Configuration("b", "B", ("c",), "/t")]
    assert (
        fleets_with_single_client(owners, [replace(good, host_count=2), replace(bad, host_count=1)])
        == ()
    )


def test_a_fleet_stands_beside_one_host_of_its_own_points_first() -> None:
    four = Configuration("four", "Four", ("c1", "c2", "c3", "c4"), "/t")
    one = Configuration("one", "One", ("c1",), "/t")
    maxima = [best(rate(300.0), "four", 4), best(rate(90.0), "one", 1)]
    (found,) = fleets_with_single_client([four, one], maxima, [best(rate(100.0), "four", 1)])
    assert (found.single_client.configuration, found.speedup.value) == ("four", 3.0)
    assert (
        fleets_with_single_client(
            [four], [best(rate(300.0), "four", 1)], [best(rate(300.0), "four", 1)]
        )
        == ()
    )
