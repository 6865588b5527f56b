"""The balance of bytes: what clients claim, and what the storage nodes moved for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from iolab.core.host import HostFacts, HostRole
from iolab.core.run import DeviceDelta, MonitoredHost, RunRecord
from iolab.core.workload import Direction
from iolab.record import Record

LOOPBACK = "lo"


class StorageNodeBytes(Record):
    """What one storage node moved in a run.

    `devices` are its disks, of a stack the lowest, `read_bytes` and `write_bytes` their sums; None
    where it was lost or names none. The ports' bytes are sums over all of them but the loopback,
    None where they were not counted; a bridge counts again what its ports counted.
    """

    host: str
    devices: tuple[DeviceDelta, ...]
    read_bytes: int | None
    write_bytes: int | None
    received_bytes: int | None
    sent_bytes: int | None


class ByteBalance(Record):
    """Clients and storage nodes over one whole run, warm-up included.

    The expected bytes are the claimed ones times the declared factors, None without a declaration;
    the moved ones are None unless the disks of every node were counted.
    """

    claimed_read_bytes: int
    claimed_write_bytes: int
    expected_read_bytes: float | None
    expected_write_bytes: float | None
    moved_read_bytes: int | None
    moved_write_bytes: int | None
    node_bytes: tuple[StorageNodeBytes, ...]


def storage_byte_balance(
    record: RunRecord, facts_by_host: Mapping[str, HostFacts]
) -> ByteBalance | None:
    """The balance of a run that storage nodes were watched in, else None.

    Nodes of one kernel (containers, network namespaces) see the same disks: each counts once.
    """
    storage = [
        (len(record.hosts) + place, node)
        for place, node in enumerate(record.monitored_hosts)
        if node.role is HostRole.STORAGE
    ]
    if not storage:
        return None
    claimed = {way: _claimed_bytes(record, way) for way in (Direction.READ, Direction.WRITE)}
    nodes = tuple(
        _bytes_of_storage_node(record, index, node, facts_by_host.get(node.host))
        for index, node in storage
    )
    factors = record.redundancy
    counted = all(node.read_bytes is not None for node in nodes)
    once = distinct_device_deltas(((node.host, node.devices) for node in nodes), facts_by_host)
    return ByteBalance(
        claimed_read_bytes=claimed[Direction.READ],
        claimed_write_bytes=claimed[Direction.WRITE],
        expected_read_bytes=claimed[Direction.READ] * factors.read_factor if factors else None,
        expected_write_bytes=claimed[Direction.WRITE] * factors.write_factor if factors else None,
        moved_read_bytes=sum(delta.read_bytes for delta in once) if counted else None,
        moved_write_bytes=sum(delta.write_bytes for delta in once) if counted else None,
        node_bytes=nodes,
    )


def _claimed_bytes(record: RunRecord, direction: Direction) -> int:
    """What the engines moved, those of neighbours as well."""
    tables = [t for t in (record.intervals, record.neighbour_intervals) if t is not None]
    return sum(int(table.bytes[table.direction == direction].sum()) for table in tables)


def _bytes_of_storage_node(
    record: RunRecord, host_index: int, node: MonitoredHost, facts: HostFacts | None
) -> StorageNodeBytes:
    devices = deltas_of_devices_on_no_other(node, facts)
    counted = bool(devices)
    received, sent = _bytes_received_and_sent_by_host_ports(record, host_index)
    return StorageNodeBytes(
        host=node.host,
        devices=devices,
        read_bytes=sum(delta.read_bytes for delta in devices) if counted else None,
        write_bytes=sum(delta.write_bytes for delta in devices) if counted else None,
        received_bytes=received,
        sent_bytes=sent,
    )


def _bytes_received_and_sent_by_host_ports(
    record: RunRecord, host_index: int
) -> tuple[int | None, int | None]:
    """Received and sent bytes between the first and the last sample of the host's ports."""
    table = record.counters
    own_rows = np.flatnonzero(np.asarray(table.host == host_index))
    moved: list[int | None] = []
    for metric in ("rx_bytes", "tx_bytes"):
        total: int | None = None
        rows = own_rows[
            (np.asarray(table.scope[own_rows]) == "nic")
            & (np.asarray(table.metric[own_rows]) == metric)
        ]
        names = np.asarray(table.name[rows])
        for port in sorted(set(names.tolist()) - {LOOPBACK}):
            of_port = rows[names == port]
            order = of_port[np.argsort(table.seq[of_port], kind="stable")]
            grown = int(table.value[order[-1]]) - int(table.value[order[0]])
            if grown >= 0 and len(order) > 1:
                total = (total or 0) + grown
        moved.append(total)
    return moved[0], moved[1]


def boot_ids_by_host(facts_by_host: Mapping[str, HostFacts]) -> dict[str, str]:
    """Each host's boot of its kernel; hosts of one (containers, name spaces) see the same disks."""
    return {name: host.kernel.boot_id_or_host(name) for name, host in facts_by_host.items()}


def distinct_device_deltas(
    hosts: Iterable[tuple[str, Iterable[DeviceDelta]]], facts_by_host: Mapping[str, HostFacts]
) -> tuple[DeviceDelta, ...]:
    """The hosts' disks, each of a kernel once: as the host that counted the most of it saw it."""
    kernels = boot_ids_by_host(facts_by_host)
    largest: dict[tuple[str, str], DeviceDelta] = {}
    for host, devices in hosts:
        kernel = kernels.get(host, host)
        for delta in devices:
            other = largest.get((kernel, delta.device))
            if other is None or _moved_bytes(delta) > _moved_bytes(other):
                largest[kernel, delta.device] = delta
    return tuple(largest.values())


def _moved_bytes(delta: DeviceDelta) -> int:
    return delta.read_bytes + delta.write_bytes


def deltas_of_devices_on_no_other(
    node: MonitoredHost, facts: HostFacts | None
) -> tuple[DeviceDelta, ...]:
    """The node's counted devices that stand on no other of them; none of a node that was lost."""
    if node.error is not None:
        return ()
    leaves = names_of_devices_on_no_other([delta.device for delta in node.devices], facts)
    return tuple(delta for delta in node.devices if delta.device in leaves)


def names_of_devices_on_no_other(
    device_names: Sequence[str], facts: HostFacts | None
) -> tuple[str, ...]:
    """Those of a host's devices that stand on no other of them."""
    parents = {disk.name: disk.parents for disk in facts.disks} if facts else {}
    return tuple(
        name for name in device_names if not set(device_names) & set(parents.get(name, ()))
    )


def nearest_device_names(devices: Sequence[str], facts: HostFacts | None) -> tuple[str, ...]:
    """Those of a host's devices that no other of them stands on.

    Each I/O of a file system over several devices is one of these: the members, wherever they lie.
    """
    parents = {disk.name: disk.parents for disk in facts.disks} if facts else {}
    below = {parent for name in devices for parent in parents.get(name, ()) if parent != name}
    return tuple(name for name in devices if name not in below)
