"""Archives for the kernel: every byte of their headers is given."""

from __future__ import annotations

import pytest

from iolab.guests.kit.image import DIRECTORY, PLAIN, PROGRAM, CpioEntry, newc
from tests.guests.cpio import read_newc

ENTRIES = (
    CpioEntry("dev", DIRECTORY),
    CpioEntry("init", PROGRAM, b"\x7fELF" + bytes(range(256))),
    CpioEntry("modules/order", PLAIN, b"virtio.ko\n"),
    CpioEntry("empty", PLAIN),
)


def test_a_header_is_as_the_kernel_reads_it() -> None:
    archive = newc([CpioEntry("ab", PLAIN, b"xyz")])
    fields = (
        b"00000001",  # inode
        b"000081A4",  # mode: a file, rw-r--r--
        b"00000000",  # uid
        b"00000000",  # gid
        b"00000001",  # links
        b"00000000",  # time
        b"00000003",  # size
        *[b"00000000"] * 4,  # devices
        b"00000003",  # name with its NUL
        b"00000000",  # checksum
    )
    assert archive[:120] == b"070701" + b"".join(fields) + b"ab\0" + b"\0" * 3 + b"xyz\0"
    assert archive[120:126] == b"070701"
    assert archive.endswith(b"TRAILER!!!\0\0\0\0")
    assert len(archive) % 4 == 0


def test_what_is_written_is_read_back() -> None:
    assert read_newc(newc(ENTRIES)) == ENTRIES
    assert read_newc(newc([])) == ()


def test_no_two_entries_have_one_number() -> None:
    archive = newc(ENTRIES)
    places = [at for at in range(len(archive)) if archive.startswith(b"070701", at)]
    numbers = [archive[at + 6 : at + 14] for at in places]
    assert len(set(numbers)) == len(numbers) == len(ENTRIES) + 1


@pytest.mark.parametrize("cut", [0, 60, 400])
def test_what_is_cut_off_is_no_archive(cut: int) -> None:
    with pytest.raises(ValueError, match=r"cpio|invalid"):
        read_newc(newc(ENTRIES)[:cut])
