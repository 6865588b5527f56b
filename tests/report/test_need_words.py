"""What sentences on which configuration suits which need tell."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from iolab.analysis.findings import BuyerNeed, Recommendation
from iolab.core.metric import VerdictLevel
from iolab.report.choice import choice_answer
from iolab.report.matrix import workload_rows
from iolab.report.narrative import recommendation_sentence
from iolab.report.phrases import ConfigurationNames
from tests.analysis.findings.test_needs import PRICES, RATES, needs
from tests.facts import tells
from tests.report.test_answer import figure

NAMES = ConfigurationNames({name: name.capitalize() for name in RATES})


RATES_ALONE = ("performance", "Performance", "1.84×", "High-capacity", "3 workloads")


def told(found: BuyerNeed, prices: Mapping[str, float] | None, *facts: str) -> bool:
    return tells(recommendation_sentence(needs(prices)[found], NAMES), *facts)


def test_with_costs() -> None:
    each = ("1000 EUR", "1.11×", "Mainstream", "3 workloads")
    shares = ("78 %", "100 %", "79 %", "1000 EUR", "Performance", "45 %")
    size = ("High-capacity", "1.08 TB", "1000 EUR", "1.28×", "Mainstream")
    assert told(BuyerNeed.CAPACITY, PRICES, "capacity", *size)
    assert told(BuyerNeed.PERFORMANCE, PRICES, *RATES_ALONE)
    assert told(BuyerNeed.VALUE, PRICES, "per cost", "Performance", *each)
    assert told(BuyerNeed.BALANCE, PRICES, "all-round", "Mainstream", *shares)


def test_without_costs() -> None:
    shares = ("100 %", "60 %", "49 %", "Mainstream", "31 %")
    assert told(BuyerNeed.CAPACITY, None, "High-capacity", "973 TB", "3.20×", "Mainstream")
    assert told(BuyerNeed.PERFORMANCE, None, *RATES_ALONE)
    assert told(BuyerNeed.BALANCE, None, "High-capacity", *shares)
    assert "EUR" not in "".join(recommendation_sentence(one, NAMES) for one in needs().values())


def test_what_intervals_do_not_support_is_inconclusive() -> None:
    near = {owner: {"rand-read-4k": 1e6 * (1 + 0.01 * i)} for i, owner in enumerate(RATES)}
    both = ("Performance", "Mainstream")
    found = needs(rates=near, width=0.02)[BuyerNeed.PERFORMANCE]
    text = recommendation_sentence(found, NAMES)
    assert tells(text, "not distinguishable", "Performance", "1.01×", "Mainstream", "intervals"), (
        text
    )
    alone = needs(rates=near, width=None)[BuyerNeed.PERFORMANCE]
    assert tells(
        recommendation_sentence(alone, NAMES),
        "too few runs to call",
        "Performance",
        "1.01×",
        "Mainstream",
        "single runs",
    )
    far = recommendation_sentence(replace(alone, lead_factor=49.2), NAMES)
    assert tells(far, "too few runs", "Performance", "49.2×", "Mainstream", "single runs")
    assert tells(recommendation_sentence(replace(alone, lead_factor=1230.4), NAMES), "1,230×")
    assert tells(recommendation_sentence(replace(found, lead_factor=1.0), NAMES), *both, "alike")


def test_both_leaders_are_told_where_the_weighing_decides() -> None:
    found = needs()[BuyerNeed.PERFORMANCE]
    turned = replace(
        found,
        is_certain=False,
        lead_factor=1.04,
        leader_if_workloads_weigh_equally="mainstream",
        lead_factor_if_workloads_weigh_equally=1.02,
    )
    text = recommendation_sentence(turned, NAMES)
    first = ("depends on the weighing", "Performance", "1.04×", "IOPS and bandwidth half each")
    assert tells(text, *first, "Mainstream", "1.02×", "each workload"), text


def test_a_doubtful_verdict_and_large_figures_are_told() -> None:
    large = replace(needs()[BuyerNeed.CAPACITY], terabytes=12_345.6)
    assert tells(recommendation_sentence(large, NAMES), "12,346 TB", "3.20×")
    found = replace(needs()[BuyerNeed.PERFORMANCE], lead_factor=2.4, workloads=("rand-read-4k",))
    assert tells(recommendation_sentence(found, NAMES), "Performance", "2.40×", "1 workload")
    assert "indicative" not in recommendation_sentence(found, NAMES)
    assert "indicative" in recommendation_sentence(
        replace(found, verdict_level=VerdictLevel.INDICATIVE), NAMES
    )


def test_the_answer_tells_who_leads_over_all_workloads() -> None:
    """A buyer of one configuration for all of them asks for that, of which no row tells."""
    names = {name: name.capitalize() for name in RATES}
    rows = workload_rows(
        figure(owner, value, 0.005, title=workload)
        for owner, own in RATES.items()
        for workload, value in own.items()
    )
    found = needs()[BuyerNeed.PERFORMANCE]

    def details(performance: Recommendation) -> str:
        return choice_answer(rows, names, performance).details

    assert tells(details(found), "all 3 workloads Performance", "1.84×", "High-capacity", "sure")
    assert "not decided" in details(replace(found, is_certain=False))
    turned = replace(
        found,
        is_certain=False,
        leader_if_workloads_weigh_equally="mainstream",
        lead_factor_if_workloads_weigh_equally=1.02,
    )
    both = ("depends on the weighing", "Performance by 1.84×", "Mainstream by 1.02×")
    assert tells(details(turned), *both, "each counts the same")
    for quiet in (replace(found, has_single_runs=True), replace(found, workloads=("one",))):
        assert "Over" not in details(quiet)
