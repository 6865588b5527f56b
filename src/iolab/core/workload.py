"""A workload is described behaviour; a job is that behaviour on one client with its numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Final, NewType, Self

from iolab.core.configuration import EVERY_POINT, WorkloadObjective
from iolab.core.engine import EngineName
from iolab.core.metric_spec import Combine, spec_of
from iolab.core.owned import Owned
from iolab.units import parse_size


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


SYNC_IOENGINES: Final = ("psync", "sync", "pvsync", "pvsync2")
"""One I/O at a time: iodepth above 1 has no effect on them."""

ASYNC_IOENGINES: Final = ("libaio", "io_uring", "posixaio")
"""As many I/Os in flight as iodepth says."""

IOENGINES: Final = ASYNC_IOENGINES + SYNC_IOENGINES


_MIX_AXIS: Final = "rwmixread"


FIO_ENGINE: Final = EngineName("fio")
NATIVE_ENGINE: Final = EngineName("native")
"""Engines of I/O on files and devices; the agent itself is the second."""


class Direction(IntEnum):
    """Which way an I/O goes; the number stands in files."""

    READ = 0
    WRITE = 1
    TRIM = 2


PER_NODE: Final = "vms_per_node"
"""The axis of a growing fleet: how many guests of each hypervisor make load."""

HOSTS: Final = "hosts"
"""The axis of a growing number of clients: the first of each configuration make load."""


class AnyJob(Owned):
    """What one client is asked to do, of whatever kind its load is.

    `warms_up` is whether the first seconds of its load do not count, `tells_latency` whether its
    engine tells latencies while it runs, `fills_store` whether a store is filled for its runs.
    """

    __slots__ = ()

    warms_up: ClassVar[bool] = True
    tells_latency: ClassVar[bool] = True
    fills_store: ClassVar[bool] = False

    if TYPE_CHECKING:

        @property
        def engine(self) -> EngineName:
            """What makes this load."""

        def at(self, axis: Iterable[tuple[str, int | str]]) -> Self:
            """The job with the axis values in place of its first ones."""

    @property
    def options(self) -> tuple[tuple[str, str], ...]:
        """Further options of the engine, which it allows."""
        return ()

    @property
    def io(self) -> Job | None:
        """The job where it is I/O on files; None for any other."""
        return None

    @property
    def inodes(self) -> int:
        """Inodes that one client's share needs, where its load makes files of its own."""
        return 0

    @property
    def memory_bytes(self) -> int | None:
        """The bound of memory that its processes are held to; None for none."""
        return None

    @property
    def uses_server(self) -> bool:
        """Whether it may work against the study's server."""
        return False

    @property
    def counts_errors_late(self) -> bool:
        """Whether its engine goes on after errors, which only its last word tells of."""
        return False

    def served_by(self, server: Any) -> Mapping[str, object]:  # noqa: ANN401, ARG002 - a kind's own
        """What of the study's server makes a point another one."""
        return {}

    def mix_at(self, axis: Mapping[str, int | str]) -> tuple[str, str] | None:  # noqa: ARG002
        """The kind of load, and its mix of operations at those values of a point's axes.

        Points with one mix spread alike over runs. None where nothing is known of that.
        """
        return None


@dataclass(frozen=True, slots=True)
class Job(AnyJob):
    """One client's share of a workload with every number settled.

    Bytes are bytes; `read_percent` is set for mixed access only. `rate_iops` and
    `rate_bytes_per_s` are per job, at most one of them is set, and none means as fast as the target
    answers; `fleet_rate_iops` is what all jobs of all hosts share, whose part of it a point has as
    its `rate_iops`. `arrivals` is how I/Os come under a rate; None leaves it to
    the engine. With `shared_file` the jobs of a host have one file, each its own part of it.
    `options` are further fio options, allow-listed by the engine. With `verify`, which
    the native engine alone can do, blocks that are read must hold what was last written there.
    """

    stored_as: ClassVar[str] = "io"

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
    def io(self) -> Job:
        """See `AnyJob`."""
        return self

    @property
    def counts_errors_late(self) -> bool:
        """See `AnyJob`."""
        return self.engine == NATIVE_ENGINE

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

    def mix_at(self, axis: Mapping[str, int | str]) -> tuple[str, str]:
        """See `AnyJob`."""
        percent = axis.get(_MIX_AXIS, self.read_percent) if self.access.mixed else ""
        return "io", f"{self.access.value}{percent}"

    @property
    def depth_total(self) -> int:
        """I/Os that this client may hold in flight: iodepth x numjobs."""
        return self.iodepth * self.numjobs

    def at(self, axis: Iterable[tuple[str, int | str]]) -> Job:
        """The job with the axis values in place of its first ones."""
        changes: dict[str, Any] = {}
        for name, value in axis:
            match name:
                case "bs":
                    changes["block_bytes"] = parse_size(value)
                case "filesize":
                    changes["file_bytes"] = parse_size(value)
                case "rate":
                    changes["rate_bytes_per_s"] = parse_size(value)
                case "rwmixread":
                    changes["read_percent"] = value
                case "vms_per_node" | "hosts":
                    pass  # It says who has the job, not what it is.
                case _:
                    changes[name] = value
        return replace(self, **changes)


def io_of(job: AnyJob) -> Job:
    """The job, which is I/O on files; TypeError for any other."""
    if job.io is None:
        raise TypeError(f"{job.engine} makes no I/O on files")
    return job.io


WHOLE: Final = 100
"""Percent."""


def shares_of(bssplit: str) -> tuple[tuple[int, int], ...]:
    """The sizes of fio's `bssplit` in bytes, each with its share in percent.

    Sizes without a share divide what the others leave, in whole percents.
    """
    parts = [part.partition("/") for part in bssplit.split(":")]
    known = sum(int(share) for _, _, share in parts if share)
    blank = sum(1 for _, _, share in parts if not share)
    each = max(WHOLE - known, 0) // max(blank, 1)
    return tuple((parse_size(size), int(share) if share else each) for size, _, share in parts)


def mean_bytes_of(bssplit: str) -> float:
    """Bytes of an I/O in the mean; what is left of a hundred percent goes to the last size.

    Shares come to 1 to 100 percent: studies with others are refused.
    """
    drawn = [(size, share) for size, share in shares_of(bssplit) if share]
    left = WHOLE - sum(share for _, share in drawn)
    return (sum(size * share for size, share in drawn) + drawn[-1][0] * left) / WHOLE


@dataclass(frozen=True, slots=True)
class Axis:
    """One parameter varied: its name as in the study file and the values in their order."""

    name: str
    values: tuple[int | str, ...]


Indicator = NewType("Indicator", str)
"""Which figure of a workload is its headline: one of the words below, or a metric's key."""

BY_IOPS: Final = Indicator("iops")
BY_BANDWIDTH: Final = Indicator("bandwidth")
BY_LATENCY: Final = Indicator("latency")
BY_OPERATIONS: Final = Indicator("operations")
"""The rate of each metadata operation: no single figure."""
BY_KEY_OPERATIONS: Final = Indicator("key-operations")
"""Operations a second on a key-value store."""

_METRICS: Final[Mapping[str, str | None]] = {
    BY_IOPS: "iops",
    BY_BANDWIDTH: "bw_bytes_per_s",
    BY_LATENCY: "lat_ns_mean",
    BY_OPERATIONS: None,
    BY_KEY_OPERATIONS: "ops_per_s",
}


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
    aim: WorkloadObjective = EVERY_POINT

    @property
    def metric(self) -> str | None:
        """The key of the metric that is its headline; None where no single one is."""
        return _METRICS.get(self.indicator, self.indicator)

    @property
    def rate(self) -> str:
        """The key of the rate of its load, whatever its headline is."""
        key = self.metric
        return key if key and spec_of(key).combine is Combine.RATE else "iops"

    @property
    def figure(self) -> str:
        """The key of its headline, or of its rate where no single metric is."""
        return self.metric or self.rate

    @property
    def io(self) -> Job:
        """The job, which is I/O on files; TypeError for any other."""
        return io_of(self.job)
