"""What lies in the current directory is not run in our place, whatever it is called."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command_line import LIMIT_S, environment
from tests.processes import run_program

BAIT = "import os\nos.write(2, b'BAIT')\nos._exit(99)\n"
NAMES = (
    *("json", "typing", "numpy", "typer", "asyncio", "dataclasses", "signal", "gc", "msgspec"),
    *("click", "pydantic", "tomllib", "pathlib", "enum", "rich", "os", "sys", "runpy"),
)
MODULE = [sys.executable, "-m", "iolab"]
CONSOLE = [str(Path(sys.executable).with_name("iolab"))]


@pytest.fixture
def baited(tmp_path: Path) -> Path:
    """A directory with modules and packages of names that we import."""
    folder = tmp_path / "baited"
    for name in NAMES:
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(BAIT)
    return folder


def ran(words: list[str], cwd: Path, python_path: str = "") -> subprocess.CompletedProcess[str]:
    return run_program(
        words,
        cwd=cwd,
        env=environment({"PYTHONPATH": python_path} if python_path else {}),
        timeout=LIMIT_S,
    )


@pytest.mark.parametrize("python_path", ["", ":/nonexistent", ".:/nonexistent", "../baited"])
@pytest.mark.parametrize("words", [MODULE, [*MODULE[:1], "-miolab"], CONSOLE])
def test_no_module_of_the_current_directory_is_imported(
    baited: Path, words: list[str], python_path: str
) -> None:
    for more in ("--version", "studies"):
        done = ran([*words, more], baited, python_path)
        assert (done.returncode, done.stderr) == (0, "")


def test_a_package_of_our_name_is_not_run_in_our_place(baited: Path) -> None:
    """`python -m iolab` takes it before we are asked; -P is what Python has for that."""
    (baited / "iolab").mkdir()
    (baited / "iolab" / "__init__.py").write_text(BAIT)
    for words in ([sys.executable, "-P", "-m", "iolab"], CONSOLE):
        done = ran([*words, "--version"], baited)
        assert (done.returncode, done.stderr) == (0, "")


def test_what_python_path_names_in_full_is_the_users_wish(baited: Path, tmp_path: Path) -> None:
    for words in (MODULE, CONSOLE):
        assert ran([*words, "--version"], tmp_path, str(baited)).returncode == 99


def test_a_program_that_imports_iolab_keeps_its_directory(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("word = 'mine'\n")
    for argument in ("-c", "-m"):
        script = tmp_path / "own.py"
        script.write_text("import iolab, mine\nprint(mine.word)\n")
        words = [sys.executable, argument, "own" if argument == "-m" else script.read_text()]
        assert ran(words, tmp_path).stdout == "mine\n"
