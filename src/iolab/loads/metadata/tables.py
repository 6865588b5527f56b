"""Metadata load as readers see it: mdtest's summary with latencies, each run, each host.

Rates are of one operation each; nothing here adds or averages over operations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from iolab.core.metric import Metric, RunResult, VerdictLevel
from iolab.core.study import Study
from iolab.core.workload import Workload
from iolab.loads.metadata.iterations import (
    OperationStatistics,
    PointStatistics,
    statistics_of_points,
)
from iolab.loads.metadata.workload import FILE_OPERATIONS, MetadataJob, MetadataOperation
from iolab.report.numbers import DASH, axis_values_text, metric_value_text, value_text
from iolab.report.table import (
    Cell,
    Column,
    Table,
    row_of_cells,
    text_and_number_columns,
    verdict_cell,
)
from iolab.text import counted_noun
from iolab.units import format_bytes

if TYPE_CHECKING:
    from iolab.report.charts.series import RunAnchors

OPERATION_NAMES: Final[Mapping[MetadataOperation, str]] = {
    MetadataOperation.TREE_CREATE: "Tree create",
    MetadataOperation.FILE_CREATE: "File create",
    MetadataOperation.FILE_STAT: "File stat",
    MetadataOperation.FILE_READ: "File read",
    MetadataOperation.FILE_REMOVE: "File remove",
    MetadataOperation.TREE_REMOVE: "Tree remove",
}
"""The operations for people."""

OVER_WINDOW: Final = "window"
OVER_WHOLE: Final = "whole phase"

_WINDOW_NOTES: Final = (
    (OVER_WINDOW, "“window”: over the time in which all ranks of all hosts worked"),
    (
        OVER_WHOLE,
        "“whole phase”: from the first rank’s start to the last one’s end, as mdtest counts",
    ),
)

_TAIL: Final = (("p50", "p50"), ("p99", "p99"), ("p99_9", "p99.9"))
"""The latencies of the summary: (name in a metric's key, heading)."""

POINT_HEADING: Final = "Point"
ITERATIONS_HEADING: Final = "n"


def rates_and_latencies_note(table: Table) -> str:
    """What the rates and latencies of a table are of; nothing of what it has not."""
    texts = {cell.text for row in table.rows for cell in row}
    windows = [note for name, note in _WINDOW_NOTES if name in texts]
    parts = ("Operations a second", *windows)
    return f"{'; '.join(parts)}. Latencies are of each operation’s own median iteration."


def window_or_phase_rate_of_run(result: RunResult, operation: MetadataOperation) -> Metric:
    """The rate of a run's operation over the common window, else over the whole phase."""
    for key in (operation.rate_key, operation.phase_rate_key):
        metric = result.metrics.get(key)
        if metric is not None and metric.value is not None:
            return metric
    return Metric(None, "ops/s")


def window_or_phase_rate_key(
    metrics_to_compare: Sequence[Mapping[str, Metric]], operation: MetadataOperation
) -> str:
    """The rate that all have who did the operation: over the window, else over the whole phase.

    What stands in one column is counted alike, so that the slowest in it is the slowest.
    """
    keys = (operation.rate_key, operation.phase_rate_key)
    present = [{key for key in keys if _has_value(metric, key)} for metric in metrics_to_compare]
    windowed = operation in FILE_OPERATIONS and all(keys[0] in own for own in present if own)
    return keys[0] if windowed else keys[1]


def file_operation_host_rate_keys(result: RunResult) -> tuple[str, ...]:
    """The rate of each operation on files by which hosts are set side by side."""
    hosts = [host.metrics for host in result.hosts]
    return tuple(window_or_phase_rate_key(hosts, operation) for operation in FILE_OPERATIONS)


def _has_value(metrics: Mapping[str, Metric], metric_key: str) -> bool:
    return metric_key in metrics and metrics[metric_key].value is not None


def file_operation_rates_line(result: RunResult) -> str:
    """A run in a line: the rate of each operation on files."""
    rates = []
    for operation in FILE_OPERATIONS:
        rate = window_or_phase_rate_of_run(result, operation)
        text = metric_value_text(rate, is_rate_unit_omitted=True)
        rates.append(f"{operation.key.removeprefix('file_')} {text}")
    return f"{', '.join(rates)} ops/s"


def rate_window_text(statistics: OperationStatistics) -> str:
    """What the rate is taken over, in a word or two."""
    return OVER_WINDOW if statistics.is_over_common_window else OVER_WHOLE


def point_label(point: PointStatistics, study: Study) -> str:
    """A point for people: configuration where there are several, axis, hosts that are missing."""
    titles = study.configuration_titles
    parts = [titles.get(point.configuration, point.configuration)] if len(titles) > 1 else []
    parts += [axis_values_text(point.axis_values)] if point.axis_values else []
    parts += [f"without {', '.join(point.excluded_hosts)}"] if point.excluded_hosts else []
    return ", ".join(parts)


def iteration_and_left_out_counts_text(point: PointStatistics) -> str:
    """`3 iterations`, and how many did not count."""
    left_out = f", {point.left_out_count} not done and left out" if point.left_out_count else ""
    return f"{counted_noun(len(point.results), 'iteration')}{left_out}"


def iteration_summary_table(
    points: Sequence[PointStatistics], study: Study, anchors: RunAnchors
) -> Table:
    """Max, Min, Mean and Std Dev of each operation, its latencies, and the worst verdict."""
    named = any(point_label(point, study) for point in points)
    heads = (
        *text_and_number_columns(("Operation", *((POINT_HEADING,) if named else ()), "Verdict")),
        Column("Rate over", is_optional=True),
        *text_and_number_columns((), ("Max", "Min", "Arithmetic mean", "Std Dev")),
        Column(ITERATIONS_HEADING, is_number=True, is_optional=True),
        *(
            Column(heading, is_number=True, is_optional=heading != "p99")
            for heading in ("Latency mean", *(heading for _, heading in _TAIL))
        ),
    )
    rows = tuple(
        row_of_cells(
            OPERATION_NAMES[operation.operation],
            *((point_label(point, study) or DASH,) if named else ()),
            verdict_cell(
                operation.verdict_level,
                anchors.get((operation.median_result.digest, operation.median_result.repeat)),
            ),
            rate_window_text(operation),
            *max_min_mean_std_dev_texts(operation),
            str(operation.iteration_count),
            *(
                metric_value_text(operation.median_result_latencies.get(name))
                for name in ("mean", *(n for n, _ in _TAIL))
            ),
        )
        for point in points
        for operation in point.operations
    )
    return Table("Operations over the iterations", heads, rows)


def max_min_mean_std_dev_texts(statistics: OperationStatistics) -> tuple[str, ...]:
    """Max, Min, Mean, Std Dev in words; what is invalid has neither mean nor deviation."""
    spread = (
        DASH
        if statistics.verdict_level is VerdictLevel.INVALID
        else rate_text_without_unit(statistics.std_dev)
    )
    return (
        rate_text_without_unit(statistics.maximum),
        rate_text_without_unit(statistics.minimum),
        mean_rate_or_dash_text(statistics),
        spread,
    )


def mean_rate_or_dash_text(statistics: OperationStatistics) -> str:
    """The mean of an operation that is not invalid."""
    return (
        DASH
        if statistics.verdict_level is VerdictLevel.INVALID
        else rate_text_without_unit(statistics.mean)
    )


def rate_text_without_unit(value: float | None) -> str:
    """A rate of a table whose heading or note says that it is in operations a second."""
    return DASH if value is None else value_text(value, "ops/s", is_rate_unit_omitted=True)


def operation_metric_columns(
    metrics_of_runs: Sequence[Mapping[str, Metric]],
) -> list[tuple[str, str]]:
    """The rate of each operation, of those on files with its p99 where any has that."""
    shown = []
    for operation in MetadataOperation:
        shown.append(
            (window_or_phase_rate_key(metrics_of_runs, operation), OPERATION_NAMES[operation])
        )
        tail = operation.latency_key("p99")
        if operation in FILE_OPERATIONS and any(_has_value(each, tail) for each in metrics_of_runs):
            shown.append((tail, f"{OPERATION_NAMES[operation]} p99"))
    return shown


def jobs_table(study: Study) -> Table | None:
    """The metadata workloads of a study; None where it has none."""
    jobs = [
        (workload, job)
        for workload in study.workloads
        if isinstance(job := workload.job, MetadataJob)
    ]
    if not jobs:
        return None
    texts = ("Workload", "Engine", "Ranks a client", "Files a rank", "File", "Rank shift")
    rows = tuple(_job_row(workload, job, study) for workload, job in jobs)
    return Table(
        "Metadata workloads",
        text_and_number_columns((*texts, "Iterations", "Further options")),
        rows,
    )


def _job_row(workload: Workload, job: MetadataJob, study: Study) -> tuple[Cell, ...]:
    swept = workload.axis_values_texts
    return row_of_cells(
        workload.title,
        job.engine,
        swept.get("ranks", f"{job.ranks:,}"),
        swept.get("files_per_rank", f"{job.files_per_rank:,}"),
        format_bytes(job.file_bytes) if job.file_bytes else "empty",
        swept.get("rank_shift", f"{job.rank_shift:,}"),
        str(workload.repeats or study.method.repeats),
        job.options_text or DASH,
    )


def iteration_statistics_document(results: Sequence[RunResult]) -> list[dict[str, Any]]:
    """The statistics over iterations as `show --json` prints them."""
    return [
        {
            "configuration": point.configuration,
            "workload": point.workload,
            "axis": dict(point.axis_values),
            "digest": point.digest,
            "excluded_hosts": list(point.excluded_hosts),
            "left_out": point.left_out_count,
            "operations": [
                _operation_statistics_document(operation) for operation in point.operations
            ],
        }
        for point in statistics_of_points(results)
    ]


def _operation_statistics_document(statistics: OperationStatistics) -> dict[str, Any]:
    return {
        "operation": statistics.operation.display_name,
        "metric": statistics.rate_key,
        "n": statistics.iteration_count,
        "max": statistics.maximum,
        "min": statistics.minimum,
        "mean": statistics.mean,
        "std_dev": statistics.std_dev,
        "median_repeat": statistics.median_result.repeat,
        "latencies_ns": {
            name: metric.value for name, metric in statistics.median_result_latencies.items()
        },
        "verdict": statistics.verdict_level.value,
    }
