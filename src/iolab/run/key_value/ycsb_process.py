"""What one process of YCSB prints, kept within limits and read while it comes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from iolab.errors import EngineError
from iolab.model.packed import Packed
from iolab.run.drive import STDERR_TAIL_BYTES, Ending
from iolab.run.engines.base import Command
from iolab.run.engines.ycsb_status import StatusReader, YcsbStatus, without_status
from iolab.units import format_bytes

KEPT_BYTES: Final = 16 << 20
"""Of each stream: a status line of half a kB for each second of nine hours."""


Hear = Callable[[YcsbStatus], None]
"""Takes each status line when it comes."""


class Printed:
    """Keeps both streams of a process, and reads its status lines while they come."""

    def __init__(self, hear: Hear) -> None:
        self.stdout = bytearray()
        self.stderr = bytearray()
        self._hear = hear
        self._status = StatusReader()

    def out(self, piece: bytes) -> None:
        """Take the next bytes of standard output."""
        self.stdout += piece[: KEPT_BYTES - len(self.stdout)]

    def err(self, piece: bytes) -> None:
        """Take the next bytes of standard error."""
        self.stderr += piece[: KEPT_BYTES - len(self.stderr)]
        for status in self._status.feed(piece):
            self._hear(status)

    def without_status(self, ending: Ending) -> Ending:
        """How the process ended, with the last words that are no status line."""
        words = without_status(bytes(self.stderr))[-STDERR_TAIL_BYTES:]
        return replace(ending, stderr_tail=words.decode("utf-8", "replace"))

    @property
    def packed(self) -> tuple[Packed, Packed]:
        """Both streams for the record."""
        return Packed.of(bytes(self.stdout)), Packed.of(bytes(self.stderr))


def out_of_memory(host: str, command: Command, ending: Ending) -> EngineError | None:
    """Whether the kernel killed a client because its memory is bounded."""
    if not ending.exited.oom_kills or command.memory_limit_bytes is None:
        return None
    limit = format_bytes(command.memory_limit_bytes)
    return EngineError(
        f"YCSB on host '{host}' needed more than its {limit} and was killed.",
        "Give it more by workload.*.memory, or a smaller heap or cache_bytes by workload.*.ycsb.",
    )
