"""Brings the agent to a host through an argument prefix, and proves that it is the right file.

Plain programs of coreutils or busybox on the other side are enough: `id`, `mkdir`, `stat`, `tee`,
`chmod`, `mv`, `rm` and `sha256sum`. No shell of ours is ever involved.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from iolab.errors import HostError
from iolab.run.hosts.process import STDERR_TAIL_BYTES, ending
from iolab.run.hosts.text import printable_bytes

FOLDER: Final = "/tmp/iolab-agent-{user}"  # noqa: S108 - private and checked before use
"""Where agents are kept on a host: one folder a user, of mode 700, never followed as a link."""

HASH_SHOWN: Final = 16
"""Hex digits of the checksum in the file's name; the whole of it is compared."""

STEP_LIMIT_S: Final = 30.0
"""One small program through the prefix; a login over a slow link takes seconds."""

UPLOAD_LIMIT_S: Final = 120.0
"""The agent is about 2 MB: enough for 200 kbit/s."""

OUTPUT_LIMIT_BYTES: Final = 64 << 10
"""What a step may print; the longest expected answer is one line."""

PLAIN_WORD: Final = re.compile(r"[A-Za-z0-9_./=:@%+-]+")
"""Words that mean the same to every shell: a prefix like ssh hands them to one."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """A host's name and the words that reach it."""

    host: str
    words: tuple[str, ...]

    def argv(self, *plain: str) -> list[str]:
        """The prefix with further words; ValueError for a word that a shell might change."""
        for word in plain:
            if not PLAIN_WORD.fullmatch(word):
                raise ValueError(f"'{word}' is not a plain word")
        return [*self.words, *plain]


async def push(prefix: Prefix, agent: Path) -> str:
    """The agent's path on the host, put there if it is not there yet. Raises HostError."""
    content = await asyncio.to_thread(agent.read_bytes)
    checksum = hashlib.sha256(content).hexdigest()
    folder = await _private_folder(prefix)
    remote = f"{folder}/{checksum[:HASH_SHOWN]}"
    if await _checksum(prefix, remote) == checksum:
        return remote
    # Written aside and renamed: a broken upload or a second session never meets half a file.
    aside = f"{remote}.{os.getpid()}-{os.urandom(4).hex()}"
    await _step(prefix, "tee", aside, given=content, limit_s=UPLOAD_LIMIT_S, keep_output=False)
    await _step(prefix, "chmod", "700", aside)
    found = await _checksum(prefix, aside)
    if found != checksum:
        await _try(prefix, "rm", "-f", aside)
        happened = f"The agent arrived on host '{prefix.host}' with checksum {found or 'unknown'}."
        raise HostError(happened, "See that the host's command passes standard input unchanged.")
    await _step(prefix, "mv", "-f", aside, remote)
    return remote


async def _private_folder(prefix: Prefix) -> str:
    """A folder on the host that is ours alone: somebody else's would let them swap the agent."""
    user = (await _step(prefix, "id", "-u")).strip()
    if not re.fullmatch(r"\d{1,10}", user):
        happened = (
            f"Host '{prefix.host}' answered 'id -u' with '{printable_bytes(user.encode(), 80)}'."
        )
        do = "See that the host's command runs a program there and prints nothing of its own."
        raise HostError(happened, do)
    folder = FOLDER.format(user=user)
    await _try(prefix, "mkdir", "-m", "700", folder)
    found = (await _step(prefix, "stat", "-c", "%u:%a:%F", folder)).strip()
    if found != f"{user}:700:directory":
        happened = (
            f"{folder} on host '{prefix.host}' is not a private directory of user {user} "
            f"('{printable_bytes(found.encode(), 80)}')."
        )
        raise HostError(happened, "Remove it there, and see who made it.")
    return folder


async def _checksum(prefix: Prefix, path: str) -> str | None:
    """The file's sha256 in hex; None where there is no such file."""
    code, output, _ = await _try(prefix, "sha256sum", path)
    match = re.match(r"\\?([0-9a-f]{64})\b", output)
    return match.group(1) if code == 0 and match else None


async def _step(
    prefix: Prefix,
    *words: str,
    given: bytes | None = None,
    limit_s: float = STEP_LIMIT_S,
    keep_output: bool = True,
) -> str:
    """What a program on the host printed; HostError when it fails."""
    code, output, stderr = await _try(
        prefix, *words, given=given, limit_s=limit_s, keep_output=keep_output
    )
    if code != 0:
        happened = f"'{words[0]}' failed on host '{prefix.host}' ({ending(code, stderr)})."
        do = "See that the host's command reaches it without questions, and that the tool is there."
        raise HostError(happened, do)
    return output


async def _try(
    prefix: Prefix,
    *words: str,
    given: bytes | None = None,
    limit_s: float = STEP_LIMIT_S,
    keep_output: bool = True,
) -> tuple[int, str, bytes]:
    """Exit code, output and standard error of a program on the host, within a deadline."""
    process = await _spawn(prefix.host, prefix.argv(*words), given, keep_output=keep_output)
    try:
        async with asyncio.timeout(limit_s):
            _, output, stderr = await asyncio.gather(
                _give(process.stdin, given or b""),
                _keep(process.stdout, OUTPUT_LIMIT_BYTES),
                _keep(process.stderr, STDERR_TAIL_BYTES),
            )
            code = await process.wait()
    except TimeoutError:
        happened = f"'{words[0]}' did not end within {limit_s:g} s on host '{prefix.host}'."
        do = "See that the host's command reaches it without questions."
        raise HostError(happened, do) from None
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return code, output.decode("utf-8", "replace"), stderr


async def _spawn(
    host: str, argv: Sequence[str], given: bytes | None, *, keep_output: bool
) -> asyncio.subprocess.Process:
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    try:
        return await asyncio.create_subprocess_exec(
            *argv,
            stdin=nothing if given is None else pipe,
            stdout=pipe if keep_output else nothing,
            stderr=pipe,
            start_new_session=True,
        )
    except OSError as error:
        happened = (
            f"Host '{host}' cannot be reached: '{argv[0]}' does not start ({error.strerror})."
        )
        raise HostError(happened, "Correct the host's command in the study.") from None


async def _give(stdin: asyncio.StreamWriter | None, content: bytes) -> None:
    if stdin is None:
        return
    # A program that ends early breaks the pipe; its exit code says why.
    with suppress(OSError):
        stdin.write(content)
        await stdin.drain()
    stdin.close()


async def _keep(stream: asyncio.StreamReader | None, limit_bytes: int) -> bytes:
    """The first `limit_bytes` of a stream, all of it read, so that nobody waits for a full pipe."""
    kept = bytearray()
    while stream and (piece := await stream.read(limit_bytes)):
        kept += piece[: limit_bytes - len(kept)]
    return bytes(kept)
