"""Faults that a run with phases must see: of the storage, its path, a witness, an event."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from iolab.errors import ExitCode
from tests.agent.speaker import children_of, until
from tests.e2e.left import ours_on
from tests.e2e.sessions import IOLAB, iolab, shown, write_study
from tests.e2e.targets import Target, command, xfs_on_device
from tests.e2e.test_phases import state_of
from tests.facts import tells
from tests.fakes import forgetful_disk, mirror
from tests.fakes.mirror import Mirror
from tests.needs import require

pytestmark = [pytest.mark.e2e, pytest.mark.long]

METHOD = """
[method]
warmup = "1s"
settle = "0s"
idle_watch = 0
generator_limit = false
"""

WORKLOAD = """
format = 1
id = "faults"

[[workload]]
id = "load"
engine = "native"
rw = "{rw}"
bs = "{bs}"
iodepth = 1
numjobs = {jobs}
filesize = "{size}"
verify = true
"""

TWO_PHASES = (
    """
[[phase]]
id = "before"
seconds = "3s"

[[phase]]
id = "fault"
seconds = "4s"

[[event]]
id = "lose"
action = "lose"
phase = "fault"
after = "1s"
"""
    + METHOD
)


def run_session(folder: Path, study: str, inventory: str, *events: str) -> dict[str, Any]:
    """The only result of a session."""
    hosts = folder / "hosts.toml"
    hosts.write_text(f"format = 1\n{inventory}")
    words = [word for event in events for word in ("--event", event)]
    session = folder / "session"
    iolab("run", write_study(folder, study), "--hosts", hosts, *words, "--out", session)
    (result,) = shown(session)["results"]
    found: dict[str, Any] = result
    return found


def checks_of(result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {check["code"]: check for check in result["verdict"]["checks"]}


def local_host(path: Path, *tables: str) -> str:
    head = f'[[host]]\nname = "here"\nkind = "local"\npath = "{path}"\n'
    return head + "".join(f"{table}\n" for table in tables)


def action(name: str, *argv: object) -> str:
    words = ", ".join(f'"{word}"' for word in argv)
    return f'[[action]]\nid = "{name}"\nhost = "here"\ncommand = [{words}]'


def own_loop_device() -> str:
    """One that `losetup --find` gives to nobody while it is let go for a moment."""
    return f"/dev/loop{1000 + os.getpid() % 100_000}"


@contextmanager
def loop_over(file: Path) -> Iterator[Target]:
    """An XFS on a loop device over a file."""
    device = own_loop_device()
    command("losetup", device, file)
    try:
        with xfs_on_device(device) as target:
            yield target
    finally:
        command("losetup", "--detach", device)


@contextmanager
def disk_of_process(folder: Path, manner: str) -> Iterator[tuple[Target, int]]:
    """An XFS on a disk that is a process, and that process."""
    require("root", "mkfs.xfs", "losetup")
    image, disk = folder / "image", folder / "disk"
    with image.open("wb") as file:
        file.truncate(320 << 20)
    disk.touch()
    argv = [sys.executable, forgetful_disk.__file__, str(image), str(disk), manner]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process, ExitStack() as stack:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        stack.callback(process.kill)
        stack.callback(command, "umount", disk)
        yield stack.enter_context(loop_over(disk)), process.pid


def test_acknowledged_writes_that_a_disk_forgets_are_found(tmp_path: Path) -> None:
    """The rate is low: a fast machine would write all forgotten blocks anew before the end."""
    workload = WORKLOAD.format(rw="randwrite", bs="4k", jobs=2, size="16m")
    study = workload + "rate_iops = 200\n" + TWO_PHASES
    with disk_of_process(tmp_path, "forgetful") as (target, pid):
        lose = action("lose", program_path("kill"), "-USR1", pid)
        result = run_session(tmp_path, study, local_host(target.path, lose), "lose@here")
    lost, blocks = result["scenario"]["lost_blocks"], 2 * (16 << 20) // 4096
    assert result["scenario"]["checked_blocks"] == blocks
    check = checks_of(result)["writes-lost"]
    assert 0 < lost < blocks
    assert check["level"] == "invalid"
    assert "stale" in check["message"]


REMOUNT = """
import subprocess, sys
device, disk, mount_point = sys.argv[1:]
for words in (
    ("umount", mount_point),
    ("losetup", "--detach", device),
    ("losetup", device, disk),
    ("mount", "-o", "noatime", device, mount_point),
):
    subprocess.run(words, check=True)
"""
READ_BACK_EVENT = """
[[event]]
id = "remount"
action = "remount"
phase = "read-back"
"""


@pytest.mark.parametrize(
    ("manner", "is_remounted"), [("volatile", False), ("volatile", True), ("honest", True)]
)
def test_what_a_store_holds_for_a_mount_alone_is_lost_with_it(
    manner: str, *, is_remounted: bool, tmp_path: Path
) -> None:
    """Its memory answers reads past the page cache; only a new mount shows what is on the disk."""
    study = WORKLOAD.format(rw="randwrite", bs="4k", jobs=2, size="16m") + TWO_PHASES
    script = tmp_path / "remount.py"
    script.write_text(REMOUNT)
    with disk_of_process(tmp_path, manner) as (target, pid):
        lose = action("lose", program_path("kill"), "-USR1", pid)
        words = (sys.executable, script, f"/dev/{target.device}", tmp_path / "disk", target.path)
        remount = action("remount", *words)
        events = ("lose@here", "remount@here") if is_remounted else ("lose@here",)
        inventory = local_host(target.path, lose, *([remount] if is_remounted else []))
        text = study + READ_BACK_EVENT if is_remounted else study
        result = run_session(tmp_path, text, inventory, *events)
        assert list(target.path.iterdir()) == []
    check, checks = checks_of(result)["writes-lost"], checks_of(result)
    assert checks["event-failed"]["level"] == "valid"
    if manner == "honest" or not is_remounted:
        assert (result["scenario"]["lost_blocks"], check["level"]) == (0, "valid")
        assert ("read back through a new mount" in check["message"]) is is_remounted
    else:
        assert result["scenario"]["lost_blocks"] > 0
        assert check["level"] == "invalid"


def test_a_path_that_damages_contents_is_told_from_a_store_that_loses(tmp_path: Path) -> None:
    """A loop device with direct I/O over such an export damages requests of 640 KiB and more."""
    require("root", "qemu-storage-daemon", "mkfs.xfs", "losetup")
    image, disk = tmp_path / "image", tmp_path / "disk"
    with image.open("wb") as file:
        file.truncate(320 << 20)
    disk.touch()
    argv = [
        "qemu-storage-daemon",
        "--blockdev",
        f"file,node-name=d,filename={image},cache.direct=on",
        "--export",
        f"fuse,id=e,node-name=d,mountpoint={disk},writable=on",
        "--daemonize",
        "--pidfile",
        str(tmp_path / "pid"),
    ]
    subprocess.run(argv, check=True)
    study = WORKLOAD.format(rw="randwrite", bs="4k", jobs=1, size="16m") + TWO_PHASES
    device = command("losetup", "--find", "--show", "--direct-io=on", disk)
    try:
        keys = f'device = "{device}"\nserial = "{disk}"'
        lose = action("lose", program_path("true"))
        host = f'[[host]]\nname = "here"\nkind = "local"\n{keys}\n{lose}'
        result = run_session(tmp_path, study, host, "lose@here")
    finally:
        command("losetup", "--detach", device)
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGTERM)
    check = checks_of(result)["writes-lost"]
    assert check["level"] == "invalid"
    assert "the path to the storage damages contents" in check["message"]
    assert result["scenario"]["lost_blocks"] is None  # nobody says that the store lost them


HUNG = (
    WORKLOAD.format(rw="randrw", bs="4k", jobs=8, size="4m").replace("iodepth = 1", "iodepth = 2")
    + """
[[phase]]
id = "before"
seconds = "6s"

[[phase]]
id = "hung"
seconds = "8s"

[[phase]]
id = "after"
seconds = "6s"

[[event]]
id = "hang"
action = "hang"
phase = "hung"
after = "1s"
expect = "not redundant"
within = "6s"
"""
    + METHOD
)
SLOW = (
    WORKLOAD.format(rw="randread", bs="4k", jobs=8, size="4m")
    + """
[[phase]]
id = "before"
seconds = "8s"

[[phase]]
id = "slow"
seconds = "8s"

[[phase]]
id = "after"
seconds = "6s"

[[event]]
id = "slow"
action = "slow"
phase = "slow"
undo_phase = "after"
"""
    + METHOD
)
HANG_S = 5.0
DISK_IOPS, SLOW_IOPS = 200, 20
"""Slower than a busy machine is."""


def mirror_action(made: Mirror, name: str, lines: str) -> str:
    """The mirror's inventory with one more action."""
    head = made.inventory.read_text(encoding="utf-8").removeprefix("format = 1\n")
    return f'{head}\n[[action]]\nid = "{name}"\nhost = "lab"\n{lines}\n'


def test_a_hung_disk_stalls_a_load_that_a_witness_calls_well(tmp_path: Path) -> None:
    pid_file = tmp_path / "disk.pid"
    require(*mirror.PROGRAMS, "root")
    with Mirror.running(tmp_path / "mirror") as made:
        pid_file.write_text(str(made.pid()))
        lines = f'stop = "{pid_file}"\nundo_after = "{HANG_S:g}s"'
        result = run_session(tmp_path, HUNG, mirror_action(made, "hang", lines), "hang@lab")
    scenario, checks = result["scenario"], checks_of(result)
    _, hung, after = scenario["phases"]
    (event,) = scenario["events"]
    lasted_s = event["undone_s"] - event["start_s"]
    assert lasted_s == pytest.approx(HANG_S, abs=1.5)
    assert hung["longest_stall_s"]["value"] == pytest.approx(lasted_s, abs=0.5)
    assert after["longest_stall_s"]["value"] < HANG_S / 2
    assert (scenario["failed_ios"], scenario["lost_blocks"]) == (0, 0)
    # The file system counts no error, so that this witness lies through a standstill.
    assert checks["witness-contradicted"]["level"] == "indicative"
    assert checks["event-unwitnessed"]["level"] == "invalid"
    assert checks["event-failed"]["level"] == "valid"


def test_a_slow_disk_is_seen_by_the_load_alone(tmp_path: Path) -> None:
    """One disk of 200 and one of 20 I/Os a second read 220 of 400: 55 %."""
    require(*mirror.PROGRAMS, "root")
    with Mirror.running(tmp_path / "mirror", DISK_IOPS) as made:
        slow, undo = (made.command("slow", iops) for iops in (SLOW_IOPS, DISK_IOPS))
        lines = f"command = [{slow}]\nundo = [{undo}]"
        result = run_session(tmp_path, SLOW, mirror_action(made, "slow", lines), "slow@lab")
        assert made.state()["redundant"]
    scenario = result["scenario"]
    _, limping, after = scenario["phases"]
    assert limping["baseline_share"]["value"] == pytest.approx(0.55, abs=0.06)
    assert after["baseline_share"]["value"] == pytest.approx(1, abs=0.1)
    assert limping["lat_ns_p99"]["value"] > 2 * after["lat_ns_p99"]["value"]
    assert scenario["failed_ios"] == 0


WITNESSED = WORKLOAD.format(rw="randread", bs="4k", jobs=1, size="4m") + TWO_PHASES.replace(
    'after = "1s"', 'expect = "not well"\nwithin = "3s"'
)


def witnessed_inventory(folder: Path, program: str) -> str:
    """A host whose witness says that all is well while a file is there, and its event."""
    well, target = folder / "well", folder / "target"
    target.mkdir()
    words = (program_path("rm"), "-f", well) if program == "rm" else (program_path(program),)
    witness = (
        f'[[witness]]\nid = "well"\nhost = "here"\n'
        f'command = ["{program_path("test")}", "-e", "{well}"]'
    )
    return local_host(target, action("lose", *words), witness)


@pytest.mark.parametrize(
    ("program", "objections"),
    [("rm", set()), ("true", {"event-unwitnessed"})],
    ids=["honest", "an event that does nothing"],
)
def test_what_a_witness_says_is_held_against_the_event(
    program: str, objections: set[str], tmp_path: Path
) -> None:
    (tmp_path / "well").touch()
    inventory = witnessed_inventory(tmp_path, program)
    checks = checks_of(run_session(tmp_path, WITNESSED, inventory, "lose@here"))
    asked = {"event-unwitnessed", "baseline-unhealthy", "event-failed"}
    assert {code for code in asked if checks[code]["level"] == "invalid"} == objections


def test_a_fault_before_its_time_is_refused_by_plan_and_run(tmp_path: Path) -> None:
    hosts, study = tmp_path / "hosts.toml", write_study(tmp_path, WITNESSED)
    hosts.write_text(f"format = 1\n{witnessed_inventory(tmp_path, 'rm')}")
    asked = ("--event", "lose@here", "--out", tmp_path / "session")
    for words in (("plan", study, "--hosts", hosts), ("run", study, "--hosts", hosts, *asked)):
        refused = iolab(*words, expect=ExitCode.HOST)
        assert tells(refused.stderr, "'well'", "'not well' already", "'lose'")


def test_a_witness_that_is_not_there_is_refused_by_plan(tmp_path: Path) -> None:
    (tmp_path / "well").touch()
    hosts, study = tmp_path / "hosts.toml", write_study(tmp_path, WITNESSED)
    inventory = witnessed_inventory(tmp_path, "rm").replace(f'"{program_path("test")}"', '"/no"')
    hosts.write_text(f"format = 1\n{inventory}")
    refused = iolab("plan", study, "--hosts", hosts, expect=ExitCode.HOST)
    assert tells(refused.stderr, "'well'", "/no", "[[witness]]")


def program_path(name: str) -> str:
    found = shutil.which(name)
    assert found is not None
    return found


HUNG_FOR_LONG = (
    WORKLOAD.format(rw="randrw", bs="4k", jobs=2, size="4m")
    + """
[[phase]]
id = "before"
seconds = "3s"

[[phase]]
id = "hung"
seconds = "120s"

[[event]]
id = "hang"
action = "hang"
phase = "hung"
"""
    + METHOD
)


@pytest.mark.parametrize("who", ["controller", "agent"])
def test_a_kill_while_the_disk_hangs_lets_it_go_on(who: str, tmp_path: Path) -> None:
    """Neither the engine's end nor that of its folder is waited for before the undo."""
    with disk_of_process(tmp_path, "honest") as (target, pid), ExitStack() as stack:
        stack.callback(os.kill, pid, signal.SIGCONT)
        (tmp_path / "pid").write_text(f"{pid}\n")
        hang = f'[[action]]\nid = "hang"\nhost = "here"\nstop = "{tmp_path / "pid"}"'
        hosts = tmp_path / "hosts.toml"
        hosts.write_text(f"format = 1\n{local_host(target.path, hang)}")
        words = ("run", write_study(tmp_path, HUNG_FOR_LONG), "--hosts", hosts)
        argv = [*words, "--event", "hang@here", "--out", tmp_path / "session"]
        with subprocess.Popen([str(word) for word in (IOLAB, *argv)]) as controller:
            stack.callback(controller.kill)
            assert until(lambda: state_of(pid) == "T", 60)
            (keeper,) = children_of(controller.pid)
            (agent,) = children_of(keeper)
            os.kill(controller.pid if who == "controller" else agent, signal.SIGKILL)
            assert until(lambda: state_of(pid) != "T", 60)
            assert until(lambda: not Path(f"/proc/{keeper}").exists(), 60)
            controller.wait(120)
        assert until(lambda: ours_on(target.path) == [], 60)
