"""Sessions of db_bench in which something is missing, fails, is kept, or is stopped."""

from __future__ import annotations

import asyncio
import json

import pytest

from iolab.core.events import SessionPhase, SessionPhaseStarted, SessionStatus
from iolab.core.run import RunStatus
from iolab.hosts.barrier import StopRequest
from iolab.loads.keyvalue.databases import MARKER
from iolab.loads.keyvalue.workload import KeyOperation, key_value_details_of_host
from tests.fakes.programs import FakeCall
from tests.fakes.script import FakeScript
from tests.loads.keyvalue.db_bench.stage import KEEP, MIXED, READ, done, stage, workload
from tests.session.fake_db_bench import KEYS, FakeDbBench, raw
from tests.session.stage import Notes, Stage


def test_a_cell_that_needs_more_memory_says_so() -> None:
    script = FakeScript(oom_kills=1)
    bench = FakeDbBench(killed_at_s=1.5)
    (record,) = stage(bench, workload(extra='memory = "64m"'), script=script).records
    assert record.status is RunStatus.FAILED
    assert "needed more than its 64 MiB" in str(record.failure)


def test_a_missing_program_fails_the_run_and_names_the_host() -> None:
    for name in ("db_bench", "sst_dump"):
        bench = FakeDbBench()
        programs = bench.programs()
        del programs[name]
        played = stage(bench, script=FakeScript(programs=programs))
        (record,) = played.records
        assert record.status is RunStatus.FAILED
        assert record.failure is not None
        assert record.failure.startswith(f"There is no {name} to run on host 'local'")
        assert bench.started == []


def test_a_killed_cell_fails_with_its_seconds_and_the_session_goes_on() -> None:
    played = stage(FakeDbBench(killed_at_s=2.5), workload(), workload(MIXED))
    first, second = played.records
    assert (first.status, second.status) == (RunStatus.FAILED, RunStatus.DONE)
    assert "signal 9 (SIGKILL)" in str(first.failure)
    assert len(done(first, KeyOperation.ALL)) == 2
    assert played.status is SessionStatus.DONE
    played.assert_left_clean()


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("missing", "none of 15877389 keys was found"),
        ("fillrandom", "of 2255191 keys were not found"),
        ("wrong-block", "db_bench ran"),
        ("unknown-benchmark", "unknown benchmark 'readrandm'"),
    ],
)
def test_an_engine_that_ends_with_0_and_did_something_else_fails_the_run(
    cell: str, message: str
) -> None:
    bench = FakeDbBench(cells={READ: cell})
    blocks = '"16k"' if cell == "wrong-block" else '"4k"'
    (record,) = stage(bench, workload(blocks=blocks)).records
    assert record.status is RunStatus.FAILED
    assert record.hosts[0].exit_code == 0
    assert record.failure is not None
    assert message in record.failure or "blocks of 4288 bytes" in record.failure
    told = key_value_details_of_host(record.hosts[0])
    assert told is not None
    assert told.faults


def test_a_cell_without_its_report_is_not_whole() -> None:
    (record,) = stage(FakeDbBench(lost_report=True)).records
    assert record.status is RunStatus.FAILED
    assert "left no report" in str(record.failure)


def test_a_disk_that_runs_full_in_the_load_leaves_nothing() -> None:
    bench = FakeDbBench(load="disk-full", load_code=1)
    played = stage(bench, sets=(KEEP,))
    (record,) = played.records
    assert record.status is RunStatus.FAILED
    assert "ran full" in str(record.failure)
    assert "database of 59.5 MiB" in str(record.failure)
    assert bench.measured == []
    assert not [path for path in played.hosts["local"].agent.contents if "sst" in path]


def test_a_load_that_is_not_what_was_asked_for_fails_the_run() -> None:
    bench = FakeDbBench(load="unknown-flag", load_code=1)
    (record,) = stage(bench).records
    assert "ended with exit code 1" in str(record.failure)


def test_a_load_whose_files_tell_of_another_database_is_not_whole() -> None:
    bench = FakeDbBench()

    async def tell(call: FakeCall) -> int:
        call.say(raw("sst-16384.txt"))
        return 0

    script = FakeScript(programs={**bench.programs(), "sst_dump": tell})
    (record,) = stage(bench, script=script).records
    assert "blocks of 15695 bytes" in str(record.failure)
    assert bench.measured == []


def test_a_load_that_failed_is_not_tried_for_each_point_but_for_each_retry() -> None:
    bench = FakeDbBench(load="disk-full", load_code=1)
    played = stage(bench, workload(), workload(MIXED), workload(blocks='"16k"', name="seekrandom"))
    first, second, third = played.records
    assert first.failure == second.failure == third.failure
    assert len(bench.loads) == 2
    bench = FakeDbBench(load="disk-full", load_code=1)
    retried = ("method.on_failure=retry", "method.retries=2")
    assert len(stage(bench, sets=retried).records) == 3
    assert len(bench.loads) == 3


def test_a_copy_that_is_not_the_whole_database_is_not_measured() -> None:
    bench = FakeDbBench()
    programs = bench.programs()
    whole = programs["cp"]

    async def cut(call: FakeCall) -> int:
        code = await whole(call)
        call.files[f"{call.argv[-1]}/000009.sst"] = b"4"
        return code

    played = stage(bench, script=FakeScript(programs={**programs, "cp": cut}))
    (record,) = played.records
    assert "1 bytes instead of 4." in str(record.failure)
    assert bench.measured == []


def kept(played: Stage) -> dict[str, bytes]:
    """What lies on this machine after a session."""
    return dict(played.hosts["local"].agent.contents)


def test_what_a_load_that_died_has_left_is_loaded_again() -> None:
    left = kept(stage(FakeDbBench(), sets=(KEEP,)))
    (marker,) = [path for path in left if path.endswith(MARKER)]
    del left[marker]
    half = marker.replace(MARKER, "database/000001.sst")
    left[half] = b"half"
    bench = FakeDbBench()
    played = stage(bench, script=FakeScript(contents=left), sets=(KEEP,))
    (record,) = played.records
    assert record.failure is None
    assert len(bench.loads) == 1
    assert half not in kept(played)


def test_a_cell_never_draws_what_its_database_was_loaded_with() -> None:
    first = FakeDbBench()
    left = kept(stage(first, sets=(KEEP,)))
    (marker,) = [path for path in left if path.endswith(MARKER)]
    seed = int(first.measured[0]["seed"])
    told = json.loads(left[marker])
    left[marker] = json.dumps({**told, "seed": seed}).encode()
    again = FakeDbBench()
    (record,) = stage(again, script=FakeScript(contents=left)).records
    assert record.failure is None
    assert again.loads == []
    assert int(again.measured[0]["seed"]) == seed + 1


def test_a_database_that_was_kept_is_used_again_unless_it_is_another() -> None:
    first = FakeDbBench()
    left = kept(stage(first, sets=(KEEP,)))
    assert not any("db_bench.cell" in path for path in left)
    again = FakeDbBench()
    (record,) = stage(again, script=FakeScript(contents=left)).records
    assert record.failure is None
    assert again.loads == []
    told = key_value_details_of_host(record.hosts[0])
    assert told is not None
    assert str(told.load_seed) == first.loads[0]["seed"]
    (marker,) = [path for path in left if path.endswith(MARKER)]
    for old, new in ((b'"7.8.3"', b'"7.9.0"'), (b'"files": 1', b'"files": "x"'), (b"{", b"")):
        changed = {**left, marker: left[marker].replace(old, new, 1)}
        assert changed != left
        again = FakeDbBench()
        stage(again, script=FakeScript(contents=changed))
        assert len(again.loads) == 1


@pytest.mark.parametrize(
    ("files", "keys", "message"),
    [
        ({}, KEYS, "no database with tables"),
        ({"notes.txt": b"no database"}, KEYS, "no database with tables"),
        ({"1.sst": b"4096"}, 2 * KEYS, "60000 keys, and 120000"),
        ({"1.sst": b"16384"}, KEYS, "blocks of 15695 bytes"),
    ],
)
def test_a_database_of_the_users_that_is_not_as_stated_is_refused(
    files: dict[str, bytes], keys: int, message: str
) -> None:
    contents = {f"/data/mine/{name}": content for name, content in files.items()}
    bench = FakeDbBench()
    asked = workload(extra='database = "/data/mine"', keys=keys)
    (record,) = stage(bench, asked, script=FakeScript(contents=contents)).records
    assert record.status is RunStatus.FAILED
    assert "/data/mine on host 'local'" in str(record.failure)
    assert message in str(record.failure)
    assert bench.started == []


def test_a_database_of_the_users_is_copied_and_never_changed() -> None:
    mine = {"/data/mine/1.sst": b"4096", "/data/mine/CURRENT": b"MANIFEST"}
    bench = FakeDbBench()
    played = stage(
        bench, workload(extra='database = "/data/mine"'), script=FakeScript(contents=mine)
    )
    (record,) = played.records
    assert record.failure is None
    assert bench.loads == []
    left = played.hosts["local"].agent.contents
    assert {path: left[path] for path in left if path.startswith("/data")} == mine
    told = key_value_details_of_host(record.hosts[0])
    assert told is not None
    assert told.load_seed is None
    assert not any(flags["db"].startswith("/data") for flags in bench.started)


@pytest.mark.parametrize(
    "phase", [SessionPhase.LAY_OUT, SessionPhase.DROP_CACHES, SessionPhase.MEASURE]
)
def test_a_stop_ends_it_in_every_phase(phase: SessionPhase) -> None:
    stop = StopRequest()

    def react(event: object) -> None:
        if isinstance(event, SessionPhaseStarted) and event.phase is phase:
            stop.request_stop()

    played = stage(FakeDbBench(), stop=stop, notes=Notes(react))
    assert played.status is SessionStatus.INTERRUPTED
    assert played.fault is None
    assert all(record.status is RunStatus.INTERRUPTED for record in played.records)
    played.assert_left_clean()


def test_a_stop_is_heeded_while_databases_are_copied() -> None:
    stop, bench = StopRequest(), FakeDbBench()
    programs = bench.programs()

    async def endless(_: FakeCall) -> int:
        stop.request_stop()
        await asyncio.sleep(3600)
        return 0

    script = FakeScript(programs={**programs, "cp": endless})
    played = stage(bench, stop=stop, script=script)
    assert played.status is SessionStatus.INTERRUPTED
    assert played.fault is None
    assert bench.measured == []
    played.assert_left_clean()


def test_a_host_that_is_lost_in_the_load_fails_the_run() -> None:
    played = stage(FakeDbBench(), script=FakeScript(dies=frozenset({"put"})))
    assert [record.status for record in played.records] == [RunStatus.FAILED]
    assert played.records[0].hosts[0].error is not None


def test_a_host_that_is_lost_in_a_cell_fails_the_run_with_what_was_heard() -> None:
    benches = {"a": FakeDbBench(), "b": FakeDbBench()}
    usual = benches["b"].db_bench

    async def lost(call: FakeCall) -> int:
        if "duration" in call.flags:
            line = b"2026/11/21-08:27:31  ... thread 0: (1,1) ops and (1,1) ops/second in (1.0,1.0)"
            call.say(line + b" seconds\n", "stderr")
            await asyncio.sleep(1)
            call.machine.break_off()
        return await usual(call)

    scripts = {
        "a": FakeScript(programs=benches["a"].programs()),
        "b": FakeScript(programs={**benches["b"].programs(), "db_bench": lost}),
    }
    played = stage(benches, scripts=scripts)
    (record,) = played.records
    assert record.status is RunStatus.FAILED
    first, second = record.hosts
    assert first.stopped_early
    assert second.error is not None
    assert b"thread 0" in next(
        output.content.decompress() for output in record.outputs if output.host == "b"
    )
    assert played.hosts["a"].left_behind == []
