"""`iolab resume` before it reaches a host: what is done, what is damaged, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from bench.synthetic import make_facts, make_record, make_result
from msgspec.structs import replace

from iolab.cli.run import reopen_and_set_damaged_runs_aside
from iolab.core.events import SessionStatus
from iolab.errors import HostError, StoreError
from iolab.store.reader import SessionReader
from iolab.store.writer import SessionWriter
from iolab.study.parse import StudyOverrides
from tests.cli.command_line import SHAPE
from tests.cli.in_process import call
from tests.facts import tells
from tests.plans import make_plan, parse_study
from tests.store.rewritten import rewrite, rewrite_study
from tests.study.studies import SMALL

FACTS = make_facts(SHAPE)


def make(place: Path, runs: int = 3, without: tuple[str, ...] = ()) -> Path:
    """Runs of three of a study whose directory is not there, so that nothing can be measured."""
    study = parse_study(SMALL, "s.toml", StudyOverrides(path=str(place.parent / "gone")))
    plan = make_plan(study)
    with SessionWriter.create(place, study, plan, "s", ("iolab", "run")) as writer:
        writer.record_host_facts_at_start(FACTS, "0.1.0")
        for run in plan.runs[:runs]:
            record = make_record(run, SHAPE)
            result = replace(make_result(record), excluded_hosts=without)
            writer.commit_run(record, result, analysis_version=1)
    return place


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return make(tmp_path / "S")


def damage(session: Path) -> Path:
    """Change one byte of a run, which its manifest alone can tell; the run."""
    table = min(session.glob("points/*/run-1/bins.parquet"))
    content = table.read_bytes()
    table.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    return table.parent


def test_where_nothing_is_left_the_session_is_done(session: Path) -> None:
    done = call("resume", session)
    assert (done.returncode, SessionReader(session).session.status) == (0, SessionStatus.DONE)
    assert "3 of 3 runs" in done.stderr


def test_a_new_run_over_a_session_shows_none_of_its_results(session: Path, tmp_path: Path) -> None:
    done = call("run", "cluster-kpi", "--path", tmp_path, "--out", session)
    assert (done.returncode, done.stdout) == (StoreError.exit_code, "")
    assert f"iolab resume {session}" in done.stderr


@pytest.mark.parametrize("sweep", ["[1, 8]", "[1, 9]"])
def test_another_version_ends_a_session_of_which_nothing_is_left(sweep: str, session: Path) -> None:
    rewrite_study(session, "[1, 8]", sweep)
    rewrite(session / "session.json", lambda one: one.update(iolab_version="0.0.9"))
    done = call("resume", session)
    assert (done.returncode, SessionReader(session).session.status) == (0, SessionStatus.DONE)


def test_another_version_does_not_measure_on(tmp_path: Path) -> None:
    session = make(tmp_path / "S", runs=2)
    rewrite(session / "session.json", lambda one: one.update(iolab_version="0.0.9"))
    with pytest.raises(HostError) as caught:
        reopen_and_set_damaged_runs_aside(SessionReader(session), FACTS, (), accept_changes=False)
    assert len(caught.value.faults) == 1


def test_a_damaged_run_is_measured_again(session: Path) -> None:
    run = damage(session)
    done = call("resume", session)
    assert "2 of 3 runs" in done.stderr
    assert str(run.relative_to(session)) in done.stderr
    # It went on to the host, which has no such directory.
    assert done.returncode == HostError.exit_code
    assert SessionReader(session).session.status is SessionStatus.INTERRUPTED
    assert run.is_dir()


def test_a_damaged_run_is_set_aside_when_the_hosts_are_what_they_were(session: Path) -> None:
    run = damage(session)
    reader = SessionReader(session)
    changed = {
        name: replace(one, kernel=replace(one.kernel, release="6.12.0"))
        for name, one in FACTS.items()
    }
    with pytest.raises(HostError) as caught:
        reopen_and_set_damaged_runs_aside(
            reader, changed, reader.damage_by_run(), accept_changes=False
        )
    assert len(caught.value.faults) == len(FACTS)
    assert reader.damage_by_run()
    reopen_and_set_damaged_runs_aside(
        reader, FACTS, reader.damage_by_run(), accept_changes=False
    ).close()
    assert not run.exists()
    assert run.with_name("run-1.attempt-1").is_dir()
    assert (len(reader.committed_folder_by_run()), reader.damage_by_run()) == (2, {})
    reopen_and_set_damaged_runs_aside(reader, changed, (), accept_changes=True).close()


def test_a_host_that_the_session_went_on_without_is_not_asked_again(tmp_path: Path) -> None:
    asked = [
        call("resume", make(tmp_path / f"S{number}", 2, without))
        for number, without in enumerate(((), ("local",)))
    ]
    assert [done.returncode for done in asked] == [HostError.exit_code] * 2
    assert ["connect: local" in done.stderr for done in asked] == [True, False]


def test_another_plan_or_another_writer_is_refused(session: Path) -> None:
    with SessionWriter.reopen(session):
        assert call("resume", session).returncode == 5
    rewrite_study(session, "[1, 8]", "[1, 9]")
    done = call("resume", session)
    assert done.returncode == 2
    assert "'workload.rand-read.sweep' was" in done.stderr
    assert SessionReader(session).session.status is SessionStatus.INTERRUPTED


def test_a_report_that_lacks_runs_is_named_with_what_renews_it(session: Path) -> None:
    report = session / "report.html"
    report.write_text("of all runs")
    assert "report.html" not in call("resume", session).stderr
    committed = (session / "index.jsonl").stat().st_mtime
    os.utime(report, (committed - 9, committed - 9))
    said = call("resume", session).stderr
    assert tells(said, str(report), f"iolab report {session}")
    assert report.read_text() == "of all runs"
    renewed = call("resume", session, "--report").stderr
    assert "earlier" not in renewed
    assert report.read_text() != "of all runs"
