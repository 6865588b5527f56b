"""iolab's own Java tools for Cassandra on a host: one question each, answered in one line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from iolab.model.ycsb import ServerSettings
from iolab.run.cassandra.answers import (
    LINE_LIMIT_BYTES,
    CountersTold,
    PreflightTold,
    RowsTold,
    SchemaTold,
    Told,
    read_told,
)
from iolab.run.engines.base import Command
from iolab.run.hosts.base import Host
from iolab.run.key_value.java import INSTALL
from iolab.run.key_value.processes import told

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


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools on one host: Java, the jars of iolab's kit for YCSB, and the study's settings."""

    host: Host
    settings: ServerSettings
    jars: tuple[str, ...]

    async def schema(self, addresses: tuple[str, ...], do: str, **more: object) -> SchemaTold:
        """Do something with YCSB's table and tell what it is then. EngineError, HostError."""
        words = {"do": do, **self._table, **self._reached(addresses), **more}
        return await self._ask("Schema", words, SchemaTold, ASK_LIMIT_S)

    async def rows(self, addresses: tuple[str, ...], ranges: int, sample: int) -> RowsTold:
        """Count the rows in a sample of ranges. EngineError, HostError."""
        words = {**self._table, **self._reached(addresses), "ranges": ranges, "sample": sample}
        return await self._ask("Rows", words, RowsTold, WORK_LIMIT_S)

    async def preflight(self) -> PreflightTold:
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
        return await self._ask("Preflight", words, PreflightTold, ASK_LIMIT_S)

    async def settle(self, jmx_port: int) -> CountersTold:
        """Have a node here flush and compact its table; its counters then. EngineError, HostError.

        It does not limit compaction any more from then on.
        """
        words = {"do": "settle", "jmx": jmx_port, "wait_s": ANSWER_LIMIT_S, **self._table}
        return await self._ask("Statistics", words, CountersTold, WORK_LIMIT_S)

    def watch_command(self, jmx_port: int, wait_s: int, interval_ms: int) -> Command:
        """A process that waits for a node here and then tells its counters, a line each time."""
        words = {
            "do": "watch",
            "jmx": jmx_port,
            "wait_s": wait_s,
            "interval_ms": interval_ms,
            "cql_host": self.settings.listen,
            "cql_port": self.settings.port,
            **self._table,
        }
        argv = self._argv("Statistics", words)
        limit_bytes = LINE_LIMIT_BYTES * 1024
        return Command(argv, "/", b"", " ".join(argv), WATCH_LIMIT_S, limit_bytes)

    async def _ask(
        self, tool: str, words: Mapping[str, object], model: type[Told], limit_s: float
    ) -> Told:
        argv = self._argv(tool, words)
        line = await told(self.host, argv, limit_s=limit_s, install=INSTALL)
        return read_told(line.strip(), model, self.host.name)

    def _argv(self, tool: str, words: Mapping[str, object]) -> tuple[str, ...]:
        java = (self.settings.java, *SMALL_JAVA, "-cp", ":".join(self.jars))
        return (*java, f"{PACKAGE}.{tool}", *(f"{name}={value}" for name, value in words.items()))

    @property
    def _table(self) -> Mapping[str, object]:
        return {"keyspace": self.settings.keyspace, "table": TABLE}

    def _reached(self, addresses: tuple[str, ...]) -> Mapping[str, object]:
        # Any node may take a write, but none may answer a question so.
        asked = self.settings.consistency
        return {"addresses": ",".join(addresses), "consistency": "ONE" if asked == ANY else asked}
