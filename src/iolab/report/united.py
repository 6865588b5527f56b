"""Several sessions as one, for a report that sets them side by side. Pure.

Configurations of all sessions stand beside each other; runs are under digests that no two sessions
share; what one name means differently is told apart. Verdicts are those that each session's own
runs gave it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Final

from iolab.analyse.apart import shown_of
from iolab.analyse.differences import Difference, differences
from iolab.analyse.side import Side, read_side
from iolab.analyse.sittings import OF_SESSION
from iolab.errors import Fault, StoreError, UsageError
from iolab.model.configuration import Configuration
from iolab.model.host import HostFacts
from iolab.model.metric import Result
from iolab.model.run import Plan, PlannedRun, Point
from iolab.model.sample import BinTable, CounterTable, IntervalTable
from iolab.model.state import Ledger
from iolab.model.study import Study
from iolab.plan.sweep import digest_of, point_at
from iolab.report.brief import SessionSource
from iolab.report.joined import alike_workloads, joined_plan, joined_session, joined_study
from iolab.report.other_names import (
    Names,
    configurations_named,
    distinct,
    host_names,
    manifest_named,
    point_named,
    result_named,
)
from iolab.report.sessions import ALONE, Apart, Member, Sessions, Trace
from iolab.report.wording import listing
from iolab.store.documents import HostsStart, Manifest, Session
from iolab.store.verify import Damage

SESSIONS_MAX: Final = 16
"""More configurations than that cannot be told apart on any chart."""

_OUT: Final = ("--out", "-o")
"""Options of `iolab run` that say where a session lies."""


def unite(sources: Sequence[tuple[str, SessionSource]]) -> SessionSource:
    """The sessions, each with a label for it, as one; a single one is itself.

    UsageError for too many of them, and for one that is given twice. Whether they may be compared
    is for the caller to decide: see `sessions_of`.
    """
    if len(sources) == 1:
        return sources[0][1]
    _check(sources)
    return _united(sources)


def sessions_of(source: SessionSource) -> Sessions:
    """What united sessions are by themselves, and in what they differ; of a single one `ALONE`."""
    return source.sessions if isinstance(source, United) else ALONE


@dataclass(frozen=True, slots=True)
class _Part:
    """One session on its way into the union.

    `results` are as the session shows them by itself. `ids` are the new ids of its configurations,
    `hosts` new names, `digests` new digests; `before` is how many runs come before its own.
    """

    number: int
    label: str
    source: SessionSource
    study: Study
    plan: Plan
    results: tuple[Result, ...]
    ids: Names
    hosts: Names
    digests: Names
    before: int

    def result(self, result: Result) -> Result:
        """The result among those of all sessions; a session is one sitting of the whole."""
        return replace(
            result_named(result, self.hosts),
            configuration=self.ids[result.configuration],
            digest=self.digests[result.digest],
            sitting=self.number * OF_SESSION,
            order=result.order + self.before if result.order else 0,
        )

    def point(self, point: Point) -> Point:
        """The point among those of all sessions."""
        return replace(
            point_named(point, self.hosts),
            configuration=self.ids[point.configuration],
            digest=self.digests[point.digest],
        )

    def run(self, run: PlannedRun) -> PlannedRun:
        """The run in the plan of all sessions."""
        return replace(run, order=run.order + self.before, point=self.point(run.point))


@dataclass(frozen=True, slots=True)
class United:
    """Several sessions as one: a `SessionSource`, whose runs lead back to the right session."""

    session: Session
    study: Study
    plan: Plan
    facts: dict[str, HostFacts]
    sessions: Sessions
    made: tuple[Result, ...]
    hurt: tuple[Damage, ...]
    places: Mapping[str, tuple[_Part, str]]
    starts: tuple[HostsStart, ...] = ()

    def results(self) -> tuple[Result, ...]:
        """The results of all sessions, one session after the other."""
        return self.made

    def damaged(self) -> tuple[Damage, ...]:
        """The runs of all sessions that cannot be read."""
        return self.hurt

    def ledger(self) -> Ledger:
        """The rounds of all sessions; their targets are those of several ledgers."""
        parts = {part.number: part for part, _ in self.places.values()}
        return Ledger(
            rounds=tuple(
                replace(one, configuration=part.ids.get(one.configuration, one.configuration))
                for _, part in sorted(parts.items())
                for one in part.source.ledger().rounds
            )
        )

    def manifest(self, digest: str, repeat: int) -> Manifest:
        """A committed run's manifest."""
        part, own = self._place(digest)
        found = manifest_named(part.source.manifest(own, repeat), part.hosts)
        return replace(found, run=part.run(found.run))

    def intervals(self, digest: str, repeat: int) -> IntervalTable:
        """The intervals of a committed run."""
        part, own = self._place(digest)
        return part.source.intervals(own, repeat)

    def bins(self, digest: str, repeat: int) -> BinTable:
        """The latency bins of a committed run."""
        part, own = self._place(digest)
        return part.source.bins(own, repeat)

    def counters(self, digest: str, repeat: int) -> CounterTable:
        """The telemetry of a committed run."""
        part, own = self._place(digest)
        return part.source.counters(own, repeat)

    def _place(self, digest: str) -> tuple[_Part, str]:
        """The session of a point and its digest there."""
        if digest not in self.places:
            raise StoreError(
                f"None of the sessions has a point {digest}.", "List the runs with `iolab show`."
            )
        return self.places[digest]


def _check(sources: Sequence[tuple[str, SessionSource]]) -> None:
    """UsageError for none, for too many, and for those that are one session."""
    if not 1 < len(sources) <= SESSIONS_MAX:
        raise UsageError(
            f"{len(sources)} sessions cannot stand in one report.",
            f"Give at least 1 and at most {SESSIONS_MAX}.",
        )
    users: dict[str, list[str]] = {}
    for label, source in sources:
        users.setdefault(source.session.id, []).append(label)
    faults = tuple(
        Fault(f"{listing(names, SESSIONS_MAX)} are one session, {session}.", "Give it once.")
        for session, names in users.items()
        if len(names) > 1
    )
    if faults:
        raise UsageError("A session is given more than once.", "Give each of them once.", faults)


def _united(sources: Sequence[tuple[str, SessionSource]]) -> United:
    labels, given = distinct(label for label, _ in sources), [source for _, source in sources]
    studies = [source.study for source in given]
    facts = [source.facts for source in given]
    whole = configurations_named(labels, [study.configurations for study in studies])
    shown = [shown_of(source) for source in given]
    named = [
        _named(study, own, each)
        for study, (own, _), each in zip(studies, shown, whole, strict=True)
    ]
    hosts = host_names(labels, [_hosts_of(study) for study in studies], facts)
    study = joined_study(studies, [tuple(each.values()) for each in named], hosts)
    parts = tuple(_parts(sources, shown, named, hosts, (study, alike_workloads(studies))))
    session = joined_session(labels, [source.session for source in given], study)
    return United(
        session=session,
        study=study,
        plan=joined_plan(
            [part.plan for part in parts],
            [part.run(run) for part in parts for run in part.plan.runs],
            [part.point(point) for part in parts for point in part.plan.candidates],
            [
                (one, part.ids[one.configuration])
                for part in reversed(parts)
                for one in part.plan.data_sets
            ],
        ),
        facts={
            names.get(key, key): found
            for names, known in zip(reversed(hosts), reversed(facts), strict=True)
            for key, found in known.items()
        },
        sessions=_sessions(parts, whole),
        made=tuple(part.result(result) for part in parts for result in part.results),
        hurt=tuple(
            Damage(f"{part.label}: {hurt.path}", hurt.says)
            for part in parts
            for hurt in part.source.damaged()
        ),
        places={new: (part, own) for part in parts for own, new in part.digests.items()},
    )


def _hosts_of(study: Study) -> list[str]:
    """Every host that a study names, clients first."""
    named = (name for one in study.configurations for name in (*one.hosts, *one.storage))
    return list(dict.fromkeys((*named, *(spec.name for spec in study.hosts))))


def _named(study: Study, shown: Study, whole: Sequence[Configuration]) -> dict[str, Configuration]:
    """Each configuration that a session shows under its new name, by its old id.

    `whole` are those of its study; others stand apart for want of hosts, and are called after them.
    """
    pairs = list(zip(study.configurations, whole, strict=True))
    found = {}
    for one in shown.configurations:
        owners = [pair for pair in pairs if _is_of(one, pair[0])]
        old, new = max(owners, key=lambda pair: len(pair[0].id))
        found[one.id] = replace(
            one,
            id=new.id + one.id.removeprefix(old.id),
            title=new.title + one.title.removeprefix(old.title),
        )
    return found


def _is_of(one: Configuration, whole: Configuration) -> bool:
    """Whether a configuration is the other one, or that without some hosts."""
    return one.id == whole.id or one.id.startswith(f"{whole.id} without ")


def _parts(
    sources: Sequence[tuple[str, SessionSource]],
    shown: Sequence[tuple[Study, tuple[Result, ...]]],
    named: Sequence[Mapping[str, Configuration]],
    hosts: Sequence[Names],
    joined: tuple[Study, frozenset[str]],
) -> Iterator[_Part]:
    before = 0
    labels = distinct(label for label, _ in sources)
    for index, (_, source) in enumerate(sources):
        results, plan = shown[index][1], source.plan
        ids = {old: one.id for old, one in named[index].items()}
        yield _Part(
            number=index + 1,
            label=labels[index],
            source=source,
            study=source.study,
            plan=plan,
            results=results,
            ids=ids,
            hosts=hosts[index],
            digests=_digests(source.session.id, plan, results, ids, joined),
            before=before,
        )
        orders = [*(run.order for run in plan.runs), *(one.order for one in results)]
        before += max(orders, default=0)


def _digests(
    session: str,
    plan: Plan,
    results: Iterable[Result],
    ids: Names,
    joined: tuple[Study, frozenset[str]],
) -> dict[str, str]:
    """The new digest of each point.

    It is that of the joined study where all sessions ask for the workload alike, so that whatever
    follows from a study's points, as a curve with its knee, is found there.
    """
    study, alike = joined
    points = {
        point.digest: (point.configuration, point.workload, point.axis) for point in plan.points
    }
    for result in results:
        points.setdefault(result.digest, (result.configuration, result.workload, result.axis))
    return {
        own: point_at(study, ids[configuration], workload, axis).digest
        if workload in alike
        else digest_of({"session": session, "point": own})
        for own, (configuration, workload, axis) in points.items()
    }


def _sessions(parts: Sequence[_Part], named: Sequence[Sequence[Configuration]]) -> Sessions:
    members = tuple(
        Member(
            label=part.label,
            session=_without_place(part.source.session),
            study=part.study,
            plan=part.plan,
            results=part.results,
            damaged=len(part.source.damaged()),
            begun=tuple(start.real_ns for start in part.source.starts),
            titles=tuple(one.title for one in each),
        )
        for part, each in zip(parts, named, strict=True)
    )
    traces = {
        (part.digests[run.digest], run.repeat): Trace(part.label, run.digest, run.repeat)
        for part in parts
        for run in part.results
    }
    return Sessions(members, traces, tuple(_apart(parts)))


def _apart(parts: Sequence[_Part]) -> Iterator[Apart]:
    """In what each further session differs from the first one.

    Each configuration is held against that of its id, where there is none against the first.
    """
    known = _sides(parts[0])
    first = next(iter(known.values()))
    for part in parts[1:]:
        found: dict[Difference, None] = {}
        for name, side in _sides(part).items():
            found |= dict.fromkeys(differences(known.get(name, first), side))
        yield Apart(part.label, tuple(sorted(found, key=lambda one: not one.forbids)))


def _sides(part: _Part) -> dict[str, Side]:
    return {one.id: read_side(part.label, part.source, one.id) for one in part.study.configurations}


def _without_place(session: Session) -> Session:
    """The session with a command line that names its folder, and not where that lies."""
    words: list[str] = []
    for word in session.command:
        option, mark, value = word.partition("=")
        if words and words[-1] in _OUT:
            words.append(PurePath(word).name)
        elif mark and option in _OUT:
            words.append(f"{option}={PurePath(value).name}")
        else:
            words.append(word)
    return replace(session, command=tuple(words))
