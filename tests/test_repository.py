"""What a reader of the repository relies on: complete pages, links, nothing of one machine."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from iolab import errors
from iolab.errors import ExitCode, IolabError
from tests.lanes import FIRST, TOGETHER, lane_of
from tests.needs import FILES

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
# A path of one machine, or the host of a package registry, breaks on every other machine.
FOREIGN = re.compile(
    rf"{re.escape(str(ROOT))}/|/home/[a-z]|/root/|files\.pythonhosted|deb\.debian\.org"
)


def tracked(*patterns: str) -> list[Path]:
    """Files of the checkout that git tracks or would, which match the patterns."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    return [ROOT / name for name in listing if (ROOT / name).is_file()]


def test_links_lead_somewhere() -> None:
    pages = tracked("*.md")
    assert len(pages) > 20
    dead = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in LINK.findall(page.read_text(encoding="utf-8"))
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert dead == []


def test_every_page_is_reached_from_the_index() -> None:
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    unreached = [
        str(path.relative_to(DOCS))
        for path in tracked("docs/*.md")
        if path.name != "README.md"
        and str(path.relative_to(DOCS)) not in index
        and f"{path.parent.relative_to(DOCS)}/)" not in index
    ]
    assert unreached == []


def test_every_exit_code_is_documented() -> None:
    page = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    missing = [code for code in ExitCode if not re.search(rf"^\| *`?{int(code)}`? *\|", page, re.M)]
    assert missing == []


def test_every_error_has_an_exit_code_of_its_own_kind() -> None:
    kinds = [
        thing
        for thing in vars(errors).values()
        if isinstance(thing, type) and issubclass(thing, IolabError) and thing is not IolabError
    ]
    assert len(kinds) >= 7
    assert all(kind.exit_code not in {ExitCode.OK, ExitCode.BUG} for kind in kinds)


def test_every_end_to_end_test_is_looked_for_and_what_is_said_of_a_file_is_of_one() -> None:
    files = [path.relative_to(ROOT).as_posix() for path in tracked("tests/*/test_*.py")]
    (told,) = re.findall(r"^E2E := .*?((?: tests/\w+)+)$", (ROOT / "Makefile").read_text(), re.M)
    marked = [file for file in files if "mark.e" + "2e" in (ROOT / file).read_text("utf-8")]
    assert len(marked) > 50
    assert [file for file in marked if not file.startswith(tuple(told.split()))] == []
    begins = [*FILES, *TOGETHER]
    assert [begin for begin in begins if not any(file.startswith(begin) for file in files)] == []
    assert set(FIRST) <= {lane_of(file) for file in files}


def test_no_path_of_one_machine_and_no_registry_host() -> None:
    here = Path(__file__).resolve()
    # uv.lock names where its packages come from; that is what a lock file is.
    texts = [path for path in tracked() if path.suffix not in {".png", ".zst", ".lock"}]
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in texts
        if path != here
        for number, line in enumerate(path.read_bytes().decode("utf-8", "replace").splitlines(), 1)
        if FOREIGN.search(line)
    ]
    assert found == []
