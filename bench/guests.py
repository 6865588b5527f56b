"""What guests cost: time until the first word and the first I/O, memory, and the controller.

`python -m bench.guests` boots BENCH_GUESTS guests (2) on this machine, one fio in each for
BENCH_SECONDS (10) against a modelled disk, as `iolab run` does, all at the same time. It prints

- of each guest the time from the start of its QEMU to the agent's first word in it, and how much
  processor time that took: on a busy machine the first says less than the second;
- the time from the start of the first guest to the first I/O of all of them;
- memory of each guest's QEMU while fio runs, resident and of its own;
- processor time of the controller for each second of each guest while they ran.

KVM is used where it works, as the first line says; emulated guests take as much time as there is.
Without QEMU it says so and measures nothing.
"""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from iolab.core.events import (
    Event,
    IntervalReported,
    RunFinished,
    SessionPhase,
    SessionPhaseStarted,
    SessionStatus,
)
from iolab.core.run import RunRecord, RunStatus
from iolab.errors import IolabError
from iolab.guests.guest import guest_fleet_of_run
from iolab.hosts.barrier import StopRequest
from iolab.hosts.connect import open_hosts
from iolab.registry import session_kinds, study_kinds
from iolab.session.session import run_session
from iolab.study.parse import StudyOverrides, parse_study
from iolab.study.schedule import make_plan

GUESTS: Final = int(os.environ.get("BENCH_GUESTS", "2"))
SECONDS: Final = int(os.environ.get("BENCH_SECONDS", "10"))
QEMU: Final = "qemu-system-x86_64"
MIB: Final = 1 << 20
TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")

STUDY: Final = """
format = 1
id = "guests"
[[host]]
name = "node"
role = "hypervisor"
path = "{path}"
[vm]
vcpus = 1
memory = "192m"
disk = "64m"
disk_kind = "modelled"
latency = "10ms"
[[workload]]
id = "read"
rw = "randread"
bs = "4k"
iodepth = 1
numjobs = 4
filesize = "8m"
vms_per_node = {guests}
[method]
warmup = "0s"
runtime = "{seconds}s"
settle = "0s"
"""


@dataclass(frozen=True)
class Seen:
    """A QEMU process: when it began since the machine's boot, what it used, its memory."""

    began_s: float
    cpu_s: float
    resident_bytes: int
    own_bytes: int


@dataclass
class Kept:
    """A recorder that looks at the guests and at this process at the moments that count."""

    record: RunRecord | None = None
    cpu_s: list[float] = field(default_factory=list)
    booted: list[Seen] = field(default_factory=list)
    loaded: list[Seen] = field(default_factory=list)

    def emit(self, event: Event) -> None:
        match event:
            case SessionPhaseStarted(phase=SessionPhase.MEASURE):
                self.booted = guests()
                self.cpu_s.append(own_cpu_s())
            case IntervalReported():
                self.loaded = guests()
                self.cpu_s[1:] = [own_cpu_s()]
            case RunFinished(record=record):
                self.record = record
            case _:
                pass


def main() -> None:
    if shutil.which(QEMU) is None:
        print(f"guests: no {QEMU} here, nothing was measured")
        return
    print(f"{os.cpu_count()} cores, load average before {os.getloadavg()[0]:.1f}")
    try:
        tell(asyncio.run(measured()))
    except IolabError as error:
        sys.exit(f"{error.message} {error.hint}")


async def measured() -> Kept:
    """One session with one run."""
    with tempfile.TemporaryDirectory(prefix="iolab-bench-") as folder:
        text = STUDY.format(path=folder, guests=GUESTS, seconds=SECONDS)
        study = parse_study(text, "guests.toml", StudyOverrides(), study_kinds())
        kept = Kept()
        async with open_hosts(study.hosts) as hosts:
            status = await run_session(
                study,
                make_plan(study, study_kinds()),
                hosts,
                kept,
                StopRequest(),
                session_id="guests",
                kinds=session_kinds(),
            )
    if status is not SessionStatus.DONE:
        sys.exit(f"guests: the session ended as {status}")
    return kept


def tell(kept: Kept) -> None:
    record = kept.record
    fleet = guest_fleet_of_run(record) if record else None
    if record is None or record.status is not RunStatus.DONE or fleet is None:
        sys.exit(f"guests: {record.failure if record else 'there was no run'}")
    starts_s = [(host.start_real_ns or 0) / 1e9 for host in record.hosts]
    # The start of a process is told since the machine's boot; an I/O on the clock that people use.
    boot_s = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    first_s = min(seen.began_s for seen in kept.booted) + boot_s
    guest_s = len(fleet.guests) * (record.ended_real_ns - record.started_real_ns) / 1e9
    kind = ", ".join(sorted({str(one.accelerator) for one in fleet.guests}))
    print(f"{len(fleet.guests)} guests ({kind}) at a time, one run of {SECONDS} s:")
    row("start to first word, s", [one.booted_s or 0.0 for one in fleet.guests])
    row("processor time until the run, s", [seen.cpu_s for seen in kept.booted])
    row("first start to first I/O, s", [start - first_s for start in starts_s])
    row("resident memory, MiB", [seen.resident_bytes / MIB for seen in kept.loaded])
    row("of its own, MiB", [seen.own_bytes / MIB for seen in kept.loaded])
    used = kept.cpu_s[-1] - kept.cpu_s[0]
    print(f"  controller, ms of processor time for a guest's second: {used / guest_s * 1e3:.1f}")


def row(name: str, values: Sequence[float]) -> None:
    """The median with the smallest and the largest."""
    middle = statistics.median(values)
    print(f"  {name:34} {middle:6.1f}  ({min(values):.1f} to {max(values):.1f})")


def guests() -> list[Seen]:
    """Every QEMU below this process."""
    parents: dict[int, tuple[int, Path]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text("utf-8").rpartition(")")[2].split()
            parents[int(folder.name)] = (int(fields[1]), folder)
        except OSError:
            continue  # it has just ended
    family = {os.getpid()}
    while children := {p for p, (parent, _) in parents.items() if parent in family} - family:
        family |= children
    found = (seen_at(parents[pid][1]) for pid in sorted(family - {os.getpid()}) if pid in parents)
    return [seen for seen in found if seen is not None]


def seen_at(folder: Path) -> Seen | None:
    """What a process is like now, if it is a QEMU."""
    try:
        if Path(os.fsdecode((folder / "exe").readlink())).name != QEMU:
            return None
        stat = (folder / "stat").read_text("utf-8").rpartition(")")[2].split()
        rollup = (folder / "smaps_rollup").read_text("utf-8").splitlines()
    except OSError:
        return None
    sizes = {
        name: int(words[0]) << 10
        for name, _, rest in (line.partition(":") for line in rollup)
        if (words := rest.split()) and words[-1] == "kB"
    }
    ticks = int(stat[11]) + int(stat[12])
    own = sizes["Private_Clean"] + sizes["Private_Dirty"]
    return Seen(int(stat[19]) / TICKS_PER_S, ticks / TICKS_PER_S, sizes["Rss"], own)


def own_cpu_s() -> float:
    """Processor time of this process, without its agents and guests."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
