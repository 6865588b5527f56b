"""What a replay comes to: requests, how fast prefixes arrive, and hits beside the ideal ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from iolab.analysis.metrics import (
    cpu_s_per_gb,
    latency_statistics,
    metrics_from_values,
    percentiles_with_intervals,
)
from iolab.analysis.sums import OperationSums
from iolab.analysis.view import RunView
from iolab.core.histogram import Histogram
from iolab.core.metric import Metric
from iolab.core.metric_spec import CPU_PER_GB
from iolab.loads.kvcache.metric_specs import (
    BACKLOG_MAX,
    BREAK_EVEN,
    BREAK_EVEN_RATE,
    HIT_SHARE,
    IDEAL_HIT_SHARE,
    LOADED_TOKENS,
    METRICS,
    PREFIX_RATE,
    RECOMPUTE,
    REQUESTS,
    SLOW_PREFIX_RATE,
    TRACE_SPEED,
)
from iolab.loads.kvcache.workload import KvCacheJob, KvCacheRun, KvOperation, kv_run_of_host
from iolab.record import Record
from iolab.units import NS_PER_S

PREFIX_PERCENTILES: Final = (("p50", 50.0), ("p95", 95.0), ("p99", 99.0), ("p99_9", 99.9))
"""Of loads of prefixes: thousands in a run, so that p99.5 and p99.99 would have no value."""

PACE_BYTES: Final = 1 << 20
"""The bytes of which `KvOperation.PREFIX_PACE` has the time."""

PREFIX_NAMES: Final = ("mean", *(name for name, _ in PREFIX_PERCENTILES), "max")
PREFIX_KEYS: Final = tuple(KvOperation.PREFIX_LOAD.latency_key(name) for name in PREFIX_NAMES)


class KvCacheView(RunView, Record, dict=True):
    """A run with the sums of its requests; axis 1 of these is that of `KvOperation`."""

    requests: OperationSums | None = None

    @property
    def kv_job(self) -> KvCacheJob:
        """What the hosts were asked to do."""
        return KvCacheJob.require_type(self.job)

    def kv_run(self, index: int) -> KvCacheRun | None:
        """What a host did with its requests in the whole run."""
        return kv_run_of_host(self.hosts[index])

    def operation_histogram(self, hosts: Sequence[int], operation: KvOperation) -> Histogram:
        """The latencies of those hosts, merged bin by bin."""
        if self.requests is None:
            raise ValueError("a view without requests")
        place = operation - KvOperation.PREFIX_LOAD
        return Histogram(self.requests.bins[list(hosts), place].sum(axis=0))


def request_metrics(view: KvCacheView, hosts: Sequence[int]) -> dict[str, Metric]:
    """The metrics of those hosts together; none where they had no window in common."""
    values: dict[str, float | None] = {}
    if hosts and view.requests is not None and float(view.load.seconds[list(hosts)].min()) > 0:
        values = {**_latency_values(view, hosts), **_rate_values(view, hosts)}
    own = {spec.key: Metric(values.get(spec.key), spec.unit) for spec in METRICS}
    return metrics_from_values(PREFIX_KEYS, values) | own


def request_metrics_with_intervals(view: KvCacheView) -> dict[str, Metric]:
    """The same of all hosts, percentiles with intervals where the run can tell them."""
    hosts = list(range(len(view.hosts))) if view.load.has_common_window else []
    metrics = request_metrics(view, hosts)
    return metrics | percentiles_with_intervals(
        metrics,
        f"{KvOperation.PREFIX_LOAD.key}_",
        PREFIX_PERCENTILES,
        view.record,
        view.load.measured_part,
        [KvOperation.PREFIX_LOAD],
    )


def _latency_values(view: KvCacheView, hosts: Sequence[int]) -> dict[str, float | None]:
    sums = view.requests
    if sums is None:
        return {}
    picked = list(hosts)
    statistics = latency_statistics(
        view.operation_histogram(hosts, KvOperation.PREFIX_LOAD),
        float(sums.lat_sum_ns[picked, 0].sum()),
        int(sums.completed[picked, 0].sum()),
        PREFIX_PERCENTILES,
    )
    return {KvOperation.PREFIX_LOAD.latency_key(name): value for name, value in statistics.items()}


def _rate_values(view: KvCacheView, hosts: Sequence[int]) -> dict[str, float | None]:
    sums, job, picked = view.requests, view.kv_job, list(hosts)
    if sums is None:
        return {}
    seconds = view.load.seconds[picked]
    place = KvOperation.REQUEST - KvOperation.PREFIX_LOAD
    read_per_s = float((view.load.bytes[picked, 0] / seconds).sum())
    runs = [run for index in hosts if (run := view.kv_run(index)) is not None]
    blocks = sum(run.blocks for run in runs)
    pace = view.operation_histogram(hosts, KvOperation.PREFIX_PACE)
    rates = {p: _prefix_rate_percentile(pace, 100.0 - p) for p in (50.0, 5.0)}
    slow = rates[5.0]
    prefill = job.prefill_tokens_per_s
    loaded_tokens_per_s = read_per_s / job.block_bytes * job.block_tokens
    prefixes_per_s = float((sums.completed[picked, 0] / seconds).sum())
    recompute_s = None
    if prefill and prefixes_per_s:
        recompute_s = loaded_tokens_per_s / prefixes_per_s / prefill
    return {
        REQUESTS.key: float((sums.completed[picked, place] / seconds).sum()),
        HIT_SHARE.key: sum(run.hits for run in runs) / blocks if blocks else None,
        IDEAL_HIT_SHARE.key: sum(run.ideal_hits for run in runs) / blocks if blocks else None,
        LOADED_TOKENS.key: loaded_tokens_per_s,
        PREFIX_RATE.key: rates[50.0],
        SLOW_PREFIX_RATE.key: slow,
        BREAK_EVEN.key: None if slow is None else slow / job.kv_bytes_per_token,
        BREAK_EVEN_RATE.key: prefill * job.kv_bytes_per_token if prefill else None,
        RECOMPUTE.key: None if recompute_s is None else recompute_s * NS_PER_S,
        TRACE_SPEED.key: runs[0].clock_factor if runs else None,
        CPU_PER_GB.key: cpu_s_per_gb([view.hosts[index] for index in hosts]),
        BACKLOG_MAX.key: float(max((max(run.backlog, default=0) for run in runs), default=0)),
    }


def _prefix_rate_percentile(pace: Histogram, percent: float) -> float | None:
    """Bytes a second of prefixes of which so many per cent come faster."""
    ns = pace.percentile_ns(percent)
    return PACE_BYTES * NS_PER_S / ns if ns else None
