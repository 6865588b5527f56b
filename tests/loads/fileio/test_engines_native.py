"""What the native engine is told: commands and specifications, and what cannot be told."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from iolab.core.workload import DataSet
from iolab.errors import EngineError
from iolab.hosts.engine import Command
from iolab.loads.fileio.engine_facts import NATIVE_ENGINE
from iolab.loads.fileio.engines.fio import layout_job_file
from iolab.loads.fileio.engines.native import NativeEngine
from iolab.loads.fileio.workload import AccessPattern, IoArrivals, Job
from tests.agent.test_schema import validator

NATIVE = NativeEngine()
ENGINE_SPEC = validator("engineSpec")
FILES = DataSet("s1m", "default", numjobs=2, files_per_job=2, file_bytes=1 << 20)
JOB = Job(
    NATIVE_ENGINE, AccessPattern.RANDRW, 4096, 8, 2, 1 << 20, 2, read_percent=70, ioengine="auto"
)


def spec(command: Command) -> dict[str, Any]:
    assert command.stdin.decode() == command.job_file
    told: dict[str, Any] = json.loads(command.stdin)
    ENGINE_SPEC.validate(told)
    return told


def measured(job: Job, data_set: DataSet = FILES) -> dict[str, Any]:
    return spec(NATIVE.build_measurement_command(job, data_set, "/t", seconds=2.5, seed=7))


def option(name: str, value: str, **changes: Any) -> dict[str, Any]:
    first: dict[str, Any] = measured(replace(JOB, options=((name, value),), **changes))["jobs"][0]
    return first


def test_a_measured_job() -> None:
    told = measured(JOB)
    assert {key: told[key] for key in ("format", "direct", "method", "runtime_s")} == {
        "format": 1,
        "direct": True,
        "method": "auto",
        "runtime_s": 2.5,
    }
    first, second = told["jobs"]
    assert first == {
        "files": [{"path": f"s1m.0.{n}", "bytes": 1 << 20} for n in range(2)],
        "rw": "randrw",
        "read_percent": 70,
        "blocks": [{"bytes": 4096, "share": 100}],
        "depth": 8,
        "distribution": {"kind": "permutation"},
        "contents": {"kind": "scrambled", "compress_percent": 0, "dedupe_percent": 0},
        "seed": 7 << 20,
    }
    assert second["seed"] == first["seed"] + 1
    assert [file["path"] for file in second["files"]] == ["s1m.1.0", "s1m.1.1"]


def test_files_have_the_names_that_fio_gives_them() -> None:
    told = spec(NATIVE.build_layout_command(FILES, "/t", None, seed=0))
    names = [file["path"] for job in told["jobs"] for file in job["files"]]
    assert names == list(FILES.file_names())
    text = layout_job_file(FILES, is_direct_io=True, ioengine="libaio", seed=0)
    assert "filename_format=s1m.$jobnum.$filenum" in text


def test_a_layout_makes_whole_files_that_can_be_verified() -> None:
    command = NATIVE.build_layout_command(FILES, "/t", None, seed=0)
    first = spec(command)["jobs"][0]
    assert first["files"][0]["create"] is True
    assert (first["rw"], first["io_bytes"], first["end_fsync"]) == ("write", 2 << 20, True)
    assert (first["blocks"], first["verify"]) == ([{"bytes": 1 << 20}], True)
    assert first["contents"]["kind"] == "random"
    assert (spec(command)["runtime_s"], command.waits_for_start) == (None, False)


def test_odd_files_are_laid_out_in_blocks_that_divide_them() -> None:
    odd = replace(FILES, file_bytes=3 * 512)
    told = spec(NATIVE.build_layout_command(odd, "/t", None, seed=0))
    assert (told["jobs"][0]["blocks"][0]["bytes"], told["direct"]) == (512, False)


def test_a_fill_goes_over_a_device_as_one_region() -> None:
    disk = DataSet("s1m", "default", 2, 1, 1 << 20, device="sdx")
    told = spec(NATIVE.build_overwrite_command(disk, "/dev", 2, JOB, seed=3))
    (only,) = told["jobs"]
    assert only["files"] == [{"path": "sdx", "bytes": 2 << 20}]
    assert (only["offset_bytes"], only["size_bytes"], only["io_bytes"]) == (0, 2 << 20, 4 << 20)
    regions = [
        (job["offset_bytes"], job["size_bytes"]) for job in measured(_on(disk), disk)["jobs"]
    ]
    assert regions == [(0, 1 << 20), (1 << 20, 1 << 20)]


def _on(disk: DataSet) -> Job:
    return replace(JOB, files_per_job=disk.files_per_job)


def test_the_null_target_gets_the_same_jobs_at_full_speed() -> None:
    slow = replace(JOB, access=AccessPattern.RANDREAD, read_percent=None, rate_iops=10, numjobs=3)
    command = NATIVE.build_null_target_command(slow, seconds=0.3)
    assert command is not None
    told = spec(command)
    assert (told["direct"], told["runtime_s"], len(told["jobs"])) == (False, 0.3, 3)
    first = told["jobs"][0]
    assert (first["rw"], first["files"][0]["path"]) == ("randwrite", "/dev/null")
    assert "rate" not in first
    assert first["contents"]["kind"] == "zeros"


@pytest.mark.parametrize(
    ("changes", "rate", "arrivals"),
    [
        ({"rate_iops": 100}, {"iops": 100.0}, None),
        ({"rate_iops": 100, "arrivals": IoArrivals.FIXED}, {"iops": 100.0}, "fixed"),
        ({"rate_iops": 100, "arrivals": IoArrivals.POISSON}, {"iops": 100.0}, "poisson"),
        ({"rate_iops": 9, "options": (("rate_process", "poisson"),)}, {"iops": 9.0}, "poisson"),
        ({}, None, None),
    ],
)
def test_rates(changes: dict[str, Any], rate: object, arrivals: str | None) -> None:
    first = measured(replace(JOB, **changes))["jobs"][0]
    assert (first.get("rate"), first.get("arrivals")) == (rate, arrivals)


def test_words_of_fio_mean_the_same() -> None:
    assert "distribution" not in option("norandommap", "1")
    assert option("random_distribution", "zipf:1.2")["distribution"]["theta"] == 1.2
    assert option("random_distribution", "pareto:0.2")["distribution"]["h"] == 0.2
    zones = option("random_distribution", "zoned:80/20:20/80")["distribution"]["zones"]
    assert zones[0] == {"access_percent": 80, "size_percent": 20}
    assert option("bssplit", "4k/60:8k:16k")["blocks"] == [
        {"bytes": 4096, "share": 60},
        {"bytes": 8192, "share": 20},
        {"bytes": 16384, "share": 20},
    ]
    # What shares leave over is the last size's, as fio draws it.
    assert [one["share"] for one in option("bssplit", "4k/30:64k/30")["blocks"]] == [30, 70]
    assert [one["share"] for one in option("bssplit", "4k:8k:16k")["blocks"]] == [33, 33, 34]
    assert [one["share"] for one in option("bssplit", "4k/90:8k/0:16k/10")["blocks"]] == [90, 10]
    assert option("thinktime", "2ms")["think_us"] == 2000
    assert option("thinktime", "5")["think_us"] == 5
    assert option("fsync", "32")["fsync_every"] == 32
    assert option("buffer_compress_percentage", "50")["contents"]["compress_percent"] == 50
    assert option("dedupe_percentage", "20")["contents"]["dedupe_percent"] == 20
    assert option("mem", "mmap") == measured(JOB)["jobs"][0]


@pytest.mark.parametrize(
    "changes",
    [{"access": AccessPattern.RANDREAD, "read_percent": None}, {"read_percent": 100}],
)
def test_where_nothing_is_written_nothing_is_flushed(changes: dict[str, Any]) -> None:
    assert "fsync_every" not in option("fsync", "32", **changes)


def test_options_of_the_whole_engine() -> None:
    hipri = replace(JOB, options=(("hipri", "1"), ("sqthread_poll", "1")), ioengine="io_uring")
    told = measured(hipri)
    assert (told["poll"], told["sqpoll"], told["method"]) == (True, True, "io_uring")
    assert measured(replace(JOB, ioengine="psync"))["method"] == "sync"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ioengine": "posixaio"}, "It has no ioengine 'posixaio'."),
        ({"options": (("blockalign", "64k"),)}, "It cannot do fio option blockalign = 64k."),
        ({"options": (("sync", "dsync"),)}, "It cannot do fio option sync = dsync."),
        ({"options": (("bssplit", "4k/60:8k/60"),)}, "It cannot do fio option bssplit"),
        ({"options": (("random_distribution", "pareto:2"),)}, "It cannot do fio option random"),
        ({"numjobs": 3}, "3 jobs need more than 2 jobs' files."),
        ({"file_bytes": 4096}, "The job asks for 2 files of 4096 bytes"),
    ],
)
def test_what_cannot_be_told(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(EngineError) as caught:
        measured(replace(JOB, **changes))
    assert message in str(caught.value)


def test_as_many_jobs_as_a_study_may_ask_for_fit() -> None:
    many = replace(FILES, numjobs=4096, files_per_job=1)
    job = replace(JOB, numjobs=4096, files_per_job=1)
    assert len(measured(job, many)["jobs"]) == 4096
    named = replace(many, id="s1024mv128k-a-configuration", file_bytes=1 << 30)
    laid_out = NATIVE.build_layout_command(named, "/t", None, seed=2**32 - 1)
    assert len(spec(laid_out)["jobs"]) == 4096


def test_more_than_it_reads_is_refused() -> None:
    many = replace(FILES, numjobs=1024, files_per_job=100)
    with pytest.raises(EngineError, match="a message holds 1 MiB"):
        measured(replace(JOB, numjobs=1024, files_per_job=100), many)


def test_trims_are_plain_calls_and_have_no_null_target() -> None:
    job = replace(JOB, access=AccessPattern.RANDTRIM, read_percent=None, ioengine="libaio")
    told = measured(job)
    assert (told["method"], {one["rw"] for one in told["jobs"]}) == ("auto", {"randtrim"})
    assert NATIVE.build_null_target_command(job, seconds=0.3) is None


def test_a_rate_in_bytes_is_told_as_one() -> None:
    job = replace(JOB, rate_bytes_per_s=5_000_000, arrivals=IoArrivals.POISSON)
    first = measured(job)["jobs"][0]
    assert (first["rate"], first["arrivals"]) == ({"bytes_per_s": 5e6}, "poisson")
