"""A brief arranged as the page shows it: texts, tables and figures, ready for the template."""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from iolab.core.metric import Level, Result
from iolab.core.run import RunStatus
from iolab.core.workload import Indicator
from iolab.report.best import Headline, interval_of, tally
from iolab.report.brief import Brief
from iolab.report.caveats import (
    Objection,
    names_among_several,
    objections,
    run_name,
    where,
    whose_run,
)
from iolab.report.charts.chart import Figure
from iolab.report.charts.choose import looks_of
from iolab.report.hardware import (
    configurations_table,
    disks_table,
    host_table,
    nics_table,
    same_hosts,
)
from iolab.report.header import Repeat, alerts_of, facts_of, repeats, summary_of
from iolab.report.kinds import Anchors
from iolab.report.narrative import FIRST as SAID_FIRST
from iolab.report.narrative import Said, said
from iolab.report.numbers import NOTHING, clean, count, listing, mark, show
from iolab.report.page_parts import Card, ChartGroup, PublishedTables, Section
from iolab.report.palette import SERIES, declarations
from iolab.report.render import draw_tied, predraw
from iolab.report.run_details import RunPart, run_parts, runs_note
from iolab.report.series import DetailKey
from iolab.report.table import Cell, Table, columns, row, verdict_cell
from iolab.report.tables import (
    asked,
    evidence_text,
    methods_table,
    places_table,
    session_tables,
)
from iolab.report.workloads import sections, workload_charts

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
    gains: tuple[tuple[Table, str], ...]
    said: tuple[Said, ...]
    objections: tuple[Objection, ...]
    failures: tuple[Result, ...]
    more_failures: str
    anchors: Mapping[DetailKey, str]
    colour_note: str
    colours: tuple[tuple[str, str], ...]
    workloads: tuple[ChartGroup, ...]
    sections: tuple[Section, ...]
    results: tuple[Table, ...]
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
    kinds = brief.kinds
    found = kinds.plain_headlines(brief.study, points)
    looks = looks_of(brief.study)
    anchors = {(r.digest, r.repeat): f"run-{i}" for i, r in enumerate(brief.results, 1)}
    failures = tuple(r for r in brief.results if r.status is not RunStatus.DONE)
    workloads = workload_charts(brief, looks, anchors)
    sentences = said(brief.study, points, brief.results, anchors, brief.watched)
    further = sections(brief, points, looks, anchors)
    hidden = len(failures) - MAX_FAILURES
    several = len(brief.study.configurations) > 1
    study = asked(brief)
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
        cards=tuple(card for kind in kinds.loads for card in kind.cards(brief, looks, anchors)),
        headline_table=_headline_table(found, anchors),
        gains=tuple(one for kind in kinds.loads for one in kind.gains(brief, looks)),
        said=sentences,
        objections=objections(brief.results, names_among_several(brief.study)),
        failures=failures[:MAX_FAILURES],
        more_failures=f"{count(hidden, 'more run')} failed or was interrupted."
        if hidden > 0
        else "",
        anchors=anchors,
        colour_note="A configuration has the same colour everywhere." if several else "",
        colours=tuple((one.title, looks[one.id].token.css) for one in brief.study.configurations)
        if several
        else (),
        workloads=workloads,
        sections=further,
        results=_results(brief, anchors),
        runs=run_parts(
            brief, anchors, looks, (anchor for one in sentences for anchor, _ in one.links)
        ),
        runs_note=runs_note(brief),
        configurations=configurations_table(brief.study.configurations),
        guests=kinds.hosts.tables(brief),
        hosts=_hosts(brief),
        method=methods_table(brief),
        jobs=tuple(table for kind in kinds.loads for table in kind.job_tables(brief, study)),
        published=brief.published,
        sessions=session_tables(brief.sessions),
        places=places_table(brief),
        repeats=repeats(brief),
    )


def _results(brief: Brief, anchors: Anchors) -> tuple[Table, ...]:
    """Every run, a table for each kind of load; where there is none, the heading of the first."""
    found = brief.kinds.apart(brief.results)
    told = [kind for kind, own in found.items() if own] or list(found)[:1]
    return tuple(kind.result_table(brief.study, found[kind], anchors) for kind in told)


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
        *((("said", "Key findings"),) if is_said else ()),
        *((("sessions", "Sessions"),) if is_united else ()),
        ("know", "Caveats"),
        *((("charts", "Load and latency"),) if has_charts else ()),
        *((one.anchor, one.title) for one in further),
        *((("published", "Published elsewhere"),) if is_published else ()),
        ("results", "Every run"),
        *((("runs", "Runs in detail"),) if has_runs else ()),
        ("configuration", "Test configuration"),
        ("method", "Method"),
        ("repeat", "How to repeat it"),
    )


def _headline_table(found: Sequence[Headline], anchors: Mapping[DetailKey, str]) -> Table:
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
                *row(show(best.lat_mean), show(best.lat_tail), interval_of(best.figure)),
                verdict_cell(best.level, anchors.get((best.shown.digest, best.shown.repeat))),
            )
        )
    return Table("Headline figures", heads, tuple(rows))


ROWS_MOST: Final = 3000
"""Rows of a table on a page: browsers take seconds for more. What is left out is said there."""

_HERE: Final = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure, its SVG, and as JSON what its marks stand for (empty for nothing)."""

    figure: Figure
    svg: Markup
    marks: Markup


def render_html(brief: Brief, processes: int | None = None) -> str:
    """The page; the same brief gives the same bytes. ReportError if a chart cannot be drawn.

    `processes` draw its charts, by default as many as this one has cores; 1 is this process alone.
    """
    style, page = style_sheet(), make_page(brief)
    template = _environment().get_template("report.html.j2")
    return template.render(
        brief=brief,
        page=page,
        style=Markup(style),  # noqa: S704 - ours, and its digest stands in the policy
        script=Markup(script()),  # noqa: S704 - the same
        policy=policy(style, script()),
        levels={level.value: level for level in Level},
        names=names_among_several(brief.study),
        draw=_Pen(page.colours, predraw(_figures(page), processes)),
        said_first=SAID_FIRST,
        told=frozenset(part.anchor for part in page.runs),
    )


def style_sheet() -> str:
    """The page's CSS: the tokens for light, dark and print, then the rules."""
    light, dark = declarations(dark=False), declarations(dark=True)
    rules = (_HERE / "style.css").read_text(encoding="utf-8")
    return (
        f":root{{{light}}}"
        f"@media (prefers-color-scheme:dark){{:root{{{dark}}}}}"
        f"@media print{{:root{{{light}}}}}"
        f"\n{rules}"
    )


@cache
def script() -> str:
    """The page's script: it changes what is shown of the charts, and asks for nothing."""
    parts = sorted((_HERE / "script").glob("*.js"))
    body = "\n".join(part.read_text(encoding="utf-8") for part in parts)
    return f'"use strict";\n(() => {{\n{body}}})();\n'


def policy(style: str, script: str) -> str:
    """The Content-Security-Policy under which that style sheet and that script alone are used."""
    return (
        f"default-src 'none'; style-src '{digest_source(style)}'; "
        f"script-src '{digest_source(script)}'; img-src data:; base-uri 'none'; form-action 'none'"
    )


def digest_source(text: str) -> str:
    """What names a style sheet or a script in a Content-Security-Policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


class _Pen:
    """Draws figures one after the other: ids are numbered, equal specs are drawn once."""

    def __init__(self, colours: Sequence[tuple[str, str]], drawn: dict[str, str]) -> None:
        self._names = {_TOKENS[css]: title for title, css in reversed(colours)}
        self._cache = drawn
        self._count = 0

    def __call__(self, figures: Iterable[Figure]) -> list[Drawn]:
        """The figures with their SVG, in their order."""
        drawn = []
        for figure in figures:
            self._count += 1
            made = draw_tied(figure, f"f{self._count}", self._cache, self._names)
            # What is foreign in either was escaped where it was written.
            drawn.append(Drawn(figure, Markup(made.svg), Markup(made.marks)))  # noqa: S704
        return drawn


def _figures(page: Page) -> Iterator[Figure]:
    """Every figure of the page."""
    for group in (*page.workloads, *(group for one in page.sections for group in one.groups)):
        yield from group.figures
    for run in page.runs:
        yield from run.figures


_TOKENS: Final = {token.css: token.name for token in SERIES}


@cache
def _environment() -> Environment:
    environment = template_engine()
    environment.globals["quote"] = _quoted
    return environment


def template_engine(*folders: Path) -> Environment:
    """Templates of these folders, then the report's, that print foreign text as nothing but text.

    It is escaped after its unseen characters were written out.
    """
    environment = Environment(
        loader=FileSystemLoader([*folders, _HERE / "templates"]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_final,
    )
    # What a page leads to of runs: nothing, where it does not tell of them one by one.
    environment.globals.update(told=frozenset(), rows_most=ROWS_MOST)
    environment.globals.update(
        mark=mark,
        run_name=run_name,
        whose_run=whose_run,
        where=where,
        evidence_text=evidence_text,
    )
    return environment


def _final(value: object) -> object:
    """What a template prints: foreign text with its unseen characters written out."""
    if isinstance(value, Markup):
        return value
    return clean(value) if isinstance(value, str) else value


def _quoted(argv: Sequence[str]) -> str:
    """An argument list as it is typed."""
    return shlex.join(argv)
