"""What the energy of a configuration costs in a year, by the watts of its measured points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from iolab.analysis.points import PointSummary
from iolab.core.configuration import Configuration
from iolab.core.power import NODE_POWER_METRIC
from iolab.record import Record

HOURS_PER_YEAR: Final = 8760
WATTS_PER_KW: Final = 1000


class EnergyCost(Record):
    """The cost of a year of a load that never pauses, at so many watts of all machines."""

    watts: float
    cost_per_year: float


def yearly_energy_cost(
    configuration: Configuration, points: Sequence[PointSummary]
) -> EnergyCost | None:
    """By the point of the configuration that takes most; only of points that runs support.

    None where the study has no price of a kWh, or no machine's input was metered.
    """
    price = configuration.cost.kwh_price if configuration.cost else None
    watts = [
        metric.value
        for point in points
        if point.key.configuration == configuration.id and point.is_trusted
        if (metric := point.metrics.get(NODE_POWER_METRIC)) is not None and metric.value
    ]
    if price is None or not watts:
        return None
    return EnergyCost(max(watts), max(watts) / WATTS_PER_KW * HOURS_PER_YEAR * price)
