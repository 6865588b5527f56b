"""Sequential streams that share a file: each engine's jobs go through their own parts of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.native_engine import KIB, MIB
from tests.e2e.sessions import iolab, manifest_of
from tests.e2e.targets import xfs_on_loop

pytestmark = [pytest.mark.e2e, pytest.mark.long]

STUDY = """
format = 1
id = "streams"
[target]
keep_files = true
[[workload]]
id = "w"
engine = "{engine}"
rw = "write"
bs = "64k"
numjobs = 3
filesize = "1m"
shared_file = true
contents = "zeros"
rate_iops = 4
[[workload]]
id = "r"
engine = "{engine}"
rw = "read"
bs = "64k"
numjobs = 2
filesize = "1m"
shared_file = true
contents = "zeros"
[method]
warmup = 0
runtime = 1
settle = 0
idle_watch = 0
generator_limit = false
"""


@pytest.fixture
def disk() -> Iterator[Path]:
    with xfs_on_loop(400 << 20) as made:
        yield made.path


@pytest.mark.parametrize("engine", ["native", "fio"])
def test_each_job_writes_from_the_start_of_its_part(
    engine: str, disk: Path, tmp_path: Path
) -> None:
    study = tmp_path / "streams.toml"
    study.write_text(STUDY.format(engine=engine), encoding="utf-8")
    iolab("run", study, "--path", disk, "--out", tmp_path / "S")
    (laid_out,) = disk.glob("iolab-scratch-*/s1msharedc.*")
    content = laid_out.read_bytes()
    assert len(content) == 3 * MIB
    blocks = [any(content[at : at + 64 * KIB]) for at in range(0, len(content), 64 * KIB)]
    for part in range(3):
        own = blocks[part * 16 : part * 16 + 16]
        # Zeros from its start on, as far as the rate let it come; then what was laid out.
        assert own == sorted(own)
        assert 2 <= own.index(True) <= 6, own
    _, manifest = manifest_of(tmp_path / "S", "w")
    written = manifest["hosts"][0]["totals"]["write"]["ios"]
    assert blocks.count(False) == written
    _, manifest = manifest_of(tmp_path / "S", "r")
    assert manifest["hosts"][0]["extents"]["hole_bytes"] == 0
