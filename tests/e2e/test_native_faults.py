"""The native engine where things are missing, forbidden, broken or asked for in vain."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.devices import Spare, spare_loop, spare_zram
from tests.e2e.faulty import FaultyFile, faulty_file, late, stuck
from tests.e2e.forbidden import IO_SETUP_X86, IO_URING_SETUP, forbidding
from tests.e2e.native_engine import (
    KIB,
    MIB,
    ended,
    job,
    lines_of,
    quantile_ns,
    run,
    spec,
    started,
)
from tests.e2e.targets import tmpfs, xfs_on_device

pytestmark = pytest.mark.e2e

SIZE = 16 * MIB


@pytest.fixture(scope="module")
def device() -> Iterator[Spare]:
    """An asynchronous block device of our own."""
    with spare_loop(SIZE, "--direct-io=on") as loop:
        yield loop


def laid_out(path: Path, size_bytes: int = SIZE) -> Path:
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, size_bytes)
    return path


# What a host may forbid.


@pytest.mark.parametrize(
    ("calls", "method"),
    [((IO_URING_SETUP,), "libaio"), ((IO_URING_SETUP, IO_SETUP_X86), "sync")],
    ids=["io_uring", "io_uring and libaio"],
)
def test_what_is_forbidden_is_replaced_and_said(
    calls: tuple[int, ...], method: str, device: Spare
) -> None:
    outcome = ended(started(spec(job(device.path, SIZE)), prepare=forbidding(*calls)))
    assert outcome.hello["method"] == method
    assert outcome.count("read") > 0
    assert any("io_uring" in note for note in outcome.hello["notes"])


def test_a_method_that_was_asked_for_and_is_forbidden_is_a_fault(device: Spare) -> None:
    asked = spec(job(device.path, SIZE), method="io_uring")
    outcome = ended(started(asked, prepare=forbidding(IO_URING_SETUP)))
    assert "io_uring" in outcome.faults
    assert "EPERM" in outcome.faults or "not permitted" in outcome.faults


@pytest.mark.alone  # memory is locked for a user, not for a process: others' counts too
def test_with_little_locked_memory_it_works_and_says_what_it_does_without(device: Spare) -> None:
    poor = (
        *("setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock"),
        *("prlimit", "--memlock=65536:65536"),
    )
    wanted = spec(job(device.path, SIZE, depth=64), method="io_uring")
    outcome = run(wanted, before=poor)
    for _ in range(20):
        if outcome.code == 0 or "ENOMEM" not in outcome.faults:
            break
        # What rings of the tests before had locked is given back some time after their end.
        time.sleep(0.5)
        outcome = run(wanted, before=poor)
    assert outcome.count("read") > 0
    assert any("memory" in note for note in outcome.hello["notes"]), outcome.hello


# What cannot be meant.


def test_a_file_that_is_smaller_than_the_job_says_is_a_fault(tmp_path: Path) -> None:
    small = laid_out(tmp_path / "small", 1 * MIB)
    missing = tmp_path / "missing"
    faults = run(spec(job(small, 2 * MIB), job(missing, MIB))).faults
    assert f"{small} has {MIB} bytes, and a job wants {2 * MIB}" in faults
    assert f"{missing} cannot be opened" in faults  # Both at once.


def test_sizes_that_do_not_fit_the_device_are_faults(device: Spare) -> None:
    odd = job(device.path, SIZE, blocks=[{"bytes": 1000, "share": 1}])
    assert "a block of 1000 bytes" in run(spec(odd)).faults
    crooked = job(device.path, SIZE, offset_bytes=100)
    assert "offset_bytes is 100" in run(spec(crooked)).faults
    with spare_loop(SIZE, "--sector-size=4096") as coarse:
        fine = job(coarse.path, SIZE, blocks=[{"bytes": 512, "share": 1}])
        assert "needs multiples of 4096" in run(spec(fine)).faults


def test_more_depth_than_a_ring_holds_is_cut_and_said() -> None:
    asked = 65_536
    outcome = run(spec(job("/dev/null", MIB, "randwrite", depth=asked), method="io_uring"))
    depth = outcome.end["depth"]
    assert depth["asked"] == asked
    assert 0 < depth["used"] < asked
    assert any(str(depth["used"]) in note for note in outcome.hello["notes"])
    too_deep = job("/dev/null", MIB, "randwrite", depth=asked + 1)
    assert "depth is 65537" in run(spec(too_deep)).faults


def test_ten_thousand_jobs_run_and_one_more_does_not() -> None:
    many = [job("/dev/null", MIB, "randwrite", depth=1, seed=seed) for seed in range(10_000)]
    outcome = run(spec(*many, runtime_s=1.0))
    assert outcome.end["depth"]["asked"] == 10_000
    assert outcome.count("write") > 10_000
    assert "10001 jobs" in run(spec(*many, many[0])).faults


def test_more_jobs_than_threads_do_without_plain_calls() -> None:
    # Files of which each job would be done with plain calls: in memory, one I/O at a time.
    with tmpfs(8 * MIB) as folder:
        path = laid_out(folder / "file", MIB)
        many = [job(path, MIB, depth=1, seed=seed) for seed in range(2049)]
        outcome = run(spec(*many, direct=False))
    assert outcome.hello["method"] == "io_uring"
    assert outcome.hello["threads"] <= (os.cpu_count() or 1)
    assert outcome.count("read") > 2049
    assert any("2049 jobs with plain calls" in note for note in outcome.hello["notes"])
    assert "2049 jobs with plain calls" in run(spec(*many, direct=False, method="sync")).faults


def test_buffers_that_would_fill_the_memory_are_a_fault() -> None:
    large = job("/dev/null", 1 << 30, "write", depth=4096, blocks=[{"bytes": 64 * MIB, "share": 1}])
    assert str(4096 * 64 * MIB) in run(spec(large)).faults


# What breaks while it runs.


def test_errors_of_the_target_are_counted_by_errno() -> None:
    with faulty_file(SIZE) as target:
        bad = {4096: errno.EIO, 8192: errno.ENXIO}
        target.on_read = lambda offset, _: bad.get(offset, 0)
        target.on_write = lambda _offset, _length: errno.ENOSPC
        few = job(target.path, 64 * KIB, "randrw", read_percent=70)
        outcome = run(spec(few))
        seen = target.requests
    failed = outcome.failures("read")
    assert set(failed) == {"EIO", "ENXIO"}
    writes = outcome.failures("write")
    assert set(writes) == {"ENOSPC"}
    assert outcome.count("write") == 0
    # Nothing is dropped: the target saw as many as were counted.
    assert seen == outcome.count("read") + sum(failed.values()) + sum(writes.values())


def test_a_full_file_system_is_counted_as_such() -> None:
    with tmpfs(8 * MIB) as folder:
        sparse = folder / "sparse"
        with sparse.open("wb") as file:
            file.truncate(32 * MIB)
        outcome = run(spec(job(sparse, 32 * MIB, "randwrite")))
    assert set(outcome.failures("write")) == {"ENOSPC"}
    # Each 4 KiB that was written took a page of it; page tables of the file take some more.
    assert outcome.count("write") > 0


def test_what_is_to_be_tried_again_is_and_counts_once() -> None:
    with faulty_file(SIZE) as target:
        target.on_write = lambda _offset, _length: errno.EAGAIN if target.requests % 7 == 0 else 0
        outcome = run(spec(job(target.path, SIZE, "randwrite")))
        seen = target.requests
    again = sum(outcome.end["retries"].values())
    assert again > 0
    assert not outcome.end["errors"]
    assert seen == outcome.count("write") + again


@pytest.mark.parametrize("method", ["io_uring", "libaio", "sync"])
def test_a_target_that_vanishes_leaves_errors_and_an_end(method: str) -> None:
    with faulty_file(SIZE) as target:
        engine = started(spec(job(target.path, SIZE), method=method, runtime_s=1.0))
        while target.requests < 100:
            time.sleep(0.01)
        target.vanish()
        outcome = ended(engine)
    assert outcome.count("read") > 50
    assert set(outcome.failures("read")) <= {"ECONNABORTED", "ENOTCONN", "EIO", "ENODEV"}
    assert sum(outcome.failures("read").values()) > 0


def test_a_device_that_shrinks_leaves_errors_and_an_end() -> None:
    with spare_loop(SIZE, "--direct-io=on") as device:
        engine = started(spec(job(device.path, SIZE), runtime_s=1.0))
        said = lines_of(engine, 3)  # It runs.
        os.truncate(device.image, MIB)
        outcome = ended(engine, *said)
    assert '"seq"' in said[-1]
    assert sum(outcome.failures("read").values()) > 0


def test_a_file_that_is_cut_short_gives_short_reads(tmp_path: Path) -> None:
    path = laid_out(tmp_path / "file")
    engine = started(spec(job(path, SIZE), runtime_s=1.0))
    said = lines_of(engine, 3)
    os.truncate(path, SIZE // 2)
    outcome = ended(engine, *said)
    assert set(outcome.failures("read")) == {"short"}


@pytest.mark.long
def test_what_hangs_is_told_and_not_waited_for_for_ever() -> None:
    methods = ("io_uring", "libaio", "sync")
    with ExitStack() as stack:
        targets = [stack.enter_context(faulty_file(SIZE)) for _ in (*methods, "open loop")]
        for target in targets:
            target.on_read = stuck(target, after=100)
        # All at once, as it takes its time.
        engines = [
            started(spec(job(target.path, SIZE), method=method))
            for target, method in zip(targets[:-1], methods, strict=True)
        ]
        engines.append(open_loop_until_it_hangs(targets[-1]))
        said = [until_end(engine) for engine in engines]
        # What is held by the kernel ends with it.
        for target in targets:
            target.vanish()
        *outcomes, open_loop = [
            ended(engine, *one) for engine, one in zip(engines, said, strict=True)
        ]
    for outcome, method in zip(outcomes, methods, strict=True):
        end = outcome.end
        assert (outcome.hello["method"], outcome.count("read"), end["hung"]) == (method, 100, 8)
        assert not end["broken"]
        assert end["measured_ns"] == pytest.approx(500_000_000, abs=1000)
        assert (end["unreached"], end["unsubmitted"]) == (False, None)
    end = open_loop.end
    assert (open_loop.count("read"), end["hung"]) == (100, 8)
    # Nobody knows what more was due.
    assert (end["unreached"], end["unsubmitted"]) == (True, None)
    assert end["measured_ns"] + end["drain_ns"] < 20_000_000_000


def open_loop_until_it_hangs(target: FaultyFile) -> subprocess.Popen[str]:
    """One that is told to end by a signal, long before any interval does."""
    asked = job(target.path, SIZE, rate={"iops": 2000.0}, arrivals="fixed")
    engine = started(spec(asked, method="io_uring", runtime_s=60.0, interval_ms=60_000))
    while target.requests <= 100:
        time.sleep(0.01)
    time.sleep(0.1)
    engine.send_signal(signal.SIGTERM)
    return engine


def until_end(engine: subprocess.Popen[str]) -> list[str]:
    """All lines up to the last: its process may not end yet."""
    said: list[str] = []
    while not said or '"end":' not in said[-1]:
        said += lines_of(engine, 1)
        assert said[-1], said
    return said


# What cannot be kept up with.


@pytest.mark.alone
def test_a_rate_that_cannot_be_reached_is_said_and_waiting_counts() -> None:
    with faulty_file(SIZE) as target:
        target.on_read = late(0.002)
        asked = job(target.path, SIZE, rate={"iops": 5000.0}, arrivals="poisson", depth=4)
        outcome = run(spec(asked, runtime_s=1.0))
    end = outcome.end
    assert end["unreached"] is True
    # Some 500 a second are served of 5000.
    left = end["unsubmitted"]
    assert outcome.count("read") + left["count"] == pytest.approx(5000, abs=500)
    assert left["oldest_ns"] > 300_000_000
    # The last of them waited for most of the run, and were served in some milliseconds.
    assert quantile_ns(end["read"]["bins"], 0.9) > 300_000_000
    assert quantile_ns(end["read"]["service"]["bins"], 0.9) < 150_000_000


@pytest.mark.alone
def test_a_rate_that_is_kept_is_not_called_unreached() -> None:
    asked = job("/dev/null", MIB, "randwrite", rate={"iops": 500.0}, arrivals="poisson")
    outcome = run(spec(asked, runtime_s=1.0))
    assert outcome.end["unreached"] is False
    assert outcome.end["unsubmitted"]["count"] <= 2
    assert 350 < outcome.count("write") < 650


@pytest.mark.alone
def test_a_stall_of_the_target_shows_in_response_and_not_in_service_time() -> None:
    stall_s = 0.05
    with spare_zram(512 * MIB) as device, xfs_on_device(device.path) as target:
        path = laid_out(target.path / "file", 64 * MIB)
        # Written once, so that nothing has to be allocated later.
        fill = job(path, 64 * MIB, "write", io_bytes=64 * MIB, contents={"kind": "zeros"})
        assert run(spec(fill, runtime_s=None)).count("write") == 16 * KIB
        asked = job(
            path,
            64 * MIB,
            "randwrite",
            contents={"kind": "zeros"},
            rate={"iops": 200_000.0},
            arrivals="poisson",
            depth=64,
        )
        engine = started(spec(asked, runtime_s=1.5))
        said = lines_of(engine, 5)
        subprocess.run(["fsfreeze", "--freeze", target.path], check=True)
        try:
            time.sleep(stall_s)
        finally:
            subprocess.run(["fsfreeze", "--unfreeze", target.path], check=True)
        outcome = ended(engine, *said)
    assert '"seq"' in said[-1]
    write = outcome.end["write"]
    # Of 300,000 arrivals 10,000 came during the stall: the slowest hundredth waited for it.
    response, service = (
        quantile_ns(bins, 0.99) for bins in (write["bins"], write["service"]["bins"])
    )
    assert response > 20_000_000
    assert service < response / 4
