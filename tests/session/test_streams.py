"""Streams of a fleet: each host draws its own offsets, contents and arrivals, and tells it."""

from __future__ import annotations

import json

from msgspec.structs import replace

from iolab.core.workload import DataSet
from iolab.loads.fileio.engines.fio import FioEngine
from iolab.loads.fileio.engines.native import NativeEngine
from iolab.loads.fileio.workload import IoArrivals, Job
from iolab.study.targets import load_host_names_of_point
from iolab.targets.context import arrival_offset_share, contents_seed, run_seed
from tests.fakes.fio import FakeLoad
from tests.fakes.script import FakeScript
from tests.plans import make_plan
from tests.session.stage import Stage
from tests.study.studies import load, workload

FLEET = {name: FakeScript(loads=(FakeLoad(iops=1000),)) for name in ("c1", "c2", "c3")}


def seed_line(job_file: str) -> int:
    (line,) = [line for line in job_file.splitlines() if line.startswith("randseed=")]
    return int(line.partition("=")[2])


def test_each_host_is_told_a_seed_of_its_own_and_the_same_when_made_again() -> None:
    first, again = (Stage(FLEET).play().records[0] for _ in range(2))
    seeds = [seed_line(host.job_file) for host in first.hosts]
    assert len(set(seeds)) == 3
    assert seeds == [seed_line(host.job_file) for host in again.hosts]


def test_no_two_hosts_and_repeats_have_one_seed_and_all_fit_the_engine() -> None:
    stage = Stage(FLEET)
    point, seed = stage.plan.runs[0].point, 2**32 - 1
    study = replace(stage.study, method=replace(stage.study.method, seed=seed))
    hosts = load_host_names_of_point(study, point)
    seeds = {run_seed(study, point, host, number) for host in hosts for number in range(1, 100)}
    assert len(seeds) == 3 * 99
    assert isinstance(point.job, Job)
    job = replace(point.job, ioengine="auto", rate_iops=10, arrivals=IoArrivals.POISSON)
    files = DataSet("f", "default", job.numjobs, job.files_per_job, job.file_bytes)
    told = {
        one["seed"]
        for number in (max(seeds), min(seeds), (1 << 44) * 3 + 1)
        for one in json.loads(
            NativeEngine()
            .build_measurement_command(job, files, "/t", seconds=1, seed=number)
            .job_file
        )["jobs"]
    }
    assert len(told) == 3 * job.numjobs
    assert all(0 <= one < 1 << 64 for one in told)


def test_jobs_of_a_fleet_draw_apart_also_where_fio_keeps_32_bits() -> None:
    # fio draws from its seed times the job's number, of which it keeps the lowest 32 bits.
    study = load(workload() + '[[host]]\nname = "c[1-300]"\n')
    (point,) = make_plan(study).points
    files = DataSet("f", "default", 1, 1, 1 << 20)
    seeds = [run_seed(study, point, host, 1) for host in load_host_names_of_point(study, point)]
    told = [
        seed_line(
            FioEngine()
            .build_measurement_command(
                Job.require_type(point.job), files, "/t", seconds=1, seed=seed
            )
            .job_file
        )
        for seed in seeds
    ]
    drawn = {seed * job % 2**32 for seed in told for job in range(1, 17)}
    assert len(drawn) == 300 * 16


def test_no_two_hosts_lay_out_the_same_blocks() -> None:
    stage = Stage(FLEET)
    files = DataSet("f", "default", 2, 1, 1 << 20)
    for engine in (FioEngine(), NativeEngine()):
        told = {
            engine.build_layout_command(
                files,
                "/t",
                None,
                seed=contents_seed(stage.study, host),
            ).job_file
            for host in FLEET
        }
        assert len(told) == len(FLEET)


def test_hosts_of_a_fleet_take_turns_and_one_alone_begins_at_once() -> None:
    stage = Stage(FLEET)
    point = stage.plan.runs[0].point
    turns = [
        arrival_offset_share(stage.study, point, host)
        for host in load_host_names_of_point(stage.study, point)
    ]
    assert turns == [0.0, 1 / 3, 2 / 3]
    alone = Stage()
    assert arrival_offset_share(alone.study, alone.plan.runs[0].point, "local") == 0.0


def test_the_native_engine_is_told_the_turn_where_there_is_a_rate() -> None:
    job = replace(Job.require_type(Stage().plan.runs[0].point.job), ioengine="auto", rate_iops=None)
    files = DataSet("f", "default", job.numjobs, job.files_per_job, job.file_bytes)

    def told(job: Job, later: float) -> object:
        command = NativeEngine().build_measurement_command(
            job, files, "/t", seconds=1, seed=1, arrival_shift_share=later
        )
        return json.loads(command.job_file).get("later")

    paced = replace(job, rate_iops=10)
    assert (told(job, 0.5), told(paced, 0.0), told(paced, 0.5)) == (None, None, 0.5)
