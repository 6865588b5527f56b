"""Trims by both engines on a loop device of our own: counted by the kernel, and filled again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.devices import Spare, spare_loop
from tests.e2e.native_engine import MIB
from tests.e2e.sessions import iolab

pytestmark = [pytest.mark.e2e, pytest.mark.long]

STUDY = """
format = 1
id = "trims"
[[workload]]
id = "native"
engine = "native"
rw = "randtrim"
bs = "64k"
iodepth = 4
numjobs = 2
filesize = "8m"
rate_iops = 60
arrivals = "poisson"
[[workload]]
id = "fio"
rw = "trim"
bs = "64k"
numjobs = 2
filesize = "8m"
rate = "4m"
[[workload]]
id = "reads"
engine = "native"
rw = "randread"
bs = "4k"
numjobs = 2
filesize = "8m"
rate_iops = 200
[method]
warmup = 0
runtime = 2
settle = 0
idle_watch = 0
generator_limit = false
"""
REGION = 16 * MIB


@pytest.fixture
def spare() -> Iterator[Spare]:
    with spare_loop() as spare:
        yield spare


def discards(spare: Spare) -> tuple[int, int]:
    """Requests and bytes that the kernel has discarded of the device so far."""
    counts = Path(f"/sys/block/{spare.name}/stat").read_text(encoding="ascii").split()
    return int(counts[11]), int(counts[13]) * 512


def manifests(session: Path) -> dict[str, dict[str, Any]]:
    """Of each workload's run."""
    found = (json.loads(path.read_bytes()) for path in session.glob("points/*/run-1/manifest.json"))
    return {one["run"]["point"]["workload"]: one for one in found}


def levels(manifest: dict[str, Any]) -> dict[str, tuple[str, str]]:
    checks = manifest["analysis"]["result"]["verdict"]["checks"]
    return {check["code"]: (check["level"], check["message"]) for check in checks}


def test_a_session_of_trims_agrees_with_the_kernel_and_reads_what_was_filled_again(
    spare: Spare, tmp_path: Path
) -> None:
    (tmp_path / "trims.toml").write_text(STUDY, encoding="utf-8")
    target = ("--device", spare.path, "--serial", spare.serial)
    before = discards(spare)
    iolab("run", tmp_path / "trims.toml", *target, "--out", tmp_path / "S")
    ios, moved = (now - then for now, then in zip(discards(spare), before, strict=True))
    runs = manifests(tmp_path / "S")
    trims = {name: runs[name]["hosts"][0]["totals"]["trim"] for name in ("native", "fio")}
    assert all(one["bytes"] == one["ios"] * 64 * 1024 > MIB for one in trims.values())
    assert moved == sum(one["bytes"] for one in trims.values())
    assert ios == sum(one["ios"] for one in trims.values())
    for name, told in trims.items():
        (delta,) = [one for one in runs[name]["hosts"][0]["devices"] if one["device"] == spare.name]
        assert (delta["discard_bytes"], delta["discard_ios"]) == (told["bytes"], told["ios"])
        assert levels(runs[name])["bytes-moved"][0] == "valid", levels(runs[name])
        metrics = runs[name]["analysis"]["result"]["metrics"]
        for key in ("iops", "bw_bytes_per_s", "lat_ns_mean"):
            assert metrics[f"trim_{key}"]["value"] == metrics[key]["value"] > 0
    # Each of them began with all of its region written, though the one before left holes.
    states = [one["states"][0] for one in runs.values()]
    assert [state["filled"] for state in states] == [1.0, 1.0, 1.0]
    assert spare.allocated_bytes >= REGION
    shown = iolab("show", tmp_path / "S", "--json")
    assert "trim_iops" in shown.stdout


def test_the_plan_shows_what_is_filled_again(spare: Spare, tmp_path: Path) -> None:
    (tmp_path / "trims.toml").write_text(STUDY, encoding="utf-8")
    target = ("--device", spare.path, "--serial", spare.serial)
    said = iolab("plan", tmp_path / "trims.toml", *target).stdout
    assert "3 x fill" in said
    assert "60 IOPS a job, poisson arrivals" in said
