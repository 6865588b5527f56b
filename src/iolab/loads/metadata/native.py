"""The agent as an engine of metadata load: shares of ranks, phases read, its driver in sessions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Final, NoReturn, cast

import numpy as np

from iolab.core.events import SessionPhase
from iolab.core.histogram import MIDDLE_NS, dense_counts
from iolab.core.run import CACHE_NOT_DROPPED, CacheDropProof, PlannedRun
from iolab.core.samples import with_narrowest_type
from iolab.errors import EngineError, HostError
from iolab.hosts.answers import MetadataIntervalAnswer, MetadataPhaseAnswer, read_answer
from iolab.hosts.barrier import run_with_background, set_event_on_failure
from iolab.hosts.clock import ClockOffset, measure_clock_offset
from iolab.hosts.device_counters import take_disks_snapshot, take_disks_snapshot_and_sample
from iolab.hosts.host import Host
from iolab.hosts.intervals import DirectionInterval, Interval
from iolab.hosts.message import Message
from iolab.hosts.remote_process import OVERDUE_S, stop_process_on_event
from iolab.hosts.telemetry import CounterCollector
from iolab.loads.metadata.workload import (
    MetadataHostDetails,
    MetadataJob,
    MetadataOperation,
    OperationRun,
    expected_phase_seconds,
    operation_count_per_client,
)
from iolab.record import Record
from iolab.session.context import SessionContext
from iolab.session.driver import HostRunInProgress, LoadDriver, run_on_each_host
from iolab.session.observers import HostWatch
from iolab.session.start import (
    CommonStartTime,
    common_start_time,
    end_watches,
    watch_for_background_io,
)
from iolab.targets.work_directory import (
    drop_host_and_file_caches,
    peer_folder_path,
    require_shared_target,
)
from iolab.units import NS_PER_S

SHIFTED = frozenset(
    {MetadataOperation.FILE_STAT, MetadataOperation.FILE_READ, MetadataOperation.FILE_REMOVE}
)
"""Operations on files that may be another rank's; the others are on the rank's own."""

FILE_OPERATIONS_OF_RANKS = SHIFTED | {MetadataOperation.FILE_CREATE}
"""Operations of which a rank does many: they may end by the clock."""

DATA_OPERATIONS = frozenset({MetadataOperation.FILE_CREATE, MetadataOperation.FILE_READ})
"""Operations that move a file's bytes."""

INTERVAL_MS: Final = 1000
"""As often as fio reports."""

LIMIT_S_MIN: Final = 600.0

SLOWEST_OPS_PER_S: Final = 10.0
"""Ten minutes, and a tenth of a second more for each operation: a phase that is slower hangs."""

RANK_ALLOWANCE_S: Final = 0.0002
"""Beyond the request: a thread with an open folder for each rank, of which the agent makes ten
thousand a second."""

COLD_CACHE_OPERATIONS: Final = frozenset({MetadataOperation.FILE_STAT, MetadataOperation.FILE_READ})
"""Operations that a client could answer from what it has just made: caches are dropped before."""

ATTEMPTS_WITH_OWN_NAMES: Final = 1000
"""Attempts of a run that have names of their own; later ones use names of the first again."""


class HostRanks(Record):
    """One host's ranks among those of the fleet.

    `file_creator_host_indexes` are the hosts, by index, that made the files on which it works: its
    own index among them where it works on files of its own.
    """

    host_index: int
    first_rank: int
    ranks: int
    total_ranks: int
    file_creator_host_indexes: tuple[int, ...]

    @property
    def other_file_creator_indexes(self) -> tuple[int, ...]:
        """The makers that are not this host."""
        return tuple(maker for maker in self.file_creator_host_indexes if maker != self.host_index)


def ranks_by_host(job: MetadataJob, host_count: int) -> tuple[HostRanks, ...]:
    """The hosts' shares: ranks count over the hosts in their order."""
    total = job.ranks * host_count
    return tuple(_ranks_of_host(job, index, total) for index in range(host_count))


def phase_request(
    job: MetadataJob,
    host_ranks: HostRanks,
    folder_by_host_index: Mapping[int, str],
    operation: MetadataOperation,
    *,
    iteration: int,
    created_file_counts: Mapping[int, Sequence[int]] = MappingProxyType({}),
    is_cleanup: bool = False,
) -> dict[str, object]:
    """The arguments of a `metadata` request.

    `folder_by_host_index` are the scratch folders of the host and of its `others` as that host sees
    them. `created_file_counts` are the files that each rank of a host made, by the host's index,
    where not all made `files_per_rank`. With `is_cleanup` the ranks work on their own
    files, whatever the job says, and take the time that they need.
    """
    asked: dict[str, object] = {
        "dir": folder_by_host_index[host_ranks.host_index],
        "phase": operation.display_name,
        "first_rank": host_ranks.first_rank,
        "ranks": host_ranks.ranks,
        "total_ranks": host_ranks.total_ranks,
        "files_per_rank": job.files_per_rank,
        "file_bytes": job.file_bytes,
        "iteration": iteration,
    }
    if not is_cleanup and operation in FILE_OPERATIONS_OF_RANKS and job.phase_s is not None:
        asked["runtime_s"] = job.phase_s
        if operation is MetadataOperation.FILE_CREATE:
            asked["files_least"] = job.min_files_per_rank
    shift = (
        job.rank_shift % host_ranks.total_ranks if not is_cleanup and operation in SHIFTED else 0
    )
    if operation in SHIFTED and created_file_counts:
        asked["files"] = _files_found_by_each_rank(job, host_ranks, created_file_counts, shift)
    if shift:
        asked["shift"] = shift
        asked["others"] = [
            {
                "dir": folder_by_host_index[maker],
                "first_rank": maker * job.ranks,
                "ranks": job.ranks,
            }
            for maker in host_ranks.other_file_creator_indexes
        ]
    return asked


def _files_found_by_each_rank(
    job: MetadataJob,
    host_ranks: HostRanks,
    created_file_counts: Mapping[int, Sequence[int]],
    rank_shift: int,
) -> list[int]:
    """The files that each rank of a host finds, in the ranks' order."""
    makers = (
        (host_ranks.first_rank + nth + rank_shift) % host_ranks.total_ranks
        for nth in range(host_ranks.ranks)
    )
    return [created_file_counts[rank // job.ranks][rank % job.ranks] for rank in makers]


def _ranks_of_host(job: MetadataJob, index: int, total: int) -> HostRanks:
    first = index * job.ranks
    # As many ranks as a host has, one after the other: they are of two hosts at most.
    begin = (first + job.rank_shift) % total
    end = (begin + job.ranks - 1) % total
    makers = dict.fromkeys((begin // job.ranks, end // job.ranks))
    return HostRanks(index, first, job.ranks, total, tuple(makers))


class MetadataPhaseReader:
    """Takes one host's messages of one phase; `first_seq` is the number of its first interval.

    `files` are the files that each rank finds, where not all find `files_per_rank`.
    """

    def __init__(
        self,
        job: MetadataJob,
        host_ranks: HostRanks,
        operation: MetadataOperation,
        first_seq: int,
        files: Sequence[int] = (),
    ) -> None:
        self._job = job
        self._share = host_ranks
        self._operation = operation
        self._seq = first_seq
        self._files = files
        self.intervals: list[Interval] = []

    def add_interval(self, answer: MetadataIntervalAnswer) -> Interval:
        """The next interval. ValueError when it contradicts itself."""
        counts = dense_counts(*_bin_indices_and_counts(answer.bins))
        if int(counts.sum()) != answer.ops:
            raise ValueError(f"its bins hold {int(counts.sum())} of {answer.ops} operations")
        if answer.to_real_ns < answer.from_real_ns:
            raise ValueError("it ends before it begins")
        bins = np.flatnonzero(counts)
        part = DirectionInterval(
            direction=self._operation,
            ios=answer.ops,
            bytes=answer.ops * self._job.file_bytes if self._operation in DATA_OPERATIONS else 0,
            lat_sum_ns=float(counts @ MIDDLE_NS),
            bins=with_narrowest_type(bins),
            counts=with_narrowest_type(counts[bins]),
        )
        span_ns = answer.to_real_ns - answer.from_real_ns
        interval = Interval(self._seq, answer.to_real_ns, span_ns, (part,))
        self._seq += 1
        self.intervals.append(interval)
        return interval

    def build_operation_run(self, answer: MetadataPhaseAnswer) -> OperationRun:
        """The phase's account; ValueError when it is not what was asked, or not the sum of all.

        The intervals' latency sums, until then the bins' midpoints, are scaled to the exact total.
        """
        asked = _requested_operation_count(self._job, self._share, self._operation, self._files)
        failed = sum(answer.errors.values())
        if answer.phase != self._operation.display_name:
            raise ValueError(f"it is of phase {answer.phase[:40]!r}")
        if answer.ops + failed + answer.skipped != asked:
            parts = f"{answer.ops} done, {failed} failed, {answer.skipped} skipped"
            raise ValueError(f"{parts} are not the {asked} that were requested")
        skipped = answer.skipped
        if answer.tried:
            if len(answer.tried) != self._share.ranks or sum(answer.tried) != answer.ops + failed:
                raise ValueError("its ranks came to other numbers of operations")
            if not answer.cancelled and not answer.timed_out:
                # Time was over, as it was to be: what nobody came to was not asked for.
                asked, skipped = asked - skipped, 0
        self._require_counts_equal_to_intervals(answer)
        self._scale_latency_sums(answer.latency_sum_ns)
        return OperationRun(
            operation=self._operation,
            requested=asked,
            completed=answer.ops,
            errors=tuple(sorted(answer.errors.items())),
            skipped=skipped,
            first_start_real_ns=answer.first_start_real_ns,
            last_start_real_ns=answer.last_start_real_ns,
            first_end_real_ns=answer.first_end_real_ns,
            last_end_real_ns=answer.last_end_real_ns,
            lat_min_ns=answer.latency_min_ns,
            lat_max_ns=answer.latency_max_ns,
            preemptions=answer.preemptions,
        )

    def _require_counts_equal_to_intervals(self, answer: MetadataPhaseAnswer) -> None:
        total = dense_counts(*_bin_indices_and_counts(answer.bins))
        for interval in self.intervals:
            for part in interval.directions:
                total -= dense_counts(part.bins, part.counts)
        done = sum(interval.ios for interval in self.intervals)
        if done != answer.ops:
            raise ValueError(f"its intervals hold {done} of {answer.ops} operations")
        if total.any():
            raise ValueError("its intervals hold other latencies")

    def _scale_latency_sums(self, exact_latency_sum_ns: int) -> None:
        parts = [part for interval in self.intervals for part in interval.directions]
        rough_ns = sum(part.lat_sum_ns for part in parts)
        factor = exact_latency_sum_ns / rough_ns if rough_ns else 1.0
        self.intervals = [
            Interval(
                interval.seq,
                interval.end_real_ns,
                interval.span_ns,
                (_with_scaled_latency_sum(interval.directions[0], factor),),
            )
            for interval in self.intervals
        ]


def _requested_operation_count(
    job: MetadataJob,
    host_ranks: HostRanks,
    operation: MetadataOperation,
    files_by_rank: Sequence[int],
) -> int:
    if operation not in FILE_OPERATIONS_OF_RANKS:
        return host_ranks.ranks
    return sum(files_by_rank) if files_by_rank else host_ranks.ranks * job.files_per_rank


def _with_scaled_latency_sum(
    direction_interval: DirectionInterval, factor: float
) -> DirectionInterval:
    return DirectionInterval(
        direction_interval.direction,
        direction_interval.ios,
        direction_interval.bytes,
        direction_interval.lat_sum_ns * factor,
        direction_interval.bins,
        direction_interval.counts,
    )


def _bin_indices_and_counts(bins: tuple[tuple[int, int], ...]) -> tuple[list[int], list[int]]:
    return [number for number, _ in bins], [count for _, count in bins]


def phase_wall_limit_s(operation_count: int) -> float:
    """How long a phase of so many operations on one host may take."""
    return LIMIT_S_MIN + operation_count / SLOWEST_OPS_PER_S


async def send_phase_and_wait(
    host: Host,
    request: Mapping[str, object],
    halt: asyncio.Event,
    on_message: Callable[[Message], None],
    *,
    limit_s: float,
) -> Message:
    """Ask for a phase and hear it to its end; the final message. Raises HostError.

    `halt` stops it: what was done until then is told all the same. `limit_s` counts from now.
    """
    arguments: dict[str, Any] = {**request, "wall_limit_s": limit_s, "interval_ms": INTERVAL_MS}
    stream = host.stream("metadata", **arguments)
    last: Message | None = None
    late = f"did not end '{request['phase']}' within {limit_s:g} s, nor stopped it"
    async with stop_process_on_event(host, stream, halt, limit_s + OVERDUE_S, late):
        async for last in stream:
            if last.message_type == "interval":
                on_message(last)
    if last is None:
        raise host.end_as_lost(f"gave no answer to '{request['phase']}'")
    return last


async def run_measured_phase(
    host: Host,
    request: Mapping[str, object],
    common_start: CommonStartTime,
    go_real_ns: int,
    halt: asyncio.Event,
    reader: MetadataPhaseReader,
    on_interval: Callable[[Interval], None],
    *,
    expected_operation_count: int,
) -> MetadataPhaseAnswer:
    """A phase that counts: begun at `go_real_ns` of the host's clock, read by `reader`.

    Raises HostError for a host that fails or makes no sense, EngineError for a phase that did not
    end in time or was stopped from outside.
    """

    def add_and_report_interval(reply: Message) -> None:
        answer = read_answer(host.name, MetadataIntervalAnswer, reply)
        try:
            on_interval(reader.add_interval(answer))
        except ValueError as fault:
            _mark_lost_and_raise(host, "an interval", fault)

    limit_s = common_start.lead_s + phase_wall_limit_s(expected_operation_count)
    timed = {**request, "start_at_real_ns": go_real_ns}
    final = await send_phase_and_wait(host, timed, halt, add_and_report_interval, limit_s=limit_s)
    measured = read_answer(host.name, MetadataPhaseAnswer, final)
    phase = f"'{request['phase']}' on host '{host.name}'"
    if measured.timed_out:
        message = f"{phase} did not end within {limit_s:g} s, and was stopped."
        raise EngineError(message, "See whether the target still answers.")
    if measured.cancelled and not halt.is_set():
        message = f"{phase} was stopped from outside."
        raise EngineError(message, "See who ends processes on that host, and run again.")
    return measured


def _mark_lost_and_raise(host: Host, message_part: str, fault: ValueError) -> NoReturn:
    raise host.end_as_lost(f"sent {message_part} that is malformed: {fault}") from None


class MetadataDriver(LoadDriver):
    """The built-in `metadata` engine; see `LoadDriver`."""

    async def do_steps_before_load(
        self, session: SessionContext, run: PlannedRun, host_runs: Sequence[HostRunInProgress]
    ) -> None:
        """See that the hosts can do what a rank shift asks, and that the devices are idle."""
        job = MetadataJob.require_type(run.point.job)
        workdirs = [host_run.workdir for host_run in host_runs]
        needs = {
            workdirs[share.host_index].name: [
                workdirs[other].name for other in share.other_file_creator_indexes
            ]
            for share in ranks_by_host(job, len(workdirs))
        }
        hint = (
            "Give all clients one shared file system; or set "
            f"workload.{run.point.workload}.rank_shift=0, and clients work on what they made."
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
        """All operations in order, as far as no host fails and nobody stops."""
        iteration = _MetadataIteration(session, run, host_runs, counters)
        try:
            await iteration.measure()
        finally:
            iteration.fill_in_final_results()
            await iteration.stop_telemetry()


class _MetadataIteration:
    """One run: every phase once, over one tree for each rank."""

    def __init__(
        self,
        session: SessionContext,
        run: PlannedRun,
        host_runs: Sequence[HostRunInProgress],
        counters: CounterCollector,
    ) -> None:
        self._session = session
        self._run = run
        self._states = host_runs
        self._job = MetadataJob.require_type(run.point.job)
        self._rank_shares = ranks_by_host(self._job, len(host_runs))
        attempt = min(run.attempt, ATTEMPTS_WITH_OWN_NAMES) - 1
        self._number = run.order * ATTEMPTS_WITH_OWN_NAMES + attempt
        self._host_ranks_by_name = {
            host_run.name: rank_share
            for host_run, rank_share in zip(host_runs, self._rank_shares, strict=True)
        }
        self._watches = {
            host_run.name: HostWatch(
                session, host_run.workdir.host, index, counters, host_run.workdir.inode_count_path
            )
            for index, host_run in enumerate(host_runs)
        }
        self._telemetry_tasks: dict[str, asyncio.Task[None]] = {}
        self._first_offsets: dict[str, ClockOffset] = {}
        self._began_ns = 0
        self._done: dict[str, list[OperationRun]] = {host_run.name: [] for host_run in host_runs}
        self._unclean_hosts: set[str] = set()
        self._created_files: dict[int, tuple[int, ...]] = {}
        self._files_left = False
        self._halt = asyncio.Event()

    async def measure(self) -> None:
        """Watch, load, and look again. Raises HostError or EngineError when a host failed."""
        await run_on_each_host(self._states, self._begin_watch_and_set_start_state_of_host)
        failure: HostError | EngineError | None = None
        try:
            await run_with_background(
                self._measure_phases(), self._session.stop.forward_to_event(self._halt)
            )
            await run_on_each_host(self._states, self._set_final_snapshot_of_host)
        except (HostError, EngineError) as raised:
            failure = raised
        if self._unclean_hosts and self._should_clean_up_files():
            await self._clean_up_files(
                (MetadataOperation.FILE_REMOVE, MetadataOperation.TREE_REMOVE)
            )
        if failure:
            raise failure

    def fill_in_final_results(self) -> None:
        """Fill in what is known only at the end, however it came."""
        for state in self._states:
            done = tuple(self._done[state.name])
            complete = len(done) == len(MetadataOperation) and not any(
                phase.skipped for phase in done
            )
            state.was_halted = not complete and state.error is None
            state.details = MetadataHostDetails(done)
            starts = [phase.first_start_real_ns for phase in done if phase.first_start_real_ns]
            ends = [phase.last_end_real_ns for phase in done if phase.last_end_real_ns]
            state.span = (min(starts), max(ends)) if starts and ends else None
            # The run's offset is the one at its beginning: what was read later tells of drift.
            state.clock_offset = self._first_offsets.get(state.name, state.clock_offset)

    async def stop_telemetry(self) -> None:
        """Call the telemetry off."""
        for task in self._telemetry_tasks.values():
            task.cancel()
        await asyncio.gather(*self._telemetry_tasks.values(), return_exceptions=True)
        await end_watches(self._watches, self._states)

    async def _begin_watch_and_set_start_state_of_host(self, host_run: HostRunInProgress) -> None:
        hello = await host_run.workdir.host.connect()
        host_run.engine_version = f"iolab-agent {hello.version}"
        asked = self._operation_request(host_run, MetadataOperation.FILE_STAT)
        host_run.requested = json.dumps(
            {**asked, "phase": [operation.display_name for operation in MetadataOperation]},
            indent=1,
        )
        host_run.cache_drop = CACHE_NOT_DROPPED
        await self._watches[host_run.name].begin()
        host_run.disks_before = await take_disks_snapshot(host_run.workdir.host)

    async def _set_final_snapshot_of_host(self, host_run: HostRunInProgress) -> None:
        host_run.disks_after, host_run.last_sample = await take_disks_snapshot_and_sample(
            host_run.workdir.host, host_run.workdir.inode_count_path
        )

    async def _measure_phases(self) -> None:
        for operation in MetadataOperation:
            if operation in COLD_CACHE_OPERATIONS and self._session.study.method.drop_caches:
                await self._drop_caches(operation)
            if operation is MetadataOperation.TREE_REMOVE and self._files_left:
                # Time was over before all files were gone, and a folder has to be empty.
                await self._clean_up_files((MetadataOperation.FILE_REMOVE,))
            if self._halt.is_set():
                return
            await self._measure_phase(operation)

    async def _drop_caches(self, operation: MetadataOperation) -> None:
        """Drop what the hosts remember of files and folders; the proof holds for all drops."""
        self._session.begin_session_phase(
            SessionPhase.DROP_CACHES, self._run, f"before {operation.display_name}"
        )

        async def drop_caches_on_host(host_run: HostRunInProgress) -> None:
            before = host_run.cache_drop
            # No file's pages are in question, only the kernel's own memory of names and inodes.
            proof = await drop_host_and_file_caches(host_run.workdir, ())
            if before is not None and before.requested:
                kept = tuple(name for name in proof.methods if name in before.methods)
                proof = CacheDropProof(True, None, None, kept)  # noqa: FBT003 - the proof's own field
            host_run.cache_drop = proof

        await run_on_each_host(self._states, drop_caches_on_host)

    async def _measure_phase(self, operation: MetadataOperation) -> None:
        seconds = expected_phase_seconds(self._job, operation)
        self._session.begin_session_phase(
            SessionPhase.MEASURE, self._run, operation.display_name, seconds
        )
        await run_on_each_host(self._states, self._store_clock_offset)
        set_up_s = self._job.ranks * RANK_ALLOWANCE_S
        start = common_start_time(self._session, self._states, set_up_s)
        self._start_telemetry_once(start)

        async def measure_phase_on_host(host_run: HostRunInProgress) -> None:
            # A run without one of its hosts answers nothing.
            with set_event_on_failure(self._halt):
                await run_with_background(
                    self._run_operation(host_run, operation, start),
                    self._wait_for_telemetry(host_run),
                )

        await run_on_each_host(self._states, measure_phase_on_host)

    async def _store_clock_offset(self, host_run: HostRunInProgress) -> None:
        host_run.clock_offset = await measure_clock_offset(
            host_run.workdir.host, self._session.clock
        )
        self._first_offsets.setdefault(host_run.name, host_run.clock_offset)

    def _start_telemetry_once(self, start: CommonStartTime) -> None:
        """From the first start on, telemetry is collected without a break."""
        if self._telemetry_tasks:
            return
        self._began_ns = start.real_ns
        self._telemetry_tasks = {
            state.name: asyncio.create_task(
                self._watches[state.name].collect_and_report_until_cancelled(
                    start.start_on_host_clock_ns(state)
                ),
                name=f"telemetry of {state.name}",
            )
            for state in self._states
        }

    async def _wait_for_telemetry(self, host_run: HostRunInProgress) -> None:
        await asyncio.shield(self._telemetry_tasks[host_run.name])

    async def _run_operation(
        self, host_run: HostRunInProgress, operation: MetadataOperation, start: CommonStartTime
    ) -> None:
        rank_share = self._host_ranks_by_name[host_run.name]
        asked = self._operation_request(host_run, operation)
        files = cast("Sequence[int]", asked.get("files", ()))
        reader = MetadataPhaseReader(
            self._job, rank_share, operation, len(host_run.intervals), files
        )
        offset_ns = start.start_on_host_clock_ns(host_run) - start.real_ns
        if operation is not MetadataOperation.TREE_REMOVE:
            self._unclean_hosts.add(host_run.name)
        try:
            answers = await run_measured_phase(
                host_run.workdir.host,
                asked,
                start,
                start.start_on_host_clock_ns(host_run),
                self._halt,
                reader,
                lambda interval: self._emit_interval(host_run, interval, offset_ns),
                expected_operation_count=operation_count_per_client(self._job, operation),
            )
            try:
                phase = reader.build_operation_run(answers)
            except ValueError as fault:
                words = f"sent a malformed measured phase: {fault}"
                raise host_run.workdir.host.end_as_lost(words) from None
        finally:
            host_run.intervals.extend(reader.intervals)
        if operation is MetadataOperation.FILE_CREATE and answers.tried:
            self._created_files[rank_share.host_index] = answers.tried
        self._files_left |= operation is MetadataOperation.FILE_REMOVE and answers.skipped > 0
        done = self._done[host_run.name]
        done.append(phase)
        if answers.processor:
            host_run.phase_processors.append(answers.processor)
        host_run.phase_libraries = answers.libraries or host_run.phase_libraries
        if operation is MetadataOperation.TREE_REMOVE and not any(
            p.errors or p.skipped for p in done
        ):
            self._unclean_hosts.discard(host_run.name)

    def _emit_interval(
        self, host_run: HostRunInProgress, interval: Interval, offset_ns: int
    ) -> None:
        elapsed_s = (interval.end_real_ns - offset_ns - self._began_ns) / NS_PER_S
        self._session.emit(interval.to_event(host_run.name, self._run, elapsed_s))

    def _should_clean_up_files(self) -> bool:
        """A stop leaves everything to the end of the scratch folder, unless that is to be kept."""
        return self._session.study.target.keep_files or not self._session.stop.is_requested

    async def _clean_up_files(self, operations: Sequence[MetadataOperation]) -> None:
        """Remove what this run made and left, uncounted, so that the next one finds its room.

        What cannot be removed now goes with the scratch folder, if that goes.
        """
        halt = asyncio.Event()

        async def clean_up_on_host(
            host_run: HostRunInProgress, operation: MetadataOperation
        ) -> None:
            if host_run.workdir.host.lost_reason:
                return
            with suppress(HostError):
                await send_phase_and_wait(
                    host_run.workdir.host,
                    self._operation_request(host_run, operation, is_cleanup=True),
                    halt,
                    lambda _: None,
                    limit_s=phase_wall_limit_s(operation_count_per_client(self._job, operation)),
                )

        async def clean_up_on_all_hosts() -> None:
            for operation in operations:
                await asyncio.gather(
                    *(clean_up_on_host(host_run, operation) for host_run in self._states)
                )

        if self._session.study.target.keep_files:
            await clean_up_on_all_hosts()
        else:
            await run_with_background(
                clean_up_on_all_hosts(), self._session.stop.forward_to_event(halt)
            )

    def _operation_request(
        self,
        host_run: HostRunInProgress,
        operation: MetadataOperation,
        *,
        is_cleanup: bool = False,
    ) -> dict[str, object]:
        rank_share = self._host_ranks_by_name[host_run.name]
        dirs = {
            other: peer_folder_path(host_run.workdir, self._states[other].workdir)
            for other in rank_share.other_file_creator_indexes
        }
        dirs[rank_share.host_index] = host_run.workdir.dir
        return phase_request(
            self._job,
            rank_share,
            dirs,
            operation,
            iteration=self._number,
            created_file_counts=self._created_files
            if len(self._created_files) == len(self._rank_shares)
            else {},
            is_cleanup=is_cleanup,
        )
