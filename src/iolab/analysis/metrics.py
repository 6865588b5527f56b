"""A result's metrics: rates added over hosts, latencies from merged bins.

A host's rate is its I/Os over the time its intervals cover; the fleet's rate is the sum of its
hosts' rates, all within one window. The mean latency is the sum of all latencies over the number of
I/Os, so that every I/O weighs the same; percentiles come from histograms merged bin by bin.
Neither is ever averaged over hosts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec.structs import replace

from iolab.analysis.steady import SteadinessView
from iolab.analysis.sums import LoadSums
from iolab.analysis.window import MeasuredPart, Window, interval_ends_ns
from iolab.core.bins import BIN_COUNT, LATENCY_NAMES, PERCENTILES
from iolab.core.histogram import MIDDLE_NS, UPPER_NS, Histogram
from iolab.core.metric import Metric
from iolab.core.metric_spec import metric_spec
from iolab.core.run import HostRun, RunRecord
from iolab.core.samples import Ints
from iolab.core.workload import Direction
from iolab.stats.quantiles import bootstrap_block_count, has_few_stalls, latency_quantile_estimates
from iolab.units import NS_PER_S

Directions = Sequence[Direction]
"""What the operations of a load are counted as."""

TAIL_IOS: Final = 100
"""I/Os that must lie beyond a percentile for it to be printed."""

STALL_BOUND_PERCENTILES: Final = tuple(name for name, percent in PERCENTILES if percent >= 99.9)
"""Those so far out that a few stalls in a run decide them."""

_PARTS: Final = 1_000_000
"""Percentages are told apart to a millionth of a percent; integers make the rule exact."""

_SAME_SIZE: Final = 1e-6
"""Relative difference of the bytes from I/Os times the block that rounding may leave."""


def ios_needed_for_percentile(percent: float) -> int:
    """How many I/Os support the percentile (0 <= percent < 100)."""
    beyond = max(round((100.0 - percent) * _PARTS), 1)
    return -(-TAIL_IOS * 100 * _PARTS // beyond)


def is_percentile_supported(operation_count: int, percent: float) -> bool:
    """Whether `operation_count` I/Os support the percentile."""
    return operation_count >= ios_needed_for_percentile(percent)


def key_prefixes_and_directions(directions: Directions) -> list[tuple[str, list[int]]]:
    """Prefixes of keys and the directions that each speaks of: of all, then of each by itself."""
    each = ((f"{way.key}_", [int(way)]) for way in directions)
    return [("", [int(way) for way in directions]), *each] if directions else []


def _prefixed_metric_keys(*prefixes: str) -> tuple[str, ...]:
    return (
        *(f"{prefix}iops" for prefix in prefixes),
        *(f"{prefix}bw_bytes_per_s" for prefix in prefixes),
        *(f"{prefix}lat_ns_{name}" for prefix in prefixes for name in LATENCY_NAMES),
    )


METRIC_KEYS: Final = _prefixed_metric_keys("", "read_", "write_")
"""Every metric of a result of I/O, in the order in which they are shown."""

TRIM_KEYS: Final = _prefixed_metric_keys("trim_")
"""Those that results of trims have besides."""


def metrics_or_unknown_by_key(
    keys: Iterable[str], value_by_key: Mapping[str, float | None]
) -> dict[str, Metric]:
    """A metric for each key, in their order; one that is not among the values has none."""
    return {key: Metric(value_by_key.get(key), metric_spec(key).unit) for key in keys}


def fleet_metrics(load_sums: LoadSums, directions: Directions) -> dict[str, Metric]:
    """The metrics of all hosts together; without a common window none has a value."""
    return metrics_of_host_group(load_sums, list(range(len(load_sums.seconds))), directions)


def host_metrics(load_sums: LoadSums, host_index: int, directions: Directions) -> dict[str, Metric]:
    """The metrics of one host."""
    return _metrics_of_pooled_hosts(load_sums, [host_index], directions)


def metrics_of_host_group(
    load_sums: LoadSums, host_indexes: list[int], directions: Directions
) -> dict[str, Metric]:
    """The metrics of some hosts together, merged as those of all; none without a common window."""
    return _metrics_of_pooled_hosts(
        load_sums, host_indexes if load_sums.has_common_window else [], directions
    )


def _metrics_of_pooled_hosts(
    load_sums: LoadSums, host_indexes: list[int], directions: Directions
) -> dict[str, Metric]:
    values: dict[str, float | None] = {}
    if host_indexes and float(load_sums.seconds[host_indexes].min()) > 0:
        for prefix, used in key_prefixes_and_directions(directions):
            for key, value in _rates_and_latencies(load_sums, host_indexes, used).items():
                values[f"{prefix}{key}"] = value
    trims = TRIM_KEYS if Direction.TRIM in directions else ()
    return metrics_or_unknown_by_key((*METRIC_KEYS, *trims), values)


def _rates_and_latencies(
    load_sums: LoadSums, host_indexes: list[int], directions: list[int]
) -> dict[str, float | None]:
    """Rates and latencies of those hosts and directions, by key without prefix."""
    picked = np.ix_(host_indexes, directions)
    seconds = load_sums.seconds[host_indexes]
    total = int(load_sums.ios[picked].sum())
    latencies = latency_statistics(
        load_sums.histogram(host_indexes, directions),
        float(load_sums.lat_sum_ns[picked].sum()),
        total,
    )
    return {
        "iops": float((load_sums.ios[picked].sum(axis=1) / seconds).sum()),
        "bw_bytes_per_s": float((load_sums.bytes[picked].sum(axis=1) / seconds).sum()),
        **{f"lat_ns_{name}": value for name, value in latencies.items()},
    }


def latency_statistics(
    histogram: Histogram,
    lat_sum_ns: float,
    operation_count: int,
    percentiles: Sequence[tuple[str, float]] = PERCENTILES,
) -> dict[str, float | None]:
    """Mean, percentiles and maximum of so many operations, as they are called in metrics' keys.

    The mean is exact; a percentile that too few operations support has no value.
    """
    counted = histogram.total
    values = histogram.percentiles_ns([percent for _, percent in percentiles])
    return {
        "mean": lat_sum_ns / operation_count if operation_count else None,
        **{
            name: value if is_percentile_supported(counted, percent) else None
            for (name, percent), value in zip(percentiles, values, strict=True)
        },
        "max": _largest_latency_ns(histogram),
    }


def _largest_latency_ns(histogram: Histogram) -> float | None:
    """The upper edge of the last bin in use, never above the engine's own maximum.

    The engine tells its maximum for the whole run only; where nothing was cut away the two meet and
    the value is exact, else it is at most one bin (1.6 %) above the true maximum of the window.
    """
    used = np.flatnonzero(histogram.counts)
    if used.size == 0:
        return None
    edge = float(UPPER_NS[used[-1]])
    return edge if histogram.max_ns is None else min(edge, float(histogram.max_ns))


def metrics_with_intervals(
    metrics: Mapping[str, Metric],
    record: RunRecord,
    load_sums: LoadSums,
    steady: SteadinessView | None,
    directions: Directions,
) -> dict[str, Metric]:
    """The fleet's metrics, with low, high and n where the run can tell them."""
    prefixes = [prefix for prefix, _ in key_prefixes_and_directions(directions)]
    bounded = with_stall_percentiles_as_bounds(metrics, prefixes, "p99_5", steady)
    if record.rule is not None and steady is not None:
        for key in _rate_keys_judged_by_rule(record, load_sums, directions):
            bounded[key] = rate_with_interval(bounded[key], steady)
    for prefix, used in key_prefixes_and_directions(directions):
        bounded |= percentiles_with_intervals(
            bounded, prefix, PERCENTILES, record, load_sums.measured_part, used
        )
    return bounded


def with_stall_percentiles_as_bounds(
    metrics: Mapping[str, Metric],
    prefixes: Iterable[str],
    bound_percentile: str,
    steady: SteadinessView | None,
) -> dict[str, Metric]:
    """The metrics; of a run with a few stalls the far percentiles have only a lower bound.

    That is the `bound_percentile`. One stall more or less would decide them. The prefixes
    are those of keys of latencies.
    """
    kept = dict(metrics)
    if steady is None or not has_few_stalls(steady.stall_count):
        return kept
    for prefix in prefixes:
        near = kept[f"{prefix}lat_ns_{bound_percentile}"]
        for name in STALL_BOUND_PERCENTILES:
            key = f"{prefix}lat_ns_{name}"
            if kept[key].value is not None:
                low = near.low if near.has_bin_edge_interval else near.value
                kept[key] = Metric(None, kept[key].unit, low=low)
    return kept


def _rate_keys_judged_by_rule(
    record: RunRecord, load_sums: LoadSums, directions: Directions
) -> list[str]:
    """The rates that are the rule's own, but for a constant factor."""
    prefixes = [
        prefix
        for prefix, used in key_prefixes_and_directions(directions)
        if len(used) == len(directions)
    ]
    keys = [f"{prefix}iops" for prefix in prefixes]
    expected = int(load_sums.ios.sum()) * record.run.point.job.io_alignment_bytes
    if abs(int(load_sums.bytes.sum()) - expected) <= _SAME_SIZE * expected:
        keys += [f"{prefix}bw_bytes_per_s" for prefix in prefixes]
    return keys


def rate_with_interval(metric: Metric, steady: SteadinessView) -> Metric:
    """A rate with the interval that the rule knows of its mean; as it was where that has none.

    One that is too correlated has none.
    """
    half_width = steady.steadiness.half_width
    if metric.value is None or not math.isfinite(half_width):
        return metric
    low = metric.value * max(1 - half_width, 0.0)
    high = metric.value * (1 + half_width)
    return replace(metric, low=low, high=high, n=steady.steadiness.df + 1)


def percentiles_with_intervals(
    metrics: Mapping[str, Metric],
    prefix: str,
    percentiles: Sequence[tuple[str, float]],
    record: RunRecord,
    measured_part: MeasuredPart,
    directions: Sequence[int],
) -> dict[str, Metric]:
    """Those percentiles of a key prefix that have a value, with intervals by resampling seconds.

    `directions` are the numbers of the directions or operations that they speak of. Empty without a
    common window, for a run that is too short, and without those whose seconds are too correlated.
    """
    window = measured_part.common_window
    keys = {f"{prefix}lat_ns_{name}": percent / 100 for name, percent in percentiles}
    keys = {key: q for key, q in keys.items() if metrics[key].value is not None}
    count = bootstrap_block_count(int(window.seconds)) if window else 0
    if window is None or not keys or count == 0:
        return {}
    bins, counts = _latency_counts_by_second(record, measured_part, window, directions)
    # The same run has the same intervals whenever it is judged.
    seed = [int(record.run.point.digest, 16), record.run.repeat, len(prefix)]
    quantiles = latency_quantile_estimates(
        counts, MIDDLE_NS[bins], list(keys.values()), np.random.default_rng(seed)
    )
    bounded = {}
    for key, quantile in zip(keys, quantiles, strict=True):
        value = metrics[key].value
        if value is None or quantile.low_ns is None or quantile.high_ns is None:
            continue
        low, high = min(quantile.low_ns, value), max(quantile.high_ns, value)
        bounded[key] = replace(metrics[key], low=low, high=high, n=count)
    return bounded


def _latency_counts_by_second(
    record: RunRecord, measured_part: MeasuredPart, window: Window, directions: Sequence[int]
) -> tuple[Ints, Ints]:
    """The bins that count anything, and the counts by second of the window and such bin.

    All hosts and those directions together. Most bins count nothing, and those of a run of a day
    would take gigabytes.
    """
    table = record.intervals
    middle = interval_ends_ns(record) - table.span_ns // 2
    seconds = int(window.seconds)
    second = np.clip((middle - window.start_ns) // NS_PER_S, 0, seconds - 1)
    stride = int(table.seq.max(initial=0)) + 1
    at = np.zeros(len(record.hosts) * stride, dtype=np.int64)
    at[table.host * stride + table.seq] = second
    parts = measured_part.bin_groups.select_groups(
        measured_part.bin_group_mask & np.isin(measured_part.bin_groups.direction, directions)
    )
    bins = record.bins.nonempty_bins(parts)
    columns = np.zeros(BIN_COUNT, dtype=np.int64)
    columns[bins] = np.arange(bins.size)
    counts = np.zeros((seconds, bins.size), dtype=np.int64)
    record.bins.add_counts_to(counts, parts, at[parts.host * stride + parts.seq], columns)
    return bins, counts


def cpu_s_per_gb(hosts: Sequence[HostRun]) -> float | None:
    """Seconds of processors that engines used for 10^9 bytes; None where one did not tell."""
    used_s = moved = 0.0
    for host in hosts:
        totals = host.totals
        if totals is None or totals.generator is None:
            return None
        percent = totals.user_cpu_percent + totals.system_cpu_percent
        used_s += percent / 100 * totals.generator.measured_ns / NS_PER_S
        moved += sum(way.bytes for way in (totals.read, totals.write) if way is not None)
    return used_s / (moved / 1e9) if moved else None
