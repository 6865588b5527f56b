"""The devices of nodes: which of a stack count, which are shared, and what guests wrote to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from iolab.analyse.account import devices_once
from iolab.analyse.guests.placement import Node, hypervisors_in, is_modelled
from iolab.analyse.view import RunView
from iolab.model.host import HostFacts
from iolab.model.metric import Written
from iolab.model.run import Bystander, DeviceDelta, RunRecord
from iolab.model.sample import Direction


def leaves_of(node: Bystander, facts: HostFacts | None) -> tuple[DeviceDelta, ...]:
    """The node's counted devices that stand on no other of them; none of a node that was lost."""
    if node.error is not None:
        return ()
    parents = {disk.name: disk.parents for disk in facts.disks} if facts else {}
    counted = {delta.device for delta in node.devices}
    return tuple(
        delta for delta in node.devices if not counted & set(parents.get(delta.device, ()))
    )


def kernel_of(node: str, facts: Mapping[str, HostFacts]) -> str:
    """What tells kernels apart: nodes of one (containers, network namespaces) share its devices."""
    seen = facts.get(node)
    return (seen.kernel.boot_id if seen else "") or node


def counted_once(
    nodes: Iterable[Bystander], facts: Mapping[str, HostFacts]
) -> tuple[DeviceDelta, ...]:
    """The leaves of all those nodes, each of a kernel once: as the node that saw the most of it."""
    leaves = ((node.host, leaves_of(node, facts.get(node.host))) for node in nodes)
    return devices_once(leaves, facts)


def factors_of(record: RunRecord) -> tuple[float, float] | None:
    """Bytes that devices read, and write, for one of a guest; None where nothing declares it.

    The configuration's redundancy has the last word. The images of our own guests lie on as many
    nodes as they have replicas, and are read from one.
    """
    if record.redundancy is not None:
        return record.redundancy.read_factor, record.redundancy.write_factor
    settings = record.fleet.settings if record.fleet else None
    return None if settings is None else (1.0, float(settings.replicas))


def written_of(view: RunView, node: Node) -> Written:
    """What a node's guests wrote in the whole run, and what became of it on the node.

    Devices are those of this node alone: where it shares them with another nobody can tell.
    """
    record, factors = view.record, factors_of(view.record)
    served = [guest.run.blocks for guest in node.guests]
    return Written(
        guests=sum(view.claimed_bytes(host, Direction.WRITE) for host in node.hosts),
        hypervisor=sum(
            one.bytes for blocks in served for one in blocks if one.direction is Direction.WRITE
        )
        if all(served)
        else None,
        devices=_written_by_devices(view, node),
        factor=None if is_modelled(record) or factors is None else factors[1],
    )


def _written_by_devices(view: RunView, node: Node) -> int | None:
    if node.watched is None or is_modelled(view.record):
        return None
    leaves = leaves_of(node.watched, view.facts.get(node.name))
    if not leaves or _are_shared(view, node, {delta.device for delta in leaves}):
        return None
    return sum(delta.write_bytes for delta in leaves)


def _are_shared(view: RunView, node: Node, devices: set[str]) -> bool:
    """Whether another node of the same kernel counts any of these devices, too."""
    mine = kernel_of(node.name, view.facts)
    return any(
        not devices.isdisjoint(
            delta.device for delta in leaves_of(other, view.facts.get(other.host))
        )
        for other in hypervisors_in(view.record)
        if other.host != node.name and kernel_of(other.host, view.facts) == mine
    )
