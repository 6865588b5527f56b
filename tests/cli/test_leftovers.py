"""What stays on a host is said at the end of every command that closes hosts, with code 3."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from iolab.cli.commands import COMMANDS
from iolab.errors import ExitCode
from iolab.hosts.push import AGENT_VARIABLE, agent_binary
from tests.cli.command_line import environment
from tests.cli.in_process import call
from tests.facts import tells
from tests.fakes.untidy_agent import untidy_agent
from tests.processes import run_program

STUDY = """
format = 1
id = "untidy"
[[workload]]
id = "read"
engine = "native"
rw = "randread"
bs = "4k"
filesize = "4m"
[method]
warmup = "0s"
runtime = "1s"
settle = "0s"
idle_watch = 0
generator_limit = false
"""

WITHOUT_HOSTS = {
    *("init", "check", "import", "show", "explain", "report", "export", "serve", "compare"),
    *("history", "reference", "audit", "predict", "choose", "studies", "ls", "rm"),
}
"""Commands that reach no host, or only with options that stand below; all others are tried."""


@pytest.fixture
def agent(tmp_path: Path) -> dict[str, str]:
    program = untidy_agent(tmp_path / "agent", agent_binary())
    return {AGENT_VARIABLE: str(program)}


def is_told(done: subprocess.CompletedProcess[str]) -> bool:
    return tells(
        " ".join(done.stderr.split()), "Left behind", "/mnt/t/moved", "iolab clean --path /mnt/t"
    )


def commands(tmp_path: Path) -> dict[str, list[str | Path]]:
    """A command line for each command that acts on hosts."""
    study = tmp_path / "study.toml"
    study.write_text(STUDY)
    inventory = tmp_path / "hosts.toml"
    inventory.write_text('format = 1\n[[host]]\nname = "here"\nkind = "local"\n')
    path: list[str | Path] = ["--path", tmp_path]
    return {
        "run": ["run", study, *path, "--out", tmp_path / "session", "--quiet"],
        "plan": ["plan", study, *path],
        "doctor": ["doctor", *path],
        "doctor --hosts": ["doctor", *path, "--hosts", inventory],
        "clean": ["clean", *path, "--yes"],
        # So large that its hosts are left before it measures, which takes it half a minute.
        "calibrate": ["calibrate", *path, "--size", "500t", "--out", tmp_path / "calibrated"],
    }


def test_every_command_that_reaches_hosts_says_what_stays(
    tmp_path: Path, agent: dict[str, str]
) -> None:
    for name, words in commands(tmp_path).items():
        done = call(*words, env=agent)
        assert (name, done.returncode) == (name, ExitCode.HOST), done.stderr
        assert is_told(done), (name, done.stderr)
    tried = {name.split()[0] for name in commands(tmp_path)}
    # They measure by the same function as `run`.
    assert tried | {"demo", "bench", "resume"} | WITHOUT_HOSTS == set(COMMANDS)


def test_a_resumed_session_says_it_too(tmp_path: Path, agent: dict[str, str]) -> None:
    honest = call(*commands(tmp_path)["run"])
    assert (honest.returncode, "Left behind" in honest.stderr) == (ExitCode.OK, False)
    session = tmp_path / "session"
    (run,) = (session / "points").glob("*/run-1")
    run.rename(tmp_path / "lost")
    done = call("resume", session, env=agent)
    assert (done.returncode, is_told(done)) == (ExitCode.HOST, True), done.stderr
    assert json.loads((session / "session.json").read_text())["leftover_texts"]


def test_nothing_is_said_where_nothing_stays(tmp_path: Path) -> None:
    honest = commands(tmp_path)
    del honest["run"]  # the session above that is resumed
    for name, words in honest.items():
        assert "Left behind" not in call(*words).stderr, name


SCRIPT = """
import asyncio, sys, warnings
import iolab
study, path, out, loop = sys.argv[1:]
def measured():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        session = iolab.run(study, path=path, out=out)
    told = [str(one.message) for one in seen if one.category is iolab.LeftoverWarning]
    assert list(session.leftover_texts) == told, told
    assert "/mnt/t/moved" in told[0]
async def in_notebook():
    measured()
if loop == "loop":
    asyncio.run(in_notebook())
else:
    measured()
"""


@pytest.mark.parametrize("loop", ["loop", "none"])
def test_python_warns_and_the_session_has_it(
    tmp_path: Path, agent: dict[str, str], loop: str
) -> None:
    study = tmp_path / "study.toml"
    study.write_text(STUDY)
    script = tmp_path / "measure.py"
    script.write_text(SCRIPT)
    words = [sys.executable, *map(str, (script, study, tmp_path, tmp_path / "session", loop))]
    done = run_program(words, env=environment(agent))
    assert done.returncode == 0, done.stderr
