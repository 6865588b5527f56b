"""What an imported run comes to: the tool's own figures, and over several clients their sums.

Of one client every figure is the tool's own. Of several, rates are added where the clients may have
run at the same time, percentiles come from bins that are merged one by one, and where there are no
bins there is no percentile: those of parts cannot be averaged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Final

import numpy as np

from iolab.analysis.metrics import METRIC_KEYS, is_percentile_supported, metrics_or_unknown_by_key
from iolab.analysis.view import RunView
from iolab.core.bins import PERCENTILES as RESULT_PERCENTILES
from iolab.core.histogram import Histogram, dense_counts
from iolab.core.metric import Metric
from iolab.core.run import RunRecord
from iolab.importers.foreign_run import (
    ImportedClientDetails,
    ImportedJob,
    ImportedRunDetails,
    OperationFigures,
)

PERCENTILES: Final = tuple(
    sorted({*RESULT_PERCENTILES, ("p90", 90.0), ("p95", 95.0)}, key=itemgetter(1))
)
"""The percentiles of a result that tools print, with their names in keys."""


class ImportedView(RunView, kw_only=True):
    """An imported run as its checks see it; `clients` in the order of the record's hosts.

    `client_spans_ns` are when each client ran by one clock, as (start, end) in ns; None is not
    told.
    """

    imported_run: ImportedRunDetails
    clients: tuple[ImportedClientDetails, ...]
    client_spans_ns: tuple[tuple[int, int] | None, ...]
    histograms: Mapping[tuple[int, str], Histogram]

    @property
    def job(self) -> ImportedJob:
        """What its file tells of its options."""
        return ImportedJob.require_type(self.record.run.point.job)

    @property
    def has_measured_load(self) -> bool:
        """Whether the file tells of any operation."""
        every = (figure for client in self.clients for figure in client.figures)
        return any(
            figure.count or figure.rate_per_s or figure.bytes or figure.bw_bytes_per_s
            for figure in every
        )

    @property
    def overlap_share(self) -> float | None:
        """The share of the whole time in which all clients ran; None where it is not told."""
        spans = [span for span in self.client_spans_ns if span is not None]
        if len(spans) < len(self.client_spans_ns) or not spans:
            return None
        begin, end = max(span[0] for span in spans), min(span[1] for span in spans)
        total = max(span[1] for span in spans) - min(span[0] for span in spans)
        return max(end - begin, 0) / total if total > 0 else None

    @property
    def can_add_rates(self) -> bool:
        """Whether the clients' rates may be added: nothing says that they ran apart."""
        return self.imported_run.summed_phase_count == 1 and (
            len(self.clients) == 1 or self.overlap_share != 0
        )


def histograms_by_client_and_operation(record: RunRecord) -> dict[tuple[int, str], Histogram]:
    """The latencies of each client and operation, with the extremes that its tool tells."""
    job, by_operation = ImportedJob.require_type(record.run.point.job), {}
    for index, host in enumerate(record.hosts):
        for figure in ImportedClientDetails.require_type(host.details).figures:
            way = job.operation_code(figure.operation)
            rows = (record.bins.host == index) & (record.bins.direction == way)
            if not rows.any():
                continue
            counts = dense_counts(record.bins.bin[rows], record.bins.count[rows])
            low, high = figure.lat_min_ns, figure.lat_max_ns
            by_operation[index, figure.operation] = Histogram(
                counts, None if low is None else int(low), None if high is None else round(high)
            )
    return by_operation


def fleet_metrics(view: ImportedView) -> dict[str, Metric]:
    """The metrics of all clients together; none has a value where their rates may not be added."""
    hosts = list(range(len(view.clients)))
    metrics = _metrics_of_hosts(view, hosts)
    if view.can_add_rates:
        return metrics
    return {key: Metric(None, metric.unit) for key, metric in metrics.items()}


def host_metrics(view: ImportedView, host_index: int) -> dict[str, Metric]:
    """The metrics of one client."""
    return _metrics_of_hosts(view, [host_index])


def _metrics_of_hosts(view: ImportedView, host_indexes: Sequence[int]) -> dict[str, Metric]:
    job = view.job
    rate = "iops" if job.is_io else "ops_per_s"
    by_operation = {
        operation: [
            (index, figure)
            for index in host_indexes
            for figure in view.clients[index].figures
            if figure.operation == operation
        ]
        for operation in job.operations
    }
    every = [pair for pairs in by_operation.values() for pair in pairs]
    # What every result of I/O has, also where no read or no write was told of.
    values: dict[str, float | None] = dict.fromkeys(METRIC_KEYS) if job.is_io else {}
    values |= _metric_values(view, "", rate, every)
    for operation, pairs in by_operation.items():
        values |= _metric_values(view, f"{operation}_", rate, pairs)
    return metrics_or_unknown_by_key(values, values)


def _metric_values(
    view: ImportedView,
    prefix: str,
    rate_key: str,
    hosts_and_figures: Sequence[tuple[int, OperationFigures]],
) -> dict[str, float | None]:
    """Rate, bandwidth and latencies of those figures together, by key."""
    figures = [figure for _, figure in hosts_and_figures if figure.count != 0] or [
        figure for _, figure in hosts_and_figures
    ]
    figures = [figure for figure in figures if prefix or figure.weight]
    weights = [1 if prefix else figure.weight for figure in figures]
    rates = [figure.rate_per_s for figure in figures]
    values: dict[str, float | None] = {
        f"{prefix}{rate_key}": _weighted_sum_if_all_known(rates, weights)
    }
    bandwidth = _weighted_sum_if_all_known([figure.bw_bytes_per_s for figure in figures], weights)
    if not prefix:
        hosts_and_figures = [
            (index, figure) for index, figure in hosts_and_figures if figure.weight > 0
        ]
        figures = [figure for figure in figures if figure.weight > 0]
    if rate_key == "iops" or bandwidth is not None:
        values[f"{prefix}bw_bytes_per_s"] = bandwidth
    values[f"{prefix}lat_ns_mean"] = _mean_latency_ns(figures)
    for name, percent in PERCENTILES:
        values[f"{prefix}lat_ns_{name}"] = _percentile_ns(view, hosts_and_figures, percent)
    highest = [figure.lat_max_ns for figure in figures]
    maxima = [value for value in highest if value is not None]
    values[f"{prefix}lat_ns_max"] = max(maxima) if maxima and None not in highest else None
    return values


def _weighted_sum_if_all_known(
    values: Sequence[float | None], weights: Sequence[int]
) -> float | None:
    pairs = zip(values, weights, strict=True)
    weighted = [value * weight for value, weight in pairs if value is not None]
    return sum(weighted) if weighted and len(weighted) == len(values) else None


def _mean_latency_ns(figures: Sequence[OperationFigures]) -> float | None:
    """The mean latency, in which every operation weighs the same."""
    if len(figures) == 1:
        return figures[0].lat_mean_ns
    waited, total = 0.0, 0
    for figure in figures:
        if figure.lat_mean_ns is None or figure.count is None:
            return None
        waited, total = waited + figure.lat_mean_ns * figure.count, total + figure.count
    return waited / total if total else None


def _percentile_ns(
    view: ImportedView, hosts_and_figures: Sequence[tuple[int, OperationFigures]], percent: float
) -> float | None:
    """The tool's own of one client and operation, of several that of their merged bins."""
    used = [(index, figure) for index, figure in hosts_and_figures if figure.count != 0]
    counts = [figure.count for _, figure in used]
    total = sum(count for count in counts if count is not None)
    if not used or (None not in counts and not is_percentile_supported(total, percent)):
        return None
    if len(used) == 1:
        own = dict(used[0][1].percentiles)
        if percent in own:
            return own[percent]
    parts = [view.histograms.get((index, figure.operation)) for index, figure in used]
    merged = Histogram(np.zeros_like(parts[0].counts)) if parts[0] is not None else None
    for part in parts:
        if part is None or merged is None:
            return None
        merged = merged.merged_with(part)
    return None if merged is None else merged.percentile_ns(percent)


def client_start_and_end_times_ns(record: RunRecord) -> tuple[tuple[int, int] | None, ...]:
    """When each client ran, where its file tells."""
    return tuple(
        None
        if host.start_real_ns is None or host.end_real_ns is None
        else (host.start_real_ns, host.end_real_ns)
        for host in record.hosts
    )


def shortest_client_measured_s(view: ImportedView) -> float | None:
    """The least time that any client was measured; None where none is told."""
    seconds = [
        max(spans)
        for client in view.clients
        if (spans := [each.seconds for each in client.figures if each.seconds is not None])
    ]
    return min(seconds) if seconds and len(seconds) == len(view.clients) else None
