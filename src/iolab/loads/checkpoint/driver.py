"""How checkpoints are made in a session: a save and a restore, each from a common start on."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from iolab.core.compressed import CompressedBytes
from iolab.core.events import SessionPhase
from iolab.core.run import CACHE_NOT_DROPPED, EngineTotals, PlannedRun
from iolab.errors import HostError
from iolab.hosts.clock import ClockOffset
from iolab.hosts.device_counters import HostDisksSnapshot, device_deltas, take_disks_snapshot
from iolab.hosts.engine import Command, ParsedEngineOutput
from iolab.hosts.intervals import Interval, IntervalLog
from iolab.hosts.remote_process import run_process
from iolab.hosts.telemetry import CounterCollector
from iolab.loads.checkpoint.engine import (
    CheckpointLineReader,
    checkpoint_file_path,
    phase_command,
    removal_command,
)
from iolab.loads.checkpoint.placement import (
    other_client_indexes_to_restore_from,
    rank_work_of_client,
    ranks_of_client,
)
from iolab.loads.checkpoint.workload import (
    CHECKPOINT_ENGINE,
    CheckpointHostDetails,
    CheckpointJob,
    PhaseName,
    PhaseRun,
)
from iolab.session.context import SessionContext
from iolab.session.driver import HostRunInProgress, run_on_each_host
from iolab.session.kinds import LoadSessionKind
from iolab.session.process_driver import ProcessDriver
from iolab.session.start import watch_for_background_io
from iolab.targets.work_directory import (
    drop_host_and_file_caches,
    peer_folder_path,
    require_shared_target,
)

ATTEMPTS_WITH_OWN_NAMES: Final = 1000
"""Attempts of a run whose files have names of their own; later ones use the first ones' again."""


class CheckpointDriver(ProcessDriver):
    """One process of the agent on each host and phase, on its own ranks."""

    def __init__(self) -> None:
        self._run: _CheckpointPhases | None = None

    async def do_steps_before_load(
        self, session: SessionContext, run: PlannedRun, host_runs: Sequence[HostRunInProgress]
    ) -> None:
        """See that the hosts can read what others save, and that the devices are idle."""
        job = CheckpointJob.require_type(run.point.job)
        workdirs = [host_run.workdir for host_run in host_runs]
        needs = {
            workdir.name: [
                workdirs[maker].name
                for maker in other_client_indexes_to_restore_from(job, len(workdirs), client)
            ]
            for client, workdir in enumerate(workdirs)
        }
        hint = (
            "Give all clients one shared file system; or set "
            f"workload.{run.point.workload}.rank_shift=0, and clients restore what they saved."
        )
        await require_shared_target(workdirs, needs, hint=hint)
        if not session.stop.is_requested:
            await watch_for_background_io(session, run, host_runs)

    async def measure(
        self,
        session: SessionContext,
        run: PlannedRun,
        host_runs: Sequence[HostRunInProgress],
        counters: CounterCollector,
    ) -> None:
        """The save and, with caches dropped, the restore; the files are removed in any case."""
        phases = self._run = _CheckpointPhases(session, run, host_runs)
        try:
            for phase in phases.job.phases:
                if session.stop.is_requested:
                    break
                phases.set_current_phase(phase)
                if phase is PhaseName.RESTORE:
                    await phases.drop_caches_and_count_late_writes()
                try:
                    await super().measure(session, run, host_runs, counters)
                finally:
                    phases.append_phase_results_of_hosts()
        finally:
            phases.fill_in_final_results()
            await phases.remove_saved_files()

    def begin_measure_phase(self, session: SessionContext, run: PlannedRun) -> None:
        """Which half it is; it ends with its work, and not at a time."""
        name = f"{run.point.title_text}, {self._current_run_phases.phase}"
        session.begin_session_phase(SessionPhase.MEASURE, run, name)

    def prepare_host_command(
        self,
        session: SessionContext,  # noqa: ARG002 - the phases know
        run: PlannedRun,  # noqa: ARG002 - as above
        host_run: HostRunInProgress,
    ) -> Command:
        """See `ProcessDriver`."""
        return self._current_run_phases.phase_command_of_host(host_run)

    def get_or_create_output_reader(
        self,
        run: PlannedRun,  # noqa: ARG002 - of the present run
        host_run: HostRunInProgress,
    ) -> CheckpointLineReader:
        """See `ProcessDriver`."""
        return self._current_run_phases.get_or_create_output_reader(host_run)

    @property
    def _current_run_phases(self) -> _CheckpointPhases:
        if self._run is None:
            raise ValueError("a run begins before its commands are made")
        return self._run


class _HostPhaseResults:
    """What one host did in the phases of a run so far."""

    def __init__(self) -> None:
        self.phases: list[PhaseRun] = []
        self.readings: list[ParsedEngineOutput] = []
        self.outputs: list[tuple[str, CompressedBytes]] = []
        self.offset: ClockOffset | None = None
        self.before: HostDisksSnapshot | None = None


class _CheckpointPhases:
    """One run: its phases on all hosts, and what they come to together."""

    def __init__(
        self, session: SessionContext, run: PlannedRun, host_runs: Sequence[HostRunInProgress]
    ) -> None:
        self.job = CheckpointJob.require_type(run.point.job)
        self._session = session
        self._run = run
        self._states = host_runs
        self.phase = PhaseName.SAVE
        attempt = min(run.attempt, ATTEMPTS_WITH_OWN_NAMES) - 1
        # New files each time: what is written anew would lie where the old one lay.
        self._sequence = run.order * ATTEMPTS_WITH_OWN_NAMES + attempt + 1
        self._name_prefix = f"checkpoint{self._sequence}-"
        self._places = {host_run.name: place for place, host_run in enumerate(host_runs)}
        self._results = {host_run.name: _HostPhaseResults() for host_run in host_runs}
        self._readers: dict[str, CheckpointLineReader] = {}

    def set_current_phase(self, phase: PhaseName) -> None:
        """All that follows is of that phase."""
        self.phase = phase
        self._readers.clear()

    def phase_command_of_host(self, host_run: HostRunInProgress) -> Command:
        """What a host does in the phase."""
        client = self._places[host_run.name]
        return phase_command(
            self.job,
            self.phase,
            rank_work_of_client(self.job, self.phase, len(self._states), client),
            self._folder_path_by_client_index(host_run),
            client,
            name_prefix=self._name_prefix,
            seed=self._session.study.method.seed,
            sequence=self._sequence,
        )

    def get_or_create_output_reader(self, host_run: HostRunInProgress) -> CheckpointLineReader:
        """What reads the output of that command."""
        client = self._places[host_run.name]
        ranks = ranks_of_client(self.job, self.phase, len(self._states), client)
        reader = self._readers[host_run.name] = CheckpointLineReader(self.phase, ranks)
        return reader

    async def drop_caches_and_count_late_writes(self) -> None:
        """Drop what each host has in memory of the files that it restores, as far as it may.

        What the devices moved since the save had ended is kept.
        """
        self._session.begin_session_phase(
            SessionPhase.DROP_CACHES, self._run, "pages of the saved files"
        )

        async def drop_caches_of_host(host_run: HostRunInProgress) -> None:
            client, folders = (
                self._places[host_run.name],
                self._folder_path_by_client_index(host_run),
            )
            paths = [
                f"{host_run.workdir.dir}/{path}" if "/" not in path else path
                for work in rank_work_of_client(self.job, self.phase, len(self._states), client)
                for read in work.files
                if (path := checkpoint_file_path(read, folders, client, self._name_prefix))
            ]
            if self._session.study.method.drop_caches:
                host_run.cache_drop = await drop_host_and_file_caches(host_run.workdir, paths)
            else:
                host_run.cache_drop = CACHE_NOT_DROPPED
            ended = host_run.disks_after
            if ended is None:
                return
            now = await take_disks_snapshot(host_run.workdir.host)
            results = self._results[host_run.name]
            later = device_deltas(ended, now, host_run.workdir.devices)
            results.phases[-1] = replace(results.phases[-1], devices_later=later)

        await run_on_each_host(self._states, drop_caches_of_host)

    def append_phase_results_of_hosts(self) -> None:
        """Keep what the phase left in the states, before the next one is begun."""
        for state in self._states:
            results = self._results[state.name]
            results.offset = results.offset or state.clock_offset
            results.before = results.before or state.disks_before
            reader = self._readers.get(state.name)
            if reader is not None and state.reading is not None:
                results.readings.append(state.reading)
                devices = state.device_deltas
                results.phases.append(PhaseRun(self.phase, reader.ranks, devices))
            if state.output is not None:
                results.outputs.append((self.phase.value, state.output))

    def fill_in_final_results(self) -> None:
        """Fill in the states with what all phases came to, however they ended."""
        for state in self._states:
            results = self._results[state.name]
            state.details = CheckpointHostDetails(tuple(results.phases))
            # The run's offset is the one at its beginning: what was read later tells of drift.
            state.clock_offset = results.offset or state.clock_offset
            state.disks_before = results.before or state.disks_before
            if results.readings:
                state.reading = _join_phase_outputs(results.readings)
                state.intervals = IntervalLog.from_intervals(state.reading.intervals)
            for name, output in results.outputs[:-1]:
                state.files[f"{name}.jsonl"] = output

    async def remove_saved_files(self) -> None:
        """Remove what was saved, so that the next run finds its room.

        What cannot be removed now goes with the scratch folder, if that goes.
        """
        halt = asyncio.Event()

        async def remove_on_host(host_run: HostRunInProgress) -> None:
            if host_run.workdir.host.lost_reason:
                return
            client = self._places[host_run.name]
            works = rank_work_of_client(self.job, PhaseName.SAVE, len(self._states), client)
            command = removal_command(
                self.job,
                works,
                self._folder_path_by_client_index(host_run),
                client,
                name_prefix=self._name_prefix,
            )
            with suppress(HostError):
                await run_process(host_run.workdir.host, command, halt, lambda _: None)

        await asyncio.gather(*(remove_on_host(host_run) for host_run in self._states))

    def _folder_path_by_client_index(self, host_run: HostRunInProgress) -> Mapping[int, str]:
        """The folders of the clients by their places, as that host sees them."""
        own = self._places[host_run.name]
        return {
            place: host_run.workdir.dir
            if place == own
            else peer_folder_path(host_run.workdir, other.workdir)
            for place, other in enumerate(self._states)
        }


def _join_phase_outputs(phase_outputs: Sequence[ParsedEngineOutput]) -> ParsedEngineOutput:
    """What several phases, one after the other, tell together."""
    start_ns, end_ns = phase_outputs[0].start_real_ns, phase_outputs[-1].end_real_ns
    intervals: list[Interval] = []
    for reading in phase_outputs:
        for interval in reading.intervals:
            intervals.append(
                Interval(
                    len(intervals), interval.end_real_ns, interval.span_ns, interval.directions
                )
            )
    totals = [reading.totals for reading in phase_outputs if reading.totals is not None]
    return ParsedEngineOutput(
        version=phase_outputs[0].version,
        start_real_ns=start_ns,
        end_real_ns=end_ns,
        intervals=intervals,
        totals=_join_phase_totals(totals, start_ns, end_ns)
        if len(totals) == len(phase_outputs)
        else None,
        faults=tuple(fault for reading in phase_outputs for fault in reading.faults),
    )


def _join_phase_totals(
    totals: Sequence[EngineTotals], start_ns: int | None, end_ns: int | None
) -> EngineTotals:
    """Each phase's own direction; of what both have, the last one's, which verifies."""
    last = totals[-1]
    generator = last.generator
    if generator is not None and start_ns is not None and end_ns is not None:
        # Nothing is submitted between phases, and none of them ends the run.
        generator = replace(generator, measured_ns=end_ns - start_ns)
    return replace(
        last,
        read=next((part.read for part in totals if part.read), None),
        write=next((part.write for part in totals if part.write), None),
        generator=generator,
    )


SESSION: Final = LoadSessionKind(driver_factory_by_engine={CHECKPOINT_ENGINE: CheckpointDriver})
