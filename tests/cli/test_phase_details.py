"""Details of runs with phases: the sentence of each of several runs, and none of an invalid one."""

from __future__ import annotations

from msgspec.structs import replace

from iolab.cli.details import INVALID_PHASES, run_detail_lines
from iolab.core.metric import Result
from iolab.report.scenario import run_fault_impact_sentence
from tests.analysis.planted import PHASED, happened, scaled
from tests.analysis.planted import phased as phased_record
from tests.cli.screens import drawn
from tests.judging import judge


def result_of(*, is_seen: bool = True) -> Result:
    session = PHASED.but(phased_record(scaled(90, 130, 0.5)))
    if not is_seen:
        session = happened(session, seen_real_ns=None)
    return judge(session.record, session.facts)


def details_of(*results: Result) -> str:
    return "\n".join(drawn(run_detail_lines(results)))


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
