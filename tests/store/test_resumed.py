"""A session that was resumed: damaged runs are set aside, and each run knows its segment."""

from __future__ import annotations

from pathlib import Path

from bench.synthetic import make_facts
from msgspec.structs import replace

from iolab.core.run import RunStatus
from iolab.store.reader import SessionReader
from iolab.store.writer import SessionWriter
from tests.store.sessions import NOON_NS, PLAN, SHAPE, commit, create, record_of

FIRST = (PLAN.runs[0].point.digest, 1)
HOUR_NS = 3_600_000_000_000


def test_each_result_says_in_which_segment_it_was_measured(tmp_path: Path) -> None:
    with create(tmp_path / "S") as writer:
        commit(writer, replace(record_of(0), started_real_ns=NOON_NS + 1))
    with SessionWriter.reopen(tmp_path / "S", clock=lambda: NOON_NS + HOUR_NS) as writer:
        writer.record_host_facts_at_start(make_facts(SHAPE), "0.1.0")
        commit(writer, replace(record_of(1), started_real_ns=NOON_NS + HOUR_NS + 1))
    reader = SessionReader(tmp_path / "S")
    assert [result.segment for result in reader.results()] == [1, 2]
    assert reader.segment_starts_ns() == [NOON_NS, NOON_NS + HOUR_NS]


def test_a_damaged_run_is_named_set_aside_and_may_be_committed_again(tmp_path: Path) -> None:
    with create(tmp_path / "S") as writer:
        commit(writer, record_of(0))
        commit(writer, record_of(1))
    table = tmp_path / "S" / "points" / FIRST[0] / "run-1" / "bins.parquet"
    table.write_bytes(table.read_bytes()[:-1] + b"x")
    reader = SessionReader(tmp_path / "S")
    assert FIRST in reader.done_runs()
    (damage,) = reader.damage_by_run().values()
    assert damage.path.endswith("run-1/bins.parquet")
    with SessionWriter.reopen(tmp_path / "S") as writer:
        writer.move_runs_to_earlier_attempts(reader.damage_by_run())
        assert FIRST not in SessionReader(tmp_path / "S").committed_folder_by_run()
        commit(writer, record_of(0))
    again = SessionReader(tmp_path / "S")
    assert again.damage_by_run() == {}
    assert FIRST in again.done_runs()
    assert again.attempt_count_by_run()[FIRST] == 2
    assert table.parent.with_name("run-1.attempt-1").is_dir()


def test_tries_are_counted_with_those_that_failed(tmp_path: Path) -> None:
    with create(tmp_path / "S") as writer:
        for status in (RunStatus.FAILED, RunStatus.INTERRUPTED, RunStatus.DONE):
            commit(writer, record_of(0, status))
        commit(writer, record_of(1))
    assert sorted(SessionReader(tmp_path / "S").attempt_count_by_run().values()) == [1, 3]
