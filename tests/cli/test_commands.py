"""Commands that touch no host, called in this process."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import jsonschema
import pytest

from iolab.cli.app import conclude
from iolab.cli.catalogue import bundled
from iolab.cli.ending import exit_code
from iolab.cli.show import FailOn
from iolab.model.event import SessionStatus
from iolab.model.metric import Level, Verdict
from iolab.model.run import RunStatus
from iolab.store.parquet import read_columns
from tests.cli.command_line import PLAN, RESULTS, make_session

SCHEMA = Path(__file__).parents[2] / "schema" / "show.json"


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return make_session(tmp_path / "S")


def run(*arguments: str | Path) -> int:
    return conclude([str(word) for word in arguments])


def printed(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """What a command that ends well prints."""
    code = run(*arguments)
    out, err = capsys.readouterr()
    assert code == 0, err
    return out


def document(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> Any:
    return json.loads(printed(capsys, *arguments))


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "--version").startswith("iolab 0.")


def test_no_command_is_answered_with_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Commands:" in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("shwo",), "No such command 'shwo'."),
        (("show",), "Missing argument 'SESSION'."),
        (("show", "S", "--jsn"), "No such option: --jsn"),
        (("export", "S"), "Missing option '--format'"),
        (("export", "S", "--format", "xls"), "'xls' is not one of"),
        (("show", "S", "--fail-on", "valid"), "'--fail-on': 'valid' is not one of"),
        (("check", "cluster-kp"), "Did you mean 'cluster-kpi'?"),
        (("check", "none/such.toml"), "There is no file 'none/such.toml'."),
        (("check", "."), "There is no study '.'."),
        (("check", "cluster-kpi", "--scale", "smal"), "Did you mean 'small'?"),
        (("plan", "cluster-kpi"), "--path"),
        (("check", "cluster-kpi", "--set", "workload.read-iops.iodpth=1"), "'iodepth'"),
    ],
)
def test_wrong_usage_exits_with_2_and_says_what_to_do(
    arguments: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert "bug" not in err


def test_studies_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    listed = document(capsys, "studies", "--json")["studies"]
    assert [study["id"] for study in listed] == [
        "cassandra",
        "cluster-kpi",
        "rocksdb",
        "ssd-cluster",
        "vm-fleet",
    ]
    assert all(study["scales"] == ["full", "small"] for study in listed)
    text = printed(capsys, "studies")
    assert all(study["id"] in text and study["question"] in text for study in listed)


@pytest.mark.parametrize("study", [study.id for study in bundled()])
def test_bundled_studies_are_right(study: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"{study} is right" in printed(capsys, "check", study, "--scale", "small")


def test_check_counts(capsys: pytest.CaptureFixture[str]) -> None:
    counts = document(capsys, "check", "cluster-kpi", "--set", "method.repeats=3", "--json")
    assert (counts["workloads"], counts["points"], counts["runs"]) == (7, 7, 21)


def test_check_tells_every_fault_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(
        'format = 1\nid = "bad"\nquestoin = "?"\n\n'
        '[[workload]]\nid = "w"\nrw = "randred"\nbs = "4x"\niodepth = 1\nnumjobs = 1\n'
        'filesize = "1m"\n',
        encoding="utf-8",
    )
    assert run("check", file) == 2
    err = capsys.readouterr().err
    for line, word in ((3, "'question'"), (7, "'randread'"), (8, "4x")):
        assert any(f"{file}:{line}:" in told and word in told for told in err.splitlines()), err


def test_init_writes_a_study_that_is_right(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "my-study.toml"
    assert printed(capsys, "init", file) == f"{file}\n"
    assert "my-study" in printed(capsys, "check", file)


def test_init_never_writes_over_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "study.toml"
    file.write_text("mine", encoding="utf-8")
    assert run("init", file) == 2
    assert file.read_text(encoding="utf-8") == "mine"
    assert "already there" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["study", "a b.toml", "no/such/place.toml"])
def test_init_refuses_what_cannot_be_a_study(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("init", tmp_path / name) == 2
    assert not list(tmp_path.iterdir())


def test_plan_offline_tells_runs_cost_and_that_nothing_is_destroyed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = printed(capsys, "plan", "ssd-cluster", "--scale", "small", "--offline")
    assert "32 runs of 32 points" in text
    for part in ("destroys    nothing", "free space", "Time: about", "rand-read-4k", "iodepth 16"):
        assert part in text


def test_plan_as_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    plan = document(capsys, "plan", "cluster-kpi", "--offline", "--json")
    assert [run["order"] for run in plan["runs"]] == list(range(1, 10))
    assert plan["destroys"] == []
    assert plan["budget"]["seconds"] == pytest.approx(
        sum(reason["seconds"] for reason in plan["budget"]["reasons"])
    )


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("embedded", "embedded: RocksDB inside each client's process"),
        ("managed", "managed: Apache Cassandra 4.0.17"),
        ("db-1,db-2:9142", "given: db-1, db-2:9142, replication 1, consistency ONE"),
        ("managed:9042", "given: managed:9042, replication 1"),
    ],
)
def test_a_server_is_named_on_the_command_line(
    where: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("cassandra", "--scale", "small", "--server", where)
    assert says in printed(capsys, "plan", *asked, "--offline")
    assert "cassandra is right" in printed(capsys, "check", *asked)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("rocksdb", "--server", "managed"), "[server] has no effect: no workload of the study"),
        (("cassandra", "--server", "a b"), "addresses of [server] has 'a b'. Write HOST[:PORT]"),
        (("cassandra", "--server", "db-1:99999"), "addresses of [server] has 'db-1:99999'."),
        (("cassandra", "--server", ""), "addresses of [server] has ''."),
    ],
)
def test_a_server_that_cannot_be(
    arguments: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("check", *arguments) == 2
    assert says in capsys.readouterr().err


def test_a_million_points_are_refused_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    axis = ",".join(str(number) for number in range(1, 1001))
    sets = [f"--set=workload.read-iops.{name}={axis}" for name in ("iodepth", "rate_iops")]
    assert run("plan", "cluster-kpi", "--offline", *sets) == 2
    assert "points" in capsys.readouterr().err


def test_show_says_how_the_session_stands(
    session: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = printed(capsys, "show", session)
    assert "done — 6 runs: 6 valid" in text
    assert text.count(" valid") == len(RESULTS) + 1


def test_show_of_a_session_that_was_cut_short(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = make_session(tmp_path / "cut", committed=2)
    text = printed(capsys, "show", cut)
    assert "interrupted — 2 of 6 runs: 2 valid" in text
    assert f"iolab resume {cut}" in text


def test_show_names_damage(session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = (PLAN.runs[0].point.digest, 1)
    (session / "points" / key[0] / "run-1" / "manifest.json").write_text("{", encoding="utf-8")
    text = printed(capsys, "show", session)
    assert f"Damaged, not shown: points/{key[0]}/run-1" in text
    assert "5 of 6 runs" in text


def test_show_as_a_document_keeps_to_its_schema(
    session: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = document(capsys, "show", session, "--json")
    jsonschema.validate(shown, json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert len(shown["results"]) == 6


def test_show_of_one_workload(session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [result.workload for result in RESULTS]
    shown = document(capsys, "show", session, "--json", "--workload", names[-1])
    assert [result["workload"] for result in shown["results"]] == [
        name for name in names if name == names[-1]
    ]
    assert run("show", session, "-w", "workload-l") == 2
    assert "Did you mean 'workload-1'?" in capsys.readouterr().err


def test_show_in_detail(session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "show", session, "--details")
    assert text.count("lat_ns_p99_99") >= 6
    assert "client-2" in text


def test_show_of_what_is_no_session(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show", tmp_path) == 5
    assert "is not a session" in capsys.readouterr().err


def test_export_to_standard_output(session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.DictReader(io.StringIO(printed(capsys, "export", session, "-f", "csv"))))
    assert [row["verdict"] for row in rows] == ["valid"] * 6
    assert printed(capsys, "export", session, "-f", "markdown").count("| valid |") == 6
    exported = document(capsys, "export", session, "-f", "json")
    assert exported == document(capsys, "show", session, "--json")


def test_export_to_a_file_replaces_it_whole(
    session: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "results.csv"
    file.write_text("old", encoding="utf-8")
    assert printed(capsys, "export", session, "-f", "csv", "-o", file) == f"{file}\n"
    assert file.read_bytes().decode() == printed(capsys, "export", session, "-f", "csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["S", "results.csv"]


def test_export_to_parquet(
    session: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "results.parquet"
    assert printed(capsys, "export", session, "-f", "parquet", "-o", file) == f"{file}\n"
    found = read_columns(file, ["workload", "iops", "repeat", "axis_iodepth"])
    values = [result.metrics["iops"].value for result in RESULTS]
    assert found["iops"].tolist() == values
    assert found["repeat"].tolist() == [1] * 6
    assert found["workload"].tolist() == [result.workload for result in RESULTS]
    kinds = {name: kind for name, kind, *_ in duckdb.read_parquet(str(file)).description}
    assert str(kinds["write_lat_ns_p99_99"]) == str(kinds["iops"]) == "DOUBLE"
    assert str(kinds["failure"]) == str(kinds["workload"]) == "VARCHAR"
    assert run("export", session, "-f", "parquet") == 2
    assert "--out" in capsys.readouterr().err


def test_export_to_where_nothing_can_be_written(
    session: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("export", session, "-f", "csv", "-o", session / "no" / "such" / "file") == 6
    assert "cannot be written" in capsys.readouterr().err


def test_a_report_is_written_and_its_name_printed(
    session: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert printed(capsys, "report", session) == f"{session / 'report.html'}\n"
    elsewhere = tmp_path / "brief.html"
    assert document(capsys, "report", session, "--html", elsewhere, "--json") == {
        "format": 1,
        "written": str(elsewhere),
    }
    page = elsewhere.read_text(encoding="utf-8")
    assert page == (session / "report.html").read_text(encoding="utf-8")
    assert "<html" in page
    assert run("report", session, "--html", tmp_path / "no" / "such.html") == 6


def test_a_report_is_written_in_every_form_asked_for(
    session: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pdf, text = tmp_path / "brief.pdf", tmp_path / "brief.md"
    told = printed(capsys, "report", session, "--pdf", pdf, "--md", text, "--paper", "letter")
    assert told == f"{pdf}\n{text}\n"
    assert pdf.read_bytes().startswith(b"%PDF-")
    assert text.read_text(encoding="utf-8").startswith("# ")
    assert not (session / "report.html").exists()
    again = document(capsys, "report", session, "--pdf", pdf, "--md", text, "--json")
    assert again == {"format": 1, "written": [str(pdf), str(text)]}


def test_the_exit_code_of_a_session_that_came_to_its_end() -> None:
    poor = replace(RESULTS[0], verdict=Verdict(Level.INDICATIVE, ()))
    failed = replace(poor, status=RunStatus.FAILED, verdict=Verdict(Level.INVALID, ()))
    done, stopped, lost = SessionStatus.DONE, SessionStatus.INTERRUPTED, SessionStatus.FAILED
    assert exit_code(done, [poor, RESULTS[1]], None) == 0
    assert exit_code(done, [poor], FailOn.INVALID) == 0
    assert exit_code(done, [poor], FailOn.INDICATIVE) == 1
    assert exit_code(done, [RESULTS[0]], FailOn.INDICATIVE) == 0
    assert exit_code(done, [failed, poor], FailOn.INVALID) == 4
    assert exit_code(stopped, [failed], FailOn.INVALID) == 130
    assert exit_code(lost, [failed], FailOn.INVALID) == 3


def test_fail_on_makes_show_a_gate(session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show", session, "--fail-on", "indicative") == 0


def test_the_command_to_continue_is_never_broken_over_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = make_session(tmp_path / "a-directory-with-a-long-name" / "S", committed=2)
    monkeypatch.setenv("COLUMNS", "40")
    assert f"iolab resume {session}" in printed(capsys, "show", session)
