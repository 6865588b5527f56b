"""The user stops: once for a clean end that keeps what was measured, twice for an end at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from iolab.core.events import (
    Event,
    IntervalReported,
    RunFinished,
    SessionPhase,
    SessionPhaseStarted,
    SessionStatus,
)
from iolab.core.run import RunStatus
from iolab.hosts.barrier import StopRequest
from tests.fakes.fio import FakeLoad
from tests.fakes.script import FakeScript
from tests.session.stage import Notes, Stage

LONG = ("method.runtime=600s",)


def stopped_at(
    when: Callable[[Event], bool],
    *,
    times: int = 1,
    sets: tuple[str, ...] = LONG,
    load: FakeLoad | None = None,
) -> Stage:
    """A session that is asked to stop when an event comes for the first time."""
    stop = StopRequest()

    def react(event: Event) -> None:
        if not stop.is_requested and when(event):
            for _ in range(times):
                stop.request_stop()

    script = FakeScript(loads=(load or FakeLoad(),))
    return Stage({"local": script}, sets=sets, stop=stop, notes=Notes(react)).play()


def at_phase(phase: SessionPhase) -> Callable[[Event], bool]:
    return lambda event: isinstance(event, SessionPhaseStarted) and event.phase is phase


def in_the_third_second(event: Event) -> bool:
    return isinstance(event, IntervalReported) and event.elapsed_s > 2.5


def test_one_request_keeps_what_was_measured() -> None:
    stage = stopped_at(in_the_third_second)
    assert stage.status is SessionStatus.INTERRUPTED
    assert stage.ended.status is SessionStatus.INTERRUPTED
    (record,) = stage.records
    assert record.status is RunStatus.INTERRUPTED
    assert record.failure is None
    (host,) = record.hosts
    assert host.stopped_early
    assert host.error is None
    assert host.totals is not None
    assert int(record.intervals.ios.sum()) >= 3000
    assert len(stage.hosts["local"].asked("scratch_close")) == 1
    stage.assert_left_clean()


def test_an_engine_that_is_deaf_to_the_wish_is_killed_and_its_intervals_are_kept() -> None:
    stage = stopped_at(in_the_third_second, load=FakeLoad(heeds_int=False))
    (record,) = stage.records
    assert record.status is RunStatus.INTERRUPTED
    assert record.hosts[0].exit_signal == 9
    assert int(record.intervals.ios.sum()) == 3000
    signals = [request["signal"] for request in stage.hosts["local"].asked("signal")]
    assert signals == ["INT", "KILL"]
    stage.assert_left_clean()


@pytest.mark.parametrize("phase", [SessionPhase.PROVE, SessionPhase.DROP_CACHES, SessionPhase.IDLE])
def test_a_run_that_was_only_prepared_leaves_no_record(phase: SessionPhase) -> None:
    stage = stopped_at(at_phase(phase))
    assert stage.status is SessionStatus.INTERRUPTED
    assert stage.records == []
    stage.assert_left_clean()


def test_a_request_before_the_start_still_ends_the_waiting_engine() -> None:
    stage = stopped_at(at_phase(SessionPhase.MEASURE))
    (record,) = stage.records
    assert record.status is RunStatus.INTERRUPTED
    assert len(record.intervals) == 0
    stage.assert_left_clean()


def test_a_layout_is_stopped_too() -> None:
    stage = stopped_at(at_phase(SessionPhase.LAY_OUT))
    assert stage.status is SessionStatus.INTERRUPTED
    assert stage.records == []
    stage.assert_left_clean()


def test_a_request_while_it_settles_ends_after_that_run() -> None:
    stage = stopped_at(at_phase(SessionPhase.SETTLE), sets=())
    assert stage.status is SessionStatus.INTERRUPTED
    assert [record.status for record in stage.records] == [RunStatus.DONE]


def test_a_request_at_the_very_end_changes_nothing() -> None:
    runs = len(Stage().plan.runs)
    seen: list[Event] = []

    def last_run_finished(event: Event) -> bool:
        seen.extend([event] if isinstance(event, RunFinished) else [])
        return len(seen) == runs

    stage = stopped_at(last_run_finished, sets=())
    assert stage.status is SessionStatus.DONE
    assert len(stage.records) == runs


@pytest.mark.parametrize(
    "phase", [SessionPhase.CONNECT, SessionPhase.LAY_OUT, SessionPhase.IDLE, SessionPhase.MEASURE]
)
def test_two_requests_end_at_once_and_the_agents_sweep(phase: SessionPhase) -> None:
    stage = stopped_at(at_phase(phase), times=2)
    assert stage.status is SessionStatus.INTERRUPTED
    assert stage.records == []
    stage.assert_left_clean(swept_on=("local",))


def test_two_requests_in_the_middle_of_a_run_kill_the_engine() -> None:
    stage = stopped_at(in_the_third_second, times=2)
    assert stage.status is SessionStatus.INTERRUPTED
    signals = [request["signal"] for request in stage.hosts["local"].asked("signal")]
    assert signals[-1] == "KILL"
    assert not any("run" in word for word in stage.hosts["local"].agent.swept)
    stage.assert_left_clean(swept_on=("local",))
