"""What iolab.ycsb.RocksTool says of a database."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.loads.keyvalue.workload import LevelShape, StoreShape
from iolab.loads.keyvalue.ycsb.clients import incomplete_database_faults, parse_rocksdb_contents
from tests.loads.keyvalue.ycsb.fixtures import stdout


def test_a_settled_database() -> None:
    found = parse_rocksdb_contents(stdout("settle"))
    assert found is not None
    assert (found.record_count, found.value_bytes, found.memtable_entries) == (
        20_000,
        82_880_000,
        0,
    )
    assert found.store_shape == StoreShape((LevelShape(1, 2, 84_275_566),), None, 0)
    assert incomplete_database_faults(found, 20_000) == ()


def test_what_speaks_against_a_database() -> None:
    found = parse_rocksdb_contents(stdout("settle"))
    assert found is not None
    levels = (LevelShape(0, 3, 5), LevelShape(1, 2, 9))
    unsettled = replace(found, memtable_entries=7, store_shape=StoreShape(levels, None, 11))
    message = ("20,000 records, and 20,001", "7 entries", "11 bytes", "0 has 3 files")
    for fault, value in zip(incomplete_database_faults(unsettled, 20_001), message, strict=True):
        assert value in fault


@pytest.mark.parametrize("cut", [b"", b"keys 5\n", stdout("settle")[:-6], b"\xff\nend 0\n"])
def test_an_output_that_is_not_whole(cut: bytes) -> None:
    assert parse_rocksdb_contents(cut) is None
    assert ["did not tell" in fault for fault in incomplete_database_faults(None, 5)] == [True]
