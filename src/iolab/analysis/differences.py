"""In what two measurements differ besides what was measured, and which of it forbids comparing.

The load itself must be the same, and what a percentile means: else a ratio says nothing of the
storage. What may differ (kernels, devices, versions) is what the comparison is often about, so it
is shown first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from iolab.analysis.comparison_sides import Side
from iolab.core.host import HostFacts, is_emulator
from iolab.core.stopping import RuleSettings
from iolab.core.study import Method, Study
from iolab.core.workload import AnyJob
from iolab.units import format_bytes

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

HYPERVISOR: Final = "hypervisor"

NOT_SET: Final = "not set"
"""What stands for a value that a side does not have."""


class Area(StrEnum):
    """What a difference is of."""

    STUDY = "study"
    WORKLOAD = "workload"
    METHOD = "method"
    TARGET = "target"
    HOSTS = "hosts"
    SOFTWARE = "software"


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not the same on both sides; with `forbids` the two do not compare."""

    area: Area
    what: str
    baseline: str
    candidate: str
    forbids: bool = False

    def __str__(self) -> str:
        return f"{self.what}: {self.baseline} against {self.candidate}"


def differences(baseline: Side, candidate: Side) -> tuple[Difference, ...]:
    """Everything in which the sides differ, what forbids a comparison first."""
    found = [
        *_study(baseline, candidate),
        *_workloads(baseline, candidate),
        *_server(baseline, candidate),
        *_guests(baseline.study, candidate.study),
        *_method(baseline.study, candidate.study),
        *_target(baseline, candidate),
        *_hosts(baseline.facts, candidate.facts),
        *_software(baseline, candidate),
    ]
    return tuple(sorted(found, key=lambda one: not one.forbids))


def _study(baseline: Side, candidate: Side) -> Iterator[Difference]:
    one, other = baseline.study, candidate.study
    yield from _unequal(Area.STUDY, "study", one.id, other.id)
    yield from _unequal(Area.STUDY, "scale", one.scale, other.scale)
    yield from _unequal(Area.STUDY, "overrides", " ".join(one.overrides), " ".join(other.overrides))


def _workloads(baseline: Side, candidate: Side) -> Iterator[Difference]:
    """The load of the points that both have: each field once a workload, where it first differs.

    What differs alike in all workloads is told once.
    """
    compared = list(
        dict.fromkeys(place[0] for place in baseline.points if place in candidate.points)
    )
    alike: dict[tuple[str, str, str, bool], list[str]] = {}
    for workload, name, mine, theirs, forbids in _of_points(baseline, candidate):
        alike.setdefault((name, mine, theirs, forbids), []).append(workload)
    for (name, mine, theirs, forbids), workloads in alike.items():
        every = len(workloads) > 1 and len(workloads) == len(compared)
        for where in ["every workload"] if every else workloads:
            yield Difference(Area.WORKLOAD, f"{where}: {name}", mine, theirs, forbids=forbids)
    counts = (_clients(baseline), _clients(candidate))
    yield from _unequal(Area.WORKLOAD, "clients", *counts, forbids=True)


def _of_points(baseline: Side, candidate: Side) -> Iterator[tuple[str, str, str, str, bool]]:
    """A workload, the name of a setting, both values in words, and whether that forbids."""
    seen: set[tuple[str, str]] = set()
    for place, point in baseline.points.items():
        other = candidate.points.get(place)
        if other is None:
            continue
        workload = place[0]
        free = _free(point.job, other.job)
        if type(point.job) is not type(other.job):
            found: Iterable[tuple[str, object, object]] = [
                ("engine", point.job.engine, other.job.engine)
            ]
        else:
            found = _fields(point.job, other.job)
        hosts = ("host_numjobs", _numbers(point.host_numjobs), _numbers(other.host_numjobs))
        for name, mine, theirs in (*found, hosts):
            if mine != theirs and (workload, name) not in seen:
                seen.add((workload, name))
                values = (_text(name, mine), _text(name, theirs))
                yield workload, name.replace("_", " "), *values, name not in free


def _free(one: AnyJob, other: AnyJob) -> tuple[str, ...]:
    """The settings of two jobs that may differ: of one load made by two engines these, too."""
    both_io = one.io is not None and other.io is not None
    return (*_PLACES, *_ENGINES) if both_io and one.engine != other.engine else _PLACES


def _clients(side: Side) -> str:
    """How many make the load; where points say how many guests of a node do, the nodes count."""
    hosts = side.configuration.hosts
    if not side.points or not all(point.per_node for point in side.points.values()):
        return str(len(hosts))
    return f"guests on {len({side.study.host(name).node for name in hosts})} nodes"


def _fields(one: DataclassInstance, other: object) -> Iterator[tuple[str, object, object]]:
    """Every setting of two jobs of one kind by its name, those of a set of data among them."""
    for field in fields(one):
        mine, theirs = getattr(one, field.name), getattr(other, field.name)
        if is_dataclass(mine) and not isinstance(mine, type):
            yield from _fields(mine, theirs)
        else:
            yield field.name, mine, theirs


def _server(baseline: Side, candidate: Side) -> Iterator[Difference]:
    """The server that the load works against, where both sides do."""
    if not all(_on_server(side) for side in (baseline, candidate)):
        return
    mine, theirs = baseline.study.server, candidate.study.server
    if mine is None or theirs is None:
        return
    for field in fields(mine):
        values = (getattr(mine, field.name), getattr(theirs, field.name))
        texts = (_text(field.name, value) for value in values)
        forbids = field.name in _SERVER_FORBIDS
        yield from _unequal(
            Area.WORKLOAD, f"server: {field.name.replace('_', ' ')}", *texts, forbids=forbids
        )


def _guests(one: Study, other: Study) -> Iterator[Difference]:
    """What guests have that were booted; how fast a disk may be at most is no difference of it."""
    if one.guests is None or other.guests is None:
        booted = ("existed already" if study.guests is None else "booted" for study in (one, other))
        yield from _unequal(Area.WORKLOAD, "guests", *booted)
        return
    for field in fields(one.guests):
        values = (getattr(one.guests, field.name), getattr(other.guests, field.name))
        texts = (_text(field.name, value) for value in values)
        forbids = field.name in _GUESTS_FORBID
        yield from _unequal(
            Area.WORKLOAD, f"guests: {field.name.replace('_', ' ')}", *texts, forbids=forbids
        )


def _on_server(side: Side) -> bool:
    return any(point.job.uses_server for point in side.points.values())


_PLACES: Final = ("database",)
"""Settings of a job that say where something lies: they may differ, and are shown."""

_ENGINES: Final = ("engine", "ioengine")
"""Settings of a job that say what makes its I/Os, and how that asks the kernel for them.

They may differ where engines do, which is then what is compared; those of one engine must not.
"""

_SERVER_FORBIDS: Final = ("kind", "heap_bytes", "memory_bytes", "replication", "consistency")
"""What makes other work of the same operations, or answers them from another memory."""


_GUESTS_FORBID: Final = ("disk", "latency_ns", "iops_limit")
"""What is set, not measured: another limit, or another model of a disk."""


def _numbers(host_numjobs: tuple[tuple[str, int], ...]) -> tuple[int, ...]:
    """How many jobs the clients run that have a number of their own, whatever they are called."""
    return tuple(sorted(count for _, count in host_numjobs))


def _method(one: Study, other: Study) -> Iterator[Difference]:
    """How long, how often and in which order was measured; the seed alone matters to nobody."""
    for name in dict.fromkeys((*_settings(one.method), *_settings(other.method))):
        mine, theirs = (_settings(study.method).get(name, "") for study in (one, other))
        forbids = name == "drop caches"
        yield from _unequal(Area.METHOD, name, mine, theirs, forbids=forbids)
    rotations = (str(one.target.rotate), str(other.target.rotate))
    yield from _unequal(Area.METHOD, "rotate", *rotations, forbids=True)


def _settings(settings: Method | RuleSettings, prefix: str = "") -> dict[str, str]:
    """Every setting by its name; those of the rule that ends a run are called `rule …`."""
    found: dict[str, str] = {}
    for field in fields(settings):
        value = getattr(settings, field.name)
        name = f"{prefix}{field.name.replace('_', ' ')}"
        if isinstance(value, RuleSettings):
            found |= _settings(value, f"{name} ")
        elif field.name != "seed":
            found[name] = _value(value)
    return found


def _target(baseline: Side, candidate: Side) -> Iterator[Difference]:
    one, other = baseline.configuration, candidate.configuration
    yield from _unequal(Area.TARGET, "configuration", one.id, other.id)
    yield from _unequal(Area.TARGET, "path", one.path, other.path)
    mine, theirs = dict(one.hardware), dict(other.hardware)
    for name in dict.fromkeys((*mine, *theirs)):
        yield from _unequal(Area.TARGET, name, mine.get(name, ""), theirs.get(name, ""))


def _hosts(one: Mapping[str, HostFacts], other: Mapping[str, HostFacts]) -> Iterator[Difference]:
    if not one or not other:
        return
    for what, of in _FACTS.items():
        mine, theirs = (Counter(of(facts) for facts in side.values()) for side in (one, other))
        if set(mine) != set(theirs):
            emulated = what == HYPERVISOR and _is_emulated(mine) != _is_emulated(theirs)
            yield Difference(Area.HOSTS, what, _counted(mine), _counted(theirs), forbids=emulated)


def _is_emulated(hypervisors: Iterable[str]) -> bool:
    """Whether any host runs on emulated processors: what it measures is the emulator, too."""
    return any(is_emulator(name) for name in hypervisors)


def _software(baseline: Side, candidate: Side) -> Iterator[Difference]:
    for name, mine in baseline.versions.items():
        yield from _unequal(Area.SOFTWARE, name, mine, candidate.versions.get(name, ""))
    for name in dict.fromkeys((*_tools(baseline.facts), *_tools(candidate.facts))):
        mine, theirs = (_tools(side.facts).get(name, "") for side in (baseline, candidate))
        yield from _unequal(Area.SOFTWARE, name, mine, theirs)
    engines = (baseline.engine_versions, candidate.engine_versions)
    yield from _unequal(Area.SOFTWARE, "engine", *(", ".join(each) for each in engines))
    analyses = (baseline.analysis_versions, candidate.analysis_versions)
    if all(analyses):
        what = "analysis version (what percentiles and verdicts mean)"
        texts = (", ".join(map(str, each)) for each in analyses)
        yield from _unequal(Area.SOFTWARE, what, *texts, forbids=True)


def _tools(facts: Mapping[str, HostFacts]) -> dict[str, str]:
    """The versions of each tool over the hosts."""
    found: dict[str, dict[str, None]] = {}
    for host in facts.values():
        for tool in host.tools:
            found.setdefault(tool.name, {})[tool.version or "missing"] = None
    return {name: ", ".join(sorted(versions)) for name, versions in found.items()}


def _unequal(
    area: Area, what: str, mine: str, theirs: str, *, forbids: bool = False
) -> Iterator[Difference]:
    if mine != theirs:
        yield Difference(area, what, mine or NOT_SET, theirs or NOT_SET, forbids)


def _counted(values: Counter[str]) -> str:
    """The values over the hosts, with how many have each where there are several."""
    if len(values) == 1:
        return next(iter(values)) or NOT_SET
    return ", ".join(f"{value or NOT_SET} ({count})" for value, count in sorted(values.items()))


def _text(name: str, value: object) -> str:
    if isinstance(value, int) and name.endswith("_bytes"):
        return format_bytes(value)
    return _value(value)


def _value(value: object) -> str:
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


def _devices(facts: HostFacts) -> str:
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
    "kernel": lambda facts: facts.kernel.release,
    "system": lambda facts: facts.kernel.os,
    "processor": lambda facts: f"{facts.cpu.model}, {facts.cpu.threads} threads",
    "governor": lambda facts: facts.cpu.governor or "",
    "memory": lambda facts: format_bytes(facts.memory.total_bytes),
    HYPERVISOR: lambda facts: facts.kernel.hypervisor or "",
    "file system": lambda facts: facts.target.fs_type if facts.target else "",
    "mount options": lambda facts: facts.target.mount_options if facts.target else "",
    "devices below the target": _devices,
}
"""What matters of a host, whatever it is called."""
