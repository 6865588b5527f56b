"""Hosts and configurations of several sessions under names that tell them apart. Pure.

What is the same in all sessions keeps its name; where one name means several things, each has the
labels of its sessions after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from iolab.model.configuration import Configuration
from iolab.model.guest import GuestFleet
from iolab.model.host import HostFacts, HostSpec
from iolab.model.metric import HostResult, NodeResult, Result, Spread
from iolab.model.run import Bystander, HostRun, Point
from iolab.plan.load import DEFAULT_CONFIGURATION
from iolab.store.documents import Manifest

Names = Mapping[str, str]
"""Old names and the new ones; a name that is not there stays."""

Facts = Mapping[str, HostFacts]


def distinct(names: Iterable[str]) -> list[str]:
    """The names in their order, those that come again with a number: `a`, `a-2`."""
    wanted = list(names)
    found: list[str] = []
    for name in wanted:
        number, free = 1, name
        while free in found or (number > 1 and free in wanted):
            number += 1
            free = f"{name}-{number}"
        found.append(free)
    return found


def host_names(
    labels: Sequence[str], hosts: Sequence[Sequence[str]], facts: Sequence[Facts]
) -> list[dict[str, str]]:
    """For each session the new names of its hosts, and of the keys of their facts.

    Hosts of one name are one host where their facts are the same, but for free space and reboots.
    """
    kinds: dict[str, list[tuple[Facts, list[str]]]] = {}
    for label, names, known in zip(labels, hosts, facts, strict=True):
        for name in names:
            mine = _lasting(name, known)
            found = kinds.setdefault(name, [])
            same = next((users for other, users in found if not mine or other == mine), None)
            if same is None:
                found.append((mine, [label]))
            else:
                same.append(label)
    renamed: list[dict[str, str]] = []
    for label, names, known in zip(labels, hosts, facts, strict=True):
        own: dict[str, str] = {}
        for name in names:
            if len(kinds[name]) > 1:
                users = next(users for _, users in kinds[name] if label in users)
                new = f"{name} ({', '.join(users)})"
                own |= {key: new + key.removeprefix(name) for key in _keys(name, known)}
                own[name] = new
        renamed.append(own)
    return renamed


def _keys(name: str, facts: Facts) -> list[str]:
    """A host's facts: under its name, and of further directories under name and path."""
    return [key for key in facts if key == name or key.startswith(f"{name} /")]


def _lasting(name: str, facts: Facts) -> dict[str, HostFacts]:
    """A host's facts without what changes from hour to hour."""
    found = {}
    for key in _keys(name, facts):
        host = facts[key]
        target = host.target and replace(host.target, free_bytes=0, free_inodes=0)
        found[key] = replace(host, target=target, kernel=replace(host.kernel, boot_id=""))
    return found


def configurations_named(
    labels: Sequence[str], sessions: Sequence[Sequence[Configuration]]
) -> list[tuple[Configuration, ...]]:
    """The configurations of each session, those of one id or of one title with a label after it."""
    every = [one for each in sessions for one in each]
    ids, titles = Counter(one.id for one in every), Counter(one.title for one in every)
    return [
        tuple(
            replace(
                one,
                id=_labelled(one.id, label, ids) if ids[one.id] > 1 else one.id,
                title=_labelled(one.title, label, titles) if titles[one.title] > 1 else one.title,
            )
            for one in each
        )
        for label, each in zip(labels, sessions, strict=True)
    ]


def _labelled(name: str, label: str, taken: Iterable[str]) -> str:
    """A name with a label; what nobody has named is called by the label alone."""
    unnamed = name == DEFAULT_CONFIGURATION and label not in taken
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
    spreads = {key: _spread(one, names) for key, one in result.operation_spreads.items()}
    return replace(
        result,
        hosts=tuple(_share(one, names) for one in result.hosts),
        nodes=tuple(_node(one, names) for one in result.nodes),
        spread=result.spread and _spread(result.spread, names),
        operation_spreads=spreads,
    )


def manifest_named(manifest: Manifest, names: Names) -> Manifest:
    """A manifest, for all that a report shows of it."""
    if not names:
        return manifest
    server = manifest.server
    return replace(
        manifest,
        hosts=tuple(_host_run(one, names) for one in manifest.hosts),
        bystanders=tuple(_bystander(one, names) for one in manifest.bystanders),
        server=server and replace(server, host=_of(server.host, names)),
        fleet=manifest.fleet and _fleet(manifest.fleet, names),
    )


def _share(one: HostResult, names: Names) -> HostResult:
    return replace(one, name=_of(one.name, names))


def _node(one: NodeResult, names: Names) -> NodeResult:
    return replace(one, name=_of(one.name, names), guests=_all(one.guests, names))


def _spread(one: Spread, names: Names) -> Spread:
    return replace(one, slowest=_of(one.slowest, names), fastest=_of(one.fastest, names))


def _host_run(one: HostRun, names: Names) -> HostRun:
    return replace(
        one,
        host=_of(one.host, names),
        target_key=_of(one.target_key, names),
        read_from=_of(one.read_from, names),
    )


def _bystander(one: Bystander, names: Names) -> Bystander:
    return replace(one, host=_of(one.host, names))


def _fleet(fleet: GuestFleet, names: Names) -> GuestFleet:
    guests = tuple(
        replace(one, guest=_of(one.guest, names), node=_of(one.node, names)) for one in fleet.guests
    )
    return replace(fleet, guests=guests, idle=_all(fleet.idle, names))


def _all(found: Iterable[str], names: Names) -> tuple[str, ...]:
    return tuple(_of(name, names) for name in found)


def _of(name: str, names: Names) -> str:
    return names.get(name, name)
