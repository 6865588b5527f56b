"""One real node on a host: its configuration and command, and it from its start to its end."""

from __future__ import annotations

import asyncio
import json
import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from iolab.core.limits import STREAM_BYTES_MAX
from iolab.errors import EngineError, HostError
from iolab.hosts.engine import Command
from iolab.hosts.remote_process import run_and_get_output
from iolab.loads.keyvalue.cassandra.node_host import (
    OUTPUT_CHARACTERS_MAX,
    CassandraVersion,
    ServerProcess,
)
from iolab.loads.keyvalue.cassandra.tools import (
    CountersReply,
    KitJavaToolRunner,
    parse_tool_reply,
)
from iolab.loads.keyvalue.databases import remove_folder
from iolab.loads.keyvalue.workload import ServerSettings
from iolab.record import Record
from iolab.text import excerpt
from iolab.units import format_bytes

READY_MARKER: Final = b"Starting listening for CQL clients"
"""What a node logs when it begins to serve; all supported versions do."""

DISK_FULL_PATTERN: Final = re.compile(
    rb"No space left on device|Insufficient disk space|FSWriteError|FSDiskFullWriteError"
    rb"|a fault occurred in (?:a|an) (?:recent )?unsafe memory access"
)
"""What it logs when it cannot write any more. The last is how Java tells of a page of a mapped file
for which the file system had no block: the node lives on then, and fails every write."""

START_LIMIT_S: Final = 300
"""From the start to that line: seven seconds on an idle host, more with a commit log to replay."""

ANSWER_LIMIT_S: Final = 60
"""From that line to the first counters: CQL and JMX answer, a Java machine starts."""

COUNTERS_LIMIT_S: Final = 10.0
"""Beyond the interval, for counters to come from a host under full load."""

STOP_LIMIT_S: Final = 120.0
"""For a node to end by itself: five seconds, and the writing of what its memory still holds."""

FILE_MODE: Final = 0o644
PUT_LIMIT_S: Final = 60.0

CORRECT_HINT: Final = "Correct the reported fault and run again."

LOOPBACK: Final = "127.0.0.1"
"""Where a node speaks to other nodes, of which it has none, and answers to JMX."""

DAEMON: Final = "org.apache.cassandra.service.CassandraDaemon"

LIFE_LIMIT_S: Final = 30 * 86400.0
"""A node lives as long as its session; the longest studies take days."""


OFF_HEAP_MIN_BYTES: Final = 256 << 20

NON_HEAP_BYTES: Final = 512 << 20
"""What a node needs beside its heap: code, threads, and its buffers before they are full."""

OPENED_PACKAGES: Final = (
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.lang.module",
    "java.base/java.lang.reflect",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.util.jar",
    "java.base/sun.nio.ch",
    "java.rmi/sun.rmi.transport.tcp",
    "jdk.management/com.sun.management.internal",
)

EXPORTED_PACKAGES: Final = (
    "java.base/jdk.internal.misc",
    "java.base/jdk.internal.perf",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.sql/java.sql",
)
"""Inner parts of Java that Cassandra reaches into: what its own jvm11 and jvm17 options allow, in
one set that serves all versions and both Javas."""

LOGBACK: Final = b"""\
<configuration>
  <appender name="OUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%-5level %date{ISO8601,UTC} %logger{0} - %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="OUT"/></root>
</configuration>
"""

_JAMM: Final = re.compile(r"jamm-[0-9.]+\.jar")


class CassandraNode:
    """A node of `plan` on the host of `tools`; `kill` or `stop` must be called in any case.

    `heard` gets its counters as they come, every `interval_ms`.
    """

    def __init__(
        self,
        plan: CassandraNodePlan,
        tools: KitJavaToolRunner,
        interval_ms: int,
        on_counters: Callable[[CountersReply], None],
    ) -> None:
        self.plan = plan
        self.newest: CountersReply | None = None
        self._tools = tools
        self._on_counters = on_counters
        self._interval_s = interval_ms / 1000
        self._is_serving = asyncio.Event()
        self._counters_queue = asyncio.Event()
        self._daemon = ServerProcess(tools.host, node_command(plan), self._handle_log_line)
        watch = tools.counters_command(plan.jmx_port, ANSWER_LIMIT_S, interval_ms)
        self._reader = ServerProcess(tools.host, watch, self._handle_counters_line)
        self._ready = False
        self._no_room = ""

    @property
    def pid(self) -> int | None:
        """The process id of its Java machine, None before its start."""
        return self._daemon.pid

    async def start(self) -> None:
        """Start it and wait until it answers. EngineError with the end of its log, HostError."""
        host, plan = self._tools.host, self.plan
        await remove_folder(host, library_unpack_folder(plan))
        await run_and_get_output(host, ("mkdir", "-p", "--", *node_folders_to_create(plan)))
        for name, content in node_config_files(plan).items():
            await host.request(
                "put",
                content,
                deadline_s=PUT_LIMIT_S,
                path=f"{plan.config_folder}/{name}",
                mode=FILE_MODE,
            )
        await self._daemon.start()
        if not await wait_for_event_or_exit(self._is_serving, self._daemon, START_LIMIT_S):
            raise await self._kill_and_build_start_error(
                f"did not begin to serve within {START_LIMIT_S} s"
            )
        await self._reader.start()
        if not await wait_for_event_or_exit(self._counters_queue, self._reader, ANSWER_LIMIT_S):
            raise await self._kill_and_build_start_error(
                f"did not answer within {ANSWER_LIMIT_S} s"
            )
        self._ready = True

    def failure_text(self) -> str | None:
        """A sentence once it has ended unasked since it was ready, or cannot write any more."""
        if not self._ready:
            return None
        if self._no_room:
            return f"{self._display_name} could not write to its target any more ({self._no_room})."
        return (
            None
            if self._daemon.is_alive
            else f"{self._display_name} {self._daemon.exit_and_output_text()}."
        )

    @property
    def is_counter_reader_alive(self) -> bool:
        """Whether its counters still come."""
        return self._reader.is_alive

    async def wait_for_next_counters(self) -> CountersReply | None:
        """The next ones that it tells; None when it tells none any more."""
        self._counters_queue.clear()
        limit_s = self._interval_s + COUNTERS_LIMIT_S
        return (
            self.newest
            if await wait_for_event_or_exit(self._counters_queue, self._reader, limit_s)
            else None
        )

    async def stop(self) -> None:
        """Have it write what it holds and end. EngineError when it had to be killed."""
        died = self.failure_text()
        self._ready = False
        await self._reader.kill()
        ended = await self._daemon.stop_or_kill(STOP_LIMIT_S)
        if died or not ended:
            message = (
                died
                or f"{self._display_name} did not end within {STOP_LIMIT_S:g} s, and was killed."
            )
            raise EngineError(message, CORRECT_HINT)

    async def kill(self) -> None:
        """End it at once with all that it started."""
        self._ready = False
        await self._reader.kill()
        await self._daemon.kill()

    @property
    def _display_name(self) -> str:
        return f"Cassandra {self.plan.version.text} on host '{self._tools.host.name}'"

    async def _kill_and_build_start_error(self, timeout_text: str) -> HostError | EngineError:
        """Why it is not there; nothing of it is left."""
        alive = self._daemon.is_alive
        if not alive:
            message = (
                f"{self._display_name} died at its start: it {self._daemon.exit_and_output_text()}."
            )
        elif not self._reader.is_alive and self._is_serving.is_set():
            message = (
                f"The counters of {self._display_name} cannot be read: it "
                f"{self._reader.exit_and_output_text()}."
            )
        else:
            message = f"{self._display_name} {timeout_text}; {self._daemon.exit_and_output_text()}."
        await self.kill()
        lost = self._tools.host.lost_reason
        return HostError(lost, CORRECT_HINT) if lost else EngineError(message, CORRECT_HINT)

    def _handle_log_line(self, line: bytes) -> None:
        if READY_MARKER in line:
            self._is_serving.set()
        if not self._no_room and DISK_FULL_PATTERN.search(line):
            text = line.decode("utf-8", "replace")
            self._no_room = excerpt(text, OUTPUT_CHARACTERS_MAX).rstrip(".")

    def _handle_counters_line(self, line: bytes) -> None:
        try:
            counters = parse_tool_reply(line, CountersReply, self._tools.host.name)
        except EngineError:
            # The reader's own sentence: it ends now, and that is told by its end.
            return
        self.newest = counters
        self._counters_queue.set()
        self._on_counters(counters)


async def wait_for_event_or_exit(
    event: asyncio.Event, daemon: ServerProcess, limit_s: float
) -> bool:
    """Whether the event comes before the process ends, within a time."""
    waiting = asyncio.create_task(event.wait())
    ending = asyncio.create_task(daemon.wait_for_end(limit_s))
    try:
        await asyncio.wait({waiting, ending}, return_when=asyncio.FIRST_COMPLETED)
        return event.is_set()
    finally:
        waiting.cancel()
        ending.cancel()
        await asyncio.gather(waiting, ending, return_exceptions=True)


class CassandraNodePlan(Record):
    """All that a node's files and command are made of.

    `data_folder` is the folder of its data, `config_folder` that of its configuration, both
    absolute; `storage_port` and `jmx_port` are on loopback.
    """

    settings: ServerSettings
    version: CassandraVersion
    data_folder: str
    config_folder: str
    jars: tuple[str, ...]
    storage_port: int
    jmx_port: int


def node_config_files(plan: CassandraNodePlan) -> Mapping[str, bytes]:
    """The files of its configuration by name."""
    # YAML has all of JSON in it, and JSON leaves no doubt about quotes.
    yaml = json.dumps(_yaml_settings(plan), indent=1).encode() + b"\n"
    return {"cassandra.yaml": yaml, "logback.xml": LOGBACK}


def node_folders_to_create(plan: CassandraNodePlan) -> tuple[str, ...]:
    """The folders that must be there before it is started."""
    return plan.config_folder, plan.data_folder, library_unpack_folder(plan)


def library_unpack_folder(plan: CassandraNodePlan) -> str:
    """Where it unpacks its own libraries, which a node that is killed leaves there."""
    return f"{plan.config_folder}/unpacked"


def node_command(plan: CassandraNodePlan) -> Command:
    """The node in the foreground. EngineError when its memory cannot hold it."""
    require_heap_within_memory_limit(plan.settings)
    argv = (plan.settings.java, *_jvm_options(plan), DAEMON)
    return Command(
        argv=argv,
        cwd=plan.config_folder,
        stdin=b"",
        job_file="\n".join(argv),
        wall_limit_s=LIFE_LIMIT_S,
        output_limit_bytes=STREAM_BYTES_MAX,
        memory_limit_bytes=plan.settings.memory_bytes,
    )


def direct_memory_bytes(settings: ServerSettings) -> int:
    """Memory for buffers outside of the heap: half as much as in it, as was seen to serve."""
    return max(OFF_HEAP_MIN_BYTES, settings.heap_bytes // 2)


def require_heap_within_memory_limit(settings: ServerSettings) -> None:
    """EngineError when the bound on all memory leaves no room beside the heap."""
    bound = settings.memory_bytes
    least = settings.heap_bytes + NON_HEAP_BYTES
    if bound is not None and bound < least:
        raise EngineError(
            f"A node with a heap of {format_bytes(settings.heap_bytes)} does not fit into "
            f"{format_bytes(bound)} of memory.",
            f"Set server.memory to {format_bytes(least)} or more, or server.heap to less.",
        )


def _yaml_settings(plan: CassandraNodePlan) -> dict[str, Any]:
    """The settings that differ from Cassandra's own defaults, and the places."""
    sync: dict[str, Any] = {
        "commitlog_sync_period_in_ms": 10000,
        "commitlog_segment_size_in_mb": 32,
    }
    if plan.version.has_units_in_values:
        sync = {"commitlog_sync_period": "10000ms", "commitlog_segment_size": "32MiB"}
    seeds = {"seeds": f"{LOOPBACK}:{plan.storage_port}"}
    return {
        "cluster_name": "iolab",
        "num_tokens": 16,
        "partitioner": "org.apache.cassandra.dht.Murmur3Partitioner",
        "endpoint_snitch": "SimpleSnitch",
        "seed_provider": [
            {
                "class_name": "org.apache.cassandra.locator.SimpleSeedProvider",
                "parameters": [seeds],
            }
        ],
        "listen_address": LOOPBACK,
        "storage_port": plan.storage_port,
        "rpc_address": plan.settings.listen,
        "native_transport_port": plan.settings.port,
        "start_native_transport": True,
        "data_file_directories": [f"{plan.data_folder}/data"],
        "commitlog_directory": f"{plan.data_folder}/commitlog",
        "saved_caches_directory": f"{plan.data_folder}/saved_caches",
        "hints_directory": f"{plan.data_folder}/hints",
        "cdc_raw_directory": f"{plan.data_folder}/cdc_raw",
        "commitlog_sync": "periodic",
        **sync,
        # A full disk or a broken one ends the node at once: one that lives on and serves nothing
        # would be measured.
        "disk_failure_policy": "die",
        "commit_failure_policy": "die",
        # A dropped table would stay on disk.
        "auto_snapshot": False,
    }


def _jvm_options(plan: CassandraNodePlan) -> Sequence[str]:
    heap = plan.settings.heap_bytes
    agents = [jar for jar in plan.jars if _JAMM.fullmatch(posixpath.basename(jar))]
    return (
        f"-Xms{heap}",
        f"-Xmx{heap}",
        f"-XX:MaxDirectMemorySize={direct_memory_bytes(plan.settings)}",
        "-Xss256k",
        "-XX:+UseG1GC",
        "-XX:+ExitOnOutOfMemoryError",
        # What Java leaves among temporary files would outlive it.
        "-XX:+PerfDisableSharedMem",
        f"-Djava.io.tmpdir={library_unpack_folder(plan)}",
        f"-Djna.tmpdir={library_unpack_folder(plan)}",
        *(f"-javaagent:{jar}" for jar in agents),
        *(f"--add-exports={part}=ALL-UNNAMED" for part in EXPORTED_PACKAGES),
        *(f"--add-opens={part}=ALL-UNNAMED" for part in OPENED_PACKAGES),
        "-Djdk.attach.allowAttachSelf=true",
        f"-Dcassandra.config=file://{quote(plan.config_folder)}/cassandra.yaml",
        f"-Dcassandra.storagedir={plan.data_folder}",
        f"-Dlogback.configurationFile={plan.config_folder}/logback.xml",
        f"-Dcassandra.jmx.local.port={plan.jmx_port}",
        "-Dcassandra-foreground=yes",
        # There is nobody whose gossip could be waited for.
        "-Dcassandra.skip_wait_for_gossip_to_settle=0",
        "-Dcassandra.ring_delay_ms=1",
        "-cp",
        ":".join((plan.config_folder, *plan.jars)),
    )
