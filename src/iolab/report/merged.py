"""Several sessions as one, for a report that sets them side by side. Pure.

Configurations of all sessions stand beside each other; runs are under digests that no two sessions
share; what one name means differently is told apart. Verdicts are those that each session's own
runs gave it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Final

from msgspec.structs import replace

from iolab.analysis.differences import (
    ComparisonSide,
    Difference,
    find_differences,
    read_comparison_side,
)
from iolab.analysis.resume_checks import SEGMENTS_PER_SESSION
from iolab.analysis.stored_results import study_and_results_with_session_checks
from iolab.core.configuration import DEFAULT_CONFIGURATION, Configuration
from iolab.core.events import SessionStatus
from iolab.core.host import HostFacts
from iolab.core.host_name import with_renamed_hosts
from iolab.core.metric import RunResult
from iolab.core.run import Plan, PlanDemand, PlannedRun, Point
from iolab.core.samples import BinTable, CounterTable, IntervalTable
from iolab.core.study import Study
from iolab.core.target_state import TargetLedger
from iolab.core.workload import Axis, DataSet, Workload
from iolab.errors import Fault, StoreError, UsageError
from iolab.record import Record
from iolab.report.brief import (
    NO_UNION,
    RunSource,
    SessionDifferences,
    SessionUnion,
    UnionMember,
)
from iolab.report.gather import StoredSessionReader
from iolab.store.documents import HostFactsAtStart, Manifest, SessionDocument
from iolab.store.verify import Damage
from iolab.study.schedule import build_point_at, content_digest
from iolab.text import list_text

NewNameByOld = Mapping[str, str]
"""Old names and the new ones; a name that is not there stays."""

FactsByKey = Mapping[str, HostFacts]

TEXTS_SHOWN: Final = 3
"""Titles and names that stand where one does; the others are counted."""

_STATUSES_WORST_FIRST: Final = (
    SessionStatus.FAILED,
    SessionStatus.INTERRUPTED,
    SessionStatus.RUNNING,
    SessionStatus.DONE,
)

SESSIONS_MAX: Final = 16
"""More configurations than that cannot be told apart on any chart."""

_OUTPUT_OPTIONS: Final = ("--out", "-o")
"""Options of `iolab run` that say where a session lies."""


def names_with_duplicates_numbered(names: Iterable[str]) -> list[str]:
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


def new_host_names_by_session(
    session_labels: Sequence[str],
    host_names_by_session: Sequence[Sequence[str]],
    facts_by_session: Sequence[FactsByKey],
) -> list[dict[str, str]]:
    """For each session the new names of its hosts, and of the keys of their facts.

    Hosts of one name are one host where their facts are the same, but for free space and reboots.
    """
    variants: dict[str, list[tuple[FactsByKey, list[str]]]] = {}
    for label, names, own_facts in zip(
        session_labels, host_names_by_session, facts_by_session, strict=True
    ):
        for name in names:
            lasting = _host_facts_without_volatile_fields(name, own_facts)
            same_name = variants.setdefault(name, [])
            same = next(
                (users for other, users in same_name if not lasting or other == lasting), None
            )
            if same is None:
                same_name.append((lasting, [label]))
            else:
                same.append(label)
    renamed: list[dict[str, str]] = []
    for label, names, own_facts in zip(
        session_labels, host_names_by_session, facts_by_session, strict=True
    ):
        own: dict[str, str] = {}
        for name in names:
            if len(variants[name]) > 1:
                users = next(users for _, users in variants[name] if label in users)
                new = f"{name} ({', '.join(users)})"
                own |= {
                    key: new + key.removeprefix(name) for key in _fact_keys_of_host(name, own_facts)
                }
                own[name] = new
        renamed.append(own)
    return renamed


def _fact_keys_of_host(name: str, facts: FactsByKey) -> list[str]:
    """A host's facts: under its name, and of further directories under name and path."""
    return [key for key in facts if key == name or key.startswith(f"{name} /")]


def _host_facts_without_volatile_fields(name: str, facts: FactsByKey) -> dict[str, HostFacts]:
    """A host's facts without what changes from hour to hour."""
    lasting = {}
    for key in _fact_keys_of_host(name, facts):
        host = facts[key]
        target = host.target and replace(host.target, free_bytes=0, free_inodes=0)
        lasting[key] = replace(host, target=target, kernel=replace(host.kernel, boot_id=""))
    return lasting


def label_duplicate_configurations(
    session_labels: Sequence[str], configurations_by_session: Sequence[Sequence[Configuration]]
) -> list[tuple[Configuration, ...]]:
    """The configurations of each session, those of one id or of one title with a label after it."""
    ids = Counter(configuration.id for own in configurations_by_session for configuration in own)
    titles = Counter(
        configuration.title for own in configurations_by_session for configuration in own
    )
    return [
        tuple(
            replace(
                configuration,
                id=_unambiguous_name(configuration.id, label, ids),
                title=_unambiguous_name(configuration.title, label, titles),
            )
            for configuration in own
        )
        for label, own in zip(session_labels, configurations_by_session, strict=True)
    ]


def _unambiguous_name(name: str, label: str, name_counts: Counter[str]) -> str:
    """A name that others have too with a label; what nobody has named is the label alone."""
    if name_counts[name] == 1:
        return name
    unnamed = name == DEFAULT_CONFIGURATION and label not in name_counts
    return label if unnamed else f"{name} ({label})"


def merge_studies(
    studies: Sequence[Study],
    configurations: Sequence[Sequence[Configuration]],
    host_renames_by_session: Sequence[NewNameByOld],
) -> Study:
    """All studies as one: their configurations side by side, their workloads joined by id.

    `configurations` are each session's under their new ids, `host_renames_by_session` new names by
    the old ones. What a study has once, as its method, is the first one's.
    """
    pairs = list(zip(configurations, host_renames_by_session, strict=True))
    specs = {
        named.name: named
        for study, names in zip(studies, host_renames_by_session, strict=True)
        for named in (with_renamed_hosts(spec, names) for spec in study.hosts)
    }
    first = studies[0]
    return replace(
        first,
        id=_distinct_list_text(study.id for study in studies),
        title=_distinct_list_text(study.title for study in studies),
        question=" ".join(dict.fromkeys(study.question for study in studies if study.question)),
        source=_distinct_list_text(study.source for study in studies if study.source),
        configurations=tuple(
            with_renamed_hosts(configuration, names)
            for own, names in pairs
            for configuration in own
        ),
        hosts=tuple(specs.values()),
        workloads=_workloads_with_merged_sweeps(studies),
        scale=_distinct_list_text(study.scale for study in studies),
        overrides=(),
        inventory="",
        guests=next((study.guests for study in studies if study.guests is not None), None),
    )


def workload_ids_without_differences(studies: Sequence[Study]) -> frozenset[str]:
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


def workload_versions_titled_by_session(
    session_labels: Sequence[str], studies: Sequence[Study]
) -> tuple[Workload, ...]:
    """Every workload as it was requested; what one id means differently has labels in its title."""
    by_id: dict[str, list[tuple[Workload, list[str]]]] = {}
    for label, study in zip(session_labels, studies, strict=True):
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


def merge_plans(
    plans: Sequence[Plan],
    runs: Iterable[PlannedRun],
    candidates: Iterable[Point],
    data_sets_with_configurations: Iterable[tuple[DataSet, str]],
) -> Plan:
    """All plans as one; `runs`, `candidates` and configurations have their new names."""
    sets = {
        (data_set.id, data_set.bytes_per_job, data_set.numjobs): replace(
            data_set, configuration=name
        )
        for data_set, name in data_sets_with_configurations
    }
    budgets = [plan.demand for plan in plans]
    return Plan(
        study=_distinct_list_text(plan.study for plan in plans),
        digest=content_digest([plan.digest for plan in plans]),
        data_sets=tuple(sets.values()),
        runs=tuple(runs),
        demand=PlanDemand(
            seconds=sum(budget.seconds for budget in budgets),
            time_items=tuple(item for budget in budgets for item in budget.time_items),
            layout_bytes_per_host=max(budget.layout_bytes_per_host for budget in budgets),
            write_bytes_estimate=sum(budget.write_bytes_estimate for budget in budgets),
            free_bytes_needed_per_host=max(budget.free_bytes_needed_per_host for budget in budgets),
            open_write_s=sum(budget.open_write_s for budget in budgets),
            open_write_most_s=sum(budget.open_write_most_s for budget in budgets),
        ),
        destroyed_device_texts=tuple(
            dict.fromkeys(name for plan in plans for name in plan.destroyed_device_texts)
        ),
        candidate_points=tuple(candidates),
        extra_run_count=sum(plan.extra_run_count for plan in plans),
    )


def merge_session_documents(
    session_labels: Sequence[str], sessions: Sequence[SessionDocument], study: Study
) -> SessionDocument:
    """What stands for all sessions: the worst status, the first moment, every version."""
    worst = min((session.status for session in sessions), key=_STATUSES_WORST_FIRST.index)
    reasons = [
        f"{label}: {session.reason}"
        for label, session in zip(session_labels, sessions, strict=True)
        if session.reason and session.status is worst
    ]
    return replace(
        sessions[0],
        id=_distinct_list_text(session.id for session in sessions),
        study=study.id,
        title=study.title,
        scale=study.scale,
        overrides=(),
        command=(),
        iolab_version=_distinct_list_text(session.iolab_version for session in sessions),
        agent_version=_distinct_list_text(
            session.agent_version for session in sessions if session.agent_version
        )
        or None,
        created_real_ns=min(session.created_real_ns for session in sessions),
        status=worst,
        reason=" ".join(reasons) or None,
        history=(),
        files=(),
    )


def _workloads_with_merged_sweeps(studies: Sequence[Study]) -> tuple[Workload, ...]:
    joined: dict[str, Workload] = {}
    for study in studies:
        for workload in study.workloads:
            first = joined.get(workload.id)
            joined[workload.id] = (
                workload if first is None else _workload_with_merged_sweeps(first, workload)
            )
    return tuple(joined.values())


def _workload_with_merged_sweeps(first: Workload, second: Workload) -> Workload:
    """The workload with the values of both; numbers rise, words stand in the first one's order."""
    values: dict[str, dict[int | str, None]] = {}
    for axis in (*first.sweep, *second.sweep):
        values.setdefault(axis.name, {}).update(dict.fromkeys(axis.values))
    return replace(
        first,
        sweep=tuple(Axis(name, _sorted_if_numbers(tuple(of))) for name, of in values.items()),
    )


def _sorted_if_numbers(values: tuple[int | str, ...]) -> tuple[int | str, ...]:
    numbers = [value for value in values if isinstance(value, int)]
    return tuple(sorted(numbers)) if len(numbers) == len(values) else values


def _distinct_list_text(texts: Iterable[str]) -> str:
    return list_text(list(dict.fromkeys(texts)), TEXTS_SHOWN)


def merge_sessions(sources: Sequence[tuple[str, StoredSessionReader]]) -> StoredSessionReader:
    """The sessions, each with a label for it, as one; a single one is itself.

    UsageError for too many of them, and for one that is given twice. Whether they may be compared
    is for the caller to decide: see `session_union_of_source`.
    """
    if len(sources) == 1:
        return sources[0][1]
    _require_mergeable(sources)
    return _build_merged_session(sources)


def session_union_of_source(source: StoredSessionReader) -> SessionUnion:
    """What united sessions are by themselves, and in what they differ.

    Of a single one `NO_UNION`.
    """
    return source.session_union if isinstance(source, MergedSession) else NO_UNION


class SessionPart(Record):
    """One session on its way into the union.

    `results` are as the session shows them by itself. `new_configuration_id_by_old` are the new ids
    of its configurations, `new_host_name_by_old` new names, `new_digest_by_old` new digests;
    `earlier_run_count` is how many runs come before its own.
    """

    number: int
    label: str
    source: StoredSessionReader
    study: Study
    plan: Plan
    results: tuple[RunResult, ...]
    new_configuration_id_by_old: NewNameByOld
    new_host_name_by_old: NewNameByOld
    new_digest_by_old: NewNameByOld
    earlier_run_count: int

    def merged_result(self, result: RunResult) -> RunResult:
        """The result among those of all sessions; a session is one segment of the whole."""
        return replace(
            with_renamed_hosts(result, self.new_host_name_by_old),
            configuration=self.new_configuration_id_by_old[result.configuration],
            digest=self.new_digest_by_old[result.digest],
            segment=self.number * SEGMENTS_PER_SESSION,
            order=result.order + self.earlier_run_count if result.order else 0,
        )

    def merged_point(self, point: Point) -> Point:
        """The point among those of all sessions."""
        return replace(
            with_renamed_hosts(point, self.new_host_name_by_old),
            configuration=self.new_configuration_id_by_old[point.configuration],
            digest=self.new_digest_by_old[point.digest],
        )

    def merged_run(self, run: PlannedRun) -> PlannedRun:
        """The run in the plan of all sessions."""
        return replace(
            run, order=run.order + self.earlier_run_count, point=self.merged_point(run.point)
        )


class MergedSession(Record):
    """Several sessions as one `StoredSessionReader`, whose runs lead back to their session."""

    session: SessionDocument
    study: Study
    plan: Plan
    facts: dict[str, HostFacts]
    session_union: SessionUnion
    merged_results: tuple[RunResult, ...]
    damage_list: tuple[Damage, ...]
    parts_by_digest: Mapping[str, tuple[SessionPart, str]]
    facts_of_all_starts: tuple[HostFactsAtStart, ...] = ()

    def results(self) -> tuple[RunResult, ...]:
        """The results of all sessions, one session after the other."""
        return self.merged_results

    def damage_of_documents_and_manifests(self) -> tuple[Damage, ...]:
        """The runs of all sessions that cannot be read."""
        return self.damage_list

    def target_ledger(self) -> TargetLedger:
        """The rounds of all sessions; their targets are those of several ledgers."""
        parts = {part.number: part for part, _ in self.parts_by_digest.values()}
        return TargetLedger(
            rounds=tuple(
                replace(
                    series,
                    configuration=part.new_configuration_id_by_old.get(
                        series.configuration, series.configuration
                    ),
                )
                for _, part in sorted(parts.items())
                for series in part.source.target_ledger().rounds
            )
        )

    def manifest(self, digest: str, repeat: int) -> Manifest:
        """A committed run's manifest."""
        part, own = self._session_part_and_digest(digest)
        manifest = with_renamed_hosts(part.source.manifest(own, repeat), part.new_host_name_by_old)
        return replace(manifest, run=part.merged_run(manifest.run))

    def intervals(self, digest: str, repeat: int) -> IntervalTable:
        """The intervals of a committed run."""
        part, own = self._session_part_and_digest(digest)
        return part.source.intervals(own, repeat)

    def bins(self, digest: str, repeat: int) -> BinTable:
        """The latency bins of a committed run."""
        part, own = self._session_part_and_digest(digest)
        return part.source.bins(own, repeat)

    def counters(self, digest: str, repeat: int) -> CounterTable:
        """The telemetry of a committed run."""
        part, own = self._session_part_and_digest(digest)
        return part.source.counters(own, repeat)

    def _session_part_and_digest(self, digest: str) -> tuple[SessionPart, str]:
        """The session of a point and its digest there."""
        if digest not in self.parts_by_digest:
            raise StoreError(
                f"None of the sessions has a point {digest}.", "List the runs with `iolab show`."
            )
        return self.parts_by_digest[digest]


def _require_mergeable(sources: Sequence[tuple[str, StoredSessionReader]]) -> None:
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
        Fault(
            f"{list_text(names, SESSIONS_MAX)} are one session, {session}.",
            "Give it once.",
        )
        for session, names in users.items()
        if len(names) > 1
    )
    if faults:
        raise UsageError("A session is given more than once.", "Give each of them once.", faults)


def _build_merged_session(sources: Sequence[tuple[str, StoredSessionReader]]) -> MergedSession:
    labels, readers = (
        names_with_duplicates_numbered(label for label, _ in sources),
        [source for _, source in sources],
    )
    studies = [source.study for source in readers]
    facts = [source.facts for source in readers]
    renamed = label_duplicate_configurations(labels, [study.configurations for study in studies])
    shown = [study_and_results_with_session_checks(source) for source in readers]
    named = [
        _renamed_configurations_by_old_id(study, own, own_names)
        for study, (own, _), own_names in zip(studies, shown, renamed, strict=True)
    ]
    hosts = new_host_names_by_session(
        labels, [_study_host_names(study) for study in studies], facts
    )
    study = merge_studies(studies, [tuple(by_id.values()) for by_id in named], hosts)
    parts = tuple(
        _session_parts(
            sources, shown, named, hosts, (study, workload_ids_without_differences(studies))
        )
    )
    session = merge_session_documents(labels, [source.session for source in readers], study)
    return MergedSession(
        session=session,
        study=study,
        plan=merge_plans(
            [part.plan for part in parts],
            [part.merged_run(run) for part in parts for run in part.plan.runs],
            [part.merged_point(point) for part in parts for point in part.plan.candidate_points],
            [
                (data_set, part.new_configuration_id_by_old[data_set.configuration])
                for part in reversed(parts)
                for data_set in part.plan.data_sets
            ],
        ),
        facts={
            names.get(key, key): host
            for names, host_facts in zip(reversed(hosts), reversed(facts), strict=True)
            for key, host in host_facts.items()
        },
        session_union=_merged_session_origins(parts, renamed),
        merged_results=tuple(
            part.merged_result(result) for part in parts for result in part.results
        ),
        damage_list=tuple(
            replace(damage, path=f"{part.label}: {damage.path}")
            for part in parts
            for damage in part.source.damage_of_documents_and_manifests()
        ),
        parts_by_digest={
            new: (part, own) for part in parts for own, new in part.new_digest_by_old.items()
        },
    )


def _study_host_names(study: Study) -> list[str]:
    """Every host that a study names, clients first."""
    named = (
        name
        for configuration in study.configurations
        for name in (*configuration.hosts, *configuration.storage)
    )
    return list(dict.fromkeys((*named, *(spec.name for spec in study.hosts))))


def _renamed_configurations_by_old_id(
    study: Study, study_without_left_out_hosts: Study, renamed: Sequence[Configuration]
) -> dict[str, Configuration]:
    """Each configuration that a session shows under its new name, by its old id.

    `renamed` are those of its study under new names; those that went without some hosts are called
    after them.
    """
    pairs = list(zip(study.configurations, renamed, strict=True))
    by_id = {}
    for configuration in study_without_left_out_hosts.configurations:
        owners = [pair for pair in pairs if _is_same_or_host_subset(configuration, pair[0])]
        old, new = max(owners, key=lambda pair: len(pair[0].id))
        by_id[configuration.id] = replace(
            configuration,
            id=new.id + configuration.id.removeprefix(old.id),
            title=new.title + configuration.title.removeprefix(old.title),
        )
    return by_id


def _is_same_or_host_subset(configuration: Configuration, full: Configuration) -> bool:
    """Whether a configuration is the other one, or that without some hosts."""
    return configuration.id == full.id or configuration.id.startswith(f"{full.id} without ")


def _session_parts(
    sources: Sequence[tuple[str, StoredSessionReader]],
    studies_and_results: Sequence[tuple[Study, tuple[RunResult, ...]]],
    configurations_by_id: Sequence[Mapping[str, Configuration]],
    host_renames_by_session: Sequence[NewNameByOld],
    study_and_identical_workloads: tuple[Study, frozenset[str]],
) -> Iterator[SessionPart]:
    before = 0
    labels = names_with_duplicates_numbered(label for label, _ in sources)
    for index, (_, source) in enumerate(sources):
        results, plan = studies_and_results[index][1], source.plan
        ids = {old: configuration.id for old, configuration in configurations_by_id[index].items()}
        yield SessionPart(
            number=index + 1,
            label=labels[index],
            source=source,
            study=source.study,
            plan=plan,
            results=results,
            new_configuration_id_by_old=ids,
            new_host_name_by_old=host_renames_by_session[index],
            new_digest_by_old=_new_digests_by_old_digest(
                source.session.id, plan, results, ids, study_and_identical_workloads
            ),
            earlier_run_count=before,
        )
        orders = [*(run.order for run in plan.runs), *(result.order for result in results)]
        before += max(orders, default=0)


def _new_digests_by_old_digest(
    session_id: str,
    plan: Plan,
    results: Iterable[RunResult],
    configuration_ids: NewNameByOld,
    study_and_identical_workloads: tuple[Study, frozenset[str]],
) -> dict[str, str]:
    """The new digest of each point.

    It is that of the joined study where all sessions ask for the workload alike, so that whatever
    follows from a study's points, as a curve with its knee, is found there.
    """
    study, alike = study_and_identical_workloads
    points = {
        point.digest: (point.configuration, point.workload, point.axis_values)
        for point in plan.points
    }
    for result in results:
        points.setdefault(
            result.digest, (result.configuration, result.workload, result.axis_values)
        )
    return {
        own: build_point_at(study, configuration_ids[configuration], workload, axis).digest
        if workload in alike
        else content_digest({"session": session_id, "point": own})
        for own, (configuration, workload, axis) in points.items()
    }


def _merged_session_origins(
    session_parts: Sequence[SessionPart], configurations: Sequence[Sequence[Configuration]]
) -> SessionUnion:
    members = tuple(
        UnionMember(
            label=part.label,
            session=_with_output_folder_name_only(part.source.session),
            study=part.study,
            plan=part.plan,
            results=part.results,
            damaged_run_count=sum(
                1 for damage in part.source.damage_of_documents_and_manifests() if damage.run_name
            ),
            segment_starts_ns=tuple(start.real_ns for start in part.source.facts_of_all_starts),
            configuration_titles=tuple(configuration.title for configuration in own),
        )
        for part, own in zip(session_parts, configurations, strict=True)
    )
    traces = {
        (part.new_digest_by_old[run.digest], run.repeat): RunSource(
            part.label, run.digest, run.repeat
        )
        for part in session_parts
        for run in part.results
    }
    return SessionUnion(members, traces, tuple(_differences_from_first_session(session_parts)))


def _differences_from_first_session(
    session_parts: Sequence[SessionPart],
) -> Iterator[SessionDifferences]:
    """In what each further session differs from the first one.

    Each configuration is held against that of its id, where there is none against the first.
    """
    sides = _sides_by_configuration(session_parts[0])
    first = next(iter(sides.values()))
    for part in session_parts[1:]:
        differing: dict[Difference, None] = {}
        for name, side in _sides_by_configuration(part).items():
            differing |= dict.fromkeys(find_differences(sides.get(name, first), side))
        yield SessionDifferences(
            part.label,
            tuple(sorted(differing, key=lambda difference: not difference.forbids_comparison)),
        )


def _sides_by_configuration(session_part: SessionPart) -> dict[str, ComparisonSide]:
    return {
        configuration.id: read_comparison_side(
            session_part.label, session_part.source, configuration.id
        )
        for configuration in session_part.study.configurations
    }


def _with_output_folder_name_only(session: SessionDocument) -> SessionDocument:
    """The session with a command line that names its folder, and not where that lies."""
    words: list[str] = []
    for word in session.command:
        option, mark, value = word.partition("=")
        if words and words[-1] in _OUTPUT_OPTIONS:
            words.append(PurePath(word).name)
        elif mark and option in _OUTPUT_OPTIONS:
            words.append(f"{option}={PurePath(value).name}")
        else:
            words.append(word)
    return replace(session, command=tuple(words))
