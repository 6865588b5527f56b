"""The host and the folder of a managed node: a client's own, or one taken for the node alone."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from iolab.core.events import Notice
from iolab.core.run import PlannedRun
from iolab.errors import EngineError, HostError
from iolab.hosts.answers import ExitedAnswer, ScratchAnswer, read_answer
from iolab.hosts.engine import Command
from iolab.hosts.host import Host
from iolab.hosts.message import Message
from iolab.hosts.remote_process import KILL_LIMIT_S, start_remote_process
from iolab.loads.keyvalue.cassandra.tools import (
    FIRST_PORT,
    PORTS_TRIED,
    KitJavaToolRunner,
    PreflightReply,
)
from iolab.loads.keyvalue.java import (
    INSTALL_JAVA,
    YCSB_VERSION,
    InstallKit,
    JavaInstallation,
    JavaKitName,
    find_java,
)
from iolab.loads.keyvalue.workload import ServerSettings
from iolab.record import Record
from iolab.session.context import SessionContext
from iolab.study.targets import target_path
from iolab.targets.work_directory import (
    CLOSE_LIMIT_S,
    OPEN_LIMIT_S,
    WorkDirectory,
    scratch_folder_name,
)
from iolab.text import excerpt

SUFFIX: Final = "-server"
"""Sets the folder apart from the one that a session may hold on the same host as on a client."""

OLDEST_JAVA: Final = 11

STARTABLE_JAVA_RELEASES: Final = frozenset({11, 17})
"""Releases of Java on which every version below was seen to start, with the options of `node`. Java
18 and later refuse the security manager that Cassandra sets."""

_SUPPORTED: Final = {
    (4, 0): frozenset({8, 11}),
    (4, 1): frozenset({8, 11}),
    (5, 0): frozenset({11, 17}),
}
"""What each series' own documentation supports ("Prerequisites" of its installation chapter)."""

_VERSION: Final = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})")

MAPS_WANTED: Final = 1_048_575
"""Memory maps that Cassandra asks for (`StartupChecks.checkMaxMapCount`): it maps its files."""

SWAPPINESS_WANTED: Final = 1
"""Cassandra's own advice: memory that is swapped out stops a Java machine for seconds."""

TAIL_BYTES: Final = 32 << 10
"""What is kept of all that it says: its end, where the reason stands, below a trace of Java's."""

SPAWN_LIMIT_S: Final = 30.0
"""For the agent to start a process, on a host under full load."""

EXPLAINING_LINES: Final = 3
"""Lines of its log that a sentence on its end repeats."""

OUTPUT_CHARACTERS_MAX: Final = 600
"""Characters of them."""

_ERROR_WORDS: Final = ("ERROR", "Exception", "Error:", "FATAL")
"""What a line has in it that tells why a Java program ended."""


class CassandraNodeFolder(Record):
    """Where a node lies.

    `is_scratch_folder` when its folder is held for it alone, `keep_files` what is to stay.
    """

    workdir: WorkDirectory
    is_scratch_folder: bool = False
    keep_files: bool = False

    @property
    def host_name(self) -> str:
        """The host's name."""
        return self.workdir.name

    async def close_scratch_folder(self) -> None:
        """Give back a folder that was taken for the node. Raises HostError."""
        if self.is_scratch_folder and not self.workdir.host.lost_reason:
            await self.workdir.host.request(
                "scratch_close",
                deadline_s=CLOSE_LIMIT_S,
                dir=self.workdir.dir,
                keep=self.keep_files,
            )


async def find_or_open_node_folder(
    session: SessionContext,
    run: PlannedRun,
    workdirs: Sequence[WorkDirectory],
    settings: ServerSettings,
    earlier_folder: CassandraNodeFolder | None,
) -> CassandraNodeFolder:
    """Where the node of a run lies; the same as before where nothing has changed.

    HostError when the host is not of the session, or is lost.
    """
    name = settings.host or workdirs[0].name
    for workdir in workdirs:
        if workdir.name == name:
            return CassandraNodeFolder(workdir)
    host = session.all_hosts.get(name)
    if host is None:
        raise HostError(
            f"The host '{name}' that is to run Cassandra is none of the session.",
            "Name a client or a storage node of the study as server.host.",
        )
    if host.lost_reason:
        raise HostError(host.lost_reason, "Reach it again, and resume the session.")
    if earlier_folder is not None and earlier_folder.workdir.host is host:
        return earlier_folder
    return await _acquire_scratch_folder(session, run, host)


async def _acquire_scratch_folder(
    session: SessionContext, run: PlannedRun, host: Host
) -> CassandraNodeFolder:
    """A folder on the host for the node alone, where the clients have their target."""
    wanted = run.point.configuration
    configuration = next(item for item in session.study.configurations if item.id == wanted)
    message = await host.request(
        "scratch_open",
        deadline_s=OPEN_LIMIT_S,
        path=target_path(configuration, host.spec),
        name=scratch_folder_name(host.name) + SUFFIX,
        owner=session.folder_owner_text,
    )
    folder = read_answer(host.name, ScratchAnswer, message).dir
    return CassandraNodeFolder(
        WorkDirectory(host, folder, None, host.name),
        is_scratch_folder=True,
        keep_files=session.study.target.keep_files,
    )


class CassandraVersion(Record):
    """A release of Apache Cassandra that iolab can run."""

    text: str
    series: tuple[int, int]

    @property
    def has_units_in_values(self) -> bool:
        """Whether its settings have their unit in the value, not in the name (from 4.1 on)."""
        return self.series >= (4, 1)

    def supports_java(self, java: JavaInstallation) -> bool:
        """Whether its own documentation names that release of Java."""
        return java.release in _SUPPORTED[self.series]


def parse_supported_version(text: str) -> CassandraVersion:
    """The version that a study names. EngineError for one that iolab does not know how to run."""
    match = _VERSION.fullmatch(text)
    series = (int(match[1]), int(match[2])) if match else (0, 0)
    if series not in _SUPPORTED:
        versions = ", ".join(f"{major}.{minor}.x" for major, minor in _SUPPORTED)
        raise EngineError(
            f"This iolab cannot run Apache Cassandra '{excerpt(text, 40)}'.",
            f"Set server.version to one of {versions}.",
        )
    return CassandraVersion(text, series)


def require_java_that_starts_cassandra(
    java: JavaInstallation, version: CassandraVersion, host_name: str
) -> None:
    """EngineError for a Java on which Cassandra dies at its start."""
    if java.release not in STARTABLE_JAVA_RELEASES:
        raise EngineError(
            f"Java {excerpt(java.version, 40)} on host '{host_name}' cannot run Apache Cassandra "
            f"{version.text}, which starts on Java 11 and 17 alone.",
            INSTALL_JAVA,
        )


def java_version_and_support_text(java: JavaInstallation, version: CassandraVersion) -> str:
    """The Java for records; it says so where Cassandra's own documentation does not name it."""
    java_version = excerpt(java.version, 60)
    if version.supports_java(java):
        return java_version
    major, minor = version.series
    return f"{java_version} (not officially supported by Cassandra {major}.{minor})"


class CassandraHostSetup(Record):
    """What a node is started with on one host; `java_version_text` is told in records."""

    tool_runner: KitJavaToolRunner
    jars: tuple[str, ...]
    java_version_text: str
    storage_port: int
    jmx_port: int


async def _install_and_check_node_host(
    session: SessionContext,
    workdir: WorkDirectory,
    settings: ServerSettings,
    version: CassandraVersion,
    kits: InstallKit,
) -> CassandraHostSetup:
    """Find or bring it; what is not as Cassandra wants it is told. EngineError, HostError."""
    host = workdir.host

    def notify(text: str) -> None:
        session.emit(Notice(text))

    java = await find_java(host, settings.java, oldest_release=OLDEST_JAVA)
    require_java_that_starts_cassandra(java, version, host.name)
    own = await kits(host, JavaKitName.YCSB, YCSB_VERSION, workdir.dir, notify)
    jars = await kits(host, JavaKitName.CASSANDRA, version.text, workdir.dir, notify)
    tools = KitJavaToolRunner(host, settings, own)
    preflight = await tools.run_node_preflight()
    storage_port, jmx_port = _require_storage_and_jmx_ports(preflight, settings, host.name)
    if not version.supports_java(java):
        notify(
            f"Cassandra {version.text} on '{host.name}' runs on Java "
            f"{java_version_and_support_text(java, version)}."
        )
    for text in notes_on_unsuitable_kernel_settings(preflight, host.name):
        notify(text)
    return CassandraHostSetup(
        tools, jars, java_version_and_support_text(java, version), storage_port, jmx_port
    )


def notes_on_unsuitable_kernel_settings(
    preflight: PreflightReply, host_name: str
) -> tuple[str, ...]:
    """What of a host's kernel is not as Cassandra wants it."""
    lines = []
    if preflight.max_map_count is not None and preflight.max_map_count < MAPS_WANTED:
        lines.append(
            f"vm.max_map_count is {preflight.max_map_count} on host '{host_name}', Cassandra wants "
            f"{MAPS_WANTED}: it may fail with many files."
        )
    if preflight.swappiness is not None and preflight.swappiness > SWAPPINESS_WANTED:
        lines.append(
            f"vm.swappiness is {preflight.swappiness} on host '{host_name}', Cassandra wants "
            f"{SWAPPINESS_WANTED} or no swap: swapping would stop it for seconds."
        )
    return tuple(lines)


def _require_storage_and_jmx_ports(
    preflight: PreflightReply, settings: ServerSettings, host_name: str
) -> tuple[int, int]:
    """The ports beside CQL's. EngineError when one cannot be had."""
    if preflight.port_taken_reason is not None:
        why = excerpt(preflight.port_taken_reason).rstrip(".")
        at = f"{settings.listen}:{settings.port}"
        raise EngineError(
            f"Cassandra cannot listen on {at} of host '{host_name}': {why}.",
            "End what uses that port, or set server.port or server.listen to others.",
        )
    if preflight.free_storage_port is None or preflight.free_jmx_port is None:
        raise EngineError(
            f"None of {PORTS_TRIED} ports for Cassandra's own use is free on host '{host_name}'.",
            "Set server.port to another one: those ports are looked for from twice its last four "
            f"digits above {FIRST_PORT} on.",
        )
    return preflight.free_storage_port, preflight.free_jmx_port


class ServerProcess:
    """One process, from `start` to its end; `kill` or `stop_or_kill` must be called in any case.

    `on_line` gets each line of its standard output. All of them may raise HostError.
    """

    def __init__(
        self, host: Host, command: Command, on_line: Callable[[bytes], None] | None = None
    ) -> None:
        self.host = host
        self.pid: int | None = None
        self.exited: ExitedAnswer | None = None
        self._command = command
        self._on_line = on_line
        self._line = b""
        self._tail = b""
        self._run_id = 0
        self._has_begun = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._failure: HostError | None = None

    @property
    def is_alive(self) -> bool:
        """Whether it was started and has not ended."""
        return self._task is not None and not self._task.done()

    @property
    def output_tail(self) -> str:
        """The end of what it said on both its outputs."""
        return self._tail.decode("utf-8", "replace")

    async def start(self) -> None:
        """Start it. AgentRefusalError when it cannot be started, HostError when the host fails."""
        self._task = asyncio.create_task(self._follow_output(), name=f"daemon on {self.host.name}")
        begun = asyncio.create_task(self._has_begun.wait())
        try:
            await asyncio.wait(
                {self._task, begun},
                timeout=SPAWN_LIMIT_S,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            begun.cancel()
            await asyncio.gather(begun, return_exceptions=True)
        if self._failure:
            raise self._failure
        if not self._has_begun.is_set() and self.is_alive:
            raise self.host.end_as_lost(f"started no process within {SPAWN_LIMIT_S:g} s")

    async def wait_for_end(self, limit_s: float) -> bool:
        """Whether it ends within that time; True at once when it has."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=limit_s)
        return not self.is_alive

    async def stop_or_kill(self, limit_s: float) -> bool:
        """Ask it to end, kill it when it does not; whether it ended by itself."""
        if self.is_alive and not self.host.lost_reason:
            await self._send_signal("TERM")
            if await self.wait_for_end(limit_s):
                return True
        await self.kill()
        return False

    async def kill(self) -> None:
        """Kill it and all that it started; returns when the host has seen it gone."""
        if self.is_alive and not self.host.lost_reason:
            await self._send_signal("KILL")
            if not await self.wait_for_end(KILL_LIMIT_S + SPAWN_LIMIT_S):
                self.host.end_as_lost("did not end a process that it was asked to kill")
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def exit_and_output_text(self) -> str:
        """How it ended, as the second half of a sentence, with the end of what it said."""
        # Who is killed has no say in it: his last words tell of something else.
        was_killed = self.exited is not None and self.exited.signal is not None
        last_words = excerpt(
            "; ".join(_last_error_or_output_lines(self.output_tail, was_killed=was_killed)),
            OUTPUT_CHARACTERS_MAX,
        ).rstrip(".")
        return f"{self._end_predicate()}{f' ({last_words})' if last_words else ''}"

    async def _send_signal(self, name: str) -> None:
        """A process that has just ended takes none, and a lost host is told by the stream."""
        with suppress(HostError):
            await self.host.request(
                "signal", deadline_s=KILL_LIMIT_S, run=self._run_id, signal=name
            )

    def _end_predicate(self) -> str:
        if self._failure:
            return f"was lost with its host: {self._failure.message.rstrip('.')}"
        exited = self.exited
        if exited is None:
            return "was ended"
        if exited.oom_kills:
            return "was killed by the kernel, since it wanted more memory than it may have"
        if exited.timed_out:
            return "was killed, for it outlived its limit"
        if exited.signal is not None:
            return f"was killed by signal {exited.signal}"
        return f"ended with exit code {exited.code}"

    async def _follow_output(self) -> None:
        stream = start_remote_process(self.host, self._command)
        self._run_id = stream.id
        last: Message | None = None
        try:
            async for last in stream:
                self._on_message(last)
            if last is not None:
                self.exited = read_answer(self.host.name, ExitedAnswer, last)
        except HostError as fault:
            self._failure = fault
        finally:
            await stream.aclose()

    def _on_message(self, message: Message) -> None:
        if message.message_type == "started":
            pid = message.header.get("pid")
            self.pid = pid if isinstance(pid, int) else None
            self._has_begun.set()
        elif message.message_type == "output":
            self._tail = (self._tail + message.payload)[-TAIL_BYTES:]
            if self._on_line and message.header.get("stream") == "stdout":
                *lines, rest = (self._line + message.payload).split(b"\n")
                self._line = rest[-TAIL_BYTES:]
                for line in lines:
                    self._on_line(line)


def _last_error_or_output_lines(output: str, *, was_killed: bool) -> list[str]:
    """The lines that tell most of an end: the last errors, else the last ones of all."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    bad = [line for line in lines if any(word in line for word in _ERROR_WORDS)]
    bad = [line for line in bad if not line.startswith("at ")]
    return (bad if bad or was_killed else lines)[-EXPLAINING_LINES:]
