"""Fleets of guests on the page: curves, one node from inside, tables, and what must be said."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from iolab.analysis.points import summarise_points
from iolab.core.metric import Metric, Outlier, VerdictLevel
from iolab.core.run import RunStatus
from iolab.errors import StoreError
from iolab.guests.charts import (
    guest_count_chart_group,
    highest_common_percentile_name_and_note,
    scaling_group_chart_lines,
)
from iolab.guests.groups import (
    guest_scaling_groups,
    run_shown_in_node_timeline,
    runs_needing_manifests,
)
from iolab.guests.guest import Accelerator, GuestDiskKind, GuestSettings, guest_fleet_of_run
from iolab.guests.report import EMULATED
from iolab.guests.tables import guest_fleets_by_run
from iolab.published.audit.document import parse_published_set
from iolab.published.report import published_tables
from iolab.report.brief import Brief
from iolab.report.charts.chart import Bars, series_styles
from iolab.report.page import ReportPage, build_report_page
from iolab.report.runs import NAMES_SHOWN
from iolab.store.documents import Manifest
from tests.facts import tells
from tests.guests import guest_session
from tests.guests.guest_session import GuestSource, fleet
from tests.report import shared
from tests.report.charts.fleets import curve_of
from tests.report.hostile import EVERY, SCRIPT
from tests.report.made import build_brief
from tests.report.synthetic import objecting

PUBLISHED = Path(__file__).parents[2] / "studies" / "published"
EMULATED_FLEET = guest_session.EMULATED


@pytest.fixture(scope="module")
def source() -> GuestSource:
    return shared.guests()


@pytest.fixture(scope="module")
def brief() -> Brief:
    return shared.brief("guests")


@pytest.fixture(scope="module")
def page() -> ReportPage:
    return shared.page("guests")


def test_every_mix_has_its_load_and_an_account(page: ReportPage) -> None:
    charts = {item.title: item.charts for item in page.charts_by_workload}
    more = {
        item.title: [figure.title for figure in item.appendix_charts]
        for item in page.charts_by_workload
    }
    for mix in ("Random reads", "70 % reads, 30 % writes"):
        (load,) = charts[mix]
        assert load.title == mix
        heads = " ".join(column.title for column in load.table.columns)
        assert tells(heads, "VMs per node", "IOPS", "mean latency", "tail latency")
        assert more[mix] == ["Where the latency arises"]
    (inside,) = charts["One node from inside"]
    assert inside.title == "node-1 from inside over time"


def test_a_chart_without_a_tail_has_the_mean_alone(source: GuestSource) -> None:
    (group, _) = guest_scaling_groups(
        source.study, summarise_points(source.results(), source.study)
    )
    few = [
        replace(one, metrics={k: m for k, m in one.metrics.items() if "_p9" not in k})
        for one in group.points
    ]
    charts = guest_count_chart_group(
        replace(group, points=tuple(few)), series_styles(source.study), (), ""
    )
    assert charts is not None
    (load,) = charts.charts
    heads = [column.title for column in load.table.columns]
    assert any("mean latency" in head for head in heads), heads
    assert not any("median" in head or "tail" in head for head in heads), heads
    assert tells(load.note, "No p99", "10,000 I/Os"), load.note


def test_a_curve_says_its_ends_in_guests_of_all_nodes(page: ReportPage) -> None:
    finding = page.charts_by_workload[0].charts[0].finding
    assert finding.startswith("iodepth 1: from ")
    assert " at 2 VMs to " in finding
    assert " at 6; all valid." in finding


def test_each_depth_is_a_line_and_several_configurations_keep_their_colours(
    source: GuestSource,
) -> None:
    (group, _) = guest_scaling_groups(
        source.study, summarise_points(source.results(), source.study)
    )
    looks = series_styles(source.study)
    lines = scaling_group_chart_lines(group, looks)
    assert [(line.name, line.node_count) for line in lines] == [("iodepth 1", 2), ("iodepth 8", 2)]
    assert len({line.color for line in lines}) == len({line.dash for line in lines}) == 2
    other = tuple(
        replace(point, key=replace(point.key, configuration="new")) for point in group.points
    )
    both = replace(group, points=(*group.points, *other))
    named = {"default": looks["default"], "new": replace(looks["default"], title="New")}
    lines = scaling_group_chart_lines(both, named)
    assert [line.name for line in lines] == ["Default 1", "Default 8", "New 1", "New 8"]
    assert lines[0].color == lines[1].color


def test_predicted_guests_are_told_apart(source: GuestSource) -> None:
    (group, _) = guest_scaling_groups(
        source.study, summarise_points(source.results(), source.study)
    )
    charts = guest_count_chart_group(
        group, series_styles(source.study), [curve_of(source, "read", 8)], ""
    )
    assert charts is not None
    (load,) = charts.charts
    assert tells(load.note, "predicted", "knee", "2", "2", "3", "VMs"), load.note
    assert [row[2].text for row in load.table.rows].count("predicted") == 1


def test_the_tail_is_the_highest_that_all_points_support(source: GuestSource) -> None:
    points = list(summarise_points(source.results(), source.study))[:3]
    wanted = {f"lat_ns_{name}": Metric(1e6, "ns") for name in ("mean", "p99", "p99_5", "p99_9")}
    known = replace(points[0], metrics={**wanted, "lat_ns_p99_99": Metric(2e6, "ns")})
    lacking = replace(points[1], metrics={**wanted, "lat_ns_p99_99": Metric(None, "ns")})
    bound = Metric(None, "ns", low=3e6)
    assert highest_common_percentile_name_and_note([known, known]) == ("p99_99", "")
    assert (
        highest_common_percentile_name_and_note(
            [replace(lacking, metrics={**wanted, "lat_ns_p99_99": bound})]
        )[1]
        == ""
    )
    name, note = highest_common_percentile_name_and_note([known, lacking])
    assert name == "p99_9"
    assert tells(note, "p99.99", "1,000,000 I/Os", "1 of 2 points"), note


def test_a_mix_that_is_an_axis_is_a_group_of_its_own(source: GuestSource) -> None:
    points = summarise_points(source.results(), source.study)
    mixed = [
        replace(
            point,
            key=replace(
                point.key, workload="read", axis_values=(*point.key.axis_values, ("rwmixread", mix))
            ),
        )
        for mix, point in zip((100, 0) * len(points), points, strict=False)
    ]
    groups = guest_scaling_groups(source.study, mixed)
    assert [group.title for group in groups] == [
        "Random reads, rwmixread 100",
        "Random reads, rwmixread 0",
    ]


def test_the_node_is_shown_at_the_published_load_with_the_most_guests(
    source: GuestSource, brief: Brief
) -> None:
    assert brief.node_timeline is not None
    run = brief.node_timeline.result
    assert (run.workload, run.axis_values) == ("mixed-70", (("vms_per_node", 3), ("iodepth", 8)))
    reads = [
        p for p in summarise_points(source.results(), source.study) if p.key.workload == "read"
    ]
    other = run_shown_in_node_timeline(source.plan, reads)
    assert other is not None
    assert dict(other.axis_values)["vms_per_node"] == 3


@pytest.mark.parametrize(
    ("disks", "what"), [(("sda", "sdb"), "disks and processors"), ((), "processors")]
)
def test_nodes_that_are_one_machine_are_told_to_be(disks: tuple[str, ...], what: str) -> None:
    source = fleet(counts=(2,), depths=(8,), seconds=3, mixes=guest_session.MIXES[1:])
    kernel = source.facts["node-1"].kernel
    source.facts = {n: replace(one, kernel=kernel) for n, one in source.facts.items()}
    source.disks = disks
    (figure,) = build_report_page(build_brief(source)).charts_by_workload[-1].charts
    assert f" One machine with node-2: its {what} serve the guests of all. " in figure.note


def test_the_node_from_inside_has_all_its_devices(brief: Brief) -> None:
    assert brief.node_timeline is not None
    panels = {one.panel.title: one for one in brief.node_timeline.panels}
    assert [len(one.panel.lines) for one in panels.values()] == [2, 2, 2, 2, 2, 2]
    assert "Read latency of each disk" in panels
    latency = panels["Write latency of each disk"].panel.lines
    assert [trace.values[-1] for trace in latency] == [88_000.0, 412_000.0]
    (share,) = dict(panels["Sent by each port"].link_use_by_trace).values()
    assert share == pytest.approx(186e6 * 8 / 200e9, rel=0.01)


def test_a_run_that_cannot_be_read_costs_the_page_nothing_else() -> None:
    source = fleet(seconds=3)
    bad = source.plan.runs[-1].point.digest

    class Damaged(GuestSource):
        def manifest(self, digest: str, repeat: int) -> Manifest:
            if digest == bad:
                path = "/srv/o'neil/points/x/run-1/manifest.json"
                raise StoreError(f"'{path}' is damaged: it's torn.", "Run it again.")
            return super().manifest(digest, repeat)

    names = ("study", "plan", "facts", "session", "seconds")
    parts = {name: getattr(source, name) for name in names}
    damaged = Damaged(**parts, nodes=source.nodes, results_given=source.results())
    brief = build_brief(damaged)
    message = "'points/x/run-1/manifest.json' is damaged: it's torn."
    assert [hurt.message for hurt in brief.damaged_runs] == [
        message
    ]  # and not where the session lies
    assert brief.node_timeline is None
    assert len(guest_fleets_by_run(brief)) == 11


@pytest.mark.parametrize(
    ("accelerator", "settings", "said"),
    [
        (Accelerator.KVM, guest_session.SETTINGS, ""),
        (
            Accelerator.TCG,
            EMULATED_FLEET,
            "Guests emulated, each disk limited to 400 IOPS. ",
        ),
        (
            Accelerator.KVM,
            replace(guest_session.SETTINGS, disk=GuestDiskKind.MODELLED, latency_ns=10_000_000),
            "Disks modelled at 10 ms. ",
        ),
    ],
)
def test_what_is_no_storage_is_said_on_every_chart(
    accelerator: Accelerator, settings: GuestSettings, said: str
) -> None:
    source = fleet(counts=(1, 2), depths=(8,), seconds=3, settings=settings)
    source.accelerator = accelerator
    page = build_report_page(build_brief(source))
    figures = [
        one for item in page.charts_by_workload for one in (*item.charts, *item.appendix_charts)
    ]
    assert len(figures) == 5
    assert all(figure.finding.startswith(said) for figure in figures)
    assert all(said in figure.alt_text for figure in figures)
    assert bool(page.alerts) == bool(said)
    if accelerator is Accelerator.TCG:
        assert page.alerts[0] == EMULATED


def key(source: GuestSource, index: int) -> tuple[str, int]:
    run = source.plan.runs[index]
    return run.point.digest, run.repeat


def test_what_each_guest_was_given_stands_in_the_configuration(page: ReportPage) -> None:
    settings, placed = page.guest_tables
    told = {cells[0].text: cells[1].text for cells in settings.rows}
    assert told["Processors"] == "4 vCPUs"
    assert tells(told["Disk"], "32 GiB", "image", "in full")
    assert (told["Limit"], told["Replicas"]) == ("none", "on its own node alone")
    assert placed.rows[0][1].text == "node-1-vm01, node-1-vm02 and node-1-vm03"
    assert ("Hosts", "6 guests on 2 nodes") in page.fact_rows


def test_a_fleet_of_96_is_told_in_few_rows() -> None:
    nodes = tuple(f"node-{number}" for number in range(4))
    source = fleet(nodes, counts=(24,), depths=(8,), seconds=2, mixes=guest_session.MIXES[:1])
    page = build_report_page(build_brief(source))
    ((names, _),) = page.host_tables_by_names
    assert names.endswith("and 92 more")
    assert page.topology is not None
    assert "96 guests on 4 nodes" in page.topology.alt_text
    (run,) = page.runs
    assert run.hosts_table is not None
    assert len(run.hosts_table.rows) == 25
    (command,) = run.commands
    assert command.hosts_text.endswith(f"and {96 - NAMES_SHOWN} more")


def test_nodes_stand_on_the_time_axis_of_their_guests(brief: Brief) -> None:
    detail = next(iter(brief.chart_data_by_run.values()))
    assert detail.timeline is not None
    titles = [panel.title for panel in detail.timeline.panels]
    assert titles[-3:] == ["Node disks", "Node ports", "Node processors"]


def test_the_runs_with_the_fewest_and_the_most_guests_are_told_of(source: GuestSource) -> None:
    points = summarise_points(source.results(), source.study)
    keys = runs_needing_manifests(guest_scaling_groups(source.study, points), source.results())
    axes = {run.point.digest: dict(run.point.axis_values) for run in source.plan.runs}
    assert [axes[digest]["vms_per_node"] for digest, _ in keys] == [3, 1, 3, 1] * 2


def test_doubted_points_are_marked_as_elsewhere() -> None:
    source = fleet(counts=(1, 2), depths=(8,), seconds=3)
    source.verdicts[key(source, 0)] = objecting(
        VerdictLevel.INDICATIVE, "emulated-guest", "The guests were emulated."
    )
    page = build_report_page(build_brief(source))
    figure = page.charts_by_workload[0].charts[0]
    assert figure.finding.endswith("; at worst indicative.")
    (bars,) = (one for one in figure.plots[0].marks if isinstance(one, Bars))
    assert VerdictLevel.INDICATIVE in bars.verdict_levels


def test_published_figures_of_a_fleet_stand_apart(brief: Brief) -> None:
    published = published_tables(
        parse_published_set((PUBLISHED / "vm-fleet.toml").read_text(encoding="utf-8"))
    )
    titles = [column.title for column in published.results_table.columns]
    assert titles[:4] == ["Writes, %", "VMs", "Most IOPS", "Mean, µs, depth 1"]
    assert not [title for title in titles if "_" in title]
    assert published.results_table.rows[0][3].text == "224 to 338"
    assert published.node_table is not None
    assert [cell.text for cell in published.node_table.rows[2]] == [
        "IOPS of each SSD",
        "50,000 to 60,000",
    ]
    html = shared.drawn(replace(brief, published=published, chart_data_by_run={}))
    assert "1,900,000" in html
    assert "not to be compared" in html


def test_hostile_names_and_last_words_of_guests_are_only_words() -> None:
    source = fleet(counts=(1, 2), depths=(8,), seconds=2, settings=EMULATED_FLEET)
    bad = Outlier("disk", EVERY, EVERY, 2.0, 1.0)
    source.results_given = tuple(
        replace(
            result,
            hosts=tuple(replace(host, name=EVERY) for host in result.hosts),
            nodes=tuple(replace(node, guests=(EVERY,), outliers=(bad,)) for node in result.nodes),
        )
        for result in source.results()
    )
    died, *others = source.results_given
    source.results_given = (replace(died, status=RunStatus.FAILED, failure=EVERY), *others)
    source.settings = replace(EMULATED_FLEET, kernel=EVERY)
    for record_key, record in list(source.kept.items()):
        told = guest_fleet_of_run(record)
        assert told is not None
        guests = tuple(replace(one, guest=EVERY) for one in told.guests)
        nasty = replace(told, guests=guests, settings=source.settings)
        source.kept[record_key] = replace(record, fleet=nasty, failure=EVERY)
    html = shared.drawn(shared.undrawn(build_brief(source)))
    assert SCRIPT not in html
    assert "<img" not in html
    assert "\u202e" not in html
    assert "&lt;script&gt;window.hurt=1&lt;/script&gt;" in html
