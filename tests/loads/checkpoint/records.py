"""Recorded checkpoints: one client, eight ranks, all from and to its device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from iolab.core.run import DeviceDelta, RunRecord
from iolab.core.workload import Direction
from iolab.loads.checkpoint.layouts import CheckpointLayout
from iolab.loads.checkpoint.placement import rank_work_of_client
from iolab.loads.checkpoint.workload import (
    CHECKPOINT_ENGINE,
    CheckpointHostDetails,
    CheckpointJob,
    PhaseName,
    PhaseRun,
    RankRun,
)
from tests.analysis.records import DEVICE, Burst, bursts_record

JOB: Final = CheckpointJob(
    CHECKPOINT_ENGINE,
    model="llama3-8b",
    layout=CheckpointLayout.ZERO3,
    ranks=8,
    restore_ranks=8,
    shrink=64,
)
SECOND: Final = 1_000_000_000


def rank_run(rank: int, size: int, phase: PhaseName) -> RankRun:
    """A rank that flushes for a tenth of its time; rank 3 is the slowest, a little."""
    end_ns = 7 * SECOND + (SECOND // 5 if rank == 3 else rank * 10_000_000)
    saves = phase is PhaseName.SAVE
    return RankRun(
        rank=rank,
        begin_ns=1_000_000,
        end_ns=end_ns,
        bytes=size,
        files=2,
        open_ns=2_000_000,
        transfer_ns=end_ns - 7 * SECOND // 10,
        sync_ns=7 * SECOND // 10 if saves else 0,
        close_ns=10_000,
        rename_ns=0,
    )


def devices(read: int = 0, written: int = 0) -> tuple[DeviceDelta, ...]:
    return (DeviceDelta(DEVICE, read, written, read >> 20, written >> 20),)


def phase_run(job: CheckpointJob, phase: PhaseName) -> PhaseRun:
    """What the only client does in a phase, all of it seen by its device."""
    ranks = tuple(
        rank_run(work.rank, sum(read.file.size_bytes for read in work.files), phase)
        for work in rank_work_of_client(job, phase, 1, 0)
    )
    moved = sum(rank.bytes for rank in ranks)
    if phase is PhaseName.SAVE:
        return PhaseRun(phase, ranks, devices(written=moved), devices(written=1 << 20))
    return PhaseRun(phase, ranks, devices(read=moved))


Change = Callable[[PhaseRun], PhaseRun]


def same(run: PhaseRun) -> PhaseRun:
    return run


def saved_and_restored(
    job: CheckpointJob = JOB, *, save: Change = same, restore: Change = same
) -> RunRecord:
    """The record of a client that saved and restored a checkpoint, with those changes."""
    requests = job.checkpoint_files.total_bytes // 4096 // 8
    bursts = [
        Burst(ios=requests, lat_ns=900_000, spans=8, direction=Direction.WRITE),
        Burst(ios=requests, lat_ns=900_000, spans=8, start_s=8.0, first_seq=8),
    ]
    record = bursts_record(bursts, job=job)
    changes = {PhaseName.SAVE: save, PhaseName.RESTORE: restore}
    details = CheckpointHostDetails(
        tuple(changes[phase](phase_run(job, phase)) for phase in job.phases)
    )
    hosts = tuple(
        replace(
            host,
            details=details,
            clock_offset_after_ns=host.clock_offset_ns,
            clock_error_after_ns=0,
        )
        for host in record.hosts
    )
    return replace(record, hosts=hosts)


def without_last_rank(run: PhaseRun) -> PhaseRun:
    """A rank that told nothing."""
    return replace(run, ranks=run.ranks[:-1])


def with_straggler(run: PhaseRun) -> PhaseRun:
    """One rank that takes three times as long as the others."""
    *others, last = run.ranks
    return replace(run, ranks=(*others, replace(last, end_ns=21 * SECOND)))


def with_unflushed_bytes(run: PhaseRun) -> PhaseRun:
    """A device that had a fifth of the bytes when the last rank ended, and got no more of them."""
    moved = sum(rank.bytes for rank in run.ranks)
    return replace(run, devices=devices(written=moved // 5))


def with_cached_half(run: PhaseRun) -> PhaseRun:
    """A device that was asked for half of what was restored."""
    return replace(run, devices=devices(read=sum(rank.bytes for rank in run.ranks) // 2))
