"""The engine: versions, commands, and real fio doing what the commands say."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from iolab.core.host import ToolFacts
from iolab.core.workload import DataSet
from iolab.errors import EngineError
from iolab.hosts.engine import Command
from iolab.loads.fileio.engine_facts import FIO_ENGINE
from iolab.loads.fileio.engines.fio import FioEngine
from iolab.loads.fileio.workload import Access, Contents, Job
from tests.loads.fileio.fixtures import output

FIO = FioEngine()
FILES = DataSet("s1m", "default", numjobs=2, files_per_job=2, file_bytes=1 << 20)
JOB = Job(FIO_ENGINE, Access.RANDRW, 4096, 1, 2, 1 << 20, 2, read_percent=50, direct=False)


def tool(version: str | None) -> ToolFacts:
    return ToolFacts("fio", "/usr/bin/fio", version)


@pytest.mark.parametrize(
    "version",
    ["fio-3.16", "fio-3.33", "fio-3.42", "fio-3.42-135-gf5344384", "fio-4.0", "fio-3.36.1"],
)
def test_versions_that_serve(version: str) -> None:
    FIO.check(tool(version))


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        (ToolFacts("fio", None, None), "fio is not installed."),
        (tool("fio-3.15"), "'fio-3.15', where fio 3.16 or newer is needed."),
        (tool("fio-2.99"), "'fio-2.99'"),
        (tool("fio-1.59"), "'fio-1.59'"),
        (tool("bash: fio: not found"), "'bash: fio: not found', where"),
        (tool("fio-3"), "'fio-3', where"),
        (tool(None), "'', where"),
    ],
)
def test_versions_that_do_not_serve(facts: ToolFacts, says: str) -> None:
    with pytest.raises(EngineError) as caught:
        FIO.check(facts)
    assert says in caught.value.happened
    assert "apt-get install fio" in caught.value.do


def test_a_command_reads_its_job_from_standard_input_in_the_folder() -> None:
    command = FIO.measure(JOB, FILES, "/mnt/a b:c/é$x", seconds=35, seed=1)
    assert command.argv == (
        "fio",
        "--output-format=json+",
        "--status-interval=1",
        "--eta=never",
        "-",
    )
    assert command.cwd == "/mnt/a b:c/é$x"
    assert command.stdin.decode() == command.job_file
    assert "/" not in command.job_file
    assert 95 <= command.wall_limit_s < 120
    assert "runtime=35000ms" in command.job_file


def test_a_fraction_of_a_second_is_kept() -> None:
    command = FIO.measure(JOB, FILES, "/mnt", seconds=1.5, seed=1)
    assert "runtime=1500ms" in command.job_file


def test_a_layout_has_time_for_its_bytes() -> None:
    large = DataSet("big", "default", numjobs=64, files_per_job=1, file_bytes=2 << 30)
    limit_s = FIO.layout(large, "/mnt", None, seed=1).wall_limit_s
    busy_disk = 5_000_000 / 12
    assert limit_s > large.bytes_per_host / busy_disk


def test_a_run_has_time_for_what_is_in_flight_on_a_slow_disk() -> None:
    deep = replace(JOB, block_bytes=1 << 20, iodepth=128, numjobs=2)
    limit_s = FIO.measure(deep, FILES, "/mnt", seconds=30, seed=1).wall_limit_s
    assert limit_s > 30 + (256 << 20) / 1_000_000


def test_a_layout_that_wrote_too_little_is_a_fault() -> None:
    reader = FIO.layout_reader(
        DataSet("s32m", "c", numjobs=2, files_per_job=2, file_bytes=32 << 20)
    )
    reader.feed(output("layout-3.33"))
    assert reader.finish().faults == ("fio wrote 67108864 of 134217728 bytes",)
    reader = FIO.layout_reader(
        DataSet("s32m", "c", numjobs=2, files_per_job=1, file_bytes=32 << 20)
    )
    reader.feed(output("layout-3.33"))
    assert reader.finish().faults == ()


def run(command: Command) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command.argv, cwd=command.cwd, input=command.stdin, capture_output=True, check=False
    )


def rehearsal(command: Command) -> Command:
    """The same job, only read: fio does no I/O and exits 0 when it understands every option."""
    return replace(command, argv=("fio", "--parse-only", "-"))


def test_real_fio_lays_out_and_measures_in_a_folder_of_any_name(tmp_path: Path) -> None:
    folder = tmp_path / "a b:c;#$x%é'\""
    folder.mkdir()
    run(FIO.layout(FILES, str(folder), replace(JOB, direct=False, ioengine="psync"), seed=1))
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES.file_names())
    assert {path.stat().st_size for path in folder.iterdir()} == {1 << 20}
    blocks = [path.read_bytes() for path in folder.iterdir()]
    assert len(set(blocks)) == len(blocks)
    assert all(block.count(0) < len(block) / 100 for block in blocks)

    command = FIO.measure(JOB, FILES, str(folder), seconds=0.3, seed=1)
    assert run(rehearsal(command)).returncode == 0
    done = run(command)
    reader = FIO.reader(JOB)
    reader.feed(done.stdout)
    result = reader.finish()
    assert (done.returncode, result.faults) == (0, ())
    assert result.totals is not None
    assert result.totals.read is not None
    assert result.totals.write is not None
    assert sum(i.ios for i in result.intervals) == (
        result.totals.read.ios + result.totals.write.ios
    )
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES.file_names())


def test_real_fio_creates_no_file_that_is_missing(tmp_path: Path) -> None:
    done = run(FIO.measure(JOB, FILES, str(tmp_path), seconds=0.3, seed=1))
    assert done.returncode != 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("contents", Contents)
def test_real_fio_understands_every_kind_of_contents(tmp_path: Path, contents: Contents) -> None:
    job = Job(FIO_ENGINE, Access.WRITE, 4096, 1, 1, 1 << 20, 2, contents=contents)
    command = FIO.measure(job, FILES, str(tmp_path), seconds=1, seed=1)
    assert run(rehearsal(command)).returncode == 0
