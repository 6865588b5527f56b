"""`--hosts slurm` against a real Slurm: sessions, resume elsewhere, nodes and jobs that go."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from iolab.core.host import HostSpec, HostTransport
from iolab.hosts.connect import SlurmHost
from iolab.study.host_ranges import expand_names
from tests.fleet.bed import VISIT_LIMIT_S, sleeper
from tests.fleet.slurm_bed import Cluster, cluster, wait_until
from tests.fleet.test_session import STUDY
from tests.processes import run_program

pytestmark = [pytest.mark.e2e, pytest.mark.long]

IOLAB = str(Path(sys.executable).with_name("iolab"))
BUSY_OPTIONS = ("--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--mem-per-cpu=100")


@pytest.fixture(scope="module")
def slurm() -> Iterator[Cluster]:
    """Two idle nodes; a test must leave nothing running on them."""
    with cluster() as made:
        yield made


@pytest.fixture
def study(tmp_path: Path) -> str:
    path = tmp_path / "fleet.toml"
    path.write_text(STUDY, encoding="utf-8")
    return str(path)


@pytest.fixture
def session(slurm: Cluster, study: str, tmp_path: Path) -> Path:
    """A small session on both nodes, made from within salloc as a user would."""
    path = tmp_path / "session"
    words = (IOLAB, "run", study, "--hosts", "slurm", "--path", str(slurm.target))
    done = slurm.run("salloc", "--quiet", *BUSY_OPTIONS, *words, "--out", str(path))
    assert done.returncode == 0, done.stderr
    return path


def test_a_session_runs_through_srun_and_goes_on_in_another_job(
    slurm: Cluster, session: Path
) -> None:
    manifest = next(session.glob("points/*/run-1/manifest.json")).read_text("utf-8")
    assert '"n1"' in manifest
    assert '"n2"' in manifest
    kept = json.loads((session / "session.json").read_text("utf-8"))
    assert "SLURM_JOB_ID" not in json.dumps(kept)
    slurm.wait_until_alone()
    for node in ("n1", "n2"):
        assert list(slurm.on(node, "target").iterdir()) == []
        assert len(list(slurm.on(node, "tmp").glob("iolab-agent-*/*"))) == 1
    shutil.rmtree(next(session.glob("points/*")))  # as if it had stopped before
    smaller = slurm.run("salloc", "--quiet", "--nodelist=n1", IOLAB, "resume", str(session))
    assert smaller.returncode == 3
    assert "Host 'n2' is no node of Slurm job " in smaller.stderr
    assert "salloc -w n2" in smaller.stderr
    outside = slurm.run(IOLAB, "resume", str(session))
    assert outside.returncode == 3
    assert "There is no Slurm allocation here (SLURM_JOB_ID is not set)" in outside.stderr
    again = slurm.run("salloc", "--quiet", "--nodes=2", IOLAB, "resume", str(session))
    assert again.returncode == 0, again.stderr
    assert "0 of 1 runs are done" in again.stderr
    assert len(list(session.glob("points/*/run-1/manifest.json"))) == 1
    slurm.wait_until_alone()


def test_a_node_that_went_down_is_named_and_the_other_answers(slurm: Cluster) -> None:
    with slurm.allocation("--nodes=2", "--no-kill") as inside:
        slurm.slurm("scontrol", "update", "nodename=n2", "state=down", "reason=test")
        try:
            done = slurm.run(IOLAB, "doctor", "--hosts", "slurm", "--json", **inside)
        finally:
            slurm.slurm("scontrol", "update", "nodename=n2", "state=resume")
    hosts = {host["name"]: host["reached"] for host in json.loads(done.stdout)["hosts"]}
    assert hosts == {"n1": True, "n2": False}
    assert done.returncode == 3
    fault = next(one for one in json.loads(done.stdout)["findings"] if one["state"] == "fault")
    assert fault["hosts"] == ["n2"]
    assert "srun: error" in fault["message"]
    assert "sinfo -N" in fault["hint"]


def test_an_allocation_that_is_over_is_told(slurm: Cluster, study: str) -> None:
    with slurm.allocation("--nodes=2") as inside:
        pass
    words = ("plan", study, "--hosts", "slurm", "--path", str(slurm.target))
    done = slurm.run(IOLAB, *words, **inside)
    assert done.returncode == 3
    assert "host 'n1'" in done.stderr
    assert "host 'n2'" in done.stderr
    assert re.search(r"Slurm job \d+ has expired|Invalid job id", done.stderr)
    assert "See with 'squeue'" in done.stderr


def test_an_allocation_that_ends_in_a_run_makes_it_failed(slurm: Cluster, tmp_path: Path) -> None:
    study, session = tmp_path / "long.toml", tmp_path / "session"
    study.write_text(STUDY.replace('runtime = "1s"', 'runtime = "120s"'), encoding="utf-8")
    words = [IOLAB, "run", study, "--hosts", "slurm", "--path", slurm.target, "--out", session]
    with slurm.allocation("--nodes=2") as inside:
        running = subprocess.Popen(
            [str(word) for word in words],
            env={**slurm.environment, **inside},
            stderr=subprocess.PIPE,
            text=True,
        )
        assert running.stderr is not None
        for line in running.stderr:
            if "IOPS" in line:
                break
        slurm.slurm("scancel", inside["SLURM_JOB_ID"])
        running.communicate(timeout=60)
        assert running.returncode == 3
    manifest = json.loads(next(session.glob("points/*/run-1/manifest.json")).read_text("utf-8"))
    assert manifest["status"] == "failed"
    slurm.wait_until_alone()
    for node in ("n1", "n2"):
        assert list(slurm.on(node, "target").iterdir()) == []


def test_an_srun_that_is_killed_leaves_nothing_on_the_node(slurm: Cluster) -> None:
    async def body(inside: dict[str, str]) -> None:
        spec = HostSpec("n1", HostTransport.SLURM)
        host = SlurmHost(spec, asyncio.Semaphore(1), environment={**slurm.environment, **inside})
        try:
            async with asyncio.timeout(VISIT_LIMIT_S):
                await host.connect()
                await sleeper(host)
                assert "sleep" in slurm.programs()
                for pid in sruns():
                    os.kill(pid, signal.SIGKILL)
                await asyncio.to_thread(wait_until, lambda: "sleep" not in slurm.programs())
                assert host.lost_reason is not None
        finally:
            await host.close()

    with slurm.allocation("--nodes=1", "--nodelist=n1") as inside:
        asyncio.run(body(inside))
        slurm.wait_until_alone()


def sruns() -> list[int]:
    """The sruns that this process has started."""
    words = ["pgrep", "--parent", str(os.getpid()), "--exact", "srun"]
    said = run_program(words, timeout=10, check=True).stdout
    return [int(word) for word in said.split()]


@pytest.mark.parametrize(
    "nodes",
    ["n1", "n[1-2]", "n[08-11]", "n[9-11]", "n[1-2,7]", "r[1-2]n[01-02]", "a,b[3,1-2],c", "n[007]"],
)
def test_lists_of_nodes_stand_for_what_slurm_says(slurm: Cluster, nodes: str) -> None:
    assert list(expand_names(nodes)) == slurm.slurm("scontrol", "show", "hostnames", nodes).split()
