"""The state of a session moves on with its events, and foretells its end."""

from __future__ import annotations

import math

from bench.synthetic import make_record
from hypothesis import given
from hypothesis import strategies as st

from iolab.cli.progress import SECONDS_KEPT, Progress
from iolab.model.event import (
    Event,
    IntervalSeen,
    Phase,
    PhaseStarted,
    RunFinished,
    RunStarted,
    TelemetrySeen,
)
from iolab.plan.budget import RUN_OVERHEAD_S
from iolab.plan.schedule import make_plan
from tests.cli.command_line import PLAN, RESULTS, SHAPE
from tests.plan.key_value_studies import db_bench
from tests.plan.studies import load

RUN = PLAN.runs[0]


def fresh(run_count: int = 4, host_count: int = 2) -> Progress:
    return Progress(
        study="s",
        run_count=run_count,
        ended=0,
        host_count=host_count,
        warmup_s=2.0,
        load_s=10.0,
        settle_s=1.0,
        now_s=100.0,
    )


def interval(host: str, second: float, iops: float, latency: float | None = 1000.0) -> IntervalSeen:
    return IntervalSeen(host, RUN, second, iops, iops * 4096, latency)


def after(progress: Progress, *events: Event, now_s: float = 100.0) -> Progress:
    for event in events:
        progress = progress.after(event, now_s)
    return progress


def test_a_second_counts_when_every_host_has_told_of_it() -> None:
    state = after(fresh(), RunStarted(RUN), interval("a", 1.0, 10), interval("a", 2.0, 20))
    assert state.loads == ()
    state = after(state, interval("b", 1.02, 30))
    assert [(load.elapsed_s, load.iops) for load in state.loads] == [(1.0, 40.0)]


def test_latency_of_hosts_is_weighted_by_their_ios() -> None:
    state = after(fresh(), interval("a", 1, 300, 100.0), interval("b", 1, 100, 500.0))
    assert state.loads[0].lat_ns_mean == (300 * 100.0 + 100 * 500.0) / 400


def test_a_second_without_io_has_no_latency() -> None:
    state = after(fresh(host_count=1), interval("a", 1, 0, None))
    assert state.loads[0].lat_ns_mean is None


def test_the_next_run_begins_with_an_empty_picture() -> None:
    state = after(fresh(host_count=1), RunStarted(RUN), interval("a", 1, 5))
    assert state.loads
    assert after(state, RunStarted(PLAN.runs[1])).loads == ()


def test_a_run_of_hours_does_not_grow_the_state() -> None:
    state = fresh(host_count=1)
    for second in range(SECONDS_KEPT * 3):
        state = state.after(interval("a", float(second), 1.0), 0.0)
    assert len(state.loads) == SECONDS_KEPT
    assert state.loads[-1].elapsed_s == SECONDS_KEPT * 3 - 1


def test_before_the_first_run_the_end_is_foretold_from_the_method() -> None:
    state = fresh(run_count=3)
    assert state.remaining_s == 3 * (10 + 1 + RUN_OVERHEAD_S)


def test_laying_out_adds_what_is_left_of_it() -> None:
    state = after(fresh(run_count=1), PhaseStarted(Phase.LAY_OUT, None, "s1", 60.0))
    assert state.at(120.0).remaining_s == 11 + RUN_OVERHEAD_S + 40


def test_later_the_end_is_foretold_from_the_runs_that_were_timed() -> None:
    state = fresh(run_count=3).after(RunStarted(RUN), 100.0)
    state = state.after(RunFinished(make_record(RUN, SHAPE)), 130.0)
    assert state.ended == 1
    assert state.remaining_s == 2 * 30
    state = state.after(RunStarted(PLAN.runs[1]), 130.0).at(140.0)
    assert state.remaining_s == 30 + 20


KEYS = make_plan(load(db_bench(threads="[1, 2, 3]"))).runs


def test_a_run_that_fills_a_store_is_no_measure_of_the_others() -> None:
    finished = RunFinished(make_record(RUN, SHAPE))
    foretold = 10 + 1 + RUN_OVERHEAD_S
    state = after(fresh(run_count=3), RunStarted(KEYS[0]))
    state = after(state, PhaseStarted(Phase.LAY_OUT, KEYS[0], "a database", 5.0))
    state = after(state, PhaseStarted(Phase.MEASURE, KEYS[0], "", None), now_s=150.0)
    state = after(state, finished, now_s=160.0)
    assert state.remaining_s == 2 * foretold
    # A copy of it is laid out before each run, and belongs to it.
    state = after(state, RunStarted(KEYS[1]), now_s=160.0)
    state = after(state, PhaseStarted(Phase.LAY_OUT, KEYS[1], "a copy", None), now_s=160.0)
    state = after(state, PhaseStarted(Phase.MEASURE, KEYS[1], "", None), now_s=165.0)
    state = after(state, finished, now_s=180.0)
    assert state.remaining_s == 20


def test_rates_are_of_operations_but_for_io_and_metadata_has_no_warmup() -> None:
    metadata = '[[workload]]\nid = "m"\nengine = "metadata"\nranks = 1\nfiles_per_rank = 1\n'
    of_metadata = make_plan(load(f'format = 1\nid = "s"\n{metadata}')).runs[0]
    states = [after(fresh(), RunStarted(run)) for run in (RUN, KEYS[0], of_metadata)]
    assert [state.of_operations for state in states] == [False, True, True]
    assert [state.has_warmup for state in states] == [True, True, False]


def test_a_run_that_takes_longer_than_the_others_leaves_no_negative_time() -> None:
    state = fresh(run_count=1).after(RunStarted(RUN), 100.0)
    assert state.at(10_000.0).remaining_s == 0


def test_only_the_last_results_are_kept() -> None:
    state = fresh()
    for result in RESULTS:
        state = state.with_result(result)
    assert state.results == RESULTS[-5:]


def test_each_host_has_its_newest_telemetry() -> None:
    state = after(
        fresh(), TelemetrySeen("a", 0.2), TelemetrySeen("b", 0.9), TelemetrySeen("a", 0.4)
    )
    assert state.cpu_busy == {"a": 0.4, "b": 0.9}


@given(st.lists(st.tuples(st.floats(0, 1e7), st.floats(1, 1e9)), min_size=1, max_size=8))
def test_the_mean_lies_between_the_hosts(hosts: list[tuple[float, float]]) -> None:
    state = fresh(host_count=len(hosts))
    for number, (iops, latency) in enumerate(hosts):
        state = state.after(interval(f"h{number}", 1.0, iops, latency), 0.0)
    load = state.loads[0]
    assert math.isclose(load.iops, sum(iops for iops, _ in hosts))
    if load.lat_ns_mean is not None:
        busy = [latency for iops, latency in hosts if iops > 0]
        assert min(busy) * 0.999 <= load.lat_ns_mean <= max(busy) * 1.001
