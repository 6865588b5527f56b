"""Each exit code that docs/reference/cli.md promises, for each reason that it names there."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from iolab.errors import ExitCode
from tests.cli.command_line import LIMIT_S, command, environment, make_session
from tests.cli.compared import Target, make_target
from tests.importers.importing import lay_down
from tests.processes import run_program

pytestmark = pytest.mark.e2e

DOCS: Final = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"
STUDY: Final = """\
format = 1
id = "codes"
[[workload]]
id = "w"
engine = "fio"
rw = "randread"
bs = "4k"
iodepth = 1
numjobs = 1
filesize = "1m"
[method]
warmup = "0s"
runtime = "2s"
settle = "0s"
idle_watch = 0
generator_limit = false
"""
A_BUG: Final = """
import sys
from iolab.__main__ import main
from iolab.cli.commands import COMMANDS, CliCommand, CommandGroup
bug = lambda: 1 / 0
COMMANDS["bug"] = CliCommand("bug", "__main__:bug", "", CommandGroup.READ)
main()
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A study and a directory for its load."""
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    (tmp_path / "load").mkdir()
    return tmp_path


def code_of(
    place: Path, *words: str | Path, env: Mapping[str, str] | None = None, limits: str = ""
) -> int:
    """What a command exits with, in that place and within what `ulimit` allows."""
    shell = ["sh", "-c", f'{limits}exec "$@"', "sh"] if limits else []
    done = run_program([*shell, *command(*words)], cwd=place, env=environment(env), timeout=LIMIT_S)
    assert "Traceback" not in done.stderr
    assert done.returncode < ExitCode.STUDY or done.stderr.strip()
    return done.returncode


def run_of(place: Path, *words: str, env: Mapping[str, str] | None = None) -> int:
    return code_of(place, "run", "study.toml", "--path", "load", "--out", "S", *words, env=env)


@contextmanager
def load_in_background() -> Iterator[None]:
    """Every processor busy."""
    spin = [sys.executable, "-c", "while True: pass"]
    busy = [subprocess.Popen(spin) for _ in range((os.cpu_count() or 1) + 1)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def background_load(place: Path) -> int:
    with load_in_background():
        return code_of(place, "doctor", "--path", "load")


def fail_on(place: Path) -> int:
    """A run of two seconds is not worth more."""
    return run_of(place, "--fail-on", "indicative")


def damaged(place: Path) -> int:
    session = make_session(place / "S")
    next(session.glob("points/*/run-1/manifest.json")).write_text("{", encoding="utf-8")
    return code_of(place, "show", session)


def unlike(place: Path) -> int:
    """Two sessions of different studies."""
    imported = place / "T"
    files = lay_down(place, "import/fio/plain-3.33.json")
    assert code_of(place, "import", *files, "--out", imported) == ExitCode.OK
    return code_of(place, "compare", make_session(place / "S"), imported)


def worse(place: Path) -> int:
    fast = make_target(place / "fast", Target(name="fast"))
    slow = make_target(place / "slow", Target(name="slow", factor=0.5))
    return code_of(place, "compare", fast, slow, "--fail-on", "worse")


def out_of_memory(place: Path) -> int:
    session = make_session(place / "S")
    return code_of(place, "report", session, "--pdf", "a.pdf", limits="ulimit -v 400000; ")


def fake_fio(place: Path, script: str) -> dict[str, str]:
    """An environment whose fio is that."""
    program = place / "bin" / "fio"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    return {"PATH": f"{program.parent}:{os.environ['PATH']}"}


def failing_fio(place: Path) -> int:
    """It answers what is asked of it, and fails as soon as there is load to make."""
    real = f'exec {shutil.which("fio")} "$@"'
    script = f'case "$*" in *version*|*help*) {real};; esac\nexit 1'
    return run_of(place, env=fake_fio(place, script))


def no_fio(place: Path) -> int:
    only = place / "bin"
    only.mkdir()
    return run_of(place, env={"PATH": str(only)})


def stopped(place: Path) -> int:
    process = subprocess.Popen(
        command("run", "study.toml", "--path", "load", "--out", "S", "--set=method.runtime=60s"),
        cwd=place,
        env=environment(),
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    process.stderr.readline()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=LIMIT_S)
    return process.returncode


def bug(place: Path) -> int:
    done = subprocess.run(
        [sys.executable, "-c", A_BUG, "bug"],
        cwd=place,
        env=environment(),
        capture_output=True,
        timeout=LIMIT_S,
        check=False,
    )
    return done.returncode


PROMISES: Final[dict[str, tuple[int, Callable[[Path], int]]]] = {
    "done": (0, run_of),
    "--fail-on": (1, fail_on),
    "worse": (1, worse),
    "fit, also if busy": (0, background_load),
    "wrong command line": (2, lambda place: code_of(place, "run", "--nothing")),
    "study": (2, lambda place: run_of(place, "--set=workload.w.rw=sideways")),
    "cannot be compared": (2, unlike),
    "agent": (3, lambda place: run_of(place, env={"IOLAB_AGENT": "/nonexistent"})),
    "target": (3, lambda place: code_of(place, "run", "study.toml", "--path", "nowhere")),
    "out of memory": (3, out_of_memory),
    "missing": (4, no_fio),
    "too old": (4, lambda place: run_of(place, env=fake_fio(place, "echo fio-3.1"))),
    "a run failed": (4, failing_fio),
    "read": (5, lambda place: code_of(place, "show", "load")),
    "written": (5, lambda place: run_of(place, "--out", "/proc/S")),
    "damaged": (5, damaged),
    "a report": (
        6,
        lambda place: code_of(place, "report", make_session(place / "S"), "--html", "/proc/a"),
    ),
    "export": (
        6,
        lambda place: code_of(
            place, "export", make_session(place / "S"), "--format", "csv", "--out", "/proc/a"
        ),
    ),
    "a bug": (70, bug),
    "stopped by the user": (130, stopped),
}
"""Words of the table in the docs, the code of their row, and what provokes it."""


@pytest.mark.parametrize("words", PROMISES)
def test_a_promised_exit_code_is_met(words: str, place: Path) -> None:
    code, provoke = PROMISES[words]
    assert provoke(place) == code


def test_all_that_the_docs_promise_is_provoked() -> None:
    rows = re.findall(r"^\| `(\d+)` \| (.*) \|$", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    means = {int(code): text for code, text in rows}
    assert set(means) == {int(code) for code in ExitCode}
    assert set(means) == {code for code, _ in PROMISES.values()}
    for words, (code, _) in PROMISES.items():
        assert words in means[code]
