"""A job file says what the job asks for, and nothing that anybody else wrote."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from iolab.core.workload import DataSet
from iolab.errors import EngineError
from iolab.loads.fileio.engine_facts import FIO_ENGINE
from iolab.loads.fileio.engines.fio import fill_job, layout_block_bytes, layout_job, measure_job
from iolab.loads.fileio.workload import Access, Arrivals, Contents, Job

FILES = DataSet("s256m", "default", numjobs=4, files_per_job=2, file_bytes=256 << 20)
JOB = Job(FIO_ENGINE, Access.RANDREAD, 4096, 8, 4, 256 << 20, files_per_job=2)


def options(text: str) -> dict[str, str]:
    section, *lines = text.splitlines()
    assert re.fullmatch(r"\[[a-z]+\]", section)
    pairs = [line.split("=", 1) for line in lines]
    assert len({name for name, _ in pairs}) == len(pairs)
    return dict(pairs)


def told(job: Job) -> dict[str, str]:
    return options(measure_job(job, FILES, 30_000, 7))


def test_a_job_is_told_whole() -> None:
    assert told(JOB) == {
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
        (Contents.SCRAMBLED, "scramble_buffers"),
        (Contents.RANDOM, "refill_buffers"),
        (Contents.ZEROS, "zero_buffers"),
    ],
)
def test_contents_are_told_by_one_option(contents: Contents, line: str) -> None:
    found = set(told(replace(JOB, contents=contents)))
    assert found & {"scramble_buffers", "refill_buffers", "zero_buffers"} == {line}


def test_a_mix_is_told_and_its_rate_is_for_both_directions_together() -> None:
    mixed = replace(JOB, access=Access.RANDRW, read_percent=70)
    assert told(mixed)["rwmixread"] == "70"
    assert "rate_iops" not in told(mixed)
    assert told(replace(mixed, rate_iops=1000))["rate_iops"] == "700,300"
    assert told(replace(mixed, rate_iops=1))["rate_iops"] == "1,1"
    assert told(replace(JOB, rate_iops=1000))["rate_iops"] == "1000"


def test_arrivals_are_told_and_submitted_where_fio_comes_to_its_end() -> None:
    paced = replace(JOB, rate_iops=1000)
    assert "rate_process" not in told(paced)
    random = told(replace(paced, arrivals=Arrivals.POISSON))
    assert random["rate_process"] == "poisson"
    assert "io_submit_mode" not in random
    assert told(replace(paced, arrivals=Arrivals.FIXED))["rate_process"] == "linear"
    assert "rate_process" not in told(replace(JOB, arrivals=Arrivals.FIXED))


def test_poisson_arrivals_at_a_rate_of_bytes_are_told_in_ios_of_each_direction() -> None:
    """fio divides by the whole I/Os a second of each, and cuts off what is left."""
    bytes_ = replace(JOB, rate_bytes_per_s=4096 * 9 + 3000, arrivals=Arrivals.POISSON)
    assert told(bytes_)["rate_iops"] == "10"
    mixed = replace(bytes_, access=Access.RANDRW, read_percent=70)
    assert told(mixed)["rate_iops"] == "7,3"
    assert told(replace(mixed, read_percent=100))["rate_iops"] == "10,1"
    by_option = replace(bytes_, arrivals=None, options=(("rate_process", "poisson"),))
    assert told(by_option)["rate_iops"] == "10"
    for poisson in (bytes_, mixed, by_option):
        assert "rate" not in told(poisson)
    even = replace(mixed, arrivals=Arrivals.FIXED, read_percent=50)
    assert told(even)["rate"] == "19932,19932"
    assert "rate_iops" not in told(even)


def test_buffered_and_further_options_are_told() -> None:
    job = replace(JOB, direct=False, ioengine="psync", options=(("thread", "1"), ("fsync", "32")))
    assert {
        "direct": "0",
        "ioengine": "psync",
        "thread": "1",
        "fsync": "32",
    }.items() <= told(job).items()


def test_seeds_of_jobs_differ_even_for_seed_zero() -> None:
    """fio multiplies its seed with the job's number: 0 would give all jobs the same offsets."""
    assert options(measure_job(JOB, FILES, 1000, 0))["randseed"] == "1"


@pytest.mark.parametrize(
    ("job", "says"),
    [
        (replace(JOB, ioengine="external:/tmp/evil.so"), "ioengine 'external"),
        (replace(JOB, ioengine="libaio\nexec_prerun=id"), "is not one of"),
        (replace(JOB, options=(("exec_prerun", "id"),)), "'exec_prerun' is not on the list"),
        (replace(JOB, options=(("filename", "/dev/sda"),)), "'filename' is not on the list"),
        (replace(JOB, options=(("fsync", "1\nexec_prerun=id"),)), "fsync does not take"),
        (replace(JOB, options=(("fsync", "1\n[job]"),)), "fsync does not take"),
        (replace(JOB, options=(("nice\n[x]", "1"),)), "is not on the list"),
        (replace(JOB, block_bytes=100), "block size 100 is not within"),
        (replace(JOB, iodepth=0), "iodepth 0 is not within"),
        (replace(JOB, rate_iops=0), "rate_iops 0 is not within"),
        (replace(JOB, access=Access.RW, read_percent=101), "rwmixread 101 is not within"),
        (replace(JOB, numjobs=5), "5 jobs need more than 4 jobs' files"),
        (replace(JOB, file_bytes=1 << 20), "the data set has 2 of 268435456"),
        (replace(JOB, file_bytes=1 << 20, block_bytes=1 << 21), "exceeds a file of"),
    ],
)
def test_what_cannot_be_told_is_refused(job: Job, says: str) -> None:
    with pytest.raises(EngineError) as caught:
        measure_job(job, FILES, 1000, 1)
    assert says in caught.value.happened


@pytest.mark.parametrize("name", ["", "a b", "a:b", "../x", ".x", "a/b", "s$jobnum", "a\n[b]", "é"])
def test_a_data_set_whose_name_fio_could_misread_is_refused(name: str) -> None:
    with pytest.raises(EngineError, match="cannot begin file names"):
        measure_job(JOB, replace(FILES, id=name), 1000, 1)
    with pytest.raises(EngineError, match="cannot begin file names"):
        layout_job(replace(FILES, id=name), direct=True, ioengine="libaio", seed=1)


def laid_out(files: DataSet, *, direct: bool = True) -> dict[str, str]:
    return options(layout_job(files, direct=direct, ioengine="libaio", seed=7))


def test_a_layout_writes_every_file_whole_and_flushes() -> None:
    assert laid_out(FILES) == {
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
    found = laid_out(replace(FILES, file_bytes=file_bytes))
    assert (found["bs"], found["direct"]) == (block, direct)
    assert file_bytes % layout_block_bytes(file_bytes) == 0


def test_a_file_of_odd_bytes_is_not_laid_out() -> None:
    with pytest.raises(EngineError, match="not a multiple of 512"):
        laid_out(replace(FILES, file_bytes=1_000_001))
    with pytest.raises(EngineError, match="not a multiple of 512"):
        laid_out(replace(FILES, file_bytes=0))


DEVICE = replace(FILES, device="nvme9n1")


def test_a_device_is_told_by_its_name_and_each_job_has_its_own_region() -> None:
    found = options(measure_job(JOB, DEVICE, 1000, 1))
    assert found["filename"] == "nvme9n1"
    assert found["size"] == found["offset_increment"] == str(DEVICE.job_bytes)
    assert not {"nrfiles", "filesize", "filename_format"} & set(found)


def test_a_fill_goes_over_the_region_so_many_times_in_128_kib() -> None:
    found = options(fill_job(DEVICE, 2.5, direct=True, ioengine="libaio", seed=1))
    region = DEVICE.bytes_per_host
    assert (found["rw"], found["bs"], found["numjobs"]) == ("write", str(128 << 10), "1")
    assert found["size"] == str(region)
    assert int(found["io_size"]) == -(-region * 5 // 2 // (128 << 10)) * (128 << 10)


def test_a_fill_of_files_has_a_job_for_each_jobs_files() -> None:
    found = options(fill_job(FILES, 1, direct=True, ioengine="libaio", seed=1))
    assert found["numjobs"] == str(FILES.numjobs)
    assert found["io_size"] == str(FILES.job_bytes)
    assert "filename" not in found


@pytest.mark.parametrize("name", ["a:b", "../sda", "a b", "a$b"])
def test_a_device_whose_name_fio_could_misread_is_refused(name: str) -> None:
    with pytest.raises(EngineError):
        measure_job(JOB, replace(FILES, device=name), 1000, 1)


def test_trims_and_rates_in_bytes_are_told_in_fios_words() -> None:
    job = replace(JOB, access=Access.RANDTRIM, iodepth=1, rate_bytes_per_s=1 << 20)
    assert {"rw": "randtrim", "rate": "1048576"}.items() <= told(job).items()
    assert "rate_iops" not in told(job)
    mixed = replace(JOB, access=Access.RANDRW, read_percent=75, rate_bytes_per_s=4000)
    assert told(mixed)["rate"] == "3000,1000"
    assert told(replace(mixed, arrivals=Arrivals.POISSON))["rate_process"] == "poisson"
