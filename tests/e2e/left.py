"""What a session has left on its target: folders, and engines that still run."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path


def ours_on(target: Path) -> list[str]:
    """What of ours lies on the target."""
    return [entry.name for entry in target.iterdir() if entry.name.startswith("iolab")]


def engines_on(target: Path) -> list[int]:
    """The processes of fio and of the native engine that name the target or sit in it."""
    return list(_engines(target))


def await_engine_on(target: Path, limit_s: float = 60.0) -> None:
    """Return when an engine works on the target."""
    end = time.monotonic() + limit_s
    while not engines_on(target):
        assert time.monotonic() < end
        time.sleep(0.02)


def kill_engines(target: Path) -> None:
    """Kill every engine on the target, as the kernel would when memory is short."""
    for pid in engines_on(target):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue  # it has gone with its parent


def await_none_on(target: Path, limit_s: float = 20.0) -> None:
    """Return when nothing of ours is left; AssertionError when that takes too long."""
    end = time.monotonic() + limit_s
    while engines_on(target) or ours_on(target):
        assert time.monotonic() < end, (engines_on(target), ours_on(target))
        time.sleep(0.1)


def _engines(target: Path) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            place = (entry / "cwd").readlink()
        except OSError:
            continue  # it has just ended
        ours = words[1:2] == [b"engine"] and words[0].endswith(b"iolab-agent")
        if Path(os.fsdecode(words[0])).name != "fio" and not ours:
            continue
        if place.is_relative_to(target) or str(target) in os.fsdecode(b" ".join(words)):
            yield int(entry.name)
