"""All findings of a session, what decides first: needs, gains, crossings, bests, limits, bends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from iolab.analyse.findings.against import crossed, gained, tallied
from iolab.analyse.findings.figures import bends, bests, prices
from iolab.analyse.findings.finding import Finding, RunKey
from iolab.analyse.findings.limits import limited
from iolab.analyse.findings.needs import suited
from iolab.analyse.gains import Gains
from iolab.analyse.limits.watched import Watched
from iolab.analyse.points import PointSummary
from iolab.model.study import Study


def findings(
    study: Study,
    points: Sequence[PointSummary],
    compared: Sequence[Gains],
    watched: Mapping[RunKey, Watched] = MappingProxyType({}),
) -> tuple[Finding, ...]:
    """Every finding of a study's results.

    `compared` are the other configurations against the first, if any, and `watched` what some runs
    tell of their resources. Within a kind the order is the study's, but for gains and prices: the
    largest first.
    """
    best = tuple(bests(study, points))
    needs = tuple(suited(study, best))
    dear = sorted(prices(study, best), key=lambda one: (one.workload, one.per, one.rank))
    return (
        *(one for one in needs if one.sure),
        *sorted(gained(compared, points), key=lambda one: -one.share),
        *tallied(compared, points),
        *crossed(study, compared, points),
        *(one for one in needs if not one.sure),
        *best,
        *limited(study, points, best, watched),
        *bends(study, points),
        *dear,
    )
