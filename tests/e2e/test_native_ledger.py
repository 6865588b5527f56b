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

from iolab.model.event import Event, IntervalSeen, Phase, PhaseStarted, RunFinished, SessionStatus
from tests.e2e.devices import Spare, spare_loop
from tests.e2e.faulty import faulty_file
from tests.e2e.left import await_none_on, kill_engines
from tests.e2e.sessions import IOLAB, descendants, iolab, result_of, shown, write_study
from tests.e2e.targets import command
from tests.e2e.watched import run_watched

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
BLOCK, SIZE = 4096, 4 << 20
STUDY = """
format = 1
id = "verified"
[[workload]]
id = "write"
engine = "native"
rw = "randwrite"
bs = "4k"
iodepth = 8
filesize = "4m"
verify = true
[[workload]]
id = "read"
engine = "native"
rw = "randread"
bs = "4k"
iodepth = 8
filesize = "4m"
verify = true
[method]
warmup = "0s"
runtime = "2s"
settle = "0s"
"""


@pytest.fixture
def target() -> Iterator[Path]:
    path = ROOT / "scratch" / f"ledger-{os.getpid()}"
    path.mkdir(parents=True)
    yield path
    await_none_on(path)
    path.rmdir()


@dataclass
class Planter:
    """Remembers what the file held before the writing run, and plants after it."""

    target: Path
    flips: bool = False
    rolls_back: int = 0
    kills: bool = False
    before: bytes = b""
    planted: list[int] = field(default_factory=list)

    @property
    def file(self) -> Path:
        (found,) = self.target.glob("iolab-scratch-*/s4mv4k.0.0")
        return found

    def __call__(self, event: Event) -> None:
        match event:
            case PhaseStarted(phase=Phase.MEASURE, run=run) if run and _writes(run.point.workload):
                self.before = self.file.read_bytes()
            case IntervalSeen(run=run) if self.kills and _writes(run.point.workload):
                kill_engines(self.target)
            case RunFinished(record=record) if _writes(record.run.point.workload):
                self._plant()
            case _:
                pass

    def _plant(self) -> None:
        now = self.file.read_bytes()
        places = range(0, SIZE, BLOCK)
        changed = [at for at in places if self.before[at:][:BLOCK] != now[at:][:BLOCK]]
        assert len(changed) > SIZE // BLOCK // 2
        with self.file.open("r+b") as file:
            for at in changed[:: len(changed) // max(self.rolls_back, 1)][: self.rolls_back]:
                os.pwrite(file.fileno(), self.before[at:][:BLOCK], at)
                self.planted.append(at)
            if self.flips:
                os.pwrite(file.fileno(), bytes([now[changed[0] + 700] ^ 8]), changed[0] + 700)
                self.planted.append(changed[0])
            os.fsync(file.fileno())


def _writes(workload: str) -> bool:
    return workload == "write"


def verdict_of(session: Path, workload: str) -> tuple[str, Mapping[str, Any], str]:
    """Level, evidence and sentence of the check that tells what blocks held."""
    result = result_of(shown(session), workload)
    (check,) = (one for one in result["verdict"]["checks"] if one["code"] == "wrong-blocks")
    return check["level"], check["evidence"], check["says"]


def test_what_a_run_wrote_the_next_one_finds(target: Path, tmp_path: Path) -> None:
    session = tmp_path / "session"
    planter = Planter(target)
    study = write_study(tmp_path, STUDY)
    assert run_watched(study, session, planter, path=target) is SessionStatus.DONE
    level, evidence, _ = verdict_of(session, "read")
    assert (level, evidence["wrong"]) == ("valid", 0)
    assert evidence["checked"] >= SIZE // BLOCK


def test_a_lost_write_between_two_runs_is_stale(target: Path, tmp_path: Path) -> None:
    session = tmp_path / "session"
    planter = Planter(target, rolls_back=1)
    run_watched(write_study(tmp_path, STUDY), session, planter, path=target)
    level, evidence, says = verdict_of(session, "read")
    assert (level, evidence["stale"]) == ("invalid", evidence["wrong"])
    assert evidence["stale"] > 0
    (lost,) = planter.planted
    assert f"The block at {lost} of s4mv4k.0.0 is stale" in says
    assert verdict_of(session, "write")[0] == "valid"
    assert "stale" in iolab("show", session).stdout


def test_a_flipped_bit_between_two_runs_is_corrupt(target: Path, tmp_path: Path) -> None:
    session = tmp_path / "session"
    planter = Planter(target, flips=True)
    run_watched(write_study(tmp_path, STUDY), session, planter, path=target)
    level, evidence, says = verdict_of(session, "read")
    assert (level, evidence["corrupt"]) == ("invalid", evidence["wrong"])
    assert f"The block at {planter.planted[0]} of s4mv4k.0.0 is corrupt" in says


SKIPPING = 'on_failure = "skip-point"\n'


def test_after_a_killed_writer_all_that_was_acknowledged_is_there(
    target: Path, tmp_path: Path
) -> None:
    session = tmp_path / "session"
    planter = Planter(target, kills=True)
    run_watched(write_study(tmp_path, STUDY + SKIPPING), session, planter, path=target)
    level, evidence, _ = verdict_of(session, "read")
    assert (level, evidence["wrong"]) == ("valid", 0)
    assert evidence["checked"] >= SIZE // BLOCK
    assert shown(session)["results"][0]["status"] == "failed"


def test_after_a_killed_writer_a_lost_write_is_found(target: Path, tmp_path: Path) -> None:
    """More blocks fall back than could have been under way when it was killed."""
    session = tmp_path / "session"
    planter = Planter(target, kills=True, rolls_back=20)
    run_watched(write_study(tmp_path, STUDY + SKIPPING), session, planter, path=target)
    level, evidence, says = verdict_of(session, "read")
    assert (level, evidence["stale"]) == ("invalid", evidence["wrong"])
    assert evidence["stale"] >= 20 - 8
    assert "is stale" in says


def test_a_session_resumed_after_a_killed_writer_begins_its_ledger_anew(
    target: Path, tmp_path: Path
) -> None:
    session = tmp_path / "session"
    stopping = STUDY + 'on_failure = "stop"\n'
    killer = Planter(target, kills=True)
    with pytest.raises(Exception, match="killed by signal 9"):
        run_watched(write_study(tmp_path, stopping), session, killer, path=target)
    iolab("resume", session, "--quiet")
    for workload in ("write", "read"):
        level, evidence, _ = verdict_of(session, workload)
        assert level == "valid"
    assert evidence["checked"] >= SIZE // BLOCK


def test_after_a_killed_agent_the_files_and_their_ledger_begin_anew(
    target: Path, tmp_path: Path
) -> None:
    session = tmp_path / "session"
    killed: list[int] = []

    def act(event: Event) -> None:
        if isinstance(event, IntervalSeen) and _writes(event.run.point.workload) and not killed:
            killed.append(_agent())
            os.kill(killed[0], signal.SIGKILL)

    study = write_study(tmp_path, STUDY + 'on_failure = "retry"\n')
    assert run_watched(study, session, act, path=target) is SessionStatus.DONE
    assert result_of(shown(session), "write")["attempt"] == 2
    for workload in ("write", "read"):
        level, evidence, _ = verdict_of(session, workload)
        assert level == "valid"
    assert (evidence["wrong"], evidence["checked"] >= SIZE // BLOCK) == (0, True)


def _agent() -> int:
    """The agent that serves this process: the one below its keeper."""
    agents = {pid for pid, name in descendants(os.getpid()).items() if name == "iolab-agent"}
    (serving,) = (pid for pid in agents if _parent(pid) in agents)
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
    level, evidence, _ = verdict_of(session, "read")
    assert (level, evidence["wrong"], evidence["checked"] >= SIZE // BLOCK) == ("valid", 0, True)


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
                    case PhaseStarted(phase=Phase.MEASURE, run=run) if run:
                        is_lost = _writes(run.point.workload)
                        below.keeps = lambda at, length: (
                            max(lost - at, 0) if is_lost and at <= lost < at + length else length
                        )

            study = write_study(tmp_path, STUDY + "[target]\nallow_memory = true\n")
            run_watched(study, session, act, spare=Spare(path, str(below.path), below.path))
        finally:
            command("losetup", "--detach", path)
    level, evidence, says = verdict_of(session, "read")
    assert level == "invalid"
    assert evidence["stale"] > 0
    assert f"The block at {lost} of {Path(path).name} is stale" in says
    assert verdict_of(session, "write")[0] == "valid"
