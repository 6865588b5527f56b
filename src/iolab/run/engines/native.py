"""The native engine: the agent's own program in another mode, told by JSON, read while it runs.

It is there wherever the agent is, so no host has to have it installed. docs/reference/engines has
what it does otherwise than fio.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from iolab.model.engine import EngineName
from iolab.model.host import ToolFacts
from iolab.model.run import DataSet, EngineTotals
from iolab.model.sample import Direction, ways_of
from iolab.model.workload import Job
from iolab.run.engines.base import Command, OutputReader
from iolab.run.engines.fio import (
    END_LIMIT_S,
    REPORT_LIMIT_BYTES,
    SLOWEST_LAYOUT_BYTES_PER_S,
    SPARE_REPORTS,
)
from iolab.run.engines.fio_job import fill_job_bytes, fill_set
from iolab.run.engines.fio_null import NULL_FOLDER
from iolab.run.engines.native_reader import NativeReader
from iolab.run.engines.native_spec import (
    Spec,
    fill_spec,
    layout_spec,
    measure_spec,
    null_spec,
    reads,
    told,
    writes,
)

ARGV: Final = ("iolab-agent", "engine")
"""The agent runs its own program for this name."""


class NativeEngine:
    """The agent's engine, started on the host by the agent; see `Engine`."""

    @property
    def name(self) -> EngineName:
        """The name in study files."""
        return EngineName.NATIVE

    @property
    def version_argv(self) -> tuple[str, ...]:
        """Empty: it is no tool of the host. It tells its version when it runs."""
        return ()

    def check(self, tool: ToolFacts) -> None:
        """Nothing can be wrong: it is part of the agent."""

    def layout(
        self, data_set: DataSet, directory: str, *, direct: bool, ioengine: str, seed: int
    ) -> Command:
        """Write every file of the data set once, with random contents, flushed at the end."""
        spec = layout_spec(data_set, direct=direct, method=ioengine, seed=seed)
        limit_s = END_LIMIT_S + data_set.bytes_per_host / SLOWEST_LAYOUT_BYTES_PER_S
        return _command(directory, spec, limit_s, told_start=False)

    def layout_reader(self, data_set: DataSet) -> OutputReader:
        """A reader that finds fault with a layout that wrote less than the data set."""
        jobs = fill_set(data_set).numjobs
        return NativeReader((Direction.WRITE,), jobs, _lacks(data_set.bytes_per_host))

    def fill(
        self, data_set: DataSet, directory: str, passes: float, job: Job, *, seed: int
    ) -> Command:
        """Write over the data set so many times, with random contents, flushed at the end."""
        spec = fill_spec(data_set, passes, direct=job.direct, method=job.ioengine, seed=seed)
        limit_s = END_LIMIT_S + passes * data_set.bytes_per_host / SLOWEST_LAYOUT_BYTES_PER_S
        return _command(directory, spec, limit_s, told_start=False)

    def fill_reader(self, data_set: DataSet, passes: float) -> OutputReader:
        """A reader that finds fault with a fill that wrote less than it should."""
        whole = fill_set(data_set)
        wanted = whole.numjobs * fill_job_bytes(whole, passes)
        return NativeReader((Direction.WRITE,), whole.numjobs, _lacks(wanted))

    def measure(
        self,
        job: Job,
        data_set: DataSet,
        directory: str,
        *,
        seconds: float,
        seed: int,
        later: float = 0.0,
    ) -> Command:
        """Make the job's load on the laid-out files for so many seconds."""
        spec = measure_spec(job, data_set, seconds, seed, later=later)
        return _command(directory, spec, seconds + END_LIMIT_S, told_start=True)

    def null(self, job: Job, *, seconds: float) -> Command | None:
        """The same jobs for so many seconds on a target that does nothing; None of trims.

        Nothing that is there without a device takes those.
        """
        if job.access.trims:
            return None
        spec = null_spec(job, seconds)
        return _command(NULL_FOLDER, spec, seconds + END_LIMIT_S, told_start=False)

    def null_reader(self, job: Job) -> OutputReader:
        """A reader for the output of `null`."""
        return NativeReader((Direction.WRITE,), job.numjobs)

    def reader(self, job: Job) -> OutputReader:
        """A reader that expects the directions that the job has: a mix of 100 % has only one."""
        none = {Direction.READ: not reads(job), Direction.WRITE: not writes(job)}
        ways = [way for way in ways_of(job.access) if not none.get(way, False)]
        return NativeReader(ways, job.numjobs)


def _lacks(wanted: int) -> Callable[[EngineTotals], str | None]:
    """Says what a whole run of writes lacks of the bytes that were wanted."""

    def lacks(totals: EngineTotals) -> str | None:
        written = totals.write.bytes if totals.write else 0
        if written >= wanted:
            return None
        errors = totals.generator.errors if totals.generator else ()
        why = f" ({', '.join(f'{count} x {name}' for name, count in errors)})" if errors else ""
        return f"it wrote {written} of {wanted} bytes{why}"

    return lacks


def _command(directory: str, spec: Spec, wall_limit_s: float, *, told_start: bool) -> Command:
    text = told(spec)
    return Command(
        argv=ARGV,
        cwd=directory,
        stdin=text.encode("ascii"),
        job_file=text,
        wall_limit_s=wall_limit_s,
        output_limit_bytes=(math.ceil(wall_limit_s) + SPARE_REPORTS) * REPORT_LIMIT_BYTES,
        told_start=told_start,
    )
