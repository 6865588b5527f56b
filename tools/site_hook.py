"""A hook of mkdocs: puts the parts that tests/site_parts.py made in their places.

It runs where nothing of iolab is installed, so it only reads what that wrote.
"""

from __future__ import annotations

import re
from pathlib import Path

PARTS = Path(__file__).resolve().parents[1] / "scratch" / "site-parts"
PLACE = re.compile(r"^<!-- site: (\S+) -->\n.*?^<!-- end -->$", re.M | re.S)


def on_page_markdown(markdown: str, **_: object) -> str:
    """The page with every part in its place; a part that is missing ends the build."""
    return PLACE.sub(lambda place: (PARTS / f"{place[1]}.md").read_text(encoding="utf-8"), markdown)
