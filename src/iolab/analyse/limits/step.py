"""How the load's last step paid: whether more load still raised the rate where it was best.

That a device is busy all the time says little of one that serves many I/Os at once. Whether its
rate still rises with the I/Os in flight does: a doubled load that gives less than the square root
of two has met a limit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from iolab.analyse.method.usl import Usl, fit
from iolab.analyse.points import REPLICATED, PointSummary

PAYS: Final = 0.5
"""A load that is doubled should give more than the square root of two; less is waiting."""

USL_POINTS_LEAST: Final = 4
"""The law has three parameters: any three points lie on one."""


@dataclass(frozen=True, slots=True)
class Step:
    """The step of one axis of load at the best point: to it from below, or from it to the next.

    `gain` is the ratio of the rates. `pays` where it is at least the square root of the ratio of
    the loads; `sure` where that holds at the worse ends of both intervals, `single` where either
    side rests on one run.
    """

    axis: str
    load: int
    further: int
    gain: float
    pays: bool
    sure: bool
    single: bool
    runs: tuple[tuple[str, int], ...]


def step_at(curve: Sequence[PointSummary], best: PointSummary, axis: str, key: str) -> Step | None:
    """The step that tells whether `best` has met a limit; None where the curve has one point.

    `curve` ascends in the load and holds `best`; `key` is the metric that is best there.
    """
    index = next((at for at, one in enumerate(curve) if one is best), None)
    if index is None or len(curve) < 2:
        return None
    last = index == len(curve) - 1
    low, high = (curve[-2], curve[-1]) if last else (curve[index], curve[index + 1])
    before, after = low.metrics.get(key), high.metrics.get(key)
    if before is None or after is None or not before.value or not after.value:
        return None
    enough = PAYS * math.log(_load(high, axis) / _load(low, axis))
    gain = after.value / before.value
    pays = math.log(gain) >= enough
    sure = False
    if before.low and before.high and after.low and after.high:
        worse = after.low / before.high if pays else after.high / before.low
        sure = (math.log(worse) >= enough) is pays
    return Step(
        axis=axis,
        load=_load(low, axis),
        further=_load(high, axis),
        gain=gain,
        pays=pays,
        sure=sure,
        single=min(len(low.results), len(high.results)) < REPLICATED,
        runs=tuple((run.digest, run.repeat) for one in (low, high) for run in one.results),
    )


def law_of(curve: Sequence[PointSummary], axis: str, key: str) -> Usl | None:
    """The Universal Scalability Law of the curve; None unless every point lies on it."""
    told = [(_load(one, axis), one.metrics[key]) for one in curve if key in one.metrics]
    known = [
        (load, metric.value, (metric.high - metric.low) / (2 * metric.value))
        for load, metric in told
        if metric.value and metric.low is not None and metric.high is not None
    ]
    if len(known) < USL_POINTS_LEAST or len(known) < len(curve):
        return None
    loads, rates, widths = zip(*known, strict=True)
    found = fit(loads, rates, widths)
    return found if found.describes else None


def _load(point: PointSummary, axis: str) -> int:
    return int(dict(point.key.axis)[axis])
