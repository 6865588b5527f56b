"""What iolab promises, held against fio's own figures and the kernel's own counters."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from iolab.core import histogram
from tests.e2e.sessions import (
    IOLAB,
    alive,
    descendants,
    fio_said,
    iolab,
    manifest_of,
    result_of,
    shown,
    write_study,
)
from tests.e2e.targets import Target, device_bytes, xfs_on_loop

pytestmark = pytest.mark.e2e

PERCENTS = {
    "lat_ns_p50": 50.0,
    "lat_ns_p99": 99.0,
    "lat_ns_p99_5": 99.5,
    "lat_ns_p99_9": 99.9,
    "lat_ns_p99_99": 99.99,
}
FILES_BYTES = 2 * (64 << 20)
# What the file system itself reads and writes: metadata and log.
METADATA_BYTES = 16 << 20


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    # In memory no other device moves bytes, and nobody else's load slows the test.
    with xfs_on_loop(backing=Path("/dev/shm")) as made:
        yield made


@pytest.fixture(scope="module")
def moved(target: Target, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, int]:
    """A session on the XFS, with the bytes that its device read and wrote meanwhile."""
    folder = tmp_path_factory.mktemp("session")
    session = folder / "session"
    before = device_bytes(target.device)
    looks = ("--set", "method.idle_watch=1s", "--set", "method.generator_limit=true")
    words = ("--path", target.path, "--out", session, "--quiet", *looks)
    iolab("run", write_study(folder), *words)
    after = device_bytes(target.device)
    return session, after[0] - before[0], after[1] - before[1]


@pytest.fixture(scope="module")
def document(moved: tuple[Path, int, int]) -> dict[str, Any]:
    return shown(moved[0])


@pytest.mark.parametrize("workload", ["rand-read", "rand-mix", "seq-write"])
def test_totals_and_percentiles_equal_those_of_fio(
    moved: tuple[Path, int, int], document: dict[str, Any], workload: str
) -> None:
    job = fio_said(moved[0], workload)["jobs"][0]
    result = result_of(document, workload)
    metrics = result["metrics"]
    for direction in ("read", "write"):
        said = job[direction]
        if said["total_ios"] == 0:
            assert not metrics[f"{direction}_iops"]["value"]
            continue
        # fio divides by its own run time, which ends with the last job to stop, whenever that is.
        done = metrics[f"{direction}_iops"]["value"] * result["window_s"]
        assert done == pytest.approx(said["total_ios"], rel=1e-6)
        mean = metrics[f"{direction}_lat_ns_mean"]["value"]
        assert mean == pytest.approx(said["lat_ns"]["mean"], rel=1e-3)
        bins = {int(key): count for key, count in said["lat_ns"]["bins"].items()}
        counts = histogram.dense_counts(
            [histogram.bin_index_of_midpoint(key) for key in bins], list(bins.values())
        )
        whole = histogram.Histogram(counts, said["lat_ns"]["min"], said["lat_ns"]["max"])
        for name, percent in PERCENTS.items():
            value = metrics[f"{direction}_{name}"]["value"]
            if value is not None:
                assert value == whole.percentile_ns(percent)
        for percent, nanoseconds in said["lat_ns"]["percentile"].items():
            ours = whole.percentile_ns(float(percent))
            assert ours == min(nanoseconds, said["lat_ns"]["max"])


def test_the_kernel_counts_the_bytes_that_are_claimed(
    moved: tuple[Path, int, int], document: dict[str, Any]
) -> None:
    session, read, written = moved
    claimed_read = claimed_write = 0
    for workload in ("rand-read", "rand-mix", "seq-write"):
        job = fio_said(session, workload)["jobs"][0]
        claimed_read += job["read"]["io_bytes"]
        claimed_write += job["write"]["io_bytes"]
    assert read == pytest.approx(claimed_read, abs=METADATA_BYTES)
    assert written == pytest.approx(claimed_write + FILES_BYTES, abs=METADATA_BYTES)
    checks = {c["code"]: c for c in result_of(document, "rand-read")["verdict"]["checks"]}
    assert checks["bytes-moved"]["level"] == "valid", checks["bytes-moved"]
    assert checks["device-busy"]["evidence"]["watched_s"] >= 1
    assert checks["generator-bound"]["evidence"]["generator_limit_iops"] > 0


def test_nothing_is_left_on_the_target(moved: tuple[Path, int, int], target: Target) -> None:
    assert moved[0].is_dir()
    assert list(target.path.iterdir()) == []


@pytest.mark.long
def test_buffered_io_is_never_valid(target: Target, tmp_path: Path) -> None:
    session = tmp_path / "session"
    options = ["--set", "workload.*.direct=false", "--set", "method.runtime=2s"]
    iolab("run", write_study(tmp_path), "--path", target.path, "--out", session, "-q", *options)
    results = shown(session)["results"]
    assert len(results) == 3
    assert all(result["verdict"]["level"] != "valid" for result in results)
    read = result_of({"results": results}, "rand-read")["verdict"]
    assert "buffered-io" in {c["code"] for c in read["checks"] if c["level"] != "valid"}


def wait_for(condition: Callable[[], object], limit_s: float) -> bool:
    """Whether the condition came true within the limit."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def test_a_killed_controller_leaves_nothing_but_its_committed_runs(
    target: Target, tmp_path: Path
) -> None:
    session = tmp_path / "session"

    def committed() -> list[Path]:
        return list(session.glob("points/*/run-1/manifest.json"))

    command = [IOLAB, "run", write_study(tmp_path), "--path", target.path, "--out", session, "-q"]
    with subprocess.Popen([str(word) for word in command]) as controller:
        assert wait_for(committed, 60)
        assert wait_for(lambda: "fio" in descendants(controller.pid).values(), 30)
        ours = descendants(controller.pid)
        controller.send_signal(signal.SIGKILL)
    assert {"fio", "iolab-agent"} <= set(ours.values())
    assert wait_for(lambda: not alive(ours), 20), alive(ours)
    assert wait_for(lambda: list(target.path.iterdir()) == [], 20)
    document = shown(session)
    assert len(document["results"]) == len(committed())
    assert all(result["status"] == "done" for result in document["results"])
    iolab("resume", session, "--quiet")
    assert len(shown(session)["results"]) == 3
    assert manifest_of(session, "seq-write")[1]["status"] == "done"
