"""What limits the best points: planted in curves and in what was watched."""

from __future__ import annotations

from msgspec.structs import replace

from iolab.analysis.bottleneck.decision import BottleneckCause
from iolab.analysis.findings import BottleneckFinding, best_point_findings, bottleneck_findings
from iolab.core.host import HostRole
from iolab.core.metric import RunResult, VerdictLevel
from iolab.core.resources import Resource, ResourceUse, RunResources
from tests.analysis.findings.cells import REPEATS, curve
from tests.loads.keyvalue.studies import BASE, STUDY, summarised

BUSY = ResourceUse(Resource.DEVICE, "c1", HostRole.CLIENT, "sda", 0.99, 1000.0, 31.0)
SEEN = RunResources((BUSY,), None, memory_backed=False, is_storage_monitored=True, stolen_share=0.0)
BENDS = {4: 4000.0, 16: 14_000.0, 64: 14_200.0}
RISES = {4: 4000.0, 16: 14_000.0, 64: 50_000.0}


def found_in(results: list[RunResult], seen: RunResources = SEEN) -> list[BottleneckFinding]:
    points = summarised(results)
    watched = {(one.digest, one.repeat): seen for one in results if one.repeat == 1}
    return list(
        bottleneck_findings(STUDY, points, tuple(best_point_findings(STUDY, points)), watched)
    )


def test_a_curve_that_bends_over_a_busy_device_names_it() -> None:
    (one,) = found_in(curve(BASE, BENDS))
    assert (one.configuration, one.workload) == (BASE, "readrandom-4k")
    assert one.axis_values == (("threads", 64),)
    assert (one.decision.cause, one.decision.limiting_use) == (BottleneckCause.DEVICE, BUSY)
    assert one.decision.step is not None
    assert (one.decision.step.load, one.decision.step.next_load) == (16, 64)
    assert len(one.run_keys) == 2 * REPEATS
    assert one.run_keys[0] == (f"{BASE}-readrandom-4k-64", 1)  # the one that was watched


def test_a_curve_that_rises_over_a_busy_device_does_not() -> None:
    (one,) = found_in(curve(BASE, RISES))
    assert one.decision.cause is BottleneckCause.LOAD


def test_software_is_told_with_the_law_of_the_curve() -> None:
    idle = replace(SEEN, uses=(replace(BUSY, share=0.3),))
    rates = {n: 1000.0 * n / (1 + 0.3 * (n - 1)) for n in (1, 2, 4, 8, 16, 32)}
    (one,) = found_in(curve(BASE, rates, spread=0.002), idle)
    assert one.decision.cause is BottleneckCause.SOFTWARE
    assert one.usl_fit is not None
    assert 0.25 < one.usl_fit.sigma < 0.35


def test_no_claim_on_what_was_not_watched_or_is_not_valid() -> None:
    points = summarised(curve(BASE, BENDS))
    assert (
        list(bottleneck_findings(STUDY, points, tuple(best_point_findings(STUDY, points)), {}))
        == []
    )
    assert found_in(curve(BASE, BENDS, level=VerdictLevel.INVALID)) == []
    (one,) = found_in(curve(BASE, BENDS, level=VerdictLevel.INDICATIVE))
    assert one.verdict_level is VerdictLevel.INDICATIVE


def test_a_step_of_single_runs_is_not_sure() -> None:
    (one,) = found_in(curve(BASE, BENDS, repeats=1))
    assert not one.decision.is_certain
    assert one.decision.step is not None
    assert one.decision.step.has_single_runs
