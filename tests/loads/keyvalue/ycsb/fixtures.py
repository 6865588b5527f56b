"""Real output of YCSB (tests/golden/ycsb, its README says which) and the jobs that asked for it."""

from __future__ import annotations

from typing import Final

from iolab.loads.keyvalue.workload import KeyDistribution, KeyOperation, ServerKind, YcsbJob
from iolab.loads.keyvalue.ycsb.engine import JavaKit, YcsbStore, latency_log_names
from iolab.loads.keyvalue.ycsb.hdr_log import HdrLog, parse_hdr_log
from iolab.loads.keyvalue.ycsb.output import YcsbOutput, parse_ycsb_output
from tests.recorded import is_recorded, recorded

READ, UPDATE = KeyOperation.READ, KeyOperation.UPDATE
INSERT, SCAN, RMW = KeyOperation.INSERT, KeyOperation.SCAN, KeyOperation.READ_MODIFY_WRITE

A: Final = YcsbJob(((READ, 0.5), (UPDATE, 0.5)), records=20_000, threads=4)
C: Final = YcsbJob(((READ, 1.0),), records=20_000, threads=4)
D: Final = YcsbJob(
    ((READ, 0.85), (INSERT, 0.05), (SCAN, 0.1)),
    records=20_000,
    threads=4,
    distribution=KeyDistribution.LATEST,
    options=(("maxscanlength", "10"),),
)
F: Final = YcsbJob(((READ, 0.5), (RMW, 0.5)), records=20_000, threads=4, rate_ops_per_s=2000)
ON_CASSANDRA: Final = YcsbJob(((READ, 0.5), (UPDATE, 0.5)), records=4000, threads=8)

EMBEDDED: Final = YcsbStore(ServerKind.EMBEDDED, database="/scratch/db")
SERVED: Final = YcsbStore(ServerKind.MANAGED, ("127.0.0.1:9042",), "iolab", consistency="QUORUM")
KIT: Final = JavaKit("java", ("/kit/core-0.17.0.jar", "/kit/iolab-ycsb.jar"))


def stdout(name: str) -> bytes:
    return recorded(f"ycsb/{name}.txt")


def stderr(name: str) -> bytes:
    path = f"ycsb/{name}.err"
    return recorded(path) if is_recorded(path) else b""


def output(name: str) -> YcsbOutput:
    return parse_ycsb_output(stdout(name), stderr(name))


def log(name: str) -> HdrLog:
    return parse_hdr_log(recorded(f"ycsb/{name}.hdr"))


def logs(name: str, job: YcsbJob) -> list[HdrLog]:
    """The logs that are there of those that the job leaves."""
    paths = [f"ycsb/{hdr}" for hdr in latency_log_names(job, f"{name}_")]
    return [parse_hdr_log(recorded(path)) for path in paths if is_recorded(path)]
