"""Files put on a host and got from it."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.speaker import Agent
from tests.needs import ROOT, require


def test_a_file_goes_there_and_back(agent: Agent, tmp_path: Path) -> None:
    path, content = tmp_path / "file", os.urandom(1 << 20)
    digest = hashlib.sha256(content).hexdigest()
    done = agent.ask("put", content, path=str(path), mode=0o640)
    assert (done["size"], done["sha256"]) == (1 << 20, digest)
    assert path.read_bytes() == content
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    said = agent.rest(agent.begin("get", path=str(path), max_bytes=1 << 20))
    assert b"".join(message.payload for message in said) == content
    assert (said[-1]["size"], said[-1]["sha256"]) == (1 << 20, digest)


def test_a_file_is_replaced_as_a_whole(agent: Agent, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with path.open("rb") as reader:
        assert agent.ask("put", b"new", path=str(path), mode=0o600).is_ == "done"
        assert reader.read() == b"old"
    assert path.read_bytes() == b"new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_an_empty_file(agent: Agent, tmp_path: Path) -> None:
    path = tmp_path / "empty"
    assert agent.ask("put", path=str(path), mode=0o600)["size"] == 0
    said = agent.rest(agent.begin("get", path=str(path), max_bytes=0))
    assert [message.is_ for message in said] == ["done"]


def test_a_folder_that_is_not_there(agent: Agent, tmp_path: Path) -> None:
    path = tmp_path / "gone" / "file"
    refusal = agent.ask("put", b"x", path=str(path), mode=0o600)
    assert (refusal["code"], str(path) in refusal["message"]) == ("ENOENT", True)
    assert agent.ask("get", path=str(path), max_bytes=9)["code"] == "ENOENT"


def test_only_regular_files_of_the_size_asked_for_are_read(agent: Agent, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "regular" in agent.ask("get", path=str(tmp_path / "pipe"), max_bytes=9)["message"]
    assert "regular" in agent.ask("get", path=str(tmp_path), max_bytes=9)["message"]
    (tmp_path / "file").write_bytes(b"1234567890")
    refusal = agent.ask("get", path=str(tmp_path / "file"), max_bytes=9)
    assert (refusal["code"], "10 bytes" in refusal["message"]) == ("EFBIG", True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    require(ROOT)
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_keeps_the_old_file_and_nothing_else(agent: Agent, small_disk: Path) -> None:
    path = small_disk / "file"
    path.write_bytes(b"old")
    refusal = agent.ask("put", bytes(200_000), path=str(path), mode=0o600)
    assert (refusal["code"], str(path) in refusal["message"]) == ("ENOSPC", True)
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in small_disk.iterdir()] == ["file"]
