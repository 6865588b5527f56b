"""The latency at one load stands in the matrix, of workloads with several loads."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from iolab.analysis.points import PointSummary
from iolab.core.metric import CheckResult, Verdict, VerdictLevel
from iolab.report.brief import Brief
from iolab.report.fast_facts import FastFact, fast_facts
from iolab.report.low_load import (
    GROUP,
    LEAST_OF_ALL,
    LESS_IS_INVALID,
    PointLatency,
    low_load_rows,
)
from iolab.report.matrix import workload_rows
from iolab.report.page import build_report_page
from tests.facts import tells
from tests.report import shared


def test_reads_at_the_least_load_have_a_row_before_others() -> None:
    brief = shared.brief("two")
    rows = low_load_rows(brief)
    assert rows
    assert [row.group for row in rows] == [GROUP] * len(rows)
    first = rows[0]
    assert tells(first.title.lower(), "read")
    assert tells(first.scope, "iodepth 1")
    assert len(first.figures) == 2
    for figure in first.figures:
        points = [
            point
            for point in brief.points
            if point.key.configuration == figure.configuration
            and dict(point.key.axis_values) == {"iodepth": 1}
            and figure.amount == point.metric_value("lat_ns_mean")
        ]
        assert len(points) == 1
        assert "p99" in figure.note


def test_the_matrix_has_them_under_a_title_and_none_of_single_loads() -> None:
    table = build_report_page(shared.brief("two")).answer.best_table
    assert GROUP in [title for _, title in table.groups]
    assert low_load_rows(shared.brief("kpi")) == ()


def test_repeats_of_a_latency_that_are_far_apart_are_told() -> None:
    brief = shared.brief("two")
    point = next(point for point in brief.points if point.metric_value("lat_ns_mean"))
    run = point.results[0]
    known = point.metrics["lat_ns_mean"]
    runs = [
        replace(run, metrics={**run.metrics, "lat_ns_mean": replace(known, value=value)})
        for value in (35.9e6, 55e6, 78.1e6)
    ]
    bare = replace(known, low=None, high=None)
    apart = replace(point, results=tuple(runs), metrics={**point.metrics, "lat_ns_mean": bare})
    assert PointLatency(apart, "lat_ns_mean").repeats_text == "repeats 35.9 to 78.1 ms"
    near = replace(apart, results=(runs[1], runs[1]))
    assert PointLatency(near, "lat_ns_mean").repeats_text == ""


def test_the_latency_to_remember_stands_in_the_matrix() -> None:
    for name in ("two", "kpi", "sweep"):
        brief = shared.brief(name)
        shown = {row.title for row in low_load_rows(brief)}
        if not shown:
            continue
        facts = [
            one for one in build_report_page(brief).answer.fast_facts if " latency at " in one.label
        ]
        assert facts
        for fact in facts:
            assert any(fact.note.startswith(title) for title in shown)


def without_sound_runs(owner: str, *depths: int) -> Brief:
    """The brief with invalid runs alone of that configuration, at these depths or at all."""
    brief = shared.brief("two")
    lost = {
        point.key
        for point in brief.points
        if point.key.configuration == owner
        and (not depths or dict(point.key.axis_values).get("iodepth") in depths)
    }
    check = CheckResult("verify-mismatch", VerdictLevel.INVALID, "It differs.")
    points = tuple(
        replace(
            point,
            results=(),
            left_out_results=tuple(
                replace(run, verdict=Verdict(VerdictLevel.INVALID, (check,))) for run in point.runs
            ),
            verdict_level=VerdictLevel.INVALID,
            is_trusted=False,
        )
        if point.key in lost
        else point
        for point in brief.points
    )
    return replace(brief, points=points)


def test_where_the_least_load_is_invalid_of_one_all_are_told_at_the_next() -> None:
    rows = low_load_rows(without_sound_runs("beta", 1))
    assert rows
    for row in rows:
        assert tells(row.scope, LEAST_OF_ALL)  # alpha is valid below
        assert LESS_IS_INVALID not in row.scope
        assert "iodepth 1;" not in row.scope
        assert all(row.figure_of_configuration(name).amount for name in ("alpha", "beta"))


def test_one_that_is_invalid_at_every_load_is_not_measurable() -> None:
    rows = low_load_rows(without_sound_runs("beta"))
    assert rows
    for row in rows:
        figure = row.figure_of_configuration("beta")
        assert (figure.text, figure.note) == ("not measurable", "It differs.")
        assert row.figure_of_configuration("alpha").amount
        assert LESS_IS_INVALID not in row.scope


def test_repeats_of_the_mean_stand_before_the_p99() -> None:
    """What is known of the mean is not read as the p99's: each has a line of its own."""
    brief = shared.brief("two")
    points = tuple(_with_first_run_tripled(point) for point in brief.points)
    rows = low_load_rows(replace(brief, points=points))
    figures = [figure for row in rows for figure in row.figures if figure.amount]
    assert any("repeats" in figure.amount_note for figure in figures)
    for figure in figures:
        assert figure.note.startswith("p99")
        assert not re.search(r"· repeats|may be chance", figure.note)


def _with_first_run_tripled(point: PointSummary) -> PointSummary:
    """The point with one run of three times the mean latency, and without an interval of it."""
    if not point.results or "lat_ns_mean" not in point.metrics:
        return point
    first, *others = point.results
    mean = first.metrics["lat_ns_mean"]
    slower = replace(mean, value=3 * (mean.value or 0.0))
    wide = replace(first, metrics={**first.metrics, "lat_ns_mean": slower})
    unsure = replace(point.metrics["lat_ns_mean"], low=None, high=None)
    return replace(
        point,
        results=(wide, *(others or [first])),
        metrics={**point.metrics, "lat_ns_mean": unsure},
    )


def test_the_fact_is_the_mean_where_which_has_the_lowest_p99_is_not_known() -> None:
    """A card that nobody can decide by tells less than the row beside it."""
    brief = shared.brief("two")
    rows = workload_rows(brief.best_figures)

    def latency_fact(brief: Brief) -> FastFact:
        return next(fact for fact in fast_facts(brief, rows, ()) if "latency" in fact.label)

    assert latency_fact(brief).label.startswith("p99")
    points = tuple(_with_p99_that_disagrees(point) for point in brief.points)
    doubted = latency_fact(replace(brief, points=points))
    assert doubted.label.startswith("Mean")
    assert "distinguishable" not in doubted.note


def _with_p99_that_disagrees(point: PointSummary) -> PointSummary:
    """The point with the p99s that all have, each in another repeat, and a mean of its own."""
    turn = ["alpha", "beta"].index(point.key.configuration)
    p99s = [1e6 * (1, 2, 4)[(turn + number) % 3] for number in range(3)]
    return _with_latencies(point, p99s, [2e5 * (1 + turn) for _ in p99s])


def _with_latencies(
    point: PointSummary, p99_ns: Sequence[float], mean_ns: Sequence[float]
) -> PointSummary:
    """The point with repeats of these latencies, and their means, where it has any."""
    values = {"lat_ns_p99": p99_ns, "lat_ns_mean": mean_ns}
    if not point.results or not point.metrics.keys() >= values.keys():
        return point
    first = point.results[0]
    runs = tuple(
        replace(
            first,
            repeat=at + 1,
            metrics={
                **first.metrics,
                **{key: replace(first.metrics[key], value=own[at]) for key, own in values.items()},
            },
        )
        for at in range(len(p99_ns))
    )
    means = {
        key: replace(point.metrics[key], value=sum(own) / len(own)) for key, own in values.items()
    }
    return replace(point, results=runs, metrics={**point.metrics, **means})


def test_facts_do_not_repeat_that_all_figures_are_indicative() -> None:
    brief = shared.brief("kpi")

    def notes(level: VerdictLevel, *others: VerdictLevel) -> str:
        figures = [replace(figure, verdict_level=level) for figure in brief.best_figures]
        figures[-1] = replace(figures[-1], verdict_level=others[0] if others else level)
        return " ".join(fact.note for fact in fast_facts(brief, workload_rows(figures), ()))

    assert "indicative" in notes(VerdictLevel.INDICATIVE, VerdictLevel.VALID)
    assert "indicative" not in notes(VerdictLevel.INDICATIVE)
