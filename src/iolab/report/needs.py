"""Which configuration suits which need, as a sentence."""

from __future__ import annotations

from typing import Final

from iolab.analysis.findings import Need, Suits
from iolab.report.numbers import count
from iolab.report.phrases import LEVELS, Names, joined, percent, terabytes, times

ALIKE: Final = 0.0005
"""A lead that would be shown as none is none."""

TWICE: Final = 2.0
"""From here on a lead is told as a factor."""

_FOR: Final = {
    Need.CAPACITY: "For capacity first",
    Need.PERFORMANCE: "For performance",
    Need.VALUE: "For performance at its cost",
    Need.BALANCE: "For balance",
}


def need_words(suits: Suits, names: Names) -> str:
    """The sentence on a need; where intervals do not tell, that is what it says."""
    best, second = names.of(suits.configuration), names.of(suits.runner_up)
    level = LEVELS[suits.level] if suits.level is not None else ""
    if suits.sure:
        choice = f": {best}, {_MEASURES[suits.need](suits, second)}"
    else:
        choice = f", {_undecided(suits, best, second)}"
    return f"{_FOR[suits.need]}{choice}{_without_cost(suits)}.{level}"


def _undecided(suits: Suits, best: str, second: str) -> str:
    if suits.lead < 1 + ALIKE:
        return f"{best} and {second} are alike"
    call = "too few runs to call" if suits.single else "too close to call"
    why = "but by single runs" if suits.single else "which their intervals leave open"
    ahead = f"{best} is ahead of {second} by {_percent_ahead(suits)}"
    if suits.lead >= TWICE:
        ahead = f"{best} has {_lead_times(suits)} what {second} has"
    return f"{call}: {ahead}, {why}"


def _capacity(suits: Suits, second: str) -> str:
    kind = suits.metric.removesuffix("_tb")
    size = f"{terabytes(suits.terabytes or 0.0)} {kind}"
    more = (
        f"{_lead_times(suits)} that of {second}"
        if suits.lead >= TWICE
        else f"{_more(suits)} than {second}"
    )
    return f"with {size}{_each(suits)}, {more}"


def _performance(suits: Suits, second: str) -> str:
    more = f"{_lead_times(suits)} as fast as {second}"
    if suits.lead < TWICE:
        more = f"{_percent_ahead(suits)} faster than {second}"
    return f"{more} by best rates{_over(suits)}"


def _value(suits: Suits, second: str) -> str:
    rates = f"with best rates{_each(suits)}"
    if suits.lead < TWICE:
        return f"{rates} {_percent_ahead(suits)} above those of {second}{_over(suits)}"
    return f"{rates} {_lead_times(suits)} those of {second}{_over(suits)}"


def _balance(suits: Suits, second: str) -> str:
    weakest = min(suits.sides, key=lambda side: side.share)
    least = percent(weakest.share / suits.lead)
    if weakest.share >= 1:
        names = joined([side.name for side in suits.sides])
        return f"the best in {names}{_each(suits)}, where {second} has {least} at its weakest"
    parts = [f"{side.name} {percent(side.share)}" for side in suits.sides]
    return (
        f"whose shares of the best{_each(suits)} are {joined(parts)}, where {second} has "
        f"{least} at its weakest"
    )


_MEASURES: Final = {
    Need.CAPACITY: _capacity,
    Need.PERFORMANCE: _performance,
    Need.VALUE: _value,
    Need.BALANCE: _balance,
}


def _each(suits: Suits) -> str:
    return f" for each {suits.per}" if suits.per else ""


def _over(suits: Suits) -> str:
    several = len(suits.workloads) > 1
    mean = " (geometric mean)" if several else ""
    return f" over {count(len(suits.workloads), 'workload')}{mean}"


def _lead_times(suits: Suits) -> str:
    return times(suits.lead)


def _percent_ahead(suits: Suits) -> str:
    return percent(suits.lead - 1)


def _more(suits: Suits) -> str:
    return f"{_percent_ahead(suits)} more"


def _without_cost(suits: Suits) -> str:
    """Where costs would weigh in, and are not known of all in one currency."""
    weighs = suits.need in (Need.CAPACITY, Need.BALANCE)
    return (
        "; not all tell a cost in one currency, so costs do not count"
        if weighs and not suits.per
        else ""
    )
