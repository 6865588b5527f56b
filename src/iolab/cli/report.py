"""`iolab report`: the technical brief of a session, as HTML, PDF or Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from iolab.cli.options import AsJson, SessionDirectory

if TYPE_CHECKING:
    from iolab.analyse.against.printed import Against
    from iolab.report.brief import Brief
    from iolab.report.published import PublishedTables
    from iolab.store.reader import SessionReader

REPORT_FILE: Final = "report.html"
"""Where a session's report goes unless a form is named."""


class PaperName(StrEnum):
    """What `--paper` takes."""

    A4 = "a4"
    LETTER = "letter"


def report(
    session: SessionDirectory,
    *,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help="Write it here; SESSION/report.html where no form is named.",
        ),
    ] = None,
    pdf: Annotated[
        Path | None,
        typer.Option("--pdf", metavar="FILE", help="Write it as PDF, to be printed."),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option("--md", metavar="FILE", help="Write it as Markdown, without charts."),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="SET[:NAME]",
            help="Set the results beside what others published: a set that 'iolab reference' "
            "lists, or a file; with NAME, the figures of that one alone.",
        ),
    ] = None,
    paper: Annotated[
        PaperName, typer.Option("--paper", help="The paper of the PDF.")
    ] = PaperName.A4,
    as_json: AsJson = False,
) -> None:
    """Write the report of a session as one HTML file, as PDF, or as Markdown."""
    from iolab.cli.talk import result, result_json

    forms = {"html": html, "pdf": pdf, "md": markdown}
    wanted = {form: path for form, path in forms.items() if path is not None}
    if not wanted:
        wanted = {"html": session / REPORT_FILE}
    written = write_forms(session, wanted, paper, against)
    if as_json:
        # One form is told as it always was.
        told = written[0] if len(written) == 1 else list(written)
        result_json({"format": 1, "written": told})
    else:
        for path in written:
            result(path)


def write_report(session: Path) -> Path:
    """Build and write the report as HTML; where it went."""
    path = session / REPORT_FILE
    write_forms(session, {"html": path}, PaperName.A4)
    return path


def write_forms(
    session: Path, wanted: Mapping[str, Path], paper: PaperName, against: str | None = None
) -> tuple[str, ...]:
    """Build the report once, then write it in each form when all are made; where they went."""
    from dataclasses import replace

    from iolab.cli.files import replace_whole
    from iolab.report.brief import build_brief
    from iolab.store.reader import SessionReader

    beside = _against(against) if against else None
    reader = SessionReader(session)
    brief = replace(build_brief(reader, _published(reader)), against=beside)
    made = [(path, _rendered(brief, form, paper)) for form, path in wanted.items()]
    for path, content in made:
        replace_whole(path, content)
    return tuple(str(path) for path, _ in made)


def _rendered(brief: Brief, form: str, paper: PaperName) -> str | bytes:
    """The report in one form; what draws and typesets is loaded where it is wanted."""
    if form == "md":
        from iolab.report.markdown import render_markdown

        return render_markdown(brief)
    if form == "pdf":
        from iolab.report.pdf import Paper, render_pdf

        return render_pdf(brief, Paper(paper.value))
    from iolab.report.html import render_html

    return render_html(brief)


def _against(name: str) -> Against:
    """The published set that `SET` or `SET:NAME` means; UsageError when there is none."""
    from iolab.analyse.against.beside import owners
    from iolab.analyse.against.printed import Against, printed_figures
    from iolab.cli.catalogue import open_published
    from iolab.errors import UsageError
    from iolab.plan.wording import shown, suggestion

    place, mark, only = name.rpartition(":")
    if not mark or "/" in only:  # a path may have a colon in it
        place, only = name, ""
    published = open_published(place)
    figures = printed_figures(published)
    known = owners(figures)
    if not figures:
        raise UsageError(
            f"{shown(place)} has no figure that a study measures.",
            "Give a published set; 'iolab reference' lists them.",
        )
    if only and only not in known:
        raise UsageError(
            f"{shown(place)} has no figures of {shown(only)}.", suggestion(only, known, "names")
        )
    return Against(published, only)


def _published(reader: SessionReader) -> PublishedTables | None:
    """What others published of a study on key-value stores or of guests, to be read beside it."""
    from iolab.cli.catalogue import open_published, published_ids
    from iolab.report.guests.groups import of_guests
    from iolab.report.key_value.measures import key_workloads
    from iolab.report.published import published_tables

    study = reader.study
    told = key_workloads(study) or any(of_guests(one) for one in study.workloads)
    if not told or study.id not in published_ids():
        return None
    return published_tables(open_published(study.id))
