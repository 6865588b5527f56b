"""Where a session's time goes: every second in one phase, and load apart from its start and end."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import asdict, replace

from iolab.core.events import SessionPhase
from iolab.session.times import COMMIT, LOAD, SessionPhaseTimer, engine_seconds_of_record
from iolab.units import NS_PER_S
from tests.analysis.records import healthy


def counted(seconds: list[float]) -> Callable[[], int]:
    """A clock that was read at these seconds."""
    left = iter(seconds)
    return lambda: round(next(left) * NS_PER_S)


def test_every_second_is_of_one_phase() -> None:
    times = SessionPhaseTimer(counted([0.0, 2.0, 3.0, 13.5, 13.5, 15.0, 16.0]))
    times.begin_session_phase(SessionPhase.IDLE)
    times.begin_session_phase(SessionPhase.MEASURE)
    times.split_load_from_measure_phase(10.0)
    times.begin_session_phase(COMMIT)
    times.begin_session_phase(SessionPhase.IDLE)
    found = {one.phase: (one.times, one.seconds) for one in times.phase_times()}
    assert found == {
        LOAD: (1, 10.0),
        SessionPhase.IDLE: (2, 2.0),
        SessionPhase.MEASURE: (1, 0.5),
        COMMIT: (1, 1.5),
    }


def test_load_is_no_longer_than_what_measured_it() -> None:
    times = SessionPhaseTimer(counted([0.0, 0.0, 3.0, 3.0]))
    times.begin_session_phase(SessionPhase.MEASURE)
    times.split_load_from_measure_phase(10.0)
    assert {one.phase: one.seconds for one in times.phase_times()} == {
        LOAD: 3.0,
        SessionPhase.MEASURE: 0.0,
    }


def test_what_came_between_the_phases_of_a_load_is_not_load() -> None:
    record = healthy()
    table = record.intervals
    kept = table.seq % 2 == 0
    parts = replace(table, **{name: column[kept] for name, column in asdict(table).items()})
    each_s = table.span_ns[0] / NS_PER_S
    assert engine_seconds_of_record(record) == len(set(table.seq.tolist())) * each_s
    assert (
        engine_seconds_of_record(replace(record, intervals=parts))
        == len(set(parts.seq.tolist())) * each_s
    )
