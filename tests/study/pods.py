"""Pods as kubectl describes them, cut to what is read and a little more."""

from __future__ import annotations

from typing import Any


def pod(name: str, *containers: str, **changes: Any) -> dict[str, Any]:
    """A pod that runs and is ready; `changes` are `phase`, `ready`, `annotations`, `deleted`."""
    metadata: dict[str, Any] = {"name": name, "namespace": "bench", "labels": {"app": "load"}}
    if "annotations" in changes:
        metadata["annotations"] = changes["annotations"]
    if changes.get("deleted"):
        metadata["deletionTimestamp"] = "2026-01-02T03:04:05Z"
    ready = {"type": "Ready", "status": "True" if changes.get("ready", True) else "False"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [{"name": one} for one in containers or ("main",)]},
        "status": {
            "phase": changes.get("phase", "Running"),
            "conditions": [{"type": "PodScheduled", "status": "True"}, ready],
        },
    }


def listing(*pods: dict[str, Any]) -> dict[str, Any]:
    """What `kubectl get pods --output=json` prints of them."""
    return {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": pods}
