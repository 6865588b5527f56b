"""One engine process on one host: started at its time, listened to, halted, never left behind."""

from __future__ import annotations

import asyncio
import hashlib
import posixpath
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

from iolab.errors import EngineError, HostError
from iolab.hosts.answers import ExitedAnswer, FileAnswer, read_answer
from iolab.hosts.engine import Command
from iolab.hosts.host import Host
from iolab.hosts.message import AgentRefusalError, Message, ReplyStream
from iolab.record import Record
from iolab.text import excerpt

FINAL_WORD_LIMIT_S: Final = 15.0
"""From the engine's SIGINT to its end: it waits for I/O in flight and prints its last report."""

KILL_LIMIT_S: Final = 5.0
"""For the agent to take a signal."""

OVERDUE_S: Final = 30.0
"""Past the wall limit, by which the agent kills: a process that outlives SIGKILL hangs in I/O."""

HALT_TRIES: Final = 50
HALT_RETRY_S: Final = 0.1
"""A signal may overtake the request to run; it is refused then, and tried anew for five seconds."""

STDERR_TAIL_BYTES: Final = 4096
"""What is kept of the engine's standard error: its end, where the reason stands."""

LIMIT_S: Final = 60.0
"""What is asked in passing is answered at once, from a busy network file system in a minute."""

OUTPUT_LIMIT_BYTES: Final = 1 << 20

LAST_LINES: Final = 3
"""Lines of standard error that an error repeats: the reason stands last."""

SUCCESS_CODES: Final = frozenset({0})
INSTALL_HINT: Final = "Install it on that host, or name it by its path."
CORRECT_HINT: Final = "Correct the reported fault and run again."

_NOT_STARTED: Final = frozenset({"ENOENT", "EACCES", "ENOEXEC"})
"""How an agent says that there is no such program, or none that can be executed."""

FETCH_LIMIT_S: Final = 300.0
"""For a file of some MiB over a slow line that others use too."""


class ProcessEnding(Record):
    """How the engine's process ended; `was_halted` when we asked it to."""

    exited: ExitedAnswer
    stderr_tail: str
    was_halted: bool


async def run_process(
    host: Host,
    command: Command,
    halt: asyncio.Event,
    on_output: Callable[[bytes], object],
    *,
    start_at_real_ns: int | None = None,
    lead_s: float = 0.0,
    on_stderr: Callable[[bytes], object] | None = None,
    on_request_id: Callable[[int], object] | None = None,
    does_watch_processor: bool = False,
) -> ProcessEnding:
    """Run a command to its end. Raises HostError; leaves no process whatever happens.

    `halt` sends SIGINT and later SIGKILL. `start_at_real_ns` is the host's own clock, about
    `lead_s` from now. Standard output goes to `on_output` as it comes, standard error, whose end is
    kept in any case, to `on_stderr`; `on_request_id` gets the id by which the agent knows the run.
    With `does_watch_processor` the end tells what its threads got of the processors.
    """
    stream = start_remote_process(
        host, command, start_at_real_ns, does_watch_processor=does_watch_processor
    )
    if on_request_id is not None:
        on_request_id(stream.id)
    late = f"did not end '{command.argv[0]}' within {command.wall_limit_s:g} s, nor killed it"
    async with stop_process_on_event(
        host, stream, halt, lead_s + command.wall_limit_s + OVERDUE_S, late
    ):
        final, stderr = await _collect_output(stream, on_output, on_stderr)
    exited = read_answer(host.name, ExitedAnswer, final)
    return ProcessEnding(exited, stderr.decode("utf-8", "replace"), halt.is_set())


def start_remote_process(
    host: Host,
    command: Command,
    start_at_real_ns: int | None = None,
    *,
    does_watch_processor: bool = False,
) -> ReplyStream:
    """Ask for a process; what its host tells of it, which must be read to its end or closed."""
    return host.stream(
        "run",
        command.stdin,
        argv=list(command.argv),
        env=dict(command.env),
        cwd=command.cwd,
        start_at_real_ns=start_at_real_ns,
        wall_limit_s=command.wall_limit_s,
        output_limit_bytes=command.output_limit_bytes,
        **_arguments_of_limits(command),
        **_arguments_of_start(command),
        **({"watch_processor": True} if does_watch_processor else {}),
    )


@asynccontextmanager
async def stop_process_on_event(
    host: Host, stream: ReplyStream, halt: asyncio.Event, limit_s: float, overdue_text: str
) -> AsyncIterator[None]:
    """Listen to a load's stream inside: `halt` stops the load, and nothing of it outlives this.

    A host on which it goes on for more than `limit_s` is given up; `overdue_text` says what it
    did not do.
    """
    halting = asyncio.create_task(
        _signal_process_on_halt(host, stream.id, halt), name=f"halt on {host.name}"
    )
    ended = False
    try:
        async with asyncio.timeout(limit_s):
            yield
        ended = True
    except TimeoutError:
        raise host.end_as_lost(overdue_text) from None
    finally:
        halting.cancel()
        await asyncio.gather(halting, return_exceptions=True)
        await stream.aclose()
        if not ended and not host.lost_reason:
            await _try_signal_run(host, stream.id, "KILL")


def _arguments_of_limits(command: Command) -> dict[str, object]:
    """The bounds that there are: an agent need not know of what is not asked."""
    memory, io = command.memory_limit_bytes, command.io_limit
    return {
        **({} if memory is None else {"memory_limit_bytes": memory}),
        **({} if io is None else {"io_limit": io.arguments}),
    }


def _arguments_of_start(command: Command) -> dict[str, bool]:
    """Whether the process waits for its start itself, and is of the host, where that is so."""
    flags = {"waits_for_start": command.waits_for_start, "of_host": command.in_host_pid_namespace}
    return {name: True for name, is_set in flags.items() if is_set}


async def _collect_output(
    stream: ReplyStream,
    on_output: Callable[[bytes], object],
    on_stderr: Callable[[bytes], object] | None,
) -> tuple[Message, bytes]:
    """The final message and the end of standard error."""
    stderr = b""
    last: Message | None = None
    async for last in stream:
        if last.message_type != "output":
            continue
        if last.header.get("stream") == "stderr":
            stderr = (stderr + last.payload)[-STDERR_TAIL_BYTES:]
            if on_stderr:
                on_stderr(last.payload)
        else:
            on_output(last.payload)
    if last is None:
        raise HostError("A run ended without a word.", "Run again.")
    return last, stderr


async def _signal_process_on_halt(host: Host, run_id: int, halt: asyncio.Event) -> None:
    """Once `halt` is set, SIGINT to that request and later SIGKILL; to be cancelled at its end."""
    await halt.wait()
    for _ in range(HALT_TRIES):
        if await _try_signal_run(host, run_id, "INT"):
            break
        await asyncio.sleep(HALT_RETRY_S)
    await asyncio.sleep(FINAL_WORD_LIMIT_S)
    await _try_signal_run(host, run_id, "KILL")


async def _try_signal_run(host: Host, run_id: int, name: str) -> bool:
    """Whether the agent took the signal; the loss of a host is told by the run's own stream."""
    with suppress(HostError):
        await host.request("signal", deadline_s=KILL_LIMIT_S, run=run_id, signal=name)
        return True
    return False


async def run_and_get_output(
    host: Host,
    argv: Sequence[str],
    *,
    cwd: str = "/",
    limit_s: float = LIMIT_S,
    output_limit_bytes: int = OUTPUT_LIMIT_BYTES,
    env: Sequence[tuple[str, str]] = (),
    success_codes: frozenset[int] = SUCCESS_CODES,
    install_hint: str = INSTALL_HINT,
    stdin: bytes = b"",
) -> bytes:
    """Run a command to its end, `stdin` on its standard input; its standard output.

    EngineError when it cannot be started (`install_hint` is what to do then), ends with another
    code than `success_codes`, is killed, takes longer than `limit_s` or prints too much; the end of
    what it said on standard error is part of it. HostError when the host fails.
    """
    words = tuple(argv)
    command = Command(words, cwd, stdin, " ".join(words), limit_s, output_limit_bytes, tuple(env))
    printed = bytearray()
    ending = await run_program_or_raise(
        host, command, asyncio.Event(), printed.extend, install_hint=install_hint
    )
    if fault := exit_fault_text(ending, command, success_codes):
        raise EngineError(f"{program_name(command)} on host '{host.name}' {fault}.", CORRECT_HINT)
    return bytes(printed)


async def run_program_or_raise(
    host: Host,
    command: Command,
    halt: asyncio.Event,
    on_output: Callable[[bytes], object],
    *,
    on_stderr: Callable[[bytes], object] | None = None,
    install_hint: str = INSTALL_HINT,
) -> ProcessEnding:
    """`run_process` for a program that may be missing: EngineError with `install_hint` then."""
    try:
        return await run_process(host, command, halt, on_output, on_stderr=on_stderr)
    except AgentRefusalError as refused:
        if refused.code not in _NOT_STARTED:
            raise
        name, why = program_name(command), excerpt(refused.reason).rstrip(".")
        raise EngineError(
            f"There is no {name} to run on host '{host.name}': {why}.", install_hint
        ) from None


def program_name(command: Command) -> str:
    """The program's name for people."""
    return excerpt(posixpath.basename(command.argv[0]), 60)


def exit_fault_text(
    ending: ProcessEnding,
    command: Command,
    success_codes: frozenset[int] = SUCCESS_CODES,
    output_faults: Sequence[str] = (),
) -> str | None:
    """How a command did not end well, as the second half of a sentence; None when it did.

    `output_faults` are what its output tells of it.
    """
    exited = ending.exited
    lines = ending.stderr_tail.replace("\r", "\n").strip().split("\n")[-LAST_LINES:]
    text = excerpt("; ".join((*output_faults, *(line for line in lines if line.strip())))).rstrip(
        "."
    )
    because = f" ({text})" if text else ""
    if exited.timed_out:
        return f"did not end within {command.wall_limit_s:g} s, and was killed{because}"
    if exited.signal is not None:
        return (
            f"was killed by signal {exited.signal}{_bracketed_signal_name(exited.signal)}{because}"
        )
    if exited.code not in success_codes:
        return f"ended with exit code {exited.code}{because or ' and said nothing'}"
    if exited.truncated:
        return f"printed more than {command.output_limit_bytes} bytes"
    return None


def _bracketed_signal_name(signal_number: int) -> str:
    try:
        return f" ({signal.Signals(signal_number).name})"
    except ValueError:
        return ""


async def fetch_file(
    host: Host, path: str, max_bytes: int, on_request_id: Callable[[int], object] | None = None
) -> bytes | None:
    """The content of a file; None when there is none.

    It is held against the digest that the agent made while it read. `on_request_id` gets the id of
    the request. AgentRefusalError for a file that is larger or cannot be read, HostError when the
    host fails.
    """
    content = bytearray()
    last: Message | None = None
    stream = host.stream("get", path=path, max_bytes=max_bytes)
    if on_request_id is not None:
        on_request_id(stream.id)
    try:
        async with asyncio.timeout(FETCH_LIMIT_S):
            async for last in stream:
                content += last.payload
    except TimeoutError:
        raise host.end_as_lost(f"did not hand over {path} within {FETCH_LIMIT_S:g} s") from None
    except AgentRefusalError as refused:
        if refused.code == "ENOENT":
            return None
        raise
    finally:
        await stream.aclose()
    if last is None:
        raise host.end_as_lost("handed over a file without a word")
    if read_answer(host.name, FileAnswer, last).sha256 != hashlib.sha256(content).hexdigest():
        raise host.end_as_lost(f"handed over {path} with another digest than it named")
    return bytes(content)
