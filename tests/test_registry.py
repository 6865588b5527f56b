"""A kind of load comes from an installed package, by its entry point alone."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from iolab.registry import ENTRY_POINTS
from tests.processes import run_program

MODULE = """
from msgspec.structs import replace
from iolab.loads.metadata.kind import KIND as METADATA
KIND = replace(METADATA, name="foreign")
"""
ASKS = "from iolab.registry import LOADS; print(*(kind.name for kind in LOADS))"


def names(folder: Path) -> list[str]:
    """The kinds of load that iolab knows where that folder's packages are installed."""
    done = run_program(
        [sys.executable, "-c", ASKS], env={**os.environ, "PYTHONPATH": str(folder)}, check=True
    )
    return done.stdout.split()


def test_an_installed_package_adds_a_kind(tmp_path: Path) -> None:
    (tmp_path / "foreign.py").write_text(MODULE, encoding="utf-8")
    before = names(tmp_path)
    told = tmp_path / "foreign-1.0.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: foreign\nVersion: 1.0\n")
    (told / "entry_points.txt").write_text(f"[{ENTRY_POINTS}]\nforeign = foreign:KIND\n")
    assert names(tmp_path) == [*before, "foreign"]
