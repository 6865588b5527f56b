"""What several modules of tests on reports only read."""

from __future__ import annotations

import pytest

from iolab.report.gather import StoredSessionReader
from iolab.report.merged import merge_sessions
from tests.report.several import session


@pytest.fixture(scope="session")
def united() -> StoredSessionReader:
    """Two sessions of the sweep, of which the first is twice as fast."""
    return merge_sessions([("fast", session("one", 2.0)), ("slow", session("two"))])
