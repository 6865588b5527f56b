"""What each node of a run did, for other programs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from iolab.analysis.sums import DIRECTIONS
from iolab.core.metric import Layer, Metric, NodeResult, Result, Written
from iolab.report.points import metric_document

Value = str | int | float | None

_NO_METRIC: Final = Metric(None, "")


def node_document(node: NodeResult) -> dict[str, Any]:
    """One of a result's `nodes`, made of JSON's own types only."""
    return {
        "name": node.name,
        "guests": list(node.guests),
        "metrics": {key: metric_document(metric) for key, metric in node.metrics.items()},
        "hypervisor": {key: metric_document(metric) for key, metric in node.hypervisor.items()},
        "layers": [
            {
                "layer": one.layer.value,
                "direction": one.direction.name.lower(),
                "mean_ns": _finite(one.mean_ns),
                "ios": one.ios,
            }
            for one in node.layers
        ],
        "outliers": [
            {
                "scope": one.scope,
                "name": one.name,
                "metric": one.metric,
                "value": _finite(one.value),
                "usual": _finite(one.usual),
            }
            for one in node.outliers
        ],
        "written": None if node.written is None else _written(node.written),
    }


def node_columns(results: Sequence[Result]) -> dict[str, list[Value]]:
    """One list a column, one entry for each run and node of it; units stand in the names."""
    rows = [(result, node) for result in results for node in result.nodes]
    found: dict[str, list[Value]] = {
        "configuration": [result.configuration for result, _ in rows],
        "workload": [result.workload for result, _ in rows],
    }
    for name in dict.fromkeys(name for result, _ in rows for name, _ in result.axis):
        found[f"axis_{name}"] = [dict(result.axis).get(name) for result, _ in rows]
    found["repeat"] = [result.repeat for result, _ in rows]
    found["status"] = [result.status.value for result, _ in rows]
    found["verdict"] = [result.verdict.level.value for result, _ in rows]
    found["node"] = [node.name for _, node in rows]
    found["guest_count"] = [len(node.guests) for _, node in rows]
    for key in dict.fromkeys(key for _, node in rows for key in node.metrics):
        found[key] = [_finite(node.metrics.get(key, _NO_METRIC).value) for _, node in rows]
    found |= _layer_columns([node for _, node in rows])
    for key in dict.fromkeys(key for _, node in rows for key in node.hypervisor):
        told = [node.hypervisor.get(key, _NO_METRIC) for _, node in rows]
        found[f"hypervisor_{key}"] = [_finite(metric.value) for metric in told]
        found[f"hypervisor_{key}_low"] = [_finite(metric.low) for metric in told]
        found[f"hypervisor_{key}_high"] = [_finite(metric.high) for metric in told]
    written = [node.written for _, node in rows]
    found["guests_write_bytes"] = [one.guests if one else None for one in written]
    found["hypervisor_write_bytes"] = [one.hypervisor if one else None for one in written]
    found["devices_write_bytes"] = [one.devices if one else None for one in written]
    found["write_factor"] = [_finite(one.factor) if one else None for one in written]
    found["outliers"] = [
        " ".join(f"{one.scope}:{one.name}:{one.metric}" for one in node.outliers)
        for _, node in rows
    ]
    found["without"] = [" ".join(result.without) for result, _ in rows]
    found["digest"] = [result.digest for result, _ in rows]
    return found


def _layer_columns(nodes: Sequence[NodeResult]) -> dict[str, list[Value]]:
    """The mean latency of each layer that any node tells of."""
    told = [{(one.layer, one.direction): one.mean_ns for one in node.layers} for node in nodes]
    return {
        f"{layer.value}_{way.name.lower()}_lat_ns_mean": [
            _finite(one.get((layer, way))) for one in told
        ]
        for way in DIRECTIONS
        for layer in Layer
        if any((layer, way) in one for one in told)
    }


def _written(written: Written) -> dict[str, Any]:
    return {
        "guests": written.guests,
        "hypervisor": written.hypervisor,
        "devices": written.devices,
        "factor": _finite(written.factor),
    }


def _finite(value: float | None) -> float | None:
    """JSON has no infinity and no nan; both are unknown."""
    return value if value is not None and math.isfinite(value) else None
