"""Sessions that verify: what one run wrote, the next finds, or finds lost; also after a crash.

Every fault is planted between two runs of a real session, in its files or below its device.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from iolab.core.events import (
    Event,
    IntervalReported,
    RunFinished,
    SessionPhase,
    SessionPhaseStarted,
    SessionStatus,
)
from iolab.errors import EngineError
from tests.e2e.devices import Spare, spare_loop
from tests.e2e.faulty import faulty_file
from tests.e2e.left import await_none_on, kill_engines
from tests.e2e.sessions import IOLAB, descendants, iolab, result_of, shown, write_study
from tests.e2e.targets import command, xfs_on_loop
from tests.e2e.watched import run_watched

pytestmark = [pytest.mark.e2e, pytest.mark.long]

BLOCK, SIZE = 4096, 4 << 20
WORKLOAD = """
[[workload]]
id = "{id}"
engine = "native"
rw = "{rw}"
bs = "4k"
iodepth = 8
filesize = "4m"
verify = true
"""
WRITE, READ, AGAIN = (
    WORKLOAD.format(id=name, rw=rw)
    for name, rw in (("write", "randwrite"), ("read", "randread"), ("again", "randread"))
)
HEAD = 'format = 1\nid = "verified"\n'
METHOD = """
[method]
warmup = "0s"
runtime = "2s"
settle = "0s"
idle_watch = 0
generator_limit = false
"""
"""Two seconds: some writers are killed when the first of theirs was seen."""

STUDY = f"{HEAD}{WRITE}{READ}{METHOD}"


@pytest.fixture(scope="module")
def disk() -> Iterator[Path]:
    """Fast on any machine: every block is to be looked at within a second."""
    with xfs_on_loop(400 << 20, backing=Path("/dev/shm")) as made:
        yield made.path


@pytest.fixture
def target(disk: Path) -> Iterator[Path]:
    yield disk
    await_none_on(disk)


@dataclass
class Planter:
    """Knows what the file held before it was written, and plants faults after it was read."""

    target: Path
    rolls_back: int = 1
    kills: bool = False
    before: bytes = b""
    lost: list[int] = field(default_factory=list)
    flipped: int = -1

    @property
    def file(self) -> Path:
        (found,) = self.target.glob("iolab-scratch-*/s4mv4k.0.0")
        return found

    def __call__(self, event: Event) -> None:
        match event:
            case SessionPhaseStarted(phase=SessionPhase.MEASURE, run=run) if run and _writes(
                run.point.workload
            ):
                self.before = self.file.read_bytes()
            case IntervalReported(run=run) if self.kills and _writes(run.point.workload):
                kill_engines(self.target)
            case RunFinished(record=record) if record.run.point.workload == "read":
                self._plant()
            case _:
                pass

    def _plant(self) -> None:
        now = self.file.read_bytes()
        places = range(0, SIZE, BLOCK)
        changed = [at for at in places if self.before[at:][:BLOCK] != now[at:][:BLOCK]]
        assert len(changed) > SIZE // BLOCK // 2
        self.flipped, *rest = changed
        self.lost = rest[:: len(rest) // self.rolls_back][: self.rolls_back]
        with self.file.open("r+b") as file:
            for at in self.lost:
                os.pwrite(file.fileno(), self.before[at:][:BLOCK], at)
            os.pwrite(file.fileno(), bytes([now[self.flipped + 700] ^ 8]), self.flipped + 700)
            os.fsync(file.fileno())


def _writes(workload: str) -> bool:
    return workload == "write"


def verdict_of(session: Path, workload: str) -> tuple[str, Mapping[str, Any], str]:
    """Level, evidence and sentence of the check that tells what blocks held."""
    result = result_of(shown(session), workload)
    (check,) = (one for one in result["verdict"]["checks"] if one["code"] == "verify-mismatch")
    return check["level"], check["evidence"], check["message"]


def assert_all_is_there(session: Path, workload: str) -> None:
    """A run that looked at every block at least once found nothing wrong."""
    level, evidence, _ = verdict_of(session, workload)
    assert (level, evidence["wrong"]) == ("valid", 0)
    assert evidence["checked"] >= SIZE // BLOCK


def test_what_was_lost_or_flipped_after_a_run_is_found_by_another(
    target: Path, tmp_path: Path
) -> None:
    session, planter = tmp_path / "session", Planter(target)
    study = write_study(tmp_path, f"{HEAD}{WRITE}{READ}{AGAIN}{METHOD}")
    assert run_watched(study, session, planter, path=target) is SessionStatus.DONE
    assert verdict_of(session, "write")[0] in ("valid", "n/a")
    assert_all_is_there(session, "read")
    level, evidence, message = verdict_of(session, "again")
    assert level == "invalid"
    assert evidence["stale"] > 0 < evidence["corrupt"]
    assert evidence["stale"] + evidence["corrupt"] == evidence["wrong"]
    (lost,) = planter.lost
    assert f"The block at {lost} of s4mv4k.0.0 is stale" in message
    assert f"The block at {planter.flipped} of s4mv4k.0.0 is corrupt" in message
    shown_text = " ".join(iolab("show", session).stdout.split())
    assert "stale" in shown_text
    assert "corrupt" in shown_text


def test_after_a_killed_writer_all_acknowledged_writes_are_known(
    target: Path, tmp_path: Path
) -> None:
    """More blocks fall back than could have been under way when it was killed."""
    session, planter = tmp_path / "session", Planter(target, kills=True, rolls_back=20)
    text = f'{HEAD}{WRITE}{READ}{AGAIN}{METHOD}on_failure = "skip-point"\n'
    study = write_study(tmp_path, text)
    run_watched(study, session, planter, path=target)
    assert result_of(shown(session), "write")["status"] == "failed"
    assert_all_is_there(session, "read")
    level, evidence, message = verdict_of(session, "again")
    assert level == "invalid"
    assert evidence["stale"] >= 20 - 8
    assert "is stale" in message


def test_a_session_resumed_after_a_killed_writer_begins_its_ledger_anew(
    target: Path, tmp_path: Path
) -> None:
    session = tmp_path / "session"
    study = write_study(tmp_path, STUDY + 'on_failure = "stop"\n')
    with pytest.raises(EngineError, match="killed by signal 9"):
        run_watched(study, session, Planter(target, kills=True), path=target)
    iolab("resume", session, "--quiet")
    assert verdict_of(session, "write")[0] in ("valid", "n/a")
    assert_all_is_there(session, "read")


def test_after_a_killed_agent_the_files_and_their_ledger_begin_anew(
    target: Path, tmp_path: Path
) -> None:
    session = tmp_path / "session"
    killed: list[int] = []

    def act(event: Event) -> None:
        if isinstance(event, IntervalReported) and _writes(event.run.point.workload) and not killed:
            killed.append(_agent())
            os.kill(killed[0], signal.SIGKILL)

    study = write_study(tmp_path, STUDY + 'on_failure = "retry"\n')
    assert run_watched(study, session, act, path=target) is SessionStatus.DONE
    assert result_of(shown(session), "write")["attempt"] == 2
    assert verdict_of(session, "write")[0] in ("valid", "n/a")
    assert_all_is_there(session, "read")


def _agent() -> int:
    """The agent that serves this process: below its keeper, and above its guard."""
    agents = {pid for pid, name in descendants(os.getpid()).items() if name == "iolab-agent"}
    keepers = {pid for pid in agents if _parent(pid) not in agents}
    (serving,) = (pid for pid in agents if _parent(pid) in keepers)
    return serving


def _parent(pid: int) -> int:
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    return int(stat.rpartition(")")[2].split()[1])


def test_a_device_is_filled_anew_where_its_ledger_went_with_the_controller(
    tmp_path: Path,
) -> None:
    session, study = tmp_path / "session", write_study(tmp_path, STUDY)
    with spare_loop(16 << 20) as spare:
        device = ["--device", spare.path, "--serial", spare.serial]
        words = [str(IOLAB), "run", str(study), *device, "--out", str(session), "--quiet"]
        controller = subprocess.Popen(words)
        try:
            _await(lambda: bool(list(session.glob("points/*/run-1/manifest.json"))))
        finally:
            controller.kill()
            controller.wait()
        iolab("resume", session, "--quiet")
    assert_all_is_there(session, "read")


def _await(seen: Callable[[], bool], limit_s: float = 60.0) -> None:
    end = time.monotonic() + limit_s
    while not seen():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_device_that_loses_a_write_is_caught(tmp_path: Path) -> None:
    session, lost = tmp_path / "session", 5 * BLOCK
    with faulty_file(SIZE) as below:
        path = command("losetup", "--find", "--show", below.path)
        try:

            def act(event: Event) -> None:
                match event:
                    case SessionPhaseStarted(phase=SessionPhase.MEASURE, run=run) if run:
                        is_lost = _writes(run.point.workload)
                        below.keeps = lambda at, length: (
                            max(lost - at, 0) if is_lost and at <= lost < at + length else length
                        )

            study = write_study(tmp_path, STUDY + "[target]\nallow_memory = true\n")
            run_watched(study, session, act, spare=Spare(path, str(below.path), below.path))
        finally:
            command("losetup", "--detach", path)
    level, evidence, message = verdict_of(session, "read")
    assert level == "invalid"
    assert evidence["stale"] > 0
    assert f"The block at {lost} of {Path(path).name} is stale" in message
    assert verdict_of(session, "write")[0] in ("valid", "n/a")
