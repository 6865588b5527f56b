"""Training-read load in briefs and exports: utilisation with its parts beside reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from iolab.analysis.points import PointSummary
from iolab.core.metric import Metric
from iolab.core.metric_spec import CPU_PER_GB
from iolab.core.study import Study
from iolab.core.workload import Direction, OperationEnum, Workload
from iolab.loads.training.answer import accelerator_utilisation_sentences
from iolab.loads.training.charts import step_parts_chart
from iolab.loads.training.datasets import CUSTOM, SAMPLE_SETS
from iolab.loads.training.metric_specs import (
    ACCELERATORS_FED,
    BARRIER_WAIT,
    FIRST_EPOCH_UTILISATION,
    LATENESS,
    PUBLISHED_UTILISATION,
    SAMPLES,
    STORAGE_WAIT,
    UTILISATION,
)
from iolab.loads.training.workload import TrainingJob, TrainingOperation
from iolab.report.best import BestFigure, BestPointHeadline, build_best_figure
from iolab.report.brief import Brief, MeasurementSource
from iolab.report.charts.chart import Chart
from iolab.report.numbers import metric_value_text
from iolab.report.single_figure import SingleFigureReport
from iolab.report.table import Table, row_of_cells, text_and_number_columns
from iolab.text import percent_text
from iolab.units import format_bytes, format_count, format_ns, format_rate_bytes

RUN_COLUMNS = (
    (ACCELERATORS_FED.key, "Accelerators fed"),
    (UTILISATION.key, "Utilisation"),
    (STORAGE_WAIT.key, "Storage wait"),
    (BARRIER_WAIT.key, "Barrier wait"),
    (LATENESS.key, "Emulator late"),
    (PUBLISHED_UTILISATION.key, "Published formula"),
    (FIRST_EPOCH_UTILISATION.key, "First epoch"),
    (SAMPLES.key, "Samples/s"),
    ("read_bw_bytes_per_s", "Read"),
    (TrainingOperation.BATCH_LOAD.latency_key("p50"), "Batch p50"),
    (TrainingOperation.BATCH_LOAD.latency_key("p99"), "Batch p99"),
    (CPU_PER_GB.key, "CPU per GB"),
)


class TrainingReport(SingleFigureReport):
    """How much of their time accelerators compute, and what they wait for else."""

    operation_enums: ClassVar[Sequence[type[OperationEnum]]] = (Direction, TrainingOperation)
    uses_laid_out_files: ClassVar[bool] = True

    def best_figures(self, measurements: MeasurementSource) -> tuple[BestFigure, ...]:
        """Of each workload its figure with the utilisation, and how long storage is waited for."""
        headlines = self.best_point_headlines(measurements.study, measurements.points)
        return tuple(
            build_best_figure(headline, _storage_wait_names_and_texts(headline))
            for headline in headlines
        )

    def extra_answer_text(self, study: Study, points: Sequence[PointSummary]) -> str:
        """See `accelerator_utilisation_sentences`."""
        return accelerator_utilisation_sentences(study, points)

    def kind_specific_charts(
        self, brief: Brief, workload: Workload, points: Sequence[PointSummary]
    ) -> tuple[Chart, ...]:
        """What the time of accelerators consists of."""
        figure = step_parts_chart(workload, points, brief.series_styles)
        return () if figure is None else (figure,)

    def metric_keys_and_headings(
        self,
        metrics: Sequence[Mapping[str, Metric]],  # noqa: ARG002
    ) -> Sequence[tuple[str, str]]:
        """Utilisation and its parts, then what was read."""
        return RUN_COLUMNS

    def job_tables(self, brief: Brief, study: Study) -> tuple[Table, ...]:  # noqa: ARG002
        """The data sets, and the accelerators that read them."""
        return (workloads_table(study),)


def _storage_wait_names_and_texts(headline: BestPointHeadline) -> tuple[tuple[str, str], ...]:
    metrics = {} if headline.best is None else headline.best.metrics
    return tuple(
        (spec.label, metric_value_text(metrics[spec.key]))
        for spec in (UTILISATION, STORAGE_WAIT)
        if spec.key in metrics
    )


def workloads_table(study: Study) -> Table:
    """What each workload reads, for which accelerators."""
    texts = (
        "Workload",
        "Data set",
        "Files on each host",
        "Sample",
        "Accelerators",
        "Step",
        "Reads if never waiting",
        "Loaders",
        "Well fed from",
    )
    rows = tuple(
        row_of_cells(
            workload.title,
            job.dataset if job.dataset == CUSTOM else SAMPLE_SETS[job.dataset].title,
            f"{format_count(job.files)} of {format_bytes(job.file_bytes)}",
            format_bytes(job.sample_bytes)
            + (f" ± {format_bytes(job.sample_stdev)}" if job.sample_stdev else ""),
            f"{workload.axis_values_texts.get('accelerators', job.accelerators)} {job.accelerator}",
            f"{job.batch} samples, {format_ns(job.compute_ns)}",
            f"{format_rate_bytes(job.bytes_per_s_of_accelerator)} each",
            f"{job.loaders} each, {job.prefetch} batches ahead, {format_bytes(job.read_bytes)}",
            percent_text(job.threshold),
        )
        for workload in study.workloads
        if isinstance(job := workload.job, TrainingJob)
    )
    return Table("Training-read workloads", text_and_number_columns(texts), rows)
