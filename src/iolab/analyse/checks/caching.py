"""Checks of whether memory answered in place of the storage."""

from __future__ import annotations

from typing import Final

from iolab.analyse.checks.moved import moved_by_device
from iolab.analyse.checks.registry import (
    Numbers,
    Said,
    check,
    indicative,
    invalid,
    unchecked,
    valid,
    worst,
)
from iolab.analyse.view import RunView
from iolab.model.host import TargetFacts
from iolab.model.run import ExtentProof, HostRun
from iolab.units import format_bytes

COLD_RESIDENT_SHARE: Final = 0.01
"""Share of the files that may be left in the page cache after a drop that counts as verified: a
reader's own directory and metadata pages, not contents."""

COLD_DEVICE_SHARE: Final = 0.98
"""Share of the bytes read that the device must have moved for buffered reads to count as cold; the
same two per cent as the bytes-moved check grants."""


@check("buffered-io", "Buffered I/O", needs_load=False)
def buffered_io(view: RunView) -> Said:
    """Whether the page cache stands between the engine and the storage."""
    if view.job.direct:
        return valid("O_DIRECT: no page cache between the engine and the storage.", direct=True)
    return indicative(
        "Buffered I/O: reads may come from memory, and writes end in memory first.", direct=False
    )


@check("cache-hits", "Reads from the page cache")
def cache_hits(view: RunView) -> Said:
    """Whether the reads can have been answered by the hosts' memory."""
    if not view.access.reads:
        return valid("The workload reads nothing.", reads=False)
    if view.job.direct:
        return valid("O_DIRECT reads pass the page cache by.", direct=True)
    if _is_proved_cold(view):
        return valid("The page cache was empty at the start and the device moved every byte read.")
    return worst(_against_memory(view, host) for host in view.hosts)


def _is_proved_cold(view: RunView) -> bool:
    """The drop was verified on every host, and the devices moved what was read."""
    for host in view.hosts:
        cache, size = host.cache, _bytes_per_host(view)
        if cache is None or cache.resident_bytes_after is None:
            return False
        if cache.resident_bytes_after > COLD_RESIDENT_SHARE * size:
            return False
    groups = moved_by_device(view)
    return groups is not None and all(
        group.read_bytes >= COLD_DEVICE_SHARE * group.claimed_read for group in groups
    )


def _bytes_per_host(view: RunView) -> int:
    job = view.job
    return job.numjobs * job.files_per_job * job.file_bytes


def _against_memory(view: RunView, host: HostRun) -> Said:
    """Buffered reads without proof: what matters is whether the files fit into memory."""
    size, facts = _bytes_per_host(view), view.facts_of(host)
    if facts is None:
        return unchecked(f"the memory of {host.host} is not known", files_bytes=size)
    memory = facts.memory.total_bytes
    evidence: Numbers = {"host": host.host, "files_bytes": size, "memory_bytes": memory}
    if size <= memory:
        return invalid(
            f"The files ({format_bytes(size)}) fit into the memory of {host.host} "
            f"({format_bytes(memory)}) and nothing proves that they were read from storage.",
            **evidence,
        )
    return indicative(
        f"The files ({format_bytes(size)}) exceed the memory of {host.host} "
        f"({format_bytes(memory)}), but part of the reads may have come from it.",
        **evidence,
    )


@check("target-in-memory", "Target in memory", needs_load=False)
def target_in_memory(view: RunView) -> Said:
    """Whether the target is storage at all."""
    return worst(_memory_target(view.target(host), host.host) for host in view.hosts)


def _memory_target(target: TargetFacts | None, host: str) -> Said:
    if target is None:
        return unchecked(f"the target of {host} is not known", host=host)
    evidence: Numbers = {"host": host, "fs_type": target.fs_type, "device": target.device}
    if target.in_memory:
        return invalid(f"The target is {target.fs_type}, which lives in memory.", **evidence)
    if target.memory_backed:
        return indicative(
            f"The blocks of {target.device} are memory of {host}: this measures a RAM disk.",
            **evidence,
        )
    return valid(f"The target is {target.fs_type} on {target.mount_source}.", **evidence)


@check("holes", "Reads of unwritten extents", needs_load=False)
def holes(view: RunView) -> Said:
    """Whether all that is read was written before."""
    if not view.access.reads:
        return valid("The workload reads nothing.", reads=False)
    return worst(_proved_written(host) for host in view.hosts)


def _proved_written(host: HostRun) -> Said:
    proof = host.extents
    if proof is None or proof.method == "none" or proof.file_count == 0:
        return unchecked(f"nothing tells which extents of the files on {host.host} were written")
    evidence = _extents(host.host, proof)
    missing = proof.hole_bytes + proof.unwritten_bytes
    if missing > 0:
        return invalid(
            f"{format_bytes(missing)} of the {format_bytes(proof.size_bytes)} to be read on "
            f"{host.host} were never written: zeros come from memory.",
            **evidence,
        )
    if proof.method == "blocks":
        return indicative(
            "Only the count of allocated blocks tells that the files were written; a file system "
            "that shares or compresses blocks can miscount.",
            **evidence,
        )
    return valid(f"All {format_bytes(proof.written_bytes)} were written before.", **evidence)


def _extents(host: str, proof: ExtentProof) -> Numbers:
    return {
        "host": host,
        "method": proof.method,
        "files": proof.file_count,
        "size_bytes": proof.size_bytes,
        "written_bytes": proof.written_bytes,
        "unwritten_bytes": proof.unwritten_bytes,
        "hole_bytes": proof.hole_bytes,
    }
