"""Points compared in pairs: whether they differ, how much better one is, where it gains the most.

A cell is a workload at one place of its axes. Of the configurations of a session every cell that
both have is compared with itself and no other: a maximum over threads of the one against a maximum
of the other would compare different loads. For a report:

    for found in gains(study, summaries):          # one for each candidate against the baseline
        best = found.largest("ops_per_s")          # of all cells
        best.gain.workload, best.gain.axis         # names its cell
        best.gain.share, best.low, best.high       # +0.34 with its interval: 34 % more ops/s
        found.largest("read_lat_ns_mean").gain.share   # +0.43: 43 % less latency
        for cell in found.of("ops_per_s"): cell.share, cell.interval, cell.factor, cell.comparison
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Final

from msgspec.structs import replace

from iolab.analysis.points import (
    AxisValues,
    KnownRunLogarithms,
    PointSummary,
    finite_metric_value,
    fit_point_priors,
    pooled_log_bin_error,
)
from iolab.analysis.resume_checks import merged_session_index
from iolab.core.metric import Metric, VerdictLevel, worst_verdict_level
from iolab.core.metric_spec import (
    SERVICE_MEAN,
    BetterDirection,
    compared_scenario_metric_keys,
    mean_latency_keys,
    metric_spec,
    operations_with_phase_rate,
    phase_rate_key,
    rate_key,
)
from iolab.core.power import COMPARED_EFFICIENCIES, REPORTED_BOUNDARIES
from iolab.core.study import Study
from iolab.core.workload import Workload
from iolab.record import Record
from iolab.stats.comparison import (
    RATIO_ALLOWANCE,
    Comparison,
    ComparisonVerdict,
    apply_holm_correction,
    compare_paired,
    compare_unpaired,
    inverted_comparison,
)
from iolab.stats.repeats import CONFIDENT, VariancePrior
from iolab.stats.special import student_quantile
from iolab.units import format_ns

WorkloadAndAxisValues = tuple[str, AxisValues]
"""Where a point stands in every session of a study: its workload and its axis values."""

TAIL: Final = "lat_ns_p99"
"""Compared beside the headline figure: a gain in throughput is often paid for in the tail."""

Pair = tuple[PointSummary, PointSummary]
"""The baseline's and the candidate's."""

_LATENCIES: Final = ("lat_ns_", "read_lat_ns_", "write_lat_ns_", "trim_lat_ns_")


class SkippedPoint(Record):
    """A point, or a metric of it, that could not be compared, and why."""

    workload: str
    axis_values: AxisValues
    reason: str


def default_metric_keys(workload: Workload, pair: Pair) -> list[str]:
    """What is compared where nobody names it, of what both sides know.

    The headline figure, which stands even where it is not known, and beside it the p99 latency; of
    a load without latencies of the whole, mean and p99 of the first operation that has any. Where
    there is no one figure the rate of each operation. Of a run with phases the same of each phase
    after the first, and how long it took until all was as before. Where both were metered at the
    same boundary, operations a joule.
    """
    figure = workload.headline_metric
    if figure is None:
        rates = rate_or_phase_rate_key_of_each_operation(
            pair[0].metrics, partial(_has_both_values, pair)
        )
        keys = [*rates, *COMPARED_EFFICIENCIES]
        return [key for key in keys if _has_both_values(pair, key)]
    # A tail that too few I/Os support is no news: it is compared where it is known.
    beside = _default_latency_metric_keys(pair) + compared_scenario_metric_keys(_phase_ids(pair[0]))
    beside += COMPARED_EFFICIENCIES
    return list(dict.fromkeys((figure, *(key for key in beside if _has_both_values(pair, key)))))


def _phase_ids(point: PointSummary) -> list[str]:
    """The phases of a point's runs in their order; none of runs without any."""
    runs = (*point.results, *point.runs)
    scenario = next((run.scenario for run in runs if run.scenario is not None), None)
    return [] if scenario is None else [phase.id for phase in scenario.phases]


def _default_latency_metric_keys(pair: Pair) -> list[str]:
    """The tail; of a load without latencies of the whole, mean and p99 of the first operation."""
    if TAIL in pair[0].metrics:
        return [TAIL]
    timed = [key for key in mean_latency_keys(pair[0].metrics) if _has_both_values(pair, key)]
    return [*timed[:1], *(key.removesuffix("mean") + "p99" for key in timed[:1])]


def missing_default_metric_reasons(pair: Pair) -> Iterator[str]:
    """Why what is compared by default elsewhere is not at this point, though something is known."""
    sides = tuple(zip(("baseline", "candidate"), pair, strict=True))
    for key in _default_latency_metric_keys(pair):
        for name, side in sides:
            metric = side.metrics.get(key)
            if metric is not None and metric.value is None and metric.low is not None:
                bound = format_ns(metric.low)
                yield f"of the {name}'s {metric_spec(key).label} only 'more than {bound}' is known"
    boundaries = {name: _metered_boundaries(side) for name, side in sides}
    if not set.intersection(*boundaries.values()) and all(boundaries.values()):
        metered = (f"of the {name} its {'/'.join(sorted(own))}" for name, own in boundaries.items())
        yield f"meters saw {', '.join(metered)}: unlike boundaries are not compared"


def _metered_boundaries(side: PointSummary) -> set[str]:
    return {
        boundary.value
        for boundary in REPORTED_BOUNDARIES
        if side.metric_value(f"{boundary.value}_ops_per_j") is not None
    }


def default_metric_keys_of_pairs(
    study: Study, pairs: Mapping[WorkloadAndAxisValues, Pair]
) -> list[str]:
    """The same of all pairs together."""
    every = (
        key
        for (workload, _), pair in pairs.items()
        for key in default_metric_keys(study.workload(workload), pair)
    )
    return list(dict.fromkeys(every))


def rate_or_phase_rate_key_of_each_operation(
    keys: Iterable[str], is_key_present: Callable[[str], bool]
) -> list[str]:
    """The rate of each operation: over the common window where that is known, else the phase."""
    return [
        rate_key(operation) if is_key_present(rate_key(operation)) else phase_rate_key(operation)
        for operation in operations_with_phase_rate(keys)
    ]


def _has_both_values(pair: Pair, metric_key: str) -> bool:
    return all(side.metric_value(metric_key) is not None for side in pair)


def incomparability_reason(pair: Pair, metric_key: str) -> str:
    """Why the metric cannot be compared at this point; empty when it can."""
    if (
        metric_key.startswith(_LATENCIES)
        and len({_are_latencies_response_times(side) for side in pair}) > 1
    ):
        return "one side counts from when I/Os were due, the other from their submission"
    for name, side in zip(("baseline", "candidate"), pair, strict=True):
        values = [finite_metric_value(run, metric_key) for run in side.results]
        if None in values:
            return f"not every run of the {name} has a value"
        if any(value is not None and value <= 0 for value in values):
            means = " against ".join(f"{side.metric_value(metric_key) or 0:.3g}" for side in pair)
            return f"a run of the {name} has the value 0, which has no ratio ({means})"
    return ""


def _are_latencies_response_times(side: PointSummary) -> bool:
    """Whether its latencies are response times: then service times stand beside them."""
    return any(SERVICE_MEAN in run.metrics for run in side.results)


def compare_pair_metric(
    pair: Pair, metric_key: str, prior: VariancePrior, *, is_same_session: bool
) -> Comparison:
    """The candidate against the baseline by run means; `incomparability_reason` must have none.

    Runs of one session are paired by repeat, since a repeat is a block in which both were measured.
    """
    better = metric_spec(metric_key).better
    allowance = RATIO_ALLOWANCE + pair_log_bin_error(pair, metric_key)
    first, second = (
        {
            run.repeat: value
            for run in side.results
            if (value := finite_metric_value(run, metric_key)) is not None
        }
        for side in pair
    )
    runs = (*pair[0].results, *pair[1].results)
    both = sorted(first.keys() & second.keys())
    if is_same_session and len(both) > 1 and len({merged_session_index(run) for run in runs}) == 1:
        return compare_paired(
            _values_in_repeat_order(first, both),
            _values_in_repeat_order(second, both),
            better,
            prior,
            bias_allowance=allowance,
        )
    values = (list(first.values()), list(second.values()))
    return compare_unpaired(*values, better, prior, bias_allowance=allowance)


def pair_log_bin_error(pair: Pair, metric_key: str) -> float:
    """How far a ratio may be off for bins, a log ratio: both values are known to theirs only."""
    return sum(pooled_log_bin_error(metric_key, side.results) for side in pair)


def _values_in_repeat_order(
    value_by_repeat: dict[int, float], repeats: Sequence[int]
) -> list[float]:
    return [value_by_repeat[repeat] for repeat in repeats]


Interval = tuple[float, float]


class ComparedMetric(Record):
    """One metric of one point: both values, the ratio and what it says.

    `verdict_level` is the worse verdict of the two points, `pooled_log_bin_error` how far the ratio
    may be off for the bins that its values are read from (a log ratio). Everything that is called a
    gain is above 0 (a factor above 1) where the candidate is the better one, of rates and of
    latencies.
    """

    workload: str
    axis_values: AxisValues
    metric: str
    baseline: Metric
    candidate: Metric
    comparison: Comparison
    verdict_level: VerdictLevel
    log_bin_error: float = 0.0

    @property
    def better(self) -> BetterDirection:
        """Which way of the metric is the good one."""
        return metric_spec(self.metric).better

    @property
    def relative_gain(self) -> float:
        """What a rate is higher by, or a latency lower by, as a share of the baseline's."""
        return relative_gain_of_ratio(self.comparison.ratio, self.better)

    @property
    def relative_gain_interval(self) -> Interval | None:
        """The 95 % interval of `relative_gain`, low and high; None without one."""
        return _relative_gain_interval(self.comparison.low, self.comparison.high, self.better)

    @property
    def improvement_factor(self) -> float:
        """How many times as good the candidate is."""
        ratio = self.comparison.ratio
        return ratio if self.better is BetterDirection.HIGHER else 1 / ratio

    @property
    def difference(self) -> float:
        """The candidate's value less the baseline's, in the metric's unit."""
        return (self.candidate.value or 0.0) - (self.baseline.value or 0.0)


def matched_pairs_and_skipped_points(
    baseline: Mapping[WorkloadAndAxisValues, PointSummary],
    candidate: Mapping[WorkloadAndAxisValues, PointSummary],
    side_names: tuple[str, str],
) -> tuple[dict[WorkloadAndAxisValues, Pair], list[SkippedPoint]]:
    """The points that both have sound runs of, in the baseline's order, the others with a reason.

    `side_names` are what the reasons call the two.
    """
    pairs: dict[WorkloadAndAxisValues, Pair] = {}
    skipped: list[SkippedPoint] = []
    for place in dict.fromkeys((*baseline, *candidate)):
        first, second = baseline.get(place), candidate.get(place)
        if first is None or second is None:
            lacking = side_names[0] if first is None else side_names[1]
            skipped.append(SkippedPoint(*place, f"{lacking} has no such point"))
        elif not (first.is_trusted and second.is_trusted):
            lacking = side_names[1] if first.is_trusted else side_names[0]
            skipped.append(SkippedPoint(*place, f"no run of {lacking} is done and not invalid"))
        else:
            pairs[place] = (first, second)
    return pairs, skipped


def compared_metrics_and_skipped_points(
    pairs: Mapping[WorkloadAndAxisValues, Pair],
    study: Study,
    metrics: Sequence[str],
    compare_metric_at: Callable[[WorkloadAndAxisValues, str], Comparison],
) -> tuple[tuple[ComparedMetric, ...], list[SkippedPoint]]:
    """Each metric of each pair by `compare_metric_at`, and what cannot be compared, with why.

    Without metrics named those of `default_metric_keys`. Verdicts are held together by Holm's
    correction.
    """
    compared: list[ComparedMetric] = []
    skipped: list[SkippedPoint] = []
    for place, pair in pairs.items():
        for metric in metrics or default_metric_keys(study.workload(place[0]), pair):
            if why := incomparability_reason(pair, metric):
                skipped.append(SkippedPoint(*place, f"{metric}: {why}"))
                continue
            first, second = (side.metrics[metric] for side in pair)
            level = worst_verdict_level(side.verdict_level for side in pair)
            error = pair_log_bin_error(pair, metric)
            compared.append(
                ComparedMetric(
                    *place, metric, first, second, compare_metric_at(place, metric), level, error
                )
            )
    judged = apply_holm_correction([row.comparison for row in compared])
    held = (replace(row, comparison=last) for row, last in zip(compared, judged, strict=True))
    return tuple(held), skipped


class LargestGain(Record):
    """The cell with the largest gain of `cell_count` cells.

    It was picked because it is large, so `low` and `high` are those of an interval of its `share`
    that holds for all cells at once (Bonferroni), wider than the cell's own; None without one.
    """

    cell: ComparedMetric
    cell_count: int
    low: float | None
    high: float | None


class ConfigurationGains(Record, dict=True):
    """A candidate against the baseline, both by their configurations' ids.

    `cells` are by workload and axis in the baseline's order, each with all its metrics; verdicts
    are held together by Holm's correction. `skipped` says what could not be compared and why.
    """

    baseline: str
    candidate: str
    cells: tuple[ComparedMetric, ...]
    skipped: tuple[SkippedPoint, ...]

    @property
    def metrics(self) -> tuple[str, ...]:
        """Every metric that some cell has, in their order."""
        return tuple(dict.fromkeys(cell.metric for cell in self.cells))

    def cell(
        self, workload_id: str, axis_values: AxisValues, metric_key: str
    ) -> ComparedMetric | None:
        """The cell of that place and metric."""
        return self._cells_by_workload_axis_and_metric.get((workload_id, axis_values, metric_key))

    @cached_property
    def _cells_by_workload_axis_and_metric(
        self,
    ) -> Mapping[tuple[str, AxisValues, str], ComparedMetric]:
        return {(cell.workload, cell.axis_values, cell.metric): cell for cell in self.cells}

    def cells_of_metric(
        self, metric_key: str, workload_id: str | None = None
    ) -> tuple[ComparedMetric, ...]:
        """The cells of a metric, of one workload or of all."""
        return tuple(
            cell
            for cell in self.cells
            if cell.metric == metric_key and workload_id in (None, cell.workload)
        )

    def largest_gain(self, metric_key: str) -> LargestGain | None:
        """The largest gain of a metric as a share; None where no cell is better by its value."""
        cells = self.cells_of_metric(metric_key)
        best = max(cells, key=lambda cell: cell.relative_gain, default=None)
        if best is None or best.relative_gain <= 0:
            return None
        low, high = _simultaneous_interval(best, len(cells)) or (None, None)
        return LargestGain(best, len(cells), low, high)

    def largest_supported_gain(self, metric_key: str) -> LargestGain | None:
        """The largest of the gains that are better by their verdict; None where there is none.

        The largest of all would often be the noisiest. Holm's correction may find a cell better
        whose interval with all others reaches below 0: that is none that can be quoted with it.
        """
        cells = self.cells_of_metric(metric_key)
        gains = [
            LargestGain(
                cell, len(cells), *(_simultaneous_interval(cell, len(cells)) or (None, None))
            )
            for cell in cells
            if cell.comparison.verdict is ComparisonVerdict.BETTER
        ]
        held = (gain for gain in gains if gain.low is None or gain.low > 0)
        return max(held, key=lambda gain: gain.cell.relative_gain, default=None)


def compare_configurations(
    study: Study,
    summaries: Sequence[PointSummary],
    metrics: Sequence[str] = (),
    baseline: str | None = None,
) -> tuple[ConfigurationGains, ...]:
    """Every configuration of one session against the baseline, which is the first by default.

    Points that went without a host stand in configurations of their own. Without
    metrics named those of `default_metric_keys`. Empty where there is one configuration.
    """
    names = list(dict.fromkeys(summary.key.configuration for summary in summaries))
    order = [
        configuration.id for configuration in study.configurations if configuration.id in names
    ]
    if not order or (baseline is not None and baseline not in order):
        return ()
    first = baseline or order[0]
    return tuple(
        _gains_over_baseline(study, summaries, metrics, (first, other))
        for other in order
        if other != first
    )


class GainsByPair:
    """Every two configurations of one session compared, each pair once and when it is asked for."""

    def __init__(self, study: Study, summaries: Sequence[PointSummary]) -> None:
        self._study = study
        self._summaries = summaries
        names = {summary.key.configuration for summary in summaries}
        self._order = [item.id for item in study.configurations if item.id in names]
        # By both and the metric that is compared besides, empty for the default ones.
        self._gains: dict[tuple[str, str, str], ConfigurationGains] = {}
        self._logarithms: KnownRunLogarithms = {}

    def gains_over_first(self) -> tuple[ConfigurationGains, ...]:
        """Every other configuration against the first, as `compare_configurations` has them."""
        return tuple(self._cached_gains_of_pair(self._order[0], other) for other in self._order[1:])

    def gains(self, baseline: str, candidate: str) -> ConfigurationGains:
        """One configuration against another, whatever their order in the study."""
        return self._cached_gains_of_pair(baseline, candidate)

    def comparison(
        self,
        configuration_ids: tuple[str, str],
        workload_and_axis_values: WorkloadAndAxisValues,
        metric_key: str,
    ) -> Comparison | None:
        """The second of two configurations against the first at one place; None where unknown.

        A metric that is not compared by default is held together with those that are.
        """
        if not set(configuration_ids) <= set(self._order):
            return None
        first, second = sorted(configuration_ids, key=self._order.index)
        gains = self._cached_gains_of_pair(first, second)
        if metric_key not in gains.metrics:
            gains = self._cached_gains_with_metric(first, second, metric_key)
        cell = gains.cell(*workload_and_axis_values, metric_key)
        if cell is None:
            return None
        return (
            cell.comparison
            if configuration_ids == (first, second)
            else inverted_comparison(cell.comparison)
        )

    def _cached_gains_with_metric(
        self, first: str, second: str, metric_key: str
    ) -> ConfigurationGains:
        """The default comparisons of two with those of one more metric, all held together."""
        key = (first, second, metric_key)
        if key not in self._gains:
            usual = self._cached_gains_of_pair(first, second).cells
            own = _gains_over_baseline(
                self._study, self._summaries, (metric_key,), (first, second), self._logarithms
            )
            cells = (*usual, *own.cells)
            judged = apply_holm_correction([cell.comparison for cell in cells])
            held = [
                replace(cell, comparison=last) for cell, last in zip(cells, judged, strict=True)
            ]
            self._gains[key] = replace(own, cells=tuple(held[len(usual) :]))
        return self._gains[key]

    def _cached_gains_of_pair(self, first: str, second: str) -> ConfigurationGains:
        key = (first, second, "")
        if key not in self._gains:
            self._gains[key] = _gains_over_baseline(
                self._study, self._summaries, (), (first, second), self._logarithms
            )
        return self._gains[key]


def relative_gain_of_ratio(ratio: float, better: BetterDirection) -> float:
    """A ratio of candidate to baseline as a gain: 1.3 of a rate is 0.3, 0.6 of a latency 0.4."""
    return ratio - 1 if better is BetterDirection.HIGHER else 1 - ratio


def _gains_over_baseline(
    study: Study,
    summaries: Sequence[PointSummary],
    metrics: Sequence[str],
    configuration_ids: tuple[str, str],
    logarithms_cache: KnownRunLogarithms | None = None,
) -> ConfigurationGains:
    """The second of two configurations against the first.

    `logarithms_cache` is as of `fit_point_priors`.
    """
    baseline, candidate = (
        {(s.key.workload, s.key.axis_values): s for s in summaries if s.key.configuration == name}
        for name in configuration_ids
    )
    pairs, skipped = matched_pairs_and_skipped_points(baseline, candidate, configuration_ids)
    used = metrics or default_metric_keys_of_pairs(study, pairs)
    priors = fit_point_priors(
        {side.key: side.results for pair in pairs.values() for side in pair},
        study,
        used,
        logarithms_cache,
    )

    def compare_metric_of_pair(
        workload_and_axis_values: WorkloadAndAxisValues, metric_key: str
    ) -> Comparison:
        pair = pairs[workload_and_axis_values]
        return compare_pair_metric(
            pair, metric_key, priors.prior_of_point(pair[0].key, metric_key), is_same_session=True
        )

    cells, without = compared_metrics_and_skipped_points(
        pairs, study, metrics, compare_metric_of_pair
    )
    return ConfigurationGains(*configuration_ids, cells, (*skipped, *without))


def _relative_gain_interval(
    low: float | None, high: float | None, better: BetterDirection
) -> Interval | None:
    if low is None or high is None:
        return None
    ends = (relative_gain_of_ratio(low, better), relative_gain_of_ratio(high, better))
    return min(ends), max(ends)


def _simultaneous_interval(gain: ComparedMetric, cell_count: int) -> Interval | None:
    """The interval of a gain's share that holds at once with those of all cells."""
    compared = gain.comparison
    if compared.low is None or compared.high is None or compared.df == 0:
        return None
    own = student_quantile(CONFIDENT, compared.df) * compared.log_ratio_error
    wider = (
        student_quantile(1 - (1 - CONFIDENT) / cell_count, compared.df) * compared.log_ratio_error
    )
    more = wider - own
    return _relative_gain_interval(
        compared.low * math.exp(-more), compared.high * math.exp(more), gain.better
    )
