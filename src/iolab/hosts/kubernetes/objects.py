"""The objects of a fleet as Kubernetes reads them: one Lease owns all the others. Pure.

Whoever deletes the Lease has the cluster's garbage collector delete the rest, with nobody of iolab
left alive.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec.json import encode
from msgspec.structs import replace

from iolab.core.kubernetes import CONTAINER, PodFleet, StorageClassPods, VolumeAccess, VolumeMode

MANAGED_BY_LABEL: Final = "app.kubernetes.io/managed-by"
SESSION_LABEL: Final = "iolab-session"
CLASS_LABEL: Final = "iolab-group"
"""Labels of all that iolab makes: who made it, for which session, of which storage class."""

MANAGER_NAME: Final = "iolab"
KEPT_LABEL: Final = "iolab-kept"
"""Label of the Lease of pods that are to outlive their session."""

USER_ID: Final = 10001
"""The user of the image, and the group of its volumes; no such user need be there."""

DEFAULT_REQUESTS: Final = {"cpu": "500m", "memory": "512Mi"}
"""What a pod asks for whose study sets nothing: enough for the agent and one engine to start."""

LEASE_DURATION_S: Final = 120
"""After this long without a word its session counts as dead: some failed requests are no death."""

FLEET_ANNOTATION: Final = "iolab-fleet"
"""Annotation of the Lease: what the pods are, so that kept ones are known for the same."""

Object = dict[str, Any]


def fleet_identity_text(fleet: PodFleet) -> str:
    """What makes the pods of a fleet; not how long they are waited for, if they stay, prices."""
    return encode(replace(fleet, keep=False, wait_s=0.0, prices=())).decode()


def lease_object(fleet: PodFleet, holder: str, now: str) -> Object:
    """The owner of all, which says who made it and until when it is alive."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": fleet.name,
            "labels": _object_labels(fleet),
            "annotations": {FLEET_ANNOTATION: fleet_identity_text(fleet)},
        },
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": LEASE_DURATION_S,
            "acquireTime": now,
            "renewTime": now,
        },
    }


def claims_and_stateful_sets(fleet: PodFleet, owner_uid: str) -> list[Object]:
    """A StatefulSet for each class, before it the claim that its pods share, if they do."""
    owner = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "name": fleet.name,
        "uid": owner_uid,
    }
    made = []
    for item in fleet.classes:
        if fleet.access is VolumeAccess.RWX:
            made.append(_with_owner_reference(claim_object(fleet, item), owner))
        made.append(_with_owner_reference(stateful_set_manifest(fleet, item), owner))
    return made


def dry_run_objects(fleet: PodFleet) -> Iterator[Object]:
    """What the cluster would make of the fleet's objects, to try whether it takes them."""
    for item in fleet.classes:
        yield claim_object(fleet, item)
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{fleet.group_object_name(item.group)}-0",
                "labels": _object_labels(fleet, item),
            },
            "spec": {
                **_pod_spec(fleet, item),
                "volumes": [_temporary_volume(), _pod_volume_of_claim(fleet, item)],
            },
        }
        yield stateful_set_manifest(fleet, item)


def claim_object(fleet: PodFleet, class_pods: StorageClassPods) -> Object:
    """A claim for a volume of the class."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": fleet.group_object_name(class_pods.group),
            "labels": _object_labels(fleet, class_pods),
        },
        "spec": _claim_spec_of_storage_class(fleet, class_pods),
    }


def stateful_set_manifest(fleet: PodFleet, class_pods: StorageClassPods) -> Object:
    """The pods of a class: one that is lost is made again, on the same volume."""
    shared = fleet.access is VolumeAccess.RWX
    name = fleet.group_object_name(class_pods.group)
    spec: Object = {
        "serviceName": name,
        "replicas": len(class_pods.host_names),
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": {SESSION_LABEL: fleet.name, CLASS_LABEL: class_pods.group}},
        # The claims go with the StatefulSet, so that one delete takes them, too.
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Delete"},
        "template": {
            "metadata": {"labels": _object_labels(fleet, class_pods)},
            "spec": {
                **_pod_spec(fleet, class_pods),
                "volumes": [
                    _temporary_volume(),
                    *([_pod_volume_of_claim(fleet, class_pods)] if shared else []),
                ],
            },
        },
    }
    if not shared:
        spec["volumeClaimTemplates"] = [
            {
                "metadata": {"name": "data", "labels": _object_labels(fleet, class_pods)},
                "spec": _claim_spec_of_storage_class(fleet, class_pods),
            }
        ]
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "labels": _object_labels(fleet, class_pods)},
        "spec": spec,
    }


def _object_labels(fleet: PodFleet, class_pods: StorageClassPods | None = None) -> dict[str, str]:
    labels = {MANAGED_BY_LABEL: MANAGER_NAME, SESSION_LABEL: fleet.name}
    return labels if class_pods is None else {**labels, CLASS_LABEL: class_pods.group}


def _with_owner_reference(kubernetes_object: Object, owner: dict[str, str]) -> Object:
    return {
        **kubernetes_object,
        "metadata": {**kubernetes_object["metadata"], "ownerReferences": [owner]},
    }


def _claim_spec_of_storage_class(fleet: PodFleet, class_pods: StorageClassPods) -> Object:
    return {
        "accessModes": [fleet.access.claim_access_mode],
        "volumeMode": "Block" if fleet.volume_mode is VolumeMode.BLOCK else "Filesystem",
        "storageClassName": class_pods.storage_class,
        "resources": {"requests": {"storage": str(fleet.volume_bytes)}},
    }


def _temporary_volume() -> Object:
    return {"name": "tmp", "emptyDir": {}}


def _pod_volume_of_claim(fleet: PodFleet, class_pods: StorageClassPods) -> Object:
    return {
        "name": "data",
        "persistentVolumeClaim": {"claimName": fleet.group_object_name(class_pods.group)},
    }


def _pod_spec(fleet: PodFleet, class_pods: StorageClassPods) -> Object:
    """Fit for restricted Pod Security; a block device is opened by root alone."""
    is_block = fleet.volume_mode is VolumeMode.BLOCK
    target = (
        {"volumeDevices": [{"name": "data", "devicePath": fleet.mount_path}]} if is_block else {}
    )
    mounts = [{"name": "tmp", "mountPath": "/tmp"}]  # noqa: S108 - a volume of the pod's own
    if not is_block:
        mounts.append({"name": "data", "mountPath": fleet.mount_path})
    user = (
        {"runAsUser": 0}
        if is_block
        else {"runAsNonRoot": True, "runAsUser": USER_ID, "runAsGroup": USER_ID}
    )
    spec: Object = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        # `sleep` as the first process of a container does not end at SIGTERM.
        "terminationGracePeriodSeconds": 1,
        "securityContext": {
            **user,
            **({} if is_block else {"fsGroup": USER_ID}),
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": CONTAINER,
                "image": fleet.image,
                "imagePullPolicy": "IfNotPresent",
                "command": ["sleep", "infinity"],
                "resources": _resource_requirements(fleet),
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
                "volumeMounts": mounts,
                **target,
            }
        ],
    }
    if fleet.node_selector:
        spec["nodeSelector"] = dict(fleet.node_selector)
    if fleet.one_per_node:
        selector = {"matchLabels": {SESSION_LABEL: fleet.name, CLASS_LABEL: class_pods.group}}
        term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
        affinity = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        spec["affinity"] = {"podAntiAffinity": affinity}
    return spec


def _resource_requirements(fleet: PodFleet) -> Object:
    """Requests as limits where the study sets them: then the pod is guaranteed what it has."""
    written = {"cpu": fleet.cpu, "memory": fleet.memory}
    limits = {key: value for key, value in written.items() if value}
    return {"requests": {**DEFAULT_REQUESTS, **limits}, **({"limits": limits} if limits else {})}
