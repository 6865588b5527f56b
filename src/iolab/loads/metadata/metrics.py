"""What the hosts did in each phase of metadata load: plain sums for each host and operation.

A phase is one operation on all ranks of all hosts; phases follow each other and are never added up.
The *common window* of a phase is the time in which every rank of every host worked, on the
controller's clock: from the latest start of a rank to the earliest end of one. Only intervals that
lie wholly inside count for a rate. Latencies are those of the whole phase: each operation was
counted once, and the hosts told the exact extremes of all.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from iolab.analysis.metrics import latency_statistics, metrics_or_unknown_by_key
from iolab.analysis.sums import OperationSums, sum_operations
from iolab.analysis.view import RunView
from iolab.analysis.window import EDGE_SLACK_NS, Mask, Window, intersect_windows
from iolab.core.bins import LATENCY_NAMES
from iolab.core.histogram import Histogram
from iolab.core.metric import Metric
from iolab.core.run import HostRun, RunRecord
from iolab.core.samples import Floats, Ints
from iolab.loads.metadata.workload import (
    FILE_OPERATIONS,
    MetadataJob,
    MetadataOperation,
    OperationRun,
    ReportedRate,
    operation_runs_of_host,
    reported_rates_of_run,
)
from iolab.record import Record

EDGE_SHARE: Final = 0.05
"""How far an interval may stick out of the window as a share of it, where that is less than the
slack of runs of I/O: phases may be shorter than that slack."""

METADATA_KEYS: Final = tuple(
    key
    for operation in MetadataOperation
    for key in (
        *((operation.rate_key,) if operation in FILE_OPERATIONS else ()),
        operation.phase_rate_key,
        *(operation.latency_key(name) for name in LATENCY_NAMES),
    )
)
"""Every metric of a metadata result, in the order in which they are shown."""


class MetadataPhaseSums(Record):
    """One operation on H hosts.

    `operation_runs` is what each host told, None where it did not come to the phase. `span` reaches
    from the first rank's start to the last one's end, `common_window` is the time that all ranks of
    all hosts shared; both are None where a host told no times, `common_window` also where there is
    none. `completed_in_window` (H,) operations ended in `window_seconds` (H,) of intervals within
    the common window; without one within the host's own. `completed_by_host` (H,), `lat_sum_ns`
    (H,) and `bins` (H, BIN_COUNT) are of the whole phase.
    """

    operation: MetadataOperation
    operation_runs: tuple[OperationRun | None, ...]
    span: Window | None
    common_window: Window | None
    completed_in_window: Ints
    window_seconds: Floats
    completed_by_host: Ints
    lat_sum_ns: Floats
    bins: Ints

    @property
    def has_common_window(self) -> bool:
        """Whether every host has an interval in the common window, so that rates may be added."""
        return self.common_window is not None and bool((self.window_seconds > 0).all())

    @property
    def completed_count(self) -> int:
        """Operations that all hosts together completed."""
        return sum(run.completed for run in self.operation_runs if run is not None)

    @property
    def failed_count(self) -> int:
        """Operations that failed on any host."""
        return sum(n for run in self.operation_runs if run is not None for _, n in run.errors)

    def histogram(self, host_indexes: list[int]) -> Histogram:
        """The latencies of those hosts merged bin by bin, with the extremes they told."""
        done = [
            run
            for host in host_indexes
            if (run := self.operation_runs[host]) is not None and run.completed
        ]
        lows = [run.lat_min_ns for run in done if run.lat_min_ns is not None]
        highs = [run.lat_max_ns for run in done if run.lat_max_ns is not None]
        complete = bool(done) and len(lows) == len(highs) == len(done)
        return Histogram(
            self.bins[host_indexes].sum(axis=0),
            min(lows) if complete else None,
            max(highs) if complete else None,
        )


class MetadataSums(Record):
    """All phases of a run in their order, those that no host came to left out."""

    phases: tuple[MetadataPhaseSums, ...]

    @property
    def file_phases(self) -> tuple[MetadataPhaseSums, ...]:
        """The phases in which each rank works on many files."""
        return tuple(phase for phase in self.phases if phase.operation in FILE_OPERATIONS)

    @property
    def shortest_common_window_s(self) -> float:
        """The shortest common window of the phases on files; 0 where one of them has none."""
        windows = [
            phase.common_window.seconds if phase.common_window else 0.0
            for phase in self.file_phases
        ]
        return min(windows, default=0.0)

    def span(self) -> Window | None:
        """From the first phase's start to the last one's end; None where no times are known."""
        spans = [phase.span for phase in self.phases if phase.span is not None]
        if not spans:
            return None
        return Window(min(w.start_ns for w in spans), max(w.end_ns for w in spans))


def sum_metadata_phases(record: RunRecord) -> MetadataSums:
    """The sums of every phase of a record."""
    named = {
        operation: tuple(_operation_run(host, operation) for host in record.hosts)
        for operation in MetadataOperation
    }
    phases = {operation: runs for operation, runs in named.items() if any(runs)}
    every = np.ones(len(record.intervals), dtype=bool)
    sums = sum_operations(record, list(phases), every, record.bins.bin_groups())
    return MetadataSums(
        tuple(
            _sums_of_phase(record, operation, runs, sums, place)
            for place, (operation, runs) in enumerate(phases.items())
        )
    )


def _operation_run(host: HostRun, operation: MetadataOperation) -> OperationRun | None:
    return next((run for run in operation_runs_of_host(host) if run.operation is operation), None)


def all_ranks_busy_windows(
    operation_runs: tuple[OperationRun | None, ...], hosts: tuple[HostRun, ...]
) -> tuple[Window | None, ...]:
    """When all ranks of each host worked, on the controller's clock.

    It is empty or turned around (end before start) where a host's ranks never worked all at once;
    None where the host told no times.
    """
    return tuple(
        _window_on_controller_clock(run.last_start_real_ns, run.first_end_real_ns, host)
        if run
        else None
        for run, host in zip(operation_runs, hosts, strict=True)
    )


def any_rank_busy_windows(
    operation_runs: tuple[OperationRun | None, ...], hosts: tuple[HostRun, ...]
) -> tuple[Window | None, ...]:
    """Each host's first rank's start and last rank's end, on the controller's clock."""
    return tuple(
        _window_on_controller_clock(run.first_start_real_ns, run.last_end_real_ns, host)
        if run
        else None
        for run, host in zip(operation_runs, hosts, strict=True)
    )


def _window_on_controller_clock(
    start_ns: int | None, end_ns: int | None, host: HostRun
) -> Window | None:
    """Between two moments of the host's clock, on the controller's; None where one is not told."""
    if start_ns is None or end_ns is None:
        return None
    return Window(start_ns - host.clock_offset_ns, end_ns - host.clock_offset_ns)


def _sums_of_phase(
    record: RunRecord,
    operation: MetadataOperation,
    operation_runs: tuple[OperationRun | None, ...],
    operation_sums: OperationSums,
    operation_index: int,
) -> MetadataPhaseSums:
    """One phase; `operation_index` is that of its operation in the sums of the whole run."""
    table, count = record.intervals, len(record.hosts)
    own = all_ranks_busy_windows(operation_runs, record.hosts)
    common = intersect_windows(own)
    rows = np.flatnonzero(table.direction == int(operation))
    rows = rows[_mask_of_rows_in_window(record, rows, own, common)]
    seconds, inside = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    np.add.at(seconds, table.host[rows], table.span_ns[rows])
    np.add.at(inside, table.host[rows], table.ios[rows])
    return MetadataPhaseSums(
        operation=operation,
        operation_runs=operation_runs,
        span=_enclosing_window(any_rank_busy_windows(operation_runs, record.hosts)),
        common_window=common,
        completed_in_window=inside,
        window_seconds=np.asarray(seconds / 1e9, dtype=np.float64),
        completed_by_host=operation_sums.completed[:, operation_index],
        lat_sum_ns=operation_sums.lat_sum_ns[:, operation_index],
        bins=operation_sums.bins[:, operation_index],
    )


def _enclosing_window(windows: tuple[Window | None, ...]) -> Window | None:
    timed = [window for window in windows if window is not None]
    if not timed or len(timed) < len(windows):
        return None
    return Window(min(w.start_ns for w in timed), max(w.end_ns for w in timed))


def _mask_of_rows_in_window(
    record: RunRecord,
    row_indexes: Ints,
    host_windows: tuple[Window | None, ...],
    common_window: Window | None,
) -> Mask:
    """Which of the rows lie in the common window, or without one in their own host's."""
    table = record.intervals
    windows = host_windows if common_window is None else (common_window,) * len(host_windows)
    low = np.array([0 if w is None else w.start_ns for w in windows], dtype=np.int64)
    high = np.array([0 if w is None else w.end_ns for w in windows], dtype=np.int64)
    slack = np.clip((high - low) * EDGE_SHARE, 0, EDGE_SLACK_NS).astype(np.int64)
    offsets = np.array([host.clock_offset_ns for host in record.hosts], dtype=np.int64)
    host = table.host[row_indexes]
    ends = table.end_real_ns[row_indexes] - offsets[host]
    starts = ends - table.span_ns[row_indexes]
    fits = (starts >= (low - slack)[host]) & (ends <= (high + slack)[host])
    return np.asarray(fits)


def metadata_metrics(record: RunRecord, metadata_sums: MetadataSums) -> dict[str, Metric]:
    """The metrics of all hosts together; where there are no phases those that the engine printed.

    A rate over the common window has no value where a host has no whole interval in it.
    """
    hosts = list(range(len(record.hosts)))
    values: dict[str, float | None] = {}
    for reported in reported_rates_of_run(record):
        values[reported.operation.phase_rate_key] = _plausible_rate_or_none(reported)
    for phase in metadata_sums.phases:
        if phase.has_common_window:
            values[phase.operation.rate_key] = float(
                (phase.completed_in_window / phase.window_seconds).sum()
            )
        values[phase.operation.phase_rate_key] = _rate_over_window(
            phase.completed_count, phase.span
        )
        values |= _phase_latencies(phase, hosts)
    return metrics_or_unknown_by_key(METADATA_KEYS, values)


def metadata_host_metrics(metadata_sums: MetadataSums, host_index: int) -> dict[str, Metric]:
    """The metrics of one host: over the window that all share, where there is one."""
    values: dict[str, float | None] = {}
    for phase in metadata_sums.phases:
        run, seconds = phase.operation_runs[host_index], float(phase.window_seconds[host_index])
        if run is None:
            continue
        if seconds > 0:
            values[phase.operation.rate_key] = (
                float(phase.completed_in_window[host_index]) / seconds
            )
        if run.first_start_real_ns is not None and run.last_end_real_ns is not None:
            span = Window(run.first_start_real_ns, run.last_end_real_ns)
            values[phase.operation.phase_rate_key] = _rate_over_window(run.completed, span)
        values |= _phase_latencies(phase, [host_index])
    return metrics_or_unknown_by_key(METADATA_KEYS, values)


def _plausible_rate_or_none(reported: ReportedRate) -> float | None:
    """A printed rate; one below zero or not finite is none."""
    return reported.ops_per_s if 0 <= reported.ops_per_s < float("inf") else None


def _rate_over_window(operation_count: int, span: Window | None) -> float | None:
    return None if span is None or span.end_ns <= span.start_ns else operation_count / span.seconds


def _phase_latencies(phase: MetadataPhaseSums, host_indexes: list[int]) -> dict[str, float | None]:
    waited, total = (
        float(phase.lat_sum_ns[host_indexes].sum()),
        int(phase.completed_by_host[host_indexes].sum()),
    )
    values = latency_statistics(phase.histogram(host_indexes), waited, total)
    return {phase.operation.latency_key(name): value for name, value in values.items()}


class MetadataView(RunView, kw_only=True):
    """With what its phases did; `load` is empty but for its cut and its seconds."""

    metadata_sums: MetadataSums

    @property
    def metadata_job(self) -> MetadataJob:
        """What each host was asked to do; TypeError for any other load."""
        return MetadataJob.require_type(self.record.run.point.job)

    @property
    def has_measured_load(self) -> bool:
        """Whether any operation was done, or its engine printed a rate."""
        return any(phase.completed_count for phase in self.metadata_sums.phases) or bool(
            reported_rates_of_run(self.record)
        )

    def measured_window(self, host_index: int) -> Window | None:  # noqa: ARG002 - phases are of all hosts
        """All phases with what is between them; where the engine tells no times, the whole run."""
        record = self.record
        return self.metadata_sums.span() or Window(record.started_real_ns, record.ended_real_ns)
