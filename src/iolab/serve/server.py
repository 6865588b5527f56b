"""A server of sessions: who may ask what, its limits each with its reason, and its socket."""

from __future__ import annotations

import asyncio
import base64
import errno
import hmac
import ipaddress
import signal
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from iolab.errors import IolabError, UsageError
from iolab.record import Record
from iolab.serve.limits import (
    CONNECTIONS_MAX,
    HEAD_BYTES_MAX,
    HEAD_S,
    KEEP_ALIVE_S,
    SHUTDOWN_S,
    UNAUTHENTICATED_CONNECTIONS_MAX,
)

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

NO_CONTENT_POLICY: Final = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The policy of an answer that brings none of its own."""

_SECURITY_HEADERS: Final = {
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}

ADMITTED_KEY: Final = "iolab.let_in"
"""In the state of a connection: what to call when a request on it was not refused."""

_REALM: Final = 'Basic realm="iolab: any name, and the token as password", charset="UTF-8"'

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""A terminal that goes away ends it, as Ctrl-C does."""


class AccessPolicy(Record):
    """Under which names the server may be asked, and the token, None where none is needed.

    `allows_ip_addresses` says that any IP address is a name of it, as where it listens on all of a
    machine's.
    """

    host_names: frozenset[str]
    allows_ip_addresses: bool
    token: str | None


class RequestRefusal(Record):
    """Why a request is not answered, with the headers that go with it."""

    status: int
    title: str
    text: str
    headers: tuple[tuple[str, str], ...] = ()


Refuse = Callable[[RequestRefusal], tuple[bytes, Mapping[str, str]]]
"""Makes the page of a refusal, and the headers of its content."""


class AccessMiddleware:
    """An ASGI application before another one; `log_fault` gets a line for each fault of ours."""

    def __init__(
        self, app: App, policy: AccessPolicy, refuse: Refuse, log_fault: Callable[[str], None]
    ) -> None:
        self._app = app
        self._policy = policy
        self._refuse = refuse
        self._log_fault = log_fault

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass on the start and end of the server."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        started = False

        async def send_with_security_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message = {**message, "headers": _with_security_headers(message.get("headers", ()))}
            await send(message)

        too_long = request_head_bytes(scope) > HEAD_BYTES_MAX
        refusal = (
            _HEAD_REFUSAL
            if too_long
            else request_refusal(scope["method"], _headers_by_name(scope), self._policy)
        )
        if refusal is not None:
            await self._send_refusal(refusal, scope, send_with_security_headers)
            return
        if let_in := scope.get("state", {}).get(ADMITTED_KEY):
            let_in()
        try:
            await self._app(scope, receive, send_with_security_headers)
        except Exception as error:
            self._log_fault(f"A page failed: {type(error).__name__}: {error}")
            if not started:
                await self._send_refusal(_BROKEN_REFUSAL, scope, send_with_security_headers)

    async def _send_refusal(self, refusal: RequestRefusal, scope: Scope, send: Send) -> None:
        body, headers = self._refuse(refusal)
        every = [*headers.items(), *refusal.headers, ("connection", "close")]
        every.append(("content-length", str(len(body))))
        await send(
            {
                "type": "http.response.start",
                "status": refusal.status,
                "headers": [(name.encode(), value.encode()) for name, value in every],
            }
        )
        shown = b"" if scope["method"] == "HEAD" else body
        await send({"type": "http.response.body", "body": shown})


def request_head_bytes(scope: Scope) -> int:
    """How long the head of a request is: its address, and names and values of its headers."""
    address = len(scope.get("raw_path", b"")) + len(scope["query_string"])
    return address + sum(len(name) + len(value) + 4 for name, value in scope["headers"])


def request_refusal(
    method: str, headers: Mapping[str, list[str]], policy: AccessPolicy
) -> RequestRefusal | None:
    """Why a request must not be answered; None where it may be."""
    if method not in {"GET", "HEAD"}:
        return _METHOD_REFUSAL
    if headers.get("transfer-encoding") or set(headers.get("content-length", ())) - {"0"}:
        return _BODY_REFUSAL
    hosts = headers.get("host", [])
    if len(hosts) != 1 or not is_allowed_host_header(hosts[0], policy):
        return _HOST_REFUSAL
    if _is_cross_site(headers):
        return _FOREIGN_REFUSAL
    if policy.token is not None and not has_token(headers.get("authorization", []), policy.token):
        return _TOKEN_REFUSAL
    return None


def is_allowed_host_header(host: str, policy: AccessPolicy) -> bool:
    """Whether a Host header names this server, at any port: it may be forwarded."""
    name = _name_in_host_header(host)
    if name is None:
        return False
    if name in policy.host_names:
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return address.is_loopback or policy.allows_ip_addresses


def has_token(headers: list[str], token: str) -> bool:
    """Whether the one Authorization header has the token: as Bearer, or as password of Basic."""
    if len(headers) != 1:
        return False
    scheme, _, value = headers[0].partition(" ")
    if scheme.lower() == "basic":
        try:
            decoded = base64.b64decode(value.strip(), validate=True).decode("utf-8", "replace")
        except ValueError:
            return False
        value = decoded.partition(":")[2]
    elif scheme.lower() != "bearer":
        return False
    return hmac.compare_digest(value.strip().encode("utf-8", "replace"), token.encode())


def _name_in_host_header(host: str) -> str | None:
    """The name or address of a Host header in lower case, without brackets, port and last dot."""
    if host.startswith("["):
        name, closed, rest = host[1:].partition("]")
        if not closed or (rest and not rest.startswith(":")):
            return None
    else:
        name, _, rest = host.partition(":")
        if ":" in rest:
            return None
    port = rest.removeprefix(":")
    if port and not (port.isascii() and port.isdigit()):
        return None
    return name.lower().removesuffix(".") or None


def _is_cross_site(headers: Mapping[str, list[str]]) -> bool:
    """Whether a page from elsewhere asks for this one as a part of itself."""
    if not {"cross-site", "same-site"} & set(headers.get("sec-fetch-site", ())):
        return False
    opened = headers.get("sec-fetch-mode") == ["navigate"]
    return not (opened and headers.get("sec-fetch-dest") == ["document"])


def _headers_by_name(scope: Scope) -> dict[str, list[str]]:
    headers: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return headers


def _with_security_headers(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    names = {name.lower() for name, _ in headers}
    every = {**_SECURITY_HEADERS, "content-security-policy": NO_CONTENT_POLICY}
    ours = [(name.encode(), value.encode()) for name, value in every.items()]
    return [*headers, *(pair for pair in ours if pair[0] not in names)]


def refusal_from_error(error: IolabError, status: int) -> RequestRefusal:
    """The refusal that tells an error of ours."""
    return RequestRefusal(status, error.message, error.hint)


_METHOD_REFUSAL: Final = RequestRefusal(
    405, "Nothing can be changed here.", "Ask with GET or HEAD.", (("allow", "GET, HEAD"),)
)
_BODY_REFUSAL: Final = RequestRefusal(400, "A request here has no content.", "Ask without any.")
_HEAD_REFUSAL: Final = RequestRefusal(
    431, "The head of the request is too long.", "Ask with a shorter one."
)
_HOST_REFUSAL: Final = RequestRefusal(
    421,
    "This server does not go by that name.",
    "Use the address that `iolab serve` printed, or serve with `--host` and the name.",
)
_FOREIGN_REFUSAL: Final = RequestRefusal(
    403, "Another site requested this page.", "Open it in a tab of its own."
)
_TOKEN_REFUSAL: Final = RequestRefusal(
    401,
    "The token is needed.",
    "Give any name, and as password the token that `iolab serve` printed.",
    (("www-authenticate", _REALM),),
)
_BROKEN_REFUSAL: Final = RequestRefusal(
    500, "This page could not be made.", "See what the server printed, and report it as a bug."
)


class ListeningSocket(Record):
    """A socket that listens, the host that was requested, and whether only this machine reaches it.

    `listens_on_all_addresses` says that it listens on all of the machine's addresses.
    """

    socket: socket.socket
    host: str
    is_loopback: bool
    listens_on_all_addresses: bool

    @property
    def port(self) -> int:
        """The port that it has."""
        port: int = self.socket.getsockname()[1]
        return port

    @property
    def address(self) -> str:
        """Where a browser finds it: this machine's own name where it listens everywhere."""
        host = socket.gethostname() if self.listens_on_all_addresses else self.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}/"

    def access_policy(self, token: str | None) -> AccessPolicy:
        """Under which names it may be asked: its own, and any address where a token is needed.

        A page from elsewhere can make a browser take a name for any address, but not an address.
        """
        names = {"localhost", self.host.lower()}
        if not self.is_loopback:
            names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
        return AccessPolicy(frozenset(names), allows_ip_addresses=not self.is_loopback, token=token)


def open_listener(host: str, port: int) -> ListeningSocket:
    """Listen at a host's first address; UsageError where that cannot be, or the port is taken."""
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise UsageError(
            f"There is no address for the host '{host}'.", "Give one of this machine's addresses."
        ) from error
    family, kind, protocol, _, address = addresses[0]
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(CONNECTIONS_MAX)
    except OSError as error:
        sock.close()
        raise _cannot_listen_error(error, host, port) from error
    where = ipaddress.ip_address(str(address[0]).partition("%")[0])
    return ListeningSocket(
        sock, host, is_loopback=where.is_loopback, listens_on_all_addresses=where.is_unspecified
    )


def run_server(listener: ListeningSocket, app: App, on_ready: Callable[[], None]) -> None:
    """Answer requests until a signal comes; answers that are under way get a moment more."""
    config = uvicorn.Config(
        app,
        loop="asyncio",
        http=_ConnectionGuardProtocol,
        ws="none",
        lifespan="on",
        interface="asgi3",
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=CONNECTIONS_MAX + UNAUTHENTICATED_CONNECTIONS_MAX,
        backlog=CONNECTIONS_MAX,
        h11_max_incomplete_event_size=HEAD_BYTES_MAX,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=SHUTDOWN_S,
    )
    server = _Server(config, on_ready)
    # uvicorn takes INT and TERM while it serves, and raises them again once it has ended.
    # One that was ignored from the start stays so, as with nohup.
    heeded = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, server.stop_on_signal) for number in heeded}
    try:
        asyncio.run(server.serve(sockets=[listener.socket]))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        listener.socket.close()


class _Server(uvicorn.Server):
    """Says when it is ready, and ends at any of the signals."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then say so."""
        await super().startup(sockets)
        self._ready()

    def stop_on_signal(self, _number: int, _frame: object) -> None:
        """What a signal does."""
        self.should_exit = True


class _ConnectionGuardProtocol(H11Protocol):
    """HTTP/1.1 that closes a connection which does not tell its request in time.

    Strangers are those on which no request was let in yet; of too many the oldest goes.
    """

    _request_timer: asyncio.TimerHandle | None = None
    _since = 0.0
    _is_unauthenticated = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app_state = {**self.app_state, ADMITTED_KEY: self._mark_authenticated}
        self._since = self.loop.time()
        self._request_timer = self.loop.call_later(HEAD_S, self._close_late_connection)
        others = (
            connection
            for connection in self.connections
            if isinstance(connection, _ConnectionGuardProtocol)
        )
        strangers = [connection for connection in others if connection._is_unauthenticated]
        if len(strangers) > UNAUTHENTICATED_CONNECTIONS_MAX:
            oldest = min(strangers, key=lambda connection: connection._since)
            self.connections.discard(oldest)  # counted no more, although it ends a moment later
            oldest.transport.abort()

    def _mark_authenticated(self) -> None:
        self._is_unauthenticated = False

    def data_received(self, data: bytes) -> None:
        asked = self.cycle
        super().data_received(data)
        if self.cycle is not asked:
            self._cancel_request_timer()
        elif self._request_timer is None and (asked is None or asked.response_complete):
            self._request_timer = self.loop.call_later(HEAD_S, self._close_late_connection)

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_request_timer()
        super().connection_lost(exc)

    def _cancel_request_timer(self) -> None:
        if self._request_timer is not None:
            self._request_timer.cancel()
            self._request_timer = None

    def _close_late_connection(self) -> None:
        self._request_timer = None
        self.transport.close()


def _cannot_listen_error(error: OSError, host: str, port: int) -> UsageError:
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
