"""Little's law: throughput times latency is the mean number of I/Os in flight.

For a closed loop that keeps `iodepth` I/Os in flight in each job, rho = sum of X_d lat_d over the
directions, divided by the sum of the jobs' depths, is 1. As X_d lat_d = (ios/T)(lat_sum/ios), the
numerator is simply the sum of all latencies over the time. Source: Little 1961; the limits were
measured with libaio, where depth 32 gave -0.08 %, depth 8 -0.2 % and depth 1 -0.85 %.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from iolab.analyse.load import Load
from iolab.analyse.service import Service
from iolab.model.workload import Job

DEEP: Final = 4
"""From this depth a job hides its own gaps between I/Os, so the limits are tighter."""

GOOD_DEEP: Final = 0.02
"""|rho - 1| that is well within what engines lose between I/Os, at depth 4 and more."""

GOOD_SHALLOW: Final = 0.05
"""The same below depth 4, where every gap counts in full."""

TOLERABLE: Final = 2.0
"""Factor of the above up to which the deviation only needs saying; for shallow ones 10 %."""

TOLERABLE_DEEP: Final = 2.5
"""The same for deep ones: 5 %."""

PACING_OPTIONS: Final = ("thinktime", "rate")
"""Prefixes of engine options that open the loop: the queue is then meant to run empty."""


def is_closed_loop(job: Job) -> bool:
    """Whether the job is meant to keep `iodepth` I/Os in flight all the time."""
    paced = any(name.startswith(PACING_OPTIONS) for name, _ in job.options)
    return job.asked_iops is None and not paced


@dataclass(frozen=True, slots=True)
class Concurrency:
    """The mean I/Os in flight against those asked for.

    `edge` is what the window's edges may hide or add: an I/O that began before the window counts
    whole, one that ends after it not at all, so up to mean latency / window.
    """

    in_flight: float
    asked: int
    edge: float

    @property
    def rho(self) -> float:
        """In flight over asked."""
        return self.in_flight / self.asked


def concurrency(
    load: Load, host: int, asked: int, service: Service | None = None
) -> Concurrency | None:
    """One host's concurrency; None where it measured no I/O.

    Where `service` times are told, an I/O is in flight from its submission and not from when it was
    due.
    """
    seconds, ios = float(load.seconds[host]), int(load.ios[host].sum())
    if seconds <= 0 or ios == 0:
        return None
    waited_ns = load.lat_sum_ns if service is None else service.lat_sum_ns
    waited_s = float(waited_ns[host].sum()) / 1e9
    return Concurrency(waited_s / seconds, asked, waited_s / ios / seconds)


def good_limit(iodepth: int) -> float:
    """|rho - 1| up to which all is well, for jobs of this depth."""
    return GOOD_DEEP if iodepth >= DEEP else GOOD_SHALLOW


def tolerable_limit(iodepth: int) -> float:
    """|rho - 1| up to which the deviation is small enough to be only said."""
    factor = TOLERABLE_DEEP if iodepth >= DEEP else TOLERABLE
    return good_limit(iodepth) * factor
