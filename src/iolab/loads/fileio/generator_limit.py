"""How much load a generator can make at all: what of a job decides it, and how long a look takes.

Pure. A session looks once at each kind of job on each set of hosts, all of them at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from iolab.core.engine import EngineName
from iolab.core.run import PlannedRun, Point
from iolab.core.study import Study
from iolab.loads.fileio.engine_facts import FILE_ENGINES
from iolab.loads.fileio.workload import Access, Contents, Job
from iolab.study.targets import makers_of

ANY_BLOCK_BYTES: Final = 4096
"""The block where its size does not matter, since nobody looks at what is in it."""

_TARGETS: Final = frozenset(
    {
        "fdatasync",
        "fsync",
        "hipri",
        "rate_ignore_thinktime",
        "rate_process",
        "sync",
        "thinktime",
        "thinktime_blocks",
        "thinktime_blocks_type",
        "thinktime_spin",
        "write_barrier",
        "write_hint",
    }
)
"""Options by which a job waits, or asks its target for what a target that does nothing refuses."""

MOSTLY_READS_PERCENT: Final = 50
"""From this share of reads on, a look that filled every block would cost more than the mix does."""

_CONTENTS: Final = frozenset(
    {"buffer_compress_chunk", "buffer_compress_percentage", "dedupe_percentage"}
)
"""Options of what written blocks hold."""


def kind_of(job: Job) -> Job:
    """The job with only what decides how fast its generator can be, at full speed.

    Reads and writes are writes there, since nothing can be read without a target that gives it:
    those of a job that only or mostly reads cost nothing to fill, and then the size of a block
    matters no more. Trims stay what they are.
    """
    reads = job.read_percent if job.access.mixed else None
    fills = job.access.writes and (reads is None or reads < MOSTLY_READS_PERCENT)
    dropped = _TARGETS if fills else _TARGETS | _CONTENTS
    options = tuple(item for item in job.options if item[0] not in dropped)
    sized = fills or any(name in ("bssplit", "blockalign") for name, _ in options)
    access = Access.RANDWRITE if job.access.random else Access.WRITE
    return replace(
        job,
        access=job.access if job.access.trims else access,
        read_percent=None,
        block_bytes=job.block_bytes if sized else ANY_BLOCK_BYTES,
        contents=job.contents if fills else Contents.ZEROS,
        options=options,
        rate_iops=None,
        rate_bytes_per_s=None,
        fleet_rate_iops=None,
        arrivals=None,
        file_bytes=0,
        files_per_job=1,
        shared_file=False,
        direct=False,
        verify=False,
    )


def limit_reasons(study: Study, runs: Iterable[PlannedRun]) -> tuple[tuple[str, float], ...]:
    """What all looks of a session take, a reason for each engine."""
    if not study.method.generator_limit:
        return ()
    known: set[tuple[frozenset[str], tuple[tuple[str, int], ...], Job]] = set()
    looks: dict[EngineName, int] = {}
    for run in runs:
        point = run.point
        if not isinstance(point.job, Job) or point.job.access.trims:
            continue
        kind = (frozenset(makers_of(study, point)), point.host_numjobs, kind_of(point.job))
        if kind not in known:
            looks[point.job.engine] = looks.get(point.job.engine, 0) + 1
        known.add(kind)
    return tuple(
        (f"{_kinds(count)}: {engine}'s ceiling, on a null target", seconds)
        for engine, count in looks.items()
        if (seconds := count * FILE_ENGINES[engine].look_s)
    )


def look_notes(study: Study, points: Iterable[Point]) -> Iterator[str]:
    """What is told of looks that the study leaves out: how far results can go without them."""
    looked = (p.job for p in points if isinstance(p.job, Job))
    if not study.method.generator_limit and any(not job.access.trims for job in looked):
        without = "results are at most indicative"
        yield f"no engine's limit is measured (method.generator_limit = false): {without}"


def _kinds(count: int) -> str:
    return "1 kind of job" if count == 1 else f"{count} kinds of job"
