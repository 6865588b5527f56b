"""What `iolab.ycsb.RocksTool` prints of an embedded database: pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from iolab.model.key_value import LevelShape
from iolab.model.key_value_run import StoreShape

LEVELS_LIMIT: Final = 100
"""RocksDB has seven levels unless it is told otherwise."""


@dataclass(frozen=True, slots=True)
class RocksShape:
    """A database as it was counted: `keys` whole records, and its tree."""

    keys: int
    value_bytes: int
    memtable_entries: int
    shape: StoreShape


def read_shape(output: bytes) -> RocksShape | None:
    """The shape that was printed; None when the output is not whole. Never raises."""
    numbers = {
        match[1].decode(): int(match[2])
        for line in output.split(b"\n")
        if (match := _LINE.fullmatch(line))
    }
    wanted = ("end", "keys", "value_bytes", "memtable_entries", "pending_bytes")
    if any(name not in numbers for name in wanted):
        return None
    return RocksShape(
        keys=numbers["keys"],
        value_bytes=numbers["value_bytes"],
        memtable_entries=numbers["memtable_entries"],
        shape=StoreShape(tuple(_levels(numbers)), None, numbers["pending_bytes"]),
    )


def shape_faults(found: RocksShape | None, records: int) -> tuple[str, ...]:
    """Why a database is not the one that was loaded with so many records; empty when it is."""
    if found is None:
        return ("the database did not tell what it holds",)
    faults = []
    if found.keys != records:
        faults.append(f"the database holds {found.keys} records, and {records} were loaded")
    if found.memtable_entries:
        faults.append(f"{found.memtable_entries} entries of the database are still in memory")
    if found.shape.pending_bytes:
        faults.append(f"{found.shape.pending_bytes} bytes of the database are to be compacted")
    faults += [
        f"level 0 has {level.files} files left to compact after the load"
        for level in found.shape.levels
        if level.level == 0 and level.files
    ]
    return tuple(faults)


_LINE: Final = re.compile(rb"([a-z_]{1,40}(?:\.\d{1,2}\.[a-z]{1,10})?) (\d{1,18})")


def _levels(numbers: dict[str, int]) -> Iterator[LevelShape]:
    for level in range(LEVELS_LIMIT):
        files = numbers.get(f"level.{level}.files")
        if files:
            yield LevelShape(level, files, numbers.get(f"level.{level}.bytes", 0))
