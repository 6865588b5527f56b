"""Results that may not stand in one curve: of another fleet, or of hosts that changed."""

from __future__ import annotations

from bench.synthetic import Shape, make_facts, make_plan, make_record, make_result, make_study
from msgspec.structs import replace

from iolab.analysis.points import summarise_points
from iolab.analysis.resume_checks import RESUME_CHECK_CODE, results_with_segment_checks
from iolab.analysis.stored_results import separate_configurations_with_excluded_hosts
from iolab.core.metric import RunResult, VerdictLevel
from iolab.report.best import best_point_headlines

SHAPE = Shape(points=4, seconds=2, hosts=2, cores=2, disks=1, nics=1)
STUDY = make_study(SHAPE)
FACTS = make_facts(SHAPE)
RESULTS = [make_result(make_record(run, SHAPE)) for run in make_plan(SHAPE).runs]
UPDATED = {
    name: replace(facts, kernel=replace(facts.kernel, release="9.9"))
    for name, facts in FACTS.items()
}


def of_segment(segment: int) -> list[RunResult]:
    """All but the first result are of a later segment."""
    return [RESULTS[0], *(replace(result, segment=segment) for result in RESULTS[1:])]


def marks(results: tuple[RunResult, ...]) -> set[VerdictLevel | None]:
    checks = [{one.code: one.level for one in result.verdict.checks} for result in results]
    return {check.get(RESUME_CHECK_CODE) for check in checks}


def test_one_segment_is_not_spoken_of() -> None:
    assert results_with_segment_checks(RESULTS, [FACTS]) == tuple(RESULTS)


def test_segments_on_the_same_hosts_mix_well() -> None:
    marked = results_with_segment_checks(of_segment(2), [FACTS, FACTS])
    assert marks(marked) == {VerdictLevel.VALID}
    assert [r.verdict.level for r in marked] == [r.verdict.level for r in RESULTS]


def test_segments_on_hosts_that_changed_are_indicative_and_say_what_changed() -> None:
    marked = results_with_segment_checks(of_segment(2), [FACTS, UPDATED])
    assert marks(marked) == {VerdictLevel.INDICATIVE}
    check = marked[0].verdict.checks[-1]
    assert "The kernel of host" in check.message
    assert check.evidence["changes"] == len(FACTS)
    assert all(result.verdict.level is not VerdictLevel.VALID for result in marked)


def test_a_change_between_segments_that_did_not_measure_the_curve_does_not_matter() -> None:
    later = [FACTS, UPDATED, FACTS]
    assert marks(results_with_segment_checks(of_segment(3), later)) == {VerdictLevel.VALID}


def test_results_without_a_host_stand_in_a_configuration_of_their_own() -> None:
    lacking = [RESULTS[0], *(replace(result, excluded_hosts=("c3",)) for result in RESULTS[1:])]
    study, results = separate_configurations_with_excluded_hosts(STUDY, lacking)
    whole = STUDY.configurations[0]
    assert [item.id for item in study.configurations] == [whole.id, f"{whole.id} without c3"]
    assert study.configurations[1].title == f"{whole.title} without c3"
    assert "c3" not in study.configurations[1].hosts
    assert [result.configuration for result in results].count(whole.id) == 1
    by_title = {
        one.configuration.title: one.point_count
        for one in best_point_headlines(study, summarise_points(results, study))
    }
    assert by_title == {whole.title: 1, f"{whole.title} without c3": len(RESULTS) - 1}
