"""mdtest runs without a study file: the driver alone, on real hosts with a real MPI.

`stand_in` makes a program that is not mdtest: it is started by mpiexec as mdtest is, makes and
removes a folder for each of its ranks, and prints an output of mdtest 4.0.0 that was recorded
(tests/golden/mdtest), with the run's own numbers of ranks and files in it. Debian has no package
of mdtest; `make mdtest-test MDTEST=...` runs the same tests with the real one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from iolab.core.run import PlannedRun, Point
from iolab.hosts.answers import ScratchAnswer, read_answer
from iolab.hosts.barrier import StopRequest
from iolab.hosts.clock import SYSTEM_CLOCK
from iolab.hosts.host import Host
from iolab.hosts.telemetry import CounterCollector
from iolab.loads.metadata.mdtest import MdtestDriver
from iolab.loads.metadata.workload import MDTEST_ENGINE, MetadataJob, ReportedRate
from iolab.session.context import SessionContext
from iolab.session.driver import HostRunInProgress
from iolab.targets.work_directory import WorkDirectory, scratch_folder_name
from tests.needs import require
from tests.plans import make_plan
from tests.recorded import recorded
from tests.session.stage import Notes, study_of

MPIEXECS: Final = ("mpiexec.mpich", "mpiexec.openmpi")
FILES: Final = 50

_STAND_IN: Final = """\
#!/bin/sh
# A stand-in for mdtest, which it is not.
if [ "$*" = "-h" ]; then
    echo "a stand-in for mdtest"
    exit
fi
rank=${PMI_RANK:-$OMPI_COMM_WORLD_RANK}
size=${PMI_SIZE:-$OMPI_COMM_WORLD_SIZE}
while [ $# -gt 0 ]; do
    case $1 in
        -n) files=$2 ;;
        -d) folder=$2 ;;
    esac
    shift
done
mkdir -p "$folder/rank.$rank"
[ SECONDS = 0 ] || exec sleep SECONDS
rmdir "$folder/rank.$rank"
[ "$rank" = 0 ] || exit 0
# What rank 0 saw is of four ranks, and would contradict any other number.
all=$((size * files))
sed -e "s/4 total task/$size total task/" -e "s/4 tasks, 200 files/$size tasks, $all files/" \
    -e "/ ops.sec/d" "RECORDED"
"""


def stand_in(folder: Path, *, seconds: int = 0) -> Path:
    """Such a program in that folder; with `seconds` its ranks do nothing but sleep."""
    output = folder / "recorded.txt"
    output.write_bytes(recorded("mdtest/one-4.0.0.txt"))
    program = folder / ("mdtest-slow" if seconds else "mdtest-quick")
    text = _STAND_IN.replace("SECONDS", str(seconds)).replace("RECORDED", str(output))
    program.write_text(text, encoding="ascii")
    program.chmod(0o755)
    return program


def planned(mdtest: Path, mpiexec: str, ranks: int, **options: str) -> PlannedRun:
    """A run of that program with so many ranks on each client."""
    require(mpiexec)
    words = {"mdtest": str(mdtest), "mpiexec": mpiexec, "allow_run_as_root": "1", **options}
    job = MetadataJob(
        engine=MDTEST_ENGINE,
        ranks=ranks,
        files_per_rank=FILES,
        rank_shift=ranks,
        options=tuple(words.items()),
    )
    point = Point("0" * 16, "default", "meta", (), job, "")
    return PlannedRun(1, 1, point)


async def take(host: Host, path: str) -> WorkDirectory:
    """The session's folder on a connected host."""
    message = await host.request(
        "scratch_open",
        deadline_s=20,
        path=path,
        name=scratch_folder_name(host.name),
        owner="a test",
    )
    return WorkDirectory(host, read_answer(host.name, ScratchAnswer, message).dir, None, host.name)


async def leave(workdirs: Sequence[WorkDirectory]) -> None:
    """The folders gone."""
    for workdir in workdirs:
        await workdir.host.request("scratch_close", deadline_s=20, dir=workdir.dir, keep=False)


async def play(
    run: PlannedRun, hosts: Mapping[str, Host], path: str, stop: StopRequest | None = None
) -> tuple[tuple[ReportedRate, ...], list[HostRunInProgress]]:
    """One run on those hosts, which are connected, and the states of its hosts."""
    study = study_of()
    session = SessionContext(
        study,
        make_plan(study),
        dict(hosts),
        {},
        Notes(),
        stop or StopRequest(),
        SYSTEM_CLOCK,
        "trial",
    )
    workdirs = [await take(host, path) for host in hosts.values()]
    states = [HostRunInProgress(workdir) for workdir in workdirs]
    driver = MdtestDriver()
    try:
        await driver.do_steps_before_load(session, run, states)
        await driver.measure(session, run, states, CounterCollector())
    finally:
        living = [workdir for workdir in workdirs if not workdir.host.lost_reason]
        await leave(living)
    return driver.rates, states
