"""What the engine of objects is told, and what is read of what it prints."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from iolab.hosts.engine_lines import LineError
from iolab.loads.objects.data_set import ObjectDataSet, host_object_range
from iolab.loads.objects.engine import (
    ObjectsLineReader,
    document_of_load_task,
    parse_read_back_counts,
    parse_task_answer,
    task_failure_sentences,
)
from iolab.loads.objects.workload import (
    S3_ENGINE,
    LogNormalSizes,
    ObjectOperation,
    ObjectsJob,
    SizeShare,
    lognormal_mean_bytes,
)

JOB = ObjectsJob(S3_ENGINE, 1000, get=70, put=30, head=1, object_bytes=4096)


def row(ios: int, size: int = 0) -> dict[str, Any]:
    """A row of operations that took a microsecond each."""
    return {
        "ios": ios,
        "bytes": ios * size,
        "lat_sum_ns": ios * 1000,
        "min_ns": 1000,
        "max_ns": 1000,
        "bins": [[380, ios]] if ios else [],
    }


ROWS = {
    "read": row(70, 4096),
    "write": row(30, 4096),
    "object_get": row(70, 4096),
    "object_put": row(30, 4096),
    "object_head": row(1),
    "object_get_first_byte": row(70),
    "object_connect": row(0),
}


def printed(**changes: Any) -> bytes:
    """What the engine prints of a run of two seconds."""
    start = 1_700_000_000_000_000_000
    head = {"native": 1, "version": "0.1.0", "method": "epoll", "tls": {"version": "TLSv1_3"}}
    lines: list[dict[str, Any]] = [head, {"started_real_ns": start, "late_ns": 0}]
    for seq in range(2):
        end_ns = start + (seq + 1) * 1_000_000_000
        interval = {"seq": seq, "end_real_ns": end_ns, "span_ns": 1_000_000_000, "backlog": seq}
        lines.append({**interval, **ROWS})
    totals = {name: row(2 * table["ios"], 4096) for name, table in ROWS.items()}
    told = {
        "kinds": {
            "object_get": {
                "operations": 140,
                "failed": 3,
                "attempts": 150,
                "attempt_errors": {"SlowDown": 10},
            },
            "object_put": {"operations": 60, "failed": 0, "attempts": 60, "attempt_errors": {}},
        },
        "connections": {"opened_before": 16, "opened": 2, "closed_by_server": 2},
        "endpoints": [{"endpoint": "http://a:9000", "operations": 200, "bytes": 819200}],
        "server_clock": {"ahead_min_ms": -900, "ahead_max_ms": 100},
        "cpu_parts": {"tls_ns": 1000},
        "put_bytes": 245760,
        "examples": ["GET 12: 503 SlowDown"],
    }
    end = {
        **totals,
        "start_real_ns": start,
        "end_real_ns": start + 2_000_000_000,
        "measured_ns": 2_000_000_000,
        "drain_ns": 0,
        "cpu": {"user_s": 0.5, "system_s": 0.5},
        "errors": {"object_get": {"SlowDown": 3}},
        "objects": {**told, **changes},
    }
    return b"".join(json.dumps(line).encode() + b"\n" for line in (*lines, {"end": end}))


def test_a_run_is_read_in_pieces_of_any_size() -> None:
    content = printed()
    for size in (len(content), 7):
        reader = ObjectsLineReader(JOB)
        for place in range(0, len(content), size):
            reader.feed(content[place : place + size])
        reading = reader.finish()
        assert reading.faults == ()
        assert reading.version == "s3-0.1.0"
        assert len(reading.intervals) == 2
        parts = {part.direction: part.ios for part in reading.intervals[0].directions}
        assert parts[ObjectOperation.OBJECT_GET_FIRST_BYTE] == 70
        run = reader.details
        assert run is not None
        assert (run.done_count, run.failed_count, run.attempt_count) == (200, 3, 210)
        assert run.errors == {"SlowDown": 10}
        assert (run.opened, run.cpu_ns, run.tls) == (2, 1_000_000_000, "TLSv1_3")
        assert run.backlog == (0, 1)


def test_a_run_of_nothing_but_failures_is_a_fault() -> None:
    kinds = {
        "object_get": {
            "operations": 0,
            "failed": 9,
            "attempts": 9,
            "attempt_errors": {"AccessDenied": 9},
        }
    }
    reader = ObjectsLineReader(JOB)
    reader.feed(printed(kinds=kinds))
    (fault,) = reader.finish().faults
    assert "all 9 operations failed (9 AccessDenied): GET 12: 503 SlowDown" in fault


@pytest.mark.parametrize("cut", range(0, 3000, 250))
def test_output_that_is_cut_is_a_fault_and_never_raises(cut: int) -> None:
    reader = ObjectsLineReader(JOB)
    reader.feed(printed()[:cut])
    assert reader.finish().faults


MANY = ObjectsJob(S3_ENGINE, 1000, get=1, sizes=(SizeShare(4096), SizeShare(8192)))


@pytest.mark.parametrize("number", [140, 141])
def test_latencies_of_sizes_and_endpoints_are_as_many_as_operations(number: int) -> None:
    rows = {"ios": 140, "bytes": 0, "lat_sum_ns": 1, "bins": [[380, number]]}
    sizes = {"object_get": {"operations": 140, "sizes": [[4096, rows]]}}
    endpoints = [{"endpoint": "http://a:9000", "kinds": {"object_get": rows}}]
    for changes in ({"kinds": sizes}, {"endpoints": endpoints}):
        reader = ObjectsLineReader(MANY)
        reader.feed(printed(**changes))
        faults = " ".join(reader.finish().faults)
        assert ("140 operations, and latencies of 141" in faults) == (number == 141)


def read_back_end(compared: int, **errors: int) -> dict[str, Any]:
    """What a load that reads back tells at its end."""
    table = {"operations": compared, "attempt_errors": errors}
    return {"objects": {"kinds": {"object_get": table}}}


def test_what_is_read_back_is_counted_once() -> None:
    errors = {"NoSuchKey": 3, "wrong-content": 1, "torn-content": 1, "SlowDown": 50}
    count = parse_read_back_counts(read_back_end(90, **errors), 100)
    assert (count.compared, count.missing, count.differing, count.unread) == (90, 3, 2, 5)
    with pytest.raises(LineError, match="101 objects back, where 100"):
        parse_read_back_counts(read_back_end(98, NoSuchKey=3), 100)
    with pytest.raises(LineError):
        parse_read_back_counts(read_back_end(-1), 100)


def test_a_task_answers_or_tells_its_faults() -> None:
    lines = b'{"progress": {"objects": 1}}\n{"layout": {"objects": 5}}\n'
    assert parse_task_answer(lines, "layout") == {"objects": 5}
    assert task_failure_sentences(lines) == ()
    assert task_failure_sentences(b'{"fault": ["NoSuchBucket: there is no bucket"]}\n') == (
        "NoSuchBucket: there is no bucket",
    )


def test_hosts_share_a_data_set_without_gaps() -> None:
    shares = [host_object_range(1001, place, 12) for place in range(12)]
    assert sum(count for _, count in shares) == 1001
    assert all(first + count == following for (first, count), (following, _) in pairwise(shares))


def data_set(**changes: Any) -> ObjectDataSet:
    """A thousand objects of 4 KiB."""
    usual: dict[str, Any] = {
        "configuration": "default",
        "object_count": 1000,
        "prefix_count": 16,
        "object_bytes": 4096,
        "sizes": (),
        "size_spread": None,
        "part_bytes": None,
        "seed": 1,
    }
    return ObjectDataSet(**{**usual, **changes})


def test_a_data_set_has_a_name_of_what_it_is() -> None:
    assert data_set().id == data_set().id
    assert data_set().id != data_set(seed=2).id
    document = data_set().agent_document("iolab-s/")
    assert document["prefix"] == f"iolab-s/{data_set().id}/"
    assert document["sizes"] == [{"bytes": 4096, "share": 1.0}]
    mixed = data_set(sizes=(SizeShare(4096, 3), SizeShare(8192, 1)))
    assert mixed.expected_bytes == 1000 * (3 * 4096 + 8192) / 4
    parts = data_set(object_bytes=64 << 20, part_bytes=8 << 20)
    assert parts.put_request_count == 1000 * (8 + 2)


def test_the_mean_of_a_log_normal_size_is_that_of_its_draws() -> None:
    import numpy as np

    spread = LogNormalSizes(65536, 1.5, 1024, 1 << 24)
    draws = np.exp(np.random.default_rng(1).normal(np.log(65536), 1.5, 1_000_000))
    mean = float(np.clip(draws, 1024, 1 << 24).mean())
    assert lognormal_mean_bytes(spread) == pytest.approx(mean, rel=0.01)


def test_a_rate_of_the_fleet_is_shared_by_its_hosts() -> None:
    job = ObjectsJob(S3_ENGINE, 1000, get=1, object_bytes=4096, rate=1200)
    document = document_of_load_task(job, {}, "iolab-s/run/", 12)
    assert document["rate"] == 100
    assert document["operations"] == [{"kind": "get", "share": 1.0}]
    assert "range_bytes" not in document
