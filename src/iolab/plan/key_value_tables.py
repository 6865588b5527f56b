"""The tables of a study file about key-value stores: workloads of db_bench and YCSB, the server.

`docs/reference/study.md` says what each key means. Checks over several keys are in
`key_value_checks`.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from iolab.model.engine import EngineName
from iolab.model.workload import Indicator
from iolab.model.ycsb import EMBEDDED, Distribution, ServerKind
from iolab.plan import key_value_values, routes, values
from iolab.plan.ranges import HOSTS_MAX
from iolab.plan.table_types import Id, Label, Numbers, Sizes, Title
from iolab.plan.target_tables import Table, TargetPath

DB_BENCH_AXES: Final = ("block_size", "threads")
YCSB_AXES: Final = ("threads", "rate")
"""Keys of such workloads that may be lists; the first varies slowest."""

DB_BENCH_ENGINES: Final = (EngineName.DB_BENCH,)
YCSB_ENGINES: Final = (EngineName.YCSB,)
INDICATORS: Final = (Indicator.KEY_OPERATIONS,)

KEYS_MAX: Final = 1_000_000_000_000
"""A pebibyte of keys and values at a kilobyte each."""

KEY_BYTES_MIN: Final = 8
"""db_bench keeps a key's number in its first eight bytes; in fewer no two need differ."""

KEY_BYTES_MAX: Final = 4096
VALUE_BYTES_MAX: Final = 16 << 20
"""Values larger than this are no key-value load any more."""

BLOCK_BYTES_MIN: Final = 256
BLOCK_BYTES_MAX: Final = 64 << 20
"""Less holds no two entries, more no RocksDB reads in one go."""

THREADS_MAX: Final = 4096
"""More threads than any client has use for."""

BYTES_MAX: Final = 1 << 50
MEMORY_BYTES_MIN: Final = 16 << 20
"""A process that opens a database needs more."""

BLOOM_BITS_MAX: Final = 100
RECORDS_MAX: Final = (1 << 31) - 1
"""YCSB counts records in 32 bits."""

FIELDS_MAX: Final = 1000
RATE_MAX: Final = 100_000_000
HEAP_BYTES_MIN: Final = 256 << 20
"""Cassandra does not start with less."""

REPLICATION_MAX: Final = 100

KeyIndicator = Annotated[Indicator, values.choice(Indicator, "indicators", INDICATORS)]
Threads = Annotated[int, values.whole(1, THREADS_MAX)]
BlockBytes = Annotated[int | str, values.size(BLOCK_BYTES_MIN, BLOCK_BYTES_MAX, multiple=1)]
Bytes = Annotated[int | str, values.size(0, BYTES_MAX, multiple=1)]
MemoryBytes = Annotated[int | str, values.size(MEMORY_BYTES_MIN, BYTES_MAX, multiple=1)]
ValueBytes = Annotated[int | str, values.size(1, VALUE_BYTES_MAX, multiple=1)]
Share = Annotated[float, key_value_values.portion()]


class DbBenchTable(Table):
    """`[[workload]]` of db_bench; the keys of `DB_BENCH_AXES` may be lists."""

    id: Id
    title: Title | None = None
    engine: Annotated[EngineName, values.choice(EngineName, "engines", DB_BENCH_ENGINES)]
    benchmark: Annotated[str, key_value_values.benchmark()]
    keys: Annotated[int, values.whole(1, KEYS_MAX)]
    key_size: Annotated[int | str, values.size(KEY_BYTES_MIN, KEY_BYTES_MAX, multiple=1)] = 16
    value_size: ValueBytes = 1024
    block_size: Annotated[list[BlockBytes], Sizes]
    threads: Annotated[list[Threads], Numbers]
    cache_size: Bytes = "8m"
    memory: MemoryBytes | None = None
    bloom_bits: Annotated[int, values.whole(0, BLOOM_BITS_MAX)] = 10
    read_percent: Annotated[int, values.whole(0, 100)] | None = None
    write_rate: Annotated[int | str, values.size(1, BYTES_MAX, multiple=1)] | None = None
    database: TargetPath | None = None
    indicator: KeyIndicator = Indicator.KEY_OPERATIONS
    db_bench: dict[str, Label] = Field(default_factory=dict)


class MixTable(Table):
    """`mix` of a YCSB workload: the share of each operation, all of them 1."""

    read: Share = 0.0
    update: Share = 0.0
    insert: Share = 0.0
    scan: Share = 0.0
    read_modify_write: Share = 0.0


class YcsbTable(Table):
    """`[[workload]]` of YCSB; the keys of `YCSB_AXES` may be lists."""

    id: Id
    title: Title | None = None
    engine: Annotated[EngineName, values.choice(EngineName, "engines", YCSB_ENGINES)]
    mix: MixTable
    records: Annotated[int, values.whole(1, RECORDS_MAX)]
    fields: Annotated[int, values.whole(1, FIELDS_MAX)] = 4
    field_size: ValueBytes = 1024
    threads: Annotated[list[Threads], Numbers]
    distribution: Annotated[Distribution, values.choice(Distribution, "distributions")] = (
        Distribution.UNIFORM
    )
    rate: Annotated[list[Annotated[int, values.whole(1, RATE_MAX)]], Numbers] | None = None
    memory: MemoryBytes | None = None
    indicator: KeyIndicator = Indicator.KEY_OPERATIONS
    ycsb: dict[str, Label] = Field(default_factory=dict)


class ServerTable(Table):
    """`[server]`: the store of all YCSB workloads; each kind reads the keys that it needs."""

    kind: Annotated[ServerKind, values.choice(ServerKind, "kinds of server")] = EMBEDDED.kind
    addresses: (
        Annotated[list[Annotated[str, key_value_values.endpoint()]], values.Listed(lone=True)]
        | None
    ) = None
    host: Annotated[str, values.host_name()] | None = None
    version: Annotated[str, key_value_values.version()] = EMBEDDED.version
    listen: Annotated[str, key_value_values.listen_address()] = EMBEDDED.listen
    port: Annotated[int, values.whole(1, routes.PORT_MAX)] = EMBEDDED.port
    heap: Annotated[int | str, values.size(HEAP_BYTES_MIN, BYTES_MAX, multiple=1)] = "1g"
    memory: MemoryBytes | None = None
    keyspace: Annotated[str, key_value_values.keyspace()] = EMBEDDED.keyspace
    replication: Annotated[int, values.whole(1, min(REPLICATION_MAX, HOSTS_MAX))] = (
        EMBEDDED.replication
    )
    consistency: Annotated[
        str, values.word(key_value_values.CONSISTENCIES, "consistency levels")
    ] = EMBEDDED.consistency
    ycsb: TargetPath | None = None
    java: Annotated[str, key_value_values.program()] = EMBEDDED.java
