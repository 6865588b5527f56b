"""Programs that stand in for apt, dpkg and others, and a shop that makes kits with them."""

from __future__ import annotations

import asyncio
import shutil
import sys
from pathlib import Path
from typing import Final

from iolab.guests.kit.build import GuestKit, KitBuildEnvironment, build_guest_kit
from iolab.guests.kit.debian import AptKernelSource, PathPrograms
from iolab.guests.kit.image import KernelCompression
from tests.guests.kernels import bz_image, elf_kernel, module, packed

RELEASE: Final = "6.1.0-9-cloud-amd64"
PACKAGE: Final = f"linux-image-{RELEASE}"
META: Final = f"""Package: linux-image-cloud-amd64
Version: 6.1.5-1
Depends: {PACKAGE} (= 6.1.5-1)
"""
ALONE: Final = f"Package: {PACKAGE}\nVersion: 6.1.5-1\nDepends: kmod, linux-base\n"
APART: Final = ALONE.replace("kmod", f"linux-modules-{RELEASE}")

BEGIN: Final = """#!{python} -IS
import os, pathlib, shutil, sys, time

name, *words = pathlib.Path(sys.argv[0]).name, *sys.argv[1:]
here = pathlib.Path(__file__).parent.parent / "told"
with (here / "calls").open("a") as calls:
    calls.write(" ".join([name, *words]) + chr(10))
lists = next((pathlib.Path(word.split("=")[1]) for word in words if "lists=" in word), None)
ours = lists is not None and (lists / "fetched").exists()

def told(what):
    path = here / what
    return path.read_text() if path.exists() else None

def fail(text, code=100):
    sys.stderr.write(text)
    sys.exit(code)

if (text := told(name + " fails")) is not None:
    fail(text)
if told(name + " hangs") is not None:
    (here / "pid").write_text(str(os.getpid()))
    time.sleep(60)
"""

PROGRAMS: Final = {
    "apt-cache": """
if told("system knows") is not None or ours:
    wanted = "meta" if "linux-image-cloud-amd64" in words else "image"
    print(told(wanted))
else:
    print("E: No packages found", file=sys.stderr)
""",
    "apt-get": """
if words[-1] == "update":
    if told("offline") is not None:
        fail("W: Failed to fetch x  Temporary failure resolving 'mirror'\\n", 0)
    (lists / "fetched").touch()
else:
    if told("offline") is not None or (told("gone") is not None and not ours):
        fail("W: a\\nE: Failed to fetch http://mirror/x.deb  404  Not Found\\nE: No more\\n")
    for package in words[words.index("download") + 1:]:
        pathlib.Path(f"{package}_6.1.5-1_amd64.deb").write_text(package)
""",
    "dpkg-deb": """
if words[0] == "-f":
    print("Package: linux-image-my-own" + chr(10) + "Version: 7")
elif "modules" not in pathlib.Path(words[1]).name:
    shutil.copytree(here / "tree", words[2], dirs_exist_ok=True)
else:
    (pathlib.Path(words[2]) / "apart").touch()
""",
    "mke2fs": """
root = pathlib.Path(words[words.index("-d") + 1])
files = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
pathlib.Path(words[-2]).write_text(chr(10).join(files))
""",
    "ldd": """
print(told("libraries"))
""",
    "lz4": """
pathlib.Path(words[-1]).write_bytes(pathlib.Path(words[-2]).read_bytes()[4:])
""",
    "zstd": """
pathlib.Path(words[-1]).write_bytes(pathlib.Path(words[-3]).read_bytes()[4:])
""",
}

MODULES: Final = {
    "virtio/virtio.ko": module("virtio_ring"),
    "virtio/virtio_ring.ko": module(),
    "block/virtio_blk.ko": module("virtio", "virtio_ring"),
    "char/virtio_console.ko": module("virtio"),
}
FIO: Final = shutil.which("true") or "true"
"""What stands in for fio has to be a compiled program too."""


class KitBench:
    """A shop below `folder`, laid out if it is new; files tell its programs what to do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.told = folder / "told"
        self.cache = folder / "cache"
        self.agent = folder / "agent"
        self.library = folder / "libaio.so.1"
        self.said: list[str] = []
        if not self.bin.exists():
            self._lay_out()

    def tell(self, name: str, text: str) -> None:
        """How a program behaves from now on."""
        (self.told / name).write_text(text)

    def untell(self, name: str) -> None:
        (self.told / name).unlink()

    def remove(self, program: str) -> None:
        (self.bin / program).unlink()

    def put_kernel(self, image: bytes) -> None:
        boot = self.told / "tree" / "boot"
        boot.mkdir(parents=True, exist_ok=True)
        (boot / f"vmlinuz-{RELEASE}").write_bytes(image)

    def put_module(self, name: str, content: bytes) -> None:
        path = self.told / "tree" / "lib/modules" / RELEASE / "kernel/drivers" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def remove_module(self, name: str) -> None:
        (self.told / "tree" / "lib/modules" / RELEASE / "kernel/drivers" / name).unlink()

    @property
    def shop(self) -> KitBuildEnvironment:
        programs = PathPrograms({"PATH": str(self.bin)}, extra_directories="")
        apt = AptKernelSource(programs, self.folder / "apt", self.folder / "system-lists")
        return KitBuildEnvironment(self.cache, programs, apt, self.agent)

    def kit(self, package: str = "") -> GuestKit:
        """The kit, made if need be."""
        return asyncio.run(
            build_guest_kit(self.said.append, package=package, build_environment=self.shop)
        )

    @property
    def calls(self) -> list[str]:
        """The programs that were run, call by call, by their names."""
        log = self.told / "calls"
        return log.read_text().splitlines() if log.exists() else []

    def count(self, program: str, word: str) -> int:
        """How often a program was run with that word."""
        return sum(f" {word}" in call for call in self.calls if call.startswith(program))

    def _lay_out(self) -> None:
        self.bin.mkdir()
        self.told.mkdir()
        self.agent.write_bytes(b"\x7fELF the agent")
        for name, program in PROGRAMS.items():
            path = self.bin / name
            path.write_text(BEGIN.replace("{python}", sys.executable) + program)
            path.chmod(0o755)
        shutil.copy(FIO, self.bin / "fio")
        self.tell("system knows", "")
        self.tell("meta", META)
        self.tell("image", ALONE)
        self.library.write_bytes(b"a library")
        self.tell("libraries", f"\tlibaio.so.1 => {self.library} (0x00007f)\n")
        self.put_kernel(bz_image(packed(KernelCompression.GZIP, elf_kernel())))
        for name, content in MODULES.items():
            self.put_module(name, content)

    @property
    def left(self) -> list[str]:
        """Folders in the cache."""
        return sorted(path.name for path in self.cache.glob("*") if path.is_dir())
