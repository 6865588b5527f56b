"""What limits a best point, as a sentence with the figures that it rests on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from iolab.analyse.findings.finding import Limited
from iolab.analyse.limits.decide import Cause
from iolab.analyse.limits.use import Resource, Use
from iolab.analyse.limits.watched import Watched
from iolab.model.host import Role
from iolab.plan.load import LOCAL_HOST
from iolab.report.phrases import LEVELS, Names, joined, part, place, step_words
from iolab.report.wording import show_value
from iolab.units import format_count

STOLEN_TOLD: Final = 0.02
"""Share of the processors' time that others had from which it is told beside."""

SERIAL_TOLD: Final = 0.01
"""Share of serial work from which it can be told from none."""

QUIET: Final = 0.05
"""A resource that was used less has no part in what limits."""

_ROLES: Final = {
    Role.CLIENT: "",
    Role.STORAGE: "the storage node ",
    Role.HYPERVISOR: "the node ",
}


def limit_words(one: Limited, names: Names) -> str:
    """The sentence on what limits a point."""
    who = names.of(one.configuration) if names.several else "the best"
    at = f" at {place(one.axis)}" if one.axis else ""
    text = _CAUSES[one.decision.cause](one)
    return f"{one.workload}: {who}{at} {text}{_doubt(one)}{_also(one)}.{LEVELS[one.level]}"


def use_words(use: Use) -> str:
    """A resource with its host: `the device nvme0n1 of client-1`."""
    whose = owner(use)
    of = f" of {whose}" if whose else ""
    named = {
        Resource.DEVICE: f"the device {use.name}{of}",
        Resource.PORT: f"the network port {use.name.rpartition(' ')[0]}{of}",
        Resource.CORE: f"one core{of}",
        Resource.JOB: f"what one core gives each job{of}",
        Resource.PROCESSORS: f"the processors{of}",
    }
    return named[use.resource]


def owner(use: Use) -> str:
    """A resource's host, empty for the machine that iolab ran on."""
    local = use.role is Role.CLIENT and use.host == LOCAL_HOST
    return "" if local else f"{_ROLES[use.role]}{use.host}"


def seen_words(seen: Watched) -> str:
    """The busiest resources in brackets: ` (device sda 40 % busy, busiest core 60 %)`."""
    parts = [*_seen(seen)]
    return f" ({', '.join(parts)})" if parts else ""


def _seen(seen: Watched) -> Iterator[str]:
    told = (
        (Resource.DEVICE, "device {name} {share} busy"),
        (Resource.PROCESSORS, "processors {share} busy"),
        (Resource.CORE, "busiest core {share}"),
        (Resource.JOB, "each job {share} of a core"),
        (Resource.PORT, "port {name} {share} full"),
    )
    for resource, text in told:
        use = seen.most(resource)
        if use is not None and use.share is not None and use.share >= QUIET:
            yield text.format(name=use.name, share=part(use.share))


def _device(one: Limited) -> str:
    use, step = one.decision.use, one.decision.step
    if use is None or step is None:
        return "is limited by a device"
    busy = f"which was busy {_share(use)} of the time{_took(one)}"
    more = step_words(step.axis, step.load, step.further, step.gain)
    return f"{_is(one)} limited by {use_words(use)}, {busy}: {more}"


def _device_open(one: Limited) -> str:
    use = one.decision.use
    if use is None:
        return _none(one)
    at_device = one.seen.flight.at_device if one.seen.flight else None
    there = "" if at_device is None else f", with {part(at_device)} of the latency there"
    return (
        f"keeps {use_words(use)} busy {_share(use)} of the time{there}; whether more load would "
        f"raise the rate was not measured"
    )


def _took(one: Limited) -> str:
    at_device = one.seen.flight.at_device if one.seen.flight else None
    return "" if at_device is None else f" and took {part(at_device)} of the latency"


def _processors(one: Limited) -> str:
    use = one.decision.use
    share = _share(use) if use else ""
    where = use_words(use) if use else "processors"
    own = ""
    if use is not None and use.own is not None and not one.decision.sure:
        own = f", {part(use.own)} with its own jobs"
    return f"{_is(one)} limited by {where}: all cores were {share} busy{own}{_stolen(one)}"


def _core(one: Limited) -> str:
    use, every = one.decision.use, one.seen.most(Resource.PROCESSORS)
    if use is None:
        return _none(one)
    mean = f", all of them {_share(every)}" if every else ""
    return f"is limited by {use_words(use)}: core {use.name} was {_share(use)} busy{mean}"


def _job(one: Limited) -> str:
    use, every = one.decision.use, one.seen.most(Resource.PROCESSORS)
    if use is None:
        return _none(one)
    mean = f", while all cores were {_share(every)} busy" if every else ""
    of = f" of {owner(use)}" if owner(use) else ""
    return (
        f"is limited by the processors{of}: each job used {_share(use)} of a core{mean}"
        f"{_stolen(one)}"
    )


def _port(one: Limited) -> str:
    use = one.decision.use
    if use is None or use.rate is None:
        return _none(one)
    way = "received" if use.name.endswith(" in") else "sent"
    rate = show_value(use.rate, "bytes/s")
    return f"is limited by {use_words(use)}: it {way} {rate}, {_share(use)} of its speed"


def _rate(one: Limited) -> str:
    flight = one.seen.flight
    if flight is None or flight.target_rate is None:
        return "is limited by the rate that was asked for"
    kept = part(flight.rate / flight.target_rate)
    rate = show_value(flight.target_rate, "1/s")
    return f"is limited by the rate that was asked for: {kept} of {rate} were kept"


def _pace(one: Limited) -> str:
    return f"is limited by the pauses that its load makes between I/Os{seen_words(one.seen)}"


def _one_at_a_time(one: Limited) -> str:
    flight, step = one.seen.flight, one.decision.step
    text = "is limited by its load of one I/O at a time"
    if flight is not None:
        latency = show_value(flight.latency_ns, "ns")
        text += f", whose latency is {latency}"
        text += (
            "" if flight.at_device is None else f", {part(flight.at_device)} of it at the device"
        )
    if step is not None:
        text += f": {step_words(step.axis, step.load, step.further, step.gain)}"
    return text


def _load(one: Limited) -> str:
    use, step = one.decision.use, one.decision.step
    if step is None:
        return _none(one)
    more = step_words(step.axis, step.load, step.further, step.gain)
    busy = f", though {use_words(use)} is busy {_share(use)} of the time" if use else ""
    return f"{_is(one)} limited by the load that was asked for: {more}, and no more was tried{busy}"


def _engine(one: Limited) -> str:
    flight = one.seen.flight
    if flight is None:
        return _none(one)
    kept = f"of {flight.asked:,} I/Os asked for, {format_count(flight.in_flight)} were in flight"
    return f"is limited by its engine: {kept}{seen_words(one.seen)}"


def _software(one: Limited) -> str:
    kinds = "as by locks, serial work or a limit that it sets"
    return f"is limited by software, {kinds}: {_bends(one)}{_law(one)}"


def _beyond(one: Limited) -> str:
    return f"has met a limit that was not watched: {_bends(one)}"


def _bends(one: Limited) -> str:
    step = one.decision.step
    more = step_words(step.axis, step.load, step.further, step.gain) if step else "no more is given"
    return f"{more} with no resource watched at its limit{seen_words(one.seen)}"


def _law(one: Limited) -> str:
    """The law's contention where it is any."""
    law = one.law
    if law is None or law.sigma < SERIAL_TOLD:
        return ""
    return f"; by the Universal Scalability Law {part(law.sigma)} of the work is serial"


def _none(one: Limited) -> str:
    step = one.decision.step
    text = f"had no resource watched at its limit{seen_words(one.seen)}"
    if step is None:
        return f"{text}; whether more load would raise the rate was not measured"
    return f"{text}: {step_words(step.axis, step.load, step.further, step.gain)}"


_CAUSES: Final[Mapping[Cause, Callable[[Limited], str]]] = {
    Cause.DEVICE: _device,
    Cause.DEVICE_OPEN: _device_open,
    Cause.PROCESSORS: _processors,
    Cause.CORE: _core,
    Cause.JOB: _job,
    Cause.PORT: _port,
    Cause.RATE: _rate,
    Cause.PACE: _pace,
    Cause.ONE_AT_A_TIME: _one_at_a_time,
    Cause.LOAD: _load,
    Cause.ENGINE: _engine,
    Cause.SOFTWARE: _software,
    Cause.BEYOND: _beyond,
    Cause.NONE: _none,
}
"""What is said of each."""


def _share(use: Use | None) -> str:
    return part(use.share) if use is not None and use.share is not None else ""


def _is(one: Limited) -> str:
    return "is" if one.decision.sure else "seems"


def _also(one: Limited) -> str:
    found = [use_words(use) for use in one.decision.also]
    return f"; {joined(found)} had nothing left either" if found else ""


def _stolen(one: Limited) -> str:
    if one.seen.stolen < STOLEN_TOLD:
        return ""
    return f", of which a hypervisor took {part(one.seen.stolen)} for others"


def _doubt(one: Limited) -> str:
    """What keeps a statement on a step from being sure."""
    decision = one.decision
    if decision.step is None or decision.sure:
        return ""
    return ", by single runs" if decision.step.single else ", though not for sure"
