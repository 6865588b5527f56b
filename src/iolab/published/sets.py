"""The figures of a published set by the workload and metric that they are of. Pure.

A set has whatever was printed, in tables of a loose form. Here each figure that a study measures
too is found by the names of its table and key, with the bounds that its rounding leaves open, and
with what it was measured on; a key that nobody knows is passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from msgspec import field

from iolab.analysis.points import AxisValues
from iolab.core.metric_spec import (
    OPS_PER_S,
    BetterDirection,
    is_known_metric,
    metric_spec,
    phase_rate_key,
)
from iolab.published.audit.document import (
    PublishedSet,
    RoundingInterval,
    exact_range,
    flatten_table,
    peak_places,
    positive_integer_or_none,
    positive_printed_value_range,
)
from iolab.published.audit.relations import FigureQuantity, table_quantities
from iolab.record import Record

MEASURED: Final = "measured"
"""Of results without a name of their own: the product that the set is about."""

_AXIS_KEYS: Final = ("block_size", "threads", "iodepth")
"""Keys of `[[result]]` that say for which place of a study's axes a figure was printed."""

_SYSTEM_FIELDS: Final = frozenset({"id", "nodes", "raw_tb", "usable_tb", "cluster_raw_tb"})
"""What is told of hardware and has a field of its own."""

_INDICATORS: Final = {"1/s": "iops", "bytes/s": "bandwidth", "s": "latency"}
"""What the indicator of a cluster is called by the unit of its figure: `read-iops`."""

_NS_PER_S: Final = exact_range(1e9)


class PublishedSystem(Record):
    """What published figures were measured on; None for what was not printed.

    `client_count` hosts made the load, `node_count` served it. `description` are what else was
    printed of it, by name.
    """

    name: str
    client_count: int | None = None
    node_count: int | None = None
    raw_tb: RoundingInterval | None = None
    usable_tb: RoundingInterval | None = None
    description: tuple[tuple[str, str], ...] = ()


class PublishedFigure(Record):
    """A published figure: `metric` is the key that results have it under, `value` in its unit.

    `printed_for_axis_values` is the place for which it was printed, empty for the best of all;
    `best_reached_at_axis_values` is where a best was reached, as far as that was printed.
    """

    system: PublishedSystem
    workload: str
    metric: str
    unit: str
    value: RoundingInterval
    printed_for_axis_values: AxisValues = field(default=())
    best_reached_at_axis_values: AxisValues = field(default=())

    @property
    def better(self) -> BetterDirection:
        """Which way it gets better."""
        return metric_spec(self.metric).better


class PublishedReference(Record):
    """A published set that results are set beside.

    With `only_system`, its figures of that owner alone.
    """

    published: PublishedSet
    only_system: str = ""

    @property
    def figures(self) -> tuple[PublishedFigure, ...]:
        """The figures that are compared."""
        return tuple(
            figure
            for figure in comparable_figures(self.published)
            if not self.only_system or figure.system.name == self.only_system
        )


def comparable_figures(published: PublishedSet) -> tuple[PublishedFigure, ...]:
    """Every figure that a study of the same name may have measured, in the order of the set."""
    return (
        *_example_figures(published),
        *_metadata_figures(published),
        *_configuration_figures(published),
        *_result_figures(published),
    )


def method_descriptions(published: PublishedSet) -> tuple[tuple[str, str], ...]:
    """What was printed of the method, by name: texts, numbers and lists of these."""
    texts = [
        (name, _description_text(value))
        for name, value in flatten_table(published.table_at("method"))
    ]
    return tuple((name, text) for name, text in texts if text)


def _example_figures(published: PublishedSet) -> Iterator[PublishedFigure]:
    """Indicators of reading and of writing, each a workload of its own."""
    for table in published.tables_of_array("example"):
        owner = PublishedSystem(
            str(table.get("id", "")), client_count=positive_integer_or_none(table.get("hosts"))
        )
        for quantity in _comparable_quantities(table):
            if quantity.direction:
                workload = f"{quantity.direction}-{_INDICATORS[quantity.unit]}"
                yield from _figures_of_quantity(
                    owner, workload, quantity, is_direction_specific=False
                )
        yield from _operation_figures(published, owner, table)


def _metadata_figures(published: PublishedSet) -> Iterator[PublishedFigure]:
    table = published.table_at("metadata")
    owner = PublishedSystem("mdtest", client_count=positive_integer_or_none(table.get("clients")))
    yield from _operation_figures(published, owner, table)


def _operation_figures(
    published: PublishedSet, system: PublishedSystem, table: Mapping[str, Any]
) -> Iterator[PublishedFigure]:
    """Rates under the names that the document has for operations of metadata."""
    for name, value in flatten_table(table):
        operation = published.meaning.operations.get(name.rpartition(".")[2])
        figure = None if isinstance(value, list) else positive_printed_value_range(value)
        if operation is not None and figure is not None:
            metric = phase_rate_key(operation)
            yield PublishedFigure(system, "metadata", metric, metric_spec(metric).unit, figure)


def _configuration_figures(published: PublishedSet) -> Iterator[PublishedFigure]:
    """Tables with a figure for each workload."""
    clients = positive_integer_or_none(published.table_at("method").get("clients"))
    for table in published.tables_of_array("configuration"):
        owner = PublishedSystem(
            str(table.get("id", "")),
            client_count=clients,
            node_count=positive_integer_or_none(table.get("nodes")),
            raw_tb=positive_printed_value_range(table.get("raw_tb")),
            usable_tb=positive_printed_value_range(table.get("usable_tb")),
            description=_hardware_descriptions(table),
        )
        for quantity in _comparable_quantities(table):
            workload = quantity.inner_key
            best_reached_at_axis_values = tuple(
                (axis, place)
                for axis, name, place in peak_places(table)
                if name == workload and isinstance(place, int)
            )
            yield from _figures_of_quantity(
                owner, workload, quantity, best_reached_at_axis_values=best_reached_at_axis_values
            )


def _result_figures(published: PublishedSet) -> Iterator[PublishedFigure]:
    """Figures of one workload; a table in place of a figure has one for each product."""
    method, hardware = published.table_at("method"), published.table_at("hardware")
    nodes = positive_integer_or_none(method.get("nodes"))
    raw = positive_printed_value_range(hardware.get("cluster_raw_tb"))
    words = _hardware_descriptions(hardware)
    # Guests live on the nodes themselves; any other load came from one client.
    clients = None if nodes else 1
    for table in published.tables_of_array("result"):
        workload = str(table.get("workload", ""))
        if "write_percent" in table:
            workload = f"write-{table['write_percent']}"
        printed_for_axis_values = tuple((name, table[name]) for name in _AXIS_KEYS if name in table)
        vms = positive_integer_or_none(table.get("vms"))
        best_reached_at_axis_values = (("vms", vms),) if vms else ()
        for quantity in _comparable_quantities(table):
            owner = PublishedSystem(
                quantity.inner_key or MEASURED,
                client_count=clients,
                node_count=nodes,
                raw_tb=raw,
                description=words,
            )
            yield from _figures_of_quantity(
                owner,
                workload,
                quantity,
                printed_for_axis_values=printed_for_axis_values,
                best_reached_at_axis_values=best_reached_at_axis_values,
            )


def _comparable_quantities(table: Mapping[str, Any]) -> Iterator[FigureQuantity]:
    """Rates and latencies of all that a table tells: no gains, shares, or ranges over an axis."""
    for quantity in table_quantities(table):
        if (
            quantity.unit in _INDICATORS
            and quantity.is_of_whole_table
            and quantity.queue_depth is None
            and not quantity.has_range
            and quantity.value.low > 0
        ):
            yield quantity


def _figures_of_quantity(
    owner: PublishedSystem,
    workload_id: str,
    quantity: FigureQuantity,
    *,
    printed_for_axis_values: AxisValues = (),
    best_reached_at_axis_values: AxisValues = (),
    is_direction_specific: bool = True,
) -> Iterator[PublishedFigure]:
    """The figure under the metric that its key names; none of no workload."""
    value, metric = quantity.value, "bw_bytes_per_s"
    if quantity.unit == "s":
        value, metric = value * _NS_PER_S, f"lat_ns_{quantity.statistic or 'mean'}"
    elif quantity.unit == "1/s":
        metric = "iops" if "iops" in quantity.name else OPS_PER_S
    if is_direction_specific and quantity.direction:
        metric = f"{quantity.direction}_{metric}"
    if workload_id and is_known_metric(metric):
        unit = metric_spec(metric).unit
        yield PublishedFigure(
            owner,
            workload_id,
            metric,
            unit,
            value,
            printed_for_axis_values,
            best_reached_at_axis_values,
        )


def _hardware_descriptions(table: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """What else is told of hardware, by name; performance stands in inner tables."""
    return tuple(
        (name, text)
        for name, value in table.items()
        if name not in _SYSTEM_FIELDS and (text := _description_text(value))
    )


def _description_text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(_description_text(part) for part in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Decimal):
        return f"{value:f}"
    return "" if value is None or isinstance(value, dict) else str(value)
