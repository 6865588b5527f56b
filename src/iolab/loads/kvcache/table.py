"""The table of KV-cache load in a study file, with every default and limit."""

from typing import Annotated, ClassVar, Final

from msgspec.structs import replace
from pydantic import Field

from iolab.core.engine import EngineName
from iolab.core.workload import HOSTS_AXIS, AnyJob, Indicator
from iolab.loads.kvcache.generator import CONVERSATION_TRACE_NAME
from iolab.loads.kvcache.models import MODELS
from iolab.loads.kvcache.replay import trace_digest_or_empty
from iolab.loads.kvcache.workload import (
    BY_PREFIX_LATENCY,
    BY_REQUESTS,
    KV_CACHE_ENGINE,
    BlockPlacement,
    KvCacheJob,
    TraceArrivals,
    WriteDurability,
    WritePolicy,
)
from iolab.study import values
from iolab.study.file import Flag
from iolab.study.load_tables import Numbers, SearchTable, Sizes

PATH_CHARACTERS: Final = 1000

TOKEN_BYTES_MAX: Final = 1 << 24
"""Keys and values of one token: 32 times those of the largest published model."""

CAPACITY_BYTES_MAX: Final = 1 << 50
"""A pebibyte of one host."""

BLOCK_TOKENS_MAX: Final = 1 << 16
RANKS_MAX: Final = 1024
REQUESTS_PER_S_MAX: Final = 1_000_000
IN_FLIGHT_MAX: Final = 1024
"""Threads of one host that read, and that write."""

START_S_MAX: Final = 86_400.0
PREFILL_MAX: Final = 100_000_000

Capacity = Annotated[int | str, values.size_value(1, CAPACITY_BYTES_MAX, multiple=1)]
RequestRate = Annotated[int, values.integer_value(1, REQUESTS_PER_S_MAX)]
InFlight = Annotated[list[Annotated[int, values.integer_value(1, IN_FLIGHT_MAX)]], Numbers]


class KvCacheTable(SearchTable):
    """`[[workload]]` with `engine = "kv-cache"`."""

    job_type: ClassVar[type[AnyJob]] = KvCacheJob
    rate_keys: ClassVar[tuple[str, ...]] = ("requests_per_s",)
    axes: ClassVar[tuple[str, ...]] = (
        "requests_per_s",
        "capacity",
        "reads_in_flight",
        HOSTS_AXIS,
    )

    engine: Annotated[EngineName, values.word_value((KV_CACHE_ENGINE,), "engines")]
    trace: Annotated[str, values.text_value(PATH_CHARACTERS)] = CONVERSATION_TRACE_NAME
    model: Annotated[str, values.word_value(tuple(MODELS), "models")] = "llama3-70b"
    kv_bytes_per_token: Annotated[int, values.integer_value(1, TOKEN_BYTES_MAX)] | None = None
    tensor_parallel: Annotated[int, values.integer_value(1, RANKS_MAX)] = 1
    layerwise: Flag = False
    block_tokens: Annotated[int, values.integer_value(1, BLOCK_TOKENS_MAX)] = 512
    objects: Annotated[BlockPlacement, values.choice_value(BlockPlacement, "kinds of objects")] = (
        BlockPlacement.SLAB
    )
    capacity: Annotated[list[Capacity], Sizes]
    memory_tier: Annotated[int | str, values.size_value(0, CAPACITY_BYTES_MAX, multiple=1)] = 0
    requests_per_s: Annotated[list[RequestRate], Numbers] | None = None
    start: Annotated[float | str, values.seconds_value(0, START_S_MAX)] = 600.0
    arrivals: Annotated[TraceArrivals, values.choice_value(TraceArrivals, "arrivals")] = (
        TraceArrivals.SPREAD
    )
    write: Annotated[WritePolicy, values.choice_value(WritePolicy, "kinds of writes")] = (
        WritePolicy.MISS
    )
    durable: Annotated[
        WriteDurability, values.choice_value(WriteDurability, "kinds of durability")
    ] = WriteDurability.NONE
    reads_in_flight: InFlight = Field(default=[64])
    writes_in_flight: Annotated[int, values.integer_value(1, IN_FLIGHT_MAX)] = 16
    prefill_tokens_per_s: Annotated[int, values.integer_value(1, PREFILL_MAX)] | None = None
    direct: Flag = True
    verify: Flag = True
    indicator: (
        Annotated[Indicator, values.word_value((BY_REQUESTS, BY_PREFIX_LATENCY), "indicators")]
        | None
    ) = None

    def build_job(self) -> KvCacheJob:
        """See `LoadTable`; a token's bytes are those of the model where nothing else is said."""
        derived = ("tensor_parallel", "layerwise", "kv_bytes_per_token")
        entries = [
            (key, value) for key, value in self.non_null_keys_and_values() if key not in derived
        ]
        model = MODELS[self.model]
        entries.append(("kv_bytes_per_token", self.kv_bytes_per_token or model.kv_bytes_per_token))
        job = KvCacheJob(**KvCacheJob.fields_from_keys(entries))
        layers = model.layers if self.layerwise else 1
        return replace(
            job,
            objects_per_block=self.tensor_parallel * layers,
            trace_digest=trace_digest_or_empty(self.trace),
        )

    @property
    def headline_indicator(self) -> Indicator:
        """See `LoadTable`."""
        return self.indicator or BY_REQUESTS
