"""The kinds of load that can be judged: what each one measures, shows, and is asked by checks.

A further kind is a class here, with an entry in KINDS for each of its jobs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from iolab.analyse.checks import CHECKS, KEY_VALUE_CHECKS, METADATA_CHECKS
from iolab.analyse.checks.registry import Check
from iolab.analyse.guests.nodes import node_results
from iolab.analyse.intervals import with_intervals
from iolab.analyse.key_value.intervals import with_key_value_intervals
from iolab.analyse.key_value.load import declared, measure_key_value
from iolab.analyse.key_value.summary import key_value_host_metrics, key_value_metrics
from iolab.analyse.load import measure
from iolab.analyse.metadata.phases import MetadataLoad, measure_metadata
from iolab.analyse.metadata.summary import metadata_host_metrics, metadata_metrics
from iolab.analyse.service import service_metrics, service_of
from iolab.analyse.spread import key_value_spread, operation_spreads, spread_of
from iolab.analyse.steady import steady_of
from iolab.analyse.summary import fleet_metrics, host_metrics
from iolab.analyse.view import RunView
from iolab.model.host import HostFacts
from iolab.model.key_value import KeyValueJob
from iolab.model.metadata import MetadataJob
from iolab.model.metric import Metric, NodeResult, Spread
from iolab.model.run import RunRecord
from iolab.model.workload import AnyJob, Job
from iolab.model.ycsb import YcsbJob

if TYPE_CHECKING:
    from iolab.run.telemetry.rates import Series

Facts = Mapping[str, HostFacts]


class Kind(ABC):
    """One kind of load, as a judge sees it. `checks` are its own, in the order shown."""

    checks: tuple[Check, ...]

    @abstractmethod
    def view(self, record: RunRecord, facts: Facts, telemetry: tuple[Series, ...]) -> RunView:
        """The record measured, as its checks look at it."""

    @abstractmethod
    def fleet(self, view: RunView) -> dict[str, Metric]:
        """The metrics of all hosts together."""

    @abstractmethod
    def host(self, view: RunView, index: int) -> dict[str, Metric]:
        """The metrics of one host, by its place in the record."""

    def window_s(self, view: RunView) -> float:
        """The least time that the measured intervals of any host cover; 0 without a window."""
        return float(view.load.seconds.min()) if view.load.shared else 0.0

    def spread(self, view: RunView) -> Spread | None:  # noqa: ARG002 - of kinds that have one
        """How evenly several hosts worked; None where that cannot be said of the whole run."""
        return None

    def spreads(self, view: RunView) -> dict[str, Spread]:  # noqa: ARG002 - as above
        """The same of parts of a run that follow each other, by the key of each."""
        return {}

    def nodes(self, view: RunView) -> tuple[NodeResult, ...]:  # noqa: ARG002 - as above
        """What the guests of each node did; nothing where nobody asks that of this load."""
        return ()


class IoKind(Kind):
    """I/O on files."""

    checks = CHECKS

    def view(self, record: RunRecord, facts: Facts, telemetry: tuple[Series, ...]) -> RunView:
        """Sums by host and direction."""
        steady = steady_of(record)
        load = measure(record, steady.window if steady and record.rule else None)
        service = service_of(record, load)
        return RunView(record, facts, load, telemetry, steady=steady, service=service)

    def fleet(self, view: RunView) -> dict[str, Metric]:
        """See `summary`."""
        metrics = fleet_metrics(view.load, view.access)
        found = with_intervals(metrics, view.record, view.load, view.steady)
        return found | service_metrics(view.service, _shared_hosts(view))

    def host(self, view: RunView, index: int) -> dict[str, Metric]:
        """See `summary`."""
        found = host_metrics(view.load, index, view.access)
        return found | service_metrics(view.service, [index])

    def spread(self, view: RunView) -> Spread | None:
        """By I/Os."""
        return spread_of(view.record, view.load)

    def nodes(self, view: RunView) -> tuple[NodeResult, ...]:
        """See `guests.nodes`."""
        return node_results(view)


def _shared_hosts(view: RunView) -> list[int]:
    """The hosts that are one fleet: none without a common window."""
    return list(range(len(view.hosts))) if view.load.shared else []


class MetadataKind(Kind):
    """Operations on the metadata of files, in phases."""

    checks = METADATA_CHECKS

    def view(self, record: RunRecord, facts: Facts, telemetry: tuple[Series, ...]) -> RunView:
        """Sums by phase and host."""
        phases = measure_metadata(record)
        return RunView(record, facts, measure(record), telemetry, metadata=phases)

    def fleet(self, view: RunView) -> dict[str, Metric]:
        """See `metadata.summary`."""
        return metadata_metrics(view.record, _phases(view))

    def host(self, view: RunView, index: int) -> dict[str, Metric]:
        """See `metadata.summary`."""
        return metadata_host_metrics(_phases(view), index)

    def window_s(self, view: RunView) -> float:
        """The shortest common window of the phases on files."""
        return _phases(view).window_s

    def spreads(self, view: RunView) -> dict[str, Spread]:
        """By operation."""
        return operation_spreads(view.record, _phases(view))


class KeyValueKind(Kind):
    """Operations on a key-value store, by any engine."""

    checks = KEY_VALUE_CHECKS

    def view(self, record: RunRecord, facts: Facts, telemetry: tuple[Series, ...]) -> RunView:
        """Sums by host and operation."""
        steady = steady_of(record)
        window = steady.window if steady and record.rule else declared(record)
        keys = measure_key_value(record, window)
        load = replace(measure(record, window), seconds=keys.seconds)
        return RunView(record, facts, load, telemetry, steady=steady, key_value=keys)

    def fleet(self, view: RunView) -> dict[str, Metric]:
        """See `key_value.summary`."""
        load = view.key_value_load
        metrics = key_value_metrics(load, view.key_value_job)
        return with_key_value_intervals(metrics, view.record, load, view.steady)

    def host(self, view: RunView, index: int) -> dict[str, Metric]:
        """See `key_value.summary`."""
        return key_value_host_metrics(view.key_value_load, index, view.key_value_job)

    def spread(self, view: RunView) -> Spread | None:
        """By whole operations."""
        return key_value_spread(view.record, view.key_value_load)


def _phases(view: RunView) -> MetadataLoad:
    return view.metadata or MetadataLoad(())


_KEY_VALUE: Final = KeyValueKind()

KINDS: Final[Mapping[type[AnyJob], Kind]] = {
    Job: IoKind(),
    MetadataJob: MetadataKind(),
    KeyValueJob: _KEY_VALUE,
    YcsbJob: _KEY_VALUE,
}
"""The kind of load that each job makes."""


def kind_of(record: RunRecord) -> Kind:
    """The kind of a run's load."""
    return KINDS[type(record.run.point.job)]
