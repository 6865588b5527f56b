"""Reaches every host and asks what it is: facts, tools, and whether its targets can be used."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec import field
from msgspec.structs import replace

from iolab.core.drive import DriveReading
from iolab.core.host import DeviceFacts, HostFacts, HostRole, HostSpec, TargetProbe
from iolab.core.run import PreRunActivity
from iolab.core.study import Study
from iolab.errors import HostError
from iolab.hosts.answers import HostLeftovers, read_answer, read_facts
from iolab.hosts.barrier import HostOutcomes, gather_hosts
from iolab.hosts.clock import ClockOffset, ControllerClock, measure_clock_offset
from iolab.hosts.connect import open_hosts
from iolab.hosts.counter_names import DISK
from iolab.hosts.device_counters import (
    SNAPSHOT_LIMIT_S,
    busiest_device_activity,
    cpu_busy_share,
    disks_snapshot_from_sample,
    parse_core_total_and_idle_ns,
)
from iolab.hosts.drive_logs import read_drive_logs
from iolab.hosts.host import Host
from iolab.hosts.message import Hello
from iolab.hosts.meters import MeterReadingOrFault, read_meters_once
from iolab.record import Record
from iolab.study.kinds import StudyKinds
from iolab.study.readiness import needs_root_rights, version_argv_by_target_program
from iolab.study.targets import Target, hypervisors_of_study, targets_of_study
from iolab.targets.devices import MOUNT_PARENT, facts_with_device_as_target, inspect_device
from iolab.targets.work_directory import CLOSE_LIMIT_S
from iolab.text import percent_text

LOOK_LIMIT_S: Final = 60.0
"""A look at every process and control group; counting the files of a folder takes longest."""

LEFTOVERS: Final = "leftovers"

FACTS_LIMIT_S: Final = 60.0
"""Reading a host's facts: hundreds of disks, each with slow firmware pages, and `fio --version`."""

PROBE_LIMIT_S: Final = 60.0
"""One O_DIRECT write and read: a busy disk takes seconds, a hung one for ever."""

CPU_BUSY: Final = 0.1
"""Share of all cores without our load; more than services of an idle host take."""

DEVICE_BUSY: Final = 0.1
"""Share of the time without our load; journals and logs keep a device busy for far less."""

WAITING: Final = 0.1
"""Share of the time in which some task waited, by PSI: as much as the processors' own."""

QUIET_WATCH_S: Final = 2.0
"""How long a machine is watched before a session, or by `iolab doctor`."""

_BUSY_AT: Final = 1 + DISK.index("busy_time_ns")
"""Where a sample's row of a disk, which begins with its name, has the time it was busy."""


async def list_or_remove_leftovers(
    specs: Iterable[HostSpec],
    path: str | None,
    *,
    leftovers_to_remove: Mapping[str, HostLeftovers] = MappingProxyType({}),
) -> HostOutcomes[HostLeftovers]:
    """Reach every host, look, and let go; `path` is for hosts that name none of their own.

    With `leftovers_to_remove`, what an earlier look found on hosts by name, that and nothing else
    is removed.
    """

    async def _connect_and_list_or_remove_leftovers(host: Host) -> HostLeftovers:
        await host.connect()
        return await list_or_remove_host_leftovers(
            host, path, leftovers_to_remove=leftovers_to_remove.get(host.name)
        )

    async with open_hosts(specs) as hosts:
        return await gather_hosts(hosts.values(), _connect_and_list_or_remove_leftovers)


async def list_or_remove_host_leftovers(
    host: Host, path: str | None, *, leftovers_to_remove: HostLeftovers | None = None
) -> HostLeftovers:
    """What was left on a connected host; `leftovers_to_remove` are gone, but for the `faults`."""
    asked = None if host.spec.serial else host.spec.path or path
    limit_s = CLOSE_LIMIT_S if leftovers_to_remove else LOOK_LIMIT_S
    names = (
        None
        if leftovers_to_remove is None
        else sorted(leftovers_to_remove.all_process_ids_and_paths)
    )
    answer = await host.request(LEFTOVERS, deadline_s=limit_s, path=asked, remove=names)
    return read_answer(host.name, HostLeftovers, answer)


class DiscoveredHosts(Record):
    """What the hosts told: by host name, or by `Target.key`."""

    hellos_by_host: dict[str, Hello]
    facts_by_target: dict[str, HostFacts]
    probes_by_target: dict[str, TargetProbe]
    devices_by_target: dict[str, DeviceFacts] = field(default_factory=dict)

    @classmethod
    def merged(cls, discoveries: Iterable[DiscoveredHosts]) -> DiscoveredHosts:
        """What several hosts told."""
        whole = cls({}, {}, {}, {})
        for part in discoveries:
            whole.hellos_by_host.update(part.hellos_by_host)
            whole.facts_by_target.update(part.facts_by_target)
            whole.probes_by_target.update(part.probes_by_target)
            whole.devices_by_target.update(part.devices_by_target)
        return whole


class DiscoveryQueries(Record):
    """What kinds of load, and of hosts that are booted, want to know beside a host's facts.

    `version_argv_by_program` is of clients, `version_argv_by_node_program` of where hosts are
    booted; `node_targets` are the directories on which hosts are booted.
    """

    version_argv_by_program: Mapping[str, list[str]] = field(default_factory=dict)
    node_targets: tuple[Target, ...] = ()
    version_argv_by_node_program: Mapping[str, list[str]] = field(default_factory=dict)

    @classmethod
    def for_study(cls, study: Study, kinds: StudyKinds) -> DiscoveryQueries:
        """What those kinds ask where the study has their load."""
        return cls(
            kinds.version_argv_by_probed_program(study),
            kinds.hosts.node_targets(study),
            kinds.hosts.version_argv_by_probed_program(study),
        )


async def discover_hosts_and_targets(
    study: Study, hosts: Mapping[str, Host], queries: DiscoveryQueries
) -> DiscoveredHosts:
    """Ask all hosts given at once. HostError names every one that failed, and what to do.

    The hosts stay connected; whoever made them closes them.
    """
    tools = {**queries.version_argv_by_program, **version_argv_by_target_program(study)}
    by_host: dict[str, list[Target]] = {}
    for target in targets_of_study(study):
        if target.host in hosts:
            by_host.setdefault(target.host, []).append(target)

    specs = {spec.name: spec for spec in study.hosts}
    watched = [name for name in hosts if name in specs and specs[name].role is not HostRole.CLIENT]
    carrying = {node.name for node in hypervisors_of_study(study)}
    booting = {target.host: target for target in queries.node_targets}

    async def discover_host(host: Host) -> DiscoveredHosts:
        spec = specs[host.name]
        if host.name in by_host:
            return await _discover_targets(host, spec, tuple(by_host[host.name]), tools, study)
        if host.name in booting:
            return await _discover_targets(
                host, spec, (booting[host.name],), queries.version_argv_by_node_program, study
            )
        hello = await host.connect()
        path = spec.path if host.name in carrying else None
        answer = await host.request("facts", deadline_s=FACTS_LIMIT_S, path=path, tools={})
        facts = _with_devices_named_by_spec(spec, read_facts(host.name, answer))
        return DiscoveredHosts({host.name: hello}, {host.name: facts}, {})

    visits = await gather_hosts([hosts[name] for name in (*by_host, *watched)], discover_host)
    return DiscoveredHosts.merged(visits.results_or_raise().values())


async def _discover_targets(
    host: Host,
    spec: HostSpec,
    targets: tuple[Target, ...],
    version_argv_by_tool: Mapping[str, list[str]],
    study: Study,
) -> DiscoveredHosts:
    settings, rights = study.target, needs_root_rights(study)
    hello = await host.connect()
    facts: dict[str, HostFacts] = {}
    probes: dict[str, TargetProbe] = {}
    devices: dict[str, DeviceFacts] = {}
    for target in targets:
        path = None if target.serial is not None else target.path
        answer = await host.request(
            "facts",
            deadline_s=FACTS_LIMIT_S,
            path=path,
            tools=version_argv_by_tool,
            cloud=settings.cloud_metadata,
        )
        answered = await host.with_pod_facts(read_facts(host.name, answer), target.path)
        if target.serial is not None:
            device = devices[target.key] = await inspect_device(host, target, settings)
            facts[target.key] = facts_with_device_as_target(answered, device)
            if rights:
                probes[target.key] = await _probe_target(
                    host, MOUNT_PARENT, does_check_permissions=True
                )
            continue
        if target.holds_no_load_data:
            answered = _without_target_devices(answered)
        host_facts = facts[target.key] = _with_devices_named_by_spec(spec, answered, is_client=True)
        # A directory that is missing or closed is the guard's to name; trying it adds nothing.
        if host_facts.target is not None and host_facts.target.writable:
            probes[target.key] = await _probe_target(
                host, target.path, does_check_permissions=rights
            )
    return DiscoveredHosts({host.name: hello}, facts, probes, devices)


def _without_target_devices(facts: HostFacts) -> HostFacts:
    """The facts of a host whose folder is no target: nothing of the load is on its devices."""
    if facts.target is None:
        return facts
    unused = replace(facts.target, device=None, devices=(), in_memory=False, memory_backed=False)
    return replace(facts, target=unused)


async def _probe_target(host: Host, path: str, *, does_check_permissions: bool) -> TargetProbe:
    """What trying a folder tells; with `does_check_permissions` also what else the agent may do."""
    answer = await host.request(
        "probe", deadline_s=PROBE_LIMIT_S, path=path, rights=does_check_permissions
    )
    return read_answer(host.name, TargetProbe, answer)


def _with_devices_named_by_spec(
    spec: HostSpec, facts: HostFacts, *, is_client: bool = False
) -> HostFacts:
    """The facts with the devices that the host's table names; HostError when it has none such.

    A client that names some of those that its target is seen to be on names members for events: the
    target is on the others as well.
    """
    known = [disk.name for disk in facts.disks]
    unknown = [name for name in spec.devices if name not in known]
    if unknown:
        message = f"Host '{spec.name}' has no block device '{unknown[0]}'."
        raise HostError(message, f"Name one of {', '.join(known) or 'its own'} as devices.")
    if not spec.devices or facts.target is None:
        return facts
    if is_client and set(spec.devices) <= set(facts.target.devices):
        return facts
    nearest = spec.devices[0] if len(spec.devices) == 1 else None
    return replace(facts, target=replace(facts.target, device=nearest, devices=spec.devices))


class HostActivity(Record):
    """What a host did while nobody asked it to do anything.

    `pre_run_activity` are the rates of the busiest device below the target, `device_busy_share` the
    largest share of the time that one of them was busy, `cpu_busy_share` that of all cores,
    `cpu_waiting_share` and `io_waiting_share` the shares in which some task waited for a processor
    or for I/O (PSI); None where it is not counted.
    """

    pre_run_activity: PreRunActivity | None
    device_busy_share: float | None
    cpu_busy_share: float | None
    cpu_waiting_share: float | None = None
    io_waiting_share: float | None = None

    def interference_reason_or_none(self) -> str | None:
        """What others do there that a result would hold, for people; None where it is fit."""
        reasons = []
        if (self.cpu_busy_share or 0.0) > CPU_BUSY:
            reasons.append(f"processors {percent_text(self.cpu_busy_share or 0.0)} busy")
        if (self.cpu_waiting_share or 0.0) > WAITING:
            reasons.append(
                "tasks waited for a processor "
                f"{percent_text(self.cpu_waiting_share or 0.0)} of the time"
            )
        if (self.device_busy_share or 0.0) > DEVICE_BUSY:
            reasons.append(
                f"a device below the directory {percent_text(self.device_busy_share or 0.0)} busy"
            )
        if (self.io_waiting_share or 0.0) > WAITING:
            reasons.append(
                f"tasks waited for I/O {percent_text(self.io_waiting_share or 0.0)} of the time"
            )
        return ", ".join(reasons) or None


class InspectedHost(Record):
    """One host that answered: `path` is the directory it was asked about, None for none."""

    spec: HostSpec
    path: str | None
    facts: HostFacts
    probe: TargetProbe | None
    activity: HostActivity
    clock_offset: ClockOffset
    hello: Hello
    leftovers: HostLeftovers | None
    drives: tuple[DriveReading, ...] = ()
    meters: tuple[MeterReadingOrFault, ...] = ()


async def inspect_hosts(
    hosts: Mapping[str, Host],
    default_path: str | None,
    version_argv_by_tool: Mapping[str, list[str]],
    clock: ControllerClock,
    *,
    reads_cloud_metadata: bool,
) -> HostOutcomes[InspectedHost]:
    """Connect and ask all hosts at once, then watch them all while none is asked.

    `default_path` is for hosts that name none of their own. The hosts stay connected; whoever made
    them closes them. Drives below a target, and meters beside a host, are read once.
    """

    async def _connect_and_inspect(host: Host) -> _Inspection:
        return await _inspect_host(
            host,
            _target_directory(host.spec, default_path),
            version_argv_by_tool,
            does_ask_cloud_metadata=reads_cloud_metadata,
        )

    met = await gather_hosts(hosts.values(), _connect_and_inspect)

    async def _watch_inspected_host(host: Host) -> InspectedHost:
        facts, probe, hello, left = met.results[host.name]
        # The clock comes last: the watch sees none of our own questions.
        quiet = await watch_activity(host, facts)
        offset = await measure_clock_offset(host, clock)
        folder = _target_directory(host.spec, default_path)
        drives = await read_drive_logs(host, facts.target.devices if facts.target else ())
        meters = await read_meters_once((host.spec,))
        return InspectedHost(
            host.spec, folder, facts, probe, quiet, offset, hello, left, drives, meters
        )

    watched = await gather_hosts([hosts[name] for name in met.results], _watch_inspected_host)
    return HostOutcomes(watched.results, {**met.errors, **watched.errors})


def _target_directory(spec: HostSpec, path: str | None) -> str | None:
    """The directory to ask a host about; none where its target is a block device."""
    return None if spec.serial else spec.path or path


_Inspection = tuple[HostFacts, TargetProbe | None, Hello, HostLeftovers | None]


async def _inspect_host(
    host: Host,
    path: str | None,
    version_argv_by_tool: Mapping[str, list[str]],
    *,
    does_ask_cloud_metadata: bool,
) -> _Inspection:
    hello = await host.connect()
    left = (
        await list_or_remove_host_leftovers(host, path) if LEFTOVERS in hello.capabilities else None
    )
    answer = await host.request(
        "facts",
        deadline_s=FACTS_LIMIT_S,
        path=path,
        tools=version_argv_by_tool,
        cloud=does_ask_cloud_metadata,
    )
    facts = await host.with_pod_facts(read_facts(host.name, answer), path)
    if facts.target is None or not facts.target.writable:
        return facts, None, hello, left
    tried = await host.request("probe", deadline_s=PROBE_LIMIT_S, path=path)
    return facts, read_answer(host.name, TargetProbe, tried), hello, left


async def watch_activity(host: Host, facts: HostFacts) -> HostActivity:
    """What a host does while nobody asks it to do anything. Raises HostError."""
    devices = facts.target.devices if facts.target is not None else ()
    before = await host.request("snapshot", deadline_s=SNAPSHOT_LIMIT_S)
    await asyncio.sleep(QUIET_WATCH_S)
    after = await host.request("snapshot", deadline_s=SNAPSHOT_LIMIT_S)
    try:
        then, now = disks_snapshot_from_sample(before), disks_snapshot_from_sample(after)
    except ValueError as fault:
        raise host.end_as_lost(f"sent a malformed sample: {fault}") from None
    span_ns = now.mono_ns - then.mono_ns
    return HostActivity(
        busiest_device_activity(then, now, devices),
        device_busy_share(before.header, after.header, devices, span_ns),
        cpu_busy_share(
            parse_core_total_and_idle_ns(before.header.get("cpu")),
            parse_core_total_and_idle_ns(after.header.get("cpu")),
        ),
        *(
            _pressure_stall_share(before.header, after.header, name, span_ns)
            for name in ("cpu", "io")
        ),
    )


def _pressure_stall_share(
    before: Mapping[str, Any], after: Mapping[str, Any], resource: str, span_ns: int
) -> float | None:
    """The share of `span_ns` in which some task waited for a resource."""
    rows = (before.get("pressure"), after.get("pressure"))
    then, now = (row.get(f"{resource}_some_ns") if isinstance(row, dict) else None for row in rows)
    if not isinstance(then, int) or not isinstance(now, int) or span_ns <= 0:
        return None
    return min(max((now - then) / span_ns, 0.0), 1.0)


def device_busy_share(
    before: Mapping[str, Any], after: Mapping[str, Any], devices: tuple[str, ...], span_ns: int
) -> float | None:
    """The largest share of `span_ns` that one of the devices was busy; None where none counts it.

    The arguments are two samples that have lists of disks.
    """
    then, now = _busy_ns_by_device(before), _busy_ns_by_device(after)
    if span_ns <= 0:
        return None
    shares = [(now[name] - then.get(name, 0)) / span_ns for name in devices if name in now]
    return min(max(*shares, 0.0), 1.0) if shares else None


def _busy_ns_by_device(sample: Mapping[str, Any]) -> dict[str, int]:
    rows = (row for row in sample["disks"] if len(row) > _BUSY_AT)
    return {row[0]: row[_BUSY_AT] for row in rows if isinstance(row[_BUSY_AT], int)}
