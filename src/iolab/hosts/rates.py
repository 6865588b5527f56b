"""Counter tables turned into rates: what each device and processor did, second by second.

Rates are taken over the time that really passed between two samples. A step in which a counter
fell, a device was missing, or the clock was set gives no sample: never a negative or a huge rate.
docs/reference/telemetry.md has every metric with its formula.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from iolab.core.samples import CounterTable, Floats, Ints
from iolab.hosts.counter_names import CPU, GUEST_DISK, GUEST_USE, GUESTS, METERS, NIC
from iolab.hosts.counters import (
    CounterBlock,
    CounterDeltas,
    Flags,
    counter_blocks,
    counter_deltas,
)
from iolab.record import Record
from iolab.units import NS_PER_S

FALLING_CPU_TIMES: Final = ("idle_ns", "iowait_ns")
"""The kernel may take a little of these back when a core wakes (proc_stat(5)): not a reset."""

MILLI: Final = 1000
MICRO: Final = 1_000_000

WRAPPED_WATTS_MAX: Final = 10_000.0
"""More than any package takes: a counter of energy that fell so far did not wrap, it was reset."""

ALL_CORES: Final = "all"
"""The name of the row that sums all cores; `node<N>` sums one NUMA node's."""

_DISK: Final = (
    "read_ios",
    "read_bytes",
    "read_time_ns",
    "write_ios",
    "write_bytes",
    "write_time_ns",
    "busy_time_ns",
    "queue_time_ns",
)

SERVER_COUNTS: Final = (
    "client_reads",
    "client_writes",
    "client_read_timeouts",
    "client_write_timeouts",
    "compacted_bytes",
    "flushed_bytes",
    "dropped_messages",
    "collections",
)
"""Counters of a node whose growth a second is told."""

SERVER_MEANS: Final = {
    "client_read_lat_ns": ("client_reads", "client_read_time_ns"),
    "client_write_lat_ns": ("client_writes", "client_write_time_ns"),
    "table_read_lat_ns": ("table_reads", "table_read_time_ns"),
    "table_write_lat_ns": ("table_writes", "table_write_time_ns"),
}
"""Mean times of a node: of which events, and the counter of their time."""

SERVER_SHARES: Final = {"collection_share": "collection_time_ns", "cpu_share": "cpu_ns"}
"""Times of a node as shares of the time that passed; that of processors is of one core."""

SERVER_STATES: Final = (
    "compactions_pending",
    "sstables",
    "live_bytes",
    "memtable_bytes",
    "commitlog_bytes",
    "heap_used_bytes",
    "direct_bytes",
    "reads_waiting",
    "writes_waiting",
)
"""What stands in a node at each sample."""


class CounterSeries(Record):
    """One derived metric of one device on one host over time.

    `real_ns` is the end of each step (the host's own clock), `span_ns` its length, `value` the rate
    over the step; a value that only stands at a moment has no length. Metric names end with their
    unit (docs/reference/telemetry.md).
    """

    host: str
    scope: str
    name: str
    metric: str
    real_ns: Ints
    value: Floats
    span_ns: Ints


class _DerivedMetric(Record):
    """One metric of all devices of a block: arrays of shape (devices, moments)."""

    metric: str
    names: Sequence[str]
    real_ns: Ints
    span_ns: Ints
    value: Floats
    is_usable: Flags


Wanted = Mapping[str, str | None]
"""The scopes to derive, and of each the only name that is wanted (None: every one)."""


def derive_counter_series(
    counters: CounterTable, host_names: Sequence[str], wanted_scopes: Wanted | None = None
) -> tuple[CounterSeries, ...]:
    """Every series that the counters support, ordered by host, scope, name and metric.

    `host_names` are what the table's host column indexes. A series without a sample is left out.
    `wanted_scopes` leaves out what is not asked for: all of a thousand hosts' series are 200,000.
    """
    all_series: list[CounterSeries] = []
    for block in counter_blocks(counters, wanted_scopes):
        only = wanted_scopes[block.scope] if wanted_scopes else None
        derived = _deriver_for_scope(block.scope, only)
        if derived is None:
            continue
        host = host_names[block.host_index]
        parts = (part for part in derived(block) if only is None or only in part.names)
        of_block = [
            series for part in parts for series in _series_of_devices(host, block.scope, part)
        ]
        of_block = [series for series in of_block if only is None or series.name == only]
        all_series += sorted(of_block, key=lambda series: (series.name, series.metric))
    return tuple(all_series)


def _series_of_devices(
    host_name: str, scope: str, derived_metric: _DerivedMetric
) -> Iterator[CounterSeries]:
    for index, name in enumerate(derived_metric.names):
        sound = derived_metric.is_usable[index]
        if sound.any():
            at, span, value = (
                derived_metric.real_ns[sound],
                derived_metric.span_ns[sound],
                derived_metric.value[index][sound],
            )
            yield CounterSeries(host_name, scope, name, derived_metric.metric, at, value, span)


def _derive_disk(block: CounterBlock) -> Iterator[_DerivedMetric]:
    grown, span_ns = counter_deltas(block, _DISK), block.step_lengths_ns()
    values = grown.deltas_by_metric
    yield from _read_and_write_rates(block, grown, "time_ns")
    depth = _ratio_or_nan(values["queue_time_ns"], span_ns)
    yield _metric_over_steps(block, "queue_depth", depth, grown.is_usable)
    # The kernel counts whole milliseconds at its own ticks: a full second may come out as 1.004 s.
    busy = np.minimum(_ratio_or_nan(values["busy_time_ns"], span_ns), 1.0)
    yield _metric_over_steps(block, "busy_share", busy, grown.is_usable)
    yield _metric_at_samples(block, "temperature_mc", "temperature_c", 1000.0)


def _read_and_write_rates(
    block: CounterBlock, deltas: CounterDeltas, time_metric_suffix: str
) -> Iterator[_DerivedMetric]:
    """What was read and written: I/Os and bytes a second, and the mean time of an I/O."""
    values, per_s = deltas.deltas_by_metric, _per_second_factor(block.step_lengths_ns())
    for direction in ("read", "write"):
        ios, moved = values[f"{direction}_ios"], values[f"{direction}_bytes"]
        yield _metric_over_steps(block, f"{direction}_iops", ios * per_s, deltas.is_usable)
        yield _metric_over_steps(block, f"{direction}_bytes_per_s", moved * per_s, deltas.is_usable)
        latency = _ratio_or_nan(values[f"{direction}_{time_metric_suffix}"], ios)
        yield _metric_over_steps(block, f"{direction}_lat_ns", latency, deltas.is_usable)


def _derive_cpu(block: CounterBlock) -> Iterator[_DerivedMetric]:
    """Each core, each NUMA node and all cores: shares of the time that the kernel accounted."""
    grown = counter_deltas(block, CPU, FALLING_CPU_TIMES)
    nodes = np.array([name.rpartition("@")[2] for name in block.names])
    yield from _cpu_state_share_metrics(block, block.names, grown)
    for node in sorted(set(nodes.tolist())):
        yield from _cpu_state_share_metrics(
            block, (f"node{node}",), _sum_member_deltas(grown, np.asarray(nodes == node))
        )
    yield from _cpu_state_share_metrics(block, (ALL_CORES,), _sum_member_deltas(grown, slice(None)))


def _derive_all_cores(block: CounterBlock) -> Iterator[_DerivedMetric]:
    """The same of all cores alone."""
    grown = counter_deltas(block, CPU, FALLING_CPU_TIMES)
    yield from _cpu_state_share_metrics(block, (ALL_CORES,), _sum_member_deltas(grown, slice(None)))


def _cpu_state_share_metrics(
    block: CounterBlock, names: Sequence[str], deltas: CounterDeltas
) -> Iterator[_DerivedMetric]:
    states, span_ns = deltas.deltas_by_metric, block.step_lengths_ns()
    total = deltas.growth.sum(axis=0)
    sound = deltas.is_usable & (total > 0)
    shares = {
        "user_share": states["user_ns"] + states["nice_ns"],
        "system_share": states["system_ns"] + states["irq_ns"] + states["softirq_ns"],
        "iowait_share": states["iowait_ns"],
        "steal_share": states["steal_ns"],
        "busy_share": total - states["idle_ns"] - states["iowait_ns"],
    }
    for metric, part in shares.items():
        share = _ratio_or_nan(part, total)
        yield _DerivedMetric(metric, names, block.real_ns[1:], span_ns, share, sound)


def _sum_member_deltas(deltas: CounterDeltas, member_rows: Flags | slice) -> CounterDeltas:
    """The members' growth added up, over those that are sound at each step."""
    sound = deltas.is_usable[member_rows]
    added = np.where(sound, deltas.growth[:, member_rows], 0).sum(axis=1, keepdims=True)
    return CounterDeltas(deltas.metrics, added, np.asarray(sound.any(axis=0, keepdims=True)))


def _derive_nic(block: CounterBlock) -> Iterator[_DerivedMetric]:
    grown = counter_deltas(block, NIC)
    for metric in NIC:
        rate = grown.deltas_by_metric[metric] * _per_second_factor(block.step_lengths_ns())
        yield _metric_over_steps(block, f"{metric}_per_s", rate, grown.is_usable)


def _derive_memory(block: CounterBlock) -> Iterator[_DerivedMetric]:
    for metric in block.metrics:
        yield _metric_at_samples(block, metric, metric)


def _derive_pressure(block: CounterBlock) -> Iterator[_DerivedMetric]:
    """The share of time in which some (or all) tasks waited, for each kind of pressure."""
    for metric in block.metrics:
        grown = counter_deltas(block, (metric,))
        share = np.minimum(
            _ratio_or_nan(grown.deltas_by_metric[metric], block.step_lengths_ns()), 1.0
        )
        yield _metric_over_steps(
            block, f"{metric.removesuffix('_ns')}_share", share, grown.is_usable
        )


def _derive_thermal(block: CounterBlock) -> Iterator[_DerivedMetric]:
    grown = counter_deltas(block, ("throttle_events",))
    rate = grown.deltas_by_metric["throttle_events"] * _per_second_factor(block.step_lengths_ns())
    yield _metric_over_steps(block, "throttle_events_per_s", rate, grown.is_usable)


def _derive_agent(block: CounterBlock) -> Iterator[_DerivedMetric]:
    """The agent's own cost; its share is of one core."""
    grown = counter_deltas(block, ("cpu_ns",))
    share = _ratio_or_nan(grown.deltas_by_metric["cpu_ns"], block.step_lengths_ns())
    yield _metric_over_steps(block, "cpu_share", share, grown.is_usable)
    yield _metric_at_samples(block, "rss_bytes", "rss_bytes")


def _derive_cassandra(block: CounterBlock) -> Iterator[_DerivedMetric]:
    """What a node counts of itself; a counter that its version does not have gives no series."""
    span_ns = block.step_lengths_ns()
    for counter in SERVER_COUNTS:
        grown = counter_deltas(block, (counter,))
        yield _metric_over_steps(
            block,
            f"{counter}_per_s",
            grown.deltas_by_metric[counter] * _per_second_factor(span_ns),
            grown.is_usable,
        )
    for metric, (counter, times) in SERVER_MEANS.items():
        grown = counter_deltas(block, (counter, times))
        yield _metric_over_steps(
            block,
            metric,
            _ratio_or_nan(grown.deltas_by_metric[times], grown.deltas_by_metric[counter]),
            grown.is_usable,
        )
    for metric, counter in SERVER_SHARES.items():
        grown = counter_deltas(block, (counter,))
        yield _metric_over_steps(
            block, metric, _ratio_or_nan(grown.deltas_by_metric[counter], span_ns), grown.is_usable
        )
    misses, requests = "chunk_cache_misses", "chunk_cache_requests"
    grown = counter_deltas(block, (misses, requests))
    missed = _ratio_or_nan(grown.deltas_by_metric[misses], grown.deltas_by_metric[requests])
    yield _metric_over_steps(block, "chunk_cache_miss_share", missed, grown.is_usable)
    for metric in SERVER_STATES:
        yield _metric_at_samples(block, metric, metric)


def _derive_guest(block: CounterBlock) -> Iterator[_DerivedMetric]:
    """What a node served its guests, and what their processors had of its own, in cores."""
    yield from _read_and_write_rates(block, counter_deltas(block, GUEST_DISK), "ns")
    used = counter_deltas(block, GUEST_USE)
    for what in ("run", "wait"):
        share = _ratio_or_nan(used.deltas_by_metric[f"vcpu_{what}_ns"], block.step_lengths_ns())
        yield _metric_over_steps(block, f"vcpu_{what}_share", share, used.is_usable)


def _derive_power(block: CounterBlock) -> Iterator[_DerivedMetric]:
    """Watts of one meter: as it tells them, or the growth of its energy over each step.

    Samples of a watch and those beside it are numbered apart, so time alone orders them; a reading
    that a meter repeats with the same moment is one.
    """
    order = np.argsort(block.real_ns, kind="stable")
    order = order[np.diff(block.real_ns[order], prepend=-1) > 0]
    real_ns = block.real_ns[order]
    power, energy = block.cells_of_metric("power_mw"), block.cells_of_metric("energy_uj")
    if power.is_present.any():
        is_present = power.is_present[:, order]
        moments = np.zeros_like(real_ns)
        watts = power.values[:, order] / MILLI
        yield _DerivedMetric("watts", block.names, real_ns, moments, watts, is_present)
        return
    is_present = energy.is_present[:, order]
    grown = np.diff(energy.values[:, order], axis=1)
    around = block.cells_of_metric("energy_range_uj").values[:, order][:, 1:]
    # Once around: a package of 200 W takes 20 minutes for it, and steps are seconds.
    has_wrapped = grown < 0
    grown = np.where(has_wrapped, grown + around, grown)
    span_ns = np.diff(real_ns)
    watts = _ratio_or_nan(grown * (NS_PER_S // MICRO), span_ns)
    was_reset = has_wrapped & ((grown < 0) | (watts > WRAPPED_WATTS_MAX))
    sound = is_present[:, 1:] & is_present[:, :-1] & ~was_reset
    yield _DerivedMetric("watts", block.names, real_ns[1:], span_ns, watts, sound)


_SCOPES: Final[dict[str, Callable[[CounterBlock], Iterator[_DerivedMetric]]]] = {
    "cpu": _derive_cpu,
    "disk": _derive_disk,
    "nic": _derive_nic,
    "memory": _derive_memory,
    "pressure": _derive_pressure,
    "thermal": _derive_thermal,
    "agent": _derive_agent,
    "cassandra": _derive_cassandra,
    GUESTS: _derive_guest,
    METERS: _derive_power,
}


def _deriver_for_scope(
    scope: str, only_name: str | None
) -> Callable[[CounterBlock], Iterator[_DerivedMetric]] | None:
    """What derives a scope, or the one name of it; None for a scope without rates."""
    return _derive_all_cores if (scope, only_name) == ("cpu", ALL_CORES) else _SCOPES.get(scope)


def _metric_over_steps(
    block: CounterBlock, metric_key: str, value: Floats, is_usable: Flags
) -> _DerivedMetric:
    return _DerivedMetric(
        metric_key, block.names, block.real_ns[1:], block.step_lengths_ns(), value, is_usable
    )


def _metric_at_samples(
    block: CounterBlock, source_metric: str, metric_key: str, divisor: float = 1.0
) -> _DerivedMetric:
    """A value as it stands at each sample."""
    cells = block.cells_of_metric(source_metric)
    moments = np.zeros_like(block.real_ns)
    value = cells.values / divisor
    return _DerivedMetric(metric_key, block.names, block.real_ns, moments, value, cells.is_present)


def _per_second_factor(span_ns: Ints) -> Floats:
    """What a count over each step is to be multiplied with; nan for a step without length."""
    return _ratio_or_nan(np.full(span_ns.shape, NS_PER_S, dtype=np.int64), span_ns)


def _ratio_or_nan(numerator: Ints, denominator: Ints) -> Floats:
    """The part of the whole, nan where there is no whole (no I/O has no mean latency)."""
    none = np.full(np.broadcast_shapes(numerator.shape, denominator.shape), np.nan)
    return np.asarray(np.divide(numerator, denominator, out=none, where=denominator > 0))
