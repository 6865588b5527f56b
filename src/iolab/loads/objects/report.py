"""Load on objects in briefs and exports: operations and first bytes beside reads and writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

import numpy as np

from iolab.core.bins import BIN_COUNT
from iolab.core.histogram import Histogram
from iolab.core.metric import Metric, RunResult
from iolab.core.study import Study
from iolab.core.workload import Direction, OperationEnum, ServiceTimeDirection, Workload
from iolab.loads.objects.study import object_sizes_text, operation_shares_text
from iolab.loads.objects.workload import (
    ContentlessObjectOperation,
    EndpointCount,
    EndpointLatency,
    ObjectOperation,
    ObjectsHostDetails,
    ObjectsJob,
    SizeClassCount,
    objects_details_of_host,
)
from iolab.report.best import BestFigure, BestPointHeadline, build_best_figure
from iolab.report.brief import Brief, MeasurementSource
from iolab.report.numbers import DASH, metric_value_text
from iolab.report.single_figure import SingleFigureReport
from iolab.report.table import Cell, Table, row_of_cells, text_and_number_columns
from iolab.units import format_bytes, format_count, format_ns

RATE: Final = "object_ops_per_s"

WHOLE: Final = (
    *(ObjectOperation.OBJECT_GET, ObjectOperation.OBJECT_GET_RANGE, ObjectOperation.OBJECT_PUT),
    ObjectOperation.OBJECT_MULTIPART,
    *ContentlessObjectOperation,
)
FIRST_BYTES: Final = (
    ObjectOperation.OBJECT_GET_FIRST_BYTE,
    ObjectOperation.OBJECT_GET_RANGE_FIRST_BYTE,
)


class ObjectsReport(SingleFigureReport):
    """Operations a second, their latencies, and the first bytes of what is read."""

    operation_enums: ClassVar[Sequence[type[OperationEnum]]] = (
        Direction,
        ServiceTimeDirection,
        ObjectOperation,
        ContentlessObjectOperation,
    )

    def has_measurements(self, result: RunResult) -> bool:
        """Whether any operation was done."""
        rate = result.metrics.get(RATE)
        return rate is not None and bool(rate.value)

    def run_figures_text_if_not_iops(self, result: RunResult) -> str | None:
        """Of operations without contents, which have neither IOPS nor bandwidth."""
        iops = result.metrics.get("iops")
        if iops is not None and iops.value is not None:
            return None
        rates = [
            f"{_operation_title(operation)} {metric_value_text(rate)}, mean "
            f"{metric_value_text(result.metrics.get(operation.latency_key('mean')))}"
            for operation in ContentlessObjectOperation
            if (rate := result.metrics.get(operation.rate_key)) is not None
        ]
        return "; ".join(rates) or None

    def best_figures(self, measurements: MeasurementSource) -> tuple[BestFigure, ...]:
        """Of each workload its figure with the latencies of its operations."""
        headlines = self.best_point_headlines(measurements.study, measurements.points)
        return tuple(
            build_best_figure(headline, _latency_names_and_texts(headline))
            for headline in headlines
        )

    def metric_keys_and_headings(
        self, metrics: Sequence[Mapping[str, Metric]]
    ) -> Sequence[tuple[str, str]]:
        """Rates, then the latencies of the operations that there were."""
        present = {key for each in metrics for key, metric in each.items() if metric.value}
        return [(key, title) for key, title in RUN_COLUMNS if key in present or key == RATE]

    def job_tables(self, brief: Brief, study: Study) -> tuple[Table, ...]:  # noqa: ARG002
        """The operations and objects of each workload, and where they lie."""
        return (workloads_table(study), object_stores_table(study))

    def engine_tables(self, brief: Brief, result: RunResult) -> tuple[Table, ...]:
        """What went over each endpoint, and to objects of which size, in the whole run."""
        manifest = brief.manifests.get((result.digest, result.repeat))
        if manifest is None:
            return ()
        runs = [run for host in manifest.hosts if (run := objects_details_of_host(host))]
        tables = (
            endpoints_table(runs),
            endpoint_latencies_table(runs),
            object_size_latencies_table(runs),
        )
        return tuple(table for table in tables if table.rows)


def _latency_names_and_texts(headline: BestPointHeadline) -> tuple[tuple[str, str], ...]:
    metrics = {} if headline.best is None else headline.best.metrics
    return tuple(
        (f"{operation.display_name.removeprefix('object-')} {name}", metric_value_text(metric))
        for operation in (*FIRST_BYTES, *WHOLE)
        for name in ("p50", "p99")
        if (metric := metrics.get(operation.latency_key(name))) is not None
        if metric.value is not None
    )


def _operation_title(operation: OperationEnum) -> str:
    words = operation.display_name.removeprefix("object-").split("-")
    return " ".join([words[0].upper() if words[0] != "multipart" else "Multipart", *words[1:]])


RUN_COLUMNS: Final = (
    (RATE, "Operations/s"),
    ("bw_bytes_per_s", "Bandwidth"),
    *(
        (operation.latency_key("p99"), f"{_operation_title(operation)} p99")
        for operation in FIRST_BYTES
    ),
    *(
        (operation.latency_key(name), f"{_operation_title(operation)} {name}")
        for operation in WHOLE
        for name in ("p50", "p99")
    ),
    ("failed_operation_share", "Failed"),
    ("attempts_per_operation", "Attempts"),
    ("connections_opened", "Opened"),
    ("operations_per_core_s", "Per core-second"),
    ("generator_limit_ops_per_s", "Generator's limit"),
)


def endpoints_table(host_details: Sequence[ObjectsHostDetails]) -> Table:
    """What all hosts did over each endpoint."""
    counts: dict[str, list[EndpointCount]] = {}
    for run in host_details:
        for count in run.endpoints:
            counts.setdefault(count.endpoint, []).append(count)
    rows: list[tuple[Cell, ...]] = []
    for endpoint, every in counts.items():
        done = sum(count.operations for count in every)
        lat_sum_ns = sum(count.lat_sum_ns for count in every)
        rows.append(
            row_of_cells(
                endpoint,
                str(len(every)),
                format_count(done),
                format_bytes(sum(count.bytes for count in every)),
                format_ns(lat_sum_ns / done) if done else DASH,
                format_count(sum(count.failed for count in every)),
            )
        )
    numbers = ("Hosts", "Operations", "Contents", "Mean latency", "Failed")
    columns = text_and_number_columns(("Endpoint",), numbers)
    return Table("Endpoints, in the whole run", columns, tuple(rows))


def endpoint_latencies_table(host_details: Sequence[ObjectsHostDetails]) -> Table:
    """The latencies of all hosts by endpoint, merged bin by bin."""
    counts: dict[tuple[str, str], list[EndpointLatency]] = {}
    for run in host_details:
        for endpoint in run.endpoints:
            for count in endpoint.latencies:
                counts.setdefault((endpoint.endpoint, count.operation), []).append(count)
    rows = tuple(
        row_of_cells(
            endpoint,
            operation.replace("_", "-"),
            format_count(sum(count.done for count in every)),
            *_mean_p50_p99_cells(every),
        )
        for (endpoint, operation), every in counts.items()
    )
    numbers = ("Operations", "Mean", "p50", "p99")
    columns = text_and_number_columns(("Endpoint", "Operation"), numbers)
    return Table("Latencies by endpoint, in the whole run", columns, rows)


def _mean_p50_p99_cells(counts: Sequence[EndpointLatency | SizeClassCount]) -> tuple[str, str, str]:
    """Mean, p50 and p99 of all of them together."""
    merged = np.zeros(BIN_COUNT, dtype=np.int64)
    for count in counts:
        for index, number in count.bins:
            merged[index] += number
    histogram, done = Histogram(merged), sum(count.done for count in counts)
    mean = format_ns(sum(count.lat_sum_ns for count in counts) / done) if done else DASH
    known = [histogram.percentile_ns(percent) for percent in (50.0, 99.0)]
    p50, p99 = (DASH if ns is None else format_ns(ns) for ns in known)
    return mean, p50, p99


def object_size_latencies_table(host_details: Sequence[ObjectsHostDetails]) -> Table:
    """The latencies of all hosts by the sizes of objects, merged bin by bin."""
    counts: dict[tuple[str, int], list[SizeClassCount]] = {}
    for run in host_details:
        for count in run.sizes:
            counts.setdefault((count.operation, count.limit_bytes), []).append(count)
    rows: list[tuple[Cell, ...]] = []
    for (operation, limit_bytes), every in sorted(counts.items()):
        rows.append(
            row_of_cells(
                operation.replace("_", "-"),
                f"up to {format_bytes(limit_bytes)}",
                format_count(sum(count.done for count in every)),
                format_bytes(sum(count.bytes for count in every)),
                *_mean_p50_p99_cells(every),
            )
        )
    numbers = ("Operations", "Contents", "Mean", "p50", "p99")
    columns = text_and_number_columns(("Operation", "Objects"), numbers)
    return Table("Sizes of objects, in the whole run", columns, tuple(rows))


def workloads_table(study: Study) -> Table:
    """What each workload does with which objects."""
    texts = ("Workload", "Operations", "Objects", "Prefixes", "Parts", "At a time", "Rate")
    rows = tuple(
        row_of_cells(
            workload.title,
            operation_shares_text(job),
            _object_count_and_sizes_text(workload, job),
            format_count(job.prefix_count),
            format_bytes(job.part_bytes) if job.has_multipart_objects and job.part_bytes else DASH,
            workload.axis_values_texts.get("concurrency", str(job.concurrency)),
            workload.axis_values_texts.get("rate", str(job.rate or DASH)),
        )
        for workload in study.workloads
        if isinstance(job := workload.job, ObjectsJob)
    )
    return Table("Workloads on objects", text_and_number_columns(texts), rows)


def _object_count_and_sizes_text(workload: Workload, job: ObjectsJob) -> str:
    sizes = workload.axis_values_texts.get("size") or object_sizes_text(job)
    return f"{format_count(job.object_count)} of {sizes}"


def object_stores_table(study: Study) -> Table:
    """Where the objects of each configuration lie, and how requests go there."""
    texts = ("Configuration", "Endpoints", "Bucket", "Addressing", "Encrypted", "Contents signed")
    rows = tuple(
        row_of_cells(
            configuration.title,
            ", ".join(store.endpoints),
            store.bucket,
            store.addressing.value,
            "yes" if store.uses_tls else "no",
            store.payload.value,
        )
        for configuration in study.configurations
        if (store := configuration.object_store) is not None
    )
    return Table("Object stores", text_and_number_columns(texts), rows)
