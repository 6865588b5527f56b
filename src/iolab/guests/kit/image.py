"""Archives that Linux unpacks as its first file system: cpio in the "newc" form, uncompressed.

Form: Documentation/driver-api/early-userspace/buffer-format.rst of the kernel. Uncompressed: guests
boot no sooner from half the bytes.
"""

from __future__ import annotations

import asyncio
import bz2
import hashlib
import lzma
import os
import re
import shutil
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Final

from iolab.errors import EngineError
from iolab.guests.kit.debian import PathPrograms
from iolab.record import Record

DIRECTORY: Final = 0o040755
PROGRAM: Final = 0o100755
REGULAR_FILE: Final = 0o100644

_CPIO_MAGIC: Final = b"070701"
_LAST: Final = "TRAILER!!!"

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
_X86_64: Final = 62

WANTED_MODULES: Final = ("virtio_mmio", "virtio_pci", "virtio_blk", "virtio_console", "nvme")
"""Buses of both kinds of machine, disks, the port that the agent speaks through, and drives that
count what is written on them."""

REQUIRED_MODULES: Final = frozenset({"virtio_blk", "virtio_console"})
"""Without these no guest is of use; a kernel may lack one of the buses."""

_ENDINGS: Final = re.compile(r"\.ko(?:\.(?:xz|zst|gz))?")
_DEPENDS: Final = re.compile(rb"(?:^|\0)depends=([\w,-]*)\0")
FIO_IN_GUEST: Final = Path("/usr/bin/fio")

FOLDERS: Final = ("dev", "proc", "sys", "tmp", "run", "root", "etc", "usr/bin")
"""Where a guest mounts what the kernel gives it; the disk itself cannot be written."""

LATE_LOADED_LIBRARY: Final = "libgcc_s.so.1"
"""The C library opens it when a thread ends; no program names it."""

LINKS_CACHE: Final = Path("/etc/ld.so.cache")
"""Where the loader finds libraries outside its usual folders."""

IMAGE_UUID: Final = "1e6a72a8-5a0b-4d6c-9a55-2f0d2c7f1c01"
"""The file system's id and the seed of its directories: the same for all, as its times are."""

BLOCK_BYTES: Final = 4096
SPACE_FACTOR: Final = 1.04

SPARE_BYTES: Final = 4 << 20
"""For the tables of a file system of that size."""

_ENTRY: Final = re.compile(r"\s*(?:(\S+) => )?(/\S+) \(0x[0-9a-f]+\)")
_MISSING: Final = re.compile(r"(\S+) => not found")
_ELF: Final = b"\x7fELF\2"


class CpioEntry(Record):
    """One entry: `name` relative to the root, without a leading slash; `mode` with the file's type.

    Folders come before what is in them.
    """

    name: str
    mode: int
    content: bytes = b""


def cpio_archive(entries: Iterable[CpioEntry]) -> bytes:
    """The archive: all entries owned by root, with neither times nor devices."""
    return b"".join(_cpio_pieces(entries))


def _cpio_pieces(entries: Iterable[CpioEntry]) -> Iterator[bytes]:
    # The kernel takes entries with the same number as links of one file.
    number = 0
    for number, entry in enumerate(entries, 1):
        yield from _cpio_entry_pieces(entry, number)
    yield from _cpio_entry_pieces(CpioEntry(_LAST, 0), number + 1)


def _cpio_entry_pieces(entry: CpioEntry, inode_number: int) -> Iterator[bytes]:
    name = entry.name.encode() + b"\0"
    # inode, mode, uid, gid, links, mtime, size, device (2), device of a node (2), name, checksum
    fields = (inode_number, entry.mode, 0, 0, 1, 0, len(entry.content), 0, 0, 0, 0, len(name), 0)
    yield _pad_to_four(_CPIO_MAGIC + b"".join(b"%08X" % field for field in fields) + name)
    yield _pad_to_four(entry.content)


def _pad_to_four(content: bytes) -> bytes:
    return content + bytes(_aligned_to_four(len(content)) - len(content))


def _aligned_to_four(length: int) -> int:
    """Up to the next multiple of four, as archives and notes of ELF have their parts."""
    return -(-length // 4) * 4


class KernelCompression(StrEnum):
    """How something is compressed, by what stands at its beginning."""

    NONE = "none"
    GZIP = "gzip"
    XZ = "xz"
    BZIP2 = "bzip2"
    LZ4 = "lz4"
    ZSTD = "zstd"


PROGRAMS: Final = {KernelCompression.LZ4: "lz4", KernelCompression.ZSTD: "zstd"}
"""What Python's own library does not unpack, and the program that does."""

_MAGIC: Final = {
    b"\x1f\x8b": KernelCompression.GZIP,
    b"\xfd7zXZ\0": KernelCompression.XZ,
    b"]\0\0": KernelCompression.XZ,
    b"BZh": KernelCompression.BZIP2,
    b"\x02!L\x18": KernelCompression.LZ4,
    b"(\xb5/\xfd": KernelCompression.ZSTD,
    b"\x7fELF": KernelCompression.NONE,
}


class KernelPayload(Record):
    """The packed kernel in a bzImage."""

    compression: KernelCompression
    content: bytes


def kernel_payload(bzimage: bytes) -> KernelPayload:
    """Cut the packed kernel out of a bzImage. ValueError with the reason when there is none."""
    if len(bzimage) < _PAYLOAD + 8 or bzimage[_SIGNATURE] != b"HdrS":
        raise ValueError("it has no Linux boot header")
    (version,) = struct.unpack_from("<H", bzimage, _VERSION)
    if version < _WITH_PAYLOAD:
        raise ValueError("its boot header is older than Linux 2.6.24")
    offset, length = struct.unpack_from("<II", bzimage, _PAYLOAD)
    start = ((bzimage[_SETUP_SECTORS] or _USUAL_SETUP) + 1) * _SECTOR + offset
    content = bzimage[start : start + length]
    if len(content) < length or length <= _SIZE_TRAILER:
        raise ValueError("it ends before its payload does")
    compression = detect_compression(content)
    if compression is None:
        raise ValueError(f"its payload is packed in an unknown way ({content[:6].hex()})")
    if compression in {KernelCompression.LZ4, KernelCompression.ZSTD}:
        content = content[:-_SIZE_TRAILER]
    return KernelPayload(compression, content)


def detect_compression(content: bytes) -> KernelCompression | None:
    """What the first bytes say; None when they are of no compression and no ELF file."""
    return next((p for magic, p in _MAGIC.items() if content.startswith(magic)), None)


def decompress_content(compression: KernelCompression, content: bytes) -> bytes:
    """Content unpacked by Python alone, whatever stands behind it left out.

    ValueError when it is damaged, or `compression` is one of PROGRAMS.
    """
    try:
        match compression:
            case KernelCompression.NONE:
                return content
            case KernelCompression.GZIP:
                return zlib.decompressobj(wbits=31).decompress(content)
            case KernelCompression.XZ:
                return lzma.LZMADecompressor().decompress(content)
            case KernelCompression.BZIP2:
                return bz2.BZ2Decompressor().decompress(content)
            case _:
                raise ValueError(f"{compression} needs a program")
    except (zlib.error, lzma.LZMAError, OSError, EOFError) as fault:
        raise ValueError(f"damaged {compression}: {fault}") from None


def supports_pvh_boot(kernel: bytes) -> bool:
    """Whether an ELF file is an x86-64 kernel with an entry for direct boot (PVH)."""
    try:
        return _elf_supports_direct_boot(kernel)
    except struct.error:
        return False


def _elf_supports_direct_boot(kernel: bytes) -> bool:
    class_and_order = kernel[4:6]
    machine = struct.unpack_from("<H", kernel, 18)[0]
    if not (kernel.startswith(b"\x7fELF") and class_and_order == b"\2\1" and machine == _X86_64):
        return False
    (table,) = struct.unpack_from("<Q", kernel, 32)
    size, count = struct.unpack_from("<HH", kernel, 54)
    for number in range(count):
        kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", kernel, table + number * size)
        if kind == _PT_NOTE and _has_pvh_entry(kernel[offset : offset + length]):
            return True
    return False


def _has_pvh_entry(notes: bytes) -> bool:
    at = 0
    for _ in range(_NOTES_LIMIT):
        if at + 12 > len(notes):
            return False
        name_bytes, desc_bytes, kind = struct.unpack_from("<III", notes, at)
        name = notes[at + 12 : at + 12 + name_bytes]
        if kind == _PVH_ENTRY and name == _XEN:
            return True
        at += 12 + _aligned_to_four(name_bytes) + _aligned_to_four(desc_bytes)
    return False


def kernel_module_name(path: str) -> str:
    """A module's name by its file: hyphens count as underscores, as they do for the kernel."""
    return _ENDINGS.sub("", PurePosixPath(path).name).replace("-", "_")


def is_kernel_module_file(path: str) -> bool:
    """Whether a file is a module, packed or not."""
    match = _ENDINGS.search(PurePosixPath(path).name)
    return match is not None and match.end() == len(PurePosixPath(path).name)


def kernel_module_dependencies(content: bytes) -> tuple[str, ...]:
    """The modules that one says it depends on, from its `.modinfo`; `content` is unpacked."""
    match = _DEPENDS.search(content)
    names = match[1].decode().split(",") if match else []
    return tuple(name.replace("-", "_") for name in names if name)


def wanted_modules_in_load_order(
    paths: Sequence[str], built_in: Sequence[str], read_module: Callable[[str], bytes]
) -> Mapping[str, bytes]:
    """The unpacked modules by name, each behind those that it depends on.

    `paths` are all modules of the kernel, `built_in` the lines of its `modules.builtin`;
    `read_module` gives a module's unpacked content. ValueError when one that is needed is nowhere.
    """
    path_by_module = {kernel_module_name(path): path for path in paths}
    done = {kernel_module_name(path) for path in built_in if path.strip()}
    modules: dict[str, bytes] = {}
    for name in WANTED_MODULES:
        if name in path_by_module or name in done:
            _add_module_after_dependencies(name, path_by_module, done, read_module, modules)
    if missing := sorted(REQUIRED_MODULES - modules.keys() - done):
        raise ValueError(f"it has no {' and no '.join(missing)}")
    return modules


def _add_module_after_dependencies(
    name: str,
    path_by_module: Mapping[str, str],
    added_names: set[str],
    read_module: Callable[[str], bytes],
    modules: dict[str, bytes],
) -> None:
    if name in added_names:
        return
    added_names.add(name)
    if name not in path_by_module:
        raise ValueError(f"it has no {name}, which another module needs")
    content = read_module(path_by_module[name])
    for needed in kernel_module_dependencies(content):
        _add_module_after_dependencies(needed, path_by_module, added_names, read_module, modules)
    modules[name] = content


class FioWithLibraries(Record):
    """A fio and every library that it loads, by their paths on this machine."""

    fio: Path
    version: str
    libraries: tuple[Path, ...]

    def file_states_digest(self) -> str:
        """Which files these are, by path, size and time of change."""
        digest = hashlib.sha256(self.version.encode())
        for path in (self.fio, *self.libraries):
            state = path.stat()
            digest.update(f"\0{path}\0{state.st_size}\0{state.st_mtime_ns}".encode())
        return digest.hexdigest()


async def find_fio(programs: PathPrograms) -> FioWithLibraries:
    """This machine's fio. EngineError when there is none, or none that a guest could run."""
    path = programs.program_path("fio").resolve()
    with path.open("rb") as content:
        if content.read(len(_ELF)) != _ELF:
            raise EngineError(
                f"fio at {path} is a script or of another machine, which guests cannot run.",
                "Put a compiled fio first on PATH (`apt-get install fio`) and run again.",
            )
    version = await programs.run_program("fio", "--version")
    if version.exit_code:
        raise EngineError(
            f"fio at {path} does not run here ({version.summary_line}).",
            "Reinstall it (`apt-get install --reinstall fio`) and run again.",
        )
    listing = await programs.run_program("ldd", str(path))
    text = listing.stdout.decode("utf-8", "replace")
    if missing := _MISSING.findall(text):
        raise EngineError(
            f"fio at {path} lacks {', '.join(missing)}.",
            "Reinstall it (`apt-get install --reinstall fio`) and run again.",
        )
    libraries = [Path(name) for name in parse_ldd_output(text)]
    return FioWithLibraries(
        path,
        version.stdout.decode("utf-8", "replace").strip(),
        _with_late_loaded_libraries(libraries),
    )


def parse_ldd_output(text: str) -> tuple[str, ...]:
    """The paths that ldd prints, the loader's with them; none of a program without libraries."""
    matches = (_ENTRY.match(line) for line in text.splitlines())
    return tuple(dict.fromkeys(match[2] for match in matches if match))


async def write_tools_image(
    path_programs: PathPrograms, tools: FioWithLibraries, image_path: Path, build_folder: Path
) -> None:
    """Write the disk as an ext4 image, laid out in `build_folder` first.

    OSError when it cannot be.
    """
    root = build_folder / "tools"
    size = await asyncio.to_thread(_copy_tool_files_and_sum_bytes, tools, root)
    blocks = int(size * SPACE_FACTOR + SPARE_BYTES) // BLOCK_BYTES
    features = "^has_journal,^resize_inode,^metadata_csum_seed"
    words = ("-q", "-F", "-t", "ext4", "-O", features, "-b", str(BLOCK_BYTES), "-m", "0")
    fixed = ("-U", IMAGE_UUID, "-E", f"hash_seed={IMAGE_UUID},root_owner=0:0,lazy_itable_init=0")
    ended = await path_programs.run_program(
        "mke2fs", *words, *fixed, "-L", "iolab-tools", "-d", str(root), str(image_path), str(blocks)
    )
    if ended.exit_code:
        raise EngineError(
            f"mke2fs cannot make the guests' disk of tools ({ended.summary_line}).",
            "Correct what it says (it has to know `-d`: e2fsprogs 1.43 or newer) and run again.",
        )


def _with_late_loaded_libraries(libraries: list[Path]) -> tuple[Path, ...]:
    names = {path.name for path in libraries}
    beside = dict.fromkeys(path.parent / LATE_LOADED_LIBRARY for path in libraries)
    late = (
        [path for path in beside if path.is_file()][:1] if LATE_LOADED_LIBRARY not in names else []
    )
    return (*libraries, *late)


def _copy_tool_files_and_sum_bytes(tools: FioWithLibraries, root: Path) -> int:
    """Put everything where a guest looks for it; the bytes of whole blocks that it takes."""
    for folder in FOLDERS:
        (root / folder).mkdir(parents=True, exist_ok=True)
    placed = {FIO_IN_GUEST: tools.fio, **{path: path for path in tools.libraries}}
    if tools.libraries and LINKS_CACHE.is_file():
        placed[LINKS_CACHE] = LINKS_CACHE
    for inside, source in placed.items():
        target = root / inside.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        target.chmod(0o755)
    size = 0
    for path in (root, *root.rglob("*")):
        size += -(-path.stat().st_size // BLOCK_BYTES) * BLOCK_BYTES
        os.utime(path, (0, 0))
    return size
