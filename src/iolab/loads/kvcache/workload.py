"""A client's share of KV-cache load, and what one client tells of its replay."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import ClassVar, Final

from iolab.core.engine import EngineName
from iolab.core.run import HostLoadDetails, HostRun
from iolab.core.workload import AnyJob, DataSet, Direction, Indicator, OperationEnum
from iolab.record import Record

KV_CACHE_ENGINE: Final = EngineName("kv-cache")
"""Built into the agent."""

LAYOUT_ENGINE: Final = EngineName("native")
"""What lays the store out: it is built into the agent, too."""

BY_REQUESTS: Final = Indicator("requests")
BY_PREFIX_LATENCY: Final = Indicator("prefix-latency")

OBJECT_ALIGNMENT: Final = 4096
"""Objects are padded to multiples of this, as direct I/O wants them."""

SPARE_SLOTS_MIN: Final = 4
"""Blocks that may be dropped and still be read, where each has many objects."""


class KvCacheOperation(OperationEnum):
    """Operations made of reads and writes of objects, which are counted as such already."""

    PREFIX_LOAD = 128
    """From when a request is due to the last block of its prefix; of those that read any."""
    REQUEST = 129
    """The same of all requests; those without a read are done when they were looked up."""
    PREFIX_PACE = 130
    """The time of each MiB of a prefix."""


class BlockPlacement(StrEnum):
    """Where the objects of blocks lie."""

    SLAB = "slab"
    """All in one file that was laid out, each at a place of its own."""
    FILES = "files"
    """Each in a file of its own: written aside and renamed."""


class WritePolicy(StrEnum):
    """Which blocks are written."""

    MISS = "miss"
    """Each that a request has and the store has not."""
    SECOND_USE = "second-use"
    """Of these, those that an earlier request had, too: it saves the life of flash."""
    NONE = "none"
    """None: the store stays as it is at the start."""


class TraceArrivals(StrEnum):
    """When requests come that a trace gives the same time."""

    SPREAD = "spread"
    """Within the step of its clock, by chance."""
    AS_RECORDED = "as-recorded"
    """All at once."""
    POISSON = "poisson"
    """In the order of the trace, with gaps as of independent users."""


class WriteDurability(StrEnum):
    """When a write counts as done."""

    NONE = "none"
    """When the kernel has it, as the caches of language models do."""
    FSYNC = "fsync"
    """When it was flushed."""


class KvCacheJob(AnyJob, Record, tag="kv-cache"):
    """One client's share of a replay with every number settled.

    A block has `block_tokens` tokens of `kv_bytes_per_token` bytes, in `objects_per_block` objects.
    Of them a client's store holds `capacity_bytes`, a memory above it `memory_tier_bytes`.
    `requests_per_s` come to the whole fleet; None asks for as many as it can. The trace, with
    `trace_digest`, is replayed from `start_s` on. `prefill_tokens_per_s` is how fast an instance
    computes what the store does not have.
    """

    size_keys: ClassVar[tuple[str, ...]] = ("capacity",)
    path_options: ClassVar[tuple[str, ...]] = ("trace",)
    max_load_search_axis: ClassVar[str] = "requests_per_s"
    operations_for_latency_limit: ClassVar[Mapping[OperationEnum, tuple[str, ...]]] = (
        MappingProxyType({KvCacheOperation.PREFIX_LOAD: ("mean", "p50", "p95", "p99", "p99.9")})
    )
    indicators: ClassVar[Mapping[str, str | None]] = MappingProxyType(
        {
            BY_REQUESTS: "requests_per_s",
            BY_PREFIX_LATENCY: KvCacheOperation.PREFIX_LOAD.latency_key("p99"),
        }
    )
    field_by_study_key: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "objects": "placement",
            "capacity": "capacity_bytes",
            "memory_tier": "memory_tier_bytes",
            "start": "start_s",
            "verify": "verifies_blocks",
        }
    )

    engine: EngineName
    trace: str
    model: str
    kv_bytes_per_token: int
    capacity_bytes: int
    trace_digest: str = ""
    objects_per_block: int = 1
    block_tokens: int = 512
    placement: BlockPlacement = BlockPlacement.SLAB
    memory_tier_bytes: int = 0
    requests_per_s: int | None = None
    start_s: float = 600.0
    arrivals: TraceArrivals = TraceArrivals.SPREAD
    write: WritePolicy = WritePolicy.MISS
    durable: WriteDurability = WriteDurability.NONE
    reads_in_flight: int = 64
    writes_in_flight: int = 16
    prefill_tokens_per_s: int | None = None
    direct: bool = True
    verifies_blocks: bool = True

    @property
    def block_bytes(self) -> int:
        """Of one block, as it lies in the store."""
        return self.object_bytes * self.objects_per_block

    @property
    def object_bytes(self) -> int:
        """Of one object."""
        exact = -(-self.block_tokens * self.kv_bytes_per_token // self.objects_per_block)
        return -(-exact // OBJECT_ALIGNMENT) * OBJECT_ALIGNMENT

    @property
    def capacity_blocks_per_client(self) -> int:
        """Blocks that the store of one client holds."""
        return self.capacity_bytes // self.block_bytes

    @property
    def memory_blocks_per_client(self) -> int:
        """Blocks that the memory above it holds."""
        return self.memory_tier_bytes // self.block_bytes

    @property
    def store_slot_count(self) -> int:
        """Blocks for which there is room: more than are held, for those that are still read."""
        in_flight = self.reads_in_flight + self.writes_in_flight
        return self.capacity_blocks_per_client + max(
            -(-in_flight // self.objects_per_block), SPARE_SLOTS_MIN
        )

    @property
    def layout_engine(self) -> EngineName:
        """See `AnyJob`."""
        return LAYOUT_ENGINE

    @property
    def ioengine(self) -> str:
        """How a fill of the store asks the kernel."""
        return "auto"

    def data_set(self, configuration_id: str) -> DataSet:
        """See `AnyJob`: one slab, or a file for each object."""
        places = self.store_slot_count * self.objects_per_block
        files = self.placement is BlockPlacement.FILES
        return DataSet(
            id=f"kv{'f' if files else ''}{places}x{self.object_bytes}",
            configuration=configuration_id,
            numjobs=1,
            files_per_job=places if files else 1,
            file_bytes=self.object_bytes if files else places * self.object_bytes,
        )

    @property
    def data_directions(self) -> tuple[Direction, ...]:
        """See `AnyJob`."""
        reads_only = self.write is WritePolicy.NONE
        return (Direction.READ,) if reads_only else (Direction.READ, Direction.WRITE)

    @property
    def io_alignment_bytes(self) -> int:
        """See `AnyJob`."""
        return self.object_bytes

    @property
    def iodepth_per_client(self) -> int:
        """See `AnyJob`."""
        return self.reads_in_flight + self.writes_in_flight

    @property
    def is_paced(self) -> bool:
        """See `AnyJob`: requests come at their times."""
        return self.requests_per_s is not None


class KvCacheHostDetails(HostLoadDetails, Record, tag="kv-cache"):
    """What one host did with its requests in the whole run.

    Of the `requests` and their `blocks` the store held `hits`, and the memory above it
    `memory_hits` of these; `ideal_hits` are those of an LRU list of the same capacity.
    `hits_awaiting_write` are hits on blocks that were still being written. `requests_with_reads`
    read anything; `unfinished_requests` were not done at the end. `blocks_admitted` were taken in,
    of which `blocks_dropped_unwritten` were dropped again before their write began. The store held
    `held_at_start` and `held_at_end` of `capacity_blocks` blocks. `backlog` are the requests under
    way at the end of each interval, `write_backlog` the objects that waited to be written.
    `clock_factor` is how much faster than its own clock the trace ran.
    """

    requests: int
    blocks: int
    hits: int
    memory_hits: int
    ideal_hits: int
    hits_awaiting_write: int
    requests_with_reads: int
    unfinished_requests: int
    blocks_admitted: int
    blocks_dropped_unwritten: int
    evictions: int
    held_at_start: int
    held_at_end: int
    capacity_blocks: int
    input_tokens: int
    clock_factor: float
    backlog: tuple[int, ...]
    write_backlog: tuple[int, ...]


def kv_cache_details_of_host(host: HostRun) -> KvCacheHostDetails | None:
    """What a host did with its requests; None where it did not tell."""
    return host.details if isinstance(host.details, KvCacheHostDetails) else None
