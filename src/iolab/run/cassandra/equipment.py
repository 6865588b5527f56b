"""What a host needs to run a node: a Java on which it starts, all jars, and free ports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from iolab.errors import EngineError
from iolab.model.event import Notice
from iolab.model.ycsb import ServerSettings
from iolab.run.cassandra.answers import PreflightTold
from iolab.run.cassandra.tools import FIRST_PORT, PORTS_TRIED, Tools
from iolab.run.cassandra.version import OLDEST_JAVA, Version, java_told, require_java
from iolab.run.crew import Crew
from iolab.run.hosts.text import printable
from iolab.run.key_value.java import java_on
from iolab.run.kits import YCSB_VERSION, KitName, Kits
from iolab.run.site import Site

MAPS_WANTED: Final = 1_048_575
"""Memory maps that Cassandra asks for (`StartupChecks.checkMaxMapCount`): it maps its files."""

SWAPPINESS_WANTED: Final = 1
"""Cassandra's own advice: memory that is swapped out stops a Java machine for seconds."""


@dataclass(frozen=True, slots=True)
class Equipment:
    """All of it on one host; `java` is told in records."""

    tools: Tools
    jars: tuple[str, ...]
    java: str
    storage_port: int
    jmx_port: int


async def equip(
    crew: Crew, site: Site, settings: ServerSettings, version: Version, kits: Kits
) -> Equipment:
    """Find or bring it; what is not as Cassandra wants it is told. EngineError, HostError."""
    host = site.host

    def say(text: str) -> None:
        crew.tell(Notice(text))

    java = await java_on(host, settings.java, oldest=OLDEST_JAVA)
    require_java(java, version, host.name)
    own = await kits(host, KitName.YCSB, YCSB_VERSION, site.dir, say)
    jars = await kits(host, KitName.CASSANDRA, version.text, site.dir, say)
    tools = Tools(host, settings, own)
    found = await tools.preflight()
    storage_port, jmx_port = _ports(found, settings, host.name)
    if not version.supports(java):
        say(f"Cassandra {version.text} on '{host.name}' runs on Java {java_told(java, version)}.")
    for text in notes(found, host.name):
        say(text)
    return Equipment(tools, jars, java_told(java, version), storage_port, jmx_port)


def notes(found: PreflightTold, host: str) -> tuple[str, ...]:
    """What of a host's kernel is not as Cassandra wants it."""
    told = []
    if found.max_map_count is not None and found.max_map_count < MAPS_WANTED:
        told.append(
            f"vm.max_map_count is {found.max_map_count} on host '{host}', Cassandra wants "
            f"{MAPS_WANTED}: it may fail with many files."
        )
    if found.swappiness is not None and found.swappiness > SWAPPINESS_WANTED:
        told.append(
            f"vm.swappiness is {found.swappiness} on host '{host}', Cassandra wants "
            f"{SWAPPINESS_WANTED} or no swap: swapping would stop it for seconds."
        )
    return tuple(told)


def _ports(found: PreflightTold, settings: ServerSettings, host: str) -> tuple[int, int]:
    """The ports beside CQL's. EngineError when one cannot be had."""
    if found.taken is not None:
        why = printable(found.taken).rstrip(".")
        at = f"{settings.listen}:{settings.port}"
        raise EngineError(
            f"Cassandra cannot listen on {at} of host '{host}': {why}.",
            "End what uses that port, or set server.port or server.listen to others.",
        )
    if found.storage_port is None or found.jmx_port is None:
        raise EngineError(
            f"None of {PORTS_TRIED} ports for Cassandra's own use is free on host '{host}'.",
            "Set server.port to another one: those ports are looked for from twice its last four "
            f"digits above {FIRST_PORT} on.",
        )
    return found.storage_port, found.jmx_port
