"""Programs on a host behind an argument prefix, each a subprocess with a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from iolab.hosts.host import ReachError
from iolab.hosts.process import STDERR_TAIL_BYTES
from iolab.hosts.processes import end_group
from iolab.hosts.push import OUTPUT_LIMIT_BYTES, PLAIN_WORD, STEP_LIMIT_S, RemoteExit


@dataclass(frozen=True, slots=True)
class Prefix:
    """A host's name and the words that reach it, started in our environment if none is given."""

    host: str
    words: tuple[str, ...]
    environment: Mapping[str, str] | None = None

    def argv(self, *plain: str) -> list[str]:
        """The prefix with further words; ValueError for a word that a shell might change."""
        for word in plain:
            if not PLAIN_WORD.fullmatch(word):
                raise ValueError(f"'{word}' is not a plain word")
        return [*self.words, *plain]

    async def run(
        self,
        *words: str,
        given: bytes | None = None,
        limit_s: float = STEP_LIMIT_S,
        keep_output: bool = True,
    ) -> RemoteExit:
        """Exit code, output and standard error of a program on the host, within a deadline."""
        process = await _spawn(self, words, given, keep_output=keep_output)
        try:
            async with asyncio.timeout(limit_s):
                _, output, stderr = await asyncio.gather(
                    _give(process.stdin, given or b""),
                    _keep(process.stdout, OUTPUT_LIMIT_BYTES),
                    _keep(process.stderr, STDERR_TAIL_BYTES),
                )
                code = await process.wait()
        except TimeoutError:
            happened = f"'{words[0]}' did not end within {limit_s:g} s on host '{self.host}'."
            do = "See that the host's command reaches it without questions."
            raise ReachError(happened, do) from None
        finally:
            await end_group(process)
        return RemoteExit(code, output.decode("utf-8", "replace"), stderr)


async def _spawn(
    prefix: Prefix, words: tuple[str, ...], given: bytes | None, *, keep_output: bool
) -> asyncio.subprocess.Process:
    argv = prefix.argv(*words)
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    try:
        return await asyncio.create_subprocess_exec(
            *argv,
            stdin=nothing if given is None else pipe,
            stdout=pipe if keep_output else nothing,
            stderr=pipe,
            start_new_session=True,
            env=prefix.environment,
        )
    except OSError as error:
        why = f"'{argv[0]}' does not start ({error.strerror})"
        happened = f"Host '{prefix.host}' cannot be reached: {why}."
        raise ReachError(happened, "Correct the host's command in the study.") from None


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
