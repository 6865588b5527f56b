"""fio as an engine: real fio, told by a job file on standard input, read while it runs.

`json+` reports every second (`--status-interval=1`) carry cumulative counts with latency bins;
docs/decisions has why this and not fio's logs.
"""

from __future__ import annotations

import math
import shutil
import subprocess
from dataclasses import replace
from typing import Final

from iolab.core.engine import EngineName
from iolab.core.host import ToolFacts
from iolab.core.workload import DataSet, Direction
from iolab.errors import EngineError
from iolab.hosts.engine import Command, OutputReader
from iolab.hosts.message import printable
from iolab.loads.fileio.engine_facts import FIO_ENGINE, LIBAIO, fio_fault
from iolab.loads.fileio.engines.fio_job import (
    fill_job,
    fill_job_bytes,
    fill_set,
    layout_job,
    measure_job,
)
from iolab.loads.fileio.engines.fio_output import FioDocument
from iolab.loads.fileio.engines.fio_reader import FioReader
from iolab.loads.fileio.workload import Access, Job

NULL_FOLDER: Final = "/dev"
"""Where the device is: no path ever stands in a job file."""

NULL_ARGV: Final = ("fio", "--output-format=json+", "--eta=never", "-")
"""One report, at the end: so fio need not run for a whole second."""

_DEVICE: Final = "null"
_REGION_BYTES: Final = 1 << 30
"""What each job believes that it works on: offsets are drawn as on files of usual sizes."""


def null_job(job: Job, seconds: float) -> str:
    """The job file; EngineError names every value that cannot be told."""
    size = max(_REGION_BYTES // job.block_bytes, 1) * job.block_bytes
    access = Access.RANDWRITE if job.access.random else Access.WRITE
    same = replace(
        job, access=access, read_percent=None, direct=False, file_bytes=size, files_per_job=1
    )
    device = DataSet("null", "", job.numjobs, 1, size, device=_DEVICE)
    return measure_job(same, device, max(math.ceil(seconds * 1000), 1), 0)


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
_INSTALL: Final = "Install it there: `apt-get install fio`, `dnf install fio` or `zypper in fio`."


class FioEngine:
    """fio, started on the host by the agent; see `Engine`."""

    @property
    def name(self) -> EngineName:
        """The name in study files."""
        return FIO_ENGINE

    def check(self, tool: ToolFacts) -> None:
        """EngineError when fio is missing, unknown or older than 3.16."""
        if wrong := fio_fault(tool):
            raise EngineError(f"fio is {wrong}.", _INSTALL)

    def layout(self, data_set: DataSet, directory: str, job: Job | None, *, seed: int) -> Command:
        """Write every file of the data set once, with random contents, flushed at the end."""
        direct, ioengine = (job.direct, job.ioengine) if job else (True, LIBAIO)
        text = layout_job(data_set, direct=direct, ioengine=ioengine, seed=seed)
        limit_s = END_LIMIT_S + data_set.bytes_per_host / SLOWEST_BYTES_PER_S
        return _command(directory, text, limit_s)

    def layout_reader(self, data_set: DataSet) -> OutputReader:
        """A reader that finds fault with a layout that wrote less than the data set."""

        def missing(last: FioDocument) -> str | None:
            written = last.progress[Direction.WRITE].bytes
            wanted = data_set.bytes_per_host
            return None if written == wanted else f"fio wrote {written} of {wanted} bytes"

        return FioReader((Direction.WRITE,), fill_set(data_set).numjobs, missing)

    def fill(
        self, data_set: DataSet, directory: str, passes: float, job: Job, *, seed: int
    ) -> Command:
        """Write over the data set so many times, with random contents, flushed at the end."""
        text = fill_job(data_set, passes, direct=job.direct, ioengine=job.ioengine, seed=seed)
        limit_s = END_LIMIT_S + passes * data_set.bytes_per_host / SLOWEST_BYTES_PER_S
        return _command(directory, text, limit_s)

    def fill_reader(self, data_set: DataSet, passes: float) -> OutputReader:
        """A reader that finds fault with a fill that wrote less than it should."""
        whole = fill_set(data_set)
        wanted = whole.numjobs * fill_job_bytes(whole, passes)

        def missing(last: FioDocument) -> str | None:
            written = last.progress[Direction.WRITE].bytes
            return None if written >= wanted else f"fio wrote {written} of {wanted} bytes"

        return FioReader((Direction.WRITE,), whole.numjobs, missing)

    def measure(
        self,
        job: Job,
        data_set: DataSet,
        directory: str,
        *,
        seconds: float,
        seed: int,
        later: float = 0.0,  # noqa: ARG002 - fio begins at once
    ) -> Command:
        """Make the job's load on the laid-out files for so many seconds."""
        text = measure_job(job, data_set, max(math.ceil(seconds * 1000), 1), seed)
        return _command(directory, text, seconds + end_limit_s(job))

    def reader(self, job: Job) -> OutputReader:
        """A reader that expects the directions that the job's access pattern has."""
        return FioReader(job.access.directions, job.numjobs)

    def null(self, job: Job, *, seconds: float) -> Command | None:
        """The same jobs for so many seconds on `/dev/null`, which takes no trims: None of those."""
        if job.access.trims:
            return None
        return _command(NULL_FOLDER, null_job(job, seconds), seconds + END_LIMIT_S, NULL_ARGV)

    def null_reader(self, job: Job) -> OutputReader:
        """A reader of writes."""
        return FioReader((Direction.WRITE,), job.numjobs)


def end_limit_s(job: Job) -> float:
    """How long the job may take to start and, past its runtime, to wait for its I/Os in flight."""
    return END_LIMIT_S + job.depth_total * job.block_bytes / SLOWEST_BYTES_PER_S


def _command(
    directory: str, text: str, wall_limit_s: float, argv: tuple[str, ...] = _ARGV
) -> Command:
    return Command(
        argv=argv,
        cwd=directory,
        stdin=text.encode("ascii"),
        job_file=text,
        wall_limit_s=wall_limit_s,
        output_limit_bytes=(math.ceil(wall_limit_s) + SPARE_REPORTS) * REPORT_LIMIT_BYTES,
    )


FIO_ANSWER_S: Final = 20.0
"""To say its version; from a disk that sleeps it takes seconds."""


def no_usable_fio(search: str | None = None) -> str:
    """Half a sentence on why fio cannot be used here; empty when it can. `search`: a PATH."""
    program = shutil.which(FIO_ENGINE, path=search)
    if program is None:
        return "There is no fio on this machine"
    try:
        asked = subprocess.run(
            [program, "--version"], capture_output=True, check=False, timeout=FIO_ANSWER_S
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        return f"{program} does not run ({printable(str(fault))})"
    says = printable(asked.stdout.decode("utf-8", "replace").strip())
    wrong = fio_fault(ToolFacts(FIO_ENGINE, program, says))
    return f"{program} is {wrong}" if wrong else ""
