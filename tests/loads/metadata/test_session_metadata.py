"""Sessions of metadata load: a barrier between operations, ranks over hosts, what goes wrong."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from iolab.core.events import (
    Event,
    IntervalReported,
    SessionPhase,
    SessionPhaseStarted,
    SessionStatus,
)
from iolab.core.run import RunStatus
from iolab.hosts.barrier import StopRequest
from iolab.loads.metadata.workload import MetadataOperation, operation_runs_of_host
from iolab.units import NS_PER_S
from tests.fakes.metadata import FakeMetadata
from tests.fakes.script import FakeScript
from tests.session.stage import Notes, Stage

MINUTE_NS = 60 * NS_PER_S
WORDS = [operation.display_name for operation in MetadataOperation]

STUDY = """
format = 1
id = "trial"
[target]
path = "/mnt/bench"
{hosts}
[[workload]]
id = "files"
engine = "metadata"
ranks = 4
files_per_rank = 500
file_bytes = "1k"
iterations = {iterations}
{extra}
[method]
settle = "0s"
"""
HOST = '[[host]]\nname = "{name}"\nkind = "command"\ncommand = ["reach", "{name}"]\n'


def stage(
    scripts: dict[str, FakeScript],
    *,
    iterations: int = 1,
    extra: str = "",
    react: Callable[[Event], None] | None = None,
    stop: StopRequest | None = None,
    sets: tuple[str, ...] = (),
) -> Stage:
    """A session of metadata load on those hosts, which share their target."""
    shared: dict[str, int] = {}
    hosts = {name: replace(script, shared=shared) for name, script in scripts.items()}
    tables = "".join(HOST.format(name=name) for name in scripts) if len(scripts) > 1 else ""
    text = STUDY.format(hosts=tables, iterations=iterations, extra=extra)
    notes = Notes(react) if react else Notes()
    return Stage(hosts, text=text, notes=notes, stop=stop, sets=sets).play()


def asked(played: Stage, host: str) -> list[dict[str, object]]:
    """Every metadata request of a host."""
    return played.hosts[host].asked("metadata")


@pytest.fixture(scope="module")
def alone() -> Stage:
    return stage({"local": FakeScript()}, iterations=2)


@pytest.fixture(scope="module")
def fleet() -> Stage:
    """Three clients with clocks a minute apart and links and hands of different speed."""
    return stage(
        {
            "c1": FakeScript(offset_ns=MINUTE_NS),
            "c2": FakeScript(offset_ns=-MINUTE_NS, delay_s=0.02),
            "c3": FakeScript(metadata=FakeMetadata(ops_per_s=400.0)),
        }
    )


def test_each_iteration_is_a_run_with_all_operations_in_order(alone: Stage) -> None:
    assert alone.status is SessionStatus.DONE
    assert [record.run.repeat for record in alone.records] == [1, 2]
    assert [request["phase"] for request in asked(alone, "local")] == WORDS * 2
    first, again = (request["iteration"] for request in asked(alone, "local")[::6])
    assert first != again
    alone.assert_left_clean()


def test_the_record_holds_what_each_operation_did(alone: Stage) -> None:
    record = alone.records[0]
    assert (record.status, record.failure) == (RunStatus.DONE, None)
    (host,) = record.hosts
    assert [phase.operation for phase in operation_runs_of_host(host)] == list(MetadataOperation)
    assert [phase.completed for phase in operation_runs_of_host(host)] == [
        4,
        2000,
        2000,
        2000,
        2000,
        4,
    ]
    assert (
        operation_runs_of_host(host)[1].lat_min_ns
        == operation_runs_of_host(host)[1].lat_max_ns
        == 1_000_000
    )
    assert (host.engine_version, host.error, host.stopped_early) == (
        "iolab-agent 0.0.0",
        None,
        False,
    )
    assert '"files_per_rank": 500' in host.job_file
    assert host.start_real_ns == operation_runs_of_host(host)[0].first_start_real_ns
    assert host.end_real_ns == operation_runs_of_host(host)[-1].last_end_real_ns
    assert [delta.device for delta in host.devices] == ["nvme0n1"]
    assert host.pre_run_activity is not None


def test_the_tables_add_up_to_the_operations(alone: Stage) -> None:
    record = alone.records[0]
    intervals, bins = record.intervals, record.bins
    for phase in operation_runs_of_host(record.hosts[0]):
        rows = intervals.direction == phase.operation
        assert int(intervals.ios[rows].sum()) == phase.completed
        assert int(bins.count[bins.direction == phase.operation].sum()) == phase.completed
        assert float(intervals.lat_sum_ns[rows].sum()) == pytest.approx(phase.completed * 1e6)
        moved = phase.operation in (MetadataOperation.FILE_CREATE, MetadataOperation.FILE_READ)
        assert int(intervals.bytes[rows].sum()) == (phase.completed * 1024 if moved else 0)
    assert list(intervals.seq) == list(range(len(intervals)))
    assert (intervals.span_ns > 0).all()


def test_telemetry_covers_all_operations_without_a_break(alone: Stage) -> None:
    record = alone.records[0]
    (host,) = record.hosts
    times = sorted(set(record.counters.real_ns.tolist()))
    assert host.start_real_ns is not None
    assert host.end_real_ns is not None
    assert times[0] <= host.start_real_ns
    assert times[-1] >= host.end_real_ns
    assert max(later - earlier for earlier, later in itertools.pairwise(times)) < 2e9


def test_the_live_view_hears_of_each_operation(alone: Stage) -> None:
    details = [
        event.detail
        for event in alone.notes.of(SessionPhaseStarted)
        if event.phase is SessionPhase.MEASURE and event.run == alone.records[0].run
    ]
    assert details == WORDS
    seen = [
        event for event in alone.notes.of(IntervalReported) if event.run == alone.records[0].run
    ]
    assert max(event.iops for event in seen) == pytest.approx(1000, rel=0.01)
    elapsed = [event.elapsed_s for event in seen]
    assert elapsed == sorted(elapsed)


def test_caches_are_dropped_before_what_they_could_answer(alone: Stage) -> None:
    order = [
        verb if verb == "evict" else arguments["phase"]
        for verb, arguments in alone.hosts["local"].agent.asked
        if verb in ("evict", "metadata")
    ]
    assert order[:8] == [*WORDS[:2], "evict", WORDS[2], "evict", *WORDS[3:]]
    for request in alone.hosts["local"].asked("evict"):
        assert request == {"paths": [], "system": True}
    cache = alone.records[0].hosts[0].cache_drop
    assert cache is not None
    assert cache.requested
    kept = stage({"local": FakeScript()}, sets=("method.drop_caches=false",))
    assert kept.hosts["local"].asked("evict") == []
    cache = kept.records[0].hosts[0].cache_drop
    assert cache is not None
    assert not cache.requested


def test_ranks_count_over_the_hosts_and_each_works_on_the_next_ones_files(fleet: Stage) -> None:
    assert fleet.status is SessionStatus.DONE
    for index, name in enumerate(("c1", "c2", "c3")):
        following = ("c1", "c2", "c3")[(index + 1) % 3]
        for request in asked(fleet, name):
            assert (request["first_rank"], request["ranks"], request["total_ranks"]) == (
                4 * index,
                4,
                12,
            )
            assert request["dir"] == f"/mnt/bench/iolab-scratch-{name}"
            if request["phase"] in ("file-stat", "file-read", "file-remove"):
                first = (4 * (index + 1)) % 12
                folder = f"/mnt/bench/iolab-scratch-{following}"
                assert request["shift"] == 4
                assert request["others"] == [{"dir": folder, "first_rank": first, "ranks": 4}]
            else:
                assert "shift" not in request


def test_no_host_begins_an_operation_before_all_have_ended_the_one_before(fleet: Stage) -> None:
    offsets = (MINUTE_NS, -MINUTE_NS, 0)
    hosts = fleet.records[0].hosts
    ended = 0
    for operation in MetadataOperation:
        starts, ends = [], []
        for host, offset_ns in zip(hosts, offsets, strict=True):
            (phase,) = [one for one in operation_runs_of_host(host) if one.operation is operation]
            assert phase.first_start_real_ns is not None
            assert phase.last_end_real_ns is not None
            starts.append(phase.first_start_real_ns - offset_ns)
            ends.append(phase.last_end_real_ns - offset_ns)
        assert min(starts) > ended
        assert max(starts) - min(starts) <= NS_PER_S // 100
        ended = max(ends)


def test_a_shift_over_part_of_a_host_works_on_two(fleet: Stage) -> None:
    del fleet
    played = stage({"c1": FakeScript(), "c2": FakeScript()}, extra="rank_shift = 6")
    (request,) = [one for one in asked(played, "c1") if one["phase"] == "file-stat"]
    assert request["shift"] == 6
    folder = "/mnt/bench/iolab-scratch-c2"
    assert request["others"] == [{"dir": folder, "first_rank": 4, "ranks": 4}]


def test_a_target_that_is_not_shared_is_refused_and_nothing_is_measured() -> None:
    scripts = {"c1": FakeScript(), "c2": FakeScript()}
    text = STUDY.format(
        hosts="".join(HOST.format(name=name) for name in scripts), iterations=1, extra=""
    )
    played = Stage(scripts, text=text).play()
    (record,) = played.records
    assert record.status is RunStatus.FAILED
    assert "'c2' in /mnt/bench/iolab-scratch-c2" in str(record.failure)
    assert "is not shared" in str(record.failure)
    assert asked(played, "c1") == asked(played, "c2") == []
    played.assert_left_clean()


def test_phases_that_end_by_the_clock_ask_for_what_was_made_and_leave_nothing() -> None:
    slow = FakeMetadata(ops_per_s=300.0)
    played = stage({"local": FakeScript(metadata=slow)}, extra="phase_runtime = '2s'")
    (record,) = played.records
    assert record.status is RunStatus.DONE
    phases = {phase.operation: phase for phase in operation_runs_of_host(record.hosts[0])}
    assert (
        phases[MetadataOperation.FILE_CREATE].requested
        == phases[MetadataOperation.FILE_CREATE].completed
        == 600
    )
    assert all(phase.skipped == 0 for phase in phases.values())
    made = [150] * 4
    assert [one.get("files") for one in asked(played, "local")] == [
        None,
        None,
        made,
        made,
        made,
        None,
    ]


def test_files_for_whose_removal_time_was_too_short_go_uncounted_before_their_folders() -> None:
    script = FakeScript(metadata=FakeMetadata(ops_per_s=2000.0, slow_in="file-remove"))
    played = stage({"local": script}, extra="phase_runtime = '2s'")
    (record,) = played.records
    assert record.status is RunStatus.DONE
    words = [request["phase"] for request in asked(played, "local")]
    assert words == [*WORDS[:5], "file-remove", "tree-remove"]
    assert "runtime_s" not in asked(played, "local")[5]
    removed = operation_runs_of_host(record.hosts[0])[4]
    assert (
        removed.requested
        == removed.completed
        < operation_runs_of_host(record.hosts[0])[1].completed
    )


def test_operations_that_fail_are_counted_and_the_tree_is_removed_all_the_same() -> None:
    load = FakeMetadata(errors={"file-stat": {"EIO": 3}})
    played = stage({"local": FakeScript(metadata=load)})
    (record,) = played.records
    assert record.status is RunStatus.DONE
    phase = operation_runs_of_host(record.hosts[0])[2]
    assert (phase.completed, phase.errors, phase.skipped) == (1997, (("EIO", 3),), 0)
    phases = [request["phase"] for request in asked(played, "local")]
    assert phases == [*WORDS, "file-remove", "tree-remove"]


def test_a_host_that_dies_stops_the_others_and_their_tree_is_removed() -> None:
    load = FakeMetadata(dies_in="file-create")
    played = stage({"c1": FakeScript(), "c2": FakeScript(metadata=load)})
    (record,) = played.records
    assert record.status is RunStatus.FAILED
    assert record.failure is not None
    assert "'c2'" in record.failure
    good, bad = record.hosts
    assert (good.error, good.stopped_early) == (None, True)
    assert bad.error is not None
    assert [phase.operation for phase in operation_runs_of_host(bad)] == [
        MetadataOperation.TREE_CREATE
    ]
    phases = [request["phase"] for request in asked(played, "c1")]
    assert phases == ["tree-create", "file-create", "file-remove", "tree-remove"]
    assert "shift" not in asked(played, "c1")[-2]
    assert int(record.intervals.ios[record.intervals.host == 0].sum()) >= 4


@pytest.mark.parametrize("phase", ["file-create", "file-remove"])
def test_an_account_that_is_not_the_sum_of_its_seconds_is_not_believed(phase: str) -> None:
    played = stage({"local": FakeScript(metadata=FakeMetadata(lies_in=phase))})
    (record,) = played.records
    assert record.status is RunStatus.FAILED
    assert "malformed" in str(record.failure)


def test_a_phase_that_does_not_end_in_time_fails_the_run() -> None:
    played = stage({"local": FakeScript(metadata=FakeMetadata(late_in="file-read"))})
    (record,) = played.records
    assert record.status is RunStatus.FAILED
    assert "'file-read' on host 'local' did not end" in str(record.failure)
    assert [request["phase"] for request in asked(played, "local")][-1] == "tree-remove"


def test_a_refusal_is_told_in_the_agents_words() -> None:
    refuses = {"metadata": ("EMFILE", "there are too few open files")}
    played = stage({"local": FakeScript(refuses=refuses)})
    (record,) = played.records
    assert record.status is RunStatus.FAILED
    assert "too few open files" in str(record.failure)


def stopped_in(word: str, *, times: int = 1, sets: tuple[str, ...] = ()) -> Stage:
    """A session that is asked to stop in that operation's first second."""
    stop = StopRequest()
    begun: list[str] = []

    def react(event: Event) -> None:
        if isinstance(event, SessionPhaseStarted):
            begun.append(event.detail)
        if isinstance(event, IntervalReported) and begun[-1] == word and not stop.is_requested:
            for _ in range(times):
                stop.request_stop()

    return stage({"local": FakeScript()}, iterations=2, react=react, stop=stop, sets=sets)


def test_a_stop_keeps_what_was_done_and_skips_the_rest() -> None:
    played = stopped_in("file-create")
    assert played.status is SessionStatus.INTERRUPTED
    (record,) = played.records
    assert (record.status, record.failure) == (RunStatus.INTERRUPTED, None)
    (host,) = record.hosts
    assert host.stopped_early
    phase = operation_runs_of_host(host)[-1]
    assert phase.operation is MetadataOperation.FILE_CREATE
    assert 0 < phase.completed < phase.requested == phase.completed + phase.skipped
    created = record.intervals.direction == MetadataOperation.FILE_CREATE
    assert int(record.intervals.ios[created].sum()) == phase.completed
    assert [request["phase"] for request in asked(played, "local")] == WORDS[:2]
    played.assert_left_clean()


def test_a_stop_removes_its_tree_where_the_folder_is_to_be_kept() -> None:
    played = stopped_in("file-create", sets=("target.keep_files=true",))
    assert played.status is SessionStatus.INTERRUPTED
    phases = [request["phase"] for request in asked(played, "local")]
    assert phases == [*WORDS[:2], "file-remove", "tree-remove"]
    assert "signal" not in [verb for verb, _ in played.hosts["local"].agent.asked][-4:]


def test_a_second_stop_request_waits_for_nothing() -> None:
    played = stopped_in("file-create", times=2)
    assert played.status is SessionStatus.INTERRUPTED
    assert played.records == []
    played.assert_left_clean(swept_on=("local",))
