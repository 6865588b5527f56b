"""Which bytes of files were ever written, as the file system tells it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from iolab.core.run import CacheProof, ExtentProof
from iolab.hosts.answers import EvictAnswer, read_answer
from iolab.targets.work_directory import WorkDirectory

PATHS_AT_ONCE: Final = 2000
"""Paths in one request: at the longest path that is half of a frame's header."""

EXTENTS_LIMIT_S: Final = 120.0
"""Reading the extent maps of so many files, each perhaps badly fragmented."""

EVICT_LIMIT_S: Final = 3600.0
"""Writing back what is dirty and dropping the rest: a slow disk takes an hour for 18 GB."""

ACCOUNT: Final = "ledger"
"""The session's own account of what it wrote to a device."""

PROVING_METHODS: Final = frozenset({"fiemap", "seek", ACCOUNT})
"""Methods that tell holes from written bytes; block counts do not (compression, delayed blocks)."""


async def prove(workdir: WorkDirectory, paths: Sequence[str]) -> ExtentProof:
    """Bytes by kind over all the files. Raises HostError."""
    parts = []
    for batch in _batches(paths):
        answer = await workdir.host.ask("extents", deadline_s=EXTENTS_LIMIT_S, paths=batch)
        parts.append(read_answer(workdir.name, ExtentProof, answer))
    methods = {part.method for part in parts}
    return ExtentProof(
        method=methods.pop() if len(methods) == 1 else "none",
        file_count=sum(part.file_count for part in parts),
        size_bytes=sum(part.size_bytes for part in parts),
        written_bytes=sum(part.written_bytes for part in parts),
        unwritten_bytes=sum(part.unwritten_bytes for part in parts),
        hole_bytes=sum(part.hole_bytes for part in parts),
    )


def proof_of_device(workdir: WorkDirectory, size_bytes: int) -> ExtentProof:
    """The same of a device: its account tells how much of it was written since it was purged."""
    written = min(size_bytes, workdir.filled_bytes)
    return ExtentProof(
        method=ACCOUNT,
        file_count=1,
        size_bytes=size_bytes,
        written_bytes=written,
        unwritten_bytes=0,
        hole_bytes=size_bytes - written,
    )


def unproved(proof: ExtentProof) -> int:
    """Bytes that are certainly holes or never written; 0 where the method cannot tell."""
    if proof.method not in PROVING_METHODS:
        return 0
    return proof.hole_bytes + proof.unwritten_bytes


async def evict(workdir: WorkDirectory, paths: Sequence[str]) -> CacheProof:
    """Drop the files' pages and the kernel's caches; what was resident before and after.

    Without paths only the kernel's caches are dropped.
    """
    parts = []
    for number, batch in enumerate(_batches(paths) if paths else [[]]):
        answer = await workdir.host.ask(
            "evict", deadline_s=EVICT_LIMIT_S, paths=batch, system=number == 0
        )
        parts.append(read_answer(workdir.name, EvictAnswer, answer))
    return CacheProof(
        asked=True,
        resident_bytes_before=_sum([part.resident_bytes_before for part in parts]),
        resident_bytes_after=_sum([part.resident_bytes_after for part in parts]),
        methods=tuple(dict.fromkeys(method for part in parts for method in part.methods)),
    )


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _batches(paths: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(paths), PATHS_AT_ONCE):
        yield list(paths[start : start + PATHS_AT_ONCE])
