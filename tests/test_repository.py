"""What a reader of the repository relies on: complete pages, links, nothing of one machine."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from iolab import errors
from iolab.errors import ExitCode, IolabError
from tests import site_parts
from tests.lanes import FIRST, TOGETHER, lane_of
from tests.needs import FILES
from tests.processes import run_program

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
# A path of one machine, or the host of a package registry, breaks on every other machine.
FOREIGN = re.compile(
    rf"{re.escape(str(ROOT))}/|/home/[a-z]|/root/|files\.pythonhosted|deb\.debian\.org"
)

IMPORT = re.compile(r"^[ \t]*from (iolab[\w.]*) import (\w+(?:, \w+)*)$", re.M)


# What a reader of a page takes as it is: samples of output, and names of files, keys and codes.
QUOTED = re.compile(r"^```.*?^```|^    .*?$|`[^`\n]+`|\]\([^)]*\)", re.M | re.S)


def tracked(*patterns: str) -> list[Path]:
    """Files of the checkout that git tracks or would, which match the patterns."""
    listing = run_program(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns],
        cwd=ROOT,
        check=True,
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


def test_pages_that_the_code_names_exist() -> None:
    named = {
        (module.name, page)
        for module in tracked("src/iolab/*.py")
        for page in re.findall(r"\bdocs/[\w/-]+\.md\b", module.read_text(encoding="utf-8"))
    }
    assert len(named) > 10
    assert [(module, page) for module, page in sorted(named) if not (ROOT / page).exists()] == []


def test_every_page_is_reached_from_the_index() -> None:
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    index += site_parts.checks().replace("(checks/", "(reference/checks/")
    unreached = [
        str(path.relative_to(DOCS))
        for path in tracked("docs/*.md")
        if path.name != "README.md" and f"({path.relative_to(DOCS)})" not in index
    ]
    assert unreached == []


def test_every_part_of_the_site_has_its_place() -> None:
    places = [
        place
        for page in tracked("docs/*.md")
        for place in site_parts.PLACE.findall(page.read_text(encoding="utf-8"))
    ]
    assert sorted(name for name, _ in places) == sorted(site_parts.parts())
    assert all(short.strip() for _, short in places)


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
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    # The tests in a Kubernetes have a target of their own.
    folders = " ".join(re.findall(r"^(?:E2E :=|\t.* -m kubernetes) .*?(tests/.*)$", makefile, re.M))
    marked = [file for file in files if "mark.e" + "2e" in (ROOT / file).read_text("utf-8")]
    assert len(marked) > 50
    assert [file for file in marked if not file.startswith(tuple(folders.split()))] == []
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


def unwanted() -> re.Pattern[str]:
    """The left column of tests/words.md, also in the plural."""
    table = (ROOT / "tests" / "words.md").read_text(encoding="utf-8").partition("| say |")[2]
    words = re.findall(r"^\| ([^|]+?) \| [^|]+ \|$", table, re.M)
    assert len(words) > 20
    return re.compile(rf"(?<![-\w])({'|'.join(words)})s?\b(?!-)", re.I)


def prose(page: Path) -> str:
    """A page's text without what it quotes, on as many lines."""
    return QUOTED.sub(lambda match: "\n" * match[0].count("\n"), page.read_text(encoding="utf-8"))


class ModuleText(NamedTuple):
    """What a module says and what it calls things, each with its line."""

    messages: list[tuple[int, str]]
    names: list[tuple[int, str]]


@pytest.fixture(scope="module")
def modules() -> dict[Path, ModuleText]:
    """The texts of every module of ours; of their trees, which are large, one at a time."""
    texts = {}
    for module in tracked("src/iolab/*.py"):
        nodes = list(ast.walk(ast.parse(module.read_text(encoding="utf-8"))))
        texts[module] = ModuleText([*messages(nodes)], [*names(nodes)])
    return texts


def messages(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """Line and text of each string of several words that is no docstring."""
    alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.lineno, node.value if " " in node.value.strip() else ""


def test_pages_and_messages_have_the_glossary_s_words(modules: dict[Path, ModuleText]) -> None:
    word = unwanted()
    lines = [
        (f"{page.relative_to(ROOT)}:{number}", line)
        for page in [*tracked("docs/*.md"), ROOT / "README.md"]
        for number, line in enumerate(prose(page).splitlines(), 1)
    ]
    said = [
        (f"{module.relative_to(ROOT)}:{number}", text)
        for module, texts in modules.items()
        for number, text in texts.messages
    ]
    shown = [
        (str(template.relative_to(ROOT)), line)
        for template in tracked("src/iolab/*.j2", "src/iolab/*.typ")
        for line in template.read_text(encoding="utf-8").splitlines()
    ]
    helps = [("iolab --help", line) for line in site_parts.commands().splitlines()]
    found = [
        f"{where}: {hit[0]}"
        for where, text in (*lines, *said, *shown, *helps)
        if (hit := word.search(text))
    ]
    assert found == []


def names(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """Line and name of each variable, parameter and loop; a class's fields may be keys of files."""
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    fields = {
        id(line.target) for c in classes for line in c.body if isinstance(line, ast.AnnAssign)
    }
    for node in nodes:
        if (
            isinstance(node, ast.Name)
            and isinstance(node.ctx, ast.Store)
            and id(node) not in fields
        ):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.MatchAs | ast.ExceptHandler) and node.name is not None:
            yield node.lineno, node.name


def test_names_say_what_they_hold(modules: dict[Path, ModuleText]) -> None:
    text = (ROOT / "tests" / "words.md").read_text(encoding="utf-8")
    fillers = set(re.findall(r"`(\w+)`", text.partition("## Names that say nothing")[2]))
    assert len(fillers) >= 5
    found = [
        f"{module.relative_to(ROOT)}:{line}: {name}"
        for module, texts in modules.items()
        for line, name in texts.names
        if name in fillers
    ]
    assert found == []


def test_what_scripts_inside_tests_import_is_there() -> None:
    """The types of what a test runs as a program of its own are checked by nobody else."""
    found = {
        (module, name)
        for file in tracked("tests/*.py", "bench/*.py", "docs/*.md")
        for module, imported in IMPORT.findall(file.read_text(encoding="utf-8"))
        for name in imported.split(", ")
    }
    assert len(found) > 100
    missing = [f"{module}: {name}" for module, name in sorted(found) if not is_there(module, name)]
    assert missing == []


def is_there(module: str, name: str) -> bool:
    """Whether a module has an attribute or a module of that name."""
    if hasattr(importlib.import_module(module), name):
        return True
    try:
        importlib.import_module(f"{module}.{name}")
    except ModuleNotFoundError:
        return False
    return True


def test_checks_are_functions_named_as_their_codes() -> None:
    named = [
        (function.name, code)
        for module in tracked("src/iolab/*.py")
        for function in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(function, ast.FunctionDef)
        for code in codes_of_check(function)
    ]
    assert len(named) > 100
    assert [f"{name}: {code}" for name, code in named if name != f"check_{code}"] == []


def codes_of_check(function: ast.FunctionDef) -> Iterator[str]:
    """The code that a decorator `check` gives the function, as a name has it."""
    for decorator in function.decorator_list:
        match decorator:
            case ast.Call(func=ast.Name(id="check"), args=[ast.Constant(value=str(code)), *_]):
                yield code.replace("-", "_")


def test_checks_of_one_kind_end_in_the_name_of_what_they_override() -> None:
    pairs = [
        (base, own)
        for module in tracked("src/iolab/*/analysis.py")
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        for base, own in overridden_checks(node)
    ]
    assert len(pairs) > 20
    assert [pair for pair in pairs if not pair[1].endswith(pair[0].removeprefix("check_"))] == []


def overridden_checks(node: ast.AST) -> Iterator[tuple[str, str]]:
    """The names of a check and of the function that answers it for a kind of load."""
    match node:
        case ast.Dict(keys=keys, values=values):
            for base, own in zip(keys, values, strict=True):
                if isinstance(base, ast.Name) and isinstance(own, ast.Name) and "check_" in own.id:
                    yield base.id, own.id
        case ast.Call(func=ast.Attribute(value=base, attr="override"), args=[own]):
            yield ast.unparse(base).rpartition(".")[2], ast.unparse(own).rpartition(".")[2]
