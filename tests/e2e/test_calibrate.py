"""`iolab calibrate` with real fio and the real agent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command_line import iolab as run_command
from tests.e2e.left import await_none_on
from tests.e2e.sessions import iolab

pytestmark = [pytest.mark.e2e, pytest.mark.long]


def test_two_pairs_are_a_session_whose_engines_are_compared(tmp_path: Path) -> None:
    session, target = tmp_path / "session", tmp_path / "target"
    target.mkdir()
    words = ("--size", "16m", "--pairs", "2", "--seconds", "4", "--iodepth", "4", "--json")
    done = run_command("calibrate", "--path", target, *words, "--out", session)
    await_none_on(target)
    assert list(target.iterdir()) == []
    assert "Left behind" not in done.stderr
    document = json.loads(done.stdout)
    sides = [document[side]["configuration"] for side in ("baseline", "candidate")]
    assert sides == ["fio", "native"]
    fio, native = document["engines"]
    assert fio["version"].startswith("fio-")
    assert fio["cpu_ns_per_io"] > 0
    assert native["cpu_ns_per_io"] > 0
    assert 0 < native["generator_limit_share"] < 1
    # Beside enough other load no run is worth comparing, and the exit code tells that.
    ratios = {row["metric"]: row["ratio"] for row in document["rows"]}
    assert done.returncode == (0 if ratios else 1), done.stderr
    if ratios:
        names = (f"{session}:fio", f"{session}:native")
        again = json.loads(iolab("compare", *names, "--json").stdout)
        assert {row["metric"]: row["ratio"] for row in again["rows"]}["iops"] == ratios["iops"]


def test_a_path_that_is_none_is_told_in_a_sentence(tmp_path: Path) -> None:
    words = ("--path", tmp_path / "missing", "--out", tmp_path / "session")
    done = iolab("calibrate", *words, expect=3)
    assert "There is no directory" in done.stderr
    assert "Traceback" not in done.stderr
