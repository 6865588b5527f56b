"""mdtest runs without a study file: the driver alone, on real hosts with a real MPI.

`stand_in` makes a program that is not mdtest: it is started by mpiexec as mdtest is, makes and
removes a folder for each of its ranks, and prints an output of mdtest 4.0.0 that was recorded
(tests/golden/mdtest), with the run's own numbers of ranks and files in it. Debian has no package
of mdtest; `make mdtest-test MDTEST=...` runs the same tests with the real one.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from iolab.model.engine import EngineName
from iolab.model.metadata import MetadataJob, ReportedRate
from iolab.model.run import PlannedRun, Point
from iolab.plan.schedule import make_plan
from iolab.run.clock import SYSTEM_CLOCK
from iolab.run.crew import Crew
from iolab.run.evidence import Evidence
from iolab.run.hosts.answers import ScratchAnswer, read_answer
from iolab.run.hosts.base import Host
from iolab.run.mdtest_driver import MdtestDriver
from iolab.run.site import Site, scratch_name
from iolab.run.stop import Stop
from iolab.run.telemetry.decode import CounterCollector
from tests.run.session.stage import Notes, study_of

GOLDEN: Final = Path(__file__).parents[1] / "golden" / "mdtest"
MPIEXECS: Final = ("mpiexec.mpich", "mpiexec.openmpi")
FILES: Final = 50

_STAND_IN: Final = '''\
#!{python}
"""A stand-in for mdtest, which it is not."""
import os, pathlib, sys, time
words = sys.argv[1:]
if words == ["-h"]:
    sys.exit("a stand-in for mdtest")
names = ("PMI_RANK", "OMPI_COMM_WORLD_RANK"), ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")
rank, size = (int(next(os.environ[name] for name in pair if name in os.environ)) for pair in names)
files = int(words[words.index("-n") + 1])
folder = pathlib.Path(words[words.index("-d") + 1], f"rank.{{rank}}")
folder.mkdir(parents=True)
time.sleep({seconds})
folder.rmdir()
if rank == 0:
    text = open({recorded!r}).read()
    text = text.replace("4 total task", f"{{size}} total task").replace("4 tasks, 200 files",
        f"{{size}} tasks, {{size * files}} files")
    # What rank 0 saw is of four ranks, and would contradict any other number.
    text = "".join(line for line in text.splitlines(True) if " ops/sec" not in line)
    print(text, end="")
'''


def stand_in(folder: Path, *, seconds: float = 0.0) -> Path:
    """Such a program in that folder, every rank of which takes so long."""
    program = folder / "mdtest-stand-in"
    recorded = str(GOLDEN / "one-4.0.0.txt")
    text = _STAND_IN.format(python=sys.executable, recorded=recorded, seconds=seconds)
    program.write_text(text, encoding="utf-8")
    program.chmod(0o755)
    return program


def planned(mdtest: Path, mpiexec: str, ranks: int, **options: str) -> PlannedRun:
    """A run of that program with so many ranks on each client."""
    words = {"mdtest": str(mdtest), "mpiexec": mpiexec, "allow_run_as_root": "1", **options}
    job = MetadataJob(
        engine=EngineName.MDTEST,
        ranks=ranks,
        files_per_rank=FILES,
        rank_shift=ranks,
        options=tuple(words.items()),
    )
    point = Point("0" * 16, "default", "meta", (), job, "")
    return PlannedRun(1, 1, point)


async def take(host: Host, path: str) -> Site:
    """The session's folder on a connected host."""
    message = await host.ask(
        "scratch_open", deadline_s=20, path=path, name=scratch_name(host.name), owner="a test"
    )
    return Site(host, read_answer(host.name, ScratchAnswer, message).dir, None, host.name)


async def leave(sites: Sequence[Site]) -> None:
    """The folders gone."""
    for site in sites:
        await site.host.ask("scratch_close", deadline_s=20, dir=site.dir, keep=False)


async def play(
    run: PlannedRun, hosts: Mapping[str, Host], path: str, stop: Stop | None = None
) -> tuple[tuple[ReportedRate, ...], list[Evidence]]:
    """One run on those hosts, which are connected, and the evidence of it."""
    study = study_of()
    crew = Crew(
        study,
        make_plan(study),
        dict(hosts),
        {},
        Notes(),
        stop or Stop(),
        SYSTEM_CLOCK,
        "trial",
    )
    sites = [await take(host, path) for host in hosts.values()]
    evidence = [Evidence(site) for site in sites]
    driver = MdtestDriver()
    try:
        await driver.prepare(crew, run, evidence)
        rates = await driver.measure(crew, run, evidence, CounterCollector())
    finally:
        living = [site for site in sites if not site.host.lost]
        await leave(living)
    return rates, evidence
