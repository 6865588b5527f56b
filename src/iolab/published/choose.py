"""Which offers, measured or published, meet what is required, with how many nodes. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import field

from iolab.analysis.energy_cost import EnergyCost, are_only_clients_metered, yearly_energy_cost
from iolab.analysis.points import PointSummary
from iolab.core.configuration import LATENCY_METRIC_KEYS, Configuration, latency_limit_metric_text
from iolab.core.metric import Metric, VerdictLevel
from iolab.core.metric_spec import (
    BetterDirection,
    CombineRule,
    MetricSpec,
    is_metric_declared_by_load_kind,
    metric_spec,
    metrics_declared_by_load_kinds,
)
from iolab.core.wear import RATIO_UNIT
from iolab.published.audit.document import (
    PublishedSet,
    positive_integer_or_none,
    printed_value_range,
)
from iolab.published.recomputed import printed_best_values
from iolab.record import Record
from iolab.report.numbers import value_text
from iolab.study.load_tables import parse_latency_limit

PER_SECOND: Final = "1/s"
BYTES_PER_SECOND: Final = "bytes/s"
_RATE_UNITS: Final = (PER_SECOND, BYTES_PER_SECOND)

_POWERS: Final = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_RATE: Final = re.compile(
    r"\s*(?P<workload>\S+?)(?:\s+(?P<metric>[a-z'-]+))?\s*>=\s*"
    r"(?P<number>[0-9]{1,15}(?:\.[0-9]{1,9})?(?:e[0-9]{1,2})?)\s*"
    r"(?P<scale>(?:[kmgt](?=i?b/s|ops/s|\s|%|$))?)(?P<unit>i?b/s|\s*[a-z]{2,20}/[sj]|\s*iops|\s*%|)\s*",
    re.IGNORECASE,
)
_LATENCY: Final = re.compile(
    r"\s*(?P<workload>\S+)\s+(?P<limit>(?:(?P<metric>[a-z'-]+) )?\S+\s*<=(?P<time>.*))"
)

_NUMBER: Final = re.compile(r"\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*(x|W|J/GB)?\s*", re.IGNORECASE)
_WATTS: Final = "W"
_MAXIMUM_UNITS: Final = ("ns", RATIO_UNIT, _WATTS, "J/GB")
_PLAIN_LABEL: Final = re.compile(r"[A-Za-z' -]+")

_OF_USABLE_POINTS: Final = "of the usable points "
"""Before what was seen where a point that may be better has no usable result."""

NODES_MAX: Final = 100_000
"""Nodes that are advised; a need that takes more is not met."""


class MinimumRate(Record):
    """At least so many I/Os, operations or bytes a second of a workload, in all.

    With `metric`, at least so much of that metric of the workload's kind.
    """

    workload: str
    unit: str
    min_rate: float
    metric: str = ""

    @property
    def name(self) -> str:
        """The workload, and the metric as it is written."""
        return (
            f"{self.workload} {_requirement_metric_name(metric_spec(self.metric))}".rstrip()
            if self.metric
            else self.workload
        )

    @property
    def rate_key(self) -> str:
        """What points have it under."""
        return self.metric or self.unit

    @property
    def grows_with_nodes(self) -> bool:
        """Whether more nodes have more of it."""
        return not self.metric or metric_spec(self.metric).combine is CombineRule.RATE


class MaximumMetric(Record):
    """At most so much of one latency of a workload, where its rate is delivered.

    Of a declared metric that is better when lower, too; `maximum` is in the metric's unit.
    """

    workload: str
    metric: str
    maximum: float

    @property
    def limit_text(self) -> str:
        """The limit as it is written: `p99 <= 2 ms`."""
        return f"{maximum_metric_name(self)} <= {_metric_value_text(self.metric, self.maximum)}"


class Budget(Record):
    """At most so much money; configurations in another currency cannot be held against it."""

    amount: float
    currency: str = ""


class Requirements(Record):
    """Everything that is required; `usable_tb` in decimal terabytes, None for any."""

    usable_tb: float | None = None
    minimum_rates: tuple[MinimumRate, ...] = ()
    maximum_metrics: tuple[MaximumMetric, ...] = ()
    budget: Budget | None = None

    def latency_limits_of_workload(self, workload_id: str) -> tuple[MaximumMetric, ...]:
        """The latencies that a workload must keep."""
        return tuple(latency for latency in self.maximum_metrics if latency.workload == workload_id)


def parse_requirement(text: str) -> MinimumRate | MaximumMetric:
    """`rand-read-4k >= 1M`, `seq-read >= 50GB/s`, `rand-read-4k p99 <= 2ms`. ValueError if none.

    A metric of a kind of load is written by its name: `saves save-time <= 40s`.
    """
    rate = _RATE.fullmatch(text)
    if rate is not None and float(rate["number"]) > 0:
        return _parse_rate(text, rate)
    latency = _LATENCY.fullmatch(text)
    if latency is not None:
        limit = parse_latency_limit(latency["limit"])
        if limit is not None:
            return MaximumMetric(latency["workload"], limit.metric, limit.latency_ns)
        name = latency["limit"].partition("<=")[0].strip()
        spec = _lower_is_better_specs_by_name().get(name)
        maximum = None if spec is None else _parse_maximum(latency["time"], spec)
        if spec is not None and maximum is not None:
            return MaximumMetric(latency["workload"], spec.key, maximum)
    names = ", ".join((*LATENCY_METRIC_KEYS, *_lower_is_better_specs_by_name()))
    raise ValueError(
        f"{text!r} is no need; write 'WORKLOAD >= 1M', 'WORKLOAD >= 50GB/s', "
        f"'WORKLOAD p99 <= 2ms' or 'WORKLOAD node-power <= 160W' (known are {names})"
    )


def _parse_rate(text: str, rate: re.Match[str]) -> MinimumRate:
    unit, scale = rate["unit"].strip().lower(), rate["scale"].lower()
    factor = 1024.0 ** list(_POWERS).index(scale) if unit == "ib/s" else _POWERS[scale]
    number = float(rate["number"]) * factor
    in_bytes = unit in {"b/s", "ib/s"}
    if not rate["metric"]:
        if unit not in {"", "b/s", "ib/s", "iops", "ops/s"}:
            hint = "write the metric, too, as 'WORKLOAD requests >= 50'"
            raise ValueError(f"{text!r} has the unit {unit}; {hint}")
        return MinimumRate(rate["workload"], BYTES_PER_SECOND if in_bytes else PER_SECOND, number)
    amounts = _higher_is_better_specs_by_name()
    spec = amounts.get(rate["metric"].lower())
    if spec is None:
        raise ValueError(f"{text!r} names no metric that should be high ({', '.join(amounts)})")
    own = {BYTES_PER_SECOND: "b/s", "share": "%"}.get(spec.unit, spec.unit).lower()
    if unit and unit.replace("ib/s", "b/s") != own:
        raise ValueError(f"{text!r} is in {unit}, and {rate['metric']} in {spec.unit}")
    least = number / 100 if unit == "%" else number
    if spec.unit == "share" and least > 1:
        raise ValueError(f"{text!r} is a share above 1; write per cent with their sign, as '90 %'")
    return MinimumRate(rate["workload"], spec.unit, least, spec.key)


def _requirement_metric_name(spec: MetricSpec) -> str:
    """As needs name a metric: `save-time`; by its key where its label is no word."""
    is_plain = _PLAIN_LABEL.fullmatch(spec.label)
    return spec.label.replace(" ", "-") if is_plain else spec.key.replace("_", "-")


def _higher_is_better_specs_by_name() -> dict[str, MetricSpec]:
    """Metrics that kinds of load declare and that are better when higher."""
    return {
        _requirement_metric_name(spec): spec
        for spec in metrics_declared_by_load_kinds()
        if spec.better is BetterDirection.HIGHER
    }


def _lower_is_better_specs_by_name() -> dict[str, MetricSpec]:
    """Times and factors that are declared and are better when lower."""
    return {
        _requirement_metric_name(spec): spec
        for spec in metrics_declared_by_load_kinds()
        if spec.better is BetterDirection.LOWER and spec.unit in _MAXIMUM_UNITS
    }


def _parse_maximum(text: str, spec: MetricSpec) -> float | None:
    """A time in ns, or a plain number above 0; None for anything else."""
    if spec.unit == "ns":
        limit = parse_latency_limit(f"mean <={text}")
        return None if limit is None else limit.latency_ns
    number = _NUMBER.fullmatch(text)
    if number is None or float(number[1]) <= 0:
        return None
    return float(number[1]) if (number[2] or spec.unit).lower() == spec.unit.lower() else None


def maximum_metric_name(need: MaximumMetric) -> str:
    """A latency as it is written."""
    if is_metric_declared_by_load_kind(need.metric):
        return _requirement_metric_name(metric_spec(need.metric))
    return latency_limit_metric_text(need.metric)


class OfferedPoint(Record):
    """One workload at one place of its axes: rates by unit or metric, latencies by metric.

    `run_count` is how many measured it. A published figure has the bounds of its rounding, and the
    level and the count of runs None: nobody judged it, or says how often it was measured. Its watts
    grow with the nodes unless it `has_watts_of_clients`.
    """

    workload: str
    axis_values: tuple[tuple[str, int | str], ...]
    rate_by_key: Mapping[str, Metric]
    latency_by_metric: Mapping[str, Metric] = field(default_factory=dict)
    verdict_level: VerdictLevel | None = None
    run_count: int | None = None
    has_watts_of_clients: bool = False


class Offer(Record):
    """A configuration; None for what is not known of it. It was seen with `node_count` nodes.

    Of `workloads_with_lost_points` points were measured that no run supports: one of these may be
    its best.
    """

    name: str
    source: str
    node_count: int | None
    usable_tb: float | None
    cost: float | None
    currency: str
    points: tuple[OfferedPoint, ...]
    workloads_with_lost_points: frozenset[str] = frozenset()
    energy: EnergyCost | None = None

    @property
    def workloads(self) -> tuple[str, ...]:
        """The ids of its points."""
        return tuple(dict.fromkeys(point.workload for point in self.points))


def measured_offer(
    name: str, source: str, configuration: Configuration, points: Sequence[PointSummary]
) -> Offer:
    """A configuration of a session; points that no run supports are left out."""
    cost = configuration.cost
    own = [point for point in points if point.key.configuration == configuration.id]
    trusted = [point for point in own if point.is_trusted]
    return Offer(
        name=name,
        source=source,
        node_count=configuration.nodes,
        usable_tb=configuration.capacity.usable_tb,
        cost=cost.total if cost else None,
        currency=cost.currency if cost else "",
        points=tuple(
            OfferedPoint(
                point.key.workload,
                point.key.axis_values,
                _rates_by_key(point),
                _latencies_by_metric(point),
                point.verdict_level,
                len(point.results),
                has_watts_of_clients=are_only_clients_metered(point),
            )
            for point in trusted
        ),
        workloads_with_lost_points=frozenset(
            point.key.workload for point in own if not point.is_trusted
        ),
        energy=yearly_energy_cost(configuration, own),
    )


def _rates_by_key(point: PointSummary) -> dict[str, Metric]:
    """By `MinimumRate.rate_key`."""
    wanted = (
        ("iops", PER_SECOND),
        ("ops_per_s", PER_SECOND),
        ("bw_bytes_per_s", BYTES_PER_SECOND),
        *((spec.key, spec.key) for spec in _higher_is_better_specs_by_name().values()),
    )
    return {
        unit: metric
        for key, unit in wanted
        if (metric := point.metrics.get(key)) is not None and metric.value is not None
    }


def _latencies_by_metric(point: PointSummary) -> dict[str, Metric]:
    times = {spec.key for spec in _lower_is_better_specs_by_name().values()}
    return {
        key: metric
        for key, metric in point.metrics.items()
        if key in times or metric_spec(key).statistic
    }


def offers_from_published_configurations(published: PublishedSet) -> tuple[Offer, ...]:
    """The configurations of a published set with what was printed of each."""
    maxima = [best for best in printed_best_values(published) if best.value.unit in _RATE_UNITS]
    return tuple(
        Offer(
            name=str(table.get("id", "")),
            source=published.id,
            node_count=positive_integer_or_none(table.get("nodes")),
            usable_tb=_positive_number(table.get("usable_tb")),
            cost=None,
            currency="",
            points=tuple(
                OfferedPoint(best.workload, best.axis_values, {best.value.unit: best.value})
                for best in maxima
                if best.configuration == str(table.get("id", ""))
            ),
        )
        for table in published.tables_of_array("configuration")
    )


def _positive_number(value: object) -> float | None:
    number = (
        None if isinstance(value, list) or printed_value_range(value) is None else float(str(value))
    )
    return number if number and number > 0 else None


class RequirementFulfilment(StrEnum):
    """Whether a requirement is met, worst last."""

    YES = "yes"
    """Also at the low end of the interval, by a valid result, or by plain counting."""
    LIKELY = "likely"
    """By the value; but the result is no more than indicative, or has no interval of chance."""
    ONE_RUN = "one run"
    """By the value of a single run, of which nobody knows how far a second one would lie."""
    UNKNOWN = "unknown"
    """A figure that it takes is not there."""
    NO = "no"

    @property
    def severity(self) -> int:
        """0 for yes; the worst of several decides."""
        return list(RequirementFulfilment).index(self)


class RequirementResult(Record):
    """One requirement of an offer.

    `status_as_measured` is the answer with the nodes that the offer was seen with, `margin` what it
    then has over what is needed by its mean and `margin_low` by the low end of its interval, None
    where unknown. `node_count` is the least number for which `status_when_scaled` holds, which the
    low end decides, and `node_count_by_mean` the number that the mean asks for; None where nodes
    are unknown or no number would do. `axis_values` is the place at which it is met.
    """

    name: str
    message: str
    status_as_measured: RequirementFulfilment
    status_when_scaled: RequirementFulfilment
    margin: float | None = None
    node_count: int | None = None
    axis_values: tuple[tuple[str, int | str], ...] = ()
    margin_low: float | None = None
    node_count_by_mean: int | None = None


class OfferEvaluation(Record):
    """An offer against all requirements: as it was seen, and with `node_count` nodes at `cost`.

    `node_count` is None where it is not known or no number would do, `cost` where it is not known.
    `node_count_by_mean` would do if every rate were its mean. `energy` is that of so many nodes.
    """

    offer: Offer
    requirement_results: tuple[RequirementResult, ...]
    node_count: int | None
    cost: float | None
    node_count_by_mean: int | None = None
    energy: EnergyCost | None = None

    @property
    def status_as_measured(self) -> RequirementFulfilment:
        """The worst of all parts with the nodes that it was seen with."""
        return _worst_status(part.status_as_measured for part in self.requirement_results)

    @property
    def status_when_scaled(self) -> RequirementFulfilment:
        """The worst of all parts with as many nodes as they take."""
        return _worst_status(part.status_when_scaled for part in self.requirement_results)


def evaluate_offer(needs: Requirements, offer: Offer, scaling_efficiency: float) -> OfferEvaluation:
    """Hold an offer against what is needed; `scaling_efficiency` above 0 and up to 1."""
    parts: list[RequirementResult] = []
    if needs.usable_tb is not None:
        parts.append(_capacity_result(needs.usable_tb, offer))
    parts += [
        _rate_result(
            need, needs.latency_limits_of_workload(need.workload), offer, scaling_efficiency
        )
        for need in needs.minimum_rates
    ]
    rated = {need.workload for need in needs.minimum_rates}
    parts += [
        _maximum_metric_result(latency, offer)
        for latency in needs.maximum_metrics
        if latency.workload not in rated and not _is_power_limit(latency)
    ]
    nodes = _nodes_needed_for_all(parts, offer)
    cost = _scaled_cost(offer, nodes)
    share = nodes / offer.node_count if nodes and offer.node_count else 1.0
    parts += [
        _maximum_metric_result(need, offer, share)
        for need in needs.maximum_metrics
        if _is_power_limit(need)
    ]
    if needs.budget is not None:
        parts.append(_budget_result(needs.budget, offer, cost, nodes))
    by_mean = None if nodes is None else _max_required_nodes(parts, offer, does_count_by_mean=True)
    energy = _scaled_energy(offer, nodes)
    return OfferEvaluation(offer, tuple(parts), nodes, cost, by_mean, energy)


def evaluations_best_first(evaluations: Iterable[OfferEvaluation]) -> tuple[OfferEvaluation, ...]:
    """By their answer, then by cost, then by nodes.

    Where costs are in several currencies none is held against another: nodes alone decide.
    """
    every = tuple(evaluations)
    alike = len(known_currencies(every)) < 2
    return tuple(
        sorted(
            every,
            key=lambda candidate: (
                candidate.status_when_scaled.severity,
                candidate.cost if alike and candidate.cost is not None else math.inf,
                math.inf if candidate.node_count is None else candidate.node_count,
            ),
        )
    )


def known_currencies(evaluations: Iterable[OfferEvaluation]) -> tuple[str, ...]:
    """The currencies of the costs that are known, each once."""
    return tuple(
        dict.fromkeys(
            candidate.offer.currency for candidate in evaluations if candidate.cost is not None
        )
    )


def _capacity_result(needed_tb: float, offer: Offer) -> RequirementResult:
    name = f"usable >= {needed_tb:g} TB"
    if offer.usable_tb is None:
        return _unknown_result(name, "its usable capacity is not known")
    margin = offer.usable_tb / needed_tb
    as_is = RequirementFulfilment.YES if margin >= 1 else RequirementFulfilment.NO
    nodes = _nodes_needed_for_rate(needed_tb, offer.usable_tb, offer.node_count, 1.0)
    message = f"{offer.usable_tb:g} TB usable"
    return RequirementResult(
        name, message, as_is, RequirementFulfilment.YES if nodes else as_is, margin, nodes
    )


def _rate_result(
    need: MinimumRate, limits: Sequence[MaximumMetric], offer: Offer, scaling_efficiency: float
) -> RequirementResult:
    """A rate where its latencies are kept; of several places the one that gives most for sure."""
    name = f"{need.name} >= {value_text(need.min_rate, need.unit)}"
    if limits:
        name += "".join(f", {limit.limit_text}" for limit in limits)
    rated = [
        point
        for point in offer.points
        if point.workload == need.workload and need.rate_key in point.rate_by_key
    ]
    if not rated:
        return _unknown_result(name, "it has no such figure of this workload")
    kept = [
        point
        for point in rated
        if all(_latency_limit_status(point, limit) is RequirementFulfilment.YES for limit in limits)
    ]
    if not kept:
        if any(
            _latency_limit_status(point, limit) is RequirementFulfilment.UNKNOWN
            for point in rated
            for limit in limits
        ):
            return _unknown_result(name, "its latencies are not known")
        missed = _unmet_or_unknown_status(need.workload, offer)
        return RequirementResult(name, "no place keeps the latency", missed, missed)
    best = max(kept, key=lambda point: _low_end_of_rate(point.rate_by_key[need.rate_key]))
    metric = best.rate_by_key[need.rate_key]
    had = metric.value or 0.0
    sure = _low_end_of_rate(metric)
    certain = _worst_status(
        _figure_trust_status(best, figure)
        for figure in (metric, *_latencies_with_limit(best, limits))
    )
    as_is = _requirement_status_by_figure(
        certain,
        need.workload,
        offer,
        is_surely_met=sure >= need.min_rate,
        is_met_by_value=had >= need.min_rate,
    )
    counted = offer.node_count if need.grows_with_nodes else None
    nodes = _nodes_needed_for_rate(need.min_rate, sure, counted, scaling_efficiency)
    message, least = value_text(had, need.unit), value_text(sure, need.unit)
    message += f", at least {least}" if least != message else ""
    if as_is is RequirementFulfilment.UNKNOWN:
        message = f"{_OF_USABLE_POINTS}{message}"
    answer = certain if nodes else as_is
    return RequirementResult(
        name,
        message,
        as_is,
        answer,
        had / need.min_rate,
        nodes,
        best.axis_values,
        margin_low=sure / need.min_rate,
        node_count_by_mean=_nodes_needed_for_rate(need.min_rate, had, counted, scaling_efficiency),
    )


def _is_power_limit(need: MaximumMetric) -> bool:
    """Whether a limit is one on power, of which more nodes take more."""
    return is_metric_declared_by_load_kind(need.metric) and metric_spec(need.metric).unit == _WATTS


def _maximum_metric_result(
    need: MaximumMetric, offer: Offer, node_ratio: float = 1.0
) -> RequirementResult:
    """A latency, or other limit, alone: kept at any place of the workload.

    Watts are also of so many times the nodes.
    """
    name = f"{need.workload} {need.limit_text}"
    points = [point for point in offer.points if point.workload == need.workload]
    candidates = [
        point
        for point in points
        if _latency_limit_status(point, need) is not RequirementFulfilment.UNKNOWN
    ]
    if not candidates:
        return _unknown_result(name, "it has no such figure of this workload")
    best = min(
        candidates,
        key=lambda point: _latency_high_end_or_infinity(point.latency_by_metric[need.metric]),
    )
    metric = best.latency_by_metric[need.metric]
    most = _latency_high_end_or_infinity(metric)
    certain = _figure_trust_status(best, metric)
    answer, scaled = (
        _requirement_status_by_figure(
            certain,
            need.workload,
            offer,
            is_surely_met=most * share <= need.maximum,
            is_met_by_value=metric.value is not None and metric.value * share <= need.maximum,
        )
        for share in (1.0, 1.0 if best.has_watts_of_clients else node_ratio)
    )
    message = _value_and_high_end_text(need.metric, metric, most)
    if _is_power_limit(need) and best.has_watts_of_clients:
        message += " of the machines that made the load"
    elif node_ratio != 1 and metric.value is not None:
        message += (
            f"; {_metric_value_text(need.metric, metric.value * node_ratio)} with as many nodes"
        )
    if answer is RequirementFulfilment.UNKNOWN:
        message = f"{_OF_USABLE_POINTS}{message}"
    margin = need.maximum / most if 0 < most < math.inf else None
    return RequirementResult(name, message, answer, scaled, margin, axis_values=best.axis_values)


def _budget_result(
    budget: Budget, offer: Offer, cost: float | None, node_count: int | None
) -> RequirementResult:
    name = f"cost <= {budget.amount:,.0f} {budget.currency}".strip()
    if cost is None or offer.cost is None:
        return _unknown_result(name, "its cost is not known")
    if budget.currency and budget.currency != offer.currency:
        return _unknown_result(name, f"its cost is in {offer.currency}")
    as_is = RequirementFulfilment.YES if offer.cost <= budget.amount else RequirementFulfilment.NO
    answer = RequirementFulfilment.YES if cost <= budget.amount else RequirementFulfilment.NO
    message = (
        f"{cost:,.0f} {offer.currency} with {'its' if node_count is None else 'as many'} nodes"
    )
    message += "" if node_count is None else " as it takes"
    margin = budget.amount / offer.cost if offer.cost > 0 else None
    return RequirementResult(name, message, as_is, answer, margin)


def _value_and_high_end_text(metric_key: str, metric: Metric, high_end: float) -> str:
    """A figure, and the high end of its interval where it has one: `2 ms, at most 3 ms`."""
    if metric.value is None or high_end == math.inf:
        return "more than can be told"
    text, highest = (
        _metric_value_text(metric_key, metric.value),
        _metric_value_text(metric_key, high_end),
    )
    return text if text == highest else f"{text}, at most {highest}"


def _metric_value_text(metric_key: str, value: float) -> str:
    return value_text(value, metric_spec(metric_key).unit)


def _requirement_status_by_figure(
    status_if_sure: RequirementFulfilment,
    workload_id: str,
    offer: Offer,
    *,
    is_surely_met: bool,
    is_met_by_value: bool,
) -> RequirementFulfilment:
    """Of a requirement by the best usable figure: at the bad end of its interval, or by its value.

    `status_if_sure` is how far the figure itself is to be trusted.
    """
    if is_surely_met:
        return status_if_sure
    if is_met_by_value:
        return _worst_status((RequirementFulfilment.LIKELY, status_if_sure))
    return _unmet_or_unknown_status(workload_id, offer)


def _unmet_or_unknown_status(workload_id: str, offer: Offer) -> RequirementFulfilment:
    """Of a requirement that no usable point meets: a point that is lost may be one that does."""
    lost = workload_id in offer.workloads_with_lost_points
    return RequirementFulfilment.UNKNOWN if lost else RequirementFulfilment.NO


def _unknown_result(name: str, message: str) -> RequirementResult:
    return RequirementResult(
        name, message, RequirementFulfilment.UNKNOWN, RequirementFulfilment.UNKNOWN
    )


def _latency_limit_status(point: OfferedPoint, limit: MaximumMetric) -> RequirementFulfilment:
    """Whether a place keeps a latency, at the high end of its interval."""
    metric = point.latency_by_metric.get(limit.metric)
    if metric is None or (metric.value is None and metric.low is None):
        return RequirementFulfilment.UNKNOWN
    return (
        RequirementFulfilment.YES
        if _latency_high_end_or_infinity(metric) <= limit.maximum
        else RequirementFulfilment.NO
    )


def _latencies_with_limit(point: OfferedPoint, limits: Sequence[MaximumMetric]) -> Iterator[Metric]:
    """The latencies of a place that are limited."""
    return (point.latency_by_metric[limit.metric] for limit in limits)


def _low_end_of_rate(metric: Metric) -> float:
    """What a rate has at the low end of its interval; its value where it has none."""
    return metric.low if metric.low is not None else metric.value or 0.0


def _latency_high_end_or_infinity(metric: Metric) -> float:
    """The high end of a latency; one that is only known to be more than a bound has none."""
    if metric.value is None:
        return math.inf
    return metric.high if metric.high is not None else metric.value


def _figure_trust_status(point: OfferedPoint, metric: Metric) -> RequirementFulfilment:
    """Sure is a valid result with an interval of chance; rounding alone tells of none.

    An interval that one run has by the spread of other points tells nothing of its own repeats.
    """
    if point.run_count == 1:
        return RequirementFulfilment.ONE_RUN
    chance = metric.low is not None and metric.n is not None
    return (
        RequirementFulfilment.YES
        if point.verdict_level is VerdictLevel.VALID and chance
        else RequirementFulfilment.LIKELY
    )


def _nodes_needed_for_rate(
    required_rate: float, offered_rate: float, node_count: int | None, scaling_efficiency: float
) -> int | None:
    """The least number of nodes whose rate is enough by the assumption; None where unknown."""
    if not node_count or offered_rate <= 0:
        return None
    each = offered_rate / node_count
    if required_rate > offered_rate + each * scaling_efficiency * NODES_MAX:
        return None
    more = (
        math.ceil((required_rate - offered_rate) / (each * scaling_efficiency) - 1e-9)
        if required_rate > offered_rate
        else 0
    )
    enough = node_count + more if more else max(1, math.ceil(required_rate / each - 1e-9))
    return enough if enough <= NODES_MAX else None


def _nodes_needed_for_all(
    requirement_results: Sequence[RequirementResult], offer: Offer
) -> int | None:
    """Enough for every part; None where the offer's are not known or one can never be met."""
    if not offer.node_count or any(
        part.status_when_scaled is RequirementFulfilment.NO for part in requirement_results
    ):
        return None
    return _max_required_nodes(requirement_results, offer, does_count_by_mean=False)


def _max_required_nodes(
    requirement_results: Sequence[RequirementResult], offer: Offer, *, does_count_by_mean: bool
) -> int | None:
    """What the part that takes most nodes takes, those of the offer where none asks for any."""
    counts = [
        (part.node_count_by_mean if does_count_by_mean else None) or part.node_count
        for part in requirement_results
    ]
    return max(filter(None, counts), default=offer.node_count)


def _scaled_cost(offer: Offer, node_count: int | None) -> float | None:
    """In proportion to the nodes; as it is where these are not known."""
    if offer.cost is None:
        return None
    return (
        offer.cost * node_count / offer.node_count
        if node_count and offer.node_count
        else offer.cost
    )


def _scaled_energy(offer: Offer, node_count: int | None) -> EnergyCost | None:
    """As the cost: each node takes as much. Clients take what they take, however many nodes."""
    energy = offer.energy
    if energy is None or energy.covers_only_clients or not (node_count and offer.node_count):
        return energy
    share = node_count / offer.node_count
    return EnergyCost(energy.watts * share, energy.cost_per_year * share)


def _worst_status(statuses: Iterable[RequirementFulfilment]) -> RequirementFulfilment:
    return max(statuses, key=lambda answer: answer.severity, default=RequirementFulfilment.YES)
