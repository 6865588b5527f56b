"""The best of every workload and configuration, as sections and tables tell it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from iolab.analyse.points import FIGURES, Axis, PointSummary
from iolab.analyse.scaling import HOSTS
from iolab.analyse.value import Maximum
from iolab.model.metric import Level
from iolab.model.study import Study
from iolab.report.detail import RunKey
from iolab.report.figures.hosts import host_values
from iolab.report.guests.groups import io_headlines
from iolab.report.headline import Headline
from iolab.report.key_value.groups import group_headlines, groups_in
from iolab.report.table import Cell, verdict_cell
from iolab.report.wording import count

PRINTED: Final = "printed"
"""What stands in place of a verdict where others published a figure."""


@dataclass(frozen=True, slots=True)
class Peak:
    """A maximum; `slowest` and `fastest` are its hosts' values in the run that stands for it.

    They are None where one host made the load, or none is known; `shown` is that run's key.
    """

    best: Maximum
    shown: RunKey | None = None
    slowest: float | None = None
    fastest: float | None = None

    def verdict(self, anchors: Mapping[RunKey, str]) -> Cell:
        """The cell of its verdict, which leads to the run."""
        if self.best.level is None:
            return Cell(PRINTED)
        return verdict_cell(self.best.level, anchors.get(self.shown) if self.shown else None)


def peaks_of(study: Study, points: Sequence[PointSummary]) -> tuple[Peak, ...]:
    """Of I/O each workload and each mix of guests; of load on keys each group of operations.

    Invalid points are taken only where there is no other, and their level says so.
    """
    return (*_of_io(study, points), *_of_keys(study, points))


def singles_of(study: Study, points: Sequence[PointSummary]) -> tuple[Maximum, ...]:
    """The best of each workload with one host, where a study varies how many make its load."""
    alone = [point for point in points if dict(point.key.axis).get(HOSTS) == 1]
    return tuple(one.best for one in _of_io(study, alone))


def _of_io(study: Study, points: Sequence[PointSummary]) -> Iterator[Peak]:
    for headline in io_headlines(study, points):
        peak = _peak(headline, headline.workload.id, headline.workload.title)
        if peak is not None:
            yield peak


def _of_keys(study: Study, points: Sequence[PointSummary]) -> Iterator[Peak]:
    for group in groups_in(study, points):
        name = _name(group.workload.id, group.others)
        for headline in group_headlines(group, study):
            peak = _peak(headline, name, group.title)
            if peak is not None:
                yield peak


def _name(workload: str, others: Axis) -> str:
    return " ".join([workload, *(str(value) for _, value in others)])


def _peak(headline: Headline, name: str, title: str) -> Peak | None:
    best = headline.best
    if best is None:
        return None
    key = FIGURES[headline.workload.indicator]
    run = best.shown
    values = host_values(run, key).values() if len(run.hosts) > 1 else ()
    return Peak(
        best=Maximum(
            configuration=headline.configuration.id,
            workload=name,
            metric=key,
            value=best.figure,
            axis=run.axis,
            level=best.level,
            runs=tuple((one.digest, one.repeat) for one in best.results),
            title=title,
            places=headline.compared,
            hosts=0 if run.nodes else best.host_count,
        ),
        shown=(run.digest, run.repeat),
        slowest=min(values, default=None),
        fastest=max(values, default=None),
    )


SAID_MOST: Final = 6
"""Statements in a chart's sentence; the others stand in its table."""


def sentence(statements: Sequence[str]) -> str:
    """Statements as one sentence of a chart, the first of many."""
    hidden = len(statements) - SAID_MOST
    more = (f"{count(hidden, 'more workload')} in the table",) if hidden > 0 else ()
    return f"{'; '.join((*statements[:SAID_MOST], *more))}."


def worst(levels: Sequence[Level | None]) -> Level | None:
    """The worst verdict of several, None where nobody judged any."""
    known = [level for level in levels if level is not None]
    return max(known, key=lambda level: level.rank, default=None)
