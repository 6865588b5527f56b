"""A device that takes a set time for each I/O, so that its limit is known: a file on our own FUSE.

It does one I/O after the other, as a disk of one spindle: each takes `access_s` and its bytes at
`bytes_per_s`, by a schedule that does not drift when the server is late. Linux's own throttle
(blk-throttle) would not do: it lets I/Os through in bursts, whose latency is that of the client.
"""

from __future__ import annotations

import errno
import heapq
import multiprocessing
import os
import select
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Final

from tests.e2e.faulty import (
    ANSWER,
    ASYNC_DIO,
    ASYNC_READ,
    BIG_WRITES,
    CACHED_S,
    DIRECT_IO,
    FILE_NODE,
    LOOK_S,
    MAX_WRITE,
    NAME,
    NO_ANSWER,
    REQUEST,
    TRANSFER,
    Operation,
    attributes,
)

from bench.engine.targets import unmount

READ_ROOM_BYTES: Final = MAX_WRITE + 8192
MAX_PAGES: Final = 1 << 22
"""The flag of the protocol for requests beyond 128 KiB."""
BACKGROUND: Final = 1024
"""I/Os that the kernel hands over at a time."""
AWAKE_S: Final = 150e-6
"""Before an answer is due the server stays awake for so long: sleepers wake late."""


@dataclass(frozen=True, slots=True)
class Speed:
    """What an I/O takes."""

    access_s: float = 1 / 3000
    bytes_per_s: float = 300e6

    def of(self, length: int) -> float:
        """Seconds for so many bytes."""
        return max(self.access_s, length / self.bytes_per_s)


@contextmanager
def paced_device(size_bytes: int, speed: Speed) -> Iterator[str]:
    """A loop device over such a file, which is held in memory; torn down completely."""
    with (
        tempfile.TemporaryDirectory(prefix="iolab-bench-", dir="/dev/shm") as store,
        tempfile.TemporaryDirectory(prefix="iolab-bench-") as folder,
    ):
        content = os.open(Path(store) / "content", os.O_RDWR | os.O_CREAT)
        os.ftruncate(content, size_bytes)
        fuse = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0"
        mount = ["mount", "-i", "-t", "fuse", "-o", options, "iolab-paced", folder]
        subprocess.run(mount, check=True, pass_fds=[fuse], timeout=30)
        gone = multiprocessing.Event()
        server = multiprocessing.Process(
            target=_serve, args=(fuse, content, size_bytes, speed, gone), daemon=True
        )
        server.start()
        os.close(fuse)
        try:
            yield from _on_loop(Path(folder) / NAME.decode())
        finally:
            gone.set()
            server.join()
            subprocess.run(["umount", "--lazy", folder], check=True, timeout=30)
            os.close(content)


@contextmanager
def paced_folder(size_bytes: int, speed: Speed) -> Iterator[Path]:
    """XFS on such a device."""
    with (
        paced_device(size_bytes, speed) as device,
        tempfile.TemporaryDirectory(prefix="iolab-bench-") as folder,
    ):
        subprocess.run(["mkfs.xfs", "-q", "-K", device], check=True)
        subprocess.run(["mount", device, folder], check=True)
        try:
            yield Path(folder)
        finally:
            unmount(folder)


def _on_loop(file: Path) -> Iterator[str]:
    attach = ["losetup", "--find", "--show", "--direct-io=on", str(file)]
    device = subprocess.run(attach, check=True, capture_output=True, text=True).stdout.strip()
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


def _serve(fuse: int, content: int, size_bytes: int, speed: Speed, gone: Event) -> None:
    """Do what is asked at once, and answer when it would have been done."""
    # As an interrupt would be: whatever else runs, an answer is not late. It sleeps in between.
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    os.set_blocking(fuse, False)
    waiting: list[tuple[float, int, bytes]] = []
    free_at, turn = 0.0, 0
    while not gone.is_set():
        now = time.perf_counter()
        while waiting and waiting[0][0] <= now:
            _send(fuse, heapq.heappop(waiting)[2])
        request = _next(fuse, waiting[0][0] - now if waiting else LOOK_S)
        if request is None:
            continue
        _, operation, number, node, *_ = REQUEST.unpack_from(request)
        if operation in NO_ANSWER:
            continue
        body = request[REQUEST.size :]
        outcome = _answer(content, size_bytes, operation, node, body)
        answer = _framed(number, outcome)
        if operation not in (Operation.READ, Operation.WRITE):
            _send(fuse, answer)
            continue
        length = TRANSFER.unpack_from(body)[2]
        free_at = max(free_at, time.perf_counter()) + speed.of(length)
        turn += 1
        heapq.heappush(waiting, (free_at, turn, answer))


def _next(fuse: int, patience_s: float) -> bytes | None:
    """The next request; None when none came in time."""
    try:
        return os.read(fuse, READ_ROOM_BYTES)
    except BlockingIOError:
        pass
    if patience_s > AWAKE_S:
        select.select([fuse], [], [], min(patience_s - AWAKE_S, LOOK_S))
    return None


def _framed(number: int, outcome: bytes | int) -> bytes:
    body = outcome if isinstance(outcome, bytes) else b""
    failed = 0 if isinstance(outcome, bytes) else -outcome
    return ANSWER.pack(ANSWER.size + len(body), failed, number) + body


def _send(fuse: int, answer: bytes) -> None:
    try:
        os.write(fuse, answer)
    except OSError as error:
        if error.errno != errno.ENOENT:  # Whoever asked has been interrupted.
            raise


def _answer(content: int, size: int, operation: int, node: int, body: bytes) -> bytes | int:
    match operation:
        case Operation.INIT:
            flags = ASYNC_READ | BIG_WRITES | ASYNC_DIO | MAX_PAGES
            limits = (BACKGROUND, BACKGROUND, MAX_WRITE, 1, MAX_WRITE // 4096, 0)
            return struct.pack("<IIIIHHIIHH32x", 7, 31, 0, flags, *limits)
        case Operation.LOOKUP:
            lasting = struct.pack("<QQQQII", FILE_NODE, 0, CACHED_S, CACHED_S, 0, 0)
            return lasting + attributes(size, FILE_NODE)
        case Operation.GETATTR | Operation.SETATTR:
            return struct.pack("<QII", CACHED_S, 0, 0) + attributes(size, node)
        case Operation.OPEN:
            return struct.pack("<QII", 1, DIRECT_IO, 0)
        case Operation.READ:
            _, offset, length, *_ = TRANSFER.unpack_from(body)
            return os.pread(content, length, offset)
        case Operation.WRITE:
            _, offset, length, *_ = TRANSFER.unpack_from(body)
            os.pwrite(content, body[TRANSFER.size : TRANSFER.size + length], offset)
            return struct.pack("<II", length, 0)
        case Operation.RELEASE | Operation.FSYNC | Operation.FLUSH | Operation.DESTROY:
            return b""
        case _:
            return errno.ENOSYS
