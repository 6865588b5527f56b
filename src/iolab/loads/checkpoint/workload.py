"""A checkpoint's job, and what the ranks of one host did in its phases."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import ClassVar, Final

from msgspec.structs import replace

from iolab.core.engine import EngineName
from iolab.core.run import DeviceDelta, HostLoadDetails, HostRun
from iolab.core.workload import AnyJob, Direction, Indicator
from iolab.loads.checkpoint.layouts import CheckpointFiles, CheckpointLayout, plan_checkpoint
from iolab.loads.checkpoint.models import CUSTOM, MODELS, VOCABULARY, ModelShape, custom_model
from iolab.record import Record

CHECKPOINT_ENGINE: Final = EngineName("checkpoint")
"""Built into the agent."""

BY_SAVE_TIME: Final = Indicator("save-time")
BY_RESTORE_TIME: Final = Indicator("restore-time")


class PhaseName(StrEnum):
    """What all ranks do together, from a common start on."""

    SAVE = "save"
    RESTORE = "restore"

    @property
    def direction(self) -> Direction:
        """What its requests are counted as."""
        return Direction.WRITE if self is PhaseName.SAVE else Direction.READ


class SaveDurability(StrEnum):
    """When a file counts as saved."""

    NONE = "none"
    """When the kernel has it."""
    FSYNC = "fsync"
    """When it was flushed."""
    PUBLISH = "publish"
    """The same under another name; then it is renamed, and its folder flushed."""


class CheckpointJob(AnyJob, Record, tag="checkpoint"):
    """A checkpoint of all clients' ranks with every number settled.

    `ranks` of the fleet save the `model` in a `layout`, every tensor divided by `shrink`.
    `hidden` to `pipeline_parallel` are of a model of the study's own, else 0.
    `restore_ranks` restore it, 0 for none; rank r what rank r + `rank_shift` saved, which is None
    for the ranks of a client, so that none restores what it saved itself.
    """

    has_warmup: ClassVar[bool] = False
    indicators: ClassVar[Mapping[str, str | None]] = MappingProxyType(
        {BY_SAVE_TIME: "save_ns", BY_RESTORE_TIME: "restore_ns"}
    )
    field_by_study_key: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"write_size": "write_bytes", "read_size": "read_bytes", "verify": "verifies_contents"}
    )

    engine: EngineName
    model: str
    layout: CheckpointLayout
    ranks: int
    restore_ranks: int
    shrink: int = 1
    rank_shift: int | None = None
    write_bytes: int = 32 << 20
    writes_in_flight: int = 1
    read_bytes: int = 128 << 20
    reads_in_flight: int = 4
    durable: SaveDurability = SaveDurability.FSYNC
    direct: bool = True
    verifies_contents: bool = True
    hidden: int = 0
    ffn: int = 0
    heads: int = 0
    kv_heads: int = 0
    layers: int = 0
    vocabulary: int = 0
    tensor_parallel: int = 0
    pipeline_parallel: int = 0

    @property
    def model_shape(self) -> ModelShape:
        """The model of that name, or the study's own."""
        if self.model != CUSTOM:
            return MODELS[self.model]
        return custom_model(
            hidden=self.hidden,
            ffn=self.ffn,
            heads=self.heads,
            kv_heads=self.kv_heads,
            layers=self.layers,
            vocabulary=self.vocabulary or VOCABULARY,
            tensor_parallel=self.tensor_parallel or 1,
            pipeline_parallel=self.pipeline_parallel or 1,
            rank_count=self.ranks,
        )

    @property
    def checkpoint_files(self) -> CheckpointFiles:
        """All its files."""
        return plan_checkpoint(self.model_shape, self.layout, self.ranks, self.shrink)

    @property
    def phases(self) -> tuple[PhaseName, ...]:
        """What is measured, in this order."""
        return (PhaseName.SAVE, PhaseName.RESTORE) if self.restore_ranks else (PhaseName.SAVE,)

    def rank_count_of_phase(self, phase: PhaseName) -> int:
        """The ranks of all clients that do it."""
        return self.ranks if phase is PhaseName.SAVE else self.restore_ranks

    def bytes_of_phase(self, phase: PhaseName) -> int:
        """What all ranks together save, or want to restore."""
        checkpoint = self.checkpoint_files
        if phase is PhaseName.SAVE or self.restore_ranks == self.ranks:
            return checkpoint.total_bytes
        # By other ranks the items are read, and not what tells of them.
        return self.ranks * sum(item.count * item.size_bytes for item in checkpoint.tensor_groups)

    def requests_in_flight_per_rank(self, phase: PhaseName) -> int:
        """Requests that each rank has under way."""
        return self.writes_in_flight if phase is PhaseName.SAVE else self.reads_in_flight

    def request_bytes(self, phase: PhaseName) -> int:
        """Of one of these."""
        return self.write_bytes if phase is PhaseName.SAVE else self.read_bytes

    def restore_rank_shift(self, client_count: int) -> int:
        """How many ranks on lies what a rank restores."""
        if self.rank_shift is None:
            return self.ranks // client_count if client_count > 1 else 0
        return self.rank_shift % self.ranks

    def in_flight_bytes_max_per_client(self, client_count: int) -> int:
        """Memory that the requests of one client take."""
        return max(
            self.rank_count_of_phase(phase)
            // client_count
            * self.requests_in_flight_per_rank(phase)
            * self.request_bytes(phase)
            for phase in self.phases
        )

    def largest_client_space_bytes(self, client_count: int) -> int:
        """What the ranks of one client save: of the client that saves most."""
        each, checkpoint = self.ranks // client_count, self.checkpoint_files
        return max(
            sum(checkpoint.bytes_of_rank(rank) for rank in range(first, first + each))
            for first in range(0, self.ranks, each)
        )

    def adapted_to_separate_targets(self) -> CheckpointJob:
        """See `AnyJob`: each client restores what it saved."""
        return replace(self, rank_shift=0)


class RankRun(Record):
    """What one rank did in a phase, in ns.

    `begin_ns` and `end_ns` count from the common start; the others are sums over its `files`: of
    opening them, of moving their bytes, of flushing, closing and renaming them. `bytes` are those
    of the checkpoint.
    """

    rank: int
    begin_ns: int
    end_ns: int
    bytes: int
    files: int
    open_ns: int
    transfer_ns: int
    sync_ns: int
    close_ns: int
    rename_ns: int


class PhaseRun(Record):
    """What one host did in a phase.

    `devices` is what the target's devices moved from before its start until its last rank had
    ended, `devices_later` what they moved from then until caches were dropped before the next
    phase, empty after the last one.
    """

    phase: PhaseName
    ranks: tuple[RankRun, ...]
    devices: tuple[DeviceDelta, ...]
    devices_later: tuple[DeviceDelta, ...] = ()


class CheckpointHostDetails(HostLoadDetails, Record, tag="checkpoint"):
    """What one host did, phase by phase."""

    phases: tuple[PhaseRun, ...]

    def phase_run(self, phase: PhaseName) -> PhaseRun | None:
        """What it did in that phase; None where it did not come to it."""
        return next((run for run in self.phases if run.phase is phase), None)


def phase_run_of_host(host: HostRun, phase: PhaseName) -> PhaseRun | None:
    """What a host did in a phase; None where it did not tell."""
    return (
        host.details.phase_run(phase) if isinstance(host.details, CheckpointHostDetails) else None
    )
