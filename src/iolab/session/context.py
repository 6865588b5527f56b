"""Everyone and everything that a session works with, handed to its phases as one thing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from iolab.core.run import PlannedRun
from iolab.hosts.host import Host
from iolab.session.discovery import Questions
from iolab.study.targets import makers_of
from iolab.targets.context import Context


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


@dataclass(slots=True)
class TargetRest:
    """Since when no measured load uses the targets, on our monotonic clock; None before any did."""

    since_ns: int | None = None


@dataclass(frozen=True, slots=True)
class SessionContext(Context):
    """A `Context` with the `bystanders`, whose place a host that was reached again takes, too.

    `questions` are what hosts are asked. `rule_for` gives the rules that end runs early. `mended`
    are the hosts that were lost and reached again: an agent that is lost may leave its folder.
    `rest` is that of the targets between two runs.
    """

    bystanders: dict[str, Host] = field(default_factory=dict)
    questions: Questions = field(default_factory=Questions)
    rule_for: RuleFor | None = None
    mended: set[str] = field(default_factory=set)
    rest: TargetRest = field(default_factory=TargetRest)

    def without(self, run: PlannedRun) -> tuple[str, ...]:
        """The hosts that should make a run's load, and take no part in it."""
        names = makers_of(self.study, run.point)
        return tuple(name for name in names if name in self.left_out)

    @property
    def everyone(self) -> dict[str, Host]:
        """Clients and bystanders."""
        return {**self.hosts, **self.bystanders}
