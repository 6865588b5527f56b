"""How far a host's clock is from ours: from the round trip that took the least time."""

from __future__ import annotations

import asyncio

import pytest

from iolab.hosts.clock import ROUND_TRIPS, ClockOffset, ClockStepDetector, measure_clock_offset
from iolab.hosts.message import Message
from tests.fakes.host import FakeHost
from tests.fakes.script import LoopClock
from tests.fakes.virtual_time import run_virtually

AHEAD_NS = 3_600_000_000_000
MS = 1_000_000


class Uneven(FakeHost):
    """Its clock is an hour ahead. It is asked at once; its answer takes so many ms to come back."""

    def __init__(self, *back_ms: int) -> None:
        super().__init__()
        self.back_ms = list(back_ms)

    async def request(
        self, verb: str, payload: bytes = b"", *, deadline_s: float, **arguments: object
    ) -> Message:
        there_ns = LoopClock().real_ns() + AHEAD_NS
        await asyncio.sleep(self.back_ms.pop(0) / 1000)
        return Message(verb, {"is": verb, "mono_ns": 0, "real_ns": there_ns})


def measured(*back_ms: int) -> ClockOffset:
    return run_virtually(measure_clock_offset(Uneven(*back_ms), LoopClock()))


def test_the_shortest_round_trip_tells_the_offset() -> None:
    # What comes back late makes the clock seem to be behind by half of the way.
    assert len((50, 7, 300, 2, 90, 4, 40, 80)) == ROUND_TRIPS
    found = measured(50, 7, 300, 2, 90, 4, 40, 80)
    assert found == ClockOffset(AHEAD_NS - 1 * MS, 1 * MS, 2 * MS)


def test_a_second_look_ends_at_a_round_trip_like_that_of_the_first() -> None:
    host = Uneven(50, 7, 2, 300, 1, 90, 4, 40)
    found = run_virtually(measure_clock_offset(host, LoopClock(), earlier_rtt_ns=2 * MS))
    assert found.rtt_ns == 2 * MS
    assert host.back_ms == [300, 1, 90, 4, 40]
    # Where none is as short, the shortest of all counts.
    slow = Uneven(50, 7, 9, 300, 8, 90, 14, 40)
    assert (
        run_virtually(measure_clock_offset(slow, LoopClock(), earlier_rtt_ns=2 * MS)).rtt_ns
        == 7 * MS
    )


def stepped(*pairs_ms: tuple[float, float]) -> int | None:
    """The step that pairs of real and boot time tell."""
    meter = ClockStepDetector()
    for real_ms, boot_ms in pairs_ms:
        meter.add_reading(AHEAD_NS + round(real_ms * MS), round(boot_ms * MS))
    return meter.step_ns


@pytest.mark.parametrize("by_ms", [4058, -250, 3_600_000, 2])
def test_a_clock_that_was_set_tells_by_how_much(by_ms: int) -> None:
    after = ((1000 + by_ms, 1000), (2000 + by_ms, 2000))
    assert stepped((0, 0), *after) == by_ms * MS
    assert stepped((0, 0), *after, (3000, 3000)) == by_ms * MS  # also where it was set back


def test_a_clock_that_nobody_sets_has_no_step_however_long_a_run_takes() -> None:
    day_ms = 86_400_000
    assert stepped((0, 0), (1000, 1000.4), (day_ms, day_ms - 0.3)) == 0


def test_without_two_pairs_nothing_is_known() -> None:
    assert stepped() is stepped((0, 0)) is None
    meter = ClockStepDetector()
    meter.add_reading(1, None)
    meter.add_reading("now", 2)
    assert meter.step_ns is None
