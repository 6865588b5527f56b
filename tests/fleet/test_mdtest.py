"""mdtest over real ssh: mpiexec on c01 starts ranks on all hosts, and none outlives the controller.

The hosts reach each other by ssh with root's key, as a site's would. mdtest itself is a stand-in
(`tests.e2e.mpi`), unless the environment names the real one.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from iolab.core.run import PlannedRun
from iolab.errors import HostError
from iolab.hosts.host import Host
from iolab.loads.metadata.workload import MetadataOperation
from tests.e2e.mpi import FILES, MPIEXECS, planned, play, stand_in
from tests.fleet.bed import Bed, bed, visit

pytestmark = [pytest.mark.e2e, pytest.mark.long]

RANKS = 2
START_LIMIT_S = 40.0


@pytest.fixture(scope="module")
def meshed() -> Iterator[Bed]:
    """Three hosts on one shared target that may log in to each other."""
    with bed(3, "shared") as made:
        for name in made.specs:
            befriend(made, name)
        yield made


def befriend(made: Bed, name: str) -> None:
    """Give a host's root the fleet's key and its known hosts."""
    folder = made.fleet.folder(name) / "home" / ".ssh"
    folder.mkdir(mode=0o700, exist_ok=True)
    shutil.copy(made.base / "id_ed25519", folder / "id_ed25519")
    shutil.copy(made.base / "known_hosts", folder / "known_hosts")
    # root's folder as its password entry has it, which is where ssh looks.
    (folder / "config").write_text("BatchMode yes\nStrictHostKeyChecking yes\n", encoding="ascii")


def programs(made: Bed) -> list[tuple[Path, str]]:
    """(mdtest, mpiexec): the stand-in under each MPI, or the real one under its own."""
    if real := os.environ.get("IOLAB_TEST_MDTEST"):
        return [(Path(real), os.environ.get("IOLAB_TEST_MPIEXEC", "mpiexec"))]
    program = stand_in(made.base)
    return [(program, mpiexec) for mpiexec in MPIEXECS]


def target(made: Bed) -> str:
    path = made.specs["c01"].path
    assert path is not None
    return path


def test_ranks_run_on_all_hosts(meshed: Bed) -> None:
    for mdtest, mpiexec in programs(meshed):
        measure(meshed, planned(mdtest, mpiexec, RANKS))
        for name in meshed.specs:
            meshed.wait_until_alone(name)
        assert list(target_of_shared(meshed).iterdir()) == []


def measure(meshed: Bed, run: PlannedRun) -> None:
    async def work(*hosts: Host) -> None:
        rates, evidence = await play(run, {host.name: host for host in hosts}, target(meshed))
        assert [rate.operation for rate in rates] == list(MetadataOperation)
        creates = rates[1]
        assert creates.seconds == pytest.approx(3 * RANKS * FILES / creates.ops_per_s)
        for mine in evidence:
            assert mine.error is None
            assert mine.reading is not None
            assert mine.disks_after is not None
            assert mine.disks_before is not None
            assert mine.disks_after.mono_ns > mine.disks_before.mono_ns

    visit(work, *meshed.specs.values())


def target_of_shared(made: Bed) -> Path:
    """The shared target as this machine sees it."""
    return made.base / "shared"


@pytest.mark.parametrize("mpiexec", MPIEXECS)
def test_no_rank_outlives_a_controller_that_is_killed(meshed: Bed, mpiexec: str) -> None:
    words = [sys.executable, "-c", _CONTROLLER, str(meshed.inventory), mpiexec]
    words.append(str(stand_in(meshed.base, seconds=1000)))
    with subprocess.Popen(words, cwd=Path(__file__).parents[2]) as controller:
        try:
            wait_for_ranks(meshed, controller)
            assert all(len(meshed.sessions(name)) > RANKS for name in meshed.specs)
        finally:
            controller.send_signal(signal.SIGKILL)
    for name in meshed.specs:
        meshed.wait_until_alone(name)
    assert list(target_of_shared(meshed).iterdir()) == []


@pytest.mark.parametrize("mpiexec", MPIEXECS)
def test_a_host_that_is_lost_ends_the_run_on_all(meshed: Bed, mpiexec: str) -> None:
    run = planned(stand_in(meshed.base, seconds=1000), mpiexec, RANKS)

    async def work(*hosts: Host) -> None:
        task = asyncio.create_task(play(run, {host.name: host for host in hosts}, target(meshed)))
        while len(ranks_there(meshed)) < 3 * RANKS:
            assert not task.done(), task.exception()
            await asyncio.sleep(0.1)
        meshed.kill_sshd("c03")
        with pytest.raises(HostError, match="c03"):
            await task

    try:
        visit(work, *meshed.specs.values())
        for name in ("c01", "c02"):
            meshed.wait_until_alone(name)
    finally:
        meshed.start_sshd("c03")


def ranks_there(made: Bed) -> list[Path]:
    return list(target_of_shared(made).glob("*/mdtest.1.1/rank.*"))


def wait_for_ranks(made: Bed, controller: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while len(ranks_there(made)) < 3 * RANKS:
        assert controller.poll() is None, "the controller ended"
        assert time.monotonic() < deadline, f"only {ranks_there(made)}"
        time.sleep(0.1)


_CONTROLLER = """\
import sys
from pathlib import Path
from iolab.study.inventory import parse_inventory
from tests.e2e.mpi import planned, play
from tests.fleet.bed import visit
inventory, mpiexec, mdtest = sys.argv[1:]
specs = parse_inventory(Path(inventory).read_text("utf-8"), "inventory.toml")
run = planned(Path(mdtest), mpiexec, 2)
async def work(*hosts):
    await play(run, {host.name: host for host in hosts}, hosts[0].spec.path)
visit(work, *specs)
"""
