"""A node of sshd whose agent, processes or link end in any phase: nothing stays undone there."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from iolab.errors import ExitCode
from tests.agent.speaker import children_of, until
from tests.e2e.left import ours_on
from tests.e2e.sessions import IOLAB, iolab, write_study
from tests.e2e.test_phases import PHASES, state_of, stopped_study
from tests.facts import tells
from tests.fleet.bed import Bed

pytestmark = [pytest.mark.e2e, pytest.mark.long]

NODE = "c01"
CONFIGURATION = f"""
[[configuration]]
id = "one"
title = "One node"
hosts = ["{NODE}"]
"""
ACTION = f"""
[[action]]
id = "stop"
host = "{NODE}"
stop = "/tmp/victim.pid"
"""


@contextmanager
def stopped_process(fleet: Bed) -> Iterator[int]:
    """A process that the node knows by a pid file."""
    with subprocess.Popen(["sleep", "600"]) as victim:
        try:
            (fleet.tmp(NODE) / "victim.pid").write_text(f"{victim.pid}\n")
            yield victim.pid
        finally:
            victim.kill()
            (fleet.tmp(NODE) / "victim.pid").unlink()


@contextmanager
def session_in_phase(fleet: Bed, folder: Path, phase: str) -> Iterator[subprocess.Popen[bytes]]:
    """A run whose phase has begun and goes on."""
    hosts, log = folder / "hosts.toml", folder / "log"
    hosts.write_text(fleet.inventory.read_text("utf-8") + ACTION)
    study = write_study(folder, stopped_study(phase) + CONFIGURATION)
    words = ("run", study, "--hosts", hosts, "--event", f"stop@{NODE}", "--out", folder / "session")
    with log.open("wb") as file:
        controller = subprocess.Popen([str(IOLAB), *map(str, words)], stdout=file, stderr=file)
    try:
        assert until(lambda: f"Phase '{phase}' begins" in log.read_text(), 120), log.read_text()
        yield controller
    finally:
        controller.kill()
        controller.wait()


@pytest.mark.parametrize(
    ("who", "phase"),
    [*(("node", phase) for phase in PHASES), ("agent", "fault"), ("link", "fault")],
)
def test_a_node_that_is_lost_in_any_phase_has_nothing_left_undone(
    who: str, phase: str, fleet: Bed, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        victim = stack.enter_context(stopped_process(fleet))
        controller = stack.enter_context(session_in_phase(fleet, tmp_path, phase))
        assert until(lambda: (state_of(victim) == "T") is (phase == "fault"), 60)
        if who == "link":
            with fleet.unplugged(NODE):
                # Nobody but the node itself can have undone it.
                assert until(lambda: state_of(victim) == "S", 60)
        else:
            kill_on_node(fleet, who)
        controller.wait(120)
        if who == "node":
            fleet.start_sshd(NODE)
            assert (state_of(victim) == "T") is (phase == "fault")
        else:
            assert until(lambda: state_of(victim) == "S", 60)
            assert until(lambda: undo_files(fleet) == [], 60)
            assert until(lambda: ours_on(fleet.fleet.folder(NODE) / "target") == [], 60)
        hosts = tmp_path / "hosts.toml"
        iolab("clean", "--hosts", hosts, "--yes")
        assert until(lambda: state_of(victim) == "S", 60)
        assert ours_on(fleet.fleet.folder(NODE) / "target") == []
        assert undo_files(fleet) == []
        refused = iolab("resume", tmp_path / "session", expect=ExitCode.STUDY)
        assert tells(refused.stderr, "1 event", f"--event stop@{NODE}")


def undo_files(fleet: Bed) -> list[Path]:
    """What is written down on the node to be undone."""
    return list(fleet.tmp(NODE).glob("iolab-undo-*/undo-*"))


def kill_on_node(fleet: Bed, who: str) -> None:
    """Kill the agent alone, or all that runs on the node, at once.

    All are stopped before the first is killed: an agent that sees sshd's end would undo its events.
    """
    processes = fleet.processes(NODE)
    # The keeper is what sshd started, and the agent its only child.
    of_sshd = {
        child for pid, name in processes.items() if name == "sshd" for child in children_of(pid)
    }
    keepers = [pid for pid in of_sshd & processes.keys() if processes[pid] != "sshd"]
    doomed = list(processes) if who == "node" else [children_of(pid)[0] for pid in keepers]
    assert doomed, processes
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in doomed:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue
