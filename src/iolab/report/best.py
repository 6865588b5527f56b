"""The headline figures: for each workload and configuration the best point, and its verdict.

A point is told by what is published of all its repeats together (`analysis.points`), so that every
page, table and document shows the same number and interval; charts of one run show the median
repeat. The best point is looked for among those that are not invalid; only if there is none, among
the invalid ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeGuard

from msgspec.structs import replace

from iolab.analysis.findings import CLOSE_RATIO
from iolab.analysis.points import (
    REPLICATED,
    AxisValues,
    PointSummary,
    best_point_candidates,
    finite_metric_value,
    finite_metric_values,
)
from iolab.core.configuration import Configuration
from iolab.core.metric import Metric, RunResult, VerdictLevel
from iolab.core.metric_spec import BetterDirection, CombineRule, metric_spec
from iolab.core.study import Study
from iolab.core.workload import AnyJob, Workload
from iolab.record import Record
from iolab.report.memory_share import is_mostly_read_from_memory
from iolab.report.numbers import DASH, axis_name_text, axis_values_text, range_text, value_text
from iolab.stats.comparison import Comparison

if TYPE_CHECKING:
    from iolab.analysis.pairs import GainsByPair
    from iolab.core.run import RunKey

COMPARED_CONFIGURATIONS_MAX: Final = 6
"""Configurations whose best figures are compared in pairs: of more their intervals alone tell."""

UNKNOWN_METRIC: Final = Metric(None, "")
"""Where a run has no such metric at all."""


def workload_and_axis_values_title(workload: Workload, fixed_axis_values: AxisValues) -> str:
    """A workload with what of its axes is held: `Random reads, block size 4k`."""
    return ", ".join(part for part in (workload.title, axis_values_text(fixed_axis_values)) if part)


class PointFigures(Record):
    """A point's repeats together: `headline_metric` and `metrics` are its published values.

    `results` are the runs behind them, `median_run` is the median one of those, and
    `left_out_repeats_text` says how many repeats are not behind them.
    """

    results: tuple[RunResult, ...]
    median_run: RunResult
    headline_metric: Metric
    mean_host_rate: Metric
    metrics: Mapping[str, Metric]
    verdict_level: VerdictLevel
    left_out_repeats_text: str = ""

    @property
    def axis_values(self) -> AxisValues:
        """Its place on the axes."""
        return self.median_run.axis_values

    @property
    def axis_text(self) -> str:
        """The axis values for people."""
        return axis_values_text(
            tuple((axis_name_text(name), value) for name, value in self.axis_values)
        )

    @property
    def host_count(self) -> int:
        """How many hosts made the load."""
        return len(self.median_run.hosts)


class BestFigure(Record):
    """The best that a configuration did of a workload; `title` is that of the workload.

    `workload` tells workloads of one title apart. `axis_values_of_unusable_points` are the places
    of its points without a sound figure, any of which may have been better. `is_paced` is whether
    its load asks for no more than so much. `operation` is what it does: `read`, `write`,
    `read/write`; empty for metadata and keys.

    `value` has none and `verdict_level` is None where nothing was measured.
    `latency_names_and_texts` are of its own latencies, `axis_text` is the place of the axes where
    it was reached, `run_key` the one that stands for it, and `objection_code_and_text` the check
    that says most against it, and what that says. `least_sufficient_axis_values` is the place of
    the least load whose figure lies within its interval, `sufficient_latency_names_and_texts` are
    the latencies there, and `left_out_repeats_text` says that not every repeat of it counts.
    `comparisons` hold others' figures at the same place of the axes
    against it, as `iolab compare` does, by configuration. `is_mostly_read_from_memory` is whether
    memory, not the storage, answered most of that. `load_text` is what of its load neither its
    title nor its place says: `4 KiB · iodepth 8`. `has_whole_run_latency` is whether its engine
    tells latencies of the whole run alone. `noise_text` says why it can be no more than noise.
    `is_only_load` is whether its workload was measured at one load alone, so that it is the best of
    none. `load_axis_names` are the axes of load. `doubt_text` says why it may not be the storage's.
    `repeats_range` is the least and the most of its repeats, where these are no longer close and no
    interval is known.
    """

    workload: str
    title: str
    configuration: str
    value: Metric
    latency_names_and_texts: tuple[tuple[str, str], ...] = ()
    axis_text: str = ""
    verdict_level: VerdictLevel | None = None
    run_key: RunKey | None = None
    objection_code_and_text: tuple[str, str] = ("", "")
    axis_values_of_unusable_points: tuple[AxisValues, ...] = ()
    better: BetterDirection = BetterDirection.HIGHER
    is_paced: bool = False
    operation: str = ""
    least_sufficient_axis_values: AxisValues = ()
    left_out_repeats_text: str = ""
    metric: str = ""
    axis_values: AxisValues = ()
    comparisons: tuple[tuple[str, Comparison], ...] = ()
    is_mostly_read_from_memory: bool = False
    load_text: str = ""
    has_whole_run_latency: bool = False
    repeats_range: tuple[float, float] | None = None
    noise_text: str = ""
    is_only_load: bool = False
    load_axis_names: tuple[str, ...] = ()
    doubt_text: str = ""
    sufficient_latency_names_and_texts: tuple[tuple[str, str], ...] = ()

    @property
    def repeats_low_and_high(self) -> tuple[float, float]:
        """The range of its repeats; the value itself where that stands for all of them."""
        value = self.value.value or 0.0
        return self.repeats_range or (value, value)

    def comparison_with(self, other: BestFigure) -> Comparison | None:
        """The other's figure at this one's place of the axes, held against it by their runs."""
        return dict(self.comparisons).get(other.configuration)

    @property
    def unusable_axis_values_that_may_lead(self) -> tuple[AxisValues, ...]:
        """Of the unsound places those that may hold a better figure: not those of less load."""
        loads, fixed = _loads_and_other_axis_values(self.axis_values, self.load_axis_names)

        def is_less_load_than_best(axis_values: AxisValues) -> bool:
            own, rest = _loads_and_other_axis_values(axis_values, self.load_axis_names)
            return (
                rest == fixed
                and own != loads
                and own.keys() == loads.keys()
                and all(own[name] <= load for name, load in loads.items())
            )

        return tuple(
            axis for axis in self.axis_values_of_unusable_points if not is_less_load_than_best(axis)
        )

    @property
    def unknown_latency_names(self) -> list[str]:
        """The latencies that its I/Os were too few for."""
        return [name for name, text in self.latency_names_and_texts if text == DASH]

    @property
    def is_mixed(self) -> bool:
        """Whether its load does several operations."""
        return "/" in self.operation

    @property
    def is_quotable(self) -> bool:
        """Whether it may be quoted at all."""
        return self.value.value is not None and self.verdict_level in (
            VerdictLevel.VALID,
            VerdictLevel.INDICATIVE,
        )


class BestPointHeadline(Record):
    """One workload in one configuration: `best` is None when no run has a value."""

    workload: Workload
    configuration: Configuration
    best: PointFigures | None
    point_count: int
    compared_point_count: int
    """Of how many points `best` is the best: of those not invalid, if there are any."""
    unmeasured_run_count: int
    """Runs that failed or have no value."""
    axis_values_of_unusable_points: tuple[AxisValues, ...] = ()
    """The places of its points without a figure that is not invalid."""
    least_sufficient_point: PointFigures | None = None
    """That of the least load whose figure lies within the interval of the best; None where that has
    none, or no load is varied."""


def best_point_headlines(
    study: Study, points: Iterable[PointSummary], job_types: tuple[type[AnyJob], ...] = (AnyJob,)
) -> tuple[BestPointHeadline, ...]:
    """Every workload of those jobs in every configuration that has points, in the study's order."""
    grouped: dict[tuple[str, str], list[PointSummary]] = {}
    for point in points:
        grouped.setdefault((point.key.workload, point.key.configuration), []).append(point)
    return tuple(
        best_point_headline(
            workload,
            configuration,
            grouped[workload.id, configuration.id],
            workload.headline_or_rate_metric,
        )
        for workload in study.workloads
        if isinstance(workload.job, job_types)
        for configuration in study.configurations
        if (workload.id, configuration.id) in grouped
    )


def best_point_headline(
    workload: Workload,
    configuration: Configuration,
    points: Sequence[PointSummary],
    metric_key: str,
) -> BestPointHeadline:
    """The best of these points by metric `metric_key`."""
    measured = [point for point in points if point.metric_value(metric_key) is not None]
    candidates = best_point_candidates(workload, measured) or measured
    compared = [
        figures for point in candidates if (figures := point_figures(point, metric_key)) is not None
    ]
    sign = -1.0 if metric_spec(metric_key).better is BetterDirection.LOWER else 1.0
    best = max(
        compared, key=lambda figures: sign * (figures.headline_metric.value or 0.0), default=None
    )
    runs = [run for point in points for run in point.runs]
    unmeasured = sum(1 for run in runs if finite_metric_value(run, metric_key) is None)
    return BestPointHeadline(
        workload,
        configuration,
        best,
        len(points),
        len(compared),
        unmeasured,
        tuple(
            point.key.axis_values
            for point in points
            if point.verdict_level is VerdictLevel.INVALID or point.metric_value(metric_key) is None
        ),
        None if best is None else _least_sufficient_point(workload, best, compared),
    )


def _least_sufficient_point(
    workload: Workload, best: PointFigures, measured_points: Sequence[PointFigures]
) -> PointFigures | None:
    """See `BestPointHeadline`: of points that differ from the best by less load alone."""
    names = workload.job.load_axes
    interval = best.headline_metric.displayable_interval
    loads, fixed = _loads_and_other_axis_values(best.axis_values, names)
    if interval is None or not loads:
        return None
    low, high = interval
    enough = [best]
    for figures in measured_points:
        less, rest = _loads_and_other_axis_values(figures.axis_values, names)
        is_less = all(less.get(name, load) <= load for name, load in loads.items())
        if is_less and rest == fixed and low <= (figures.headline_metric.value or 0.0) <= high:
            enough.append(figures)
    return min(
        enough,
        key=lambda figures: math.prod(
            _loads_and_other_axis_values(figures.axis_values, names)[0].values()
        ),
    )


def _loads_and_other_axis_values(
    axis_values: AxisValues, load_axis_names: Sequence[str]
) -> tuple[dict[str, int], AxisValues]:
    """What of an axis is load, and what is not."""
    loads = {
        name: value
        for name, value in axis_values
        if name in load_axis_names and isinstance(value, int)
    }
    return loads, tuple((name, value) for name, value in axis_values if name not in loads)


def point_figures(point: PointSummary, metric_key: str) -> PointFigures | None:
    """What a headline says of a point; None when it has no value of metric `metric_key`."""
    figure = point.metrics.get(metric_key, UNKNOWN_METRIC)
    if figure.value is None:
        return None
    runs = point.results or point.left_out_results
    measured = tuple(run for run in runs if finite_metric_value(run, metric_key) is not None)
    shown = median_result(measured, metric_key)
    return PointFigures(
        results=measured,
        median_run=shown,
        headline_metric=figure,
        mean_host_rate=mean_host_rate(metric_key, figure, shown),
        metrics=point.metrics,
        verdict_level=point.verdict_level,
        left_out_repeats_text=_left_out_repeats_with_values_text(point, metric_key, figure.unit),
    )


def _left_out_repeats_with_values_text(point: PointSummary, metric_key: str, unit: str) -> str:
    """`1 of 2 repeats invalid: 138 IOPS`, so that the rest can be held against what is left out."""
    values = finite_metric_values(point.left_out_results, metric_key)
    if not point.left_out_repeats_text or not values:
        return point.left_out_repeats_text
    span = range_text(value_text(min(values), unit), value_text(max(values), unit))
    return f"{point.left_out_repeats_text}: {span}"


def is_replicated_comparison(comparison: Comparison | None) -> TypeGuard[Comparison]:
    """Whether there is one, of repeats on both sides, so that their spread is known."""
    return comparison is not None and min(comparison.run_counts) >= REPLICATED


def disagreeing_repeats_text(metric: Metric, repeat_values: Iterable[float | None]) -> str:
    """`repeats 35.9 to 78.1 ms` where these disagree and no interval is known; else empty."""
    known = sorted(value for value in repeat_values if value)
    if metric.displayable_interval is not None or len(known) < 2:
        return ""
    if known[-1] <= CLOSE_RATIO * known[0]:
        return ""
    low, high = (value_text(end, metric.unit) for end in (known[0], known[-1]))
    return f"repeats {range_text(low, high)}"


def mean_host_rate(metric_key: str, fleet_metric: Metric, result: RunResult) -> Metric:
    """A rate of the fleet as the mean of its hosts; other metrics are nobody's share."""
    if (
        fleet_metric.value is None
        or metric_spec(metric_key).combine is not CombineRule.RATE
        or not result.hosts
    ):
        return Metric(None, fleet_metric.unit)
    return Metric(fleet_metric.value / len(result.hosts), fleet_metric.unit)


def median_result(repeats: Sequence[RunResult], metric_key: str) -> RunResult:
    """The repeat whose metric `metric_key` is the median.

    Of two in the middle the one that flatters less.

    At least one of the repeats must have a value.
    """
    measured = [result for result in repeats if finite_metric_value(result, metric_key) is not None]
    less_is_better = metric_spec(metric_key).better is BetterDirection.LOWER
    ordered = sorted(measured, key=lambda result: finite_metric_value(result, metric_key) or 0.0)
    return ordered[len(ordered) // 2 if less_is_better else (len(ordered) - 1) // 2]


def build_best_figure(
    headline: BestPointHeadline,
    latency_names_and_texts: tuple[tuple[str, str], ...],
    sufficient_latency_names_and_texts: tuple[tuple[str, str], ...] = (),
) -> BestFigure:
    """A headline as the first page shows it, with these of its latencies."""
    best = headline.best
    place = headline.workload.id, headline.workload.title, headline.configuration.id
    if best is None:
        return BestFigure(*place, UNKNOWN_METRIC)
    key = best.median_run.key
    sufficient = headline.least_sufficient_point
    reason = code_and_text_of_gravest_check((best.median_run, *best.results), best.verdict_level)
    better = metric_spec(headline.workload.headline_or_rate_metric).better
    return BestFigure(
        *place,
        best.headline_metric,
        latency_names_and_texts,
        best.axis_text,
        best.verdict_level,
        key,
        reason,
        headline.axis_values_of_unusable_points,
        better,
        headline.workload.job.is_paced,
        "/".join(direction.name.lower() for direction in headline.workload.job.data_directions),
        () if sufficient is None else sufficient.axis_values,
        best.left_out_repeats_text,
        headline.workload.headline_or_rate_metric,
        best.axis_values,
        is_mostly_read_from_memory=any(map(is_mostly_read_from_memory, best.results)),
        has_whole_run_latency=bool(latency_names_and_texts)
        and _do_latency_and_rate_spans_differ(headline.workload.job),
        repeats_range=_disagreeing_repeats_range(best, headline.workload.headline_or_rate_metric),
        is_only_load=headline.point_count == 1,
        load_axis_names=tuple(headline.workload.job.load_axes),
        sufficient_latency_names_and_texts=sufficient_latency_names_and_texts,
    )


def _do_latency_and_rate_spans_differ(job: AnyJob) -> bool:
    """Whether its latencies are of another span than its rate; what others measured is of one."""
    return job.is_measured_by_iolab and not job.reports_live_latency


def _disagreeing_repeats_range(best: PointFigures, metric_key: str) -> tuple[float, float] | None:
    """See `BestFigure`."""
    known = (finite_metric_value(run, metric_key) for run in best.results)
    values = [value for value in known if value]
    if best.headline_metric.displayable_interval is not None or len(values) < 2:
        return None
    low, high = min(values), max(values)
    return (low, high) if high > CLOSE_RATIO * low else None


def best_figures_with_comparisons(
    best_figures: Sequence[BestFigure], gains: GainsByPair
) -> tuple[BestFigure, ...]:
    """The figures, the best of each workload with how others at its place compare with it.

    By the runs of all points, so that every page says the same of the same two. Of many
    configurations there are too many pairs.
    """
    if (
        not 1
        < len({figure.configuration for figure in best_figures})
        <= COMPARED_CONFIGURATIONS_MAX
    ):
        return tuple(best_figures)
    by_workload: dict[str, list[BestFigure]] = {}
    for figure in best_figures:
        if figure.is_quotable and figure.metric:
            by_workload.setdefault(figure.workload, []).append(figure)
    compared: dict[tuple[str, str], BestFigure] = {}
    for own in by_workload.values():
        best = winning_best_figure(own)
        place = best.workload, best.axis_values
        others = [
            figure.configuration
            for figure in own
            if figure is not best and figure.axis_values == best.axis_values
        ]
        pairs = (
            (name, gains.comparison((best.configuration, name), place, best.metric))
            for name in others
        )
        known = tuple((name, comparison) for name, comparison in pairs if comparison is not None)
        compared[best.workload, best.configuration] = replace(best, comparisons=known)
    return tuple(compared.get((f.workload, f.configuration), f) for f in best_figures)


def winning_best_figure(best_figures: Sequence[BestFigure]) -> BestFigure:
    """The best of figures of one metric."""
    pick = min if best_figures[0].better is BetterDirection.LOWER else max
    return pick(best_figures, key=lambda figure: figure.value.value or 0.0)


def operation_latencies_text(operation_names_and_texts: Sequence[tuple[str, str]]) -> str:
    """The latencies of several operations in one cell: `1.2 ms read / 3.4 ms write`."""
    return " / ".join(f"{text} {word}" for word, text in operation_names_and_texts)


def code_and_text_of_gravest_check(
    runs: Iterable[RunResult], verdict_level: VerdictLevel
) -> tuple[str, str]:
    """Why runs are of a level: code and sentence of the gravest objection; empty for none.

    It is that of the first run of that level: others of a point may be better than the point.
    """
    objections = next(
        (run.verdict.objections for run in runs if run.verdict.level is verdict_level), ()
    )
    return next(((objection.code, objection.message) for objection in objections), ("", ""))


class RunCounts(Record):
    """How many runs there are of each verdict, and how many did not end well."""

    total: int
    valid: int
    indicative: int
    invalid: int
    failed: int
    interrupted: int


def count_runs_by_verdict_and_status(results: Sequence[RunResult]) -> RunCounts:
    """The runs counted by verdict and by status."""
    levels = [result.verdict.level for result in results]
    states = [result.status.value for result in results]
    return RunCounts(
        total=len(results),
        valid=levels.count(VerdictLevel.VALID),
        indicative=levels.count(VerdictLevel.INDICATIVE),
        invalid=levels.count(VerdictLevel.INVALID),
        failed=states.count("failed"),
        interrupted=states.count("interrupted"),
    )
