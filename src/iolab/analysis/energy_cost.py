"""What the energy of a configuration costs in a year, by the watts of its measured points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from iolab.analysis.points import PointSummary
from iolab.core.configuration import Configuration
from iolab.core.power import NODE_POWER_METRIC, PowerBoundary
from iolab.record import Record

HOURS_PER_YEAR: Final = 8760
WATTS_PER_KW: Final = 1000


class EnergyCost(Record):
    """The cost of a year of a load that never pauses, at so many watts of all machines.

    `covers_only_clients` where those that make the load were metered, and no storage node.
    """

    watts: float
    cost_per_year: float
    covers_only_clients: bool = False


def yearly_energy_cost(
    configuration: Configuration, points: Sequence[PointSummary]
) -> EnergyCost | None:
    """By the point of the configuration that takes most; only of points that runs support.

    None where the study has no price of a kWh, or no machine's input was metered.
    """
    price = configuration.cost.kwh_price if configuration.cost else None
    metered = [
        point
        for point in points
        if point.key.configuration == configuration.id
        and point.is_trusted
        and point.metric_value(NODE_POWER_METRIC)
    ]
    if price is None or not metered:
        return None
    most = max(metered, key=lambda point: point.metric_value(NODE_POWER_METRIC) or 0.0)
    watts = most.metric_value(NODE_POWER_METRIC) or 0.0
    cost = watts / WATTS_PER_KW * HOURS_PER_YEAR * price
    return EnergyCost(watts, cost, are_only_clients_metered(most))


def are_only_clients_metered(point: PointSummary) -> bool:
    """Whether its watts are of machines that make load: of others they are where any is metered."""
    clients = {host.name for run in point.results for host in run.hosts}
    metered = {
        use.host
        for run in point.results
        for use in run.power
        if use.boundary is PowerBoundary.NODE and use.watts is not None
    }
    return bool(metered) and metered <= clients
