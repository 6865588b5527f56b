"""What a configuration offers: its size, its cost, and what was seen of each workload."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from iolab.analyse.audit.document import Published, span
from iolab.analyse.choose.need import BYTES_PER_SECOND, PER_SECOND
from iolab.analyse.points import PointSummary
from iolab.model.configuration import Configuration
from iolab.model.metric import Level, Metric


@dataclass(frozen=True, slots=True)
class Seen:
    """One workload at one place of its axes: rates by unit, latencies by metric.

    A published figure has the bounds of its rounding, and the level None: nobody judged it.
    """

    workload: str
    axis: tuple[tuple[str, int | str], ...]
    rates: Mapping[str, Metric]
    latencies: Mapping[str, Metric] = field(default_factory=dict)
    level: Level | None = None


@dataclass(frozen=True, slots=True)
class Offer:
    """A configuration; None for what is not known of it. `nodes` is how many it was seen with."""

    name: str
    source: str
    nodes: int | None
    usable_tb: float | None
    cost: float | None
    currency: str
    seen: tuple[Seen, ...]

    @property
    def workloads(self) -> tuple[str, ...]:
        """The ids of what was seen of it."""
        return tuple(dict.fromkeys(one.workload for one in self.seen))


def measured_offer(
    name: str, source: str, configuration: Configuration, points: Sequence[PointSummary]
) -> Offer:
    """A configuration of a session; points that no run supports are left out."""
    cost = configuration.cost
    mine = [one for one in points if one.key.configuration == configuration.id and one.trusted]
    return Offer(
        name=name,
        source=source,
        nodes=configuration.nodes,
        usable_tb=configuration.capacity.usable_tb,
        cost=cost.total if cost else None,
        currency=cost.currency if cost else "",
        seen=tuple(
            Seen(one.key.workload, one.key.axis, _rates(one), _latencies(one), one.level)
            for one in mine
        ),
    )


def _rates(point: PointSummary) -> dict[str, Metric]:
    wanted = (("iops", PER_SECOND), ("ops_per_s", PER_SECOND), ("bw_bytes_per_s", BYTES_PER_SECOND))
    return {
        unit: metric
        for key, unit in wanted
        if (metric := point.metrics.get(key)) is not None and metric.value is not None
    }


def _latencies(point: PointSummary) -> dict[str, Metric]:
    return {key: one for key, one in point.metrics.items() if "lat_ns_" in key}


def published_offers(published: Published) -> tuple[Offer, ...]:
    """The configurations of a published set with what was printed of each."""
    return tuple(
        Offer(
            name=str(table.get("id", "")),
            source=published.id,
            nodes=_count(table.get("nodes")),
            usable_tb=_above_0(table.get("usable_tb")),
            cost=None,
            currency="",
            seen=tuple(_printed(table)),
        )
        for table in published.tables("configuration")
    )


def _printed(table: Mapping[str, Any]) -> Iterator[Seen]:
    """Peaks by workload, each at the depth where it was reached, if that was printed."""
    depths = table.get("peak_at_iodepth", {})
    kinds = (("peak_iops", PER_SECOND, 1.0), ("peak_gb_s", BYTES_PER_SECOND, 1e9))
    for key, unit, factor in kinds:
        for workload, value in _items(table.get(key)):
            figure = span(value)
            if figure is None or isinstance(value, list):
                continue
            metric = Metric(float(value) * factor, unit, figure.low * factor, figure.high * factor)
            depth = depths.get(workload) if isinstance(depths, dict) else None
            axis = (("iodepth", depth),) if isinstance(depth, int) else ()
            yield Seen(workload, axis, {unit: metric})


def _items(value: object) -> Iterable[tuple[str, Any]]:
    return value.items() if isinstance(value, dict) else ()


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _above_0(value: object) -> float | None:
    found = None if isinstance(value, list) or span(value) is None else float(str(value))
    return found if found and found > 0 else None
