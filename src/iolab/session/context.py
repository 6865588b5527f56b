"""Everyone and everything that a session works with, handed to its phases as one thing."""

from __future__ import annotations

from dataclasses import dataclass, field

from iolab.core.run import PlannedRun
from iolab.hosts.host import Host
from iolab.session.discovery import Questions
from iolab.session.stopping_rule import RuleFor
from iolab.study.targets import makers_of
from iolab.targets.context import Context


@dataclass(frozen=True, slots=True)
class SessionContext(Context):
    """A `Context` with the `bystanders`, whose place a host that was reached again takes, too.

    `questions` are what hosts are asked. `rule_for` gives the rules that end runs early. `mended`
    are the hosts that were lost and reached again: an agent that is lost may leave its folder.
    """

    bystanders: dict[str, Host] = field(default_factory=dict)
    questions: Questions = field(default_factory=Questions)
    rule_for: RuleFor | None = None
    mended: set[str] = field(default_factory=set)

    def without(self, run: PlannedRun) -> tuple[str, ...]:
        """The hosts that should make a run's load, and take no part in it."""
        names = makers_of(self.study, run.point)
        return tuple(name for name in names if name in self.left_out)

    @property
    def everyone(self) -> dict[str, Host]:
        """Clients and bystanders."""
        return {**self.hosts, **self.bystanders}
