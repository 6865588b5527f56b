"""What studies and plans ask of a kind of load, and of a kind of host that a session makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from msgspec import NODEFAULT

from iolab.core.engine import EngineName
from iolab.core.host import DeviceFacts, HostFacts, HostProgram, HostSpec, TargetProbe
from iolab.core.run import NeighbourPlan, Plan, PlannedRun, Point
from iolab.core.study import Study
from iolab.core.workload import Workload
from iolab.errors import Fault
from iolab.record import Record, default_values, field_names
from iolab.study.document import StudyDocument
from iolab.study.file import StudyFileSchema, StudySection
from iolab.study.forecast import VerdictCap, run_length_verdict_caps
from iolab.study.load_tables import LoadTable
from iolab.study.tables import StudyTables, TableItem, table_name_capitalised
from iolab.study.targets import Target
from iolab.study.writes import RunWrites
from iolab.text import list_text

TimeItem = tuple[str, float]
"""What takes time, and its seconds."""


VersionArgvByProgram = Mapping[str, list[str]]
"""Programs, each with the command whose first line of output is its version."""

KnownFacts = Mapping[str, HostFacts] | None
"""What is known of hosts, by `Target.key`; None where they were not asked."""


class TimeAndSpaceDemand(Record):
    """What the runs of one kind of load take: seconds and bytes.

    `load_time_items` is the load itself, `generator_limit_time_items` what is measured once for all
    runs. The session itself prepares `prepared_run_count`; kinds that prepare theirs say in
    `own_preparation_time_items` all that they take. With a rule the load may end `avoidable_s`
    earlier. `set_up_bytes` are written before runs, on all hosts; `space_bytes` are of the host
    that needs most.
    """

    load_time_items: tuple[TimeItem, ...] = ()
    generator_limit_time_items: tuple[TimeItem, ...] = ()
    own_preparation_time_items: tuple[TimeItem, ...] = ()
    prepared_run_count: int = 0
    avoidable_s: float = 0.0
    set_up_bytes: int = 0
    space_bytes: int = 0


class BootedHostDemand(Record):
    """What hosts take that a session makes: bytes are of each node."""

    time_items: tuple[TimeItem, ...]
    image_bytes_per_node: int
    space_bytes_per_node: int


class SettingsSection(StudySection, Protocol):
    """A table of its own with what the study says by it."""

    @property
    def study_field(self) -> str:
        """The study's field that holds its settings."""

    def settings(self, tables: StudyTables) -> object:
        """The settings that the table says."""


class LoadStudyKind:
    """The part of a kind of load in studies and plans; it says what is different about it.

    Without more it is load of one process a host for as long as the method says, each run by
    itself, whose `[[workload]]` has no faults but those of single keys.
    """

    engines_by_table: Mapping[type[LoadTable], tuple[EngineName, ...]] = MappingProxyType({})
    """Its tables of a workload, each with the engines that it may name."""

    example_by_key: Mapping[str, str] = MappingProxyType({})
    """What to write for each of its keys that may not be left out."""

    advice_by_unknown_key: Mapping[str, str] = MappingProxyType({})
    """What to do about keys that it has not, but that its tools know."""

    on_device_filesystem: bool = False
    """Whether it runs on a file system that the session makes on a device."""

    uses_object_store: bool = False
    """Whether its load goes to an object store, and not to a folder or device."""

    settings_section: SettingsSection | None = None
    """Its table of its own in study files, if it has one."""

    doctor_programs: tuple[HostProgram, ...] = ()
    """What `iolab doctor` looks for."""

    @property
    def engines(self) -> tuple[EngineName, ...]:
        """Every engine that makes its load."""
        return tuple(name for names in self.engines_by_table.values() for name in names)

    def runs_of_kind(self, runs: Iterable[PlannedRun]) -> tuple[PlannedRun, ...]:
        """Its runs among these."""
        return tuple(run for run in runs if run.point.job.engine in self.engines)

    def job_text(self, job: Any) -> str:  # noqa: ANN401 - a job of its own
        """What a job of its own asks one client to do, in a line."""
        usual = default_values(type(job))
        values = ((name, getattr(job, name)) for name in field_names(job) if name != "engine")
        texts = (f"{name} {value}" for name, value in values if value != usual.get(name, NODEFAULT))
        return f"{job.engine}: {', '.join(texts)}"

    def version_argv_by_probed_program(self, study: Study) -> VersionArgvByProgram:  # noqa: ARG002 - of kinds made by hosts' programs
        """What clients of a study are asked for; the name of an engine stands for its program."""
        return {}

    def add_workload_faults(self, document: StudyDocument, tables: StudyTables) -> None:
        """Add every fault of its workloads that no single key shows."""

    def add_device_faults(self, document: StudyDocument, tables: StudyTables) -> None:
        """Add the faults of its workloads where a target is a device: they all need files."""
        for item in tables.items_by_section["workload"]:
            if type(item.table) in self.engines_by_table:
                message = (
                    f"{table_name_capitalised(document, item.key_path)} needs files, but the "
                    "target is a device."
                )
                hint = "Leave it out, or give a directory as the target."
                document.add_fault(item.key_path, message, hint)

    def add_point_faults(self, document: StudyDocument, study: Study) -> None:
        """Add the faults that only show in the points."""

    def build_workload(self, table_item: TableItem, table: Any, tables: StudyTables) -> Workload:  # noqa: ANN401, ARG002
        """The workload of one of its tables, which has no faults."""
        return Workload(
            id=table.id,
            title=table.title or table.id,
            job=table.build_job(),
            sweep=table.sweep_axes(table_item.values_as_written),
            indicator=table.headline_indicator,
            repeats=table.repeats,
            search_goal=table.workload_objective,
        )

    def time_and_space_demand(
        self,
        study: Study,
        runs: Sequence[PlannedRun],
        host_write_bytes_per_s: float,  # noqa: ARG002 - of kinds that know what they write
        host_kind: HostStudyKind,  # noqa: ARG002 - as above
    ) -> TimeAndSpaceDemand:
        """What its runs among these take, where one host writes at that rate."""
        own_runs = self.runs_of_kind(runs)
        if not own_runs:
            return TimeAndSpaceDemand()
        seconds = sum(self.expected_run_seconds(study, run.point) for run in own_runs)
        message = f"{len(own_runs)} runs of {list_text(self.engines)}"
        return TimeAndSpaceDemand(
            load_time_items=((message, seconds),), prepared_run_count=len(own_runs)
        )

    def writes_of_run(self, study: Study, point: Point, host_kind: HostStudyKind) -> RunWrites:  # noqa: ARG002 - of kinds that write
        """What one run of its own writes."""
        return RunWrites()

    def neighbour_writes(
        self,
        study: Study,  # noqa: ARG002 - of kinds that are a neighbour's
        neighbour: NeighbourPlan,  # noqa: ARG002 - as above
        host_kind: HostStudyKind,  # noqa: ARG002 - as above
    ) -> RunWrites:
        """What a load that an event begins writes beside one run."""
        return RunWrites()

    def expected_run_seconds(self, study: Study, point: Point) -> float:
        """Seconds of one run's load, with what it takes beyond the overhead of every run."""
        return study.method.load_seconds_range[1] if point.job.engine in self.engines else 0.0

    def verdict_caps(self, study: Study, runs: tuple[PlannedRun, ...]) -> Iterable[VerdictCap]:
        """What keeps its runs among these from a better verdict: that they are too short."""
        return run_length_verdict_caps(study, self.runs_of_kind(runs))

    def readiness_faults(
        self,
        study: Study,  # noqa: ARG002 - of kinds that need more than a folder and a program
        plan: Plan,  # noqa: ARG002 - as above
        facts_by_target: Mapping[str, HostFacts],  # noqa: ARG002 - as above
        device_facts_by_target: Mapping[str, DeviceFacts],  # noqa: ARG002 - as above
    ) -> list[Fault]:
        """Why hosts or targets cannot serve it; mappings are by `Target.key`."""
        return []

    def engine_program_faults(
        self,
        plan: Plan,  # noqa: ARG002 - of kinds whose engines are tools of hosts
        target: Target,  # noqa: ARG002 - as above
        host_facts: HostFacts,  # noqa: ARG002 - as above
    ) -> list[Fault]:
        """Why its engines cannot serve on a target's host, which is asked once."""
        return []

    def plan_with_demand_from_facts(
        self,
        study: Study,  # noqa: ARG002 - of most
        plan: Plan,
        facts_by_target: KnownFacts,  # noqa: ARG002 - of most
    ) -> Plan:
        """The plan, with what is known of hosts in its demand."""
        return plan

    def plan_lines(self, study: Study, plan: Plan) -> Iterable[tuple[str, str]]:  # noqa: ARG002
        """What a plan tells of its runs beside their jobs, each text under a heading."""
        return ()

    def plan_notes(self, study: Study, plan: Plan, facts_by_target: KnownFacts) -> Iterable[str]:  # noqa: ARG002
        """What should be known before its runs, and is no reason against them."""
        return ()

    def plan_digest_content(self, study: Study) -> Mapping[str, object]:  # noqa: ARG002 - of most
        """What else makes two plans differ, by name; empty where the study has none of it."""
        return {}


class HostStudyKind(Protocol):
    """The part of a kind of host that sessions make, in studies and plans."""

    @property
    def settings_section(self) -> SettingsSection:
        """Its table of its own in study files."""

    def plan_digest_content(self, study: Study) -> Mapping[str, object]:
        """What of them makes two plans differ, by name; empty where the study has none."""

    def verdict_caps(self, study: Study, runs: tuple[PlannedRun, ...]) -> Iterable[VerdictCap]:
        """What of them keeps these runs from a better verdict."""

    def plan_lines(self, study: Study) -> Iterable[tuple[str, str]]:
        """What a plan tells of them, each text under a heading."""

    def plan_notes(self, study: Study, plan: Plan, facts_by_target: KnownFacts) -> Iterable[str]:
        """What should be known before they are made, and is no reason against it."""

    def node_targets(self, study: Study) -> tuple[Target, ...]:
        """What there is before the session of what they need; none where it makes none."""

    def version_argv_by_probed_program(self, study: Study) -> VersionArgvByProgram:
        """What those nodes are asked for."""

    def booted_hosts_plan_document(
        self, study: Study, facts_by_target: KnownFacts
    ) -> dict[str, Any] | None:
        """Those of a study in `iolab plan --json`; None where it has none."""

    @property
    def example_by_key(self) -> Mapping[str, str]:
        """What to write for each key of its table that may not be left out."""

    def add_host_faults(self, document: StudyDocument, tables: StudyTables) -> None:
        """Add every fault of such hosts that no single key shows."""

    def require_capable_nodes(
        self,
        study: Study,
        plan: Plan,
        facts_by_host: Mapping[str, HostFacts],
        probes: Mapping[str, TargetProbe],
    ) -> None:
        """Nothing when the nodes can carry them, before any is made; else HostError with why not.

        Mappings are by the node's name.
        """

    def booted_host_specs(
        self, tables: StudyTables, written_hosts: Iterable[HostSpec]
    ) -> tuple[HostSpec, ...]:
        """The hosts that the session makes beside those that are written."""

    def knee_load_candidates_per_node(
        self, tables: StudyTables, loads_per_node: Sequence[int]
    ) -> tuple[int, ...]:
        """Of these numbers of hosts on a node those at which its load may turn."""

    def iops_limit_per_guest_disk(self, study: Study) -> int | None:
        """How many I/Os a second each such host is held to, None for none."""

    def booted_host_demand(
        self, study: Study, run_count: int, node_write_bytes_per_s: float
    ) -> BootedHostDemand:
        """What the hosts of that many runs take."""


class StudyKinds(Record):
    """The kinds of load that a study may have, and the kind of host that a session may make."""

    loads: tuple[LoadStudyKind, ...]
    hosts: HostStudyKind

    def kind_for_engine(self, engine_name: EngineName) -> LoadStudyKind:
        """The kind of load that an engine makes; KeyError for one of none."""
        return {name: kind for kind in self.loads for name in kind.engines}[engine_name]

    def writes_of_run(self, study: Study, point: Point) -> RunWrites:
        """What one run of a point writes on all hosts."""
        return self.kind_for_engine(point.job.engine).writes_of_run(study, point, self.hosts)

    def neighbour_writes(self, study: Study, neighbour: NeighbourPlan) -> RunWrites:
        """What a load that an event begins writes beside one run, on all hosts."""
        kind = self.kind_for_engine(neighbour.point.job.engine)
        return kind.neighbour_writes(study, neighbour, self.hosts)

    def kind_for_table(self, table_type: type[LoadTable]) -> LoadStudyKind:
        """The kind of load that a table describes; StopIteration for one of none."""
        return next(kind for kind in self.loads if table_type in kind.engines_by_table)

    @property
    def doctor_programs(self) -> tuple[HostProgram, ...]:
        """What `iolab doctor` looks for on clients."""
        return tuple(program for kind in self.loads for program in kind.doctor_programs)

    def version_argv_by_probed_program(self, study: Study) -> VersionArgvByProgram:
        """What clients of a study are asked for."""
        return {
            name: argv
            for kind in self.loads
            for name, argv in kind.version_argv_by_probed_program(study).items()
        }

    @property
    def sections(self) -> tuple[SettingsSection, ...]:
        """The tables of their own that kinds have in study files."""
        sections = (
            kind.settings_section for kind in self.loads if kind.settings_section is not None
        )
        return (*sections, self.hosts.settings_section)

    def plan_with_demand_from_facts(
        self, study: Study, plan: Plan, facts_by_target: KnownFacts
    ) -> Plan:
        """The plan, with what is known of hosts in its demand."""
        for kind in self.loads:
            plan = kind.plan_with_demand_from_facts(study, plan, facts_by_target)
        return plan

    def plan_notes(self, study: Study, plan: Plan, facts_by_target: KnownFacts) -> Iterator[str]:
        """What should be known before the plan runs, and is no reason against it."""
        for kind in self.loads:
            yield from kind.plan_notes(study, plan, facts_by_target)
        yield from self.hosts.plan_notes(study, plan, facts_by_target)

    def verdict_caps(self, study: Study, runs: tuple[PlannedRun, ...]) -> Iterator[VerdictCap]:
        """What keeps these runs from a better verdict."""
        limits = [limit for kind in self.loads for limit in kind.verdict_caps(study, runs)]
        # Runs of several kinds are too short for one reason, and lengthened by one option.
        short = {
            digest for limit in limits if limit.is_run_length for digest in limit.point_digests
        }
        yield from run_length_verdict_caps(
            study, (run for run in runs if run.point.digest in short)
        )
        yield from (limit for limit in limits if not limit.is_run_length)
        yield from self.hosts.verdict_caps(study, runs)

    def plan_digest_content(self, study: Study) -> dict[str, object]:
        """What single kinds of load and host have to say of what makes two plans differ."""
        identities = {
            key: value
            for kind in self.loads
            for key, value in kind.plan_digest_content(study).items()
        }
        return {**identities, **self.hosts.plan_digest_content(study)}

    @property
    def file_schema(self) -> StudyFileSchema:
        """What of a study file is theirs."""
        return StudyFileSchema(
            {table: names for kind in self.loads for table, names in kind.engines_by_table.items()},
            self.sections,
            {**self.hosts.example_by_key, **_example_by_study_key(self.loads)},
            {
                table: kind.advice_by_unknown_key
                for kind in self.loads
                for table in kind.engines_by_table
            },
        )


def _example_by_study_key(loads: Iterable[LoadStudyKind]) -> dict[str, str]:
    return {key: text for kind in loads for key, text in kind.example_by_key.items()}
