"""The processors, disks and ports of a run as its telemetry shows them, and the busiest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from iolab.analysis.busy import ALWAYS_BUSY, job_share_of_its_core
from iolab.analysis.service_time import host_concurrency
from iolab.analysis.storage_bytes import (
    LOOPBACK,
    deltas_of_devices_on_no_other,
    names_of_devices_on_no_other,
    nearest_device_names,
)
from iolab.analysis.sums import DIRECTIONS
from iolab.analysis.view import NO_IO_TIME, RunView, io_time_in_window
from iolab.analysis.window import Window
from iolab.core.host import BYTES_READ, BYTES_WRITTEN, READS, WRITES, HostFacts, HostRole
from iolab.core.resources import IoConcurrency, IssueRule, Resource, ResourceUse, RunResources
from iolab.core.run import HostRun, RunRecord
from iolab.core.workload import Direction
from iolab.hosts.rates import ALL_CORES, derive_counter_series

if TYPE_CHECKING:
    from iolab.analysis.kinds import AnalysisKinds

EVERY_CORE_HOSTS_MAX: Final = 64
"""Hosts of which every core is looked at; of more, all cores of each together: a thousand hosts of
a hundred cores are 100,000 series."""


WATCHED: Final = {"cpu": None, "disk": None, "nic": None}
"""The telemetry of every core, disk and port, by scope and name."""

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

PORT_DIRECTIONS: Final = {"rx_bytes_per_s": "in", "tx_bytes_per_s": "out"}
"""Both ways of a port: a link carries its speed in each of them."""

QUEUE_SHARE: Final = 0.5
"""Of the I/Os in flight above it a lower device must hold this share to be what they wait for."""

REACHED_DEVICE_SHARE: Final = 0.9
"""Of what a client did, from which a device that shows less in coarse samples did all."""

_LIMITED_RATES: Final = {
    READS: ("read_iops", Direction.READ),
    WRITES: ("write_iops", Direction.WRITE),
    BYTES_READ: ("read_bytes_per_s", Direction.READ),
    BYTES_WRITTEN: ("write_bytes_per_s", Direction.WRITE),
}
"""Of what a control group counts: the device's metric, and the direction of the load's I/Os."""


def view_with_all_resource_telemetry(
    record: RunRecord, facts_by_target: Mapping[str, HostFacts], kinds: AnalysisKinds
) -> RunView:
    """The run with the processors, disks and ports of all of its hosts."""
    is_large = len(record.host_names) > EVERY_CORE_HOSTS_MAX
    wanted = {**WATCHED, "cpu": ALL_CORES} if is_large else WATCHED
    telemetry = derive_counter_series(record.counters, record.host_names, wanted)
    return kinds.build_view(record, facts_by_target, telemetry)


def run_resources(view: RunView) -> RunResources:
    """The busiest resources of one run over its measured window; pure."""
    own = (use for kind in view.host_kinds for use in kind.kind_specific_resource_uses(view))
    uses = [*_client_resource_uses(view), *_monitored_node_resource_uses(view), *own]
    targets = [target for host in view.hosts if (target := view.target_of_host(host)) is not None]
    return RunResources(
        uses=tuple(_busiest_use_by_resource_and_role(uses)),
        concurrency=_io_concurrency(view) if view.job.iodepth_per_client else None,
        memory_backed=any(target.memory_backed or target.in_memory for target in targets),
        is_storage_monitored=any(use.resource is Resource.DEVICE for use in uses),
        stolen_share=_highest_steal_share(view),
    )


def _busiest_use_by_resource_and_role(uses: Iterable[ResourceUse]) -> Iterator[ResourceUse]:
    """Of each resource and role the busiest; a port of unknown speed by what it moved."""
    busiest: dict[tuple[Resource, HostRole], ResourceUse] = {}
    for use in uses:
        place = (use.resource, use.role)
        if place not in busiest or use.busiest_sort_key > busiest[place].busiest_sort_key:
            busiest[place] = use
    return iter(busiest.values())


def _client_resource_uses(view: RunView) -> Iterator[ResourceUse]:
    for index, host in enumerate(view.hosts):
        window = view.measured_window(index)
        if window is None:
            continue
        jobs = None if view.job.has_busy_polling else job_share_of_its_core(host)
        yield from _processor_uses(
            view, host.host, HostRole.CLIENT, window, engine_share_of_host_cpus(view, host)
        )
        if jobs is not None and view.job.iodepth_per_client:
            yield ResourceUse(Resource.JOB, host.host, HostRole.CLIENT, "", jobs)
        target = view.target_of_host(host)
        if target is not None and target.devices:
            facts = view.facts_of_host(host)
            yield from device_resource_uses(view, host.host, target.devices, facts, window)
            yield from _io_limit_uses(view, index, facts, window)
        moved = float(view.load.bytes[index].sum())
        seconds = float(view.load.seconds[index])
        load_bytes_per_s = moved / seconds if moved > 0 and seconds > 0 else None
        yield from network_port_uses(
            view, host.host, HostRole.CLIENT, view.facts_of_host(host), window, load_bytes_per_s
        )


def _monitored_node_resource_uses(view: RunView) -> Iterator[ResourceUse]:
    """Storage nodes and hypervisors."""
    window = next((view.measured_window(index) for index in range(len(view.hosts))), None)
    if window is None:
        return
    for node in view.record.monitored_hosts:
        facts = view.facts.get(node.host)
        yield from _processor_uses(view, node.host, node.role, window)
        for delta in deltas_of_devices_on_no_other(node, facts):
            yield from device_resource_uses(
                view, node.host, (delta.device,), facts, window, node.role
            )
        yield from network_port_uses(view, node.host, node.role, facts, window, None)


def _processor_uses(
    view: RunView, host_name: str, role: HostRole, window: Window, load_share: float | None = None
) -> Iterator[ResourceUse]:
    busy = metric_mean_by_device(view, host_name, "cpu", "busy_share", window)
    if ALL_CORES in busy:
        yield ResourceUse(
            Resource.PROCESSORS, host_name, role, "", busy[ALL_CORES], own_load_share=load_share
        )
    cores = {name: share for name, share in busy.items() if "@" in name}
    if cores:
        name = max(cores, key=lambda core: cores[core])
        yield ResourceUse(Resource.CORE, host_name, role, name.partition("@")[0], cores[name])


def engine_share_of_host_cpus(view: RunView, host: HostRun) -> float | None:
    """What all jobs of a host used of its processors; not of those that poll all the time.

    By the engine's own count, of loads that are not counted so by that of its threads. Of loads
    against a server it is unknown: that may use the processors of the same host for them.
    """
    facts, totals, job = view.facts_of_host(host), host.totals, view.job
    if job.has_busy_polling or facts is None or facts.cpu.threads < 1:
        return None
    if job.iodepth_per_client and totals is not None:
        jobs = view.record.run.point.job_on_host(host.host).jobs_per_client
        percent = totals.user_cpu_percent + totals.system_cpu_percent
        return min(percent / 100 * jobs / facts.cpu.threads, 1.0)
    use = host.processor
    if job.iodepth_per_client or job.is_answered_by_server or use is None or not use.watched_ns:
        return None
    return min(use.run_ns / use.watched_ns / facts.cpu.threads, 1.0)


def _highest_steal_share(view: RunView) -> float:
    shares = [
        view.mean_telemetry(index, "cpu", ALL_CORES, "steal_share")
        for index in range(len(view.hosts))
    ]
    return max((share for share in shares if share is not None), default=0.0)


def _io_concurrency(view: RunView) -> IoConcurrency | None:
    """Little's law over all hosts; None where no I/O was measured."""
    point, load = view.record.run.point, view.load
    jobs = [point.job_on_host(host.host) for host in view.hosts]
    service = view.service_times
    by_host = [
        host_concurrency(load, index, job.iodepth_per_client, service)
        for index, job in enumerate(jobs)
    ]
    measured = [flight for flight in by_host if flight is not None]
    ios = int(load.ios.sum())
    if not measured or ios == 0:
        return None
    asked_rates = [
        job.target_iops_per_job * job.jobs_per_client
        for job in jobs
        if job.target_iops_per_job is not None
    ]
    seconds = np.maximum(load.seconds, 1e-9)
    return IoConcurrency(
        issue_rule=IssueRule.RATE
        if any(job.is_paced for job in jobs)
        else IssueRule.CLOSED
        if all(job.is_closed_loop for job in jobs)
        else IssueRule.PACED,
        in_flight=sum(flight.in_flight for flight in measured),
        requested_depth=sum(job.iodepth_per_client for job in jobs),
        has_one_per_job=all(job.iodepth_per_client == 1 for job in jobs),
        latency_ns=float((load if service is None else service).lat_sum_ns.sum()) / ios,
        device_ns=_mean_device_latency_ns(view) if point.job.direct else None,
        rate=float((load.ios.sum(axis=1) / seconds).sum()),
        target_rate=float(sum(asked_rates)) if asked_rates else None,
    )


def _mean_device_latency_ns(view: RunView) -> float | None:
    """The mean time of an I/O at the clients' own devices, else at the watched nodes' devices."""
    window = view.load.measured_part.common_window or view.measured_window(0)
    if window is None:
        return None
    places: list[tuple[str, tuple[str, ...]]] = []
    for host in view.hosts:
        facts = view.facts_of_host(host)
        if facts is not None and facts.target is not None and facts.target.devices:
            places.append((host.host, nearest_device_names(facts.target.devices, facts)))
    if len(places) < len(view.hosts):
        places = [
            (
                node.host,
                tuple(
                    delta.device
                    for delta in deltas_of_devices_on_no_other(node, view.facts.get(node.host))
                ),
            )
            for node in view.record.monitored_hosts
            if node.role is HostRole.STORAGE
        ]
    total = NO_IO_TIME
    for host_name, devices in places:
        for way in DIRECTIONS:
            if not view.load.ios[:, way].any():
                continue
            service = io_time_in_window(view, (host_name, "disk"), devices, way, window)
            if service is None:
                return None
            total += service
    return total.mean_ns


def metric_mean_by_device(
    view: RunView, host_name: str, scope: str, metric_key: str, window: Window
) -> dict[str, float]:
    """The mean over the window of one metric of every device of a scope, by name.

    Each step weighs as much as it shares with the window; names without a sample there are left
    out.
    """
    by_name: dict[str, float] = {}
    for series in view.counter_series(host_name, scope, metric_key):
        shared = view.step_overlap_ns(series, window)
        counted = (shared > 0) & np.isfinite(series.value)
        if counted.any():
            weights = shared[counted].astype(np.float64)
            by_name[series.name] = float(np.average(series.value[counted], weights=weights))
    return by_name


def network_port_uses(
    view: RunView,
    host_name: str,
    role: HostRole,
    facts: HostFacts | None,
    window: Window,
    load_bytes_per_s: float | None,
) -> Iterator[ResourceUse]:
    """Each port and way of a host; `load_bytes_per_s` is the load's own, None if unknown."""
    speeds = bytes_per_s_by_port(facts)
    for metric, way in PORT_DIRECTIONS.items():
        for port, rate in metric_mean_by_device(view, host_name, "nic", metric, window).items():
            if port == LOOPBACK or (
                load_bytes_per_s is not None and load_bytes_per_s < LOAD_SHARE * rate
            ):
                continue
            speed = speeds.get(port)
            if speed is not None:
                yield ResourceUse(
                    Resource.PORT, host_name, role, f"{port} {way}", rate / speed, rate
                )
            elif rate >= QUIET_BYTES_PER_S:
                yield ResourceUse(Resource.PORT, host_name, role, f"{port} {way}", None, rate)


def bytes_per_s_by_port(facts: HostFacts | None) -> dict[str, float]:
    """What each port carries that has a speed of its own."""
    return {
        nic.name: nic.speed_mbit_s * BYTES_PER_MBIT
        for nic in (facts.nics if facts else ())
        if nic.speed_mbit_s and nic.driver not in NOMINAL_DRIVERS
    }


def device_resource_uses(
    view: RunView,
    host_name: str,
    device_stack: Sequence[str],
    facts: HostFacts | None,
    window: Window,
    role: HostRole = HostRole.CLIENT,
) -> Iterator[ResourceUse]:
    """The device of a stack (nearest the file system first) that its I/Os wait for, if watched."""
    busy = metric_mean_by_device(view, host_name, "disk", "busy_share", window)
    queue = metric_mean_by_device(view, host_name, "disk", "queue_depth", window)
    reads = metric_mean_by_device(view, host_name, "disk", "read_iops", window)
    writes = metric_mean_by_device(view, host_name, "disk", "write_iops", window)
    uses = [
        ResourceUse(
            resource=Resource.DEVICE,
            host=host_name,
            role=role,
            name=name,
            share=busy[name],
            rate=reads.get(name, 0.0) + writes.get(name, 0.0),
            queue=queue.get(name),
        )
        for name in device_stack
        if name in busy
    ]
    if uses:
        yield _saturated_or_busiest_device(
            uses, max(len(names_of_devices_on_no_other(device_stack, facts)), 1)
        )


def _io_limit_uses(
    view: RunView, host_index: int, facts: HostFacts | None, window: Window
) -> Iterator[ResourceUse]:
    """How much of each limit of its control groups a client's own I/Os at its device used.

    Others may use the device, too, and a cache may answer the load: of the two rates the lower.
    What bypasses caches and nearly all reaches the device counts as the engine counts it: samples
    of the device's counters do not begin and end with the window.
    """
    seconds = float(view.load.seconds[host_index])
    if facts is None or seconds <= 0:
        return
    host = view.hosts[host_index].host
    for limit in facts.target_cgroup_io_limits:
        for counted, allowed in limit.nouns_and_limits:
            metric, direction = _LIMITED_RATES[counted]
            done = view.load.ios if counted in (READS, WRITES) else view.load.bytes
            own = float(done[host_index, DIRECTIONS.index(direction)]) / seconds
            at_device = metric_mean_by_device(view, host, "disk", metric, window).get(limit.device)
            if not allowed or own <= 0 or at_device is None:
                continue
            reaches_device = view.job.direct and at_device >= REACHED_DEVICE_SHARE * own
            rate = min(own, max(at_device, allowed) if reaches_device else at_device)
            name = f"{limit.device} {counted}"
            yield ResourceUse(
                Resource.IO_LIMIT, host, HostRole.CLIENT, name, rate / allowed, rate=rate
            )


def _saturated_or_busiest_device(uses: Sequence[ResourceUse], leaf_count: int) -> ResourceUse:
    """The lowest that is always busy and holds its part of the queue, else the busiest."""
    longest = max(use.queue or 0.0 for use in uses)
    full = [
        use
        for use in uses
        if (use.share or 0.0) >= ALWAYS_BUSY
        and (use.queue or 0.0) >= QUEUE_SHARE * longest / leaf_count
    ]
    return full[-1] if full else max(uses, key=lambda use: use.busiest_sort_key)
