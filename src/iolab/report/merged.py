"""Several sessions as one, for a report that sets them side by side. Pure.

Configurations of all sessions stand beside each other; runs are under digests that no two sessions
share; what one name means differently is told apart. Verdicts are those that each session's own
runs gave it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Final

from iolab.analysis.differences import ComparisonSide, Difference, differences, read_side
from iolab.analysis.resume_marks import marked_results
from iolab.analysis.resumed import OF_SESSION
from iolab.core.configuration import DEFAULT_CONFIGURATION, Configuration
from iolab.core.events import SessionStatus
from iolab.core.host import HostFacts, HostSpec
from iolab.core.metric import HostResult, NodeResult, Result, Spread
from iolab.core.run import Bystander, HostRun, Plan, PlanCost, PlannedRun, Point
from iolab.core.samples import BinTable, CounterTable, IntervalTable
from iolab.core.study import Study
from iolab.core.target_state import Ledger
from iolab.core.workload import Axis, DataSet, Workload
from iolab.dataclass import dataclass
from iolab.errors import Fault, StoreError, UsageError
from iolab.report.brief import ALONE, Member, RunSource, SessionDifferences, Sessions
from iolab.report.gather import SessionSource
from iolab.report.numbers import listing
from iolab.store.documents import HostsStart, Manifest, SessionDocument
from iolab.store.verify import Damage
from iolab.study.schedule import digest_of, point_at

Names = Mapping[str, str]
"""Old names and the new ones; a name that is not there stays."""

Facts = Mapping[str, HostFacts]


def distinct(names: Iterable[str]) -> list[str]:
    """The names in their order, those that come again with a number: `a`, `a-2`."""
    wanted = list(names)
    unique: list[str] = []
    for name in wanted:
        number, free = 1, name
        while free in unique or (number > 1 and free in wanted):
            number += 1
            free = f"{name}-{number}"
        unique.append(free)
    return unique


def host_names(
    labels: Sequence[str], hosts: Sequence[Sequence[str]], facts: Sequence[Facts]
) -> list[dict[str, str]]:
    """For each session the new names of its hosts, and of the keys of their facts.

    Hosts of one name are one host where their facts are the same, but for free space and reboots.
    """
    variants: dict[str, list[tuple[Facts, list[str]]]] = {}
    for label, names, own_facts in zip(labels, hosts, facts, strict=True):
        for name in names:
            lasting = _lasting(name, own_facts)
            same_name = variants.setdefault(name, [])
            same = next(
                (users for other, users in same_name if not lasting or other == lasting), None
            )
            if same is None:
                same_name.append((lasting, [label]))
            else:
                same.append(label)
    renamed: list[dict[str, str]] = []
    for label, names, own_facts in zip(labels, hosts, facts, strict=True):
        own: dict[str, str] = {}
        for name in names:
            if len(variants[name]) > 1:
                users = next(users for _, users in variants[name] if label in users)
                new = f"{name} ({', '.join(users)})"
                own |= {key: new + key.removeprefix(name) for key in _keys(name, own_facts)}
                own[name] = new
        renamed.append(own)
    return renamed


def _keys(name: str, facts: Facts) -> list[str]:
    """A host's facts: under its name, and of further directories under name and path."""
    return [key for key in facts if key == name or key.startswith(f"{name} /")]


def _lasting(name: str, facts: Facts) -> dict[str, HostFacts]:
    """A host's facts without what changes from hour to hour."""
    lasting = {}
    for key in _keys(name, facts):
        host = facts[key]
        target = host.target and replace(host.target, free_bytes=0, free_inodes=0)
        lasting[key] = replace(host, target=target, kernel=replace(host.kernel, boot_id=""))
    return lasting


def configurations_named(
    labels: Sequence[str], sessions: Sequence[Sequence[Configuration]]
) -> list[tuple[Configuration, ...]]:
    """The configurations of each session, those of one id or of one title with a label after it."""
    ids = Counter(configuration.id for own in sessions for configuration in own)
    titles = Counter(configuration.title for own in sessions for configuration in own)
    return [
        tuple(
            replace(
                configuration,
                id=_labelled(configuration.id, label, ids),
                title=_labelled(configuration.title, label, titles),
            )
            for configuration in own
        )
        for label, own in zip(labels, sessions, strict=True)
    ]


def _labelled(name: str, label: str, names: Counter[str]) -> str:
    """A name that others have too with a label; what nobody has named is the label alone."""
    if names[name] == 1:
        return name
    unnamed = name == DEFAULT_CONFIGURATION and label not in names
    return label if unnamed else f"{name} ({label})"


def with_hosts(configuration: Configuration, names: Names) -> Configuration:
    """The configuration on hosts of these names."""
    return replace(
        configuration,
        hosts=_all(configuration.hosts, names),
        storage=_all(configuration.storage, names),
    )


def spec_named(spec: HostSpec, names: Names) -> HostSpec:
    """A host of the study, and its node."""
    return replace(spec, name=_of(spec.name, names), node=_of(spec.node, names))


def point_named(point: Point, names: Names) -> Point:
    """A point whose clients have numbers of jobs of their own."""
    own = tuple((_of(name, names), count) for name, count in point.host_numjobs)
    return replace(point, host_numjobs=own)


def result_named(result: Result, names: Names) -> Result:
    """A result; hosts that it went without keep their names, as its configuration does."""
    if not names:
        return result
    spreads = {key: _spread(spread, names) for key, spread in result.operation_spreads.items()}
    return replace(
        result,
        hosts=tuple(_share(host, names) for host in result.hosts),
        nodes=tuple(_node(node, names) for node in result.nodes),
        spread=result.spread and _spread(result.spread, names),
        operation_spreads=spreads,
    )


def manifest_named(manifest: Manifest, names: Names) -> Manifest:
    """A manifest, for all that a report shows of it."""
    if not names:
        return manifest
    return replace(
        manifest,
        hosts=tuple(_host_run(host, names) for host in manifest.hosts),
        bystanders=tuple(_bystander(bystander, names) for bystander in manifest.bystanders),
        details=manifest.details and manifest.details.renamed(names),
        fleet=manifest.fleet and manifest.fleet.renamed(names),
    )


def _share(host: HostResult, names: Names) -> HostResult:
    return replace(host, name=_of(host.name, names))


def _node(node: NodeResult, names: Names) -> NodeResult:
    return replace(node, name=_of(node.name, names), guests=_all(node.guests, names))


def _spread(spread: Spread, names: Names) -> Spread:
    return replace(spread, slowest=_of(spread.slowest, names), fastest=_of(spread.fastest, names))


def _host_run(host: HostRun, names: Names) -> HostRun:
    return replace(
        host,
        host=_of(host.host, names),
        target_key=_of(host.target_key, names),
        read_from=_of(host.read_from, names),
    )


def _bystander(bystander: Bystander, names: Names) -> Bystander:
    return replace(bystander, host=_of(bystander.host, names))


def _all(hosts: Iterable[str], names: Names) -> tuple[str, ...]:
    return tuple(_of(name, names) for name in hosts)


def _of(name: str, names: Names) -> str:
    return names.get(name, name)


TEXTS_SHOWN: Final = 3
"""Titles and names that stand where one does; the others are counted."""

_WORST: Final = (
    SessionStatus.FAILED,
    SessionStatus.INTERRUPTED,
    SessionStatus.RUNNING,
    SessionStatus.DONE,
)


def joined_study(
    studies: Sequence[Study],
    configurations: Sequence[Sequence[Configuration]],
    hosts: Sequence[Names],
) -> Study:
    """All studies as one: their configurations side by side, their workloads joined by id.

    `configurations` are each session's under their new ids, `hosts` each session's new names. What
    a study has once, as its method, is the first one's.
    """
    pairs = list(zip(configurations, hosts, strict=True))
    specs = {
        named.name: named
        for study, names in zip(studies, hosts, strict=True)
        for named in (spec_named(spec, names) for spec in study.hosts)
    }
    first = studies[0]
    return replace(
        first,
        id=_listed(study.id for study in studies),
        title=_listed(study.title for study in studies),
        question=" ".join(dict.fromkeys(study.question for study in studies if study.question)),
        source=_listed(study.source for study in studies if study.source),
        configurations=tuple(
            with_hosts(configuration, names) for own, names in pairs for configuration in own
        ),
        hosts=tuple(specs.values()),
        workloads=_workloads(studies),
        scale=_listed(study.scale for study in studies),
        overrides=(),
        inventory="",
        guests=next((study.guests for study in studies if study.guests is not None), None),
    )


def alike_workloads(studies: Sequence[Study]) -> frozenset[str]:
    """The workloads that every study which has them asks for in the same way."""
    asked: dict[str, list[Workload]] = {}
    for study in studies:
        for workload in study.workloads:
            asked.setdefault(workload.id, []).append(workload)
    return frozenset(
        name
        for name, versions in asked.items()
        if all(version == versions[0] for version in versions)
    )


def workloads_as_asked(labels: Sequence[str], studies: Sequence[Study]) -> tuple[Workload, ...]:
    """Every workload as it was asked for; what one id means differently has labels in its title."""
    by_id: dict[str, list[tuple[Workload, list[str]]]] = {}
    for label, study in zip(labels, studies, strict=True):
        for workload in study.workloads:
            kinds = by_id.setdefault(workload.id, [])
            users = next((users for version, users in kinds if version == workload), None)
            if users is None:
                kinds.append((workload, [label]))
            else:
                users.append(label)
    return tuple(
        replace(version, title=f"{version.title} ({', '.join(users)})")
        if len(kinds) > 1
        else version
        for kinds in by_id.values()
        for version, users in kinds
    )


def joined_plan(
    plans: Sequence[Plan],
    runs: Iterable[PlannedRun],
    candidates: Iterable[Point],
    configurations: Iterable[tuple[DataSet, str]],
) -> Plan:
    """All plans as one; `runs`, `candidates` and `configurations` of data sets have new names."""
    sets = {
        (data_set.id, data_set.job_bytes, data_set.numjobs): replace(data_set, configuration=name)
        for data_set, name in configurations
    }
    budgets = [plan.budget for plan in plans]
    return Plan(
        study=_listed(plan.study for plan in plans),
        digest=digest_of([plan.digest for plan in plans]),
        data_sets=tuple(sets.values()),
        runs=tuple(runs),
        budget=PlanCost(
            seconds=sum(budget.seconds for budget in budgets),
            reasons=tuple(reason for budget in budgets for reason in budget.reasons),
            layout_bytes_per_host=max(budget.layout_bytes_per_host for budget in budgets),
            write_bytes_estimate=sum(budget.write_bytes_estimate for budget in budgets),
            free_bytes_needed_per_host=max(budget.free_bytes_needed_per_host for budget in budgets),
        ),
        destroys=tuple(dict.fromkeys(name for plan in plans for name in plan.destroys)),
        candidates=tuple(candidates),
        runs_more=sum(plan.runs_more for plan in plans),
    )


def joined_session(
    labels: Sequence[str], sessions: Sequence[SessionDocument], study: Study
) -> SessionDocument:
    """What stands for all sessions: the worst status, the first moment, every version."""
    worst = min((session.status for session in sessions), key=_WORST.index)
    reasons = [
        f"{label}: {session.reason}"
        for label, session in zip(labels, sessions, strict=True)
        if session.reason and session.status is worst
    ]
    return replace(
        sessions[0],
        id=_listed(session.id for session in sessions),
        study=study.id,
        title=study.title,
        scale=study.scale,
        overrides=(),
        command=(),
        iolab_version=_listed(session.iolab_version for session in sessions),
        agent_version=_listed(
            session.agent_version for session in sessions if session.agent_version
        )
        or None,
        created_real_ns=min(session.created_real_ns for session in sessions),
        status=worst,
        reason=" ".join(reasons) or None,
        history=(),
        files=(),
    )


def _workloads(studies: Sequence[Study]) -> tuple[Workload, ...]:
    joined: dict[str, Workload] = {}
    for study in studies:
        for workload in study.workloads:
            first = joined.get(workload.id)
            joined[workload.id] = workload if first is None else _joined(first, workload)
    return tuple(joined.values())


def _joined(workload: Workload, other: Workload) -> Workload:
    """The workload with the values of both; numbers rise, words stand in the first one's order."""
    values: dict[str, dict[int | str, None]] = {}
    for axis in (*workload.sweep, *other.sweep):
        values.setdefault(axis.name, {}).update(dict.fromkeys(axis.values))
    return replace(
        workload, sweep=tuple(Axis(name, _rising(tuple(of))) for name, of in values.items())
    )


def _rising(values: tuple[int | str, ...]) -> tuple[int | str, ...]:
    numbers = [value for value in values if isinstance(value, int)]
    return tuple(sorted(numbers)) if len(numbers) == len(values) else values


def _listed(texts: Iterable[str]) -> str:
    return listing(list(dict.fromkeys(texts)), TEXTS_SHOWN)


SESSIONS_MAX: Final = 16
"""More configurations than that cannot be told apart on any chart."""

_OUT: Final = ("--out", "-o")
"""Options of `iolab run` that say where a session lies."""


def merge_sessions(sources: Sequence[tuple[str, SessionSource]]) -> SessionSource:
    """The sessions, each with a label for it, as one; a single one is itself.

    UsageError for too many of them, and for one that is given twice. Whether they may be compared
    is for the caller to decide: see `sessions_of`.
    """
    if len(sources) == 1:
        return sources[0][1]
    _check(sources)
    return _merged(sources)


def sessions_of(source: SessionSource) -> Sessions:
    """What united sessions are by themselves, and in what they differ; of a single one `ALONE`."""
    return source.sessions if isinstance(source, MergedSession) else ALONE


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
        """The result among those of all sessions; a session is one segment of the whole."""
        return replace(
            result_named(result, self.hosts),
            configuration=self.ids[result.configuration],
            digest=self.digests[result.digest],
            segment=self.number * OF_SESSION,
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
class MergedSession:
    """Several sessions as one: a `SessionSource`, whose runs lead back to the right session."""

    session: SessionDocument
    study: Study
    plan: Plan
    facts: dict[str, HostFacts]
    sessions: Sessions
    all_results: tuple[Result, ...]
    damage: tuple[Damage, ...]
    points: Mapping[str, tuple[_Part, str]]
    starts: tuple[HostsStart, ...] = ()

    def results(self) -> tuple[Result, ...]:
        """The results of all sessions, one session after the other."""
        return self.all_results

    def damaged(self) -> tuple[Damage, ...]:
        """The runs of all sessions that cannot be read."""
        return self.damage

    def ledger(self) -> Ledger:
        """The rounds of all sessions; their targets are those of several ledgers."""
        parts = {part.number: part for part, _ in self.points.values()}
        return Ledger(
            rounds=tuple(
                replace(
                    series, configuration=part.ids.get(series.configuration, series.configuration)
                )
                for _, part in sorted(parts.items())
                for series in part.source.ledger().rounds
            )
        )

    def manifest(self, digest: str, repeat: int) -> Manifest:
        """A committed run's manifest."""
        part, own = self._place(digest)
        manifest = manifest_named(part.source.manifest(own, repeat), part.hosts)
        return replace(manifest, run=part.run(manifest.run))

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
        if digest not in self.points:
            raise StoreError(
                f"None of the sessions has a point {digest}.", "List the runs with `iolab show`."
            )
        return self.points[digest]


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


def _merged(sources: Sequence[tuple[str, SessionSource]]) -> MergedSession:
    labels, readers = distinct(label for label, _ in sources), [source for _, source in sources]
    studies = [source.study for source in readers]
    facts = [source.facts for source in readers]
    renamed = configurations_named(labels, [study.configurations for study in studies])
    shown = [marked_results(source) for source in readers]
    named = [
        _named(study, own, own_names)
        for study, (own, _), own_names in zip(studies, shown, renamed, strict=True)
    ]
    hosts = host_names(labels, [_hosts_of(study) for study in studies], facts)
    study = joined_study(studies, [tuple(by_id.values()) for by_id in named], hosts)
    parts = tuple(_parts(sources, shown, named, hosts, (study, alike_workloads(studies))))
    session = joined_session(labels, [source.session for source in readers], study)
    return MergedSession(
        session=session,
        study=study,
        plan=joined_plan(
            [part.plan for part in parts],
            [part.run(run) for part in parts for run in part.plan.runs],
            [part.point(point) for part in parts for point in part.plan.candidates],
            [
                (data_set, part.ids[data_set.configuration])
                for part in reversed(parts)
                for data_set in part.plan.data_sets
            ],
        ),
        facts={
            names.get(key, key): host
            for names, host_facts in zip(reversed(hosts), reversed(facts), strict=True)
            for key, host in host_facts.items()
        },
        sessions=_sessions(parts, renamed),
        all_results=tuple(part.result(result) for part in parts for result in part.results),
        damage=tuple(
            replace(damage, path=f"{part.label}: {damage.path}")
            for part in parts
            for damage in part.source.damaged()
        ),
        points={new: (part, own) for part in parts for own, new in part.digests.items()},
    )


def _hosts_of(study: Study) -> list[str]:
    """Every host that a study names, clients first."""
    named = (
        name
        for configuration in study.configurations
        for name in (*configuration.hosts, *configuration.storage)
    )
    return list(dict.fromkeys((*named, *(spec.name for spec in study.hosts))))


def _named(
    study: Study, shown: Study, renamed: Sequence[Configuration]
) -> dict[str, Configuration]:
    """Each configuration that a session shows under its new name, by its old id.

    `renamed` are those of its study under new names; those that went without some hosts are called
    after them.
    """
    pairs = list(zip(study.configurations, renamed, strict=True))
    by_id = {}
    for configuration in shown.configurations:
        owners = [pair for pair in pairs if _is_of(configuration, pair[0])]
        old, new = max(owners, key=lambda pair: len(pair[0].id))
        by_id[configuration.id] = replace(
            configuration,
            id=new.id + configuration.id.removeprefix(old.id),
            title=new.title + configuration.title.removeprefix(old.title),
        )
    return by_id


def _is_of(configuration: Configuration, full: Configuration) -> bool:
    """Whether a configuration is the other one, or that without some hosts."""
    return configuration.id == full.id or configuration.id.startswith(f"{full.id} without ")


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
        ids = {old: configuration.id for old, configuration in named[index].items()}
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
        orders = [*(run.order for run in plan.runs), *(result.order for result in results)]
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
            damaged=sum(1 for damage in part.source.damaged() if damage.run),
            begun=tuple(start.real_ns for start in part.source.starts),
            titles=tuple(configuration.title for configuration in own),
        )
        for part, own in zip(parts, named, strict=True)
    )
    traces = {
        (part.digests[run.digest], run.repeat): RunSource(part.label, run.digest, run.repeat)
        for part in parts
        for run in part.results
    }
    return Sessions(members, traces, tuple(_differences(parts)))


def _differences(parts: Sequence[_Part]) -> Iterator[SessionDifferences]:
    """In what each further session differs from the first one.

    Each configuration is held against that of its id, where there is none against the first.
    """
    sides = _sides(parts[0])
    first = next(iter(sides.values()))
    for part in parts[1:]:
        differing: dict[Difference, None] = {}
        for name, side in _sides(part).items():
            differing |= dict.fromkeys(differences(sides.get(name, first), side))
        yield SessionDifferences(
            part.label, tuple(sorted(differing, key=lambda difference: not difference.forbids))
        )


def _sides(part: _Part) -> dict[str, ComparisonSide]:
    return {
        configuration.id: read_side(part.label, part.source, configuration.id)
        for configuration in part.study.configurations
    }


def _without_place(session: SessionDocument) -> SessionDocument:
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
