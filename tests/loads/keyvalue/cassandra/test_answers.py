"""What iolab's Java tools say, as they said it, and what nobody should say."""

from __future__ import annotations

import pytest

from iolab.errors import EngineError
from iolab.loads.keyvalue.cassandra.tools import (
    CountersReply,
    PreflightReply,
    SchemaReply,
    parse_tool_reply,
)
from iolab.loads.keyvalue.workload import ReportedStatistic
from tests.recorded import recorded


def lines(name: str) -> list[bytes]:
    return recorded(f"cassandra/{name}").splitlines()


@pytest.mark.parametrize("version", ["4.0.17", "4.1.10", "5.0.6"])
def test_counters_of_every_version_are_read(version: str) -> None:
    found = [parse_tool_reply(line, CountersReply, "h") for line in lines(f"watch-{version}.jsonl")]
    assert len(found) > 1
    first, last = found[0], found[-1]
    assert 0.5e9 < (last.real_ns - first.real_ns) / (len(found) - 1) < 2.5e9
    assert last.known_counters["client_reads"] > 0
    assert last.known_counters["table_writes"] > 0
    assert last.known_counters["sstables"] >= 1
    assert last.known_counters["live_bytes"] > 0
    assert last.known_counters["heap_used_bytes"] > 1 << 20
    assert last.known_counters["collection_time_ns"] >= 0
    statistics = {one.name: one for one in last.statistics}
    assert statistics["heap_used_bytes"].unit == "B"
    assert statistics["cpu_ns"].unit == "ns"
    assert statistics["client_reads"].unit == ""


def test_what_a_version_does_not_count_is_left_out() -> None:
    line = b'{"real_ns": 5, "counters": {"a": null, "b_bytes": 3}}'
    found = parse_tool_reply(line, CountersReply, "h")
    assert found.known_counters == {"b_bytes": 3}
    assert found.statistics == (ReportedStatistic("b_bytes", 3.0, "B"),)


@pytest.mark.parametrize("name", ["", "A", "a b", "a\\u001b[31m"])
def test_a_counter_has_a_plain_name(name: str) -> None:
    line = b'{"real_ns": 5, "counters": {"%s": 1}}' % name.encode()
    with pytest.raises(EngineError, match="cannot be read"):
        parse_tool_reply(line, CountersReply, "h")


def test_a_schema_is_read() -> None:
    before, after = (
        parse_tool_reply(line, SchemaReply, "h") for line in lines("schema-4.0.17.jsonl")
    )
    assert [before.columns, before.key, before.comment, before.replication] == [None] * 4
    assert after.columns == {"y_id": "text", "field0": "text", "field1": "text"}
    assert after.key == ("y_id",)
    assert after.replication is not None
    assert after.replication["replication_factor"] == "1"
    assert after.comment == "made by iolab"
    assert (after.version, after.nodes, after.tables) == ("4.0.17", 1, 1)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"Exception in thread main",
        b"[]",
        b"[" * 100_000,
        b"{}",
        b'{"java": "17", "taken": null, "storage_port": 70000, "jmx_port": 1}',
        b'{"java": "17", "taken": null, "storage_port": "x", "jmx_port": 1}',
    ],
)
def test_nonsense_is_an_error(line: bytes) -> None:
    with pytest.raises(EngineError, match="said what cannot be read"):
        parse_tool_reply(line, PreflightReply, "h")
