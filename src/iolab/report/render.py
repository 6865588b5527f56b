"""The only doors to vl_convert, for charts as PDF and as pictures, and to typst, for pages."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from iolab.errors import ReportError
from iolab.report.charts.chart import Figure
from iolab.report.charts.svg import document

PNG_SCALE: Final = 3.0
"""Pixels a unit: sharp at the width of a page."""


def figure_pdf(figure: Figure) -> bytes:
    """The figure as a PDF of one page, in the colours of light paper."""
    import vl_convert  # takes 30 ms, and only this needs it

    return vl_convert.svg_to_pdf(document(figure))


def figure_png(figure: Figure) -> bytes:
    """The same as a picture, of `PNG_SCALE` pixels a unit, on white."""
    import vl_convert

    return vl_convert.svg_to_png(document(figure, background="white"), scale=PNG_SCALE)


def typeset(template: str, document: object, files: Mapping[str, bytes]) -> bytes:
    """A PDF of a typst template that reads `document` as JSON; `files` lie beside it.

    Fonts are those that the typesetter brings, so that the pages are the same on every machine, and
    no package is fetched. ReportError if it cannot be set.
    """
    import typst  # takes 50 ms, and only a PDF needs it

    with tempfile.TemporaryDirectory(prefix="iolab-brief-") as folder:
        main = Path(folder) / "brief.typ"
        main.write_text(template, encoding="utf-8")
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        told = json.dumps(document, sort_keys=True, allow_nan=False)
        try:
            made = typst.compile(
                str(main),
                root=folder,
                format="pdf",
                ignore_system_fonts=True,
                sys_inputs={"doc": told},
                timestamp=0,
            )
        except (RuntimeError, ValueError) as error:
            raise ReportError(
                f"The report cannot be typeset: {str(error).splitlines()[0]}.",
                "Report this with the session directory.",
            ) from error
    if not isinstance(made, bytes):
        raise ReportError("The report came out as several files.", "Report this as a bug.")
    return made
