"""A ratio of two points has one interval and one verdict: on the page, in text and compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from iolab.analysis.findings import LargestSpeedupFinding
from iolab.analysis.ranked_findings import all_findings
from iolab.core.metric import Verdict, VerdictLevel
from iolab.registry import report_kinds
from iolab.report.best import BestFigure
from iolab.report.brief import Brief
from iolab.report.choice import choice_answer
from iolab.report.fast_facts import fast_facts
from iolab.report.gather import build_brief
from iolab.report.matrix import (
    PAIRS_NOTE,
    POINT_LOST,
    WorkloadRow,
    matrix_marks_note,
    workload_rows,
)
from iolab.report.maxima import FACTOR_HEADING, best_figures_with_hosts, maxima_table
from iolab.report.narrative import linked_finding_sentences
from iolab.report.numbers import MAYBE_CHANCE, NOT_DISTINGUISHABLE
from iolab.stats.comparison import Comparison, ComparisonVerdict
from iolab.store.reader import SessionReader
from tests.cli.in_process import call
from tests.facts import tells
from tests.report import shared
from tests.report.studies import with_results
from tests.report.test_answer import figure
from tests.samples import unpack

LARGEST = "sure gain"

COMPARED = dict[tuple[str, str, str], dict[str, object]]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two SSDs, recorded."""
    folder = tmp_path_factory.mktemp("sessions")
    unpack(folder)
    return folder / "ssds"


@pytest.fixture(scope="module")
def compared(session: Path) -> COMPARED:
    """What `iolab compare` says of each point and metric, b against a."""
    rows = json.loads(call("compare", session, "--json").stdout)["rows"]
    return {(row["workload"], str(row["axis"]), row["metric"]): row for row in rows}


@pytest.fixture(scope="module")
def brief(session: Path) -> Brief:
    """The report on it."""
    return build_brief(report_kinds(), SessionReader(session))


def test_sentences_have_the_intervals_of_compare(brief: Brief, compared: COMPARED) -> None:
    found = [
        finding
        for finding in all_findings(
            brief.study, brief.points, brief.gains_by_pair.gains_over_first()
        )
        if isinstance(finding, LargestSpeedupFinding)
    ]
    assert found
    for finding in found:
        row = compared[finding.workload, str(dict(finding.axis_values)), finding.metric]
        sign = 1 if row["better"] == "higher" else -1
        ends = sorted((1 + sign * (finding.low or 0.0), 1 + sign * (finding.high or 0.0)))
        assert ends == pytest.approx([row["low"], row["high"]])
        assert row["verdict"] == "better"


def test_a_gain_in_a_workload_without_a_sure_best_says_so(brief: Brief) -> None:
    """A load of one configuration is invalid: another of it may have been the best."""
    gains = {item.text for item in linked_finding_sentences(brief) if LARGEST in item.text}
    assert gains
    assert not any("not certain" in text for text in gains)
    best = next(figure for figure in brief.best_figures if figure.axis_values)
    lost = next(
        run
        for run in brief.results
        if run.workload == best.workload and run.axis_values != best.axis_values
    )
    spoilt = tuple(
        replace(run, verdict=Verdict(VerdictLevel.INVALID, ()))
        if run.digest == lost.digest
        else run
        for run in brief.results
    )
    texts = [item.text for item in linked_finding_sentences(with_results(brief, spoilt))]
    assert any(LARGEST in text and "not certain" in text for text in texts), texts


def test_the_matrix_calls_no_winner_that_compare_does_not(brief: Brief, compared: COMPARED) -> None:
    rows = workload_rows(brief.kinds.best_figures(brief))
    at_one_place = 0
    for row in rows:
        best = row.best
        assert best is not None
        if not _are_at_one_place(row.figures):
            continue
        at_one_place += 1
        told = compared[best.workload, str(dict(best.axis_values)), best.metric]
        assert row.has_supported_winner is (told["verdict"] in ("better", "worse"))
        ratio = float(str(told["ratio"]))
        assert row.next_best_ratio == pytest.approx(max(ratio, 1 / ratio))
    assert at_one_place


def _are_at_one_place(cells: tuple[BestFigure, ...]) -> bool:
    return len({cell.axis_values for cell in cells}) == 1 and all(
        not cell.axis_values_of_unusable_points for cell in cells
    )


def test_factors_of_the_appendix_have_the_interval_of_compare(
    brief: Brief, compared: COMPARED
) -> None:
    peaks = best_figures_with_hosts(brief)
    table = maxima_table(brief.study.configurations, peaks, {}, brief.gains_by_pair)
    place = [column.title.startswith(FACTOR_HEADING) for column in table.columns].index(True)
    base, held = brief.study.configurations[0].id, 0
    by_owner = {(peak.best_value.workload, peak.best_value.configuration): peak for peak in peaks}
    for peak, row in zip(peaks, table.rows, strict=True):
        best = peak.best_value
        if (
            best.configuration == base
            or best.axis_values != by_owner[best.workload, base].best_value.axis_values
        ):
            continue
        wanted = compared[best.workload, str(dict(best.axis_values)), best.metric]
        ends = [f"{wanted[name]:.3g}" for name in ("ratio", "low", "high")]
        assert tells(row[place].text, *ends), row[place].text
        held += 1
    assert held


def compared_figures(low: float, high: float, verdict: ComparisonVerdict) -> list[BestFigure]:
    """The best and another whose repeats disagree, held against each other in pairs."""
    best, other = figure("one", 1670.0, None), figure("two", 1000.0, None)
    by_pairs = Comparison(
        0.6,
        low,
        high,
        verdict,
        "",
        (3, 3),
        is_paired=True,
        log_ratio_error=0.05,
        df=4.0,
        p_value=0.02,
    )
    return [
        replace(best, comparisons=(("two", by_pairs),), repeats_range=(1100.0, 2000.0)),
        replace(other, repeats_range=(700.0, 1080.0)),
    ]


def test_a_lead_of_repeats_in_pairs_has_their_interval() -> None:
    (row,) = workload_rows(compared_figures(0.5, 0.8, ComparisonVerdict.WORSE))
    assert row.has_supported_winner
    assert row.lead_ratio_text == "1.67× (1.25× to 2.00×)"
    assert PAIRS_NOTE in matrix_marks_note([row])


@pytest.mark.parametrize(
    ("low", "high", "tie"), [(0.5, 0.9, MAYBE_CHANCE), (0.5, 1.1, NOT_DISTINGUISHABLE)]
)
def test_a_lead_that_is_not_supported_is_called_the_same_everywhere(
    low: float, high: float, tie: str
) -> None:
    figures = compared_figures(low, high, ComparisonVerdict.INCONCLUSIVE)
    (row,) = workload_rows(figures)
    titles = {"one": "One", "two": "Two"}
    answer = choice_answer([row], titles).text
    notes = matrix_marks_note([row])
    (fact,) = fast_facts(replace(shared.brief("sweep"), points=()), [row], ())
    others = {MAYBE_CHANCE, NOT_DISTINGUISHABLE} - {tie}
    for text in (answer, notes, fact.text):
        assert tie.split(" ")[-1] in text, text
        assert not any(other in text for other in others), text


def test_only_a_lost_point_that_could_overturn_a_lead_leaves_it_open() -> None:
    def row_of(owner: str, *lost: int) -> WorkloadRow:
        figures = [figure("one", 2000.0), figure("two", 1000.0)]
        (row,) = workload_rows(
            replace(
                each,
                axis_values=(("iodepth", 8),),
                load_axis_names=("iodepth",),
                axis_values_of_unusable_points=tuple((("iodepth", load),) for load in lost)
                if each.configuration == owner
                else (),
            )
            for each in figures
        )
        return row

    assert row_of("two", 1).has_supported_winner
    assert row_of("one", 1, 32).has_supported_winner  # it could only lead by more
    assert row_of("two", 32).undecided_reason == POINT_LOST


def test_a_sure_lead_over_the_next_best_is_told_where_that_over_another_is_not() -> None:
    """The answer has both, so that a buyer who decides between the two best knows."""
    best, doubted = compared_figures(0.5, 0.9, ComparisonVerdict.INCONCLUSIVE)
    second = replace(figure("three", 1200.0), repeats_range=(1190.0, 1210.0))
    by_pairs = Comparison(
        0.72,
        0.7,
        0.74,
        ComparisonVerdict.WORSE,
        "",
        (3, 3),
        is_paired=True,
        log_ratio_error=0.01,
        df=4.0,
        p_value=0.0001,
    )
    best = replace(best, comparisons=(*best.comparisons, ("three", by_pairs)))
    (row,) = workload_rows([best, second, doubted])
    answer = choice_answer([row], {"one": "One", "two": "Two", "three": "Three"})
    assert answer.sentence == "One is the best in reads; sure in none."
    assert tells(answer.details, "over Two (1.11× to 2.00×", "surely over Three, 1.39×")
