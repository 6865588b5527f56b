"""The last look before anything is written: may this plan run on these hosts, and would it fit."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec.structs import replace

from iolab.core.host import (
    DeviceFacts,
    HostFacts,
    TargetFacts,
    TargetFault,
    TargetFaultCode,
    TargetProbe,
)
from iolab.core.run import Plan
from iolab.core.study import Study
from iolab.core.target_state import PurgeMethod
from iolab.core.workload import Direction
from iolab.errors import MAKE_ROOM, EngineError, Fault, HostError
from iolab.record import field_names
from iolab.study.cost import with_free_space_margin
from iolab.study.host_targets import group_by_file_system, host_targets_with_facts
from iolab.study.targets import Target, data_sets_at_target, targets_of_study, used_device_bytes
from iolab.text import counted_noun, quote_value, uncapitalised
from iolab.units import format_bytes
from iolab.version import __version__

if TYPE_CHECKING:
    from iolab.study.kinds import StudyKinds

NVME: Final = "nvme"
"""nvme-cli, which formats and sanitizes."""

NVME_PURGES: Final = (PurgeMethod.NVME_FORMAT, PurgeMethod.SANITIZE)

MKFS_XFS: Final = "mkfs.xfs"

MAKE_WRITABLE: Final = (
    "Give the directory to the user who runs iolab, mount its file system for writing, or name "
    "another."
)
"""For rights and for read-only mounts: the facts do not tell which of the two it is."""

_REMEDIES: Final = {
    "mounted": "Unmount it, if nothing there is needed any more; or name another device.",
    "partitioned": "Name a device without partitions; 'wipefs' removes a table nobody needs.",
    "partition": "Name a whole device.",
    "held": "Take it out of what holds it (dm, md, LVM), or name another device.",
    "swap": "Turn that swap off with 'swapoff', or name another device.",
    "read-only": "Name a device that may be written.",
    "no-serial": "Name a device that has a serial, a world-wide name or a backing file.",
    "other-serial": "Look which device is meant: 'lsblk -o NAME,SERIAL,SIZE' lists them.",
    "signature": "Name another device; 'wipefs' removes a signature that means nothing any more.",
    "file-system": "Name another device; or set target.overwrite = true to lose that file system.",
    "in-use": "See who uses it ('lsof', 'fuser'), or name another device.",
    "closed": "Run the agent there as a user who may open the device, as root.",
    "empty": "Give it a size, or name another device.",
    "missing": "See how the device is called there: 'lsblk -o NAME,SERIAL,SIZE' lists them.",
}

IMAGE_BYTES_MIN: Final = 300 << 20
"""mkfs.xfs makes nothing smaller since xfsprogs 5.19."""

XFS_OVERHEAD: Final = 1.05
"""What a file system needs beside its files: its log and its tables, in an image of gigabytes."""

BUFFER_SHARE: Final = 0.5
"""Of a client's memory for fio's buffers; the rest is for its page tables and everyone else."""

NOTHING_WRITTEN: Final = "Nothing was written; correct this and run again."
NOT_COMPARABLE: Final = "Results before and after would not compare."

VALUE_CHARACTERS: Final = 60
"""Of a value that changed: enough to tell which it is."""


def device_faults(
    study: Study, plan: Plan, target: Target, device: DeviceFacts | None, facts: HostFacts
) -> list[Fault]:
    """Why this device may not or cannot serve; nothing when it can."""
    device_text = f"The device {quote_value(target.path)} of host {quote_value(target.host)}"
    if device is None:
        return [Fault(f"{device_text} was not looked at.", "Run again; this host gave no answer.")]
    faults = [
        Fault(
            f"{device_text} is refused: {objection.message}.",
            _REMEDIES.get(objection.code, "Name another device."),
        )
        for objection in device.objections
    ]
    if not device.name:
        return faults
    need = used_device_bytes(plan, target)
    if need > device.size_bytes:
        size, used = format_bytes(device.size_bytes), format_bytes(need)
        message = f"{device_text} has {size}, the jobs use {used}"
        hint = f"Set a smaller {_file_size_keys_text(plan)}, or name a larger device."
        faults.append(Fault(f"{message}.", hint))
    faults += _purge_faults(study.precondition.purge, device_text, device, facts)
    faults += _discard_support_faults(plan, target, device_text, device)
    return faults + _block_alignment_faults(plan, target, device_text, device)


def _purge_faults(
    purge: PurgeMethod, device_text: str, device: DeviceFacts, facts: HostFacts
) -> list[Fault]:
    if purge is PurgeMethod.DISCARD and not device.discards:
        return [Fault(f"{device_text} takes no discards.", "Leave precondition.purge out.")]
    if purge not in NVME_PURGES:
        return []
    faults = []
    if not device.name.startswith(NVME):
        message = f"{device_text} is no NVMe device, and has no purge {quote_value(purge.value)}."
        faults.append(Fault(message, "Set precondition.purge to 'discard' or leave it out."))
    tool = facts.tool_facts(NVME)
    if tool is None or tool.path is None:
        message = f"There is no nvme-cli on the host of {uncapitalised(device_text)}."
        faults.append(Fault(message, "Install it there, as with 'apt-get install nvme-cli'."))
    return faults


def _discard_support_faults(
    plan: Plan, target: Target, device_text: str, device: DeviceFacts
) -> list[Fault]:
    jobs = (
        p.job for p in plan.points_and_neighbour_points if p.configuration in target.configurations
    )
    if device.discards or not any(Direction.TRIM in job.data_directions for job in jobs):
        return []
    message = f"{device_text} takes no discards, which workloads that trim are made of."
    return [Fault(message, "Name a device that does, or leave those workloads out.")]


def _block_alignment_faults(
    plan: Plan, target: Target, device_text: str, device: DeviceFacts
) -> list[Fault]:
    jobs = (
        p.job for p in plan.points_and_neighbour_points if p.configuration in target.configurations
    )
    align = device.logical_block_bytes
    odd = sorted({job.io_alignment_bytes for job in jobs if job.io_alignment_bytes % align})
    if not odd:
        return []
    message = f"{device_text} has blocks of {align} bytes, bs is {odd[0]}."
    return [Fault(message, f"Set bs to multiples of {align}.")]


def needs_root_rights(study: Study) -> bool:
    """Whether hosts need a right that not every user there has."""
    return study.target.make_xfs or is_memory_limited(study)


def is_memory_limited(study: Study) -> bool:
    """Whether any process of the study is to have a bound of memory."""
    if any(workload.job.memory_bytes for workload in study.workloads):
        return True
    return study.server is not None and study.server.is_memory_limited


def agent_rights_faults(study: Study, target: Target, probe: TargetProbe | None) -> list[Fault]:
    """What the host's agent may not do there; nothing where it may, or was not tried."""
    host = quote_value(target.host)
    if probe is None:
        return []
    faults = []
    if study.target.make_xfs and probe.mount_error is not None:
        message = (
            f"Host {host} cannot have a file system of its own: {quote_value(probe.mount_error)}."
        )
        hint = (
            "Run the agent there as root, or give a directory on an XFS and leave filesystem out."
        )
        faults.append(Fault(message, hint))
    if is_memory_limited(study) and probe.memory_error is not None:
        message = f"Host {host} cannot bound memory: {quote_value(probe.memory_error)}."
        hint = (
            "Run the agent there as root, where control groups of memory are handed on; or leave "
        )
        faults.append(Fault(message, f"{hint}workload.*.memory and server.memory out."))
    return faults


def session_filesystem_faults(
    study: Study,
    plan: Plan,
    target: Target,
    target_facts: TargetFacts | None,
    kept_image_bytes: int,
) -> list[Fault]:
    """Why no file system of the session's own can be made on a target that may be written.

    `target_facts` are of the directory for the image, None for a device. `kept_image_bytes` is what
    the image that an earlier session kept there has already.
    """
    faults = []
    if study.target.rotate:
        message = "With target.rotate clients read each other's files, which each has on its own."
        faults.append(Fault(message, "Leave target.rotate or target.filesystem out."))
    image = study.target.image_bytes
    if target.serial is not None or target_facts is None:
        return faults
    target_text = f"{quote_value(target.path)} on host {quote_value(target.host)}"
    if image is None:
        message = f"The XFS in {target_text} has no size."
        return [*faults, Fault(message, "Set target.image, or name a device.")]
    if image < IMAGE_BYTES_MIN:
        message = f"An image of {format_bytes(image)} is too small for an XFS in {target_text}."
        hint = f"Set target.image to at least {format_bytes(IMAGE_BYTES_MIN)}."
        return [*faults, Fault(message, hint)]
    files = sum(item.bytes_per_host for item in data_sets_at_target(plan, target))
    if files * XFS_OVERHEAD > image:
        message = (
            f"The image of {format_bytes(image)} in {target_text} is too small for files of "
            f"{format_bytes(files)}."
        )
        hint = f"Set a larger target.image, or a smaller {_file_size_keys_text(plan)}."
        faults.append(Fault(message, hint))
    missing = max(image - kept_image_bytes, 0)
    if missing and target_facts.free_bytes < with_free_space_margin(missing):
        message = (
            f"{target_text} has {format_bytes(target_facts.free_bytes)} free, the image needs "
            f"{format_bytes(with_free_space_margin(missing))}."
        )
        faults.append(Fault(message, f"{MAKE_ROOM}give another path, or set a smaller image."))
    return faults


def version_argv_by_target_program(study: Study) -> dict[str, list[str]]:
    """What makes or erases the targets of a study, whatever its load: by program its version."""
    programs: dict[str, list[str]] = {}
    if study.precondition.purge in NVME_PURGES:
        programs[NVME] = [NVME, "version"]
    if study.target.make_xfs:
        programs[MKFS_XFS] = [MKFS_XFS, "-V"]
    return programs


def require_plan_ready(
    study: Study,
    plan: Plan,
    kinds: StudyKinds,
    facts_by_target: Mapping[str, HostFacts],
    probes: Mapping[str, TargetProbe],
    present_bytes: Mapping[str, int] | None = None,
    *,
    owner: str | None = None,
    devices: Mapping[str, DeviceFacts] | None = None,
    more_faults: Sequence[Fault] = (),
) -> None:
    """Nothing when the plan can run; else every reason why not, in the error's `faults`.

    `more_faults` are those of hosts that the caller knows of.

    All mappings are by `Target.key` (the host's name, for a host with one directory);
    `present_bytes` is what of the plan's files already lies there and need not find room again.
    A target held under the name of `owner` is the session's own: an agent of it is ending there.
    HostError for a host or target that cannot serve, EngineError when only engines are at fault.
    """
    host_faults: list[Fault] = []
    engine_program_faults: list[Fault] = []
    for target in targets_of_study(study):
        host = facts_by_target.get(target.key)
        if host is None:
            hint = "See that it can be reached, or leave it out of the configuration."
            host_faults.append(
                Fault(f"Host {quote_value(target.host)} told nothing of itself.", hint)
            )
            continue
        if target.key == target.host:
            for kind in kinds.loads:
                engine_program_faults += kind.engine_program_faults(plan, target, host)
            host_faults += _io_buffer_memory_faults(study, plan, target, host)
            host_faults += _missing_mkfs_faults(study, target, host)
        if target.serial is not None:
            device = (devices or {}).get(target.key)
            host_faults += device_faults(study, plan, target, device, host)
            host_faults += agent_rights_faults(study, target, probes.get(target.key))
            if study.target.make_xfs:
                host_faults += session_filesystem_faults(study, plan, target, None, 0)
            continue
        there = (present_bytes or {}).get(target.key, 0)
        probe = probes.get(target.key)
        if probe is not None and probe.held_by == owner:
            probe = replace(probe, held_by=None)
        host_faults += _target_faults(study, plan, target, host, probe, there)
    host_faults += _shared_space_faults(study, plan, facts_by_target, present_bytes or {})
    host_faults += _io_limit_faults(study, facts_by_target)
    own = (
        kind.readiness_faults(study, plan, facts_by_target, devices or {}) for kind in kinds.loads
    )
    host_faults += (*itertools.chain.from_iterable(own), *more_faults)
    faults = (*host_faults, *engine_program_faults)
    if host_faults:
        raise HostError(refusal_headline(faults), NOTHING_WRITTEN, faults)
    if engine_program_faults:
        raise EngineError(refusal_headline(faults), NOTHING_WRITTEN, faults)


def _missing_mkfs_faults(study: Study, target: Target, facts: HostFacts) -> Iterator[Fault]:
    """A host that cannot make the XFS of the study; one that was not asked may have the program."""
    tool = facts.tool_facts(MKFS_XFS) if study.target.make_xfs else None
    if tool is not None and tool.path is None:
        yield Fault(
            f"There is no {quote_value(MKFS_XFS)} on host {quote_value(target.host)}.",
            "Install xfsprogs there, or give a directory on an XFS and leave filesystem out.",
        )


def _io_limit_faults(study: Study, facts_by_target: Mapping[str, HostFacts]) -> Iterator[Fault]:
    """Limits of neighbours on targets below which the host has no block device to limit."""
    scenario = study.scenario
    loads = {} if scenario is None else {event.id: event for event in scenario.events}
    for event in loads.values():
        load = loads[event.load_event or event.id]
        if event.io_limit is None:
            continue
        for target in targets_of_study(study):
            host = facts_by_target.get(target.key)
            folder = None if host is None or target.serial is not None else host.target
            is_limited = target.host in load.hosts if load.hosts else True
            if is_limited and folder is not None and not folder.devices:
                target_text = f"{quote_value(target.path)} on host {quote_value(target.host)}"
                message = (
                    f"The io_limit of event {quote_value(event.id)} limits block devices, and "
                    f"{target_text} has none: it is {folder.fs_type} on {folder.mount_source}."
                )
                what = "event" if event.load_event else "io_limit"
                hint = (
                    f"Leave that {what} out of the study, and give the load a rate instead "
                    f"(workload.{load.neighbour}.rate_iops)."
                )
                yield Fault(message, hint)


def refusal_headline(faults: tuple[Fault, ...]) -> str:
    """That a plan cannot run, in one sentence before all reasons."""
    return f"The plan cannot run for {counted_noun(len(faults), 'reason')}."


def _target_faults(
    study: Study,
    plan: Plan,
    target: Target,
    facts: HostFacts,
    probe: TargetProbe | None,
    present_bytes: int,
) -> list[Fault]:
    target_text = f"{quote_value(target.path)} on host {quote_value(target.host)}"
    folder = facts.target
    if folder is None:
        return [unusable_target_fault(facts, target_text)]
    if not folder.writable:
        return [Fault(f"Nothing may be written to {target_text}.", MAKE_WRITABLE)]
    faults = _target_in_memory_faults(study, folder, target_text)
    faults += agent_rights_faults(study, target, probe)
    if study.target.make_xfs:
        faults += session_filesystem_faults(study, plan, target, folder, present_bytes)
        # What counts is whether the XFS takes O_DIRECT, which it does.
        probe = probe and replace(probe, direct_error=None, direct_align_bytes=None)
    else:
        faults += _space_faults(plan, target, folder, target_text, present_bytes)
    return faults + _target_probe_faults(plan, target, probe, target_text)


def unusable_target_fault(facts: HostFacts, target_and_host_text: str) -> Fault:
    """Why a host knows nothing of the directory that it was to look at.

    `target_and_host_text` names the directory and the host within a sentence.
    """
    fault = facts.target_fault or TargetFault(TargetFaultCode.MISSING, "")
    match fault.code:
        case TargetFaultCode.NO_MOUNT:
            return Fault(
                f"The file system of {target_and_host_text} is not known: /proc/self/mountinfo has "
                "no mount of it, as where the root directory is no mount point.",
                "Behind chroot make its root a mount point first, as 'mount --bind ROOT ROOT' "
                "does; else see that /proc is mounted.",
            )
        case TargetFaultCode.NO_DIRECTORY:
            return Fault(
                f"{target_and_host_text} is not a directory.", "Give a directory with --path."
            )
        case TargetFaultCode.NOT_FOR_FILES:
            return Fault(
                f"{target_and_host_text} is no place for load: its file system is {fault.message}, "
                "which is the kernel's own and holds no files of users.",
                "Give a directory on storage with --path.",
            )
        case TargetFaultCode.UNREACHABLE:
            hint = "Let the user who runs iolab reach it, or give another with --path."
            return Fault(
                f"The directory {target_and_host_text} cannot be reached: "
                f"{quote_value(fault.message)}.",
                hint,
            )
        case TargetFaultCode.MISSING:
            hint = "Make the directory, or give another with --path."
            return Fault(f"There is no directory {target_and_host_text}.", hint)


def _io_buffer_memory_faults(
    study: Study, plan: Plan, target: Target, facts: HostFacts
) -> list[Fault]:
    """The buffers of all I/Os in flight: fio asks for them at once, and would be killed for it."""
    here = {item.id for item in study.configurations if target.host in item.hosts}
    sizes = {
        point.job_on_host(target.host).iodepth_per_client * point.job.io_alignment_bytes: point
        for point in plan.points_and_neighbour_points
        if point.configuration in here
    }
    most = max(sizes, default=0)
    if most <= facts.memory.total_bytes * BUFFER_SHARE:
        return []
    message = (
        f"{sizes[most].title_text} keeps {format_bytes(most)} in flight, too much for the "
        f"{format_bytes(facts.memory.total_bytes)} of memory on host {quote_value(target.host)}."
    )
    return [Fault(message, "Set a smaller iodepth, numjobs or bs.")]


def _target_in_memory_faults(
    study: Study, target_facts: TargetFacts, target_text: str
) -> list[Fault]:
    if not target_facts.in_memory or study.target.allow_memory:
        return []
    message = f"{target_text} is {target_facts.layers_or_fs_type_text}, which lives in memory."
    hint = "Give a path on storage; or set target.allow_memory=true, and every result is invalid."
    return [Fault(message, hint)]


def _shared_space_faults(
    study: Study,
    plan: Plan,
    facts_by_target: Mapping[str, HostFacts],
    present_bytes_by_target: Mapping[str, int],
) -> Iterator[Fault]:
    """File systems with room for the files of each of their hosts, and not for those of all."""
    if study.target.make_xfs:
        return
    for group in group_by_file_system(host_targets_with_facts(study, facts_by_target)):
        needs = [
            max(
                _planned_layout_bytes(plan, place.target)
                - present_bytes_by_target.get(place.target.key, 0),
                0,
            )
            for place in group
        ]
        free, need = group[0].target_facts.free_bytes, with_free_space_margin(sum(needs))
        # One host alone for which there is no room is told by itself.
        if with_free_space_margin(max(needs)) <= free < need:
            first = group[0].target
            message = (
                f"{quote_value(first.path)} on host {quote_value(first.host)} is one file system "
                f"of {len(group)} hosts with {format_bytes(free)} free, their files need "
                f"{format_bytes(need)}."
            )
            hint = f"{MAKE_ROOM}give another path or fewer hosts, or set a smaller data set."
            yield Fault(message, hint)


def _file_size_keys_text(plan: Plan) -> str:
    """The keys by which the files of the plan's loads become smaller."""
    keys = dict.fromkeys(key for point in plan.points for key in point.job.size_keys)
    return f"workload.*.{' or '.join(keys)}"


def _planned_layout_bytes(plan: Plan, target: Target) -> int:
    return sum(item.bytes_per_host for item in data_sets_at_target(plan, target))


def _space_faults(
    plan: Plan, target: Target, target_facts: TargetFacts, target_text: str, present_bytes: int
) -> list[Fault]:
    faults = []
    sets = data_sets_at_target(plan, target)
    size = _planned_layout_bytes(plan, target)
    need = with_free_space_margin(max(size - present_bytes, 0)) if size > present_bytes else 0
    if target_facts.free_bytes < need:
        message = (
            f"{target_text} has {format_bytes(target_facts.free_bytes)} free, the files need "
            f"{format_bytes(need)}."
        )
        hint = f"{MAKE_ROOM}give another path, or set a smaller {_file_size_keys_text(plan)}."
        faults.append(Fault(message, hint))
    files = sum(len(item.file_names()) for item in sets)
    # Some file systems have no fixed number of inodes and say 0.
    if 0 < target_facts.free_inodes < files and not present_bytes:
        message = (
            f"{target_text} has {target_facts.free_inodes} inodes free, "
            f"the plan makes {files} files."
        )
        faults.append(Fault(message, "Set fewer workload.*.numjobs or files."))
    return faults


def _target_probe_faults(
    plan: Plan, target: Target, probe: TargetProbe | None, target_text: str
) -> list[Fault]:
    if probe is None:
        return [Fault(f"{target_text} was not tried.", "Run again; this host gave no answer.")]
    faults = []
    if probe.held_by is not None and not target.holds_no_load_data:
        message = f"{target_text} is held by another session, {quote_value(probe.held_by)}."
        faults.append(Fault(message, "Wait for its end, or give another path."))
    here = [
        point
        for point in plan.points_and_neighbour_points
        if point.configuration in target.configurations
    ]
    direct = [point.job for point in here if point.job.direct]
    if probe.direct_error is not None and direct:
        message = f"{target_text} takes no O_DIRECT: {quote_value(probe.direct_error)}."
        hint = (
            "Give a path on another file system; or set workload.*.direct=false, and the page "
            "cache is measured with it."
        )
        faults.append(Fault(message, hint))
    align = probe.direct_align_bytes
    odd = sorted(
        {job.io_alignment_bytes for job in direct if align and job.io_alignment_bytes % align}
    )
    if odd and probe.direct_error is None:
        message = f"{target_text} takes O_DIRECT in multiples of {align} bytes, not {odd[0]}."
        faults.append(Fault(message, f"Set bs to multiples of {align}."))
    return faults


def host_change_faults(
    facts_before_by_target: Mapping[str, HostFacts], facts_now_by_target: Mapping[str, HostFacts]
) -> tuple[Fault, ...]:
    """What differs on the hosts in ways that change results; empty when nothing does."""
    return tuple(
        Fault(
            f"The {fact.label} of host {quote_value(name)} was {quote_value(fact.before)}, it "
            f"is {quote_value(fact.now)}.",
            NOT_COMPARABLE,
        )
        for name, facts in facts_before_by_target.items()
        if name in facts_now_by_target
        for fact in _compared_host_facts(facts, facts_now_by_target[name])
        if fact.before != fact.now
    )


def version_change_faults(
    session_version: str, current_version: str = __version__
) -> tuple[Fault, ...]:
    """The fault of an iolab that may measure otherwise than the one that the session began with.

    Releases that differ in the last number alone measure alike.
    """
    if session_version.split(".")[:2] == current_version.split(".")[:2]:
        return ()
    message = (
        f"The session began with iolab {quote_value(session_version)}, "
        f"this is {quote_value(current_version)}."
    )
    return (Fault(message, NOT_COMPARABLE),)


def study_change_faults(before: Study, now: Study) -> tuple[Fault, ...]:
    """Each part of the study that is another than it was, by its table."""
    parts = ("method", "telemetry", "target")
    changed = [
        (f"{part}.{key}", was, value)
        for part in parts
        for key, was, value in _changed_field_names_and_values(
            getattr(before, part), getattr(now, part)
        )
    ]
    for part, was, is_ in _elements_by_name_before_and_now(before, now):
        for name in dict.fromkeys((*was, *is_)):
            if was.get(name) != is_.get(name):
                changed += _changed_element_values(f"{part}.{name}", was.get(name), is_.get(name))
    if before.guests != now.guests:
        changed += _changed_element_values("vm", before.guests, now.guests)
    return tuple(
        Fault(
            f"{quote_value(name)} was {_short_value_text(was)}, it is {_short_value_text(value)}.",
            NOT_COMPARABLE,
        )
        for name, was, value in changed
    )


def _elements_by_name_before_and_now(
    before: Study, now: Study
) -> Iterator[tuple[str, Mapping[str, object], Mapping[str, object]]]:
    """The elements of each list of both studies by their names, with what one is called."""
    for part, key in (("workloads", "id"), ("configurations", "id"), ("hosts", "name")):
        was, is_ = (
            {getattr(item, key): item for item in getattr(study, part)} for study in (before, now)
        )
        yield part.removesuffix("s"), was, is_
    parts = {"phases": "phase", "events": "event", "actions": "action", "witnesses": "witness"}
    for part, name in {**parts, "neighbours": "workload"}.items():
        was, is_ = (
            {item.id: item for item in getattr(study.scenario, part, ())} for study in (before, now)
        )
        yield name, was, is_


def _changed_element_values(
    name: str, before: object, now: object
) -> Iterable[tuple[str, object, object]]:
    if before is None or now is None:
        return [(name, "there" if before else "not there", "there" if now else "gone")]
    return [
        (f"{name}.{key}", old, new)
        for key, old, new in _changed_field_names_and_values(before, now)
    ]


def _changed_field_names_and_values(before: Any, now: Any) -> Iterator[tuple[str, object, object]]:  # noqa: ANN401
    """The fields of two records of a kind that differ."""
    for name in field_names(before):
        was, value = getattr(before, name), getattr(now, name)
        if was != value:
            yield name, was, value


def _short_value_text(value: object) -> str:
    text = str(value)
    return quote_value(text if len(text) <= VALUE_CHARACTERS else f"{text[:VALUE_CHARACTERS]}…")


class _ComparedFact(NamedTuple):
    """A fact of a host that may change results, as it was and as it is."""

    label: str
    before: str
    now: str


def _compared_host_facts(before: HostFacts, now: HostFacts) -> Iterator[_ComparedFact]:
    """Every fact that matters of a host, changed or not."""
    for name, fact_of in _COMPARED_FACTS.items():
        yield _ComparedFact(name, fact_of(before), fact_of(now))
    names = dict.fromkeys(tool.name for facts in (before, now) for tool in facts.tools)
    for name in names:
        was, is_now = before.tool_facts(name), now.tool_facts(name)
        # A version that a program failed to print is unknown, which is no change.
        if not any(tool is not None and tool.fault for tool in (was, is_now)):
            versions = (was and was.version) or "", (is_now and is_now.version) or ""
            yield _ComparedFact(name, *versions)


def _file_system_and_devices_text(facts: HostFacts) -> str:
    """The file system and what carries it: of a claim the class, whose volumes are its devices."""
    target = facts.target
    if target is None:
        return ""
    if facts.pod is not None and facts.pod.storage_class:
        return f"{target.fs_type} of {facts.pod.storage_class_text}"
    return f"{target.fs_type} on {', '.join(target.devices) or target.mount_source}"


_COMPARED_FACTS: Final[dict[str, Callable[[HostFacts], str]]] = {
    "kernel": lambda facts: facts.kernel.release,
    "processor": lambda facts: f"{facts.cpu.model}, {counted_noun(facts.cpu.threads, 'thread')}",
    "target": _file_system_and_devices_text,
    "pod": lambda facts: facts.pod.qos_and_limits_text if facts.pod else "",
}
