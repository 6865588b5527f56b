"""What a maker of load offers to a session, and those of one session."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from iolab.core import limits
from iolab.core.block_trace import BlockTrace
from iolab.core.compressed import CompressedBytes
from iolab.core.drive import DriveReading
from iolab.core.engine import EngineName
from iolab.core.libraries import LibraryUse
from iolab.core.run import (
    LOAD_HALTS_MAX,
    CacheDropProof,
    CgroupCpuUse,
    DeviceDelta,
    ExtentProof,
    FileIdentityCheck,
    HostLoadDetails,
    HostRun,
    LoadHalt,
    PlannedRun,
    PreRunActivity,
    ProcessorUse,
    ProcessUse,
    RunRecord,
)
from iolab.errors import EngineError, HostError
from iolab.hosts.barrier import combined_error, gather_hosts
from iolab.hosts.clock import ClockOffset
from iolab.hosts.device_counters import HostDisksSnapshot, device_deltas
from iolab.hosts.drive_logs import pair_drive_readings
from iolab.hosts.engine import Command, ParsedEngineOutput
from iolab.hosts.intervals import IntervalLog
from iolab.hosts.remote_process import ProcessEnding
from iolab.hosts.telemetry import CounterCollector
from iolab.session.context import SessionContext
from iolab.targets.work_directory import WorkDirectory


class HostRunInProgress(Struct):
    """How far a run has come on one host. What a failed phase did not reach stays None.

    Load that is no process of its own fills in what it `requested` for, `engine_version` and
    whether it was `was_halted`, load without a reading its `span`: when it began and ended on the
    host's clock. `details` are what only its kind of load knows. With `has_enough` seen, the load
    was halted by its rule. `files` is whatever else its engine left, by name, beside the `output`
    that it printed, and `generator_limit_iops` what it reached on a target that does nothing
    (`generator_limit_fault`: why it did not). `last_sample` is what the look `disks_after` the load
    showed, until the host's watch has it.
    """

    workdir: WorkDirectory
    extents: ExtentProof | None = None
    file_identity_check: FileIdentityCheck | None = None
    cache_drop: CacheDropProof | None = None
    pre_run_activity: PreRunActivity | None = None
    clock_offset: ClockOffset | None = None
    clock_offset_after: ClockOffset | None = None
    clock_step_ns: int | None = None
    phase_processors: list[ProcessorUse] = field(default_factory=list)
    phase_libraries: LibraryUse | None = None
    command: Command | None = None
    disks_before: HostDisksSnapshot | None = None
    disks_after: HostDisksSnapshot | None = None
    last_sample: Mapping[str, Any] | None = None
    drives_before: tuple[DriveReading, ...] = ()
    drives_after: tuple[DriveReading, ...] = ()
    intervals: IntervalLog = field(default_factory=IntervalLog)
    output: CompressedBytes | None = None
    files: dict[str, CompressedBytes] = field(default_factory=dict)
    reading: ParsedEngineOutput | None = None
    ending: ProcessEnding | None = None
    requested: str = ""
    engine_version: str = ""
    was_halted: bool = False
    error: str | None = None
    has_enough: bool = False
    details: HostLoadDetails | None = None
    span: tuple[int, int] | None = None
    generator_limit_iops: float | None = None
    generator_limit_fault: str = ""
    trace: BlockTrace | None = None

    @property
    def name(self) -> str:
        """The host's name."""
        return self.workdir.name

    @property
    def device_deltas(self) -> tuple[DeviceDelta, ...]:
        """What the target's devices moved; empty when a look is missing."""
        if self.disks_before is None or self.disks_after is None:
            return ()
        return device_deltas(self.disks_before, self.disks_after, self.workdir.devices)

    @property
    def was_stopped_early(self) -> bool:
        """Whether the load ended on our wish, the user's or its rule's."""
        return self.ending.was_halted if self.ending else self.was_halted

    @property
    def load_begin_and_end_ns(self) -> tuple[int | None, int | None]:
        """When the load began and ended on the host's clock."""
        if self.reading:
            return self.reading.start_real_ns, self.reading.end_real_ns
        return self.span or (None, None)

    @property
    def processor_use(self) -> ProcessorUse | None:
        """What the load got of the processors, of all phases together; None if nothing tells."""
        usage = self.ending.exited.processor if self.ending else None
        return usage or processor_use_over_phases(self.phase_processors)

    @property
    def io_limited_disks(self) -> tuple[str, ...]:
        """Those on which the load's I/O could be limited, as the agent told at its end."""
        return self.ending.exited.limited_disks if self.ending else ()

    @property
    def library_use(self) -> LibraryUse | None:
        """The libraries of the load's processes; None where nothing tells."""
        return self.ending.exited.libraries if self.ending else self.phase_libraries

    def to_host_run(self) -> HostRun:
        """The same for the record."""
        command, reading, ending = self.command, self.reading, self.ending
        exited = ending.exited if ending else None
        use = ProcessUse(exited.user_s, exited.system_s, exited.max_rss_bytes) if exited else None
        return HostRun(
            host=self.name,
            error=self.error,
            argv=command.argv if command else (),
            job_file=command.job_file if command else self.requested,
            engine_version=reading.version if reading else self.engine_version,
            start_real_ns=self.load_begin_and_end_ns[0],
            end_real_ns=self.load_begin_and_end_ns[1],
            exit_code=exited.code if exited else None,
            exit_signal=exited.signal if exited else None,
            stopped_early=self.was_stopped_early,
            totals=reading.totals if reading else None,
            devices=self.device_deltas,
            extents=self.extents,
            cache_drop=self.cache_drop,
            pre_run_activity=self.pre_run_activity,
            process=use,
            clock_offset_ns=self.clock_offset.offset_ns if self.clock_offset else 0,
            clock_error_ns=self.clock_offset.error_ns if self.clock_offset else 0,
            stderr_tail=ending.stderr_tail if ending else "",
            target_key=self.workdir.target_key,
            clock_offset_after_ns=self.clock_offset_after.offset_ns
            if self.clock_offset_after
            else None,
            clock_error_after_ns=self.clock_offset_after.error_ns
            if self.clock_offset_after
            else None,
            clock_step_ns=self.clock_step_ns,
            processor=self.processor_use,
            libraries=self.library_use,
            read_from=self.workdir.folder_owner_host,
            generator_limit_iops=self.generator_limit_iops,
            generator_limit_fault=self.generator_limit_fault,
            trace=self.trace,
            files=self.file_identity_check,
            drives=pair_drive_readings(self.drives_before, self.drives_after),
            details=self.details,
        )


def processor_use_over_phases(uses: Sequence[ProcessorUse]) -> ProcessorUse | None:
    """What several phases got, one after the other; None of none."""
    if not uses:
        return None
    groups: dict[str, CgroupCpuUse] = {}
    for group in (group for use in uses for group in use.groups):
        before = groups.get(group.path)
        groups[group.path] = group if before is None else _summed_cgroup_use(before, group)
    return ProcessorUse(
        watched_ns=sum(use.watched_ns for use in uses),
        threads=max(use.threads for use in uses),
        wall_ns=sum(use.wall_ns for use in uses),
        run_ns=sum(use.run_ns for use in uses),
        wait_ns=sum(use.wait_ns for use in uses),
        cores=tuple(sorted({core for use in uses for core in use.cores})),
        groups=tuple(groups.values()),
        load_halts=_load_halts_of_all_phases(use.load_halts for use in uses),
    )


def _load_halts_of_all_phases(
    phases: Iterable[tuple[LoadHalt, ...] | None],
) -> tuple[LoadHalt, ...] | None:
    """The halts of all phases, the longest where they are too many; None where unknown."""
    looked_at = [phase for phase in phases if phase is not None]
    every = sorted(
        (load_halt for phase in looked_at for load_halt in phase),
        key=lambda load_halt: -load_halt.thread_ns,
    )
    kept = sorted(every[:LOAD_HALTS_MAX], key=lambda load_halt: load_halt.from_real_ns)
    return tuple(kept) if looked_at else None


def _summed_cgroup_use(first: CgroupCpuUse, second: CgroupCpuUse) -> CgroupCpuUse:
    pressures = (first.pressure_ns, second.pressure_ns)
    known = [pressure for pressure in pressures if pressure is not None]
    return replace(
        second,
        periods=first.periods + second.periods,
        throttled=first.throttled + second.throttled,
        throttled_ns=first.throttled_ns + second.throttled_ns,
        pressure_ns=sum(known) if known else None,
    )


async def run_on_each_host(
    host_runs: Sequence[HostRunInProgress], work: Callable[[HostRunInProgress], Awaitable[None]]
) -> None:
    """The work on every host at once; each that fails gets its error, then all are raised as one.

    Raises HostError or EngineError.
    """
    outcomes = await gather_hosts(host_runs, work)
    for host_run in host_runs:
        fault = outcomes.errors.get(host_run.name)
        if fault and host_run.error is None:
            host_run.error = fault.message
    if outcomes.errors:
        raise combined_error(outcomes.errors)


def discard_impossible_intervals_and_make_error(
    host_runs: Sequence[HostRunInProgress], elapsed_s: float
) -> HostError | None:
    """Keep nothing of hosts whose intervals cannot be of this run; the error, if there are any."""
    refused = []
    for host_run in host_runs:
        heads = host_run.intervals.seq_end_span_and_part_count_rows
        reading = host_run.reading
        moments = (
            [at_ns for at_ns in host_run.load_begin_and_end_ns if at_ns is not None]
            if reading
            else []
        )
        message = limits.interval_series_fault(
            heads[:, 1], heads[:, 2], elapsed_s + limits.CLOCK_SLACK_S
        )
        message = message or next(filter(None, map(limits.timestamp_fault, moments)), "")
        if message:
            host_run.error = f"Host '{host_run.name}' reported {message}."
            host_run.intervals, host_run.reading, host_run.span = IntervalLog(), None, None
            refused.append(host_run)
    if not refused:
        return None
    error = HostError(" ".join(host_run.error or "" for host_run in refused), limits.REFUSED_HINT)
    error.hosts = tuple(host_run.name for host_run in refused)
    return error


class LoadDriver(ABC):
    """How a kind of load is made on all hosts of a run; it fills in their states.

    It lives as long as its session. `do_steps_before_load` and `measure` raise HostError or
    EngineError when any host fails, with what was gathered until then left in the states, and both
    heed a request to stop.
    """

    @abstractmethod
    async def do_steps_before_load(
        self, session: SessionContext, run: PlannedRun, host_runs: Sequence[HostRunInProgress]
    ) -> None:
        """All phases before the first that counts; returns early at a request to stop."""

    @abstractmethod
    async def measure(
        self,
        session: SessionContext,
        run: PlannedRun,
        host_runs: Sequence[HostRunInProgress],
        counters: CounterCollector,
    ) -> None:
        """The load itself, with telemetry."""

    async def do_steps_after_load(  # noqa: B027 - most have nothing to do
        self, session: SessionContext, run: PlannedRun, host_runs: Sequence[HostRunInProgress]
    ) -> None:
        """What follows the load when nothing is watched any more, whether it went well or not.

        Raises no HostError or EngineError: the run is over.
        """

    def with_load_details(self, record: RunRecord) -> RunRecord:
        """The record of the last run with what only this kind of load knows of the whole fleet."""
        return record

    async def close_and_list_failures(self) -> tuple[str, ...]:
        """The session ends: nothing that was held between runs stays; what could not be ended."""
        return ()


class SessionDrivers:
    """The drivers of one session, each made when its first run comes."""

    def __init__(self, makers: Mapping[EngineName, Callable[[], LoadDriver]]) -> None:
        self._makers = makers
        self._drivers_by_engine: dict[EngineName, LoadDriver] = {}

    def get_or_create_driver(self, run: PlannedRun) -> LoadDriver:
        """The driver of a run's job. EngineError when there is none."""
        engine = run.point.job.engine
        if engine not in self._makers:
            known = ", ".join(self._makers)
            raise EngineError(f"This iolab cannot drive '{engine}'.", f"Use one of: {known}.")
        if engine not in self._drivers_by_engine:
            self._drivers_by_engine[engine] = self._makers[engine]()
        return self._drivers_by_engine[engine]

    async def close_and_list_failures(self) -> tuple[str, ...]:
        """Nothing that a driver held between runs stays; sentences on what could not be ended."""
        faults: list[str] = []
        for driver in self._drivers_by_engine.values():
            faults += await driver.close_and_list_failures()
        self._drivers_by_engine.clear()
        return tuple(faults)
