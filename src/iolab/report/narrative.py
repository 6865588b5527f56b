"""Findings as sentences: plain English, numbers rounded as everywhere, the runs behind each.

No sentence without a finding. What an interval does not support is not said as if it were so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import singledispatch
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from iolab.analysis.findings import (
    CLOSE_RATIO,
    BestPointFinding,
    BottleneckFinding,
    BuyerNeed,
    CrossoverFinding,
    Finding,
    KneeFinding,
    LargestSpeedupFinding,
    PerUnitFinding,
    Recommendation,
    WinLossFinding,
)
from iolab.analysis.ranked_findings import all_findings, runner_up_and_leader_ids
from iolab.core.metric import Metric, VerdictLevel
from iolab.core.metric_spec import BetterDirection, metric_spec
from iolab.core.run import RunKey
from iolab.core.study import Study
from iolab.core.workload import Direction
from iolab.record import Record
from iolab.report.bottleneck import bottleneck_sentence
from iolab.report.choice import kind_weights_text
from iolab.report.matrix import WorkloadRow, workload_rows
from iolab.report.numbers import (
    MAYBE_CHANCE,
    NOT_DISTINGUISHABLE,
    axis_name_text,
    metric_value_text,
    missing_interval_reason,
    quotient_value_text,
    ratio_text,
    value_text,
)
from iolab.report.phrases import (
    LEVEL_SENTENCES,
    ConfigurationNames,
    metric_phrase,
    point_place_phrase,
    run_with_configuration_text,
    terabytes_text,
    title_by_configuration_if_several,
)
from iolab.stats.comparison import ComparisonVerdict
from iolab.text import counted_noun, list_text, percent_text

if TYPE_CHECKING:
    from iolab.report.brief import Brief
    from iolab.report.charts.series import RunAnchors

INDISTINGUISHABLE_SHOWN: Final = 3
"""Places that is not distinguishable as the best that are named; more are counted."""

NEGLIGIBLE_LEAD: Final = 0.0005
"""A lead that would be shown as none is none."""

_NEED_PREFIXES: Final = {
    BuyerNeed.CAPACITY: "For capacity",
    BuyerNeed.PERFORMANCE: "For performance",
    BuyerNeed.VALUE: "For performance per cost",
    BuyerNeed.BALANCE: "For all-round use",
}

SENTENCES_SHOWN: Final = 6
"""Sentences that stand open: what fits a screen. The others are folded below them."""

LINKS_MAX: Final = 4
"""Runs that a sentence leads to; more are counted."""

_COMMON_DOUBT_SENTENCES: Final = {
    VerdictLevel.INDICATIVE: "All of these are indicative only.",
    VerdictLevel.INVALID: "No run of these is valid.",
}


class FindingSentence(Record):
    """A statement for people and the finding that it is made of, with its runs."""

    text: str
    finding: Finding

    @property
    def runs(self) -> tuple[RunKey, ...]:
        """The runs that it rests on."""
        return self.finding.run_keys


def configuration_names(study: Study) -> ConfigurationNames:
    """The names that sentences on a study use."""
    return ConfigurationNames(study.configuration_titles, mixed_workload_ids(study))


def mixed_workload_ids(study: Study) -> frozenset[str]:
    """The workloads that read and write."""
    return frozenset(
        workload.id
        for workload in study.workloads
        if {Direction.READ, Direction.WRITE} <= set(workload.job.data_directions)
    )


def sentences_for_findings(
    study: Study, findings: Iterable[Finding], names: ConfigurationNames | None = None
) -> tuple[FindingSentence, ...]:
    """A sentence for each finding, in their order; prices are told of the first of each rank.

    `names` are the study's own unless others are given.
    """
    names = names or configuration_names(study)
    kept = [finding for finding in findings if not _is_table_only(finding, names)]
    return tuple(
        FindingSentence(sentence, finding)
        for finding in kept
        if (sentence := finding_sentence(finding, names))
    )


def _is_table_only(finding: Finding, names: ConfigurationNames) -> bool:
    """Prices that no interval supports, and of all but the best, stand in tables alone."""
    if not isinstance(finding, PerUnitFinding):
        return False
    return (
        not names.has_several
        or finding.rank > 1
        or finding.ranked_count < 2
        or not finding.is_certain
    )


@singledispatch
def finding_sentence(finding: object, names: ConfigurationNames) -> str:
    """The sentence on a finding."""
    raise TypeError(f"{type(finding).__name__} is no finding about {', '.join(names.titles)}")


@finding_sentence.register
def _best_point_sentence(best: BestPointFinding, names: ConfigurationNames) -> str:
    is_only = best.invalid_point_count and best.point_count == 1
    alone = "The only usable figure" if is_only else "The best"
    who = f"{names.title(best.configuration)} does its best" if names.has_several else alone
    which = "that are not invalid" if best.invalid_point_count else "measured"
    of = f" of {best.point_count} points {which}" if best.point_count > 1 else ""
    at = f" at {point_place_phrase(best.axis_values)}" if best.axis_values else ""
    verb = "with" if names.has_several else "is"
    text = f"{best.workload}: {who} {verb} {_metric_with_interval_text(best.value)}{at}"
    end = "lowest" if metric_spec(best.metric).better is BetterDirection.LOWER else "highest"
    text += f", the {end}{of}" if of else ""
    if best.indistinguishable_axis_values and best.value.low is not None:
        others = list_text(
            [point_place_phrase(axis) for axis in best.indistinguishable_axis_values],
            INDISTINGUISHABLE_SHOWN,
        )
        text += f"; {NOT_DISTINGUISHABLE} from {others}"
    if best.left_out_repeats_text:
        text += f"; {best.left_out_repeats_text}"
    return f"{text}.{LEVEL_SENTENCES[best.verdict_level]}"


@finding_sentence.register
def _largest_speedup_sentence(gain: LargestSpeedupFinding, names: ConfigurationNames) -> str:
    more = _gain_phrase_before_loser(gain)
    is_of_all = gain.metric.startswith("lat_ns_") and gain.workload in names.mixed_workloads
    which = ", reads and writes together" if is_of_all else ""
    at = f" at {point_place_phrase(gain.axis_values)}" if gain.axis_values else ""
    of = (
        f", the largest sure gain of {counted_noun(gain.comparison_count, 'point')}"
        if gain.comparison_count > 1
        else ""
    )
    return (
        f"{gain.workload}: {names.title(gain.candidate)} has {more} "
        f"{names.title(gain.baseline)}{at}{which}{of}.{LEVEL_SENTENCES[gain.verdict_level]}"
    )


@finding_sentence.register
def _verdict_counts_sentence(finding: WinLossFinding, names: ConfigurationNames) -> str:
    words = {
        ComparisonVerdict.BETTER: "better in {}",
        ComparisonVerdict.WORSE: "worse in {}",
        ComparisonVerdict.SAME: "the same in {}",
        ComparisonVerdict.INCONCLUSIVE: NOT_DISTINGUISHABLE + " in {}",
    }
    unsupported = finding.significant_only_alone_count + sum(
        number for _, number in finding.far_apart_counts_by_repeat_count
    )
    counts = [
        (verdict, number - unsupported * (verdict is ComparisonVerdict.INCONCLUSIVE))
        for verdict, number in finding.verdict_counts
    ]
    parts = [words[verdict].format(number) for verdict, number in counts if number]
    if finding.significant_only_alone_count:
        parts.append(f"apart in {finding.significant_only_alone_count}, which {MAYBE_CHANCE}")
    parts += [
        f"more than {percent_text(CLOSE_RATIO - 1)} apart but not supported by "
        f"{counted_noun(repeats, 'repeat')} in {number}"
        for repeats, number in finding.far_apart_counts_by_repeat_count
    ]
    total = sum(number for _, number in finding.verdict_counts)
    if not parts or total + finding.skipped_count == 1:
        return ""  # of a single point the matrix says it
    skipped = (
        f" {counted_noun(finding.skipped_count, 'further point')} could not be compared."
        if finding.skipped_count
        else ""
    )
    return (
        f"{names.title(finding.candidate)} compared with {names.title(finding.baseline)} in "
        f"{metric_phrase(finding.metric)} at {counted_noun(total, 'point')}: "
        f"{list_text(parts)}.{skipped}"
    )


@finding_sentence.register
def _crossover_sentence(finding: CrossoverFinding, names: ConfigurationNames) -> str:
    also = f", {point_place_phrase(finding.fixed_axis_values)}" if finding.fixed_axis_values else ""
    name = axis_name_text(finding.axis_name)
    below = (
        f"{'up to' if finding.leads_at_all_lower_loads else 'at'} {name} {finding.last_low_load}"
    )
    above = (
        f"from {name} {finding.first_high_load} on"
        if finding.leads_at_all_higher_loads
        else f"at {name} {finding.first_high_load}"
    )
    return (
        f"{finding.workload}{also}: {names.title(finding.low_load_leader)} leads {below}, by "
        f"{percent_text(finding.low_load_relative_lead)} there, and "
        f"{names.title(finding.high_load_leader)} {above}, by "
        f"{percent_text(finding.high_load_relative_lead)} there."
        f"{LEVEL_SENTENCES[finding.verdict_level]}"
    )


@finding_sentence.register
def _knee_sentence(finding: KneeFinding, names: ConfigurationNames) -> str:
    whose = f" of {names.title(finding.configuration)}" if names.has_several else ""
    also = f", {point_place_phrase(finding.fixed_axis_values)}" if finding.fixed_axis_values else ""
    name = axis_name_text(finding.axis_name)
    rises = "rises" if finding.rate_ratio >= 1 else "falls"
    by = percent_text(abs(finding.rate_ratio - 1))
    doubt = (
        ", by single runs"
        if finding.has_single_runs
        else ""
        if finding.is_certain
        else ", with low confidence"
    )
    return (
        f"{finding.workload}{also}: the latency{whose} bends at {name} {finding.load}. From "
        "there to "
        f"{finding.next_load} the rate {rises} by {by} and the mean latency grows by "
        f"{percent_text(finding.latency_ratio - 1)}{doubt}.{LEVEL_SENTENCES[finding.verdict_level]}"
    )


@finding_sentence.register
def _most_per_unit_sentence(finding: PerUnitFinding, names: ConfigurationNames) -> str:
    amount = (
        terabytes_text(finding.value)
        if finding.unit == "TB"
        else quotient_value_text(Metric(finding.value, finding.unit))
    )
    kind = f"{finding.workload}: " if finding.workload else ""
    of = "" if finding.workload else f" of {finding.metric.removesuffix('_tb')} capacity"
    return (
        f"{kind}{names.title(finding.configuration)} gives the most per {finding.divisor_unit}, "
        f"{amount}{of}, of {counted_noun(finding.ranked_count, 'configuration')}."
        f"{LEVEL_SENTENCES[finding.verdict_level] if finding.verdict_level is not None else ''}"
    )


@finding_sentence.register
def _bottleneck_finding_sentence(finding: BottleneckFinding, names: ConfigurationNames) -> str:
    return bottleneck_sentence(finding, names)


@finding_sentence.register
def _recommendation_finding_sentence(
    recommendation: Recommendation, names: ConfigurationNames
) -> str:
    return recommendation_sentence(recommendation, names)


def _gain_phrase_before_loser(gain: LargestSpeedupFinding) -> str:
    """How both compare with the interval: `1.27× (1.21× to 1.33×) the IOPS of`.

    Of what is better where it is lower: `76 % (73 to 79 %) lower p99 latency than`.
    """
    what = metric_phrase(gain.metric)
    ends = () if gain.low is None or gain.high is None else sorted((gain.low, gain.high))
    if metric_spec(gain.metric).better is BetterDirection.LOWER:
        span = " to ".join(map(percent_text, ends)).replace(" %", "", bool(ends))
        return f"{percent_text(gain.relative_gain)}{f' ({span})' if ends else ''} lower {what} than"
    span = " to ".join(ratio_text(1 + end) for end in ends)
    return f"{ratio_text(1 + gain.relative_gain)}{f' ({span})' if ends else ''} the {what} of"


def _metric_with_interval_text(metric: Metric) -> str:
    if metric.displayable_interval is None:
        single = "one run" if metric.n == 1 else ""
        few = missing_interval_reason(metric) if metric.has_uninformative_interval else single
        return f"{metric_value_text(metric)} ({few})" if few else metric_value_text(metric)
    low, high = (
        value_text(end, metric.unit, is_rate_unit_omitted=True)
        for end in metric.displayable_interval
    )
    interval = f" ({low} to {high})" if low != high else ""
    return f"{metric_value_text(metric)}{interval}"


def recommendation_sentence(recommendation: Recommendation, names: ConfigurationNames) -> str:
    """The sentence on a need; where intervals do not tell, that is what it says."""
    best, second = names.title(recommendation.configuration), names.title(recommendation.runner_up)
    level = (
        LEVEL_SENTENCES[recommendation.verdict_level]
        if recommendation.verdict_level is not None
        else ""
    )
    if recommendation.leader_if_workloads_weigh_equally:
        leader = names.title(recommendation.leader_if_workloads_weigh_equally)
        choice = f", {_lead_by_weighting_text(recommendation, best, leader)}"
    elif recommendation.is_certain:
        choice = f": {best}, {_NEED_TEXTS[recommendation.need](recommendation, second)}"
    else:
        choice = f", {_undecided_recommendation_text(recommendation, best, second)}"
    return f"{_NEED_PREFIXES[recommendation.need]}{choice}.{level}"


def _lead_by_weighting_text(
    recommendation: Recommendation, best_title: str, leader_title: str
) -> str:
    """Who leads by kinds of performance, and who by workloads, where these are not the same."""
    of = _UNDECIDED_FIGURES[recommendation.need](recommendation)
    factor = ratio_text(recommendation.lead_factor_if_workloads_weigh_equally)
    where = (
        f"each is weakest of {counted_noun(len(recommendation.workloads), 'workload')}"
        if recommendation.need is BuyerNeed.BALANCE
        else "each workload counts the same"
    )
    return (
        f"which leads depends on the weighing: {best_title} by "
        f"{ratio_text(recommendation.lead_factor)}"
        f"{of}, {leader_title} by {factor} where {where}"
    )


def _undecided_recommendation_text(
    recommendation: Recommendation, best_title: str, runner_up_title: str
) -> str:
    if recommendation.lead_factor < 1 + NEGLIGIBLE_LEAD:
        return f"{best_title} and {runner_up_title} are alike"
    is_close = recommendation.lead_factor <= CLOSE_RATIO
    undecided = NOT_DISTINGUISHABLE if is_close else "not decided"
    call = "too few runs to call" if recommendation.has_single_runs else undecided
    why = (
        "but by single runs"
        if recommendation.has_single_runs
        else "but their intervals do not decide it"
    )
    of = _UNDECIDED_FIGURES.get(recommendation.need)
    ratio = f"{ratio_text(recommendation.lead_factor)} what {runner_up_title} has"
    ahead = f"{best_title} has {ratio}{of(recommendation) if of else ''}"
    return f"{call}: {ahead}, {why}"


def _capacity_reason_text(recommendation: Recommendation, runner_up_title: str) -> str:
    kind = recommendation.metric.removesuffix("_tb")
    size = f"{terabytes_text(recommendation.terabytes or 0.0)} {kind}"
    more = f"{ratio_text(recommendation.lead_factor)} that of {runner_up_title}"
    return f"with {size}{_per_cost_suffix(recommendation)}, {more}"


def _performance_reason_text(recommendation: Recommendation, runner_up_title: str) -> str:
    more = f"with best rates {ratio_text(recommendation.lead_factor)} those of {runner_up_title}"
    return f"{more}{_over_workloads_suffix(recommendation)}"


def _value_for_money_reason_text(recommendation: Recommendation, runner_up_title: str) -> str:
    more = f"{ratio_text(recommendation.lead_factor)} those of {runner_up_title}"
    rates = f"with best rates{_per_cost_suffix(recommendation)}"
    return f"{rates} {more}{_over_workloads_suffix(recommendation)}"


def _balance_reason_text(recommendation: Recommendation, runner_up_title: str) -> str:
    weakest = min(recommendation.need_dimensions, key=lambda side: side.share_of_best)
    least = percent_text(weakest.share_of_best / recommendation.lead_factor)
    if weakest.share_of_best >= 1:
        names = list_text([side.name for side in recommendation.need_dimensions])
        best = f"the best in {names}{_per_cost_suffix(recommendation)}"
    else:
        parts = [
            f"{percent_text(side.share_of_best)} of the best {side.name}"
            for side in recommendation.need_dimensions
        ]
        best = f"with {list_text(parts)}{_per_cost_suffix(recommendation)}"
    return f"{best}; {runner_up_title} has {least} of the best where it is weakest"


_NEED_TEXTS: Final = {
    BuyerNeed.CAPACITY: _capacity_reason_text,
    BuyerNeed.PERFORMANCE: _performance_reason_text,
    BuyerNeed.VALUE: _value_for_money_reason_text,
    BuyerNeed.BALANCE: _balance_reason_text,
}


def _in_best_rates_suffix(recommendation: Recommendation) -> str:
    return (
        f" in best rates{_per_cost_suffix(recommendation)}{_over_workloads_suffix(recommendation)}"
    )


def _where_weakest_suffix(recommendation: Recommendation) -> str:
    names = list_text([side.name for side in recommendation.need_dimensions])
    return f" where each is weakest of {names}{_per_cost_suffix(recommendation)}"


_UNDECIDED_FIGURES: Final = {
    BuyerNeed.PERFORMANCE: _in_best_rates_suffix,
    BuyerNeed.VALUE: _in_best_rates_suffix,
    BuyerNeed.BALANCE: _where_weakest_suffix,
}
"""Of what an undecided lead is."""


def _per_cost_suffix(recommendation: Recommendation) -> str:
    return f" per {recommendation.cost_divisor_text}" if recommendation.cost_divisor_text else ""


def _over_workloads_suffix(recommendation: Recommendation) -> str:
    several = len(recommendation.workloads) > 1
    kinds = recommendation.performance_kinds
    of = f", {kind_weights_text(kinds)}" if len(kinds) > 1 else ""
    mean = f" (geometric mean{of})" if several else ""
    return f" over {counted_noun(len(recommendation.workloads), 'workload')}{mean}"


def distinct_sentences(sentences: Iterable[FindingSentence]) -> Iterator[FindingSentence]:
    """The sentences, each text once."""
    texts: set[str] = set()
    for sentence in sentences:
        if sentence.text not in texts:
            texts.add(sentence.text)
            yield sentence


class LinkedSentence(Record):
    """A sentence.

    `links` are the anchors and names of its first runs, `hidden_links_text` counts the others.
    """

    text: str
    links: tuple[tuple[str, str], ...]
    hidden_links_text: str


def linked_finding_sentences(
    brief: Brief,
) -> tuple[LinkedSentence, ...]:
    """Every sentence that the results support, what decides first."""
    study, points = brief.study, brief.points
    titles = title_by_configuration_if_several(study)
    names = {run.key: run_with_configuration_text(run, titles) for run in brief.results}
    pair = runner_up_and_leader_ids(brief.best_points)
    every = [
        finding
        for finding in all_findings(
            study,
            points,
            brief.gains_by_pair.gains_over_first(),
            brief.resources_by_run_without_noise_runs,
            brief.gains_by_pair.gains(*pair) if pair else None,
        )
        if not _is_told_by_matrix(finding)
    ]
    labels = {name: style.label for name, style in brief.series_styles.items()}
    sentences = distinct_sentences(
        sentences_for_findings(study, every, ConfigurationNames(labels, mixed_workload_ids(study)))
    )
    rows = {best.workload: row for row in workload_rows(brief.best_figures) for best in row.figures}
    noise = {best.run_key: best.noise_text for best in brief.best_figures if best.noise_text}
    doubted = (
        _with_lead_doubt(_best_sentence_reworded_if_noise(each, noise), rows) for each in sentences
    )
    return tuple(
        _sentence_with_run_links(_with_workload_title(sentence, study), names, brief.run_anchors)
        for sentence in doubted
    )


def _best_sentence_reworded_if_noise(
    sentence: FindingSentence, noise_text_by_run_key: Mapping[RunKey | None, str]
) -> FindingSentence:
    """The sentence on a best figure that can be no more than noise: as that, and as no best."""
    best = sentence.finding
    if not isinstance(best, BestPointFinding):
        return sentence
    noise = next(
        (noise_text_by_run_key[key] for key in best.run_keys if key in noise_text_by_run_key), None
    )
    if noise is None:
        return sentence
    figure = _metric_with_interval_text(best.value)
    text = (
        f"{best.workload}: the highest figure, {figure} at {point_place_phrase(best.axis_values)}"
    )
    return replace(
        sentence, text=f"{text}, is no best: {noise}.{LEVEL_SENTENCES[best.verdict_level]}"
    )


def _with_lead_doubt(
    sentence: FindingSentence, row_by_workload: Mapping[str, WorkloadRow]
) -> FindingSentence:
    """A supported gain with why it makes no winner of its workload, where that is not certain."""
    gain = sentence.finding
    if not isinstance(gain, LargestSpeedupFinding):
        return sentence
    row = row_by_workload.get(gain.workload)
    if row is None or not row.undecided_reason:
        return sentence
    level = LEVEL_SENTENCES[gain.verdict_level]
    text = sentence.text.removesuffix(level).removesuffix(".")
    doubt = f"which is the best in this workload is not certain ({row.undecided_reason})"
    return replace(sentence, text=f"{text}; {doubt}.{level}")


def _is_told_by_matrix(finding: Finding) -> bool:
    """Whether it says no more than the matrix: the best of a single point."""
    return (
        isinstance(finding, BestPointFinding)
        and finding.point_count == 1
        and not finding.left_out_repeats_text
    )


def _with_workload_title(sentence: FindingSentence, study: Study) -> FindingSentence:
    """The sentence with the title of the workload whose id it begins with."""
    workload = getattr(sentence.finding, "workload", "")
    title = study.workload_titles.get(workload, workload)
    if not workload or not sentence.text.startswith(workload):
        return sentence
    return replace(sentence, text=f"{title}{sentence.text.removeprefix(workload)}")


def factor_out_common_doubt(
    sentences: tuple[LinkedSentence, ...],
) -> tuple[tuple[LinkedSentence, ...], str]:
    """The sentences without the doubt that all of several end with, and that doubt once."""
    for level, of_all in _COMMON_DOUBT_SENTENCES.items():
        end = LEVEL_SENTENCES[level]
        if len(sentences) > 1 and all(sentence.text.endswith(end) for sentence in sentences):
            shorter = (replace(item, text=item.text.removesuffix(end)) for item in sentences)
            return tuple(shorter), of_all
    return sentences, ""


def _sentence_with_run_links(
    sentence: FindingSentence, run_names: RunAnchors, run_anchors: RunAnchors
) -> LinkedSentence:
    keys = _run_keys_one_of_each_point_first(key for key in sentence.runs if key in run_anchors)
    links = tuple((run_anchors[key], run_names[key]) for key in keys[:LINKS_MAX])
    hidden = len(keys) - len(links)
    return LinkedSentence(
        sentence.text, links, f"and {counted_noun(hidden, 'more run')}" if hidden else ""
    )


def _run_keys_one_of_each_point_first(run_keys: Iterable[RunKey]) -> list[RunKey]:
    """The runs, so that the first of them are of as many points as a statement is about."""
    keys = list(dict.fromkeys(run_keys))
    places: Counter[str] = Counter()
    turns = {}
    for key in keys:
        turns[key] = places[key[0]]
        places[key[0]] += 1
    return sorted(keys, key=turns.__getitem__)
