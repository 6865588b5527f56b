"""A configuration: a named set of clients, target, hardware, capacity and cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Capacity:
    """Storage bought and storage usable, in decimal terabytes (10^12 bytes)."""

    raw_tb: float | None = None
    usable_tb: float | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """Procurement cost by part, in one currency."""

    currency: str
    servers: float
    network: float
    storage: float

    @property
    def total(self) -> float:
        """The sum of all parts."""
        return self.servers + self.network + self.storage


@dataclass(frozen=True, slots=True)
class Redundancy:
    """How many bytes the storage's disks move for one byte of a client.

    3 and 1 for threefold replication, 1.5 and 1 for 4 + 2 parity, 1 and 1 without.
    """

    write_factor: float
    read_factor: float = 1.0


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a study compares: `hosts` name hosts of the study, `hardware` is rows of free text.

    `hosts` make the load; `storage` name the storage nodes that serve the target. `redundancy` is
    None where it was not declared: bytes of storage nodes can then not be held against clients'.
    With a `serial` the `path` is a whole block device, all of which is destroyed.
    """

    id: str
    title: str
    hosts: tuple[str, ...]
    path: str
    nodes: int | None = None
    capacity: Capacity = Capacity()
    cost: Cost | None = None
    hardware: tuple[tuple[str, str], ...] = ()
    storage: tuple[str, ...] = ()
    redundancy: Redundancy | None = None
    serial: str | None = None
