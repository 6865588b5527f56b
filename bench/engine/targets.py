"""What both engines are run on: XFS on zram, the null device, and the disk under a directory."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.overhead import remove_zram

FILE_BYTES: Final = 512 << 20
_ZRAM_BYTES: Final = 768 << 20
_CHUNK_BYTES: Final = 1 << 20
_UNMOUNT_TRIES: Final = 20
_UNMOUNT_RETRY_S: Final = 0.2


@contextmanager
def on_zram() -> Iterator[Path]:
    """A file of zeros on XFS on a zram device of our own: a whole I/O path without a device limit.

    zram compresses, so that what is written decides how much it costs: both engines write zeros.
    """
    number = Path("/sys/class/zram-control/hot_add").read_text(encoding="ascii").strip()
    device = f"/dev/zram{number}"
    try:
        Path(f"/sys/block/zram{number}/disksize").write_text(str(_ZRAM_BYTES), encoding="ascii")
        subprocess.run(["mkfs.xfs", "-q", device], check=True)
        with tempfile.TemporaryDirectory(prefix="iolab-bench-") as folder:
            subprocess.run(["mount", device, folder], check=True)
            try:
                yield _written(Path(folder) / "file", FILE_BYTES, random=False)
            finally:
                unmount(folder)
    finally:
        remove_zram(number)


@contextmanager
def on_disk() -> Iterator[Path]:
    """A file of random bytes in the directory that BENCH_PATH names, else in /var/tmp."""
    base = os.environ.get("BENCH_PATH", "/var/tmp")
    with tempfile.TemporaryDirectory(prefix="iolab-bench-", dir=base) as folder:
        yield _written(Path(folder) / "file", FILE_BYTES, random=True)


def unmount(folder: str) -> None:
    """The kernel may hold a file of a ring for a moment after its process is gone."""
    for _ in range(_UNMOUNT_TRIES - 1):
        if subprocess.run(["umount", folder], check=False, capture_output=True).returncode == 0:
            return
        time.sleep(_UNMOUNT_RETRY_S)
    subprocess.run(["umount", folder], check=True)


def _written(path: Path, size: int, *, random: bool) -> Path:
    zeros = bytes(_CHUNK_BYTES)
    with path.open("wb") as file:
        for _ in range(size // _CHUNK_BYTES):
            file.write(os.urandom(_CHUNK_BYTES) if random else zeros)
        file.flush()
        os.fsync(file.fileno())
    return path
