"""Imports point one way, and each third party has one door."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.house.test_tidy import ROOT


def test_import_contracts_hold() -> None:
    tool = Path(sys.executable).with_name("lint-imports")
    outcome = subprocess.run(
        [tool, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert "kept" in outcome.stdout
