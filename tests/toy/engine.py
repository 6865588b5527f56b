"""The toy's engine: `appends.py`, which each host's Python gets on its standard input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import numpy as np

from iolab.core.engine import EngineName
from iolab.core.histogram import bin_index_of_ns
from iolab.core.host import ToolFacts
from iolab.core.run import DirectionTotals, EngineTotals
from iolab.core.workload import Direction
from iolab.errors import EngineError
from iolab.hosts.engine import Command, OutputReader, ParsedEngineOutput
from iolab.hosts.intervals import DirectionInterval, Interval
from iolab.session.kinds import LoadSessionKind
from iolab.units import NS_PER_S
from tests.toy.kind import APPEND_ENGINE, AppendJob

PROGRAM: Final = Path(__file__).with_name("appends.py")
END_LIMIT_S: Final = 30.0
OUTPUT_LIMIT_BYTES: Final = 1 << 30


class AppendEngine:
    """`appends.py`; see `SingleProcessEngine`."""

    name: EngineName = APPEND_ENGINE

    def require_usable(self, tool: ToolFacts) -> None:
        """EngineError where there is no Python."""
        if tool.path is None:
            raise EngineError("There is no python3.", "Install it there.")

    def build_command(
        self,
        job: AppendJob,
        directory: str,
        *,
        seconds: float,
        seed: int,
    ) -> Command:
        """The process of one host; nothing is drawn."""
        return Command(
            argv=("python3", "-", str(job.block_bytes), str(seconds)),
            cwd=directory,
            stdin=PROGRAM.read_bytes(),
            job_file=f"block_bytes={job.block_bytes} seconds={seconds}",
            wall_limit_s=seconds + END_LIMIT_S,
            output_limit_bytes=OUTPUT_LIMIT_BYTES,
        )

    def create_output_reader(self, job: AppendJob) -> OutputReader:
        """What reads its lines."""
        return AppendReader(job)


class AppendReader:
    """Makes intervals of lines; see `OutputReader`."""

    def __init__(self, job: AppendJob) -> None:
        self._block_bytes = job.block_bytes
        self._rest = b""
        self._found: list[Interval] = []
        self._totals: EngineTotals | None = None
        self._faults: list[str] = []

    def feed(self, piece: bytes) -> list[Interval]:
        """The intervals of the lines that end in this piece."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        before = len(self._found)
        for line in lines:
            try:
                self._take(json.loads(line))
            except (ValueError, TypeError, LookupError, ZeroDivisionError):
                self._faults.append(f"it printed {line[:40]!r}")
        return self._found[before:]

    def finish(self) -> ParsedEngineOutput:
        """All intervals, and when the first began and the last ended."""
        found = self._found
        return ParsedEngineOutput(
            version="appends 1",
            start_real_ns=found[0].end_real_ns - found[0].span_ns if found else None,
            end_real_ns=found[-1].end_real_ns if found else None,
            intervals=found,
            totals=self._totals,
            faults=tuple(self._faults[:1] or ["its last line is cut off"] * bool(self._rest)),
        )

    def _take(self, numbers: Any) -> None:
        if isinstance(numbers[-1], list):
            self._found.append(self._interval(*numbers))
        else:
            self._totals = self._whole(*numbers)

    def _interval(self, end_ns: int, span_ns: int, latencies: list[int]) -> Interval:
        bins, counts = np.unique(bin_index_of_ns(latencies), return_counts=True)
        appends = DirectionInterval(
            direction=Direction.WRITE,
            ios=len(latencies),
            bytes=len(latencies) * self._block_bytes,
            lat_sum_ns=float(sum(latencies)),
            bins=bins,
            counts=counts,
        )
        return Interval(len(self._found), end_ns, span_ns, (appends,))

    def _whole(
        self, count: int, total_ns: int, low_ns: int, high_ns: int, user_s: float, system_s: float
    ) -> EngineTotals:
        seconds = sum(one.span_ns for one in self._found) / NS_PER_S
        moved = count * self._block_bytes
        appends = DirectionTotals(
            ios=count,
            bytes=moved,
            runtime_ms=round(seconds * 1000),
            iops=count / seconds,
            bw_bytes_per_s=moved / seconds,
            lat_min_ns=low_ns,
            lat_max_ns=high_ns,
            lat_mean_ns=total_ns / count,
            slat_mean_ns=0.0,  # a write returns when it is done
            clat_mean_ns=total_ns / count,
            percentiles=(),
            short_ios=0,
            dropped_ios=0,
        )
        return EngineTotals(
            read=None,
            write=appends,
            depth_percent=(),
            user_cpu_percent=100 * user_s / seconds,
            system_cpu_percent=100 * system_s / seconds,
            error=0,
            jobs=1,
        )


SESSION: Final = LoadSessionKind.for_engines(AppendEngine())
