"""The studies that come with iolab are those that were published."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from iolab.model.engine import EngineName
from iolab.model.metadata import MetadataJob
from iolab.model.workload import Access, Job, Workload
from iolab.plan.load import LoadOptions, parse_study, scale_names
from iolab.plan.schedule import make_plan
from iolab.plan.template import study_template
from iolab.units import parse_size

STUDIES = Path(__file__).resolve().parents[2] / "studies"
PUBLISHED = ("cassandra", "cluster-kpi", "rocksdb", "ssd-cluster", "vm-fleet")
BUNDLED = ("cluster-kpi", "ssd-cluster")


def published(name: str) -> dict[str, Any]:
    return tomllib.loads((STUDIES / "published" / f"{name}.toml").read_text(encoding="utf-8"))


def workloads(name: str, scale: str = "full") -> dict[str, Workload]:
    text = (STUDIES / f"{name}.toml").read_text(encoding="utf-8")
    study = parse_study(text, name, LoadOptions("/mnt/t", scale))
    return {workload.id: workload for workload in study.workloads}


def test_all_published_results_are_there() -> None:
    assert sorted(path.stem for path in (STUDIES / "published").glob("*.toml")) == list(PUBLISHED)
    assert sorted(path.stem for path in STUDIES.glob("*.toml")) == list(BUNDLED)


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_results_are_toml_with_a_source(name: str) -> None:
    content = published(name)
    assert content["id"] == name
    assert content["source"]


def test_cluster_kpi_has_the_published_jobs() -> None:
    source = published("cluster-kpi")
    common = source["method"]["common"]
    ours = workloads("cluster-kpi")
    assert list(ours) == [*(job["id"] for job in source["job"]), "metadata"]
    for job in source["job"]:
        expected = Job(
            engine=ours[job["id"]].job.engine,
            access=Access(job["rw"]),
            block_bytes=parse_size(job["bs"]),
            iodepth=job["iodepth"],
            numjobs=job["numjobs"],
            file_bytes=parse_size(common["filesize"]),
            direct=common["direct"],
            ioengine=common["ioengine"],
        )
        assert ours[job["id"]].job == expected
        assert ours[job["id"]].indicator.value in job["id"]


def test_cluster_kpi_has_the_published_metadata_part() -> None:
    source = published("cluster-kpi")["metadata"]
    ours = workloads("cluster-kpi")["metadata"]
    job = ours.job
    assert isinstance(job, MetadataJob)
    assert job.engine is EngineName.METADATA
    assert job.ranks * source["clients"] == source["ranks"]
    assert job.files_per_rank == source["files_per_rank"]
    assert job.rank_shift == source["options"]["rank_shift"]
    assert job.file_bytes == 0
    assert ours.repeats == source["options"]["iterations"]
    small = workloads("cluster-kpi", "small")["metadata"].job
    assert isinstance(small, MetadataJob)
    assert small.rank_shift == small.ranks


def test_cluster_kpi_runs_as_long_as_published() -> None:
    text = (STUDIES / "cluster-kpi.toml").read_text(encoding="utf-8")
    study = parse_study(text, "s", LoadOptions("/mnt/t"))
    assert study.method.runtime_s == published("cluster-kpi")["method"]["common"]["runtime"]


def test_ssd_cluster_has_the_published_workloads_and_depths() -> None:
    source = published("ssd-cluster")
    ours = workloads("ssd-cluster")
    assert list(ours) == [workload["id"] for workload in source["workload"]]
    for workload in source["workload"]:
        mine = ours[workload["id"]]
        depths = "random_iodepths" if mine.io.access.random else "sequential_iodepths"
        assert mine.io.access.value == workload["rw"]
        assert mine.io.block_bytes == parse_size(workload["bs"])
        assert mine.io.read_percent == workload.get("rwmixread")
        assert mine.io.numjobs == source["method"]["jobs_per_client"]
        (axis,) = mine.sweep
        assert (axis.name, list(axis.values)) == ("iodepth", source["method"][depths])


@pytest.mark.parametrize(("name", "seconds"), [("cluster-kpi", 150), ("ssd-cluster", 305)])
def test_the_small_scale_is_the_same_shape_and_soon_done(name: str, seconds: int) -> None:
    text = (STUDIES / f"{name}.toml").read_text(encoding="utf-8")
    assert scale_names(text) == ("full", "small")
    full = make_plan(parse_study(text, name, LoadOptions("/mnt/t")))
    small = make_plan(parse_study(text, name, LoadOptions("/mnt/t", "small")))
    assert [run.point.label for run in small.runs] == [run.point.label for run in full.runs]
    assert small.budget.seconds < seconds
    assert small.budget.layout_bytes_per_host == 2 << 30
    assert all(point.job.direct for point in small.points if isinstance(point.job, Job))


def test_the_first_study_that_is_written_loads() -> None:
    text = study_template("my-study")
    for scale in scale_names(text):
        study = parse_study(text, "my-study.toml", LoadOptions("/mnt/t", scale))
        assert study.id == "my-study"
        assert len(make_plan(study).points) == 7


def test_the_commented_lines_of_the_first_study_load_too() -> None:
    lines = study_template("x").splitlines()
    opened = [
        line[2:] if line.startswith("# ") and (" = " in line or line.startswith("# [[")) else line
        for line in lines
    ]
    text = "\n".join(line for line in opened if not line.startswith("#"))
    study = parse_study(text, "x.toml", LoadOptions())
    assert [host.name for host in study.hosts] == ["client-1", "client-2"]
    assert study.configurations[0].cost is not None
    assert study.target.keep_files
    assert study.workloads[-1].job.options == (("random_distribution", "zipf:1.1"),)
