"""Tables for other programs: columns to a Parquet file, and all intervals of a session in one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import getpid
from pathlib import Path
from typing import Any, Final

import numpy as np

from iolab.model.key_value import KeyOperation
from iolab.model.metadata import Operation
from iolab.model.metric import Result
from iolab.model.sample import Direction, IntervalTable, ServiceTime
from iolab.store import layout
from iolab.store.durable import sync, told
from iolab.store.parquet import Column, write_columns
from iolab.store.reader import SessionReader

WAYS: Final[Mapping[int, str]] = {
    **{int(way): way.name.lower() for way in Direction},
    **{int(way): f"{way.name.lower()}-service" for way in ServiceTime},
    **{int(operation): operation.word for operation in Operation},
    **{int(operation): operation.word for operation in KeyOperation},
}
"""What stands for each number of a direction, of a metadata operation, of one on keys."""


def write_parquet(columns: Mapping[str, Column], path: Path) -> None:
    """Write columns of one length to `path`, in place of what is there, at once.

    Integers and floats may be masked where a value is missing; text has dtype object with None for
    missing. StoreError names the path when it cannot be written.
    """
    draft = layout.aside(path, getpid())
    with told(path, "write"):
        try:
            write_columns(columns, draft)
            sync(draft)
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)


def export_intervals(reader: SessionReader, path: Path) -> None:
    """Write every interval of every committed run to one Parquet file.

    Each row says which run (configuration, workload, axis_<name>, digest, repeat, status), which
    host and direction (of metadata load, which operation), and what IntervalTable says. StoreError
    if a run is damaged.
    """
    results = reader.results()
    tables = [reader.intervals(result.digest, result.repeat) for result in results]
    hosts = [
        [host.host for host in reader.manifest(result.digest, result.repeat).hosts]
        for result in results
    ]
    write_parquet(_interval_columns(results, tables, hosts), path)


def _interval_columns(
    results: Sequence[Result], tables: Sequence[IntervalTable], hosts: Sequence[Sequence[str]]
) -> dict[str, Column]:
    """The columns of all runs, one below the other."""
    run = np.repeat(np.arange(len(results)), [len(table) for table in tables])
    columns: dict[str, Column] = {
        "configuration": _texts([result.configuration for result in results])[run],
        "workload": _texts([result.workload for result in results])[run],
    }
    axes = [dict(result.axis) for result in results]
    for name in dict.fromkeys(name for axis in axes for name in axis):
        columns[f"axis_{name}"] = _values([axis.get(name) for axis in axes])[run]
    columns["digest"] = _texts([result.digest for result in results])[run]
    columns["repeat"] = _values([result.repeat for result in results])[run]
    columns["status"] = _texts([result.status.value for result in results])[run]
    columns["host"] = _texts(
        [names[index] for table, names in zip(tables, hosts, strict=True) for index in table.host]
    )
    columns["direction"] = _texts(
        [WAYS[way] for table in tables for way in table.direction.tolist()]
    )
    for name in ("seq", "end_real_ns", "span_ns", "ios", "bytes"):
        columns[name] = _joined([getattr(table, name) for table in tables], np.int64)
    columns["lat_sum_ns"] = _joined([table.lat_sum_ns for table in tables], np.float64)
    return columns


def _joined(parts: Sequence[Column], kind: type[np.generic]) -> Column:
    """One column after the other."""
    return np.concatenate(parts) if parts else np.zeros(0, dtype=kind)


def _texts(words: Sequence[str | None]) -> Column:
    """Text as a column."""
    column = np.empty(len(words), dtype=np.object_)
    column[:] = words
    return column


def _values(values: Sequence[int | str | None]) -> Column:
    """Integers, masked where missing; text as soon as one of them is text."""
    if any(isinstance(value, str) for value in values):
        return _texts([None if value is None else str(value) for value in values])
    missing = [value is None for value in values]
    column: np.ma.MaskedArray[Any, Any] = np.ma.masked_array(
        [value or 0 for value in values], mask=missing, dtype=np.int64
    )
    return column
