"""What engines, stores and devices told around runs on key-value stores, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from iolab.analysis.storage_bytes import distinct_device_deltas
from iolab.core.host import HostFacts
from iolab.core.metric import RunResult
from iolab.core.run import HostRun, RunKey
from iolab.core.study import Study
from iolab.core.workload import AnyJob
from iolab.loads.keyvalue.metrics import WHOLE_OPERATIONS_RATE_KEY
from iolab.loads.keyvalue.tables import key_value_workloads
from iolab.loads.keyvalue.workload import (
    DbBenchJob,
    KeyOperation,
    ReportedStatistic,
    ServerKind,
    ServerRunDetails,
    ServerSettings,
    StoreShape,
    YcsbJob,
    key_value_details_of_host,
    server_settings_or_embedded,
)
from iolab.record import Record
from iolab.report.numbers import DASH, metric_value_text, value_text
from iolab.report.table import (
    Cell,
    Column,
    Table,
    row_of_cells,
    text_and_number_columns,
    verdict_cell,
)
from iolab.text import counted_noun
from iolab.units import format_bytes, format_count

Runs = Mapping[RunKey, tuple[HostRun, ...]]
"""How runs went on each host."""

STATISTICS_SHOWN: Final = 64
"""Numbers of an engine's or a server's own in a run's part; the manifest has them all."""

_DIRECTIONS: Final = ("read", "write")

_KINDS: Final = {
    ServerKind.EMBEDDED: "RocksDB inside each client, no server",
    ServerKind.MANAGED: "one node of Apache Cassandra, run by iolab",
    ServerKind.EXTERNAL: "a cluster that was there",
}

_SHOWN: Final = frozenset({"bytes", "ns", "bytes/s", "ops/s"})

_UNITS: Final = {
    "B": ("bytes", 1.0),
    "us": ("ns", 1e3),
    "ms": ("ns", 1e6),
    "s": ("ns", 1e9),
}
"""Units as engines write them: the report's own, and by what to multiply."""

_WRITER: Final = "rocksdb.db.write.micros"

_ROCKSDB_COLUMNS: Final = (
    (f"{_WRITER} COUNT", "Writes"),
    (f"{_WRITER} P50", "Write p50"),
    (f"{_WRITER} P95", "Write p95"),
    (f"{_WRITER} P99", "Write p99"),
    (f"{_WRITER} P100", "Write max"),
    ("rocksdb.flush.write.bytes", "Flushed"),
    ("rocksdb.compact.read.bytes", "Compaction read"),
    ("rocksdb.compact.write.bytes", "Compaction wrote"),
    ("Stalls(count)", "Stalls"),
    ("Cumulative stall", "Stalled"),
)
"""What RocksDB counts of writes, of compaction and of stalls, under its own names."""


class HostRunsAndFacts(Record):
    """How runs went on each host, and what the hosts are."""

    runs: Runs
    facts: Mapping[str, HostFacts]


def device_io_table(
    named_results: Sequence[tuple[str, RunResult]], host_runs: HostRunsAndFacts
) -> Table | None:
    """What the target's block devices did beside the operations of whole runs; None if unknown.

    Runs come with their names. Clients of one kernel see the same devices: each counts once.
    """
    rows = []
    for name, result in named_results:
        hosts = host_runs.runs.get((result.digest, result.repeat), ())
        moved = distinct_device_deltas(
            ((host.host, host.devices[:1]) for host in hosts), host_runs.facts
        )
        seconds = [
            (host.end_real_ns - host.start_real_ns) / 1e9
            for host in hosts
            if host.start_real_ns is not None and host.end_real_ns is not None
        ]
        if not moved or not seconds or max(seconds) <= 0:
            continue
        span, done = max(seconds), _completed_operation_count(hosts)
        reads, writes = (
            sum(getattr(delta, f"{way}_ios") for delta in moved) for way in _DIRECTIONS
        )
        read, written = (
            sum(getattr(delta, f"{way}_bytes") for delta in moved) for way in _DIRECTIONS
        )
        rows.append(
            row_of_cells(
                name,
                metric_value_text(
                    result.metrics.get(WHOLE_OPERATIONS_RATE_KEY), is_rate_unit_omitted=True
                ),
                format_count(reads / span),
                value_text(read / span, "bytes/s"),
                format_bytes(read / reads) if reads else DASH,
                f"{reads / done:.2f}" if done else DASH,
                format_count(writes / span),
                value_text(written / span, "bytes/s"),
                result.verdict.level,
            )
        )
    if not rows:
        return None
    numbers = (
        *("Operations/s", "Device reads/s", "Read", "A read", "Reads an operation"),
        *("Device writes/s", "Written"),
    )
    heads = text_and_number_columns(("Point",), numbers, ("Verdict",))
    return Table("Device I/O beside the operations", heads, tuple(rows))


def _completed_operation_count(hosts: Sequence[HostRun]) -> int:
    """Operations of the whole run; a read-modify-write is a read and an update already."""
    counts = [
        counted
        for host in hosts
        if (reply := key_value_details_of_host(host))
        for counted in reply.counts
    ]
    modify = KeyOperation.READ_MODIFY_WRITE
    return sum(
        -counted.completed if counted.operation is modify else counted.completed
        for counted in counts
    )


def engine_build_texts(study: Study, host_runs_by_run: Runs) -> tuple[str, ...]:
    """Each engine as it was built: `db_bench 7.8.3, assertions enabled`; each once."""
    if not key_value_workloads(study):
        return ()
    builds = [
        ", ".join(part for part in (host.engine_version, reply.build) if part)
        for hosts in host_runs_by_run.values()
        for host in hosts
        if (reply := key_value_details_of_host(host)) is not None
    ]
    sizes = _data_size_and_memory_limit_text(study)
    texts = dict.fromkeys(text for text in builds if text)
    return tuple(f"{text}; {sizes}" if sizes else text for text in texts)


def _data_size_and_memory_limit_text(study: Study) -> str:
    """`20.3 MB of keys and values, memory 256 MiB`: whether memory holds the data."""
    jobs = [workload.job for workload in study.workloads]
    own = [job for job in jobs if isinstance(job, DbBenchJob) and not job.database]
    sizes = {(job.loaded.keys * job.loaded.entry_bytes, job.memory_bytes) for job in own}
    if len(sizes) != 1:
        return ""
    ((size, memory),) = sizes
    limit = f", at most {format_bytes(memory)} of memory" if memory else ""
    return f"{format_bytes(size)} of keys and values{limit}"


def databases_at_run_start_table(
    job_by_run: Mapping[RunKey, AnyJob], host_runs_by_run: Runs
) -> Table | None:
    """The databases as runs began on them, each shape once; None where no engine told of one."""
    shapes: dict[tuple[Cell, ...], int] = {}
    for key, hosts in host_runs_by_run.items():
        for host in hosts:
            reply = key_value_details_of_host(host)
            if reply is not None and reply.start is not None:
                cells = _database_shape_cells(job_by_run.get(key), reply.start, reply.copied_by)
                shapes[cells] = shapes.get(cells, 0) + 1
    if not shapes:
        return None
    heads = text_and_number_columns(
        ("Database", "Levels", "Compression", "Each run's copy"),
        ("Files", "Entries", "Blocks", "A block", "To be compacted", "Runs"),
    )
    rows = tuple((*cells, Cell(f"{number:,}")) for cells, number in shapes.items())
    return Table("Databases as the runs began on them", heads, rows)


def _database_shape_cells(
    job: AnyJob | None, shape: StoreShape, copy_method: str
) -> tuple[Cell, ...]:
    levels = "; ".join(
        f"L{level.level}: {counted_noun(level.files, 'file')}, {format_bytes(level.bytes)}"
        for level in shape.levels
    )
    tables, mean = shape.tables, None if shape.tables is None else shape.tables.block_bytes_mean
    name = DASH
    if isinstance(job, DbBenchJob):
        loaded = job.loaded
        name = f"{loaded.keys:,} keys in blocks of {format_bytes(loaded.block_bytes)}"
    elif isinstance(job, YcsbJob):
        name = f"{job.records:,} records of {job.fields} × {format_bytes(job.field_bytes)}"
    pending = shape.pending_bytes
    return row_of_cells(
        name,
        levels or DASH,
        DASH if tables is None else ", ".join(tables.compression) or DASH,
        copy_method or "none",
        DASH if tables is None else f"{tables.files:,}",
        DASH if tables is None else f"{tables.entries:,}",
        DASH if tables is None else f"{tables.blocks:,}",
        DASH if mean is None else format_bytes(mean),
        DASH if pending is None else format_bytes(pending),
    )


def servers_table(study: Study, servers: Sequence[ServerRunDetails]) -> Table | None:
    """The store behind YCSB: what was requested and what answered; None without YCSB."""
    if not any(workload.job.engine == "ycsb" for workload in key_value_workloads(study)):
        return None
    settings = server_settings_or_embedded(study)
    rows = [row_of_cells("Store", _KINDS[settings.kind])]
    rows += list(_server_setting_rows(settings))
    rows += [
        row_of_cells(title, ", ".join(texts))
        for title, texts in (
            (
                "Product",
                _distinct_nonempty_texts(
                    f"{server.product} {server.version}".strip() for server in servers
                ),
            ),
            ("Address", _distinct_nonempty_texts(server.address for server in servers)),
            ("Runs on", _distinct_nonempty_texts(server.host for server in servers)),
            ("Java", _distinct_nonempty_texts(server.java for server in servers)),
            ("Rows", _distinct_nonempty_texts(_row_count_text(server) for server in servers)),
            ("Start state by", _distinct_nonempty_texts(server.restored_by for server in servers)),
            ("Told of itself", _distinct_nonempty_texts(server.error or "" for server in servers)),
        )
        if texts
    ]
    return Table("Store", text_and_number_columns(("What", "Which")), tuple(rows))


def _server_setting_rows(settings: ServerSettings) -> Iterator[tuple[Cell, ...]]:
    if settings.kind is ServerKind.EMBEDDED:
        return
    if settings.kind is ServerKind.MANAGED:
        yield row_of_cells("Heap", format_bytes(settings.heap_bytes))
        bound = settings.memory_bytes
        yield row_of_cells("Memory", "not bounded" if bound is None else format_bytes(bound))
    yield row_of_cells("Keyspace", f"{settings.keyspace}, replication {settings.replication}")
    yield row_of_cells("Consistency", settings.consistency)


def _distinct_nonempty_texts(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(text for text in texts if text))


def _row_count_text(server: ServerRunDetails) -> str:
    if server.rows is None:
        return ""
    return f"{server.rows:,}{f' ({server.rows_by})' if server.rows_by else ''}"


def engine_and_server_statistics_tables(
    hosts: Sequence[HostRun], server: ServerRunDetails | None
) -> tuple[Table, ...]:
    """What each engine and the server told of themselves in a run."""
    several = sum(1 for host in hosts if key_value_details_of_host(host)) > 1
    tables = []
    for host in hosts:
        statistics = reply.statistics if (reply := key_value_details_of_host(host)) else ()
        if statistics:
            title = f"The engine's own statistics{f', {host.host}' if several else ''}"
            rows = tuple(
                row_of_cells(statistic.name, statistic_value_text(statistic))
                for statistic in statistics[:STATISTICS_SHOWN]
            )
            tables.append(Table(title, text_and_number_columns(("Statistic",), ("Value",)), rows))
    if server is not None and (server.statistics_before or server.statistics_after):
        tables.append(_server_statistics_table(server))
    return tuple(tables)


def _server_statistics_table(server: ServerRunDetails) -> Table:
    before = {statistic.name: statistic for statistic in server.statistics_before}
    after = {statistic.name: statistic for statistic in server.statistics_after}
    names = list(dict.fromkeys([*before, *after]))[:STATISTICS_SHOWN]
    rows = tuple(
        row_of_cells(
            name,
            *(
                statistic_value_text(side[name]) if name in side else DASH
                for side in (before, after)
            ),
        )
        for name in names
    )
    heads = text_and_number_columns(("Statistic",), ("Before", "After"))
    return Table("The server's own statistics", heads, rows)


def statistic_value_text(statistic: ReportedStatistic) -> str:
    """A number under its own unit."""
    unit, factor = _UNITS.get(statistic.unit, (statistic.unit, 1.0))
    if unit in _SHOWN:
        return value_text(statistic.value * factor, unit)
    number = (
        f"{statistic.value:,.0f}"
        if statistic.value == round(statistic.value)
        else f"{statistic.value:,.4g}"
    )
    return f"{number} {statistic.unit}".strip()


def rocksdb_statistics_table(
    named_results: Sequence[tuple[str, RunResult]], host_runs_by_run: Runs
) -> Table | None:
    """What RocksDB told of writes, compaction and stalls in whole runs; None where it did not.

    Of several clients each has a row. Runs come with their names.
    """
    rows = []
    for name, result in named_results:
        hosts = host_runs_by_run.get((result.digest, result.repeat), ())
        for host in hosts:
            run = key_value_details_of_host(host)
            statistics = {statistic.name: statistic for statistic in run.statistics} if run else {}
            if any(key in statistics for key, _ in _ROCKSDB_COLUMNS):
                subject = f"{name}, {host.host}" if len(hosts) > 1 else name
                cells = (
                    statistic_value_text(statistics[k]) if k in statistics else ""
                    for k, _ in _ROCKSDB_COLUMNS
                )
                level = verdict_cell(result.verdict.level)
                rows.append((*row_of_cells(subject, *(cell or DASH for cell in cells)), level))
    if not rows:
        return None
    heads = text_and_number_columns(("Point",), tuple(heading for _, heading in _ROCKSDB_COLUMNS))
    return Table("Writes, compaction and stalls", (*heads, Column("Verdict")), tuple(rows))
