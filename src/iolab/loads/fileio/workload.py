"""What one client is asked to do with files or a device, in fio's words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import ClassVar, Final

from msgspec.structs import replace

from iolab.core.engine import EngineName
from iolab.core.workload import VMS_PER_NODE_AXIS, AnyJob, DataSet, Direction
from iolab.loads.fileio.engine_facts import FILE_ENGINES, LIBAIO
from iolab.record import Record
from iolab.units import parse_size

SECTOR_BYTES: Final = 512
"""The smallest block that any device has."""

BANDWIDTH_BLOCK_BYTES: Final = 64 * 1024
"""From this block size on, throughput is the figure that a device is bought for."""

SYNC_IOENGINES: Final = ("psync", "sync", "pvsync", "pvsync2")
"""One I/O at a time: iodepth above 1 has no effect on them."""

ASYNC_IOENGINES: Final = ("libaio", "io_uring", "posixaio")
"""As many I/Os in flight as iodepth says."""

IOENGINES: Final = ASYNC_IOENGINES + SYNC_IOENGINES

_ARRIVALS: Final = "rate_process"
"""fio's option for how I/Os come under a rate."""

_COMPRESSIBLE: Final = ("buffer_compress_percentage", "dedupe_percentage")

_POLLING: Final = ("hipri", "sqthread_poll", "iodepth_batch_complete_max=0")
"""Beginnings of options with which an engine never sleeps, however little it has to do."""

_SOME_TIME: Final = re.compile("0*[1-9]")
"""The beginning of a `thinktime` that opens the loop: the queue is then meant to run empty."""

WHOLE_PERCENT: Final = 100
"""Percent."""

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


class AccessPattern(StrEnum):
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
    def has_reads(self) -> bool:
        """Whether any I/O of this pattern is a read."""
        return self in (
            AccessPattern.READ,
            AccessPattern.RANDREAD,
            AccessPattern.RW,
            AccessPattern.RANDRW,
        )

    @property
    def has_writes(self) -> bool:
        """Whether any I/O of this pattern is a write."""
        return self in (
            AccessPattern.WRITE,
            AccessPattern.RANDWRITE,
            AccessPattern.RW,
            AccessPattern.RANDRW,
        )

    @property
    def has_trims(self) -> bool:
        """Whether its I/Os are trims: discards, after which blocks hold nothing."""
        return self in (AccessPattern.TRIM, AccessPattern.RANDTRIM)

    @property
    def directions(self) -> tuple[Direction, ...]:
        """Which way its I/Os go."""
        asked = zip(Direction, (self.has_reads, self.has_writes, self.has_trims), strict=True)
        return tuple(way for way, wanted in asked if wanted)

    @property
    def is_mixed(self) -> bool:
        """Whether the pattern both reads and writes."""
        return self.has_reads and self.has_writes

    @property
    def is_random(self) -> bool:
        """Whether offsets are drawn at random."""
        return self.value.startswith("rand")


class WrittenContents(StrEnum):
    """What the written blocks hold."""

    SCRAMBLED = "scrambled"
    """fio's default: a few bytes of every sector differ from block to block."""
    RANDOM = "random"
    """Every block is new random bytes (fio's refill_buffers): costs client CPU."""
    ZEROS = "zeros"
    """Only zeros: what compresses or deduplicates will answer from memory."""


class IoArrivals(StrEnum):
    """When I/Os arrive under a rate, whatever became of the ones before."""

    FIXED = "fixed"
    """One every 1/rate seconds."""
    POISSON = "poisson"
    """With exponential gaps, as independent users make them."""


class Job(AnyJob, Record, tag="io"):
    """One client's share of a workload with every number settled.

    Bytes are bytes; `read_percent` is set for mixed access only. `rate_iops` and
    `rate_bytes_per_s` are per job, at most one of them is set, and none means as fast as the target
    answers; `fleet_rate_iops` is what all jobs of all hosts share, whose part of it a point has as
    its `rate_iops`. `arrivals` is how I/Os come under a rate; None leaves it to
    the engine. With `shared_file` the jobs of a host have one file, each its own part of it.
    `options` are further fio options, allow-listed by the engine. A `trace` is
    replayed, so many times as fast as it was recorded: `trace_iops` at that speed, with the mean
    and the least size of its I/Os; `block_bytes` is no smaller than any. With `verify`, which
    the native engine alone can do, blocks that are read must hold what was last written there.
    """

    type_tag: ClassVar[str] = "io"
    can_end_by_rule: ClassVar[bool] = True
    load_axes: ClassVar[tuple[str, ...]] = ("iodepth", "numjobs", VMS_PER_NODE_AXIS)
    engine_settings: ClassVar[tuple[str, ...]] = ("engine", "ioengine")
    field_by_study_key: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "rw": "access",
            "bs": "block_bytes",
            "filesize": "file_bytes",
            "files": "files_per_job",
            "rwmixread": "read_percent",
            "rate": "rate_bytes_per_s",
            "fio": "options",
        }
    )
    path_options: ClassVar[tuple[str, ...]] = ("trace",)

    engine: EngineName
    access: AccessPattern
    block_bytes: int
    iodepth: int
    numjobs: int
    file_bytes: int
    files_per_job: int = 1
    read_percent: int | None = None
    direct: bool = True
    ioengine: str = LIBAIO
    contents: WrittenContents = WrittenContents.SCRAMBLED
    rate_iops: int | None = None
    options: tuple[tuple[str, str], ...] = ()
    arrivals: IoArrivals | None = None
    verify: bool = False
    rate_bytes_per_s: int | None = None
    fleet_rate_iops: int | None = None
    shared_file: bool = False
    trace: str = ""
    trace_speed: float = 1.0
    trace_digest: str = ""
    trace_iops: float = 0.0
    trace_mean_bytes: float = 0.0
    trace_least_bytes: int = 0

    @property
    def reports_errors_at_end(self) -> bool:
        """See `AnyJob`."""
        return FILE_ENGINES[self.engine].reports_errors_at_end

    @property
    def target_iops_per_job(self) -> float | None:
        """I/Os a second that one job shall make in the mean, None for as many as it can."""
        if self.trace:
            return self.trace_iops
        if self.rate_iops is not None or self.rate_bytes_per_s is None:
            return self.rate_iops
        return self.rate_bytes_per_s / self.mean_block_bytes

    @property
    def mean_block_bytes(self) -> float:
        """Bytes of an I/O in the mean, where sizes are mixed too (fio's `bssplit`)."""
        if self.trace:
            return self.trace_mean_bytes
        split = dict(self.options).get("bssplit")
        if split is None:
            return self.block_bytes
        reads, _, others = split.partition(",")
        percent = 100 if not self.access.is_mixed else self.read_percent or 0
        share = percent / 100 if self.access.has_reads else 0.0
        mean = mean_bssplit_bytes(reads) * share
        return mean + (mean_bssplit_bytes(others or reads) * (1 - share) if share < 1 else 0.0)

    def load_kind_and_mix(self, axis_values: Mapping[str, int | str]) -> tuple[str, str]:
        """See `AnyJob`."""
        percent = axis_values.get("rwmixread", self.read_percent) if self.access.is_mixed else ""
        return "io", f"{self.access.value}{percent}"

    def data_set(self, configuration_id: str) -> DataSet:
        """See `AnyJob`.

        Its id is `s256m`, with `x4` for four files a job. One file of all jobs is `shared`.
        Compressible contents (`c`) have files of their own: written over shared ones, they would
        make later reads easier than they look. So have those that are verified, for each size of
        blocks (`v4k`): others write over them what cannot be, and of a larger block smaller ones
        would be its parts.
        """
        names = (name for name, _ in self.options)
        easy = self.contents is WrittenContents.ZEROS or any(
            name in _COMPRESSIBLE for name in names
        )
        parts = (
            f"s{_short_size_text(self.file_bytes)}",
            f"x{self.files_per_job}" if self.files_per_job > 1 else "",
            "shared" if self.shared_file else "",
            "c" if easy else "",
            f"v{_short_size_text(self.block_bytes)}" if self.verify else "",
        )
        return DataSet(
            id="".join(parts),
            configuration=configuration_id,
            numjobs=self.numjobs,
            files_per_job=self.files_per_job,
            file_bytes=self.file_bytes,
            shared_file=self.shared_file,
        )

    @property
    def similar_write_rate_key(self) -> object:
        """See `AnyJob`: what depth and number of jobs leave as it is."""
        return self.engine, self.access, self.block_bytes, self.read_percent, self.direct

    @property
    def data_directions(self) -> tuple[Direction, ...]:
        """See `AnyJob`."""
        return self.access.directions

    @property
    def io_alignment_bytes(self) -> int:
        """See `AnyJob`."""
        return self.block_bytes

    @property
    def iodepth_per_client(self) -> int:
        """See `AnyJob`: iodepth x numjobs."""
        return self.iodepth * self.numjobs

    @property
    def jobs_per_client(self) -> int:
        """See `AnyJob`."""
        return self.numjobs

    def with_numjobs(self, job_count: int | None) -> Job:
        """See `AnyJob`."""
        return self if job_count is None else replace(self, numjobs=job_count)

    @property
    def is_closed_loop(self) -> bool:
        """See `AnyJob`."""
        thinks = _SOME_TIME.match(dict(self.options).get("thinktime", ""))
        return self.target_iops_per_job is None and not thinks

    @property
    def has_busy_polling(self) -> bool:
        """See `AnyJob`."""
        return any(f"{name}={value}".startswith(_POLLING) for name, value in self.options)

    def with_share_of_fleet_rate(self, job_count: int) -> Job:
        """See `AnyJob`; what does not come out even is refused when a study is read."""
        if self.fleet_rate_iops is None:
            return self
        return replace(self, rate_iops=max(self.fleet_rate_iops // max(job_count, 1), 1))

    def with_default_poisson_arrivals(self) -> Job:
        """See `AnyJob`."""
        is_set = self.arrivals is not None or _ARRIVALS in dict(self.options)
        return self if is_set else replace(self, arrivals=IoArrivals.POISSON)


def _short_size_text(size_bytes: int) -> str:
    for power, unit in ((4, "t"), (3, "g"), (2, "m"), (1, "k")):
        if size_bytes % 1024**power == 0:
            return f"{size_bytes // 1024**power}{unit}"
    return f"{size_bytes}b"


def bssplit_block_bytes_and_percents(bssplit: str) -> tuple[tuple[int, int], ...]:
    """The sizes of fio's `bssplit` in bytes, each with its share in percent.

    Sizes without a share divide what the others leave, in whole percents.
    """
    parts = [part.partition("/") for part in bssplit.split(":")]
    stated = sum(int(share) for _, _, share in parts if share)
    blank = sum(1 for _, _, share in parts if not share)
    each = max(WHOLE_PERCENT - stated, 0) // max(blank, 1)
    return tuple((parse_size(size), int(share) if share else each) for size, _, share in parts)


def mean_bssplit_bytes(bssplit: str) -> float:
    """Bytes of an I/O in the mean; what is left of a hundred percent goes to the last size.

    Shares come to 1 to 100 percent: studies with others are refused.
    """
    drawn = [(size, share) for size, share in bssplit_block_bytes_and_percents(bssplit) if share]
    left = WHOLE_PERCENT - sum(share for _, share in drawn)
    return (sum(size * share for size, share in drawn) + drawn[-1][0] * left) / WHOLE_PERCENT


def job_for_generator_limit(job: Job) -> Job:
    """The job with only what decides how fast its generator can be, at full speed.

    Reads and writes are writes there, since nothing can be read without a target that gives it:
    those of a job that only or mostly reads cost nothing to fill, and then the size of a block
    matters no more. Trims stay what they are.
    """
    reads = job.read_percent if job.access.is_mixed else None
    fills = job.access.has_writes and (reads is None or reads < MOSTLY_READS_PERCENT)
    dropped = _TARGETS if fills else _TARGETS | _CONTENTS
    options = tuple(item for item in job.options if item[0] not in dropped)
    sized = fills or any(name in ("bssplit", "blockalign") for name, _ in options)
    access = AccessPattern.RANDWRITE if job.access.is_random else AccessPattern.WRITE
    return replace(
        job,
        access=job.access if job.access.has_trims else access,
        read_percent=None,
        block_bytes=job.block_bytes if sized else ANY_BLOCK_BYTES,
        contents=job.contents if fills else WrittenContents.ZEROS,
        options=options,
        rate_iops=None,
        rate_bytes_per_s=None,
        fleet_rate_iops=None,
        arrivals=None,
        file_bytes=0,
        files_per_job=1,
        shared_file=False,
        trace="",
        trace_digest="",
        direct=False,
        verify=False,
    )
