"""Replays whose queue grows, whose store is not full, or whose hits are not the trace's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from iolab.analysis.bottleneck.decision import BottleneckCause, decide_bottleneck
from iolab.analysis.kinds import judge_run
from iolab.core.generator import GeneratorTotals, SubmissionLateness
from iolab.core.metric import CheckResult, VerdictLevel
from iolab.loads.kvcache.checks import significant_backlog_growth
from iolab.loads.kvcache.workload import WritePolicy
from iolab.registry import analysis_kinds
from tests.analysis.records import facts_of
from tests.loads.kvcache.records import GENERATOR, JOB, replayed

RISING = tuple(range(0, 60, 2))


def answer(code: str, **changes: Any) -> CheckResult:
    record = replayed(**changes)
    result = judge_run(record, {host.host: facts_of(host.host) for host in record.hosts}, KINDS)
    return {check.code: check for check in result.verdict.checks}[code]


def level(code: str, **changes: Any) -> VerdictLevel | None:
    return answer(code, **changes).level


KINDS = analysis_kinds()


def generator(**changes: Any) -> GeneratorTotals:
    return replace(GENERATOR, **changes)


@pytest.mark.parametrize(
    ("code", "changes", "expected"),
    [
        ("queue-grows", {}, VerdictLevel.VALID),
        ("queue-grows", {"backlog": RISING}, VerdictLevel.INVALID),
        ("queue-grows", {"write_backlog": RISING}, VerdictLevel.INVALID),
        ("queue-grows", {"blocks_dropped_unwritten": 1000}, VerdictLevel.INDICATIVE),
        ("queue-grows", {"blocks_dropped_unwritten": 9000}, VerdictLevel.INVALID),
        ("queue-grows", {"generator": generator(unreached=True)}, VerdictLevel.INVALID),
        ("queue-grows", {"job": replace(JOB, requests_per_s=None)}, None),
        ("capacity-not-filled", {}, VerdictLevel.VALID),
        ("capacity-not-filled", {"held_at_start": 5000}, VerdictLevel.INDICATIVE),
        ("capacity-not-filled", {"held_at_start": 10, "held_at_end": 5000}, VerdictLevel.INVALID),
        ("reuse-differs", {"hits": 8030}, VerdictLevel.VALID),
        ("reuse-differs", {"hits": 8040}, VerdictLevel.INVALID),
        ("reuse-differs", {"job": replace(JOB, write=WritePolicy.SECOND_USE)}, None),
        ("work-outside-window", {"generator": generator(drained_ios=100)}, VerdictLevel.VALID),
        (
            "work-outside-window",
            {"generator": generator(drained_ios=60_000)},
            VerdictLevel.INDICATIVE,
        ),
        (
            "work-outside-window",
            {"generator": generator(unsubmitted=300_000)},
            VerdictLevel.INVALID,
        ),
        ("generator-late", {}, VerdictLevel.VALID),
        (
            "generator-late",
            {"generator": generator(lateness=SubmissionLateness(9, 1, 2_000_000, 3_000_000))},
            VerdictLevel.INDICATIVE,
        ),
        ("generator-late", {"generator": generator(lateness=None)}, VerdictLevel.INDICATIVE),
    ],
)
def test_a_replay_is_judged_by_what_it_was_asked(
    code: str, changes: dict[str, Any], expected: VerdictLevel | None
) -> None:
    assert level(code, **changes) is expected


def test_a_rate_that_is_not_kept_is_no_queue_that_grew_by_nothing() -> None:
    text = answer("queue-grows", generator=generator(unreached=True)).message
    assert text.startswith("The last requests began ever later than they were due")


@pytest.mark.parametrize("seed", range(20))
def test_a_backlog_that_comes_and_goes_does_not_grow(seed: int) -> None:
    """Neither of independent requests nor of a few seconds' waves."""
    random = np.random.default_rng(seed)
    waves = 4 * np.sin(np.arange(60) / 2) + 5
    assert significant_backlog_growth(random.poisson(waves).astype(float)) == 0
    assert significant_backlog_growth(random.poisson(np.arange(60.0)).astype(float)) > 30


def test_a_store_that_keeps_up_is_limited_by_the_requested_rate() -> None:
    record = replayed()
    result = judge_run(record, {host.host: facts_of(host.host) for host in record.hosts}, KINDS)
    assert result.resources is not None
    assert decide_bottleneck(result.resources, None).cause is BottleneckCause.RATE
