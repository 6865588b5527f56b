"""The section on what limits, of a session in memory."""

from __future__ import annotations

import re

from msgspec.structs import replace

from iolab.analysis.bottleneck.decision import (
    RESOURCES_ANALYSIS_VERSION,
    BottleneckCause,
    BottleneckDecision,
    LoadStep,
    decide_bottleneck,
)
from iolab.analysis.findings import BottleneckFinding, best_point_findings
from iolab.core.host import HostRole
from iolab.core.metric import VerdictLevel
from iolab.core.resources import IssueRule, Resource, ResourceUse, RunResources
from iolab.report.bottleneck import ANCHOR, bottlenecks_section, bottlenecks_table, next_steps_table
from iolab.report.brief import Brief
from iolab.report.formats.markdown import render_appendix
from iolab.report.gather import BOTTLENECK_RUNS_MAX
from iolab.report.numbers import metric_value_text
from iolab.report.page import build_report_page
from tests.analysis.bottleneck.planted import QUIET, cores, disk, record, watched
from tests.facts import tells
from tests.report import shared
from tests.report.made import build_brief
from tests.report.studies import sweep
from tests.report.synthetic import objecting
from tests.report.test_limit_words import BENT


def whole() -> Brief:
    return shared.brief("long")


def test_every_best_point_has_a_row_that_leads_to_its_run() -> None:
    section = bottlenecks_section(whole())
    assert section is not None
    (group,) = section.groups
    ((shares_table, _), (names, _)) = group.detail_tables_with_notes
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
    assert [row[1].text for row in group.table.rows] == ["Not known"]  # of all, and once
    ((steps, _),) = group.tables_below_with_notes
    assert steps.rows
    assert all(row[-1].text.endswith(".") for row in steps.rows)
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
    assert "Read latency" in by_limit["One I/O at a time"]
    assert "Read bandwidth" in by_limit["Not known"]


def limit(owner: str, workload: str, seen: RunResources, step: LoadStep) -> BottleneckFinding:
    decision = decide_bottleneck(seen, step)
    return BottleneckFinding(owner, workload, (), decision, seen, None, VerdictLevel.VALID, ())


def test_each_limit_of_a_configuration_has_a_row_with_its_figures() -> None:
    busy = watched(record({**disk(0.3, each_ns=80_000), **cores(*[0.97] * 8)}))
    full = watched(record({**QUIET, **disk(1.0, each_ns=776_000)}))
    study = shared.brief("two").study
    found = [
        limit("alpha", "rand-read-4k", busy, BENT),
        limit("alpha", "rand-write-4k", full, BENT),
        limit("beta", "rand-read-4k", full, BENT),
        limit("beta", "rand-write-4k", full, BENT),
    ]
    table = bottlenecks_table(study, found, ())
    alpha, write, beta = table.rows
    assert [row[0].text for row in table.rows] == ["Alpha", "Alpha", "Beta"]
    assert (alpha[1].text.split()[0], beta[1].text) == ("Processors", "Device nvme0n1")
    both = ["Random read 4 KiB", "Random write 4 KiB"]
    assert [row[2].text for row in table.rows] == [*both, ", ".join(both)]
    assert tells(alpha[3].text, "97 %")
    assert "device" not in alpha[3].text  # of the resource that is named, and of no other
    assert tells(write[3].text, "device nvme0n1", "100 %")
    assert "core" not in beta[3].text
    steps = next_steps_table(study, found, ()).rows
    processors, device = steps  # each once
    assert tells(f"{processors[0].text} {device[0].text}", "Processors", "Device")


def test_evidence_has_the_rate_of_its_run_where_the_figure_is_another() -> None:
    brief = whole()
    point = brief.points[0]
    key = brief.study.workloads[0].headline_or_rate_metric
    run = point.results[0]
    mean = replace(run.metrics[key], value=2 * (run.metrics[key].value or 0.0))
    point = replace(point, metrics={**point.metrics, key: mean})
    full = watched(record({**QUIET, **disk(1.0, each_ns=776_000)}))
    found = replace(
        limit(point.key.configuration, point.key.workload, full, BENT), run_keys=(run.key,)
    )
    (row,) = bottlenecks_table(brief.study, [found], [point]).rows
    assert tells(row[3].text, "100 %", "run of", metric_value_text(run.metrics[key]))
    same = replace(point, metrics={**point.metrics, key: run.metrics[key]})
    (row,) = bottlenecks_table(brief.study, [found], [same]).rows
    assert "run of" not in row[3].text


def test_a_rate_that_was_kept_is_not_to_be_raised_where_a_higher_one_was_not() -> None:
    """The page of the check that objected says to lower it: the limit lies between."""
    seen = watched(record(QUIET))
    assert seen.concurrency is not None
    flight = replace(seen.concurrency, issue_rule=IssueRule.RATE, rate=100.0, target_rate=100.0)
    paced = replace(seen, concurrency=flight)
    brief = shared.brief("kpi")
    point = brief.points[0]
    place = (point.key.workload, point.key.configuration)
    kept = BottleneckFinding(
        place[1],
        place[0],
        (("requests_per_s", 27),),
        decide_bottleneck(paced, None),
        paced,
        None,
        VerdictLevel.VALID,
        (),
    )
    lost_run = replace(
        point.runs[0],
        verdict=objecting(VerdictLevel.INVALID, "queue-grows", "It grew.", growth=9.0),
    )
    lost = replace(
        point,
        key=replace(point.key, axis_values=(("requests_per_s", 54),)),
        results=(),
        left_out_results=(lost_run,),
        is_trusted=False,
    )
    (row,) = bottlenecks_table(brief.study, [kept], [lost]).rows
    assert tells(row[-1].text, "54 requests/s", "requests wait ever longer", "between")
    assert "Raise" not in row[-1].text
    (row,) = bottlenecks_table(brief.study, [kept], []).rows
    assert tells(row[-1].text, "No higher rate was tried", "requests/s beyond 27")
    (row,) = bottlenecks_table(brief.study, [replace(kept, has_phases=True)], []).rows
    assert tells(row[-1].text, "so that phases compare")


def test_the_page_and_its_text_have_the_section() -> None:
    page = shared.drawn(shared.undrawn(whole()))
    found = re.search(rf'<section id="{ANCHOR}".*?</section>', page, re.S)
    assert found
    assert "What to do next" in found[0]
    assert "nvme1n1 of client-1" in render_appendix(whole())


def test_without_telemetry_there_is_no_section() -> None:
    brief = replace(whole(), run_resources={})
    assert bottlenecks_section(brief) is None
    assert "resource watched" not in " ".join(one.text for one in build_report_page(brief).findings)


def test_the_resources_that_were_stored_with_a_verdict_are_those_of_the_page() -> None:
    source = sweep(("alpha", "beta"), seconds=6)
    full = ResourceUse(Resource.PROCESSORS, "client-1", HostRole.CLIENT, "", 0.98)
    stored = RunResources(
        (full,), None, memory_backed=False, is_storage_monitored=True, stolen_share=0.0
    )
    source.results_given = tuple(replace(run, resources=stored) for run in source.results())
    source.analysis_version = RESOURCES_ANALYSIS_VERSION
    found = build_brief(source).run_resources
    assert found
    assert set(found.values()) == {stored}
    # What an older version made of the same record is made anew.
    source.analysis_version = RESOURCES_ANALYSIS_VERSION - 1
    again = build_brief(source).run_resources
    assert again.keys() == found.keys()
    assert stored not in again.values()


def test_of_limits_that_are_not_known_each_has_its_own_busiest_resource() -> None:
    seen = {
        "seq": watched(record({**QUIET, **disk(0.94)})),
        "rand": watched(record({**QUIET, **disk(0.69), **cores(0.3, 0.8)})),
    }
    decision = BottleneckDecision(BottleneckCause.NONE, is_certain=False)
    limits = [
        BottleneckFinding("default", name, (), decision, resources, None, VerdictLevel.VALID, ())
        for name, resources in seen.items()
    ]
    (row,) = bottlenecks_table(whole().study, limits, ()).rows
    text = " ".join(cell.text for cell in row)
    assert tells(text, "94 % busy (seq)", "core 80 % (rand)"), text
    (row,) = bottlenecks_table(whole().study, limits[:1], ()).rows
    assert tells(" ".join(cell.text for cell in row), "device nvme0n1 94 % busy: near its limit")


def test_the_share_of_a_limit_follows_from_the_rates_beside_it() -> None:
    use = ResourceUse(
        Resource.IO_LIMIT, "c1", HostRole.CLIENT, "sda reads", 2871 / 3000, rate=2871.0
    )
    decision = BottleneckDecision(BottleneckCause.IO_LIMIT, is_certain=True, limiting_use=use)
    limit = BottleneckFinding(
        "alpha", "w", (), decision, watched(record(QUIET)), None, VerdictLevel.VALID, ()
    )
    (row,) = bottlenecks_table(whole().study, [limit], ()).rows
    assert tells(row[3].text, "96 % used: 2.87 k of 3 k IOPS"), row[3].text


def test_the_runs_whose_telemetry_is_read_are_bounded() -> None:
    assert 0 < len(whole().run_resources) <= BOTTLENECK_RUNS_MAX
    shown = {
        run for best in best_point_findings(whole().study, whole().points) for run in best.run_keys
    }
    assert set(whole().run_resources) <= shown


def test_hostile_names_of_devices_and_hosts_stay_text() -> None:
    bad = "<img src=x onerror=alert(1)>"
    seen = {
        key: replace(one, uses=tuple(replace(use, name=bad, host=bad) for use in one.uses))
        for key, one in whole().run_resources.items()
    }
    page = shared.drawn(replace(whole(), run_resources=seen, chart_data_by_run={}))
    assert "<img src=x" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
