"""How much of a resource was used: the shape that all resources share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from iolab.analyse.view import RunView
from iolab.analyse.window import Window
from iolab.model.host import Role


class Resource(StrEnum):
    """What may be at its limit."""

    DEVICE = "device"
    PROCESSORS = "processors"
    """All cores of a host together."""
    CORE = "core"
    """One core, as where one thread or all interrupts run on it."""
    JOB = "job"
    """The jobs of the engine, each of which has one core at most."""
    PORT = "port"
    """A network port, one way."""


@dataclass(frozen=True, slots=True)
class Use:
    """How much of a resource was used over the measured window.

    `name` is the device, core or port, empty for what a host has one of; a port's ends in its way.
    `share` is of the time, of a port's speed or of a core; None for a port of unknown speed. `rate`
    is what passed a second (a device's I/Os, a port's bytes), `queue` a device's I/Os in flight.
    `own` is how much of a client's processors the load's jobs used by themselves, as a share of
    all of them: the rest is the kernel's work for them, or others'.
    """

    resource: Resource
    host: str
    role: Role
    name: str
    share: float | None
    rate: float | None = None
    queue: float | None = None
    own: float | None = None

    @property
    def rank(self) -> tuple[float, float, float]:
        """Orders uses of one resource, the busiest last."""
        known = -1.0 if self.share is None else self.share
        return (known, self.queue or 0.0, self.rate or 0.0)


def means(view: RunView, host: str, scope: str, metric: str, window: Window) -> dict[str, float]:
    """The mean over the window of one metric of every device of a scope, by name.

    Each step weighs as much as it shares with the window; names without a sample there are left
    out.
    """
    found: dict[str, float] = {}
    for series in view.series_of(host, scope, metric):
        shared = view.shared_ns(series, window)
        told = (shared > 0) & np.isfinite(series.value)
        if told.any():
            weights = shared[told].astype(np.float64)
            found[series.name] = float(np.average(series.value[told], weights=weights))
    return found
