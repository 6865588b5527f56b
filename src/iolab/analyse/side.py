"""One side of a comparison: one configuration of one session, as far as a comparison needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from iolab.analyse.apart import Stored, shown_of
from iolab.analyse.points import Axis, PointSummary, summarise
from iolab.errors import Fault, UsageError
from iolab.model.configuration import Configuration
from iolab.model.host import HostFacts
from iolab.model.metric import Result
from iolab.model.run import Plan, Point
from iolab.model.study import Study
from iolab.plan.wording import shown, suggestion
from iolab.store.documents import Manifest, Session

Place = tuple[str, Axis]
"""Where a point stands in every session of a study: its workload and its axis values."""


class Measured(Stored, Protocol):
    """A session as far as a side of it is read; `iolab.store.reader.SessionReader` is one."""

    @property
    def session(self) -> Session:
        """What the session is."""

    @property
    def plan(self) -> Plan:
        """The plan that it executes."""

    @property
    def facts(self) -> Mapping[str, HostFacts]:
        """The facts of each host by name."""

    def manifest(self, digest: str, repeat: int) -> Manifest:
        """A committed run's manifest."""


@dataclass(frozen=True)
class Side:
    """A configuration as a session measured it.

    `name` is how the user called it. `points` are those planned or measured, `engine_versions` and
    `analysis_versions` those of its first and its last run.
    """

    name: str
    session: str
    created_real_ns: int
    versions: Mapping[str, str]
    study: Study
    configuration: Configuration
    points: Mapping[Place, Point]
    facts: Mapping[str, HostFacts]
    results: tuple[Result, ...]
    engine_versions: tuple[str, ...] = ()
    analysis_versions: tuple[int, ...] = ()

    @cached_property
    def summaries(self) -> dict[Place, PointSummary]:
        """Each point that has a committed run."""
        found = summarise(self.results, self.study)
        return {(one.key.workload, one.key.axis): one for one in found}

    def is_same_as(self, other: Side) -> bool:
        """Whether both are the very same measurement, maybe a copy of it."""
        return (self.session, self.configuration.id) == (other.session, other.configuration.id)


def read_side(name: str, reader: Measured, configuration: str | None = None) -> Side:
    """One configuration of a session; UsageError where it is not clear which, or not there."""
    study, results = shown_of(reader)
    chosen = _chosen(name, study, configuration)
    # A configuration that lost hosts has the points of the whole one.
    lost = {one.without for one in results if one.configuration == chosen.id}
    whole = {chosen.id.removesuffix(f" without {', '.join(names)}") for names in lost if names}
    mine = tuple(one for one in results if one.configuration == chosen.id)
    manifests = [reader.manifest(one.digest, one.repeat) for one in (*mine[:1], *mine[-1:])]
    session = reader.session
    engines = (host.engine_version for manifest in manifests for host in manifest.hosts)
    return Side(
        name=name,
        session=session.id,
        created_real_ns=session.created_real_ns,
        versions={"iolab": session.iolab_version, "agent": session.agent_version or ""},
        study=study,
        configuration=chosen,
        points={
            **_measured(reader, mine),
            **{
                (point.workload, point.axis): point
                for point in reader.plan.points
                if point.configuration in {chosen.id, *whole}
            },
        },
        facts={
            host: facts
            for host, facts in reader.facts.items()
            if host in {*chosen.hosts, *chosen.storage, *_nodes(study, chosen)}
        },
        results=mine,
        engine_versions=tuple(sorted({version for version in engines if version})),
        analysis_versions=tuple(sorted({one.analysis.version for one in manifests})),
    )


def _nodes(study: Study, configuration: Configuration) -> set[str]:
    """The nodes that clients live on as guests."""
    return {host.node for host in study.hosts if host.name in configuration.hosts}


def _measured(reader: Measured, results: tuple[Result, ...]) -> dict[Place, Point]:
    """The points that no plan foresaw: those of a search follow from what was measured."""
    planned = {point.digest for point in reader.plan.points}
    return {
        (one.workload, one.axis): reader.manifest(one.digest, one.repeat).run.point
        for one in {one.digest: one for one in results if one.digest not in planned}.values()
    }


def _chosen(name: str, study: Study, wanted: str | None) -> Configuration:
    known = {one.id: one for one in study.configurations}
    if wanted is None and len(known) == 1:
        return study.configurations[0]
    if wanted is None:
        example = f"{name}:{study.configurations[0].id}"
        raise UsageError(
            f"The session {shown(name)} has {len(known)} configurations.",
            f"Name one of them, as in {shown(example)}.",
        )
    if wanted not in known:
        raise UsageError(
            f"The session {shown(name)} cannot be compared as asked.",
            "Name a configuration of its study.",
            (
                Fault(
                    f"There is no configuration {shown(wanted)}.",
                    suggestion(wanted, known, "configurations"),
                ),
            ),
        )
    return known[wanted]
