"""Results of a resumed session: whether those before and after may stand together. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final, Protocol

from iolab.core.host import HostFacts
from iolab.core.metric import CheckResult, RunResult, VerdictLevel
from iolab.study.readiness import host_change_faults

RESUME_CHECK_CODE: Final = "resumed-on-changed-host"
"""The check's code; docs/reference/checks/resumed-on-changed-host.md says what it means."""


SEGMENTS_PER_SESSION: Final = 1000
"""Segments of the n-th of several sessions count from n times this on; no session has as many."""


def merged_session_index(result: RunResult) -> int:
    """Which of several sessions that are looked at together made a result; 0 where there is one."""
    return result.segment // SEGMENTS_PER_SESSION


class SessionStart(Protocol):
    """What a session found when it was started or resumed."""

    @property
    def facts(self) -> Mapping[str, HostFacts]:
        """The facts of the hosts."""


class SessionWithStarts(Protocol):
    """A session with its results and its starts."""

    @property
    def facts_of_all_starts(self) -> Sequence[SessionStart]:
        """Every start, oldest first."""

    def results(self) -> tuple[RunResult, ...]:
        """The results of all committed runs."""


def results_with_resume_checks(
    results: tuple[RunResult, ...], session: SessionWithStarts
) -> tuple[RunResult, ...]:
    """The session's results; those of curves that several segments measured say so."""
    # Facts of a fleet are large: they are read only where the session was resumed.
    if len({result.segment for result in results}) < 2:
        return results
    return results_with_segment_checks(
        results, [start.facts for start in session.facts_of_all_starts]
    )


def results_with_segment_checks(
    results: Sequence[RunResult], facts_by_segment: Sequence[Mapping[str, HostFacts]]
) -> tuple[RunResult, ...]:
    """The results with one more check where a curve's points are of several segments.

    `facts_by_segment` are those of each segment, the first one first. A curve is a workload in a
    configuration. The check is valid while the hosts were the same, else indicative.
    """
    curves: dict[tuple[str, str], set[int]] = {}
    for result in results:
        curves.setdefault((result.configuration, result.workload), set()).add(result.segment)
    checks = {
        curve: _hosts_of_segments_check(sorted(segments), facts_by_segment)
        for curve, segments in curves.items()
        if len(segments) > 1
    }
    return tuple(
        result.with_session_check(checks.get((result.configuration, result.workload)))
        for result in results
    )


def _hosts_of_segments_check(
    segment_numbers: Sequence[int], facts_by_segment: Sequence[Mapping[str, HostFacts]]
) -> CheckResult:
    present = [
        facts_by_segment[segment - 1]
        for segment in segment_numbers
        if segment <= len(facts_by_segment)
    ]
    changed = [
        fault.message
        for before, after in pairwise(present)
        for fault in host_change_faults(before, after)
    ]
    text = ", ".join(str(segment) for segment in segment_numbers)
    evidence: dict[str, int | str] = {"segments": text, "changes": len(changed)}
    if not changed:
        message = f"Measured over several starts ({text}) of the session, on unchanged hosts."
        return CheckResult(RESUME_CHECK_CODE, VerdictLevel.VALID, message, evidence)
    message = f"Measured over several starts ({text}), and hosts had changed: {changed[0]}"
    return CheckResult(RESUME_CHECK_CODE, VerdictLevel.INDICATIVE, message, evidence)
