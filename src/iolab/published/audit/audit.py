"""Every rule that published sets are held against, and the audit of one set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Final

from iolab.core.bins import PERCENTILES
from iolab.core.metric import Metric, RunResult, worst_verdict_level
from iolab.core.run import Point
from iolab.published.audit import declared, figures, rates
from iolab.published.audit.document import PublishedSet, RoundingInterval, exact_range
from iolab.published.audit.relations import Agreement, AuditOutcome, agreement_of_ranges, range_text
from iolab.text import counted_noun

EXACT: Final = 1e-6
"""Sums of the same counters differ by how floats round alone."""

SAME_WINDOW: Final = 2e-4
"""I/Os and bytes of a measured run are read one after the other while it goes on: at the edges of
its window one may be some I/Os ahead of the other. Of honest runs up to 7e-5 were seen."""

IN_FLIGHT_MAX: Final = 1.05
"""More in flight than was requested cannot be; the edges of a window make up for a few per cent."""

_RATES: Final = ("iops", "bw_bytes_per_s")
_DIRECTION_PREFIXES: Final = ("", "read_", "write_", "trim_")


_SetRule = Callable[[PublishedSet], Iterator[AuditOutcome]]

RULES: Final[Mapping[str, _SetRule]] = {
    "modules": rates.audit_totals_in_texts,
    "raw-capacity": rates.audit_raw_capacity,
    "per-terabyte": rates.audit_figures_per_node_and_terabyte,
    "gains": rates.audit_claimed_gains,
    "line-rate": rates.audit_line_rate,
    "command": rates.audit_command_options,
    "depths": figures.audit_peak_places,
    "shares": figures.audit_per_unit_totals,
    "spread": figures.audit_standard_deviations,
    "littles-law": rates.audit_littles_law,
    "mix": rates.audit_mixed_rates,
    "scaling": rates.audit_client_scaling,
    "part-of": figures.audit_part_percents,
    "percentages": figures.audit_percent_bounds,
    "declared": declared.audit_declared_relations,
    "order": figures.audit_statistics_order,
    "restated": figures.audit_restated_figures,
    "repeated": figures.audit_identical_figures,
    "stands-out": figures.audit_outlier_latencies,
}
"""What each relation finds in a set by its code, in the order in which they are told."""


def audit_published_set(published: PublishedSet) -> tuple[AuditOutcome, ...]:
    """Every relation of the set that can be computed, rule after rule."""
    return tuple(outcome for rule in RULES.values() for outcome in rule(published))


def audit_session(
    results: tuple[RunResult, ...], points: Mapping[str, Point]
) -> tuple[AuditOutcome, ...]:
    """Every relation of every result of I/O; `points` are the plan's, by digest."""
    return tuple(
        outcome
        for result in results
        for rule in _RULES
        if (point := points.get(result.digest)) is not None and "iops" in result.metrics
        for outcome in rule(result, point)
    )


def _host_and_node_sum_outcomes(result: RunResult, point: Point) -> Iterator[AuditOutcome]:
    """The hosts' rates add up to the fleet's, and so do the nodes'."""
    del point
    parts = (
        ("hosts", [host.metrics for host in result.hosts]),
        ("nodes", [node.metrics for node in result.nodes]),
    )
    for name, members in parts:
        for key in _RATES:
            stated = _metric_value(result.metrics, key)
            each = [_metric_value(metrics, key) for metrics in members]
            if stated is None or not each or None in each:
                continue
            total = sum(value for value in each if value is not None)
            yield _equality_outcome(
                f"sum-of-{name}", result, f"{key} of {len(each)} {name}", stated, total
            )


def _rate_times_size_outcomes(result: RunResult, point: Point) -> Iterator[AuditOutcome]:
    """IOPS times the block size is the bandwidth, where every I/O has that size."""
    job = point.job
    if not job.io_alignment_bytes or any(name.startswith("bs") for name, _ in job.options):
        return
    for way in _DIRECTION_PREFIXES:
        iops = _metric_value(result.metrics, f"{way}iops")
        bandwidth = _metric_value(result.metrics, f"{way}bw_bytes_per_s")
        if iops is None or bandwidth is None:
            continue
        unit = f"{way.replace('_', ' ')}bytes/s"
        yield _equality_outcome(
            "rate-times-size", result, unit, bandwidth, iops * job.io_alignment_bytes, SAME_WINDOW
        )


def _littles_law_outcomes(result: RunResult, point: Point) -> Iterator[AuditOutcome]:
    """IOPS times the mean latency is never more than the jobs could hold in flight."""
    iops, mean = _metric_value(result.metrics, "iops"), _metric_value(result.metrics, "lat_ns_mean")
    if iops is None or mean is None or not result.hosts or not point.job.iodepth_per_client:
        return
    asked = sum(point.job_on_host(host.name).iodepth_per_client for host in result.hosts)
    in_flight = iops * mean / 1e9
    verdict = Agreement.AGREES if in_flight <= asked * IN_FLIGHT_MAX else Agreement.CONTRADICTS
    message = f"On average {in_flight:.4g} I/Os were in flight, at most {asked} can have been."
    yield AuditOutcome(
        "littles-law", _result_name(result), verdict, message, f"{asked}", f"{in_flight:.4g}"
    )


def _latency_order_outcomes(result: RunResult, point: Point) -> Iterator[AuditOutcome]:
    """Percentiles ascend, the largest latency is above them, and each lies in its interval."""
    del point
    for way in _DIRECTION_PREFIXES:
        keys = [f"{way}lat_ns_{name}" for name, _ in PERCENTILES]
        values = [
            (key, value)
            for key in [*keys, f"{way}lat_ns_max"]
            if (value := _metric_value(result.metrics, key)) is not None
        ]
        falls = [(a, b) for a, b in pairwise(values) if a[1] > b[1]]
        if not values:
            continue
        if falls:
            (low, a), (high, b) = falls[0]
            message = f"{low} is {a:.6g}, above {high} with {b:.6g}."
            yield AuditOutcome("order", _result_name(result), Agreement.CONTRADICTS, message)
        else:
            message = f"{len(values)} latencies ascend from {values[0][0]} to {values[-1][0]}."
            yield AuditOutcome("order", _result_name(result), Agreement.AGREES, message)


def _value_within_interval_outcomes(result: RunResult, point: Point) -> Iterator[AuditOutcome]:
    """Every value lies within its own interval."""
    del point
    outside = [key for key, metric in result.metrics.items() if not _is_within_interval(metric)]
    bounded = [metric for metric in result.metrics.values() if metric.low is not None]
    if outside:
        message = f"{', '.join(outside)} lies outside of its own interval."
        yield AuditOutcome("intervals", _result_name(result), Agreement.CONTRADICTS, message)
    elif bounded:
        message = f"Within their intervals: {counted_noun(len(bounded), 'value')}."
        yield AuditOutcome("intervals", _result_name(result), Agreement.AGREES, message)


def _worst_check_verdict_outcomes(result: RunResult, point: Point) -> Iterator[AuditOutcome]:
    """The verdict is that of the worst check."""
    del point
    levels = [check.level for check in result.verdict.checks if check.level is not None]
    worst = worst_verdict_level(levels)
    same = worst is result.verdict.level
    verdict = Agreement.AGREES if same else Agreement.CONTRADICTS
    message = f"The verdict is {result.verdict.level}, but its worst check is {worst}."
    yield AuditOutcome("verdict", _result_name(result), verdict, message)


_RULES: Final[tuple[Callable[[RunResult, Point], Iterator[AuditOutcome]], ...]] = (
    _host_and_node_sum_outcomes,
    _rate_times_size_outcomes,
    _littles_law_outcomes,
    _latency_order_outcomes,
    _value_within_interval_outcomes,
    _worst_check_verdict_outcomes,
)


def _equality_outcome(
    rule: str,
    result: RunResult,
    text: str,
    stated: float,
    computed: float,
    tolerance: float = EXACT,
) -> AuditOutcome:
    verdict = agreement_of_ranges(exact_range(stated), exact_range(computed), tolerance)
    computed_text = range_text(RoundingInterval(computed, computed), "")
    verb = "is" if verdict is Agreement.AGREES else "is not"
    message = f"{text} {verb} what its parts give: {stated:,.6g} against {computed:,.6g}."
    return AuditOutcome(
        rule, _result_name(result), verdict, message, f"{stated:.6g}", computed_text.strip()
    )


def _metric_value(metrics: Mapping[str, Metric], metric_key: str) -> float | None:
    metric = metrics.get(metric_key)
    return None if metric is None else metric.value


def _is_within_interval(metric: Metric) -> bool:
    if metric.value is None or metric.low is None or metric.high is None:
        return True
    slack = EXACT * abs(metric.value)
    return metric.low - slack <= metric.value <= metric.high + slack


def _result_name(result: RunResult) -> str:
    axis = " ".join(f"{name}={value}" for name, value in result.axis_values)
    many = f" #{result.repeat}" if result.repeat > 1 else ""
    return f"{result.workload} {axis}".strip() + many
