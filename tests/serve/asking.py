"""The pages asked without a network: the application itself, in one loop for each question."""

from __future__ import annotations

import asyncio
import gzip
import sys
import time
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iolab.registry import report_kinds
from iolab.serve.app import ServerContext, create_app
from iolab.serve.pages import with_report_navigation
from iolab.serve.reports import ReportCache
from iolab.serve.server import AccessPolicy
from iolab.serve.sessions import SessionLibrary

HOST = {"host": "localhost:8000"}
OPEN = AccessPolicy(frozenset({"localhost"}), allows_ip_addresses=False, token=None)
TOKEN = "correct-horse-battery"
CLOSED = AccessPolicy(frozenset({"localhost"}), allows_ip_addresses=True, token=TOKEN)
REPORT = '<body>\\n<div class="page">\\n<h1>of {}</h1>'
WRITES = f"import sys; s, p = sys.argv[1:3]; open(p, 'w').write('{REPORT}'.format(s))"


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        packed = self.headers.get("content-encoding") == "gzip"
        return (gzip.decompress(self.body) if packed else self.body).decode()


@dataclass
class Site:
    """The pages of a directory; `told` has what the server would print."""

    root: Path
    terms: AccessPolicy = OPEN
    script: str = WRITES
    wait_s: float = 30.0
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.library = SessionLibrary(self.root.resolve(), time.monotonic, report_kinds())

    def report_command(self, session: Path, path: Path) -> Sequence[str]:
        return (sys.executable, "-c", self.script, str(session), str(path))

    def get(
        self, path: str, headers: Mapping[str, str] | None = None, method: str = "GET"
    ) -> Answer:
        return self.ask([path], headers, method)[0]

    def ask(
        self, paths: Sequence[str], headers: Mapping[str, str] | None = None, method: str = "GET"
    ) -> list[Answer]:
        """The answers to questions asked one after the other of one server."""

        async def every() -> list[Answer]:
            reports = ReportCache(self.report_command, with_report_navigation, wait_s=self.wait_s)
            app = create_app(
                ServerContext(self.library, reports, "DIR", report_kinds()),
                self.terms,
                self.told.append,
            )
            try:
                return [await asked(app, path, headers or {}, method) for path in paths]
            finally:
                await reports.close()

        return asyncio.run(every())

    def id_of(self, name: str) -> str:
        """The id of the session at that place."""
        return next(
            line.folder.id
            for line in self.library.list_sessions().lines
            if line.folder.name == name
        )


async def asked(app: Any, path: str, headers: Mapping[str, str], method: str = "GET") -> Answer:
    """One question to an ASGI application."""
    bare, _, query = path.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": bare,
        "raw_path": bare.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [
            (name.lower().encode(), value.encode("latin-1"))
            for name, value in {**HOST, **headers}.items()
        ],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8000),
    }
    said: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        said.append(message)

    await app(scope, receive, send)
    start = said[0]
    return Answer(
        start["status"],
        {name.decode().lower(): value.decode() for name, value in start["headers"]},
        b"".join(one.get("body", b"") for one in said[1:]),
    )
