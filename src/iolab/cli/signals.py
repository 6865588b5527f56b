"""Ctrl-C and its kin: the first asks for a clean end, the second for an end at once."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

STOPPING: Final = (
    "Stopping after what is measured; press Ctrl-C again to stop at once.",
    "Stopping at once.",
)
"""What the user is told at the first signal and at any further one."""

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""A terminal that goes away is treated as a request to stop: nobody watches any more."""


@contextmanager
def stop_on_signals(request: Callable[[], None], note: Callable[[str], None]) -> Iterator[None]:
    """Within the context of a running loop each signal calls `request` and tells the user."""
    loop = asyncio.get_running_loop()
    seen = 0

    def react() -> None:
        nonlocal seen
        note(STOPPING[min(seen, 1)])
        seen += 1
        request()

    for number in _SIGNALS:
        loop.add_signal_handler(number, react)
    try:
        yield
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
