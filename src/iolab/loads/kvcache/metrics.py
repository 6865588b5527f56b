"""What a replay comes to: requests, how fast prefixes arrive, and hits beside the ideal ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from iolab.analysis.metrics import cpu_s_per_gb
from iolab.analysis.named_operations import OperationsView
from iolab.core.histogram import Histogram
from iolab.core.metric_spec import CPU_PER_GB
from iolab.core.workload import OperationEnum
from iolab.loads.kvcache.metric_specs import (
    BACKLOG_MAX,
    BREAK_EVEN,
    BREAK_EVEN_RATE,
    HIT_SHARE,
    IDEAL_HIT_SHARE,
    LOADED_TOKENS,
    PREFIX_RATE,
    RECOMPUTE,
    REQUESTS,
    SLOW_PREFIX_RATE,
    TRACE_SPEED,
)
from iolab.loads.kvcache.workload import (
    KvCacheHostDetails,
    KvCacheJob,
    KvCacheOperation,
    kv_cache_details_of_host,
)
from iolab.record import Record
from iolab.units import NS_PER_S

PREFIX_PERCENTILES: Final = (("p50", 50.0), ("p95", 95.0), ("p99", 99.0), ("p99_9", 99.9))
"""Of loads of prefixes: thousands in a run, so that p99.5 and p99.99 would have no value."""

PACE_BYTES: Final = 1 << 20
"""The bytes of which `KvCacheOperation.PREFIX_PACE` has the time."""

PREFIX_NAMES: Final = ("mean", *(name for name, _ in PREFIX_PERCENTILES), "max")
PREFIX_KEYS: Final = tuple(KvCacheOperation.PREFIX_LOAD.latency_key(name) for name in PREFIX_NAMES)


class KvCacheView(OperationsView, Record, dict=True):
    """A run with what its requests did."""

    operations_in_sums: ClassVar[tuple[OperationEnum, ...]] = tuple(KvCacheOperation)

    @property
    def kv_job(self) -> KvCacheJob:
        """What the hosts were asked to do."""
        return KvCacheJob.require_type(self.job)

    def details_of_host(self, host_index: int) -> KvCacheHostDetails | None:
        """What a host did with its requests in the whole run."""
        return kv_cache_details_of_host(self.hosts[host_index])


def request_metric_values(
    view: KvCacheView, host_indexes: Sequence[int]
) -> dict[str, float | None]:
    """The values of those hosts together."""
    latencies = view.latency_mean_percentiles_and_max(
        host_indexes, KvCacheOperation.PREFIX_LOAD, PREFIX_PERCENTILES
    )
    return latencies | _replay_metric_values(view, host_indexes)


def _replay_metric_values(
    view: KvCacheView, host_indexes: Sequence[int]
) -> dict[str, float | None]:
    job, picked = view.kv_job, list(host_indexes)
    read_per_s = float((view.load.bytes[picked, 0] / view.load.seconds[picked]).sum())
    runs = [run for index in host_indexes if (run := view.details_of_host(index)) is not None]
    blocks = sum(run.blocks for run in runs)
    pace = view.operation_histogram(host_indexes, KvCacheOperation.PREFIX_PACE)
    rates = {p: _prefix_rate_exceeded_by_percent(pace, 100.0 - p) for p in (50.0, 5.0)}
    slow = rates[5.0]
    prefill = job.prefill_tokens_per_s
    loaded_tokens_per_s = read_per_s / job.block_bytes * job.block_tokens
    prefixes_per_s = view.operation_rate_per_s(host_indexes, KvCacheOperation.PREFIX_LOAD)
    recompute_s = None
    if prefill and prefixes_per_s:
        recompute_s = loaded_tokens_per_s / prefixes_per_s / prefill
    return {
        REQUESTS.key: view.operation_rate_per_s(host_indexes, KvCacheOperation.REQUEST),
        HIT_SHARE.key: sum(run.hits for run in runs) / blocks if blocks else None,
        IDEAL_HIT_SHARE.key: sum(run.ideal_hits for run in runs) / blocks if blocks else None,
        LOADED_TOKENS.key: loaded_tokens_per_s,
        PREFIX_RATE.key: rates[50.0],
        SLOW_PREFIX_RATE.key: slow,
        BREAK_EVEN.key: None if slow is None else slow / job.kv_bytes_per_token,
        BREAK_EVEN_RATE.key: prefill * job.kv_bytes_per_token if prefill else None,
        RECOMPUTE.key: None if recompute_s is None else recompute_s * NS_PER_S,
        TRACE_SPEED.key: runs[0].clock_factor if runs else None,
        CPU_PER_GB.key: cpu_s_per_gb([view.hosts[index] for index in host_indexes]),
        BACKLOG_MAX.key: float(max((max(run.backlog, default=0) for run in runs), default=0)),
    }


def _prefix_rate_exceeded_by_percent(pace_histogram: Histogram, percent: float) -> float | None:
    """Bytes a second of prefixes of which so many per cent come faster."""
    ns = pace_histogram.percentile_ns(percent)
    return PACE_BYTES * NS_PER_S / ns if ns else None
