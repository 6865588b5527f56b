"""`iolab report`: the technical brief of a session as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from iolab.cli.options import AsJson, SessionDirectory

if TYPE_CHECKING:
    from iolab.report.published import Published
    from iolab.store.reader import SessionReader

REPORT_FILE: Final = "report.html"
"""Where a session's report goes unless a place is named."""


def report(
    session: SessionDirectory,
    *,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html", metavar="FILE", help="Write it here; SESSION/report.html by default."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the report of a session as one HTML file."""
    from iolab.cli.talk import result, result_json

    path = write_report(session, html)
    if as_json:
        result_json({"format": 1, "written": str(path)})
    else:
        result(str(path))


def write_report(session: Path, html: Path | None = None) -> Path:
    """Build and write the report; where it went."""
    from iolab.cli.files import replace_whole
    from iolab.report.brief import build_brief
    from iolab.report.html import render_html
    from iolab.store.reader import SessionReader

    path = html or session / REPORT_FILE
    reader = SessionReader(session)
    replace_whole(path, render_html(build_brief(reader, _published(reader))))
    return path


def _published(reader: SessionReader) -> Published | None:
    """What others published of a study on key-value stores, to be read beside its results."""
    from iolab.cli.catalogue import published_text
    from iolab.report.key_value.measures import key_workloads
    from iolab.report.published import read_published

    study = reader.study
    text = published_text(study.id) if key_workloads(study) else None
    return None if text is None else read_published(text)
