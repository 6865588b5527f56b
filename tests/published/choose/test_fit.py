"""Offers against needs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from iolab.analysis.energy_cost import EnergyCost
from iolab.core.metric import Metric, VerdictLevel
from iolab.published.choose import (
    Budget,
    MaximumMetric,
    MinimumRate,
    Offer,
    OfferedPoint,
    RequirementFulfilment,
    Requirements,
    evaluate_offer,
    evaluations_best_first,
    known_currencies,
)

LIMIT = MaximumMetric("w", "lat_ns_p99", 2e6)


def rate(value: float, low: float | None = None, n: int | None = 3) -> Metric:
    high = None if low is None else 2 * value - low
    return Metric(value, "1/s", low, high, n if low is not None else None)


def seen(
    value: Metric,
    depth: int = 1,
    p99_ns: float | None = None,
    level: VerdictLevel | None = VerdictLevel.VALID,
) -> OfferedPoint:
    latencies = {}
    if p99_ns is not None:
        latencies["lat_ns_p99"] = Metric(p99_ns, "ns", p99_ns, p99_ns, 3)
    return OfferedPoint("w", (("iodepth", depth),), {"1/s": value}, latencies, level)


def offer(*places: OfferedPoint, nodes: int | None = 4, cost: float | None = 100.0) -> Offer:
    return Offer("o", "s", nodes, 400.0, cost, "EUR", places)


def needs(least: float, *limits: MaximumMetric) -> Requirements:
    return Requirements(minimum_rates=(MinimumRate("w", "1/s", least),), maximum_metrics=limits)


@pytest.mark.parametrize(
    ("place", "least", "as_is"),
    [
        (seen(rate(100, 95)), 95, RequirementFulfilment.YES),
        (seen(rate(100, 95)), 96, RequirementFulfilment.LIKELY),
        (seen(rate(100, 95)), 101, RequirementFulfilment.NO),
        (seen(rate(100)), 99, RequirementFulfilment.LIKELY),
        (seen(rate(100, 95), level=VerdictLevel.INDICATIVE), 90, RequirementFulfilment.LIKELY),
        (seen(rate(100, 95, n=None), level=None), 90, RequirementFulfilment.LIKELY),
        (replace(seen(rate(100)), run_count=1), 90, RequirementFulfilment.ONE_RUN),
        (replace(seen(rate(100, 95)), run_count=1), 90, RequirementFulfilment.ONE_RUN),
        (replace(seen(rate(100, 95)), run_count=1), 96, RequirementFulfilment.ONE_RUN),
        (replace(seen(rate(100, 95)), run_count=1), 101, RequirementFulfilment.NO),
    ],
)
def test_a_rate_is_sure_at_the_low_end_of_a_valid_interval(
    place: OfferedPoint, least: float, as_is: RequirementFulfilment
) -> None:
    assert evaluate_offer(needs(least), offer(place), 1.0).status_as_measured is as_is


@pytest.mark.parametrize(
    ("high", "answer"),
    [(2.9, RequirementFulfilment.YES), (3.1, RequirementFulfilment.LIKELY)],
)
def test_an_amplification_is_held_at_the_high_end_of_its_interval(
    high: float, answer: RequirementFulfilment
) -> None:
    found = Metric(2.8, "x", 2.7, high, 3)
    place = OfferedPoint("w", (), {}, {"write_amplification": found}, VerdictLevel.VALID)
    limit = MaximumMetric("w", "write_amplification", 3.0)
    fit = evaluate_offer(Requirements(maximum_metrics=(limit,)), offer(place), 1.0)
    (part,) = fit.requirement_results
    assert part.status_as_measured is answer
    assert part.name == "w write-amplification <= 3 x"
    assert part.message == f"2.80 x, at most {high:.2f} x"


@pytest.mark.parametrize(
    ("of_clients", "scaled"), [(False, RequirementFulfilment.NO), (True, RequirementFulfilment.YES)]
)
def test_watts_grow_with_the_nodes_unless_clients_take_them(
    scaled: RequirementFulfilment, *, of_clients: bool
) -> None:
    place = replace(
        seen(rate(100, 95)),
        latency_by_metric={"node_power_w": Metric(400, "W", 395, 405, 3)},
        has_watts_of_clients=of_clients,
    )
    limit = MaximumMetric("w", "node_power_w", 500.0)
    fit = evaluate_offer(needs(190, limit), offer(place), 1.0)
    assert fit.node_count == 8
    _, power = fit.requirement_results
    assert (power.status_as_measured, power.status_when_scaled) == (
        RequirementFulfilment.YES,
        scaled,
    )
    assert ("machines that made the load" in power.message) is of_clients


def test_energy_grows_with_the_nodes_as_the_cost_does() -> None:
    seen_with_four = replace(offer(seen(rate(100, 95))), energy=EnergyCost(2000.0, 4380.0))
    fit = evaluate_offer(needs(190), seen_with_four, 1.0)
    assert (fit.node_count, fit.cost) == (8, 200.0)
    assert fit.energy == EnergyCost(4000.0, 8760.0)
    by_clients = replace(
        seen_with_four, energy=EnergyCost(2000.0, 4380.0, covers_only_clients=True)
    )
    assert evaluate_offer(needs(190), by_clients, 1.0).energy == by_clients.energy
    unsized = replace(seen_with_four, node_count=None)
    assert evaluate_offer(needs(90), unsized, 1.0).energy == EnergyCost(2000.0, 4380.0)


@pytest.mark.parametrize(
    ("most_ns", "lost", "answer"),
    [
        (1.9e6, (), RequirementFulfilment.YES),
        (2.1e6, (), RequirementFulfilment.LIKELY),
        (2.1e6, ("w",), RequirementFulfilment.LIKELY),
    ],
)
def test_a_latency_is_likely_kept_where_its_interval_alone_reaches_above(
    most_ns: float, lost: tuple[str, ...], answer: RequirementFulfilment
) -> None:
    place = replace(
        seen(rate(100)), latency_by_metric={LIMIT.metric: Metric(1.5e6, "ns", 1e6, most_ns, 3)}
    )
    required = Requirements(maximum_metrics=(LIMIT,))
    owner = replace(offer(place), workloads_with_lost_points=frozenset(lost))
    assert evaluate_offer(required, owner, 1.0).status_as_measured is answer


@pytest.mark.parametrize(
    ("lost", "answer"), [("w", RequirementFulfilment.UNKNOWN), ("other", RequirementFulfilment.NO)]
)
def test_nobody_knows_whether_a_point_that_was_lost_meets_what_no_other_does(
    lost: str, answer: RequirementFulfilment
) -> None:
    owner = replace(
        offer(seen(rate(100), p99_ns=9e6)), workloads_with_lost_points=frozenset({lost})
    )
    for required in (needs(101), needs(90, LIMIT), Requirements(maximum_metrics=(LIMIT,))):
        assert evaluate_offer(required, owner, 1.0).status_as_measured is answer


@given(
    have=st.floats(1, 1e9),
    ratio=st.floats(0.01, 20),
    nodes=st.integers(1, 500),
    scaling=st.floats(0.2, 1),
)
def test_the_advised_nodes_are_the_fewest_that_give_the_rate(
    have: float, ratio: float, nodes: int, scaling: float
) -> None:
    found = evaluate_offer(
        needs(have * ratio), offer(seen(rate(have)), nodes=nodes), scaling
    ).node_count
    assert found is not None

    def given_by(count: int) -> float:
        each = have / nodes
        return each * count if count <= nodes else have + each * scaling * (count - nodes)

    slack = 1e-6 * have * ratio
    assert given_by(found) >= have * ratio - slack
    assert found == 1 or given_by(found - 1) < have * ratio + slack


def test_a_rate_counts_only_where_its_latency_is_kept() -> None:
    deep, shallow = seen(rate(900, 890), 32, p99_ns=9e6), seen(rate(300, 290), 4, p99_ns=1e6)
    found = evaluate_offer(needs(290, LIMIT), offer(deep, shallow), 1.0)
    assert found.status_as_measured is RequirementFulfilment.YES
    assert found.requirement_results[0].axis_values == (("iodepth", 4),)
    assert evaluate_offer(needs(500, LIMIT), offer(deep, shallow), 1.0).node_count == 7
    assert (
        evaluate_offer(needs(100, LIMIT), offer(deep), 1.0).status_when_scaled
        is RequirementFulfilment.NO
    )


def test_a_latency_without_an_interval_makes_no_rate_sure() -> None:
    place = replace(seen(rate(300, 290)), latency_by_metric={LIMIT.metric: Metric(1e6, "ns", n=3)})
    assert (
        evaluate_offer(needs(100), offer(place), 1.0).status_when_scaled
        is RequirementFulfilment.YES
    )
    assert (
        evaluate_offer(needs(100, LIMIT), offer(place), 1.0).status_when_scaled
        is RequirementFulfilment.LIKELY
    )


def test_a_latency_that_is_only_known_to_be_more_is_not_kept() -> None:
    place = replace(seen(rate(9, 8)), latency_by_metric={"lat_ns_p99": Metric(None, "ns", low=1e6)})
    assert (
        evaluate_offer(needs(1, LIMIT), offer(place), 1.0).status_when_scaled
        is RequirementFulfilment.NO
    )


def test_what_is_not_known_is_said_to_be_unknown() -> None:
    place = seen(rate(100, 95))
    assert (
        evaluate_offer(needs(1, LIMIT), offer(place), 1.0).status_when_scaled
        is RequirementFulfilment.UNKNOWN
    )
    assert (
        evaluate_offer(needs(1), offer(), 1.0).status_when_scaled is RequirementFulfilment.UNKNOWN
    )
    assert (
        evaluate_offer(Requirements(maximum_metrics=(LIMIT,)), offer(place), 1.0).status_when_scaled
        is RequirementFulfilment.UNKNOWN
    )
    assert (
        evaluate_offer(
            Requirements(usable_tb=1), replace(offer(), usable_tb=None), 1.0
        ).status_when_scaled
        is RequirementFulfilment.UNKNOWN
    )
    assert (
        evaluate_offer(Requirements(budget=Budget(1)), offer(cost=None), 1.0).status_when_scaled
        is RequirementFulfilment.UNKNOWN
    )
    assert (
        evaluate_offer(Requirements(budget=Budget(1, "USD")), offer(), 1.0).status_when_scaled
        is RequirementFulfilment.UNKNOWN
    )


def test_capacity_and_cost_grow_with_nodes() -> None:
    found = evaluate_offer(Requirements(usable_tb=450, budget=Budget(130, "EUR")), offer(), 0.5)
    assert (found.node_count, found.cost) == (5, 125.0)
    assert (found.status_as_measured, found.status_when_scaled) == (
        RequirementFulfilment.NO,
        RequirementFulfilment.YES,
    )
    assert (
        evaluate_offer(
            Requirements(usable_tb=450, budget=Budget(120)), offer(), 1.0
        ).status_when_scaled
        is RequirementFulfilment.NO
    )


def test_an_offer_without_nodes_is_taken_as_it_is() -> None:
    found = evaluate_offer(needs(200), offer(seen(rate(100, 95)), nodes=None), 1.0)
    assert (found.node_count, found.status_when_scaled) == (None, RequirementFulfilment.NO)
    assert (
        evaluate_offer(needs(50), offer(seen(rate(100, 95)), nodes=None), 1.0).status_when_scaled
        is RequirementFulfilment.YES
    )


def test_a_latency_alone_is_met_at_the_best_place() -> None:
    places = (seen(rate(9, 8), 8, p99_ns=3e6), seen(rate(5, 4), 1, p99_ns=1e6))
    (part,) = evaluate_offer(
        Requirements(maximum_metrics=(LIMIT,)), offer(*places), 1.0
    ).requirement_results
    assert part.axis_values == (("iodepth", 1),)
    assert part.margin == 2.0
    assert evaluate_offer(
        Requirements(maximum_metrics=(replace(LIMIT, maximum=1e5),)), offer(*places), 1.0
    ).status_when_scaled is (RequirementFulfilment.NO)


def test_the_surest_is_first_then_the_cheapest_then_the_smallest() -> None:
    dear = replace(offer(seen(rate(100, 95))), name="dear", cost=900.0)
    cheap = replace(dear, name="cheap", cost=90.0)
    unsure = replace(offer(seen(rate(100))), name="unsure", cost=1.0)
    free = replace(dear, name="free", cost=None)
    fits = evaluations_best_first(
        evaluate_offer(needs(50), one, 1.0) for one in (unsure, free, dear, cheap)
    )
    assert [one.offer.name for one in fits] == ["cheap", "dear", "free", "unsure"]


def test_costs_in_several_currencies_are_never_ranked() -> None:
    small = replace(offer(seen(rate(100, 95)), nodes=2), name="small", cost=900.0)
    large = replace(offer(seen(rate(100, 95))), name="large", cost=1.0, currency="JPY")
    fits = evaluations_best_first(evaluate_offer(needs(95), one, 1.0) for one in (large, small))
    assert [one.offer.name for one in fits] == ["small", "large"]
    assert known_currencies(fits) == ("EUR", "JPY")
    same = evaluations_best_first(
        evaluate_offer(needs(95), one, 1.0) for one in (replace(large, currency="EUR"), small)
    )
    assert [one.offer.name for one in same] == ["large", "small"]


def test_a_need_that_no_number_of_nodes_meets_is_not_met() -> None:
    found = evaluate_offer(needs(1e12), offer(seen(rate(1, 0.9))), 1.0)
    assert (found.node_count, found.status_when_scaled) == (None, RequirementFulfilment.NO)
    assert math.isclose(found.requirement_results[0].margin or 0, 1e-12)


def test_a_latency_of_nothing_or_without_end_has_no_margin() -> None:
    for metric, answer in (
        (Metric(0.0, "ns"), RequirementFulfilment.LIKELY),
        (Metric(None, "ns", 9.0), RequirementFulfilment.NO),
    ):
        place = replace(seen(rate(9)), latency_by_metric={LIMIT.metric: metric})
        (part,) = evaluate_offer(
            Requirements(maximum_metrics=(LIMIT,)), offer(place), 1.0
        ).requirement_results
        assert (part.status_when_scaled, part.margin) == (answer, None)


def test_margins_and_nodes_by_the_mean_stand_beside_those_for_sure() -> None:
    found = evaluate_offer(needs(110), offer(seen(rate(100, 80)), nodes=4), 1.0)
    (part,) = found.requirement_results
    assert part.margin == pytest.approx(100 / 110)
    assert part.margin_low == pytest.approx(80 / 110)
    assert (part.node_count_by_mean, part.node_count) == (5, 6)
    assert (found.node_count_by_mean, found.node_count) == (5, 6)
