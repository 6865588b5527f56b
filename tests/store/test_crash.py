"""Killed, full, or limited: only the run in flight is lost, and nothing of it is seen."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from bench.synthetic import make_result
from msgspec.structs import replace

from iolab.core.compressed import CompressedBytes
from iolab.core.events import SessionStatus
from iolab.core.run import EngineOutput, RunRecord
from iolab.errors import ExitCode, StoreError
from iolab.store import layout
from iolab.store.index import read_index
from iolab.store.reader import SessionReader
from iolab.store.writer import SessionWriter
from tests.store.flushes import flushes_and_names
from tests.store.sessions import PLAN, assert_same, commit, create, files_below, record_of

DEATHS = (0, 1, 4, 7, -2, -1)
"""Flushes and namings of a commit, in their order, before which its process is killed."""


def commit_until_killed(place: Path, event: int) -> None:
    """Commit the plan's second run and be killed before that flush or naming."""
    with SessionWriter.reopen(place) as writer:
        flushes_and_names(lambda: commit(writer, record_of(1)), die_at=event)


def test_kill_9_loses_only_the_run_in_flight(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    with create(whole) as writer:
        commit(writer, record_of(0))
        seen = flushes_and_names(lambda: commit(writer, record_of(1)))
    assert [what for what, _ in seen[-2:]] == ["name", "flush"]
    # A server that has loaded everything once makes each writer start in milliseconds.
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["tests.store.test_crash", "duckdb"])
    for death in DEATHS:
        event = death % len(seen)
        place = tmp_path / f"S{event}"
        with create(place) as writer:
            commit(writer, record_of(0))
        killed = processes.Process(target=commit_until_killed, args=(place, event))
        killed.start()
        killed.join()
        assert killed.exitcode == -signal.SIGKILL
        # Before the first flush there is nothing yet but the point's folder.
        assert bool(layout.unfinished_paths(place)) == (death not in {0, -1})
        _assert_whole(place, named=death == -1)


def _assert_whole(place: Path, *, named: bool) -> None:
    """The first run is whole; the second is too if it was named, and is not there if not."""
    reader = SessionReader(place)
    keys = [(run.point.digest, 1) for run in PLAN.runs[: 1 + named]]
    assert reader.session.status is SessionStatus.INTERRUPTED
    assert (reader.damage_of_documents_and_manifests(), reader.damage_by_run()) == ((), {})
    assert reader.committed_folder_by_run() == set(keys)
    # Where it was killed before the index had the run, the run itself is found.
    assert reader.index_entry_by_run().keys() == set(keys)
    for order, key in enumerate(keys):
        assert_same(reader.record(*key), record_of(order))
    with SessionWriter.reopen(place) as writer:
        assert layout.unfinished_paths(place) == ()
        assert read_index(place).keys() == set(keys)
        if not named:
            commit(writer, record_of(1))
    assert (len(reader.done_runs()), reader.verify_all_files()) == (2, ())


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
    output = EngineOutput("client-1", "fio.json", CompressedBytes.compress(rng.bytes(600_000)))
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


@pytest.mark.parametrize("limit_bytes", [100, 30_000, 500_000])
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
    with small_file_system(tmp_path / "small", 4 << 20) as message:
        place = tmp_path / "small" / "S"
        ballast = tmp_path / "small" / "ballast"
        writer = create(place)
        commit(writer, record_of(0))
        with pytest.raises(OSError, match=message), ballast.open("wb") as file:
            file.write(bytes(8 << 20))
        with pytest.raises(StoreError) as caught:
            commit(writer, large(1))
        _assert_told(caught.value, place, message)
        with pytest.raises(StoreError):
            commit(writer, large(1))
        assert layout.unfinished_paths(place) == ()
        reader = SessionReader(place)
        assert_same(reader.record(PLAN.runs[0].point.digest, 1), record_of(0))
        assert reader.committed_folder_by_run() == {(PLAN.runs[0].point.digest, 1)}
        ballast.unlink()
        commit(writer, record_of(1))
        writer.end_session_and_close(SessionStatus.DONE)
        assert reader.session.status is SessionStatus.DONE
        assert reader.verify_all_files() == ()


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
        writer.end_session_and_close(SessionStatus.DONE)
    assert SessionReader(place).session.status is SessionStatus.INTERRUPTED
    with SessionWriter.reopen(place) as writer:
        writer.end_session_and_close(SessionStatus.DONE)
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
            writer.commit_run(broken, make_result(record), analysis_version=1)
        assert files_below(tmp_path / "S") - before == {f"points/{record.run.point.digest}"}


def _assert_told(error: StoreError, place: Path, message: str) -> None:
    """The error names a path of the session, the kernel's reason and the way on."""
    assert error.exit_code is ExitCode.STORE
    assert error.message.startswith(f"Cannot write '{place}")
    assert error.message.endswith(f": {message}.")
    assert "iolab resume" in error.hint
