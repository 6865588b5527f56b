"""Logs that fio writes beside its report: rates, latencies and bins, window by window."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from typing import Final

from iolab.core.bins import BIN_COUNT
from iolab.dataclass import dataclass
from iolab.importers.files import Folder, ForeignFault, ForeignFile
from iolab.importers.model import Bins, ImportedSecond
from iolab.units import NS_PER_MS

_WAYS: Final = ("read", "write", "trim")

_KINDS: Final = {
    "iops": "write_iops_log",
    "bw": "write_bw_log",
    "lat": "write_lat_log",
    "clat": "write_lat_log",
    "slat": "write_lat_log",
    "clat_hist": "write_hist_log",
}
"""How files end, and the option that asks for them."""


@dataclass(frozen=True, slots=True)
class Logs:
    """What the logs of one job tell."""

    seconds: tuple[ImportedSecond, ...] = ()
    bins: Mapping[str, Bins] = field(default_factory=dict)


Rows = dict[tuple[str, int], float]
"""Values by direction and the end of their window in ms."""


def read(
    file: ForeignFile, folder: Folder, job: str, options: Mapping[str, str], *, alone: bool
) -> Logs:
    """The logs of the report's job, by the names that its options give them.

    Where the report has several jobs, those of the name that the job's own options give.
    """
    logs = {kind: _files(file, folder, job, options, kind, alone=alone) for kind in _KINDS}
    rates, spans = _summed(logs["iops"])
    moved, _ = _summed(logs["bw"])
    waits, _ = _summed(logs["lat"], mean=True)
    seconds = tuple(
        ImportedSecond(
            way,
            end * NS_PER_MS,
            spans[way, end] * NS_PER_MS,
            round(rate * spans[way, end] / 1000),
            round(moved.get((way, end), 0.0) * 1024 * spans[way, end] / 1000),
            waits.get((way, end), 0.0) * rate * spans[way, end] / 1000,
        )
        for (way, end), rate in sorted(rates.items(), key=lambda row: row[0][1])
        if spans[way, end] > 0
    )
    return Logs(seconds, _histogram(logs["clat_hist"]))


def _files(
    file: ForeignFile,
    folder: Folder,
    job: str,
    options: Mapping[str, str],
    kind: str,
    *,
    alone: bool,
) -> list[ForeignFile]:
    option = _KINDS[kind]
    if option not in options or (not alone and options[option] not in ("", job)):
        return []
    prefix = options[option].rsplit("/", 1)[-1] or job
    pattern = re.compile(rf"{re.escape(prefix)}_{kind}(?:\.\d+)?\.log")
    return [folder.use(log) for log in folder.beside(file, pattern)]


def _lines(file: ForeignFile) -> Iterator[list[int]]:
    for place, line in enumerate(file.lines, start=1):
        try:
            yield [int(part) for part in line.replace("0x", "").split(",")] if line.strip() else []
        except ValueError:
            raise ForeignFault(f"line {place} of {file.name} is no line of a log.") from None


def _summed(
    files: Sequence[ForeignFile], *, mean: bool = False
) -> tuple[Rows, dict[tuple[str, int], int]]:
    """Values of all jobs together, in windows as long as the logs' own."""
    each = [
        (way, row[0], row[1])
        for file in files
        for row in _lines(file)
        if len(row) >= 3 and 0 <= row[2] < len(_WAYS)
        for way in (_WAYS[row[2]],)
    ]
    window = _window(files)
    totals: Rows = {}
    counts: dict[tuple[str, int], int] = {}
    for way, at, value in each:
        key = way, max(round(at / window), 1) * window
        totals[key] = totals.get(key, 0.0) + value
        counts[key] = counts.get(key, 0) + 1
    if mean:
        totals = {key: value / counts[key] for key, value in totals.items()}
    return totals, dict.fromkeys(totals, window)


def _window(files: Sequence[ForeignFile]) -> int:
    """The usual time between two lines of one direction, in ms."""
    gaps: list[int] = []
    for file in files:
        for way in range(len(_WAYS)):
            times = [row[0] for row in _lines(file) if len(row) > 2 and row[2] == way]
            gaps += [b - a for a, b in pairwise(times) if b > a]
    gaps.sort()
    return max(gaps[len(gaps) // 2], 1) if gaps else 1000


def _histogram(files: Sequence[ForeignFile]) -> dict[str, Bins]:
    """The bins of all windows together; none where they were made coarser than json+'s."""
    histograms: dict[str, dict[int, int]] = {}
    for file in files:
        for row in _lines(file):
            if not row:
                continue
            bins = row[3:]
            if len(bins) != BIN_COUNT or not 0 <= row[1] < len(_WAYS):
                return {}
            own = histograms.setdefault(_WAYS[row[1]], {})
            for place, count in enumerate(bins):
                if count > 0:
                    own[place] = own.get(place, 0) + count
    return dict(histograms)
