"""What every test of the command line stands on."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_width_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test runner may set COLUMNS, which would fold what goes into a pipe."""
    monkeypatch.delenv("COLUMNS", raising=False)
