"""The best of every workload and configuration, as sections and tables tell it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from iolab.analysis.curves import HOSTS
from iolab.analysis.points import PointSummary
from iolab.analysis.value import Maximum
from iolab.core.metric import Level
from iolab.core.study import Study
from iolab.report.best import Headline
from iolab.report.charts.hosts import host_values
from iolab.report.kinds import Kinds
from iolab.report.numbers import count
from iolab.report.series import DetailKey
from iolab.report.table import Cell, verdict_cell

PRINTED: Final = "printed"
"""What stands in place of a verdict where others published a figure."""


@dataclass(frozen=True, slots=True)
class Peak:
    """A maximum; `slowest` and `fastest` are its hosts' values in the run that stands for it.

    They are None where one host made the load, or none is known; `shown` is that run's key.
    """

    best: Maximum
    shown: DetailKey | None = None
    slowest: float | None = None
    fastest: float | None = None

    def verdict(self, anchors: Mapping[DetailKey, str]) -> Cell:
        """The cell of its verdict, which leads to the run."""
        if self.best.level is None:
            return Cell(PRINTED)
        return verdict_cell(self.best.level, anchors.get(self.shown) if self.shown else None)


def peaks_of(kinds: Kinds, study: Study, points: Sequence[PointSummary]) -> tuple[Peak, ...]:
    """Of I/O each workload and each mix of guests; of load on keys each group of operations.

    Invalid points are taken only where there is no other, and their level says so.
    """
    return _peaks(kinds.headlines(study, points))


def singles_of(kinds: Kinds, study: Study, points: Sequence[PointSummary]) -> tuple[Maximum, ...]:
    """The best of each workload with one host, where a study varies how many make its load."""
    alone = [point for point in points if dict(point.key.axis).get(HOSTS) == 1]
    return tuple(one.best for one in _peaks(kinds.plain_headlines(study, alone)))


def _peaks(found: Iterable[Headline]) -> tuple[Peak, ...]:
    return tuple(peak for headline in found if (peak := _peak(headline)) is not None)


def _peak(headline: Headline) -> Peak | None:
    best = headline.best
    if best is None:
        return None
    key = headline.workload.figure
    run = best.shown
    values = host_values(run, key).values() if len(run.hosts) > 1 else ()
    return Peak(
        best=Maximum(
            configuration=headline.configuration.id,
            workload=headline.workload.id,
            metric=key,
            value=best.figure,
            axis=run.axis,
            level=best.level,
            runs=tuple((one.digest, one.repeat) for one in best.results),
            title=headline.workload.title,
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
