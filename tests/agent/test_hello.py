"""The first words, the clocks, and requests that cannot be meant."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.agent.speaker import Agent
from tests.processes import run_program


def test_the_agent_speaks_first(agent: Agent) -> None:
    hello = agent.hello
    assert (hello["id"], hello.is_, hello["wire"]) == (0, "hello", 2)
    assert hello["version"].count(".") == 2
    assert Path(f"/proc/{hello['pid']}/comm").read_text().strip() == "iolab-agent"
    assert {"facts", "run", "watch", "scratch_open"} <= set(hello["capabilities"])


def test_the_version_is_that_of_the_package(program: Path) -> None:
    said = run_program([program, "--version"], check=True)
    manifest = Path(__file__).parents[2] / "pyproject.toml"
    version = said.stdout.split()[1]
    assert f'\nversion = "{version}"\n' in manifest.read_text(encoding="utf-8")


def test_an_argument_is_refused(program: Path) -> None:
    said = run_program([program, "--listen"])
    assert (said.returncode, said.stdout) == (2, "")
    assert "--listen" in said.stderr


def test_the_clocks_are_those_of_this_host(agent: Agent) -> None:
    before = (time.monotonic_ns(), time.time_ns())
    clock = agent.ask("clock")
    after = (time.monotonic_ns(), time.time_ns())
    assert before[0] <= clock["mono_ns"] <= after[0]
    assert before[1] <= clock["real_ns"] <= after[1]


@pytest.mark.parametrize(
    ("header", "part"),
    [
        ({"do": "format"}, '"format"'),
        ({}, "`do`"),
        ({"do": "watch", "interval_ms": 99}, "99 ms"),
        ({"do": "watch", "interval_ms": 60_001}, "60001 ms"),
        ({"do": "unwatch", "watch": 77}, "77"),
        ({"do": "signal", "run": 77, "signal": "INT"}, "77"),
        ({"do": "signal", "run": 77, "signal": "STOP"}, "STOP"),
        ({"do": "run", "argv": []}, "argv"),
        ({"do": "run", "argv": ["true"], "shell": True}, "shell"),
        ({"do": "run", "argv": ["true"], "wall_limit_s": -1}, "-1"),
        ({"do": "run", "argv": ["true"], "start_at_real_ns": 1 << 62}, str(1 << 62)),
        ({"do": "get", "path": "etc/passwd", "max_bytes": 1}, "etc/passwd"),
        ({"do": "put", "path": "/tmp/x", "mode": 0o10000}, "4096"),
        ({"do": "scratch_close", "dir": "/", "keep": False}, "/ is not"),
        ({"do": "scratch_open", "path": "/", "name": "etc", "owner": "x"}, "etc"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_value(
    agent: Agent, header: dict[str, Any], part: str
) -> None:
    agent.send({"id": 9, **header})
    said = agent.next(9)
    assert (said.is_, said["code"]) == ("error", "bad-request")
    assert part in said["message"]
    assert agent.ask("clock").is_ == "clock"
