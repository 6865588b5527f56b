"""Block devices to destroy in tests: loop devices over sparse files and zram, all of our own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.targets import command, xfs_on_device
from tests.needs import ROOT, require

ZRAM = Path("/sys/class/zram-control")
READ_LIMITS = Path("/sys/fs/cgroup/blkio/blkio.throttle.read_iops_device")
"""The block layer's limits of reads a second, of every process."""


@dataclass(frozen=True)
class Spare:
    """A block device: its path, its serial as iolab knows it, and the file behind it."""

    path: str
    serial: str
    image: Path

    @property
    def name(self) -> str:
        return Path(self.path).name

    @property
    def allocated_bytes(self) -> int:
        """What the file behind it takes on disk: a discarded block takes none."""
        return self.image.stat().st_blocks * 512


@contextmanager
def spare_loop(size_bytes: int = 64 << 20, *options: str) -> Iterator[Spare]:
    """A loop device over a new sparse file on disk."""
    with tempfile.TemporaryDirectory(prefix="iolab-test-", dir="/var/tmp") as folder:
        image = Path(folder) / "image"
        with image.open("wb") as file:
            os.truncate(file.fileno(), size_bytes)
        path = command("losetup", "--find", "--show", *options, image)
        try:
            yield Spare(path, str(image), image)
        finally:
            command("losetup", "--detach", path)


@contextmanager
def spare_zram(size_bytes: int = 64 << 20) -> Iterator[Spare]:
    """A zram device of our own, made and removed."""
    require(ROOT)
    number = (ZRAM / "hot_add").read_text(encoding="ascii").strip()
    name = f"zram{number}"
    try:
        Path(f"/sys/block/{name}/disksize").write_text(str(size_bytes), encoding="ascii")
        yield Spare(f"/dev/{name}", name, Path(f"/sys/block/{name}/mm_stat"))
    finally:
        Path(f"/sys/block/{name}/reset").write_text("1", encoding="ascii")
        (ZRAM / "hot_remove").write_text(number, encoding="ascii")


@contextmanager
def slow_loop(reads_per_s: int) -> Iterator[str]:
    """The path of a loop device whose reads take as long as those of a device that gives so many.

    It stands for a file on another one, and the kernel holds back what is read from that: to all
    above it is the upper one that is slow.
    """
    with spare_loop(640 << 20) as below, xfs_on_device(below.path) as under:
        number = Path(f"/sys/block/{below.name}/dev").read_text(encoding="ascii").strip()
        image = under.path / "image"
        with image.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, 400 << 20)
        path = command("losetup", "--find", "--show", "--direct-io=on", image)
        try:
            READ_LIMITS.write_text(f"{number} {reads_per_s}", encoding="ascii")
            yield path
        finally:
            READ_LIMITS.write_text(f"{number} 0", encoding="ascii")
            command("losetup", "--detach", path)


def write_at(path: str, offset: int, content: bytes) -> None:
    """Bytes on a device, seen by every later reader."""
    file = os.open(path, os.O_WRONLY)
    try:
        os.pwrite(file, content, offset)
        os.fsync(file)
    finally:
        os.close(file)
