"""What sentences on findings are made of: names of configurations, places, shares, lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from iolab.analysis.findings import Need, Suits
from iolab.core.metric import Level
from iolab.report.numbers import axis_label, axis_word, count

LEVELS: Final = {
    Level.VALID: "",
    Level.INDICATIVE: " This is indicative only.",
    Level.INVALID: " No run of it is valid.",
}
"""What a sentence ends with, by the worst verdict behind it."""


@dataclass(frozen=True, slots=True)
class Names:
    """Titles of configurations by id, and whether there are several, so that they must be named."""

    titles: Mapping[str, str]

    @property
    def several(self) -> bool:
        """Whether a sentence must say which configuration it speaks of."""
        return len(self.titles) > 1

    def of(self, configuration: str) -> str:
        """A configuration as sentences call it."""
        return self.titles.get(configuration, configuration)


def place(axis: Sequence[tuple[str, int | str]]) -> str:
    """A place on the axes, each named as in a sentence: `threads 4, block_size 16k`."""
    return axis_label(tuple((axis_word(name), value) for name, value in axis))


def percent(share: float) -> str:
    """A share with two digits, and no more than it has."""
    percent = 100 * share
    if 99 < percent < 100:
        return f"{100 - float(f'{100 - percent:.2g}'):.10g} %"  # all but so much, never all
    return f"{percent:.0f} %" if abs(percent) >= 9.95 else f"{percent:.2g} %"


def part(share: float) -> str:
    """A part of a whole that is there in full at 100 %, as of time or of a link's speed."""
    told = min(100 * share, 100.0)
    return f"{told:.0f} %" if told >= 9.95 else f"{told:.2g} %"


def terabytes(size: float) -> str:
    """A capacity with three digits, and no fewer than it has before the point."""
    return f"{size:,.0f} TB" if size >= 999.5 else f"{size:.3g} TB"


def times(factor: float) -> str:
    """How many times, with two digits, and no fewer than it has before the point."""
    return f"{factor:,.0f} times" if factor >= 9.95 else f"{factor:.2g} times"


def joined(parts: Sequence[str]) -> str:
    """Parts of a sentence: `one, two and three`."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def step_words(axis: str, load: int, further: int, gain: float) -> str:
    """What a step of load does to the rate: `from iodepth 8 to 16 the rate rises by 3 %`."""
    way = "rises" if gain >= 1 else "falls"
    return f"from {axis_word(axis)} {load} to {further} the rate {way} by {percent(abs(gain - 1))}"


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
    call = "too few runs to call" if one.single else "too close to call"
    why = "but by single runs" if one.single else "which their intervals leave open"
    ahead = f"{best} is ahead of {second} by {_percent_ahead(one)}"
    if one.lead >= TWICE:
        ahead = f"{best} has {_lead_times(one)} what {second} has"
    return f"{call}: {ahead}, {why}"


def _capacity(one: Suits, second: str) -> str:
    kind = one.metric.removesuffix("_tb")
    size = f"{terabytes(one.terabytes or 0.0)} {kind}"
    more = (
        f"{_lead_times(one)} that of {second}"
        if one.lead >= TWICE
        else f"{_more(one)} than {second}"
    )
    return f"with {size}{_each(one)}, {more}"


def _performance(one: Suits, second: str) -> str:
    more = f"{_lead_times(one)} as fast as {second}"
    if one.lead < TWICE:
        more = f"{_percent_ahead(one)} faster than {second}"
    return f"{more} by best rates{_over(one)}"


def _value(one: Suits, second: str) -> str:
    rates = f"with best rates{_each(one)}"
    if one.lead < TWICE:
        return f"{rates} {_percent_ahead(one)} above those of {second}{_over(one)}"
    return f"{rates} {_lead_times(one)} those of {second}{_over(one)}"


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


def _lead_times(one: Suits) -> str:
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


def metric_words(metric: str) -> str:
    """A metric's key in a sentence: `lat_ns_p99_9` as `p99.9 latency`."""
    way, mark, name = metric.partition("lat_ns_")
    if mark:
        kind = name if name in ("mean", "max") else name.replace("_", ".")
        return f"{way.replace('_', ' ')}{kind} latency"
    return _RATES.get(metric, metric.removesuffix("_per_s").replace("_", " "))


_RATES: Final = {"iops": "IOPS", "bw_bytes_per_s": "bandwidth", "ops_per_s": "operations a second"}
