"""Load on key-value stores in briefs and exports: each operation, what engines and servers told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np
from msgspec.structs import replace

from iolab.analysis.metrics import is_percentile_supported
from iolab.analysis.points import PointSummary
from iolab.analysis.steady import rule_measured_window
from iolab.core.metric import Metric, RunResult
from iolab.core.run import RunKey, RunRecord
from iolab.core.study import Study
from iolab.core.workload import OperationEnum, Workload
from iolab.loads.keyvalue.charts import (
    GAIN_NOTE,
    LARGEST_NOTE,
    compare_configurations_in_groups,
    gains_document,
    key_value_best_figures,
    key_value_charts,
    largest_gains_table,
)
from iolab.loads.keyvalue.evidence import (
    HostRunsAndFacts,
    databases_at_run_start_table,
    engine_and_server_statistics_tables,
    engine_build_texts,
    servers_table,
)
from iolab.loads.keyvalue.metrics import WHOLE_OPERATIONS_RATE_KEY, sum_key_value_operations
from iolab.loads.keyvalue.tables import (
    best_point_headlines_of_group,
    headline_latency_operation,
    key_value_jobs_tables,
    key_value_point_groups,
    operations_table,
    rate_and_latency_line,
    run_metric_columns,
)
from iolab.loads.keyvalue.terminal import key_value_renderables
from iolab.loads.keyvalue.workload import (
    BinnedLatency,
    KeyOperation,
    server_details_of_run,
)
from iolab.report.best import BestFigure, BestPointHeadline
from iolab.report.brief import Brief, Charts, LatencyCurves, LoadReport, MeasurementSource
from iolab.report.charts.chart import Chart, ChartGroup
from iolab.report.charts.distribution import StyledLatencyCurve, build_latency_distribution_chart
from iolab.report.charts.palette import ColorToken, series_color_token
from iolab.report.charts.run_series import (
    NAMED_PERCENTS,
    distribute_over_cells,
    inverse_tail_fraction,
    latency_curve,
    operation_record,
    p99_ns_by_cell,
)
from iolab.report.charts.series import (
    LatencyCurve,
    Panel,
    RunAnchors,
    RunChartData,
    TimeGrid,
    panel_line_from_array,
)
from iolab.report.results import points_and_runs_markdown
from iolab.report.runs import runs_table
from iolab.report.table import Table
from iolab.report.terminal import Screen, point_rows, point_sort_key

RUNS_MAX: Final = 512
"""Runs whose manifests are read: each costs a few ms."""

_RUNS_TITLE: Final = "Every run on a key-value store"

_KEY_WORDS: Final = {
    KeyOperation.ALL: "all",
    KeyOperation.WRITE: "writer",
    KeyOperation.READ_MODIFY_WRITE: "rmw",
    KeyOperation.INTENDED_READ: "due read",
    KeyOperation.INTENDED_UPDATE: "due update",
    KeyOperation.INTENDED_READ_MODIFY_WRITE: "due rmw",
}
"""Operations in the room beside a panel."""

_WIDE_NOTE: Final = (
    "Of the whole run, and straight lines through the engine’s own bins, which are up to half as "
    "wide as they are high."
)


class KeyValueReport(LoadReport):
    """Operations on a key-value store, by any engine."""

    operation_enums: ClassVar[Sequence[type[OperationEnum]]] = (KeyOperation,)
    operation_noun: ClassVar[str] = "operation"

    def has_measurements(self, result: RunResult) -> bool:
        """Whether it has a rate."""
        return result.metrics[WHOLE_OPERATIONS_RATE_KEY].value is not None

    def run_figures_text_if_not_iops(self, result: RunResult) -> str:
        """All operations, and how long the main one took."""
        return rate_and_latency_line(result)

    def non_overlapping_operations(self, operation_numbers: Iterable[int]) -> set[int]:
        """All together where the engine tells that, else each as it was served."""
        operations = {KeyOperation(number) for number in operation_numbers}
        if KeyOperation.ALL in operations:
            return {KeyOperation.ALL}
        return {operation for operation in operations if not operation.is_intended}

    def has_published_figures(self, workload: Workload) -> bool:  # noqa: ARG002
        """Every workload."""
        return True

    def compared_host_metric_keys(self, result: RunResult) -> Sequence[str]:
        """The rate of all operations, and the latency of the main one."""
        main = headline_latency_operation([result.metrics])
        return (WHOLE_OPERATIONS_RATE_KEY, *(main.latency_key(name) for name in ("mean", "p99")))

    def metric_keys_and_headings(
        self, metrics: Sequence[Mapping[str, Metric]]
    ) -> Sequence[tuple[str, str]]:
        """See `run_metric_columns`."""
        return run_metric_columns(metrics)

    def host_ranking_metric_key(self, result: RunResult, workload: Workload) -> str:  # noqa: ARG002
        """The rate of all operations."""
        return WHOLE_OPERATIONS_RATE_KEY

    def latency_curves(self, record: RunRecord, whole_curve_name: str) -> LatencyCurves:
        """Each operation: of its latencies in the window, else of the engine's own bins."""
        load = sum_key_value_operations(record, rule_measured_window(record))
        hosts = list(range(len(record.hosts)))
        curves = []
        for operation in load.operations:
            windowed, binned = (
                load.histogram(operation, hosts),
                load.engine_latency_bins_of_run(operation, hosts),
            )
            if windowed is not None:
                curves.append(latency_curve(operation.display_name, windowed))
            elif binned is not None:
                curves.append(curve_from_engine_bins(binned))
        return LatencyCurves(
            LatencyCurve(whole_curve_name, 0, (), ()),
            tuple(curves),
            load.measured_part.common_window,
        )

    def timeline_panels(self, record: RunRecord, grid: TimeGrid) -> list[Panel]:
        """Rate, mean and p99 of each operation on keys; those since due stand beside the others."""
        ways = set(record.intervals.direction.tolist())
        seconds = grid.cell_lengths_s
        rates, means, tails = [], [], []
        for operation in KeyOperation:
            if operation not in ways:
                continue
            own = operation_record(record, operation)
            done = distribute_over_cells(own, grid, own.intervals.ios.astype(np.float64), operation)
            waited = distribute_over_cells(own, grid, own.intervals.lat_sum_ns, operation)
            name = _KEY_WORDS.get(operation, operation.display_name)
            if not operation.is_intended:
                rates.append(panel_line_from_array(name, done / seconds))
            if waited.any():
                with np.errstate(divide="ignore", invalid="ignore"):
                    means.append(
                        panel_line_from_array(name, np.where(done > 0, waited / done, np.nan))
                    )
                tails.append(panel_line_from_array(name, p99_ns_by_cell(own, grid)))
        return [
            Panel("Operations", "ops/s", tuple(rates)),
            Panel("Latency mean", "ns", tuple(means), is_logarithmic=True),
            Panel("Latency p99", "ns", tuple(tails), is_logarithmic=True),
        ]

    def latency_distribution_chart(
        self, subject: str, chart_data: RunChartData, color: ColorToken
    ) -> Chart | None:
        """Each operation; from wide bins only the named percentiles, with what to know of them."""
        curves = [curve for curve in chart_data.per_operation if curve.inverse_tail_fractions]
        drawn = [
            StyledLatencyCurve(
                curve, curve.name, series_color_token(index) if len(curves) > 1 else color
            )
            for index, curve in enumerate(curves)
        ]
        if not drawn:
            return None
        figure = build_latency_distribution_chart(
            subject, "Latency by percentile", drawn, "operations"
        )
        if not any(metric.has_bin_edge_interval for metric in chart_data.result.metrics.values()):
            return figure
        return replace(figure, note=f"{figure.note} {_WIDE_NOTE}")

    def best_point_headlines(
        self, study: Study, points: Sequence[PointSummary]
    ) -> tuple[BestPointHeadline, ...]:
        """Each group of operations."""
        groups = key_value_point_groups(study, points)
        return tuple(
            headline for group in groups for headline in best_point_headlines_of_group(group, study)
        )

    def best_figures(self, measurements: MeasurementSource) -> tuple[BestFigure, ...]:
        """The most operations a second of each group."""
        return key_value_best_figures(
            key_value_point_groups(measurements.study, measurements.points), measurements.study
        )

    def charts_by_workload(self, brief: Brief) -> Charts:
        """Each group, with what devices and databases told beside it."""
        groups = key_value_point_groups(brief.study, brief.points)
        gained = compare_configurations_in_groups(brief.study, groups)
        hosts = HostRunsAndFacts(brief.host_runs, brief.facts)
        charts: dict[str, list[ChartGroup]] = {}
        for group in groups:
            chart = key_value_charts(group, brief.study, hosts, brief.series_styles, gained)
            charts.setdefault(group.workload.id, []).extend([chart] if chart else [])
        return charts

    def gain_tables_with_notes(self, brief: Brief) -> tuple[tuple[Table, str], ...]:
        """The largest ones."""
        groups = key_value_point_groups(brief.study, brief.points)
        table = largest_gains_table(
            groups, compare_configurations_in_groups(brief.study, groups), brief.series_styles
        )
        return ((table, f"{GAIN_NOTE} {LARGEST_NOTE}"),) if table else ()

    def runs_needing_manifests(self, results: Sequence[RunResult]) -> tuple[RunKey, ...]:
        """All, of which the tables of databases and devices tell."""
        return tuple((result.digest, result.repeat) for result in results[:RUNS_MAX])

    def engine_build_texts(self, brief: Brief) -> tuple[str, ...]:
        """How engines were built."""
        return engine_build_texts(brief.study, brief.host_runs)

    def result_table(
        self, study: Study, results: Sequence[RunResult], anchors: RunAnchors
    ) -> Table:
        """With rates and latencies of each operation."""
        shown = self.metric_keys_and_headings([result.metrics for result in results])
        return runs_table(_RUNS_TITLE, study, results, shown, anchors)

    def job_tables(self, brief: Brief, study: Study) -> tuple[Table, ...]:
        """The jobs of each engine, and what databases and servers were."""
        jobs = {(run.point.digest, run.repeat): run.point.job for run in brief.plan.runs}
        servers = tuple(
            server
            for manifest in brief.manifests.values()
            if (server := server_details_of_run(manifest)) is not None
        )
        tables = (
            *key_value_jobs_tables(study),
            databases_at_run_start_table(jobs, brief.host_runs),
            servers_table(brief.study, servers),
        )
        return tuple(table for table in tables if table)

    def detail_tables_of_run(self, result: RunResult) -> tuple[Table, ...]:
        """What each operation did and took."""
        return (operations_table(result),)

    def engine_tables(self, brief: Brief, result: RunResult) -> tuple[Table, ...]:
        """Statistics of engine and server."""
        manifest = brief.manifests.get((result.digest, result.repeat))
        return (
            engine_and_server_statistics_tables(manifest.hosts, server_details_of_run(manifest))
            if manifest
            else ()
        )

    def terminal_screen(
        self,
        study: Study,
        results: Sequence[RunResult],  # noqa: ARG002
        points: Sequence[PointSummary],
        *,
        with_run_rows: bool,
    ) -> Screen:
        """A line a point, and the largest gains."""
        ordered = sorted(points, key=point_sort_key)
        yield from key_value_renderables(
            study, ordered, lambda point: point_rows(point, with_run_rows=with_run_rows)
        )

    def markdown_tables(self, study: Study, results: Sequence[RunResult]) -> str:
        """The points where they have repeats, then the runs."""
        shown = self.metric_keys_and_headings([result.metrics for result in results])
        runs = runs_table(_RUNS_TITLE, study, results, shown, {}, max_rows=len(results))
        return points_and_runs_markdown(study, results, shown, runs)

    def result_document_parts(
        self,
        study: Study,
        points: Sequence[PointSummary],
        results: Sequence[RunResult],  # noqa: ARG002
    ) -> dict[str, Any]:
        """What configurations gain over the first."""
        return {
            "gains": gains_document(
                compare_configurations_in_groups(study, key_value_point_groups(study, points))
            )
        }


def curve_from_engine_bins(latency: BinnedLatency) -> LatencyCurve:
    """The same from an engine's own bins, by a straight line through each."""
    total = latency.count
    named = [percent for percent in NAMED_PERCENTS if is_percentile_supported(total, percent)]
    if not named or not latency.bins:
        return LatencyCurve(latency.operation.display_name, total, (), ())
    return LatencyCurve(
        latency.operation.display_name,
        total,
        tuple(inverse_tail_fraction(percent) for percent in named),
        tuple(latency.interpolated_quantile_ns(percent / 100) for percent in named),
    )
