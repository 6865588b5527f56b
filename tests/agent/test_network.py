"""The agent speaks over the channel that started it, and over nothing else."""

from __future__ import annotations

import os
import socket

from tests.agent.speaker import Agent
from tests.sockets import bound, family, listening


def test_it_listens_on_no_port_while_a_run_is_under_way(agent: Agent) -> None:
    run = agent.begin("run", argv=["sh", "-c", "echo up; sleep 600"])
    assert agent.next(run).is_ == "started"
    assert agent.next(run).payload == b"up\n"
    pids = family(agent.process.pid)
    # The keeper, the agent, and the run at least.
    assert agent.hello["pid"] in pids
    assert len(pids) >= 3
    assert {pid: listening(pid) + bound(pid) for pid in pids} == {pid: [] for pid in pids}


def test_a_port_that_a_process_holds_would_be_seen() -> None:
    before = len(listening(os.getpid())), len(bound(os.getpid()))
    with socket.create_server(("127.0.0.1", 0)), socket.socket(type=socket.SOCK_DGRAM) as datagrams:
        datagrams.bind(("127.0.0.1", 0))
        after = len(listening(os.getpid())), len(bound(os.getpid()))
    assert after == (before[0] + 1, before[1] + 1)
