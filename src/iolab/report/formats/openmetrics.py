"""A session as metrics in the OpenMetrics text format, named by Prometheus' conventions.

Counters and the histogram add up over the runs of a point, so that `rate` and `histogram_quantile`
work on them; published values with their intervals are gauges. Without times it is what a scrape
sees now; with times what scrapes every `STEP_S` would have seen, for a database to be filled with.
docs/reference/openmetrics.md lists the metrics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct, field

from iolab.analysis.points import PointKey, PointSummary
from iolab.core.events import SessionStatus
from iolab.core.histogram import UPPER_NS
from iolab.core.metric import Metric, RunResult
from iolab.core.metric_spec import (
    MetricSpec,
    is_known_metric,
    is_metric_declared_by_load_kind,
    is_scenario_metric,
    metric_spec,
)
from iolab.core.samples import BinTable, CounterTable, Floats, IntervalTable, Ints
from iolab.hosts.counters import counter_blocks
from iolab.record import Record
from iolab.report.numbers import axis_values_text
from iolab.store.documents import SessionDocument
from iolab.text import escape_invisible
from iolab.units import NS_PER_S

CONTENT_TYPE: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"

STEP_S: Final = 5.0
"""Between two moments of an export: three of a usual scrape's."""

_FIRST_OCTAVE, _LAST_OCTAVE = 12, 34
_EDGES_NS: Final = tuple(
    (1 << octave) * half // 2 for octave in range(_FIRST_OCTAVE, _LAST_OCTAVE) for half in (2, 3)
)
"""Upper ends of the buckets, 4 us to 13 s: edges of iolab's own bins, so that none is split."""

_BUCKET_OF_BIN: Final = np.searchsorted(np.array(_EDGES_NS), UPPER_NS, side="left")

Labels = tuple[tuple[str, str], ...]

_CPU_MODES: Final = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


class _MetricFamily(Record):
    """One metric: what it is called without suffix, its type, unit, and a sentence."""

    name: str
    metric_type: str
    unit: str
    help: str


SESSION_INFO: Final = _MetricFamily("iolab_session", "info", "", "What a session measures.")
STATUS: Final = _MetricFamily("iolab_session_status", "gauge", "", "1 for how a session stands.")
PLANNED: Final = _MetricFamily("iolab_session_planned_runs", "gauge", "", "Runs of the plan.")
RUNS: Final = _MetricFamily(
    "iolab_session_runs", "counter", "", "Committed runs by end and verdict."
)
OBJECTIONS: Final = _MetricFamily(
    "iolab_check_objections", "gauge", "", "Runs that a check objects to."
)
OPERATIONS: Final = _MetricFamily("iolab_operations", "counter", "", "Operations completed.")
BYTES: Final = _MetricFamily("iolab_bytes", "counter", "bytes", "Bytes read or written.")
LATENCY: Final = _MetricFamily(
    "iolab_latency_seconds", "histogram", "seconds", "Latencies of operations, warm-up included."
)
RATE: Final = _MetricFamily(
    "iolab_point_operations_per_second", "gauge", "", "Published rate, and its 95 % interval."
)
BANDWIDTH: Final = _MetricFamily(
    "iolab_point_bytes_per_second", "gauge", "", "Published bandwidth, and its 95 % interval."
)
POINT_LATENCY: Final = _MetricFamily(
    "iolab_point_latency_seconds", "gauge", "seconds", "Published latency, and its 95 % interval."
)
POINT_METRIC: Final = _MetricFamily(
    "iolab_point_metric", "gauge", "", "Published value of a kind's own metric, and its interval."
)
VERDICT: Final = _MetricFamily("iolab_point_verdict", "gauge", "", "1 for a point's worst verdict.")
CPU: Final = _MetricFamily(
    "iolab_host_cpu_seconds", "counter", "seconds", "Time of all cores while load ran."
)
DISK_READ: Final = _MetricFamily("iolab_host_disk_read_bytes", "counter", "bytes", "Bytes read.")
DISK_WRITTEN: Final = _MetricFamily(
    "iolab_host_disk_written_bytes", "counter", "bytes", "Bytes written."
)
DISK_READS: Final = _MetricFamily(
    "iolab_host_disk_reads_completed", "counter", "", "Reads of a device."
)
DISK_WRITES: Final = _MetricFamily(
    "iolab_host_disk_writes_completed", "counter", "", "Writes of a device."
)
DISK_BUSY: Final = _MetricFamily(
    "iolab_host_disk_io_time_seconds", "counter", "seconds", "Time with any I/O in flight."
)
RECEIVED: Final = _MetricFamily(
    "iolab_host_network_receive_bytes", "counter", "bytes", "Bytes received."
)
SENT: Final = _MetricFamily("iolab_host_network_transmit_bytes", "counter", "bytes", "Bytes sent.")

_COUNTERS: Final = {
    ("disk", "read_bytes"): (DISK_READ, 1.0),
    ("disk", "write_bytes"): (DISK_WRITTEN, 1.0),
    ("disk", "read_ios"): (DISK_READS, 1.0),
    ("disk", "write_ios"): (DISK_WRITES, 1.0),
    ("disk", "busy_time_ns"): (DISK_BUSY, 1e-9),
    ("nic", "rx_bytes"): (RECEIVED, 1.0),
    ("nic", "tx_bytes"): (SENT, 1.0),
}


class CumulativeOperations(Record):
    """What one operation of one run added up to at each of `times_s` (UTC), from its start.

    `buckets` has a column for each edge and one beyond the last; they add up along a row.
    """

    times_s: Floats
    operation_counts: Ints
    bytes: Ints
    lat_sum_s: Floats
    buckets: Ints


class HostCounter(Record):
    """A counter of a host's kernel at those times."""

    family: _MetricFamily
    labels: Labels
    times_s: Floats
    values: Floats


class RunCounters(Record):
    """All that one run's tables tell as counters."""

    operations_by_number: Mapping[int, CumulativeOperations]
    hosts: tuple[HostCounter, ...]


class SessionCounters(Record):
    """The runs' counters.

    `has_timestamps` says whether every moment is told, or the last one alone.
    """

    results_and_counters: Sequence[tuple[RunResult, RunCounters]]
    has_timestamps: bool


class _SampleLines(Struct):
    """Lines by family, each labelled metric's together."""

    session_labels: Labels
    lines: dict[_MetricFamily, list[str]] = field(default_factory=dict)

    def add_sample(
        self,
        family: _MetricFamily,
        labels: Labels,
        value: float,
        at_s: float | None = None,
        name_suffix: str = "",
    ) -> None:
        suffix = name_suffix or {"counter": "_total", "info": "_info"}.get(family.metric_type, "")
        every = ",".join(
            f'{name}="{_escape_label(text)}"' for name, text in (*self.session_labels, *labels)
        )
        moment = "" if at_s is None else f" {at_s:.3f}"
        line = f"{family.name}{suffix}{{{every}}} {_sample_value_text(value)}{moment}"
        self.lines.setdefault(family, []).append(line)


def cumulative_run_counters(
    intervals: IntervalTable,
    bins: BinTable,
    counters: CounterTable,
    host_names: Sequence[str],
    *,
    with_timestamps: bool,
    has_values_over_time: bool = True,
) -> RunCounters:
    """One run as counters, at its start and every `STEP_S` of it, or at its end alone.

    `has_values_over_time` is false for a run of which only the sum is known.
    """
    operations = {}
    if len(intervals) and (has_values_over_time or not with_timestamps):
        began = int((intervals.end_real_ns - intervals.span_ns).min())
        ended = int(intervals.end_real_ns.max())
        length = STEP_S * NS_PER_S if with_timestamps else float(ended - began)
        steps = max(math.ceil((ended - began) / length), 1)
        first = 0 if with_timestamps else 1
        row = _interval_step_indexes(intervals.end_real_ns, began, length, steps) + 1 - first
        # Only the moments at which anything was counted: a long gap makes no samples.
        kept, row = np.unique(np.append(row, [0]), return_inverse=True)
        row = row[:-1]
        moments = (kept + first) * length
        times = (began + np.minimum(moments, ended - began)) / NS_PER_S
        of_interval = _bin_row_step_indexes(intervals, bins, row)
        for number in np.unique(intervals.direction).tolist():
            operations[number] = _cumulative_operations(
                intervals, bins, (row, of_interval), number, times
            )
    return RunCounters(
        operations, tuple(_host_counters(counters, host_names, with_timestamps=with_timestamps))
    )


def _interval_step_indexes(ends_ns: Ints, start_ns: int, step_ns: float, step_count: int) -> Ints:
    """In which step each interval ended."""
    which = np.ceil((ends_ns - start_ns) / step_ns).astype(np.int64) - 1
    return np.clip(which, 0, step_count - 1)


def _bin_row_step_indexes(intervals: IntervalTable, bins: BinTable, interval_steps: Ints) -> Ints:
    """The step of each row of bins: that of the interval with its host and number."""
    width = int(max(intervals.seq.max(), bins.seq.max() if len(bins) else 0)) + 1
    keys = intervals.host * width + intervals.seq
    order = np.argsort(keys, kind="stable")
    wanted = bins.host.astype(np.int64) * width + bins.seq.astype(np.int64)
    places = np.searchsorted(keys[order], wanted)
    return interval_steps[order][np.minimum(places, order.size - 1)]


def _cumulative_operations(
    intervals: IntervalTable,
    bins: BinTable,
    interval_and_bin_row_steps: tuple[Ints, Ints],
    operation: int,
    times: Floats,
) -> CumulativeOperations:
    own, binned = intervals.direction == operation, bins.direction == operation

    def running_sum_by_time(values: Any) -> Any:  # noqa: ANN401 - an array of the values' type
        total = np.zeros(times.size, dtype=values.dtype)
        np.add.at(total, interval_and_bin_row_steps[0][own], values)
        return np.cumsum(total)

    buckets = np.zeros((times.size, len(_EDGES_NS) + 1), dtype=np.int64)
    places = _BUCKET_OF_BIN[bins.bin[binned]]
    np.add.at(
        buckets,
        (interval_and_bin_row_steps[1][binned], places),
        bins.count[binned].astype(np.int64),
    )
    return CumulativeOperations(
        times_s=times,
        operation_counts=running_sum_by_time(intervals.ios[own]),
        bytes=running_sum_by_time(intervals.bytes[own]),
        lat_sum_s=running_sum_by_time(intervals.lat_sum_ns[own] / NS_PER_S),
        buckets=np.cumsum(np.cumsum(buckets, axis=0), axis=1),
    )


def _host_counters(
    counters: CounterTable, host_names: Sequence[str], *, with_timestamps: bool
) -> Iterator[HostCounter]:
    for block in counter_blocks(counters, {"cpu": None, "disk": None, "nic": None}):
        host = ("host", host_names[block.host_index])
        times = block.real_ns / NS_PER_S
        kept = (
            _last_sample_indexes_of_steps(times) if with_timestamps else np.array([times.size - 1])
        )
        if block.scope == "cpu":
            for mode in _CPU_MODES:
                cells = block.cells_of_metric(f"{mode}_ns")
                if cells.is_present.any():
                    values = cells.values.sum(axis=0)[kept] / NS_PER_S
                    yield HostCounter(CPU, (host, ("mode", mode)), times[kept], values)
            continue
        for (scope, metric), (family, factor) in _COUNTERS.items():
            if scope != block.scope:
                continue
            cells = block.cells_of_metric(metric)
            for place, name in enumerate(block.names):
                moments = kept[cells.is_present[place][kept]]
                if moments.size:
                    values = cells.values[place][moments] * factor
                    yield HostCounter(family, (host, ("device", name)), times[moments], values)


def _last_sample_indexes_of_steps(times: Floats) -> Ints:
    """Samples of which each is a step after the one before; the last one always."""
    step = np.floor((times - times[0]) / STEP_S)
    last = np.append(np.diff(step) > 0, [True])
    return np.flatnonzero(last)


def openmetrics_document(
    samples_of_sessions: Iterable[Mapping[_MetricFamily, Sequence[str]]],
) -> str:
    """The samples of several sessions, each family's together, with the end that is required."""
    families: dict[_MetricFamily, list[str]] = {}
    for samples in samples_of_sessions:
        for family, lines in samples.items():
            families.setdefault(family, []).extend(lines)
    parts = []
    for family, lines in sorted(families.items(), key=lambda pair: pair[0].name):
        parts.append(f"# TYPE {family.name} {family.metric_type}")
        if family.unit:
            parts.append(f"# UNIT {family.name} {family.unit}")
        parts.append(f"# HELP {family.name} {family.help}")
        parts += lines
    return "\n".join([*parts, "# EOF", ""])


def openmetrics_samples(
    session: SessionDocument,
    planned_run_count: int,
    points: Sequence[PointSummary],
    counters: SessionCounters,
    operation_name_of_run: Callable[[RunResult, int], str],
) -> Mapping[_MetricFamily, Sequence[str]]:
    """Every sample of a session by its family.

    `operation_name_of_run` names the numbers of a result's rows.
    """
    samples = _SampleLines((("session", session.id),))
    results = [result for result, _ in counters.results_and_counters]
    # What has no time of its own stands at the end of an export.
    ends = [
        operation.times_s[-1]
        for _, run in counters.results_and_counters
        for operation in run.operations_by_number.values()
    ]
    at_s = (
        max(ends, default=session.created_real_ns / NS_PER_S) if counters.has_timestamps else None
    )
    about = (("study", session.study), ("scale", session.scale), ("version", session.iolab_version))
    samples.add_sample(SESSION_INFO, about, 1, at_s)
    for status in SessionStatus:
        samples.add_sample(STATUS, (("status", status.value),), session.status is status, at_s)
    samples.add_sample(PLANNED, (), planned_run_count, at_s)
    _add_run_counts(samples, results, at_s)
    for point in points:
        _add_point_gauges(samples, point, at_s)
    _add_operation_counters(samples, counters, operation_name_of_run)
    _add_host_counters(samples, counters)
    return samples.lines


def _add_run_counts(
    samples: _SampleLines, results: Sequence[RunResult], at_s: float | None
) -> None:
    ended: dict[Labels, int] = {}
    objected: dict[Labels, int] = {}
    for result in results:
        end = (("status", result.status.value), ("verdict", result.verdict.level.value))
        ended[end] = ended.get(end, 0) + 1
        for check in result.verdict.objections:
            labels_text = (("check", check.code), ("level", check.level_text))
            objected[labels_text] = objected.get(labels_text, 0) + 1
    for labels, count in ended.items():
        samples.add_sample(RUNS, labels, count, at_s)
    for labels, count in objected.items():
        samples.add_sample(OBJECTIONS, labels, count, at_s)


def _add_point_gauges(samples: _SampleLines, point: PointSummary, at_s: float | None) -> None:
    labels = _point_labels(point.key)
    samples.add_sample(VERDICT, (*labels, ("level", point.verdict_level.value)), 1, at_s)
    for key, metric in point.metrics.items():
        if not is_known_metric(key):
            continue
        spec = metric_spec(key)
        family, factor, more = _family_factor_and_labels(spec)
        if not spec.is_over_window:
            continue
        named = (*labels, *more)
        for estimate, value in _value_and_interval_items(metric):
            samples.add_sample(family, (*named, ("estimate", estimate)), value * factor, at_s)


def _family_factor_and_labels(spec: MetricSpec) -> tuple[_MetricFamily, float, Labels]:
    """The family that has a metric, the factor to its unit, and what tells it from others there."""
    if is_metric_declared_by_load_kind(spec.key) or is_scenario_metric(spec.key):
        return POINT_METRIC, 1.0, (("metric", spec.key), ("unit", spec.unit))
    operation = ("operation", spec.operation or "all")
    if spec.statistic:
        return POINT_LATENCY, 1e-9, (operation, ("statistic", spec.statistic))
    return (BANDWIDTH if spec.unit == "bytes/s" else RATE), 1.0, (operation,)


def _value_and_interval_items(metric: Metric) -> Iterator[tuple[str, float]]:
    every = (("value", metric.value), ("low", metric.low), ("high", metric.high))
    for name, value in every:
        if value is not None and math.isfinite(value):
            yield name, value


def _add_operation_counters(
    samples: _SampleLines,
    counters: SessionCounters,
    operation_name_of_run: Callable[[RunResult, int], str],
) -> None:
    """Counters of each point and operation, which go on from run to run."""
    series: dict[Labels, list[CumulativeOperations]] = {}
    for result, run in counters.results_and_counters:
        key = PointKey(
            result.configuration, result.workload, result.axis_values, result.excluded_hosts
        )
        for number, counted in run.operations_by_number.items():
            named = (*_point_labels(key), ("operation", operation_name_of_run(result, number)))
            series.setdefault(named, []).append(counted)
    for named, runs in series.items():
        runs.sort(key=lambda run: float(run.times_s[0]))
        if counters.has_timestamps:
            _add_timed_operation_counters(samples, named, runs)
        else:
            _add_final_operation_counters(samples, named, runs)


def _add_final_operation_counters(
    samples: _SampleLines, labels: Labels, operations_of_runs: Sequence[CumulativeOperations]
) -> None:
    samples.add_sample(
        OPERATIONS, labels, sum(int(run.operation_counts[-1]) for run in operations_of_runs)
    )
    if moved := sum(int(run.bytes[-1]) for run in operations_of_runs):
        samples.add_sample(BYTES, labels, moved)
    buckets = np.sum([run.buckets[-1] for run in operations_of_runs], axis=0)
    seconds = math.fsum(float(run.lat_sum_s[-1]) for run in operations_of_runs)
    _add_histogram(samples, labels, buckets, seconds, None)


def _add_timed_operation_counters(
    samples: _SampleLines, labels: Labels, operations_of_runs: Sequence[CumulativeOperations]
) -> None:
    operations, moved, seconds = 0, 0, 0.0
    buckets = np.zeros(len(_EDGES_NS) + 1, dtype=np.int64)
    writes = any(int(run.bytes[-1]) for run in operations_of_runs)
    for run in operations_of_runs:
        for row, at_s in enumerate(run.times_s.tolist()):
            samples.add_sample(
                OPERATIONS, labels, operations + int(run.operation_counts[row]), at_s
            )
            if writes:
                samples.add_sample(BYTES, labels, moved + int(run.bytes[row]), at_s)
            total = buckets + run.buckets[row]
            _add_histogram(samples, labels, total, seconds + float(run.lat_sum_s[row]), at_s)
        operations += int(run.operation_counts[-1])
        moved += int(run.bytes[-1])
        seconds += float(run.lat_sum_s[-1])
        buckets = buckets + run.buckets[-1]


def _add_histogram(
    samples: _SampleLines, labels: Labels, buckets: Ints, seconds: float, at_s: float | None
) -> None:
    if not int(buckets[-1]):
        return  # an engine may count what it does not time
    for edge, count in zip((*_EDGES_NS, math.inf), buckets.tolist(), strict=True):
        limit = "+Inf" if math.isinf(edge) else repr(edge / NS_PER_S)
        samples.add_sample(LATENCY, (*labels, ("le", limit)), count, at_s, "_bucket")
    samples.add_sample(LATENCY, labels, int(buckets[-1]), at_s, "_count")
    samples.add_sample(LATENCY, labels, seconds, at_s, "_sum")


def _add_host_counters(samples: _SampleLines, counters: SessionCounters) -> None:
    """Counters of hosts as their kernels have them; without times the newest ones."""
    series: dict[tuple[_MetricFamily, Labels], list[HostCounter]] = {}
    for _, run in counters.results_and_counters:
        for host in run.hosts:
            series.setdefault((host.family, host.labels), []).append(host)
    for (family, labels), parts in series.items():
        parts.sort(key=lambda part: float(part.times_s[0]))
        if not counters.has_timestamps:
            samples.add_sample(family, labels, float(parts[-1].values[-1]))
            continue
        last_s = -math.inf
        for part in parts:
            for at_s, value in zip(part.times_s.tolist(), part.values.tolist(), strict=True):
                if at_s > last_s:  # a clock that was set back tells nothing new
                    samples.add_sample(family, labels, value, at_s)
                    last_s = at_s


def _point_labels(point_key: PointKey) -> Labels:
    return (
        ("configuration", point_key.configuration),
        ("workload", point_key.workload),
        ("point", axis_values_text(point_key.axis_values)),
    )


def _escape_label(text: str) -> str:
    return escape_invisible(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _sample_value_text(value: float) -> str:
    return (
        str(int(value))
        if float(value).is_integer() and abs(value) < 1 << 53
        else repr(float(value))
    )
