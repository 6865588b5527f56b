"""Which load to measure next, so that a curve over many loads is known from few of them.

A Gaussian process on ln(X/N) over sqrt(N) says where the curve is uncertain; measured is where it
is most so, then the middles of wide gaps, until two predictions in a row came true. A cliff that
is narrower than a gap can hide: loads at which one may be (sockets, NUMA nodes, queues) are given
as `must`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from iolab.analyse.method.between import BIAS_ALLOWANCE
from iolab.analyse.method.gaussian import Floats, Surrogate, fit, scaled
from iolab.analyse.method.special import student_quantile
from iolab.plan.searches import seed_loads

_UNCERTAIN: Final = 0.02
"""A load whose 95 % half-width is above 2 % is measured."""
_HIT_ALWAYS: Final = 0.02
_HIT_NEVER: Final = 0.04
_HIT_SDS: Final = 2.5
"""A prediction came true within 2 %, or within 2.5 standard deviations but never beyond 4 %."""
_HITS_WANTED: Final = 2
_JUMP_MOST: Final = 0.06
"""A step of ln(X/N) between measured loads that is 6 % off the slopes on both sides is looked into:
a surrogate alone put a load beside a cliff 6 % off with an interval of 1.4 % (simulated)."""
_GAP_MOST: Final = 4
"""Loads of the axis between two measured neighbours, counted as steps: a cliff would hide there."""

Z95: Final = student_quantile(0.975, math.inf)


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A load's rate with its 95 % interval, measured or predicted.

    A measured load's interval here is by the noise it was recorded with; what is published of it
    comes from its own runs (`between.publish`).
    """

    load: int
    rate: float
    low: float
    high: float
    measured: bool


class AdaptiveAxis:
    """A curve in the making: ask `wanted` for the next load, `record` what it gave."""

    def __init__(
        self, loads: Sequence[int], rng: np.random.Generator, must: Iterable[int] = ()
    ) -> None:
        """Take the axis' loads (positive) and those of it that are measured in any case.

        Raises ValueError for an empty axis, a load below 1, or one in `must` that is not on it.
        """
        if not loads or min(loads) < 1:
            raise ValueError("an axis has at least one load, and none below 1")
        self._axis = tuple(sorted(set(loads)))
        if strange := set(must) - set(self._axis):
            raise ValueError(f"load {min(strange)} must be measured but is not on the axis")
        self._first = sorted({*seed_loads(self._axis), *must})
        self._rng = rng
        self._rates: dict[int, tuple[float, float]] = {}
        self._hits = 0
        self._surrogate: Surrogate | None = None

    @property
    def first(self) -> tuple[int, ...]:
        """The loads measured before any is chosen: the seeds and those that must be."""
        return tuple(self._first)

    @property
    def measured(self) -> tuple[int, ...]:
        """The loads recorded so far, ascending."""
        return tuple(sorted(self._rates))

    def wanted(self) -> int | None:
        """The load to measure next; None when the curve is known."""
        for load in self._first:
            if load not in self._rates:
                return load
        left = [load for load in self._axis if load not in self._rates]
        surrogate = self._fitted()
        if not left or surrogate is None:
            return left[0] if left else None
        sds = surrogate.predict(self._inputs(left))[1]
        if Z95 * sds.max() > _UNCERTAIN:
            return left[int(np.argmax(sds))]
        return self._in_jump() or self._in_gap() or self._for_proof(left)

    def record(self, load: int, rate: float, noise: float) -> None:
        """Take the measured rate (> 0) of a load and the standard error of its logarithm.

        A load that is recorded again replaces what was known of it. ValueError for a load that is
        not on the axis or a rate that is not positive.
        """
        if load not in self._axis or not rate > 0:
            raise ValueError(f"load {load} with rate {rate} is no point of this axis")
        value = math.log(rate / load)
        surrogate = self._fitted() if load not in self._rates else None
        if surrogate is not None and load not in self._first:
            mean, sd = surrogate.predict(self._inputs([load]))
            error = abs(value - float(mean[0]))
            allowed = max(_HIT_ALWAYS, _HIT_SDS * math.hypot(float(sd[0]), noise))
            self._hits = self._hits + 1 if error <= min(allowed, _HIT_NEVER) else 0
        self._rates[load] = (value, noise)
        self._surrogate = None

    def points(self) -> tuple[CurvePoint, ...]:
        """Every load of the axis; what was measured stands as measured, the rest as predicted.

        Without enough points for a surrogate, only what was measured.
        """
        surrogate = self._fitted()
        found = [self._measured_point(load) for load in self.measured]
        left = [load for load in self._axis if load not in self._rates]
        if left and surrogate is not None:
            means, sds = surrogate.predict(self._inputs(left))
            found += [
                _point(load, float(mean), float(sd), measured=False)
                for load, mean, sd in zip(left, means, sds, strict=True)
            ]
        return tuple(sorted(found, key=lambda point: point.load))

    def draws(self, count: int) -> Floats:
        """Whole curves that the measurements allow: rates of shape (count, loads of the axis)."""
        surrogate = self._fitted()
        if surrogate is None:
            raise ValueError(f"{len(self._rates)} measured loads are too few to draw curves")
        logs = surrogate.draws(self._inputs(self._axis), count, self._rng)
        rates: Floats = np.exp(logs) * np.array(self._axis)
        return rates

    def _measured_point(self, load: int) -> CurvePoint:
        return _point(load, *self._rates[load], measured=True)

    def _fitted(self) -> Surrogate | None:
        """The surrogate of what is recorded; None for too few points."""
        loads = self.measured
        if self._surrogate is None and len(loads) > 2:
            values = np.array([self._rates[load] for load in loads])
            self._surrogate = fit(self._inputs(loads), values[:, 0], values[:, 1])
        return self._surrogate

    def _inputs(self, loads: Sequence[int]) -> Floats:
        roots = np.sqrt(np.array(loads, dtype=np.float64))
        first, last = math.sqrt(self._axis[0]), math.sqrt(self._axis[-1])
        return scaled(roots, first, last).reshape(-1, 1)

    def _in_jump(self) -> int | None:
        """The middle of the largest jump between measured loads with others between, else None.

        A jump is a step of ln(X/N) that the slopes on neither side foretell: a cliff or a kink,
        which a smooth surrogate draws too softly and too surely.
        """
        loads = self.measured
        y = [self._rates[load][0] for load in loads]
        places = [self._axis.index(load) for load in loads]
        slopes = [(y[i + 1] - y[i]) / (places[i + 1] - places[i]) for i in range(len(loads) - 1)]
        largest, middle = _JUMP_MOST, None
        for i, slope in enumerate(slopes):
            width = places[i + 1] - places[i]
            beside = slopes[max(i - 1, 0) : i] + slopes[i + 1 : i + 2]
            jump = min((abs(slope - other) * width for other in beside), default=0.0)
            if width > 1 and jump > largest:
                largest, middle = jump, self._axis[places[i] + width // 2]
        return middle

    def _in_gap(self) -> int | None:
        """The middle of the widest gap between measured loads, None where none is too wide."""
        places = [index for index, load in enumerate(self._axis) if load in self._rates]
        gaps = [(right - left, left) for left, right in pairwise(places)]
        width, left = max(gaps)
        return self._axis[left + width // 2] if width > _GAP_MOST else None

    def _for_proof(self, left: Sequence[int]) -> int | None:
        """An unmeasured load far from measured ones, until predictions have come true."""
        if self._hits >= _HITS_WANTED:
            return None
        places = {load: index for index, load in enumerate(self._axis)}
        known = [places[load] for load in self._rates]
        distances = [min(abs(places[load] - place) for place in known) for load in left]
        farthest = [
            load
            for load, distance in zip(left, distances, strict=True)
            if distance == max(distances)
        ]
        return farthest[int(self._rng.integers(len(farthest)))]


def _point(load: int, log_rate: float, sd: float, *, measured: bool) -> CurvePoint:
    rate = load * math.exp(log_rate)
    reach = math.exp(Z95 * sd + BIAS_ALLOWANCE)
    return CurvePoint(load, rate, rate / reach, rate * reach, measured)
