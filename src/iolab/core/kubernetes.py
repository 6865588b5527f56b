"""Pods that a session makes in a Kubernetes cluster, and what is known of the pod of a host."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from iolab.record import Record
from iolab.text import counted_noun

CONTAINER: Final = "load"
"""The container of iolab's own pods."""

NO_VOLUME: Final = "none"
"""The kind of volume of a target on the container's own layer."""

_VOLUME_REMARKS: Final = {
    NO_VOLUME: "the container's own layer",
    "emptyDir": "scratch space of the node, not of a storage class",
    "hostPath": "a directory of the node",
}

NODE_VOLUMES: Final = ("local", "hostPath", "emptyDir")
"""Kinds of volume that are directories or disks of their node."""


class VolumeMode(StrEnum):
    """How a volume is given to a pod."""

    FILESYSTEM = "filesystem"
    BLOCK = "block"


class VolumeAccess(StrEnum):
    """Who may use a volume: pods of one node, all pods at once, or one pod alone."""

    RWO = "RWO"
    RWX = "RWX"
    RWOP = "RWOP"

    @property
    def claim_access_mode(self) -> str:
        """The access mode as claims have it."""
        return {
            "RWO": "ReadWriteOnce",
            "RWX": "ReadWriteMany",
            "RWOP": "ReadWriteOncePod",
        }[self.value]


class StorageClassPods(Record):
    """The pods of one storage class: `group` names their StatefulSet within the fleet."""

    storage_class: str
    group: str
    host_names: tuple[str, ...]


class StorageClassMonthlyPrice(Record):
    """What a storage class costs for a GiB and month."""

    storage_class: str
    amount: float
    currency: str

    @property
    def amount_text(self) -> str:
        """Amount and currency."""
        return f"{self.amount:g} {self.currency}"


class PodFleet(Record):
    """Pods with a volume each, for each storage class.

    `name` begins the names of all objects, "" until a session names them. Without a `context` it is
    kubectl's current one. `node_selector` are labels that nodes must have. With `keep` the pods
    outlive the session. `cpu` and `memory` are request and limit of each pod, "" for none.
    """

    name: str
    namespace: str
    context: str
    classes: tuple[StorageClassPods, ...]
    volume_bytes: int
    volume_mode: VolumeMode
    access: VolumeAccess
    one_per_node: bool
    node_selector: tuple[tuple[str, str], ...]
    image: str
    mount_path: str
    cpu: str
    memory: str
    wait_s: float
    keep: bool
    prices: tuple[StorageClassMonthlyPrice, ...] = ()

    @property
    def volumes_per_class(self) -> int:
        """How many volumes the pods of each class have."""
        return (
            1
            if self.access is VolumeAccess.RWX
            else max(len(item.host_names) for item in self.classes)
        )

    def monthly_cost(self, storage_class: str) -> StorageClassMonthlyPrice | None:
        """What the volumes of a class cost in a month; None where no price is known."""
        price = next((price for price in self.prices if price.storage_class == storage_class), None)
        if price is None:
            return None
        size_gib = self.volumes_per_class * self.volume_bytes / (1 << 30)
        return StorageClassMonthlyPrice(
            storage_class, price.amount * size_gib, f"{price.currency}/month"
        )

    @property
    def pod_count(self) -> int:
        """How many pods there are in all."""
        return sum(len(item.host_names) for item in self.classes)

    def group_object_name(self, group: str) -> str:
        """The name of a StatefulSet; its pods add their number."""
        return f"{self.name}-{group}"


class PodFacts(Record):
    """What the cluster tells of a host's pod and of the volume at its target; "" where it does not.

    `qos` is Guaranteed, Burstable or BestEffort. `volume_kind` is the CSI driver or the kind of a
    volume in the tree (`local`, `hostPath`, `nfs`), `NO_VOLUME` where none is at the target;
    `volume_id` its handle, path or server there. Who may not read a claim has its name alone.
    `pods_on_node` counts the other running pods of the node, None where they may not be listed.
    """

    namespace: str
    name: str
    node: str
    qos: str
    cpu_limit: str = ""
    memory_limit: str = ""
    claim: str = ""
    storage_class: str = ""
    provisioner: str = ""
    parameters: tuple[tuple[str, str], ...] = ()
    volume: str = ""
    volume_kind: str = ""
    volume_id: str = ""
    volume_mode: str = ""
    access_modes: tuple[str, ...] = ()
    pods_on_node: int | None = None

    @property
    def shared_volume_key(self) -> tuple[str, ...]:
        """What pods that share one volume have in common; empty where it is not known."""
        if not self.volume_id:
            return ()
        is_of_node = self.volume_kind in NODE_VOLUMES
        return (self.volume_kind, self.volume_id, *([self.node] if is_of_node else []))

    @property
    def storage_class_text(self) -> str:
        """The storage class in a line: its name, provisioner and parameters."""
        parts = (
            f"class {self.storage_class}" if self.storage_class else "",
            self.provisioner,
            " ".join(f"{key}={value}" for key, value in self.parameters),
        )
        return ", ".join(part for part in parts if part)

    @property
    def volume_text(self) -> str:
        """The volume in a line: class, kind and handle, and what it is where that is no storage."""
        volume = " ".join(part for part in (self.volume_kind, self.volume_id) if part)
        remark = _VOLUME_REMARKS.get(self.volume_kind, "")
        parts = (self.storage_class_text, f"{volume} ({remark})" if remark else volume)
        known = ", ".join(part for part in parts if part)
        return known or (f"claim {self.claim}" if self.claim else "")

    @property
    def pod_node_and_limits_text(self) -> str:
        """Where the pod runs and what it may use, in a line."""
        others = self.pods_on_node
        parts = (
            f"on {self.node}" if self.node else "",
            self.qos_and_limits_text,
            "" if others is None else f"{counted_noun(others, 'other pod')} on the node",
        )
        return ", ".join(part for part in parts if part)

    @property
    def qos_and_limits_text(self) -> str:
        """What the pod may use, in a line."""
        limits = (("CPU limit", self.cpu_limit), ("memory limit", self.memory_limit))
        parts = (self.qos, *(f"{name} {value}" for name, value in limits if value))
        return ", ".join(part for part in parts if part)
