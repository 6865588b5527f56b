"""A search on a real directory: the peak is found, shown, stopped, and gone on with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

from tests.cli.command_line import iolab
from tests.e2e.targets import xfs_on_loop

pytestmark = [pytest.mark.e2e, pytest.mark.long]

SCHEMA = Path(__file__).parents[2] / "schema" / "show.json"
STUDY = """
format = 1
id = "search"

[[workload]]
id = "best"
rw = "randread"
bs = "4k"
iodepth = [1, 2, 4, 8]
filesize = "8m"
objective = "peak"

[method]
warmup = 0
runtime = 1
settle = 0
idle_watch = 0
generator_limit = false
repeats_max = 3
"""


@pytest.fixture(scope="module")
def target() -> Iterator[Path]:
    with xfs_on_loop(512 << 20) as made:
        yield made.path


def test_a_peak_is_found_confirmed_and_shown(target: Path, tmp_path: Path) -> None:
    study, session = tmp_path / "search.toml", tmp_path / "S"
    study.write_text(STUDY, encoding="utf-8")
    planned = iolab("plan", str(study), "--path", str(target), "--offline")
    assert "at least 4, at most 10 runs" in planned.stdout
    done = iolab("run", str(study), "--path", str(target), "--out", str(session))
    assert done.returncode == 0, done.stderr
    shown = json.loads(iolab("show", str(session), "--json").stdout)
    jsonschema.validate(shown, json.loads(SCHEMA.read_text(encoding="utf-8")))
    (peak,) = shown["load"]["peaks"]
    runs = [run for run in shown["results"] if run["axis"] == peak["best"]]
    assert 2 <= len(runs) <= 3
    assert peak["low"] <= peak["value"] <= peak["high"]
    assert len({tuple(run["axis"].items()) for run in shown["results"]}) == 4
    assert "best (default): best is iodepth" in iolab("show", str(session)).stdout
    again = iolab("resume", str(session))
    assert again.returncode == 0, again.stderr
    assert len(json.loads(iolab("show", str(session), "--json").stdout)["results"]) == len(
        shown["results"]
    )
