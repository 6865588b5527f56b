"""Nodes of guests in the JSON document, in CSV and in the columns of Parquet."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from iolab.core.metric import LatencyLayer, Metric, Outlier, Result
from iolab.report.results import TEXT_COLUMNS, columns_csv, node_columns, node_document
from tests.analysis.records import healthy
from tests.guests.fleets import GUESTS, NODES, counted, facts, run
from tests.judging import judge
from tests.report.made import session_document
from tests.report.studies import sweep

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "schema" / "show.json").read_text(encoding="utf-8")
)


@pytest.fixture(scope="module")
def results() -> tuple[Result, ...]:
    """Two repeats, the first with a device that stands out and a number that is none."""
    first = judge(counted(run()), facts())
    odd = Outlier("disk", "sdd", "write_lat_ns", math.inf, 1e5)
    nodes = (replace(first.nodes[0], outliers=(odd,)), first.nodes[1])
    tail = {"read_lat_ns_p99": Metric(9e6, "ns", 8e6, 1e7)}
    nodes = (replace(nodes[0], hypervisor=tail), nodes[1])
    return replace(first, nodes=nodes), replace(first, repeat=2)


def test_the_document_has_the_nodes_of_every_result_and_point(results: tuple[Result, ...]) -> None:
    document = json.loads(
        json.dumps(session_document(sweep(seconds=6).study, results), allow_nan=False)
    )
    jsonschema.validate(document, SCHEMA, cls=jsonschema.Draft202012Validator)
    first, second = document["results"][0]["nodes"]
    assert (first["name"], second["name"]) == NODES
    assert first["guests"] == list(GUESTS[:2])
    assert first["metrics"]["iops"]["value"] == pytest.approx(2000)
    assert [one["layer"] for one in first["layers"]] == [layer.value for layer in LatencyLayer]
    assert first["layers"][3] == {
        "layer": "device",
        "direction": "read",
        "mean_ns": pytest.approx(1e6),
        "ios": 60_000,
    }
    assert first["hypervisor"]["read_lat_ns_p99"]["high"] == 1e7
    assert (first["outliers"][0]["name"], first["outliers"][0]["value"]) == ("sdd", None)
    assert first["written"] == {"guests": 0, "hypervisor": 0, "devices": 0, "factor": 1.0}
    (point,) = document["points"]
    assert list(point["nodes"]) == list(NODES)
    assert point["nodes"]["n2"]["iops"]["value"] == pytest.approx(2000)
    assert point["nodes"]["n2"]["iops"]["n"] == 2


def test_load_without_guests_has_none() -> None:
    result = judge(healthy(), {})
    document = session_document(sweep(seconds=6).study, [result])
    jsonschema.validate(document, SCHEMA, cls=jsonschema.Draft202012Validator)
    assert document["results"][0]["nodes"] == []
    assert document["points"][0]["nodes"] == {}
    assert node_columns([result])["node"] == []


def test_a_row_of_csv_is_a_run_on_a_node(results: tuple[Result, ...]) -> None:
    rows = list(csv.DictReader(io.StringIO(columns_csv(node_columns(results)), newline="")))
    assert [(row["repeat"], row["node"]) for row in rows] == [
        (repeat, node) for repeat in ("1", "2") for node in NODES
    ]
    assert rows[0]["outliers"] == "disk:sdd:write_lat_ns"
    assert float(rows[0]["device_read_lat_ns_mean"]) == pytest.approx(1e6)
    assert "device_write_lat_ns_mean" not in rows[0]
    assert rows[0]["hypervisor_read_lat_ns_p99_low"] == "8000000.0"
    assert rows[1]["hypervisor_read_lat_ns_p99"] == ""
    assert (rows[0]["guest_count"], rows[0]["write_factor"]) == ("2", "1.0")
    columns = node_columns(results)
    assert {len(column) for column in columns.values()} == {4}
    texts = {name for name, values in columns.items() if any(isinstance(v, str) for v in values)}
    assert texts <= TEXT_COLUMNS


def test_what_is_not_known_stays_empty(results: tuple[Result, ...]) -> None:
    bare = replace(results[0].nodes[0], written=None, layers=(), outliers=())
    assert node_document(bare)["written"] is None
    columns = node_columns([replace(results[0], nodes=(bare,))])
    assert columns["guests_write_bytes"] == [None]
    assert not any("lat_ns_mean" in name and name.startswith("device") for name in columns)
