"""Scratch folders: locked while their session lives, gone when it does not."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.agent.speaker import PATIENCE_S, Agent, Said, pids_marked, until

NAME = "iolab-scratch-local"


def open_scratch(agent: Agent, path: Path, owner: str = "session A of ann on h1") -> Said:
    return agent.ask("scratch_open", path=str(path), name=NAME, owner=owner)


def test_a_folder_is_made_and_removed_with_all_in_it(agent: Agent, tmp_path: Path) -> None:
    opened = open_scratch(agent, tmp_path)
    folder = tmp_path / NAME
    assert (opened["dir"], opened["left_over_bytes"]) == (str(folder), 0)
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "er" / "s256m.0.0").write_bytes(b"x")
    assert agent.ask("scratch_close", dir=str(folder), keep=False).is_ == "done"
    assert list(tmp_path.iterdir()) == []
    assert agent.ask("scratch_close", dir=str(folder), keep=False)["code"] == "bad-request"


def test_two_agents_cannot_hold_one(agent: Agent, program: Path, tmp_path: Path) -> None:
    open_scratch(agent, tmp_path)
    with Agent(program) as other:
        refusal = open_scratch(other, tmp_path, "session B")
        assert (refusal.is_, refusal["code"]) == ("error", "busy")
        assert "session A of ann on h1" in refusal["message"]
        assert other.ask("probe", path=str(tmp_path))["held_by"] == "session A of ann on h1"
        agent.close()
        assert other.ask("probe", path=str(tmp_path))["held_by"] is None
        assert open_scratch(other, tmp_path, "session B").is_ == "scratch"
    assert list(tmp_path.iterdir()) == []


def test_one_agent_cannot_take_it_twice(agent: Agent, tmp_path: Path) -> None:
    open_scratch(agent, tmp_path)
    assert open_scratch(agent, tmp_path)["code"] == "busy"


def test_it_goes_with_the_input_of_its_agent(agent: Agent, tmp_path: Path) -> None:
    folder = Path(open_scratch(agent, tmp_path)["dir"])
    (folder / "file").write_bytes(b"x" * 1000)
    assert agent.close() == 0
    assert list(tmp_path.iterdir()) == []


def test_it_goes_after_the_processes_that_write_in_it(agent: Agent, tmp_path: Path) -> None:
    folder = Path(open_scratch(agent, tmp_path)["dir"])
    code = "import os\nfor n in range(10**9): os.close(os.open(f'{n}', os.O_CREAT | os.O_RDWR))"
    run = agent.begin("run", argv=["python3", "-c", code], cwd=str(folder))
    assert agent.next(run).is_ == "started"
    assert until(lambda: (folder / "100").exists())
    assert agent.close() == 0
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_agent_left_is_removed_by_the_next(
    agent: Agent, program: Path, tmp_path: Path
) -> None:
    folder = Path(open_scratch(agent, tmp_path)["dir"])
    (folder / "file").write_bytes(b"x" * 1000)
    os.kill(agent.hello["pid"], signal.SIGKILL)
    agent.process.wait(PATIENCE_S)
    assert (folder / "file").exists()
    with Agent(program) as other:
        assert open_scratch(other, tmp_path)["left_over_bytes"] == 1000
        assert not (folder / "file").exists()


def test_what_is_kept_stays_until_the_session_after_next(
    agent: Agent, program: Path, tmp_path: Path
) -> None:
    folder = Path(open_scratch(agent, tmp_path)["dir"])
    (folder / "file").write_bytes(b"x" * 1000)
    assert agent.ask("scratch_close", dir=str(folder), keep=True).is_ == "done"
    agent.close()
    assert (folder / "file").exists()
    with Agent(program) as other:
        assert open_scratch(other, tmp_path)["left_over_bytes"] == 1000
        assert (folder / "file").exists()
        assert other.ask("scratch_close", dir=str(folder), keep=False).is_ == "done"
    assert list(tmp_path.iterdir()) == []


def test_links_in_it_are_removed_and_not_followed(agent: Agent, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_bytes(b"stays")
    folder = Path(open_scratch(agent, tmp_path)["dir"])
    (folder / "link").symlink_to(tmp_path / "precious")
    assert agent.ask("scratch_close", dir=str(folder), keep=False).is_ == "done"
    assert (tmp_path / "precious" / "file").read_bytes() == b"stays"


def test_a_link_in_its_place_is_refused(agent: Agent, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / NAME).symlink_to(tmp_path / "elsewhere")
    assert open_scratch(agent, tmp_path)["code"] in {"ELOOP", "ENOTDIR"}
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_folder_of_somebody_else_is_refused(agent: Agent, tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    (tmp_path / NAME / "precious").write_bytes(b"stays")
    refusal = open_scratch(agent, tmp_path)
    assert (refusal["code"], str(tmp_path / NAME) in refusal["message"]) == ("EEXIST", True)
    agent.close()
    assert (tmp_path / NAME / "precious").read_bytes() == b"stays"


def test_a_target_that_is_not_there_or_not_ours_to_write(agent: Agent, tmp_path: Path) -> None:
    assert open_scratch(agent, tmp_path / "gone")["code"] == "ENOENT"
    (tmp_path / "file").write_bytes(b"")
    assert open_scratch(agent, tmp_path / "file")["code"] == "ENOTDIR"


# A user namespace of its own has no way back out of a new PID namespace, as rootless containers.
ROOTLESS = ("unshare", "--map-root-user", "sh", "-c", "exec $0")


@pytest.mark.parametrize("prefix", [(), ROOTLESS], ids=["as-it-is", "rootless"])
def test_kill_9_of_agent_and_keeper_leaves_nothing_that_disturbs_who_comes_next(
    program: Path, tmp_path: Path, mark: str, prefix: tuple[str, ...]
) -> None:
    """A forked child of a run's leader, as fio's jobs are: the kernel's signal ends the leader."""
    with Agent(program, *prefix) as agent:
        kill_both(agent, program, tmp_path, mark)


def kill_both(agent: Agent, program: Path, tmp_path: Path, mark: str) -> None:
    contained = agent.hello["runs_end_by"] == "pid-namespace"
    folder = open_scratch(agent, tmp_path)["dir"]
    code = "import os, time\nos.fork()\nprint('up', flush=True)\ntime.sleep(600)\n"
    run = agent.begin("run", argv=["python3", "-c", code, mark], cwd=folder)
    assert agent.next(run).is_ == "started"
    said = b""
    while said.count(b"up") < 2:  # One that still has to say it would die of having no reader.
        said += agent.next(run).payload
    assert len(pids_marked(mark)) == 2
    for number in (signal.SIGSTOP, signal.SIGKILL):  # stopped, neither can act on the other's end
        for pid in (agent.process.pid, agent.hello["pid"]):
            os.kill(pid, number)
    assert until(lambda: len(pids_marked(mark)) == (0 if contained else 1))
    agent.process.wait(PATIENCE_S)
    assert until(lambda: not Path(f"/proc/{agent.hello['pid']}").exists())  # nor its lock
    with Agent(program) as other:
        found = other.ask("leftovers", path=str(tmp_path))
        assert {*pids_marked(mark)} <= {left["pid"] for left in found["processes"]}
        assert [left["dir"] for left in found["folders"]] == [folder]
        # A session elsewhere on the host is not to be disturbed either.
        (tmp_path / "elsewhere").mkdir()
        open_scratch(other, tmp_path / "elsewhere")
        assert pids_marked(mark) == []
        assert until(lambda: open_scratch(other, tmp_path, "session B").is_ == "scratch")
        assert pids_marked(mark) == []
