"""Phases and events on real processes and on a real mirror; kills leave nothing undone."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from iolab.errors import ExitCode
from tests.agent.speaker import children_of, until
from tests.e2e.left import ours_on
from tests.e2e.sessions import IOLAB, iolab, shown, write_study
from tests.facts import tells
from tests.fakes import mirror
from tests.fakes.mirror import Mirror
from tests.needs import require

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.e2e, pytest.mark.long]

STUDY = """
format = 1
id = "loss"

[[workload]]
id = "mixed"
engine = "native"
rw = "randrw"
rwmixread = 90
bs = "4k"
iodepth = 1
numjobs = 8
filesize = "2m"
verify = true

[[phase]]
id = "before"
seconds = "10s"

[[phase]]
id = "degraded"
seconds = "10s"

[[phase]]
id = "rebuild"
until = "redundant"
longest = "60s"

[[phase]]
id = "after"
seconds = "10s"

[[event]]
id = "lose"
title = "Losing one of two disks"
action = "fail"
phase = "degraded"
expect = "not redundant"
within = "8s"

[[event]]
id = "rebuild"
action = "replace"
phase = "rebuild"

[method]
warmup = "2s"
settle = "0s"
idle_watch = 0
generator_limit = false
repeats = 3
"""
REPEATS = 3
DISK_IOPS = 200
"""Slower than a busy machine is."""

RUN_LIMIT_S = 290
"""Of a session with as many repeats, on a machine that is busy."""

STOPPED = """
format = 1
id = "stopped"

[[workload]]
id = "reads"
engine = "native"
rw = "randread"
bs = "4k"
iodepth = 1
filesize = "4m"

[[phase]]
id = "before"
seconds = "{before}"

[[phase]]
id = "fault"
seconds = "{fault}"

[[phase]]
id = "after"
seconds = "{after}"

[[event]]
id = "stop"
action = "stop"
phase = "fault"
undo_phase = "after"

[method]
warmup = "0s"
settle = "0s"
idle_watch = 0
generator_limit = false
link_timeout = "5s"
on_failure = "stop"
"""
PHASES = ("before", "fault", "after")

# What they leave not undone for a moment keeps every session with events off this machine.
ALONE = pytest.mark.alone

HOST = """
format = 1
[[host]]
name = "here"
{kind}
path = "{path}"
[[action]]
id = "stop"
host = "here"
stop = "{pid_file}"
"""


def stopped_study(phase: str) -> str:
    """The study whose run stays in that phase."""
    lengths = {name: "120s" if name == phase else "1s" for name in PHASES}
    return STOPPED.format_map(lengths)


@pytest.fixture
def broken_mirror(tmp_path: Path) -> Iterator[Mirror]:
    require(*mirror.PROGRAMS, "root")
    with Mirror.running(tmp_path / "mirror", DISK_IOPS) as made:
        yield made


def test_a_mirror_loses_a_disk_and_is_rebuilt(broken_mirror: Mirror, tmp_path: Path) -> None:
    """A mirror of two disks of L does 2L with its writes twice, one disk L: 55 % of such a mix."""
    hosts = broken_mirror.inventory
    study, out = write_study(tmp_path, STUDY), tmp_path / "session"
    asked = ("--event", "lose@lab", "--event", "rebuild@lab", "--out", out)
    iolab("run", study, "--hosts", hosts, *asked, limit_s=RUN_LIMIT_S)
    assert broken_mirror.state()["redundant"]
    document = shown(out)
    schema = json.loads((ROOT / "schema" / "show.json").read_text(encoding="utf-8"))
    Draft202012Validator(schema).validate(document)
    assert len(document["results"]) == REPEATS
    for result in document["results"]:
        expect_loss_and_rebuild(result)
    scenarios = [result["scenario"] for result in document["results"]]
    shares = [scenario["phases"][1]["baseline_share"] for scenario in scenarios]
    assert statistics.median(share["value"] for share in shares) == pytest.approx(0.55, abs=0.06)
    assert sum(share["low"] <= 0.55 <= share["high"] for share in shares) >= REPEATS - 1
    # An interval of any width holds it.
    assert statistics.median(share["high"] - share["low"] for share in shares) < 0.25
    # Right to a second, wherever other work on this machine leaves the seconds alone.
    late_s = [found["value"] - begun for found, begun in map(lost_and_event_s, scenarios) if found]
    assert late_s, [scenario["phases"] for scenario in scenarios]
    assert abs(statistics.median(late_s)) <= 1.5
    (point,) = document["points"]
    assert point["metrics"]["phase.degraded.iops"]["value"] == pytest.approx(DISK_IOPS, rel=0.1)
    assert "osing one of two disks costs" in iolab("show", out).stdout
    page = tmp_path / "report.html"
    iolab("report", out, "--html", page)
    assert 'id="scenario"' in page.read_text(encoding="utf-8")


def expect_loss_and_rebuild(result: dict[str, Any]) -> None:
    """One repeat: every phase in its order, and nothing lost."""
    scenario = result["scenario"]
    before, degraded, rebuild, after = scenario["phases"]
    assert [phase["ended_by"] for phase in scenario["phases"]] == [
        "time",
        "time",
        "witness",
        "time",
    ]
    assert degraded["baseline_share"]["value"] < 0.9
    assert rebuild["iops"]["value"] < before["iops"]["value"]
    assert after["stalled_s"] == 0
    assert 0 < scenario["detection_s"]["value"] < scenario["redundancy_s"]["value"]
    assert scenario["checked_blocks"] == 8 * (2 << 20) // 4096
    assert (scenario["lost_blocks"], scenario["failed_ios"]) == (0, 0)
    codes = ("baseline-unhealthy", "event-failed", "event-unwitnessed")
    checks = {check["code"]: check for check in result["verdict"]["checks"]}
    asked = [checks[code] for code in (*codes, "writes-lost")]
    assert [check for check in asked if check["level"] != "valid"] == []
    assert scenario["rebuild_bytes_per_s"]["value"] > 0
    lost, start = lost_and_event_s(scenario)
    assert lost is None or lost["low"] - 2 <= start <= lost["high"] + 2


def lost_and_event_s(scenario: dict[str, Any]) -> tuple[dict[str, float] | None, float]:
    """When the seconds themselves show that the disk was lost, if they do, and when it was."""
    cause = "event Losing one of two disks"
    named = [change for change in scenario["changes"] if change["cause"] == cause]
    largest = min(named, key=lambda change: change["ratio"], default=None)
    return largest and largest["at_s"], scenario["events"][0]["start_s"]


def test_an_event_needs_consent_with_its_host(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.toml"
    pid_file = tmp_path / "pid"
    hosts.write_text(HOST.format(kind='kind = "local"', path=tmp_path, pid_file=pid_file))
    study = write_study(tmp_path, stopped_study("fault"))
    refused = iolab("run", study, "--hosts", hosts, expect=ExitCode.STUDY)
    assert tells(refused.stderr, "--event stop@here")
    refused = iolab("run", study, "--hosts", hosts, "--event", "stop@b", expect=ExitCode.STUDY)
    assert tells(refused.stderr, "stop@b")
    # Nothing is there yet that could be stopped, and no event comes before this one.
    refused = iolab("plan", study, "--hosts", hosts, expect=ExitCode.HOST)
    assert tells(refused.stderr, "'stop'", str(pid_file))
    with subprocess.Popen(["sleep", "600"]) as victim:
        pid_file.write_text(f"{victim.pid}\n")
        planned = iolab("plan", study, "--hosts", hosts)
        victim.kill()
    text = " ".join(planned.stdout.split())
    assert tells(text, "stop@here", "stop the process", "undone when 'after' begins")


class StoppedSession:
    """A session in a phase of its run, whose event stops a process, and who could be killed."""

    def __init__(self, folder: Path, phase: str, victim: int, *prefix: str) -> None:
        self.folder, self.phase, self.victim = folder, phase, victim
        self.target, self.session = folder / "target", folder / "session"
        self.target.mkdir()
        (folder / "pid").write_text(f"{pid_inside(victim)}\n")
        words = ", ".join(f'"{word}"' for word in prefix)
        kind = f'kind = "command"\ncommand = [{words}]' if prefix else 'kind = "local"'
        hosts = folder / "hosts.toml"
        hosts.write_text(HOST.format(kind=kind, path=self.target, pid_file=folder / "pid"))
        study = write_study(folder, stopped_study(phase))
        words_of_run = ("run", study, "--hosts", hosts, "--event", "stop@here")
        self.log = folder / "log"
        with self.log.open("wb") as log:
            argv = [str(word) for word in (IOLAB, *words_of_run, "--out", self.session)]
            self.run = subprocess.Popen(argv, stdout=log, stderr=log)

    def await_phase(self) -> None:
        """Return when the phase has begun, and the process is as it is in that phase."""
        assert until(lambda: f"Phase '{self.phase}' begins" in self.log.read_text(), 120)
        assert until(lambda: (state_of(self.victim) == "T") is (self.phase == "fault"), 60)

    def pids(self) -> dict[str, int]:
        """Controller, keeper and agent of a local host."""
        (keeper,) = children_of(self.run.pid)
        (agent,) = children_of(keeper)
        return {"controller": self.run.pid, "keeper": keeper, "agent": agent}

    def undo_files(self) -> list[Path]:
        """What is written down here of the undos of this session."""
        name = json.loads((self.session / "session.json").read_text())["id"]
        return [file for file in undo_files() if name in content_of(file)]

    def expect_undone_without_clean(self) -> None:
        """The process goes on and nothing of ours is left, before anybody asks for that."""
        assert until(lambda: state_of(self.victim) == "S", 60)
        assert until(lambda: self.undo_files() == [], 60)
        assert until(lambda: ours_on(self.target) == [], 60)

    def expect_nothing_left(self) -> None:
        """Nothing of ours is left after `clean`, and resume says what is missing."""
        iolab("clean", "--path", self.target, "--yes")
        assert ours_on(self.target) == []
        assert self.undo_files() == []
        refused = iolab("resume", self.session, expect=ExitCode.STUDY)
        assert tells(refused.stderr, "1 event", "--event stop@here")

    def __enter__(self) -> StoppedSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.run.kill()
        self.run.wait()


def undo_files() -> list[Path]:
    return list(Path(f"/tmp/iolab-undo-{os.getuid()}").glob("undo-*"))


def content_of(file: Path) -> str:
    """Of a file that may be gone by now."""
    try:
        return file.read_text()
    except FileNotFoundError:
        return ""


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


def pid_inside(pid: int) -> str:
    """A process's number in its own name space."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line for line in lines if line.startswith("NSpid:")).split()[-1]


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("who", ["controller", "agent", "keeper", pytest.param("all", marks=ALONE)])
def test_a_kill_in_any_phase_leaves_nothing(who: str, phase: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        victim = stack.enter_context(subprocess.Popen(["sleep", "600"]))
        stack.callback(victim.kill)
        stopped = stack.enter_context(StoppedSession(tmp_path, phase, victim.pid))
        stopped.await_phase()
        pids = stopped.pids()
        if who == "all":
            for number in (signal.SIGSTOP, signal.SIGKILL):
                for pid in pids.values():
                    os.kill(pid, number)
        else:
            os.kill(pids[who], signal.SIGKILL)
        assert until(lambda: not Path(f"/proc/{pids['agent']}").exists(), 60)
        stopped.run.wait(60)
        if phase == "fault" and who == "all":
            # Nobody is left who could undo it: that is shown, and done when asked for.
            assert state_of(victim.pid) == "T"
            left = iolab("clean", "--path", stopped.target, "--json").stdout
            assert f"signal Cont to process {victim.pid}" in left
        if who != "all":
            stopped.expect_undone_without_clean()
        stopped.expect_nothing_left()
        assert until(lambda: state_of(victim.pid) == "S", 60)


@ALONE
@pytest.mark.parametrize("phase", PHASES)
def test_a_host_that_dies_in_any_phase_leaves_nothing(phase: str, tmp_path: Path) -> None:
    """A host of name spaces: with its first process all of it is gone at once."""
    require("root", "unshare", "nsenter")
    argv = [
        "unshare",
        "-mp",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "sh",
        "-c",
        "sleep 600 & wait",
    ]
    with subprocess.Popen(argv) as outer, ExitStack() as stack:
        stack.callback(outer.kill)
        assert until(lambda: bool(children_of(outer.pid)), 60)
        (first,) = children_of(outer.pid)
        assert until(lambda: bool(children_of(first)), 60)
        (victim,) = children_of(first)
        prefix = ("nsenter", "-t", str(first), "-m", "-p", "--")
        stopped = stack.enter_context(StoppedSession(tmp_path, phase, victim, *prefix))
        stopped.await_phase()
        os.kill(first, signal.SIGKILL)
        outer.wait(60)
        stopped.run.wait(60)
        stopped.expect_nothing_left()
