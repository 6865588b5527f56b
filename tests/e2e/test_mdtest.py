"""mdtest's driver on this machine with the real mpiexec of MPICH and of Open MPI.

mdtest itself is a stand-in (`tests.e2e.mpi`), unless the environment names the real one.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from iolab.core.host import HostSpec, HostTransport
from iolab.core.run import PlannedRun
from iolab.errors import EngineError
from iolab.hosts.barrier import StopRequest
from iolab.hosts.connect import LocalHost
from iolab.loads.metadata.workload import MetadataOperation, ReportedRate
from iolab.session.driver import HostRunInProgress
from tests.e2e.mpi import FILES, MPIEXECS, planned, play, stand_in

pytestmark = [pytest.mark.e2e, pytest.mark.long]


def on_this_machine(
    run: PlannedRun, path: Path, stop: StopRequest | None = None
) -> tuple[tuple[ReportedRate, ...], list[HostRunInProgress]]:
    async def body() -> tuple[tuple[ReportedRate, ...], list[HostRunInProgress]]:
        host = LocalHost(HostSpec("local", HostTransport.LOCAL))
        await host.connect()
        try:
            async with asyncio.timeout(60):
                return await play(run, {"local": host}, str(path), stop)
        finally:
            await host.close()

    return asyncio.run(body())


def programs(folder: Path) -> list[tuple[Path, str]]:
    """(mdtest, mpiexec): the stand-in under each MPI, or the real one under its own."""
    if real := os.environ.get("IOLAB_TEST_MDTEST"):
        return [(Path(real), os.environ.get("IOLAB_TEST_MPIEXEC", "mpiexec"))]
    return [(stand_in(folder), mpiexec) for mpiexec in MPIEXECS]


@pytest.mark.parametrize("ranks", [1, 4])
def test_mdtest_runs_under_both_mpis(tmp_path: Path, ranks: int) -> None:
    target = tmp_path / "target"
    target.mkdir()
    for mdtest, mpiexec in programs(tmp_path):
        rates, (mine,) = on_this_machine(planned(mdtest, mpiexec, ranks), target)
        assert [rate.operation for rate in rates] == list(MetadataOperation)
        creates = rates[1]
        assert creates.seconds == pytest.approx(ranks * FILES / creates.ops_per_s)
        assert mine.reading is not None
        assert mine.reading.version
        assert mine.output is not None
        assert b"-- finished at" in mine.output.decompress()
        assert mine.command is not None
        assert mine.command.argv[0] == mpiexec
        assert list(target.iterdir()) == []


@pytest.mark.parametrize("mpiexec", MPIEXECS)
def test_a_stop_ends_every_rank(tmp_path: Path, mpiexec: str) -> None:
    target = tmp_path / "target"
    target.mkdir()
    stop = StopRequest()
    run = planned(stand_in(tmp_path, seconds=1000), mpiexec, 3)

    async def body() -> list[HostRunInProgress]:
        host = LocalHost(HostSpec("local", HostTransport.LOCAL))
        await host.connect()
        try:
            task = asyncio.create_task(play(run, {"local": host}, str(target), stop))
            while len(list(target.glob("*/mdtest.1.1/rank.*"))) < 3:
                assert not task.done(), task.result()
                await asyncio.sleep(0.05)
            stop.request_stop()
            async with asyncio.timeout(60):
                _, states = await task
            return states
        finally:
            await host.close()

    (mine,) = asyncio.run(body())
    assert mine.ending is not None
    assert mine.ending.was_halted
    assert left(tmp_path) == []
    assert list(target.iterdir()) == []


@pytest.mark.parametrize("mpiexec", MPIEXECS)
def test_a_rank_that_fails_makes_the_run_fail_with_its_words(tmp_path: Path, mpiexec: str) -> None:
    program = tmp_path / "mdtest"
    text = "#!/bin/sh\necho 'ERROR: open64() failed. Error: No space left on device'\nexit 255\n"
    program.write_text(text, encoding="ascii")
    program.chmod(0o755)
    with pytest.raises(EngineError) as caught:
        on_this_machine(planned(program, mpiexec, 2), tmp_path)
    assert "No space left on device" in caught.value.message
    assert "exit code 255" in caught.value.message


def test_programs_that_are_not_there_are_named(tmp_path: Path) -> None:
    missing = tmp_path / "nowhere" / "mdtest"
    with pytest.raises(EngineError, match=r"There is no .*/nowhere/mdtest on host 'local'"):
        on_this_machine(planned(missing, MPIEXECS[0], 2), tmp_path)


def left(folder: Path) -> list[str]:
    """Processes whose command line names that folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if str(folder) in words:
            found.append(words)
    return found
