"""db_bench itself on an XFS of our own: loaded once, copied by reflink, measured, killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from iolab.loads.keyvalue.workload import KeyOperation
from iolab.store.runs import read_run
from tests.e2e.sessions import IOLAB, SESSION_LIMIT_S, iolab, manifest_of, write_study
from tests.e2e.targets import Target, device_bytes, xfs_on_loop
from tests.processes import run_program

pytestmark = [pytest.mark.e2e, pytest.mark.long]

KEYS = 30_000
DATABASE_BYTES = KEYS * 1040
STUDY = """
format = 1
id = "keys"
title = "Keys"
question = "How fast?"
{workloads}
[method]
warmup = "0s"
runtime = "{runtime}"
settle = "0s"
idle_watch = 0
order = "as-written"
"""
WORKLOAD = """
[[workload]]
id = "{name}"
engine = "db_bench"
benchmark = "{name}"
keys = {keys}
block_size = "4k"
threads = 4
cache_size = "1m"
key_size = 16
value_size = 1024
{extra}
"""
READ, MIXED, WRITING = "readrandom", "readrandomwriterandom", "readwhilewriting"
KEEP = ("--set", "target.keep_files=true")


def study(folder: Path, *workloads: str, runtime: str = "2s") -> Path:
    text = STUDY.format(workloads="".join(workloads), runtime=runtime)
    return write_study(folder, text)


def workload(name: str, extra: str = "", keys: int = KEYS) -> str:
    return WORKLOAD.format(name=name, extra=extra, keys=keys)


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with xfs_on_loop(backing=Path("/dev/shm")) as made:
        yield made


@pytest.fixture(scope="module")
def measured(
    target: Target, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, tuple[int, int]]:
    """A session of the three published workloads, and the bytes that its device moved."""
    folder = tmp_path_factory.mktemp("session")
    session = folder / "session"
    rate = 'write_rate = "2m"'
    asked = study(folder, workload(READ), workload(MIXED), workload(WRITING, rate))
    before = device_bytes(target.device)
    iolab("run", asked, "--path", target.path, "--out", session, "--quiet", *KEEP)
    after = device_bytes(target.device)
    return session, (after[0] - before[0], after[1] - before[1])


def told_by(session: Path, name: str) -> dict[str, Any]:
    """What the only host of a workload's run told."""
    _, manifest = manifest_of(session, name)
    assert manifest["status"] == "done", manifest["failure"]
    host: dict[str, Any] = manifest["hosts"][0]
    return host


@pytest.mark.parametrize("name", [READ, MIXED, WRITING])
def test_each_workload_is_what_was_asked_for(
    measured: tuple[Path, tuple[int, int]], target: Target, name: str
) -> None:
    host = told_by(measured[0], name)
    told = host["details"]
    assert told["faults"] == []
    assert told["copied_by"] == "reflink"
    assert told["start"]["tables"]["entries"] == KEYS
    assert told["start"]["pending_bytes"] == 0
    dropped = host["cache_drop"]
    assert (dropped["requested"], dropped["resident_bytes_after"]) == (True, 0)
    operations = {count["operation"]: count for count in told["counts"]}
    assert operations[KeyOperation.READ]["absent"] == 0
    assert (KeyOperation.WRITE in operations) == (name != READ)
    (device,) = (one for one in host["devices"] if one["device"] == target.device)
    assert device["read_bytes"] > DATABASE_BYTES / 2
    length_s = (host["end_real_ns"] - host["start_real_ns"]) / 1e9
    assert length_s == pytest.approx(told["reported_s"], abs=1e-3)
    assert length_s >= 3


@pytest.mark.parametrize("name", [READ, MIXED, WRITING])
def test_its_seconds_add_up_to_its_own_total(
    measured: tuple[Path, tuple[int, int]], name: str
) -> None:
    folder, manifest = manifest_of(measured[0], name)
    told = manifest["hosts"][0]["details"]
    table = read_run(folder).intervals
    whole = table.direction == KeyOperation.ALL
    assert int(whole.sum()) >= 3
    total = told["reported_ops_per_s"] * told["reported_s"]
    assert int(table.ios[whole].sum()) == pytest.approx(total, rel=0.15)
    rates = table.ios[whole] / table.span_ns[whole] * 1e9
    assert rates.mean() == pytest.approx(told["reported_ops_per_s"], rel=0.15)
    if name == WRITING:
        written = table.ios[table.direction == KeyOperation.WRITE]
        assert written.sum() / 3 < 2 * (1 << 20) / 1040 * 1.2


def test_streams_of_keys_are_those_of_nobody_else(
    measured: tuple[Path, tuple[int, int]],
) -> None:
    told = [told_by(measured[0], name)["details"] for name in (READ, MIXED, WRITING)]
    (load,) = {one["load_seed"] for one in told}
    seeds = sorted([load, *(one["seed"] for one in told)])
    assert min(b - a for a, b in pairwise(seeds)) > 5


def test_a_killed_cell_fails_and_the_next_one_uses_the_same_database(
    measured: tuple[Path, tuple[int, int]], target: Target, tmp_path: Path
) -> None:
    (marker,) = target.path.glob("*/db_bench.*/iolab.json")
    written = marker.stat().st_mtime_ns
    session = tmp_path / "session"
    bounded = workload(MIXED, 'memory = "64m"')
    asked = study(tmp_path, workload(READ), bounded, runtime="1s")
    words = [IOLAB, "run", asked, "--path", target.path, "--out", session, "--quiet", *KEEP]
    with subprocess.Popen([str(word) for word in words]) as running:
        os.kill(_first_cell(target.path), signal.SIGKILL)
        running.wait(SESSION_LIMIT_S)
    _, manifest = manifest_of(session, READ)
    assert manifest["status"] == "failed"
    assert "was killed by signal 9 (SIGKILL)" in manifest["failure"]
    told = told_by(session, MIXED)["details"]
    assert told["load_seed"] == told_by(measured[0], READ)["details"]["load_seed"]
    assert marker.stat().st_mtime_ns == written
    assert not list(target.path.glob("*/db_bench.cell"))


@pytest.fixture
def own() -> Iterator[Target]:
    """A target beside the shared one, whose databases others look for."""
    with xfs_on_loop(backing=Path("/dev/shm")) as made:
        yield made


def test_a_database_of_the_users_must_be_what_is_stated_and_is_not_changed(
    measured: tuple[Path, tuple[int, int]], target: Target, own: Target, tmp_path: Path
) -> None:
    (marker,) = target.path.glob("*/db_bench.*/iolab.json")
    mine = own.path / "mine"
    shutil.copytree(marker.parent / "database", mine)
    before = {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in mine.iterdir()}
    named = f'database = "{mine}"'
    more = workload(READ, named, keys=2 * KEYS).replace(f'id = "{READ}"', 'id = "more"')
    none = workload(READ, f'database = "{own.path}/none"')
    none = none.replace(f'id = "{READ}"', 'id = "none"')
    asked = study(tmp_path, more, none, workload(MIXED, named), runtime="1s")
    session = tmp_path / "session"
    words = [IOLAB, "run", asked, "--path", own.path, "--out", session]
    done = run_program([str(word) for word in words], timeout=SESSION_LIMIT_S)
    assert done.returncode != 70, done.stderr
    failures = {name: manifest_of(session, name)[1]["failure"] for name in ("more", "none")}
    assert f"the database holds {KEYS} keys, and {2 * KEYS} were loaded" in failures["more"]
    assert "there is no database with tables" in failures["none"]
    told = told_by(session, MIXED)["details"]
    assert told["load_seed"] is None
    assert told["start"]["levels"]
    after = {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in mine.iterdir()}
    assert after == before


def _first_cell(target: Path) -> int:
    """The process of the first cell there, as soon as it has begun."""
    end = time.monotonic() + SESSION_LIMIT_S
    while time.monotonic() < end:
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue  # it has just ended
            told = os.fsdecode(b" ".join(words))
            if words[0] == b"db_bench" and "--duration" in told and str(target) in told:
                return int(entry.name)
        time.sleep(0.05)
    raise TimeoutError("no cell began")
