"""The runs in detail: charts for some, checks with evidence for all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from iolab.core.metric import Result
from iolab.core.run import HostRun
from iolab.report.brief import Brief
from iolab.report.caveats import run_name
from iolab.report.charts.chart import Figure
from iolab.report.charts.choose import Look
from iolab.report.charts.heat import heat_figure
from iolab.report.charts.hosts import strip_figure
from iolab.report.charts.timeline import timeline_figure
from iolab.report.fleet import account_table, host_shares, spread_tables
from iolab.report.kinds import LoadReport
from iolab.report.numbers import count, listing
from iolab.report.series import DetailKey, RunDetail
from iolab.report.table import Table
from iolab.report.tables import trace_of

RUNS_TOLD: Final = 500
"""Runs told in detail: each takes some KiB, and a page must open at once."""

NAMES_SHOWN: Final = 8
"""Hosts named over what they have alike; the others are counted."""


@dataclass(frozen=True, slots=True)
class Command:
    """How the engine ran on these hosts, which had it alike; `host` names them."""

    host: str
    argv: tuple[str, ...]
    job_file: str


@dataclass(frozen=True, slots=True)
class RunPart:
    """One run's place in the report: charts for some, checks with evidence for all."""

    anchor: str
    result: Result
    aside: str
    trace: str
    figures: tuple[Figure, ...]
    hosts: Table | None
    fleet: tuple[Table, ...]
    folded: tuple[Table, ...]
    commands: tuple[Command, ...]


def run_parts(
    brief: Brief,
    anchors: Mapping[DetailKey, str],
    looks: Mapping[str, Look],
    cited: Iterable[str] = (),
) -> tuple[RunPart, ...]:
    """Every run, those with charts first; of very many those that `_told_of` chooses.

    `cited` are the anchors that sentences lead to.
    """
    told = _told_of(brief, {anchor: key for key, anchor in anchors.items()}, cited)
    return tuple(_part(brief, result, anchors, looks) for result in told)


def _told_of(brief: Brief, keys: Mapping[str, DetailKey], cited: Iterable[str]) -> list[Result]:
    """The runs with charts first, in the order in which they were chosen; then the others.

    Of more than `RUNS_TOLD` those that sentences lead to, then the worst verdicts, then the first.
    """
    by_key = {(result.digest, result.repeat): result for result in brief.results}
    drawn = [key for key, detail in brief.details.items() if detail.timeline is not None]
    order = list(dict.fromkeys([*drawn, *by_key]))
    if len(order) > RUNS_TOLD:
        worst = sorted(by_key, key=lambda key: -by_key[key].verdict.level.rank)
        wanted = [*drawn, *(keys[one] for one in cited if one in keys), *worst]
        kept = set(list(dict.fromkeys(wanted))[:RUNS_TOLD])
        order = [key for key in order if key in kept]
    return [by_key[key] for key in order]


def _part(
    brief: Brief, result: Result, anchors: Mapping[DetailKey, str], looks: Mapping[str, Look]
) -> RunPart:
    run_key = (result.digest, result.repeat)
    token = looks[result.configuration].token
    kind, hosts = brief.kinds.of(result), brief.kinds.hosts
    workload = next(one for one in brief.study.workloads if one.id == result.workload)
    detail = brief.details.get(run_key)
    figures: list[Figure] = []
    if detail is not None and detail.timeline is not None:
        name = run_name(result)
        figures.append(
            timeline_figure(
                name,
                "Load and telemetry over time",
                detail.timeline,
                token,
                kind.item,
            )
        )
        if detail.heat is not None:
            figures.append(heat_figure(name, "Latency over time", detail.heat, token))
        curves = kind.distribution(name, detail, token)
        figures += [curves] if curves else []
        if kind.has_one_rate:
            key = kind.host_key(result, workload)
            strip = strip_figure(name, result, key, token, host_shares(kind, result, workload))
            figures += [strip] if strip else []
    checks = count(len(result.verdict.checks), "check")
    objected = len(result.verdict.objections)
    told = f"{count(objected, 'objection')}" if objected else "no objection"
    return RunPart(
        anchor=anchors[run_key],
        result=result,
        trace=trace_of(brief, result),
        aside=f"{kind.figure(result, workload)}, {checks}, {told}",
        figures=tuple(figures),
        hosts=host_shares(kind, result, workload) if len(result.hosts) > 1 else None,
        fleet=(
            *hosts.run_tables(result),
            *_fleet(kind, result, detail),
            *kind.run_tables(result),
        ),
        folded=(*kind.engine_tables(brief, result), *hosts.fleet_tables(brief, result)),
        commands=_commands(brief.host_runs.get(run_key, ())) if figures else (),
    )


def _fleet(kind: LoadReport, result: Result, detail: RunDetail | None) -> tuple[Table, ...]:
    """How alike and how much together the hosts ran; the account of bytes."""
    spread = spread_tables(kind, result)
    account = detail.account if detail is not None else None
    return spread if account is None else (*spread, account_table(account))


def _commands(hosts: Sequence[HostRun]) -> tuple[Command, ...]:
    """The commands with their job files, those that hosts have alike once."""
    found: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for host in hosts:
        found.setdefault((host.argv, host.job_file), []).append(host.host)
    return tuple(
        Command(listing(names, NAMES_SHOWN), argv, job_file)
        for (argv, job_file), names in found.items()
    )


def runs_note(brief: Brief) -> str:
    """Which runs have charts."""
    drawn = sum(1 for detail in brief.details.values() if detail.timeline is not None)
    if len(brief.results) > RUNS_TOLD:
        return (
            f"{RUNS_TOLD} of {count(len(brief.results), 'run')}: {drawn} headline runs and those "
            "with the worst verdicts with their charts; those that sentences lead to, other runs "
            "that are not valid, and the first of the others with their checks. Of each other run "
            "iolab show tells the same, and iolab export lists them all."
        )
    if drawn >= len(brief.results):
        return "Each run with its series, its latencies, and every check that was made."
    return (
        f"The headline runs and those with the worst verdicts, {drawn} in all, with their charts; "
        "the others with their checks."
    )
