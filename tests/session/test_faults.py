"""Hosts and engines that fail in every phase: what is recorded, what goes on, what is cleaned."""

from __future__ import annotations

import errno
import tracemalloc

import pytest

from iolab.core.events import (
    CpuUseReported,
    Event,
    IntervalReported,
    Notice,
    RunFinished,
    RunPreparing,
    SessionEnded,
    SessionPhase,
    SessionPhaseStarted,
    SessionStarted,
    SessionStatus,
)
from iolab.core.host import TargetProbe
from iolab.core.run import RunStatus
from iolab.errors import EngineError, HostError, StoreError
from tests.fakes.fio import FakeLoad
from tests.fakes.host import FakeHost
from tests.fakes.machine import machine_facts
from tests.fakes.script import FakeScript
from tests.session.stage import Notes, Stage

GOOD = FakeLoad()


def statuses(stage: Stage) -> list[RunStatus]:
    return [record.status for record in stage.records]


def test_a_layout_that_fails_otherwise_is_the_engines_fault() -> None:
    broken = FakeLoad(exit_code=1, stderr=b"fio: engine libaio not loadable\n")
    stage = Stage({"local": FakeScript(layouts=(broken,))}).play()
    assert isinstance(stage.fault, EngineError)
    assert "engine libaio not loadable" in stage.fault.message
    stage.assert_left_clean()


def test_a_killed_engine_fails_its_run_with_its_evidence_and_the_session_goes_on() -> None:
    loads = (FakeLoad(killed_at_s=2.5), GOOD)
    stage = Stage({"local": FakeScript(loads=loads)}).play()
    assert stage.status is SessionStatus.DONE
    assert statuses(stage) == [RunStatus.FAILED, RunStatus.DONE, RunStatus.DONE]
    record = stage.records[0]
    assert "'local' was killed by signal 9 (SIGKILL)" in str(record.failure)
    (host,) = record.hosts
    assert host.exit_signal == 9
    assert host.error == record.failure
    assert "kernel log" in str(record.failure_hint)
    assert int(record.intervals.ios.sum()) == 2000
    assert len(record.counters) > 0
    assert record.outputs[0].content.decompress().count(b'"fio version"') == 2
    assert host.devices[0].read_ios == 2000
    stage.assert_left_clean()


def test_a_host_with_absurd_intervals_fails_its_run_alone_in_little_memory() -> None:
    absurd = FakeScript(loads=(FakeLoad(time_factor=10**6), GOOD))
    tracemalloc.start()
    stage = Stage({"a": absurd, "b": FakeScript(loads=(GOOD,))}).play()
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert stage.status is SessionStatus.DONE
    assert statuses(stage) == [RunStatus.FAILED, RunStatus.DONE, RunStatus.DONE]
    record = stage.records[0]
    assert [host.error is not None for host in record.hosts] == [True, False]
    assert "'a' reported a duration of" in str(record.failure)
    assert set(record.intervals.host.tolist()) == {1}
    assert most_bytes < 256 << 20
    stage.assert_left_clean()


def test_an_engine_that_prints_nonsense_fails_its_run() -> None:
    loads = (FakeLoad(prints=b"fio: what?\n\x00\xff{{{ not json"), GOOD)
    stage = Stage({"local": FakeScript(loads=loads)}).play()
    assert statuses(stage) == [RunStatus.FAILED, RunStatus.DONE, RunStatus.DONE]
    assert stage.records[0].outputs[0].content.decompress() == b"fio: what?\n\x00\xff{{{ not json"
    assert stage.records[0].hosts[0].totals is None


def test_an_engine_that_fails_is_told_with_its_own_words() -> None:
    loads = (
        FakeLoad(exit_code=1, error=errno.EIO, stderr=b"fio: io_u error: Input/output error\n"),
        GOOD,
    )
    stage = Stage({"local": FakeScript(loads=loads)}).play()
    record = stage.records[0]
    assert record.status is RunStatus.FAILED
    assert record.failure is not None
    assert "ended with exit code 1" in record.failure
    assert "Input/output error" in record.failure
    assert "Input/output error" in record.hosts[0].stderr_tail


def test_an_engine_that_never_ends_is_given_up_with_its_host() -> None:
    """A process that not even SIGKILL ends hangs in the kernel: that host is of no use any more."""
    stage = Stage({"local": FakeScript(loads=(FakeLoad(hangs=True),))}).play()
    assert statuses(stage) == [RunStatus.FAILED]
    assert isinstance(stage.fault, HostError)
    assert "did not end 'fio' within" in stage.fault.message
    assert stage.ended.status is SessionStatus.FAILED


def test_holes_are_not_read() -> None:
    stage = Stage({"local": FakeScript(hole_bytes=3 << 20, extents_method="seek")}).play()
    assert isinstance(stage.fault, HostError)
    assert "3 MiB of its files" in stage.fault.message
    stage.assert_left_clean()


def test_holes_that_come_later_fail_the_run_before_the_engine_starts() -> None:
    stage = Stage()

    def punch(event: Event) -> None:
        if isinstance(event, RunPreparing):
            stage.hosts["local"].agent.hole_bytes = 3 << 20

    stage.notes = Notes(punch)
    stage.play()
    assert statuses(stage) == [RunStatus.FAILED, RunStatus.FAILED, RunStatus.DONE]
    record = stage.records[0]
    assert "3 MiB of" in str(record.failure)
    assert "never written" in str(record.failure)
    assert record.hosts[0].extents is not None
    assert record.hosts[0].extents.hole_bytes == 3 << 20
    assert record.hosts[0].argv == ()
    layouts = len(stage.plan.data_sets)
    assert len(stage.hosts["local"].runs) == layouts + 1


@pytest.mark.parametrize("method", ["blocks", "none"])
def test_a_proof_that_proves_nothing_is_kept_for_the_checks_to_judge(method: str) -> None:
    stage = Stage({"local": FakeScript(hole_bytes=3 << 20, extents_method=method)}).play()
    assert statuses(stage) == [RunStatus.DONE] * 3
    proof = stage.records[0].hosts[0].extents
    assert proof is not None
    assert (proof.method, proof.hole_bytes) == (method, 3 << 20)


def test_a_full_disk_during_layout_is_named_and_cleaned() -> None:
    full = FakeLoad(exit_code=1, error=errno.ENOSPC, stderr=b"fio: No space left on device\n")
    stage = Stage({"local": FakeScript(layouts=(full,))}).play()
    assert isinstance(stage.fault, HostError)
    assert "ran full while" in stage.fault.message
    assert stage.records == []
    assert len(stage.hosts["local"].asked("scratch_close")) == 1
    assert stage.ended == SessionEnded(SessionStatus.FAILED, stage.fault.message)
    stage.assert_left_clean()


@pytest.mark.parametrize("way", ["silent", "dies", "garbage"])
@pytest.mark.parametrize(
    ("verb", "records"),
    [
        ("facts", 0),
        ("probe", 0),
        ("scratch_open", 0),
        ("evict", 1),
        ("snapshot", 0),
        ("clock", 1),
        ("watch", 1),
    ],
)
def test_a_host_that_fails_in_any_phase_ends_the_session_named(
    way: str, verb: str, records: int
) -> None:
    bad = FakeScript(
        silent=frozenset({verb} if way == "silent" else ()),
        dies=frozenset({verb} if way == "dies" else ()),
        garbage=frozenset({verb} if way == "garbage" else ()),
    )
    stage = Stage({"c1": FakeScript(), "c2": bad}).play()
    assert isinstance(stage.fault, HostError)
    assert "'c2'" in stage.fault.message
    assert "'c1'" not in stage.fault.message
    assert statuses(stage) == [RunStatus.FAILED] * records
    for record in stage.records:
        assert "'c2'" in (record.failure or "")
        assert record.hosts[1].error is not None
    assert stage.ended.status is SessionStatus.FAILED
    stage.assert_left_clean(swept_on=("c2",))


@pytest.mark.parametrize("load", [FakeLoad(host_dies_at_s=2.5), FakeLoad(host_silent_at_s=2.5)])
def test_a_host_lost_in_the_middle_of_a_run_stops_the_others_and_keeps_what_they_had(
    load: FakeLoad,
) -> None:
    patient = ("method.runtime=600s",)
    stage = Stage({"c1": FakeScript(), "c2": FakeScript(loads=(load,))}, sets=patient).play()
    (record,) = stage.records
    assert record.status is RunStatus.FAILED
    first, second = record.hosts
    assert first.error is None
    assert first.stopped_early
    assert first.totals is not None
    assert "'c2'" in (second.error or "")
    assert set(record.intervals.host) == {0, 1}
    assert isinstance(stage.fault, HostError)
    stage.assert_left_clean(swept_on=("c2",))


def test_a_failed_engine_on_one_host_stops_the_others_and_the_session_goes_on() -> None:
    bad = FakeScript(loads=(FakeLoad(killed_at_s=1.5), GOOD))
    stage = Stage({"c1": FakeScript(), "c2": bad}).play()
    assert statuses(stage) == [RunStatus.FAILED, RunStatus.DONE, RunStatus.DONE]
    first, second = stage.records[0].hosts
    assert first.stopped_early
    assert first.exit_code == 0
    assert second.exit_signal == 9
    assert not second.stopped_early
    stage.assert_left_clean()


def test_all_hosts_that_cannot_serve_are_named_at_once() -> None:
    scripts = {
        "c1": FakeScript(refuses={"facts": ("EACCES", "cannot read it (EACCES)")}),
        "c2": FakeScript(),
        "c3": FakeScript(dies=frozenset({"probe"})),
    }
    stage = Stage(scripts).play()
    assert isinstance(stage.fault, HostError)
    assert len(stage.fault.faults) == 2
    assert "'c1', 'c3'" in stage.fault.message
    assert "right to do it" in stage.fault.faults[0].hint
    assert stage.notes.of(SessionStarted) == []
    stage.assert_left_clean()


def test_the_guard_refuses_before_anything_is_made() -> None:
    held = TargetProbe(direct_error=None, direct_align_bytes=512, held_by="session other")
    full = machine_facts("/mnt/bench", free_bytes=1 << 20)
    stage = Stage({"local": FakeScript(probe=held, facts=full)}).play()
    assert isinstance(stage.fault, HostError)
    assert len(stage.fault.faults) == 2
    assert stage.hosts["local"].asked("scratch_open") == []
    stage.assert_left_clean()


def test_other_users_of_a_directory_are_told_and_stop_nobody() -> None:
    theirs = TargetProbe(None, 512, None, other_user="user 7", movable_by="/mnt is of user\x1b 8")
    stage = Stage({"local": FakeScript(probe=theirs)}).play()
    assert stage.fault is None
    said = " ".join(notice.text for notice in stage.notes.of(Notice))
    assert "user 7" in said
    assert "8" in said
    assert "\x1b" not in said


def test_a_refused_folder_is_told_and_the_others_are_left() -> None:
    busy = FakeScript(refuses={"scratch_open": ("busy", "it is held by session other")})
    stage = Stage({"c1": FakeScript(), "c2": busy}).play()
    assert isinstance(stage.fault, HostError)
    assert "held by session other" in stage.fault.message
    assert len(stage.hosts["c1"].asked("scratch_close")) == 1
    stage.assert_left_clean()


@pytest.mark.parametrize(
    "when",
    [
        SessionStarted,
        RunPreparing,
        IntervalReported,
        CpuUseReported,
        RunFinished,
        SessionPhase.LAY_OUT,
    ],
)
def test_a_recorder_that_cannot_record_ends_the_session_cleanly(
    when: type[Event] | SessionPhase,
) -> None:
    def fail(event: Event) -> None:
        phase = event.phase if isinstance(event, SessionPhaseStarted) else None
        if phase is when or type(event) is when:
            raise StoreError("The disk is full.", "Make room.")

    stage = Stage(notes=Notes(fail)).play()
    assert isinstance(stage.fault, StoreError)
    assert stage.notes.of(SessionEnded) == []
    stage.assert_left_clean()


def test_a_folder_that_cannot_be_removed_is_told_in_the_end() -> None:
    stays = {"kind": "folder", "name": "/mnt/t/x", "reason": "cannot remove it (EIO)"}
    refuses = {"scratch_close": ("EIO", "cannot remove it (EIO)")}
    script = FakeScript(refuses=refuses, leftovers_at_close=(stays,))
    stage = Stage({"local": script}).play()
    assert stage.status is SessionStatus.DONE
    (sentence,) = stage.ended.leftover_texts
    assert "cannot remove it (EIO)" in sentence
    assert stage.ended.reason == sentence


class Unclosable(FakeHost):
    async def close(self) -> None:
        await super().close()
        if self.spec.name == "c1":
            raise OSError(5, "no more")


def test_a_host_that_cannot_be_closed_is_told_and_the_others_are_closed() -> None:
    stage = Stage({"c1": FakeScript(), "c2": FakeScript()}, host=Unclosable).play()
    assert stage.status is SessionStatus.DONE
    assert "'c1'" in (stage.ended.reason or "")
    assert "'c2'" not in (stage.ended.reason or "")
    stage.assert_left_clean()
