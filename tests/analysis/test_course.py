"""Figures of a run with phases: shares, dates, stalls, and what was copied."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.core.metric import Result
from iolab.report.course import fault_impact_sentence, run_fault_impact_sentence
from tests.analysis.planted import PHASED, Session, phased, said, scaled
from tests.analysis.records import SECOND
from tests.judging import judge


def judged(session: Session) -> Result:
    return judge(session.record, session.facts)


def dipped() -> Session:
    """Nearly half of the rate was lost from the fault at 90 s on until 130 s."""
    return PHASED.but(phased(scaled(90, 130, 0.556)))


def test_shares_and_dates_are_those_that_were_made() -> None:
    result = judged(dipped())
    course = result.course
    assert course is not None
    share = course.phases[1].baseline_share
    assert share.low is not None
    assert share.high is not None
    assert share.low <= 0.556 <= share.high
    assert [(change.at_s.value, bool(change.cause)) for change in course.changes] == [
        (90.0, True),
        (130.0, True),
    ]
    assert course.baseline_s is not None
    assert course.baseline_s.value == pytest.approx(40, abs=0.1)
    assert course.broken_s == ((91.5, 130.5),)
    assert result.metrics["phase.degraded.baseline_share"] == share
    assert result.metrics["course.baseline_s"] == course.baseline_s


def test_a_rate_that_never_comes_back_has_no_date() -> None:
    course = judged(PHASED.but(phased(scaled(90, 150, 0.5)))).course
    assert course is not None
    assert course.baseline_s is None


def test_a_load_without_an_effect_says_so() -> None:
    result = judged(PHASED)
    assert result.course is not None
    assert result.course.changes == ()
    assert "nothing that this load shows" in run_fault_impact_sentence(result)


def test_a_witness_that_counts_tells_the_rate_of_the_rebuild() -> None:
    course = judged(said(dipped(), rebuilt_bytes=1_000_000)).course
    assert course is not None
    assert course.rebuild_bytes_per_s is not None
    # One MB more with each answer, a second apart; some of the last second is not counted.
    assert course.rebuild_bytes_per_s.value == pytest.approx(1e6, rel=0.05)


def test_seconds_without_a_stream_are_unavailable_and_a_stall() -> None:
    counts = scaled(0, 0, 1.0)
    result = judged(PHASED.but(phased([*counts[:95], *[40] * 6, *counts[101:]])))
    course = result.course
    assert course is not None
    assert set(course.standstill_s) >= set(range(96, 100))
    assert course.phases[1].unavailable_s >= 4
    longest = course.phases[1].longest_stall_s
    assert longest.value is not None
    assert longest.value == pytest.approx(32 / 40, rel=0.05)


def test_the_sentence_tells_cost_dates_and_loss() -> None:
    result = judged(dipped())
    assert result.course is not None
    text = run_fault_impact_sentence(result)
    for part in ("44 % of the IOPS", "'degraded'", "redundancy was back 40 s", "40 s after"):
        assert part in text
    lost = replace(result.course, lost_blocks=2)
    assert fault_impact_sentence([lost], result.metrics).startswith("2 blocks lack")
    unknown = replace(result.course, lost_blocks=None)
    assert "not known" in fault_impact_sentence([result.course, unknown], result.metrics)


def test_a_host_that_stops_by_itself_is_found() -> None:
    counts = scaled(0, 0, 1.0)
    record = phased(counts[:140])
    result = judged(PHASED.but(record))
    (check,) = [c for c in result.verdict.checks if c.code == "phase-unfinished"]
    assert check.evidence["seconds"] == pytest.approx(10, abs=1)
    assert record.course is not None
    assert (
        record.course.phases[-1].end_real_ns - record.course.phases[0].start_real_ns == 150 * SECOND
    )
