"""A real node of Cassandra that is killed while YCSB measures on it; needs Java and Maven.

The run is failed with the reason, the next one goes well on a node that was started anew, and in
the end there is no process and no folder of ours.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from iolab.store.reader import SessionReader
from tests.e2e.left import ours_on
from tests.e2e.sessions import IOLAB, alive, descendants, write_study

pytestmark = [pytest.mark.e2e, pytest.mark.long]

LIMIT_S = 240
STUDY = """
format = 1
id = "killed"
title = "A node that dies"
question = "Does the sweep go on?"

[server]
kind = "managed"
port = {port}
heap = "512m"

[[workload]]
id = "a"
engine = "ycsb"
mix = {{ read = 0.5, update = 0.5 }}
records = 2000
threads = [2, 4]

[method]
warmup = "0s"
runtime = "8s"
settle = "0s"
idle_watch = 0
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def node_of(ancestor: int) -> int | None:
    """The node's process below that one."""
    for pid in descendants(ancestor):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue  # it has just ended
        if words.rstrip(b"\0").endswith(b"CassandraDaemon"):
            return pid
    return None


def wait_for(log: Path, words: str, controller: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while words not in log.read_text(encoding="utf-8"):
        assert controller.poll() is None, log.read_text(encoding="utf-8")
        assert time.monotonic() < deadline, log.read_text(encoding="utf-8")
        time.sleep(0.1)


def test_the_sweep_goes_on_after_the_server_was_killed(tmp_path: Path) -> None:
    target, session, log = tmp_path / "target", tmp_path / "session", tmp_path / "log"
    target.mkdir()
    study = write_study(tmp_path, STUDY.format(port=free_port()))
    argv = [str(IOLAB), "run", str(study), "--path", str(target), "--out", str(session)]
    with log.open("wb") as words, subprocess.Popen(argv, stderr=words, stdout=words) as controller:
        try:
            # The first second that is shown comes from a client that works.
            wait_for(log, "measure (about", controller)
            made = set(descendants(controller.pid))
            node = node_of(controller.pid)
            assert node is not None
            os.kill(node, signal.SIGKILL)
            made |= set(descendants(controller.pid))
            # One run has failed: 4, as an engine that failed has it.
            assert controller.wait(LIMIT_S) == 4, log.read_text(encoding="utf-8")
        finally:
            controller.kill()
    failed, done = SessionReader(session).results()
    assert failed.status == "failed"
    assert failed.failure is not None
    assert "was killed by signal 9" in failed.failure
    assert done.status == "done", done.failure
    assert done.metrics["ops_per_s"].value
    assert alive(made) == []
    assert ours_on(target) == []
