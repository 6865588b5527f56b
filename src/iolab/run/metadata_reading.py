"""What an agent tells of a metadata phase, as intervals and as the phase's account: pure."""

from __future__ import annotations

import numpy as np

from iolab.model.histogram import MIDDLE_NS, of_sparse
from iolab.model.metadata import MetadataJob, Operation, OperationRun
from iolab.model.sample import narrow
from iolab.run.engines.base import DirectionInterval, Interval
from iolab.run.hosts.answers import MeasuredAnswer, MetadataIntervalAnswer
from iolab.run.metadata_ranks import Share

MOVING = frozenset({Operation.FILE_CREATE, Operation.FILE_READ})
"""Operations that move a file's bytes."""


class PhaseReader:
    """Takes one host's messages of one phase; `first_seq` is the number of its first interval."""

    def __init__(
        self, job: MetadataJob, share: Share, operation: Operation, first_seq: int
    ) -> None:
        self._job = job
        self._share = share
        self._operation = operation
        self._seq = first_seq
        self.intervals: list[Interval] = []

    def take(self, told: MetadataIntervalAnswer) -> Interval:
        """The next interval. ValueError when it contradicts itself."""
        counts = of_sparse(*_columns(told.bins))
        if int(counts.sum()) != told.ops:
            raise ValueError(f"its bins hold {int(counts.sum())} of {told.ops} operations")
        if told.to_real_ns < told.from_real_ns:
            raise ValueError("it ends before it begins")
        bins = np.flatnonzero(counts)
        part = DirectionInterval(
            direction=self._operation,
            ios=told.ops,
            bytes=told.ops * self._job.file_bytes if self._operation in MOVING else 0,
            lat_sum_ns=float(counts @ MIDDLE_NS),
            bins=narrow(bins),
            counts=narrow(counts[bins]),
        )
        span_ns = told.to_real_ns - told.from_real_ns
        interval = Interval(self._seq, told.to_real_ns, span_ns, (part,))
        self._seq += 1
        self.intervals.append(interval)
        return interval

    def finish(self, told: MeasuredAnswer) -> OperationRun:
        """The phase's account; ValueError when it is not what was asked, or not the sum of all.

        The intervals' latency sums, until then the bins' midpoints, are scaled to the exact total.
        """
        asked = _asked(self._job, self._share, self._operation)
        failed = sum(told.errors.values())
        if told.phase != self._operation.word:
            raise ValueError(f"it is of phase {told.phase[:40]!r}")
        if told.ops + failed + told.skipped != asked:
            parts = f"{told.ops} done, {failed} failed, {told.skipped} skipped"
            raise ValueError(f"{parts} are not the {asked} that were asked for")
        self._compare(told)
        self._scale(told.latency_sum_ns)
        return OperationRun(
            operation=self._operation,
            asked=asked,
            done=told.ops,
            errors=tuple(sorted(told.errors.items())),
            skipped=told.skipped,
            first_start_real_ns=told.first_start_real_ns,
            last_start_real_ns=told.last_start_real_ns,
            first_end_real_ns=told.first_end_real_ns,
            last_end_real_ns=told.last_end_real_ns,
            lat_min_ns=told.latency_min_ns,
            lat_max_ns=told.latency_max_ns,
            preemptions=told.preemptions,
        )

    def _compare(self, told: MeasuredAnswer) -> None:
        total = of_sparse(*_columns(told.bins))
        for interval in self.intervals:
            for part in interval.directions:
                total -= of_sparse(part.bins, part.counts)
        done = sum(interval.ios for interval in self.intervals)
        if done != told.ops:
            raise ValueError(f"its intervals hold {done} of {told.ops} operations")
        if total.any():
            raise ValueError("its intervals hold other latencies")

    def _scale(self, exact_ns: int) -> None:
        parts = [part for interval in self.intervals for part in interval.directions]
        rough_ns = sum(part.lat_sum_ns for part in parts)
        factor = exact_ns / rough_ns if rough_ns else 1.0
        self.intervals = [
            Interval(one.seq, one.end_real_ns, one.span_ns, (_scaled(one.directions[0], factor),))
            for one in self.intervals
        ]


def _asked(job: MetadataJob, share: Share, operation: Operation) -> int:
    trees = operation in (Operation.TREE_CREATE, Operation.TREE_REMOVE)
    return share.ranks * (1 if trees else job.files_per_rank)


def _scaled(part: DirectionInterval, factor: float) -> DirectionInterval:
    return DirectionInterval(
        part.direction, part.ios, part.bytes, part.lat_sum_ns * factor, part.bins, part.counts
    )


def _columns(bins: tuple[tuple[int, int], ...]) -> tuple[list[int], list[int]]:
    return [number for number, _ in bins], [count for _, count in bins]
