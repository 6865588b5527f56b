"""Results for other tools: the `show --json` document, CSV, Markdown, and columns for Parquet.

The JSON is a contract: `schema/show.json` describes it, docs/reference/show.md explains it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import to_builtins

from iolab.analysis.curves import session_load_findings
from iolab.analysis.points import AxisValues, PointKey, PointSummary, summarise_points
from iolab.core.configuration import Configuration
from iolab.core.metric import (
    Evidence,
    HostResult,
    HypervisorResult,
    LatencyLayer,
    Metric,
    RunResult,
)
from iolab.core.study import Study
from iolab.core.workload import Direction
from iolab.report.best import UNKNOWN_METRIC
from iolab.report.brief import LoadReportKinds
from iolab.report.drives import drive_wear_document
from iolab.report.numbers import (
    DASH,
    all_axis_names,
    finite_number_or_none,
    interval_and_runs_text,
    json_object_of_record,
    metric_value_text,
)
from iolab.report.phrases import document_of_load_findings
from iolab.report.power import meter_power_document
from iolab.report.table import (
    Column,
    ExportValue,
    Table,
    escape_markdown,
    row_of_cells,
    rows_csv,
    table_markdown,
    text_and_number_columns,
)
from iolab.store.verify import Damage
from iolab.units import NS_PER_S

if TYPE_CHECKING:
    from iolab.core.samples import IntervalTable

POINT_METRICS: Final = (
    ("iops", "IOPS"),
    ("bw_bytes_per_s", "Bandwidth"),
    ("lat_ns_mean", "Latency mean"),
    ("lat_ns_p99", "p99"),
    ("lat_ns_p99_9", "p99.9"),
)

FORMAT: Final = 1
"""The number of the JSON document's format; it changes when a reader would have to."""

POINTS_NOTE: Final = "Published values with their 95 % intervals over n runs; each run follows."

TEXT_COLUMNS: Final = frozenset(
    {
        "steadiness",
        *(
            "configuration",
            "workload",
            "status",
            "verdict",
            "objections",
            "failure",
            "failure_hint",
            "digest",
        ),
        *("excluded_hosts", "notes", "node", "outliers", "host", "operation"),
    }
)
"""Columns of text also where every entry is unknown; others are numbers unless a text is there."""


def hypervisor_result_document(node: HypervisorResult) -> dict[str, Any]:
    """One of a result's `nodes`, made of JSON's own types only."""
    return {
        "name": node.name,
        "guests": list(node.guests),
        "metrics": _metrics_document(node.metrics),
        "hypervisor": _metrics_document(node.hypervisor_latencies),
        "layers": [
            {**json_object_of_record(layer), "direction": layer.direction.key}
            for layer in node.layers
        ],
        "outliers": [json_object_of_record(outlier) for outlier in node.outliers],
        "written": None
        if node.bytes_written is None
        else json_object_of_record(node.bytes_written),
    }


def hypervisor_result_columns(results: Sequence[RunResult]) -> dict[str, list[ExportValue]]:
    """One list a column, one entry for each run and node of it; units stand in the names."""
    rows = [(result, node) for result in results for node in result.nodes]
    lists = _run_identity_columns([result for result, _ in rows])
    lists["node"] = [node.name for _, node in rows]
    lists["guest_count"] = [len(node.guests) for _, node in rows]
    for key, metrics in _metrics_by_key([node.metrics for _, node in rows]):
        lists[key] = [finite_number_or_none(metric.value) for metric in metrics]
    lists |= _layer_latency_columns([node for _, node in rows])
    for key, metrics in _metrics_by_key([node.hypervisor_latencies for _, node in rows]):
        lists |= _metric_and_interval_columns(f"hypervisor_{key}", metrics)
    written = [node.bytes_written for _, node in rows]
    lists["guests_write_bytes"] = [account.guests if account else None for account in written]
    lists["hypervisor_write_bytes"] = [
        account.hypervisor if account else None for account in written
    ]
    lists["devices_write_bytes"] = [account.devices if account else None for account in written]
    lists["write_factor"] = [
        finite_number_or_none(account.factor) if account else None for account in written
    ]
    lists["outliers"] = [
        " ".join(f"{outlier.scope}:{outlier.name}:{outlier.metric}" for outlier in node.outliers)
        for _, node in rows
    ]
    lists["excluded_hosts"] = [" ".join(result.excluded_hosts) for result, _ in rows]
    lists["digest"] = [result.digest for result, _ in rows]
    return lists


def _layer_latency_columns(nodes: Sequence[HypervisorResult]) -> dict[str, list[ExportValue]]:
    """The mean latency of each layer that any node tells of."""
    means = [
        {(layer.layer, layer.direction): layer.mean_ns for layer in node.layers} for node in nodes
    ]
    return {
        f"{layer.value}_{way.key}_lat_ns_mean": [
            finite_number_or_none(layers.get((layer, way))) for layers in means
        ]
        for way in Direction
        for layer in LatencyLayer
        if any((layer, way) in layers for layers in means)
    }


def point_documents(
    points: Sequence[PointSummary],
    node_metrics_by_point_key: Mapping[PointKey, Mapping[str, Mapping[str, Metric]]],
) -> list[dict[str, Any]]:
    """The `points` of `iolab show --json`, made of JSON's own types only.

    `node_metrics_by_point_key` has the metrics of each point's nodes of guests, by name.
    """
    return [
        {
            "configuration": point.key.configuration,
            "workload": point.key.workload,
            "axis": dict(point.key.axis_values),
            "excluded_hosts": list(point.key.excluded_hosts),
            "digest": point.digest,
            "repeats": [run.repeat for run in point.results],
            "left_out": [run.repeat for run in point.left_out_results],
            "trusted": point.is_trusted,
            "level": point.verdict_level.value,
            "notes": list(point.interval_note_texts),
            "metrics": _metrics_document(point.metrics),
            "nodes": {
                name: _metrics_document(metrics)
                for name, metrics in node_metrics_by_point_key.get(point.key, {}).items()
            },
        }
        for point in points
    ]


def point_columns(points: Sequence[PointSummary]) -> dict[str, list[ExportValue]]:
    """One list a column, one entry a point; each metric has `_low`, `_high` and `_n` beside it."""
    lists: dict[str, list[ExportValue]] = {
        "configuration": [point.key.configuration for point in points],
        "workload": [point.key.workload for point in points],
    }
    lists |= _axis_value_columns([point.key.axis_values for point in points])
    lists["runs"] = [len(point.results) for point in points]
    lists["left_out"] = [len(point.left_out_results) for point in points]
    lists["verdict"] = [point.verdict_level.value for point in points]
    for key, metrics in _metrics_by_key([point.metrics for point in points]):
        lists |= _metric_and_interval_columns(key, metrics)
        lists[f"{key}_n"] = [metric.n for metric in metrics]
    lists["notes"] = ["; ".join(point.interval_note_texts) for point in points]
    lists["excluded_hosts"] = [" ".join(point.key.excluded_hosts) for point in points]
    lists["digest"] = [point.digest for point in points]
    return lists


def metric_and_interval_text(metric: Metric) -> str:
    """A value with its interval and runs: `12.3 k [12.1 k, 12.5 k] n=3`."""
    interval = interval_and_runs_text(metric, is_rate_unit_omitted=True)
    return f"{metric_value_text(metric, is_rate_unit_omitted=True)} {interval}".strip()


def session_document(
    load_kinds: LoadReportKinds,
    study: Study,
    results: Sequence[RunResult],
    points: Sequence[PointSummary] | None = None,
    damaged_runs: Sequence[Damage] = (),
) -> dict[str, Any]:
    """The document of `iolab show --json`, made of JSON's own types only.

    `points` are those of the results, where the whole session has more than these: an interval
    rests on all of it. `damaged_runs` is what was left out.
    """
    summaries = summarise_points(results, study) if points is None else points
    # The document's shape is the same whatever was measured.
    parts: dict[str, Any] = {
        name: [] for kind in load_kinds.registered_kinds for name in kind.document_list_names
    }
    for load, own in load_kinds.results_by_report(results).items():
        parts |= load.result_document_parts(study, summaries, own)
    return {
        "format": FORMAT,
        "study": {
            "id": study.id,
            "title": study.title,
            "question": study.question,
            "scale": study.scale,
        },
        "configurations": [
            _configuration_document(configuration) for configuration in study.configurations
        ],
        "points": point_documents(
            summaries, load_kinds.booted_hosts.node_metrics(study, summaries)
        ),
        "results": [_result_document(result) for result in results],
        **parts,
        "load": document_of_load_findings(session_load_findings(study, results)),
        "damaged": [json_object_of_record(damage) for damage in damaged_runs],
    }


def _configuration_document(configuration: Configuration) -> dict[str, Any]:
    return {
        "id": configuration.id,
        "title": configuration.title,
        "hosts": list(configuration.hosts),
        "path": configuration.path,
        "nodes": configuration.nodes,
        "capacity": json_object_of_record(configuration.capacity),
        "cost": configuration.cost and json_object_of_record(configuration.cost),
        "hardware": dict(configuration.hardware),
    }


def _result_document(result: RunResult) -> dict[str, Any]:
    return {
        "configuration": result.configuration,
        "workload": result.workload,
        "axis": dict(result.axis_values),
        "repeat": result.repeat,
        "attempt": result.attempt,
        "segment": result.segment,
        "excluded_hosts": list(result.excluded_hosts),
        "digest": result.digest,
        "status": result.status.value,
        "failure": result.failure,
        "failure_hint": result.failure_hint,
        "window_s": finite_number_or_none(result.window_s),
        "metrics": _metrics_document(result.metrics),
        "hosts": [_host_document(host) for host in result.hosts],
        "nodes": [hypervisor_result_document(node) for node in result.nodes],
        "drives": [drive_wear_document(wear) for wear in result.drives],
        "power": [meter_power_document(use) for use in result.power],
        "spread": result.spread and json_object_of_record(result.spread),
        **({} if result.scenario is None else {"scenario": to_builtins(result.scenario)}),
        "steadiness": result.steadiness and json_object_of_record(result.steadiness),
        "operation_spreads": {
            key: json_object_of_record(spread) for key, spread in result.operation_spreads.items()
        },
        "verdict": {
            "level": result.verdict.level.value,
            "looked": result.verdict.judged_check_count,
            "checks": [
                {
                    "code": check.code,
                    "level": check.level_text,
                    "message": check.message,
                    "evidence": _evidence_document(check.evidence),
                }
                for check in result.verdict.checks
            ],
        },
    }


def _host_document(host: HostResult) -> dict[str, Any]:
    return {"name": host.name, **_metrics_document(host.metrics)}


def _metrics_document(metrics: Mapping[str, Metric]) -> dict[str, Any]:
    return {key: json_object_of_record(metric) for key, metric in metrics.items()}


def _evidence_document(evidence: Evidence) -> dict[str, Any]:
    return {
        name: finite_number_or_none(value) if isinstance(value, float) else value
        for name, value in evidence.items()
    }


def result_columns(results: Sequence[RunResult]) -> dict[str, list[ExportValue]]:
    """One list a column, one entry a result; metric names carry their units.

    `iops` and its kin are operations per second. A metric's interval gets the columns `_low`,
    `_high` and `_n` where any result knows one.
    """
    lists = _run_identity_columns(results)
    lists["objections"] = [
        " ".join(f"{check.code}:{check.level_text}" for check in result.verdict.objections)
        for result in results
    ]
    lists["steadiness"] = [
        result.steadiness.status.value if result.steadiness else None for result in results
    ]
    lists["host_count"] = [len(result.hosts) for result in results]
    lists["window_s"] = [finite_number_or_none(result.window_s) for result in results]
    for key, metrics in _metrics_by_key([result.metrics for result in results]):
        if any(metric.low is not None or metric.n is not None for metric in metrics):
            lists |= _metric_and_interval_columns(key, metrics)
            lists[f"{key}_n"] = [metric.n for metric in metrics]
        else:
            lists[key] = [finite_number_or_none(metric.value) for metric in metrics]
    lists["attempt"] = [result.attempt for result in results]
    lists["segment"] = [result.segment for result in results]
    lists["excluded_hosts"] = [" ".join(result.excluded_hosts) for result in results]
    lists["failure"] = [result.failure for result in results]
    lists["failure_hint"] = [result.failure_hint for result in results]
    lists["digest"] = [result.digest for result in results]
    return lists


def _run_identity_columns(results: Sequence[RunResult]) -> dict[str, list[ExportValue]]:
    """Which runs they are, and how they ended."""
    return {
        "configuration": [result.configuration for result in results],
        "workload": [result.workload for result in results],
        **_axis_value_columns([result.axis_values for result in results]),
        "repeat": [result.repeat for result in results],
        "status": [result.status.value for result in results],
        "verdict": [result.verdict.level.value for result in results],
    }


def _axis_value_columns(axis_values_of_rows: Sequence[AxisValues]) -> dict[str, list[ExportValue]]:
    names = dict.fromkeys(name for axis in axis_values_of_rows for name, _ in axis)
    return {
        f"axis_{name}": [dict(axis).get(name) for axis in axis_values_of_rows] for name in names
    }


def _metrics_by_key(rows: Sequence[Mapping[str, Metric]]) -> Iterator[tuple[str, list[Metric]]]:
    """Each metric that any row has, of all rows."""
    for key in dict.fromkeys(key for metrics in rows for key in metrics):
        yield key, [metrics.get(key, UNKNOWN_METRIC) for metrics in rows]


def _metric_and_interval_columns(
    metric_key: str, metrics: Sequence[Metric]
) -> dict[str, list[ExportValue]]:
    return {
        metric_key: [finite_number_or_none(metric.value) for metric in metrics],
        f"{metric_key}_low": [finite_number_or_none(metric.low) for metric in metrics],
        f"{metric_key}_high": [finite_number_or_none(metric.high) for metric in metrics],
    }


def columns_csv(columns: Mapping[str, Sequence[ExportValue]]) -> str:
    """Columns as CSV under their names, RFC 4180; an unknown number is an empty field.

    Text that a spreadsheet would run as a formula gets an apostrophe before it.
    """
    return rows_csv(list(columns), zip(*columns.values(), strict=True))


def session_markdown(
    load_kinds: LoadReportKinds, study: Study, results: Sequence[RunResult]
) -> str:
    """Tables that GitHub and its like show, under the study's title; numbers with units.

    Where points have repeats, a table with a row for each point comes before that of their runs.
    """
    parts = (
        kind.markdown_tables(study, own)
        for kind, own in load_kinds.results_by_report(results).items()
    )
    return f"# {escape_markdown(study.title)}\n{''.join(parts)}"


def points_and_runs_markdown(
    study: Study, results: Sequence[RunResult], metric_headings: MetricHeadings, runs_table: Table
) -> str:
    """The points where they have repeats, with the metrics of the headings, then the runs."""
    points = summarise_points(results, study)
    if len(points) == len(results):
        return f"\n{table_markdown(runs_table)}\n"
    repeated = table_markdown(points_table(points, metric_headings))
    return f"\n{repeated}\n\n{POINTS_NOTE}\n\n{table_markdown(runs_table)}\n"


MetricHeadings = Sequence[tuple[str, str]]
"""Keys of metrics, each with a heading."""


def points_table(points: Sequence[PointSummary], metric_headings: MetricHeadings) -> Table:
    """Each point's values with units and intervals."""
    axes = list(dict.fromkeys(name for point in points for name, _ in point.key.axis_values))
    rows = tuple(
        row_of_cells(
            point.key.configuration,
            point.key.workload,
            *(str(dict(point.key.axis_values).get(axis, DASH)) for axis in axes),
            *(
                metric_and_interval_text(point.metrics.get(key, UNKNOWN_METRIC))
                for key, _ in metric_headings
            ),
            point.verdict_level,
        )
        for point in points
    )
    heads = text_and_number_columns(
        ("Configuration", "Workload", *axes), tuple(name for _, name in metric_headings)
    )
    return Table("Points", (*heads, Column("Verdict")), rows)


def interval_columns(
    load_kinds: LoadReportKinds,
    study: Study,
    results: Sequence[RunResult],
    interval_reader: Callable[[str, int], IntervalTable],
    host_name_reader: Callable[[str, int], Sequence[str]],
) -> dict[str, list[ExportValue]]:
    """One list a column, one entry a (run, host, interval, operation).

    `interval_reader` and `host_name_reader` take digest and repeat of a run. `second` is the end of
    the interval since the first one of any host of the run began, in seconds of hosts' clocks.
    """
    axes = all_axis_names(results)
    lists: dict[str, list[ExportValue]] = {
        name: []
        for name in (
            *("configuration", "workload"),
            *(f"axis_{name}" for name in axes),
            *("repeat", "digest", "host", "second", "span_s", "operation", "ios", "bytes"),
            *("iops", "bw_bytes_per_s", "lat_ns_mean"),
        )
    }
    for result in results:
        table = interval_reader(result.digest, result.repeat)
        if not len(table):
            continue
        names = host_name_reader(result.digest, result.repeat)
        start_ns = int((table.end_real_ns - table.span_ns).min())
        words = {
            number: load_kinds.operation_name(study, result, number)
            for number in set(table.direction.tolist())
        }
        for at in range(len(table)):
            span_s = int(table.span_ns[at]) / NS_PER_S
            ios, moved = int(table.ios[at]), int(table.bytes[at])
            values: list[ExportValue] = [
                result.configuration,
                result.workload,
                *(dict(result.axis_values).get(name) for name in axes),
                result.repeat,
                result.digest,
                names[int(table.host[at])],
                round((int(table.end_real_ns[at]) - start_ns) / NS_PER_S, 3),
                span_s,
                words[int(table.direction[at])],
                ios,
                moved,
                ios / span_s if span_s else None,
                moved / span_s if span_s else None,
                float(table.lat_sum_ns[at]) / ios if ios else None,
            ]
            for column, value in zip(lists.values(), values, strict=True):
                column.append(value)
    return lists
