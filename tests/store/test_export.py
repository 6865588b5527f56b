"""Tables that other programs read."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest

from iolab.errors import StoreError
from iolab.store.parquet import replace_parquet


def rows_of(path: Path, query: str = "SELECT * FROM read_parquet(?)") -> list[tuple[object, ...]]:
    return duckdb.connect().execute(query, [str(path)]).fetchall()


def test_columns_of_every_kind_are_written(tmp_path: Path) -> None:
    path = tmp_path / "it's.parquet"
    replace_parquet(
        {
            "whole": np.array([1, -(2**63)]),
            "missing": np.ma.masked_array([7, 8], mask=[False, True]),
            "real": np.array([0.1, np.nan]),
            'te"xt': np.array(["µs", None], dtype=np.object_),
            "fixed": np.array(["a", "bc"]),
            "truth": np.array([True, False]),
        },
        path,
    )
    first, second = rows_of(path)
    assert first == (1, 7, 0.1, "µs", "a", True)
    assert second == (-(2**63), None, None, None, "bc", False)
    names = [row[0] for row in rows_of(path, "DESCRIBE SELECT * FROM read_parquet(?)")]
    assert names == ["whole", "missing", "real", 'te"xt', "fixed", "truth"]


def test_columns_of_different_lengths_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="one length"):
        replace_parquet({"a": np.zeros(2), "b": np.zeros(3)}, tmp_path / "x.parquet")
    with pytest.raises(ValueError, match="one length"):
        replace_parquet({}, tmp_path / "x.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    replace_parquet({"a": np.arange(3)}, path)
    replace_parquet({"b": np.arange(2)}, path)
    assert rows_of(path) == [(0,), (1,)]
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "directory").mkdir()
    for path in (
        tmp_path / "missing" / "x.parquet",
        tmp_path / "file" / "x.parquet",
        tmp_path / "directory",
    ):
        with pytest.raises(StoreError, match=f"Cannot write '{tmp_path}"):
            replace_parquet({"a": np.arange(3)}, path)
    assert {path.name for path in tmp_path.iterdir()} == {"file", "directory"}
