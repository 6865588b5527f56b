"""Files that are brought here."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.hosts.host import Host
from iolab.hosts.message import AgentRefusalError
from iolab.hosts.remote_process import fetch_file
from tests.loads.keyvalue.local import on_this_machine

pytestmark = [pytest.mark.e2e, pytest.mark.long]


def brought(path: Path, max_bytes: int = 1 << 20) -> bytes | None:
    async def work(host: Host) -> bytes | None:
        return await fetch_file(host, str(path), max_bytes)

    return on_this_machine(work)


def test_a_file_comes_whole_and_a_missing_one_is_none(tmp_path: Path) -> None:
    content = bytes(range(256)) * 3000
    (tmp_path / "file").write_bytes(content)
    assert brought(tmp_path / "file") == content
    assert brought(tmp_path / "other") is None


def test_a_larger_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    with pytest.raises(AgentRefusalError):
        brought(tmp_path / "file", 4)
