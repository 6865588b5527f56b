"""Small reports of fio, made of the figures that a test names: all else agrees with these."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

SECONDS = 60
MOMENT = 1_700_000_000

Document = dict[str, Any]


def direction(
    iops: float, mean_ns: float, *, block: int = 4096, seconds: int = SECONDS
) -> Document:
    """One direction of a job, as fio 3 prints it."""
    ios = round(iops * seconds)
    latency = {
        "min": round(mean_ns / 2),
        "max": round(mean_ns * 9),
        "mean": mean_ns,
        "stddev": mean_ns / 3,
        "N": ios,
        "percentile": {"50.000000": round(mean_ns), "99.000000": round(mean_ns * 3)},
    }
    return {
        "io_bytes": ios * block,
        "bw_bytes": round(iops * block),
        "iops": iops,
        "runtime": seconds * 1000,
        "total_ios": ios,
        "clat_ns": latency,
        "lat_ns": {name: latency[name] for name in ("min", "max", "mean", "stddev", "N")},
    }


def job(name: str, options: Mapping[str, str], *, group: int = 0, **directions: Any) -> Document:
    """A job with its directions: `read=direction(1000, 1e6)`."""
    nothing = {"io_bytes": 0, "bw_bytes": 0, "iops": 0.0, "runtime": 0, "total_ios": 0}
    return {
        "jobname": name,
        "groupid": group,
        "error": 0,
        "job options": dict(options),
        **{way: directions.pop(way, dict(nothing)) for way in ("read", "write", "trim")},
        **directions,
    }


def report(*jobs: Document, version: str = "3.36", at: int = MOMENT, **more: Any) -> Document:
    """A report of such jobs."""
    return {"fio version": f"fio-{version}", "timestamp": at, "jobs": list(jobs), **more}


def one_read(iops: float, *, at: int = MOMENT, **options: str) -> str:
    """The text of a report of one job that reads with one I/O in flight."""
    own = {"rw": "randread", "bs": "4k", "direct": "1", **options}
    return json.dumps(report(job("reader", own, read=direction(iops, 1e9 / iops)), at=at))
