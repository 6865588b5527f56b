"""Jobs in a line for people, as a plan lists them."""

from __future__ import annotations

from iolab.cli.screen import one_line
from iolab.model.key_value import READ_RANDOM_WRITE_RANDOM, KeyValueJob
from iolab.model.metadata import MetadataJob
from iolab.model.workload import AnyJob, Job
from iolab.model.ycsb import ServerKind, ServerSettings, YcsbJob
from iolab.plan.key_value_cost import KeyJob
from iolab.report.wording import count
from iolab.units import format_bytes, format_rate_bytes


def job_text(job: AnyJob) -> str:
    """What one client is asked to do."""
    if isinstance(job, MetadataJob):
        return _metadata_job(job)
    if isinstance(job, KeyValueJob):
        return _db_bench_job(job)
    if isinstance(job, YcsbJob):
        return _ycsb_job(job)
    return _io_job(job)


def store_text(job: KeyJob) -> str:
    """What a database holds."""
    if isinstance(job, YcsbJob):
        fields = f"{count(job.fields, 'field')} of {format_bytes(job.field_bytes)}"
        return f"{job.records:,} records, {fields}"
    loaded = job.loaded
    says = f"{loaded.keys:,} keys, values of {format_bytes(loaded.value_bytes)}"
    block = f"blocks of {format_bytes(loaded.block_bytes)}"
    own = f", a copy of {one_line(job.database)}" if job.database else ""
    return f"{says}, {block}{own}"


def server_text(server: ServerSettings) -> str:
    """Where the store of YCSB workloads runs."""
    match server.kind:
        case ServerKind.EMBEDDED:
            return "embedded: RocksDB inside each client's process"
        case ServerKind.MANAGED:
            where = f" on {one_line(server.host)}" if server.host else ""
            memory = f", memory {format_bytes(server.memory_bytes)}" if server.memory_bytes else ""
            return (
                f"managed: Apache Cassandra {server.version}{where}, heap "
                f"{format_bytes(server.heap_bytes)}{memory}, {_answers(server)}"
            )
        case ServerKind.GIVEN:
            return f"given: {', '.join(server.addresses)}, {_answers(server)}"


def _answers(server: ServerSettings) -> str:
    return f"replication {server.replication}, consistency {server.consistency}"


def _io_job(job: Job) -> str:
    mix = f" {job.read_percent}% read" if job.read_percent is not None else ""
    buffered = "" if job.direct else ", buffered"
    shared = ", on one file" if job.shared_file else ""
    return (
        f"{job.access.value}{mix} {format_bytes(job.block_bytes)}, {job.numjobs} x depth "
        f"{job.iodepth}{_rate(job)}{shared}{buffered}"
    )


def _rate(job: Job) -> str:
    """How fast, and how I/Os arrive where that is said."""
    if job.rate_bytes_per_s is not None:
        told = f"{format_rate_bytes(job.rate_bytes_per_s)} a job"
    elif job.rate_iops is not None:
        told = f"{job.rate_iops} IOPS a job"
    else:
        return ""
    if job.fleet_rate_iops is not None:
        told = f"{job.fleet_rate_iops} IOPS of the fleet, {told}"
    return f", {told} at most" if job.arrivals is None else f", {told}, {job.arrivals} arrivals"


def _metadata_job(job: MetadataJob) -> str:
    size = f" of {format_bytes(job.file_bytes)}" if job.file_bytes else ""
    return (
        f"{job.engine.value}: {count(job.ranks, 'rank')}, {count(job.files_per_rank, 'file')}"
        f"{size} each, rank shift {job.rank_shift}"
    )


def _db_bench_job(job: KeyValueJob) -> str:
    mix = f" {job.read_percent}% read" if job.workload == READ_RANDOM_WRITE_RANDOM else ""
    rate = job.write_bytes_per_s
    writes = f", writes {format_rate_bytes(rate)}" if rate is not None else ""
    block = format_bytes(job.loaded.block_bytes)
    return (
        f"db_bench: {job.workload}{mix}, blocks of {block}, {count(job.threads, 'thread')}"
        f"{writes}{_bound(job.memory_bytes)}"
    )


def _ycsb_job(job: YcsbJob) -> str:
    mix = ", ".join(f"{share:.3g} {operation.word}" for operation, share in job.mix)
    rate = f", {job.rate_ops_per_s:,} ops/s" if job.rate_ops_per_s is not None else ""
    return (
        f"ycsb: {mix}, {job.distribution.value}, {count(job.threads, 'thread')}"
        f"{rate}{_bound(job.memory_bytes)}"
    )


def _bound(memory_bytes: int | None) -> str:
    return f", memory {format_bytes(memory_bytes)}" if memory_bytes is not None else ""
