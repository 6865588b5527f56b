"""Sessions by the native engine on a file system of our own, against the kernel's own counts."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import command, environment
from tests.e2e.left import await_none_on, engines_on
from tests.e2e.sessions import iolab, manifest_of, shown, write_study
from tests.e2e.targets import Target, tmpfs, xfs_on_loop

pytestmark = pytest.mark.e2e

STUDY = """
format = 1
id = "native"

[method]
warmup = "0s"
runtime = "4s"
settle = "0s"

[[workload]]
id = "reads"
engine = "native"
rw = "randread"
bs = "4k"
iodepth = 4
numjobs = 2
files = 2
filesize = "16m"

[[workload]]
id = "mixed"
engine = "native"
rw = "randrw"
rwmixread = 70
bs = "4k"
iodepth = 2
numjobs = 1
filesize = "16m"
fio = { random_distribution = "zipf:1.2" }

[[workload]]
id = "arrivals"
engine = "native"
rw = "randread"
bs = "4k"
iodepth = 32
numjobs = 1
filesize = "16m"
rate_iops = 200
arrivals = "poisson"
"""
ONE = STUDY[: STUDY.index('[[workload]]\nid = "mixed"')]


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with xfs_on_loop(512 << 20) as made:
        yield made
        await_none_on(made.path)


@pytest.fixture(scope="module")
def session(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("native")
    path = folder / "S"
    iolab("run", write_study(folder, STUDY), "--path", target.path, "--out", path, "--quiet")
    return path


def checks_of(session: Path, workload: str) -> dict[str, dict[str, Any]]:
    (result,) = (one for one in shown(session)["results"] if one["workload"] == workload)
    assert result["status"] == "done"
    return {check["code"]: check for check in result["verdict"]["checks"]}


def host_of(session: Path, workload: str) -> dict[str, Any]:
    host: dict[str, Any] = manifest_of(session, workload)[1]["hosts"][0]
    return host


@pytest.mark.parametrize("workload", ["reads", "mixed", "arrivals"])
def test_what_it_claims_is_what_it_did(session: Path, workload: str) -> None:
    checks = checks_of(session, workload)
    sure = ("engine-errors", "totals-disagree", "holes", "depth-not-reached", "wrong-blocks")
    assert {code: checks[code]["level"] for code in sure} == dict.fromkeys(sure, "valid")


# Another session that drops the machine's caches has the file system read its own blocks again.
@pytest.mark.alone
@pytest.mark.parametrize("workload", ["reads", "mixed", "arrivals"])
def test_its_counts_are_the_device_s(session: Path, target: Target, workload: str) -> None:
    host = host_of(session, workload)
    (device,) = (one for one in host["devices"] if one["device"] == target.device)
    for way in ("read", "write"):
        totals = host["totals"][way]
        if totals is None:
            continue
        assert device[f"{way}_bytes"] >= totals["bytes"] > 0
        # A file system writes a little of its own, and reads nothing of files that it knows.
        assert device[f"{way}_bytes"] - totals["bytes"] <= 1 << 20
        if way == "read":
            # Before its start it reads a little, to see how the target is best asked, and says so.
            generator = host["totals"]["generator"]
            assert device["read_ios"] - totals["ios"] == generator["probe_reads"]
            assert device["read_bytes"] - totals["bytes"] == generator["probe_read_bytes"]


def test_its_layout_is_whole_and_was_proved(session: Path) -> None:
    extents = host_of(session, "reads")["extents"]
    assert extents["method"] == "fiemap"
    assert (extents["file_count"], extents["size_bytes"]) == (4, 64 << 20)
    assert extents["written_bytes"] == extents["size_bytes"]
    assert (extents["unwritten_bytes"], extents["hole_bytes"]) == (0, 0)


def test_the_record_says_how_it_worked(session: Path) -> None:
    host = host_of(session, "reads")
    generator = host["totals"]["generator"]
    assert host["argv"] == ["iolab-agent", "engine"]
    assert json.loads(host["job_file"])["jobs"][0]["depth"] == 4
    assert host["engine_version"].startswith("native-")
    assert generator["method"] in ("io_uring", "libaio", "sync")
    assert (generator["errors"], generator["depth_used"]) == ([], 8)
    assert host["ceiling_iops"] > host["totals"]["read"]["iops"]
    assert host["process"]["user_s"] + host["process"]["system_s"] > 0


def test_an_open_loop_tells_both_times(session: Path) -> None:
    (result,) = (one for one in shown(session)["results"] if one["workload"] == "arrivals")
    metrics = {key: metric["value"] for key, metric in result["metrics"].items()}
    assert metrics["lat_ns_mean"] >= metrics["service_lat_ns_mean"] > 0
    generator = host_of(session, "arrivals")["totals"]["generator"]
    assert generator["lateness"]["count"] > 0


def test_a_damaged_run_is_made_again(target: Target, session: Path, tmp_path: Path) -> None:
    copy = tmp_path / "S"
    shutil.copytree(session, copy)
    damaged, _ = manifest_of(copy, "mixed")
    with (damaged / "bins.parquet").open("ab") as file:
        file.write(b"x")
    iolab("resume", copy, "--accept-changes", "--quiet")
    assert [one["status"] for one in shown(copy)["results"]] == ["done"] * 3
    await_none_on(target.path)


def test_nothing_of_it_outlives_its_controller(target: Target, tmp_path: Path) -> None:
    study = write_study(tmp_path, ONE.replace("4s", "60s"))
    words = command("run", study, "--path", target.path, "--out", tmp_path / "S", "--quiet")
    process = subprocess.Popen(words, env=environment(), stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 60
        # The layout and the look at the ceiling are gone when the load itself has come.
        while not _measuring(target.path):
            assert time.monotonic() < end
            time.sleep(0.1)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    await_none_on(target.path, 15)


def _measuring(target: Path) -> bool:
    return any(
        b"IOLAB_START_REAL_NS=" in Path(f"/proc/{pid}/environ").read_bytes()
        for pid in engines_on(target)
    )


def test_a_target_in_memory_without_direct_io(tmp_path: Path) -> None:
    text = ONE.replace('runtime = "4s"', 'runtime = "3s"') + "direct = false\n"
    with tmpfs(256 << 20) as path:
        study = write_study(tmp_path, text + "\n[target]\nallow_memory = true\n")
        session = tmp_path / "S"
        iolab("run", study, "--path", path, "--out", session, "--quiet")
    checks = checks_of(session, "reads")
    assert checks["target-in-memory"]["level"] == "invalid"
    assert checks["engine-errors"]["level"] == "valid"


VERIFIED = ONE.replace('rw = "randread"', 'rw = "randrw"\nverify = true').replace(
    'filesize = "16m"', 'filesize = "1m"'
)


def test_blocks_hold_what_was_written_and_kept_files_are_laid_out_anew(tmp_path: Path) -> None:
    kept = VERIFIED + "\n[target]\nkeep_files = true\n"
    with xfs_on_loop(512 << 20) as target:
        study, first, second = write_study(tmp_path, kept), tmp_path / "S1", tmp_path / "S2"
        iolab("run", study, "--path", target.path, "--out", first, "--quiet")
        found = checks_of(first, "reads")["wrong-blocks"]
        assert (found["level"], found["evidence"]["wrong"]) == ("valid", 0)
        assert found["evidence"]["checked"] > 100
        (changed,) = target.path.glob("iolab*/s1mx2v4k.0.0")
        # Nobody knows what a file should hold that lay there between two sessions.
        changed.write_bytes(bytes(1 << 20))
        iolab("run", study, "--path", target.path, "--out", second, "--quiet")
        found = checks_of(second, "reads")["wrong-blocks"]
        assert changed.read_bytes() != bytes(1 << 20)
    assert (found["level"], found["evidence"]["wrong"]) == ("valid", 0)
    assert found["evidence"]["checked"] > 100


def test_both_engines_on_one_target_compare(target: Target, session: Path, tmp_path: Path) -> None:
    other = tmp_path / "fio"
    study = write_study(tmp_path, STUDY)
    iolab("run", study, "--path", target.path, "--out", other, "--engine", "fio", "--quiet")
    assert {one["status"] for one in shown(other)["results"]} == {"done"}
    document = json.loads(iolab("compare", other, session, "--json").stdout)
    found = {one["what"]: one for one in document["differences"]}
    engine = found["every workload: engine"]
    assert (engine["baseline"], engine["candidate"]) == ("fio", "native")
    assert not engine["forbids"]
    assert document["rows"]
