"""The door to duckdb: columns of numpy arrays to a Parquet file and back."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from iolab.core.regular_file import require_regular_file
from iolab.core.samples import EncodedNames
from iolab.errors import StoreError
from iolab.store.codec import escape_surrogates
from iolab.store.durable import (
    disk_errors_as_store_errors,
    draft_then_replace,
    os_error_in_text,
    store_error,
)

if TYPE_CHECKING:
    import duckdb

Column = npt.NDArray[Any]
"""Integers, floats or truth values, masked where missing; or text (dtype object, None missing)."""

_OWN_LIMIT_REACHED: Final = " used)"
"""In what duckdb says of a lack of memory where `memory_limit` was reached, not the system's."""

_SETTINGS: Final[dict[str, str | bool | int | float | list[str]]] = {
    "threads": 1,  # a run's tables are small: a second one gains nothing
    "memory_limit": "1GB",  # a run of 100 hosts fits several times over
    "temp_directory": "",  # nothing spills into the directory the user happens to be in
    "autoinstall_known_extensions": False,  # no network
    "autoload_known_extensions": False,
}


_DAMAGED: Final = "If it was written before, restore it from a copy or measure again."

_FORMAT: Final = "FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, USE_TMP_FILE false"
"""A higher level of zstd makes these tables no smaller."""

_AS_DIFFERENCES: Final = ", PARQUET_VERSION v2, DICTIONARY_SIZE_LIMIT 1"
"""Ordered numbers are quicker to keep as differences than by a dictionary, and smaller. Where text
stands beside them (counters), one row has nothing to do with the next and differences are large."""


def preload_duckdb() -> None:
    """Load the library ahead of the first table, whose writing tells what is wrong with it."""
    with suppress(ImportError, OSError):
        _duckdb_connection()


def write_parquet(columns: Mapping[str, Column | EncodedNames], path: Path) -> None:
    """Write columns of one length to a new Parquet file (zstd; text by dictionary).

    StoreError when the disk refuses; ValueError for columns of different lengths or none.
    """
    if len({len(column) for column in columns.values()}) != 1:
        raise ValueError("a table needs columns, all of one length")
    chosen = _SqlSelection()
    for name, column in columns.items():
        chosen.add_column(name, column)
    cursor = _duckdb_connection().cursor()
    try:
        cursor.register("arrays", chosen.arrays)
        query = f"SELECT {', '.join(chosen.selected)} FROM arrays"  # noqa: S608 - names are quoted
        cursor.execute(
            f"COPY ({query}) TO ? ({_FORMAT}{chosen.encoding_option})",
            [*chosen.bound, str(path.absolute())],
        )
    except _duckdb_errors() as error:
        raise _memory_or_store_error(error, path, "write") from error
    finally:
        cursor.close()


def replace_parquet(columns: Mapping[str, Column], path: Path) -> None:
    """Write columns of one length to `path`, in place of what is there, at once.

    Integers and floats may be masked where a value is missing; text has dtype object with None for
    missing. StoreError names the path when it cannot be written.
    """
    with disk_errors_as_store_errors(path, "write"), draft_then_replace(path) as draft:
        write_parquet(columns, draft)


class _SqlSelection:
    """How the columns of one table are told to duckdb: arrays, words, and what to select."""

    def __init__(self) -> None:
        self.arrays: dict[str, Column] = {}
        self.bound: list[object] = []
        self.selected: list[str] = []
        self._coded: dict[int, str] = {}
        self._has_text = False

    @property
    def encoding_option(self) -> str:
        """The option that suits what the columns hold."""
        return "" if self._has_text else _AS_DIFFERENCES

    def add_column(self, name: str, column: Column | EncodedNames) -> None:
        """Take one column."""
        code = f"c{len(self.selected)}"
        is_text = isinstance(column, EncodedNames) or column.dtype.kind in "OU"
        self._has_text = self._has_text or is_text
        if isinstance(column, EncodedNames):
            # Columns that share their codes give them once: they are as long as the table.
            code = self._coded.setdefault(id(column.codes), code)
            self.arrays.setdefault(code, column.codes)
            chosen = self._bind_enum_item_expression(
                column.words.tolist(), f"CAST({code} AS INTEGER) + 1"
            )
        elif column.dtype.kind in "OU" and not _is_plain_text(column):
            self.arrays[code], words = _dictionary_encode(column)
            chosen = self._bind_enum_item_expression(words, code)
        else:
            self.arrays[code] = column
            # Whole numbers are of one width in all files, however narrow they were in memory: a
            # query over many runs takes its types from the first file.
            chosen = f"CAST({code} AS BIGINT)" if column.dtype.kind == "i" else code
        self.selected.append(f"{chosen} AS {_quote_identifier(name)}")

    def _bind_enum_item_expression(self, words: Sequence[str], position_sql: str) -> str:
        """The word at a place counted from 1.

        As an enumeration it is never looked up again; the file has the same text either way.
        """
        words = [escape_surrogates(word) for word in words]
        self.bound.append(words)
        kind = "VARCHAR"
        if words and not any("\0" in word for word in words):
            kind = f"ENUM({', '.join(map(_quote_string, dict.fromkeys(words)))})"
        return f"list_extract(CAST(? AS {kind}[]), {position_sql})"


def read_parquet_columns(path: Path, names: Iterable[str]) -> dict[str, Column]:
    """The named columns of a Parquet file, in the order written; NaN where a float is missing.

    StoreError if the file has not all of them, or lacks a value that is no float.
    """
    with disk_errors_as_store_errors(path, "read"):
        require_regular_file(path)
    selected = ", ".join(_quote_identifier(name) for name in names)
    cursor = _duckdb_connection().cursor()
    try:
        columns: dict[str, Column] = cursor.execute(
            f"SELECT {selected} FROM read_parquet(?, hive_partitioning = false)",  # noqa: S608
            [_escape_glob(path)],
        ).fetchnumpy()
    except _duckdb_errors() as error:
        raise _memory_or_store_error(error, path, "read") from error
    finally:
        cursor.close()
    return {name: _unmasked_column(column, path) for name, column in columns.items()}


@cache
def _duckdb_connection() -> duckdb.DuckDBPyConnection:
    """The one database in memory; loaded on first use, for most commands need none."""
    import duckdb

    return duckdb.connect(":memory:", config=_SETTINGS)


def _duckdb_errors() -> tuple[type[Exception], ...]:
    """What is raised for a file that cannot be written or read, or a path that is not UTF-8."""
    import duckdb

    return (duckdb.Error, OSError, UnicodeError)


def _is_plain_text(column: Column) -> bool:
    """Whether duckdb can take this text as it is: there is some, none missing, all of it Unicode.

    It makes a dictionary by itself, twice as fast as by looking words up row by row.
    """
    words = set(column.tolist()) if column.dtype.kind == "O" else set()
    return bool(words) and all(
        isinstance(word, str) and escape_surrogates(word) == word for word in words
    )


def _dictionary_encode(column: Column) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Text as numbers from 1 into a list of words, 0 for None."""
    values: list[str | None] = column.tolist()
    words = [word for word in dict.fromkeys(values) if word is not None]
    numbers: dict[str | None, int] = {word: number for number, word in enumerate(words, 1)}
    numbers[None] = 0
    coded = np.fromiter(map(numbers.__getitem__, values), dtype=np.int64, count=len(values))
    return coded, [escape_surrogates(word) for word in words]


def _unmasked_column(column: Column, path: Path) -> Column:
    """A column without a mask: duckdb keeps a NaN as missing."""
    if not isinstance(column, np.ma.MaskedArray):
        return column
    if column.dtype.kind != "f":
        raise StoreError(f"'{path}' is damaged: values are missing.", _DAMAGED)
    return np.ma.filled(column, np.nan)


def _quote_identifier(name: str) -> str:
    """A column's name as SQL takes it."""
    return '"' + name.replace('"', '""') + '"'


def _quote_string(word: str) -> str:
    """A word as SQL takes it; it must not have the character 0."""
    return "'" + word.replace("'", "''") + "'"


def _escape_glob(path: Path) -> str:
    """A path in which duckdb finds no pattern."""
    return re.sub(r"([*?\[])", r"[\1]", str(path.absolute()))


def _memory_or_store_error(error: Exception, path: Path, verb: str) -> MemoryError | StoreError:
    """For what duckdb raised: where the system gave no memory, that tells nothing of the file."""
    import duckdb

    message = str(error)
    if isinstance(error, duckdb.OutOfMemoryException) and _OWN_LIMIT_REACHED not in message:
        return MemoryError(message)
    fault = error if isinstance(error, OSError) else os_error_in_text(message)
    if fault is not None:
        return store_error(fault, path, verb)
    first_line = message.splitlines()[0] if message else type(error).__name__
    return StoreError(
        f"Cannot {verb} '{os.fspath(path)}': {first_line}",
        _DAMAGED,
    )
