"""Jars on hosts, through the real agent behind a prefix."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from iolab.core.host import HostSpec, HostTransport
from iolab.errors import EngineError, HostError
from iolab.hosts.connect import CommandHost
from iolab.hosts.host import Host
from iolab.hosts.kit_cache import PIECE_BYTES, copy_jars_to_host, is_file_visible_on_host

pytestmark = pytest.mark.e2e

T = TypeVar("T")


def elsewhere(work: Callable[[Host], Awaitable[T]], *words: str) -> T:
    async def session() -> T:
        host = CommandHost(HostSpec("far", HostTransport.COMMAND, command_prefix=("env", *words)))
        await host.connect()
        try:
            return await work(host)
        finally:
            await host.close()

    return asyncio.run(session())


@pytest.fixture
def jars(tmp_path: Path) -> list[Path]:
    folder = tmp_path / "kit"
    folder.mkdir()
    sizes = {"a.jar": 10, "b.jar": 2 * PIECE_BYTES + 5, "c.jar": PIECE_BYTES, "d.jar": 0}
    for name, size in sizes.items():
        (folder / name).write_bytes(bytes(size) if name != "b.jar" else b"\xff\n\0z" * (size // 4))
    return sorted(folder.iterdir())


def test_jars_arrive_whole(tmp_path: Path, jars: list[Path]) -> None:
    target = tmp_path / "there" / "kit"
    paths = elsewhere(lambda host: copy_jars_to_host(host, jars, str(target)))
    assert paths == tuple(f"{target}/{jar.name}" for jar in jars)
    for path, jar in zip(paths, jars, strict=True):
        assert Path(path).read_bytes() == jar.read_bytes()


def test_jars_that_arrive_with_other_bytes_are_told(tmp_path: Path, jars: list[Path]) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    # What should be put to the end of a file goes nowhere.
    (programs / "dd").symlink_to(shutil.which("true") or "true")
    with pytest.raises(HostError, match=r"b\.jar .* other bytes"):
        elsewhere(
            lambda host: copy_jars_to_host(host, jars, str(tmp_path / "there")),
            f"PATH={programs}:{os.environ['PATH']}",
        )


def test_only_what_is_missing_or_damaged_is_sent(tmp_path: Path, jars: list[Path]) -> None:
    target = tmp_path / "kit there"
    elsewhere(lambda host: copy_jars_to_host(host, jars, str(target)))
    kept = (target / "b.jar").stat().st_mtime_ns
    (target / "a.jar").unlink()
    (target / "c.jar").write_bytes(b"half")
    elsewhere(lambda host: copy_jars_to_host(host, jars, str(target)))
    assert (target / "b.jar").stat().st_mtime_ns == kept
    assert (target / "c.jar").read_bytes() == jars[2].read_bytes()
    assert (target / "a.jar").read_bytes() == jars[0].read_bytes()


def test_a_folder_that_cannot_be_made(tmp_path: Path, jars: list[Path]) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EngineError, match="mkdir on host 'far'"):
        elsewhere(lambda host: copy_jars_to_host(host, jars, str(tmp_path / "file" / "kit")))


def test_a_host_that_sees_our_files_is_known_by_what_it_sees(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("random")
    assert elsewhere(lambda host: is_file_visible_on_host(host, token))


def test_a_host_that_sees_another_file_is_known() -> None:
    """Every process has its own file at this path."""
    assert not elsewhere(lambda host: is_file_visible_on_host(host, Path("/proc/self/cmdline")))


def test_a_host_that_does_not_see_the_file_is_known() -> None:
    token = Path(f"/proc/{os.getpid()}/../self/task/{os.getpid()}/comm")
    assert token.read_text()
    assert not elsewhere(lambda host: is_file_visible_on_host(host, token))
