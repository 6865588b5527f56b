"""What a save and a restore come to: as slow as their slowest rank."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from statistics import median
from typing import Final

from iolab.analysis.checks.bytes import device_names_counting_each_io_once
from iolab.analysis.metrics import METRIC_KEYS, metrics_or_unknown_by_key
from iolab.analysis.view import RunView
from iolab.core.metric import Metric
from iolab.core.run import DeviceDelta
from iolab.core.workload import Direction
from iolab.loads.checkpoint.metric_specs import (
    AMPLIFICATION,
    METRICS,
    PUBLISHED_RESTORE,
    PUBLISHED_SAVE,
    RESTORE,
    RESTORE_RATE,
    RESTORE_SPREAD,
    SAVE,
    SAVE_RATE,
    SAVE_SPREAD,
    SAVE_SYNC_SHARE,
)
from iolab.loads.checkpoint.workload import (
    CheckpointJob,
    PhaseName,
    RankRun,
    phase_run_of_host,
)
from iolab.record import Record
from iolab.units import NS_PER_S

REQUEST_KEYS: Final = tuple(
    key for key in METRIC_KEYS if key.startswith(("read_lat_ns", "write_lat_ns"))
)
"""Latencies of single requests; how many there are a second is no figure of a checkpoint."""


class HostRankRun(Record):
    """A rank in a phase, and the host that it was on, by its place."""

    host_index: int
    run: RankRun


class PhaseRankTimes(Record, dict=True):
    """What all ranks, or those of some hosts, did in a phase; at least one."""

    phase: PhaseName
    ranks: tuple[HostRankRun, ...]

    @cached_property
    def slowest_rank(self) -> HostRankRun:
        """The rank that ended last."""
        return max(self.ranks, key=lambda rank: rank.run.end_ns)

    @property
    def lowest_numbered_rank(self) -> HostRankRun:
        """The rank with the lowest number."""
        return min(self.ranks, key=lambda rank: rank.run.rank)

    @property
    def start_to_last_rank_end_ns(self) -> int:
        """From the common start until the last rank ended."""
        return self.slowest_rank.run.end_ns

    @property
    def total_bytes(self) -> int:
        """Of the checkpoint."""
        return sum(rank.run.bytes for rank in self.ranks)

    @property
    def median_rank_end_ns(self) -> float:
        """The same of the median rank."""
        return median(rank.run.end_ns for rank in self.ranks)

    @property
    def slowest_to_median_time_ratio(self) -> float | None:
        """The slowest rank's time over the median one's."""
        return (
            self.start_to_last_rank_end_ns / self.median_rank_end_ns
            if self.median_rank_end_ns
            else None
        )

    @property
    def rate_over_slowest_rank_bytes_per_s(self) -> float | None:
        """All bytes over the time of the slowest rank."""
        return _bytes_per_s(self.total_bytes, self.start_to_last_rank_end_ns)

    @property
    def rate_over_first_rank_bytes_per_s(self) -> float | None:
        """All bytes over the time of the first rank by its own clock."""
        first = self.lowest_numbered_rank.run
        return _bytes_per_s(self.total_bytes, first.end_ns - first.begin_ns)

    @property
    def slowest_rank_sync_share(self) -> float | None:
        """Part of the slowest rank's time that it flushed, closed and renamed."""
        run = self.slowest_rank.run
        took = run.end_ns - run.begin_ns
        return (run.sync_ns + run.close_ns + run.rename_ns) / took if took > 0 else None


class DevicePhaseBytes(Record):
    """One device, as one kernel counts it, in a phase.

    The hosts that used it there asked for `claimed_bytes`; it moved `moved_bytes` until their last
    rank ended, and `bytes_after_last_rank` from then until caches were dropped, None where nobody
    looked.
    """

    device: str
    hosts: tuple[str, ...]
    claimed_bytes: int
    moved_bytes: int
    bytes_after_last_rank: int | None


class CheckpointView(RunView, Record, dict=True):
    """A run with what its ranks did."""

    @property
    def checkpoint_job(self) -> CheckpointJob:
        """What the hosts were asked to do."""
        return CheckpointJob.require_type(self.job)

    def phase_rank_times(
        self, phase: PhaseName, host_indexes: Iterable[int] | None = None
    ) -> PhaseRankTimes | None:
        """What the ranks of those hosts (all by default) did; None where none told anything."""
        places = range(len(self.hosts)) if host_indexes is None else host_indexes
        ranks = tuple(
            HostRankRun(host, rank)
            for host in places
            if (run := phase_run_of_host(self.hosts[host], phase)) is not None
            for rank in run.ranks
        )
        return PhaseRankTimes(phase, ranks) if ranks else None

    def claimed_bytes_per_s_by_direction(self, host_index: int) -> dict[Direction, float]:
        """See `RunView`: of each phase, until the last rank of the host ended."""
        found = {
            phase.direction: times.rate_over_slowest_rank_bytes_per_s
            for phase in PhaseName
            if (times := self.phase_rank_times(phase, [host_index])) is not None
        }
        return {way: rate for way, rate in found.items() if rate is not None}

    def device_bytes_of_phase(self, phase: PhaseName) -> tuple[DevicePhaseBytes, ...] | None:
        """What each device in use moved in a phase; None where a host's is not known.

        Hosts of one kernel see the same counters: what they asked of one device is added up.
        """
        groups: dict[tuple[str, tuple[str, ...]], list[int]] = {}
        for index, host in enumerate(self.hosts):
            facts, run = self.facts_of_host(host), phase_run_of_host(host, phase)
            names = (
                ()
                if facts is None or run is None
                else device_names_counting_each_io_once(facts, run.devices)
            )
            if facts is None or not names:
                return None
            groups.setdefault((facts.kernel.boot_id_or_host(host.host), names), []).append(index)
        return tuple(
            self._device_phase_bytes(phase, names, members)
            for (_, names), members in groups.items()
        )

    def _device_phase_bytes(
        self, phase: PhaseName, device_names: Sequence[str], host_indexes: Sequence[int]
    ) -> DevicePhaseBytes:
        way = phase.direction
        runs = [
            run for index in host_indexes if (run := phase_run_of_host(self.hosts[index], phase))
        ]
        later = [run.devices_later for run in runs]
        return DevicePhaseBytes(
            device="+".join(device_names),
            hosts=tuple(self.hosts[index].host for index in host_indexes),
            claimed_bytes=sum(rank.bytes for run in runs for rank in run.ranks),
            # Each host looked at moments of its own; the widest look saw all.
            moved_bytes=max(_moved_bytes(run.devices, device_names, way) for run in runs),
            bytes_after_last_rank=max(_moved_bytes(part, device_names, way) for part in later)
            if all(later)
            else None,
        )


def _moved_bytes(
    deltas: Iterable[DeviceDelta], device_names: Sequence[str], direction: Direction
) -> int:
    return sum(
        delta.direction_delta(direction).bytes for delta in deltas if delta.device in device_names
    )


def _bytes_per_s(moved_bytes: int, took_ns: int) -> float | None:
    return moved_bytes * NS_PER_S / took_ns if took_ns > 0 else None


def checkpoint_metrics(
    view: CheckpointView, host_indexes: Sequence[int] | None = None
) -> dict[str, Metric]:
    """The metrics of those hosts' ranks together, of all ranks by default."""
    values: dict[str, float | None] = {}
    save = view.phase_rank_times(PhaseName.SAVE, host_indexes)
    if save is not None:
        values |= {
            SAVE.key: save.start_to_last_rank_end_ns,
            SAVE_RATE.key: save.rate_over_slowest_rank_bytes_per_s,
            SAVE_SYNC_SHARE.key: save.slowest_rank_sync_share,
            SAVE_SPREAD.key: save.slowest_to_median_time_ratio,
        }
    restore = view.phase_rank_times(PhaseName.RESTORE, host_indexes)
    if restore is not None:
        values |= {
            RESTORE.key: restore.start_to_last_rank_end_ns,
            RESTORE_RATE.key: restore.rate_over_slowest_rank_bytes_per_s,
            RESTORE_SPREAD.key: restore.slowest_to_median_time_ratio,
        }
    if host_indexes is None:
        # The published figures are of the fleet, and so is what its devices moved.
        values[PUBLISHED_SAVE.key] = save.rate_over_first_rank_bytes_per_s if save else None
        values[PUBLISHED_RESTORE.key] = (
            restore.rate_over_first_rank_bytes_per_s if restore else None
        )
        values[AMPLIFICATION.key] = _restore_read_amplification(view)
    return metrics_or_unknown_by_key((spec.key for spec in METRICS), values)


def _restore_read_amplification(view: CheckpointView) -> float | None:
    groups = view.device_bytes_of_phase(PhaseName.RESTORE)
    wanted = sum(group.claimed_bytes for group in groups or ())
    return sum(group.moved_bytes for group in groups) / wanted if groups and wanted else None
