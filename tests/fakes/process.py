"""One engine process on a fake host, second by second."""

from __future__ import annotations

import asyncio
from typing import Any, Final, Protocol

from tests.fakes.fio import TERMINATED, FakeJob, FakeLoad, document
from tests.fakes.machine import DiskUse

PIECE_BYTES: Final = 3000
"""Output comes in pieces that cut documents anywhere."""

SIGNALS: Final = {"INT": 2, "TERM": 15, "KILL": 9}


class Machine(Protocol):
    """What a process needs of the agent that started it."""

    mute: bool
    disk: DiskUse

    def tell(self, request_id: int, message: dict[str, Any], payload: bytes = b"") -> None:
        """Send a message."""

    def break_off(self) -> None:
        """The host dies."""

    def real_ns(self) -> int:
        """The host's clock."""

    def work(self, job: FakeJob, load: FakeLoad, from_s: float, until_s: float) -> None:
        """Count what the process did on the host's disk."""


class Mortal(Protocol):
    """Whatever signals reach."""

    def strike(self, signal: str) -> None:
        """A signal arrives."""


class FakeProcess:
    """Plays a load; `strike` is how signals reach it."""

    def __init__(self, machine: Machine, request_id: int, job: FakeJob, load: FakeLoad) -> None:
        self._machine = machine
        self._id = request_id
        self._job = job
        self._load = load
        self._struck = asyncio.Event()
        self._signal = ""
        self._start_ns = 0
        self._worked_s = 0.0

    def strike(self, signal: str) -> None:
        """A signal arrives."""
        self._signal = signal
        self._struck.set()

    async def live(self, start_real_ns: int) -> tuple[int | None, str]:
        """From the start to the end; the exit code, or None and the signal's name."""
        ahead_s = (start_real_ns - self._machine.real_ns()) / 1e9
        if await comes_within(self._struck, ahead_s):
            return None, self._signal
        self._start_ns = self._machine.real_ns()
        self._machine.tell(self._id, {"is": "started", "pid": 77, "real_ns": self._start_ns})
        ending = await self._play()
        self._print(self._load.stderr, "stderr")
        return ending

    async def _play(self) -> tuple[int | None, str]:
        for moment_s in self._moments():
            if await comes_within(self._struck, moment_s - self._elapsed_s()):
                return await self._struck_down()
            if moment_s == self._load.killed_at_s:
                return None, "KILL"
            if moment_s == self._load.host_dies_at_s:
                self._machine.break_off()
            if moment_s == self._load.host_silent_at_s:
                self._machine.mute = True
            self._report(moment_s)
        if self._load.hangs:
            await self._struck.wait()
            return await self._struck_down()
        self._print(self._load.prints or b"")
        return self._load.exit_code, ""

    async def _struck_down(self) -> tuple[int | None, str]:
        if self._signal == "INT" and self._load.heeds_int:
            self._print(TERMINATED)
            self._report(self._elapsed_s())
            return 0, ""
        while self._signal == "INT":
            self._struck.clear()
            await self._struck.wait()
        return None, self._signal

    def _report(self, elapsed_s: float) -> None:
        """A document of all that was done so far."""
        self._machine.work(self._job, self._load, self._worked_s, elapsed_s)
        self._worked_s = elapsed_s
        if self._load.prints is None:
            self._print(document(self._job, self._load, self._start_ns, elapsed_s))

    def _print(self, output: bytes, stream: str = "stdout") -> None:
        for start in range(0, len(output), PIECE_BYTES):
            message = {"is": "output", "stream": stream}
            self._machine.tell(self._id, message, output[start : start + PIECE_BYTES])

    def _elapsed_s(self) -> float:
        return (self._machine.real_ns() - self._start_ns) / 1e9

    def _moments(self) -> list[float]:
        """Seconds at which something happens, up to the end of the process."""
        load, seconds = self._load, self._job.seconds
        special = (load.killed_at_s, load.host_dies_at_s, load.host_silent_at_s)
        ticks = [float(second) for second in range(1, int(seconds) + 1)]
        return sorted({*ticks, seconds, *(moment for moment in special if moment is not None)})


def exited(
    code: int | None, signal: str, real_ns: int, memory: dict[str, int] | None = None
) -> dict[str, Any]:
    """The final message of a run; `memory` is what is told of one whose memory was bounded."""
    return {
        **(memory or {}),
        "is": "exited",
        "code": code,
        "signal": SIGNALS.get(signal),
        "user_s": 0.1,
        "system_s": 0.2,
        "max_rss_bytes": 10_000_000,
        "real_ns": real_ns,
        "timed_out": False,
        "truncated": False,
    }


async def comes_within(event: asyncio.Event, seconds: float) -> bool:
    """Whether the event comes within so many seconds."""
    try:
        async with asyncio.timeout(max(seconds, 0)):
            await event.wait()
    except TimeoutError:
        return False
    return True
