"""The only door to vl_convert: a Vega-Lite spec becomes SVG or PDF, and many at once in parallel.

The library draws one chart after the other in a process, whatever threads ask for. So many charts
are drawn by processes of their own, this very module, which read specs from their stdin and
end with it: a report that is killed leaves none of them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import IO, Final, TypeVar
from xml.etree import ElementTree as ET

from iolab.errors import ReportError
from iolab.report.charts.chart import Figure, Spec
from iolab.report.charts.points import TIES, tie
from iolab.report.numbers import clean, few_digits
from iolab.report.palette import TOKENS

MANY: Final = 8
"""Charts for each process that are worth its start, which takes as long as ten of them."""

PROCESSES_MAX: Final = 4
"""Each takes 150 MB; more gain little beside what the report does itself."""


Made = TypeVar("Made", str, bytes)

PNG_SCALE: Final = 3.0
"""Pixels a unit: sharp at the width of a page."""


def svg_of(spec: str) -> str:
    """The raw SVG of a spec in JSON, which loads nothing from elsewhere. ValueError if it fails."""
    import vl_convert  # takes 30 ms, and only a report needs it

    return vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])


def pdf_of(spec: str) -> bytes:
    """The same as a PDF of one page."""
    import vl_convert

    return vl_convert.vegalite_to_pdf(spec, allowed_base_urls=[])


def png_of(spec: str) -> bytes:
    """The same as a picture on white."""
    import vl_convert

    white = json.dumps({**json.loads(spec), "background": "white"})
    return vl_convert.vegalite_to_png(white, scale=PNG_SCALE, allowed_base_urls=[])


def svgs_of(specs: Sequence[str], processes: int | None = None) -> dict[str, str]:
    """SVG by spec of those that could be drawn in parallel; the others are for `svg_of`.

    `processes` is how many (by default as many as this process has cores); with fewer than two, or
    few specs, none is drawn here.
    """
    wanted = deque(dict.fromkeys(specs))
    cores = len(os.sched_getaffinity(0)) if processes is None else processes
    count = min(cores, PROCESSES_MAX, len(wanted) // MANY)
    if count < 2:
        return {}
    found: dict[str, str] = {}
    with ThreadPoolExecutor(count) as threads:
        for _ in range(count):
            threads.submit(_draw, wanted, found)
    return found


def _draw(wanted: deque[str], found: dict[str, str]) -> None:
    """Let one process draw until nothing is wanted, or until it ends by itself."""
    with (
        suppress(OSError),
        subprocess.Popen(
            [sys.executable, "-m", "iolab.report.render"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        ) as process,
    ):
        assert process.stdin is not None  # noqa: S101 - both were asked for above
        assert process.stdout is not None  # noqa: S101
        try:
            while wanted:
                try:
                    spec = wanted.popleft()
                except IndexError:  # another took the last
                    return
                process.stdin.write(spec + "\n")
                process.stdin.flush()
                answer = process.stdout.readline()
                if not answer:
                    return
                if drawn := json.loads(answer):
                    found[spec] = drawn
        finally:
            process.kill()


def serve(specs: IO[str], drawn: IO[str]) -> None:
    """Draw a spec a line until there is none; a line of JSON for each, null for one that fails."""
    for line in specs:
        try:
            svg = svg_of(line)
        except ValueError:
            svg = None
        drawn.write(json.dumps(svg) + "\n")
        drawn.flush()


if __name__ == "__main__":
    serve(sys.stdin, sys.stdout)


_STAND_INS: Final = {token.stand_in: token.css for token in TOKENS}
_KEPT: Final = frozenset(
    {"d", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "dx", "dy", "width", "height", "id"}
    | {"fill", "fill-opacity", "opacity", "clip-path", "transform"}
    | {"stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin"}
    | {"stroke-opacity", "text-anchor", "font-size", "font-weight"}
    | TIES
)
"""What draws, and ties to values; the rest is dropped, `style` and `font-family` among it."""
_DRAWN: Final = frozenset({"g", "path", "line", "rect", "text", "tspan", "circle", "clipPath"})
_REFERENCE: Final = re.compile(r"url\(#([^)]+)\)")
_NUMBER: Final = re.compile(r"-?\d+\.\d{2,}(?:e-?\d+)?")
_ROUNDED: Final = dict.fromkeys(("d", "transform", "x2", "y2"), 1) | dict.fromkeys(
    ("opacity", "fill-opacity", "stroke-opacity"), 2
)
"""Digits after the point of what Vega computes: a tenth of a unit is less than a pixel."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart as an SVG element, and as JSON what its marks stand for (empty for nothing)."""

    svg: str
    marks: str


def draw(figure: Figure, name: str, cache: dict[str, str] | None = None) -> str:
    """The figure as an SVG element alone; see `draw_tied`."""
    return draw_tied(figure, name, cache).svg


def draw_tied(
    figure: Figure,
    name: str,
    cache: dict[str, str] | None = None,
    names: Mapping[str, str] | None = None,
) -> Drawing:
    """The figure for an HTML page; `name` makes its ids unique on the page.

    A `cache` (spec to raw SVG) makes equal specs cost one drawing. `names` are the configurations'
    titles by the token of their colour, where there are several. ReportError if it fails.
    """
    drawn = _drawn(figure.spec, figure.title, {} if cache is None else cache)
    try:
        root = ET.fromstring(drawn)  # noqa: S314 - drawn here, from specs with cleaned text
    except ET.ParseError as error:
        raise ReportError(
            f"The chart '{figure.title}' came out as SVG that cannot be read: {error}.",
            "Report this with the session directory.",
        ) from error
    marks = tie(root, figure, names or {})
    out: list[str] = [
        f'<svg class="chart" role="img" viewBox="0 0 {figure.width} {figure.height}" '
        f'aria-label="{escape(clean(figure.alt))}">'
    ]
    for child in root:
        _write(child, name, out)
    out.append("</svg>")
    return Drawing("".join(out), marks)


def figure_pdf(figure: Figure) -> bytes:
    """The figure as a PDF of one page, in the colours of light paper. ReportError if it fails."""
    return _on_paper(figure, pdf_of)


def figure_svg(figure: Figure) -> str:
    """The same as an SVG document."""
    return _on_paper(figure, svg_of)


def figure_png(figure: Figure) -> bytes:
    """The same as a picture, of `PNG_SCALE` pixels a unit, on white."""
    return _on_paper(figure, png_of)


def _on_paper(figure: Figure, made: Callable[[str], Made]) -> Made:
    """What `made` draws of the figure in the colours of light paper."""
    text = _text(figure.spec)
    for token in TOKENS:
        text = text.replace(token.stand_in, token.light)
    try:
        return made(text)
    except ValueError as error:
        raise _undrawn(figure.title, error) from error


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


def _undrawn(title: str, error: ValueError) -> ReportError:
    return ReportError(
        f"The chart '{title}' cannot be drawn: {str(error).splitlines()[0]}.",
        "Report this with the session directory.",
    )


def predraw(figures: Iterable[Figure], processes: int | None = None) -> dict[str, str]:
    """A cache for `draw_tied` with as many of these figures as are drawn faster together."""
    return svgs_of([_text(figure.spec) for figure in figures], processes)


def _drawn(spec: Spec, title: str, cache: dict[str, str]) -> str:
    """The raw SVG of a spec."""
    text = _text(spec)
    if text not in cache:
        try:
            cache[text] = svg_of(text)
        except ValueError as error:
            raise _undrawn(title, error) from error
    return cache[text]


def _text(spec: Spec) -> str:
    return json.dumps(few_digits(spec), sort_keys=True, allow_nan=False)


def _write(element: ET.Element, name: str, out: list[str]) -> None:
    """Append the element and what it holds, without what draws nothing."""
    tag = element.tag.rpartition("}")[2]
    if tag not in _DRAWN and tag != "defs":
        return
    if element.get("display") == "none" or (tag == "path" and _is_empty(element)):
        return
    start = len(out)
    out.append(f"<{tag}{_attributes(element.items(), name)}>")
    if element.text and tag in {"text", "tspan"}:
        out.append(escape(element.text, quote=False))
    inside = len(out)
    for child in element:
        _write(child, name, out)
    if tag in {"g", "defs"} and len(out) == inside:
        del out[start:]
        return
    out.append(f"</{tag}>")


def _is_empty(path: ET.Element) -> bool:
    """Whether a path has no outline, or Vega's background without fill and stroke."""
    painted = path.get("fill", "none") != "none" or path.get("stroke", "none") != "none"
    return not path.get("d") or (path.get("class") == "background" and not painted)


def _attributes(items: Iterable[tuple[str, str]], name: str) -> str:
    """The attributes that draw, recoloured, with this drawing's ids."""
    out = []
    for key, value in items:
        if key not in _KEPT:
            continue
        shown = _STAND_INS.get(value, value)
        if key == "id":
            shown = f"{name}-{value}"
        elif "url(" in value:
            shown = _REFERENCE.sub(rf"url(#{name}-\1)", value)
        elif key in _ROUNDED:
            shown = _short(value, _ROUNDED[key])
        out.append(f' {key}="{escape(shown)}"')
    return "".join(out)


def _short(value: str, digits: int) -> str:
    """The text with its numbers cut to so many digits after the point, none of them a last zero."""
    return _NUMBER.sub(lambda match: f"{round(float(match[0]), digits):g}", value)
