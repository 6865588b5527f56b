"""A brief arranged as the page shows it: texts, tables and figures, ready for the template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from iolab.analyse.points import NO_REPLICATE, summarise
from iolab.model.event import SessionStatus
from iolab.model.metric import Metric, Result
from iolab.model.run import RunStatus
from iolab.model.workload import Indicator
from iolab.report.brief import Brief
from iolab.report.detail import RunKey
from iolab.report.figures.choose import Look, looks_of
from iolab.report.guests.caveats import caveats
from iolab.report.guests.groups import io_headlines
from iolab.report.guests.placement import guest_tables, hosts_word
from iolab.report.headline import Headline, Tally, tally
from iolab.report.key_value.charts import key_cards
from iolab.report.key_value.evidence import databases_table, engine_notes, servers_table
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
from iolab.report.objections import Objection, objections, run_name
from iolab.report.operation_charts import operation_cards
from iolab.report.operations import jobs_table, runs_table
from iolab.report.page_parts import Card, ChartGroup, Entry, Section
from iolab.report.published import PublishedTables
from iolab.report.repeat import INVENTORY_FILE, repeat_command, study_file, versions_table
from iolab.report.run_parts import RunPart, run_parts, runs_note
from iolab.report.said import Said, said
from iolab.report.sections.every import sections
from iolab.report.table import Cell, Table, columns, row, verdict_cell
from iolab.report.tables import method_table, results_table, workloads_table
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
    study_file: str
    inventory_file: str
    command: tuple[str, ...]
    versions: Table


def make_page(brief: Brief) -> Page:
    """The brief arranged; pure, and the same for the same brief."""
    points = summarise(brief.results, brief.study)
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
        facts=_facts(brief),
        alerts=_alerts(brief),
        contents=_contents(
            has_charts=bool(workloads),
            has_runs=bool(brief.results),
            is_published=brief.published is not None,
            is_said=bool(sentences),
            further=further,
        ),
        summary=_summary(tally(brief.results), brief),
        cards=(
            *_cards(found, looks, anchors, several=several),
            *operation_cards(brief, looks, anchors),
            *key_cards(groups, brief.study, looks, anchors),
        ),
        headline_table=_headline_table(found, anchors),
        largest=largest_table(groups, gained, looks),
        said=sentences,
        objections=objections(brief.results),
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
        runs=run_parts(brief, anchors, looks),
        runs_note=runs_note(brief),
        configurations=configurations_table(brief.study.configurations),
        guests=guest_tables(brief),
        hosts=_hosts(brief),
        method=method_table(brief.study, brief.plan),
        jobs=_jobs(brief),
        published=brief.published,
        study_file=study_file(brief),
        inventory_file=INVENTORY_FILE,
        command=repeat_command(brief),
        versions=versions_table(brief),
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


def where(item: Objection) -> str:
    """To which runs an objection was made, in words."""
    if item.everywhere:
        return f"all {count(item.total, 'run')}" if item.total > 1 else "the only run"
    names = listing([run_name(result) for result in item.runs], 4)
    return f"{len(item.runs)} of {count(item.total, 'run')}: {names}"


def _facts(brief: Brief) -> tuple[tuple[str, str], ...]:
    made = datetime.fromtimestamp(brief.session.created_real_ns / 1e9, tz=UTC)
    hosts = list(dict.fromkeys(h for one in brief.study.configurations for h in one.hosts))
    return (
        ("Measured", f"{made:%-d %B %Y, %H:%M} UTC"),
        ("Hosts", hosts_word(brief.study, hosts)),
        ("Runs", _run_count(brief)),
        ("Scale", brief.study.scale),
        ("Session", brief.session.id),
        *(("Engine", text) for text in engine_notes(brief.study, brief.host_runs)),
        *((("Source", brief.study.source),) if brief.study.source else ()),
    )


def _run_count(brief: Brief) -> str:
    """How many runs there are of how many; where results decide that, as many as there are."""
    made = len(brief.results)
    return str(made) if brief.plan.runs_more else f"{made} of {len(brief.plan.runs)}"


def _alerts(brief: Brief) -> tuple[str, ...]:
    """What is wrong with the session as a whole."""
    status, reason = brief.session.status, brief.session.reason or ""
    made = [(result.digest, result.repeat) for result in brief.results]
    missing = brief.plan.missing(made) - len(brief.damaged)
    told = {
        SessionStatus.RUNNING: "The session is still running; this is what it has so far.",
        SessionStatus.INTERRUPTED: f"The session was interrupted with {count(missing, 'run')} "
        f"still to make. {reason}",
        SessionStatus.FAILED: f"The session failed with {count(missing, 'run')} still to make. "
        f"{reason}",
        SessionStatus.DONE: "",
    }[status]
    damage = [f"Damaged and left out: {hurt.path}. {hurt.says}" for hurt in brief.damaged]
    guests = caveats(brief.fleets.values(), brief.facts)
    return tuple(text.strip() for text in (told, *damage, *guests) if text)


def _contents(
    *,
    has_charts: bool,
    has_runs: bool,
    is_published: bool,
    is_said: bool,
    further: Sequence[Section],
) -> tuple[tuple[str, str], ...]:
    return (
        ("headlines", "Headline figures"),
        *((("said", "What the results say"),) if is_said else ()),
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
    jobs = {(run.point.digest, run.repeat): run.point.job for run in brief.plan.runs}
    found = (
        workloads_table(brief.study),
        jobs_table(brief.study),
        *key_jobs_tables(brief.study),
        databases_table(jobs, brief.host_runs),
        servers_table(brief.study, tuple(brief.servers.values())),
    )
    return tuple(table for table in found if table)


def _summary(tallied: Tally, brief: Brief) -> str:
    if not tallied.runs:
        return "No run is committed yet."
    parts = [
        f"{number} {name}"
        for number, name in (
            (tallied.valid, "valid"),
            (tallied.indicative, "indicative"),
            (tallied.invalid, "invalid"),
        )
        if number
    ]
    ended = [
        f"{count(number, 'run')} {name}"
        for number, name in ((tallied.failed, "failed"), (tallied.interrupted, "interrupted"))
        if number
    ]
    method = brief.study.method
    number = "its" if method.sequential else method.repeats
    means = f" A figure is the geometric mean of {number} repeats." if number != 1 else ""
    return (
        f"{count(tallied.runs, 'run')}: {', '.join(parts)}"
        f"{'; ' + ', '.join(ended) if ended else ''}.{means}"
    )


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
        of = f" (best of {headline.point_count})" if headline.point_count > 1 else ""
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
