"""Checks of whether every operation asked for was done: each way to measure something else."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.core.metric import VerdictLevel
from iolab.core.run import RunRecord
from iolab.loads.keyvalue.workload import OperationCount
from tests.loads.keyvalue.asking import ask, counted, on_host, told
from tests.loads.keyvalue.records import (
    BENCH,
    READ,
    RMW,
    UPDATE,
    bench_record,
    steadily,
    ycsb_record,
)

VALID, INDICATIVE, INVALID = VerdictLevel


@pytest.fixture(scope="module")
def bench() -> RunRecord:
    return bench_record()


@pytest.fixture(scope="module")
def ycsb() -> RunRecord:
    return ycsb_record()


def test_a_fault_behind_exit_status_0_makes_a_run_invalid(bench: RunRecord) -> None:
    faults = ("none of 26000 keys was found: there was no database, or an empty one", "x")
    said = ask("engine-errors", told(bench, faults=faults))
    assert said.level is INVALID
    assert "none of 26000 keys" in said.message
    assert "1 more" in said.message
    assert said.evidence["faults"] == 2


def test_an_engine_that_died_or_told_nothing_is_no_run(bench: RunRecord) -> None:
    assert ask("engine-errors", on_host(bench, 0, exit_code=1)).level is INVALID
    assert ask("engine-errors", on_host(bench, 0, error="No space left.")).level is INVALID
    silent = ask("engine-errors", on_host(bench, 0, details=None))
    assert (silent.level, "told nothing" in silent.message) == (INDICATIVE, True)


def test_a_run_shorter_than_asked_is_told(bench: RunRecord) -> None:
    said = ask("engine-errors", replace(bench, runtime_s=30.0))
    assert said.level is INDICATIVE
    assert said.evidence["ran_s"] == pytest.approx(24.0)


def test_operations_that_are_not_ok_are_no_throughput(ycsb: RunRecord) -> None:
    said = ask("operations-failed", counted(ycsb, 1, failed=750))
    assert (said.level, said.evidence["failed"]) == (INVALID, 750)
    assert said.evidence["most_in"] == "update"
    assert ask("operations-failed", told(ycsb, counts=())).level is INDICATIVE


def test_reads_of_absent_keys_are_found_wherever_they_are(bench: RunRecord) -> None:
    said = ask("keys-absent", counted(bench, absent=1))
    assert (said.level, said.evidence["absent"]) == (INVALID, 1)
    assert ask("keys-absent", counted(bench, absent=None)).level is INDICATIVE
    asked = bench_record(job=replace(BENCH, workload="readmissing"))
    assert ask("keys-absent", counted(asked, absent=5)).level is None


def test_an_absent_key_counts_more_than_a_host_that_told_nothing() -> None:
    both = bench_record(hosts=2)
    silent = (OperationCount(READ, 1000),)
    assert ask("keys-absent", told(both, 1, counts=silent)).level is INDICATIVE
    assert ask("keys-absent", told(counted(both, absent=3), 1, counts=silent)).level is INVALID


def test_ycsb_counts_absent_keys_as_failures(ycsb: RunRecord) -> None:
    assert ask("keys-absent", ycsb).level is VALID


def test_a_build_with_assertions_is_named(bench: RunRecord) -> None:
    said = ask("debug-build", told(bench, build="assertions enabled"))
    assert said.level is INDICATIVE
    assert "assertions enabled" in said.message
    assert ask("debug-build", told(bench, build="not optimised")).level is INDICATIVE


@pytest.mark.parametrize(
    ("seed", "wanted"), [(7, INVALID), (8, VALID), (3, INVALID), (1, VALID), (0, VALID)]
)
def test_no_thread_may_draw_the_stream_of_the_load(
    bench: RunRecord, seed: int, wanted: VerdictLevel
) -> None:
    # The load's stream is 7; threads have the seed and those after it.
    four = bench_record(job=replace(BENCH, threads=6))
    if seed in (1, 0):
        four = told(four, load_seed=seed + 6)
    assert ask("seed-shared", told(four, seed=seed)).level is wanted
    assert ask("seed-shared", told(bench, load_seed=None)).level is INDICATIVE


def test_hosts_whose_streams_meet_read_the_same_keys() -> None:
    two = bench_record(2)
    meeting = ask("seed-shared", told(two, 1, seed=1000 + BENCH.threads - 1))
    assert meeting.level is INVALID
    assert {meeting.evidence["host"], meeting.evidence["other"]} == {"c1", "c2"}
    assert ask("seed-shared", told(two, 1, seed=1000 + BENCH.threads)).level is VALID


def test_the_writer_beside_the_readers_draws_a_stream_too() -> None:
    job = replace(BENCH, workload="readwhilewriting")
    two = told(bench_record(2, job), 1, seed=1000 + BENCH.threads)
    assert ask("seed-shared", two).level is INVALID


def test_the_engines_total_is_explained_by_time_outside_the_intervals(bench: RunRecord) -> None:
    # db_bench ran 1.5 s longer than its last whole second, and said so.
    longer = counted(bench, completed=13_000 * 24 + 19_000)
    said = ask("totals-disagree", told(longer, reported_s=25.5))
    assert said.level is VALID
    assert said.evidence["uncovered_s"] == pytest.approx(1.5)
    lost = ask("totals-disagree", longer)
    assert lost.level is INDICATIVE
    assert lost.evidence["unexplained"] == pytest.approx(19_000 / (13_000 * 24 + 19_000))
    assert ask("totals-disagree", counted(bench, completed=13_000 * 20)).level is INVALID


def test_the_writer_is_in_the_report_file_and_not_in_the_total() -> None:
    job = replace(BENCH, workload="readwhilewriting", write_bytes_per_s=1040 * 2_000)
    record = bench_record(job=job, writer_per_s=2_000)
    assert ask("totals-disagree", record).level is VALID
    # Had the readers been counted with the writer, as the report file has them:
    assert ask("totals-disagree", counted(record, completed=13_000 * 16)).level is INVALID


def test_a_read_modify_write_is_counted_once() -> None:
    reads, updates = steadily(READ), steadily(UPDATE, per_s=1_000)
    record = ycsb_record([[reads, updates, replace(updates, operation=RMW)]])
    said = ask("totals-disagree", record)
    assert (said.level, said.evidence["interval_operations"]) == (VALID, 2_000 * 24)


def test_a_rate_with_the_start_and_the_end_in_it_is_explained(ycsb: RunRecord) -> None:
    # YCSB's own rate counts what it takes to connect and to close: 2.2 s of nothing each.
    said = ask("totals-disagree", told(ycsb, reported_s=28.4, reported_ops_per_s=3_380.0))
    assert said.level is VALID
    assert said.evidence["engine_ops_per_s"] == pytest.approx(3_380.0)
    assert said.evidence["window_ops_per_s"] == pytest.approx(4_000.0)
