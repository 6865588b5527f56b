"""Commands under a limit of memory: a library that runs out of it ends the process, not an error.

OpenBLAS leaves with 1, the loader with 127, DuckDB and Rust by a signal. So a process of its own
runs the command and says its code at its own end; the one that waits tells of what ended otherwise.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Final, NoReturn

READERS: Final = frozenset(
    (
        *("check", "plan", "import", "show", "explain", "report", "export", "compare", "history"),
        *("reference", "audit", "predict", "choose", "studies"),
    )
)
"""Commands that run in a process of their own under a limit. Not those that make load or serve:
what a session started belongs to the process that the user sees."""

_FAULTS: Final = frozenset(
    (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGTRAP)
)
"""By which a library ends the process that it runs in."""

_FORWARDED: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""What may be sent to the waiting process alone; the terminal sends SIGINT to both."""


def run_command(command: Callable[[Sequence[str]], int], argv: Sequence[str]) -> int:
    """The code of a command; in a process of its own where memory is limited and it only reads."""
    limits = (resource.getrlimit(which)[0] for which in (resource.RLIMIT_AS, resource.RLIMIT_DATA))
    if all(limit == resource.RLIM_INFINITY for limit in limits) or not READERS & {*argv[:1]}:
        return command(argv)
    answer, answer_end = os.pipe()
    try:
        child = os.fork()
    except OSError:  # too few processes: the command says so, or needs none
        os.close(answer)
        os.close(answer_end)
        return command(argv)
    if child == 0:
        os.close(answer)
        _run_and_answer(command, argv, answer_end)
    os.close(answer_end)
    status = _wait(child)
    os.set_blocking(answer, False)
    if _has_answered(answer) or os.waitstatus_to_exitcode(status) == 0:
        return os.waitstatus_to_exitcode(status)
    return _exit_code_of_killed(status, argv)


def _run_and_answer(
    command: Callable[[Sequence[str]], int], argv: Sequence[str], answer_end: int
) -> NoReturn:
    code = 1
    try:
        code = command(argv)
        os.write(answer_end, b".")
    finally:
        os._exit(code)


def _wait(child: int) -> int:
    """The status with which the child ended; what is sent here is sent on to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in _FORWARDED:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda received, _: os.kill(child, received))
    return os.waitpid(child, 0)[1]


def _has_answered(answer: int) -> bool:
    try:
        return bool(os.read(answer, 1))
    except BlockingIOError:  # something that it started still holds the other end
        return False


def _exit_code_of_killed(status: int, argv: Sequence[str]) -> int:
    """What to exit with after a command that did not come to its own end."""
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) not in _FAULTS:
        sys.stderr.flush()
        signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    from iolab.cli.output import memory_error, run_with_error_handling

    def fail() -> object:
        raise memory_error()

    return run_with_error_handling(fail, argv)
