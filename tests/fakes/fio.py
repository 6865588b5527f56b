"""What fio would print for a job, from a script: whole JSON documents, each cumulative. Pure.

The shape is that of fio 3.33 with `--status-interval=1 --output-format=json+` and group reporting.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from iolab.core.histogram import MIDDLE_NS, bin_index_of_ns
from iolab.units import parse_duration_s, parse_size

TERMINATED: Final = b"\nfio: terminating on signal 2\n"
"""What fio says on standard output when it is interrupted."""

LAYOUT_S: Final = 2.0
"""How long a job without a runtime takes."""

_SHARES: Final = ((1.0, 0.90), (1.5, 0.09), (4.0, 0.01))
"""A latency distribution with a tail: (times the base latency, share of the I/Os)."""


@dataclass(frozen=True, slots=True)
class FakeLoad:
    """How one process of the engine behaves; times in seconds from its start.

    Standard output can be replaced as a whole by `prints`; `error` is the errno in its documents.
    `killed_at_s` ends it by SIGKILL from outside; `host_dies_at_s` breaks the host off,
    `host_silent_at_s` stops every word of it. `heeds_int` false makes it deaf to SIGINT,
    `hangs` keeps it from ever ending by itself. With `fading` (a, tau) its rate begins at 1 + a
    times `iops` and comes down to that as exp(-t / tau). It says that `time_factor` times as much
    time has passed.
    """

    iops: int = 1000
    lat_ns: int = 250_000
    exit_code: int = 0
    error: int = 0
    stderr: bytes = b""
    prints: bytes | None = None
    killed_at_s: float | None = None
    host_dies_at_s: float | None = None
    host_silent_at_s: float | None = None
    heeds_int: bool = True
    fading: tuple[float, float] | None = None
    hangs: bool = False
    time_factor: int = 1


@dataclass(frozen=True, slots=True)
class FakeJob:
    """The few options of a job file that decide what fio prints; `null` is on no disk."""

    access: str
    block_bytes: int
    numjobs: int
    iodepth: int
    runtime_s: float | None
    data_set: str
    file_bytes: int
    files_per_job: int
    io_bytes: int = 0
    null: bool = False

    @property
    def seconds(self) -> float:
        """How long it runs."""
        return LAYOUT_S if self.runtime_s is None else self.runtime_s


def read_job(text: str) -> FakeJob:
    """The job of a job file; fio's own defaults where it says nothing."""
    options = dict(re.findall(r"^\s*([a-z_]+)\s*=\s*(.+?)\s*$", text, re.MULTILINE))
    runtime = options.get("runtime")
    return FakeJob(
        access=options.get("rw", "read"),
        block_bytes=parse_size(options.get("bs", "4k")),
        numjobs=int(options.get("numjobs", "1")),
        iodepth=int(options.get("iodepth", "1")),
        runtime_s=None if runtime is None else parse_duration_s(runtime),
        data_set=options.get("filename_format", "").split(".")[0],
        file_bytes=parse_size(options.get("filesize") or options.get("size", "0")),
        files_per_job=int(options.get("nrfiles", "1")),
        io_bytes=parse_size(options.get("io_size", "0")),
        null=options.get("filename") == "null",
    )


def document(job: FakeJob, load: FakeLoad, start_real_ns: int, elapsed_s: float) -> bytes:
    """The document that fio prints so long after its start."""
    elapsed_s *= load.time_factor
    now_ms = (start_real_ns + round(elapsed_s * 1e9)) // 1_000_000
    whole = {
        "fio version": "fio-3.33",
        "timestamp": now_ms // 1000,
        "timestamp_ms": now_ms,
        "time": "Thu Jan  1 00:00:00 1970",
        "jobs": [_group(job, load, elapsed_s)],
        "disk_util": [],
    }
    return json.dumps(whole, indent=2).encode() + b"\n"


def ios_until(job: FakeJob, load: FakeLoad, elapsed_s: float) -> dict[str, int]:
    """I/Os of each direction so long after the start.

    A job without a runtime writes its files once; one that fails has got half-way.
    """
    total = round(load.iops * (elapsed_s + _faded_s(load, elapsed_s)))
    if job.runtime_s is None:
        each = job.io_bytes or job.files_per_job * job.file_bytes
        whole = job.numjobs * each // job.block_bytes
        share = elapsed_s / job.seconds / (2 if load.exit_code else 1)
        total = round(whole * share)
    if "rw" in job.access and job.access not in ("randwrite", "write"):
        return {"read": total - total // 3, "write": total // 3}
    reads = "read" in job.access
    return {"read": total if reads else 0, "write": 0 if reads else total}


def _faded_s(load: FakeLoad, elapsed_s: float) -> float:
    """How many seconds' worth of I/O a fading start has added."""
    if load.fading is None:
        return 0.0
    above, tau_s = load.fading
    return above * tau_s * -math.expm1(-elapsed_s / tau_s)


def _group(job: FakeJob, load: FakeLoad, elapsed_s: float) -> dict[str, object]:
    ios = ios_until(job, load, elapsed_s)
    runtime_ms = round(elapsed_s * 1000)
    depths = {str(2**power): 0.0 for power in range(6)} | {">=64": 0.0}
    deepest = str(job.iodepth) if str(job.iodepth) in depths else ">=64"
    return {
        "jobname": "job",
        "groupid": 0,
        "error": load.error,
        "eta": 0,
        "elapsed": round(elapsed_s) + 1,
        "job options": {"rw": job.access},
        "read": _direction(job, load, ios["read"], runtime_ms),
        "write": _direction(job, load, ios["write"], runtime_ms),
        "trim": _direction(job, load, 0, 0),
        "sync": {"total_ios": 0, "lat_ns": _spread(0, 0)},
        "job_runtime": runtime_ms * job.numjobs,
        "usr_cpu": 1.0,
        "sys_cpu": 5.0,
        "ctx": sum(ios.values()),
        "majf": 0,
        "minf": 9,
        "iodepth_level": {**depths, deepest: 100.0},
        "latency_depth": job.iodepth,
        "latency_target": 0,
        "latency_percentile": 100.0,
        "latency_window": 0,
    }


def _direction(job: FakeJob, load: FakeLoad, ios: int, runtime_ms: int) -> dict[str, object]:
    moved = ios * job.block_bytes
    seconds = runtime_ms / 1000 or 1.0
    bins = _bins(load.lat_ns, ios)
    latency = _spread(ios, load.lat_ns, bins)
    return {
        "io_bytes": moved,
        "io_kbytes": moved >> 10,
        "bw_bytes": round(moved / seconds),
        "bw": round(moved / seconds) >> 10,
        "iops": ios / seconds,
        "runtime": runtime_ms if ios else 0,
        "total_ios": ios,
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": _spread(ios, 2000),
        "clat_ns": _spread(ios, load.lat_ns - 2000),
        "lat_ns": latency,
    }


def _bins(lat_ns: int, ios: int) -> dict[int, int]:
    """Cumulative counts by midpoint; whole numbers that only grow and add up to `ios`."""
    counts = [int(ios * share) for _, share in _SHARES]
    counts[0] += ios - sum(counts)
    middles = [int(MIDDLE_NS[bin_index_of_ns(round(lat_ns * times))]) for times, _ in _SHARES]
    return {middle: count for middle, count in zip(middles, counts, strict=True) if count}


def _spread(ios: int, mean: float, bins: Mapping[int, int] | None = None) -> dict[str, object]:
    if bins:
        mean = sum(middle * count for middle, count in bins.items()) / ios
    low, high = (min(bins), max(bins)) if bins else (mean, mean)
    spread: dict[str, object] = {
        "min": int(low) if ios else 0,
        "max": int(high) if ios else 0,
        "mean": float(mean) if ios else 0.0,
        "stddev": 0.0,
        "N": ios,
    }
    if bins:
        spread["percentile"] = {"50.000000": min(bins), "99.900000": max(bins)}
        spread["bins"] = {str(middle): count for middle, count in bins.items()}
    return spread
