"""Engines that lie, each found by the check that is there for it; one that does not is in peace."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.lying_fio import plant
from tests.e2e.sessions import IOLAB, SESSION_LIMIT_S, shown, write_study
from tests.e2e.targets import Target, xfs_on_loop
from tests.needs import require
from tests.processes import run_program

pytestmark = pytest.mark.e2e

HELD = ("block-size", "access-pattern", "latency-contradicted")
"""The checks that an honest engine must satisfy, whatever else a short run is told."""

STUDY = """
format = 1
id = "lies"
title = "Engines that lie"
question = "Is every wrong load found?"
{workloads}
[method]
warmup = "0s"
runtime = "{runtime}"
settle = "0s"
idle_watch = 0
generator_limit = false
"""

WORKLOAD = """
[[workload]]
id = "{name}"
engine = "{engine}"
rw = "{rw}"
bs = "{bs}"
iodepth = {depth}
numjobs = {jobs}
filesize = "{size}"
{more}
"""


def workload(name: str, rw: str = "randread", engine: str = "fio", **told: Any) -> str:
    usual = {"bs": "4k", "depth": 4, "jobs": 2, "size": "128m", "more": ""}
    return WORKLOAD.format(name=name, rw=rw, engine=engine, **{**usual, **told})


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    require("fio", "mkfs.xfs")
    # In memory no other device moves bytes, and nobody else's load slows the test.
    with xfs_on_loop(2 << 30, backing=Path("/dev/shm")) as made:
        yield made


@pytest.fixture(scope="module")
def disk() -> Iterator[Target]:
    """Where an I/O's time is the device's, and not the processor's."""
    require("fio", "mkfs.xfs")
    with xfs_on_loop() as made:
        yield made


def measured(
    target: Target, folder: Path, workloads: str, lie: str, runtime: str = "2s"
) -> dict[str, Any]:
    """The session of a study with that lie."""
    study = write_study(folder, STUDY.format(workloads=workloads, runtime=runtime))
    done = run_program(
        [IOLAB, "run", study, "--path", target.path, "--out", folder / "session", "--quiet"],
        env=plant(folder / "bin", lie),
        timeout=SESSION_LIMIT_S,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return shown(folder / "session")


def checks_of(result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {check["code"]: check for check in result["verdict"]["checks"]}


def objections(result: dict[str, Any]) -> dict[str, str]:
    """What the checks of engines that lie say of a result, but for what they are content with."""
    found = {code: checks_of(result)[code]["level"] for code in HELD}
    return {code: level for code, level in found.items() if level not in ("valid", "n/a")}


@pytest.mark.parametrize(
    ("lie", "rw", "code"),
    [
        ("counts-twice", "randread", "block-size"),
        pytest.param("small", "randread", "block-size", marks=pytest.mark.long),
        pytest.param("small-hidden", "randread", "block-size", marks=pytest.mark.long),
        ("narrow", "randread", "access-pattern"),
        pytest.param("sequential", "randread", "access-pattern", marks=pytest.mark.long),
        pytest.param("random", "write", "access-pattern", marks=pytest.mark.long),
        pytest.param("capped", "randwrite", "latency-contradicted", marks=pytest.mark.long),
    ],
)
def test_a_lie_is_found(target: Target, tmp_path: Path, lie: str, rw: str, code: str) -> None:
    size = "512m" if lie == "narrow" else "128m"
    # Slow I/Os come in bursts, and prove something where several sampled windows have them.
    runtime = "8s" if lie == "capped" else "2s"
    document = measured(target, tmp_path, workload("one", rw, size=size), lie, runtime)
    (result,) = document["results"]
    found = objections(result)
    assert found.get(code) == "invalid", json.dumps(checks_of(result)[code])
    assert result["verdict"]["level"] == "invalid"
    # Half the latency may be less than the device took, which is another contradiction.
    also = {"latency-contradicted"} if lie == "counts-twice" else set()
    assert set(found) - also == {code}, found


@pytest.mark.alone  # others who want the processor add to the engine's time alone
def test_latencies_made_shorter_are_found_and_no_queue_is_blamed(
    disk: Target, tmp_path: Path
) -> None:
    document = measured(disk, tmp_path, workload("one", bs="256k"), "quick")
    (result,) = document["results"]
    # How much of a latency is the device's, and so how bad the contradiction, is the machine's.
    assert set(objections(result)) == {"latency-contradicted"}
    law = checks_of(result)["littles-law"]
    assert law["level"] in ("indicative", "invalid")
    assert law["evidence"]["latency_contradicted"] is True


HONEST = [
    workload("random-reads"),
    workload("random-writes", "randwrite", depth=16),
    workload("mixed", "randrw", more="rwmixread = 70"),
    workload("in-order", "read", bs="64k"),
    workload("in-order-mixed", "rw", more="rwmixread = 50"),
    workload("large", "randread", bs="2m", depth=2),
    workload("large-writes", "write", bs="1m", depth=2),
    workload("sizes", "randrw", more='rwmixread = 50\nfio = {bssplit = "4k/60:64k/40"}'),
    workload("sizes-unmapped", more='fio = {bssplit = "4k/60:64k", norandommap = true}'),
    workload("zoned", more='fio = {random_distribution = "zoned:60/10:30/20:10/70"}'),
    workload("zipf", more='fio = {random_distribution = "zipf:1.1"}'),
    workload("files", "randread", size="4m", more="files = 16"),
    workload("one-small-file", "randread", size="4m", jobs=1, depth=1),
    workload("paced", more="rate_iops = 200"),
    workload("flushed", "randwrite", depth=1, more="fio = {fdatasync = 4}"),
    workload("native-reads", engine="native"),
    workload("native-mixed", "randrw", "native", more="rwmixread = 70"),
    workload("native-in-order", "read", "native", bs="64k"),
    workload("native-in-order-mixed", "rw", "native", more="rwmixread = 50"),
]


@pytest.mark.long
def test_an_honest_engine_is_in_peace(target: Target, tmp_path: Path) -> None:
    document = measured(target, tmp_path, "\n".join(HONEST), "nothing")
    assert len(document["results"]) == len(HONEST)
    for result in document["results"]:
        told = [json.dumps(checks_of(result)[code]) for code in objections(result)]
        assert not told, f"{result['workload']}: {told}"
    reads = next(one for one in document["results"] if one["workload"] == "random-reads")
    assert [checks_of(reads)[code]["level"] for code in HELD] == ["valid"] * 3


def test_a_short_honest_run_has_none_of_these_objections(target: Target, tmp_path: Path) -> None:
    document = measured(target, tmp_path, workload("one"), "nothing")
    (result,) = document["results"]
    assert not objections(result)
    assert [checks_of(result)[code]["level"] for code in HELD] == ["valid"] * 3
