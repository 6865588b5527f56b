"""A published set as configurations and maxima, and what was printed of these computed again. Pure.

The same functions make figures per TB, factors and means per host of it as of a session. Maxima
have the bounds of their rounding for an interval, and no verdict.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from iolab.analysis.points import AxisValues, PointSummary
from iolab.analysis.quotients import (
    TERABYTES,
    BestValue,
    DivisorKind,
    Quotient,
    capacity_quotients,
    divide_metric,
    improvement_factor,
    rate_quotients,
)
from iolab.core.configuration import Capacity, Configuration
from iolab.core.metric import Metric, RunResult, VerdictLevel
from iolab.core.metric_spec import OPS_PER_S, BetterDirection, CombineRule, metric_spec
from iolab.core.study import Study
from iolab.published.audit.document import (
    MODULES,
    PublishedSet,
    RoundingInterval,
    element_label,
    exact_range,
    positive_printed_value_range,
    printed_value_range,
    range_product,
)
from iolab.published.audit.relations import FigureQuantity, table_quantities
from iolab.published.sets import MEASURED, PublishedFigure, PublishedSystem, comparable_figures
from iolab.record import Record

CLIENTS_MAX: Final = 100_000
"""Clients of a published configuration; a number above is none that can be."""

_CLUSTER: Final = re.compile(r"-(?:single-client|cluster)$")
"""Names of one system measured from one client and from all."""

_FIGURES: Final = frozenset({"iops", "bw_bytes_per_s", "lat_ns_mean", OPS_PER_S})
_SEPARATE_AXES: Final = ("block_size",)
"""Axes that make another workload: operations on other blocks are other operations."""

_DERIVED: Final = re.compile(r"(?:(read|write)_)?(iops|gb_s|tb)_per_(tb|usable_tb|node)")
"""`read_iops_per_tb`, `gb_s_per_usable_tb`, `tb_per_node`."""

_GAIN: Final = re.compile(r"max_gain_([a-z]+)_pct|gain_([a-z]+)")
"""`gain_ops`, a factor, and `max_gain_latency_pct`."""

_METRICS: Final = {"iops": ("iops", 1.0), "gb_s": ("bw_bytes_per_s", 1e9), "tb": ("raw_tb", 1.0)}
_DIVISOR_KINDS: Final = {
    "tb": DivisorKind.RAW,
    "usable_tb": DivisorKind.USABLE,
    "node": DivisorKind.NODE,
}
_ACCESS: Final = {"read": ("randread", "read"), "write": ("randwrite", "write")}
_UNITS: Final = {"iops": "IOPS", "gb_s": "GB/s", "tb": TERABYTES}


class PrintedClaim(Record):
    """A figure as it was printed, and what others of the set make of it.

    `computed_metric` is None where a figure that it follows from was not printed; else its interval
    is what the rounding of those leaves open. Both are in `unit`.
    """

    subject: str
    quantity: str
    printed: str
    stated_range: RoundingInterval
    computed_metric: Metric | None
    unit: str

    @property
    def can_both_be_true(self) -> bool:
        """Whether both can be true: what both roundings leave open meets."""
        return self.computed_metric is not None and self.stated_range.overlaps(self.computed_bounds)

    @property
    def computed_bounds(self) -> RoundingInterval:
        """From the least to the most that the computed figure may be. ValueError for none."""
        if self.computed_metric is None or self.computed_metric.value is None:
            raise ValueError(f"{self.quantity} of {self.subject} was not computed")
        metric = self.computed_metric
        low, high = metric.low, metric.high
        value = self.computed_metric.value
        return RoundingInterval(value if low is None else low, value if high is None else high)


def published_configurations(published: PublishedSet) -> tuple[Configuration, ...]:
    """What figures were measured on, as a study would name it; hosts stand for its clients."""
    owners = {figure.system.name: figure for figure in comparable_figures(published)}
    tables = {
        str(table.get("id", "")): table for table in published.tables_of_array("configuration")
    }
    return tuple(
        Configuration(
            id=name,
            title=name,
            hosts=tuple(f"client {number}" for number in range(1, _client_count(figure) + 1)),
            path="",
            nodes=figure.system.node_count,
            capacity=Capacity(
                _midpoint_tb(
                    raw_terabytes(published, tables.get(name, {})) or figure.system.raw_tb
                ),
                _midpoint_tb(figure.system.usable_tb),
            ),
            hardware=(*figure.system.description, ("system", _CLUSTER.sub("", name))),
        )
        for name, figure in owners.items()
    )


def printed_best_values(published: PublishedSet) -> tuple[BestValue, ...]:
    """The printed bests of each workload; other figures, as percentiles, are none."""
    return tuple(
        BestValue(
            configuration=figure.system.name,
            workload=_figure_workload_name(figure),
            metric=figure.metric,
            value=Metric(figure.value.middle, figure.unit, figure.value.low, figure.value.high),
            axis_values=(
                *(pair for pair in figure.printed_for_axis_values if pair[0] not in _SEPARATE_AXES),
                *figure.best_reached_at_axis_values,
            ),
            title=_figure_workload_name(figure),
            host_count=_client_count(figure),
        )
        for figure in comparable_figures(published)
        if figure.metric in _FIGURES
    )


def raw_terabytes(published: PublishedSet, table: Mapping[str, Any]) -> RoundingInterval | None:
    """Raw capacity by nodes, drives and the size of one, which is exact; None where not told."""
    parts = [
        positive_printed_value_range(table.get(name))
        for name in ("nodes", "ssds_per_node", "ssd_tb")
    ]
    exact_parts = [exact_range(part.middle) for part in parts if part is not None]
    if len(exact_parts) == len(parts):
        return range_product(exact_parts)
    nodes = positive_printed_value_range(published.table_at("method").get("nodes"))
    words = str(published.table_at("hardware").get("node", ""))
    drives = [match for match in MODULES.finditer(words) if match[4] == "T"]
    if table or nodes is None or len(drives) != 1:
        return None
    (drive,) = drives
    return range_product(
        [exact_range(nodes.middle), exact_range(int(drive[1])), exact_range(float(drive[3]))]
    )


def recomputed_claims(published: PublishedSet) -> tuple[PrintedClaim, ...]:
    """Every printed figure that follows from bests and sizes, as our own functions compute it."""
    return (
        *claimed_capacities(published),
        *claimed_per_unit_figures(published),
        *claimed_gains(published),
    )


def claimed_capacities(published: PublishedSet) -> Iterator[PrintedClaim]:
    """Raw capacity, where the drives were told as well."""
    tables = [
        (element_label(table), table.get("raw_tb"), table)
        for table in published.tables_of_array("configuration")
    ]
    hardware = published.table_at("hardware").get("cluster_raw_tb")
    for subject, value, table in (*tables, ("the cluster", hardware, {})):
        stated, raw = printed_value_range(value), raw_terabytes(published, table)
        if stated is not None and raw is not None:
            computed = Metric(raw.middle, TERABYTES, raw.low, raw.high)
            yield PrintedClaim(subject, "raw capacity", str(value), stated, computed, TERABYTES)


def claimed_per_unit_figures(published: PublishedSet) -> Iterator[PrintedClaim]:
    """Figures for each TB and node: of reading or writing workloads the best."""
    owners, maxima = published_configurations(published), printed_best_values(published)
    derived = (*rate_quotients(owners, maxima), *capacity_quotients(owners, tuple(DivisorKind)))
    access = {
        str(table.get("id", "")): table.get("rw") for table in published.tables_of_array("workload")
    }
    for table in published.tables_of_array("printed_derivation"):
        subject = str(table.get("configuration", ""))
        own = [quotient for quotient in derived if quotient.dividend.configuration == subject]
        for name, value in table.items():
            match, stated = _DERIVED.fullmatch(name), printed_value_range(value)
            if match is None or stated is None:
                continue
            way, kind, over = match.groups()
            allowed = _ACCESS.get(way or "")
            kept = [
                quotient
                for quotient in own
                if allowed is None or access.get(quotient.dividend.workload) in allowed
            ]
            metric, unit = _METRICS[kind][0], _UNITS[kind]
            best = _largest_quotient(kept, metric, _DIVISOR_KINDS[over])
            quantity = f"{way or ''} {unit} for each {_DIVISOR_KINDS[over]}".strip()
            computed = None if best is None else _metric_in_unit(best, _METRICS[kind][1], unit)
            yield PrintedClaim(subject, quantity, str(value), stated, computed, unit)


def _largest_quotient(
    candidates: Iterable[Quotient], metric_key: str, divisor_kind: DivisorKind
) -> Metric | None:
    values = [
        quotient.value
        for quotient in candidates
        if (quotient.dividend.metric, quotient.divisor.divisor_kind) == (metric_key, divisor_kind)
    ]
    return max(values, key=lambda value: value.value or 0.0, default=None)


def _metric_in_unit(metric: Metric, unit_divisor: float, unit: str) -> Metric:
    ends = (
        None if end is None else end / unit_divisor
        for end in (metric.value, metric.low, metric.high)
    )
    value, low, high = ends
    return Metric(value, unit, low, high)


def claimed_gains(published: PublishedSet) -> Iterator[PrintedClaim]:
    """Claimed factors and percentages of one product over the other, of rates and of latencies."""
    for table in published.tables_of_array("result"):
        quantities = [q for q in table_quantities(table) if q.inner_key and q.is_of_whole_table]
        for key, printed in table.items():
            match, stated = _GAIN.fullmatch(key), positive_printed_value_range(printed)
            if match is None or stated is None:
                continue
            unit = "s" if "latency" in key else "1/s"
            better = BetterDirection.LOWER if unit == "s" else BetterDirection.HIGHER
            both = [q for q in quantities if q.unit == unit and q.value.low > 0]
            sides = [
                _metric_from_printed_quantity(q)
                for q in sorted(both, key=lambda q: q.inner_key != MEASURED)
            ]
            times = improvement_factor(sides[0], sides[1], better) if len(sides) == 2 else None
            largest = key.startswith("max")
            yield PrintedClaim(
                element_label(table),
                f"{'largest gain' if largest else 'gain'} in {match[1] or match[2]}",
                str(printed),
                stated,
                _percent_gain_metric(times) if times and largest else times,
                "%" if largest else "times",
            )


def _percent_gain_metric(ratio: Metric) -> Metric:
    ends = (ratio.value, ratio.low, ratio.high)
    value, low, high = (None if end is None else 100 * (end - 1) for end in ends)
    return Metric(value, "%", low, high)


def _metric_from_printed_quantity(quantity: FigureQuantity) -> Metric:
    value = quantity.value
    return Metric(value.middle, quantity.unit, value.low, value.high)


def _figure_workload_name(figure: PublishedFigure) -> str:
    return " ".join(
        [
            figure.workload,
            *(
                str(value)
                for name, value in figure.printed_for_axis_values
                if name in _SEPARATE_AXES
            ),
        ]
    )


def _client_count(figure: PublishedFigure) -> int:
    count = figure.system.client_count or 0
    return count if count <= CLIENTS_MAX else 0


def _midpoint_tb(size_range_tb: RoundingInterval | None) -> float | None:
    return None if size_range_tb is None else size_range_tb.middle


class FigureDivisorKind(StrEnum):
    """What figures are told for."""

    WHOLE = "whole"
    HOST = "host"
    NODE = "node"
    RAW_TB = "raw TB"
    USABLE_TB = "usable TB"


class FigureRatio(Record):
    """A figure here and there for one basis, and how many times theirs ours is."""

    measured: Metric
    published: RoundingInterval
    ratio: Metric


class PublishedAndMeasuredFigure(Record):
    """A published figure and the point of a configuration that stands beside it.

    `ratio_by_divisor` has the bases for which both sides are known; WHOLE is always among them.
    """

    configuration: Configuration
    published_figure: PublishedFigure
    axis_values: AxisValues
    verdict_level: VerdictLevel
    ratio_by_divisor: Mapping[FigureDivisorKind, FigureRatio]
    run: RunResult | None


def published_and_measured_figures(
    study: Study, points: Iterable[PointSummary], figures: Iterable[PublishedFigure]
) -> tuple[PublishedAndMeasuredFigure, ...]:
    """Each published figure that a configuration has a value for, in the set's order."""
    by_workload: dict[tuple[str, str], list[PointSummary]] = {}
    for point in points:
        if not point.key.excluded_hosts:
            by_workload.setdefault((point.key.configuration, point.key.workload), []).append(point)
    pairs = (
        _compare_best_point_with_figure(
            study, configuration, figure, by_workload.get((configuration.id, figure.workload), ())
        )
        for figure in figures
        for configuration in study.configurations
    )
    return tuple(pair for pair in pairs if pair is not None)


def published_system_names(figures: Iterable[PublishedFigure]) -> tuple[str, ...]:
    """The names of what figures were measured on, each once."""
    return tuple(dict.fromkeys(figure.system.name for figure in figures))


def _compare_best_point_with_figure(
    study: Study,
    configuration: Configuration,
    figure: PublishedFigure,
    points: Sequence[PointSummary],
) -> PublishedAndMeasuredFigure | None:
    """The best point here, among those at the printed place where there are any."""
    candidates = [
        point for point in points if _point_metric_value(point, figure.metric) is not None
    ]
    candidates = [point for point in candidates if point.is_trusted] or candidates
    printed_at = dict(figure.printed_for_axis_values)
    # A place that both have is compared at that place; block sizes never with each other.
    for name in printed_at:
        at = [
            point
            for point in candidates
            if dict(point.key.axis_values).get(name) == printed_at[name]
        ]
        varied = any(name in dict(point.key.axis_values) for point in candidates)
        candidates = at or ([] if name == "block_size" and varied else candidates)
    if not candidates:
        return None
    pick = min if figure.better is BetterDirection.LOWER else max
    best = pick(candidates, key=lambda point: _point_metric_value(point, figure.metric) or 0.0)
    run = next(iter(best.results or best.left_out_results), None)
    ours = _measured_amount_by_divisor_kind(study, configuration, run)
    shares = {
        divisor_kind: _divided_figure_ratio(
            best.metrics[figure.metric], figure.value, own_divisor, there_divisor
        )
        for divisor_kind, there_divisor in _published_divisors(figure.system)
        if (own_divisor := ours.get(divisor_kind))
        and (
            divisor_kind is FigureDivisorKind.WHOLE
            or metric_spec(figure.metric).combine is CombineRule.RATE
        )
    }
    return PublishedAndMeasuredFigure(
        configuration, figure, best.key.axis_values, best.verdict_level, shares, run
    )


def _point_metric_value(point: PointSummary, metric_key: str) -> float | None:
    measured = point.metrics.get(metric_key)
    return None if measured is None else measured.value


def _measured_amount_by_divisor_kind(
    study: Study, configuration: Configuration, run: RunResult | None
) -> dict[FigureDivisorKind, float | None]:
    """What a figure here is divided by for each basis."""
    homes = {spec.name: spec.hypervisor for spec in study.hosts}
    guests = {home for host in configuration.hosts if (home := homes.get(host))}
    return {
        FigureDivisorKind.WHOLE: 1.0,
        FigureDivisorKind.HOST: float(len(run.hosts)) if run is not None else None,
        FigureDivisorKind.NODE: configuration.nodes or len(guests) or None,
        FigureDivisorKind.RAW_TB: configuration.capacity.raw_tb,
        FigureDivisorKind.USABLE_TB: configuration.capacity.usable_tb,
    }


def _published_divisors(
    system: PublishedSystem,
) -> Iterator[tuple[FigureDivisorKind, RoundingInterval]]:
    yield FigureDivisorKind.WHOLE, exact_range(1.0)
    for divisor_kind, count in (
        (FigureDivisorKind.HOST, system.client_count),
        (FigureDivisorKind.NODE, system.node_count),
    ):
        if count:
            yield divisor_kind, exact_range(float(count))
    for divisor_kind, size in (
        (FigureDivisorKind.RAW_TB, system.raw_tb),
        (FigureDivisorKind.USABLE_TB, system.usable_tb),
    ):
        if size is not None:
            yield divisor_kind, size


def _divided_figure_ratio(
    measured: Metric,
    published: RoundingInterval,
    measured_divisor: float,
    published_divisor: RoundingInterval,
) -> FigureRatio:
    ours, theirs = divide_metric(measured, measured_divisor), published / published_divisor
    return FigureRatio(
        measured=ours,
        published=theirs,
        ratio=Metric(
            None if ours.value is None else ours.value / theirs.middle,
            "",
            None if ours.low is None else ours.low / theirs.high,
            None if ours.high is None else ours.high / theirs.low,
            measured.n,
        ),
    )
