"""KV-cache load in briefs and exports: requests and prefixes beside reads and writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from iolab.analysis.points import PointSummary
from iolab.core.metric import Metric
from iolab.core.metric_spec import CPU_PER_GB
from iolab.core.study import Study
from iolab.core.workload import Direction, OperationEnum, ServiceTimeDirection, Workload
from iolab.loads.kvcache.answer import highest_rate_sentences
from iolab.loads.kvcache.charts import prefix_latency_and_rate_charts
from iolab.loads.kvcache.metrics import PREFIX_KEYS
from iolab.loads.kvcache.models import MODELS
from iolab.loads.kvcache.workload import KvCacheJob, KvCacheOperation
from iolab.report.best import BestFigure, BestPointHeadline, build_best_figure
from iolab.report.brief import Brief, MeasurementSource
from iolab.report.charts.chart import Chart
from iolab.report.numbers import DASH, metric_value_text
from iolab.report.single_figure import SingleFigureReport
from iolab.report.table import Table, row_of_cells, text_and_number_columns
from iolab.units import format_bytes, format_count

RUN_COLUMNS = (
    ("requests_per_s", "Requests/s"),
    (KvCacheOperation.PREFIX_LOAD.latency_key("mean"), "Prefix mean"),
    (KvCacheOperation.PREFIX_LOAD.latency_key("p50"), "Prefix p50"),
    (KvCacheOperation.PREFIX_LOAD.latency_key("p95"), "Prefix p95"),
    (KvCacheOperation.PREFIX_LOAD.latency_key("p99"), "Prefix p99"),
    ("prefix_rate_bytes_per_s_p50", "Prefix rate"),
    ("prefix_rate_bytes_per_s_p5", "Slow prefix rate"),
    ("hit_share", "Hits"),
    ("ideal_hit_share", "Ideal hits"),
    ("read_bw_bytes_per_s", "Read"),
    ("write_bw_bytes_per_s", "Written"),
    ("read_lat_ns_p99", "Block read p99"),
    (CPU_PER_GB.key, "CPU per GB"),
)


class KvCacheReport(SingleFigureReport):
    """Requests a second, and how long and how fast their prefixes come."""

    operation_enums: ClassVar[Sequence[type[OperationEnum]]] = (
        Direction,
        ServiceTimeDirection,
        KvCacheOperation,
    )
    uses_laid_out_files: ClassVar[bool] = True

    def best_figures(self, measurements: MeasurementSource) -> tuple[BestFigure, ...]:
        """Of each workload its figure with how long prefixes take, from when they are due."""
        headlines = self.best_point_headlines(measurements.study, measurements.points)
        return tuple(
            build_best_figure(headline, _prefix_latency_names_and_texts(headline))
            for headline in headlines
        )

    def extra_answer_text(self, study: Study, points: Sequence[PointSummary]) -> str:
        """See `highest_rate_sentences`."""
        return highest_rate_sentences(study, points)

    def kind_specific_charts(
        self, brief: Brief, workload: Workload, points: Sequence[PointSummary]
    ) -> tuple[Chart, ...]:
        """Prefixes beside their break-even."""
        return prefix_latency_and_rate_charts(workload, points, brief.series_styles)

    def metric_keys_and_headings(
        self, metrics: Sequence[Mapping[str, Metric]]
    ) -> Sequence[tuple[str, str]]:
        """Requests, prefixes and hits, then what was read and written.

        Of prefixes there are hundreds or thousands: percentiles that none has enough for are left
        out.
        """
        return [
            (key, title)
            for key, title in RUN_COLUMNS
            if key not in PREFIX_KEYS
            or any((found := own.get(key)) and found.value is not None for own in metrics)
        ]

    def job_tables(self, brief: Brief, study: Study) -> tuple[Table, ...]:  # noqa: ARG002
        """The traces, and the stores that they were replayed against."""
        return (workloads_table(study),)


def _prefix_latency_names_and_texts(headline: BestPointHeadline) -> tuple[tuple[str, str], ...]:
    metrics = {} if headline.best is None else headline.best.metrics
    return tuple(
        (f"prefix {name}", metric_value_text(metrics[key]))
        for name in ("p50", "p95", "p99")
        if (metric := metrics.get(key := KvCacheOperation.PREFIX_LOAD.latency_key(name)))
        and metric.value is not None
    )


def workloads_table(study: Study) -> Table:
    """What each workload replays, against which store."""
    texts = ("Workload", "Trace", "Model", "Store on each host", "Block", "Objects", "Requests/s")
    rows = tuple(
        row_of_cells(
            workload.title,
            f"{job.trace}, from {job.start_s:g} s on",
            f"{MODELS[job.model].title}, {format_bytes(job.kv_bytes_per_token)} a token",
            f"{format_bytes(job.capacity_bytes)}, "
            f"{format_count(job.capacity_blocks_per_client)} blocks",
            f"{job.block_tokens} tokens, {format_bytes(job.block_bytes)}",
            f"{job.objects_per_block} a block, {job.placement}, write {job.write}",
            workload.axis_values_texts.get("requests_per_s", str(job.requests_per_s or DASH)),
        )
        for workload in study.workloads
        if isinstance(job := workload.job, KvCacheJob)
    )
    return Table("KV-cache workloads", text_and_number_columns(texts), rows)
