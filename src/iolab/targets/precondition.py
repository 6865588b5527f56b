"""Brings targets into a state: purged, written over, run in rounds until they are steady."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from iolab.core.engine import EngineName
from iolab.core.events import LedgerChanged, Notice, SessionPhase
from iolab.core.host import HostFacts
from iolab.core.run import EngineTotals, PlannedRun, RunRecord
from iolab.core.target_state import (
    PreconditioningRounds,
    PurgeMethod,
    TargetLedger,
    TargetLedgerEntry,
    TargetState,
)
from iolab.core.workload import AnyJob, DataSet, Direction
from iolab.errors import EngineError, HostError, Interrupted
from iolab.hosts.answers import PurgedAnswer, read_answer
from iolab.hosts.barrier import gather_hosts, run_with_background
from iolab.hosts.device_counters import HostDisksSnapshot, take_disks_snapshot
from iolab.hosts.engine import (
    Command,
    OutputReader,
    ParsedEngineOutput,
    command_that_verifies_blocks,
)
from iolab.hosts.remote_process import ProcessEnding, run_and_get_output, run_process
from iolab.stats.rounds import judge_steady_state_rounds
from iolab.study.cost import ASSUMED_WRITE_BYTES_PER_S, start_state_key
from iolab.study.targets import Target, data_sets_at_target, targets_of_study, used_device_bytes
from iolab.targets.context import TargetContext, contents_seed, run_seed
from iolab.targets.layout import layout_error, wait_for_hang_and_raise
from iolab.targets.state import (
    NOT_LOOKED_AT,
    PREPARING,
    SessionLedger,
    entry_after_run,
    entry_with_run_begun,
    states_before_run,
    sweep_key,
)
from iolab.targets.work_directories import WorkDirectories
from iolab.targets.work_directory import WorkDirectory
from iolab.text import counted_noun, excerpt
from iolab.units import format_bytes

DISCARD_LIMIT_S: Final = 3600.0
"""Discarding a whole device: seconds on most, an hour on some large ones."""

FORMAT_LIMIT_S: Final = 3600.0
SANITIZE_PAUSE_S: Final = 5.0
SANITIZE_TRIES: Final = 6 * 720
"""Six hours of asking: a block erase takes minutes, an overwriting device much longer."""

SANITIZED: Final = 65535
"""What a sanitize log says of progress when none is under way."""

_LOOK: Final = "Look at it with 'nvme sanitize-log' there."


async def discard_device(workdir: WorkDirectory, device_path: str) -> int:
    """Discard every block of a held device; how many bytes. HostError when it cannot."""
    answer = await workdir.host.request("discard", deadline_s=DISCARD_LIMIT_S, path=device_path)
    return read_answer(workdir.name, PurgedAnswer, answer).bytes


async def trim_file_system(workdir: WorkDirectory, mounted_folder: str) -> int:
    """Tell the devices below a folder what is free; how many bytes. HostError when it cannot."""
    answer = await workdir.host.request("trim", deadline_s=DISCARD_LIMIT_S, path=mounted_folder)
    return read_answer(workdir.name, PurgedAnswer, answer).bytes


async def purge_nvme_device(
    context: TargetContext, workdir: WorkDirectory, purge_method: PurgeMethod
) -> None:
    """Format or sanitize a held NVMe device. HostError when nvme-cli fails or it takes too long."""
    device = f"{workdir.dir}/{workdir.device}"
    if purge_method is PurgeMethod.NVME_FORMAT:
        # The agent holds the device for itself; --force keeps nvme-cli from wanting the same.
        await _run_nvme_command(workdir, "nvme", "format", device, "--ses=1", "--force")
        return
    await _run_nvme_command(workdir, "nvme", "sanitize", device, "--sanact=2")
    for _ in range(SANITIZE_TRIES):
        await context.stop.sleep(SANITIZE_PAUSE_S)
        log = await _run_nvme_command(
            workdir, "nvme", "sanitize-log", device, "--output-format=json"
        )
        if _sanitize_progress(log) == SANITIZED:
            return
        if context.stop.is_requested:
            raise Interrupted("The purge was stopped.", "Resume the session to go on.")
    raise HostError(f"{device} on host '{workdir.name}' is not sanitized after six hours.", _LOOK)


def _sanitize_progress(text: bytes) -> int | None:
    try:
        document = json.loads(text)
        (first,) = document.values()
        progress = first["sprog"]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return progress if isinstance(progress, int) else None


async def _run_nvme_command(workdir: WorkDirectory, *argv: str) -> bytes:
    try:
        return await run_and_get_output(workdir.host, argv, limit_s=FORMAT_LIMIT_S)
    except EngineError as fault:
        hint = "Correct what it says, or choose another precondition.purge."
        raise HostError(fault.message, hint) from None


async def overwrite_data_set(
    context: TargetContext,
    workdirs: Sequence[WorkDirectory],
    data_set: DataSet,
    passes: float,
    job: AnyJob,
) -> dict[str, int]:
    """Write over what the data set has on all work directories at once; bytes by host name.

    Raises HostError, EngineError, and Interrupted when the user wanted to stop.
    """
    most = max(workdir.data_set_on_host(data_set).bytes_per_host for workdir in workdirs) * passes
    detail = (
        f"{format_bytes(round(most))} on each of {len(workdirs)} hosts, sequentially in 128 KiB"
    )
    context.begin_session_phase(
        SessionPhase.PRECONDITION, None, detail, most / ASSUMED_WRITE_BYTES_PER_S
    )
    engine = context.engines[job.engine]

    async def overwrite_data_set_on_host(workdir: WorkDirectory) -> int:
        held = workdir.data_set_on_host(data_set)
        seed = contents_seed(context.study, workdir.name)
        command = engine.build_overwrite_command(held, workdir.dir, passes, job, seed=seed)
        ledger = context.ledgers.ledger_of_data_set(workdir, data_set) if job.verify else None
        command = command_that_verifies_blocks(engine, command, ledger)
        ending, reading = await _run_preconditioning_process(
            context, workdir, command, engine.create_overwrite_reader(held, passes)
        )
        fault = layout_error(workdir.name, workdir.dir, held, command, engine.name, ending, reading)
        if fault:
            raise fault
        return _engine_bytes_written(reading.totals)

    return dict((await gather_hosts(workdirs, overwrite_data_set_on_host)).results_or_raise())


class _PreconditioningWrites(NamedTuple):
    """The rounds of a run's own job, and the bytes that they wrote by host name."""

    rounds: PreconditioningRounds
    bytes_by_host: dict[str, int]


async def run_preconditioning_rounds(
    context: TargetContext, workdirs: Sequence[WorkDirectory], run: PlannedRun
) -> _PreconditioningWrites:
    """The run's own job in rounds, on all directories at once, until they are steady or too many.

    Raises as `overwrite_data_set`.
    """
    wish = context.study.precondition
    values: list[float] = []
    written = dict.fromkeys((workdir.name for workdir in workdirs), 0)
    for number in range(1, wish.rounds_max + 1):
        detail = f"{run.point.title_text}: round {number} of at most {wish.rounds_max}"
        context.begin_session_phase(SessionPhase.PRECONDITION, run, detail, wish.round_s)
        totals = await _run_preconditioning_round(context, workdirs, run, number)
        values.append(sum(_engine_iops(total) for total in totals.values()))
        for name, total in totals.items():
            written[name] += _engine_bytes_written(total)
        verdict = judge_steady_state_rounds(values)
        if verdict is not None and verdict.achieved:
            break
    series = PreconditioningRounds(
        configuration=run.point.configuration,
        workload=run.point.workload,
        label=run.point.title_text,
        ended_real_ns=context.clock.real_ns(),
        round_s=wish.round_s,
        iops=tuple(values),
        verdict=judge_steady_state_rounds(values),
    )
    return _PreconditioningWrites(series, written)


async def _run_preconditioning_round(
    context: TargetContext, workdirs: Sequence[WorkDirectory], run: PlannedRun, round_number: int
) -> dict[str, EngineTotals | None]:
    engine = context.engine_for_run(run)
    data_set = context.plan.data_set(run.point.data_set)

    async def run_round_on_host(workdir: WorkDirectory) -> EngineTotals | None:
        job = run.point.job_on_host(workdir.name)
        held = workdir.data_set_on_host(data_set)
        seconds = context.study.precondition.round_s
        seed = run_seed(context.study, run.point, workdir.name, round_number)
        command = engine.build_measurement_command(
            job, held, workdir.dir, seconds=seconds, seed=seed
        )
        ledger = context.ledgers.ledger_of_data_set(workdir, data_set) if job.verify else None
        command = command_that_verifies_blocks(engine, command, ledger)
        ending, reading = await _run_preconditioning_process(
            context, workdir, command, engine.create_measurement_reader(job)
        )
        fault = preconditioning_round_error(
            engine.name, workdir.name, round_number, ending, reading
        )
        if fault:
            raise fault
        return reading.totals

    return dict((await gather_hosts(workdirs, run_round_on_host)).results_or_raise())


def preconditioning_round_error(
    engine_name: EngineName,
    host_name: str,
    round_number: int,
    ending: ProcessEnding,
    reading: ParsedEngineOutput,
) -> EngineError | None:
    """Why a round is not what was requested; None when it is. A failed I/O is enough."""
    exited, totals = ending.exited, reading.totals
    if not exited.code and not exited.signal and totals is not None and not totals.error:
        return None
    errors = totals.generator.errors if totals and totals.generator else ()
    failed = (f"{count} x {name}" for name, count in errors)
    words = excerpt("; ".join((*reading.faults, *failed, ending.stderr_tail.strip())), 200)
    message = (
        f"{engine_name} failed in round {round_number} on host '{host_name}': {words.rstrip('; ')}."
    )
    return EngineError(message, "Correct the reported fault and run again.")


async def _run_preconditioning_process(
    context: TargetContext, workdir: WorkDirectory, command: Command, reader: OutputReader
) -> tuple[ProcessEnding, ParsedEngineOutput]:
    """One process to its end; Interrupted when the user stops it."""
    halt = asyncio.Event()

    work = run_process(workdir.host, command, halt, reader.feed)
    ending = await run_with_background(
        run_with_background(work, wait_for_hang_and_raise(workdir, "Preconditioning")),
        context.stop.forward_to_event(halt),
    )
    if ending.was_halted:
        raise Interrupted("The preconditioning was stopped.", "Resume the session to go on.")
    return ending, reader.finish()


def _engine_bytes_written(totals: EngineTotals | None) -> int:
    return totals.write.bytes if totals is not None and totals.write is not None else 0


def _engine_iops(totals: EngineTotals | None) -> float:
    if totals is None:
        return 0.0
    return sum(way.iops for way in (totals.read, totals.write) if way is not None)


class Preconditioner:
    """Makes start states before each run; after it what it wrote is in the ledger."""

    def __init__(
        self,
        context: TargetContext,
        workdirs: WorkDirectories,
        facts: Mapping[str, HostFacts],
        earlier: TargetLedger,
    ) -> None:
        self._context = context
        self._workdirs = workdirs
        self._facts = facts
        self._precondition = context.study.precondition
        self._ledger = SessionLedger(earlier, lambda ledger: context.emit(LedgerChanged(ledger)))
        self._targets = {target.key: target for target in targets_of_study(context.study)}
        self._states: tuple[TargetState, ...] = ()

    async def bring_targets_to_start_state(
        self, run: PlannedRun, workdirs: Sequence[WorkDirectory]
    ) -> tuple[WorkDirectory, ...]:
        """Directories with their targets in the start state, and with what is known to be written.

        Raises HostError, EngineError, and Interrupted when the user wanted to stop.
        """
        self._states = ()
        if not self._applies_to_run(run, workdirs):
            return tuple(workdirs)
        await self._update_ledger_and_report_foreign_writes(workdirs)
        due = (
            self._needs_preconditioning(self._ledger.entry_of_target(workdir), run)
            for workdir in workdirs
        )
        if any(due) or self._has_device_without_complete_ledger(run, workdirs):
            await self._purge_and_fill(run, workdirs)
        if run.point.job.changes_data and not run.point.job.verify:
            await self._forget_block_ledgers(run, workdirs)
        if self._precondition.steady and Direction.WRITE in run.point.job.data_directions:
            await self._run_rounds_until_steady(run, workdirs)
        before = {workdir.target_key: self._ledger.entry_of_target(workdir) for workdir in workdirs}
        entries = {key: entry_with_run_begun(entry, run) for key, entry in before.items()}
        self._ledger.save_entries(*entries.values())
        kept = {
            key: replace(entries[key], filled=entry.filled, steady=entry.steady)
            for key, entry in before.items()
        }
        self._states = states_before_run(kept, workdirs, run)
        return tuple(
            _with_filled_bytes(workdir, before[workdir.target_key]) for workdir in workdirs
        )

    async def update_ledger_and_add_states(
        self, record: RunRecord, workdirs: Sequence[WorkDirectory]
    ) -> RunRecord:
        """The record with the states in which it began; what it wrote is in the ledger."""
        if not self._states:
            return record
        by_name = {host.host: host for host in record.hosts}
        self._ledger.save_entries(
            *(
                entry_after_run(
                    self._ledger.entry_of_target(workdir), record, by_name[workdir.name]
                )
                for workdir in workdirs
            )
        )
        for workdir in workdirs:
            if workdir.host.lost_reason:
                continue
            try:
                self._ledger.update_write_counter(workdir, await take_disks_snapshot(workdir.host))
            except HostError:
                # The record comes first. What the counter moved by is ours when it is seen again.
                self._ledger.save_entries(
                    replace(self._ledger.entry_of_target(workdir), pending_write=NOT_LOOKED_AT)
                )
        return replace(record, states=self._states)

    def _applies_to_run(self, run: PlannedRun, workdirs: Sequence[WorkDirectory]) -> bool:
        wanted = self._precondition.needs_more_than_layout or any(
            workdir.is_raw_device for workdir in workdirs
        )
        return wanted and bool(run.point.data_set)

    async def _update_ledger_and_report_foreign_writes(
        self, workdirs: Sequence[WorkDirectory]
    ) -> None:
        snapshots = (await gather_hosts(workdirs, _snapshot_counters)).results_or_raise()
        for workdir in workdirs:
            target = self._targets[workdir.target_key]
            before = (
                self._ledger.entry_of_target(workdir) if self._ledger.has_entry(workdir) else None
            )
            region = self._used_target_bytes(workdir, target)
            facts = self._workdirs.facts_of_workdir(workdir, self._facts)
            self._ledger.begin_or_resume_entry(
                workdir, target, facts, snapshots[workdir.name], region
            )
            after = self._ledger.entry_of_target(workdir)
            if before is not None and after.foreign_bytes > before.foreign_bytes:
                size = format_bytes(after.foreign_bytes - before.foreign_bytes)
                text = f"Somebody else wrote {size} to {target.path} on '{workdir.name}' meanwhile."
                self._context.emit(Notice(text))
            if after.unknown and (before is None or after.unknown != before.unknown):
                text = (
                    f"The state of {target.path} on '{workdir.name}' is unknown: {after.unknown}."
                )
                self._context.emit(Notice(text))

    def _used_target_bytes(self, workdir: WorkDirectory, target: Target) -> int:
        if workdir.device:
            return used_device_bytes(self._context.plan, target)
        return sum(item.bytes_per_host for item in data_sets_at_target(self._context.plan, target))

    def _needs_preconditioning(self, entry: TargetLedgerEntry, run: PlannedRun) -> bool:
        """Whether the start state is to be made, as there is none any more or the study wishes."""
        spoilt = entry.pending_write == PREPARING or entry.unknown is not None
        turn = start_state_key(self._precondition.restore, run)
        return spoilt or entry.foreign_bytes > 0 or entry.start_state_key != turn

    def _has_device_without_complete_ledger(
        self, run: PlannedRun, workdirs: Sequence[WorkDirectory]
    ) -> bool:
        """Whether a device holds blocks of which nobody knows any more what they must hold."""
        if not run.point.job.verify or self._precondition.fill < 1:
            return False
        data_set = self._context.plan.data_set(run.point.data_set)
        return any(
            workdir.is_raw_device and not self._context.ledgers.is_complete(workdir, data_set)
            for workdir in workdirs
        )

    async def _forget_block_ledgers(
        self, run: PlannedRun, workdirs: Sequence[WorkDirectory]
    ) -> None:
        """Devices are written to by whoever bears no stamps: what they must hold is not known."""
        data_set = self._context.plan.data_set(run.point.data_set)

        async def forget_ledger_of_raw_device(workdir: WorkDirectory) -> None:
            if workdir.is_raw_device:
                await self._context.ledgers.forget_ledger(workdir, data_set)

        (await gather_hosts(workdirs, forget_ledger_of_raw_device)).results_or_raise()

    async def _begin_block_ledgers(
        self, run: PlannedRun, workdirs: Sequence[WorkDirectory]
    ) -> None:
        """The ledgers of devices that are about to be written over; those of files go with these.

        Workloads with other blocks may verify the same device: the smallest counts.
        """
        data_set = self._context.plan.data_set(run.point.data_set)
        jobs = (point.job for point in self._context.plan.points)
        least = min(job.io_alignment_bytes for job in jobs if job.verify)

        async def begin_ledger_on_host(workdir: WorkDirectory) -> None:
            if workdir.is_raw_device:
                await self._context.ledgers.begin_ledger(workdir, data_set, least)

        (await gather_hosts(workdirs, begin_ledger_on_host)).results_or_raise()

    async def _purge_and_fill(self, run: PlannedRun, workdirs: Sequence[WorkDirectory]) -> None:
        self._mark_pending_write(workdirs)
        # Where nothing is filled, no write tells how large a ledger must be.
        if run.point.job.verify and self._precondition.fill >= 1:
            await self._begin_block_ledgers(run, workdirs)
        else:
            await self._forget_block_ledgers(run, workdirs)
        purge = self._precondition.purge
        if purge is not PurgeMethod.NONE:
            where = ", ".join(self._targets[workdir.target_key].path for workdir in workdirs[:1])
            self._context.begin_session_phase(
                SessionPhase.PURGE,
                run,
                f"{purge.value}: {where} on {counted_noun(len(workdirs), 'host')}",
            )
            (await gather_hosts(workdirs, self._purge_target)).results_or_raise()
            now_ns = self._context.clock.real_ns()
            self._ledger.save_entries(
                *(
                    replace(
                        _purged_entry(self._ledger.entry_of_target(workdir)),
                        purged_by=purge,
                        purged_real_ns=now_ns,
                    )
                    for workdir in workdirs
                )
            )
        else:
            self._ledger.save_entries(
                *(
                    _entry_with_past_overwritten(self._ledger.entry_of_target(workdir))
                    for workdir in workdirs
                )
            )
        if purge in (PurgeMethod.FSTRIM, PurgeMethod.RECREATE):
            await self._workdirs.lay_out_configuration_again(run)
        await self._overwrite_targets(run, workdirs)
        await self._record_finished_writes(
            workdirs, start_state_key(self._precondition.restore, run)
        )

    async def _purge_target(self, workdir: WorkDirectory) -> None:
        purge, path = self._precondition.purge, self._targets[workdir.target_key].path
        if self._context.stop.is_requested:
            raise Interrupted("The purge was stopped.", "Resume the session to go on.")
        if purge is PurgeMethod.DISCARD:
            await discard_device(workdir, path)
        elif purge.purges_devices:
            await purge_nvme_device(self._context, workdir, purge)
        else:
            await self._workdirs.empty_folder(workdir, path)
            if purge is PurgeMethod.FSTRIM:
                await trim_file_system(
                    workdir, workdir.dir if workdir.outer_scratch_folder else path
                )

    async def _overwrite_targets(self, run: PlannedRun, workdirs: Sequence[WorkDirectory]) -> None:
        """Devices are written over `fill` times; of files and images the layout was the first."""
        laid_out = 0 if workdirs[0].is_raw_device else 1
        passes = self._precondition.fill - laid_out
        written = {workdir.name: 0 for workdir in workdirs}
        if passes > 0:
            for data_set in self._data_sets_to_fill(run, workdirs):
                job = self._fill_job(data_set, run, workdirs)
                new = await overwrite_data_set(self._context, workdirs, data_set, passes, job)
                written = {name: written[name] + new[name] for name in written}
                if passes >= 1:
                    for workdir in workdirs:
                        self._context.ledgers.mark_complete(workdir, data_set)
        entries = []
        for workdir in workdirs:
            old = self._ledger.entry_of_target(workdir)
            total = old.written_bytes + written[workdir.name] + laid_out * old.region_bytes
            entries.append(replace(old, filled=self._precondition.fill, written_bytes=total))
        self._ledger.save_entries(*entries)

    def _data_sets_to_fill(
        self, run: PlannedRun, workdirs: Sequence[WorkDirectory]
    ) -> tuple[DataSet, ...]:
        """Every data set of the configuration; of a device the largest, which covers the others."""
        target = self._targets[workdirs[0].target_key]
        here = run.point.configuration
        sets = [item for item in self._context.plan.data_sets if item.configuration == here]
        if not workdirs[0].device:
            # A neighbour on hosts of its own has no files here.
            used = (any(s.with_jobs_of_host(w.name).numjobs for w in workdirs) for s in sets)
            return tuple(item for item, is_used in zip(sets, used, strict=True) if is_used)
        every = [
            item
            for item in self._context.plan.data_sets
            if item.configuration in target.configurations
        ]
        return (max(every, key=lambda item: item.bytes_per_host),)

    def _fill_job(
        self, data_set: DataSet, run: PlannedRun, workdirs: Sequence[WorkDirectory]
    ) -> AnyJob:
        """Who writes as a fill does: on files their own jobs, as only these may stamp them."""
        if workdirs[0].device:
            return run.point.job
        points = self._context.plan.points_and_neighbour_points
        return next(point.job for point in points if point.data_set == data_set.id)

    async def _run_rounds_until_steady(
        self, run: PlannedRun, workdirs: Sequence[WorkDirectory]
    ) -> None:
        key = sweep_key(run)
        if all(
            key in dict(self._ledger.entry_of_target(workdir).steady[-1:]) for workdir in workdirs
        ):
            return
        turn = self._ledger.entry_of_target(workdirs[0]).start_state_key
        self._mark_pending_write(workdirs)
        series, written = await run_preconditioning_rounds(self._context, workdirs, run)
        self._ledger.add_preconditioning_rounds(series)
        if not series.is_steady:
            text = f"{run.point.title_text} was not steady after {len(series.iops)} rounds."
            self._context.emit(Notice(text))
        entries = []
        for workdir in workdirs:
            old = self._ledger.entry_of_target(workdir)
            total = old.written_bytes + written[workdir.name]
            # Another mix of writes has been at work since: only the newest is still steady.
            entries.append(replace(old, written_bytes=total, steady=((key, series.is_steady),)))
        self._ledger.save_entries(*entries)
        await self._record_finished_writes(workdirs, turn)

    def _mark_pending_write(self, workdirs: Sequence[WorkDirectory]) -> None:
        entries = (self._ledger.entry_of_target(workdir) for workdir in workdirs)
        self._ledger.save_entries(*(replace(entry, pending_write=PREPARING) for entry in entries))

    async def _record_finished_writes(
        self, workdirs: Sequence[WorkDirectory], start_state_key: str | None
    ) -> None:
        """What was under way is done, and the counters agree with the entry."""
        snapshots = (await gather_hosts(workdirs, _snapshot_counters)).results_or_raise()
        for workdir in workdirs:
            entry = replace(
                self._ledger.entry_of_target(workdir),
                pending_write="",
                start_state_key=start_state_key,
            )
            self._ledger.save_entries(entry)
            self._ledger.update_write_counter(workdir, snapshots[workdir.name])


def _purged_entry(entry: TargetLedgerEntry) -> TargetLedgerEntry:
    """The entry of a target that was just purged."""
    return replace(entry, filled=0.0, written_bytes=0, foreign_bytes=0, unknown=None, steady=())


def _entry_with_past_overwritten(entry: TargetLedgerEntry) -> TargetLedgerEntry:
    """The entry of a target that is written over whole: what was there before matters no more.

    Bytes are counted from here on where they were not known.
    """
    written = 0 if entry.unknown else entry.written_bytes
    return replace(entry, written_bytes=written, foreign_bytes=0, unknown=None, steady=())


def _with_filled_bytes(workdir: WorkDirectory, entry: TargetLedgerEntry) -> WorkDirectory:
    if not workdir.is_raw_device:
        return workdir
    return replace(workdir, filled_bytes=entry.region_bytes if entry.filled >= 1 else 0)


async def _snapshot_counters(workdir: WorkDirectory) -> HostDisksSnapshot:
    return await take_disks_snapshot(workdir.host)
