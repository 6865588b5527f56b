"""Why pods are not ready yet: of their conditions, containers, claims and events. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from iolab.hosts.kubernetes.kubectl import list_at_keys, text_at_keys, value_at_keys
from iolab.record import Record
from iolab.text import excerpt, list_text

FINAL_REASONS: Final = (
    "CrashLoopBackOff",
    "CreateContainerConfigError",
    "CreateContainerError",
    "ErrImageNeverPull",
    "ImagePullBackOff",
    "InvalidImageName",
    "RunContainerError",
)
"""Why a container waits that no waiting mends: kubelet has tried, and says so."""

REFUSAL_EVENTS: Final = ("FailedCreate",)
"""Events by which the controller of a StatefulSet says that its pods are refused."""

_WAITING_EVENTS: Final = (
    *REFUSAL_EVENTS,
    "ExternalProvisioning",
    "FailedAttachVolume",
    "FailedBinding",
    "FailedCreatePodSandBox",
    "FailedMapVolume",
    "FailedMount",
    "FailedScheduling",
    "ProvisioningFailed",
)
"""Events that tell why something waits."""

_MESSAGES_PER_OBJECT_MAX: Final = 3
_PREEMPTION_SUFFIX: Final = re.compile(
    r"[,.] (?:preemption: |no new claims to deallocate).*$", re.DOTALL
)
_CREATE_PREFIX: Final = re.compile(r"^create Pod \S+ in StatefulSet \S+ failed error: ")


class WaitReason(Record):
    """Why something waits, and whether that will never end by itself."""

    subject: str
    message: str
    is_final: bool = False

    def __str__(self) -> str:
        return f"{self.subject}: {self.message}"


class PodSnapshot(Record):
    """What was seen of a fleet: which pods are ready, and why the others are not."""

    ready_pod_names: tuple[str, ...]
    wait_reasons: tuple[WaitReason, ...]


def pod_snapshot(
    names: Iterable[str],
    objects: Iterable[Mapping[str, Any]],
    events: Iterable[Mapping[str, Any]],
) -> PodSnapshot:
    """The state of the pods of these names, by the objects that carry the session's label."""
    pods: dict[str, Mapping[str, Any]] = {}
    claims: dict[str, Mapping[str, Any]] = {}
    for item in objects:
        kind, name = item.get("kind"), text_at_keys(item, "metadata", "name")
        if kind == "Pod":
            pods[name] = item
        elif kind == "PersistentVolumeClaim":
            claims[name] = item
    messages = _event_messages_by_object(events)
    ready: list[str] = []
    reasons: list[WaitReason] = []
    for name in names:
        pod = pods.get(name)
        if pod is not None and is_ready(pod):
            ready.append(name)
            continue
        reasons += _pod_wait_reasons(name, pod, claims, messages)
    return PodSnapshot(tuple(ready), tuple(dict.fromkeys(reasons)))


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Whether a pod runs, is ready and is not on its way out."""
    if (
        value_at_keys(pod, "metadata", "deletionTimestamp")
        or text_at_keys(pod, "status", "phase") != "Running"
    ):
        return False
    return _condition_of_pod(pod, "Ready").get("status") == "True"


def wait_reasons_text(reasons: Iterable[WaitReason]) -> str:
    """The reasons, one that several have once, with the first of them."""
    grouped = subjects_by_message(reasons)
    return "; ".join(f"{list_text(subjects, 1)}: {text}" for text, subjects in grouped.items())


def subjects_by_message(reasons: Iterable[WaitReason]) -> dict[str, list[str]]:
    """What waits, by the message that it has in common."""
    grouped: dict[str, list[str]] = {}
    for reason in reasons:
        grouped.setdefault(reason.message, []).append(reason.subject)
    return grouped


def _pod_wait_reasons(
    name: str,
    pod: Mapping[str, Any] | None,
    claims: Mapping[str, Mapping[str, Any]],
    messages: Mapping[tuple[str, str], tuple[str, ...]],
) -> Iterator[WaitReason]:
    if pod is None:
        refused = messages.get(("StatefulSet", name.rpartition("-")[0]), ())
        # The last refusal names what is wrong now.
        message = _CREATE_PREFIX.sub("", refused[-1]) if refused else "the pod is not made yet"
        is_final = bool(refused) and "forbidden" in message
        yield WaitReason(name, message, is_final)
        return
    waiting = list(_container_wait_reasons(name, pod))
    yield from waiting
    if text_at_keys(pod, "status", "phase") == "Failed":
        why = (
            text_at_keys(pod, "status", "message")
            or text_at_keys(pod, "status", "reason")
            or "it ended"
        )
        yield WaitReason(name, f"the pod failed: {excerpt(why)}")
        return
    unbound = list(_claim_wait_reasons(pod, claims, messages))
    yield from unbound
    scheduled = _condition_of_pod(pod, "PodScheduled")
    if scheduled.get("status") == "False":
        message = excerpt(
            _PREEMPTION_SUFFIX.sub("", str(scheduled.get("message") or "not scheduled yet"))
        )
        yield WaitReason(name, message.rstrip("."))
        return
    if not waiting and not unbound:
        events = messages.get(("Pod", name), ())
        yield WaitReason(name, events[-1] if events else "the container is starting")


def _container_wait_reasons(name: str, pod: Mapping[str, Any]) -> Iterator[WaitReason]:
    for status in list_at_keys(pod, "status", "containerStatuses"):
        reason = text_at_keys(status, "state", "waiting", "reason")
        if reason and reason not in ("ContainerCreating", "PodInitializing"):
            message = excerpt(text_at_keys(status, "state", "waiting", "message"))
            text = f"{reason}: {message}" if message else reason
            yield WaitReason(name, text.rstrip("."), reason in FINAL_REASONS)


def _claim_wait_reasons(
    pod: Mapping[str, Any],
    claims: Mapping[str, Mapping[str, Any]],
    messages: Mapping[tuple[str, str], tuple[str, ...]],
) -> Iterator[WaitReason]:
    for volume in list_at_keys(pod, "spec", "volumes"):
        claim = text_at_keys(volume, "persistentVolumeClaim", "claimName")
        found = claims.get(claim)
        if not claim or (found is not None and text_at_keys(found, "status", "phase") == "Bound"):
            continue
        events = messages.get(("PersistentVolumeClaim", claim), ())
        if events:
            yield WaitReason(f"claim {claim}", events[-1])


def _event_messages_by_object(
    events: Iterable[Mapping[str, Any]],
) -> dict[tuple[str, str], tuple[str, ...]]:
    """What events say of each object, the latest last."""
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for event in sorted(events, key=_event_time):
        if event.get("reason") not in _WAITING_EVENTS:
            continue
        key = (
            text_at_keys(event, "involvedObject", "kind"),
            text_at_keys(event, "involvedObject", "name"),
        )
        message = excerpt(_PREEMPTION_SUFFIX.sub("", text_at_keys(event, "message"))).rstrip(".")
        found[key] = (*found.get(key, ()), message)[-_MESSAGES_PER_OBJECT_MAX:]
    return found


def _event_time(event: Mapping[str, Any]) -> str:
    series = text_at_keys(event, "series", "lastObservedTime")
    return series or text_at_keys(event, "lastTimestamp") or text_at_keys(event, "eventTime")


def _condition_of_pod(pod: Mapping[str, Any], condition_type: str) -> Mapping[str, Any]:
    for condition in list_at_keys(pod, "status", "conditions"):
        if isinstance(condition, dict) and condition.get("type") == condition_type:
            return condition
    return {}
