"""What configurations give for size and cost, with numbers computed by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from iolab.analysis.energy_cost import yearly_energy_cost
from iolab.analysis.points import PointSummary
from iolab.core.configuration import Capacity, Configuration, ProcurementCost
from iolab.core.metric import Metric, PowerUse, RunResult, VerdictLevel
from iolab.core.power import PowerBoundary
from iolab.report.charts.chart import ChartGroup, Markers
from iolab.report.quotients import figures_per_size_and_cost_section, purchase_table
from iolab.report.table import Table
from iolab.report.value import cost_row, energy_cost_row
from tests.report import shared
from tests.report.made import build_brief
from tests.report.priced import configuration, euros, published_session, section, session
from tests.report.synthetic import Source

RATES = {
    ("plain", "rand-read-4k", 8): 300_000.0,
    ("fast", "rand-read-4k", 8): 900_000.0,
    ("plain", "seq-write-1m", 8): 6e9,
    ("fast", "seq-write-1m", 1): 12e9,
}
TWO = (configuration("plain", cost=euros(300_000)), configuration("fast", cost=euros(600_000)))


def groups(source: Source) -> dict[str, ChartGroup]:
    found = section(source, figures_per_size_and_cost_section)
    assert found is not None
    return {one.title: one for one in found.groups}


def cells(table: Table | None) -> list[list[str]]:
    assert table is not None
    return [[cell.text for cell in row] for row in table.rows]


def told(table: Table | None, title: str) -> list[str]:
    assert table is not None
    place = [one.title for one in table.columns].index(title)
    return [row[place].text for row in table.rows]


def test_best_figures_stand_over_every_size_and_over_money() -> None:
    found = groups(session(TWO, RATES))
    assert list(found) == [
        "",
        "For each TB raw",
        "For each TB usable",
        "For each node",
        "For each 1000 EUR",
    ]
    every = found[""].detail_tables_with_notes[0][0]
    assert cells(every) == [
        ["Random read", "Plain", "300 k IOPS", "500 IOPS", "750 IOPS", "50 k IOPS", "1 k IOPS",
         "valid"],
        ["Random read", "Fast", "900 k IOPS", "1.50 k IOPS", "2.25 k IOPS", "150 k IOPS",
         "1.50 k IOPS", "valid"],
        ["Sequential write", "Plain", "6 GB/s", "10 MB/s", "15 MB/s", "1 GB/s", "20 MB/s",
         "valid"],
        ["Sequential write", "Fast", "12 GB/s", "20 MB/s", "30 MB/s", "2 GB/s", "20 MB/s",
         "valid"],
    ]  # fmt: skip
    names = [one.title for one in found["For each 1000 EUR"].appendix_charts]
    assert names == [
        "IOPS for each 1000 EUR",
        "Bandwidth for each 1000 EUR",
        "Capacity for each 1000 EUR",
    ]
    assert "Fast has the most, 1.50 k" in found["For each 1000 EUR"].appendix_charts[0].finding


def test_what_was_bought_stands_beside_its_cost() -> None:
    found = groups(session(TWO, RATES))[""]
    cost, reads, writes = found.charts
    assert [figure.page_columns for figure in found.charts] == [4, 4, 4]
    assert "Plain 300 k EUR" in cost.finding
    assert "Random read" in reads.title
    assert "Plain 1 k IOPS and 1.33 TB" in reads.finding
    assert "Fast 20 MB/s" in writes.finding
    assert cells(found.detail_tables_with_notes[-1][0])[0] == [
        "Plain", "6", "600 TB", "400 TB", "100 TB", "150,000 EUR", "30,000 EUR", "120,000 EUR",
        "300,000 EUR", "2 TB for 1000 EUR", "1.33 TB for 1000 EUR",
    ]  # fmt: skip


def test_currencies_have_charts_of_their_own_and_the_note_says_so() -> None:
    yen = configuration("fast", cost=ProcurementCost("JPY", 5e7, 1e7, 4e7))
    found = groups(session((TWO[0], yen), RATES))
    assert {"For each 1000 EUR", "For each 1000 JPY"} <= set(found)
    for money in ("EUR", "JPY"):
        for figure in found[f"For each 1000 {money}"].appendix_charts:
            assert len({row[1].text for row in figure.table.rows}) == 1
            assert "has the most" not in figure.finding
    assert len(found[""].charts) == 2
    assert "Costs are in EUR and JPY" in found[""].note


def test_what_is_not_told_of_a_configuration_is_named() -> None:
    bare = replace(configuration("fast"), capacity=Capacity(None, 400.0))
    found = groups(session((TWO[0], bare), RATES))
    note = found[""].note
    assert "raw capacity of Fast" in note
    assert "cost of Fast" in note
    assert "usable capacity" not in note
    assert {row[1].text for row in found["For each TB raw"].appendix_charts[0].table.rows} == {
        "Plain"
    }
    assert told(found[""].detail_tables_with_notes[-1][0], "Cost") == ["300,000 EUR", "–"]


def test_there_is_no_section_where_nothing_is_told() -> None:
    silent = Configuration("plain", "Plain", ("client-1",), "/mnt/plain")
    assert section(session((silent,), RATES), figures_per_size_and_cost_section) is None


def test_an_invalid_figure_is_shown_and_never_the_most() -> None:
    levels = {("fast", "rand-read-4k", 8): VerdictLevel.INVALID}
    found = groups(session(TWO, RATES, levels))
    (figure, *_) = found["For each TB raw"].appendix_charts
    assert told(figure.table, "Verdict") == ["valid", "invalid"]
    assert "Plain has the most" in figure.finding
    assert "Crossed" in figure.note
    levels[("plain", "rand-read-4k", 8)] = VerdictLevel.INVALID
    (figure, *_) = groups(session(TWO, RATES, levels))["For each TB raw"].appendix_charts
    assert figure.finding == "Random read: 1.50 k IOPS (Fast), invalid."


def test_the_cost_of_small_volumes_is_not_rounded_away() -> None:
    month = configuration("plain", cost=ProcurementCost("EUR/month", 0.0, 0.0, 0.15))
    assert told(purchase_table((month,)), "Storage") == ["0.15 EUR/month"]


def test_some_hosts_of_a_configuration_are_no_purchase_of_their_own() -> None:
    one = replace(TWO[0], id="one", title="One", hosts=("client-1",))
    found = groups(session((*TWO, one), {**RATES, ("one", "rand-read-4k", 8): 1.0}))
    assert told(found[""].detail_tables_with_notes[-1][0], "Configuration") == [
        "Plain",
        "Fast",
    ]
    assert "storage there: One." in found[""].note


def test_published_maxima_give_the_printed_figures_per_terabyte_back() -> None:
    found = groups(published_session())
    every = found[""].detail_tables_with_notes[0][0]
    reads = [row for row in cells(every) if row[0] == "rand-read-4k"]
    column = [one.title for one in every.columns].index("For each TB raw")
    assert [row[column] for row in reads] == ["3.53 k IOPS", "11.1 k IOPS", "14.3 k IOPS"]
    (figure, bandwidth) = found["For each TB raw"].appendix_charts
    dots = [one.places[0][0] for one in figure.plots[0].marks if isinstance(one, Markers)]
    assert [round(1000 * one) for one in dots] == pytest.approx([3526, 11068, 14323], abs=1)
    assert "seq-read-1m: performance has the most, 493 MB/s" in bandwidth.finding


def test_hostile_names_and_currencies_stay_text() -> None:
    bad = "<mark>&'\u202e"
    owner = replace(
        configuration("plain", cost=ProcurementCost(bad, 1.0, 1.0, 1.0)),
        title=f"<script>alert(1){bad}",
    )
    page = shared.drawn(build_brief(session((owner, TWO[1]), RATES)))
    assert "<mark>" not in page
    assert "<script>alert" not in page
    assert "\u202e" not in page


def with_node_power(points: Sequence[PointSummary], watts: float) -> list[PointSummary]:
    """The same points, each of which took a watt more than the one before."""
    return [
        replace(point, metrics={**point.metrics, "node_power_w": Metric(watts + number, "W")})
        for number, point in enumerate(points)
    ]


def test_a_year_of_energy_costs_what_the_hungriest_point_takes() -> None:
    cost = replace(euros(1000.0), kwh_price=0.25)
    owners = (configuration("plain", cost=cost), configuration("fast", cost=euros(2000.0)))
    brief = build_brief(session(owners, RATES))
    points = with_node_power(brief.points, 1996.0)
    own = [point for point in points if point.key.configuration == "plain"]
    most = max(point.metrics["node_power_w"].value or 0 for point in own)
    row = energy_cost_row(owners, points)
    assert row is not None
    plain, fast = (row.figure_of_configuration(name) for name in ("plain", "fast"))
    assert plain.amount == pytest.approx(most / 1000 * 8760 * 0.25)
    assert plain.text == f"{plain.amount:,.0f} EUR"
    assert fast.amount is None
    # Of the same points, where no run supports them, nothing is told.
    assert energy_cost_row(owners, [replace(each, is_trusted=False) for each in points]) is None
    assert energy_cost_row(owners, brief.points) is None


@pytest.mark.parametrize(("role", "of_clients"), [("client", True), ("storage", False)])
def test_watts_of_clients_are_told_from_those_of_nodes(role: str, *, of_clients: bool) -> None:
    cost = replace(euros(1000.0), kwh_price=0.25)
    owner = configuration("plain", cost=cost)
    brief = build_brief(session((owner, TWO[1]), RATES))

    def metered(run: RunResult) -> RunResult:
        name = run.hosts[0].name if role == "client" else "node-1"
        use = PowerUse(
            host=name, meter="bmc", boundary=PowerBoundary.NODE, watts=Metric(400.0, "W")
        )
        return replace(run, power=(use,))

    points = [
        replace(point, results=tuple(metered(run) for run in point.results))
        for point in with_node_power(brief.points, 400.0)
    ]
    found = yearly_energy_cost(owner, points)
    assert found is not None
    assert found.covers_only_clients is of_clients
    row = energy_cost_row((owner, TWO[1]), points)
    assert row is not None
    assert ("machines that made the load" in row.title) is of_clients


def test_a_cost_says_what_it_contains_and_is_written_out() -> None:
    owners = (
        configuration("plain", cost=ProcurementCost("EUR", 900.0, 0.0, 740.0)),
        configuration("fast", cost=ProcurementCost("EUR", 900.0, 0.0, 1_440.0)),
    )
    row = cost_row(owners)
    assert row is not None
    assert row.title == "Cost of servers and storage"
    assert [figure.text for figure in row.figures] == ["1,640 EUR", "2,340 EUR"]


def test_what_charts_of_one_group_say_alike_is_said_once() -> None:
    rates = {**RATES, ("plain", "seq-write-1m", 8): 6e9, ("fast", "seq-write-1m", 8): 12e9}
    page = shared.drawn(build_brief(session(TWO, rates)))
    charts = page.count(" against usable capacity</h4>")
    assert charts > 1
    assert page.count("Up and to the right") == 1
