"""Tables for other programs: columns to a Parquet file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from iolab.store.durable import in_place_of, told
from iolab.store.parquet import Column, write_columns


def write_parquet(columns: Mapping[str, Column], path: Path) -> None:
    """Write columns of one length to `path`, in place of what is there, at once.

    Integers and floats may be masked where a value is missing; text has dtype object with None for
    missing. StoreError names the path when it cannot be written.
    """
    with told(path, "write"), in_place_of(path) as draft:
        write_columns(columns, draft)
