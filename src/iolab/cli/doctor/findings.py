"""What is found on a host, and whether it is ready to measure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from iolab.errors import HostError
from iolab.record import Record
from iolab.text import counted_noun
from iolab.units import format_bytes, significant_digits_text

if TYPE_CHECKING:
    from iolab.core.drive import DriveReading
    from iolab.core.host import HostFacts, HostProgram, TargetFacts, TargetProbe
    from iolab.hosts.answers import HostLeftovers
    from iolab.hosts.host import Host
    from iolab.hosts.message import Hello
    from iolab.hosts.meters import MeterReadingOrFault
    from iolab.session.discovery import HostActivity


ANSWER_DEADLINE_S: Final = 30.0
"""A disk that sleeps takes seconds to answer; longer, and something is wrong."""

ROOM_BYTES: Final = 3 << 30
"""What the bundled studies need at scale small, with room to spare."""

OVERLAY: Final = "overlay"
"""The file system of containers: what they write themselves lies in a layer of their own."""

OTHER_LOAD_TOPIC: Final = "other load"
POWER_TOPIC: Final = "power"
LEFTOVERS_TOPIC: Final = "left by killed sessions"

ROOT_RIGHTS_NOTE: Final = (
    "Root adds cold caches for metadata and databases, block devices and their purges, file "
    "systems and memory limits of a session's own, serial numbers of disks, memory modules, power "
    "of processors (RAPL), log pages of NVMe drives."
)


class FindingState(StrEnum):
    """How a finding stands."""

    OK = "ok"
    NOTE = "note"
    FAULT = "fault"


class Finding(Record):
    """One question's answer: what was found, and what to do about it if anything."""

    topic: str
    state: FindingState
    message: str
    hint: str = ""
    is_engine_fault: bool = False
    """Whether the fault is an engine's and not the host's."""


class Readiness(StrEnum):
    """Whether a machine or fleet may be measured now."""

    FIT = "fit"
    BUSY = "busy"
    """Fit, but others load it: results are at best indicative."""
    NOT_FIT = "not fit"


def readiness(findings: Sequence[Finding]) -> Readiness:
    """Not fit with any fault, busy with load of others."""
    if any(item.state is FindingState.FAULT for item in findings):
        return Readiness.NOT_FIT
    is_busy = any(
        item.topic == OTHER_LOAD_TOPIC and item.state is FindingState.NOTE for item in findings
    )
    return Readiness.BUSY if is_busy else Readiness.FIT


async def inspect_local_machine(path: str, *, does_ask_cloud_metadata: bool) -> tuple[Finding, ...]:
    """Every finding about this machine, its cloud if that is asked, and the directory `path`."""
    from iolab.core.host import HostSpec, HostTransport
    from iolab.hosts.connect import open_hosts
    from iolab.hosts.push import agent_binary

    try:
        binary = agent_binary()
    except HostError as error:
        return (Finding("agent", FindingState.FAULT, error.message, error.hint),)
    async with open_hosts([HostSpec("local", HostTransport.LOCAL)]) as hosts:
        try:
            return await _host_findings(
                hosts["local"], path, str(binary), does_ask_cloud_metadata=does_ask_cloud_metadata
            )
        except HostError as error:
            return (Finding("agent", FindingState.FAULT, error.message, error.hint),)


async def _host_findings(
    host: Host, path: str, agent_path: str, *, does_ask_cloud_metadata: bool
) -> tuple[Finding, ...]:
    from iolab.core.host import TargetProbe, version_argv_by_tool
    from iolab.hosts.answers import read_answer, read_facts
    from iolab.hosts.drive_logs import read_drive_logs
    from iolab.session.discovery import LEFTOVERS, list_or_remove_host_leftovers, watch_activity

    hello = await host.connect()
    tools = version_argv_by_tool(required_client_programs())
    message = await host.request(
        "facts", deadline_s=ANSWER_DEADLINE_S, path=path, tools=tools, cloud=does_ask_cloud_metadata
    )
    facts = read_facts(host.name, message)
    sample = await host.request("snapshot", deadline_s=ANSWER_DEADLINE_S)
    findings = [
        Finding("agent", FindingState.OK, f"version {hello.version} at {agent_path}"),
        *program_findings(facts),
        *target_findings(facts, path),
    ]
    if facts.target is not None and facts.target.writable:
        asked = await host.request("probe", deadline_s=ANSWER_DEADLINE_S, path=path)
        findings += target_probe_findings(read_answer(host.name, TargetProbe, asked))
    left = (
        await list_or_remove_host_leftovers(host, path) if LEFTOVERS in hello.capabilities else None
    )
    findings += leftover_and_rights_findings(hello, left)
    findings += device_counter_findings(facts.target, sample.header)
    findings += kernel_power_meter_findings(sample.header)
    devices = facts.target.devices if facts.target is not None else ()
    findings += drive_log_findings(await read_drive_logs(host, devices))
    quiet = await watch_activity(host, facts)
    return (*findings, *machine_findings(facts), other_load_finding(quiet))


def other_load_finding(activity: HostActivity) -> Finding:
    """Whether anything else works on the machine, which a result would hold."""
    from iolab.session.discovery import QUIET_WATCH_S

    others = activity.interference_reason_or_none()
    if others is None:
        return Finding(OTHER_LOAD_TOPIC, FindingState.OK, f"none in {QUIET_WATCH_S:g} s")
    hint = "Find the cause, as with top or iotop, and stop it: until then results are at best "
    hint += "indicative."
    return Finding(OTHER_LOAD_TOPIC, FindingState.NOTE, others, hint)


def required_client_programs() -> tuple[HostProgram, ...]:
    """Those without which a client is not ready."""
    from iolab.registry import study_kinds

    return tuple(
        program for program in study_kinds().doctor_programs if program.fault_of_facts is not None
    )


def program_findings(facts: HostFacts) -> Iterator[Finding]:
    """Whether each of these programs is there, and new enough."""
    for program in required_client_programs():
        wrong = program.fault_of_facts(facts) if program.fault_of_facts is not None else None
        if wrong is not None:
            hint = program.install_hint
            yield Finding(program.title, FindingState.FAULT, wrong, hint, is_engine_fault=True)
        elif (tool := facts.tool_facts(program.name)) is not None:
            message = f"{program.version_text(facts)} at {tool.path}"
            yield Finding(program.title, FindingState.OK, message)


def target_findings(facts: HostFacts, path: str) -> Iterator[Finding]:
    """What the directory is, whether we may write to it, and whether it has room."""
    from iolab.study.readiness import MAKE_WRITABLE, unusable_target_fault

    target = facts.target
    if target is None:
        fault = unusable_target_fault(facts, path)
        yield Finding("directory", FindingState.FAULT, fault.message, fault.hint)
        return
    if target.writable:
        yield Finding("directory", FindingState.OK, f"{path} may be written to")
    else:
        message = f"{path} may not be written to"
        yield Finding("directory", FindingState.FAULT, message, MAKE_WRITABLE)
    source = f"{target.fs_type} from {target.mount_source} at {target.mount_point}"
    if target.in_memory:
        hint = "Give a path on storage; what is measured here is memory."
        message = f"{source} lives in memory: it is {target.layers_or_fs_type_text}"
        yield Finding("file system", FindingState.FAULT, message, hint)
    elif target.memory_backed:
        hint = "Give a path on storage; what is measured here is a RAM disk."
        message = f"{source} is on memory: {target.layers_or_fs_type_text}"
        yield Finding("file system", FindingState.NOTE, message, hint)
    elif target.fs_type == OVERLAY and (target.hidden or target.mount_point == "/"):
        hint = "Mount a volume there; until then results are of the container's own file system "
        hint += "and at best indicative."
        message = f"no volume is mounted at {path}: it is a container's own layer ({OVERLAY})"
        yield Finding("file system", FindingState.NOTE, message, hint)
    elif target.hidden:
        hint = "Give a path on storage that this host sees: until then results are at best "
        hint += "indicative."
        message = (
            f"what lies below {path} ({target.layers_or_fs_type_text}) cannot be seen from this "
            "host"
        )
        yield Finding("file system", FindingState.NOTE, message, hint)
    elif target.network:
        hint = "Bytes are then compared with the network ports, not a device."
        yield Finding("file system", FindingState.NOTE, f"{source}, over the network", hint)
    else:
        yield Finding("file system", FindingState.OK, source)
    room = f"{format_bytes(target.free_bytes)} free"
    if target.free_bytes < ROOM_BYTES:
        hint = f"Bundled studies need {format_bytes(ROOM_BYTES)} at scale small; make room."
        yield Finding("free space", FindingState.NOTE, room, hint)
    else:
        yield Finding("free space", FindingState.OK, room)


def target_probe_findings(probe: TargetProbe) -> Iterator[Finding]:
    """Whether O_DIRECT works there, and whether the directory is free."""
    if probe.direct_error is None:
        align = probe.direct_align_bytes
        message = "works" if align is None else f"works, in multiples of {align} bytes"
        yield Finding("O_DIRECT", FindingState.OK, message)
    else:
        hint = "Give a path on another file system; without it the page cache is measured."
        yield Finding("O_DIRECT", FindingState.FAULT, probe.direct_error, hint)
    if probe.movable_by is not None:
        hint = (
            "A run whose files they move fails; give a directory that only root or you can write."
        )
        yield Finding("owner", FindingState.NOTE, probe.movable_by, hint)
    if probe.other_user is not None:
        hint = "While it measures, each of you measures the other, too."
        yield Finding("other users", FindingState.NOTE, f"a session of {probe.other_user}", hint)
    if probe.held_by is not None:
        hint = "Wait for its end, or give another path."
        yield Finding("other sessions", FindingState.FAULT, f"held by {probe.held_by}", hint)


def leftover_and_rights_findings(
    hello: Hello, leftovers: HostLeftovers | None
) -> Iterator[Finding]:
    """What killed sessions left, what rights are missing, whether load can outlive its agent."""
    if leftovers is not None and leftovers.has_any_but_agent_files:
        counts = (
            (len(leftovers.processes), "process"),
            (len(leftovers.folders), "scratch folder"),
            (len(leftovers.groups), "control group"),
            (len(leftovers.loops), "loop device"),
        )
        message = ", ".join(counted_noun(number, noun) for number, noun in counts if number)
        hint = "'iolab clean' with the same options shows and removes it."
        yield Finding(LEFTOVERS_TOPIC, FindingState.NOTE, message, hint)
    if hello.uid:
        yield Finding("rights", FindingState.NOTE, f"user {hello.uid}, not root", ROOT_RIGHTS_NOTE)
    if hello.runs_end_by is not None:
        yield Finding("processes", FindingState.OK, f"end with the agent, by a {hello.runs_end_by}")
        return
    message = "what an engine forks may outlive an agent and its keeper that are killed at once"
    if hello.uid == 0:
        message = "root without CAP_SYS_ADMIN, as in a container: " + message
        hint = (
            "The next session there ends them first. Only a privileged container has cold caches "
        )
        hint += "for metadata and databases."
    else:
        hint = "Run it as root, outside a user namespace; else the next session there ends them "
        hint += "first."
    yield Finding("processes", FindingState.NOTE, message, hint)


def device_counter_findings(
    target: TargetFacts | None, sample: Mapping[str, Any]
) -> Iterator[Finding]:
    """Whether the device and its counters are there, against which claimed bytes are held."""
    if target is None:
        return
    if not target.devices:
        hint = "No device can vouch for the bytes; such results are at best indicative."
        yield Finding("device", FindingState.NOTE, "none found below the file system", hint)
        return
    yield Finding("device", FindingState.OK, ", ".join(target.devices))
    rows = sample.get("disks")
    counted = {str(row[0]) for row in rows if row} if isinstance(rows, list) else set()
    missing = [name for name in target.devices if name not in counted]
    if len(missing) == len(target.devices):
        hint = "See that /proc/diskstats may be read here and lists the device."
        yield Finding("counters", FindingState.FAULT, f"no counters of {', '.join(missing)}", hint)
    else:
        yield Finding(
            "counters", FindingState.OK, f"of {counted_noun(len(counted), 'block device')}"
        )


def kernel_power_meter_findings(sample: Mapping[str, Any]) -> Iterator[Finding]:
    """The power meters that the kernel has; nothing where it has none."""
    rows = sample.get("power")
    names = [str(row[0]) for row in rows if row] if isinstance(rows, list) else []
    if names:
        yield Finding(POWER_TOPIC, FindingState.OK, ", ".join(names))


def drive_log_findings(drives: Sequence[DriveReading]) -> Iterator[Finding]:
    """Whether drives tell what they and their flash wrote; nothing where there is no NVMe drive."""
    from iolab.analysis.drive_pages import media_bytes

    for drive in drives:
        if drive.fault is not None:
            hint = "Runs tell no write amplification; run as root where they should."
            message = f"{drive.device}: {drive.fault}"
            yield Finding("drive counters", FindingState.NOTE, message, hint)
            continue
        media = media_bytes(drive)
        counter = "no counter of what its flash wrote" if media is None else media.counter.value
        yield Finding("drive counters", FindingState.OK, f"{drive.device}: {counter}")


def power_meter_findings(meters: Sequence[MeterReadingOrFault]) -> Iterator[Finding]:
    """What meters beside a host show; with one that cannot be read a session is refused."""
    for meter in meters:
        if meter.fault is not None:
            yield Finding(POWER_TOPIC, FindingState.FAULT, meter.fault.message, meter.fault.hint)
        elif meter.reading is not None:
            shown = f"{significant_digits_text(meter.reading.watts)} W"
            message = f"meter '{meter.spec.name}' ({meter.spec.boundary.value}): {shown}"
            yield Finding(POWER_TOPIC, FindingState.OK, message)


def machine_findings(facts: HostFacts) -> Iterator[Finding]:
    """What the machine would not tell; a report shows less then."""
    cpu, memory = facts.cpu, facts.memory
    threads = counted_noun(cpu.threads, "thread")
    message = f"{cpu.model}, {threads}, {format_bytes(memory.total_bytes)} of memory"
    if facts.machine.vendor_and_product_text:
        message = f"{facts.machine.vendor_and_product_text}: {message}"
    yield Finding("machine", FindingState.OK, message)
    if facts.cloud is not None:
        yield Finding("cloud", FindingState.OK, facts.cloud.summary_text)
    if cpu.usable_core_limit is not None:
        message = f"a load here may use {cpu.usable_core_limit:.3g} of {cpu.threads} cores"
        hint = (
            "Lift the quota or the affinity of what iolab runs in, or take it for the client it is."
        )
        yield Finding("processors", FindingState.NOTE, message, hint)
    yield from cgroup_limit_findings(facts)
    yield from unreadable_fact_findings(facts)


def cgroup_limit_findings(facts: HostFacts) -> Iterator[Finding]:
    """What control groups allow a load here of I/O and memory."""
    for limit in facts.target_cgroup_io_limits:
        hint = "A control group holds the load to this; results are of the limit, not the device."
        yield Finding("I/O limits", FindingState.NOTE, limit.device_and_io_limits_phrase, hint)
    memory = facts.memory
    if memory.usable_bytes < memory.total_bytes:
        limit_text, total = format_bytes(memory.usable_bytes), format_bytes(memory.total_bytes)
        message = f"a load here, page cache included, may use {limit_text} of {total}"
        hint = "Buffered I/O is compared with that limit, not with the memory of the machine."
        yield Finding("memory", FindingState.NOTE, message, hint)


def unreadable_fact_findings(facts: HostFacts) -> Iterator[Finding]:
    """What was requested and could not be read."""
    for fault in facts.faults:
        yield Finding("facts", FindingState.NOTE, fault, "The report shows less without it.")
