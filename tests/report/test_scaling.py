"""The section on scaling with hosts: its figures, words and table."""

from __future__ import annotations

from msgspec.structs import replace

from iolab.core.metric import RunResult, VerdictLevel
from iolab.report.brief import Brief
from iolab.report.charts.chart import Chart, Line, ReportSection
from iolab.report.machines import few_usable_counts_text
from iolab.report.sections import host_scaling_section
from tests.facts import tells
from tests.report.growing import RATES, STUDY, points, runs
from tests.report.made import build_brief
from tests.report.synthetic import source_of


def brief() -> Brief:
    return replace(build_brief(source_of(replace(STUDY, workloads=()), seconds=1)), study=STUDY)


def section(found: list[RunResult]) -> ReportSection | None:
    return host_scaling_section(replace(brief(), points=points(found)))


def figures(found: list[RunResult]) -> tuple[Chart, ...]:
    made = section(found)
    assert made is not None
    (group,) = made.groups
    return group.charts


def test_there_is_no_section_where_hosts_are_not_varied() -> None:
    assert section(runs({4: RATES[4]})) is None


def test_a_number_of_machines_that_alone_gave_a_figure_is_named() -> None:
    lost = dict.fromkeys((2, 4, 8), VerdictLevel.INVALID)
    assert few_usable_counts_text(points(runs(RATES, lost))) == "only 1 host gave a usable figure"
    assert "too few" in few_usable_counts_text(points(runs(RATES, {**lost, 1: lost[2]})))


def test_the_growth_is_told_beside_the_ideal() -> None:
    growth, efficiency = figures(runs(RATES))
    facts = ("10.0 k IOPS", "1 host", "40.2 k IOPS", "8", "4.02 times", "ideal is 8", "all valid")
    assert tells(growth.finding, *facts), growth.finding
    assert tells(efficiency.finding, "8 hosts", "50 %")


def test_the_ideal_is_a_straight_line_from_the_fewest_and_fits_the_scale() -> None:
    growth = figures(runs(RATES))[0]
    ideal, scale = growth.plots[0].marks[0], growth.plots[0].y
    assert isinstance(ideal, Line)
    assert scale is not None
    (_, first), (_, last) = ideal.places
    assert first is not None
    assert last == 8 * first
    assert scale.high >= last
    assert ideal.dash


def test_every_step_has_its_row_with_interval_and_verdict() -> None:
    for figure in figures(runs(RATES, {4: VerdictLevel.INVALID, 8: VerdictLevel.INDICATIVE})):
        rows = [[cell.text for cell in row] for row in figure.table.rows]
        assert [row[1] for row in rows] == ["1", "2", "4", "8"]
        assert rows[0][6:8] == ["100 %", "by definition"]
        assert rows[1][3] != "–"
        assert [row[-1].verdict_level for row in figure.table.rows] == [
            VerdictLevel.VALID,
            VerdictLevel.VALID,
            VerdictLevel.INVALID,
            VerdictLevel.INDICATIVE,
        ]


def test_curves_of_other_axes_are_told_apart() -> None:
    growth = figures([*runs(RATES, depth=1), *runs(RATES, depth=8)])[0]
    assert "iodepth 1: from 10.0 k IOPS" in growth.finding
    assert "iodepth 8: from 10.0 k IOPS" in growth.finding
