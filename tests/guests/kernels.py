"""Kernels and modules for tests: of the right form, and nothing in them."""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
from typing import Final

from iolab.guests.kit.image import KernelCompression

PLAIN: Final = 0


def elf_kernel(*, machine: int = 62, note: int = 18, owner: bytes = b"Xen\0") -> bytes:
    """An ELF file with one segment of notes: another one first, then that for direct boot."""
    other = struct.pack("<III", 4, 5, 3) + b"GNU\0" + b"12345\0\0\0"
    entry = struct.pack("<III", len(owner), 4, note) + owner + struct.pack("<I", 0x1000000)
    notes = other + entry
    header = struct.pack(
        "<16sHHIQQQIHHHHHH",
        b"\x7fELF\2\1\1",
        *(2, machine, 1, 0x1000000, 64, 0, 0, 64, 56, 2, 0, 0, 0),
    )
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 64, 64, 4096)
    table = struct.pack("<IIQQQQQQ", 4, 4, 176, 0, 0, len(notes), len(notes), 4)
    return header + load + table + notes + bytes(5000)


def bz_image(content: bytes, *, sectors: int = 3, version: int = 0x20F) -> bytes:
    """A bzImage with that payload; `sectors` are those of its setup, 0 for the four of old."""
    image = bytearray((sectors or 4) * 512 + 512 + 100)
    image[0x1F1] = sectors
    image[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", image, 0x206, version)
    struct.pack_into("<II", image, 0x248, 100, len(content))
    return bytes(image) + content + b"what stands behind"


def packed(packing: KernelCompression, content: bytes) -> bytes:
    """As the kernel's build packs it: all but gzip with the size behind."""
    size = struct.pack("<I", len(content))
    match packing:
        case KernelCompression.GZIP:
            return gzip.compress(content)
        case KernelCompression.XZ:
            return lzma.compress(content, check=lzma.CHECK_CRC32) + size
        case KernelCompression.BZIP2:
            return bz2.compress(content) + size
        case _:
            return content + size


def module(*depends: str) -> bytes:
    """A module that says what it depends on."""
    said = f"license=GPL\0depends={','.join(depends)}\0retpoline=Y\0name=x\0"
    return b"\x7fELF\2\1\1" + bytes(60) + b"alias=virtio:d00000002v*\0" + said.encode() + bytes(9)
