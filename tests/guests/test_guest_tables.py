"""Guests and nodes in tables: layers, bytes, outliers, shares of time; devices counted once."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from msgspec.structs import replace

from iolab.analysis.storage_bytes import distinct_device_deltas
from iolab.core.metric import (
    CheckResult,
    HypervisorResult,
    LatencyLayer,
    LayerLatency,
    Metric,
    Outlier,
    RunResult,
    Verdict,
    VerdictLevel,
)
from iolab.core.run import DeviceDelta, RunRecord
from iolab.core.workload import Direction
from iolab.guests.guest import GuestFleet, GuestRun, guest_fleet_of_run
from iolab.guests.report import (
    EMULATED,
    fleet_caveat_texts,
    short_fleet_caveat_text,
    study_caveat_texts,
)
from iolab.guests.tables import (
    GUESTS_SHOWN,
    guest_settings_table,
    guests_by_node_table,
    guests_table,
    layer_latencies_of_fleet,
    outliers_table,
    vcpu_wait_share,
    written_bytes_table,
)
from iolab.hosts.rates import derive_counter_series
from iolab.report.charts.run_series import build_timeline
from iolab.report.hardware import group_identical_hosts, hardware_tables
from iolab.report.results import (
    TEXT_COLUMNS,
    columns_csv,
    hypervisor_result_columns,
    hypervisor_result_document,
)
from iolab.report.table import Table
from tests.analysis.records import healthy
from tests.guests import guest_session
from tests.guests.fleets import GUESTS, NODES, counted, facts, run
from tests.guests.guest_session import GuestSource, fleet
from tests.judging import judge
from tests.report import shared
from tests.report.machines import facts_of
from tests.report.made import session_document
from tests.report.studies import kpi, sweep
from tests.report.synthetic import objecting

PUBLISHED = Path(__file__).parents[2] / "studies" / "published"
EMULATED_FLEET = guest_session.EMULATED


@pytest.fixture(scope="module")
def source() -> GuestSource:
    return shared.guests()


def rows_of(table: Table | None) -> list[dict[str, str]]:
    assert table is not None
    heads = [column.title for column in table.columns]
    return [dict(zip(heads, (c.text for c in cells), strict=True)) for cells in table.rows]


def test_guests_that_were_there_say_nothing_of_themselves() -> None:
    told = GuestFleet((GuestRun("vm", "n"),), None, 1)
    assert (fleet_caveat_texts([told], {}), short_fleet_caveat_text([told], {})) == ((), "")
    assert fleet_caveat_texts([told], {"vm": facts_of("vm")}) == ()
    assert guest_settings_table(None) is None
    assert guests_table(told) is None
    assert rows_of(guests_by_node_table(told))[0]["Run by"] == "a hypervisor not ours"


def test_guests_that_were_there_and_are_emulated_are_told_as_those() -> None:
    told = GuestFleet((GuestRun("vm", "n"),), None, 1)
    seen = facts_of("vm")
    known = {"vm": replace(seen, kernel=replace(seen.kernel, hypervisor="TCGTCGTCGTCG"))}
    assert fleet_caveat_texts([told], known) == (EMULATED,)
    assert short_fleet_caveat_text([told], known) == "Guests emulated. "


def test_the_screen_has_the_same_caveats_by_checks_and_settings() -> None:
    source = fleet(counts=(1,), depths=(1,), seconds=2, settings=EMULATED_FLEET)
    results = source.results()
    limit = "Each guest’s disk was limited to 400 IOPS by its hypervisor."
    assert study_caveat_texts(EMULATED_FLEET, results) == (limit,)
    said = objecting(VerdictLevel.INDICATIVE, "emulated-guest", "The guests were emulated.")
    doubted = [replace(results[0], verdict=said), *results[1:]]
    assert study_caveat_texts(EMULATED_FLEET, doubted) == (EMULATED, limit)
    assert study_caveat_texts(None, results) == ()


def test_a_boot_may_take_as_long_as_was_written() -> None:
    told = {one["What"]: one["Each guest"] for one in rows_of(guest_settings_table(EMULATED_FLEET))}
    assert told["A boot may take"] == "150 s"


def test_layers_of_several_nodes_weigh_every_io_the_same() -> None:
    def node(name: str, mean: float, ios: int, *layers: LatencyLayer) -> HypervisorResult:
        own = tuple(LayerLatency(layer, Direction.READ, mean, ios) for layer in layers)
        return HypervisorResult(name, ("vm",), {}, own)

    both = (LatencyLayer.ENGINE, LatencyLayer.GUEST)
    found = layer_latencies_of_fleet([node("a", 100.0, 1, *both), node("b", 400.0, 3, *both)])
    assert [(one.layer, one.mean_ns, one.ios) for one in found] == [
        (LatencyLayer.ENGINE, 325.0, 4),
        (LatencyLayer.GUEST, 325.0, 4),
    ]
    lacking = layer_latencies_of_fleet(
        [node("a", 100.0, 1, *both), node("b", 400.0, 3, LatencyLayer.ENGINE)]
    )
    assert [one.layer for one in lacking] == [LatencyLayer.ENGINE]


def test_bytes_are_told_on_their_way_down(source: GuestSource) -> None:
    (first, *_) = rows_of(written_bytes_table([("6 VMs", source.results()[-1])]))
    assert (first["Guests"], first["Devices"], first["Devices / guests"]) == (
        "1 GiB",
        "3 GiB",
        "3.000",
    )
    assert first["Declared factor"] == "3"
    assert written_bytes_table([("reads", source.results()[0])]) is None


def test_devices_of_all_nodes_are_those_that_the_check_counted(source: GuestSource) -> None:
    run = source.results()[-1]
    assert rows_of(written_bytes_table([("", run)]))[-1]["Devices"] == "–"
    told = CheckResult("guest-bytes", VerdictLevel.VALID, "", {"devices_write_bytes": 6 << 30})
    counted = replace(run, verdict=Verdict(VerdictLevel.VALID, (told,)))
    whole = rows_of(written_bytes_table([("", counted)]))[-1]
    assert (whole["Node"], whole["Guests"], whole["Devices"]) == ("all nodes", "2 GiB", "6 GiB")
    assert (whole["Devices / guests"], whole["Declared factor"]) == ("3.000", "3")


def test_what_stands_out_is_named_with_its_median(source: GuestSource) -> None:
    (told,) = rows_of(outliers_table([("6 VMs", source.results()[-1])]))
    assert (told["What"], told["Which"], told["Measured"]) == ("disk", "nvme1n1", "write latency")
    assert (told["Value"], told["Median of all"], told["Times as much"]) == (
        "412 µs",
        "88 µs",
        "4.68",
    )


def test_a_waiting_guest_is_told_by_the_share_of_its_processors_time(source: GuestSource) -> None:
    told = guest_fleet_of_run(source.manifest(*key(source, -1)))
    assert told is not None
    assert vcpu_wait_share(told.guests[1], told.settings) == pytest.approx(0.5 / 30 / 4)
    rows = rows_of(guests_table(told))
    assert [row["Guest"] for row in rows][:2] == ["node-2-vm03", "node-2-vm02"]
    many = replace(told, guests=told.guests * 6)
    rows = rows_of(guests_table(many))
    assert len(rows) == GUESTS_SHOWN + 1
    assert rows[-1]["Guest"] == "12 guests that waited less"


def test_guests_whose_disks_are_not_equally_full_are_alike() -> None:
    one, other = facts_of("a"), facts_of("b")
    assert one.target is not None
    fuller = replace(other, target=replace(one.target, free_bytes=1))
    assert [names for names, _ in group_identical_hosts({"a": one, "b": fuller})] == [["a", "b"]]
    larger = replace(other, target=replace(one.target, total_bytes=1))
    assert len(group_identical_hosts({"a": one, "b": larger})) == 2


def test_few_clients_are_all_named() -> None:
    study = kpi().study
    twice = replace(study, configurations=study.configurations * 2)
    (table,) = hardware_tables(twice, {})
    assert [cell.text for cell in table.rows[0]] == ["Clients", *["client-1 and client-2"] * 2]
    assert [width for _, width, _ in table.cell_spans(table.rows[0])] == [1, 2]


def test_a_disk_that_nodes_of_one_kernel_share_counts_once(source: GuestSource) -> None:
    record = source.record(*key(source, -1))
    apart, shared = disks_moved(record, {}), disks_moved(record, dict.fromkeys(source.nodes, "b"))
    assert shared == pytest.approx(np.array(apart) / 2, rel=0.01)


def disks_moved(record: RunRecord, kernels: dict[str, str]) -> list[float]:
    series = derive_counter_series(record.counters, record.host_names)
    panels = build_timeline(record, series, None, kernels).panels
    (disks,) = [panel for panel in panels if panel.title == "Node disks"]
    return [value or 0.0 for value in disks.lines[0].values]


def test_devices_of_one_kernel_count_as_the_host_saw_them_that_saw_most() -> None:
    small, large = (DeviceDelta("sda", size, 0, 1, 0) for size in (10, 30))
    facts = {"a": facts_of("x"), "b": facts_of("x"), "c": facts_of("y")}
    hosts = [("a", (small,)), ("b", (large,)), ("c", (small,))]
    assert distinct_device_deltas(hosts, facts) == (large, small)
    assert distinct_device_deltas(hosts, {}) == (small, large, small)


def key(source: GuestSource, index: int) -> tuple[str, int]:
    run = source.plan.runs[index]
    return run.point.digest, run.repeat


SCHEMA = json.loads(
    (Path(__file__).parents[2] / "schema" / "show.json").read_text(encoding="utf-8")
)


@pytest.fixture(scope="module")
def results() -> tuple[RunResult, ...]:
    """Two repeats, the first with a device that stands out and a number that is none."""
    first = judge(counted(run()), facts())
    odd = Outlier("disk", "sdd", "write_lat_ns", math.inf, 1e5)
    nodes = (replace(first.nodes[0], outliers=(odd,)), first.nodes[1])
    tail = {"read_lat_ns_p99": Metric(9e6, "ns", 8e6, 1e7)}
    nodes = (replace(nodes[0], hypervisor_latencies=tail), nodes[1])
    return replace(first, nodes=nodes), replace(first, repeat=2)


def test_the_document_has_the_nodes_of_every_result_and_point(
    results: tuple[RunResult, ...],
) -> None:
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
    assert hypervisor_result_columns([result])["node"] == []


def test_a_row_of_csv_is_a_run_on_a_node(results: tuple[RunResult, ...]) -> None:
    rows = list(
        csv.DictReader(io.StringIO(columns_csv(hypervisor_result_columns(results)), newline=""))
    )
    assert [(row["repeat"], row["node"]) for row in rows] == [
        (repeat, node) for repeat in ("1", "2") for node in NODES
    ]
    assert rows[0]["outliers"] == "disk:sdd:write_lat_ns"
    assert float(rows[0]["device_read_lat_ns_mean"]) == pytest.approx(1e6)
    assert "device_write_lat_ns_mean" not in rows[0]
    assert rows[0]["hypervisor_read_lat_ns_p99_low"] == "8000000.0"
    assert rows[1]["hypervisor_read_lat_ns_p99"] == ""
    assert (rows[0]["guest_count"], rows[0]["write_factor"]) == ("2", "1.0")
    columns = hypervisor_result_columns(results)
    assert {len(column) for column in columns.values()} == {4}
    texts = {name for name, values in columns.items() if any(isinstance(v, str) for v in values)}
    assert texts <= TEXT_COLUMNS


def test_what_is_not_known_stays_empty(results: tuple[RunResult, ...]) -> None:
    bare = replace(results[0].nodes[0], bytes_written=None, layers=(), outliers=())
    assert hypervisor_result_document(bare)["written"] is None
    columns = hypervisor_result_columns([replace(results[0], nodes=(bare,))])
    assert columns["guests_write_bytes"] == [None]
    assert not any("lat_ns_mean" in name and name.startswith("device") for name in columns)
