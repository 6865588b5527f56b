"""A run of several hosts in tables: how alike and how much together, and the account of bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from iolab.analyse.account import ByteAccount, NodeBytes
from iolab.analyse.iterations import is_metadata
from iolab.analyse.key_value.summary import WHOLE_KEY, is_key_value
from iolab.model.metric import HostResult, Result, Spread
from iolab.report.key_value.tables import key_hosts_table
from iolab.report.operations import NAMES, host_rate_keys, share_table
from iolab.report.table import Cell, Table, columns, row
from iolab.report.tables import hosts_table
from iolab.report.wording import NOTHING, count
from iolab.units import format_bytes, format_duration_s

OPERATIONS: Final = {operation.key: name for operation, name in NAMES.items()}
"""Metadata operations for people, by their key in metrics."""

HOSTS_SHOWN: Final = 24
"""Rows of a fleet's table: a larger fleet shows the slowest and the fastest half of these."""


def host_shares(result: Result, key: str) -> Table:
    """Each host's share of a run of any load; `key` is the metric that orders I/O."""
    if is_key_value(result):
        return _extremes(key_hosts_table(result), result, WHOLE_KEY)
    return metadata_share_rows(result) if is_metadata(result) else share_rows(result, key)


def share_rows(result: Result, key: str) -> Table:
    """Each host's share; of a large fleet the slowest and the fastest, by the metric `key`."""
    return _extremes(hosts_table(result), result, key)


def metadata_share_rows(result: Result) -> Table:
    """The same of metadata load; the slowest and the fastest are those to make files."""
    return _extremes(share_table(result), result, host_rate_keys(result)[0])


def _extremes(whole: Table, result: Result, key: str) -> Table:
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


def operation_spreads_table(spreads: Mapping[str, Spread]) -> Table:
    """The same of metadata load, one row an operation: its phases follow each other."""
    heads = (
        *columns(("Operation", "Slowest", "Fastest")),
        *columns((), ("Fastest over slowest", "Jain's index", "First apart", "Last apart")),
        *columns((), ("All worked together",)),
    )
    rows = tuple(
        row(operation, *_figures(spreads[key]))
        for key, operation in OPERATIONS.items()
        if key in spreads
    )
    return Table("How alike and how much together, phase by phase", heads, rows)


def spread_tables(result: Result) -> tuple[Table, ...]:
    """The spread of a result's hosts as it is known: of the run, or of each of its phases."""
    tables = () if result.spread is None else (spread_table(result.spread),)
    if not result.operation_spreads:
        return tables
    return (*tables, operation_spreads_table(result.operation_spreads))


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
