"""Actions by their name: what they do to devices, links and processes of our own, and undo."""

from __future__ import annotations

import errno
import json
import mmap
import os
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agent.speaker import Agent, Said, until
from tests.e2e.devices import spare_loop
from tests.e2e.targets import Target, command, xfs_on_device, xfs_on_loop
from tests.needs import ROOT, require

FILE_BYTES = 1 << 20
GROUPS = Path("/sys/fs/cgroup")

LINK = f"eth{os.getpid()}"
"""Another one in each process of the tests: agents of one machine hold what is cut by its name."""


def resolve(
    agent: Agent, action: dict[str, Any], *members: str, target: Path | None = None
) -> Said:
    targets = [] if target is None else [str(target)]
    return agent.ask("resolve", what=action, targets=targets, members=members, timeout_s=30)


def do(agent: Agent, resolved: Said, timer_s: float | None = None, *, name: str = "event") -> None:
    """The event, with its undo written down before it."""
    assert resolved.is_ == "resolved", resolved.header
    assert agent.ask("undo_add", name=name, what=resolved["undo"]).is_ == "done"
    timer = None if timer_s is None else {"name": name, "seconds": timer_s}
    stepped = agent.ask("step", what=resolved["steps"], undo_timer=timer)
    assert stepped.is_ == "stepped", stepped.header


def undo(agent: Agent, name: str = "event") -> Said:
    undone = agent.ask("undo", name=name)
    assert undone.is_ == "stepped", undone.header
    return undone


def reads(path: Path) -> bool:
    """Whether a block of the file can be read from its device."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return False  # The file's inode has to be read from the device, too.
    try:
        return os.preadv(file, [mmap.mmap(-1, 4096)], FILE_BYTES // 2) == 4096
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return False
    finally:
        os.close(file)


@pytest.fixture
def target() -> Iterator[Target]:
    with xfs_on_loop(320 << 20) as target:
        (target.path / "file").write_bytes(b"x" * FILE_BYTES)
        os.sync()
        yield target


def test_a_mounted_loop_device_is_detached_and_attached_again(agent: Agent, target: Target) -> None:
    file = target.path / "file"
    action = {"action": "detach", "device": f"/dev/{target.device}"}
    assert reads(file)
    do(agent, resolve(agent, action, target=target.path))
    assert not reads(file)
    undone = undo(agent)
    assert reads(file)
    assert undo(agent).header | {"id": 0} == undone.header | {"id": 0}  # nothing is done twice


def test_a_timer_of_the_host_undoes_it(agent: Agent, target: Target) -> None:
    action = {"action": "detach", "device": f"/dev/{target.device}"}
    do(agent, resolve(agent, action, target=target.path), timer_s=0.5)
    assert until(lambda: reads(target.path / "file"))
    undone = undo(agent)
    assert undone["ended_real_ns"] >= undone["started_real_ns"]


def test_a_timer_never_undoes_a_later_event(agent: Agent, target: Target) -> None:
    file, action = target.path / "file", {"action": "detach", "device": f"/dev/{target.device}"}
    resolved = resolve(agent, action, target=target.path)
    do(agent, resolved, timer_s=0.5)
    undo(agent)
    refused = agent.ask("undo_add", name="event", what=resolved["undo"])
    assert (refused.is_, refused["code"]) == ("error", "bad-request")
    do(agent, resolved, name="later")
    time.sleep(1)  # The first timer is over.
    assert not reads(file)
    undo(agent, "later")
    assert reads(file)


def test_a_second_event_on_a_device_is_refused_while_the_first_lasts(
    agent: Agent, target: Target
) -> None:
    """It would find the device detached, and undo to that."""
    action = {"action": "detach", "device": f"/dev/{target.device}"}
    resolved = resolve(agent, action, target=target.path)
    do(agent, resolved)
    again = resolve(agent, action, target=target.path)
    for refused in (again, agent.ask("undo_add", name="second", what=resolved["undo"])):
        assert (refused.is_, refused["code"]) == ("error", "busy")
        assert f"/dev/{target.device}" in refused["message"]
    undo(agent)
    do(agent, resolve(agent, action, target=target.path), name="second")
    undo(agent, "second")
    assert reads(target.path / "file")


def test_a_device_is_held_whatever_link_leads_to_it(
    agent: Agent, target: Target, tmp_path: Path
) -> None:
    device, link = f"/dev/{target.device}", tmp_path / "link"
    link.symlink_to(device)
    spellings = [
        resolve(agent, {"action": "detach", "device": path}, target=target.path)
        for path in (device, str(link))
    ]
    do(agent, spellings[0])
    refused = agent.ask("undo_add", name="second", what=spellings[1]["undo"])
    assert (refused.is_, refused["code"]) == ("error", "busy")
    assert device in refused["message"]
    undo(agent)


def test_an_event_that_did_not_begin_has_no_undo(agent: Agent, target: Target) -> None:
    resolved = resolve(
        agent, {"action": "detach", "device": f"/dev/{target.device}"}, target=target.path
    )
    for _ in range(2):
        assert agent.ask("undo_add", name="event", what=resolved["undo"]).is_ == "done"
        assert agent.ask("undo_remove", name="event").is_ == "done"
    assert agent.ask("undo", name="event").is_ == "error"


def test_the_end_of_an_agent_undoes_it(program: Path, target: Target) -> None:
    action = {"action": "detach", "device": f"/dev/{target.device}"}
    with Agent(program) as agent:
        do(agent, resolve(agent, action, target=target.path))
        assert not reads(target.path / "file")
    assert until(lambda: reads(target.path / "file"))


def test_another_file_behind_the_device_is_never_limited(agent: Agent) -> None:
    with spare_loop() as first, spare_loop() as second:
        resolved = resolve(agent, {"action": "detach", "device": first.path}, first.name)
        steps = [{**step, "device": second.path} for step in resolved["steps"]]
        refused = agent.ask("step", what=steps)
        assert (refused.is_, refused["code"]) == ("error", "ESTALE")


def test_what_is_not_the_studys_is_refused(agent: Agent, target: Target) -> None:
    with spare_loop() as other:
        for name in ("detach", "offline"):
            refused = resolve(agent, {"action": name, "device": other.path}, target=target.path)
            assert (refused.is_, refused["code"]) == ("error", "refused")
            assert other.path in refused["message"]
        assert (
            resolve(agent, {"action": "detach", "device": other.path}, other.name).is_ == "resolved"
        )
        # It is the study's, and no disk that the kernel can take offline.
        refused = resolve(agent, {"action": "offline", "device": other.path}, other.name)
        assert refused["code"] == "bad-request"
        assert f"/sys/block/{other.name}/device/state" in refused["message"]


def test_the_root_disk_is_refused_whoever_names_it(program: Path) -> None:
    """Here a loop device is the root's: a test names no disk of this machine."""
    with spare_loop(320 << 20) as device, xfs_on_device(device.path) as root:
        for folder in ("proc", "sys", "dev", "tmp"):
            (root.path / folder).mkdir()
        (root.path / "agent").write_bytes(program.read_bytes())
        (root.path / "agent").chmod(0o755)
        binds = " && ".join(
            f"mount --rbind /{name} {root.path}/{name}" for name in ("proc", "sys", "dev")
        )
        shell = f"{binds} && cd {root.path} && pivot_root . tmp && exec /agent"
        with Agent(
            Path("-c"), "unshare", "-m", "--propagation", "private", "sh", "-c", shell
        ) as agent:
            refused = resolve(agent, {"action": "detach", "device": device.path}, device.name)
            assert (refused.is_, refused["code"]) == ("error", "refused")
            assert "root disk" in refused["message"]


def test_what_another_session_holds_is_refused(program: Path, agent: Agent, target: Target) -> None:
    action = {"action": "detach", "device": f"/dev/{target.device}"}
    resolved = resolve(agent, action, target=target.path)
    with Agent(program) as other:
        assert other.ask("undo_add", name="theirs", what=resolved["undo"]).is_ == "done"
        again = resolve(agent, action, target=target.path)
        for refused in (again, agent.ask("undo_add", name="ours", what=resolved["undo"])):
            assert (refused.is_, refused["code"]) == ("error", "busy")
            assert "theirs" in refused["message"]
        held = agent.ask("leftovers", path=None)["held_undos"]
        assert any(step.startswith("theirs: ") for undo in held for step in undo["steps"])
        held = other.ask("leftovers", path=None)["held_undos"]
        assert not any(step.startswith("theirs: ") for undo in held for step in undo["steps"])
        assert other.ask("undo", name="theirs").is_ == "stepped"
    assert agent.ask("undo_add", name="ours", what=resolved["undo"]).is_ == "done"


@pytest.fixture
def link() -> Iterator[str]:
    """A network namespace with one link, an address and a default route by it."""
    require(ROOT, "ip")
    name = f"iolab-{uuid.uuid4().hex[:8]}"
    command("ip", "netns", "add", name)
    try:
        for words in (
            f"link add {LINK} type veth peer name peer",
            "link set lo up",
            "link set peer up",
            f"link set {LINK} up",
            f"addr add 192.0.2.2/24 dev {LINK}",
            f"route add default via 192.0.2.1 dev {LINK} metric 7",
        ):
            command("ip", "-n", name, *words.split())
        yield name
    finally:
        command("ip", "netns", "del", name)


def routes(namespace: str) -> set[tuple[str, str | None]]:
    found = json.loads(command("ip", "-n", namespace, "-j", "route", "show"))
    return {(route["dst"], route.get("gateway")) for route in found}


def is_up(namespace: str) -> bool:
    (found,) = json.loads(command("ip", "-n", namespace, "-j", "link", "show", LINK))
    return "UP" in found["flags"]


def test_a_link_is_cut_and_comes_back_with_its_routes(program: Path, link: str) -> None:
    before = routes(link)
    assert ("default", "192.0.2.1") in before
    with Agent(program, "nsenter", f"--net=/run/netns/{link}") as agent:
        do(agent, resolve(agent, {"action": "cut_link", "interface": LINK}))
        assert not is_up(link)
        assert routes(link) == set()
        undo(agent)
    assert is_up(link)
    assert routes(link) == before


def test_a_link_without_an_address_is_cut_while_it_is_up(program: Path, link: str) -> None:
    """As a port of a bridge, which has one in its place."""
    command("ip", "-n", link, "addr", "flush", "dev", LINK)
    cut = {"action": "cut_link", "interface": LINK}
    with Agent(program, "nsenter", f"--net=/run/netns/{link}") as agent:
        do(agent, resolve(agent, cut))
        assert not is_up(link)
        refused = resolve(agent, cut)
        assert LINK in refused["message"]
        assert "is down" in refused["message"]
        undo(agent)
    assert is_up(link)


def test_the_controllers_own_link_is_cut_with_a_timer_alone(program: Path, link: str) -> None:
    reached = "SSH_CONNECTION=192.0.2.1 4711 192.0.2.2 22"
    action = {"action": "cut_link", "interface": LINK}
    with Agent(program, "nsenter", f"--net=/run/netns/{link}", "env", reached) as agent:
        assert agent.ask("lease", seconds=30).is_ == "done"
        for after_s in (None, 30.0):
            refused = resolve(agent, {**action, "undo_after_s": after_s})
            assert (refused.is_, refused["code"]) == ("error", "refused")
            assert "link to the controller" in refused["message"]
        do(agent, resolve(agent, {**action, "undo_after_s": 1.0}), timer_s=1.0)
        assert until(lambda: is_up(link))


def test_a_group_is_limited_and_the_limit_of_before_comes_back(
    agent: Agent, target: Target
) -> None:
    require(ROOT)
    is_old = (GROUPS / "blkio" / "blkio.throttle.read_iops_device").exists()
    group = (GROUPS / "blkio" if is_old else GROUPS) / f"iolab-test-{uuid.uuid4().hex[:8]}"
    if not is_old:
        (GROUPS / "cgroup.subtree_control").write_text("+io")
    group.mkdir()
    try:
        file = group / ("blkio.throttle.read_iops_device" if is_old else "io.max")
        number = Path(f"/sys/block/{target.device}/dev").read_text().strip()
        action = {"action": "limit", "group": str(group), "device": f"/dev/{target.device}"}
        for before in ("", "5"):
            if before:
                file.write_text(f"{number} {'' if is_old else 'riops='}{before}")
            resolved = resolve(agent, {**action, "rates": {"read_iops": 200}}, target=target.path)
            do(agent, resolved, name=f"limit {before}")
            assert number in file.read_text()
            assert "200" in file.read_text()
            undo(agent, f"limit {before}")
            assert "200" not in file.read_text()
            assert before in file.read_text()
        refused = resolve(
            agent, {**action, "group": "/sys", "rates": {"read_iops": 1}}, target=target.path
        )
        assert "/sys is no control group" in refused["message"]
    finally:
        group.rmdir()


def test_neither_itself_nor_a_unit_that_is_not_there_is_stopped(
    agent: Agent, tmp_path: Path
) -> None:
    pid_file = tmp_path / "pid"
    pid_file.write_text(str(os.getpid()))
    refused = resolve(agent, {"action": "stop", "process": str(pid_file)})
    assert (refused.is_, refused["code"]) == ("error", "refused")
    assert str(os.getpid()) in refused["message"]
    missing = resolve(agent, {"action": "kill", "process": "iolab-no-such.service"})
    assert missing.is_ == "error"
    assert "iolab-no-such.service" in missing["message"] or "systemctl" in missing["message"]


@pytest.fixture
def sleeper() -> Iterator[int]:
    """The id of a process of another user."""
    require(ROOT, "setpriv")
    argv = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sleep", "600"]
    with subprocess.Popen(argv) as process:
        name = Path(f"/proc/{process.pid}/comm")
        assert until(lambda: name.read_text() == "sleep\n")
        yield process.pid
        process.kill()


def test_a_process_that_may_not_be_signalled_is_told(
    program: Path, tmp_path: Path, sleeper: int
) -> None:
    pid_file = tmp_path / "pid"
    pid_file.write_text(str(sleeper))
    action = {"action": "stop", "process": str(pid_file)}
    with Agent(program) as able:
        resolved = resolve(able, action)
    with Agent(program, "setpriv", "--bounding-set=-kill") as agent:
        for refused in (resolve(agent, action), agent.ask("step", what=resolved["steps"])):
            assert (refused.is_, refused["code"]) == ("error", "EPERM")
            assert str(sleeper) in refused["message"]


def process_state(pid: int) -> str:
    """As the kernel has it: T of one that was stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


def test_an_undo_waits_for_its_steps_and_no_step_follows_it(
    agent: Agent, tmp_path: Path, sleeper: int
) -> None:
    pid_file = tmp_path / "pid"
    pid_file.write_text(str(sleeper))
    resolved = resolve(agent, {"action": "stop", "process": str(pid_file)})
    assert agent.ask("undo_add", name="event", what=resolved["undo"]).is_ == "done"
    pause = {"step": "command", "argv": ["/bin/sleep", "1"], "timeout_s": 60}
    timer = {"name": "event", "seconds": 0.2}
    stepped = agent.ask("step", what=[pause, *resolved["steps"]], undo_timer=timer)
    assert stepped.is_ == "stepped"
    assert undo(agent)["started_real_ns"] >= stepped["ended_real_ns"]
    assert until(lambda: process_state(sleeper) != "T")
    refused = agent.ask("step", what=resolved["steps"], undo="event")
    assert (refused.is_, refused["code"]) == ("error", "bad-request")
    assert process_state(sleeper) != "T"
