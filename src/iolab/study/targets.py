"""Which directories a study uses on which hosts, and which hosts make the load of a point."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec.structs import replace

from iolab.core.configuration import Configuration
from iolab.core.host import HostFacts, HostRole, HostSpec
from iolab.core.object_store import WORK_PATH
from iolab.core.run import Plan, Point
from iolab.core.scenario import EventPlan
from iolab.core.study import Study
from iolab.core.workload import DataSet
from iolab.record import Record


class Target(Record):
    """One directory, or with a `serial` one block device, on one host, and who uses it.

    `key` names it among facts and probes: the host's name for its first directory, the name and the
    path for a further one. With `holds_no_load_data` no load goes there, but to an object store.
    """

    key: str
    host: str
    path: str
    configurations: tuple[str, ...]
    serial: str | None = None
    holds_no_load_data: bool = False

    @property
    def name(self) -> str:
        """Its host's, under which outcomes of work on all hosts are filed."""
        return self.host


def target_serial(configuration: Configuration, host: HostSpec) -> str | None:
    """The serial of the device that is a configuration's target on a host, None for a directory."""
    return host.serial if host.path else configuration.serial


def target_path(configuration: Configuration, host: HostSpec) -> str:
    """Where a configuration's files go on a host: the host's own path, else the configuration's.

    Where the load goes to an object store and no path is given it is a folder for the agent's own.
    """
    default = WORK_PATH if configuration.object_store else ""
    return host.path or configuration.path or default


def holds_no_load_data(configuration: Configuration, host: HostSpec) -> bool:
    """Whether nothing of the load goes to that folder: it is no target, nor are its devices."""
    return configuration.object_store is not None and not (host.path or configuration.path)


def targets_of_study(study: Study) -> tuple[Target, ...]:
    """Every directory of the study, hosts and paths in the order of the configurations."""
    users: dict[tuple[str, str, str | None, bool], list[str]] = {}
    for configuration in study.configurations:
        for name in configuration.hosts:
            path = target_path(configuration, study.host(name))
            serial = target_serial(configuration, study.host(name))
            work_only = holds_no_load_data(configuration, study.host(name))
            users.setdefault((name, path, serial, work_only), []).append(configuration.id)
    targets: dict[str, Target] = {}
    for (host, path, serial, work_only), configurations in users.items():
        key = host if host not in targets else f"{host} {path}"
        targets[key] = Target(key, host, path, tuple(configurations), serial, work_only)
    return tuple(targets.values())


def configuration_facts_by_host(
    study: Study, facts_by_target: Mapping[str, HostFacts], configuration_id: str
) -> dict[str, HostFacts]:
    """The facts of a configuration's hosts, each with the target that the configuration has there.

    `facts_by_target` has the keys of `targets_of_study`; a host that was not reached is left out.
    """
    return {
        target.host: facts_by_target[target.key]
        for target in targets_of_study(study)
        if configuration_id in target.configurations and target.key in facts_by_target
    }


def study_without_hosts(study: Study, names: Collection[str]) -> Study:
    """The study as if no configuration had ever named these hosts."""
    if not names:
        return study
    configurations = tuple(
        replace(item, hosts=tuple(host for host in item.hosts if host not in names))
        for item in study.configurations
    )
    return replace(study, configurations=configurations)


def data_sets_at_target(plan: Plan, target: Target) -> tuple[DataSet, ...]:
    """The data sets that will lie there, all at once at the worst, as the host has them."""
    here = (item for item in plan.data_sets if item.configuration in target.configurations)
    on_host = (item.with_jobs_of_host(target.host) for item in here)
    return tuple(item for item in on_host if item.numjobs)


def used_device_bytes(plan: Plan, target: Target) -> int:
    """How much of a device its jobs use: data sets lie over each other, all from the start."""
    return max((item.bytes_per_host for item in data_sets_at_target(plan, target)), default=0)


def reached_host_specs(study: Study) -> tuple[HostSpec, ...]:
    """Every host that a session reaches, each once: clients first, then who is watched."""
    names = dict.fromkeys(name for item in study.configurations for name in item.hosts)
    for item in study.configurations:
        names |= dict.fromkeys(spec.name for spec in monitored_host_specs(study, item.id))
    return tuple(study.host(name) for name in names)


def monitored_host_specs(study: Study, configuration_id: str) -> tuple[HostSpec, ...]:
    """Who is watched in a configuration's runs: its storage nodes, and every hypervisor."""
    nodes = study.configuration(configuration_id).storage
    return tuple(
        spec for spec in study.hosts if spec.name in nodes or spec.role is HostRole.HYPERVISOR
    )


def hypervisors_of_study(study: Study) -> tuple[HostSpec, ...]:
    """The hypervisors on which guests of the study live, in the order of their first guest."""
    names = (study.host(name).hypervisor for item in study.configurations for name in item.hosts)
    return tuple(study.host(name) for name in dict.fromkeys(names) if name)


def load_host_names_of_point(study: Study, point: Point) -> tuple[str, ...]:
    """The hosts that make the load of a point."""
    return load_host_names(study, point.configuration, point.per_node, point.host_count)


def neighbour_host_names(study: Study, configuration_id: str, event: EventPlan) -> tuple[str, ...]:
    """The hosts of a configuration on which an event begins its load.

    There it is beside the measured one, or alone where the event names hosts.
    """
    if not event.hosts:
        return load_host_names(study, configuration_id, 0)
    return tuple(n for n in study.configuration(configuration_id).hosts if n in event.hosts)


def load_host_names(
    study: Study, configuration_id: str, guests_per_node: int, host_count: int = 0
) -> tuple[str, ...]:
    """The configuration's hosts that make load where so many do; 0 for all of them.

    They are the first in the configuration's order; of guests, `guests_per_node` the first of each
    node. Those that make a neighbour's load are none of them.
    """
    others = study.scenario.neighbour_only_hosts if study.scenario else frozenset[str]()
    names = study.configuration(configuration_id).hosts
    names = tuple(name for name in names if name not in others)
    if host_count:
        return names[:host_count]
    if not guests_per_node:
        return names
    nodes = {spec.name: spec.hypervisor for spec in study.hosts}
    taken: dict[str, int] = {}
    members = []
    for name in names:
        node = nodes[name]
        taken[node] = taken.get(node, 0) + 1
        if taken[node] <= guests_per_node:
            members.append(name)
    return tuple(members)
