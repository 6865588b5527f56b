"""The tables of a report: every result, and how it was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from iolab.analyse.iterations import is_metadata
from iolab.analyse.key_value.summary import is_key_value
from iolab.model.metric import Evidence, Result
from iolab.model.run import Plan
from iolab.model.study import Method, Order, Study
from iolab.model.workload import Axis, Job, Workload
from iolab.report.detail import RunKey
from iolab.report.every_run import every_run
from iolab.report.key_value.measures import on_keys
from iolab.report.table import Cell, Column, Table, columns, row, verdict_cell
from iolab.report.wording import NOTHING, count, show
from iolab.units import format_bytes, format_duration_s, parse_size

SHOWN_METRICS: Final = (
    ("iops", "IOPS"),
    ("read_iops", "Read IOPS"),
    ("write_iops", "Write IOPS"),
    ("bw_bytes_per_s", "Bandwidth"),
    ("lat_ns_mean", "Latency mean"),
    ("lat_ns_p50", "p50"),
    ("lat_ns_p99", "p99"),
    ("lat_ns_p99_5", "p99.5"),
    ("lat_ns_p99_9", "p99.9"),
    ("lat_ns_p99_99", "p99.99"),
    ("lat_ns_max", "Max"),
)
"""The metrics of the results table and their headings."""

SERVICE_METRICS: Final = (
    ("service_lat_ns_mean", "Service mean"),
    ("service_lat_ns_p50", "Service p50"),
    ("service_lat_ns_p99", "Service p99"),
)
"""Those beside them where latency counts from when I/Os were due."""


def results_table(study: Study, results: Sequence[Result], anchors: Mapping[RunKey, str]) -> Table:
    """One row a run of I/O; `anchors` lead to what the report tells of it."""
    results = [r for r in results if not is_metadata(r) and not is_key_value(r)]
    mixed = any(
        isinstance(workload.job, Job) and workload.job.access.mixed for workload in study.workloads
    )
    shown = [
        (key, heading)
        for key, heading in SHOWN_METRICS
        if mixed or key not in {"read_iops", "write_iops"}
    ]
    if any(key in result.metrics for result in results for key, _ in SERVICE_METRICS):
        shown += SERVICE_METRICS
    return every_run("Every run", study, results, shown, anchors)


def hosts_table(result: Result) -> Table:
    """Each host's share of a run."""
    keys = [(key, heading) for key, heading in SHOWN_METRICS if "iops" not in key or key == "iops"]
    rows = tuple(
        (
            Cell(host.name),
            *(Cell(show(host.metrics.get(key), bare_rate=True)) for key, _ in keys),
            verdict_cell(result.verdict.level),
        )
        for host in result.hosts
    )
    heads = (*columns(("Host",), tuple(heading for _, heading in keys)), Column("Verdict"))
    return Table("Each host's share", heads, rows)


def evidence_text(evidence: Evidence) -> str:
    """A check's evidence in one line: `name = value` with large numbers grouped."""
    return " · ".join(f"{name} = {_evidence_value(value)}" for name, value in evidence.items())


def _evidence_value(value: object) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)


def method_table(study: Study, plan: Plan) -> Table:
    """How the study measures, one row a choice."""
    method = study.method
    order = (
        f"randomised within each repeat, seed {method.seed}"
        if method.order is Order.RANDOMISED
        else "as written"
    )
    files = ", ".join(
        f"{data_set.id}: {count(len(data_set.file_names()), 'file')} of "
        f"{format_bytes(data_set.bytes_per_host // len(data_set.file_names()))} on each host"
        for data_set in plan.data_sets
    )
    layout = files or NOTHING
    caches = "dropped and verified before every run that reads" if method.drop_caches else "kept"
    rows = (
        row("Runs", f"{len(plan.runs)}: {len(plan.points)} points, repeats: {method.repeats}"),
        *_times(method),
        row("Settle", f"{format_duration_s(method.settle_s)} of rest after each run"),
        row("Order", order),
        row("Caches", caches),
        *(() if all(on_keys(one.job) for one in study.workloads) else (row("Files", layout),)),
        row("Telemetry", f"every {study.telemetry.interval_ms / 1000:g} s"),
        row("Scale", study.scale),
    )
    return Table("Method", columns(("What", "How")), rows)


def _times(method: Method) -> tuple[tuple[Cell, ...], ...]:
    """How long a run is, and what of it does not count."""
    rule, kind = method.rule, method.kind.value
    if rule is None:
        return (
            row("Duration", f"{kind}: {format_duration_s(method.runtime_s)} measured"),
            row("Warm-up", f"{format_duration_s(method.warmup_s)} run before and left out"),
        )
    least_s, most_s = method.load_s
    length = f"{format_duration_s(least_s)} to {format_duration_s(most_s)}"
    return (
        row(
            "Duration", f"{kind}: {length}, until the mean is known to ±{100 * rule.precision:g} %"
        ),
        row("Warm-up", f"the transient that is found, at least {rule.cut_least_s} s, left out"),
    )


def workloads_table(study: Study) -> Table:
    """The jobs of each workload of I/O, with the values of their axes."""
    texts = ("Workload", "Access", "Block", "iodepth", "Jobs", "File", "Direct", "Engine")
    rows = tuple(_workload_row(one) for one in study.workloads if isinstance(one.job, Job))
    return Table("Workloads", columns((*texts, "Contents", "Further options")), rows)


def _workload_row(workload: Workload) -> tuple[Cell, ...]:
    job = workload.io
    swept = {axis.name: ", ".join(_axis_texts(axis)) for axis in workload.sweep}
    mix = swept.get("rwmixread", job.read_percent)
    access = job.access.value + (f", {mix} % reads" if job.access.mixed else "")
    options = [f"{name}={value}" for name, value in job.options]
    rates = {
        "rate_iops": job.rate_iops,
        "rate": job.rate_bytes_per_s and _rate_text(job.rate_bytes_per_s),
        "fleet_rate_iops": job.fleet_rate_iops,
    }
    told = ((name, swept.get(name, rate)) for name, rate in rates.items())
    options += [f"{name}={rate}" for name, rate in told if rate is not None]
    return row(
        workload.title,
        access,
        swept.get("bs", format_bytes(job.block_bytes)),
        swept.get("iodepth", str(job.iodepth)),
        swept.get("numjobs", str(job.numjobs)),
        _files(job, swept.get("filesize")),
        "yes" if job.direct else "no, buffered",
        f"{job.engine.value}, {job.ioengine}",
        job.contents.value,
        " ".join(options) or NOTHING,
    )


def _axis_texts(axis: Axis) -> Iterator[str]:
    """The values as they are written, but rates in bytes with their unit."""
    for value in axis.values:
        yield _rate_text(parse_size(value)) if axis.name == "rate" else str(value)


def _rate_text(bytes_per_s: int) -> str:
    return f"{format_bytes(bytes_per_s)}/s"


def _files(job: Job, swept: str | None) -> str:
    size = swept or format_bytes(job.file_bytes)
    if job.shared_file:
        return f"{size} of one for all jobs"
    return size if job.files_per_job == 1 else f"{job.files_per_job} of {size}"
