"""Imported runs in briefs and exports: what their tools printed, with what it is worth."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from iolab.analysis.points import PointSummary
from iolab.core.metric import RunResult
from iolab.core.run import RunRecord
from iolab.core.study import Study
from iolab.core.workload import AnyJob
from iolab.importers.foreign_run import FIRST_OTHER_OPERATION, ImportedClientDetails, ImportedJob
from iolab.importers.metrics import PERCENTILES, histograms_by_client_and_operation
from iolab.report.brief import LatencyCurves, LoadReport
from iolab.report.charts.run_series import latency_curve, throughput_and_latency_panels
from iolab.report.charts.series import LatencyCurve, Panel, RunAnchors, TimeGrid
from iolab.report.numbers import DASH
from iolab.report.runs import runs_table
from iolab.report.single_figure import SingleFigureReport
from iolab.report.table import Column, Table, row_of_cells, text_and_number_columns
from iolab.report.terminal import Screen

if TYPE_CHECKING:
    from iolab.report.brief import Brief

OPERATIONS_SHOWN = (
    ("ops_per_s", "Operations/s"),
    ("lat_ns_mean", "Latency mean"),
    *((f"lat_ns_{name}", f"p{percent:g}") for name, percent in PERCENTILES),
    ("lat_ns_max", "Max"),
)
"""What is shown of runs that are no I/O."""

SETTINGS_SHOWN = 24
"""Options of a job in its table; fio has hundreds, and a job file seldom twenty."""


class ImportedReport(SingleFigureReport):
    """What tools printed of reads, writes and any other operations."""

    def has_measurements(self, result: RunResult) -> bool:
        """Whether any figure has a value."""
        return any(metric.value is not None for metric in result.metrics.values())

    def operation_name(self, operation: int, job: AnyJob) -> str:
        """As the file calls it, where it is no I/O."""
        if isinstance(job, ImportedJob) and operation >= FIRST_OTHER_OPERATION:
            return job.operation_name(operation).replace("_", "-")
        return super().operation_name(operation, job)

    def latency_curves(self, record: RunRecord, whole_curve_name: str) -> LatencyCurves:
        """Each operation of which the file has bins."""
        job, by_operation = (
            ImportedJob.require_type(record.run.point.job),
            histograms_by_client_and_operation(record),
        )
        curves, total = [], None
        for operation in job.operations:
            merged = None
            for (_, operation_name), part in by_operation.items():
                if operation_name == operation:
                    merged = part if merged is None else merged.merged_with(part)
            if merged is not None:
                curves.append(latency_curve(operation, merged))
                total = merged if total is None else total.merged_with(merged)
        every = (
            LatencyCurve(whole_curve_name, 0, (), ())
            if total is None
            else latency_curve(whole_curve_name, total)
        )
        return LatencyCurves(every, tuple(curves), None)

    def timeline_panels(self, record: RunRecord, grid: TimeGrid) -> list[Panel]:
        """The load over time, where the file tells it in intervals."""
        operations = ImportedJob.require_type(record.run.point.job).operations
        if len(record.intervals) <= len(record.hosts) * len(operations):
            return []
        return throughput_and_latency_panels(record, grid)

    def terminal_screen(
        self,
        study: Study,
        results: Sequence[RunResult],
        points: Sequence[PointSummary],
        *,
        with_run_rows: bool,
    ) -> Screen:
        """A line a point of I/O, a line a run of all else."""
        others = [result for result in results if "iops" not in result.metrics]
        if len(others) < len(results):
            with_rate = [point for point in points if "iops" in point.metrics]
            yield from super().terminal_screen(
                study, results, with_rate, with_run_rows=with_run_rows
            )
        if others:
            yield from LoadReport.terminal_screen(
                self, study, others, (), with_run_rows=with_run_rows
            )

    def result_table(
        self, study: Study, results: Sequence[RunResult], anchors: RunAnchors
    ) -> Table:
        """Runs of I/O as others; of runs that are no I/O the operations a second."""
        if any("iops" in result.metrics for result in results):
            return super().result_table(study, results, anchors)
        with_value = {
            key for result in results for key, metric in result.metrics.items() if metric.value
        }
        shown = [(key, name) for key, name in OPERATIONS_SHOWN if key in with_value]
        shown += _operation_latency_keys_and_headings(study, results, with_value)
        return runs_table("Every run", study, results, shown, anchors)

    def job_tables(self, brief: Brief, study: Study) -> tuple[Table, ...]:
        """What the files tell of each job's options."""
        del brief
        rows = tuple(
            row_of_cells(workload.title, workload.job.engine, _load_settings_text(workload.job))
            for workload in study.workloads
            if isinstance(workload.job, ImportedJob)
        )
        heads = text_and_number_columns(("Job", "Tool", "Options as its file tells them"))
        return (Table("Imported jobs", heads, rows),) if rows else ()

    def engine_tables(self, brief: Brief, result: RunResult) -> tuple[Table, ...]:
        """The figures as their file has them, and where in it."""
        hosts = brief.host_runs.get((result.digest, result.repeat), ())
        rows = tuple(
            row_of_cells(host.details.source_location, figure.operation, name, text)
            for host in hosts
            if isinstance(host.details, ImportedClientDetails)
            for figure in host.details.figures
            for name, text in figure.printed
        )
        heads = (
            *text_and_number_columns(("Told in", "Operation", "Figure")),
            Column("As printed", is_number=True),
        )
        return (Table("As the file tells it", heads, rows),) if rows else ()


def _operation_latency_keys_and_headings(
    study: Study, results: Sequence[RunResult], keys_with_value: Collection[str]
) -> list[tuple[str, str]]:
    """Keys and headings of the latencies of single operations, where runs have several."""
    jobs = [study.workload(result.workload).job for result in results]
    operations = dict.fromkeys(
        operation
        for job in jobs
        if isinstance(job, ImportedJob) and len(job.operations) > 1
        for operation in job.operations
        if operation != "key_all"
    )
    columns = (("lat_ns_mean", "mean"), ("lat_ns_p99", "p99"))
    return [
        (f"{operation}_{key}", f"{operation.removeprefix('key_').replace('_', '-')} {name}")
        for operation in operations
        for key, name in columns
        if f"{operation}_{key}" in keys_with_value
    ]


def _load_settings_text(job: ImportedJob) -> str:
    shown = [f"{name}={value}" for name, value in job.settings[:SETTINGS_SHOWN]]
    more = len(job.settings) - len(shown)
    return " ".join([*shown, *([f"and {more} more"] if more else [])]) or DASH
