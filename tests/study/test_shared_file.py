"""Workloads whose jobs share a file, in plans and as both engines are told."""

from __future__ import annotations

import json

from msgspec.structs import replace

from iolab.cli.planning import job_text
from iolab.core.workload import DataSet
from iolab.loads.fileio.engines.fio import FioEngine
from iolab.loads.fileio.engines.native import NativeEngine
from iolab.loads.fileio.workload import Job
from tests.plans import make_plan
from tests.study.studies import load, told, workload

MIB = 1 << 20


def shared() -> tuple[Job, DataSet]:
    """The widest job of a plan, and the files that it shares with its like."""
    plan = make_plan(load(workload("shared_file = true\nnumjobs = [1, 3]", rw="write")))
    (data_set,) = plan.data_sets
    return Job.require_type(plan.points[-1].job), data_set


def lines(text: str) -> list[str]:
    return text.splitlines()


def test_all_points_share_one_file_of_their_own() -> None:
    job, data_set = shared()
    assert (data_set.id, data_set.numjobs, data_set.bytes_per_host) == ("s1mshared", 3, 3 * MIB)
    assert data_set.file_names() == data_set.file_names(1) == ("s1mshared.0.0",)
    assert job_text(job).endswith("3 x depth 1, on one file")
    apart = make_plan(load(workload("numjobs = 3"))).data_sets[0]
    assert (apart.id, len(apart.file_names())) == ("s1m", 3)


def test_each_job_has_its_part_by_both_engines() -> None:
    job, data_set = shared()
    fio = lines(
        FioEngine().build_measurement_command(job, data_set, "/t", seconds=1, seed=1).job_file
    )
    assert {"filename=s1mshared.0.0", f"size={MIB}", f"offset_increment={MIB}"} <= {*fio}
    assert not any(line.startswith(("nrfiles", "filesize", "filename_format")) for line in fio)
    native = replace(job, ioengine="auto")
    spec = json.loads(
        NativeEngine().build_measurement_command(native, data_set, "/t", seconds=1, seed=1).job_file
    )
    assert [one["files"] for one in spec["jobs"]] == 3 * [
        [{"path": "s1mshared.0.0", "bytes": 3 * MIB}]
    ]
    assert [one["offset_bytes"] for one in spec["jobs"]] == [0, MIB, 2 * MIB]
    assert {one["size_bytes"] for one in spec["jobs"]} == {MIB}


def test_fewer_jobs_have_the_same_parts() -> None:
    job, data_set = shared()
    one = replace(job, numjobs=1)
    (only,) = json.loads(
        NativeEngine()
        .build_measurement_command(replace(one, ioengine="auto"), data_set, "/t", seconds=1, seed=1)
        .job_file
    )["jobs"]
    assert (only["files"][0]["bytes"], only["offset_bytes"], only["size_bytes"]) == (
        3 * MIB,
        0,
        MIB,
    )


def test_it_is_laid_out_as_one_file_by_one_job() -> None:
    _, data_set = shared()
    fio = lines(FioEngine().build_layout_command(data_set, "/t", None, seed=1).job_file)
    assert {"numjobs=1", "filename=s1mshared.0.0", f"size={3 * MIB}"} <= {*fio}
    spec = json.loads(NativeEngine().build_layout_command(data_set, "/t", None, seed=1).job_file)
    (only,) = spec["jobs"]
    assert only["files"] == [{"path": "s1mshared.0.0", "bytes": 3 * MIB, "create": True}]
    assert (only["io_bytes"], only["offset_bytes"]) == (3 * MIB, 0)


def test_a_shared_file_is_one() -> None:
    said = told(workload("shared_file = true\nfiles = 4"))
    assert any("has shared_file and files = 4" in one for one in said), said
