"""Records of metadata load made operation by operation, so that every number can be recounted.

Each rank does its operations one after the other; what an agent would tell (`OperationRun`,
intervals, bins) is derived from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from iolab.analysis.sums import sum_measured_window
from iolab.core.histogram import bin_index_of_ns
from iolab.core.host import HostFacts
from iolab.core.run import HostRun, PlannedRun, Point, RunRecord
from iolab.core.samples import (
    BinTable,
    IntervalTable,
    empty_bin_table,
    empty_interval_table,
)
from iolab.guests.analysis import GuestAnalysis
from iolab.hosts.rates import CounterSeries
from iolab.loads.metadata.metrics import MetadataView, sum_metadata_phases
from iolab.loads.metadata.workload import (
    MDTEST_ENGINE,
    METADATA_ENGINE,
    MetadataHostDetails,
    MetadataJob,
    MetadataOperation,
    OperationRun,
    ReportedRate,
    ReportedRunRates,
    operation_runs_of_host,
)
from tests.analysis.records import (
    GO_NS,
    QUIET,
    SECOND,
    facts_of,
    host_run,
    record_of,
    tables_of_rows,
)

JOB: Final = MetadataJob(METADATA_ENGINE, ranks=4, files_per_rank=3000, rank_shift=4)
MDTEST: Final = replace(JOB, engine=MDTEST_ENGINE)
GAP_NS: Final = SECOND // 10
TREES: Final = (MetadataOperation.TREE_CREATE, MetadataOperation.TREE_REMOVE)


@dataclass(frozen=True)
class Shape:
    """How one operation goes on one host: the mean latency and when its ranks begin."""

    lat_ns: float = 4_000_000.0
    starts_ns: tuple[int, ...] = (0, 100_000, 200_000, 300_000)


@dataclass
class Done:
    """Every operation of a phase on a host: when it ended on the controller's clock, how long."""

    ends: np.ndarray[Any, np.dtype[np.int64]]
    lats: np.ndarray[Any, np.dtype[np.int64]]
    first_ends: np.ndarray[Any, np.dtype[np.int64]]
    starts: np.ndarray[Any, np.dtype[np.int64]]


@dataclass
class Made:
    """A record and all that it was made of, by (host, operation)."""

    record: RunRecord
    done: Mapping[tuple[int, MetadataOperation], Done]


def made(
    hosts: int = 2,
    job: MetadataJob = JOB,
    shapes: Mapping[tuple[int, MetadataOperation], Shape] | None = None,
    *,
    seed: int = 1,
    repeat: int = 1,
    interval_ns: int = SECOND,
    offsets_ns: Sequence[int] = (),
    speed: float = 1.0,
) -> Made:
    """All phases on `hosts` hosts: they begin together, the next when the last has ended."""
    random = np.random.default_rng(seed)
    done: dict[tuple[int, MetadataOperation], Done] = {}
    rows: list[tuple[int, ...]] = []
    bins: list[tuple[int, ...]] = []
    runs: list[list[OperationRun]] = [[] for _ in range(hosts)]
    seqs, go = [0] * hosts, GO_NS
    for operation in MetadataOperation:
        latest = go
        for host in range(hosts):
            offset = offsets_ns[host] if offsets_ns else 0
            shape = (shapes or {}).get((host, operation), Shape())
            did = _work(random, job, operation, shape, go, speed)
            done[host, operation] = did
            runs[host].append(_told(operation, did, offset))
            spans = range(go, int(did.ends.max()), interval_ns)
            seqs[host] = _tell((host, seqs[host]), operation, did, spans, offset, rows, bins)
            latest = max(latest, int(did.ends.max()))
        go = latest + GAP_NS
    intervals, sparse = tables_of_rows(rows, bins)
    offsets = offsets_ns or [0] * hosts
    hosts_run = tuple(
        metadata_host(f"c{i + 1}", tuple(runs[i]), clock_offset_ns=offsets[i]) for i in range(hosts)
    )
    return Made(metadata_record(hosts_run, intervals, sparse, job, repeat, go), done)


def _work(
    random: np.random.Generator,
    job: MetadataJob,
    operation: MetadataOperation,
    shape: Shape,
    go: int,
    speed: float,
) -> Done:
    count = 1 if operation in TREES else job.files_per_rank
    ends, lats, last, starts = [], [], [], []
    for rank in range(job.ranks):
        mine = np.maximum(random.lognormal(0.0, 0.4, count) * shape.lat_ns / speed, 1.0).astype(
            np.int64
        )
        start = go + shape.starts_ns[rank % len(shape.starts_ns)]
        ended = start + np.cumsum(mine)
        ends.append(ended)
        lats.append(mine)
        last.append(int(ended[-1]))
        starts.append(start)
    return Done(
        np.concatenate(ends),
        np.concatenate(lats),
        np.array(last, dtype=np.int64),
        np.array(starts, dtype=np.int64),
    )


def _told(operation: MetadataOperation, did: Done, offset: int) -> OperationRun:
    return OperationRun(
        operation=operation,
        requested=did.ends.size,
        completed=did.ends.size,
        errors=(),
        skipped=0,
        first_start_real_ns=int(did.starts.min()) + offset,
        last_start_real_ns=int(did.starts.max()) + offset,
        first_end_real_ns=int(did.first_ends.min()) + offset,
        last_end_real_ns=int(did.first_ends.max()) + offset,
        lat_min_ns=int(did.lats.min()),
        lat_max_ns=int(did.lats.max()),
        preemptions=0,
    )


def _tell(
    first: tuple[int, int],
    operation: MetadataOperation,
    did: Done,
    starts: range,
    offset: int,
    rows: list[tuple[int, ...]],
    bins: list[tuple[int, ...]],
) -> int:
    """Intervals from each of `starts` to the next, the last one to when all ranks have ended."""
    host, seq = first
    edges = [*starts, int(did.ends.max())]
    for low, high in pairwise(edges):
        lats = did.lats[(did.ends > low) & (did.ends <= high)]
        way = int(operation)
        rows.append((host, seq, high + offset, high - low, way, lats.size, 0, int(lats.sum())))
        index, counts = np.unique(bin_index_of_ns(lats), return_counts=True)
        bins += [(host, seq, way, int(b), int(c)) for b, c in zip(index, counts, strict=True)]
        seq += 1
    return seq


def metadata_host(name: str, phases: tuple[OperationRun, ...], **changes: Any) -> HostRun:
    """A healthy host that ran those phases."""
    run = host_run(name, argv=(), job_file="", engine_version="agent 0.1.0", totals=None)
    return replace(
        run,
        exit_code=None,
        extents=None,
        cache_drop=None,
        process=None,
        details=MetadataHostDetails(phases),
        **changes,
    )


def metadata_record(
    hosts: tuple[HostRun, ...],
    intervals: IntervalTable,
    bins: BinTable,
    job: MetadataJob = JOB,
    repeat: int = 1,
    ended_ns: int = GO_NS + 60 * SECOND,
    **changes: Any,
) -> RunRecord:
    point = Point("fedcba9876543210", "default", "metadata", (), job, "")
    own = {"run": PlannedRun(repeat, repeat, point), "ended_real_ns": ended_ns, "runtime_s": 0.0}
    return record_of(hosts, intervals, bins, job, **{**own, **changes})


def mdtest_record(
    rates: Mapping[MetadataOperation, float], hosts: int = 2, repeat: int = 1
) -> RunRecord:
    """What mdtest leaves: rates of the fleet."""
    files = MDTEST.ranks * hosts * MDTEST.files_per_rank
    told = tuple(
        ReportedRate(operation, rate, None if operation in TREES else files / rate)
        for operation, rate in rates.items()
    )
    runs = tuple(
        replace(metadata_host(f"c{i + 1}", ()), engine_version="mdtest-4.0.0", exit_code=0)
        for i in range(hosts)
    )
    return metadata_record(
        runs,
        empty_interval_table(),
        empty_bin_table(),
        MDTEST,
        repeat,
        details=ReportedRunRates(told),
    )


def metadata_view(
    record: RunRecord,
    facts: dict[str, HostFacts] | None = None,
    telemetry: tuple[CounterSeries, ...] = QUIET,
) -> MetadataView:
    """The record as checks see it, by default with the facts of every host."""
    known = {host.host: facts_of(host.host) for host in record.hosts} if facts is None else facts
    return MetadataView(
        record,
        known,
        sum_measured_window(record),
        telemetry,
        host_kinds=(GuestAnalysis(),),
        metadata_sums=sum_metadata_phases(record),
    )


def with_phase(
    record: RunRecord, host: int, operation: MetadataOperation, **changes: Any
) -> RunRecord:
    """The record with one phase of one host changed."""
    runs = list(record.hosts)
    runs[host] = replace(
        runs[host],
        details=MetadataHostDetails(
            tuple(
                replace(phase, **changes) if phase.operation is operation else phase
                for phase in operation_runs_of_host(runs[host])
            )
        ),
    )
    return replace(record, hosts=tuple(runs))
