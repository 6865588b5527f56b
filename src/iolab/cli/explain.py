"""`iolab explain`: what a check or a word of the results means."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from iolab.cli.options import (
    OutputFormat,
    with_output_format,
)
from iolab.cli.output import (
    print_document,
    print_renderables,
)
from iolab.errors import StoreError, UsageError
from iolab.record import Record
from iolab.report.check_pages import check_page_path_by_code, check_page_title
from iolab.text import one_line, quote_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType


NEAREST_MAX: Final = 3
"""Codes that are named for one that is none."""

PAGE_WIDTH: Final = 80
"""Lines of text that are longer are hard to read."""

_PERCENTILE: Final = re.compile(r"p\d+([. ]\d+)?")
_LINK: Final = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]*\)")
_HEADING: Final = re.compile(r"^(#{1,3}) (.+)$", re.MULTILINE)

_PACKAGE: Final = Path(__file__).resolve().parents[1]

_GLOSSARY_PLACES: Final = (_PACKAGE / "_glossary.md", _PACKAGE.parents[1] / "docs" / "glossary.md")
"""Where the wheel puts the glossary, and where a checkout has it."""

_GLOSSARY_ENTRY: Final = re.compile(r"^- \*\*(.+?)\*\*: (.+)$", re.MULTILINE)
_SOURCE_IN_BRACKETS: Final = re.compile(r"[()`]")


def explained_name_completions(incomplete: str) -> list[str]:
    """What the shell offers for a check or a word."""
    names = (*_page_text_by_check_code(), *glossary_entries())
    return [name for name in dict.fromkeys(names) if name.startswith(incomplete)]


@with_output_format
def explain(
    code: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="A check's code or a word, as knee or p99; without, all checks are listed.",
            autocompletion=explained_name_completions,
        ),
    ] = None,
    *,
    output_format: OutputFormat,
) -> None:
    """Explain a check, or a word of the results."""
    pages = _page_text_by_check_code()
    if code is None:
        titles = {name: check_page_title(text) for name, text in pages.items()}
        if output_format is not OutputFormat.TABLE:
            listed = [{"code": name, "title": title} for name, title in titles.items()]
            print_document(output_format, {"format": 1, "checks": listed}, listed)
            return
        print_renderables(_check_list_table(titles))
        return
    if code not in pages:
        _print_glossary_entry(code, list(pages), output_format)
        return
    if output_format is not OutputFormat.TABLE:
        page = {"code": code, "title": check_page_title(pages[code]), "page": pages[code]}
        print_document(output_format, {"format": 1, **page}, [page])
        return
    print_renderables(*_page_lines(pages[code]))


def _page_text_by_check_code() -> dict[str, str]:
    """The page of every check, by its code."""
    if paths := check_page_path_by_code():
        return {code: path.read_text(encoding="utf-8") for code, path in paths.items()}
    raise StoreError("The pages on checks are missing.", "Install iolab again.")


class GlossaryEntry(Record):
    """An entry of the glossary: its words as they stand there, and what they mean."""

    heading: str
    text: str


def glossary_entries() -> dict[str, GlossaryEntry]:
    """The entries by each of their words, which are told in lower case."""
    for place in _GLOSSARY_PLACES:
        if place.is_file():
            entries: dict[str, GlossaryEntry] = {}
            for heading, text in _GLOSSARY_ENTRY.findall(place.read_text(encoding="utf-8")):
                entry = GlossaryEntry(_strip_markdown_marks(heading), _strip_markdown_marks(text))
                words = _SOURCE_IN_BRACKETS.sub(",", heading).split(",")
                entries |= {_glossary_key(word): entry for word in words if word.strip()}
            return entries
    raise StoreError("The glossary is missing.", "Install iolab again.")


def _glossary_key(word: str) -> str:
    return " ".join(word.casefold().replace("-", " ").replace("_", " ").split())


def _strip_markdown_marks(markdown: str) -> str:
    """Text without the marks of links, code and emphasis."""
    return re.sub(r"[`*]", "", re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", markdown))


def _print_glossary_entry(word: str, codes: Sequence[str], output_format: OutputFormat) -> None:
    """Print what a word means; UsageError for one that is neither in the glossary nor a check."""
    from rich.constrain import Constrain

    from iolab.report.terminal import literal_text

    entries = glossary_entries()
    key = _glossary_key(word)
    entry = entries.get(key) or entries.get(key.removesuffix("s"))
    if entry is None and _PERCENTILE.fullmatch(key):
        entry = entries["percentile"]
    if entry is None:
        raise _unknown_name_error(word, [*codes, *entries])
    if output_format is not OutputFormat.TABLE:
        document = {"word": word, "heading": entry.heading, "text": entry.text}
        print_document(output_format, {"format": 1, **document}, [document])
        return
    text = literal_text(entry.heading, "bold").append(f": {one_line(entry.text)}", style="not bold")
    print_renderables(Constrain(text, PAGE_WIDTH))


def _unknown_name_error(code: str, names: Sequence[str]) -> Exception:
    if Path(code).exists():
        hint = f"Give a code, as `iolab show {shlex.quote(code)}` names them at the end."
        return UsageError(
            f"{quote_value(code)} is a file or directory, not the code of a check.", hint
        )
    near = difflib.get_close_matches(code, names, NEAREST_MAX, 0.3)
    hint = f"The nearest are {', '.join(near)}." if near else "'iolab explain' lists all checks."
    return UsageError(f"There is no check or word {quote_value(code)}.", hint)


def _check_list_table(title_by_check_code: dict[str, str]) -> RenderableType:
    from iolab.report.table import Column
    from iolab.report.terminal import literal_text, terminal_table

    rows = [
        [literal_text(code, "bold"), literal_text(title)]
        for code, title in title_by_check_code.items()
    ]
    return terminal_table([Column("check"), Column("what it is about", can_wrap=True)], rows)


def _page_lines(page: str) -> Iterator[RenderableType]:
    """The page as people read it: links of the documentation are words only."""
    from rich.constrain import Constrain
    from rich.markdown import Markdown

    from iolab.report.terminal import literal_text

    text = _LINK.sub(r"\1", page)
    parts = _HEADING.split(text)
    for level, heading, body in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        if level != "#":
            yield ""
        yield literal_text(heading, "bold")
        yield Constrain(Markdown(body.strip(), hyperlinks=False), PAGE_WIDTH)
