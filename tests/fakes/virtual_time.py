"""An event loop whose time jumps to the next timer: minutes of a session in milliseconds."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Outcome = TypeVar("Outcome")


class _JumpingSelector(selectors.DefaultSelector):
    """Never waits: what would have been waited is added to the loop's time."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        events = super().select(0)
        if events or timeout == 0:
            return events
        if timeout is None:
            raise RuntimeError("everybody waits and no timer is set: this would hang for ever")
        self.now += max(timeout, 0.0)
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    """For code without real file descriptors or threads: all time is virtual."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._jumping.now


def run_virtually(work: Coroutine[Any, Any, Outcome]) -> Outcome:
    """The outcome of the work on a loop of virtual time, which must leave no task behind."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:

        async def all_of_it() -> Outcome:
            outcome = await work
            others = asyncio.all_tasks() - {asyncio.current_task()}
            assert not others, f"tasks without an owner: {others}"
            return outcome

        return runner.run(all_of_it())
