"""The tables of key-value load and of its server, their values, and the engines' further options.

Options are those that a study may set, and nothing else. What iolab itself decides (keys, sizes,
blocks, threads, seeds, time, what is printed, the path of the database) is not listed, nor what
would name files or change what is counted. Programs may be named by their full path; what such a
path may end in is fixed, and no part of it may begin with a dash.
"""

import ipaddress
import math
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, ClassVar, Final

from pydantic import Field

from iolab.core.engine import (
    FLAG_PATTERN,
    FOLDERS_PATTERN,
    EngineName,
    EngineOption,
    engine_options_from_rows,
)
from iolab.core.study import Study
from iolab.core.workload import AnyJob, Indicator
from iolab.loads.keyvalue.workload import (
    BY_KEY_OPERATIONS,
    DB_BENCH_ENGINE,
    EMBEDDED_SERVER,
    YCSB_ENGINE,
    DatabaseSpec,
    DbBenchJob,
    KeyDistribution,
    KeyOperation,
    ServerKind,
    ServerSettings,
    YcsbJob,
    server_settings_or_embedded,
)
from iolab.record import nested_field_values
from iolab.study import ssh_addresses, values
from iolab.study.file import TargetPath
from iolab.study.host_ranges import HOSTS_MAX
from iolab.study.load_tables import Label, LoadTable, Numbers, Sizes, StudyTable
from iolab.study.tables import StudyTables
from iolab.units import parse_size

PROGRAMS: Final = ("db_bench", "sst_dump")
"""Options that name a program; all others are handed to db_bench under their own name."""


_COUNT: Final = "[0-9]{1,6}"
_BYTES: Final = "[0-9]{1,15}"
_BUILD: Final = r"(?:[.-][A-Za-z0-9.-]{1,20})?"

DB_BENCH_OPTIONS: Final = engine_options_from_rows(
    ("db_bench", f"{FOLDERS_PATTERN}db_bench{_BUILD}", "/opt/rocksdb/db_bench", "db_bench itself"),
    ("sst_dump", f"{FOLDERS_PATTERN}sst_dump{_BUILD}", "/opt/rocksdb/sst_dump", "sst_dump itself"),
    # How files are read and written.
    ("use_direct_reads", FLAG_PATTERN, "1", "read past the page cache"),
    ("use_direct_io_for_flush_and_compaction", FLAG_PATTERN, "1", "write past the page cache"),
    ("mmap_read", FLAG_PATTERN, "1", "read through a mapping"),
    ("open_files", "-1|[0-9]{1,6}", "-1", "files kept open, -1 for all"),
    ("compaction_readahead_size", _BYTES, "2097152", "bytes that compaction reads ahead"),
    ("bytes_per_sync", _BYTES, "1048576", "sync files bit by bit while they are written"),
    ("wal_bytes_per_sync", _BYTES, "1048576", "the same for the log"),
    ("rate_limiter_bytes_per_sec", _BYTES, "104857600", "limit of flush and compaction"),
    # When writes are durable.
    ("sync", FLAG_PATTERN, "1", "sync the log with each write"),
    ("disable_wal", FLAG_PATTERN, "1", "write no log"),
    # The shape of the tree.
    ("write_buffer_size", _BYTES, "67108864", "bytes of a memtable"),
    ("max_write_buffer_number", _COUNT, "4", "memtables at once"),
    ("min_write_buffer_number_to_merge", _COUNT, "1", "memtables flushed together"),
    ("target_file_size_base", _BYTES, "67108864", "bytes of a file on level 1"),
    ("max_bytes_for_level_base", _BYTES, "268435456", "bytes of level 1"),
    ("num_levels", "[1-9][0-9]?", "7", "levels of the tree"),
    ("level0_file_num_compaction_trigger", _COUNT, "4", "files that start a compaction"),
    ("level0_slowdown_writes_trigger", _COUNT, "20", "files that slow writers"),
    ("level0_stop_writes_trigger", _COUNT, "36", "files that stop writers"),
    ("max_background_jobs", _COUNT, "8", "flushes and compactions at once"),
    ("subcompactions", _COUNT, "4", "threads of one compaction"),
    ("disable_auto_compactions", FLAG_PATTERN, "1", "do not compact"),
    # The block cache.
    ("cache_type", "lru_cache|clock_cache|hyper_clock_cache", "lru_cache", "kind of cache"),
    ("cache_numshardbits", "-1|[0-9]{1,2}", "6", "2 to this power shards"),
    ("cache_index_and_filter_blocks", FLAG_PATTERN, "1", "count these blocks in the cache"),
    (
        "pin_l0_filter_and_index_blocks_in_cache",
        FLAG_PATTERN,
        "1",
        "keep those of level 0 in the cache",
    ),
    ("partition_index_and_filters", FLAG_PATTERN, "1", "index and filter in parts"),
    ("block_align", FLAG_PATTERN, "1", "blocks begin at multiples of their size"),
    # What threads do.
    ("seek_nexts", _COUNT, "10", "entries read after a seek"),
    ("enable_pipelined_write", FLAG_PATTERN, "1", "write log and memtable in turn"),
    ("allow_concurrent_memtable_write", FLAG_PATTERN, "1", "several writers into one memtable"),
)
"""Every allowed option by its name."""

BINDING: Final = "iolab."
"""Properties that the bindings read."""

HEAP: Final = "heap"
"""The one option that is told to the Java machine."""

LOAD_ONLY: Final = frozenset({"block_bytes", "bloom_bits"})
"""What a database of RocksDB has from its load; a run on it uses the same for what it writes."""

_BOOLEAN: Final = "true|false"
_POSITIVE: Final = "[1-9][0-9]{0,8}"
_SHARE: Final = r"0(?:\.[0-9]{1,6})?|1(?:\.0{1,6})?"

_YCSB_OPTIONS: Final = (
    ("readallfields", _BOOLEAN, "true", "a read takes all fields, else one of them"),
    ("writeallfields", _BOOLEAN, "false", "an update writes all fields, else one of them"),
    ("fieldlengthdistribution", "constant|uniform|zipfian", "constant", "how long values are"),
    ("minfieldlength", _POSITIVE, "1", "the shortest value, where they differ"),
    ("insertorder", "hashed|ordered", "hashed", "whether keys are in the order of their numbers"),
    ("zeropadding", "[1-9][0-9]?", "10", "digits of a key's number at least"),
    ("minscanlength", _POSITIVE, "1", "records of the shortest scan"),
    ("maxscanlength", _POSITIVE, "100", "records of the longest scan"),
    ("scanlengthdistribution", "uniform|zipfian", "uniform", "how long scans are"),
    ("hotspotdatafraction", _SHARE, "0.2", "the share of records that are hot (`hotspot`)"),
    ("hotspotopnfraction", _SHARE, "0.8", "the share of operations that go to them"),
    ("exponential.percentile", r"[0-9]{1,2}(?:\.[0-9]{1,3})?", "95", "see `exponential.frac`"),
    ("exponential.frac", _SHARE, "0.857143", "records that get this percent (`exponential`)"),
    ("core_workload_insertion_retry_limit", "[0-9]{1,3}", "0", "new tries of a failed insert"),
    ("core_workload_insertion_retry_interval", "[1-9][0-9]{0,2}", "3", "seconds between them"),
    ("spin.sleep", _BOOLEAN, "false", "wait for an operation's due time without sleeping"),
)

_BINDINGS: Final = (
    ("cache_bytes", _BYTES, "8388608", "RocksDB's block cache (embedded)"),
    ("block_bytes", "[1-9][0-9]{2,6}", "4096", "bytes of a block of RocksDB (embedded)"),
    ("bloom_bits", "[0-9]{1,2}", "10", "bits of RocksDB's filter a key, 0 for none (embedded)"),
    ("direct_reads", _BOOLEAN, "true", "RocksDB reads and writes past the page cache (embedded)"),
    ("sync", _BOOLEAN, "true", "RocksDB syncs its log with each write (embedded)"),
    ("connections", "[1-9][0-9]?", "1", "connections to each node of Cassandra"),
    ("timeout_ms", "[1-9][0-9]{2,5}", "12000", "how long an answer of Cassandra is waited for"),
)

BENCHMARKS: Final = (
    "readrandom",
    "readrandomwriterandom",
    "readwhilewriting",
    "readrandomfast",
    "readrandomsmall",
    "readrandomcoroutine",
    "readrandomentity",
    "multireadrandom",
    "multireadrandomcoroutine",
    "multireadentity",
    "multireadwhilewriting",
    "multiscan",
    "multiscanrandom",
    "seekrandom",
    "seekrandomwhilewriting",
    "newiterator",
    "newiteratorwhilewriting",
    "approximatesizerandom",
    "overwrite",
    "updaterandom",
    "xorupdaterandom",
    "appendrandom",
    "mixgraph",
    "randomwithverify",
)
"""What db_bench can do for a time with a database that was loaded, by its own names.

Others end by themselves whatever time they are given, make a database of their own, or need a
merge operator, which the loaded one has not.
"""

WRITERS_BESIDE: Final = ("whilewriting",)
"""What the names of benchmarks end in that have a writer of their own beside the readers."""

VERSIONS: Final = {"4.0": "4.0.17", "4.1": "4.1.10", "5.0": "5.0.6"}
"""The lines of Cassandra that a managed node may be of, each with the version that was tried."""

CONSISTENCIES: Final = (
    "ANY",
    "ONE",
    "TWO",
    "THREE",
    "QUORUM",
    "ALL",
    "LOCAL_ONE",
    "LOCAL_QUORUM",
    "EACH_QUORUM",
)
"""Cassandra's consistency levels of reads and writes."""

KEYSPACE_CHARACTERS: Final = 48
"""As long as Cassandra takes."""

_VERSION: Final = re.compile(r"(?:4\.0|4\.1|5\.0)(?:\.[0-9]{1,3})?")
_KEYSPACE: Final = re.compile(rf"[a-z][a-z0-9_]{{0,{KEYSPACE_CHARACTERS - 1}}}")

_ENDPOINT: Final = re.compile(
    r"(?:\[(?P<six>[^\]]{1,60})\]|(?P<name>[^:\[\]]{1,253}))(?::(?P<port>[0-9]{1,5}))?"
)

_PROGRAM: Final = re.compile(
    r"(?:/[A-Za-z0-9_.+][A-Za-z0-9_.+-]{0,99}){1,20}|[A-Za-z0-9_.+][A-Za-z0-9_.+-]{0,98}"
)

DB_BENCH_ENGINES: Final = (DB_BENCH_ENGINE,)
YCSB_ENGINES: Final = (YCSB_ENGINE,)
INDICATORS: Final = (BY_KEY_OPERATIONS,)

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


class YcsbOption(EngineOption):
    """With what it is called by.

    `property_prefix` is what stands before its name: nothing for YCSB's own, `iolab.` for those of
    the bindings, and for those of the Java machine, which are no properties, the flag.
    """

    property_prefix: str = ""


YCSB_OPTIONS: Final[Mapping[str, YcsbOption]] = MappingProxyType(
    {
        name: YcsbOption(name, re.compile(pattern), example, meaning, prefix)
        for prefix, options in (
            ("", _YCSB_OPTIONS),
            (BINDING, _BINDINGS),
            ("-Xmx", ((HEAP, "[1-9][0-9]{0,6}[mg]", "512m", "heap of the client's Java"),)),
        )
        for name, pattern, example, meaning in options
    }
)
"""Every allowed option by its name."""


def cassandra_version_value() -> values.ValueReader:
    """A version of Cassandra; one without a third part is the one that was tried of its line."""
    hint = f"Give a version of {', '.join(VERSIONS)} in quotes, as '{VERSIONS['4.0']}' or '4.0'."
    base = values.matching_text_value(
        _VERSION.fullmatch, hint, {"pattern": f"^(?:{_VERSION.pattern})$"}
    )

    def read_cassandra_version(value: object) -> str:
        version = str(base.read(value))
        return VERSIONS.get(version, version)

    return values.ValueReader(read_cassandra_version, base.schema)


def keyspace_value() -> values.ValueReader:
    """The name of a keyspace, which is never quoted."""
    hint = "Use small letters, digits and '_', a letter first, "
    hint += f"at most {KEYSPACE_CHARACTERS} characters."
    return values.matching_text_value(
        _KEYSPACE.fullmatch, hint, {"pattern": f"^{_KEYSPACE.pattern}$"}
    )


def program_name_or_path_value() -> values.ValueReader:
    """A program by its full path, or by a name that is found on PATH; nothing else of a path."""
    hint = "Give a full path, as '/opt/jdk-17/bin/java', or a name without a slash."
    return values.matching_text_value(
        _PROGRAM.fullmatch, hint, {"pattern": f"^(?:{_PROGRAM.pattern})$"}
    )


def listen_endpoint_value() -> values.ValueReader:
    """Where a server listens, `HOST[:PORT]`, an IPv6 address in brackets."""
    hint = "Write HOST[:PORT], as in 'db-1.example.org:9042'."
    return values.matching_text_value(is_valid_endpoint, hint, {}, "has")


def is_valid_endpoint(text: str) -> bool:
    """Whether `text` is HOST[:PORT] of a name or an IP address."""
    match = _ENDPOINT.fullmatch(text)
    if match is None:
        return False
    if match["port"] and not 1 <= int(match["port"]) <= ssh_addresses.PORT_MAX:
        return False
    return ssh_addresses.is_valid_ssh_host(match["name"] or match["six"])


def listen_ip_value() -> values.ValueReader:
    """The IP address that a server of ours listens on.

    On all ports at once nobody could say who reaches it, and Cassandra refuses it.
    """
    return values.matching_text_value(
        lambda text: (
            ssh_addresses.is_ip_address(text) and not ipaddress.ip_address(text).is_unspecified
        ),
        "Give the IP address of one of the host's own ports, as '127.0.0.1' or '192.0.2.7'.",
        {},
    )


def is_sum_of_shares_one(shares: list[float]) -> bool:
    """Whether shares are a whole, but for what decimal fractions lose in binary."""
    return math.isclose(sum(shares), 1, abs_tol=1e-9)


def ycsb_option_text(value: float | str) -> str:
    """The value of an option as YCSB reads it: `true` and `false`, numbers and text as they are."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


KeyIndicator = Annotated[Indicator, values.word_value(INDICATORS, "indicators")]
Threads = Annotated[int, values.integer_value(1, THREADS_MAX)]
BlockBytes = Annotated[int | str, values.size_value(BLOCK_BYTES_MIN, BLOCK_BYTES_MAX, multiple=1)]
Bytes = Annotated[int | str, values.size_value(0, BYTES_MAX, multiple=1)]
MemoryBytes = Annotated[int | str, values.size_value(MEMORY_BYTES_MIN, BYTES_MAX, multiple=1)]
ValueBytes = Annotated[int | str, values.size_value(1, VALUE_BYTES_MAX, multiple=1)]
Share = Annotated[float, values.number_value(0, 1, ", as 0.95")]


class DbBenchTable(LoadTable):
    """`[[workload]]` of db_bench."""

    job_type: ClassVar[type[AnyJob]] = DbBenchJob
    axes: ClassVar[tuple[str, ...]] = ("block_size", "threads")

    engine: Annotated[EngineName, values.word_value(DB_BENCH_ENGINES, "engines")]
    benchmark: Annotated[str, values.word_value(BENCHMARKS, "benchmarks")]
    keys: Annotated[int, values.integer_value(1, KEYS_MAX)]
    key_size: Annotated[int | str, values.size_value(KEY_BYTES_MIN, KEY_BYTES_MAX, multiple=1)] = 16
    value_size: ValueBytes = 1024
    block_size: Annotated[list[BlockBytes], Sizes]
    threads: Annotated[list[Threads], Numbers]
    cache_size: Bytes = "8m"
    memory: MemoryBytes | None = None
    bloom_bits: Annotated[int, values.integer_value(0, BLOOM_BITS_MAX)] = 10
    read_percent: Annotated[int, values.integer_value(0, 100)] | None = None
    write_rate: Annotated[int | str, values.size_value(1, BYTES_MAX, multiple=1)] | None = None
    database: TargetPath | None = None
    indicator: KeyIndicator = BY_KEY_OPERATIONS
    db_bench: dict[str, Label] = Field(default_factory=dict)

    def build_job(self) -> DbBenchJob:
        """See `LoadTable`."""
        loaded = DatabaseSpec(
            keys=self.keys,
            key_bytes=parse_size(self.key_size),
            value_bytes=parse_size(self.value_size),
            block_bytes=parse_size(self.block_size[0]),
            bloom_bits=self.bloom_bits,
        )
        return DbBenchJob(
            **DbBenchJob.fields_from_keys([*self.non_null_keys_and_values(), ("loaded", loaded)])
        )


class MixTable(StudyTable):
    """`mix` of a YCSB workload: the share of each operation, all of them 1."""

    read: Share = 0.0
    update: Share = 0.0
    insert: Share = 0.0
    scan: Share = 0.0
    read_modify_write: Share = 0.0


class YcsbTable(LoadTable):
    """`[[workload]]` of YCSB."""

    job_type: ClassVar[type[AnyJob]] = YcsbJob
    axes: ClassVar[tuple[str, ...]] = ("threads", "rate")
    program_option_text = staticmethod(ycsb_option_text)

    engine: Annotated[EngineName, values.word_value(YCSB_ENGINES, "engines")]
    mix: MixTable
    records: Annotated[int, values.integer_value(1, RECORDS_MAX)]
    fields: Annotated[int, values.integer_value(1, FIELDS_MAX)] = 4
    field_size: ValueBytes = 1024
    threads: Annotated[list[Threads], Numbers]
    distribution: Annotated[
        KeyDistribution, values.choice_value(KeyDistribution, "distributions")
    ] = KeyDistribution.UNIFORM
    rate: Annotated[list[Annotated[int, values.integer_value(1, RATE_MAX)]], Numbers] | None = None
    memory: MemoryBytes | None = None
    indicator: KeyIndicator = BY_KEY_OPERATIONS
    ycsb: dict[str, Label] = Field(default_factory=dict)

    def build_job(self) -> YcsbJob:
        """See `LoadTable`."""
        return YcsbJob(
            **YcsbJob.fields_from_keys(
                [*self.non_null_keys_and_values(), ("mix", operations_and_nonzero_shares(self.mix))]
            )
        )


class ServerTable(StudyTable):
    """`[server]`: the store of all YCSB workloads; each kind reads the keys that it needs."""

    kind: Annotated[ServerKind, values.choice_value(ServerKind, "kinds of server")] = (
        EMBEDDED_SERVER.kind
    )
    addresses: (
        Annotated[
            list[Annotated[str, listen_endpoint_value()]], values.ListValue(allow_scalar=True)
        ]
        | None
    ) = None
    host: Annotated[str, values.host_name_value()] | None = None
    version: Annotated[str, cassandra_version_value()] = EMBEDDED_SERVER.version
    listen: Annotated[str, listen_ip_value()] = EMBEDDED_SERVER.listen
    port: Annotated[int, values.integer_value(1, ssh_addresses.PORT_MAX)] = EMBEDDED_SERVER.port
    heap: Annotated[int | str, values.size_value(HEAP_BYTES_MIN, BYTES_MAX, multiple=1)] = "1g"
    memory: MemoryBytes | None = None
    keyspace: Annotated[str, keyspace_value()] = EMBEDDED_SERVER.keyspace
    replication: Annotated[int, values.integer_value(1, min(REPLICATION_MAX, HOSTS_MAX))] = (
        EMBEDDED_SERVER.replication
    )
    consistency: Annotated[str, values.word_value(CONSISTENCIES, "consistency levels")] = (
        EMBEDDED_SERVER.consistency
    )
    ycsb: TargetPath | None = None
    java: Annotated[str, program_name_or_path_value()] = EMBEDDED_SERVER.java


def server_table_or_default(tables: StudyTables) -> ServerTable:
    """The server's table; without one there is no server."""
    return tables.find_single_table(ServerTable) or ServerTable()


def operations_and_nonzero_shares(mix_table: MixTable) -> tuple[tuple[KeyOperation, float], ...]:
    """Each operation's share, without those that have none, in the order of the table."""
    shares = ((KeyOperation[key.upper()], getattr(mix_table, key)) for key in MixTable.model_fields)
    return tuple((operation, share) for operation, share in shares if share)


def server_settings_of_table(server_table: ServerTable) -> ServerSettings:
    """The server as written; without a table there is none."""
    return ServerSettings(
        **ServerSettings.fields_from_keys(server_table.non_null_keys_and_values())
    )


def server_settings_for_plan_digest(study: Study) -> dict[str, object]:
    """What makes two plans differ in their server, where any workload has one."""
    if server_settings_or_embedded(study) == EMBEDDED_SERVER or not _uses_ycsb(study):
        return {}
    return {"server": nested_field_values(server_settings_or_embedded(study))}


def _uses_ycsb(study: Study) -> bool:
    return any(isinstance(item.job, YcsbJob) for item in study.workloads)
