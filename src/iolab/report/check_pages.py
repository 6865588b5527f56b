"""The pages on checks, and the title that each has for readers who do not know its code."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

from iolab.text import uncapitalised

_PACKAGE: Final = Path(__file__).resolve().parents[1]

_PLACES: Final = (_PACKAGE / "_checks", _PACKAGE.parents[1] / "docs" / "reference" / "checks")
"""Where the wheel puts the pages, and where a checkout has them."""


def check_page_path_by_code() -> dict[str, Path]:
    """The page of every check by its code; empty where the installation has none."""
    found = (sorted(place.glob("*.md")) for place in _PLACES)
    return {path.stem: path for path in next((pages for pages in found if pages), [])}


def check_page_title(page: str) -> str:
    """What the page's check is about: `Run too short`."""
    return page.split("\n", 1)[0].removeprefix("# ").strip()


@cache
def check_phrase(code: str) -> str:
    """What a check is about, within a sentence: `run too short`; its code in words without a page.

    Acronyms and names keep their capital.
    """
    path = check_page_path_by_code().get(code)
    if path is None:
        return code.replace("-", " ")
    title = check_page_title(path.read_text(encoding="utf-8"))
    is_name = title[1:2].isupper() or title.partition(" ")[0].endswith("'s")
    return title if is_name else uncapitalised(title)


@cache
def check_remedy(code: str) -> str:
    """The first sentence of *What to do* on its page, without markup; empty without a page."""
    path = check_page_path_by_code().get(code)
    if path is None:
        return ""
    _, _, section = path.read_text(encoding="utf-8").partition("\n## What to do\n")
    paragraph = " ".join(section.strip().split("\n\n", 1)[0].split())
    plain_text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", paragraph).replace("`", "")
    return re.split(r"(?<=[.!])\s", plain_text, maxsplit=1)[0]
