"""Checkpoint load in studies and plans: its table, its faults, what it costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from iolab.core.engine import EngineName
from iolab.core.host import DeviceFacts, HostFacts
from iolab.core.metric import VerdictLevel
from iolab.core.run import Plan, PlannedRun, Point
from iolab.core.study import Study
from iolab.errors import Fault
from iolab.loads.checkpoint.problems import (
    add_checkpoint_faults,
    request_buffer_memory_faults,
    target_space_and_sharing_faults,
)
from iolab.loads.checkpoint.table import CheckpointTable
from iolab.loads.checkpoint.workload import CHECKPOINT_ENGINE, CheckpointJob, SaveDurability
from iolab.study.cost import ASSUMED_WRITE_BYTES_PER_S
from iolab.study.document import StudyDocument
from iolab.study.forecast import VerdictCap, point_digests
from iolab.study.kinds import HostStudyKind, KnownFacts, LoadStudyKind, TimeAndSpaceDemand
from iolab.study.load_tables import LoadTable
from iolab.study.tables import StudyTables
from iolab.study.writes import RunWrites
from iolab.text import counted_noun
from iolab.units import format_bytes

PHASE_OVERHEAD_S: Final = 1.0
"""Of each phase: its start, dropping caches, and removing the files."""


class CheckpointStudyKind(LoadStudyKind):
    """The part of checkpoint load in studies and plans."""

    engines_by_table: Mapping[type[LoadTable], tuple[EngineName, ...]] = {
        CheckpointTable: (CHECKPOINT_ENGINE,)
    }

    def job_text(self, job: CheckpointJob) -> str:
        """See `LoadStudyKind`."""
        checkpoint = job.checkpoint_files
        shrunk = f", tensors / {job.shrink}" if job.shrink > 1 else ""
        text = (
            f"{job.model_shape.title} ({job.layout}{shrunk}): {counted_noun(job.ranks, 'rank')}, "
            f"{counted_noun(checkpoint.file_count, 'file')}, "
            f"{format_bytes(checkpoint.total_bytes)}, durable {job.durable}"
        )
        if not job.restore_ranks:
            return f"{text}, no restore"
        return f"{text}, restored by {counted_noun(job.restore_ranks, 'rank')}"

    def add_workload_faults(self, document: StudyDocument, tables: StudyTables) -> None:
        """Add every fault of its workloads that no single key shows."""
        add_checkpoint_faults(document, tables)

    def time_and_space_demand(
        self,
        study: Study,
        runs: Sequence[PlannedRun],
        host_write_bytes_per_s: float,
        host_kind: HostStudyKind,  # noqa: ARG002
    ) -> TimeAndSpaceDemand:
        """What one host saves and restores at that rate; its files are removed by each run."""
        own_runs = self.runs_of_kind(runs)
        if not own_runs:
            return TimeAndSpaceDemand()
        spaces = {
            run.point.digest: _largest_client_space_bytes(study, run.point) for run in own_runs
        }
        seconds = sum(
            _expected_phases_seconds(run.point, spaces[run.point.digest], host_write_bytes_per_s)
            for run in own_runs
        )
        message = f"{counted_noun(len(own_runs), 'checkpoint')} saved and restored"
        return TimeAndSpaceDemand(
            load_time_items=((message, seconds),),
            prepared_run_count=len(own_runs),
            space_bytes=max(spaces.values()),
        )

    def expected_run_seconds(self, study: Study, point: Point) -> float:
        """Seconds of one run at the assumed rate."""
        if not isinstance(point.job, CheckpointJob):
            return 0.0
        return _expected_phases_seconds(
            point, _largest_client_space_bytes(study, point), ASSUMED_WRITE_BYTES_PER_S
        )

    def writes_of_run(self, study: Study, point: Point, host_kind: HostStudyKind) -> RunWrites:  # noqa: ARG002
        """One checkpoint."""
        return RunWrites(bytes=CheckpointJob.require_type(point.job).checkpoint_files.total_bytes)

    def verdict_caps(self, study: Study, runs: tuple[PlannedRun, ...]) -> Iterable[VerdictCap]:  # noqa: ARG002
        """Saves that nothing makes durable."""
        own = [
            run.point
            for run in self.runs_of_kind(runs)
            if CheckpointJob.require_type(run.point.job).durable is SaveDurability.NONE
        ]
        if own:
            names = ", ".join(dict.fromkeys(point.workload for point in own))
            yield VerdictCap(
                VerdictLevel.INDICATIVE,
                f"{names}: saves are not flushed",
                "--set workload.*.durable=fsync",
                point_digests(own),
            )

    def readiness_faults(
        self,
        study: Study,
        plan: Plan,
        facts_by_target: Mapping[str, HostFacts],
        device_facts_by_target: Mapping[str, DeviceFacts],  # noqa: ARG002 - devices have no files
    ) -> list[Fault]:
        """Too little memory or space, and targets that are not shared."""
        return [
            *request_buffer_memory_faults(study, plan, facts_by_target),
            *target_space_and_sharing_faults(study, plan, facts_by_target),
        ]

    def plan_notes(self, study: Study, plan: Plan, facts_by_target: KnownFacts) -> Iterable[str]:  # noqa: ARG002
        """What each host holds."""
        for point in plan.points:
            job = point.job
            if not isinstance(job, CheckpointJob):
                continue
            clients = _client_count(study, point)
            yield (
                f"{point.title_text}: {counted_noun(job.ranks // clients, 'rank')} on each host, "
                f"{format_bytes(job.largest_client_space_bytes(clients))} in files and at most "
                f"{format_bytes(job.in_flight_bytes_max_per_client(clients))} in requests"
            )


def _client_count(study: Study, point: Point) -> int:
    return len(study.configuration(point.configuration).hosts)


def _largest_client_space_bytes(study: Study, point: Point) -> int:
    return CheckpointJob.require_type(point.job).largest_client_space_bytes(
        _client_count(study, point)
    )


def _expected_phases_seconds(
    point: Point, space_bytes: int, host_write_bytes_per_s: float
) -> float:
    phases = CheckpointJob.require_type(point.job).phases
    return sum(space_bytes / host_write_bytes_per_s + PHASE_OVERHEAD_S for _ in phases)
