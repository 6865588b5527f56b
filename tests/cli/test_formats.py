"""`--format` of commands that print results: the same records as JSON, CSV and Markdown."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from iolab.report.table import records_csv, records_markdown
from tests.cli.in_process import call

PRINTED = {
    "studies": (("studies",), "studies"),
    "plan": (("plan", "cluster-kpi", "--offline"), "runs"),
    "explain": (("explain",), "checks"),
    "reference": (("reference",), "sets"),
    "ls": (("ls",), "sessions"),
}
"""Command lines by what they list, and where it stands in their JSON."""


@pytest.mark.parametrize("words", PRINTED)
def test_a_list_has_the_same_rows_in_every_format(words: str, session: Path) -> None:
    command, key = PRINTED[words]

    def printed(kind: str) -> str:
        done = call(*command, "--format", kind, cwd=session.parent)
        assert done.returncode == 0, done.stderr
        return done.stdout

    rows = json.loads(printed("json"))[key]
    assert json.loads(call(*command, "--json", cwd=session.parent).stdout)[key] == rows
    read = list(csv.DictReader(io.StringIO(printed("csv"))))
    assert [row[next(iter(row))] for row in read] == [str(row[next(iter(row))]) for row in rows]
    assert len(printed("markdown").splitlines()) == len(rows) + 2


def test_what_lies_deeper_is_named_with_dots_and_lists_are_one_text() -> None:
    records = [{"a": 1, "b": {"c": None, "d": "x|y"}}, {"a": 2, "e": [1, 2]}]
    rows = list(csv.DictReader(io.StringIO(records_csv(records))))
    assert rows == [
        {"a": "1", "b.c": "", "b.d": "x|y", "e": ""},
        {"a": "2", "b.c": "", "b.d": "", "e": "1; 2"},
    ]
    assert records_markdown(records).splitlines()[2] == "| 1 |  | x\\|y |  |"


def test_results_are_printed_as_export_has_them(session: Path) -> None:
    for kind in ("csv", "markdown"):
        assert call("show", session, "-f", kind).stdout == (
            call("export", session, "--format", kind).stdout
        )


def test_an_error_is_a_document_where_json_is_asked_for() -> None:
    for words in (("--json",), ("--format", "json"), ("-f", "json"), ("--format=json",)):
        done = call("show", "/nonexistent", *words)
        assert json.loads(done.stdout)["error"]["exit_code"] == done.returncode
