"""Short commands on a host, run to their end: what they print, or an error that says why not."""

from __future__ import annotations

import asyncio
import hashlib
import os
import posixpath
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from iolab.errors import EngineError
from iolab.hosts.answers import FileAnswer, read_answer
from iolab.hosts.engine import Command
from iolab.hosts.host import AgentRefusal, Host, Message, printable
from iolab.hosts.remote_process import Ending, drive

LIMIT_S: Final = 60.0
"""What is asked in passing is answered at once, from a busy network file system in a minute."""

OUTPUT_LIMIT_BYTES: Final = 1 << 20

LAST_LINES: Final = 3
"""Lines of standard error that an error repeats: the reason stands last."""

FINE: Final = frozenset({0})

INSTALL: Final = "Install it on that host, or name it by its path."
CORRECT: Final = "Correct what it says and run again."

_NOT_STARTED: Final = frozenset({"ENOENT", "EACCES", "ENOEXEC"})
"""How an agent says that there is no such program, or none that can be executed."""


async def told(
    host: Host,
    argv: Sequence[str],
    *,
    cwd: str = "/",
    limit_s: float = LIMIT_S,
    output_limit_bytes: int = OUTPUT_LIMIT_BYTES,
    env: Sequence[tuple[str, str]] = (),
    codes: frozenset[int] = FINE,
    install: str = INSTALL,
) -> bytes:
    """Run a command to its end; its standard output.

    EngineError when it cannot be started (`install` is what to do then), ends with another code
    than `codes`, is killed, takes longer than `limit_s` or prints too much; the end of what it said
    on standard error is part of it. HostError when the host fails.
    """
    words = tuple(argv)
    command = Command(words, cwd, b"", " ".join(words), limit_s, output_limit_bytes, tuple(env))
    printed = bytearray()
    ending = await driven(host, command, asyncio.Event(), printed.extend, install=install)
    if fault := ending_says(ending, command, codes):
        raise EngineError(f"{program_of(command)} on host '{host.name}' {fault}.", CORRECT)
    return bytes(printed)


async def driven(
    host: Host,
    command: Command,
    halt: asyncio.Event,
    on_output: Callable[[bytes], None],
    *,
    on_stderr: Callable[[bytes], None] | None = None,
    install: str = INSTALL,
) -> Ending:
    """`drive` for a program that may be missing: that is an EngineError, `install` what to do."""
    try:
        return await drive(host, command, halt, on_output, on_stderr=on_stderr)
    except AgentRefusal as refused:
        if refused.code not in _NOT_STARTED:
            raise
        name, why = program_of(command), printable(refused.says).rstrip(".")
        raise EngineError(
            f"There is no {name} to run on host '{host.name}': {why}.", install
        ) from None


def program_of(command: Command) -> str:
    """The program's name for people."""
    return printable(posixpath.basename(command.argv[0]), 60)


def ending_says(ending: Ending, command: Command, codes: frozenset[int] = FINE) -> str | None:
    """How a command did not end well, as the second half of a sentence; None when it did."""
    exited = ending.exited
    lines = ending.stderr_tail.replace("\r", "\n").strip().split("\n")[-LAST_LINES:]
    said = printable("; ".join(line for line in lines if line.strip())).rstrip(".")
    because = f" ({said})" if said else ""
    if exited.timed_out:
        return f"did not end within {command.wall_limit_s:g} s, and was killed{because}"
    if exited.signal is not None:
        return f"was killed by signal {exited.signal}{because}"
    if exited.code not in codes:
        return f"ended with exit code {exited.code}{because or ' and said nothing'}"
    if exited.truncated:
        return f"printed more than {command.output_limit_bytes} bytes"
    return None


FETCH_LIMIT_S: Final = 300.0
"""For a file of some MiB over a slow line that others use too."""


async def fetched(host: Host, path: str, max_bytes: int) -> bytes | None:
    """The content of a file; None when there is none.

    It is held against the digest that the agent made while it read. Refusal for a file that is
    larger or cannot be read, HostError when the host fails.
    """
    content = bytearray()
    last: Message | None = None
    stream = host.stream("get", path=path, max_bytes=max_bytes)
    try:
        async with asyncio.timeout(FETCH_LIMIT_S):
            async for last in stream:
                content += last.payload
    except TimeoutError:
        raise host.give_up(f"did not hand over {path} within {FETCH_LIMIT_S:g} s") from None
    except AgentRefusal as refused:
        if refused.code == "ENOENT":
            return None
        raise
    finally:
        await stream.aclose()
    if last is None:
        raise host.give_up("handed over a file without a word")
    if read_answer(host.name, FileAnswer, last).sha256 != hashlib.sha256(content).hexdigest():
        raise host.give_up(f"handed over {path} with another digest than it named")
    return bytes(content)


KILL_LIMIT_S: Final = 5.0
"""For a killed process group to be gone."""


async def end_group(process: asyncio.subprocess.Process) -> None:
    """Kill the group of a process that still runs, and reap it; it leads a session of its own."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(TimeoutError):
            async with asyncio.timeout(KILL_LIMIT_S):
                await process.wait()
