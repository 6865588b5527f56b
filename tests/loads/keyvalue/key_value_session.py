"""Sessions on key-value stores, as the report and the command line meet them."""

from __future__ import annotations

import hashlib
import itertools

from msgspec import field
from msgspec.structs import replace

from iolab.analysis.kinds import WHOLE_RUN
from iolab.core.configuration import Configuration
from iolab.core.metric import HostResult, Metric, RunResult
from iolab.core.run import Plan, PlanDemand, PlannedRun, Point, RunRecord
from iolab.core.run import RunStatus as Status
from iolab.core.study import Study
from iolab.core.tagged import type_tag_of
from iolab.core.workload import Axis, Workload
from iolab.loads.keyvalue.workload import (
    BY_KEY_OPERATIONS,
    READ_RANDOM_WRITE_RANDOM,
    READ_WHILE_WRITING,
    DbBenchJob,
    KeyOperation,
    ServerKind,
    ServerSettings,
    YcsbJob,
)
from iolab.registry import analysis_kinds
from iolab.store.documents import Manifest
from tests.loads.keyvalue.key_value_records import KIB, READ, READS, UPDATE, made
from tests.report.studies import one_configuration
from tests.report.synthetic import VALID, Source, source_of, study_of
from tests.results import result_of_run

THREADS = (4, 16, 32, 64)
YCSB_THREADS = (8, 16, 32, 64, 128)
BLOCKS = {"4k": 4 * KIB, "16k": 16 * KIB}
MIXES = {
    "a": ("Recording user sessions", ((READ, 0.5), (UPDATE, 0.5))),
    "b": ("Tagging existing assets", ((READ, 0.95), (UPDATE, 0.05))),
    "c": ("Caching user profiles", ((READ, 1.0),)),
    "f": ("Users modifying records", ((READ, 0.5), (KeyOperation.READ_MODIFY_WRITE, 0.5))),
}
MANAGED = ServerSettings(kind=ServerKind.MANAGED, host="client-1")


class KeySource(Source):
    """A session source whose runs are on a key-value store."""

    kept: dict[tuple[str, int], RunRecord] = field(default_factory=dict)

    def record(self, digest: str, repeat: int) -> RunRecord:
        if (digest, repeat) not in self.kept:
            runs = self.plan.runs
            run = next(r for r in runs if (r.point.digest, r.repeat) == (digest, repeat))
            self.kept[digest, repeat] = made(self, run)
        return self.kept[digest, repeat]

    def manifest(self, digest: str, repeat: int) -> Manifest:
        record = self.record(digest, repeat)
        return replace(super().manifest(digest, repeat), details=record.details)

    def _result(self, run: PlannedRun) -> RunResult:
        key = (run.point.digest, run.repeat)
        record, failure = self.record(*key), self.failed.get(key)
        kind = analysis_kinds().load_analysis_for_run(record)
        view = analysis_kinds().build_view(record, self.facts, ())
        metrics = kind.fleet_metrics(view)
        if failure:
            metrics = {name: Metric(None, one.unit) for name, one in metrics.items()}
        return result_of_run(
            run,
            metrics,
            status=Status.FAILED if failure else Status.DONE,
            failure=failure,
            window_s=kind.window_s(view),
            hosts=tuple(
                HostResult(host.host, kind.host_metrics(view, index))
                for index, host in enumerate(record.hosts)
            ),
            verdict=self.verdicts.get(key, VALID),
            load=type_tag_of(run.point.job),
            spread=kind.evenness_by_phase(view).get(WHOLE_RUN),
        )


def rocksdb(
    configurations: tuple[str, ...] = ("default",),
    repeats: int = 1,
    seconds: int = 8,
    workload_count: int = 3,
    threads: tuple[int, ...] = THREADS,
) -> KeySource:
    """Three workloads of db_bench at two block sizes over four thread counts."""
    sweep = (Axis("block_size", tuple(BLOCKS)), Axis("threads", threads))
    jobs = (
        ("read-random", "Random reads", READS),
        (
            "read-write",
            "80 % reads, 20 % writes",
            replace(READS, workload=READ_RANDOM_WRITE_RANDOM),
        ),
        (
            "read-while-writing",
            "Reads beside a writer",
            replace(READS, workload=READ_WHILE_WRITING, write_bytes_per_s=10 << 20),
        ),
    )
    workloads = tuple(
        Workload(name, title, job, sweep, BY_KEY_OPERATIONS)
        for name, title, job in jobs[:workload_count]
    )
    title, question = "An SSD under RocksDB", "How many operations a second does RocksDB reach?"
    study = study_of("rocksdb", title, question, _named(configurations), workloads, repeats)
    return _source(study, seconds)


def cassandra(
    configurations: tuple[str, ...] = ("default",),
    *,
    rates: tuple[int, ...] = (),
    server: ServerSettings = MANAGED,
    clients: tuple[str, ...] = ("client-1",),
    repeats: int = 1,
    seconds: int = 8,
) -> KeySource:
    """YCSB's A, B, C and F over five thread counts; with `rates` A and C over rates instead."""
    sweep = (Axis("rate", rates),) if rates else (Axis("threads", YCSB_THREADS),)
    workloads = tuple(
        Workload(
            name,
            title,
            YcsbJob(mix, records=100_000, threads=16, rate_ops_per_s=rates[0] if rates else None),
            sweep,
            BY_KEY_OPERATIONS,
        )
        for name, (title, mix) in MIXES.items()
        if not rates or name in "ac"
    )
    title, question = "An SSD under Cassandra", "Which SSD serves which kind of user best?"
    named = tuple(replace(one, hosts=clients) for one in _named(configurations))
    study = study_of("cassandra", title, question, named, workloads, repeats)
    return _source(replace(study, server=server), seconds)


def _named(names: tuple[str, ...]) -> tuple[Configuration, ...]:
    (plain,) = one_configuration("client-1")
    return tuple(replace(plain, id=name, title=name.capitalize()) for name in names)


def _source(study: Study, seconds: int) -> KeySource:
    plain = source_of(replace(study, workloads=()), seconds)
    points = [
        _point(configuration.id, workload, axis)
        for configuration in study.configurations
        for workload in study.workloads
        for axis in itertools.product(
            *([(axis.name, value) for value in axis.values] for axis in workload.sweep)
        )
    ]
    repeats = range(1, study.method.repeats + 1)
    asked = list(itertools.product(points, repeats))
    runs = tuple(PlannedRun(order, r, point) for order, (point, r) in enumerate(asked, 1))
    plan = Plan(study.id, "0f3ac1d2e4b59687", (), runs, PlanDemand(1.0, (), 1, 1, 1), ())
    facts, session = plain.facts, replace(plain.session, study=study.id, title=study.title)
    return KeySource(study, plan, facts, session, seconds)


def _point(
    configuration: str, workload: Workload, axis: tuple[tuple[str, int | str], ...]
) -> Point:
    job, values = workload.job, dict(axis)
    if isinstance(job, DbBenchJob):
        block = BLOCKS[str(values.get("block_size", "4k"))]
        loaded = replace(job.loaded, block_bytes=block)
        job = replace(job, loaded=loaded, threads=int(values.get("threads", job.threads)))
    elif isinstance(job, YcsbJob):
        rate = values.get("rate", job.rate_ops_per_s)
        threads = int(values.get("threads", job.threads))
        job = replace(job, threads=threads, rate_ops_per_s=None if rate is None else int(rate))
    text = f"{configuration}/{workload.id}/{axis}"
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return Point(digest, configuration, workload.id, axis, job, "")
