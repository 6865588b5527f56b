"""Metadata load in briefs and exports: each operation by itself, phase after phase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from iolab.analysis.points import PointSummary
from iolab.core.metric import Metric, Result
from iolab.core.run import RunRecord
from iolab.core.study import Study
from iolab.core.workload import AnyJob, NamedOperation, Workload
from iolab.loads.metadata.charts import (
    operation_charts,
    operation_figures,
    operation_token,
    operations_distribution,
)
from iolab.loads.metadata.metrics import FILE_OPERATIONS, measure_metadata, point_statistics
from iolab.loads.metadata.tables import (
    NAMES,
    RATE_NOTE,
    brief_rates,
    host_rate_keys,
    iterations_document,
    jobs_table,
    operation_columns,
    summary_table,
)
from iolab.loads.metadata.terminal import operations_screen
from iolab.loads.metadata.workload import MetadataJob, Operation
from iolab.report.best import BestFigure
from iolab.report.brief import Charts, Latencies, LoadReport, Measurements
from iolab.report.charts.run_series import curve_of, only_operation, spread_over, tail_by_cell
from iolab.report.charts.series import Anchors, Grid, LatencyCurve, Panel, RunDetail, trace_on_grid
from iolab.report.runs import every_run
from iolab.report.table import Table, markdown
from iolab.report.terminal import Screen

if TYPE_CHECKING:
    from iolab.report.brief import Brief
    from iolab.report.charts.chart import Figure
    from iolab.report.charts.palette import Token


class MetadataReport(LoadReport):
    """Operations on files and trees, of which nothing adds up to one figure."""

    jobs: tuple[type[AnyJob], ...] = (MetadataJob,)
    operations: ClassVar[Sequence[type[NamedOperation]]] = (Operation,)
    has_one_rate: ClassVar[bool] = False
    lays_out_files: ClassVar[bool] = True
    spread_names: ClassVar[Mapping[str, str]] = {one.key: name for one, name in NAMES.items()}

    def is_measured(self, result: Result) -> bool:
        """Whether any operation was."""
        return any(metric.value is not None for metric in result.metrics.values())

    def figure(self, result: Result, workload: Workload) -> str:  # noqa: ARG002
        """The rate of each operation on files."""
        return self.rates(result)

    def rates(self, result: Result) -> str:
        """Of each operation on files."""
        return brief_rates(result)

    def host_keys(self, result: Result) -> Sequence[str]:
        """The rate of each operation on files."""
        return host_rate_keys(result)

    def columns(self, metrics: Sequence[Mapping[str, Metric]]) -> Sequence[tuple[str, str]]:
        """See `operation_columns`."""
        return operation_columns(metrics)

    def host_key(self, result: Result, workload: Workload) -> str:  # noqa: ARG002
        """The rate at which hosts make files."""
        return host_rate_keys(result)[0]

    def latencies(self, record: RunRecord, name: str) -> Latencies:
        """Each operation on files."""
        phases = measure_metadata(record)
        hosts = list(range(len(record.hosts)))
        curves = tuple(
            curve_of(NAMES[phase.operation], phase.histogram(hosts)) for phase in phases.file_phases
        )
        return Latencies(LatencyCurve(name, 0, (), ()), curves, phases.span())

    def panels(self, record: RunRecord, grid: Grid) -> list[Panel]:
        """See `operation_panels`."""
        return operation_panels(record, grid)

    def distribution(self, subject: str, detail: RunDetail, token: Token) -> Figure | None:  # noqa: ARG002
        """Each operation in a colour of its own."""
        return operations_distribution(subject, "Latency by percentile", detail)

    def best_figures(self, measurements: Measurements) -> tuple[BestFigure, ...]:
        """The mean rate of each operation on files."""
        return operation_figures(measurements)

    def charts(self, brief: Brief) -> Charts:
        """Of every workload, also of one point."""
        return {
            workload.id: operation_charts(
                brief,
                workload,
                [run for run in brief.results if run.workload == workload.id],
            )
            for workload in brief.study.workloads
            if self.makes(workload)
        }

    def result_table(self, study: Study, results: Sequence[Result], anchors: Anchors) -> Table:
        """With the rate of each operation."""
        shown = self.columns([result.metrics for result in results])
        return every_run("Every run of metadata load", study, results, shown, anchors)

    def job_tables(self, brief: Brief, study: Study) -> tuple[Table, ...]:  # noqa: ARG002
        """The jobs, where there are any."""
        table = jobs_table(study)
        return (table,) if table else ()

    def screen(
        self,
        study: Study,
        results: Sequence[Result],
        points: Sequence[PointSummary],  # noqa: ARG002
        *,
        repeats: bool,  # noqa: ARG002
    ) -> Screen:
        """A line for each operation of a point, over its iterations."""
        yield from operations_screen(study, results)

    def markdown(self, study: Study, results: Sequence[Result]) -> str:
        """A row for each operation of each point."""
        table = summary_table(point_statistics(results), study, {})
        return f"\n{markdown(table)}\n\n{RATE_NOTE}\n"

    def document(
        self,
        study: Study,  # noqa: ARG002
        points: Sequence[PointSummary],  # noqa: ARG002
        results: Sequence[Result],
    ) -> dict[str, Any]:
        """The statistics over iterations."""
        return {"iterations": iterations_document(results)}


def operation_panels(record: RunRecord, grid: Grid) -> list[Panel]:
    """Rate and p99 of each operation on files, all hosts together, while its phase ran."""
    rates, tails = [], []
    for operation in FILE_OPERATIONS:
        own = only_operation(record, operation)
        if len(own.intervals) == 0:
            continue
        ends = grid.since_start_ns(own.intervals.end_real_ns, own.intervals.host)
        begun, ended = (ends - own.intervals.span_ns).min(), ends.max()
        edges = np.clip(grid.edges_ns, begun, ended)
        seconds = np.diff(edges) / 1e9
        done = spread_over(own, grid, own.intervals.ios.astype(np.float64), operation)
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = np.where(seconds > 0, done / seconds, np.nan)
        name, token = operation.key.removeprefix("file_"), operation_token(operation)
        rates.append(replace(trace_on_grid(name, rate), token=token))
        tails.append(replace(trace_on_grid(name, tail_by_cell(own, grid, 99.0)), token=token))
    return [
        Panel("Operations", "ops/s", tuple(rates), log=True),
        Panel("Latency p99", "ns", tuple(tails), log=True),
    ]
