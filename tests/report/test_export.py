from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from msgspec.structs import replace

from iolab.analysis.points import summarise_points
from iolab.core.metric import CheckResult, Metric, RunResult, Verdict, VerdictLevel
from iolab.report.best import best_point_headlines
from iolab.report.results import columns_csv, point_columns, result_columns
from tests.report.made import session_document, session_markdown
from tests.report.studies import kpi, sweep
from tests.report.synthetic import Source

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "schema" / "show.json").read_text(encoding="utf-8")
)


@pytest.fixture(scope="module")
def source() -> Source:
    return sweep(seconds=6)


def parsed(source: Source) -> Any:
    text = json.dumps(session_document(source.study, source.results()), allow_nan=False)
    return json.loads(text)


def hostile(result: RunResult, text: str) -> RunResult:
    check = CheckResult("x", VerdictLevel.INVALID, text, {"text": text, "nan": math.nan})
    metrics = {**result.metrics, "iops": Metric(math.inf, "1/s")}
    return replace(
        result,
        workload=text,
        failure=text,
        metrics=metrics,
        verdict=Verdict(VerdictLevel.INVALID, (check,)),
    )


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("make", [kpi, sweep])
def test_the_document_keeps_to_its_schema(make: Any) -> None:
    jsonschema.validate(parsed(make()), SCHEMA, cls=jsonschema.Draft202012Validator)


def test_the_document_has_the_promised_shape(source: Source) -> None:
    document = parsed(source)
    first = document["results"][0]
    keys = ["format", "study", "configurations", "points", "results"]
    keys += ["iterations", "gains", "load", "damaged"]
    assert list(document) == keys
    assert (first["axis"], first["repeat"], first["status"]) == ({"iodepth": 1}, 1, "done")
    assert set(first["metrics"]["iops"]) == {"value", "unit", "low", "high", "n"}
    assert first["hosts"][0]["iops"]["value"] == pytest.approx(first["metrics"]["iops"]["value"])
    assert first["verdict"]["checks"][1]["evidence"]["rho"] == 0.9971


def repeated(source: Source) -> list[RunResult]:
    """The first point three times, with rates apart."""
    first = source.results()[0]
    rates = (1000.0, 1010.0, 990.0)
    return [
        replace(first, repeat=n, metrics={**first.metrics, "iops": Metric(rate, "1/s")})
        for n, rate in enumerate(rates, start=1)
    ]


def test_every_form_tells_the_same_published_value(source: Source) -> None:
    results = repeated(source)
    (point,) = summarise_points(results, source.study)
    metric = point.metrics["iops"]
    document = json.loads(json.dumps(session_document(source.study, results)))
    jsonschema.validate(document, SCHEMA, cls=jsonschema.Draft202012Validator)
    (told,) = document["points"]
    assert (told["repeats"], told["left_out"], told["notes"]) == ([1, 2, 3], [], [])
    assert told["metrics"]["iops"]["low"] == metric.low
    (row,) = csv.DictReader(io.StringIO(columns_csv(point_columns([point])), newline=""))
    assert float(row["iops"]) == metric.value
    assert [float(row["iops_low"]), float(row["iops_high"])] == [metric.low, metric.high]
    assert (row["runs"], row["iops_n"]) == ("3", "3")
    best = best_point_headlines(source.study, summarise_points(results, source.study))[0].best
    assert best is not None
    assert best.headline_metric == metric
    lines = session_markdown(source.study, results).splitlines()
    assert "1.00 k " in lines[4]
    assert "n=3" in lines[4]


def test_a_schema_that_misses_something_would_be_noticed(source: Source) -> None:
    document = parsed(source)
    del document["results"][0]["verdict"]["level"]
    with pytest.raises(jsonschema.ValidationError, match="level"):
        jsonschema.validate(document, SCHEMA, cls=jsonschema.Draft202012Validator)


def test_what_is_not_finite_is_unknown(source: Source) -> None:
    results = [hostile(source.results()[0], "x")]
    document = session_document(source.study, results)
    text = json.dumps(document, allow_nan=False)
    jsonschema.validate(json.loads(text), SCHEMA, cls=jsonschema.Draft202012Validator)
    assert document["results"][0]["metrics"]["iops"]["value"] is None


def test_csv_reads_back_to_the_same_numbers(source: Source) -> None:
    text = columns_csv(result_columns(source.results()))
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert text.count("\r\n") == len(source.results()) + 1
    assert len(rows) == len(source.results())
    for row, result in zip(rows, source.results(), strict=True):
        value = result.metrics["lat_ns_mean"].value
        assert row["lat_ns_mean"] == ("" if value is None else repr(value))
        assert row["verdict"] == result.verdict.level.value


def test_every_result_has_the_same_columns(source: Source) -> None:
    found = result_columns(source.results())
    assert {len(column) for column in found.values()} == {len(source.results())}
    assert "axis_iodepth" in found


def test_intervals_get_columns_once_they_are_known(source: Source) -> None:
    first = source.results()[0]
    known = replace(first, metrics={**first.metrics, "iops": Metric(5.0, "1/s", 4.0, 6.0, 3)})
    found = result_columns([known, first])
    assert (found["iops_low"], found["iops_n"]) == ([4.0, None], [3, None])
    assert "lat_ns_mean_low" not in found


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "|cmd", "%0"])
def test_a_spreadsheet_sees_text_and_no_formula(source: Source, text: str) -> None:
    rows = list(
        csv.reader(io.StringIO(columns_csv(result_columns([hostile(source.results()[0], text)]))))
    )
    assert rows[1][1] == f"'{text}"


@pytest.mark.parametrize("text", ['a"b', "a,b", "a\nb", "ünï"])
def test_csv_quotes_what_it_must(source: Source, text: str) -> None:
    rows = list(
        csv.reader(
            io.StringIO(
                columns_csv(result_columns([hostile(source.results()[0], text)])), newline=""
            )
        )
    )
    assert rows[1][1] == text


def test_markdown_is_a_table_of_equal_rows_whatever_the_names(source: Source) -> None:
    bad = hostile(source.results()[0], "a|b\n`c`<img src=x>\\|")
    lines = session_markdown(source.study, [bad, *source.results()]).splitlines()[2:]
    bars = {line.replace("\\\\", "").replace("\\|", "").count("|") for line in lines}
    assert len(bars) == 1
    assert "<img" not in "\n".join(lines).replace(r"\<", "")
