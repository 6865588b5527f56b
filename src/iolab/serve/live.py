"""What the page of a session that runs shows: how far it is, and what it measured last. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from iolab.analyse.iterations import is_metadata
from iolab.analyse.key_value.summary import is_key_value
from iolab.model.event import SessionStatus
from iolab.model.metric import Result
from iolab.model.run import Plan, PlannedRun, RunStatus
from iolab.report.headline import Tally, tally
from iolab.report.objections import Objection, objections, run_name
from iolab.report.table import Cell, Column, Table, columns, verdict_cell
from iolab.report.wording import NOTHING, axis_label, show
from iolab.serve.library import Opened
from iolab.units import format_duration_s

NEWEST_MAX: Final = 12
"""Runs that are shown: what fits a screen; the report has them all."""

OBJECTIONS_MAX: Final = 6
"""Objections that are shown, the worst first."""

_NANOSECONDS: Final = 1e9


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a session is: runs made of those planned, and what it does now.

    `open_ended` says that results may ask for more; `now` is empty where nothing is under way.
    """

    made: int
    planned: int
    open_ended: bool
    now: str
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class LivePage:
    """Everything on the page."""

    title: str
    status: SessionStatus
    reason: str
    progress: Progress
    tally: Tally
    newest: Table
    objections: tuple[Objection, ...]
    damaged: tuple[str, ...]


def live_page(opened: Opened, now_ns: int) -> LivePage:
    """The page of a session as it stands at `now_ns` (UTC)."""
    session, results = opened.session, opened.results
    return LivePage(
        title=session.title,
        status=session.status,
        reason=session.reason or "",
        progress=_progress(opened, now_ns),
        tally=tally(results),
        newest=newest_table(results),
        objections=objections(results)[:OBJECTIONS_MAX],
        damaged=tuple(f"{one.path}. {one.says}" for one in opened.reader.damaged()),
    )


def newest_table(results: Sequence[Result]) -> Table:
    """The runs that were measured last, the newest first."""
    newest = sorted(results, key=lambda one: (one.sitting, one.order))[-NEWEST_MAX:]
    several = len({one.configuration for one in results}) > 1
    heads = (
        Column("Run"),
        *((Column("Configuration"),) if several else ()),
        Column("Verdict"),
        *columns((), ("Rate", "Bandwidth", "Latency mean", "p99")),
    )
    rows = tuple(
        (
            Cell(_name(one)),
            *((Cell(one.configuration),) if several else ()),
            verdict_cell(one.verdict.level),
            *_figures(one),
        )
        for one in reversed(newest)
    )
    return Table("The newest runs", heads, rows)


def _name(result: Result) -> str:
    ended = "" if result.status is RunStatus.DONE else f" ({result.status.value})"
    return f"{run_name(result)}{ended}"


def _figures(result: Result) -> tuple[Cell, ...]:
    """Rate, bandwidth, mean latency and p99, as far as the run has them."""
    metrics = result.metrics
    if is_metadata(result) or is_key_value(result):
        rate = next((one for one in metrics.values() if one.unit == "ops/s"), None)
        return (Cell(show(rate)), *([Cell(NOTHING)] * 3))
    keys = ("iops", "bw_bytes_per_s", "lat_ns_mean", "lat_ns_p99")
    return tuple(Cell(show(metrics.get(key))) for key in keys)


def _progress(opened: Opened, now_ns: int) -> Progress:
    plan, results = opened.reader.plan, opened.results
    running = opened.session.status is SessionStatus.RUNNING
    made = {(one.digest, one.repeat) for one in results if one.status is RunStatus.DONE}
    return Progress(
        made=len(plan.runs) - plan.missing(made),
        planned=len(plan.runs),
        open_ended=bool(plan.runs_more),
        now=_next(plan, made) if running else "",
        facts=_times(opened, now_ns, running=running),
    )


def _next(plan: Plan, made: set[tuple[str, int]]) -> str:
    """The first run of the plan that is not made: the one that is prepared or measured."""
    coming = [run for run in plan.runs if (run.point.digest, run.repeat) not in made]
    return _planned(min(coming, key=lambda run: run.order)) if coming else "what results ask for"


def _planned(run: PlannedRun) -> str:
    axis = axis_label(run.point.axis)
    name = f"{run.point.workload}, {axis}" if axis else run.point.workload
    return f"{name}, repeat {run.repeat}" if run.repeat > 1 else name


def _times(opened: Opened, now_ns: int, *, running: bool) -> tuple[tuple[str, str], ...]:
    """Since when it runs, how long the plan takes at most, and when a run was last kept."""
    begun = opened.reader.begun()
    facts = []
    if begun and running:
        facts.append(("running for", _span(now_ns - begun[-1])))
    if running:
        facts.append(("planned for at most", format_duration_s(opened.reader.plan.budget.seconds)))
    if opened.results and running:
        facts.append(("last run kept", f"{_span(now_ns - opened.state.newest_ns)} ago"))
    return tuple(facts)


def _span(nanoseconds: int) -> str:
    return format_duration_s(max(0, round(nanoseconds / _NANOSECONDS)))
