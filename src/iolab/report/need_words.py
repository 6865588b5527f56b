"""Which configuration suits which need, as a sentence that names the measure."""

from __future__ import annotations

from typing import Final

from iolab.analyse.findings.finding import Need, Suits
from iolab.report.phrases import LEVELS, Names, joined, percent, terabytes, times
from iolab.report.wording import count

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


def need_words(one: Suits, names: Names) -> str:
    """The sentence on a need; where intervals do not tell, that is what it says."""
    best, second = names.of(one.configuration), names.of(one.runner_up)
    level = LEVELS[one.level] if one.level is not None else ""
    if not one.sure:
        return f"{_FOR[one.need]}, {_undecided(one, best, second)}{_without_cost(one)}.{level}"
    return (
        f"{_FOR[one.need]}: {best}, {_MEASURES[one.need](one, second)}{_without_cost(one)}.{level}"
    )


def _undecided(one: Suits, best: str, second: str) -> str:
    if one.lead < 1 + ALIKE:
        return f"{best} and {second} are alike"
    why = "but by single runs" if one.single else "which their intervals leave open"
    ahead = f"{best} is ahead of {second} by {_percent_ahead(one)}"
    if one.lead >= TWICE:
        ahead = f"{best} has {_times(one)} what {second} has"
    return f"no configuration is the best for sure: {ahead}, {why}"


def _capacity(one: Suits, second: str) -> str:
    kind = one.metric.removesuffix("_tb")
    size = f"{terabytes(one.terabytes or 0.0)} {kind}"
    more = f"{_times(one)} that of {second}" if one.lead >= TWICE else f"{_more(one)} than {second}"
    return f"with {size}{_each(one)}, {more}"


def _performance(one: Suits, second: str) -> str:
    more = f"{_times(one)} as fast as {second}"
    if one.lead < TWICE:
        more = f"{_percent_ahead(one)} faster than {second}"
    return f"{more} by best rates{_over(one)}"


def _value(one: Suits, second: str) -> str:
    rates = f"with best rates{_each(one)}"
    if one.lead < TWICE:
        return f"{rates} {_percent_ahead(one)} above those of {second}{_over(one)}"
    return f"{rates} {_times(one)} those of {second}{_over(one)}"


def _balance(one: Suits, second: str) -> str:
    weakest = min(one.sides, key=lambda side: side.share)
    least = percent(weakest.share / one.lead)
    if weakest.share >= 1:
        names = joined([side.name for side in one.sides])
        return f"the best in {names}{_each(one)}, where {second} has {least} at its weakest"
    parts = [f"{side.name} {percent(side.share)}" for side in one.sides]
    return (
        f"whose shares of the best{_each(one)} are {joined(parts)}, where {second} has "
        f"{least} at its weakest"
    )


_MEASURES: Final = {
    Need.CAPACITY: _capacity,
    Need.PERFORMANCE: _performance,
    Need.VALUE: _value,
    Need.BALANCE: _balance,
}


def _each(one: Suits) -> str:
    return f" for each {one.per}" if one.per else ""


def _over(one: Suits) -> str:
    several = len(one.workloads) > 1
    mean = " (geometric mean)" if several else ""
    return f" over {count(len(one.workloads), 'workload')}{mean}"


def _times(one: Suits) -> str:
    return times(one.lead)


def _percent_ahead(one: Suits) -> str:
    return percent(one.lead - 1)


def _more(one: Suits) -> str:
    return f"{_percent_ahead(one)} more"


def _without_cost(one: Suits) -> str:
    """Where costs would weigh in, and are not known of all in one currency."""
    weighs = one.need in (Need.CAPACITY, Need.BALANCE)
    return (
        "; not all tell a cost in one currency, so costs do not count"
        if weighs and not one.per
        else ""
    )
