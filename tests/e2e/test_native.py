"""Sessions by the native engine on a file system of our own, against the kernel's own counts."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
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
runtime = "2s"
settle = "0s"
idle_watch = 0

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


OWN_IOS = 100
"""What a file system does for itself in two seconds, at most."""


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


@pytest.fixture(scope="module")
def document(session: Path) -> dict[str, Any]:
    return shown(session)


def checks_of(document: dict[str, Any], workload: str) -> dict[str, dict[str, Any]]:
    (result,) = (one for one in document["results"] if one["workload"] == workload)
    assert result["status"] == "done"
    return {check["code"]: check for check in result["verdict"]["checks"]}


def host_of(session: Path, workload: str) -> dict[str, Any]:
    host: dict[str, Any] = manifest_of(session, workload)[1]["hosts"][0]
    return host


@pytest.mark.parametrize("workload", ["reads", "mixed", "arrivals"])
def test_what_it_claims_is_what_it_did(document: dict[str, Any], workload: str) -> None:
    checks = checks_of(document, workload)
    sure = ["engine-errors", "totals-disagree", "unwritten-extents"]
    if workload != "arrivals":
        sure.append("depth-not-reached")
    assert {code: checks[code]["level"] for code in sure} == dict.fromkeys(sure, "valid")


@pytest.mark.parametrize("workload", ["reads", "mixed", "arrivals"])
def test_its_counts_are_the_device_s(session: Path, target: Target, workload: str) -> None:
    host = host_of(session, workload)
    (device,) = (one for one in host["devices"] if one["device"] == target.device)
    for way in ("read", "write"):
        totals = host["totals"][way]
        if totals is None:
            continue
        assert device[f"{way}_bytes"] >= totals["bytes"] > 0
        ios, moved = device[f"{way}_ios"] - totals["ios"], device[f"{way}_bytes"] - totals["bytes"]
        if way == "read":
            # Before its start it reads a little, to see how the target is best asked, and says so.
            generator = host["totals"]["generator"]
            ios, moved = ios - generator["probe_reads"], moved - generator["probe_read_bytes"]
        # A file system writes a little of its own, and reads its own blocks again where somebody
        # has dropped the machine's caches. Only what was late is submitted at once, and the kernel
        # merges neighbours then: bytes are whole, I/Os may be some fewer.
        merged = 0.1 * totals["ios"] if workload == "arrivals" else 0
        assert -merged <= ios <= OWN_IOS
        assert 0 <= moved <= 1 << 20


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
    assert host["generator_limit_iops"] > host["totals"]["read"]["iops"]
    assert host["process"]["user_s"] + host["process"]["system_s"] > 0


def test_an_open_loop_tells_both_times(session: Path, document: dict[str, Any]) -> None:
    (result,) = (one for one in document["results"] if one["workload"] == "arrivals")
    metrics = {key: metric["value"] for key, metric in result["metrics"].items()}
    assert metrics["lat_ns_mean"] >= metrics["service_lat_ns_mean"] > 0
    generator = host_of(session, "arrivals")["totals"]["generator"]
    assert generator["lateness"]["count"] > 0


@pytest.mark.long
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
    study = write_study(tmp_path, ONE.replace("2s", "60s"))
    words = command("run", study, "--path", target.path, "--out", tmp_path / "S", "--quiet")
    process = subprocess.Popen(words, env=environment(), stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 60
        # The layout and the measurement of the generator's limit are gone when the load has come.
        while not _measuring(target.path):
            assert time.monotonic() < end
            time.sleep(0.1)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    await_none_on(target.path, 15)


def _measuring(target: Path) -> bool:
    for pid in engines_on(target):
        # One that measures the generator's limit may end meanwhile.
        with suppress(FileNotFoundError, ProcessLookupError):
            if b"IOLAB_START_REAL_NS=" in Path(f"/proc/{pid}/environ").read_bytes():
                return True
    return False


@pytest.mark.long
def test_a_target_in_memory_without_direct_io(tmp_path: Path) -> None:
    text = ONE + "direct = false\n"
    with tmpfs(256 << 20) as path:
        study = write_study(tmp_path, text + "\n[target]\nallow_memory = true\n")
        session = tmp_path / "S"
        iolab("run", study, "--path", path, "--out", session, "--quiet")
    checks = checks_of(shown(session), "reads")
    assert checks["target-in-memory"]["level"] == "invalid"
    assert checks["engine-errors"]["level"] == "valid"


VERIFIED = ONE.replace('rw = "randread"', 'rw = "randrw"\nverify = true').replace(
    'filesize = "16m"', 'filesize = "1m"'
)


@pytest.mark.long
def test_blocks_hold_what_was_written_and_kept_files_are_laid_out_anew(tmp_path: Path) -> None:
    kept = VERIFIED + "\n[target]\nkeep_files = true\n"
    with xfs_on_loop(512 << 20) as target:
        study, first, second = write_study(tmp_path, kept), tmp_path / "S1", tmp_path / "S2"
        iolab("run", study, "--path", target.path, "--out", first, "--quiet")
        found = checks_of(shown(first), "reads")["verify-mismatch"]
        assert (found["level"], found["evidence"]["wrong"]) == ("valid", 0)
        assert found["evidence"]["checked"] > 100
        (changed,) = target.path.glob("iolab*/s1mx2v4k.0.0")
        # Nobody knows what a file should hold that lay there between two sessions.
        changed.write_bytes(bytes(1 << 20))
        iolab("run", study, "--path", target.path, "--out", second, "--quiet")
        found = checks_of(shown(second), "reads")["verify-mismatch"]
        assert changed.read_bytes() != bytes(1 << 20)
    assert (found["level"], found["evidence"]["wrong"]) == ("valid", 0)
    assert found["evidence"]["checked"] > 100


@pytest.mark.long
def test_both_engines_on_one_target_compare(target: Target, tmp_path: Path) -> None:
    # Shorter runs are invalid, and not compared; nor are those that read a block again and again,
    # which then lies in memory below the loop device.
    text = STUDY[: STUDY.index("[[workload]]")] + STUDY[STUDY.index('[[workload]]\nid = "arr') :]
    study = write_study(tmp_path, text.replace("2s", "4s"))
    engines = ("fio", "native")
    for engine in engines:
        words = ("--path", target.path, "--out", tmp_path / engine, "--engine", engine, "--quiet")
        iolab("run", study, *words)
    sessions = (tmp_path / engine for engine in engines)
    document = json.loads(iolab("compare", *sessions, "--json").stdout)
    (engine,) = (one for one in document["differences"] if one["what"].endswith(": engine"))
    assert (engine["baseline"], engine["candidate"]) == ("fio", "native")
    assert not engine["forbids"]
    assert document["rows"]
