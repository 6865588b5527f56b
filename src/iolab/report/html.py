"""The report as one HTML file: whole without its script, no network, nothing but itself.

A Content-Security-Policy in the page forbids everything but its one style sheet and its one script,
named by their digests; the script makes charts answer to pointer and keys.
All text is escaped by the template engine, after characters that cannot be seen were written out.
"""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from iolab.model.metric import Level
from iolab.report.brief import Brief
from iolab.report.figures.frame import Figure
from iolab.report.key_value.gains import GAIN_NOTE, LARGEST_NOTE
from iolab.report.objections import names_among_several, run_name, where, whose_run
from iolab.report.page import Page, make_page
from iolab.report.palette import SERIES, declarations
from iolab.report.render import draw_tied, predraw
from iolab.report.said import FIRST as SAID_FIRST
from iolab.report.tables import evidence_text
from iolab.report.wording import clean, mark

ROWS_MOST: Final = 3000
"""Rows of a table on a page: browsers take seconds for more. What is left out is said there."""

_HERE: Final = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure, its SVG, and as JSON what its marks stand for (empty for nothing)."""

    figure: Figure
    svg: Markup
    marks: Markup


def render_html(brief: Brief) -> str:
    """The page; the same brief gives the same bytes. ReportError if a chart cannot be drawn."""
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
        draw=_Pen(page.colours, predraw(_figures(page))),
        gain_notes=f"{GAIN_NOTE} {LARGEST_NOTE}",
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
