"""Narrow columns lose nothing, and coded names read as the names they stand for."""

from __future__ import annotations

import numpy as np
import pytest

from iolab.core.samples import BinTable, CodedNames, narrow


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
    found = narrow(np.array(values, dtype=np.int64))
    assert found.dtype == kind
    assert found.tolist() == values


def test_chunks_are_wide_and_together_the_table() -> None:
    columns = [np.arange(10, dtype=np.int8) + number for number in range(5)]
    parts = list(BinTable(*columns).chunks(4))
    assert [len(part) for part in parts] == [4, 4, 2]
    assert {part.count.dtype for part in parts} == {np.dtype(np.int64)}
    assert np.concatenate([part.count for part in parts]).tolist() == columns[4].tolist()
    # Wide enough to be multiplied: 9 x 1000 would wrap around in 8 bits.
    assert int((parts[-1].host * 1000).max()) == 9000


def test_coded_names_read_as_an_array_of_names() -> None:
    codes = np.array([1, 0, 1], dtype=np.int8)
    names = CodedNames(codes, ["read_ios", "write_ios"])
    assert (len(names), names.size) == (3, 3)
    assert list(names) == names.tolist() == ["write_ios", "read_ios", "write_ios"]
    assert names[1] == "read_ios"
    assert names[codes == 1].tolist() == ["write_ios"] * 2
    assert np.asarray(names).dtype == np.object_
    assert np.asarray(names).tolist() == names.tolist()
