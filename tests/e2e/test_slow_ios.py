"""The slowest I/Os, told one by one by the real engine, and shown wherever results are."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

import iolab
from tests.cli.command_line import iolab as run_iolab
from tests.e2e.native_engine import MIB, ended, job, spec, started

pytestmark = pytest.mark.e2e

SIZE = 8 * MIB
STUDY = """
format = 1
id = "slow"

[[workload]]
id = "reads"
engine = "native"
rw = "randread"
bs = "4k"
iodepth = 4
filesize = "8m"

[telemetry]
slow_ios = 30

[method]
warmup = 0
runtime = 2
settle = 0
idle_watch = 0
generator_limit = false
"""


def test_the_slowest_are_told_and_no_others(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"x" * SIZE)
    jobs = [job(target, SIZE, "randrw", read_percent=50) for _ in range(2)]
    end = ended(started(spec(*jobs, direct=False, slow_ios=25))).end
    slow = end["slow_ios"]
    latencies = [one["latency_ns"] for one in slow]
    assert len(slow) == 25
    assert latencies == sorted(latencies, reverse=True)
    assert latencies[0] == max(end["read"]["max_ns"], end["write"]["max_ns"])
    assert {one["path"] for one in slow} == {str(target)}
    assert all(one["offset"] + one["bytes"] <= SIZE for one in slow)
    assert all(0 <= one["at_ns"] <= end["measured_ns"] for one in slow)
    assert all(one["service_ns"] <= one["latency_ns"] for one in slow)


def test_none_are_told_unless_they_are_asked_for(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"x" * SIZE)
    assert ended(started(spec(job(target, SIZE), direct=False))).end["slow_ios"] is None
    refused = ended(started(spec(job(target, SIZE), slow_ios=1001)))
    assert "slow_ios is 1001" in refused.faults


@pytest.mark.long
def test_a_session_shows_its_slowest_ios_everywhere(tmp_path: Path) -> None:
    study, session = tmp_path / "study.toml", tmp_path / "S"
    study.write_text(STUDY, encoding="utf-8")
    target = tmp_path / "t"
    target.mkdir()
    done = run_iolab("run", str(study), "--path", str(target), "--out", str(session))
    assert done.returncode in (0, 1), done.stderr
    (run,) = iolab.load(session).runs
    latencies = [slow.io.latency_ns for slow in run.slow_ios]
    assert len(latencies) == 30
    assert latencies == sorted(latencies, reverse=True)
    shown = run_iolab("show", str(session), "--details").stdout
    assert "Slowest I/Os" in shown
    rows = run_iolab("export", str(session), "--format", "csv", "--slow-ios").stdout
    told = list(csv.DictReader(io.StringIO(rows)))
    assert [int(row["latency_ns"]) for row in told] == latencies
    (result,) = json.loads(run_iolab("show", str(session), "--json").stdout)["results"]
    slowest = result["metrics"]["read_lat_ns_max"]["value"]
    assert latencies[0] >= slowest
