"""The points of workloads on key-value stores, apart by all that makes them other operations.

Operations on another block size are other operations: each combination of values but those of the
main axis is told by itself, as published briefs do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from iolab.analysis.points import AxisValues, PointSummary
from iolab.core.metric import Metric, RunResult
from iolab.core.study import Study
from iolab.core.workload import AnyJob, Workload
from iolab.loads.keyvalue.metrics import KEY_PERCENTILES, LATENCY_NAMES, WHOLE_OPERATIONS_RATE_KEY
from iolab.loads.keyvalue.workload import DbBenchJob, KeyJob, KeyOperation, YcsbJob
from iolab.record import Record
from iolab.report.best import (
    UNKNOWN_METRIC,
    BestPointHeadline,
    best_point_headline,
    workload_and_axis_values_title,
)
from iolab.report.charts.choose import horizontal_axis_name
from iolab.report.numbers import DASH, metric_value_text, value_text
from iolab.report.table import (
    Cell,
    Column,
    Table,
    row_of_cells,
    text_and_number_columns,
    verdict_cell,
)
from iolab.text import percent_text
from iolab.units import format_bytes, format_rate_bytes

PERCENTILES: Final = tuple((name, f"p{percent:g}") for name, percent in KEY_PERCENTILES)
"""Latency percentiles: (name in a metric's key, for people)."""

WORDS: Final = {"mean": "mean", **dict(PERCENTILES), "max": "max"}
"""Every latency by its name in a metric's key."""

_OPERATION_NAMES: Final = {
    KeyOperation.READ: "Reads",
    KeyOperation.WRITE: "Writes",
    KeyOperation.UPDATE: "Updates",
    KeyOperation.INSERT: "Inserts",
    KeyOperation.SCAN: "Scans",
    KeyOperation.READ_MODIFY_WRITE: "Read-modify-writes",
    KeyOperation.DELETE: "Deletes",
    KeyOperation.SEEK: "Seeks",
    KeyOperation.MERGE: "Merges",
}

_LOADS: Final = ("threads", "rate")

RESULT_LATENCIES: Final = ("mean", "p50", "p95", "p99", "p99_9", "p99_99", "max")
"""What the table of all runs tells of the main operation."""

_HEADINGS: Final = {"mean": "Mean", "max": "Max"}

OTHER_LATENCIES: Final = ("mean", "p99")
"""What it tells of the others."""


def key_value_workloads(study: Study) -> tuple[Workload, ...]:
    """The study's workloads on key-value stores."""
    return tuple(workload for workload in study.workloads if isinstance(workload.job, KeyJob))


def plural_operation_text(operation: KeyOperation) -> str:
    """The operations for people: `Reads`."""
    return _OPERATION_NAMES.get(operation, operation.display_name.capitalize())


def metric_value(metrics: Mapping[str, Metric], metric_key: str) -> float | None:
    """The value of a metric, None where there is no such metric."""
    return metrics.get(metric_key, UNKNOWN_METRIC).value


def operations_with_latency(
    metrics_of_points: Iterable[Mapping[str, Metric]],
) -> tuple[KeyOperation, ...]:
    """The operations of which any latency is known, those timed from when they were due too."""
    return _operations_with_metric(metrics_of_points, [f"lat_ns_{name}" for name in LATENCY_NAMES])


def operations_with_rate(
    metrics_of_points: Iterable[Mapping[str, Metric]],
) -> tuple[KeyOperation, ...]:
    """The operations that have a rate of their own."""
    operations = _operations_with_metric(metrics_of_points, [WHOLE_OPERATIONS_RATE_KEY])
    return tuple(
        operation
        for operation in operations
        if not operation.is_intended and operation is not KeyOperation.ALL
    )


def _operations_with_metric(
    metrics_of_points: Iterable[Mapping[str, Metric]], key_suffixes: list[str]
) -> tuple[KeyOperation, ...]:
    all_metrics = list(metrics_of_points)
    return tuple(
        operation
        for operation in KeyOperation
        if any(
            metric_value(own, f"{operation.key}_{part}") is not None
            for own in all_metrics
            for part in key_suffixes
        )
    )


def headline_latency_operation(metrics_of_points: Sequence[Mapping[str, Metric]]) -> KeyOperation:
    """The operation whose latency is told first: reads, else the first that has any."""
    operations = [
        operation
        for operation in operations_with_latency(metrics_of_points)
        if not operation.is_intended
    ]
    return KeyOperation.READ if KeyOperation.READ in operations or not operations else operations[0]


def published_percentile_name(job: AnyJob) -> str:
    """The percentile that the field publishes with this engine.

    That of db_bench is p99, whose bins tell nothing finer; that of YCSB is p99.99.
    """
    return "p99_99" if isinstance(job, YcsbJob) else "p99"


def published_or_highest_percentile_name(
    job: AnyJob, metrics_of_points: Sequence[Mapping[str, Metric]], operation: KeyOperation
) -> str:
    """The published percentile, where all points have it; else the highest that they all have."""
    return highest_common_percentile(metrics_of_points, operation, published_percentile_name(job))


def highest_common_percentile(
    metrics_of_points: Sequence[Mapping[str, Metric]],
    operation: KeyOperation,
    highest_name: str = "p99_99",
) -> str:
    """The highest percentile up to `highest_name` that all have who have any latency.

    P50 where none.
    """
    names = [name for name, _ in PERCENTILES]
    wanted = names[: names.index(highest_name) + 1]
    measured = [
        own
        for own in metrics_of_points
        if metric_value(own, operation.latency_key("mean")) is not None
    ]
    for name in reversed(wanted):
        if all(metric_value(own, operation.latency_key(name)) is not None for own in measured):
            return name
    return wanted[0]


def known_latency_names_and_texts(
    metrics: Mapping[str, Metric], operation: KeyOperation, names: Iterable[str]
) -> Iterator[tuple[str, str]]:
    """(`read p99`, `1.2 ms`) of each latency that is known."""
    for name in names:
        metric = metrics.get(operation.latency_key(name), UNKNOWN_METRIC)
        if metric.value is not None or metric.low is not None:
            yield f"{operation.display_name} {WORDS[name]}", metric_value_text(metric)


def rate_and_latency_line(result: RunResult) -> str:
    """A run in a line: `12.3 k ops/s, read mean 299 µs, read p99 4.28 ms`."""
    metrics = result.metrics
    main = headline_latency_operation([metrics])
    latencies = known_latency_names_and_texts(
        metrics, main, ("mean", highest_common_percentile([metrics], main, "p99"))
    )
    return ", ".join(
        [
            metric_value_text(metrics.get(WHOLE_OPERATIONS_RATE_KEY)),
            *(f"{name} {text}" for name, text in latencies),
        ]
    )


class PointGroupOfAllConfigurations(Record):
    """The points of a workload that differ in nothing but the `varied_axis_name` and configuration.

    `varied_axis_name` is "" where nothing that is a number varies.
    """

    workload: Workload
    fixed_axis_values: AxisValues
    varied_axis_name: str
    points: tuple[PointSummary, ...]

    @property
    def title(self) -> str:
        """`Random reads, block size 4k`."""
        return workload_and_axis_values_title(self.workload, self.fixed_axis_values)


def point_groups(
    workload: Workload, points: Sequence[PointSummary]
) -> tuple[PointGroupOfAllConfigurations, ...]:
    """A workload's points, apart by every axis but the main one."""
    axis = horizontal_axis_name(
        [point.key.axis_values for point in points]
    ) or _load_axis_name_if_several_configurations(points)
    by_others: dict[AxisValues, list[PointSummary]] = {}
    for point in points:
        others = tuple(pair for pair in point.key.axis_values if pair[0] != axis)
        by_others.setdefault(others, []).append(point)
    return tuple(
        PointGroupOfAllConfigurations(workload, others, axis, tuple(members))
        for others, members in by_others.items()
    )


def _load_axis_name_if_several_configurations(points: Sequence[PointSummary]) -> str:
    """Where nothing varies but the configuration: the load at which they are compared."""
    names = [name for point in points for name, _ in point.key.axis_values]
    several = len({point.key.configuration for point in points}) > 1
    return next((name for name in _LOADS if several and name in names), "")


def key_value_point_groups(
    study: Study, points: Sequence[PointSummary]
) -> tuple[PointGroupOfAllConfigurations, ...]:
    """The groups of all workloads on key-value stores; points may be of other loads too."""
    return tuple(
        group
        for workload in key_value_workloads(study)
        for group in point_groups(workload, [p for p in points if p.key.workload == workload.id])
    )


def best_point_headlines_of_group(
    point_group: PointGroupOfAllConfigurations, study: Study
) -> tuple[BestPointHeadline, ...]:
    """The point with the most operations of each configuration, under the group's own name."""
    name = " ".join(
        [point_group.workload.id, *(str(value) for _, value in point_group.fixed_axis_values)]
    )
    named = replace(point_group.workload, id=name, title=point_group.title)
    own = {
        configuration.id: [
            point for point in point_group.points if point.key.configuration == configuration.id
        ]
        for configuration in study.configurations
    }
    return tuple(
        best_point_headline(named, configuration, own[configuration.id], WHOLE_OPERATIONS_RATE_KEY)
        for configuration in study.configurations
        if own[configuration.id]
    )


Namer = Callable[[PointSummary], str]
"""How a point is called in a table."""


def run_metric_columns(metrics_of_runs: Iterable[Mapping[str, Metric]]) -> list[tuple[str, str]]:
    """(metric, heading) of what tells these runs: all operations, then each by itself."""
    all_metrics = list(metrics_of_runs)
    main = headline_latency_operation(all_metrics)
    rates, latencies = operations_with_rate(all_metrics), operations_with_latency(all_metrics)
    shown = [(WHOLE_OPERATIONS_RATE_KEY, "Operations/s")]
    if len(rates) > 1 or (rates and rates[0] is not main):
        shown += [
            (operation.rate_key, f"{plural_operation_text(operation)}/s") for operation in rates
        ]
    ordered = sorted(latencies, key=lambda operation: (operation is not main, operation))
    for operation in ordered:
        names = RESULT_LATENCIES if operation is main else OTHER_LATENCIES
        word = operation.display_name.capitalize()
        shown += [(operation.latency_key(name), f"{word} {WORDS[name]}") for name in names]
    return shown


def operations_table(result: RunResult) -> Table:
    """What each operation of a run did and took, percentile by percentile."""
    metrics = [result.metrics]
    operations = dict.fromkeys([*operations_with_rate(metrics), *operations_with_latency(metrics)])
    return _operations_table("Each operation", [("", result.metrics, operations)])


def operations_by_point_table(points: Sequence[PointSummary], point_namer: Namer) -> Table:
    """The same of the points of one workload, one row a point and operation."""
    parts = []
    for point in points:
        metrics = [point.metrics]
        operations = dict.fromkeys(
            [*operations_with_rate(metrics), *operations_with_latency(metrics)]
        )
        parts.append((point_namer(point), point.metrics, operations))
    table = _operations_table("Each operation by itself", parts)
    levels = [
        point.verdict_level for point, part in zip(points, parts, strict=True) for _ in part[2]
    ]
    rows = tuple(
        (*cells, verdict_cell(level)) for cells, level in zip(table.rows, levels, strict=True)
    )
    return Table(table.title, (*table.columns, Column("Verdict")), rows)


def _operations_table(
    title: str,
    point_metrics_and_operations: Sequence[
        tuple[str, Mapping[str, Metric], Iterable[KeyOperation]]
    ],
) -> Table:
    names = ("mean", *(name for name, _ in PERCENTILES), "max")
    texts = (
        ("Operation", "Point")
        if any(name for name, _, _ in point_metrics_and_operations)
        else ("Operation",)
    )
    numbers = ("Operations/s", *(_HEADINGS.get(name, WORDS[name]) for name in names))
    rows = tuple(
        row_of_cells(
            operation.display_name,
            *((name,) if len(texts) > 1 else ()),
            metric_value_text(metrics.get(operation.rate_key), is_rate_unit_omitted=True),
            *(metric_value_text(metrics.get(operation.latency_key(latency))) for latency in names),
        )
        for name, metrics, operations in point_metrics_and_operations
        for operation in operations
    )
    return Table(title, text_and_number_columns(texts, numbers), rows)


def percentile_bounds_table(points: Sequence[PointSummary], point_namer: Namer) -> Table | None:
    """Between which latencies percentiles lie for certain, where bins are wide; else None."""
    names = tuple(key for key, _ in PERCENTILES)
    rows = [
        row_of_cells(
            operation.display_name,
            point_namer(point),
            str(run.repeat),
            *(
                _percentile_bounds_text(run.metrics.get(operation.latency_key(key)))
                for key in names
            ),
            run.verdict.level,
        )
        for point in points
        for run in (point.results or point.left_out_results)
        for operation in operations_with_latency([run.metrics])
        if any(_has_wide_bin(run.metrics.get(operation.latency_key(key))) for key in names)
    ]
    if not rows:
        return None
    heads = text_and_number_columns(
        ("Operation", "Point"), ("Repeat", *(WORDS[key] for key in names))
    )
    title = "Between which latencies percentiles lie"
    return Table(title, (*heads, Column("Verdict")), tuple(rows))


def _has_wide_bin(metric: Metric | None) -> bool:
    return metric is not None and metric.has_bin_edge_interval


def _percentile_bounds_text(metric: Metric | None) -> str:
    if (
        metric is None
        or metric.low is None
        or metric.high is None
        or not metric.has_bin_edge_interval
    ):
        return DASH
    low, high = (value_text(end, metric.unit) for end in (metric.low, metric.high))
    return high if low == high else f"{low} to {high}"


def intended_latency_table(points: Sequence[PointSummary], point_namer: Namer) -> Table | None:
    """Latencies of service beside those from when an operation was due; None without a rate."""
    due = [
        operation
        for operation in operations_with_latency(point.metrics for point in points)
        if operation.is_intended
    ]
    pairs = [
        (operation, other)
        for operation in KeyOperation
        if (other := operation.intended_variant) in due
    ]
    if not pairs:
        return None
    names = ("mean", "p99", "p99_9", "p99_99")
    numbers = tuple(
        f"{WORDS[point_namer]}{end}"
        for point_namer in names
        for end in (" of service", " since due")
    )
    rows = tuple(
        row_of_cells(
            operation.display_name,
            point_namer(point),
            metric_value_text(
                point.metrics.get(WHOLE_OPERATIONS_RATE_KEY), is_rate_unit_omitted=True
            ),
            *(
                metric_value_text(point.metrics.get(shown.latency_key(key)))
                for key in names
                for shown in (operation, other)
            ),
            point.verdict_level,
        )
        for operation, other in pairs
        if other is not None
        for point in points
    )
    heads = text_and_number_columns(
        ("Operation", "Point"), ("Operations/s", *numbers), ("Verdict",)
    )
    return Table("Time of service, and time since an operation was due", heads, rows)


def key_value_jobs_tables(study: Study) -> tuple[Table, ...]:
    """What each engine was requested, one table an engine that the study uses."""
    workloads = key_value_workloads(study)
    db_bench = [
        (workload, workload.job) for workload in workloads if isinstance(workload.job, DbBenchJob)
    ]
    ycsb = [(workload, workload.job) for workload in workloads if isinstance(workload.job, YcsbJob)]
    return tuple(
        table for table in (_db_bench_table(db_bench), _ycsb_table(ycsb)) if table is not None
    )


def _memory_limit_or_all_text(limit_bytes: int | None) -> str:
    return "all" if limit_bytes is None else format_bytes(limit_bytes)


def _db_bench_table(workloads: Sequence[tuple[Workload, DbBenchJob]]) -> Table | None:
    if not workloads:
        return None
    texts = (
        *("Workload", "Benchmark", "Keys", "Key", "Value", "Block", "Threads", "Block cache"),
        *("Memory", "Bloom bits", "Reads", "Writer", "Database", "Further options"),
    )
    rows = tuple(_db_bench_row(workload, job) for workload, job in workloads)
    return Table("Workloads of db_bench", text_and_number_columns(texts), rows)


def _db_bench_row(workload: Workload, job: DbBenchJob) -> tuple[Cell, ...]:
    swept, loaded = workload.axis_values_texts, job.loaded
    mixed = job.workload == "readrandomwriterandom"
    rate = job.write_bytes_per_s
    return row_of_cells(
        workload.title,
        job.workload,
        f"{loaded.keys:,}",
        format_bytes(loaded.key_bytes),
        format_bytes(loaded.value_bytes),
        swept.get("block_size", format_bytes(loaded.block_bytes)),
        swept.get("threads", str(job.threads)),
        format_bytes(job.cache_bytes),
        _memory_limit_or_all_text(job.memory_bytes),
        str(loaded.bloom_bits) if loaded.bloom_bits else "none",
        f"{job.read_percent} %" if mixed else DASH,
        f"at most {format_rate_bytes(rate)}" if job.has_writer and rate is not None else DASH,
        job.database or "loaded by iolab",
        job.options_text or DASH,
    )


def _ycsb_table(workloads: Sequence[tuple[Workload, YcsbJob]]) -> Table | None:
    if not workloads:
        return None
    texts = (
        *("Workload", "Mix", "Records", "Record", "Keys drawn", "Threads a client"),
        *("Rate a client", "Memory", "Further options"),
    )
    rows = tuple(_ycsb_row(workload, job) for workload, job in workloads)
    return Table("Workloads of YCSB", text_and_number_columns(texts), rows)


def _ycsb_row(workload: Workload, job: YcsbJob) -> tuple[Cell, ...]:
    swept = workload.axis_values_texts
    mix = ", ".join(
        f"{percent_text(share)} {operation.display_name}" for operation, share in job.mix
    )
    rate = "none" if job.rate_ops_per_s is None else f"{job.rate_ops_per_s:,} ops/s"
    return row_of_cells(
        workload.title,
        mix,
        f"{job.records:,}",
        f"{job.fields} × {format_bytes(job.field_bytes)}",
        job.distribution.value,
        swept.get("threads", str(job.threads)),
        f"{swept['rate']} ops/s" if "rate" in swept else rate,
        _memory_limit_or_all_text(job.memory_bytes),
        job.options_text or DASH,
    )
