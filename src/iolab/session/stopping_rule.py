"""A rule that ends a run while it goes, as the session knows it; the rules are in `analyse`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from iolab.core.run import PlannedRun


class LiveRule(Protocol):
    """Watches the I/Os of all hosts of one run."""

    def take(self, host: str, end_real_ns: int, span_ns: int, ios: int) -> None:
        """Take a host's next interval; its end is on the controller's clock."""

    @property
    def finished(self) -> bool:
        """Whether enough was seen, so that the run may end now."""

    @property
    def says(self) -> str:
        """How the run stands, in a few words for people."""


RuleFor = Callable[[PlannedRun, Sequence[str]], LiveRule | None]
"""The rule of a run on those hosts; None for one that ends by itself."""
