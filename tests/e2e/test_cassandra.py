"""A real node of Apache Cassandra 4.0.17, brought by Maven, through all that a session does to it.

YCSB loads it. Everything lies on an XFS of the test's own.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from iolab.errors import EngineError
from iolab.hosts.rates import derive_counter_series
from iolab.hosts.remote_process import run_process
from iolab.hosts.telemetry import CounterCollector
from iolab.loads.keyvalue.cassandra.external import ExternalServer
from iolab.loads.keyvalue.cassandra.managed import ManagedServer
from iolab.loads.keyvalue.java import YCSB_VERSION, JavaKitName, install_java_kit_jars
from iolab.loads.keyvalue.workload import ServerKind, ServerSettings, YcsbJob
from iolab.loads.keyvalue.ycsb.engine import JavaKit, YcsbStore, database_fill_command
from tests.e2e.targets import Target, command, xfs_on_loop
from tests.loads.keyvalue.cassandra.stage import JOB, Stage, stage_on
from tests.sockets import listening

pytestmark = [pytest.mark.e2e, pytest.mark.long]

LIMIT_S = 240
PATIENCE_S = 20.0
HEAP_BYTES = 512 << 20

Work = Callable[[Stage, ManagedServer], Awaitable[None]]


@pytest.fixture
def target() -> Iterator[Target]:
    with xfs_on_loop(1 << 30) as made:
        yield made


def free_port() -> int:
    """One that nobody listens on now."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        return port


def settings_of(**more: object) -> ServerSettings:
    given = {
        "kind": ServerKind.MANAGED,
        "port": free_port(),
        "heap_bytes": HEAP_BYTES,
        **more,
    }
    return ServerSettings(**given)  # type: ignore[arg-type]


def played(target: Target, settings: ServerSettings, work: Work) -> Stage:
    """The work with a server, which is ended; nothing of it is left."""

    async def body() -> Stage:
        async with asyncio.timeout(LIMIT_S), stage_on(target.path, settings) as stage:
            server = ManagedServer(settings)
            try:
                await work(stage, server)
            finally:
                assert await server.stop_and_list_leftovers() == ()
                assert javas_on(target.path) == []
        return stage

    stage = asyncio.run(body())
    assert [entry.name for entry in target.path.iterdir()] == []
    return stage


def javas_on(folder: Path) -> list[int]:
    """Java machines that name the folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes()
        except OSError:
            continue  # it has just ended
        if b"java" in words.split(b"\0")[0] and os.fsencode(folder) in words:
            found.append(int(entry.name))
    return found


async def ycsb_loads(stage: Stage, settings: ServerSettings, job: YcsbJob = JOB) -> None:
    """All of the job's records by the real YCSB."""
    host, folder = stage.workdir.host, stage.workdir.dir
    jars = await install_java_kit_jars(host, JavaKitName.YCSB, YCSB_VERSION, folder, lambda _: None)
    addresses = (f"127.0.0.1:{settings.port}",)
    store = YcsbStore(settings.kind, addresses, settings.keyspace, 1, settings.consistency)
    loading = database_fill_command(
        job,
        store,
        JavaKit("java", jars),
        folder,
        first=0,
        count=job.records,
        thread_count=4,
        seconds=120,
    )
    printed = bytearray()
    ending = await run_process(host, loading, asyncio.Event(), printed.extend)
    if b"Return=OK, %d" % job.records not in printed or ending.exited.code != 0:
        raise EngineError(f"YCSB stored too little: {ending.stderr_tail[-300:]}", "Look.")


async def never() -> None:
    raise AssertionError("the records are there already")


def test_a_node_is_loaded_restored_killed_and_started_anew(target: Target) -> None:
    settings = settings_of(memory_bytes=HEAP_BYTES + (1 << 30))

    async def work(stage: Stage, server: ManagedServer) -> None:
        run, here = stage.run(), [stage.workdir]
        await server.prepare_run(stage.session, run, here, lambda: ycsb_loads(stage, settings))
        told = server.server_run
        assert (told.rows, told.rows_by, told.restored_by) == (JOB.records, "count", "reflink")
        before = {one.name: one.value for one in told.statistics_before}
        # Flushed and compacted: all lies in one file, nothing in memory.
        assert (before["sstables"], before["memtable_bytes"]) == (1, 0)
        assert before["live_bytes"] > JOB.records * JOB.record_bytes
        assert before["compactions_pending"] == 0
        assert server.cache_proof is not None
        assert server.cache_proof.resident_bytes_after == 0

        # CQL, the other nodes' port, and both of JMX.
        assert len(listening(server.pid)) == 4
        assert all(address.is_loopback for address in listening(server.pid))

        counters = CounterCollector()
        async with server.sample_counters(stage.session, run, counters, {"local": 0}):
            await a_given_cluster(stage, settings)
        await server.record_final_statistics(stage.session, run)
        after = {one.name: one.value for one in server.server_run.statistics_after}
        assert after["client_writes"] >= JOB.records
        # The node started anew, from a copy of what was flushed and compacted.
        assert (before["flushed_bytes"], before["compaction_written_bytes"]) == (0, 0)
        assert min(after["flushed_bytes"], after["compaction_written_bytes"]) >= 0
        series = {
            one.metric: one for one in derive_counter_series(counters.pop_table(), ("local",))
        }
        assert series["heap_used_bytes"].value.min() > 1 << 20
        assert series["cpu_share"].value.max() > 0

        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        for _ in range(round(PATIENCE_S / 0.05)):
            if server.failure_text():
                break
            await asyncio.sleep(0.05)
        assert server.failure_text() == "Cassandra 4.0.17 on host 'local' was killed by signal 9."
        await server.prepare_run(stage.session, run, here, never)
        restored = {one.name: one.value for one in server.server_run.statistics_before}
        assert (restored["sstables"], restored["memtable_bytes"]) == (1, 0)

    stage = played(target, settings, work)
    assert any("Cassandra 4.0.17 on 'local' runs on Java" in text for text in stage.heard.notices)


async def a_given_cluster(stage: Stage, managed: ServerSettings) -> None:
    """The same node as a cluster of the user's, in which iolab makes a table and drops it."""
    settings = replace(
        managed,
        kind=ServerKind.EXTERNAL,
        addresses=(f"127.0.0.1:{managed.port}",),
        keyspace="theirs",
    )
    server = ExternalServer(settings)
    run, here = stage.run(), [stage.workdir]
    await server.prepare_run(stage.session, run, here, lambda: ycsb_loads(stage, settings))
    assert (server.server_run.rows, server.server_run.version) == (JOB.records, "4.0.17")
    assert await server.stop_and_list_leftovers() == ()


def test_a_disk_that_runs_full_while_it_is_loaded_is_the_fault() -> None:
    settings = settings_of()
    large = replace(JOB, records=60_000, fields=1, field_bytes=1024)

    with xfs_on_loop(400 << 20) as target:

        async def work(stage: Stage, server: ManagedServer) -> None:
            async def load() -> None:
                room = shutil.disk_usage(target.path).free - (20 << 20)
                command("fallocate", "--length", str(room), f"{stage.workdir.dir}/ballast")
                await ycsb_loads(stage, settings, large)

            run = stage.run(large)
            with pytest.raises(EngineError, match="could not write to its target any more"):
                await server.prepare_run(stage.session, run, [stage.workdir], load)
            assert server.pid is None

        played(target, settings, work)


def test_a_cluster_that_is_down_is_told(target: Target) -> None:
    settings = settings_of(kind=ServerKind.EXTERNAL, addresses=(f"127.0.0.1:{free_port()}",))

    async def work(stage: Stage, _: ManagedServer) -> None:
        with pytest.raises(EngineError, match="No Cassandra answers at"):
            await ExternalServer(settings).prepare_run(
                stage.session, stage.run(), [stage.workdir], never
            )

    played(target, settings, work)


def test_addresses_of_several_ports_are_refused(target: Target) -> None:
    addresses = ("127.0.0.1:9042", "127.0.0.1:9142")
    settings = settings_of(kind=ServerKind.EXTERNAL, addresses=addresses)

    async def work(stage: Stage, _: ManagedServer) -> None:
        with pytest.raises(EngineError, match="are not all of one port") as raised:
            await ExternalServer(settings).prepare_run(
                stage.session, stage.run(), [stage.workdir], never
            )
        assert "in the study" in raised.value.hint

    played(target, settings, work)


def test_a_port_that_is_taken_is_said_at_once(target: Target) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        settings = settings_of(port=held.getsockname()[1])

        async def work(stage: Stage, server: ManagedServer) -> None:
            with pytest.raises(EngineError, match=r"cannot listen on .* Address already in use"):
                await server.prepare_run(stage.session, stage.run(), [stage.workdir], never)

        played(target, settings, work)
