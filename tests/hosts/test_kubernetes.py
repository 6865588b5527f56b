"""Fleets of pods without a cluster: objects, why pods wait, what is known of them, who lives."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from iolab.core.kubernetes import NO_VOLUME, PodFleet, StorageClassPods, VolumeAccess, VolumeMode
from iolab.hosts.kubernetes.facts import pod_facts, pod_reference_of_command
from iolab.hosts.kubernetes.fleet import (
    holder_identity,
    is_lease_holder_alive,
    remove_fleet_and_list_kept_volumes,
)
from iolab.hosts.kubernetes.kubectl import Kubectl, KubectlError, kubectl_error_sentences
from iolab.hosts.kubernetes.objects import (
    claims_and_stateful_sets,
    dry_run_objects,
    fleet_identity_text,
    lease_object,
)
from iolab.hosts.kubernetes.waiting import WaitReason, pod_snapshot, wait_reasons_text

FLEET = PodFleet(
    name="iolab-1",
    namespace="bench",
    context="",
    classes=(
        StorageClassPods("fast", "fast", ("fast-0", "fast-1")),
        StorageClassPods("slow", "slow", ("slow-0",)),
    ),
    volume_bytes=1 << 30,
    volume_mode=VolumeMode.FILESYSTEM,
    access=VolumeAccess.RWO,
    one_per_node=True,
    node_selector=(("disk", "ssd"),),
    image="iolab:1",
    mount_path="/data",
    cpu="2",
    memory="",
    wait_s=60.0,
    keep=False,
)
SESSION = {"app.kubernetes.io/managed-by": "iolab", "iolab-session": "iolab-1"}


def test_all_objects_carry_the_session_and_are_owned_by_its_lease() -> None:
    made = claims_and_stateful_sets(FLEET, "uid-1")
    assert [item["metadata"]["name"] for item in made] == ["iolab-1-fast", "iolab-1-slow"]
    for item in made:
        assert item["metadata"]["labels"].items() >= SESSION.items()
        (owner,) = item["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["uid"]) == ("Lease", "iolab-1", "uid-1")
        (template,) = item["spec"]["volumeClaimTemplates"]
        assert template["metadata"]["labels"].items() >= SESSION.items()
        assert item["spec"]["persistentVolumeClaimRetentionPolicy"]["whenDeleted"] == "Delete"
        assert item["spec"]["template"]["metadata"]["labels"].items() >= SESSION.items()


def test_pods_are_fit_for_restricted_pod_security() -> None:
    spec = claims_and_stateful_sets(FLEET, "u")[0]["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["limits"] == {"cpu": "2"}
    assert spec["nodeSelector"] == {"disk": "ssd"}


def test_a_shared_volume_is_one_claim_a_class() -> None:
    made = claims_and_stateful_sets(replace(FLEET, access=VolumeAccess.RWX), "u")
    kinds = [item["kind"] for item in made]
    assert kinds == ["PersistentVolumeClaim", "StatefulSet"] * 2
    assert made[0]["spec"]["accessModes"] == ["ReadWriteMany"]
    assert "volumeClaimTemplates" not in made[1]["spec"]
    (volume,) = made[1]["spec"]["template"]["spec"]["volumes"][1:]
    assert volume["persistentVolumeClaim"] == {"claimName": "iolab-1-fast"}


def test_a_block_volume_is_a_device_of_a_pod_that_is_root() -> None:
    block = replace(FLEET, volume_mode=VolumeMode.BLOCK, mount_path="/dev/iolab")
    (sample, *_) = [item for item in dry_run_objects(block) if item["kind"] == "Pod"]
    (container,) = sample["spec"]["containers"]
    assert container["volumeDevices"] == [{"name": "data", "devicePath": "/dev/iolab"}]
    assert [mount["mountPath"] for mount in container["volumeMounts"]] == ["/tmp"]
    assert sample["spec"]["securityContext"]["runAsUser"] == 0


def test_kept_pods_are_the_same_whatever_they_are_kept_or_waited_for() -> None:
    assert fleet_identity_text(FLEET) == fleet_identity_text(replace(FLEET, keep=True, wait_s=1.0))
    assert fleet_identity_text(FLEET) != fleet_identity_text(replace(FLEET, image="iolab:2"))
    stored = lease_object(FLEET, "host/1/2", "2026-01-01T00:00:00.000000Z")
    assert stored["metadata"]["annotations"] == {"iolab-fleet": fleet_identity_text(FLEET)}


def pod(name: str, phase: str = "Pending", **status: Any) -> dict[str, Any]:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": f"data-{name}"}}]
    return {
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"volumes": volumes},
        "status": {"phase": phase, **status},
    }


def claim_object(name: str, phase: str) -> dict[str, Any]:
    return {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "status": {"phase": phase},
    }


def event(kind: str, name: str, reason: str, message: str, at: str = "1") -> dict[str, Any]:
    involved = {"kind": kind, "name": name}
    return {
        "reason": reason,
        "message": message,
        "lastTimestamp": at,
        "involvedObject": involved,
    }


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    return {"containerStatuses": [{"state": {"waiting": {"reason": reason, "message": message}}}]}


def unscheduled(message: str) -> dict[str, Any]:
    return {"conditions": [{"type": "PodScheduled", "status": "False", "message": message}]}


READY = {"conditions": [{"type": "Ready", "status": "True"}]}


@pytest.mark.parametrize(
    ("objects", "events", "reason"),
    [
        ([], [], WaitReason("p-0", "the pod is not made yet")),
        (
            [],
            [
                event("StatefulSet", "p", "SuccessfulCreate", "made"),
                event(
                    "StatefulSet",
                    "p",
                    "FailedCreate",
                    'create Pod p-0 in StatefulSet p failed error: pods "p-0" is forbidden: '
                    "exceeded quota: small",
                ),
            ],
            WaitReason("p-0", 'pods "p-0" is forbidden: exceeded quota: small', is_final=True),
        ),
        (
            [pod("p-0", **unscheduled("0/3 nodes: 3 Insufficient cpu. preemption: 0/3 nodes"))],
            [],
            WaitReason("p-0", "0/3 nodes: 3 Insufficient cpu"),
        ),
        (
            [pod("p-0", **waiting("ImagePullBackOff", "Back-off pulling image x."))],
            [],
            WaitReason("p-0", "ImagePullBackOff: Back-off pulling image x", is_final=True),
        ),
        (
            [pod("p-0", **waiting("ErrImagePull"))],
            [],
            WaitReason("p-0", "ErrImagePull"),
        ),
        (
            [pod("p-0"), claim_object("data-p-0", "Pending")],
            [
                event("PersistentVolumeClaim", "data-p-0", "ProvisioningFailed", "old", "1"),
                event("PersistentVolumeClaim", "data-p-0", "ProvisioningFailed", "no space.", "2"),
            ],
            WaitReason("claim data-p-0", "no space"),
        ),
        (
            [pod("p-0", **waiting("ContainerCreating")), claim_object("data-p-0", "Bound")],
            [event("Pod", "p-0", "FailedMount", "mount failed")],
            WaitReason("p-0", "mount failed"),
        ),
        (
            [pod("p-0", "Failed", reason="Evicted", message="The node was low on memory.")],
            [],
            WaitReason("p-0", "the pod failed: The node was low on memory."),
        ),
    ],
)
def test_why_a_pod_waits_is_told(
    objects: list[dict[str, Any]], events: list[dict[str, Any]], reason: WaitReason
) -> None:
    seen = pod_snapshot(["p-0"], objects, events)
    assert (seen.ready_pod_names, seen.wait_reasons) == ((), (reason,))


def test_a_pod_on_its_way_out_is_not_ready() -> None:
    leaving = pod("p-0", "Running", **READY)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert pod_snapshot(["p-0"], [pod("p-0", "Running", **READY)], []).ready_pod_names == ("p-0",)
    assert pod_snapshot(["p-0"], [leaving], []).ready_pod_names == ()


def test_a_reason_of_many_is_told_once() -> None:
    reasons = [WaitReason(f"p-{number}", "no node") for number in range(3)]
    assert wait_reasons_text(reasons) == "p-0 and 2 more: no node"


@pytest.mark.parametrize("objects", [[{}], [{"kind": "Pod", "metadata": 1, "status": []}]])
def test_answers_of_another_shape_are_no_crash(objects: list[dict[str, Any]]) -> None:
    assert pod_snapshot(["p-0"], objects, [{}, {"involvedObject": 1}]).ready_pod_names == ()


def test_errors_of_kubectl_are_told_without_its_log() -> None:
    stderr = (
        b'E1129 00:01:02.123456    12 memcache.go:1] "Unhandled"\n'
        b"Warning: would violate\n"
        b'Error from server (Forbidden): error when creating "STDIN": leases is forbidden: '
        b'User "x" cannot create resource "leases"\n'
    )
    told = kubectl_error_sentences(stderr)
    assert told == ('leases is forbidden: User "x" cannot create resource "leases"',)
    assert KubectlError("x", told).is_forbidden


NOW = datetime(2026, 1, 1, 0, 1, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("holder", "renewed", "alive"),
    [
        ("elsewhere/1/2", "2026-01-01T00:00:30.000000Z", True),
        ("elsewhere/1/2", "2025-12-31T23:00:00.000000Z", False),
        ("", "2026-01-01T00:00:30.000000Z", False),
        ("elsewhere/1/2", "no time", False),
    ],
)
def test_a_session_is_alive_while_its_lease_is_renewed(
    holder: str,
    renewed: str,
    alive: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    assert is_lease_holder_alive(holder, renewed, 120, NOW) is alive


def test_a_dead_process_of_this_machine_is_dead_at_once() -> None:
    holder = holder_identity()
    assert is_lease_holder_alive(holder, "", 120, NOW)
    assert not is_lease_holder_alive(f"{holder}1", "2026-01-01T00:00:59.000000Z", 120, NOW)


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("kubectl --context=c exec --stdin --namespace=n --container=k p --", ("n", "c", "p", "k")),
        ("/usr/bin/kubectl exec p --", ("", "", "p", "")),
        ("ssh host kubectl exec p", None),
        ("kubectl get pods", None),
        ("", None),
    ],
)
def test_a_host_behind_kubectl_is_a_pod(command: str, found: tuple[str, ...] | None) -> None:
    pod = pod_reference_of_command(command.split())
    told = pod and (pod.kubectl.namespace, pod.kubectl.context, pod.pod, pod.container)
    assert told == found


MEASURED: dict[str, Any] = {
    "metadata": {"name": "p-0", "namespace": "bench", "uid": "u1"},
    "spec": {
        "nodeName": "node1",
        "containers": [
            {"name": "side"},
            {
                "name": "load",
                "resources": {"limits": {"cpu": "2", "memory": "4Gi"}},
                "volumeMounts": [
                    {"name": "tmp", "mountPath": "/tmp"},
                    {"name": "root", "mountPath": "/"},
                    {"name": "data", "mountPath": "/data"},
                ],
            },
        ],
        "volumes": [
            {"name": "tmp", "emptyDir": {"medium": "Memory"}},
            {"name": "root", "hostPath": {"path": "/srv"}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "data-p-0"}},
        ],
    },
    "status": {"qosClass": "Guaranteed"},
}
CLAIM = {
    "metadata": {"name": "data-p-0"},
    "spec": {"storageClassName": "fast"},
    "status": {"accessModes": ["ReadWriteOnce"]},
}
CLASS = {"provisioner": "csi.example", "parameters": {"type": "ssd", "adminSecretName": "s3cret"}}
VOLUME = {
    "metadata": {"name": "pv-1"},
    "spec": {"csi": {"driver": "csi.example", "volumeHandle": "vol-1"}, "volumeMode": "Filesystem"},
}


def test_what_stands_behind_the_volume_is_in_the_facts() -> None:
    facts = pod_facts(MEASURED, "load", "/data/x", CLAIM, VOLUME, CLASS, 3)
    assert (facts.node, facts.qos, facts.cpu_limit, facts.memory_limit) == (
        *("node1", "Guaranteed", "2", "4Gi"),
    )
    assert (facts.volume_kind, facts.volume_id) == ("csi.example", "vol-1")
    assert dict(facts.parameters) == {"type": "ssd", "adminSecretName": "(not stored)"}
    assert facts.pods_on_node == 3
    assert facts.shared_volume_key == ("csi.example", "vol-1")


@pytest.mark.parametrize(
    ("path", "kind", "which"),
    [("/tmp/x", "emptyDir", "in memory"), ("/elsewhere", "hostPath", "/srv")],
)
def test_a_volume_of_the_node_is_told_as_such(path: str, kind: str, which: str) -> None:
    facts = pod_facts(MEASURED, "load", path, None, None, None)
    assert (facts.volume_kind, facts.volume_id) == (kind, which)
    assert facts.shared_volume_key == (kind, which, "node1")


def test_a_claim_that_may_not_be_read_and_a_missing_volume_are_told_apart() -> None:
    hidden = pod_facts(MEASURED, "load", "/data", None, None, None)
    assert (hidden.claim, hidden.volume_text) == ("data-p-0", "claim data-p-0")
    missing = pod_facts(MEASURED, "side", "/data", None, None, None)
    assert (missing.claim, missing.volume_kind) == ("", NO_VOLUME)
    assert "container's own layer" in missing.volume_text
    assert pod_facts(MEASURED, "side", None, None, None, None).volume_text == ""


AWAY = "The connection to the server 10.96.0.1:443 was refused - did you specify the right host?"
FORBIDDEN = 'Error from server (Forbidden): User "a" cannot delete resource "leases"'


def kubectl_that_fails_twice(folder: Path, error: str) -> None:
    """A kubectl of a namespace without objects, whose first two answers are an error."""
    program = folder / "kubectl"
    program.write_text(
        f"""#!/bin/sh
for mark in {folder}/first {folder}/second; do
    [ -e $mark ] || {{ touch $mark; echo '{error}' >&2; exit 1; }}
done
case "$*" in *delete*) touch {folder}/deleted ;; esac
echo '{{"items": []}}'
"""
    )
    program.chmod(0o755)


def test_a_removal_waits_for_a_cluster_that_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An API server that restarts while a session ends would leave its pods for ever."""
    kubectl_that_fails_twice(tmp_path, AWAY)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert (
        asyncio.run(remove_fleet_and_list_kept_volumes(Kubectl("bench"), "iolab-1", limit_s=30))
        == ()
    )
    assert (tmp_path / "deleted").exists()


def test_what_will_not_pass_is_not_waited_for() -> None:
    away = KubectlError("It failed", (AWAY,))
    assert away.is_unreachable
    assert away.message.endswith("the right host.")
    assert not KubectlError("It failed", (FORBIDDEN,)).is_unreachable
