"""Narrow columns lose nothing, and coded names read as the names they stand for."""

from __future__ import annotations

import numpy as np
import pytest

from iolab.core.bins import BIN_COUNT
from iolab.core.samples import (
    CHUNK_ROWS,
    BinTable,
    EncodedNames,
    empty_bin_table,
    with_narrowest_type,
)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([], np.int8),
        ([0, 127, -128], np.int8),
        ([128], np.int16),
        ([-(1 << 15)], np.int16),
        ([1 << 15], np.int32),
        ([1 << 31], np.int64),
        ([-(1 << 63), (1 << 63) - 1], np.int64),
    ],
)
def test_the_narrowest_type_that_holds_all(values: list[int], kind: type[np.generic]) -> None:
    found = with_narrowest_type(np.array(values, dtype=np.int64))
    assert found.dtype == kind
    assert found.tolist() == values


def scattered() -> BinTable:
    """Five parts of 8-bit columns, two of them of the same host, interval and direction."""
    host, seq, direction = [0, 0, 0, 1, 1, 1, 0], [0, 0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1, 0]
    columns = (host, seq, direction, [7, 90, 7, 7, 8, 127, 7], [100, 1, 2, 3, 127, 127, 127])
    return BinTable(*(np.array(column, dtype=np.int8) for column in columns))


def test_parts_are_of_one_host_interval_and_direction() -> None:
    table = scattered()
    parts = table.bin_groups()
    keys = zip(parts.host, parts.seq, parts.direction, parts.size, strict=True)
    assert [tuple(map(int, key)) for key in keys] == [
        (0, 0, 0, 2),
        (0, 1, 0, 1),
        (1, 0, 0, 2),
        (1, 0, 1, 1),
        (0, 0, 0, 1),
    ]
    assert parts.start.tolist() == [0, 2, 3, 5, 6]
    assert table.io_count_by_group(parts).tolist() == [101, 2, 130, 127, 127]


@pytest.mark.parametrize("ordered", [True, False])
def test_counts_of_parts_are_added_up_wide(ordered: bool) -> None:  # noqa: FBT001
    rng = np.random.default_rng(7)
    keys = rng.integers(0, 3, (3, 3 * CHUNK_ROWS), dtype=np.int8)
    if ordered:
        keys = keys[:, np.lexsort(keys[::-1])]
    size = (keys.shape[1],)
    bins = rng.integers(0, BIN_COUNT, size, dtype=np.int16)
    counts = rng.integers(1, 128, size, dtype=np.int8)
    table = BinTable(keys[0], keys[1], keys[2], bins, counts)
    parts = table.bin_groups()
    sums, expected = np.zeros((2, 3, BIN_COUNT), dtype=np.int64)
    # All but those of one interval, which leave holes.
    used = parts.select_groups(parts.seq != 1)
    table.add_counts_to(sums, used, used.host)
    rows = keys[1] != 1
    np.add.at(expected, (keys[0][rows], bins[rows]), counts[rows].astype(np.int64))
    assert np.array_equal(sums, expected)
    assert int(table.io_count_by_group(parts).sum()) == int(counts.sum(dtype=np.int64))


def test_a_table_without_rows_has_no_parts() -> None:
    table, sums = empty_bin_table(), np.zeros((1, BIN_COUNT), dtype=np.int64)
    assert len(table.bin_groups()) == 0
    assert table.io_count_by_group(table.bin_groups()).tolist() == []
    table.add_counts_to(sums, table.bin_groups(), np.zeros(0, dtype=np.int64))
    assert not sums.any()


def test_coded_names_read_as_an_array_of_names() -> None:
    codes = np.array([1, 0, 1], dtype=np.int8)
    names = EncodedNames(codes, ["read_ios", "write_ios"])
    assert (len(names), names.size) == (3, 3)
    assert list(names) == names.tolist() == ["write_ios", "read_ios", "write_ios"]
    assert names[1] == "read_ios"
    assert names[codes == 1].tolist() == ["write_ios"] * 2
    assert np.asarray(names).dtype == np.object_
    assert np.asarray(names).tolist() == names.tolist()
