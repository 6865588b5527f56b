"""Clocks: the controller's own, and how far each host's is from it."""

from __future__ import annotations

import asyncio
import time
from typing import Final, Protocol
from weakref import WeakKeyDictionary

from iolab.hosts.answers import ClockAnswer, read_answer
from iolab.hosts.host import Host
from iolab.record import Record

ROUND_TRIPS: Final = 8
"""Questions to a host's clock. The shortest of eight is near the least possible on idle paths."""

ENOUGH_RATIO: Final = 1.1
"""How much longer the round trip of a second look at a host may be than that of the first: its
error then adds a twentieth to the bound of the drift."""

CLOCKS_AT_ONCE: Final = 32
"""Hosts whose clocks are asked at the same time: what waits in our own loop behind the answers of a
thousand others would count as time on the way, and make every error bound as wide."""

CLOCK_LIMIT_S: Final = 10.0
"""A host that needs longer to tell the time cannot start with the others."""

STEP_MIN_NS: Final = 1_000_000
"""Between two looks at a host's clocks: less is the time between the reading of one and the other,
on a host that was busy."""

_SEMAPHORES: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]] = (
    WeakKeyDictionary()
)


class ControllerClock(Protocol):
    """The controller's clocks; tests bring their own."""

    def real_ns(self) -> int:
        """CLOCK_REALTIME."""

    def mono_ns(self) -> int:
        """CLOCK_MONOTONIC."""


class SystemControllerClock:
    """The machine's clocks."""

    real_ns = staticmethod(time.time_ns)
    mono_ns = staticmethod(time.monotonic_ns)


SYSTEM_CLOCK: Final = SystemControllerClock()


class ClockOffset(Record):
    """A host's CLOCK_REALTIME is the controller's plus `offset_ns`, within `error_ns`.

    `rtt_ns` is the shortest round trip seen; the error is half of it (the answer was made at an
    unknown moment between question and arrival: Cristian's algorithm).
    """

    offset_ns: int
    error_ns: int
    rtt_ns: int


class ClockStepDetector:
    """By how much a host's clock was set, from pairs of CLOCK_REALTIME and CLOCK_BOOTTIME.

    Both are slewed alike, so a time service that slews moves neither against the other.
    """

    def __init__(self) -> None:
        self._distance_ns: int | None = None
        self.step_ns: int | None = None
        """The largest step, positive forward; 0 for none, None before two looks."""

    def add_reading(self, real_ns: object, boot_ns: object) -> None:
        """Take the next pair; anything but two numbers is no pair."""
        if not isinstance(real_ns, int) or not isinstance(boot_ns, int):
            return
        before, self._distance_ns = self._distance_ns, real_ns - boot_ns
        if before is None:
            return
        moved_ns = self._distance_ns - before
        step_ns = moved_ns if abs(moved_ns) >= STEP_MIN_NS else 0
        self.step_ns = max(self.step_ns or 0, step_ns, key=abs)


async def measure_clock_offset(
    host: Host, clock: ControllerClock, earlier_rtt_ns: int | None = None
) -> ClockOffset:
    """The host's clock against ours by the shortest of several round trips. Raises HostError.

    One that is about as short as that of a look before, `earlier_rtt_ns` ns, is enough: the drift
    in between is then known as well as the first look allows.
    """
    enough_ns = 0 if earlier_rtt_ns is None else round(ENOUGH_RATIO * earlier_rtt_ns)
    offsets: list[ClockOffset] = []
    async with _clock_measurement_semaphore():
        while len(offsets) < ROUND_TRIPS and not any(trip.rtt_ns <= enough_ns for trip in offsets):
            offsets.append(await _measure_round_trip(host, clock))
    return min(offsets, key=lambda offset: offset.rtt_ns)


def _clock_measurement_semaphore() -> asyncio.Semaphore:
    """What lets so many through at once, one in each event loop."""
    return _SEMAPHORES.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(CLOCKS_AT_ONCE))


async def _measure_round_trip(host: Host, clock: ControllerClock) -> ClockOffset:
    asked_real_ns, asked_mono_ns = clock.real_ns(), clock.mono_ns()
    message = await host.request("clock", deadline_s=CLOCK_LIMIT_S)
    rtt_ns = clock.mono_ns() - asked_mono_ns
    answer = read_answer(host.name, ClockAnswer, message)
    middle_ns = asked_real_ns + rtt_ns // 2
    return ClockOffset(answer.real_ns - middle_ns, (rtt_ns + 1) // 2, rtt_ns)
