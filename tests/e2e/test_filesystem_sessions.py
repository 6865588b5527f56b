"""Sessions on an XFS that they make: in an image and on a device, kept, killed and resumed."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from iolab.store.reader import SessionReader
from tests.agent.speaker import until
from tests.e2e.devices import spare_loop
from tests.e2e.sessions import IOLAB, iolab
from tests.e2e.test_filesystem import nothing_on
from tests.processes import run_program

pytestmark = [pytest.mark.e2e, pytest.mark.long]

STUDY = """
format = 1
id = "own"
[target]
filesystem = "xfs"
{target}
[[workload]]
id = "r"
rw = "randread"
bs = "4k"
filesize = "16m"
rate_iops = 500
[[workload]]
id = "w"
rw = "randwrite"
bs = "4k"
filesize = "16m"
rate_iops = 500
[method]
warmup = 0
runtime = {runtime}
settle = 0
idle_watch = 0
generator_limit = false
"""
KEYS = """
format = 1
id = "own-keys"
[target]
filesystem = "xfs"
[[workload]]
id = "k"
engine = "db_bench"
benchmark = "readrandom"
keys = 20000
value_size = 400
block_size = "4k"
threads = 2
memory = "64m"
[method]
warmup = 0
runtime = 1
settle = 0
idle_watch = 0
generator_limit = false
"""
IN_AN_IMAGE = 'image = "320m"'


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder on disk with room for a target and sessions: /tmp may be in memory."""
    with tempfile.TemporaryDirectory(prefix="iolab-test-", dir="/var/tmp") as name:
        folder = Path(name)
        (folder / "target").mkdir()
        yield folder


def study_in(place: Path, target: str, runtime: str = "1") -> Path:
    path = place / "own.toml"
    path.write_text(STUDY.format(target=target, runtime=runtime), encoding="utf-8")
    return path


def test_a_session_on_an_image_is_told_as_one_on_an_xfs_and_leaves_nothing(place: Path) -> None:
    target = place / "target"
    iolab("run", study_in(place, IN_AN_IMAGE), "--path", target, "--out", place / "S")
    reader = SessionReader(place / "S")
    mounted, found = reader.facts["local"].target, reader.facts_found_at_last_start["local"].target
    assert mounted is not None
    assert found is not None
    assert mounted.fs_type == "xfs"
    assert mounted.devices[0].startswith("loop")
    assert mounted.devices[1:] == found.devices
    for digest, repeat in reader.done_runs():
        record = reader.record(digest, repeat)
        (host,) = record.hosts
        moved = {delta.device: delta for delta in host.devices}[mounted.devices[0]]
        # What the engine counted went to the image's device, and no byte of it was remembered.
        assert host.totals is not None
        if record.run.point.workload == "r":
            assert host.totals.read is not None
            assert moved.read_bytes >= host.totals.read.bytes > 0
        else:
            assert host.totals.write is not None
            assert moved.write_bytes >= host.totals.write.bytes > 0
    assert len(reader.done_runs()) == 2
    assert list(target.iterdir()) == []
    assert nothing_on(target)


def test_files_in_an_image_that_was_kept_are_used_again(place: Path) -> None:
    target = place / "target"
    study = study_in(place, f"{IN_AN_IMAGE}\nkeep_files = true")
    first = iolab("run", study, "--path", target, "--out", place / "S1").stderr
    assert "lay out: s16m" in first
    image = target / "iolab-scratch-local" / "fs.img"
    assert image.stat().st_size == 320 << 20
    assert nothing_on(target)
    second = iolab("run", study, "--path", target, "--out", place / "S2").stderr
    assert "lay out: s16m" not in second
    assert "An earlier session had left" in second


def test_a_controller_that_is_killed_leaves_nothing_and_is_resumed(place: Path) -> None:
    target = place / "target"
    study = study_in(place, IN_AN_IMAGE, runtime="2")
    argv = [str(IOLAB), "run", str(study), "--path", str(target), "--out", str(place / "S")]
    running = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert until(lambda: len(list((place / "S").glob("points/*/run-1"))) == 1, 60)
        assert not nothing_on(target)
    finally:
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
    assert until(lambda: list(target.iterdir()) == [])
    assert until(lambda: nothing_on(target))
    iolab("resume", place / "S")
    assert len(SessionReader(place / "S").done_runs()) == 2
    assert list(target.iterdir()) == []


def test_a_device_is_formatted_and_let_go_empty(place: Path) -> None:
    with spare_loop(320 << 20) as spare:
        study = place / "own.toml"
        study.write_text(KEYS, encoding="utf-8")
        words = ("--device", spare.path, "--serial", spare.serial)
        assert "an XFS is made on it" in iolab("plan", study, *words).stdout
        iolab("run", study, *words, "--out", place / "S")
        target = SessionReader(place / "S").facts["local"].target
        assert target is not None
        assert (target.fs_type, target.device) == ("xfs", spare.name)
        # Empty as it was, it may serve again without any more ado.
        iolab("plan", study, *words)
    assert not list(Path("/run").glob("iolab-scratch-local-*"))


def test_one_that_cannot_be_made_is_told_by_the_plan(place: Path) -> None:
    study = study_in(place, 'image = "64t"')
    refused = iolab("plan", study, "--path", place / "target", expect=3)
    assert "the image needs" in refused.stderr
    # Without /usr/sbin there is no mkfs.xfs on PATH.
    argv = [str(IOLAB), "plan", str(study_in(place, IN_AN_IMAGE)), "--path", str(place / "target")]
    environment = {**os.environ, "PATH": "/nowhere"}
    done = run_program(argv, env=environment)
    assert done.returncode == 3
    assert "There is no 'mkfs.xfs' on host 'local'." in done.stderr
