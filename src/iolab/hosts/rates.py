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
from iolab.dataclass import dataclass
from iolab.hosts.counter_names import CPU, GUEST_DISK, GUEST_USE, GUESTS, NIC
from iolab.hosts.counters import Block, Deltas, Flags, blocks, counter_deltas
from iolab.units import NS_PER_S

FALLING_CPU_TIMES: Final = ("idle_ns", "iowait_ns")
"""The kernel may take a little of these back when a core wakes (proc_stat(5)): not a reset."""

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


@dataclass(frozen=True, slots=True)
class CounterSeries:
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


@dataclass(frozen=True, slots=True)
class _Derived:
    """One metric of all devices of a block: arrays of shape (devices, moments)."""

    metric: str
    names: Sequence[str]
    real_ns: Ints
    span_ns: Ints
    value: Floats
    sound: Flags


Wanted = Mapping[str, str | None]
"""The scopes to derive, and of each the only name that is wanted (None: every one)."""


def derive_series(
    counters: CounterTable, host_names: Sequence[str], wanted: Wanted | None = None
) -> tuple[CounterSeries, ...]:
    """Every series that the counters support, ordered by host, scope, name and metric.

    `host_names` are what the table's host column indexes. A series without a sample is left out.
    `wanted` leaves out what is not asked for: all of a thousand hosts' series are 200,000.
    """
    all_series: list[CounterSeries] = []
    for block in blocks(counters, wanted):
        only = wanted[block.scope] if wanted else None
        derived = _single_metric(block.scope, only)
        if derived is None:
            continue
        host = host_names[block.host]
        parts = (part for part in derived(block) if only is None or only in part.names)
        of_block = [series for part in parts for series in _series(host, block.scope, part)]
        of_block = [series for series in of_block if only is None or series.name == only]
        all_series += sorted(of_block, key=lambda series: (series.name, series.metric))
    return tuple(all_series)


def _series(host: str, scope: str, part: _Derived) -> Iterator[CounterSeries]:
    for index, name in enumerate(part.names):
        sound = part.sound[index]
        if sound.any():
            at, span, value = part.real_ns[sound], part.span_ns[sound], part.value[index][sound]
            yield CounterSeries(host, scope, name, part.metric, at, value, span)


def _disk(block: Block) -> Iterator[_Derived]:
    grown, span_ns = counter_deltas(block, _DISK), block.span_ns()
    values = grown.values
    yield from _read_and_write_rates(block, grown, "time_ns")
    depth = _ratio(values["queue_time_ns"], span_ns)
    yield _step_rate(block, "queue_depth", depth, grown.sound)
    # The kernel counts whole milliseconds at its own ticks: a full second may come out as 1.004 s.
    busy = np.minimum(_ratio(values["busy_time_ns"], span_ns), 1.0)
    yield _step_rate(block, "busy_share", busy, grown.sound)
    yield _gauge(block, "temperature_mc", "temperature_c", 1000.0)


def _read_and_write_rates(block: Block, grown: Deltas, time: str) -> Iterator[_Derived]:
    """What was read and written: I/Os and bytes a second, and the mean time of an I/O."""
    values, per_s = grown.values, _per_s(block.span_ns())
    for direction in ("read", "write"):
        ios, moved = values[f"{direction}_ios"], values[f"{direction}_bytes"]
        yield _step_rate(block, f"{direction}_iops", ios * per_s, grown.sound)
        yield _step_rate(block, f"{direction}_bytes_per_s", moved * per_s, grown.sound)
        latency = _ratio(values[f"{direction}_{time}"], ios)
        yield _step_rate(block, f"{direction}_lat_ns", latency, grown.sound)


def _cpu(block: Block) -> Iterator[_Derived]:
    """Each core, each NUMA node and all cores: shares of the time that the kernel accounted."""
    grown = counter_deltas(block, CPU, FALLING_CPU_TIMES)
    nodes = np.array([name.rpartition("@")[2] for name in block.names])
    yield from _cpu_time_shares(block, block.names, grown)
    for node in sorted(set(nodes.tolist())):
        yield from _cpu_time_shares(
            block, (f"node{node}",), _summed(grown, np.asarray(nodes == node))
        )
    yield from _cpu_time_shares(block, (ALL_CORES,), _summed(grown, slice(None)))


def _all_cores(block: Block) -> Iterator[_Derived]:
    """The same of all cores alone."""
    grown = counter_deltas(block, CPU, FALLING_CPU_TIMES)
    yield from _cpu_time_shares(block, (ALL_CORES,), _summed(grown, slice(None)))


def _cpu_time_shares(block: Block, names: Sequence[str], grown: Deltas) -> Iterator[_Derived]:
    states, span_ns = grown.values, block.span_ns()
    total = grown.grown.sum(axis=0)
    sound = grown.sound & (total > 0)
    shares = {
        "user_share": states["user_ns"] + states["nice_ns"],
        "system_share": states["system_ns"] + states["irq_ns"] + states["softirq_ns"],
        "iowait_share": states["iowait_ns"],
        "steal_share": states["steal_ns"],
        "busy_share": total - states["idle_ns"] - states["iowait_ns"],
    }
    for metric, part in shares.items():
        share = _ratio(part, total)
        yield _Derived(metric, names, block.real_ns[1:], span_ns, share, sound)


def _summed(grown: Deltas, members: Flags | slice) -> Deltas:
    """The members' growth added up, over those that are sound at each step."""
    sound = grown.sound[members]
    added = np.where(sound, grown.grown[:, members], 0).sum(axis=1, keepdims=True)
    return Deltas(grown.metrics, added, np.asarray(sound.any(axis=0, keepdims=True)))


def _nic(block: Block) -> Iterator[_Derived]:
    grown = counter_deltas(block, NIC)
    for metric in NIC:
        rate = grown.values[metric] * _per_s(block.span_ns())
        yield _step_rate(block, f"{metric}_per_s", rate, grown.sound)


def _memory(block: Block) -> Iterator[_Derived]:
    for metric in block.metrics:
        yield _gauge(block, metric, metric)


def _pressure(block: Block) -> Iterator[_Derived]:
    """The share of time in which some (or all) tasks waited, for each kind of pressure."""
    for metric in block.metrics:
        grown = counter_deltas(block, (metric,))
        share = np.minimum(_ratio(grown.values[metric], block.span_ns()), 1.0)
        yield _step_rate(block, f"{metric.removesuffix('_ns')}_share", share, grown.sound)


def _thermal(block: Block) -> Iterator[_Derived]:
    grown = counter_deltas(block, ("throttle_events",))
    rate = grown.values["throttle_events"] * _per_s(block.span_ns())
    yield _step_rate(block, "throttle_events_per_s", rate, grown.sound)


def _agent(block: Block) -> Iterator[_Derived]:
    """The agent's own cost; its share is of one core."""
    grown = counter_deltas(block, ("cpu_ns",))
    share = _ratio(grown.values["cpu_ns"], block.span_ns())
    yield _step_rate(block, "cpu_share", share, grown.sound)
    yield _gauge(block, "rss_bytes", "rss_bytes")


def _cassandra(block: Block) -> Iterator[_Derived]:
    """What a node counts of itself; a counter that its version does not have gives no series."""
    span_ns = block.span_ns()
    for counter in SERVER_COUNTS:
        grown = counter_deltas(block, (counter,))
        yield _step_rate(
            block, f"{counter}_per_s", grown.values[counter] * _per_s(span_ns), grown.sound
        )
    for metric, (counter, times) in SERVER_MEANS.items():
        grown = counter_deltas(block, (counter, times))
        yield _step_rate(
            block, metric, _ratio(grown.values[times], grown.values[counter]), grown.sound
        )
    for metric, counter in SERVER_SHARES.items():
        grown = counter_deltas(block, (counter,))
        yield _step_rate(block, metric, _ratio(grown.values[counter], span_ns), grown.sound)
    misses, requests = "chunk_cache_misses", "chunk_cache_requests"
    grown = counter_deltas(block, (misses, requests))
    missed = _ratio(grown.values[misses], grown.values[requests])
    yield _step_rate(block, "chunk_cache_miss_share", missed, grown.sound)
    for metric in SERVER_STATES:
        yield _gauge(block, metric, metric)


def _guest(block: Block) -> Iterator[_Derived]:
    """What a node served its guests, and what their processors had of its own, in cores."""
    yield from _read_and_write_rates(block, counter_deltas(block, GUEST_DISK), "ns")
    used = counter_deltas(block, GUEST_USE)
    for what in ("run", "wait"):
        share = _ratio(used.values[f"vcpu_{what}_ns"], block.span_ns())
        yield _step_rate(block, f"vcpu_{what}_share", share, used.sound)


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

_SCOPES: Final[dict[str, Callable[[Block], Iterator[_Derived]]]] = {
    "cpu": _cpu,
    "disk": _disk,
    "nic": _nic,
    "memory": _memory,
    "pressure": _pressure,
    "thermal": _thermal,
    "agent": _agent,
    "cassandra": _cassandra,
    GUESTS: _guest,
}


def _single_metric(scope: str, only: str | None) -> Callable[[Block], Iterator[_Derived]] | None:
    """What derives a scope, or the one name of it; None for a scope without rates."""
    return _all_cores if (scope, only) == ("cpu", ALL_CORES) else _SCOPES.get(scope)


def _step_rate(block: Block, metric: str, value: Floats, sound: Flags) -> _Derived:
    return _Derived(metric, block.names, block.real_ns[1:], block.span_ns(), value, sound)


def _gauge(block: Block, source: str, metric: str, divisor: float = 1.0) -> _Derived:
    """A value as it stands at each sample."""
    cells = block.cells(source)
    moments = np.zeros_like(block.real_ns)
    value = cells.values / divisor
    return _Derived(metric, block.names, block.real_ns, moments, value, cells.seen)


def _per_s(span_ns: Ints) -> Floats:
    """What a count over each step is to be multiplied with; nan for a step without length."""
    return _ratio(np.full(span_ns.shape, NS_PER_S, dtype=np.int64), span_ns)


def _ratio(part: Ints, whole: Ints) -> Floats:
    """The part of the whole, nan where there is no whole (no I/O has no mean latency)."""
    none = np.full(np.broadcast_shapes(part.shape, whole.shape), np.nan)
    return np.asarray(np.divide(part, whole, out=none, where=whole > 0))
