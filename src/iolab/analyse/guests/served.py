"""I/Os and the time they took within a window, from series of rates and mean latencies."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from iolab.analyse.view import RunView
from iolab.analyse.window import Window
from iolab.model.sample import Direction

NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Served:
    """So many I/Os, and the time of all of them together."""

    ios: float
    time_ns: float

    @property
    def mean_ns(self) -> float | None:
        """The mean latency; None of nothing."""
        return self.time_ns / self.ios if self.ios > 0 else None

    def __add__(self, other: Served) -> Served:
        return Served(self.ios + other.ios, self.time_ns + other.time_ns)


NOTHING = Served(0.0, 0.0)


def served(
    view: RunView,
    place: tuple[str, str],
    names: Collection[str],
    direction: Direction,
    window: Window,
) -> Served | None:
    """What those disks or guests had in the window; `place` is the host and the scope.

    A step that reaches out of the window counts by the share of it that lies inside. None where
    one of them has no sample there, or there are none.
    """
    host, scope = place
    way = direction.name.lower()
    rates = {one.name: one for one in view.series_of(host, scope, f"{way}_iops")}
    times = {one.name: one for one in view.series_of(host, scope, f"{way}_lat_ns")}
    total = NOTHING
    for name in names:
        rate, time = rates.get(name), times.get(name)
        if rate is None or time is None:
            return None
        shared = view.shared_ns(rate, window)
        if not shared.any():
            return None
        ios = rate.value * shared / NS_PER_S
        # No I/O has no mean latency; it took no time either.
        took = np.where(ios > 0, np.nan_to_num(time.value) * ios, 0.0)
        total += Served(float(ios.sum()), float(took.sum()))
    return total if names else None
