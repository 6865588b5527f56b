"""What only looks like iolab's own is not touched: docs/reference/ownership.md, row by row."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.agent.speaker import PATIENCE_S, Agent, Said, output, pids_marked, until
from tests.needs import require
from tests.processes import run_program

NAME = "iolab-scratch-local"
DEAD = "999999-00000000deadbeef"
NOBODY = 65534


def open_scratch(agent: Agent, path: Path) -> Said:
    return agent.ask("scratch_open", path=str(path), name=NAME, owner="session A")


def clean(agent: Agent, path: Path) -> Said:
    """Look, and have removed what was found, as `iolab clean` does."""
    found = agent.ask("leftovers", path=str(path))
    names = [str(process["pid"]) for process in found["processes"]]
    names += [folder["dir"] for folder in found["folders"]]
    return agent.ask("leftovers", path=str(path), remove=[*names, *found["groups"]])


@contextmanager
def sleeper(
    *argv: str, user: int | None = None, cwd: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A process with the environment of a dead agent's run; it must live on."""
    env = {**os.environ, "IOLAB_RUN": f"{DEAD}.1"}
    process = subprocess.Popen(argv or ["sleep", "600"], env=env, user=user, cwd=cwd)
    yield process
    assert process.poll() is None, "it was killed"
    process.kill()
    process.wait()


def test_a_copied_scratch_folder_is_not_its_living_owner(
    agent: Agent, program: Path, tmp_path: Path, mark: str
) -> None:
    """As of a snapshot, a clone, rsync: the lock in it names the agent of the original."""
    live, copy = tmp_path / "live", tmp_path / "copy"
    live.mkdir()
    folder = open_scratch(agent, live)["dir"]
    code = "import time\nprint('up', flush=True)\ntime.sleep(600)"
    run = agent.begin("run", argv=["python3", "-c", code, mark], cwd=folder)
    assert agent.next(run).is_ == "started"
    for act in (clean, open_scratch):
        shutil.copytree(live, copy)
        with Agent(program) as other:
            found = other.ask("leftovers", path=str(copy))["folders"]
            assert ["copy of session A" in each["owner"] for each in found] == [True]
            act(other, copy)
        shutil.rmtree(copy, ignore_errors=True)
        assert len(pids_marked(mark)) == 1
        assert agent.ask("clock").is_ == "clock"
    assert Path(folder).exists()


def test_a_lock_file_that_was_lost_is_still_its_owners(
    agent: Agent, program: Path, tmp_path: Path
) -> None:
    """Whoever restores files writes a new one: nobody holds the lock of that."""
    lock = Path(open_scratch(agent, tmp_path)["dir"]) / ".iolab-lock"
    text = lock.read_text()
    lock.unlink()
    lock.write_text(text)
    with Agent(program) as other:
        assert clean(other, tmp_path)["folders"] == []
        assert open_scratch(other, tmp_path)["code"] == "busy"
    agent.close()
    assert not lock.exists()


def test_a_variable_in_the_environment_makes_no_process_ours(agent: Agent, tmp_path: Path) -> None:
    """Neither of the same user, nor another's, nor a program with its file owner's rights."""
    require("root")
    setuid = tmp_path / "sleep"
    shutil.copy2("/bin/sleep", setuid)
    setuid.chmod(0o4755)
    tmp_path.chmod(0o755)
    with sleeper() as _, sleeper(user=NOBODY) as _:
        process = subprocess.Popen(
            ["setpriv", "--reuid", str(NOBODY), setuid, "600"],
            env={**os.environ, "IOLAB_RUN": f"{DEAD}.1"},
        )
        assert clean(agent, tmp_path)["processes"] == []
        open_scratch(agent, tmp_path)
        assert process.poll() is None
        process.kill()
        process.wait()


def test_a_token_of_another_user_makes_no_process_ours(agent: Agent, tmp_path: Path) -> None:
    """A program of root's that he started inherits whatever he has open."""
    require("root")
    code = (
        "import os, sys\n"
        f"os.seteuid({NOBODY})\n"
        f"token = os.memfd_create('iolab-token-{DEAD}', 0)\n"
        "os.seteuid(0)\n"
        "os.execlp('sleep', 'sleep', '600')\n"
    )
    with sleeper("python3", "-c", code) as process:
        assert until(lambda: Path(f"/proc/{process.pid}/comm").read_text() == "sleep\n")
        assert clean(agent, tmp_path)["processes"] == []
        open_scratch(agent, tmp_path)


@contextmanager
def tree_of_groups(folder: Path) -> Iterator[Path]:
    """Where control groups can be made: the tree of this machine, or one mounted for the test."""
    for top in map(Path, ("/sys/fs/cgroup/memory", "/sys/fs/cgroup")):
        if (top / "cgroup.procs").exists() and not os.statvfs(top).f_flag & os.ST_RDONLY:
            yield top
            return
    top = folder / "groups"
    top.mkdir()
    subprocess.run(["mount", "-t", "cgroup2", "none", top], check=True)
    try:
        yield top
    finally:
        subprocess.run(["umount", top], check=True)


def test_a_control_group_that_another_user_named_as_ours_stays(
    agent: Agent, tmp_path: Path
) -> None:
    require("root")
    with tree_of_groups(tmp_path) as top:
        group = top / f"iolab-{DEAD}.7"
        group.mkdir()
        try:
            os.chown(group, NOBODY, -1)
            with sleeper() as process:
                (group / "cgroup.procs").write_text(str(process.pid))
                assert clean(agent, tmp_path)["groups"] == []
                (top / "cgroup.procs").write_text(str(process.pid))
            os.chown(group, 0, -1)
            assert clean(agent, tmp_path)["groups"] == [str(group)]
            assert not group.exists()
        finally:
            if group.exists():
                group.rmdir()


def test_a_control_group_of_a_living_agent_stays_whoever_has_its_number(
    agent: Agent, program: Path, tmp_path: Path
) -> None:
    """One that bears the number of a living process, which started at another time, is a dead's."""
    require("root")
    lock = json.loads((Path(open_scratch(agent, tmp_path)["dir"]) / ".iolab-lock").read_text())
    number, _, started = lock["agent"].partition("-")
    recycled = f"{number}-{int(started, 16) - (1 << 24):016x}"
    with tree_of_groups(tmp_path) as top, Agent(program) as other:
        groups = [top / f"iolab-{sign}.7" for sign in (lock["agent"], recycled)]
        try:
            for group in groups:
                group.mkdir()
            assert other.ask("leftovers")["groups"] == [str(groups[1])]
        finally:
            for group in groups:
                group.rmdir()


def test_a_folder_of_another_user_is_named_and_left_alone(agent: Agent, tmp_path: Path) -> None:
    require("root")
    theirs = tmp_path / "iolab-scratch-b"
    theirs.mkdir()
    (theirs / ".iolab-lock").write_text("")
    (theirs / "precious").write_text("stays")
    os.chown(theirs, NOBODY, -1)
    found = clean(agent, tmp_path)
    assert (found["folders"], found["faults"]) == ([], [])
    assert (found["foreign_folders"], found["foreign_folder_count"]) == ([str(theirs)], 1)
    assert (theirs / "precious").read_text() == "stays"


def test_a_folder_that_another_user_holds_stops_nobody(agent: Agent, tmp_path: Path) -> None:
    require("root")
    theirs = tmp_path / "iolab-scratch-b"
    theirs.mkdir()
    lock = theirs / ".iolab-lock"
    lock.touch()
    os.chown(theirs, NOBODY, -1)
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        told = agent.ask("probe", path=str(tmp_path))
        assert (told["held_by"], str(NOBODY) in told["other_user"]) == (None, True)
        assert open_scratch(agent, tmp_path).is_ == "scratch"


def test_thousands_of_folders_are_counted_and_some_are_named(agent: Agent, tmp_path: Path) -> None:
    require("root")
    for number in range(3000):
        folder = tmp_path / f"iolab-scratch-{number}"
        folder.mkdir()
        (folder / ".iolab-lock").touch()
        if number % 2:
            os.chown(folder, NOBODY, -1)
    found = agent.ask("leftovers", path=str(tmp_path))
    assert (found["foreign_folder_count"], len(found["foreign_folders"])) == (1500, 10)
    assert len(found["folders"]) + found["more_folders"] == 1500


def test_a_killed_agent_whose_id_was_given_to_another_holds_nothing(
    agent: Agent, program: Path, tmp_path: Path
) -> None:
    """The lock names a living process by its id, but that started at another time."""
    folder = Path(open_scratch(agent, tmp_path)["dir"])
    (folder / "file").write_bytes(b"x" * 1000)
    os.kill(agent.hello["pid"], signal.SIGKILL)
    agent.process.wait(PATIENCE_S)
    lock = folder / ".iolab-lock"
    pid, started = f'"agent":"{agent.process.pid}-', f'"agent":"{os.getpid()}-'
    assert pid in lock.read_text()
    lock.write_text(lock.read_text().replace(pid, started))
    with Agent(program) as other:
        assert [each["dir"] for each in clean(other, tmp_path)["folders"]] == [str(folder)]
    assert not folder.exists()


WRITES = """
import os, sys, time
print("up", flush=True)
while not os.path.exists("stop"):
    time.sleep(0.01)
with open("data", "wb") as file:
    file.write(b"load")
"""


def replace_folder(folder: Path, by: Path) -> Path:
    """What the owner of the directory can do at any time; where the folder is now."""
    moved = folder.with_name("moved")
    folder.rename(moved)
    folder.symlink_to(by)
    return moved


def test_load_stays_in_a_folder_that_is_moved_and_the_run_fails(
    agent: Agent, tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "data").write_text("stays")
    folder = Path(open_scratch(agent, tmp_path)["dir"])
    run = agent.begin("run", argv=["python3", "-c", WRITES], cwd=str(folder))
    assert agent.next(run).is_ == "started"
    assert agent.next(run).payload == b"up\n"
    moved = replace_folder(folder, precious)
    (moved / "stop").touch()
    end = agent.rest(run)[-1]
    assert (end.is_, end["code"], str(folder) in end["message"]) == ("error", "replaced", True)
    assert (moved / "data").read_text() == "load"
    assert (precious / "data").read_text() == "stays"


def test_nothing_is_done_by_the_name_of_a_folder_that_was_moved(
    agent: Agent, tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "data").write_text("stays")
    folder = Path(open_scratch(agent, tmp_path)["dir"])
    (folder / "data").write_text("load")
    moved = replace_folder(folder, precious)
    file = str(folder / "data")
    asked = [
        agent.ask("run", argv=["true"], cwd=str(folder)),
        agent.ask("run", argv=["rm", "-rf", file]),
        agent.ask("put", b"load", path=file, mode=0o600),
        agent.ask("get", path=file, max_bytes=100),
        agent.ask("extents", paths=[file]),
        agent.ask("evict", paths=[file], system=False),
        agent.ask("connect", dir=str(folder), name="socket", wait_s=0),
        agent.ask(
            "metadata", dir=str(folder), phase="tree-create", iteration=0, first_rank=0, ranks=1,
            total_ranks=1, files_per_rank=1, file_bytes=0,
        ),
    ]  # fmt: skip
    assert {said["code"] for said in asked} == {"replaced"}
    closed = agent.ask("scratch_close", dir=str(folder), keep=False)
    assert (closed["code"], str(moved) in closed["message"]) == ("replaced", True)
    assert not moved.exists()
    assert [path.name for path in precious.iterdir()] == ["data"]
    assert (precious / "data").read_text() == "stays"


@pytest.mark.parametrize("how", ["removed", "another", "file"])
def test_a_folder_that_is_gone_or_another_is_told_at_the_end(
    agent: Agent, tmp_path: Path, how: str
) -> None:
    folder = Path(open_scratch(agent, tmp_path)["dir"])
    shutil.rmtree(folder)
    if how == "another":
        (folder / "theirs").mkdir(parents=True)
    elif how == "file":
        folder.write_text("theirs")
    assert agent.ask("run", argv=["true"], cwd=str(folder))["code"] == "replaced"
    assert agent.ask("scratch_close", dir=str(folder), keep=False)["code"] == "replaced"
    assert folder.exists() == (how != "removed")


def test_a_mount_over_the_folder_is_not_the_folder(agent: Agent, tmp_path: Path) -> None:
    require("root")
    folder = Path(open_scratch(agent, tmp_path)["dir"])
    (folder / "data").write_text("load")
    subprocess.run(["mount", "-t", "tmpfs", "none", folder], check=True)
    try:
        (folder / "theirs").write_text("stays")
        assert agent.ask("run", argv=["true"], cwd=str(folder))["code"] == "replaced"
        refused = agent.ask("scratch_close", dir=str(folder), keep=False)
        assert (refused["code"], "mount covers it" in refused["message"]) == ("EBUSY", True)
        assert refused["message"].count("replaced") == 0
        assert (folder / "theirs").read_text() == "stays"
    finally:
        subprocess.run(["umount", folder], check=True)
    assert not (folder / "data").exists()


def test_a_link_in_the_place_of_a_file_is_not_followed(agent: Agent, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("stays")
    folder = Path(open_scratch(agent, tmp_path)["dir"])
    (folder / "data").symlink_to(precious)
    (folder / "deep").symlink_to(tmp_path)
    asked = [
        agent.ask("run", argv=["true"], cwd=str(folder)),
        agent.ask("extents", paths=[str(folder / "data")]),
        agent.ask("get", path=str(folder / "data"), max_bytes=100),
        agent.ask("put", b"load", path=str(folder / "data"), mode=0o600),
    ]
    assert {said["code"] for said in asked} == {"replaced"}
    deep = agent.ask("get", path=str(folder / "deep" / "precious"), max_bytes=100)
    assert deep["code"] in {"ELOOP", "ENOTDIR"}
    assert agent.ask("run", argv=["true"], cwd=str(folder / "deep"))["code"] in {"ELOOP", "ENOTDIR"}
    assert precious.read_text() == "stays"


def test_the_native_engine_follows_no_link(agent: Agent, tmp_path: Path) -> None:
    """In a folder that is not held, where the agent does not look for links."""
    precious = tmp_path / "precious"
    precious.write_bytes(b"stays".ljust(65536))
    work = tmp_path / "work"
    work.mkdir()
    (work / "data").symlink_to(precious)
    block = {"bytes": 4096}
    job = {
        "files": [{"path": "data", "bytes": 65536}],
        "rw": "write",
        "blocks": [block],
        "depth": 1,
    }
    spec = {"format": 1, "jobs": [job], "direct": False, "runtime_s": 0.1}
    payload = json.dumps(spec).encode()
    said = agent.run("iolab-agent", "engine", payload=payload, cwd=str(work))
    assert said[-1]["code"] == 2, output(said)
    assert b"ELOOP" in output(said)
    assert precious.read_bytes().startswith(b"stays")


@contextmanager
def ext4_on_loop(folder: Path) -> Iterator[tuple[Path, Path]]:
    """An image with a file system, and where it is mounted."""
    require("mkfs.ext4", "root")
    image, at = folder / "image", folder / "mounted"
    at.mkdir()
    with image.open("wb") as file:
        file.truncate(16 << 20)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, at], check=True)
    try:
        yield image, at
    finally:
        if os.path.ismount(at):
            subprocess.run(["umount", at], check=True)


@contextmanager
def immutable(file: Path) -> Iterator[None]:
    """A file that not even root can remove, or a folder from which nothing can be removed."""
    require("chattr", "root")
    if not file.exists():
        file.touch()
    subprocess.run(["chattr", "+i", file], check=True)
    try:
        yield
    finally:
        # By whatever name its folder has by then.
        for each in file.parent.parent.rglob(file.name):
            subprocess.run(["chattr", "-i", each], check=True)


def test_the_last_answer_names_a_folder_that_stays_where_it_is_by_now(
    agent: Agent, tmp_path: Path
) -> None:
    with ext4_on_loop(tmp_path) as (_, target):
        folder, moved = Path(open_scratch(agent, target)["dir"]), target / "moved"
        with immutable(folder / "stays"):
            refused = agent.ask("scratch_close", dir=str(folder), keep=False)
            assert refused["code"] == "EPERM"
            folder.rename(moved)
            (left,) = agent.ask("bye")["left"]
            assert (left["kind"], left["name"]) == ("folder", str(moved))
            assert str(folder) in left["reason"]
            assert f"{moved}/stays: " in left["reason"]
        assert agent.process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize("protected", ["file", "folder"])
def test_a_file_that_cannot_be_removed_is_named_with_its_attribute(
    agent: Agent, tmp_path: Path, protected: str
) -> None:
    """`chattr +i` on a file deep in the folder, or on the folder that it lies in."""
    with ext4_on_loop(tmp_path) as (_, target):
        deep = Path(open_scratch(agent, target)["dir"]) / "deep" / "er"
        deep.mkdir(parents=True)
        (deep / "stays").touch()
        with immutable(deep if protected == "folder" else deep / "stays"):
            refused = agent.ask("scratch_close", dir=str(deep.parents[1]), keep=False)
            assert f"{deep}/stays: " in refused["message"]
            assert "chattr" in refused["message"]
        agent.close()


def test_what_could_be_removed_by_the_end_is_not_named(agent: Agent, tmp_path: Path) -> None:
    with ext4_on_loop(tmp_path) as (_, target):
        folder = Path(open_scratch(agent, target)["dir"])
        with immutable(folder / "stays"):
            assert agent.ask("scratch_close", dir=str(folder), keep=False).is_ == "error"
        assert agent.ask("bye")["left"] == []
        assert not folder.exists()
        assert agent.process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize("ask", ["scratch_close", "bye"])
def test_a_folder_whose_file_system_was_unmounted_lazily_is_removed_there(
    agent: Agent, tmp_path: Path, ask: str
) -> None:
    """`umount -l`: no path leads there any more, and what is held open is still the folder."""
    with ext4_on_loop(tmp_path) as (image, target):
        folder = Path(open_scratch(agent, target)["dir"])
        (folder / "data").write_text("load")
        subprocess.run(["umount", "-l", target], check=True)
        if ask == "bye":
            assert agent.ask("bye")["left"] == []
        else:
            closed = agent.ask("scratch_close", dir=str(folder), keep=False)
            assert (closed["code"], "unmounted" in closed["message"]) == ("replaced", True)
            assert agent.close() == 0
        agent.process.wait(PATIENCE_S)
        assert until(lambda: str(image) not in loops())
        subprocess.run(["mount", "-o", "loop", image, target], check=True)
        assert [path.name for path in target.iterdir()] == ["lost+found"]


def loops() -> str:
    said = run_program(["losetup", "-a"], check=True)
    return said.stdout


def test_an_unmounted_folder_that_stays_is_named_by_where_it_was(
    agent: Agent, tmp_path: Path
) -> None:
    with ext4_on_loop(tmp_path) as (image, target):
        folder = Path(open_scratch(agent, target)["dir"])
        stays = folder / "stays"
        stays.touch()
        subprocess.run(["chattr", "+i", stays], check=True)
        subprocess.run(["umount", "-l", target], check=True)
        (left,) = agent.ask("bye")["left"]
        assert (left["kind"], left["name"]) == ("folder", str(folder))
        assert "unmounted" in left["reason"]
        agent.process.wait(PATIENCE_S)
        assert until(lambda: str(image) not in loops())
        subprocess.run(["mount", "-o", "loop", image, target], check=True)
        subprocess.run(["chattr", "-i", stays], check=True)


def test_an_empty_folder_below_a_mount_is_named(agent: Agent, tmp_path: Path) -> None:
    require("root")
    folder = Path(open_scratch(agent, tmp_path)["dir"])
    (folder / "data").write_text("load")
    subprocess.run(["mount", "-t", "tmpfs", "none", folder], check=True)
    try:
        (left,) = agent.ask("bye")["left"]
        assert (left["kind"], left["name"]) == ("folder", str(folder))
        assert "mount covers it" in left["reason"]
    finally:
        subprocess.run(["umount", folder], check=True)
    assert list(folder.iterdir()) == []


def test_a_run_that_has_ended_is_signalled_no_more(agent: Agent) -> None:
    """A server, a guest's QEMU: they are named by their request, whose process id may be another's.

    None is kept on disk, so none outlives the agent that started it.
    """
    run = agent.begin("run", argv=["true"])
    pid = next(said for said in agent.rest(run) if said.is_ == "started")["pid"]
    with sleeper() as bystander:
        for word in ("KILL", "TERM"):
            refused = agent.ask("signal", run=run, signal=word)
            assert refused.is_ == "error"
        for number in (bystander.pid, pid):  # Nor is a number taken for a request's.
            assert agent.ask("signal", run=number, signal="KILL").is_ == "error"


def test_a_guests_files_are_only_what_lies_in_the_scratch_folder(
    agent: Agent, program: Path, tmp_path: Path
) -> None:
    """Images, sockets, pid files: links with their names are removed, and not followed."""
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "disk.qcow2").write_text("stays")
    with sleeper() as bystander:
        folder = Path(open_scratch(agent, tmp_path)["dir"])
        (folder / "vm-1.qcow2").symlink_to(precious / "disk.qcow2")
        (folder / "kit-guest").symlink_to(precious)
        (folder / "qemu.pid").write_text(str(bystander.pid))
        (folder / "cassandra.pid").write_text(str(bystander.pid))
        os.mkfifo(folder / "vm-1.monitor")
        os.kill(agent.hello["pid"], signal.SIGKILL)
        agent.process.wait(PATIENCE_S)
        with Agent(program) as other:
            assert [each["dir"] for each in clean(other, tmp_path)["folders"]] == [str(folder)]
    assert not folder.exists()
    assert (precious / "disk.qcow2").read_text() == "stays"


@pytest.mark.parametrize(
    ("program_name", "pid_file"),
    [
        ("qemu-system-x86_64", "vm-1.pid"),
        ("java", "cassandra.pid"),
        ("java", "ycsb.run/client-0.pid"),
    ],
)
def test_a_server_that_a_pid_file_names_is_not_signalled(
    agent: Agent, program: Path, tmp_path: Path, program_name: str, pid_file: str
) -> None:
    """It works in the folder, has the name and the environment, and its id stands in a file."""
    folder = Path(open_scratch(agent, tmp_path)["dir"])
    server = tmp_path / program_name
    shutil.copy2("/bin/sleep", server)
    with sleeper(str(server), "600", cwd=folder) as impostor:
        recorded = folder / pid_file
        recorded.parent.mkdir(exist_ok=True)
        recorded.write_text(f"{impostor.pid}\n")
        assert agent.ask("scratch_close", dir=str(folder), keep=False).is_ == "done"
        assert impostor.poll() is None
        folder = Path(open_scratch(agent, tmp_path)["dir"])
        recorded.parent.mkdir(exist_ok=True)
        recorded.write_text(f"{impostor.pid}\n")
        os.kill(agent.hello["pid"], signal.SIGKILL)
        agent.process.wait(PATIENCE_S)
        with Agent(program) as other:
            found = clean(other, tmp_path)
            assert found["processes"] == []
            assert [each["dir"] for each in found["folders"]] == [str(folder)]
            assert impostor.poll() is None
        assert not folder.exists()


def test_a_connection_goes_to_no_socket_that_a_link_names(agent: Agent, tmp_path: Path) -> None:
    """The monitor of a guest: whoever put a link there would rule another QEMU."""
    folder = Path(open_scratch(agent, tmp_path)["dir"])
    (folder / "vm-1.monitor").symlink_to("/run/other.sock")
    said = agent.ask("connect", dir=str(folder), name="vm-1.monitor", wait_s=0)
    assert said.is_ == "error"


def test_a_loop_device_whose_number_was_given_to_another_file_stays(
    agent: Agent, program: Path, tmp_path: Path
) -> None:
    """It is shown while its file lies in a folder that is left, and never detached."""
    require("losetup", "root")
    folder = Path(open_scratch(agent, tmp_path)["dir"])
    other_file = tmp_path / "other"
    for file in (folder / "fs.img", other_file):
        with file.open("wb") as image:
            image.truncate(1 << 20)
    os.kill(agent.hello["pid"], signal.SIGKILL)
    agent.process.wait(PATIENCE_S)
    said = ["losetup", "--find", "--show", str(other_file)]
    device = run_program(said, check=True).stdout.strip()
    try:
        with Agent(program) as other:
            found = other.ask("leftovers", path=str(tmp_path))
            assert found["loops"] == []
            names = [device, *(each["dir"] for each in found["folders"])]
            told = other.ask("leftovers", path=str(tmp_path), remove=names)
            assert told["faults"] == []
        assert str(other_file) in loops()
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


def test_every_row_of_the_page_names_a_test_that_is_there() -> None:
    tests = Path(__file__).parents[1]
    page = (tests.parent / "docs" / "reference" / "ownership.md").read_text(encoding="utf-8")
    objects, _, impostors = page.partition("## Tests with impostors")
    named = re.findall(r"^\| (.+) \| `(\S+)` \| `(\S+)` \|$", impostors, re.MULTILINE)
    rows = re.findall(r"^\| \*\*.*", objects, re.MULTILINE)
    assert len(named) == len(rows)
    for (row, file, test), line in zip(named, rows, strict=True):
        assert line.replace("**", "").startswith(f"| {row}")
        assert f"def {test}(" in (tests / file).read_text(encoding="utf-8")
