"""One writer a session: an advisory lock that the kernel drops when the writer dies."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from iolab.errors import StoreError
from iolab.store import layout
from iolab.store.durable import told

_TRIES: Final = 20
_PAUSE_S: Final = 0.01
"""A reader holds the lock for microseconds while it asks whether a writer lives; outwait it."""


class SessionLock:
    """The right to write to a session, held until `release` or the end of the process."""

    def __init__(self, directory: Path) -> None:
        path = directory / layout.LOCK
        with told(path, "write"):
            self._descriptor: int | None = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            if not _taken(self._descriptor):
                holder = os.pread(self._descriptor, 32, 0).decode("ascii", "replace").strip()
                self.release()
                raise StoreError(
                    f"Another iolab (process {holder or 'unknown'}) is writing to '{directory}'.",
                    "Wait for it, stop it with Ctrl-C, or choose another directory.",
                )
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let others write; a second call does nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


def is_held(directory: Path) -> bool:
    """Whether a live process writes to the session."""
    try:
        descriptor = os.open(directory / layout.LOCK, os.O_RDONLY)
    except OSError:
        return False  # a copy of a session, without its lock
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in (errno.EAGAIN, errno.EACCES)
    else:
        return False
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> bool:
    """Whether the lock became ours within a few tries."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE_S)
        else:
            return True
    return False
