"""Metadata load as readers see it: mdtest's summary with latencies, each run, each host.

Rates are of one operation each; nothing here adds or averages over operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from iolab.analyse.iterations import (
    OperationStatistics,
    PointStatistics,
    is_metadata,
    point_statistics,
)
from iolab.analyse.key_value.summary import is_key_value
from iolab.analyse.metadata.phases import FILE_OPERATIONS
from iolab.analyse.metadata.summary import latency_key, rate_key, whole_key
from iolab.model.metadata import MetadataJob, Operation
from iolab.model.metric import Metric, Result
from iolab.model.study import Study
from iolab.model.workload import Workload
from iolab.report.detail import RunKey
from iolab.report.table import Cell, Column, Table, columns, row, verdict_cell
from iolab.report.wording import NOTHING, axis_label, count, show, show_value
from iolab.units import format_bytes, format_duration_s

NAMES: Final[Mapping[Operation, str]] = {
    Operation.TREE_CREATE: "Tree create",
    Operation.FILE_CREATE: "File create",
    Operation.FILE_STAT: "File stat",
    Operation.FILE_READ: "File read",
    Operation.FILE_REMOVE: "File remove",
    Operation.TREE_REMOVE: "Tree remove",
}
"""The operations for people."""

OVER_WINDOW: Final = "window"
OVER_WHOLE: Final = "whole phase"

RATE_NOTE: Final = (
    "Operations a second. “window”: over the time in which all ranks of all hosts worked; “whole "
    "phase”: from the first rank’s start to the last one’s end, as mdtest counts. Latencies are of "
    "the median iteration."
)

_TAIL: Final = (("p50", "p50"), ("p99", "p99"), ("p99_9", "p99.9"))
"""The latencies of the summary: (name in a metric's key, heading)."""


def split(results: Sequence[Result]) -> tuple[list[Result], list[Result], list[Result]]:
    """(results of I/O, of metadata load, of load on key-value stores), each in their order."""
    metadata = [result for result in results if is_metadata(result)]
    keys = [result for result in results if is_key_value(result)]
    io = [r for r in results if not is_metadata(r) and not is_key_value(r)]
    return io, metadata, keys


def run_rate(result: Result, operation: Operation) -> Metric:
    """The rate of a run's operation over the common window, else over the whole phase."""
    for key in (rate_key(operation), whole_key(operation)):
        metric = result.metrics.get(key)
        if metric is not None and metric.value is not None:
            return metric
    return Metric(None, "ops/s")


def host_rate_keys(result: Result) -> tuple[str, ...]:
    """For each operation on files the rate that all hosts have: over the window, else the whole.

    Hosts of one column are counted alike, so that the slowest among them is the slowest.
    """
    return tuple(
        rate_key(operation) if _all_have(result, rate_key(operation)) else whole_key(operation)
        for operation in FILE_OPERATIONS
    )


def _all_have(result: Result, key: str) -> bool:
    found = [host.metrics.get(key) for host in result.hosts]
    return all(metric is not None and metric.value is not None for metric in found)


def brief_rates(result: Result) -> str:
    """A run in a line: the rate of each operation on files."""
    told = (
        f"{operation.key.removeprefix('file_')} {show(run_rate(result, operation), bare_rate=True)}"
        for operation in FILE_OPERATIONS
    )
    return f"{', '.join(told)} ops/s"


def over(one: OperationStatistics) -> str:
    """What the rate is taken over, in a word or two."""
    return OVER_WINDOW if one.over_window else OVER_WHOLE


def point_name(point: PointStatistics, study: Study) -> str:
    """A point for people: configuration where there are several, axis, hosts that are missing."""
    titles = {one.id: one.title for one in study.configurations}
    parts = [titles.get(point.configuration, point.configuration)] if len(titles) > 1 else []
    parts += [axis_label(point.axis)] if point.axis else []
    parts += [f"without {', '.join(point.without)}"] if point.without else []
    return ", ".join(parts)


def iterations_told(point: PointStatistics) -> str:
    """`3 iterations`, and how many did not count."""
    left_out = f", {point.left_out} not done and left out" if point.left_out else ""
    return f"{count(len(point.results), 'iteration')}{left_out}"


def summary_table(
    points: Sequence[PointStatistics], study: Study, anchors: Mapping[RunKey, str]
) -> Table:
    """Max, Min, Mean and Std Dev of each operation, its latencies, and the worst verdict."""
    named = any(point_name(point, study) for point in points)
    heads = (
        *columns(("Operation", *(("Point",) if named else ()), "Verdict", "Rate over")),
        *columns((), ("Max", "Min", "Mean", "Std Dev", "n")),
        *columns((), tuple(heading for _, heading in (("mean", "Latency mean"), *_TAIL))),
    )
    rows = tuple(
        (
            Cell(NAMES[one.operation]),
            *((Cell(point_name(point, study) or NOTHING),) if named else ()),
            verdict_cell(one.level, anchors.get((one.shown.digest, one.shown.repeat))),
            Cell(over(one)),
            *(Cell(rate_text(value)) for value in rates_of(one)),
            Cell(str(one.n)),
            *(Cell(show(one.latencies.get(name))) for name in ("mean", *(n for n, _ in _TAIL))),
        )
        for point in points
        for one in point.operations
    )
    return Table("Operations over the iterations", heads, rows)


def rates_of(one: OperationStatistics) -> tuple[float | None, ...]:
    """Max, Min, Mean, Std Dev."""
    return one.maximum, one.minimum, one.mean, one.std_dev


def rate_text(value: float | None) -> str:
    """A rate of a table whose heading or note says that it is in operations a second."""
    return NOTHING if value is None else show_value(value, "ops/s", bare_rate=True)


def runs_table(
    study: Study, results: Sequence[Result], anchors: Mapping[RunKey, str]
) -> Table | None:
    """One row a run of metadata load; None where there is none."""
    _, found, _ = split(results)
    if not found:
        return None
    several = len(study.configurations) > 1
    names = ("Workload", *(("Configuration",) if several else ()), "Verdict")
    numbers = ("Repeat", *(NAMES[operation] for operation in Operation), "Window")
    rows = tuple(
        (
            Cell(", ".join(part for part in (result.workload, axis_label(result.axis)) if part)),
            *((Cell(result.configuration),) if several else ()),
            verdict_cell(result.verdict.level, anchors.get((result.digest, result.repeat))),
            Cell(str(result.repeat)),
            *(Cell(show(run_rate(result, operation), bare_rate=True)) for operation in Operation),
            Cell(format_duration_s(result.window_s) if result.window_s else NOTHING),
        )
        for result in found
    )
    return Table("Every run of metadata load", (*columns(names, numbers),), rows)


def share_table(result: Result) -> Table:
    """Each host's share of a run of metadata load: rate and p99 of each operation on files."""
    heads = tuple(
        heading
        for operation in FILE_OPERATIONS
        for heading in (NAMES[operation], f"{NAMES[operation]} p99")
    )
    rates = host_rate_keys(result)
    rows = tuple(
        (
            Cell(host.name),
            *(
                Cell(show(host.metrics.get(key), bare_rate=True))
                for rate, operation in zip(rates, FILE_OPERATIONS, strict=True)
                for key in (rate, latency_key(operation, "p99"))
            ),
            verdict_cell(result.verdict.level),
        )
        for host in result.hosts
    )
    return Table("Each host's share", (*columns(("Host",), heads), Column("Verdict")), rows)


def jobs_table(study: Study) -> Table | None:
    """The metadata workloads of a study; None where it has none."""
    found = [
        (workload, job)
        for workload in study.workloads
        if isinstance(job := workload.job, MetadataJob)
    ]
    if not found:
        return None
    texts = ("Workload", "Engine", "Ranks a client", "Files a rank", "File", "Rank shift")
    rows = tuple(_job_row(workload, job, study) for workload, job in found)
    return Table("Metadata workloads", columns((*texts, "Iterations", "Further options")), rows)


def _job_row(workload: Workload, job: MetadataJob, study: Study) -> tuple[Cell, ...]:
    swept = {axis.name: ", ".join(str(value) for value in axis.values) for axis in workload.sweep}
    return row(
        workload.title,
        job.engine.value,
        swept.get("ranks", f"{job.ranks:,}"),
        swept.get("files_per_rank", f"{job.files_per_rank:,}"),
        format_bytes(job.file_bytes) if job.file_bytes else "empty",
        swept.get("rank_shift", f"{job.rank_shift:,}"),
        str(workload.repeats or study.method.repeats),
        " ".join(f"{name}={value}" for name, value in job.options) or NOTHING,
    )


def iterations_document(results: Sequence[Result]) -> list[dict[str, Any]]:
    """The statistics over iterations as `show --json` prints them."""
    return [
        {
            "configuration": point.configuration,
            "workload": point.workload,
            "axis": dict(point.axis),
            "digest": point.digest,
            "without": list(point.without),
            "left_out": point.left_out,
            "operations": [_operation(one) for one in point.operations],
        }
        for point in point_statistics(results)
    ]


def _operation(one: OperationStatistics) -> dict[str, Any]:
    return {
        "operation": one.operation.word,
        "metric": one.metric,
        "n": one.n,
        "max": one.maximum,
        "min": one.minimum,
        "mean": one.mean,
        "std_dev": one.std_dev,
        "median_repeat": one.shown.repeat,
        "latencies_ns": {name: metric.value for name, metric in one.latencies.items()},
        "verdict": one.level.value,
    }


def summary_lines(points: Sequence[PointStatistics], study: Study) -> Iterator[list[str]]:
    """Heading and rows of the summary as plain text, for exports."""
    table = summary_table(points, study, {})
    yield [column.title for column in table.columns]
    for cells in table.rows:
        yield [cell.text for cell in cells]
