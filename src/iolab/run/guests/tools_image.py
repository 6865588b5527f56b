"""The read-only disk with what a guest runs: this machine's fio, its libraries, and no more.

The same fio as on any other host of the study, with its engines, instead of one built for guests.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from iolab.errors import EngineError
from iolab.run.guests.programs import Programs

FIO_IN_GUEST: Final = Path("/usr/bin/fio")

FOLDERS: Final = ("dev", "proc", "sys", "tmp", "run", "root", "etc", "usr/bin")
"""Where a guest mounts what the kernel gives it; the disk itself cannot be written."""

LOADED_LATE: Final = "libgcc_s.so.1"
"""The C library opens it when a thread ends; no program names it."""

LINKS_CACHE: Final = Path("/etc/ld.so.cache")
"""Where the loader finds libraries outside its usual folders."""

ISSUED: Final = "1e6a72a8-5a0b-4d6c-9a55-2f0d2c7f1c01"
"""The file system's id and the seed of its directories: the same for all, as its times are."""

BLOCK_BYTES: Final = 4096
SPARE: Final = 1.04
SPARE_BYTES: Final = 4 << 20
"""For the tables of a file system of that size."""

_ENTRY: Final = re.compile(r"\s*(?:(\S+) => )?(/\S+) \(0x[0-9a-f]+\)")
_MISSING: Final = re.compile(r"(\S+) => not found")
_ELF: Final = b"\x7fELF\2"


@dataclass(frozen=True, slots=True)
class Tools:
    """A fio and every library that it loads, by their paths on this machine."""

    fio: Path
    version: str
    libraries: tuple[Path, ...]

    def digest(self) -> str:
        """Which files these are, by path, size and time of change."""
        found = hashlib.sha256(self.version.encode())
        for path in (self.fio, *self.libraries):
            state = path.stat()
            found.update(f"\0{path}\0{state.st_size}\0{state.st_mtime_ns}".encode())
        return found.hexdigest()


async def tools_of(programs: Programs) -> Tools:
    """This machine's fio. EngineError when there is none, or none that a guest could run."""
    path = programs.path_of("fio").resolve()
    with path.open("rb") as content:
        if content.read(len(_ELF)) != _ELF:
            raise EngineError(
                f"fio at {path} is a script or of another machine, which guests cannot run.",
                "Put a compiled fio first on PATH (`apt-get install fio`) and run again.",
            )
    version = await programs.ran("fio", "--version")
    if version.code:
        raise EngineError(
            f"fio at {path} does not run here ({version.says}).",
            "Install it anew (`apt-get install --reinstall fio`) and run again.",
        )
    listing = await programs.ran("ldd", str(path))
    text = listing.output.decode("utf-8", "replace")
    if missing := _MISSING.findall(text):
        raise EngineError(
            f"fio at {path} lacks {', '.join(missing)}.",
            "Install it anew (`apt-get install --reinstall fio`) and run again.",
        )
    libraries = [Path(name) for name in libraries_of(text)]
    return Tools(path, version.output.decode("utf-8", "replace").strip(), _with_late(libraries))


def libraries_of(text: str) -> tuple[str, ...]:
    """The paths that ldd prints, the loader's with them; none of a program without libraries."""
    found = (_ENTRY.match(line) for line in text.splitlines())
    return tuple(dict.fromkeys(match[2] for match in found if match))


async def write_tools(programs: Programs, tools: Tools, image: Path, aside: Path) -> None:
    """Write the disk as an ext4 image, laid out in `aside` first. OSError when it cannot be."""
    root = aside / "tools"
    size = await asyncio.to_thread(_lay_out, tools, root)
    blocks = int(size * SPARE + SPARE_BYTES) // BLOCK_BYTES
    features = "^has_journal,^resize_inode,^metadata_csum_seed"
    words = ("-q", "-F", "-t", "ext4", "-O", features, "-b", str(BLOCK_BYTES), "-m", "0")
    fixed = ("-U", ISSUED, "-E", f"hash_seed={ISSUED},root_owner=0:0,lazy_itable_init=0")
    ran = await programs.ran(
        "mke2fs", *words, *fixed, "-L", "iolab-tools", "-d", str(root), str(image), str(blocks)
    )
    if ran.code:
        raise EngineError(
            f"mke2fs cannot make the guests' disk of tools ({ran.says}).",
            "Correct what it says (it has to know `-d`: e2fsprogs 1.43 or newer) and run again.",
        )


def _with_late(libraries: list[Path]) -> tuple[Path, ...]:
    names = {path.name for path in libraries}
    beside = dict.fromkeys(path.parent / LOADED_LATE for path in libraries)
    late = [path for path in beside if path.is_file()][:1] if LOADED_LATE not in names else []
    return (*libraries, *late)


def _lay_out(tools: Tools, root: Path) -> int:
    """Put everything where a guest looks for it; the bytes of whole blocks that it takes."""
    for folder in FOLDERS:
        (root / folder).mkdir(parents=True, exist_ok=True)
    placed = {FIO_IN_GUEST: tools.fio, **{path: path for path in tools.libraries}}
    if tools.libraries and LINKS_CACHE.is_file():
        placed[LINKS_CACHE] = LINKS_CACHE
    for there, here in placed.items():
        target = root / there.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(here, target)
        target.chmod(0o755)
    size = 0
    for path in (root, *root.rglob("*")):
        size += -(-path.stat().st_size // BLOCK_BYTES) * BLOCK_BYTES
        os.utime(path, (0, 0))
    return size
