"""A session that is resumed after runs were damaged or lost, and after its host had changed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.left import await_none_on
from tests.e2e.sessions import iolab, write_study
from tests.store.rewritten import rewrite

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
STUDY = """
format = 1
id = "resumed"
[[workload]]
id = "read"
engine = "native"
rw = "randread"
bs = "4k"
iodepth = [1, 2, 4]
filesize = "4m"
[method]
warmup = "0s"
runtime = "1s"
settle = "0s"
idle_watch = 0
generator_limit = false
"""


@pytest.fixture
def target() -> Iterator[Path]:
    path = ROOT / "scratch" / f"resume-{os.getpid()}"
    path.mkdir(parents=True)
    yield path
    await_none_on(path)
    path.rmdir()


@pytest.mark.long
def test_damage_is_measured_again_and_a_changed_host_is_refused(
    target: Path, tmp_path: Path
) -> None:
    session = tmp_path / "session"
    iolab("run", write_study(tmp_path, STUDY), "--path", target, "--out", session, "--quiet")
    kept, damaged, lost = sorted(session.glob("points/*/run-1"))
    before = (kept / "manifest.json").read_bytes()
    with (damaged / "bins.parquet").open("ab") as file:
        file.write(b"x")
    shutil.rmtree(lost)
    rewrite(
        session / "hosts.json",
        lambda it: it["starts"][0]["facts"]["local"]["kernel"].update(release="1.2.3"),
    )

    refused = iolab("resume", session, expect=3)
    assert "The kernel of host 'local' was '1.2.3'" in refused.stderr
    assert "--accept-changes" in refused.stderr
    assert damaged.is_dir()

    resumed = iolab("resume", session, "--accept-changes", "--json")
    assert "run-1/bins.parquet" in resumed.stderr
    assert "1 of 3 runs are done, 2 are left." in resumed.stderr
    assert "Accepted: The kernel of host 'local' was '1.2.3'" in resumed.stderr
    results = json.loads(resumed.stdout)["results"]
    assert sorted((one["segment"], one["attempt"]) for one in results) == [(1, 1), (2, 1), (2, 2)]
    for result in results:
        levels = {one["code"]: one["level"] for one in result["verdict"]["checks"]}
        assert levels["resumed-on-changed-host"] == "indicative"
    assert (kept / "manifest.json").read_bytes() == before
    assert damaged.with_name("run-1.attempt-1").is_dir()
    assert "2 starts" in iolab("show", session).stdout
