"""What a bzImage carries: the ELF kernel that a hypervisor starts at once, without firmware.

Form: Documentation/arch/x86/boot.rst of the kernel (the real-mode header), and for direct boot the
note XEN_ELFNOTE_PHYS32_ENTRY, by which QEMU knows where a "PVH" kernel begins.
"""

from __future__ import annotations

import bz2
import lzma
import struct
import zlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Packing(StrEnum):
    """How something is compressed, by what stands at its beginning."""

    NONE = "none"
    GZIP = "gzip"
    XZ = "xz"
    BZIP2 = "bzip2"
    LZ4 = "lz4"
    ZSTD = "zstd"


PROGRAMS: Final = {Packing.LZ4: "lz4", Packing.ZSTD: "zstd"}
"""What Python's own library does not unpack, and the program that does."""

_MAGIC: Final = {
    b"\x1f\x8b": Packing.GZIP,
    b"\xfd7zXZ\0": Packing.XZ,
    b"]\0\0": Packing.XZ,
    b"BZh": Packing.BZIP2,
    b"\x02!L\x18": Packing.LZ4,
    b"(\xb5/\xfd": Packing.ZSTD,
    b"\x7fELF": Packing.NONE,
}

_SECTOR: Final = 512
_SETUP_SECTORS: Final = 0x1F1
_SIGNATURE: Final = slice(0x202, 0x206)
_VERSION: Final = 0x206
_PAYLOAD: Final = 0x248
_WITH_PAYLOAD: Final = 0x0208
"""The version of the header since which it names its payload."""
_USUAL_SETUP: Final = 4
_SIZE_TRAILER: Final = 4
"""The build puts the size of the kernel behind all packings but gzip, which has it already."""

_PT_NOTE: Final = 4
_PVH_ENTRY: Final = 18
_XEN: Final = b"Xen\0"
_NOTES_LIMIT: Final = 1000


@dataclass(frozen=True, slots=True)
class Payload:
    """The packed kernel in a bzImage."""

    packing: Packing
    content: bytes


def payload(image: bytes) -> Payload:
    """Cut the packed kernel out of a bzImage. ValueError with the reason when there is none."""
    if len(image) < _PAYLOAD + 8 or image[_SIGNATURE] != b"HdrS":
        raise ValueError("it has no Linux boot header")
    (version,) = struct.unpack_from("<H", image, _VERSION)
    if version < _WITH_PAYLOAD:
        raise ValueError("its boot header is older than Linux 2.6.24")
    offset, length = struct.unpack_from("<II", image, _PAYLOAD)
    start = ((image[_SETUP_SECTORS] or _USUAL_SETUP) + 1) * _SECTOR + offset
    content = image[start : start + length]
    if len(content) < length or length <= _SIZE_TRAILER:
        raise ValueError("it ends before its payload does")
    packing = packing_of(content)
    if packing is None:
        raise ValueError(f"its payload is packed in an unknown way ({content[:6].hex()})")
    if packing in {Packing.LZ4, Packing.ZSTD}:
        content = content[:-_SIZE_TRAILER]
    return Payload(packing, content)


def packing_of(content: bytes) -> Packing | None:
    """What the first bytes say; None when they are of no packing and no ELF file."""
    return next((p for magic, p in _MAGIC.items() if content.startswith(magic)), None)


def unpacked(packing: Packing, content: bytes) -> bytes:
    """Content unpacked by Python alone, whatever stands behind it left out.

    ValueError when it is damaged, or `packing` is one of PROGRAMS.
    """
    try:
        match packing:
            case Packing.NONE:
                return content
            case Packing.GZIP:
                return zlib.decompressobj(wbits=31).decompress(content)
            case Packing.XZ:
                return lzma.LZMADecompressor().decompress(content)
            case Packing.BZIP2:
                return bz2.BZ2Decompressor().decompress(content)
            case _:
                raise ValueError(f"{packing} needs a program")
    except (zlib.error, lzma.LZMAError, OSError, EOFError) as fault:
        raise ValueError(f"damaged {packing}: {fault}") from None


def starts_directly(kernel: bytes) -> bool:
    """Whether an ELF file is an x86-64 kernel with an entry for direct boot (PVH)."""
    try:
        return _starts_directly(kernel)
    except struct.error:
        return False


def _starts_directly(kernel: bytes) -> bool:
    class_and_order = kernel[4:6]
    machine = struct.unpack_from("<H", kernel, 18)[0]
    if not (kernel.startswith(b"\x7fELF") and class_and_order == b"\2\1" and machine == _X86_64):
        return False
    (table,) = struct.unpack_from("<Q", kernel, 32)
    size, count = struct.unpack_from("<HH", kernel, 54)
    for number in range(count):
        kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", kernel, table + number * size)
        if kind == _PT_NOTE and _has_entry(kernel[offset : offset + length]):
            return True
    return False


_X86_64: Final = 62


def _has_entry(notes: bytes) -> bool:
    at = 0
    for _ in range(_NOTES_LIMIT):
        if at + 12 > len(notes):
            return False
        name_bytes, desc_bytes, kind = struct.unpack_from("<III", notes, at)
        name = notes[at + 12 : at + 12 + name_bytes]
        if kind == _PVH_ENTRY and name == _XEN:
            return True
        at += 12 + _up(name_bytes) + _up(desc_bytes)
    return False


def _up(length: int) -> int:
    return -(-length // 4) * 4
