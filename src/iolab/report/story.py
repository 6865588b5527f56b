"""Findings as sentences: plain English, numbers rounded as everywhere, the runs behind each.

No sentence without a finding. What an interval does not support is not said as if it were so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Final

from iolab.analyse.findings.finding import (
    Bent,
    Best,
    Crossed,
    Finding,
    Gained,
    Priced,
    RunKey,
    Tallied,
)
from iolab.analyse.method.ratio import Verdict
from iolab.model.metric import Level, Metric
from iolab.model.study import Study
from iolab.report.wording import axis_label, axis_word, count, listing, show, show_value

ALIKE_NAMED: Final = 3
"""Places that may be as good as the best that are named; more are counted."""

_LEVELS: Final = {
    Level.VALID: "",
    Level.INDICATIVE: " This is indicative only.",
    Level.INVALID: " No run of it is valid.",
}


@dataclass(frozen=True, slots=True)
class Sentence:
    """A statement for people and the finding that it is made of, with its runs."""

    text: str
    finding: Finding

    @property
    def runs(self) -> tuple[RunKey, ...]:
        """The runs that it rests on."""
        return self.finding.runs


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


def names_of(study: Study) -> Names:
    """The names that sentences on a study use."""
    return Names({one.id: one.title for one in study.configurations})


def story(study: Study, found: Iterable[Finding]) -> tuple[Sentence, ...]:
    """A sentence for each finding, in their order; prices are told of the first of each rank."""
    names = names_of(study)
    told = [one for one in found if not _is_left_unsaid(one, names)]
    return tuple(Sentence(sentence, one) for one in told if (sentence := say(one, names)))


def _is_left_unsaid(one: Finding, names: Names) -> bool:
    """Prices that no interval supports, and of all but the best, stand in tables alone."""
    if not isinstance(one, Priced):
        return False
    return not names.several or one.rank > 1 or one.of < 2 or not one.sure


@singledispatch
def say(finding: object, names: Names) -> str:
    """The sentence on a finding."""
    raise TypeError(f"{type(finding).__name__} is no finding about {', '.join(names.titles)}")


@say.register
def _(best: Best, names: Names) -> str:
    who = f"{names.of(best.configuration)} does its best" if names.several else "The best"
    of = f" of {best.places} points measured" if best.places > 1 else ""
    at = f" at {_place(best.axis)}" if best.axis else ""
    verb = "with" if names.several else "is"
    text = f"{best.workload}: {who} {verb} {_with_interval(best.value)}{at}"
    text += f", the {'lowest' if best.value.unit == 'ns' else 'highest'}{of}" if of else ""
    if best.alike and best.value.low is not None:
        others = listing([_place(one) for one in best.alike], ALIKE_NAMED)
        text += f"; by its interval no better than {others}"
    return f"{text}.{_LEVELS[best.level]}"


@say.register
def _(gain: Gained, names: Names) -> str:
    more = _gain_words(gain)
    at = f" at {_place(gain.axis)}" if gain.axis else ""
    of = f", its largest supported gain of {count(gain.cells, 'point')}" if gain.cells > 1 else ""
    return (
        f"{gain.workload}: {names.of(gain.candidate)} has {more} "
        f"{names.of(gain.baseline)}{at}{of}.{_LEVELS[gain.level]}"
    )


@say.register
def _(tally: Tallied, names: Names) -> str:
    words = {
        Verdict.BETTER: "better in {}",
        Verdict.WORSE: "worse in {}",
        Verdict.SAME: "the same in {}",
        Verdict.INCONCLUSIVE: "neither better nor worse for sure in {}",
    }
    parts = [words[verdict].format(number) for verdict, number in tally.verdicts if number]
    total = sum(number for _, number in tally.verdicts)
    if not parts:
        return ""
    skipped = f"; {count(tally.skipped, 'point')} could not be compared" if tally.skipped else ""
    return (
        f"By {metric_words(tally.metric)} over {count(total, 'point')}, "
        f"{names.of(tally.candidate)} is {_joined(parts)} against "
        f"{names.of(tally.baseline)}{skipped}."
    )


@say.register
def _(cross: Crossed, names: Names) -> str:
    also = f", {_place(cross.fixed)}" if cross.fixed else ""
    name = axis_word(cross.axis)
    below = f"{'up to' if cross.up_to else 'at'} {name} {cross.last}"
    above = f"from {name} {cross.first} on" if cross.on else f"at {name} {cross.first}"
    return (
        f"{cross.workload}{also}: {names.of(cross.below)} leads {below}, by "
        f"{_percent(cross.share_below)} there, and {names.of(cross.above)} {above}, by "
        f"{_percent(cross.share_above)} there.{_LEVELS[cross.level]}"
    )


@say.register
def _(bend: Bent, names: Names) -> str:
    whose = f" of {names.of(bend.configuration)}" if names.several else ""
    also = f", {_place(bend.fixed)}" if bend.fixed else ""
    name = axis_word(bend.axis)
    rises = "rises" if bend.rate >= 1 else "falls"
    by = _percent(abs(bend.rate - 1))
    doubt = ", by single runs" if bend.single else "" if bend.sure else ", though not for sure"
    return (
        f"{bend.workload}{also}: the latency{whose} bends at {name} {bend.load}. From there to "
        f"{bend.further} the rate {rises} by {by} and the mean latency grows by "
        f"{_percent(bend.latency - 1)}{doubt}.{_LEVELS[bend.level]}"
    )


@say.register
def _(price: Priced, names: Names) -> str:
    what = show_value(price.value, price.unit) if price.unit != "TB" else f"{price.value:.3g} TB"
    kind = f"{price.workload}: " if price.workload else ""
    of = "" if price.workload else f" of {price.metric.removesuffix('_tb')} capacity"
    return (
        f"{kind}{names.of(price.configuration)} gives the most for each {price.per}, "
        f"{what}{of}, of {count(price.of, 'configuration')}."
    )


def metric_words(metric: str) -> str:
    """A metric's key in a sentence: `lat_ns_p99_9` as `p99.9 latency`."""
    way, mark, name = metric.partition("lat_ns_")
    if mark:
        kind = name if name in ("mean", "max") else name.replace("_", ".")
        return f"{way.replace('_', ' ')}{kind} latency"
    return _RATES.get(metric, metric.removesuffix("_per_s").replace("_", " "))


_RATES: Final = {"iops": "IOPS", "bw_bytes_per_s": "bandwidth", "ops_per_s": "operations a second"}


def _gain_words(gain: Gained) -> str:
    """What is gained with its interval in the same terms: factors from twice as much on."""
    metric = metric_words(gain.metric)
    if "lat_ns_" not in gain.metric and gain.share >= 1:
        return f"{_times(gain.share)} times{_between(gain, _times)} the {metric} of"
    less = "less" if "lat_ns_" in gain.metric else "more"
    return f"{_percent(gain.share)} {less} {metric}{_between(gain, _percent)} than"


def _between(gain: Gained, told: Callable[[float], str]) -> str:
    if gain.low is None or gain.high is None:
        return ""
    return f" ({told(gain.low)} to {told(gain.high)})"


def _times(share: float) -> str:
    """A share more as a factor: 1.5 more is 2.5 times."""
    factor = 1 + share
    return f"{factor:,.0f}" if factor >= 9.95 else f"{factor:.2g}"


def _with_interval(metric: Metric) -> str:
    if metric.low is None or metric.high is None:
        return f"{show(metric)} (one run)" if metric.n == 1 else show(metric)
    low, high = (show_value(end, metric.unit, bare_rate=True) for end in (metric.low, metric.high))
    return f"{show(metric)} ({low} to {high})"


def _place(axis: Sequence[tuple[str, int | str]]) -> str:
    return axis_label(tuple((axis_word(name), value) for name, value in axis))


def _percent(share: float) -> str:
    """A share with two digits, and no more than it has."""
    percent = 100 * share
    if 99 < percent < 100:
        return f"{100 - float(f'{100 - percent:.2g}'):.10g} %"  # all but so much, never all
    return f"{percent:.0f} %" if abs(percent) >= 9.95 else f"{percent:.2g} %"


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def without_repeats(sentences: Iterable[Sentence]) -> Iterator[Sentence]:
    """The sentences, each text once."""
    seen: set[str] = set()
    for one in sentences:
        if one.text not in seen:
            seen.add(one.text)
            yield one
