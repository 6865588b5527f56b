"""Listens and answers, with limits on connections, on what they say and how long they take.

This and `app` are the door to starlette and uvicorn.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from iolab.errors import UsageError
from iolab.serve.gate import App, Terms
from iolab.serve.limits import (
    CONNECTIONS_MAX,
    HEAD_S,
    HEADER_BYTES_MAX,
    KEEP_ALIVE_S,
    SHUTDOWN_S,
)

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""A terminal that goes away ends it, as Ctrl-C does."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A socket that listens, the host that was asked for, and whether only this machine reaches it.

    `everywhere` says that it listens on all of the machine's addresses.
    """

    socket: socket.socket
    host: str
    local: bool
    everywhere: bool

    @property
    def port(self) -> int:
        """The port that it has."""
        port: int = self.socket.getsockname()[1]
        return port

    @property
    def address(self) -> str:
        """Where a browser finds it: this machine's own name where it listens everywhere."""
        host = socket.gethostname() if self.everywhere else self.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}/"

    def terms(self, token: str | None) -> Terms:
        """Under which names it may be asked: its own, and any address where a token is needed.

        A page from elsewhere can make a browser take a name for any address, but not an address.
        """
        names = {"localhost", self.host.lower()}
        if not self.local:
            names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
        return Terms(frozenset(names), addresses=not self.local, token=token)


def bind(host: str, port: int) -> Bound:
    """Listen at a host's first address; UsageError where that cannot be, or the port is taken."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise UsageError(
            f"There is no address for the host '{host}'.", "Give one of this machine's addresses."
        ) from error
    family, kind, protocol, _, address = found[0]
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(CONNECTIONS_MAX)
    except OSError as error:
        made.close()
        raise _unbound(error, host, port) from error
    where = ipaddress.ip_address(str(address[0]).partition("%")[0])
    return Bound(made, host, local=where.is_loopback, everywhere=where.is_unspecified)


def serve(bound: Bound, app: App, ready: Callable[[], None]) -> None:
    """Answer requests until a signal comes; answers that are under way get a moment more."""
    config = uvicorn.Config(
        app,
        loop="asyncio",
        http=_Patient,
        ws="none",
        lifespan="on",
        interface="asgi3",
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=CONNECTIONS_MAX,
        backlog=CONNECTIONS_MAX,
        h11_max_incomplete_event_size=HEADER_BYTES_MAX,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=SHUTDOWN_S,
    )
    server = _Server(config, ready)
    # uvicorn takes INT and TERM while it serves, and raises them again once it has ended.
    before = {number: signal.signal(number, server.end) for number in _SIGNALS}
    try:
        asyncio.run(server.serve(sockets=[bound.socket]))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        bound.socket.close()


class _Server(uvicorn.Server):
    """Says when it is ready, and ends at any of the signals."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then say so."""
        await super().startup(sockets)
        self._ready()

    def end(self, _number: int, _frame: object) -> None:
        """What a signal does."""
        self.should_exit = True


class _Patient(H11Protocol):
    """HTTP/1.1 that closes a connection which does not tell its request in time."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._deadline = self.loop.call_later(HEAD_S, self._give_up)

    def data_received(self, data: bytes) -> None:
        asked = self.cycle
        super().data_received(data)
        if self.cycle is not asked:
            self._clear()
        elif self._deadline is None and (asked is None or asked.response_complete):
            self._deadline = self.loop.call_later(HEAD_S, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        self._clear()
        super().connection_lost(exc)

    def _clear(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        self.transport.close()


def _unbound(error: OSError, host: str, port: int) -> UsageError:
    if error.errno == errno.EADDRINUSE:
        return UsageError(
            f"Port {port} of '{host}' is in use.", "Give another `--port`, or none for a free one."
        )
    if error.errno == errno.EACCES:
        return UsageError(
            f"Port {port} is kept for the administrator.", "Give one from 1024 on, or none."
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return UsageError(
            f"'{host}' is no address of this machine.", "Give one that it has, or 0.0.0.0 for all."
        )
    return UsageError(f"'{host}' port {port} cannot be listened at: {error.strerror}.", "Try else.")
