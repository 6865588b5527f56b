"""How busy the processors, devices and ports of a run were, and where its I/Os in flight were."""

from __future__ import annotations

from enum import StrEnum

from iolab.core.host import HostRole
from iolab.core.host_name import HostName
from iolab.record import Record


class Resource(StrEnum):
    """What may be at its limit."""

    DEVICE = "device"
    PROCESSORS = "processors"
    """All cores of a host together."""
    CORE = "core"
    """One core, as where one thread or all interrupts run on it."""
    JOB = "job"
    """The jobs of the engine, each of which has one core at most."""
    PORT = "port"
    """A network port, one way."""
    IO_LIMIT = "io-limit"
    """What control groups allow of a device in a second, as `io.max` does."""
    DISK_LIMIT = "disk-limit"
    """What a hypervisor allows a guest's disk in a second."""


class ResourceUse(Record):
    """How much of a resource was used over the measured window.

    `name` is the device, core or port, empty for what a host has one of; a port's ends in its way,
    an I/O limit's in what it counts. `share` is of the time, of a port's speed, of a limit or of a
    core; None for a port of unknown speed. `rate` is what passed a second (a device's I/Os, a
    port's bytes, what a limit counts), `queue` a device's I/Os in flight.
    `own_load_share` is how much of a client's processors the load's jobs used by themselves, as a
    share of all of them: the rest is the kernel's work for them, or others'.
    """

    resource: Resource
    host: HostName
    role: HostRole
    name: str
    share: float | None
    rate: float | None = None
    queue: float | None = None
    own_load_share: float | None = None

    @property
    def busiest_sort_key(self) -> tuple[float, float, float]:
        """Orders uses of one resource, the busiest last."""
        share = -1.0 if self.share is None else self.share
        return (share, self.queue or 0.0, self.rate or 0.0)


class IssueRule(StrEnum):
    """What decides when the next I/O is issued."""

    CLOSED = "closed"
    """The end of another: so many are kept in flight."""
    RATE = "rate"
    """The rate that was requested."""
    PACED = "paced"
    """Time to think, or another rule of the engine."""


class IoConcurrency(Record):
    """The I/Os in flight of all hosts together, and where they were.

    `in_flight` is X R, `requested_depth` the sum of the depths, `has_one_per_job` whether no host
    had more than one. `latency_ns` is the mean at the engines and `device_ns` that of the devices'
    own I/Os, None where these are not known or did not serve these I/Os one by one. `rate` and
    `target_rate` are I/Os a second, the latter None where none was requested.
    """

    issue_rule: IssueRule
    in_flight: float
    requested_depth: int
    has_one_per_job: bool
    latency_ns: float
    device_ns: float | None
    rate: float
    target_rate: float | None

    @property
    def device_latency_share(self) -> float | None:
        """Of each I/O's latency the share that its devices took, 0 to 1."""
        if self.device_ns is None or self.latency_ns <= 0:
            return None
        return min(self.device_ns / self.latency_ns, 1.0)

    @property
    def reached_depth_share(self) -> float:
        """In flight over asked."""
        return self.in_flight / self.requested_depth


class RunResources(Record):
    """What one run tells of its resources.

    `uses` are the busiest of each resource, of clients and of watched hosts apart; `concurrency` is
    None where the load is not I/O. `memory_backed` where the target's blocks are memory: what its
    device does is then the processors' work. `is_storage_monitored` is whether devices of the
    target were watched anywhere. `stolen_share` is the largest share of a host's processors that a
    hypervisor gave to others.
    """

    uses: tuple[ResourceUse, ...]
    concurrency: IoConcurrency | None
    memory_backed: bool
    is_storage_monitored: bool
    stolen_share: float

    def busiest_use(self, resource: Resource) -> ResourceUse | None:
        """The busiest of a resource; None where none was watched."""
        watched = [use for use in self.uses if use.resource is resource and use.share is not None]
        return max(watched, key=lambda use: use.share or 0.0, default=None)
