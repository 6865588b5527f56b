"""All findings of a session, what decides first: needs, gains, crossings, bests, limits, bends."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    RepeatKey,
    WinLossFinding,
    best_point_findings,
    bottleneck_findings,
    knee_findings,
    per_cost_and_capacity_findings,
    run_keys_of_points,
)
from iolab.analysis.pairs import ComparedMetric, ConfigurationGains, relative_gain_of_ratio
from iolab.analysis.points import AxisValues, PointSummary, group_along_load_axis
from iolab.analysis.quotients import MONEY, configurations_without_host_subsets, cost_currencies
from iolab.core.configuration import Configuration
from iolab.core.metric import VerdictLevel, worst_verdict_level
from iolab.core.metric_spec import BetterDirection, metric_spec
from iolab.core.resources import RunResources
from iolab.core.run import RunKey
from iolab.core.study import Study
from iolab.record import Record
from iolab.stats.comparison import (
    Comparison,
    ComparisonVerdict,
    apply_holm_correction,
    compare_paired,
    compare_unpaired,
)

Cell = tuple[str, AxisValues]

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
            low, high = cell.relative_gain_interval or (None, None)
            yield LargestSpeedupFinding(
                baseline=gains.baseline,
                candidate=gains.candidate,
                workload=cell.workload,
                axis_values=cell.axis_values,
                metric=metric,
                relative_gain=cell.relative_gain,
                low=low,
                high=high,
                factor=cell.improvement_factor,
                comparison_count=largest.cell_count,
                verdict_level=cell.verdict_level,
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
                far_apart_counts_by_repeat_count=tuple(sorted(unsupported.items())),
                significant_only_alone_count=sum(
                    cell.comparison.is_significant_only_alone for cell in cells
                ),
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
                    lambda cell: ("", cell.axis_values),
                ):
                    yield from _crossovers_of_curves(gains, cells, names[0], fixed, runs)


def _crossovers_of_curves(
    gains: ConfigurationGains,
    cells: Sequence[ComparedMetric],
    axis_name: str,
    other_axis_values: AxisValues,
    run_keys_by_point: dict[tuple[str, str, AxisValues], tuple[RunKey, ...]],
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
        axis_name=axis_name,
        fixed_axis_values=other_axis_values,
        last_low_load=last,
        first_high_load=start,
        low_load_relative_lead=relative_lead_of_cell(low[-1]),
        high_load_relative_lead=relative_lead_of_cell(high[0]),
        leads_at_all_lower_loads=all(
            cell in low for cell in cells if _load_on_axis(cell, axis_name) <= last
        ),
        leads_at_all_higher_loads=all(
            cell in high for cell in cells if _load_on_axis(cell, axis_name) >= start
        ),
        verdict_level=worst_verdict_level((low[-1].verdict_level, high[0].verdict_level)),
        run_keys=(
            *_run_keys_of_both_sides(gains, low[-1], run_keys_by_point),
            *_run_keys_of_both_sides(gains, high[0], run_keys_by_point),
        ),
    )


def relative_lead_of_cell(cell: ComparedMetric) -> float:
    """What the better of the two is better by, as a share of the other's."""
    if cell.relative_gain >= 0:
        return cell.relative_gain
    return relative_gain_of_ratio(1 / cell.comparison.ratio, cell.better)


def _is_reason_for_metric(reason: str, metric_key: str) -> bool:
    """Whether a reason is of a whole cell or of this metric of it, by which it then begins."""
    name, colon, _ = reason.partition(": ")
    return not colon or name == metric_key


def _load_on_axis(cell: ComparedMetric, axis_name: str) -> int:
    return int(dict(cell.axis_values)[axis_name])


def _run_keys_by_point(
    points: Sequence[PointSummary],
) -> dict[tuple[str, str, AxisValues], tuple[RunKey, ...]]:
    return {
        (point.key.configuration, point.key.workload, point.key.axis_values): run_keys_of_points(
            [point]
        )
        for point in points
    }


def _run_keys_of_both_sides(
    gains: ConfigurationGains,
    cell: ComparedMetric,
    run_keys_by_point: dict[tuple[str, str, AxisValues], tuple[RunKey, ...]],
) -> tuple[RunKey, ...]:
    """The runs of both sides of a cell."""
    place = (cell.workload, cell.axis_values)
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
        if figure.value.value is not None and figure.verdict_level is not VerdictLevel.INVALID:
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
        largest_speedup_findings(compared, points), key=lambda finding: -finding.relative_gain
    )
    yield from win_loss_findings(compared, points)


Scores = dict[str, float]
"""A measure of each configuration, by its id; more is better."""

Rates = Mapping[str, Mapping[str, float]]
"""The best rates of workloads, by workload and configuration id."""

Measure = Callable[[Rates], Scores]


class _MeasuredConfigurations(Record):
    """The configurations that are held against each other, and what is known of all of them.

    Capacities are empty unless all tell the same kind, `metric` that kind. Costs are thousands of
    one currency, empty unless all tell theirs. `best` are the best figures by workload and
    configuration, of the workloads that all have in common.
    """

    configuration_ids: tuple[str, ...]
    terabytes_by_configuration: Mapping[str, float]
    metric: str
    cost_thousands_by_configuration: Mapping[str, float]
    currency: str
    best: Mapping[str, Mapping[str, BestPointFinding]]

    @property
    def cost_divisor_text(self) -> str:
        """What figures are for, empty where not all costs are known."""
        return f"{MONEY:g} {self.currency}" if self.cost_thousands_by_configuration else ""

    @property
    def workloads(self) -> tuple[str, ...]:
        """Those that all have in common."""
        return tuple(self.best)

    @property
    def figures(self) -> list[BestPointFinding]:
        """The best of all workloads and configurations."""
        return [figure for own in self.best.values() for figure in own.values()]

    @property
    def rates(self) -> Rates:
        """The published rates of these."""
        return {
            workload: {owner: figure.value.value or 0.0 for owner, figure in own.items()}
            for workload, own in self.best.items()
        }

    @property
    def performance_kinds(self) -> tuple[str, ...]:
        """The kinds of performance that the workloads tell, in their order."""
        return tuple(self._workloads_by_kind())

    def _workloads_by_kind(self) -> dict[str, list[str]]:
        kinds: dict[str, list[str]] = {}
        for workload, own in self.best.items():
            kinds.setdefault(SIDES[next(iter(own.values())).metric], []).append(workload)
        return kinds

    def scores_by_kind(self, rates: Rates) -> dict[str, Scores]:
        """By kind of performance each configuration's geometric mean over its workloads."""
        return {
            kind: _geometric_mean_scores([rates[name] for name in names])
            for kind, names in self._workloads_by_kind().items()
        }

    def performance_weighing_kinds_equally(self, rates: Rates) -> Scores:
        """The geometric mean of all kinds of performance, each counting once."""
        return _geometric_mean_scores(list(self.scores_by_kind(rates).values()))

    def performance_weighing_workloads_equally(self, rates: Rates) -> Scores:
        """The same where each workload counts once."""
        return _geometric_mean_scores(list(rates.values()))

    def value_weighing_kinds_equally(self, rates: Rates) -> Scores:
        """Performance for money."""
        return self._per_cost(self.performance_weighing_kinds_equally(rates))

    def value_weighing_workloads_equally(self, rates: Rates) -> Scores:
        """The same where each workload counts once."""
        return self._per_cost(self.performance_weighing_workloads_equally(rates))

    def shares_of_best(
        self, scores_by_side: Mapping[str, Mapping[str, float]]
    ) -> dict[str, Scores]:
        """Each side as shares of its best, for money where all costs are known; and of capacity."""
        sides = {name: self._per_cost(own) for name, own in scores_by_side.items()}
        if self.terabytes_by_configuration:
            sides = {CAPACITY: self.capacity(), **sides}
        return {
            name: {owner: score / max(own.values()) for owner, score in own.items()}
            for name, own in sides.items()
        }

    def balance(self, rates: Rates) -> Scores:
        """The least share of the best in capacity and each kind of performance."""
        return _least_of_sides(self.shares_of_best(self.scores_by_kind(rates)))

    def balance_with_equal_workloads(self, rates: Rates) -> Scores:
        """The same with each workload as a side."""
        return _least_of_sides(self.shares_of_best(rates))

    def capacity(self) -> Scores:
        """Capacity, for money where all costs are known; exact, since it is bought."""
        return self._per_cost(self.terabytes_by_configuration)

    def _per_cost(self, scores: Mapping[str, float]) -> Scores:
        """Scores for money where all costs are known, else as they are."""
        costs = self.cost_thousands_by_configuration
        return {owner: score / costs.get(owner, 1.0) for owner, score in scores.items()}

    def lead_comparisons(self, measure: Measure, leader: str) -> dict[str, Comparison]:
        """Each other against the leader, judged as all comparisons are; without those unknown.

        A repeat of the best points has a score as their means have: those of one block are paired.
        """
        others = [owner for owner in self.configuration_ids if owner != leader]
        compared = {other: self._comparison_of_scores(measure, leader, other) for other in others}
        known = {other: own for other, own in compared.items() if own is not None}
        return dict(zip(known, apply_holm_correction(list(known.values())), strict=True))

    def is_clear_leader(self, measure: Measure, leader: str) -> bool:
        """Whether comparisons support that it is above all others."""
        compared = self.lead_comparisons(measure, leader)
        return len(compared) == len(self.configuration_ids) - 1 and all(
            own.verdict is ComparisonVerdict.WORSE for own in compared.values()
        )

    def _comparison_of_scores(
        self, measure: Measure, leader_id: str, trailing_id: str
    ) -> Comparison | None:
        first, second = self._common_repeats(leader_id), self._common_repeats(trailing_id)
        both = [repeat for repeat in first if repeat in second]
        if len(both) > 1:
            pairs = [measure(self._rates_of_repeat((leader_id, trailing_id), key)) for key in both]
            return compare_paired(
                [scores[leader_id] for scores in pairs], [scores[trailing_id] for scores in pairs]
            )
        if not first or not second:
            return None
        own, others = (
            [measure(self._rates_of_repeat((owner,), key))[owner] for key in keys]
            for owner, keys in ((leader_id, first), (trailing_id, second))
        )
        return compare_unpaired(own, others)

    def _common_repeats(self, owner: str) -> list[RepeatKey]:
        """The repeats of which a configuration has every best point."""
        own = [dict(figures[owner].values_by_repeat) for figures in self.best.values()]
        return [key for key in own[0] if all(key in values for values in own)] if own else []

    def _rates_of_repeat(self, owners: Sequence[str], repeat: RepeatKey) -> Rates:
        """The rates, those of some configurations by one repeat alone."""
        return {
            workload: {
                owner: dict(figure.values_by_repeat)[repeat]
                if owner in owners
                else figure.value.value or 0.0
                for owner, figure in own.items()
            }
            for workload, own in self.best.items()
        }


def recommendations(study: Study, best: Sequence[BestPointFinding]) -> Iterator[Recommendation]:
    """A finding for each need that the study can tell of; none of one configuration.

    One that loads the storage of another with fewer hosts is no choice of its own.
    """
    field = _measured_configurations(
        configurations_without_host_subsets(study.configurations), best
    )
    if len(field.configuration_ids) < 2:
        return
    if field.terabytes_by_configuration:
        yield _capacity_recommendation(field)
    if field.workloads:
        yield _performance_recommendation(
            field,
            BuyerNeed.PERFORMANCE,
            field.performance_weighing_kinds_equally,
            field.performance_weighing_workloads_equally,
        )
        if field.cost_thousands_by_configuration:
            yield _performance_recommendation(
                field,
                BuyerNeed.VALUE,
                field.value_weighing_kinds_equally,
                field.value_weighing_workloads_equally,
                field.cost_divisor_text,
            )
    sides = field.shares_of_best(field.scores_by_kind(field.rates))
    if len(sides) > 1:
        yield _performance_recommendation(
            field,
            BuyerNeed.BALANCE,
            field.balance,
            field.balance_with_equal_workloads,
            field.cost_divisor_text,
            sides,
        )


def performance_recommendation(
    study: Study, best: Sequence[BestPointFinding]
) -> Recommendation | None:
    """Which has the best rates over all workloads; None where none can be compared."""
    return next(
        (each for each in recommendations(study, best) if each.need is BuyerNeed.PERFORMANCE), None
    )


class ValueForMoney(Record):
    """Best rates for money by configuration; no scores where these cannot be compared.

    `performance_kinds` of performance count once each, over so many workloads. `is_certain` is
    whether comparisons support the lead; `lead_interval` is that over the next best, None where it
    is not known. `depends_on_weighing` is whether another configuration leads where each workload
    counts once.
    """

    scores_by_configuration: Scores
    workload_count: int
    performance_kinds: tuple[str, ...]
    depends_on_weighing: bool
    is_certain: bool = False
    lead_interval: tuple[float, float] | None = None


def value_for_money(
    configurations: Sequence[Configuration], best: Sequence[BestPointFinding]
) -> ValueForMoney:
    """Best rates for money, unless a configuration has no cost or rate, or there is only one."""
    field = _measured_configurations(configurations, best)
    if (
        not field.cost_thousands_by_configuration
        or len(field.configuration_ids) < 2
        or not field.workloads
    ):
        return ValueForMoney({}, 0, (), depends_on_weighing=False)
    scores = field.value_weighing_kinds_equally(field.rates)
    leader, second, *_ = _configuration_ids_best_first(scores)
    compared = field.lead_comparisons(field.value_weighing_kinds_equally, leader).get(second)
    interval = None
    if compared is not None and compared.low is not None and compared.high is not None:
        interval = (1 / compared.high, 1 / compared.low)
    return ValueForMoney(
        scores,
        len(field.workloads),
        field.performance_kinds,
        depends_on_weighing=_leads_other_with_equal_workloads(
            field.value_weighing_workloads_equally(field.rates), leader
        ),
        is_certain=field.is_clear_leader(field.value_weighing_kinds_equally, leader),
        lead_interval=interval,
    )


def _measured_configurations(
    configurations: Sequence[Configuration], best: Sequence[BestPointFinding]
) -> _MeasuredConfigurations:
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
    metric, capacity = _capacity_metric_and_terabytes_by_configuration(configurations)
    money = cost_currencies(configurations)
    priced = {
        configuration.id: configuration.cost.total / MONEY
        for configuration in configurations
        if configuration.cost is not None
    }
    priced = {configuration_id: cost for configuration_id, cost in priced.items() if cost > 0}
    priced_alike = len(priced) == len(owners) and len(money) == 1
    return _MeasuredConfigurations(
        configuration_ids=owners,
        terabytes_by_configuration=capacity,
        metric=metric,
        cost_thousands_by_configuration=priced if priced_alike else {},
        currency=money[0] if priced_alike else "",
        best={name: {owner: by_place[owner, name] for owner in owners} for name in common},
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


def _geometric_mean_scores(several: Sequence[Mapping[str, float]]) -> Scores:
    """The geometric mean of each configuration's scores."""
    owners = dict.fromkeys(owner for scores in several for owner in scores)
    return {
        owner: math.exp(math.fsum(math.log(scores[owner]) for scores in several) / len(several))
        for owner in owners
    }


def _least_of_sides(sides: Mapping[str, Scores]) -> Scores:
    owners = dict.fromkeys(owner for scores in sides.values() for owner in scores)
    return {owner: min(scores[owner] for scores in sides.values()) for owner in owners}


def _configuration_ids_best_first(scores: Scores) -> list[str]:
    """The owners, the best first; of equal ones as the study has them."""
    return sorted(scores, key=lambda configuration_id: -scores[configuration_id])


def _leads_other_with_equal_workloads(scores_with_equal_workloads: Scores, leader: str) -> bool:
    """Whether another than the leader is above it where each workload counts once."""
    return max(scores_with_equal_workloads.values()) > scores_with_equal_workloads[leader]


def _capacity_recommendation(field: _MeasuredConfigurations) -> Recommendation:
    scores = field.capacity()
    best, second, *_ = _configuration_ids_best_first(scores)
    return Recommendation(
        need=BuyerNeed.CAPACITY,
        configuration=best,
        runner_up=second,
        lead_factor=scores[best] / scores[second],
        cost_divisor_text=field.cost_divisor_text,
        compared_configuration_count=len(field.configuration_ids),
        is_certain=scores[best] > scores[second],
        has_single_runs=False,
        need_dimensions=(),
        workloads=(),
        terabytes=scores[best],
        metric=field.metric,
        verdict_level=None,
        run_keys=(),
    )


def _performance_recommendation(
    field: _MeasuredConfigurations,
    need: BuyerNeed,
    measure: Measure,
    measure_with_equal_workloads: Measure,
    cost_divisor_text: str = "",
    shares_by_dimension: Mapping[str, Scores] | None = None,
) -> Recommendation:
    """The leader by `measure`, sure only where it also leads by `measure_with_equal_workloads`."""
    scores, scores_with_equal_workloads = (
        measure(field.rates),
        measure_with_equal_workloads(field.rates),
    )
    best, second, *_ = _configuration_ids_best_first(scores)
    leader, next_best, *_ = _configuration_ids_best_first(scores_with_equal_workloads)
    depends_on_weighing = _leads_other_with_equal_workloads(scores_with_equal_workloads, best)
    figures = field.figures
    of_both = [figure for figure in figures if figure.configuration in (best, second)]
    return Recommendation(
        need=need,
        configuration=best,
        runner_up=second,
        lead_factor=scores[best] / scores[second],
        cost_divisor_text=cost_divisor_text,
        compared_configuration_count=len(field.configuration_ids),
        is_certain=not depends_on_weighing and field.is_clear_leader(measure, best),
        has_single_runs=any(figure.value.low is None for figure in figures),
        need_dimensions=tuple(
            NeedDimension(name, side[best]) for name, side in (shares_by_dimension or {}).items()
        ),
        workloads=field.workloads,
        terabytes=None,
        metric="",
        verdict_level=worst_verdict_level(figure.verdict_level for figure in figures),
        run_keys=tuple(dict.fromkeys(key for figure in of_both for key in figure.run_keys)),
        performance_kinds=field.performance_kinds,
        leader_if_workloads_weigh_equally=leader if depends_on_weighing else "",
        lead_factor_if_workloads_weigh_equally=(
            scores_with_equal_workloads[leader] / scores_with_equal_workloads[next_best]
            if depends_on_weighing
            else 1.0
        ),
    )
