"""One host with the folder that a session holds there, and what its files hold and cache."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from iolab.core.host import SCRATCH_PREFIX, TargetFacts
from iolab.core.run import CacheDropProof, ExtentProof, FileIdentityCheck
from iolab.core.workload import DataSet
from iolab.errors import HostError
from iolab.hosts.answers import EvictAnswer, FileAnswer, read_answer
from iolab.hosts.barrier import gather_hosts
from iolab.hosts.host import Host
from iolab.hosts.message import AgentRefusalError
from iolab.record import Record
from iolab.text import excerpt

OPEN_LIMIT_S: Final = 120.0
"""Taking a folder; what a dead session left there, perhaps terabytes, is removed first."""

CLOSE_LIMIT_S: Final = 120.0
"""Removing the session's own files: a file system frees extents at more than 10 GB/s."""

PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""Host names that may stand in a folder's name as they are."""

MARK: Final = ".iolab-lock"
"""The agent's mark in a folder that it holds."""

MARK_BYTES_MAX: Final = 4096
"""More than the agent ever writes into it."""

MARK_LIMIT_S: Final = 60.0
"""Reading a line over a network file system that others keep busy."""

HOSTS_NAMED: Final = 4
"""Hosts that are named beside the first one; more are counted."""

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

WRITE_BACK_LIMIT_S: Final = EVICT_LIMIT_S
"""The same after buffered writes, which are written back first."""

FAULT_LIMIT: Final = 300
"""Characters of why files cannot be looked at."""


class WorkDirectory(Record):
    """A host, the session's scratch folder on it, and what is known of the file system below.

    `target_key` is that of the directory's facts (`Target.key`). `folder_owner_host` is the client
    whose folder `dir` is, empty for the host's own. Where the target is a block device, `device` is
    its name in the folder `dir`, and `filled_bytes` is how much of it, from the start, is known to
    be written. With `is_guest_disk` it is a guest's disk, whose image was written in full before
    the guest was booted. Where `dir` is a file system of the session's own, `outer_scratch_folder`
    is the folder that is held for it.
    """

    host: Host
    dir: str
    target_facts: TargetFacts | None
    target_key: str
    folder_owner_host: str = ""
    device: str = ""
    filled_bytes: int = 0
    outer_scratch_folder: str = ""
    is_guest_disk: bool = False

    @property
    def is_raw_device(self) -> bool:
        """Whether it is a device found as it is, which must be written over before it counts."""
        return bool(self.device) and not self.is_guest_disk

    @property
    def scratch_folder(self) -> str:
        """The scratch folder that the host's agent holds: `dir`, or the one around it."""
        return self.outer_scratch_folder or self.dir

    @property
    def name(self) -> str:
        """The host's name."""
        return self.host.name

    @property
    def inode_count_path(self) -> str | None:
        """Where files are to be counted; None where a server might be slow to answer, or is."""
        return self.dir if self.target_facts and not self.target_facts.network else None

    @property
    def devices(self) -> tuple[str, ...]:
        """The block devices below the folder, nearest first; none for network file systems."""
        return self.target_facts.devices if self.target_facts else ()

    def data_set_paths(self, data_set: DataSet, numjobs: int | None = None) -> list[str]:
        """Full paths of the data set's files that so many jobs use (all by default)."""
        if self.device:
            return [f"{self.dir}/{self.device}"]
        return [f"{self.dir}/{name}" for name in data_set.file_names(numjobs)]

    def data_set_on_host(self, data_set: DataSet) -> DataSet:
        """The data set as it lies here: in files, or on the device."""
        return replace(data_set.with_jobs_of_host(self.name), device=self.device)


def scratch_folder_name(host_name: str) -> str:
    """The folder's name for a host: the host's own name where it is plain, else its hash."""
    if PLAIN_NAME.fullmatch(host_name):
        return f"{SCRATCH_PREFIX}-{host_name}"
    return f"{SCRATCH_PREFIX}-{hashlib.sha256(host_name.encode()).hexdigest()[:16]}"


def peer_folder_path(workdir: WorkDirectory, peer_workdir: WorkDirectory) -> str:
    """The other host's scratch folder as this host sees it: beside its own."""
    return posixpath.join(posixpath.dirname(workdir.dir), posixpath.basename(peer_workdir.dir))


async def require_shared_target(
    own_workdirs: Sequence[WorkDirectory],
    owner_names_by_reader: Mapping[str, Sequence[str]],
    *,
    hint: str,
) -> None:
    """Nothing when each host of `owner_names_by_reader` sees the folders of the owners named there.

    `own_workdirs` are the hosts' own. HostError for the first host that does not, which names the
    others and has `hint` as its remedy, or for hosts that failed.
    """
    by_name = {workdir.name: workdir for workdir in own_workdirs}
    makers = {name: by_name[name] for names in owner_names_by_reader.values() for name in names}
    marks = (
        await gather_hosts(makers.values(), lambda workdir: _read_mark(workdir, workdir.dir))
    ).results_or_raise()

    async def _require_peer_files_visible(workdir: WorkDirectory) -> None:
        for name in owner_names_by_reader[workdir.name]:
            folder = peer_folder_path(workdir, by_name[name])
            why = await _peer_folder_not_seen_reason(workdir, folder, marks[name])
            if why is not None:
                blind.append(workdir.name)
                raise HostError(
                    f"Host '{excerpt(workdir.name)}' does not see the files of "
                    f"'{excerpt(name)}' in {excerpt(folder)}: the target is not shared "
                    f"({excerpt(why).rstrip('.')}).",
                    hint,
                )

    blind: list[str] = []
    outcomes = await gather_hosts(
        [by_name[name] for name, names in owner_names_by_reader.items() if names],
        _require_peer_files_visible,
    )
    if not blind:
        outcomes.results_or_raise()
        return
    # One pair tells it all: where a target is not shared, many hosts say the same. Nor is any of
    # them at fault by itself, so that none is left out for it.
    first, *others = [name for name in owner_names_by_reader if name in blind]
    message = outcomes.errors[first].message
    if others:
        message += f" The same goes for {_host_names_text(others)}."
    raise HostError(message, hint)


def _host_names_text(hosts: Sequence[str]) -> str:
    more = f" and {len(hosts) - HOSTS_NAMED} more" if len(hosts) > HOSTS_NAMED else ""
    return ", ".join(f"'{excerpt(name)}'" for name in hosts[:HOSTS_NAMED]) + more


async def _peer_folder_not_seen_reason(
    workdir: WorkDirectory, folder: str, mark: FileAnswer
) -> str | None:
    """Why what the host sees there is not the folder with that mark; None when it is."""
    try:
        read_mark = await _read_mark(workdir, folder)
    except AgentRefusalError as refused:
        return refused.reason
    return None if read_mark == mark else "what it sees there is another folder"


async def _read_mark(workdir: WorkDirectory, folder: str) -> FileAnswer:
    """Size and digest of the mark in a folder, as that host reads it."""
    answer = await workdir.host.request(
        "get", deadline_s=MARK_LIMIT_S, path=f"{folder}/{MARK}", max_bytes=MARK_BYTES_MAX
    )
    return read_answer(workdir.name, FileAnswer, answer)


async def prove_extents(
    workdir: WorkDirectory, paths: Sequence[str], limit_s: float = EXTENTS_LIMIT_S
) -> ExtentProof:
    """Bytes by kind over all the files, which are written back first. Raises HostError."""
    parts = []
    for batch in _path_batches(paths):
        answer = await workdir.host.request("extents", deadline_s=limit_s, paths=batch)
        parts.append(read_answer(workdir.name, ExtentProof, answer))
    methods = {part.method for part in parts}
    return ExtentProof(
        method=methods.pop() if len(methods) == 1 else "none",
        file_count=sum(part.file_count for part in parts),
        size_bytes=sum(part.size_bytes for part in parts),
        written_bytes=sum(part.written_bytes for part in parts),
        unwritten_bytes=sum(part.unwritten_bytes for part in parts),
        hole_bytes=sum(part.hole_bytes for part in parts),
        identity=_combined_digest([part.identity for part in parts]),
        places=_combined_digest([part.places for part in parts]),
    )


def _combined_digest(digests: Sequence[str | None]) -> str | None:
    """One digest of several; None without any, or where one is missing."""
    known = [part for part in digests if part is not None]
    if not known or len(known) < len(digests):
        return None
    return known[0] if len(known) == 1 else hashlib.sha256("".join(known).encode()).hexdigest()


async def compare_file_identities(
    workdir: WorkDirectory, paths: Sequence[str], proof_before: ExtentProof
) -> FileIdentityCheck:
    """The files after a load, beside how they were before it. Raises HostError."""
    try:
        return FileIdentityCheck(
            proof_before, await prove_extents(workdir, paths, WRITE_BACK_LIMIT_S)
        )
    except AgentRefusalError as refused:
        return FileIdentityCheck(proof_before, None, excerpt(refused.reason, FAULT_LIMIT))


def device_extent_proof(workdir: WorkDirectory, size_bytes: int) -> ExtentProof:
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


def unwritten_or_hole_bytes(proof: ExtentProof) -> int:
    """Bytes that are certainly holes or never written; 0 where the method cannot tell."""
    if proof.method not in PROVING_METHODS:
        return 0
    return proof.hole_bytes + proof.unwritten_bytes


async def drop_host_and_file_caches(workdir: WorkDirectory, paths: Sequence[str]) -> CacheDropProof:
    """Drop the files' pages and the kernel's caches; what was resident before and after.

    Without paths only the kernel's caches are dropped.
    """
    parts = []
    for number, batch in enumerate(_path_batches(paths) if paths else [[]]):
        answer = await workdir.host.request(
            "evict", deadline_s=EVICT_LIMIT_S, paths=batch, system=number == 0
        )
        parts.append(read_answer(workdir.name, EvictAnswer, answer))
    return CacheDropProof(
        requested=True,
        resident_bytes_before=_sum_if_all_known([part.resident_bytes_before for part in parts]),
        resident_bytes_after=_sum_if_all_known([part.resident_bytes_after for part in parts]),
        methods=tuple(dict.fromkeys(method for part in parts for method in part.methods)),
    )


def _sum_if_all_known(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _path_batches(paths: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(paths), PATHS_AT_ONCE):
        yield list(paths[start : start + PATHS_AT_ONCE])
