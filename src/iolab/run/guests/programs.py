"""Programs of this machine that kits of guests are made with, run to their end."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from iolab.errors import EngineError
from iolab.run.broken_off import end_group
from iolab.run.hosts.text import printable_bytes

SYSTEM_PROGRAMS: Final = "/usr/local/sbin:/usr/sbin:/sbin"
"""Where mke2fs lies, and users who are not root do not look."""

PACKAGES: Final = {
    "apt-get": "apt",
    "apt-cache": "apt",
    "dpkg-deb": "dpkg",
    "mke2fs": "e2fsprogs",
    "fio": "fio",
    "ldd": "libc-bin",
    "lz4": "lz4",
    "zstd": "zstd",
}
"""The Debian package with each program."""

ANSWER_LIMIT_S: Final = 60.0
"""For what needs no network: seconds at most, more on a machine with a loaded disk."""

SHOWN: Final = 300
"""Characters of what a program said that go into a sentence."""

_NO_ROOM: Final = b"No space left on device"


@dataclass(frozen=True, slots=True)
class Ran:
    """How a program ended: its exit code, and all that it printed."""

    code: int
    output: bytes
    errors: bytes

    @property
    def says(self) -> str:
        """The line of its errors that tells most, else of what it printed, for a sentence."""
        lines = [line.strip() for line in (self.errors or self.output).splitlines() if line.strip()]
        grave = [line for line in lines if line.startswith((b"E:", b"dpkg-deb: error"))]
        chosen = (grave or lines or [b"it does not say why"])[-1 if not grave else 0]
        return printable_bytes(chosen, SHOWN).rstrip(".")


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs on the environment's PATH, then in `beside`."""

    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    beside: str = SYSTEM_PROGRAMS

    def require(self, *names: str) -> None:
        """EngineError that names all of these that are missing, and what to install."""
        missing = [name for name in names if self._find(name) is None]
        if missing:
            packages = " ".join(sorted({PACKAGES[name] for name in missing}))
            raise EngineError(
                f"Guests are made with {' and '.join(missing)}, which this machine does not have.",
                f"Install what is missing here (`apt-get install {packages}`) and run again.",
            )

    def path_of(self, name: str) -> Path:
        """Where a program lies. EngineError when it is missing."""
        self.require(name)
        return Path(self._find(name) or name)

    async def ran(
        self, name: str, *words: str, cwd: Path | None = None, limit_s: float = ANSWER_LIMIT_S
    ) -> Ran:
        """Run a program to its end, whatever its code.

        EngineError when it is missing, does not start or takes longer than `limit_s`; OSError when
        it says that the disk is full.
        """
        path = self.path_of(name)
        try:
            process = await asyncio.create_subprocess_exec(
                *(str(path), *words),
                cwd=cwd,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
                env={**self.environment, "LC_ALL": "C"},
            )
        except OSError as fault:
            raise EngineError(
                f"{name} at {path} does not start ({fault.strerror}).", _again(name)
            ) from None
        try:
            async with asyncio.timeout(limit_s):
                output, errors = await process.communicate()
        except TimeoutError:
            raise EngineError(
                f"{name} did not end within {limit_s:g} s.",
                "See what holds it up by running it by hand, and run again.",
            ) from None
        finally:
            await end_group(process)
        if process.returncode and _NO_ROOM in errors:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return Ran(process.returncode or 0, output, errors)

    def _find(self, name: str) -> str | None:
        searched = (self.environment.get("PATH", os.defpath), self.beside)
        return shutil.which(name, path=":".join(folders for folders in searched if folders))


def _again(name: str) -> str:
    return f"Install it anew (`apt-get install --reinstall {PACKAGES[name]}`) and run again."
