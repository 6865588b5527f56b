"""The headline figures: for each workload and configuration the best point, and its verdict.

A point is told by what is published of all its repeats together (`analysis.points`), so that every
page, table and document shows the same number and interval; charts of one run show the median
repeat. The best point is looked for among those that are not invalid; only if there is none, among
the invalid ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from iolab.analysis.points import Axis, PointSummary, value_of
from iolab.core.configuration import Configuration
from iolab.core.metric import Level, Metric, Result
from iolab.core.metric_spec import Better, Combine, spec_of
from iolab.core.study import Study
from iolab.core.workload import AnyJob, Workload
from iolab.dataclass import dataclass
from iolab.report.numbers import axis_label

if TYPE_CHECKING:
    from iolab.core.run import RunKey

NOT_KNOWN: Final = Metric(None, "")
"""Where a run has no such metric at all."""


def group_name(workload: Workload, others: Axis) -> str:
    """A workload with what of its axes is held: `Random reads, block_size 4k`."""
    return ", ".join(part for part in (workload.title, axis_label(others)) if part)


@dataclass(frozen=True, slots=True)
class PointFigures:
    """A point's repeats together: `figure` and `metrics` are its published values.

    `results` are the runs behind them, `shown` is the median one of those.
    """

    results: tuple[Result, ...]
    shown: Result
    figure: Metric
    per_host: Metric
    metrics: Mapping[str, Metric]
    level: Level

    @property
    def axis(self) -> str:
        """The axis values for people."""
        return axis_label(self.shown.axis)

    @property
    def host_count(self) -> int:
        """How many hosts made the load."""
        return len(self.shown.hosts)


@dataclass(frozen=True, slots=True)
class BestFigure:
    """The best that a configuration did of a workload; `title` is that of the workload.

    `workload` tells workloads of one title apart. `missing` are its points without a sound figure,
    any of which may have been better. `is_paced` is whether its load asks for no more than so much.

    `value` has none and `level` is None where nothing was measured. `latencies` are its own, each
    with a name, `at` is the place of the axes where it was reached, `run` the one that stands for
    it, and `reason` the check that says most against it, and what that says.
    """

    workload: str
    title: str
    configuration: str
    value: Metric
    latencies: tuple[tuple[str, str], ...] = ()
    at: str = ""
    level: Level | None = None
    run: RunKey | None = None
    reason: tuple[str, str] = ("", "")
    missing: int = 0
    better: Better = Better.HIGHER
    is_paced: bool = False

    @property
    def is_sound(self) -> bool:
        """Whether it may be quoted at all."""
        return self.value.value is not None and self.level in (Level.VALID, Level.INDICATIVE)


@dataclass(frozen=True, slots=True)
class Headline:
    """One workload in one configuration: `best` is None when no run has a value."""

    workload: Workload
    configuration: Configuration
    best: PointFigures | None
    point_count: int
    compared: int
    """Of how many points `best` is the best: of those not invalid, if there are any."""
    unmeasured: int
    """Runs that failed or have no value."""
    sound: int = 0
    """How many points have a figure that is not invalid."""


def headlines_of(
    study: Study, points: Iterable[PointSummary], jobs: tuple[type[AnyJob], ...] = (AnyJob,)
) -> tuple[Headline, ...]:
    """Every workload of those jobs in every configuration that has points, in the study's order."""
    grouped: dict[tuple[str, str], list[PointSummary]] = {}
    for point in points:
        grouped.setdefault((point.key.workload, point.key.configuration), []).append(point)
    return tuple(
        headline_of(
            workload, configuration, grouped[workload.id, configuration.id], workload.figure
        )
        for workload in study.workloads
        if isinstance(workload.job, jobs)
        for configuration in study.configurations
        if (workload.id, configuration.id) in grouped
    )


def headline_of(
    workload: Workload, configuration: Configuration, points: Sequence[PointSummary], key: str
) -> Headline:
    """The best of these points by metric `key`."""
    measured = [figures for point in points if (figures := point_figures(point, key)) is not None]
    sound = [figures for figures in measured if figures.level is not Level.INVALID]
    trusted = sound or measured
    sign = -1.0 if spec_of(key).better is Better.LOWER else 1.0
    best = max(trusted, key=lambda figures: sign * (figures.figure.value or 0.0), default=None)
    runs = [run for point in points for run in point.runs]
    unmeasured = sum(1 for run in runs if value_of(run, key) is None)
    compared = len(trusted)
    return Headline(workload, configuration, best, len(points), compared, unmeasured, len(sound))


def point_figures(point: PointSummary, key: str) -> PointFigures | None:
    """What a headline says of a point; None when it has no value of metric `key`."""
    figure = point.metrics.get(key, NOT_KNOWN)
    if figure.value is None:
        return None
    runs = point.results or point.left_out
    measured = tuple(run for run in runs if value_of(run, key) is not None)
    shown = median_repeat(measured, key)
    return PointFigures(
        results=measured,
        shown=shown,
        figure=figure,
        per_host=figure_per_host(key, figure, shown),
        metrics=point.metrics,
        level=point.level,
    )


def figure_per_host(key: str, figure: Metric, run: Result) -> Metric:
    """A rate of the fleet as the mean of its hosts; other metrics are nobody's share."""
    if figure.value is None or spec_of(key).combine is not Combine.RATE or not run.hosts:
        return Metric(None, figure.unit)
    return Metric(figure.value / len(run.hosts), figure.unit)


def median_repeat(repeats: Sequence[Result], key: str) -> Result:
    """The repeat whose metric `key` is the median; of two in the middle the one that flatters less.

    At least one of the repeats must have a value.
    """
    measured = [result for result in repeats if value_of(result, key) is not None]
    less_is_better = spec_of(key).better is Better.LOWER
    ordered = sorted(measured, key=lambda result: value_of(result, key) or 0.0)
    return ordered[len(ordered) // 2 if less_is_better else (len(ordered) - 1) // 2]


def best_figure(headline: Headline, latencies: tuple[tuple[str, str], ...]) -> BestFigure:
    """A headline as the first page shows it, with these of its latencies."""
    best = headline.best
    place = headline.workload.id, headline.workload.title, headline.configuration.id
    missing = headline.point_count - headline.sound
    if best is None:
        return BestFigure(*place, NOT_KNOWN)
    key = best.shown.key
    reason = reason_of((best.shown, *best.results), best.level)
    better = spec_of(headline.workload.figure).better
    return BestFigure(
        *place,
        best.figure,
        latencies,
        best.axis,
        best.level,
        key,
        reason,
        missing,
        better,
        headline.workload.job.is_paced,
    )


def by_operation(parts: Sequence[tuple[str, str]]) -> str:
    """The latencies of several operations in one cell: `1.2 ms read / 3.4 ms write`."""
    return " / ".join(f"{text} {word}" for word, text in parts)


def reason_of(runs: Iterable[Result], level: Level) -> tuple[str, str]:
    """Why runs are of a level: code and sentence of the gravest objection; empty for none.

    It is that of the first run of that level: others of a point may be better than the point.
    """
    objections = next((run.verdict.objections for run in runs if run.verdict.level is level), ())
    return next(((objection.code, objection.says) for objection in objections), ("", ""))


@dataclass(frozen=True, slots=True)
class VerdictCounts:
    """How many runs there are of each verdict, and how many did not end well."""

    runs: int
    valid: int
    indicative: int
    invalid: int
    failed: int
    interrupted: int


def tally(results: Sequence[Result]) -> VerdictCounts:
    """The runs counted by verdict and by status."""
    levels = [result.verdict.level for result in results]
    states = [result.status.value for result in results]
    return VerdictCounts(
        runs=len(results),
        valid=levels.count(Level.VALID),
        indicative=levels.count(Level.INDICATIVE),
        invalid=levels.count(Level.INVALID),
        failed=states.count("failed"),
        interrupted=states.count("interrupted"),
    )
