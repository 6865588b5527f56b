"""All findings of a session, what decides first: gains, crossings, prices, bests, bends."""

from __future__ import annotations

from collections.abc import Sequence

from iolab.analyse.findings.against import crossed, gained, tallied
from iolab.analyse.findings.figures import bends, bests, prices
from iolab.analyse.findings.finding import Finding
from iolab.analyse.gains import Gains
from iolab.analyse.points import PointSummary
from iolab.model.study import Study


def findings(
    study: Study, points: Sequence[PointSummary], compared: Sequence[Gains]
) -> tuple[Finding, ...]:
    """Every finding; `compared` are the other configurations against the first, if any.

    Within a kind the order is the study's, but for gains and prices: the largest first.
    """
    best = tuple(bests(study, points))
    dear = sorted(prices(study, best), key=lambda one: (one.workload, one.per, one.rank))
    return (
        *sorted(gained(compared, points), key=lambda one: -one.share),
        *tallied(compared, points),
        *crossed(study, compared, points),
        *best,
        *bends(study, points),
        *dear,
    )
