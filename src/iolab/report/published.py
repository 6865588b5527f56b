"""Results that others published of the same study: named as such, and never mixed with measured.

They come as TOML of a loose form: tables of `[[result]]` with whatever was printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from iolab.analyse.audit.document import Published, flat
from iolab.report.table import Cell, Column, Table, row
from iolab.report.wording import NOTHING

ROWS_MAX: Final = 64
"""Published tables are short; more rows would bury what was measured."""

_HEADINGS: Final = {
    "workload": "Workload",
    "block_size": "Block",
    "threads": "Threads",
    "max_ops_s": "Most ops/s",
    "ops_s.measured": "Ops/s",
    "ops_s.competitor": "Ops/s, the other",
    "p99_99_read_ms.measured": "Read p99.99, ms",
    "p99_99_read_ms.competitor": "Read p99.99, ms, the other",
    "max_gain_ops_pct": "Largest gain in ops/s, %",
    "max_absolute_gain_ops_s": "Largest gain, ops/s",
    "max_gain_latency_pct": "Largest gain in latency, %",
    "gain_ops": "Gain in ops/s, factor",
    "gain_latency": "Gain in latency, factor",
    "write_percent": "Writes, %",
    "vms": "VMs",
    "max_iops": "Most IOPS",
    "mean_latency_us.qd1": "Mean, µs, depth 1",
    "mean_latency_us.qd1_max": "Mean at most, µs, depth 1",
    "mean_latency_us.qd8_max": "Mean at most, µs, depth 8",
    "p99_99_latency_ms.qd1": "p99.99, ms, depth 1",
    "p99_99_latency_ms.qd1_max": "p99.99 at most, ms, depth 1",
    "p99_99_latency_ms.qd8": "p99.99, ms, depth 8",
    "p99_99_latency_ms.qd8_max": "p99.99 at most, ms, depth 8",
    "ssd_iops": "IOPS of each SSD",
    "node_iops": "IOPS of the node",
    "ssd_write_latency_us": "Write latency of each SSD, µs",
    "ssd_write_latency_printed_pct_of_vm_latency": "of what a VM sees, as printed, %",
    "cpu_busy_pct_by_numa.most": "CPU busy, most NUMA nodes, %",
    "cpu_busy_pct_by_numa.numa1": "CPU busy, NUMA node 1, %",
    "port_tx_mb_s": "Sent by a port, MB/s",
    "port_tx_printed_pct_of_capacity": "of its capacity, as printed, %",
    "port_frames_s": "Frames sent by a port, 1/s",
    "port_frames_printed_pct_of_capacity": "of its most frames, as printed, %",
}
"""Names of published figures, for people."""


@dataclass(frozen=True, slots=True)
class PublishedTables:
    """What was published: where, on what, and a table of its figures.

    `inside` are those of one node from inside, None where none were.
    """

    source: str
    notes: tuple[tuple[str, str], ...]
    results: Table
    inside: Table | None = None


def published_tables(published: Published) -> PublishedTables:
    """What is shown of a published set beside the results of its study."""
    rows = [dict(flat(one)) for one in published.tables("result")]
    names = _ordered(dict.fromkeys(name for one in rows for name in one))
    notes = [
        (name, str(part))
        for section in ("method", "hardware")
        for name, part in published.table(section).items()
        if name in _NOTES and isinstance(part, str)
    ]
    heads = tuple(Column(_HEADINGS.get(name, name), number=name in _NUMBERS) for name in names)
    cells: tuple[tuple[Cell, ...], ...] = tuple(
        row(*(_text(one.get(name)) for name in names)) for one in rows[:ROWS_MAX]
    )
    results = Table("Published elsewhere", heads, cells)
    inside = _inside(published.table("single_node"))
    return PublishedTables(published.source or NOTHING, tuple(notes), results, inside)


def _inside(node: Mapping[str, Any]) -> Table | None:
    """What was published of one node, one row a figure."""
    if not node:
        return None
    rows = [(_HEADINGS.get(name, name), _text(value)) for name, value in flat(node)]
    heads = (Column("One node, 70/30 at depth 8"), Column("Published", number=True))
    return Table("One node from inside", heads, tuple(row(*pair) for pair in rows[:ROWS_MAX]))


_NOTES: Final = frozenset({"engine", "server", "reported", "placement", "node"})
"""Texts on how and on what was measured."""

_NUMBERS: Final = frozenset(_HEADINGS) - {"workload", "block_size"}


def _ordered(names: Iterable[str]) -> list[str]:
    """Names as they appear, those of one table side by side in the order of their headings."""
    found = list(names)
    tables = list(dict.fromkeys(name.partition(".")[0] for name in found))
    known = list(_HEADINGS)
    return sorted(
        found,
        key=lambda name: (
            tables.index(name.partition(".")[0]),
            known.index(name) if name in known else len(known),
        ),
    )


def _text(value: object) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, list) and len(value) == 2:
        return f"{_text(value[0])} to {_text(value[1])}"
    if isinstance(value, Decimal) and value >= _WHOLE_FROM:
        return f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


_WHOLE_FROM: Final = 1000
"""Printed rates like 1.9e6 are read as the others are."""
