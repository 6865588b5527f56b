"""`iolab export --nodes`, on a session of which some runs were made by guests."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from bench.synthetic import make_facts, make_record
from msgspec.structs import replace

from iolab.core.events import SessionStatus
from iolab.store.parquet import read_parquet_columns
from iolab.store.reader import SessionReader
from iolab.store.writer import SessionWriter
from tests.cli.command_line import PLAN, RESULTS, SHAPE, STUDY
from tests.cli.in_process import call
from tests.guests.fleets import NODES
from tests.guests.fleets import run as guests_run
from tests.judging import judge


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first of its runs had guests on two nodes."""
    folder = tmp_path_factory.mktemp("nodes") / "S"
    nodes = judge(guests_run(), {}).nodes
    with SessionWriter.create(folder, STUDY, PLAN, "s", ("iolab", "run")) as writer:
        writer.record_host_facts_at_start(make_facts(SHAPE), "0.1.0")
        for place, (run, result) in enumerate(zip(PLAN.runs, RESULTS, strict=True)):
            told = replace(result, nodes=() if place else nodes)
            writer.commit_run(make_record(run, SHAPE), told, analysis_version=1)
        writer.end_session_and_close(SessionStatus.DONE)
    return folder


def test_nodes_come_back_from_the_store_as_they_were(session: Path) -> None:
    (first, *others) = SessionReader(session).results()
    assert first.nodes == judge(guests_run(), {}).nodes
    assert not any(one.nodes for one in others)


def test_one_row_a_run_and_node(session: Path) -> None:
    done = call("export", session, "-f", "csv", "--nodes")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["node"] for row in rows] == list(NODES)
    assert float(rows[0]["iops"]) == pytest.approx(2000)


def test_the_same_as_parquet(session: Path, tmp_path: Path) -> None:
    file = tmp_path / "nodes.parquet"
    done = call("export", session, "-f", "parquet", "--nodes", "-o", file)
    assert (done.returncode, done.stderr.split()[0]) == (0, "2")
    found = read_parquet_columns(file, ["node", "iops", "guest_count", "outliers"])
    assert found["node"].tolist() == list(NODES)
    assert found["guest_count"].tolist() == [2, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-f", "json", "--nodes"), "--nodes"),
        (("-f", "markdown", "--points"), "--points"),
        (("-f", "csv", "--points", "--nodes"), "different rows"),
    ],
)
def test_rows_that_cannot_be_chosen(options: tuple[str, ...], message: str, session: Path) -> None:
    done = call("export", session, *options)
    assert done.returncode == 2
    assert message in done.stdout + done.stderr


def test_one_row_a_second_of_every_run(session: Path, tmp_path: Path) -> None:
    done = call("export", session, "-f", "csv", "--seconds")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert {row["operation"] for row in rows} <= {"read", "write"}
    assert {row["host"] for row in rows} == set(SHAPE.host_names)
    assert {(row["digest"], row["repeat"]) for row in rows} == {
        (run.point.digest, str(run.repeat)) for run in PLAN.runs
    }
    stored = SessionReader(session)
    (first, *_) = PLAN.runs
    mine = [row for row in rows if (row["digest"], row["repeat"]) == (first.point.digest, "1")]
    assert sum(int(row["ios"]) for row in mine) == int(
        stored.intervals(first.point.digest, 1).ios.sum()
    )
    assert max(float(row["second"]) for row in mine) == SHAPE.seconds
    out = tmp_path / "seconds.parquet"
    assert call("export", session, "-f", "parquet", "--seconds", "-o", out).returncode == 0
    assert len(read_parquet_columns(out, ["ios"])["ios"]) == len(rows)
