"""Reaches every host and asks what it is: facts, tools, and whether its targets can be used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from iolab.errors import Fault, HostError
from iolab.model.host import DeviceFacts, HostFacts, HostSpec, Role, TargetProbe
from iolab.model.study import Study
from iolab.plan.device_guard import NVME, NVME_ARGV, NVME_PURGES
from iolab.plan.filesystem_guard import asks_rights
from iolab.plan.guest_guard import guest_tools, node_targets
from iolab.plan.guests import nodes_of
from iolab.plan.key_value_guard import wanted_tools
from iolab.plan.targets import Target, targets_of
from iolab.run.barrier import Outcomes, together
from iolab.run.devices import look_at, with_device
from iolab.run.engines.base import Engine
from iolab.run.filesystems import MOUNT_PARENT
from iolab.run.hosts.answers import read_facts, read_probe
from iolab.run.hosts.base import Hello, Host

FACTS_LIMIT_S: Final = 60.0
"""Reading a host's facts: hundreds of disks, each with slow firmware pages, and `fio --version`."""

PROBE_LIMIT_S: Final = 60.0
"""One O_DIRECT write and read: a busy disk takes seconds, a hung one for ever."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What the hosts told: `hellos` by host name, `facts` and `probes` by `Target.key`."""

    hellos: Mapping[str, Hello]
    facts: Mapping[str, HostFacts]
    probes: Mapping[str, TargetProbe]
    devices: Mapping[str, DeviceFacts] = field(default_factory=dict)

    def joined(self, other: Survey) -> Survey:
        """What other hosts told besides."""
        return Survey(
            {**self.hellos, **other.hellos},
            {**self.facts, **other.facts},
            {**self.probes, **other.probes},
            {**self.devices, **other.devices},
        )


async def survey(study: Study, hosts: Mapping[str, Host], engines: Iterable[Engine]) -> Survey:
    """Ask all hosts given at once. HostError names every one that failed, and what to do.

    The hosts stay connected; whoever made them closes them.
    """
    tools = tools_of(engines)
    if study.precondition.purge in NVME_PURGES:
        tools[NVME] = list(NVME_ARGV)
    tools |= {program: argv for program, (_, argv) in wanted_tools(study).items()}
    by_host: dict[str, list[Target]] = {}
    for target in targets_of(study):
        if target.host in hosts:
            by_host.setdefault(target.host, []).append(target)

    specs = {spec.name: spec for spec in study.hosts}
    watched = [name for name in hosts if name in specs and specs[name].role is not Role.CLIENT]
    carrying = {node.name for node in nodes_of(study)}
    booting = {target.host: target for target in node_targets(study)}

    async def visit(host: Host) -> _Visit:
        spec = specs[host.name]
        if host.name in by_host:
            return await _visit(host, spec, tuple(by_host[host.name]), tools, study)
        if host.name in booting:
            return await _visit(host, spec, (booting[host.name],), guest_tools(study), study)
        hello = await host.connect()
        path = spec.path if host.name in carrying else None
        told = await host.ask("facts", deadline_s=FACTS_LIMIT_S, path=path, tools={})
        return _Visit(hello, {host.name: _with_devices(spec, read_facts(host.name, told))}, {})

    visits = _complete(await together([hosts[name] for name in (*by_host, *watched)], visit))
    return Survey(
        hellos={name: visit.hello for name, visit in visits.items()},
        facts={key: facts for visit in visits.values() for key, facts in visit.facts.items()},
        probes={key: probe for visit in visits.values() for key, probe in visit.probes.items()},
        devices={key: seen for visit in visits.values() for key, seen in visit.devices.items()},
    )


def tools_of(engines: Iterable[Engine]) -> dict[str, list[str]]:
    """How hosts tell their version of each engine; those that are no tool of theirs left out."""
    return {
        engine.name.value: list(engine.version_argv) for engine in engines if engine.version_argv
    }


@dataclass(frozen=True, slots=True)
class _Visit:
    hello: Hello
    facts: Mapping[str, HostFacts]
    probes: Mapping[str, TargetProbe]
    devices: Mapping[str, DeviceFacts] = field(default_factory=dict)


async def _visit(
    host: Host,
    spec: HostSpec,
    targets: tuple[Target, ...],
    tools: Mapping[str, list[str]],
    study: Study,
) -> _Visit:
    settings, rights = study.target, asks_rights(study)
    hello = await host.connect()
    facts: dict[str, HostFacts] = {}
    probes: dict[str, TargetProbe] = {}
    devices: dict[str, DeviceFacts] = {}
    for target in targets:
        if target.serial is not None:
            told = await host.ask("facts", deadline_s=FACTS_LIMIT_S, path=None, tools=tools)
            device = devices[target.key] = await look_at(host, target, settings)
            facts[target.key] = with_device(read_facts(host.name, told), device)
            if rights:
                probes[target.key] = await _try(host, MOUNT_PARENT, rights=True)
            continue
        told = await host.ask("facts", deadline_s=FACTS_LIMIT_S, path=target.path, tools=tools)
        seen = facts[target.key] = _with_devices(spec, read_facts(host.name, told))
        # A directory that is missing or closed is the guard's to name; trying it adds nothing.
        if seen.target is not None and seen.target.writable:
            probes[target.key] = await _try(host, target.path, rights=rights)
    return _Visit(hello, facts, probes, devices)


async def _try(host: Host, path: str, *, rights: bool) -> TargetProbe:
    """What trying a folder tells, and with `rights` what else the agent may do there."""
    told = await host.ask("probe", deadline_s=PROBE_LIMIT_S, path=path, rights=rights)
    return read_probe(host.name, told)


def _with_devices(spec: HostSpec, facts: HostFacts) -> HostFacts:
    """The facts with the devices that the host's table names; HostError when it has none such."""
    known = [disk.name for disk in facts.disks]
    unknown = [name for name in spec.devices if name not in known]
    if unknown:
        happened = f"Host '{spec.name}' has no block device '{unknown[0]}'."
        raise HostError(happened, f"Name one of {', '.join(known) or 'its own'} as devices.")
    if not spec.devices or facts.target is None:
        return facts
    nearest = spec.devices[0] if len(spec.devices) == 1 else None
    return replace(facts, target=replace(facts.target, device=nearest, devices=spec.devices))


def _complete(outcomes: Outcomes[_Visit]) -> Mapping[str, _Visit]:
    if not outcomes.failed:
        return outcomes.done
    faults = tuple(Fault(fault.happened, fault.do) for fault in outcomes.failed.values())
    if len(faults) == 1:
        raise HostError(faults[0].happened, faults[0].do, faults)
    names = ", ".join(f"'{name}'" for name in outcomes.failed)
    raise HostError(f"{len(faults)} hosts cannot serve: {names}.", "Correct each of them.", faults)
