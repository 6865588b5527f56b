"""Findings as sentences: plain English, numbers rounded as everywhere, the runs behind each.

No sentence without a finding. What an interval does not support is not said as if it were so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import singledispatch
from typing import TYPE_CHECKING, Final

from iolab.analysis.findings import (
    Bent,
    Best,
    Crossed,
    Finding,
    Gained,
    Limited,
    Need,
    Priced,
    Suits,
    Tallied,
)
from iolab.analysis.pairs import gains
from iolab.analysis.ranked_findings import findings
from iolab.core.metric import Level, Metric
from iolab.core.metric_spec import Better, spec_of
from iolab.core.run import RunKey
from iolab.core.study import Study
from iolab.dataclass import dataclass
from iolab.report.bottleneck import limit_words
from iolab.report.numbers import (
    axis_word,
    count,
    listing,
    show,
    show_quotient,
    show_value,
    why_no_interval,
)
from iolab.report.phrases import (
    LEVELS,
    Names,
    joined,
    metric_words,
    names_among_several,
    percent,
    place,
    terabytes,
    times,
    whose_run,
)
from iolab.stats.comparison import ComparisonVerdict

if TYPE_CHECKING:
    from iolab.report.brief import Brief
    from iolab.report.charts.series import Anchors

ALIKE_NAMED: Final = 3
"""Places that is not distinguishable as the best that are named; more are counted."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A statement for people and the finding that it is made of, with its runs."""

    text: str
    finding: Finding

    @property
    def runs(self) -> tuple[RunKey, ...]:
        """The runs that it rests on."""
        return self.finding.runs


def names_of(study: Study) -> Names:
    """The names that sentences on a study use."""
    return Names(study.titles)


def sentences_on(study: Study, every: Iterable[Finding]) -> tuple[Sentence, ...]:
    """A sentence for each finding, in their order; prices are told of the first of each rank."""
    names = names_of(study)
    kept = [finding for finding in every if not _is_left_unsaid(finding, names)]
    return tuple(
        Sentence(sentence, finding) for finding in kept if (sentence := say(finding, names))
    )


def _is_left_unsaid(finding: Finding, names: Names) -> bool:
    """Prices that no interval supports, and of all but the best, stand in tables alone."""
    if not isinstance(finding, Priced):
        return False
    return not names.several or finding.rank > 1 or finding.of < 2 or not finding.sure


@singledispatch
def say(finding: object, names: Names) -> str:
    """The sentence on a finding."""
    raise TypeError(f"{type(finding).__name__} is no finding about {', '.join(names.titles)}")


@say.register
def _(best: Best, names: Names) -> str:
    who = f"{names.of(best.configuration)} does its best" if names.several else "The best"
    which = "that are not invalid" if best.invalid else "measured"
    of = f" of {best.places} points {which}" if best.places > 1 else ""
    at = f" at {place(best.axis)}" if best.axis else ""
    verb = "with" if names.several else "is"
    text = f"{best.workload}: {who} {verb} {_with_interval(best.value)}{at}"
    end = "lowest" if spec_of(best.metric).better is Better.LOWER else "highest"
    text += f", the {end}{of}" if of else ""
    if best.alike and best.value.low is not None:
        others = listing([place(axis) for axis in best.alike], ALIKE_NAMED)
        text += f"; not distinguishable from {others}"
    return f"{text}.{LEVELS[best.level]}"


@say.register
def _(gain: Gained, names: Names) -> str:
    more = _gain_words(gain)
    at = f" at {place(gain.axis)}" if gain.axis else ""
    of = f", its largest supported gain of {count(gain.cells, 'point')}" if gain.cells > 1 else ""
    return (
        f"{gain.workload}: {names.of(gain.candidate)} has {more} "
        f"{names.of(gain.baseline)}{at}{of}.{LEVELS[gain.level]}"
    )


@say.register
def _(tally: Tallied, names: Names) -> str:
    words = {
        ComparisonVerdict.BETTER: "better in {}",
        ComparisonVerdict.WORSE: "worse in {}",
        ComparisonVerdict.SAME: "the same in {}",
        ComparisonVerdict.INCONCLUSIVE: "neither better nor worse for sure in {}",
    }
    parts = [words[verdict].format(number) for verdict, number in tally.verdicts if number]
    total = sum(number for _, number in tally.verdicts)
    if not parts:
        return ""
    skipped = f"; {count(tally.skipped, 'point')} could not be compared" if tally.skipped else ""
    return (
        f"By {metric_words(tally.metric)} over {count(total, 'point')}, "
        f"{names.of(tally.candidate)} is {joined(parts)} against "
        f"{names.of(tally.baseline)}{skipped}."
    )


@say.register
def _(cross: Crossed, names: Names) -> str:
    also = f", {place(cross.fixed)}" if cross.fixed else ""
    name = axis_word(cross.axis)
    below = f"{'up to' if cross.up_to else 'at'} {name} {cross.last}"
    above = f"from {name} {cross.first} on" if cross.on else f"at {name} {cross.first}"
    return (
        f"{cross.workload}{also}: {names.of(cross.below)} leads {below}, by "
        f"{percent(cross.share_below)} there, and {names.of(cross.above)} {above}, by "
        f"{percent(cross.share_above)} there.{LEVELS[cross.level]}"
    )


@say.register
def _(bend: Bent, names: Names) -> str:
    whose = f" of {names.of(bend.configuration)}" if names.several else ""
    also = f", {place(bend.fixed)}" if bend.fixed else ""
    name = axis_word(bend.axis)
    rises = "rises" if bend.rate >= 1 else "falls"
    by = percent(abs(bend.rate - 1))
    doubt = ", by single runs" if bend.single else "" if bend.sure else ", with low confidence"
    return (
        f"{bend.workload}{also}: the latency{whose} bends at {name} {bend.load}. From there to "
        f"{bend.further} the rate {rises} by {by} and the mean latency grows by "
        f"{percent(bend.latency - 1)}{doubt}.{LEVELS[bend.level]}"
    )


@say.register
def _(price: Priced, names: Names) -> str:
    amount = (
        terabytes(price.value)
        if price.unit == "TB"
        else show_quotient(Metric(price.value, price.unit))
    )
    kind = f"{price.workload}: " if price.workload else ""
    of = "" if price.workload else f" of {price.metric.removesuffix('_tb')} capacity"
    return (
        f"{kind}{names.of(price.configuration)} gives the most for each {price.per}, "
        f"{amount}{of}, of {count(price.of, 'configuration')}."
        f"{LEVELS[price.level] if price.level is not None else ''}"
    )


@say.register
def _(limit: Limited, names: Names) -> str:
    return limit_words(limit, names)


@say.register
def _(suits: Suits, names: Names) -> str:
    return need_words(suits, names)


def _gain_words(gain: Gained) -> str:
    """What is gained with its interval in the same terms: factors from twice as much on."""
    metric = metric_words(gain.metric)
    lower = spec_of(gain.metric).better is Better.LOWER
    if not lower and gain.share >= 1:
        return f"{_times(gain.share)} times{_between(gain, _times)} the {metric} of"
    less = "less" if lower else "more"
    return f"{percent(gain.share)} {less} {metric}{_between(gain, percent)} than"


def _between(gain: Gained, show_ratio: Callable[[float], str]) -> str:
    if gain.low is None or gain.high is None:
        return ""
    return f" ({show_ratio(gain.low)} to {show_ratio(gain.high)})"


def _times(share: float) -> str:
    """A share more as a factor: 1.5 more is 2.5 times."""
    factor = 1 + share
    return f"{factor:,.0f}" if factor >= 9.95 else f"{factor:.2g}"


def _with_interval(metric: Metric) -> str:
    if metric.interval is None:
        single = "one run" if metric.n == 1 else ""
        few = why_no_interval(metric) if metric.lacks_repeats else single
        return f"{show(metric)} ({few})" if few else show(metric)
    low, high = (show_value(end, metric.unit, bare_rate=True) for end in metric.interval)
    return f"{show(metric)} ({low} to {high})"


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
    ahead = f"{best} is ahead of {second} by {_ahead(suits)}"
    if suits.lead >= TWICE:
        ahead = f"{best} has {times(suits.lead)} what {second} has"
    return f"{call}: {ahead}, {why}"


def _capacity(suits: Suits, second: str) -> str:
    kind = suits.metric.removesuffix("_tb")
    size = f"{terabytes(suits.terabytes or 0.0)} {kind}"
    more = (
        f"{times(suits.lead)} that of {second}"
        if suits.lead >= TWICE
        else f"{_ahead(suits)} more than {second}"
    )
    return f"with {size}{_each(suits)}, {more}"


def _performance(suits: Suits, second: str) -> str:
    more = f"{times(suits.lead)} as fast as {second}"
    if suits.lead < TWICE:
        more = f"{_ahead(suits)} faster than {second}"
    return f"{more} by best rates{_over(suits)}"


def _value(suits: Suits, second: str) -> str:
    rates = f"with best rates{_each(suits)}"
    if suits.lead < TWICE:
        return f"{rates} {_ahead(suits)} above those of {second}{_over(suits)}"
    return f"{rates} {times(suits.lead)} those of {second}{_over(suits)}"


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


def _ahead(suits: Suits) -> str:
    """By how much the best leads."""
    return percent(suits.lead - 1)


def _without_cost(suits: Suits) -> str:
    """Where costs would weigh in, and are not known of all in one currency."""
    weighs = suits.need in (Need.CAPACITY, Need.BALANCE)
    return (
        "; not all tell a cost in one currency, so costs do not count"
        if weighs and not suits.per
        else ""
    )


def without_repeats(sentences: Iterable[Sentence]) -> Iterator[Sentence]:
    """The sentences, each text once."""
    texts: set[str] = set()
    for sentence in sentences:
        if sentence.text not in texts:
            texts.add(sentence.text)
            yield sentence


FIRST: Final = 8
"""Sentences that stand open: what fits a screen. The others are folded below them."""

LINKS_MOST: Final = 4
"""Runs that a sentence leads to; more are counted."""


@dataclass(frozen=True, slots=True)
class LinkedSentence:
    """A sentence; `links` are the anchors and names of its first runs, `more` counts the others."""

    text: str
    links: tuple[tuple[str, str], ...]
    more: str


def linked_sentences(
    brief: Brief,
) -> tuple[LinkedSentence, ...]:
    """Every sentence that the results support, what decides first."""
    study, points = brief.study, brief.points
    titles = names_among_several(study)
    names = {run.key: whose_run(run, titles) for run in brief.results}
    every = findings(study, points, gains(study, points), brief.watched)
    sentences = without_repeats(sentences_on(study, every))
    return tuple(_linked(sentence, names, brief.anchors) for sentence in sentences)


def doubt_of_all(
    sentences: tuple[LinkedSentence, ...],
) -> tuple[tuple[LinkedSentence, ...], str]:
    """The sentences without the doubt that all of several end with, and that doubt once."""
    for level, of_all in _OF_ALL.items():
        end = LEVELS[level]
        if len(sentences) > 1 and all(sentence.text.endswith(end) for sentence in sentences):
            shorter = (replace(item, text=item.text.removesuffix(end)) for item in sentences)
            return tuple(shorter), of_all
    return sentences, ""


_OF_ALL: Final = {
    Level.INDICATIVE: "All of these are indicative only.",
    Level.INVALID: "No run of these is valid.",
}


def _linked(sentence: Sentence, names: Anchors, anchors: Anchors) -> LinkedSentence:
    keys = list(dict.fromkeys(key for key in sentence.runs if key in anchors))
    links = tuple((anchors[key], names[key]) for key in keys[:LINKS_MOST])
    hidden = len(keys) - len(links)
    return LinkedSentence(
        sentence.text, links, f"and {count(hidden, 'more run')}" if hidden else ""
    )
