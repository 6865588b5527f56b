"""A histogram as RocksDB prints one (`HistogramStat::ToString`): pure, nothing in it is believed.

db_bench prints one for each operation, `--statistics` with `stats` one for each level of the tree;
all look alike, and only the line before tells which it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from iolab.model.key_value import BinnedLatency, KeyOperation, LatencyBin

NS_PER_US: Final = 1000

BINS_LIMIT: Final = 256
"""Lines of bins taken: RocksDB has 109 up to 2^64."""

SENTENCE_LIMIT: Final = 200
"""Characters kept of a line that cannot be read."""


DB_BENCH_WORDS: Final[Mapping[str, KeyOperation]] = MappingProxyType(
    {
        **{
            operation.word: operation
            for operation in KeyOperation
            if KeyOperation.READ <= operation <= KeyOperation.HASH
        },
        "op": KeyOperation.OTHER,
    }
)
"""What db_bench calls each operation."""


class HistogramDraft:
    """One operation's histogram while it is read, line by line."""

    def __init__(self, operation: KeyOperation) -> None:
        self.operation = operation
        self.faults: list[str] = []
        self._counted: tuple[int, float, float] | None = None
        self._extremes: tuple[int, int] | None = None
        self._bins: list[LatencyBin] = []

    def take(self, line: str) -> bool:
        """One line; whether it belongs to the histogram."""
        if match := _COUNTED.fullmatch(line):
            self._counted = int(match[1]), float(match[2]), float(match[3])
        elif match := _EXTREMES.fullmatch(line):
            self._extremes = int(match[1]), int(match[2])
        elif match := _BIN.match(line):
            self._add_bin(int(match[1]), int(match[2]), int(match[3]))
        else:
            return line.startswith(("Percentiles:", "-----"))
        return True

    def latency(self) -> BinnedLatency | None:
        """The histogram is read; None when it is not whole, which `faults` then says."""
        word = self.operation.word
        if self._counted is None or self._extremes is None or not self._bins:
            self.faults.append(f"the histogram of {word} is cut short")
            return None
        count, mean, deviation = self._counted
        within = sum(one.count for one in self._bins)
        if within != count:
            self.faults.append(
                f"the bins of {word} hold {within} latencies, and its head says {count}"
            )
            return None
        low, high = self._extremes
        return BinnedLatency(
            operation=self.operation,
            count=count,
            mean_ns=mean * NS_PER_US,
            std_dev_ns=deviation * NS_PER_US,
            min_ns=low * NS_PER_US,
            max_ns=high * NS_PER_US,
            resolution_ns=NS_PER_US,
            bins=tuple(self._bins),
        )

    def _add_bin(self, low: int, high: int, count: int) -> None:
        last = self._bins[-1].high_ns if self._bins else 0
        if high <= low or low * NS_PER_US < last or count < 1 or len(self._bins) >= BINS_LIMIT:
            self.faults.append(
                f"a bin of {self.operation.word} reads ({low}, {high}] {count}"[:SENTENCE_LIMIT]
            )
            return
        self._bins.append(LatencyBin(low * NS_PER_US, high * NS_PER_US, count))


_WHOLE: Final = r"(\d{1,19})"
_REAL: Final = r"(\d{1,19}(?:\.\d{1,9})?)"
_COUNTED: Final = re.compile(rf"Count: {_WHOLE} +Average: {_REAL} +StdDev: {_REAL}")
_EXTREMES: Final = re.compile(rf"Min: {_WHOLE} +Median: \S{{1,30}} +Max: {_WHOLE}")
_BIN: Final = re.compile(rf"[\[(] *{_WHOLE}, *{_WHOLE} \] *{_WHOLE} ")
