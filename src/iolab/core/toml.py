"""TOML of others: read by the standard library, within bounds that keep it quick."""

from __future__ import annotations

import errno
import os
import re
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

PARTS_MAX: Final = 32
"""Parts of a dotted key. The library's time grows with their square, 50,000 take minutes, and no
file of iolab needs more than six. Words joined by dots in text and comments count as well."""

_PART: Final = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_TOO_DEEP: Final = re.compile(rf"(?<![\w-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{PARTS_MAX}}}")

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


class DeepKeyError(ValueError):
    """A dotted key has more parts than anybody needs; `line` is where, from 1."""

    def __init__(self, line: int) -> None:
        super().__init__(f"a key has more than {PARTS_MAX} parts (line {line})")
        self.line = line


def parse_toml(text: str, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """The tree of `text`. tomllib.TOMLDecodeError where it is no TOML, DeepKeyError as above."""
    if match := _TOO_DEEP.search(text):
        raise DeepKeyError(text.count("\n", 0, match.start()) + 1)
    return tomllib.loads(text, parse_float=parse_float)


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
