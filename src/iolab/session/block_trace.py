"""A sample of the block layer around the engine's run on one host."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from iolab.core.block_trace import BlockTrace
from iolab.errors import HostError
from iolab.hosts.answers import TraceAnswer, read_answer
from iolab.hosts.host import Stream
from iolab.session.driver import HostShare

CALL_OFF_LIMIT_S: Final = 20.0
"""Calling it off on a host under full load."""

LEAD_LIMIT_S: Final = 600.0
"""From its begin to the engine's start, and from the engine's end to when it is called off."""

LAST_WORD_LIMIT_S: Final = 20.0
"""From then to what was sampled."""


@asynccontextmanager
async def traced(mine: HostShare, limit_s: float) -> AsyncIterator[None]:
    """Sample the device nearest the target inside, and fill in what was seen, or why nothing was.

    The agent ends it by itself when the engine, which has `limit_s` from its start, is long gone.
    It never fails a run: the checks that need it say why they could not look.
    """
    if not mine.site.devices:
        yield
        return
    device, host, target = mine.site.devices[0], mine.site.host, mine.site.target
    if target is not None and not target.device:
        # One of several is no sample of them all.
        mine.trace = BlockTrace(device, "the target lies over several devices")
        yield
        return
    stream = host.stream("trace", device=device, wall_limit_s=limit_s + LEAD_LIMIT_S)
    listening = asyncio.create_task(_last_word(mine.name, device, stream))
    # Its request goes out before that of the run.
    await asyncio.sleep(0)
    try:
        yield
    finally:
        try:
            with suppress(HostError):
                await host.ask("unwatch", deadline_s=CALL_OFF_LIMIT_S, watch=stream.id)
            async with asyncio.timeout(LAST_WORD_LIMIT_S):
                mine.trace = await listening
        except TimeoutError:
            mine.trace = BlockTrace(device, f"the sample did not end in {LAST_WORD_LIMIT_S:g} s")
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
            await stream.aclose()


async def _last_word(host: str, device: str, stream: Stream) -> BlockTrace:
    last = None
    try:
        async for message in stream:
            last = message
        if last is None:
            return BlockTrace(device, "the sample ended without a word")
        return read_answer(host, TraceAnswer, last).trace
    except HostError as fault:
        return BlockTrace(device, fault.happened.rstrip("."))
