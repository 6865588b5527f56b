"""The folders of a run with a stand-in for YCSB."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loads.keyvalue.ycsb.stand_in import java


@pytest.fixture
def program(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    return java(folder)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "target"
    folder.mkdir()
    return folder
