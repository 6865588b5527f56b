"""The `iolab` command from its first line on: Ctrl-C ends it whatever it is at."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Final

NEW_OBJECTS: Final = 200_000
"""Objects made between two searches for garbage, in place of Python's 700: what imports make stays,
and to search it again and again took a tenth of a short command."""

LOST_INTERRUPT_S: Final = 0.01
"""After which an interrupt is repeated that Python dropped: the finalizer has returned by then."""


def main() -> None:
    """Run the command line of this process and end it with its code."""
    gc.set_threshold(NEW_OBJECTS)
    # Else pydantic looks for plugins among all packages, which no model here has a use for.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # While modules are read nothing is to be put in order: the kernel ends the process, quietly.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from iolab.cli.memory_limit import run_command_in_child_if_memory_limited

    code = run_command_in_child_if_memory_limited(_run_command_line_with_sigint, sys.argv[1:])
    # The kernel frees all memory at once; to take hundreds of modules apart one by one, as
    # `sys.exit` does, took a tenth of a short command. Whatever was printed is flushed already.
    os._exit(code)


def _run_command_line_with_sigint(argv: Sequence[str]) -> int:
    from iolab.cli.app import run_command_line

    # A shell starts what it runs in the background with the signal ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.unraisablehook = _repeat_lost_interrupt
    try:
        code = run_command_line(argv)
    except KeyboardInterrupt:  # a second one, while the first was told
        code = 130
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return code


def _repeat_lost_interrupt(lost: sys.UnraisableHookArgs) -> None:
    """Interrupt again where Ctrl-C fell into a finalizer, whose exceptions Python drops."""
    if issubclass(lost.exc_type, KeyboardInterrupt):
        # Not at once: it would fall into this function.
        # By a signal: it also ends a call of the kernel in which the main thread waits.
        main_thread = threading.main_thread().ident or threading.get_ident()
        arguments = (main_thread, signal.SIGINT)
        again = threading.Timer(LOST_INTERRUPT_S, signal.pthread_kill, arguments)
        again.daemon = True
        again.start()
    else:
        sys.__unraisablehook__(lost)


if __name__ == "__main__":
    main()
