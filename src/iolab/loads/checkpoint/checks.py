"""Checks of checkpoint load: all ranks, durable saves, cold restores, and the rank that decides."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Final

from iolab.analysis.check import (
    CheckAnswer,
    EvidenceValues,
    check,
    indicative_answer,
    invalid_answer,
    not_applicable_answer,
    per_host,
    unchecked_answer,
    valid_answer,
    worst_answer,
)
from iolab.analysis.checks.run import engine_process_faults
from iolab.loads.checkpoint.metrics import CheckpointView, DevicePhaseBytes, PhaseRankTimes
from iolab.loads.checkpoint.placement import other_client_indexes_to_restore_from
from iolab.loads.checkpoint.workload import PhaseName, SaveDurability, phase_run_of_host
from iolab.text import percent_text
from iolab.units import format_bytes, format_ns

MOVED_SHARE: Final = 0.95
"""Part of a phase's bytes that the device must have moved until its last rank ended: a file system
may keep back a few that its journal holds."""

LATER_GOOD: Final = 0.01
LATER_BAD: Final = 0.05
"""Part of the saved bytes that the device wrote only after the last rank had ended."""

LATER_BYTES: Final = 8 << 20
"""So many are the file system's own: its log, and the metadata of new files."""

RESIDENT_SHARE: Final = 0.01
"""Part of the files that may be in memory before a cold restore."""

SYNC_LEAST_NS: Final = 50_000
"""No storage answers a flush of seconds of writes faster."""

WRITTEN_LONG_NS: Final = 1_000_000_000
"""Writes that took so long leave something to be flushed."""

STRAGGLER: Final = 1.5
"""How many times the median of ranks of its size a rank may take before it decides the figure."""

ALIKE_SHARE: Final = 0.1
"""Ranks whose bytes differ by no more are compared."""


@per_host()
def check_checkpoint_engine_errors(view: CheckpointView, host_index: int) -> Iterator[CheckAnswer]:
    """engine-errors of checkpoint load: it ends with its work, and not at a time."""
    host = view.hosts[host_index]
    where = view.on_host_if_several(host)
    evidence: EvidenceValues = {
        "host": host.host,
        "exit_code": host.exit_code,
        "exit_signal": host.exit_signal,
        "stopped_early": host.stopped_early,
    }
    for fault in engine_process_faults(host):
        yield invalid_answer(f"The engine{where} {fault}.", **evidence)
    yield valid_answer(f"The engine{where} ran without error.", **evidence)


@check("ranks-missing", "Ranks, or bytes of the checkpoint, that are missing")
def check_ranks_missing(view: CheckpointView) -> CheckAnswer:
    """Whether every rank of the model moved its bytes."""
    job = view.checkpoint_job
    answers = []
    for phase in job.phases:
        times = view.phase_rank_times(phase)
        ended = {rank.run.rank for rank in times.ranks} if times else set()
        moved = times.total_bytes if times else 0
        wanted_ranks, wanted = job.rank_count_of_phase(phase), job.bytes_of_phase(phase)
        evidence: EvidenceValues = {
            "phase": phase.value,
            "ranks": len(ended),
            "wanted_ranks": wanted_ranks,
            "bytes": moved,
            "wanted_bytes": wanted,
        }
        text = (
            f"{len(ended)} of {wanted_ranks} ranks ended their {phase.value}, with "
            f"{format_bytes(moved)} of {format_bytes(wanted)}"
        )
        if len(ended) < wanted_ranks or moved != wanted:
            answers.append(
                invalid_answer(f"{text}: that is no {phase.value} of the model.", **evidence)
            )
        else:
            answers.append(valid_answer(f"{text}.", **evidence))
    return worst_answer(answers)


@check("slowest-rank", "One rank decides")
def check_slowest_rank(view: CheckpointView) -> CheckAnswer:
    """Whether the slowest rank is one of many, or far behind all others of its size."""
    times = [view.phase_rank_times(phase) for phase in view.checkpoint_job.phases]
    known = [found for found in times if found is not None]
    if not known:
        return unchecked_answer("no rank told its times")
    return worst_answer((_slowest_rank_answer(view, found) for found in known), max_key="ratio")


def _slowest_rank_answer(view: CheckpointView, rank_times: PhaseRankTimes) -> CheckAnswer:
    slowest = rank_times.slowest_rank
    limit = ALIKE_SHARE * slowest.run.bytes
    alike = [
        rank.run.end_ns
        for rank in rank_times.ranks
        if abs(rank.run.bytes - slowest.run.bytes) <= limit
    ]
    ratio = rank_times.start_to_last_rank_end_ns / max(median(alike), 1)
    published, own = (
        rank_times.rate_over_first_rank_bytes_per_s,
        rank_times.rate_over_slowest_rank_bytes_per_s,
    )
    evidence: EvidenceValues = {
        "phase": rank_times.phase.value,
        "rank": slowest.run.rank,
        "host": view.hosts[slowest.host_index].host,
        "ratio": ratio,
        "published_ratio": published / own if published and own else None,
    }
    text = (
        f"Rank {slowest.run.rank} on {view.hosts[slowest.host_index].host} ends the "
        f"{rank_times.phase.value} after {format_ns(rank_times.start_to_last_rank_end_ns)}, "
        f"{ratio:.3g} times the median of its size"
    )
    if len(alike) > 1 and ratio > STRAGGLER:
        return indicative_answer(f"{text}: the figure is that of one rank.", **evidence)
    return valid_answer(f"{text}.", **evidence)


@check("not-durable", "Saved bytes that storage does not have")
def check_not_durable(view: CheckpointView) -> CheckAnswer:
    """Whether the save ended no sooner than the storage had its bytes."""
    job = view.checkpoint_job
    if job.durable is SaveDurability.NONE:
        return indicative_answer(
            "Nothing was flushed: the save time is that of memory, as far as it takes the bytes.",
            durable=job.durable.value,
        )
    groups = view.device_bytes_of_phase(PhaseName.SAVE)
    if groups is not None:
        return worst_answer(map(_written_share_when_ranks_ended_answer, groups))
    times = view.phase_rank_times(PhaseName.SAVE)
    if times is None:
        return unchecked_answer("no rank told its times")
    quickest = min(times.ranks, key=lambda rank: rank.run.sync_ns / max(rank.run.files, 1)).run
    each_ns = quickest.sync_ns / max(quickest.files, 1)
    evidence: EvidenceValues = {"rank": quickest.rank, "flush_ns": each_ns}
    text = f"Rank {quickest.rank} flushed a file in {format_ns(each_ns)}"
    if not job.direct and each_ns < SYNC_LEAST_NS and quickest.transfer_ns > WRITTEN_LONG_NS:
        return invalid_answer(
            f"{text} after {format_ns(quickest.transfer_ns)} of writes: no storage is so fast.",
            **evidence,
        )
    return valid_answer(
        f"{text} at the fastest; what the storage did with it no counter tells here.", **evidence
    )


def _written_share_when_ranks_ended_answer(device_bytes: DevicePhaseBytes) -> CheckAnswer:
    share = device_bytes.moved_bytes / max(device_bytes.claimed_bytes, 1)
    text = (
        f"{device_bytes.device} had written {percent_text(min(share, 1.0))} of "
        f"{format_bytes(device_bytes.claimed_bytes)} when the last rank ended"
    )
    if share < MOVED_SHARE:
        return invalid_answer(
            f"{text}: the rest was only in memory.", **_device_bytes_evidence(device_bytes, share)
        )
    return valid_answer(f"{text}.", **_device_bytes_evidence(device_bytes, share))


def _device_bytes_evidence(
    device_bytes: DevicePhaseBytes, share_of_claimed_bytes: float
) -> EvidenceValues:
    return {
        "device": device_bytes.device,
        "hosts": " ".join(device_bytes.hosts),
        "claimed_bytes": device_bytes.claimed_bytes,
        "moved_bytes": device_bytes.moved_bytes,
        "later_bytes": device_bytes.bytes_after_last_rank,
        "share": share_of_claimed_bytes,
    }


@check("work-outside-window", "Work that ended after the run")
def check_work_outside_window(view: CheckpointView) -> CheckAnswer:
    """Whether the device went on writing what was said to be saved."""
    if PhaseName.RESTORE not in view.checkpoint_job.phases:
        return not_applicable_answer("Nothing follows the save, so nobody looked after it.")
    groups = view.device_bytes_of_phase(PhaseName.SAVE)
    if groups is None:
        return not_applicable_answer("No block device below the target is counted on every client.")
    busy = {
        host.host
        for host in view.hosts
        if host.pre_run_activity is not None and not host.pre_run_activity.is_quiet
    }
    return worst_answer(
        _late_writes_answer(group, is_shared=bool(busy.intersection(group.hosts)))
        for group in groups
    )


def _late_writes_answer(device_bytes: DevicePhaseBytes, *, is_shared: bool) -> CheckAnswer:
    if device_bytes.bytes_after_last_rank is None:
        return unchecked_answer(f"{device_bytes.device} was not looked at after the save")
    share = device_bytes.bytes_after_last_rank / max(device_bytes.claimed_bytes, 1)
    text = (
        f"{device_bytes.device} wrote {format_bytes(device_bytes.bytes_after_last_rank)} "
        "after the last rank had ended, "
        f"{percent_text(share)} of the checkpoint"
    )
    if share > LATER_GOOD and device_bytes.bytes_after_last_rank > LATER_BYTES:
        if is_shared:
            return indicative_answer(
                f"{text}; others used it before the start, too, and may have written them.",
                **_device_bytes_evidence(device_bytes, share),
            )
        verdict = invalid_answer if share > LATER_BAD else indicative_answer
        return verdict(
            f"{text}: its writing is not in the save time.",
            **_device_bytes_evidence(device_bytes, share),
        )
    return valid_answer(f"{text}.", **_device_bytes_evidence(device_bytes, share))


@check("restored-from-memory", "A restore that memory answered")
def check_restored_from_memory(view: CheckpointView) -> CheckAnswer:
    """Whether the storage read what was restored: a restart after a failure finds no caches."""
    if PhaseName.RESTORE not in view.checkpoint_job.phases:
        return not_applicable_answer("Nothing was restored.")
    groups = view.device_bytes_of_phase(PhaseName.RESTORE)
    if groups is not None:
        return worst_answer(map(_device_read_share_answer, groups), min_key="share")
    return worst_answer(_restored_cold_answers_of_hosts(view), max_key="resident_share")


def _device_read_share_answer(device_bytes: DevicePhaseBytes) -> CheckAnswer:
    share = device_bytes.moved_bytes / max(device_bytes.claimed_bytes, 1)
    text = (
        f"{device_bytes.device} read {percent_text(min(share, 1.0))} of the "
        f"{format_bytes(device_bytes.claimed_bytes)} restored"
    )
    if share < MOVED_SHARE:
        return invalid_answer(
            f"{text}: memory had the rest.", **_device_bytes_evidence(device_bytes, share)
        )
    return valid_answer(f"{text}.", **_device_bytes_evidence(device_bytes, share))


def _restored_cold_answers_of_hosts(view: CheckpointView) -> Iterator[CheckAnswer]:
    """Where no device is counted: by who saved what a host restores, and what its memory held."""
    job, clients = view.checkpoint_job, len(view.hosts)
    each = job.ranks // max(clients, 1)
    for index, host in enumerate(view.hosts):
        run = phase_run_of_host(host, PhaseName.RESTORE)
        if run is None:
            yield unchecked_answer(f"{host.host} told nothing of its restore", host=host.host)
            continue
        wanted = sum(rank.bytes for rank in run.ranks)
        resident = (
            host.cache_drop.resident_bytes_after
            if host.cache_drop and host.cache_drop.requested
            else None
        )
        share = None if resident is None or not wanted else resident / wanted
        evidence: EvidenceValues = {
            "host": host.host,
            "resident_share": share,
            "restored_bytes": wanted,
            "direct": job.direct,
        }
        shift = job.restore_rank_shift(clients)
        if (
            other_client_indexes_to_restore_from(job, clients, index)
            and each <= shift <= job.ranks - each
        ):
            yield valid_answer(f"{host.host} restored what other hosts had saved.", **evidence)
        elif share is None:
            yield unchecked_answer(
                f"what {host.host} held in memory of what it restored is not known", **evidence
            )
        elif share > RESIDENT_SHARE:
            yield invalid_answer(
                f"{host.host} held {percent_text(share)} of what it restored in memory.",
                **evidence,
            )
        else:
            yield valid_answer(
                f"{host.host} held {percent_text(share)} of what it restored in memory.",
                **evidence,
            )
