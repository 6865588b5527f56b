"""The state of a session moves on with its events, and foretells its end."""

from __future__ import annotations

import numpy as np
from bench.synthetic import make_record
from msgspec.structs import replace

from iolab.cli.progress import SECONDS_KEPT, SessionProgress
from iolab.core.events import IntervalReported, RunFinished, RunPreparing, ScenarioNotice
from iolab.core.histogram import MIDDLE_NS
from iolab.study.cost import RUN_OVERHEAD_S
from tests.cli.command_line import PLAN, SHAPE

RUN = PLAN.runs[0]


def fresh(run_count: int = 4, host_count: int = 2) -> SessionProgress:
    return SessionProgress("s", run_count, 0, host_count, 2.0, 10.0, 1.0, now_s=100.0)


def after(
    progress: SessionProgress, *seconds: tuple[str, float, float, float | None]
) -> SessionProgress:
    for host, second, iops, latency in seconds:
        seen = IntervalReported(host, RUN, second, iops, iops * 4096, latency)
        progress = progress.after_event(seen, 100.0)
    return progress


def test_the_99th_percentile_is_of_all_hosts_together_and_no_mean_of_theirs() -> None:
    state = fresh().after_event(RunPreparing(RUN), 100.0)
    counts = {"a": ((10, 9_800), (200, 200)), "b": ((10, 990), (400, 10))}
    for host, bins in counts.items():
        numbers, ios = (np.array(column) for column in zip(*bins, strict=True))
        seen = IntervalReported(host, RUN, 1.0, 1e4, 4e7, 1e5, ((numbers, ios),))
        state = state.after_event(seen, 100.0)
    (load,) = state.completed_load_seconds
    # 10,790 of 11,000 lie in bin 10, which is 98.1 %: the 99th lies in the next one.
    assert load.lat_ns_p99 == MIDDLE_NS[200]
    few = IntervalReported("a", RUN, 2.0, 5, 2e4, 1e5, ((np.array([10]), np.array([5])),))
    for host in ("a", "b"):
        state = state.after_event(replace(few, host=host), 100.0)
    assert state.completed_load_seconds[-1].lat_ns_p99 is None


def test_a_second_counts_when_every_host_has_told_of_it() -> None:
    state = after(
        fresh().after_event(RunPreparing(RUN), 100.0), ("a", 1.0, 10, 1e3), ("a", 2.0, 20, 1e3)
    )
    assert state.completed_load_seconds == ()
    state = after(state, ("b", 1.02, 30, 1e3))
    assert [(load.elapsed_s, load.iops) for load in state.completed_load_seconds] == [(1.0, 40.0)]


def test_latency_of_hosts_is_weighted_by_their_ios() -> None:
    state = after(fresh(), ("a", 1, 300, 100.0), ("b", 1, 100, 500.0))
    assert state.completed_load_seconds[0].lat_ns_mean == (300 * 100.0 + 100 * 500.0) / 400
    assert (
        after(fresh(host_count=1), ("a", 1, 0, None)).completed_load_seconds[0].lat_ns_mean is None
    )


def test_a_run_of_hours_does_not_grow_the_state() -> None:
    state = after(fresh(host_count=1), *(("a", at, 1.0, 1e3) for at in range(SECONDS_KEPT * 3)))
    assert len(state.completed_load_seconds) == SECONDS_KEPT
    assert state.completed_load_seconds[-1].elapsed_s == SECONDS_KEPT * 3 - 1


def test_the_end_is_foretold_from_the_method_and_then_from_the_runs_that_were_timed() -> None:
    state = fresh(run_count=3)
    assert state.remaining_s == 3 * (10 + 1 + RUN_OVERHEAD_S)
    state = state.after_event(RunPreparing(RUN), 100.0)
    state = state.after_event(RunFinished(make_record(RUN, SHAPE)), 130.0)
    assert (state.ended_run_count, state.remaining_s) == (1, 2 * 30)
    state = state.after_event(RunPreparing(PLAN.runs[1]), 130.0)
    assert [state.at_time(moment).remaining_s for moment in (140.0, 10_000.0)] == [30 + 20, 30]


def test_a_phase_that_ended_early_shortens_what_is_left() -> None:
    phases = {"before": 20.0, "rebuild": 1_200.0, "after": 20.0}
    state = replace(fresh(run_count=1), load_s=1_240.0, max_phase_s_by_id=phases)
    state = state.after_event(RunPreparing(RUN), 100.0)
    state = state.after_event(ScenarioNotice("Phase 'rebuild' begins.", "rebuild"), 120.0)
    rest_s = 1 + RUN_OVERHEAD_S
    assert state.at_time(130.0).remaining_s == 1_190 + 20 + rest_s
    state = state.after_event(ScenarioNotice("Phase 'after' begins.", "after"), 150.0)
    assert [state.at_time(at).remaining_s for at in (155.0, 900.0)] == [15 + rest_s, rest_s]
