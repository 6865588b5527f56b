"""From the tables of key-value load to the jobs and the server of the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, replace
from typing import Any, Final

from iolab.model.fio_options import option_text
from iolab.model.key_value import KeyOperation, KeyValueJob, KeyValueSet
from iolab.model.study import Study
from iolab.model.workload import Axis, Workload
from iolab.model.ycsb import EMBEDDED, ServerKind, ServerSettings, YcsbJob
from iolab.plan.key_value_tables import (
    DB_BENCH_AXES,
    YCSB_AXES,
    DbBenchTable,
    MixTable,
    ServerTable,
    YcsbTable,
)
from iolab.plan.key_value_values import ycsb_text
from iolab.units import parse_size

READ_PERCENT: Final = 80
"""Of readrandomwriterandom where nothing is written, as published; db_bench itself has 90."""


def key_value_workload(
    written: Mapping[str, Any], table: DbBenchTable | YcsbTable, server: ServerTable
) -> Workload:
    """The workload of a table without faults; what is `written` as a list is an axis."""
    axes = DB_BENCH_AXES if isinstance(table, DbBenchTable) else YCSB_AXES
    return Workload(
        id=table.id,
        title=table.title or table.id,
        job=(_db_bench_job(table) if isinstance(table, DbBenchTable) else _ycsb_job(table, server)),
        sweep=tuple(
            Axis(name, tuple(getattr(table, name)))
            for name in axes
            if isinstance(written.get(name), list)
        ),
        indicator=table.indicator,
    )


def key_value_job_at(
    job: KeyValueJob | YcsbJob, axis: tuple[tuple[str, int | str], ...]
) -> KeyValueJob | YcsbJob:
    """The job with the axis values in place of its first ones."""
    values: dict[str, Any] = dict(axis)
    if isinstance(job, YcsbJob):
        return replace(
            job,
            threads=values.get("threads", job.threads),
            rate_ops_per_s=values.get("rate", job.rate_ops_per_s),
        )
    block = values.get("block_size")
    loaded = job.loaded if block is None else replace(job.loaded, block_bytes=parse_size(block))
    return replace(job, loaded=loaded, threads=values.get("threads", job.threads))


def mix_of(table: MixTable) -> tuple[tuple[KeyOperation, float], ...]:
    """Each operation's share, without those that have none, in the order of the table."""
    shares = ((KeyOperation[key.upper()], getattr(table, key)) for key in MixTable.model_fields)
    return tuple((operation, share) for operation, share in shares if share)


def server_of(table: ServerTable) -> ServerSettings:
    """The server as written; without a table there is none."""
    return ServerSettings(
        kind=table.kind,
        addresses=tuple(table.addresses or ()),
        host=table.host or "",
        version=table.version,
        listen=table.listen,
        port=table.port,
        heap_bytes=parse_size(table.heap),
        memory_bytes=None if table.memory is None else parse_size(table.memory),
        keyspace=table.keyspace,
        replication=table.replication,
        consistency=table.consistency,
        ycsb=table.ycsb or "",
        java=table.java,
    )


def server_told(study: Study, job: KeyValueJob | YcsbJob) -> dict[str, object]:
    """What of the server makes a point another one: its kind, and how it answers.

    Where it runs, in which version and with what memory is of the target, which a study compares.
    """
    server = study.server
    if not isinstance(job, YcsbJob) or server.kind is ServerKind.EMBEDDED:
        return {}
    return {"server": [server.kind, server.replication, server.consistency]}


def server_identity(study: Study) -> dict[str, object]:
    """What makes two plans differ in their server, where any workload has one."""
    if study.server == EMBEDDED or not _uses_ycsb(study):
        return {}
    return {"server": list(astuple(study.server))}


def _uses_ycsb(study: Study) -> bool:
    return any(isinstance(item.job, YcsbJob) for item in study.workloads)


def _db_bench_job(table: DbBenchTable) -> KeyValueJob:
    """The job at the first value of every axis."""
    return KeyValueJob(
        workload=table.benchmark,
        loaded=KeyValueSet(
            keys=table.keys,
            key_bytes=parse_size(table.key_size),
            value_bytes=parse_size(table.value_size),
            block_bytes=parse_size(table.block_size[0]),
            bloom_bits=table.bloom_bits,
        ),
        threads=table.threads[0],
        cache_bytes=parse_size(table.cache_size),
        read_percent=READ_PERCENT if table.read_percent is None else table.read_percent,
        write_bytes_per_s=None if table.write_rate is None else parse_size(table.write_rate),
        memory_bytes=None if table.memory is None else parse_size(table.memory),
        database=table.database or "",
        options=tuple((name, option_text(value)) for name, value in table.db_bench.items()),
    )


def _ycsb_job(table: YcsbTable, server: ServerTable) -> YcsbJob:
    """The job at the first value of every axis; a bound is for a store within the client."""
    bound = table.memory if server.kind is ServerKind.EMBEDDED else None
    return YcsbJob(
        mix=mix_of(table.mix),
        records=table.records,
        threads=table.threads[0],
        fields=table.fields,
        field_bytes=parse_size(table.field_size),
        distribution=table.distribution,
        rate_ops_per_s=table.rate[0] if table.rate else None,
        memory_bytes=None if bound is None else parse_size(bound),
        options=tuple((name, ycsb_text(value)) for name, value in table.ycsb.items()),
    )
