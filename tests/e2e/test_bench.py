"""`iolab bench` on two directories with a real engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command_line import iolab

pytestmark = [pytest.mark.e2e, pytest.mark.long]


def test_two_directories_are_compared_without_a_study(tmp_path: Path) -> None:
    places = [tmp_path / "one" / "data", tmp_path / "two" / "data"]
    for place in places:
        place.mkdir(parents=True)
    out = tmp_path / "session"
    load = ("--rw", "randread", "--bs", "8k", "--size", "8m", "--runtime", "4s", "--repeats", "2")
    done = iolab("bench", *places, *load, "--engine", "native", "--quiet", "--out", out)
    assert done.returncode == 0, done.stderr
    document = json.loads(iolab("show", out, "--json").stdout)
    order = [run["configuration"] for run in document["results"]]
    assert set(order) == {"one-data", "two-data"}
    last = done.stdout.splitlines()[-1]
    # Beside enough other load no run is worth comparing, and that is what it says.
    assert ("one-data" in last and last.endswith("(randread-8k)")) or "is not compared" in last
    assert "two-data" in last
    assert [list(place.iterdir()) for place in places] == [[], []]
