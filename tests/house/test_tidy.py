"""Sizes, names and marks that the rules of the house forbid."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTHON_FUNCTION_LINES = 60
RUST_FUNCTION_LINES = 70
FILE_LINES = 400
LINE_WIDTH = 100
FORBIDDEN_WORDS = {"util", "utils", "helper", "helpers", "manager", "data", "info"}
# "data set" is a term of the field and of the plan; it is not a name for "some data".
TERMS = ("data_set", "dataset")
# Names that a library calls us by.
CALLBACKS = {"data_received"}
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|NotImplementedError|unimplemented!|todo!\(")
# A path of one machine, or a registry's host, breaks on every other machine.
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


PYTHON = [path for path in tracked("*.py") if "golden" not in path.parts]
SOURCES = [path for path in PYTHON if path.is_relative_to(ROOT / "src")]
RUST = tracked("*.rs")


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def words(name: str) -> set[str]:
    for term in TERMS:
        name = re.sub(term, "", name, flags=re.IGNORECASE)
    name = re.sub(r"DataSet", "", name)
    return set(re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower().split("_"))


def test_there_are_sources_to_judge() -> None:
    assert len(SOURCES) > 20
    assert len(RUST) > 5


@pytest.mark.parametrize("path", PYTHON, ids=lambda path: str(path.relative_to(ROOT)))
def test_python_functions_fit_a_screen(path: Path) -> None:
    long = {
        node.name: length
        for node in functions(path)
        if (length := (node.end_lineno or node.lineno) - node.lineno + 1) > PYTHON_FUNCTION_LINES
    }
    assert not long


@pytest.mark.parametrize("path", RUST, ids=lambda path: str(path.relative_to(ROOT)))
def test_rust_functions_fit_a_screen(path: Path) -> None:
    long: dict[str, int] = {}
    start: tuple[str, int, str] | None = None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = re.match(r"^(\s*)(?:pub(?:\([a-z]+\))? )?(?:const |unsafe )*fn (\w+)", line)
        if match and not line.rstrip().endswith((";", "}")):
            start = (match[2], number, match[1])
        elif start and line == start[2] + "}":
            if number - start[1] + 1 > RUST_FUNCTION_LINES:
                long[start[0]] = number - start[1] + 1
            start = None
    assert not long


@pytest.mark.parametrize("path", PYTHON + RUST, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_lines_have_a_limit(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= FILE_LINES
    assert [number for number, line in enumerate(lines, 1) if len(line) > LINE_WIDTH] == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_say_what_they_are(path: Path) -> None:
    names = {path.stem}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
    assert {name for name in names - CALLBACKS if words(name) & FORBIDDEN_WORDS} == set()


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_and_public_things_are_documented(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), "the module says nothing of its purpose"
    bare = [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
        and not ast.get_docstring(node)
    ]
    assert not bare


def test_nothing_is_marked_unfinished() -> None:
    here = Path(__file__).resolve()
    marked = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in tracked("src", "agent", "tests", "bench", "docs", "tools", "studies")
        if path != here and "golden" not in path.parts and path.suffix != ".png"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if UNFINISHED.search(line)
    ]
    assert not marked


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
    assert not found


def test_tests_neither_patch_nor_skip() -> None:
    here = Path(__file__).resolve()
    pattern = re.compile(
        r"mock\.patch|monkeypatch\.setattr|pytest\.skip\(|mark\.skip|mark\.xfail|importorskip"
    )
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in tracked("tests/*.py")
        if path != here
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line)
    ]
    assert not found
