"""One JSON document of fio (`json+`, 3.16 and newer) read into exact cumulative counts.

Completed I/Os are the sum of the latency bins (`lat_ns.bins`); fio's `total_ios` counts what was
issued. The sum of latencies is their mean times that count. A document of several groups is
refused: groups ran one after another, and their counts must not be added.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import orjson

from iolab.model.histogram import BIN_COUNT, MIDDLE_NS, Counts
from iolab.model.run import DirectionTotals, EngineTotals
from iolab.model.sample import Direction
from iolab.run.engines.fio_totals import direction_totals, engine_totals

NS_PER_MS: Final = 1_000_000

INTEGER_LIMIT: Final = 1 << 63
"""Counts, bytes and times fit 64 bits with a sign, as the tables keep them."""

MS_LIMIT: Final = INTEGER_LIMIT // NS_PER_MS
"""Milliseconds that still fit as nanoseconds: the year 2262."""

SHOWN_LIMIT: Final = 60
"""Characters of a nonsense value in a sentence."""

NAMES: Final = {
    Direction.READ: "read",
    Direction.WRITE: "write",
    Direction.TRIM: "trim",
}

_NO_NUMBER: Final = re.compile(rb":\s*[-+]?(?:nan|inf)\b", re.IGNORECASE)
"""fio prints C's `nan` and `inf` where it divided by nothing; JSON knows neither."""


class DocumentFault(Exception):
    """A document that cannot be used; the message is a sentence."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What one direction completed since the start: `counts` of shape (BIN_COUNT,)."""

    counts: Counts
    bytes: int
    lat_sum_ns: float
    runtime_ms: int

    @property
    def ios(self) -> int:
        """I/Os completed."""
        return int(self.counts.sum())


@dataclass(frozen=True, slots=True)
class Document:
    """All that we use of a document; times are CLOCK_REALTIME of the host.

    `job_start_ms` is None where this version of fio does not print it. `error` is the first errno
    of any job, 0 for none. `text` is the document itself: its parsed form is ten times as large,
    and is not kept, since every host of a fleet has one.
    """

    version: str
    at_ns: int
    job_start_ms: int | None
    error: int
    progress: Mapping[Direction, Progress]
    text: bytes

    @property
    def runtime_ms(self) -> int:
        """How long the direction that ran longest has run."""
        return max(part.runtime_ms for part in self.progress.values())

    @property
    def ios(self) -> int:
        """I/Os completed since the start."""
        return sum(part.ios for part in self.progress.values())

    def totals(self, jobs: int, directions: Sequence[Direction]) -> EngineTotals:
        """The engine's own figures for the run that ends with this document.

        Raises DocumentFault when one of them is a number that cannot be kept.
        """
        printed = _jobs(_parsed(self.text))
        parts: dict[Direction, DirectionTotals | None] = {}
        for direction in Direction:
            blocks = [job[NAMES[direction]] for job in printed]
            progress = self.progress[direction]
            asked = direction in directions or progress.ios > 0
            parts[direction] = _totals(blocks, progress.counts) if asked else None
        return engine_totals(printed, parts, error=self.error, jobs=jobs)


def read_document(text: bytes) -> Document:
    """The document in `text`. Raises DocumentFault with a sentence."""
    root = _parsed(text)
    jobs = _jobs(root)
    groups = {job.get("groupid", 0) for job in jobs}
    if len(groups) > 1:
        raise DocumentFault(
            f"fio reported {len(groups)} groups, which ran apart; their counts are not added up"
        )
    starts = [int(_number(job, "job_start", MS_LIMIT)) for job in jobs if "job_start" in job]
    errors = [int(_number(job, "error")) for job in jobs]
    return Document(
        version=str(root.get("fio version", "")),
        at_ns=int(_number(root, "timestamp_ms", MS_LIMIT)) * NS_PER_MS,
        job_start_ms=min((start for start in starts if start > 0), default=None),
        error=next((error for error in errors if error), 0),
        progress={direction: _progress(jobs, name) for direction, name in NAMES.items()},
        text=text,
    )


def _jobs(root: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    jobs = root.get("jobs")
    if not isinstance(jobs, list) or not jobs or not all(isinstance(job, dict) for job in jobs):
        raise DocumentFault("fio printed a report without jobs")
    return jobs


def _totals(blocks: Sequence[Mapping[str, Any]], counts: Counts) -> DirectionTotals:
    try:
        totals = direction_totals(blocks, counts)
    except OverflowError:
        raise DocumentFault("fio printed a report with a number that is none") from None
    # Numbers are checked here, and not by a function that is called for each while they are read:
    # a report every second on a thousand hosts has a million of them.
    for name in _COUNTED:
        if not 0 <= getattr(totals, name) < INTEGER_LIMIT:
            raise DocumentFault(f"fio printed a report whose {name} cannot be counted")
    return totals


_COUNTED: Final = (
    "ios",
    "bytes",
    "runtime_ms",
    "lat_min_ns",
    "lat_max_ns",
    "short_ios",
    "dropped_ios",
)
"""Fields of the totals that are kept in 64 bits."""


def _parsed(text: bytes) -> Mapping[str, Any]:
    """The report; the quick and strict parser first, then the one that forgives fio's slips."""
    for parse in (orjson.loads, _forgiving, _forgiving_no_number):
        try:
            root = parse(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(root, dict):
            return root
    raise DocumentFault(f"fio printed a report that is not JSON ({len(text)} bytes)")


def _forgiving(text: bytes) -> object:
    return json.loads(text.decode("utf-8", "replace"), parse_constant=lambda _: None)


def _forgiving_no_number(text: bytes) -> object:
    return _forgiving(_NO_NUMBER.sub(b": null", text))


def _progress(jobs: Sequence[Mapping[str, Any]], name: str) -> Progress:
    """One direction of all jobs of the group, which ran side by side."""
    counts = _NOTHING
    moved, lat_sum, runtime = 0, 0.0, 0
    for job in jobs:
        block = job.get(name)
        if not isinstance(block, dict):
            raise DocumentFault(f"fio printed a report without '{name}'")
        mine, mean = _latencies(block, name)
        if mine is not _NOTHING:
            counts = mine if counts is _NOTHING else counts + mine
            lat_sum += mean * int(mine.sum())
        moved += int(_number(block, "io_bytes"))
        runtime = max(runtime, int(_number(block, "runtime", MS_LIMIT)))
    return Progress(counts, moved, lat_sum, runtime)


def _latencies(block: Mapping[str, Any], name: str) -> tuple[Counts, float]:
    """The dense bins of one job's direction and the mean latency in ns."""
    latency = block.get("lat_ns")
    if not isinstance(latency, dict):
        raise DocumentFault(f"fio printed no latencies for '{name}'")
    bins = latency.get("bins") or {}
    if not isinstance(bins, dict):
        raise DocumentFault(f"fio printed no latency bins for '{name}'")
    if not bins:
        samples = _number(latency, "N") if "N" in latency else 0
        if samples > 0:
            raise DocumentFault(f"fio counted {samples} latencies for '{name}' and printed no bins")
        return _NOTHING, 0.0
    counts = np.zeros(BIN_COUNT, dtype=np.int64)
    try:
        where = np.fromiter(map(_BIN_OF.__getitem__, bins), dtype=np.int64, count=len(bins))
        counts[where] = _whole(list(bins.values()))
    except (KeyError, ValueError, TypeError, OverflowError):
        raise DocumentFault(f"fio printed latency bins for '{name}' that are not its own") from None
    if not counts.any():
        return _NOTHING, 0.0
    return counts, float(_number(latency, "mean"))


def _whole(values: Sequence[object]) -> Counts:
    """The values as counts; ValueError for a fraction or more than 64 bits, which numpy bends."""
    found = np.array(values)
    if found.dtype.kind != "i":
        raise ValueError("not whole numbers of 64 bits")
    return found


_BIN_OF: Final = {str(middle): index for index, middle in enumerate(MIDDLE_NS.tolist())}
"""The bin of each midpoint as fio prints it."""

_NOTHING: Final = np.zeros(BIN_COUNT, dtype=np.int64)
"""The counts of a direction in which nothing completed: one array for all of them."""
_NOTHING.setflags(write=False)


def _number(block: Mapping[str, Any], key: str, limit: int = INTEGER_LIMIT) -> int | float:
    value = block.get(key)
    if isinstance(value, int | float) and 0 <= value < limit:
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # the parser makes a float of what is beyond 64 bits
    shown = repr(value)[:SHOWN_LIMIT]
    raise DocumentFault(f"fio printed a report whose '{key}' is {shown}, not a number it can be")
