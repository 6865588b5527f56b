"""The studies that come with iolab are those that were published."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from iolab.cli.template import study_template
from iolab.core.study import MethodKind, Study
from iolab.core.workload import Workload
from iolab.guests.guest import GuestSettings, booted_guest_settings
from iolab.guests.hosts import image_directory
from iolab.loads.fileio.workload import AccessPattern, Job
from iolab.loads.keyvalue.cost import compacted_store_bytes, space_bytes_on_host
from iolab.loads.keyvalue.problems import notes_on_tight_memory_limits
from iolab.loads.keyvalue.workload import (
    DB_BENCH_ENGINE,
    YCSB_ENGINE,
    DbBenchJob,
    YcsbJob,
    server_settings_or_embedded,
)
from iolab.loads.metadata.workload import METADATA_ENGINE, MetadataJob
from iolab.study.inventory import Inventory
from iolab.study.parse import StudyOverrides, scale_names
from iolab.study.targets import hypervisors_of_study
from iolab.units import parse_size
from tests.plans import make_plan, parse_study

STUDIES = Path(__file__).resolve().parents[2] / "studies"


def published(name: str) -> dict[str, Any]:
    return tomllib.loads((STUDIES / "published" / f"{name}.toml").read_text(encoding="utf-8"))


def workloads(name: str, scale: str = "full") -> dict[str, Workload]:
    text = (STUDIES / f"{name}.toml").read_text(encoding="utf-8")
    study = parse_study(text, name, StudyOverrides("/mnt/t", scale))
    return {workload.id: workload for workload in study.workloads}


def test_cluster_kpi_has_the_published_jobs() -> None:
    source = published("cluster-kpi")
    common = source["method"]["common"]
    ours = workloads("cluster-kpi")
    assert list(ours) == [*(job["id"] for job in source["job"]), "metadata"]
    for job in source["job"]:
        expected = Job(
            engine=ours[job["id"]].job.engine,
            access=AccessPattern(job["rw"]),
            block_bytes=parse_size(job["bs"]),
            iodepth=job["iodepth"],
            numjobs=job["numjobs"],
            file_bytes=parse_size(common["filesize"]),
            direct=common["direct"],
            ioengine=common["ioengine"],
        )
        assert ours[job["id"]].job == expected
        assert ours[job["id"]].indicator in job["id"]


def test_cluster_kpi_has_the_published_metadata_part() -> None:
    source = published("cluster-kpi")["metadata"]
    ours = workloads("cluster-kpi")["metadata"]
    job = ours.job
    assert isinstance(job, MetadataJob)
    assert job.engine == METADATA_ENGINE
    assert job.ranks * source["clients"] == source["ranks"]
    assert job.files_per_rank == source["files_per_rank"]
    assert job.rank_shift == source["options"]["rank_shift"]
    assert job.file_bytes == 0
    assert ours.repeats == source["options"]["iterations"]
    small = workloads("cluster-kpi", "small")["metadata"].job
    assert isinstance(small, MetadataJob)
    assert small.rank_shift == small.ranks


def test_ssd_cluster_has_the_published_workloads_and_depths() -> None:
    source = published("ssd-cluster")
    ours = workloads("ssd-cluster")
    assert list(ours) == [workload["id"] for workload in source["workload"]]
    for workload in source["workload"]:
        mine = ours[workload["id"]]
        depths = (
            "random_iodepths"
            if Job.require_type(mine.job).access.is_random
            else "sequential_iodepths"
        )
        assert Job.require_type(mine.job).access.value == workload["rw"]
        assert Job.require_type(mine.job).block_bytes == parse_size(workload["bs"])
        assert Job.require_type(mine.job).read_percent == workload.get("rwmixread")
        assert Job.require_type(mine.job).numjobs == source["method"]["jobs_per_client"]
        (axis,) = mine.sweep
        assert (axis.name, list(axis.values)) == ("iodepth", source["method"][depths])


@pytest.mark.parametrize(("name", "seconds"), [("cluster-kpi", 300), ("ssd-cluster", 800)])
def test_the_small_scale_is_the_same_shape_and_soon_done(name: str, seconds: int) -> None:
    text = (STUDIES / f"{name}.toml").read_text(encoding="utf-8")
    assert scale_names(text) == ("full", "small")
    full = make_plan(parse_study(text, name, StudyOverrides("/mnt/t")))
    small = make_plan(parse_study(text, name, StudyOverrides("/mnt/t", "small")))
    assert [point.title_text for point in small.points] == [
        point.title_text for point in full.points
    ]
    assert {run.repeat for run in full.runs} == {1, 2, 3}
    assert small.demand.seconds < seconds
    assert small.demand.layout_bytes_per_host == 2 << 30
    assert all(point.job.direct for point in small.points if isinstance(point.job, Job))


def test_rocksdb_has_the_published_matrix() -> None:
    source = published("rocksdb")["method"]
    ours = workloads("rocksdb")
    assert list(ours) == source["workloads"]
    for name, workload in ours.items():
        job = workload.job
        assert isinstance(job, DbBenchJob)
        assert job.workload == name
        assert job.read_percent == source["readrandomwriterandom_read_percent"]
        assert (job.write_bytes_per_s is not None) == (name == "readwhilewriting")
        block_size, threads = workload.sweep
        assert (block_size.name, list(block_size.values)) == ("block_size", source["block_sizes"])
        assert (threads.name, list(threads.values)) == ("threads", source["threads"])


@pytest.mark.parametrize("scale", ["full", "small"])
def test_no_database_of_rocksdb_fits_into_the_memory_that_it_may_use(scale: str) -> None:
    jobs = [workload.job for workload in workloads("rocksdb", scale).values()]
    for job in jobs:
        assert isinstance(job, DbBenchJob)
        assert job.memory_bytes is not None
        assert compacted_store_bytes(job) > 2 * job.memory_bytes
        assert job.write_bytes_per_s is None or job.write_bytes_per_s < job.memory_bytes
    assert len({job.loaded for job in jobs if isinstance(job, DbBenchJob)}) == 1


def test_cassandra_has_the_published_workloads() -> None:
    source = published("cassandra")
    ours = workloads("cassandra")
    assert list(ours) == [workload["id"] for workload in source["workload"]]
    for workload in source["workload"]:
        job = ours[workload["id"]].job
        assert isinstance(job, YcsbJob)
        mix = {operation.key.replace("_", ""): share for operation, share in job.mix}
        assert mix == workload["mix"]
        assert (job.fields, job.field_bytes) == (
            source["method"]["field_count"],
            source["method"]["field_length"],
        )
        assert job.distribution.value == source["method"]["key_distribution"]
        (axis,) = ours[workload["id"]].sweep
        assert (axis.name, list(axis.values)) == ("threads", source["method"]["threads"])


def test_every_server_can_be_asked_for_on_the_command_line() -> None:
    text = (STUDIES / "cassandra.toml").read_text(encoding="utf-8")
    for sets, kind in (
        ((), "embedded"),
        (("server.kind=managed",), "managed"),
        (("server.kind=given", "server.addresses=db-1"), "given"),
    ):
        for scale in ("full", "small"):
            study = parse_study(text, "s", StudyOverrides("/mnt/t", scale, sets))
            assert server_settings_or_embedded(study).kind.value == kind
            assert list(notes_on_tight_memory_limits(study, make_plan(study).points)) == []


@pytest.mark.parametrize(
    ("name", "sets", "cells", "seconds"),
    [
        ("rocksdb", (), 24, 660),
        ("cassandra", (), 12, 360),
        ("cassandra", ("server.kind=managed",), 12, 600),
    ],
)
def test_the_small_scale_of_a_store_is_soon_done(
    name: str, sets: tuple[str, ...], cells: int, seconds: int
) -> None:
    text = (STUDIES / f"{name}.toml").read_text(encoding="utf-8")
    assert scale_names(text) == ("full", "small")
    study = parse_study(text, name, StudyOverrides("/mnt/t", "small", sets))
    plan = make_plan(study)
    assert len(plan.runs) == cells
    assert plan.demand.seconds <= seconds
    assert plan.demand.layout_bytes_per_host == 0
    assert {run.point.workload for run in plan.runs} == set(workloads(name))
    assert list(notes_on_tight_memory_limits(study, plan.points)) == []
    assert plan.demand.free_bytes_needed_per_host < 6 << 30
    if study.target.image_bytes is not None:
        assert space_bytes_on_host(study, plan.points, "local", 200e6) < study.target.image_bytes


def test_the_first_study_that_is_written_loads() -> None:
    text = study_template("my-study")
    for scale in scale_names(text):
        study = parse_study(text, "my-study.toml", StudyOverrides("/mnt/t", scale))
        assert study.id == "my-study"
        assert len(make_plan(study).points) == 7


def test_the_commented_lines_of_the_first_study_load_too() -> None:
    lines = study_template("x").splitlines()
    opened = [
        line[2:] if line.startswith("# ") and (" = " in line or line.startswith("# [[")) else line
        for line in lines
    ]
    text = "\n".join(line for line in opened if not line.startswith("#"))
    study = parse_study(text, "x.toml", StudyOverrides())
    assert [host.name for host in study.hosts] == ["client-1", "client-2"]
    assert study.configurations[0].cost is not None
    assert study.target.keep_files
    last_of_io = study.workloads[2]
    assert last_of_io.job.options == (("random_distribution", "zipf:1.1"),)
    assert {workload.job.engine for workload in study.workloads[3:]} == {
        METADATA_ENGINE,
        DB_BENCH_ENGINE,
        YCSB_ENGINE,
    }


def vm_fleet(scale: str = "full", *sets: str) -> Study:
    text = (STUDIES / "vm-fleet.toml").read_text(encoding="utf-8")
    return parse_study(text, "vm-fleet", StudyOverrides("/mnt/t", scale, sets))


def test_vm_fleet_has_the_published_machines_mixes_and_times() -> None:
    source = published("vm-fleet")["method"]
    study = vm_fleet()
    assert study.guests == GuestSettings(
        vcpus=source["vm"]["vcpus"],
        memory_bytes=source["vm"]["memory_gib"] << 30,
        disk_bytes=source["vm"]["disk_gib"] << 30,
    )
    sizes = tuple(range(source["vms_per_node_min"], source["vms_per_node_max"] + 1))
    assert [workload.id for workload in study.workloads] == [
        f"write-{percent}" for percent in source["write_percent"]
    ]
    for workload, percent in zip(study.workloads, source["write_percent"], strict=True):
        job = Job.require_type(workload.job)
        assert job.access.is_random
        assert job.access.has_reads == (percent < 100)
        assert job.access.has_writes == (percent > 0)
        assert job.read_percent in (None, 100 - percent)
        assert (job.block_bytes, job.numjobs) == (
            parse_size(source["block_size"]),
            source["threads_per_vm"],
        )
        assert {axis.name: axis.values for axis in workload.sweep} == {
            "iodepth": tuple(source["queue_depths"]),
            "vms_per_node": sizes,
        }
    method = study.method
    assert method.kind is MethodKind.FIXED
    assert (method.warmup_s, method.runtime_s) == (source["warmup_s"], source["run_s"])
    assert method.repeats == source["repeats"]


def test_vm_fleet_measures_the_smallest_and_the_largest_fleet_and_may_measure_all() -> None:
    plan = make_plan(vm_fleet())
    assert {1, 24} <= {run.point.per_node for run in plan.runs} < set(range(1, 25))
    every = make_plan(vm_fleet("full", "workload.*.axis=listed"))
    assert len(every.points) == 4 * 2 * 24
    assert len(every.runs) == 3 * len(every.points)


def test_vm_fleet_is_small_enough_for_emulated_machines_on_two_processors() -> None:
    study = vm_fleet("small")
    plan = make_plan(study)
    assert len(plan.runs) == 24
    assert [point.per_node for point in plan.points[:3]] == [1, 2, 3]
    assert plan.demand.seconds < 720
    assert plan.demand.free_bytes_needed_per_host < 1 << 30
    assert plan.destroyed_device_texts == ()
    guests = booted_guest_settings(study)
    assert guests is not None
    assert {item.bytes_per_host for item in plan.data_sets} == {guests.disk_bytes}
    text = (STUDIES / "vm-fleet.toml").read_text(encoding="utf-8")
    anywhere = parse_study(text, "vm-fleet", StudyOverrides(scale="small"))
    assert {image_directory(anywhere, node) for node in hypervisors_of_study(anywhere)} == {
        "/var/tmp"
    }


def test_vm_fleet_runs_on_machines_that_exist_already() -> None:
    text = (STUDIES / "vm-fleet.toml").read_text(encoding="utf-8")
    written = "format = 1\n[[host]]\nname = 'n[1-2]'\nrole = 'hypervisor'\n"
    written += "[[host]]\nname = 'n[1-2]-vm[1-3]'\nnode = 'n[1-2]'\npath = '/data'\n"
    options = StudyOverrides(scale="small", inventory=Inventory(written, "guests.toml"))
    study = parse_study(text, "vm-fleet", options)
    assert study.guests is None
    assert len(study.configurations[0].hosts) == 6
