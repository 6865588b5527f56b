"""The gate before every page: who asks, for what, under which name; and what answers carry.

It lets GET and HEAD through, of requests that name this server as their host (a web page elsewhere
cannot make a browser read from it by pointing a name of its own here), and where a token is set
only of those that know it.
"""

from __future__ import annotations

import base64
import hmac
import ipaddress
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Final

from iolab.errors import IolabError
from iolab.serve.limits import HEADER_BYTES_MAX

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

NO_CONTENT: Final = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The policy of an answer that brings none of its own."""

_ALWAYS: Final = {
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}

_REALM: Final = 'Basic realm="iolab: any name, and the token as password", charset="UTF-8"'


@dataclass(frozen=True, slots=True)
class Terms:
    """Under which names the server may be asked, and the token, None where none is needed.

    `addresses` says that any IP address is a name of it, as where it listens on all of a machine's.
    """

    names: frozenset[str]
    addresses: bool
    token: str | None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not answered, with the headers that go with it."""

    status: int
    title: str
    text: str
    headers: tuple[tuple[str, str], ...] = ()


Refuse = Callable[[Refusal], tuple[bytes, Mapping[str, str]]]
"""Makes the page of a refusal, and the headers of its content."""


class Gate:
    """An ASGI application before another one; `tell` gets a line for each fault of ours."""

    def __init__(self, app: App, terms: Terms, refuse: Refuse, tell: Callable[[str], None]) -> None:
        self._app = app
        self._terms = terms
        self._refuse = refuse
        self._tell = tell

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass on the start and end of the server."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        started = False

        async def guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message = {**message, "headers": _with_ours(message.get("headers", ()))}
            await send(message)

        refusal = judge(scope["method"], _headers(scope), self._terms)
        if refusal is not None:
            await self._answer(refusal, scope, guarded)
            return
        try:
            await self._app(scope, receive, guarded)
        except Exception as error:
            self._tell(f"A page failed: {type(error).__name__}: {error}")
            if not started:
                await self._answer(_BROKEN, scope, guarded)

    async def _answer(self, refusal: Refusal, scope: Scope, send: Send) -> None:
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


def judge(method: str, headers: Mapping[str, list[str]], terms: Terms) -> Refusal | None:
    """Why a request must not be answered; None where it may be."""
    if method not in {"GET", "HEAD"}:
        return _METHOD
    if headers.get("transfer-encoding") or set(headers.get("content-length", ())) - {"0"}:
        return _BODY
    if sum(len(value) for every in headers.values() for value in every) > HEADER_BYTES_MAX:
        return _HEAD
    hosts = headers.get("host", [])
    if len(hosts) != 1 or not is_ours(hosts[0], terms):
        return _HOST
    if _is_foreign(headers):
        return _FOREIGN
    if terms.token is not None and not knows(headers.get("authorization", []), terms.token):
        return _TOKEN
    return None


def is_ours(host: str, terms: Terms) -> bool:
    """Whether a Host header names this server, at any port: it may be forwarded."""
    name = _name_of(host)
    if name is None:
        return False
    if name in terms.names:
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return address.is_loopback or terms.addresses


def knows(given: list[str], token: str) -> bool:
    """Whether the one Authorization header has the token: as Bearer, or as password of Basic."""
    if len(given) != 1:
        return False
    scheme, _, value = given[0].partition(" ")
    if scheme.lower() == "basic":
        try:
            decoded = base64.b64decode(value.strip(), validate=True).decode("utf-8", "replace")
        except ValueError:
            return False
        value = decoded.partition(":")[2]
    elif scheme.lower() != "bearer":
        return False
    return hmac.compare_digest(value.strip().encode("utf-8", "replace"), token.encode())


def _name_of(host: str) -> str | None:
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


def _is_foreign(headers: Mapping[str, list[str]]) -> bool:
    """Whether a page from elsewhere asks for this one as a part of itself."""
    if not {"cross-site", "same-site"} & set(headers.get("sec-fetch-site", ())):
        return False
    opened = headers.get("sec-fetch-mode") == ["navigate"]
    return not (opened and headers.get("sec-fetch-dest") == ["document"])


def _headers(scope: Scope) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


def _with_ours(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    given = {name.lower() for name, _ in headers}
    every = {**_ALWAYS, "content-security-policy": NO_CONTENT}
    ours = [(name.encode(), value.encode()) for name, value in every.items()]
    return [*headers, *(pair for pair in ours if pair[0] not in given)]


def refusal_of(error: IolabError, status: int) -> Refusal:
    """The refusal that tells an error of ours."""
    return Refusal(status, error.happened, error.do)


_METHOD: Final = Refusal(
    405, "Nothing can be changed here.", "Ask with GET or HEAD.", (("allow", "GET, HEAD"),)
)
_BODY: Final = Refusal(400, "A request here has no content.", "Ask without any.")
_HEAD: Final = Refusal(431, "The head of the request is too long.", "Ask with a shorter one.")
_HOST: Final = Refusal(
    421,
    "This server does not go by that name.",
    "Use the address that `iolab serve` printed, or serve with `--host` and the name.",
)
_FOREIGN: Final = Refusal(
    403, "A page from elsewhere asked for this one.", "Open it in a tab of its own."
)
_TOKEN: Final = Refusal(
    401,
    "The token is needed.",
    "Give any name, and as password the token that `iolab serve` printed.",
    (("www-authenticate", _REALM),),
)
_BROKEN: Final = Refusal(
    500, "This page could not be made.", "See what the server printed, and report it as a bug."
)
