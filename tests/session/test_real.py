"""Sessions with the real agent and real fio on this machine's own storage."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from iolab.core.events import (
    Event,
    Notice,
    RunFinished,
    RunPreparing,
    SessionEnded,
    SessionPhase,
    SessionPhaseStarted,
    SessionStatus,
)
from iolab.core.host import HostSpec, HostTransport
from iolab.core.run import RunRecord, RunStatus
from iolab.errors import HostError
from iolab.hosts.barrier import StopRequest
from iolab.hosts.connect import CommandHost, LocalHost
from iolab.hosts.host import Host
from iolab.registry import session_kinds
from iolab.session.session import run_session
from iolab.study.parse import StudyOverrides
from tests.e2e.targets import tmpfs
from tests.needs import ROOT as NEEDS_ROOT
from tests.needs import require
from tests.plans import make_plan, parse_study
from tests.session.stage import CONFIGURATION, HOST, STUDY, Notes

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
SHORT = (
    "method.runtime=2s",
    "method.warmup=1s",
    "method.settle=0s",
    "method.idle_watch=0",
    "method.generator_limit=false",
    "workload.*.filesize=16m",
    "workload.rand-read.iodepth=8",
)
GONE_LIMIT_S = 20.0


@pytest.fixture
def target() -> Iterator[Path]:
    """A directory on the checkout's own file system, which is storage and not memory."""
    path = ROOT / "scratch" / f"test-{os.getpid()}"
    path.mkdir(parents=True)
    yield path
    left = list(path.iterdir())
    subprocess.run(["rm", "-rf", path], check=True, timeout=60)
    assert left == [], f"left behind: {left}"


def session(
    path: Path,
    notes: Notes,
    *,
    sets: tuple[str, ...] = SHORT,
    host: Host | None = None,
    stop: StopRequest | None = None,
    session_id: str = "trial-1",
) -> SessionStatus:
    text = STUDY.format(hosts="")
    study = parse_study(text, "trial.toml", StudyOverrides(path=str(path), set_arguments=sets))
    hosts = {"local": host or LocalHost(HostSpec("local", HostTransport.LOCAL))}
    stop = stop or StopRequest()
    work = run_session(
        study, make_plan(study), hosts, notes, stop, session_id=session_id, kinds=session_kinds()
    )
    return asyncio.run(work)


def records(notes: Notes) -> list[RunRecord]:
    return [event.record for event in notes.of(RunFinished)]


def engines_under(path: Path) -> list[tuple[int, str]]:
    """Pids and command lines of processes whose working directory is in that folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cwd").readlink().is_relative_to(path):
                line = (entry / "cmdline").read_text("utf-8").replace("\0", " ")
                found.append((int(entry.name), line))
        except OSError:
            continue
    return found


def processes_under(path: Path) -> list[str]:
    """The command lines alone."""
    return [line for _, line in engines_under(path)]


def test_a_session_measures_and_leaves_nothing(target: Path) -> None:
    notes = Notes()
    assert session(target, notes) is SessionStatus.DONE
    read, write = records(notes)
    for record in (read, write):
        assert record.failure is None
        assert record.status is RunStatus.DONE
        (host,) = record.hosts
        assert host.totals is not None
        whole = host.totals.read or host.totals.write
        assert whole is not None
        assert int(record.intervals.ios.sum()) == int(record.bins.count.sum()) > 0
        assert len(np.unique(record.intervals.seq)) >= 3
        assert host.start_real_ns is not None
        assert len(np.unique(record.counters.seq)) >= 4
        assert host.process is not None
        assert host.process.max_rss_bytes > 0
    proof = read.hosts[0].extents
    assert proof is not None
    assert proof.written_bytes == proof.size_bytes == 2 * (16 << 20)
    assert read.hosts[0].cache_drop is not None
    assert read.hosts[0].cache_drop.resident_bytes_after == 0
    claimed = int(read.intervals.bytes.sum())
    moved = max(delta.read_bytes for delta in read.hosts[0].devices)
    assert moved >= claimed * 0.99
    assert notes.of(SessionEnded)[0].reason is None
    assert processes_under(target) == []


@pytest.mark.long
def test_two_namespaces_are_a_fleet_that_starts_at_one_moment(target: Path) -> None:
    require(NEEDS_ROOT, "ip")
    names = [f"iolab-{os.getpid()}-{number}" for number in (1, 2)]
    tables = [CONFIGURATION.format(names='"c1", "c2"')]
    tables += [HOST.format(name=host) for host in ("c1", "c2")]
    options = StudyOverrides(path=str(target), set_arguments=SHORT)
    study = parse_study(STUDY.format(hosts="\n".join(tables)), "trial.toml", options)
    hosts = {
        host: CommandHost(
            HostSpec(host, HostTransport.COMMAND, command_prefix=("ip", "netns", "exec", name))
        )
        for host, name in zip(("c1", "c2"), names, strict=True)
    }
    notes = Notes()
    for name in names:
        subprocess.run(["ip", "netns", "add", name], check=True, timeout=10)
    try:
        work = run_session(
            study,
            make_plan(study),
            hosts,
            notes,
            StopRequest(),
            session_id="trial-1",
            kinds=session_kinds(),
        )
        assert asyncio.run(work) is SessionStatus.DONE
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=True, timeout=10)
    for record in records(notes):
        assert record.failure is None
        starts = [host.start_real_ns or 0 for host in record.hosts]
        assert abs(starts[0] - starts[1]) < 1_000_000_000
        assert set(record.intervals.host) == {0, 1}


@pytest.mark.long
def test_a_hole_punched_into_the_files_is_never_read(target: Path) -> None:
    def punch(event: Event) -> None:
        if isinstance(event, RunPreparing):
            for file in sorted((target / "iolab-scratch-local").glob("*.0.0")):
                hole = ["--punch-hole", "--offset", "4MiB", "--length", "1MiB"]
                argv = ["fallocate", *hole, str(file)]
                subprocess.run(argv, check=True, timeout=60)

    notes = Notes(punch)
    assert session(target, notes) is SessionStatus.DONE
    read, _ = records(notes)
    assert read.status is RunStatus.FAILED
    assert "1 MiB of" in str(read.failure)
    assert "never written" in str(read.failure)
    (host,) = read.hosts
    assert host.extents is not None
    assert host.extents.hole_bytes + host.extents.unwritten_bytes == 1 << 20
    assert (host.argv, host.totals, len(read.intervals)) == ((), None, 0)


def test_a_full_disk_is_named_and_emptied() -> None:
    notes = Notes()
    with tmpfs(100 << 20) as path:
        sets = (*SHORT, "target.allow_memory=true", "workload.*.direct=false")

        def fill(event: Event) -> None:
            if isinstance(event, SessionPhaseStarted) and event.phase is SessionPhase.LAY_OUT:
                (path / "somebody-elses").write_bytes(bytes(95 << 20))

        notes.react = fill
        with pytest.raises(HostError, match="ran full while"):
            session(path, notes, sets=(*sets, "workload.*.filesize=4m"))
        assert [entry.name for entry in path.iterdir()] == ["somebody-elses"]


@pytest.mark.long
def test_kept_files_are_used_again(target: Path) -> None:
    sets = (*SHORT, "method.warmup=0s")
    session(target, Notes(), sets=(*sets, "target.keep_files=true"))
    (folder,) = target.iterdir()
    kept = {path.name: path.stat().st_ino for path in folder.iterdir()}
    assert len([name for name in kept if not name.startswith(".")]) >= 2
    notes = Notes()
    assert session(target, notes, sets=sets) is SessionStatus.DONE
    assert len(notes.of(Notice)) == 1
    phases = [event.phase for event in notes.of(SessionPhaseStarted)]
    assert SessionPhase.LAY_OUT not in phases


def test_kill_9_during_layout_leaves_nothing_either(target: Path) -> None:
    with Controller(target, "60s") as controller:
        controller.until("phase lay out")
        controller.process.send_signal(signal.SIGKILL)
        controller.wait_until_gone()
    assert list(target.iterdir()) == []


class Controller:
    """A controller in a process of its own."""

    def __init__(self, target: Path, runtime: str) -> None:
        self.target = target
        self.agent = 0
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.session.controller", str(target), runtime],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        )

    def __enter__(self) -> Controller:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait(10)

    def until(self, line: str) -> None:
        """Read its lines up to and with that one."""
        assert self.process.stdout
        for told in self.process.stdout:
            word = told.strip()
            if word.startswith("agent "):
                self.agent = int(word.split()[1])
            if word == line:
                return
        raise AssertionError(f"the controller ended before '{line}'")

    def wait_until_gone(self) -> None:
        """Until there is no agent, no engine and no file."""
        deadline = time.monotonic() + GONE_LIMIT_S
        while time.monotonic() < deadline:
            if not self._left():
                return
            time.sleep(0.05)
        raise AssertionError(f"still there: {self._left()}")

    def _left(self) -> list[str]:
        agent = Path(f"/proc/{self.agent}/stat")
        try:
            living = ["agent"] if agent.read_text("utf-8").split()[2] != "Z" else []
        except OSError:
            living = []
        return [*living, *processes_under(self.target), *map(str, self.target.iterdir())]
