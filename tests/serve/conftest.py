"""A session for the tests of the server, which each may copy and spoil."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.command_line import make_session


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole session, only to be read and copied."""
    return make_session(tmp_path_factory.mktemp("served") / "S")


@pytest.fixture
def folder(session: Path, tmp_path: Path) -> Path:
    """A copy of it, to be spoilt."""
    return Path(shutil.copytree(session, tmp_path / "one"))
