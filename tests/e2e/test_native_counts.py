"""The native engine counts what the kernel counts, neither more nor less."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.e2e.devices import spare_loop, spare_zram
from tests.e2e.native_engine import (
    MIB,
    Outcome,
    Spec,
    ended,
    job,
    lines_of,
    run,
    spec,
    started,
)

pytestmark = pytest.mark.e2e

SIZE = 16 * MIB


class Counted(NamedTuple):
    """What the kernel has counted of a device since it was made; merged I/Os count by themselves.

    A device may be one that was used before: only differences mean something.
    """

    reads: int
    bytes_read: int
    writes: int
    bytes_written: int
    trims: int
    bytes_trimmed: int


def counted(device: str) -> Counted:
    fields = [int(word) for word in Path(f"/sys/block/{device}/stat").read_text("ascii").split()]
    ways = [(fields[at] + fields[at + 1], 512 * fields[at + 2]) for at in (0, 4, 11)]
    (reads, read), (writes, written), (trims, trimmed) = ways
    return Counted(reads, read, writes, written, trims, trimmed)


def counted_at_rest(device: str) -> Counted:
    """The same, once nobody looks at a new device any more."""
    before = None
    while (now := counted(device)) != before:
        before = now
        time.sleep(0.2)
    return now


def counted_run(asked: Spec, device: str) -> tuple[Outcome, Counted, Counted]:
    """What it did, and what the kernel had counted when it began and after.

    Before the start it may try what a device can do.
    """
    engine = started(asked, wait_s=1.0)
    said = lines_of(engine, 1)
    before = counted(device)
    return ended(engine, *said), before, counted(device)


def assert_counts(outcome: Outcome, before: Counted, after: Counted) -> None:
    seen = [now - then for now, then in zip(after, before, strict=True)]
    ways = ("read", "write", "trim")
    none = {"ios": 0, "bytes": 0}
    ours = [outcome.end.get(way, none)[what] for way in ways for what in ("ios", "bytes")]
    assert ours == seen
    # And the intervals have all of it as well.
    for way in ways:
        if way in outcome.end:
            assert outcome.count(way) > 0


@pytest.mark.parametrize(
    ("rw", "method"),
    [
        *((rw, "io_uring") for rw in ("randread", "randwrite", "randrw", "read", "write", "rw")),
        *((rw, method) for rw in ("randrw", "rw") for method in ("libaio", "sync")),
    ],
)
def test_a_device_has_done_what_was_counted(rw: str, method: str) -> None:
    with spare_zram(SIZE) as device:
        asked = spec(job(device.path, SIZE, rw, depth=1), method=method, runtime_s=0.3)
        outcome, before, after = counted_run(asked, device.name)
    assert outcome.hello["method"] == method
    assert_counts(outcome, before, after)


@pytest.mark.parametrize("depth", [1, 8])
def test_what_it_reads_before_the_start_is_told_as_well(depth: int) -> None:
    with spare_loop(SIZE, "--direct-io=on") as device:
        before = counted_at_rest(device.name)
        outcome = ended(started(spec(job(device.path, SIZE, depth=depth))))
        after = counted(device.name)
    probes, read = outcome.hello["probes"]["read"], outcome.end["read"]
    assert after.reads - before.reads == probes["ios"] + read["ios"]
    assert after.bytes_read - before.bytes_read == probes["bytes"] + read["bytes"]
    # A trial of both ways where there is one I/O at a time, else one look.
    assert (probes["ios"] > 1) is (depth == 1)


def test_what_is_drained_after_the_end_is_counted_and_set_apart() -> None:
    with spare_loop(SIZE, "--direct-io=on") as device:
        asked = spec(job(device.path, SIZE, "randread", depth=64), method="io_uring")
        outcome, before, after = counted_run(asked, device.name)
    end = outcome.end
    assert_counts(outcome, before, after)
    assert 0 < end["drained_ios"] <= 64
    assert end["measured_ns"] == pytest.approx(500_000_000, abs=1000)
    assert end["drain_ns"] > 0


def test_trims_are_those_of_the_device() -> None:
    with spare_loop(SIZE) as device:
        asked = job(device.path, SIZE, "randtrim", depth=1, blocks=[{"bytes": 65536, "share": 1}])
        outcome, before, after = counted_run(spec(asked, runtime_s=0.3), device.name)
    assert outcome.end["trim"]["ios"] > 0
    assert_counts(outcome, before, after)


def test_a_job_ends_with_the_bytes_that_it_was_to_move() -> None:
    with spare_loop(SIZE, "--direct-io=on") as device:
        sizes = [{"bytes": 4096, "share": 1}, {"bytes": 65536, "share": 1}]
        asked = job(device.path, SIZE, "write", io_bytes=SIZE, blocks=sizes)
        outcome, before, after = counted_run(spec(asked, runtime_s=None), device.name)
    assert_counts(outcome, before, after)
    # The last block may reach past it, as it is a whole one.
    assert SIZE <= outcome.end["write"]["bytes"] < SIZE + 65536


@pytest.mark.parametrize("method", ["io_uring", "sync"])
def test_pauses_are_of_a_job_however_many_threads_it_has(method: str) -> None:
    asked = job("/dev/null", MIB, "randwrite", depth=4, think_us=50_000, think_every=10)
    outcome = run(spec(asked, method=method))
    # Ten in each of ten pauses, and what was under way when one began; a machine may be slow.
    assert 10 < outcome.count("write") <= 11 * (10 + 4)


def test_what_is_not_timed_is_counted_all_the_same() -> None:
    with spare_zram(SIZE) as device:
        asked = spec(job(device.path, SIZE, "randread"), method="io_uring", timed=False)
        outcome, before, after = counted_run(asked, device.name)
    end, read = outcome.end, outcome.end["read"]
    assert (after.reads - before.reads, after.bytes_read - before.bytes_read) == (
        read["ios"],
        read["bytes"],
    )
    assert read["ios"] == sum(line["read"]["ios"] for line in outcome.lines if "seq" in line) > 0
    assert (read["bins"], read["min_ns"], read["max_ns"], end["errors"]) == ([], None, None, {})
    assert any("No latencies were taken" in note for note in outcome.hello["notes"])
    slow = job("/dev/null", MIB, "randwrite", rate={"iops": 10.0})
    assert "timed is false" in run(spec(slow, timed=False)).faults
