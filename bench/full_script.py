"""A scripted fio with full histograms, for hosts that do not exist: its words and its truth.

Every simulated host of one variant prints the same documents, made once, so that a thousand hosts
cost little more than copying bytes; only the two times in a document are the host's own. What the
documents say is known exactly: `Variant.seconds` holds every I/O of every second by its bin.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
from tests.fakes.fio import FakeJob, FakeLoad, document
from tests.fakes.machine import DiskUse, sample
from tests.fakes.process import FakeProcess, Machine
from tests.fakes.script import FakeScript

from iolab.core.bins import BIN_COUNT
from iolab.core.histogram import LOWER_NS, MIDDLE_NS
from iolab.core.samples import Ints

VARIANTS: Final = 4
"""Kinds of hosts; enough that merged percentiles are nobody's own."""

WAYS: Final = ("read", "write")
IOPS: Final = (14_000, 6_000)
SPREAD: Final = 0.6
"""Log-normal latencies as wide as those of a busy cluster: about 330 bins a second and way."""

PERCENTS: Final = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99)
OUTPUT_PIECE_BYTES: Final = 64 << 10
"""The most that an agent puts into one message; fio writes a document at once."""

_NOW: Final = b"1111111111111"
_START: Final = b"2222222222222"
"""What stands in a document for the two times, which are of that many digits."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One kind of host: `seconds` of shape (seconds, 2, BIN_COUNT) are what completes in each."""

    seconds: Ints
    block_bytes: int

    def until(self, second: int) -> Ints:
        """What completed up to the end of that second (1 is the first); shape (2, BIN_COUNT)."""
        return np.asarray(self.seconds[:second].sum(axis=0))

    def ios(self, second: int) -> Ints:
        """I/Os of both ways until then."""
        return np.asarray(self.until(second).sum(axis=1))


@cache
def variant(number: int, seconds: int, block_bytes: int) -> Variant:
    """The numbered kind of host; the same numbers give the same I/Os."""
    rng = np.random.default_rng([number, seconds])
    edges = np.log(np.maximum(LOWER_NS.astype(float), 0.5))
    shares = []
    for way in range(len(WAYS)):
        median = math.log(400_000.0 * (1 + number) * (1 + 0.5 * way))
        below = 0.5 * (1 + np.vectorize(math.erf)((edges - median) / SPREAD / math.sqrt(2)))
        shares.append(np.diff(np.append(below, 1.0)) * IOPS[way])
    counts = rng.poisson(np.array(shares), size=(seconds, len(WAYS), BIN_COUNT))
    return Variant(counts.astype(np.int64), block_bytes)


@cache
def words(number: int, seconds: int, second: int, job: FakeJob) -> tuple[bytes, ...]:
    """The document at the end of a second, in the pieces between its times: now, then start."""
    kind = variant(number, seconds, job.block_bytes)
    whole: dict[str, Any] = json.loads(document(job, FakeLoad(), 0, float(second)))
    whole["timestamp_ms"] = int(_NOW)
    (group,) = whole["jobs"]
    group["job_start"] = int(_START)
    counts = kind.until(second)
    for way, name in enumerate(WAYS):
        group[name] = _block(counts[way], job.block_bytes, second)
    text = json.dumps(whole, indent=2, separators=(",", " : ")).encode() + b"\n"
    before, after = text.split(_NOW)
    middle, end = after.split(_START)
    return before, middle, end


def _block(counts: Ints, block_bytes: int, second: int) -> dict[str, object]:
    """One direction as fio prints it under group reporting."""
    used = np.flatnonzero(counts)
    ios = int(counts.sum())
    mean = float(counts @ MIDDLE_NS) / max(ios, 1)
    ranks = np.cumsum(counts)[used]
    latency = {
        "min": int(MIDDLE_NS[used[0]]) if ios else 0,
        "max": int(MIDDLE_NS[used[-1]]) if ios else 0,
        "mean": round(mean, 6),
        "stddev": 0.0,
        "N": ios,
        "percentile": {
            f"{percent:.6f}": int(MIDDLE_NS[used[np.searchsorted(ranks, percent / 100 * ios)]])
            for percent in (PERCENTS if ios else ())
        },
        "bins": dict(zip(map(str, MIDDLE_NS[used].tolist()), counts[used].tolist(), strict=True)),
    }
    spread = {"min": 1500, "max": 90_000, "mean": 2000.0, "stddev": 10.0, "N": ios}
    return {
        "io_bytes": ios * block_bytes,
        "io_kbytes": ios * block_bytes >> 10,
        "bw_bytes": ios * block_bytes // second,
        "bw": ios * block_bytes // second >> 10,
        "iops": ios / second,
        "runtime": second * 1000,
        "total_ios": ios,
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": spread,
        "clat_ns": {**spread, "mean": mean - 2000.0},
        "lat_ns": latency,
    }


class FullProcess(FakeProcess):
    """A fio that plays a variant: exact whole seconds, one document each."""

    def __init__(
        self, machine: Machine, request_id: int, job: FakeJob, load: FakeLoad, number: int
    ) -> None:
        super().__init__(machine, request_id, job, load)
        self._number = number

    def _report(self, elapsed_s: float) -> None:
        if self._job.runtime_s is None:
            super()._report(elapsed_s)
            return
        seconds = int(self._job.seconds)
        second = min(max(round(elapsed_s), 1), seconds)
        before, middle, end = words(self._number, seconds, second, self._job)
        start_ms = self._start_ns // 1_000_000
        times = (b"%013d" % (start_ms + second * 1000), b"%013d" % start_ms)
        self._move(variant(self._number, seconds, self._job.block_bytes).seconds[second - 1])
        self._print(b"".join((before, times[0], middle, times[1], end)))

    def _move(self, counts: Ints) -> None:
        """The host's first disk does what the engine claims."""
        reads, writes = counts.sum(axis=1).tolist()
        disk, block = self._machine.disk, self._job.block_bytes
        disk.read_ios += reads
        disk.read_bytes += reads * block
        disk.write_ios += writes
        disk.write_bytes += writes * block

    def _print(self, output: bytes, stream: str = "stdout") -> None:
        for start in range(0, len(output), OUTPUT_PIECE_BYTES):
            message = {"is": "output", "stream": stream}
            self._machine.tell(self._id, message, output[start : start + OUTPUT_PIECE_BYTES])


def full_script(number: int, offset_ns: int = 0) -> FakeScript:
    """A host of that kind: a server of sixteen cores, four disks and two ports."""

    def process(machine: Machine, request_id: int, job: FakeJob, load: FakeLoad) -> FakeProcess:
        return FullProcess(machine, request_id, job, load, number)

    return FakeScript(offset_ns=offset_ns, process=process, machine=server_sample)


CORES: Final = 16
DISKS: Final = 4
PORTS: Final = 2


def server_sample(disk: DiskUse, seq: int, mono_ns: int, real_ns: int) -> dict[str, object]:
    """The `sample` message of a server: the small machine's devices several times over."""
    told = sample(disk, seq, mono_ns, real_ns)
    return {
        **told,
        "cpu": [[core, *row[1:]] for row in _first(told["cpu"]) for core in range(CORES)],
        "disks": [[f"nvme{n}n1", *row[1:]] for row in _first(told["disks"]) for n in range(DISKS)],
        "nics": [[f"eth{n}", *row[1:]] for row in _first(told["nics"]) for n in range(PORTS)],
    }


def _first(rows: object) -> list[list[object]]:
    return rows[:1] if isinstance(rows, list) else []
