"""Runs on key-value stores as tables: every run, each operation by itself, what was asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from iolab.analyse.key_value.summary import WHOLE_KEY, is_key_value, latency_key, rate_key
from iolab.analyse.points import PointSummary
from iolab.model.key_value import KeyOperation, KeyValueJob
from iolab.model.metric import Metric, Result
from iolab.model.study import Study
from iolab.model.workload import Workload
from iolab.model.ycsb import YcsbJob
from iolab.report.detail import RunKey
from iolab.report.every_run import every_run
from iolab.report.key_value.measures import (
    PERCENTILES,
    WORDS,
    counted,
    key_workloads,
    main_operation,
    plural,
    timed,
)
from iolab.report.table import Cell, Column, Table, columns, row, verdict_cell
from iolab.report.wording import (
    NOTHING,
    show,
    show_interval,
    show_value,
)
from iolab.units import format_bytes, format_rate_bytes

Namer = Callable[[PointSummary], str]
"""How a point is called in a table."""

RESULT_LATENCIES: Final = ("mean", "p50", "p95", "p99", "p99_9", "p99_99", "max")
"""What the table of all runs tells of the main operation."""

_HEADINGS: Final = {"mean": "Mean", "max": "Max"}

OTHER_LATENCIES: Final = ("mean", "p99")
"""What it tells of the others."""


def key_runs_table(
    study: Study, results: Sequence[Result], anchors: Mapping[RunKey, str]
) -> Table | None:
    """One row a run on a key-value store; None where there is none."""
    found = [result for result in results if is_key_value(result)]
    if not found:
        return None
    shown = run_columns([result.metrics for result in found])
    return every_run("Every run on a key-value store", study, found, shown, anchors)


def run_columns(metrics: Iterable[Mapping[str, Metric]]) -> list[tuple[str, str]]:
    """(metric, heading) of what tells these runs: all operations, then each by itself."""
    found = list(metrics)
    main = main_operation(found)
    rates, latencies = counted(found), timed(found)
    shown = [(WHOLE_KEY, "Operations/s")]
    if len(rates) > 1 or (rates and rates[0] is not main):
        shown += [(rate_key(one), f"{plural(one)}/s") for one in rates]
    ordered = sorted(latencies, key=lambda one: (one is not main, one))
    for one in ordered:
        names = RESULT_LATENCIES if one is main else OTHER_LATENCIES
        word = one.word.capitalize()
        shown += [(latency_key(one, name), f"{word} {WORDS[name]}") for name in names]
    return shown


def operations_table(result: Result) -> Table:
    """What each operation of a run did and took, percentile by percentile."""
    metrics = [result.metrics]
    operations = dict.fromkeys([*counted(metrics), *timed(metrics)])
    return _of_operations("Each operation", [("", result.metrics, operations)])


def apart_table(points: Sequence[PointSummary], name: Namer) -> Table:
    """The same of the points of one workload, one row a point and operation."""
    parts = []
    for point in points:
        metrics = [point.metrics]
        operations = dict.fromkeys([*counted(metrics), *timed(metrics)])
        parts.append((name(point), point.metrics, operations))
    table = _of_operations("Each operation by itself", parts)
    levels = [point.level for point, part in zip(points, parts, strict=True) for _ in part[2]]
    rows = tuple(
        (*cells, verdict_cell(level)) for cells, level in zip(table.rows, levels, strict=True)
    )
    return Table(table.title, (*table.columns, Column("Verdict")), rows)


def _of_operations(
    title: str,
    parts: Sequence[tuple[str, Mapping[str, Metric], Iterable[KeyOperation]]],
) -> Table:
    names = ("mean", *(name for name, _ in PERCENTILES), "max")
    texts = ("Operation", "Point") if any(name for name, _, _ in parts) else ("Operation",)
    numbers = ("Operations/s", *(_HEADINGS.get(name, WORDS[name]) for name in names))
    rows = tuple(
        row(
            one.word,
            *((name,) if len(texts) > 1 else ()),
            show(metrics.get(rate_key(one)), bare_rate=True),
            *(show(metrics.get(latency_key(one, latency))) for latency in names),
        )
        for name, metrics, operations in parts
        for one in operations
    )
    return Table(title, columns(texts, numbers), rows)


def bounds_table(points: Sequence[PointSummary], name: Namer) -> Table | None:
    """Between which latencies percentiles lie for certain, where bins are wide; else None."""
    names = tuple(key for key, _ in PERCENTILES)
    rows = [
        (
            *row(operation.word, name(point), str(run.repeat)),
            *(Cell(_between(run.metrics.get(latency_key(operation, key)))) for key in names),
            verdict_cell(run.verdict.level),
        )
        for point in points
        for run in (point.results or point.left_out)
        for operation in timed([run.metrics])
        if any(_is_bounded(run.metrics.get(latency_key(operation, key))) for key in names)
    ]
    if not rows:
        return None
    heads = columns(("Operation", "Point"), ("Repeat", *(WORDS[key] for key in names)))
    title = "Between which latencies percentiles lie"
    return Table(title, (*heads, Column("Verdict")), tuple(rows))


def _is_bounded(metric: Metric | None) -> bool:
    return metric is not None and metric.bounded


def _between(metric: Metric | None) -> str:
    if metric is None or metric.low is None or metric.high is None or not metric.bounded:
        return NOTHING
    low, high = (show_value(end, metric.unit) for end in (metric.low, metric.high))
    return high if low == high else f"{low} to {high}"


def due_table(points: Sequence[PointSummary], name: Namer) -> Table | None:
    """Latencies of service beside those from when an operation was due; None without a rate."""
    due = [one for one in timed(point.metrics for point in points) if one.is_intended]
    pairs = [(one, other) for one in KeyOperation if (other := one.intended) in due]
    if not pairs:
        return None
    names = ("mean", "p99", "p99_9", "p99_99")
    numbers = tuple(
        f"{WORDS[name]}{end}" for name in names for end in (" of service", " since due")
    )
    rows = tuple(
        (
            Cell(one.word),
            Cell(name(point)),
            Cell(show(point.metrics.get(WHOLE_KEY), bare_rate=True)),
            *(
                Cell(show(point.metrics.get(latency_key(which, key))))
                for key in names
                for which in (one, other)
            ),
            verdict_cell(point.level),
        )
        for one, other in pairs
        if other is not None
        for point in points
    )
    heads = (*columns(("Operation", "Point"), ("Operations/s", *numbers)), Column("Verdict"))
    return Table("Time of service, and time since an operation was due", heads, rows)


def key_hosts_table(result: Result) -> Table:
    """Each client's share of a run."""
    shown = run_columns([host.metrics for host in result.hosts])
    rows = tuple(
        (
            Cell(host.name),
            *(Cell(show(host.metrics.get(key), bare_rate=True)) for key, _ in shown),
            verdict_cell(result.verdict.level),
        )
        for host in result.hosts
    )
    heads = columns(("Host",), tuple(heading for _, heading in shown))
    return Table("Each host's share", (*heads, Column("Verdict")), rows)


def key_points_table(points: Sequence[PointSummary]) -> list[list[str]]:
    """Headings and rows of published values with intervals, for exports."""
    axes = list(dict.fromkeys(name for point in points for name, _ in point.key.axis))
    shown = run_columns([point.metrics for point in points])
    heads = ["Configuration", "Workload", *axes, *(heading for _, heading in shown), "Verdict"]
    rows = [
        [
            point.key.configuration,
            point.key.workload,
            *(str(dict(point.key.axis).get(axis, NOTHING)) for axis in axes),
            *(_told(point.metrics.get(key)) for key, _ in shown),
            point.level.value,
        ]
        for point in points
    ]
    return [heads, *rows]


def _told(metric: Metric | None) -> str:
    return f"{show(metric, bare_rate=True)} {show_interval(metric, bare_rate=True)}".strip()


def key_jobs_tables(study: Study) -> tuple[Table, ...]:
    """What each engine was asked for, one table an engine that the study uses."""
    found = key_workloads(study)
    db_bench = [(one, one.job) for one in found if isinstance(one.job, KeyValueJob)]
    ycsb = [(one, one.job) for one in found if isinstance(one.job, YcsbJob)]
    return tuple(
        table for table in (_db_bench_table(db_bench), _ycsb_table(ycsb)) if table is not None
    )


def _swept(workload: Workload) -> dict[str, str]:
    return {axis.name: ", ".join(str(value) for value in axis.values) for axis in workload.sweep}


def _options(options: tuple[tuple[str, str], ...]) -> str:
    return " ".join(f"{name}={value}" for name, value in options) or NOTHING


def _memory(size: int | None) -> str:
    return "all" if size is None else format_bytes(size)


def _db_bench_table(found: Sequence[tuple[Workload, KeyValueJob]]) -> Table | None:
    if not found:
        return None
    texts = (
        *("Workload", "Benchmark", "Keys", "Key", "Value", "Block", "Threads", "Block cache"),
        *("Memory", "Bloom bits", "Reads", "Writer", "Database", "Further options"),
    )
    rows = tuple(_db_bench_row(workload, job) for workload, job in found)
    return Table("Workloads of db_bench", columns(texts), rows)


def _db_bench_row(workload: Workload, job: KeyValueJob) -> tuple[Cell, ...]:
    swept, loaded = _swept(workload), job.loaded
    mixed = job.workload == "readrandomwriterandom"
    rate = job.write_bytes_per_s
    return row(
        workload.title,
        job.workload,
        f"{loaded.keys:,}",
        format_bytes(loaded.key_bytes),
        format_bytes(loaded.value_bytes),
        swept.get("block_size", format_bytes(loaded.block_bytes)),
        swept.get("threads", str(job.threads)),
        format_bytes(job.cache_bytes),
        _memory(job.memory_bytes),
        str(loaded.bloom_bits) if loaded.bloom_bits else "none",
        f"{job.read_percent} %" if mixed else NOTHING,
        (NOTHING if rate is None else f"at most {format_rate_bytes(rate)}")
        if job.streams > job.threads
        else NOTHING,
        job.database or "loaded by iolab",
        _options(job.options),
    )


def _ycsb_table(found: Sequence[tuple[Workload, YcsbJob]]) -> Table | None:
    if not found:
        return None
    texts = (
        *("Workload", "Mix", "Records", "Record", "Keys drawn", "Threads a client"),
        *("Rate a client", "Memory", "Further options"),
    )
    rows = tuple(_ycsb_row(workload, job) for workload, job in found)
    return Table("Workloads of YCSB", columns(texts), rows)


def _ycsb_row(workload: Workload, job: YcsbJob) -> tuple[Cell, ...]:
    swept = _swept(workload)
    mix = ", ".join(f"{100 * share:g} % {operation.word}" for operation, share in job.mix)
    rate = "none" if job.rate_ops_per_s is None else f"{job.rate_ops_per_s:,} ops/s"
    return row(
        workload.title,
        mix,
        f"{job.records:,}",
        f"{job.fields} × {format_bytes(job.field_bytes)}",
        job.distribution.value,
        swept.get("threads", str(job.threads)),
        f"{swept['rate']} ops/s" if "rate" in swept else rate,
        _memory(job.memory_bytes),
        _options(job.options),
    )
