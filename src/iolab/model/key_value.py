"""Load on a key-value store: operations, db_bench's job, its latencies, progress and shape."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from iolab.model.engine import EngineName


class KeyOperation(IntEnum):
    """What a client does with a key of a key-value store.

    The number stands in files, in the same column as `Direction` and the metadata operations,
    whose numbers it leaves alone. `ALL` is whatever a thread does, where the engine does not tell
    operations apart while it runs. The `INTENDED` ones are the same operations timed from when
    they were due (response time), known only under a rate.
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
    def word(self) -> str:
        """The name for people: `read-modify-write`."""
        return self.name.lower().replace("_", "-")

    @property
    def key(self) -> str:
        """The name in metric keys: `read_modify_write`."""
        return self.name.lower()

    @property
    def is_intended(self) -> bool:
        """Whether latencies count from when the operation was due."""
        return self.name.startswith("INTENDED_")

    @property
    def intended(self) -> KeyOperation | None:
        """The same operation timed from when it was due; None for one that is never so."""
        return None if self.is_intended else KeyOperation.__members__.get(f"INTENDED_{self.name}")


READ_RANDOM = "readrandom"
READ_RANDOM_WRITE_RANDOM = "readrandomwriterandom"
READ_WHILE_WRITING = "readwhilewriting"
_WRITER_BESIDE = "whilewriting"


@dataclass(frozen=True, slots=True)
class KeyValueSet:
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


@dataclass(frozen=True, slots=True)
class KeyValueJob:
    """One client's load on a loaded database with every number settled.

    `workload` is db_bench's name. Of `threads` all read in readwhilewriting, and one more writes,
    at most `write_bytes_per_s` of keys and values. `read_percent` is told to
    readrandomwriterandom. `cache_bytes` is RocksDB's own block cache. `memory_bytes` bounds all
    memory of the engine on a client, its page cache too; None does not. `database` is the path of
    one that the user has loaded, which is copied and never changed; "" where iolab loads its own.
    `options` are further options, allow-listed by their engine.
    """

    workload: str
    loaded: KeyValueSet
    threads: int
    cache_bytes: int
    read_percent: int = 80
    write_bytes_per_s: int | None = None
    memory_bytes: int | None = None
    database: str = ""
    options: tuple[tuple[str, str], ...] = ()

    @property
    def engine(self) -> EngineName:
        """What makes this load."""
        return EngineName.DB_BENCH

    @property
    def has_writer(self) -> bool:
        """Whether one more thread works beside those that count: in readwhilewriting and alike."""
        return self.workload.endswith(_WRITER_BESIDE)

    @property
    def streams(self) -> int:
        """Threads that draw keys, each from a random stream of its own."""
        return self.threads + (1 if self.has_writer else 0)


@dataclass(frozen=True, slots=True)
class LatencyBin:
    """`count` latencies above `low_ns` and up to `high_ns`, as the engine's own bins go."""

    low_ns: int
    high_ns: int
    count: int


@dataclass(frozen=True, slots=True)
class BinnedLatency:
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

    def bounds_ns(self, quantile: float) -> tuple[int, int]:
        """Between which latencies that quantile (0 to 1) lies for certain.

        It is the bin that holds it, cut at the extremes: nothing finer was recorded.
        """
        held, _ = self._bin_at(quantile)
        return max(held.low_ns, self.min_ns), min(held.high_ns, self.max_ns)

    def interpolated_ns(self, quantile: float) -> float:
        """What db_bench prints for that quantile: a straight line through the bin that holds it.

        As `HistogramStat::Percentile` of RocksDB has it (monitoring/histogram.cc).
        """
        held, below = self._bin_at(quantile)
        share = (self.count * quantile - below) / held.count
        at = held.low_ns + (held.high_ns - held.low_ns) * share
        return float(min(max(at, self.min_ns), self.max_ns))

    def relative_width(self, quantile: float) -> float:
        """How much wider than its lower edge the interval of `bounds_ns` is; 0.5 means 50 %.

        Infinite where the lower edge is 0.
        """
        low, high = self.bounds_ns(quantile)
        return (high - low) / low if low else float("inf")

    def _bin_at(self, quantile: float) -> tuple[LatencyBin, int]:
        """The bin in which the quantile lies, and the latencies in the bins below it."""
        if not 0 <= quantile <= 1:
            raise ValueError(f"{quantile} is not a quantile")
        if not self.bins:
            raise ValueError("there is no latency to take a quantile of")
        below = 0
        for one in self.bins:
            if below + one.count >= self.count * quantile:
                return one, below
            below += one.count
        return self.bins[-1], below - self.bins[-1].count


@dataclass(frozen=True, slots=True)
class ThreadProgress:
    """What one thread had done so far, `elapsed_s` after it began.

    `stamp_s` is the second of the host's clock, since 1970, in which it said so.
    """

    thread: int
    elapsed_s: float
    operations: int
    stamp_s: int


@dataclass(frozen=True, slots=True)
class LevelShape:
    """Files and bytes on one level of a log-structured merge tree.

    `score` is how full the level is against its own limit: at 1 and above it is to be compacted.
    """

    level: int
    files: int
    bytes: int
    score: float | None = None


@dataclass(frozen=True, slots=True)
class TableShape:
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
