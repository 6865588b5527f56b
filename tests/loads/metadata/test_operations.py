"""Metadata load in the report and the exports."""

from __future__ import annotations

import csv
import io
import json
import statistics
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from msgspec.structs import replace

from iolab.core.metric import CheckResult, Metric, RunResult, Verdict, VerdictLevel
from iolab.core.run import RunStatus
from iolab.loads.metadata.charts import iteration_rates_chart, operation_color_token
from iolab.loads.metadata.iterations import (
    fastest_creating_point_per_configuration,
    statistics_of_points,
)
from iolab.loads.metadata.kind import KIND
from iolab.loads.metadata.metrics import METADATA_KEYS
from iolab.loads.metadata.tables import (
    file_operation_host_rate_keys,
    file_operation_rates_line,
    iteration_summary_table,
    rate_text_without_unit,
)
from iolab.loads.metadata.workload import MDTEST_ENGINE, MetadataOperation
from iolab.registry import report_kinds
from iolab.report.brief import Brief
from iolab.report.charts.chart import series_styles
from iolab.report.charts.series import LatencyCurve
from iolab.report.charts.svg import draw_inline_svg
from iolab.report.page import build_report_page
from iolab.report.results import columns_csv, result_columns
from iolab.report.runs import slowest_and_fastest_hosts_table
from tests.facts import tells
from tests.loads.metadata.metadata_session import JOB, MetadataSource, kpi_with_metadata
from tests.report import shared
from tests.report.made import build_brief, session_document, session_markdown
from tests.report.studies import kpi

SCHEMA = json.loads(
    (Path(__file__).parents[3] / "schema" / "show.json").read_text(encoding="utf-8")
)
MDTEST = replace(JOB, engine=MDTEST_ENGINE)


@pytest.fixture(scope="module")
def source() -> MetadataSource:
    return shared.files()


@pytest.fixture(scope="module")
def brief() -> Brief:
    return shared.brief("files")


def of_metadata(source: MetadataSource) -> list[RunResult]:
    return [result for result in source.results() if result.workload == "metadata"]


@pytest.mark.parametrize("asked", [JOB, MDTEST])
def test_the_document_keeps_to_its_schema(asked: Any) -> None:
    found = kpi_with_metadata(asked)
    document = session_document(found.study, found.results())
    text = json.dumps(document, allow_nan=False)
    jsonschema.validate(json.loads(text), SCHEMA, cls=jsonschema.Draft202012Validator)


def test_the_document_tells_the_iterations(source: MetadataSource) -> None:
    (point,) = session_document(source.study, source.results())["iterations"]
    assert [one["operation"] for one in point["operations"]] == [
        op.display_name for op in MetadataOperation
    ]
    stat = point["operations"][2]
    rates = [r.metrics["file_stat_ops_per_s"].value or 0.0 for r in of_metadata(source)]
    assert (stat["metric"], stat["n"]) == ("file_stat_ops_per_s", 3)
    assert (stat["max"], stat["min"]) == (max(rates), min(rates))
    assert stat["mean"] == pytest.approx(statistics.fmean(rates))
    assert stat["std_dev"] == pytest.approx(statistics.stdev(rates))
    median = next(r for r in of_metadata(source) if r.repeat == stat["median_repeat"])
    assert stat["latencies_ns"]["p99"] == median.metrics["file_stat_lat_ns_p99"].value


def test_a_session_without_metadata_has_no_iterations() -> None:
    found = kpi()
    assert session_document(found.study, found.results())["iterations"] == []


def test_csv_has_the_columns_of_both_kinds(source: MetadataSource) -> None:
    rows = list(
        csv.DictReader(io.StringIO(columns_csv(result_columns(source.results())), newline=""))
    )
    assert set(METADATA_KEYS) | {"iops"} <= set(rows[0])
    assert rows[0]["iops"]
    assert not rows[0]["file_stat_ops_per_s"]
    assert rows[1]["file_stat_ops_per_s"]
    assert not rows[1]["iops"]


def test_markdown_has_a_table_for_each_kind(source: MetadataSource) -> None:
    text = session_markdown(source.study, source.results())
    heads = [line for line in text.splitlines() if line.startswith("| ") and "Verdict" in line]
    assert len(heads) == 2
    assert "| Max | Min | Arithmetic mean | Std Dev | n |" in text
    assert text.count("| File stat |") == 1
    alone = session_markdown(source.study, of_metadata(source))
    assert "IOPS" not in alone


def test_the_summary_shows_what_the_statistics_are(source: MetadataSource) -> None:
    table = iteration_summary_table(statistics_of_points(of_metadata(source)), source.study, {})
    assert [column.title for column in table.columns][3:8] == [
        "Max",
        "Min",
        "Arithmetic mean",
        "Std Dev",
        "n",
    ]
    assert [cells[0].text for cells in table.rows][:2] == ["Tree create", "File create"]
    assert [cells[2].text for cells in table.rows][:2] == ["whole phase", "window"]
    assert all(len(cells) == len(table.columns) for cells in table.rows)


def test_the_page_tells_metadata_apart_from_io(brief: Brief) -> None:
    page = build_report_page(brief)
    shown = {row[0].text: row[1].text for row in page.answer.best_table.rows}
    operations = [f"Metadata operations: file {name}" for name in ("create", "stat", "read")]
    assert list(shown)[:4] == ["Read IOPS", *operations]
    assert all(shown[name].endswith("ops/s") for name in operations)
    assert [len(table.rows) for table in page.result_tables] == [1, 3]
    assert [len(table.rows) for table in page.job_tables] == [1, 1]
    (charts,) = [item for item in page.charts_by_workload if item.table is not None]
    titles = [figure.title for figure in (*charts.charts, *charts.appendix_charts)]
    assert titles[0] == "Rate of each operation"
    assert titles[1].startswith("Latency by percentile, iteration ")  # the table has others
    assert len(titles) == 2


def test_a_run_shows_its_phases_over_time(brief: Brief) -> None:
    detail = next(d for d in brief.chart_data_by_run.values() if d.result.workload == "metadata")
    assert detail.timeline is not None
    panels = {panel.title: panel for panel in detail.timeline.panels}
    names = [trace.name for trace in panels["Operations"].lines]
    assert names == ["create", "stat", "read", "remove"]
    known = [
        [i for i, value in enumerate(trace.values) if value is not None]
        for trace in panels["Operations"].lines
    ]
    assert [found[0] for found in known] == sorted(found[0] for found in known)
    assert known[0][-1] <= known[1][0] + 1
    stat = panels["Operations"].lines[1]
    rate = detail.result.metrics["file_stat_ops_per_s"].value
    assert max(v for v in stat.values if v is not None) == pytest.approx(rate, rel=0.1)


def test_the_page_is_drawn_whole() -> None:
    text = shared.html("files")
    assert "Operations over the iterations" in text
    assert "Metadata workloads" in text
    written, *_ = text.rpartition("<script>")
    assert "undefined" not in written.lower()


def test_a_session_of_metadata_alone_is_a_report() -> None:
    text = shared.drawn(shared.undrawn(build_brief(kpi_with_metadata(MDTEST, io=False))))
    assert "headline figures" not in text
    assert "Operations over the iterations" in text
    # Of invalid runs alone the table has the rates.
    assert "Rate of each operation" not in text
    assert "Rate of each operation" in shared.html("files")


def test_rates_of_every_iteration_stand_in_the_chart(source: MetadataSource) -> None:
    points = statistics_of_points(of_metadata(source))
    figure = iteration_rates_chart("Metadata", points, source.study, series_styles(source.study))
    assert len(figure.table.rows) == 6 * 3
    assert "at worst" in figure.finding
    svg = draw_inline_svg(figure).svg
    assert "File stat" in svg
    assert operation_color_token(MetadataOperation.FILE_CREATE) != operation_color_token(
        MetadataOperation.FILE_STAT
    )


def test_of_an_invalid_operation_no_mean_is_drawn(source: MetadataSource) -> None:
    spoilt = [
        replace(run, verdict=Verdict(VerdictLevel.INVALID, ())) for run in of_metadata(source)
    ]
    points = statistics_of_points(spoilt)
    figure = iteration_rates_chart("Metadata", points, source.study, series_styles(source.study))
    drawn = {end.text for end in figure.plots[0].end_labels}
    for one in points[0].operations:
        assert rate_text_without_unit(one.mean) not in drawn
        assert rate_text_without_unit(one.mean) not in figure.finding


def test_a_percentile_needs_enough_operations_in_every_iteration(source: MetadataSource) -> None:
    first, *others = of_metadata(source)
    far = [key for key in first.metrics if key.startswith("file_create_lat_ns_p99")]
    few = {**first.metrics, **dict.fromkeys(far, Metric(None, "ns"))}
    short = replace(first, metrics=few)
    for runs, percent in (([first, *others], 99.5), ([short, *others], 50.0)):
        create = statistics_of_points(runs)[0].operations[1]
        assert create.operation is MetadataOperation.FILE_CREATE
        assert create.highest_supported_percentile == percent
        assert (create.median_result_latencies["p99"].value is None) == (runs[0] is short)
    curve = LatencyCurve("File create", 9, (2.0, 10.0, 100.0), (1.0, 2.0, 3.0))
    assert curve.truncated_at_one_in(10.0).lat_ns == (1.0, 2.0)


def test_points_of_an_axis_are_told_apart() -> None:
    swept = kpi_with_metadata(JOB, 2, 4, io=False)
    points = statistics_of_points(swept.results())
    assert [dict(point.axis_values) for point in points] == [{"ranks": 2}, {"ranks": 4}]
    figure = iteration_rates_chart("Metadata", points, swept.study, series_styles(swept.study))
    assert "ranks 2: arithmetic mean of operations a second" in figure.finding
    assert fastest_creating_point_per_configuration(points)[0].axis_values == (("ranks", 4),)
    matrix = build_report_page(build_brief(swept)).answer.best_table
    assert all("ranks\xa04" in row[1].note for row in matrix.rows)


def test_an_operation_without_a_common_window_has_its_rate_over_the_whole_phase() -> None:
    swept = kpi_with_metadata(JOB, 2, io=False)
    spoilt = []
    for result in swept.results():
        check = CheckResult("rank-skew", VerdictLevel.INVALID, "Ranks worked apart.")
        bare = {
            key: replace(metric, value=None) if key == "file_create_ops_per_s" else metric
            for key, metric in result.metrics.items()
        }
        whole = {"file_create_ops_per_s_whole": Metric(5_000.0, "ops/s")}
        verdict = Verdict(VerdictLevel.INVALID, (check,))
        spoilt.append(replace(result, metrics={**bare, **whole}, verdict=verdict))
    table = build_report_page(build_brief(replace(swept, results_given=tuple(spoilt)))).answer
    notes = {row[0].text: row[1].note for row in table.best_table.rows}
    (create,) = [note for title, note in notes.items() if title.endswith("file create")]
    assert tells(create, "whole phase", "5.00 k ops/s", "anks worked apart") or tells(
        create, "whole phase", "5 k ops/s"
    )
    (stat,) = [note for title, note in notes.items() if title.endswith("file stat")]
    assert "whole phase" not in stat


def test_an_invalid_point_is_no_best_one() -> None:
    swept = kpi_with_metadata(JOB, 2, 4, io=False)
    spoilt = [
        replace(result, verdict=Verdict(VerdictLevel.INVALID, ()))
        if dict(result.axis_values)["ranks"] == 4
        else result
        for result in swept.results()
    ]
    assert fastest_creating_point_per_configuration(statistics_of_points(spoilt))[
        0
    ].axis_values == (("ranks", 2),)


def test_a_failed_iteration_is_counted_and_left_out(source: MetadataSource) -> None:
    first, *others = of_metadata(source)
    results = (replace(first, status=RunStatus.FAILED, failure="EIO."), *others)
    failed = replace(source, results_given=results)
    page = build_report_page(build_brief(failed))
    (charts,) = [item for item in page.charts_by_workload if item.table is not None]
    assert tells(charts.note, "2 iterations", "1 not done")


def test_hosts_of_a_phase_are_counted_alike(source: MetadataSource) -> None:
    result = of_metadata(source)[0]
    keys = file_operation_host_rate_keys(result)
    assert keys[0] == "file_create_ops_per_s"
    first, *others = result.hosts
    unknown = {**first.metrics, keys[0]: replace(first.metrics[keys[0]], value=None)}
    short = replace(result, hosts=(replace(first, metrics=unknown), *others))
    assert file_operation_host_rate_keys(short) == ("file_create_ops_per_s_whole", *keys[1:])


def test_each_host_has_its_share(source: MetadataSource) -> None:
    table = slowest_and_fastest_hosts_table(
        KIND.make_report(report_kinds().booted_hosts),
        of_metadata(source)[0],
        source.study.workloads[0],
    )
    assert [cells[0].text for cells in table.rows] == ["client-1", "client-2"]
    assert all(len(cells) == len(table.columns) for cells in table.rows)


def test_a_run_in_a_line(source: MetadataSource) -> None:
    line = file_operation_rates_line(of_metadata(source)[0])
    assert tells(line, "create 1.30 k", "stat 7.06 k", "read 2.60 k", "remove", "ops/s")
