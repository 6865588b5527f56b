"""What a session does when a run fails: each policy, with engines and hosts that fail."""

from __future__ import annotations

import errno

import pytest
from msgspec.structs import replace

from iolab.core.events import Event, Notice, RunFinished, SessionStatus
from iolab.core.run import RunStatus
from iolab.errors import EngineError, HostError
from iolab.session.session import EarlierSegments
from tests.facts import tells
from tests.fakes.fio import FakeLoad
from tests.fakes.machine import machine_facts
from tests.fakes.script import FakeScript
from tests.session.stage import UNREACHABLE, Notes, Stage

GOOD = FakeLoad()
KILLED = FakeLoad(killed_at_s=1.5)
DIES = FakeLoad(host_dies_at_s=2.5)


def told(stage: Stage) -> str:
    return "\n".join(notice.text for notice in stage.notes.of(Notice))


def outcomes(stage: Stage) -> list[tuple[str, int, int, RunStatus, tuple[str, ...]]]:
    return [
        (r.run.point.title_text, r.run.repeat, r.run.attempt, r.status, r.excluded_hosts)
        for r in stage.records
    ]


def script(*loads: FakeLoad) -> FakeScript:
    return FakeScript(loads=loads)


def test_stop_ends_the_session_after_the_failed_run_is_kept() -> None:
    stage = Stage({"local": script(KILLED, GOOD)}, sets=("method.on_failure=stop",)).play()
    assert [record.status for record in stage.records] == [RunStatus.FAILED]
    assert isinstance(stage.fault, EngineError)
    assert "killed by signal 9" in stage.fault.message
    assert "resume" in stage.fault.hint
    assert stage.ended.status is SessionStatus.FAILED
    stage.assert_left_clean()


def test_stop_at_a_lost_host_is_the_hosts_fault_and_only_sweeps_there() -> None:
    stage = Stage({"c1": script(GOOD), "c2": script(DIES)}, sets=("method.on_failure=stop",))
    stage.again = {"c2": [FakeScript()]}
    stage.play()
    assert isinstance(stage.fault, HostError)
    assert len(stage.records) == 1
    (swept,) = stage.reached
    assert [verb for verb, _ in swept.agent.asked if verb != "lease"] == [
        "scratch_open",
        "scratch_close",
        "bye",
    ]
    assert swept.left_behind == []


def test_skip_point_leaves_further_repeats_of_the_point_out_and_no_others() -> None:
    stage = Stage({"local": script(KILLED, GOOD)}, sets=("method.repeats=2",)).play()
    assert stage.status is SessionStatus.DONE
    failed, *others = outcomes(stage)
    assert failed[:4] == ("rand-read iodepth=1", 1, 1, RunStatus.FAILED)
    assert [(name, repeat) for name, repeat, *_ in others] == [
        ("rand-read iodepth=8", 1),
        ("seq-write", 1),
        ("rand-read iodepth=8", 2),
        ("seq-write", 2),
    ]
    assert "Repeat 2 of rand-read iodepth=1 is left out" in told(stage)


@pytest.mark.parametrize("failures", [1, 2, 3])
def test_retry_tries_so_often_and_then_skips_the_point(failures: int) -> None:
    done = failures <= 2
    sets = ("method.on_failure=retry", "method.retries=2", "method.repeats=2")
    stage = Stage({"local": script(*[KILLED] * failures, GOOD)}, sets=sets).play()
    assert stage.status is SessionStatus.DONE
    first = [seen for seen in outcomes(stage) if seen[:2] == ("rand-read iodepth=1", 1)]
    assert [seen[2] for seen in first] == list(range(1, min(failures, 2) + 2))
    assert first[-1][3] is (RunStatus.DONE if done else RunStatus.FAILED)
    again = [seen for seen in outcomes(stage) if seen[:2] == ("rand-read iodepth=1", 2)]
    assert bool(again) is done
    assert "is tried again, try 2 of 3" in told(stage)


def test_attempts_are_counted_on_after_a_resume() -> None:
    stage = Stage()
    first = stage.plan.runs[0]
    stage.earlier = EarlierSegments(attempt_count_by_run={(first.point.digest, first.repeat): 3})
    stage.play()
    assert [record.run.attempt for record in stage.records] == [4, 1, 1]


def test_without_host_measures_the_same_point_again_without_the_one_that_failed() -> None:
    scripts = {"c1": script(GOOD), "c2": script(KILLED), "c3": script(GOOD)}
    stage = Stage(scripts, sets=("method.on_failure=without-host",)).play()
    assert stage.status is SessionStatus.DONE
    assert [seen[2:] for seen in outcomes(stage)] == [
        (1, RunStatus.FAILED, ()),
        (2, RunStatus.DONE, ("c2",)),
        (1, RunStatus.DONE, ("c2",)),
        (1, RunStatus.DONE, ("c2",)),
    ]
    assert [[host.host for host in record.hosts] for record in stage.records[1:]] == [
        ["c1", "c3"]
    ] * 3
    assert "Host 'c2' failed" in told(stage)
    assert stage.ended.reason == "It went on without 'c2'."
    stage.assert_left_clean(swept_on=("c2",))


def test_without_host_goes_on_without_one_that_is_lost() -> None:
    sets = ("method.on_failure=without-host",)
    stage = Stage({"c1": script(GOOD), "c2": script(DIES)}, sets=sets)
    stage.again = {"c2": [FakeScript()]}
    stage.play()
    assert stage.status is SessionStatus.DONE
    assert [record.excluded_hosts for record in stage.records] == [(), ("c2",), ("c2",), ("c2",)]
    (swept,) = stage.reached  # Once the session is over, for its folder.
    assert swept.runs == []
    stage.assert_left_clean(swept_on=("c2",))


def test_without_host_goes_on_without_one_whose_disk_is_full() -> None:
    full = FakeLoad(exit_code=1, error=errno.ENOSPC, stderr=b"fio: No space left on device\n")
    scripts = {f"c{number:02}": FakeScript() for number in range(1, 13)}
    scripts["c07"] = FakeScript(layouts=(full,))
    stage = Stage(scripts, sets=("method.on_failure=without-host",)).play()
    assert stage.status is SessionStatus.DONE
    assert [(record.status, record.excluded_hosts) for record in stage.records] == [
        (RunStatus.DONE, ("c07",))
    ] * 3
    assert {len(record.hosts) for record in stage.records} == {11}
    stage.assert_left_clean(swept_on=("c07",))


def test_a_full_disk_on_one_of_twelve_ends_the_session_named_under_any_other_policy() -> None:
    full = FakeLoad(exit_code=1, error=errno.ENOSPC, stderr=b"fio: No space left on device\n")
    scripts = {f"c{number:02}": FakeScript() for number in range(1, 13)}
    scripts["c07"] = FakeScript(layouts=(full,))
    stage = Stage(scripts).play()
    assert isinstance(stage.fault, HostError)
    assert "on host 'c07' ran full" in stage.fault.message
    assert stage.records == []
    stage.assert_left_clean()


def test_without_host_stops_when_nobody_would_be_left() -> None:
    scripts = {"c1": script(KILLED), "c2": script(KILLED)}
    stage = Stage(scripts, sets=("method.on_failure=without-host",)).play()
    assert isinstance(stage.fault, EngineError)
    assert len(stage.records) == 1
    assert stage.ended.status is SessionStatus.FAILED
    stage.assert_left_clean()


def test_a_host_that_was_left_out_stays_left_out_after_a_resume() -> None:
    stage = Stage({"c1": FakeScript(), "c2": UNREACHABLE})
    stage.earlier = EarlierSegments(excluded_hosts=frozenset({"c2"}))
    stage.play()
    assert stage.status is SessionStatus.DONE
    assert [record.excluded_hosts for record in stage.records] == [("c2",)] * 3


@pytest.mark.parametrize("policy", ["skip-point", "retry"])
def test_a_lost_host_is_reached_again_and_its_files_are_laid_out_again(policy: str) -> None:
    stage = Stage({"c1": FakeScript(), "c2": script(DIES)}, sets=(f"method.on_failure={policy}",))
    stage.again = {"c2": [UNREACHABLE, UNREACHABLE, FakeScript()]}
    stage.play()
    assert stage.status is SessionStatus.DONE
    last = {(name, repeat): status for name, repeat, _, status, _ in outcomes(stage)}
    assert set(last.values()) == (
        {RunStatus.DONE} if policy == "retry" else {RunStatus.DONE, RunStatus.FAILED}
    )
    assert {record.excluded_hosts for record in stage.records} == {()}
    assert "tried again for" in told(stage)
    assert "Host 'c2' is reached again." in told(stage)
    again = stage.reached[-1]
    assert len(stage.reached) == 3
    assert len(again.asked("scratch_open")) == 1
    layouts = [asked for asked in again.asked("run") if "--rw=write" in str(asked)]
    assert layouts or len(again.asked("run")) > len(stage.plan.data_sets)
    assert len(stage.hosts["c1"].asked("scratch_open")) == 1
    assert again.left_behind == []
    stage.assert_left_clean(swept_on=("c2",))


def test_a_host_that_stays_lost_ends_the_session_within_a_limit() -> None:
    stage = Stage({"c1": FakeScript(), "c2": script(DIES)})
    stage.again = {}
    stage.play()
    assert isinstance(stage.fault, HostError)
    assert "'c2'" in stage.fault.message
    assert "again within 120 s" in stage.fault.message
    assert "resume" in stage.fault.hint
    assert 20 <= len(stage.reached) <= 30
    stage.assert_left_clean(swept_on=("c2",))


def test_a_host_that_is_lost_after_the_last_run_is_reached_again_and_swept() -> None:
    stage = Stage({"c1": FakeScript(), "c2": FakeScript()}, sets=("method.on_failure=retry",))
    stage.again = {"c2": [UNREACHABLE, FakeScript()]}

    def lose_host_at_the_end(event: Event) -> None:
        if isinstance(event, RunFinished) and len(stage.records) == len(stage.plan.runs):
            stage.hosts["c2"].end_as_lost("it ended")

    stage.notes = Notes(lose_host_at_the_end)
    stage.play()
    assert stage.status is SessionStatus.DONE
    assert {record.status for record in stage.records} == {RunStatus.DONE}
    assert "Host 'c2' is reached again." in told(stage)
    assert len(stage.reached[-1].asked("scratch_open")) == 1
    stage.assert_left_clean(swept_on=("c2",))


def test_a_host_that_comes_back_as_another_ends_the_session() -> None:
    facts = machine_facts("/mnt/bench")
    other = replace(facts, kernel=replace(facts.kernel, release="9.9.9"))
    stage = Stage({"c1": FakeScript(), "c2": FakeScript(facts=facts, loads=(DIES,))})
    stage.again = {"c2": [FakeScript(facts=other)]}
    stage.play()
    assert isinstance(stage.fault, HostError)
    assert "came back as another" in stage.fault.message
    assert "The kernel of host 'c2' was" in stage.fault.faults[0].message
    stage.assert_left_clean(swept_on=("c2",))


def test_a_host_that_is_lost_during_layout_is_reached_again() -> None:
    scripts = {"c1": FakeScript(), "c2": FakeScript(layouts=(DIES,))}
    stage = Stage(scripts, again={"c2": [FakeScript()]}).play()
    assert stage.status is SessionStatus.DONE
    assert [record.status for record in stage.records] == [RunStatus.DONE] * 3
    stage.assert_left_clean(swept_on=("c2",))


def test_a_host_that_is_lost_at_every_layout_ends_the_session() -> None:
    dying = FakeScript(layouts=(DIES,))
    stage = Stage({"c1": FakeScript(), "c2": dying}, again={"c2": [dying] * 10}).play()
    assert isinstance(stage.fault, HostError)
    assert stage.records == []
    assert len(stage.reached) <= 4


def test_a_stop_while_a_lost_host_is_tried_again_ends_the_session() -> None:
    stage = Stage({"c1": FakeScript(), "c2": script(DIES)}, again={})

    def stop(event: Event) -> None:
        if isinstance(event, Notice) and "tried again" in event.text and stage.stop:
            stage.stop.request_stop()

    stage.notes = Notes(stop)
    stage.play()
    assert stage.status is SessionStatus.INTERRUPTED
    assert stage.fault is None


def test_an_agent_of_the_session_that_is_still_ending_is_waited_for() -> None:
    held = ("busy", "/mnt/bench/iolab-scratch-local is held by iolab session trial-1")
    stage = Stage({"local": FakeScript(refuses={"scratch_open": held})}).play()
    assert isinstance(stage.fault, HostError)
    assert "agent of iolab session trial-1" in stage.fault.message
    assert len(stage.hosts["local"].asked("scratch_open")) == 90


def test_a_clock_an_hour_off_and_a_slow_way_change_neither_start_nor_telemetry() -> None:
    hour_ns, scripts = 3_600_000_000_000, {"c1": FakeScript()}
    scripts["ahead"] = FakeScript(offset_ns=hour_ns)
    scripts["behind"] = FakeScript(offset_ns=-hour_ns, delay_s=0.4)
    stage = Stage(scripts).play()
    assert stage.status is SessionStatus.DONE
    for record in stage.records:
        offsets = [host.clock_offset_ns for host in record.hosts]
        assert offsets == pytest.approx([0, hour_ns, -hour_ns], abs=1_000_000)
        starts = [
            (host.start_real_ns or 0) - offset
            for host, offset in zip(record.hosts, offsets, strict=True)
        ]
        assert max(starts) - min(starts) <= 10_000_000
        for index, offset in enumerate(offsets):
            watched = record.counters.real_ns[record.counters.host == index] - offset
            assert abs(int(watched.min()) - min(starts)) < 3_000_000_000
            assert int(watched.max()) < record.ended_real_ns


def test_what_an_agent_says_to_stay_is_told_when_the_session_ends() -> None:
    stays = {"kind": "folder", "name": "/mnt/t/moved", "reason": "Operation not permitted"}
    process = {"kind": "process", "name": "4711", "reason": "fio did not end when it was killed"}
    for policy in ("stop", "skip-point"):
        untidy = replace(script(GOOD), leftovers_at_close=(stays, process))
        sets = (f"method.on_failure={policy}",)
        stage = Stage({"c1": untidy, "c2": script(GOOD)}, sets=sets).play()
        folder, run = stage.ended.leftover_texts
        assert tells(folder, "c1", "/mnt/t/moved", "iolab clean", "/mnt/t")
        assert tells(run, "c1", "4711")
        assert stage.ended.status is SessionStatus.DONE
        assert folder in (stage.ended.reason or "")
