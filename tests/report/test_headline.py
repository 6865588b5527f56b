from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from iolab.analysis.findings import best_point_findings
from iolab.analysis.points import summarise_points
from iolab.analysis.stored_results import repeats_disagree_check
from iolab.core.configuration import LatencyLimit, Objective, WorkloadObjective
from iolab.core.metric import CheckResult, HostResult, Metric, RunResult, Verdict, VerdictLevel
from iolab.core.run import RunStatus
from iolab.core.study import Study
from iolab.core.workload import BY_IOPS, BY_LATENCY
from iolab.loads.fileio.workload import AccessPattern
from iolab.registry import report_kinds
from iolab.report.best import best_point_headlines, count_runs_by_verdict_and_status, median_result
from iolab.report.best_terminal import left_out_repeats_sentences
from iolab.report.gather import DISTRIBUTIONS_MAX, TIMELINES_MAX, select_charted_runs
from iolab.report.matrix import matrix_table, workload_rows
from iolab.report.narrative import configuration_names, finding_sentence
from iolab.report.phrases import (
    Objection,
    merge_objections,
    objection_runs_text,
    result_run_name_text,
    run_with_configuration_text,
    title_by_configuration_if_several,
)
from iolab.report.session_answer import session_answer
from tests.facts import tells
from tests.report.studies import one_configuration, sweep
from tests.report.synthetic import job, objecting, study_of, workload

STUDY = study_of(
    "s",
    "S",
    "",
    one_configuration("a", "b"),
    (workload("w", "W", job(AccessPattern.RANDREAD, 4096), (1, 8), BY_IOPS),),
)


def result(
    depth: int, iops: float | None, level: VerdictLevel = VerdictLevel.VALID, repeat: int = 1
) -> RunResult:
    units = {"iops": "1/s", "lat_ns_mean": "ns", "lat_ns_p99_5": "ns", "bw_bytes_per_s": "bytes/s"}
    metrics = {key: Metric(iops, unit) for key, unit in units.items()}
    half = {key: Metric(None if iops is None else iops / 2, unit) for key, unit in units.items()}
    verdict = Verdict(VerdictLevel.VALID, ())
    if level is not VerdictLevel.VALID:
        verdict = objecting(level, "some-check", f"It is {level.value}.", depth=depth)
    return RunResult(
        configuration="default",
        workload="w",
        axis_values=(("iodepth", depth),),
        repeat=repeat,
        digest=f"{depth:016x}",
        status=RunStatus.DONE,
        failure=None,
        window_s=30.0,
        metrics=metrics,
        hosts=(HostResult("a", half), HostResult("b", half)),
        verdict=verdict,
    )


def test_the_best_depth_is_named_with_total_and_mean_per_host() -> None:
    best = best_point_headlines(
        STUDY, summarise_points([result(1, 100.0), result(8, 700.0)], STUDY)
    )[0].best
    assert best is not None
    assert (best.headline_metric.value, best.mean_host_rate.value, best.axis_text) == (
        700.0,
        350.0,
        "iodepth 8",
    )


def test_an_invalid_run_is_not_the_best_while_there_is_another() -> None:
    best = best_point_headlines(
        STUDY, summarise_points([result(1, 100.0), result(8, 700.0, VerdictLevel.INVALID)], STUDY)
    )[0].best
    assert best is not None
    assert (best.headline_metric.value, best.verdict_level) == (100.0, VerdictLevel.VALID)


def test_an_invalid_run_alone_is_shown_as_invalid() -> None:
    best = best_point_headlines(
        STUDY, summarise_points([result(8, 700.0, VerdictLevel.INVALID)], STUDY)
    )[0].best
    assert best is not None
    assert best.verdict_level is VerdictLevel.INVALID


def test_repeats_are_told_by_what_is_published_of_them_and_the_worst_verdict() -> None:
    repeats = [
        result(8, 600.0),
        result(8, 900.0, VerdictLevel.INDICATIVE, repeat=2),
        result(8, 700.0, repeat=3),
    ]
    best = best_point_headlines(STUDY, summarise_points(repeats, STUDY))[0].best
    (published,) = summarise_points(repeats, STUDY)
    assert best is not None
    assert best.headline_metric == published.metrics["iops"]
    assert best.headline_metric.value == pytest.approx((600.0 * 900.0 * 700.0) ** (1 / 3))
    assert best.mean_host_rate.value == pytest.approx((600.0 * 900.0 * 700.0) ** (1 / 3) / 2)
    assert best.metrics == published.metrics
    assert (best.median_run.repeat, best.verdict_level) == (3, VerdictLevel.INDICATIVE)


def test_an_invalid_repeat_is_left_out_of_the_figure() -> None:
    best = best_point_headlines(
        STUDY,
        summarise_points(
            [result(8, 600.0), result(8, 900.0, VerdictLevel.INVALID, repeat=2)], STUDY
        ),
    )[0].best
    assert best is not None
    assert (best.headline_metric.value, best.headline_metric.n, best.verdict_level) == (
        600.0,
        1,
        VerdictLevel.VALID,
    )


def paced_study(**changes: object) -> Study:
    rated = replace(STUDY.workloads[0].job, rate_iops=100)
    return replace(STUDY, workloads=(replace(STUDY.workloads[0], job=rated, **changes),))


def test_a_requested_rate_that_one_repeat_did_not_keep_is_not_the_best() -> None:
    """By rate 8 a repeat is invalid; at 16 both are valid, but that is beyond a rate that fails."""
    results = [
        result(1, 100.0),
        result(8, 800.0),
        result(8, 800.0, VerdictLevel.INVALID, repeat=2),
        result(16, 1600.0),
    ]
    for study, axis in ((paced_study(), "iodepth 1"), (STUDY, "iodepth 16")):
        points = summarise_points(results, study)
        (headline,) = best_point_headlines(study, points)
        assert headline.best is not None
        assert headline.best.axis_text == axis
        (finding,) = best_point_findings(study, points)
        assert finding.axis_values == headline.best.axis_values


def test_where_no_repeat_was_kept_throughout_the_best_says_so() -> None:
    results = [result(8, 800.0), result(8, 800.0, VerdictLevel.INVALID, repeat=2)]
    for study in (paced_study(), STUDY):
        points = summarise_points(results, study)
        (headline,) = best_point_headlines(study, points)
        assert headline.best is not None
        assert headline.best.left_out_repeats_text == "1 of 2 repeats invalid: 800 IOPS"
        answer = session_answer(report_kinds(), study, points, results, {})
        assert "1 of 2 repeats invalid" in answer.answer.sentence
        (cell,) = (
            cell
            for row in matrix_table(workload_rows(answer.figures), {"default": ""}, {}).rows
            for cell in row
            if "800" in cell.text
        )
        assert "1 of 2 repeats invalid" in cell.note
        (line,) = left_out_repeats_sentences(answer.figures, {})
        assert "W" in line
        (finding,) = best_point_findings(study, points)
        assert "1 of 2 repeats invalid" in finding_sentence(finding, configuration_names(study))


def test_the_best_of_a_search_for_the_highest_load_keeps_its_limit() -> None:
    """Latency grows with the rate: 700 ns are the limit, and a rate of 800 has 800."""
    limit = LatencyLimit("lat_ns_mean", 700)
    study = paced_study(search_goal=WorkloadObjective(Objective.MAX_LOAD, latency_limit=limit))
    results = [result(depth, depth * 100.0) for depth in (1, 4, 8)]
    points = summarise_points(results, study)
    (headline,) = best_point_headlines(study, points)
    assert headline.best is not None
    assert headline.best.axis_text == "iodepth 4"


@pytest.mark.parametrize(("key", "shown"), [("iops", 100.0), ("lat_ns_mean", 300.0)])
def test_of_two_middle_repeats_the_one_that_flatters_less_is_shown(key: str, shown: float) -> None:
    middle = median_result([result(1, 100.0), result(1, 300.0, repeat=2)], key)
    assert middle.metrics[key].value == shown


def test_lower_latency_is_better() -> None:
    study = replace(STUDY, workloads=(replace(STUDY.workloads[0], indicator=BY_LATENCY),))
    best = best_point_headlines(
        study, summarise_points([result(1, 100.0), result(8, 700.0)], study)
    )[0].best
    assert best is not None
    assert best.headline_metric.value == 100.0


def test_a_workload_without_a_value_has_no_best() -> None:
    found = best_point_headlines(STUDY, summarise_points([result(1, None)], STUDY))
    assert (found[0].best, found[0].unmeasured_run_count) == (None, 1)


def test_objections_are_grouped_and_the_worst_comes_first() -> None:
    results = [
        result(1, 1.0, VerdictLevel.INDICATIVE),
        result(2, 1.0, VerdictLevel.INDICATIVE),
        result(4, 1.0, VerdictLevel.INVALID),
        result(8, 1.0),
    ]
    found = merge_objections(results)
    assert [(item.verdict_level, len(item.runs)) for item in found] == [
        (VerdictLevel.INVALID, 1)
    ]  # one check is one caveat
    (found_once,) = found
    assert len(found_once.less_affected_runs) == 2
    text = objection_runs_text(found_once)
    assert tells(text, "1 of 4 runs", "indicative in 2 more", "iodepth 1", "iodepth 2"), text
    assert (
        count_runs_by_verdict_and_status(results).valid,
        count_runs_by_verdict_and_status(results).indicative,
        count_runs_by_verdict_and_status(results).invalid,
    ) == (1, 2, 1)


def test_checks_that_say_the_same_of_the_same_runs_are_one_objection() -> None:
    run = result(1, 1.0, VerdictLevel.INDICATIVE)
    (check,) = run.verdict.objections
    twice = Verdict(VerdictLevel.INDICATIVE, (check, replace(check, code="zz-other")))
    (found,) = merge_objections([replace(run, verdict=twice), result(2, 1.0)])
    assert (found.code, found.equivalent_codes) == (check.code, ("zz-other",))
    other = replace(check, code="zz-other", message="Something else.")
    runs = [replace(run, verdict=Verdict(VerdictLevel.INDICATIVE, (check, other)))]
    assert [one.code for one in merge_objections(runs)] == [check.code, "zz-other"]


def test_a_sentence_of_several_runs_has_the_range_of_each_number() -> None:
    run = result(1, 1.0, VerdictLevel.INDICATIVE)
    (check,) = run.verdict.objections
    texts = ("a2 did 646 IOPS: 7 % of 5.", "a1 did 1.24 k IOPS: 0.5 % of 5.")
    found = _objection_with_messages(run, check, texts)
    assert found.message == "a2 or a1 did 0.646 to 1.24 k IOPS: 0.5 to 7 % of 5."
    assert objection_runs_text(found) == "all 2 runs"
    (alone,) = merge_objections([run])
    assert alone.message == check.message


def test_repeats_that_disagree_are_told_by_their_ratio_alone() -> None:
    run = result(1, 1.0, VerdictLevel.INDICATIVE)
    (check,) = run.verdict.objections
    checks = [repeats_disagree_check([1.0, 1.5, highest], "iops") for highest in (2.01, 8.71)]
    texts = [own.message for own in checks if own is not None]
    found = _objection_with_messages(run, check, texts)
    assert found.message == "3 repeats: the highest is 2.01 to 8.71 times the lowest."
    assert objection_runs_text(found) == "all 2 runs"


def test_a_first_repeat_is_named_beside_a_later_one_of_another_point() -> None:
    first = result(1, 1.0, VerdictLevel.INDICATIVE)
    later = replace(result(2, 1.0, VerdictLevel.INDICATIVE), repeat=2)
    (found,) = merge_objections([first, later])
    text = objection_runs_text(replace(found, session_run_count=6))
    assert tells(text, "2 of 6 runs", "repeat 1", "repeat 2"), text
    (alone,) = merge_objections([first])
    assert "repeat" not in objection_runs_text(replace(alone, session_run_count=6))


def test_other_sentences_are_not_hidden_by_a_range() -> None:
    run = result(1, 1.0, VerdictLevel.INDICATIVE)
    (check,) = run.verdict.objections
    found = _objection_with_messages(run, check, ("It took 9 ms.", "It took 2 s.", "Busier."))
    assert found.message == "It took 9 ms to 2 s."
    assert objection_runs_text(found) == "all 3 runs (as told here in 2)"


def test_the_runs_that_a_sentence_is_of_stand_first() -> None:
    run = result(1, 1.0, VerdictLevel.INDICATIVE)
    (check,) = run.verdict.objections
    found = merge_objections(
        [
            *(
                replace(
                    result(place, 1.0),
                    verdict=Verdict(VerdictLevel.INDICATIVE, (replace(check, message=text),)),
                )
                for place, text in enumerate(("Busier.", "It took 9 ms.", "It took 2 s."), 1)
            ),
            result(8, 1.0),
        ]
    )[0]
    text = objection_runs_text(found)
    places = [text.index(f"iodepth {depth}") for depth in (2, 3, 1)]
    assert places == sorted(places), text


def test_a_tail_whose_repeats_disagree_has_their_range() -> None:
    def latencies(*tails_ms: float) -> dict[str, str]:
        runs = []
        for repeat, tail in enumerate(tails_ms, 1):
            run = result(8, 800.0, repeat=repeat)
            p99 = Metric(tail * 1e6, "ns")
            runs.append(replace(run, metrics={**run.metrics, "lat_ns_p99": p99}))
        points = summarise_points(runs, STUDY)
        (figure,) = session_answer(report_kinds(), STUDY, points, runs, {}).figures
        return dict(figure.latency_names_and_texts)

    assert tells(latencies(35.9, 78.1, 60.6)["p99"], "(repeats 35.9 to 78.1 ms)")
    assert "repeats" not in latencies(60.0, 60.1, 60.2)["p99"]


def _objection_with_messages(run: RunResult, check: CheckResult, texts: Sequence[str]) -> Objection:
    """What one check objects to in runs with these sentences."""
    (found,) = merge_objections(
        [
            replace(
                result(place, 1.0),
                verdict=Verdict(VerdictLevel.INDICATIVE, (replace(check, message=text),)),
            )
            for place, text in enumerate(texts, 1)
        ]
    )
    return found


def test_repeats_of_a_point_are_named_once() -> None:
    run = result(1, 1.0, VerdictLevel.INDICATIVE)
    repeats = [replace(run, repeat=number) for number in (1, 2, 3)]
    (found,) = merge_objections([*repeats, result(2, 1.0)])
    assert tells(objection_runs_text(found), "3", "4", result_run_name_text(run))
    assert objection_runs_text(found).count(result_run_name_text(run)) == 1


def test_headline_runs_then_bad_runs_get_charts_within_the_limits() -> None:
    results = [result(depth, float(depth)) for depth in range(1, 200)]
    results[50] = result(51, 51.0, VerdictLevel.INVALID)
    chosen = select_charted_runs(
        report_kinds(), results, best_point_headlines(STUDY, summarise_points(results, STUDY))
    )
    assert chosen.with_timeline[:2] == ((f"{199:016x}", 1), (f"{51:016x}", 1))
    assert (len(chosen.with_timeline), len(chosen.with_distribution)) == (
        TIMELINES_MAX,
        DISTRIBUTIONS_MAX,
    )


@pytest.mark.parametrize("iops", [None])
def test_runs_without_a_value_get_no_chart(iops: float | None) -> None:
    assert select_charted_runs(report_kinds(), [result(1, iops)], ()).with_distribution == ()


def test_runs_of_several_configurations_are_named_with_their_titles() -> None:
    source = sweep(("alpha", "beta"), seconds=20)
    names = title_by_configuration_if_several(source.study)
    (first, *_) = source.results()
    assert names == {one.id: one.title for one in source.study.configurations}
    assert names[first.configuration] != first.configuration
    assert (
        run_with_configuration_text(first, names)
        == f"{result_run_name_text(first)} of {names[first.configuration]}"
    )
    assert run_with_configuration_text(
        first, title_by_configuration_if_several(sweep(seconds=20).study)
    ) == result_run_name_text(first)
