"""What is looked for along a workload's axes: all of them, the best, or the most under a limit."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Objective(StrEnum):
    """What a workload's points are measured for."""

    GRID = "grid"
    """Every point of its axes, or of an adaptive axis those that tell the others."""
    PEAK = "peak"
    """The point with the highest figure."""
    MAX_LOAD = "max-load"
    """The highest rate at which a latency stays under a limit."""


class AxisMode(StrEnum):
    """Which values of an axis are measured."""

    LISTED = "listed"
    """All."""
    ADAPTIVE = "adaptive"
    """As many as tell the others."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A latency that must not be exceeded: the metric's key and nanoseconds."""

    metric: str
    latency_ns: float


@dataclass(frozen=True, slots=True)
class Aim:
    """What a workload is after.

    `headline` are values of an adaptive axis that are measured in any case. `limit` belongs to
    max-load.
    """

    objective: Objective = Objective.GRID
    axis: AxisMode = AxisMode.LISTED
    headline: tuple[int, ...] = ()
    limit: Limit | None = None

    @property
    def searches(self) -> bool:
        """Whether results decide which points are measured."""
        return self.objective is not Objective.GRID or self.axis is AxisMode.ADAPTIVE


EVERY_POINT: Final = Aim()
"""The axes as they are written."""
