"""Recorded replays: one client, half a minute, a store that keeps up with its requests."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from iolab.core.generator import GeneratorTotals, SubmissionLateness
from iolab.core.run import RunRecord
from iolab.core.workload import Direction, ServiceTimeDirection
from iolab.loads.kvcache.workload import (
    KV_CACHE_ENGINE,
    KvCacheHostDetails,
    KvCacheJob,
    KvCacheOperation,
)
from tests.analysis.records import GENERATOR as SOUND
from tests.analysis.records import Burst, bursts_record, told_record

JOB: Final = KvCacheJob(
    KV_CACHE_ENGINE,
    trace="conversation",
    model="llama3-70b",
    # Blocks of the size of records: 4 KiB.
    kv_bytes_per_token=8,
    capacity_bytes=10_000 * 4096,
    requests_per_s=50,
)

RUN: Final = KvCacheHostDetails(
    requests=1500,
    blocks=36_000,
    hits=8000,
    memory_hits=0,
    ideal_hits=8000,
    hits_awaiting_write=3,
    requests_with_reads=1200,
    unfinished_requests=0,
    blocks_admitted=28_000,
    blocks_dropped_unwritten=0,
    evictions=28_000,
    held_at_start=10_000,
    held_at_end=10_000,
    capacity_blocks=10_000,
    input_tokens=18_000_000,
    clock_factor=15.0,
    backlog=(2, 3, 1, 4, 2, 2, 3, 1, 2, 3) * 3,
    write_backlog=(0, 5, 0, 9, 0, 0, 7, 0, 0, 3) * 3,
)

GENERATOR: Final = replace(
    SOUND,
    method="sync",
    threads=80,
    lateness=SubmissionLateness(1500, 20_000, 90_000, 400_000, 60_000),
)


PREFIXES_PER_S: Final = 400


def replayed(
    *,
    job: KvCacheJob = JOB,
    generator: GeneratorTotals = GENERATOR,
    prefix_ns: int = 0,
    mib_ns: int = 0,
    **changes: Any,
) -> RunRecord:
    """The record of a client that did that with its requests.

    With `prefix_ns` every prefix took so long, and each MiB of one `mib_ns`.
    """
    bursts = [
        Burst(ios=20_000, lat_ns=900_000),
        Burst(ios=70_000, lat_ns=900_000, direction=Direction.WRITE),
        Burst(ios=20_000, lat_ns=400_000, direction=ServiceTimeDirection.READ),
        Burst(ios=70_000, lat_ns=400_000, direction=ServiceTimeDirection.WRITE),
    ]
    if prefix_ns:
        bursts += [
            Burst(ios=PREFIXES_PER_S, lat_ns=prefix_ns, direction=KvCacheOperation.PREFIX_LOAD),
            Burst(
                ios=job.requests_per_s or 1, lat_ns=prefix_ns, direction=KvCacheOperation.REQUEST
            ),
            Burst(ios=PREFIXES_PER_S, lat_ns=mib_ns, direction=KvCacheOperation.PREFIX_PACE),
        ]
    return told_record(bursts_record(bursts, job=job), replace(RUN, **changes), generator)
