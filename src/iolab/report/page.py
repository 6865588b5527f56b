"""A brief arranged as the page shows it: texts, tables and figures, ready for the template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from iolab.analyse.points import NO_REPLICATE
from iolab.model.metric import Metric, Result
from iolab.model.run import RunStatus
from iolab.model.workload import Indicator
from iolab.report.brief import Brief
from iolab.report.detail import RunKey
from iolab.report.figures.choose import Look, looks_of
from iolab.report.guests.groups import io_headlines
from iolab.report.guests.placement import guest_tables
from iolab.report.headline import Headline, tally
from iolab.report.key_value.charts import key_cards
from iolab.report.key_value.evidence import databases_table, servers_table
from iolab.report.key_value.gains import key_gains, largest_table
from iolab.report.key_value.groups import key_groups
from iolab.report.key_value.tables import key_jobs_tables, key_runs_table
from iolab.report.machine import (
    configurations_table,
    disks_table,
    host_table,
    nics_table,
    same_hosts,
)
from iolab.report.masthead import alerts_of, facts_of, summary_of
from iolab.report.objections import Objection, names_among_several, objections
from iolab.report.operation_charts import operation_cards
from iolab.report.operations import jobs_table, runs_table
from iolab.report.page_parts import Card, ChartGroup, Entry, Section
from iolab.report.published import PublishedTables
from iolab.report.repeat import Repeat, repeats
from iolab.report.run_parts import RunPart, run_parts, runs_note
from iolab.report.said import Said, said
from iolab.report.sections.every import sections
from iolab.report.session_tables import asked, methods_table, places_table, session_tables
from iolab.report.table import Cell, Table, columns, row, verdict_cell
from iolab.report.tables import results_table, workloads_table
from iolab.report.wording import NOTHING, count, listing, show, show_interval
from iolab.report.workload_charts import workload_charts

MAX_FAILURES: Final = 12
"""Failed runs told one by one; the results table has them all."""

_NO_FIGURE: Final = "not measured"


@dataclass(frozen=True, slots=True)
class Page:
    """Everything that the template prints, in its order."""

    facts: tuple[tuple[str, str], ...]
    alerts: tuple[str, ...]
    contents: tuple[tuple[str, str], ...]
    summary: str
    cards: tuple[Card, ...]
    headline_table: Table
    largest: Table | None
    said: tuple[Said, ...]
    objections: tuple[Objection, ...]
    failures: tuple[Result, ...]
    more_failures: str
    anchors: Mapping[RunKey, str]
    colour_note: str
    colours: tuple[tuple[str, str], ...]
    workloads: tuple[ChartGroup, ...]
    sections: tuple[Section, ...]
    results: Table
    operation_results: tuple[Table, ...]
    runs: tuple[RunPart, ...]
    runs_note: str
    configurations: Table
    guests: tuple[Table, ...]
    hosts: tuple[tuple[str, tuple[Table, ...]], ...]
    method: Table
    jobs: tuple[Table, ...]
    published: PublishedTables | None
    sessions: tuple[Table, ...]
    places: Table | None
    repeats: tuple[Repeat, ...]


def make_page(brief: Brief) -> Page:
    """The brief arranged; pure, and the same for the same brief."""
    points = brief.points
    found = io_headlines(brief.study, points)
    looks = looks_of(brief.study)
    anchors = {(r.digest, r.repeat): f"run-{i}" for i, r in enumerate(brief.results, 1)}
    failures = tuple(r for r in brief.results if r.status is not RunStatus.DONE)
    groups = key_groups(brief.study, brief.results)
    gained = key_gains(brief.study, groups)
    workloads = workload_charts(brief, points, groups, gained, looks, anchors)
    sentences = said(brief.study, points, brief.results, anchors, brief.watched)
    further = sections(brief, points, looks, anchors)
    hidden = len(failures) - MAX_FAILURES
    several = len(brief.study.configurations) > 1
    return Page(
        facts=facts_of(brief),
        alerts=alerts_of(brief),
        contents=_contents(
            has_charts=bool(workloads),
            has_runs=bool(brief.results),
            is_published=brief.published is not None,
            is_said=bool(sentences),
            is_united=brief.sessions.several,
            further=further,
        ),
        summary=summary_of(tally(brief.results), brief),
        cards=(
            *_cards(found, looks, anchors, several=several),
            *operation_cards(brief, looks, anchors),
            *key_cards(groups, brief.study, looks, anchors),
        ),
        headline_table=_headline_table(found, anchors),
        largest=largest_table(groups, gained, looks),
        said=sentences,
        objections=objections(brief.results, names_among_several(brief.study)),
        failures=failures[:MAX_FAILURES],
        more_failures=f"{count(hidden, 'more run')} did not end well." if hidden > 0 else "",
        anchors=anchors,
        colour_note="A configuration has the same colour everywhere." if several else "",
        colours=tuple((one.title, looks[one.id].token.css) for one in brief.study.configurations)
        if several
        else (),
        workloads=workloads,
        sections=further,
        results=results_table(brief.study, brief.results, anchors),
        operation_results=_operation_results(brief, anchors),
        runs=run_parts(
            brief, anchors, looks, (anchor for one in sentences for anchor, _ in one.links)
        ),
        runs_note=runs_note(brief),
        configurations=configurations_table(brief.study.configurations),
        guests=guest_tables(brief),
        hosts=_hosts(brief),
        method=methods_table(brief),
        jobs=_jobs(brief),
        published=brief.published,
        sessions=session_tables(brief.sessions),
        places=places_table(brief),
        repeats=repeats(brief),
    )


def _operation_results(brief: Brief, anchors: Mapping[RunKey, str]) -> tuple[Table, ...]:
    """Every run of metadata load, and every run on a key-value store."""
    tables = (
        runs_table(brief.study, brief.results, anchors),
        key_runs_table(brief.study, brief.results, anchors),
    )
    return tuple(table for table in tables if table)


def _hosts(brief: Brief) -> tuple[tuple[str, tuple[Table, ...]], ...]:
    """The tables of each kind of host under the names of those that are of it."""
    return tuple(
        (listing(names, 8), (host_table(facts), disks_table(names, facts), nics_table(facts)))
        for names, facts in same_hosts(brief.facts)
    )


def _contents(
    *,
    has_charts: bool,
    has_runs: bool,
    is_published: bool,
    is_said: bool,
    is_united: bool,
    further: Sequence[Section],
) -> tuple[tuple[str, str], ...]:
    return (
        ("headlines", "Headline figures"),
        *((("said", "What the results say"),) if is_said else ()),
        *((("sessions", "Sessions"),) if is_united else ()),
        ("know", "What to know"),
        *((("charts", "Load and latency"),) if has_charts else ()),
        *((one.anchor, one.title) for one in further),
        *((("published", "Published elsewhere"),) if is_published else ()),
        ("results", "Every run"),
        *((("runs", "Runs in detail"),) if has_runs else ()),
        ("configuration", "Test configuration"),
        ("method", "Method"),
        ("repeat", "How to repeat it"),
    )


def _jobs(brief: Brief) -> tuple[Table, ...]:
    """What was asked for of each engine, and what databases and servers were."""
    study = asked(brief)
    jobs = {(run.point.digest, run.repeat): run.point.job for run in brief.plan.runs}
    found = (
        workloads_table(study),
        jobs_table(study),
        *key_jobs_tables(study),
        databases_table(jobs, brief.host_runs),
        servers_table(brief.study, tuple(brief.servers.values())),
    )
    return tuple(table for table in found if table)


def _cards(
    found: Sequence[Headline],
    looks: Mapping[str, Look],
    anchors: Mapping[RunKey, str],
    *,
    several: bool,
) -> tuple[Card, ...]:
    grouped: dict[str, list[Headline]] = {}
    for headline in found:
        grouped.setdefault(headline.workload.id, []).append(headline)
    return tuple(
        Card(
            group[0].workload.title,
            tuple(_entry(headline, looks, anchors, several=several) for headline in group),
        )
        for group in grouped.values()
    )


def _entry(
    headline: Headline,
    looks: Mapping[str, Look],
    anchors: Mapping[RunKey, str],
    *,
    several: bool,
) -> Entry:
    token = looks[headline.configuration.id].token
    name = headline.configuration.title if several else ""
    best = headline.best
    if best is None:
        return Entry(name, token.css, _NO_FIGURE, "", None, None, ())
    number, _, unit = show(best.figure).rpartition(" ")
    rows = [("95 % interval", _interval(best.figure))]
    if best.axis:
        of = f" (best of {headline.compared})" if headline.compared > 1 else ""
        rows.append((f"at{of}", best.axis))
    if best.host_count > 1 and headline.workload.indicator is not Indicator.LATENCY:
        word = "guest" if best.shown.nodes else "host"
        rows.append((f"mean per {word} ({best.host_count})", show(best.per_host)))
    if headline.workload.indicator is not Indicator.LATENCY:
        rows.append(("latency mean", show(best.lat_mean)))
    else:
        unit = f"{unit} mean"
    rows.append(("latency p99.5", show(best.lat_tail)))
    anchor = anchors.get((best.shown.digest, best.shown.repeat))
    return Entry(name, token.css, number, unit, best.level, anchor, tuple(rows))


def _interval(metric: Metric) -> str:
    return show_interval(metric, bare_rate=True) if metric.n != 1 else NO_REPLICATE


def _headline_table(found: Sequence[Headline], anchors: Mapping[RunKey, str]) -> Table:
    """For each indicator: total, its interval, mean per host, latency mean and p99.5, verdict."""
    heads = (
        *columns(("Workload", "Configuration", "At")),
        *columns((), ("Total", "Mean per host", "Latency mean", "Latency p99.5", "95 % interval")),
        *columns(("Verdict",)),
    )
    rows = []
    for headline in found:
        names = (Cell(headline.workload.title), Cell(headline.configuration.title))
        best = headline.best
        if best is None:
            rows.append((*names, *row(NOTHING, *([NOTHING] * 5)), Cell(_NO_FIGURE)))
            continue
        is_latency = headline.workload.indicator is Indicator.LATENCY
        total, share = ("", "") if is_latency else (show(best.figure), show(best.per_host))
        rows.append(
            (
                *names,
                *row(best.axis or NOTHING, total or NOTHING, share or NOTHING),
                *row(show(best.lat_mean), show(best.lat_tail), _interval(best.figure)),
                verdict_cell(best.level, anchors.get((best.shown.digest, best.shown.repeat))),
            )
        )
    return Table("Headline figures", heads, tuple(rows))
