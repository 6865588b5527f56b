"""The Java of a host, and iolab's own Java tools: built here by Maven, brought to hosts."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
import zipfile
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final

from msgspec import field

from iolab.errors import EngineError
from iolab.hosts.engine import Command
from iolab.hosts.host import Host
from iolab.hosts.kit_cache import (
    DIGEST_SHOWN,
    TOKEN,
    KitCache,
    KitRecipe,
    Notify,
    copy_jars_to_host,
    is_file_visible_on_host,
    kit_cache_folder,
)
from iolab.hosts.process import kill_process_group
from iolab.hosts.remote_process import exit_fault_text, program_name, run_program_or_raise
from iolab.record import Record
from iolab.text import excerpt

INSTALL_JAVA: Final = (
    "Install one there (`apt-get install openjdk-17-jre-headless`), or name its program in "
    "server.java."
)

LIMIT_S: Final = 60.0
"""A Java machine that starts takes half a second, on a host under full load some ten."""

OUTPUT_LIMIT_BYTES: Final = 64 << 10

_JAVA_VERSION: Final = re.compile(
    r'version "(?P<whole>(?P<first>\d{1,4})(?:\.(?P<second>\d{1,4}))?[^"]*)"'
)

BUILD_LIMIT_S: Final = 900.0
"""75 MB are fetched the first time: enough for 1 Mbit/s."""

OFFLINE_LIMIT_S: Final = 120.0
"""Without the network Maven has what it needs or says so within seconds."""

TAIL_BYTES: Final = 64 << 10
"""The end of what Maven prints, where its errors stand."""

ERROR_CHARACTERS_SHOWN: Final = 400
"""Characters of it that go into a sentence."""

LINES_SHOWN: Final = 2
"""The first may say no more than that there was an error."""

INSTALL_MAVEN: Final = (
    "Install it here (`apt-get install maven openjdk-17-jdk-headless`) and run again."
)

_NO_JAVA: Final = re.compile(rb"JAVA_HOME|No compiler is provided|java: (?:command )?not found")
_OLD_JAVA: Final = re.compile(rb"invalid (?:target|source) release|release version \d+ not supp")

_NO_NETWORK: Final = re.compile(
    rb"Could not transfer|Unknown host|UnknownHostException|Connection (?:refused|timed out|reset)"
    rb"|Network is unreachable|Connect timed out|Temporary failure in name resolution"
)

_NO_ARTIFACT: Final = re.compile(rb"Could not find artifact ([\w.:-]{1,200})")
_ESCAPES: Final = re.compile(rb"\x1b\[[0-9;]*m")

YCSB_VERSION: Final = "0.17.0"
"""The newest on Maven Central; the one that the field's numbers are made with."""

_KIT_VERSION: Final = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,4}){1,3}(?:-[A-Za-z0-9]{1,20})?")

_KIT_LAYOUT: Final = b"3"
"""Counts changes of how kits are made that their sources do not show."""

_LIBRARY: Final = re.compile(r"librocksdbjni-.*")

_UNPACKED_LIBRARY: Final = re.compile(r"librocksdbjni-linux(?:64|-aarch64)\.so")
"""Else every process would unpack 13 MB into its temporary folder, on the device to be measured."""

_KEPT_IN_JAR: Final = re.compile(r"librocksdbjni-linux(?:64|-aarch64)-musl\.so")
"""For hosts of another C library, which are rare. All others are for systems without iolab."""

SOURCES: Final = Path(__file__).parents[2] / "_kits"


class JavaInstallation(Record):
    """A Java machine: `release` is 8 for what calls itself 1.8.0, 17 for 17.0.15."""

    program: str
    version: str
    release: int


async def find_java(host: Host, program: str, *, oldest_release: int) -> JavaInstallation:
    """The Java that this program is on the host. EngineError when there is none or it is older.

    HostError when the host fails.
    """
    output = bytearray()
    command = Command(
        (program, "-version"), "/", b"", f"{program} -version", LIMIT_S, OUTPUT_LIMIT_BYTES
    )
    # Java tells its version on standard error, and what calls itself so perhaps elsewhere.
    ending = await run_program_or_raise(
        host,
        command,
        asyncio.Event(),
        output.extend,
        on_stderr=output.extend,
        install_hint=INSTALL_JAVA,
    )
    if fault := exit_fault_text(ending, command):
        raise EngineError(f"{program_name(command)} on host '{host.name}' {fault}.", INSTALL_JAVA)
    java = parse_java_version(program, output.decode("utf-8", "replace"))
    if java is None:
        words = excerpt(output.decode("utf-8", "replace").strip().partition("\n")[0], 100)
        raise EngineError(
            f"{program_name(command)} on host '{host.name}' says no version of Java: {words!r}.",
            INSTALL_JAVA,
        )
    if java.release < oldest_release:
        raise EngineError(
            f"Java {excerpt(java.version, 40)} on host '{host.name}' is too old: "
            f"{oldest_release} or newer is needed.",
            INSTALL_JAVA,
        )
    return java


def parse_java_version(program: str, output: str) -> JavaInstallation | None:
    """The Java that says this of itself under `-version`; None when it says no version."""
    match = _JAVA_VERSION.search(output)
    if match is None:
        return None
    first, second = int(match["first"]), int(match["second"] or 0)
    return JavaInstallation(program, match["whole"], second if first == 1 else first)


class Maven(Record):
    """A Maven: its program, found on the environment's PATH when it has no slash."""

    program: str = "mvn"
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    limit_s: float = BUILD_LIMIT_S

    async def build_package(self, project: Path, properties: Mapping[str, str], title: str) -> None:
        """Build the project in place: from what is here alone, else with the network.

        EngineError when Maven or Java is missing, when something cannot be fetched, when it takes
        too long, and when the project does not build.
        """
        path = shutil.which(self.program, path=self.environment.get("PATH"))
        if path is None:
            raise EngineError(
                f"Maven, which builds {title}, is not on this machine.", INSTALL_MAVEN
            )
        words = [
            *(path, "-B", "-q", "-f", str(project / "pom.xml")),
            *(f"-D{name}={text}" for name, text in properties.items()),
            "package",
        ]
        if (
            await self._run_and_get_failure_output(
                [*words, "-o"], min(OFFLINE_LIMIT_S, self.limit_s), title
            )
            is None
        ):
            return
        output = await self._run_and_get_failure_output(words, self.limit_s, title)
        if output is not None:
            raise _build_error(output, title)

    async def _run_and_get_failure_output(
        self, arguments: list[str], limit_s: float, title: str
    ) -> bytes | None:
        """The end of what a Maven that failed printed; None when it did not fail."""
        try:
            process = await asyncio.create_subprocess_exec(
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
                env=dict(self.environment),
            )
        except OSError as fault:
            raise EngineError(
                f"Maven, which builds {title}, does not start ({fault.strerror}).", INSTALL_MAVEN
            ) from None
        try:
            async with asyncio.timeout(limit_s):
                tail = await _read_output_tail(process)
                code = await process.wait()
        except TimeoutError:
            raise EngineError(
                f"Maven did not build {title} within {limit_s:g} s.",
                "See that this machine reaches Maven Central, and run again.",
            ) from None
        finally:
            await kill_process_group(process)
        return tail if code else None


async def _read_output_tail(process: asyncio.subprocess.Process) -> bytes:
    tail = b""
    while process.stdout and (piece := await process.stdout.read(TAIL_BYTES)):
        tail = (tail + piece)[-TAIL_BYTES:]
    return tail


def _build_error(output: bytes, title: str) -> EngineError:
    """What a failed build means, most telling first."""
    tail = _ESCAPES.sub(b"", output)
    if _NO_JAVA.search(tail) or _OLD_JAVA.search(tail):
        message = (
            f"Maven found no Java compiler here that can build {title}"
            f"{_first_errors_in_parentheses(tail)}."
        )
        return EngineError(message, "Install a JDK (`apt-get install openjdk-17-jdk-headless`).")
    if _NO_NETWORK.search(tail):
        return EngineError(
            f"Maven could not fetch what {title} is built of{_first_errors_in_parentheses(tail)}.",
            "See that this machine reaches Maven Central, if need be by a proxy or mirror in "
            "~/.m2/settings.xml, and run again.",
        )
    if match := _NO_ARTIFACT.search(tail):
        return EngineError(
            f"Maven Central has no {excerpt(match[1], 200)}.",
            "Name a version that exists.",
        )
    return EngineError(
        f"Maven could not build {title}{_first_errors_in_parentheses(tail)}.",
        "Correct the reported fault and run again.",
    )


def _first_errors_in_parentheses(output_tail: bytes) -> str:
    """The first lines of error, in parentheses; nothing without one."""
    errors = [line for line in output_tail.splitlines() if line.startswith(b"[ERROR] ")]
    lines = errors or [line for line in output_tail.splitlines() if line.strip()]
    if not lines:
        return ""
    first = b" ".join(line.removeprefix(b"[ERROR] ").strip() for line in lines[:LINES_SHOWN])
    return f" ({excerpt(first, ERROR_CHARACTERS_SHOWN).rstrip('.')})"


class JavaKitName(StrEnum):
    """What is built."""

    YCSB = "ycsb"
    """YCSB's core with our bindings and their drivers."""
    CASSANDRA = "cassandra"
    """Apache Cassandra."""


_PROPERTY: Final = {JavaKitName.YCSB: "ycsb.version", JavaKitName.CASSANDRA: "cassandra.version"}
_MAIN_JAR: Final = {
    JavaKitName.YCSB: "iolab-ycsb.jar",
    JavaKitName.CASSANDRA: "cassandra-all-{version}.jar",
}


class JavaKitBuilder(Record):
    """Where and how kits are built."""

    cache_folder: Path
    maven: Maven
    sources_folder: Path = SOURCES

    async def get_or_build_kit(self, kit_name: JavaKitName, version: str, notify: Notify) -> Path:
        """The kit's folder, built if it is not there yet. EngineError when it cannot be."""
        if not _KIT_VERSION.fullmatch(version):
            raise EngineError(
                f"{version!r} is not a version of {_TITLES[kit_name]}.", "Write it like 4.0.17."
            )

        async def build_kit_in_folder(build_folder: Path) -> Path:
            return await self._build_kit(kit_name, version, build_folder)

        digest = await asyncio.to_thread(_sources_digest, self.sources_folder / kit_name, version)
        message = f"building {_TITLES[kit_name]} {version} with Maven, once on this machine"
        plan = KitRecipe(
            f"{kit_name}-{version}-{digest[:DIGEST_SHOWN]}", message, build_kit_in_folder
        )
        return await KitCache(self.cache_folder).get_or_build_kit(plan, notify)

    async def _build_kit(self, kit_name: JavaKitName, version: str, build_folder: Path) -> Path:
        project = build_folder / "project"
        await asyncio.to_thread(shutil.copytree, self.sources_folder / kit_name, project)
        await self.maven.build_package(project, {_PROPERTY[kit_name]: version}, _TITLES[kit_name])
        jars = project / "target" / "jars"
        main_jar = jars / _MAIN_JAR[kit_name].format(version=version)
        if not main_jar.is_file():
            raise EngineError(
                f"Maven built {_TITLES[kit_name]} {version} without {main_jar.name}.",
                "Please report it as a fault of iolab.",
            )
        await asyncio.to_thread(_slim_rocksdb_jars, jars)
        return jars


InstallKit = Callable[[Host, JavaKitName, str, str, Notify], Awaitable[tuple[str, ...]]]
"""Brings a kit's jars to a host, as `install_java_kit_jars` does: (host, name, version, folder,
say)."""


def create_java_kit_builder_of_user(environment: Mapping[str, str] | None = None) -> JavaKitBuilder:
    """The one of this user: `$XDG_CACHE_HOME` or `~/.cache`, and the `mvn` on PATH."""
    asked = os.environ if environment is None else environment
    return JavaKitBuilder(kit_cache_folder(asked), Maven(environment=dict(asked)))


async def install_java_kit_jars(
    host: Host,
    kit_name: JavaKitName,
    version: str,
    directory: str,
    notify: Notify,
    *,
    builder: JavaKitBuilder | None = None,
) -> tuple[str, ...]:
    """The absolute paths of all jars of a kit on that host, brought there if need be.

    `directory` is the host's scratch folder, where a copy would lie; `notify` is told of what takes
    long. EngineError when Maven, Java or the network is missing or the build fails, HostError when
    the host does.
    """
    folder = await (builder or create_java_kit_builder_of_user()).get_or_build_kit(
        kit_name, version, notify
    )
    files = sorted((*folder.glob("*.jar"), *folder.glob("*.so")))
    if await is_file_visible_on_host(host, folder / TOKEN):
        paths = tuple(str(path) for path in files)
    else:
        notify(f"copying {_TITLES[kit_name]} {version} to {host.name}")
        paths = await copy_jars_to_host(host, files, f"{directory}/kit-{folder.name}")
    return tuple(path for path in paths if path.endswith(".jar"))


_TITLES: Final = {JavaKitName.YCSB: "YCSB", JavaKitName.CASSANDRA: "Apache Cassandra"}


def _sources_digest(sources_folder: Path, version: str) -> str:
    """Of every source by its name, and of the version."""
    digest = hashlib.sha256(_KIT_LAYOUT + version.encode())
    for path in sorted(path for path in sources_folder.rglob("*") if path.is_file()):
        inside = path.relative_to(sources_folder)
        if "target" not in inside.parts:
            digest.update(f"\0{inside}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _slim_rocksdb_jars(jars: Path) -> None:
    for jar in jars.glob("rocksdbjni-*.jar"):
        _extract_used_and_drop_other_native_libraries(jar)


def _extract_used_and_drop_other_native_libraries(jar: Path) -> None:
    """Put libraries beside the jar, where Java loads them from as they are; drop needless ones."""
    aside = jar.with_suffix(".slim")
    with (
        zipfile.ZipFile(jar) as original,
        zipfile.ZipFile(aside, "w", zipfile.ZIP_DEFLATED) as slim,
    ):
        for entry in original.infolist():
            name = entry.filename
            if _UNPACKED_LIBRARY.fullmatch(name):
                (jar.parent / name).write_bytes(original.read(entry))
            elif _KEPT_IN_JAR.fullmatch(name) or not _LIBRARY.fullmatch(name):
                slim.writestr(entry, original.read(entry))
    aside.replace(jar)
