"""What work on targets needs of its session, handed to it as one thing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from iolab.core.engine import EngineName
from iolab.core.events import Event, Phase, PhaseStarted, Recorder
from iolab.core.run import Plan, PlannedRun
from iolab.core.study import Study
from iolab.hosts.barrier import Stop
from iolab.hosts.clock import Clock
from iolab.hosts.engine import FileEngine
from iolab.hosts.host import Host
from iolab.targets.state import BlockLedgers


@dataclass(frozen=True, slots=True)
class Context:
    """The study and its plan, the hosts by name, and who is told, who may stop, what time it is.

    A host that was lost and reached again takes its place in `hosts`. `left_out` are hosts that
    failed and take no further part. `taken` are the scratch folders, each (path, name), that agents
    of a host were asked for. `ledgers` tell what blocks of verified data sets must hold.
    """

    study: Study
    plan: Plan
    hosts: dict[str, Host]
    engines: Mapping[EngineName, FileEngine[Any]]
    recorder: Recorder
    stop: Stop
    clock: Clock
    session_id: str
    left_out: set[str] = field(default_factory=set)
    taken: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    ledgers: BlockLedgers = field(default_factory=BlockLedgers)

    @property
    def owner(self) -> str:
        """Under which name the session holds its folders."""
        return f"iolab session {self.session_id}"

    def tell(self, event: Event) -> None:
        """Hand an event to the recorder; whatever it raises ends the session."""
        self.recorder.emit(event)

    def begin(
        self, phase: Phase, run: PlannedRun | None, detail: str, expected_s: float | None = None
    ) -> None:
        """Tell that a phase begins."""
        self.tell(PhaseStarted(phase, run, detail, expected_s))

    def engine_of(self, run: PlannedRun) -> FileEngine[Any]:
        """The engine of a run's job, which works on files that are laid out."""
        return self.engines[run.point.job.engine]
