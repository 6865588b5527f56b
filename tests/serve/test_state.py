"""What tells one state of a session from the next, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from bench.synthetic import make_facts, make_record, make_result
from msgspec.structs import replace

from iolab.errors import StoreError
from iolab.serve.sessions import SessionStampReader
from iolab.store.writer import SessionWriter
from tests.cli.command_line import PLAN, SHAPE, STUDY


def test_a_session_that_does_not_change_stays_the_same(folder: Path) -> None:
    reader = SessionStampReader()
    first = reader.read_stamp(folder)
    (folder / "report.html").write_text("a report beside it is no change")
    assert reader.read_stamp(folder) == first == SessionStampReader().read_stamp(folder)


def test_every_commit_and_the_end_change_it(tmp_path: Path) -> None:
    folder, reader, seen = tmp_path / "one", SessionStampReader(), []
    with SessionWriter.create(folder, STUDY, PLAN, "s", ("iolab",)) as writer:
        writer.record_host_facts_at_start(make_facts(SHAPE), "0.1.0")
        seen.append(reader.read_stamp(folder))
        for run in PLAN.runs[:2]:
            writer.commit_run(
                make_record(run, SHAPE), make_result(make_record(run, SHAPE)), analysis_version=1
            )
            seen.append(reader.read_stamp(folder))
        again = replace(PLAN.runs[0], repeat=2)
        writer.commit_run(
            make_record(again, SHAPE), make_result(make_record(again, SHAPE)), analysis_version=1
        )
        seen.append(reader.read_stamp(folder))
    seen.append(reader.read_stamp(folder))
    assert len({one.digest for one in seen}) == len(seen)
    assert [one.is_being_written for one in seen] == [True, True, True, True, False]
    assert seen[-1].newest_run_ns == max(
        path.stat().st_mtime_ns for path in folder.glob("points/**")
    )


@pytest.mark.parametrize(
    "name",
    ["session.json", "study.toml", "plan.json", "hosts.json", "lock", "points"],
)
def test_a_link_in_place_of_a_file_is_refused(folder: Path, tmp_path: Path, name: str) -> None:
    (folder / name).rename(tmp_path / "moved")
    (folder / name).symlink_to(tmp_path / "moved")
    with pytest.raises(StoreError, match=f"'{name}' .* is a link"):
        SessionStampReader().read_stamp(folder)


def test_links_deeper_down_are_refused_also_after_a_first_look(
    folder: Path, tmp_path: Path
) -> None:
    reader = SessionStampReader()
    reader.read_stamp(folder)
    run = next(folder.glob("points/*/run-1"))
    (run / "manifest.json").rename(tmp_path / "moved")
    (run / "manifest.json").symlink_to(tmp_path / "moved")
    with pytest.raises(StoreError, match=r"'manifest.json' .* is a link"):
        reader.read_stamp(folder)


def test_a_run_that_is_a_link_is_refused(folder: Path, session: Path) -> None:
    point = next(folder.glob("points/*"))
    (point / "run-7").symlink_to(next(session.glob("points/*/run-1")))
    with pytest.raises(StoreError, match="'run-7'"):
        SessionStampReader().read_stamp(folder)


def test_nothing_waits_for_a_pipe(folder: Path) -> None:
    (folder / "lock").unlink()
    os.mkfifo(folder / "lock")
    with pytest.raises(StoreError, match="special file"):
        SessionStampReader().read_stamp(folder)


def test_a_file_beyond_all_measure_is_refused(folder: Path) -> None:
    os.truncate(folder / "hosts.json", 2 << 30)
    with pytest.raises(StoreError, match="2147483648 bytes"):
        SessionStampReader().read_stamp(folder)
