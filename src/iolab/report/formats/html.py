"""A brief arranged as the page shows it: texts, tables and figures, ready for the template."""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup

from iolab.core.metric import Level, Result
from iolab.core.run import RunStatus
from iolab.dataclass import dataclass
from iolab.report.answer import Answer, answer
from iolab.report.best import tally
from iolab.report.brief import Brief, PublishedTables
from iolab.report.charts.chart import NO_INTERVAL, ChartGroup, Figure, ReportSection
from iolab.report.charts.palette import declarations
from iolab.report.charts.svg import draw
from iolab.report.charts.topology import Topology, topology
from iolab.report.hardware import (
    configuration_tables,
    disks_table,
    hardware_table,
    host_table,
    nics_table,
    same_hosts,
)
from iolab.report.maxima import ANCHOR as MAXIMA
from iolab.report.narrative import FIRST as FINDINGS_FIRST
from iolab.report.narrative import LinkedSentence, doubt_of_all, linked_sentences
from iolab.report.numbers import clean, count, listing, mark
from iolab.report.phrases import (
    Objection,
    names_among_several,
    objections,
    run_name,
    where,
    whose_run,
)
from iolab.report.provenance import (
    HowToRepeat,
    alerts_of,
    facts_of,
    how_to_repeat,
    methods_table,
    places_table,
    session_tables,
    study_as_asked,
)
from iolab.report.runs import RunPart, checks_note, checks_table, run_parts, runs_note
from iolab.report.sections import sections, workload_charts
from iolab.report.table import Table, badge, html
from iolab.report.user_text import UserText, html_of

MAX_FAILURES: Final = 12
"""Failed runs told one by one; the results table has them all."""


@dataclass(frozen=True, slots=True)
class ReportPage:
    """Everything that the template prints.

    The brief itself are `answer`, `workloads`, `sections`, hardware and method; all else is its
    appendix, `backing` the sections of that.
    """

    facts: tuple[tuple[str, str], ...]
    alerts: tuple[str, ...]
    answer: Answer
    topology: Topology | None
    gains: tuple[tuple[Table, str], ...]
    findings: tuple[LinkedSentence, ...]
    findings_note: str
    objections: tuple[Objection, ...]
    failures: tuple[Result, ...]
    more_failures: str
    colours: tuple[tuple[str, str], ...]
    workloads: tuple[ChartGroup, ...]
    chart_notes: str
    sections: tuple[ReportSection, ...]
    backing: tuple[ReportSection, ...]
    results: tuple[Table, ...]
    runs: tuple[RunPart, ...]
    runs_note: str
    configurations: tuple[Table, ...]
    hardware: Table
    guests: tuple[Table, ...]
    hosts: tuple[tuple[str, tuple[Table, ...]], ...]
    method: Table
    jobs: tuple[Table, ...]
    published: PublishedTables | None
    sessions: tuple[Table, ...]
    places: Table | None
    how_to_repeat: tuple[HowToRepeat, ...]

    @property
    def contents(self) -> Iterator[tuple[str, str, bool]]:
        """Anchor and title of each part, and whether it is one of the appendix."""
        yield "answer", "Answer", False
        if self.sessions:
            yield "sessions", "Sessions", False
        if self.workloads:
            yield "charts", "Load and latency", False
        yield from ((section.anchor, section.title, False) for section in self.sections)
        yield "configuration", "Test configuration", False
        yield "method", "Method", False
        if self.findings:
            yield "findings", "Key findings", True
        yield "know", "All caveats", True
        if self.gains:
            yield "gains", "Gains", True
        yield from ((section.anchor, section.title, True) for section in self.backing)
        if self.published:
            yield "published", "Published elsewhere", True
        yield "results", "Every run", True
        if self.runs:
            yield "runs", "Runs in detail", True
        yield "hosts", "Hosts and workloads", True
        yield "repeat", "How to repeat it", True

    @property
    def groups(self) -> Iterator[ChartGroup]:
        """Every group of charts, of the brief and its appendix."""
        yield from self.workloads
        for section in (*self.sections, *self.backing):
            yield from section.groups


def make_page(brief: Brief) -> ReportPage:
    """The brief arranged; pure, and the same for the same brief."""
    kinds = brief.kinds.within(brief.study)
    failures = tuple(r for r in brief.results if r.status is not RunStatus.DONE)
    workloads, notes = shared_notes(workload_charts(brief))
    sentences, doubt = doubt_of_all(linked_sentences(brief))
    every_section = sections(brief)
    in_brief = tuple(section for section in every_section if not section.in_appendix)
    backing = (
        *further_parts(workloads, in_brief),
        *(section for section in every_section if section.in_appendix),
    )
    gains = tuple(gain for kind in kinds for gain in kind.gains(brief))
    caveats = objections(brief.results, names_among_several(brief.study))
    bests = next((section for section in every_section if section.anchor == MAXIMA), None)
    hidden = len(failures) - MAX_FAILURES
    more = f"{count(hidden, 'more run')} failed or was interrupted." if hidden > 0 else ""
    colours = tuple((look.legend, look.token.css) for look in brief.looks.values())
    several = len(brief.study.configurations) > 1
    study = study_as_asked(brief)
    return ReportPage(
        facts=facts_of(brief),
        alerts=alerts_of(brief),
        answer=answer(brief, brief.kinds.best_figures(brief), tally(brief.results), caveats, bests),
        topology=topology(brief),
        gains=gains,
        findings=sentences,
        findings_note=doubt,
        objections=caveats,
        failures=failures[:MAX_FAILURES],
        more_failures=more,
        colours=colours if several else (),
        workloads=workloads,
        chart_notes=notes,
        sections=in_brief,
        backing=backing,
        results=_results(brief),
        runs=run_parts(brief, (link for sentence in sentences for link, _ in sentence.links)),
        runs_note=runs_note(brief),
        configurations=configuration_tables(brief.study.configurations),
        hardware=hardware_table(brief.facts),
        guests=brief.kinds.hosts.tables(brief),
        hosts=_hosts(brief),
        method=methods_table(brief),
        jobs=tuple(table for kind in kinds for table in kind.job_tables(brief, study)),
        published=brief.published,
        sessions=session_tables(brief.sessions),
        places=places_table(brief),
        how_to_repeat=how_to_repeat(brief),
    )


def _results(brief: Brief) -> tuple[Table, ...]:
    """Every run, a table for each kind of load."""
    by_kind = brief.kinds.by_kind(brief.results)
    return tuple(
        kind.result_table(brief.study, own, brief.anchors) for kind, own in by_kind.items()
    )


def _hosts(brief: Brief) -> tuple[tuple[str, tuple[Table, ...]], ...]:
    """The tables of each kind of host under the names of those that are of it."""
    return tuple(
        (listing(names, 8), (host_table(facts), disks_table(names, facts), nics_table(facts)))
        for names, facts in same_hosts(brief.facts)
    )


def shared_notes(groups: Sequence[ChartGroup]) -> tuple[tuple[ChartGroup, ...], str]:
    """The groups without what the notes of several charts say alike, and that once for all.

    Why figures have no interval is said of all on the first page.
    """
    sentences = [_SENTENCES.split(figure.note) for group in groups for figure in group.figures]
    counted = Counter(
        sentence for note in sentences for sentence in dict.fromkeys(note) if sentence
    )
    few = {sentence for sentence in counted if sentence.startswith(NO_INTERVAL)}
    shared = [
        sentence for sentence, number in counted.items() if number > 1 and sentence not in few
    ]
    dropped = {*shared, *few}

    def own(figure: Figure) -> Figure:
        kept = (sentence for sentence in _SENTENCES.split(figure.note) if sentence not in dropped)
        return replace(figure, note=" ".join(kept))

    stripped = tuple(replace(group, figures=tuple(map(own, group.figures))) for group in groups)
    return stripped, " ".join(shared)


_SENTENCES: Final = re.compile(r"(?<=\.) (?=[A-Z0-9])")

FURTHER: Final = "further"


def further_parts(
    workloads: Sequence[ChartGroup], sections: Sequence[ReportSection]
) -> Iterator[ReportSection]:
    """What backs the charts of the brief: their other charts and tables, as one section."""
    groups = (*workloads, *(group for section in sections for group in section.groups))
    further = tuple(
        replace(group, table=None, note="", figures=group.further, further=())
        for group in groups
        if group.further or any(table.rows for table, _ in group.more)
    )
    if further:
        shared, notes = shared_notes(further)
        yield ReportSection(FURTHER, "More of each workload", notes, shared)


def numbers_of(figures: Sequence[Figure]) -> list[Table]:
    """The tables behind figures that stand together, without those that others hold."""
    tables = list(dict.fromkeys(figure.table for figure in figures))
    heads = {table: {column.title for column in table.columns} for table in tables}
    return [table for table in tables if not any(heads[table] < heads[other] for other in tables)]


_HERE: Final = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class DrawnFigure:
    """A figure, its SVG, and as JSON what its marks stand for (empty for nothing)."""

    figure: Figure
    svg: Markup
    marks: Markup


def render_html(brief: Brief) -> str:
    """The page; the same brief gives the same bytes."""
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
        draw=_drawn,
        findings_first=FINDINGS_FIRST,
        own=_user_markup(brief.words),
        run_anchors=frozenset(part.anchor for part in page.runs),
        numbers_of=numbers_of,
    )


@dataclass(frozen=True, slots=True)
class _UserMarkup:
    """The user's words as the template prints them; `logo` is an address that holds it all."""

    introduction: Markup
    conclusion: Markup
    logo: str


def _user_markup(words: UserText) -> _UserMarkup:
    held = base64.b64encode(words.logo).decode()
    return _UserMarkup(
        Markup(html_of(words.introduction)),  # noqa: S704 - Markdown without HTML
        Markup(html_of(words.conclusion)),  # noqa: S704 - the same
        f"data:image/{words.kind};base64,{held}" if held else "",
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


def _drawn(figures: Iterable[Figure]) -> list[DrawnFigure]:
    """The figures with their SVG, in their order."""
    pairs = ((figure, draw(figure)) for figure in figures)
    # What is foreign in either was escaped where it was written.
    return [DrawnFigure(figure, Markup(svg.svg), Markup(svg.marks)) for figure, svg in pairs]  # noqa: S704


def figures_of(page: ReportPage) -> Iterator[Figure]:
    """Every figure of the page."""
    yield from [page.answer.chart] if page.answer.chart else ()
    for group in page.groups:
        yield from group.figures
    for run in page.runs:
        yield from run.figures


@cache
def _environment() -> Environment:
    environment = template_engine()
    environment.globals["quote"] = shlex.join
    return environment


class _Compiled(FileSystemBytecodeCache):
    """Compiled templates, kept beside them as Python keeps modules, where it may write there."""

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a template that was compiled."""
        if not sys.dont_write_bytecode:
            with suppress(OSError):
                super().dump_bytecode(bucket)


def _compiled_templates() -> _Compiled:
    folder = _HERE / "templates" / "__pycache__"
    with suppress(OSError):
        folder.mkdir(exist_ok=True)
    return _Compiled(str(folder))


def template_engine(*folders: Path) -> Environment:
    """Templates of these folders, then the report's, that print foreign text as nothing but text.

    It is escaped after its unseen characters were written out.
    """
    environment = Environment(
        loader=FileSystemLoader([*folders, _HERE / "templates"]),
        bytecode_cache=_compiled_templates(),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_final,
    )
    # What a page leads to of runs: nothing, where it does not tell of them one by one.
    environment.globals.update(
        run_anchors=frozenset(), html_table=_html_table, html_badge=_html_badge
    )
    environment.globals.update(
        mark=mark,
        run_name=run_name,
        whose_run=whose_run,
        where=where,
        checks_note=checks_note,
        checks_table=checks_table,
    )
    return environment


def _html_table(contents: Table, anchors: frozenset[str], **look: bool) -> Markup:
    return Markup(html(contents, anchors, **look))  # noqa: S704 - it escapes what is foreign


def _html_badge(level: Level, anchor: str | None) -> Markup:
    return Markup(badge(level, anchor))  # noqa: S704 - the same


def _final(value: object) -> object:
    """What a template prints: foreign text with its unseen characters written out."""
    if isinstance(value, Markup):
        return value
    return clean(value) if isinstance(value, str) else value
