"""Which pods have volumes of their own on one disk, so that each has what the others leave."""

from __future__ import annotations

from collections.abc import Mapping

from iolab.core.host import HostFacts
from iolab.record import Record
from iolab.text import list_text


class SharedStorage(Record):
    """Pods whose volumes are on one thing; with `is_one_claim` they mount one volume on purpose."""

    hosts: tuple[str, ...]
    storage: str
    is_one_claim: bool

    @property
    def hosts_and_shared_storage_text(self) -> str:
        """Who shares what, as the beginning of a sentence."""
        noun = "share one volume" if self.is_one_claim else "have volumes on one disk"
        return f"{list_text(self.hosts, 4)} {noun} ({self.storage})"


def shared_pod_storage(facts_by_host: Mapping[str, HostFacts]) -> tuple[SharedStorage, ...]:
    """Each group of pods on one volume, or on volumes on one device of one kernel."""
    left = {name: host for name, host in facts_by_host.items() if host.pod is not None}
    groups: list[SharedStorage] = []
    while left:
        first, host = left.popitem()
        names = [first, *(name for name, other in left.items() if _has_same_storage(host, other))]
        if len(names) > 1:
            claims = {_claim_name(facts_by_host[name]) for name in names}
            hosts = tuple(name for name in facts_by_host if name in names)
            is_one = len(claims) == 1 and claims != {""}
            groups.append(
                SharedStorage(hosts, _shared_storage_and_node_text(facts_by_host, names), is_one)
            )
        for name in names[1:]:
            del left[name]
    return tuple(groups[::-1])


def _claim_name(host: HostFacts) -> str:
    pod = host.pod
    return f"{pod.namespace}/{pod.claim}" if pod and pod.claim else ""


def _has_same_storage(first: HostFacts, second: HostFacts) -> bool:
    return bool(_common_target_devices(first, second)) or (
        first.pod is not None
        and second.pod is not None
        and first.pod.shared_volume_key == second.pod.shared_volume_key != ()
    )


def _common_target_devices(first: HostFacts, second: HostFacts) -> tuple[str, ...]:
    """Devices below both targets, where both count by one kernel."""
    boot = first.kernel.boot_id
    if not boot or boot != second.kernel.boot_id or first.target is None or second.target is None:
        return ()
    return tuple(name for name in first.target.devices if name in second.target.devices)


def _shared_storage_and_node_text(facts_by_host: Mapping[str, HostFacts], names: list[str]) -> str:
    first, second = facts_by_host[names[0]], facts_by_host[names[1]]
    common = _common_target_devices(first, second)
    pod = first.pod
    nodes = {host.pod.node if (host := facts_by_host[name]).pod else "" for name in names}
    # Nodes of one kernel are one machine, whatever each is called.
    node = f" of {pod.node}" if pod and pod.node and len(nodes) == 1 else ""
    if common:
        return f"{common[-1]}{node}"
    return f"{pod.volume_kind} {pod.volume_id}{node}" if pod else ""
