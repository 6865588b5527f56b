"""Sessions whose scratch folder is copied, or moved by who owns the directory around it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from iolab.errors import ExitCode
from tests.agent.speaker import until
from tests.e2e.left import engines_on, ours_on
from tests.e2e.sessions import IOLAB, SESSION_LIMIT_S, iolab, write_study
from tests.needs import require

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
STUDY = """
format = 1
id = "moved"
[[workload]]
id = "write"
engine = "ENGINE"
rw = "randwrite"
bs = "4k"
filesize = "4m"
[method]
warmup = "0s"
runtime = "RUNTIME"
settle = "0s"
idle_watch = 0
generator_limit = false
on_failure = "stop"
"""


@pytest.fixture
def target() -> Iterator[Path]:
    require("fio", "root")
    path = ROOT / "scratch" / f"ownership-{os.getpid()}"
    path.mkdir(parents=True)
    yield path
    assert engines_on(path) == []
    shutil.rmtree(path)


def start(target: Path, folder: Path, engine: str, runtime: str) -> subprocess.Popen[str]:
    """A session whose engine is at work on its files."""
    text = STUDY.replace("ENGINE", engine).replace("RUNTIME", runtime)
    study = write_study(folder, text)
    words: list[str | Path] = ["run", study, "--path", target, "--out", folder / "session"]
    process = subprocess.Popen([IOLAB, *words], stderr=subprocess.PIPE, text=True)
    data = target / "iolab-scratch-local"
    assert until(lambda: any(data.glob("*.0.0")) and engines_on(target) != [], 120)
    return process


@pytest.mark.parametrize("engine", [pytest.param("fio", marks=pytest.mark.long), "native"])
def test_a_folder_that_is_moved_and_replaced_in_mid_run_fails_the_run(
    target: Path, tmp_path: Path, engine: str
) -> None:
    os.chown(target, 65534, -1)
    session = start(target, tmp_path, engine, "8s")
    time.sleep(3)  # It measures, or is about to.
    folder, moved, other = (target / name for name in ("iolab-scratch-local", "moved", "other"))
    (data,) = folder.glob("*.0.0")
    other.mkdir()
    precious = other / data.name
    precious.write_bytes(b"p" * data.stat().st_size)
    folder.rename(moved)
    folder.symlink_to(other)
    _, said = session.communicate(timeout=SESSION_LIMIT_S)
    assert session.returncode == ExitCode.HOST, said
    assert "was replaced" in " ".join(said.split())
    assert set(precious.read_bytes()) == {ord("p")}
    assert (moved.exists(), [path.name for path in other.iterdir()]) == (False, [data.name])


def test_clean_and_run_beside_a_copy_leave_the_living_session_alone(
    target: Path, tmp_path: Path
) -> None:
    session = start(target, tmp_path, "fio", "60s")
    copy = tmp_path / "copy"
    shutil.copytree(target, copy)
    told = json.loads(iolab("clean", "--path", copy, "--yes", "--json").stdout)
    assert [folder["dir"] for host in told["hosts"] for folder in host["folders"]] == [
        str(copy / "iolab-scratch-local")
    ]
    assert ours_on(copy) == []
    assert session.poll() is None
    assert engines_on(target) != []
    session.send_signal(signal.SIGINT)
    session.communicate(timeout=SESSION_LIMIT_S)
    assert (session.returncode, ours_on(target)) == (ExitCode.INTERRUPTED, [])
