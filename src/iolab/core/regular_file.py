"""Regular files: opened without waiting for what is none, and read up to a bound."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

BYTES_MAX: Final = 1 << 28
"""More than a manifest of thousands of hosts has."""

_PIECE_BYTES: Final = 1 << 20

_KINDS: Final = {
    stat.S_IFREG: "a file",
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
    stat.S_IFSOCK: "a socket",
}


def file_type_name(mode: int) -> str:
    """What a file with that `st_mode` is, in the words of its user."""
    return _KINDS.get(stat.S_IFMT(mode), "something else")


def open_regular_file(path: Path) -> int:
    """A descriptor to read `path` from; OSError where it cannot be, or is no regular file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
    if kind == stat.S_IFREG:
        return descriptor
    os.close(descriptor)
    if kind == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, f"it is {file_type_name(kind)} and no regular file", str(path))


def read_regular_file(path: Path, max_bytes: int = BYTES_MAX) -> bytes:
    """All that is in a regular file.

    OSError where it cannot be read, or has more than `max_bytes`.
    """
    descriptor = open_regular_file(path)
    try:
        size = os.fstat(descriptor).st_size
        # Most files are small: one byte more than it has tells that there are no others.
        content = bytearray(os.read(descriptor, min(size, max_bytes, _PIECE_BYTES) + 1))
        if len(content) == size <= max_bytes:
            return bytes(content)
        # In pieces, since a reader sets aside all that it is asked for.
        while len(content) <= max_bytes and (
            piece := os.read(descriptor, min(max_bytes + 1, _PIECE_BYTES))
        ):
            content += piece
    finally:
        os.close(descriptor)
    if len(content) > max_bytes:
        raise OSError(errno.EFBIG, f"it has more than {max_bytes} bytes", str(path))
    return bytes(content)


def require_regular_file(path: Path) -> None:
    """OSError where `path` is no regular file, for a library that opens it by its name."""
    os.close(open_regular_file(path))
