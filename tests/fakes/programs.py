"""Other programs than fio on a fake host: what they do to its files, and what they print.

Files are a dict of contents by path; a folder is there as long as a file is in it.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from tests.fakes.process import Machine, comes_within

PIECE_BYTES: Final = 3000
"""Output comes in pieces that cut lines anywhere."""

_DESCRIPTORS: Final = count(9)
"""Of files that agents have open."""


class FakeKill(Exception):
    """The program is killed from outside by that signal."""

    def __init__(self, signal: str) -> None:
        super().__init__(signal)
        self.signal = signal


@dataclass(frozen=True, slots=True)
class FakeCall:
    """One start of a program, as it sees it: its words, the host's files, and its streams."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    files: dict[str, bytes]
    machine: Machine
    request_id: int
    stdin: bytes = b""

    @property
    def flags(self) -> dict[str, str]:
        """The words of the form `--name=value`."""
        named = (word[2:].partition("=") for word in self.argv if word.startswith("--"))
        return {name: value for name, _, value in named}

    def say(self, output: bytes, stream: str = "stdout") -> None:
        """Print."""
        for start in range(0, len(output), PIECE_BYTES):
            message = {"is": "output", "stream": stream}
            self.machine.tell(self.request_id, message, output[start : start + PIECE_BYTES])

    def inside(self, folder: str) -> dict[str, bytes]:
        """The files in a folder and below it, by what follows its path."""
        prefix = f"{folder.rstrip('/')}/"
        return {
            path.removeprefix(prefix): content
            for path, content in self.files.items()
            if path.startswith(prefix)
        }


async def opened_ledger(_agent: object, _: object) -> dict[str, Any]:
    """A file for a ledger, another one at each request."""
    return {"is": "ledger", "path": f"/proc/4242/fd/{next(_DESCRIPTORS)}"}


FakeProgram = Callable[[FakeCall], Awaitable[int]]
"""Does its work and gives its exit code, or raises FakeKill."""


class FakeRun:
    """A program from its start to its end; `strike` is how signals reach it: all of them end it."""

    def __init__(self, call: FakeCall, program: FakeProgram) -> None:
        self._call = call
        self._program = program
        self._struck = asyncio.Event()
        self._signal = ""

    def strike(self, signal: str) -> None:
        """A signal arrives."""
        self._signal = signal
        self._struck.set()

    async def live(self, start_real_ns: int) -> tuple[int | None, str]:
        """The exit code, or None and the signal's name."""
        machine, call = self._call.machine, self._call
        if await comes_within(self._struck, (start_real_ns - machine.real_ns()) / 1e9):
            return None, self._signal
        started: dict[str, Any] = {"is": "started", "pid": 78, "real_ns": machine.real_ns()}
        machine.tell(call.request_id, started)
        work = asyncio.ensure_future(self._program(call))
        struck = asyncio.ensure_future(self._struck.wait())
        try:
            await asyncio.wait({work, struck}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                return None, self._signal
            return work.result(), ""
        except FakeKill as killed:
            return None, killed.signal
        finally:
            work.cancel()
            struck.cancel()
            await asyncio.gather(work, struck, return_exceptions=True)


def coreutils(*, reflinks: bool = True) -> dict[str, FakeProgram]:
    """mkdir, rm, cp and find, as far as sessions use them; `reflinks` is what cp can do there."""

    async def make(_: FakeCall) -> int:
        return 0

    async def remove(call: FakeCall) -> int:
        remove_inside(call.files, call.argv[-1])
        return 0

    async def copy(call: FakeCall) -> int:
        source, to = call.argv[-2:]
        found = call.inside(source)
        if not found:
            call.say(f"cp: cannot stat '{source}': No such file or directory\n".encode(), "stderr")
            return 1
        if call.flags["reflink"] == "always" and not reflinks:
            call.say(b"cp: failed to clone: Operation not supported\n", "stderr")
            return 1
        call.files.update({f"{to}/{name}": content for name, content in found.items()})
        return 0

    async def find(call: FakeCall) -> int:
        folder = call.argv[1]
        for name, content in call.inside(folder).items():
            call.say(f"{len(content)} {folder}/{name}\0".encode())
        return 0

    return {"mkdir": make, "rm": remove, "cp": copy, "find": find}


def remove_inside(files: dict[str, Any], folder: str) -> None:
    """Remove the files in a folder and below it."""
    for path in [path for path in files if path.startswith(f"{folder}/")]:
        del files[path]


def moved(content: bytes) -> dict[str, Any]:
    """The final message of a file that was taken or given."""
    digest = hashlib.sha256(content).hexdigest()
    return {"is": "done", "size": len(content), "sha256": digest}
