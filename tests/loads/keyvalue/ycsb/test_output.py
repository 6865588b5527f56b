"""What YCSB prints, whatever its exit status says: each trap is a real output."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from iolab.core.histogram import MIDDLE_NS, Histogram, dense_counts
from iolab.hosts.intervals import Interval
from iolab.loads.keyvalue.metrics import WHOLE_OPERATION_WEIGHTS
from iolab.loads.keyvalue.workload import KeyOperation, OperationCount, YcsbJob
from iolab.loads.keyvalue.ycsb.hdr_log import HdrInterval, HdrLog
from iolab.loads.keyvalue.ycsb.output import (
    SHORT_GROUP_NS,
    fill_faults,
    intervals_from_hdr_logs,
    parse_ycsb_output,
    ycsb_run_faults,
)
from tests.loads.keyvalue.ycsb.fixtures import (
    ON_CASSANDRA,
    READ,
    RMW,
    UPDATE,
    A,
    C,
    D,
    F,
    logs,
    output,
    stderr,
    stdout,
)

S = 1_000_000_000


def whole(counts: Sequence[OperationCount]) -> int:
    """Whole operations: a read-modify-write is counted as a read and as an update as well."""
    return sum(
        WHOLE_OPERATION_WEIGHTS.get(count.operation, 0) * count.completed for count in counts
    )


def faults(name: str, job: YcsbJob, seconds: float) -> tuple[str, ...]:
    return ycsb_run_faults(output(name), job, logs(name, job), seconds)


def total(intervals: tuple[Interval, ...], operation: KeyOperation) -> int:
    return sum(
        part.ios for one in intervals for part in one.directions if part.direction == operation
    )


@pytest.mark.parametrize(
    ("name", "job", "seconds"),
    [("a", A, 3), ("f-rate", F, 4), ("d-scan", D, 3), ("cql-a", ON_CASSANDRA, 5)],
)
def test_runs_that_did_what_they_were_asked_for(name: str, job: YcsbJob, seconds: int) -> None:
    assert faults(name, job, seconds) == ()
    assert output(name).version == "0.17.0"
    for operation in (one.operation for one in output(name).operation_counts):
        done = next(
            one.completed for one in output(name).operation_counts if one.operation is operation
        )
        assert total(intervals_from_hdr_logs(logs(name, job)), operation) == done


def test_a_read_modify_write_is_one_operation() -> None:
    counts = output("f-rate").operation_counts
    done = {one.operation: one.completed for one in counts}
    assert (done[READ], done[UPDATE], done[RMW]) == (6061, 2960, 2960)
    assert whole(counts) == 6061
    assert whole(output("a").operation_counts) == 20_786 + 20_883


def test_the_total_that_ycsb_reports_is_kept_apart() -> None:
    told = output("cql-a")
    assert told.reported_s == 5.058
    assert told.reported_ops_per_s == pytest.approx(1103.796)
    # Connecting and closing are in it: the seconds in which the store worked have more.
    steady = intervals_from_hdr_logs(logs("cql-a", ON_CASSANDRA))[2:4]
    assert sum(one.ios for one in steady) * S / sum(one.span_ns for one in steady) > 2000


def test_keys_that_are_not_there_are_a_fault() -> None:
    (fault,) = faults("not-found", C, 2)
    assert fault.startswith("6,397 read operations found no record")
    read = output("not-found").operation_counts[0]
    assert (read.completed, read.failed, read.absent) == (45_146, 6397, 6397)


def test_a_missing_database_is_a_fault_although_ycsb_ends_with_0() -> None:
    first, second, third = faults("no-database", C, 2)
    assert first.startswith("RocksDB cannot open /scratch/none")
    assert "0.209 s, and 2 s" in second
    assert third.startswith("YCSB did no read")


def test_a_server_that_is_down_at_the_start() -> None:
    first, second = faults("server-down", C, 2)
    assert first.startswith("Cassandra cannot be used: NoHostAvailableException")
    assert second.startswith("YCSB did no read")


def test_a_server_that_dies_in_the_middle() -> None:
    told = faults("cql-server-killed", ON_CASSANDRA, 5)
    assert told[0].startswith("read failed: TransportException: [/127.0.0.1]")
    assert "24,281 read operations returned SERVICE_UNAVAILABLE" in told
    assert "5 update operations returned ERROR" in told
    # YCSB counts what failed as throughput, four times what the store did before.
    assert output("cql-server-killed").reported_ops_per_s == pytest.approx(10046.75, abs=0.01)
    assert whole(output("cql-server-killed").operation_counts) == 1146 + 1221


def test_a_table_of_other_columns() -> None:
    told = faults("cql-no-table", replace(C, fields=6), 2)
    assert "InvalidQueryException: Undefined column name field4" in told[0]


def test_a_client_that_was_killed_printed_no_result() -> None:
    assert faults("killed", A, 6) == ("YCSB printed no result",)
    assert len(intervals_from_hdr_logs(logs("killed", A))) == 3


def test_java_without_what_the_old_hdrhistogram_needs() -> None:
    told = faults("javax", C, 2)
    assert "NoClassDefFoundError: javax/xml/bind/DatatypeConverter" in told[0]
    assert "YCSB did no read, which the mix asks for" in told
    assert "the latency log of READ: it has no interval" in told


def test_sections_that_are_no_operation_are_passed_over() -> None:
    assert faults("jvm-sections", C, 2) == ()
    assert [one.operation for one in output("jvm-sections").operation_counts] == [READ]
    newer = stdout("a") + b"[BATCH-READ], Operations, 5\n[BATCH-READ], p50(us), 12\n[X] y\n\xff\n"
    assert ycsb_run_faults(parse_ycsb_output(newer, stderr("a")), A, logs("a", A), 3) == ()


def test_an_unknown_section_whose_operations_failed_is_a_fault() -> None:
    failed = stdout("a") + b"[BATCH-READ-FAILED], Operations, 5\n[PURGE], Return=ERROR, 2\n"
    assert ycsb_run_faults(parse_ycsb_output(failed, b""), A, logs("a", A), 3) == (
        "5 batch-read operations failed",
        "2 purge operations returned ERROR",
    )


def test_a_log_that_is_missing_or_shorter_than_the_counts() -> None:
    reads, updates = logs("a", A)
    (fault,) = ycsb_run_faults(output("a"), A, [updates], 3)
    assert fault.endswith("no latency log of read")
    cut = replace(reads, intervals=reads.intervals[:-2])
    lacking = sum(one.total for one in reads.intervals[-2:])
    (fault,) = ycsb_run_faults(output("a"), A, [cut, updates], 3)
    assert f"read holds {20_786 - lacking} operations" in fault


def test_a_run_that_ended_too_early() -> None:
    (fault,) = faults("a", A, 4)
    assert "3.14 s, and 4 s" in fault


def test_operations_that_returned_nothing_are_not_ok() -> None:
    silent = stdout("a").replace(b"[READ], Return=OK, 20786", b"[READ], Return=OK, 20785")
    (fault,) = ycsb_run_faults(parse_ycsb_output(silent, b""), A, logs("a", A), 3)
    assert fault.endswith("20786 read operations, and 20785 returned OK")


def test_a_load_is_counted() -> None:
    assert fill_faults(output("load"), 20_000) == ()
    (fault,) = fill_faults(output("load"), 20_001)
    assert fault.startswith("YCSB inserted 20,000 records, and 20,001")
    error = "Error inserting, not retrying any more. x"
    told = fill_faults(parse_ycsb_output(b"", f"{error}\n".encode()), 5)
    assert told == (error, "YCSB printed no result")


def test_a_disk_that_is_full_while_loading() -> None:
    full, _, failed, inserted = fill_faults(output("disk-full"), 20_000)
    assert full.endswith("/scratch/db/000004.log: No space left on device")
    assert failed == "4 insert operations returned ERROR"
    assert inserted.startswith("YCSB inserted 8,998 records, and 20,000")


@given(st.binary(max_size=400), st.binary(max_size=400))
def test_nothing_that_is_printed_can_raise(first: bytes, second: bytes) -> None:
    told = ycsb_run_faults(parse_ycsb_output(first, second), A, [], 3)
    assert told


def test_counts_that_are_none() -> None:
    told = parse_ycsb_output(
        b"[READ], Operations, -5\n[READ], Return=OK, 1.5\n[OVERALL], RunTime(ms), NaN\n", b""
    )
    assert told.faults == ("YCSB says Operations -5 of READ", "YCSB says Return=OK 1.5 of READ")
    assert told.reported_s is None


def test_intervals_are_of_all_operations_and_without_gaps() -> None:
    made = intervals_from_hdr_logs(logs("f-rate", F))
    assert [one.seq for one in made] == [0, 1, 2]
    for before, one in itertools.pairwise(made):
        assert one.end_real_ns - one.span_ns == before.end_real_ns
    for one in made:
        assert [int(part.direction) for part in one.directions] == [33, 35, 38, 65, 67, 70]
        assert one.span_ns >= SHORT_GROUP_NS
        assert all(part.ios == int(part.counts.sum()) for part in one.directions)


def test_bins_hold_the_latencies_of_the_log() -> None:
    made = intervals_from_hdr_logs(logs("a", A))
    dense = sum(
        (
            dense_counts(part.bins, part.counts)
            for one in made
            for part in one.directions
            if part.direction == UPDATE
        ),
        start=np.zeros(MIDDLE_NS.size, dtype=np.int64),
    )
    ours = Histogram(dense)
    assert ours.total == 20_883
    section = stdout("a").decode()
    for percent, name in ((50, "50th"), (99, "99th"), (99.9, "99.9")):
        theirs = int(section.split(f"[UPDATE], {name}PercentileLatency(us), ")[1].split("\n")[0])
        assert ours.percentile_ns(percent) == pytest.approx(theirs * 1000, rel=0.02)
    mean_us = float(section.split("[UPDATE], AverageLatency(us), ")[1].split("\n")[0])
    sums = sum(
        part.lat_sum_ns for one in made for part in one.directions if part.direction == UPDATE
    )
    assert sums / ours.total / 1000 == pytest.approx(mean_us)


def made_log(operation: KeyOperation, spans: list[tuple[int, int, int]]) -> HdrLog:
    """A log of intervals (start in ms, length in ms, operations)."""

    def interval(start: int, length: int, count: int) -> HdrInterval:
        values = np.full(min(count, 1), 5000, dtype=np.int64)
        counts = np.full(min(count, 1), count, dtype=np.int64)
        return HdrInterval(start * 1_000_000, length * 1_000_000, values, values, counts)

    return HdrLog(operation.name, operation, tuple(interval(*span) for span in spans), ())


def test_an_operation_that_begins_later_is_of_the_same_seconds() -> None:
    reads = made_log(READ, [(0, 1000, 5), (1000, 1000, 6), (2000, 1000, 7), (3000, 10, 1)])
    inserts = made_log(KeyOperation.INSERT, [(1600, 401, 2), (2001, 1000, 3), (3001, 10, 1)])
    made = intervals_from_hdr_logs([inserts, reads])
    assert [[part.ios for part in one.directions] for one in made] == [[5, 0], [6, 2], [8, 4]]
    assert [one.end_real_ns // 1_000_000 for one in made] == [1000, 2001, 3011]


def test_a_log_that_lacks_its_end_is_of_the_same_seconds() -> None:
    reads = made_log(READ, [(0, 1000, 5), (1000, 1000, 6), (2000, 1000, 7)])
    updates = made_log(UPDATE, [(0, 1000, 1), (1000, 1001, 2)])
    assert [
        [part.ios for part in one.directions] for one in intervals_from_hdr_logs([reads, updates])
    ] == [
        [5, 1],
        [6, 2],
        [7, 0],
    ]


def test_crumbs_are_joined_to_their_neighbours() -> None:
    reads = made_log(
        READ, [(0, 60, 1), (60, 1000, 5), (1060, 1000, 6), (2060, 20, 2), (2080, 3, 0)]
    )
    made = intervals_from_hdr_logs([reads])
    assert [(one.ios, one.span_ns // 1_000_000) for one in made] == [(6, 1060), (8, 1023)]
    assert intervals_from_hdr_logs([]) == ()
    assert intervals_from_hdr_logs([replace(reads, operation=None)]) == ()
