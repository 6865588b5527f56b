"""The pages on kinds of load and engines show code that is tested."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TOY = Path(__file__).parent
ROOT = TOY.parents[1]
PAGES = ROOT / "docs" / "how-to"


@pytest.mark.parametrize("name", ["add-a-kind-of-load.md", "add-an-engine.md"])
def test_a_page_shows_what_the_toy_has(name: str) -> None:
    code = [path.read_text(encoding="utf-8") for path in TOY.glob("*.py")]
    page = (PAGES / name).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    assert blocks
    for block in blocks:
        assert any(block in text for text in code), block


@pytest.mark.parametrize("name", ["add-a-check.md", "add-a-kind-of-load.md", "add-an-engine.md"])
def test_a_page_for_contributors_names_what_the_code_has(name: str) -> None:
    folders = (ROOT / "src", ROOT / "tests")
    modules = [path for folder in folders for path in folder.rglob("*.py")]
    code = {word for path in modules for word in re.findall(r"\w+", path.read_text("utf-8"))}
    prose = re.sub(r"```.*?```", "", (PAGES / name).read_text(encoding="utf-8"), flags=re.S)
    named = set(re.findall(r"`([A-Za-z_]\w{3,})`", prose))
    assert named
    assert named - code == set()


@pytest.mark.parametrize("name", ["add-a-check.md", "add-a-kind-of-load.md", "add-an-engine.md"])
def test_a_page_for_contributors_names_parameters_that_functions_have(name: str) -> None:
    prose = (PAGES / name).read_text(encoding="utf-8")
    calls = re.findall(r"`(\w+)\((\w+=…[^`]*)\)`", prose)
    for function, arguments in calls:
        accepted = parameters_of(function)
        assert set(re.findall(r"(\w+)=", arguments)) <= accepted, (function, accepted)


def parameters_of(function: str) -> set[str]:
    """Of every function of that name below src."""
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    trees = (ast.parse(text) for text in texts if f"def {function}(" in text)
    found = [
        {argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)}
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == function
    ]
    return set().union(*found)
