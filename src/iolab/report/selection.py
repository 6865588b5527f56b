"""Which runs get charts of their own: a report of hundreds of runs must open at once.

The headline runs come first, then the worst verdicts, then the others in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from iolab.core.metric import Level, Result
from iolab.core.run import RunStatus
from iolab.report.best import Headline
from iolab.report.kinds import Kinds
from iolab.report.series import DetailKey

MAX_TIMELINES: Final = 16
"""Runs with their series drawn: each costs about 50 ms and 80 KiB of page."""

MAX_HEAT_MAPS: Final = 10
"""Runs whose latency over time is drawn: each costs about 20 KiB of page."""

MAX_DISTRIBUTIONS: Final = 64
"""Runs whose latency bins are read and drawn as a curve: each costs about 10 ms."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Runs in the order of their importance; those with a timeline are also drawn as curves.

    Those with a heat map, all of I/O on files, have a timeline too.
    """

    heat_maps: tuple[DetailKey, ...]
    timelines: tuple[DetailKey, ...]
    distributions: tuple[DetailKey, ...]


def select(kinds: Kinds, results: Sequence[Result], found: Iterable[Headline]) -> Selection:
    """The runs that get charts, at most the limits of this module."""
    best = [
        (headline.best.shown.digest, headline.best.shown.repeat)
        for headline in found
        if headline.best is not None
    ]
    measured = [result for result in results if kinds.of(result).is_measured(result)]
    bad = sorted(
        (result for result in measured if result.verdict.level is not Level.VALID),
        key=lambda result: (result.status is RunStatus.DONE, -result.verdict.level.rank),
    )
    order = dict.fromkeys(
        [*best, *((r.digest, r.repeat) for r in bad), *((r.digest, r.repeat) for r in measured)]
    )
    keys = tuple(order)
    io = {(r.digest, r.repeat) for r in measured if kinds.of(r).has_one_figure}
    heat_maps = tuple(key for key in keys[:MAX_TIMELINES] if key in io)[:MAX_HEAT_MAPS]
    return Selection(heat_maps, keys[:MAX_TIMELINES], keys[:MAX_DISTRIBUTIONS])
