"""One cell of db_bench on one host: started at its time, shown while it runs, read at its end."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from iolab.errors import EngineError
from iolab.model.engine import EngineName
from iolab.model.event import IntervalSeen
from iolab.model.packed import Packed
from iolab.model.run import PlannedRun
from iolab.run.common_start import Go, drive_between_looks
from iolab.run.crew import Crew
from iolab.run.engines.base import Command
from iolab.run.engines.db_bench_cell import Asked, Left, read_cell
from iolab.run.engines.db_bench_seconds import LiveProgress
from iolab.run.engines.log import IntervalLog
from iolab.run.evidence import Evidence
from iolab.run.key_value.fetching import fetched
from iolab.run.outcome import ending_fault
from iolab.run.start import offset_of
from iolab.units import format_bytes

REPORT_LIMIT_BYTES: Final = 4 << 20
"""A row of some 15 bytes each second, for three days."""

STDERR: Final = "db_bench.stderr"
REPORT: Final = "db_bench.report.csv"


@dataclass(frozen=True, slots=True)
class Cell:
    """What one host is to do: its command, where that leaves its report, and what is expected."""

    asked: Asked
    command: Command
    report: str


async def make_load(
    crew: Crew, run: PlannedRun, mine: Evidence, cell: Cell, go: Go, halt: asyncio.Event
) -> None:
    """Run the cell between two looks at the devices, and fill in the evidence however it ends.

    EngineError when it is not what was asked for, HostError when the host fails.
    """
    mine.command = cell.command
    heard = _Heard(crew, run, mine, cell)
    report: bytes | None = None
    try:
        await drive_between_looks(mine, cell.command, go, halt, heard.out, heard.err)
        report = await fetched(mine.site.host, cell.report, REPORT_LIMIT_BYTES)
    finally:
        heard.finish(report)
    fault = _out_of_memory(mine) or ending_fault(EngineName.DB_BENCH, mine)
    if fault:
        raise fault


class _Heard:
    """Keeps both streams, shows each second, and reads all of it at the end."""

    def __init__(self, crew: Crew, run: PlannedRun, mine: Evidence, cell: Cell) -> None:
        self._crew = crew
        self._run = run
        self._mine = mine
        self._cell = cell
        self._stdout = bytearray()
        self._stderr = bytearray()
        self._live = LiveProgress(cell.asked.job)

    def out(self, piece: bytes) -> None:
        """Take the next bytes of standard output."""
        self._stdout += piece

    def err(self, piece: bytes) -> None:
        """Take the next bytes of standard error."""
        self._stderr += piece
        now_ns = self._crew.clock.real_ns() + offset_of(self._mine).offset_ns
        entry_bytes = self._cell.asked.job.loaded.entry_bytes
        for second, ops_per_s in self._live.feed(piece, now_ns):
            self._crew.tell(
                IntervalSeen(
                    host=self._mine.name,
                    run=self._run,
                    elapsed_s=float(second),
                    iops=ops_per_s,
                    bw_bytes_per_s=ops_per_s * entry_bytes,
                    lat_ns_mean=None,
                )
            )

    def finish(self, report: bytes | None) -> None:
        """The process has ended, well or not."""
        mine, ending = self._mine, self._mine.ending
        stdout, stderr = bytes(self._stdout), bytes(self._stderr)
        mine.output = Packed.of(stdout)
        mine.files[STDERR] = Packed.of(stderr)
        if report is not None:
            mine.files[REPORT] = Packed.of(report)
        exited_ns = ending.exited.real_ns if ending else None
        left = Left(stdout, stderr, report, self._live.start_real_ns, exited_ns)
        halted = ending is None or ending.halted
        mine.reading, mine.key_value = read_cell(self._cell.asked, left, halted=halted)
        mine.intervals = IntervalLog.of(mine.reading.intervals)


def _out_of_memory(mine: Evidence) -> EngineError | None:
    """Whether the kernel killed it because its memory is bounded."""
    if mine.ending is None or mine.command is None or not mine.ending.exited.oom_kills:
        return None
    limit = format_bytes(mine.command.memory_limit_bytes or 0)
    happened = f"db_bench on host '{mine.name}' needed more than its {limit} and was killed."
    return EngineError(happened, "Give it more by workload.*.memory, or a smaller cache_size.")
