"""A fake node that boots fake guests: QEMU as it is seen from outside, and agents inside of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from tests.fakes.agent import FakeAgent, FakeRefusal, FakeRequest
from tests.fakes.process import comes_within, exited
from tests.fakes.script import FakeGuest, FakeScript

QEMU: Final = "qemu-system-x86_64"
POLL_S: Final = 0.02

Say = Callable[[bytes], None]


class FakeNodeAgent(FakeAgent):
    """The agent of a node: all that a host's can do, and guests. `booted` are their boots."""

    def __init__(self, script: FakeScript, say: Say, break_off: Callable[[], None]) -> None:
        super().__init__(script, say, break_off)
        self.booted: list[FakeQemu] = []
        self.sockets: dict[str, FakeSocket] = {}
        self._lines: dict[int, FakeSocket] = {}
        self._waiting: set[int] = set()

    def lease_ends(self) -> None:
        """Guests end with their node."""
        for qemu in self.booted:
            qemu.over.set()
            qemu.agent.lease_ends()
        super().lease_ends()

    async def _run(self, request: FakeRequest) -> dict[str, Any]:
        argv = request.arguments["argv"]
        if QEMU not in argv or self.script.guests is None:
            return await super()._run(request)
        name = argv[argv.index("-name") + 1].removeprefix("guest=").partition(",")[0]
        number = 1 + sum(qemu.name == name for qemu in self.booted)
        qemu = FakeQemu(name, self.script.guests(name, number), tuple(argv))
        self.booted.append(qemu)
        self.processes[request.id] = qemu
        folder = request.arguments["cwd"]
        ends = {f"{folder}/{name}.agent": qemu.channel, f"{folder}/{name}.qmp": qemu.monitor}
        self.sockets |= ends
        self.tell(request.id, {"is": "started", "pid": 79, "real_ns": self.real_ns()})
        try:
            code, signal = await qemu.live(lambda piece: self._print(request.id, piece))
        finally:
            self.processes.pop(request.id, None)
            for path in ends:
                self.sockets.pop(path, None)
        return exited(code, signal, self.real_ns())

    def _print(self, request_id: int, piece: bytes) -> None:
        self.tell(request_id, {"is": "output", "stream": "stdout"}, piece)

    async def _connect(self, request: FakeRequest) -> dict[str, Any]:
        asked = request.arguments
        path, waited_s = f"{asked['dir']}/{asked['name']}", 0.0
        self._waiting.add(request.id)
        while path not in self.sockets and waited_s < asked["wait_s"]:
            await asyncio.sleep(POLL_S)
            waited_s += POLL_S
            if request.id not in self._waiting:
                return {"is": "closed"}
        self._waiting.discard(request.id)
        socket = self.sockets.get(path)
        if asked["dir"] not in self.folders or socket is None:
            raise FakeRefusal("ENOENT", f"there is no socket {path}")
        self._lines[request.id] = socket
        self.tell(request.id, {"is": "connected"})
        socket.open(lambda piece: self.tell(request.id, {"is": "received"}, piece))
        try:
            await socket.ended.wait()
        finally:
            del self._lines[request.id]
        return {"is": "closed"}

    async def _send(self, request: FakeRequest) -> dict[str, Any]:
        self._line(request).hear(request.content)
        return {"is": "done"}

    async def _disconnect(self, request: FakeRequest) -> dict[str, Any]:
        if (number := request.arguments["connection"]) in self._waiting:
            self._waiting.discard(number)
        else:
            self._line(request).close()
        return {"is": "done"}

    async def _use(self, request: FakeRequest) -> dict[str, Any]:
        if request.arguments["run"] not in self.processes:
            raise FakeRefusal("bad-request", "no such run is under way")
        lived_ns = self._mono_ns()
        times = {"run_ns": lived_ns // 2, "wait_ns": lived_ns // 10}
        vcpus = {"vcpu_run_ns": lived_ns // 4, "vcpu_wait_ns": lived_ns // 20}
        process = {"user_ns": lived_ns // 4, "system_ns": lived_ns // 4}
        return {"is": "use", "real_ns": self.real_ns(), **times, **vcpus, **process}

    def _line(self, request: FakeRequest) -> FakeSocket:
        number = request.arguments["connection"]
        if number not in self._lines:
            raise FakeRefusal("bad-request", f"no connection with id {number} is open")
        return self._lines[number]

    _verbs: ClassVar = {
        **FakeAgent._verbs,
        "run": _run,
        "connect": _connect,
        "send": _send,
        "disconnect": _disconnect,
        "use": _use,
    }


@dataclass(slots=True)
class FakeSocket:
    """One end of a socket: `heard` takes what comes, `closed` is called when the other end goes."""

    heard: Say
    closed: Callable[[], None]
    greet: Callable[[], None]
    ended: asyncio.Event
    say: Say | None = None

    def open(self, say: Say) -> None:
        """Somebody connects."""
        self.say = say
        self.greet()

    def hear(self, piece: bytes) -> None:
        """Bytes of the other end."""
        self.heard(piece)

    def close(self) -> None:
        """The other end goes."""
        self.say = None
        self.ended.set()
        self.closed()

    def tell(self, piece: bytes) -> None:
        """Bytes for the other end; nobody's when there is none."""
        if self.say is not None:
            self.say(piece)


class FakeQemu:
    """One boot of a guest: its QEMU with its monitor, and the agent in it."""

    def __init__(self, name: str, guest: FakeGuest, argv: tuple[str, ...]) -> None:
        self.name = name
        self.argv = argv
        self.over = asyncio.Event()
        self.began_s = asyncio.get_running_loop().time()
        self.signal = ""
        self.ended_s: float | None = None
        self._guest = guest
        self._answered = 0
        script = guest.script or FakeScript()
        self.agent = FakeAgent(script, self._said, self._left)
        self.channel = FakeSocket(self._hear, self._left, lambda: None, asyncio.Event())
        self.monitor = FakeSocket(self._command, lambda: None, self._greet, asyncio.Event())

    def strike(self, signal: str) -> None:
        """A signal arrives: all of them end it."""
        self.signal = signal
        self.over.set()

    async def live(self, console: Say) -> tuple[int | None, str]:
        """From its start to its end; the exit code, or None and the signal's name."""
        guest = self._guest
        try:
            if not await comes_within(self.over, guest.boots_s):
                console(guest.console)
                await self._work()
                console(guest.last_words)
        finally:
            self.ended_s = asyncio.get_running_loop().time()
            self.agent.lease_ends()
            self.channel.ended.set()
            self.monitor.ended.set()
        return (None, self.signal) if self.signal else (guest.exit_code, "")

    async def _work(self) -> None:
        guest = self._guest
        if guest.ends:
            return
        if guest.garbage:
            self.channel.tell(guest.garbage)
        elif not guest.hangs:
            self.agent.greet()
        if guest.dies_at_s is None:
            await self.over.wait()
        else:
            await comes_within(self.over, guest.dies_at_s - guest.boots_s)

    def _left(self) -> None:
        if not (self._guest.stays or self._guest.hangs):
            self.over.set()

    def _said(self, frame: bytes) -> None:
        self.channel.tell(frame)

    def _hear(self, piece: bytes) -> None:
        self.agent.hear(piece)

    def _greet(self) -> None:
        if self._guest.monitor:
            self._answer({"QMP": {"version": {}, "capabilities": []}})

    def _command(self, piece: bytes) -> None:
        for line in piece.splitlines():
            self._answered += 1
            if self._guest.answers is not None and self._answered > self._guest.answers:
                self.monitor.close()
                return
            asked = json.loads(line)
            said: object = {}
            if asked["execute"] == "query-blockstats":
                said = [{"qdev": "data-disk", "stats": self._stats()}]
            self._answer({"return": said, "id": asked["id"]})

    def _answer(self, message: dict[str, object]) -> None:
        self.monitor.tell(json.dumps(message).encode() + b"\n")

    def _stats(self) -> dict[str, int]:
        disk = self.agent.disk
        return {
            "rd_operations": disk.read_ios,
            "wr_operations": disk.write_ios,
            "rd_bytes": disk.read_bytes,
            "wr_bytes": disk.write_bytes,
            "rd_total_time_ns": disk.read_ios * 100_000,
            "wr_total_time_ns": disk.write_ios * 100_000,
        }
