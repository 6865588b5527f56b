"""How far apart twelve ssh hosts begin, once their clocks are corrected.

Run as root: `python -m bench.go_skew`. Hosts are those of tools/fleet.py, real sshd processes on
this machine. A session as `iolab run` makes it repeats a tiny job; at each GO the spread is taken
between the first host's first I/O and the last one's. Three engines tell three things:

- `metadata`, in the agent, tells its first operation to the nanosecond: what GO itself costs;
- `native` is a process that is set up before GO, waits for it by itself, and tells its threads'
  start to the nanosecond;
- `fio` is a process that begins at GO and opens its files first, and tells its start in
  milliseconds: what a run of it has as skew.

The machine's own wake-up stands beside: as many processes that only wait for a moment, sleeping
until shortly before and then looking at the clock, and end.

All hosts share one kernel here, so that their clocks are the same: the spread of the starts as they
were told, without any correction, stands beside, and the difference is what correcting costs.
Twelve engines on the cores of one machine wait for each other; how many there are, and how busy
they were before, is printed with the result.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from iolab.core.events import Event, RunFinished, SessionStatus
from iolab.core.run import HostRun, RunRecord, RunStatus
from iolab.hosts.barrier import StopRequest
from iolab.hosts.connect import open_hosts
from iolab.hosts.ssh_host import SshConnections
from iolab.loads.metadata.workload import operation_runs_of_host
from iolab.registry import session_kinds, study_kinds
from iolab.session.session import run_session
from iolab.study.inventory import Inventory, parse_inventory
from iolab.study.parse import StudyOverrides, parse_study
from iolab.study.schedule import make_plan

FLEET: Final = Path(__file__).parents[1] / "tools" / "fleet.py"
TARGET_NS: Final = 2_000_000
AHEAD_S: Final = 0.3
AWAKE_S: Final = 200e-6
"""The native engine's own wait is awake for so long."""
NS_PER_MS: Final = 1e6

STUDY: Final = """
format = 1
id = "go-skew"
title = "A tiny job, again and again"
question = "How far apart do the hosts begin?"

[[workload]]
id = "tiny"
{job}

[method]
warmup = "0s"
runtime = "1s"
repeats = {repeats}
settle = "0s"
drop_caches = false
"""
JOBS: Final = {
    "metadata": 'engine = "metadata"\nranks = 1\nfiles_per_rank = 200\nrank_shift = 0\n'
    "iterations = {repeats}",
    "native": 'engine = "native"\nrw = "randread"\nbs = "4k"\nnumjobs = 1\niodepth = 1\n'
    'filesize = "1m"\nrate_iops = 200\narrivals = "fixed"',
    "fio": 'rw = "randread"\nbs = "4k"\nnumjobs = 1\niodepth = 1\nfilesize = "1m"',
}


@dataclass
class Kept:
    """A recorder that keeps the records and tells nobody."""

    records: list[RunRecord] = field(default_factory=list)

    def emit(self, event: Event) -> None:
        if isinstance(event, RunFinished):
            self.records.append(event.record)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, default=12)
    parser.add_argument("--runs", type=int, default=20)
    chosen = parser.parse_args()
    busy = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load average before {busy:.1f}")
    try:
        inventory = Path(fleet("up", "--hosts", str(chosen.hosts))[0]).read_text("utf-8")
        wakes = [wake_spread_ns(chosen.hosts) for _ in range(chosen.runs)]
        print(f"{chosen.hosts} processes that only wait: spread of each wake-up\n  {words(wakes)}")
        for engine in JOBS:
            records = asyncio.run(measured(inventory, engine, chosen.runs))
            tell(engine, chosen.hosts, records)
    finally:
        fleet("down")


def wake_spread_ns(count: int) -> int:
    """Between the first and the last of so many processes that wait for the same moment."""
    at_ns = time.time_ns() + round((AHEAD_S + 0.02 * count) * 1e9)
    with multiprocessing.get_context("fork").Pool(count) as pool:
        woken = pool.map(_wait, [at_ns] * count, chunksize=1)
    return max(woken) - min(woken)


def _wait(at_ns: int) -> int:
    left_s = (at_ns - time.time_ns()) / 1e9 - AWAKE_S
    time.sleep(max(left_s, 0.0))
    while (now_ns := time.time_ns()) < at_ns:
        pass
    return now_ns


def fleet(what: str, *more: str) -> list[str]:
    words = [sys.executable, str(FLEET), what, "--name", "goskew", *more]
    done = subprocess.run(words, check=True, capture_output=True, text=True, timeout=120)
    return done.stdout.split()


async def measured(inventory: str, engine: str, runs: int) -> list[RunRecord]:
    """The records of so many runs of one session."""
    repeats = 1 if engine == "metadata" else runs
    text = STUDY.format(job=JOBS[engine].format(repeats=runs), repeats=repeats)
    options = StudyOverrides(inventory=Inventory(inventory, "inventory.toml"))
    study = parse_study(text, "go-skew.toml", options, study_kinds())
    specs = parse_inventory(inventory, "inventory.toml")
    kept = Kept()
    async with open_hosts(specs, ssh_connections=SshConnections(config=Path("/dev/null"))) as hosts:
        status = await run_session(
            study,
            make_plan(study, study_kinds()),
            hosts,
            kept,
            StopRequest(),
            session_id="go-skew",
            kinds=session_kinds(),
        )
    if status is not SessionStatus.DONE:
        raise SystemExit(f"go-skew: the session ended as {status}")
    return [record for record in kept.records if record.status is RunStatus.DONE]


def tell(engine: str, hosts: int, records: Sequence[RunRecord]) -> None:
    corrected = [ns for record in records for ns in spreads_ns(record, corrected=True)]
    told = [ns for record in records for ns in spreads_ns(record, corrected=False)]
    worst = percentile(corrected, 99)
    verdict = "within" if worst < TARGET_NS else "OVER"
    errors = [host.clock_error_ns for record in records for host in record.hosts]
    print(f"{engine}, {hosts} ssh hosts, {len(records)} runs, {len(told)} starts: spread of each")
    print(f"  clocks corrected   {words(corrected)} ({verdict} {TARGET_NS / NS_PER_MS:g} ms)")
    print(f"  as they were told  {words(told)}")
    print(f"  error of a clock   {words(errors)}")


def spreads_ns(record: RunRecord, *, corrected: bool) -> list[int]:
    """Between the first host and the last, of each GO of the run."""
    starts = np.array([starts_ns(host) for host in record.hosts], dtype=np.int64)
    if corrected:
        starts -= np.array([[host.clock_offset_ns] for host in record.hosts])
    return [int(ns) for ns in np.ptp(starts, axis=0)]


def starts_ns(host: HostRun) -> list[int]:
    """The host's first I/O after each GO, on its own clock: metadata load has one a phase."""
    if operation_runs_of_host(host):
        return [phase.first_start_real_ns or 0 for phase in operation_runs_of_host(host)]
    begun_ns = host.totals.generator.begun_first_ns if host.totals and host.totals.generator else 0
    return [(host.start_real_ns or 0) + begun_ns]


def words(values_ns: Sequence[int]) -> str:
    p50, p99 = statistics.median(values_ns) / NS_PER_MS, percentile(values_ns, 99) / NS_PER_MS
    return f"p50 {p50:.2f} ms, p99 {p99:.2f} ms"


def percentile(values: Sequence[int], percent: int) -> int:
    """The smallest value that so many percent are not above; of few values, the largest."""
    ordered = sorted(values)
    return ordered[max(-(-len(ordered) * percent // 100) - 1, 0)]


if __name__ == "__main__":
    main()
