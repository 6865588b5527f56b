"""What one run's telemetry says of each resource under its load: how busy, and where I/Os waited.

By the utilisation law the share of the time that a resource is busy is its rate times its time for
each I/O, U = X S: what is busy all the time serves no more of them. By Little's law, N = X R, the
I/Os in flight are where their latency arises. Sources: docs/explanation/limits.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from iolab.analyse.guests.disks import leaves_of
from iolab.analyse.guests.served import NOTHING, served
from iolab.analyse.limits.ports import port_uses
from iolab.analyse.limits.stack import device_use
from iolab.analyse.limits.use import Resource, Use, means
from iolab.analyse.littles_law import concurrency, is_closed_loop
from iolab.analyse.load import DIRECTIONS
from iolab.analyse.view import RunView
from iolab.analyse.window import Window
from iolab.model.host import Role
from iolab.model.run import HostRun
from iolab.model.workload import Job
from iolab.run.telemetry.rates import ALL_CORES

POLLING: Final = ("hipri", "sqthread_poll", "iodepth_batch_complete_max=0")
"""Beginnings of options by which an engine asks again and again instead of sleeping: it uses a
whole core then, however little it has to do."""


class Loop(StrEnum):
    """What decides when the next I/O is issued."""

    CLOSED = "closed"
    """The end of another: so many are kept in flight."""
    RATE = "rate"
    """The rate that was asked for."""
    PACED = "paced"
    """Time to think, or another rule of the engine."""


@dataclass(frozen=True, slots=True)
class Flight:
    """The I/Os in flight of all hosts together, and where they were.

    `in_flight` is X R, `asked` the sum of the depths, `one_each` whether no host had more than one.
    `latency_ns` is the mean at the engines and `device_ns` that of the devices' own I/Os, None
    where these are not known or did not serve these I/Os one by one. `rate` and `target_rate` are
    I/Os a second, the latter None where none was asked for.
    """

    loop: Loop
    in_flight: float
    asked: int
    one_each: bool
    latency_ns: float
    device_ns: float | None
    rate: float
    target_rate: float | None

    @property
    def at_device(self) -> float | None:
        """Of each I/O's latency the share that its devices took, 0 to 1."""
        if self.device_ns is None or self.latency_ns <= 0:
            return None
        return min(self.device_ns / self.latency_ns, 1.0)

    @property
    def kept(self) -> float:
        """In flight over asked."""
        return self.in_flight / self.asked


@dataclass(frozen=True, slots=True)
class Watched:
    """What one run tells of its resources.

    `uses` are the busiest of each resource, of clients and of watched hosts apart; `flight` is None
    where the load is not I/O. `memory_backed` where the target's blocks are memory: what its device
    does is then the processors' work. `storage_seen` is whether devices of the target were watched
    anywhere. `stolen` is the largest share of a host's processors that a hypervisor gave to others.
    """

    uses: tuple[Use, ...]
    flight: Flight | None
    memory_backed: bool
    storage_seen: bool
    stolen: float

    def most(self, resource: Resource) -> Use | None:
        """The busiest of a resource; None where none was watched."""
        mine = [one for one in self.uses if one.resource is resource and one.share is not None]
        return max(mine, key=lambda one: one.share or 0.0, default=None)


def watch(view: RunView) -> Watched:
    """The busiest resources of one run over its measured window; pure."""
    uses = [*_client_uses(view), *_node_uses(view)]
    targets = [target for host in view.hosts if (target := view.target(host)) is not None]
    return Watched(
        uses=tuple(_busiest(uses)),
        flight=_flight(view) if isinstance(view.record.run.point.job, Job) else None,
        memory_backed=any(one.memory_backed or one.in_memory for one in targets),
        storage_seen=any(one.resource is Resource.DEVICE for one in uses),
        stolen=_stolen(view),
    )


def _busiest(uses: Iterable[Use]) -> Iterator[Use]:
    """Of each resource and role the busiest; a port of unknown speed by what it moved."""
    found: dict[tuple[Resource, Role], Use] = {}
    for one in uses:
        place = (one.resource, one.role)
        if place not in found or one.rank > found[place].rank:
            found[place] = one
    return iter(found.values())


def _client_uses(view: RunView) -> Iterator[Use]:
    for index, host in enumerate(view.hosts):
        window = view.measured(index)
        if window is None:
            continue
        jobs = _job_share(view, host)
        yield from _processor_uses(view, host.host, Role.CLIENT, window, _own(view, host, jobs))
        if jobs is not None:
            yield Use(Resource.JOB, host.host, Role.CLIENT, "", jobs)
        target = view.target(host)
        if target is not None and target.devices:
            facts = view.facts_of(host)
            yield from device_use(view, host.host, target.devices, facts, window)
        moved = float(view.load.bytes[index].sum())
        seconds = float(view.load.seconds[index])
        flow = moved / seconds if moved > 0 and seconds > 0 else None
        yield from port_uses(view, host.host, Role.CLIENT, view.facts_of(host), window, flow)


def _node_uses(view: RunView) -> Iterator[Use]:
    """Storage nodes and hypervisors."""
    window = next((view.measured(index) for index in range(len(view.hosts))), None)
    if window is None:
        return
    for node in view.record.bystanders:
        facts = view.facts.get(node.host)
        yield from _processor_uses(view, node.host, node.role, window)
        for delta in leaves_of(node, facts):
            yield from device_use(view, node.host, (delta.device,), facts, window, node.role)
        yield from port_uses(view, node.host, node.role, facts, window, None)


def _processor_uses(
    view: RunView, host: str, role: Role, window: Window, own: float | None = None
) -> Iterator[Use]:
    found = means(view, host, "cpu", "busy_share", window)
    if ALL_CORES in found:
        yield Use(Resource.PROCESSORS, host, role, "", found[ALL_CORES], own=own)
    cores = {name: share for name, share in found.items() if "@" in name}
    if cores:
        name = max(cores, key=lambda core: cores[core])
        yield Use(Resource.CORE, host, role, name.partition("@")[0], cores[name])


def _job_share(view: RunView, host: HostRun) -> float | None:
    """What each job used of a core, as its engine counts it over the whole run."""
    job = view.record.run.point.job
    if host.totals is None or not isinstance(job, Job):
        return None
    if any(f"{name}={value}".startswith(POLLING) for name, value in job.options):
        return None
    percent = host.totals.user_cpu_percent + host.totals.system_cpu_percent
    return percent / 100


def _own(view: RunView, host: HostRun, each: float | None) -> float | None:
    """What all jobs of a host used of its processors."""
    facts = view.facts_of(host)
    if each is None or facts is None or facts.cpu.threads < 1:
        return None
    jobs = view.record.run.point.io_on(host.host).numjobs
    return min(each * jobs / facts.cpu.threads, 1.0)


def _stolen(view: RunView) -> float:
    shares = [
        view.mean_of(index, "cpu", ALL_CORES, "steal_share") for index in range(len(view.hosts))
    ]
    return max((share for share in shares if share is not None), default=0.0)


def _flight(view: RunView) -> Flight | None:
    """Little's law over all hosts; None where no I/O was measured."""
    point, load = view.record.run.point, view.load
    jobs = [point.io_on(host.host) for host in view.hosts]
    service = view.service
    found = [concurrency(load, index, job.depth_total, service) for index, job in enumerate(jobs)]
    known = [one for one in found if one is not None]
    ios = int(load.ios.sum())
    if not known or ios == 0:
        return None
    asked_rates = [job.asked_iops * job.numjobs for job in jobs if job.asked_iops is not None]
    seconds = np.maximum(load.seconds, 1e-9)
    return Flight(
        loop=Loop.RATE
        if asked_rates
        else Loop.CLOSED
        if all(is_closed_loop(job) for job in jobs)
        else Loop.PACED,
        in_flight=sum(one.in_flight for one in known),
        asked=sum(job.depth_total for job in jobs),
        one_each=all(job.depth_total == 1 for job in jobs),
        latency_ns=float((load if service is None else service).lat_sum_ns.sum()) / ios,
        device_ns=_device_ns(view) if point.io.direct else None,
        rate=float((load.ios.sum(axis=1) / seconds).sum()),
        target_rate=float(sum(asked_rates)) if asked_rates else None,
    )


def _device_ns(view: RunView) -> float | None:
    """The mean time of an I/O at the clients' own devices, else at the watched nodes' devices."""
    window = view.load.cut.common or view.measured(0)
    if window is None:
        return None
    places: list[tuple[str, tuple[str, ...]]] = []
    for host in view.hosts:
        target = view.target(host)
        if target is not None and target.device is not None:
            places.append((host.host, (target.device,)))
    if len(places) < len(view.hosts):
        places = [
            (node.host, tuple(delta.device for delta in leaves_of(node, view.facts.get(node.host))))
            for node in view.record.bystanders
            if node.role is Role.STORAGE
        ]
    total = NOTHING
    for host_name, devices in places:
        for way in DIRECTIONS:
            if not view.load.ios[:, way].any():
                continue
            seen = served(view, (host_name, "disk"), devices, way, window)
            if seen is None:
                return None
            total += seen
    return total.mean_ns
