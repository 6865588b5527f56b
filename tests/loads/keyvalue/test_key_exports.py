"""Load on key-value stores in documents and exports, its gains, and what others published."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import jsonschema
import pytest
from msgspec.structs import replace

from iolab.loads.keyvalue.workload import (
    ReportedStatistic,
    key_value_details_of_host,
    server_details_of_run,
    server_settings_or_embedded,
)
from iolab.published.audit.document import parse_published_set
from iolab.published.report import published_tables
from iolab.report.page import build_report_page
from iolab.report.results import columns_csv, result_columns
from tests.facts import tells
from tests.loads.keyvalue.key_value_records import SHAPE
from tests.loads.keyvalue.key_value_session import KeySource, cassandra
from tests.report import shared
from tests.report.hostile import EVERY, SCRIPT
from tests.report.made import build_brief, session_document, session_markdown

SCHEMA = json.loads(
    (Path(__file__).parents[3] / "schema" / "show.json").read_text(encoding="utf-8")
)
PUBLISHED = Path(__file__).parents[3] / "studies" / "published"


@pytest.fixture(scope="module")
def rocks() -> KeySource:
    return shared.keys()


@pytest.fixture(scope="module")
def compared() -> KeySource:
    return shared.two_keys()


def hostile_keys() -> KeySource:
    """Everything that an engine or a server says is hostile."""
    source = cassandra(rates=(1000,), seconds=2)
    study = source.study
    source.study = replace(
        study,
        configurations=tuple(replace(one, title=EVERY) for one in study.configurations),
        workloads=tuple(replace(one, title=EVERY) for one in study.workloads),
        server=replace(server_settings_or_embedded(study), keyspace=EVERY, consistency=EVERY),
    )
    words = (ReportedStatistic(EVERY, 1.0, EVERY),)
    for run in source.plan.runs:
        record = source.record(run.point.digest, run.repeat)
        (host,) = record.hosts
        told, server = key_value_details_of_host(host), server_details_of_run(record)
        assert told is not None
        assert server is not None
        told = replace(told, build=EVERY, copied_by=EVERY, statistics=words)
        told = replace(told, start=replace(SHAPE, tables=None))
        server = replace(server, product=EVERY, java=EVERY, error=EVERY, statistics_after=words)
        hosts = (replace(host, engine_version=EVERY, details=told),)
        key = (run.point.digest, run.repeat)
        source.kept[key] = replace(record, hosts=hosts, details=server)
    return source


def test_the_document_keeps_to_its_schema_and_has_percentiles_of_each_cell(
    rocks: KeySource,
) -> None:
    document = session_document(rocks.study, rocks.results())
    text = json.dumps(document, allow_nan=False)
    jsonschema.validate(json.loads(text), SCHEMA, cls=jsonschema.Draft202012Validator)
    assert len(document["points"]) == 24
    for point in document["points"]:
        assert point["metrics"]["ops_per_s"]["value"] > 0
        for name in ("p50", "p95", "p99"):
            assert point["metrics"][f"read_lat_ns_{name}"]["value"] > 0


def test_the_largest_gain_names_its_cell() -> None:
    page = shared.page("two keys")
    ((largest, _),) = page.gain_tables_with_notes
    assert largest.title == "New against Old"
    heads = [column.title for column in largest.columns]
    first = dict(zip(heads, (cell.text for cell in largest.rows[0]), strict=True))
    assert first["Of"] == "ops/s"
    assert first["At"] in {"threads 32 (of 4 cells)", "threads 64 (of 4 cells)"}
    assert first["Largest gain"].startswith("+2")
    assert first["Says"] == "better"
    assert first["95 % interval"].startswith("[+")
    assert len(largest.rows) == 2 * 3
    bars = page.charts_by_workload[0].charts[0]
    assert "New over Old: +2" in bars.finding
    cells, _ = page.charts_by_workload[0].detail_tables_with_notes[0]
    assert cells.title == "Gain over Old, cell by cell"
    heads = [column.title for column in cells.columns]
    assert heads[heads.index("Factor") - 2 :][:2] == ["Gain", "95 % interval"]
    assert len(cells.rows) == 4 * 3


def test_gains_stand_in_the_document(compared: KeySource) -> None:
    document = session_document(compared.study, compared.results())
    jsonschema.validate(document, SCHEMA, cls=jsonschema.Draft202012Validator)
    (found,) = document["gains"]
    assert (found["baseline"], found["candidate"]) == ("old", "new")
    assert len(found["cells"]) == 8 * 3
    (best,) = [one for one in found["largest"] if one["metric"] == "ops_per_s"]
    cells = [one for one in found["cells"] if one["metric"] == "ops_per_s"]
    assert best["gain"] == max(one["gain"] for one in cells)
    assert best["cells"] == 8
    assert best["low"] < best["gain"] < best["high"]


def test_one_configuration_gains_nothing(rocks: KeySource) -> None:
    assert shared.page("keys").gain_tables_with_notes == ()
    assert session_document(rocks.study, rocks.results())["gains"] == []


def test_a_point_that_one_side_lacks_is_told(compared: KeySource) -> None:
    results = compared.results()
    first = next(one.digest for one in results if one.configuration == "new")
    fewer = tuple(one for one in results if one.digest != first)
    page = build_report_page(build_brief(replace(compared, results_given=fewer)))
    cells, note = page.charts_by_workload[0].detail_tables_with_notes[0]
    assert len(cells.rows) == 3 * 3
    assert tells(note, "Not compared", "1 value", "new"), note


def test_published_results_are_named_as_such() -> None:
    text = (PUBLISHED / "rocksdb.toml").read_text(encoding="utf-8")
    told = published_tables(parse_published_set(text))
    brief = replace(shared.brief("paced"), published=told, chart_data_by_run={})
    page = build_report_page(brief)
    assert ("published", "Published elsewhere") in page.appendix_anchors_and_titles
    assert page.published is not None
    assert page.published.results_table.rows[0][2].text == "840,097"
    html = shared.drawn(brief)
    assert "Not measured in this session" in html
    assert "Micron 9400" in html
    measured = {cell.text for table in page.result_tables for cells in table.rows for cell in cells}
    assert "840,097" not in measured


@pytest.mark.parametrize("name", ["rocksdb", "cassandra"])
def test_published_tables_have_headings_for_people(name: str) -> None:
    found = published_tables(
        parse_published_set((PUBLISHED / f"{name}.toml").read_text(encoding="utf-8"))
    )
    assert found.results_table.rows
    assert not [
        c.title for c in found.results_table.columns if "_" in c.title or "." in c.title[:-9]
    ]


def test_exports_have_the_operations(rocks: KeySource) -> None:
    rows = list(
        csv.DictReader(io.StringIO(columns_csv(result_columns(rocks.results())), newline=""))
    )
    assert float(rows[0]["ops_per_s"]) > 0
    assert float(rows[0]["read_lat_ns_p99_low"]) < float(rows[0]["read_lat_ns_p99"])
    text = session_markdown(rocks.study, rocks.results())
    assert "Operations/s" in text
    assert "IOPS" not in text
    repeated = shared.two_keys()
    assert " n=2" in session_markdown(repeated.study, repeated.results())


def test_hostile_words_of_engines_and_servers_are_only_words() -> None:
    source = hostile_keys()
    text = shared.drawn(build_brief(source))
    assert SCRIPT not in text
    assert "<img" not in text
    assert "\u202e" not in text
    assert "&lt;script&gt;window.hurt=1&lt;/script&gt;" in text
    markdown = session_markdown(source.study, source.results())
    assert SCRIPT not in markdown
