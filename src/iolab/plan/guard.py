"""The last look before anything is written: may this plan run on these hosts, and would it fit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from iolab.errors import EngineError, Fault, HostError
from iolab.model.engine import EngineName
from iolab.model.host import DeviceFacts, HostFacts, TargetFacts, TargetProbe
from iolab.model.run import Plan
from iolab.model.study import Study
from iolab.model.workload import Job
from iolab.plan.budget import with_spare
from iolab.plan.device_guard import device_faults
from iolab.plan.filesystem_guard import filesystem_faults, rights_faults
from iolab.plan.guest_guard import guest_faults
from iolab.plan.key_value_guard import key_value_faults
from iolab.plan.metadata_guard import metadata_faults
from iolab.plan.targets import Target, data_sets_at, targets_of
from iolab.plan.wording import shown
from iolab.units import format_bytes

FIO: Final = "fio"

FIO_OLDEST: Final = (3, 16)
"""The first fio whose JSON has the latency bins of whole I/Os (lat_ns) that iolab reads."""

BUFFER_SHARE: Final = 0.5
"""Of a client's memory for fio's buffers; the rest is for its page tables and everyone else."""

_FIO_VERSION: Final = re.compile(r"fio-(\d{1,4})\.(\d{1,4})")


def check_ready(
    study: Study,
    plan: Plan,
    facts: Mapping[str, HostFacts],
    probes: Mapping[str, TargetProbe],
    present_bytes: Mapping[str, int] | None = None,
    *,
    owner: str | None = None,
    devices: Mapping[str, DeviceFacts] | None = None,
) -> None:
    """Nothing when the plan can run; else every reason why not, in the error's `faults`.

    All mappings are by `Target.key` (the host's name, for a host with one directory);
    `present_bytes` is what of the plan's files already lies there and need not find room again.
    A target held under the name of `owner` is the session's own: an agent of it is ending there.
    HostError for a host or target that cannot serve, EngineError when only engines are at fault.
    """
    host_faults: list[Fault] = []
    engine_faults: list[Fault] = []
    for target in targets_of(study):
        seen = facts.get(target.key)
        if seen is None:
            do = "See that it can be reached, or leave it out of the configuration."
            host_faults.append(Fault(f"Host {shown(target.host)} told nothing of itself.", do))
            continue
        if target.key == target.host:
            if _uses_fio(study, plan, target.host):
                engine_faults += _engine_faults(target, seen)
            host_faults += _buffer_faults(study, plan, target, seen)
        if target.serial is not None:
            device = (devices or {}).get(target.key)
            host_faults += device_faults(study, plan, target, device, seen)
            host_faults += rights_faults(study, target, probes.get(target.key))
            if study.target.make_xfs:
                host_faults += filesystem_faults(study, plan, target, None, 0)
            continue
        there = (present_bytes or {}).get(target.key, 0)
        probe = probes.get(target.key)
        if probe is not None and probe.held_by == owner:
            probe = replace(probe, held_by=None)
        host_faults += _target_faults(study, plan, target, seen, probe, there)
    host_faults += metadata_faults(study, plan, facts)
    host_faults += key_value_faults(study, plan, facts, devices or {})
    faults = (*host_faults, *engine_faults)
    if host_faults:
        raise HostError(_refusal(faults), _DO, faults)
    if engine_faults:
        raise EngineError(_refusal(faults), _DO, faults)


def check_nodes(
    study: Study,
    plan: Plan,
    facts: Mapping[str, HostFacts],
    probes: Mapping[str, TargetProbe] | None = None,
    *,
    owner: str | None = None,
) -> None:
    """Nothing when the hypervisors can carry the study's guests, before any is booted.

    Mappings are by the node's name; else as `guest_faults`. HostError with every reason why not.
    """
    faults = tuple(guest_faults(study, plan, facts, probes, owner=owner))
    if faults:
        raise HostError(_refusal(faults), _DO, faults)


def fio_version(text: str | None) -> tuple[int, int] | None:
    """Major and minor number in a first line like `fio-3.33-5-gabc`; None where there is none."""
    match = _FIO_VERSION.search(text or "")
    return (int(match.group(1)), int(match.group(2))) if match else None


_DO: Final = "Nothing was written; correct this and run again."


def _refusal(faults: tuple[Fault, ...]) -> str:
    return f"The plan cannot run for {len(faults)} reason{'s' if len(faults) > 1 else ''}."


def _uses_fio(study: Study, plan: Plan, host: str) -> bool:
    here = {item.id for item in study.configurations if host in item.hosts}
    return any(
        point.job.engine is EngineName.FIO and point.configuration in here for point in plan.points
    )


def _engine_faults(target: Target, facts: HostFacts) -> list[Fault]:
    name = shown(target.host)
    oldest = ".".join(str(part) for part in FIO_OLDEST)
    do = f"Install fio {oldest} or newer there, as with 'apt-get install fio', or choose the "
    do += "engine that needs nothing installed, with --engine native."
    tool = facts.tool(FIO)
    if tool is None or tool.path is None:
        return [Fault(f"There is no fio on host {name}.", do)]
    version = fio_version(tool.version)
    if version is None:
        happened = f"fio on host {name} ({tool.path}) says {shown(tool.version or '')} as version."
        return [Fault(happened, do)]
    if version < FIO_OLDEST:
        happened = f"fio on host {name} is {tool.version}, older than {oldest}."
        return [Fault(happened, do)]
    return []


def _target_faults(
    study: Study,
    plan: Plan,
    target: Target,
    facts: HostFacts,
    probe: TargetProbe | None,
    present_bytes: int,
) -> list[Fault]:
    where = f"{shown(target.path)} on host {shown(target.host)}"
    seen = facts.target
    if seen is None:
        do = "Make the directory, or give another with --path."
        return [Fault(f"There is no directory {where}.", do)]
    if not seen.writable:
        do = "Give the directory to the user who runs iolab, or run it as one who may write."
        return [Fault(f"Nothing may be written to {where}.", do)]
    faults = _memory_faults(study, seen, where)
    faults += rights_faults(study, target, probe)
    if study.target.make_xfs:
        faults += filesystem_faults(study, plan, target, seen, present_bytes)
        # What counts is whether the XFS takes O_DIRECT, which it does.
        probe = probe and replace(probe, direct_error=None, direct_align_bytes=None)
    else:
        faults += _space_faults(plan, target, seen, where, present_bytes)
    return faults + _probe_faults(plan, target, probe, where)


def _buffer_faults(study: Study, plan: Plan, target: Target, facts: HostFacts) -> list[Fault]:
    """The buffers of all I/Os in flight: fio asks for them at once, and would be killed for it."""
    here = {item.id for item in study.configurations if target.host in item.hosts}
    sizes = {
        point.io_on(target.host).depth_total * point.io.block_bytes: point
        for point in plan.points
        if point.configuration in here and isinstance(point.job, Job)
    }
    most = max(sizes, default=0)
    if most <= facts.memory.total_bytes * BUFFER_SHARE:
        return []
    happened = (
        f"{sizes[most].label} keeps {format_bytes(most)} in flight, too much for the "
        f"{format_bytes(facts.memory.total_bytes)} of memory on host {shown(target.host)}."
    )
    return [Fault(happened, "Set a smaller iodepth, numjobs or bs.")]


def _memory_faults(study: Study, seen: TargetFacts, where: str) -> list[Fault]:
    if not seen.in_memory or study.target.allow_memory:
        return []
    happened = f"{where} is {seen.fs_type}, which lives in memory."
    do = "Give a path on storage; or set target.allow_memory=true, and every result is invalid."
    return [Fault(happened, do)]


def _space_faults(
    plan: Plan, target: Target, seen: TargetFacts, where: str, present_bytes: int
) -> list[Fault]:
    faults = []
    sets = data_sets_at(plan, target)
    size = sum(item.bytes_per_host for item in sets)
    need = with_spare(max(size - present_bytes, 0)) if size > present_bytes else 0
    if seen.free_bytes < need:
        happened = (
            f"{where} has {format_bytes(seen.free_bytes)} free, the files need "
            f"{format_bytes(need)}."
        )
        do = "Make room, give another path, or set a smaller workload.*.filesize or numjobs."
        faults.append(Fault(happened, do))
    files = sum(len(item.file_names()) for item in sets)
    # Some file systems have no fixed number of inodes and say 0.
    if 0 < seen.free_inodes < files and not present_bytes:
        happened = f"{where} has {seen.free_inodes} inodes free, the plan makes {files} files."
        faults.append(Fault(happened, "Set fewer workload.*.numjobs or files."))
    return faults


def _probe_faults(plan: Plan, target: Target, probe: TargetProbe | None, where: str) -> list[Fault]:
    if probe is None:
        return [Fault(f"{where} was not tried.", "Run again; this host gave no answer.")]
    faults = []
    if probe.held_by is not None:
        happened = f"{where} is held by another session, {shown(probe.held_by)}."
        faults.append(Fault(happened, "Wait for its end, or give another path."))
    here = [p.job for p in plan.points if p.configuration in target.configurations]
    jobs = [job for job in here if isinstance(job, Job)]
    direct = [job for job in jobs if job.direct]
    if probe.direct_error is not None and direct:
        happened = f"{where} takes no O_DIRECT: {shown(probe.direct_error)}."
        do = (
            "Give a path on another file system; or set workload.*.direct=false, and the page "
            "cache is measured with it."
        )
        faults.append(Fault(happened, do))
    align = probe.direct_align_bytes
    odd = sorted({job.block_bytes for job in direct if align and job.block_bytes % align})
    if odd and probe.direct_error is None:
        happened = f"{where} takes O_DIRECT in multiples of {align} bytes, not {odd[0]}."
        faults.append(Fault(happened, f"Set bs to multiples of {align}."))
    return faults
