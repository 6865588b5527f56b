"""Recorded load on objects: one client, half a minute of GETs and HEADs of small objects."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from iolab.core.generator import GeneratorTotals
from iolab.core.host import HostRole
from iolab.core.run import DeviceDelta, MonitoredHost, RunRecord
from iolab.core.workload import Direction
from iolab.loads.objects.workload import (
    S3_ENGINE,
    ContentlessObjectOperation,
    EndpointCount,
    ObjectOperation,
    ObjectOperationCount,
    ObjectsHostDetails,
    ObjectsJob,
)
from tests.analysis.records import BLOCK, Burst, bursts_record, told_record
from tests.analysis.records import GENERATOR as SOUND

GETS: Final = 20_000
SECONDS: Final = 30

JOB: Final = ObjectsJob(S3_ENGINE, 100_000, get=9, head=1, object_bytes=BLOCK, concurrency=16)

RUN: Final = ObjectsHostDetails(
    counts=(
        ObjectOperationCount("object_get", GETS * SECONDS, 0, GETS * SECONDS),
        ObjectOperationCount("object_head", 2000 * SECONDS, 0, 2000 * SECONDS),
    ),
    endpoints=(
        EndpointCount(
            "http://127.0.0.1:9000", 22_000 * SECONDS, 0, GETS * SECONDS * BLOCK, 500_000_000_000
        ),
    ),
    connections=16,
    opened=0,
    closed_by_server=0,
    connect_failures=0,
    ahead_min_ms=-900.0,
    ahead_max_ms=50.0,
    tls="",
    tls_ns=0,
    contents_ns=0,
    verify_ns=0,
    sign_ns=1_000_000_000,
    cpu_ns=12_000_000_000,
    verified_bytes=0,
    listed_keys=0,
    put_objects=0,
    put_bytes=0,
    left_uploads=0,
    data_set_bytes=100_000 * BLOCK,
    ended_early="",
    examples=(),
    backlog=(0,) * SECONDS,
)

GENERATOR: Final = replace(SOUND, method="epoll", threads=2)


def objects_run(
    *,
    job: ObjectsJob = JOB,
    generator: GeneratorTotals = GENERATOR,
    head_ns: int = 400_000,
    puts: int = 0,
    busy: bool = False,
    generator_limit_iops: float | None = None,
    generator_limit_fault: str = "",
    **changes: Any,
) -> RunRecord:
    """The record of a client that did that; `head_ns` is how long each HEAD takes.

    `puts` of them come a second. Of a `busy` server three of four HEADs take other times.
    """
    operation, request = ObjectOperation, ContentlessObjectOperation
    bursts = [
        Burst(ios=GETS, lat_ns=700_000),
        Burst(ios=GETS, lat_ns=700_000, direction=operation.OBJECT_GET),
        Burst(ios=GETS, lat_ns=500_000, direction=operation.OBJECT_GET_FIRST_BYTE),
        Burst(ios=2000, lat_ns=head_ns, direction=request.OBJECT_HEAD),
    ]
    if busy:
        bursts += [
            Burst(ios=3000, lat_ns=lat_ns, direction=request.OBJECT_HEAD)
            for lat_ns in (head_ns // 2, head_ns * 2)
        ]
    if puts:
        bursts += [
            Burst(ios=puts, lat_ns=900_000, direction=Direction.WRITE),
            Burst(ios=puts, lat_ns=900_000, direction=operation.OBJECT_PUT),
        ]
    return told_record(
        bursts_record(bursts, job=job),
        replace(RUN, **changes),
        generator,
        devices=(),
        generator_limit_iops=generator_limit_iops,
        generator_limit_fault=generator_limit_fault,
    )


def storing(written_bytes: int) -> MonitoredHost:
    """A storage node whose disk wrote so much."""
    disk = DeviceDelta("sda", 0, written_bytes, 1, 1)
    return MonitoredHost("n1", HostRole.STORAGE, None, (disk,), 0, 0)
