"""fio as an engine: real fio, told by a job file on standard input, read while it runs.

`json+` reports every second (`--status-interval=1`) carry cumulative counts with latency bins;
docs/decisions has why this and not fio's logs.

A job file is written from a job's numbers: never from text that a study holds. Every line is
`name=value` with a name of ours and a value that is a number, a word of an enumeration, or matches
the pattern of an allow-listed option as a whole. Paths never stand in a job file: fio is started in
the target folder and the files' names are made of safe characters, so what fio would make of `:`,
`$`, `#`, `;`, quotes or line ends in a path does not matter.
"""

from __future__ import annotations

import math
import re
import shutil
import subprocess
from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from iolab.core.engine import EngineName
from iolab.core.host import ToolFacts
from iolab.core.workload import DataSet, Direction
from iolab.errors import EngineError, Fault
from iolab.hosts.engine import Command, OutputReader
from iolab.loads.fileio.engine_facts import FIO_ENGINE, LIBAIO, fio_unusable_reason
from iolab.loads.fileio.engines.fio_output import FioDocument
from iolab.loads.fileio.engines.fio_reader import FioOutputReader
from iolab.loads.fileio.options import FIO_OPTIONS
from iolab.loads.fileio.workload import (
    IOENGINES,
    SECTOR_BYTES,
    AccessPattern,
    IoArrivals,
    Job,
    WrittenContents,
)
from iolab.study.values import program_option_text
from iolab.text import excerpt

NULL_FOLDER: Final = "/dev"
"""Where the device is: no path ever stands in a job file."""

NULL_ARGV: Final = ("fio", "--output-format=json+", "--eta=never", "-")
"""One report, at the end: so fio need not run for a whole second."""

_DEVICE: Final = "null"
_REGION_BYTES: Final = 1 << 30
"""What each job believes that it works on: offsets are drawn as on files of usual sizes."""

END_LIMIT_S: Final = 60.0
"""For an engine to start its jobs and to end them, beside what it still has to move."""

SLOWEST_BYTES_PER_S: Final = 100_000
"""What moves less on a host is taken for hung: the part of each of fifty hosts that share a disk of
5 MB/s. A limit that an honest layout on a busy disk can meet would end its session."""

REPORT_LIMIT_BYTES: Final = 256 << 10
"""The largest report: every bin of both directions, about 60 bytes a line."""

SPARE_REPORTS: Final = 60
"""Reports that a run may print beyond one a second: a late end, and the final one."""

_ARGV: Final = ("fio", "--output-format=json+", "--status-interval=1", "--eta=never", "-")
_INSTALL_HINT: Final = (
    "Install it there: `apt-get install fio`, `dnf install fio` or `zypper in fio`."
)

FIO_ANSWER_S: Final = 20.0
"""To say its version; from a disk that sleeps it takes seconds."""

FIO_WORDS_MAX: Final = 200
"""Characters of its words that go into a sentence where it fails."""

JOBS_MAX: Final = 4096
"""fio's own limit of jobs in one process tree (`--max-jobs`)."""

DEPTH_MAX: Final = 65536
"""Above what any kernel queue takes; a larger number is a slip of the pen."""

LAYOUT_BLOCK_BYTES: Final = 1 << 20
"""Written at once while files are laid out: large enough for any device's full bandwidth."""

LAYOUT_DEPTH: Final = 4
"""Blocks in flight for each file: with one file it keeps a device busy, with 64 it is harmless."""

DIRECT_ALIGN_BYTES: Final = 4096
"""O_DIRECT works at this alignment on every device; at 512 bytes only on some."""

FILL_BLOCK_BYTES: Final = 128 << 10

FILL_DEPTH: Final = 32
"""Block and queue of SNIA's workload-independent preconditioning."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,100}")

_CONTENTS: Final = {
    WrittenContents.SCRAMBLED: "scramble_buffers=1",
    WrittenContents.RANDOM: "refill_buffers=1",
    WrittenContents.ZEROS: "zero_buffers=1",
}

_NOT_EXPRESSIBLE: Final = "fio cannot be told this job"


def null_target_job_file(job: Job, seconds: float) -> str:
    """The job file; EngineError names every value that cannot be told."""
    size = max(_REGION_BYTES // job.block_bytes, 1) * job.block_bytes
    access = AccessPattern.RANDWRITE if job.access.is_random else AccessPattern.WRITE
    same = replace(
        job, access=access, read_percent=None, direct=False, file_bytes=size, files_per_job=1
    )
    device = DataSet("null", "", job.numjobs, 1, size, device=_DEVICE)
    return measurement_job_file(same, device, max(math.ceil(seconds * 1000), 1), 0)


class FioEngine:
    """fio, started on the host by the agent; see `SingleProcessEngine`."""

    @property
    def name(self) -> EngineName:
        """The name in study files."""
        return FIO_ENGINE

    def require_usable(self, tool: ToolFacts) -> None:
        """EngineError when fio is missing, unknown or older than 3.16."""
        if wrong := fio_unusable_reason(tool):
            raise EngineError(f"fio is {wrong}.", _INSTALL_HINT)

    def build_layout_command(
        self, data_set: DataSet, directory: str, job: Job | None, *, seed: int
    ) -> Command:
        """Write every file of the data set once, with random contents, flushed at the end."""
        direct, ioengine = (job.direct, job.ioengine) if job else (True, LIBAIO)
        text = layout_job_file(data_set, is_direct_io=direct, ioengine=ioengine, seed=seed)
        limit_s = END_LIMIT_S + data_set.bytes_per_host / SLOWEST_BYTES_PER_S
        return _fio_command(directory, text, limit_s)

    def create_layout_reader(self, data_set: DataSet) -> OutputReader:
        """A reader that finds fault with a layout that wrote less than the data set."""

        def incomplete_layout_reason(last_document: FioDocument) -> str | None:
            written = last_document.progress[Direction.WRITE].bytes
            wanted = data_set.bytes_per_host
            return None if written == wanted else f"fio wrote {written} of {wanted} bytes"

        return FioOutputReader(
            (Direction.WRITE,), data_set_for_overwrite(data_set).numjobs, incomplete_layout_reason
        )

    def build_overwrite_command(
        self, data_set: DataSet, directory: str, passes: float, job: Job, *, seed: int
    ) -> Command:
        """Write over the data set so many times, with random contents, flushed at the end."""
        text = overwrite_job_file(
            data_set, passes, is_direct_io=job.direct, ioengine=job.ioengine, seed=seed
        )
        limit_s = END_LIMIT_S + passes * data_set.bytes_per_host / SLOWEST_BYTES_PER_S
        return _fio_command(directory, text, limit_s)

    def create_overwrite_reader(self, data_set: DataSet, passes: float) -> OutputReader:
        """A reader that finds fault with a fill that wrote less than it should."""
        region = data_set_for_overwrite(data_set)
        wanted = region.numjobs * overwrite_job_bytes(region, passes)

        def incomplete_overwrite_reason(last_document: FioDocument) -> str | None:
            written = last_document.progress[Direction.WRITE].bytes
            return None if written >= wanted else f"fio wrote {written} of {wanted} bytes"

        return FioOutputReader((Direction.WRITE,), region.numjobs, incomplete_overwrite_reason)

    def build_measurement_command(
        self,
        job: Job,
        data_set: DataSet,
        directory: str,
        *,
        seconds: float,
        seed: int,
        arrival_shift_share: float = 0.0,  # noqa: ARG002 - fio begins at once
    ) -> Command:
        """Make the job's load on the laid-out files for so many seconds."""
        text = measurement_job_file(job, data_set, max(math.ceil(seconds * 1000), 1), seed)
        return _fio_command(directory, text, seconds + start_and_drain_limit_s(job))

    def create_measurement_reader(self, job: Job) -> OutputReader:
        """A reader that expects the directions that the job's access pattern has."""
        return FioOutputReader(job.access.directions, job.numjobs)

    def build_null_target_command(self, job: Job, *, seconds: float) -> Command | None:
        """The same jobs for so many seconds on `/dev/null`, which takes no trims: None of those."""
        if job.access.has_trims:
            return None
        return _fio_command(
            NULL_FOLDER, null_target_job_file(job, seconds), seconds + END_LIMIT_S, NULL_ARGV
        )

    def create_null_target_reader(self, job: Job) -> OutputReader:
        """A reader of writes."""
        return FioOutputReader((Direction.WRITE,), job.numjobs)


def start_and_drain_limit_s(job: Job) -> float:
    """How long the job may take to start and, past its runtime, to wait for its I/Os in flight."""
    return END_LIMIT_S + job.iodepth_per_client * job.block_bytes / SLOWEST_BYTES_PER_S


def _fio_command(
    directory: str, job_file: str, wall_limit_s: float, argv: tuple[str, ...] = _ARGV
) -> Command:
    return Command(
        argv=argv,
        cwd=directory,
        stdin=job_file.encode("ascii"),
        job_file=job_file,
        wall_limit_s=wall_limit_s,
        output_limit_bytes=(math.ceil(wall_limit_s) + SPARE_REPORTS) * REPORT_LIMIT_BYTES,
    )


def local_fio_unusable_reason(path_variable: str | None = None) -> str:
    """Half a sentence on why fio, sought in such a PATH, is of no use here; empty when it is."""
    program = shutil.which(FIO_ENGINE, path=path_variable)
    if program is None:
        return "There is no fio on this machine"
    try:
        asked = subprocess.run(
            [program, "--version"], capture_output=True, check=False, timeout=FIO_ANSWER_S
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        return f"{program} does not run ({excerpt(str(fault))})"
    message = excerpt(asked.stdout.decode("utf-8", "replace").strip())
    if asked.returncode:
        words = excerpt(asked.stderr.decode("utf-8", "replace").strip(), FIO_WORDS_MAX)
        how = f"signal {-asked.returncode}" if asked.returncode < 0 else f"code {asked.returncode}"
        return f"{program} does not run (it ended with {how}: {words or message})"
    wrong = fio_unusable_reason(ToolFacts(FIO_ENGINE, program, message))
    return f"{program} is {wrong}" if wrong else ""


def measurement_job_file(job: Job, data_set: DataSet, runtime_ms: int, seed: int) -> str:
    """The job file that makes the job's load; EngineError names every value that cannot be told.

    The files must be there: `allow_file_create=0` makes a missing one an error instead of a hole.
    Offsets depend on `seed` and the job's number alone (`randseed`).
    """
    raise_if_faults(
        _NOT_EXPRESSIBLE,
        (
            *_job_faults(job),
            *_data_set_name_faults(data_set),
            *data_set_mismatch_faults(job, data_set),
            *_seed_faults(seed),
        ),
    )
    lines = [
        f"ioengine={job.ioengine}",
        f"direct={int(job.direct)}",
        f"rw={job.access.value}",
        *_mix_and_rate_options(job),
        f"bs={job.block_bytes}",
        f"iodepth={job.iodepth}",
        f"numjobs={job.numjobs}",
        *_file_options(data_set),
        "fallocate=none",
        "overwrite=1",
        "allow_file_create=0",
        "create_on_open=0",
        _CONTENTS[job.contents],
        "randrepeat=1",
        f"randseed={_fio_seed(seed)}",
        "time_based=1",
        f"runtime={runtime_ms}ms",
        *_common_options(),
        *(f"{name}={program_option_text(value)}" for name, value in job.options),
    ]
    return _job_file_text("measure", lines)


def layout_job_file(data_set: DataSet, *, is_direct_io: bool, ioengine: str, seed: int) -> str:
    """The job file that writes every byte of the data set once, with random contents.

    The block is the largest power of two up to 1 MiB that divides the file size, because fio
    leaves out a last partial block; below 4 KiB the files are written through the page cache.
    Space is reserved first (`fallocate`), so that writing 64 files at once does not interleave
    their extents, and everything is flushed before fio ends.
    """
    region = data_set_for_overwrite(data_set)
    block = layout_block_bytes(region.file_bytes)
    raise_if_faults(
        _NOT_EXPRESSIBLE, (*_layout_faults(region, block, ioengine), *_seed_faults(seed))
    )
    lines = [
        f"ioengine={ioengine}",
        f"direct={int(is_direct_io and block >= DIRECT_ALIGN_BYTES)}",
        "rw=write",
        f"bs={block}",
        f"iodepth={LAYOUT_DEPTH}",
        f"numjobs={region.numjobs}",
        *_file_options(region),
        "openfiles=1",
        "file_service_type=sequential",
        "fallocate=native",
        "refill_buffers=1",
        f"randseed={_fio_seed(seed)}",
        "end_fsync=1",
        "fsync_on_close=1",
        *_common_options(),
    ]
    return _job_file_text("layout", lines)


def overwrite_job_file(
    data_set: DataSet, passes: float, *, is_direct_io: bool, ioengine: str, seed: int
) -> str:
    """The job file that writes over the data set so many times, sequentially, in 128 KiB.

    This is SNIA's workload-independent preconditioning. On a device one job goes from the start of
    the region to its end and begins again; files are written over by a job each.
    """
    raise_if_faults(
        _NOT_EXPRESSIBLE, (*_layout_faults(data_set, SECTOR_BYTES, ioengine), *_seed_faults(seed))
    )
    region = data_set_for_overwrite(data_set)
    block = overwrite_block_bytes(region)
    lines = [
        f"ioengine={ioengine}",
        f"direct={int(is_direct_io and block >= DIRECT_ALIGN_BYTES)}",
        "rw=write",
        f"bs={block}",
        f"iodepth={FILL_DEPTH}",
        f"numjobs={region.numjobs}",
        *_file_options(region),
        f"io_size={overwrite_job_bytes(region, passes)}",
        "fallocate=none",
        "overwrite=1",
        "allow_file_create=0",
        "refill_buffers=1",
        f"randseed={_fio_seed(seed)}",
        "end_fsync=1",
        *_common_options(),
    ]
    return _job_file_text("fill", lines)


def data_set_for_overwrite(data_set: DataSet) -> DataSet:
    """The data set as a fill goes over it: a device or shared file as one region, else as it is."""
    if not data_set.shared_region_name:
        return data_set
    return replace(data_set, numjobs=1, files_per_job=1, file_bytes=data_set.bytes_per_host)


def overwrite_block_bytes(data_set: DataSet) -> int:
    """128 KiB, or what of it divides the files."""
    return min(data_set.file_bytes & -data_set.file_bytes, FILL_BLOCK_BYTES)


def overwrite_job_bytes(data_set: DataSet, passes: float) -> int:
    """What each job of a fill writes: whole blocks."""
    block = overwrite_block_bytes(data_set)
    return math.ceil(data_set.bytes_per_job * passes / block) * block


def layout_block_bytes(file_bytes: int) -> int:
    """The largest power of two that divides the file size, at most 1 MiB."""
    return min(file_bytes & -file_bytes, LAYOUT_BLOCK_BYTES)


def _file_options(data_set: DataSet) -> tuple[str, ...]:
    if data_set.shared_region_name:
        return (
            f"filename={data_set.shared_region_name}",
            f"size={data_set.bytes_per_job}",
            f"offset_increment={data_set.bytes_per_job}",
        )
    return (
        f"nrfiles={data_set.files_per_job}",
        f"filesize={data_set.file_bytes}",
        f"size={data_set.files_per_job * data_set.file_bytes}",
        f"filename_format={data_set.id}.$jobnum.$filenum",
    )


def _common_options() -> tuple[str, ...]:
    """One group, whole latencies (`lat`) in bins, no disk figures (ours are better), one end."""
    return (
        "group_reporting=1",
        "lat_percentiles=1",
        "clat_percentiles=0",
        "disk_util=0",
        "exitall_on_error=1",
    )


def _mix_and_rate_options(job: Job) -> tuple[str, ...]:
    """The mix and the rate: fio's rate holds for each direction, ours for both together.

    Of Poisson arrivals at a rate of bytes fio takes whole I/Os a second, and divides by them: so
    they are told in I/Os, rounded and not cut off.
    """
    percent = job.read_percent if job.access.is_mixed else None
    mix = () if percent is None else (f"rwmixread={percent}",)
    key, rate, unit = "rate_iops", job.rate_iops, 1
    if rate is None and job.rate_bytes_per_s is not None:
        rate = job.rate_bytes_per_s
        key, unit = ("rate_iops", job.block_bytes) if _has_poisson_arrivals(job) else ("rate", 1)
    if rate is None:
        return mix
    reads = rate if percent is None else round(rate * percent / 100)
    shares = (reads,) if percent is None else (reads, rate - reads)
    weights = ",".join(str(max(round(share / unit), 1)) for share in shares)
    return (*mix, f"{key}={weights}", *_rate_process_options(job))


def _has_poisson_arrivals(job: Job) -> bool:
    process = dict(job.options).get("rate_process")
    return job.arrivals is IoArrivals.POISSON or process == "poisson"


def _rate_process_options(job: Job) -> tuple[str, ...]:
    """Even or exponential gaps between I/Os, by the thread that also takes the answers.

    Not by threads of their own: fio 3.33 with io_submit_mode=offload seldom ends by itself.
    """
    if job.arrivals is None:
        return ()
    process = "poisson" if job.arrivals is IoArrivals.POISSON else "linear"
    return (f"rate_process={process}",)


def _job_file_text(section: str, lines: Iterable[str]) -> str:
    return f"[{section}]\n" + "".join(f"{line}\n" for line in lines)


def _fio_seed(seed: int) -> int:
    """Ours plus one: fio multiplies its seed with the job's number, so 0 makes all jobs alike."""
    return seed + 1


def _job_faults(job: Job) -> Iterable[Fault]:
    if job.ioengine not in IOENGINES:
        yield Fault(f"ioengine '{job.ioengine}' is not one of {', '.join(IOENGINES)}.", "Choose.")
    yield from _out_of_range_faults("block size", job.block_bytes, SECTOR_BYTES, 1 << 30)
    yield from _out_of_range_faults("iodepth", job.iodepth, 1, DEPTH_MAX)
    yield from _out_of_range_faults("numjobs", job.numjobs, 1, JOBS_MAX)
    if job.rate_iops is not None:
        yield from _out_of_range_faults("rate_iops", job.rate_iops, 1, 1 << 31)
    if job.rate_bytes_per_s is not None:
        yield from _out_of_range_faults("rate", job.rate_bytes_per_s, 1, 1 << 40)
    if job.read_percent is not None:
        yield from _out_of_range_faults("rwmixread", job.read_percent, 0, 100)
    for name, value in job.options:
        option = FIO_OPTIONS.get(name)
        if option is None:
            yield Fault(f"fio option '{name}' is not on the list of allowed ones.", "Remove it.")
        elif not FIO_OPTIONS[name].accepts_value(program_option_text(value)):
            yield Fault(f"fio option {name} does not take {value!r}.", f"Try {option.example}.")


def data_set_mismatch_faults(job: Job, data_set: DataSet) -> Iterable[Fault]:
    """Why a job cannot work on the files that are laid out."""
    hint = "Lay out files that fit the job."
    if job.numjobs > data_set.numjobs:
        yield Fault(f"{job.numjobs} jobs need more than {data_set.numjobs} jobs' files.", hint)
    if (job.files_per_job, job.file_bytes) != (data_set.files_per_job, data_set.file_bytes):
        yield Fault(
            f"The job asks for {job.files_per_job} files of {job.file_bytes} bytes, the data set "
            f"has {data_set.files_per_job} of {data_set.file_bytes}.",
            hint,
        )
    if job.block_bytes > job.file_bytes:
        yield Fault(f"A block of {job.block_bytes} exceeds a file of {job.file_bytes} bytes.", hint)


def _layout_faults(data_set: DataSet, block_bytes: int, ioengine: str) -> Iterable[Fault]:
    yield from _data_set_name_faults(data_set)
    yield from _out_of_range_faults("numjobs", data_set.numjobs, 1, JOBS_MAX)
    yield from _out_of_range_faults("files per job", data_set.files_per_job, 1, 1 << 20)
    if ioengine not in IOENGINES:
        yield Fault(f"ioengine '{ioengine}' is not one of {', '.join(IOENGINES)}.", "Choose one.")
    if data_set.file_bytes < SECTOR_BYTES or block_bytes < SECTOR_BYTES:
        yield Fault(
            f"A file of {data_set.file_bytes} bytes is not a multiple of {SECTOR_BYTES}.",
            "Choose a filesize that is, best a multiple of 1 MiB.",
        )


def _data_set_name_faults(data_set: DataSet) -> Iterable[Fault]:
    if data_set.device and not _NAME.fullmatch(data_set.device):
        yield Fault(f"fio cannot be told the device '{data_set.device}'.", "Name it otherwise.")
    if not _NAME.fullmatch(data_set.id):
        yield Fault(f"'{data_set.id}' cannot begin file names.", "Use letters, digits, '-', '_'.")


def _seed_faults(seed: int) -> Iterable[Fault]:
    yield from _out_of_range_faults("seed", seed, 0, (1 << 62) - 1)


def _out_of_range_faults(name: str, value: int, low: int, high: int) -> Iterable[Fault]:
    if not low <= value <= high:
        yield Fault(f"{name} {value} is not within {low} and {high}.", "Choose one that is.")


def raise_if_faults(message: str, faults: tuple[Fault, ...]) -> None:
    """EngineError with all faults of a job, if there are any."""
    if faults:
        raise EngineError(
            f"{message}: " + " ".join(fault.message for fault in faults),
            " ".join(dict.fromkeys(fault.hint for fault in faults)),
            faults,
        )
