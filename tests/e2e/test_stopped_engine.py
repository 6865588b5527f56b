"""Engines that something stops in mid-run are found; a disk that stands still is none of it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.acted_on import Running, descendants
from tests.e2e.targets import Target, command, xfs_on_loop
from tests.needs import ROOT, do_without, require

pytestmark = [pytest.mark.e2e, pytest.mark.long]

FREEZERS = (
    (Path("/sys/fs/cgroup/freezer"), "freezer.state", "FROZEN", "THAWED"),
    (Path("/sys/fs/cgroup/unified"), "cgroup.freeze", "1", "0"),
    (Path("/sys/fs/cgroup"), "cgroup.freeze", "1", "0"),
)


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with xfs_on_loop(512 << 20) as made:
        yield made


def stop(pids: list[int], for_s: float) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(for_s)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


def assert_stopped(checks: dict[str, dict[str, Any]], cause: str, least_s: float) -> None:
    check = checks["engine-stopped"]
    assert (check["level"], check["evidence"]["cause"]) == ("invalid", cause)
    assert check["evidence"]["stopped_s"] >= least_s
    others = {code for code, one in checks.items() if one["level"] == "indicative"}
    assert not others & {"startup-transient", "burst-credits", "periodic-rate"}


@pytest.mark.parametrize("engine", ["fio", "native"])
@pytest.mark.parametrize(("times", "each_s"), [(1, 2.0), (4, 0.6)])
def test_an_engine_stopped_by_a_signal_is_told(
    engine: str, times: int, each_s: float, target: Target, tmp_path: Path
) -> None:
    if engine == "fio":
        require("fio")
    running = Running(target.path, tmp_path, engine)
    pids = running.started()
    for _ in range(times):
        stop(pids, each_s)
        time.sleep(0.3)
    assert_stopped(running.checks(), "stopped", times * each_s / 2)


@pytest.mark.parametrize(
    "freezer",
    [one for one in FREEZERS if (one[0] / "cgroup.procs").exists()],
    ids=lambda one: str(one[0].name),
)
def test_a_frozen_control_group_is_told(
    freezer: tuple[Path, str, str, str], target: Target, tmp_path: Path
) -> None:
    require(ROOT)
    tree, name, frozen, thawed = freezer
    group = tree / f"iolab-test-{os.getpid()}"
    group.mkdir()
    try:
        if not (group / name).exists():
            do_without(f"the groups of {tree} cannot be frozen")
        running = Running(target.path, tmp_path, "native")
        for pid in running.started():
            (group / "cgroup.procs").write_text(str(pid))
        (group / name).write_text(frozen)
        time.sleep(2)
        (group / name).write_text(thawed)
        assert_stopped(running.checks(), "frozen", 1.0)
    finally:
        (group / name).write_text(thawed)
        group.rmdir()


def test_a_disk_that_stands_still_is_no_stopped_engine(target: Target, tmp_path: Path) -> None:
    require(ROOT, "fsfreeze")
    running = Running(target.path, tmp_path, "native")
    running.started()
    command("fsfreeze", "--freeze", target.path)
    try:
        time.sleep(2.5)
    finally:
        command("fsfreeze", "--unfreeze", target.path)
    check = running.checks()["engine-stopped"]
    assert check["level"] == "valid", check


def test_an_agent_that_is_stopped_beside_its_engine_is_no_stopped_engine(
    target: Target, tmp_path: Path
) -> None:
    running = Running(target.path, tmp_path, "native")
    engine = running.started()
    agents = [pid for pid in descendants(running.process.pid) if pid not in engine]
    stop(agents, 2.0)
    check = running.checks()["engine-stopped"]
    assert check["level"] == "valid", check


def test_a_session_that_stood_as_a_whole_is_told(target: Target, tmp_path: Path) -> None:
    running = Running(target.path, tmp_path, "native")
    running.started()
    stop(descendants(running.process.pid), 2.0)
    check = running.checks()["engine-stopped"]
    assert check["level"] == "invalid", check
