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

ANCHOR: Final = "limits"

_LEDE: Final = (
    "What kept the best points from more, by how busy each resource was (utilisation law), by "
    "where the I/Os in flight were (Little's law), and by whether more load still raised the rate."
)
_NOTE: Final = (
    "Means over the measured window of one run of each best point. A device that serves many I/Os "
    "at once may be busy all the time and still have more to give: it counts as the limit only "
    "where more load no longer raised the rate. A port is held against its speed where this is "
    "known; latency at the device is the share that its own I/Os took of the engine's."
)

_RESOURCES: Final = (
    (Resource.DEVICE, "Device busy"),
    (Resource.PROCESSORS, "All cores"),
    (Resource.CORE, "Busiest core"),
    (Resource.JOB, "Each job, of a core"),
    (Resource.PORT, "Port"),
)

_WORDS: Final[Mapping[Cause, str]] = {
    Cause.DEVICE: "device",
    Cause.DEVICE_OPEN: "device or depth",
    Cause.PROCESSORS: "processors",
    Cause.CORE: "one core",
    Cause.JOB: "processors, one core each job",
    Cause.PORT: "network port",
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
    return Section(ANCHOR, "What limits", _LEDE, (ChartGroup("", (), table, _NOTE),))


def limits_table(study: Study, found: Sequence[Limited], anchors: Mapping[RunKey, str]) -> Table:
    """A row for each best point: its limit, then each resource with its name and host."""
    several = len(study.configurations) > 1
    titles = {one.id: one.title for one in study.configurations}
    heads = ("Workload", *(("Configuration",) if several else ()), "At", "Limit")
    shares = tuple(name for _, name in _RESOURCES)
    rows = tuple(
        (
            Cell(one.workload, anchor=anchors.get(one.runs[0])),
            *((Cell(titles.get(one.configuration, one.configuration)),) if several else ()),
            Cell(place(one.axis) or NOTHING),
            Cell(_limit(one)),
            verdict_cell(one.level),
            *(Cell(_used(one, resource)) for resource, _ in _RESOURCES),
            Cell(_at_device(one)),
            Cell(_in_flight(one)),
        )
        for one in found
    )
    return Table(
        "What limits each best point",
        columns((*heads, "Verdict"), (*shares, "Latency at device", "In flight")),
        rows,
    )


def _limit(one: Limited) -> str:
    """The cause, with a question mark where an interval speaks against it."""
    doubt = "" if one.decision.sure or one.decision.step is None else " (not sure)"
    return f"{_WORDS[one.decision.cause]}{doubt}"


def _used(one: Limited, resource: Resource) -> str:
    use = one.seen.most(resource)
    if use is None or use.share is None:
        return NOTHING
    names = " ".join(part for part in (use.name, owner(use)) if part)
    return f"{part(use.share)}{f' ({names})' if names else ''}"


def _at_device(one: Limited) -> str:
    share = one.seen.flight.at_device if one.seen.flight else None
    return NOTHING if share is None else part(share)


def _in_flight(one: Limited) -> str:
    flight = one.seen.flight
    return NOTHING if flight is None else f"{flight.in_flight:.3g} of {flight.asked:,}"
