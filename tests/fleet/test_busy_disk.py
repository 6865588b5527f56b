"""Twelve hosts lay out on one disk of 5 MB/s: slow, and no fault of anybody's clock."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fleet.bed import Bed, bed
from tests.fleet.test_session import iolab
from tests.needs import do_without

pytestmark = [pytest.mark.e2e, pytest.mark.long]

HOSTS = 12
BYTES_PER_S = 5_000_000
OF_1 = Path("/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device")
STUDY = """\
format = 1
id = "busy"
[[workload]]
id = "read"
rw = "randread"
bs = "4k"
filesize = "6m"
direct = {direct}
[method]
warmup = "0s"
runtime = "2s"
settle = "0s"
idle_watch = 0
generator_limit = false
"""
"""Buffered, fio writes all of it into memory at once and then waits for the disk; direct, its
reports wait for I/Os that take seconds. In both its count of its own time stands still."""


def limit_of_writes() -> tuple[Path, str, str]:
    """A file of the block controller that holds for the hosts, how it is told a limit, and none.

    Of version 1 that of all processes; of version 2, where that has none, that of our own group.
    """
    if OF_1.exists():
        return OF_1, f"{BYTES_PER_S}", "0"
    groups = Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines()
    own = next((line[3:] for line in groups if line.startswith("0::")), "/")
    of_2 = Path("/sys/fs/cgroup") / own.lstrip("/") / "io.max"
    if not of_2.exists():
        do_without("needs a block controller of control groups")
    return of_2, f"wbps={BYTES_PER_S}", "wbps=max"


@contextmanager
def throttled(device: str) -> Iterator[None]:
    """Writes of that device at 5 MB/s, whichever host makes them."""
    number = Path(f"/sys/block/{device}/dev").read_text(encoding="ascii").strip()
    file, limit, free = limit_of_writes()
    file.write_text(f"{number} {limit}", encoding="ascii")
    try:
        yield
    finally:
        file.write_text(f"{number} {free}", encoding="ascii")


@pytest.fixture(scope="module")
def twelve() -> Iterator[Bed]:
    limit_of_writes()
    with bed(HOSTS, "served") as made:
        yield made


@pytest.mark.parametrize("direct", ["false", "true"])
def test_a_layout_on_a_busy_disk_ends_well(twelve: Bed, tmp_path: Path, direct: str) -> None:
    study, session = tmp_path / "busy.toml", tmp_path / "session"
    study.write_text(STUDY.format(direct=direct), encoding="utf-8")
    device = json.loads((twelve.base / "fleet.json").read_text("utf-8"))["device"]
    with throttled(device):
        done = iolab("run", study, "--hosts", twelve.inventory, "--out", session, home=tmp_path)
    assert done.returncode == 0, done.stderr
    manifest = json.loads(next(session.glob("points/*/run-1/manifest.json")).read_text("utf-8"))
    steps = {host["host"]: host["clock_step_ns"] for host in manifest["hosts"]}
    assert steps == {f"c{number:02}": 0 for number in range(1, HOSTS + 1)}
    (result,) = json.loads(iolab("show", session, "--json", home=tmp_path).stdout)["results"]
    (step,) = (one for one in result["verdict"]["checks"] if one["code"] == "clock-step")
    assert step["level"] == "valid"
