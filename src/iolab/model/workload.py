"""A workload is described behaviour; a job is that behaviour on one client with its numbers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from iolab.model.engine import EngineName
from iolab.model.key_value import KeyValueJob
from iolab.model.metadata import MetadataJob
from iolab.model.native_options import mean_bytes_of
from iolab.model.objective import EVERY_POINT, Aim
from iolab.model.ycsb import YcsbJob


class Access(StrEnum):
    """The access pattern, in fio's words (`rw=`)."""

    READ = "read"
    WRITE = "write"
    RANDREAD = "randread"
    RANDWRITE = "randwrite"
    RW = "rw"
    RANDRW = "randrw"
    TRIM = "trim"
    RANDTRIM = "randtrim"

    @property
    def reads(self) -> bool:
        """Whether any I/O of this pattern is a read."""
        return self in (Access.READ, Access.RANDREAD, Access.RW, Access.RANDRW)

    @property
    def writes(self) -> bool:
        """Whether any I/O of this pattern is a write."""
        return self in (Access.WRITE, Access.RANDWRITE, Access.RW, Access.RANDRW)

    @property
    def trims(self) -> bool:
        """Whether its I/Os are trims: discards, after which blocks hold nothing."""
        return self in (Access.TRIM, Access.RANDTRIM)

    @property
    def mixed(self) -> bool:
        """Whether the pattern both reads and writes."""
        return self.reads and self.writes

    @property
    def random(self) -> bool:
        """Whether offsets are drawn at random."""
        return self.value.startswith("rand")


class Contents(StrEnum):
    """What the written blocks hold."""

    SCRAMBLED = "scrambled"
    """fio's default: a few bytes of every sector differ from block to block."""
    RANDOM = "random"
    """Every block is new random bytes (fio's refill_buffers): costs client CPU."""
    ZEROS = "zeros"
    """Only zeros: what compresses or deduplicates will answer from memory."""


class Arrivals(StrEnum):
    """When I/Os arrive under a rate, whatever became of the ones before."""

    FIXED = "fixed"
    """One every 1/rate seconds."""
    POISSON = "poisson"
    """With exponential gaps, as independent users make them."""


@dataclass(frozen=True, slots=True)
class Job:
    """One client's share of a workload with every number settled.

    Bytes are bytes; `read_percent` is set for mixed access only. `rate_iops` and
    `rate_bytes_per_s` are per job, at most one of them is set, and none means as fast as the target
    answers; `fleet_rate_iops` is what all jobs of all hosts share, whose part of it a point has as
    its `rate_iops`. `arrivals` is how I/Os come under a rate; None leaves it to
    the engine. With `shared_file` the jobs of a host have one file, each its own part of it.
    `options` are further fio options, allow-listed by the engine. With `verify`, which
    the native engine alone can do, blocks that are read must hold what was last written there.
    """

    engine: EngineName
    access: Access
    block_bytes: int
    iodepth: int
    numjobs: int
    file_bytes: int
    files_per_job: int = 1
    read_percent: int | None = None
    direct: bool = True
    ioengine: str = "libaio"
    contents: Contents = Contents.SCRAMBLED
    rate_iops: int | None = None
    options: tuple[tuple[str, str], ...] = ()
    arrivals: Arrivals | None = None
    verify: bool = False
    rate_bytes_per_s: int | None = None
    fleet_rate_iops: int | None = None
    shared_file: bool = False

    @property
    def asked_iops(self) -> float | None:
        """I/Os a second that one job shall make in the mean, None for as many as it can."""
        if self.rate_iops is not None or self.rate_bytes_per_s is None:
            return self.rate_iops
        return self.rate_bytes_per_s / self.mean_block_bytes

    @property
    def mean_block_bytes(self) -> float:
        """Bytes of an I/O in the mean, where sizes are mixed too (fio's `bssplit`)."""
        split = dict(self.options).get("bssplit")
        if split is None:
            return self.block_bytes
        reads, _, others = split.partition(",")
        percent = 100 if not self.access.mixed else self.read_percent or 0
        share = percent / 100 if self.access.reads else 0.0
        mean = mean_bytes_of(reads) * share
        return mean + (mean_bytes_of(others or reads) * (1 - share) if share < 1 else 0.0)

    @property
    def depth_total(self) -> int:
        """I/Os that this client may hold in flight: iodepth x numjobs."""
        return self.iodepth * self.numjobs


AnyJob = Job | MetadataJob | KeyValueJob | YcsbJob
"""What one client is asked to do: I/O on files, operations on their metadata, or on keys."""


def io_of(job: AnyJob) -> Job:
    """The job, which is I/O on files; TypeError for any other."""
    if not isinstance(job, Job):
        raise TypeError(f"{job.engine} makes no I/O on files")
    return job


@dataclass(frozen=True, slots=True)
class Axis:
    """One parameter varied: its name as in the study file and the values in their order."""

    name: str
    values: tuple[int | str, ...]


class Indicator(StrEnum):
    """Which figure of a workload is its headline."""

    IOPS = "iops"
    BANDWIDTH = "bandwidth"
    LATENCY = "latency"
    OPERATIONS = "operations"
    """The rate of each metadata operation."""
    KEY_OPERATIONS = "key-operations"
    """Operations a second on a key-value store."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A described behaviour: the job at its first values, and the axes that vary it.

    `repeats` is how often each of its points is measured, None for as often as the method says.
    `aim` is what its axes are measured for.
    """

    id: str
    title: str
    job: AnyJob
    sweep: tuple[Axis, ...]
    indicator: Indicator
    repeats: int | None = None
    aim: Aim = EVERY_POINT

    @property
    def io(self) -> Job:
        """The job, which is I/O on files; TypeError for any other."""
        return io_of(self.job)
