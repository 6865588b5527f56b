"""`iolab serve` as a process, asked over the network as a browser or a stranger asks."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from tests.cli.command_line import LIMIT_S, command, environment


@dataclass
class Serving:
    """A server that answers: its process, and where it said it is."""

    process: subprocess.Popen[str]
    address: str

    @property
    def port(self) -> int:
        port = urlsplit(self.address).port
        assert port is not None
        return port

    def ask(self, path: str, headers: Mapping[str, str] | None = None) -> tuple[int, str]:
        """The status and the text of an answer."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)
        try:
            connection.request("GET", path, headers=dict(headers or {}))
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def raw(self, sent: bytes, timeout_s: float = LIMIT_S) -> bytes:
        """All that comes back until the server closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout_s) as stranger:
            stranger.sendall(sent)
            parts = []
            while part := stranger.recv(65536):
                parts.append(part)
            return b"".join(parts)

    def stop(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """End it by a signal; its exit code and what else it said."""
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, said


@contextmanager
def serving(
    root: Path, *options: str | Path, env: Mapping[str, str] | None = None
) -> Iterator[Serving]:
    """A server of that directory, ready to answer; asked to end at the end, then killed."""
    process = subprocess.Popen(
        command("serve", root, *options),
        env=environment(env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        if not address:
            raise AssertionError(process.communicate(timeout=LIMIT_S)[1])
        yield Serving(process, address)
    finally:
        process.terminate()
        try:
            process.communicate(timeout=LIMIT_S)
        finally:
            process.kill()
