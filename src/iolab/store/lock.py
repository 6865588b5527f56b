"""One writer a session: an advisory lock that the kernel drops when the writer dies."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import Final, Self

from iolab.errors import StoreError
from iolab.store import layout
from iolab.store.durable import disk_errors

_TRIES: Final = 20
_PAUSE_S: Final = 0.01
"""A reader holds the lock for microseconds while it asks whether a writer lives; outwait it."""
_PID_BYTES: Final = 32


class SessionLock:
    """The right to write to a session, held until `release` or the end of the process."""

    def __init__(self, directory: Path) -> None:
        path = directory / layout.LOCK
        self._descriptor: int | None = None
        with disk_errors(path, "write"):
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                _take(self._descriptor, directory)
            except BaseException:
                self.release()
                raise

    def release(self) -> None:
        """Let others write; a second call does nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def is_held(directory: Path) -> bool:
    """Whether a live process writes to the session; true as well if that cannot be found out."""
    try:
        descriptor = os.open(directory / layout.LOCK, os.O_RDONLY)
    except FileNotFoundError:
        return False  # a copy of a session, without its lock
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)


def _take(descriptor: int, directory: Path) -> None:
    """Make the lock ours and say so in it; StoreError if another process has it."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE_S)
        else:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            return
    holder = os.pread(descriptor, _PID_BYTES, 0).decode("ascii", "replace").strip()
    raise StoreError(
        f"Another iolab (process {holder or 'unknown'}) is writing to '{directory}'.",
        "Wait for it, stop it with Ctrl-C, or choose another directory.",
    )
