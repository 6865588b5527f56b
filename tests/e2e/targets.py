"""Targets to measure in tests: an XFS on a loop device of its own, torn down completely."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.needs import ROOT, require
from tests.processes import run_program

COMMAND_LIMIT_S = 60


@dataclass(frozen=True)
class Target:
    """A directory on a file system, and the block device whose counters see its I/O."""

    path: Path
    device: str


def command(*argv: str | Path) -> str:
    """What a program of root's prints; it must succeed."""
    require(ROOT, str(argv[0]))
    words = [str(word) for word in argv]
    done = run_program(words, timeout=COMMAND_LIMIT_S)
    assert done.returncode == 0, f"{words} ended with {done.returncode}: {done.stderr}"
    return done.stdout.strip()


@contextmanager
def xfs_on_loop(size_bytes: int = 1 << 30, backing: Path = Path("/var/tmp")) -> Iterator[Target]:
    """An XFS on a loop device over a file on disk: over one in memory, no result may be valid."""
    with tempfile.TemporaryDirectory(prefix="iolab-test-", dir=backing) as folder:
        image = Path(folder) / "image"
        with image.open("wb") as file:
            os.truncate(file.fileno(), size_bytes)
        command("mkfs.xfs", "-q", "-f", image)
        device = command("losetup", "--find", "--show", image)
        mount_point = Path(folder) / "target"
        mount_point.mkdir()
        try:
            command("mount", "-o", "noatime", device, mount_point)
            try:
                yield Target(mount_point, Path(device).name)
            finally:
                command("umount", mount_point)
        finally:
            command("losetup", "--detach", device)


@contextmanager
def xfs_on_device(device: str) -> Iterator[Target]:
    """An XFS on a block device of our own."""
    with tempfile.TemporaryDirectory(prefix="iolab-test-") as folder:
        command("mkfs.xfs", "-q", "-f", device)
        command("mount", "-o", "noatime", device, folder)
        try:
            yield Target(Path(folder), Path(device).name)
        finally:
            command("umount", folder)


@contextmanager
def tmpfs(size_bytes: int) -> Iterator[Path]:
    """A tmpfs of that size."""
    with tempfile.TemporaryDirectory(prefix="iolab-test-") as folder:
        command("mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", folder)
        try:
            yield Path(folder)
        finally:
            command("umount", folder)


def device_bytes(device: str) -> tuple[int, int]:
    """Bytes read and written that /proc/diskstats has counted for a device."""
    for line in Path("/proc/diskstats").read_text(encoding="utf-8").splitlines():
        fields = line.split()
        if fields[2] == device:
            return int(fields[5]) * 512, int(fields[9]) * 512
    raise LookupError(device)
