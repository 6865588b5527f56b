"""All findings of a session, what decides first: needs, gains, crossings, bests, limits, bends."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from iolab.analysis.findings import (
    CLOSE_RATIO,
    BestPointFinding,
    BuyerNeed,
    CrossoverFinding,
    Finding,
    LargestSpeedupFinding,
    NeedDimension,
    Recommendation,
    WinLossFinding,
    best_point_findings,
    bottleneck_findings,
    knee_findings,
    per_cost_and_capacity_findings,
    run_keys_of_points,
)
from iolab.analysis.pairs import ComparedMetric, ConfigurationGains, gain_share_of_ratio
from iolab.analysis.points import Axis, PointSummary, group_along_load_axis
from iolab.analysis.quotients import MONEY, configurations_without_host_subsets, cost_currencies
from iolab.core.configuration import Configuration
from iolab.core.metric import Metric, VerdictLevel, worst_level
from iolab.core.metric_spec import BetterDirection, metric_spec
from iolab.core.resources import RunResources
from iolab.core.run import RunKey
from iolab.core.study import Study
from iolab.record import Record
from iolab.stats.comparison import ComparisonVerdict

Cell = tuple[str, Axis]

SIDES: Final[Mapping[str, str]] = {
    "iops": "IOPS",
    "bw_bytes_per_s": "bandwidth",
    "ops_per_s": "operations",
}
"""What kinds of performance are told apart, by the metric of the workloads' best figures."""

CAPACITY: Final = "capacity"


def largest_speedup_findings(
    compared: Sequence[ConfigurationGains], points: Sequence[PointSummary]
) -> Iterator[LargestSpeedupFinding]:
    """For each candidate and metric the largest gain of all that are supported.

    A gain is supported where the verdict over all cells is better and an interval that holds for
    all of them at once is above 0: the largest of all would often be the noisiest. The interval
    that is told is the cell's own, which every comparison of the two shows.
    """
    runs = _run_keys_by_point(points)
    for gains in compared:
        for metric in gains.metrics:
            largest = gains.largest_supported_gain(metric)
            if largest is None:
                continue
            cell = largest.cell
            low, high = cell.gain_share_interval or (None, None)
            yield LargestSpeedupFinding(
                baseline=gains.baseline,
                candidate=gains.candidate,
                workload=cell.workload,
                axis=cell.axis,
                metric=metric,
                gain_share=cell.gain_share,
                low=low,
                high=high,
                factor=cell.improvement_factor,
                comparison_count=largest.cell_count,
                level=cell.level,
                run_keys=_run_keys_of_both_sides(gains, cell, runs),
            )


def win_loss_findings(
    compared: Sequence[ConfigurationGains], points: Sequence[PointSummary]
) -> Iterator[WinLossFinding]:
    """For each candidate and metric how many cells are better, worse, the same, or neither."""
    runs = _run_keys_by_point(points)
    for gains in compared:
        covered = {(cell.workload, cell.metric) for cell in gains.cells}
        silent = {skipped.workload for skipped in gains.skipped} - {name for name, _ in covered}
        for metric in gains.metrics:
            cells = gains.cells_of_metric(metric)
            about = silent | {cell.workload for cell in gains.cells if cell.metric == metric}
            counts = Counter(cell.comparison.verdict for cell in cells)
            unsupported = Counter(
                min(cell.comparison.run_counts)
                for cell in cells
                if _is_large_gap_without_interval(cell)
            )
            yield WinLossFinding(
                baseline=gains.baseline,
                candidate=gains.candidate,
                metric=metric,
                verdict_counts=tuple((verdict, counts[verdict]) for verdict in ComparisonVerdict),
                skipped_count=sum(
                    1
                    for skipped in gains.skipped
                    if skipped.workload in about and _is_reason_for_metric(skipped.reason, metric)
                ),
                run_keys=tuple(
                    key for cell in cells for key in _run_keys_of_both_sides(gains, cell, runs)
                ),
                apart_counts=tuple(sorted(unsupported.items())),
                chance_count=sum(cell.comparison.may_be_chance for cell in cells),
            )


def _is_large_gap_without_interval(cell: ComparedMetric) -> bool:
    """Whether its figures are not close, and no interval says whether they differ."""
    compared = cell.comparison
    ratio = max(compared.ratio, 1 / compared.ratio)
    return (
        compared.verdict is ComparisonVerdict.INCONCLUSIVE
        and compared.low is None
        and ratio > CLOSE_RATIO
    )


def crossover_findings(
    study: Study, compared: Sequence[ConfigurationGains], points: Sequence[PointSummary]
) -> Iterator[CrossoverFinding]:
    """Where one configuration leads at small loads and the other at large ones, both supported."""
    runs = _run_keys_by_point(points)
    for gains in compared:
        for workload in study.workloads:
            names = [axis.name for axis in workload.sweep if axis.name in workload.job.load_axes]
            if len(names) != 1:
                continue
            for metric in gains.metrics[:1]:
                for (_, fixed), cells in group_along_load_axis(
                    names[0],
                    gains.cells_of_metric(metric, workload.id),
                    lambda cell: ("", cell.axis),
                ):
                    yield from _crossovers_of_curves(gains, cells, names[0], fixed, runs)


def _crossovers_of_curves(
    gains: ConfigurationGains,
    cells: Sequence[ComparedMetric],
    axis_name: str,
    other_axes: Axis,
    run_keys_by_point: dict[tuple[str, str, Axis], tuple[RunKey, ...]],
) -> Iterator[CrossoverFinding]:
    """One crossing of two curves: all supported cells of the one lie below those of the other."""
    leads = [cell for cell in cells if cell.comparison.verdict is ComparisonVerdict.BETTER]
    trails = [cell for cell in cells if cell.comparison.verdict is ComparisonVerdict.WORSE]
    if not leads or not trails:
        return
    first = _load_on_axis(leads[0], axis_name) < _load_on_axis(trails[0], axis_name)
    low, high = (leads, trails) if first else (trails, leads)
    last, start = _load_on_axis(low[-1], axis_name), _load_on_axis(high[0], axis_name)
    if last >= start:
        return
    pair = (gains.candidate, gains.baseline)
    below, above = pair if first else pair[::-1]
    yield CrossoverFinding(
        low_load_leader=below,
        high_load_leader=above,
        workload=low[-1].workload,
        metric=low[-1].metric,
        axis=axis_name,
        fixed_axis=other_axes,
        last_low_load=last,
        first_high_load=start,
        low_load_lead_share=cell_lead_share(low[-1]),
        high_load_lead_share=cell_lead_share(high[0]),
        leads_at_all_lower_loads=all(
            cell in low for cell in cells if _load_on_axis(cell, axis_name) <= last
        ),
        leads_at_all_higher_loads=all(
            cell in high for cell in cells if _load_on_axis(cell, axis_name) >= start
        ),
        level=worst_level((low[-1].level, high[0].level)),
        run_keys=(
            *_run_keys_of_both_sides(gains, low[-1], run_keys_by_point),
            *_run_keys_of_both_sides(gains, high[0], run_keys_by_point),
        ),
    )


def cell_lead_share(cell: ComparedMetric) -> float:
    """What the better of the two is better by, as a share of the other's."""
    if cell.gain_share >= 0:
        return cell.gain_share
    return gain_share_of_ratio(1 / cell.comparison.ratio, cell.better)


def _is_reason_for_metric(reason: str, metric: str) -> bool:
    """Whether a reason is of a whole cell or of this metric of it, by which it then begins."""
    name, colon, _ = reason.partition(": ")
    return not colon or name == metric


def _load_on_axis(cell: ComparedMetric, axis_name: str) -> int:
    return int(dict(cell.axis)[axis_name])


def _run_keys_by_point(
    points: Sequence[PointSummary],
) -> dict[tuple[str, str, Axis], tuple[RunKey, ...]]:
    return {
        (point.key.configuration, point.key.workload, point.key.axis): run_keys_of_points([point])
        for point in points
    }


def _run_keys_of_both_sides(
    gains: ConfigurationGains,
    cell: ComparedMetric,
    run_keys_by_point: dict[tuple[str, str, Axis], tuple[RunKey, ...]],
) -> tuple[RunKey, ...]:
    """The runs of both sides of a cell."""
    place = (cell.workload, cell.axis)
    return (
        *run_keys_by_point.get((gains.baseline, *place), ()),
        *run_keys_by_point.get((gains.candidate, *place), ()),
    )


def runner_up_and_leader_ids(best: Sequence[BestPointFinding]) -> tuple[str, str] | None:
    """The two that a buyer decides between: most often the best of a workload, and next to it.

    The second comes first, as the baseline. None of fewer than three configurations.
    """
    by_workload: dict[str, list[BestPointFinding]] = {}
    for figure in best:
        if figure.value.value is not None and figure.level is not VerdictLevel.INVALID:
            by_workload.setdefault(figure.workload, []).append(figure)
    ranks: dict[str, list[int]] = {}
    for own in by_workload.values():
        is_lower_better = metric_spec(own[0].metric).better is BetterDirection.LOWER
        ordered = sorted(
            own, key=lambda figure: figure.value.value or 0.0, reverse=not is_lower_better
        )
        for place, figure in enumerate(ordered):
            ranks.setdefault(figure.configuration, []).append(place)
    complete = [name for name, places in ranks.items() if len(places) == len(by_workload)]
    if len(complete) < 3:
        return None
    leader, second, *_ = sorted(complete, key=lambda name: sum(ranks[name]))
    return second, leader


def all_findings(
    study: Study,
    points: Sequence[PointSummary],
    compared: Sequence[ConfigurationGains],
    resources_by_run: Mapping[RunKey, RunResources] = MappingProxyType({}),
    leader_over_runner_up: ConfigurationGains | None = None,
) -> tuple[Finding, ...]:
    """Every finding of a study's results.

    `compared` are the other configurations against the first, if any, and `resources_by_run` what
    some runs tell of their resources. `leader_over_runner_up` is the best against the next best,
    where that is told first. Within a kind the order is the study's, but for gains and
    prices: the largest first.
    """
    best = tuple(best_point_findings(study, points))
    needs = tuple(recommendations(study, best))
    dear = sorted(
        per_cost_and_capacity_findings(study, best),
        key=lambda finding: (finding.workload, finding.divisor_unit, finding.rank),
    )
    first = () if leader_over_runner_up is None else (leader_over_runner_up,)
    pairs = {(gains.baseline, gains.candidate) for gains in first}
    others = [gains for gains in compared if (gains.baseline, gains.candidate) not in pairs]
    return (
        *(need for need in needs if need.is_certain),
        *_gain_and_win_loss_findings(first, points),
        *_gain_and_win_loss_findings(others, points),
        *crossover_findings(study, compared, points),
        *(need for need in needs if not need.is_certain),
        *best,
        *bottleneck_findings(study, points, best, resources_by_run),
        *knee_findings(study, points),
        *dear,
    )


def _gain_and_win_loss_findings(
    compared: Sequence[ConfigurationGains], points: Sequence[PointSummary]
) -> Iterator[Finding]:
    """The largest gains, the very largest first, then in how many points each is ahead."""
    yield from sorted(
        largest_speedup_findings(compared, points), key=lambda finding: -finding.gain_share
    )
    yield from win_loss_findings(compared, points)


class ScoreInterval(Record):
    """A configuration's measure with the least and the most that its intervals allow."""

    value: float
    low: float
    high: float


_ScoresByConfiguration = dict[str, ScoreInterval]


class _ConfigurationScores(Record):
    """The configurations that are held against each other, and what is known of all of them.

    Capacities are empty unless all tell the same kind, `metric` that kind. Costs are thousands of
    one currency, empty unless all tell theirs. `scores_by_dimension` are the geometric means of the
    best figures by kind of performance, over the `workloads` that all have in common, and
    `scores_by_workload` the figures of each of these.
    """

    configuration_ids: tuple[str, ...]
    terabytes_by_configuration: Mapping[str, float]
    metric: str
    cost_thousands_by_configuration: Mapping[str, float]
    currency: str
    scores_by_dimension: Mapping[str, _ScoresByConfiguration]
    scores_by_workload: Mapping[str, _ScoresByConfiguration]
    workloads: tuple[str, ...]
    level: VerdictLevel
    has_single_runs: bool
    runs: Mapping[str, tuple[RunKey, ...]]

    @property
    def cost_divisor_text(self) -> str:
        """What figures are for, empty where not all costs are known."""
        return f"{MONEY:g} {self.currency}" if self.cost_thousands_by_configuration else ""

    def capacity_scores(self) -> _ScoresByConfiguration:
        """Capacity, for money where all costs are known; exact, since it is bought."""
        scores = {}
        for configuration_id, size in self.terabytes_by_configuration.items():
            figure = size / self.cost_thousands_by_configuration.get(configuration_id, 1.0)
            scores[configuration_id] = ScoreInterval(figure, figure, figure)
        return scores

    def scores_per_cost(self, scores: _ScoresByConfiguration) -> _ScoresByConfiguration:
        """Scores for money where all costs are known, else as they are."""
        return {
            configuration_id: divide_score(
                score, self.cost_thousands_by_configuration.get(configuration_id, 1.0)
            )
            for configuration_id, score in scores.items()
        }


def recommendations(study: Study, best: Sequence[BestPointFinding]) -> Iterator[Recommendation]:
    """A finding for each need that the study can tell of; none of one configuration.

    One that loads the storage of another with fewer hosts is no choice of its own.
    """
    field = _build_configuration_scores(
        configurations_without_host_subsets(study.configurations), best
    )
    if len(field.configuration_ids) < 2:
        return
    if field.terabytes_by_configuration:
        yield _capacity_recommendation(field)
    performance = _mean_of_performance_scores(list(field.scores_by_dimension.values()))
    if performance:
        by_workload = _mean_of_performance_scores(list(field.scores_by_workload.values()))
        yield _performance_recommendation(
            field, BuyerNeed.PERFORMANCE, performance, by_workload=by_workload
        )
        if field.cost_thousands_by_configuration:
            yield _performance_recommendation(
                field,
                BuyerNeed.VALUE,
                field.scores_per_cost(performance),
                field.cost_divisor_text,
                by_workload=field.scores_per_cost(by_workload),
            )
    sides = _shares_of_best_by_dimension(field, field.scores_by_dimension)
    if len(sides) > 1:
        yield _performance_recommendation(
            field,
            BuyerNeed.BALANCE,
            _minimum_over_dimensions(field, sides),
            field.cost_divisor_text,
            sides,
            by_workload=_minimum_over_dimensions(
                field, _shares_of_best_by_dimension(field, field.scores_by_workload)
            ),
        )


def _shares_of_best_by_dimension(
    configuration_scores: _ConfigurationScores, scores: Mapping[str, _ScoresByConfiguration]
) -> dict[str, _ScoresByConfiguration]:
    """Each as shares of its best, for money where all costs are known, and those of capacity."""
    sides = {
        name: _shares_of_best(configuration_scores.scores_per_cost(own))
        for name, own in scores.items()
    }
    if configuration_scores.terabytes_by_configuration:
        sides = {CAPACITY: _shares_of_best(configuration_scores.capacity_scores()), **sides}
    return sides


def _minimum_over_dimensions(
    configuration_scores: _ConfigurationScores,
    shares_by_dimension: Mapping[str, _ScoresByConfiguration],
) -> _ScoresByConfiguration:
    return {
        configuration_id: _elementwise_minimum_score(
            [shares[configuration_id] for shares in shares_by_dimension.values()]
        )
        for configuration_id in configuration_scores.configuration_ids
    }


class ValueForMoney(Record):
    """Best rates for money by configuration; no `scores` where these cannot be compared.

    `performance_kinds` of performance count once each, over so many workloads.
    `depends_on_weighing` is whether another configuration leads where each workload counts once.
    """

    scores: Mapping[str, ScoreInterval]
    workload_count: int
    performance_kinds: tuple[str, ...]
    depends_on_weighing: bool


def value_for_money(
    configurations: Sequence[Configuration], best: Sequence[BestPointFinding]
) -> ValueForMoney:
    """Best rates for money, unless a configuration has no cost or rate, or there is only one."""
    field = _build_configuration_scores(configurations, best)
    if (
        not field.cost_thousands_by_configuration
        or len(field.configuration_ids) < 2
        or not field.workloads
    ):
        return ValueForMoney({}, 0, (), depends_on_weighing=False)
    scores, by_workload = (
        field.scores_per_cost(_mean_of_performance_scores(list(each.values())))
        for each in (field.scores_by_dimension, field.scores_by_workload)
    )
    leaders = {_configuration_ids_best_first(each)[0] for each in (scores, by_workload)}
    return ValueForMoney(
        scores,
        len(field.workloads),
        tuple(field.scores_by_dimension),
        depends_on_weighing=len(leaders) > 1,
    )


def _build_configuration_scores(
    configurations: Sequence[Configuration], best: Sequence[BestPointFinding]
) -> _ConfigurationScores:
    owners = tuple(configuration.id for configuration in configurations)
    rates = [
        figure for figure in best if figure.metric in SIDES and (figure.value.value or 0.0) > 0
    ]
    by_place = {(figure.configuration, figure.workload): figure for figure in rates}
    common = [
        name
        for name in dict.fromkeys(figure.workload for figure in rates)
        if all((configuration_id, name) in by_place for configuration_id in owners)
    ]
    scores_of_configuration = {
        configuration_id: [by_place[configuration_id, name] for name in common]
        for configuration_id in owners
    }
    used = [figure for several in scores_of_configuration.values() for figure in several]
    metric, capacity = _capacity_metric_and_terabytes_by_configuration(configurations)
    money = cost_currencies(configurations)
    priced = {
        configuration.id: configuration.cost.total / MONEY
        for configuration in configurations
        if configuration.cost is not None
    }
    priced = {configuration_id: cost for configuration_id, cost in priced.items() if cost > 0}
    priced_alike = len(priced) == len(owners) and len(money) == 1
    return _ConfigurationScores(
        configuration_ids=owners,
        terabytes_by_configuration=capacity,
        metric=metric,
        cost_thousands_by_configuration=priced if priced_alike else {},
        currency=money[0] if priced_alike else "",
        scores_by_dimension=_performance_scores(scores_of_configuration),
        scores_by_workload={
            name: {owner: _score_of_metric(by_place[owner, name].value) for owner in owners}
            for name in common
        },
        workloads=tuple(common),
        level=worst_level(figure.level for figure in used),
        has_single_runs=any(figure.value.low is None for figure in used),
        runs={
            configuration_id: tuple(key for figure in best for key in figure.run_keys)
            for configuration_id, best in scores_of_configuration.items()
        },
    )


def _capacity_metric_and_terabytes_by_configuration(
    configurations: Sequence[Configuration],
) -> tuple[str, dict[str, float]]:
    """Usable capacity where all tell it, else raw; nothing where they tell different ones."""
    for metric in ("usable_tb", "raw_tb"):
        sizes = {
            configuration.id: getattr(configuration.capacity, metric)
            for configuration in configurations
        }
        if all(sizes.values()):
            return metric, sizes
    return "", {}


def _performance_scores(
    scores_of_configuration: Mapping[str, Sequence[BestPointFinding]],
) -> dict[str, _ScoresByConfiguration]:
    """By kind of performance each configuration's geometric mean over its workloads."""
    kinds = dict.fromkeys(
        figure.metric for best in scores_of_configuration.values() for figure in best
    )
    return {
        SIDES[kind]: {
            configuration_id: _geometric_mean_score(
                [_score_of_metric(figure.value) for figure in best if figure.metric == kind]
            )
            for configuration_id, best in scores_of_configuration.items()
        }
        for kind in kinds
    }


def _mean_of_performance_scores(
    scores_of_kinds: Sequence[_ScoresByConfiguration],
) -> _ScoresByConfiguration:
    """The geometric mean of all kinds of performance, each counting once."""
    owners = dict.fromkeys(
        configuration_id for side in scores_of_kinds for configuration_id in side
    )
    return {
        configuration_id: _geometric_mean_score(
            [side[configuration_id] for side in scores_of_kinds]
        )
        for configuration_id in owners
    }


def _score_of_metric(metric: Metric) -> ScoreInterval:
    """A figure; nothing is known of how far one may be off that has no interval to show."""
    value = metric.value or 0.0
    low, high = metric.displayable_interval or (0.0, math.inf)
    return ScoreInterval(value, low, high)


def _geometric_mean_score(scores: Sequence[ScoreInterval]) -> ScoreInterval:
    """The geometric mean, from that of all lower ends to that of all upper ends: wide, but sure."""

    def geometric_mean(values: Sequence[float]) -> float:
        if min(values) <= 0 or max(values) == math.inf:
            return 0.0 if min(values) <= 0 else math.inf
        return math.exp(math.fsum(map(math.log, values)) / len(values))

    return ScoreInterval(
        geometric_mean([score.value for score in scores]),
        geometric_mean([score.low for score in scores]),
        geometric_mean([score.high for score in scores]),
    )


def divide_score(score: ScoreInterval, divisor: float) -> ScoreInterval:
    """The score divided by `divisor`, with its interval."""
    return ScoreInterval(score.value / divisor, score.low / divisor, score.high / divisor)


def _shares_of_best(scores: _ScoresByConfiguration) -> _ScoresByConfiguration:
    """Each as a share of the best, with the least and the most that all intervals allow.

    Where intervals overlap any of them may be the best: none is sure to have all of it.
    """
    top = max(score.value for score in scores.values())
    shares = {}
    for configuration_id, score in scores.items():
        others = [other for name, other in scores.items() if name != configuration_id]
        most = max(other.high for other in others)
        least = max(other.low for other in others)
        low = 0.0 if score.low <= 0 else score.low / max(score.low, most)
        high = 1.0 if score.high >= least else score.high / least
        shares[configuration_id] = ScoreInterval(score.value / top, low, high)
    return shares


def _elementwise_minimum_score(shares: Sequence[ScoreInterval]) -> ScoreInterval:
    return ScoreInterval(
        min(share.value for share in shares),
        min(share.low for share in shares),
        min(share.high for share in shares),
    )


def _configuration_ids_best_first(scores: _ScoresByConfiguration) -> list[str]:
    """The owners, the best first; of equal ones as the study has them."""
    return sorted(scores, key=lambda configuration_id: -scores[configuration_id].value)


def _is_clear_leader(scores: _ScoresByConfiguration, leader_id: str) -> bool:
    """Whether it is above all others whatever their intervals allow."""
    return all(
        scores[leader_id].low > score.high
        for configuration_id, score in scores.items()
        if configuration_id != leader_id
    )


def _capacity_recommendation(configuration_scores: _ConfigurationScores) -> Recommendation:
    scores = configuration_scores.capacity_scores()
    best, second, *_ = _configuration_ids_best_first(scores)
    return Recommendation(
        need=BuyerNeed.CAPACITY,
        configuration=best,
        runner_up=second,
        lead_factor=scores[best].value / scores[second].value,
        cost_divisor_text=configuration_scores.cost_divisor_text,
        compared_point_count=len(configuration_scores.configuration_ids),
        is_certain=_is_clear_leader(scores, best),
        has_single_runs=False,
        need_dimensions=(),
        workloads=(),
        terabytes=scores[best].value,
        metric=configuration_scores.metric,
        level=None,
        run_keys=(),
    )


def _performance_recommendation(
    configuration_scores: _ConfigurationScores,
    need: BuyerNeed,
    scores: _ScoresByConfiguration,
    cost_divisor_text: str = "",
    shares_by_dimension: Mapping[str, _ScoresByConfiguration] | None = None,
    *,
    by_workload: _ScoresByConfiguration,
) -> Recommendation:
    """The leader by `scores`, sure only where it also leads `by_workload`."""
    best, second, *_ = _configuration_ids_best_first(scores)
    leader, next_best, *_ = _configuration_ids_best_first(by_workload)
    depends_on_weighing = by_workload[leader].value > by_workload[best].value
    return Recommendation(
        need=need,
        configuration=best,
        runner_up=second,
        lead_factor=scores[best].value / scores[second].value,
        cost_divisor_text=cost_divisor_text,
        compared_point_count=len(configuration_scores.configuration_ids),
        is_certain=_is_clear_leader(scores, best) and not depends_on_weighing,
        has_single_runs=configuration_scores.has_single_runs,
        need_dimensions=tuple(
            NeedDimension(name, side[best].value)
            for name, side in (shares_by_dimension or {}).items()
        ),
        workloads=configuration_scores.workloads,
        terabytes=None,
        metric="",
        level=configuration_scores.level,
        run_keys=tuple(
            dict.fromkeys((*configuration_scores.runs[best], *configuration_scores.runs[second]))
        ),
        mean_kinds=tuple(configuration_scores.scores_by_dimension),
        leader_by_workload=leader if depends_on_weighing else "",
        lead_factor_by_workload=(
            by_workload[leader].value / by_workload[next_best].value if depends_on_weighing else 1.0
        ),
    )
