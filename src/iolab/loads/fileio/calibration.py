"""Two engines in turn on one target: pairs of short runs, and what each can at all.

The order of a pair is swapped from one to the next, so that a drift of the target favours neither.
Several hosts run one engine at a time, all from one moment on: a target that they share meets one
engine only, as it would in a study.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from statistics import geometric_mean
from typing import Final

from msgspec.structs import replace

from iolab.core.engine import EngineName
from iolab.core.host import HostFacts, HostSpec, ToolFacts
from iolab.core.metric_spec import Better
from iolab.core.workload import DataSet
from iolab.errors import EngineError, HostError
from iolab.hosts.answers import ScratchAnswer, read_answer, read_facts
from iolab.hosts.barrier import gather_hosts, set_event_on_failure
from iolab.hosts.clock import SYSTEM_CLOCK, Clock, ClockOffset, measure_offset
from iolab.hosts.connect import open_hosts
from iolab.hosts.engine import Command, EngineReading, FileEngine, OutputReader
from iolab.hosts.host import Host
from iolab.hosts.remote_process import run_process
from iolab.loads.fileio.calibration_model import (
    Calibration,
    EngineRunSums,
    HostCalibration,
    Trial,
    build_trial,
    engine_run_totals,
)
from iolab.loads.fileio.driver import ENGINES, null_target_iops
from iolab.loads.fileio.engine_facts import AUTO, FIO_ENGINE, NATIVE_ENGINE, VERSION_COMMANDS
from iolab.loads.fileio.workload import Job, job_for_generator_ceiling
from iolab.record import Record
from iolab.session.discovery import FACTS_LIMIT_S
from iolab.session.start import ROUND_TRIPS_TO_START, HostStartTime
from iolab.stats.comparison import Comparison, compare_paired
from iolab.stats.repeats import BIN_ERROR
from iolab.targets.context import HOSTS_APART
from iolab.targets.layout import layout_error
from iolab.targets.work_directory import CLOSE_LIMIT_S, OPEN_LIMIT_S, scratch_name
from iolab.units import NS_PER_S, format_bytes

SUFFIX: Final = "-calibrate"
"""What sets the scratch folder of a host, which is removed at the end, apart from a session's."""

NULL_S: Final = 1.0
"""How long each engine works on the target that does nothing."""

START_ALLOWANCE_S: Final = 0.2
"""From the decision to the common start of several hosts, beyond the way of the messages."""


LONGER_RUNS_HINT: Final = "Ask for longer runs, with --seconds."
"""What to do where a run on scratch files made nothing."""

DEV_NULL_HINT: Final = "Look at /dev/null there, or ask for another --rw or --ioengine."
"""The same where even what does nothing was not reached."""

BIN_ALLOWANCE: Final = 2 * BIN_ERROR
"""What a ratio of percentiles may be off, a log ratio: both are known to their bins only."""

_FIGURES: Final = (
    ("iops", "1/s", Better.HIGHER, 0.0),
    ("lat_ns_mean", "ns", Better.LOWER, 0.0),
    ("lat_ns_p50", "ns", Better.LOWER, BIN_ALLOWANCE),
    ("lat_ns_p99", "ns", Better.LOWER, BIN_ALLOWANCE),
    ("cpu_ns_per_io", "ns", Better.LOWER, 0.0),
)


class CalibrationRequest(Record):
    """What to run: the job but for its engine, so many pairs of so many seconds each."""

    job: Job
    pairs: int
    seconds: float


async def calibrate(
    specs: Iterable[HostSpec], request: CalibrationRequest, notify: Callable[[str], None]
) -> Calibration:
    """Run all pairs on scratch files below each host's path, which is absolute, and the ceilings.

    What stays of it is reported as of any command (`iolab.core.leftover_texts`). Raises HostError
    and EngineError, before anything is written where a host has no fio or no room.
    """
    async with open_hosts(specs) as hosts:
        return await calibrate_on(hosts, request, notify, SYSTEM_CLOCK)


async def calibrate_on(
    hosts: Mapping[str, Host],
    request: CalibrationRequest,
    notify: Callable[[str], None],
    clock: Clock,
) -> Calibration:
    """The same on hosts that somebody else opens and closes."""
    alone = len(hosts) == 1
    places = tuple(
        _CalibratedHost(host, request.job, number, alone=alone)
        for number, host in enumerate(hosts.values())
    )
    (await gather_hosts(places, _prepare_host)).results_or_raise()
    try:
        (await gather_hosts(places, _open_scratch_folder)).results_or_raise()
        return await _CalibrationRunner(places, request, notify, clock).run()
    finally:
        # A folder that cannot be closed is tried again when its agent ends, and named then.
        await gather_hosts(places, _close_scratch_folder)


def require_ready(facts: HostFacts, path: str, job: Job) -> None:
    """Nothing where both engines are there and the scratch files fit.

    Else EngineError or HostError.
    """
    for engine in ENGINES:
        name = engine.name
        engine.require_usable(facts.tool_facts(name) or ToolFacts(name, None, None))
    need = _scratch_data_set(job).bytes_per_host
    if facts.target is not None and facts.target.free_bytes < need:
        free = format_bytes(facts.target.free_bytes)
        message = f"{path} has {free} free, the scratch files need {format_bytes(need)}."
        raise HostError(message, "Make room there, or give a smaller --size or --numjobs.")


class _CalibratedHost:
    """One host, the scratch folder that is held there, and what it is asked to do."""

    def __init__(self, host: Host, job: Job, number: int, *, alone: bool) -> None:
        own = host.spec.numjobs
        self.host = host
        self.job = job if own is None else replace(job, numjobs=own)
        self._place_text = "" if alone else f" on host '{host.name}'"
        self.seed = number * HOSTS_APART
        self.dir = ""

    @property
    def name(self) -> str:
        """The host's name."""
        return self.host.name

    @property
    def path(self) -> str:
        """Below which all is written."""
        return self.host.spec.path or ""


async def _prepare_host(calibrated_host: _CalibratedHost) -> None:
    host = calibrated_host.host
    await host.connect()
    answer = await host.request(
        "facts", deadline_s=FACTS_LIMIT_S, path=calibrated_host.path, tools=VERSION_COMMANDS
    )
    try:
        require_ready(read_facts(host.name, answer), calibrated_host.path, calibrated_host.job)
    except (EngineError, HostError) as fault:
        if not calibrated_host._place_text:
            raise
        raise type(fault)(f"Host '{host.name}': {fault.message}", fault.hint) from None


async def _open_scratch_folder(calibrated_host: _CalibratedHost) -> None:
    opened = await calibrated_host.host.request(
        "scratch_open",
        deadline_s=OPEN_LIMIT_S,
        path=calibrated_host.path,
        name=scratch_name(calibrated_host.name) + SUFFIX,
        owner="iolab calibrate",
    )
    calibrated_host.dir = read_answer(calibrated_host.name, ScratchAnswer, opened).dir


async def _close_scratch_folder(calibrated_host: _CalibratedHost) -> None:
    directory, calibrated_host.dir = calibrated_host.dir, ""
    if directory and not calibrated_host.host.lost_reason:
        await calibrated_host.host.request(
            "scratch_close", deadline_s=CLOSE_LIMIT_S, dir=directory, keep=False
        )


class _EngineRun(Record):
    """What one process on one host came to; `rate` is by its own count of the time."""

    tally: EngineRunSums
    version: str
    method: str
    rate: float | None


class _CalibrationRunner(Record):
    """All hosts, in step: nobody begins a run before everybody has ended the one before."""

    places: tuple[_CalibratedHost, ...]
    wish: CalibrationRequest
    say: Callable[[str], None]
    clock: Clock

    async def run(self) -> Calibration:
        """Files laid out, all pairs, and the ceilings."""
        wish = self.wish
        self.say("Laying out the scratch files.")
        (await gather_hosts(self.places, _lay_out_scratch_files)).results_or_raise()
        runs: dict[tuple[int, EngineName], Mapping[str, _EngineRun]] = {}
        for pair, engine in _alternating_turns(wish.pairs):
            self.say(f"Pair {pair} of {wish.pairs}: {engine.name}.")
            runs[pair, engine.name] = await self._run_on_all_hosts(
                engine, _measurement_factory(engine, wish, pair)
            )
        ceilings: dict[EngineName, Mapping[str, _EngineRun]] = {}
        for engine in ENGINES:
            self.say(f"The ceiling of {engine.name}.")
            ceilings[engine.name] = await self._run_on_all_hosts(
                engine, _null_target_factory(engine)
            )
        return _summarize_calibration(wish.job, self.places, runs, ceilings)

    async def _run_on_all_hosts(
        self, engine: FileEngine[Job], load: Callable[[_CalibratedHost], _EngineProcess]
    ) -> Mapping[str, _EngineRun]:
        """The engine's load on every host; where one fails, the others are told to end."""
        starts = await self._common_start_times()
        halt = asyncio.Event()

        async def run_on(calibrated_host: _CalibratedHost) -> _EngineRun | None:
            with set_event_on_failure(halt):
                return await _run_engine(
                    calibrated_host,
                    engine,
                    load(calibrated_host),
                    starts.get(calibrated_host.name),
                    halt,
                )

        done = (await gather_hosts(self.places, run_on)).results_or_raise()
        return {name: run for name, run in done.items() if run is not None}

    async def _common_start_times(self) -> Mapping[str, HostStartTime]:
        """One moment on the clock of each of several hosts; a lone one begins when it is asked."""
        if len(self.places) == 1:
            return {}

        async def measure_offset_of(calibrated_host: _CalibratedHost) -> ClockOffset:
            return await measure_offset(calibrated_host.host, self.clock)

        offsets = (await gather_hosts(self.places, measure_offset_of)).results_or_raise()
        slowest_ns = max(offset.rtt_ns for offset in offsets.values())
        lead_s = START_ALLOWANCE_S + ROUND_TRIPS_TO_START * slowest_ns / NS_PER_S
        start_ns = self.clock.real_ns() + round(lead_s * NS_PER_S)
        return {
            name: HostStartTime(start_ns + offset.offset_ns, lead_s)
            for name, offset in offsets.items()
        }


class _EngineProcess(Record):
    """One process to run, who reads it, and what to do where it makes nothing."""

    command: Command
    reader: OutputReader
    hint: str


def _alternating_turns(pairs: int) -> Iterator[tuple[int, FileEngine[Job]]]:
    """Each pair with its engines, in an order that alternates."""
    for pair in range(1, pairs + 1):
        for engine in ENGINES if pair % 2 else reversed(ENGINES):
            yield pair, engine


def _measurement_factory(
    engine: FileEngine[Job], request: CalibrationRequest, pair: int
) -> Callable[[_CalibratedHost], _EngineProcess]:
    """A run on the scratch files."""

    def measurement(calibrated_host: _CalibratedHost) -> _EngineProcess:
        job, files = (
            _job_for_engine(calibrated_host.job, engine.name),
            _scratch_data_set(calibrated_host.job),
        )
        command = engine.measure_command(
            job,
            files,
            calibrated_host.dir,
            seconds=request.seconds,
            seed=calibrated_host.seed + pair,
        )
        return _EngineProcess(command, engine.measure_reader(job), LONGER_RUNS_HINT)

    return measurement


def _null_target_factory(engine: FileEngine[Job]) -> Callable[[_CalibratedHost], _EngineProcess]:
    """The same where nothing has to be done for it."""

    def null_measurement(calibrated_host: _CalibratedHost) -> _EngineProcess:
        kind = job_for_generator_ceiling(_job_for_engine(calibrated_host.job, engine.name))
        command = engine.null_target_command(kind, seconds=NULL_S)
        if command is None:
            raise EngineError(f"{engine.name} has no null target.", "Use another --rw.")
        return _EngineProcess(command, engine.null_target_reader(kind), DEV_NULL_HINT)

    return null_measurement


def _job_for_engine(job: Job, engine: EngineName) -> Job:
    """The job by that engine, which asks the kernel in its own best way if it is ours."""
    free = engine == NATIVE_ENGINE
    return replace(job, engine=engine, ioengine=AUTO if free else job.ioengine)


def _scratch_data_set(job: Job) -> DataSet:
    return DataSet("calibrate", "", job.numjobs, job.files_per_job, job.file_bytes)


async def _lay_out_scratch_files(calibrated_host: _CalibratedHost) -> None:
    engine, files = ENGINES[-1], _scratch_data_set(calibrated_host.job)
    command = engine.layout_command(files, calibrated_host.dir, None, seed=calibrated_host.seed)
    reader = engine.layout_reader(files)
    ending = await run_process(calibrated_host.host, command, asyncio.Event(), reader.feed)
    fault = layout_error(
        calibrated_host.name,
        calibrated_host.dir,
        files,
        command,
        engine.name,
        ending,
        reader.finish(),
    )
    if fault:
        raise fault


async def _run_engine(
    calibrated_host: _CalibratedHost,
    engine: FileEngine[Job],
    load: _EngineProcess,
    start: HostStartTime | None,
    halt: asyncio.Event,
) -> _EngineRun | None:
    """What the process told; None of one that was told to end because another host failed."""
    ending = await run_process(
        calibrated_host.host,
        load.command,
        halt,
        load.reader.feed,
        start_at_real_ns=start.real_ns if start else None,
        lead_s=start.lead_s if start else 0.0,
    )
    if ending.halted:
        return None
    reading = load.reader.finish()
    reason = "; ".join((*reading.faults, *ending.stderr_tail.strip().splitlines()[-2:]))
    if ending.exited.code != 0 or reading.faults or reading.totals is None:
        message = (
            f"{engine.name} did not make its run{calibrated_host._place_text} "
            f"({reason or 'it said nothing'})."
        )
        raise EngineError(message, "Correct the reported fault and run again.")
    if reading.totals.error:
        message = (
            f"{engine.name} met errors of the target{calibrated_host._place_text} "
            f"({reading.totals.error})."
        )
        raise EngineError(message, "Look at the kernel's log, and use a sound target.")
    return _EngineRun(
        tally=engine_run_totals(engine.name, reading, ending, load.hint),
        version=reading.version,
        method=_io_method(calibrated_host.job, reading),
        rate=null_target_iops(reading.totals),
    )


def _summarize_calibration(
    job: Job,
    calibrated_hosts: tuple[_CalibratedHost, ...],
    runs: Mapping[tuple[int, EngineName], Mapping[str, _EngineRun]],
    ceilings: Mapping[EngineName, Mapping[str, _EngineRun]],
) -> Calibration:
    def trials_of_hosts(names: tuple[str, ...]) -> tuple[Trial, ...]:
        return tuple(
            build_trial(engine, pair, [by_host[name].tally for name in names])
            for (pair, engine), by_host in runs.items()
        )

    def host_calibration(calibrated_host: _CalibratedHost) -> HostCalibration:
        last = {engine: by_host[calibrated_host.name] for (_, engine), by_host in runs.items()}
        return HostCalibration(
            host=calibrated_host.name,
            job=calibrated_host.job,
            trials=trials_of_hosts((calibrated_host.name,)),
            ceilings={
                name: by_host[calibrated_host.name].rate for name, by_host in ceilings.items()
            },
            versions={name: run.version for name, run in last.items()},
            methods={name: run.method for name, run in last.items()},
        )

    hosts = tuple(host_calibration(place) for place in calibrated_hosts)
    return Calibration(job, hosts, trials_of_hosts(tuple(place.name for place in calibrated_hosts)))


def _io_method(job: Job, reading: EngineReading) -> str:
    generator = reading.totals.generator if reading.totals else None
    return generator.method if generator else job.ioengine


class CalibrationRow(Record):
    """One figure of both engines: geometric means over their runs, and native over fio.

    `unit` is 1/s or ns.
    """

    key: str
    unit: str
    fio: float
    native: float
    comparison: Comparison


def calibration_rows(trials: Sequence[Trial]) -> tuple[CalibrationRow, ...]:
    """Every figure of the pairs, in the order in which it is shown."""
    return tuple(
        _calibration_row(key, unit, better, trials, allowance)
        for key, unit, better, allowance in _FIGURES
    )


def _calibration_row(
    key: str, unit: str, better: Better, trials: Sequence[Trial], allowance: float
) -> CalibrationRow:
    ordered = sorted(trials, key=attrgetter("pair"))
    fio, native = (
        [getattr(trial, key) for trial in ordered if trial.engine == engine]
        for engine in (FIO_ENGINE, NATIVE_ENGINE)
    )
    comparison = compare_paired(fio, native, better, allowance=allowance)
    return CalibrationRow(key, unit, geometric_mean(fio), geometric_mean(native), comparison)
