"""The native engine: its jobs for the agent, its layouts, and its ledger of written blocks."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from iolab.core.engine import EngineName
from iolab.core.generator import RECORDED_FILE
from iolab.core.host import ToolFacts
from iolab.core.run import EngineTotals
from iolab.core.workload import DataSet, Direction
from iolab.errors import EngineError, Fault
from iolab.hosts.engine import BlockLedger, Command, OutputReader
from iolab.loads.fileio.engine_facts import AUTO, NATIVE_ENGINE
from iolab.loads.fileio.engines.fio import (
    DIRECT_ALIGN_BYTES,
    END_LIMIT_S,
    FILL_DEPTH,
    LAYOUT_DEPTH,
    NULL_FOLDER,
    REPORT_LIMIT_BYTES,
    SLOWEST_BYTES_PER_S,
    SPARE_REPORTS,
    data_set_for_overwrite,
    data_set_mismatch_faults,
    layout_block_bytes,
    overwrite_block_bytes,
    overwrite_job_bytes,
    raise_if_faults,
    start_and_drain_limit_s,
)
from iolab.loads.fileio.engines.native_reader import NativeLineReader
from iolab.loads.fileio.io_trace import SYNC, IoTraceError, read_trace, trace_chunk_count
from iolab.loads.fileio.options import (
    FIO_OPTIONS,
    METHODS,
    is_option_supported_natively,
    parse_microseconds,
)
from iolab.loads.fileio.workload import (
    SECTOR_BYTES,
    IoArrivals,
    Job,
    WrittenContents,
    bssplit_block_bytes_and_percents,
)

FORMAT: Final = 1
"""The version of the format."""

SPEC_BYTES_MAX: Final = 1 << 20
"""What one message to the agent holds."""

JOBS_MAX: Final = 10_000
"""The engine takes no more."""

INTERVAL_MS: Final = 1000
"""How often it reports: as often as fio is asked to."""

SEED_STEP: Final = 1 << 20
"""Seeds of a run's jobs follow each other; those of the next run begin so much further on."""

SEED_LIMIT: Final = 1 << 64
"""Seeds are numbers of 64 bits."""

ALL_READS: Final = 100
"""The share of reads, in percent, of a mix without writes."""

NULL_WRITES: Final = "/dev/null"
NULL_BYTES: Final = 1 << 30
"""A target that does nothing, and the size that jobs work on there."""

_CONTENTS: Final = {
    WrittenContents.SCRAMBLED: "scrambled",
    WrittenContents.RANDOM: "random",
    WrittenContents.ZEROS: "zeros",
}

_NOT_SUPPORTED: Final = "The native engine cannot do this job"

Spec = dict[str, Any]

_DEFAULT_JOB: Final[Spec] = {
    "rate": None,
    "arrivals": None,
    "think_us": 0,
    "think_every": 1,
    "distribution": {"kind": "uniform"},
    "fsync_every": 0,
    "verify": False,
}
"""What the engine takes for a key that is left out."""

READBACK_DEPTH: Final = 8
"""I/Os of each job in flight while its blocks are read back."""

ARGV: Final = ("iolab-agent", "engine")
"""The agent runs its own program for this name."""


def measurement_spec(
    job: Job, data_set: DataSet, seconds: float, seed: int, *, arrival_shift_share: float = 0.0
) -> Spec:
    """The load of a job on files that are there; EngineError with all that cannot be told.

    Jobs with a rate begin later by `arrival_shift_share` of the time between two I/Os of all of
    them.
    """
    raise_if_faults(
        _NOT_SUPPORTED,
        (
            *_job_faults(job),
            *_data_set_name_faults(data_set),
            *data_set_mismatch_faults(job, data_set),
        ),
    )
    shape = _job_spec(job)
    jobs = [
        {**place, **_without_default_values(shape), "seed": _job_seed(seed, number)}
        for number, place in enumerate(_file_specs_of_each_job(data_set, job.numjobs))
    ]
    if job.trace:
        jobs = [{**jobs[0], "trace": _trace_spec(job)}]
    is_shifted = arrival_shift_share and job.target_iops_per_job is not None
    turn = {"later": arrival_shift_share} if is_shifted else {}
    return _timed_jobs_spec(job, jobs, seconds) | turn


def trace_chunk_file_name(number: int) -> str:
    """The file of a piece of a trace, in the job's folder."""
    return f"trace.{number}"


def _trace_spec(job: Job) -> Spec:
    try:
        trace = read_trace(job.trace)
    except IoTraceError as fault:
        raise EngineError(f"The trace {job.trace} {fault}.", "See workload.*.trace.") from None
    if trace.digest != job.trace_digest:
        raise EngineError(
            f"The trace {job.trace} is not the one that was planned.",
            "Give the same file again, or begin a new session.",
        )
    return {
        "parts": [trace_chunk_file_name(number) for number in range(trace_chunk_count(trace))],
        "ios": len(trace.due_ns),
        "syncs": bool((trace.kinds == SYNC).any()),
    }


def null_target_spec(job: Job, seconds: float) -> Spec:
    """The same jobs at full speed on a target that does nothing: what the generator itself can.

    They only write, since reading /dev/zero costs the time to fill each block with zeros.
    """
    shape = _job_spec(job) | {"rw": "randwrite" if job.access.is_random else "write"}
    shape |= {"rate": None, "arrivals": None, "think_us": 0, "fsync_every": 0, "verify": False}
    if not has_writes(job):
        shape["contents"] = _contents_spec("zeros")
    size = max(NULL_BYTES // job.block_bytes, 1) * job.block_bytes
    place = {"files": [{"path": NULL_WRITES, "bytes": size}], **_without_default_values(shape)}
    jobs = [{**place, "seed": _job_seed(0, number)} for number in range(job.numjobs)]
    return _timed_jobs_spec(job, jobs, seconds) | {"direct": False, "poll": False, "sqpoll": False}


def layout_spec(data_set: DataSet, *, is_direct_io: bool, method: str, seed: int) -> Spec:
    """Write every byte of the data set once, random and with stamps that can be verified."""
    region = data_set_for_overwrite(data_set)
    block = layout_block_bytes(region.file_bytes)
    raise_if_faults(_NOT_SUPPORTED, tuple(_data_set_name_faults(data_set)))
    jobs = [
        {**place, **_spec_of_write_job(block, LAYOUT_DEPTH, region.bytes_per_job, number + seed)}
        for number, place in enumerate(
            _file_specs_of_each_job(region, region.numjobs, does_create_files=True)
        )
    ]
    return _untimed_jobs_spec(
        jobs, is_direct_io=is_direct_io and block >= DIRECT_ALIGN_BYTES, method=method
    )


def overwrite_spec(
    data_set: DataSet, passes: float, *, is_direct_io: bool, method: str, seed: int
) -> Spec:
    """Write over the data set, which is there, so many times: sequentially, in 128 KiB."""
    raise_if_faults(_NOT_SUPPORTED, tuple(_data_set_name_faults(data_set)))
    region = data_set_for_overwrite(data_set)
    block = overwrite_block_bytes(region)
    each = overwrite_job_bytes(region, passes)
    jobs = [
        {**place, **_spec_of_write_job(block, FILL_DEPTH, each, number + seed)}
        for number, place in enumerate(_file_specs_of_each_job(region, region.numjobs))
    ]
    return _untimed_jobs_spec(
        jobs, is_direct_io=is_direct_io and block >= DIRECT_ALIGN_BYTES, method=method
    )


def readback_spec(job: Job, data_set: DataSet) -> Spec:
    """Read every block of the data set once, each held against what was last written there."""
    raise_if_faults(_NOT_SUPPORTED, tuple(_data_set_name_faults(data_set)))
    block = job.block_bytes
    shape = {"rw": "read", "blocks": [{"bytes": block}], "depth": READBACK_DEPTH, "verify": True}
    jobs = [
        {
            **place,
            **shape,
            "contents": _contents_spec("random"),
            "seed": number,
            "io_bytes": data_set.bytes_per_job // block * block,
        }
        for number, place in enumerate(_file_specs_of_each_job(data_set, job.numjobs))
    ]
    return _untimed_jobs_spec(jobs, is_direct_io=job.direct, method=job.ioengine)


def has_reads(job: Job) -> bool:
    """Whether the job reads anything: a mix need not."""
    return job.access.has_reads and job.read_percent != 0


def has_writes(job: Job) -> bool:
    """Whether it writes anything."""
    return job.access.has_writes and job.read_percent != ALL_READS


def spec_json(spec: Spec) -> str:
    """The specification as it is sent; EngineError where it is longer than the engine reads."""
    text = json.dumps(spec, separators=(",", ":"), sort_keys=True)
    if len(text) > SPEC_BYTES_MAX:
        message = f"What the native engine is told has {len(text)} bytes, a message holds 1 MiB."
        raise EngineError(message, "Use fewer workload.*.numjobs or files.")
    return text


def _timed_jobs_spec(job: Job, job_specs: list[Spec], seconds: float | None) -> Spec:
    options = dict(job.options)
    return {
        "format": FORMAT,
        "jobs": job_specs,
        "direct": job.direct,
        # Trims are plain calls, whatever other I/O of the workload file goes through; so are fio's.
        "method": METHODS[AUTO if job.access.has_trims else job.ioengine],
        "poll": options.get("hipri") == "1",
        "sqpoll": options.get("sqthread_poll") == "1",
        "runtime_s": seconds,
        "interval_ms": INTERVAL_MS,
    }


def _untimed_jobs_spec(job_specs: list[Spec], *, is_direct_io: bool, method: str) -> Spec:
    return {
        "format": FORMAT,
        "jobs": job_specs,
        "direct": is_direct_io,
        "method": METHODS[method],
        "runtime_s": None,
        "interval_ms": INTERVAL_MS,
    }


def _job_spec(job: Job) -> Spec:
    """What every job of a workload does, but for where and by which seed."""
    options = dict(job.options)
    shape: Spec = {
        "rw": job.access.value,
        "blocks": _block_size_specs(job, options),
        "depth": job.iodepth,
        "rate": _rate_spec(job),
        "arrivals": _arrivals_name(job, options),
        "think_us": parse_microseconds(options.get("thinktime", "0")),
        "think_every": int(options.get("thinktime_blocks", "1")),
        "distribution": _offset_distribution_spec(job, options),
        # After so many writes: where there are none, fio does nothing and the engine would refuse.
        "fsync_every": int(options.get("fsync", "0")) if has_writes(job) else 0,
        "contents": _contents_spec(
            _CONTENTS[job.contents],
            int(options.get("buffer_compress_percentage", "0")),
            int(options.get("dedupe_percentage", "0")),
        ),
        "verify": job.verify,
    }
    if job.access.is_mixed:
        shape["read_percent"] = job.read_percent
    return shape


def _spec_of_write_job(block_bytes: int, depth: int, io_bytes: int, seed: int) -> Spec:
    """Sequential writes, flushed at the end; short, since thousands of jobs have to fit."""
    return {
        "rw": "write",
        "blocks": [{"bytes": block_bytes}],
        "depth": depth,
        "io_bytes": io_bytes,
        "end_fsync": True,
        "contents": {"kind": "random"},
        "verify": True,
        "seed": seed,
    }


def _contents_spec(kind: str, compress_percent: int = 0, dedupe_percent: int = 0) -> Spec:
    return {
        "kind": kind,
        "compress_percent": compress_percent,
        "dedupe_percent": dedupe_percent,
    }


def _file_specs_of_each_job(
    data_set: DataSet, numjobs: int, *, does_create_files: bool = False
) -> Iterable[Spec]:
    """Where each job works: on files of its own, or its region of a device or shared file."""
    size, extra = data_set.bytes_per_job, {"create": True} if does_create_files else {}
    file: Spec = {"bytes": data_set.file_bytes, **extra}
    for job in range(numjobs):
        if data_set.shared_region_name:
            region = {
                "path": data_set.shared_region_name,
                "bytes": data_set.bytes_per_host,
                **extra,
            }
            yield {"files": [region], "offset_bytes": job * size, "size_bytes": size}
        else:
            names = (f"{data_set.id}.{job}.{number}" for number in range(data_set.files_per_job))
            yield {"files": [{"path": name, **file} for name in names]}


def _without_default_values(spec: Spec) -> Spec:
    """A job without what the engine takes for granted: thousands of them have to fit."""
    return {name: value for name, value in spec.items() if value != _DEFAULT_JOB.get(name)}


def _block_size_specs(job: Job, engine_options: Mapping[str, str]) -> list[Spec]:
    """One size, or fio's `bssplit`: sizes without a share divide what the others leave.

    What is left of a hundred after that goes to the last size that has a share, as fio does it.
    """
    if "bssplit" not in engine_options:
        return [{"bytes": job.block_bytes, "share": 100}]
    blocks = [
        {"bytes": size, "share": share}
        for size, share in bssplit_block_bytes_and_percents(engine_options["bssplit"])
        if share
    ]
    blocks[-1]["share"] += 100 - sum(block["share"] for block in blocks)
    return blocks


def _rate_spec(job: Job) -> Spec | None:
    if job.rate_iops is not None:
        return {"iops": float(job.rate_iops)}
    rate = job.rate_bytes_per_s
    return None if rate is None else {"bytes_per_s": float(rate)}


def _arrivals_name(job: Job, engine_options: Mapping[str, str]) -> str | None:
    """When I/Os are due under a rate; None for I/Os that a closed loop paces."""
    if job.target_iops_per_job is None:
        return None
    poisson = job.arrivals is IoArrivals.POISSON or engine_options.get("rate_process") == "poisson"
    if poisson:
        return "poisson"
    return "fixed" if job.arrivals is IoArrivals.FIXED else None


def _offset_distribution_spec(job: Job, engine_options: Mapping[str, str]) -> Spec:
    """As fio draws offsets: each block once a pass, unless told to keep no track of them.

    Where sizes of blocks are mixed there are no blocks to be drawn once.
    """
    kind, _, values = engine_options.get("random_distribution", "random").partition(":")
    match kind:
        case "zipf":
            return {"kind": "zipf", "theta": float(values)}
        case "pareto":
            return {"kind": "pareto", "h": float(values)}
        case "zoned":
            zones = (zone.split("/") for zone in values.split(":"))
            return {
                "kind": "zoned",
                "zones": [
                    {"access_percent": int(access), "size_percent": int(size)}
                    for access, size in zones
                ],
            }
    lfsr = engine_options.get("random_generator") == "lfsr"
    once = (engine_options.get("norandommap") != "1" or lfsr) and "bssplit" not in engine_options
    return {"kind": "permutation" if once and job.access.is_random else "uniform"}


def _job_seed(seed: int, job_number: int) -> int:
    return (seed * SEED_STEP + job_number) % SEED_LIMIT


def _job_faults(job: Job) -> Iterable[Fault]:
    hint = "Leave it out, or use fio."
    if job.ioengine not in METHODS:
        yield Fault(f"It has no ioengine '{job.ioengine}'.", "Leave ioengine out, or use fio.")
    if not job.block_bytes >= SECTOR_BYTES:
        yield Fault(f"A block of {job.block_bytes} bytes is smaller than a sector.", "Raise bs.")
    if job.numjobs > JOBS_MAX:
        yield Fault(f"{job.numjobs} jobs are more than {JOBS_MAX}.", "Set a smaller numjobs.")
    for name, value in job.options:
        if (
            name not in FIO_OPTIONS
            or not FIO_OPTIONS[name].accepts_value(value)
            or not is_option_supported_natively(name, value)
        ):
            yield Fault(f"It cannot do fio option {name} = {value}.", hint)


def _data_set_name_faults(data_set: DataSet) -> Iterable[Fault]:
    if "/" in data_set.id or not data_set.id.isprintable() or not data_set.id:
        yield Fault(f"'{data_set.id}' cannot begin file names.", "Use letters, digits, '-', '_'.")
    if "/" in data_set.device:
        yield Fault(f"'{data_set.device}' is no name of a device.", "Name it as in its folder.")


class NativeEngine:
    """The agent's engine, started on the host by the agent; see `SingleProcessEngine`."""

    @property
    def name(self) -> EngineName:
        """The name in study files."""
        return NATIVE_ENGINE

    def require_usable(self, tool: ToolFacts) -> None:
        """Nothing can be wrong: it is part of the agent."""

    def command_that_verifies_blocks(self, command: Command, block_ledger: BlockLedger) -> Command:
        """The same command, its jobs held against that ledger; EngineError if that is too much."""
        settings = {"ledger": block_ledger.path, "ledger_block": block_ledger.block_bytes}
        return _with_settings_added_to_spec(command, settings)

    def command_with_slow_ios(self, command: Command, max_count: int) -> Command:
        """The same command, which also tells so many of its slowest I/Os one by one."""
        return _with_settings_added_to_spec(command, {"slow_ios": max_count})

    def command_with_recording(self, command: Command, max_count: int) -> Command:
        """The same command, which also records so many of its I/Os in a file of its folder."""
        return _with_settings_added_to_spec(
            command, {"record": {"path": RECORDED_FILE, "ios": max_count}}
        )

    def build_layout_command(
        self, data_set: DataSet, directory: str, job: Job | None, *, seed: int
    ) -> Command:
        """Write every file of the data set once, with random contents, flushed at the end."""
        direct, method = (job.direct, job.ioengine) if job else (True, AUTO)
        spec = layout_spec(data_set, is_direct_io=direct, method=method, seed=seed)
        limit_s = END_LIMIT_S + data_set.bytes_per_host / SLOWEST_BYTES_PER_S
        return _agent_command(directory, spec, limit_s, waits_for_start=False)

    def create_layout_reader(self, data_set: DataSet) -> OutputReader:
        """A reader that finds fault with a layout that wrote less than the data set."""
        jobs = data_set_for_overwrite(data_set).numjobs
        return NativeLineReader(
            (Direction.WRITE,), jobs, missing_bytes_reason_function(data_set.bytes_per_host)
        )

    def build_overwrite_command(
        self, data_set: DataSet, directory: str, passes: float, job: Job, *, seed: int
    ) -> Command:
        """Write over the data set so many times, with random contents, flushed at the end."""
        spec = overwrite_spec(
            data_set, passes, is_direct_io=job.direct, method=job.ioengine, seed=seed
        )
        limit_s = END_LIMIT_S + passes * data_set.bytes_per_host / SLOWEST_BYTES_PER_S
        return _agent_command(directory, spec, limit_s, waits_for_start=False)

    def create_overwrite_reader(self, data_set: DataSet, passes: float) -> OutputReader:
        """A reader that finds fault with a fill that wrote less than it should."""
        region = data_set_for_overwrite(data_set)
        wanted = region.numjobs * overwrite_job_bytes(region, passes)
        return NativeLineReader(
            (Direction.WRITE,), region.numjobs, missing_bytes_reason_function(wanted)
        )

    def build_measurement_command(
        self,
        job: Job,
        data_set: DataSet,
        directory: str,
        *,
        seconds: float,
        seed: int,
        arrival_shift_share: float = 0.0,
    ) -> Command:
        """Make the job's load on the laid-out files for so many seconds."""
        spec = measurement_spec(
            job, data_set, seconds, seed, arrival_shift_share=arrival_shift_share
        )
        return _agent_command(
            directory, spec, seconds + start_and_drain_limit_s(job), waits_for_start=True
        )

    def readback_command(self, job: Job, data_set: DataSet, directory: str) -> Command:
        """Read all that the job may have written, to its end."""
        spec = readback_spec(job, data_set)
        limit_s = END_LIMIT_S + data_set.bytes_per_host / SLOWEST_BYTES_PER_S
        return _agent_command(directory, spec, limit_s, waits_for_start=False)

    def create_readback_reader(self, job: Job) -> OutputReader:
        """A reader for the output of `readback_command`."""
        return NativeLineReader((Direction.READ,), job.numjobs)

    def build_null_target_command(self, job: Job, *, seconds: float) -> Command | None:
        """The same jobs for so many seconds on a target that does nothing; None of trims.

        Nothing that is there without a device takes those.
        """
        if job.access.has_trims:
            return None
        spec = null_target_spec(job, seconds)
        return _agent_command(NULL_FOLDER, spec, seconds + END_LIMIT_S, waits_for_start=False)

    def create_null_target_reader(self, job: Job) -> OutputReader:
        """A reader for the output of `build_null_target_command`."""
        return NativeLineReader((Direction.WRITE,), job.numjobs)

    def create_measurement_reader(self, job: Job) -> OutputReader:
        """A reader that expects the directions that the job has: a mix of 100 % has only one."""
        none = {Direction.READ: not has_reads(job), Direction.WRITE: not has_writes(job)}
        ways = [way for way in job.access.directions if not none.get(way, False)]
        return NativeLineReader(ways, job.numjobs)


def missing_bytes_reason_function(wanted_bytes: int) -> Callable[[EngineTotals], str | None]:
    """Says what a whole run of writes lacks of the bytes that were wanted."""

    def missing_bytes_reason(totals: EngineTotals) -> str | None:
        written = totals.write.bytes if totals.write else 0
        if written >= wanted_bytes:
            return None
        errors = totals.generator.errors if totals.generator else ()
        why = f" ({', '.join(f'{count} x {name}' for name, count in errors)})" if errors else ""
        return f"it wrote {written} of {wanted_bytes} bytes{why}"

    return missing_bytes_reason


def _with_settings_added_to_spec(command: Command, settings: Spec) -> Command:
    text = spec_json({**json.loads(command.job_file), **settings})
    return replace(command, stdin=text.encode("ascii"), job_file=text)


def _agent_command(
    directory: str, spec: Spec, wall_limit_s: float, *, waits_for_start: bool
) -> Command:
    text = spec_json(spec)
    return Command(
        argv=ARGV,
        cwd=directory,
        stdin=text.encode("ascii"),
        job_file=text,
        wall_limit_s=wall_limit_s,
        output_limit_bytes=(math.ceil(wall_limit_s) + SPARE_REPORTS) * REPORT_LIMIT_BYTES,
        waits_for_start=waits_for_start,
    )
