"""From what was watched to what limits: the strongest evidence first, and nothing without any."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from iolab.analyse.limits.stack import ALWAYS_BUSY
from iolab.analyse.limits.step import Step
from iolab.analyse.limits.use import Resource, Use
from iolab.analyse.limits.watched import Flight, Loop, Watched

FULL_PORT: Final = 0.95
"""Share of a link's speed from which it is full: preambles, gaps and checksums that no counter sees
take 1.6 % of full frames, and more of smaller ones."""

FULL_PROCESSORS: Final = 0.90
"""Busy share of all cores from which none is left; interrupts and the kernel take what remains."""

FULL_CORE: Final = 0.95
"""Busy share of one core, or of one by each job, from which a thread that waits for storage at all
would have slept more."""

HELD_RATE: Final = 0.99
"""Share of the rate asked for from which it was kept: the load was what was asked."""

OWN_PART: Final = 0.1
"""Of full processors the part that the load's own jobs must use to be surely why they are full: the
kernel's threads may do as much again for them, hardly nine times as much."""

MOST_OF_LATENCY: Final = 0.5
"""Share of the latency from which a device is where the I/Os are, by Little's law."""

NEARLY_ALL: Final = 0.8
"""The same where processors are full, too: what is left of the latency may wait for these."""

QUEUE_KEPT: Final = 0.8
"""Share of the I/Os asked for that must be in flight: with fewer the engine does not keep up."""


class Cause(StrEnum):
    """What a result is limited by."""

    DEVICE = "device"
    """Busy all the time, and more load no longer raises the rate."""
    DEVICE_OPEN = "device-or-depth"
    """Busy all the time, and nobody tried whether more load raises the rate."""
    PROCESSORS = "processors"
    CORE = "core"
    JOB = "job"
    PORT = "port"
    RATE = "rate"
    """The rate that was asked for, and was kept."""
    PACE = "pace"
    """Time to think between I/Os."""
    ONE_AT_A_TIME = "one-at-a-time"
    """One I/O in flight on each host: the rate is one over the latency."""
    LOAD = "load"
    """The largest load that was asked for still raised the rate."""
    ENGINE = "engine"
    """The engine kept fewer I/Os in flight than asked, with time to spare on every core."""
    SOFTWARE = "software"
    """More load no longer raises the rate, and nothing that it passes through is busy."""
    BEYOND = "beyond"
    """The same where the storage itself was not watched."""
    NONE = "none"
    """Nothing watched was at its limit; nobody tried more load, or it told nothing for sure."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What limits one point: `use` is the resource at its limit, `step` what the load's step says.

    `sure` where no interval speaks against it. `also` are further resources at their limits.
    """

    cause: Cause
    sure: bool
    use: Use | None = None
    step: Step | None = None
    also: tuple[Use, ...] = ()


def decide(seen: Watched, step: Step | None) -> Decision:
    """What the evidence supports; `step` is None where no other load was measured."""
    flight = seen.flight
    if flight is not None and flight.loop is not Loop.CLOSED:
        paced = _paced(flight)
        if paced is not None:
            return Decision(paced, sure=True)
    full, aside = _full(seen, step)
    device = _busy_device(seen)
    if full:
        # A core that is full with all others is nothing more; beside a port they are.
        also = (*full[1:], *aside)[:1] if full[0].resource is Resource.PORT else ()
        sure = not _is_of_others(full[0])
        return Decision(_CAUSES[full[0].resource], sure=sure, use=full[0], also=also)
    alone = step is None and flight is not None and flight.one_each
    if device is not None and not alone and not _pays(step) and _may_explain(seen):
        return _of_device(device, step, aside)
    return _of_load(seen, step, device, aside)


def _of_device(device: Use | None, step: Step | None, also: tuple[Use, ...]) -> Decision:
    if step is None:
        return Decision(Cause.DEVICE_OPEN, sure=False, use=device, also=also)
    return Decision(Cause.DEVICE, sure=step.sure, use=device, step=step, also=also)


def _of_load(
    seen: Watched, step: Step | None, device: Use | None, aside: tuple[Use, ...]
) -> Decision:
    """Where no resource is at its limit: the load that was asked for, or what cannot be seen."""
    flight, nearest = seen.flight, seen.most(Resource.DEVICE)
    if flight is not None and flight.loop is Loop.CLOSED:
        if flight.kept < QUEUE_KEPT and aside:
            return Decision(Cause.PROCESSORS, sure=True, use=aside[0])
        if flight.kept < QUEUE_KEPT:
            return Decision(Cause.ENGINE, sure=True, step=step)
        if flight.one_each and (step is None or step.pays):
            return Decision(Cause.ONE_AT_A_TIME, sure=True, use=device, step=step, also=aside)
    if step is None and aside:
        return _of_device(nearest, None, aside)
    if step is None:
        return Decision(Cause.NONE, sure=False, use=device)
    if step.pays:
        return Decision(Cause.LOAD, sure=step.sure, use=device, step=step, also=aside)
    if nearest is not None and _explains(seen):
        # I/Os are at a device that was not busy all the time, as one that is slowed down in turns.
        return Decision(Cause.DEVICE, sure=False, use=nearest, step=step, also=aside)
    if not step.sure:
        return Decision(Cause.NONE, sure=False, step=step)
    return Decision(Cause.SOFTWARE if seen.storage_seen else Cause.BEYOND, sure=True, step=step)


def _is_of_others(use: Use) -> bool:
    """Whether processors are full of what is hardly the load's: it may wait for these, or not."""
    known = use.resource is Resource.PROCESSORS and use.own is not None and use.share is not None
    return known and (use.own or 0.0) < OWN_PART * (use.share or 0.0)


def _paced(flight: Flight) -> Cause | None:
    """The pace where that was kept; a rate that was not kept met another limit."""
    if flight.target_rate is None:
        return Cause.PACE
    return Cause.RATE if flight.rate >= HELD_RATE * flight.target_rate else None


def _full(seen: Watched, step: Step | None) -> tuple[tuple[Use, ...], tuple[Use, ...]]:
    """Resources whose limit is a hard one, the strongest evidence first; and full processors aside.

    Others may use the processors, too: while nearly all of the latency is spent at devices, the
    load does not wait for them. A job that uses a whole core does.
    """
    found, aside = [], []
    for resource, limit in _LIMITS:
        use = seen.most(resource)
        if use is None or use.share is None or use.share < limit:
            continue
        if resource is Resource.PROCESSORS and _explains(seen, NEARLY_ALL):
            aside.append(use)
        elif resource is not Resource.CORE or not (_pays(step) or _explains(seen)):
            found.append(use)
    return tuple(found), tuple(aside)


_LIMITS: Final = (
    (Resource.PORT, FULL_PORT),
    (Resource.JOB, FULL_CORE),
    (Resource.PROCESSORS, FULL_PROCESSORS),
    (Resource.CORE, FULL_CORE),
)

_CAUSES: Final = {
    Resource.PORT: Cause.PORT,
    Resource.JOB: Cause.JOB,
    Resource.PROCESSORS: Cause.PROCESSORS,
    Resource.CORE: Cause.CORE,
}


def _busy_device(seen: Watched) -> Use | None:
    """The busiest device where it is always busy; memory is none, its work is the processors'."""
    use = None if seen.memory_backed else seen.most(Resource.DEVICE)
    return use if use is not None and (use.share or 0.0) >= ALWAYS_BUSY else None


def _explains(seen: Watched, share: float = MOST_OF_LATENCY) -> bool:
    """Whether devices take that share of the latency by themselves, and not by the processors."""
    known = None if seen.flight is None else seen.flight.at_device
    return known is not None and known >= share and not seen.memory_backed


def _may_explain(seen: Watched) -> bool:
    """Whether nothing says that the I/Os wait elsewhere than at the devices."""
    known = None if seen.flight is None else seen.flight.at_device
    return known is None or known >= MOST_OF_LATENCY


def _pays(step: Step | None) -> bool:
    return step is not None and step.pays
