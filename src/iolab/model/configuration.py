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
class Configuration:
    """What a study compares: `hosts` name hosts of the study, `hardware` is rows of free text."""

    id: str
    title: str
    hosts: tuple[str, ...]
    path: str
    nodes: int | None = None
    capacity: Capacity = Capacity()
    cost: Cost | None = None
    hardware: tuple[tuple[str, str], ...] = ()
