"""How I/O on files is made in a session: the generator's limit, proofs, caches, and the load."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from iolab.core.compressed import CompressedBytes
from iolab.core.events import SessionPhase
from iolab.core.generator import RECORDED_FILE
from iolab.core.limits import FILE_BYTES_MAX
from iolab.core.run import EngineTotals, FileIdentityCheck, NeighbourPlan, PlannedRun
from iolab.core.scenario import Readback, bounded_reason_text
from iolab.errors import EngineError
from iolab.hosts.barrier import gather_hosts, run_with_background
from iolab.hosts.engine import Command, FileEngine, OutputReader, command_that_verifies_blocks
from iolab.hosts.message import AgentRefusalError
from iolab.hosts.remote_process import fetch_file, run_process
from iolab.hosts.telemetry import CounterCollector
from iolab.loads.fileio.engine_facts import FILE_ENGINES
from iolab.loads.fileio.engines.fio import FioEngine
from iolab.loads.fileio.engines.native import NativeEngine, trace_chunk_file_name
from iolab.loads.fileio.io_trace import IoTraceError, chunks_of_trace, read_trace
from iolab.loads.fileio.workload import Job, job_for_generator_limit
from iolab.record import Record
from iolab.session.context import SessionContext
from iolab.session.driver import HostRunInProgress, run_on_each_host
from iolab.session.kinds import LoadSessionKind
from iolab.session.laid_out_files import drop_caches, prove_extents_written
from iolab.session.neighbour import NeighbourLoads
from iolab.session.process_driver import ProcessDriver
from iolab.session.scenario import PhaseRunner, longest_engine_seconds
from iolab.session.start import count_as_idle_watch_if_quiet, watch_for_background_io
from iolab.targets.context import HOSTS_APART, arrival_offset_share, run_seed
from iolab.targets.work_directory import (
    compare_file_identities,
    drop_host_and_file_caches,
    prove_extents,
)
from iolab.text import excerpt, quote_value
from iolab.units import NS_PER_S

WORDS_LIMIT: Final = 200
"""Characters of an engine's own words that are kept."""

GENERATOR_LIMIT_LEFT_OUT: Final = "method.generator_limit is false"
"""Why there is no limit where the study asks for none: a check that may not look must say so."""

ENGINES: Final[tuple[FileEngine[Job], ...]] = (FioEngine(), NativeEngine())
"""The reference first."""

TRACE_PART_LIMIT_S: Final = 60.0
"""For a message of 1 MiB over a slow line, written to a busy target."""

TRACE_PART_MODE: Final = 0o600


class IoDriver(ProcessDriver):
    """I/O on files that are laid out, by an engine that runs as one process on each host."""

    def __init__(self, engine: FileEngine[Job]) -> None:
        self._files = engine
        self._generator_limits = GeneratorLimitCache()
        # By data set: before its first load, and after its last.
        self._first_readbacks: dict[str, tuple[Readback, ...]] = {}
        self._last_readbacks: dict[str, tuple[Readback, ...]] = {}
        self.preparations = (
            prove_extents_written,
            send_trace_to_hosts,
            self._read_back_before_scenario,
            drop_caches,
            watch_for_background_io,
            record_file_identities,
        )

    async def do_steps_before_load(
        self, session: SessionContext, run: PlannedRun, host_runs: Sequence[HostRunInProgress]
    ) -> None:
        """The generator's limit known; then as `ProcessDriver` does."""
        await self._generator_limits.measure_missing_and_set_limits(session, run, host_runs)
        await super().do_steps_before_load(session, run, host_runs)

    async def measure(
        self,
        session: SessionContext,
        run: PlannedRun,
        host_runs: Sequence[HostRunInProgress],
        counters: CounterCollector,
    ) -> None:
        """See `ProcessDriver`; then the files are looked at once more."""
        await super().measure(session, run, host_runs, counters)
        if self.phase_runner is not None and isinstance(self._files, NativeEngine):
            await self._read_back_into_phase_runner(
                self.phase_runner, session, run, host_runs, self._files
            )
        if session.study.telemetry.recorded_ios and isinstance(self._files, NativeEngine):
            await run_on_each_host(host_runs, fetch_and_attach_io_recording)

        async def set_file_identity_check_of_host(host_run: HostRunInProgress) -> None:
            if host_run.file_identity_check is not None:
                paths = _job_file_paths(session, run, host_run)
                host_run.file_identity_check = await compare_file_identities(
                    host_run.workdir, paths, host_run.file_identity_check.before
                )

        await run_on_each_host(host_runs, set_file_identity_check_of_host)

    async def _read_back_into_phase_runner(
        self,
        phase_runner: PhaseRunner,
        session: SessionContext,
        run: PlannedRun,
        host_runs: Sequence[HostRunInProgress],
        engine: NativeEngine,
    ) -> None:
        """All blocks, through new mounts where events of the read-back make them.

        A wish to stop leaves it out: a run without it is not whole, and is measured again.
        """
        if not Job.require_type(run.point.job).verify:
            return
        data_set, names = run.point.data_set, {host_run.name for host_run in host_runs}

        def readbacks_of_run_hosts(readbacks: tuple[Readback, ...]) -> tuple[Readback, ...]:
            return tuple(readback for readback in readbacks if readback.host in names)

        phase_runner.first_readbacks = readbacks_of_run_hosts(
            self._first_readbacks.get(data_set, ())
        )
        phase_runner.earlier_readbacks = readbacks_of_run_hosts(
            self._last_readbacks.get(data_set, ())
        )
        is_unmounted: dict[str, bool] = {}
        readbacks: tuple[Readback, ...] = ()
        if not session.stop.is_requested:
            is_unmounted = await phase_runner.do_readback_events_and_tell_unmounted()
            readbacks = await read_back_verified_blocks(session, run, host_runs, engine)
        if session.stop.is_requested:
            for host_run in host_runs:
                host_run.has_enough = False
            return
        phase_runner.readbacks = tuple(
            replace(readback, is_new_mount=is_unmounted.get(readback.host))
            for readback in readbacks
        )
        self._last_readbacks[data_set] = merge_readbacks_keeping_losses(
            self._last_readbacks.get(data_set, ()), phase_runner.readbacks
        )

    async def _read_back_before_scenario(
        self, session: SessionContext, run: PlannedRun, host_runs: Sequence[HostRunInProgress]
    ) -> None:
        """What is damaged before any event is no write that the storage lost in one."""
        if session.study.scenario is None or not isinstance(self._files, NativeEngine):
            return
        name = run.point.data_set
        if name not in self._first_readbacks:  # Also of a session that goes on with a later repeat.
            self._first_readbacks[name] = await read_back_verified_blocks(
                session, run, host_runs, self._files
            )

    def prepare_host_command(
        self, session: SessionContext, run: PlannedRun, host_run: HostRunInProgress
    ) -> Command:
        """See `ProcessDriver`: on the host's own files, held against what was written there."""
        job = Job.require_type(run.point.job_on_host(host_run.name))
        data_set = session.plan.data_set(run.point.data_set)
        command = self._files.build_measurement_command(
            job,
            host_run.workdir.data_set_on_host(data_set),
            host_run.workdir.dir,
            seconds=longest_engine_seconds(session.study),
            seed=run_seed(session.study, run.point, host_run.name, run.repeat),
            arrival_shift_share=arrival_offset_share(session.study, run.point, host_run.name),
        )
        ledger = (
            session.ledgers.ledger_of_data_set(host_run.workdir, data_set) if job.verify else None
        )
        command = command_that_verifies_blocks(self._files, command, ledger)
        telemetry = session.study.telemetry
        if isinstance(self._files, NativeEngine):
            if telemetry.slow_ios:
                command = self._files.command_with_slow_ios(command, telemetry.slow_ios)
            if telemetry.recorded_ios:
                command = self._files.command_with_recording(command, telemetry.recorded_ios)
        return command

    def make_phase_runner(
        self,
        session: SessionContext,
        run: PlannedRun,
        host_runs: Sequence[HostRunInProgress],
        halt: asyncio.Event,
    ) -> PhaseRunner | None:
        """See `ProcessDriver`: with the neighbours of the run."""
        if session.study.scenario is None:
            return None
        neighbours = NeighbourLoads(
            session,
            session.plan.neighbours_of_run(run),
            partial(self._neighbour_command, session),
            _create_neighbour_output_reader,
        )
        return PhaseRunner(session, session.study.scenario, run, host_runs, halt, neighbours)

    def _neighbour_command(
        self, session: SessionContext, neighbour: NeighbourPlan, host_run: HostRunInProgress
    ) -> Command:
        """On files of its own, by the engine that its workload names."""
        engine, point = _neighbour_engine(neighbour), neighbour.point
        data_set = session.plan.data_set(point.data_set)
        place = neighbour.hosts.index(host_run.name)
        command = engine.build_measurement_command(
            Job.require_type(point.job_on_host(host_run.name)),
            host_run.workdir.data_set_on_host(data_set),
            host_run.workdir.dir,
            seconds=longest_engine_seconds(session.study),
            # No host of the measured load draws the same.
            seed=session.study.method.seed + HOSTS_APART * (len(session.study.hosts) + place),
            arrival_shift_share=place / len(neighbour.hosts),
        )
        ledger = (
            session.ledgers.ledger_of_data_set(host_run.workdir, data_set)
            if point.job.verify
            else None
        )
        return command_that_verifies_blocks(engine, command, ledger)

    def get_or_create_output_reader(
        self, run: PlannedRun, host_run: HostRunInProgress
    ) -> OutputReader:
        """See `ProcessDriver`."""
        return self._files.create_measurement_reader(
            Job.require_type(run.point.job_on_host(host_run.name))
        )


def _create_neighbour_output_reader(
    neighbour: NeighbourPlan, host_run: HostRunInProgress
) -> OutputReader:
    job = Job.require_type(neighbour.point.job_on_host(host_run.name))
    return _neighbour_engine(neighbour).create_measurement_reader(job)


def _neighbour_engine(neighbour: NeighbourPlan) -> FileEngine[Job]:
    return next(engine for engine in ENGINES if engine.name == neighbour.point.job.engine)


async def read_back_verified_blocks(
    session: SessionContext,
    run: PlannedRun,
    host_runs: Sequence[HostRunInProgress],
    engine: NativeEngine,
) -> tuple[Readback, ...]:
    """Every block that a verified job may have written, read from a host without cached pages.

    A host that cannot says why; it fails nothing, since the load was measured.
    """
    if not Job.require_type(run.point.job).verify:
        return ()
    session.begin_session_phase(SessionPhase.PROVE, run, "every acknowledged write is read back")
    data_set = session.plan.data_set(run.point.data_set)

    async def read_back_on_host(host_run: HostRunInProgress) -> Readback:
        job = Job.require_type(run.point.job_on_host(host_run.name))
        paths = _job_file_paths(session, run, host_run)
        if paths:
            await drop_host_and_file_caches(host_run.workdir, paths)
        held = host_run.workdir.data_set_on_host(data_set)
        blocks = job.numjobs * (held.bytes_per_job // job.block_bytes)
        command = engine.readback_command(job, held, host_run.workdir.dir)
        ledger = session.ledgers.ledger_of_data_set(host_run.workdir, data_set)
        command = command_that_verifies_blocks(engine, command, ledger)
        reader = engine.create_readback_reader(job)
        halt = asyncio.Event()
        work = run_process(host_run.workdir.host, command, halt, reader.feed)
        ending = await run_with_background(work, session.stop.forward_to_event(halt))
        totals = reader.finish().totals
        generator = totals.generator if totals else None
        verify = generator.verify if generator else None
        if verify is None or generator is None:
            reason = excerpt(ending.stderr_tail) or "the engine reported no verified blocks"
            return Readback(host_run.name, fault=reason, data_set_blocks=blocks)
        failed = ", ".join(f"{count} x {name}" for name, count in generator.errors)
        return Readback(
            host_run.name,
            verify.checked,
            verify.mismatched_blocks,
            verify.first_mismatch_texts,
            fault=bounded_reason_text(failed),
            data_set_blocks=blocks,
        )

    outcomes = await gather_hosts(host_runs, read_back_on_host)
    unread = (
        Readback(name, fault=bounded_reason_text(error.message))
        for name, error in outcomes.errors.items()
    )
    return (*outcomes.results.values(), *unread)


def merge_readbacks_keeping_losses(
    earlier: tuple[Readback, ...], later: tuple[Readback, ...]
) -> tuple[Readback, ...]:
    """Of each host what is known to be lost: the later one, unless it read less and lost no more.

    A read-back that fails does not find again what was lost before.
    """
    known = {readback.host: readback for readback in earlier}
    for readback in later:
        before = known.get(readback.host)
        if (
            before is None
            or not readback.incomplete_reason
            or readback.lost_blocks > before.lost_blocks
        ):
            known[readback.host] = readback
    return tuple(known.values())


async def fetch_and_attach_io_recording(host_run: HostRunInProgress) -> None:
    """Bring the I/Os that a host recorded into its state; EngineError where it has no file."""
    path = f"{host_run.workdir.dir}/{RECORDED_FILE}"
    try:
        content = await fetch_file(host_run.workdir.host, path, FILE_BYTES_MAX)
    except AgentRefusalError as refusal:
        raise _unavailable_recording_error(host_run.name, refusal.message) from None
    if content is None:
        raise _unavailable_recording_error(host_run.name, "it was not written")
    host_run.files[RECORDED_FILE] = CompressedBytes.compress(content)


def _unavailable_recording_error(host_name: str, reason: str) -> EngineError:
    return EngineError(
        f"The recorded I/Os of host {quote_value(host_name)} cannot be had: {reason}.",
        "See that the target has 64 MiB of room, or leave telemetry.recorded_ios out.",
    )


async def send_trace_to_hosts(
    session: SessionContext, run: PlannedRun, host_runs: Sequence[HostRunInProgress]
) -> None:
    """Give each host the trace that its job replays, in files of a message each."""
    job = Job.require_type(run.point.job)
    if not job.trace:
        return
    try:
        trace = read_trace(job.trace)
    except IoTraceError as fault:
        raise EngineError(f"The trace {job.trace} {fault}.", "See workload.*.trace.") from None
    session.begin_session_phase(SessionPhase.LAY_OUT, run, "sending the trace")

    async def send_trace_to_host(host_run: HostRunInProgress) -> None:
        data_set = host_run.workdir.data_set_on_host(session.plan.data_set(run.point.data_set))
        for number, part in enumerate(chunks_of_trace(trace, data_set.file_bytes, job.trace_speed)):
            await host_run.workdir.host.request(
                "put",
                part,
                deadline_s=TRACE_PART_LIMIT_S,
                path=f"{host_run.workdir.dir}/{trace_chunk_file_name(number)}",
                mode=TRACE_PART_MODE,
            )

    await run_on_each_host(host_runs, send_trace_to_host)


def _job_file_paths(
    session: SessionContext, run: PlannedRun, host_run: HostRunInProgress
) -> list[str]:
    """The files that the job uses there."""
    numjobs = Job.require_type(run.point.job_on_host(host_run.name)).numjobs
    return host_run.workdir.data_set_paths(session.plan.data_set(run.point.data_set), numjobs)


async def record_file_identities(
    session: SessionContext, run: PlannedRun, host_runs: Sequence[HostRunInProgress]
) -> None:
    """Remember the files as they are right before the load, but for trims, which unmap them."""
    if Job.require_type(run.point.job).access.has_trims:
        return

    async def record_identity(host_run: HostRunInProgress) -> None:
        if not host_run.workdir.device:
            before = host_run.extents or await prove_extents(
                host_run.workdir, _job_file_paths(session, run, host_run)
            )
            host_run.file_identity_check = FileIdentityCheck(before, None)

    await run_on_each_host(host_runs, record_identity)


_Kinds = frozenset[tuple[str, Job]]
"""The hosts that look together, which may share processors, each with what of its job decides how
fast its generator can be."""


class GeneratorLimit(Record):
    """I/Os a second; None where there is none, and then why if it should have been had."""

    iops: float | None
    fault: str = ""


class GeneratorLimitCache:
    """The limits that a session knows, each set of hosts' measured when its first run comes."""

    def __init__(self) -> None:
        self._known: dict[_Kinds, Mapping[str, GeneratorLimit]] = {}

    async def measure_missing_and_set_limits(
        self, session: SessionContext, run: PlannedRun, host_runs: Sequence[HostRunInProgress]
    ) -> None:
        """Give each host's state its limit, measured on all at once where it is not known.

        Raises HostError when a host is lost. Measures nothing when the user wants to stop or the
        method leaves it out, and nothing of trims, which have no limit.
        """
        if Job.require_type(run.point.job).access.has_trims:
            return
        if not session.study.method.generator_limit:
            for host_run in host_runs:
                host_run.generator_limit_fault = GENERATOR_LIMIT_LEFT_OUT
            return
        kinds = {
            host_run.name: job_for_generator_limit(
                Job.require_type(run.point.job_on_host(host_run.name))
            )
            for host_run in host_runs
        }
        kinds_key = frozenset(kinds.items())
        if kinds_key not in self._known and not session.stop.is_requested:
            limits = await _measure_generator_limits(session, run, kinds, host_runs)
            if not session.stop.is_requested:
                self._known[kinds_key] = limits
        limits = self._known.get(kinds_key, {})
        for host_run in host_runs:
            limit = limits.get(host_run.name, _UNMEASURED_GENERATOR_LIMIT)
            host_run.generator_limit_iops, host_run.generator_limit_fault = limit.iops, limit.fault


_UNMEASURED_GENERATOR_LIMIT: Final = GeneratorLimit(None)


async def _measure_generator_limits(
    session: SessionContext,
    run: PlannedRun,
    jobs_by_host: Mapping[str, Job],
    host_runs: Sequence[HostRunInProgress],
) -> Mapping[str, GeneratorLimit]:
    """What each host's job comes to while all the others' go on, too."""
    engine = session.engine_for_run(run)
    limits: dict[str, GeneratorLimit] = {}

    async def measure_generator_limit(host_run: HostRunInProgress) -> None:
        limits[host_run.name] = await _measure_generator_limit_on_host(
            session, engine, jobs_by_host[host_run.name], host_run
        )

    detail = f"{engine.name}'s limit, on a null target"
    session.begin_session_phase(
        SessionPhase.GENERATOR_LIMIT,
        run,
        detail,
        FILE_ENGINES[engine.name].generator_limit_measurement_s,
    )
    async with count_as_idle_watch_if_quiet(session, host_runs):
        await run_on_each_host(host_runs, measure_generator_limit)
    return limits


async def _measure_generator_limit_on_host(
    session: SessionContext, engine: FileEngine[Job], job: Job, host_run: HostRunInProgress
) -> GeneratorLimit:
    command = engine.build_null_target_command(
        job, seconds=FILE_ENGINES[engine.name].generator_limit_load_s
    )
    if command is None:
        return GeneratorLimit(None)
    reader = engine.create_null_target_reader(job)
    halt = asyncio.Event()
    work = run_process(host_run.workdir.host, command, halt, reader.feed)
    ending = await run_with_background(work, session.stop.forward_to_event(halt))
    reading = reader.finish()
    rate = null_target_iops(reading.totals) if reading.totals else None
    if rate is not None and ending.exited.code == 0 and not reading.faults:
        return GeneratorLimit(rate)
    reasons = (*reading.faults, *ending.stderr_tail.strip().splitlines()[-1:])
    return GeneratorLimit(None, excerpt("; ".join(reasons) or "it told nothing", WORDS_LIMIT))


def null_target_iops(totals: EngineTotals) -> float | None:
    """I/Os a second on the target that does nothing; None where there were none."""
    ways = [way for way in (totals.read, totals.write) if way]
    measured_ns = totals.generator.measured_ns if totals.generator else 0
    if not measured_ns:
        return sum(way.iops for way in ways) or None
    return sum(way.ios for way in ways) * NS_PER_S / measured_ns or None


FILE_IO: Final = LoadSessionKind(
    driver_factory_by_engine={engine.name: partial(IoDriver, engine) for engine in ENGINES},
    engines=ENGINES,
)
