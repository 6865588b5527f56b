"""Metadata load in briefs and exports: each operation by itself, phase after phase."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from iolab.analysis.points import PointSummary
from iolab.core.metric import Metric, RunResult, VerdictLevel
from iolab.core.run import RunRecord
from iolab.core.study import Study
from iolab.core.workload import OperationEnum, Workload
from iolab.loads.metadata.iterations import (
    OperationStatistics,
    PointStatistics,
    fastest_creating_point_per_configuration,
    statistics_of_points,
)
from iolab.loads.metadata.tables import (
    OPERATION_NAMES,
    file_operation_host_rate_keys,
    file_operation_rates_line,
    iteration_statistics_document,
    iteration_summary_table,
    jobs_table,
    operation_metric_columns,
    rates_and_latencies_note,
)
from iolab.loads.metadata.terminal import operation_renderables
from iolab.loads.metadata.workload import FILE_OPERATIONS, MetadataJob, MetadataOperation
from iolab.report.best import BestFigure, code_and_text_of_gravest_check
from iolab.report.brief import Brief, Charts, LatencyCurves, LoadReport, MeasurementSource
from iolab.report.numbers import axis_values_text, metric_value_text, range_text
from iolab.report.runs import runs_table
from iolab.report.table import Table, table_markdown
from iolab.report.terminal import Screen
from iolab.text import list_text, uncapitalised

if TYPE_CHECKING:
    from iolab.report.charts.chart import Chart
    from iolab.report.charts.palette import ColorToken
    from iolab.report.charts.series import Panel, RunAnchors, RunChartData, TimeGrid


class MetadataReport(LoadReport):
    """Operations on files and trees, of which nothing adds up to one figure."""

    operation_enums: ClassVar[Sequence[type[OperationEnum]]] = (MetadataOperation,)
    is_single_rate: ClassVar[bool] = False
    uses_laid_out_files: ClassVar[bool] = True
    phase_names_by_spread_key: ClassVar[Mapping[str, str]] = {
        operation.key: name for operation, name in OPERATION_NAMES.items()
    }

    def has_measurements(self, result: RunResult) -> bool:
        """Whether any operation was."""
        return any(metric.value is not None for metric in result.metrics.values())

    def run_figures_text_if_not_iops(self, result: RunResult) -> str:
        """Of each operation on files."""
        return file_operation_rates_line(result)

    def compared_host_metric_keys(self, result: RunResult) -> Sequence[str]:
        """The rate of each operation on files."""
        return file_operation_host_rate_keys(result)

    def metric_keys_and_headings(
        self, metrics: Sequence[Mapping[str, Metric]]
    ) -> Sequence[tuple[str, str]]:
        """See `operation_metric_columns`."""
        return operation_metric_columns(metrics)

    def host_ranking_metric_key(self, result: RunResult, workload: Workload) -> str:  # noqa: ARG002
        """The rate at which hosts make files."""
        return file_operation_host_rate_keys(result)[0]

    def latency_curves(self, record: RunRecord, whole_curve_name: str) -> LatencyCurves:
        """Each operation on files."""
        from iolab.loads.metadata.charts import file_operation_latency_curves

        return file_operation_latency_curves(record, whole_curve_name)

    def timeline_panels(self, record: RunRecord, grid: TimeGrid) -> list[Panel]:
        """Rate and p99 of each operation on files, all hosts together, while its phase ran."""
        from iolab.loads.metadata.charts import operation_panels_of_run

        return operation_panels_of_run(record, grid)

    def latency_distribution_chart(
        self,
        subject: str,
        chart_data: RunChartData,
        color: ColorToken,  # noqa: ARG002
    ) -> Chart | None:
        """Each operation in a colour of its own."""
        from iolab.loads.metadata.charts import operation_latency_distribution_chart

        return operation_latency_distribution_chart(subject, "Latency by percentile", chart_data)

    def best_figures(self, measurements: MeasurementSource) -> tuple[BestFigure, ...]:
        """The mean rate of each operation on files."""
        return best_operation_figures(measurements)

    def charts_by_workload(self, brief: Brief) -> Charts:
        """Of every workload, also of one point."""
        from iolab.loads.metadata.charts import operation_chart_groups

        return {
            workload.id: operation_chart_groups(
                brief,
                workload,
                [run for run in brief.results if run.workload == workload.id],
            )
            for workload in brief.study.workloads
            if self.handles_workload(workload)
        }

    def result_table(
        self, study: Study, results: Sequence[RunResult], anchors: RunAnchors
    ) -> Table:
        """With the rate of each operation."""
        shown = self.metric_keys_and_headings([result.metrics for result in results])
        return runs_table("Every run of metadata load", study, results, shown, anchors)

    def job_tables(self, brief: Brief, study: Study) -> tuple[Table, ...]:  # noqa: ARG002
        """The jobs, where there are any."""
        table = jobs_table(study)
        return (table,) if table else ()

    def terminal_screen(
        self,
        study: Study,
        results: Sequence[RunResult],
        points: Sequence[PointSummary],  # noqa: ARG002
        *,
        with_run_rows: bool,  # noqa: ARG002
    ) -> Screen:
        """A line for each operation of a point, over its iterations."""
        yield from operation_renderables(study, results)

    def markdown_tables(self, study: Study, results: Sequence[RunResult]) -> str:
        """A row for each operation of each point."""
        table = iteration_summary_table(statistics_of_points(results), study, {})
        return f"\n{table_markdown(table)}\n\n{rates_and_latencies_note(table)}\n"

    def result_document_parts(
        self,
        study: Study,  # noqa: ARG002
        points: Sequence[PointSummary],  # noqa: ARG002
        results: Sequence[RunResult],
    ) -> dict[str, Any]:
        """The statistics over iterations."""
        return {"iterations": iteration_statistics_document(results)}


def best_operation_figures(measurements: MeasurementSource) -> tuple[BestFigure, ...]:
    """Of each workload the mean rate of each operation on files, where most files were made."""
    figures: list[tuple[MetadataOperation, BestFigure]] = []
    for workload in measurements.study.workloads:
        results = [result for result in measurements.results if result.workload == workload.id]
        if isinstance(workload.job, MetadataJob) and results:
            points = statistics_of_points(results)
            for point in fastest_creating_point_per_configuration(points):
                own_points = [at for at in points if at.configuration == point.configuration]
                own = next(
                    (summary for summary in measurements.points if summary.digest == point.digest),
                    None,
                )
                figures += _operation_best_figures(
                    workload,
                    point,
                    own.metrics if own else {},
                    own.left_out_repeats_text if own else "",
                    is_only_load=len(own_points) == 1,
                )
    order = {operation: number for number, operation in enumerate(FILE_OPERATIONS)}
    return tuple(figure for _, figure in sorted(figures, key=lambda pair: order[pair[0]]))


def _operation_best_figures(
    workload: Workload,
    point: PointStatistics,
    rates: Mapping[str, Metric],
    left_out_repeats_text: str,
    *,
    is_only_load: bool,
) -> Iterator[tuple[MetadataOperation, BestFigure]]:
    """Each operation on files; `rates` are the metrics of all its repeats together."""
    places = [
        axis_values_text(point.axis_values),
        f"without {', '.join(point.excluded_hosts)}" if point.excluded_hosts else "",
    ]
    for operation in point.operations:
        if operation.operation not in FILE_OPERATIONS:
            continue
        latencies = (
            ("mean", operation.median_result_latencies.get("mean")),
            ("p99", operation.median_result_latencies.get("p99")),
        )
        yield (
            operation.operation,
            BestFigure(
                workload=f"{workload.id} {operation.operation.key}",
                title=f"{workload.title}: {OPERATION_NAMES[operation.operation].lower()}",
                configuration=point.configuration,
                value=rates.get(operation.rate_key)
                or Metric(operation.mean, "ops/s", n=operation.iteration_count),
                latency_names_and_texts=tuple(
                    (n, metric_value_text(m)) for n, m in latencies if m and m.value is not None
                ),
                axis_text=", ".join(filter(None, places)),
                verdict_level=operation.verdict_level,
                run_key=(operation.median_result.digest, operation.median_result.repeat),
                objection_code_and_text=_operation_objection_code_and_text(operation, point),
                left_out_repeats_text=left_out_repeats_text,
                is_only_load=is_only_load,
            ),
        )


def _operation_objection_code_and_text(
    statistics: OperationStatistics, point: PointStatistics
) -> tuple[str, str]:
    """Why an operation is of its level: its runs' own objections come first.

    One to another phase makes the whole run invalid, and is told as that.
    """
    runs = (statistics.median_result, *point.results)
    name = statistics.operation.display_name
    reason = _phase_objection_code_and_text(
        runs, statistics.verdict_level, name
    ) or code_and_text_of_gravest_check(runs, statistics.verdict_level)
    doubt = statistics.repeats_disagree_check
    code, message = (doubt.code, doubt.message) if doubt and not reason[0] else reason
    rates = _whole_phase_rate_range_text(statistics)
    if statistics.verdict_level is VerdictLevel.INVALID and rates and message:
        return code, f"{rates}; {uncapitalised(message)}"
    return code, message


def _whole_phase_rate_range_text(statistics: OperationStatistics) -> str:
    """`Over the whole phase 5.00 to 5.23 k ops/s`; empty where the rate is over a common window."""
    rates = [rate for rate in statistics.rates if rate]
    if statistics.is_over_common_window or not rates:
        return ""
    low, high = (metric_value_text(Metric(find(rates), "ops/s")) for find in (min, max))
    return f"Over the whole phase {range_text(low, high)}"


def _phase_objection_code_and_text(
    runs: Sequence[RunResult], verdict_level: VerdictLevel, operation_name: str
) -> tuple[str, str] | None:
    """The objection to an operation; else to its run, and which phase that is about.

    None where none of a run of that level names a phase.
    """
    found = [
        (objection, objection.evidence.get("phase"))
        for run in runs
        if run.verdict.level is verdict_level
        for objection in run.verdict.objections
        if objection.level is verdict_level
    ]
    for objection, phase in found:
        if phase == operation_name:
            return objection.code, objection.message
    if not found or found[0][1] is None:
        return None
    code = found[0][0].code
    phases = dict.fromkeys(str(phase) for objection, phase in found if objection.code == code)
    others = " or ".join(list_text(list(phases)).rsplit(" and ", 1))
    return code, f"Its run is {verdict_level.value} because of phase {others}."
