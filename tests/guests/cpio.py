"""Reads archives as the kernel does."""

from __future__ import annotations

from iolab.guests.kit.image import CpioEntry

MAGIC = b"070701"
HEADER_BYTES = 110


def read_newc(archive: bytes) -> tuple[CpioEntry, ...]:
    """The entries of an archive. ValueError when it is none."""
    found: list[CpioEntry] = []
    at = 0
    while archive.startswith(MAGIC, at) and at + HEADER_BYTES <= len(archive):
        fields = archive[at + len(MAGIC) : at + HEADER_BYTES]
        numbers = [int(fields[n : n + 8], 16) for n in range(0, len(fields), 8)]
        mode, size, name_bytes = numbers[1], numbers[6], numbers[11]
        named = at + HEADER_BYTES
        name = archive[named : named + name_bytes - 1].decode()
        if name == "TRAILER!!!":
            return tuple(found)
        start = aligned(named + name_bytes)
        found.append(CpioEntry(name, mode, archive[start : start + size]))
        at = aligned(start + size)
    raise ValueError(f"no cpio entry at byte {at}")


def aligned(length: int) -> int:
    return -(-length // 4) * 4
