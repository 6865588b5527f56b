"""`iolab bench` on two directories with a real engine."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from tests.cli.command_line import iolab

pytestmark = [pytest.mark.e2e, pytest.mark.long]


def test_two_directories_are_compared_without_a_study(tmp_path: Path) -> None:
    places = [tmp_path / "one" / "data", tmp_path / "two" / "data"]
    for place in places:
        place.mkdir(parents=True)
    out = tmp_path / "session"
    mix = ("--rw", "randrw", "--rwmixread", "70", "--bs", "8k", "--size", "8m", "--direct", "1")
    load = (*mix, "--ioengine", "psync", "--runtime", "4s", "--repeats", "2")
    done = iolab("bench", *places, *load, "--engine", "native", "--quiet", "--out", out)
    assert done.returncode == 0, done.stderr
    document = json.loads(iolab("show", out, "--json").stdout)
    order = [run["configuration"] for run in document["results"]]
    assert set(order) == {"one-data", "two-data"}
    workload = tomllib.loads((out / "study.toml").read_text(encoding="utf-8"))["workload"][0]
    assert (workload["rwmixread"], workload["ioengine"]) == (70, "psync")
    rows = done.stdout.partition("\nlatency ")[2].splitlines()
    assert rows[0].split() == ["p50", "p99", "p99.9"]
    assert [row.split()[:2] for row in rows[1:5]] == [
        [f"{name},", operation]
        for name in ("one-data", "two-data")
        for operation in ("read", "write")
    ]
    last = rows[-1]
    # Beside enough other load no run is worth comparing, and that is what it says.
    assert ("one-data" in last and last.endswith("(randrw-8k)")) or "is not compared" in last
    assert "two-data" in last
    assert [list(place.iterdir()) for place in places] == [[], []]
