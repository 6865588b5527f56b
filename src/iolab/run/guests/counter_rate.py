"""The rate of a node's time stamp counter, by which an emulated guest tells the time.

QEMU gives the guest the node's own counter. /proc/cpuinfo is no source: its "cpu MHz" is what a
processor runs at just now, up to four times off, and a guest's clock would be as much off.
"""

from __future__ import annotations

import asyncio
from typing import Final

from iolab.errors import HostError
from iolab.run.clock import CLOCK_LIMIT_S
from iolab.run.hosts.answers import ClockAnswer, read_answer
from iolab.run.hosts.base import Host

APART_S: Final = 0.5
"""Between two readings, each within a microsecond: the rate is then off by a few millionths."""

KHZ_MIN: Final = 100_000
KHZ_MAX: Final = 100_000_000
"""No processor's counter is outside; what is comes of a node that speaks nonsense."""


async def counter_khz(node: Host) -> int:
    """How many thousand times a second it counts. HostError when the node does not tell."""
    first = await _reading(node)
    await asyncio.sleep(APART_S)
    later = await _reading(node)
    passed_ns = later.mono_ns - first.mono_ns
    if first.tsc is not None and later.tsc is not None and passed_ns > 0:
        khz = round((later.tsc - first.tsc) * 1_000_000 / passed_ns)
        if KHZ_MIN <= khz <= KHZ_MAX:
            return khz
    happened = f"Node '{node.name}' does not tell how fast its time stamp counter is."
    raise HostError(happened, "Emulate guests on another node, or give this one KVM.")


async def _reading(node: Host) -> ClockAnswer:
    message = await node.ask("clock", deadline_s=CLOCK_LIMIT_S)
    return read_answer(node.name, ClockAnswer, message)
