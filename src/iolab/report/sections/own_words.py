"""What a session knows of itself, under the names that published sets have for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from iolab.model.workload import Job
from iolab.report.brief import Brief
from iolab.report.wording import NOTHING, listing
from iolab.units import format_bytes, format_duration_s

NAMED_MOST: Final = 4
"""Different values that are named; more are counted."""


def own_words(brief: Brief, name: str) -> str:
    """What is known of that here; a dash where nothing is, or where it has no counterpart.

    What the study tells of its hardware is of the same machines as what was published; facts are of
    the hosts that made the load.
    """
    given = _given(brief, name)
    told = _OWN.get(name)
    found = given or (list(dict.fromkeys(told(brief))) if told else [])
    return listing(found, NAMED_MOST) or NOTHING


def _given(brief: Brief, name: str) -> list[str]:
    """The rows of that name in the hardware of the study's configurations."""
    rows = (dict(one.hardware) for one in brief.study.configurations)
    return list(dict.fromkeys(row[name] for row in rows if row.get(name)))


def _clients(brief: Brief) -> Iterator[str]:
    yield from (str(len(one.hosts)) for one in brief.study.configurations)


def _nodes(brief: Brief) -> Iterator[str]:
    yield from (str(one.nodes) for one in brief.study.configurations if one.nodes)


def _raw(brief: Brief) -> Iterator[str]:
    sizes = (one.capacity.raw_tb for one in brief.study.configurations)
    yield from (f"{size:g} TB" for size in sizes if size)


def _usable(brief: Brief) -> Iterator[str]:
    sizes = (one.capacity.usable_tb for one in brief.study.configurations)
    yield from (f"{size:g} TB" for size in sizes if size)


def _processors(brief: Brief) -> Iterator[str]:
    yield from (f"{one.cpu.sockets}x {one.cpu.model}" for one in brief.facts.values())


def _memory(brief: Brief) -> Iterator[str]:
    yield from (format_bytes(one.memory.total_bytes) for one in brief.facts.values())


def _ports(brief: Brief) -> Iterator[str]:
    ports = (nic for one in brief.facts.values() for nic in one.nics if nic.up)
    yield from (f"{nic.speed_mbit_s / 1000:g} Gbit/s" for nic in ports if nic.speed_mbit_s)


def _devices(brief: Brief) -> Iterator[str]:
    """The models of the devices below the target."""
    for one in brief.facts.values():
        below = one.target.devices if one.target else ()
        yield from (disk.model for disk in one.disks if disk.model and disk.name in below)


def _servers(brief: Brief) -> Iterator[str]:
    for processor, memory in zip(_processors(brief), _memory(brief), strict=True):
        yield f"{processor}, {memory}"


def _io(brief: Brief) -> Iterator[Job]:
    yield from (one.job for one in brief.study.workloads if isinstance(one.job, Job))


def _jobs(brief: Brief) -> Iterator[str]:
    yield from (str(job.numjobs) for job in _io(brief))


def _file_sizes(brief: Brief) -> Iterator[str]:
    yield from (format_bytes(job.file_bytes) for job in _io(brief))


def _direct(brief: Brief) -> Iterator[str]:
    yield from ("yes" if job.direct else "no" for job in _io(brief))


def _io_engines(brief: Brief) -> Iterator[str]:
    yield from (job.ioengine for job in _io(brief))


_OWN: Final[Mapping[str, Callable[[Brief], Iterable[str]]]] = {
    "clients": _clients,
    "nodes": _nodes,
    "raw_tb": _raw,
    "usable_tb": _usable,
    "cpu": _processors,
    "node": _servers,
    "server": _servers,
    "dram": _memory,
    "nic": _ports,
    "ssd": _devices,
    "engine": lambda brief: brief.engine_versions,
    "common.filesize": _file_sizes,
    "common.direct": _direct,
    "common.ioengine": _io_engines,
    "common.runtime": lambda brief: [format_duration_s(brief.study.method.runtime_s)],
    "common.startdelay": lambda brief: [format_duration_s(brief.study.method.warmup_s)],
    "warmup_s": lambda brief: [format_duration_s(brief.study.method.warmup_s)],
    "run_s": lambda brief: [format_duration_s(brief.study.method.runtime_s)],
    "repeats": lambda brief: [str(brief.study.method.repeats)],
    "jobs_per_client": _jobs,
    "threads_per_vm": _jobs,
}
