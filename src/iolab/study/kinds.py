"""What studies and plans ask of a kind of load, and of a kind of host that a session makes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from iolab.core.engine import EngineName
from iolab.core.host import DeviceFacts, HostFacts, HostSpec
from iolab.core.run import Plan, PlannedRun, Point
from iolab.core.study import Study
from iolab.core.workload import Workload
from iolab.errors import Fault
from iolab.study.document import Document, Faults
from iolab.study.file import FileForm, Section
from iolab.study.tables import Item, Tables
from iolab.study.target_tables import Table

Reason = tuple[str, float]
"""What takes time, and its seconds."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What the runs of one kind of load cost.

    `load` is the load itself, `looks` what is measured once for all runs. The session itself
    prepares `prepared_runs`; kinds that prepare theirs say in `own` all that they take. With a rule
    the load may end `spared_s` earlier. `written_bytes` are of all hosts, and grow with further
    runs as `set_up_bytes` do not; `space_bytes` are of the host that needs most.
    """

    load: tuple[Reason, ...] = ()
    looks: tuple[Reason, ...] = ()
    own: tuple[Reason, ...] = ()
    prepared_runs: int = 0
    spared_s: float = 0.0
    written_bytes: int = 0
    set_up_bytes: int = 0
    space_bytes: int = 0


@dataclass(frozen=True, slots=True)
class HostCost:
    """What hosts cost that a session makes: bytes are of each node."""

    reasons: tuple[Reason, ...]
    disk_bytes: int
    space_bytes: int


class LoadStudy(Protocol):
    """The part of a kind of load in studies and plans."""

    @property
    def tables(self) -> Mapping[type[Table], tuple[EngineName, ...]]:
        """Its tables of a workload, each with the engines that it may name."""

    @property
    def axes(self) -> tuple[str, ...]:
        """Keys of its tables that may be lists."""

    @property
    def examples(self) -> Mapping[str, str]:
        """What to write for each of its keys that may not be left out."""

    @property
    def on_device_filesystem(self) -> bool:
        """Whether it runs on a file system that the session makes on a device."""

    def job_text(self, job: Any) -> str:  # noqa: ANN401
        """What a job of its own asks one client to do, in a line."""

    def check(self, document: Document, tables: Tables, faults: Faults) -> None:
        """Add every fault of its workloads that no single key shows."""

    def workload(self, item: Item, table: Any, tables: Tables) -> Workload:  # noqa: ANN401
        """The workload of one of its tables, which has no faults."""

    def cost(self, study: Study, runs: Sequence[PlannedRun], rate: float, hosts: HostStudy) -> Cost:
        """What its runs among these cost, where one host writes `rate` bytes a second."""

    def load_seconds(self, study: Study, point: Point) -> float:
        """Seconds of one run's load, with what it takes beyond the overhead of every run."""

    def faults(
        self,
        study: Study,
        plan: Plan,
        facts: Mapping[str, HostFacts],
        devices: Mapping[str, DeviceFacts],
    ) -> list[Fault]:
        """Why hosts or targets cannot serve it; mappings are by `Target.key`."""


class SettingsSection(Section, Protocol):
    """A table of its own with what the study says by it."""

    @property
    def setting(self) -> str:
        """The study's field that holds its settings."""

    def settings(self, tables: Tables) -> object:
        """The settings that the table says."""


@runtime_checkable
class WithSection(Protocol):
    """A kind that has a table of its own in study files."""

    @property
    def section(self) -> SettingsSection:
        """That table."""


@runtime_checkable
class ChecksDevices(Protocol):
    """A kind of load for which a device as the target may be a fault."""

    def check_devices(self, document: Document, tables: Tables, faults: Faults) -> None:
        """Add the faults of workloads that need files; some target is a device."""


@runtime_checkable
class ChecksPoints(Protocol):
    """A kind of load with faults that only show in the points."""

    def check_points(self, document: Document, study: Study, faults: Faults) -> None:
        """Add them."""


@runtime_checkable
class WithIdentity(Protocol):
    """A kind that has more to say of what makes two plans differ."""

    def identity(self, study: Study) -> Mapping[str, object]:
        """What that is, by name; empty where the study has none of it."""


class HostStudy(WithSection, WithIdentity, Protocol):
    """The part of a kind of host that sessions make, in studies and plans."""

    @property
    def examples(self) -> Mapping[str, str]:
        """What to write for each key of its table that may not be left out."""

    def check(self, document: Document, tables: Tables, faults: Faults) -> None:
        """Add every fault of such hosts that no single key shows."""

    def hosts(self, tables: Tables, written: Iterable[HostSpec]) -> tuple[HostSpec, ...]:
        """The hosts that the session makes beside those that are written."""

    def turning_loads(self, tables: Tables, loads: Sequence[int]) -> tuple[int, ...]:
        """Of these numbers of hosts on a node those at which its load may turn."""

    def iops_limit(self, study: Study) -> int | None:
        """How many I/Os a second each such host is held to, None for none."""

    def cost(self, study: Study, runs: int, rate: float) -> HostCost:
        """What the hosts of that many runs cost, where a node writes `rate` bytes a second."""


@dataclass(frozen=True, slots=True)
class StudyKinds:
    """The kinds of load that a study may have, and the kind of host that a session may make."""

    loads: tuple[LoadStudy, ...]
    hosts: HostStudy

    def of(self, engine: EngineName) -> LoadStudy:
        """The kind of load that an engine makes; KeyError for one of none."""
        return {name: kind for kind in self.loads for name in _engines(kind)}[engine]

    def of_table(self, table: type[Table]) -> LoadStudy:
        """The kind of load that a table describes; StopIteration for one of none."""
        return next(kind for kind in self.loads if table in kind.tables)

    @property
    def sections(self) -> tuple[SettingsSection, ...]:
        """The tables of their own that kinds have in study files."""
        found = (one.section for one in self.loads if isinstance(one, WithSection))
        return (*found, self.hosts.section)

    @property
    def form(self) -> FileForm:
        """What of a study file is theirs."""
        return FileForm(
            {table: names for kind in self.loads for table, names in kind.tables.items()},
            self.sections,
            tuple(dict.fromkeys(name for kind in self.loads for name in kind.axes)),
            {**self.hosts.examples, **_examples(self.loads)},
        )


def _examples(loads: Iterable[LoadStudy]) -> dict[str, str]:
    return {key: text for kind in loads for key, text in kind.examples.items()}


def _engines(kind: LoadStudy) -> Iterable[EngineName]:
    return (name for names in kind.tables.values() for name in names)
