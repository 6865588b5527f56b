"""The newest runs of every kind of load, each with its verdict."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.core.run import RunStatus
from iolab.registry import report_kinds
from iolab.report.charts.svg import draw_inline_svg
from iolab.serve.pages import (
    NEWEST_MAX,
    newest_runs_table,
    operation_rate_metric_key,
    operation_rates_by_interval,
    rate_chart,
)
from tests.cli.command_line import RESULTS
from tests.loads.keyvalue.key_value_session import rocksdb
from tests.report.studies import sweep


def test_the_newest_stand_first_and_each_has_a_verdict() -> None:
    results = [replace(one, order=number) for number, one in enumerate(RESULTS * 4)]
    rows = newest_runs_table(results).rows
    assert len(rows) == NEWEST_MAX
    assert all(row[1].verdict_level is not None for row in rows)
    assert rows[0][2].text.endswith("IOPS")
    newer = replace(results[0], segment=2, status=RunStatus.FAILED)
    assert "(failed)" in newest_runs_table([*results, newer]).rows[0][0].text


def test_several_configurations_are_named() -> None:
    results = sweep(("one", "two"), seconds=2).results()
    table = newest_runs_table(results)
    assert {row[1].text for row in table.rows} <= {"one", "two"}
    assert "Configuration" in [one.title for one in table.columns]
    assert {len(row) for row in table.rows} == {len(table.columns)}


def test_runs_on_a_key_value_store_have_their_rate() -> None:
    results = rocksdb(("one",), repeats=1, seconds=2, workload_count=1).results()
    table = newest_runs_table(results)
    assert table.rows[0][2].text.endswith("ops/s")
    assert {len(row) for row in table.rows} == {len(table.columns)}


def test_the_newest_run_is_drawn_second_by_second() -> None:
    source = sweep(seconds=5)
    (result, *_) = source.results()
    table = source.record(result.digest, 1).intervals
    found = operation_rates_by_interval(report_kinds().report_of_result(result), table)
    seconds = table.span_ns[0] / 1e9
    assert found.sum() * seconds == pytest.approx(table.ios.sum(), rel=0.01)
    figure = rate_chart("<one>", found, "1/s")
    assert figure is not None
    drawn = draw_inline_svg(figure).svg
    assert "&lt;one&gt;" in drawn
    assert drawn.count(",") >= found.size
    assert rate_chart("<one>", found[:1], "1/s") is None


def test_a_rate_counts_operations_whatever_a_run_has_beside() -> None:
    assert {operation_rate_metric_key(one) for one in RESULTS} == {"iops"}
    (result, *_) = rocksdb(("one",), repeats=1, seconds=2, workload_count=1).results()
    assert operation_rate_metric_key(result) == "ops_per_s"
    bytes_alone = {"bw_bytes_per_s": RESULTS[0].metrics["bw_bytes_per_s"]}
    assert operation_rate_metric_key(replace(RESULTS[0], metrics=bytes_alone)) is None


def test_operations_told_twice_are_drawn_once() -> None:
    source = rocksdb(("one",), repeats=1, seconds=4, workload_count=1)
    (result, *_) = source.results()
    table = source.record(result.digest, 1).intervals
    whole = result.metrics["ops_per_s"].value
    assert whole is not None
    assert operation_rates_by_interval(
        report_kinds().report_of_result(result), table
    ).mean() == pytest.approx(whole, rel=0.3)
