"""The kernel in a bzImage, however it is packed."""

from __future__ import annotations

import lzma

import pytest

from iolab.guests.kit.image import PROGRAMS, Packing, Payload, payload, starts_directly, unpacked
from tests.guests.kernels import bz_image, elf_kernel, packed

KERNEL = elf_kernel()
LZ4 = b"\x02!L\x18" + b"not really"
ZSTD = b"(\xb5/\xfd" + b"not really"


@pytest.mark.parametrize("packing", [Packing.GZIP, Packing.XZ, Packing.BZIP2])
@pytest.mark.parametrize("sectors", [0, 3, 30])
def test_a_kernel_that_python_unpacks(packing: Packing, sectors: int) -> None:
    found = payload(bz_image(packed(packing, KERNEL), sectors=sectors))
    assert found.packing is packing
    assert unpacked(found.packing, found.content) == KERNEL


@pytest.mark.parametrize(("packing", "content"), [(Packing.LZ4, LZ4), (Packing.ZSTD, ZSTD)])
def test_a_kernel_for_a_program_comes_without_its_size(packing: Packing, content: bytes) -> None:
    assert payload(bz_image(packed(packing, content))) == Payload(packing, content)
    assert packing in PROGRAMS
    with pytest.raises(ValueError, match="needs a program"):
        unpacked(packing, content)


def test_the_old_form_of_xz_is_unpacked_too() -> None:
    alone = lzma.compress(KERNEL, format=lzma.FORMAT_ALONE)
    found = payload(bz_image(alone + b"size"))
    assert unpacked(found.packing, found.content) == KERNEL


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        (b"", "no Linux boot header"),
        (bytes(4096), "no Linux boot header"),
        (bz_image(LZ4, version=0x207), "older than Linux"),
        (bz_image(packed(Packing.GZIP, KERNEL))[:-40], "ends before its payload"),
        (bz_image(b""), "ends before its payload"),
        (bz_image(b"unheard of"), r"packed in an unknown way \(756e68656172\)"),
    ],
)
def test_what_is_no_image_says_why(image: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        payload(image)


@pytest.mark.parametrize("packing", [Packing.GZIP, Packing.XZ, Packing.BZIP2])
def test_damage_is_found(packing: Packing) -> None:
    content = bytearray(packed(packing, KERNEL))
    content[12:40] = bytes(28)
    with pytest.raises(ValueError, match=f"damaged {packing}"):
        unpacked(packing, bytes(content))


@pytest.mark.parametrize(
    "kernel",
    [
        elf_kernel(machine=183),
        elf_kernel(note=17),
        elf_kernel(owner=b"GNU\0"),
        KERNEL[:100],
        KERNEL[:190],
        b"\x7fELF" + bytes(200),
        b"",
    ],
)
def test_a_kernel_without_that_entry_is_known(kernel: bytes) -> None:
    assert not starts_directly(kernel)
