"""What sentences on findings are made of: names of configurations, places, shares, lists."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from msgspec import field
from msgspec.structs import replace

from iolab.core.configuration import latency_limit_metric_text
from iolab.core.metric import (
    CAUSES,
    CheckResult,
    Metric,
    RunResult,
    VerdictLevel,
    worst_verdict_level,
)
from iolab.core.metric_spec import OPS_PER_S, is_known_metric, metric_spec
from iolab.core.run import Point
from iolab.core.study import Study
from iolab.core.workload import Workload
from iolab.record import Record
from iolab.report.numbers import (
    axis_name_text,
    axis_values_text,
    json_object_of_record,
    metric_value_text,
    point_text,
    value_text,
)
from iolab.report.sentence_ranges import MergedSentence, merge_sentences
from iolab.study.schedule import SearchSpace
from iolab.text import counted_noun, list_text, percent_text
from iolab.units import format_ns

if TYPE_CHECKING:
    from iolab.analysis.findings import (
        ListedLoadFinding,
        LoadCurve,
        LoadFindings,
        MaxLoadFinding,
        PeakSearchFinding,
    )
    from iolab.stats.curve import CurvePoint, LoadEstimate

NAMES_SHOWN: Final = 3
"""Runs named with an objection; more are counted: the table of runs has them."""

IOPS_UNIT: Final = "1/s"

_SHARE_IN_PERCENT: Final = re.compile(r"[\d.,]+ % of the run's( own)?\.$")

LEVEL_SENTENCES: Final = {
    VerdictLevel.VALID: "",
    VerdictLevel.INDICATIVE: " This is indicative only.",
    VerdictLevel.INVALID: " No run of it is valid.",
}
"""What a sentence ends with, by the worst verdict behind it."""


class Objection(Record, dict=True):
    """One check's objection at one level, and the runs that it was made to.

    `messages` are its sentences, each once in the order of the runs, and `equivalent_codes` are
    other checks that say the same of the same runs. Of several
    configurations `configuration_titles` are those of all by id, and runs are named with theirs.
    `less_affected_runs` are those to which it objects at a lesser level.
    """

    code: str
    verdict_level: VerdictLevel
    messages: tuple[str, ...]
    runs: tuple[RunResult, ...]
    session_run_count: int
    configuration_titles: Mapping[str, str] = field(default_factory=dict)
    equivalent_codes: tuple[str, ...] = ()
    less_affected_runs: tuple[RunResult, ...] = ()

    @property
    def runs_of_any_level(self) -> tuple[RunResult, ...]:
        """The runs to which it objects at any level."""
        return (*self.runs, *self.less_affected_runs)

    @property
    def codes_text(self) -> str:
        """The checks that say it, as a list for people."""
        return ", ".join((self.code, *self.equivalent_codes))

    @cached_property
    def _merged_message(self) -> MergedSentence:
        return merge_sentences(self.messages)

    @property
    def message(self) -> str:
        """The sentence, with the range of each number over the runs."""
        return self._merged_message.text

    @property
    def differing_messages_suffix(self) -> str:
        """What is added to the runs where the sentence of some is another: of how many it is."""
        own = len(self.runs_of_message)
        return "" if own == len(self.runs) else f" (as told here in {own})"

    @cached_property
    def runs_of_message(self) -> tuple[RunResult, ...]:
        """The runs whose own sentence it is."""
        covered = self._merged_message.covered_sentences
        return tuple(
            run
            for run in self.runs
            if any(
                check.code == self.code and _check_result_message(check) in covered
                for check in run.verdict.objections
            )
        )

    @property
    def concerns_every_run(self) -> bool:
        """Whether every run of the session met it."""
        return len(self.runs) == self.session_run_count


def _check_result_message(check: CheckResult) -> str:
    """A check's sentence; a small share of the run's own I/O as times it, as larger ones are.

    Sessions have it in per cent, cut at 100, that were judged before all were told alike.
    """
    share = check.evidence.get("share_of_run")
    if not isinstance(share, int | float):
        return check.message
    return _SHARE_IN_PERCENT.sub(f"{share:.3g} times the run's own.", check.message)


def merge_objections(
    results: Sequence[RunResult], configuration_titles: Mapping[str, str] = MappingProxyType({})
) -> tuple[Objection, ...]:
    """The objections over all runs: invalid before indicative, then the most frequent first.

    Those that others follow from stand before them.

    `configuration_titles` name configurations by id; where they do not, the id does.
    """
    grouped: dict[tuple[VerdictLevel, str], list[tuple[RunResult, CheckResult]]] = {}
    lesser: dict[str, list[RunResult]] = {}
    worst: dict[str, VerdictLevel] = {}
    every_objection = [
        (result, check, check.level)
        for result in results
        for check in result.verdict.objections
        if check.level is not None
    ]
    for _, check, level in every_objection:
        worst[check.code] = worst_verdict_level((level, worst.get(check.code, level)))
    for result, check, level in every_objection:
        if level is worst[check.code]:
            grouped.setdefault((level, check.code), []).append((result, check))
        else:
            lesser.setdefault(check.code, []).append(result)
    owners = dict.fromkeys(result.configuration for result in results)
    names = (
        {owner: configuration_titles.get(owner, owner) for owner in owners}
        if len(owners) > 1
        else {}
    )
    every = [
        Objection(
            code=code,
            verdict_level=level,
            messages=tuple(dict.fromkeys(_check_result_message(check) for _, check in hits)),
            runs=tuple(result for result, _ in hits),
            session_run_count=len(results),
            configuration_titles=names,
            less_affected_runs=tuple(lesser.get(code, ())),
        )
        for (level, code), hits in grouped.items()
    ]
    ordered = sorted(
        every,
        key=lambda objection: (
            -objection.verdict_level.rank,
            objection.code not in CAUSES,
            -len(objection.runs),
            objection.code,
        ),
    )
    same: dict[tuple[VerdictLevel, tuple[str, ...], tuple[tuple[str, int], ...]], Objection] = {}
    for objection in ordered:
        key = (
            objection.verdict_level,
            objection.messages,
            tuple(run.key for run in objection.runs_of_any_level),
        )
        first = same.get(key)
        same[key] = (
            objection
            if first is None
            else replace(first, equivalent_codes=(*first.equivalent_codes, objection.code))
        )
    return tuple(same.values())


def objection_runs_text(objection: Objection) -> str:
    """To which runs an objection was made, in words: their names where they are few.

    Those that the sentence is of stand first, and those of a lesser level last.
    """
    text = f"{_affected_runs_text(objection)}{objection.differing_messages_suffix}"
    if not objection.less_affected_runs:
        return text
    titles = objection.configuration_titles
    places = _point_texts_with_configurations(objection.less_affected_runs, titles)
    where = f": {'; '.join(places)}" if len(places) <= NAMES_SHOWN else ""
    level = worst_verdict_level(
        check.level
        for run in objection.less_affected_runs
        for check in run.verdict.objections
        if check.code == objection.code and check.level is not None
    )
    return f"{text}; {level.value} in {len(objection.less_affected_runs)} more{where}"


def _affected_runs_text(objection: Objection) -> str:
    if objection.concerns_every_run:
        return (
            f"all {counted_noun(objection.session_run_count, 'run')}"
            if objection.session_run_count > 1
            else "the only run"
        )
    runs = f"{len(objection.runs)} of {counted_noun(objection.session_run_count, 'run')}"
    points: dict[tuple[str, str], list[RunResult]] = {}
    others = [run for run in objection.runs if run not in objection.runs_of_message]
    for run in (*objection.runs_of_message, *others):
        points.setdefault((run.configuration, run.digest), []).append(run)
    titles = objection.configuration_titles
    if len(points) > NAMES_SHOWN:
        places = _point_texts_with_configurations(objection.runs, titles)
        return f"{runs}: {'; '.join(places)}" if len(places) <= NAMES_SHOWN else runs
    has_repeats = any(run.repeat > 1 for run in objection.runs)
    places = tuple(
        _point_with_repeats_text(own, titles, names_first_repeat=has_repeats)
        for own in points.values()
    )
    return f"{runs}: {'; '.join(places)}"


def _point_texts_with_configurations(
    runs: Sequence[RunResult], configuration_titles: Mapping[str, str]
) -> tuple[str, ...]:
    """The points of these runs, those of one load once, with the configurations if not all."""
    owners: dict[str, dict[str, None]] = {}
    for run in runs:
        owners.setdefault(point_text(run.workload, run.axis_values), {})[run.configuration] = None
    return tuple(
        f"{place} of {list_text([configuration_titles[name] for name in own])}"
        if len(own) < len(configuration_titles)
        else place
        for place, own in owners.items()
    )


def _point_with_repeats_text(
    runs: Sequence[RunResult],
    configuration_titles: Mapping[str, str],
    *,
    names_first_repeat: bool,
) -> str:
    """The only run of a point, or the point with how many of its repeats."""
    if len(runs) == 1:
        return run_with_configuration_text(
            runs[0], configuration_titles, names_first_repeat=names_first_repeat
        )
    return (
        f"{run_with_configuration_text(replace(runs[0], repeat=1), configuration_titles)} "
        f"({counted_noun(len(runs), 'repeat')})"
    )


def run_with_configuration_text(
    result: RunResult,
    configuration_titles: Mapping[str, str],
    *,
    names_first_repeat: bool = False,
) -> str:
    """A run's name, with its configuration where there are titles: these are of several, by id."""
    run_name = result_run_name_text(result)
    if names_first_repeat and result.repeat == 1:
        run_name += ", repeat 1"
    configuration = configuration_titles.get(result.configuration)
    return f"{run_name} of {configuration}" if configuration else run_name


def run_failure_sentence(result: RunResult, configuration_titles: Mapping[str, str]) -> str:
    """That a run did not end well, with its reason where there is one."""
    return (
        f"{run_with_configuration_text(result, configuration_titles)} failed or was interrupted. "
        f"{result.failure or ''} {result.failure_hint or ''}"
    ).strip()


def title_by_configuration_if_several(study: Study) -> dict[str, str]:
    """The titles of configurations by id, empty where there is one and no need to tell."""
    return study.configuration_titles if len(study.configurations) > 1 else {}


def id_by_configuration_if_several(results: Iterable[RunResult]) -> dict[str, str]:
    """The same of results alone, by the ids themselves."""
    found = {result.configuration: result.configuration for result in results}
    return found if len(found) > 1 else {}


def result_run_name_text(result: RunResult) -> str:
    """A run in text: `rand-read-4k, iodepth 8, repeat 2`, with the repeat from the second on."""
    return run_name_text(result.workload, result.axis_values, result.repeat)


def run_name_text(
    workload_id: str, axis_values: tuple[tuple[str, int | str], ...], repeat: int
) -> str:
    """The same of a run that has no result yet."""
    name = point_text(workload_id, axis_values)
    return f"{name}, repeat {repeat}" if repeat > 1 else name


def sentences_of_load_findings(findings: LoadFindings) -> Iterator[str]:
    """A sentence or two for each curve, peak and highest load."""
    for curve in findings.curves:
        yield _curve_sentence(curve)
    for peak in findings.peaks:
        yield _peak_sentence(peak)
    for load in findings.max_loads:
        yield _max_load_sentence(load)
    for listed in findings.listed_loads:
        yield _listed_load_sentence(listed)


def document_of_load_findings(findings: LoadFindings) -> dict[str, Any]:
    """The findings as JSON has them."""
    return {
        "curves": [_curve_document(curve) for curve in findings.curves],
        "peaks": [_peak_document(peak) for peak in findings.peaks],
        "max_loads": [_max_load_document(load) for load in findings.max_loads],
        "listed_loads": [_listed_load_document(load) for load in findings.listed_loads],
    }


def _search_title(search: SearchSpace) -> str:
    fixed = axis_values_text(search.fixed_axis_values)
    return f"{search.workload.id}{f' {fixed}' if fixed else ''} ({search.configuration})"


def _curve_sentence(curve: LoadCurve) -> str:
    measured = sum(point.is_measured for point in curve.points)
    guessed = len(curve.points) - measured
    parts = [f"{_search_title(curve.search)}: {measured} values of {curve.axis_name} measured"]
    if guessed:
        widest = max(_log_half_width(point) for point in curve.points if not point.is_measured)
        parts.append(f"{guessed} predicted to within {percent_text(widest)}")
    place = curve.saturation
    parts.append(
        f"saturated from {load_with_interval_text(place)} on"
        if place
        else "not seen to saturate on this axis"
    )
    parts.append(f"knee at {load_with_interval_text(curve.knee)}")
    if curve.bounds_crossing_load is not None:
        parts.append(
            f"bounds by Little's law meet at {curve.axis_name} {curve.bounds_crossing_load:.3g}"
        )
    if curve.usl_fit is not None:
        parts.append(
            f"USL: contention {curve.usl_fit.sigma:.3g}, coherency {curve.usl_fit.kappa:.2g}"
        )
    return f"{'; '.join(parts)}."


def load_with_interval_text(estimate: LoadEstimate) -> str:
    """A load, and between which loads it may lie."""
    if estimate.low == estimate.high:
        return str(estimate.load)
    return f"{estimate.load} ({estimate.low} to {estimate.high})"


def _log_half_width(point: CurvePoint) -> float:
    return math.log(point.high / point.low) / 2


def _peak_sentence(search_peak: PeakSearchFinding) -> str:
    peak = search_peak.peak
    value = Metric(peak.rate, metric_spec(search_peak.metric).unit, peak.low, peak.high)
    best = _peak_point(search_peak, peak.point)
    text = (
        f"{_search_title(search_peak.search)}: best is {axis_values_text(best.axis_values)} with "
        f"{_metric_with_interval_text(value)}"
    )
    point_count = len(search_peak.search.point_by_grid_point)
    text += f", estimated from {peak.run_count} runs of {point_count} points"
    if search_peak.invalid_run_count:
        text += f"; {search_peak.invalid_run_count} of its {search_peak.run_count} runs invalid"
    if len(peak.indistinguishable_points) > 1:
        cheapest = axis_values_text(
            _peak_point(search_peak, peak.indistinguishable_points[0]).axis_values
        )
        text += (
            f"; {len(peak.indistinguishable_points)} points are within 1 % of it, the "
            f"cheapest is {cheapest}"
        )
    if peak.at_edge:
        text += "; it lies at the end of an axis, so more may lie beyond"
    return f"{text}."


def _peak_point(search_peak: PeakSearchFinding, indexes: tuple[int, ...]) -> Point:
    return search_peak.search.point_by_grid_point[indexes]


def _max_load_sentence(load: MaxLoadFinding) -> str:
    highest = load.highest_load
    limit = load_search_criterion_text(load.search.workload)
    start = f"{_search_title(load.search)}: "
    if not highest.is_bounded:
        beyond = highest.load >= load.saturation_rate / 2
        text = (
            f"{limit} holds up to the maximum without a rate"
            if beyond
            else f"{limit} is exceeded even at the lowest rate tried"
        )
    else:
        value = Metric(highest.load, IOPS_UNIT, highest.low, highest.high)
        runs_text = counted_noun(highest.run_count, "run")
        text = f"{limit} up to {_metric_with_interval_text(value)}, by {runs_text}"
        if load.invalid_run_count:
            text += f" ({load.invalid_run_count} invalid)"
        text += "" if highest.is_settled else " (the search ended before it was settled)"
    if highest.verified is not None:
        text += f"; verified at {metric_value_text(Metric(highest.verified, IOPS_UNIT))}"
    saturation = metric_value_text(Metric(load.saturation_rate, IOPS_UNIT))
    return f"{start}{text}; without a rate {saturation}."


def _listed_load_sentence(load: ListedLoadFinding) -> str:
    limit = load_search_criterion_text(load.search.workload)
    start = f"{_search_title(load.search)}: "
    if load.highest_load is None:
        text = f"{limit} is not kept even at {load.axis_name} {load.exceeding_load}"
    else:
        text = f"{limit} is kept up to {load.axis_name} {load.highest_load}"
        if load.exceeding_load is not None:
            text += f", and no longer at {load.exceeding_load}"
        elif load.is_search_complete:
            text += ", the highest that is listed"
    rest = "" if load.is_search_complete else " (the search ended before it was settled)"
    return f"{start}{text}, by {counted_noun(load.run_count, 'run')}{rest}."


def load_search_criterion_text(workload: Workload) -> str:
    """What a search for the highest load keeps to: `read p99 <= 2 ms`."""
    limit = workload.search_goal.latency_limit
    if limit is None:
        return workload.job.search_criterion_text
    return f"{latency_limit_metric_text(limit.metric)} <= {format_ns(limit.latency_ns)}"


def _metric_with_interval_text(metric: Metric) -> str:
    """The value and its interval; how many runs are behind it is told beside it."""
    if metric.low is None or metric.high is None:
        return metric_value_text(metric)
    ends = (value_text(end, metric.unit) for end in (metric.low, metric.high))
    return f"{metric_value_text(metric)} [{', '.join(ends)}]"


def _search_document(search: SearchSpace) -> dict[str, Any]:
    return {
        "configuration": search.configuration,
        "workload": search.workload.id,
        "axis": dict(search.fixed_axis_values),
    }


def _curve_document(curve: LoadCurve) -> dict[str, Any]:
    law = curve.usl_fit
    return {
        **_search_document(curve.search),
        "along": curve.axis_name,
        "metric": curve.metric,
        "points": [
            {
                "load": point.load,
                "value": point.rate,
                "low": point.low,
                "high": point.high,
                "measured": point.is_measured,
            }
            for point in curve.points
        ],
        "saturation": curve.saturation and json_object_of_record(curve.saturation),
        "knee": json_object_of_record(curve.knee),
        "bound_at": curve.bounds_crossing_load,
        "usl": law
        and {
            **{name: getattr(law, name) for name in ("gamma", "sigma", "kappa")},
            "worst": law.worst_residual,
        },
    }


def _peak_document(search_peak: PeakSearchFinding) -> dict[str, Any]:
    peak = search_peak.peak
    return {
        **_search_document(search_peak.search),
        "metric": search_peak.metric,
        "best": dict(_peak_point(search_peak, peak.point).axis_values),
        "value": peak.rate,
        "low": peak.low,
        "high": peak.high,
        "alike": [
            dict(_peak_point(search_peak, place).axis_values)
            for place in peak.indistinguishable_points
        ],
        "at_edge": peak.at_edge,
        "runs": peak.run_count,
    }


def _max_load_document(load: MaxLoadFinding) -> dict[str, Any]:
    highest = load.highest_load
    return {
        **_search_document(load.search),
        "metric": load.latency_limit.metric,
        "limit_ns": load.latency_limit.latency_ns,
        "iops": highest.load,
        "low": highest.low,
        "high": highest.high,
        "verified_iops": highest.verified,
        "saturation_iops": load.saturation_rate,
        "bounded": highest.is_bounded,
        "settled": highest.is_settled,
        "runs": highest.run_count,
    }


def _listed_load_document(load: ListedLoadFinding) -> dict[str, Any]:
    return {
        **_search_document(load.search),
        "axis": load.axis_name,
        "limit": load_search_criterion_text(load.search.workload),
        "highest": load.highest_load,
        "exceeding": load.exceeding_load,
        "settled": load.is_search_complete,
        "runs": load.run_count,
    }


class ConfigurationNames(Record):
    """Titles of configurations by id, and whether there are several, so that they must be named."""

    titles: Mapping[str, str]
    mixed_workloads: frozenset[str] = frozenset()
    """Ids of those that read and write, whose latency of the whole must be told apart."""

    @property
    def has_several(self) -> bool:
        """Whether a sentence must say which configuration it speaks of."""
        return len(self.titles) > 1

    def title(self, configuration_id: str) -> str:
        """A configuration as sentences call it."""
        return self.titles.get(configuration_id, configuration_id)


def point_place_phrase(axis_values: Sequence[tuple[str, int | str]]) -> str:
    """A place on the axes, each named as in a sentence: `threads 4, block size 16k`."""
    return axis_values_text(tuple((axis_name_text(name), value) for name, value in axis_values))


def terabytes_text(size_tb: float) -> str:
    """A capacity with three digits, and no fewer than it has before the point."""
    return f"{size_tb:,.0f} TB" if size_tb >= 999.5 else f"{size_tb:.3g} TB"


def load_step_rate_change_text(axis_name: str, load: int, next_load: int, rate_ratio: float) -> str:
    """What a step of load does to the rate: `from iodepth 8 to 16 the rate rises by 3 %`."""
    way = "rises" if rate_ratio >= 1 else "falls"
    return (
        f"from {axis_name_text(axis_name)} {load} to {next_load} the rate {way} by "
        f"{percent_text(abs(rate_ratio - 1))}"
    )


def metric_column_name(metric_key: str) -> str:
    """A metric as tables name it: `read p99` of an operation, else as in a sentence."""
    if metric_key == OPS_PER_S:
        return "ops/s"
    spec = metric_spec(metric_key)
    if not spec.operation or not spec.statistic:
        return metric_phrase(metric_key)
    return f"{spec.operation.replace('_', '-')} {spec.statistic.replace('_', '.')}"


def metric_phrase(metric_key: str) -> str:
    """A metric in a sentence: `lat_ns_p99_9` as `p99.9 latency`; an undeclared one by its key."""
    return metric_spec(metric_key).label if is_known_metric(metric_key) else metric_key
