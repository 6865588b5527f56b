"""The account of bytes: what guests asked for, their hypervisor served, and devices moved."""

from __future__ import annotations

from dataclasses import dataclass

from iolab.analyse.guests.disks import counted_once, factors_of, kernel_of, leaves_of
from iolab.analyse.guests.placement import Guest, guests_in, hypervisors_in, is_modelled
from iolab.analyse.view import RunView
from iolab.model.sample import Direction


@dataclass(frozen=True, slots=True)
class GuestBytes:
    """One guest over the whole run: `asked` of its own block device, `served` by its hypervisor.

    Both are (read, written). Where the guest's device was not counted, or by a kernel that is not
    its alone, `asked` is what its engine claims; `served` is None where the hypervisor is not ours.
    """

    name: str
    asked: tuple[int, int]
    served: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class FleetBytes:
    """All guests and the devices of all nodes, (read, written) over the whole run.

    `below` is what left the guests: served where that is known, else asked. `expected` of devices
    is that times the declared factors, None without a declaration; `moved` is None unless every
    node was counted, `blind` names one that was not. Devices of nodes that share a kernel count
    once; `devices` is how many there are.
    """

    guests: tuple[GuestBytes, ...]
    below: tuple[int, int]
    expected: tuple[float, float] | None
    moved: tuple[int, int] | None
    devices: int
    blind: str | None


def guest_bytes_of(view: RunView) -> FleetBytes | None:
    """The account of a run that guests made, else None."""
    guests = tuple(_of_guest(view, one) for one in guests_in(view.record))
    if not guests:
        return None
    below = [one.served or one.asked for one in guests]
    total = sum(read for read, _ in below), sum(written for _, written in below)
    factors = factors_of(view.record)
    nodes = hypervisors_in(view.record)
    blind = next((n.host for n in nodes if not leaves_of(n, view.facts.get(n.host))), None)
    blind = blind or _unwatched(view)
    once = counted_once(nodes, view.facts)
    return FleetBytes(
        guests=guests,
        below=total,
        expected=None
        if factors is None or is_modelled(view.record)
        else (total[0] * factors[0], total[1] * factors[1]),
        moved=None
        if blind is not None
        else (sum(d.read_bytes for d in once), sum(d.write_bytes for d in once)),
        devices=len(once),
        blind=blind,
    )


def _of_guest(view: RunView, guest: Guest) -> GuestBytes:
    host = view.hosts[guest.host]
    target = view.target(host)
    own = [
        one
        for one in host.devices
        if target is not None and one.device == target.device and not _shares_kernel(view, guest)
    ]
    blocks = guest.run.blocks
    claimed = (
        view.claimed_bytes(guest.host, Direction.READ),
        view.claimed_bytes(guest.host, Direction.WRITE),
    )
    return GuestBytes(
        name=guest.name,
        asked=(own[0].read_bytes, own[0].write_bytes) if own else claimed,
        served=(
            sum(one.bytes for one in blocks if one.direction is Direction.READ),
            sum(one.bytes for one in blocks if one.direction is Direction.WRITE),
        )
        if blocks
        else None,
    )


def _shares_kernel(view: RunView, guest: Guest) -> bool:
    """Whether its devices count what others move, too: a container, or a network namespace."""
    mine = kernel_of(guest.name, view.facts)
    return any(
        kernel_of(name, view.facts) == mine for name in view.record.host_names if name != guest.name
    )


def _unwatched(view: RunView) -> str | None:
    """A node that guests live on and that is no host of the study."""
    fleet = view.record.fleet
    watched = {one.host for one in view.record.bystanders}
    return next((node for node in (fleet.nodes if fleet else ()) if node not in watched), None)
