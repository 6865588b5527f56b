"""What configurations give for their size and their cost: best figures over TB, nodes, money. Pure.

Measured and published results go through the same functions: a `BestValue` of either kind has a
value with an interval, of chance or of rounding, and what is made of it inherits that interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import islice
from typing import Final

from msgspec.structs import replace

from iolab.analysis.points import AxisValues
from iolab.core.configuration import Configuration
from iolab.core.metric import Metric, VerdictLevel
from iolab.core.metric_spec import BetterDirection, CombineRule, metric_spec
from iolab.core.run import RunKey
from iolab.record import Record

MONEY: Final = 1000.0
"""Rates are told for so much money: for one unit of a currency they are too small to read."""

TERABYTES: Final = "TB"
"""The unit of capacities, 10^12 bytes."""


class DivisorKind(StrEnum):
    """What a figure is divided by."""

    RAW = "TB raw"
    USABLE = "TB usable"
    NODE = "node"
    COST = "cost"


class BestValue(Record):
    """The best figure of a workload in a configuration, and the place of the axes where it was.

    `verdict_level` is the worst verdict behind it, None for a published figure, which nobody
    judged. `title` is the workload for people. `place_count` is of how many points it is the best,
    `host_count` how many made the load, 0 where that is not known. `run_keys` are those behind it.
    """

    configuration: str
    workload: str
    metric: str
    value: Metric
    axis_values: AxisValues = ()
    verdict_level: VerdictLevel | None = None
    run_keys: tuple[RunKey, ...] = ()
    title: str = ""
    place_count: int = 1
    host_count: int = 0

    @property
    def is_rate(self) -> bool:
        """Whether it can be shared: other metrics are nobody's share."""
        return metric_spec(self.metric).combine is CombineRule.RATE

    @property
    def better(self) -> BetterDirection:
        """Which way it gets better."""
        return metric_spec(self.metric).better

    @property
    def is_not_invalid(self) -> bool:
        """Whether it may be claimed of anything: what is invalid is shown, and no more."""
        return self.verdict_level is not VerdictLevel.INVALID


class Divisor(Record):
    """One measure of a configuration; with a `currency` in thousands of that."""

    divisor_kind: DivisorKind
    amount: float
    currency: str = ""

    @property
    def unit_text(self) -> str:
        """One of it for people: `TB raw`, `node`, `1000 EUR`."""
        return (
            f"{MONEY:g} {self.currency}"
            if self.divisor_kind is DivisorKind.COST
            else self.divisor_kind.value
        )


class Quotient(Record):
    """A maximum, or capacity, for one of a divisor; `dividend` is what was divided.

    Of capacity the workload is empty and the metric `raw_tb` or `usable_tb`.
    """

    dividend: BestValue
    divisor: Divisor
    value: Metric

    @property
    def ranking_group(self) -> tuple[str, str, str]:
        """What can be ranked together: one workload, one metric, one measure, one currency."""
        return self.dividend.workload, self.dividend.metric, self.divisor.unit_text


def configuration_divisors(configuration: Configuration) -> tuple[Divisor, ...]:
    """What a configuration's figures may be divided by, of all measures those that it tells."""
    capacity, cost = configuration.capacity, configuration.cost
    money = None if cost is None else cost.total / MONEY
    measures = (
        (DivisorKind.RAW, capacity.raw_tb, ""),
        (DivisorKind.USABLE, capacity.usable_tb, ""),
        (DivisorKind.NODE, configuration.nodes, ""),
        (DivisorKind.COST, money, cost.currency if cost else ""),
    )
    return tuple(
        Divisor(over, float(amount), currency)
        for over, amount, currency in measures
        if amount is not None and amount > 0
    )


def rate_quotients(
    configurations: Iterable[Configuration], maxima: Iterable[BestValue]
) -> tuple[Quotient, ...]:
    """Every rate over every divisor of its configuration."""
    measures = {
        configuration.id: configuration_divisors(configuration) for configuration in configurations
    }
    return tuple(
        Quotient(maximum, divisor, divide_metric(maximum.value, divisor.amount))
        for maximum in maxima
        if maximum.is_rate
        for divisor in measures.get(maximum.configuration, ())
    )


def capacity_quotients(
    configurations: Iterable[Configuration],
    divisor_kinds: Sequence[DivisorKind] = (DivisorKind.COST,),
) -> tuple[Quotient, ...]:
    """Raw and usable capacity for money, or also for each node; exact, since it is counted."""
    return tuple(
        Quotient(capacity, divisor, divide_metric(capacity.value, divisor.amount))
        for configuration in configurations
        for divisor in configuration_divisors(configuration)
        if divisor.divisor_kind in divisor_kinds
        for capacity in _capacities_as_best_values(configuration)
    )


def divide_metric(metric: Metric, divisor: float) -> Metric:
    """A metric for one of `divisor`, which is above 0, with its interval."""
    ends = (
        None if end is None else end / divisor for end in (metric.value, metric.low, metric.high)
    )
    value, low, high = ends
    return Metric(value, metric.unit, low, high, metric.n)


def mean_rate_per_host(maximum: BestValue) -> Metric | None:
    """A rate of a fleet as the mean of its hosts; None where it is nobody's share."""
    return (
        divide_metric(maximum.value, maximum.host_count)
        if maximum.host_count and maximum.is_rate
        else None
    )


def improvement_over(best: BestValue, base: BestValue | None) -> Metric | None:
    """A maximum's factor over another; None over itself, over none, or where either is invalid."""
    if base is None or base is best or not (best.is_not_invalid and base.is_not_invalid):
        return None
    return improvement_factor(best.value, base.value, metric_spec(best.metric).better)


def improvement_factor(
    metric: Metric, base: Metric, better: BetterDirection = BetterDirection.HIGHER
) -> Metric | None:
    """How many times as good as `base` the other is: 2 is twice as good.

    The interval reaches from the least to the most that both intervals allow, so that it is wider
    than one of their difference would be; without one where either has none that is worth showing.
    None where either value is not known or not above 0.
    """
    if metric.value is None or base.value is None or metric.value <= 0 or base.value <= 0:
        return None
    if better is BetterDirection.LOWER:
        metric, base = base, metric
    top, bottom = metric.value or 0.0, base.value or 1.0
    bounded = metric.displayable_interval is not None and base.displayable_interval is not None
    if not bounded or (base.low or 0.0) <= 0:
        return Metric(top / bottom, "")
    low = (metric.low or 0.0) / (base.high or bottom)
    high = (metric.high or top) / (base.low or bottom)
    counts = [part.n for part in (metric, base) if part.n is not None]
    return Metric(top / bottom, "", low, high, min(counts, default=None))


class FleetAndSingleClient(Record):
    """The best of a fleet and of one client of it, for the same workload and storage.

    `speedup` is fleet over single client; `scaling_efficiency` the mean of a host over the single
    client, 1 where nothing is lost, None where the number of hosts is not known.
    """

    single_client: BestValue
    fleet: BestValue
    speedup: Metric
    scaling_efficiency: Metric | None


def fleets_with_single_client(
    configurations: Iterable[Configuration],
    maxima: Sequence[BestValue],
    single_client_bests: Sequence[BestValue] = (),
) -> tuple[FleetAndSingleClient, ...]:
    """Each fleet beside a single client of it.

    That is the best of its own configuration with one host, which `single_client_bests` are, or
    else that of a configuration which differs in its hosts alone, and whose host is one of the
    fleet's; of a fleet whose hosts are not known any may be.
    """
    configurations_by_id = {configuration.id: configuration for configuration in configurations}
    return tuple(
        pair
        for fleet in maxima
        if fleet.host_count != 1 and fleet.is_rate and fleet.is_not_invalid
        for pair in islice(
            _fleet_with_single_client(configurations_by_id, fleet, (*single_client_bests, *maxima)),
            1,
        )
    )


def configurations_without_host_subsets(
    configurations: Sequence[Configuration],
) -> tuple[Configuration, ...]:
    """Those that are not loaded by some of the hosts of another, which is the same storage."""
    return tuple(
        configuration
        for configuration in configurations
        if not any(_is_subset_of_hosts(configuration, other) for other in configurations)
    )


def _fleet_with_single_client(
    configurations_by_id: Mapping[str, Configuration],
    fleet: BestValue,
    single_client_bests: Iterable[BestValue],
) -> Iterator[FleetAndSingleClient]:
    for single in single_client_bests:
        same = (single.workload, single.metric) == (fleet.workload, fleet.metric)
        if not (same and single.host_count == 1 and single.is_not_invalid):
            continue
        own = single.configuration == fleet.configuration
        if not own and not _is_subset_of_hosts(
            configurations_by_id[single.configuration], configurations_by_id[fleet.configuration]
        ):
            continue
        better = metric_spec(fleet.metric).better
        times, share = (
            improvement_factor(fleet.value, single.value, better),
            mean_rate_per_host(fleet),
        )
        if times is not None:
            kept = None if share is None else improvement_factor(share, single.value, better)
            yield FleetAndSingleClient(single, fleet, times, kept)


def _is_subset_of_hosts(smaller: Configuration, larger: Configuration) -> bool:
    """Whether the first is the second with fewer of its hosts, and nothing else differs."""
    bare = [replace(owner, id="", title="", hosts=()) for owner in (smaller, larger)]
    return (
        bare[0] == bare[1]
        and bool(smaller.hosts)
        and (set(smaller.hosts) < set(larger.hosts) or not larger.hosts)
    )


def configuration_ids_without_divisor(
    configurations: Sequence[Configuration],
) -> tuple[tuple[DivisorKind, tuple[str, ...]], ...]:
    """Measures that some configurations tell and others do not, with the ids of the latter."""
    sized = {
        configuration.id: {
            divisor.divisor_kind for divisor in configuration_divisors(configuration)
        }
        for configuration in configurations
    }
    uneven = []
    for over in DivisorKind:
        without = tuple(name for name, divisor_kinds in sized.items() if over not in divisor_kinds)
        if 0 < len(without) < len(sized):
            uneven.append((over, without))
    return tuple(uneven)


def cost_currencies(configurations: Iterable[Configuration]) -> tuple[str, ...]:
    """The currencies of all costs, each once: amounts in two are never put on one scale."""
    names = (
        divisor.currency
        for configuration in configurations
        for divisor in configuration_divisors(configuration)
    )
    return tuple(dict.fromkeys(name for name in names if name))


def _capacities_as_best_values(configuration: Configuration) -> Iterator[BestValue]:
    for name, terabytes in (
        ("raw_tb", configuration.capacity.raw_tb),
        ("usable_tb", configuration.capacity.usable_tb),
    ):
        if terabytes:
            exact = Metric(terabytes, TERABYTES, terabytes, terabytes)
            yield BestValue(configuration.id, "", name, exact)
