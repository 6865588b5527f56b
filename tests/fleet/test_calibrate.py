"""`iolab calibrate --hosts` over ssh: all hosts in step, and nothing stays on any of them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from iolab.errors import ExitCode
from tests.fleet.bed import Bed
from tests.fleet.test_session import iolab

pytestmark = [pytest.mark.e2e, pytest.mark.long]

IOLAB = Path(sys.executable).with_name("iolab")
SMALL = ("--size", "4m", "--iodepth", "4")


def assert_alone(fleet: Bed) -> None:
    for name in fleet.specs:
        fleet.wait_until_alone(name)
        assert list((fleet.fleet.folder(name) / "target").iterdir()) == []


def begun(fleet: Bed, home: Path, seconds: int) -> subprocess.Popen[bytes]:
    """A calibration whose first run goes on on every host."""
    words = ["calibrate", "--hosts", fleet.inventory, "--seconds", seconds, *SMALL]
    process = subprocess.Popen(
        [str(IOLAB), *map(str, words)],
        env={"HOME": str(home), "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"},
        stdout=subprocess.DEVNULL,
        stderr=(home / "log").open("wb"),
    )
    end = time.monotonic() + 60
    while not all("fio" in fleet.sessions(name).values() for name in fleet.specs):
        assert process.poll() is None, (home / "log").read_text("utf-8")
        assert time.monotonic() < end
        time.sleep(0.1)
    return process


def test_three_hosts_in_step_by_host_and_together(fleet: Bed, tmp_path: Path) -> None:
    words = ("--pairs", "2", "--seconds", "1", *SMALL, "--json")
    done = iolab("calibrate", "--hosts", fleet.inventory, *words, home=tmp_path)
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert [host["host"] for host in made["hosts"]] == ["c01", "c02", "c03"]
    order = [(1, "fio"), (1, "native"), (2, "native"), (2, "fio")]
    for part in (made, *made["hosts"]):
        assert [(one["pair"], one["engine"]) for one in part["trials"]] == order
        assert all(one["ceiling_iops"] > 0 for one in part["engines"])
    for number, whole in enumerate(made["trials"]):
        parts = [host["trials"][number]["iops"] for host in made["hosts"]]
        assert whole["iops"] == pytest.approx(sum(parts))
    assert {one["about"] for one in made["means"]} == {"IOPS", "latency", "CPU", "limit"}
    assert_alone(fleet)


def test_ctrl_c_leaves_nothing_on_any_host(fleet: Bed, tmp_path: Path) -> None:
    process = begun(fleet, tmp_path, 60)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == ExitCode.INTERRUPTED
    assert_alone(fleet)


def test_a_host_that_is_lost_ends_it_everywhere(fleet: Bed, tmp_path: Path) -> None:
    process = begun(fleet, tmp_path, 60)
    try:
        fleet.kill_sshd("c02")
        assert process.wait(60) == ExitCode.HOST
    finally:
        fleet.start_sshd("c02")
    told = (tmp_path / "log").read_text("utf-8")
    assert "c02" in told
    assert "Traceback" not in told
    assert_alone(fleet)


def test_hosts_that_cannot_be_calibrated_are_all_told(tmp_path: Path) -> None:
    inventory = tmp_path / "hosts.toml"
    lines = ("format = 1", '[[host]]\nname = "a"', '[[host]]\nname = "b"')
    inventory.write_text("\n".join(lines), encoding="utf-8")
    done = iolab("calibrate", "--hosts", inventory, home=tmp_path)
    assert done.returncode == ExitCode.STUDY
    assert "Host 'a' has no path." in done.stderr
    assert "Host 'b' has no path." in done.stderr
