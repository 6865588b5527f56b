"""Whether one controller keeps up with a thousand hosts: 32 jobs each, full histograms, a minute.

Run as `python -m bench.fleet_scale`. The hosts are scripted (bench/scripted_agent.py): one process
of its own plays all of them over a Unix socket in real time, so that its CPU time is not the
controller's. Everything else is what `iolab run` does: session, fio engine, telemetry, live view,
recorder, store. Printed are the controller's CPU seconds for each second of load (all of its
threads), how late its event loop is, its memory, and how long a run takes to be merged, judged
and committed. Limits are on CPU time, for other work on the machine lengthens only the clock's;
a machine on which the controller gets less than it needs falls behind, and measures nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

if __package__ in {None, ""}:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from iolab.cli.live import LinesView
from iolab.cli.progress import SessionProgress
from iolab.cli.session import SessionRecorder, rare_garbage_collection
from iolab.core.events import (
    Event,
    IntervalReported,
    RunFinished,
    SessionPhase,
    SessionPhaseStarted,
)
from iolab.core.host import HostSpec, HostTransport
from iolab.core.metric import RunResult
from iolab.core.run import Plan, RunRecord
from iolab.core.study import Study
from iolab.hosts.barrier import StopRequest
from iolab.hosts.host import AgentLink, Host
from iolab.registry import session_kinds, study_kinds
from iolab.session.session import run_session
from iolab.store.writer import SessionWriter
from iolab.study.parse import StudyOverrides, parse_study
from iolab.study.schedule import make_plan

RATIO_LIMIT: Final = 0.4
MEMORY_LIMIT_BYTES: Final = 1 << 30
COMMIT_LIMIT_S: Final = 3.0
BEHIND_LIMIT_S: Final = 5.0
"""How late the last interval may be: a controller that gets less than it needs tells nothing."""

LAG_TICK_S: Final = 0.01
START_LIMIT_S: Final = 20.0
NUMJOBS: Final = 32

STUDY: Final = """
format = 1
id = "fleet-scale"
title = "A fleet that does not exist"
question = "Does the controller keep up?"

[target]
path = "/srv/target"

[[configuration]]
id = "fleet"
title = "A fleet"
hosts = [{names}]

{hosts}

[[workload]]
id = "mixed"
title = "Mixed"
engine = "fio"
rw = "randrw"
rwmixread = 70
bs = "4k"
iodepth = 16
numjobs = {numjobs}
filesize = "16m"

[method]
warmup = "0s"
runtime = "{seconds}s"
repeats = 1
settle = "0s"
"""
HOST: Final = '[[host]]\nname = "{name}"\nkind = "command"\ncommand = ["reach", "{name}"]\n'


def study_of(hosts: int, seconds: int, numjobs: int = NUMJOBS) -> Study:
    """One run on that many hosts."""
    names = [f"client-{number:04}" for number in range(hosts)]
    text = STUDY.format(
        names=", ".join(f'"{name}"' for name in names),
        hosts="\n".join(HOST.format(name=name) for name in names),
        seconds=seconds,
        numjobs=numjobs,
    )
    return parse_study(text, "fleet-scale.toml", StudyOverrides(), study_kinds())


class SocketLink:
    """A connection to the process that plays the hosts."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def exit_reason(self) -> str:
        """A socket says nothing."""
        return ""

    async def wait_for_exit_or_kill(self) -> None:
        """Close it."""
        self.writer.close()


class SocketHost(Host):
    """A host that is played behind a Unix socket."""

    def __init__(self, name: str, path: str) -> None:
        super().__init__(HostSpec(name, HostTransport.LOCAL))
        self._path = path

    async def start_agent(self) -> AgentLink:
        """Connect."""
        return SocketLink(*await asyncio.open_unix_connection(self._path))


@contextmanager
def played(path: str, hosts: int) -> Iterator[subprocess.Popen[bytes]]:
    """The process that plays the hosts, while it is needed."""
    script = Path(__file__).with_name("scripted_agent.py")
    words = [sys.executable, str(script), "--listen", path, "--hosts", str(hosts)]
    with subprocess.Popen(words) as process:
        try:
            deadline = time.monotonic() + START_LIMIT_S
            while not Path(path).exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            yield process
        finally:
            process.terminate()


@dataclass(slots=True)
class Measured:
    """What the controller needed; CPU seconds are of the whole process."""

    measure_cpu_s: float = 0.0
    intervals: int = 0
    first_cpu_s: float = 0.0
    last_cpu_s: float = 0.0
    first_s: float = 0.0
    last_s: float = 0.0
    commit_s: float = 0.0
    commit_cpu_s: float = 0.0
    gathered_s: float = 0.0
    gather_cpu_s: float = 0.0
    connect_s: float = 0.0
    lags_s: list[float] = field(default_factory=list)
    record: RunRecord | None = None
    result: RunResult | None = None


class Stopwatch:
    """A recorder in front of the real one that looks at the clocks.

    It looks once for every `hosts` intervals: a process's CPU time is no cheap thing to ask for.
    """

    def __init__(self, recorder: SessionRecorder, found: Measured, hosts: int) -> None:
        self._recorder = recorder
        self._found = found
        self._hosts = hosts
        self._cpu = 0.0
        self._begun = time.perf_counter()

    def emit(self, event: Event) -> None:
        """Pass it on."""
        if isinstance(event, RunFinished):
            self._found.gathered_s = time.perf_counter() - self._found.last_s
            self._found.gather_cpu_s = time.process_time() - self._found.last_cpu_s
        if isinstance(event, SessionPhaseStarted) and event.phase is SessionPhase.PROVE:
            self._found.connect_s = time.perf_counter() - self._begun
        if isinstance(event, SessionPhaseStarted) and event.phase is SessionPhase.MEASURE:
            self._cpu = time.process_time()
        self._recorder.emit(event)
        if isinstance(event, IntervalReported):
            self._look()
        if isinstance(event, RunFinished):
            self._found.commit_s = time.perf_counter() - self._found.last_s
            self._found.commit_cpu_s = time.process_time() - self._found.last_cpu_s
            self._found.record = event.record

    def _look(self) -> None:
        found = self._found
        found.intervals += 1
        if found.intervals % self._hosts:
            return
        found.last_cpu_s, found.last_s = time.process_time(), time.perf_counter()
        found.measure_cpu_s = found.last_cpu_s - self._cpu
        if not found.first_s:
            found.first_cpu_s, found.first_s = found.last_cpu_s, found.last_s


class ResultView(LinesView):
    """The lines of a session, and its result."""

    def __init__(self, progress: SessionProgress, found: Measured) -> None:
        super().__init__(progress)
        self._found = found

    def on_result(self, result: RunResult) -> None:
        """Keep it too."""
        self._found.result = result
        super().on_result(result)


async def lag(found: Measured) -> None:
    """How late the loop wakes us."""
    while True:
        asked = time.perf_counter()
        await asyncio.sleep(LAG_TICK_S)
        found.lags_s.append(time.perf_counter() - asked - LAG_TICK_S)


def progress_of(study: Study, plan: Plan) -> SessionProgress:
    """The live view's beginning."""
    return SessionProgress(
        study=study.title,
        run_count=len(plan.runs),
        ended_run_count=0,
        host_count=len(study.hosts),
        warmup_s=study.method.warmup_s,
        load_s=study.method.runtime_s,
        settle_s=study.method.settle_s,
        now_s=time.monotonic(),
    )


async def session(hosts: dict[str, Host], study: Study, directory: Path, found: Measured) -> None:
    """One session, from connecting to the committed run.

    It gives back nothing: asyncio's runner makes the text of whatever its coroutine returns.
    """
    plan = make_plan(study, study_kinds())

    def open_writer(_: object) -> SessionWriter:
        return SessionWriter.create(directory, study, plan, "fleet-scale", ("bench",))

    lagging = asyncio.create_task(lag(found))
    try:
        view = ResultView(progress_of(study, plan), found)
        with rare_garbage_collection(), SessionRecorder(open_writer, view) as recorder:
            watch = Stopwatch(recorder, found, len(hosts))
            await run_session(
                study,
                plan,
                hosts,
                watch,
                StopRequest(),
                session_id="fleet-scale",
                kinds=session_kinds(),
            )
    finally:
        lagging.cancel()
        await asyncio.gather(lagging, return_exceptions=True)


def report(found: Measured, hosts: int, seconds: int, player_cpu_s: float) -> bool:
    """Print what was found; whether it is within the limits."""
    # Whole intervals: what comes with the first one is work of the start. For each second of load,
    # not for each second that the controller took: one that falls behind would look the better.
    ratio = (found.last_cpu_s - found.first_cpu_s) / (seconds - 1)
    behind_s = found.last_s - found.first_s - (seconds - 1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    lags = sorted(found.lags_s)
    late = statistics.quantiles(lags, n=100)[98] if len(lags) > 100 else max(lags)
    record = found.record
    if record is None:
        raise SystemExit("no run was committed")
    if found.intervals < hosts * seconds:
        raise SystemExit(f"only {found.intervals} of {hosts * seconds} intervals came")
    rows = (
        ("CPU s / s of load", f"{ratio:.3f}", f"< {RATIO_LIMIT}", ratio < RATIO_LIMIT),
        (
            "fell behind by",
            f"{behind_s:.1f} s",
            f"< {BEHIND_LIMIT_S:g} s",
            behind_s < BEHIND_LIMIT_S,
        ),
        (
            "peak memory",
            f"{peak / 2**20:.0f} MiB",
            f"< {MEMORY_LIMIT_BYTES >> 20} MiB",
            peak < MEMORY_LIMIT_BYTES,
        ),
        (
            "merge, judge, commit",
            f"{found.commit_cpu_s:.2f} CPU s",
            f"< {COMMIT_LIMIT_S:g} s",
            found.commit_cpu_s < COMMIT_LIMIT_S,
        ),
    )
    print(f"{hosts} hosts x {NUMJOBS} jobs, {seconds} s: {record.status.value}")
    print(f"  rows: {len(record.intervals)} intervals, {len(record.bins)} bins, ", end="")
    print(f"{len(record.counters)} counters")
    for name, value, limit, good in rows:
        print(f"  {name:<22} {value:>10}  {limit:<12} {'within' if good else 'OVER'}")
    print(f"  that by the clock      {found.commit_s:>8.2f} s", end="")
    print(f"   until the record stands {found.gathered_s:.2f} s ({found.gather_cpu_s:.2f} s)")
    print(f"  with start and end     {found.measure_cpu_s / seconds:>10.3f}  CPU s / s")
    print(f"  event loop late        {late * 1000:>7.0f} ms  p99, most {lags[-1] * 1000:.0f} ms")
    print(f"  connect and prepare    {found.connect_s:>8.2f} s")
    print(f"  the player's CPU       {player_cpu_s / seconds:>10.3f}  CPU s / s (not counted)")
    return all(good for *_, good in rows)


def main() -> None:
    """Run with the size that the command line asks for; exit code 1 when a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--directory", type=Path, help="where (default: a temporary directory)")
    parser.add_argument("--profile", type=Path, help="write a profile of the controller there")
    chosen = parser.parse_args()
    if chosen.seconds < 2:
        parser.error("--seconds: at least 2, for the first interval is part of the start")
    study = study_of(chosen.hosts, chosen.seconds)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 65536)), hard))
    with tempfile.TemporaryDirectory(dir=chosen.directory) as place:
        path = str(Path(place) / "hosts")
        with played(path, chosen.hosts):
            hosts: dict[str, Host] = {
                spec.name: SocketHost(spec.name, path) for spec in study.hosts
            }
            found = Measured()
            work = session(hosts, study, Path(place) / "session", found)
            if chosen.profile:
                _profiled(work, chosen.profile)
            else:
                asyncio.run(work)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
    if not report(found, chosen.hosts, chosen.seconds, used.ru_utime + used.ru_stime):
        sys.exit(1)


def _profiled(work: Coroutine[Any, Any, None], path: Path) -> None:
    profile = cProfile.Profile()
    with profile:
        asyncio.run(work)
    profile.dump_stats(path)


if __name__ == "__main__":
    main()
