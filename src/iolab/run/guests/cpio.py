"""Archives that Linux unpacks as its first file system: cpio in the "newc" form, uncompressed.

Form: Documentation/driver-api/early-userspace/buffer-format.rst of the kernel. Uncompressed: guests
boot no sooner from half the bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

DIRECTORY: Final = 0o040755
PROGRAM: Final = 0o100755
PLAIN: Final = 0o100644

_ALIGNED: Final = 4
_MAGIC: Final = b"070701"
_LAST: Final = "TRAILER!!!"
_HEADER_BYTES: Final = 110


@dataclass(frozen=True, slots=True)
class CpioEntry:
    """One entry: `name` relative to the root, without a leading slash; `mode` with the file's type.

    Folders come before what is in them.
    """

    name: str
    mode: int
    content: bytes = b""


def newc(entries: Iterable[CpioEntry]) -> bytes:
    """The archive: all entries owned by root, with neither times nor devices."""
    return b"".join(_pieces(entries))


def read_newc(archive: bytes) -> tuple[CpioEntry, ...]:
    """The entries of an archive. ValueError when it is none."""
    found: list[CpioEntry] = []
    at = 0
    while archive.startswith(_MAGIC, at) and at + _HEADER_BYTES <= len(archive):
        fields = archive[at + len(_MAGIC) : at + _HEADER_BYTES]
        numbers = [int(fields[n : n + 8], 16) for n in range(0, len(fields), 8)]
        mode, size, name_bytes = numbers[1], numbers[6], numbers[11]
        named = at + _HEADER_BYTES
        name = archive[named : named + name_bytes - 1].decode()
        if name == _LAST:
            return tuple(found)
        start = _up(named + name_bytes)
        found.append(CpioEntry(name, mode, archive[start : start + size]))
        at = _up(start + size)
    raise ValueError(f"no cpio entry at byte {at}")


def _pieces(entries: Iterable[CpioEntry]) -> Iterator[bytes]:
    # The kernel takes entries with the same number as links of one file.
    number = 0
    for number, entry in enumerate(entries, 1):
        yield from _piece(entry, number)
    yield from _piece(CpioEntry(_LAST, 0), number + 1)


def _piece(entry: CpioEntry, number: int) -> Iterator[bytes]:
    name = entry.name.encode() + b"\0"
    # inode, mode, uid, gid, links, mtime, size, device (2), device of a node (2), name, checksum
    fields = (number, entry.mode, 0, 0, 1, 0, len(entry.content), 0, 0, 0, 0, len(name), 0)
    yield _padded(_MAGIC + b"".join(b"%08X" % field for field in fields) + name)
    yield _padded(entry.content)


def _padded(piece: bytes) -> bytes:
    return piece + bytes(_up(len(piece)) - len(piece))


def _up(length: int) -> int:
    return -(-length // _ALIGNED) * _ALIGNED
