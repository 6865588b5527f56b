"""Clients that do not get the processors that they ask for: each is told, and what it costs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.sessions import iolab, shown, write_study
from tests.e2e.targets import tmpfs, xfs_on_loop
from tests.needs import ROOT, do_without, require

pytestmark = [pytest.mark.e2e, pytest.mark.long]

GROUPS_OF_1 = Path("/sys/fs/cgroup/cpu")
GROUPS_OF_2 = Path("/sys/fs/cgroup")
TENTH_US, PERIOD_US = 10_000, 100_000
BUSY_LOOPS = 3
REMOVAL_LIMIT_S = 10.0
JOIN = (
    "import os,sys;open(sys.argv[1],'w').write(str(os.getpid()));"
    "os.execvp(sys.argv[2],sys.argv[2:])"
)

STUDY = """
format = 1
id = "starved"

[[workload]]
id = "read"
rw = "randread"
bs = "4k"
iodepth = 1
numjobs = 1
filesize = "32m"

[method]
warmup = "0s"
runtime = "3s"
settle = "0s"
idle_watch = 0
generator_limit = false

[[host]]
name = "c1"
kind = "command"
command = {command}
"""


@pytest.fixture(scope="module")
def target() -> Iterator[Path]:
    """Its blocks lie in memory, so that the load wants a processor most of the time."""
    with tmpfs(512 << 20) as memory, xfs_on_loop(320 << 20, memory) as made:
        yield made.path


def judged(
    target: Path, folder: Path, engine: str, command: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """What each check says of a session on a host reached by that prefix."""
    study = write_study(folder, STUDY.format(command=json.dumps(command)))
    session = folder / "session"
    iolab("run", study, "--engine", engine, "--path", target, "--out", session)
    (result,) = shown(session)["results"]
    return {one["code"]: one for one in result["verdict"]["checks"]}


@contextmanager
def quota_of_a_tenth() -> Iterator[Path]:
    """A control group that may use a tenth of a core; the file by which a process joins it."""
    require(ROOT)
    name = f"iolab-test-{os.getpid()}"
    if (GROUPS_OF_1 / "cpu.cfs_quota_us").exists():
        group = GROUPS_OF_1 / name
        group.mkdir()
        (group / "cpu.cfs_period_us").write_text(str(PERIOD_US), encoding="ascii")
        (group / "cpu.cfs_quota_us").write_text(str(TENTH_US), encoding="ascii")
    elif "cpu" in _words(GROUPS_OF_2 / "cgroup.subtree_control"):
        group = GROUPS_OF_2 / name
        group.mkdir()
        (group / "cpu.max").write_text(f"{TENTH_US} {PERIOD_US}", encoding="ascii")
    else:
        do_without("needs the cpu controller of control groups")
    try:
        yield group / "cgroup.procs"
    finally:
        give_up = time.monotonic() + REMOVAL_LIMIT_S
        while group.exists() and time.monotonic() < give_up:
            with suppress(OSError):
                group.rmdir()
            time.sleep(0.1)


def _words(file: Path) -> list[str]:
    return file.read_text(encoding="ascii").split() if file.exists() else []


@contextmanager
def busy_loops(core: int) -> Iterator[None]:
    """Three processes that keep a core busy."""
    loop = ["taskset", "-c", str(core), sys.executable, "-S", "-c", "while True: pass"]
    loops = [subprocess.Popen(loop) for _ in range(BUSY_LOOPS)]
    try:
        yield
    finally:
        for one in loops:
            one.kill()
            one.wait()


@pytest.mark.parametrize("engine", ["fio", "native"])
def test_a_quota_that_stops_the_client_is_told(target: Path, tmp_path: Path, engine: str) -> None:
    with quota_of_a_tenth() as door:
        prefix = [sys.executable, "-S", "-c", JOIN, str(door)]
        checks = judged(target, tmp_path, engine, prefix)
    throttled = checks["client-throttled"]
    assert throttled["level"] in {"indicative", "invalid"}, throttled
    assert throttled["evidence"]["quota_cores"] == 0.1
    assert door.parent.name in throttled["message"]
    assert throttled["evidence"]["throttled_periods"] > 0
    assert throttled["evidence"]["wait_share"] > 0.0


@pytest.mark.alone  # Its loops would take the core from whatever ran beside it.
@pytest.mark.parametrize("engine", ["fio", "native"])
def test_a_client_on_a_core_that_others_keep_busy_is_told(
    target: Path, tmp_path: Path, engine: str
) -> None:
    require("taskset")
    core = max(os.sched_getaffinity(0))
    with busy_loops(core):
        checks = judged(target, tmp_path, engine, ["taskset", "-c", str(core)])
    starved = checks["client-starved"]
    assert starved["level"] in {"indicative", "invalid"}, starved
    assert starved["evidence"]["wait_share"] >= 0.05
    assert starved["evidence"]["allowed_cores"] == 1
    assert checks["client-throttled"]["level"] in {None, "valid"}


def test_a_client_with_all_cores_and_no_quota_is_not_throttled(
    target: Path, tmp_path: Path
) -> None:
    checks = judged(target, tmp_path, "fio", ["env"])
    assert checks["client-throttled"]["level"] in {None, "valid"}, checks["client-throttled"]
    starved = checks["client-starved"]
    assert starved["evidence"]["allowed_cores"] in {None, len(os.sched_getaffinity(0))}
