"""Checks of the store: its start state, its shape, its server, and whether memory answered."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.core.host import HostRole
from iolab.core.metric import VerdictLevel
from iolab.core.run import CacheDropProof, DeviceDelta, MonitoredHost, PreRunActivity, RunRecord
from iolab.loads.keyvalue.workload import (
    KeyDistribution,
    KeyOperation,
    LevelShape,
    ReportedStatistic,
    ServerRunDetails,
)
from tests.analysis.records import DEVICE, GIB, disk, facts_of
from tests.loads.keyvalue.asking import ask, counted, on_host, told
from tests.loads.keyvalue.records import (
    BENCH,
    LOADED,
    SHAPE,
    TABLES,
    YCSB,
    bench_record,
    steadily,
    ycsb_record,
)

VALID, INDICATIVE, INVALID = VerdictLevel
READS = 13_000 * 24
"""Keys that the healthy db_bench reads."""


def statistics(**values: float) -> tuple[ReportedStatistic, ...]:
    return tuple(ReportedStatistic(name, value, "") for name, value in values.items())


QUIET = statistics(cpu_ns=1e9, client_reads=0, dropped_messages=0, compactions_pending=0)
BUSY = statistics(cpu_ns=9e9, client_reads=48_000, dropped_messages=0, compactions_pending=0)
SERVER = ServerRunDetails(
    product="Apache Cassandra",
    version="4.0.17",
    address="127.0.0.1:9042",
    host="c1",
    rows=YCSB.records,
    rows_by="count",
    restored_by="reflink",
    statistics_before=QUIET,
    statistics_after=BUSY,
    memory_bytes=64 << 20,
)
GIVEN = replace(SERVER, host="", restored_by="", memory_bytes=None)


@pytest.fixture(scope="module")
def bench() -> RunRecord:
    return bench_record()


def served(server: ServerRunDetails = SERVER) -> RunRecord:
    return ycsb_record(details=server)


def read(record: RunRecord, bytes_per_read: float, reads: int = READS, ios: float = 1) -> RunRecord:
    """The record whose device read so many bytes, in so many I/Os, for each key."""
    delta = DeviceDelta(DEVICE, round(bytes_per_read * reads), 0, round(ios * reads), 0)
    return on_host(record, 0, devices=(delta,))


@pytest.mark.parametrize(
    ("bytes_per_read", "wanted"),
    # A bound of 64 MiB beside 416 MB of data leaves 84 % of the reads, 3435 bytes for each of all.
    [(4_600, VALID), (3_200, VALID), (2_900, INDICATIVE), (1_600, INVALID), (0, INVALID)],
)
def test_devices_must_read_what_bounded_memory_cannot_hold(
    bench: RunRecord, bytes_per_read: float, wanted: VerdictLevel
) -> None:
    said = ask("reads-from-memory", read(bench, bytes_per_read))
    assert said.level is wanted
    kept = (64 << 20) / (LOADED.keys * LOADED.entry_bytes)
    assert said.evidence["least_from_device"] == pytest.approx(1 - kept)
    assert said.evidence["bytes_per_read"] == pytest.approx(bytes_per_read)


def test_reads_of_absent_keys_ask_nothing_of_a_device(bench: RunRecord) -> None:
    said = ask("reads-from-memory", counted(bench, absent=READS // 2))
    assert said.evidence["reads"] == READS // 2


@pytest.mark.parametrize(("ios", "wanted"), [(0.9, VALID), (0.7, INDICATIVE), (0.4, INVALID)])
def test_read_ahead_does_not_hide_what_memory_answered(
    bench: RunRecord, ios: float, wanted: VerdictLevel
) -> None:
    # Three times the bytes that were requested, but fewer I/Os than there were misses.
    assert ask("reads-from-memory", read(bench, 12_000, ios=ios)).level is wanted


def test_a_store_that_fits_into_memory_is_memory_but_says_so(bench: RunRecord) -> None:
    # After some seconds everything is cached: 4 µs a read and 13 k becomes 260 k ops/s.
    free = bench_record(job=replace(BENCH, memory_bytes=None))
    said = ask("reads-from-memory", read(free, 200, ios=0.05))
    assert said.level is INDICATIVE
    assert "95 % of what was read" in said.message
    assert ask("reads-from-memory", read(free, 4_600)).level is VALID


def test_keys_that_are_drawn_unevenly_have_no_such_bound() -> None:
    skewed = ycsb_record(job=replace(YCSB, distribution=KeyDistribution.ZIPFIAN))
    said = ask("reads-from-memory", read(skewed, 1_000, 48_000))
    assert (said.level, said.evidence["least_from_device"]) == (INDICATIVE, 0.0)
    even = ask("reads-from-memory", read(ycsb_record(), 1_000, 48_000))
    assert even.level is INVALID


def test_a_layer_that_answers_below_the_device_is_caught(bench: RunRecord) -> None:
    facts = replace(
        facts_of("c1", device="loop0", devices=("loop0", DEVICE)),
        disks=(disk("loop0", DEVICE), disk(DEVICE)),
    )
    above = DeviceDelta("loop0", READS * 4_600, 0, READS, 0)
    both = on_host(bench, 0, devices=(above, DeviceDelta(DEVICE, READS * 4_600, 0, 1, 0)))
    assert ask("reads-from-memory", both, {"c1": facts}).level is VALID
    cached = on_host(bench, 0, devices=(above, DeviceDelta(DEVICE, READS * 400, 0, 1, 0)))
    said = ask("reads-from-memory", cached, {"c1": facts})
    assert (said.level, "layer between" in said.message) == (INVALID, True)


def test_where_devices_are_not_counted_nothing_is_claimed(bench: RunRecord) -> None:
    assert ask("reads-from-memory", on_host(bench, 0, devices=())).level is INDICATIVE
    assert ask("reads-from-memory", served(GIVEN)).level is INDICATIVE


def test_a_server_is_held_against_its_own_hosts_device() -> None:
    assert ask("reads-from-memory", served()).level is VALID
    said = ask("reads-from-memory", read(served(), 100, 48_000))
    assert (said.level, said.evidence["memory_bytes"]) == (INVALID, 64 << 20)
    watched = MonitoredHost("db", HostRole.STORAGE, None, (DeviceDelta(DEVICE, 0, 0, 0, 0),), 0, 0)
    beside = replace(served(replace(SERVER, host="db")), monitored_hosts=(watched,))
    facts = {"c1": facts_of("c1"), "db": facts_of("db")}
    assert ask("reads-from-memory", beside, facts).level is INVALID
    blind = replace(beside, monitored_hosts=(replace(watched, error="gone"),))
    assert ask("reads-from-memory", blind, facts).level is INDICATIVE


def test_clients_of_one_kernel_share_its_device_and_memory() -> None:
    two = bench_record(2)
    facts = {name: replace(facts_of(name), kernel=facts_of("one").kernel) for name in ("c1", "c2")}
    delta = (DeviceDelta(DEVICE, 2 * READS * 4_600, 0, 2 * READS, 0),)
    both = on_host(on_host(two, 0, devices=delta), 1, devices=delta)
    said = ask("reads-from-memory", both, facts)
    assert (said.level, said.evidence["reads"]) == (VALID, 2 * READS)
    assert said.evidence["memory_bytes"] == 2 * (64 << 20)
    assert said.evidence["data_bytes"] == 2 * LOADED.keys * LOADED.entry_bytes
    assert ask("reads-from-memory", two, facts).level is INDICATIVE


@pytest.mark.parametrize(("by", "wanted"), [("reflink", VALID), ("copy", VALID), ("", INDICATIVE)])
def test_every_run_begins_from_the_same_database(
    bench: RunRecord, by: str, wanted: VerdictLevel
) -> None:
    assert ask("store-start-state", told(bench, copied_by=by)).level is wanted
    assert ask("store-start-state", served(replace(SERVER, restored_by=by))).level is wanted


def test_the_page_cache_must_be_empty_and_proved_so(bench: RunRecord) -> None:
    def proof(after: int | None, *, asked: bool = True) -> RunRecord:
        return on_host(bench, 0, cache_drop=CacheDropProof(asked, None, after, ()))

    size = LOADED.keys * LOADED.entry_bytes
    assert ask("warm-caches", proof(size // 200)).level is VALID
    said = ask("warm-caches", proof(size // 50))
    assert (said.level, said.evidence["resident_bytes"]) == (INDICATIVE, size // 50)
    assert ask("warm-caches", proof(None)).level is INDICATIVE
    assert ask("warm-caches", proof(0, asked=False)).level is INDICATIVE
    assert ask("warm-caches", on_host(bench, 0, cache_drop=None)).level is INDICATIVE
    assert ask("warm-caches", served(GIVEN)).level is INDICATIVE
    assert ask("warm-caches", served()).level is VALID


def test_another_block_size_than_asked_for_is_another_workload(bench: RunRecord) -> None:
    # --block_size=16384 on a database of 4 KiB blocks changes nothing.
    job = replace(BENCH, loaded=replace(LOADED, block_bytes=16_384))
    said = ask("store-shape-changed", bench_record(job=job))
    assert said.level is INVALID
    assert "4288 bytes on average" in said.message


def test_keys_that_lack_are_seen_in_the_tables(bench: RunRecord) -> None:
    fewer = replace(SHAPE, tables=replace(TABLES, entries=252_000))
    assert ask("store-shape-changed", told(bench, start=fewer)).level is INVALID
    assert ask("store-shape-changed", told(bench, start=None)).level is INDICATIVE
    said = ask("store-shape-changed", bench)
    assert said.evidence["block_bytes_mean"] == pytest.approx(4288)


def test_hosts_with_trees_of_other_shapes_are_told() -> None:
    other = replace(SHAPE, levels=(LevelShape(1, 3, 1), LevelShape(2, 4, 1)))
    said = ask("store-shape-changed", told(bench_record(2), 1, start=other))
    assert (said.level, said.evidence["shapes"]) == (INDICATIVE, 2)


@pytest.mark.parametrize(
    ("rows", "by", "wanted"),
    [
        (100_000, "count", VALID),
        (99_999, "count", INVALID),
        (101_000, "count", VALID),
        (96_000, "estimate", VALID),
        (94_000, "estimate", INDICATIVE),
        (None, "", INDICATIVE),
    ],
)
def test_a_servers_rows_are_those_that_were_loaded(
    rows: int | None, by: str, wanted: VerdictLevel
) -> None:
    assert (
        ask("store-shape-changed", served(replace(SERVER, rows=rows, rows_by=by))).level is wanted
    )


def test_compaction_debt_is_told(bench: RunRecord) -> None:
    for level in (LevelShape(0, 2, 1 << 20), LevelShape(1, 9, 1 << 30, 1.2)):
        owed = replace(SHAPE, levels=(level,))
        assert ask("compaction-debt", told(bench, start=owed)).level is INDICATIVE
    pending = ask("compaction-debt", told(bench, start=replace(SHAPE, pending_bytes=GIB)))
    assert "1 GiB" in pending.message
    assert ask("compaction-debt", told(bench, start=None)).level is INDICATIVE
    busy = statistics(compactions_pending=3)
    assert ask("compaction-debt", served(replace(SERVER, statistics_before=busy))).level is (
        INDICATIVE
    )
    assert ask("compaction-debt", served()).level is VALID


def test_a_server_that_died_or_was_started_anew_is_no_server() -> None:
    died = ask("server-lost", served(replace(SERVER, error="It was killed by signal 9.")))
    assert (died.level, "signal 9" in died.message) == (INVALID, True)
    anew = ask("server-lost", served(replace(SERVER, statistics_after=statistics(cpu_ns=1e8))))
    assert (anew.level, anew.evidence["fell"]) == (INVALID, "cpu_ns")
    mute = ask("server-lost", served(replace(SERVER, statistics_after=())))
    assert mute.level is INDICATIVE
    assert ask("server-lost", served()).level is VALID


def test_messages_that_a_server_dropped_are_work_not_done() -> None:
    after = statistics(cpu_ns=9e9, client_reads=1, dropped_messages=12)
    said = ask("server-lost", served(replace(SERVER, statistics_after=after)))
    assert (said.level, said.evidence["dropped"]) == (INDICATIVE, 12)
    before = statistics(cpu_ns=1e9, client_reads=0, dropped_messages=12)
    earlier = replace(SERVER, statistics_before=before, statistics_after=after)
    assert ask("server-lost", served(earlier)).level is VALID, "dropped before the run"


def test_others_on_the_devices_are_told_of_the_host_that_holds_the_store(
    bench: RunRecord,
) -> None:
    loud = PreRunActivity(watched_s=1.0, bytes_per_s=float(GIB), ios_per_s=9_000.0)
    assert ask("device-busy", on_host(bench, 0, pre_run_activity=loud)).level is INDICATIVE
    assert ask("device-busy", on_host(served(), 0, pre_run_activity=loud)).level is INDICATIVE
    assert ask("device-busy", served(GIVEN)).level is INDICATIVE


def test_what_devices_moved_is_of_the_whole_run_and_not_of_the_window(bench: RunRecord) -> None:
    loud = PreRunActivity(watched_s=1.0, bytes_per_s=0.0, ios_per_s=9_000.0)
    said = ask("device-busy", on_host(bench, 0, pre_run_activity=loud))
    (device,) = bench.hosts[0].devices
    # 24 s of load, of which the first are warm-up.
    assert said.evidence["share_of_run"] == pytest.approx(9_000 / (device.read_ios / 24), rel=0.01)


def test_a_store_in_memory_is_no_storage(bench: RunRecord) -> None:
    facts = {"c1": facts_of("c1", in_memory=True, fs_type="tmpfs")}
    assert ask("target-in-memory", bench, facts).level is INVALID
    assert ask("target-in-memory", served(GIVEN)).level is INDICATIVE


def test_a_server_that_counts_other_requests_is_not_said_to_count_none() -> None:
    scans = ycsb_record([[steadily(KeyOperation.SCAN)]], details=SERVER)
    answer = ask("operations-counted", scans)
    assert answer.level is None
    assert "the workload has neither" in answer.message
    reads = ask(
        "operations-counted",
        ycsb_record(details=replace(SERVER, statistics_before=(), statistics_after=())),
    )
    assert "gives no counts" in reads.message
