"""Load on key-value stores in studies and plans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from iolab.core.engine import EngineName
from iolab.core.host import DeviceFacts, HostFacts
from iolab.core.run import Plan, PlannedRun, Point
from iolab.core.study import Study
from iolab.core.workload import Workload
from iolab.errors import Fault
from iolab.loads.keyvalue.cost import (
    Reflinks,
    compacted_store_bytes,
    fill_bytes_on_all_hosts,
    jobs_of_distinct_stores,
    key_value_time_items,
    max_space_bytes_on_any_host,
    notes_on_full_database_copies,
    plan_with_copy_costs,
    run_load_duration_s,
    run_overhead_s,
    writes_of_run,
)
from iolab.loads.keyvalue.problems import (
    add_key_value_faults,
    missing_tool_and_space_faults,
    notes_on_tight_memory_limits,
    required_tools_by_program,
)
from iolab.loads.keyvalue.table import (
    DB_BENCH_ENGINES,
    YCSB_ENGINES,
    DbBenchTable,
    ServerTable,
    YcsbTable,
    server_settings_for_plan_digest,
    server_settings_of_table,
    server_table_or_default,
)
from iolab.loads.keyvalue.workload import (
    READ_RANDOM_WRITE_RANDOM,
    DbBenchJob,
    KeyJob,
    ServerKind,
    ServerSettings,
    YcsbJob,
    server_settings_or_embedded,
)
from iolab.study.cost import ASSUMED_WRITE_BYTES_PER_S, run_overhead_seconds
from iolab.study.document import StudyDocument
from iolab.study.file import XFS
from iolab.study.forecast import VerdictCap, run_length_verdict_caps
from iolab.study.kinds import (
    HostStudyKind,
    KnownFacts,
    LoadStudyKind,
    TimeAndSpaceDemand,
    VersionArgvByProgram,
)
from iolab.study.load_tables import LoadTable, StudyTable
from iolab.study.tables import StudyTables, TableItem, table_name_capitalised
from iolab.study.targets import targets_of_study
from iolab.study.writes import RunWrites
from iolab.text import counted_noun
from iolab.units import format_bytes, format_rate_bytes

SHARING: Final = ("xfs", "btrfs", "ocfs2", "bcachefs")
"""File systems whose files may share extents."""


class ServerSection:
    """`[server]`: the store of all YCSB workloads."""

    name: Final = "server"
    table: type[StudyTable] = ServerTable
    makes_hosts: Final = False
    study_field: Final = "server"

    def fallback_table(self, raw_table: object) -> StudyTable:  # noqa: ARG002
        """What a table that cannot be read counts as."""
        return ServerTable()

    def settings(self, tables: StudyTables) -> ServerSettings:
        """The server as written."""
        return server_settings_of_table(server_table_or_default(tables))


class KeyValueStudyKind(LoadStudyKind):
    """The part of key-value load in studies and plans."""

    settings_section = ServerSection()
    engines_by_table: Mapping[type[LoadTable], tuple[EngineName, ...]] = {
        DbBenchTable: DB_BENCH_ENGINES,
        YcsbTable: YCSB_ENGINES,
    }
    example_by_key: Mapping[str, str] = {
        "benchmark": '"readrandom"',
        "keys": "400000",
        "block_size": '"4k"',
        "threads": "16",
        "mix": "{ read = 0.5, update = 0.5 }",
        "records": "100000",
    }
    on_device_filesystem = True

    def job_text(self, job: KeyJob) -> str:
        """See `LoadStudyKind`."""
        return _ycsb_job_text(job) if isinstance(job, YcsbJob) else _db_bench_job_text(job)

    def version_argv_by_probed_program(self, study: Study) -> VersionArgvByProgram:
        """See `LoadStudyKind`."""
        return {
            program: tool.version_argv for program, tool in required_tools_by_program(study).items()
        }

    def add_workload_faults(self, document: StudyDocument, tables: StudyTables) -> None:
        """Add every fault of its workloads and of their server that no single key shows."""
        add_key_value_faults(document, tables)

    def add_device_faults(self, document: StudyDocument, tables: StudyTables) -> None:
        """A database lies on a file system, which the session can make."""
        if tables.target.filesystem == XFS:
            return
        for item, table in tables.items_of_table("workload", StudyTable):
            if not isinstance(table, DbBenchTable | YcsbTable):
                continue
            message = (
                f"{table_name_capitalised(document, item.key_path)} needs a file system, but "
                "the target is a "
            )
            hint = f"Write filesystem = '{XFS}' under [target] to make one there, or give a "
            document.add_fault(item.key_path, f"{message}device.", f"{hint}directory.")

    def build_workload(
        self, table_item: TableItem, table: DbBenchTable | YcsbTable, tables: StudyTables
    ) -> Workload:
        """See `LoadStudyKind`; a bound of memory is for a store within the client."""
        workload, job = super().build_workload(table_item, table, tables), table.build_job()
        if (
            isinstance(job, YcsbJob)
            and server_table_or_default(tables).kind is not ServerKind.EMBEDDED
        ):
            return replace(workload, job=replace(job, memory_bytes=None))
        return workload

    def time_and_space_demand(
        self,
        study: Study,
        runs: Sequence[PlannedRun],
        host_write_bytes_per_s: float,
        host_kind: HostStudyKind,  # noqa: ARG002 - databases lie on the targets of hosts that exist
    ) -> TimeAndSpaceDemand:
        """Loading, copying and what runs write; its runs prepare themselves."""
        return TimeAndSpaceDemand(
            own_preparation_time_items=tuple(
                key_value_time_items(study, runs, host_write_bytes_per_s)
            ),
            set_up_bytes=fill_bytes_on_all_hosts(study, runs),
            space_bytes=max_space_bytes_on_any_host(study, runs, host_write_bytes_per_s),
        )

    def writes_of_run(self, study: Study, point: Point, host_kind: HostStudyKind) -> RunWrites:  # noqa: ARG002
        """See `cost.writes_of_run`."""
        return writes_of_run(study, point)

    def expected_run_seconds(self, study: Study, point: Point) -> float:
        """Seconds of one run's load as written, and of what it takes beyond other kinds' runs."""
        method, job = study.method, point.job
        if not isinstance(job, KeyJob):
            return 0.0
        configuration = study.configuration(point.configuration)
        written_s = method.warmup_s + method.runtime_s
        load_s = run_load_duration_s(
            written_s, job, server_settings_or_embedded(study).kind, len(configuration.hosts)
        )
        return max(load_s + run_overhead_s(study, job) - run_overhead_seconds(method), 0.0)

    def verdict_caps(self, study: Study, runs: tuple[PlannedRun, ...]) -> Iterable[VerdictCap]:
        """Runs that are too short."""
        return run_length_verdict_caps(
            study, (run for run in runs if isinstance(run.point.job, KeyJob))
        )

    def readiness_faults(
        self,
        study: Study,
        plan: Plan,
        facts_by_target: Mapping[str, HostFacts],
        device_facts_by_target: Mapping[str, DeviceFacts],
    ) -> list[Fault]:
        """Programs that are missing, and targets that are too small."""
        return missing_tool_and_space_faults(study, plan, facts_by_target, device_facts_by_target)

    def plan_with_demand_from_facts(
        self, study: Study, plan: Plan, facts_by_target: KnownFacts
    ) -> Plan:
        """See `plan_with_copy_costs`."""
        return plan_with_copy_costs(
            study, plan, _reflink_support(study, facts_by_target), ASSUMED_WRITE_BYTES_PER_S
        )

    def plan_notes(self, study: Study, plan: Plan, facts_by_target: KnownFacts) -> Iterator[str]:
        """Bounds of memory that are too tight, and whole copies."""
        yield from notes_on_tight_memory_limits(study, plan.points)
        reflinks = _reflink_support(study, facts_by_target)
        yield from notes_on_full_database_copies(
            study, plan.runs, reflinks, ASSUMED_WRITE_BYTES_PER_S
        )

    def plan_lines(self, study: Study, plan: Plan) -> Iterator[tuple[str, str]]:
        """The databases, and the server of them."""
        stores = jobs_of_distinct_stores(plan.points)
        if stores:
            sizes = [
                f"{format_bytes(compacted_store_bytes(job))} ({_database_contents_text(job)})"
                for job in stores
            ]
            yield "databases", f"{counted_noun(len(stores), 'database')}: {'; '.join(sizes)}"
        if any(isinstance(job, YcsbJob) for job in stores):
            yield "server", _server_description_text(server_settings_or_embedded(study))

    def plan_digest_content(self, study: Study) -> Mapping[str, object]:
        """The server, where any workload has one."""
        return server_settings_for_plan_digest(study)


def _db_bench_job_text(job: DbBenchJob) -> str:
    mix = f" {job.read_percent}% read" if job.workload == READ_RANDOM_WRITE_RANDOM else ""
    rate = job.write_bytes_per_s
    writes = f", writes {format_rate_bytes(rate)}" if rate is not None else ""
    block = format_bytes(job.loaded.block_bytes)
    return (
        f"db_bench: {job.workload}{mix}, blocks of {block}, {counted_noun(job.threads, 'thread')}"
        f"{writes}{_memory_limit_suffix(job.memory_bytes)}"
    )


def _ycsb_job_text(job: YcsbJob) -> str:
    mix = ", ".join(f"{share:.3g} {operation.display_name}" for operation, share in job.mix)
    rate = f", {job.rate_ops_per_s:,} ops/s" if job.rate_ops_per_s is not None else ""
    return (
        f"ycsb: {mix}, {job.distribution.value}, {counted_noun(job.threads, 'thread')}"
        f"{rate}{_memory_limit_suffix(job.memory_bytes)}"
    )


def _memory_limit_suffix(memory_bytes: int | None) -> str:
    return f", memory {format_bytes(memory_bytes)}" if memory_bytes is not None else ""


def _database_contents_text(job: KeyJob) -> str:
    """What a database holds."""
    if isinstance(job, YcsbJob):
        fields = f"{counted_noun(job.fields, 'field')} of {format_bytes(job.field_bytes)}"
        return f"{counted_noun(job.records, 'record')}, {fields}"
    loaded = job.loaded
    message = f"{loaded.keys:,} keys, values of {format_bytes(loaded.value_bytes)}"
    block = f"blocks of {format_bytes(loaded.block_bytes)}"
    own = f", a copy of {job.database}" if job.database else ""
    return f"{message}, {block}{own}"


def _server_description_text(server: ServerSettings) -> str:
    """Where the store of YCSB workloads runs."""
    match server.kind:
        case ServerKind.EMBEDDED:
            return "embedded: RocksDB inside each client's process"
        case ServerKind.MANAGED:
            where = f" on {server.host}" if server.host else ""
            memory = f", memory {format_bytes(server.memory_bytes)}" if server.memory_bytes else ""
            return (
                f"managed: Apache Cassandra {server.version}{where}, heap "
                f"{format_bytes(server.heap_bytes)}{memory}, "
                f"{_replication_and_consistency_text(server)}"
            )
        case ServerKind.EXTERNAL:
            return (
                f"given: {', '.join(server.addresses)}, {_replication_and_consistency_text(server)}"
            )


def _replication_and_consistency_text(server: ServerSettings) -> str:
    return f"replication {server.replication}, consistency {server.consistency}"


def _reflink_support(study: Study, facts_by_target: KnownFacts) -> Reflinks:
    reflinks: dict[tuple[str, str], bool] = {}
    for target in targets_of_study(study):
        host_facts = None if facts_by_target is None else facts_by_target.get(target.key)
        if host_facts is not None and host_facts.target is not None:
            shares = host_facts.target.fs_type in SHARING
            reflinks |= {(name, target.host): shares for name in target.configurations}
    return reflinks
