"""Output goes where its path leads, and nothing that is no file is replaced by one."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import numpy as np
import pytest

from iolab.errors import IolabError, ReportError
from iolab.store.durable import draft_then_replace
from iolab.store.parquet import replace_parquet
from tests.needs import ROOT, require


def put(path: Path, content: bytes = b"new") -> None:
    with draft_then_replace(path) as draft:
        draft.write_bytes(content)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_keeps_its_mode_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old")
    path.chmod(0o640)
    put(path)
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert names(tmp_path) == ["out"]


def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    for name in ("old", "none"):
        link, target = tmp_path / name, tmp_path / "there" / name
        link.symlink_to(Path("there", name))
        if name == "old":
            target.write_bytes(b"old")
        put(link)
        assert link.is_symlink()
        assert target.read_bytes() == b"new"
    assert names(tmp_path / "there") == ["none", "old"]


def test_a_fifo_is_written_through(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(fifo.read_bytes()))
    reader.start()
    put(fifo, b"x" * 200_000)
    reader.join(10)
    assert read == [b"x" * 200_000]
    assert fifo.is_fifo()


def test_a_character_device_is_written_through(tmp_path: Path) -> None:
    require(ROOT)
    null = tmp_path / "null"
    os.mknod(null, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    put(null)
    replace_parquet({"a": np.arange(3)}, null)
    assert null.is_char_device()
    assert names(tmp_path) == ["null"]


def test_a_block_device_is_refused(tmp_path: Path) -> None:
    require(ROOT)
    device = tmp_path / "disk"
    os.mknod(device, stat.S_IFBLK | 0o600, os.makedev(1, 0))
    with pytest.raises(PermissionError, match="block device"):
        put(device)
    with pytest.raises(IolabError):
        replace_parquet({"a": np.arange(3)}, device)
    assert device.is_block_device()


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        put(tmp_path)


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old")

    def fail() -> None:
        with draft_then_replace(path) as draft:
            draft.write_bytes(b"half")
            raise ReportError("No.", "Do.")

    with pytest.raises(ReportError):
        fail()
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["out"]
