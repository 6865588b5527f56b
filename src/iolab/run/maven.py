"""Maven on this machine: one project packaged, with an error that says what to do."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from iolab.errors import EngineError
from iolab.run.broken_off import end_group
from iolab.run.hosts.text import printable_bytes

BUILD_LIMIT_S: Final = 900.0
"""75 MB are fetched the first time: enough for 1 Mbit/s."""

OFFLINE_LIMIT_S: Final = 120.0
"""Without the network Maven has what it needs or says so within seconds."""

TAIL_BYTES: Final = 64 << 10
"""The end of what Maven prints, where its errors stand."""

SHOWN: Final = 400
"""Characters of it that go into a sentence."""

LINES_SHOWN: Final = 2
"""The first may say no more than that there was an error."""

INSTALL: Final = "Install it here (`apt-get install maven openjdk-17-jdk-headless`) and run again."


@dataclass(frozen=True, slots=True)
class Maven:
    """A Maven: its program, found on the environment's PATH when it has no slash."""

    program: str = "mvn"
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    limit_s: float = BUILD_LIMIT_S

    async def package(self, project: Path, properties: Mapping[str, str], title: str) -> None:
        """Build the project in place: from what is here alone, else with the network.

        EngineError when Maven or Java is missing, when something cannot be fetched, when it takes
        too long, and when the project does not build.
        """
        path = shutil.which(self.program, path=self.environment.get("PATH"))
        if path is None:
            raise EngineError(f"Maven, which builds {title}, is not on this machine.", INSTALL)
        words = [
            *(path, "-B", "-q", "-f", str(project / "pom.xml")),
            *(f"-D{name}={text}" for name, text in properties.items()),
            "package",
        ]
        if await self._said([*words, "-o"], min(OFFLINE_LIMIT_S, self.limit_s), title) is None:
            return
        said = await self._said(words, self.limit_s, title)
        if said is not None:
            raise _fault(said, title)

    async def _said(self, words: list[str], limit_s: float, title: str) -> bytes | None:
        """The end of what a Maven that failed printed; None when it did not fail."""
        try:
            process = await asyncio.create_subprocess_exec(
                *words,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
                env=dict(self.environment),
            )
        except OSError as fault:
            raise EngineError(
                f"Maven, which builds {title}, does not start ({fault.strerror}).", INSTALL
            ) from None
        try:
            async with asyncio.timeout(limit_s):
                tail = await _tail(process)
                code = await process.wait()
        except TimeoutError:
            raise EngineError(
                f"Maven did not build {title} within {limit_s:g} s.",
                "See that this machine reaches Maven Central, and run again.",
            ) from None
        finally:
            await end_group(process)
        return tail if code else None


async def _tail(process: asyncio.subprocess.Process) -> bytes:
    tail = b""
    while process.stdout and (piece := await process.stdout.read(TAIL_BYTES)):
        tail = (tail + piece)[-TAIL_BYTES:]
    return tail


_NO_JAVA: Final = re.compile(rb"JAVA_HOME|No compiler is provided|java: (?:command )?not found")
_OLD_JAVA: Final = re.compile(rb"invalid (?:target|source) release|release version \d+ not supp")
_NO_NETWORK: Final = re.compile(
    rb"Could not transfer|Unknown host|UnknownHostException|Connection (?:refused|timed out|reset)"
    rb"|Network is unreachable|Connect timed out|Temporary failure in name resolution"
)
_NO_ARTIFACT: Final = re.compile(rb"Could not find artifact ([\w.:-]{1,200})")
_ESCAPES: Final = re.compile(rb"\x1b\[[0-9;]*m")


def _fault(said: bytes, title: str) -> EngineError:
    """What a failed build means, most telling first."""
    tail = _ESCAPES.sub(b"", said)
    if _NO_JAVA.search(tail) or _OLD_JAVA.search(tail):
        happened = f"Maven found no Java compiler here that can build {title}{_shown(tail)}."
        return EngineError(happened, "Install a JDK (`apt-get install openjdk-17-jdk-headless`).")
    if _NO_NETWORK.search(tail):
        return EngineError(
            f"Maven could not fetch what {title} is built of{_shown(tail)}.",
            "See that this machine reaches Maven Central, if need be by a proxy or mirror in "
            "~/.m2/settings.xml, and run again.",
        )
    if match := _NO_ARTIFACT.search(tail):
        return EngineError(
            f"Maven Central has no {printable_bytes(match[1], 200)}.",
            "Name a version that exists.",
        )
    return EngineError(
        f"Maven could not build {title}{_shown(tail)}.", "Correct what it says and run again."
    )


def _shown(tail: bytes) -> str:
    """The first lines of error, in parentheses; nothing without one."""
    errors = [line for line in tail.splitlines() if line.startswith(b"[ERROR] ")]
    lines = errors or [line for line in tail.splitlines() if line.strip()]
    if not lines:
        return ""
    first = b" ".join(line.removeprefix(b"[ERROR] ").strip() for line in lines[:LINES_SHOWN])
    return f" ({printable_bytes(first, SHOWN).rstrip('.')})"
