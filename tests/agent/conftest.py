"""The agent's program, compiled anew where it is missing or older than its sources."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from iolab.hosts.push import AGENTS_FOLDER
from tests.agent.speaker import Agent

ROOT = Path(__file__).resolve().parents[2]
PACKAGED = AGENTS_FOLDER / platform.machine() / "iolab-agent"


def is_current(program: Path) -> bool:
    sources = [*(ROOT / "agent" / "src").rglob("*.rs"), ROOT / "agent" / "Cargo.lock"]
    newest = max(path.stat().st_mtime for path in sources)
    return program.exists() and program.stat().st_mtime >= newest


@pytest.fixture(scope="session")
def program() -> Path:
    if named := os.environ.get("IOLAB_AGENT"):
        return Path(named)
    if is_current(PACKAGED):
        return PACKAGED
    subprocess.run([sys.executable, ROOT / "build_agent.py"], check=True, timeout=600)
    return PACKAGED


@pytest.fixture
def agent(program: Path) -> Iterator[Agent]:
    with Agent(program) as agent:
        yield agent


@pytest.fixture
def mark(request: pytest.FixtureRequest) -> str:
    """A word by which a test finds the processes that it had started, and no others."""
    return f"iolab-mark-{os.getpid()}-{request.node.name}"
