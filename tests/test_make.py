"""What `make` does around tests: it installs packages, and says which tests were skipped."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.needs import packages_of, require
from tests.processes import run_program

TOOLS = Path(__file__).parents[1] / "tools"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder of programs before all others on the path."""
    folder = tmp_path / "programs"
    folder.mkdir()
    return folder


def add_program(folder: Path, name: str, body: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def run(programs: Path, tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "MAKE": "make"}
    argv = [str(TOOLS / tool), *arguments]
    return run_program(argv, env=env)


def test_packages_wait_for_another_apt_and_are_asked_for_once(programs: Path) -> None:
    require("root")
    log = programs / "log"
    add_program(
        programs,
        "apt-get",
        f'echo "$@" >>{log}; echo "E: stale list" >&2; : >{programs}/a; chmod +x {programs}/a',
    )
    done = run(programs, "packages.sh", "required", "a:package-of-a:for a test")
    assert done.returncode == 0
    assert "stale list" not in done.stderr
    (line,) = log.read_text().splitlines()
    assert "DPkg::Lock::Timeout=600" in line
    assert line.endswith("package-of-a")


def test_what_apt_says_after_an_update_is_shown(programs: Path) -> None:
    require("root")
    add_program(programs, "apt-get", 'echo "E: $# words were refused" >&2; exit 100')
    done = run(programs, "packages.sh", "optional", "no-such-program:package:for a test")
    assert done.returncode == 0, "optional packages stop nothing"
    assert done.stderr.count("E: ") == 2, "of the update and of the second install"
    assert "package" in done.stderr
    required = run(programs, "packages.sh", "required", "no-such-program:package:for a test")
    assert required.returncode == 1


def test_skipped_tests_are_counted_over_all_targets_with_their_packages(programs: Path) -> None:
    add_program(
        programs,
        "make",
        'for target; do :; done; [ "$target" = lint ] || printf "xfsprogs\\nxfsprogs iproute2\\n" '
        '>>"$IOLAB_SKIPPED"',
    )
    done = run(programs, "phases.sh", "lint", "unit", "e2e")
    assert done.returncode == 0
    last = done.stdout.splitlines()[-1]
    assert last.startswith("4 tests were skipped")
    assert last.endswith("iproute2 xfsprogs")
    assert "skipped" not in run(programs, "phases.sh", "lint").stdout


def test_a_tool_is_known_by_the_package_that_the_makefile_installs() -> None:
    assert packages_of("Skipped: needs mkfs.xfs, sshd, mke2fs, root") == [
        "xfsprogs",
        "openssh-server",
        "e2fsprogs",
        "root",
    ]
    assert packages_of("Skipped: this kernel has no zram") == []
