"""A server of objects over HTTP, in memory, with faults that a test plants.

It answers what S3 does as far as iolab asks for it; who signs is looked at, the signature is not.
"""

from __future__ import annotations

import hashlib
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Final
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

BUCKET: Final = "tests"
ACCESS_KEY: Final = "AKIDOFTESTS"


class Plant(StrEnum):
    """What the server does wrong to every fourth GET of an object."""

    NONE = "none"
    SLOW_DOWN = "slow-down"
    SHORT_BODY = "short-body"
    WRONG_CONTENT = "wrong-content"
    CUT = "cut"
    ERROR_AS_200 = "error-as-200"
    DRIP = "drip"


class ObjectServer(ThreadingHTTPServer):
    """`objects` by key; `requests` counts those of each method, `plant` is its fault."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, plant: Plant = Plant.NONE, *, clock_s: float = 0.0) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.plant = plant
        self.clock_s = clock_s
        self.objects: dict[str, bytes] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.requests: dict[str, int] = {}
        self.connections = 0
        self.closes_connections = False
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        """Its endpoint."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def process_request(self, request: Any, client_address: Any) -> None:
        """A connection; answers go out at once."""
        self.connections += 1
        request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().process_request(request, client_address)


@contextmanager
def serve_objects(plant: Plant = Plant.NONE, *, clock_s: float = 0.0) -> Iterator[ObjectServer]:
    """Such a server while what is inside lasts."""
    server = ObjectServer(plant, clock_s=clock_s)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize: ClassVar[int] = -1
    server: ObjectServer

    def log_message(self, *_: object) -> None:
        """Nothing: the test counts requests itself."""

    def date_time_string(self, timestamp: float | None = None) -> str:
        """The time by its clock, which may be wrong."""
        now = time.time() if timestamp is None else timestamp
        return formatdate(now + self.server.clock_s, usegmt=True)

    def handle_any(self) -> None:
        """One request."""
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        parts = urlsplit(self.path)
        query = parse_qs(parts.query, keep_blank_values=True)
        bucket, _, key = unquote(parts.path.lstrip("/")).partition("/")
        with self.server.lock:
            self.server.requests[self.command] = self.server.requests.get(self.command, 0) + 1
            number = self.server.requests[self.command]
        if self.server.closes_connections:
            self.close_connection = True
        if ACCESS_KEY not in (self.headers.get("Authorization") or ""):
            self.refuse(403, "InvalidAccessKeyId")
        elif bucket != BUCKET:
            self.refuse(404, "NoSuchBucket")
        elif key:
            self.on_object(key, query, body, number)
        else:
            self.on_bucket(query, body)

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = handle_any  # noqa: N815

    def on_bucket(self, query: dict[str, list[str]], body: bytes) -> None:
        """Lists, and removals of many objects."""
        server = self.server
        if self.command == "POST" and "delete" in query:
            keys = re.findall(rb"<Key>(.*?)</Key>", body)
            with server.lock:
                for key in keys:
                    server.objects.pop(key.decode(), None)
            return self.answer(200, b"<DeleteResult></DeleteResult>")
        if self.command == "GET" and "uploads" in query:
            return self.answer(
                200,
                b"<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>"
                b"</ListMultipartUploadsResult>",
            )
        if self.command == "GET":
            return self.answer(200, self.listed(query).encode())
        return self.answer(200)

    def listed(self, query: dict[str, list[str]]) -> str:
        """A page of keys, or of what they begin with up to the delimiter."""
        prefix = query.get("prefix", [""])[0]
        after = query.get("continuation-token", query.get("start-after", [""]))[0]
        delimiter = query.get("delimiter", [""])[0]
        most = int(query.get("max-keys", ["1000"])[0])
        with self.server.lock:
            sizes = {key: len(content) for key, content in self.server.objects.items()}
        keys = sorted(key for key in sizes if key.startswith(prefix) and key > after)
        rows: dict[str, str] = {}
        for key in keys:
            head, found, _ = key[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
            if found:
                whole = escape(f"{prefix}{head}{delimiter}")
                rows[whole] = f"<CommonPrefixes><Prefix>{whole}</Prefix></CommonPrefixes>"
            else:
                rows[key] = (
                    f"<Contents><Key>{escape(key)}</Key><Size>{sizes[key]}</Size></Contents>"
                )
        shown = list(rows)[:most]
        more = len(rows) > len(shown)
        token = (
            f"<NextContinuationToken>{escape(shown[-1])}</NextContinuationToken>" if more else ""
        )
        return (
            f"<ListBucketResult><IsTruncated>{str(more).lower()}</IsTruncated>{token}"
            f"<KeyCount>{len(shown)}</KeyCount>{''.join(rows[key] for key in shown)}"
            "</ListBucketResult>"
        )

    def on_object(self, key: str, query: dict[str, list[str]], body: bytes, number: int) -> None:
        """One object, or a part of one that is put."""
        server = self.server
        upload = query.get("uploadId", [""])[0]
        if self.command == "POST" and "uploads" in query:
            name = hashlib.sha256(f"{key}{number}".encode()).hexdigest()[:16]
            server.uploads[name] = {}
            return self.answer(200, f"<R><UploadId>{name}</UploadId></R>".encode())
        if self.command == "PUT" and upload:
            server.uploads[upload][int(query["partNumber"][0])] = body
            return self.answer(200, etag=hashlib.sha256(body).hexdigest()[:32])
        if self.command == "POST" and upload:
            parts = server.uploads.pop(upload)
            server.objects[key] = b"".join(parts[place] for place in sorted(parts))
            return self.answer(
                200, b"<CompleteMultipartUploadResult></CompleteMultipartUploadResult>"
            )
        if self.command == "DELETE" and upload:
            server.uploads.pop(upload, None)
            return self.answer(204)
        if self.command == "PUT":
            with server.lock:
                server.objects[key] = body
            return self.answer(200, etag=hashlib.sha256(body).hexdigest()[:32])
        if self.command == "DELETE":
            with server.lock:
                server.objects.pop(key, None)
            return self.answer(204)
        content = server.objects.get(key)
        if content is None:
            return self.refuse(404, "NoSuchKey")
        if self.command == "HEAD":
            return self.answer(200, content, head=True)
        return self.send_object(content, planted=number % 4 == 0)

    def send_object(self, content: bytes, *, planted: bool) -> None:
        """The contents of an object, or what a fault makes of them."""
        plant = self.server.plant if planted else Plant.NONE
        code = 200
        if asked := re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range") or ""):
            content, code = content[int(asked[1]) : int(asked[2]) + 1], 206
        match plant:
            case Plant.SLOW_DOWN:
                return self.refuse(503, "SlowDown")
            case Plant.CUT:
                self.close_connection = True
                self.connection.close()
                return None
            case Plant.ERROR_AS_200:
                return self.answer(200, b"<Error><Code>InternalError</Code></Error>")
            case Plant.WRONG_CONTENT:
                return self.answer(code, bytes(byte ^ 1 for byte in content))
            case Plant.SHORT_BODY | Plant.DRIP:
                self.send_response(code)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content[: len(content) // 2])
                self.wfile.flush()
                if plant is Plant.DRIP:
                    time.sleep(DRIP_S)
                    self.wfile.write(content[len(content) // 2 :])
                else:
                    self.close_connection = True
                return None
            case _:
                return self.answer(code, content)

    def refuse(self, code: int, name: str) -> None:
        """An error as S3 tells it."""
        self.answer(
            code, f"<Error><Code>{name}</Code><Message>As planted.</Message></Error>".encode()
        )

    def answer(
        self, code: int, content: bytes = b"", *, etag: str = "", head: bool = False
    ) -> None:
        """Status, headers, and contents unless these were not asked for."""
        self.send_response(code)
        if code != 204:
            self.send_header("Content-Length", str(len(content)))
        if etag:
            self.send_header("ETag", f'"{etag}"')
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if not head and self.command != "HEAD":
            self.wfile.write(content)


DRIP_S: Final = 1.5
"""The second half of a body comes so much later."""
