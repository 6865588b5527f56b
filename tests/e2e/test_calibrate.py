"""`iolab calibrate` with real fio and the real agent."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from iolab.errors import ExitCode
from tests.cli.command_line import command, environment
from tests.e2e.left import await_none_on, engines_on
from tests.e2e.sessions import iolab
from tests.e2e.targets import xfs_on_loop

pytestmark = [pytest.mark.e2e, pytest.mark.long]


def test_two_pairs_and_the_ceilings(tmp_path: Path) -> None:
    del tmp_path
    with xfs_on_loop(512 << 20) as target:
        words = ("--size", "16m", "--pairs", "2", "--seconds", "1", "--iodepth", "4", "--json")
        done = iolab("calibrate", "--path", target.path, *words)
        await_none_on(target.path)
    document = json.loads(done.stdout)
    order = [(one["pair"], one["engine"]) for one in document["trials"]]
    assert order == [(1, "fio"), (1, "native"), (2, "native"), (2, "fio")]
    assert all(one["iops"] > 0 and one["cpu_ns_per_io"] > 0 for one in document["trials"])
    rows = {row["key"]: row for row in document["rows"]}
    assert rows["iops"]["ratio"] == pytest.approx(rows["iops"]["native"] / rows["iops"]["fio"])
    engines = {one["engine"]: one for one in document["engines"]}
    assert engines["native"]["ceiling_iops"] > rows["iops"]["native"]
    assert engines["fio"]["ceiling_iops"] > 0
    assert engines["fio"]["version"].startswith("fio-")


def test_what_cannot_be_asked_for_is_refused_all_at_once(tmp_path: Path) -> None:
    words = ("--rw", "sideways", "--bs", "4x", "--size", "0", "--ioengine", "rbd")
    done = iolab("calibrate", "--path", tmp_path, *words, expect=2)
    for wrong in ("'sideways'", "'4x'", "'0'", "'rbd'"):
        assert wrong in done.stderr


def test_one_io_at_a_time_is_no_depth(tmp_path: Path) -> None:
    done = iolab("calibrate", "--path", tmp_path, "--ioengine", "psync", expect=2)
    assert "--ioengine psync keeps one I/O in flight, and --iodepth is 32" in done.stderr


def test_a_path_that_is_none_is_told_in_a_sentence(tmp_path: Path) -> None:
    done = iolab("calibrate", "--path", tmp_path / "missing", expect=3)
    assert "No such file or directory" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, ExitCode.INTERRUPTED), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_nothing_stays_when_it_is_ended(tmp_path: Path, number: signal.Signals, code: int) -> None:
    words = ("--size", "8m", "--seconds", "60", "--iodepth", "1")
    target = tmp_path / "target"
    target.mkdir()
    process = subprocess.Popen(
        command("calibrate", "--path", target, *words),
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + 60
        while not _runs_fio(target):
            assert time.monotonic() < end
            time.sleep(0.1)
        process.send_signal(number)
        assert process.wait(20) == code
    finally:
        process.kill()
        process.wait()
    await_none_on(target, 15)


def _runs_fio(target: Path) -> bool:
    return any(b"fio" in Path(f"/proc/{pid}/comm").read_bytes() for pid in engines_on(target))
