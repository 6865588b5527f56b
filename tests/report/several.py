"""Sessions of the sweep to be united, and how they may differ."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from iolab.core.host import HostFacts
from iolab.core.metric import RunResult
from iolab.core.study import Method
from iolab.loads.fileio.workload import Job
from iolab.report.brief import Brief
from iolab.report.gather import StoredSessionReader
from iolab.report.merged import merge_sessions, session_union_of_source
from iolab.report.table import Table
from tests.report.made import build_brief
from tests.report.studies import sweep
from tests.report.synthetic import Source


def session(name: str, factor: float = 1.0) -> Source:
    """A session of the sweep whose rates are so many times as high."""
    source = sweep(seconds=4)
    source.session = replace(
        source.session,
        id=f"id-{name}",
        command=("/opt/bin/iolab", "run", "ssd-cluster", "--out", f"/srv/secret/{name}"),
    )
    source.results_given = tuple(faster(result, factor) for result in source.results())
    return source


def faster(result: RunResult, factor: float) -> RunResult:
    metrics = {
        name: replace(one, value=one.value and one.value * factor)
        for name, one in result.metrics.items()
    }
    return replace(result, metrics=metrics)


def with_facts(source: Source, change: Callable[[HostFacts], HostFacts]) -> Source:
    return replace(source, facts={name: change(facts) for name, facts in source.facts.items()})


def newer_kernel(facts: HostFacts) -> HostFacts:
    return replace(facts, kernel=replace(facts.kernel, release="9.9", boot_id="another"))


def used_and_rebooted(facts: HostFacts) -> HostFacts:
    target = facts.target and replace(facts.target, free_bytes=17)
    return replace(facts, target=target, kernel=replace(facts.kernel, boot_id="another"))


def with_method(source: Source, **settings: object) -> Source:
    method: Method = replace(source.study.method, **settings)
    return replace(source, study=replace(source.study, method=method))


def with_jobs(source: Source, **parts: object) -> Source:
    """The session with that in every job, as asked for and as planned."""
    workloads = tuple(
        replace(one, job=replace(Job.require_type(one.job), **parts))
        for one in source.study.workloads
    )
    jobs = {
        point.digest: replace(Job.require_type(point.job), **parts) for point in source.plan.points
    }
    runs = tuple(
        replace(run, point=replace(run.point, job=jobs[run.point.digest]))
        for run in source.plan.runs
    )
    study = replace(source.study, workloads=workloads)
    return replace(source, study=study, plan=replace(source.plan, runs=runs))


def briefed(*sources: tuple[str, StoredSessionReader]) -> Brief:
    source = merge_sessions(sources)
    return build_brief(source, None, session_union_of_source(source))


def texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in cells] for cells in table.rows]


def scattered(name: str, by: float) -> Source:
    """A session of two repeats a point that differ by that share."""
    source = session(name)
    again = [faster(replace(one, repeat=2), 1 + by) for one in source.results()]
    source.results_given = (*source.results(), *again)
    runs = source.plan.runs
    later = tuple(replace(run, order=run.order + len(runs), repeat=2) for run in runs)
    return replace(source, plan=replace(source.plan, runs=(*runs, *later)))
