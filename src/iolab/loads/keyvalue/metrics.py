"""What the hosts did to a key-value store: sums by host and operation, and the metrics from them.

An engine counts whole operations in one of two ways. db_bench does not tell operations apart while
it runs, so all of them stand under `ALL`, but for a writer beside the readers. YCSB tells them
apart, and counts a read-modify-write also as the read and the update that it is made of, so it is
taken off again. Operations timed from when they were due are those same operations once more.

Latencies have one of two sources: bins of each interval, which merge exactly over hosts and seconds
and are of the window; or the engine's own bins of its whole run, warm-up included.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from iolab.analysis.metrics import (
    is_percentile_supported,
    latency_statistics,
    metrics_or_unknown_by_key,
    percentiles_with_intervals,
    rate_with_interval,
    with_stall_percentiles_as_bounds,
)
from iolab.analysis.steady import EXCESS_TOLERABLE, OperationWeights, SteadinessView
from iolab.analysis.sums import sum_operations_in_window
from iolab.analysis.view import RunView
from iolab.analysis.window import (
    EDGE_SLACK_NS,
    WARMUP_SLACK_NS,
    WARMUP_SLACK_SHARE,
    MeasuredPart,
    Window,
    find_measured_part,
    to_controller_clock_ns,
)
from iolab.core.histogram import Histogram
from iolab.core.metric import Metric
from iolab.core.metric_spec import OPS_PER_S
from iolab.core.run import HostRun, RunRecord
from iolab.core.samples import Floats, Ints
from iolab.core.stopping import SteadinessStatus
from iolab.loads.keyvalue.workload import (
    READ_RANDOM,
    READ_RANDOM_WRITE_RANDOM,
    BinnedLatency,
    DbBenchJob,
    KeyJob,
    KeyOperation,
    KeyValueHostDetails,
    LatencyBin,
    ServerRunDetails,
    YcsbJob,
    key_value_details_of_host,
)
from iolab.record import Record

WHOLE_OPERATION_WEIGHTS: Final[OperationWeights] = {
    KeyOperation.ALL: 1,
    KeyOperation.READ: 1,
    KeyOperation.UPDATE: 1,
    KeyOperation.INSERT: 1,
    KeyOperation.SCAN: 1,
    KeyOperation.READ_MODIFY_WRITE: -1,
}
"""How often a row of each operation counts as a whole operation; all others do not."""

WHOLE_OPERATIONS_RATE_KEY: Final = OPS_PER_S
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

NAMED_OPERATIONS: Final = tuple(
    operation for operation in KeyOperation if operation is not KeyOperation.ALL
)
"""Operations that have metrics of their own, in the order in which they are shown."""

_DB_BENCH: Final = {
    READ_RANDOM: (KeyOperation.READ,),
    READ_RANDOM_WRITE_RANDOM: (KeyOperation.READ, KeyOperation.WRITE),
}

_BESIDE: Final = (KeyOperation.READ, KeyOperation.WRITE)
"""Readers, and a writer beside them."""

_NEAR_PERCENTILE: Final = "p99"
"""What far percentiles of a run with a few stalls are told to be more than."""

_STATUSES_WITH_INTERVAL: Final = (SteadinessStatus.OK, SteadinessStatus.IMPRECISE)


def merge_binned_latencies(latencies: Sequence[BinnedLatency]) -> BinnedLatency | None:
    """The latencies of one operation together: bins with the same edges add up, exactly.

    None for none at all, and where bins of one overlap those of another with other edges, as
    engines of different versions may have them: no bin says how its latencies lie within it.
    Mean and standard deviation are those of all latencies.
    """
    if not latencies:
        return None
    counts: dict[tuple[int, int], int] = {}
    for latency in latencies:
        for held in latency.bins:
            edges = (held.low_ns, held.high_ns)
            counts[edges] = counts.get(edges, 0) + held.count
    ordered = sorted(counts)
    if any(after[0] < before[1] for before, after in pairwise(ordered)):
        return None
    used = [latency for latency in latencies if latency.count]
    if not used:
        return latencies[0]
    total = sum(latency.count for latency in used)
    mean = math.fsum(latency.count * latency.mean_ns for latency in used) / total
    squares = math.fsum(
        latency.count * (latency.std_dev_ns**2 + (latency.mean_ns - mean) ** 2) for latency in used
    )
    return BinnedLatency(
        operation=latencies[0].operation,
        count=total,
        mean_ns=mean,
        std_dev_ns=math.sqrt(squares / total),
        min_ns=min(latency.min_ns for latency in used),
        max_ns=max(latency.max_ns for latency in used),
        resolution_ns=max(latency.resolution_ns for latency in used),
        bins=tuple(LatencyBin(*edges, counts[edges]) for edges in ordered),
    )


class KeyValueSums(Record):
    """Sums over the measured intervals; H hosts, axis 1 is `operations`.

    `operations` are those that have intervals or latencies. `seconds` (H,) is the time that each
    host's intervals cover, none of it twice; `completed_by_host` and `lat_sum_ns` are (H, O),
    `bins` is (H, O, BIN_COUNT). `engine_bins` has for each host its engine's own bins, which are of
    the whole run. `find_measured_part` says which intervals were summed.
    """

    measured_part: MeasuredPart
    operations: tuple[KeyOperation, ...]
    seconds: Floats
    completed_by_host: Ints
    lat_sum_ns: Floats
    bins: Ints
    engine_bins: tuple[tuple[BinnedLatency, ...], ...]

    @property
    def has_common_window(self) -> bool:
        """Whether the hosts had a window in common, so that their rates may be added."""
        return self.measured_part.common_window is not None

    @property
    def whole_operation_counts_by_host(self) -> Ints:
        """Whole operations of each host (H,): each counted once, without a writer beside."""
        weights = np.array(
            [WHOLE_OPERATION_WEIGHTS.get(operation, 0) for operation in self.operations],
            dtype=np.int64,
        )
        return np.asarray(self.completed_by_host @ weights, dtype=np.int64)

    @property
    def whole_operation_rates_by_host(self) -> Floats:
        """Whole operations a second of each host (H,), 0 where it measured none."""
        return self._rates_from_counts(self.whole_operation_counts_by_host)

    def operation_rates_by_host(self, operation: KeyOperation) -> Floats:
        """One operation a second on each host (H,)."""
        return self._rates_from_counts(self.operation_counts_by_host(operation))

    def operation_counts_by_host(self, operation: KeyOperation) -> Ints:
        """One operation on each host (H,)."""
        place = self._operation_index(operation)
        zeros = np.zeros(len(self.seconds), dtype=np.int64)
        return zeros if place is None else np.asarray(self.completed_by_host[:, place])

    def mean_latency_ns(self, operation: KeyOperation, host_indexes: Sequence[int]) -> float | None:
        """The mean latency of those hosts, each operation weighing the same; None without any."""
        place = self._operation_index(operation)
        if place is not None and self.bins[host_indexes, place].any():
            total = int(self.completed_by_host[host_indexes, place].sum())
            return float(self.lat_sum_ns[host_indexes, place].sum()) / max(total, 1)
        binned = self.engine_latency_bins_of_run(operation, host_indexes)
        return binned.mean_ns if binned else None

    def histogram(self, operation: KeyOperation, host_indexes: Sequence[int]) -> Histogram | None:
        """The latencies of those hosts in the window, merged bin by bin; None without bins."""
        place = self._operation_index(operation)
        if place is None:
            return None
        counts = self.bins[host_indexes, place].sum(axis=0)
        return Histogram(counts) if counts.any() else None

    def engine_latency_bins_of_run(
        self, operation: KeyOperation, host_indexes: Sequence[int]
    ) -> BinnedLatency | None:
        """The same in the engine's own bins and of the whole run.

        None where a host told none, or hosts have bins that do not fit together.
        """
        parts = [self._engine_bins(operation, host) for host in host_indexes]
        present = [part for part in parts if part is not None]
        return merge_binned_latencies(present) if present and len(present) == len(parts) else None

    def latency_sample_count(self, operation: KeyOperation, host_indexes: Sequence[int]) -> int:
        """How many latencies are known of the operation on those hosts."""
        windowed = self.histogram(operation, host_indexes)
        if windowed is not None:
            return windowed.total
        binned = self.engine_latency_bins_of_run(operation, host_indexes)
        return binned.count if binned else 0

    def _engine_bins(self, operation: KeyOperation, host_index: int) -> BinnedLatency | None:
        return next(
            (latency for latency in self.engine_bins[host_index] if latency.operation is operation),
            None,
        )

    def _operation_index(self, operation: KeyOperation) -> int | None:
        return self.operations.index(operation) if operation in self.operations else None

    def _rates_from_counts(self, counts_by_host: Ints) -> Floats:
        zeros = np.zeros(len(self.seconds))
        return np.asarray(
            np.divide(counts_by_host, self.seconds, out=zeros, where=self.seconds > 0)
        )


def runtime_window(record: RunRecord) -> Window | None:
    """The window of a run of fixed length: whole intervals of the runtime, after the warm-up.

    It begins with the first interval of every host after the warm-up, and ends with the one in
    which the runtime is over. Engines run a moment longer than both together, so that no second is
    lost to intervals that begin in the middle of others. None where the hosts share no window.
    """
    common = find_measured_part(record).common_window
    if common is None:
        return None
    early_ns = round(min(record.warmup_s * 1e9 * WARMUP_SLACK_SHARE, WARMUP_SLACK_NS))
    first_ns = common.start_ns - max(early_ns, EDGE_SLACK_NS)
    starts, ends = _interval_starts_and_ends(record)
    start_ns = max(_first_at_or_after(each, first_ns, common.start_ns) for each in starts)
    over_ns = start_ns + round(record.runtime_s * 1e9) - EDGE_SLACK_NS
    end_ns = max(_first_at_or_after(each, over_ns, common.end_ns) for each in ends)
    window = Window(start_ns, min(end_ns, common.end_ns))
    return window if window.end_ns > window.start_ns else common


def _interval_starts_and_ends(record: RunRecord) -> tuple[list[Ints], list[Ints]]:
    """When each host's intervals begin, and when they end, on the controller's clock."""
    table, hosts = record.intervals, range(len(record.hosts))
    offsets = np.array([host.clock_offset_ns for host in record.hosts], dtype=np.int64)
    ends = to_controller_clock_ns(table.end_real_ns, offsets[table.host])
    starts = ends - table.span_ns
    return [starts[table.host == host] for host in hosts], [
        ends[table.host == host] for host in hosts
    ]


def _first_at_or_after(times_ns: Ints, least_ns: int, default_ns: int) -> int:
    """The first of the moments that does not come before another one."""
    later = times_ns[times_ns >= least_ns]
    return int(later.min()) if later.size else default_ns


def sum_key_value_operations(record: RunRecord, window: Window | None = None) -> KeyValueSums:
    """The sums of a record's measured window, which is what a rule says where one does."""
    measured = find_measured_part(record, window or runtime_window(record))
    binned = tuple(
        reply.latencies if (reply := key_value_details_of_host(host)) else ()
        for host in record.hosts
    )
    present = {int(way) for way in np.unique(record.intervals.direction)}
    present |= {int(latency.operation) for each in binned for latency in each}
    operations = tuple(operation for operation in KeyOperation if int(operation) in present)
    sums = sum_operations_in_window(record, operations, measured)
    counted = np.isin(record.intervals.direction, operations)
    return KeyValueSums(
        measured_part=measured,
        operations=operations,
        seconds=_covered_seconds_by_host(record, np.flatnonzero(measured.interval_mask & counted)),
        completed_by_host=sums.completed,
        lat_sum_ns=sums.lat_sum_ns,
        bins=sums.bins,
        engine_bins=binned,
    )


def _covered_seconds_by_host(record: RunRecord, row_indexes: Ints) -> Floats:
    """The time that each host's intervals cover: operations may have intervals of their own."""
    table = record.intervals
    offsets = np.array([host.clock_offset_ns for host in record.hosts], dtype=np.int64)
    ends = to_controller_clock_ns(table.end_real_ns[row_indexes], offsets[table.host[row_indexes]])
    starts = ends - table.span_ns[row_indexes]
    covered = np.zeros(len(record.hosts), dtype=np.float64)
    for host in range(len(record.hosts)):
        own = np.flatnonzero(table.host[row_indexes] == host)
        own = own[np.argsort(starts[own], kind="stable")]
        if own.size:
            reached = np.maximum.accumulate(ends[own])
            before = np.concatenate([starts[own][:1], reached[:-1]])
            new = reached - np.maximum(starts[own], before)
            covered[host] = float(np.maximum(new, 0).sum()) / 1e9
    return covered


ROCKSDB_GIVEN: Final = "rocksdb.bytes.written"
ROCKSDB_WRITTEN: Final = (
    "rocksdb.wal.bytes",
    "rocksdb.flush.write.bytes",
    "rocksdb.compact.write.bytes",
)
"""RocksDB's counters of bytes, by its own names."""

CASSANDRA_WRITTEN: Final = ("flushed_bytes", "compaction_written_bytes")
"""Those of a Cassandra node's table, by ours."""


class KeyValueView(RunView, kw_only=True):
    """With what was done to the store; `load` is empty but for its cut and its seconds."""

    key_value_sums: KeyValueSums

    @property
    def key_value_job(self) -> KeyJob:
        """What each host was asked to do; TypeError for any other load."""
        job = self.record.run.point.job
        if not isinstance(job, KeyJob):
            raise TypeError(f"{job.engine} makes no load on a key-value store")
        return job

    @property
    def hosts_with_details(self) -> list[tuple[HostRun, KeyValueHostDetails]]:
        """What engines told, of the hosts whose engine told anything."""
        return [
            (host, reply)
            for host in self.hosts
            if (reply := key_value_details_of_host(host)) is not None
        ]

    def application_written_bytes(self, host_index: int) -> int | None:
        """Keys and values that RocksDB took; of YCSB the values that it wrote."""
        job, reply = self.key_value_job, key_value_details_of_host(self.hosts[host_index])
        if not isinstance(job, YcsbJob):
            return self._statistics_sum_or_none(host_index, (ROCKSDB_GIVEN,))
        if reply is None:
            return None
        # A read-modify-write is counted as an update, too.
        sizes = {KeyOperation.UPDATE: job.field_bytes, KeyOperation.INSERT: job.record_bytes}
        return sum(
            (count.completed - count.failed) * sizes.get(count.operation, 0)
            for count in reply.counts
        )

    def engine_written_bytes(self, host_index: int) -> int | None:
        """What RocksDB wrote on its host: its log, flushes and compaction.

        Of a Cassandra node that iolab runs flushes and compaction, on the client where it is: its
        log has no counter.
        """
        if not isinstance(self.key_value_job, YcsbJob):
            return self._statistics_sum_or_none(host_index, ROCKSDB_WRITTEN)
        server = self.record.details if isinstance(self.record.details, ServerRunDetails) else None
        if server is None or server.host not in {each.host for each in self.hosts}:
            return None
        before, after = server.statistics_before_by_name, server.statistics_after_by_name
        if not before.keys() & after.keys() >= {*CASSANDRA_WRITTEN}:
            return None
        grown = [after[name] - before[name] for name in CASSANDRA_WRITTEN]
        if min(grown) < 0:  # a node that was started anew in the run counts from 0
            return None
        return round(sum(grown)) if server.host == self.hosts[host_index].host else 0

    def _statistics_sum_or_none(self, host_index: int, names: Sequence[str]) -> int | None:
        reply = key_value_details_of_host(self.hosts[host_index])
        values = {each.name: each.value for each in reply.statistics} if reply else {}
        return round(sum(values[name] for name in names)) if values.keys() >= {*names} else None

    @property
    def has_measured_load(self) -> bool:
        """Whether any whole operation was measured in the window."""
        return bool(self.key_value_sums.whole_operation_counts_by_host.sum() > 0)


def metric_keys_of_operations(operations: Sequence[KeyOperation]) -> tuple[str, ...]:
    """Every metric of a result with those operations, in the order shown."""
    keys = [WHOLE_OPERATIONS_RATE_KEY]
    for operation in operations:
        keys += [] if operation.is_intended else [operation.rate_key]
        keys += [operation.latency_key(name) for name in LATENCY_NAMES]
    return tuple(keys)


KEY_VALUE_KEYS: Final = metric_keys_of_operations(NAMED_OPERATIONS)
"""Every metric that a result on a key-value store may have; one has those of its operations."""


def expected_operations(job: KeyJob) -> tuple[KeyOperation, ...]:
    """The operations that a job asks for, as far as they can be known before it ran."""
    if isinstance(job, DbBenchJob):
        return _BESIDE if job.has_writer else _DB_BENCH.get(job.workload, ())
    asked = {operation for operation, share in job.mix if share > 0}
    if KeyOperation.READ_MODIFY_WRITE in asked:
        asked |= {KeyOperation.READ, KeyOperation.UPDATE}
    if job.rate_ops_per_s is not None:
        asked |= {due for each in asked if (due := each.intended_variant) is not None}
    return tuple(operation for operation in NAMED_OPERATIONS if operation in asked)


def key_value_metrics(key_value_sums: KeyValueSums, job: KeyJob) -> dict[str, Metric]:
    """The metrics of all hosts together; without a common window none has a value."""
    return _key_value_metrics(
        key_value_sums,
        range(len(key_value_sums.seconds)) if key_value_sums.has_common_window else (),
        job,
    )


def key_value_host_metrics(
    key_value_sums: KeyValueSums, host_index: int, job: KeyJob
) -> dict[str, Metric]:
    """The metrics of one host."""
    return _key_value_metrics(key_value_sums, [host_index], job)


def _operations_to_report(key_value_sums: KeyValueSums, job: KeyJob) -> tuple[KeyOperation, ...]:
    asked = {*expected_operations(job), *key_value_sums.operations}
    return tuple(operation for operation in NAMED_OPERATIONS if operation in asked)


def _key_value_metrics(
    key_value_sums: KeyValueSums, host_indexes: Sequence[int], job: KeyJob
) -> dict[str, Metric]:
    host_indexes, shown = list(host_indexes), _operations_to_report(key_value_sums, job)
    metrics: dict[str, Metric] = {}
    if (
        host_indexes
        and float(key_value_sums.seconds[host_indexes].min()) > 0
        and key_value_sums.whole_operation_counts_by_host[host_indexes].any()
    ):
        rates: dict[str, float | None] = {
            WHOLE_OPERATIONS_RATE_KEY: float(
                key_value_sums.whole_operation_rates_by_host[host_indexes].sum()
            )
        }
        for operation in shown:
            if not operation.is_intended:
                rates[operation.rate_key] = _operation_rate(key_value_sums, operation, host_indexes)
            metrics |= _latency_metrics(key_value_sums, operation, host_indexes)
        metrics |= metrics_or_unknown_by_key(rates, rates)
    return metrics_or_unknown_by_key(metric_keys_of_operations(shown), {}) | metrics


def _operation_rate(
    key_value_sums: KeyValueSums, operation: KeyOperation, host_indexes: Sequence[int]
) -> float | None:
    """One operation's rate; None where nothing tells it.

    Where an engine did not tell operations apart, each has its share of those that it timed in the
    whole run: every thread keeps to the mix that it was told, hundred by hundred.
    """
    if key_value_sums.operation_counts_by_host(operation)[host_indexes].any():
        return float(key_value_sums.operation_rates_by_host(operation)[host_indexes].sum())
    shares = [_operation_share(key_value_sums, operation, host) for host in host_indexes]
    if not any(shares):
        return None
    return float(
        sum(
            key_value_sums.whole_operation_rates_by_host[host] * share
            for host, share in zip(host_indexes, shares, strict=True)
        )
    )


def _operation_share(
    key_value_sums: KeyValueSums, operation: KeyOperation, host_index: int
) -> float:
    """Of all operations that a host's engine timed."""
    total = sum(latency.count for latency in key_value_sums.engine_bins[host_index])
    own = sum(
        latency.count
        for latency in key_value_sums.engine_bins[host_index]
        if latency.operation is operation
    )
    return own / total if total else 0.0


def _latency_metrics(
    key_value_sums: KeyValueSums, operation: KeyOperation, host_indexes: Sequence[int]
) -> dict[str, Metric]:
    mean = key_value_sums.mean_latency_ns(operation, host_indexes)
    if mean is None:
        return {}
    by_name = {"mean": Metric(mean, "ns")}
    windowed = key_value_sums.histogram(operation, host_indexes)
    if windowed is not None:
        values = latency_statistics(windowed, mean, 1, KEY_PERCENTILES)
        by_name = {name: Metric(value, "ns") for name, value in values.items()}
    elif (binned := key_value_sums.engine_latency_bins_of_run(operation, host_indexes)) is not None:
        for name, percent in KEY_PERCENTILES:
            if is_percentile_supported(binned.count, percent):
                low, high = binned.quantile_bounds_ns(percent / 100)
                at = binned.interpolated_quantile_ns(percent / 100)
                by_name[name] = Metric(at, "ns", float(low), float(high))
        by_name["max"] = Metric(float(binned.max_ns), "ns")
    return {operation.latency_key(name): metric for name, metric in by_name.items()}


def metrics_with_key_value_intervals(
    metrics: Mapping[str, Metric],
    record: RunRecord,
    key_value_sums: KeyValueSums,
    steady: SteadinessView | None,
) -> dict[str, Metric]:
    """The fleet's metrics, with low, high and n where the run can tell them."""
    shown = [
        operation
        for operation in key_value_sums.operations
        if operation.latency_key(_NEAR_PERCENTILE) in metrics
    ]
    with_intervals = with_stall_percentiles_as_bounds(
        metrics, [f"{operation.key}_" for operation in shown], _NEAR_PERCENTILE, steady
    )
    if steady is not None and _does_steady_interval_hold_for_rate(steady):
        with_intervals[WHOLE_OPERATIONS_RATE_KEY] = rate_with_interval(
            with_intervals[WHOLE_OPERATIONS_RATE_KEY], steady
        )
    for operation in shown:
        if key_value_sums.histogram(operation, range(len(key_value_sums.seconds))) is not None:
            with_intervals |= _percentiles_with_intervals(
                with_intervals, record, key_value_sums, operation
            )
    return with_intervals


def _does_steady_interval_hold_for_rate(steady: SteadinessView) -> bool:
    """Whether what the rule knows of the steady part's mean holds for the rate that is shown."""
    settled = steady.steadiness.status in _STATUSES_WITH_INTERVAL
    return settled and abs(steady.planned_window_relative_mean_excess) <= EXCESS_TOLERABLE


def _percentiles_with_intervals(
    metrics: Mapping[str, Metric],
    record: RunRecord,
    key_value_sums: KeyValueSums,
    operation: KeyOperation,
) -> dict[str, Metric]:
    prefix = f"{operation.key}_"
    return percentiles_with_intervals(
        metrics, prefix, KEY_PERCENTILES, record, key_value_sums.measured_part, [int(operation)]
    )
