"""The native engine when it is to end early: it stops, and still tells all that it did."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from iolab.units import NS_PER_S
from tests.e2e.faulty import faulty_file, late
from tests.e2e.native_engine import LONGEST_S, MIB, ended, job, lines_of, spec, started

pytestmark = pytest.mark.e2e

SIZE = 16 * MIB


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "file"
    with file.open("wb") as made:
        os.posix_fallocate(made.fileno(), 0, SIZE)
    return file


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("method", ["io_uring", "libaio", "sync"])
def test_a_signal_ends_it_early_with_its_sums(
    method: str, number: signal.Signals, path: Path
) -> None:
    engine = started(spec(job(path, SIZE), method=method, runtime_s=3600.0))
    said = lines_of(engine, 4)
    engine.send_signal(number)
    outcome = ended(engine, *said)
    end, intervals = outcome.end, [line for line in outcome.lines if "seq" in line]
    assert outcome.count("read") > 0
    assert not end["errors"]
    assert not end["broken"]
    assert 0 < end["measured_ns"] < LONGEST_S * NS_PER_S
    # The intervals are the whole time, and no second of it twice.
    whole = sum(line["span_ns"] for line in intervals)
    assert whole == intervals[-1]["end_real_ns"] - end["start_real_ns"]
    assert whole >= end["measured_ns"]


def test_a_wait_for_what_is_due_ends_too(path: Path) -> None:
    rare = job(path, SIZE, "randwrite", rate={"iops": 0.001}, arrivals="fixed", io_bytes=SIZE)
    engine = started(spec(rare, runtime_s=None))
    said = lines_of(engine, 3)
    engine.send_signal(signal.SIGINT)
    outcome = ended(engine, *said)
    assert outcome.count("write") == 1
    assert outcome.end["unreached"] is False


def test_before_the_start_there_is_nothing_to_tell(path: Path) -> None:
    engine = started(spec(job(path, SIZE)), wait_s=600.0)
    said = lines_of(engine, 1)
    engine.send_signal(signal.SIGINT)
    outcome = ended(engine, *said)
    assert (outcome.count("read"), outcome.end["measured_ns"]) == (0, 0)


def test_a_second_signal_waits_for_nothing() -> None:
    with faulty_file(SIZE) as target:
        target.on_read = late(1.0)
        engine = started(spec(job(target.path, SIZE, depth=4), method="sync", runtime_s=3600.0))
        while not target.requests:
            time.sleep(0.01)
        engine.send_signal(signal.SIGINT)
        time.sleep(0.2)
        engine.send_signal(signal.SIGINT)
        output, _ = engine.communicate(timeout=LONGEST_S)
    assert engine.returncode == 128 + signal.SIGINT
    assert '"end"' not in output


def test_it_ends_with_its_reader(path: Path) -> None:
    engine = started(spec(job(path, SIZE), runtime_s=3600.0))
    lines_of(engine, 1)
    assert engine.stdout is not None
    assert engine.stderr is not None
    engine.stdout.close()
    assert engine.wait(timeout=LONGEST_S) == -signal.SIGPIPE
    engine.stderr.close()


def test_the_last_interval_reaches_to_the_end_also_without_an_io(path: Path) -> None:
    # Due at once and after 0.8 s: nothing ends in the last fifth of the time.
    rare = job(path, SIZE, rate={"iops": 1.25}, arrivals="fixed")
    outcome = ended(started(spec(rare, runtime_s=1.0, interval_ms=700)))
    spans = [line["span_ns"] for line in outcome.lines if "seq" in line]
    assert outcome.count("read") == 2
    assert sum(spans) >= outcome.end["measured_ns"] == pytest.approx(NS_PER_S, abs=1000)
