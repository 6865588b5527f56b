"""The user's wish to stop: once to finish cleanly, twice to stop at once."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from iolab.errors import Interrupted

Outcome = TypeVar("Outcome")


class Stop:
    """Two requests: the first ends the run early and keeps what it measured, the second abandons.

    Call `request` in the event loop's thread (`loop.add_signal_handler`).
    """

    def __init__(self) -> None:
        self._first = asyncio.Event()
        self._second = asyncio.Event()

    def request(self) -> None:
        """Ask to stop; a third and later request changes nothing."""
        if self._first.is_set():
            self._second.set()
        self._first.set()

    @property
    def requested(self) -> bool:
        """Whether the session should come to its end."""
        return self._first.is_set()

    @property
    def at_once(self) -> bool:
        """Whether nothing should be waited for."""
        return self._second.is_set()

    async def wait(self) -> None:
        """Return at the first request."""
        await self._first.wait()

    async def pass_on(self, halt: asyncio.Event) -> None:
        """Set `halt` at the first request; runs `alongside` what heeds it until it is cancelled."""
        await self._first.wait()
        halt.set()
        await asyncio.Event().wait()

    async def pause(self, seconds: float) -> None:
        """Wait so long, or until the first request."""
        try:
            async with asyncio.timeout(seconds):
                await self._first.wait()
        except TimeoutError:
            return

    async def unless_requested(self, work: Coroutine[Any, Any, Outcome]) -> Outcome:
        """The work's outcome; at the first request it is cancelled and Interrupted is raised.

        For what may take hours and is of no use half done.
        """
        return await _unless(self._first, work, "The session was stopped while it prepared.")

    async def unless_at_once(self, work: Coroutine[Any, Any, Outcome]) -> Outcome:
        """The work's outcome; at the second request it is cancelled and Interrupted is raised."""
        return await _unless(self._second, work, "The session was stopped at once.")


async def _unless(
    event: asyncio.Event, work: Coroutine[Any, Any, Outcome], happened: str
) -> Outcome:
    task = asyncio.create_task(work, name="until a stop request")
    wish = asyncio.create_task(event.wait(), name="stop request")
    try:
        await asyncio.wait({task, wish}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise Interrupted(happened, "Resume it to go on.")
    finally:
        task.cancel()
        wish.cancel()
        await asyncio.gather(task, wish, return_exceptions=True)
