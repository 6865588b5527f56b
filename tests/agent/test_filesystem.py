"""What cannot be meant of file systems and bounds of memory; tests/e2e makes real ones, as root."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.agent.speaker import Agent
from tests.agent.test_scratch import open_scratch

ROOM = 512 << 20


def test_a_file_system_needs_a_scratch_folder_that_is_held(agent: Agent, tmp_path: Path) -> None:
    refused = agent.ask("filesystem_open", dir=str(tmp_path), image_bytes=ROOM)
    assert (refused.is_, refused["code"]) == ("error", "bad-request")
    assert agent.ask("filesystem_close", dir=str(tmp_path))["code"] == "bad-request"
    folder = open_scratch(agent, tmp_path)["dir"]
    refused = agent.ask("filesystem_close", dir=folder)
    assert refused["code"] == "bad-request"
    assert "no file system" in refused["message"]


@pytest.mark.parametrize(
    "ground",
    [
        {},
        {"path": "/dev/x"},
        {"serial": "x"},
        {"image_bytes": ROOM, "path": "/dev/x", "serial": "x"},
    ],
)
def test_it_is_made_in_an_image_or_on_a_device(
    agent: Agent, tmp_path: Path, ground: dict[str, Any]
) -> None:
    folder = open_scratch(agent, tmp_path)["dir"]
    refused = agent.ask("filesystem_open", dir=folder, **ground)
    assert (refused.is_, refused["code"]) == ("error", "bad-request")
    assert "image_bytes" in refused["message"]


@pytest.mark.parametrize("paths", [{"dir": "scratch"}, {"dir": "/x", "path": "sdb"}])
def test_its_paths_are_absolute(agent: Agent, paths: dict[str, Any]) -> None:
    refused = agent.ask("filesystem_open", serial="x", **{"path": "/dev/x", **paths})
    assert "is not absolute" in refused["message"]


def test_a_bound_that_no_program_fits_in_is_refused(agent: Agent) -> None:
    (refused,) = agent.run("true", memory_limit_bytes=4096)
    assert refused["code"] == "bad-request"
    assert "4096" in refused["message"]


def test_without_a_bound_nothing_is_told_of_memory(agent: Agent) -> None:
    ended = agent.run("true", memory_limit_bytes=None)[-1]
    assert "memory_peak_bytes" not in ended.header
    assert "oom_kills" not in ended.header
