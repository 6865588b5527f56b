"""Checks of whether the load was as deep as its label says."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Final

from iolab.analyse.checks.registry import (
    Numbers,
    Said,
    check,
    indicative,
    invalid,
    percent,
    unchecked,
    valid,
    worst,
)
from iolab.analyse.guests.bound import limited_guests
from iolab.analyse.littles_law import (
    concurrency,
    good_limit,
    is_closed_loop,
    tolerable_limit,
)
from iolab.analyse.view import RunView
from iolab.model.generator import GeneratorTotals
from iolab.model.run import HostRun

DEPTH_SHARE_GOOD: Final = 0.90
"""Share of I/Os submitted at the asked depth level: filling and draining the queue, and batches of
completions, take a few per cent; a tenth below the level is another load."""

DEPTH_SHARE_BAD: Final = 0.10
"""Below this share the depth in the point's label is not what ran at all, as with a synchronous
engine."""

RHO_BAD_LOW: Final = 0.5
"""With less than half of the asked I/Os in flight the point belongs at another depth."""

_TOP_LEVEL: Final = 64


@check("depth-not-reached", "Queue depth not reached")
def depth_not_reached(view: RunView) -> Said:
    """Whether the engine submitted its I/Os at the depth that was asked for."""
    if not is_closed_loop(view.job):
        return valid("The load is paced, so the queue is not meant to be full.", paced=True)
    return worst((_depth_of(view, host) for host in view.hosts), least="share")


def depth_level(iodepth: int) -> str:
    """The level under which fio counts a depth: the power of two at or below it, to `>=64`."""
    if iodepth >= _TOP_LEVEL:
        return f">={_TOP_LEVEL}"
    return str(1 << (max(iodepth, 1).bit_length() - 1))


def _depth_of(view: RunView, host: HostRun) -> Said:
    job, where = view.job, view.on(host)
    if host.totals and host.totals.generator and host.totals.generator.depth_asked:
        return _room_for(host.totals.generator, host.host, where)
    shares: Mapping[str, float] = dict(host.totals.depth_percent) if host.totals else {}
    if not shares:
        return unchecked(f"the engine told no depths{where}")
    level = depth_level(job.iodepth)
    share = shares.get(level, 0.0) / 100
    evidence: Numbers = {"host": host.host, "iodepth": job.iodepth, "level": level, "share": share}
    said = (
        f"{percent(share)} of the I/Os{where} were submitted at depth level {level} "
        f"(asked: {job.iodepth})"
    )
    if share < DEPTH_SHARE_BAD:
        return invalid(f"{said}: the load is not what its label says.", **evidence)
    if share < DEPTH_SHARE_GOOD:
        return indicative(f"{said}: the queue often ran short.", **evidence)
    return valid(f"{said}.", **evidence)


def _room_for(generator: GeneratorTotals, host: str, where: str) -> Said:
    """Of an engine that submits whenever it has room: how much room the kernel granted it."""
    asked, used = generator.depth_asked, generator.depth_used
    evidence: Numbers = {"host": host, "iodepth": asked, "room": used, "share": used / asked}
    said = f"The engine{where} had room for {used} of {asked} I/Os in flight"
    if used < DEPTH_SHARE_BAD * asked:
        return invalid(f"{said}: the load is not what its label says.", **evidence)
    if used < asked:
        return indicative(f"{said}: the queue could not be as deep as asked.", **evidence)
    return valid(f"{said}.", **evidence)


@check("littles-law", "Little's law")
def littles_law(view: RunView) -> Said:
    """Whether throughput times latency gives the I/Os that should have been in flight."""
    limited = limited_guests(view)
    return worst((_law_of(view, index, limited) for index in range(len(view.hosts))), most="off")


def _law_of(view: RunView, index: int, limited: Container[str]) -> Said:
    host = view.hosts[index]
    job = view.record.run.point.io_on(host.host)
    found = concurrency(view.load, index, job.depth_total, view.service)
    if found is None:
        return unchecked(f"no latency was measured on {host.host}")
    evidence: Numbers = {
        "host": host.host,
        "rho": found.rho,
        "off": abs(found.rho - 1),
        "in_flight": found.in_flight,
        "asked": found.asked,
        "edge": found.edge,
    }
    mean = f"{found.in_flight:.3g} I/Os were in flight{view.on(host)}"
    if not is_closed_loop(job):
        return valid(f"The load is paced: on average {mean}.", **evidence)
    said = f"On average {mean}, asked were {found.asked} (ratio {found.rho:.3f})"
    if host.host in limited and found.rho < 1:
        return valid(f"{said}: what kept the guest from more is said beside.", **evidence)
    return _law_verdict(said, found.rho - 1, found.edge, job.iodepth, evidence)


def _law_verdict(said: str, off: float, edge: float, iodepth: int, evidence: Numbers) -> Said:
    """More in flight than there can be contradicts itself; fewer is a lighter load."""
    if abs(off) <= good_limit(iodepth) + edge:
        return valid(f"{said}.", **evidence)
    if off > tolerable_limit(iodepth) + edge:
        return invalid(f"{said}: more than can be, so the counts or times are wrong.", **evidence)
    if off < RHO_BAD_LOW - 1:
        return invalid(f"{said}: the load is not what its label says.", **evidence)
    if off > 0:
        return indicative(f"{said}: slightly more than can be.", **evidence)
    if off < -tolerable_limit(iodepth) - edge:
        return indicative(f"{said}: the client did not keep the queue full.", **evidence)
    return indicative(f"{said}: the engine lost time between I/Os.", **evidence)
