"""The pages on kinds of load and engines show code that is tested."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TOY = Path(__file__).parent
PAGES = TOY.parents[1] / "docs" / "how-to"


@pytest.mark.parametrize("name", ["add-a-kind-of-load.md", "add-an-engine.md"])
def test_a_page_shows_what_the_toy_has(name: str) -> None:
    code = [path.read_text(encoding="utf-8") for path in TOY.glob("*.py")]
    page = (PAGES / name).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    assert blocks
    for block in blocks:
        assert any(block in text for text in code), block
