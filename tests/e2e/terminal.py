"""A command on a terminal of its own: what it shows can be awaited, keys can be pressed."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

CTRL_C: Final = b"\x03"
_STEP_S: Final = 0.2
_ESCAPES: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """The controlling side of a terminal with one process on the other."""

    def __init__(self, pid: int, descriptor: int) -> None:
        self._pid = pid
        self._descriptor = descriptor
        self._ended: int | None = None
        self.raw = ""

    @property
    def text(self) -> str:
        """Everything shown so far without colours and cursor movements."""
        return _ESCAPES.sub("", self.raw)

    def press(self, keys: bytes) -> None:
        """Type on the terminal."""
        os.write(self._descriptor, keys)

    def wait_for(self, pattern: str, limit_s: float = 60.0) -> None:
        """Read until the text matches; AssertionError with what was shown when it does not."""
        end = time.monotonic() + limit_s
        while not re.search(pattern, self.text):
            assert time.monotonic() < end, f"no {pattern!r} in:\n{self.text}"
            if not self._read():
                assert re.search(pattern, self.text), f"ended without {pattern!r}:\n{self.text}"

    def wait(self, limit_s: float = 60.0) -> int:
        """The exit code, once the process has ended."""
        end = time.monotonic() + limit_s
        while self._ended is None:
            assert time.monotonic() < end, f"still running:\n{self.text}"
            if not self._read():
                time.sleep(_STEP_S)
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                self._ended = os.waitstatus_to_exitcode(status)
        while self._read(0):
            pass
        return self._ended

    def close(self) -> None:
        """End what still runs."""
        if self._ended is None:
            os.kill(self._pid, 9)
            os.waitpid(self._pid, 0)
        os.close(self._descriptor)

    def _read(self, limit_s: float = _STEP_S) -> bool:
        """Take what is shown; False when nothing can come any more, or nothing came at once."""
        ready, _, _ = select.select([self._descriptor], [], [], limit_s)
        if not ready:
            return limit_s > 0
        try:
            piece = os.read(self._descriptor, 1 << 16)
        except OSError:  # how Linux says that the other end of a terminal has closed
            return False
        self.raw += piece.decode("utf-8", "replace")
        return bool(piece)


@contextmanager
def on_terminal(
    argv: Sequence[str], env: Mapping[str, str], columns: int = 100, rows: int = 30
) -> Iterator[Terminal]:
    """Start the command as the leader of a terminal's session, so that Ctrl-C reaches it."""
    pid, descriptor = pty.fork()
    if pid == 0:
        try:
            os.execve(argv[0], list(argv), dict(env))  # noqa: S606 - no shell is wanted
        finally:
            os._exit(127)
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    terminal = Terminal(pid, descriptor)
    try:
        yield terminal
    finally:
        terminal.close()
