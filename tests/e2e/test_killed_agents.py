"""Agents that are killed under a running engine: nothing works on, files are swept or named."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from iolab.errors import ExitCode
from tests.agent.speaker import children_of, until
from tests.e2e.left import engines_on, ours_on
from tests.e2e.sessions import IOLAB, iolab, write_study
from tests.facts import tells
from tests.needs import require

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
STUDY = """
format = 1
id = "killed"
[[workload]]
id = "read"
rw = "randread"
bs = "4k"
numjobs = 2
filesize = "4m"
[method]
warmup = "0s"
runtime = "60s"
settle = "0s"
idle_watch = 0
generator_limit = false
on_failure = "stop"
"""


@pytest.fixture
def target() -> Iterator[Path]:
    require("fio", "root")
    path = ROOT / "scratch" / f"killed-{os.getpid()}"
    path.mkdir(parents=True)
    yield path
    assert (ours_on(path), engines_on(path)) == ([], [])
    path.rmdir()


def start(target: Path, folder: Path) -> tuple[subprocess.Popen[str], dict[str, int]]:
    """A session whose engine is at work, and who could be killed of it."""
    study = write_study(folder, STUDY)
    words: list[str | Path] = ["run", study, "--path", target, "--out", folder / "session"]
    controller = subprocess.Popen([IOLAB, *words], stderr=subprocess.PIPE, text=True)
    assert until(lambda: len(engines_on(target)) >= 3, 120)
    (keeper,) = children_of(controller.pid)
    (agent,) = children_of(keeper)
    return controller, {"controller": controller.pid, "keeper": keeper, "agent": agent}


def test_kills_of_all_leave_no_engine_and_clean_removes_the_rest(
    target: Path, tmp_path: Path
) -> None:
    """The orders in which they may be killed are those of tests/agent/test_end.py."""
    controller, pids = start(target, tmp_path)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids.values():
            os.kill(pid, number)
    controller.communicate()
    assert until(lambda: engines_on(target) == [])
    assert ours_on(target) == ["iolab-scratch-local"]

    asked: list[str | Path] = ["--path", target, "--json"]
    # Whether the machine is otherwise ready is not the matter here.
    doctor = subprocess.run(
        [IOLAB, "doctor", *asked], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
    )
    found = json.loads(doctor.stdout)["findings"]
    (left,) = [item for item in found if item["what"] == "left by killed sessions"]
    assert tells(left["message"], "1 scratch folder")

    for more, removed in ((), False), (("--yes",), True):
        told = json.loads(iolab("clean", *asked, *more).stdout)
        (host,) = told["hosts"]
        (folder,) = host["folders"]
        assert folder["dir"] == str(target / "iolab-scratch-local")
        assert (folder["bytes"] > 0, host["removed"]) == (True, removed)
        assert ours_on(target) == ([] if removed else ["iolab-scratch-local"])


def test_the_agent_of_the_last_run_is_swept_after(target: Path, tmp_path: Path) -> None:
    controller, pids = start(target, tmp_path)
    os.kill(pids["agent"], signal.SIGKILL)
    _, said = controller.communicate()
    assert controller.returncode == ExitCode.HOST, said
    assert "iolab clean" not in said


def test_clean_leaves_a_living_session_alone(target: Path, tmp_path: Path) -> None:
    controller, pids = start(target, tmp_path)
    told = json.loads(iolab("clean", "--path", target, "--yes", "--json").stdout)
    assert [host["folders"] for host in told["hosts"] if host["folders"]] == []
    assert set(pids.values()) <= {controller.pid, *below(controller.pid)}
    controller.send_signal(signal.SIGINT)
    controller.communicate()
    assert controller.returncode == ExitCode.INTERRUPTED


def below(pid: int) -> set[int]:
    children = children_of(pid)
    return {*children, *(one for child in children for one in below(child))}
