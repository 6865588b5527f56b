"""The metrics of a metadata run: rates and latencies of each operation by itself.

A fleet's rate is the sum of its hosts' rates within the common window of the phase. Beside it
stands the rate of the whole phase, all operations over the time from the first rank's start to the
last rank's end: what mdtest prints, and all that a phase has that is shorter than an interval.
Percentiles come from histograms merged bin by bin. Nothing is added or averaged over operations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from iolab.analyse.metadata.phases import FILE_OPERATIONS, MetadataLoad, PhaseLoad
from iolab.analyse.percentiles import PERCENTILES, is_supported
from iolab.analyse.summary import NANOSECONDS
from iolab.analyse.window import Window
from iolab.model.metadata import Operation, ReportedRate
from iolab.model.metric import Metric
from iolab.model.run import RunRecord

OPS_PER_SECOND: Final = "ops/s"

_LATENCIES: Final = ("lat_ns_mean", *(f"lat_ns_{name}" for name, _ in PERCENTILES), "lat_ns_max")


def rate_key(operation: Operation) -> str:
    """The metric of the rate over the common window; only operations on files have it."""
    return f"{operation.key}_ops_per_s"


def whole_key(operation: Operation) -> str:
    """The metric of the rate over the whole phase."""
    return f"{operation.key}_ops_per_s_whole"


def latency_key(operation: Operation, name: str) -> str:
    """The metric of a latency: `mean`, `p50` … `p99_99`, or `max`."""
    return f"{operation.key}_lat_ns_{name}"


def _units(operation: Operation) -> dict[str, str]:
    rates = [rate_key(operation)] if operation in FILE_OPERATIONS else []
    return {
        **dict.fromkeys((*rates, whole_key(operation)), OPS_PER_SECOND),
        **{f"{operation.key}_{name}": NANOSECONDS for name in _LATENCIES},
    }


METADATA_UNITS: Final[Mapping[str, str]] = {
    key: unit for operation in Operation for key, unit in _units(operation).items()
}
"""Every metric key of a metadata result and its unit, in the order in which they are shown."""


def metadata_metrics(record: RunRecord, load: MetadataLoad) -> dict[str, Metric]:
    """The metrics of all hosts together; where there are no phases those that the engine printed.

    A rate over the common window has no value where a host has no whole interval in it.
    """
    hosts = list(range(len(record.hosts)))
    values: dict[str, float | None] = {}
    for told in record.reported:
        values[whole_key(told.operation)] = _plausible(told)
    for phase in load.phases:
        if phase.shared:
            values[rate_key(phase.operation)] = float((phase.inside / phase.seconds).sum())
        values[whole_key(phase.operation)] = _over(phase.done, phase.whole)
        values |= _latencies(phase, hosts)
    return _named(values)


def metadata_host_metrics(load: MetadataLoad, host: int) -> dict[str, Metric]:
    """The metrics of one host: over the window that all share, where there is one."""
    values: dict[str, float | None] = {}
    for phase in load.phases:
        run, seconds = phase.runs[host], float(phase.seconds[host])
        if run is None:
            continue
        if seconds > 0:
            values[rate_key(phase.operation)] = float(phase.inside[host]) / seconds
        if run.first_start_real_ns is not None and run.last_end_real_ns is not None:
            whole = Window(run.first_start_real_ns, run.last_end_real_ns)
            values[whole_key(phase.operation)] = _over(run.done, whole)
        values |= _latencies(phase, [host])
    return _named(values)


def _named(values: Mapping[str, float | None]) -> dict[str, Metric]:
    return {key: Metric(values.get(key), unit) for key, unit in METADATA_UNITS.items()}


def _plausible(told: ReportedRate) -> float | None:
    """A printed rate; one below zero or not finite is none."""
    return told.ops_per_s if 0 <= told.ops_per_s < float("inf") else None


def _over(done: int, whole: Window | None) -> float | None:
    return None if whole is None or whole.end_ns <= whole.start_ns else done / whole.seconds


def _latencies(phase: PhaseLoad, hosts: list[int]) -> dict[str, float | None]:
    histogram, total = phase.histogram(hosts), int(phase.ops[hosts].sum())
    values: dict[str, float | None] = {
        name: histogram.percentile_ns(percent) if is_supported(histogram.total, percent) else None
        for name, percent in PERCENTILES
    }
    values["mean"] = float(phase.lat_sum_ns[hosts].sum()) / total if total else None
    values["max"] = None if histogram.max_ns is None else float(histogram.max_ns)
    return {latency_key(phase.operation, name): value for name, value in values.items()}
