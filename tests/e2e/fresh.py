"""A device that is fast when fresh: its speed is set by the kernel's block layer, so it is known.

The blkio controller limits how many reads a second a loop device gives to the processes of one
cgroup; beside it a thread lowers that limit along limit(t) = steady (1 + a exp(-t / tau)) from the
first read of a run on. fio, iolab and their host are told nothing of it: they meet a device that
takes longer to answer, as on a purged drive. When nothing was read for a second, it is fresh again.

Device-mapper is not everywhere, and fio's own `rate` would be known to the tool that is tested.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.sessions import IOLAB, SESSION_LIMIT_S
from tests.e2e.targets import Target, tmpfs, xfs_on_loop
from tests.processes import run_program

CGROUPS = Path("/sys/fs/cgroup/blkio")
TICK_S = 0.1
CHANGE_S = 0.5
# The kernel begins a new slice with each change: many of them would slow the device by themselves.
FRESH_AGAIN_S = 1.0
SETTLED = 0.02
JOIN = """
import os, sys
open(sys.argv[1], "w").write(str(os.getpid()))
os.execv(sys.argv[2], sys.argv[2:])
"""
REMOVAL_LIMIT_S = 5.0


@dataclass(frozen=True)
class Fading:
    """The device's reads a second: `steady` in the end, `above` times more at first."""

    steady: int
    above: float
    tau_s: float

    def at(self, since_s: float) -> int:
        """In steps of half a second; what is less than 2 % above counts as steady."""
        step_s = since_s - since_s % CHANGE_S
        above = self.above * math.exp(-step_s / self.tau_s)
        return round(self.steady * (1 + (above if above > SETTLED else 0.0)))


@dataclass(frozen=True)
class FreshDevice:
    """The target, and the cgroup whose processes meet its limit."""

    target: Target
    group: Path

    def iolab(self, *words: str | Path) -> str:
        """Run the command in the cgroup to its end; its standard error."""
        # The process joins before it becomes the command: what runs between fork and exec here may
        # meet a lock that the limiter's thread held.
        join = [sys.executable, "-c", JOIN, str(self.group / "cgroup.procs")]
        done = run_program([*join, str(IOLAB), *map(str, words)], timeout=SESSION_LIMIT_S)
        assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stderr


@contextmanager
def fresh_device(fading: Fading) -> Iterator[FreshDevice]:
    """An XFS on such a device; its blocks lie in memory, so that no other user of a disk is met."""
    with tmpfs(512 << 20) as memory, xfs_on_loop(320 << 20, memory) as target:
        group = CGROUPS / f"iolab-test-{os.getpid()}-{target.device}"
        group.mkdir()
        over = threading.Event()
        limiter = threading.Thread(target=_limit, args=(target, group, fading, over))
        limiter.start()
        try:
            yield FreshDevice(target, group)
        finally:
            over.set()
            limiter.join()
            _remove(group)


def _limit(target: Target, group: Path, fading: Fading, over: threading.Event) -> None:
    """Follow the curve until it is over; the limit is only written where it changes."""
    limit = group / "blkio.throttle.read_iops_device"
    stat = Path(f"/sys/block/{target.device}/stat")
    device = Path(f"/sys/block/{target.device}/dev").read_text(encoding="ascii").strip()
    written, reads, begun, last = 0, 0, 0.0, 0.0
    while not over.is_set():
        now, so_far = time.monotonic(), int(stat.read_text(encoding="ascii").split()[0])
        # A look at the file system is no load.
        if so_far - reads > fading.steady * TICK_S / 4:
            begun = begun if now - last < FRESH_AGAIN_S else now
            last = now
        reads = so_far
        wanted = fading.at(now - begun if now - last < FRESH_AGAIN_S else 0.0)
        if wanted != written:
            limit.write_text(f"{device} {wanted}", encoding="ascii")
            written = wanted
        over.wait(TICK_S)


def _remove(group: Path) -> None:
    """The group goes when its last process has gone."""
    give_up = time.monotonic() + REMOVAL_LIMIT_S
    while group.exists() and time.monotonic() < give_up:
        with suppress(OSError):
            group.rmdir()
        time.sleep(TICK_S)
