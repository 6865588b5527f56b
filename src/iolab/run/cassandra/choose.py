"""Which server a study's settings ask for."""

from __future__ import annotations

from iolab.model.ycsb import ServerKind, ServerSettings
from iolab.run.cassandra.server import Server


def server_of(settings: ServerSettings) -> Server | None:
    """A new server, not started yet; None where the store is embedded in the clients."""
    if settings.kind is ServerKind.EMBEDDED:
        return None
    raise NotImplementedError(settings.kind)
