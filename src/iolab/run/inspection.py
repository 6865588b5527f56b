"""Looks at every host of a fleet before any study: what it is, its clock, who else is busy there.

Hosts that cannot be reached are an outcome beside the others, never the end of the look.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from iolab.errors import IolabError
from iolab.model.host import HostFacts, HostSpec, TargetProbe
from iolab.model.run import IdleProof
from iolab.run.barrier import together
from iolab.run.clock import Clock, ClockOffset, measure_offset
from iolab.run.counters import cpu_busy, idle_proof, look_of
from iolab.run.hosts.answers import read_facts, read_probe
from iolab.run.hosts.base import Host
from iolab.run.prepare import IDLE_WATCH_S, SNAPSHOT_LIMIT_S
from iolab.run.survey import FACTS_LIMIT_S, PROBE_LIMIT_S
from iolab.run.telemetry.decode import DISK

_BUSY_AT: Final = 1 + DISK.index("busy_time_ns")
"""Where a sample's row of a disk, which begins with its name, has the time it was busy."""


@dataclass(frozen=True, slots=True)
class Quiet:
    """What a host did while nobody asked it to do anything.

    `idle` are the rates of the busiest device below the target, `device_busy` the largest share of
    the time that one of them was busy, `cpu_busy` that of all cores; None where it is not counted.
    """

    idle: IdleProof | None
    device_busy: float | None
    cpu_busy: float | None


@dataclass(frozen=True, slots=True)
class Inspected:
    """One host that answered: `path` is the directory it was asked about, None for none."""

    spec: HostSpec
    path: str | None
    facts: HostFacts
    probe: TargetProbe | None
    quiet: Quiet
    offset: ClockOffset


@dataclass(frozen=True, slots=True)
class Inspection:
    """Every host by name, in exactly one of the two."""

    reached: Mapping[str, Inspected]
    failed: Mapping[str, IolabError]


async def inspect_hosts(
    hosts: Mapping[str, Host], path: str | None, tools: Mapping[str, list[str]], clock: Clock
) -> Inspection:
    """Connect and ask all hosts at once, then watch them all for a second while none is asked.

    `path` is for hosts that name none of their own. The hosts stay connected; whoever made them
    closes them.
    """

    async def meet(host: Host) -> tuple[HostFacts, TargetProbe | None]:
        return await _meet(host, _folder_of(host.spec, path), tools)

    met = await together(hosts.values(), meet)

    async def watch(host: Host) -> Inspected:
        facts, probe = met.done[host.name]
        # The clock comes last: the watch sees none of our own questions.
        quiet = await _watch(host, facts)
        offset = await measure_offset(host, clock)
        return Inspected(host.spec, _folder_of(host.spec, path), facts, probe, quiet, offset)

    seen = await together([hosts[name] for name in met.done], watch)
    return Inspection(seen.done, {**met.failed, **seen.failed})


def _folder_of(spec: HostSpec, path: str | None) -> str | None:
    """The directory to ask a host about; none where its target is a block device."""
    return None if spec.serial else spec.path or path


async def _meet(
    host: Host, path: str | None, tools: Mapping[str, list[str]]
) -> tuple[HostFacts, TargetProbe | None]:
    await host.connect()
    told = await host.ask("facts", deadline_s=FACTS_LIMIT_S, path=path, tools=tools)
    facts = read_facts(host.name, told)
    if facts.target is None or not facts.target.writable:
        return facts, None
    tried = await host.ask("probe", deadline_s=PROBE_LIMIT_S, path=path)
    return facts, read_probe(host.name, tried)


async def _watch(host: Host, facts: HostFacts) -> Quiet:
    devices = facts.target.devices if facts.target is not None else ()
    before = await host.ask("snapshot", deadline_s=SNAPSHOT_LIMIT_S)
    await asyncio.sleep(IDLE_WATCH_S)
    after = await host.ask("snapshot", deadline_s=SNAPSHOT_LIMIT_S)
    try:
        then, now = look_of(before), look_of(after)
    except ValueError as fault:
        raise host.give_up(f"sent a sample that makes no sense: {fault}") from None
    span_ns = now.mono_ns - then.mono_ns
    return Quiet(
        idle_proof(then, now, devices),
        device_busy(before.header, after.header, devices, span_ns),
        cpu_busy(before.header.get("cpu"), after.header.get("cpu")),
    )


def device_busy(
    before: Mapping[str, Any], after: Mapping[str, Any], devices: tuple[str, ...], span_ns: int
) -> float | None:
    """The largest share of `span_ns` that one of the devices was busy; None where none counts it.

    The arguments are two samples that have lists of disks.
    """
    then, now = _busy_ns(before), _busy_ns(after)
    if span_ns <= 0:
        return None
    shares = [(now[name] - then.get(name, 0)) / span_ns for name in devices if name in now]
    return min(max(*shares, 0.0), 1.0) if shares else None


def _busy_ns(sample: Mapping[str, Any]) -> dict[str, int]:
    rows = (row for row in sample["disks"] if len(row) > _BUSY_AT)
    return {row[0]: row[_BUSY_AT] for row in rows if isinstance(row[_BUSY_AT], int)}
