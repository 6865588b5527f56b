"""The sessions of one report side by side: what each is, in what they differ, how each measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from iolab.analyse.differences import Area, Difference
from iolab.model.metric import Result
from iolab.model.study import Study
from iolab.report.brief import Brief
from iolab.report.joined import asked_apart
from iolab.report.masthead import moment
from iolab.report.objections import run_name
from iolab.report.sessions import Member, Sessions
from iolab.report.table import Cell, Column, Table, columns, row
from iolab.report.tables import method_table
from iolab.report.wording import NOTHING, listing

TITLES_SHOWN: Final = 8
"""Configurations named for a session; the others are counted."""

SAME: Final = "same"
"""What stands where a session does not differ from the first one."""


def session_tables(sessions: Sessions) -> tuple[Table, ...]:
    """What each session is, and in what they differ; none of a single session."""
    if not sessions.several:
        return ()
    return (_sessions_table(sessions.members), _differences_table(sessions))


def _sessions_table(members: Iterable[Member]) -> Table:
    texts = ("Session", "Measured (UTC)", "Study", "Scale", "Configurations", "Runs", "Status")
    rows = tuple(
        row(
            one.label,
            f"{moment(one.session.created_real_ns):%Y-%m-%d %H:%M}",
            one.study.id,
            one.study.scale,
            listing(list(one.titles), TITLES_SHOWN),
            _made(one),
            one.session.status.value,
            one.session.iolab_version,
            one.session.id,
        )
        for one in members
    )
    return Table("What each session is", columns((*texts, "iolab", "Id")), rows)


def _made(member: Member) -> str:
    made, planned = len(member.results), len(member.plan.runs)
    return str(made) if member.plan.runs_more else f"{made} of {planned}"


def _differences_table(sessions: Sessions) -> Table:
    """One row for each thing, one column for each session; what forbids comparing is marked."""
    rows: dict[tuple[Area, str], dict[str, list[Difference]]] = {}
    for apart in sessions.apart:
        for one in apart.differences:
            rows.setdefault((one.area, one.what), {}).setdefault(apart.label, []).append(one)
    labels = [one.label for one in sessions.members]
    heads = (Column("What"), *(Column(label) for label in labels))
    ordered = sorted(rows.items(), key=lambda item: not _forbids(item[1]))
    cells = tuple(
        row(
            f"! {what}" if _forbids(found) else what,
            _values(one.baseline for each in found.values() for one in each),
            *(_values(one.candidate for one in found.get(label, ())) for label in labels[1:]),
        )
        for (_, what), found in ordered
    )
    nothing = (row("Nothing", *([SAME] * len(labels))),)
    return Table("What differs between the sessions", heads, cells or nothing)


def _forbids(found: Mapping[str, Iterable[Difference]]) -> bool:
    return any(one.forbids for each in found.values() for one in each)


def _values(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(texts)) or SAME


def asked(brief: Brief) -> Study:
    """The study whose workloads are told: where sessions ask otherwise by one id, each as asked."""
    members = brief.sessions.members
    if not members:
        return brief.study
    workloads = asked_apart([one.label for one in members], [one.study for one in members])
    return replace(brief.study, workloads=workloads)


def methods_table(brief: Brief) -> Table:
    """How was measured: of several sessions a column for each, one where all did it alike."""
    members = brief.sessions.members
    if not members:
        return method_table(brief.study, brief.plan)
    told = [_method(one) for one in members]
    names = list(dict.fromkeys(name for one in told for name in one))
    rows = [[one.get(name, NOTHING) for one in told] for name in names]
    alike = all(len(set(texts)) == 1 for texts in rows)
    heads = ["How, in each session"] if alike else [one.label for one in members]
    cells = tuple(row(name, *texts[: len(heads)]) for name, texts in zip(names, rows, strict=True))
    return Table("Method", (Column("What"), *(Column(head) for head in heads)), cells)


def _method(member: Member) -> dict[str, str]:
    cells = method_table(member.study, member.plan).rows
    return {what.text: how.text for what, how in cells}


def places_table(brief: Brief) -> Table | None:
    """Where every run is stored, for forms that have no part for each run; None of one session."""
    if not brief.sessions.several:
        return None
    rows = tuple(_place_row(brief, result) for result in brief.results)
    heads = columns(("Run", "Configuration", "Session", "Stored in"))
    return Table("Where every run is stored", heads, rows)


def _place_row(brief: Brief, result: Result) -> tuple[Cell, ...]:
    trace = brief.sessions.trace((result.digest, result.repeat))
    return row(run_name(result), result.configuration, trace.label, trace.place)


def trace_of(brief: Brief, result: Result) -> str:
    """Where a run is stored, in words: its session, its folder in that."""
    trace = brief.sessions.trace((result.digest, result.repeat))
    ids: Iterator[str] = (
        f"{one.label} ({one.session.id})"
        for one in brief.sessions.members
        if one.label == trace.label
    )
    return f"Session {next(ids, brief.session.id)}, {trace.place}"
