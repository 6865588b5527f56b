"""A client's share of load on objects, and what one client tells of its requests."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import ClassVar, Final, Self, TypeAlias

from msgspec.structs import replace

from iolab.core.engine import EngineName
from iolab.core.run import HostLoadDetails, HostRun, Point
from iolab.core.workload import (
    BY_BANDWIDTH,
    AnyJob,
    Direction,
    Indicator,
    OperationEnum,
)
from iolab.record import Record

S3_ENGINE: Final = EngineName("s3")
"""Built into the agent."""

GENERATOR_LIMIT_LOAD_S: Final = 0.5
"""Of the look at how much load the engine can make at all."""

GENERATOR_LIMIT_S: Final = 0.7
"""The same with the start and end of the engine and its null server."""

BY_OPERATIONS: Final = Indicator("operations")
BY_FIRST_BYTE: Final = Indicator("first-byte")

OPERATION_KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "get": "get",
        "get_range": "get-range",
        "put": "put",
        "head": "head",
        "list": "list",
        "delete": "delete",
    }
)
"""The kinds of operations of a job, with what the agent calls each."""


class ContentlessObjectOperation(OperationEnum):
    """Operations that move no contents; GETs and PUTs are counted as reads and writes."""

    OBJECT_HEAD = 48
    OBJECT_LIST = 49
    OBJECT_DELETE = 50


class ObjectOperation(OperationEnum):
    """Operations on objects that are counted as reads and writes already, and their parts."""

    OBJECT_GET = 160
    """From when it is due, or first sent, to the final answer, with what was repeated."""
    OBJECT_GET_RANGE = 161
    OBJECT_PUT = 162
    OBJECT_MULTIPART = 163
    """From the start of the first part to the answer to the completion."""
    OBJECT_GET_ATTEMPT = 164
    """Each request that was answered well, from its start to the last byte."""
    OBJECT_GET_RANGE_ATTEMPT = 165
    OBJECT_PUT_ATTEMPT = 166
    OBJECT_HEAD_ATTEMPT = 167
    OBJECT_LIST_ATTEMPT = 168
    OBJECT_DELETE_ATTEMPT = 169
    OBJECT_GET_FIRST_BYTE = 170
    """From the start of a request to the first byte of its contents."""
    OBJECT_GET_RANGE_FIRST_BYTE = 171
    OBJECT_GET_HEADERS = 172
    """From there to the end of the answer's headers."""
    OBJECT_GET_RANGE_HEADERS = 173
    OBJECT_PUT_COMMIT = 174
    """From the last byte sent to the answer."""
    OBJECT_PART = 175
    OBJECT_UPLOAD_CREATE = 176
    OBJECT_UPLOAD_COMPLETE = 177
    OBJECT_CONNECT = 178
    """Connections that were opened in the run, encryption included."""


class ObjectOrder(StrEnum):
    """Which objects are read."""

    UNIFORM = "uniform"
    ZIPF = "zipf"
    SEQUENTIAL = "sequential"
    ONCE = "once"


class PutKeys(StrEnum):
    """Where objects are put."""

    NEW = "new"
    OVERWRITE = "overwrite"


class RequestArrivals(StrEnum):
    """How operations come at a rate."""

    POISSON = "poisson"
    FIXED = "fixed"


class SizeShare(Record):
    """A size, and how many objects in proportion have it."""

    size_bytes: int
    share: float = 1.0


class LogNormalSizes(Record):
    """Sizes of a log-normal distribution, cut off on both sides."""

    median_bytes: int
    sigma: float
    min_bytes: int
    max_bytes: int


PUT_OPERATIONS: Final = (ObjectOperation.OBJECT_PUT.key, ObjectOperation.OBJECT_MULTIPART.key)
"""Those that make a new object each."""


class ObjectsJob(AnyJob, Record, tag="objects"):
    """One client's share of load on objects with every number settled.

    `get` … `delete` are how often each operation comes, in proportion. The data set of the whole
    fleet has `object_count` objects below `prefix_count` prefixes, of `object_bytes`, or of the
    `sizes` or the `size_spread` where these are given. What is larger than `part_bytes` goes in
    parts. `concurrency` operations are under way on each host; `rate` come a second to the whole
    fleet, None asks for as many as it can.
    """

    can_end_by_rule: ClassVar[bool] = True
    load_axes: ClassVar[tuple[str, ...]] = ("concurrency", "rate")
    indicators: ClassVar[Mapping[str, str | None]] = MappingProxyType(
        {
            BY_OPERATIONS: "object_ops_per_s",
            BY_BANDWIDTH: "bw_bytes_per_s",
            BY_FIRST_BYTE: ObjectOperation.OBJECT_GET_FIRST_BYTE.latency_key("p99"),
        }
    )
    field_by_study_key: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "size": "object_bytes",
            "objects": "object_count",
            "prefixes": "prefix_count",
            "part": "part_bytes",
            "range": "range_bytes",
            "verify": "verify_every",
            "retries": "retries_max",
            "timeout": "timeout_s",
        }
    )

    engine: EngineName
    object_count: int
    get: int = 0
    get_range: int = 0
    put: int = 0
    head: int = 0
    list: int = 0
    delete: int = 0
    object_bytes: int = 0
    sizes: tuple[SizeShare, ...] = ()
    size_spread: LogNormalSizes | None = None
    prefix_count: int = 16
    part_bytes: int | None = None
    parts_in_flight: int = 4
    range_bytes: int = 1 << 20
    list_page: int = 1000
    concurrency: int = 16
    rate: int | None = None
    arrivals: RequestArrivals = RequestArrivals.POISSON
    order: ObjectOrder = ObjectOrder.UNIFORM
    zipf_theta: float = 1.1
    put_keys: PutKeys = PutKeys.NEW
    keep_alive: bool = True
    read_back: bool = False
    verify_every: int = 0
    retries_max: int = 0
    timeout_s: float = 30.0

    @property
    def generator_limit_job(self) -> Self:
        """The same load as the generator makes it on a null target: without what does not cost it.

        All objects have the mean size there, since the null target knows no others.
        """
        return replace(
            self,
            object_bytes=max(round(self.mean_object_bytes), 1),
            sizes=(),
            size_spread=None,
            rate=None,
            arrivals=RequestArrivals.POISSON,
            order=ObjectOrder.UNIFORM,
            put_keys=PutKeys.NEW,
            read_back=False,
            verify_every=0,
            retries_max=0,
        )

    @property
    def operation_weights(self) -> tuple[tuple[str, int], ...]:
        """The kinds of operations that it makes, each with its share."""
        return tuple((kind, share) for kind in OPERATION_KINDS if (share := getattr(self, kind)))

    def with_sizes(self, sizes: tuple[SizeShare, ...]) -> Self:
        """The job with objects of those sizes."""
        return replace(self, sizes=sizes)

    def with_lognormal_sizes(self, spread: LogNormalSizes) -> Self:
        """The job with objects of sizes of a distribution."""
        return replace(self, size_spread=spread)

    @property
    def largest_object_bytes(self) -> int:
        """The size of its largest objects."""
        if self.size_spread is not None:
            return self.size_spread.max_bytes
        return max((each.size_bytes for each in self.sizes), default=self.object_bytes)

    @property
    def mean_object_bytes(self) -> float:
        """The mean size of its objects, as far as it is known beforehand."""
        if self.size_spread is not None:
            return lognormal_mean_bytes(self.size_spread)
        total = sum(each.share for each in self.sizes)
        if not total:
            return float(self.object_bytes)
        return sum(each.size_bytes * each.share for each in self.sizes) / total

    @property
    def has_multipart_objects(self) -> bool:
        """Whether any of its objects goes in parts."""
        return self.part_bytes is not None and self.largest_object_bytes > self.part_bytes

    @property
    def reads_data_set(self) -> bool:
        """Whether its objects must be there before it begins."""
        is_overwriting = bool(self.put) and self.put_keys is PutKeys.OVERWRITE
        return bool(self.get or self.get_range or self.head or self.list) or is_overwriting

    @property
    def data_directions(self) -> tuple[Direction, ...]:
        """See `AnyJob`."""
        reads = (Direction.READ,) if self.get or self.get_range else ()
        return (*reads, Direction.WRITE) if self.put else reads

    @property
    def iodepth_per_client(self) -> int:
        """See `AnyJob`."""
        return self.concurrency

    @property
    def verify(self) -> bool:
        """See `AnyJob`."""
        return bool(self.verify_every)

    @property
    def is_closed_loop(self) -> bool:
        """See `AnyJob`."""
        return self.rate is None

    @property
    def is_answered_by_server(self) -> bool:
        """See `AnyJob`: its endpoint."""
        return True

    @property
    def is_paced(self) -> bool:
        """See `AnyJob`."""
        return self.rate is not None

    @property
    def reports_errors_at_end(self) -> bool:
        """See `AnyJob`: failed requests are counted, and the load goes on."""
        return True


GeneratorLimitKey: TypeAlias = tuple[ObjectsJob, frozenset[str]]


def generator_limit_key(point: Point, host_names: Iterable[str]) -> GeneratorLimitKey:
    """What runs have in common whose limit is measured once: a kind of load, and the hosts."""
    return ObjectsJob.require_type(point.job).generator_limit_job, frozenset(host_names)


def lognormal_mean_bytes(spread: LogNormalSizes) -> float:
    """The mean of the sizes, cut off on both sides."""

    def lognormal_share_below(limit_bytes: float, shift: float) -> float:
        z = (math.log(limit_bytes / spread.median_bytes) - shift) / spread.sigma
        return 0.5 * math.erfc(-z / math.sqrt(2))

    low, high = spread.min_bytes, spread.max_bytes
    if spread.sigma <= 0:
        return float(min(max(spread.median_bytes, low), high))
    square = spread.sigma**2
    inside = lognormal_share_below(high, square) - lognormal_share_below(low, square)
    mean = spread.median_bytes * math.exp(square / 2) * inside
    return (
        mean + low * lognormal_share_below(low, 0.0) + high * (1 - lognormal_share_below(high, 0.0))
    )


class ObjectOperationCount(Record):
    """Operations of one kind in the whole run: done, failed, all attempts, failed ones by class."""

    operation: str
    done: int
    failed: int
    attempts: int
    errors: tuple[tuple[str, int], ...] = ()


class SizeClassCount(Record):
    """Operations of one kind on objects of one class of sizes, in the whole run.

    The class ends at `limit_bytes`, four times the limit of the class below; `bins` have latencies.
    """

    operation: str
    limit_bytes: int
    done: int
    bytes: int
    lat_sum_ns: int
    bins: tuple[tuple[int, int], ...]


class EndpointLatency(Record):
    """Operations of one kind over one endpoint; `bins` have latencies."""

    operation: str
    done: int
    lat_sum_ns: int
    bins: tuple[tuple[int, int], ...]


class EndpointCount(Record):
    """What went over one endpoint; `latencies` where the host has several of them."""

    endpoint: str
    operations: int
    failed: int
    bytes: int
    lat_sum_ns: int
    latencies: tuple[EndpointLatency, ...] = ()


class ReadBackCounts(Record):
    """What became of the objects that a run put, by reading all of them after it.

    `missing` are those that the server says it has not: of `objects` some may be of PUTs that
    failed; `differing` have other contents; `unread` could not be read for another reason, of which
    `fault` tells where reading back failed as a whole.
    """

    objects: int
    compared: int
    missing: int
    differing: int
    unread: int
    fault: str = ""


class ObjectsHostDetails(HostLoadDetails, Record, tag="objects"):
    """What one host did with its requests in the whole run.

    `connections` were open before it, `opened` in it; servers closed `closed_by_server`. `ahead_ms`
    is how far the server's clock is ahead of the host's, by the least and the greatest answer. Of
    the processor's time `tls_ns` went to encryption, `contents_ns` and `verify_ns` to making and
    comparing contents. `left_uploads` are those that were begun and not ended. `sizes` are of jobs
    whose objects have several. `read_back` is of jobs that ask for it. `generator_limit_has_tls`
    where the host's limit has the processor time that encryption took.
    """

    counts: tuple[ObjectOperationCount, ...]
    endpoints: tuple[EndpointCount, ...]
    connections: int
    opened: int
    closed_by_server: int
    connect_failures: int
    ahead_min_ms: float | None
    ahead_max_ms: float | None
    tls: str
    tls_ns: int
    contents_ns: int
    verify_ns: int
    sign_ns: int
    cpu_ns: int
    verified_bytes: int
    listed_keys: int
    put_objects: int
    put_bytes: int
    left_uploads: int
    data_set_bytes: int
    ended_early: str
    examples: tuple[str, ...]
    backlog: tuple[int, ...]
    sizes: tuple[SizeClassCount, ...] = ()
    read_back: ReadBackCounts | None = None
    generator_limit_has_tls: bool = False

    @property
    def failed_put_count(self) -> int:
        """PUTs of whole objects that failed; the others are `put_objects`."""
        return sum(count.failed for count in self.counts if count.operation in PUT_OPERATIONS)

    @property
    def done_count(self) -> int:
        """Operations that were done."""
        return sum(count.done for count in self.counts)

    @property
    def failed_count(self) -> int:
        """Operations that failed in the end."""
        return sum(count.failed for count in self.counts)

    @property
    def attempt_count(self) -> int:
        """All requests of them."""
        return sum(count.attempts for count in self.counts)

    @property
    def errors(self) -> dict[str, int]:
        """Failed attempts by class, those of all kinds together."""
        errors: dict[str, int] = {}
        for count in self.counts:
            for name, number in count.errors:
                errors[name] = errors.get(name, 0) + number
        return errors


def objects_details_of_host(host: HostRun) -> ObjectsHostDetails | None:
    """What a host did with its requests; None where it did not tell."""
    return host.details if isinstance(host.details, ObjectsHostDetails) else None
