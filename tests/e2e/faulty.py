"""A file that fails as it is told: one file on a FUSE of our own, served by a thread.

The kernel's device mapper would do for some of this, but not every kernel has it, and none of its
targets loses a write or tears one.
"""

from __future__ import annotations

import errno
import os
import select
import stat
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path

from tests.needs import ROOT, require

NAME = b"file"
ROOT_NODE, FILE_NODE = 1, 2
MAX_WRITE = 1 << 20
LOOK_S = 0.02
"""How often the server looks whether it is to end."""
REQUEST = struct.Struct("<IIQQIIII")
"""Length, operation, number, node, user, group, process, padding."""
ANSWER = struct.Struct("<IiQ")
TRANSFER = struct.Struct("<QQIIQII")
"""Of reads and writes: handle, offset, length, flags, lock owner, flags, padding."""
DIRECT_IO, ASYNC_READ, BIG_WRITES, ASYNC_DIO = 1, 1, 1 << 5, 1 << 15
CACHED_S = 3600


class Operation(IntEnum):
    """What the kernel asks, of linux/fuse.h."""

    LOOKUP = 1
    FORGET = 2
    GETATTR = 3
    SETATTR = 4
    OPEN = 14
    READ = 15
    WRITE = 16
    STATFS = 17
    RELEASE = 18
    FSYNC = 20
    FLUSH = 25
    INIT = 26
    INTERRUPT = 36
    DESTROY = 38
    BATCH_FORGET = 42


NO_ANSWER = {Operation.FORGET, Operation.BATCH_FORGET, Operation.INTERRUPT}

Fault = Callable[[int, int], int]
"""By offset and length of a transfer: the errno that it fails with, or 0."""


def _no_fault(offset: int, length: int) -> int:
    del offset, length
    return 0


@dataclass
class FaultyFile:
    """The file, what it holds, and how it fails; all may be changed while it is in use."""

    path: Path
    content: bytearray
    on_read: Fault = _no_fault
    on_write: Fault = _no_fault
    keeps: Callable[[int, int], int] = field(default=lambda _offset, length: length)
    """By offset and length of a write that is acknowledged: how many of its bytes are kept."""
    requests: int = 0
    gone: threading.Event = field(default_factory=threading.Event)

    def vanish(self) -> None:
        """Have it gone, whatever is under way."""
        self.gone.set()


@contextmanager
def faulty_file(size_bytes: int) -> Iterator[FaultyFile]:
    """A file of zeros on a FUSE mount of our own, torn down completely."""
    require(ROOT)
    with tempfile.TemporaryDirectory(prefix="iolab-test-") as folder:
        device = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={device},rootmode=40000,user_id=0,group_id=0"
        mount = ["mount", "-i", "-t", "fuse", "-o", options, "iolab-faulty", folder]
        subprocess.run(mount, check=True, pass_fds=[device], timeout=30)
        file = FaultyFile(Path(folder) / NAME.decode(), bytearray(size_bytes))
        server = threading.Thread(target=_serve, args=(device, file), daemon=True)
        server.start()
        try:
            yield file
        finally:
            file.vanish()
            server.join()
            subprocess.run(["umount", "--lazy", folder], check=True, timeout=30)


def _serve(device: int, file: FaultyFile) -> None:
    """Answer until told to vanish; then the kernel fails all that is under way."""
    os.set_blocking(device, False)
    while not file.gone.is_set():
        if not select.select([device], [], [], LOOK_S)[0]:
            continue
        try:
            request = os.read(device, MAX_WRITE + 8192)
        except BlockingIOError:
            continue
        _, operation, number, node, *_ = REQUEST.unpack_from(request)
        if operation in NO_ANSWER:
            continue
        outcome = _answer(file, operation, node, request[REQUEST.size :])
        body = outcome if isinstance(outcome, bytes) else b""
        failed = 0 if isinstance(outcome, bytes) else -outcome
        try:
            os.write(device, ANSWER.pack(ANSWER.size + len(body), failed, number) + body)
        except OSError as error:
            if error.errno != errno.ENOENT:  # Whoever asked has been interrupted.
                raise
    os.close(device)


def _answer(file: FaultyFile, operation: int, node: int, body: bytes) -> bytes | int:
    """The answer, or an errno."""
    match operation:
        case Operation.INIT:
            flags = ASYNC_READ | BIG_WRITES | ASYNC_DIO
            pages = MAX_WRITE // 4096
            return struct.pack("<IIIIHHIIHH32x", 7, 31, 0, flags, 64, 48, MAX_WRITE, 1, pages, 0)
        case Operation.LOOKUP:
            if body.rstrip(b"\0") != NAME:
                return errno.ENOENT
            lasting = struct.pack("<QQQQII", FILE_NODE, 0, CACHED_S, CACHED_S, 0, 0)
            return lasting + attributes(len(file.content), FILE_NODE)
        case Operation.GETATTR | Operation.SETATTR:
            return struct.pack("<QII", CACHED_S, 0, 0) + attributes(len(file.content), node)
        case Operation.OPEN:
            return struct.pack("<QII", 1, DIRECT_IO, 0)
        case Operation.READ:
            return _read(file, body)
        case Operation.WRITE:
            return _write(file, body)
        case Operation.STATFS:
            return struct.pack(
                "<QQQQQIIII", 1 << 20, 1 << 20, 1 << 20, 9, 9, 4096, 255, 4096, 0
            ) + (bytes(24))
        case Operation.RELEASE | Operation.FSYNC | Operation.FLUSH | Operation.DESTROY:
            return b""
        case _:
            return errno.ENOSYS


def attributes(bytes_of_file: int, node: int) -> bytes:
    """What is told of the file, or of the folder that it is in."""
    size = bytes_of_file if node == FILE_NODE else 0
    mode = stat.S_IFREG | 0o600 if node == FILE_NODE else stat.S_IFDIR | 0o700
    times = (0, 0, 0, 0, 0, 0)
    return struct.pack(
        "<QQQQQQIIIIIIIIII", node, size, size // 512, *times, mode, 1, 0, 0, 0, 4096, 0
    )


def _read(file: FaultyFile, body: bytes) -> bytes | int:
    _, offset, length, *_ = TRANSFER.unpack_from(body)
    file.requests += 1
    if failed := file.on_read(offset, length):
        return failed
    return bytes(file.content[offset : offset + length])


def _write(file: FaultyFile, body: bytes) -> bytes | int:
    _, offset, length, *_ = TRANSFER.unpack_from(body)
    file.requests += 1
    if failed := file.on_write(offset, length):
        return failed
    kept = file.keeps(offset, length)
    file.content[offset : offset + kept] = body[TRANSFER.size : TRANSFER.size + kept]
    return struct.pack("<II", length, 0)


def stuck(file: FaultyFile, after: int) -> Fault:
    """No answer to any transfer after so many, until the file vanishes."""

    def hold(_offset: int, _length: int) -> int:
        if file.requests > after:
            file.gone.wait()
        return 0

    return hold


def late(seconds: float, fault: Fault = _no_fault) -> Fault:
    """The same fault, so much later."""

    def after(offset: int, length: int) -> int:
        time.sleep(seconds)
        return fault(offset, length)

    return after
