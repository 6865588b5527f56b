"""Commands that touch no host."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import duckdb
import jsonschema
import pytest
from msgspec.structs import replace

from iolab.cli.commands import COMMANDS, CliCommand
from iolab.cli.report import appendix_path
from iolab.cli.session import session_exit_code
from iolab.cli.show import FailOnLevel
from iolab.cli.studies import bundled_studies
from iolab.core.events import SessionStatus
from iolab.core.metric import RunResult, Verdict, VerdictLevel
from iolab.core.run import RunStatus
from iolab.store.parquet import read_parquet_columns
from tests.cli.command_line import RESULTS, make_session
from tests.cli.compared import Target, make_target
from tests.cli.in_process import call

HELP_LINES_MAX = 30
SCHEMA = Path(__file__).parents[2] / "schema" / "show.json"


def printed(*arguments: str | Path) -> str:
    """What a command that ends well prints."""
    done = call(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def document(*arguments: str | Path) -> Any:
    return json.loads(printed(*arguments))


def refused(*arguments: str | Path, code: int = 2) -> str:
    """What a command that is refused says."""
    done = call(*arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert "bug" not in done.stderr
    return done.stderr


def test_the_version_and_the_help() -> None:
    assert printed("--version").startswith("iolab 0.")
    assert "Measure:" in printed("--help")
    assert "Measure:" in refused()


def test_the_short_help_names_every_command_on_one_screen() -> None:
    text = printed("--help")
    assert len(text.splitlines()) <= HELP_LINES_MAX
    assert set(COMMANDS) <= set(re.findall(r"\w+", text))


@pytest.mark.parametrize("command", COMMANDS.values(), ids=list(COMMANDS))
def test_the_list_has_the_first_sentence_of_each_help(command: CliCommand) -> None:
    listed = re.findall(rf"^  {command.name} +(.+)$", printed("--list"), re.M)
    assert listed == [command.summary]
    explained = " ".join(printed(command.name, "--help").partition("\n\n")[2].split())
    assert explained.startswith(command.summary)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("shwo",), "'shwo'"),
        (("show",), "'SESSION'"),
        (("show", "S", "--jsn"), "--jsn"),
        (("export", "S"), "'--format'"),
        (("export", "S", "--format", "xls"), "'xls'"),
        (("show", "S", "--fail-on", "valid"), "'valid'"),
        (("check", "cluster-kp"), "'cluster-kpi'"),
        (("check", "none/such.toml"), "'none/such.toml'"),
        (("check", "."), "'.'"),
        (("check", "cluster-kpi", "--scale", "smal"), "'small'"),
        (("plan", "cluster-kpi"), "--path"),
        (("check", "cluster-kpi", "--set", "workload.read-iops.iodpth=1"), "'iodepth'"),
        (("check", "rocksdb", "--server", "managed"), "[server]"),
        (("check", "cassandra", "--server", "a b"), "'a b'"),
        (("check", "cassandra", "--server", "db-1:99999"), "'db-1:99999'"),
        (("check", "cassandra", "--server", ""), "''"),
    ],
)
def test_wrong_usage_exits_with_2_and_names_what_was_given(
    arguments: tuple[str, ...], message: str
) -> None:
    assert message in refused(*arguments)


def test_studies_are_listed() -> None:
    listed = document("studies", "--json")["studies"]
    assert [study["id"] for study in listed] == [
        "cassandra",
        "checkpoint",
        "cluster-kpi",
        "kv-cache",
        "noisy-neighbour",
        "rebuild",
        "rocksdb",
        "s3-objects",
        "ssd-cluster",
        "training-read",
        "vm-fleet",
    ]
    assert all(study["scales"] == ["full", "small"] for study in listed)
    text = printed("studies")
    assert all(study["id"] in text and study["question"] in text for study in listed)
    assert len(text.splitlines()) == 1 + len(listed)


@pytest.mark.parametrize("study", [study.id for study in bundled_studies()])
def test_bundled_studies_are_right(study: str) -> None:
    assert f"{study} is valid" in printed("check", study, "--scale", "small")


def test_check_counts() -> None:
    counts = document("check", "cluster-kpi", "--set", "method.repeats=3", "--json")
    assert (counts["workloads"], counts["points"], counts["runs"]) == (7, 7, 21)


def test_check_tells_every_fault_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(
        'format = 1\nid = "bad"\nquestoin = "?"\n\n'
        '[[workload]]\nid = "w"\nrw = "randred"\nbs = "4x"\niodepth = 1\nnumjobs = 1\n'
        'filesize = "1m"\n',
        encoding="utf-8",
    )
    lines = refused("check", file).splitlines()
    for line, word in ((3, "'question'"), (7, "'randread'"), (8, "4x")):
        assert any(f"{file}:{line}:" in told and word in told for told in lines), lines


def test_init_writes_a_study_that_is_right_and_never_over_a_file(tmp_path: Path) -> None:
    file = tmp_path / "my-study.toml"
    assert printed("init", file) == f"{file}\n"
    assert "my-study" in printed("check", file)
    file.write_text("mine", encoding="utf-8")
    assert "already there" in refused("init", file)
    assert file.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("name", ["study", "a b.toml", "no/such/place.toml"])
def test_init_refuses_what_cannot_be_a_study(name: str, tmp_path: Path) -> None:
    refused("init", tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_plan_offline_tells_runs_cost_and_that_nothing_is_destroyed() -> None:
    text = printed("plan", "ssd-cluster", "--scale", "small", "--offline")
    for part in ("32 runs of 32 points", "destroys    nothing", "free space", "iodepth 16"):
        assert part in text


def test_plan_as_a_document() -> None:
    plan = document("plan", "cluster-kpi", "--offline", "--repeats", "1", "--json")
    assert [run["order"] for run in plan["runs"]] == list(range(1, 10))
    assert plan["destroys"] == []
    assert plan["budget"]["seconds"] == pytest.approx(
        sum(reason["seconds"] for reason in plan["budget"]["reasons"])
    )


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("embedded", "embedded: RocksDB"),
        ("managed", "managed: Apache Cassandra 4.0.17"),
        ("db-1,db-2:9142", "given: db-1, db-2:9142, replication 1, consistency ONE"),
        ("managed:9042", "given: managed:9042, replication 1"),
    ],
)
def test_a_server_is_named_on_the_command_line(where: str, message: str) -> None:
    asked = ("cassandra", "--scale", "small", "--server", where)
    assert message in printed("plan", *asked, "--offline")


def test_a_million_points_are_refused_at_once() -> None:
    axis = ",".join(str(number) for number in range(1, 1001))
    sets = [f"--set=workload.read-iops.{name}={axis}" for name in ("iodepth", "rate_iops")]
    assert "points" in refused("plan", "cluster-kpi", "--offline", *sets)


def test_show_says_how_the_session_stands(session: Path) -> None:
    text = printed("show", session)
    assert "done — 6 runs: 6 valid" in text
    assert text.count(" valid") == len(RESULTS) + 2  # and in how sure the figures are
    detailed = printed("show", session, "--details")
    assert detailed.count(", p99.99 ") >= 6
    assert "client-2" in detailed


def test_show_of_a_session_that_was_cut_short_has_the_command_on_one_line(tmp_path: Path) -> None:
    cut = make_session(tmp_path / "a-directory-with-a-long-name" / "S", committed=2)
    text = call("show", cut, env={"COLUMNS": "40"}).stdout
    assert "interrupted — 2 of 6 runs: 2 valid" in " ".join(text.split())
    assert f"iolab resume {cut}" in text


def test_show_as_a_document_keeps_to_its_schema(session: Path) -> None:
    shown = document("show", session, "--json")
    jsonschema.validate(shown, json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert len(shown["results"]) == 6


def test_show_of_one_workload_or_point(session: Path) -> None:
    names = [result.workload for result in RESULTS]
    shown = document("show", session, "--json", "--workload", names[-1])
    assert [result["workload"] for result in shown["results"]] == [
        name for name in names if name == names[-1]
    ]
    point = document("show", session, "--json", "--run", RESULTS[2].digest[:9])
    assert [result["digest"] for result in point["results"]] == [RESULTS[2].digest]
    assert "'workload-1'" in refused("show", session, "-w", "workload-l")
    assert "'zzz'" in refused("show", session, "--run", "zzz", "--run", "")


def test_what_is_no_session_is_refused(tmp_path: Path) -> None:
    assert str(tmp_path) in refused("show", tmp_path, code=5)


def test_export_to_standard_output(session: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(printed("export", session, "-f", "csv"))))
    assert [row["verdict"] for row in rows] == ["valid"] * 6
    assert [float(row["iops"]) for row in rows] == [one.metrics["iops"].value for one in RESULTS]
    assert printed("export", session, "-f", "markdown").count(" valid |") == 6
    assert printed("export", session, "-f", "json") == printed("show", session, "--json")


def test_export_to_a_file_replaces_it_whole(session: Path, tmp_path: Path) -> None:
    file = tmp_path / "results.csv"
    file.write_text("old", encoding="utf-8")
    assert printed("export", session, "-f", "csv", "-o", file) == f"{file}\n"
    assert file.read_text() == printed("export", session, "-f", "csv")
    refused("export", session, "-f", "csv", "-o", tmp_path / "no" / "such", code=6)
    assert list(tmp_path.iterdir()) == [file]
    (tmp_path / "taken").mkdir()
    refused("export", session, "-f", "csv", "-o", tmp_path / "taken", code=6)
    assert {path.name for path in tmp_path.iterdir()} == {"results.csv", "taken"}


def test_export_of_points_has_a_row_for_all_repeats(tmp_path: Path) -> None:
    session = make_target(tmp_path / "S", Target(repeats=3, points=2))
    rows = list(csv.DictReader(io.StringIO(printed("export", session, "-f", "csv", "--points"))))
    assert [row["axis_bs"] for row in rows] == ["4k", "8k"]
    runs = csv.DictReader(io.StringIO(printed("export", session, "-f", "csv")))
    assert len(list(runs)) == 6


def test_export_to_parquet(session: Path, tmp_path: Path) -> None:
    file = tmp_path / "results.parquet"
    assert printed("export", session, "-f", "parquet", "-o", file) == f"{file}\n"
    found = read_parquet_columns(file, ["workload", "iops", "repeat", "axis_iodepth"])
    values = [result.metrics["iops"].value for result in RESULTS]
    assert found["iops"].tolist() == values
    assert found["repeat"].tolist() == [1] * 6
    assert found["workload"].tolist() == [result.workload for result in RESULTS]
    kinds = {name: kind for name, kind, *_ in duckdb.read_parquet(str(file)).description}
    assert str(kinds["write_lat_ns_p99_99"]) == str(kinds["iops"]) == "DOUBLE"
    assert str(kinds["failure"]) == str(kinds["workload"]) == "VARCHAR"
    assert "--out" in refused("export", session, "-f", "parquet")


def test_a_report_is_written_beside_its_session(session: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(session, tmp_path / "S"))
    assert printed("report", copy) == f"{copy / 'report.html'}\n"
    assert "<html" in (copy / "report.html").read_text(encoding="utf-8")


def test_a_report_is_written_in_every_form_asked_for(session: Path, tmp_path: Path) -> None:
    pdf, text = tmp_path / "brief.pdf", tmp_path / "brief.md"
    asked = ("--pdf", pdf, "--md", text, "--paper", "letter")
    files = [str(file) for one in (pdf, text) for file in (one, appendix_path(one))]
    assert document("report", session, *asked, "--json")["written"] == files
    assert all(Path(file).is_file() for file in files)
    assert pdf.read_bytes().startswith(b"%PDF-")
    assert text.read_text(encoding="utf-8").startswith("# ")
    page = tmp_path / "r.html"
    assert document("report", session, "--html", page, "--json") == {
        "format": 1,
        "written": str(page),
    }
    refused("report", session, "--md", tmp_path / "no" / "such.md", code=6)


FINE = RESULTS[0]
POOR = replace(FINE, verdict=Verdict(VerdictLevel.INDICATIVE, ()))
BAD = replace(FINE, verdict=Verdict(VerdictLevel.INVALID, ()))
FAILED = replace(BAD, status=RunStatus.FAILED)
DONE, STOPPED, LOST = SessionStatus.DONE, SessionStatus.INTERRUPTED, SessionStatus.FAILED


@pytest.mark.parametrize(
    ("status", "results", "fail_on", "code"),
    [
        (DONE, [FINE], FailOnLevel.INDICATIVE, 0),
        (DONE, [POOR, BAD], None, 0),
        (DONE, [POOR, FINE], FailOnLevel.INVALID, 0),
        (DONE, [POOR, FINE], FailOnLevel.INDICATIVE, 1),
        (DONE, [FINE, BAD], FailOnLevel.INVALID, 1),
        (DONE, [FINE, BAD], FailOnLevel.INDICATIVE, 1),
        (DONE, [FAILED, POOR], FailOnLevel.INVALID, 4),
        (DONE, [POOR, FAILED], None, 4),
        (STOPPED, [FAILED], FailOnLevel.INVALID, 130),
        (LOST, [FAILED], FailOnLevel.INVALID, 3),
    ],
)
def test_the_exit_code_of_a_session_that_came_to_its_end(
    status: SessionStatus, results: list[RunResult], fail_on: FailOnLevel | None, code: int
) -> None:
    assert session_exit_code(status, results, fail_on) == code


def test_fail_on_makes_show_a_gate(session: Path, tmp_path: Path) -> None:
    target = Target(points=1, repeats=1, result=lambda one: replace(one, verdict=POOR.verdict))
    poor = make_target(tmp_path / "poor", target)
    asked = ((session, "indicative"), (poor, "invalid"), (poor, "indicative"))
    codes = [call("show", where, "--fail-on", level).returncode for where, level in asked]
    assert codes == [0, 0, 1]


@pytest.mark.parametrize(
    "words",
    [
        ("export", "-f", "csv", "-o"),
        ("export", "-f", "json", "-o"),
        ("export", "-f", "parquet", "-o"),
        ("report", "--html"),
        ("report", "--md"),
        ("report", "--pdf"),
    ],
    ids=lambda words: "-".join(words),
)
def test_output_goes_where_its_path_leads(
    session: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    command, *options = words
    there, link = tmp_path / "there", tmp_path / "link"
    there.write_text("old", encoding="utf-8")
    link.symlink_to("there")
    printed(command, session, *options, link)
    assert link.is_symlink()
    assert there.stat().st_size > 3


@pytest.mark.parametrize(
    ("path", "message"), [("", "--path is empty"), ("/", "--path /"), ("/..", "root")]
)
def test_a_path_that_nobody_means_is_refused(path: str, message: str) -> None:
    assert message in refused("plan", "cluster-kpi", "--path", path)
