"""Block devices to destroy in tests: loop devices over sparse files and zram, all of our own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.targets import command

ZRAM = Path("/sys/class/zram-control")


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
    number = (ZRAM / "hot_add").read_text(encoding="ascii").strip()
    name = f"zram{number}"
    try:
        Path(f"/sys/block/{name}/disksize").write_text(str(size_bytes), encoding="ascii")
        yield Spare(f"/dev/{name}", name, Path(f"/sys/block/{name}/mm_stat"))
    finally:
        Path(f"/sys/block/{name}/reset").write_text("1", encoding="ascii")
        (ZRAM / "hot_remove").write_text(number, encoding="ascii")


def write_at(path: str, offset: int, content: bytes) -> None:
    """Bytes on a device, seen by every later reader."""
    file = os.open(path, os.O_WRONLY)
    try:
        os.pwrite(file, content, offset)
        os.fsync(file)
    finally:
        os.close(file)
