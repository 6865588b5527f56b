"""Checkpoint load in briefs and exports: how long a save and a restore take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iolab.core.metric import Metric, Result
from iolab.core.study import Study
from iolab.core.workload import Workload
from iolab.loads.checkpoint.metric_specs import RESTORE, SAVE, SAVE_RATE
from iolab.loads.checkpoint.models import MODELS
from iolab.loads.checkpoint.workload import CheckpointJob
from iolab.report.best import BestFigure, Headline, best_figure
from iolab.report.brief import Brief, MeasurementSource
from iolab.report.numbers import DASH, metric_value_text
from iolab.report.single_figure import SingleFigureReport
from iolab.report.table import Table, row_of_cells, text_and_number_columns
from iolab.units import format_bytes


class CheckpointReport(SingleFigureReport):
    """Times of saves and restores, and the rates that they come to."""

    def has_measurements(self, result: Result) -> bool:
        """Whether a save ended."""
        save = result.metrics.get(SAVE.key)
        return save is not None and save.value is not None

    def figure_text(self, result: Result, workload: Workload) -> str:
        """The time that its workload is run for."""
        return metric_value_text(result.metrics.get(workload.headline_metric or SAVE.key))

    def host_ranking_metric_key(self, result: Result, workload: Workload) -> str:  # noqa: ARG002
        """The rate of the save."""
        return SAVE_RATE.key

    def best_figures(self, measurements: MeasurementSource) -> tuple[BestFigure, ...]:
        """Of each workload its time with the other phase's."""
        headlines = self.best_point_headlines(measurements.study, measurements.points)
        return tuple(best_figure(headline, _phase_texts(headline)) for headline in headlines)

    def metric_columns(self, metrics: Sequence[Mapping[str, Metric]]) -> Sequence[tuple[str, str]]:  # noqa: ARG002
        """Times, rates, and what the published way of computing gives."""
        return RUN_COLUMNS

    def job_tables(self, brief: Brief, study: Study) -> tuple[Table, ...]:  # noqa: ARG002
        """The checkpoints: models, layouts and sizes."""
        return (workloads_table(study),)


def _phase_texts(headline: Headline) -> tuple[tuple[str, str], ...]:
    metrics = {} if headline.best is None else headline.best.metrics
    return tuple(
        (name, metric_value_text(metrics[key]))
        for name, key in (("save", SAVE.key), ("restore", RESTORE.key))
        if key in metrics
    )


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


def workloads_table(study: Study) -> Table:
    """What each workload saves and restores."""
    texts = ("Workload", "Model", "Layout", "Ranks", "Files", "Bytes", "Durable", "Restored by")
    rows = tuple(
        row_of_cells(
            workload.title,
            MODELS[job.model].title,
            str(job.layout) if job.shrink == 1 else f"{job.layout}, tensors / {job.shrink}",
            f"{job.ranks:,}",
            f"{job.checkpoint.file_count:,}",
            format_bytes(job.checkpoint.total_bytes),
            str(job.durable),
            f"{job.restore_ranks:,} ranks" if job.restore_ranks else DASH,
        )
        for workload in study.workloads
        if isinstance(job := workload.job, CheckpointJob)
    )
    return Table("Checkpoints", text_and_number_columns(texts), rows)
