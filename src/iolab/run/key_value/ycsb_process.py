"""What one process of YCSB prints, kept within limits and shown while it comes."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from iolab.model.event import IntervalSeen
from iolab.model.packed import Packed
from iolab.model.run import PlannedRun
from iolab.run.crew import Crew
from iolab.run.drive import STDERR_TAIL_BYTES, Ending
from iolab.run.engines.ycsb_status import StatusReader, without_status

KEPT_BYTES: Final = 16 << 20
"""Of each stream: a status line of half a kB for each second of nine hours."""


class Printed:
    """Hears both streams of a process; the live view gets an event for each status line."""

    def __init__(self, crew: Crew, run: PlannedRun, host: str, record_bytes: int) -> None:
        self.stdout = bytearray()
        self.stderr = bytearray()
        self._crew = crew
        self._run = run
        self._host = host
        self._record_bytes = record_bytes
        self._status = StatusReader()

    def out(self, piece: bytes) -> None:
        """Take the next bytes of standard output."""
        self.stdout += piece[: KEPT_BYTES - len(self.stdout)]

    def err(self, piece: bytes) -> None:
        """Take the next bytes of standard error."""
        self.stderr += piece[: KEPT_BYTES - len(self.stderr)]
        for status in self._status.feed(piece):
            self._crew.tell(
                IntervalSeen(
                    host=self._host,
                    run=self._run,
                    elapsed_s=float(status.elapsed_s),
                    iops=status.ops_per_s,
                    bw_bytes_per_s=status.ops_per_s * self._record_bytes,
                    lat_ns_mean=status.lat_ns_mean,
                )
            )

    def without_status(self, ending: Ending) -> Ending:
        """How the process ended, with the last words that are no status line."""
        words = without_status(bytes(self.stderr))[-STDERR_TAIL_BYTES:]
        return replace(ending, stderr_tail=words.decode("utf-8", "replace"))

    @property
    def packed(self) -> tuple[Packed, Packed]:
        """Both streams for the record."""
        return Packed.of(bytes(self.stdout)), Packed.of(bytes(self.stderr))
