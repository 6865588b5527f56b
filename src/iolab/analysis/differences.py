"""The sides of a comparison, and everything else than results in which they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Final, Protocol

from msgspec.structs import replace

from iolab.analysis.check import ACKNOWLEDGED, ON_DEVICES
from iolab.analysis.pairs import WorkloadAndAxisValues
from iolab.analysis.points import PointSummary, summarise_points
from iolab.analysis.stored_results import StoredSession, study_and_results_with_session_checks
from iolab.core.configuration import Configuration
from iolab.core.host import HostFacts, is_emulator
from iolab.core.metric import RunResult
from iolab.core.run import Plan, Point
from iolab.core.stopping import StoppingRuleSettings
from iolab.core.study import BootedGuestsConfig, Method, ServerConfig, Study
from iolab.core.workload import AnyJob
from iolab.errors import Fault, UsageError
from iolab.record import Record, field_names
from iolab.store.documents import Manifest, SessionDocument
from iolab.text import (
    LISTED_WORDS,
    counted_noun,
    list_text,
    nearest_word,
    one_line,
    quote_value,
)
from iolab.units import format_bytes

HYPERVISOR: Final = "hypervisor"

MACHINE: Final = "machine"
"""Untold in sessions of before it was recorded, which is no difference."""

ANY_WORKLOAD: Final = "load"
"""What workloads that are compared with each other are called on both sides."""

NOT_SET: Final = "not set"
"""What stands for a value that a side does not have."""

_OPTIONS: Final = ("options", "settings")
"""Settings of a job that are a tool's own options, each a name and a value."""


class MeasuredSession(StoredSession, Protocol):
    """A session as far as a side of it is read; `iolab.store.reader.SessionReader` is one."""

    @property
    def session(self) -> SessionDocument:
        """What the session is."""

    @property
    def plan(self) -> Plan:
        """The plan that it executes."""

    @property
    def facts(self) -> Mapping[str, HostFacts]:
        """The facts of each host by name."""

    def manifest(self, digest: str, repeat: int) -> Manifest:
        """A committed run's manifest."""


class ComparisonSide(Record, dict=True):
    """A configuration, or one workload, as a session measured it.

    `name` is how the user called it. `points` are those planned or measured, `engine_versions` and
    `analysis_versions` those of its first and its last run.
    """

    name: str
    session_id: str
    created_real_ns: int
    versions: Mapping[str, str]
    study: Study
    configuration: Configuration
    points: Mapping[WorkloadAndAxisValues, Point]
    facts: Mapping[str, HostFacts]
    results: tuple[RunResult, ...]
    engine_versions: tuple[str, ...] = ()
    analysis_versions: tuple[int, ...] = ()

    @cached_property
    def summaries_by_point(self) -> dict[WorkloadAndAxisValues, PointSummary]:
        """Each point that has a committed run."""
        points = summarise_points(self.results, self.study)
        return {(point.key.workload, point.key.axis_values): point for point in points}

    def is_same_measurement_as(self, other: ComparisonSide) -> bool:
        """Whether both are the very same measurement, maybe a copy of it."""
        return (self.session_id, self.configuration.id) == (
            other.session_id,
            other.configuration.id,
        )


def read_comparison_side(
    name: str, reader: MeasuredSession, configuration_id: str | None = None
) -> ComparisonSide:
    """One configuration of a session; UsageError where it is not clear which, or not there.

    In a session with one configuration, a workload may be named instead.
    """
    study, results = study_and_results_with_session_checks(reader)
    workload = _name_if_workload(study, configuration_id)
    chosen = _choose_configuration(name, study, None if workload else configuration_id)
    # A configuration that lost hosts has the points of the whole one.
    lost = {result.excluded_hosts for result in results if result.configuration == chosen.id}
    full_ids = {chosen.id.removesuffix(f" without {', '.join(names)}") for names in lost if names}
    own_results = tuple(result for result in results if result.configuration == chosen.id)
    manifests = [
        reader.manifest(run.digest, run.repeat) for run in (*own_results[:1], *own_results[-1:])
    ]
    session = reader.session
    engines = (host.engine_version for manifest in manifests for host in manifest.hosts)
    side = ComparisonSide(
        name=name,
        session_id=session.id,
        created_real_ns=session.created_real_ns,
        versions={"iolab": session.iolab_version, "agent": session.agent_version or ""},
        study=study,
        configuration=chosen,
        points={
            **_unplanned_point_by_workload_and_axes(reader, own_results),
            **{
                (point.workload, point.axis_values): point
                for point in reader.plan.points
                if point.configuration in {chosen.id, *full_ids}
            },
        },
        facts={
            host: facts
            for host, facts in reader.facts.items()
            if host
            in {*chosen.hosts, *chosen.storage, *_hypervisor_names_of_clients(study, chosen)}
        },
        results=own_results,
        engine_versions=tuple(sorted({version for version in engines if version})),
        analysis_versions=tuple(sorted({manifest.analysis.version for manifest in manifests})),
    )
    return _side_of_workload(side, workload) if workload else side


def _name_if_workload(study: Study, name: str | None) -> str | None:
    """The name where it is that of a workload, and of no configuration beside which it could be."""
    ids = {configuration.id for configuration in study.configurations}
    is_workload = len(ids) == 1 and name not in ids and name in study.workload_titles
    return name if is_workload else None


def _side_of_workload(side: ComparisonSide, workload_id: str) -> ComparisonSide:
    """The side with one workload alone, under a name that those of other sides have too."""
    configuration = replace(side.configuration, id=workload_id, title=workload_id)
    return replace(
        side,
        study=replace(
            side.study,
            configurations=(configuration,),
            workloads=(replace(side.study.workload(workload_id), id=ANY_WORKLOAD),),
        ),
        configuration=configuration,
        points={
            (ANY_WORKLOAD, axis): replace(point, workload=ANY_WORKLOAD)
            for (name, axis), point in side.points.items()
            if name == workload_id
        },
        results=tuple(
            replace(result, workload=ANY_WORKLOAD, configuration=workload_id)
            for result in side.results
            if result.workload == workload_id
        ),
    )


def _hypervisor_names_of_clients(study: Study, configuration: Configuration) -> set[str]:
    """The nodes that clients live on as guests."""
    return {host.hypervisor for host in study.hosts if host.name in configuration.hosts}


def _unplanned_point_by_workload_and_axes(
    reader: MeasuredSession, results: tuple[RunResult, ...]
) -> dict[WorkloadAndAxisValues, Point]:
    """The points that no plan foresaw: those of a search follow from what was measured."""
    planned = {point.digest for point in reader.plan.points}
    return {
        (result.workload, result.axis_values): reader.manifest(
            result.digest, result.repeat
        ).run.point
        for result in {
            result.digest: result for result in results if result.digest not in planned
        }.values()
    }


def _choose_configuration(name: str, study: Study, configuration_id: str | None) -> Configuration:
    by_id = {configuration.id: configuration for configuration in study.configurations}
    if configuration_id is None and len(by_id) == 1:
        return study.configurations[0]
    if configuration_id is None:
        example = f"{name}:{study.configurations[0].id}"
        raise UsageError(
            f"The session {quote_value(name)} has {len(by_id)} configurations.",
            f"Name one of them, as in {quote_value(example)}.",
        )
    if configuration_id not in by_id:
        raise UsageError(
            f"The session {quote_value(name)} cannot be compared as asked.",
            "Name a configuration of its study.",
            (
                Fault(
                    f"There is no configuration {quote_value(configuration_id)}.",
                    _configurations_hint(configuration_id, study.configurations),
                ),
            ),
        )
    return by_id[configuration_id]


def _configurations_hint(unknown_id: str, configurations: Sequence[Configuration]) -> str:
    """The nearest id, if any, and those that there are, each with its title."""
    near = nearest_word(unknown_id, [configuration.id for configuration in configurations])
    start = "" if near is None else f"Did you mean {quote_value(near)}? "
    names = [
        configuration.id
        if configuration.title == configuration.id
        else f"{configuration.id} ({one_line(configuration.title)})"
        for configuration in configurations
    ]
    are = "configuration is" if len(names) == 1 else "configurations are"
    return f"{start}The {are} {list_text(names, LISTED_WORDS)}."


class DifferenceArea(StrEnum):
    """What a difference is of."""

    STUDY = "study"
    WORKLOAD = "workload"
    METHOD = "method"
    TARGET = "target"
    HOSTS = "hosts"
    SOFTWARE = "software"


class Difference(Record):
    """One thing that is not the same on both sides.

    With `forbids_comparison` the two do not compare.
    """

    area: DifferenceArea
    setting: str
    baseline: str
    candidate: str
    forbids_comparison: bool = False
    workload: str = ""

    @property
    def subject(self) -> str:
        """What differs, of which workload."""
        return f"{self.workload}: {self.setting}" if self.workload else self.setting

    def __str__(self) -> str:
        return f"{self.subject}: {self.baseline} against {self.candidate}"


def find_differences(baseline: ComparisonSide, candidate: ComparisonSide) -> tuple[Difference, ...]:
    """Everything in which the sides differ, what forbids a comparison first."""
    every = [
        *_study_id_scale_and_override_differences(baseline, candidate),
        *_workload_differences(baseline, candidate),
        *_server_differences(baseline, candidate),
        *_guest_differences(baseline.study, candidate.study),
        *_method_differences(baseline.study, candidate.study),
        *_target_differences(baseline, candidate),
        *_write_acknowledgement_differences(baseline, candidate),
        *_host_differences(baseline.facts, candidate.facts),
        *_software_differences(baseline, candidate),
    ]
    return tuple(sorted(every, key=lambda difference: not difference.forbids_comparison))


def _study_id_scale_and_override_differences(
    baseline: ComparisonSide, candidate: ComparisonSide
) -> Iterator[Difference]:
    first, second = baseline.study, candidate.study
    yield from _difference_if_unequal(DifferenceArea.STUDY, "study", first.id, second.id)
    yield from _difference_if_unequal(DifferenceArea.STUDY, "scale", first.scale, second.scale)
    yield from _difference_if_unequal(
        DifferenceArea.STUDY, "overrides", " ".join(first.overrides), " ".join(second.overrides)
    )


def _workload_differences(
    baseline: ComparisonSide, candidate: ComparisonSide
) -> Iterator[Difference]:
    """The load of the points that both have: each field once a workload, where it first differs.

    What differs alike in all workloads is told once.
    """
    compared = list(
        dict.fromkeys(place[0] for place in baseline.points if place in candidate.points)
    )
    alike: dict[Difference, list[str]] = {}
    for difference in _point_setting_differences(baseline, candidate):
        alike.setdefault(replace(difference, workload=""), []).append(difference.workload)
    for difference, workloads in alike.items():
        every = len(workloads) > 1 and len(workloads) == len(compared)
        for workload in ["every workload"] if every else workloads:
            yield replace(difference, workload=workload)
    counts = (
        _client_count_or_guest_nodes_text(baseline),
        _client_count_or_guest_nodes_text(candidate),
    )
    yield from _difference_if_unequal(
        DifferenceArea.WORKLOAD, "clients", *counts, forbids_comparison=True
    )


def _point_setting_differences(
    baseline: ComparisonSide, candidate: ComparisonSide
) -> Iterator[Difference]:
    """Each setting that differs of a workload, once; it forbids unless it may be ignored."""
    named: set[tuple[str, str]] = set()
    for place, point in baseline.points.items():
        other = candidate.points.get(place)
        if other is None:
            continue
        workload = place[0]
        free = _ignored_setting_names(point.job, other.job)
        if type(point.job) is not type(other.job):
            settings: Iterable[tuple[str, object, object]] = [
                ("engine", point.job.engine, other.job.engine)
            ]
        else:
            settings = _setting_values_of_both_sides(point.job, other.job)
        hosts = (
            "host_numjobs",
            _sorted_own_job_counts_of_hosts(point.host_numjobs),
            _sorted_own_job_counts_of_hosts(other.host_numjobs),
        )
        for name, first, second in (*settings, hosts):
            if first != second and (workload, name) not in named:
                named.add((workload, name))
                values = (_setting_value_text(name, first), _setting_value_text(name, second))
                yield Difference(
                    DifferenceArea.WORKLOAD,
                    name.replace("_", " "),
                    *values,
                    forbids_comparison=name not in free,
                    workload=workload,
                )


def _ignored_setting_names(job: AnyJob, other_job: AnyJob) -> tuple[str, ...]:
    """The settings of two jobs that may differ: of one load made by two engines these, too."""
    laid_out = bool(job.data_directions and other_job.data_directions)
    places = (*job.path_options, *other_job.path_options)
    if laid_out and job.engine != other_job.engine:
        return (*places, *job.engine_settings, *other_job.engine_settings)
    return places


def _client_count_or_guest_nodes_text(side: ComparisonSide) -> str:
    """How many make the load; where points say how many guests of a node do, the nodes count."""
    hosts = side.configuration.hosts
    if not side.points or not all(point.per_node for point in side.points.values()):
        return str(len(hosts))
    return f"guests on {len({side.study.host(name).hypervisor for name in hosts})} nodes"


def _setting_values_of_both_sides(
    job: Record, other_job: object
) -> Iterator[tuple[str, object, object]]:
    """Every setting of two jobs of one kind by its name, those of sets of data and each option."""
    for name in field_names(job):
        first, second = getattr(job, name), getattr(other_job, name)
        if isinstance(first, Record):
            yield from _setting_values_of_both_sides(first, second)
        elif name in _OPTIONS:
            yield from _option_values_of_either_side(dict(first), dict(second))
        else:
            yield name, first, second


def _option_values_of_either_side(
    first: Mapping[str, object], second: Mapping[str, object]
) -> Iterator[tuple[str, object, object]]:
    """Each option of either side, None where it has none."""
    for name in dict.fromkeys((*first, *second)):
        yield name, first.get(name), second.get(name)


def _server_differences(
    baseline: ComparisonSide, candidate: ComparisonSide
) -> Iterator[Difference]:
    """The server that the load works against, where both sides do."""
    if not all(_may_use_study_server(side) for side in (baseline, candidate)):
        return
    first, second = baseline.study.server, candidate.study.server
    if first is not None and second is not None:
        yield from _server_or_guest_setting_differences("server", first, second)


def _guest_differences(baseline: Study, candidate: Study) -> Iterator[Difference]:
    """What guests have that were booted; how fast a disk may be at most is no difference of it."""
    if baseline.guests is None or candidate.guests is None:
        booted = (
            "existed already" if study.guests is None else "booted"
            for study in (baseline, candidate)
        )
        yield from _difference_if_unequal(DifferenceArea.WORKLOAD, "guests", *booted)
        return
    yield from _server_or_guest_setting_differences("guests", baseline.guests, candidate.guests)


def _server_or_guest_setting_differences(
    owner_text: str,
    first: ServerConfig | BootedGuestsConfig,
    second: ServerConfig | BootedGuestsConfig,
) -> Iterator[Difference]:
    for field in field_names(first):
        values = (getattr(first, field), getattr(second, field))
        texts = (_setting_value_text(field, value) for value in values)
        name, forbids = field.replace("_", " "), field in first.keys_that_must_agree
        yield from _difference_if_unequal(
            DifferenceArea.WORKLOAD, f"{owner_text}: {name}", *texts, forbids_comparison=forbids
        )


def _may_use_study_server(side: ComparisonSide) -> bool:
    return any(point.job.may_use_server_table for point in side.points.values())


def _sorted_own_job_counts_of_hosts(host_numjobs: tuple[tuple[str, int], ...]) -> tuple[int, ...]:
    """How many jobs the clients run that have a number of their own, whatever they are called."""
    return tuple(sorted(count for _, count in host_numjobs))


def _method_differences(baseline: Study, candidate: Study) -> Iterator[Difference]:
    """How long, how often and in which order was measured; the seed alone matters to nobody."""
    for name in dict.fromkeys(
        (*_setting_texts_by_name(baseline.method), *_setting_texts_by_name(candidate.method))
    ):
        first, second = (
            _setting_texts_by_name(study.method).get(name, "") for study in (baseline, candidate)
        )
        forbids = name == "drop caches"
        yield from _difference_if_unequal(
            DifferenceArea.METHOD, name, first, second, forbids_comparison=forbids
        )
    rotations = (str(baseline.target.rotate), str(candidate.target.rotate))
    yield from _difference_if_unequal(
        DifferenceArea.METHOD, "rotate", *rotations, forbids_comparison=True
    )


def _setting_texts_by_name(
    settings: Method | StoppingRuleSettings, prefix: str = ""
) -> dict[str, str]:
    """Every setting by its name; those of the rule that ends a run are called `rule …`."""
    values: dict[str, str] = {}
    for field in field_names(settings):
        value = getattr(settings, field)
        name = f"{prefix}{field.replace('_', ' ')}"
        if isinstance(value, StoppingRuleSettings):
            values |= _setting_texts_by_name(value, f"{name} ")
        elif field != "seed":
            values[name] = _value_text(value)
    return values


def _target_differences(
    baseline: ComparisonSide, candidate: ComparisonSide
) -> Iterator[Difference]:
    first, second = baseline.configuration, candidate.configuration
    yield from _difference_if_unequal(DifferenceArea.TARGET, "configuration", first.id, second.id)
    yield from _difference_if_unequal(DifferenceArea.TARGET, "path", first.path, second.path)
    hardware, other_hardware = dict(first.hardware), dict(second.hardware)
    for name in dict.fromkeys((*hardware, *other_hardware)):
        yield from _difference_if_unequal(
            DifferenceArea.TARGET, name, hardware.get(name, ""), other_hardware.get(name, "")
        )


def _write_acknowledgement_differences(
    baseline: ComparisonSide, candidate: ComparisonSide
) -> Iterator[Difference]:
    """Where not both sides acknowledged writes that were on devices: memory is no device."""
    first, second = (_write_acknowledgement_texts(side) for side in (baseline, candidate))
    if {*first, *second} - {ON_DEVICES}:
        yield Difference(
            DifferenceArea.TARGET,
            "writes acknowledged",
            ", ".join(first) or NOT_SET,
            ", ".join(second) or NOT_SET,
        )


def _write_acknowledgement_texts(side: ComparisonSide) -> list[str]:
    """What checks of its results say of where writes were when they were acknowledged."""
    found = {
        str(text)
        for result in side.results
        for check in result.verdict.checks
        if (text := dict(check.evidence).get(ACKNOWLEDGED)) is not None
    }
    return sorted(found)


def _host_differences(
    baseline_facts_by_target: Mapping[str, HostFacts],
    candidate_facts_by_target: Mapping[str, HostFacts],
) -> Iterator[Difference]:
    if not baseline_facts_by_target or not candidate_facts_by_target:
        return
    for name, fact_of in _FACTS.items():
        first, second = (
            Counter(fact_of(facts) for facts in side.values())
            for side in (baseline_facts_by_target, candidate_facts_by_target)
        )
        untold = name == MACHINE and {""} in (set(first), set(second))
        if set(first) != set(second) and not untold:
            emulated = name == HYPERVISOR and _is_any_emulator(first) != _is_any_emulator(second)
            yield Difference(
                DifferenceArea.HOSTS,
                name,
                _values_with_counts_text(first),
                _values_with_counts_text(second),
                forbids_comparison=emulated,
            )


def _is_any_emulator(hypervisor_names: Iterable[str]) -> bool:
    """Whether any host runs on emulated processors: what it measures is the emulator, too."""
    return any(is_emulator(name) for name in hypervisor_names)


def _software_differences(
    baseline: ComparisonSide, candidate: ComparisonSide
) -> Iterator[Difference]:
    for name, first in baseline.versions.items():
        yield from _difference_if_unequal(
            DifferenceArea.SOFTWARE, name, first, candidate.versions.get(name, "")
        )
    for name in dict.fromkeys(
        (*_versions_text_by_tool(baseline.facts), *_versions_text_by_tool(candidate.facts))
    ):
        first, second = (
            _versions_text_by_tool(side.facts).get(name, "") for side in (baseline, candidate)
        )
        yield from _difference_if_unequal(DifferenceArea.SOFTWARE, name, first, second)
    engines = (baseline.engine_versions, candidate.engine_versions)
    yield from _difference_if_unequal(
        DifferenceArea.SOFTWARE, "engine", *(", ".join(each) for each in engines)
    )
    analyses = (baseline.analysis_versions, candidate.analysis_versions)
    if all(analyses):
        name = "analysis version (what percentiles and verdicts mean)"
        texts = (", ".join(map(str, each)) for each in analyses)
        yield from _difference_if_unequal(
            DifferenceArea.SOFTWARE, name, *texts, forbids_comparison=True
        )


def _versions_text_by_tool(facts_by_target: Mapping[str, HostFacts]) -> dict[str, str]:
    """The versions of each tool over the hosts."""
    by_tool: dict[str, dict[str, None]] = {}
    for host in facts_by_target.values():
        for tool in host.tools:
            by_tool.setdefault(tool.name, {})[tool.version or "missing"] = None
    return {name: ", ".join(sorted(versions)) for name, versions in by_tool.items()}


def _difference_if_unequal(
    area: DifferenceArea,
    setting: str,
    baseline_text: str,
    candidate_text: str,
    *,
    forbids_comparison: bool = False,
) -> Iterator[Difference]:
    if baseline_text != candidate_text:
        yield Difference(
            area, setting, baseline_text or NOT_SET, candidate_text or NOT_SET, forbids_comparison
        )


def _values_with_counts_text(values: Counter[str]) -> str:
    """The values over the hosts, with how many have each where there are several."""
    if len(values) == 1:
        return next(iter(values)) or NOT_SET
    return ", ".join(f"{value or NOT_SET} ({count})" for value, count in sorted(values.items()))


def _setting_value_text(name: str, value: object) -> str:
    if isinstance(value, int) and name.endswith("_bytes"):
        return format_bytes(value)
    return _value_text(value)


def _value_text(value: object) -> str:
    if value is None or value == ():
        return NOT_SET
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, tuple):
        return ", ".join(
            "=".join(map(str, item)) if isinstance(item, tuple) else str(item) for item in value
        )
    return str(value)


def _target_device_models_text(facts: HostFacts) -> str:
    """Model and firmware of the devices below the target, each kind once."""
    target = facts.target
    if target is None:
        return ""
    kinds = {
        " ".join(part for part in (disk.model, disk.firmware) if part)
        for disk in facts.disks
        if disk.name in target.devices
    }
    return ", ".join(sorted(kind for kind in kinds if kind))


_FACTS: Final[Mapping[str, Callable[[HostFacts], str]]] = {
    MACHINE: lambda facts: facts.machine.vendor_and_product_text or "",
    "kernel": lambda facts: facts.kernel.release,
    "system": lambda facts: facts.kernel.os,
    "processor": lambda facts: f"{facts.cpu.model}, {counted_noun(facts.cpu.threads, 'thread')}",
    "governor": lambda facts: facts.cpu.governor or "",
    "memory": lambda facts: format_bytes(facts.memory.total_bytes),
    HYPERVISOR: lambda facts: facts.kernel.hypervisor or "",
    "file system": lambda facts: facts.target.fs_type if facts.target else "",
    "mount options": lambda facts: facts.target.mount_options if facts.target else "",
    "devices below the target": _target_device_models_text,
    "storage class": lambda facts: facts.pod.storage_class_text if facts.pod else "",
    "limits of the pod": lambda facts: facts.pod.qos_and_limits_text if facts.pod else "",
}
"""What matters of a host, whatever it is called."""
