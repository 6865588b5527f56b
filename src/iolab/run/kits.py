"""Java programs that iolab brings: built once by Maven on this machine, then put where they run.

A kit is a folder of jars in the user's cache, named by what it was made of, so that another version
of iolab has another one. Hosts that see this machine's files use it where it lies; all others get a
copy in their scratch folder, which goes with it.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
import zipfile
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from iolab.errors import EngineError
from iolab.run.hosts.base import Host
from iolab.run.kit_shelf import DIGEST_SHOWN, TOKEN, KitPlan, KitShelf, Say, cache_folder
from iolab.run.kit_transport import brought, seen_by
from iolab.run.maven import Maven


class KitName(StrEnum):
    """What is built."""

    YCSB = "ycsb"
    """YCSB's core with our bindings and their drivers."""
    CASSANDRA = "cassandra"
    """Apache Cassandra."""


YCSB_VERSION: Final = "0.17.0"
"""The newest on Maven Central; the one that the field's numbers are made with."""

SOURCES: Final = Path(__file__).parents[1] / "_kits"

_VERSION: Final = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,4}){1,3}(?:-[A-Za-z0-9]{1,20})?")
_FORM: Final = b"3"
"""Counts changes of how kits are made that their sources do not show."""

_PROPERTY: Final = {KitName.YCSB: "ycsb.version", KitName.CASSANDRA: "cassandra.version"}
_MAIN_JAR: Final = {
    KitName.YCSB: "iolab-ycsb.jar",
    KitName.CASSANDRA: "cassandra-all-{version}.jar",
}
_LIBRARY: Final = re.compile(r"librocksdbjni-.*")
_LAID_OPEN: Final = re.compile(r"librocksdbjni-linux(?:64|-aarch64)\.so")
"""Else every process would unpack 13 MB into its temporary folder, on the device to be measured."""
_KEPT_IN_JAR: Final = re.compile(r"librocksdbjni-linux(?:64|-aarch64)-musl\.so")
"""For hosts of another C library, which are rare. All others are for systems without iolab."""


@dataclass(frozen=True, slots=True)
class Workshop:
    """Where and how kits are built."""

    cache: Path
    maven: Maven
    sources: Path = SOURCES

    async def folder_of(self, name: KitName, version: str, say: Say) -> Path:
        """The kit's folder, built if it is not there yet. EngineError when it cannot be."""
        if not _VERSION.fullmatch(version):
            raise EngineError(
                f"{version!r} is not a version of {_TITLES[name]}.", "Write it like 4.0.17."
            )

        async def make(aside: Path) -> Path:
            return await self._build(name, version, aside)

        digest = await asyncio.to_thread(_digest, self.sources / name, version)
        says = f"building {_TITLES[name]} {version} with Maven, once on this machine"
        plan = KitPlan(f"{name}-{version}-{digest[:DIGEST_SHOWN]}", says, make)
        return await KitShelf(self.cache).kit(plan, say)

    async def _build(self, name: KitName, version: str, aside: Path) -> Path:
        project = aside / "project"
        await asyncio.to_thread(shutil.copytree, self.sources / name, project)
        await self.maven.package(project, {_PROPERTY[name]: version}, _TITLES[name])
        jars = project / "target" / "jars"
        main_jar = jars / _MAIN_JAR[name].format(version=version)
        if not main_jar.is_file():
            raise EngineError(
                f"Maven built {_TITLES[name]} {version} without {main_jar.name}.",
                "Please report it as a fault of iolab.",
            )
        await asyncio.to_thread(_lay_all_open, jars)
        return jars


Kits = Callable[[Host, KitName, str, str, Say], Awaitable[tuple[str, ...]]]
"""Brings a kit's jars to a host, as `kit_on` does: (host, name, version, folder, who is told)."""


def workshop(environment: Mapping[str, str] | None = None) -> Workshop:
    """The one of this user: `$XDG_CACHE_HOME` or `~/.cache`, and the `mvn` on PATH."""
    asked = os.environ if environment is None else environment
    return Workshop(cache_folder(asked), Maven(environment=dict(asked)))


async def kit_on(
    host: Host,
    name: KitName,
    version: str,
    directory: str,
    say: Say,
    *,
    shop: Workshop | None = None,
) -> tuple[str, ...]:
    """The absolute paths of all jars of a kit on that host, brought there if need be.

    `directory` is the host's scratch folder, where a copy would lie; `say` is told of what takes
    long. EngineError when Maven, Java or the network is missing or the build fails, HostError when
    the host does.
    """
    folder = await (shop or workshop()).folder_of(name, version, say)
    files = sorted((*folder.glob("*.jar"), *folder.glob("*.so")))
    if await seen_by(host, folder / TOKEN):
        paths = tuple(str(path) for path in files)
    else:
        say(f"copying {_TITLES[name]} {version} to {host.name}")
        paths = await brought(host, files, f"{directory}/kit-{folder.name}")
    return tuple(path for path in paths if path.endswith(".jar"))


_TITLES: Final = {KitName.YCSB: "YCSB", KitName.CASSANDRA: "Apache Cassandra"}


def _digest(source: Path, version: str) -> str:
    """Of every source by its name, and of the version."""
    found = hashlib.sha256(_FORM + version.encode())
    for path in sorted(path for path in source.rglob("*") if path.is_file()):
        inside = path.relative_to(source)
        if "target" not in inside.parts:
            found.update(f"\0{inside}\0".encode())
            found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def _lay_all_open(jars: Path) -> None:
    for jar in jars.glob("rocksdbjni-*.jar"):
        _lay_open(jar)


def _lay_open(jar: Path) -> None:
    """Put libraries beside the jar, where Java loads them from as they are; drop needless ones."""
    aside = jar.with_suffix(".slim")
    with zipfile.ZipFile(jar) as whole, zipfile.ZipFile(aside, "w", zipfile.ZIP_DEFLATED) as slim:
        for entry in whole.infolist():
            name = entry.filename
            if _LAID_OPEN.fullmatch(name):
                (jar.parent / name).write_bytes(whole.read(entry))
            elif _KEPT_IN_JAR.fullmatch(name) or not _LIBRARY.fullmatch(name):
                slim.writestr(entry, whole.read(entry))
    aside.replace(jar)
