"""Intervals of a single run: of its rate from the rule, of its latencies by resampling its seconds.

They say how well the run knows its own mean. What is published of a point comes from how far its
repeats differ (`points`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from iolab.analyse.load import Load
from iolab.analyse.method.quantiles import block_count, decides, of_run_each
from iolab.analyse.percentiles import PERCENTILES, STALL_DECIDED
from iolab.analyse.seconds import SECOND_NS
from iolab.analyse.steady import Steady
from iolab.analyse.window import Cut, Window, controller_ns
from iolab.model.histogram import BIN_COUNT, MIDDLE_NS
from iolab.model.metric import Metric
from iolab.model.run import RunRecord
from iolab.model.sample import Ints, ways_of
from iolab.model.workload import Access

_SAME_SIZE: Final = 1e-6
"""Relative difference of the bytes from I/Os times the block that rounding may leave."""


def with_intervals(
    metrics: Mapping[str, Metric], record: RunRecord, load: Load, steady: Steady | None
) -> dict[str, Metric]:
    """The fleet's metrics, with low, high and n where the run can tell them."""
    scopes = _scopes(record.run.point.io.access)
    prefixes = [prefix for prefix, _ in scopes]
    found = without_rare_stalls(metrics, prefixes, "p99_5", steady)
    if record.rule is not None and steady is not None:
        for key in _rate_keys(record, load):
            found[key] = rate_interval(found[key], steady)
    for prefix, ways in scopes:
        found |= resampled(found, prefix, PERCENTILES, record, load.cut, ways)
    return found


def without_rare_stalls(
    metrics: Mapping[str, Metric], prefixes: Iterable[str], nearest: str, steady: Steady | None
) -> dict[str, Metric]:
    """The metrics; of a run with a few stalls the far percentiles are "more than" the `nearest`.

    One stall more or less would decide them. The prefixes are those of keys of latencies.
    """
    found = dict(metrics)
    if steady is None or not decides(steady.episodes):
        return found
    for prefix in prefixes:
        near = found[f"{prefix}lat_ns_{nearest}"]
        for name in STALL_DECIDED:
            key = f"{prefix}lat_ns_{name}"
            if found[key].value is not None:
                low = near.low if near.bounded else near.value
                found[key] = Metric(None, found[key].unit, low=low)
    return found


def _scopes(access: Access) -> list[tuple[str, list[int]]]:
    """Prefix of the keys and the directions that they speak of, as in `summary`."""
    used = ways_of(access)
    each = ((f"{way.name.lower()}_", [int(way)]) for way in used)
    return [("", [int(way) for way in used]), *each]


def _rate_keys(record: RunRecord, load: Load) -> list[str]:
    """The rates that are the rule's own, but for a constant factor."""
    job = record.run.point.io
    width = len(ways_of(job.access))
    prefixes = [prefix for prefix, ways in _scopes(job.access) if len(ways) == width]
    keys = [f"{prefix}iops" for prefix in prefixes]
    expected = int(load.ios.sum()) * job.block_bytes
    if abs(int(load.bytes.sum()) - expected) <= _SAME_SIZE * expected:
        keys += [f"{prefix}bw_bytes_per_s" for prefix in prefixes]
    return keys


def rate_interval(metric: Metric, steady: Steady) -> Metric:
    """A rate with the interval that the rule knows of its mean; as it was where that has none."""
    half_width = steady.steadiness.half_width
    if metric.value is None or not math.isfinite(half_width):
        return metric
    low = metric.value * max(1 - half_width, 0.0)
    high = metric.value * (1 + half_width)
    return replace(metric, low=low, high=high, n=steady.steadiness.df + 1)


def resampled(
    metrics: Mapping[str, Metric],
    prefix: str,
    percentiles: Sequence[tuple[str, float]],
    record: RunRecord,
    measured: Cut,
    ways: Sequence[int],
) -> dict[str, Metric]:
    """Those percentiles of a key prefix that have a value, with intervals by resampling seconds.

    `ways` are the numbers of the directions or operations that they speak of. Empty without a
    common window, and for a run that is too short.
    """
    window = measured.common
    keys = {f"{prefix}lat_ns_{name}": percent / 100 for name, percent in percentiles}
    keys = {key: q for key, q in keys.items() if metrics[key].value is not None}
    count = block_count(int(window.seconds)) if window else 0
    if window is None or not keys or count == 0:
        return {}
    counts = _by_second(record, measured, window, ways)
    # The same run has the same intervals whenever it is judged.
    seed = [int(record.run.point.digest, 16), record.run.repeat, len(prefix)]
    quantiles = of_run_each(counts, MIDDLE_NS, list(keys.values()), np.random.default_rng(seed))
    found = {}
    for key, quantile in zip(keys, quantiles, strict=True):
        value = metrics[key].value
        if value is None or quantile.low_ns is None or quantile.high_ns is None:
            continue
        low, high = min(quantile.low_ns, value), max(quantile.high_ns, value)
        found[key] = replace(metrics[key], low=low, high=high, n=count)
    return found


def _by_second(record: RunRecord, measured: Cut, window: Window, ways: Sequence[int]) -> Ints:
    """Counts by second of the window and latency bin, all hosts and those directions together."""
    table = record.intervals
    offsets = np.array([host.clock_offset_ns for host in record.hosts], dtype=np.int64)
    middle = controller_ns(table.end_real_ns, offsets[table.host]) - table.span_ns // 2
    seconds = int(window.seconds)
    second = np.clip((middle - window.start_ns) // SECOND_NS, 0, seconds - 1)
    stride = int(table.seq.max(initial=0)) + 1
    at = np.zeros(len(record.hosts) * stride, dtype=np.int64)
    at[table.host * stride + table.seq] = second
    counts = np.zeros((seconds, BIN_COUNT), dtype=np.int64)
    start = 0
    for part in record.bins.chunks():
        rows = measured.bins[start : start + len(part)] & np.isin(part.direction, ways)
        start += len(part)
        where = at[part.host[rows] * stride + part.seq[rows]] * BIN_COUNT + part.bin[rows]
        np.add.at(counts.reshape(-1), where, part.count[rows])
    return counts
