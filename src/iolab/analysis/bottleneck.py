"""How much of a resource was used: the shape that all resources share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np

from iolab.analysis.points import REPLICATED, PointSummary
from iolab.analysis.service_time import concurrency
from iolab.analysis.storage_bytes import LOOPBACK, leaves_of
from iolab.analysis.sums import DIRECTIONS
from iolab.analysis.view import NOTHING, RunView, served
from iolab.analysis.window import Window
from iolab.core.host import HostFacts, Role
from iolab.core.run import HostRun, RunRecord
from iolab.hosts.rates import ALL_CORES, derive
from iolab.stats.curve import Usl, fit_usl

if TYPE_CHECKING:
    from iolab.analysis.kinds import Analyses


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


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """How much of a resource was used over the measured window.

    `name` is the device, core or port, empty for what a host has one of; a port's ends in its way.
    `share` is of the time, of a port's speed or of a core; None for a port of unknown speed. `rate`
    is what passed a second (a device's I/Os, a port's bytes), `queue` a device's I/Os in flight.
    `own` is how much of a client's processors the load's jobs used by themselves, as a share of
    all of them: the rest is the kernel's work for them, or others'.
    """

    resource: Resource
    host: str
    role: Role
    name: str
    share: float | None
    rate: float | None = None
    queue: float | None = None
    own: float | None = None

    @property
    def rank(self) -> tuple[float, float, float]:
        """Orders uses of one resource, the busiest last."""
        known = -1.0 if self.share is None else self.share
        return (known, self.queue or 0.0, self.rate or 0.0)


def means(view: RunView, host: str, scope: str, metric: str, window: Window) -> dict[str, float]:
    """The mean over the window of one metric of every device of a scope, by name.

    Each step weighs as much as it shares with the window; names without a sample there are left
    out.
    """
    found: dict[str, float] = {}
    for series in view.series_of(host, scope, metric):
        shared = view.shared_ns(series, window)
        known = (shared > 0) & np.isfinite(series.value)
        if known.any():
            weights = shared[known].astype(np.float64)
            found[series.name] = float(np.average(series.value[known], weights=weights))
    return found


NOMINAL_DRIVERS: Final = frozenset(
    {"veth", "bridge", "tun", "tap", "virtio_net", "vxlan", "dummy", "macvlan", "ipvlan", "xen"}
)
"""Ports whose speed is a made-up number (10 Gbit/s of every veth), or the one that a hypervisor
says: what they can carry is their hosts' affair."""

BYTES_PER_MBIT: Final = 1e6 / 8

QUIET_BYTES_PER_S: Final = 1e6
"""What management moves: a port of unknown speed with less has no part in the load."""

LOAD_SHARE: Final = 0.5
"""Of a client's port at least this share must be its own load, or others fill it."""

WAYS: Final = {"rx_bytes_per_s": "in", "tx_bytes_per_s": "out"}
"""Both ways of a port: a link carries its speed in each of them."""


def port_uses(
    view: RunView,
    host: str,
    role: Role,
    facts: HostFacts | None,
    window: Window,
    flow: float | None,
) -> Iterator[ResourceUse]:
    """Each port and way of a host; `flow` is the load's own bytes a second there, if known."""
    speeds = _speeds(facts)
    for metric, way in WAYS.items():
        for port, rate in means(view, host, "nic", metric, window).items():
            if port == LOOPBACK or (flow is not None and flow < LOAD_SHARE * rate):
                continue
            speed = speeds.get(port)
            if speed is not None:
                yield ResourceUse(Resource.PORT, host, role, f"{port} {way}", rate / speed, rate)
            elif rate >= QUIET_BYTES_PER_S:
                yield ResourceUse(Resource.PORT, host, role, f"{port} {way}", None, rate)


def _speeds(facts: HostFacts | None) -> dict[str, float]:
    """Bytes a second of each port that has a speed of its own."""
    return {
        nic.name: nic.speed_mbit_s * BYTES_PER_MBIT
        for nic in (facts.nics if facts else ())
        if nic.speed_mbit_s and nic.driver not in NOMINAL_DRIVERS
    }


ALWAYS_BUSY: Final = 0.95
"""Share of the time with an I/O in flight from which a device has none to spare: the kernel counts
busy time at its ticks, and gaps between I/Os of an idle moment cost a per cent or two."""

HELD: Final = 0.5
"""Of the I/Os in flight above it a lower device must hold this share to be what they wait for."""


def device_use(
    view: RunView,
    host: str,
    stack: Sequence[str],
    facts: HostFacts | None,
    window: Window,
    role: Role = Role.CLIENT,
) -> Iterator[ResourceUse]:
    """The device of a stack (nearest the file system first) that its I/Os wait for, if watched."""
    busy = means(view, host, "disk", "busy_share", window)
    queue = means(view, host, "disk", "queue_depth", window)
    reads = means(view, host, "disk", "read_iops", window)
    writes = means(view, host, "disk", "write_iops", window)
    uses = [
        ResourceUse(
            resource=Resource.DEVICE,
            host=host,
            role=role,
            name=name,
            share=busy[name],
            rate=reads.get(name, 0.0) + writes.get(name, 0.0),
            queue=queue.get(name),
        )
        for name in stack
        if name in busy
    ]
    if uses:
        yield _waited_for(uses, _leaf_count(stack, facts))


def _waited_for(uses: Sequence[ResourceUse], leaves: int) -> ResourceUse:
    """The lowest that is always busy and holds its part of the queue, else the busiest."""
    longest = max(use.queue or 0.0 for use in uses)
    full = [
        use
        for use in uses
        if (use.share or 0.0) >= ALWAYS_BUSY and (use.queue or 0.0) >= HELD * longest / leaves
    ]
    return full[-1] if full else max(uses, key=lambda one: one.rank)


def _leaf_count(stack: Sequence[str], facts: HostFacts | None) -> int:
    """How many devices of the stack stand on no other of it: a stripe's queue is shared by them."""
    parents = {disk.name: disk.parents for disk in facts.disks} if facts else {}
    members = set(stack)
    return max(sum(1 for name in stack if not members & set(parents.get(name, ()))), 1)


PAYS: Final = 0.5
"""A load that is doubled should give more than the square root of two; less is waiting."""

USL_POINTS_LEAST: Final = 4
"""The law has three parameters: any three points lie on one."""


@dataclass(frozen=True, slots=True)
class LoadStep:
    """The step of one axis of load at the best point: to it from below, or from it to the next.

    `gain` is the ratio of the rates. `pays` where it is at least the square root of the ratio of
    the loads; `sure` where that holds at the worse ends of both intervals, `single` where either
    side rests on one run.
    """

    axis: str
    load: int
    further: int
    gain: float
    pays: bool
    sure: bool
    single: bool
    runs: tuple[tuple[str, int], ...]


def step_at(
    curve: Sequence[PointSummary], best: PointSummary, axis: str, key: str
) -> LoadStep | None:
    """The step that tells whether `best` has met a limit; None where the curve has one point.

    `curve` ascends in the load and holds `best`; `key` is the metric that is best there.
    """
    index = next((at for at, one in enumerate(curve) if one is best), None)
    if index is None or len(curve) < 2:
        return None
    last = index == len(curve) - 1
    low, high = (curve[-2], curve[-1]) if last else (curve[index], curve[index + 1])
    before, after = low.metrics.get(key), high.metrics.get(key)
    if before is None or after is None or not before.value or not after.value:
        return None
    enough = PAYS * math.log(_load(high, axis) / _load(low, axis))
    gain = after.value / before.value
    pays = math.log(gain) >= enough
    sure = False
    if before.low and before.high and after.low and after.high:
        worse = after.low / before.high if pays else after.high / before.low
        sure = (math.log(worse) >= enough) is pays
    return LoadStep(
        axis=axis,
        load=_load(low, axis),
        further=_load(high, axis),
        gain=gain,
        pays=pays,
        sure=sure,
        single=min(len(low.results), len(high.results)) < REPLICATED,
        runs=tuple((run.digest, run.repeat) for one in (low, high) for run in one.results),
    )


def law_of(curve: Sequence[PointSummary], axis: str, key: str) -> Usl | None:
    """The Universal Scalability Law of the curve; None unless every point lies on it."""
    measured = [(_load(one, axis), one.metrics[key]) for one in curve if key in one.metrics]
    known = [
        (load, metric.value, (metric.high - metric.low) / (2 * metric.value))
        for load, metric in measured
        if metric.value and metric.low is not None and metric.high is not None
    ]
    if len(known) < USL_POINTS_LEAST or len(known) < len(curve):
        return None
    loads, rates, widths = zip(*known, strict=True)
    found = fit_usl(loads, rates, widths)
    return found if found.describes else None


def _load(point: PointSummary, axis: str) -> int:
    return int(dict(point.key.axis)[axis])


EVERY_CORE_HOSTS_MOST: Final = 64
"""Hosts of which every core is looked at; of more, all cores of each together: a thousand hosts of
a hundred cores are 100,000 series."""


def view_of(record: RunRecord, facts: Mapping[str, HostFacts], kinds: Analyses) -> RunView:
    """The run with the processors, disks and ports of all of its hosts."""
    large = len(record.host_names) > EVERY_CORE_HOSTS_MOST
    wanted = {"cpu": ALL_CORES if large else None, "disk": None, "nic": None}
    telemetry = derive(record.counters, record.host_names, wanted)
    return kinds.view(record, facts, telemetry)


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
class RunResources:
    """What one run tells of its resources.

    `uses` are the busiest of each resource, of clients and of watched hosts apart; `flight` is None
    where the load is not I/O. `memory_backed` where the target's blocks are memory: what its device
    does is then the processors' work. `storage_seen` is whether devices of the target were watched
    anywhere. `stolen` is the largest share of a host's processors that a hypervisor gave to others.
    """

    uses: tuple[ResourceUse, ...]
    flight: Flight | None
    memory_backed: bool
    storage_seen: bool
    stolen: float

    def most(self, resource: Resource) -> ResourceUse | None:
        """The busiest of a resource; None where none was watched."""
        mine = [use for use in self.uses if use.resource is resource and use.share is not None]
        return max(mine, key=lambda one: one.share or 0.0, default=None)


def watch(view: RunView) -> RunResources:
    """The busiest resources of one run over its measured window; pure."""
    uses = [*_client_uses(view), *_node_uses(view)]
    targets = [target for host in view.hosts if (target := view.target(host)) is not None]
    return RunResources(
        uses=tuple(_busiest(uses)),
        flight=_flight(view) if view.job.depth_total else None,
        memory_backed=any(target.memory_backed or target.in_memory for target in targets),
        storage_seen=any(use.resource is Resource.DEVICE for use in uses),
        stolen=_stolen(view),
    )


def _busiest(uses: Iterable[ResourceUse]) -> Iterator[ResourceUse]:
    """Of each resource and role the busiest; a port of unknown speed by what it moved."""
    found: dict[tuple[Resource, Role], ResourceUse] = {}
    for use in uses:
        place = (use.resource, use.role)
        if place not in found or use.rank > found[place].rank:
            found[place] = use
    return iter(found.values())


def _client_uses(view: RunView) -> Iterator[ResourceUse]:
    for index, host in enumerate(view.hosts):
        window = view.measured(index)
        if window is None:
            continue
        jobs = _job_share(view, host)
        yield from _processor_uses(view, host.host, Role.CLIENT, window, _own(view, host, jobs))
        if jobs is not None:
            yield ResourceUse(Resource.JOB, host.host, Role.CLIENT, "", jobs)
        target = view.target(host)
        if target is not None and target.devices:
            facts = view.facts_of(host)
            yield from device_use(view, host.host, target.devices, facts, window)
        moved = float(view.load.bytes[index].sum())
        seconds = float(view.load.seconds[index])
        flow = moved / seconds if moved > 0 and seconds > 0 else None
        yield from port_uses(view, host.host, Role.CLIENT, view.facts_of(host), window, flow)


def _node_uses(view: RunView) -> Iterator[ResourceUse]:
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
) -> Iterator[ResourceUse]:
    found = means(view, host, "cpu", "busy_share", window)
    if ALL_CORES in found:
        yield ResourceUse(Resource.PROCESSORS, host, role, "", found[ALL_CORES], own=own)
    cores = {name: share for name, share in found.items() if "@" in name}
    if cores:
        name = max(cores, key=lambda core: cores[core])
        yield ResourceUse(Resource.CORE, host, role, name.partition("@")[0], cores[name])


def _job_share(view: RunView, host: HostRun) -> float | None:
    """What each job used of a core, as its engine counts it over the whole run."""
    job = view.job
    if host.totals is None or not job.depth_total or job.polls:
        return None
    percent = host.totals.user_cpu_percent + host.totals.system_cpu_percent
    return percent / 100


def _own(view: RunView, host: HostRun, each: float | None) -> float | None:
    """What all jobs of a host used of its processors."""
    facts = view.facts_of(host)
    if each is None or facts is None or facts.cpu.threads < 1:
        return None
    jobs = view.record.run.point.job_on(host.host).jobs
    return min(each * jobs / facts.cpu.threads, 1.0)


def _stolen(view: RunView) -> float:
    shares = [
        view.mean_of(index, "cpu", ALL_CORES, "steal_share") for index in range(len(view.hosts))
    ]
    return max((share for share in shares if share is not None), default=0.0)


def _flight(view: RunView) -> Flight | None:
    """Little's law over all hosts; None where no I/O was measured."""
    point, load = view.record.run.point, view.load
    jobs = [point.job_on(host.host) for host in view.hosts]
    service = view.service
    found = [concurrency(load, index, job.depth_total, service) for index, job in enumerate(jobs)]
    known = [one for one in found if one is not None]
    ios = int(load.ios.sum())
    if not known or ios == 0:
        return None
    asked_rates = [job.asked_iops * job.jobs for job in jobs if job.asked_iops is not None]
    seconds = np.maximum(load.seconds, 1e-9)
    return Flight(
        loop=Loop.RATE
        if asked_rates
        else Loop.CLOSED
        if all(job.is_closed_loop for job in jobs)
        else Loop.PACED,
        in_flight=sum(one.in_flight for one in known),
        asked=sum(job.depth_total for job in jobs),
        one_each=all(job.depth_total == 1 for job in jobs),
        latency_ns=float((load if service is None else service).lat_sum_ns.sum()) / ios,
        device_ns=_device_ns(view) if point.job.direct else None,
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


FULL_PORT: Final = 0.95
"""Share of a link's speed from which it is full: preambles, gaps and checksums that no counter sees
take 1.6 % of full frames, and more of smaller ones."""

FULL_PROCESSORS: Final = 0.90
"""Busy share of all cores from which none is left; interrupts and the kernel take what remains."""

FULL_CORE: Final = 0.95
"""Busy share of one core, or of one by each job, from which a thread that waits for storage at all
would have slept more."""

HELD_RATE: Final = 0.99
"""Share of the rate asked for from which it was kept: the load was what was asked."""

OWN_PART: Final = 0.1
"""Of full processors the part that the load's own jobs must use to be surely why they are full: the
kernel's threads may do as much again for them, hardly nine times as much."""

MOST_OF_LATENCY: Final = 0.5
"""Share of the latency from which a device is where the I/Os are, by Little's law."""

NEARLY_ALL: Final = 0.8
"""The same where processors are full, too: what is left of the latency may wait for these."""

QUEUE_KEPT: Final = 0.8
"""Share of the I/Os asked for that must be in flight: with fewer the engine does not keep up."""


class Cause(StrEnum):
    """What a result is limited by."""

    DEVICE = "device"
    """Busy all the time, and more load no longer raises the rate."""
    DEVICE_OPEN = "device-or-depth"
    """Busy all the time, and nobody tried whether more load raises the rate."""
    PROCESSORS = "processors"
    CORE = "core"
    JOB = "job"
    PORT = "port"
    RATE = "rate"
    """The rate that was asked for, and was kept."""
    PACE = "pace"
    """Time to think between I/Os."""
    ONE_AT_A_TIME = "one-at-a-time"
    """One I/O in flight on each host: the rate is one over the latency."""
    LOAD = "load"
    """The largest load that was asked for still raised the rate."""
    ENGINE = "engine"
    """The engine kept fewer I/Os in flight than asked, with time to spare on every core."""
    SOFTWARE = "software"
    """More load no longer raises the rate, and nothing that it passes through is busy."""
    BEYOND = "beyond"
    """The same where the storage itself was not watched."""
    NONE = "none"
    """Nothing watched was at its limit; nobody tried more load, or it told nothing for sure."""


@dataclass(frozen=True, slots=True)
class BottleneckDecision:
    """What limits one point: `use` is the resource at its limit, `step` what the load's step says.

    `sure` where no interval speaks against it. `also` are further resources at their limits.
    """

    cause: Cause
    sure: bool
    use: ResourceUse | None = None
    step: LoadStep | None = None
    also: tuple[ResourceUse, ...] = ()


def decide(seen: RunResources, step: LoadStep | None) -> BottleneckDecision:
    """What the evidence supports; `step` is None where no other load was measured."""
    flight = seen.flight
    if flight is not None and flight.loop is not Loop.CLOSED:
        paced = _paced(flight)
        if paced is not None:
            return BottleneckDecision(paced, sure=True)
    full, aside = _full(seen, step)
    device = _busy_device(seen)
    if full:
        # A core that is full with all others is nothing more; beside a port they are.
        also = (*full[1:], *aside)[:1] if full[0].resource is Resource.PORT else ()
        sure = not _is_of_others(full[0])
        return BottleneckDecision(_CAUSES[full[0].resource], sure=sure, use=full[0], also=also)
    alone = step is None and flight is not None and flight.one_each
    if device is not None and not alone and not _pays(step) and _may_explain(seen):
        return _of_device(device, step, aside)
    return _of_load(seen, step, device, aside)


def _of_device(
    device: ResourceUse | None, step: LoadStep | None, also: tuple[ResourceUse, ...]
) -> BottleneckDecision:
    if step is None:
        return BottleneckDecision(Cause.DEVICE_OPEN, sure=False, use=device, also=also)
    return BottleneckDecision(Cause.DEVICE, sure=step.sure, use=device, step=step, also=also)


def _of_load(
    seen: RunResources,
    step: LoadStep | None,
    device: ResourceUse | None,
    aside: tuple[ResourceUse, ...],
) -> BottleneckDecision:
    """Where no resource is at its limit: the load that was asked for, or what cannot be seen."""
    flight, nearest = seen.flight, seen.most(Resource.DEVICE)
    if flight is not None and flight.loop is Loop.CLOSED:
        if flight.kept < QUEUE_KEPT and aside:
            return BottleneckDecision(Cause.PROCESSORS, sure=True, use=aside[0])
        if flight.kept < QUEUE_KEPT:
            return BottleneckDecision(Cause.ENGINE, sure=True, step=step)
        if flight.one_each and (step is None or step.pays):
            return BottleneckDecision(
                Cause.ONE_AT_A_TIME, sure=True, use=device, step=step, also=aside
            )
    if step is None and aside:
        return _of_device(nearest, None, aside)
    if step is None:
        return BottleneckDecision(Cause.NONE, sure=False, use=device)
    if step.pays:
        return BottleneckDecision(Cause.LOAD, sure=step.sure, use=device, step=step, also=aside)
    if nearest is not None and _explains(seen):
        # I/Os are at a device that was not busy all the time, as one that is slowed down in turns.
        return BottleneckDecision(Cause.DEVICE, sure=False, use=nearest, step=step, also=aside)
    if not step.sure:
        return BottleneckDecision(Cause.NONE, sure=False, step=step)
    return BottleneckDecision(
        Cause.SOFTWARE if seen.storage_seen else Cause.BEYOND, sure=True, step=step
    )


def _is_of_others(use: ResourceUse) -> bool:
    """Whether processors are full of what is hardly the load's: it may wait for these, or not."""
    known = use.resource is Resource.PROCESSORS and use.own is not None and use.share is not None
    return known and (use.own or 0.0) < OWN_PART * (use.share or 0.0)


def _paced(flight: Flight) -> Cause | None:
    """The pace where that was kept; a rate that was not kept met another limit."""
    if flight.target_rate is None:
        return Cause.PACE
    return Cause.RATE if flight.rate >= HELD_RATE * flight.target_rate else None


def _full(
    seen: RunResources, step: LoadStep | None
) -> tuple[tuple[ResourceUse, ...], tuple[ResourceUse, ...]]:
    """Resources whose limit is a hard one, the strongest evidence first; and full processors aside.

    Others may use the processors, too: while nearly all of the latency is spent at devices, the
    load does not wait for them. A job that uses a whole core does.
    """
    found, aside = [], []
    for resource, limit in _LIMITS:
        use = seen.most(resource)
        if use is None or use.share is None or use.share < limit:
            continue
        if resource is Resource.PROCESSORS and _explains(seen, NEARLY_ALL):
            aside.append(use)
        elif resource is not Resource.CORE or not (_pays(step) or _explains(seen)):
            found.append(use)
    return tuple(found), tuple(aside)


_LIMITS: Final = (
    (Resource.PORT, FULL_PORT),
    (Resource.JOB, FULL_CORE),
    (Resource.PROCESSORS, FULL_PROCESSORS),
    (Resource.CORE, FULL_CORE),
)

_CAUSES: Final = {
    Resource.PORT: Cause.PORT,
    Resource.JOB: Cause.JOB,
    Resource.PROCESSORS: Cause.PROCESSORS,
    Resource.CORE: Cause.CORE,
}


def _busy_device(seen: RunResources) -> ResourceUse | None:
    """The busiest device where it is always busy; memory is none, its work is the processors'."""
    use = None if seen.memory_backed else seen.most(Resource.DEVICE)
    return use if use is not None and (use.share or 0.0) >= ALWAYS_BUSY else None


def _explains(seen: RunResources, share: float = MOST_OF_LATENCY) -> bool:
    """Whether devices take that share of the latency by themselves, and not by the processors."""
    known = None if seen.flight is None else seen.flight.at_device
    return known is not None and known >= share and not seen.memory_backed


def _may_explain(seen: RunResources) -> bool:
    """Whether nothing says that the I/Os wait elsewhere than at the devices."""
    known = None if seen.flight is None else seen.flight.at_device
    return known is None or known >= MOST_OF_LATENCY


def _pays(step: LoadStep | None) -> bool:
    return step is not None and step.pays
