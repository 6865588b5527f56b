"""Sessions in which nothing goes wrong: order, phases, evidence, several hosts, resuming."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from iolab.core.events import (
    CpuUseReported,
    IntervalReported,
    Notice,
    RunFinished,
    RunPreparing,
    SessionPhase,
    SessionPhaseStarted,
    SessionStarted,
    SessionStatus,
)
from iolab.core.metric import VerdictLevel
from iolab.core.run import RunStatus
from iolab.hosts.rates import derive_counter_series
from iolab.session.session import EarlierSegments
from iolab.units import NS_PER_S
from tests.fakes.fio import FakeLoad
from tests.fakes.script import FakeScript
from tests.judging import judge
from tests.session.stage import Stage

MINUTE_NS = 60 * NS_PER_S


@pytest.fixture(scope="module")
def alone() -> Stage:
    return Stage().play()


@pytest.fixture(scope="module")
def fleet() -> Stage:
    """Three clients with clocks a minute apart and links of different speed."""
    return Stage(
        {
            "c1": FakeScript(offset_ns=MINUTE_NS, loads=(FakeLoad(iops=1000),)),
            "c2": FakeScript(offset_ns=-MINUTE_NS, delay_s=0.02, loads=(FakeLoad(iops=2000),)),
            "c3": FakeScript(delay_s=0.1, loads=(FakeLoad(iops=3000),)),
        }
    ).play()


def test_every_run_of_the_plan_is_done_in_its_order(alone: Stage) -> None:
    assert alone.status is SessionStatus.DONE
    assert [record.run for record in alone.records] == list(alone.plan.runs)
    assert {record.status for record in alone.records} == {RunStatus.DONE}
    assert alone.ended.reason is None
    alone.assert_left_clean()


def test_the_events_tell_each_phase_before_it_happens(alone: Stage) -> None:
    first = [
        event.phase if isinstance(event, SessionPhaseStarted) else type(event)
        for event in alone.notes.events
        if not isinstance(event, IntervalReported | CpuUseReported)
    ]
    assert first[:3] == [SessionPhase.CONNECT, SessionStarted, SessionPhase.CONNECT]
    assert (
        first[3:7]
        == [SessionPhase.LAY_OUT] * (len(alone.plan.data_sets))
        + first[3 + len(alone.plan.data_sets) : 7]
    )
    begun = first.index(RunPreparing)
    assert first[begun : begun + 7] == [
        RunPreparing,
        SessionPhase.GENERATOR_LIMIT,
        SessionPhase.PROVE,
        SessionPhase.DROP_CACHES,
        SessionPhase.IDLE,
        SessionPhase.MEASURE,
        RunFinished,
    ]
    # The rest goes on while a run is prepared, and ends with the watch.
    after = [here for one, here in pairwise(first) if one is SessionPhase.SETTLE]
    assert set(after) == {SessionPhase.IDLE}
    assert first[-2] is SessionPhase.CLEAN_UP
    assert (
        first.count(SessionPhase.SETTLE) == first.count(RunFinished) - 1
    )  # nothing waits for the last


def test_a_write_needs_neither_a_proof_nor_a_drop(alone: Stage) -> None:
    read, _, write = alone.records
    assert read.hosts[0].extents is not None
    assert read.hosts[0].extents.hole_bytes == 0
    assert read.hosts[0].extents.file_count == 2
    assert read.hosts[0].cache_drop is not None
    assert read.hosts[0].cache_drop.requested
    assert read.hosts[0].cache_drop.resident_bytes_after == 0
    assert write.hosts[0].extents is None
    assert write.hosts[0].cache_drop is not None
    assert not write.hosts[0].cache_drop.requested


def test_the_record_holds_what_the_engine_did(alone: Stage) -> None:
    record = alone.records[0]
    (host,) = record.hosts
    assert host.error is None
    assert (host.exit_code, host.exit_signal, host.stopped_early) == (0, None, False)
    assert host.argv[0] == "fio"
    assert "randread" in host.job_file
    assert host.engine_version == "fio-3.33"
    assert host.totals is not None
    assert host.totals.read is not None
    assert host.totals.read.ios == 5000
    assert int(record.intervals.ios.sum()) == 5000
    assert int(record.bins.count.sum()) == 5000
    assert (record.warmup_s, record.runtime_s) == (1.0, 4.0)
    (output,) = record.outputs
    assert output.content.decompress().count(b'"fio version"') >= 5


def test_the_devices_moved_what_the_engine_claims(alone: Stage) -> None:
    (delta,) = alone.records[0].hosts[0].devices
    assert (delta.device, delta.read_ios, delta.read_bytes) == ("nvme0n1", 5000, 5000 * 4096)
    (delta,) = alone.records[2].hosts[0].devices
    assert (delta.write_ios, delta.write_bytes) == (5000, 5000 << 20)


def test_counters_cover_the_run_with_one_sample_before_it(alone: Stage) -> None:
    record = alone.records[0]
    (host,) = record.hosts
    assert host.start_real_ns is not None
    assert host.end_real_ns is not None
    times = np.unique(record.counters.real_ns)
    assert np.count_nonzero(times < host.start_real_ns) == 1
    assert times[-1] >= host.end_real_ns
    assert set(record.counters.scope) >= {"cpu", "disk", "memory", "nic", "agent"}


def test_a_run_shorter_than_the_telemetry_interval_is_watched_from_end_to_end() -> None:
    stage = Stage(sets=("telemetry.interval=60s",)).play()
    for record in stage.records:
        (host,) = record.hosts
        before, after = np.unique(record.counters.real_ns)
        assert host.start_real_ns is not None
        assert host.end_real_ns is not None
        assert before <= host.start_real_ns < host.end_real_ns <= after
        busy = {
            s.metric: s.value
            for s in derive_counter_series(record.counters, ("local",))
            if s.name == "all"
        }
        assert len(busy["busy_share"]) == 1


def test_idle_devices_are_proved_idle(alone: Stage) -> None:
    idle = alone.records[0].hosts[0].pre_run_activity
    assert idle is not None
    assert idle.watched_s == pytest.approx(1.0, abs=0.01)
    assert idle.bytes_per_s == 0


def test_devices_that_nobody_watched_are_not_called_idle() -> None:
    stage = Stage(sets=("method.idle_watch=0",)).play()
    assert stage.records[0].hosts[0].pre_run_activity is None
    assert SessionPhase.IDLE not in {one.phase for one in stage.notes.of(SessionPhaseStarted)}
    verdict = judge(stage.records[0], {}).verdict
    (busy,) = [one for one in verdict.checks if one.code == "device-busy"]
    assert busy.level is VerdictLevel.INDICATIVE


def test_somebody_else_on_the_device_is_seen() -> None:
    stage = Stage({"local": FakeScript(idle_bytes_per_sample=4096 * 1000)}).play()
    idle = stage.records[0].hosts[0].pre_run_activity
    assert idle is not None
    assert idle.ios_per_s == pytest.approx(1000, rel=0.01)


def test_live_events_say_what_is_measured(alone: Stage) -> None:
    run = alone.plan.runs[0]
    seen = [event for event in alone.notes.of(IntervalReported) if event.run == run]
    assert len(seen) >= 5
    assert seen[-1].elapsed_s == pytest.approx(5, abs=0.01)
    assert seen[2].iops == pytest.approx(1000, rel=0.01)
    busy = alone.notes.of(CpuUseReported)
    assert len(busy) >= 5
    assert busy[0].cpu_busy == pytest.approx(0.1, abs=0.001)


def test_a_fleet_starts_at_one_moment_whatever_its_clocks_say(fleet: Stage) -> None:
    assert fleet.status is SessionStatus.DONE
    for record in fleet.records:
        starts = []
        for host, offset_ns in zip(record.hosts, (MINUTE_NS, -MINUTE_NS, 0), strict=True):
            assert host.start_real_ns is not None
            assert abs(host.clock_offset_ns - offset_ns) <= host.clock_error_ns
            starts.append(host.start_real_ns - offset_ns)
        assert max(starts) - min(starts) <= NS_PER_S // 100
    errors = [host.clock_error_ns for host in fleet.records[0].hosts]
    assert errors == sorted(errors)
    assert errors[2] == pytest.approx(0.1 * NS_PER_S, rel=0.01)


def test_scratch_folders_are_named_after_the_hosts_and_left_at_the_end(fleet: Stage) -> None:
    for name, host in fleet.hosts.items():
        (opened,) = host.asked("scratch_open")
        assert opened["name"] == f"iolab-scratch-{name}"
        assert "trial-1" in str(opened["owner"])
        (closed,) = host.asked("scratch_close")
        assert closed == {"dir": f"/mnt/bench/iolab-scratch-{name}", "keep": False}


def test_what_an_earlier_session_left_is_told() -> None:
    stage = Stage({"local": FakeScript(left_over_bytes=3 << 20)}).play()
    (notice,) = stage.notes.of(Notice)
    assert "3 MiB" in notice.text


def test_a_resumed_session_does_only_what_is_left() -> None:
    runs = Stage().plan.runs
    done = frozenset((run.point.digest, run.repeat) for run in runs[:2])
    stage = Stage(earlier=EarlierSegments(done_run_keys=done)).play()
    assert [record.run for record in stage.records] == [runs[2]]
    assert stage.status is SessionStatus.DONE


def test_a_session_with_nothing_left_touches_no_host() -> None:
    runs = Stage().plan.runs
    done = frozenset((run.point.digest, run.repeat) for run in runs)
    stage = Stage(earlier=EarlierSegments(done_run_keys=done)).play()
    assert stage.status is SessionStatus.DONE
    assert stage.records == []
    assert stage.hosts["local"].lost_reason is None


def test_repeats_draw_other_offsets_and_say_so_in_the_job_file() -> None:
    stage = Stage(sets=("method.repeats=2", "method.seed=40")).play()
    assert len(stage.records) == 6
    first, again = stage.records[0], stage.records[3]
    assert first.run.point == again.run.point
    assert "40" in first.hosts[0].job_file
    assert first.hosts[0].job_file != again.hosts[0].job_file


def test_caches_are_left_alone_where_the_method_says_so() -> None:
    stage = Stage(sets=("method.drop_caches=false",)).play()
    assert stage.hosts["local"].asked("evict") == []
    assert SessionPhase.DROP_CACHES not in {
        one.phase for one in stage.notes.of(SessionPhaseStarted)
    }
    cache = stage.records[0].hosts[0].cache_drop
    assert cache is not None
    assert not cache.requested
