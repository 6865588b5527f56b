"""The controller is killed six times in a sweep, and resumed: as if nothing had happened."""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from iolab.core.run import RunStatus
from iolab.store.reader import SessionReader
from tests.fleet.bed import Bed

pytestmark = [pytest.mark.e2e, pytest.mark.long]

IOLAB = Path(sys.executable).with_name("iolab")
KILLS = 6
SEED = 20
EARLY_S, LATE_S = (0.3, 2.5), (0.0, 0.5)
"""While hosts are connected and files laid out; and, a third of the kills, after a commit."""
LAST_LIMIT_S = 90.0
STUDY = """\
format = 1
id = "killed"
[[workload]]
id = "read"
rw = "randread"
bs = "4k"
iodepth = [1, 2, 4]
filesize = "2m"
[[workload]]
id = "write"
rw = "write"
bs = "64k"
filesize = "2m"
[method]
warmup = "0s"
runtime = "2s"
settle = "0s"
idle_watch = 0
generator_limit = false
repeats = 2
order = "randomised"
"""


def start(words: list[str | Path], home: Path) -> subprocess.Popen[bytes]:
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}
    log = (home / "log").open("ab")
    argv = [str(IOLAB), *map(str, words), "--quiet"]
    return subprocess.Popen(argv, env=environment, stdout=log, stderr=log)


def again(session: Path, begin: list[str | Path]) -> list[str | Path]:
    """How a user goes on: resume what has begun, else begin."""
    return ["resume", session] if (session / "session.json").exists() else begin


def committed(session: Path) -> dict[str, str]:
    """The digest of each manifest in place whose run is done."""
    return {
        str(path.relative_to(session)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in session.glob("points/*/run-?/manifest.json")
        if json.loads(path.read_bytes())["status"] == RunStatus.DONE
    }


def await_commit(session: Path, before: int) -> None:
    """Until a run more than so many is done."""
    deadline = time.monotonic() + LAST_LIMIT_S
    while len(committed(session)) <= before:
        assert time.monotonic() < deadline, "no run was done"
        time.sleep(0.05)


def test_six_kills_change_nothing(fleet: Bed, tmp_path: Path) -> None:
    dice = random.Random(SEED)  # noqa: S311 - moments, not secrets
    study, session = tmp_path / "killed.toml", tmp_path / "session"
    study.write_text(STUDY, encoding="utf-8")
    begin: list[str | Path] = ["run", study, "--hosts", fleet.inventory, "--out", session]
    kept: dict[str, str] = {}
    for number in range(KILLS):
        controller = start(again(session, begin), tmp_path)
        late = number % 3 == 2
        if late:
            await_commit(session, len(kept))
        time.sleep(dice.uniform(*(LATE_S if late else EARLY_S)))
        assert controller.poll() is None, (tmp_path / "log").read_text("utf-8")
        controller.kill()
        controller.wait()
        now = committed(session)
        assert kept.items() <= now.items()
        kept = now
    assert kept
    last = start(again(session, begin), tmp_path)
    assert last.wait(LAST_LIMIT_S) == 0, (tmp_path / "log").read_text("utf-8")
    assert kept.items() <= committed(session).items()
    check(session)
    for name in fleet.specs:
        fleet.wait_until_alone(name)
        assert list((fleet.fleet.folder(name) / "target").iterdir()) == []


def check(session: Path) -> None:
    """Every run of the plan is done, once, and whole."""
    reader = SessionReader(session)
    planned = sorted((run.point.digest, run.repeat) for run in reader.plan.runs)
    assert sorted((result.digest, result.repeat) for result in reader.results()) == planned
    assert reader.done_runs() == frozenset(planned)
    assert reader.verify_all_files() == ()
    assert list(session.glob("points/*/.*")) == []
    attempts = session.glob("points/*/run-*.attempt-*/manifest.json")
    tried = [json.loads(path.read_bytes())["status"] for path in attempts]
    assert RunStatus.DONE not in tried
    assert {len(result.hosts) for result in reader.results()} == {3}
