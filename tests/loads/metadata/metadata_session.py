"""Sessions with metadata load, as the report and the command line meet them."""

from __future__ import annotations

from msgspec import field
from msgspec.structs import replace

from iolab.core.configuration import Configuration
from iolab.core.metric import RunResult
from iolab.core.run import PlannedRun, Point, RunRecord
from iolab.core.workload import BY_IOPS, Axis, Workload
from iolab.loads.fileio.workload import AccessPattern
from iolab.loads.metadata.workload import (
    BY_OPERATIONS,
    MDTEST_ENGINE,
    METADATA_ENGINE,
    MetadataJob,
    MetadataOperation,
)
from tests.judging import judge
from tests.loads.metadata.records import Shape, made, mdtest_record
from tests.report.studies import one_configuration
from tests.report.synthetic import Source, job, source_of, study_of, workload

JOB = MetadataJob(METADATA_ENGINE, ranks=4, files_per_rank=2500, rank_shift=4)
LATENCIES_NS = {
    MetadataOperation.TREE_CREATE: 900_000.0,
    MetadataOperation.FILE_CREATE: 6_000_000.0,
    MetadataOperation.FILE_STAT: 1_100_000.0,
    MetadataOperation.FILE_READ: 3_000_000.0,
    MetadataOperation.FILE_REMOVE: 4_500_000.0,
    MetadataOperation.TREE_REMOVE: 1_500_000.0,
}
PUBLISHED = {
    MetadataOperation.TREE_CREATE: 3.342,
    MetadataOperation.FILE_CREATE: 40784.448,
    MetadataOperation.FILE_STAT: 2352911.311,
    MetadataOperation.FILE_READ: 217236.162,
    MetadataOperation.FILE_REMOVE: 44101.902,
    MetadataOperation.TREE_REMOVE: 1.172,
}


class MetadataSource(Source):
    """A session source whose metadata runs are made operation by operation."""

    kept: dict[tuple[str, int], RunRecord] = field(default_factory=dict)

    def record(self, digest: str, repeat: int) -> RunRecord:
        run = next(r for r in self.plan.runs if (r.point.digest, r.repeat) == (digest, repeat))
        if not isinstance(run.point.job, MetadataJob):
            return super().record(digest, repeat)
        if (digest, repeat) not in self.kept:
            self.kept[digest, repeat] = self._made(run, run.point.job)
        return self.kept[digest, repeat]

    def _made(self, run: PlannedRun, asked: MetadataJob) -> RunRecord:
        names = next(c.hosts for c in self.study.configurations if c.id == run.point.configuration)
        speed = 1.0 + 0.05 * run.repeat + (0.4 if run.point.configuration == "performance" else 0)
        if asked.engine == MDTEST_ENGINE:
            rates = {operation: rate * speed for operation, rate in PUBLISHED.items()}
            record = mdtest_record(rates, len(names), run.repeat)
        else:
            shapes = {
                (host, operation): Shape(lat_ns=mean)
                for host in range(len(names))
                for operation, mean in LATENCIES_NS.items()
            }
            record = made(len(names), asked, shapes, seed=run.repeat, speed=speed).record
        hosts = tuple(replace(h, host=n) for h, n in zip(record.hosts, names, strict=True))
        return replace(record, run=run, hosts=hosts)

    def _result(self, run: PlannedRun) -> RunResult:
        if not isinstance(run.point.job, MetadataJob):
            return super()._result(run)
        return judge(self.record(run.point.digest, run.repeat), self.facts)


def metadata_workload(asked: MetadataJob = JOB, *ranks: int) -> Workload:
    sweep = (Axis("ranks", ranks),) if ranks else ()
    title = "Metadata operations"
    return Workload("metadata", title, asked, sweep, BY_OPERATIONS, repeats=3)


def kpi_with_metadata(
    asked: MetadataJob = JOB,
    *ranks: int,
    io: bool = True,
    configurations: tuple[Configuration, ...] = one_configuration("client-1", "client-2"),
) -> MetadataSource:
    """One indicator of I/O, and metadata load three times."""
    reads = workload(
        "read-iops", "Read IOPS", job(AccessPattern.RANDREAD, 4096, 8, 64), (), BY_IOPS
    )
    load = metadata_workload(asked, *ranks)
    title = "Key performance indicators of a file system"
    question = "How many files can this cluster create, stat, read and remove a second?"
    study = study_of("cluster-kpi", title, question, configurations, (reads,))
    plain = source_of(study, seconds=10)
    runs = list(plain.plan.runs) if io else []
    for one in configurations:
        for count in ranks or (asked.ranks,):
            axis = (("ranks", count),) if ranks else ()
            digest = f"{one.id[:4]:0<8}{count:08}"
            point = Point(digest, one.id, "metadata", axis, replace(asked, ranks=count), "")
            runs += [PlannedRun(len(runs) + repeat, repeat, point) for repeat in (1, 2, 3)]
    return MetadataSource(
        study=replace(study, workloads=(reads, load) if io else (load,)),
        plan=replace(plain.plan, runs=tuple(runs)),
        facts=plain.facts,
        session=plain.session,
        seconds=10,
    )
