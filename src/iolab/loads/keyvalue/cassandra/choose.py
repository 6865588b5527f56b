"""Which server a study's settings ask for."""

from __future__ import annotations

from iolab.loads.keyvalue.cassandra.external import ExternalServer
from iolab.loads.keyvalue.cassandra.managed import ManagedServer
from iolab.loads.keyvalue.cassandra.server import Server
from iolab.loads.keyvalue.workload import ServerKind, ServerSettings


def server_of(settings: ServerSettings) -> Server | None:
    """A new server, not started yet; None where the store is embedded in the clients.

    EngineError for a version of Cassandra that iolab does not know.
    """
    if settings.kind is ServerKind.MANAGED:
        return ManagedServer(settings)
    if settings.kind is ServerKind.GIVEN:
        return ExternalServer(settings)
    return None
