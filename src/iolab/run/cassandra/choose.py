"""Which server a study's settings ask for."""

from __future__ import annotations

from iolab.model.ycsb import ServerKind, ServerSettings
from iolab.run.cassandra.given import GivenServer
from iolab.run.cassandra.managed import ManagedServer
from iolab.run.cassandra.server import Server


def server_of(settings: ServerSettings) -> Server | None:
    """A new server, not started yet; None where the store is embedded in the clients.

    EngineError for a version of Cassandra that iolab does not know.
    """
    if settings.kind is ServerKind.MANAGED:
        return ManagedServer(settings)
    if settings.kind is ServerKind.GIVEN:
        return GivenServer(settings)
    return None
