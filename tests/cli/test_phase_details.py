"""Details of runs with phases: the sentence of each of several runs, and none of an invalid one."""

from __future__ import annotations

from msgspec.structs import replace

from iolab.analysis.points import summarise_points
from iolab.cli.details import detail_lines_of_runs
from iolab.core.metric import Metric, RunResult
from iolab.core.metric_spec import phase_metric_key
from iolab.registry import report_kinds
from iolab.report.scenario import (
    INVALID_PHASES,
    neighbour_table_ratios_note,
    phases_note,
    run_fault_impact_sentence,
    scenario_answer_text,
    scenario_section,
)
from tests.analysis.planted import PHASED, happened, neighboured, scaled
from tests.analysis.planted import phased as phased_record
from tests.cli.screens import drawn
from tests.judging import judge
from tests.report import shared


def result_of(*, is_seen: bool = True) -> RunResult:
    session = PHASED.but(phased_record(scaled(90, 130, 0.5)))
    if not is_seen:
        session = happened(session, seen_real_ns=None)
    return judge(session.record, session.facts)


def details_of(*results: RunResult) -> str:
    return "\n".join(drawn(detail_lines_of_runs(results)))


def test_the_only_run_has_its_sentence_in_the_answer_alone() -> None:
    result = result_of()
    sentence = run_fault_impact_sentence(result)
    assert "costs" in sentence
    assert sentence not in details_of(result)
    assert details_of(result, replace(result, repeat=2)).count(sentence) == 2


def test_an_invalid_run_tells_its_phases_as_no_result() -> None:
    good, bad = result_of(), replace(result_of(is_seen=False), repeat=2)
    text = details_of(good, bad)
    assert text.count(INVALID_PHASES) == 1
    assert text.count(run_fault_impact_sentence(good)) == 1
    assert text.count("degraded") >= 2


def test_a_missing_interval_and_a_p99_of_few_ios_are_explained() -> None:
    result = result_of()
    assert result.scenario is not None
    assert phases_note([result.scenario], result.metrics) == ""
    key = "phase.rebuild.baseline_share"
    short = {**result.metrics, key: replace(result.metrics[key], low=None, high=None)}
    note = phases_note([result.scenario], short)
    assert "'rebuild'" in note
    assert "'degraded'" not in note
    assert "9 s" in note
    assert "too few repeats" in phases_note([result.scenario] * 2, short)
    slow = tuple(
        replace(phase, iops=replace(phase.iops, value=10.0)) if phase.id == "after" else phase
        for phase in result.scenario.phases
    )
    note = phases_note([replace(result.scenario, phases=slow)], result.metrics)
    assert "10,000" in note
    assert "'after'" in note
    assert "'before'" not in note


def test_latencies_that_get_shorter_beside_a_neighbour_are_doubted() -> None:
    session = neighboured()
    result = judge(session.record, session.facts)
    (name,) = (key for key in result.metrics if key == "phase.degraded.p50_ratio")
    doubt = "disturbed the first phase"
    for low, high, is_doubted in ((0.4, 0.6, True), (0.4, 1.1, False), (1.5, 3.0, False)):
        ratio = Metric((low * high) ** 0.5, "x", low, high)
        p99 = name.replace("p50", "p99")
        metrics = {**result.metrics, name: ratio, p99: Metric(1.0, "x", 0.5, 2.0)}
        sentence = run_fault_impact_sentence(replace(result, metrics=metrics))
        assert (doubt in sentence) is is_doubted, sentence


def test_a_histogram_is_of_the_baseline_as_the_figures_are() -> None:
    record = PHASED.but(phased_record(scaled(90, 130, 0.5))).record
    assert record.scenario is not None
    window = report_kinds().report_of_result(judge(record, {})).latency_curves(record, "").window
    assert window is not None
    before = record.scenario.phases[0]
    assert before.start_real_ns <= window.start_ns < window.end_ns <= before.end_real_ns + 10**9


def test_ratios_that_are_surely_below_one_are_doubted_below_their_table() -> None:
    scenario = result_of().scenario
    assert scenario is not None
    before, degraded, *later = scenario.phases
    for high, is_doubted in ((0.8, True), (1.2, False)):
        ratio = Metric(0.5, "x", 0.3, high)
        phases = (before, replace(degraded, p99_ratio=ratio), *later)
        metrics = {phase_metric_key("degraded", "p99_ratio"): ratio}
        note = neighbour_table_ratios_note([replace(scenario, phases=phases)], metrics)
        assert ("In phase 'degraded' the p99 got shorter" in note) is is_doubted


def test_a_report_and_an_answer_say_of_an_invalid_point_what_it_lost_alone() -> None:
    brief = shared.brief("pair")
    (first, *_) = brief.results
    scenario = result_of().scenario
    assert scenario is not None
    run = replace(first, scenario=replace(scenario, lost_blocks=3))
    point = replace(summarise_points([first], brief.study)[0], results=(run,), is_trusted=True)
    invalid = replace(point, is_trusted=False)
    for given, is_doubted in ((point, False), (invalid, True)):
        section = scenario_section(replace(brief, points=(given,)))
        assert section is not None
        assert (INVALID_PHASES in section.groups[0].note) is is_doubted
        answer = scenario_answer_text(brief.study, [given])
        assert "3 blocks lack" in answer
        assert ("longest stall" in answer) is not is_doubted


def test_nothing_is_told_of_writes_where_nothing_was_written() -> None:
    result = result_of()
    assert "acknowledged" in run_fault_impact_sentence(result)
    metrics = {**result.metrics, "write_iops": Metric(None, "1/s")}
    assert "acknowledged" not in run_fault_impact_sentence(replace(result, metrics=metrics))
