"""What work on targets needs of its session: one thing, and the seeds of what hosts draw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import field

from iolab.core.engine import EngineName
from iolab.core.events import Event, Recorder, SessionPhase, SessionPhaseStarted
from iolab.core.run import Plan, PlannedRun, Point
from iolab.core.study import Study
from iolab.hosts.barrier import StopRequest
from iolab.hosts.clock import ControllerClock
from iolab.hosts.engine import FileEngine
from iolab.hosts.host import Host
from iolab.record import Record
from iolab.study.targets import load_host_names_of_point
from iolab.targets.state import BlockLedgers

HOSTS_APART: Final = 0x9E3779B1
"""Seeds of repeats follow each other, and those of the next host begin so much further on: 2^32 in
the golden section, the nearest prime. fio multiplies a seed by the number of a job and keeps the
lowest 32 bits, from which a distance with factors of two in it would take hosts away. As it is odd,
the same job of two hosts never draws the same (of fewer than 2^19 hosts with 2^13 jobs). Nothing
keeps jobs of different numbers on two hosts apart: two of them meet as seldom as two numbers
of 32 bits do. The native engine keeps 44 bits of a seed, beside the number of a job."""


class TargetContext(Record):
    """The study and its plan, the hosts by name, and who is told, who may stop, what time it is.

    A host that was lost and reached again takes its place in `hosts`. `excluded_host_names` are
    hosts that failed and take no further part. `held_folders_by_host` are the scratch folders, each
    (path, name), that agents of a host were requested. `ledgers` tell what blocks of verified data
    sets must hold.
    """

    study: Study
    plan: Plan
    hosts: dict[str, Host]
    engines: Mapping[EngineName, FileEngine[Any]]
    recorder: Recorder
    stop: StopRequest
    clock: ControllerClock
    session_id: str
    excluded_host_names: set[str] = field(default_factory=set)
    held_folders_by_host: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    ledgers: BlockLedgers = field(default_factory=BlockLedgers)

    @property
    def folder_owner_text(self) -> str:
        """Under which name the session holds its folders."""
        return f"iolab session {self.session_id}"

    def emit(self, event: Event) -> None:
        """Hand an event to the recorder; whatever it raises ends the session."""
        self.recorder.emit(event)

    def begin_session_phase(
        self,
        phase: SessionPhase,
        run: PlannedRun | None,
        detail: str,
        expected_s: float | None = None,
    ) -> None:
        """Tell that a phase begins."""
        self.emit(SessionPhaseStarted(phase, run, detail, expected_s))

    def engine_for_run(self, run: PlannedRun) -> FileEngine[Any]:
        """The engine of a run's job, which works on files that are laid out."""
        return self.engines[run.point.job.layout_engine]


def run_seed(study: Study, point: Point, host_name: str, run_number: int) -> int:
    """The seed of a host in the `run_number`-th run of a point, from 1.

    It depends on the host's place among those that make the point's load, and not on others that
    were left out. Hosts that drew the same would all do their I/O at the same moments, where
    arrivals are random, and write the same blocks, which a target may store once.
    """
    place = load_host_names_of_point(study, point).index(host_name)
    return study.method.seed + run_number - 1 + place * HOSTS_APART


def contents_seed(study: Study, host_name: str) -> int:
    """The seed of what layouts and fills write on a host, by its place among the study's hosts.

    A target that stores the same blocks once would hold the files of a whole fleet in one's place.
    """
    place = [spec.name for spec in study.hosts].index(host_name)
    return study.method.seed + place * HOSTS_APART


def arrival_offset_share(study: Study, point: Point, host_name: str) -> float:
    """By which part, from 0 to below 1, of the time between two arrivals a host's come later.

    So do fixed arrivals of a fleet lie evenly between each other, as far as clocks agree.
    """
    hosts = load_host_names_of_point(study, point)
    return hosts.index(host_name) / len(hosts)
