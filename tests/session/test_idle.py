"""The idle watch: what it may overlap with, and that nobody who uses the device escapes it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from iolab.core.events import Event, SessionPhase, SessionPhaseStarted
from iolab.core.metric import VerdictLevel
from iolab.core.run import PreRunActivity, RunRecord
from iolab.loads.fileio.engine_facts import FILE_ENGINES, FIO_ENGINE
from iolab.session.start import LAST_WATCH_S
from tests.fakes.machine import DiskUse, sample
from tests.fakes.script import FakeScript, loop_real_ns
from tests.judging import judge
from tests.session.stage import Notes, Stage

Machine = Callable[[DiskUse, int, int, int], dict[str, object]]

LIMIT_MEASURED, WATCH_ENDED = 4, 6
"""Looks at the devices before the first run: two before the session, and two pairs."""

OWN_S = FILE_ENGINES[FIO_ENGINE].generator_limit_load_s


def used_before(look: int, ios: int) -> Machine:
    """A host whose device does so many reads of a page just before that look."""

    def machine(disk: DiskUse, seq: int, mono_ns: int, real_ns: int) -> dict[str, object]:
        if seq == look:
            disk.read_ios += ios
            disk.read_bytes += ios * 4096
        return sample(disk, seq, mono_ns, real_ns)

    return machine


def idle_of(record: RunRecord) -> PreRunActivity:
    idle = record.hosts[0].pre_run_activity
    assert idle is not None
    return idle


def busy_level(record: RunRecord) -> VerdictLevel | None:
    (found,) = [one for one in judge(record, {}).verdict.checks if one.code == "device-busy"]
    return found.level


def test_it_begins_with_the_generator_limit_and_lasts_as_long_as_is_asked_for() -> None:
    begun: list[tuple[SessionPhaseStarted, float]] = []

    def react(event: Event) -> None:
        if isinstance(event, SessionPhaseStarted):
            begun.append((event, loop_real_ns() / 1e9))

    stage = Stage(notes=Notes(react), sets=("method.repeats=2",)).play()
    lasted = {
        (one.run.point.digest, one.run.repeat): after_s - at_s
        for (one, at_s), (_, after_s) in pairwise(begun)
        if one.phase is SessionPhase.IDLE and one.run
    }
    assert len(lasted) == len(stage.records) == 6
    for record in stage.records:
        run = record.run
        assert idle_of(record).watched_s == pytest.approx(1.0, abs=0.01)
        # A point that is repeated has its limit already, and is watched alone.
        alone_s = 1.0 - OWN_S if run.repeat == 1 else 1.0
        assert lasted[run.point.digest, run.repeat] == pytest.approx(alone_s, abs=0.05)
        assert busy_level(record) is VerdictLevel.VALID


def test_who_begins_after_the_generator_limit_is_found() -> None:
    later = FakeScript(machine=used_before(WATCH_ENDED, 5000))
    (record, *_) = Stage({"local": later}).play().records
    assert idle_of(record).ios_per_s == pytest.approx(5000, rel=0.01)
    assert busy_level(record) is VerdictLevel.INDICATIVE


def test_who_goes_on_from_before_the_generator_limit_is_found() -> None:
    busy = FakeScript(idle_bytes_per_sample=4096 * 1000)
    for record in Stage({"local": busy}).play().records:
        assert idle_of(record).ios_per_s == pytest.approx(1000, rel=0.01)
        assert busy_level(record) is VerdictLevel.INDICATIVE


def test_what_the_generator_limit_itself_may_have_read_is_no_others() -> None:
    own = FakeScript(machine=used_before(LIMIT_MEASURED, 5000))
    (record, *_) = Stage({"local": own}).play().records
    idle = idle_of(record)
    assert (idle.bytes_per_s, idle.ios_per_s) == (0.0, 0.0)
    assert idle.watched_s == pytest.approx(1.0, abs=0.01)
    assert busy_level(record) is VerdictLevel.VALID


def test_a_little_before_and_after_counts_together() -> None:
    little = FakeScript(machine=used_before(LIMIT_MEASURED, 10))
    (record, *_) = Stage({"local": little}).play().records
    assert idle_of(record).ios_per_s == pytest.approx(10, rel=0.01)


def test_a_long_generator_limit_leaves_a_last_look() -> None:
    stage = Stage({"local": FakeScript(delay_s=0.2)}).play()
    asked_s = [
        one.expected_s
        for one in stage.notes.of(SessionPhaseStarted)
        if one.phase is SessionPhase.IDLE
    ]
    assert asked_s[0] == LAST_WATCH_S
    assert idle_of(stage.records[0]).watched_s > 1.0


def test_after_a_long_generator_limit_nothing_is_left_to_watch_where_nothing_else_was_done() -> (
    None
):
    """Reads follow proofs and drops on the same device, and a rest leaves time for others."""

    def watched(settle: str) -> set[str]:
        stage = Stage({"local": FakeScript(delay_s=0.2)}, sets=(f"method.settle={settle}",)).play()
        assert all(idle_of(record).watched_s > 1.0 for record in stage.records)
        asked = [
            one
            for one in stage.notes.of(SessionPhaseStarted)
            if one.phase is SessionPhase.IDLE and one.run
        ]
        return {one.run.point.workload for one in asked if one.run}

    assert watched("0s") == {"rand-read"}
    assert watched("2s") == {"rand-read", "seq-write"}


@pytest.mark.parametrize(("watch", "pause_s"), [("1s", 1.0), ("0s", 2.0 - OWN_S)])
def test_the_rest_before_a_run_ends_with_it(watch: str, pause_s: float) -> None:
    """The limit is measured in it, too: it touches no target."""
    stage = Stage(sets=(f"method.idle_watch={watch}",)).play()
    asked_s = [
        one.expected_s
        for one in stage.notes.of(SessionPhaseStarted)
        if one.phase is SessionPhase.SETTLE
    ]
    assert asked_s == pytest.approx([pause_s] * 2, abs=0.01)
    for before, after in pairwise(stage.records):
        ended_ns, begun_ns = before.hosts[0].end_real_ns, after.hosts[0].start_real_ns
        assert ended_ns is not None
        assert begun_ns is not None
        assert begun_ns - ended_ns >= 2e9
