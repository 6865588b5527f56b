"""A session's points beside published figures: whole, for each host, node and terabyte. Pure.

The two were measured on different hardware, so that no verdict is given: a ratio says how many
times the published figure was reached here, with an interval from what chance (here) and rounding
(there) leave open. A ratio for each host or terabyte supposes that both would scale evenly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from iolab.analyse.against.printed import Owner, Printed
from iolab.analyse.audit.figure import Span, exact
from iolab.analyse.points import Axis, PointSummary
from iolab.analyse.summary import NANOSECONDS
from iolab.analyse.value import divided
from iolab.model.configuration import Configuration
from iolab.model.metric import Level, Metric, Result
from iolab.model.study import Study


class Basis(StrEnum):
    """What figures are told for."""

    WHOLE = "whole"
    HOST = "host"
    NODE = "node"
    RAW_TB = "raw TB"
    USABLE_TB = "usable TB"


@dataclass(frozen=True, slots=True)
class Share:
    """A figure here and there for one basis, and how many times theirs ours is."""

    here: Metric
    there: Span
    ratio: Metric


@dataclass(frozen=True, slots=True)
class Beside:
    """A published figure and the point of a configuration that stands beside it.

    `shares` has the bases for which both sides are known; WHOLE is always among them.
    """

    configuration: Configuration
    printed: Printed
    axis: Axis
    level: Level
    shares: Mapping[Basis, Share]
    run: Result | None


def beside(
    study: Study, points: Iterable[PointSummary], figures: Iterable[Printed]
) -> tuple[Beside, ...]:
    """Each published figure that a configuration has a value for, in the set's order."""
    found: dict[tuple[str, str], list[PointSummary]] = {}
    for point in points:
        if not point.key.without:
            found.setdefault((point.key.configuration, point.key.workload), []).append(point)
    pairs = (
        _pair(study, configuration, figure, found.get((configuration.id, figure.workload), ()))
        for figure in figures
        for configuration in study.configurations
    )
    return tuple(pair for pair in pairs if pair is not None)


def owners(figures: Iterable[Printed]) -> tuple[str, ...]:
    """The names of what figures were measured on, each once."""
    return tuple(dict.fromkeys(figure.owner.name for figure in figures))


def _pair(
    study: Study, configuration: Configuration, figure: Printed, points: Sequence[PointSummary]
) -> Beside | None:
    """The best point here, among those at the printed place where there are any."""
    known = [one for one in points if _value(one, figure.metric) is not None]
    known = [one for one in known if one.trusted] or known
    there = dict(figure.axis)
    # A place that both have is compared at that place; block sizes never with each other.
    for name in there:
        at = [one for one in known if dict(one.key.axis).get(name) == there[name]]
        varied = any(name in dict(one.key.axis) for one in known)
        known = at or ([] if name == "block_size" and varied else known)
    if not known:
        return None
    pick = min if figure.unit == NANOSECONDS else max
    best = pick(known, key=lambda one: _value(one, figure.metric) or 0.0)
    run = next(iter(best.results or best.left_out), None)
    ours = _sizes(study, configuration, run)
    shares = {
        basis: _share(best.metrics[figure.metric], figure.value, here, there_size)
        for basis, there_size in _their_sizes(figure.owner)
        if (here := ours.get(basis)) and (basis is Basis.WHOLE or figure.unit != NANOSECONDS)
    }
    return Beside(configuration, figure, best.key.axis, best.level, shares, run)


def _value(point: PointSummary, metric: str) -> float | None:
    found = point.metrics.get(metric)
    return None if found is None else found.value


def _sizes(
    study: Study, configuration: Configuration, run: Result | None
) -> dict[Basis, float | None]:
    """What a figure here is divided by for each basis."""
    homes = {spec.name: spec.node for spec in study.hosts}
    guests = {home for host in configuration.hosts if (home := homes.get(host))}
    return {
        Basis.WHOLE: 1.0,
        Basis.HOST: float(len(run.hosts)) if run is not None else None,
        Basis.NODE: configuration.nodes or len(guests) or None,
        Basis.RAW_TB: configuration.capacity.raw_tb,
        Basis.USABLE_TB: configuration.capacity.usable_tb,
    }


def _their_sizes(owner: Owner) -> Iterator[tuple[Basis, Span]]:
    yield Basis.WHOLE, exact(1.0)
    for basis, count in ((Basis.HOST, owner.clients), (Basis.NODE, owner.nodes)):
        if count:
            yield basis, exact(float(count))
    for basis, size in ((Basis.RAW_TB, owner.raw_tb), (Basis.USABLE_TB, owner.usable_tb)):
        if size is not None:
            yield basis, size


def _share(here: Metric, there: Span, here_size: float, there_size: Span) -> Share:
    ours, theirs = divided(here, here_size), there / there_size
    return Share(
        here=ours,
        there=theirs,
        ratio=Metric(
            None if ours.value is None else ours.value / theirs.middle,
            "",
            None if ours.low is None else ours.low / theirs.high,
            None if ours.high is None else ours.high / theirs.low,
            here.n,
        ),
    )
