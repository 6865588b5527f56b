"""The parts of a guest's image: the kernel, the archive, Debian's packages, the modules."""

from __future__ import annotations

import lzma

import pytest

from iolab.guests.kit.debian import KernelPackage, newest_kernel_package, parse_stanzas
from iolab.guests.kit.image import (
    DIRECTORY,
    PROGRAM,
    PROGRAMS,
    REGULAR_FILE,
    CpioEntry,
    KernelCompression,
    KernelPayload,
    cpio_archive,
    decompress_content,
    is_kernel_module_file,
    kernel_module_name,
    kernel_payload,
    parse_ldd_output,
    supports_pvh_boot,
    wanted_modules_in_load_order,
)
from tests.guests.cpio import read_newc
from tests.guests.kernels import bz_image, elf_kernel, module, packed
from tests.recorded import recorded

KERNEL = elf_kernel()
LZ4 = b"\x02!L\x18" + b"not really"
ZSTD = b"(\xb5/\xfd" + b"not really"


@pytest.mark.parametrize(
    "packing", [KernelCompression.GZIP, KernelCompression.XZ, KernelCompression.BZIP2]
)
@pytest.mark.parametrize("sectors", [0, 3, 30])
def test_a_kernel_that_python_unpacks(packing: KernelCompression, sectors: int) -> None:
    found = kernel_payload(bz_image(packed(packing, KERNEL), sectors=sectors))
    assert found.compression is packing
    assert decompress_content(found.compression, found.content) == KERNEL


@pytest.mark.parametrize(
    ("packing", "content"), [(KernelCompression.LZ4, LZ4), (KernelCompression.ZSTD, ZSTD)]
)
def test_a_kernel_for_a_program_comes_without_its_size(
    packing: KernelCompression, content: bytes
) -> None:
    assert kernel_payload(bz_image(packed(packing, content))) == KernelPayload(packing, content)
    assert packing in PROGRAMS
    with pytest.raises(ValueError, match="needs a program"):
        decompress_content(packing, content)


def test_the_old_form_of_xz_is_unpacked_too() -> None:
    alone = lzma.compress(KERNEL, format=lzma.FORMAT_ALONE)
    found = kernel_payload(bz_image(alone + b"size"))
    assert decompress_content(found.compression, found.content) == KERNEL


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        (b"", "no Linux boot header"),
        (bytes(4096), "no Linux boot header"),
        (bz_image(LZ4, version=0x207), "older than Linux"),
        (bz_image(packed(KernelCompression.GZIP, KERNEL))[:-40], "ends before its payload"),
        (bz_image(b""), "ends before its payload"),
        (bz_image(b"unheard of"), r"packed in an unknown way \(756e68656172\)"),
    ],
)
def test_what_is_no_image_says_why(image: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        kernel_payload(image)


@pytest.mark.parametrize(
    "packing", [KernelCompression.GZIP, KernelCompression.XZ, KernelCompression.BZIP2]
)
def test_damage_is_found(packing: KernelCompression) -> None:
    content = bytearray(packed(packing, KERNEL))
    content[12:40] = bytes(28)
    with pytest.raises(ValueError, match=f"damaged {packing}"):
        decompress_content(packing, bytes(content))


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
    assert not supports_pvh_boot(kernel)


ENTRIES = (
    CpioEntry("dev", DIRECTORY),
    CpioEntry("init", PROGRAM, b"\x7fELF" + bytes(range(256))),
    CpioEntry("modules/order", REGULAR_FILE, b"virtio.ko\n"),
    CpioEntry("empty", REGULAR_FILE),
)


def test_a_header_is_as_the_kernel_reads_it() -> None:
    archive = cpio_archive([CpioEntry("ab", REGULAR_FILE, b"xyz")])
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
    assert read_newc(cpio_archive(ENTRIES)) == ENTRIES
    assert read_newc(cpio_archive([])) == ()


def test_no_two_entries_have_one_number() -> None:
    archive = cpio_archive(ENTRIES)
    places = [at for at in range(len(archive)) if archive.startswith(b"070701", at)]
    numbers = [archive[at + 6 : at + 14] for at in places]
    assert len(set(numbers)) == len(numbers) == len(ENTRIES) + 1


@pytest.mark.parametrize("cut", [0, 60, 400])
def test_what_is_cut_off_is_no_archive(cut: int) -> None:
    with pytest.raises(ValueError, match=r"cpio|invalid"):
        read_newc(cpio_archive(ENTRIES)[:cut])


@pytest.mark.parametrize(
    ("system", "name", "version"),
    [
        ("debian-12", "linux-image-6.1.0-56-cloud-amd64", "6.1.192-2"),
        ("debian-13", "linux-image-6.12.107+deb13-cloud-amd64", "6.12.107-1"),
        ("ubuntu-22.04", "linux-image-5.15.0-1113-kvm", "5.15.0.1113.109"),
        # Its linux-image-kvm depends on another meta package, and is passed over.
        ("ubuntu-24.04", "linux-image-6.8.0-151-generic", "6.8.0-151.151"),
    ],
)
def test_the_kernel_for_guests_is_found(system: str, name: str, version: str) -> None:
    text = recorded(f"apt/{system}.meta.txt").decode()
    assert newest_kernel_package(text) == KernelPackage(name, version)


@pytest.mark.parametrize(
    "depends",
    [
        "linux-image-6.1.0-9-amd64-unsigned | linux-image-6.1.0-9-amd64",
        "linux-image-6.1.0-9-amd64 | linux-image-6.1.0-9-amd64-unsigned",
        "kmod, linux-image-6.1.0-9-amd64 (= 6.1.5-1), linux-modules-6.1.0-9",
    ],
)
def test_a_signed_kernel_is_preferred(depends: str) -> None:
    text = f"Package: linux-image-cloud-amd64\nVersion: 6.1.5-1\nDepends: {depends}\n"
    assert newest_kernel_package(text) == KernelPackage("linux-image-6.1.0-9-amd64", "6.1.5-1")


@pytest.mark.parametrize(
    "text",
    ["", "N: Unable to locate package", "Package: linux-image-cloud-amd64\nDepends: kmod\n"],
)
def test_without_a_kernel_there_is_no_offer(text: str) -> None:
    assert newest_kernel_package(text) is None


def test_a_kernel_names_the_package_of_its_modules() -> None:
    (stanza,) = parse_stanzas(recorded("apt/ubuntu-22.04.image.txt").decode())
    assert stanza["Depends"].endswith("linux-modules-5.15.0-1113-kvm")
    # A value may hold the mark that ends a name.
    assert stanza["Bugs"] == "https://bugs.launchpad.net/ubuntu/+filebug"


def test_libraries_are_those_that_ldd_found() -> None:
    found = parse_ldd_output(recorded("apt/fio.ldd.txt").decode())
    assert len(found) == 63
    assert "/lib64/ld-linux-x86-64.so.2" in found
    assert "/usr/lib/x86_64-linux-gnu/ceph/libceph-common.so.2" in found
    assert parse_ldd_output("\tnot a dynamic executable\n") == ()
    assert parse_ldd_output("\tlibaio.so.1 => not found\n") == ()


DRIVERS = "kernel/drivers"
DEBIAN_12 = {
    f"{DRIVERS}/virtio/virtio.ko": module("virtio_ring"),
    f"{DRIVERS}/virtio/virtio_ring.ko": module(),
    f"{DRIVERS}/virtio/virtio_mmio.ko": module("virtio_ring", "virtio"),
    f"{DRIVERS}/virtio/virtio_pci.ko": module(
        "virtio_ring", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio"
    ),
    f"{DRIVERS}/virtio/virtio_pci_modern_dev.ko": module(),
    f"{DRIVERS}/virtio/virtio_pci_legacy_dev.ko": module(),
    f"{DRIVERS}/virtio/virtio_balloon.ko": module("virtio_ring", "virtio"),
    f"{DRIVERS}/block/virtio_blk.ko": module("virtio", "virtio_ring"),
    f"{DRIVERS}/char/virtio_console.ko": module("virtio", "virtio_ring"),
}


def test_each_comes_behind_what_it_depends_on() -> None:
    found = wanted_modules_in_load_order(list(DEBIAN_12), [], DEBIAN_12.__getitem__)
    assert list(found) == [
        "virtio_ring",
        "virtio",
        "virtio_mmio",
        "virtio_pci_modern_dev",
        "virtio_pci_legacy_dev",
        "virtio_pci",
        "virtio_blk",
        "virtio_console",
    ]
    assert found["virtio"] == module("virtio_ring")


def test_what_is_built_in_is_left_out() -> None:
    built_in = [
        f"{DRIVERS}/virtio/{name}.ko" for name in ("virtio", "virtio_ring", "virtio_pci")
    ] + [f"{DRIVERS}/char/virtio_console.ko", ""]
    paths = {
        f"{DRIVERS}/block/virtio_blk.ko.xz": module("virtio", "virtio_ring"),
        f"{DRIVERS}/virtio/virtio-mmio.ko.zst": module("virtio-ring"),
    }
    assert list(wanted_modules_in_load_order(list(paths), built_in, paths.__getitem__)) == [
        "virtio_mmio",
        "virtio_blk",
    ]


def test_a_kernel_without_disks_is_none_for_guests() -> None:
    with pytest.raises(ValueError, match="no virtio_blk and no virtio_console"):
        wanted_modules_in_load_order([], [], lambda path: b"")


def test_a_module_that_is_nowhere_is_named() -> None:
    paths = {"virtio_blk.ko": module("sg_pool"), "virtio_console.ko": module()}
    with pytest.raises(ValueError, match="no sg_pool, which another module needs"):
        wanted_modules_in_load_order(list(paths), [], paths.__getitem__)


def test_modules_that_depend_on_each_other_end() -> None:
    paths = {"virtio_blk.ko": module("virtio_console"), "virtio_console.ko": module("virtio_blk")}
    assert set(wanted_modules_in_load_order(list(paths), [], paths.__getitem__)) == {
        "virtio_blk",
        "virtio_console",
    }


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("kernel/drivers/virtio/virtio_ring.ko", "virtio_ring"),
        ("char/hw_random/virtio-rng.ko.xz", "virtio_rng"),
        ("a.ko.zst", "a"),
        ("a.ko.gz", "a"),
    ],
)
def test_names_are_those_of_the_kernel(path: str, name: str) -> None:
    assert is_kernel_module_file(path)
    assert kernel_module_name(path) == name
