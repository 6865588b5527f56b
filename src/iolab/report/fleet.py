"""A run of several hosts in tables: how alike and how much together, and the account of bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from iolab.analysis.storage_bytes import ByteAccount, NodeBytes
from iolab.core.metric import HostResult, Result, Spread
from iolab.core.workload import Workload
from iolab.report.kinds import LoadReport
from iolab.report.numbers import NOTHING, count
from iolab.report.table import Cell, Table, columns, row
from iolab.units import format_bytes, format_duration_s

HOSTS_SHOWN: Final = 24
"""Rows of a fleet's table: a larger fleet shows the slowest and the fastest half of these."""


def host_shares(kind: LoadReport, result: Result, workload: Workload) -> Table:
    """Each host's share of a run; of a large fleet the slowest and the fastest."""
    return extremes(kind.hosts_table(result), result, kind.host_key(result, workload))


def extremes(whole: Table, result: Result, key: str) -> Table:
    """The table, whose rows are the result's hosts in their order, without the middle of many."""
    if len(result.hosts) <= HOSTS_SHOWN:
        return whole
    ordered = sorted(result.hosts, key=lambda host: _value(host, key))
    half = HOSTS_SHOWN // 2
    rows = dict(zip((host.name for host in result.hosts), whole.rows, strict=True))
    hidden = count(len(ordered) - 2 * half, "host")
    gap = (Cell(f"{hidden} between"), *(Cell("") for _ in whole.columns[1:]))
    kept = (
        *(rows[host.name] for host in ordered[:half]),
        gap,
        *(rows[host.name] for host in ordered[-half:]),
    )
    return Table(whole.title, whole.columns, kept)


def spread_rows(spread: Spread) -> tuple[tuple[str, str], ...]:
    """The spread in words, one row a figure."""
    ratio = NOTHING if spread.max_over_min is None else f"{spread.max_over_min:.2f}"
    drift = NOTHING if spread.drift_ns is None else f"{spread.drift_ns / 1e6:+.2f} ms"
    return (
        ("slowest", spread.slowest),
        ("fastest", spread.fastest),
        ("fastest over slowest", ratio),
        ("Jain's index", f"{spread.jain:.3f}"),
        ("first I/Os apart", f"{spread.start_skew_ns / 1e6:.1f} ms"),
        ("last I/Os apart", f"{spread.end_skew_ns / 1e6:.1f} ms"),
        ("all ran together", f"{100 * spread.overlap:.1f} % of the time"),
        ("first done after", format_duration_s(spread.first_done_s)),
        ("last done after", format_duration_s(spread.last_done_s)),
        ("largest clock drift", drift),
    )


def spread_table(spread: Spread) -> Table:
    """The same as a table."""
    return Table(
        "How alike and how much together",
        columns(("Of the fleet", "Value")),
        tuple(row(*pair) for pair in spread_rows(spread)),
    )


def operation_spreads_table(spreads: Mapping[str, Spread], names: Mapping[str, str]) -> Table:
    """The same of parts of a run that follow each other, one row a part under its name."""
    heads = (
        *columns(("Operation", "Slowest", "Fastest")),
        *columns((), ("Fastest over slowest", "Jain's index", "First apart", "Last apart")),
        *columns((), ("All worked together",)),
    )
    rows = tuple(
        row(operation, *_figures(spreads[key]))
        for key, operation in names.items()
        if key in spreads
    )
    return Table("How alike and how much together, phase by phase", heads, rows)


def spread_tables(kind: LoadReport, result: Result) -> tuple[Table, ...]:
    """The spread of a result's hosts as it is known: of the run, or of each of its phases."""
    tables = () if result.spread is None else (spread_table(result.spread),)
    if not result.operation_spreads:
        return tables
    return (*tables, operation_spreads_table(result.operation_spreads, kind.spread_names))


def _figures(spread: Spread) -> tuple[str, ...]:
    ratio = NOTHING if spread.max_over_min is None else f"{spread.max_over_min:.2f}"
    return (
        spread.slowest,
        spread.fastest,
        ratio,
        f"{spread.jain:.3f}",
        f"{spread.start_skew_ns / 1e6:.1f} ms",
        f"{spread.end_skew_ns / 1e6:.1f} ms",
        f"{100 * spread.overlap:.1f} %",
    )


def account_table(account: ByteAccount) -> Table:
    """What clients claim, what follows for the disks, and what disks and ports moved."""
    nodes = [
        row(
            node.host,
            _size(node.read_bytes),
            _size(node.write_bytes),
            _size(node.sent_bytes),
            _size(node.received_bytes),
        )
        for node in sorted(account.nodes, key=_most, reverse=True)[:HOSTS_SHOWN]
    ]
    return Table(
        "Account of bytes",
        columns(("Of",), ("Read", "Written", "Ports out", "Ports in")),
        (
            row(
                "claimed by clients",
                _size(account.claimed_read),
                _size(account.claimed_write),
                NOTHING,
                NOTHING,
            ),
            row(
                "expected of disks",
                _size(account.expected_read),
                _size(account.expected_write),
                NOTHING,
                NOTHING,
            ),
            row(
                "moved by disks",
                _size(account.moved_read),
                _size(account.moved_write),
                NOTHING,
                NOTHING,
            ),
            *nodes,
        ),
    )


def _value(host: HostResult, key: str) -> float:
    metric = host.metrics.get(key)
    return 0.0 if metric is None or metric.value is None else metric.value


def _most(node: NodeBytes) -> int:
    return (node.read_bytes or 0) + (node.write_bytes or 0)


def _size(size: float | None) -> str:
    return NOTHING if size is None else format_bytes(size)
