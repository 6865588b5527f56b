"""Checkpoint load in briefs and exports: how long a save and a restore take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from iolab.analysis.points import PointSummary
from iolab.core.metric import Metric, RunResult
from iolab.core.study import Study
from iolab.core.workload import Workload
from iolab.loads.checkpoint.answer import lost_time_table, save_and_restore_sentences
from iolab.loads.checkpoint.charts import rank_times_chart
from iolab.loads.checkpoint.metric_specs import RESTORE, SAVE, SAVE_RATE
from iolab.loads.checkpoint.workload import CheckpointJob
from iolab.report.best import BestFigure, build_best_figure
from iolab.report.brief import Brief, Charts, MeasurementSource
from iolab.report.charts.chart import ChartGroup
from iolab.report.numbers import DASH, metric_value_text
from iolab.report.single_figure import SingleFigureReport
from iolab.report.table import Table, row_of_cells, text_and_number_columns
from iolab.units import format_bytes

if TYPE_CHECKING:
    from iolab.core.run import RunKey
    from iolab.report.terminal import Screen

RUNS_MAX: Final = 200
"""Runs whose manifests are read: each costs a few ms."""

RUN_COLUMNS = (
    ("save_ns", "Save"),
    ("restore_ns", "Restore"),
    ("save_bytes_per_s", "Save rate"),
    ("restore_bytes_per_s", "Restore rate"),
    ("save_sync_share", "Flush share"),
    ("save_rank_spread", "Save spread"),
    ("restore_rank_spread", "Restore spread"),
    ("restore_amplification", "Read per byte"),
    ("published_save_bytes_per_s", "Save, published way"),
    ("published_restore_bytes_per_s", "Restore, published way"),
)


class CheckpointReport(SingleFigureReport):
    """Times of saves and restores, and the rates that they come to."""

    def has_measurements(self, result: RunResult) -> bool:
        """Whether a save ended."""
        save = result.metrics.get(SAVE.key)
        return save is not None and save.value is not None

    def run_figures_text_if_not_iops(self, result: RunResult) -> str:
        """The time of each phase."""
        return ", ".join(
            f"{name} {text}" for name, text in _phase_time_names_and_texts(result.metrics)
        )

    def run_summary_text(self, result: RunResult, workload: Workload) -> str:
        """The time that its workload is run for."""
        return metric_value_text(result.metrics.get(workload.headline_metric or SAVE.key))

    def host_ranking_metric_key(self, result: RunResult, workload: Workload) -> str:  # noqa: ARG002
        """The rate of the save."""
        return SAVE_RATE.key

    def best_figures(self, measurements: MeasurementSource) -> tuple[BestFigure, ...]:
        """Of each workload its time with the other phase's."""
        headlines = self.best_point_headlines(measurements.study, measurements.points)
        return tuple(
            build_best_figure(
                headline,
                _phase_time_names_and_texts(headline.best.metrics if headline.best else {}),
            )
            for headline in headlines
        )

    def extra_answer_text(self, study: Study, points: Sequence[PointSummary]) -> str:
        """See `save_and_restore_sentences`."""
        return save_and_restore_sentences(study, points)

    def charts_by_workload(self, brief: Brief) -> Charts:
        """When each rank of the median run ended, before the charts of all load."""
        charts = {name: list(groups) for name, groups in super().charts_by_workload(brief).items()}
        for headline in self.best_point_headlines(brief.study, brief.points):
            if headline.best is None:
                continue
            hosts = brief.host_runs.get(headline.best.median_run.key)
            color = brief.series_styles[headline.configuration.id].color
            figure = rank_times_chart(headline.workload.title, hosts, color) if hosts else None
            if figure is not None:
                group = ChartGroup(headline.workload.title, (figure,))
                charts.setdefault(headline.workload.id, []).insert(0, group)
        return charts

    def runs_needing_manifests(self, results: Sequence[RunResult]) -> tuple[RunKey, ...]:
        """All: their manifests tell of ranks."""
        return tuple(result.key for result in results[:RUNS_MAX])

    def metric_keys_and_headings(
        self,
        metrics: Sequence[Mapping[str, Metric]],  # noqa: ARG002
    ) -> Sequence[tuple[str, str]]:
        """Times, rates, and what the published way of computing gives."""
        return RUN_COLUMNS

    def terminal_screen(
        self,
        study: Study,
        results: Sequence[RunResult],
        points: Sequence[PointSummary],  # noqa: ARG002 - each checkpoint has a line
        *,
        with_run_rows: bool,  # noqa: ARG002 - as above
    ) -> Screen:
        """A line a checkpoint."""
        from iolab.report.terminal import grouped_report_table  # and rich, which pages do without

        yield grouped_report_table(self.result_table(study, results, {}))

    def job_tables(self, brief: Brief, study: Study) -> tuple[Table, ...]:
        """The checkpoints: models, layouts and sizes, and what they cost where hosts fail."""
        tables = (workloads_table(study), lost_time_table(study, brief.points))
        return tuple(table for table in tables if table)


def _phase_time_names_and_texts(metrics: Mapping[str, Metric]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, metric_value_text(metrics[key]))
        for name, key in (("save", SAVE.key), ("restore", RESTORE.key))
        if key in metrics
    )


def workloads_table(study: Study) -> Table:
    """What each workload saves and restores."""
    texts = ("Workload", "Model", "Layout", "Ranks", "Files", "Bytes", "Durable", "Restored by")
    rows = tuple(
        row_of_cells(
            workload.title,
            job.model_shape.title,
            str(job.layout) if job.shrink == 1 else f"{job.layout}, tensors / {job.shrink}",
            f"{job.ranks:,}",
            f"{job.checkpoint_files.file_count:,}",
            format_bytes(job.checkpoint_files.total_bytes),
            str(job.durable),
            f"{job.restore_ranks:,} ranks" if job.restore_ranks else DASH,
        )
        for workload in study.workloads
        if isinstance(job := workload.job, CheckpointJob)
    )
    return Table("Checkpoints", text_and_number_columns(texts), rows)
