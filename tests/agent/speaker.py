"""One agent under test: frames written and read by plain code that shares none with the product."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

PATIENCE_S: Final = 20.0
FINAL: Final = {
    "clock", "facts", "done", "exited", "probed", "scratch", "extents", "evicted", "measured",
    "device", "filesystem", "ledger", "purged", "use", "closed", "trace", "leftovers", "drives",
    "resolved", "stepped",
    "error",
}  # fmt: skip


@dataclass(frozen=True)
class Said:
    """One message: its header and payload."""

    header: dict[str, Any]
    payload: bytes

    @property
    def is_(self) -> str:
        return str(self.header["is"])

    def __getitem__(self, key: str) -> Any:
        return self.header[key]


class Agent:
    """A running agent; use it as a context, at whose end its input is closed."""

    def __init__(self, program: Path, *prefix: str, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self.process = subprocess.Popen(
            [*prefix, program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._said: queue.Queue[Said | None] = queue.Queue()
        self._kept: dict[int, list[Said]] = {}
        self._next_id = 0
        threading.Thread(target=self._listen, daemon=True).start()
        self.hello = self._take(0)

    def __enter__(self) -> Agent:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, header: dict[str, Any], payload: bytes = b"") -> None:
        text = json.dumps(header).encode()
        self.send_raw(struct.pack("<II", len(text), len(payload)) + text + payload)

    def send_raw(self, frame: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(frame)
        self.process.stdin.flush()

    def begin(self, verb: str, payload: bytes = b"", **arguments: Any) -> int:
        self._next_id += 1
        self.send({"id": self._next_id, "do": verb, **arguments}, payload)
        return self._next_id

    def next(self, id_: int) -> Said:
        return self._take(id_)

    def rest(self, id_: int) -> list[Said]:
        """All messages of a request from here to its final one."""
        said = [self._take(id_)]
        while said[-1].is_ not in FINAL:
            said.append(self._take(id_))
        return said

    def ask(self, verb: str, payload: bytes = b"", **arguments: Any) -> Said:
        """The final message of a request."""
        return self.rest(self.begin(verb, payload, **arguments))[-1]

    def run(self, *argv: str, payload: bytes = b"", **arguments: Any) -> list[Said]:
        return self.rest(self.begin("run", payload, argv=argv, **arguments))

    def close(self) -> int:
        """Close the agent's input and wait for its end."""
        with contextlib.suppress(BrokenPipeError):
            assert self.process.stdin
            self.process.stdin.close()
        return self.process.wait(PATIENCE_S)

    def errors(self) -> str:
        assert self.process.stderr
        return self.process.stderr.read().decode()

    def _take(self, id_: int) -> Said:
        while not self._kept.get(id_):
            said = self._said.get(timeout=self._patience_s)
            if said is None:
                raise EOFError(f"the agent ended before it answered {id_}")
            self._kept.setdefault(int(said["id"]), []).append(said)
        return self._kept[id_].pop(0)

    def _listen(self) -> None:
        assert self.process.stdout
        while len(lengths := self.process.stdout.read(8)) == 8:
            header, payload = struct.unpack("<II", lengths)
            text = self.process.stdout.read(header)
            self._said.put(Said(json.loads(text), self.process.stdout.read(payload)))
        self._said.put(None)


class SocketServer:
    """A Unix socket that listens; use it as a context."""

    def __init__(self, path: Path) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.settimeout(PATIENCE_S)
        # An address has room for 107 bytes; a test's folder may be deeper.
        folder = os.open(path.parent, os.O_PATH)
        self._listener.bind(f"/proc/self/fd/{folder}/{path.name}")
        os.close(folder)
        self._listener.listen()
        self._peers: list[socket.socket] = []

    def peer(self) -> socket.socket:
        """The next that connects."""
        peer, _ = self._listener.accept()
        peer.settimeout(PATIENCE_S)
        self._peers.append(peer)
        return peer

    def __enter__(self) -> SocketServer:
        return self

    def __exit__(self, *_: object) -> None:
        for one in [self._listener, *self._peers]:
            one.close()


def output(said: list[Said], stream: str = "stdout") -> bytes:
    return b"".join(m.payload for m in said if m.is_ == "output" and m["stream"] == stream)


def pids_marked(mark: str) -> list[int]:
    """Processes with this text in their command line."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            with contextlib.suppress(OSError):
                if mark.encode() in (folder / "cmdline").read_bytes():
                    found.append(int(folder.name))
    return found


def until(holds: Callable[[], bool], patience_s: float = PATIENCE_S) -> bool:
    """Wait for a condition that another process brings about."""
    return any(holds() for _ in _ticks(patience_s))


def _ticks(patience_s: float) -> Iterator[None]:
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        yield
        time.sleep(0.01)
    yield


def children_of(pid: int) -> list[int]:
    children: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        # A thread may end meanwhile.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            children += map(int, (task / "children").read_text().split())
    return children
