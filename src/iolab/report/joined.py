"""The studies and plans of several sessions as one. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from iolab.model.configuration import Configuration
from iolab.model.event import SessionStatus
from iolab.model.run import Budget, DataSet, Plan, PlannedRun, Point
from iolab.model.study import Study
from iolab.model.workload import Axis, Workload
from iolab.plan.sweep import digest_of
from iolab.report.other_names import Names, spec_named, with_hosts
from iolab.report.wording import listing
from iolab.store.documents import Session

TEXTS_SHOWN: Final = 3
"""Titles and names that stand where one does; the others are counted."""

_WORST: Final = (
    SessionStatus.FAILED,
    SessionStatus.INTERRUPTED,
    SessionStatus.RUNNING,
    SessionStatus.DONE,
)


def joined_study(
    studies: Sequence[Study],
    configurations: Sequence[Sequence[Configuration]],
    hosts: Sequence[Names],
) -> Study:
    """All studies as one: their configurations side by side, their workloads joined by id.

    `configurations` are each session's under their new ids, `hosts` each session's new names. What
    a study has once, as its method, is the first one's.
    """
    pairs = list(zip(configurations, hosts, strict=True))
    specs = {
        named.name: named
        for study, names in zip(studies, hosts, strict=True)
        for named in (spec_named(spec, names) for spec in study.hosts)
    }
    first = studies[0]
    return replace(
        first,
        id=_listed(study.id for study in studies),
        title=_listed(study.title for study in studies),
        question=" ".join(dict.fromkeys(study.question for study in studies if study.question)),
        source=_listed(study.source for study in studies if study.source),
        configurations=tuple(with_hosts(one, names) for each, names in pairs for one in each),
        hosts=tuple(specs.values()),
        workloads=_workloads(studies),
        scale=_listed(study.scale for study in studies),
        overrides=(),
        inventory="",
        guests=next((study.guests for study in studies if study.guests is not None), None),
    )


def alike_workloads(studies: Sequence[Study]) -> frozenset[str]:
    """The workloads that every study which has them asks for in the same way."""
    asked: dict[str, list[Workload]] = {}
    for study in studies:
        for workload in study.workloads:
            asked.setdefault(workload.id, []).append(workload)
    return frozenset(name for name, found in asked.items() if all(one == found[0] for one in found))


def asked_apart(labels: Sequence[str], studies: Sequence[Study]) -> tuple[Workload, ...]:
    """Every workload as it was asked for; what one id means differently has labels in its title."""
    found: dict[str, list[tuple[Workload, list[str]]]] = {}
    for label, study in zip(labels, studies, strict=True):
        for workload in study.workloads:
            kinds = found.setdefault(workload.id, [])
            users = next((users for one, users in kinds if one == workload), None)
            if users is None:
                kinds.append((workload, [label]))
            else:
                users.append(label)
    return tuple(
        replace(one, title=f"{one.title} ({', '.join(users)})") if len(kinds) > 1 else one
        for kinds in found.values()
        for one, users in kinds
    )


def joined_plan(
    plans: Sequence[Plan],
    runs: Iterable[PlannedRun],
    candidates: Iterable[Point],
    configurations: Iterable[tuple[DataSet, str]],
) -> Plan:
    """All plans as one; `runs`, `candidates` and `configurations` of data sets have new names."""
    sets = {
        (one.id, one.job_bytes, one.numjobs): replace(one, configuration=name)
        for one, name in configurations
    }
    budgets = [plan.budget for plan in plans]
    return Plan(
        study=_listed(plan.study for plan in plans),
        digest=digest_of([plan.digest for plan in plans]),
        data_sets=tuple(sets.values()),
        runs=tuple(runs),
        budget=Budget(
            seconds=sum(one.seconds for one in budgets),
            reasons=tuple(reason for one in budgets for reason in one.reasons),
            layout_bytes_per_host=max(one.layout_bytes_per_host for one in budgets),
            write_bytes_estimate=sum(one.write_bytes_estimate for one in budgets),
            free_bytes_needed_per_host=max(one.free_bytes_needed_per_host for one in budgets),
        ),
        destroys=tuple(dict.fromkeys(name for plan in plans for name in plan.destroys)),
        candidates=tuple(candidates),
        runs_more=sum(plan.runs_more for plan in plans),
    )


def joined_session(labels: Sequence[str], sessions: Sequence[Session], study: Study) -> Session:
    """What stands for all sessions: the worst status, the first moment, every version."""
    worst = min((one.status for one in sessions), key=_WORST.index)
    reasons = [
        f"{label}: {one.reason}"
        for label, one in zip(labels, sessions, strict=True)
        if one.reason and one.status is worst
    ]
    return replace(
        sessions[0],
        id=_listed(one.id for one in sessions),
        study=study.id,
        title=study.title,
        scale=study.scale,
        overrides=(),
        command=(),
        iolab_version=_listed(one.iolab_version for one in sessions),
        agent_version=_listed(one.agent_version for one in sessions if one.agent_version) or None,
        created_real_ns=min(one.created_real_ns for one in sessions),
        status=worst,
        reason=" ".join(reasons) or None,
        history=(),
        files=(),
    )


def _workloads(studies: Sequence[Study]) -> tuple[Workload, ...]:
    found: dict[str, Workload] = {}
    for study in studies:
        for workload in study.workloads:
            known = found.get(workload.id)
            found[workload.id] = workload if known is None else _joined(known, workload)
    return tuple(found.values())


def _joined(one: Workload, other: Workload) -> Workload:
    """The workload with the values of both; numbers rise, words stand in the first one's order."""
    values: dict[str, dict[int | str, None]] = {}
    for axis in (*one.sweep, *other.sweep):
        values.setdefault(axis.name, {}).update(dict.fromkeys(axis.values))
    return replace(one, sweep=tuple(Axis(name, _rising(tuple(of))) for name, of in values.items()))


def _rising(values: tuple[int | str, ...]) -> tuple[int | str, ...]:
    numbers = [value for value in values if isinstance(value, int)]
    return tuple(sorted(numbers)) if len(numbers) == len(values) else values


def _listed(texts: Iterable[str]) -> str:
    return listing(list(dict.fromkeys(texts)), TEXTS_SHOWN)
