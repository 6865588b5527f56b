"""Phases and events on real processes and on a real mirror; kills leave nothing undone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
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
filesize = "16m"
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
action = "lose"
phase = "degraded"
expect = "not redundant"
within = "8s"

[[event]]
id = "rebuild"
action = "rebuild"
phase = "rebuild"

[method]
warmup = "2s"
settle = "0s"
idle_watch = 0
generator_limit = false
"""

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
seconds = "1s"

[[phase]]
id = "fault"
seconds = "120s"

[[event]]
id = "stop"
action = "stop"
phase = "fault"

[method]
warmup = "0s"
settle = "0s"
idle_watch = 0
generator_limit = false
link_timeout = "5s"
"""

LOCAL = """
format = 1
[[host]]
name = "here"
kind = "local"
path = "{path}"
[[action]]
id = "stop"
host = "here"
stop = "{pid_file}"
"""


@pytest.fixture
def broken_mirror(tmp_path: Path) -> Iterator[Mirror]:
    require(*mirror.PROGRAMS, "root")
    made = Mirror(tmp_path / "mirror")
    made.up()
    yield made
    made.down()


def mirror_inventory(made: Mirror, folder: Path) -> Path:
    """The mirror as a host in its own name space, with what breaks and mends it."""
    program = f'"{sys.executable}", "{Path(mirror.__file__).resolve()}", "{made.folder}"'
    holder = (made.folder / "holder").read_text()
    text = f"""
format = 1
[[host]]
name = "a"
kind = "command"
command = ["nsenter", "-t", "{holder}", "-m", "--"]
path = "{made.mount}"
[[action]]
id = "lose"
host = "a"
command = [{program}, "lose"]
[[action]]
id = "rebuild"
host = "a"
command = [{program}, "rebuild"]
[[witness]]
id = "redundant"
host = "a"
command = [{program}, "state"]
field = "redundant"
rebuilt_field = "rebuilt_bytes"
throttle_field = "throttle"
timeout = "20s"
"""
    inventory = folder / "hosts.toml"
    inventory.write_text(text)
    return inventory


def test_a_mirror_loses_a_disk_and_is_rebuilt(broken_mirror: Mirror, tmp_path: Path) -> None:
    """Of two disks of one speed a mirror without one has half the reads: 55.6 % of such a mix."""
    hosts = mirror_inventory(broken_mirror, tmp_path)
    study, out = write_study(tmp_path, STUDY), tmp_path / "session"
    asked = ("--event", "lose@a", "--event", "rebuild@a", "--out", out)
    iolab("run", study, "--hosts", hosts, *asked)
    assert broken_mirror.state()["redundant"]
    document = shown(out)
    schema = json.loads((ROOT / "schema" / "show.json").read_text(encoding="utf-8"))
    Draft202012Validator(schema).validate(document)
    (result,) = document["results"]
    course = result["course"]
    before, degraded, rebuild, after = course["phases"]
    assert [phase["ended_by"] for phase in course["phases"]] == ["time", "time", "witness", "time"]
    share = degraded["baseline_share"]
    assert share["value"] < 0.9
    assert share["low"] <= 0.556 <= share["high"]
    assert rebuild["iops"]["value"] < before["iops"]["value"]
    assert after["unavailable_s"] == 0
    assert 0 < course["detection_s"]["value"] < course["redundancy_s"]["value"]
    assert course["checked_blocks"] == 8 * (16 << 20) // 4096
    assert (course["lost_blocks"], course["failed_ios"]) == (0, 0)
    codes = ("phase-unfinished", "baseline-unhealthy", "event-failed", "event-unwitnessed")
    levels = {check["code"]: check["level"] for check in result["verdict"]["checks"]}
    assert {levels[code] for code in (*codes, "writes-lost")} == {"valid"}
    start = course["events"][0]["start_s"]
    # Where the machine is quiet the cut is right to a second; it tells itself how well it is known.
    cause = "event Losing one of two disks"
    named = [change for change in course["changes"] if change["cause"] == cause]
    lost = min(named, key=lambda change: change["ratio"])["at_s"]
    assert lost["low"] - 2 <= start <= lost["high"] + 2
    assert course["rebuild_bytes_per_s"]["value"] > 0
    (point,) = document["points"]
    assert point["metrics"]["phase.degraded.iops"]["value"] == degraded["iops"]["value"]
    assert "Losing one of two disks costs" in iolab("show", out).stdout
    page = tmp_path / "report.html"
    iolab("report", out, "--html", page)
    assert 'id="course"' in page.read_text(encoding="utf-8")


def test_an_event_needs_consent_with_its_host(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.toml"
    hosts.write_text(LOCAL.format(path=tmp_path, pid_file=tmp_path / "pid"))
    study = write_study(tmp_path, STOPPED)
    refused = iolab("run", study, "--hosts", hosts, expect=ExitCode.STUDY)
    assert tells(refused.stderr, "--event stop@here")
    refused = iolab("run", study, "--hosts", hosts, "--event", "stop@b", expect=ExitCode.STUDY)
    assert tells(refused.stderr, "stop@b")
    planned = iolab("plan", study, "--hosts", hosts)
    assert tells(planned.stdout, "stop@here", "stop the process")


@pytest.fixture
def stopped_by_event(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[Any], dict[str, int]]]:
    """A session that has stopped a process of this machine, and who could be killed of it."""
    with subprocess.Popen(["sleep", "600"]) as victim:
        pid_file, hosts = tmp_path / "pid", tmp_path / "hosts.toml"
        pid_file.write_text(f"{victim.pid}\n")
        hosts.write_text(LOCAL.format(path=tmp_path, pid_file=pid_file))
        words: list[str | Path] = [
            "run",
            write_study(tmp_path, STOPPED),
            "--hosts",
            hosts,
            "--event",
            "stop@here",
        ]
        argv = [IOLAB, *words, "--out", tmp_path / "session"]
        with subprocess.Popen(argv, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as run:
            assert until(lambda: state_of(victim.pid) == "T", 120)
            (keeper,) = children_of(run.pid)
            (agent,) = children_of(keeper)
            yield victim, {"controller": run.pid, "keeper": keeper, "agent": agent}
            run.kill()
        victim.kill()


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


@pytest.mark.parametrize("who", ["controller", "agent", "keeper"])
def test_a_kill_of_any_undoes_the_event(
    stopped_by_event: tuple[subprocess.Popen[Any], dict[str, int]], who: str, tmp_path: Path
) -> None:
    victim, pids = stopped_by_event
    os.kill(pids[who], signal.SIGKILL)
    if who == "keeper":
        # Its agent ends, too, and nobody is left who could: that is shown, and done when asked for.
        assert until(lambda: not Path(f"/proc/{pids['agent']}").exists(), 60)
        shown_left = iolab("clean", "--path", tmp_path, "--yes")
        assert tells(shown_left.stdout, str(victim.pid))
    assert until(lambda: state_of(victim.pid) == "S", 60)


def test_kills_of_all_at_once_leave_an_undo_that_clean_does(
    stopped_by_event: tuple[subprocess.Popen[Any], dict[str, int]], tmp_path: Path
) -> None:
    victim, pids = stopped_by_event
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids.values():
            os.kill(pid, number)
    assert until(lambda: not Path(f"/proc/{pids['agent']}").exists(), 60)
    assert state_of(victim.pid) == "T"
    iolab("clean", "--path", tmp_path, "--yes")
    assert state_of(victim.pid) == "S"
    assert ours_on(tmp_path) == []
