"""fio as an engine: its job files, its commands, real fio, and what it makes of nothing."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from iolab.core.host import ToolFacts
from iolab.core.workload import DataSet
from iolab.errors import EngineError
from iolab.hosts.engine import Command
from iolab.loads.fileio.engine_facts import FIO_ENGINE
from iolab.loads.fileio.engines.fio import (
    NULL_FOLDER,
    FioEngine,
    layout_block_bytes,
    layout_job_file,
    measurement_job_file,
    overwrite_job_file,
)
from iolab.loads.fileio.workload import (
    AccessPattern,
    IoArrivals,
    Job,
    WrittenContents,
    job_for_generator_limit,
)
from tests.loads.fileio.fixtures import output

FIO = FioEngine()
FILES = DataSet("s1m", "default", numjobs=2, files_per_job=2, file_bytes=1 << 20)
JOB = Job(FIO_ENGINE, AccessPattern.RANDRW, 4096, 1, 2, 1 << 20, 2, read_percent=50, direct=False)


def tool(version: str | None) -> ToolFacts:
    return ToolFacts("fio", "/usr/bin/fio", version)


@pytest.mark.parametrize(
    "version",
    ["fio-3.16", "fio-3.33", "fio-3.42", "fio-3.42-135-gf5344384", "fio-4.0", "fio-3.36.1"],
)
def test_versions_that_serve(version: str) -> None:
    FIO.require_usable(tool(version))


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (ToolFacts("fio", None, None), "fio is not installed."),
        (tool("fio-3.15"), "'fio-3.15', where fio 3.16 or newer is needed."),
        (tool("fio-2.99"), "'fio-2.99'"),
        (tool("fio-1.59"), "'fio-1.59'"),
        (tool("bash: fio: not found"), "unknown version: 'bash: fio: not found'"),
        (tool("fio-3"), "unknown version: 'fio-3'"),
        (
            ToolFacts("fio", "/usr/bin/fio", None, "it was ended by signal 11: no memory"),
            "unknown version: 'it was ended by signal 11: no memory'.",
        ),
    ],
)
def test_versions_that_do_not_serve(facts: ToolFacts, message: str) -> None:
    with pytest.raises(EngineError) as caught:
        FIO.require_usable(facts)
    assert message in caught.value.message
    assert "apt-get install fio" in caught.value.hint


def test_a_command_reads_its_job_from_standard_input_in_the_folder() -> None:
    command = FIO.build_measurement_command(JOB, FILES, "/mnt/a b:c/é$x", seconds=35, seed=1)
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
    command = FIO.build_measurement_command(JOB, FILES, "/mnt", seconds=1.5, seed=1)
    assert "runtime=1500ms" in command.job_file


def test_a_layout_has_time_for_its_bytes() -> None:
    large = DataSet("big", "default", numjobs=64, files_per_job=1, file_bytes=2 << 30)
    limit_s = FIO.build_layout_command(large, "/mnt", None, seed=1).wall_limit_s
    busy_disk = 5_000_000 / 12
    assert limit_s > large.bytes_per_host / busy_disk


def test_a_run_has_time_for_what_is_in_flight_on_a_slow_disk() -> None:
    deep = replace(JOB, block_bytes=1 << 20, iodepth=128, numjobs=2)
    limit_s = FIO.build_measurement_command(deep, FILES, "/mnt", seconds=30, seed=1).wall_limit_s
    assert limit_s > 30 + (256 << 20) / 1_000_000


def test_a_layout_that_wrote_too_little_is_a_fault() -> None:
    reader = FIO.create_layout_reader(
        DataSet("s32m", "c", numjobs=2, files_per_job=2, file_bytes=32 << 20)
    )
    reader.feed(output("layout-3.33"))
    assert reader.finish().faults == ("fio wrote 67108864 of 134217728 bytes",)
    reader = FIO.create_layout_reader(
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
    run(
        FIO.build_layout_command(
            FILES, str(folder), replace(JOB, direct=False, ioengine="psync"), seed=1
        )
    )
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES.file_names())
    assert {path.stat().st_size for path in folder.iterdir()} == {1 << 20}
    blocks = [path.read_bytes() for path in folder.iterdir()]
    assert len(set(blocks)) == len(blocks)
    assert all(block.count(0) < len(block) / 100 for block in blocks)

    command = FIO.build_measurement_command(JOB, FILES, str(folder), seconds=0.3, seed=1)
    assert run(rehearsal(command)).returncode == 0
    done = run(command)
    reader = FIO.create_measurement_reader(JOB)
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
    done = run(FIO.build_measurement_command(JOB, FILES, str(tmp_path), seconds=0.3, seed=1))
    assert done.returncode != 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("contents", WrittenContents)
def test_real_fio_understands_every_kind_of_contents(
    tmp_path: Path, contents: WrittenContents
) -> None:
    job = Job(FIO_ENGINE, AccessPattern.WRITE, 4096, 1, 1, 1 << 20, 2, contents=contents)
    command = FIO.build_measurement_command(job, FILES, str(tmp_path), seconds=1, seed=1)
    assert run(rehearsal(command)).returncode == 0


MANY_FILES = DataSet("s256m", "default", numjobs=4, files_per_job=2, file_bytes=256 << 20)
DEEP = Job(FIO_ENGINE, AccessPattern.RANDREAD, 4096, 8, 4, 256 << 20, files_per_job=2)


def options_of(text: str) -> dict[str, str]:
    section, *lines = text.splitlines()
    assert re.fullmatch(r"\[[a-z]+\]", section)
    pairs = [line.split("=", 1) for line in lines]
    assert len({name for name, _ in pairs}) == len(pairs)
    return dict(pairs)


def told(job: Job) -> dict[str, str]:
    return options_of(measurement_job_file(job, MANY_FILES, 30_000, 7))


def test_a_job_is_told_whole() -> None:
    assert told(DEEP) == {
        "ioengine": "libaio",
        "direct": "1",
        "rw": "randread",
        "bs": "4096",
        "iodepth": "8",
        "numjobs": "4",
        "nrfiles": "2",
        "filesize": "268435456",
        "size": "536870912",
        "filename_format": "s256m.$jobnum.$filenum",
        "fallocate": "none",
        "overwrite": "1",
        "allow_file_create": "0",
        "create_on_open": "0",
        "scramble_buffers": "1",
        "randrepeat": "1",
        "randseed": "8",
        "time_based": "1",
        "runtime": "30000ms",
        "group_reporting": "1",
        "lat_percentiles": "1",
        "clat_percentiles": "0",
        "disk_util": "0",
        "exitall_on_error": "1",
    }


@pytest.mark.parametrize(
    ("contents", "line"),
    [
        (WrittenContents.SCRAMBLED, "scramble_buffers"),
        (WrittenContents.RANDOM, "refill_buffers"),
        (WrittenContents.ZEROS, "zero_buffers"),
    ],
)
def test_contents_are_told_by_one_option(contents: WrittenContents, line: str) -> None:
    found = set(told(replace(DEEP, contents=contents)))
    assert found & {"scramble_buffers", "refill_buffers", "zero_buffers"} == {line}


def test_a_mix_is_told_and_its_rate_is_for_both_directions_together() -> None:
    mixed = replace(DEEP, access=AccessPattern.RANDRW, read_percent=70)
    assert told(mixed)["rwmixread"] == "70"
    assert "rate_iops" not in told(mixed)
    assert told(replace(mixed, rate_iops=1000))["rate_iops"] == "700,300"
    assert told(replace(mixed, rate_iops=1))["rate_iops"] == "1,1"
    assert told(replace(DEEP, rate_iops=1000))["rate_iops"] == "1000"


def test_arrivals_are_told_and_submitted_where_fio_comes_to_its_end() -> None:
    paced = replace(DEEP, rate_iops=1000)
    assert "rate_process" not in told(paced)
    random = told(replace(paced, arrivals=IoArrivals.POISSON))
    assert random["rate_process"] == "poisson"
    assert "io_submit_mode" not in random
    assert told(replace(paced, arrivals=IoArrivals.FIXED))["rate_process"] == "linear"
    assert "rate_process" not in told(replace(DEEP, arrivals=IoArrivals.FIXED))


def test_poisson_arrivals_at_a_rate_of_bytes_are_told_in_ios_of_each_direction() -> None:
    """fio divides by the whole I/Os a second of each, and cuts off what is left."""
    bytes_ = replace(DEEP, rate_bytes_per_s=4096 * 9 + 3000, arrivals=IoArrivals.POISSON)
    assert told(bytes_)["rate_iops"] == "10"
    mixed = replace(bytes_, access=AccessPattern.RANDRW, read_percent=70)
    assert told(mixed)["rate_iops"] == "7,3"
    assert told(replace(mixed, read_percent=100))["rate_iops"] == "10,1"
    by_option = replace(bytes_, arrivals=None, options=(("rate_process", "poisson"),))
    assert told(by_option)["rate_iops"] == "10"
    for poisson in (bytes_, mixed, by_option):
        assert "rate" not in told(poisson)
    even = replace(mixed, arrivals=IoArrivals.FIXED, read_percent=50)
    assert told(even)["rate"] == "19932,19932"
    assert "rate_iops" not in told(even)


def test_buffered_and_further_options_are_told() -> None:
    job = replace(DEEP, direct=False, ioengine="psync", options=(("thread", "1"), ("fsync", "32")))
    assert {
        "direct": "0",
        "ioengine": "psync",
        "thread": "1",
        "fsync": "32",
    }.items() <= told(job).items()


def test_seeds_of_jobs_differ_even_for_seed_zero() -> None:
    """fio multiplies its seed with the job's number: 0 would give all jobs the same offsets."""
    assert options_of(measurement_job_file(DEEP, MANY_FILES, 1000, 0))["randseed"] == "1"


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (replace(DEEP, ioengine="external:/tmp/evil.so"), "ioengine 'external"),
        (replace(DEEP, ioengine="libaio\nexec_prerun=id"), "is not one of"),
        (replace(DEEP, options=(("exec_prerun", "id"),)), "'exec_prerun' is not on the list"),
        (replace(DEEP, options=(("filename", "/dev/sda"),)), "'filename' is not on the list"),
        (replace(DEEP, options=(("fsync", "1\nexec_prerun=id"),)), "fsync does not take"),
        (replace(DEEP, options=(("fsync", "1\n[job]"),)), "fsync does not take"),
        (replace(DEEP, options=(("nice\n[x]", "1"),)), "is not on the list"),
        (replace(DEEP, block_bytes=100), "block size 100 is not within"),
        (replace(DEEP, iodepth=0), "iodepth 0 is not within"),
        (replace(DEEP, rate_iops=0), "rate_iops 0 is not within"),
        (replace(DEEP, access=AccessPattern.RW, read_percent=101), "rwmixread 101 is not within"),
        (replace(DEEP, numjobs=5), "5 jobs need more than 4 jobs' files"),
        (replace(DEEP, file_bytes=1 << 20), "the data set has 2 of 268435456"),
        (replace(DEEP, file_bytes=1 << 20, block_bytes=1 << 21), "exceeds a file of"),
    ],
)
def test_what_cannot_be_told_is_refused(job: Job, message: str) -> None:
    with pytest.raises(EngineError) as caught:
        measurement_job_file(job, MANY_FILES, 1000, 1)
    assert message in caught.value.message


@pytest.mark.parametrize("name", ["", "a b", "a:b", "../x", ".x", "a/b", "s$jobnum", "a\n[b]", "é"])
def test_a_data_set_whose_name_fio_could_misread_is_refused(name: str) -> None:
    with pytest.raises(EngineError, match="cannot begin file names"):
        measurement_job_file(DEEP, replace(MANY_FILES, id=name), 1000, 1)
    with pytest.raises(EngineError, match="cannot begin file names"):
        layout_job_file(replace(MANY_FILES, id=name), is_direct_io=True, ioengine="libaio", seed=1)


def laid_out(files: DataSet, *, direct: bool = True) -> dict[str, str]:
    return options_of(layout_job_file(files, is_direct_io=direct, ioengine="libaio", seed=7))


def test_a_layout_writes_every_file_whole_and_flushes() -> None:
    assert laid_out(MANY_FILES) == {
        "ioengine": "libaio",
        "direct": "1",
        "rw": "write",
        "bs": "1048576",
        "iodepth": "4",
        "numjobs": "4",
        "nrfiles": "2",
        "filesize": "268435456",
        "size": "536870912",
        "filename_format": "s256m.$jobnum.$filenum",
        "openfiles": "1",
        "file_service_type": "sequential",
        "fallocate": "native",
        "refill_buffers": "1",
        "randseed": "8",
        "end_fsync": "1",
        "fsync_on_close": "1",
        "group_reporting": "1",
        "lat_percentiles": "1",
        "clat_percentiles": "0",
        "disk_util": "0",
        "exitall_on_error": "1",
    }


@pytest.mark.parametrize(
    ("file_bytes", "block", "direct"),
    [
        (3 << 20, "1048576", "1"),
        ((3 << 20) + 65536, "65536", "1"),
        ((3 << 20) + 4096, "4096", "1"),
        ((3 << 20) + 512, "512", "0"),
    ],
)
def test_a_layout_takes_the_largest_block_that_fits(
    file_bytes: int, block: str, direct: str
) -> None:
    found = laid_out(replace(MANY_FILES, file_bytes=file_bytes))
    assert (found["bs"], found["direct"]) == (block, direct)
    assert file_bytes % layout_block_bytes(file_bytes) == 0


def test_a_file_of_odd_bytes_is_not_laid_out() -> None:
    with pytest.raises(EngineError, match="not a multiple of 512"):
        laid_out(replace(MANY_FILES, file_bytes=1_000_001))
    with pytest.raises(EngineError, match="not a multiple of 512"):
        laid_out(replace(MANY_FILES, file_bytes=0))


DEEP_DEVICE = replace(MANY_FILES, device="nvme9n1")


def test_a_device_is_told_by_its_name_and_each_job_has_its_own_region() -> None:
    found = options_of(measurement_job_file(DEEP, DEEP_DEVICE, 1000, 1))
    assert found["filename"] == "nvme9n1"
    assert found["size"] == found["offset_increment"] == str(DEEP_DEVICE.bytes_per_job)
    assert not {"nrfiles", "filesize", "filename_format"} & set(found)


def test_a_fill_goes_over_the_region_so_many_times_in_128_kib() -> None:
    found = options_of(
        overwrite_job_file(DEEP_DEVICE, 2.5, is_direct_io=True, ioengine="libaio", seed=1)
    )
    region = DEEP_DEVICE.bytes_per_host
    assert (found["rw"], found["bs"], found["numjobs"]) == ("write", str(128 << 10), "1")
    assert found["size"] == str(region)
    assert int(found["io_size"]) == -(-region * 5 // 2 // (128 << 10)) * (128 << 10)


def test_a_fill_of_files_has_a_job_for_each_jobs_files() -> None:
    found = options_of(
        overwrite_job_file(MANY_FILES, 1, is_direct_io=True, ioengine="libaio", seed=1)
    )
    assert found["numjobs"] == str(MANY_FILES.numjobs)
    assert found["io_size"] == str(MANY_FILES.bytes_per_job)
    assert "filename" not in found


@pytest.mark.parametrize("name", ["a:b", "../sda", "a b", "a$b"])
def test_a_device_whose_name_fio_could_misread_is_refused(name: str) -> None:
    with pytest.raises(EngineError):
        measurement_job_file(DEEP, replace(MANY_FILES, device=name), 1000, 1)


def test_trims_and_rates_in_bytes_are_told_in_fios_words() -> None:
    job = replace(DEEP, access=AccessPattern.RANDTRIM, iodepth=1, rate_bytes_per_s=1 << 20)
    assert {"rw": "randtrim", "rate": "1048576"}.items() <= told(job).items()
    assert "rate_iops" not in told(job)
    mixed = replace(DEEP, access=AccessPattern.RANDRW, read_percent=75, rate_bytes_per_s=4000)
    assert told(mixed)["rate"] == "3000,1000"
    assert told(replace(mixed, arrivals=IoArrivals.POISSON))["rate_process"] == "poisson"


NULL_READS = Job(
    FIO_ENGINE, AccessPattern.RANDREAD, 4096, 32, 4, 1 << 30, options=(("fsync", "1"),)
)


def lines(job: Job) -> list[str]:
    command = FioEngine().build_null_target_command(job_for_generator_limit(job), seconds=0.5)
    assert command is not None
    assert command.cwd == NULL_FOLDER
    assert not any("status-interval" in word for word in command.argv)
    return command.stdin.decode("ascii").splitlines()


def test_reads_are_writes_that_cost_nothing_to_fill() -> None:
    told = lines(replace(NULL_READS, rate_iops=10))
    for line in ("rw=randwrite", "filename=null", "direct=0", "zero_buffers=1", "runtime=500ms"):
        assert line in told
    for line in ("iodepth=32", "numjobs=4", "ioengine=libaio"):
        assert line in told
    assert not any(line.startswith(("rate", "fsync", "rwmixread")) for line in told)


def test_writes_are_filled_as_they_would_be() -> None:
    writes = replace(
        NULL_READS, access=AccessPattern.RW, read_percent=49, contents=WrittenContents.RANDOM
    )
    told = lines(replace(writes, block_bytes=1 << 20))
    for line in ("rw=write", "bs=1048576", "refill_buffers=1"):
        assert line in told


def test_nothing_takes_trims() -> None:
    assert (
        FioEngine().build_null_target_command(
            replace(NULL_READS, access=AccessPattern.RANDTRIM), seconds=0.5
        )
        is None
    )


def test_what_a_null_job_cannot_be_told_is_refused() -> None:
    wrong = replace(NULL_READS, options=(("exec_prerun", "true"),))
    with pytest.raises(EngineError, match="exec_prerun"):
        FioEngine().build_null_target_command(wrong, seconds=0.5)
