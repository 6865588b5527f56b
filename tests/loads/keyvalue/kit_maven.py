"""A program that stands in for Maven, and a workshop that uses it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from iolab.loads.keyvalue.java import JavaKitBuilder, JavaKitName, Maven

PROGRAM: Final = """#!{python} -IS
import os, pathlib, sys, time, zipfile

words = sys.argv[1:]
here = pathlib.Path(__file__).parent
with (here / "calls").open("a") as calls:
    calls.write(" ".join(words) + chr(10))
says = here / ("offline" if "-o" in words else "online")
if says.exists():
    sys.stdout.buffer.write(says.read_bytes())
    sys.exit(1)
if (here / "hangs").exists():
    (here / "pid.new").write_text(str(os.getpid()))
    (here / "pid.new").rename(here / "pid")
    time.sleep(60)
time.sleep(0.05)
project = pathlib.Path(words[words.index("-f") + 1]).parent
jars = project / "target" / "jars"
jars.mkdir(parents=True)
version = next(word.split("=")[1] for word in words if word.startswith("-D"))
for name in (here / "jars").read_text().split():
    with zipfile.ZipFile(jars / name.format(version=version), "w") as jar:
        for entry in ("org/rocksdb/RocksDB.class", *ENTRIES):
            jar.writestr(entry, entry * 100)
"""

ENTRIES: Final = (
    "librocksdbjni-linux64.so",
    "librocksdbjni-linux-aarch64-musl.so",
    "librocksdbjni-linux-ppc64le.so",
    "librocksdbjni-linux32.so",
    "librocksdbjni-osx-arm64.jnilib",
    "librocksdbjni-win64.dll",
)
YCSB_JARS: Final = "iolab-ycsb.jar core-{version}.jar rocksdbjni-7.8.3.jar"


class Bench:
    """A workshop below `folder`; what its Maven does is told by files beside it."""

    def __init__(self, folder: Path, *, limit_s: float = 20.0) -> None:
        self.tool = folder / "tool"
        self.cache = folder / "cache"
        self.sources = folder / "sources"
        for name in JavaKitName:
            (self.sources / name / "src").mkdir(parents=True)
            (self.sources / name / "pom.xml").write_text("<project/>")
        self.tool.mkdir()
        program = self.tool / "mvn"
        text = PROGRAM.replace("{python}", sys.executable)
        program.write_text(text.replace("ENTRIES", repr(ENTRIES)))
        program.chmod(0o755)
        self.tell("jars", YCSB_JARS)
        maven = Maven("mvn", {"PATH": f"{self.tool}:{os.environ['PATH']}"}, limit_s)
        self.workshop = JavaKitBuilder(self.cache, maven, self.sources)
        self.said: list[str] = []

    def tell(self, name: str, text: str | bytes) -> None:
        """How Maven behaves from now on."""
        content = text if isinstance(text, bytes) else text.encode()
        (self.tool / name).write_bytes(content)

    @property
    def calls(self) -> list[str]:
        """What Maven was requested, call by call."""
        log = self.tool / "calls"
        return log.read_text().splitlines() if log.exists() else []

    @property
    def left(self) -> list[str]:
        """Folders in the cache."""
        return sorted(path.name for path in self.cache.glob("*") if path.is_dir())

    @property
    def hidden(self) -> list[str]:
        """Folders in the cache that are no kits."""
        return sorted(name for name in self.left if name.startswith("."))

    async def folder_of(
        self, name: JavaKitName = JavaKitName.YCSB, version: str = "0.17.0"
    ) -> Path:
        """The kit's folder."""
        return await self.workshop.get_or_build_kit(name, version, self.said.append)
