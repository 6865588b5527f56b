"""What a buyer asks of a KV cache: how many requests it serves, and whether reading is worth it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from iolab.analysis.points import AxisValues, PointSummary
from iolab.core.configuration import latency_limit_metric_text
from iolab.core.metric import VerdictLevel
from iolab.core.study import Study
from iolab.core.workload import Workload
from iolab.loads.kvcache.metric_specs import (
    BREAK_EVEN,
    BREAK_EVEN_RATE,
    HIT_SHARE,
    PREFIX_RATE,
    RECOMPUTE,
    REQUESTS,
    SLOW_PREFIX_RATE,
    TRACE_SPEED,
)
from iolab.loads.kvcache.workload import KvCacheJob, KvCacheOperation
from iolab.report.numbers import (
    axis_name_text,
    axis_value_as_number,
    axis_values_text,
    metric_value_text,
    value_text,
)
from iolab.units import format_bytes, format_ns

NOMINAL_EXCESS: Final = 1.01
"""From here on more was asked for in the measured seconds than the rate that a study states."""

PREFIX_MEAN_KEY = KvCacheOperation.PREFIX_LOAD.latency_key("mean")


def highest_rate_sentences(study: Study, points: Sequence[PointSummary]) -> str:
    """The highest rate of each workload that is not invalid; empty where none is."""
    return " ".join(
        _highest_rate_sentence(study.workload(workload), own)
        for (workload, _, _), own in _usable_points_by_axes_without_rate(study, points).items()
    )


def read_beats_recompute_sentence(points: Sequence[PointSummary], axis_name: str) -> str:
    """Up to where on the axis the mean prefix is read sooner than computed; empty if not known."""
    usable = [
        (place, mean < recompute)
        for point in points
        if point.verdict_level is not VerdictLevel.INVALID
        and (mean := point.metric_value(PREFIX_MEAN_KEY)) is not None
        and (recompute := point.metric_value(RECOMPUTE.key)) is not None
        and (place := axis_value_as_number(axis_name, dict(point.key.axis_values)[axis_name]))
        is not None
    ]
    if not usable:
        return ""
    name = axis_name_text(axis_name)
    reads_faster = [is_faster for _, is_faster in sorted(usable)]
    if not any(reads_faster):
        return f"Recomputing a prefix is faster than reading it, at every {name}."
    if all(reads_faster):
        return f"Reading a prefix is faster than recomputing it, at every {name}."
    # Where the order changes more than once there is no place up to which one is faster.
    first_slower = reads_faster.index(False)
    if first_slower == 0 or any(reads_faster[first_slower:]):
        count = sum(reads_faster)
        return (
            f"Reading a prefix is faster than recomputing it at {count} of {len(usable)} values of "
            f"{name}."
        )
    last_faster = sorted(usable)[first_slower - 1][0]
    return f"Reading a prefix is faster than recomputing it up to {name} {last_faster:g}."


def _usable_points_by_axes_without_rate(
    study: Study, points: Sequence[PointSummary]
) -> Mapping[tuple[str, str, AxisValues], list[PointSummary]]:
    """Those that are not invalid, by workload, configuration and all axes but the rate."""
    grouped: dict[tuple[str, str, AxisValues], list[PointSummary]] = {}
    for point in points:
        is_own = isinstance(study.workload(point.key.workload).job, KvCacheJob)
        if (
            is_own
            and point.verdict_level is not VerdictLevel.INVALID
            and point.metric_value(REQUESTS.key)
        ):
            others = tuple(
                pair for pair in point.key.axis_values if pair[0] != KvCacheJob.max_load_search_axis
            )
            key = (point.key.workload, point.key.configuration, others)
            grouped.setdefault(key, []).append(point)
    return grouped


def _highest_rate_sentence(workload: Workload, points: Sequence[PointSummary]) -> str:
    """`Serves 54 requests/s of the conversation trace (16× its clock) with …`."""
    job = KvCacheJob.require_type(workload.job)
    limit = workload.search_goal.latency_limit
    within = [
        point
        for point in points
        if limit is None
        or ((value := point.metric_value(limit.metric)) is not None and value <= limit.latency_ns)
    ]
    if limit is not None and not within:
        label = latency_limit_metric_text(limit.metric)
        return f"Keeps {label} <= {format_ns(limit.latency_ns)} at no rate that was tried."
    best = max(within, key=lambda point: point.metric_value(REQUESTS.key) or 0.0)
    speed = best.metric_value(TRACE_SPEED.key)
    others = tuple(
        pair for pair in best.key.axis_values if pair[0] != KvCacheJob.max_load_search_axis
    )
    nominal = axis_value_as_number(
        KvCacheJob.max_load_search_axis,
        dict(best.key.axis_values).get(KvCacheJob.max_load_search_axis, ""),
    )
    served = best.metric_value(REQUESTS.key) or 0.0
    facts = [
        *(
            [f"as asked in these seconds; {nominal:g} is the mean of the trace"]
            if nominal and served > nominal * NOMINAL_EXCESS
            else []
        ),
        *([f"{speed:.3g}× its clock"] if speed else []),
        *([f"{metric_value_text(best.metrics[HIT_SHARE.key])} of blocks found"]),
        *([axis_values_text(others)] if others else []),
    ]
    doubt = " (indicative)" if best.verdict_level is VerdictLevel.INDICATIVE else ""
    text = (
        f"Serves {metric_value_text(best.metrics[REQUESTS.key])} of the {job.trace} trace "
        f"({', '.join(facts)}): {_prefix_load_latency_text(best)}{doubt}."
    )
    return " ".join(filter(None, (text, _read_versus_recompute_sentence(job, best, within))))


def _prefix_load_latency_text(point: PointSummary) -> str:
    """By the highest percentile that its prefixes support."""
    known = (
        (name, KvCacheOperation.PREFIX_LOAD.latency_key(name)) for name in ("p99", "p95", "p50")
    )
    name, key = next(
        (pair for pair in known if point.metric_value(pair[1]) is not None),
        ("mean", PREFIX_MEAN_KEY),
    )
    return f"{name} prefix load {metric_value_text(point.metrics.get(key))}"


def _read_versus_recompute_sentence(
    job: KvCacheJob, point: PointSummary, points: Sequence[PointSummary]
) -> str:
    """Whether reading a prefix beats computing it, and by how much; empty if not known.

    Where it does at each of the `points`, by the slowest of them all.
    """
    median, slow = (point.metric_value(spec.key) for spec in (PREFIX_RATE, SLOW_PREFIX_RATE))
    if not median or not slow:
        return ""
    unit = SLOW_PREFIX_RATE.unit
    median_text, slow_text = value_text(median, unit), value_text(slow, unit)
    needed = point.metric_value(BREAK_EVEN_RATE.key)
    if not needed or not job.prefill_tokens_per_s:
        token = format_bytes(job.kv_bytes_per_token)
        return (
            f"Reading a prefix beats recomputing it for instances that prefill fewer than "
            f"{metric_value_text(point.metrics.get(BREAK_EVEN.key))} ({token} a token): the "
            f"slowest twentieth arrives at {slow_text}."
        )
    needed_text = value_text(needed, unit)
    every = [
        (other.metric_value(SLOW_PREFIX_RATE.key), other.metric_value(BREAK_EVEN_RATE.key))
        for other in points
    ]
    known = [(rate, least) for rate, least in every if rate and least]
    if slow >= needed and all(rate >= least for rate, least in known):
        slowest_text = value_text(min(rate for rate, _ in known), unit)
        where = ", at every rate tried" if len(known) > 1 else ""
        return (
            f"Reading a prefix beats recomputing it{where}: even the "
            f"slowest twentieth arrives at {slowest_text}, and {needed_text} suffice."
        )
    if slow >= needed:
        return (
            f"Reading a prefix beats recomputing it at that rate: even the slowest twentieth "
            f"arrives at {slow_text}, and {needed_text} suffice."
        )
    if median >= needed:
        return (
            f"Reading a prefix beats recomputing it at the median ({median_text}, and "
            f"{needed_text} suffice), not at the slowest twentieth ({slow_text})."
        )
    return (
        f"Recomputing a prefix beats reading it, which takes {needed_text}: prefixes arrive at "
        f"{median_text} at the median."
    )
