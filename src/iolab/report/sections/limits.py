"""What limits each best point: every resource that was watched, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from iolab.analyse.findings.figures import bests
from iolab.analyse.findings.finding import Limited
from iolab.analyse.findings.limits import limited
from iolab.analyse.limits.decide import Cause
from iolab.analyse.limits.use import Resource
from iolab.analyse.points import PointSummary
from iolab.model.study import Study
from iolab.report.brief import Brief
from iolab.report.detail import RunKey
from iolab.report.figures.choose import Look
from iolab.report.limit_words import owner
from iolab.report.page_parts import ChartGroup, Section
from iolab.report.phrases import part, place
from iolab.report.table import Cell, Table, columns, verdict_cell
from iolab.report.wording import NOTHING
from iolab.units import format_count

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

_RESOURCES: Final = (
    (Resource.DEVICE, "Device"),
    (Resource.PROCESSORS, "All cores"),
    (Resource.CORE, "One core"),
    (Resource.JOB, "Each job"),
    (Resource.PORT, "Port"),
)
"""The heads of their columns; the note says what the shares are of."""

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
    Cause.NONE: "none seen",
}


def limits(
    brief: Brief,
    points: Sequence[PointSummary],
    looks: Mapping[str, Look],  # noqa: ARG001 - as every maker of sections has it
    anchors: Mapping[RunKey, str],
) -> Section | None:
    """The section; None where no run of a best point was watched."""
    study = brief.study
    found = tuple(limited(study, points, tuple(bests(study, points)), brief.watched))
    if not found:
        return None
    table = limits_table(study, found, anchors)
    names = (places_table(study, found), _NAMES_NOTE)
    return Section(ANCHOR, "What limits", _LEDE, (ChartGroup("", (), table, _NOTE, (names,)),))


def limits_table(study: Study, found: Sequence[Limited], anchors: Mapping[RunKey, str]) -> Table:
    """A row for each best point: its limit, then how much of each resource was used."""
    several = len(study.configurations) > 1
    shares = tuple(name for _, name in _RESOURCES)
    rows = tuple(
        (
            *_names(study, one),
            Cell(place(one.axis) or NOTHING),
            Cell(_limit(one)),
            *(Cell(_used(one, resource)) for resource, _ in _RESOURCES),
            Cell(_at_device(one)),
            Cell(_in_flight(one)),
            verdict_cell(one.level, anchors.get(one.runs[0])),
        )
        for one in found
    )
    numbers = columns((), (*shares, "Latency at device", "In flight"))
    heads = (*_heads(several=several), "At", "Limit")
    return Table(
        "What limits each best point", (*columns(heads), *numbers, *columns(("Verdict",))), rows
    )


def places_table(study: Study, found: Sequence[Limited]) -> Table:
    """The names behind the shares: the busiest of each resource, with its host."""
    kinds = (Resource.DEVICE, Resource.CORE, Resource.PORT)
    rows = tuple(
        (*_names(study, one), *(Cell(_named(one, resource)) for resource in kinds)) for one in found
    )
    heads = _heads(several=len(study.configurations) > 1)
    return Table(
        "The busiest of each resource",
        columns((*heads, "Device", "Core", "Port")),
        rows,
    )


def _heads(*, several: bool) -> tuple[str, ...]:
    return ("Workload", "Configuration") if several else ("Workload",)


def _names(study: Study, one: Limited) -> tuple[Cell, ...]:
    titles = {known.id: known.title for known in study.configurations}
    if len(titles) == 1:
        return (Cell(one.workload),)
    return (Cell(one.workload), Cell(titles.get(one.configuration, one.configuration)))


def _limit(one: Limited) -> str:
    """The cause with the name of what it is, and whether an interval speaks against it."""
    decision = one.decision
    name = decision.use.name if decision.cause in _NAMED and decision.use else ""
    open_ended = decision.step is None and decision.cause is not Cause.PROCESSORS
    told = decision.sure or open_ended or decision.cause is Cause.NONE
    doubt = "" if told else ", not sure"
    return f"{_WORDS[decision.cause]}{f' {name}' if name else ''}{doubt}"


def _used(one: Limited, resource: Resource) -> str:
    use = one.seen.most(resource)
    return NOTHING if use is None or use.share is None else part(use.share)


def _named(one: Limited, resource: Resource) -> str:
    use = one.seen.most(resource)
    if use is None:
        return NOTHING
    where = owner(use)
    return f"{use.name} of {where}" if where else use.name


def _at_device(one: Limited) -> str:
    share = one.seen.flight.at_device if one.seen.flight else None
    return NOTHING if share is None else part(share)


def _in_flight(one: Limited) -> str:
    flight = one.seen.flight
    return NOTHING if flight is None else f"{format_count(flight.in_flight)} of {flight.asked:,}"
