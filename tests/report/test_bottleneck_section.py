"""The section on what limits, of a session in memory."""

from __future__ import annotations

import re

from msgspec.structs import replace

from iolab.analysis.findings import best_point_findings
from iolab.report.bottleneck import ANCHOR, bottlenecks_section
from iolab.report.brief import Brief
from iolab.report.formats.markdown import render_appendix
from iolab.report.gather import BOTTLENECK_RUNS_MAX
from iolab.report.page import build_report_page
from tests.report import shared


def whole() -> Brief:
    return shared.brief("long")


def test_every_best_point_has_a_row_that_leads_to_its_run() -> None:
    section = bottlenecks_section(whole())
    assert section is not None
    (group,) = section.groups
    ((shares_table, _), (names, _)) = group.detail_tables
    heads = [column.title for column in shares_table.columns]
    rows = [dict(zip(heads, row, strict=True)) for row in shares_table.rows]
    found = tuple(best_point_findings(whole().study, whole().points))
    assert len(rows) == len(found) == 10
    assert {row["Configuration"].text for row in rows} == {"Alpha", "Beta"}
    first = rows[0]
    assert (first["Workload"].text, first["At"].text) == ("Random read 4 KiB", "iodepth 16")
    assert first["Verdict"].anchor in whole().run_anchors.values()
    # As the counters were made: 93 % busy, cores at 20, 35, 50 and 65 %, bytes and 3 % of 25 GB/s.
    shares = [first[name].text for name in ("Device", "All cores", "One core", "Each job", "Port")]
    assert shares == ["93 %", "42 %", "65 %", "–", "2.6 %"]
    assert first["In flight"].text.endswith(" of 64")
    assert group.table is not None
    assert len(group.table.rows) < len(rows)  # what they have in common stands once
    told = ", ".join(row[1].text for row in group.table.rows)
    assert all(row["Workload"].text in told for row in rows)
    assert all(row[-1].text.endswith(".") for row in group.table.rows)  # what to do next
    texts = [cell.text for cell in names.rows[0]]
    assert texts[2:] == ["nvme1n1 of client-1", "3 of client-1", "ens1f0np0 in of client-1"]


def test_one_configuration_is_not_named() -> None:
    brief = shared.brief("kpi")
    section = bottlenecks_section(brief)
    assert section is not None
    (group,) = section.groups
    assert group.table is not None
    assert "Configuration" not in [column.title for column in group.table.columns]
    by_limit = {row[0].text: row[1].text for row in group.table.rows}
    assert "Read latency" in by_limit["one I/O at a time"]
    assert "Read bandwidth" in by_limit["not known"]


def test_the_page_and_its_text_have_the_section() -> None:
    page = shared.drawn(shared.undrawn(whole()))
    found = re.search(rf'<section id="{ANCHOR}".*?</section>', page, re.S)
    assert found
    assert "Random read 4 KiB" in found[0]
    assert "nvme1n1 of client-1" in render_appendix(whole())


def test_without_telemetry_there_is_no_section() -> None:
    brief = replace(whole(), run_resources={})
    assert bottlenecks_section(brief) is None
    assert "resource watched" not in " ".join(one.text for one in build_report_page(brief).findings)


def test_the_runs_whose_telemetry_is_read_are_bounded() -> None:
    assert 0 < len(whole().run_resources) <= BOTTLENECK_RUNS_MAX
    shown = {
        run for best in best_point_findings(whole().study, whole().points) for run in best.runs
    }
    assert set(whole().run_resources) <= shown


def test_hostile_names_of_devices_and_hosts_stay_text() -> None:
    bad = "<img src=x onerror=alert(1)>"
    seen = {
        key: replace(one, uses=tuple(replace(use, name=bad, host=bad) for use in one.uses))
        for key, one in whole().run_resources.items()
    }
    page = shared.drawn(replace(whole(), run_resources=seen, details={}))
    assert "<img src=x" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
