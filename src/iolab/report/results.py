"""Results for other tools: the `show --json` document, CSV, Markdown, and columns for Parquet.

The JSON is a contract: `schema/show.json` describes it, docs/reference/show.md explains it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from iolab.analysis.curves import findings
from iolab.analysis.points import Axis, PointKey, PointSummary, summarise
from iolab.core.configuration import Configuration
from iolab.core.metric import Evidence, HostResult, LatencyLayer, Metric, NodeResult, Result
from iolab.core.study import Study
from iolab.core.workload import Direction
from iolab.report.best import NOT_KNOWN
from iolab.report.brief import Kinds
from iolab.report.numbers import NOTHING, axis_names, fields_document, finite, show, show_interval
from iolab.report.phrases import findings_document
from iolab.report.table import Column, Table, Value, columns, csv_of, markdown, markdown_text, row
from iolab.store.verify import Damage
from iolab.units import NS_PER_S

if TYPE_CHECKING:
    from iolab.core.samples import IntervalTable


def node_document(node: NodeResult) -> dict[str, Any]:
    """One of a result's `nodes`, made of JSON's own types only."""
    return {
        "name": node.name,
        "guests": list(node.guests),
        "metrics": _metrics(node.metrics),
        "hypervisor": _metrics(node.hypervisor),
        "layers": [
            {**fields_document(layer), "direction": layer.direction.key} for layer in node.layers
        ],
        "outliers": [fields_document(outlier) for outlier in node.outliers],
        "written": None if node.written is None else fields_document(node.written),
    }


def node_columns(results: Sequence[Result]) -> dict[str, list[Value]]:
    """One list a column, one entry for each run and node of it; units stand in the names."""
    rows = [(result, node) for result in results for node in result.nodes]
    lists = _run_columns([result for result, _ in rows])
    lists["node"] = [node.name for _, node in rows]
    lists["guest_count"] = [len(node.guests) for _, node in rows]
    for key, metrics in _by_key([node.metrics for _, node in rows]):
        lists[key] = [finite(metric.value) for metric in metrics]
    lists |= _layer_columns([node for _, node in rows])
    for key, metrics in _by_key([node.hypervisor for _, node in rows]):
        lists |= _interval_columns(f"hypervisor_{key}", metrics)
    written = [node.written for _, node in rows]
    lists["guests_write_bytes"] = [account.guests if account else None for account in written]
    lists["hypervisor_write_bytes"] = [
        account.hypervisor if account else None for account in written
    ]
    lists["devices_write_bytes"] = [account.devices if account else None for account in written]
    lists["write_factor"] = [finite(account.factor) if account else None for account in written]
    lists["outliers"] = [
        " ".join(f"{outlier.scope}:{outlier.name}:{outlier.metric}" for outlier in node.outliers)
        for _, node in rows
    ]
    lists["without"] = [" ".join(result.without) for result, _ in rows]
    lists["digest"] = [result.digest for result, _ in rows]
    return lists


def _layer_columns(nodes: Sequence[NodeResult]) -> dict[str, list[Value]]:
    """The mean latency of each layer that any node tells of."""
    means = [
        {(layer.layer, layer.direction): layer.mean_ns for layer in node.layers} for node in nodes
    ]
    return {
        f"{layer.value}_{way.key}_lat_ns_mean": [
            finite(layers.get((layer, way))) for layers in means
        ]
        for way in Direction
        for layer in LatencyLayer
        if any((layer, way) in layers for layers in means)
    }


POINT_METRICS: Final = (
    ("iops", "IOPS"),
    ("bw_bytes_per_s", "Bandwidth"),
    ("lat_ns_mean", "Latency mean"),
    ("lat_ns_p99", "p99"),
    ("lat_ns_p99_9", "p99.9"),
)


def point_documents(
    points: Sequence[PointSummary],
    nodes: Mapping[PointKey, Mapping[str, Mapping[str, Metric]]],
) -> list[dict[str, Any]]:
    """The `points` of `iolab show --json`, made of JSON's own types only.

    `nodes` has the metrics of each point's nodes of guests, by name.
    """
    return [
        {
            "configuration": point.key.configuration,
            "workload": point.key.workload,
            "axis": dict(point.key.axis),
            "without": list(point.key.without),
            "digest": point.digest,
            "repeats": [run.repeat for run in point.results],
            "left_out": [run.repeat for run in point.left_out],
            "trusted": point.trusted,
            "level": point.level.value,
            "notes": list(point.notes),
            "metrics": _metrics(point.metrics),
            "nodes": {
                name: _metrics(metrics) for name, metrics in nodes.get(point.key, {}).items()
            },
        }
        for point in points
    ]


def point_columns(points: Sequence[PointSummary]) -> dict[str, list[Value]]:
    """One list a column, one entry a point; each metric has `_low`, `_high` and `_n` beside it."""
    lists: dict[str, list[Value]] = {
        "configuration": [point.key.configuration for point in points],
        "workload": [point.key.workload for point in points],
    }
    lists |= _axis_columns([point.key.axis for point in points])
    lists["runs"] = [len(point.results) for point in points]
    lists["left_out"] = [len(point.left_out) for point in points]
    lists["verdict"] = [point.level.value for point in points]
    for key, metrics in _by_key([point.metrics for point in points]):
        lists |= _interval_columns(key, metrics)
        lists[f"{key}_n"] = [metric.n for metric in metrics]
    lists["notes"] = ["; ".join(point.notes) for point in points]
    lists["without"] = [" ".join(point.key.without) for point in points]
    lists["digest"] = [point.digest for point in points]
    return lists


def with_interval(metric: Metric) -> str:
    """A value with its interval and runs: `12.3 k [12.1 k, 12.5 k] n=3`."""
    interval = show_interval(metric, bare_rate=True)
    return f"{show(metric, bare_rate=True)} {interval}".strip()


FORMAT: Final = 1
"""The number of the JSON document's format; it changes when a reader would have to."""

POINTS_NOTE: Final = "Published values with their 95 % intervals over n runs; each run follows."


def session_document(
    kinds: Kinds,
    study: Study,
    results: Sequence[Result],
    points: Sequence[PointSummary] | None = None,
    damaged: Sequence[Damage] = (),
) -> dict[str, Any]:
    """The document of `iolab show --json`, made of JSON's own types only.

    `points` are those of the results, where the whole session has more than these: an interval
    rests on all of it. `damaged` is what was left out.
    """
    summaries = summarise(results, study) if points is None else points
    # The document's shape is the same whatever was measured.
    parts: dict[str, Any] = {name: [] for kind in kinds.registered for name in kind.document_lists}
    for load, own in kinds.by_kind(results).items():
        parts |= load.document(study, summaries, own)
    return {
        "format": FORMAT,
        "study": {
            "id": study.id,
            "title": study.title,
            "question": study.question,
            "scale": study.scale,
        },
        "configurations": [_configuration(configuration) for configuration in study.configurations],
        "points": point_documents(summaries, kinds.hosts.node_metrics(study, summaries)),
        "results": [_result(result) for result in results],
        **parts,
        "load": findings_document(findings(study, results)),
        "damaged": [fields_document(damage) for damage in damaged],
    }


def _configuration(configuration: Configuration) -> dict[str, Any]:
    return {
        "id": configuration.id,
        "title": configuration.title,
        "hosts": list(configuration.hosts),
        "path": configuration.path,
        "nodes": configuration.nodes,
        "capacity": fields_document(configuration.capacity),
        "cost": configuration.cost and fields_document(configuration.cost),
        "hardware": dict(configuration.hardware),
    }


def _result(result: Result) -> dict[str, Any]:
    return {
        "configuration": result.configuration,
        "workload": result.workload,
        "axis": dict(result.axis),
        "repeat": result.repeat,
        "attempt": result.attempt,
        "segment": result.segment,
        "without": list(result.without),
        "digest": result.digest,
        "status": result.status.value,
        "failure": result.failure,
        "window_s": finite(result.window_s),
        "metrics": _metrics(result.metrics),
        "hosts": [_host(host) for host in result.hosts],
        "nodes": [node_document(node) for node in result.nodes],
        "spread": result.spread and fields_document(result.spread),
        "steadiness": result.steadiness and fields_document(result.steadiness),
        "operation_spreads": {
            key: fields_document(spread) for key, spread in result.operation_spreads.items()
        },
        "verdict": {
            "level": result.verdict.level.value,
            "looked": result.verdict.looked,
            "checks": [
                {
                    "code": check.code,
                    "level": check.word,
                    "says": check.says,
                    "evidence": _evidence(check.evidence),
                }
                for check in result.verdict.checks
            ],
        },
    }


def _host(host: HostResult) -> dict[str, Any]:
    return {"name": host.name, **_metrics(host.metrics)}


def _metrics(metrics: Mapping[str, Metric]) -> dict[str, Any]:
    return {key: fields_document(metric) for key, metric in metrics.items()}


def _evidence(evidence: Evidence) -> dict[str, Any]:
    return {
        name: finite(value) if isinstance(value, float) else value
        for name, value in evidence.items()
    }


TEXT_COLUMNS: Final = frozenset(
    {
        "steadiness",
        *("configuration", "workload", "status", "verdict", "objections", "failure", "digest"),
        *("without", "notes", "node", "outliers", "host", "operation"),
    }
)
"""Columns of text also where every entry is unknown; others are numbers unless a text is there."""


def result_columns(results: Sequence[Result]) -> dict[str, list[Value]]:
    """One list a column, one entry a result; metric names carry their units.

    `iops` and its kin are operations per second. A metric's interval gets the columns `_low`,
    `_high` and `_n` where any result knows one.
    """
    lists = _run_columns(results)
    lists["objections"] = [
        " ".join(f"{check.code}:{check.word}" for check in result.verdict.objections)
        for result in results
    ]
    lists["steadiness"] = [
        result.steadiness.status.value if result.steadiness else None for result in results
    ]
    lists["host_count"] = [len(result.hosts) for result in results]
    lists["window_s"] = [finite(result.window_s) for result in results]
    for key, metrics in _by_key([result.metrics for result in results]):
        if any(metric.low is not None or metric.n is not None for metric in metrics):
            lists |= _interval_columns(key, metrics)
            lists[f"{key}_n"] = [metric.n for metric in metrics]
        else:
            lists[key] = [finite(metric.value) for metric in metrics]
    lists["attempt"] = [result.attempt for result in results]
    lists["segment"] = [result.segment for result in results]
    lists["without"] = [" ".join(result.without) for result in results]
    lists["failure"] = [result.failure for result in results]
    lists["digest"] = [result.digest for result in results]
    return lists


def _run_columns(results: Sequence[Result]) -> dict[str, list[Value]]:
    """Which runs they are, and how they ended."""
    return {
        "configuration": [result.configuration for result in results],
        "workload": [result.workload for result in results],
        **_axis_columns([result.axis for result in results]),
        "repeat": [result.repeat for result in results],
        "status": [result.status.value for result in results],
        "verdict": [result.verdict.level.value for result in results],
    }


def _axis_columns(axes: Sequence[Axis]) -> dict[str, list[Value]]:
    names = dict.fromkeys(name for axis in axes for name, _ in axis)
    return {f"axis_{name}": [dict(axis).get(name) for axis in axes] for name in names}


def _by_key(rows: Sequence[Mapping[str, Metric]]) -> Iterator[tuple[str, list[Metric]]]:
    """Each metric that any row has, of all rows."""
    for key in dict.fromkeys(key for metrics in rows for key in metrics):
        yield key, [metrics.get(key, NOT_KNOWN) for metrics in rows]


def _interval_columns(key: str, metrics: Sequence[Metric]) -> dict[str, list[Value]]:
    return {
        key: [finite(metric.value) for metric in metrics],
        f"{key}_low": [finite(metric.low) for metric in metrics],
        f"{key}_high": [finite(metric.high) for metric in metrics],
    }


def columns_csv(lists: Mapping[str, Sequence[Value]]) -> str:
    """Columns as CSV under their names, RFC 4180; an unknown number is an empty field.

    Text that a spreadsheet would run as a formula gets an apostrophe before it.
    """
    return csv_of(list(lists), zip(*lists.values(), strict=True))


def session_markdown(kinds: Kinds, study: Study, results: Sequence[Result]) -> str:
    """Tables that GitHub and its like show, under the study's title; numbers with units.

    Where points have repeats, a table with a row for each point comes before that of their runs.
    """
    parts = (kind.markdown(study, own) for kind, own in kinds.by_kind(results).items())
    return f"# {markdown_text(study.title)}\n{''.join(parts)}"


def runs_markdown(study: Study, results: Sequence[Result], shown: Shown, runs: Table) -> str:
    """The points where they have repeats, by the metrics that are `shown`, then the runs."""
    points = summarise(results, study)
    if len(points) == len(results):
        return f"\n{markdown(runs)}\n"
    return f"\n{markdown(point_table(points, shown))}\n\n{POINTS_NOTE}\n\n{markdown(runs)}\n"


Shown = Sequence[tuple[str, str]]
"""Keys of metrics, each with a heading."""


def point_table(points: Sequence[PointSummary], shown: Shown) -> Table:
    """Each point's values with units and intervals."""
    axes = list(dict.fromkeys(name for point in points for name, _ in point.key.axis))
    rows = tuple(
        row(
            point.key.configuration,
            point.key.workload,
            *(str(dict(point.key.axis).get(axis, NOTHING)) for axis in axes),
            *(with_interval(point.metrics.get(key, NOT_KNOWN)) for key, _ in shown),
            point.level,
        )
        for point in points
    )
    heads = columns(("Configuration", "Workload", *axes), tuple(name for _, name in shown))
    return Table("Points", (*heads, Column("Verdict")), rows)


def second_columns(
    kinds: Kinds,
    study: Study,
    results: Sequence[Result],
    intervals: Callable[[str, int], IntervalTable],
    hosts: Callable[[str, int], Sequence[str]],
) -> dict[str, list[Value]]:
    """One list a column, one entry a (run, host, interval, operation).

    `intervals` and `hosts` are those of a committed run by digest and repeat. `second` is the end
    of the interval since the first one of any host of the run began, in seconds of hosts' clocks.
    """
    axes = axis_names(results)
    lists: dict[str, list[Value]] = {
        name: []
        for name in (
            *("configuration", "workload"),
            *(f"axis_{name}" for name in axes),
            *("repeat", "digest", "host", "second", "span_s", "operation", "ios", "bytes"),
            *("iops", "bw_bytes_per_s", "lat_ns_mean"),
        )
    }
    for result in results:
        table = intervals(result.digest, result.repeat)
        if not len(table):
            continue
        names = hosts(result.digest, result.repeat)
        start_ns = int((table.end_real_ns - table.span_ns).min())
        words = {
            number: kinds.operation_word(study, result, number)
            for number in set(table.direction.tolist())
        }
        for at in range(len(table)):
            span_s = int(table.span_ns[at]) / NS_PER_S
            ios, moved = int(table.ios[at]), int(table.bytes[at])
            values: list[Value] = [
                result.configuration,
                result.workload,
                *(dict(result.axis).get(name) for name in axes),
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
