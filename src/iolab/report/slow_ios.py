"""The slowest I/Os of runs as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from iolab.core.metric import RunResult
from iolab.report.table import Table, row_of_cells, text_and_number_columns
from iolab.units import format_bytes, format_ns

if TYPE_CHECKING:
    from iolab.analysis.slow_ios import SlowIoContext

_COLUMNS: Final = (
    *("configuration", "workload", "digest", "repeat", "host", "at_ns", "latency_ns"),
    *("service_ns", "operation", "file", "offset", "bytes", "host_meanwhile"),
)


def slow_ios_table(title: str, slow_ios: Iterable[SlowIoContext]) -> Table:
    """Each with its moment, place and size, and what the host did then."""
    texts = ("Host", "At", "Latency", "Service", "Operation", "File", "Offset", "Size")
    rows = tuple(
        row_of_cells(
            slow.host,
            f"{slow.at_s:.3f} s",
            format_ns(slow.io.latency_ns),
            format_ns(slow.io.service_ns),
            slow.io.operation,
            slow.io.path,
            f"{slow.io.offset:,}",
            format_bytes(slow.io.bytes),
            "; ".join(slow.unusual_event_texts) or "nothing unusual",
        )
        for slow in slow_ios
    )
    return Table(title, text_and_number_columns((*texts, "The host meanwhile")), rows)


def slow_io_columns(
    runs: Iterable[tuple[RunResult, Sequence[SlowIoContext]]],
) -> dict[str, list[str | float | None]]:
    """The slow I/Os of runs as columns for other programs: a row for each."""
    columns: dict[str, list[str | float | None]] = {name: [] for name in _COLUMNS}
    for result, slow_ios in runs:
        for slow in slow_ios:
            values: tuple[str | float, ...] = (
                result.configuration,
                result.workload,
                result.digest,
                result.repeat,
                slow.host,
                slow.io.at_ns,
                slow.io.latency_ns,
                slow.io.service_ns,
                slow.io.operation,
                slow.io.path,
                slow.io.offset,
                slow.io.bytes,
                "; ".join(slow.unusual_event_texts),
            )
            for name, value in zip(_COLUMNS, values, strict=True):
                columns[name].append(value)
    return columns
