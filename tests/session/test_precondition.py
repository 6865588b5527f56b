"""Start states of devices and files: made in order, made again when the study wishes, accounted."""

from __future__ import annotations

from itertools import pairwise

import pytest

from iolab.core.events import (
    Event,
    LedgerChanged,
    Notice,
    SessionPhase,
    SessionPhaseStarted,
    SessionStatus,
)
from iolab.core.target_state import PurgeMethod, TargetLedger
from iolab.hosts.barrier import StopRequest
from iolab.session.context import WRITING
from iolab.session.session import EarlierSegments
from tests.fakes.script import FakeScript, loop_real_ns
from tests.session.stage import STUDY, Notes, Stage

DEVICE = '[target]\ndevice = "/dev/nvme0n1"\nserial = "E0001"\n'
REGION = 32 << 20
"""Two jobs of 16 MiB."""


def stage_of(
    wish: str,
    *,
    target: str = DEVICE,
    script: FakeScript | None = None,
    notes: Notes | None = None,
) -> Stage:
    text = STUDY.format(hosts="").replace('[target]\npath = "/mnt/bench"\n', target)
    text = f"{text}\n[precondition]\n{wish}\n"
    return Stage({"local": script or FakeScript()}, text=text, notes=notes or Notes())


def phases(stage: Stage) -> list[SessionPhase]:
    return [event.phase for event in stage.notes.of(SessionPhaseStarted)]


def ledger(stage: Stage) -> TargetLedger:
    return stage.notes.of(LedgerChanged)[-1].ledger


def test_a_device_is_purged_filled_and_then_measured() -> None:
    stage = stage_of('purge = "discard"\nfill = 2').play()
    assert stage.status is SessionStatus.DONE, stage.fault
    seen = phases(stage)
    assert (
        seen.index(SessionPhase.PURGE)
        < seen.index(SessionPhase.PRECONDITION)
        < seen.index(SessionPhase.PROVE)
    )
    assert seen.count(SessionPhase.PURGE) == 1
    assert SessionPhase.LAY_OUT not in seen
    (state,) = stage.records[0].states
    assert (state.purged_by, state.filled, state.written_bytes) == (
        PurgeMethod.DISCARD,
        2.0,
        2 * REGION,
    )
    (proof,) = [host.extents for host in stage.records[0].hosts]
    assert proof is not None
    assert (proof.method, proof.hole_bytes, proof.size_bytes) == ("ledger", 0, REGION)
    stage.assert_left_clean()


def test_the_ledger_says_what_is_under_way_before_it_is_begun() -> None:
    stage = stage_of('purge = "discard"').play()
    kept = [
        (
            type(event),
            event.ledger.targets[0].pending_write if isinstance(event, LedgerChanged) else "",
        )
        for event in stage.notes.events
        if isinstance(event, LedgerChanged)
        or (isinstance(event, SessionPhaseStarted) and event.phase is SessionPhase.PURGE)
    ]
    purge = kept.index((SessionPhaseStarted, ""))
    assert kept[purge - 1] == (LedgerChanged, "preparing")
    (target,) = ledger(stage).targets
    assert target.pending_write == ""
    assert target.runs[-1].engine_bytes == target.runs[-1].device_bytes
    assert target.written_bytes == REGION + sum(run.engine_bytes or 0 for run in target.runs)


@pytest.mark.parametrize(
    ("restore", "times"), [("once", 1), ("each-workload", 2), ("each-point", 3)]
)
def test_the_start_state_is_made_as_often_as_the_study_wishes(restore: str, times: int) -> None:
    stage = stage_of(f'purge = "discard"\nrestore = "{restore}"').play()
    assert phases(stage).count(SessionPhase.PURGE) == times
    assert len(stage.hosts["local"].asked("discard")) == times


def test_a_target_rests_as_long_after_what_is_written_before_a_run_as_after_a_load() -> None:
    begun: list[tuple[SessionPhase, float]] = []

    def react(event: Event) -> None:
        if isinstance(event, SessionPhaseStarted):
            begun.append((event.phase, loop_real_ns() / 1e9))

    stage = stage_of('purge = "discard"\nrestore = "each-point"', notes=Notes(react)).play()
    assert stage.status is SessionStatus.DONE, stage.fault
    phases = [phase for phase, _ in begun]
    written_s = [after_s for (phase, _), (_, after_s) in pairwise(begun) if phase in WRITING]
    starts_s = [at_s for phase, at_s in begun if phase is SessionPhase.MEASURE]
    assert phases.count(SessionPhase.PURGE) == len(starts_s) == 3
    for start_s in starts_s[1:]:
        assert start_s - max(at for at in written_s if at <= start_s) >= 2.0


def test_a_writing_workload_runs_in_rounds_until_it_is_steady() -> None:
    stage = stage_of("steady = true\nround = 10").play()
    assert stage.status is SessionStatus.DONE, stage.fault
    (series,) = ledger(stage).rounds
    assert (series.workload, len(series.iops), series.is_steady) == ("seq-write", 5, True)
    reads, _, write = stage.records
    assert reads.states[0].steady is None
    assert write.states[0].steady is True


def test_files_are_removed_and_laid_out_anew() -> None:
    folder = '[target]\npath = "/mnt/bench"\n'
    stage = stage_of('purge = "fstrim"\nfill = 2', target=folder).play()
    assert stage.status is SessionStatus.DONE, stage.fault
    seen = phases(stage)
    assert [
        one
        for one in seen
        if one in (SessionPhase.PURGE, SessionPhase.LAY_OUT, SessionPhase.PRECONDITION)
    ] == [
        SessionPhase.LAY_OUT,
        SessionPhase.PURGE,
        SessionPhase.LAY_OUT,
        SessionPhase.PRECONDITION,
    ]
    assert len(stage.hosts["local"].asked("trim")) == 1
    stage.assert_left_clean()


def test_a_refused_device_is_never_taken() -> None:
    stage = stage_of('purge = "discard"', script=FakeScript(objections=("mounted", "swap"))).play()
    assert stage.fault is not None
    assert len(stage.fault.faults) == 2
    for verb in ("device_open", "discard", "run"):
        assert stage.hosts["local"].asked(verb) == []


@pytest.mark.parametrize("wish", [False, True])
def test_what_lies_on_a_device_is_lost_only_where_the_study_says_so(*, wish: bool) -> None:
    target = f"{DEVICE}overwrite = true\n" if wish else DEVICE
    stage = stage_of("fill = 1", target=target).play()
    assert stage.status is SessionStatus.DONE, stage.fault
    host = stage.hosts["local"]
    for verb in ("device", "device_open"):
        assert {request["overwrite"] for request in host.asked(verb)} == {wish}


def test_a_stop_while_it_is_prepared_is_an_interruption_and_the_state_is_made_again() -> None:
    stage = stage_of('purge = "discard"\nfill = 2')
    stage.stop = StopRequest()

    def stop_at_fill(event: Event) -> None:
        if (
            isinstance(event, SessionPhaseStarted)
            and event.phase is SessionPhase.PRECONDITION
            and stage.stop
        ):
            stage.stop.request_stop()

    stage.notes.react = stop_at_fill
    stage.play()
    assert stage.status is SessionStatus.INTERRUPTED
    assert ledger(stage).targets[0].pending_write == "preparing"
    stage.assert_left_clean()
    again = stage_of('purge = "discard"\nfill = 2')
    again.earlier = EarlierSegments(ledger=ledger(stage))
    again.play()
    assert again.status is SessionStatus.DONE, again.fault
    assert phases(again).count(SessionPhase.PURGE) == 1
    assert again.records[0].states[0].written_bytes == 2 * REGION


def test_a_session_that_goes_on_keeps_the_state_that_it_left() -> None:
    first = stage_of('purge = "discard"').play()
    done = frozenset((record.run.point.digest, 1) for record in first.records[:2])
    counter = ledger(first).targets[0].counter_bytes
    again = stage_of('purge = "discard"')
    again.earlier = EarlierSegments(done_run_keys=done, ledger=ledger(first))
    again.play()
    assert again.status is SessionStatus.DONE, again.fault
    # This machine counts from its own beginning: less than before, so the disk was replaced.
    assert counter is not None
    assert any("unknown" in notice.text for notice in again.notes.of(Notice))
    assert phases(again).count(SessionPhase.PURGE) == 1
