"""Runs on key-value stores are judged like all others, by metrics and checks of their own."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.core.metric import VerdictLevel
from iolab.core.metric_spec import metric_spec
from iolab.core.run import RunRecord, RunStatus
from iolab.core.samples import empty_bin_table, empty_interval_table
from iolab.loads.keyvalue.metrics import WHOLE_OPERATIONS_RATE_KEY
from iolab.loads.keyvalue.workload import (
    READ_WHILE_WRITING,
    KeyOperation,
    KeyValueHostDetails,
    ReportedStatistic,
    ServerRunDetails,
    key_value_details_of_host,
)
from tests.analysis.drives import written_on
from tests.analysis.records import facts_of
from tests.judging import KEY_VALUE_CHECKS, judge, verdict_of
from tests.loads.keyvalue.records import BENCH, YCSB, bench_record, key_view, ycsb_record

WRITER = replace(BENCH, workload=READ_WHILE_WRITING, write_bytes_per_s=1040 * 2_000)


@pytest.mark.parametrize(
    "record",
    [
        bench_record(),
        bench_record(2),
        bench_record(job=WRITER, writer_per_s=2_000),
        ycsb_record(),
        ycsb_record(apart=True),
    ],
    ids=["db_bench", "two hosts", "a writer beside", "ycsb", "intervals by operation"],
)
def test_a_healthy_run_meets_no_objection(record: RunRecord) -> None:
    verdict = verdict_of(key_view(record))
    assert [check.message for check in verdict.objections] == []
    assert [check.code for check in verdict.checks] == [check.code for check in KEY_VALUE_CHECKS]


def test_metrics_are_those_of_the_operations() -> None:
    result = judge(bench_record(), {})
    assert list(result.metrics)[:2] == [WHOLE_OPERATIONS_RATE_KEY, "read_ops_per_s"]
    assert not any("update" in key for key in result.metrics)
    for found in (result.metrics, result.hosts[0].metrics):
        assert all(metric_spec(key).unit == metric.unit for key, metric in found.items())


def with_statistics(record: RunRecord, **values: int) -> RunRecord:
    """The record with counters of RocksDB, by their names without its own and with `_`."""
    told = tuple(
        ReportedStatistic(f"rocksdb.{name.replace('_', '.')}", float(value), "B")
        for name, value in values.items()
    )
    hosts = []
    for host in record.hosts:
        assert isinstance(host.details, KeyValueHostDetails)
        hosts.append(replace(host, details=replace(host.details, statistics=told)))
    return replace(record, hosts=tuple(hosts))


def test_the_engines_own_writes_are_a_step_of_their_own() -> None:
    counters = {
        "bytes_written": 400 << 20,
        "wal_bytes": 420 << 20,
        "flush_write_bytes": 380 << 20,
        "compact_write_bytes": 1200 << 20,
    }
    delta, readings = written_on(2200 << 20)
    record = with_statistics(bench_record(), **counters)
    record = replace(
        record, hosts=(replace(record.hosts[0], devices=(delta,), drives=(readings,)),)
    )
    result = judge(record, {"c1": facts_of("c1")})
    metrics = {key: metric.value for key, metric in result.metrics.items()}
    assert metrics["engine_write_amplification"] == 5
    assert metrics["block_write_amplification"] == 1.1
    assert metrics["write_amplification"] == pytest.approx(5.5 * 2.5, rel=1e-3)
    (wear,) = result.drives
    assert (wear.application_bytes, wear.engine_bytes) == (400 << 20, 2000 << 20)


@pytest.mark.parametrize(
    ("host", "before", "is_told"),
    [
        ("c1", 100, True),
        ("elsewhere", 100, False),
        ("c1", 1 << 60, False),  # it was started anew in the run, and counts from 0
    ],
)
def test_flushes_and_compaction_of_a_cassandra_node_are_the_engines_step(
    host: str, before: int, *, is_told: bool
) -> None:
    record = ycsb_record()
    updates = next(
        count.completed
        for count in key_value_details_of_host(record.hosts[0]).counts  # type: ignore[union-attr]
        if count.operation is KeyOperation.UPDATE
    )
    written = updates * YCSB.field_bytes

    def told(flushed: int, compacted: int) -> tuple[ReportedStatistic, ...]:
        return (
            ReportedStatistic("flushed_bytes", float(flushed), "B"),
            ReportedStatistic("compaction_written_bytes", float(compacted), "B"),
        )

    server = ServerRunDetails(
        "Apache Cassandra",
        "4.0.17",
        "127.0.0.1:9042",
        host=host,
        statistics_before=told(before, 200),
        statistics_after=told(100 + written, 200 + 2 * written),
    )
    metrics = judge(replace(record, details=server), {}).metrics
    found = metrics.get("engine_write_amplification")
    assert (found and found.value) == (3 if is_told else None)


def test_without_one_of_the_engines_counters_its_step_is_not_told() -> None:
    record = with_statistics(bench_record(), bytes_written=1 << 20, flush_write_bytes=1 << 20)
    assert not any("amplification" in key for key in judge(record, {}).metrics)


def test_a_run_that_failed_has_its_metrics_without_values() -> None:
    record = bench_record(status=RunStatus.FAILED, failure="The server died.")
    hosts = tuple(replace(host, details=None) for host in record.hosts)
    empty = replace(record, hosts=hosts, intervals=empty_interval_table(), bins=empty_bin_table())
    result = judge(empty, {})
    assert result.verdict.level is VerdictLevel.INVALID
    assert "read_lat_ns_p99" in result.metrics
    assert {metric.value for metric in result.metrics.values()} == {None}
    assert result.window_s == 0.0
