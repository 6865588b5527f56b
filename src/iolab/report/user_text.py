"""The user's own words in a report: who made it, what comes before the answer, what follows of it.

They are a Markdown file: lines like `Author: Jo Doe` and `Logo: logo.png` first, then text under
the headings Introduction and Conclusion; what stands before any of these is the introduction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from iolab.errors import Fault, UsageError
from iolab.record import Record
from iolab.text import escape_invisible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

TEXT_BYTES_MAX: Final = 64 << 10
"""Bytes of a text: a brief of a few pages has no room for more."""

LOGO_BYTES_MAX: Final = 1 << 20
"""Bytes of a logo, which every page that is sent carries along."""

_FIELD: Final = re.compile(r"(Author|Logo)\s*:\s*(.+)", re.IGNORECASE)
_HEADING: Final = re.compile(r"#{1,6}\s+(.*?)\s*#*$")
_PICTURES: Final = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg"}

_BLOCKS: Final = ("heading", "item", "paragraph")
_STYLES: Final = {"strong": "strong", "em": "emphasis"}


class UserText(Record):
    """The texts of the user are Markdown; `logo` is a picture and `logo_type` png or jpeg."""

    author: str = ""
    introduction: str = ""
    conclusion: str = ""
    logo: bytes = b""
    logo_type: str = ""


EMPTY_USER_TEXT: Final = UserText()


def read_user_text(path: Path) -> UserText:
    """The words of that file; UsageError with all that is wrong with it."""
    faults: list[Fault] = []
    text = _read_text(path)
    fields, body = _fields_and_remaining_lines(text)
    parts: dict[str, list[str]] = {"introduction": [], "conclusion": []}
    part, fenced = "introduction", False
    for line in body:
        fenced ^= line.startswith(("```", "~~~"))
        heading = None if fenced else _HEADING.fullmatch(line)
        if heading and heading[1].lower() in parts:
            part = heading[1].lower()
        else:
            parts[part].append(line)
    logo, kind = b"", ""
    if "logo" in fields:
        logo, kind = _read_logo_and_format(path.parent / fields["logo"], faults)
    texts = {name: "\n".join(lines).strip() for name, lines in parts.items()}
    if not any((fields.get("author"), *texts.values(), logo)) and not faults:
        faults.append(Fault(f"'{path}' has no text.", "Write a text, or leave --text out."))
    if faults:
        raise UsageError("The text of the report cannot be used.", "See below.", tuple(faults))
    return UserText(fields.get("author", ""), **texts, logo=logo, logo_type=kind)


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(TEXT_BYTES_MAX + 1)
        text = raw[:TEXT_BYTES_MAX].decode(
            "utf-8-sig", "strict" if len(raw) <= TEXT_BYTES_MAX else "ignore"
        )
    except OSError as error:
        message = f"'{path}' cannot be read: {error.strerror}."
        raise UsageError(message, "Give a Markdown file with --text.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"'{path}' is no text in UTF-8.", "Save it as UTF-8.") from error
    if len(raw) > TEXT_BYTES_MAX:
        message = f"'{path}' is longer than {TEXT_BYTES_MAX >> 10} KiB."
        raise UsageError(message, "Keep to what readers of a brief will read.")
    return text


def _fields_and_remaining_lines(text: str) -> tuple[dict[str, str], list[str]]:
    """The fields of the first lines, and the lines that follow."""
    lines = text.splitlines()
    fields: dict[str, str] = {}
    while lines and (match := _FIELD.fullmatch(lines[0].strip())):
        fields[match[1].lower()] = match[2].strip()
        lines.pop(0)
    return fields, lines


def _read_logo_and_format(path: Path, faults_to_extend: list[Fault]) -> tuple[bytes, str]:
    try:
        with path.open("rb") as file:
            raw = file.read(LOGO_BYTES_MAX + 1)
    except OSError as error:
        faults_to_extend.append(
            Fault(f"The logo '{path}' cannot be read: {error.strerror}.", "Name a file.")
        )
        return b"", ""
    kind = next((kind for mark, kind in _PICTURES.items() if raw.startswith(mark)), "")
    if not kind:
        faults_to_extend.append(
            Fault(f"The logo '{path}' is neither PNG nor JPEG.", "Convert it to PNG.")
        )
    if len(raw) > LOGO_BYTES_MAX:
        message = f"The logo '{path}' is larger than {LOGO_BYTES_MAX >> 20} MiB."
        faults_to_extend.append(Fault(message, "Make it smaller."))
    return raw, kind


@cache
def _markdown_parser() -> MarkdownIt:
    """Markdown without HTML and pictures: a page asks for nothing from elsewhere."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).disable(["image"])


def markdown_to_html(text: str) -> str:
    """The text as HTML that holds no foreign markup."""
    return (
        str(_markdown_parser().render(escape_invisible(text))) if text else ""
    )  # most reports have none


def markdown_to_blocks(text: str) -> list[dict[str, Any]]:
    """The text for a typesetter: headings, paragraphs and items, each of runs of plain text."""
    blocks: list[dict[str, Any]] = []
    kinds: list[str] = []
    for token in _markdown_parser().parse(escape_invisible(text)) if text else ():
        if token.type == "heading_open":
            kinds.append("heading")
        elif token.type == "list_item_open":
            kinds.append(f"{token.info}. " if token.info else "item")
        elif token.type in ("heading_close", "list_item_close"):
            kinds.pop()
        elif token.type == "inline":
            runs = list(_styled_text_parts(token.children or ()))
            kind = kinds[-1] if kinds else "paragraph"
            if kind not in _BLOCKS:  # an item of a numbered list
                runs, kind = [{"text": kind, "style": ""}, *runs], "paragraph"
            blocks.append({"kind": kind, "runs": runs})
            if kinds and kind != "heading":
                kinds[-1] = "paragraph"  # what else an item holds
        elif token.type in ("fence", "code_block"):
            blocks.append({"kind": "code", "runs": [{"text": token.content, "style": "code"}]})
    return blocks


def _styled_text_parts(children: Sequence[Token]) -> Iterator[dict[str, str]]:
    styles: list[str] = []
    address = ""
    for token in children:
        if token.type == "link_open":
            address = str(token.attrGet("href") or "")
        elif token.type == "link_close":
            yield {"text": f" ({address})", "style": ""}
        name = token.type.removesuffix("_open").removesuffix("_close")
        if name in _STYLES:
            styles.append(_STYLES[name]) if token.nesting > 0 else styles.pop()
        elif token.type in ("softbreak", "hardbreak"):
            yield {"text": " ", "style": ""}
        elif token.content:
            style = "code" if token.type == "code_inline" else (styles or [""])[-1]
            yield {"text": token.content, "style": style}
