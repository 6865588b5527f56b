"""Load of which one figure and one latency tell a run, in briefs and exports.

Its operations are counted as I/Os: as reads, writes and trims. A kind of load begins with this
class, and says itself only what is different about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from iolab.analysis.points import PointSummary
from iolab.core.metric import Metric, Result, directions_in
from iolab.core.metric_spec import MEAN, declared_among, spec_of
from iolab.core.run import RunRecord
from iolab.core.study import Study
from iolab.core.workload import Direction, Workload
from iolab.report.best import (
    NOT_KNOWN,
    BestFigure,
    Headline,
    best_figure,
    by_operation,
    headlines_of,
)
from iolab.report.brief import Charts, Latencies, LoadReport, Measurements
from iolab.report.numbers import show
from iolab.report.results import POINT_METRICS, runs_markdown
from iolab.report.runs import SHOWN_METRICS, every_run, io_columns
from iolab.report.table import Table

if TYPE_CHECKING:
    from iolab.report.brief import Brief
    from iolab.report.charts.chart import Figure
    from iolab.report.charts.palette import Token
    from iolab.report.charts.series import Anchors, Grid, Panel, RunDetail
    from iolab.report.terminal import Screen


class OneFigureReport(LoadReport):
    """Rates and latencies of I/Os."""

    has_one_figure: ClassVar[bool] = True

    def is_measured(self, result: Result) -> bool:
        """Whether it has a rate."""
        rate = result.metrics.get("iops")
        return rate is not None and rate.value is not None

    def figure(self, result: Result, workload: Workload) -> str:
        """The figure that its workload is run for."""
        figure = show(result.metrics.get(workload.figure))
        return f"{figure} mean" if spec_of(workload.figure).statistic == MEAN else figure

    def columns(self, metrics: Sequence[Mapping[str, Metric]]) -> Sequence[tuple[str, str]]:
        """See `io_columns`."""
        return io_columns(metrics)

    def host_key(self, result: Result, workload: Workload) -> str:  # noqa: ARG002
        """The rate that its workload is run for."""
        return workload.rate

    def latencies(self, record: RunRecord, name: str) -> Latencies:
        """Reads and writes apart."""
        from iolab.analysis.steady import measured_window
        from iolab.analysis.sums import DIRECTIONS, measure
        from iolab.report.charts.run_series import curve_of

        load = measure(record, measured_window(record))
        hosts = list(range(len(record.hosts)))
        every = [int(direction) for direction in DIRECTIONS]
        busy = [way for way in every if load.bins[:, way].sum()]
        return Latencies(
            whole=curve_of(name, load.histogram(hosts, every)),
            curves=tuple(
                curve_of(Direction(way).key, load.histogram(hosts, [way])) for way in busy
            ),
            window=load.cut.common,
        )

    def panels(self, record: RunRecord, grid: Grid) -> list[Panel]:
        """See `load_panels`."""
        from iolab.report.charts.run_series import load_panels

        return load_panels(record, grid)

    def distribution(self, subject: str, detail: RunDetail, token: Token) -> Figure | None:
        """See `run_distribution`."""
        from iolab.report.charts.choose import run_distribution

        return run_distribution(subject, detail, token)

    def headlines(self, study: Study, points: Sequence[PointSummary]) -> tuple[Headline, ...]:
        """Every workload in every configuration that has results."""
        return headlines_of(study, points, self.jobs)

    def best_figures(self, measurements: Measurements) -> tuple[BestFigure, ...]:
        """Of each workload its figure with the mean latency and p99.5."""
        headlines = self.headlines(measurements.study, measurements.points)
        return tuple(best_figure(headline, _latencies(headline)) for headline in headlines)

    def charts(self, brief: Brief) -> Charts:
        """Throughput and latency against the axis, and latency by percentile."""
        from iolab.report.charts.choose import load_charts

        own = [workload for workload in brief.study.workloads if self.makes(workload)]
        return load_charts(brief, own)

    def result_table(self, study: Study, results: Sequence[Result], anchors: Anchors) -> Table:
        """With rates and latencies."""
        shown = self.columns([result.metrics for result in results])
        return every_run("Every run", study, results, shown, anchors)

    def job_tables(self, brief: Brief, study: Study) -> tuple[Table, ...]:  # noqa: ARG002
        """None: the study, which reports show, says what its workloads are."""
        return ()

    def screen(
        self,
        study: Study,
        results: Sequence[Result],  # noqa: ARG002
        points: Sequence[PointSummary],
        *,
        repeats: bool,
    ) -> Screen:
        """A line a point."""
        from iolab.report.terminal import points_screen  # and rich, which pages do without

        yield points_screen(study, points, repeats=repeats)

    def markdown(self, study: Study, results: Sequence[Result]) -> str:
        """The points where they have repeats, then the runs."""
        own = declared_among(result.metrics for result in results)
        shown = (*SHOWN_METRICS, *own)
        runs = every_run("Every run", study, results, shown, {}, most=len(results))
        return runs_markdown(study, results, (*POINT_METRICS, *own), runs)


_SHOWN: Final = (("mean", "lat_ns_mean"), ("p99.5", "lat_ns_p99_5"))
"""Latencies beside a figure; of a mix each operation has its own."""


def _latencies(headline: Headline) -> tuple[tuple[str, str], ...]:
    """What is known of the latency where it is not the figure itself; of a mix by operation."""
    best = headline.best
    if best is None:
        return ()
    ways = directions_in(best.metrics)
    mixed = len(ways) > 1
    latencies = []
    for name, key in _SHOWN:
        parts = [
            (way, show(metric))
            for way in ways
            if (metric := best.metrics[f"{way}_{key}"]).value is not None
        ]
        overall = best.metrics.get(key, NOT_KNOWN)
        if mixed and parts:
            latencies.append((name, by_operation(parts)))
        elif overall.value is not None and key != headline.workload.metric:
            latencies.append((name, show(overall)))
    return tuple(latencies)
