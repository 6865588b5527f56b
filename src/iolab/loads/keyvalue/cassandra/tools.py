"""What iolab's own Java tools say of a Cassandra, parsed at the edge; see `_kits/ycsb`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Final, TypeVar

from msgspec import Meta, ValidationError, convert, field

from iolab.core.limits import REPLY_BYTES_MAX
from iolab.errors import EngineError
from iolab.hosts.engine import Command
from iolab.hosts.host import Host
from iolab.hosts.remote_process import run_and_get_output
from iolab.hosts.telemetry import CounterCollector
from iolab.loads.keyvalue.java import INSTALL_JAVA
from iolab.loads.keyvalue.workload import ReportedStatistic, ServerSettings
from iolab.record import Record
from iolab.text import excerpt

BUG_HINT: Final = "This is a fault of iolab; please report it with the command that led here."


Name = Annotated[str, Meta(max_length=256)]
Counter = Annotated[str, Meta(pattern="^[a-z0-9_]{1,60}$")]
Text = Annotated[str, Meta(max_length=4096)]
Whole = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Port = Annotated[int, Meta(ge=1, le=65535)]
ReplyModel = TypeVar("ReplyModel", bound=Record)

SCOPE: Final = "cassandra"
"""Under which the table has them; docs/reference/telemetry.md names each."""

TABLE: Final = "usertable"
"""The table of YCSB's core workloads."""

ANY: Final = "ANY"
"""The consistency of writes that a coordinator alone may take."""

PACKAGE: Final = "iolab.cassandra"

SMALL_JAVA: Final = (
    "-Xmx64m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    # What Java leaves in /tmp would outlive it.
    "-XX:+PerfDisableSharedMem",
)
"""A tool shares the host with the node and the load: one thread, little memory, a quick start."""

ASK_LIMIT_S: Final = 120.0
"""A question of the schema: a Java machine starts, connects and asks, on a host under load."""

WORK_LIMIT_S: Final = 4 * 3600.0
"""Flushing, compacting or counting a terabyte at 100 MB/s."""

ANSWER_LIMIT_S: Final = 60
"""For a node to answer to JMX: it answered to CQL already."""

WATCH_LIMIT_S: Final = 30 * 86400.0
"""Counters are told for as long as a node may live."""

FIRST_PORT: Final = 10_000

PORTS_TRIED: Final = 100
"""Where a node's further ports are looked for, of which nobody need know, and how many are tried:
below those that Linux gives to connections, from 32768 on."""


class SchemaReply(Record, kw_only=True):
    """YCSB's table as a cluster has it; None for what it has not.

    `replication` and `columns` are by name, `key` the columns of the primary key, `tables` how
    many the keyspace has, `comment` what stands beside the table.
    """

    version: Name
    nodes: Annotated[int, Meta(ge=1)]
    replication: dict[Name, Name] | None
    tables: Annotated[int, Meta(ge=0)]
    comment: Text | None
    columns: dict[Name, Name] | None
    key: tuple[Name, ...] | None


class RowsReply(Record, kw_only=True):
    """Rows in `sample` of `ranges` equal ranges of tokens."""

    rows: Annotated[int, Meta(ge=0)]
    ranges: Annotated[int, Meta(ge=1)]
    sample: Annotated[int, Meta(ge=1)]


class PreflightReply(Record, kw_only=True):
    """A host before a node is started: why its port cannot be had, ports that can, the kernel's."""

    java: Name
    vendor: Name | None = None
    port_taken_reason: Text | None = field(name="taken")
    free_storage_port: Port | None = field(name="storage_port")
    free_jmx_port: Port | None = field(name="jmx_port")
    max_map_count: Whole | None
    swappiness: Whole | None


class CountersReply(Record, kw_only=True):
    """A node's counters at one moment of its host's CLOCK_REALTIME; None for one it has not."""

    real_ns: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    counters: Annotated[dict[Counter, Whole | None], Meta(max_length=200)]

    @property
    def known_counters(self) -> Mapping[str, int]:
        """The counters that it has."""
        return {name: value for name, value in self.counters.items() if value is not None}

    @property
    def statistics(self) -> tuple[ReportedStatistic, ...]:
        """The same for a record."""
        return tuple(
            ReportedStatistic(name, float(value), _counter_unit(name))
            for name, value in self.known_counters.items()
        )


def parse_tool_reply(line: bytes, reply_type: type[ReplyModel], host_name: str) -> ReplyModel:
    """A tool's answer. EngineError for its refusal, which is a sentence, and for nonsense."""
    try:
        document = json.loads(line[:REPLY_BYTES_MAX])
    except (ValueError, RecursionError):
        raise _unreadable_reply_error(line, host_name) from None
    if isinstance(document, dict) and isinstance(document.get("refused"), str):
        message = excerpt(document["refused"]).rstrip(".")
        raise EngineError(f"{message} (asked on host '{host_name}').", _remedy_for_refusal(message))
    try:
        return convert(document, reply_type)
    except ValidationError:
        raise _unreadable_reply_error(line, host_name) from None


def _remedy_for_refusal(message: str) -> str:
    if "No Cassandra answers" in message or "No address" in message:
        return "Start the cluster, or correct server.addresses, and run again."
    return "Correct it in the cluster or in the study, and run again."


def _unreadable_reply_error(line: bytes, host_name: str) -> EngineError:
    shown = excerpt(line[:200].decode("utf-8", "replace"), 100)
    return EngineError(
        f"A tool of iolab on host '{host_name}' said what cannot be read: {shown}.", BUG_HINT
    )


def _counter_unit(name: str) -> str:
    """The unit that a counter's name ends with; a count has none."""
    tail = name.rpartition("_")[2]
    return {"bytes": "B", "ns": "ns"}.get(tail, "")


class CounterRelay:
    """Hands counters on from `relay_counters_from_now` until `drop_counters_from_now`."""

    def __init__(self) -> None:
        self._to: CounterCollector | None = None
        self._host = 0
        self._seq = 0

    def relay_counters_from_now(
        self, collector: CounterCollector, host_index: int, newest_counters: CountersReply | None
    ) -> None:
        """From now on they are those of the host with that index; the newest is the first."""
        self._to, self._host, self._seq = collector, host_index, 0
        if newest_counters is not None:
            self.forward(newest_counters)

    def forward(self, counters: CountersReply) -> None:
        """One reading."""
        if self._to is None:
            return
        sample = {"seq": self._seq, "real_ns": counters.real_ns, SCOPE: counters.known_counters}
        # What a collector refuses is no reason to end a run: its edge has parsed it already.
        with suppress(ValueError):
            self._to.add(self._host, sample)
        self._seq += 1

    def drop_counters_from_now(self) -> None:
        """The run is over."""
        self._to = None


class KitJavaToolRunner(Record):
    """The tools on one host: Java, the jars of iolab's kit for YCSB, and the study's settings."""

    host: Host
    settings: ServerSettings
    jars: tuple[str, ...]

    async def run_schema_action(
        self, addresses: tuple[str, ...], action: str, **more: object
    ) -> SchemaReply:
        """Do something with YCSB's table and tell what it is then. EngineError, HostError."""
        words = {
            "do": action,
            **self._table_arguments,
            **self._connection_arguments(addresses),
            **more,
        }
        return await self._run_tool("Schema", words, SchemaReply, ASK_LIMIT_S)

    async def count_rows(
        self, addresses: tuple[str, ...], range_count: int, sampled_range_count: int
    ) -> RowsReply:
        """Count the rows in a sample of ranges. EngineError, HostError."""
        words = {
            **self._table_arguments,
            **self._connection_arguments(addresses),
            "ranges": range_count,
            "sample": sampled_range_count,
        }
        return await self._run_tool("Rows", words, RowsReply, WORK_LIMIT_S)

    async def run_node_preflight(self) -> PreflightReply:
        """Whether a node could listen here, and what is to be known before. EngineError."""
        # Nodes that are started side by side on a host differ in the port of CQL: so do these.
        first = FIRST_PORT + 2 * (self.settings.port % FIRST_PORT)
        words = {
            "listen": self.settings.listen,
            "port": self.settings.port,
            "storage": first,
            "jmx": first + 1,
            "tries": PORTS_TRIED,
        }
        return await self._run_tool("Preflight", words, PreflightReply, ASK_LIMIT_S)

    async def flush_and_compact(self, jmx_port: int) -> CountersReply:
        """Have a node here flush and compact its table; its counters then. EngineError, HostError.

        It does not limit compaction any more from then on.
        """
        words = {"do": "settle", "jmx": jmx_port, "wait_s": ANSWER_LIMIT_S, **self._table_arguments}
        return await self._run_tool("Statistics", words, CountersReply, WORK_LIMIT_S)

    def counters_command(self, jmx_port: int, wait_s: int, interval_ms: int) -> Command:
        """A process that waits for a node here and then tells its counters, a line each time."""
        words = {
            "do": "watch",
            "jmx": jmx_port,
            "wait_s": wait_s,
            "interval_ms": interval_ms,
            "cql_host": self.settings.listen,
            "cql_port": self.settings.port,
            **self._table_arguments,
        }
        argv = self._tool_argv("Statistics", words)
        limit_bytes = REPLY_BYTES_MAX * 1024
        return Command(argv, "/", b"", " ".join(argv), WATCH_LIMIT_S, limit_bytes)

    async def _run_tool(
        self,
        tool: str,
        arguments: Mapping[str, object],
        reply_type: type[ReplyModel],
        limit_s: float,
    ) -> ReplyModel:
        argv = self._tool_argv(tool, arguments)
        line = await run_and_get_output(self.host, argv, limit_s=limit_s, install_hint=INSTALL_JAVA)
        return parse_tool_reply(line.strip(), reply_type, self.host.name)

    def _tool_argv(self, tool: str, arguments: Mapping[str, object]) -> tuple[str, ...]:
        java = (self.settings.java, *SMALL_JAVA, "-cp", ":".join(self.jars))
        return (
            *java,
            f"{PACKAGE}.{tool}",
            *(f"{name}={value}" for name, value in arguments.items()),
        )

    @property
    def _table_arguments(self) -> Mapping[str, object]:
        return {"keyspace": self.settings.keyspace, "table": TABLE}

    def _connection_arguments(self, addresses: tuple[str, ...]) -> Mapping[str, object]:
        # Any node may take a write, but none may answer a question so.
        asked = self.settings.consistency
        return {"addresses": ",".join(addresses), "consistency": "ONE" if asked == ANY else asked}
