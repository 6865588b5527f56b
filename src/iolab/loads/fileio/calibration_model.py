"""What a comparison of the engines of files is asked for, and what it measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from iolab.core.bins import BIN_COUNT
from iolab.core.engine import EngineName
from iolab.core.histogram import Counts, Histogram
from iolab.errors import EngineError, Fault, UsageError
from iolab.hosts.engine import EngineReading
from iolab.hosts.intervals import SERVICE_TIMES
from iolab.hosts.remote_process import ProcessEnding
from iolab.loads.fileio.engine_facts import FIO_ENGINE
from iolab.loads.fileio.workload import IOENGINES, SECTOR_BYTES, SYNC_IOENGINES, Access, Job
from iolab.record import Record
from iolab.units import NS_PER_S, parse_size

PERCENTS: Final = (50.0, 99.0)


class Trial(Record):
    """One run of one engine; latencies and CPU time in ns, CPU for each I/O."""

    engine: EngineName
    pair: int
    iops: float
    lat_ns_mean: float
    lat_ns_p50: float
    lat_ns_p99: float
    cpu_ns_per_io: float


class EngineRunSums(Record):
    """Every I/O of a run on one host: how many, over what time, how long they waited, at what cost.

    `bins` are their latencies in fio's bins.
    """

    ios: int
    span_ns: int
    lat_sum_ns: float
    bins: Counts
    cpu_s: float


def engine_run_totals(
    name: EngineName, reading: EngineReading, ending: ProcessEnding, hint: str
) -> EngineRunSums:
    """The whole run, over the time that all its intervals cover.

    EngineError, which says what to `do`, without any I/O.
    """
    bins = np.zeros(BIN_COUNT, dtype=np.int64)
    ios, span_ns, waited_ns = 0, 0, 0.0
    for interval in reading.intervals:
        span_ns += interval.span_ns
        for part in interval.directions:
            if part.direction in SERVICE_TIMES:
                continue
            ios += part.ios
            waited_ns += part.lat_sum_ns
            np.add.at(bins, part.bins.astype(np.int64), part.counts)
    if not ios or not span_ns:
        raise EngineError(f"{name} completed no I/O.", hint)
    cpu_s = ending.exited.user_s + ending.exited.system_s
    return EngineRunSums(ios, span_ns, waited_ns, bins, cpu_s)


def build_trial(engine: EngineName, pair: int, totals: Sequence[EngineRunSums]) -> Trial:
    """One host's run, or that of several at once: rates add up, percentiles are those of all I/Os.

    Each host's rate is over its own time, so that none that ended late dilutes the others.
    """
    ios = sum(tally.ios for tally in totals)
    histogram = Histogram(np.sum([tally.bins for tally in totals], axis=0))
    p50, p99 = (histogram.percentile_ns(percent) or 0.0 for percent in PERCENTS)
    return Trial(
        engine=engine,
        pair=pair,
        iops=sum(tally.ios * NS_PER_S / tally.span_ns for tally in totals),
        lat_ns_mean=sum(tally.lat_sum_ns for tally in totals) / ios,
        lat_ns_p50=p50,
        lat_ns_p99=p99,
        cpu_ns_per_io=sum(tally.cpu_s for tally in totals) * NS_PER_S / ios,
    )


class HostCalibration(Record):
    """One host's part: its runs in their order, and what each engine made of nothing there.

    `versions` are those of the engines, `methods` how each spoke to the kernel. `job` is what that
    host did, which may have another number of jobs than elsewhere.
    """

    host: str
    job: Job
    trials: tuple[Trial, ...]
    ceilings: Mapping[EngineName, float | None]
    versions: Mapping[EngineName, str]
    methods: Mapping[EngineName, str]


class Calibration(Record):
    """All hosts, and their runs together: rates added up, latencies over the I/Os of all.

    All hosts ran one engine at a time, from one moment on.
    """

    job: Job
    hosts: tuple[HostCalibration, ...]
    trials: tuple[Trial, ...]

    @property
    def ceilings(self) -> Mapping[EngineName, float | None]:
        """What each engine made of nothing on all hosts at once; None where one could not."""
        every = [host.ceilings for host in self.hosts]
        return {
            engine: None
            if None in (parts := [ceilings[engine] for ceilings in every])
            else _sum_of_known(parts)
            for engine in every[0]
        }


def _sum_of_known(parts: list[float | None]) -> float:
    return sum(part for part in parts if part is not None)


def job_from_options(rw: str, bs: str, iodepth: int, numjobs: int, ioengine: str, size: str) -> Job:
    """The job that both do, as options of the command line ask; UsageError with every fault."""
    faults: list[Fault] = []
    patterns = [access.value for access in Access if access.has_reads or access.has_writes]
    if rw not in patterns:
        faults.append(Fault(f"--rw is {rw!r}.", f"Give one of {', '.join(patterns)}."))
    if ioengine not in IOENGINES:
        faults.append(Fault(f"--ioengine is {ioengine!r}.", f"Give one of {', '.join(IOENGINES)}."))
    if ioengine in SYNC_IOENGINES and iodepth > 1:
        faults.append(
            Fault(
                f"--ioengine {ioengine} keeps one I/O in flight, and --iodepth is {iodepth}.",
                "Give --iodepth 1, or an --ioengine that keeps more.",
            )
        )
    block, file_bytes = (
        _parse_size_option("--bs", bs, faults),
        _parse_size_option("--size", size, faults),
    )
    if block and file_bytes and file_bytes % block:
        message = f"--size {size} is not a multiple of --bs {bs}."
        near = " or ".join(
            str(blocks * block)
            for blocks in (file_bytes // block, file_bytes // block + 1)
            if blocks
        )
        faults.append(Fault(message, f"Give --size {near}, or another --bs."))
    if faults:
        message = "The calibration cannot be done as asked."
        raise UsageError(message, "Correct the options.", tuple(faults))
    access = Access(rw)
    return Job(
        engine=FIO_ENGINE,
        access=access,
        block_bytes=block,
        iodepth=iodepth,
        numjobs=numjobs,
        file_bytes=file_bytes,
        read_percent=50 if access.is_mixed else None,
        ioengine=ioengine,
    )


def _parse_size_option(option: str, text: str, faults: list[Fault]) -> int:
    """The bytes of an option; 0, with a fault, for what is no size in sectors."""
    try:
        number = parse_size(text)
    except ValueError:
        number = 0
    if number < 1 or number % SECTOR_BYTES:
        faults.append(Fault(f"{option} is {text!r}.", "Give a multiple of 512 bytes, as 4k or 1g."))
        return 0
    return number
