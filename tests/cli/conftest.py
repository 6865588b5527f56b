"""What every test of the command line stands on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command_line import make_session


@pytest.fixture(autouse=True)
def no_width_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test runner may set COLUMNS, which would fold what goes into a pipe."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A whole session for those who only read it, which is held against what was made."""
    made = make_session(tmp_path_factory.mktemp("shared") / "S")
    before = _contents(made)
    yield made
    assert _contents(made) == before


def _contents(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }
