"""Statistics over iterations against the plain formulas."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from iolab.analysis.metrics import metrics_or_unknown_by_key
from iolab.core.metric import RunResult, Verdict, VerdictLevel
from iolab.core.run import RunStatus
from iolab.core.tagged import type_tag_of
from iolab.loads.metadata.iterations import is_metadata_result, statistics_of_points
from iolab.loads.metadata.metrics import METADATA_KEYS
from iolab.loads.metadata.tables import max_min_mean_std_dev_texts
from iolab.loads.metadata.terminal import operation_renderables
from iolab.loads.metadata.workload import MetadataJob, MetadataOperation
from iolab.report.numbers import DASH
from tests.analysis.records import healthy
from tests.cli.screens import drawn
from tests.judging import judge
from tests.loads.metadata.records import made, mdtest_record
from tests.report.studies import kpi


def result(repeat: int, level: VerdictLevel = VerdictLevel.VALID, **values: float) -> RunResult:
    """A judged iteration with those metrics."""
    return RunResult(
        configuration="default",
        workload="metadata",
        axis_values=(),
        repeat=repeat,
        digest="d",
        status=RunStatus.DONE,
        failure=None,
        window_s=10.0,
        metrics=metrics_or_unknown_by_key(METADATA_KEYS, values),
        hosts=(),
        verdict=Verdict(level, ()),
        load=type_tag_of(MetadataJob),
    )


@given(st.lists(st.floats(0.001, 1e8), min_size=1, max_size=12))
def test_statistics_are_the_plain_formulas(rates: list[float]) -> None:
    found = statistics_of_points([result(i, file_stat_ops_per_s=v) for i, v in enumerate(rates, 1)])
    (one,) = found[0].operations
    assert one.operation is MetadataOperation.FILE_STAT
    assert (one.maximum, one.minimum, one.iteration_count) == (max(rates), min(rates), len(rates))
    assert one.mean == pytest.approx(statistics.fmean(rates))
    if len(rates) == 1:
        assert one.std_dev is None
    else:
        rounding = 1e-12 * max(rates)
        assert one.std_dev == pytest.approx(statistics.stdev(rates), rel=1e-6, abs=rounding)


def test_latencies_are_those_of_the_median_iteration_never_a_mean() -> None:
    rates, tails = (300.0, 100.0, 200.0), (1.0, 3.0, 2.0)
    given_ = [
        result(i, file_read_ops_per_s=rate, file_read_lat_ns_p99=tail)
        for i, (rate, tail) in enumerate(zip(rates, tails, strict=True), 1)
    ]
    (one,) = statistics_of_points(given_)[0].operations
    assert one.median_result.repeat == 3
    assert one.median_result_latencies["p99"].value == 2.0
    even = statistics_of_points(given_[:2])[0].operations[0]
    assert even.median_result.repeat == 2


def test_an_operation_whose_iterations_disagree_has_a_verdict_of_its_own() -> None:
    creates, stats = (110_000.0, 11_600.0, 3_200.0), (100.0, 101.0, 130.0)
    given_ = [
        result(i, file_create_ops_per_s=create, file_stat_ops_per_s=stat)
        for i, (create, stat) in enumerate(zip(creates, stats, strict=True), 1)
    ]
    create, stat = statistics_of_points(given_)[0].operations
    assert (create.verdict_level, stat.verdict_level) == (
        VerdictLevel.INVALID,
        VerdictLevel.INDICATIVE,
    )
    assert create.repeats_disagree_check is not None
    assert create.repeats_disagree_check.code == "repeats-disagree"
    assert max_min_mean_std_dev_texts(create)[2:] == (DASH, DASH)
    alike = statistics_of_points([given_[0], replace(given_[0], repeat=2)])[0].operations
    assert [(one.verdict_level, one.repeats_disagree_check) for one in alike] == [
        (VerdictLevel.VALID, None)
    ] * 2


def test_an_invalid_iteration_is_not_compared() -> None:
    bad = result(2, VerdictLevel.INVALID, file_stat_ops_per_s=1.0)
    (one,) = statistics_of_points([result(1, file_stat_ops_per_s=100.0), bad])[0].operations
    assert (one.verdict_level, one.repeats_disagree_check) == (VerdictLevel.INVALID, None)


def test_a_rate_of_nothing_is_told_beside_iterations_that_disagree() -> None:
    rates = (0.0, 10.0, 40.0)
    given_ = [result(i, file_stat_ops_per_s=rate) for i, rate in enumerate(rates, 1)]
    (stat,) = statistics_of_points(given_)[0].operations
    assert (stat.minimum, stat.usable_rates, stat.verdict_level) == (
        0.0,
        (10.0, 40.0),
        VerdictLevel.INVALID,
    )
    lines = drawn(operation_renderables(kpi().study, given_))
    assert any("file stat 4 times" in line for line in lines)


def test_only_runs_that_were_done_count() -> None:
    bad = replace(result(2, file_stat_ops_per_s=9.0), status=RunStatus.FAILED)
    cut = replace(result(3, file_stat_ops_per_s=9.0), status=RunStatus.INTERRUPTED)
    point = statistics_of_points([result(1, file_stat_ops_per_s=5.0), bad, cut])[0]
    assert point.left_out_count == 2
    assert point.operations[0].rates == (5.0,)


def test_one_iteration_without_a_window_takes_the_rate_of_the_whole_for_all() -> None:
    first = result(1, file_create_ops_per_s=100.0, file_create_ops_per_s_whole=80.0)
    second = result(2, file_create_ops_per_s_whole=80.0)
    (one,) = statistics_of_points([first, second])[0].operations
    assert one.rate_key == "file_create_ops_per_s_whole"
    assert not one.is_over_common_window
    assert one.rates == (80.0, 80.0)


def test_the_worst_verdict_of_the_iterations_is_theirs() -> None:
    levels = (VerdictLevel.VALID, VerdictLevel.INVALID, VerdictLevel.INDICATIVE)
    given_ = [result(i, level, file_stat_ops_per_s=1.0) for i, level in enumerate(levels, 1)]
    assert statistics_of_points(given_)[0].operations[0].verdict_level is VerdictLevel.INVALID


def test_a_point_without_some_of_its_hosts_stands_apart() -> None:
    fewer = replace(result(2, file_stat_ops_per_s=1.0), excluded_hosts=("c2",))
    points = statistics_of_points([result(1, file_stat_ops_per_s=2.0), fewer])
    assert [point.excluded_hosts for point in points] == [(), ("c2",)]


def test_real_records_give_every_operation_in_order() -> None:
    results = [judge(made(seed=i, repeat=i).record, {}) for i in (1, 2, 3)]
    (point,) = statistics_of_points(results)
    assert [one.operation for one in point.operations] == list(MetadataOperation)
    assert [one.is_over_common_window for one in point.operations] == [False, *([True] * 4), False]
    rates = [r.metrics["file_create_ops_per_s"].value or 0.0 for r in results]
    assert point.operations[1].std_dev == pytest.approx(statistics.stdev(rates))


def test_mdtests_iterations_have_no_latencies() -> None:
    results = [
        judge(mdtest_record({MetadataOperation.FILE_STAT: 1000.0 * i}, repeat=i), {})
        for i in (1, 2)
    ]
    (one,) = statistics_of_points(results)[0].operations
    assert one.mean == 1500.0
    assert all(metric.value is None for metric in one.median_result_latencies.values())


def test_runs_of_io_are_no_iterations() -> None:
    io = judge(healthy(), {})
    assert not is_metadata_result(io)
    assert statistics_of_points([io]) == ()
