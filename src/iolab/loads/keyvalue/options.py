"""Further options of db_bench that a study may set, and nothing else.

What iolab itself decides (keys, sizes, blocks, threads, seeds, time, what is printed, the path of
the database) is not listed, nor what would name files or change what is counted. Programs may be
named by their full path; what such a path may end in is fixed, and no part of it may begin with a
dash.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from iolab.core.engine import EngineOption

PROGRAMS: Final = ("db_bench", "sst_dump")
"""Options that name a program; all others are handed to db_bench under their own name."""


_FLAG: Final = "[01]"
_COUNT: Final = "[0-9]{1,6}"
_BYTES: Final = "[0-9]{1,15}"
_FOLDERS: Final = r"(?:(?:/[A-Za-z0-9_.+][A-Za-z0-9_.+-]{0,99}){1,20}/)?"
_BUILD: Final = r"(?:[.-][A-Za-z0-9.-]{1,20})?"

_ALL: Final = (
    ("db_bench", f"{_FOLDERS}db_bench{_BUILD}", "/opt/rocksdb/db_bench", "db_bench itself"),
    ("sst_dump", f"{_FOLDERS}sst_dump{_BUILD}", "/opt/rocksdb/sst_dump", "sst_dump itself"),
    # How files are read and written.
    ("use_direct_reads", _FLAG, "1", "read past the page cache"),
    ("use_direct_io_for_flush_and_compaction", _FLAG, "1", "write past the page cache"),
    ("mmap_read", _FLAG, "1", "read through a mapping"),
    ("open_files", "-1|[0-9]{1,6}", "-1", "files kept open, -1 for all"),
    ("compaction_readahead_size", _BYTES, "2097152", "bytes that compaction reads ahead"),
    ("bytes_per_sync", _BYTES, "1048576", "sync files bit by bit while they are written"),
    ("wal_bytes_per_sync", _BYTES, "1048576", "the same for the log"),
    ("rate_limiter_bytes_per_sec", _BYTES, "104857600", "limit of flush and compaction"),
    # When writes are durable.
    ("sync", _FLAG, "1", "sync the log with each write"),
    ("disable_wal", _FLAG, "1", "write no log"),
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
    ("disable_auto_compactions", _FLAG, "1", "do not compact"),
    # The block cache.
    ("cache_type", "lru_cache|clock_cache|hyper_clock_cache", "lru_cache", "kind of cache"),
    ("cache_numshardbits", "-1|[0-9]{1,2}", "6", "2 to this power shards"),
    ("cache_index_and_filter_blocks", _FLAG, "1", "count these blocks in the cache"),
    (
        "pin_l0_filter_and_index_blocks_in_cache",
        _FLAG,
        "1",
        "keep those of level 0 in the cache",
    ),
    ("partition_index_and_filters", _FLAG, "1", "index and filter in parts"),
    ("block_align", _FLAG, "1", "blocks begin at multiples of their size"),
    # What threads do.
    ("seek_nexts", _COUNT, "10", "entries read after a seek"),
    ("enable_pipelined_write", _FLAG, "1", "write log and memtable in turn"),
    ("allow_concurrent_memtable_write", _FLAG, "1", "several writers into one memtable"),
)

DB_BENCH_OPTIONS: Final[Mapping[str, EngineOption]] = MappingProxyType(
    {
        name: EngineOption(name, re.compile(pattern), example, meaning)
        for name, pattern, example, meaning in _ALL
    }
)
"""Every allowed option by its name."""


@dataclass(frozen=True, slots=True)
class YcsbOption(EngineOption):
    """With what it is called by.

    `prefix` is what it is called by beyond its name: nothing for YCSB's own, `iolab.` for those of
    the bindings, and for those of the Java machine, which are no properties, the flag.
    """

    prefix: str = ""


BINDING: Final = "iolab."
"""Properties that the bindings read."""

HEAP: Final = "heap"
"""The one option that is told to the Java machine."""

LOAD_ONLY: Final = frozenset({"block_bytes", "bloom_bits"})
"""What a database of RocksDB has from its load; a run on it uses the same for what it writes."""


_BOOLEAN: Final = "true|false"
_POSITIVE: Final = "[1-9][0-9]{0,8}"
_SHARE: Final = r"0(?:\.[0-9]{1,6})?|1(?:\.0{1,6})?"


_OWN: Final = (
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

YCSB_OPTIONS: Final[Mapping[str, YcsbOption]] = MappingProxyType(
    {
        name: YcsbOption(name, re.compile(pattern), example, meaning, prefix)
        for prefix, options in (
            ("", _OWN),
            (BINDING, _BINDINGS),
            ("-Xmx", ((HEAP, "[1-9][0-9]{0,6}[mg]", "512m", "heap of the client's Java"),)),
        )
        for name, pattern, example, meaning in options
    }
)
"""Every allowed option by its name."""
