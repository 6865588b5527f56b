"""Published values for other programs: what all repeats of each point give together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from iolab.analysis.points import PointKey, PointSummary
from iolab.core.metric import Metric
from iolab.report.numbers import NOTHING, show, show_interval

Value = str | int | float | None

_MARKDOWN_METRICS: Final = (
    ("iops", "IOPS"),
    ("bw_bytes_per_s", "Bandwidth"),
    ("lat_ns_mean", "Latency mean"),
    ("lat_ns_p99", "p99"),
    ("lat_ns_p99_9", "p99.9"),
)
_NO_METRIC: Final = Metric(None, "")


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
            "metrics": _documents(point.metrics),
            "nodes": {name: _documents(one) for name, one in nodes.get(point.key, {}).items()},
        }
        for point in points
    ]


def _documents(metrics: Mapping[str, Metric]) -> dict[str, Any]:
    return {name: metric_document(one) for name, one in metrics.items()}


def metric_document(metric: Metric) -> dict[str, Any]:
    """A metric with its interval; what is not finite is unknown."""
    return {
        "value": _finite(metric.value),
        "unit": metric.unit,
        "low": _finite(metric.low),
        "high": _finite(metric.high),
        "n": metric.n,
    }


def point_columns(points: Sequence[PointSummary]) -> dict[str, list[Value]]:
    """One list a column, one entry a point; each metric has `_low`, `_high` and `_n` beside it."""
    found: dict[str, list[Value]] = {
        "configuration": [point.key.configuration for point in points],
        "workload": [point.key.workload for point in points],
    }
    for name in dict.fromkeys(name for point in points for name, _ in point.key.axis):
        found[f"axis_{name}"] = [dict(point.key.axis).get(name) for point in points]
    found["runs"] = [len(point.results) for point in points]
    found["left_out"] = [len(point.left_out) for point in points]
    found["verdict"] = [point.level.value for point in points]
    for key in dict.fromkeys(key for point in points for key in point.metrics):
        metrics = [point.metrics.get(key, _NO_METRIC) for point in points]
        found[key] = [_finite(metric.value) for metric in metrics]
        found[f"{key}_low"] = [_finite(metric.low) for metric in metrics]
        found[f"{key}_high"] = [_finite(metric.high) for metric in metrics]
        found[f"{key}_n"] = [metric.n for metric in metrics]
    found["notes"] = ["; ".join(point.notes) for point in points]
    found["without"] = [" ".join(point.key.without) for point in points]
    found["digest"] = [point.digest for point in points]
    return found


def point_table(points: Sequence[PointSummary]) -> list[list[str]]:
    """Headings and rows of the points of I/O, values with units and intervals."""
    axes = list(dict.fromkeys(name for point in points for name, _ in point.key.axis))
    heads = ["Configuration", "Workload", *axes]
    heads += [heading for _, heading in _MARKDOWN_METRICS]
    rows = [
        [
            point.key.configuration,
            point.key.workload,
            *(str(dict(point.key.axis).get(axis, NOTHING)) for axis in axes),
            *(told(point.metrics.get(key, _NO_METRIC)) for key, _ in _MARKDOWN_METRICS),
            point.level.value,
        ]
        for point in points
    ]
    return [[*heads, "Verdict"], *rows]


def told(metric: Metric) -> str:
    """A value with its interval and runs: `12.3 k [12.1 k, 12.5 k] n=3`."""
    interval = show_interval(metric, bare_rate=True)
    return f"{show(metric, bare_rate=True)} {interval}".strip()


def _finite(value: float | None) -> float | None:
    """JSON has no infinity and no nan; both are unknown."""
    return value if value is not None and math.isfinite(value) else None
