"""The reader of a running fio: cumulative documents turned into exact intervals.

Each document counts from the start, so the difference of two is what happened between them, to
the I/O and to the bin, and the sum of all intervals is the last document. A document that cannot
be used is passed over with a fault; its I/Os then stand in the next interval.

Bytes are exact over the whole run only: while jobs wait for a slow device, a document counts them
earlier than its I/Os (seen with fio 3.33: 1.6 MiB an I/O in one second of a 1 MiB job, 0.9 in
another). In the record each interval has its I/Os' share of all bytes, which with a single block
size is what they moved.

Whether the host's clock was set is not told from here: fio's count of its own runtime stands still
while its jobs flush and close their files. The agent's clocks tell it (see the check clock-step).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np
from msgspec.structs import replace

from iolab.core.limits import SENTENCE_CHARACTERS_MAX
from iolab.core.run import EngineTotals
from iolab.core.workload import Direction
from iolab.hosts.engine import OutputFaults, ParsedEngineOutput
from iolab.hosts.intervals import DirectionInterval, Interval, IntervalLog
from iolab.loads.fileio.engines.fio_output import (
    DirectionProgress,
    DocumentError,
    FioDocument,
    JsonDocumentSplitter,
    parse_fio_document,
)
from iolab.record import Record
from iolab.units import NS_PER_MS


class FioOutputReader:
    """Reads what one fio process prints; see `OutputReader`.

    `directions` are those the job asks for, `jobs` how many it starts. `missing` looks at the last
    document and says what it lacks, None if nothing.
    """

    def __init__(
        self,
        directions: Sequence[Direction],
        job_count: int,
        missing: Callable[[FioDocument], str | None] = lambda _: None,
    ) -> None:
        self._directions = tuple(directions)
        self._jobs = job_count
        self._missing = missing
        self._splitter = JsonDocumentSplitter()
        self._faults = OutputFaults()
        self._intervals = IntervalLog()
        self._first: _JobStartAndRuntime | None = None
        self._last: FioDocument | None = None
        self._newest: FioDocument | None = None

    def feed(self, piece: bytes) -> list[Interval]:
        """Take the next bytes; the intervals that they complete."""
        return self._parse_and_add_documents(self._splitter.feed(piece))

    def finish(self) -> ParsedEngineOutput:
        """Everything that the output told."""
        self._parse_and_add_documents(self._splitter.finish())
        last = self._newest
        totals = self._engine_totals_or_add_fault(last) if last else None
        if last:
            self._add_end_faults(last)
        elif not self._faults:
            self._faults.add_fault("fio printed no report")
        if self._splitter.broken_count:
            self._faults.add_fault(f"fio broke off {self._splitter.broken_count} of its reports")
        words = "; ".join(self._splitter.message_lines)[:SENTENCE_CHARACTERS_MAX]
        if self._faults and words:
            self._faults.add_fault(f"it said: {words}")
        start_ns, end_ns = self._run_bounds_ns()
        kept = apportion_bytes_and_clip_to_run(self._intervals, start_ns, end_ns)
        return ParsedEngineOutput(
            version=last.version if last else "",
            start_real_ns=start_ns,
            end_real_ns=end_ns,
            intervals=kept or (),
            totals=totals,
            faults=tuple(self._faults),
        )

    def _engine_totals_or_add_fault(self, last_document: FioDocument) -> EngineTotals | None:
        try:
            return last_document.engine_totals(self._jobs, self._directions)
        except DocumentError as fault:
            self._faults.add_fault(str(fault))
            return None

    def _parse_and_add_documents(self, texts: Sequence[bytes]) -> list[Interval]:
        intervals: list[Interval] = []
        for text in texts:
            try:
                document = parse_fio_document(text)
                interval = self._take_interval_since_last(document)
                self._newest = document
            except DocumentError as fault:
                self._faults.add_fault(str(fault))
                continue
            if interval is not None:
                intervals.append(interval)
                self._intervals.append(interval)
        return intervals

    def _take_interval_since_last(self, document: FioDocument) -> Interval | None:
        """What the document adds to the one before; None while nothing has started."""
        before = self._last
        if before is None and document.runtime_ms == 0 and document.ios == 0:
            return None
        parts = tuple(
            _progress_difference(direction, before.progress[direction] if before else None, now)
            for direction, now in document.progress.items()
            if direction in self._directions or now.ios
        )
        start_ns = before.report_real_ns if before else _job_start_ns(document)
        if self._first is None or self._first.runtime_ms == 0:
            # On a starved host the first report has I/Os and no runtime yet: it tells no start.
            self._first = _job_start_and_runtime(document)
        self._last = document
        span_ns = max(document.report_real_ns - start_ns, 0)
        return Interval(len(self._intervals), document.report_real_ns, span_ns, parts)

    def _run_bounds_ns(self) -> tuple[int | None, int | None]:
        """The first and the last moment of the job's own run, as far as fio tells them."""
        first, last = self._first, self._last
        if first is None or last is None:
            return None, None
        if last.runtime_ms == 0:  # its jobs died without a word of how long they had run
            return first.start_ns, last.report_real_ns
        # A report made while jobs are ending counts their runtime twice; the last one is right.
        sure = first if first.runtime_ms <= last.runtime_ms else _job_start_and_runtime(last)
        start_ns = sure.start_ns
        end_ns = min(start_ns + last.runtime_ms * NS_PER_MS, last.report_real_ns)
        return start_ns, max(end_ns, start_ns)

    def _add_end_faults(self, last_document: FioDocument) -> None:
        if last_document.first_errno:
            name = errno.errorcode.get(last_document.first_errno)
            means = (
                f"{name}: {os.strerror(last_document.first_errno)}"
                if name
                else "of no known meaning"
            )
            self._faults.add_fault(f"fio stopped with error {last_document.first_errno} ({means})")
        if last_document.ios == 0:
            self._faults.add_fault("fio completed no I/O")
        unasked = [
            direction.key
            for direction, progress in last_document.progress.items()
            if progress.ios and direction not in self._directions
        ]
        if unasked:
            self._faults.add_fault(f"fio did what it was not asked for: {', '.join(unasked)}")
        lack = self._missing(last_document)
        if lack:
            self._faults.add_fault(lack)


def apportion_bytes_and_clip_to_run(
    interval_log: IntervalLog, start_ns: int | None, end_ns: int | None
) -> IntervalLog:
    """The record of the run: bytes shared out by I/Os, intervals within the run's bounds.

    The log is corrected in place wherever no interval has to be joined with another.
    """
    interval_log.replace_part_bytes(
        distribute_bytes_by_ios(interval_log.direction_ios_bytes_and_bin_count_rows.tolist())
    )
    if start_ns is None or end_ns is None or len(interval_log) == 0:
        return interval_log
    ends_ns = interval_log.seq_end_span_and_part_count_rows[:, 1].copy()
    begin_ns = int(ends_ns[-2]) if len(interval_log) > 1 else start_ns
    ends_ns[-1] = min(int(ends_ns[-1]), max(end_ns, begin_ns))
    spans_ns = np.diff(ends_ns, prepend=start_ns)
    if spans_ns.min() > 0:
        interval_log.replace_times(ends_ns, spans_ns)
        return interval_log
    return IntervalLog(clip_intervals_to_run(list(interval_log), start_ns, end_ns))


def distribute_bytes_by_ios(direction_rows: Sequence[Sequence[int]]) -> list[int]:
    """The bytes of each part (direction, I/Os, bytes, …) by its I/Os; the sums are kept."""
    sizes = [size for _, _, size, *_ in direction_rows]
    for way in {way for way, *_ in direction_rows}:
        places = [place for place, part in enumerate(direction_rows) if part[0] == way]
        done = list(accumulate(direction_rows[place][1] for place in places))
        moved = sum(sizes[place] for place in places)
        if done[-1]:
            until = [moved * count // done[-1] for count in done]
            for place, before, now in zip(places, [0, *until], until, strict=False):
                sizes[place] = now - before
    return sizes


def clip_intervals_to_run(
    intervals: Sequence[Interval], start_ns: int, end_ns: int
) -> tuple[Interval, ...]:
    """The intervals within the run's bounds: the record of the run.

    The first begins at the start; the last ends with the last I/O, not when fio printed it. An
    interval that has no length left (a report that raced with the last one) joins the one before.
    """
    kept: list[Interval] = []
    for interval in intervals:
        begin_ns = kept[-1].end_real_ns if kept else start_ns
        finish_ns = interval.end_real_ns
        if interval is intervals[-1]:
            finish_ns = min(finish_ns, max(end_ns, begin_ns))
        span_ns = finish_ns - begin_ns
        placed = (len(kept), finish_ns, max(span_ns, 0))
        if span_ns > 0 and placed == (interval.seq, interval.end_real_ns, interval.span_ns):
            kept.append(interval)
        elif span_ns > 0 or not kept:
            seq, end_real_ns, span = placed
            kept.append(replace(interval, seq=seq, end_real_ns=end_real_ns, span_ns=span))
        else:
            kept[-1] = _merged_interval(kept[-1], interval)
    return tuple(kept)


def _merged_interval(earlier: Interval, later: Interval) -> Interval:
    parts = {part.direction: part for part in earlier.directions}
    for part in later.directions:
        own = parts.get(part.direction)
        parts[part.direction] = _merged_direction_interval(own, part) if own else part
    return replace(earlier, directions=tuple(parts[key] for key in sorted(parts)))


def _merged_direction_interval(
    first: DirectionInterval, second: DirectionInterval
) -> DirectionInterval:
    bins, where = np.unique(np.concatenate([first.bins, second.bins]), return_inverse=True)
    counts = np.zeros(bins.size, dtype=np.int64)
    np.add.at(counts, where, np.concatenate([first.counts, second.counts]))
    return DirectionInterval(
        first.direction,
        first.ios + second.ios,
        first.bytes + second.bytes,
        first.lat_sum_ns + second.lat_sum_ns,
        bins,
        counts,
    )


def _progress_difference(
    direction: Direction, before: DirectionProgress | None, now: DirectionProgress
) -> DirectionInterval:
    """What completed between two documents. Raises DocumentError when a count went back."""
    counts = now.counts - before.counts if before else now.counts
    moved = now.bytes - (before.bytes if before else 0)
    lat_sum_ns = now.lat_sum_ns - (before.lat_sum_ns if before else 0.0)
    where = (counts != 0).nonzero()[0]
    changed = counts[where]
    if moved < 0 or (changed.size and changed.min() < 0):
        raise DocumentError(f"fio's counts of '{direction.key}' went back")
    ios = int(changed.sum())
    # Two rounded means leave a remainder of nanoseconds, of either sign, where nothing completed.
    lat_sum_ns = max(lat_sum_ns, 0.0) if ios else 0.0
    return DirectionInterval(direction, ios, moved, lat_sum_ns, where.astype(np.int16), changed)


class _JobStartAndRuntime(Record):
    """When the job started and how long it had run, as one document tells it."""

    start_ns: int
    runtime_ms: int


def _job_start_and_runtime(document: FioDocument) -> _JobStartAndRuntime:
    return _JobStartAndRuntime(_job_start_ns(document), document.runtime_ms)


def _job_start_ns(document: FioDocument) -> int:
    """When the job started: as printed, else the document's time less the runtime in it."""
    if document.job_start_ms is not None:
        return document.job_start_ms * NS_PER_MS
    return document.report_real_ns - document.runtime_ms * NS_PER_MS
