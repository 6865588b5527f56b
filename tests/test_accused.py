"""The guard over stored runs sees a library that was planted, and none in honest runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.accused import StoredRuns


def store_run(folder: Path, *libraries: dict[str, Any]) -> None:
    run = folder / "S" / "points" / "p" / "run-1"
    run.mkdir(parents=True)
    use = {"processes": 1, "files": 9, "spent_ns": 5, "libraries": libraries}
    document = {"hosts": [{"host": "a", "libraries": use}, {"host": "b", "libraries": None}]}
    (run / "manifest.json").write_text(json.dumps(document), encoding="utf-8")


def test_a_planted_library_is_named_once(tmp_path: Path) -> None:
    shim = {"path": "/x/libnosync.so", "source": "LD_PRELOAD", "exports": ["fsync"]}
    allocator = {"path": "/x/libje.so", "source": "LD_PRELOAD", "exports": ["mallctl"]}
    store_run(tmp_path / "honest", allocator)
    runs = StoredRuns(tmp_path)
    assert runs.new_accused_libraries() == []
    store_run(tmp_path / "planted", shim)
    (named,) = runs.new_accused_libraries()
    assert "libnosync.so" in named
    assert runs.new_accused_libraries() == []


def test_a_damaged_manifest_accuses_nobody(tmp_path: Path) -> None:
    store_run(tmp_path / "a")
    (tmp_path / "a" / "S" / "points" / "p" / "run-1" / "manifest.json").write_text('{"hosts": [3')
    assert StoredRuns(tmp_path).new_accused_libraries() == []
