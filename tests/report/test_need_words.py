"""Golden sentences on which configuration suits which need."""

from __future__ import annotations

from dataclasses import replace

from iolab.analyse.findings.finding import Need, Suits
from iolab.model.metric import Level
from iolab.report.need_words import need_words
from iolab.report.phrases import Names
from tests.analyse.findings.test_needs import PRICES, RATES, needs

NAMES = Names({name: name.capitalize() for name in RATES})


def told(found: dict[Need, Suits]) -> list[str]:
    return [need_words(one, NAMES) for one in found.values()]


def test_with_costs() -> None:
    assert told(needs(PRICES)) == [
        "For capacity first: High-capacity, with 1.08 TB usable for each 1000 EUR, 28 % more than "
        "Mainstream.",
        "For performance: Performance, 84 % faster than High-capacity by best rates over 3 "
        "workloads (geometric mean).",
        "For performance at its cost: Performance, with best rates for each 1000 EUR 11 % above "
        "those of Mainstream over 3 workloads (geometric mean).",
        "For balance: Mainstream, whose shares of the best for each 1000 EUR are capacity 78 %, "
        "IOPS 100 % and bandwidth 79 %, where Performance has 45 % at its weakest.",
    ]


def test_without_costs() -> None:
    assert told(needs()) == [
        "For capacity first: High-capacity, with 973 TB usable, 3.2 times that of Mainstream; "
        "not all tell a cost in one currency, so costs do not count.",
        "For performance: Performance, 84 % faster than High-capacity by best rates over 3 "
        "workloads (geometric mean).",
        "For balance: High-capacity, whose shares of the best are capacity 100 %, IOPS 60 % and "
        "bandwidth 49 %, where Mainstream has 31 % at its weakest; not all tell a cost in one "
        "currency, so costs do not count.",
    ]


def test_what_intervals_do_not_support_is_inconclusive() -> None:
    near = {owner: {"rand-read-4k": 1e6 * (1 + 0.01 * i)} for i, owner in enumerate(RATES)}
    found = needs(rates=near, width=0.02)[Need.PERFORMANCE]
    assert need_words(found, NAMES) == (
        "For performance, no configuration is the best for sure: Performance is ahead of "
        "Mainstream by 0.99 %, which their intervals leave open."
    )
    alone = needs(rates=near, width=None)[Need.PERFORMANCE]
    assert need_words(alone, NAMES).endswith("by 0.99 %, but by single runs.")
    far = need_words(replace(alone, lead=49.2), NAMES)
    assert far.endswith(
        "for sure: Performance has 49 times what Mainstream has, but by single runs."
    )
    assert "has 1,230 times what" in need_words(replace(alone, lead=1230.4), NAMES)
    same = replace(found, lead=1.0)
    assert need_words(same, NAMES) == "For performance, Performance and Mainstream are alike."


def test_large_capacities_have_all_their_digits() -> None:
    large = replace(needs()[Need.CAPACITY], terabytes=12_345.6)
    assert "with 12,346 TB usable, 3.2 times" in need_words(large, NAMES)


def test_a_doubtful_verdict_is_told() -> None:
    found = needs()[Need.PERFORMANCE]
    assert need_words(replace(found, level=Level.INDICATIVE), NAMES).endswith(
        " This is indicative only."
    )
    assert ": Performance, 2.4 times as fast as" in need_words(replace(found, lead=2.4), NAMES)
    one = replace(found, workloads=("rand-read-4k",))
    assert need_words(one, NAMES).endswith("by best rates over 1 workload.")
