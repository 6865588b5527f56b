"""A small object store in memory, with faults on demand; it computes signatures by its own code."""

from __future__ import annotations

import datetime
import hashlib
import hmac
import itertools
import re
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from xml.sax.saxutils import escape

from tests.needs import require

ACCESS_KEY = "IOLABTESTKEY"
SECRET_KEY = "iolab/test+secret"
BUCKET = "bucket"
REGION = "us-east-1"
DRIP_S = 1.5
"""The second half of a body comes so much later."""

SIGNED = re.compile(
    r"Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, ?SignedHeaders=([^,]+), ?Signature=(\w+)"
)


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for this host and a bucket of it that is its own authority, and its key."""
    require("openssl")
    files = (folder / "certificate.pem", folder / "key.pem")
    names = f"subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:{BUCKET}.localhost"
    command: list[str | Path] = [
        *("openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-days", "2", "-subj", "/CN=iolab"),
        *("-pkeyopt", "ec_paramgen_curve:prime256v1", "-addext", names),
        *("-addext", "basicConstraints=critical,CA:FALSE", "-out", files[0], "-keyout", files[1]),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return files


class Cut(Exception):
    """The connection is closed at once."""


@dataclass
class Request:
    """What a rule sees of a request: how many there were of its kind before, and its object."""

    method: str
    nth: int
    key: str


@dataclass
class ObjectServer:
    """Objects, uploads, and what every request of the clients was."""

    objects: dict[str, bytes] = field(default_factory=dict)
    uploads: dict[str, tuple[str, dict[int, bytes]]] = field(default_factory=dict)
    buckets: set[str] = field(default_factory=lambda: {BUCKET})
    requests: list[tuple[str, str, int]] = field(default_factory=list)
    rule: Callable[[Request], str | None] = lambda _request: None
    clock_offset_s: float = 0.0
    checks_signatures: bool = True
    keeps_alive: bool = True
    connections: int = 0
    tls: tuple[Path, Path] | None = None
    is_virtual_hosted: bool = False
    sends_at_once: bool = True
    """Without it headers go in two parts, and the second waits for an acknowledgement."""

    forgets_every: int = 0
    """So many-th objects put by runs are acknowledged and forgotten."""

    host: str = "127.0.0.1"

    def __post_init__(self) -> None:
        self.lock = threading.Lock()
        self.counts: dict[str, itertools.count[int]] = {}
        self.upload_numbers = itertools.count(1)
        self.run_puts = itertools.count()
        owner = self

        class Handler(_Handler):
            server_state = owner
            protocol_version = "HTTP/1.1"

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def get_request(self) -> tuple[socket.socket, object]:
                connection, address = super().get_request()
                if owner.sends_at_once:
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                owner.connections += 1
                if context is not None:
                    connection = context.wrap_socket(
                        connection, server_side=True, do_handshake_on_connect=False
                    )
                return connection, address

            def handle_error(self, request: object, client_address: object) -> None:
                """Clients that go are no news."""

        context = None
        if self.tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.tls)
        self.server = Server(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> ObjectServer:
        self.thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    @property
    def url(self) -> str:
        return f"http{'s' if self.tls else ''}://{self.host}:{self.server.server_address[1]}"

    def forgets(self, key: str) -> bool:
        """Whether the store acknowledges that object and does not keep it."""
        if not self.forgets_every or "/run-" not in key:
            return False
        return next(self.run_puts) % self.forgets_every == self.forgets_every - 1

    def count(self, kind: str) -> int:
        with self.lock:
            return next(self.counts.setdefault(kind, itertools.count()))

    def puts_below(self, prefix: str) -> int:
        """How many objects were put whose keys have that in them."""
        return sum(
            prefix in key and method == "PUT" and status == 200
            for method, key, status in self.requests
        )

    def methods(self, method: str) -> list[int]:
        """The statuses of all requests of a method."""
        return [status for own, _, status in self.requests if own == method]


def on_every(count: int, effect: str) -> Callable[[Request], str | None]:
    """The effect on the last of every so many GETs of objects."""

    def rule(request: Request) -> str | None:
        is_get = request.method == "GET" and request.key
        return effect if is_get and request.nth % count == count - 1 else None

    return rule


class _Handler(BaseHTTPRequestHandler):
    server_state: ObjectServer
    wbufsize = 1 << 16

    def log_message(self, *_arguments: object) -> None:
        """Not to standard error."""

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except (Cut, ConnectionError, ssl.SSLError):
            self.close_connection = True

    def do_GET(self) -> None:
        self._answer()

    do_PUT = do_POST = do_DELETE = do_HEAD = do_GET  # noqa: N815

    def _answer(self) -> None:
        state = self.server_state
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        parts = urlsplit(self.path)
        if state.is_virtual_hosted:
            bucket, rest = self.headers["host"].partition(".")[0], [parts.path[1:]]
        else:
            _, bucket, *rest = parts.path.split("/", 2)
        self.key = unquote(rest[0]) if rest else ""
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        kind = self.command if self.key else f"{self.command} bucket"
        effect = state.rule(Request(self.command, state.count(kind), self.key)) or ""
        if effect == "cut":
            raise Cut
        if effect == "slow":
            time.sleep(0.4)
        if refusal := re.fullmatch(r"(\d{3}) (\w+)", effect):
            return self._error(int(refusal[1]), refusal[2], "As the test wants it.")
        if effect.isdigit():
            code = {"503": "SlowDown", "500": "InternalError"}.get(effect, "Other")
            return self._error(int(effect), code, "As the test wants it.")
        if fault := self._signature_fault(parts.path, parts.query, body):
            return self._error(403, fault, f"The key {ACCESS_KEY} is refused.")
        if bucket not in state.buckets:
            if self.command == "PUT" and not self.key:
                state.buckets.add(bucket)
                return self._send(200, b"")
            return self._error(404, "NoSuchBucket", "There is no such bucket.")
        if self.headers.get("content-encoding") == "aws-chunked":
            body = _without_chunks(body)
            assert len(body) == int(self.headers["x-amz-decoded-content-length"])
        with state.lock:
            act = self._upload if {"uploads", "uploadId"} & query.keys() else self._object
            status, answer, headers = act(query, body, effect)
        self._send(status, answer, headers, effect)
        return None

    def _upload(
        self, query: dict[str, str], body: bytes, effect: str
    ) -> tuple[int, bytes, dict[str, str]]:
        state = self.server_state
        if self.command == "GET":
            found = "".join(
                f"<Upload><Key>{escape(key)}</Key><UploadId>{name}</UploadId></Upload>"
                for name, (key, _) in state.uploads.items()
                if key.startswith(query.get("prefix", ""))
            )
            return (
                200,
                f"<ListMultipartUploadsResult>{found}</ListMultipartUploadsResult>".encode(),
                {},
            )
        if "uploads" in query:
            name = f"upload+{next(state.upload_numbers)}/x="
            state.uploads[name] = (self.key, {})
            return 200, f"<R><UploadId>{name}</UploadId></R>".encode(), {}
        name = query["uploadId"]
        if name not in state.uploads:
            return 404, _error_text("NoSuchUpload", "It is gone."), {}
        parts = state.uploads[name][1]
        if self.command == "PUT":
            parts[int(query["partNumber"])] = body
            return 200, b"", {"ETag": _tag(body)}
        if self.command == "DELETE":
            del state.uploads[name]
            return 204, b"", {}
        if effect == "late error":
            return 200, b"\n\n" + _error_text("InternalError", "It came late."), {}
        told = re.findall(r"<PartNumber>(\d+)</PartNumber><ETag>([^<]+)</ETag>", body.decode())
        assert told == [(str(number), _tag(parts[number])) for number in sorted(parts)]
        state.objects[self.key] = b"".join(parts[number] for number in sorted(parts))
        del state.uploads[name]
        return 200, b"<CompleteMultipartUploadResult/>", {}

    def _object(
        self, query: dict[str, str], body: bytes, effect: str
    ) -> tuple[int, bytes, dict[str, str]]:
        state = self.server_state
        if not self.key:
            return self._bucket(query)
        if self.command == "PUT":
            if not state.forgets(self.key):
                state.objects[self.key] = body
            return 200, b"", {"ETag": _tag(body)}
        if self.command == "DELETE":
            state.objects.pop(self.key, None)
            return 204, b"", {}
        if self.key not in state.objects:
            return 404, _error_text("NoSuchKey", "There is no such object."), {}
        whole = state.objects[self.key]
        if effect == "wrong bytes":
            whole = whole[:-1] + bytes([whole[-1] ^ 1])
        if span := re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("range") or ""):
            first, last = int(span[1]), int(span[2])
            return (
                206,
                whole[first : last + 1],
                {"Content-Range": f"bytes {first}-{last}/{len(whole)}"},
            )
        return 200, whole, {"ETag": _tag(whole)}

    def _bucket(self, query: dict[str, str]) -> tuple[int, bytes, dict[str, str]]:
        if self.command != "GET":
            return 200, b"", {}
        state, prefix = self.server_state, query.get("prefix", "")
        after = max(query.get("continuation-token", ""), query.get("start-after", ""))
        keys = sorted(key for key in state.objects if key.startswith(prefix) and key > after)
        if delimiter := query.get("delimiter"):
            ends = {key[: key.find(delimiter, len(prefix)) + 1] for key in keys}
            found = "".join(
                f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>"
                for one in sorted(ends)
            )
            return 200, f"<ListBucketResult>{found}</ListBucketResult>".encode(), {}
        page = keys[: int(query.get("max-keys", 1000))]
        rows = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(state.objects[key])}</Size></Contents>"
            for key in page
        )
        more = len(page) < len(keys)
        token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
        truncated = f"<IsTruncated>{str(more).lower()}</IsTruncated>"
        return 200, f"<ListBucketResult>{truncated}{rows}{token}</ListBucketResult>".encode(), {}

    def _error(self, status: int, code: str, message: str) -> None:
        self._send(status, _error_text(code, message))

    def _send(
        self, status: int, body: bytes, headers: dict[str, str] | None = None, effect: str = ""
    ) -> None:
        self.server_state.requests.append((self.command, self.key, status))
        now = datetime.datetime.now(datetime.UTC)
        now += datetime.timedelta(seconds=self.server_state.clock_offset_s)
        self.send_response_only(status)
        if not self.server_state.sends_at_once:
            self.flush_headers()
            self.wfile.flush()
        self.send_header("Date", format_datetime(now, usegmt=True))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if not self.server_state.keeps_alive:
            self.close_connection = True
            self.send_header("Connection", "close")
        if effect == "chunked":
            self.send_header("Transfer-Encoding", "chunked")
            body = b"".join(
                b"%x\r\n%s\r\n" % (len(piece), piece)
                for piece in (body[:7], body[7:], b"")
                if piece or not body[7:] or piece == b""
            )
        elif status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if effect in ("short", "drip"):
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            if effect == "short":
                raise Cut
            time.sleep(DRIP_S)
            body = body[len(body) // 2 :]
        if self.command != "HEAD" and status != 204:
            self.wfile.write(body)

    def _signature_fault(self, path: str, query: str, body: bytes) -> str | None:
        if not self.server_state.checks_signatures:
            return None
        found = SIGNED.search(self.headers.get("authorization") or "")
        if found is None:
            return "AccessDenied"
        access_key, day, region, names, signature = found.groups()
        if access_key != ACCESS_KEY:
            return "InvalidAccessKeyId"
        payload = self.headers["x-amz-content-sha256"]
        if payload not in ("UNSIGNED-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"):
            assert payload == hashlib.sha256(body).hexdigest()
        pairs = sorted(parse_qsl(query, keep_blank_values=True))
        canonical_query = "&".join(
            f"{quote(k, safe='-_.~')}={quote(v, safe='-_.~')}" for k, v in pairs
        )
        headers = "".join(f"{name}:{self.headers[name].strip()}\n" for name in names.split(";"))
        assert {"host", "x-amz-content-sha256", "x-amz-date"} <= set(names.split(";"))
        request = "\n".join((self.command, path, canonical_query, headers, names, payload))
        date = self.headers["x-amz-date"]
        scope = f"{day}/{region}/s3/aws4_request"
        digest = hashlib.sha256(request.encode()).hexdigest()
        key = _signing_key(day, region)
        own = _hmac(key, f"AWS4-HMAC-SHA256\n{date}\n{scope}\n{digest}").hex()
        if own != signature:
            return "SignatureDoesNotMatch"
        if payload.startswith("STREAMING"):
            _check_chunks(body, key, date, scope, signature)
        return None


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def _signing_key(day: str, region: str) -> bytes:
    key = f"AWS4{SECRET_KEY}".encode()
    for part in (day, region, "s3", "aws4_request"):
        key = _hmac(key, part)
    return key


def _chunks(body: bytes) -> list[tuple[str, bytes]]:
    chunks, at = [], 0
    while at < len(body):
        end = body.index(b"\r\n", at)
        size, signature = body[at:end].split(b";chunk-signature=")
        start, length = end + 2, int(size, 16)
        chunks.append((signature.decode(), body[start : start + length]))
        assert body[start + length : start + length + 2] == b"\r\n"
        at = start + length + 2
    return chunks


def _without_chunks(body: bytes) -> bytes:
    return b"".join(chunk for _, chunk in _chunks(body))


def _check_chunks(body: bytes, key: bytes, date: str, scope: str, signature: str) -> None:
    empty = hashlib.sha256(b"").hexdigest()
    chunks = _chunks(body)
    assert chunks[-1][1] == b""
    for own, chunk in chunks:
        digest = hashlib.sha256(chunk).hexdigest()
        text = f"AWS4-HMAC-SHA256-PAYLOAD\n{date}\n{scope}\n{signature}\n{empty}\n{digest}"
        signature = _hmac(key, text).hex()
        assert own == signature


def _tag(body: bytes) -> str:
    return f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'


def _error_text(code: str, message: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()
