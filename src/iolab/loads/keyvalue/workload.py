"""Load on a key-value store: operations, jobs, latencies, and what a run keeps of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, ClassVar, Final

from msgspec.structs import replace

from iolab.core.engine import EngineName
from iolab.core.host_name import HostName
from iolab.core.run import HostLoadDetails, HostRun, RunLoadDetails, RunManifest
from iolab.core.study import ServerConfig, Study
from iolab.core.workload import AnyJob, Indicator, OperationEnum
from iolab.record import Record
from iolab.units import parse_size

BY_KEY_OPERATIONS: Final = Indicator("key-operations")
"""Operations a second on a key-value store."""

KEY_INDICATORS: Final[Mapping[str, str | None]] = MappingProxyType({BY_KEY_OPERATIONS: "ops_per_s"})

DB_BENCH_ENGINE: Final = EngineName("db_bench")
"""RocksDB's own db_bench on a RocksDB database."""

YCSB_ENGINE: Final = EngineName("ycsb")
"""YCSB on a store, embedded or behind a server."""

MIX_CLASS: Final = "keys"
"""The kind of load among points that spread alike, whatever the engine."""

READ_RANDOM = "readrandom"
READ_RANDOM_WRITE_RANDOM = "readrandomwriterandom"
READ_WHILE_WRITING = "readwhilewriting"
_WRITER_BESIDE = "whilewriting"


class KeyOperation(OperationEnum):
    """What a client does with a key of a key-value store.

    `ALL` is whatever a thread does, where the engine does not tell operations apart while it runs.
    The `INTENDED` ones are the same operations timed from when they were due (response time), known
    only under a rate.
    """

    ALL = 32
    READ = 33
    WRITE = 34
    UPDATE = 35
    INSERT = 36
    SCAN = 37
    READ_MODIFY_WRITE = 38
    DELETE = 39
    SEEK = 40
    MERGE = 41
    COMPRESS = 42
    UNCOMPRESS = 43
    CRC = 44
    HASH = 45
    OTHER = 46
    INTENDED_READ = 65
    INTENDED_UPDATE = 67
    INTENDED_INSERT = 68
    INTENDED_SCAN = 69
    INTENDED_READ_MODIFY_WRITE = 70

    @property
    def is_intended(self) -> bool:
        """Whether latencies count from when the operation was due."""
        return self.name.startswith("INTENDED_")

    @property
    def intended_variant(self) -> KeyOperation | None:
        """The same operation timed from when it was due; None for one that is never so."""
        return None if self.is_intended else KeyOperation.__members__.get(f"INTENDED_{self.name}")


class DatabaseSpec(Record):
    """What a database was loaded with: `keys` distinct keys of one size with values of one size.

    `block_bytes` is RocksDB's block size, which a database has from its load and keeps.
    `bloom_bits` are those of the filter for each key, 0 for no filter.
    """

    keys: int
    key_bytes: int
    value_bytes: int
    block_bytes: int
    bloom_bits: int = 10

    @property
    def entry_bytes(self) -> int:
        """A key and its value."""
        return self.key_bytes + self.value_bytes


class DbBenchJob(AnyJob, Record, tag="db_bench"):
    """One client's load on a loaded database with every number settled.

    `workload` is db_bench's name. Of `threads` all read in readwhilewriting, and one more writes,
    at most `write_bytes_per_s` of keys and values. `read_percent` is told to
    readrandomwriterandom. `cache_bytes` is RocksDB's own block cache. `memory_bytes` bounds all
    memory of the engine on a client, its page cache too; None does not. `database` is the path of
    one that the user has loaded, which is copied and never changed; "" where iolab loads its own.
    `options` are further options, allow-listed by their engine.
    """

    type_tag: ClassVar[str] = "db_bench"
    reports_live_latency: ClassVar[bool] = False
    fills_data_store: ClassVar[bool] = True
    path_options: ClassVar[tuple[str, ...]] = ("database",)
    load_axes: ClassVar[tuple[str, ...]] = ("threads",)
    indicators: ClassVar[Mapping[str, str | None]] = KEY_INDICATORS
    field_by_study_key: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "benchmark": "workload",
            "cache_size": "cache_bytes",
            "write_rate": "write_bytes_per_s",
            "memory": "memory_bytes",
            "db_bench": "options",
        }
    )

    workload: str
    loaded: DatabaseSpec
    threads: int
    cache_bytes: int
    read_percent: int = 80
    write_bytes_per_s: int | None = None
    memory_bytes: int | None = None
    database: str = ""
    options: tuple[tuple[str, str], ...] = ()

    def with_axis_values(self, axis_values: Iterable[tuple[str, int | str]]) -> DbBenchJob:
        """The job with the axis values in place of its first ones."""
        values: dict[str, Any] = dict(axis_values)
        block = parse_size(values.get("block_size", self.loaded.block_bytes))
        loaded = replace(self.loaded, block_bytes=block)
        return replace(self, loaded=loaded, **self.fields_from_keys(axis_values))

    @property
    def engine(self) -> EngineName:
        """What makes this load."""
        return DB_BENCH_ENGINE

    def load_kind_and_mix(self, axis_values: Mapping[str, int | str]) -> tuple[str, str]:  # noqa: ARG002 - no axis has it
        """See `AnyJob`."""
        return MIX_CLASS, f"{self.workload}{self.read_percent}"

    @property
    def has_writer(self) -> bool:
        """Whether one more thread works beside those that count: in readwhilewriting and alike."""
        return self.workload.endswith(_WRITER_BESIDE)

    @property
    def seed_stream_count(self) -> int:
        """Threads that draw keys, each from a random stream of its own."""
        return self.threads + (1 if self.has_writer else 0)


class LatencyBin(Record):
    """`count` latencies above `low_ns` and up to `high_ns`, as the engine's own bins go."""

    low_ns: int
    high_ns: int
    count: int


class BinnedLatency(Record):
    """Latencies of one operation in the engine's own bins, which are kept as they are.

    `resolution_ns` is the step of the clock that timed them. `bins` ascend and are not empty.
    """

    operation: KeyOperation
    count: int
    mean_ns: float
    std_dev_ns: float
    min_ns: int
    max_ns: int
    resolution_ns: int
    bins: tuple[LatencyBin, ...]

    def quantile_bounds_ns(self, quantile: float) -> tuple[int, int]:
        """Between which latencies that quantile (0 to 1) lies for certain.

        It is the bin that holds it, cut at the extremes: nothing finer was recorded.
        """
        held, _ = self._bin_and_count_below(quantile)
        return max(held.low_ns, self.min_ns), min(held.high_ns, self.max_ns)

    def interpolated_quantile_ns(self, quantile: float) -> float:
        """What db_bench prints for that quantile: a straight line through the bin that holds it.

        As `HistogramStat::Percentile` of RocksDB has it (monitoring/histogram.cc).
        """
        held, below = self._bin_and_count_below(quantile)
        share = (self.count * quantile - below) / held.count
        at = held.low_ns + (held.high_ns - held.low_ns) * share
        return float(min(max(at, self.min_ns), self.max_ns))

    def relative_bin_width(self, quantile: float) -> float:
        """How much wider than its lower edge the interval of `quantile_bounds_ns` is.

        0.5 means 50 %.

        Infinite where the lower edge is 0.
        """
        low, high = self.quantile_bounds_ns(quantile)
        return (high - low) / low if low else float("inf")

    def _bin_and_count_below(self, quantile: float) -> tuple[LatencyBin, int]:
        """The bin in which the quantile lies, and the latencies in the bins below it."""
        if not 0 <= quantile <= 1:
            raise ValueError(f"{quantile} is not a quantile")
        if not self.bins:
            raise ValueError("there is no latency to take a quantile of")
        below = 0
        for held in self.bins:
            if below + held.count >= self.count * quantile:
                return held, below
            below += held.count
        return self.bins[-1], below - self.bins[-1].count


class ThreadProgress(Record):
    """What one thread had done so far, `elapsed_s` after it began.

    `stamp_s` is the second of the host's clock, since 1970, in which it said so.
    """

    thread: int
    elapsed_s: float
    operations: int
    stamp_s: int


class LevelShape(Record):
    """Files and bytes on one level of a log-structured merge tree.

    `score` is how full the level is against its own limit: at 1 and above it is to be compacted.
    """

    level: int
    files: int
    bytes: int
    score: float | None = None


class TableShape(Record):
    """The table files of a database, added up: what it really holds, and in blocks of what size."""

    files: int
    entries: int
    blocks: int
    block_bytes_sum: int
    key_bytes_sum: int
    value_bytes_sum: int
    compression: tuple[str, ...]

    @property
    def block_bytes_mean(self) -> float | None:
        """Bytes of a data block; None without a block."""
        return self.block_bytes_sum / self.blocks if self.blocks else None


YCSB_OPERATIONS: Final = (
    KeyOperation.READ,
    KeyOperation.UPDATE,
    KeyOperation.INSERT,
    KeyOperation.SCAN,
    KeyOperation.READ_MODIFY_WRITE,
)
"""What a workload of YCSB is mixed of; a read-modify-write counts as a read and an update too."""


class KeyDistribution(StrEnum):
    """How keys are drawn, in YCSB's words (`requestdistribution`)."""

    UNIFORM = "uniform"
    ZIPFIAN = "zipfian"
    LATEST = "latest"
    HOTSPOT = "hotspot"
    SEQUENTIAL = "sequential"
    EXPONENTIAL = "exponential"


class YcsbJob(AnyJob, Record, tag="ycsb"):
    """One client's load with every number settled.

    `mix` is each operation's share of all, which add up to 1. The store holds `records` of `fields`
    fields of `field_bytes` each, of which a read takes all and an update writes one.
    `rate_ops_per_s` is for all threads of the client, None for as fast as the store answers.
    `memory_bytes` bounds all memory of the client's process where the store is embedded in it, its
    page cache too. `options` are further options, allow-listed by the engine.
    """

    type_tag: ClassVar[str] = "ycsb"
    fills_data_store: ClassVar[bool] = True
    load_axes: ClassVar[tuple[str, ...]] = ("threads",)
    indicators: ClassVar[Mapping[str, str | None]] = KEY_INDICATORS
    field_by_study_key: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "field_size": "field_bytes",
            "rate": "rate_ops_per_s",
            "memory": "memory_bytes",
            "ycsb": "options",
        }
    )

    mix: tuple[tuple[KeyOperation, float], ...]
    records: int
    threads: int
    fields: int = 4
    field_bytes: int = 1024
    distribution: KeyDistribution = KeyDistribution.UNIFORM
    rate_ops_per_s: int | None = None
    memory_bytes: int | None = None
    options: tuple[tuple[str, str], ...] = ()

    def server_part_of_digest(self, server: ServerConfig | None) -> Mapping[str, object]:
        """What of the server makes a point another one: its kind, and how it answers.

        Where it runs, in which version and with what memory is of the target, which a study
        compares.
        """
        if not isinstance(server, ServerSettings) or server.kind is ServerKind.EMBEDDED:
            return {}
        return {"server": [server.kind, server.replication, server.consistency]}

    @property
    def engine(self) -> EngineName:
        """What makes this load."""
        return YCSB_ENGINE

    @property
    def may_use_server_table(self) -> bool:
        """Whether the study's server is what it works against."""
        return True

    def load_kind_and_mix(self, axis_values: Mapping[str, int | str]) -> tuple[str, str]:  # noqa: ARG002 - no axis has it
        """See `AnyJob`."""
        return MIX_CLASS, " ".join(f"{operation.key}{share:g}" for operation, share in self.mix)

    @property
    def record_bytes(self) -> int:
        """The values of a record."""
        return self.fields * self.field_bytes

    def operation_share(self, operation: KeyOperation) -> float:
        """The operation's share of all; 0 for one that the mix has not."""
        return dict(self.mix).get(operation, 0.0)


KeyJob = DbBenchJob | YcsbJob
"""A job on a key-value store, by whatever engine."""


class ServerKind(StrEnum):
    """Where the store of a YCSB workload runs."""

    EMBEDDED = "embedded"
    """RocksDB inside each client's own process, on the client's target: no server."""
    MANAGED = "managed"
    """One Apache Cassandra node that iolab starts, watches and stops on the target."""
    EXTERNAL = "given"
    """A cluster that the user has; iolab makes a keyspace in it and removes nothing else."""


class ServerSettings(ServerConfig, Record, tag="key-value"):
    """The store of a study's YCSB workloads.

    `addresses` are HOST[:PORT] of a given cluster. A managed node runs on `host`, a client or a
    storage node of the study ("" is the first client of each configuration), in `version`,
    listens on `listen`:`port` and nowhere else, has a heap of `heap_bytes` and, with
    `memory_bytes`, no more memory than that, its page cache too. `replication` and `consistency`
    are those of the keyspace and of every operation. `ycsb` is the folder of the user's own YCSB
    on every client, "" for the one that iolab brings; `java` the program, found on PATH when it
    has no slash.
    """

    field_by_study_key: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"heap": "heap_bytes", "memory": "memory_bytes"}
    )
    # What makes other work of the same operations, or answers them from another memory.
    keys_that_must_agree: ClassVar[tuple[str, ...]] = (
        "kind",
        "heap_bytes",
        "memory_bytes",
        "replication",
        "consistency",
    )

    kind: ServerKind = ServerKind.EMBEDDED
    addresses: tuple[str, ...] = ()
    host: str = ""
    version: str = "4.0.17"
    listen: str = "127.0.0.1"
    port: int = 9042
    heap_bytes: int = 1 << 30
    memory_bytes: int | None = None
    keyspace: str = "iolab"
    replication: int = 1
    consistency: str = "ONE"
    ycsb: str = ""
    java: str = "java"

    @property
    def is_memory_limited(self) -> bool:
        """Whether a node of ours is held to a bound of memory."""
        return self.kind is ServerKind.MANAGED and bool(self.memory_bytes)


EMBEDDED_SERVER: Final = ServerSettings()
"""No server."""


def server_settings_or_embedded(study: Study) -> ServerSettings:
    """The store of a study's YCSB workloads."""
    return study.server if isinstance(study.server, ServerSettings) else EMBEDDED_SERVER


class OperationCount(Record):
    """How often an operation came to its end in the whole run, and how often it failed.

    `failed` counts whatever is not the store's plain yes; `absent` are reads of keys that are not
    there, None where the engine does not tell.
    """

    operation: KeyOperation
    completed: int
    failed: int = 0
    absent: int | None = None


class ReportedStatistic(Record):
    """A number that the engine or the server tells of itself, under its own name."""

    name: str
    value: float
    unit: str


class StoreShape(Record):
    """What a database looked like before a run: its levels, table files and pending compactions.

    `pending_bytes` are still to be compacted, None where the engine does not tell.
    """

    levels: tuple[LevelShape, ...] = ()
    tables: TableShape | None = None
    pending_bytes: int | None = None


class KeyValueHostDetails(HostLoadDetails, Record, tag="key-value"):
    """What one client's engine told of a run.

    `build` is how the engine was compiled where it says so (`assertions enabled`), "" for nothing
    to remark. `seed` is of the key streams, `load_seed` of those that loaded the database, None
    where that is not known. `copied_by` is how the client's database came to its start state:
    `reflink`, `copy`, "" where the client has none of its own. `start` is its shape then.
    `latencies` are in the engine's own bins, of the whole run, where it gives no finer ones.
    `reported_ops_per_s` over `reported_s` is the engine's own total, for comparison. `faults` are
    sentences: why the run is not what was requested.
    """

    counts: tuple[OperationCount, ...]
    seed: int
    build: str = ""
    copied_by: str = ""
    start: StoreShape | None = None
    latencies: tuple[BinnedLatency, ...] = ()
    statistics: tuple[ReportedStatistic, ...] = ()
    reported_ops_per_s: float | None = None
    reported_s: float | None = None
    faults: tuple[str, ...] = ()
    load_seed: int | None = None


class ServerRunDetails(RunLoadDetails, Record, tag="key-value"):
    """What a server told around a run.

    `host` is the host of the study on which it runs, "" for one outside of it. `rows` is how many
    it holds, None where they were not counted, and `rows_by` says how (`count`, `estimate`).
    `restored_by` is how it came to its start state (`reflink`, `copy`), "" where it did not.
    `memory_bytes` bounds all of its memory, its page cache too; None does not.
    """

    product: str
    version: str
    address: str
    host: HostName = ""
    java: str = ""
    rows: int | None = None
    rows_by: str = ""
    restored_by: str = ""
    statistics_before: tuple[ReportedStatistic, ...] = ()
    statistics_after: tuple[ReportedStatistic, ...] = ()
    error: str | None = None
    memory_bytes: int | None = None

    @property
    def statistics_before_by_name(self) -> dict[str, float]:
        """The statistics before the load by name."""
        return {statistic.name: statistic.value for statistic in self.statistics_before}

    @property
    def statistics_after_by_name(self) -> dict[str, float]:
        """Those after it."""
        return {statistic.name: statistic.value for statistic in self.statistics_after}


def key_value_details_of_host(host: HostRun) -> KeyValueHostDetails | None:
    """What a client's engine told; None where it told nothing."""
    return host.details if isinstance(host.details, KeyValueHostDetails) else None


def server_details_of_run(manifest: RunManifest) -> ServerRunDetails | None:
    """What the run's server told; None without one."""
    return manifest.details if isinstance(manifest.details, ServerRunDetails) else None
