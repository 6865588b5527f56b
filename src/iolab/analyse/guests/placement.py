"""Which hosts of a run are guests, and on which node each of them lives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from iolab.analyse.view import RunView
from iolab.model.guest import DiskKind, GuestRun
from iolab.model.host import Role
from iolab.model.run import Bystander, RunRecord

EMULATED: Final = "TCG"
"""How the name begins by which QEMU's emulated processors tell their hypervisor."""


@dataclass(frozen=True, slots=True)
class Guest:
    """One guest that made load: `host` is its place among the run's hosts."""

    host: int
    run: GuestRun

    @property
    def name(self) -> str:
        """As in the inventory."""
        return self.run.guest


@dataclass(frozen=True, slots=True)
class Node:
    """A node with its guests of one run; `watched` is None where it was not watched."""

    name: str
    guests: tuple[Guest, ...]
    watched: Bystander | None

    @property
    def hosts(self) -> list[int]:
        """The places of its guests among the run's hosts."""
        return [guest.host for guest in self.guests]


def guests_in(record: RunRecord) -> tuple[Guest, ...]:
    """The hosts of a run that are known to be guests of a node, in its order."""
    if record.fleet is None:
        return ()
    told = {guest.guest: guest for guest in record.fleet.guests}
    return tuple(
        Guest(place, told[host.host])
        for place, host in enumerate(record.hosts)
        if host.host in told
    )


def nodes_in(record: RunRecord) -> tuple[Node, ...]:
    """The nodes that a run's guests live on, in the order of their first guest."""
    guests = guests_in(record)
    watched = {one.host: one for one in record.bystanders}
    return tuple(
        Node(name, tuple(one for one in guests if one.run.node == name), watched.get(name))
        for name in dict.fromkeys(guest.run.node for guest in guests)
    )


def hypervisors_in(record: RunRecord) -> tuple[Bystander, ...]:
    """All nodes that were to be watched, also those without a guest in this run."""
    return tuple(one for one in record.bystanders if one.role is Role.HYPERVISOR)


def is_modelled(record: RunRecord) -> bool:
    """Whether the guests' disks are no storage at all."""
    settings = record.fleet.settings if record.fleet else None
    return settings is not None and settings.disk is DiskKind.MODELLED


def is_emulator(hypervisor: str | None) -> bool:
    """Whether processors that tell of this hypervisor are emulated in software."""
    return (hypervisor or "").upper().startswith(EMULATED)


def vcpus_of(view: RunView, guest: Guest) -> int | None:
    """How many processors a guest has; None where nobody knows."""
    fleet = view.record.fleet
    if fleet is not None and fleet.settings is not None:
        return fleet.settings.vcpus
    facts = view.facts_of(view.hosts[guest.host])
    return facts.cpu.threads if facts is not None else None
