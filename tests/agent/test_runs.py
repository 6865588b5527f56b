"""Processes that the agent runs: their streams, limits, signals and ends."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.agent.speaker import Agent, children_of, output, pids_marked, until

FOREVER = ("python3", "-c", "import time\nprint('up', flush=True)\ntime.sleep(600)\n")


def test_a_process_gets_its_input_and_its_streams_are_told_apart(agent: Agent) -> None:
    code = "import sys; sys.stdout.write(sys.stdin.read().upper()); sys.stderr.write('e'); exit(7)"
    said = agent.run("python3", "-c", code, payload=b"abc" * 100_000)
    assert said[0].is_ == "started"
    assert output(said) == b"ABC" * 100_000
    assert output(said, "stderr") == b"e"
    end = said[-1]
    assert (end["code"], end["signal"], end["timed_out"], end["truncated"]) == (
        7,
        None,
        False,
        False,
    )
    assert end["user_s"] + end["system_s"] > 0
    assert end["max_rss_bytes"] > 1 << 20
    assert said[0]["real_ns"] < end["real_ns"] <= time.time_ns()


def test_output_comes_while_the_process_runs(agent: Agent) -> None:
    run = agent.begin("run", argv=FOREVER)
    assert agent.next(run).is_ == "started"
    assert agent.next(run).payload == b"up\n"
    assert agent.ask("signal", run=run, signal="TERM").is_ == "done"
    end = agent.rest(run)[-1]
    assert (end["code"], end["signal"]) == (None, signal.SIGTERM)


def test_no_piece_of_output_is_larger_than_a_pipe(agent: Agent) -> None:
    said = agent.run("head", "-c", "5000000", "/dev/zero")
    pieces = [len(message.payload) for message in said if message.is_ == "output"]
    assert sum(pieces) == 5_000_000
    assert max(pieces) <= 65_536


def test_the_environment_is_minimal_and_what_was_added(agent: Agent) -> None:
    said = agent.run("env", env={"FIO_X": "a b"})
    lines = output(said).decode().splitlines()
    names = {line.split("=")[0] for line in lines}
    assert names == {"PATH", "LANG", "HOME", "FIO_X", "IOLAB_RUN"}
    assert "FIO_X=a b" in lines
    assert "LANG=C" in lines


def test_the_working_directory(agent: Agent, tmp_path: Path) -> None:
    assert output(agent.run("pwd")) == b"/\n"
    assert output(agent.run("pwd", cwd=str(tmp_path))) == f"{tmp_path}\n".encode()
    refusal = agent.run("pwd", cwd=str(tmp_path / "gone"))[-1]
    assert refusal["code"] == "ENOENT"
    assert str(tmp_path / "gone") in refusal["message"]


def ignored_by_a_child(agent: Agent) -> int:
    """The mask of the signals that a child ignores, but for the C library's own 32 and 33."""
    status = output(agent.run("cat", "/proc/self/status")).decode()
    masks = dict(line.split(":\t") for line in status.splitlines() if line.startswith("Sig"))
    assert int(masks["SigBlk"], 16) == 0
    return int(masks["SigIgn"], 16) & 0x7FFF_FFFF


def test_a_child_has_default_signals_and_of_the_agents_files_the_token(agent: Agent) -> None:
    assert ignored_by_a_child(agent) == 0
    words = ("find", "/proc/self/fd", "-mindepth", "1", "-printf", r"%f %l\n")
    listed = dict(line.split(" ", 1) for line in output(agent.run(*words)).decode().splitlines())
    more = [file for number, file in listed.items() if int(number) > 2]
    (token,) = [file for file in more if file != "/" and not file.startswith("/proc/")]  # its own
    assert token.startswith("/memfd:iolab-token-")


def test_what_a_script_ignored_in_the_background_is_not_passed_on(program: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        agent = Agent(program)
    finally:
        signal.signal(signal.SIGINT, before)
    with agent:
        assert ignored_by_a_child(agent) == 0


@pytest.mark.parametrize("name", ["no-such-program", "/nowhere/fio", "/etc/passwd"])
def test_a_program_that_is_not_there_is_named(agent: Agent, name: str) -> None:
    refusal = agent.run(name)[-1]
    assert (refusal.is_, refusal["code"]) == ("error", "ENOENT")
    assert name in refusal["message"]


@pytest.mark.parametrize("content", [b"\x7fELF but not really", b"echo a shell would run this"])
def test_an_executable_that_is_no_program(agent: Agent, tmp_path: Path, content: bytes) -> None:
    odd = tmp_path / "odd"
    odd.write_bytes(content)
    odd.chmod(0o755)
    refusal = agent.run(str(odd))[-1]
    assert refusal["code"] == "ENOEXEC"
    assert str(odd) in refusal["message"]


def test_arguments_are_never_a_shell_line(agent: Agent) -> None:
    assert output(agent.run("echo", "$HOME; `id`", "a  b")) == b"$HOME; `id` a  b\n"


def test_the_wall_limit_kills_the_whole_tree(agent: Agent, mark: str) -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, *sys.argv[1:]])"
    said = agent.run("python3", "-c", code, *FOREVER[1:], mark, wall_limit_s=0.5)
    end = said[-1]
    assert (end["code"], end["signal"], end["timed_out"]) == (None, signal.SIGKILL, True)
    assert pids_marked(mark) == []


def test_output_past_its_limit_is_read_but_not_sent(agent: Agent) -> None:
    said = agent.run("head", "-c", "1000000", "/dev/zero", output_limit_bytes=100_000)
    assert len(output(said)) == 100_000
    assert (said[-1]["code"], said[-1]["truncated"]) == (0, True)


def test_int_goes_to_the_leader_and_kill_to_the_tree(agent: Agent, mark: str) -> None:
    code = (
        "import signal, subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, *sys.argv[1:]])\n"
        "signal.signal(signal.SIGINT, lambda *_: print('int', child.poll(), flush=True))\n"
        "child.wait()\n"
    )
    run = agent.begin("run", argv=["python3", "-c", code, *FOREVER[1:], mark])
    assert agent.next(run).is_ == "started"
    assert agent.next(run).payload == b"up\n"
    assert until(lambda: len(pids_marked(mark)) == 2)
    agent.ask("signal", run=run, signal="INT")
    assert agent.next(run).payload == b"int None\n"
    agent.ask("signal", run=run, signal="KILL")
    assert agent.rest(run)[-1]["signal"] == signal.SIGKILL
    assert pids_marked(mark) == []


def test_what_a_leader_leaves_behind_ends_with_it(agent: Agent, mark: str) -> None:
    # The grandchild holds the pipe open and is in a session of its own.
    code = (
        "import os, sys, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        time.sleep(600)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "print('left')\n"
    )
    said = agent.run("python3", "-c", code, mark)
    assert output(said) == b"left\n"
    assert said[-1]["code"] == 0
    assert pids_marked(mark) == []


def test_a_start_at_a_time_is_kept(agent: Agent) -> None:
    at_ns = time.time_ns() + 300_000_000
    started = agent.run("true", start_at_real_ns=at_ns)[0]
    assert at_ns <= started["real_ns"]


def test_a_start_in_the_past_is_at_once(agent: Agent) -> None:
    assert agent.run("true", start_at_real_ns=1)[-1]["code"] == 0


def test_a_process_can_be_told_its_start_and_begin_before_that(agent: Agent) -> None:
    at_ns = time.time_ns() + 600_000_000_000
    said = agent.run("env", start_at_real_ns=at_ns, waits_for_start=True)
    assert f"IOLAB_START_REAL_NS={at_ns}" in output(said).decode().splitlines()
    assert said[0]["real_ns"] < at_ns


def test_a_wall_limit_counts_from_the_start_that_was_told(agent: Agent) -> None:
    at_ns = time.time_ns() + 600_000_000_000
    limit: dict[str, Any] = {"waits_for_start": True, "wall_limit_s": 0.01}
    # Longer than its limit, and long before that begins.
    ended = agent.run("sleep", "0.3", start_at_real_ns=at_ns, **limit)[-1]
    assert (ended["code"], ended["timed_out"]) == (0, False)
    at_ns = time.time_ns() + 300_000_000
    ended = agent.run("sleep", "600", start_at_real_ns=at_ns, **limit)[-1]
    assert ended["timed_out"]
    assert ended["real_ns"] >= at_ns


def test_the_agents_own_name_is_its_own_file(agent: Agent) -> None:
    said = agent.run("iolab-agent", "--version", env={"PATH": "/nowhere"})
    assert output(said).decode().startswith("iolab-agent ")
    assert agent.run("iolab-agent", "engine", payload=b"{}")[-1]["code"] == 2


def test_a_run_that_waits_for_its_start_can_be_called_off(agent: Agent) -> None:
    at_ns = time.time_ns() + 600_000_000_000
    run = agent.begin("run", argv=["true"], start_at_real_ns=at_ns)
    assert agent.ask("signal", run=run, signal="INT").is_ == "done"
    said = agent.rest(run)
    assert [message.is_ for message in said] == ["exited"]
    assert (said[0]["code"], said[0]["signal"]) == (None, signal.SIGINT)


def test_runs_go_side_by_side_up_to_a_limit(agent: Agent) -> None:
    runs = [agent.begin("run", argv=["cat", "/proc/self/stat"]) for _ in range(10)]
    assert all(agent.rest(run)[-1]["code"] == 0 for run in runs)
    waiting = time.time_ns() + 600_000_000_000
    runs = [agent.begin("run", argv=["true"], start_at_real_ns=waiting) for _ in range(256)]
    refusal = agent.run("true")[-1]
    assert (refusal["code"], "256" in refusal["message"]) == ("busy", True)
    agent.ask("signal", run=runs[0], signal="TERM")
    agent.rest(runs[0])
    assert agent.run("true")[-1]["code"] == 0


def test_a_program_that_does_not_read_its_input(agent: Agent) -> None:
    assert agent.run("true", payload=b"x" * 1_000_000)[-1]["code"] == 0


def test_orphans_that_end_are_reaped(agent: Agent) -> None:
    agent.run("python3", "-c", "import os, time\nif os.fork() == 0: os._exit(0)\ntime.sleep(0.1)")
    children = children_of(agent.hello["pid"])
    # Where runs have a PID namespace, its first process stays, and has reaped the orphan.
    assert len(children) == (agent.hello["runs_end_by"] == "pid-namespace")
    assert [pid for child in children for pid in children_of(child)] == []


def test_a_run_is_in_a_session_of_its_own(agent: Agent) -> None:
    code = "import os; print(os.getpid() == os.getsid(0) == os.getpgid(0))"
    assert output(agent.run("python3", "-c", code)) == b"True\n"
    assert os.getsid(0) != os.getsid(agent.hello["pid"])
