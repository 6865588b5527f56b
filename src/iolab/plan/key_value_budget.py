"""What key-value load will cost as a whole: seconds with reasons, bytes written, space."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from iolab.model.configuration import Configuration
from iolab.model.key_value import KeyValueJob
from iolab.model.run import PlannedRun, Point
from iolab.model.study import Study
from iolab.model.ycsb import ServerKind, YcsbJob
from iolab.plan.key_value_cost import (
    KEPT_WRITES,
    LOAD_WRITES,
    RUN_WRITES,
    KeyJob,
    load_seconds,
    store_bytes,
    write_rate,
)
from iolab.plan.ycsb_time import start_allowance_s
from iolab.units import format_bytes, format_duration_s

FILESYSTEM_S: Final = 2.0
"""Making an XFS, and mounting it."""

DB_BENCH_PAST_S: Final = 1.0
"""db_bench runs so much longer than it is measured: its report is of whole seconds."""

DB_BENCH_RUN_S: Final = 2.1
"""Of a run beside its load: a copy by reflink, dropped caches, a second of idle watch, the start of
db_bench and its last words. Two seconds were measured on two cores that others used too."""

YCSB_RUN_S: Final = 2.0
"""The same of YCSB, whose logs are read back: four seconds were measured with a whole copy of
420 MB, which is counted by itself."""

NODE_START_S: Final = 10.0
"""A node's first start, its schema, and the start of the client that loads."""

NODE_SETTLE_S: Final = 12.0
"""Flush, compaction, counting of rows, and the stop after a load; the stop at the end."""

NODE_AGAIN_S: Final = 12.0
"""Killing a node, restoring its files, dropping caches, starting it, and waiting for it."""


@dataclass(frozen=True, slots=True)
class Store:
    """Records that are loaded once on a host and kept, with a job that works on them."""

    job: KeyJob
    own: bool
    """Loaded by iolab; False for a database of the user."""


def key_value_seconds(method_s: float, job: KeyJob, kind: ServerKind, clients: int) -> float:
    """How long one run loads its store; `method_s` is warm-up and runtime."""
    if isinstance(job, YcsbJob):
        return method_s + start_allowance_s(kind, clients)
    return method_s + DB_BENCH_PAST_S


def run_overhead_s(study: Study, job: KeyJob) -> float:
    """What one run takes beside its load."""
    if isinstance(job, KeyValueJob):
        return DB_BENCH_RUN_S
    return YCSB_RUN_S + (NODE_AGAIN_S if study.server.kind is ServerKind.MANAGED else 0)


def key_value_reasons(
    study: Study, runs: Iterable[PlannedRun], rate: float
) -> Iterator[tuple[str, float]]:
    """Where the seconds of key-value load go; nothing where there is none."""
    planned = [run for run in runs if isinstance(run.point.job, KeyJob)]
    if not planned:
        return
    points = [run.point for run in planned]
    if study.target.make_xfs:
        count = len({point.configuration for point in points})
        yield "make an XFS on each client", FILESYSTEM_S * count
    yield from _load_reasons(study, points, rate)
    method = study.method
    fixed_s = method.warmup_s + method.runtime_s
    length = f"warm-up + runtime of {format_duration_s(method.warmup_s)} + "
    length += format_duration_s(method.runtime_s)
    clients = {item.id: len(item.hosts) for item in study.configurations}
    for kind, says in ((KeyValueJob, "db_bench"), (YcsbJob, "YCSB")):
        of_kind = [point for point in points if isinstance(point.job, kind)]
        jobs = [point.job for point in of_kind if isinstance(point.job, KeyJob)]
        if not jobs:
            continue
        server = study.server.kind
        loads = sum(
            key_value_seconds(fixed_s, job, server, clients[point.configuration])
            for job, point in zip(jobs, of_kind, strict=True)
        )
        connect = ", connect" if kind is YcsbJob else ""
        yield f"{_runs(len(jobs))} of {says}: {length}{connect}", loads
        yield (
            _around(study, jobs[0], says, len(jobs)),
            sum(run_overhead_s(study, job) for job in jobs),
        )


def _around(study: Study, job: KeyJob, says: str, runs: int) -> str:
    if isinstance(job, YcsbJob) and study.server.kind is ServerKind.MANAGED:
        return f"{_runs(runs)} of {says}: restore the node and start it, drop caches, watch, commit"
    if isinstance(job, YcsbJob) and study.server.kind is ServerKind.GIVEN:
        return f"{_runs(runs)} of {says}: start and end it, watch, commit"
    size = format_bytes(store_bytes(job))
    return f"{_runs(runs)} of {says}: copy {size}, drop caches, watch, commit"


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"


def _load_reasons(study: Study, points: list[Point], rate: float) -> Iterator[tuple[str, float]]:
    embedded = study.server.kind is ServerKind.EMBEDDED
    seconds, size, count = 0.0, 0, 0
    for configuration in study.configurations:
        stores = [one for one in _stores(configuration, points) if one.own]
        count += len(stores)
        size += sum(store_bytes(one.job) for one in stores)
        for one in stores:
            seconds += load_seconds(one.job, rate, embedded=embedded)
            if isinstance(one.job, YcsbJob) and study.server.kind is ServerKind.MANAGED:
                seconds += NODE_START_S + NODE_SETTLE_S
    if count:
        what = "database" if count == 1 else "databases"
        yield f"load and compact {count} {what} of {format_bytes(size)} (assumed rates)", seconds


def _stores(configuration: Configuration, points: Iterable[Point]) -> list[Store]:
    """The stores that a configuration's runs work on, each once."""
    jobs = stores_of(point for point in points if point.configuration == configuration.id)
    return [Store(job, own=isinstance(job, YcsbJob) or not job.database) for job in jobs]


def _store_key(job: KeyJob) -> object:
    if isinstance(job, KeyValueJob):
        return job.loaded, job.options, job.database
    return job.records, job.fields, job.field_bytes


def stores_of(points: Iterable[Point]) -> tuple[KeyJob, ...]:
    """A job for each database or set of records that the points work on, of any configuration."""
    found: dict[object, KeyJob] = {}
    for point in points:
        if isinstance(point.job, KeyJob):
            found.setdefault(_store_key(point.job), point.job)
    return tuple(found.values())


def key_value_written(study: Study, runs: Iterable[PlannedRun], rate: float) -> int:
    """What is written over all hosts: loads, and updates at that rate or at their own limit."""
    planned = list(runs)
    seconds = study.method.warmup_s + study.method.runtime_s
    total = 0.0
    for configuration in study.configurations:
        clients = len(configuration.hosts)
        for one in _stores(configuration, [run.point for run in planned]):
            if one.own:
                copies = clients if on_clients(study, one.job) else 1
                total += store_bytes(one.job) * LOAD_WRITES * copies
        for run in planned:
            job = run.point.job
            if isinstance(job, KeyJob) and run.point.configuration == configuration.id:
                hosts = clients if on_clients(study, job) else 1
                total += write_rate(job, rate) * seconds * RUN_WRITES * hosts
    return round(total)


def key_value_space(study: Study, points: Iterable[Point], host: str, rate: float) -> int:
    """The space that key-value load needs at most on that host's target, all at a time.

    Loaded stores stay; a copy of one, or its compaction, and what a run writes come on top.
    """
    seconds = study.method.warmup_s + study.method.runtime_s
    most = 0
    for configuration in study.configurations:
        here = [point for point in points if point.configuration == configuration.id]
        stores = [
            one
            for one in _stores(configuration, here)
            if _lies_on(study, configuration, one.job, host)
        ]
        if not stores:
            continue
        written = max(
            write_rate(point.job, rate) * seconds * KEPT_WRITES
            for point in here
            if isinstance(point.job, KeyJob)
        )
        kept = sum(store_bytes(one.job) for one in stores if one.own)
        most = max(most, kept + max(store_bytes(one.job) for one in stores) + round(written))
    return most


def key_value_space_most(study: Study, runs: Iterable[PlannedRun], rate: float) -> int:
    """The same of the host that needs most; 0 without such load."""
    points = [run.point for run in runs if isinstance(run.point.job, KeyJob)]
    hosts = {name for item in study.configurations for name in item.hosts}
    if study.server.host:
        hosts.add(study.server.host)
    return max((key_value_space(study, points, host, rate) for host in hosts), default=0)


def on_clients(study: Study, job: KeyJob) -> bool:
    """Whether every client has a store of its own."""
    return isinstance(job, KeyValueJob) or study.server.kind is ServerKind.EMBEDDED


def _lies_on(study: Study, configuration: Configuration, job: KeyJob, host: str) -> bool:
    """Whether a store takes space on that host's target."""
    if on_clients(study, job):
        return host in configuration.hosts
    if study.server.kind is ServerKind.GIVEN:
        return False
    return host == (study.server.host or configuration.hosts[0])
