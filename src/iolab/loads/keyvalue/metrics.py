"""The metrics of a run on a key-value store: whole operations a second, and of each operation.

A host's rate is its operations over the time that its intervals cover; the fleet's is the sum of
its hosts' rates, all within one window. Latencies are merged over hosts, never averaged. Where the
engine has only coarse bins of its own, `low` and `high` of a percentile are the edges of the bin
that holds it, and `n` is None: between them it lies for certain, wherever the line through the bin
puts it. Service time (`read_…`) and intended (`intended_read_…`, from when the operation was due)
stand side by side under a rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from iolab.analysis.metrics import (
    is_supported,
    latencies_of,
    rate_interval,
    resampled,
    without_rare_stalls,
)
from iolab.analysis.steady import EXCESS_TOLERABLE, Steady
from iolab.core.metric import Metric, Result
from iolab.core.metric_spec import OPS_PER_S
from iolab.core.run import RunRecord
from iolab.core.stopping import SeriesStatus
from iolab.loads.keyvalue.sums import KeyValueLoad
from iolab.loads.keyvalue.workload import (
    READ_RANDOM,
    READ_RANDOM_WRITE_RANDOM,
    KeyOperation,
    KeyValueJob,
    YcsbJob,
)

OPS_PER_SECOND: Final = "ops/s"
NANOSECONDS: Final = "ns"

WHOLE_KEY: Final = OPS_PER_S
"""The metric of all operations, each counted once."""

KEY_PERCENTILES: Final = (
    ("p50", 50.0),
    ("p90", 90.0),
    ("p95", 95.0),
    ("p99", 99.0),
    ("p99_9", 99.9),
    ("p99_99", 99.99),
)
"""The percentiles of an operation: (name in a metric's key, percent)."""

LATENCY_NAMES: Final = ("mean", *(name for name, _ in KEY_PERCENTILES), "max")

NAMED_OPERATIONS: Final = tuple(one for one in KeyOperation if one is not KeyOperation.ALL)
"""Operations that have metrics of their own, in the order in which they are shown."""


def rate_key(operation: KeyOperation) -> str:
    """The metric of one operation's rate; those timed from when they were due have none."""
    return f"{operation.key}_ops_per_s"


def latency_key(operation: KeyOperation, name: str) -> str:
    """The metric of a latency: one of LATENCY_NAMES."""
    return f"{operation.key}_lat_ns_{name}"


def units_of(operations: Sequence[KeyOperation]) -> dict[str, str]:
    """Every metric key of a result with those operations and its unit, in the order shown."""
    units = {WHOLE_KEY: OPS_PER_SECOND}
    for operation in operations:
        if not operation.is_intended:
            units[rate_key(operation)] = OPS_PER_SECOND
        units |= {latency_key(operation, name): NANOSECONDS for name in LATENCY_NAMES}
    return units


KEY_VALUE_UNITS: Final[Mapping[str, str]] = units_of(NAMED_OPERATIONS)
"""Every metric key that a result on a key-value store may have; one has those of its operations."""


def is_key_value(result: Result) -> bool:
    """Whether a result is of load on a key-value store."""
    return WHOLE_KEY in result.metrics


def operations_of(job: KeyValueJob | YcsbJob) -> tuple[KeyOperation, ...]:
    """The operations that a job asks for, as far as they can be known before it ran."""
    if isinstance(job, KeyValueJob):
        return _BESIDE if job.has_writer else _DB_BENCH.get(job.workload, ())
    asked = {operation for operation, share in job.mix if share > 0}
    if KeyOperation.READ_MODIFY_WRITE in asked:
        asked |= {KeyOperation.READ, KeyOperation.UPDATE}
    if job.rate_ops_per_s is not None:
        asked |= {one for each in asked if (one := each.intended) is not None}
    return tuple(one for one in NAMED_OPERATIONS if one in asked)


_DB_BENCH: Final = {
    READ_RANDOM: (KeyOperation.READ,),
    READ_RANDOM_WRITE_RANDOM: (KeyOperation.READ, KeyOperation.WRITE),
}

_BESIDE: Final = (KeyOperation.READ, KeyOperation.WRITE)
"""Readers, and a writer beside them."""


def key_value_metrics(load: KeyValueLoad, job: KeyValueJob | YcsbJob) -> dict[str, Metric]:
    """The metrics of all hosts together; without a common window none has a value."""
    if not load.shared:
        return _named({}, _shown(load, job))
    return _metrics(load, range(len(load.seconds)), job)


def key_value_host_metrics(
    load: KeyValueLoad, host: int, job: KeyValueJob | YcsbJob
) -> dict[str, Metric]:
    """The metrics of one host."""
    return _metrics(load, [host], job)


def _shown(load: KeyValueLoad, job: KeyValueJob | YcsbJob) -> tuple[KeyOperation, ...]:
    asked = {*operations_of(job), *load.operations}
    return tuple(one for one in NAMED_OPERATIONS if one in asked)


def _metrics(
    load: KeyValueLoad, hosts: Sequence[int], job: KeyValueJob | YcsbJob
) -> dict[str, Metric]:
    hosts, shown = list(hosts), _shown(load, job)
    found: dict[str, Metric] = {}
    if float(load.seconds[hosts].min()) > 0 and load.whole[hosts].any():
        rate = float(load.rates[hosts].sum())
        found[WHOLE_KEY] = Metric(rate, OPS_PER_SECOND)
        for operation in shown:
            own = _rate(load, operation, hosts)
            if own is not None and not operation.is_intended:
                found[rate_key(operation)] = Metric(own, OPS_PER_SECOND)
        for operation in shown:
            found |= _latencies(load, operation, hosts)
    return _named(found, shown)


def _rate(load: KeyValueLoad, operation: KeyOperation, hosts: Sequence[int]) -> float | None:
    """One operation's rate; None where nothing tells it.

    Where an engine did not tell operations apart, each has its share of those that it timed in the
    whole run: every thread keeps to the mix that it was told, hundred by hundred.
    """
    if load.done_of(operation)[hosts].any():
        return float(load.rates_of(operation)[hosts].sum())
    shares = [_share(load, operation, host) for host in hosts]
    if not any(shares):
        return None
    return float(sum(load.rates[host] * share for host, share in zip(hosts, shares, strict=True)))


def _share(load: KeyValueLoad, operation: KeyOperation, host: int) -> float:
    """Of all operations that a host's engine timed."""
    total = sum(one.count for one in load.told[host])
    mine = sum(one.count for one in load.told[host] if one.operation is operation)
    return mine / total if total else 0.0


def _named(found: Mapping[str, Metric], operations: Sequence[KeyOperation]) -> dict[str, Metric]:
    return {key: found.get(key, Metric(None, unit)) for key, unit in units_of(operations).items()}


def _latencies(
    load: KeyValueLoad, operation: KeyOperation, hosts: Sequence[int]
) -> dict[str, Metric]:
    mean = load.mean_ns(operation, hosts)
    if mean is None:
        return {}
    found = {"mean": Metric(mean, NANOSECONDS)}
    windowed = load.histogram(operation, hosts)
    if windowed is not None:
        values = latencies_of(windowed, mean, 1, KEY_PERCENTILES)
        found = {name: Metric(value, NANOSECONDS) for name, value in values.items()}
    elif (told := load.binned(operation, hosts)) is not None:
        for name, percent in KEY_PERCENTILES:
            if is_supported(told.count, percent):
                low, high = told.bounds_ns(percent / 100)
                at = told.interpolated_ns(percent / 100)
                found[name] = Metric(at, NANOSECONDS, float(low), float(high))
        found["max"] = Metric(float(told.max_ns), NANOSECONDS)
    return {latency_key(operation, name): metric for name, metric in found.items()}


_NEAR: Final = "p99"
"""What far percentiles of a run with a few stalls are told to be more than."""

_SETTLED: Final = (SeriesStatus.OK, SeriesStatus.IMPRECISE)


def with_key_value_intervals(
    metrics: Mapping[str, Metric], record: RunRecord, load: KeyValueLoad, steady: Steady | None
) -> dict[str, Metric]:
    """The fleet's metrics, with low, high and n where the run can tell them."""
    shown = [one for one in load.operations if latency_key(one, _NEAR) in metrics]
    found = without_rare_stalls(metrics, [f"{one.key}_" for one in shown], _NEAR, steady)
    if steady is not None and _tells(steady):
        found[WHOLE_KEY] = rate_interval(found[WHOLE_KEY], steady)
    for operation in shown:
        if load.histogram(operation, range(len(load.seconds))) is not None:
            found |= _resampled(found, record, load, operation)
    return found


def _tells(steady: Steady) -> bool:
    """Whether what the rule knows of the steady part's mean holds for the rate that is shown."""
    settled = steady.steadiness.status in _SETTLED
    return settled and abs(steady.excess) <= EXCESS_TOLERABLE


def _resampled(
    metrics: Mapping[str, Metric], record: RunRecord, load: KeyValueLoad, operation: KeyOperation
) -> dict[str, Metric]:
    prefix = f"{operation.key}_"
    return resampled(metrics, prefix, KEY_PERCENTILES, record, load.cut, [int(operation)])
