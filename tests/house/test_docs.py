"""Documentation is complete and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from iolab import errors
from iolab.errors import ExitCode, IolabError
from tests.house.test_tidy import ROOT, tracked

PAGES = tracked("*.md")
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    dead = [
        target
        for target in LINK.findall(page.read_text(encoding="utf-8"))
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert not dead


def test_every_page_is_reached_from_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = [path for path in PAGES if path.is_relative_to(ROOT / "docs")]
    unreached = [
        str(path.relative_to(ROOT / "docs"))
        for path in pages
        if path.name != "README.md"
        and str(path.relative_to(ROOT / "docs")) not in index
        and f"{path.parent.relative_to(ROOT / 'docs')}/)" not in index
    ]
    assert not unreached


def test_every_exit_code_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    missing = [code for code in ExitCode if not re.search(rf"^\| *`?{int(code)}`? *\|", page, re.M)]
    assert not missing


def test_every_error_has_an_exit_code_of_its_own_kind() -> None:
    kinds = [
        thing
        for thing in vars(errors).values()
        if isinstance(thing, type) and issubclass(thing, IolabError) and thing is not IolabError
    ]
    assert len(kinds) >= 7
    assert all(kind.exit_code not in {ExitCode.OK, ExitCode.BUG} for kind in kinds)
