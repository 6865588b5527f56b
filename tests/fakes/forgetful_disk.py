"""A disk that answers writes and flushes, and on SIGUSR1 has forgotten those of the last second.

`python forgetful_disk.py IMAGE DISK` serves the image as the file DISK, by FUSE, until it is killed
or DISK is unmounted; it prints a line when that can be used. With `volatile` after these it answers
all that was written after SIGUSR1 from its memory, until it is closed (its loop device detached).
With `honest` it forgets nothing. A loop device over DISK is the disk. Needs root.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import struct
import sys
import time
from collections import deque
from pathlib import Path

GETATTR, SETATTR, OPEN, READ, WRITE, RELEASE, FSYNC, FLUSH, INIT = 3, 4, 14, 15, 16, 18, 20, 25, 26
WITHOUT_ANSWER = (2, 36, 42)
"""Forget, interrupt, and forget many."""

WRITE_MAX = 128 << 10
HEADER = struct.Struct("<IIQQIIII")
ATTRIBUTES = struct.pack("<7I", 0o100600, 1, 0, 0, 0, 4096, 0)
NO_TIMES = bytes(3 * 8 + 3 * 4)
WINDOW_S = 1.0
"""What is forgotten was written so shortly before."""


class ForgetfulDisk:
    """The image as a file of FUSE; `serve` until the end."""

    def __init__(self, image: Path, manner: str) -> None:
        self._image = os.open(image, os.O_RDWR)
        self._size = image.stat().st_size
        self._manner = manner
        self._is_holding = False
        self._openers = 0
        self._overwritten: deque[tuple[float, int, bytes]] = deque()

    def forget(self, *_signal: object) -> None:
        """Everything that was written in the last second is as it was before."""
        if self._manner == "volatile":
            self._overwritten.clear()
            self._is_holding = True
        elif self._manner == "forgetful":
            self._undo_writes_since(time.monotonic() - WINDOW_S)

    def _undo_writes_since(self, since: float) -> None:
        while self._overwritten and self._overwritten[-1][0] >= since:
            _, offset, content = self._overwritten.pop()
            os.pwrite(self._image, content, offset)

    def serve(self, mount_point: Path) -> None:
        """Mount, and answer requests until the file is unmounted."""
        fuse = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={fuse},rootmode=100600,user_id=0,group_id=0,allow_other"
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"forgetful", os.fsencode(mount_point), b"fuse", 0, options.encode()):
            raise OSError(ctypes.get_errno(), "cannot mount")
        print("up", flush=True)
        while True:
            try:
                request = os.read(fuse, WRITE_MAX + 4096)
            except OSError as error:
                if error.errno == errno.ENODEV:
                    return
                raise
            _, opcode, unique, *_ = HEADER.unpack_from(request)
            if opcode not in WITHOUT_ANSWER:
                answer = self._answer(opcode, request[HEADER.size :])
                fault, body = (-answer, b"") if isinstance(answer, int) else (0, answer)
                os.write(fuse, struct.pack("<IiQ", 16 + len(body), fault, unique) + body)

    def _answer(self, opcode: int, body: bytes) -> bytes | int:
        """What is answered, or the number of an error."""
        if opcode == INIT:
            head = struct.pack("<IIIIHHIIHH", 7, 31, WRITE_MAX, 0, 16, 12, WRITE_MAX, 1, 0, 0)
            return head + bytes(32)
        if opcode in (GETATTR, SETATTR):
            sizes = struct.pack("<QQQ", 1, self._size, self._size // 512)
            return struct.pack("<QII", 1, 0, 0) + sizes + NO_TIMES + ATTRIBUTES
        if opcode in (OPEN, RELEASE):
            self._openers += 1 if opcode == OPEN else -1
        if opcode == OPEN:
            return struct.pack("<QII", 0, 1, 0)  # past the page cache
        if opcode in (READ, WRITE):
            _, offset, size = struct.unpack_from("<QQI", body)
            if opcode == READ:
                return os.pread(self._image, size, offset)
            self._write(offset, body[40 : 40 + size])
            return struct.pack("<II", size, 0)
        if opcode == RELEASE and self._is_holding and not self._openers:
            self._undo_writes_since(0.0)
            self._is_holding = False
        return b"" if opcode in (RELEASE, FSYNC, FLUSH) else errno.ENOSYS

    def _write(self, offset: int, data: bytes) -> None:
        now = time.monotonic()
        while self._overwritten and self._overwritten[0][0] < now - 2 * WINDOW_S:
            if self._is_holding:
                break
            self._overwritten.popleft()
        self._overwritten.append((now, offset, os.pread(self._image, len(data), offset)))
        os.pwrite(self._image, data, offset)


def main(image: str, mount_point: str, manner: str = "forgetful") -> None:
    """Serve it."""
    disk = ForgetfulDisk(Path(image), manner)
    signal.signal(signal.SIGUSR1, disk.forget)
    disk.serve(Path(mount_point))


if __name__ == "__main__":
    main(*sys.argv[1:])
