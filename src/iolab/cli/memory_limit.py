"""Runs commands under `ulimit -v` or `-d` in a child process, so that lack of memory is an error.

A library that runs out of memory ends its process: OpenBLAS exits with 1, the loader with 127,
DuckDB and Rust die by a signal. The child writes a byte when the command has ended by itself;
without that byte the parent reports the lack of memory.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Final, NoReturn

from iolab.cli.commands import CommandKind, command_from_argv

LOADER_BYTES_MIN: Final = 1536 << 20
"""Address space that commands need which make load: stacks and arenas of threads took 1 GiB."""

_FAULTS: Final = frozenset(
    (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGTRAP)
)
"""Signals by which a library ends its process."""

_FORWARDED: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""Signals that the parent sends on to the child; the terminal sends SIGINT to both."""


def run_command_in_child_if_memory_limited(
    command: Callable[[Sequence[str]], int], argv: Sequence[str]
) -> int:
    """Run a command and return its exit code; reading commands under a limit run in a child."""
    limits = (resource.getrlimit(which)[0] for which in (resource.RLIMIT_AS, resource.RLIMIT_DATA))
    if all(limit == resource.RLIM_INFINITY for limit in limits) or not _is_command_of_kind(
        argv, CommandKind.READS
    ):
        return command(argv)
    completion, completion_end = os.pipe()
    try:
        child = os.fork()
    except OSError:  # no further process: the command runs in this one
        os.close(completion)
        os.close(completion_end)
        return command(argv)
    if child == 0:
        os.close(completion)
        _run_in_child(command, argv, completion_end)
    os.close(completion_end)
    status = _wait_for_child_forwarding_signals(child)
    os.set_blocking(completion, False)
    if _has_child_completed(completion) or os.waitstatus_to_exitcode(status) == 0:
        return os.waitstatus_to_exitcode(status)
    return _reraise_signal_or_report_out_of_memory(status, argv)


def require_address_space_for_load(argv: Sequence[str]) -> None:
    """HostError where `ulimit -v` leaves a command that makes load too little to start with."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY or limit >= LOADER_BYTES_MIN:
        return
    if _is_command_of_kind(argv, CommandKind.MAKES_LOAD) and not {"-h", "--help"} & {*argv}:
        from iolab.errors import HostError
        from iolab.units import format_bytes

        raise HostError(
            f"The address space is limited to {format_bytes(limit)}; "
            f"'{argv[0]}' needs {format_bytes(LOADER_BYTES_MIN)}.",
            "Raise the limit: `ulimit -v unlimited`.",
        )


def _is_command_of_kind(argv: Sequence[str], kind: CommandKind) -> bool:
    command = command_from_argv(argv)
    return command is not None and command.kind is kind


def _run_in_child(
    command: Callable[[Sequence[str]], int], argv: Sequence[str], completion_pipe: int
) -> NoReturn:
    # With a backtrace, Rust's panic handler needs memory while it holds a lock that the handler of
    # a failed allocation takes, too: the child then never ends.
    os.environ.update(RUST_BACKTRACE="0", RUST_LIB_BACKTRACE="0")
    code = 1
    try:
        code = command(argv)
        os.write(completion_pipe, b".")
    finally:
        os._exit(code)


def _wait_for_child_forwarding_signals(child: int) -> int:
    """The child's wait status; signals are forwarded until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in _FORWARDED:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda received, _: os.kill(child, received))
    return os.waitpid(child, 0)[1]


def _has_child_completed(completion_pipe: int) -> bool:
    try:
        return bool(os.read(completion_pipe, 1))
    except BlockingIOError:  # a process that the child started still holds the other end
        return False


def _reraise_signal_or_report_out_of_memory(wait_status: int, argv: Sequence[str]) -> int:
    """The exit code after a child that did not complete: of a lack of memory, or by its signal."""
    if os.WIFSIGNALED(wait_status) and os.WTERMSIG(wait_status) not in _FAULTS:
        sys.stderr.flush()
        signal.signal(os.WTERMSIG(wait_status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(wait_status))
    from iolab.cli.output import out_of_memory_error, run_with_error_handling

    def raise_memory_error() -> object:
        raise out_of_memory_error()

    return run_with_error_handling(raise_memory_error, argv)
