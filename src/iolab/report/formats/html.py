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
from functools import cache
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup
from msgspec.structs import replace

from iolab.core.metric import Level, Result
from iolab.core.run import RunStatus
from iolab.record import Record
from iolab.report.answer import Answer, build_answer
from iolab.report.best import count_verdicts
from iolab.report.brief import Brief, PublishedTables
from iolab.report.charts.chart import NO_INTERVAL, ChartGroup, Figure, ReportSection
from iolab.report.charts.palette import css_declarations
from iolab.report.charts.svg import draw_inline_svg
from iolab.report.charts.topology import TopologyDrawing, topology_drawing
from iolab.report.hardware import (
    configuration_tables,
    disks_table,
    group_identical_hosts,
    hardware_table,
    host_table,
    nics_table,
)
from iolab.report.maxima import ANCHOR as MAXIMA
from iolab.report.narrative import SENTENCES_SHOWN as FINDINGS_FIRST
from iolab.report.narrative import LinkedSentence, factor_out_common_doubt, linked_sentences
from iolab.report.numbers import verdict_mark
from iolab.report.phrases import (
    Objection,
    merge_objections,
    objection_runs_text,
    result_run_text,
    run_with_configuration_text,
    titles_if_several,
)
from iolab.report.provenance import (
    HowToRepeat,
    how_to_repeat,
    run_folders_table,
    session_alerts,
    session_fact_rows,
    session_methods_table,
    session_tables,
    study_with_workload_versions,
)
from iolab.report.runs import (
    RunSection,
    checks_note,
    objections_table,
    run_charts_note,
    run_sections,
)
from iolab.report.sections import all_workload_charts, report_sections
from iolab.report.table import Table, table_html, verdict_badge_html
from iolab.report.user_text import UserText, markdown_to_html
from iolab.text import counted_noun, escape_invisible, list_text

MAX_FAILURES: Final = 12
"""Failed runs told one by one; the results table has them all."""

_SENTENCES: Final = re.compile(r"(?<=\.) (?=[A-Z0-9])")
FURTHER: Final = "further"


class ReportPage(Record):
    """Everything that the template prints.

    The brief itself are `build_answer`, `workload_charts`, `report_sections`, hardware and method;
    all else is its appendix, `appendix_sections` the sections of that.
    """

    facts: tuple[tuple[str, str], ...]
    alerts: tuple[str, ...]
    answer: Answer
    topology: TopologyDrawing | None
    gain_tables: tuple[tuple[Table, str], ...]
    findings: tuple[LinkedSentence, ...]
    findings_note: str
    objections: tuple[Objection, ...]
    failures: tuple[Result, ...]
    hidden_failures_text: str
    configuration_colours: tuple[tuple[str, str], ...]
    workload_charts: tuple[ChartGroup, ...]
    chart_notes: str
    sections: tuple[ReportSection, ...]
    appendix_sections: tuple[ReportSection, ...]
    result_tables: tuple[Table, ...]
    runs: tuple[RunSection, ...]
    runs_note: str
    configuration_tables: tuple[Table, ...]
    hardware_table: Table
    guest_tables: tuple[Table, ...]
    host_tables_by_names: tuple[tuple[str, tuple[Table, ...]], ...]
    method_table: Table
    job_tables: tuple[Table, ...]
    published: PublishedTables | None
    session_tables: tuple[Table, ...]
    run_folders: Table | None
    how_to_repeat: tuple[HowToRepeat, ...]

    @property
    def table_of_contents(self) -> Iterator[tuple[str, str, bool]]:
        """Anchor and title of each part, and whether it is one of the appendix."""
        yield "answer", "Answer", False
        if self.session_tables:
            yield "sessions", "Sessions", False
        if self.workload_charts:
            yield "charts", "Load and latency", False
        yield from ((section.anchor, section.title, False) for section in self.sections)
        yield "configuration", "Test configuration", False
        yield "method", "Method", False
        if self.findings:
            yield "findings", "Key findings", True
        yield "know", "All caveats", True
        if self.gain_tables:
            yield "gains", "Gains", True
        yield from ((section.anchor, section.title, True) for section in self.appendix_sections)
        if self.published:
            yield "published", "Published elsewhere", True
        yield "results", "Every run", True
        if self.runs:
            yield "runs", "Runs in detail", True
        yield "hosts", "Hosts and workloads", True
        yield "repeat", "How to repeat it", True

    @property
    def chart_groups(self) -> Iterator[ChartGroup]:
        """Every group of charts, of the brief and its appendix."""
        yield from self.workload_charts
        for section in (*self.sections, *self.appendix_sections):
            yield from section.groups


def build_report_page(brief: Brief) -> ReportPage:
    """The brief arranged; pure, and the same for the same brief."""
    kinds = brief.kinds.reports_of_study(brief.study)
    failures = tuple(r for r in brief.results if r.status is not RunStatus.DONE)
    workloads, notes = factor_out_shared_notes(all_workload_charts(brief))
    sentences, doubt = factor_out_common_doubt(linked_sentences(brief))
    every_section = report_sections(brief)
    in_brief = tuple(section for section in every_section if not section.in_appendix)
    backing = (
        *appendix_chart_sections(workloads, in_brief),
        *(section for section in every_section if section.in_appendix),
    )
    gains = tuple(gain for kind in kinds for gain in kind.gain_tables(brief))
    caveats = merge_objections(brief.results, titles_if_several(brief.study))
    bests = next((section for section in every_section if section.anchor == MAXIMA), None)
    hidden = len(failures) - MAX_FAILURES
    more = f"{counted_noun(hidden, 'more run')} failed or was interrupted." if hidden > 0 else ""
    colours = tuple((style.legend_text, style.token.css) for style in brief.series_styles.values())
    several = len(brief.study.configurations) > 1
    study = study_with_workload_versions(brief)
    return ReportPage(
        facts=session_fact_rows(brief),
        alerts=session_alerts(brief),
        answer=build_answer(
            brief, brief.kinds.best_figures(brief), count_verdicts(brief.results), caveats, bests
        ),
        topology=topology_drawing(brief),
        gain_tables=gains,
        findings=sentences,
        findings_note=doubt,
        objections=caveats,
        failures=failures[:MAX_FAILURES],
        hidden_failures_text=more,
        configuration_colours=colours if several else (),
        workload_charts=workloads,
        chart_notes=notes,
        sections=in_brief,
        appendix_sections=backing,
        result_tables=_result_tables(brief),
        runs=run_sections(brief, (link for sentence in sentences for link, _ in sentence.links)),
        runs_note=run_charts_note(brief),
        configuration_tables=configuration_tables(brief.study.configurations),
        hardware_table=hardware_table(brief.facts),
        guest_tables=brief.kinds.booted_hosts.host_tables(brief),
        host_tables_by_names=_host_tables_by_names(brief),
        method_table=session_methods_table(brief),
        job_tables=tuple(table for kind in kinds for table in kind.job_tables(brief, study)),
        published=brief.published,
        session_tables=session_tables(brief.sessions),
        run_folders=run_folders_table(brief),
        how_to_repeat=how_to_repeat(brief),
    )


def _result_tables(brief: Brief) -> tuple[Table, ...]:
    """Every run, a table for each kind of load."""
    by_kind = brief.kinds.results_by_report(brief.results)
    return tuple(
        kind.result_table(brief.study, own, brief.run_anchors) for kind, own in by_kind.items()
    )


def _host_tables_by_names(brief: Brief) -> tuple[tuple[str, tuple[Table, ...]], ...]:
    """The tables of each kind of host under the names of those that are of it."""
    return tuple(
        (
            list_text(names, 8),
            (host_table(facts), disks_table(names, facts), nics_table(facts)),
        )
        for names, facts in group_identical_hosts(brief.facts)
    )


def factor_out_shared_notes(groups: Sequence[ChartGroup]) -> tuple[tuple[ChartGroup, ...], str]:
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


def appendix_chart_sections(
    workloads: Sequence[ChartGroup], sections: Sequence[ReportSection]
) -> Iterator[ReportSection]:
    """What backs the charts of the brief: their other charts and tables, as one section."""
    groups = (*workloads, *(group for section in sections for group in section.groups))
    further = tuple(
        replace(group, table=None, note="", figures=group.appendix_figures, appendix_figures=())
        for group in groups
        if group.appendix_figures or any(table.rows for table, _ in group.detail_tables)
    )
    if further:
        shared, notes = factor_out_shared_notes(further)
        yield ReportSection(FURTHER, "More of each workload", notes, shared)


def distinct_figure_tables(figures: Sequence[Figure]) -> list[Table]:
    """The tables behind figures that stand together, without those that others hold."""
    tables = list(dict.fromkeys(figure.table for figure in figures))
    heads = {table: {column.title for column in table.columns} for table in tables}
    return [table for table in tables if not any(heads[table] < heads[other] for other in tables)]


_HERE: Final = Path(__file__).parent


class FigureWithSvg(Record):
    """A figure, its SVG, and as JSON what its marks stand for (empty for nothing)."""

    figure: Figure
    svg: Markup
    marks_json: Markup


def render_html(brief: Brief) -> str:
    """The page; the same brief gives the same bytes."""
    style, page = style_sheet(), build_report_page(brief)
    template = _page_environment().get_template("report.html.j2")
    return template.render(
        brief=brief,
        page=page,
        style=Markup(style),  # noqa: S704 - ours, and its digest stands in the policy
        script=Markup(page_script()),  # noqa: S704 - the same
        policy=content_security_policy(style, page_script()),
        levels={level.value: level for level in Level},
        names=titles_if_several(brief.study),
        draw=_draw_figures,
        findings_first=FINDINGS_FIRST,
        own=_user_markup(brief.user_text),
        run_anchors=frozenset(part.anchor for part in page.runs),
        numbers_of=distinct_figure_tables,
    )


class _UserMarkup(Record):
    """The user's words as the template prints them; `logo` is an address that holds it all."""

    introduction: Markup
    conclusion: Markup
    logo: str


def _user_markup(user_text: UserText) -> _UserMarkup:
    held = base64.b64encode(user_text.logo).decode()
    return _UserMarkup(
        Markup(markdown_to_html(user_text.introduction)),  # noqa: S704 - Markdown without HTML
        Markup(markdown_to_html(user_text.conclusion)),  # noqa: S704 - the same
        f"data:image/{user_text.logo_type};base64,{held}" if held else "",
    )


def style_sheet() -> str:
    """The page's CSS: the tokens for light, dark and print, then the rules."""
    light, dark = css_declarations(dark=False), css_declarations(dark=True)
    rules = (_HERE / "style.css").read_text(encoding="utf-8")
    return (
        f":root{{{light}}}"
        f"@media (prefers-color-scheme:dark){{:root{{{dark}}}}}"
        f"@media print{{:root{{{light}}}}}"
        f"\n{rules}"
    )


@cache
def page_script() -> str:
    """The page's script: it changes what is shown of the charts, and asks for nothing."""
    parts = sorted((_HERE / "script").glob("*.js"))
    body = "\n".join(part.read_text(encoding="utf-8") for part in parts)
    return f'"use strict";\n(() => {{\n{body}}})();\n'


def content_security_policy(style: str, script: str) -> str:
    """The Content-Security-Policy under which that style sheet and that script alone are used."""
    return (
        f"default-src 'none'; style-src '{csp_hash_source(style)}'; "
        f"script-src '{csp_hash_source(script)}'; img-src data:; base-uri 'none'; form-action "
        "'none'"
    )


def csp_hash_source(text: str) -> str:
    """What names a style sheet or a script in a Content-Security-Policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _draw_figures(figures: Iterable[Figure]) -> list[FigureWithSvg]:
    """The figures with their SVG, in their order."""
    pairs = ((figure, draw_inline_svg(figure)) for figure in figures)
    # What is foreign in either was escaped where it was written.
    return [FigureWithSvg(figure, Markup(svg.svg), Markup(svg.marks_json)) for figure, svg in pairs]  # noqa: S704


def page_figures(page: ReportPage) -> Iterator[Figure]:
    """Every figure of the page."""
    yield from [page.answer.chart] if page.answer.chart else ()
    for group in page.chart_groups:
        yield from group.figures
    for run in page.runs:
        yield from run.figures


@cache
def _page_environment() -> Environment:
    environment = template_engine()
    environment.globals["quote"] = shlex.join
    return environment


class _TemplateCache(FileSystemBytecodeCache):
    """Compiled templates, kept beside them as Python keeps modules, where it may write there."""

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a template that was compiled."""
        if not sys.dont_write_bytecode:
            with suppress(OSError):
                super().dump_bytecode(bucket)


def _template_cache() -> _TemplateCache:
    folder = _HERE / "templates" / "__pycache__"
    with suppress(OSError):
        folder.mkdir(exist_ok=True)
    return _TemplateCache(str(folder))


def template_engine(*folders: Path) -> Environment:
    """Templates of these folders, then the report's, that print foreign text as nothing but text.

    It is escaped after its unseen characters were written out.
    """
    environment = Environment(
        loader=FileSystemLoader([*folders, _HERE / "templates"]),
        bytecode_cache=_template_cache(),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_escape_invisible_if_text,
    )
    # What a page leads to of runs: nothing, where it does not tell of them one by one.
    environment.globals.update(
        run_anchors=frozenset(), html_table=_table_markup, html_badge=_verdict_badge_markup
    )
    environment.globals.update(
        mark=verdict_mark,
        run_name=result_run_text,
        whose_run=run_with_configuration_text,
        where=objection_runs_text,
        checks_note=checks_note,
        checks_table=objections_table,
    )
    return environment


def _table_markup(contents: Table, anchors: frozenset[str], **look: bool) -> Markup:
    return Markup(table_html(contents, anchors, **look))  # noqa: S704 - it escapes what is foreign


def _verdict_badge_markup(level: Level, anchor: str | None) -> Markup:
    return Markup(verdict_badge_html(level, anchor))  # noqa: S704 - the same


def _escape_invisible_if_text(value: object) -> object:
    """What a template prints: foreign text with its unseen characters written out."""
    if isinstance(value, Markup):
        return value
    return escape_invisible(value) if isinstance(value, str) else value
