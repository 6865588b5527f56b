"""A cluster of the user's: what iolab makes in it, what it leaves alone, and what it refuses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from iolab.errors import EngineError
from iolab.hosts.telemetry import CounterCollector
from iolab.loads.keyvalue.cassandra.external import NOT_RESTORED, ExternalServer
from iolab.loads.keyvalue.cassandra.server import COMMENT_PREFIX
from iolab.loads.keyvalue.workload import ServerKind, ServerSettings
from tests.loads.keyvalue.cassandra.fake_java import World, fake_java, no_kits
from tests.loads.keyvalue.cassandra.stage import JOB, Stage, stage_on

LIMIT_S = 120
THEIRS = {
    "columns": {"y_id": "text", "field0": "varchar", "field1": "text"},
    "key": ["y_id"],
    "comment": "",
    "replication": "1",
}

Work = Callable[[Stage, ExternalServer], Awaitable[None]]


@pytest.fixture
def world(tmp_path: Path) -> World:
    found = fake_java(tmp_path / "world")
    (found.folder / "data").mkdir()
    return found


def settings_of(world: World, **more: object) -> ServerSettings:
    given = {"kind": ServerKind.EXTERNAL, "java": world.java, "addresses": ("10.0.0.7",), **more}
    return ServerSettings(**given)  # type: ignore[arg-type]


def played(folder: Path, world: World, work: Work, **more: object) -> Stage:
    """The work with a server, which is ended."""

    async def body() -> Stage:
        settings = settings_of(world, **more)
        async with asyncio.timeout(LIMIT_S), stage_on(folder, settings) as stage:
            server = ExternalServer(settings, no_kits)
            try:
                await work(stage, server)
            finally:
                assert await server.stop_and_list_leftovers() == ()
        return stage

    return asyncio.run(body())


async def never() -> None:
    raise AssertionError("nothing is to be loaded")


def test_a_table_of_our_own_is_made_filled_and_dropped(tmp_path: Path, world: World) -> None:
    async def work(stage: Stage, server: ExternalServer) -> None:
        run = stage.run()
        await server.prepare_run(stage.session, run, [stage.workdir], world.loads(JOB.records))
        table = world.table()
        assert table is not None
        assert table["comment"] == f"{COMMENT_PREFIX}, holds 200 records of 2 x 100 bytes"
        await server.prepare_run(stage.session, run, [stage.workdir], never)
        async with server.sample_counters(stage.session, run, CounterCollector(), {}):
            pass
        await server.record_final_statistics(stage.session, run)
        told = server.server_run
        assert (told.version, told.address, told.host) == ("4.0.17", "10.0.0.7:9042", "")
        assert (told.rows, told.rows_by, told.restored_by) == (200, "count", "")
        assert server.failure_text() is None

    stage = played(tmp_path, world, work)
    assert world.table() is None
    assert stage.heard.notices == [NOT_RESTORED]


def test_a_table_of_our_own_with_other_records_is_made_anew(tmp_path: Path, world: World) -> None:
    async def work(stage: Stage, server: ExternalServer) -> None:
        await server.prepare_run(stage.session, stage.run(), [stage.workdir], world.loads(200))
        wider = replace(JOB, fields=4)
        await server.prepare_run(stage.session, stage.run(wider), [stage.workdir], world.loads(200))
        table = world.table()
        assert table is not None
        assert sorted(table["columns"]) == ["field0", "field1", "field2", "field3", "y_id"]

    played(tmp_path, world, work)


def test_half_a_load_of_a_dead_session_is_loaded_anew(tmp_path: Path, world: World) -> None:
    world.change(**{**THEIRS, "comment": COMMENT_PREFIX, "rows": 120})

    async def work(stage: Stage, server: ExternalServer) -> None:
        await server.prepare_run(stage.session, stage.run(), [stage.workdir], world.loads(200))

    played(tmp_path, world, work)
    assert "Schema drop" in world.asked
    assert world.table() is None


@pytest.mark.parametrize("rows", [200, 199])
def test_what_a_session_kept_is_used_again_if_it_is_whole(
    tmp_path: Path, world: World, rows: int
) -> None:
    comment = f"{COMMENT_PREFIX}, holds 200 records of 2 x 100 bytes"
    world.change(**{**THEIRS, "comment": comment, "rows": rows})

    async def work(stage: Stage, server: ExternalServer) -> None:
        load = never if rows == 200 else world.loads(200)
        await server.prepare_run(stage.session, stage.run(), [stage.workdir], load)
        assert server.server_run.rows == 200

    played(tmp_path, world, work)


@pytest.mark.parametrize("rows", [0, 200])
def test_a_table_of_the_users_own_is_never_dropped(tmp_path: Path, world: World, rows: int) -> None:
    world.change(**{**THEIRS, "rows": rows})

    async def work(stage: Stage, server: ExternalServer) -> None:
        load = never if rows else world.loads(200)
        await server.prepare_run(stage.session, stage.run(), [stage.workdir], load)

    played(tmp_path, world, work)
    assert world.table() == {**THEIRS, "rows": 200}
    assert "Schema drop" not in world.asked


@pytest.mark.parametrize(
    ("table", "wanted"),
    [
        ({"columns": {"y_id": "text", "field0": "text"}}, "without field1"),
        (
            {"columns": {"y_id": "text", "field0": "blob", "field1": "text", "own": "int"}},
            "with own; field0 is blob, not text",
        ),
        ({"key": ["field0"]}, "its key is field0, not y_id"),
        ({"rows": 12}, "holds 12 rows, and should hold 200"),
        ({"replication": "3"}, "another replication \\(.*replication_factor 3\\) than 1"),
    ],
)
def test_what_does_not_fit_is_refused_and_left(
    tmp_path: Path, world: World, table: dict[str, object], wanted: str
) -> None:
    world.change(**{**THEIRS, "rows": 0, **table})
    before = world.table()

    async def work(stage: Stage, server: ExternalServer) -> None:
        with pytest.raises(EngineError, match=wanted):
            await server.prepare_run(stage.session, stage.run(), [stage.workdir], never)
        assert server.server_run.error is not None

    played(tmp_path, world, work)
    assert world.table() == before


def test_a_table_that_somebody_changes_between_runs_is_refused(
    tmp_path: Path, world: World
) -> None:
    async def work(stage: Stage, server: ExternalServer) -> None:
        await server.prepare_run(stage.session, stage.run(), [stage.workdir], world.loads(200))
        world.change(columns={"y_id": "text", "field0": "text"})
        with pytest.raises(EngineError, match="without field1"):
            await server.prepare_run(stage.session, stage.run(), [stage.workdir], never)

    played(tmp_path, world, work)


def test_more_replicas_than_nodes_are_refused(tmp_path: Path, world: World) -> None:
    async def work(stage: Stage, server: ExternalServer) -> None:
        with pytest.raises(EngineError, match="3 replicas need as many nodes"):
            await server.prepare_run(stage.session, stage.run(), [stage.workdir], never)

    played(tmp_path, world, work, replication=3)
    assert world.asked == ["Schema describe"]


def test_a_cluster_that_is_down_is_told(tmp_path: Path, world: World) -> None:
    world.steer("silent", "No Cassandra answers at 10.0.0.7:9042: Cannot connect")

    async def work(stage: Stage, server: ExternalServer) -> None:
        with pytest.raises(EngineError, match=r"No Cassandra answers at 10.0.0.7:9042") as raised:
            await server.prepare_run(stage.session, stage.run(), [stage.workdir], never)
        assert raised.value.hint.startswith("Start the cluster")

    played(tmp_path, world, work)


def test_a_table_that_cannot_be_dropped_is_told_of(tmp_path: Path, world: World) -> None:
    async def body() -> tuple[str, ...]:
        settings = settings_of(world)
        async with stage_on(tmp_path, settings) as stage:
            server = ExternalServer(settings, no_kits)
            await server.prepare_run(stage.session, stage.run(), [stage.workdir], world.loads(200))
            world.steer("silent", "No Cassandra answers")
            return await server.stop_and_list_leftovers()

    (fault,) = asyncio.run(body())
    assert "iolab.usertable" in fault


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("h", "h:9042"),
        ("h:9999", "h:9999"),
        ("[::1]", "[::1]:9042"),
        ("[::1]:7", "[::1]:7"),
        ("fe80::12", "[fe80::12]:9042"),
    ],
)
def test_addresses_get_the_ports_they_lack(given: str, found: str) -> None:
    settings = ServerSettings(kind=ServerKind.EXTERNAL, addresses=(given,))
    assert ExternalServer(settings, no_kits).addresses == (found,)
