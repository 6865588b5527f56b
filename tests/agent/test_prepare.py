"""Proofs about files: what is stored, what is cached, whether direct I/O works."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.speaker import Agent
from tests.needs import ROOT, require

MIB = 1 << 20


@pytest.fixture
def memory_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        yield Path(name)


@pytest.fixture
def disk_folder() -> Iterator[Path]:
    """A folder on the file system of the checkout, which is no memory file system."""
    with tempfile.TemporaryDirectory(dir=Path(__file__).parents[2], prefix="scratch-") as name:
        yield Path(name)


def write(path: Path, *parts: tuple[int, int]) -> str:
    """Write parts of a file (offset and size in MiB)."""
    with path.open("wb") as file:
        for offset, size in parts:
            file.seek(offset * MIB)
            file.write(os.urandom(size * MIB))
    return str(path)


def test_a_file_written_in_full(agent: Agent, disk_folder: Path) -> None:
    path = write(disk_folder / "full", (0, 4))
    told = agent.ask("extents", paths=[path])
    assert (told["file_count"], told["size_bytes"], told["written_bytes"]) == (1, 4 * MIB, 4 * MIB)
    assert (told["unwritten_bytes"], told["hole_bytes"]) == (0, 0)


def test_a_hole_is_told(agent: Agent, disk_folder: Path) -> None:
    path = write(disk_folder / "hole", (0, 1), (3, 1))
    told = agent.ask("extents", paths=[path])
    assert (told["size_bytes"], told["written_bytes"], told["hole_bytes"]) == (
        4 * MIB, 2 * MIB, 2 * MIB,
    )  # fmt: skip


def test_space_that_was_only_reserved_is_not_written(agent: Agent, disk_folder: Path) -> None:
    path = disk_folder / "reserved"
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 4 * MIB)
        os.pwrite(file.fileno(), os.urandom(MIB), MIB)
    told = agent.ask("extents", paths=[str(path)])
    assert told["written_bytes"] == MIB
    assert told["unwritten_bytes"] + told["hole_bytes"] == 3 * MIB


def test_an_odd_size_and_many_files_are_summed(agent: Agent, disk_folder: Path) -> None:
    (disk_folder / "odd").write_bytes(os.urandom(5000))
    (disk_folder / "empty").write_bytes(b"")
    os.truncate(disk_folder / "empty", 0)
    (disk_folder / "hollow").write_bytes(b"")
    os.truncate(disk_folder / "hollow", 10 * MIB)
    paths = [str(disk_folder / name) for name in ("odd", "empty", "hollow")]
    told = agent.ask("extents", paths=paths)
    assert told["file_count"] == 3
    assert told["size_bytes"] == 5000 + 10 * MIB
    assert (told["written_bytes"], told["hole_bytes"]) == (5000, 10 * MIB)


def test_many_extents_take_many_calls(agent: Agent, disk_folder: Path) -> None:
    path = disk_folder / "sieve"
    with path.open("wb") as file:
        for n in range(1000):
            os.pwrite(file.fileno(), os.urandom(4096), n * 8192)
    told = agent.ask("extents", paths=[str(path)])
    assert told["written_bytes"] == 1000 * 4096
    assert told["hole_bytes"] == 999 * 4096


def test_a_memory_file_system_is_asked_by_seeking(agent: Agent, memory_folder: Path) -> None:
    paths = [
        write(memory_folder / "full", (0, 2)),
        write(memory_folder / "hole", (0, 1), (3, 1)),
    ]
    told = agent.ask("extents", paths=paths)
    assert told["method"] == "seek"
    assert (told["written_bytes"], told["hole_bytes"]) == (4 * MIB, 2 * MIB)


def test_what_is_not_there_is_named(agent: Agent, tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")
    for refusal in (
        agent.ask("extents", paths=[gone]),
        agent.ask("evict", paths=[gone], system=False),
    ):
        assert (refusal["code"], gone in refusal["message"]) == ("ENOENT", True)


def test_eviction_lowers_what_the_kernel_counts(agent: Agent, disk_folder: Path) -> None:
    path = write(disk_folder / "warm", (0, 8))  # Dirty as well: it must be written first.
    told = agent.ask("evict", paths=[path], system=False)
    assert told["resident_bytes_before"] == 8 * MIB
    assert told["resident_bytes_after"] == 0
    assert told["methods"] == ["fsync", "fadvise"]
    assert told["faults"] == []


def test_memory_files_stay_and_the_count_says_so(agent: Agent, memory_folder: Path) -> None:
    path = write(memory_folder / "warm", (0, 2))
    told = agent.ask("evict", paths=[path], system=False)
    assert told["resident_bytes_after"] == told["resident_bytes_before"] == 2 * MIB


def test_the_kernels_caches_are_dropped_where_permitted(agent: Agent, disk_folder: Path) -> None:
    path = write(disk_folder / "warm", (0, 1))
    told = agent.ask("evict", paths=[path], system=True)
    dropped = "drop_caches" in told["methods"]
    assert dropped == (os.access("/proc/sys/vm/drop_caches", os.W_OK) and not told["faults"])
    assert dropped or "drop_caches" in told["faults"][0]


def test_direct_io_is_tried_and_leaves_nothing(agent: Agent, disk_folder: Path) -> None:
    told = agent.ask("probe", path=str(disk_folder))
    assert (told["direct_error"], told["held_by"]) == (None, None)
    assert told["direct_align_bytes"] in {512, 1024, 2048, 4096, 65_536}
    assert list(disk_folder.iterdir()) == []


def test_where_direct_io_does_not_work_the_sentence_says_why(agent: Agent) -> None:
    # No file system here refuses direct I/O as old ones do; a place without room refuses it too.
    refusal = agent.ask("probe", path="/proc")
    assert refusal.is_ == "error"
    assert "/proc" in refusal["message"]


def test_sync_answers(agent: Agent) -> None:
    assert agent.ask("sync").is_ == "done"


def test_a_full_target_is_told_by_the_probe(agent: Agent, tmp_path: Path) -> None:
    require(ROOT)
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", folder], check=True)
    try:
        (folder / "all").write_bytes(bytes(4096))
        told = agent.ask("probe", path=str(folder))
        assert "ENOSPC" in told["direct_error"]
        assert told["direct_align_bytes"] is None
    finally:
        subprocess.run(["umount", folder], check=True)
