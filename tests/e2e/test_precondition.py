"""Whole sessions on real block devices of our own: purged, filled, steady, killed and resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.devices import Spare, spare_loop, write_at
from tests.e2e.sessions import IOLAB, iolab
from tests.e2e.targets import command

pytestmark = [pytest.mark.e2e, pytest.mark.long]

STUDY = """
format = 1
id = "device"
[[workload]]
id = "w"
rw = "randwrite"
bs = "4k"
numjobs = 2
filesize = "8m"
rate_iops = 500
[[workload]]
id = "r"
rw = "randread"
bs = "4k"
filesize = "8m"
rate_iops = 500
[method]
warmup = 0
runtime = {runtime}
settle = 0
idle_watch = 0
generator_limit = false
[precondition]
{wish}
"""
PATIENCE_S = 60


@pytest.fixture
def spare() -> Iterator[Spare]:
    with spare_loop() as spare:
        yield spare


def session_of(
    spare: Spare, folder: Path, wish: str, *, expect: int = 0, runtime: str = "1"
) -> Path:
    study = folder / "device.toml"
    study.write_text(STUDY.format(wish=wish, runtime=runtime), encoding="utf-8")
    words = ("--device", spare.path, "--serial", spare.serial, "--out", folder / "S")
    done = iolab("run", study, *words, expect=expect)
    (folder / "said").write_text(done.stderr, encoding="utf-8")
    return folder / "S"


def ledger(session: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((session / "ledger.json").read_text(encoding="utf-8"))
    return dict(document["ledger"])


def states(session: Path) -> dict[str, dict[str, Any]]:
    """The state in which each workload's run began."""
    found = {}
    for path in session.glob("points/*/run-1/manifest.json"):
        manifest = json.loads(path.read_text(encoding="utf-8"))
        (state,) = manifest["states"]
        found[manifest["run"]["point"]["workload"]] = state
    return found


def test_a_device_is_purged_and_filled_and_its_ledger_agrees_with_its_counters(
    spare: Spare, tmp_path: Path
) -> None:
    write_at(spare.path, 40 << 20, os.urandom(8 << 20))
    session = session_of(spare, tmp_path, 'purge = "discard"\nfill = 2')
    # The old content, beyond the region that is measured, is gone; the region is written.
    assert 16 << 20 <= spare.allocated_bytes < 17 << 20
    (target,) = ledger(session)["targets"]
    write, read = target["runs"]
    assert write["engine_bytes"] == write["device_bytes"] > 0
    assert (read["engine_bytes"], read["device_bytes"]) == (0, 0)
    assert target["written_bytes"] == 2 * (16 << 20) + write["engine_bytes"]
    assert (target["pending_write"], target["filled"], target["serial"]) == ("", 2.0, spare.serial)
    assert states(session)["w"]["written_bytes"] == 32 << 20
    said = (tmp_path / "said").read_text(encoding="utf-8")
    assert "purge: discard" in said
    assert said.index("purge: discard") < said.index("precondition:") < said.index(": measure")
    levels = {
        check["code"]: check["level"]
        for path in session.glob("points/*/run-1/manifest.json")
        for check in json.loads(path.read_text())["analysis"]["result"]["verdict"]["checks"]
    }
    assert levels["unwritten-extents"] == "valid"
    assert levels["unequal-state"] == "valid"


def test_each_workload_begins_anew(spare: Spare, tmp_path: Path) -> None:
    wish = 'purge = "discard"\nrestore = "each-workload"'
    found = states(session_of(spare, tmp_path, wish))
    assert {state["written_bytes"] for state in found.values()} == {16 << 20}


@pytest.mark.alone
def test_rounds_go_on_until_they_are_steady(spare: Spare, tmp_path: Path) -> None:
    session = session_of(spare, tmp_path, "steady = true\nround = 1")
    (series,) = ledger(session)["rounds"]
    assert series["workload"] == "w"
    assert 5 <= len(series["iops"]) <= 25
    # fio keeps to its rate: two jobs of 500 a second.
    assert series["verdict"]["average"] == pytest.approx(1000, rel=0.1)
    assert series["verdict"]["achieved"]
    found = states(session)
    assert found["w"]["steady"] is True
    assert found["r"]["steady"] is None


def test_other_devices_are_refused_and_nothing_is_written(spare: Spare, tmp_path: Path) -> None:
    command("mkswap", spare.path)
    before = spare.image.read_bytes()
    study = tmp_path / "device.toml"
    study.write_text(STUDY.format(wish='purge = "discard"', runtime="1"), encoding="utf-8")
    words = ("--device", spare.path, "--serial", "S5-OTHER", "--out", tmp_path / "S")
    for verb in ("plan", "run"):
        done = iolab(verb, study, *words[: 4 if verb == "plan" else 6], expect=3)
        assert "swap" in done.stderr
        assert "S5-OTHER" in done.stderr
    assert "DESTROY" not in done.stdout
    assert not (tmp_path / "S").exists()
    assert spare.image.read_bytes() == before


def test_the_plan_shows_what_is_destroyed(spare: Spare, tmp_path: Path) -> None:
    study = tmp_path / "device.toml"
    study.write_text(STUDY.format(wish='purge = "discard"', runtime="1"), encoding="utf-8")
    words = ("--device", spare.path, "--serial", spare.serial)
    document = json.loads(iolab("plan", study, *words, "--json").stdout)
    (sentence,) = document["destroys"]
    assert spare.path in sentence
    assert any("purge by discard" in reason["message"] for reason in document["budget"]["reasons"])
    assert spare.allocated_bytes == 0


@pytest.mark.parametrize("phase", ["precondition", "measure"])
def test_a_session_that_is_killed_leaves_nothing_and_goes_on_from_the_same_state(
    spare: Spare, tmp_path: Path, phase: str
) -> None:
    study = tmp_path / "device.toml"
    # Rounds go on for five seconds and more, so that the preparation is met.
    rounds = "\nsteady = true\nround = 1" if phase == "precondition" else ""
    wish = f'purge = "discard"\nfill = 3{rounds}'
    study.write_text(STUDY.format(wish=wish, runtime="1"), encoding="utf-8")
    words = ("--device", spare.path, "--serial", spare.serial, "--out", str(tmp_path / "S"))
    running = subprocess.Popen(
        [str(IOLAB), "run", str(study), *words], stderr=subprocess.PIPE, text=True
    )
    assert running.stderr is not None
    assert any(phase in line for line in running.stderr)
    running.send_signal(signal.SIGKILL)
    running.wait(PATIENCE_S)
    running.stderr.close()
    await_free(spare)
    cut_short = ledger(tmp_path / "S")["targets"][0]["pending_write"]
    assert (cut_short == "preparing") == (phase == "precondition")
    iolab("resume", tmp_path / "S")
    assert set(states(tmp_path / "S")) == {"w", "r"}
    (target,) = ledger(tmp_path / "S")["targets"]
    assert (target["pending_write"], target["foreign_bytes"], target["unknown"]) == ("", 0, None)
    assert target["filled"] == 3.0


def test_what_others_write_between_two_segments_is_noticed(spare: Spare, tmp_path: Path) -> None:
    session = session_of(spare, tmp_path, 'purge = "discard"')
    (reading,) = [
        path.parents[1]
        for path in session.glob("points/*/run-1/manifest.json")
        if json.loads(path.read_text())["run"]["point"]["workload"] == "r"
    ]
    for path in sorted(reading.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    write_at(spare.path, 0, os.urandom(1 << 20))
    done = iolab("resume", session)
    assert "Somebody else wrote 1 MiB" in done.stderr
    assert "purge: discard" in done.stderr


def await_free(spare: Spare) -> None:
    """Nobody holds the device any more: it can be had alone."""
    for _ in range(PATIENCE_S * 10):
        try:
            os.close(os.open(spare.path, os.O_RDONLY | os.O_EXCL))
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError(f"{spare.path} is still held")
