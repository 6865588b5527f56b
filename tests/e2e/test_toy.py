"""A kind of load of one folder, which no file of iolab names, does all that a built-in one does."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import iolab
from iolab.registry import ENTRY_POINTS
from tests.e2e.sessions import IOLAB, SESSION_LIMIT_S, result_of
from tests.processes import run_program

pytestmark = [pytest.mark.e2e, pytest.mark.long]

ROOT = Path(__file__).parents[2]

STUDY = """
format = 1
id = "log"
title = "A log"
question = "How many durable appends a second does this target take?"

[[workload]]
id = "append"
engine = "append"
block = ["512", "4k"]
indicator = "lat_variation"

[method]
warmup = "0s"
runtime = "1s"
settle = "0s"
idle_watch = 0
"""


class Installed:
    """iolab with the toy installed beside it, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        told = folder / "toy-1.0.dist-info"
        told.mkdir(parents=True)
        (told / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
        (told / "entry_points.txt").write_text(f"[{ENTRY_POINTS}]\nappend = tests.toy.kind:KIND\n")
        self._env = {**os.environ, "PYTHONPATH": f"{folder}:{ROOT}"}

    def __call__(self, *words: str | Path, expect: int = 0) -> str:
        """What a command prints on standard output; its exit code must be the expected one."""
        done = run_program([str(IOLAB), *map(str, words)], env=self._env, timeout=SESSION_LIMIT_S)
        assert done.returncode == expect, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout


def test_a_kind_of_load_of_one_folder(tmp_path: Path) -> None:
    run = Installed(tmp_path / "packages")
    study, session = tmp_path / "study.toml", tmp_path / "session"
    study.write_text(STUDY, encoding="utf-8")
    study_at = (study, "--path", tmp_path)

    assert "append: block_bytes 4096" in run("plan", *study_at)
    run("run", *study_at, "--out", session)

    document = json.loads(run("show", session, "--json"))
    result = result_of(document, "append")
    assert result["status"] == "done"
    rate, moved = (result["metrics"][key]["value"] for key in ("iops", "bw_bytes_per_s"))
    assert moved == pytest.approx(rate * 512)
    assert result["metrics"]["write_iops"]["value"] == rate
    assert result["metrics"]["lat_variation"]["value"] > 0
    (point,) = [one for one in document["points"] if one["digest"] == result["digest"]]
    assert point["metrics"]["lat_variation"]["value"] == result["metrics"]["lat_variation"]["value"]
    checks = {one["code"]: one["level"] for one in result["verdict"]["checks"]}
    assert checks["totals-disagree"] == checks["append-not-durable"] == "valid"
    (folder,) = (session / "points" / result["digest"]).iterdir()
    assert json.loads((folder / "manifest.json").read_bytes())["run"]["point"]["job"] == {
        "type": "append",
        "engine": "append",
        "block_bytes": 512,
    }

    shown = run("show", session)
    assert "block 4k" in shown
    assert "latency variation" in shown
    assert "iolab_point_metric{" in run("export", session, "--format", "openmetrics")
    run("report", session, "--html", tmp_path / "brief.html", "--md", tmp_path / "brief.md")
    for form, place in (("brief.html", "block 4k"), ("brief-appendix.md", "| 4k |")):
        assert place in (tmp_path / form).read_text(encoding="utf-8")
    assert not list(tmp_path.glob("iolab-scratch-*"))


def test_nothing_of_iolab_knows_it() -> None:
    package = Path(iolab.__file__).parent
    named = [path for path in package.rglob("*.py") if "tests.toy" in path.read_text("utf-8")]
    assert not named
