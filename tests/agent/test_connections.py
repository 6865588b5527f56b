"""Connections to sockets in a scratch folder, and what a run's process has used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.agent.speaker import Agent, SocketServer, until

PIECE = bytes(1 << 20)


@pytest.fixture
def folder(agent: Agent, tmp_path: Path) -> Path:
    opened = agent.ask("scratch_open", path=str(tmp_path), name="iolab-scratch-x", owner="me")
    return Path(opened["dir"])


def begin(agent: Agent, folder: Path, wait_s: float = 20) -> int:
    return agent.begin("connect", dir=str(folder), name="s", wait_s=wait_s)


def test_what_is_sent_arrives_in_order_and_what_comes_is_received(
    agent: Agent, folder: Path
) -> None:
    with SocketServer(folder / "s") as server:
        connect = begin(agent, folder)
        sends = [agent.begin("send", bytes([n]) * 1000, connection=connect) for n in range(200)]
        peer = server.peer()
        assert agent.next(connect).is_ == "connected"
        expected = b"".join(bytes([n]) * 1000 for n in range(200))
        got = b""
        while len(got) < len(expected):
            got += peer.recv(1 << 16)
        assert got == expected
        assert {agent.next(send).is_ for send in sends} == {"done"}
        peer.sendall(b"a" * 200_000)
        peer.close()
        said = agent.rest(connect)
    assert b"".join(message.payload for message in said) == b"a" * 200_000
    assert max(len(message.payload) for message in said) <= 65_536
    assert {message.is_ for message in said[:-1]} == {"received"}
    assert said[-1].is_ == "closed"
    late = agent.ask("send", b"x", connection=connect)
    assert (late.is_, late["code"]) == ("error", "ENOTCONN")


def test_a_socket_may_come_later(agent: Agent, folder: Path) -> None:
    connect = begin(agent, folder)
    early = agent.begin("send", b"early", connection=connect)
    assert agent.next(early).is_ == "done"
    with SocketServer(folder / "s") as server:
        assert server.peer().recv(5) == b"early"
        assert agent.ask("disconnect", connection=connect).is_ == "done"
    assert [message.is_ for message in agent.rest(connect)] == ["connected", "closed"]


def test_a_socket_that_does_not_come_is_an_error_with_its_name(agent: Agent, folder: Path) -> None:
    said = agent.rest(begin(agent, folder, wait_s=0.1))[-1]
    assert said["code"] == "ENOENT"
    (folder / "s").write_text("no socket")
    assert agent.rest(begin(agent, folder, wait_s=0.1))[-1]["code"] == "ECONNREFUSED"


def test_waiting_for_a_socket_can_be_called_off(agent: Agent, folder: Path) -> None:
    connect = begin(agent, folder, wait_s=600)
    assert agent.ask("disconnect", connection=connect).is_ == "done"
    assert [message.is_ for message in agent.rest(connect)] == ["closed"]


def test_a_peer_that_does_not_read_makes_more_busy_and_holds_up_nobody(
    agent: Agent, folder: Path
) -> None:
    with SocketServer(folder / "s") as server:
        connect = begin(agent, folder)
        server.peer()
        sends = [agent.begin("send", PIECE, connection=connect) for _ in range(12)]
        codes = [agent.next(send)["code"] for send in sends[-2:]]
        assert codes == ["busy", "busy"]
        assert agent.ask("clock").is_ == "clock"
        assert agent.ask("disconnect", connection=connect).is_ == "done"
        assert {agent.next(send).header.get("code") for send in sends[2:4]} == {"ENOTCONN"}
    assert agent.rest(connect)[-1].is_ == "closed"


def test_the_end_of_the_agent_closes_its_connections(program: Path, tmp_path: Path) -> None:
    with Agent(program) as agent:
        opened = agent.ask("scratch_open", path=str(tmp_path), name="iolab-scratch-x", owner="me")
        with SocketServer(Path(opened["dir"]) / "s") as server:
            begin(agent, Path(opened["dir"]))
            peer = server.peer()
            assert agent.close() == 0
            assert peer.recv(1) == b""


@pytest.mark.parametrize(
    ("verb", "arguments", "code", "part"),
    [
        ("connect", {"dir": "/", "name": "s", "wait_s": 1}, "bad-request", "/ is not"),
        ("connect", {"dir": "x", "name": "s", "wait_s": 1}, "bad-request", '"x"'),
        ("connect", {"dir": "/", "name": "../s", "wait_s": 1}, "bad-request", "../s"),
        ("connect", {"dir": "/", "name": "", "wait_s": 1}, "bad-request", '""'),
        ("connect", {"dir": "/", "name": "s", "wait_s": 601}, "bad-request", "601"),
        ("send", {"connection": 77}, "ENOTCONN", "77"),
        ("disconnect", {"connection": 77}, "ENOTCONN", "77"),
        ("use", {"run": 77}, "bad-request", "77"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_value(
    agent: Agent, verb: str, arguments: dict[str, Any], code: str, part: str
) -> None:
    said = agent.ask(verb, **arguments)
    assert (said.is_, said["code"]) == ("error", code)
    assert part in said["message"]


def test_a_guests_processors_are_told_apart_from_its_other_threads(agent: Agent) -> None:
    code = (
        "import pathlib, threading, time\n"
        "def turn():\n"
        "    pathlib.Path('/proc/thread-self/comm').write_text('CPU 0/TCG')\n"
        "    print('up', flush=True)\n"
        "    while True: sum(range(1000))\n"
        "threading.Thread(target=turn).start()\n"
        "time.sleep(600)\n"
    )
    run = agent.begin("run", argv=["python3", "-c", code])
    assert agent.next(run).is_ == "started"
    assert agent.next(run).payload == b"up\n"
    first = agent.ask("use", run=run)
    assert until(lambda: agent.ask("use", run=run)["vcpu_run_ns"] > first["vcpu_run_ns"])
    later = agent.ask("use", run=run)
    assert later["real_ns"] > first["real_ns"]
    assert later["vcpu_run_ns"] < later["run_ns"]
    assert later["vcpu_wait_ns"] <= later["wait_ns"]
    assert later["user_ns"] >= first["user_ns"]
    agent.ask("signal", run=run, signal="KILL")
    agent.rest(run)
    assert agent.ask("use", run=run)["code"] == "bad-request"


def test_a_run_that_waits_for_its_start_has_used_nothing(agent: Agent) -> None:
    at = agent.ask("clock")["real_ns"] + 600_000_000_000
    run = agent.begin("run", argv=["true"], start_at_real_ns=at)
    assert agent.ask("use", run=run)["code"] == "ESRCH"
    agent.ask("signal", run=run, signal="TERM")
