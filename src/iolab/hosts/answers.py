"""Answers of agents parsed at the edge: what does not fit is a HostError, not a surprise later."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated, Any, Final, TypeVar

from msgspec import Meta, ValidationError, convert
from msgspec.structs import asdict, replace

from iolab.core import limits
from iolab.core.bins import BIN_COUNT
from iolab.core.block_trace import BioLatencyBin, BlockTrace, DirectionTrace
from iolab.core.drive import DriveReading
from iolab.core.host import HostFacts
from iolab.core.libraries import LibraryUse
from iolab.core.run import Count, ProcessorUse
from iolab.errors import HostError
from iolab.hosts.message import Hello, Message
from iolab.record import Record, fault_place_and_text
from iolab.text import excerpt

WIRE: Final = 2
"""The number of the wire that this controller speaks."""

_Path = Annotated[str, Meta(min_length=1, max_length=limits.PATH_CHARACTERS_MAX)]
Answer = TypeVar("Answer")

_SAME_VERSION: Final = "Use an agent of the same iolab version as this command."


class ClockAnswer(Record, kw_only=True):
    """The host's two clocks at one moment, in ns, and its time stamp counter at `mono_ns`."""

    mono_ns: Count
    real_ns: Count
    tsc: Count | None = None


class ScratchAnswer(Record, kw_only=True):
    """A scratch folder held by this session; `left_over_bytes` is what a dead one left there."""

    dir: _Path
    left_over_bytes: Count = 0


class LeftoverKind(StrEnum):
    """What stayed on a host."""

    FOLDER = "folder"
    PROCESS = "process"
    GROUP = "group"
    FILE = "file"
    MOUNT = "mount"
    DEVICE = "device"


class Leftover(Record, kw_only=True):
    """One thing that an agent could not end or remove: its path or process id, and why."""

    kind: LeftoverKind
    name: _Path
    reason: Annotated[str, Meta(max_length=limits.REASON_CHARACTERS_MAX)]


class ByeAnswer(Record, kw_only=True):
    """The last answer of an agent: what stays on its host."""

    left: Annotated[tuple[Leftover, ...], Meta(max_length=limits.LEFTOVERS_MAX)] = ()


class OrphanAnswer(Record, kw_only=True):
    """A process of a run whose agent is gone."""

    pid: Count
    command: Annotated[str, Meta(max_length=limits.WORD_CHARACTERS_MAX)]


class AbandonedFolderAnswer(Record, kw_only=True):
    """A scratch folder whose session is dead, or may live on `host`, where that is named."""

    dir: _Path
    owner: Annotated[str, Meta(max_length=limits.PATH_CHARACTERS_MAX)]
    bytes: Count
    host: Annotated[str, Meta(max_length=limits.PATH_CHARACTERS_MAX)] = ""


class HostLeftovers(Record, kw_only=True):
    """What killed agents left on a host, and the sentences of what could not be removed of it.

    The folders `elsewhere` may be held by other hosts that share the directory, and
    `foreign_folders` (the first of `foreign_folder_count`) are of other users: they always stay.
    So many `more_folders` of this user were not looked at yet. The `held_undos` are of sessions
    that live, which undo them.
    """

    processes: Annotated[tuple[OrphanAnswer, ...], Meta(max_length=limits.LISTED_MAX)]
    groups: Annotated[tuple[_Path, ...], Meta(max_length=limits.LISTED_MAX)]
    folders: Annotated[tuple[AbandonedFolderAnswer, ...], Meta(max_length=limits.FOLDERS_MAX)]
    elsewhere: Annotated[
        tuple[AbandonedFolderAnswer, ...], Meta(max_length=limits.FOLDERS_MAX)
    ] = ()
    more_folders: Count = 0
    foreign_folders: Annotated[tuple[_Path, ...], Meta(max_length=limits.FOREIGN_FOLDERS_MAX)] = ()
    foreign_folder_count: Count = 0
    loops: Annotated[tuple[_Path, ...], Meta(max_length=limits.FOLDERS_MAX)]
    agents: Annotated[tuple[_Path, ...], Meta(max_length=limits.FOLDERS_MAX)]
    undos: Annotated[tuple[UndoFileAnswer, ...], Meta(max_length=limits.LISTED_MAX)] = ()
    held_undos: Annotated[tuple[UndoFileAnswer, ...], Meta(max_length=limits.LISTED_MAX)] = ()
    faults: Annotated[tuple[str, ...], Meta(max_length=limits.LISTED_MAX)]

    @property
    def has_any(self) -> bool:
        """Whether there was something."""
        left = (self.processes, self.groups, self.folders, self.loops, self.agents, self.undos)
        return any(left)

    @property
    def all_process_ids_and_paths(self) -> frozenset[str]:
        """The process ids and paths of what can be removed."""
        return frozenset(
            (
                *(str(process.pid) for process in self.processes),
                *(folder.dir for folder in self.folders),
                *(undo.path for undo in self.undos),
                *self.groups,
                *self.loops,
                *self.agents,
            )
        )

    @property
    def has_any_but_agent_files(self) -> bool:
        """The same, but for files of agents, which any session may use again."""
        return any((self.processes, self.groups, self.folders, self.loops))


class LedgerAnswer(Record, kw_only=True):
    """Where processes of the agent find a ledger that it keeps in its memory."""

    path: _Path


class FilesystemAnswer(Record, kw_only=True):
    """A file system of the session's own: where it is mounted, and the name of its block device.

    `kept` is true for one that an earlier session had kept, `direct` when its device passes the
    page cache of what is below.
    """

    dir: _Path
    device: Annotated[str, Meta(min_length=1, max_length=limits.WORD_CHARACTERS_MAX)]
    kept: bool = False
    direct: bool = False


class DrivesAnswer(Record, kw_only=True):
    """The log pages of a host's NVMe drives at one moment."""

    drives: Annotated[tuple[DriveReading, ...], Meta(max_length=limits.DRIVES_MAX)]


class PurgedAnswer(Record, kw_only=True):
    """A discard or a trim: how many bytes were given back."""

    bytes: Count


class EvictAnswer(Record, kw_only=True):
    """Page cache of the files before and after the drop; None where the kernel does not count."""

    resident_bytes_before: Count | None
    resident_bytes_after: Count | None
    methods: Annotated[
        tuple[Annotated[str, Meta(max_length=limits.WORD_CHARACTERS_MAX)], ...],
        Meta(max_length=16),
    ]


class FileAnswer(Record, kw_only=True):
    """A file that was read, by its size and the SHA-256 of its content."""

    size: Count
    sha256: Annotated[str, Meta(max_length=limits.WORD_CHARACTERS_MAX)]


class ExitedAnswer(Record, kw_only=True):
    """How a process ended and what it used.

    `memory_peak_bytes` and `oom_kills` are of all its processes together and only told where its
    memory was bounded; None also where the kernel does not count. `limited_disks` are those on
    which the I/O of a run with a limit of it could be limited.
    """

    code: int | None
    signal: int | None
    user_s: Annotated[float, Meta(ge=0)]
    system_s: Annotated[float, Meta(ge=0)]
    max_rss_bytes: Count
    real_ns: Count
    timed_out: bool = False
    truncated: bool = False
    memory_peak_bytes: Count | None = None
    oom_kills: Count | None = None
    processor: ProcessorUse | None = None
    libraries: LibraryUse | None = None
    limited_disks: Annotated[tuple[str, ...], Meta(max_length=limits.ENTRIES_MAX)] = ()


class ResolvedActionAnswer(Record, kw_only=True):
    """The steps of an action, and those that undo it, as the agent is to do them."""

    steps: Annotated[tuple[dict[str, Any], ...], Meta(min_length=1)]
    undo: tuple[dict[str, Any], ...]


class EventStepAnswer(Record, kw_only=True):
    """When the steps of an event, or its undo, began and ended by the host's clock.

    `is_unmounted` says that they unmounted the file system of the scratch folder that was let go.
    """

    started_real_ns: Count
    ended_real_ns: Count
    is_unmounted: bool


class UndoFileAnswer(Record, kw_only=True):
    """What an agent has yet to undo: the file that it stands in, and what it does."""

    path: _Path
    steps: tuple[Annotated[str, Meta(max_length=limits.WORD_CHARACTERS_MAX)], ...]


class ProcessCpuUseAnswer(Record, kw_only=True):
    """What a run's process has used so far; None for what the kernel does not count.

    `run_ns` and `wait_ns` are sums of its living threads, the `vcpu_` ones of those that are a
    guest's processors; `user_ns` and `system_ns` are of the whole process.
    """

    real_ns: Count
    run_ns: Count | None
    wait_ns: Count | None
    vcpu_run_ns: Count | None
    vcpu_wait_ns: Count | None
    user_ns: Count | None
    system_ns: Count | None


Bins = Annotated[
    tuple[tuple[Annotated[int, Meta(ge=0, lt=BIN_COUNT)], Count], ...], Meta(max_length=BIN_COUNT)
]
Errors = Annotated[
    dict[Annotated[str, Meta(max_length=limits.WORD_CHARACTERS_MAX)], Count],
    Meta(max_length=limits.ERROR_KINDS_MAX),
]


class MetadataIntervalAnswer(Record, kw_only=True):
    """What a metadata phase did on a host between two moments of its clock."""

    from_real_ns: Count
    to_real_ns: Count
    ops: Count
    bins: Bins


class MetadataPhaseAnswer(Record, kw_only=True):
    """What a metadata phase did on a host from its start to its end."""

    phase: Annotated[str, Meta(max_length=limits.WORD_CHARACTERS_MAX)]
    ops: Count
    errors: Errors
    skipped: Count
    tried: tuple[Count, ...] = ()
    bins: Bins
    latency_min_ns: Count | None
    latency_max_ns: Count | None
    latency_sum_ns: Count
    first_start_real_ns: Count | None
    last_start_real_ns: Count | None
    first_end_real_ns: Count | None
    last_end_real_ns: Count | None
    preemptions: Count
    cancelled: bool
    timed_out: bool
    processor: ProcessorUse | None = None
    libraries: LibraryUse | None = None


Amount = Annotated[float, Meta(ge=0, le=sys.float_info.max)]


class DirectionTraceAnswer(Record, kw_only=True):
    """Sampled bios of one direction; see `DirectionTrace`."""

    bios: Count
    windows: Count
    sizes: Annotated[tuple[tuple[Count, Count], ...], Meta(max_length=limits.TRACED_SIZES_MAX)]
    sequential: Count
    ends: Count
    sectors: Annotated[tuple[Count, ...], Meta(max_length=limits.TRACED_SECTORS_MAX)]
    censored: Count
    timed: Count
    lat_max_ns: Count
    lat_sum_ns: Amount
    weight: Amount
    weight_square: Amount
    latencies: Annotated[
        tuple[tuple[Annotated[int, Meta(ge=0, lt=BIN_COUNT)], Count, Amount, Amount, Amount], ...],
        Meta(max_length=BIN_COUNT),
    ]

    @property
    def to_direction_trace(self) -> DirectionTrace:
        """The same as the model says it."""
        values = asdict(self)
        rows = tuple(BioLatencyBin(*row) for row in values.pop("latencies"))
        squares = values.pop("weight_square")
        return DirectionTrace(**values, weight_squares=squares, latencies=rows)


class TraceAnswer(Record, kw_only=True):
    """A sample of a device's bios, or the reason for none."""

    device: Annotated[str, Meta(max_length=limits.WORD_CHARACTERS_MAX)]
    reason: Annotated[str, Meta(max_length=limits.WORD_CHARACTERS_MAX)] | None = None
    read: DirectionTraceAnswer | None = None
    write: DirectionTraceAnswer | None = None
    others: Count = 0
    lost: Count = 0

    @property
    def to_block_trace(self) -> BlockTrace:
        """The same as the model says it."""
        return BlockTrace(
            device=self.device,
            reason=excerpt(self.reason or ""),
            read=self.read.to_direction_trace if self.read else None,
            write=self.write.to_direction_trace if self.write else None,
            others=self.others,
            lost=self.lost,
        )


class _FactsAnswer(Record, kw_only=True):
    facts: HostFacts


def read_answer(host_name: str, shape: type[Answer], reply: Message) -> Answer:
    """The reply as `shape`; HostError when it does not fit."""
    try:
        return convert(reply.header, shape)
    except ValidationError as error:
        where, fault = fault_place_and_text(error)
        message = (
            f"Host '{excerpt(host_name)}' sent a '{excerpt(reply.message_type, 60)}' "
            "that is malformed: "
            f"{excerpt(where or reply.message_type, 100)}: {excerpt(fault, 100)}."
        )
        raise HostError(message, _SAME_VERSION) from None


def read_hello(host_name: str, reply: Message) -> Hello:
    """The hello of an agent that speaks our wire; HostError else."""
    if reply.message_type != "hello":
        what = excerpt(reply.message_type, 60)
        message = f"Host '{excerpt(host_name)}' began with '{what}' instead of a hello."
        raise HostError(message, "See that the host's command starts nothing but the agent.")
    hello = read_answer(host_name, Hello, reply)
    if hello.wire != WIRE:
        message = (
            f"The agent on host '{excerpt(host_name)}' is {excerpt(hello.version, 60)} and speaks "
            f"wire {hello.wire}, this controller speaks wire {WIRE}."
        )
        raise HostError(message, _SAME_VERSION)
    return replace(hello, version=excerpt(hello.version, 100))


def read_facts(host_name: str, reply: Message) -> HostFacts:
    """The facts of a host; HostError when they do not fit the model."""
    return read_answer(host_name, _FactsAnswer, reply).facts
