"""Killed, full, or limited: only the run in flight is lost, and nothing of it is seen."""

from __future__ import annotations

import multiprocessing
import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest
from bench.synthetic import Shape, make_plan, make_record, make_result, make_study

from iolab.errors import ExitCode, StoreError
from iolab.model.event import SessionStatus
from iolab.model.packed import Packed
from iolab.model.run import EngineOutput, RunRecord
from iolab.store import layout
from iolab.store.reader import SessionReader
from iolab.store.writer import SessionWriter
from tests.store.sessions import PLAN, assert_same, commit, create, files_below, record_of

KILLS = 20
LONG = Shape(points=500, seconds=2, cores=2, disks=1, nics=1)
LONG_PLAN = make_plan(LONG)


def write_until_killed(place: Path, told: Connection) -> None:
    """Commit what is missing of a long plan, and tell each run that is committed."""
    done = SessionReader(place).done()
    with SessionWriter.reopen(place) as writer:
        for run in LONG_PLAN.runs:
            if (run.point.digest, run.repeat) not in done:
                record = make_record(run, LONG)
                commit(writer, record)
                told.send(run.order)


def test_kill_9_loses_only_the_run_in_flight(tmp_path: Path) -> None:
    place = tmp_path / "S"
    SessionWriter.create(place, make_study(LONG), LONG_PLAN, "s", ("iolab",)).close()
    # A server that has loaded everything once makes each writer start in milliseconds.
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["tests.store.test_crash", "duckdb"])
    pauses_s = np.random.default_rng(1).uniform(0.0, 0.05, KILLS).tolist()
    promised: set[int] = set()
    checked: set[tuple[str, int]] = set()
    cut_short = 0
    for pause_s in pauses_s:
        hears, tells = processes.Pipe(duplex=False)
        writer = processes.Process(target=write_until_killed, args=(place, tells))
        writer.start()
        tells.close()
        promised.add(hears.recv())
        writer.join(timeout=pause_s)
        writer.kill()
        writer.join()
        promised |= set(_received(hears))
        cut_short += bool(layout.unfinished(place))
        checked |= _check_new(place, promised, checked)
    assert len(checked) >= KILLS
    assert cut_short > 0, "no kill ever hit a run being written: the test proves nothing"
    SessionWriter.reopen(place).close()
    assert layout.unfinished(place) == ()
    assert SessionReader(place).verify() == ()


def _received(hears: Connection) -> Iterator[int]:
    """What a process told before it died; a message cut short is none."""
    try:
        while hears.poll():
            yield hears.recv()
    except (EOFError, OSError):
        return


def _check_new(
    place: Path, promised: set[int], checked: set[tuple[str, int]]
) -> set[tuple[str, int]]:
    """Every run that was told is there, and every run that is there is whole."""
    reader = SessionReader(place)
    assert reader.session.status is SessionStatus.INTERRUPTED
    assert reader.damaged() == ()
    runs = {(run.point.digest, run.repeat): run for run in LONG_PLAN.runs}
    committed = reader.committed()
    assert {runs[key].order for key in committed} >= promised
    for key in committed - checked:
        assert_same(reader.record(*key), make_record(runs[key], LONG))
    return set(committed)


def large(order: int) -> RunRecord:
    """A run whose every file is tens of kilobytes that do not compress."""
    record = record_of(order)
    rng = np.random.default_rng(order)
    noise = rng.integers(0, 1 << 62, size=5000)
    intervals = replace(
        record.intervals,
        **dict.fromkeys(("host", "seq", "end_real_ns", "span_ns", "direction"), noise),
        ios=noise,
        bytes=noise,
        lat_sum_ns=noise.astype(np.float64),
    )
    output = EngineOutput("client-1", "fio.json", Packed.of(rng.bytes(600_000)))
    return replace(record, intervals=intervals, outputs=(output,))


@contextmanager
def file_size_limit(limit_bytes: int) -> Iterator[None]:
    """No file may grow beyond the limit: a full disk for everyone, root or not."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("limit_bytes", [100, 2_000, 30_000, 500_000])
def test_a_file_that_may_not_grow_loses_only_its_run(tmp_path: Path, limit_bytes: int) -> None:
    place = tmp_path / "S"
    with create(place) as writer:
        commit(writer, record_of(0))
        before = files_below(place)
        with file_size_limit(limit_bytes), pytest.raises(StoreError) as caught:
            commit(writer, large(1))
        _assert_told(caught.value, place, "File too large")
        assert files_below(place) - before <= {f"points/{PLAN.runs[1].point.digest}"}
        assert_same(SessionReader(place).record(PLAN.runs[0].point.digest, 1), record_of(0))
        commit(writer, large(1))
    assert_same(SessionReader(place).record(PLAN.runs[1].point.digest, 1), large(1))


@contextmanager
def small_file_system(place: Path, size_bytes: int) -> Iterator[str]:
    """A place where little fits, and how the kernel says so; for all but root it is a limit."""
    place.mkdir()
    if os.geteuid() != 0:
        with file_size_limit(size_bytes // 8):
            yield "File too large"
        return
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "iolab-test", place], check=True
    )
    try:
        yield "No space left on device"
    finally:
        subprocess.run(["umount", place], check=True)


def test_a_full_disk_loses_only_the_run_in_flight(tmp_path: Path) -> None:
    with small_file_system(tmp_path / "small", 4 << 20) as says:
        place = tmp_path / "small" / "S"
        ballast = tmp_path / "small" / "ballast"
        writer = create(place)
        commit(writer, record_of(0))
        with pytest.raises(OSError, match=says), ballast.open("wb") as file:
            file.write(bytes(8 << 20))
        with pytest.raises(StoreError) as caught:
            commit(writer, large(1))
        _assert_told(caught.value, place, says)
        with pytest.raises(StoreError):
            commit(writer, large(1))
        assert layout.unfinished(place) == ()
        reader = SessionReader(place)
        assert_same(reader.record(PLAN.runs[0].point.digest, 1), record_of(0))
        assert reader.committed() == {(PLAN.runs[0].point.digest, 1)}
        ballast.unlink()
        commit(writer, record_of(1))
        writer.ended(SessionStatus.DONE)
        assert reader.session.status is SessionStatus.DONE
        assert reader.verify() == ()


def test_a_session_that_does_not_fit_leaves_nothing(tmp_path: Path) -> None:
    for existed in (False, True):
        place = tmp_path / f"S-{existed}"
        if existed:
            place.mkdir()
        with file_size_limit(500), pytest.raises(StoreError) as caught:
            create(place)
        _assert_told(caught.value, place, "File too large")
        assert place.exists() == existed
        assert not existed or files_below(place) == set()


def test_an_end_that_cannot_be_written_reads_as_interrupted(tmp_path: Path) -> None:
    place = tmp_path / "S"
    writer = create(place)
    with file_size_limit(100), pytest.raises(StoreError):
        writer.ended(SessionStatus.DONE)
    assert SessionReader(place).session.status is SessionStatus.INTERRUPTED
    with SessionWriter.reopen(place) as writer:
        writer.ended(SessionStatus.DONE)
    assert SessionReader(place).session.status is SessionStatus.DONE


def test_an_interrupt_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    class Cut(Exception):
        pass

    class Outputs(tuple[EngineOutput, ...]):
        def __iter__(self) -> Iterator[EngineOutput]:
            raise Cut

    record = record_of(0)
    broken = replace(record, outputs=Outputs(record.outputs))
    with create(tmp_path / "S") as writer:
        before = files_below(tmp_path / "S")
        with pytest.raises(Cut):
            writer.commit(broken, make_result(record), analysis_version=1)
        assert files_below(tmp_path / "S") - before == {f"points/{record.run.point.digest}"}


def _assert_told(error: StoreError, place: Path, says: str) -> None:
    """The error names a path of the session, the kernel's reason and the way on."""
    assert error.exit_code is ExitCode.STORE
    assert error.happened.startswith(f"Cannot write '{place}")
    assert error.happened.endswith(f": {says}.")
    assert "iolab resume" in error.do
