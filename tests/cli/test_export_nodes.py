"""`iolab export --nodes`, on a session of which some runs were made by guests."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest
from bench.synthetic import make_facts, make_record

from iolab.analyse.judge import judge
from iolab.cli.app import conclude
from iolab.model.event import SessionStatus
from iolab.store.parquet import read_columns
from iolab.store.reader import SessionReader
from iolab.store.writer import SessionWriter
from tests.analyse.guests.fleets import NODES
from tests.analyse.guests.fleets import run as guests_run
from tests.cli.command_line import PLAN, RESULTS, SHAPE, STUDY


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """The first of its runs had guests on two nodes."""
    nodes = judge(guests_run(), {}).nodes
    with SessionWriter.create(tmp_path / "S", STUDY, PLAN, "s", ("iolab", "run")) as writer:
        writer.started(make_facts(SHAPE), "0.1.0")
        for place, (run, result) in enumerate(zip(PLAN.runs, RESULTS, strict=True)):
            told = replace(result, nodes=() if place else nodes)
            writer.commit(make_record(run, SHAPE), told, analysis_version=1)
        writer.ended(SessionStatus.DONE)
    return tmp_path / "S"


def test_nodes_come_back_from_the_store_as_they_were(session: Path) -> None:
    (first, *others) = SessionReader(session).results()
    assert first.nodes == judge(guests_run(), {}).nodes
    assert not any(one.nodes for one in others)


def test_one_row_a_run_and_node(session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert conclude(["export", str(session), "-f", "csv", "--nodes"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out, newline="")))
    assert [row["node"] for row in rows] == list(NODES)
    assert float(rows[0]["iops"]) == pytest.approx(2000)


def test_the_same_as_parquet(
    session: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "nodes.parquet")
    assert conclude(["export", str(session), "-f", "parquet", "--nodes", "-o", file]) == 0
    assert "2 nodes of results written" in capsys.readouterr().err
    found = read_columns(Path(file), ["node", "iops", "guest_count", "outliers"])
    assert found["node"].tolist() == list(NODES)
    assert found["guest_count"].tolist() == [2, 2]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("-f", "json", "--nodes"), "--nodes chooses the rows of CSV and Parquet, not of json"),
        (("-f", "markdown", "--points"), "--points chooses the rows"),
        (("-f", "csv", "--points", "--nodes"), "ask for different rows"),
    ],
)
def test_rows_that_cannot_be_chosen(
    options: tuple[str, ...], says: str, session: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert conclude(["export", str(session), *options]) == 2
    assert says in capsys.readouterr().err
