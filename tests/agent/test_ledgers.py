"""Ledgers that an agent keeps in its memory: found by its runs, outliving them, gone with it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.agent.speaker import PATIENCE_S, Agent, until


def test_what_a_run_stores_in_a_ledger_outlives_it_and_begins_anew_when_opened_again(
    agent: Agent,
) -> None:
    path = agent.ask("ledger_open", name="a")["path"]
    other = agent.ask("ledger_open", name="b")["path"]
    assert path != other
    # Killed by itself: nothing of what it stored is lost.
    agent.run("sh", "-c", f"echo stored > {path}; kill -9 $$")
    assert Path(path).read_text(encoding="ascii") == "stored\n"
    assert Path(other).read_bytes() == b""
    again = agent.ask("ledger_open", name="a")["path"]
    assert Path(again).read_bytes() == b""
    assert agent.ask("ledger_close", name="a").is_ == "done"
    closed = agent.ask("ledger_close", name="a")
    assert (closed.is_, closed["code"]) == ("error", "bad-request")


def test_a_ledger_goes_with_its_agent_and_lies_on_no_file_system(program: Path) -> None:
    with Agent(program) as agent:
        path = Path(agent.ask("ledger_open", name="a")["path"])
        assert str(path.readlink()).startswith("/memfd:")
        os.kill(agent.hello["pid"], signal.SIGKILL)
        agent.process.wait(PATIENCE_S)  # What is in /proc of one that is dying is closed to users.
        assert until(lambda: not path.exists())
