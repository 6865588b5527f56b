"""What one short run of an engine came to: counted on each host, and put together over hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from iolab.errors import EngineError
from iolab.model.calibration import Trial
from iolab.model.engine import EngineName
from iolab.model.histogram import BIN_COUNT, Counts, Histogram
from iolab.model.sample import ServiceTime
from iolab.run.drive import Ending
from iolab.run.engines.base import NS_PER_S, EngineReading

PERCENTS: Final = (50.0, 99.0)


@dataclass(frozen=True, slots=True)
class Tally:
    """Every I/O of a run on one host: how many, over what time, how long they waited, at what cost.

    `bins` are their latencies in fio's bins.
    """

    ios: int
    span_ns: int
    waited_ns: float
    bins: Counts
    cpu_s: float


def tally_of(name: EngineName, reading: EngineReading, ending: Ending, do: str) -> Tally:
    """The whole run, over the time that all its intervals cover.

    EngineError, which says what to `do`, without any I/O.
    """
    bins = np.zeros(BIN_COUNT, dtype=np.int64)
    ios, span_ns, waited_ns = 0, 0, 0.0
    for interval in reading.intervals:
        span_ns += interval.span_ns
        for part in interval.directions:
            if isinstance(part.direction, ServiceTime):
                continue
            ios += part.ios
            waited_ns += part.lat_sum_ns
            np.add.at(bins, part.bins.astype(np.int64), part.counts)
    if not ios or not span_ns:
        raise EngineError(f"{name} completed no I/O.", do)
    cpu_s = ending.exited.user_s + ending.exited.system_s
    return Tally(ios, span_ns, waited_ns, bins, cpu_s)


def trial_of(engine: EngineName, pair: int, tallies: Sequence[Tally]) -> Trial:
    """One host's run, or that of several at once: rates add up, percentiles are those of all I/Os.

    Each host's rate is over its own time, so that none that ended late dilutes the others.
    """
    ios = sum(one.ios for one in tallies)
    histogram = Histogram(np.sum([one.bins for one in tallies], axis=0))
    p50, p99 = (histogram.percentile_ns(percent) or 0.0 for percent in PERCENTS)
    return Trial(
        engine=engine,
        pair=pair,
        iops=sum(one.ios * NS_PER_S / one.span_ns for one in tallies),
        lat_ns_mean=sum(one.waited_ns for one in tallies) / ios,
        lat_ns_p50=p50,
        lat_ns_p99=p99,
        cpu_ns_per_io=sum(one.cpu_s for one in tallies) * NS_PER_S / ios,
    )
