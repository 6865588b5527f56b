"""The controller's own children: signalled while their number is theirs, and never after."""

from __future__ import annotations

import asyncio
import subprocess

from iolab.hosts.process import ProcessLink
from tests.fakes.virtual_time import run_virtually


class ReapedChild(asyncio.subprocess.Process):
    """A child that was reaped, whose number another process has by now, and whose pipes hang."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.stdin = _Closed()  # type: ignore[assignment]
        self.stdout = asyncio.StreamReader()
        self.stderr = asyncio.StreamReader()

    @property
    def returncode(self) -> int:
        """It ended long ago."""
        return 0

    async def wait(self) -> int:
        """Its end is never noticed, so that whoever waits for it comes to signals."""
        await asyncio.Event().wait()
        return 0


class _Closed:
    def close(self) -> None:
        """Nothing is open."""


def test_a_child_whose_number_is_another_process_s_by_now_is_not_signalled() -> None:
    foreign = subprocess.Popen(["sleep", "600"], process_group=0)

    async def end() -> None:
        await ProcessLink(ReapedChild(foreign.pid)).wait_for_exit_or_kill()

    try:
        run_virtually(end())
        assert foreign.poll() is None
    finally:
        foreign.kill()
        foreign.wait()
