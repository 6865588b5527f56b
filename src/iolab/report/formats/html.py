"""A brief as one page of HTML: its blocks by sections, then an appendix that opens."""

from __future__ import annotations

import base64
import hashlib
import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup

from iolab.core.metric import VerdictLevel
from iolab.record import Record
from iolab.report.blocks import (
    Block,
    ChartBlock,
    FastFactsBlock,
    Heading,
    Paragraph,
    ParagraphStyle,
    SideBySideBlocks,
    TopologyBlock,
    UserTextBlock,
    brief_blocks,
)
from iolab.report.brief import Brief
from iolab.report.charts.chart import Chart
from iolab.report.charts.palette import css_declarations
from iolab.report.charts.svg import draw_inline_svg
from iolab.report.numbers import text_with_no_break_units, verdict_mark
from iolab.report.page import build_report_page, distinct_chart_tables
from iolab.report.phrases import (
    objection_runs_text,
    result_run_name_text,
    run_with_configuration_text,
    title_by_configuration_if_several,
)
from iolab.report.runs import objections_table, passed_checks_text
from iolab.report.table import Table, table_html, verdict_badge_html
from iolab.report.user_text import UserText, markdown_to_html
from iolab.text import escape_invisible

_HERE: Final = Path(__file__).parent

FIRST_PAGE_ANCHORS: Final = frozenset(
    {"answer", "matrix", "scenario", "limits", "caveats", "findings", "conclusion", "sessions"}
)
"""Parts that a narrow screen shows open; the others open by their headings."""

_BLOCK_KINDS: Final = {
    Heading: "heading",
    Paragraph: "paragraph",
    tuple: "list",
    UserTextBlock: "own",
    Table: "table",
    ChartBlock: "figures",
    TopologyBlock: "drawing",
    FastFactsBlock: "facts",
    SideBySideBlocks: "columns",
}
"""What the template calls the blocks of a brief."""


class RenderedChart(Record):
    """A figure, its SVG, and as JSON what its marks stand for (empty for nothing)."""

    chart: Chart
    svg: Markup
    marks_json: Markup


class PageSection(Record):
    """A part of the page under a heading; paragraphs of one list stand together."""

    anchor: str
    title: str
    blocks: tuple[Block | tuple[Paragraph, ...], ...]


def page_sections(blocks: Iterable[Block]) -> tuple[PageSection, ...]:
    """The blocks of a brief by their headings; those before the first have none."""
    sections: list[tuple[str, str, list[Block]]] = [("", "", [])]
    for block in blocks:
        if isinstance(block, SideBySideBlocks) and not all(map(_is_alert, sections[-1][2])):
            sections.append(("", "", [block]))
        elif isinstance(block, Heading) and block.level == 1:
            sections.append((block.anchor, block.text, []))
        else:
            sections[-1][2].append(block)
    return tuple(
        PageSection(anchor, title, tuple(_group_list_items(own)))
        for anchor, title, own in sections
        if own
    )


def _is_alert(block: Block) -> bool:
    return isinstance(block, Paragraph) and block.style is ParagraphStyle.ALERT


def _group_list_items(blocks: Iterable[Block]) -> Iterator[Block | tuple[Paragraph, ...]]:
    """The blocks with items that follow each other as one."""
    for is_list, own in groupby(
        blocks, lambda block: isinstance(block, Paragraph) and block.style is ParagraphStyle.ITEM
    ):
        if is_list:
            yield tuple(block for block in own if isinstance(block, Paragraph))
        else:
            yield from own


def render_html(brief: Brief) -> str:
    """The page; the same brief gives the same bytes."""
    style, page = style_sheet(), build_report_page(brief)
    template = _page_environment().get_template("report.html.j2")
    colours = tuple((style.legend_text, style.color.css) for style in brief.series_styles.values())
    return template.render(
        brief=brief,
        page=page,
        sections=page_sections(brief_blocks(brief, page)),
        colours=colours if len(colours) > 1 else (),
        style=Markup(style),  # noqa: S704 - ours, and its digest stands in the policy
        script=Markup(page_script()),  # noqa: S704 - the same
        policy=content_security_policy(style, page_script()),
        levels={level.value: level for level in VerdictLevel},
        names=title_by_configuration_if_several(brief.study),
        draw=_draw_charts,
        logo=_logo_data_uri(brief.user_text),
        run_anchors=frozenset(part.anchor for part in page.runs),
        numbers_of=distinct_chart_tables,
        first_page_anchors=FIRST_PAGE_ANCHORS,
    )


def _logo_data_uri(user_text: UserText) -> str:
    """An address that holds the whole picture; empty for none."""
    held = base64.b64encode(user_text.logo).decode()
    return f"data:image/{user_text.logo_type};base64,{held}" if held else ""


def style_sheet() -> str:
    """The page's CSS: the tokens for light, dark and print, then the rules."""
    light, dark = css_declarations(is_dark=False), css_declarations(is_dark=True)
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
        f"default-src 'none'; style-src '{csp_hash_without_quotes(style)}'; "
        f"script-src '{csp_hash_without_quotes(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def csp_hash_without_quotes(text: str) -> str:
    """What names a style sheet or a script in a Content-Security-Policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _draw_charts(charts: Iterable[Chart]) -> list[RenderedChart]:
    """The figures with their SVG, in their order."""
    pairs = ((chart, draw_inline_svg(chart)) for chart in charts)
    # What is foreign in either was escaped where it was written.
    return [
        RenderedChart(chart, Markup(svg.svg), Markup(svg.marks_json))  # noqa: S704
        for chart, svg in pairs
    ]


@cache
def _page_environment() -> Environment:
    environment = template_environment()
    environment.globals["quote"] = shlex.join
    return environment


class _TemplateCache(FileSystemBytecodeCache):
    """Compiled templates, kept beside them as Python keeps modules, where it may write there."""

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a template that was compiled."""
        if not sys.dont_write_bytecode:
            with suppress(OSError):
                super().dump_bytecode(bucket)


def _create_template_cache() -> _TemplateCache:
    folder = _HERE / "templates" / "__pycache__"
    with suppress(OSError):
        folder.mkdir(exist_ok=True)
    return _TemplateCache(str(folder))


def template_environment(*folders: Path) -> Environment:
    """Templates of these folders, then the report's, that print foreign text as nothing but text.

    It is escaped after its unseen characters were written out.
    """
    environment = Environment(
        loader=FileSystemLoader([*folders, _HERE / "templates"]),
        bytecode_cache=_create_template_cache(),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_escaped_template_value,
    )
    environment.filters["markdown"] = _markdown_markup
    environment.filters["unbroken"] = text_with_no_break_units
    environment.globals["kind"] = _block_kind_for_templates
    # What a page leads to of runs: nothing, where it does not tell of them one by one.
    environment.globals.update(
        run_anchors=frozenset(), html_table=_table_markup, html_badge=_verdict_badge_markup
    )
    environment.globals.update(
        mark=verdict_mark,
        run_name=result_run_name_text,
        whose_run=run_with_configuration_text,
        where=objection_runs_text,
        passed_checks_text=passed_checks_text,
        checks_table=objections_table,
    )
    return environment


def _markdown_markup(text: str) -> Markup:
    return Markup(markdown_to_html(text))  # noqa: S704 - Markdown without HTML


def _block_kind_for_templates(block: object) -> str:
    """What a template calls a block; of paragraphs in a list it gets a tuple."""
    return _BLOCK_KINDS[type(block)]


def _table_markup(
    table: Table, anchors: frozenset[str], *, has_caption: bool = False, label: str = ""
) -> Markup:
    return Markup(table_html(table, anchors, has_caption=has_caption, label=label))  # noqa: S704 - it escapes what is foreign


def _verdict_badge_markup(verdict_level: VerdictLevel, anchor: str | None) -> Markup:
    return Markup(verdict_badge_html(verdict_level, anchor))  # noqa: S704 - the same


def _escaped_template_value(value: object) -> object:
    """What a template prints: foreign text with its unseen characters written out."""
    if isinstance(value, Markup):
        return value
    return escape_invisible(value) if isinstance(value, str) else value
