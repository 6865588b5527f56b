"""The figures of a published set by the workload and metric that they are of. Pure.

A set has whatever was printed, in tables of a loose form. Here each figure that a study measures
too is found by the names of its table and key, with the bounds that its rounding leaves open, and
with what it was measured on; a key that nobody knows is passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import field

from iolab.analysis.points import Axis
from iolab.core.metric_spec import OPS_PER_S, BetterDirection, metric_spec, phase_rate_key
from iolab.published.audit.document import (
    FigureRange,
    PublishedSet,
    exact_range,
    flatten_table,
    positive_integer_or_none,
    positive_range_or_none,
    table_items,
)
from iolab.record import Record

GIB: Final = float(1 << 30)
GB: Final = 1e9
NS_PER_US: Final = 1e3
NS_PER_MS: Final = 1e6

MEASURED: Final = "measured"
"""Of results without a name of their own: the product that the set is about."""

_METADATA: Final = {
    "file-creation": "file_create",
    "file-stat": "file_stat",
    "file-read": "file_read",
    "file-removal": "file_remove",
    "tree-creation": "tree_create",
    "tree-removal": "tree_remove",
}
"""mdtest's names, as `metadata.example_ops_s` has them."""

_AXIS_KEYS: Final = ("block_size", "threads", "iodepth")
"""Keys of `[[result]]` that say for which place of a study's axes a figure was printed."""

_DESCRIPTION_KEYS: Final = (
    "ssd",
    "ssds_per_node",
    "cpu",
    "dram",
    "nic",
    "node",
    "server",
    "port_gbit_s",
)
"""What is told of hardware."""


class PublishedSystem(Record):
    """What published figures were measured on; None for what was not printed.

    `clients` made the load, `nodes` served it. `description` are what else was printed of it, by
    name.
    """

    name: str
    clients: int | None = None
    nodes: int | None = None
    raw_tb: FigureRange | None = None
    usable_tb: FigureRange | None = None
    description: tuple[tuple[str, str], ...] = ()


class PublishedFigure(Record):
    """A published figure: `metric` is the key that results have it under, `value` in its unit.

    `axis` is the place for which it was printed, empty for the best of all.
    """

    owner: PublishedSystem
    workload: str
    metric: str
    unit: str
    value: FigureRange
    axis: Axis = field(default=())

    @property
    def better(self) -> BetterDirection:
        """Which way it gets better."""
        return metric_spec(self.metric).better


class PublishedReference(Record):
    """A published set that results are set beside.

    With `only_element`, its figures of that owner alone.
    """

    published: PublishedSet
    only_element: str = ""

    @property
    def figures(self) -> tuple[PublishedFigure, ...]:
        """The figures that are compared."""
        return tuple(
            figure
            for figure in comparable_figures(self.published)
            if not self.only_element or figure.owner.name == self.only_element
        )


class _KeyMeaning(Record):
    """What a key of a table stands for: a workload's metric, in `factor` of its unit."""

    workload: str
    metric: str
    unit: str
    factor: float = 1.0


_EXAMPLE: Final[Mapping[str, _KeyMeaning]] = {
    **{
        f"{way}_bandwidth_{unit}": _KeyMeaning(
            f"{way}-bandwidth", "bw_bytes_per_s", "bytes/s", factor
        )
        for way in ("read", "write")
        for unit, factor in (("gib_s", GIB), ("gb_s", GB))
    },
    **{f"{way}_iops": _KeyMeaning(f"{way}-iops", "iops", "1/s") for way in ("read", "write")},
    **{
        f"{way}_latency_us": _KeyMeaning(f"{way}-latency", "lat_ns_", "ns", NS_PER_US)
        for way in ("read", "write")
    },
    **{
        key: _KeyMeaning("metadata", phase_rate_key(operation), "ops/s")
        for key, operation in (
            ("creates_s", "file_create"),
            ("stats_s", "file_stat"),
            ("deletes_s", "file_remove"),
        )
    },
}
"""Keys of `[[example]]`; a latency is a mean, or a table of statistics."""


_PEAK_METRICS: Final = {
    "peak_iops": _KeyMeaning("", "iops", "1/s"),
    "peak_gb_s": _KeyMeaning("", "bw_bytes_per_s", "bytes/s", GB),
}
"""Tables of `[[configuration]]` with a figure for each workload."""

_RESULT_METRICS: Final = {
    "max_ops_s": _KeyMeaning("", OPS_PER_S, "ops/s"),
    "max_iops": _KeyMeaning("", "iops", "1/s"),
    "ops_s": _KeyMeaning("", OPS_PER_S, "ops/s"),
    "p99_99_read_ms": _KeyMeaning("", "read_lat_ns_p99_99", "ns", NS_PER_MS),
}
"""Keys of `[[result]]`; a table in place of a figure has one for each product."""


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
        (name, _description_text(value)) for name, value in flatten_table(published.table("method"))
    ]
    return tuple((name, text) for name, text in texts if text)


def _example_figures(published: PublishedSet) -> Iterator[PublishedFigure]:
    for table in published.array_tables("example"):
        owner = PublishedSystem(
            str(table.get("id", "")), clients=positive_integer_or_none(table.get("hosts"))
        )
        for key, kind in _EXAMPLE.items():
            for name, value in _latency_statistics(key, table.get(key)):
                yield from _positive_figures(owner, kind, kind.workload, value, suffix=name)


def _latency_statistics(key: str, value: object) -> Iterator[tuple[str, object]]:
    """A latency's statistics by name; any other figure by itself."""
    if not key.endswith("_latency_us"):
        yield "", value
    elif isinstance(value, dict):
        yield from value.items()
    else:
        yield "mean", value


def _metadata_figures(published: PublishedSet) -> Iterator[PublishedFigure]:
    table = published.table("metadata")
    owner = PublishedSystem("mdtest", clients=positive_integer_or_none(table.get("clients")))
    for name, value in table_items(table.get("example_ops_s")):
        if operation := _METADATA.get(name):
            kind = _KeyMeaning("metadata", phase_rate_key(operation), "ops/s")
            yield from _positive_figures(owner, kind, kind.workload, value)


def _configuration_figures(published: PublishedSet) -> Iterator[PublishedFigure]:
    clients = positive_integer_or_none(published.table("method").get("clients"))
    for table in published.array_tables("configuration"):
        owner = PublishedSystem(
            str(table.get("id", "")),
            clients=clients,
            nodes=positive_integer_or_none(table.get("nodes")),
            raw_tb=positive_range_or_none(table.get("raw_tb")),
            usable_tb=positive_range_or_none(table.get("usable_tb")),
            description=_hardware_descriptions(table),
        )
        for key, kind in _PEAK_METRICS.items():
            for workload, value in table_items(table.get(key)):
                yield from _positive_figures(owner, kind, workload, value)


def _result_figures(published: PublishedSet) -> Iterator[PublishedFigure]:
    method, hardware = published.table("method"), published.table("hardware")
    nodes = positive_integer_or_none(method.get("nodes"))
    raw = positive_range_or_none(hardware.get("cluster_raw_tb"))
    words = _hardware_descriptions(hardware)
    # Guests live on the nodes themselves; any other load came from one client.
    clients = None if nodes else 1
    for table in published.array_tables("result"):
        workload = str(table.get("workload", ""))
        if "write_percent" in table:
            workload = f"write-{table['write_percent']}"
        axis = tuple((name, table[name]) for name in _AXIS_KEYS if name in table)
        for key, kind in _RESULT_METRICS.items():
            value = table.get(key)
            products = value if isinstance(value, dict) else {MEASURED: value}
            for product, figure in products.items():
                owner = PublishedSystem(
                    product, clients=clients, nodes=nodes, raw_tb=raw, description=words
                )
                yield from _positive_figures(owner, kind, workload, figure, axis=axis)


def _positive_figures(
    owner: PublishedSystem,
    kind: _KeyMeaning,
    workload: str,
    value: object,
    *,
    axis: Axis = (),
    suffix: str = "",
) -> Iterator[PublishedFigure]:
    """The figure, where it is one above zero."""
    figure = None if isinstance(value, list) else positive_range_or_none(value)
    if figure is not None and workload:
        scaled = figure * exact_range(kind.factor)
        yield PublishedFigure(owner, workload, f"{kind.metric}{suffix}", kind.unit, scaled, axis)


def _hardware_descriptions(table: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, text) for name in _DESCRIPTION_KEYS if (text := _description_text(table.get(name)))
    )


def _description_text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(_description_text(part) for part in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None or isinstance(value, dict) else str(value)
