"""A managed node's life in a session, by the real agent and a program that plays Java."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from iolab.core.events import SessionPhase
from iolab.errors import EngineError, Interrupted
from iolab.hosts.telemetry import CounterCollector
from iolab.loads.keyvalue.cassandra.managed import ManagedServer
from iolab.loads.keyvalue.databases import MARKER
from iolab.loads.keyvalue.workload import ServerKind, ServerSettings
from tests.loads.keyvalue.cassandra.fake_java import World, fake_java, kill, no_kits
from tests.loads.keyvalue.cassandra.stage import JOB, Stage, stage_on

LIMIT_S = 120
PATIENCE_S = 10.0

Work = Callable[[Stage, ManagedServer], Awaitable[None]]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return fake_java(tmp_path / "world")


def played(folder: Path, world: World, work: Work, **settings: object) -> Stage:
    """The work with a server, which is ended; nothing is left of it."""

    async def body() -> Stage:
        given = {"kind": ServerKind.MANAGED, "java": world.java, **settings}
        wanted = ServerSettings(**given)  # type: ignore[arg-type]
        async with asyncio.timeout(LIMIT_S), stage_on(folder, wanted) as stage:
            server = ManagedServer(wanted, no_kits)
            try:
                await work(stage, server)
            finally:
                assert await server.stop_and_list_leftovers() == ()
            assert server.pid is None
        return stage

    stage = asyncio.run(body())
    assert [path.name for path in folder.iterdir() if path.name.startswith("iolab")] == []
    return stage


async def fault_of(server: ManagedServer) -> None:
    """Return when it has one, or after a while."""
    for _ in range(round(PATIENCE_S / 0.02)):
        if server.failure_text():
            return
        await asyncio.sleep(0.02)


def is_alive(pid: int | None) -> bool:
    return Path(f"/proc/{pid}").exists()


def change_marker(folder: str, **more: object) -> None:
    path = Path(folder, MARKER)
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **more}), encoding="utf-8")


async def never() -> None:
    raise AssertionError("the records are there already")


def test_a_load_that_fails_by_itself_is_told_as_it_is(tmp_path: Path, world: World) -> None:
    async def load() -> None:
        raise EngineError("Operations failed.", "Look.")

    async def work(stage: Stage, server: ManagedServer) -> None:
        with pytest.raises(EngineError, match="Operations failed"):
            await server.prepare_run(stage.session, stage.run(), [stage.workdir], load)
        assert server.pid is None

    played(tmp_path, world, work)


def test_too_few_rows_are_refused(tmp_path: Path, world: World) -> None:
    async def work(stage: Stage, server: ManagedServer) -> None:
        with pytest.raises(EngineError, match="holds 199 rows, and should hold 200"):
            await server.prepare_run(stage.session, stage.run(), [stage.workdir], world.loads(199))

    played(tmp_path, world, work)


def test_records_are_loaded_once_and_restored_before_each_run(tmp_path: Path, world: World) -> None:
    async def work(stage: Stage, server: ManagedServer) -> None:
        run = stage.run()
        await server.prepare_run(stage.session, run, [stage.workdir], world.loads(JOB.records))
        assert server.failure_text() is None
        first = server.pid
        # A run changes what it finds; the next one must not see that.
        world.change(rows=7)
        await server.prepare_run(stage.session, run, [stage.workdir], never)
        table = world.table()
        assert table is not None
        assert table["rows"] == JOB.records
        assert server.pid != first
        assert not is_alive(first)
        told = server.server_run
        assert (told.host, told.rows, told.rows_by) == ("local", JOB.records, "count")
        assert told.restored_by in ("reflink", "copy")
        assert {one.name: one.value for one in told.statistics_before} == {"sstables": 1.0}
        assert server.cache_proof is not None
        assert server.cache_proof.resident_bytes_after == 0

    stage = played(tmp_path, world, work)
    starts = [line for line in world.asked if line.startswith("CassandraDaemon")]
    # What was loaded is copied from a node that has written all of it and ended.
    assert starts == ["CassandraDaemon ", "CassandraDaemon ended", *2 * ["CassandraDaemon "]]
    work_done = [line for line in world.asked if line.startswith(("Schema", "Rows", "Statistics"))]
    assert [line for line in work_done if line != "Statistics watch"] == [
        "Schema create",
        "Statistics settle",
        "Rows ",
    ]
    assert stage.heard.phases == [
        SessionPhase.LAY_OUT,
        SessionPhase.PROVE,
        SessionPhase.LAY_OUT,
        SessionPhase.LAY_OUT,
    ]
    texts = " ".join(stage.heard.notices)
    assert "not officially supported by Cassandra 4.0" in texts
    assert "vm.max_map_count is 65530" in texts
    assert "vm.swappiness is 60" in texts


def test_other_records_are_loaded_beside_the_first(tmp_path: Path, world: World) -> None:
    other = replace(JOB, records=50, fields=3)

    async def work(stage: Stage, server: ManagedServer) -> None:
        here = [stage.workdir]
        await server.prepare_run(stage.session, stage.run(), here, world.loads(JOB.records))
        await server.prepare_run(stage.session, stage.run(other), here, world.loads(50))
        assert server.server_run.rows == 50
        await server.prepare_run(stage.session, stage.run(), here, never)
        assert server.server_run.rows == JOB.records

    played(tmp_path, world, work)


def test_records_that_another_version_wrote_are_loaded_anew(tmp_path: Path, world: World) -> None:
    async def work(stage: Stage, server: ManagedServer) -> None:
        here = [stage.workdir]
        await server.prepare_run(stage.session, stage.run(), here, world.loads(JOB.records))
        change_marker(f"{stage.workdir.dir}/cassandra/golden-200x2x100", version="4.0.16")
        await server.prepare_run(stage.session, stage.run(), here, world.loads(JOB.records))

    played(tmp_path, world, work)
    assert world.asked.count("Schema create") == 2


def test_its_counters_stand_beside_those_of_its_host(tmp_path: Path, world: World) -> None:
    async def work(stage: Stage, server: ManagedServer) -> None:
        run = stage.run()
        await server.prepare_run(stage.session, run, [stage.workdir], world.loads(JOB.records))
        counters = CounterCollector()
        async with server.sample_counters(stage.session, run, counters, {"other": 0, "local": 1}):
            await asyncio.sleep(0.3)
        table = counters.pop_table()
        await asyncio.sleep(0.2)
        assert len(table.value) >= 2
        assert not len(counters.pop_table().value)
        assert set(table.host.tolist()) == {1}
        assert set(table.scope) == {"cassandra"}
        assert set(table.metric) == {"sstables"}
        await server.record_final_statistics(stage.session, run)
        assert [one.name for one in server.server_run.statistics_after] == ["sstables"]

    played(tmp_path, world, work)


def test_counters_that_break_off_are_told_of_and_end_nothing(tmp_path: Path, world: World) -> None:
    async def work(stage: Stage, server: ManagedServer) -> None:
        run = stage.run()
        await server.prepare_run(stage.session, run, [stage.workdir], world.loads(JOB.records))
        async with server.sample_counters(stage.session, run, CounterCollector(), {"local": 0}):
            world.steer("mute", "silence")
            # The reader ends at its next look; from then on there is nothing to be told.
            for _ in range(round(PATIENCE_S / 0.05)):
                await server.record_final_statistics(stage.session, run)
                if not server.server_run.statistics_after:
                    break
        assert server.server_run.statistics_after == ()
        assert server.failure_text() is None

    stage = played(tmp_path, world, work)
    assert "Cassandra broke off" in stage.heard.notices[-1]


def test_a_node_whose_counters_cannot_be_read_is_refused(tmp_path: Path, world: World) -> None:
    world.steer("mute", "The node does not answer to JMX")

    async def work(stage: Stage, server: ManagedServer) -> None:
        with pytest.raises(EngineError, match=r"cannot be read: .*JMX"):
            await server.prepare_run(stage.session, stage.run(), [stage.workdir], never)
        assert server.pid is None

    played(tmp_path, world, work)


def test_a_node_that_is_killed_is_told_and_started_anew(tmp_path: Path, world: World) -> None:
    async def work(stage: Stage, server: ManagedServer) -> None:
        run = stage.run()
        await server.prepare_run(stage.session, run, [stage.workdir], world.loads(JOB.records))
        kill(server.pid)
        await fault_of(server)
        assert "'local' was killed by signal 9" in (server.failure_text() or "")
        await server.record_final_statistics(stage.session, run)
        assert server.server_run.error == server.failure_text()
        await server.prepare_run(stage.session, run, [stage.workdir], never)
        assert server.failure_text() is None
        assert server.server_run.error is None

    played(tmp_path, world, work)


def test_a_node_that_dies_at_its_start_says_why(tmp_path: Path, world: World) -> None:
    world.steer("dies", "INFO x - begin\nERROR x - Exception: the disk is on fire\n at a.b.C(C:1)")

    async def work(stage: Stage, server: ManagedServer) -> None:
        with pytest.raises(EngineError, match=r"exit code 3 \(.*on fire"):
            await server.prepare_run(stage.session, stage.run(), [stage.workdir], never)
        told = server.server_run.error
        assert told is not None
        assert "begin" not in told
        world.steer("dies", None)
        await server.prepare_run(
            stage.session, stage.run(), [stage.workdir], world.loads(JOB.records)
        )

    played(tmp_path, world, work)


def test_a_node_that_dies_of_its_load_is_the_fault(tmp_path: Path, world: World) -> None:
    async def work(stage: Stage, server: ManagedServer) -> None:
        async def load() -> None:
            world.steer("breaks", "java.io.IOException: No space left on device")
            await fault_of(server)
            raise EngineError("Operations failed.", "Look.")

        with pytest.raises(EngineError, match="No space left on device") as raised:
            await server.prepare_run(stage.session, stage.run(), [stage.workdir], load)
        assert "make room" in raised.value.hint
        world.steer("breaks", None)
        # What was half loaded is not taken for whole.
        await server.prepare_run(
            stage.session, stage.run(), [stage.workdir], world.loads(JOB.records)
        )

    played(tmp_path, world, work)


MAPPED = "java.lang.InternalError: a fault occurred in a recent unsafe memory access operation"


@pytest.mark.parametrize(
    "said", [MAPPED, "ERROR x - FSWriteError in /x", "WARN x - Insufficient disk space to write"]
)
def test_a_node_that_cannot_write_any_more_is_the_fault_though_it_lives(
    tmp_path: Path, world: World, said: str
) -> None:
    async def work(stage: Stage, server: ManagedServer) -> None:
        async def load() -> None:
            world.steer("mutters", said)
            await fault_of(server)
            raise EngineError("Operations failed.", "Look.")

        with pytest.raises(EngineError, match="could not write") as raised:
            await server.prepare_run(stage.session, stage.run(), [stage.workdir], load)
        assert said in raised.value.message

    played(tmp_path, world, work)


def test_a_port_that_is_taken_is_said_before_anything_is_started(
    tmp_path: Path, world: World
) -> None:
    world.steer("taken", "Address already in use")

    async def work(stage: Stage, server: ManagedServer) -> None:
        wanted = "cannot listen on 127.0.0.1:9042 of host 'local': Address already in use"
        with pytest.raises(EngineError, match=wanted) as raised:
            await server.prepare_run(stage.session, stage.run(), [stage.workdir], never)
        assert "server.port" in raised.value.hint

    played(tmp_path, world, work)
    assert world.asked == ["Preflight "]


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ('openjdk version "25.0.1" 2025-10-21', "Java 25.0.1 on host 'local' cannot run Apache"),
        ('openjdk version "1.8.0_412"', "too old"),
    ],
)
def test_a_java_on_which_it_dies_is_refused(
    tmp_path: Path, world: World, said: str, wanted: str
) -> None:
    world.steer("version", said)

    async def work(stage: Stage, server: ManagedServer) -> None:
        with pytest.raises(EngineError, match=wanted):
            await server.prepare_run(stage.session, stage.run(), [stage.workdir], never)

    played(tmp_path, world, work)
    assert world.asked == []


def test_a_request_to_stop_ends_it_before_it_is_restored(tmp_path: Path, world: World) -> None:
    async def work(stage: Stage, server: ManagedServer) -> None:
        async def load() -> None:
            stage.session.stop.request_stop()

        await server.prepare_run(stage.session, stage.run(), [stage.workdir], load)
        assert server.server_run.rows is None
        assert server.server_run.restored_by == ""

    played(tmp_path, world, work)


def test_a_stop_is_heeded_while_it_settles(tmp_path: Path, world: World) -> None:
    async def work(stage: Stage, server: ManagedServer) -> None:
        async def load() -> None:
            # That is when the node is first waited for after the load.
            asyncio.get_running_loop().call_soon(stage.session.stop.request_stop)

        with pytest.raises(Interrupted):
            await server.prepare_run(stage.session, stage.run(), [stage.workdir], load)
        assert server.server_run.rows is None

    played(tmp_path, world, work)


def test_its_end_leaves_no_process_whatever_comes(tmp_path: Path, world: World) -> None:
    seen: list[int] = []

    async def work(stage: Stage, server: ManagedServer) -> None:
        await server.prepare_run(
            stage.session, stage.run(), [stage.workdir], world.loads(JOB.records)
        )
        assert server.pid is not None
        seen.append(server.pid)
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(PATIENCE_S)

    with pytest.raises(asyncio.CancelledError):
        played(tmp_path, world, work)
    assert not Path(f"/proc/{seen[0]}").exists()
