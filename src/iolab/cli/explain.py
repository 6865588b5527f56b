"""`iolab explain`: what a check means, from the pages that come with iolab."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from iolab.cli.options import AsJson

if TYPE_CHECKING:
    from rich.console import RenderableType

_PACKAGE: Final = Path(__file__).resolve().parents[1]
_PLACES: Final = (_PACKAGE / "_checks", _PACKAGE.parents[1] / "docs" / "reference" / "checks")
"""Where the wheel puts the pages, and where a checkout has them."""

NEAREST_MAX: Final = 3
"""Codes that are named for one that is none."""

PAGE_WIDTH: Final = 80
"""Lines of text that are longer are hard to read."""

_LINK: Final = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]*\)")
_HEADING: Final = re.compile(r"^(#{1,3}) (.+)$", re.MULTILINE)


def explain(
    code: Annotated[
        str | None,
        typer.Argument(metavar="[CODE]", help="A check's code; all are listed without."),
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Say what a check means, how it decides, and what to do about it."""
    from iolab.cli.output import result_json, result_screen

    pages = _pages()
    if code is None:
        titles = {name: _title(text) for name, text in pages.items()}
        if as_json:
            listed = [{"code": name, "title": title} for name, title in titles.items()]
            result_json({"format": 1, "checks": listed})
            return
        result_screen(_list(titles))
        return
    if code not in pages:
        raise _unknown(code, list(pages))
    if as_json:
        result_json({"format": 1, "code": code, "title": _title(pages[code]), "page": pages[code]})
        return
    result_screen(*_screen(pages[code]))


def _pages() -> dict[str, str]:
    """The page of every check, by its code."""
    from iolab.errors import StoreError

    for place in _PLACES:
        found = sorted(place.glob("*.md"))
        if found:
            return {path.stem: path.read_text(encoding="utf-8") for path in found}
    raise StoreError("The pages on checks are missing.", "Install iolab again.")


def _title(page: str) -> str:
    return page.split("\n", 1)[0].removeprefix("# ").strip()


def _unknown(code: str, codes: list[str]) -> Exception:
    from iolab.errors import UsageError
    from iolab.study.wording import shown

    near = difflib.get_close_matches(code, codes, NEAREST_MAX, 0.3)
    do = f"The nearest are {', '.join(near)}." if near else "'iolab explain' lists all codes."
    return UsageError(f"There is no check {shown(code)}.", do)


def _list(titles: dict[str, str]) -> RenderableType:
    from iolab.report.terminal import Heading, plain, table

    rows = [[plain(code, "bold"), plain(title)] for code, title in titles.items()]
    return table([Heading("check"), Heading("what it is about", main=True)], rows)


def _screen(page: str) -> Iterator[RenderableType]:
    """The page as people read it: links of the documentation are words only."""
    from rich.constrain import Constrain
    from rich.markdown import Markdown

    from iolab.report.terminal import plain

    text = _LINK.sub(r"\1", page)
    parts = _HEADING.split(text)
    for level, heading, body in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        if level != "#":
            yield ""
        yield plain(heading, "bold")
        yield Constrain(Markdown(body.strip(), hyperlinks=False), PAGE_WIDTH)
