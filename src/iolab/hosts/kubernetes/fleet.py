"""The life of a fleet of pods: tried, made, waited for, kept alive, and removed whole."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import re
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, TypeVar

from iolab.core.kubernetes import PodFleet
from iolab.errors import Fault, HostError
from iolab.hosts.kubernetes.kubectl import MISSING_RIGHT_HINT, Kubectl, KubectlError
from iolab.hosts.kubernetes.objects import (
    FLEET_ANNOTATION,
    KEPT_LABEL,
    LEASE_DURATION_S,
    MANAGED_BY_LABEL,
    MANAGER_NAME,
    SESSION_LABEL,
    Object,
    claims_and_stateful_sets,
    dry_run_objects,
    fleet_identity_text,
    lease_object,
)
from iolab.hosts.kubernetes.waiting import (
    PodSnapshot,
    pod_snapshot,
    subjects_by_message,
    wait_reasons_text,
)
from iolab.record import Record
from iolab.text import counted_noun, excerpt, list_text, quote_value

POLL_INTERVAL_S: Final = 1.0
"""Between two looks at pods that are not ready."""

LEASE_RENEWAL_S: Final = 30.0
"""Between two renewals of the Lease, four in the time that it lasts."""

REMOVAL_TIMEOUT_S: Final = 120.0
"""For pods to end, volumes to be detached and claims to go."""

SUBJECTS_LISTED_MAX: Final = 3
"""Pods or claims named with one reason; more are counted."""

_SESSION_KINDS: Final = "statefulsets,pods,persistentvolumeclaims"
_MANAGED_SELECTOR: Final = f"{MANAGED_BY_LABEL}={MANAGER_NAME}"
_REJECTED_OBJECT_HINT: Final = "Correct it, or choose other values."
_UNREADY_POD_HINT: Final = "See 'kubectl describe pod'."

Notify = Callable[[str], None]
Answer = TypeVar("Answer")

_NAMESPACE_NOT_FOUND: Final = re.compile(r'namespaces "(.*)" not found')

_HINTS_BY_MESSAGE_PART: Final = (
    ("exceeded quota", "Ask for fewer or smaller pods, or have the quota raised."),
    (
        "PodSecurity",
        "Name a namespace that allows it; block volumes need one without 'restricted'.",
    ),
    (
        "anti-affinity",
        "Ask for fewer pods, or allow several a node: kubernetes.one_per_node=false.",
    ),
    ("taint", "Choose nodes without the taint by --node-selector, or remove it."),
    ("didn't match Pod's node", "See 'kubectl get nodes --show-labels'; correct --node-selector."),
    ("Insufficient", "Free the nodes, or ask for less by kubernetes.cpu and kubernetes.memory."),
    ("persistent volume", "See 'kubectl get pv': the class has no free volume of that size there."),
    ("provision", "See 'kubectl describe pvc' and the log of the class' provisioner."),
    ("mage", "Name an image that the nodes can pull by --image, or load it there."),
    (" cannot ", MISSING_RIGHT_HINT),
)
"""By a part of what the cluster says, what to do."""


class FleetLease(Record):
    """A session's Lease as the cluster has it: its pods and all else go with it.

    `is_lease_holder_alive` is whether its session may still run, `is_kept` whether its
    pods are to outlive it.
    """

    name: str
    holder: str
    since: str
    is_lease_holder_alive: bool
    is_kept: bool
    pod_count: int
    claim_count: int
    fleet_identity_text: str

    def __str__(self) -> str:
        pods = counted_noun(self.pod_count, "pod")
        claims = counted_noun(self.claim_count, "claim")
        kept = "kept, " if self.is_kept else ""
        return f"{self.name} ({kept}{pods}, {claims}, since {self.since}, by {self.holder})"


def kubectl_for_fleet(fleet: PodFleet) -> Kubectl:
    """The way to the fleet's namespace."""
    return Kubectl(fleet.namespace, fleet.context)


async def read_current_context() -> str:
    """The name of kubectl's context; "" inside a cluster, where there is none."""
    try:
        return (await Kubectl().run("config", "current-context")).strip()
    except KubectlError as error:
        if "does not start" in error.message:
            raise
        return ""


async def require_cluster_accepts(fleet: PodFleet) -> None:
    """Try all objects of the fleet on the cluster; HostError with every fault, nothing is made."""
    kubectl = kubectl_for_fleet(fleet)
    await kubectl.run("version", failed_action="The cluster cannot be reached")
    trials = [lease_object(fleet, holder_identity(), _utc_timestamp()), *dry_run_objects(fleet)]
    classes = [item.storage_class for item in fleet.classes]
    found = await asyncio.gather(
        *(_storage_class_faults(kubectl, name) for name in classes),
        *(_dry_run_faults(kubectl, item) for item in trials),
    )
    faults = tuple(dict.fromkeys(fault for faults in found for fault in faults))
    if faults:
        count = "a fault" if len(faults) == 1 else f"{len(faults)} faults"
        message = f"The cluster does not take the pods, for {count}."
        raise HostError(message, "Nothing was made. Correct it and run again.", faults)


async def acquire_lease_or_reuse_kept_pods(fleet: PodFleet) -> str | None:
    """The id of a new Lease that is to own the fleet's pods; None with that of kept pods.

    What a dead session of that name left is removed first. HostError where the session of that name
    is alive or other pods were kept: whatever is there then is not ours.
    """
    kubectl = kubectl_for_fleet(fleet)
    leases = {found.name: found for found in await list_leases(kubectl)}
    if (found := leases.get(fleet.name)) is not None:
        if found.is_lease_holder_alive:
            message = f"The session {found} is alive."
            raise HostError(message, "Wait for its end, or choose another kubernetes.name.")
        if found.is_kept and found.fleet_identity_text == fleet_identity_text(fleet):
            await _patch_lease(
                fleet, _lease_holder_patch(holder_identity(), LEASE_DURATION_S, kept_label=None)
            )
            return None
        if found.is_kept:
            message = f"The pods that were kept as {found.name} are not those of this study."
            hint = (
                f"Give the same options, or remove them: iolab clean --hosts k8s:{fleet.namespace}"
            )
            raise HostError(message, hint)
        await remove_fleet_and_list_kept_volumes(kubectl, fleet.name)
    made = await kubectl.read_object(
        *("create", "--filename=-"),
        stdin=json.dumps(lease_object(fleet, holder_identity(), _utc_timestamp())),
        failed_action="The session's Lease cannot be made",
    )
    return str(made.get("metadata", {}).get("uid", ""))


async def create_pods(fleet: PodFleet, owner_uid: str) -> None:
    """Make all that the Lease owns. Raises HostError."""
    document = {
        "apiVersion": "v1",
        "kind": "List",
        "items": claims_and_stateful_sets(fleet, owner_uid),
    }
    await kubectl_for_fleet(fleet).run(
        "create",
        "--filename=-",
        stdin=json.dumps(document),
        failed_action="The pods cannot be made",
    )


async def wait_until_ready(fleet: PodFleet, notify: Notify) -> None:
    """Wait for every pod, and tell by `notify` what is waited for when that changes.

    HostError with the reason of each pod, at once where waiting mends nothing.
    """
    names = [f"{fleet.name}-{host}" for item in fleet.classes for host in item.host_names]
    clock = asyncio.get_running_loop().time
    deadline, shown_text = clock() + fleet.wait_s, ""
    while True:
        snapshot = await _retry_while_unreachable(
            lambda: _read_pod_snapshot(fleet, names), deadline
        )
        missing = len(names) - len(snapshot.ready_pod_names)
        if not missing:
            return
        final = [reason for reason in snapshot.wait_reasons if reason.is_final]
        if final or clock() > deadline:
            raise _unready_pods_error(fleet, missing, snapshot, is_final=bool(final))
        reasons_text = wait_reasons_text(snapshot.wait_reasons)
        text = f"Waiting for {missing} of {len(names)} pods: {reasons_text}"
        if text != shown_text:
            notify(f"{text}.")
        shown_text = text
        await asyncio.sleep(POLL_INTERVAL_S)


async def renew_lease_or_keep_pods(fleet: PodFleet, *, does_keep_pods: bool = False) -> None:
    """Say that the session lives, or with `does_keep_pods` that its pods stay without it."""
    if does_keep_pods:
        await _patch_lease(fleet, _lease_holder_patch("", 1, kept_label="true"))
        return
    with suppress(KubectlError):
        await _patch_lease(fleet, {"spec": {"renewTime": _utc_timestamp()}})


def _lease_holder_patch(holder: str, seconds: int, *, kept_label: str | None) -> Object:
    return {
        "metadata": {"labels": {KEPT_LABEL: kept_label}},
        "spec": {
            "renewTime": _utc_timestamp(),
            "holderIdentity": holder,
            "leaseDurationSeconds": seconds,
        },
    }


async def _patch_lease(fleet: PodFleet, patch: Object) -> None:
    await kubectl_for_fleet(fleet).run(
        "patch", "lease", fleet.name, "--type=merge", f"--patch={json.dumps(patch)}"
    )


async def remove_fleet_and_list_kept_volumes(
    kubectl: Kubectl, session_name: str, limit_s: float = REMOVAL_TIMEOUT_S
) -> tuple[str, ...]:
    """Delete a session's Lease and wait until all that it owned is gone.

    A sentence for each volume that its class keeps. HostError where objects are still there, or the
    cluster cannot be reached.
    """
    clock = asyncio.get_running_loop().time
    deadline = clock() + limit_s
    delete = ("delete", "lease", session_name, "--ignore-not-found", "--wait=false")
    volumes = await _retry_while_unreachable(
        lambda: _list_session_volume_names(kubectl, session_name), deadline
    )
    await _retry_while_unreachable(lambda: kubectl.run(*delete), deadline)
    while left := await _retry_while_unreachable(
        lambda: _list_session_objects(kubectl, session_name), deadline
    ):
        if clock() > deadline:
            names = ", ".join(f"{item.get('kind')} {_object_name(item)}" for item in left[:5])
            message = f"After {limit_s:g} s the namespace {kubectl.namespace} still has {names}."
            hint = f"See 'kubectl describe' of them; 'iolab clean --hosts k8s:{kubectl.namespace}' "
            raise HostError(message, hint + "looks again.")
        await asyncio.sleep(POLL_INTERVAL_S)
    return await _retained_volume_texts(kubectl, volumes)


async def require_namespace(kubectl: Kubectl) -> None:
    """HostError for a namespace that is not there; a user who may not look is not told."""
    try:
        await kubectl.read_object("get", "namespace", kubectl.namespace)
    except KubectlError as error:
        if error.is_forbidden:
            return
        if any(_NAMESPACE_NOT_FOUND.fullmatch(line) for line in error.errors):
            message = f"There is no namespace {quote_value(kubectl.namespace)}."
            raise HostError(message, "Name one that 'kubectl get namespaces' lists.") from None
        raise


async def list_leases(kubectl: Kubectl) -> tuple[FleetLease, ...]:
    """Every session of iolab that has objects in the namespace."""
    leases = await kubectl.list_objects(
        "get",
        "leases",
        f"--selector={_MANAGED_SELECTOR}",
        failed_action="The sessions cannot be listed",
    )
    if not leases:
        return ()
    objects = await kubectl.list_objects(
        "get", "pods,persistentvolumeclaims", f"--selector={_MANAGED_SELECTOR}"
    )
    return tuple(_fleet_lease(item, objects) for item in leases)


def holder_identity() -> str:
    """This process as the Lease names it: host, process, and when it started."""
    pid = os.getpid()
    return f"{platform.node()}/{pid}/{_process_start_ticks(pid)}"


def is_lease_holder_alive(
    holder: str, renewed_at: str, lease_seconds: float, now: datetime
) -> bool:
    """Whether the session of a Lease may still run: a dead process of this machine does not."""
    host, _, rest = holder.partition("/")
    pid, _, start = rest.partition("/")
    if host == platform.node() and pid.isdecimal():
        return _process_start_ticks(int(pid)) == start and start != ""
    try:
        end = datetime.fromisoformat(renewed_at.replace("Z", "+00:00")) + timedelta(
            seconds=lease_seconds
        )
    except ValueError:
        return False
    return bool(holder) and now < end


def _fleet_lease(kubernetes_object: Object, objects: Iterable[Object]) -> FleetLease:
    spec, labels = (
        kubernetes_object.get("spec", {}),
        kubernetes_object.get("metadata", {}).get("labels", {}),
    )
    name = _object_name(kubernetes_object)
    own = [
        labelled.get("kind")
        for labelled in objects
        if labelled["metadata"].get("labels", {}).get(SESSION_LABEL) == name
    ]
    holder = str(spec.get("holderIdentity") or "")
    renewed = str(spec.get("renewTime") or "")
    seconds = spec.get("leaseDurationSeconds")
    return FleetLease(
        name,
        excerpt(holder) or "nobody",
        excerpt(str(spec.get("acquireTime") or ""))[:19],
        is_lease_holder_alive(
            holder, renewed, seconds if isinstance(seconds, int) else LEASE_DURATION_S, _utc_now()
        ),
        KEPT_LABEL in labels,
        own.count("Pod"),
        own.count("PersistentVolumeClaim"),
        str(kubernetes_object.get("metadata", {}).get("annotations", {}).get(FLEET_ANNOTATION, "")),
    )


async def _storage_class_faults(kubectl: Kubectl, name: str) -> tuple[Fault, ...]:
    """A fault for a storage class that is not there; a user who may not look is not told."""
    try:
        await kubectl.read_object("get", "storageclass", name)
    except KubectlError as error:
        if error.is_forbidden:
            return ()
        if any("not found" in line for line in error.errors):
            there = await _storage_class_names_text(kubectl)
            hint = f"The cluster has {there}." if there else "See 'kubectl get storageclass'."
            return (Fault(f"There is no storage class {quote_value(name)}.", hint),)
        return (Fault(error.message, error.hint),)
    return ()


async def _storage_class_names_text(kubectl: Kubectl) -> str:
    try:
        return ", ".join(
            _object_name(item) for item in await kubectl.list_objects("get", "storageclass")
        )
    except KubectlError:
        return ""


async def _dry_run_faults(kubectl: Kubectl, kubernetes_object: Object) -> tuple[Fault, ...]:
    """What the cluster has against an object.

    A session makes StatefulSets, and claims and pods only through them: it needs no right to those.
    """
    try:
        await kubectl.run(
            *("create", "--filename=-", "--dry-run=server"), stdin=json.dumps(kubernetes_object)
        )
    except KubectlError as error:
        if all("already exists" in line for line in error.errors):
            return ()
        is_made_by_others = kubernetes_object["kind"] in ("Pod", "PersistentVolumeClaim")
        if is_made_by_others and error.is_forbidden:
            return ()
        return tuple(_dry_run_fault(line) for line in error.errors)
    return ()


def _dry_run_fault(error: str) -> Fault:
    if match := _NAMESPACE_NOT_FOUND.fullmatch(error):
        hint = (
            f"Create it by 'kubectl create namespace {match[1]}', or name another by --namespace."
        )
        return Fault(f"There is no namespace {quote_value(match[1])}.", hint)
    return Fault(f"{error.rstrip('.')}.", _hint_for_message(error, _REJECTED_OBJECT_HINT))


def _unready_pods_error(
    fleet: PodFleet, missing: int, snapshot: PodSnapshot, *, is_final: bool
) -> HostError:
    when = "" if is_final else f" after {fleet.wait_s:g} s"
    message = f"{missing} of {fleet.pod_count} pods are not ready{when}."
    hint = "Correct it and run again."
    if not is_final:
        hint = "Correct it and run again, or wait longer (kubernetes.wait)."
    faults = tuple(
        Fault(
            f"{list_text(subjects, SUBJECTS_LISTED_MAX)}: {text.rstrip('.')}.",
            _hint_for_message(text, _UNREADY_POD_HINT),
        )
        for text, subjects in subjects_by_message(snapshot.wait_reasons).items()
    )
    return HostError(message, hint, faults)


def _hint_for_message(message: str, default: str) -> str:
    return next((hint for part, hint in _HINTS_BY_MESSAGE_PART if part in message), default)


async def _retry_while_unreachable(
    request: Callable[[], Awaitable[Answer]], deadline: float
) -> Answer:
    """What a request gives, made again while the cluster does not answer."""
    while True:
        try:
            return await request()
        except KubectlError as error:
            if not error.is_unreachable or asyncio.get_running_loop().time() > deadline:
                raise
        await asyncio.sleep(POLL_INTERVAL_S)


async def _read_pod_snapshot(fleet: PodFleet, names: list[str]) -> PodSnapshot:
    kubectl = kubectl_for_fleet(fleet)
    objects = await _list_session_objects(kubectl, fleet.name)
    snapshot = pod_snapshot(names, objects, ())
    if len(snapshot.ready_pod_names) == len(names):
        return snapshot
    try:
        events = await kubectl.list_objects("get", "events")
    except KubectlError:
        return snapshot  # who may not see events is told less
    return pod_snapshot(names, objects, events)


async def _list_session_objects(kubectl: Kubectl, session_name: str) -> list[Object]:
    return await kubectl.list_objects(
        *("get", _SESSION_KINDS, f"--selector={_MANAGED_SELECTOR},{SESSION_LABEL}={session_name}"),
        failed_action="The pods cannot be listed",
    )


async def _list_session_volume_names(kubectl: Kubectl, session_name: str) -> tuple[str, ...]:
    try:
        items = await _list_session_objects(kubectl, session_name)
    except KubectlError as error:
        if error.is_unreachable:
            raise
        return ()
    claims = [item for item in items if item.get("kind") == "PersistentVolumeClaim"]
    volumes = [str(claim.get("spec", {}).get("volumeName") or "") for claim in claims]
    return tuple(volume for volume in volumes if volume)


async def _retained_volume_texts(kubectl: Kubectl, volumes: Iterable[str]) -> tuple[str, ...]:
    """The volumes that are still there since their class keeps them."""
    kept = []
    for volume in volumes:
        try:
            found = await kubectl.read_object("get", "persistentvolume", volume)
        except KubectlError:
            continue
        if found.get("spec", {}).get("persistentVolumeReclaimPolicy") == "Retain":
            kept.append(volume)
    if not kept:
        return ()
    noun = "volume stays" if len(kept) == 1 else "volumes stay"
    return (f"{len(kept)} {noun} in the cluster, since the class retains them: {', '.join(kept)}.",)


def _object_name(kubernetes_object: Object) -> str:
    return excerpt(str(kubernetes_object.get("metadata", {}).get("name", "")), 253)


def _process_start_ticks(pid: int) -> str:
    """When a process of this machine started, in ticks of its clock; "" where there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]


def _utc_now() -> datetime:
    return datetime.now(UTC)


def _utc_timestamp() -> str:
    return _utc_now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
