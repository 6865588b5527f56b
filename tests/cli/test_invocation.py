"""The commands that closing lines name can be called as they stand there."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command_line import environment
from tests.cli.in_process import call
from tests.processes import run_program

JOB = "[a]\nrw=read\nbs=4k\nsize=1g\ndirect=1\nruntime=1\ntime_based\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the program at `bin/iolab`, and no other on its path."""
    program = tmp_path / "bin" / "iolab"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nfrom iolab.__main__ import main\nmain()\n")
    program.chmod(0o755)
    (tmp_path / "job.fio").write_text(JOB)
    (tmp_path / "a b").mkdir()
    return tmp_path


def closing_command(folder: Path, *program: str, path: str) -> str:
    """What `init` says to call next."""
    argv = [*program, "init", "a b/s.toml", "--from", "job.fio"]
    env = {**environment(), "PATH": path}
    done = run_program(argv, cwd=folder, env=env, check=True)
    return done.stderr.split("then '")[1].split("' and")[0].replace("\n", " ")


def test_off_the_path_it_is_called_as_it_was(checkout: Path) -> None:
    system = os.defpath
    assert shutil.which("iolab", path=system) is None
    line = closing_command(checkout, "bin/iolab", path=system)
    assert line == "bin/iolab check 'a b/s.toml'"
    subprocess.run(shlex.split(line), cwd=checkout, env=environment(), check=True)


def test_on_the_path_its_name_is_enough(checkout: Path) -> None:
    path = f"{checkout / 'bin'}:{os.defpath}"
    assert closing_command(checkout, "bin/iolab", path=path).startswith("iolab check ")


def test_a_module_is_called_as_one(checkout: Path) -> None:
    line = closing_command(checkout, sys.executable, "-m", "iolab", path=os.defpath)
    assert line.startswith(f"{sys.executable} -m iolab check ")


def test_others_that_use_its_functions_name_the_program(tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_text(JOB)
    done = call("init", "s.toml", "--from", "job.fio", cwd=tmp_path)
    assert "'iolab check s.toml'" in done.stderr
