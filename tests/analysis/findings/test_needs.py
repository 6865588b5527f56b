"""Which configuration suits which need: figures of the published study, and made ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from msgspec.structs import replace

from iolab.analysis.findings import BestPointFinding, BuyerNeed, Recommendation
from iolab.analysis.ranked_findings import recommendations, runner_up_and_leader_ids
from iolab.core.configuration import Capacity, Configuration, ProcurementCost
from iolab.core.metric import Metric, VerdictLevel
from iolab.core.study import Study
from tests.loads.keyvalue.studies import STUDY

RATES = {
    "high-capacity": {"rand-read-4k": 5.2e6, "rand-write-4k": 1.1e6, "seq-read-1m": 112e9},
    "mainstream": {"rand-read-4k": 5.1e6, "rand-write-4k": 1.1e6, "seq-read-1m": 104e9},
    "performance": {"rand-read-4k": 6.6e6, "rand-write-4k": 2.4e6, "seq-read-1m": 227e9},
}
"""Peaks as published; usable TB likewise."""
USABLE = {"high-capacity": 973.0, "mainstream": 304.0, "performance": 304.0}
PRICES = {"high-capacity": 900e3, "mainstream": 360e3, "performance": 620e3}
"""Made up: the study prints no amounts."""


def study(prices: Mapping[str, float] | None = None, currency: str = "EUR") -> Study:
    return replace(
        STUDY,
        configurations=tuple(
            Configuration(
                name,
                name.capitalize(),
                (),
                "/mnt/t",
                capacity=Capacity(None, size),
                cost=ProcurementCost(currency, 0.0, 0.0, prices[name]) if prices else None,
            )
            for name, size in USABLE.items()
        ),
    )


def best(owner: str, workload: str, value: float, width: float | None = 0.005) -> BestPointFinding:
    is_flow = workload.startswith("seq")
    low, high = (None, None) if width is None else (value * (1 - width), value * (1 + width))
    # Repeats of unlike configurations vary apart.
    turn = list(RATES).index(owner) if owner in RATES else 0
    spread = (-(width or 0.0), 0.0, width or 0.0)
    repeats = [value * (1 + spread[(turn + place) % 3]) for place in range(3)]
    return BestPointFinding(
        configuration=owner,
        workload=workload,
        metric="bw_bytes_per_s" if is_flow else "iops",
        axis_values=(),
        value=Metric(value, "bytes/s" if is_flow else "1/s", low, high, 3),
        verdict_level=VerdictLevel.VALID,
        indistinguishable_axis_values=(),
        point_count=1,
        run_keys=((f"{owner}-{workload}", 1),),
        values_by_repeat=tuple(
            ((0, number), own) for number, own in enumerate(repeats[: 1 if width is None else 3], 1)
        ),
    )


def needs(
    prices: Mapping[str, float] | None = None,
    rates: Mapping[str, Mapping[str, float]] = RATES,
    width: float | None = 0.005,
) -> dict[BuyerNeed, Recommendation]:
    found = [
        best(owner, name, value, width)
        for owner, values in rates.items()
        for name, value in values.items()
    ]
    return {one.need: one for one in recommendations(study(prices), found)}


def test_without_costs_capacity_and_performance_decide_alone() -> None:
    found = needs()
    assert set(found) == {BuyerNeed.CAPACITY, BuyerNeed.PERFORMANCE, BuyerNeed.BALANCE}
    capacity = found[BuyerNeed.CAPACITY]
    assert (capacity.configuration, capacity.terabytes) == ("high-capacity", 973.0)
    assert capacity.lead_factor == pytest.approx(973 / 304)
    assert (
        capacity.cost_divisor_text,
        capacity.is_certain,
        capacity.verdict_level,
        capacity.run_keys,
    ) == (
        "",
        True,
        None,
        (),
    )
    fast = found[BuyerNeed.PERFORMANCE]
    assert (fast.configuration, fast.runner_up) == ("performance", "high-capacity")
    iops = (6.6 / 5.2 * 2.4 / 1.1) ** 0.5  # the geometric mean of two, then of both kinds
    assert fast.lead_factor == pytest.approx((iops * 227 / 112) ** 0.5)
    assert (fast.is_certain, fast.compared_configuration_count, len(fast.workloads)) == (True, 3, 3)


def test_balance_is_the_best_least_share_of_all_sides() -> None:
    balance = needs()[BuyerNeed.BALANCE]
    # high-capacity has all of the capacity, 0.60 of the IOPS and 0.49 of the bandwidth;
    # both others have 0.31 of the capacity, and mainstream is the first of them in the study.
    assert (balance.configuration, balance.runner_up) == ("high-capacity", "mainstream")
    shares = {side.name: side.share_of_best for side in balance.need_dimensions}
    assert shares["capacity"] == 1.0
    assert shares["IOPS"] == pytest.approx((5.2 / 6.6 * 1.1 / 2.4) ** 0.5)
    assert shares["bandwidth"] == pytest.approx(112 / 227)
    assert balance.lead_factor == pytest.approx((112 / 227) / (304 / 973))
    assert balance.is_certain


def test_with_costs_everything_is_for_money_but_performance() -> None:
    found = needs(PRICES)
    assert {need: one.configuration for need, one in found.items()} == {
        BuyerNeed.CAPACITY: "high-capacity",
        BuyerNeed.PERFORMANCE: "performance",
        BuyerNeed.VALUE: "performance",
        BuyerNeed.BALANCE: "mainstream",
    }
    assert found[BuyerNeed.CAPACITY].terabytes == pytest.approx(973 / 900)
    assert {found[need].cost_divisor_text for need in BuyerNeed} == {"1000 EUR", ""}
    value = found[BuyerNeed.VALUE]
    second = ((5.1 * 1.1) ** 0.5 * 104) ** 0.5 / 360
    first = ((6.6 * 2.4) ** 0.5 * 227) ** 0.5 / 620
    assert value.lead_factor == pytest.approx(first / second)
    least = min(side.share_of_best for side in found[BuyerNeed.BALANCE].need_dimensions)
    assert least == pytest.approx((304 / 360) / (973 / 900))


def test_the_two_to_decide_between_are_the_best_and_the_next() -> None:
    found = [
        best(owner, name, value) for owner, own in RATES.items() for name, value in own.items()
    ]
    assert runner_up_and_leader_ids(found) == ("high-capacity", "performance")
    two = [figure for figure in found if figure.configuration != "mainstream"]
    assert runner_up_and_leader_ids(two) is None  # there is one pair alone
    without = [figure for figure in found if figure.run_keys[0][0] != "mainstream-seq-read-1m"]
    assert runner_up_and_leader_ids(without) is None  # one of the three cannot be ranked


def test_a_lead_that_turns_with_the_weighing_is_none() -> None:
    rates = {
        "high-capacity": {"rand-read-4k": 2.00e3, "rand-write-4k": 1.44e3, "seq-read-1m": 120e6},
        "mainstream": {"rand-read-4k": 2.58e3, "rand-write-4k": 1.49e3, "seq-read-1m": 96.2e6},
        "performance": {"rand-read-4k": 1e3, "rand-write-4k": 1e3, "seq-read-1m": 50e6},
    }
    fast = needs(rates=rates, width=1e-6)[BuyerNeed.PERFORMANCE]
    by_kind = ((2.00 / 2.58 * 1.44 / 1.49) ** 0.5 * 120 / 96.2) ** 0.5
    by_workload = (2.58 / 2.00 * 1.49 / 1.44 * 96.2 / 120) ** (1 / 3)
    assert (fast.configuration, fast.leader_if_workloads_weigh_equally) == (
        "high-capacity",
        "mainstream",
    )
    assert fast.lead_factor == pytest.approx(by_kind)
    assert fast.lead_factor_if_workloads_weigh_equally == pytest.approx(by_workload)
    assert not fast.is_certain
    assert needs()[BuyerNeed.PERFORMANCE].leader_if_workloads_weigh_equally == ""


def test_a_lead_within_the_intervals_is_not_sure() -> None:
    near = {owner: {"rand-read-4k": 1e6 * (1 + 0.03 * i)} for i, owner in enumerate(RATES)}
    assert needs(rates=near, width=0.001)[BuyerNeed.PERFORMANCE].is_certain
    assert not needs(rates=near, width=0.02)[BuyerNeed.PERFORMANCE].is_certain
    unknown = needs(rates=near, width=None)
    assert not unknown[BuyerNeed.PERFORMANCE].is_certain
    assert unknown[BuyerNeed.PERFORMANCE].has_single_runs
    assert unknown[BuyerNeed.CAPACITY].is_certain  # what was bought is counted


def test_equal_capacity_leads_nobody() -> None:
    same = replace(
        study(),
        configurations=tuple(
            replace(one, capacity=Capacity(None, 100.0)) for one in study().configurations
        ),
    )
    (capacity,) = [one for one in recommendations(same, []) if one.need is BuyerNeed.CAPACITY]
    assert (capacity.lead_factor, capacity.is_certain) == (1.0, False)


def test_only_workloads_that_all_have_count() -> None:
    rates = {**RATES, "mainstream": {"rand-read-4k": 5.1e6}}
    assert needs(rates=rates)[BuyerNeed.PERFORMANCE].workloads == ("rand-read-4k",)


def test_costs_of_some_or_in_two_currencies_do_not_count() -> None:
    found = [best(owner, "rand-read-4k", 1e6) for owner in RATES]
    priced = study(PRICES)
    first, *others = priced.configurations
    for cost in (None, ProcurementCost("USD", 0.0, 0.0, 1.0)):
        mixed = replace(priced, configurations=(replace(first, cost=cost), *others))
        assert {one.cost_divisor_text for one in recommendations(mixed, found)} == {""}


def test_one_configuration_suits_nothing_better_than_another() -> None:
    alone = replace(study(), configurations=study().configurations[:1])
    assert list(recommendations(alone, [best("high-capacity", "rand-read-4k", 1e6)])) == []


def test_what_was_not_measured_says_nothing_of_performance() -> None:
    assert {one.need for one in recommendations(study(), [])} == {BuyerNeed.CAPACITY}


def test_balance_is_not_sure_where_the_best_of_a_side_may_be_another() -> None:
    """By its IOPS the one with more capacity may have but 0.67 of the best, below the other's."""
    rates = {"high-capacity": {"rand-read-4k": 1e6}, "mainstream": {"rand-read-4k": 0.99e6}}
    first, second, _ = study().configurations
    two = replace(
        study(), configurations=(first, replace(second, capacity=Capacity(None, 0.9 * 973)))
    )

    def balance(width: float) -> Recommendation:
        found = [
            best(owner, "rand-read-4k", rates[owner]["rand-read-4k"], width) for owner in rates
        ]
        (told,) = [one for one in recommendations(two, found) if one.need is BuyerNeed.BALANCE]
        return told

    wide, narrow = balance(0.2), balance(0.005)
    assert wide.configuration == narrow.configuration == "high-capacity"
    assert wide.lead_factor == narrow.lead_factor == pytest.approx(1 / 0.9)
    assert (wide.is_certain, narrow.is_certain) == (False, True)


def test_fewer_hosts_on_the_same_storage_are_no_choice() -> None:
    whole, *others = study(PRICES).configurations
    fleet = replace(whole, hosts=("c1", "c2"))
    alone = replace(whole, id="alone", title="Alone", hosts=("c1",))
    two = replace(study(), configurations=(fleet, alone))
    found = [best("high-capacity", "rand-read-4k", 2e6), best("alone", "rand-read-4k", 1e6)]
    assert list(recommendations(two, found)) == []
    three = replace(study(), configurations=(fleet, alone, others[0]))
    found += [best("mainstream", "rand-read-4k", 1e6)]
    assert {one.compared_configuration_count for one in recommendations(three, found)} == {2}


def test_what_all_share_in_a_repeat_hides_no_lead_over_all_workloads() -> None:
    """As in every comparison of two: a slow machine slows them together, and their ratio stays."""
    rates = {owner: {"rand-read-4k": 1e6 * (1 + 0.1 * i)} for i, owner in enumerate(RATES)}
    found = [
        best(owner, name, value) for owner, own in rates.items() for name, value in own.items()
    ]

    def performance(*factors: Sequence[float]) -> Recommendation:
        """With repeats that are as many times the figures, for each configuration in turn."""
        varied = [
            replace(
                figure,
                value=replace(figure.value, low=1e5, high=1e7),
                values_by_repeat=tuple(
                    ((0, number), (figure.value.value or 0.0) * factor)
                    for number, factor in enumerate(own, 1)
                ),
            )
            for figure, own in zip(found, factors, strict=True)
        ]
        return {one.need: one for one in recommendations(study(), varied)}[BuyerNeed.PERFORMANCE]

    together, apart = (0.6, 1.0, 1.5), (1.5, 0.6, 1.0)
    assert performance(together, together, together).is_certain
    assert not performance(together, together, apart).is_certain
    assert not performance(together, together, (1.0,)).is_certain  # a repeat alone is no pair
