"""On which host a node lies, and in which folder there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from iolab.errors import HostError
from iolab.loads.keyvalue.cassandra.node_host import CassandraNodeFolder, find_or_open_node_folder
from iolab.loads.keyvalue.workload import ServerKind, ServerSettings, server_settings_or_embedded
from iolab.session.context import SessionContext
from iolab.targets.work_directory import WorkDirectory
from tests.fakes.host import FakeHost
from tests.loads.keyvalue.cassandra.stage import JOB, Heard, Stage, crew_on

SETTINGS = ServerSettings(kind=ServerKind.MANAGED)


def played(
    host: str,
    work: Callable[[SessionContext, Stage, FakeHost], Awaitable[None]],
    *,
    keep: bool = False,
) -> FakeHost:
    """The work in a session of one client, with a storage node beside it, which is returned."""

    async def body() -> FakeHost:
        client, node = FakeHost("local"), FakeHost("node")
        heard = Heard()
        session = crew_on(
            client, replace(SETTINGS, host=host), heard, monitored_hosts={"node": node}
        )
        target = replace(session.study.target, keep_files=keep)
        session = replace(session, study=replace(session.study, target=target))
        workdir = WorkDirectory(client, "/mnt/bench/iolab-scratch-local", None, "local")
        try:
            await client.connect()
            await node.connect()
            await work(session, Stage(session, workdir, heard), node)
        finally:
            await client.close()
            await node.close()
        return node

    return asyncio.run(body())


async def place_in(
    session: SessionContext, stage: Stage, before: CassandraNodeFolder | None = None
) -> CassandraNodeFolder:
    return await find_or_open_node_folder(
        session, stage.run(JOB), [stage.workdir], server_settings_or_embedded(session.study), before
    )


@pytest.mark.parametrize("keep", [False, True])
def test_a_storage_node_has_it_in_a_folder_taken_for_it(*, keep: bool) -> None:
    async def work(session: SessionContext, stage: Stage, node: FakeHost) -> None:
        place = await place_in(session, stage)
        assert place.host_name == "node"
        assert place.workdir.dir == "/mnt/bench/iolab-scratch-node-server"
        assert await place_in(session, stage, place) is place
        await place.close_scratch_folder()

    node = played("node", work, keep=keep)
    (closed,) = [words for verb, words in node.agent.asked if verb == "scratch_close"]
    assert closed["keep"] is keep


def test_a_lost_host_is_told() -> None:
    async def work(session: SessionContext, stage: Stage, node: FakeHost) -> None:
        node.end_as_lost("was switched off")
        with pytest.raises(HostError, match="was switched off"):
            await place_in(session, stage)

    played("node", work)


def test_a_host_of_no_session_is_told() -> None:
    async def work(session: SessionContext, stage: Stage, node: FakeHost) -> None:
        with pytest.raises(HostError, match="'elsewhere'"):
            await place_in(session, stage)

    played("elsewhere", work)
