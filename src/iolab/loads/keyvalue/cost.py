"""What key-value load of one client will cost before it runs: bytes, seconds, memory.

Seconds are of two cores with an SSD, where all of it was measured; larger machines are faster.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from iolab.core.run import Plan, PlannedRun, Point
from iolab.core.study import Method, Study
from iolab.loads.keyvalue.table import WRITERS_BESIDE
from iolab.loads.keyvalue.workload import (
    DbBenchJob,
    KeyJob,
    KeyOperation,
    ServerKind,
    YcsbJob,
    server_settings_or_embedded,
)
from iolab.record import Record
from iolab.study.cost import idle_watch_seconds_beyond_settle
from iolab.study.writes import RunWrites
from iolab.text import counted_noun, quote_value
from iolab.units import format_bytes, format_duration_s, format_rate_bytes

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

COPY_WRITES: Final = 2
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

_READS: Final = (
    "read",
    "multiread",
    "seek",
    "newiterator",
    "approximate",
    "multiscan",
)

_WRITES: Final = (*WRITERS_BESIDE, "writerandom")

CONNECT_S: Final[Mapping[ServerKind, int]] = {
    ServerKind.EMBEDDED: 2,
    ServerKind.MANAGED: 5,
    ServerKind.EXTERNAL: 6,
}
"""From the start of YCSB's own clock to the first operation: a database is opened, or a driver
finds all nodes of a cluster and connects to each. Half a second, one, and three on idle hosts, and
several times that on busy ones."""

CONNECT_SPREAD_S: Final = 5
"""How far the clients' own clocks may start from each other: a Java machine starts in half a
second on an idle host and in several on a busy one, and YCSB counts only from then on."""

FILESYSTEM_S: Final = 2.0
"""Making an XFS, and mounting it."""

DB_BENCH_OVERRUN_S: Final = 1
"""db_bench runs so much longer than it is measured: its report is of whole seconds."""

DB_BENCH_RUN_S: Final = 1.1
"""Of a run beside its load and its idle watch: a copy by reflink, dropped caches, the start of
db_bench and its last words. One second was measured on two cores that others used too."""

YCSB_RUN_S: Final = 1.0
"""The same of YCSB, whose logs are read back: three seconds were measured with a whole copy of
420 MB, which is counted by itself."""

NODE_START_S: Final = 10.0
"""A node's first start, its schema, and the start of the client that loads."""

NODE_SETTLE_S: Final = 12.0
"""Flush, compaction, counting of rows, and the stop after a load; the stop at the end."""

NODE_RESTART_S: Final = 12.0
"""Killing a node, restoring its files, dropping caches, starting it, and waiting for it."""


def compacted_store_bytes(job: KeyJob) -> int:
    """What a loaded and compacted database takes on its file system."""
    if isinstance(job, YcsbJob):
        return round(job.records * (job.record_bytes + RECORD_BYTES) * TABLE_SHARE)
    loaded = job.loaded
    filters = loaded.keys * loaded.bloom_bits // 8
    return round(loaded.keys * loaded.entry_bytes * TABLE_SHARE) + filters


def fill_and_compaction_seconds(
    job: KeyJob, host_write_bytes_per_s: float, *, is_embedded: bool = True
) -> float:
    """How long it takes to load it and to wait for its compaction."""
    moved_s = compacted_store_bytes(job) * LOAD_WRITES / host_write_bytes_per_s
    if isinstance(job, YcsbJob):
        return job.records * (YCSB_INSERT_S if is_embedded else SERVER_INSERT_S) + moved_s
    return COMPACTION_WAIT_S + job.loaded.keys * INSERT_S + moved_s


def max_client_write_bytes_per_s(job: KeyJob, target_write_bytes_per_s: float) -> float:
    """Bytes/s of keys and values that a client writes at most, at that rate of its target."""
    if isinstance(job, YcsbJob):
        changing = (KeyOperation.UPDATE, KeyOperation.INSERT, KeyOperation.READ_MODIFY_WRITE)
        share = sum(job.operation_share(operation) for operation in changing)
        limit = job.rate_ops_per_s
        return (
            min(target_write_bytes_per_s * share, limit * share * job.record_bytes)
            if limit
            else target_write_bytes_per_s * share
        )
    if job.write_bytes_per_s is not None:
        return float(min(job.write_bytes_per_s, target_write_bytes_per_s))
    if job.workload == "readrandomwriterandom":
        return target_write_bytes_per_s * (1 - job.read_percent / 100)
    return 0.0 if _is_read_only(job) else target_write_bytes_per_s


def client_memory_needed_bytes(job: KeyJob) -> int:
    """What a client's process is likely to need, without any of its files in the page cache."""
    if isinstance(job, YcsbJob):
        return (
            JAVA_BYTES + job.threads * THREAD_BYTES + _index_bytes(compacted_store_bytes(job), 4096)
        )
    loaded = job.loaded
    size = loaded.keys * loaded.entry_bytes
    filters = loaded.keys * loaded.bloom_bits // 8
    index = _index_bytes(size, loaded.block_bytes)
    writes = 0 if _is_read_only(job) else MEMTABLES_BYTES
    if job.write_bytes_per_s is not None:
        writes = min(writes, job.write_bytes_per_s * 60)
    threads = job.seed_stream_count * THREAD_BYTES
    return PROCESS_BYTES + job.cache_bytes + filters + index + writes + threads


def _index_bytes(data_bytes: int, block_bytes: int) -> int:
    return data_bytes // block_bytes * INDEX_ENTRY_BYTES


def _is_read_only(job: DbBenchJob) -> bool:
    return job.workload.startswith(_READS) and not job.workload.endswith(_WRITES)


def clients_start_allowance_s(server_kind: ServerKind, client_count: int) -> int:
    """What a run lasts beyond its warm-up and runtime, so that all clients have these in common."""
    return CONNECT_S[server_kind] + (CONNECT_SPREAD_S if client_count > 1 else 0)


def ycsb_execution_limit_s(method: Method, server_kind: ServerKind, client_count: int) -> int:
    """YCSB's `maxexecutiontime` on each client: connecting, warm-up and runtime, whole seconds."""
    return math.ceil(method.warmup_s + method.runtime_s) + clients_start_allowance_s(
        server_kind, client_count
    )


def run_load_duration_s(
    warmup_and_runtime_s: float, job: KeyJob, server_kind: ServerKind, client_count: int
) -> float:
    """How long one run loads its store; `warmup_and_runtime_s` is warm-up and runtime."""
    if isinstance(job, YcsbJob):
        return warmup_and_runtime_s + clients_start_allowance_s(server_kind, client_count)
    return warmup_and_runtime_s + DB_BENCH_OVERRUN_S


def run_overhead_s(study: Study, job: KeyJob) -> float:
    """What one run takes beside its load."""
    if isinstance(job, DbBenchJob):
        return DB_BENCH_RUN_S + idle_watch_seconds_beyond_settle(study.method)
    return (
        YCSB_RUN_S
        + idle_watch_seconds_beyond_settle(study.method)
        + (NODE_RESTART_S if server_settings_or_embedded(study).kind is ServerKind.MANAGED else 0)
    )


def key_value_time_items(
    study: Study, runs: Iterable[PlannedRun], host_write_bytes_per_s: float
) -> Iterator[tuple[str, float]]:
    """Where the seconds of key-value load go; nothing where there is none."""
    planned = [run for run in runs if isinstance(run.point.job, KeyJob)]
    if not planned:
        return
    points = [run.point for run in planned]
    if study.target.make_xfs:
        filesystems = len({point.configuration for point in points})
        yield "make an XFS on each client", FILESYSTEM_S * filesystems
    yield from _fill_time_items(study, points, host_write_bytes_per_s)
    method = study.method
    fixed_s = method.warmup_s + method.runtime_s
    length = f"warm-up + runtime of {format_duration_s(method.warmup_s)} + "
    length += format_duration_s(method.runtime_s)
    clients = {item.id: len(item.hosts) for item in study.configurations}
    for kind, message in ((DbBenchJob, "db_bench"), (YcsbJob, "YCSB")):
        of_kind = [(point, point.job) for point in points if isinstance(point.job, kind)]
        if not of_kind:
            continue
        jobs = [job for _, job in of_kind]
        server = server_settings_or_embedded(study).kind
        loads = sum(
            run_load_duration_s(fixed_s, job, server, clients[point.configuration])
            for point, job in of_kind
        )
        many = f"{counted_noun(len(jobs), 'run')} of {message}"
        yield f"{many}: {length}{', connect' if kind is YcsbJob else ''}", loads
        around_s = sum(run_overhead_s(study, job) for job in jobs)
        yield f"{many}: {_run_overhead_steps_text(study, jobs[0])}", around_s


def _run_overhead_steps_text(study: Study, job: KeyJob) -> str:
    """What a run does beside its load."""
    if isinstance(job, YcsbJob) and server_settings_or_embedded(study).kind is ServerKind.MANAGED:
        return "restore the node and start it, drop caches, watch, commit"
    if isinstance(job, YcsbJob) and server_settings_or_embedded(study).kind is ServerKind.EXTERNAL:
        return "start and end it, watch, commit"
    return f"copy {format_bytes(compacted_store_bytes(job))}, drop caches, watch, commit"


def _fill_time_items(
    study: Study, points: list[Point], host_write_bytes_per_s: float
) -> Iterator[tuple[str, float]]:
    kind = server_settings_or_embedded(study).kind
    seconds, size, number = 0.0, 0, 0
    for configuration in study.configurations:
        own_points = (point for point in points if point.configuration == configuration.id)
        for job in filter(_is_filled_by_iolab, jobs_of_distinct_stores(own_points)):
            number += 1
            size += compacted_store_bytes(job)
            seconds += fill_and_compaction_seconds(
                job, host_write_bytes_per_s, is_embedded=kind is ServerKind.EMBEDDED
            )
            if isinstance(job, YcsbJob) and kind is ServerKind.MANAGED:
                seconds += NODE_START_S + NODE_SETTLE_S
    if number:
        databases = f"{counted_noun(number, 'database')} of {format_bytes(size)}"
        yield f"load and compact {databases} (assumed rates)", seconds


def _is_filled_by_iolab(job: KeyJob) -> bool:
    """Whether iolab loads the store; not a database of the user."""
    return isinstance(job, YcsbJob) or not job.database


def _store_contents_key(job: KeyJob) -> object:
    if isinstance(job, DbBenchJob):
        return job.loaded, job.options, job.database
    return job.records, job.fields, job.field_bytes


def jobs_of_distinct_stores(points: Iterable[Point]) -> tuple[KeyJob, ...]:
    """A job for each database or set of records that the points work on, of any configuration."""
    stores: dict[object, KeyJob] = {}
    for point in points:
        if isinstance(point.job, KeyJob):
            stores.setdefault(_store_contents_key(point.job), point.job)
    return tuple(stores.values())


def fill_bytes_on_all_hosts(study: Study, runs: Iterable[PlannedRun]) -> int:
    """What loading stores writes over all hosts."""
    planned = list(runs)
    total = 0
    for configuration in study.configurations:
        clients = len(configuration.hosts)
        own_points = [run.point for run in planned if run.point.configuration == configuration.id]
        for job in filter(_is_filled_by_iolab, jobs_of_distinct_stores(own_points)):
            copies = clients if has_store_per_client(study, job) else 1
            total += compacted_store_bytes(job) * LOAD_WRITES * copies
    return total


def writes_of_run(study: Study, point: Point) -> RunWrites:
    """What a run writes: updates at their own limit, or as fast as targets take them."""
    job = point.job
    if not isinstance(job, KeyJob):
        return RunWrites()
    clients = len(study.configuration(point.configuration).hosts)
    stores = clients if has_store_per_client(study, job) else 1
    seconds = study.method.warmup_s + study.method.runtime_s
    share = max_client_write_bytes_per_s(job, 1.0)
    if not share:
        return RunWrites()
    limited = max_client_write_bytes_per_s(job, math.inf)
    if math.isfinite(limited):
        return RunWrites(
            limited_bytes_per_s=limited * RUN_WRITES * stores, seconds_range=(seconds, seconds)
        )
    return RunWrites(host_share_at_target_speed=share * stores, seconds_range=(seconds, seconds))


def space_bytes_on_host(
    study: Study, points: Iterable[Point], host_name: str, host_write_bytes_per_s: float
) -> int:
    """The space that key-value load needs at most on that host's target, all at a time.

    Loaded stores stay; a copy of one, or its compaction, and what a run writes come on top.
    """
    seconds = study.method.warmup_s + study.method.runtime_s
    most = 0
    for configuration in study.configurations:
        own_points = [point for point in points if point.configuration == configuration.id]
        stores = [
            job
            for job in jobs_of_distinct_stores(own_points)
            if host_name in _store_hosts(study, job, configuration.hosts)
        ]
        if not stores:
            continue
        written = max(
            max_client_write_bytes_per_s(point.job, host_write_bytes_per_s) * seconds * COPY_WRITES
            for point in own_points
            if isinstance(point.job, KeyJob)
        )
        kept = sum(compacted_store_bytes(job) for job in stores if _is_filled_by_iolab(job))
        most = max(most, kept + max(compacted_store_bytes(job) for job in stores) + round(written))
    return most


def max_space_bytes_on_any_host(
    study: Study, runs: Iterable[PlannedRun], host_write_bytes_per_s: float
) -> int:
    """The same of the host that needs most; 0 without such load."""
    points = [run.point for run in runs if isinstance(run.point.job, KeyJob)]
    hosts = {name for item in study.configurations for name in item.hosts}
    if server_settings_or_embedded(study).host:
        hosts.add(server_settings_or_embedded(study).host)
    return max(
        (space_bytes_on_host(study, points, host, host_write_bytes_per_s) for host in hosts),
        default=0,
    )


def has_store_per_client(study: Study, job: KeyJob) -> bool:
    """Whether every client has a store of its own."""
    return (
        isinstance(job, DbBenchJob)
        or server_settings_or_embedded(study).kind is ServerKind.EMBEDDED
    )


Reflinks = Mapping[tuple[str, str], bool]
"""Whether files may share blocks, by configuration and host, where that is known."""


def notes_on_full_database_copies(
    study: Study, runs: Iterable[PlannedRun], reflinks: Reflinks, host_write_bytes_per_s: float
) -> Iterator[str]:
    """What is told of hosts whose file systems have no reflinks."""
    copies = list(_full_database_copies(study, runs, reflinks))
    if copies:
        largest = max(copies, key=lambda copy: copy.size_bytes)
        yield (
            "each run copies its database whole on "
            f"{quote_value(largest.hosts[0])}, whose file system "
            f"has no reflinks: "
            f"{format_duration_s(largest.size_bytes / host_write_bytes_per_s)} each at "
            f"{format_rate_bytes(host_write_bytes_per_s)}"
        )


def plan_with_copy_costs(
    study: Study, plan: Plan, reflinks: Reflinks, host_write_bytes_per_s: float
) -> Plan:
    """The plan with the seconds and the bytes of whole copies in its cost."""
    copies = list(_full_database_copies(study, plan.runs, reflinks))
    if not copies:
        return plan
    budget = plan.demand
    # The hosts of a run copy at the same time.
    seconds = sum(copy.size_bytes for copy in copies) / host_write_bytes_per_s
    written = sum(copy.size_bytes * len(copy.hosts) for copy in copies)
    largest = format_bytes(max(copy.size_bytes for copy in copies))
    copies_text = "1 whole copy" if len(copies) == 1 else f"{len(copies)} whole copies"
    message = (
        f"{copies_text} of up to {largest} without reflinks at "
        f"{format_rate_bytes(host_write_bytes_per_s)} (assumed)"
    )
    least = None if budget.least_seconds is None else budget.least_seconds + seconds
    return replace(
        plan,
        demand=replace(
            budget,
            seconds=budget.seconds + seconds,
            time_items=(*budget.time_items, (message, seconds)),
            write_bytes_estimate=budget.write_bytes_estimate + written,
            least_seconds=least,
        ),
    )


class _FullDatabaseCopy(Record):
    """Of one run: how large the database is, and the hosts that copy it whole."""

    hosts: tuple[str, ...]
    size_bytes: int


def _full_database_copies(
    study: Study, runs: Iterable[PlannedRun], reflinks: Reflinks
) -> Iterator[_FullDatabaseCopy]:
    """Of each run that has any; an XFS that the session makes has reflinks."""
    if study.target.make_xfs:
        return
    clients = {item.id: item.hosts for item in study.configurations}
    for run in runs:
        job = run.point.job
        if isinstance(job, KeyJob):
            configuration = run.point.configuration
            holders = _store_hosts(study, job, clients[configuration])
            copying = tuple(
                host for host in holders if not reflinks.get((configuration, host), True)
            )
            if copying:
                yield _FullDatabaseCopy(copying, compacted_store_bytes(job))


def _store_hosts(study: Study, job: KeyJob, client_names: tuple[str, ...]) -> tuple[str, ...]:
    """The hosts on whose targets the copies lie; none for a cluster that the user has."""
    if has_store_per_client(study, job):
        return client_names
    if server_settings_or_embedded(study).kind is ServerKind.EXTERNAL:
        return ()
    return (server_settings_or_embedded(study).host or client_names[0],)
