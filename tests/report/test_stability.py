"""The section on the state of the target: SNIA's rounds and the sentinel."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from iolab.analysis.points import sentinel_point
from iolab.core.metric import Metric, RunResult
from iolab.core.study import MethodKind, Study
from iolab.core.target_state import PreconditioningRounds, TargetLedger
from iolab.report.brief import Brief
from iolab.report.charts.chart import Chart, Line, Rectangles, ReportSection
from iolab.report.page import build_report_page
from iolab.report.sections import ROUND_CHARTS_MAX, stability_section
from iolab.stats.rounds import judge_steady_state_rounds
from tests.facts import tells
from tests.report import shared
from tests.report.charts.outcomes import result
from tests.report.growing import STUDY
from tests.report.made import build_brief
from tests.report.studies import kpi
from tests.report.synthetic import source_of

STEADY = (9e4, 6e4, 5.2e4, 5.1e4, 5e4, 4.9e4, 5.05e4)
FALLING = (9e4, 8e4, 7e4, 6e4, 5e4)


def series(iops: tuple[float, ...], **more: Any) -> PreconditioningRounds:
    made = PreconditioningRounds(
        "default", "w", "rand-write-4k", 0, 60.0, iops, judge_steady_state_rounds(iops)
    )
    return replace(made, **more)


def section_of(*rounds: PreconditioningRounds) -> ReportSection | None:
    brief = replace(shared.brief("kpi"), preconditioning_rounds=rounds)
    return stability_section(brief)


def rounds_of(*rounds: PreconditioningRounds) -> tuple[Chart, ...]:
    made = section_of(*rounds)
    assert made is not None
    (group,) = made.groups
    return group.charts


def test_there_is_no_section_of_a_target_that_was_measured_as_it_was() -> None:
    assert section_of() is None


def test_the_page_has_the_section_in_its_contents() -> None:
    source = kpi()
    source.ledger_given = TargetLedger(rounds=(series(STEADY),))
    page = build_report_page(build_brief(source))
    assert ("ground", "Stability") in page.appendix_anchors_and_titles


def test_rounds_tell_what_the_rule_found_of_their_last_window() -> None:
    steady, falling, few = rounds_of(series(STEADY), series(FALLING), series(FALLING[:2]))
    facts = ("7 rounds", "5", "5.9 %", "50.5 k IOPS", "20 %", "4 %", "10 %")
    assert tells(steady.finding, "Steady", *facts), steady.finding
    assert tells(falling.finding, "Not steady", "5 rounds", "5", "57 %")
    assert tells(few.finding, "2 rounds", "5", "nothing")


def test_the_window_is_drawn_with_its_band_average_and_slope() -> None:
    (figure,) = rounds_of(series(STEADY))
    box, average, fitted = figure.plots[0].marks[:3]
    mean = sum(STEADY[-5:]) / 5 / 1e3
    assert isinstance(box, Rectangles)
    assert isinstance(average, Line)
    assert isinstance(fitted, Line)
    assert box.boxes[0] == pytest.approx((3, 0.9 * mean, 7, 1.1 * mean))
    assert [y for _, y in average.places] == pytest.approx([mean, mean])
    (_, first), (_, last) = fitted.places
    assert first is not None
    assert last is not None
    assert (first + last) / 2 == pytest.approx(mean)
    assert first > last
    shown = [row[2].text for row in figure.table.rows]
    assert shown[:2] == ["", ""]
    assert shown[2] == "+3 %"


def test_series_beyond_the_limit_stand_in_the_table_alone() -> None:
    made = section_of(*(series(STEADY, label=f"w{i}") for i in range(ROUND_CHARTS_MAX + 3)))
    assert made is not None
    (group,) = made.groups
    assert len(group.charts) == ROUND_CHARTS_MAX
    assert group.table is not None
    assert len(group.table.rows) == ROUND_CHARTS_MAX + 3
    assert group.note == "3 series without a chart."


def watched(*rates: float) -> tuple[Study, list[RunResult]]:
    """A study with a sentinel and its runs, each second run of the session one of them."""
    study = replace(STUDY, method=replace(STUDY.method, kind=MethodKind.ADAPTIVE))
    point = sentinel_point(study)
    assert point is not None
    own = [
        replace(
            result(1, rate, repeat=index),
            digest=point.digest,
            axis_values=point.axis_values,
            order=2 * index - 1,
            metrics={"iops": Metric(rate, "1/s")},
        )
        for index, rate in enumerate(rates, 1)
    ]
    others = [
        replace(result(4, 5e4, repeat=index), order=2 * index) for index in range(1, len(rates))
    ]
    return study, [*own, *others]


def sentinel(*rates: float) -> ReportSection | None:
    study, results = watched(*rates)
    plain = build_brief(source_of(replace(STUDY, workloads=()), seconds=1))
    brief: Brief = replace(plain, study=study, results=tuple(results))
    return stability_section(brief)


def test_a_still_sentinel_is_drawn_over_the_session() -> None:
    made = sentinel(1e4, 1.002e4, 0.999e4)
    assert made is not None
    (figure,) = made.groups[0].charts
    assert "No more than" in figure.finding
    line = figure.plots[0].marks[0]
    assert isinstance(line, Line)
    assert [x for x, _ in line.places] == [1, 3, 5]
    assert [row[0].text for row in figure.table.rows] == ["1", "3", "5"]


def test_runs_between_sentinels_that_differ_are_shaded() -> None:
    made = sentinel(1e4, 1.001e4, 0.7e4, 0.7e4)
    assert made is not None
    (figure,) = made.groups[0].charts
    assert "The sentinel jumped by" in figure.finding
    shade = figure.plots[0].marks[0]
    assert isinstance(shade, Rectangles)
    assert shade.boxes == [(3, None, 5, None)]


def test_a_single_sentinel_is_no_course() -> None:
    assert sentinel(1e4) is None
