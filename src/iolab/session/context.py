"""Everyone and everything that a session works with, handed to its phases as one thing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from msgspec import Struct, field

from iolab.core.events import SessionPhase
from iolab.core.run import PlannedRun
from iolab.hosts.host import Host
from iolab.session.discovery import DiscoveryQueries
from iolab.study.targets import load_host_names_of_point
from iolab.targets.context import TargetContext
from iolab.targets.work_directory import WorkDirectory

WRITING: Final = frozenset(
    {SessionPhase.BOOT, SessionPhase.LAY_OUT, SessionPhase.PURGE, SessionPhase.PRECONDITION}
)
"""Phases before a run that leave a target with work to do, as a load does."""


class StoppingRule(Protocol):
    """Watches the I/Os of all hosts of one run."""

    def add_interval(self, host_name: str, end_real_ns: int, span_ns: int, io_count: int) -> None:
        """Take a host's next interval; its end is on the controller's clock."""

    @property
    def is_satisfied(self) -> bool:
        """Whether enough was seen, so that the run may end now."""

    @property
    def status_text(self) -> str:
        """How the run stands, in a few words for people."""


StoppingRuleFactory = Callable[[PlannedRun, Sequence[str]], StoppingRule | None]
"""The rule of a run on those hosts; None for one that ends by itself."""


class TargetSettleTimer(Struct):
    """Since when we leave the targets alone, on our monotonic clock; None before a first load."""

    rest_since_ns: int | None = None
    _is_writing: bool = False

    def begin_session_phase(self, phase: SessionPhase, now_ns: int) -> None:
        """A phase begins, and the one before has ended: after one that wrote all rest begins anew.

        To drop caches is to write back what such a phase has left in memory.
        """
        if self._is_writing and self.rest_since_ns is not None:
            self.rest_since_ns = now_ns
        self._is_writing = phase in WRITING or (
            self._is_writing and phase is SessionPhase.DROP_CACHES
        )


class SessionContext(TargetContext):
    """A `TargetContext` with the `monitored_hosts`; a reconnected host takes its old place there.

    `discovery_queries` are what hosts are asked. `stopping_rule_for` gives the rules that end runs
    early. `reconnected_hosts` are the hosts that were lost and reached again: an agent that is lost
    may leave its folder. `settle_timer` is that of the targets between two runs.
    `neighbour_workdirs` are the directories of each event that begins a load in the present run.
    """

    monitored_hosts: dict[str, Host] = field(default_factory=dict)
    discovery_queries: DiscoveryQueries = field(default_factory=DiscoveryQueries)
    stopping_rule_for: StoppingRuleFactory | None = None
    reconnected_hosts: set[str] = field(default_factory=set)
    settle_timer: TargetSettleTimer = field(default_factory=TargetSettleTimer)
    neighbour_workdirs: dict[str, tuple[WorkDirectory, ...]] = field(default_factory=dict)

    def begin_session_phase(
        self,
        phase: SessionPhase,
        run: PlannedRun | None,
        detail: str,
        expected_s: float | None = None,
    ) -> None:
        """Tell that a phase begins, and note what it means for the targets' rest."""
        self.settle_timer.begin_session_phase(phase, self.clock.mono_ns())
        TargetContext.begin_session_phase(self, phase, run, detail, expected_s)

    def excluded_hosts(self, run: PlannedRun) -> tuple[str, ...]:
        """The hosts that should make a run's load, and take no part in it."""
        names = load_host_names_of_point(self.study, run.point)
        return tuple(name for name in names if name in self.excluded_host_names)

    @property
    def all_hosts(self) -> dict[str, Host]:
        """Clients and monitored hosts."""
        return {**self.hosts, **self.monitored_hosts}
