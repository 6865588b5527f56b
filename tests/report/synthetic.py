"""A session that looks real and lives in memory: what the reader of a store would give.

Load follows a saturating curve over the depth, latency is log-normal with a tail, counters agree
with the load. Everything is drawn from a fixed seed.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np
from msgspec import Struct, field
from msgspec.structs import astuple, replace

from iolab.analysis.metrics import fleet_metrics, host_metrics
from iolab.analysis.sums import sum_measured_window
from iolab.core.configuration import Configuration
from iolab.core.events import SessionStatus
from iolab.core.histogram import bin_index_of_ns
from iolab.core.host import HostFacts, HostSpec, HostTransport
from iolab.core.metric import CheckResult, HostResult, RunResult, Verdict, VerdictLevel
from iolab.core.run import (
    DeviceDelta,
    HostRun,
    Plan,
    PlanDemand,
    PlannedRun,
    Point,
    RunRecord,
    RunStatus,
)
from iolab.core.samples import BinTable, CounterTable, Floats, IntervalTable
from iolab.core.study import Method, MethodKind, RunOrder, Study, TargetSettings, TelemetrySettings
from iolab.core.target_state import EMPTY_LEDGER, TargetLedger
from iolab.core.workload import Axis, DataSet, Indicator, Workload
from iolab.loads.fileio.engine_facts import FIO_ENGINE
from iolab.loads.fileio.workload import AccessPattern, Job
from iolab.store.documents import HostFactsAtStart, Manifest, SessionDocument, StoredAnalysis
from iolab.store.verify import Damage
from tests.report.counters import counters
from tests.report.machines import GIB, facts_of
from tests.results import result_of_run

GO_NS = 1_760_000_000_000_000_000
WARMUP_S = 5.0


class Source(Struct):
    """A session source in memory; records are made when they are asked for."""

    study: Study
    plan: Plan
    facts: dict[str, HostFacts]
    session: SessionDocument
    seconds: int
    verdicts: dict[tuple[str, int], Verdict] = field(default_factory=dict)
    failed: dict[tuple[str, int], str] = field(default_factory=dict)
    results_given: tuple[RunResult, ...] | None = None
    ledger_given: TargetLedger = EMPTY_LEDGER
    analysis_version: int = 1

    @property
    def facts_of_all_starts(self) -> tuple[HostFactsAtStart, ...]:
        return (HostFactsAtStart(0, "0.1.0", self.facts),)

    def results(self) -> tuple[RunResult, ...]:
        if self.results_given is None:
            self.results_given = tuple(self._result(run) for run in self.plan.runs)
        return self.results_given

    def damage_of_documents_and_manifests(self) -> tuple[Damage, ...]:
        return ()

    def record(self, digest: str, repeat: int) -> RunRecord:
        run = next(r for r in self.plan.runs if (r.point.digest, r.repeat) == (digest, repeat))
        return record_of(self, run)

    def target_ledger(self) -> TargetLedger:
        return self.ledger_given

    def manifest(self, digest: str, repeat: int) -> Manifest:
        record = self.record(digest, repeat)
        run = next(r for r in self.results() if (r.digest, r.repeat) == (digest, repeat))
        return Manifest(
            **record.manifest_fields(),
            format=1,
            session=self.session.id,
            iolab_version="0.1.0",
            agent_version="0.1.0",
            outputs=(),
            files=(),
            analysis=StoredAnalysis(self.analysis_version, run),
        )

    def intervals(self, digest: str, repeat: int) -> IntervalTable:
        return self.record(digest, repeat).intervals

    def bins(self, digest: str, repeat: int) -> BinTable:
        return self.record(digest, repeat).bins

    def counters(self, digest: str, repeat: int) -> CounterTable:
        return self.record(digest, repeat).counters

    def _result(self, run: PlannedRun) -> RunResult:
        key = (run.point.digest, run.repeat)
        record = record_of(self, run)
        load = sum_measured_window(record)
        failure = self.failed.get(key)
        metrics = fleet_metrics(load, Job.require_type(run.point.job).access.directions)
        if failure:
            metrics = {name: replace(metric, value=None) for name, metric in metrics.items()}
        return result_of_run(
            run,
            metrics,
            status=RunStatus.FAILED if failure else RunStatus.DONE,
            failure=failure,
            window_s=0.0
            if load.measured_part.common_window is None
            else load.measured_part.common_window.seconds,
            hosts=tuple(
                HostResult(
                    name,
                    host_metrics(load, index, Job.require_type(run.point.job).access.directions),
                )
                for index, name in enumerate(record.host_names)
            ),
            verdict=self.verdicts.get(key, VALID),
        )


CHECKS = (
    CheckResult("buffered-io", VerdictLevel.VALID, "All I/O was O_DIRECT.", {"direct": True}),
    CheckResult(
        "littles-law",
        VerdictLevel.VALID,
        "Throughput times latency equals the I/Os in flight.",
        {"rho": 0.9971, "throughput_per_s": 95123.4, "lat_ns_mean": 84211.0, "depth": 8},
    ),
    CheckResult(
        "device-bytes",
        VerdictLevel.VALID,
        "The target's devices moved the bytes that the engine claims.",
        {"claimed_bytes": 23_371_829_248, "device_bytes": 23_371_894_784, "ratio": 1.0},
    ),
    CheckResult(
        "unwritten-extents",
        VerdictLevel.VALID,
        "Every byte read had been written.",
        {"hole_bytes": 0},
    ),
    CheckResult("depth-reached", VerdictLevel.VALID, "The asked depth was held.", {"share": 0.998}),
    CheckResult(
        "cpu-bound", VerdictLevel.VALID, "No client ran out of CPU.", {"busiest_core": 0.61}
    ),
)
VALID = Verdict(VerdictLevel.VALID, CHECKS)


def objecting(
    level: VerdictLevel, code: str, message: str, **evidence: float | str | bool | None
) -> Verdict:
    """A verdict with one objection in place of the check of that code, or added to the others."""
    others = tuple(check for check in CHECKS if check.code != code)
    return Verdict(level, (*others, CheckResult(code, level, message, evidence)))


def job(
    access: AccessPattern, block: int, depth: int = 1, numjobs: int = 4, **more: int | bool
) -> Job:
    return replace(
        Job(
            engine=FIO_ENGINE,
            access=access,
            block_bytes=block,
            iodepth=depth,
            numjobs=numjobs,
            file_bytes=GIB // 4,
            read_percent=70 if access.is_mixed else None,
        ),
        **more,
    )


def workload(
    name: str, title: str, base: Job, depths: tuple[int, ...], indicator: Indicator
) -> Workload:
    sweep = (Axis("iodepth", depths),) if depths else ()
    return Workload(name, title, base, sweep, indicator)


def study_of(
    name: str,
    title: str,
    question: str,
    configurations: tuple[Configuration, ...],
    workloads: tuple[Workload, ...],
    repeats: int = 1,
) -> Study:
    hosts = tuple(dict.fromkeys(host for one in configurations for host in one.hosts))
    return Study(
        id=name,
        title=title,
        question=question,
        source="",
        configurations=configurations,
        hosts=tuple(HostSpec(host, HostTransport.LOCAL, path="/mnt/target") for host in hosts),
        workloads=workloads,
        method=Method(
            kind=MethodKind.FIXED,
            warmup_s=WARMUP_S,
            runtime_s=60.0,
            repeats=repeats,
            settle_s=1.0,
            order=RunOrder.RANDOMISED,
            seed=7,
            drop_caches=True,
        ),
        telemetry=TelemetrySettings(1000),
        target=TargetSettings(keep_files=False, allow_memory=False),
        scale="small",
        text=f'format = 1\nid = "{name}"\ntitle = "{title}"\n\n[method]\nruntime = "60s"\n',
        overrides=("method.runtime=60s",),
    )


def source_of(study: Study, seconds: int = 60) -> Source:
    """The study's plan, facts and session; no run is judged until it is asked for."""
    runs: list[PlannedRun] = []
    for configuration in study.configurations:
        for one in study.workloads:
            values = one.sweep[0].values if one.sweep else (None,)
            for value in values:
                axis = () if value is None else (("iodepth", value),)
                base = (
                    Job.require_type(one.job)
                    if value is None
                    else replace(Job.require_type(one.job), iodepth=int(value))
                )
                text = f"{configuration.id}/{one.id}/{axis}"
                digest = hashlib.sha256(text.encode()).hexdigest()[:16]
                point = Point(digest, configuration.id, one.id, axis, base, "s256m")
                runs += [
                    PlannedRun(len(runs) + r, r, point) for r in range(1, study.method.repeats + 1)
                ]
    sets = tuple(DataSet("s256m", c.id, 4, 1, GIB // 4) for c in study.configurations[:1])
    plan = Plan(study.id, "0f3ac1d2e4b59687", sets, tuple(runs), PlanDemand(1.0, (), 1, 1, 1), ())
    return Source(
        study=study,
        plan=plan,
        facts={spec.name: facts_of(spec.name) for spec in study.hosts},
        session=SessionDocument(
            format=1,
            id="20261121-042703-7c1f",
            study=study.id,
            title=study.title,
            scale=study.scale,
            overrides=study.overrides,
            command=("iolab", "run", study.id, "--path", "/mnt/target", "--scale", "small"),
            iolab_version="0.1.0",
            agent_version="0.1.0",
            created_real_ns=GO_NS - 20_000_000_000,
            status=SessionStatus.DONE,
            reason=None,
            history=(),
            files=(),
        ),
        seconds=seconds,
    )


def rate_of(point: Point) -> tuple[float, float]:
    """(IOPS of one host, median latency in ns) that the model target gives at this point."""
    large = Job.require_type(point.job).block_bytes >= 128 * 1024
    limit = 3_000.0 if large else 190_000.0
    if point.configuration == "performance":
        limit *= 1.9
    if not Job.require_type(point.job).access.has_reads:
        limit *= 0.42
    base_s = 650e-6 if large else 78e-6
    flight = Job.require_type(point.job).iodepth_per_client
    iops = 1 / (1 / limit + base_s / flight)
    return iops, flight / iops * 1e9


def record_of(source: Source, run: PlannedRun) -> RunRecord:
    """The evidence of a run: one interval a second on every host."""
    names = next(c.hosts for c in source.study.configurations if c.id == run.point.configuration)
    seconds = source.seconds + int(WARMUP_S)
    table, bins, sampled = _measured(run, len(names), seconds)
    return RunRecord(
        run=run,
        status=RunStatus.DONE,
        failure=None,
        started_real_ns=GO_NS,
        ended_real_ns=GO_NS + seconds * 1_000_000_000,
        warmup_s=WARMUP_S,
        runtime_s=float(source.seconds),
        telemetry_interval_ms=1000,
        hosts=tuple(_host_run(name, run) for name in names),
        intervals=table,
        bins=bins,
        counters=sampled,
        outputs=(),
    )


@lru_cache(maxsize=512)
def _measured(
    run: PlannedRun, hosts: int, seconds: int
) -> tuple[IntervalTable, BinTable, CounterTable]:
    """A run's load and counters, made once; nobody can write into them."""
    table, bins = load_of(run, hosts, seconds)
    found = (table, bins, counters(table, hosts, GO_NS, seconds))
    for part in found:
        for column in astuple(part):
            column.flags.writeable = False
    return found


def load_of(run: PlannedRun, hosts: int, seconds: int) -> tuple[IntervalTable, BinTable]:
    """What the hosts complete in each second, ramping up, and its latencies."""
    random = np.random.default_rng(int(run.point.digest[:8], 16) + run.repeat)
    access = Job.require_type(run.point.job).access
    shares = {0: 0.7, 1: 0.3} if access.is_mixed else {0 if access.has_reads else 1: 1.0}
    iops, median_ns = rate_of(run.point)
    ramp = 1 - 0.25 * np.exp(-np.arange(seconds) / 2.5)
    wander = np.cumsum(random.normal(0, 0.4, seconds)) / np.sqrt(np.arange(1, seconds + 1))
    load = iops * ramp * (1 + 0.025 * wander)
    rows: list[tuple[int, ...]] = []
    sums: list[float] = []
    bins: list[tuple[int, ...]] = []
    for host in range(hosts):
        for second in range(seconds):
            for way, share in shares.items():
                wanted = load[second] * share * (1 - 0.03 * host)
                lat = _latencies(random, median_ns / ramp[second] * (1.15 if way else 1.0))
                index, counts = np.unique(bin_index_of_ns(lat.astype(np.int64)), return_counts=True)
                scaled = np.maximum(counts * int(wanted) // lat.size, 1)
                ios = int(scaled.sum())
                end = GO_NS + (second + 1) * 1_000_000_000 + host * 3_000_000
                moved = ios * Job.require_type(run.point.job).block_bytes
                rows.append((host, second, end, 1_000_000_000, way, ios, moved))
                sums.append(float(ios * lat.mean()))
                bins += [
                    (host, second, way, int(b), int(c)) for b, c in zip(index, scaled, strict=True)
                ]
    table = np.array(rows, dtype=np.int64)
    sparse = np.array(bins, dtype=np.int64)
    return (
        IntervalTable(
            host=table[:, 0],
            seq=table[:, 1],
            end_real_ns=table[:, 2],
            span_ns=table[:, 3],
            direction=table[:, 4],
            ios=table[:, 5],
            bytes=table[:, 6],
            lat_sum_ns=np.array(sums),
        ),
        BinTable(*sparse.T),
    )


def _latencies(random: np.random.Generator, median_ns: float) -> Floats:
    """Four hundred latencies: log-normal, one in eighty several times longer."""
    lat = median_ns * random.lognormal(0.0, 0.22, 400)
    stretch = np.where(random.random(400) < 0.0125, random.uniform(2, 9, 400), 1.0)
    return np.asarray(lat * stretch, dtype=np.float64)


def _host_run(name: str, run: PlannedRun) -> HostRun:
    job = Job.require_type(run.point.job)
    text = f"[global]\nrw={job.access.value}\nbs={job.block_bytes}\n"
    return HostRun(
        host=name,
        error=None,
        argv=("fio", "--output-format=json+", "--status-interval=1", "job.fio"),
        job_file=text + f"iodepth={job.iodepth}\n[job]\n",
        engine_version="fio-3.33",
        start_real_ns=GO_NS,
        end_real_ns=None,
        exit_code=0,
        exit_signal=None,
        stopped_early=False,
        totals=None,
        devices=(DeviceDelta("nvme1n1", 1, 1, 1, 1),),
        extents=None,
        cache_drop=None,
        pre_run_activity=None,
        process=None,
        clock_offset_ns=0,
        clock_error_ns=100_000,
        stderr_tail="",
    )
