"""A process of this machine that was broken off: nothing of its group stays behind."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from typing import Final

KILL_LIMIT_S: Final = 5.0
"""For a killed process group to be gone."""


async def end_group(process: asyncio.subprocess.Process) -> None:
    """Kill the group of a process that still runs, and reap it; it leads a session of its own."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(TimeoutError):
            async with asyncio.timeout(KILL_LIMIT_S):
                await process.wait()
