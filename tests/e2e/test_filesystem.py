"""File systems that the agent makes and bounds of memory: what they do, and that nothing stays.

Only image files, loop devices and control groups of these tests are ever made, as root.
"""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.agent.conftest import program  # noqa: F401 - a fixture
from tests.agent.speaker import PATIENCE_S, Agent, Said, output, until
from tests.agent.test_schema import VALIDATOR
from tests.agent.test_scratch import open_scratch
from tests.e2e.devices import Spare, spare_loop
from tests.e2e.targets import command

pytestmark = pytest.mark.e2e

IMAGE_BYTES: Final = 320 << 20
"""About the least that mkfs.xfs accepts."""

BOUND_BYTES: Final = 64 << 20
FILE_BYTES: Final = 256 << 20


@pytest.fixture
def agent(program: Path) -> Iterator[Agent]:  # noqa: F811 - the fixture
    with Agent(program) as agent:
        yield agent


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder on disk: /tmp may be in memory."""
    with tempfile.TemporaryDirectory(prefix="iolab-test-", dir="/var/tmp") as name:
        yield Path(name)


@pytest.fixture
def spare() -> Iterator[Spare]:
    with spare_loop(IMAGE_BYTES) as spare:
        yield spare


def opened(agent: Agent, scratch: str, **ground: Any) -> Said:
    said = agent.ask("filesystem_open", dir=scratch, **(ground or {"image_bytes": IMAGE_BYTES}))
    assert said.is_ == "filesystem", said.header
    VALIDATOR.validate(said.header)
    return said


def loops_on(folder: Path) -> list[str]:
    """The loop devices over files in a folder, removed ones too."""
    found = []
    for file in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            text = file.read_text(encoding="utf-8")
        except OSError:
            continue  # it has just been detached
        if text.startswith(str(folder)):
            found.append(file.parts[3])
    return found


def mounts_in(folder: Path) -> list[str]:
    """Who sees a mount below a folder, by process; its threads need not see the same."""
    found = []
    for table in Path("/proc").glob("[0-9]*/task/[0-9]*/mountinfo"):
        try:
            text = table.read_text(encoding="utf-8")
        except OSError:
            continue  # it has just ended
        if f" {folder}/" in text:
            found.append(table.parts[2])
    return found


def groups(agent: Agent) -> list[str]:
    """The control groups that an agent has made for runs."""
    found = Path("/sys/fs/cgroup").rglob(f"iolab-{agent.process.pid}-*.*")
    return [str(path) for path in found if path.is_dir()]


def nothing_on(folder: Path) -> bool:
    return not loops_on(folder) and not mounts_in(folder)


def start_bounded(agent: Agent, **arguments: Any) -> int:
    """A bounded run that stays, with a child of its own."""
    code = "import subprocess, time\nsubprocess.Popen(['sleep', '600'])\nprint('up', flush=True)\n"
    argv = ["python3", "-c", code + "time.sleep(600)"]
    run = agent.begin("run", argv=argv, memory_limit_bytes=BOUND_BYTES, **arguments)
    assert agent.next(run).is_ == "started"
    assert agent.next(run).payload == b"up\n"
    return run


def test_one_in_an_image_is_an_xfs_that_only_its_runs_see(agent: Agent, folder: Path) -> None:
    scratch = open_scratch(agent, folder)["dir"]
    made = opened(agent, scratch)
    assert (made["dir"], made["kept"]) == (f"{scratch}/fs", False)
    target = agent.ask("facts", path=made["dir"])["facts"]["target"]
    assert (target["fs_type"], target["mount_point"]) == ("xfs", made["dir"])
    assert target["device"] == target["devices"][0] == made["device"]
    assert len(target["devices"]) > 1
    options = target["mount_options"].split(",")
    assert {"noatime", "discard"} <= {*options}
    script = "dd if=/dev/urandom of=a bs=1M count=8 && cp --reflink=always a b && cmp a b"
    assert agent.run("sh", "-c", script, cwd=made["dir"])[-1]["code"] == 0
    (proof,) = [agent.ask("extents", paths=[f"{made['dir']}/b"])]
    assert proof["written_bytes"] == 8 << 20
    assert list(Path(made["dir"]).iterdir()) == []
    assert str(os.getpid()) not in mounts_in(folder)
    assert agent.ask("filesystem_open", dir=scratch, image_bytes=IMAGE_BYTES)["code"] == "busy"
    assert agent.ask("filesystem_close", dir=scratch).is_ == "done"
    assert [path.name for path in Path(scratch).iterdir()] == [".iolab-lock"]
    assert until(lambda: nothing_on(folder))


def test_its_blocks_are_taken_from_the_disk_at_once(agent: Agent, folder: Path) -> None:
    scratch = open_scratch(agent, folder)["dir"]
    opened(agent, scratch)
    assert (Path(scratch) / "fs.img").stat().st_blocks * 512 >= IMAGE_BYTES
    assert agent.ask("filesystem_close", dir=scratch).is_ == "done"
    refused = agent.ask("filesystem_open", dir=scratch, image_bytes=1 << 43)
    assert refused["code"] in ("ENOSPC", "EFBIG")
    assert [path.name for path in Path(scratch).iterdir()] == [".iolab-lock"]


def test_one_that_is_too_small_is_refused_in_the_words_of_mkfs(agent: Agent, folder: Path) -> None:
    scratch = open_scratch(agent, folder)["dir"]
    refused = agent.ask("filesystem_open", dir=scratch, image_bytes=4 << 20)
    assert refused["code"] == "EIO"
    assert "mkfs.xfs ended with code 1" in refused["message"]
    assert [path.name for path in Path(scratch).iterdir()] == [".iolab-lock"]
    assert until(lambda: nothing_on(folder))


def test_while_it_is_used_it_cannot_be_closed(agent: Agent, folder: Path) -> None:
    scratch = open_scratch(agent, folder)["dir"]
    made = opened(agent, scratch)
    run = agent.begin("run", argv=["sleep", "600"], cwd=made["dir"])
    assert agent.next(run).is_ == "started"
    assert agent.ask("filesystem_close", dir=scratch)["code"] == "EBUSY"
    assert agent.ask("scratch_close", dir=scratch, keep=False)["code"] == "EBUSY"
    agent.ask("signal", run=run, signal="KILL")
    assert agent.rest(run)[-1].is_ == "exited"
    assert agent.ask("scratch_close", dir=scratch, keep=False).is_ == "done"
    assert list(folder.iterdir()) == []
    assert until(lambda: nothing_on(folder))


def test_an_image_that_was_kept_is_mounted_again(
    agent: Agent,
    program: Path,  # noqa: F811 - the fixture
    folder: Path,
) -> None:
    scratch = open_scratch(agent, folder)["dir"]
    made = opened(agent, scratch)
    agent.run("sh", "-c", "echo golden > file", cwd=made["dir"])
    assert agent.ask("scratch_close", dir=scratch, keep=True).is_ == "done"
    assert (folder / Path(scratch).name / "fs.img").stat().st_size == IMAGE_BYTES
    with Agent(program) as later:
        assert open_scratch(later, folder)["left_over_bytes"] == IMAGE_BYTES
        made = opened(later, scratch)
        assert made["kept"] is True
        assert output(later.run("cat", "file", cwd=made["dir"])) == b"golden\n"
        assert later.ask("scratch_close", dir=scratch, keep=True).is_ == "done"
    with Agent(program) as other:
        open_scratch(other, folder)
        made = opened(other, scratch, image_bytes=IMAGE_BYTES + (16 << 20))
        assert made["kept"] is False
        assert output(other.run("ls", cwd=made["dir"])) == b""
    assert list(folder.iterdir()) == []


def test_a_kept_image_that_is_not_whole_is_made_anew(
    agent: Agent,
    program: Path,  # noqa: F811 - the fixture
    folder: Path,
) -> None:
    scratch = open_scratch(agent, folder)["dir"]
    opened(agent, scratch)
    assert agent.ask("scratch_close", dir=scratch, keep=True).is_ == "done"
    with (Path(scratch) / "fs.img").open("r+b") as image:
        image.write(bytes(4096))
    with Agent(program) as later:
        open_scratch(later, folder)
        assert opened(later, scratch)["kept"] is False


def test_a_device_is_formatted_on_the_terms_of_a_device(
    agent: Agent, folder: Path, spare: Spare
) -> None:
    scratch = open_scratch(agent, folder)["dir"]
    wrong = agent.ask("filesystem_open", dir=scratch, path=spare.path, serial="S5-OTHER")
    assert (wrong["code"], "S5-OTHER" in wrong["message"]) == ("refused", True)
    ground = {"path": spare.path, "serial": spare.serial}
    made = opened(agent, scratch, **ground)
    assert (made["device"], made["direct"]) == (spare.name, True)
    target = agent.ask("facts", path=made["dir"])["facts"]["target"]
    assert (target["fs_type"], target["device"]) == ("xfs", spare.name)
    again = agent.ask("device", path=spare.path, serial=spare.serial)
    assert {"mounted", "in-use"} <= {one["code"] for one in again["objections"]}
    assert agent.ask("filesystem_close", dir=scratch).is_ == "done"
    clean = agent.ask("device", path=spare.path, serial=spare.serial)
    assert (clean["objections"], clean["signatures"]) == ([], [])


def test_a_device_that_is_another_by_the_end_is_not_wiped(
    agent: Agent, folder: Path, spare: Spare
) -> None:
    """As where a disk was pulled, and another one got its name."""
    scratch = open_scratch(agent, folder)["dir"]
    opened(agent, scratch, path=spare.path, serial=spare.serial)
    image = spare.image.rename(spare.image.with_name("another"))
    refused = agent.ask("filesystem_close", dir=scratch)
    assert (refused["code"], str(image) in refused["message"]) == ("refused", True)
    (left,) = agent.ask("bye")["left"]
    assert (left["kind"], left["name"]) == ("device", spare.path)
    assert image.read_bytes()[:4] == b"XFSB"


def test_a_file_system_on_the_device_is_only_lost_by_wish(
    agent: Agent, folder: Path, spare: Spare
) -> None:
    command("mkfs.ext4", "-q", spare.path)
    scratch = open_scratch(agent, folder)["dir"]
    ground: dict[str, Any] = {"path": spare.path, "serial": spare.serial}
    refused = agent.ask("filesystem_open", dir=scratch, **ground)
    assert (refused["code"], "ext4" in refused["message"]) == ("refused", True)
    assert opened(agent, scratch, **ground, overwrite=True)["device"] == spare.name
    assert agent.ask("scratch_close", dir=scratch, keep=False).is_ == "done"
    assert until(lambda: not mounts_in(folder))


def test_the_end_of_the_input_ends_it(agent: Agent, folder: Path) -> None:
    scratch = open_scratch(agent, folder)["dir"]
    made = opened(agent, scratch)
    start_bounded(agent, cwd=made["dir"])
    assert agent.close() == 0
    assert list(folder.iterdir()) == []
    assert until(lambda: nothing_on(folder))
    assert groups(agent) == []


def test_an_agent_that_is_killed_leaves_no_mount_no_loop_and_no_group(
    agent: Agent,
    program: Path,  # noqa: F811 - the fixture
    folder: Path,
) -> None:
    scratch = open_scratch(agent, folder)["dir"]
    made = opened(agent, scratch)
    assert agent.run("dd", "if=/dev/urandom", "of=file", "bs=1M", "count=32", cwd=made["dir"])
    start_bounded(agent, cwd=made["dir"])
    assert len(groups(agent)) == 1
    os.kill(agent.hello["pid"], signal.SIGKILL)
    assert agent.process.wait(PATIENCE_S) == 128 + signal.SIGKILL
    assert groups(agent) == []
    assert until(lambda: nothing_on(folder))
    assert (Path(scratch) / "fs.img").exists()
    with Agent(program) as other:
        assert open_scratch(other, folder).is_ == "scratch"
        assert not (Path(scratch) / "fs.img").exists()
        assert opened(other, scratch)["kept"] is False
    assert list(folder.iterdir()) == []


def test_a_keeper_that_is_killed_with_it_leaves_groups_to_the_next_agent(
    agent: Agent,
    program: Path,  # noqa: F811 - the fixture
    folder: Path,
) -> None:
    open_scratch(agent, folder)
    start_bounded(agent)
    (group,) = groups(agent)
    os.kill(agent.process.pid, signal.SIGSTOP)  # So it cannot do it first.
    os.kill(agent.hello["pid"], signal.SIGKILL)
    os.kill(agent.process.pid, signal.SIGKILL)
    agent.process.wait(PATIENCE_S)
    assert groups(agent) == [group]
    assert until(lambda: not Path(f"/proc/{agent.hello['pid']}").exists())  # nor its lock
    with Agent(program) as other:
        assert open_scratch(other, folder).is_ == "scratch"
        assert groups(agent) == []


def test_memory_is_bounded_with_the_page_cache(agent: Agent, folder: Path) -> None:
    file = folder / "file"
    with file.open("wb") as content:
        for _ in range(FILE_BYTES >> 20):
            content.write(os.urandom(1 << 20))
    assert agent.ask("evict", paths=[str(file)], system=False)["resident_bytes_after"] == 0
    said = agent.run("dd", f"if={file}", "of=/dev/null", "bs=1M", memory_limit_bytes=BOUND_BYTES)
    ended = said[-1]
    VALIDATOR.validate(ended.header)
    assert (ended["code"], ended["oom_kills"]) == (0, 0)
    # Without a bound all of the file would have been cached.
    assert BOUND_BYTES // 2 < ended["memory_peak_bytes"] <= BOUND_BYTES
    assert groups(agent) == []


def test_where_all_groups_are_hidden_they_are_found_all_the_same(
    program: Path,  # noqa: F811 - the fixture
) -> None:
    """`ip netns exec` mounts a new /sys, without any control group."""
    name = f"iolab-test-{os.getpid()}"
    command("ip", "netns", "add", name)
    try:
        with Agent(program, "ip", "netns", "exec", name) as agent:
            probed = agent.ask("probe", path="/var/tmp", rights=True)
            assert (probed["memory_error"], probed["mount_error"]) == (None, None)
            start_bounded(agent)
            assert len(groups(agent)) == 1
            os.kill(agent.hello["pid"], signal.SIGKILL)
            assert agent.process.wait(PATIENCE_S) == 128 + signal.SIGKILL
            assert groups(agent) == []
        with Agent(program, "ip", "netns", "exec", name) as agent:
            start_bounded(agent)
            assert agent.close() == 0
            assert groups(agent) == []
    finally:
        command("ip", "netns", "delete", name)


def test_what_needs_more_than_its_bound_is_killed_and_counted(agent: Agent) -> None:
    code = f"x = b'x' * {2 * BOUND_BYTES}"
    ended = agent.run("python3", "-c", code, memory_limit_bytes=BOUND_BYTES)[-1]
    assert (ended["code"], ended["signal"]) == (None, signal.SIGKILL)
    assert ended["oom_kills"] == 1
    assert ended["memory_peak_bytes"] <= BOUND_BYTES
    whole = agent.run("python3", "-c", code, memory_limit_bytes=8 * BOUND_BYTES)[-1]
    assert (whole["code"], whole["oom_kills"]) == (0, 0)
    assert whole["memory_peak_bytes"] > 2 * BOUND_BYTES


def test_a_program_that_is_not_there_leaves_no_group(agent: Agent) -> None:
    (refused,) = agent.run("no-such-program", memory_limit_bytes=BOUND_BYTES)
    assert refused["code"] == "ENOENT"
    assert groups(agent) == []


def test_who_is_not_root_is_told_so(program: Path) -> None:  # noqa: F811 - the fixture
    nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name, Agent(program, *nobody) as agent:
        os.chown(name, 65534, 65534)
        scratch = open_scratch(agent, Path(name))["dir"]
        refused = agent.ask("filesystem_open", dir=scratch, image_bytes=IMAGE_BYTES)
        assert (refused["code"], "root" in refused["message"]) == ("EPERM", True)
        (refused,) = agent.run("true", memory_limit_bytes=BOUND_BYTES)
        assert refused["code"] in ("EACCES", "EPERM", "ENOTSUP")
        assert "bound memory" in refused["message"]


def test_a_missing_mkfs_is_named(program: Path, folder: Path) -> None:  # noqa: F811 - the fixture
    with Agent(program, "env", "PATH=/nowhere") as agent:
        scratch = open_scratch(agent, folder)["dir"]
        refused = agent.ask("filesystem_open", dir=scratch, image_bytes=IMAGE_BYTES)
        assert (refused["code"], "mkfs.xfs" in refused["message"]) == ("ENOENT", True)
        assert [path.name for path in Path(scratch).iterdir()] == [".iolab-lock"]
