"""What a maker of load offers to a session; `drivers` has all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from iolab.model.key_value_run import ServerRun
from iolab.model.metadata import ReportedRate
from iolab.model.run import PlannedRun
from iolab.run.crew import Crew
from iolab.run.evidence import Evidence
from iolab.run.telemetry.decode import CounterCollector


class Driver(ABC):
    """How a kind of load is made on all hosts of a run; it fills in their evidence.

    It lives as long as its session. `prepare` and `measure` raise HostError or EngineError when any
    host fails, with what was gathered until then left in the evidence, and both heed a request to
    stop.
    """

    @abstractmethod
    async def prepare(self, crew: Crew, run: PlannedRun, evidence: Sequence[Evidence]) -> None:
        """All phases before the first that counts; returns early at a request to stop."""

    @abstractmethod
    async def measure(
        self,
        crew: Crew,
        run: PlannedRun,
        evidence: Sequence[Evidence],
        counters: CounterCollector,
    ) -> tuple[ReportedRate, ...]:
        """The load itself, with telemetry; rates of the fleet where the engine prints them."""

    def server(self) -> ServerRun | None:
        """What the server of a key-value store told around the last run; None without one."""
        return None

    async def end(self) -> tuple[str, ...]:
        """The session ends: nothing that was held between runs stays; what could not be ended."""
        return ()
