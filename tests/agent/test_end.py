"""However an agent ends, nothing that it started or made is left."""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import subprocess
import sys
import time
from contextlib import suppress
from itertools import permutations
from pathlib import Path

import pytest

from tests.agent.speaker import PATIENCE_S, Agent, children_of, pids_marked, until

# A process that leaves its session twice over: nobody's child but the agent's, by adoption.
ESCAPE = "if os.fork(): os._exit(0)\n"
ESCAPEE = f"import os, sys, time\n{ESCAPE}os.setsid()\n{ESCAPE}"
STAY = "print('up', flush=True)\ntime.sleep(600)\n"


def start_stayer(agent: Agent, mark: str) -> int:
    """A run that stays until it is killed; returns the id of its request."""
    run = agent.begin("run", argv=["python3", "-c", "import time\n" + STAY, mark])
    assert agent.next(run).is_ == "started"
    assert agent.next(run).payload == b"up\n"
    return run


def start_escapee(agent: Agent, mark: str) -> None:
    """A leader that stays, with a child that got away from it."""
    code = f"import subprocess, sys, time\nsubprocess.run([sys.executable, '-c', {ESCAPEE + STAY!r}"
    code += ", sys.argv[1]], env={})\ntime.sleep(600)\n"
    run = agent.begin("run", argv=["python3", "-c", code, mark + "-escapee"])
    assert agent.next(run).is_ == "started"
    assert agent.next(run).payload == b"up\n"
    assert until(lambda: len(pids_marked(mark + "-escapee")) == 2)


def all_gone(mark: str) -> bool:
    return until(lambda: not pids_marked(mark))


def test_at_the_end_of_its_input_everything_goes(agent: Agent, mark: str) -> None:
    start_stayer(agent, mark)
    start_escapee(agent, mark)
    assert agent.close() == 0
    assert pids_marked(mark) == []


def test_bye_is_answered_when_all_is_done(agent: Agent, mark: str) -> None:
    start_escapee(agent, mark)
    assert agent.ask("bye").is_ == "done"
    assert pids_marked(mark) == []
    assert agent.process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_as_cleanly(agent: Agent, mark: str, number: signal.Signals) -> None:
    start_escapee(agent, mark)
    os.kill(agent.hello["pid"], number)
    assert agent.process.wait(PATIENCE_S) == 128 + number
    assert pids_marked(mark) == []


def test_a_signal_to_the_keeper_ends_both(agent: Agent, mark: str) -> None:
    start_escapee(agent, mark)
    agent.process.send_signal(signal.SIGINT)
    assert agent.process.wait(PATIENCE_S) == 128 + signal.SIGTERM
    assert pids_marked(mark) == []


def test_kill_9_of_the_agent_takes_all_down(agent: Agent, mark: str) -> None:
    start_escapee(agent, mark)
    os.kill(agent.hello["pid"], signal.SIGKILL)
    assert agent.process.wait(PATIENCE_S) == 128 + signal.SIGKILL
    assert pids_marked(mark) == []


def test_kill_9_of_the_keeper_takes_all_down(agent: Agent, mark: str) -> None:
    start_escapee(agent, mark)
    agent.process.kill()
    assert all_gone(mark)
    assert until(lambda: not Path(f"/proc/{agent.hello['pid']}").exists())


@pytest.mark.parametrize(
    "order", list(permutations(["controller", "keeper", "agent", "guard", "engine"], 3)), ids=str
)
def test_no_order_of_kills_leaves_a_process(
    agent: Agent, mark: str, order: tuple[str, ...]
) -> None:
    """Each stopped first, so that none acts on another's end; an escapee bears no mark of ours."""
    start_escapee(agent, mark)
    own = agent.hello["pid"]
    guards = [
        pid for pid in children_of(own) if Path(f"/proc/{pid}/exe").samefile(f"/proc/{own}/exe")
    ]
    assert len(guards) == (agent.hello["runs_end_by"] == "pid-namespace")
    if not guards:
        return  # The next session ends what is left: see test_scratch.py.
    leader = next(pid for pid in children_of(own) if pid not in guards)
    pids = {"keeper": agent.process.pid, "agent": own, "guard": guards[0], "engine": leader}
    for who in order:
        if who in pids:
            os.kill(pids[who], signal.SIGSTOP)
    for who in order:
        if who in pids:
            with suppress(ProcessLookupError):  # The death before may have taken it along.
                os.kill(pids[who], signal.SIGKILL)
        else:
            assert agent.process.stdin
            agent.process.stdin.close()
    assert all_gone(mark)
    assert until(lambda: not Path(f"/proc/{own}").exists())


def test_the_death_of_whoever_holds_the_pipes_ends_it(program: Path, mark: str) -> None:
    holder = subprocess.Popen(
        ["python3", "-c", HOLDER, program, mark], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout
    assert holder.stdout.readline() == "started\n"
    assert until(lambda: len(pids_marked(mark)) >= 2)
    holder.kill()
    holder.wait()
    assert all_gone(mark)


HOLDER = """
import json, struct, subprocess, sys, time
agent = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
run = json.dumps({"id": 1, "do": "run", "argv": ["sleep", "600", sys.argv[2]]}).encode()
run = run.replace(b'"sleep", "600"', b'"python3", "-c", "import time; time.sleep(600)"')
agent.stdin.write(struct.pack("<II", len(run), 0) + run)
agent.stdin.flush()
print("started", flush=True)
time.sleep(600)
"""


def test_a_full_output_does_not_keep_it_from_ending(program: Path, mark: str) -> None:
    process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin
    run = b'{"id":1,"do":"run","argv":["yes","%s"]}' % mark.encode()
    process.stdin.write(struct.pack("<II", len(run), 0) + run)
    process.stdin.flush()
    assert until(lambda: bool(pids_marked(mark)))  # Nobody reads: all pipes are soon full.
    for id_ in range(2, 40):
        facts = b'{"id":%d,"do":"facts"}' % id_
        process.stdin.write(struct.pack("<II", len(facts), 0) + facts)
    process.stdin.close()
    assert process.wait(PATIENCE_S) == 0
    assert pids_marked(mark) == []


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (struct.pack("<II", 1 << 31, 0), "2147483648"),
        (struct.pack("<II", 2, 1 << 31), "2147483648"),
        (struct.pack("<II", 4, 0) + b"\xff\xfe\x00!", "JSON"),
        (struct.pack("<II", 2, 0) + b"[]", "JSON object"),
        (struct.pack("<II", 14, 0) + b'{"do":"clock"}', "`id`"),
        (struct.pack("<II", 21, 0) + b'{"id":0,"do":"clock"}', "`id`"),
        (b"GET / HTTP/1.1\r\n\r\n", "too long"),
    ],
)
def test_a_protocol_fault_ends_it(agent: Agent, mark: str, frame: bytes, message: str) -> None:
    start_stayer(agent, mark)
    agent.send_raw(frame)
    assert agent.process.wait(PATIENCE_S) == 3
    assert message in agent.errors()
    assert pids_marked(mark) == []


def test_an_end_in_the_middle_of_a_frame_is_a_fault(agent: Agent) -> None:
    agent.send_raw(struct.pack("<II", 100, 0) + b'{"id"')
    assert agent.close() == 3
    assert "5 of 100" in agent.errors()


def test_a_controller_that_falls_silent_ends_it(agent: Agent, mark: str) -> None:
    start_escapee(agent, mark)
    assert agent.ask("lease", seconds=1).is_ == "done"
    assert agent.process.wait(PATIENCE_S) == 4
    assert "the lease is over" in agent.errors()
    assert all_gone(mark)


@pytest.mark.parametrize(("cause", "code"), [("silence", 4), ("signal", 128 + signal.SIGTERM)])
def test_it_ends_during_an_event_for_which_a_folder_is_released(
    agent: Agent, mark: str, tmp_path: Path, cause: str, code: int
) -> None:
    opened = agent.ask("scratch_open", path=str(tmp_path), name="iolab-scratch-x", owner="me")
    argv = [sys.executable, "-c", "import time\n" + STAY, mark]
    event = {"step": "command", "argv": argv, "timeout_s": 600}
    agent.begin("step", what=[event], released_dir=opened["dir"])
    assert until(lambda: bool(pids_marked(mark)))
    if cause == "silence":
        assert agent.ask("lease", seconds=1).is_ == "done"
    else:
        os.kill(agent.hello["pid"], signal.SIGTERM)
    assert agent.process.wait(PATIENCE_S) == code
    assert pids_marked(mark) == []
    assert not Path(opened["dir"]).exists()


def test_any_request_renews_the_lease(agent: Agent) -> None:
    assert agent.ask("lease", seconds=1).is_ == "done"
    silences, asked = [], time.monotonic()
    for _ in range(6):
        time.sleep(0.25)
        with contextlib.suppress(EOFError, BrokenPipeError):
            assert agent.ask("clock").is_ == "clock"
        silences.append(time.monotonic() - asked)
        asked = time.monotonic()
    # A machine so busy that this test itself fell silent ends the lease rightly.
    assert agent.process.poll() is None or max(silences) > 1


def groups_of(agent: Agent) -> list[Path]:
    """The control groups that an agent has made for its runs."""
    return list(Path("/sys/fs/cgroup").rglob(f"iolab-{agent.process.pid}-*.*"))


@pytest.mark.parametrize("number", [None, signal.SIGTERM, signal.SIGKILL])
def test_no_control_group_is_left(agent: Agent, number: signal.Signals | None) -> None:
    """Where this host and user have any; a host that has none refuses the run."""
    argv = ["python3", "-c", "import time\n" + STAY]
    run = agent.begin("run", argv=argv, memory_limit_bytes=1 << 28)
    said = agent.next(run)
    if os.geteuid() == 0 and agent.ask("probe", path="/", rights=True)["memory_error"] is None:
        assert agent.next(run).payload == b"up\n"
        assert len(groups_of(agent)) == 1
    else:
        assert said.is_ == "error"
    if number:
        os.kill(agent.hello["pid"], number)
        assert agent.process.wait(PATIENCE_S) == 128 + number
    else:
        assert agent.close() == 0
    assert groups_of(agent) == []


@pytest.mark.parametrize("seconds", [0, 86_401, -1, 1.5])
def test_a_lease_that_cannot_be_meant_is_refused(agent: Agent, seconds: float) -> None:
    assert agent.ask("lease", seconds=seconds)["code"] == "bad-request"


def test_it_leaves_the_session_of_whoever_started_it(agent: Agent, mark: str) -> None:
    start_stayer(agent, mark)
    child = pids_marked(mark)[0]
    sessions = {os.getsid(0), os.getsid(agent.hello["pid"]), os.getsid(child)}
    assert len(sessions) == 3
    assert os.getpgid(child) == child
