"""`iolab calibrate` with real fio and the real agent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.left import await_none_on
from tests.e2e.sessions import iolab
from tests.e2e.targets import xfs_on_loop

pytestmark = pytest.mark.e2e


def test_two_pairs_and_the_ceilings(tmp_path: Path) -> None:
    del tmp_path
    with xfs_on_loop(512 << 20) as target:
        words = ("--size", "16m", "--pairs", "2", "--seconds", "2", "--iodepth", "4", "--json")
        done = iolab("calibrate", "--path", target.path, *words)
        await_none_on(target.path)
    document = json.loads(done.stdout)
    order = [(one["pair"], one["engine"]) for one in document["trials"]]
    assert order == [(1, "fio"), (1, "native"), (2, "native"), (2, "fio")]
    assert all(one["iops"] > 0 and one["cpu_ns_per_io"] > 0 for one in document["trials"])
    rows = {row["key"]: row for row in document["rows"]}
    assert rows["iops"]["ratio"] == pytest.approx(rows["iops"]["native"] / rows["iops"]["fio"])
    engines = {one["engine"]: one for one in document["engines"]}
    assert engines["native"]["ceiling_iops"] > rows["iops"]["native"]
    assert engines["fio"]["ceiling_iops"] > 0
    assert engines["fio"]["version"].startswith("fio-")


def test_what_cannot_be_asked_for_is_refused_all_at_once(tmp_path: Path) -> None:
    words = ("--rw", "sideways", "--bs", "4x", "--size", "0", "--ioengine", "rbd")
    done = iolab("calibrate", "--path", tmp_path, *words, expect=2)
    for wrong in ("'sideways'", "'4x'", "'0'", "'rbd'"):
        assert wrong in done.stderr
