"""Tables that other programs read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest
from bench.synthetic import make_result

from iolab.errors import StoreError
from iolab.model.event import SessionStatus
from iolab.model.metadata import Operation
from iolab.store.export import export_intervals, write_parquet
from iolab.store.reader import SessionReader
from tests.store.sessions import commit, create, record_of


def rows_of(path: Path, query: str = "SELECT * FROM read_parquet(?)") -> list[tuple[object, ...]]:
    return duckdb.connect().execute(query, [str(path)]).fetchall()


def test_columns_of_every_kind_are_written(tmp_path: Path) -> None:
    path = tmp_path / "it's.parquet"
    write_parquet(
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


def test_a_table_without_rows_keeps_its_kinds(tmp_path: Path) -> None:
    path = tmp_path / "none.parquet"
    write_parquet({"text": np.zeros(0, np.object_), "whole": np.zeros(0, np.int64)}, path)
    kinds = [row[1] for row in rows_of(path, "DESCRIBE SELECT * FROM read_parquet(?)")]
    assert kinds == ["VARCHAR", "BIGINT"]


def test_columns_of_different_lengths_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="one length"):
        write_parquet({"a": np.zeros(2), "b": np.zeros(3)}, tmp_path / "x.parquet")
    with pytest.raises(ValueError, match="one length"):
        write_parquet({}, tmp_path / "x.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    write_parquet({"a": np.arange(3)}, path)
    write_parquet({"b": np.arange(2)}, path)
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
            write_parquet({"a": np.arange(3)}, path)
    assert {path.name for path in tmp_path.iterdir()} == {"file", "directory"}


def test_all_intervals_of_a_session_in_one_table(tmp_path: Path) -> None:
    with create(tmp_path / "S") as writer:
        for order in range(4):
            commit(writer, record_of(order))
        writer.ended(SessionStatus.DONE)
    path = tmp_path / "intervals.parquet"
    export_intervals(SessionReader(tmp_path / "S"), path)
    sums = rows_of(
        path,
        "SELECT digest, axis_iodepth, axis_bs, host, direction, sum(ios), sum(bytes) "
        "FROM read_parquet(?) GROUP BY ALL",
    )
    expected = set()
    for order in range(4):
        record = record_of(order)
        result = make_result(record)
        for number, host in enumerate(record.host_names):
            mine = record.intervals.host == number
            expected.add(
                (
                    result.digest,
                    *(value for _, value in result.axis),
                    host,
                    "read",
                    int(record.intervals.ios[mine].sum()),
                    int(record.intervals.bytes[mine].sum()),
                )
            )
    assert set(sums) == expected
    assert len(sums) == len(expected) == 8


def test_intervals_of_metadata_load_name_their_operation(tmp_path: Path) -> None:
    record = record_of(0)
    ways = np.where(record.intervals.seq == 0, Operation.FILE_STAT, Operation.TREE_REMOVE)
    intervals = replace(record.intervals, direction=ways.astype(np.int64))
    with create(tmp_path / "S") as writer:
        commit(writer, replace(record, intervals=intervals))
    export_intervals(SessionReader(tmp_path / "S"), tmp_path / "x.parquet")
    words = rows_of(tmp_path / "x.parquet", "SELECT DISTINCT direction FROM read_parquet(?)")
    assert set(words) == {("file-stat",), ("tree-remove",)}


def test_a_session_without_runs_exports_an_empty_table(tmp_path: Path) -> None:
    create(tmp_path / "S").close()
    export_intervals(SessionReader(tmp_path / "S"), tmp_path / "x.parquet")
    assert rows_of(tmp_path / "x.parquet") == []
