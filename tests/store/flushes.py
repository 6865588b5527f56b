"""Every flush and every naming that the store makes, seen, and on request its last moment."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any


def flushes_and_names(act: Callable[[], None], die_at: int | None = None) -> list[tuple[str, str]]:
    """Every fsync and rename that `act` makes, in order, with the path that is flushed or given.

    Seen by the interpreter's own profiler, so that nothing is put in the place of anything. Before
    the one with the number `die_at` the process kills itself.
    """
    seen: list[tuple[str, str]] = []

    def watch(frame: FrameType, event: str, called: Any) -> None:
        if event != "c_call" or called not in (os.fsync, os.rename, os.replace):
            return
        if die_at is not None and len(seen) >= die_at:  # threads may have made two at once
            os.kill(os.getpid(), signal.SIGKILL)
        if called is os.fsync:
            descriptor = frame.f_locals.get("descriptor")
            if descriptor is None:
                descriptor = frame.f_locals["file"].fileno()
            seen.append(("flush", str(Path(f"/proc/self/fd/{descriptor}").readlink())))
        else:
            seen.append(("name", str(frame.f_locals["target"])))

    sys.setprofile(watch)
    threading.setprofile(watch)  # several files are flushed by threads that are yet to start
    try:
        act()
    finally:
        threading.setprofile(None)
        sys.setprofile(None)
    return seen
