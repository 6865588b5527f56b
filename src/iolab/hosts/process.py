"""Programs of this machine: one run to its end, or one whose standard streams carry the frames."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from iolab.hosts.message import HostCommandError
from iolab.text import excerpt

STDERR_TAIL_BYTES: Final = 4096
"""The end of a carrier's standard error, where the reason of its death stands."""

STDERR_BYTES: Final = 64 << 10
"""At least, of what a program that is run to its end says there."""

STDERR_SHOWN: Final = 300
"""Characters of that which go into a sentence."""

_KLOG_LINE: Final = re.compile(r"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ \S+:\d+\] ")
"""What Go programs of Kubernetes log beside the error that they end with."""

LEASE_END_LIMIT_S: Final = 10.0
"""From the end of an agent's input to its exit: it kills its processes and removes its files."""

TERM_LIMIT_S: Final = 2.0
"""After SIGTERM, before SIGKILL."""

KILL_LIMIT_S: Final = 5.0
"""For a killed process group to be gone."""

LAST_WORDS_S: Final = 2.0
"""How long a broken-off carrier may take to exit, so that its exit code can be told."""


async def start_local_process(
    host_name: str, argv: Sequence[str], environment: Mapping[str, str] | None = None
) -> ProcessLink:
    """Start a carrier in a session of its own, so that a Ctrl-C at the terminal is ours alone.

    It has our environment if none is given. Raises HostCommandError when it cannot be started.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            env=environment,
        )
    except OSError as error:
        raise cannot_start_error(host_name, argv, error) from None
    return ProcessLink(process)


def cannot_start_error(host_name: str, argv: Sequence[str], error: OSError) -> HostCommandError:
    """The error of a host whose command is not there, or cannot be executed."""
    why = f"'{argv[0]}' does not start ({error.strerror})"
    message = f"Host '{host_name}' cannot be reached: {why}."
    return HostCommandError(message, "Correct the host's command in the study.")


class ProcessLink:
    """A running carrier: `ip netns exec`, `ssh`, or the agent itself."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        if not (process.stdin and process.stdout and process.stderr):
            raise ValueError("a link needs all three pipes")
        self._process = process
        self.reader = process.stdout
        self.writer = process.stdin
        self.pid = process.pid
        self._stderr = process.stderr
        self._tail = b""
        self._listening = asyncio.create_task(
            self._collect_stderr_tail(), name="standard error of a host"
        )

    async def exit_reason(self) -> str:
        """How it exited and the end of what it said on standard error."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS_S):
                await asyncio.wait({self._listening})
                await self._process.wait()
        return exit_and_stderr_text(self._process.returncode, self._tail)

    async def wait_for_exit_or_kill(self) -> None:
        """Close its input, wait, then TERM, then KILL to its whole group; reap it."""
        self.writer.close()
        if not await self._wait_for_exit(LEASE_END_LIMIT_S):
            self._send_signal(signal.SIGTERM)
            if not await self._wait_for_exit(TERM_LIMIT_S):
                self._send_signal(signal.SIGKILL)
                await self._wait_for_exit(TERM_LIMIT_S)
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)

    async def _wait_for_exit(self, limit_s: float) -> bool:
        try:
            async with asyncio.timeout(limit_s):
                await self._process.wait()
        except TimeoutError:
            return False
        return True

    def _send_signal(self, number: signal.Signals) -> None:
        if self._process.returncode is not None:
            return  # Its number may be another's by now.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    async def _collect_stderr_tail(self) -> None:
        while piece := await self._stderr.read(STDERR_TAIL_BYTES):
            self._tail = (self._tail + piece)[-STDERR_TAIL_BYTES:]


async def run_local_process(
    argv: Sequence[str],
    *,
    limit_s: float,
    output_bytes: int,
    stdin: bytes | None = None,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> tuple[int, bytes, bytes]:
    """Exit code, output and errors of a program, of each the first bytes; more is read and dropped.

    `stdin` is its whole input. OSError when it cannot be started, TimeoutError when it does not
    end in time; nothing of it is left whatever happens.
    """
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=nothing if stdin is None else pipe,
        stdout=pipe,
        stderr=pipe,
        start_new_session=True,
        env=environment,
        cwd=cwd,
    )
    try:
        async with asyncio.timeout(limit_s):
            _, output, stderr = await asyncio.gather(
                _write_stdin(process.stdin, stdin or b""),
                _read_at_most(process.stdout, output_bytes),
                _read_at_most(process.stderr, max(output_bytes, STDERR_BYTES)),
            )
            return await process.wait(), output, stderr
    finally:
        await kill_process_group(process)


async def kill_process_group(process: asyncio.subprocess.Process) -> None:
    """Kill the group of a process that still runs, and reap it; it leads a session of its own."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(KILL_LIMIT_S):
                await process.wait()


async def _write_stdin(stdin: asyncio.StreamWriter | None, content: bytes) -> None:
    if stdin is None:
        return
    # A program that ends early breaks the pipe; its exit code says why.
    with contextlib.suppress(OSError):
        stdin.write(content)
        await stdin.drain()
    stdin.close()


async def _read_at_most(stream: asyncio.StreamReader | None, max_bytes: int) -> bytes:
    """The first `max_bytes`; the rest is read and dropped, so that nobody waits for a pipe."""
    kept = bytearray()
    while stream and (piece := await stream.read(1 << 16)):
        kept += piece[: max_bytes - len(kept)]
    return bytes(kept)


def exit_and_stderr_text(returncode: int | None, stderr: bytes) -> str:
    """A carrier's end for people, like `exit code 255; Permission denied`."""
    parts = []
    if returncode is not None and returncode < 0:
        parts.append(f"killed by signal {-returncode}")
    elif returncode is not None:
        parts.append(f"exit code {returncode}")
    if words := _last_stderr_lines_text(stderr):
        parts.append(excerpt(words, STDERR_SHOWN))
    return "; ".join(parts)


def _last_stderr_lines_text(stderr: bytes) -> str:
    """The last whole lines that fit into a sentence; log lines of kubectl's only without others."""
    tail = stderr[-STDERR_TAIL_BYTES:].decode("utf-8", "replace")
    lines = [line.strip() for line in tail.splitlines() if line.strip()]
    kept = [line for line in lines if not _KLOG_LINE.match(line)] or lines[-1:]
    while len(kept) > 1 and sum(len(line) + 1 for line in kept) > STDERR_SHOWN:
        kept = kept[1:]
    return "\n".join(kept)
