"""Metadata load in studies and plans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from iolab.core.engine import EngineName
from iolab.core.host import DeviceFacts, HostFacts, HostProgram
from iolab.core.metric import VerdictLevel
from iolab.core.run import Plan, PlannedRun, Point
from iolab.core.study import Study
from iolab.errors import Fault
from iolab.loads.metadata.problems import add_metadata_faults, metadata_target_faults
from iolab.loads.metadata.table import METADATA_ENGINES, PHASE_SHORT_S, MetadataTable
from iolab.loads.metadata.workload import (
    MDTEST_ENGINE,
    MetadataJob,
    expected_iteration_seconds,
    space_bytes_per_client,
    written_bytes_per_client,
)
from iolab.study.document import StudyDocument
from iolab.study.forecast import VerdictCap, point_digests
from iolab.study.kinds import HostStudyKind, LoadStudyKind, TimeAndSpaceDemand
from iolab.study.load_tables import LoadTable
from iolab.study.tables import StudyTables
from iolab.study.writes import RunWrites
from iolab.text import counted_noun
from iolab.units import format_bytes, format_duration_s

MDTEST: Final = "mdtest"
MPIEXEC: Final = "mpiexec"
MPICH: Final = "mpichversion"


def mpi_version_and_mdtest_absence_text(host_facts: HostFacts) -> str:
    """The MPI of a host for comparison, and whether mdtest is there: `MPICH 4.0.2, no mdtest`."""
    return (
        _mpi_version_text(host_facts)
        if MPI_PROGRAM.is_installed(host_facts)
        else f"{_mpi_version_text(host_facts)}, no mdtest"
    )


def _mpi_version_text(host_facts: HostFacts) -> str:
    mpiexec, mpich = host_facts.tool_facts(MPIEXEC), host_facts.tool_facts(MPICH)
    if mpiexec is None or mpiexec.path is None:
        return "no mpiexec"
    words = mpiexec.version or "unknown"
    if not words.startswith("HYDRA"):
        return words
    version = (mpich.version or "") if mpich is not None and mpich.path is not None else ""
    return f"MPICH {version.rpartition(':')[2].strip() or 'unknown'}"


MPI_PROGRAM: Final = HostProgram(
    MDTEST,
    "MPI",
    # MPICH's mpiexec has no version in its first line; `mpichversion` does.
    {MDTEST: (MDTEST, "-h"), MPIEXEC: (MPIEXEC, "--version"), MPICH: (MPICH,)},
    mpi_version_and_mdtest_absence_text,
    unequal_versions_hint="For mdtest, install it and the same MPI in the same version on all "
    "clients.",
)


class MetadataStudyKind(LoadStudyKind):
    """The part of metadata load in studies and plans."""

    engines_by_table: Mapping[type[LoadTable], tuple[EngineName, ...]] = {
        MetadataTable: METADATA_ENGINES
    }
    example_by_key: Mapping[str, str] = {"ranks": "16", "files_per_rank": "1000"}
    doctor_programs = (MPI_PROGRAM,)

    def job_text(self, job: MetadataJob) -> str:
        """See `LoadStudyKind`."""
        return _job_text(job)

    def add_workload_faults(self, document: StudyDocument, tables: StudyTables) -> None:
        """Add every fault of its workloads that no single key shows."""
        add_metadata_faults(document, tables)

    def time_and_space_demand(
        self,
        study: Study,  # noqa: ARG002 - a job says it all
        runs: Sequence[PlannedRun],
        host_write_bytes_per_s: float,  # noqa: ARG002 - its rates are of operations
        host_kind: HostStudyKind,  # noqa: ARG002
    ) -> TimeAndSpaceDemand:
        """How long its phases take by assumed rates; its trees are removed by each run."""
        pairs = [(run.point, job) for run in runs if isinstance(job := run.point.job, MetadataJob)]
        if not pairs:
            return TimeAndSpaceDemand()
        jobs = [job for _, job in pairs]
        files = sum(job.ranks * job.files_per_rank for job in jobs)
        most = "at most " if any(job.phase_s for job in jobs) else ""
        done = "files on each host made, read, removed (assumed rates)"
        message = f"{counted_noun(len(jobs), 'run')}: {most}{files:,} {done}"
        return TimeAndSpaceDemand(
            load_time_items=((message, sum(expected_iteration_seconds(job) for job in jobs)),),
            prepared_run_count=len(jobs),
            space_bytes=max(space_bytes_per_client(job) for job in jobs),
        )

    def writes_of_run(self, study: Study, point: Point, host_kind: HostStudyKind) -> RunWrites:  # noqa: ARG002
        """The contents of its files."""
        job = point.job
        clients = len(study.configuration(point.configuration).hosts)
        size = written_bytes_per_client(job) if isinstance(job, MetadataJob) else 0
        return RunWrites(bytes=size * clients)

    def expected_run_seconds(self, study: Study, point: Point) -> float:  # noqa: ARG002
        """Seconds of one run by the assumed rates."""
        return expected_iteration_seconds(point.job) if isinstance(point.job, MetadataJob) else 0.0

    def verdict_caps(self, study: Study, runs: tuple[PlannedRun, ...]) -> Iterator[VerdictCap]:
        """Phases that end too soon, and clients that work on what they made themselves."""
        pairs = [(run.point, job) for run in runs if isinstance(job := run.point.job, MetadataJob)]
        short = [point for point, job in pairs if (job.phase_s or PHASE_SHORT_S) < PHASE_SHORT_S]
        if short:
            names = ", ".join(dict.fromkeys(point.workload for point in short))
            seconds = min(job.phase_s or PHASE_SHORT_S for _, job in pairs)
            why = f"{names}: phases of {seconds:g} s < {PHASE_SHORT_S:g} s"
            hint = f"--set workload.*.phase_runtime={PHASE_SHORT_S:g}s with more files_per_rank"
            yield VerdictCap(VerdictLevel.INDICATIVE, why, hint, point_digests(short))
        if blind := [point for point, job in pairs if job.engine == MDTEST_ENGINE]:
            why = "mdtest counts no failed operations and tells no times of its ranks"
            yield VerdictCap(
                VerdictLevel.INDICATIVE,
                why,
                "--set workload.*.engine=metadata does",
                point_digests(blind),
            )
        clients = {item.id: len(item.hosts) for item in study.configurations}
        if own := [
            point
            for point, job in pairs
            if _does_client_look_up_own_files(job, clients[point.configuration])
        ]:
            names = ", ".join(dict.fromkeys(point.workload for point in own))
            why = f"{names}: clients look up files that they made themselves"
            hint = "a rank shift over two clients of one shared file system avoids it"
            yield VerdictCap(VerdictLevel.INDICATIVE, why, hint, point_digests(own))

    def readiness_faults(
        self,
        study: Study,
        plan: Plan,
        facts_by_target: Mapping[str, HostFacts],
        device_facts_by_target: Mapping[str, DeviceFacts],  # noqa: ARG002 - devices have no files
    ) -> list[Fault]:
        """Too little room for its files."""
        return metadata_target_faults(study, plan, facts_by_target)


def _does_client_look_up_own_files(job: MetadataJob, client_count: int) -> bool:
    """Whether a rank looks up what its own client made."""
    total = job.ranks * client_count
    shift = job.rank_shift % total
    return min(shift, total - shift) < job.ranks


def _job_text(job: MetadataJob) -> str:
    size = f" of {format_bytes(job.file_bytes)}" if job.file_bytes else ""
    return (
        f"{job.engine}: {counted_noun(job.ranks, 'rank')}, "
        f"{counted_noun(job.files_per_rank, 'file')}"
        f"{size} each{_phase_time_limit_suffix(job)}, rank shift {job.rank_shift}"
    )


def _phase_time_limit_suffix(job: MetadataJob) -> str:
    return "" if job.phase_s is None else f" at most, phases of {format_duration_s(job.phase_s)}"
