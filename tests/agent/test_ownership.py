"""What only looks like iolab's own is not touched: docs/reference/ownership.md, row by row."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.agent.speaker import PATIENCE_S, Agent, Said, pids_marked, until
from tests.needs import require

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
def sleeper(*argv: str, user: int | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A process with the environment of a dead agent's run; it must live on."""
    env = {**os.environ, "IOLAB_RUN": f"{DEAD}.1"}
    process = subprocess.Popen(argv or ["sleep", "600"], env=env, user=user)
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


def test_a_control_group_that_another_user_named_as_ours_stays(
    agent: Agent, tmp_path: Path
) -> None:
    require("root")
    parent = next(
        (
            top
            for top in map(Path, ("/sys/fs/cgroup/memory", "/sys/fs/cgroup"))
            if (top / "cgroup.procs").exists()
        ),
        None,
    )
    if parent is None:
        pytest.skip("no tree of control groups is mounted here")
    group = parent / f"iolab-{DEAD}.7"
    try:
        group.mkdir()
    except OSError:
        pytest.skip("no control group may be made here")
    try:
        os.chown(group, NOBODY, -1)
        with sleeper() as process:
            (group / "cgroup.procs").write_text(str(process.pid))
            assert clean(agent, tmp_path)["groups"] == []
            (parent / "cgroup.procs").write_text(str(process.pid))
        os.chown(group, 0, -1)
        assert clean(agent, tmp_path)["groups"] == [str(group)]
        assert not group.exists()
    finally:
        if group.exists():
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
    assert (found["of_others"], found["of_others_count"]) == ([str(theirs)], 1)
    assert (theirs / "precious").read_text() == "stays"


def test_thousands_of_folders_are_counted_and_some_are_named(agent: Agent, tmp_path: Path) -> None:
    require("root")
    for number in range(3000):
        folder = tmp_path / f"iolab-scratch-{number}"
        folder.mkdir()
        (folder / ".iolab-lock").touch()
        if number % 2:
            os.chown(folder, NOBODY, -1)
    found = agent.ask("leftovers", path=str(tmp_path))
    assert (found["of_others_count"], len(found["of_others"])) == (1500, 10)
    assert len(found["folders"]) + found["more"] == 1500


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
