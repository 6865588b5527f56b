"""The Java of a host: which version its program is, or an error that says what to do."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import Final

from iolab.errors import EngineError
from iolab.run.engines.base import Command
from iolab.run.hosts.base import Host
from iolab.run.hosts.text import printable
from iolab.run.key_value.processes import driven, ending_says, program_of

INSTALL: Final = (
    "Install one there (`apt-get install openjdk-17-jre-headless`), or name its program in "
    "server.java."
)

LIMIT_S: Final = 60.0
"""A Java machine that starts takes half a second, on a host under full load some ten."""

OUTPUT_LIMIT_BYTES: Final = 64 << 10

_VERSION: Final = re.compile(
    r'version "(?P<whole>(?P<first>\d{1,4})(?:\.(?P<second>\d{1,4}))?[^"]*)"'
)


@dataclass(frozen=True, slots=True)
class Java:
    """A Java machine: `release` is 8 for what calls itself 1.8.0, 17 for 17.0.15."""

    program: str
    version: str
    release: int


async def java_on(host: Host, program: str, *, oldest: int) -> Java:
    """The Java that this program is on the host. EngineError when there is none or it is older.

    HostError when the host fails.
    """
    said = bytearray()
    command = Command(
        (program, "-version"), "/", b"", f"{program} -version", LIMIT_S, OUTPUT_LIMIT_BYTES
    )
    # Java tells its version on standard error, and what calls itself so perhaps elsewhere.
    ending = await driven(
        host, command, asyncio.Event(), said.extend, on_stderr=said.extend, install=INSTALL
    )
    if fault := ending_says(ending, command):
        raise EngineError(f"{program_of(command)} on host '{host.name}' {fault}.", INSTALL)
    java = java_of(program, said.decode("utf-8", "replace"))
    if java is None:
        words = printable(said.decode("utf-8", "replace").strip().partition("\n")[0], 100)
        raise EngineError(
            f"{program_of(command)} on host '{host.name}' says no version of Java: {words!r}.",
            INSTALL,
        )
    if java.release < oldest:
        raise EngineError(
            f"Java {printable(java.version, 40)} on host '{host.name}' is too old: "
            f"{oldest} or newer is needed.",
            INSTALL,
        )
    return java


def java_of(program: str, said: str) -> Java | None:
    """The Java that says this of itself under `-version`; None when it says no version."""
    found = _VERSION.search(said)
    if found is None:
        return None
    first, second = int(found["first"]), int(found["second"] or 0)
    return Java(program, found["whole"], second if first == 1 else first)
