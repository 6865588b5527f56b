"""What the cluster tells of a host's pod: its node, its limits, and what its volume is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from iolab.core.kubernetes import NO_VOLUME, PodFacts
from iolab.hosts.kubernetes.kubectl import (
    Kubectl,
    KubectlError,
    list_at_keys,
    text_at_keys,
    value_at_keys,
)
from iolab.record import Record
from iolab.text import excerpt

Object = Mapping[str, Any]

TEXT_CHARACTERS_MAX: Final = 200
PARAMETERS_MAX: Final = 20
ACCESS_MODES_MAX: Final = 10
"""Kubernetes knows four."""


SECRET_NAME_PARTS: Final = ("secret", "password", "token", "key")
"""Parts of the names of parameters whose values are not stored."""

_VOLUME_SOURCE_KEYS: Final = {
    "csi": ("driver", "volumeHandle"),
    "local": ("", "path"),
    "hostPath": ("", "path"),
    "nfs": ("server", "path"),
    "iscsi": ("targetPortal", "iqn"),
    "fc": ("", "wwids"),
    "awsElasticBlockStore": ("", "volumeID"),
    "gcePersistentDisk": ("", "pdName"),
    "azureDisk": ("", "diskURI"),
}
"""Kinds of volume in the tree, each with the keys of who serves it and of which it is."""


class PodReference(Record):
    """A pod as a `kubectl exec` names it."""

    kubectl: Kubectl
    pod: str
    container: str


def pod_reference_of_command(command: Sequence[str]) -> PodReference | None:
    """The pod that a host's command enters, None for a command of another kind."""
    if not command or command[0].rpartition("/")[2] != "kubectl" or "exec" not in command:
        return None
    options, names = {}, []
    for word in command[1:]:
        if word == "--":
            break
        key, equals, value = word.partition("=")
        if word.startswith("-"):
            options[key] = value if equals else ""
        else:
            names.append(word)
    if len(names) != 2 or names[0] != "exec" or "" in (options.get("--namespace", "x"),):
        return None
    kubectl = Kubectl(options.get("--namespace", ""), options.get("--context", ""))
    return PodReference(kubectl, names[1], options.get("--container", ""))


async def read_pod_facts(pod: PodReference, path: str | None) -> PodFacts | None:
    """What is known of the pod and of the volume at `path`; None where it may not be asked."""
    kubectl = pod.kubectl
    found = await _read_object_or_none(kubectl, "pod", pod.pod)
    if found is None:
        return None
    claim_name = claim_name_at(found, pod.container, path)
    claim = await _read_object_or_none(kubectl, "persistentvolumeclaim", claim_name)
    volume_name = _shortened_text_at_keys(claim, "spec", "volumeName")
    volume = await _read_object_or_none(kubectl, "persistentvolume", volume_name)
    class_name = _shortened_text_at_keys(claim, "spec", "storageClassName")
    class_ = await _read_object_or_none(kubectl, "storageclass", class_name)
    others = await _count_other_pods_on_node(
        kubectl, _shortened_text_at_keys(found, "spec", "nodeName")
    )
    return pod_facts(found, pod.container, path, claim, volume, class_, others)


def pod_facts(
    pod: Object,
    container: str,
    path: str | None,
    claim: Object | None,
    volume: Object | None,
    storage_class: Object | None,
    pods_on_node: int | None = None,
) -> PodFacts:
    """The facts of these objects; None for what could not be read."""
    limits = _container_limits(pod, container)
    kind, volume_id = (
        _volume_kind_and_id(volume) if volume else _inline_volume_kind_and_id(pod, container, path)
    )
    parameters = _mapping_at_keys(storage_class, "parameters")
    modes = value_at_keys(claim, "status", "accessModes") or value_at_keys(
        claim, "spec", "accessModes"
    )
    return PodFacts(
        namespace=_shortened_text_at_keys(pod, "metadata", "namespace"),
        name=_shortened_text_at_keys(pod, "metadata", "name"),
        node=_shortened_text_at_keys(pod, "spec", "nodeName"),
        qos=_shortened_text_at_keys(pod, "status", "qosClass"),
        cpu_limit=excerpt(str(limits.get("cpu") or ""), TEXT_CHARACTERS_MAX),
        memory_limit=excerpt(str(limits.get("memory") or ""), TEXT_CHARACTERS_MAX),
        claim=claim_name_at(pod, container, path),
        storage_class=_shortened_text_at_keys(claim, "spec", "storageClassName"),
        provisioner=_shortened_text_at_keys(storage_class, "provisioner"),
        parameters=tuple(
            (
                excerpt(str(key), TEXT_CHARACTERS_MAX),
                _parameter_text_without_secret(str(key), value),
            )
            for key, value in sorted(parameters.items())[:PARAMETERS_MAX]
        ),
        volume=_shortened_text_at_keys(volume, "metadata", "name"),
        volume_kind=kind,
        volume_id=volume_id,
        volume_mode=_shortened_text_at_keys(volume, "spec", "volumeMode")
        or _shortened_text_at_keys(claim, "spec", "volumeMode"),
        access_modes=_bounded_access_modes(modes),
        pods_on_node=pods_on_node,
    )


def _bounded_access_modes(modes: object) -> tuple[str, ...]:
    listed = modes[:ACCESS_MODES_MAX] if isinstance(modes, list) else []
    return tuple(excerpt(str(mode), TEXT_CHARACTERS_MAX) for mode in listed)


def claim_name_at(pod: Object, container: str, path: str | None) -> str:
    """The claim whose volume a path of the container is on, or that a device is; "" for none."""
    return _shortened_text_at_keys(
        _volume_at(pod, container, path), "persistentVolumeClaim", "claimName"
    )


def _volume_at(pod: Object, container: str, path: str | None) -> Object | None:
    """The volume of the deepest mount above a path, or of the device there."""
    if path is None:
        return None
    best, name = -1, ""
    for item in _main_and_ephemeral_containers(pod):
        if container and _shortened_text_at_keys(item, "name") != container:
            continue
        for device in list_at_keys(item, "volumeDevices"):
            if _shortened_text_at_keys(device, "devicePath") == path:
                best, name = len(path), _shortened_text_at_keys(device, "name")
        for mount in list_at_keys(item, "volumeMounts"):
            at = _shortened_text_at_keys(mount, "mountPath").rstrip("/")
            if len(at) > best and (path == at or path.startswith(f"{at}/")):
                best, name = len(at), _shortened_text_at_keys(mount, "name")
    return next(
        (
            item
            for item in list_at_keys(pod, "spec", "volumes")
            if _shortened_text_at_keys(item, "name") == name
        ),
        None,
    )


def _main_and_ephemeral_containers(pod: Object) -> list[Any]:
    return [
        *list_at_keys(pod, "spec", "containers"),
        *list_at_keys(pod, "spec", "ephemeralContainers"),
    ]


def _container_limits(pod: Object, container: str) -> Mapping[str, Any]:
    for item in _main_and_ephemeral_containers(pod):
        if not container or _shortened_text_at_keys(item, "name") == container:
            return _mapping_at_keys(item, "resources", "limits")
    return {}


def _volume_kind_and_id(volume: Object) -> tuple[str, str]:
    spec = _mapping_at_keys(volume, "spec")
    for kind, (server, name) in _VOLUME_SOURCE_KEYS.items():
        source = spec.get(kind)
        if isinstance(source, Mapping):
            where = _excerpt_of(source.get(server)) if server else ""
            which = _excerpt_of(source.get(name))
            if kind == "csi":
                return where or kind, which
            return kind, f"{where}:{which}" if where else which
    return "", ""


def _inline_volume_kind_and_id(pod: Object, container: str, path: str | None) -> tuple[str, str]:
    """Of a volume that is written in the pod itself: `emptyDir`, `hostPath`, `nfs`, or of none."""
    item = _volume_at(pod, container, path)
    if item is None:
        return ("", "") if path is None else (NO_VOLUME, "")
    if isinstance(item.get("emptyDir"), Mapping):
        is_memory = _shortened_text_at_keys(item, "emptyDir", "medium") == "Memory"
        return "emptyDir", "in memory" if is_memory else "on disk"
    return _volume_kind_and_id({"spec": item})


def _parameter_text_without_secret(key: str, value: object) -> str:
    hidden = any(part in key.lower() for part in SECRET_NAME_PARTS)
    return "(not stored)" if hidden else excerpt(str(value), TEXT_CHARACTERS_MAX)


async def _count_other_pods_on_node(kubectl: Kubectl, node_name: str) -> int | None:
    """Other pods that run on a node, over all namespaces; None where they may not be listed."""
    if not node_name:
        return None
    everywhere = Kubectl(context=kubectl.context)
    field = f"--field-selector=spec.nodeName={node_name},status.phase=Running"
    try:
        return max(
            len(await everywhere.list_objects("get", "pods", "--all-namespaces", field)) - 1, 0
        )
    except KubectlError:
        return None


async def _read_object_or_none(kubectl: Kubectl, kind: str, name: str) -> Object | None:
    """An object by its name; None without a name, or where it cannot be read."""
    if not name:
        return None
    try:
        return await kubectl.read_object("get", kind, name)
    except KubectlError:
        return None


def _excerpt_of(value: object) -> str:
    return excerpt(str(value), TEXT_CHARACTERS_MAX) if value else ""


def _shortened_text_at_keys(kubernetes_object: object, *keys: str) -> str:
    return excerpt(text_at_keys(kubernetes_object, *keys), TEXT_CHARACTERS_MAX)


def _mapping_at_keys(kubernetes_object: object, *keys: str) -> Mapping[str, Any]:
    found = value_at_keys(kubernetes_object, *keys)
    return found if isinstance(found, Mapping) else {}
