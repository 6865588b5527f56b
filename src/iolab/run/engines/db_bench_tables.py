"""What sst_dump tells of a database's table files: how it was really loaded. Pure.

db_bench says nothing of a database that it did not load itself: it takes another block size or
number of keys than the files have without a word.
"""

from __future__ import annotations

import re
from typing import Final

from iolab.model.key_value import KeyValueSet, TableShape

TABLES_LIMIT_BYTES: Final = 64 << 20
"""What is read: 1.7 KiB for each file of 64 MiB, which is enough for 2 TiB."""

OVERHEAD_BYTES: Final = 256
"""What a block has beyond its entries: restart points, trailer, the cache's own record."""

SEQUENCE_BYTES: Final = 8
"""RocksDB's own part of each stored key."""


def tables_of(raw: bytes) -> TableShape | None:
    """The properties of all files added up; None when there is no file or an output is cut."""
    text = raw[:TABLES_LIMIT_BYTES].decode("utf-8", "replace")
    files = [dict(_PROPERTY.findall(part)) for part in text.split("Table Properties:")[1:]]
    compression = tuple(sorted(set(_COMPRESSION.findall(text))))
    if not files or any(not set(_NAMES) <= part.keys() for part in files):
        return None
    entries, blocks, blocks_sum, keys_sum, values_sum = (
        sum(int(part[name]) for part in files) for name in _NAMES
    )
    return TableShape(len(files), entries, blocks, blocks_sum, keys_sum, values_sum, compression)


def shape_faults(shape: TableShape | None, loaded: KeyValueSet) -> tuple[str, ...]:
    """Why a database is not the one that was to be loaded; empty when it is."""
    if shape is None:
        return ("there is no database with tables: it was not loaded, or the path is another",)
    faults: list[str] = []
    if shape.entries != loaded.keys:
        faults.append(f"the database holds {shape.entries} keys, and {loaded.keys} were loaded")
    if shape.entries:
        key = shape.key_bytes_sum / shape.entries - SEQUENCE_BYTES
        value = shape.value_bytes_sum / shape.entries
        if (key, value) != (loaded.key_bytes, loaded.value_bytes):
            faults.append(
                f"the database has keys of {key:g} and values of {value:g} bytes, and "
                f"{loaded.key_bytes} and {loaded.value_bytes} were asked for"
            )
    if fault := block_fault(shape.block_bytes_mean, loaded):
        faults.append(fault)
    if set(shape.compression) - {"NoCompression"}:
        faults.append(f"the database is compressed: {', '.join(shape.compression)}"[:_SENTENCE])
    return tuple(faults)


def block_fault(mean_bytes: float | None, loaded: KeyValueSet) -> str | None:
    """Why blocks of that mean size were not made with the block size; None when they may be.

    A block is closed by the entry that fills it up, so it may be longer by one; one that stands
    last in its file may be short, and so the mean may be down to half of what was asked for.
    """
    if mean_bytes is None:
        return "the database has no data block"
    longest = loaded.block_bytes + loaded.entry_bytes + SEQUENCE_BYTES + OVERHEAD_BYTES
    if loaded.block_bytes / 2 <= mean_bytes <= longest:
        return None
    return (
        f"the database has blocks of {mean_bytes:.0f} bytes on average, and was to have "
        f"{loaded.block_bytes}"
    )


_SENTENCE: Final = 200
_NAMES: Final = (
    "# entries",
    "# data blocks",
    "data block size",
    "raw key size",
    "raw value size",
)
_PROPERTY: Final = re.compile(rf"^ +({'|'.join(_NAMES)}): (\d{{1,19}})$", re.MULTILINE)
_COMPRESSION: Final = re.compile(r"SST file compression algo: ([A-Za-z0-9]{1,30})$", re.MULTILINE)
