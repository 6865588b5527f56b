"""Everyone and everything that a session works with, handed to its phases as one thing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from iolab.model.engine import EngineName
from iolab.model.event import Event, Phase, PhaseStarted, Recorder
from iolab.model.run import Plan, PlannedRun
from iolab.model.study import Study
from iolab.plan.guests import makers_of
from iolab.run.block_ledgers import BlockLedgers
from iolab.run.clock import Clock
from iolab.run.engines.base import Engine
from iolab.run.hosts.base import Host
from iolab.run.live_rule import RuleFor
from iolab.run.stop import Stop


@dataclass(frozen=True, slots=True)
class Crew:
    """The study and its plan, the hosts by name, and who is told, who may stop, what time it is.

    A host that was lost and reached again takes its place in `hosts` or `bystanders`. `left_out`
    are hosts that failed and take no further part. `rule_for` gives the rules that end runs early.
    `ledgers` tell what blocks of verified data sets must hold.
    """

    study: Study
    plan: Plan
    hosts: dict[str, Host]
    engines: Mapping[EngineName, Engine]
    recorder: Recorder
    stop: Stop
    clock: Clock
    session_id: str
    bystanders: dict[str, Host] = field(default_factory=dict)
    left_out: set[str] = field(default_factory=set)
    rule_for: RuleFor | None = None
    ledgers: BlockLedgers = field(default_factory=BlockLedgers)

    @property
    def owner(self) -> str:
        """Under which name the session holds its folders."""
        return f"iolab session {self.session_id}"

    def without(self, run: PlannedRun) -> tuple[str, ...]:
        """The hosts that should make a run's load, and take no part in it."""
        names = makers_of(self.study, run.point)
        return tuple(name for name in names if name in self.left_out)

    @property
    def everyone(self) -> dict[str, Host]:
        """Clients and bystanders."""
        return {**self.hosts, **self.bystanders}

    def tell(self, event: Event) -> None:
        """Hand an event to the recorder; whatever it raises ends the session."""
        self.recorder.emit(event)

    def begin(
        self, phase: Phase, run: PlannedRun | None, detail: str, expected_s: float | None = None
    ) -> None:
        """Tell that a phase begins."""
        self.tell(PhaseStarted(phase, run, detail, expected_s))

    def engine_of(self, run: PlannedRun) -> Engine:
        """The engine of a run's job."""
        return self.engines[run.point.job.engine]
