"""What analysis asks of a kind of load, and of a kind of host, which it is handed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, runtime_checkable

from iolab.analysis.check import Check, HostQuestion
from iolab.analysis.view import HostAnswers, RunView
from iolab.core.host import HostFacts
from iolab.core.metric import Metric, NodeResult, Spread
from iolab.core.run import RunRecord
from iolab.core.workload import AnyJob

if TYPE_CHECKING:
    from iolab.hosts.rates import Series

Facts = Mapping[str, HostFacts]

View = TypeVar("View", bound=RunView)

WHOLE_RUN: Final = ""
"""The key of the spread that is of a whole run, and not of one of its parts."""


class LoadAnalysis(Protocol[View]):
    """One kind of load, as a judge sees it."""

    @property
    def checks(self) -> tuple[Check[View] | HostQuestion, ...]:
        """Its checks in the order shown, and where those of hosts stand among them."""

    def view(
        self,
        record: RunRecord,
        facts: Facts,
        telemetry: tuple[Series, ...],
        host_kinds: tuple[HostAnswers, ...],
    ) -> View:
        """The record measured, as its checks look at it."""

    def fleet(self, view: View) -> dict[str, Metric]:
        """The metrics of all hosts together."""

    def host(self, view: View, index: int) -> dict[str, Metric]:
        """The metrics of one host, by its place in the record."""

    def window_s(self, view: View) -> float:
        """The least time that the measured intervals of any host cover; 0 without a window."""

    def spreads(self, view: View) -> Mapping[str, Spread]:
        """How evenly several hosts worked: of the whole run, or of parts that follow each other."""


@runtime_checkable
class ByNode(Protocol):
    """A kind of load that can tell what the hosts of one node did together."""

    def nodes(self, view: RunView) -> tuple[NodeResult, ...]:
        """One for each node that hosts of the run live on."""


class HostAnalysis(HostAnswers, Protocol):
    """A kind of host that is more than a machine, with its checks by the question they answer."""

    @property
    def checks(self) -> Mapping[HostQuestion, tuple[Check[RunView], ...]]:
        """In the order shown."""


@dataclass(frozen=True)
class Analyses:
    """Every kind of load by the jobs that it makes, and every kind of host."""

    loads: Mapping[type[AnyJob], LoadAnalysis[Any]]
    hosts: tuple[HostAnalysis, ...] = ()

    def of(self, record: RunRecord) -> LoadAnalysis[Any]:
        """The kind of a run's load."""
        return self.loads[type(record.run.point.job)]

    def view(self, record: RunRecord, facts: Facts, telemetry: tuple[Series, ...]) -> RunView:
        """The record measured as its kind of load does it."""
        view: RunView = self.of(record).view(record, facts, telemetry, self.hosts)
        return view

    def checks(self, job: type[AnyJob]) -> tuple[Check[Any], ...]:
        """Every check of what that job makes, in the order in which they are shown."""
        return tuple(self._checks(self.loads[job]))

    def _checks(self, kind: LoadAnalysis[Any]) -> Iterator[Check[Any]]:
        for one in kind.checks:
            if isinstance(one, HostQuestion):
                for hosts in self.hosts:
                    yield from hosts.checks.get(one, ())
            else:
                yield one
