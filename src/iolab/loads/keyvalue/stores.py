"""Where the store of a run lies, and what its devices read: on the clients, or on a server.

db_bench and the embedded store have a database on each client. A managed server has one on its own
host, which may be a client, or a host that is only watched. Of a server outside of the study
nothing is seen.
"""

from __future__ import annotations

from dataclasses import dataclass

from iolab.analysis.checks.bytes import moved_by_device
from iolab.core.host import HostFacts
from iolab.core.run import DeviceDelta, HostRun
from iolab.loads.keyvalue.record import server_in
from iolab.loads.keyvalue.view import KeyValueView
from iolab.loads.keyvalue.workload import KeyValueJob


@dataclass(frozen=True, slots=True)
class Store:
    """What one group of devices holds, and what they read in the whole run.

    `clients` are the hosts, by their place in the run, whose operations it answered. `data_bytes`
    are the keys and values in it, `memory_bytes` the most that can be kept of them in memory, None
    where that is not known; `bounded` says whether it was bounded, or is all of the machine's. The
    devices read `read_bytes` in `read_ios`. `below_bytes` is what devices below read, None where
    these are the lowest; `opaque` where nothing tells what lies below.
    """

    device: str
    clients: tuple[int, ...]
    data_bytes: int
    memory_bytes: int | None
    bounded: bool
    read_bytes: int
    read_ios: int
    below_bytes: int | None
    opaque: bool


def is_elsewhere(view: KeyValueView) -> bool:
    """Whether the store is one of the user's own, outside of the study."""
    server = server_in(view.record)
    return server is not None and not server.host


def store_clients(view: KeyValueView) -> tuple[int, ...]:
    """The clients, by their place, on whose own target a store lies; none for a server's."""
    server = server_in(view.record)
    names = [host.host for host in view.hosts]
    if server is None:
        return tuple(range(len(names)))
    return (names.index(server.host),) if server.host in names else ()


def loaded_bytes(view: KeyValueView) -> int:
    """Keys and values in one store, as they were to be loaded."""
    job = view.key_value_job
    if isinstance(job, KeyValueJob):
        return job.loaded.keys * job.loaded.entry_bytes
    return job.records * job.record_bytes


def stores_of(view: KeyValueView) -> tuple[Store, ...] | None:
    """Every store with what its devices read; None where they were not counted."""
    server = server_in(view.record)
    if server is None:
        return _on_clients(view)
    if not server.host:
        return None
    everybody = tuple(range(len(view.hosts)))
    facts = view.facts.get(server.host)
    read = _server_read(view, server.host, facts)
    if read is None:
        return None
    device, deltas = read
    memory = server.memory_bytes or (facts.memory.total_bytes if facts else None)
    bounded = server.memory_bytes is not None
    size = loaded_bytes(view)
    return (
        Store(
            device=device,
            clients=everybody,
            data_bytes=size,
            memory_bytes=memory,
            bounded=bounded,
            read_bytes=sum(delta.read_bytes for delta in deltas),
            read_ios=sum(delta.read_ios for delta in deltas),
            below_bytes=None,
            opaque=False,
        ),
    )


def _on_clients(view: KeyValueView) -> tuple[Store, ...] | None:
    groups = moved_by_device(view)
    if groups is None:
        return None
    names = [host.host for host in view.hosts]
    found = []
    for group in groups:
        clients = tuple(names.index(name) for name in group.hosts)
        facts = view.facts_of(view.hosts[clients[0]])
        bound = view.key_value_job.memory_bytes
        total = facts.memory.total_bytes if facts else None
        # Each client's engine has a bound of its own; clients of one kernel share its memory.
        memory = min(bound * len(clients), total or bound * len(clients)) if bound else total
        found.append(
            Store(
                device=group.device,
                clients=clients,
                data_bytes=loaded_bytes(view) * len(clients),
                memory_bytes=memory,
                bounded=bound is not None,
                read_bytes=group.read_bytes,
                read_ios=_read_ios(view, clients, group.device.split("+")),
                below_bytes=group.below_read,
                opaque=group.opaque,
            )
        )
    return tuple(found)


def _read_ios(view: KeyValueView, clients: tuple[int, ...], names: list[str]) -> int:
    """As `moved_by_device` has it of bytes: each client looked at its own moments."""
    return max(
        sum(delta.read_ios for delta in view.hosts[index].devices if delta.device in names)
        for index in clients
    )


_Read = tuple[str, tuple[DeviceDelta, ...]]
"""A device, or several as one, and what they moved in the run."""


def _server_read(view: KeyValueView, name: str, facts: HostFacts | None) -> _Read | None:
    """What the devices of the server's target read."""
    client = next((host for host in view.hosts if host.host == name), None)
    if client is not None:
        return _client_read(view, client)
    watched = next((one for one in view.record.bystanders if one.host == name), None)
    if watched is None or not watched.devices or watched.error:
        return None
    deltas = {delta.device: delta for delta in watched.devices}
    target = facts.target if facts else None
    if target is not None and target.device in deltas:
        return target.device, (deltas[target.device],)
    return "+".join(deltas), watched.devices


def _client_read(view: KeyValueView, client: HostRun) -> _Read | None:
    target = view.target(client)
    deltas = {delta.device: delta for delta in client.devices}
    if target is None or target.device not in deltas:
        return None
    return target.device, (deltas[target.device],)
