"""Reading the native engine: lines by the format, cut anywhere, and everything that is none."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from msgspec.structs import replace

from iolab.core.workload import Direction, ServiceTimeDirection
from iolab.hosts.engine import ParsedEngineOutput
from iolab.hosts.intervals import Interval
from iolab.loads.fileio.engines.native import NativeEngine
from iolab.loads.fileio.engines.native_reader import NativeLineReader
from tests.loads.fileio.test_engines_native import FILES, JOB

START = 1_700_000_000_000_000_000
SECOND = 1_000_000_000
HEAD = {
    "native": 1,
    "version": "0.1.0",
    "method": "io_uring",
    "direct": True,
    "clock": "tsc",
    "threads": 2,
    "cpus": 2,
    "probes": {"read": {"ios": 3, "bytes": 12288}},
    "notes": ["the ring was given fewer entries"],
}


def way(ios: int, lat_ns: int = 100, *, service_ns: int | None = None) -> dict[str, Any]:
    told: dict[str, Any] = {
        "ios": ios,
        "bytes": ios * 4096,
        "lat_sum_ns": ios * lat_ns,
        "min_ns": lat_ns if ios else None,
        "max_ns": lat_ns if ios else None,
        "bins": [[min(lat_ns, 1000), ios]] if ios else [],
    }
    if service_ns is not None:
        told["service"] = way(ios, service_ns)
    return told


def interval(seq: int, **ways: Any) -> dict[str, Any]:
    return {"seq": seq, "end_real_ns": START + (seq + 1) * SECOND, "span_ns": SECOND, **ways}


def end(**more: Any) -> dict[str, Any]:
    return {
        "end": {
            "start_real_ns": START,
            "end_real_ns": START + 2 * SECOND,
            "errors": {},
            "retries": {},
            "cpu": {"user_s": 0.5, "system_s": 1.5},
            "measured_ns": 2 * SECOND,
            "drain_ns": 0,
            "drained_ios": 0,
            "lateness": None,
            "unreached": False,
            "verify": None,
            "depth": {"asked": 16, "used": 12},
            "context_switches": {"voluntary": 4, "involuntary": 1},
            "steal_ticks": 0,
            **more,
        }
    }


def lines(*said: object) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in said)


def told(output: bytes, *, piece: int = 1 << 20) -> tuple[list[Interval], ParsedEngineOutput]:
    reader = NativeLineReader((Direction.READ,), 2)
    live = []
    for at in range(0, len(output), piece):
        live += reader.feed(output[at : at + piece])
    return live, reader.finish()


USUAL = lines(
    HEAD,
    {"started_real_ns": START, "late_ns": 12},
    interval(0, read=way(10)),
    interval(1, read=way(20)),
    end(read=way(30)),
)


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_a_run_however_it_is_cut(piece: int) -> None:
    live, reading = told(USUAL, piece=piece)
    assert [one.ios for one in live] == [10, 20]
    assert [one.iops for one in reading.intervals] == [10.0, 20.0]
    assert (reading.start_real_ns, reading.end_real_ns) == (START, START + 2 * SECOND)
    assert (reading.version, reading.faults) == ("native-0.1.0 (io_uring)", ())


def test_the_last_line_has_the_totals() -> None:
    totals = told(USUAL)[1].totals
    assert totals is not None
    assert totals.read is not None
    assert totals.generator is not None
    assert (totals.read.ios, totals.read.iops, totals.read.lat_mean_ns) == (30, 15.0, 100.0)
    assert (totals.read.lat_min_ns, totals.read.lat_max_ns) == (100, 100)
    # Half a second and one and a half in two seconds, by two jobs.
    assert (totals.user_cpu_percent, totals.system_cpu_percent) == (12.5, 37.5)
    assert (totals.generator.depth_asked, totals.generator.depth_used) == (16, 12)
    assert (totals.generator.probe_reads, totals.generator.probe_read_bytes) == (3, 12288)
    assert (totals.error, totals.write) == (0, None)
    assert (totals.generator.method, totals.generator.threads) == ("io_uring", 2)
    assert ["fewer entries" in note for note in totals.generator.notes] == [True]
    assert (totals.generator.lateness, totals.generator.verify) == (None, None)


def test_what_was_never_begun_or_hung_is_told() -> None:
    left = {"unsubmitted": {"count": 7, "oldest_ns": 5000}, "hung": 2}
    generators = [
        totals.generator
        for totals in (told(lines(HEAD, end(read=way(0), **more)))[1].totals for more in (left, {}))
        if totals is not None and totals.generator is not None
    ]
    found = [(one.unsubmitted, one.oldest_unsubmitted_ns, one.hung_ios) for one in generators]
    assert found == [(7, 5000, 2), (0, 0, 0)]


def test_an_open_loop_has_both_times() -> None:
    late = {"count": 30, "p50_ns": 50, "p99_ns": 900, "max_ns": 2000, "bins": []}
    output = lines(
        HEAD,
        interval(0, read=way(30, 5000, service_ns=100)),
        end(read=way(30, 5000), lateness=late, unreached=True),
    )
    live, reading = told(output)
    (only,) = reading.intervals
    assert [part.direction for part in only.directions] == [
        Direction.READ,
        ServiceTimeDirection.READ,
    ]
    assert [part.lat_sum_ns for part in only.directions] == [150_000.0, 3000.0]
    assert (live[0].ios, live[0].bytes, live[0].lat_ns_mean) == (30, 30 * 4096, 5000.0)
    assert reading.totals is not None
    assert reading.totals.generator is not None
    assert reading.totals.generator.lateness is not None
    assert reading.totals.generator.lateness.p99_ns == 900
    assert reading.totals.generator.unreached


def test_errors_are_counted_by_direction_and_number() -> None:
    errors = {"read": {"EIO": 3, "short": 2}, "sync": {"ENOSPC": 5}}
    totals = told(lines(HEAD, interval(0, read=way(1)), end(read=way(1), errors=errors)))[1].totals
    assert totals is not None
    assert totals.generator is not None
    assert totals.read is not None
    assert totals.generator.errors == (("sync ENOSPC", 5), ("read EIO", 3))
    assert (totals.generator.failed_ios, totals.error, totals.read.short_ios) == (8, 28, 2)


def test_a_thread_that_broke_off_is_an_error() -> None:
    output = lines(HEAD, interval(0, read=way(1)), end(read=way(1), broken={"ENOMEM": 1}))
    totals = told(output)[1].totals
    assert totals is not None
    assert totals.generator is not None
    assert (totals.generator.errors, totals.error) == ((("thread ENOMEM", 1),), 12)


def test_wrong_blocks_are_told() -> None:
    verify = {"checked": 9, "torn": 1, "stale": 2, "misplaced": 0, "corrupt": 3, "first": ["a."]}
    totals = told(lines(HEAD, end(read=way(1), verify=verify)))[1].totals
    assert totals is not None
    assert totals.generator is not None
    assert totals.generator.verify is not None
    assert (
        totals.generator.verify.mismatched_blocks,
        totals.generator.verify.first_mismatch_texts,
    ) == (
        6,
        ("a.",),
    )


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (b"", "it ended without its last line"),
        (lines(HEAD, interval(0, read=way(1))), "it ended without its last line"),
        (lines({"fault": ["depth is 0; give 1.", "x."]}), "depth is 0; give 1"),
        (b"Killed\n", "it printed a line that is no JSON: Killed"),
        (b"[1]\n", "it printed a line that is no object"),
        (lines({"seq": 0, "read": way(1)}), "it told no end_real_ns"),
        (lines(interval(0)), "it told nothing of 'read'"),
        (lines(interval(0, read=None)), "it told nothing of 'read'"),
        (lines(interval(0, read={**way(2), "ios": 3})), "it counts 3 I/Os of 'read' and bins 2"),
        (lines(interval(0, read={**way(1), "bins": [[9999, 1]]})), "it told bins that are none"),
        (lines(interval(0, read={**way(1), "bins": ["x"]})), "it told bins that are none"),
        (lines(interval(0, read={**way(1), "ios": -1})), "it told no ios"),
        (lines(interval(0, read={**way(1), "ios": 1.0})), "it told no ios"),
        (lines(interval(0, read={**way(1), "bytes": 10**30})), "it told no bytes"),
        (lines(interval(0, read={**way(1), "lat_sum_ns": float("nan")})), "it told no lat_sum_ns"),
        (lines(interval(0, read={**way(1), "bins": [[1.5, 1]]})), "it told bins that are none"),
        (lines(interval(0, read={**way(1), "bins": [[1, 10**30]]})), "it told bins that are none"),
        (lines(interval(0, read={**way(1), "bins": [[-1, 1]]})), "it told bins that are none"),
        (lines(interval(0, read={**way(1), "bins": [[1, 1, 2]]})), "it told bins that are none"),
        (lines(interval(0, read={**way(1), "bins": [[1], [2, 3]]})), "it told bins that are none"),
        (lines({**interval(0, read=way(1)), "end_real_ns": 10**30}), "it told no end_real_ns"),
        (lines({**interval(0, read=way(1)), "span_ns": -1}), "it told no span_ns"),
        (lines(interval(1, read=way(1))), "it told interval 1 where 0 was due"),
        (
            lines(interval(0, read=way(1)), {**interval(1, read=way(1)), "end_real_ns": START}),
            "it told an interval that ends before the one before it",
        ),
        (lines({"started_real_ns": "now"}), "it told no started_real_ns"),
        (b'{"seq": ' + b"9" * 5000 + b"}", "it printed a line that is no JSON"),
        (b"[" * 100_000, "it printed a line that is no JSON"),
        (lines({"end": {}}), "it told no measured_ns"),
        (lines({"end": 5}), "it printed a line that is no object"),
        (lines(end()), "it told nothing of 'read'"),
        (lines(end(read={**way(2), "ios": 3})), "it counts 3 I/Os of the whole run and bins 2"),
        (lines(end(read={**way(1), "bins": [[-1, 1]]})), "it told bins that are none"),
        (lines(end(read={**way(1), "max_ns": 10**400})), "it told no max_ns"),
        (lines(end(read={**way(1), "min_ns": -5})), "it told no min_ns"),
        (lines(end(read=way(1), cpu={"user_s": float("nan")})), "it told no user_s"),
        (lines(end(read=way(1), cpu={"user_s": 10**400})), "it told no user_s"),
        (lines(end(read=way(1), drained_ios=float("inf"))), "it told no drained_ios"),
        (lines(end(read=way(1), errors={"read": {"EIO": "3"}})), "it told no EIO"),
        (lines(end(read=way(1), end_real_ns=START - 1)), "it ended before it began"),
        (lines(end(read=way(1), end_real_ns=None)), "it told no end_real_ns"),
        (b'{"end":', "it printed a line that is no JSON"),
        (b"x" * (3 << 20), "it printed a line without an end"),
    ],
)
def test_what_is_no_run_is_a_fault(output: bytes, message: str) -> None:
    faults = told(output)[1].faults
    assert any(fault.startswith(message) for fault in faults), faults


def test_spoilt_output_never_raises_and_a_cut_one_is_never_whole() -> None:
    chance = random.Random(8)  # noqa: S311 - the same damage each time
    for _ in range(400):
        spoilt = bytearray(USUAL)
        for _ in range(chance.randint(1, 4)):
            spoilt[chance.randrange(len(spoilt))] = chance.choice(b'0123456789-.eE"[]{},:x\n')
        told(bytes(spoilt))
    for length in range(0, len(USUAL) - 2, 7):
        assert told(USUAL[:length])[1].faults


def test_a_lost_line_is_told_and_the_others_count() -> None:
    output = lines(HEAD, interval(0, read=way(10)), interval(2, read=way(20)), end(read=way(35)))
    reading = told(output)[1]
    assert ["interval 2 where 1" in fault for fault in reading.faults] == [True]
    assert [one.ios for one in reading.intervals] == [10, 20]


def test_a_run_that_ended_early_has_the_times_that_it_had() -> None:
    early = end(
        read=way(30), measured_ns=SECOND, drain_ns=SECOND // 2, end_real_ns=START + SECOND * 3 // 2
    )
    last = {**interval(1, read=way(20)), "end_real_ns": START + SECOND * 3 // 2}
    last["span_ns"] = SECOND // 2
    reading = told(lines(HEAD, interval(0, read=way(10)), last, early))[1]
    assert reading.totals is not None
    assert reading.totals.read is not None
    assert reading.totals.generator is not None
    assert [one.iops for one in reading.intervals] == [10.0, 40.0]
    assert (reading.totals.read.iops, reading.totals.read.runtime_ms) == (20.0, 1500)
    # Two seconds by two jobs within the second in which they were used.
    assert (reading.totals.user_cpu_percent, reading.totals.system_cpu_percent) == (25.0, 75.0)
    assert (reading.end_real_ns, reading.faults) == (START + SECOND * 3 // 2, ())


def test_words_of_hosts_are_harmless() -> None:
    head = {**HEAD, "method": "ring\x1b[2J", "notes": ["a\x1b]0;b" + "c" * 999]}
    wrong = {"read": {"E\x1bIO": 1}}
    reading = told(lines(head, interval(0, read=way(1)), end(read=way(1), errors=wrong)))[1]
    assert reading.totals is not None
    assert reading.totals.generator is not None
    generator = reading.totals.generator
    said = [reading.version, generator.method, *generator.notes, generator.errors[0][0]]
    assert all(one.isprintable() and len(one) <= 300 for one in said)


@pytest.mark.parametrize(("percent", "name"), [(100, "read"), (0, "write")])
def test_a_mix_of_all_or_nothing_has_one_direction(percent: int, name: str) -> None:
    reader = NativeEngine().create_measurement_reader(replace(JOB, read_percent=percent))
    reader.feed(lines(HEAD, interval(0, **{name: way(3)}), end(**{name: way(3)})))
    reading = reader.finish()
    assert reading.faults == ()
    assert reading.totals is not None
    assert [one.ios for one in reading.intervals] == [3]
    assert (reading.totals.read is None) is (name == "write")
    assert (reading.totals.write is None) is (name == "read")


def test_a_layout_that_wrote_too_little_says_why() -> None:
    reader = NativeEngine().create_layout_reader(FILES)
    errors = {"write": {"ENOSPC": 7}}
    reader.feed(lines(HEAD, end(write=way(10), errors=errors)))
    (fault,) = reader.finish().faults
    assert "40960 of 4194304 bytes (7 x write ENOSPC)" in fault


def test_a_whole_layout_has_no_fault() -> None:
    reader = NativeEngine().create_layout_reader(FILES)
    reader.feed(lines(HEAD, end(write=way(1024))))
    assert reader.finish().faults == ()


def test_why_ios_were_not_recorded_is_told() -> None:
    def faults(recorded: object) -> tuple[str, ...]:
        ways = {"read": way(2)}
        return told(lines(HEAD, interval(0, **ways), end(recorded=recorded, **ways)))[1].faults

    assert faults({"ios": 2, "fault": None}) == faults(None) == ()
    (fault,) = faults({"ios": 2, "fault": "No space left on device (ENOSPC)"})
    assert fault == "its I/Os could not be recorded: No space left on device (ENOSPC)"
