"""KV-cache and training-read load over ssh: hosts share requests and accelerators out."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from iolab.core.run import RunStatus
from iolab.loads.kvcache.workload import kv_cache_details_of_host
from iolab.loads.training.workload import training_details_of_host
from iolab.store.reader import SessionReader
from tests.fleet.bed import Bed
from tests.processes import run_program

pytestmark = [pytest.mark.e2e, pytest.mark.long]

IOLAB = Path(sys.executable).with_name("iolab")
REQUESTS_PER_S, SECONDS, ACCELERATORS = 30, 4, 4
STUDY = f"""\
format = 1
id = "fleet"

[[workload]]
id = "chat"
engine = "kv-cache"
kv_bytes_per_token = 8
capacity = "4m"
requests_per_s = {REQUESTS_PER_S}

[[workload]]
id = "samples"
engine = "training-read"
dataset = "custom"
accelerators = {ACCELERATORS}
sample_bytes = 100000
batch = 4
compute = "50ms"
files = 64
loaders = 2

[method]
warmup = "1s"
runtime = "{SECONDS - 1}s"
settle = "0s"
idle_watch = 0
generator_limit = false
"""


def test_requests_and_accelerators_are_shared_out(fleet: Bed, tmp_path: Path) -> None:
    study, out = tmp_path / "fleet.toml", tmp_path / "session"
    study.write_text(STUDY, encoding="utf-8")
    argv = [IOLAB, "run", study, "--hosts", fleet.inventory, "--out", out]
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}
    done = run_program(list(map(str, argv)), timeout=120, env=environment)
    # A busy machine's runs may be invalid; they are made all the same.
    assert done.returncode in {0, 1}, done.stderr
    reader = SessionReader(out)
    every = [reader.record(*key) for key in reader.committed_folder_by_run()]
    records = {record.run.point.workload: record for record in every}
    assert {record.status for record in records.values()} == {RunStatus.DONE}

    replays = [kv_cache_details_of_host(host) for host in records["chat"].hosts]
    requests = [replay.requests for replay in replays if replay is not None]
    assert len(requests) == len(fleet.specs)
    # Sessions are whole on one host, so that shares differ; none is without any.
    assert min(requests) > 0
    assert sum(requests) <= REQUESTS_PER_S * SECONDS
    for replay in replays:
        assert replay is not None
        assert abs(replay.hits - replay.ideal_hits) <= 0.001 * replay.blocks

    trained = [training_details_of_host(host) for host in records["samples"].hosts]
    assert [run.accelerators for run in trained if run is not None] == [2, 1, 1]
    results = {result.workload: result for result in reader.results()}
    whole = results["samples"].metrics["accelerator_utilisation"].value
    each = [host.metrics["accelerator_utilisation"].value for host in results["samples"].hosts]
    assert whole == pytest.approx(min(value for value in each if value is not None))
    for name in fleet.specs:
        fleet.wait_until_alone(name)
