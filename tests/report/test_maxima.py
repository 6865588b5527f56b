"""The best of every workload with its place, and one client beside the fleet."""

from __future__ import annotations

from msgspec.structs import replace

from iolab.core.metric import VerdictLevel
from iolab.report.charts.chart import ReportSection
from iolab.report.formats.markdown import render_appendix, render_markdown
from iolab.report.maxima import maxima_section as maxima_section
from tests.facts import tells
from tests.guests.guest_session import fleet
from tests.loads.keyvalue.key_value_session import rocksdb
from tests.loads.metadata.metadata_session import kpi_with_metadata
from tests.report.made import build_brief
from tests.report.priced import READ, configuration, published_session, section, session
from tests.report.synthetic import Source
from tests.report.test_value import RATES, cells, told

TWO = (configuration("plain"), configuration("fast"))


def maxima(source: Source) -> ReportSection:
    found = section(source, maxima_section)
    assert found is not None
    return found


def test_each_best_names_its_place_and_its_factor_over_the_first() -> None:
    lower = {("fast", "rand-read-4k", 1): 100_000.0, ("plain", "rand-read-4k", 1): 250_000.0}
    best, *_ = maxima(session(TWO, {**RATES, **lower})).groups
    assert cells(best.table) == [
        ["Random read", "Plain", "iodepth 8", "300 k IOPS", "n=1", "2", "–", "valid"],
        ["Random read", "Fast", "iodepth 8", "900 k IOPS", "n=1", "2", "3", "valid"],
        ["Sequential write", "Plain", "iodepth 8", "6 GB/s", "n=1", "1", "–", "valid"],
        ["Sequential write", "Fast", "iodepth 1", "12 GB/s", "n=1", "1", "2", "valid"],
    ]
    iops, bandwidth = best.charts
    assert tells(iops.finding, "900 k IOPS", "Fast", "iodepth 8")
    assert tells(bandwidth.finding, "12 GB/s", "Fast", "iodepth 1")
    assert len(iops.table.rows) == len(bandwidth.table.rows) == 2


def test_bests_at_unlike_loads_are_said_to_be_that_below_their_dots() -> None:
    lower = {("fast", "rand-read-4k", 1): 100_000.0, ("plain", "rand-read-4k", 1): 250_000.0}
    best, *_ = maxima(session(TWO, {**RATES, **lower})).groups
    iops, bandwidth = best.charts
    assert "loads differ" not in iops.note
    assert tells(bandwidth.note, "loads differ", "Plain at iodepth 8", "Fast at iodepth 1")


def test_an_invalid_best_stands_only_where_there_is_no_other_and_claims_nothing() -> None:
    rates = {**RATES, ("fast", "rand-read-4k", 1): 100_000.0}
    levels = {("fast", "rand-read-4k", 8): VerdictLevel.INVALID}
    best, *_ = maxima(session(TWO, rates, levels)).groups
    assert told(best.table, "Best")[1] == "100 k IOPS"
    alone, *_ = maxima(session(TWO, RATES, levels)).groups
    assert told(alone.table, "Best")[1] == "900 k IOPS"
    assert told(alone.table, "Verdict")[1] == "invalid"
    assert told(alone.table, "Times Plain")[1] == "–"
    assert tells(alone.charts[0].finding, "300 k IOPS", "Plain", "invalid")
    both = {**levels, ("plain", "rand-read-4k", 8): VerdictLevel.INVALID}
    none, *_ = maxima(session(TWO, RATES, both)).groups
    assert tells(none.charts[0].finding, "iodepth 8", "invalid", "All", "invalid")
    assert "Factors" in none.note
    assert "Factors" not in maxima(session(TWO[:1], RATES)).groups[0].note


def test_a_fleet_has_the_mean_of_its_hosts_and_stands_beside_one_of_them() -> None:
    one = replace(TWO[0], id="one", title="One", hosts=("client-1",))
    rates = {**RATES, ("one", "rand-read-4k", 8): 200_000.0}
    _, clients = maxima(session((*TWO, one), rates)).groups
    assert clients.title == "One client and the fleet"
    assert cells(clients.table)[0] == [
        "Random read", "Plain", "2", "300 k IOPS", "150 k IOPS", "150 k IOPS", "150 k IOPS",
        "200 k IOPS", "1.5", "0.75", "valid",
    ]  # fmt: skip
    assert told(clients.table, "One client alone") == ["200 k IOPS", "–", "–", "–"]
    (figure,) = clients.charts
    assert tells(figure.finding, "2 hosts", "Plain", "75 %", "one", "alone")


def test_one_host_of_a_varied_number_is_the_single_client() -> None:
    found = session((TWO[0],), {("plain", "rand-read-4k", 8): 300_000.0})
    other, many, *_ = found.results()
    single = replace(
        many,
        axis_values=(*many.axis_values, ("hosts", 1)),
        digest=other.digest,
        hosts=many.hosts[:1],
        metrics={"iops": replace(many.metrics["iops"], value=240_000.0)},
    )
    whole = replace(many, axis_values=(*many.axis_values, ("hosts", 2)))
    _, clients = maxima(replace(found, results_given=(whole, single))).groups
    assert told(clients.table, "One client alone") == ["240 k IOPS"]
    assert told(clients.table, "Total over one") == ["1.25"]
    assert told(clients.table, "Mean over one") == ["0.625"]


def test_single_clients_alone_are_no_fleet() -> None:
    one = configuration("plain", hosts=1)
    (best,) = maxima(session((one,), RATES)).groups
    assert [row[1] for row in cells(best.table)] == ["Plain", "Plain"]
    assert best.table is not None
    assert "Times Plain" not in [column.title for column in best.table.columns]


def test_published_maxima_stand_at_their_depths_with_their_factors() -> None:
    best, clients = maxima(published_session()).groups
    rows = {(row[0], row[1]): row for row in cells(best.table)}
    assert rows["rand-read-4k", "performance"][2:4] == ["iodepth 16", "6.60 M IOPS"]
    assert rows["rand-write-4k", "high-capacity"][2:4] == ["iodepth 4", "1.10 M IOPS"]
    assert rows["seq-read-1m", "mainstream"][2:4] == ["iodepth 1", "104 GB/s"]
    assert rows["rand-read-4k", "performance"][6] == "1.27"
    means = {(row[0], row[1]): row[4] for row in cells(clients.table)}
    assert means["seq-read-1m", "performance"] == "18.9 GB/s"


def test_operations_on_keys_are_told_apart_and_guests_are_no_hosts() -> None:
    best, *_ = maxima(rocksdb()).groups
    names = set(told(best.table, "Workload"))
    assert any("16k" in name for name in names)
    assert any("4k" in name for name in names)
    assert {one.title.split(",")[0] for one in best.charts} == {"Best operations a second"}
    guests = maxima(fleet())
    assert [one.title for one in guests.groups] == [""]


def test_metadata_alone_has_no_best_figure() -> None:
    assert section(kpi_with_metadata(io=False), maxima_section) is None


def test_the_text_brief_has_the_tables() -> None:
    made = build_brief(session(TWO, RATES))
    text = render_appendix(made)
    assert "## Best figures" in text
    assert "## Capacity and size" in render_markdown(made)
    assert f"| {READ.title} | Fast | iodepth 8 | 900 k IOPS |" in text
