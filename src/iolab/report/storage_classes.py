"""The answer of a session that compares storage classes of Kubernetes: ratios, pods, money."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from iolab.analysis.pairs import ComparedMetric, ConfigurationGains, compare_configurations
from iolab.analysis.points import PointSummary
from iolab.core.kubernetes import PodFleet, VolumeAccess
from iolab.core.metric import Metric
from iolab.core.metric_spec import BetterDirection
from iolab.core.study import Study
from iolab.report.numbers import axis_values_text, factor_with_interval_text
from iolab.report.phrases import metric_phrase
from iolab.stats.comparison import ComparisonVerdict
from iolab.text import counted_noun, list_text

CLASSES_COMPARED: Final = 3
"""Classes that are held against the slowest in a sentence; the table has all."""


def storage_classes_sentence(study: Study, points: Sequence[PointSummary]) -> str:
    """How many times as fast each class is as the slowest; empty of fewer than two classes."""
    fleet = study.kubernetes
    if fleet is None or len(fleet.classes) < 2:
        return ""
    gains = _gains_over_slowest(study, points)
    texts = [
        text
        for each in gains[:CLASSES_COMPARED]
        for text in _class_comparison_texts(study, fleet, each)
    ]
    if not texts:
        return ""
    return f"{'; '.join((*texts, _pod_count_text(fleet)))}."


def _gains_over_slowest(
    study: Study, points: Sequence[PointSummary]
) -> tuple[ConfigurationGains, ...]:
    """Each class against that whose rate is the least in the first workload, fastest first."""
    gains_over_first = compare_configurations(study, points)
    if not gains_over_first:
        return ()
    slowest = min(gains_over_first, key=_first_cell_improvement_factor)
    if _first_cell_improvement_factor(slowest) < 1:
        gains_over_first = compare_configurations(study, points, baseline=slowest.candidate)
    return tuple(sorted(gains_over_first, key=_first_cell_improvement_factor, reverse=True))


def _first_cell_improvement_factor(gains: ConfigurationGains) -> float:
    return gains.cells[0].improvement_factor if gains.cells else 1.0


def _class_comparison_texts(
    study: Study, fleet: PodFleet, gains: ConfigurationGains
) -> Iterator[str]:
    """A class against the slowest: rate, latency, other points, money."""
    rates = [cell for cell in gains.cells if cell.better is BetterDirection.HIGHER]
    if not rates:
        return
    titles = study.configuration_titles
    fast, slow = titles.get(gains.candidate, ""), titles.get(gains.baseline, "")
    first = rates[0]
    title = next(item.title for item in study.workloads if item.id == first.workload)
    where = ", ".join(part for part in (title, axis_values_text(first.axis_values)) if part)
    same = first.comparison.verdict in (ComparisonVerdict.SAME, ComparisonVerdict.INCONCLUSIVE)
    doubt = ", which does not tell them apart" if same else ""
    if first.comparison.low is None:
        doubt = ", without an interval: too few valid repeats"
    latency = next(
        (
            _latency_ratio_suffix(cell)
            for cell in gains.cells
            if _is_latency_of_same_point(cell, first)
        ),
        "",
    )
    yield (
        f"{fast} gives {factor_with_interval_text(_ratio_metric(first))} times the "
        f"{metric_phrase(first.metric)} of {slow} in {where}{latency}{doubt}"
    )
    if len(rates) > 1:
        factors = [cell.improvement_factor for cell in rates]
        yield (
            f"over {counted_noun(len(rates), 'point')} {min(factors):.3g} to {max(factors):.3g} "
            "times"
        )
    yield from _price_comparison_texts(fleet, first, fast, slow)


def _is_latency_of_same_point(cell: ComparedMetric, rate_cell: ComparedMetric) -> bool:
    """Whether it is the latency of the same point."""
    is_same_point = (cell.workload, cell.axis_values) == (rate_cell.workload, rate_cell.axis_values)
    return is_same_point and cell.better is BetterDirection.LOWER


def _latency_ratio_suffix(cell: ComparedMetric) -> str:
    return f", at {cell.comparison.ratio:.2g} times the {metric_phrase(cell.metric)}"


def _ratio_metric(cell: ComparedMetric) -> Metric:
    found = cell.comparison
    return Metric(found.ratio, "", found.low, found.high, min(found.run_counts))


def _price_comparison_texts(
    fleet: PodFleet, rate_cell: ComparedMetric, fast_title: str, slow_title: str
) -> Iterator[str]:
    """Prices, and what the same money buys of the rate."""
    prices = {price.storage_class: price for price in fleet.prices}
    high, low = prices.get(fast_title), prices.get(slow_title)
    if high is None or low is None:
        return
    text = f"a GiB and month costs {high.amount_text} and {low.amount_text}"
    if high.currency == low.currency and high.amount > 0 and low.amount > 0:
        ratio = rate_cell.comparison.ratio * low.amount / high.amount
        text += f": for the same money {fast_title} gives {ratio:.3g} times as much"
    yield text


def _pod_count_text(fleet: PodFleet) -> str:
    pods = max(len(item.host_names) for item in fleet.classes)
    place = ", one a node" if fleet.one_per_node and pods > 1 else ""
    shared = " on one volume" if fleet.access is VolumeAccess.RWX else ""
    classes = list_text([item.storage_class for item in fleet.classes], CLASSES_COMPARED)
    return f"{counted_noun(pods, 'pod')} each of {classes}{shared}{place}"
