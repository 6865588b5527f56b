"""Load of which one figure and one latency tell a run, in briefs and exports.

Its operations are counted as I/Os: as reads, writes and trims. A kind of load begins with this
class, and says itself only what is different about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from iolab.analysis.points import PointSummary, finite_metric_value
from iolab.core.metric import Metric, RunResult, direction_keys_with_latency
from iolab.core.metric_spec import MEAN, column_metric_keys_and_labels, metric_spec
from iolab.core.run import RunRecord
from iolab.core.study import Study
from iolab.core.workload import Direction, Workload
from iolab.report.best import (
    BestFigure,
    BestPointHeadline,
    PointFigures,
    best_point_headlines,
    build_best_figure,
    disagreeing_repeats_text,
    operation_latencies_text,
)
from iolab.report.brief import Charts, LatencyCurves, LoadReport, MeasurementSource
from iolab.report.numbers import DASH, metric_value_text
from iolab.report.results import POINT_METRICS, points_and_runs_markdown
from iolab.report.runs import SHOWN_METRICS, io_metric_keys_and_headings, runs_table
from iolab.report.table import Table

if TYPE_CHECKING:
    from iolab.report.brief import Brief
    from iolab.report.charts.chart import Chart
    from iolab.report.charts.palette import ColorToken
    from iolab.report.charts.series import Panel, RunAnchors, RunChartData, TimeGrid
    from iolab.report.terminal import Screen

_LATENCY_METRICS: Final = (("mean", "lat_ns_mean"), ("p99", "lat_ns_p99"))
"""Latencies beside a figure; of a mix each operation has its own."""


class SingleFigureReport(LoadReport):
    """Rates and latencies of I/Os."""

    is_single_figure: ClassVar[bool] = True

    def has_measurements(self, result: RunResult) -> bool:
        """Whether it has a rate."""
        rate = result.metrics.get("iops")
        return rate is not None and rate.value is not None

    def run_summary_text(self, result: RunResult, workload: Workload) -> str:
        """The figure that its workload is run for."""
        figure = metric_value_text(result.metrics.get(workload.headline_or_rate_metric))
        return (
            f"{figure} mean"
            if metric_spec(workload.headline_or_rate_metric).statistic == MEAN
            else figure
        )

    def metric_keys_and_headings(
        self, metrics: Sequence[Mapping[str, Metric]]
    ) -> Sequence[tuple[str, str]]:
        """See `io_metric_keys_and_headings`."""
        return io_metric_keys_and_headings(metrics)

    def host_ranking_metric_key(self, result: RunResult, workload: Workload) -> str:  # noqa: ARG002
        """The rate that its workload is run for."""
        return workload.rate_metric

    def latency_curves(self, record: RunRecord, whole_curve_name: str) -> LatencyCurves:
        """Reads and writes apart."""
        from iolab.analysis.scenario import baseline_window
        from iolab.analysis.steady import rule_measured_window
        from iolab.analysis.sums import DIRECTIONS, sum_measured_window
        from iolab.report.charts.run_series import latency_curve

        window = baseline_window(record) or rule_measured_window(record)
        load = sum_measured_window(record, window)
        hosts = list(range(len(record.hosts)))
        every = [int(direction) for direction in DIRECTIONS]
        busy = [way for way in every if load.bins[:, way].sum()]
        return LatencyCurves(
            all_operations=latency_curve(whole_curve_name, load.histogram(hosts, every)),
            per_operation=tuple(
                latency_curve(Direction(way).key, load.histogram(hosts, [way])) for way in busy
            ),
            window=load.measured_part.common_window,
        )

    def timeline_panels(self, record: RunRecord, grid: TimeGrid) -> list[Panel]:
        """See `throughput_and_latency_panels`."""
        from iolab.report.charts.run_series import throughput_and_latency_panels

        return throughput_and_latency_panels(record, grid)

    def latency_distribution_chart(
        self, subject: str, chart_data: RunChartData, color: ColorToken
    ) -> Chart | None:
        """See `run_latency_distribution_chart`."""
        from iolab.report.charts.choose import run_latency_distribution_chart

        return run_latency_distribution_chart(subject, chart_data, color)

    def best_point_headlines(
        self, study: Study, points: Sequence[PointSummary]
    ) -> tuple[BestPointHeadline, ...]:
        """Every workload in every configuration that has results."""
        return best_point_headlines(study, points, self.job_types)

    def best_figures(self, measurements: MeasurementSource) -> tuple[BestFigure, ...]:
        """Of each workload its figure with the mean latency and p99."""
        headlines = self.best_point_headlines(measurements.study, measurements.points)
        return tuple(
            build_best_figure(
                headline,
                _latency_names_and_texts(headline.workload, headline.best),
                _latency_names_and_texts(headline.workload, headline.least_sufficient_point),
            )
            for headline in headlines
        )

    def charts_by_workload(self, brief: Brief) -> Charts:
        """Throughput and latency against the axis, and latency by percentile.

        Where a kind has figures of its own these are in the appendix.
        """
        from iolab.report.charts.chart import ChartGroup
        from iolab.report.charts.choose import chart_groups_over_load

        workloads = list(filter(self.handles_workload, brief.study.workloads))
        charts = dict(chart_groups_over_load(brief, workloads))
        for workload in workloads:
            points = [point for point in brief.points if point.key.workload == workload.id]
            if points and (figures := self.kind_specific_charts(brief, workload, points)):
                groups = charts.get(workload.id, ())
                others = tuple(
                    figure for group in groups for figure in (*group.charts, *group.appendix_charts)
                )
                charts[workload.id] = [ChartGroup(workload.title, figures, appendix_charts=others)]
        return charts

    def kind_specific_charts(
        self,
        brief: Brief,  # noqa: ARG002 - of kinds that have any
        workload: Workload,  # noqa: ARG002 - as above
        points: Sequence[PointSummary],  # noqa: ARG002 - as above
    ) -> tuple[Chart, ...]:
        """What a kind shows of a workload's points in place of the charts of all load."""
        return ()

    def result_table(
        self, study: Study, results: Sequence[RunResult], anchors: RunAnchors
    ) -> Table:
        """With rates and latencies."""
        shown = self.metric_keys_and_headings([result.metrics for result in results])
        return runs_table("Every run", study, results, shown, anchors)

    def job_tables(self, brief: Brief, study: Study) -> tuple[Table, ...]:  # noqa: ARG002
        """None: the study, which reports show, says what its workloads are."""
        return ()

    def terminal_screen(
        self,
        study: Study,
        results: Sequence[RunResult],  # noqa: ARG002
        points: Sequence[PointSummary],
        *,
        with_run_rows: bool,
    ) -> Screen:
        """A line a point."""
        from iolab.report.terminal import points_terminal_table  # and rich, which pages do without

        yield points_terminal_table(study, points, with_run_rows=with_run_rows)

    def markdown_tables(self, study: Study, results: Sequence[RunResult]) -> str:
        """The points where they have repeats, then the runs."""
        own = column_metric_keys_and_labels(result.metrics for result in results)
        shown = (*SHOWN_METRICS, *own)
        runs = runs_table("Every run", study, results, shown, {}, max_rows=len(results))
        return points_and_runs_markdown(study, results, (*POINT_METRICS, *own), runs)


def _latency_names_and_texts(
    workload: Workload, point: PointFigures | None
) -> tuple[tuple[str, str], ...]:
    """What is known of the latency where it is not the figure itself; of a mix by operation."""
    if point is None:
        return ()
    ways = direction_keys_with_latency(point.metrics)
    mixed = len(ways) > 1
    latencies = []
    for name, key in _LATENCY_METRICS:
        parts = [
            (way, _latency_with_repeats_text(point, of_way))
            for way in ways
            if (of_way := f"{way}_{key}") in point.metrics
        ]
        if mixed and parts:
            known = [(way, text) for way, text in parts if text != DASH]
            latencies.append((name, operation_latencies_text(known) or DASH))
        elif key in point.metrics and key != workload.headline_metric:
            latencies.append((name, _latency_with_repeats_text(point, key)))
    return tuple(latencies)


def _latency_with_repeats_text(best: PointFigures, metric_key: str) -> str:
    """A latency, with the range of a tail's repeats where these disagree: it has no interval."""
    text = metric_value_text(best.metrics[metric_key])
    if metric_spec(metric_key).statistic == MEAN or text == DASH:
        return text
    values = (finite_metric_value(run, metric_key) for run in best.results)
    span = disagreeing_repeats_text(best.metrics[metric_key], values)
    return f"{text} ({span})" if span else text
