"""What limits a best point, as a sentence with the figures that it rests on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from iolab.analysis.bottleneck.decision import Cause
from iolab.analysis.findings import Limited, bests, limited
from iolab.analysis.points import PointSummary
from iolab.core.configuration import LOCAL_HOST
from iolab.core.host import Role
from iolab.core.resources import Resource, ResourceUse, RunResources
from iolab.core.study import Study
from iolab.report.numbers import NOTHING, axis_word, show_value
from iolab.report.phrases import LEVELS, Names, joined, part, place, step_words
from iolab.report.table import Cell, Table, columns, row, verdict_cell
from iolab.units import format_count

if TYPE_CHECKING:
    from iolab.report.brief import Brief
    from iolab.report.charts.chart import ReportSection
    from iolab.report.charts.series import Anchors

STOLEN_NAMED: Final = 0.02
"""Share of the processors' time that others had from which it is told beside."""

SERIAL_NAMED: Final = 0.01
"""Share of serial work from which it can be told from none."""

OWN_MOST: Final = 0.5
"""Of busy processors the load's own jobs use at least this share, or most of it is of others."""

QUIET: Final = 0.05
"""A resource that was used less has no part in what limits."""

_ROLES: Final = {
    Role.CLIENT: "",
    Role.STORAGE: "the storage node ",
    Role.HYPERVISOR: "the node ",
}


def limit_words(limit: Limited, names: Names) -> str:
    """The sentence on what limits a point."""
    who = names.of(limit.configuration) if names.several else "the best"
    at = f" at {place(limit.axis)}" if limit.axis else ""
    text = _CAUSES[limit.decision.cause](limit)
    return f"{limit.workload}: {who}{at} {text}{_doubt(limit)}{_also(limit)}.{LEVELS[limit.level]}"


def use_words(use: ResourceUse) -> str:
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


def owner(use: ResourceUse) -> str:
    """A resource's host, empty for the machine that iolab ran on."""
    local = use.role is Role.CLIENT and use.host == LOCAL_HOST
    return "" if local else f"{_ROLES[use.role]}{use.host}"


def busiest_words(resources: RunResources) -> str:
    """The busiest resources in brackets: ` (device sda 40 % busy, busiest core 60 %)`."""
    parts = [*_busiest(resources)]
    return f" ({', '.join(parts)})" if parts else ""


_RESOURCES: Final = (
    (Resource.DEVICE, "Device", "device {name} {share} busy"),
    (Resource.PROCESSORS, "All cores", "processors {share} busy"),
    (Resource.CORE, "One core", "busiest core {share}"),
    (Resource.JOB, "Each job", "each job {share} of a core"),
    (Resource.PORT, "Port", "port {name} {share} full"),
)
"""Resources in the order named, each with the head of its column and how its use is told."""


def _busiest(resources: RunResources) -> Iterator[str]:
    for resource, _, text in _RESOURCES:
        use = resources.most(resource)
        if use is not None and use.share is not None and use.share >= QUIET:
            yield text.format(name=use.name, share=part(use.share))


def _device(limit: Limited) -> str:
    use = limit.decision.use
    if use is None or limit.decision.step is None:
        return "is limited by a device"
    busy = f"which was busy {_share(use)} of the time{_took(limit)}"
    return f"{_verb(limit)} limited by {use_words(use)}, {busy}: {_step(limit)}"


def _step(limit: Limited) -> str:
    """What the step of load beyond the point did to the rate."""
    step = limit.decision.step
    return step_words(step.axis, step.load, step.further, step.gain) if step else "no more is given"


def _device_open(limit: Limited) -> str:
    use = limit.decision.use
    if use is None:
        return _none(limit)
    at_device = limit.resources.flight.at_device if limit.resources.flight else None
    there = "" if at_device is None else f", with {part(at_device)} of the latency there"
    return (
        f"keeps {use_words(use)} busy {_share(use)} of the time{there}; whether more load would "
        f"raise the rate was not measured"
    )


def _took(limit: Limited) -> str:
    at_device = limit.resources.flight.at_device if limit.resources.flight else None
    return "" if at_device is None else f" and took {part(at_device)} of the latency"


def _processors(limit: Limited) -> str:
    use = limit.decision.use
    share = _share(use) if use else ""
    where = use_words(use) if use else "processors"
    own = ""
    if use is not None and use.own is not None:
        own = f", {part(use.own)} with the load's own jobs"
    return f"{_verb(limit)} limited by {where}: all cores were {share} busy{own}{_stolen(limit)}"


def _core(limit: Limited) -> str:
    use, every = limit.decision.use, limit.resources.most(Resource.PROCESSORS)
    if use is None:
        return _none(limit)
    mean = f", all of them {_share(every)}" if every else ""
    return f"is limited by {use_words(use)}: core {use.name} was {_share(use)} busy{mean}"


def _job(limit: Limited) -> str:
    use, every = limit.decision.use, limit.resources.most(Resource.PROCESSORS)
    if use is None:
        return _none(limit)
    mean = f", while all cores were {_share(every)} busy" if every else ""
    of = f" of {owner(use)}" if owner(use) else ""
    return (
        f"is limited by the processors{of}: each job used {_share(use)} of a core{mean}"
        f"{_stolen(limit)}"
    )


def _port(limit: Limited) -> str:
    use = limit.decision.use
    if use is None or use.rate is None:
        return _none(limit)
    way = "received" if use.name.endswith(" in") else "sent"
    rate = show_value(use.rate, "bytes/s")
    return f"is limited by {use_words(use)}: it {way} {rate}, {_share(use)} of its speed"


def _rate(limit: Limited) -> str:
    flight = limit.resources.flight
    if flight is None or flight.target_rate is None:
        return "is limited by the rate that was asked for"
    kept = part(flight.rate / flight.target_rate)
    rate = show_value(flight.target_rate, "1/s")
    return f"is limited by the rate that was asked for: {kept} of {rate} were kept"


def _pace(limit: Limited) -> str:
    return (
        f"is limited by the pauses that its load makes between I/Os{busiest_words(limit.resources)}"
    )


def _one_at_a_time(limit: Limited) -> str:
    flight = limit.resources.flight
    text = "is limited by its load of one I/O at a time"
    if flight is not None:
        latency = show_value(flight.latency_ns, "ns")
        text += f", whose latency is {latency}"
        text += (
            "" if flight.at_device is None else f", {part(flight.at_device)} of it at the device"
        )
    return text if limit.decision.step is None else f"{text}: {_step(limit)}"


def _load(limit: Limited) -> str:
    use = limit.decision.use
    if limit.decision.step is None:
        return _none(limit)
    busy = f", though {use_words(use)} is busy {_share(use)} of the time" if use else ""
    tried = f"{_step(limit)}, and no more was tried{busy}"
    return f"{_verb(limit)} limited by the load that was asked for: {tried}"


def _engine(limit: Limited) -> str:
    flight = limit.resources.flight
    if flight is None:
        return _none(limit)
    kept = f"of {flight.asked:,} I/Os asked for, {format_count(flight.in_flight)} were in flight"
    return f"is limited by its engine: {kept}{busiest_words(limit.resources)}"


def _software(limit: Limited) -> str:
    kinds = "as by locks, serial work or a limit that it sets"
    return f"is limited by software, {kinds}: {_bends(limit)}{_law(limit)}"


def _beyond(limit: Limited) -> str:
    return f"has met a limit that was not watched: {_bends(limit)}"


def _bends(limit: Limited) -> str:
    return f"{_step(limit)} with no resource watched at its limit{busiest_words(limit.resources)}"


def _law(limit: Limited) -> str:
    """The law's contention where it is any."""
    law = limit.law
    if law is None or law.sigma < SERIAL_NAMED:
        return ""
    return f"; by the Universal Scalability Law {part(law.sigma)} of the work is serial"


def _none(limit: Limited) -> str:
    text = f"had no resource watched at its limit{busiest_words(limit.resources)}"
    if limit.decision.step is None:
        return f"{text}; whether more load would raise the rate was not measured"
    return f"{text}: {_step(limit)}"


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


def _share(use: ResourceUse | None) -> str:
    return part(use.share) if use is not None and use.share is not None else ""


def _verb(limit: Limited) -> str:
    return "is" if limit.decision.sure else "seems"


def _also(limit: Limited) -> str:
    also = limit.decision.also
    if not also:
        return ""
    several = len(also) > 1 or also[0].resource is Resource.PROCESSORS
    named = joined([use_words(use) for use in also])
    return f"; {named} {'were' if several else 'was'} also saturated"


def _stolen(limit: Limited) -> str:
    if limit.resources.stolen < STOLEN_NAMED:
        return ""
    return f", of which a hypervisor took {part(limit.resources.stolen)} for others"


def _doubt(limit: Limited) -> str:
    """What keeps a statement on a step from being sure."""
    decision = limit.decision
    if decision.step is None or decision.sure:
        return ""
    return ", by single runs" if decision.step.single else ", with low confidence"


ANCHOR: Final = "limits"

_LEDE: Final = (
    "What kept the best points from more, by how busy each resource was (utilisation law), by "
    "where the I/Os in flight were (Little's law), and by whether more load still raised the rate."
)
_NOTE: Final = (
    "Means over the measured window of one run of each best point: the share of the time that the "
    "busiest device, all cores and the busiest core were busy, the share of a core that each job "
    "used, and of its speed that the fullest port carried. A device that serves many I/Os "
    "at once may be busy all the time and still have more to give: it counts as the limit only "
    "where more load no longer raised the rate. Latency at the device is the share that "
    "its own I/Os took of the engine's."
)

_NAMES_NOTE: Final = "Of several hosts the one with the busiest is named."

_NAMED: Final = (Cause.DEVICE, Cause.DEVICE_OPEN, Cause.CORE, Cause.PORT)
"""Limits of which there may be several on a host."""

_WORDS: Final[Mapping[Cause, str]] = {
    Cause.DEVICE: "device",
    Cause.DEVICE_OPEN: "load, or device",
    Cause.PROCESSORS: "processors",
    Cause.CORE: "core",
    Cause.JOB: "a core for each job",
    Cause.PORT: "port",
    Cause.RATE: "rate asked for",
    Cause.PACE: "pauses of the load",
    Cause.ONE_AT_A_TIME: "one I/O at a time",
    Cause.LOAD: "load asked for",
    Cause.ENGINE: "engine",
    Cause.SOFTWARE: "software",
    Cause.BEYOND: "not watched",
    Cause.NONE: "not known",
}


def bottlenecks(brief: Brief) -> ReportSection | None:
    """The section; None where no run of a best point was watched."""
    # And numpy, which the line has no use for.
    from iolab.report.charts.chart import ChartGroup, ReportSection

    study, points = brief.study, brief.points
    limits = tuple(limited(study, points, tuple(bests(study, points)), brief.watched))
    if not limits:
        return None
    shares = (limits_table(study, limits, brief.anchors), _NOTE)
    names = (places_table(study, limits), _NAMES_NOTE)
    group = ChartGroup("", (), next_table(study, limits, points), "", (shares, names))
    return ReportSection(ANCHOR, "Bottlenecks", _LEDE, (group,), in_appendix=False)


def next_table(study: Study, limits: Sequence[Limited], points: Sequence[PointSummary]) -> Table:
    """What limits the best points, which, what tells it, and what to do about it.

    Points that have the limit and the next step in common share a row.
    """
    rows: dict[tuple[str, str], list[Limited]] = {}
    for limit in limits:
        rows.setdefault((_limit(limit), _next(limit, points)), []).append(limit)
    cells = tuple(
        row(cause, _whose(study, alike, limits), _evidence(alike), step)
        for (cause, step), alike in rows.items()
    )
    heads = ("Limited by", "Workloads", "Evidence", "What to do next")
    return Table("Bottlenecks", columns(heads), cells)


LINE_MOST: Final = 3
"""Limits that the line on a terminal names."""


def limits_line(study: Study, limits: Sequence[Limited]) -> str:
    """`processors (Read IOPS); device vda (all others)`: what limits the best points, in short."""
    groups: dict[str, list[Limited]] = {}
    for limit in limits:
        groups.setdefault(_limit(limit), []).append(limit)
    parts = [f"{cause} ({_whose(study, alike, limits)})" for cause, alike in groups.items()]
    more = f" and {len(parts) - LINE_MOST} more" if len(parts) > LINE_MOST else ""
    return f"{'; '.join(parts[:LINE_MOST])}{more}"


def _whose(study: Study, alike: Sequence[Limited], limits: Sequence[Limited]) -> str:
    """Which of all best points these are: a workload alone where all its configurations are."""
    titles = study.titles
    names = study.workload_titles
    if len(alike) == len(limits) > 1:
        return "all"
    owners = {
        workload: [limit.configuration for limit in limits if limit.workload == workload]
        for workload in dict.fromkeys(limit.workload for limit in alike)
    }
    parts: dict[str, list[str]] = {}
    for workload, of in owners.items():
        here = [limit.configuration for limit in alike if limit.workload == workload]
        for whose in [""] if len(here) == len(of) else here:
            parts.setdefault(whose, []).append(names.get(workload, workload))
    return "; ".join(
        f"{titles.get(whose, whose)}: {', '.join(workloads)}" if whose else ", ".join(workloads)
        for whose, workloads in parts.items()
    )


def _next(limit: Limited, points: Sequence[PointSummary]) -> str:
    """What would tell more: first to repeat a load that was tried and whose run is none."""
    tried = [
        point.key.axis
        for point in points
        if (point.key.workload, point.key.configuration) == (limit.workload, limit.configuration)
        and not point.trusted
    ]
    if tried and limit.decision.cause in _OPEN:
        return f"Repeat {place(tried[-1]) or 'it'}: its run was invalid or failed."
    return next_step(limit)


_OPEN: Final = (Cause.LOAD, Cause.NONE, Cause.DEVICE_OPEN, Cause.ONE_AT_A_TIME)
"""Limits that more load may show not to be any."""


def next_step(limit: Limited) -> str:
    """What would raise the rate, or tell what limits it."""
    use, step = limit.decision.use, limit.decision.step
    name = use.name if use is not None else "the device"
    load = "the load" if step is None else f"{axis_word(step.axis)} beyond {step.further}"
    steps = {
        Cause.DEVICE: "Add devices, or take faster ones.",
        Cause.DEVICE_OPEN: f"Raise the load to see whether {name} has more to give.",
        Cause.PROCESSORS: _OTHERS_NEXT if _held_by_others(use) else "Add clients or processors.",
        Cause.CORE: "Spread the load over more jobs; move interrupts off that core.",
        Cause.JOB: "Raise numjobs: each job has one core and no more.",
        Cause.PORT: "Add clients, or a faster network port.",
        Cause.RATE: "Raise the rate, or leave it out.",
        Cause.PACE: "Leave out the pauses (thinktime).",
        Cause.ONE_AT_A_TIME: "Raise iodepth or numjobs.",
        Cause.LOAD: f"Raise {load}.",
        Cause.ENGINE: "Check ioengine and direct: fewer I/Os are in flight than were asked for.",
        Cause.SOFTWARE: "Profile clients and servers for locks and limits.",
        Cause.BEYOND: "Watch the storage nodes and the network too (add them as hosts).",
        Cause.NONE: f"Raise {load} to find the limit.",
    }
    return steps[limit.decision.cause]


_OTHERS_NEXT: Final = (
    "Other processes (or the kernel for the load) held most of the busy cores: stop the others and "
    "measure again."
)
"""The rest of busy processors is of both: their counters do not tell whom the kernel works for."""


def _held_by_others(use: ResourceUse | None) -> bool:
    """Whether the load's own jobs used less than half of what of the processors was busy."""
    if use is None or use.own is None or use.share is None:
        return False
    return use.own < OWN_MOST * use.share


def _evidence(alike: Sequence[Limited]) -> str:
    """The busiest resource, the latency at the device, and what more load did.

    Of several the range of each, without what more load did to each of them.
    """
    parts = []
    for resource, _, text in _RESOURCES:
        uses = [limit.resources.most(resource) for limit in alike]
        shares = [use.share for use in uses if use is not None and use.share is not None]
        names = {use.name for use in uses if use is not None}
        if len(shares) == len(alike) and min(shares) >= QUIET:
            name = names.pop() if len(names) == 1 else ""
            parts = [text.format(name=name, share=_range(shares)).replace("  ", " ")]
            break
    parts += _own_evidence(alike)
    there = [limit.resources.flight.at_device for limit in alike if limit.resources.flight]
    measured = [share for share in there if share is not None]
    parts += [f"{_range(measured)} of latency at the device"] if len(measured) == len(alike) else []
    parts += [_step(limit) for limit in alike if limit.decision.step] if len(alike) == 1 else []
    return "; ".join(parts) or NOTHING


def _own_evidence(alike: Sequence[Limited]) -> list[str]:
    """What the load's own jobs and all else held of the processors, where these are the limit."""
    uses = [limit.decision.use for limit in alike if limit.decision.cause is Cause.PROCESSORS]
    shares = [
        (use.own, max(use.share - use.own, 0.0))
        for use in uses
        if use is not None and use.own is not None and use.share is not None
    ]
    if not shares or len(shares) < len(alike):
        return []
    own, others = zip(*shares, strict=True)
    return [f"own jobs {_range(own)}, all else {_range(others)} of the cores"]


def _range(shares: Sequence[float]) -> str:
    """`88 to 99 %`, or the one share that all have."""
    low, high = part(min(shares)), part(max(shares))
    return high if low == high else f"{low.removesuffix(' %')} to {high}"


def limits_table(study: Study, limits: Sequence[Limited], anchors: Anchors) -> Table:
    """A row for each best point: its limit, then how much of each resource was used."""
    several = len(study.configurations) > 1
    shares = tuple(name for _, name, _ in _RESOURCES)
    rows = tuple(
        (
            *_names(study, limit),
            Cell(place(limit.axis) or NOTHING),
            Cell(_limit(limit)),
            *(Cell(_used(limit, resource)) for resource, _, _ in _RESOURCES),
            Cell(_at_device(limit)),
            Cell(_in_flight(limit)),
            verdict_cell(limit.level, anchors.get(limit.runs[0])),
        )
        for limit in limits
    )
    numbers = (*shares, "Latency at device", "In flight")
    heads = columns((*_heads(several=several), "At", "Limit"), numbers, ("Verdict",))
    return Table("Bottleneck of each best point", heads, rows)


def places_table(study: Study, limits: Sequence[Limited]) -> Table:
    """The names behind the shares: the busiest of each resource, with its host."""
    kinds = (Resource.DEVICE, Resource.CORE, Resource.PORT)
    rows = tuple(
        (*_names(study, limit), *(Cell(_named(limit, resource)) for resource in kinds))
        for limit in limits
    )
    heads = _heads(several=len(study.configurations) > 1)
    return Table(
        "The busiest of each resource",
        columns((*heads, "Device", "Core", "Port")),
        rows,
    )


def _heads(*, several: bool) -> tuple[str, ...]:
    return ("Workload", "Configuration") if several else ("Workload",)


def _names(study: Study, limit: Limited) -> tuple[Cell, ...]:
    titles = study.titles
    names = study.workload_titles
    workload = Cell(names.get(limit.workload, limit.workload))
    if len(titles) == 1:
        return (workload,)
    return (workload, Cell(titles.get(limit.configuration, limit.configuration)))


def _limit(limit: Limited) -> str:
    """The cause with the name of what it is, and whether an interval speaks against it."""
    decision = limit.decision
    name = decision.use.name if decision.cause in _NAMED and decision.use else ""
    open_ended = decision.step is None and decision.cause is not Cause.PROCESSORS
    is_sure = decision.sure or open_ended or decision.cause is Cause.NONE
    doubt = "" if is_sure else ", not sure"
    return f"{_WORDS[decision.cause]}{f' {name}' if name else ''}{doubt}"


def _used(limit: Limited, resource: Resource) -> str:
    use = limit.resources.most(resource)
    return NOTHING if use is None or use.share is None else part(use.share)


def _named(limit: Limited, resource: Resource) -> str:
    use = limit.resources.most(resource)
    if use is None:
        return NOTHING
    where = owner(use)
    return f"{use.name} of {where}" if where else use.name


def _at_device(limit: Limited) -> str:
    share = limit.resources.flight.at_device if limit.resources.flight else None
    return NOTHING if share is None else part(share)


def _in_flight(limit: Limited) -> str:
    flight = limit.resources.flight
    return NOTHING if flight is None else f"{format_count(flight.in_flight)} of {flight.asked:,}"
