"""Load that comes at a rate, with the fio that is here: it ends, and says what it kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command_line import iolab
from tests.e2e.targets import xfs_on_loop

pytestmark = [pytest.mark.e2e, pytest.mark.long]

RATE = 100
STUDY = f"""
format = 1
id = "arrivals"

[[workload]]
id = "users"
rw = "randread"
bs = "4k"
iodepth = 32
numjobs = 2
filesize = "16m"
rate_iops = {RATE}
arrivals = "poisson"

[method]
warmup = 0
runtime = 2
settle = 0
idle_watch = 0
generator_limit = false
"""


def test_random_arrivals_keep_their_rate_and_every_run_ends(tmp_path: Path) -> None:
    study, session = tmp_path / "arrivals.toml", tmp_path / "S"
    study.write_text(STUDY, encoding="utf-8")
    with xfs_on_loop(512 << 20) as target:
        done = iolab("run", str(study), "--path", str(target.path), "--out", str(session))
    assert done.returncode == 0, done.stderr
    results = json.loads(iolab("show", str(session), "--json").stdout)["results"]
    (users,) = results
    assert users["status"] == "done"
    # Four hundred arrivals are a Poisson number: 5 % is its standard deviation.
    assert users["metrics"]["iops"]["value"] == pytest.approx(2 * RATE, rel=0.2)
    (said,) = (c for c in users["verdict"]["checks"] if c["code"] == "coordinated-omission")
    assert said["evidence"]["open_loop"] is True
