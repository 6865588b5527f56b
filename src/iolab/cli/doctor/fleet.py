"""Whether the hosts of a fleet are ready, and alike where they must be for one number. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace
from rich.text import Text

from iolab.cli.doctor.findings import (
    OTHER_LOAD_TOPIC,
    POWER_TOPIC,
    Finding,
    FindingState,
    cgroup_limit_findings,
    drive_log_findings,
    leftover_and_rights_findings,
    power_meter_findings,
    program_findings,
    readiness,
    required_client_programs,
    target_findings,
    target_probe_findings,
    unreadable_fact_findings,
)
from iolab.core.host import (
    CloudFacts,
    HostFacts,
    HostRole,
    NicFacts,
    TargetFacts,
    version_argv_by_tool,
)
from iolab.core.shared_storage import shared_pod_storage
from iolab.errors import IolabError
from iolab.hosts.barrier import HostOutcomes
from iolab.hosts.clock import SYSTEM_CLOCK, ClockOffset
from iolab.hosts.connect import open_hosts
from iolab.record import Record
from iolab.registry import study_kinds
from iolab.report.table import Column
from iolab.report.terminal import QUIET_STYLE, literal_text, terminal_table
from iolab.session.discovery import (
    CPU_BUSY,
    DEVICE_BUSY,
    QUIET_WATCH_S,
    InspectedHost,
    inspect_hosts,
)
from iolab.text import counted_noun, list_text, percent_text
from iolab.units import format_bytes, format_count, format_ns, format_rate_bytes

if TYPE_CHECKING:
    from rich.console import RenderableType

    from iolab.core.host import HostSpec

CLOCK_OFF_NS: Final = 100_000_000
"""A clock this far off is kept by nobody: NTP holds hosts of one network within milliseconds."""

NAMES_SHOWN: Final = 4
"""Hosts named for each value that differs; the table names them all."""

PERFORMANCE: Final = "performance"
UNKNOWN_TEXT: Final = "unknown"
UNKNOWN_HINT: Final = "Virtual machines often hide it; look at the machines below them."

HOSTS_SHOWN: Final = 4
"""Names in a cell; a finding about more hosts counts the rest."""

NO_VALUE: Final = "–"

STYLES: Final = {
    FindingState.OK: "green",
    FindingState.NOTE: "yellow",
    FindingState.FAULT: "bold red",
}


class FleetFinding(Record):
    """One answer and the hosts that it is about."""

    hosts: tuple[str, ...]
    finding: Finding


def fleet_findings(inspected: HostOutcomes[InspectedHost]) -> tuple[FleetFinding, ...]:
    """Everything to be told of the hosts together: faults first, then notes, then what is well."""
    hosts = tuple(inspected.results.values())
    findings = [
        *_unreachable_host_findings(inspected.errors),
        *_single_host_findings(hosts),
        *_clock_findings(hosts),
        *_same_machine_findings(hosts),
        *_pod_findings(hosts),
        *_other_load_findings(hosts),
    ]
    for role in HostRole:
        members = tuple(host for host in hosts if host.spec.role is role)
        if members:
            findings += _label_findings_with_role(
                _role_comparison_findings(members, role), members, role
            )
    order = (FindingState.FAULT, FindingState.NOTE, FindingState.OK)
    return tuple(sorted(findings, key=lambda item: order.index(item.finding.state)))


def fastest_port(facts: HostFacts) -> NicFacts | None:
    """The port that is up and fastest (of several the one of the largest MTU); None without any."""
    up = [port for port in facts.nics if port.up]
    return max(up, key=lambda port: (port.speed_mbit_s or 0, port.mtu), default=None)


def link_speed_text(port: NicFacts | None) -> str:
    """`25G` or `100M` for people; `unknown` where the kernel does not tell."""
    if port is None or not port.speed_mbit_s:
        return UNKNOWN_TEXT
    if port.speed_mbit_s < 1000:
        return f"{port.speed_mbit_s}M"
    return f"{port.speed_mbit_s / 1000:g}G"


def _unreachable_host_findings(error_by_host: Mapping[str, IolabError]) -> Iterator[FleetFinding]:
    for name, error in error_by_host.items():
        yield FleetFinding((name,), Finding("reach", FindingState.FAULT, error.message, error.hint))


def _single_host_findings(hosts: Sequence[InspectedHost]) -> Iterator[FleetFinding]:
    """What is wrong with a host whatever the others are; the same on several is told once."""
    grouped: dict[Finding, list[str]] = {}
    for host in hosts:
        for finding in _host_findings(host):
            # A file system over the network is what a fleet is for; hosts are compared below.
            target = host.facts.target
            over_network = (
                finding.topic == "file system"
                and finding.state is FindingState.NOTE
                and target is not None
                and target.network
            )
            is_told = finding.state is not FindingState.OK or finding.topic == POWER_TOPIC
            if is_told and not over_network:
                grouped.setdefault(finding, []).append(host.spec.name)
    for finding, names in grouped.items():
        yield FleetFinding(tuple(names), finding)


def _host_findings(host: InspectedHost) -> Iterator[Finding]:
    if host.spec.role is HostRole.CLIENT:
        yield from program_findings(host.facts)
        if host.path is None:
            hint = "Give --path DIR, or a path in the inventory, to look at it too."
            yield Finding("directory", FindingState.NOTE, "no directory was named", hint)
    if host.path is not None:
        yield from target_findings(host.facts, host.path)
    yield from leftover_and_rights_findings(host.hello, host.leftovers)
    if host.probe is not None:
        yield from target_probe_findings(host.probe)
    yield from drive_log_findings(host.drives)
    yield from power_meter_findings(host.meters)
    yield from cgroup_limit_findings(host.facts)
    yield from unreadable_fact_findings(host.facts)


def _clock_findings(hosts: Sequence[InspectedHost]) -> Iterator[FleetFinding]:
    off = [host for host in hosts if abs(host.clock_offset.offset_ns) > CLOCK_OFF_NS]
    vague = [host for host in hosts if host.clock_offset.error_ns > CLOCK_OFF_NS]
    ahead = [host for host in off if host.clock_offset.offset_ns > 0]
    behind = [host for host in off if host.clock_offset.offset_ns < 0]
    for way, same in (("ahead of", ahead), ("behind", behind)):
        if same:
            distance = _range_text([abs(host.clock_offset.offset_ns) for host in same], format_ns)
            error = format_ns(max(host.clock_offset.error_ns for host in same))
            message = f"{distance} ± {error} {way} this machine's"
            hint = "Keep it by NTP or PTP, as with chrony: starts are corrected, times in logs not."
            yield FleetFinding(
                _host_names(same), Finding("clock", FindingState.NOTE, message, hint)
            )
    if vague:
        error = _range_text([host.clock_offset.error_ns for host in vague], format_ns)
        message = f"known to ± {error} only; answers are slow"
        hint = "Look for load on the host or on the way to it; starts will be as far apart."
        yield FleetFinding(_host_names(vague), Finding("clock", FindingState.NOTE, message, hint))
    if hosts and not off and not vague:
        message = f"all within {format_ns(CLOCK_OFF_NS)} of this machine's"
        yield FleetFinding(_host_names(hosts), Finding("clock", FindingState.OK, message))


def _same_machine_findings(hosts: Sequence[InspectedHost]) -> Iterator[FleetFinding]:
    """Hosts that are one machine under several names, which share what they are measured by."""
    by_boot = _hosts_by_value((host.facts.kernel.boot_id, host) for host in hosts)
    for boot, same in by_boot.items():
        if boot and len(same) > 1:
            message = (
                f"{counted_noun(len(same), 'host')} are one machine: they share one running kernel"
            )
            hint = "Name each machine once; of containers, know that they share what is measured."
            yield FleetFinding(
                _host_names(same), Finding("machine", FindingState.NOTE, message, hint)
            )


def _pod_findings(hosts: Sequence[InspectedHost]) -> Iterator[FleetFinding]:
    """Where pods run, what their volumes are, and which of these are on one disk."""
    pods = [(pod, host) for host in hosts if (pod := host.facts.pod) is not None]
    if not pods:
        return
    names = _host_names(host for _, host in pods)
    places = _hosts_by_value(
        (pod.pod_node_and_limits_text or UNKNOWN_TEXT, host) for pod, host in pods
    )
    message = _values_with_pod_names_text(places)
    yield FleetFinding(names, Finding("pods", FindingState.OK, message))
    volumes = _hosts_by_value((pod.volume_text or UNKNOWN_TEXT, host) for pod, host in pods)
    message = _values_with_pod_names_text(volumes)
    classless = [pod for pod, _ in pods if not pod.storage_class]
    if not classless:
        yield FleetFinding(names, Finding("volumes", FindingState.OK, message))
    else:
        hint = "Mount a claim of a storage class if one is to be measured."
        if all(pod.claim and not pod.volume_kind for pod in classless):
            hint = "Have the rights to read claims, volumes and classes given to see what it is."
        yield FleetFinding(names, Finding("volumes", FindingState.NOTE, message, hint))
    for group in shared_pod_storage({host.spec.name: host.facts for host in hosts}):
        hint = "Run one pod a node, or ask for volumes on disks of their own."
        state = FindingState.OK if group.is_one_claim else FindingState.NOTE
        message = f"{group.hosts_and_shared_storage_text}: each has what the others leave"
        yield FleetFinding(group.hosts, Finding("shared target", state, message, hint))


def _values_with_pod_names_text(hosts_by_value: Mapping[str, Sequence[InspectedHost]]) -> str:
    """Each value behind its pods; alone where all pods have it, which the row names."""
    if len(hosts_by_value) == 1:
        return next(iter(hosts_by_value))
    return "; ".join(
        f"{list_text(_host_names(hosts), NAMES_SHOWN)}: {value}"
        for value, hosts in hosts_by_value.items()
    )


def _other_load_findings(hosts: Sequence[InspectedHost]) -> Iterator[FleetFinding]:
    """Who was busy while we only watched; hosts that are busy in the same way are told of once."""
    cores = [
        (busy_share, host)
        for host in hosts
        if (busy_share := host.activity.cpu_busy_share or 0.0) > CPU_BUSY
    ]
    disks = [
        (busy_share, host)
        for host in hosts
        if (busy_share := host.activity.device_busy_share or 0.0) > DEVICE_BUSY
    ]
    moved = [
        (idle, host)
        for host in hosts
        if (idle := host.activity.pre_run_activity) and not idle.is_quiet
    ]
    busy: list[tuple[str, tuple[str, ...]]] = []
    if cores:
        share = _range_text([value for value, _ in cores], percent_text)
        busy.append((f"processors {share} busy", _host_names(host for _, host in cores)))
    if disks:
        share = _range_text([value for value, _ in disks], percent_text)
        message = f"a device below the directory {share} busy"
        busy.append((message, _host_names(host for _, host in disks)))
    if moved:
        rate = _range_text([idle.bytes_per_s for idle, _ in moved], format_rate_bytes)
        ios = _range_text([idle.ios_per_s for idle, _ in moved], format_count)
        message = f"others move {rate}, {ios} I/Os/s there"
        busy.append((message, _host_names(host for _, host in moved)))
    hint = "Find the cause, as with top or iotop, and stop it while you measure."
    for message, names in busy:
        yield FleetFinding(names, Finding(OTHER_LOAD_TOPIC, FindingState.NOTE, message, hint))
    if hosts and not busy:
        yield FleetFinding(
            _host_names(hosts),
            Finding(OTHER_LOAD_TOPIC, FindingState.OK, f"none in {QUIET_WATCH_S:g} s"),
        )


def _range_text(values: Sequence[float], format_value: Callable[[float], str]) -> str:
    """The least and the most of them, once where they read the same."""
    low, high = format_value(min(values)), format_value(max(values))
    return low if low == high else f"{low} to {high}"


def _role_comparison_findings(hosts: Sequence[InspectedHost], role: HostRole) -> Iterator[Finding]:
    """Each thing in which hosts of one role must not differ; storage has its own directories."""
    if role is HostRole.CLIENT:
        for program in study_kinds().doctor_programs:
            having = [host for host in hosts if program.is_installed(host.facts)]
            # A host that lacks what all need has a finding of its own.
            alike = hosts if program.fault_of_facts is None else having
            if having:
                versions = ((program.version_text(host.facts), host) for host in alike)
                yield _equality_finding(program.title, versions, program.unequal_versions_hint)
        yield from _file_system_findings(hosts)
    hint = "Boot the same kernel on all, or read results of each host by itself."
    yield _equality_finding("kernel", ((host.facts.kernel.release, host) for host in hosts), hint)
    hint = "Read results of each kind by itself; a phase ends with its slowest host."
    yield _equality_finding(
        "processor", ((_cpu_model_and_architecture_text(host.facts), host) for host in hosts), hint
    )
    machines = [
        (host.facts.machine.vendor_and_product_text or UNKNOWN_TEXT, host) for host in hosts
    ]
    if any(title != UNKNOWN_TEXT for title, _ in machines):
        yield _equality_finding("machine", machines, hint)
    if any(host.facts.cloud for host in hosts):
        yield _equality_finding(
            "cloud",
            ((_cloud_text_without_volume_names(host.facts.cloud), host) for host in hosts),
            hint,
        )
    ports = [(fastest_port(host.facts), host) for host in hosts]
    hint = "See cables, transceivers and ports of the slower ones; the slowest decides a phase."
    yield _equality_finding("link", ((link_speed_text(port), host) for port, host in ports), hint)
    hint = "Set one MTU on all hosts and on every switch between them."
    yield _equality_finding(
        "MTU", ((str(port.mtu) if port else UNKNOWN_TEXT, host) for port, host in ports), hint
    )
    governors = [(host.facts.cpu.governor or UNKNOWN_TEXT, host) for host in hosts]
    hint = f"Set it to {PERFORMANCE} on all, as with 'cpupower frequency-set -g {PERFORMANCE}'."
    finding = _equality_finding("governor", governors, hint)
    slow = {name for name, _ in governors} - {PERFORMANCE, UNKNOWN_TEXT}
    yield replace(finding, state=FindingState.NOTE, hint=hint) if slow else finding


def _cloud_text_without_volume_names(cloud: CloudFacts | None) -> str:
    """What hosts of one kind have in common: not the names of their volumes."""
    if cloud is None:
        return UNKNOWN_TEXT
    return replace(
        cloud, volumes=tuple(replace(volume, name="") for volume in cloud.volumes)
    ).summary_text


def _cpu_model_and_architecture_text(facts: HostFacts) -> str:
    return f"{facts.cpu.model} ({facts.kernel.architecture})"


def _file_system_findings(hosts: Sequence[InspectedHost]) -> Iterator[Finding]:
    """Whether the directory is one file system everywhere, one of each host's own, or a mix."""
    targets = [(host.facts.target, host) for host in hosts]
    mounted = [(target, host) for target, host in targets if target is not None]
    if not mounted:
        return
    groups = _hosts_by_value((_mount_source_text(target), host) for target, host in mounted)
    one_machine = len({host.facts.kernel.boot_id for _, host in mounted}) == 1
    if len(groups) == 1 and one_machine and len({host.path for _, host in mounted}) > 1:
        message = f"one file system, but not one directory: {next(iter(groups))}"
        hint = (
            "Name one directory for all where clients are to work on each other's files (metadata)."
        )
        yield Finding("file system", FindingState.NOTE, message, hint)
    elif len(groups) == 1 and (one_machine or mounted[0][0].network):
        yield Finding("file system", FindingState.OK, f"the same everywhere: {next(iter(groups))}")
    elif any(target.network for target, _ in mounted):
        hint = "Mount the same on all; a host without the mount measures its own disk."
        yield Finding(
            "file system",
            FindingState.NOTE,
            f"not the same everywhere: {_values_with_hosts_text(groups)}",
            hint,
        )
    else:
        message = f"each host has its own, none is shared: {_values_with_hosts_text(groups)}"
        hint = (
            "If a shared one is meant, mount it; else totals add up these, and metadata workloads "
        )
        hint += "with a rank shift, as mdtest's, are refused."
        yield Finding("file system", FindingState.NOTE, message, hint)


def _mount_source_text(target: TargetFacts) -> str:
    return f"{target.fs_type} from {target.mount_source}"


def _equality_finding(
    topic: str, values_and_hosts: Iterable[tuple[str, InspectedHost]], hint: str
) -> Finding:
    groups = _hosts_by_value(values_and_hosts)
    if set(groups) == {UNKNOWN_TEXT}:
        return Finding(topic, FindingState.NOTE, "unknown: no host tells it", UNKNOWN_HINT)
    if len(groups) == 1:
        return Finding(topic, FindingState.OK, f"{next(iter(groups))} on all")
    return Finding(topic, FindingState.NOTE, f"differs: {_values_with_hosts_text(groups)}", hint)


def _label_findings_with_role(
    findings: Iterable[Finding], hosts: Sequence[InspectedHost], role: HostRole
) -> Iterator[FleetFinding]:
    """Clients are what one thinks of; findings about others say so."""
    for finding in findings:
        name = finding.topic if role is HostRole.CLIENT else f"{finding.topic}, {role}"
        yield FleetFinding(_host_names(hosts), replace(finding, topic=name))


def _hosts_by_value(
    values_and_hosts: Iterable[tuple[str, InspectedHost]],
) -> dict[str, list[InspectedHost]]:
    """Hosts by value, the value of most hosts first."""
    groups: dict[str, list[InspectedHost]] = {}
    for value, host in values_and_hosts:
        groups.setdefault(value, []).append(host)
    return dict(sorted(groups.items(), key=lambda item: -len(item[1])))


def _values_with_hosts_text(hosts_by_value: Mapping[str, Sequence[InspectedHost]]) -> str:
    return "; ".join(
        f"{value} on {list_text(list(_host_names(hosts)), NAMES_SHOWN)}"
        for value, hosts in hosts_by_value.items()
    )


def _host_names(hosts: Iterable[InspectedHost]) -> tuple[str, ...]:
    return tuple(host.spec.name for host in hosts)


async def inspect_fleet(
    specs: tuple[HostSpec, ...], path: str | None, *, does_ask_cloud_metadata: bool
) -> HostOutcomes[InspectedHost]:
    """Reach every host, ask and watch them all at once, and let go.

    `path` is absolute, for hosts that name none of their own; with
    `does_ask_cloud_metadata` each asks its cloud's metadata service.
    """
    tools = version_argv_by_tool(study_kinds().doctor_programs)
    async with open_hosts(specs) as hosts:
        return await inspect_hosts(
            hosts, path, tools, SYSTEM_CLOCK, reads_cloud_metadata=does_ask_cloud_metadata
        )


def fleet_table_and_finding_lines(
    specs: tuple[HostSpec, ...], inspected: HostOutcomes[InspectedHost]
) -> tuple[RenderableType, ...]:
    """A row a host, then the findings with what to do."""
    headings = (
        Column("host"),
        Column("clock, ms", is_number=True),
        *(Column(program.title, can_wrap=True) for program in required_client_programs()),
        Column("kernel", can_wrap=True),
        Column("on", can_wrap=True),
        Column("free", is_number=True),
        Column("link", is_number=True),
        Column("MTU", is_number=True),
        Column("governor"),
        Column("CPU", is_number=True),
        Column("disk", is_number=True),
    )
    rows: list[list[Text | str]] = []
    for spec in specs:
        host = inspected.results.get(spec.name)
        lacking = [
            literal_text("no answer", STYLES[FindingState.FAULT]),
            *[NO_VALUE] * (len(headings) - 2),
        ]
        rest = _host_cells(host) if host else lacking
        rows.append([literal_text(spec.name), *rest])
    return terminal_table(headings, rows), "", _findings_table(fleet_findings(inspected))


def fleet_document(
    specs: tuple[HostSpec, ...], inspected: HostOutcomes[InspectedHost]
) -> dict[str, Any]:
    """The same for programs: times in ns, shares from 0 to 1, null where nothing is known.

    Of a host that was not reached there is its name and role alone; a finding says why.
    """
    hosts = []
    for spec in specs:
        host = inspected.results.get(spec.name)
        heading = {"name": spec.name, "role": spec.role.value, "reached": host is not None}
        hosts.append({**heading, **(_host_facts_document(host) if host else {})})
    found = fleet_findings(inspected)
    findings = [
        {
            "what": item.finding.topic,
            "state": item.finding.state.value,
            "hosts": list(item.hosts),
            "message": item.finding.message,
            "hint": item.finding.hint,
        }
        for item in found
    ]
    verdict = readiness([item.finding for item in found]).value
    return {"format": 1, "verdict": verdict, "hosts": hosts, "findings": findings}


def _host_cells(host: InspectedHost) -> list[Text | str]:
    facts, target, port = host.facts, host.facts.target, fastest_port(host.facts)
    return [
        _clock_offset_text(host.clock_offset),
        *(
            literal_text(program.version_text(facts).removeprefix(f"{program.name}-"))
            for program in required_client_programs()
        ),
        literal_text(facts.kernel.release),
        literal_text(target.fs_type) if target else NO_VALUE,
        format_bytes(target.free_bytes) if target else NO_VALUE,
        link_speed_text(port),
        str(port.mtu) if port else NO_VALUE,
        literal_text(facts.cpu.governor or NO_VALUE),
        _percent_or_unknown_text(host.activity.cpu_busy_share),
        _percent_or_unknown_text(host.activity.device_busy_share),
    ]


def _clock_offset_text(offset: ClockOffset) -> str:
    return f"{offset.offset_ns / 1e6:+,.1f} ± {offset.error_ns / 1e6:,.1f}"


def _percent_or_unknown_text(share: float | None) -> str:
    return NO_VALUE if share is None else percent_text(share)


def _host_facts_document(host: InspectedHost) -> dict[str, Any]:
    facts, target, port = host.facts, host.facts.target, fastest_port(host.facts)
    return {
        "clock_offset_ns": host.clock_offset.offset_ns,
        "clock_error_ns": host.clock_offset.error_ns,
        **{program.name: program.version_text(facts) for program in required_client_programs()},
        "machine": facts.machine.vendor_and_product_text,
        "cloud": facts.cloud.summary_text if facts.cloud else None,
        "kernel": facts.kernel.release,
        "path": host.path,
        "pod": facts.pod.pod_node_and_limits_text if facts.pod else None,
        "volume": facts.pod.volume_text if facts.pod else None,
        "io_limits": [limit.device_and_io_limits_phrase for limit in facts.target_cgroup_io_limits],
        "fs_type": target.fs_type if target else None,
        "mount_source": target.mount_source if target else None,
        "free_bytes": target.free_bytes if target else None,
        "port": port.name if port else None,
        "link_mbit_s": port.speed_mbit_s if port else None,
        "mtu": port.mtu if port else None,
        "governor": facts.cpu.governor,
        "cpu_busy": host.activity.cpu_busy_share,
        "device_busy": host.activity.device_busy_share,
    }


def _findings_table(findings: tuple[FleetFinding, ...]) -> RenderableType:
    rows: list[list[Text | str]] = []
    for item in findings:
        finding = item.finding
        names = list_text(item.hosts, HOSTS_SHOWN)
        state = literal_text(finding.state, STYLES[finding.state])
        rows.append(
            [literal_text(finding.topic), state, literal_text(names), literal_text(finding.message)]
        )
        if finding.hint:
            rows.append(["", "", "", literal_text(finding.hint, QUIET_STYLE)])
    headings = (
        Column(""),
        Column("state"),
        Column("hosts", can_wrap=True),
        Column("found, and what to do", can_wrap=True),
    )
    return terminal_table(headings, rows)
