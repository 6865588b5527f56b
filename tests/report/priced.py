"""Configurations that tell what they are and cost, and a session of published maxima."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from iolab.analysis.points import summarise_points
from iolab.analysis.quotients import BestValue
from iolab.core.configuration import Capacity, Configuration, ProcurementCost
from iolab.core.metric import HostResult, Metric, RunResult, VerdictLevel
from iolab.core.run import PlannedRun
from iolab.core.workload import BY_BANDWIDTH, BY_IOPS, Indicator
from iolab.loads.fileio.workload import AccessPattern
from iolab.published.audit.document import PublishedSet, parse_published_set
from iolab.published.recomputed import printed_best_values, published_configurations
from iolab.registry import report_kinds
from iolab.report.brief import Brief, SectionMaker
from iolab.report.charts.chart import ReportSection
from tests.report.synthetic import VALID, Source, job, objecting, source_of, study_of, workload
from tests.results import result_of_run

SETS: Final = Path(__file__).parents[2] / "studies" / "published"
READ: Final = workload(
    "rand-read-4k", "Random read", job(AccessPattern.RANDREAD, 4096), (1, 8), BY_IOPS
)
WRITE: Final = workload(
    "seq-write-1m", "Sequential write", job(AccessPattern.WRITE, 1 << 20), (1, 8), BY_BANDWIDTH
)
DEPTHS: Final = (1, 4, 8, 16)
LOWER: Final = 0.8
"""What a published maximum's neighbours get of it."""


def configuration(
    name: str, *, hosts: int = 2, cost: ProcurementCost | None = None
) -> Configuration:
    """Six nodes of 600 TB raw and 400 TB usable."""
    return Configuration(
        name,
        name.title(),
        tuple(f"client-{number}" for number in range(1, hosts + 1)),
        f"/mnt/{name}",
        6,
        Capacity(600.0, 400.0),
        cost,
    )


def euros(total: float) -> ProcurementCost:
    """Half for servers, a tenth for the network."""
    return ProcurementCost("EUR", 0.5 * total, 0.1 * total, 0.4 * total)


def session(
    configurations: tuple[Configuration, ...],
    rates: Mapping[tuple[str, str, int], float],
    levels: Mapping[tuple[str, str, int], VerdictLevel] | None = None,
) -> Source:
    """Single runs of given rates by configuration, workload and depth, shared evenly by hosts.

    Runs that no rate is given for have none.
    """
    found = source_of(study_of("s", "S", "?", configurations, (READ, WRITE)), seconds=2)
    verdicts = levels or {}
    return replace(
        found,
        results_given=tuple(
            _result(found, run, rates.get(key), verdicts.get(key, VerdictLevel.VALID))
            for run in found.plan.runs
            for key in [_key(run)]
        ),
    )


def section(source: Source, make: SectionMaker) -> ReportSection | None:
    """The section that a maker makes of a session, whose runs are not looked into."""
    results, study = source.results(), source.study
    points = summarise_points(results, study)
    brief = Brief(
        kinds=report_kinds(),
        session=source.session,
        study=study,
        plan=source.plan,
        facts=source.facts,
        results=results,
        points=points,
        chart_data_by_run={},
        manifests={},
        damaged_runs=(),
    )
    return make(brief)


def published(name: str) -> PublishedSet:
    return parse_published_set((SETS / f"{name}.toml").read_text(encoding="utf-8"))


def published_session() -> Source:
    """The published configurations of SSDs as a session: each maximum at the depth it was told."""
    given = published("ssd-cluster")
    bests = {(one.configuration, one.workload): one for one in printed_best_values(given)}
    owners = tuple(replace(one, path=f"/mnt/{one.id}") for one in published_configurations(given))
    workloads = tuple(
        workload(
            str(one["id"]), str(one["id"]), job(AccessPattern(one["rw"]), 4096), DEPTHS, _kind(one)
        )
        for one in given.tables_of_array("workload")
    )
    found = source_of(study_of("ssd-cluster", "SSDs", "?", owners, workloads), seconds=2)
    results = tuple(
        _result(found, run, _rate(bests[run.point.configuration, run.point.workload], run))
        for run in found.plan.runs
    )
    return replace(found, results_given=results)


def _kind(table: Mapping[str, object]) -> Indicator:
    return BY_IOPS if str(table["rw"]).startswith("rand") else BY_BANDWIDTH


def _rate(best: BestValue, run: PlannedRun) -> float:
    depth = dict(run.point.axis_values)["iodepth"]
    told = dict(best.axis_values).get("iodepth", DEPTHS[-1])
    return (best.value.value or 0.0) * (1.0 if depth == told else LOWER)


def _key(run: PlannedRun) -> tuple[str, str, int]:
    depth = int(dict(run.point.axis_values)["iodepth"])
    return run.point.configuration, run.point.workload, depth


def _result(
    found: Source, run: PlannedRun, rate: float | None, level: VerdictLevel = VerdictLevel.VALID
) -> RunResult:
    kind = next(one.indicator for one in found.study.workloads if one.id == run.point.workload)
    name, unit = ("iops", "1/s") if kind == BY_IOPS else ("bw_bytes_per_s", "bytes/s")
    owner = next(one for one in found.study.configurations if one.id == run.point.configuration)
    share = None if rate is None else rate / max(len(owner.hosts), 1)
    return result_of_run(
        run,
        {name: Metric(rate, unit)},
        hosts=tuple(HostResult(host, {name: Metric(share, unit)}) for host in owner.hosts),
        verdict=VALID if level is VerdictLevel.VALID else objecting(level, "engine", "Doubtful."),
    )
