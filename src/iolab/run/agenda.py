"""What decides which run comes next: the plan itself, or the results so far."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from iolab.model.run import PlannedRun


class Agenda(Protocol):
    """Gives one run after the other; whoever judges runs tells it what came of each."""

    def next(self) -> PlannedRun | None:
        """The run to make now, None when nothing more is needed."""

    def said(self) -> Sequence[str]:
        """What the user should know of its choices, since it was last asked."""


class Walk:
    """The pending runs in their order, whatever comes out."""

    def __init__(self, pending: Iterable[PlannedRun]) -> None:
        self._pending = iter(tuple(pending))

    def next(self) -> PlannedRun | None:
        """The next of the runs."""
        return next(self._pending, None)

    def said(self) -> Sequence[str]:
        """Nothing: nothing is chosen."""
        return ()
