"""I/O on files and devices in studies and plans: its table, its checks, what it costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from iolab.core.engine import EngineName
from iolab.core.host import HostFacts
from iolab.core.run import NeighbourPlan, Plan, PlannedRun, Point
from iolab.core.study import Study
from iolab.errors import Fault
from iolab.loads.fileio.engine_facts import FILE_ENGINES, FIO_ENGINE, VERSION_COMMANDS
from iolab.loads.fileio.options import ADVICE
from iolab.loads.fileio.problems import (
    add_file_io_faults,
    add_fleet_rate_faults,
    add_neighbour_verify_faults,
)
from iolab.loads.fileio.table import IO_ENGINES, FileTable
from iolab.loads.fileio.workload import Job, job_for_generator_limit
from iolab.study.document import StudyDocument
from iolab.study.kinds import (
    HostStudyKind,
    KnownFacts,
    LoadStudyKind,
    TimeAndSpaceDemand,
    VersionArgvByProgram,
)
from iolab.study.load_tables import LoadTable
from iolab.study.tables import StudyTables
from iolab.study.targets import Target, load_host_names_of_point
from iolab.study.writes import RunWrites
from iolab.text import counted_noun, quote_value
from iolab.units import format_bytes, format_count, format_duration_s, format_rate_bytes


class FileIoStudyKind(LoadStudyKind):
    """The part of I/O in studies and plans."""

    engines_by_table: Mapping[type[LoadTable], tuple[EngineName, ...]] = {FileTable: IO_ENGINES}
    advice_by_unknown_key: Mapping[str, str] = ADVICE
    example_by_key: Mapping[str, str] = {"rw": '"randread"', "bs": '"4k"', "filesize": '"2g"'}
    doctor_programs = tuple(engine.program for engine in FILE_ENGINES.values() if engine.program)

    def job_text(self, job: Job) -> str:
        """See `LoadStudyKind`."""
        return _job_text(job)

    def version_argv_by_probed_program(self, study: Study) -> VersionArgvByProgram:  # noqa: ARG002 - files are laid out by it, too
        """See `LoadStudyKind`."""
        return VERSION_COMMANDS

    def add_workload_faults(self, document: StudyDocument, tables: StudyTables) -> None:
        """Add every fault of its workloads that no single key shows."""
        add_file_io_faults(document, tables)

    def add_device_faults(self, document: StudyDocument, tables: StudyTables) -> None:
        """None: it needs no files."""

    def add_point_faults(self, document: StudyDocument, study: Study) -> None:
        """Add the faults of rates that jobs cannot share, and of loads on one device."""
        add_fleet_rate_faults(document, study)
        add_neighbour_verify_faults(document, study)

    def time_and_space_demand(
        self,
        study: Study,
        runs: Sequence[PlannedRun],
        host_write_bytes_per_s: float,  # noqa: ARG002 - it lasts as long at any
        host_kind: HostStudyKind,  # noqa: ARG002
    ) -> TimeAndSpaceDemand:
        """The load as the method has it, and the limits of its engines."""
        points = [run.point for run in runs if isinstance(run.point.job, Job)]
        if not points:
            return TimeAndSpaceDemand()
        method = study.method
        least_s, max_duration_s = study.load_seconds_range
        length = f"warm-up + runtime of {format_duration_s(method.warmup_s)} + "
        length += format_duration_s(method.runtime_s)
        if study.scenario is not None:
            length = f"warm-up + phases of {format_duration_s(least_s - method.warmup_s)}"
            if least_s < max_duration_s:
                longest = format_duration_s(max_duration_s - method.warmup_s)
                length += f" to {longest}, as witnesses end them"
        if method.rule is not None:
            length = (
                f"{format_duration_s(least_s)} to {format_duration_s(max_duration_s)}, until steady"
            )
        return TimeAndSpaceDemand(
            load_time_items=(
                (
                    f"{counted_noun(len(points), 'run')}: {length}",
                    len(points) * max_duration_s,
                ),
            ),
            generator_limit_time_items=generator_limit_time_items(study, runs),
            prepared_run_count=len(points),
            avoidable_s=(max_duration_s - least_s) * len(points),
        )

    def writes_of_run(self, study: Study, point: Point, host_kind: HostStudyKind) -> RunWrites:
        """What a run writes: at its rate limit, or as fast as targets take it."""
        makers = load_host_names_of_point(study, point)
        return self._writes_of_hosts(study, point, makers, study.load_seconds_range, host_kind)

    def neighbour_writes(
        self, study: Study, neighbour: NeighbourPlan, host_kind: HostStudyKind
    ) -> RunWrites:
        """What a neighbour writes in the phases through which its load goes on."""
        if study.scenario is None:
            return RunWrites()
        seconds = study.scenario.neighbour_load_seconds_range(neighbour.event)
        return self._writes_of_hosts(study, neighbour.point, neighbour.hosts, seconds, host_kind)

    def _writes_of_hosts(
        self,
        study: Study,
        point: Point,
        load_host_names: Sequence[str],
        seconds_range: tuple[float, float],
        host_kind: HostStudyKind,
    ) -> RunWrites:
        job = Job.require_type(point.job)
        if not job.access.has_writes:
            return RunWrites()
        share = 1 - job.read_percent / 100 if job.read_percent is not None else 1.0
        disk_iops = host_kind.iops_limit_per_guest_disk(study)
        limited, unlimited = 0.0, []
        for host in load_host_names:
            jobs = Job.require_type(point.job_on_host(host)).numjobs
            limits = [job.target_iops_per_job * jobs] if job.target_iops_per_job is not None else []
            limits += [disk_iops * share] if disk_iops is not None else []
            if limits:
                limited += min(limits) * job.mean_block_bytes
            else:
                unlimited.append(host)
        # Guests share their node, which writes as much however many it has.
        nodes = {study.host(name).hypervisor or name for name in unlimited}
        return RunWrites(
            limited_bytes_per_s=limited,
            host_share_at_target_speed=len(nodes) * share,
            seconds_range=seconds_range,
        )

    def engine_program_faults(
        self, plan: Plan, target: Target, host_facts: HostFacts
    ) -> list[Fault]:
        """Those of programs that jobs of the host need."""
        points = plan.points_and_neighbour_points
        engines = (p.job.engine for p in points if p.configuration in target.configurations)
        needed = (
            FILE_ENGINES[name].program for name in dict.fromkeys(engines) if name in FILE_ENGINES
        )
        return [
            Fault(
                f"{program.title} on host {quote_value(target.host)} is {wrong}.",
                program.install_hint,
            )
            for program in needed
            if program and program.fault_of_facts and (wrong := program.fault_of_facts(host_facts))
        ]

    def plan_notes(self, study: Study, plan: Plan, facts_by_target: KnownFacts) -> Iterator[str]:  # noqa: ARG002
        """What the study leaves out."""
        yield from notes_on_disabled_generator_limit(study, plan.points)
        engines = {point.job.engine for point in plan.points if isinstance(point.job, Job)}
        if study.telemetry.slow_ios and FIO_ENGINE in engines:
            yield "telemetry.slow_ios: fio tells no I/Os one by one; only the native engine does"
        if study.telemetry.recorded_ios and FIO_ENGINE in engines:
            yield "telemetry.recorded_ios: give fio write_iolog; only the native engine is recorded"
        yield from dict.fromkeys(_notes_on_changed_trace_replay(plan))


def _notes_on_changed_trace_replay(plan: Plan) -> Iterator[str]:
    """What of a trace is replayed otherwise than it was recorded."""
    replays = [
        (point, point.job.trace)
        for point in plan.points
        if isinstance(point.job, Job) and point.job.trace
    ]
    if not replays:
        return
    from iolab.loads.fileio.io_trace import IoTraceError, read_trace  # brings numpy

    for point, path in replays:
        name = f"trace {quote_value(path)}"
        try:
            trace = read_trace(path)
        except IoTraceError:
            continue  # the run refuses it
        if trace.trims:
            trims = counted_noun(trace.trims, "trim")
            yield f"{name}: {trims} left out, since files in a directory do not take them"
        if trace.fua_writes:
            writes = counted_noun(trace.fua_writes, "write")
            yield f"{name}: {writes} with FUA replayed without it"
        file_bytes = plan.data_set(point.data_set).file_bytes
        if trace.span_bytes > file_bytes:
            yield (
                f"{name}: recorded on {format_bytes(trace.span_bytes)}, replayed on "
                f"{format_bytes(file_bytes)}, so that places that were apart can meet"
            )


def _job_text(job: Job) -> str:
    mix = f" {job.read_percent}% read" if job.read_percent is not None else ""
    buffered = "" if job.direct else ", buffered"
    shared = ", on one file" if job.shared_file else ""
    return (
        f"{job.access.value}{mix} {format_bytes(job.block_bytes)}, {job.numjobs} x depth "
        f"{job.iodepth}{_rate_limit_or_trace_suffix(job)}{shared}{buffered}"
    )


def _rate_limit_or_trace_suffix(job: Job) -> str:
    """How fast, and how I/Os arrive where that is said."""
    if job.trace:
        speed = "" if job.trace_speed == 1 else f", {job.trace_speed:g} x as fast"
        return f", {quote_value(job.trace)} replayed at {format_count(job.trace_iops)} IOPS{speed}"
    if job.rate_bytes_per_s is not None:
        text = f"{format_rate_bytes(job.rate_bytes_per_s)} a job"
    elif job.rate_iops is not None:
        text = f"{job.rate_iops} IOPS a job"
    else:
        return ""
    if job.fleet_rate_iops is not None:
        text = f"{job.fleet_rate_iops} IOPS of the fleet, {text}"
    return f", {text} at most" if job.arrivals is None else f", {text}, {job.arrivals} arrivals"


def generator_limit_time_items(
    study: Study, runs: Iterable[PlannedRun]
) -> tuple[tuple[str, float], ...]:
    """How long the limits of the engines take to measure: a reason and its seconds for each."""
    if not study.method.generator_limit:
        return ()
    kinds: set[tuple[frozenset[str], tuple[tuple[str, int], ...], Job]] = set()
    counts: dict[EngineName, int] = {}
    for run in runs:
        point = run.point
        if not isinstance(point.job, Job) or point.job.access.has_trims:
            continue
        kind = (
            frozenset(load_host_names_of_point(study, point)),
            point.host_numjobs,
            job_for_generator_limit(point.job),
        )
        if kind not in kinds:
            counts[point.job.engine] = counts.get(point.job.engine, 0) + 1
        kinds.add(kind)
    return tuple(
        (f"{_job_kind_count_text(count)}: {engine}'s limit, on a null target", seconds)
        for engine, count in counts.items()
        if (seconds := count * FILE_ENGINES[engine].generator_limit_measurement_s)
    )


def notes_on_disabled_generator_limit(study: Study, points: Iterable[Point]) -> Iterator[str]:
    """What is told of looks that the study leaves out: how far results can go without them."""
    looked = (p.job for p in points if isinstance(p.job, Job))
    if not study.method.generator_limit and any(not job.access.has_trims for job in looked):
        without = "results are at most indicative"
        yield f"no engine's limit is measured (method.generator_limit = false): {without}"


def _job_kind_count_text(count: int) -> str:
    return "1 kind of job" if count == 1 else f"{count} kinds of job"
