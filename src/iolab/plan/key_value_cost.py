"""What key-value load of one client will cost before it runs: bytes, seconds, memory.

Seconds are of two cores with an SSD, where all of it was measured; larger machines are faster.
"""

from __future__ import annotations

from typing import Final

from iolab.model.key_value import KeyOperation, KeyValueJob
from iolab.model.ycsb import YcsbJob
from iolab.plan.key_value_values import WRITERS_BESIDE

KeyJob = KeyValueJob | YcsbJob

TABLE_SHARE: Final = 1.06
"""Table files against what they hold: blocks' own bytes, indices, properties."""

RECORD_BYTES: Final = 100
"""Of a record beside its values: its key, and the names and lengths of its fields."""

COMPACTION_WAIT_S: Final = 10.0
"""db_bench sleeps for five seconds before it sees whether a compaction is over, and does so twice
in a load."""

INSERT_S: Final = 5e-6
"""Of one thread into a memtable of RocksDB: 4 to 5 us were measured."""

YCSB_INSERT_S: Final = 8e-5
"""Of a client of 16 threads into an embedded RocksDB, its log written: 100,000 records of 4 KiB
took 8 seconds."""

SERVER_INSERT_S: Final = 2.8e-4
"""The same into one node of Cassandra beside it: 28 seconds."""

LOAD_WRITES: Final = 2
"""Every byte is written into a table once, and once more by compaction."""

RUN_WRITES: Final = 3
"""Of an update: the log, the flush, and a share of compaction."""

KEPT_WRITES: Final = 2
"""As much of that lies there at a time."""

PROCESS_BYTES: Final = 48 << 20
"""db_bench before it does anything: its program, its libraries, buffers of its threads."""

THREAD_BYTES: Final = 64 << 10
MEMTABLES_BYTES: Final = 128 << 20
"""Two memtables of RocksDB's usual size, which writers fill."""

INDEX_ENTRY_BYTES: Final = 32
"""Of a block in the index: its last key and where it lies."""

JAVA_BYTES: Final = 350 << 20
"""A client of YCSB: its heap at rest, Java itself, and RocksDB in it."""

NODE_BYTES: Final = 512 << 20
"""A node of Cassandra beside its heap, with nothing of its files in the page cache."""


def store_bytes(job: KeyJob) -> int:
    """What a loaded and compacted database takes on its file system."""
    if isinstance(job, YcsbJob):
        return round(job.records * (job.record_bytes + RECORD_BYTES) * TABLE_SHARE)
    loaded = job.loaded
    filters = loaded.keys * loaded.bloom_bits // 8
    return round(loaded.keys * loaded.entry_bytes * TABLE_SHARE) + filters


def load_seconds(job: KeyJob, rate: float, *, embedded: bool = True) -> float:
    """How long it takes to load it and to wait for its compaction; `rate` is in bytes/s."""
    moved_s = store_bytes(job) * LOAD_WRITES / rate
    if isinstance(job, YcsbJob):
        return job.records * (YCSB_INSERT_S if embedded else SERVER_INSERT_S) + moved_s
    return COMPACTION_WAIT_S + job.loaded.keys * INSERT_S + moved_s


def write_rate(job: KeyJob, rate: float) -> float:
    """Bytes/s of keys and values that a client writes at most, where its target takes `rate`."""
    if isinstance(job, YcsbJob):
        changing = (KeyOperation.UPDATE, KeyOperation.INSERT, KeyOperation.READ_MODIFY_WRITE)
        share = sum(job.share(operation) for operation in changing)
        limit = job.rate_ops_per_s
        return min(rate * share, limit * share * job.record_bytes) if limit else rate * share
    if job.write_bytes_per_s is not None:
        return float(min(job.write_bytes_per_s, rate))
    if job.workload == "readrandomwriterandom":
        return rate * (1 - job.read_percent / 100)
    return 0.0 if _only_reads(job) else rate


def memory_needed(job: KeyJob) -> int:
    """What a client's process is likely to need, without any of its files in the page cache."""
    if isinstance(job, YcsbJob):
        return JAVA_BYTES + job.threads * THREAD_BYTES + _index_bytes(store_bytes(job), 4096)
    loaded = job.loaded
    size = loaded.keys * loaded.entry_bytes
    filters = loaded.keys * loaded.bloom_bits // 8
    index = _index_bytes(size, loaded.block_bytes)
    writes = 0 if _only_reads(job) else MEMTABLES_BYTES
    if job.write_bytes_per_s is not None:
        writes = min(writes, job.write_bytes_per_s * 60)
    threads = job.streams * THREAD_BYTES
    return PROCESS_BYTES + job.cache_bytes + filters + index + writes + threads


def _index_bytes(size: int, block_bytes: int) -> int:
    return size // block_bytes * INDEX_ENTRY_BYTES


_READS: Final = (
    "read",
    "multiread",
    "seek",
    "newiterator",
    "approximate",
    "multiscan",
)
_WRITES: Final = (*WRITERS_BESIDE, "writerandom")


def _only_reads(job: KeyValueJob) -> bool:
    return job.workload.startswith(_READS) and not job.workload.endswith(_WRITES)
