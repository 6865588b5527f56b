"""Ctrl-C and its kin: the first asks for a clean end, the second for an end at once."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

STOPPING: Final = "Stopping after what is measured; press Ctrl-C again to stop at once."
STOPPING_AT_ONCE: Final = "Stopping at once."
"""What the user is told at the first signal, and at a further one."""

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""A terminal that goes away is treated as a request to stop: nobody watches any more."""


@contextmanager
def stop_on_signals(request: Callable[[], str], note: Callable[[str], None]) -> Iterator[None]:
    """Within the context each signal calls `request` in the running loop, and tells what it says.

    The same is not told twice.
    """
    loop = asyncio.get_running_loop()
    told = ""

    def react() -> None:
        nonlocal told
        text = request()
        if text != told:
            note(text)
        told = text

    for number in _SIGNALS:
        loop.add_signal_handler(number, react)
    try:
        yield
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)


NEW_OBJECTS: Final = 50_000
"""Containers made and not freed between two searches, in place of Python's 700. Every report and
sample makes some dozens that are freed by themselves; a thousand hosts' newest samples live all the
while, and searching them anew took a quarter of the controller's time. What may lie about unfound
is some megabytes."""


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Search for garbage seldom until the block is left; what was set before is put back."""
    before = gc.get_threshold()
    gc.set_threshold(NEW_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
